/** What a word weighs in an entry (BM25): its rarity in the index, how often the entry has it, and how long the entry is. */

/** BM25's usual constants k1 and b: saturation of the term frequency, and weight of the length. */
const saturation = 1.2;
const lengthShare = 0.75;

/** No word weighs as much as this times its weight. */
export const weightLimit = saturation + 1;

/** The weight of a condition that `count` of `total` entries match. */
export function rarity(total: number, count: number): number {
  return Math.log(1 + (total - count + 0.5) / (count + 0.5));
}

/** The score of an entry of `length` words that has a word `count` times, at least once. */
export function wordScore(
  weight: number,
  count: number,
  length: number,
  averageLength: number,
): number {
  const norm = saturation * (1 - lengthShare + (lengthShare * length) / averageLength);
  return (weight * count * (saturation + 1)) / (count + norm);
}
