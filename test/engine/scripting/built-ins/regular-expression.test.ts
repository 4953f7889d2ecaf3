import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EngineError } from "../../../../engine/base/errors.ts";
import {
  compilePattern,
  compileTextTest,
} from "../../../../engine/scripting/built-ins/regular-expression.ts";

/** Counts work without limiting it. */
function counter(): { units: number; burn(units: number): void } {
  return {
    units: 0,
    burn(units) {
      this.units += units;
    },
  };
}

function spans(pattern: string, flags: string, text: string): readonly number[] | null {
  return compilePattern(pattern, flags).match(text, 0, counter());
}

/** The result of the host's engine. */
function hostSpans(pattern: string, flags: string, text: string): number[] | null {
  const match = new RegExp(pattern, `${flags.replace("g", "")}d`).exec(text);
  return match === null ? null : (match.indices ?? []).flatMap((span) => span ?? [-1, -1]);
}

describe("patterns", () => {
  for (const [pattern, flags, text] of [
    ["a+b", "", "xaab"],
    ["a*?b", "", "aaab"],
    ["(\\w+)\\s(\\w+)", "", "John Smith"],
    ["(?<y>\\d{4})-(?<m>\\d\\d)", "", "on 2024-05"],
    ["^x$", "m", "a\nx\nb"],
    ["^x$", "", "a\nx"],
    ["[^a-c]+", "", "abcxyz"],
    ["[\\w-]+", "", "a-b c"],
    ["[a\\]]+", "", "]a]"],
    ["\\bfoo\\b", "i", "a FOO b"],
    ["\\Boo", "", "foo"],
    ["x{2,3}", "", "xxxxx"],
    ["x{2,3}?", "", "xxxxx"],
    ["x{2}", "", "xxxxx"],
    ["x{,3}", "", "x{,3}"],
    ["a|ab", "", "ab"],
    ["(a|ab)(c|bcd)(d*)", "", "abcd"],
    ["(?:a|b)+", "", "abba"],
    ["(a)|(b)", "", "b"],
    [".", "", "\n"],
    [".", "s", "\n"],
    ["\\u0041\\x42", "", "AB"],
    ["\\.", "", "a.b"],
    ["é", "i", "É"],
    ["[à-ö]", "i", "É"],
    ["^.$", "u", "😀"],
    ["\\p{L}+", "u", "12éß"],
    ["", "", "abc"],
    ["$", "", "abc"],
    ["\\d+$", "", "a1b22"],
  ] as const) {
    it(`/${pattern}/${flags} on ${JSON.stringify(text)}`, () => {
      expect(spans(pattern, flags, text)).toEqual(hostSpans(pattern, flags, text));
    });
  }
  it("generated at random match as on the host", () => {
    const atom = fc.constantFrom(
      "a",
      "b",
      "c",
      ".",
      "[ab]",
      "[^a]",
      "\\w",
      "\\b",
      "(?:ab)",
      "^",
      "$",
    );
    const repeatable = fc.constantFrom("a", "b", ".", "[ab]", "[^a]", "\\w", "(?:ab)", "(?:a|bc)");
    const quantifier = fc.constantFrom("", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}");
    const piece = fc.oneof(
      atom,
      fc.tuple(repeatable, quantifier).map(([x, q]) => x + q),
      fc.tuple(repeatable, quantifier).map(([x, q]) => `(${x}${q})`),
      fc.tuple(repeatable, repeatable).map(([x, y]) => `(${x}|${y})`),
    );
    const pattern = fc
      .array(
        fc.array(piece, { maxLength: 4 }).map((list) => list.join("")),
        { minLength: 1, maxLength: 3 },
      )
      .map((list) => list.join("|"));
    const text = fc.string({ unit: fc.constantFrom("a", "b", "c", " ", "\n"), maxLength: 12 });
    fc.assert(
      fc.property(pattern, text, fc.constantFrom("", "i", "m", "s"), (source, input, flags) => {
        expect(spans(source, flags, input)).toEqual(hostSpans(source, flags, input));
      }),
      { numRuns: 1_500 },
    );
  });
  it("cost in proportion to the text, for any pattern", () => {
    for (const pattern of ["(a+)+$", "((a*)*)*b", "(a|a)*c", "(a?){30}a{30}b", "(.*)*x"]) {
      const matcher = compilePattern(pattern, "");
      const [short, long] = [counter(), counter()];
      matcher.match(`${"a".repeat(500)}!`, 0, short);
      matcher.match(`${"a".repeat(5_000)}!`, 0, long);
      expect(long.units / short.units, pattern).toBeLessThan(11);
    }
  });
  it("are rejected if invalid, or if they cannot be matched in linear time", () => {
    for (const pattern of [
      "(a)\\1",
      "\\k<a>",
      "(?=a)",
      "(?!a)",
      "(?<=a)b",
      "(?<!a)b",
      "(",
      ")",
      "[",
      "a**",
      "*",
      "a{3,2}",
      "\\",
      "(?<1>a)",
      "(?<a>x)(?<a>y)",
      "a++",
      "(?>a)",
      "\\p{Nope}",
      "[z-a]",
      "a{5000}{5000}",
      "(a{100}){100}",
      "(){99999999}",
      `${"(".repeat(200)}${")".repeat(200)}`,
      "a".repeat(5_000),
    ]) {
      expect(() => compilePattern(pattern, ""), pattern).toThrow(EngineError);
    }
    expect(() => compilePattern("a", "gg")).toThrow(EngineError);
    expect(() => compilePattern("a", "x")).toThrow(EngineError);
  });
});

describe("regex() of queries", () => {
  it("finds a pattern anywhere, in any case, with inline options", () => {
    expect(compileTextTest("^a")("abc")).toBe(true);
    expect(compileTextTest("B")("abc")).toBe(true);
    expect(compileTextTest("(?-i)B")("abc")).toBe(false);
    expect(compileTextTest("(?s-i)a.B")("a\nB")).toBe(true);
    expect(compileTextTest("\\Ab")("abc")).toBe(false);
    expect(compileTextTest("c\\z")("abc")).toBe(true);
  });
});
