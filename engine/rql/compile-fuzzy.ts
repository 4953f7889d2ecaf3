/**
 * fuzzy(): similarity of terms as Lucene computes it: 1 - edits / the shorter length, which must exceed the requested
 * similarity.
 */

import type { WorkBudget } from "../base/work-budget.ts";

/** Longer terms are only tested for equality. */
const lengthMax = 256;

/** A test whether a term's similarity to `text` exceeds `similarity`, from 0 to 1. */
export function fuzzyTest(
  text: string,
  similarity: number,
  budget: WorkBudget,
): (term: string) => boolean {
  const sought = text.toLowerCase();
  return (term) => {
    if (term === sought) return true;
    if (term.length > lengthMax || sought.length > lengthMax) return false;
    const shorter = Math.min(term.length, sought.length);
    if (shorter === 0) return false;
    // The difference in length is a lower bound of the edits.
    const longer = Math.max(term.length, sought.length);
    if (1 - (longer - shorter) / shorter <= similarity) return false;
    budget.spend(shorter * longer);
    return 1 - editDistance(term, sought) / shorter > similarity;
  };
}

/** Levenshtein distance: insertions, deletions and replacements of UTF-16 units. Cost: product of the lengths. */
export function editDistance(left: string, right: string): number {
  let previous = Array.from({ length: right.length + 1 }, (_, k) => k);
  for (let i = 1; i <= left.length; i++) {
    const current = [i];
    for (let k = 1; k <= right.length; k++) {
      const replaced = (previous[k - 1] as number) + (left[i - 1] === right[k - 1] ? 0 : 1);
      const inserted = (current[k - 1] as number) + 1;
      current.push(Math.min(replaced, inserted, (previous[k] as number) + 1));
    }
    previous = current;
  }
  return previous[right.length] as number;
}
