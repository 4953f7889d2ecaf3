/** fuzzy(): the test on a term's bytes and the test on its text agree with Lucene's similarity. */
import { expect, test } from "vitest";
import { FreeBudget } from "../../../../engine/base/scheduling/work-budget.ts";
import { letterSetOf } from "../../../../engine/indexing/columns/term-dictionary.ts";
import { editDistance, fuzzyTest } from "../../../../engine/queries/conditions/compile-fuzzy.ts";
import { SeededRandom } from "../../../support/random.ts";

/** By definition. */
function distance(left: string, right: string): number {
  if (left === "" || right === "") return left.length + right.length;
  const [a, b] = [left.slice(1), right.slice(1)];
  if (left[0] === right[0]) return distance(a, b);
  return 1 + Math.min(distance(a, b), distance(a, right), distance(left, b));
}

function isSimilar(term: string, sought: string, similarity: number): boolean {
  if (term === sought) return true;
  const shorter = Math.min(term.length, sought.length);
  return shorter > 0 && 1 - distance(term, sought) / shorter > similarity;
}

test("bytes and texts are compared by the definition", () => {
  const random = new SeededRandom(11);
  let refused = 0;
  const word = (letters: string) =>
    Array.from({ length: random.below(7) }, () => letters[random.below(letters.length)]).join("");
  for (let round = 0; round < 3_000; round++) {
    const letters = round % 3 === 0 ? "abé€" : "abc";
    const term = word(letters);
    const sought = word(round % 5 === 0 ? "abé" : "abc");
    const similarity = random.below(12) / 10 - 0.1;
    const expected = isSimilar(term, sought, similarity);
    const created = fuzzyTest(sought, similarity, new FreeBudget());
    expect(created.ofText(term), `${term} ~ ${sought}, ${similarity}`).toBe(expected);
    const bytes = Buffer.from(`x${term}x`);
    const found = created.ofBytes?.(bytes, 1, bytes.length - 1) ?? created.ofText(term);
    expect(found, `bytes of ${term} ~ ${sought}, ${similarity}`).toBe(expected);
    const set = letterSetOf(bytes, 1, bytes.length - 1);
    if (set >= 0 && expected) expect(created.mayPass(set, term.length)).toBe(true);
    const isUnfit =
      Buffer.byteLength(term) < created.bytesMin || Buffer.byteLength(term) > created.bytesMax;
    if (expected) expect(isUnfit, `the length of ${term} ~ ${sought}`).toBe(false);
    if (set >= 0 && !created.mayPass(set, term.length)) refused++;
    expect(editDistance(term, sought)).toBe(distance(term, sought));
  }
  // The character sets show for some terms that they are too far away.
  expect(refused).toBeGreaterThan(300);
});

test("long texts are compared by code units, and very long terms only for equality", () => {
  const sought = "abcdefghijklmnopqrstuvwxyzabcde";
  for (const length of [30, 31, 32]) {
    const text = sought.padEnd(length, "f").slice(0, length);
    const { ofText, ofBytes } = fuzzyTest(text, 0.9, new FreeBudget());
    const near = Buffer.from(`${text.slice(0, 10)}_${text.slice(11)}`);
    expect(ofBytes === null).toBe(length > 31);
    expect(ofBytes?.(near, 0, near.length) ?? ofText(near.toString())).toBe(true);
    const far = Buffer.from(`____${text.slice(4)}`);
    expect(ofBytes?.(far, 0, far.length) ?? ofText(far.toString())).toBe(false);
  }
  const { ofText, ofBytes } = fuzzyTest("a", -300, new FreeBudget());
  for (const [length, isFound] of [
    [256, true],
    [257, false],
  ] as const) {
    const bytes = Buffer.alloc(length, "a");
    expect(ofText(bytes.toString())).toBe(isFound);
    expect(ofBytes?.(bytes, 0, length)).toBe(isFound);
  }
});
