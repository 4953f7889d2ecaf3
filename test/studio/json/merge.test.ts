/** Changes of two users to one document, and the merged document. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type JsonMembers, parseSource, printSource } from "../../../studio/json/json-source.ts";
import { changesOf, isSame, merged, shortText } from "../../../studio/json/merge.ts";

const of = (value: object) => parseSource(JSON.stringify(value)) as JsonMembers;
const back = (members: JsonMembers) => JSON.parse(printSource(members, 0)) as unknown;
const base = { a: 1, b: { c: "x", d: [1, 2] }, e: null };

describe("changes", () => {
  test("are found in fields, also inside objects", () => {
    const theirs = { ...base, b: { ...base.b, c: "theirs" } };
    const mine = { ...base, a: 2, b: { ...base.b, c: "mine" } };
    const found = changesOf(of(base), of(theirs), of(mine));
    expect(found.map(({ path, isConflict }) => [path.join("."), isConflict])).toEqual([
      ["a", false],
      ["b.c", true],
    ]);
  });

  test("that are equal on both sides are no conflict", () => {
    const both = { ...base, a: 7 };
    expect(changesOf(of(base), of(both), of(both)).map(({ isConflict }) => isConflict)).toEqual([
      false,
    ]);
  });

  test("ignore the order of members, but not the digits of numbers", () => {
    expect(isSame(parseSource('{"a":1,"b":2}'), parseSource('{"b":2,"a":1}'))).toBe(true);
    expect(isSame(parseSource("[1]"), parseSource("[1.0]"))).toBe(false);
    expect(isSame(parseSource("[1,2]"), parseSource("[2,1]"))).toBe(false);
  });
});

describe("a merge", () => {
  test("has the changes of both sides, and the chosen side of conflicts", () => {
    const theirs = { ...base, e: "theirs", b: { ...base.b, c: "theirs" }, more: [1] };
    const mine = { a: 2, b: { c: "mine", d: [3] }, e: null };
    const changes = changesOf(of(base), of(theirs), of(mine));
    const key = JSON.stringify(["b", "c"]);
    expect(back(merged(of(theirs), changes, new Set([key])))).toEqual({
      a: 2,
      b: { c: "mine", d: [3] },
      e: "theirs",
      more: [1],
    });
    expect(back(merged(of(theirs), changes, new Set()))).toMatchObject({ b: { c: "theirs" } });
  });

  test("removes fields removed on the own side", () => {
    const { a, ...mine } = base;
    const changes = changesOf(of(base), of({ ...base, e: 5 }), of(mine));
    expect(a).toBe(1);
    expect(back(merged(of({ ...base, e: 5 }), changes, new Set()))).toEqual({ b: base.b, e: 5 });
  });

  test("with an unchanged side equals the other side", () => {
    const document = fc.dictionary(fc.constantFrom("a", "b", "c"), fc.jsonValue({ maxDepth: 2 }));
    fc.assert(
      fc.property(document, document, (before, after) => {
        const [one, other] = [of(before), of(after)];
        expect(back(merged(one, changesOf(one, one, other), new Set()))).toEqual(back(other));
        expect(back(merged(other, changesOf(one, other, one), new Set()))).toEqual(back(other));
      }),
    );
  });
});

test("a value is shown in one line, truncated if long", () => {
  expect(shortText(undefined)).toBe("–");
  expect(shortText(parseSource('{"a": [1, 2.50]}'))).toBe('{"a":[1,2.50]}');
  expect(shortText("x".repeat(500))).toHaveLength(120);
});
