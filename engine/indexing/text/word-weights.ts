/**
 * Weights of terms and conditions in an entry, as RavenDB 7.2.7 computes them: measured, for its engine Corax from the
 * boosts that reverse an order, for Lucene from the scores of its replies. Neither uses the number of terms of an
 * entry.
 */
import type { FieldColumn } from "../columns/field-column.ts";
import { firstTerm } from "../columns/term-dictionary.ts";

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
  /** `term`: a term of `column`; -1: it has no length. */
  termWeight(weighed: Weighed, column: FieldColumn, term: number): WeightOf;
  /** Returns the score for a condition that is of more than one term, or of none. */
  wholeWeight(weighed: Weighed): number;
  /** Returns the factor of all scores of an entry whose map boosted it as a whole; 1: it did not. */
  entryFactor(boost: number): number;
  /** Whether the sum of the weights of matching parts is multiplied by the share of matching parts. */
  readonly countsParts: boolean;
  /** Factor of scores that are not computed from terms. */
  readonly scale: number;
  /** Rounds a result to the precision of the engine's scores. */
  round(score: number): number;
}

/** Corax: the constants k1 and b of BM25; the length is that of the term relative to the terms of its field. */
const saturation = 2;
const lengthShare = 0.25;
/** Number of occurrences up to which Corax distinguishes them. */
const countedMax = 16;
/** Numbers that it tells apart in each range, which ends at four times its start. */
const rangeSteps = 16;

export class CoraxWeigher implements Weigher {
  readonly countsParts = false;
  readonly scale = 1;

  termWeight(weighed: Weighed, column: FieldColumn, term: number): WeightOf {
    return coraxWeight(weighed, shareOfLength(column, term));
  }

  wholeWeight(weighed: Weighed): number {
    return coraxWeight(weighed, 1)(1);
  }

  round(score: number): number {
    return score;
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
  // A boost counts as more occurrences. A negative boost is a factor, and not a share of a sum.
  if (boost < 0) return (frequency) => (boost * weight * frequency) / (frequency + norm);
  return (frequency) => weight / (1 + norm / (countedAs(frequency) * boost));
}

function shareOfLength({ dictionary }: FieldColumn, term: number): number {
  const bytes = dictionary.startOf(dictionary.count);
  if (term < firstTerm || bytes === 0) return 1;
  return (dictionary.lengthOf(term) * (dictionary.count - firstTerm)) / bytes;
}

/** Returns the number of occurrences that Corax keeps for `frequency`: steps get wider as numbers grow. */
export function countedAs(frequency: number): number {
  if (frequency <= countedMax) return frequency;
  let from = countedMax;
  while (frequency >= 4 * from) from *= 4;
  const step = (3 * from) / rangeSteps;
  return from + Math.floor((frequency - from) / step) * step;
}

const { fround } = Math;

/**
 * The formula of Lucene's `DefaultSimilarity`, in its numbers of 32 bits, for fields without norms. The weights of a query
 * are divided by the root of the sum of their squares: a first weigher sums them up, and a second one has their norm.
 */
export class LuceneWeigher implements Weigher {
  readonly countsParts = true;
  readonly scale: number;
  readonly round = fround;
  #squares = 0;

  constructor(scale = 1) {
    this.scale = scale;
  }

  /** The factor of the weights of all parts that were weighed. */
  get norm(): number {
    return this.#squares > 0 ? fround(1 / Math.sqrt(this.#squares)) : 1;
  }

  termWeight({ total, found, boost }: Weighed): WeightOf {
    const value = this.#value(rarityOf(total, found), boost);
    return (frequency) => fround(fround(Math.sqrt(frequency)) * value);
  }

  /** Weighs a phrase of terms; `found`: the numbers of entries with each. */
  phraseWeight(total: number, found: readonly number[], boost: number): WeightOf {
    const rarity = found.reduce((sum, one) => fround(sum + rarityOf(total, one)), 0);
    const value = this.#value(rarity, boost);
    return (frequency) => fround(fround(Math.sqrt(frequency)) * value);
  }

  wholeWeight({ boost }: Weighed): number {
    this.#squares = fround(this.#squares + fround(boost * boost));
    return fround(boost * this.scale);
  }

  entryFactor(boost: number): number {
    return boost;
  }

  #value(rarity: number, boost: number): number {
    const weight = fround(rarity * boost);
    this.#squares = fround(this.#squares + fround(weight * weight));
    return fround(fround(weight * this.scale) * rarity);
  }
}

function rarityOf(total: number, found: number): number {
  return fround(Math.log(total / (found + 1)) + 1);
}
