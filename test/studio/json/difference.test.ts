import { expect, test } from "vitest";
import { asLines, difference, foldedRuns } from "../../../studio/json/difference.ts";

const marked = (before: string, after: string) =>
  difference(before, after).map(
    ({ kind, parts }) =>
      `${{ same: " ", removed: "-", added: "+" }[kind]}${parts
        .map(({ text, isChanged }) => (isChanged ? `[${text}]` : text))
        .join("")}`,
  );

test("equal, removed and added lines keep their order, and differing words are marked", () => {
  expect(marked('a\n"City": "Rheims",\nb', 'a\n"City": "Reims",\nb\nc')).toEqual([
    " a",
    '-"City": "[Rheims]",',
    '+"City": "[Reims]",',
    " b",
    "+c",
  ]);
});

test("lines without common words are not marked word by word", () => {
  expect(marked("one two", "three four")).toEqual(["-one two", "+three four"]);
});

test("the lines of any difference contain both texts", () => {
  const seed = (n: number) => ((n * 1_103_515_245 + 12_345) >>> 8) % 7;
  for (let round = 0; round < 200; round++) {
    const text = (shift: number) =>
      Array.from({ length: seed(round + shift) * 3 }, (_, n) => `l${seed(round * 31 + n * shift)}`);
    const [before, after] = [text(3).join("\n"), text(5).join("\n")];
    const lines = difference(before, after);
    const side = (without: string) =>
      lines
        .filter(({ kind }) => kind !== without)
        .map(({ parts }) => parts.map(({ text: part }) => part).join(""))
        .join("\n");
    expect(side("added")).toBe(before);
    expect(side("removed")).toBe(after);
    const numbers = lines.map(({ right }) => right).filter((number) => number > 0);
    expect(numbers).toEqual(numbers.map((_, n) => n + 1));
  }
});

test("the order of keys matters only on request, and numbers keep their digits", () => {
  const before = '{"a":1,"b":{"x":1.10,"y":12345678901234567890},"c":[{"p":1,"q":2}]}';
  const after = '{"c":[{"q":2,"p":1}],"b":{"y":12345678901234567890,"x":1.1},"a":1}';
  const changed = (keepsOrder: boolean) =>
    difference(...asLines(before, after, keepsOrder)).filter(({ kind }) => kind !== "same");
  expect(
    changed(false).map(({ parts }) =>
      parts
        .map(({ text }) => text)
        .join("")
        .trim(),
    ),
  ).toEqual(['"x": 1.10,', '"x": 1.1,']);
  expect(changed(true).length).toBeGreaterThan(2);
});

test("a new key stays after its predecessor", () => {
  const [before, after] = asLines('{"a":1,"b":2}', '{"b":2,"n":0,"a":1}', false);
  expect(marked(before, after).map((line) => line.replaceAll(" ", ""))).toEqual([
    "{",
    '"a":1,',
    '-"b":2',
    '+"b":2[,]',
    '+"n":0',
    "}",
  ]);
});

test("texts that are not JSON are compared verbatim", () => {
  expect(asLines("{x", "{}", false)).toEqual(["{x", "{}"]);
});

test("two large texts without a common line are compared in bounded time", () => {
  const text = (of: string) => Array.from({ length: 50_000 }, (_, n) => `${of}${n}`).join("\n");
  const startedMs = performance.now();
  expect(difference(`x\n${text("a")}\nz`, `x\n${text("b")}\nz`)).toHaveLength(100_002);
  // The search ends after 150 ms; the rest is linear. Otherwise it would take minutes.
  expect(performance.now() - startedMs).toBeLessThan(20_000);
});

test("of a long line, the differing part is shown", () => {
  const long = "x".repeat(100_000);
  const [removed, added] = difference(`${long}a${long}`, `${long}b${long}`);
  expect(removed?.parts.map(({ isChanged }) => isChanged)).toEqual([false, true, false]);
  expect(added?.parts[1]?.text).toBe("b");
  expect(added?.parts.reduce((sum, { text }) => sum + text.length, 0)).toBeLessThan(1000);
});

test("equal lines are folded except for three beside a change", () => {
  const lines = (at: number) =>
    Array.from({ length: 30 }, (_, n) => (n === at ? "changed" : `${n}`)).join("\n");
  expect(foldedRuns(difference(lines(-1), lines(10)))).toEqual([
    { isFolded: true, from: 0, to: 7 },
    { isFolded: false, from: 7, to: 15 },
    { isFolded: true, from: 15, to: 31 },
  ]);
  expect(foldedRuns(difference("a\nb\nc", "a\nb\nc"))).toEqual([
    { isFolded: true, from: 0, to: 3 },
  ]);
});
