import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cellOf, inCollection, indented, jsonMembers, RawJson } from "../../cli/json-text.ts";

describe("JSON split at its tokens", () => {
  test("preserves spelling and order", () => {
    const text =
      ' { "b" : 9007199254740993 , "1":1.0,"a\\"}":[ {"x":"]"}, 2e5 ],"c":{},"d":null } ';
    expect(jsonMembers(text)).toEqual([
      { name: "b", text: "9007199254740993" },
      { name: "1", text: "1.0" },
      { name: 'a"}', text: '[ {"x":"]"}, 2e5 ]' },
      { name: "c", text: "{}" },
      { name: "d", text: "null" },
    ]);
    expect(jsonMembers('[1, [2,3] ,"\\\\"]').map((piece) => piece.text)).toEqual([
      "1",
      "[2,3]",
      '"\\\\"',
    ]);
    expect(cellOf("1.0")).toEqual(new RawJson("1.0"));
    expect(cellOf('"1.0"')).toBe("1.0");
  });

  test("matches JSON.parse, and is indented as by JSON.stringify", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const value: unknown = JSON.parse(text);
        const keyed = typeof value === "object" && value !== null;
        if (keyed && !Array.isArray(value)) {
          const members = jsonMembers(text).map(({ name, text: one }) => [name, JSON.parse(one)]);
          expect(Object.fromEntries(members)).toEqual(value);
        } else if (keyed) {
          expect(jsonMembers(text).map((piece) => JSON.parse(piece.text))).toEqual(value);
        } else expect(jsonMembers(text)).toEqual([]);
        expect(JSON.parse(indented(text))).toEqual(value);
      }),
    );
    const nested = { a: [], b: {}, c: [1, { d: 'x\n"{' }], e: null };
    expect(indented(JSON.stringify(nested))).toBe(JSON.stringify(nested, null, 2));
  });

  test("gets a collection without other changes", () => {
    expect(inCollection('{"A":1.0}', "As")).toBe('{"A":1.0,"@metadata":{"@collection":"As"}}');
    expect(
      inCollection('{"@metadata":{"n":1.0,"@collection":"B"},"A":12345678901234567890}', "As"),
    ).toBe('{"A":12345678901234567890,"@metadata":{"n":1.0,"@collection":"As"}}');
  });
});
