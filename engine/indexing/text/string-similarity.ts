/**
 * Returns the similarity of a term of an index to a requested text; 1 is the maximum. Both are bytes of UTF-8.
 *
 * The measures equal those of RavenDB 7.2.7 (its engine Corax), measured term by term, including their peculiarities:
 * the last byte of the term is ignored, so that a text is most similar to a term with one more letter, and `n-gram`
 * compares lengths only. Numbers are of single precision, because the limit that they are compared with is.
 */
export type StringDistance = "levenshtein" | "jaro-winkler" | "n-gram";

/** Texts are compared up to this many bytes. */
export const comparedBytesMax = 256;

const winklerMin = 0.7;

/** Returns the similarity of a term to the text. Cost: the product of their lengths. */
export function similarityOf(term: Buffer, text: Buffer, distance: StringDistance): number {
  const left = term.subarray(0, Math.max(0, Math.min(term.length - 1, comparedBytesMax)));
  const right = text.subarray(0, comparedBytesMax);
  const longest = Math.max(left.length, right.length);
  if (longest === 0) return 1;
  if (distance === "jaro-winkler") return jaroWinkler(left, right);
  const edits =
    distance === "n-gram"
      ? longest - Math.min(left.length, right.length)
      : levenshtein(left, right);
  return Math.fround(1 - Math.fround(edits / longest));
}

/** Units of a text: bytes, or UTF-16. */
type Units = Uint8Array | Uint16Array;

/** Returns the number of units inserted, removed and replaced. */
export function levenshtein(left: Units, right: Units): number {
  let above = new Uint16Array(right.length + 1).map((_, i) => i);
  let row = new Uint16Array(right.length + 1);
  for (let i = 1; i <= left.length; i++) {
    row[0] = i;
    for (let k = 1; k <= right.length; k++) {
      const replaced = (above[k - 1] as number) + (left[i - 1] === right[k - 1] ? 0 : 1);
      row[k] = Math.min(replaced, (above[k] as number) + 1, (row[k - 1] as number) + 1);
    }
    [above, row] = [row, above];
  }
  return above[right.length] as number;
}

/** As in Lucene: the common beginning is not limited to four, but weighs less in long texts. */
export function jaroWinkler(left: Units, right: Units): number {
  const [shorter, longer] = left.length <= right.length ? [left, right] : [right, left];
  const reach = Math.max(0, Math.floor(longer.length / 2) - 1);
  const isTaken = new Uint8Array(longer.length);
  const matched: number[] = [];
  for (let i = 0; i < shorter.length; i++) {
    const to = Math.min(longer.length - 1, i + reach);
    for (let k = Math.max(0, i - reach); k <= to; k++) {
      if (isTaken[k] === 1 || shorter[i] !== longer[k]) continue;
      isTaken[k] = 1;
      matched.push(shorter[i] as number);
      break;
    }
  }
  if (matched.length === 0) return 0;
  let displaced = 0;
  let at = 0;
  for (let k = 0; k < longer.length; k++) {
    if (isTaken[k] === 1 && matched[at++] !== longer[k]) displaced++;
  }
  const count = matched.length;
  const swaps = Math.floor(displaced / 2);
  const jaro = (count / left.length + count / right.length + (count - swaps) / count) / 3;
  if (jaro < winklerMin) return Math.fround(jaro);
  let common = 0;
  while (common < shorter.length && shorter[common] === longer[common]) common++;
  return Math.fround(jaro + Math.min(0.1, 1 / longer.length) * common * (1 - jaro));
}
