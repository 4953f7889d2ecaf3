import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { quoteString } from "../../../../engine/base/json/escape.ts";
import {
  decodeNumber,
  decodeString,
  findMember,
  firstElement,
  type JsonValue,
  nextElement,
  readValue,
  skipValue,
  ValueSpan,
  valueKind,
} from "../../../../engine/base/json/field-access.ts";

/** The bytes of a value that is an array element inside a document. */
function inArray(value: unknown): Buffer {
  return Buffer.from(`[${JSON.stringify(value)}]`);
}

const json = fc
  .jsonValue({ maxDepth: 4, stringUnit: "grapheme" })
  .filter((value) => !Object.is(value, -0));

describe("a value", () => {
  it("is read as by JSON.parse, and skipped as a whole", () => {
    fc.assert(
      fc.property(json, (value) => {
        const bytes = inArray(value);
        const to = skipValue(bytes, 1);
        expect(to).toBe(bytes.length - 1);
        expect(readValue(bytes, 1, to)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
      { numRuns: 1000 },
    );
  });

  it.each([
    [null, "null"],
    [true, "boolean"],
    [false, "boolean"],
    [-1.5, "number"],
    [0, "number"],
    ["", "string"],
    [[], "array"],
    [{}, "object"],
  ])("of %j is a %s", (value, kind) => expect(valueKind(inArray(value), 1)).toBe(kind));

  it("made of decimal digits is the nearest double", () => {
    const digits = fc.string({ unit: fc.constantFrom(..."0123456789"), maxLength: 20 });
    const text = fc
      .tuple(
        fc.constantFrom("", "-"),
        fc.nat(),
        fc.option(digits),
        fc.constantFrom("", "e3", "E-30"),
      )
      .map(([sign, whole, part, power]) => `${sign}${whole}${part ? `.${part}` : ""}${power}`);
    fc.assert(
      fc.property(text, (number) => {
        const bytes = Buffer.from(number);
        expect(decodeNumber(bytes, 0, bytes.length)).toBe(JSON.parse(number));
      }),
      { numRuns: 3000 },
    );
  });

  it("of type string is the text between the quotes", () => {
    for (const text of ["", "abc", "é", "日本😀", 'a"b\\c\n', "\u0000é\\"]) {
      const bytes = quoteString(text);
      expect(decodeString(bytes, 0, bytes.length)).toBe(text);
    }
  });
});

describe("a member", () => {
  const found = new ValueSpan();

  it("is found under every key of an object, and under no other", () => {
    const object = fc.dictionary(fc.string({ maxLength: 4, unit: "binary" }), json, { maxKeys: 8 });
    fc.assert(
      fc.property(object, fc.string({ maxLength: 3 }), (drawn, other) => {
        const bytes = inArray(drawn);
        const parsed = JSON.parse(bytes.toString("utf8"))[0] as Record<string, JsonValue>;
        for (const key of [...Object.keys(parsed), other]) {
          const name = Buffer.from(JSON.stringify(key));
          const isThere = Object.hasOwn(parsed, key);
          expect(findMember(bytes, 1, name, found)).toBe(isThere);
          if (isThere) expect(readValue(bytes, found.from, found.to)).toEqual(parsed[key]);
          else expect(found.from).toBe(-1);
        }
      }),
      { numRuns: 1000 },
    );
  });

  it("is not found in a value that is not an object", () => {
    for (const value of [1, "a", null, ["a"], true]) {
      expect(findMember(inArray(value), 1, quoteString("a"), found)).toBe(false);
    }
  });
});

describe("a path", () => {
  const bytes = Buffer.from(
    '{"A":{"B":{"C":1}},"L":[{"P":"x","T":[1,2]},{"P":"y","T":[]},{"Q":0},7],"E":[],"N":null,"M":[[3],[4,5]]}',
  );
  it("over elements can also be followed step by step", () => {
    const list: JsonValue[] = [];
    const start = bytes.indexOf("[[3]");
    for (let i = firstElement(bytes, start); i >= 0; ) {
      const to = skipValue(bytes, i);
      list.push(readValue(bytes, i, to));
      i = nextElement(bytes, to);
    }
    expect(list).toEqual([[3], [4, 5]]);
  });
});
