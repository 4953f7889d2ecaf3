/** Paths through lists and into texts. The values are those of RavenDB 7.2.7. */
import { expect, test } from "vitest";
import { eachText, fieldStep, pathText } from "../../../../engine/indexing/fields/path-text.ts";

const document = {
  K: [{ T: "1996-02-29T03:04:05" }, { T: "1912-02-03T00:00:00+02:00" }, { T: null }, {}],
  L: ["1996-02-29T03:04:05", "x", 5],
  N: [{ T: [{ a: 1 }, { b: 1 }] }, { T: [] }, { T: { a: 7 } }, { T: null }],
  P: [[{ a: 1 }, { a: 2 }], { a: 3 }],
  s: "abc",
  g: { Length: 9 },
};
const bytes = Buffer.from(JSON.stringify(document));

function read(path: string): string | null {
  const steps = path
    .split(".")
    .map((part) => fieldStep(part.replace("[]", ""), /\[\]$/.test(part)));
  return pathText(bytes, 0, steps, 0);
}

test.each([
  ["K.T.Year", "[1996,1912]"],
  ["K[].T.Year", "[1996,1912,null,null]"],
  ["K.T", '["1996-02-29T03:04:05.0000000","1912-02-03T00:00:00.0000000+02:00",null]'],
  ["L.Year", "[1996]"],
  ["L[].Year", '["1996-02-29T03:04:05","x",5]'],
  ["N.T.a", "[[1],[],7]"],
  ["N[].T.a", "[1,7,null]"],
  ["P.a", "[[1,2],3]"],
  ["L.Length", "3"],
  ["K.count", "4"],
  ["s.Length", "3"],
  ["g.Length", "9"],
  ["s.Year", null],
  ["s.Length.x", null],
  ["missing.Year", null],
])("%s is %s", (path, text) => {
  expect(read(path)).toBe(text);
});

test("returns the elements of a list unchanged", () => {
  const list = bytes.indexOf('["1996');
  expect(eachText(bytes, list, [], 0)).toEqual(['"1996-02-29T03:04:05"', '"x"', "5"]);
});
