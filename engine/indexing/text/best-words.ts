/**
 * The entries of a full-text field that score best for some words, and how many have any or all of them, without
 * scoring each. Words are processed from the rarest, which has the highest weight: once the remaining words cannot lift
 * an entry among the best, entries that have only these words are counted but not scored.
 *
 * Invariants:
 * - Scores are computed as for a single entry (word-weights.ts), in the order of the words, so that they are the same to
 *   the last bit.
 *
 * Hot: bench/text.bench.ts.
 */
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import { BestEntries } from "../columns/best-entries.ts";
import { countBits } from "../columns/entry-set.ts";
import type { EntryView } from "../columns/entry-view.ts";
import { type PostingReader, peakMax, setBits } from "../columns/term-postings.ts";
import type { TextColumn } from "./text-column.ts";
import type { WeightOf } from "./word-weights.ts";

/** A word that contributes to scores. A repeated word counts again. */
export interface WeighedWord {
  readonly term: number;
  /** Positive, and the greater, the greater the frequency. */
  readonly weightOf: WeightOf;
}

/** The best entries, best first, and how many are found. */
export interface BestFound {
  readonly entries: Uint32Array;
  readonly total: number;
}

/** Limits of scores are computed in another order than scores, and are rounded otherwise. */
const roundedUp = 1 + 1e-9;
/** Bits of a set that are joined or counted per unit. */
const bitsPerUnit = 1024;
/** Numbers of occurrences from which on limits are not told apart. */
const frequencyMax = 32;

/** A distinct term of the words. */
interface QueryTerm {
  readonly term: number;
  readonly reader: PostingReader;
  /** The entries that have it, as bits; null: they are few. */
  bits: Uint32Array | null;
  /** By number of occurrences: no entry scores more for it; the last one is for as many as any entry has. */
  readonly limits: Float64Array;
  /** How often the entry that is scored has it. */
  frequency: number;
}

export class BestWords {
  readonly #column: TextColumn;
  readonly #view: EntryView;
  readonly #budget: WorkBudget;
  /** In the given order, with the position of each word's term. */
  readonly #words: readonly { readonly weightOf: WeightOf; readonly place: number }[];
  /** The rarest first. */
  readonly #terms: readonly QueryTerm[];
  readonly #best: BestEntries;

  /** `words`: at least one. `count`: at least one. */
  constructor(
    column: TextColumn,
    view: EntryView,
    words: readonly WeighedWord[],
    count: number,
    budget: WorkBudget,
  ) {
    const { lives, peaks } = column.postings;
    this.#column = column;
    this.#view = view;
    this.#budget = budget;
    const distinct = [...new Set(words.map(({ term }) => term))];
    distinct.sort((a, b) => (lives[a] as number) - (lives[b] as number));
    this.#words = words.map(({ term, weightOf }) => ({ weightOf, place: distinct.indexOf(term) }));
    this.#terms = distinct.map((term) => ({
      term,
      reader: column.reader(),
      bits: null,
      limits: limitsOf(term, words, peaks[term] ?? 0),
      frequency: 0,
    }));
    this.#best = new BestEntries(count, view.places);
  }

  /** Of the entries with any of the words. */
  *ofAny(): Work<BestFound> {
    yield* this.#readBits();
    const found = new Uint32Array((this.#view.size + 31) >>> 5);
    this.#budget.hold(found.byteLength);
    for (let place = 0; place < this.#terms.length; place++) {
      const rest = this.#limitOf(place + 1);
      if (this.#limitOf(place) < this.#best.threshold) {
        yield* this.#addBits(place, found);
      } else yield* this.#scoreTerm(place, rest, found);
    }
    const total = this.#countLive(found);
    this.#budget.release(found.byteLength);
    return { entries: this.#best.take(), total };
  }

  /** Of the entries with all of the words. */
  *ofAll(): Work<BestFound> {
    yield* this.#readBits();
    const rest = this.#limitOf(1);
    const bits = this.#terms.map((one) => one.bits);
    const areAll = bits.every((one) => one !== null);
    let total = areAll ? this.#countCommon(bits as Uint32Array[]) : 0;
    this.#begin(-1);
    const [first] = this.#terms as [QueryTerm];
    while (first.reader.read()) {
      const isBest = !(limitIn(first) + rest < this.#best.threshold);
      if (isBest || !areAll) {
        const common = this.#scoreCommon(first, rest);
        if (!areAll) total += common;
      }
      this.#budget.spend(first.reader.count * this.#terms.length);
      if (this.#budget.isDue) yield;
    }
    return { entries: this.#best.take(), total };
  }

  /** No entry scores more for the terms from a position on. */
  #limitOf(place: number): number {
    let sum = 0;
    for (let i = place; i < this.#terms.length; i++) {
      sum += this.#terms[i]?.limits[frequencyMax] as number;
    }
    return sum;
  }

  *#readBits(): Work<void> {
    for (const one of this.#terms) one.bits = yield* this.#column.bitsOf(one.term, this.#budget);
  }

  /** Moves all terms before their first entry, except for a term that is there already. */
  #begin(but: number): void {
    for (let i = 0; i < this.#terms.length; i++) {
      const { reader, term } = this.#terms[i] as QueryTerm;
      if (i !== but) reader.begin(term);
    }
  }

  /** Scores the entries of a term, except entries that also have a preceding term. `found`: receives its entries. */
  *#scoreTerm(place: number, rest: number, found: Uint32Array): Work<void> {
    const one = this.#terms[place] as QueryTerm;
    const { reader, bits } = one;
    if (bits !== null) yield* this.#addBits(place, found);
    this.#begin(-1);
    while (reader.read()) {
      if (bits === null) setBits(found, reader.entries, reader.count);
      if (!(limitIn(one) + rest < this.#best.threshold)) this.#scoreSlice(place, rest);
      this.#budget.spend(reader.count * this.#terms.length);
      if (this.#budget.isDue) yield;
    }
  }

  #scoreSlice(place: number, rest: number): void {
    const { size } = this.#view;
    const { reader, limits } = this.#terms[place] as QueryTerm;
    const { entries, frequencies, count } = reader;
    let { threshold } = this.#best;
    for (let at = 0; at < count; at++) {
      const entry = entries[at] as number;
      if (entry >= size) break;
      const frequency = frequencies[at] as number;
      const limit = limits[Math.min(frequency, frequencyMax)] as number;
      if (limit + rest < threshold || limit + this.#limitOfHad(entry, place) < threshold) continue;
      if (limit + this.#limitAt(entry, place) < threshold || !this.#view.isLive(entry)) continue;
      if (!this.#isNew(entry, place)) continue;
      if (limit + this.#limitAfter(place) < threshold) continue;
      (this.#terms[place] as QueryTerm).frequency = frequency;
      this.#offer(entry);
      ({ threshold } = this.#best);
    }
  }

  /** No entry that has the terms after a position as often as the current one scores more for these. */
  #limitAfter(place: number): number {
    let sum = 0;
    for (let i = place + 1; i < this.#terms.length; i++) {
      const { frequency, limits } = this.#terms[i] as QueryTerm;
      if (frequency > 0) sum += limits[Math.min(frequency, frequencyMax)] as number;
    }
    return sum;
  }

  /** Returns the entry, or one near it, scores no more for the terms after a position. */
  #limitAt(entry: number, place: number): number {
    let sum = 0;
    for (let i = place + 1; i < this.#terms.length; i++) {
      const one = this.#terms[i] as QueryTerm;
      if (mayHave(one, entry) && one.reader.reach(entry)) sum += limitIn(one);
    }
    return sum;
  }

  /** As `#limitAt`, without looking at how often the entry has them. */
  #limitOfHad(entry: number, place: number): number {
    let sum = 0;
    for (let i = place + 1; i < this.#terms.length; i++) {
      const one = this.#terms[i] as QueryTerm;
      if (mayHave(one, entry)) sum += one.limits[frequencyMax] as number;
    }
    return sum;
  }

  /** Returns whether an entry has no term before a position; reads its frequencies of the terms after it. */
  #isNew(entry: number, place: number): boolean {
    for (let i = 0; i < this.#terms.length; i++) {
      const one = this.#terms[i] as QueryTerm;
      if (i !== place) one.frequency = mayHave(one, entry) ? one.reader.seek(entry) : 0;
      if (i < place && one.frequency > 0) return false;
    }
    return true;
  }

  /** Offers the entries of a slice that have all other terms. @returns their number */
  #scoreCommon({ reader, limits }: QueryTerm, rest: number): number {
    const { size } = this.#view;
    const { entries, frequencies, count } = reader;
    let common = 0;
    for (let at = 0; at < count; at++) {
      const entry = entries[at] as number;
      if (entry >= size) break;
      if (!this.#hasOthers(entry) || !this.#view.isLive(entry)) continue;
      common++;
      const frequency = frequencies[at] as number;
      const limit = limits[Math.min(frequency, frequencyMax)] as number;
      const { threshold } = this.#best;
      if (limit + rest < threshold || limit + this.#limitAt(entry, 0) < threshold) continue;
      this.#isNew(entry, 0);
      (this.#terms[0] as QueryTerm).frequency = frequency;
      this.#offer(entry);
    }
    return common;
  }

  /** Returns whether an entry has all terms but the first. */
  #hasOthers(entry: number): boolean {
    for (let i = 1; i < this.#terms.length; i++) {
      const one = this.#terms[i] as QueryTerm;
      const isFound = one.bits === null ? one.reader.seek(entry) > 0 : mayHave(one, entry);
      if (!isFound) return false;
    }
    return true;
  }

  #offer(entry: number): void {
    let score = 0;
    for (let i = 0; i < this.#words.length; i++) {
      const { weightOf, place } = this.#words[i] as { weightOf: WeightOf; place: number };
      const { frequency } = this.#terms[place] as QueryTerm;
      if (frequency > 0) score += weightOf(frequency);
    }
    this.#best.offer(entry, score);
  }

  /** Adds the entries of a term, dead ones too. */
  *#addBits(place: number, found: Uint32Array): Work<void> {
    const { bits, term } = this.#terms[place] as QueryTerm;
    if (bits === null) {
      for (const reader = this.#column.reader().begin(term); reader.readBits(found); ) {
        this.#budget.spend(reader.count);
        if (this.#budget.isDue) yield;
      }
      return;
    }
    for (let i = 0; i < found.length; i++) found[i] = (found[i] as number) | (bits[i] as number);
    this.#budget.spend(Math.ceil((found.length * 32) / bitsPerUnit));
  }

  #countLive(found: Uint32Array): number {
    const { live } = this.#view;
    for (let i = 0; i < found.length; i++) found[i] = (found[i] as number) & (live[i] as number);
    this.#budget.spend(Math.ceil((found.length * 32) / bitsPerUnit));
    return countBits(found);
  }

  #countCommon(sets: readonly Uint32Array[]): number {
    const common = new Uint32Array((this.#view.size + 31) >>> 5).fill(0xffff_ffff);
    for (const bits of sets) {
      for (let i = 0; i < common.length; i++) {
        common[i] = (common[i] as number) & (bits[i] as number);
      }
    }
    this.#budget.spend(Math.ceil((common.length * 32 * sets.length) / bitsPerUnit));
    return this.#countLive(common);
  }
}

/** `peak`: how often an entry has the term at most. */
function limitsOf(term: number, words: readonly WeighedWord[], peak: number): Float64Array {
  const own = words.filter((word) => word.term === term);
  const most = peak === peakMax ? Number.MAX_SAFE_INTEGER : peak;
  return Float64Array.from({ length: frequencyMax + 1 }, (_, frequency) => {
    const occurrences = frequency === frequencyMax ? most : frequency;
    return own.reduce((sum, { weightOf }) => sum + weightOf(occurrences), 0) * roundedUp;
  });
}

/** Returns whether an entry may have the term, according to the bitmap. */
function mayHave({ bits }: QueryTerm, entry: number): boolean {
  return bits === null || ((bits[entry >>> 5] as number) & (1 << (entry & 31))) !== 0;
}

/** No entry of the slice that is being read scores more for its term. */
function limitIn({ reader, limits }: QueryTerm): number {
  return limits[Math.min(reader.frequencyMax, frequencyMax)] as number;
}
