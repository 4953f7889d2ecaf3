/**
 * The automaton of a pattern is compared with the thread-based matcher, over random patterns and
 * texts.
 */
import { describe, expect, it } from "vitest";
import { EngineError } from "../../../../engine/base/errors.ts";
import {
  compilePattern,
  compileTextTest,
} from "../../../../engine/scripting/built-ins/regular-expression.ts";
import { AutomatonSpace } from "../../../../engine/scripting/built-ins/text-automaton.ts";
import { SeededRandom } from "../../../support/random.ts";

const freeAccount = { burn: () => undefined };
const atoms = [
  "a",
  "b",
  ".",
  "[ab]",
  "[^a]",
  "\\b",
  "\\B",
  "^",
  "$",
  "\\w",
  "\\s",
  "(a|b)",
  "\\z",
  "é",
];
const quantifiers = ["", "", "", "*", "+", "?", "{2}", "{1,3}", "*?"];
const letters = ["a", "b", "A", " ", "\n", "é", "😀", "_"];

function randomPattern(random: SeededRandom, depth: number): string {
  let pattern = "";
  for (let i = random.below(4); i >= 0; i--) {
    const isGroup = depth > 0 && random.below(4) === 0;
    const atom = isGroup
      ? `(?:${randomPattern(random, depth - 1)}|${randomPattern(random, depth - 1)})`
      : (atoms[random.below(atoms.length)] as string);
    const isAssertion = /^(\\[bBz]|[\^$])$/.test(atom);
    pattern += atom + (isAssertion ? "" : quantifiers[random.below(quantifiers.length)]);
  }
  return pattern;
}

function randomText(random: SeededRandom): string {
  let text = "";
  for (let i = random.below(8); i > 0; i--) text += letters[random.below(letters.length)];
  return text;
}

describe("the automaton of a pattern", () => {
  it.each(["", "(?m)", "(?s)", "(?-i)", "(?ms-i)"])(
    "finds the same matches as the threads, with %s",
    (inline) => {
      const random = new SeededRandom(7 + inline.length);
      for (let round = 0; round < 400; round++) {
        const pattern = randomPattern(random, 2);
        const flags = inline.includes("-i") ? "" : "i";
        const others = [..."ms"].filter((flag) => inline.includes(flag)).join("");
        const threads = compilePattern(pattern, `${flags}${others}u`);
        // Small enough for states to be evicted sometimes.
        const test = compileTextTest(
          inline + pattern,
          freeAccount,
          new AutomatonSpace(round % 2 === 0 ? 400 : 1e6),
        );
        for (let i = 0; i < 12; i++) {
          const text = randomText(random);
          const expected = threads.match(text, 0, freeAccount) !== null;
          expect(test(text), `${inline}${pattern} on ${JSON.stringify(text)}`).toBe(expected);
        }
      }
    },
  );

  it("scans a text in about its length, for any pattern", () => {
    let units = 0;
    const account = {
      burn: (more: number) => {
        units += more;
      },
    };
    const test = compileTextTest("(a{1,40}){1,40}b", account);
    expect(test("a".repeat(2_000))).toBe(false);
    const first = units;
    expect(test("a".repeat(100_000))).toBe(false);
    expect(units - first).toBeLessThan(100_000);
    expect(test(`${"a".repeat(100_000)}b`)).toBe(true);
  });

  it("rethrows the error of the work account", () => {
    const account = {
      burn: () => {
        throw new EngineError("work-limit", "enough");
      },
    };
    expect(() => compileTextTest("a+b", account)("aaa")).toThrow("enough");
  });

  it("releases the states of finished patterns, so that the next has space", () => {
    const space = new AutomatonSpace(100_000);
    const texts = Array.from({ length: 60 }, (_, i) => "a".repeat(20 + i));
    let units = 0;
    const account = {
      burn: (more: number) => {
        units += more;
      },
    };
    const costs = Array.from({ length: 20 }, (_, i) => {
      const before = units;
      const test = compileTextTest(`(a{1,30}){1,30}b${i}`, account, space);
      for (let round = 0; round < 20; round++) for (const text of texts) test(text);
      return units - before;
    });
    expect(costs[19]).toBeLessThan(1.2 * (costs[0] as number));
  });

  it("caches no more states than fit into its space", () => {
    const space = new AutomatonSpace(20_000);
    const test = compileTextTest("(a|b)*a(a|b){14}c", freeAccount, space);
    const random = new SeededRandom(3);
    let text = "";
    for (let i = 0; i < 20_000; i++) text += random.below(2) === 0 ? "a" : "b";
    expect(test(text)).toBe(false);
    expect(space.numbers).toBeLessThan(25_000);
    expect(test(`${text}abbbbbbbbbbbbbbc`)).toBe(true);
  });
});
