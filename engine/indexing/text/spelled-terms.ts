/**
 * Suggestions of an index that is made for RavenDB's engine Lucene: the terms that are spelled like a text but not that
 * text itself, most similar first, as Lucene's SpellChecker finds them: only terms of three characters or more count
 * that share a sequence of characters with the text, of a size that depends on the lengths. Measured on RavenDB 7.2.7;
 * its Jaro-Winkler similarity differs where there is little in common.
 */
import type { Work } from "../../base/scheduling/work-budget.ts";
import type { FieldColumn } from "../columns/field-column.ts";
import { dateKind, firstTerm, numberKind, textKind } from "../columns/term-dictionary.ts";
import type { IndexReader } from "../index-reader.ts";
import type { Closeness } from "./close-terms.ts";
import { comparedBytesMax, jaroWinkler, levenshtein } from "./string-similarity.ts";

/** Bytes of terms scanned per unit, and cells of a comparison. */
const bytesPerUnit = 2;
const cellsPerUnit = 4;
const foundBytes = 64;
/** Shorter terms are never suggested. */
const lengthMin = 3;

interface Spelled {
  readonly text: string;
  readonly similarity: number;
  readonly frequency: number;
}

/** @returns terms, most similar first. `isByPopularity`: not only the text itself when it is a term */
export function* spelledTerms(
  reader: IndexReader,
  column: FieldColumn,
  text: string,
  { distance, accuracy, countMax }: Closeness,
  isByPopularity: boolean,
): Work<string[]> {
  const { budget } = reader;
  const { dictionary } = column;
  const sought = text.slice(0, comparedBytesMax);
  const own = ownTerm(column, text);
  if (!isByPopularity && own >= 0 && text.length >= lengthMin && reader.isUsed(column, own)) {
    return [text];
  }
  const sequences = new Sequences(sought);
  const found: Spelled[] = [];
  const heldBefore = budget.heldBytes;
  const size = dictionary.count;
  for (let term = firstTerm; term < size; term++) {
    budget.spend(1 + Math.ceil(dictionary.lengthOf(term) / bytesPerUnit));
    if (budget.isDue) yield;
    if (term === own) continue;
    const known = dictionary.textOf(term);
    if (known.length < lengthMin) continue;
    const compared = known.slice(0, comparedBytesMax);
    if (!sequences.isSharedBy(compared)) continue;
    budget.spend(Math.ceil((compared.length * sought.length) / cellsPerUnit));
    const similarity = similarityOf(compared, sought, distance);
    if (similarity < accuracy || !reader.isUsed(column, term)) continue;
    budget.hold(foundBytes + 2 * known.length);
    found.push({ text: known, similarity, frequency: column.counts[term] as number });
  }
  found.sort(
    (a, b) =>
      b.similarity - a.similarity || b.frequency - a.frequency || (a.text < b.text ? -1 : 1),
  );
  budget.release(budget.heldBytes - heldBefore);
  return [...new Set(found.map((one) => one.text))].slice(0, countMax);
}

/** Returns the term with this text; -1: none. */
function ownTerm({ dictionary }: FieldColumn, text: string): number {
  for (const kind of [textKind, numberKind, dateKind]) {
    const term = dictionary.findText(kind, text);
    if (term >= 0) return term;
  }
  return -1;
}

/** The sequences of characters of a text, of the sizes that its length makes count. */
class Sequences {
  readonly #sizes: readonly [min: number, max: number];
  readonly #all = new Set<string>();

  constructor(text: string) {
    this.#sizes = sizesFor(text.length);
    const [min, max] = this.#sizes;
    for (let size = min; size <= max; size++) {
      for (let at = 0; at + size <= text.length; at++) this.#all.add(text.slice(at, at + size));
    }
  }

  /** Returns whether the text has one of them, of a size that counts for both. */
  isSharedBy(text: string): boolean {
    const [min, max] = sizesFor(text.length);
    const to = Math.min(max, this.#sizes[1]);
    for (let size = Math.max(min, this.#sizes[0]); size <= to; size++) {
      for (let at = 0; at + size <= text.length; at++) {
        if (this.#all.has(text.slice(at, at + size))) return true;
      }
    }
    return false;
  }
}

function sizesFor(length: number): [number, number] {
  if (length > 5) return [3, 4];
  return length === 5 ? [2, 3] : [1, 2];
}

function similarityOf(term: string, text: string, distance: Closeness["distance"]): number {
  const left = Buffer.from(term, "utf16le");
  const right = Buffer.from(text, "utf16le");
  const a = new Uint16Array(left.buffer.slice(left.byteOffset, left.byteOffset + left.length));
  const b = new Uint16Array(right.buffer.slice(right.byteOffset, right.byteOffset + right.length));
  const longest = Math.max(a.length, b.length);
  if (distance === "jaro-winkler") return jaroWinkler(a, b);
  if (distance === "levenshtein") return Math.fround(1 - Math.fround(levenshtein(a, b) / longest));
  return sequenceSimilarity(a, b);
}

/** Returns the n-gram distance of Kondrak, with pairs. */
function sequenceSimilarity(a: Uint16Array, b: Uint16Array): number {
  const [n, m] = [a.length, b.length];
  if (n === 0 || m === 0) return n === m ? 1 : 0;
  if (n < 2 || m < 2) {
    let equal = 0;
    for (let i = 0; i < Math.min(n, m); i++) if (a[i] === b[i]) equal++;
    return equal / Math.max(n, m);
  }
  let above = Float64Array.from({ length: n + 1 }, (_, i) => i);
  let row = new Float64Array(n + 1);
  for (let j = 1; j <= m; j++) {
    row[0] = j;
    for (let i = 1; i <= n; i++) {
      // No character precedes the first, and two missing characters count as equal.
      const differs = Number(a[i - 1] !== b[j - 1]);
      const isStart = i === 1 && j === 1;
      const cost = isStart ? differs : (differs + Number(a[i - 2] !== b[j - 2])) / 2;
      row[i] = Math.min(
        (row[i - 1] as number) + 1,
        (above[i] as number) + 1,
        (above[i - 1] as number) + cost,
      );
    }
    [above, row] = [row, above];
  }
  return Math.fround(1 - (above[n] as number) / Math.max(n, m));
}
