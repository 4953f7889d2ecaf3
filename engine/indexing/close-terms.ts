/**
 * The terms of a field that are spelled almost like a text: those that share a pair of neighboring bytes with it, most
 * pairs first, and are similar enough (string-similarity.ts). The terms are scanned, and nothing is kept for it.
 *
 * The order, and that a text of one byte has no close terms, are those of RavenDB 7.2.7, where they are defined; equally
 * many pairs are ordered by the first of them in the text, where it is in the term, and the term.
 */
import type { Work, WorkBudget } from "../base/work-budget.ts";
import type { FieldColumn } from "./field-column.ts";
import type { IndexReader } from "./index-reader.ts";
import { slicedSort } from "./sliced-sort.ts";
import { comparedBytesMax, type StringDistance, similarityOf } from "./string-similarity.ts";
import { firstTerm } from "./term-dictionary.ts";

export interface Closeness {
  readonly distance: StringDistance;
  /** The similarity from which on a term is close. */
  readonly accuracy: number;
  /** At most as many terms. */
  readonly countMax: number;
}

const pairCount = 65_536;
/** Bytes of terms scanned per unit. */
const bytesPerUnit = 4;
/** Cells of a comparison per unit. */
const cellsPerUnit = 4;
/** Bytes for each candidate: its number and its rank. */
const candidateBytes = 12;
const candidatesMin = 64;

/** @returns terms, best first, each of which occurs in an entry that the reader sees */
export function* closeTerms(
  reader: IndexReader,
  column: FieldColumn,
  text: string,
  { distance, accuracy, countMax }: Closeness,
): Work<string[]> {
  const { budget } = reader;
  const sought = Buffer.from(text);
  const heldBefore = budget.heldBytes;
  const { terms, ranks } = yield* candidatesOf(column, sought, budget);
  const { dictionary } = column;
  // A rank is in ascending order of closeness.
  const order = new Uint32Array(terms.length);
  for (let i = 0; i < order.length; i++) order[i] = i;
  budget.spend(order.length);
  const compare = (left: number, right: number) => {
    budget.spend(1);
    const difference = (ranks[left] as number) - (ranks[right] as number);
    if (difference !== 0) return difference;
    return dictionary.compareBytes(terms[left] as number, terms[right] as number);
  };
  const sorted = yield* slicedSort(order, compare, budget);
  const limit = Math.fround(accuracy);
  const found: string[] = [];
  for (let i = 0; i < sorted.length && found.length < countMax; i++) {
    const term = terms[sorted[i] as number] as number;
    const bytes = Buffer.from(dictionary.textOf(term));
    const compared = Math.min(bytes.length, comparedBytesMax);
    budget.spend(
      1 + Math.ceil((compared * Math.min(sought.length, comparedBytesMax)) / cellsPerUnit),
    );
    if (similarityOf(bytes, sought, distance) >= limit && reader.isUsed(column, term)) {
      const known = dictionary.textOf(term);
      if (!found.includes(known)) found.push(known);
    }
    if (budget.isDue) yield;
  }
  budget.release(budget.heldBytes - heldBefore);
  return found;
}

interface Candidates {
  readonly terms: Uint32Array;
  /** By position: lower is closer. */
  readonly ranks: Float64Array;
}

/** The terms that share a pair of bytes with the text. */
function* candidatesOf(column: FieldColumn, sought: Buffer, budget: WorkBudget): Work<Candidates> {
  const { dictionary } = column;
  /** By pair: its position in the text plus one; 0: it is not in the text. */
  const places = new Uint16Array(pairCount);
  const length = Math.min(sought.length, comparedBytesMax);
  for (let i = length - 2; i >= 0; i--) {
    places[((sought[i] as number) << 8) | (sought[i + 1] as number)] = i + 1;
  }
  /** By position in the text: the last term that has the pair. */
  const seen = new Uint32Array(comparedBytesMax + 1);
  let terms = new Uint32Array(candidatesMin);
  let ranks = new Float64Array(candidatesMin);
  let count = 0;
  budget.hold(candidatesMin * candidateBytes);
  const size = dictionary.count;
  for (let term = firstTerm; term < size; term++) {
    budget.spend(1 + Math.ceil(dictionary.lengthOf(term) / bytesPerUnit));
    if (budget.isDue) yield;
    const rank = dictionary.pairRank(term, places, seen);
    if (rank < 0) continue;
    if (count === terms.length) {
      budget.hold(count * candidateBytes);
      terms = grown(terms, new Uint32Array(2 * count));
      ranks = grown(ranks, new Float64Array(2 * count));
    }
    terms[count] = term;
    ranks[count++] = rank;
  }
  return { terms: terms.subarray(0, count), ranks: ranks.subarray(0, count) };
}

function grown<Numbers extends Uint32Array | Float64Array>(from: Numbers, to: Numbers): Numbers {
  to.set(from);
  return to;
}
