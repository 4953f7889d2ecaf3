/**
 * Finds terms of a field whose spelling is close to a text: terms that share a pair of neighboring bytes with it, most
 * pairs first, and are similar enough (string-similarity.ts). The terms are scanned; no auxiliary structure is stored.
 *
 * The order follows RavenDB 7.2.7 where it defines one, as does the rule that a text of one byte has no close terms;
 * terms with equally many pairs are ordered by the first shared pair in the text, by its position in the term, and by
 * the term.
 */
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import type { FieldColumn } from "../columns/field-column.ts";
import { slicedSort } from "../columns/sliced-sort.ts";
import { firstTerm, pairsMax, pairsOfRank } from "../columns/term-dictionary.ts";
import type { IndexReader } from "../index-reader.ts";
import { comparedBytesMax, type StringDistance, similarityOf } from "./string-similarity.ts";

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
/** Bytes for each candidate: its number, its rank, and its position while it is sorted. */
const candidateBytes = 20;
/** Candidates between two checks of the budget. */
const stride = 8192;
const candidatesMin = 64;

/** @returns terms, best first, each of which occurs in an entry visible to the reader */
export function* closeTerms(
  reader: IndexReader,
  column: FieldColumn,
  text: string,
  { distance, accuracy, countMax }: Closeness,
): Work<string[]> {
  const { budget } = reader;
  const sought = Buffer.from(text);
  const heldBefore = budget.heldBytes;
  const candidates = yield* candidatesOf(column, sought, budget);
  const found: string[] = [];
  // Groups with fewer pairs are sorted only if groups with more pairs were not enough.
  for (const group of yield* byPairs(candidates, budget)) {
    for (const term of yield* sortedGroup(group, candidates, column, budget)) {
      const known = column.dictionary.textOf(term);
      const bytes = Buffer.from(known);
      const cells =
        Math.min(bytes.length, comparedBytesMax) * Math.min(sought.length, comparedBytesMax);
      budget.spend(1 + Math.ceil(cells / cellsPerUnit));
      const isClose = similarityOf(bytes, sought, distance) >= Math.fround(accuracy);
      if (isClose && !found.includes(known) && reader.isUsed(column, term)) found.push(known);
      if (found.length >= countMax) break;
      if (budget.isDue) yield;
    }
    if (found.length >= countMax) break;
  }
  budget.release(budget.heldBytes - heldBefore);
  return found.slice(0, countMax);
}

/** Returns the positions of candidates by the number of pairs that they share, most first. */
function* byPairs({ ranks }: Candidates, budget: WorkBudget): Work<Uint32Array[]> {
  const sizes = new Uint32Array(pairsMax + 1);
  for (let i = 0; i < ranks.length; i++) {
    const pairs = pairsOfRank(ranks[i] as number);
    sizes[pairs] = (sizes[pairs] as number) + 1;
    if (i % stride !== 0) continue;
    budget.spend(stride);
    if (budget.isDue) yield;
  }
  const groups = Array.from(sizes, (size) => new Uint32Array(size));
  for (let i = ranks.length - 1; i >= 0; i--) {
    const pairs = pairsOfRank(ranks[i] as number);
    const left = (sizes[pairs] as number) - 1;
    sizes[pairs] = left;
    (groups[pairs] as Uint32Array)[left] = i;
    if (i % stride !== 0) continue;
    budget.spend(stride);
    if (budget.isDue) yield;
  }
  return groups.filter((group) => group.length > 0).reverse();
}

/** Returns the terms of a group, in ascending order of their ranks. */
function* sortedGroup(
  group: Uint32Array,
  { terms, ranks }: Candidates,
  { dictionary }: FieldColumn,
  budget: WorkBudget,
): Work<Uint32Array> {
  const compare = (left: number, right: number) => {
    budget.spend(1);
    const difference = (ranks[left] as number) - (ranks[right] as number);
    if (difference !== 0) return difference;
    return dictionary.compareBytes(terms[left] as number, terms[right] as number);
  };
  const sorted = yield* slicedSort(group, compare, budget);
  for (let i = 0; i < sorted.length; i++) sorted[i] = terms[sorted[i] as number] as number;
  return sorted;
}

interface Candidates {
  readonly terms: Uint32Array;
  /** By position: lower is closer. */
  readonly ranks: Float64Array;
}

/** Returns the terms that share a pair of bytes with the text. */
function* candidatesOf(column: FieldColumn, sought: Buffer, budget: WorkBudget): Work<Candidates> {
  const { dictionary } = column;
  /** By pair: its position in the text plus one; 0: it is not in the text. */
  const places = new Uint16Array(pairCount);
  const length = Math.min(sought.length, comparedBytesMax);
  for (let i = length - 2; i >= 0; i--) {
    places[((sought[i] as number) << 8) | (sought[i + 1] as number)] = i + 1;
  }
  let terms = new Uint32Array(candidatesMin);
  let ranks = new Float64Array(candidatesMin);
  let count = 0;
  budget.hold(candidatesMin * candidateBytes);
  const size = dictionary.count;
  for (let term = firstTerm; term < size; term++) {
    budget.spend(1 + Math.ceil(dictionary.lengthOf(term) / bytesPerUnit));
    if (budget.isDue) yield;
    const rank = dictionary.pairRank(term, places);
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
