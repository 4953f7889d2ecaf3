/**
 * What terms and conditions weigh in an entry, as RavenDB 7.2.7 weighs them: measured, of its engine Corax by the boosts that
 * turn an order around, of Lucene by the scores of its replies. How many terms an entry has does not count in either.
 */
import type { FieldColumn } from "./field-column.ts";
import { firstTerm } from "./term-dictionary.ts";

/** A term, or a condition, as a part of a query. */
export interface Weighed {
  /** Entries of the index. */
  readonly total: number;
  /** Entries that have it. */
  readonly found: number;
  readonly boost: number;
}

/** The score of an entry that has a term `frequency` times, at least once. */
export type WeightOf = (frequency: number) => number;

/** Weighs the parts of one query. */
export interface Weigher {
  /** `term`: of `column`; -1: it has no length. */
  termWeight(weighed: Weighed, column: FieldColumn, term: number): WeightOf;
  /** The score for a condition that is of more than one term, or of none. */
  wholeWeight(weighed: Weighed): number;
  /** The factor of all scores of an entry whose map boosted it as a whole; 1: it did not. */
  entryFactor(boost: number): number;
  /** Whether the sum of parts of which an entry may have some is multiplied by the share that it has. */
  readonly countsParts: boolean;
  /** What scores are multiplied by when all parts are weighed. */
  readonly norm: number;
}

export function weigherOf(isLucene: boolean): Weigher {
  return isLucene ? new LuceneWeigher() : new CoraxWeigher();
}

/** Corax: the constants k1 and b of BM25, in which the length is that of the term among the terms of its field. */
const saturation = 2;
const lengthShare = 0.25;
/** Numbers of occurrences up to which Corax tells them all apart. */
const countedMax = 16;
/** Numbers that it tells apart in each range, which ends at four times its start. */
const rangeSteps = 16;

export class CoraxWeigher implements Weigher {
  readonly countsParts = false;
  readonly norm = 1;

  termWeight(weighed: Weighed, column: FieldColumn, term: number): WeightOf {
    return coraxWeight(weighed, shareOfLength(column, term));
  }

  wholeWeight(weighed: Weighed): number {
    return coraxWeight(weighed, 1)(1);
  }

  entryFactor(boost: number): number {
    if (boost === 1) return 1;
    return boost > 0 ? Math.log(1 + boost) : 0;
  }
}

/** `share`: the length of the term, as a multiple of the average. */
function coraxWeight({ total, found, boost }: Weighed, share: number): WeightOf {
  const weight = Math.log(1 + (total - found + 0.5) / (found + 0.5));
  const norm = saturation * (1 - lengthShare + lengthShare * share);
  // A boost counts as more occurrences. One that takes away is a factor: it is no share of a sum.
  if (boost < 0) return (frequency) => (boost * weight * frequency) / (frequency + norm);
  return (frequency) => weight / (1 + norm / (countedAs(frequency) * boost));
}

function shareOfLength({ dictionary }: FieldColumn, term: number): number {
  const bytes = dictionary.startOf(dictionary.count);
  if (term < firstTerm || bytes === 0) return 1;
  return (dictionary.lengthOf(term) * (dictionary.count - firstTerm)) / bytes;
}

/** The number of occurrences that Corax keeps for `frequency`: steps get wider as numbers grow. */
export function countedAs(frequency: number): number {
  if (frequency <= countedMax) return frequency;
  let from = countedMax;
  while (frequency >= 4 * from) from *= 4;
  const step = (3 * from) / rangeSteps;
  return from + Math.floor((frequency - from) / step) * step;
}

/** The formula of Lucene's `DefaultSimilarity`, for fields without norms. */
export class LuceneWeigher implements Weigher {
  readonly countsParts = true;
  #squares = 0;

  get norm(): number {
    return this.#squares > 0 ? 1 / Math.sqrt(this.#squares) : 1;
  }

  termWeight({ total, found, boost }: Weighed): WeightOf {
    const weight = boost * (1 + Math.log(total / (found + 1)));
    this.#squares += weight * weight;
    const unboosted = boost === 0 ? 0 : (weight * weight) / boost;
    return (frequency) => Math.sqrt(frequency) * unboosted;
  }

  wholeWeight({ boost }: Weighed): number {
    this.#squares += boost * boost;
    return boost;
  }

  entryFactor(boost: number): number {
    return boost;
  }
}
