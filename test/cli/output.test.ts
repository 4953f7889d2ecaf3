import { expect, test } from "vitest";
import { csvLine, durationText, painter, sizeText, tableLines } from "../../cli/output.ts";

const plain = painter(false, {});

test("colors are used on terminals, unless a variable overrides it", () => {
  const isColored = (isTerminal: boolean, environment: Record<string, string>) =>
    painter(isTerminal, environment)("red", "x") !== "x";
  expect(isColored(true, {})).toBe(true);
  expect(isColored(false, {})).toBe(false);
  expect(isColored(true, { NO_COLOR: "1" })).toBe(false);
  expect(isColored(true, { NO_COLOR: "" })).toBe(true);
  expect(isColored(false, { FORCE_COLOR: "1" })).toBe(true);
  expect(isColored(false, { FORCE_COLOR: "0" })).toBe(false);
  expect(isColored(true, { TERM: "dumb" })).toBe(false);
});

test("tables align texts to the left and numbers to the right", () => {
  const rows = [
    ["a", 1, null],
    ["bcd", 200, { x: 1 }],
  ];
  expect(tableLines(["name", "n", ""], rows, undefined, plain)).toEqual([
    "name    n",
    "a       1",
    'bcd   200  {"x":1}',
  ]);
});

test("tables are as wide as the screen: wide characters count twice, controls become spaces", () => {
  expect(tableLines(["t"], [["日本語日本語"], ["a\nb\u001b[1m"]], 7, plain)).toEqual([
    "t",
    "日本語…",
    "a b [1m",
  ]);
});

test("CSV quotes values that need it", () => {
  expect(csvLine(["a", 'say "x"', "a,b", "two\nlines", null, 1, { a: 1 }])).toBe(
    'a,"say ""x""","a,b","two\nlines",,1,"{""a"":1}"',
  );
});

test("sizes and durations are short", () => {
  expect([0, 1023, 1024, 5 * 1024 ** 3, 3000 * 1024 ** 4].map(sizeText)).toEqual([
    "0 bytes",
    "1023 bytes",
    "1.0 KB",
    "5.0 GB",
    "3000.0 TB",
  ]);
  expect([0, 59_400, 61_000, 3_600_000, 90_061_000].map(durationText)).toEqual([
    "0 s",
    "59 s",
    "1 min 1 s",
    "1 h 0 min",
    "25 h 1 min",
  ]);
});
