/**
 * What a condition on one field of one index finds: from terms to entries. Only living entries come out.
 *
 * Knows nothing of queries' syntax: values come as text with what they are. What may look at many terms or entries is
 * work that pauses (work-budget.ts); terms and entries that come meanwhile are not seen.
 *
 * Hot: bench/query.bench.ts.
 */
import type { Work, WorkBudget } from "../work-budget.ts";
import { lowerInvariant, type SearchPiece } from "./analyzer.ts";
import { parseInstant, termsOfInstant } from "./date-terms.ts";
import { EntrySet, EntrySetBuilder, intersection } from "./entry-set.ts";
import type { EntryView } from "./entry-view.ts";
import type { FieldColumn } from "./field-column.ts";
import {
  dateKind,
  firstTerm,
  gapTerm,
  nullTerm,
  numberKind,
  objectTerm,
  textKind,
} from "./term-dictionary.ts";
import type { OrderKind } from "./term-order.ts";
import { containsAny, type WildcardPiece } from "./wildcard-automaton.ts";

/** One end of a range. */
export interface Bound {
  readonly text: string;
  readonly isInclusive: boolean;
}

/** A value of a list, as text; null is null. `isText`: it is text that may be a date, and its case does not count. */
export type ListedValue = { readonly text: string; readonly isText: boolean } | null;

const kinds = [textKind, numberKind, dateKind];
const nullTerms = [nullTerm];
/** What it costs to look up a value of a list. */
const listedUnits = 16;

/** Characters of `yyyy-MM-dd`. */
const dayLength = 10;

/** Values of one term that are taken without a look at the budget. */
const valueStride = 4096;
/** Terms, or values of an entry, between two looks at the budget. */
const stride = 256;

export class FieldSearch {
  readonly #view: EntryView;
  readonly #column: FieldColumn;
  /** Terms of this field keep their case. */
  readonly #isExact: boolean;
  readonly #budget: WorkBudget;

  constructor(view: EntryView, column: FieldColumn, isExact: boolean, budget: WorkBudget) {
    this.#view = view;
    this.#column = column;
    this.#isExact = isExact;
    this.#budget = budget;
  }

  isNull(): Work<EntrySet> {
    return this.#entriesOf([nullTerm]);
  }

  /** Entries with any term, null and objects included. */
  *exists(): Work<EntrySet> {
    const builder = this.#builder();
    const { size } = this.#view;
    for (let from = 0; from < size; from += valueStride) {
      const { starts } = this.#column;
      const to = Math.min(size, from + valueStride);
      for (let entry = from; entry < to; entry++) {
        if (starts[entry] !== starts[entry + 1] && this.#view.isLive(entry)) builder.add(entry);
      }
      this.#budget.spend(to - from);
      if (this.#budget.isDue) yield;
    }
    return builder.finish();
  }

  /** A string: a date is compared as an instant, anything else as a term, whatever it was made from. */
  equalsText(text: string): Work<EntrySet> {
    return this.#entriesOf(this.#termsOfText(text));
  }

  /** Any term of exactly this text. */
  equalsTerm(text: string): Work<EntrySet> {
    return this.#entriesOf(this.#termsOf(text));
  }

  /** Numbers whose whole part is this integer, given by its digits. */
  equalsLong(digits: string): Work<EntrySet> {
    const { dictionary } = this.#column;
    if (!dictionary.hasInexact) {
      return this.#entriesOf([dictionary.findText(numberKind, BigInt(digits).toString())]);
    }
    return this.rangeLong({ text: digits, isInclusive: true }, { text: digits, isInclusive: true });
  }

  /** Numbers whose double is this one. */
  equalsDouble(value: number): Work<EntrySet> {
    const text = value.toString();
    return this.rangeDouble({ text, isInclusive: true }, { text, isInclusive: true });
  }

  /** Entries with one of the values of a list (`isAll`: with every one). */
  *listed(values: Iterable<ListedValue>, isAll: boolean): Work<EntrySet> {
    let all: EntrySet | null = null;
    let builder = this.#builder();
    for (const value of values) {
      for (const term of this.#termsOfListed(value)) {
        if (term >= 0) yield* this.#addEntries(builder, term);
      }
      this.#budget.spend(listedUnits);
      if (this.#budget.isDue) yield;
      if (!isAll) continue;
      const found = builder.finish();
      all = all === null ? found : intersection(all, found);
      if (all.count === 0) return all;
      builder = this.#builder();
    }
    return isAll ? (all ?? EntrySet.empty) : builder.finish();
  }

  /** Numbers by their whole parts. Null: no bound on that side. */
  rangeLong(low: Bound | null, high: Bound | null): Work<EntrySet> {
    const { dictionary } = this.#column;
    const compare = (digits: string) => {
      const sought = BigInt(digits);
      return (term: number) => compareWhole(dictionary.values[term] as number, term, sought);
    };
    const compareWhole = (value: number, term: number, sought: bigint) => {
      const whole = Number.isSafeInteger(value)
        ? BigInt(value)
        : wholePart(dictionary.textOf(term));
      return whole < sought ? -1 : whole > sought ? 1 : 0;
    };
    return this.#range("number", low, high, compare);
  }

  rangeDouble(low: Bound | null, high: Bound | null): Work<EntrySet> {
    const { dictionary } = this.#column;
    const compare = (text: string) => {
      const sought = Number(text);
      return (term: number) => (dictionary.values[term] as number) - sought;
    };
    return this.#range("number", low, high, compare);
  }

  /** Dates as instants when every bound is one, else all terms by their bytes. */
  rangeText(low: Bound | null, high: Bound | null): Work<EntrySet> {
    const isDates = [low, high].every(
      (bound) => bound === null || parseInstant(bound.text) !== null,
    );
    if (isDates) return this.#rangeDates(low, high);
    const { dictionary } = this.#column;
    const compare = (text: string) => {
      const sought = Buffer.from(this.#folded(text));
      return (term: number) => dictionary.compareTo(term, sought);
    };
    return this.#range("bytes", low, high, compare);
  }

  *startsWith(text: string): Work<EntrySet> {
    const builder = this.#builder();
    yield* this.#addPrefixed(builder, text);
    return builder.finish();
  }

  endsWith(text: string): Work<EntrySet> {
    const suffix = Buffer.from(this.#folded(text));
    const { dictionary } = this.#column;
    return this.#scanTerms((term) => dictionary.endsWith(term, suffix));
  }

  /** Entries with a term whose text fulfils one of the tests. Cost: a call of each for each distinct term. */
  matching(...tests: readonly ((text: string) => boolean)[]): Work<EntrySet> {
    const { dictionary } = this.#column;
    const [first] = tests;
    if (tests.length === 1 && first !== undefined) {
      return this.#scanTerms((term) => first(dictionary.textOf(term)));
    }
    return this.#scanTerms((term) => {
      const text = dictionary.textOf(term);
      this.#budget.spend(tests.length);
      return tests.some((test) => test(text));
    });
  }

  /** Full text: entries that any piece (`isAll`: every piece) is found in. */
  *search(pieces: readonly SearchPiece[], isAll: boolean): Work<EntrySet> {
    if (!isAll) return yield* this.#searchAny(pieces);
    let result: EntrySet | null = null;
    for (const piece of pieces) {
      const found = yield* this.#searchAny([piece]);
      result = result === null ? found : intersection(result, found);
      if (result.count === 0) return result;
    }
    return result ?? EntrySet.empty;
  }

  /** Everything that must walk over all terms does so in one walk. */
  *#searchAny(pieces: readonly SearchPiece[]): Work<EntrySet> {
    const builder = this.#builder();
    const walked: WildcardPiece[] = [];
    for (const piece of pieces) {
      if (piece.kind === "words") {
        builder.addSet(yield* this.#searchWords(piece.words));
        this.#budget.spend(this.#view.size >>> 10);
      } else if (!piece.startsOpen && piece.endsOpen) {
        yield* this.#addPrefixed(builder, piece.text);
      } else walked.push(piece);
      if (this.#budget.isDue) yield;
    }
    if (walked.length > 0) {
      const test = yield* containsAny(walked, this.#budget);
      const { dictionary } = this.#column;
      builder.addSet(yield* this.#scanTerms((term) => test(dictionary.textOf(term))));
    }
    return builder.finish();
  }

  #searchWords(words: readonly string[]): Work<EntrySet> {
    return words.length === 1 ? this.equalsTerm(words[0] as string) : this.phrase(words, 0);
  }

  /** Entries with the words one behind the other. With `slop`: moved by at most so much, see `#isNear`. */
  *phrase(words: readonly string[], slop: number): Work<EntrySet> {
    const { dictionary } = this.#column;
    let candidates: EntrySet | null = null;
    const terms: number[] = [];
    const sought = new Map<string, number>();
    for (const word of words) {
      this.#budget.spend(listedUnits);
      if (this.#budget.isDue) yield;
      let term = sought.get(word);
      if (term === undefined) {
        const text = dictionary.findText(textKind, word);
        term = text >= 0 ? text : dictionary.findText(numberKind, word);
        if (term < 0) return EntrySet.empty;
        sought.set(word, term);
        const found: EntrySet = yield* this.#entriesOf([term]);
        candidates = candidates === null ? found : intersection(candidates, found);
        if (candidates.count === 0) return candidates;
      }
      terms.push(term);
    }
    const builder = this.#builder();
    const fallbacks = fallbacksOf(terms);
    for (const entry of (candidates ?? EntrySet.empty).toList()) {
      const isFound =
        slop === 0
          ? yield* this.#hasPhrase(entry, terms, fallbacks)
          : yield* this.#isNear(entry, terms, slop);
      if (isFound) builder.add(entry);
      this.#budget.spend(listedUnits);
      if (this.#budget.isDue) yield;
    }
    return builder.finish();
  }

  /** Each value of the entry is looked at once (Knuth, Morris and Pratt). */
  *#hasPhrase(entry: number, terms: readonly number[], fallbacks: Uint32Array): Work<boolean> {
    const column = this.#column;
    const start = column.starts[entry] as number;
    const end = column.starts[entry + 1] as number;
    let matched = 0;
    for (let at = start; at < end; at++) {
      const term = column.terms[at];
      while (matched > 0 && terms[matched] !== term) matched = fallbacks[matched - 1] as number;
      if (terms[matched] === term) matched++;
      if (matched === terms.length) return true;
      if ((at & (stride - 1)) !== 0) continue;
      this.#budget.spend(stride);
      if (this.#budget.isDue) yield;
    }
    return false;
  }

  /**
   * Is there a place for each word so that they stand as in the phrase, but for moves that together go at most `slop` far?
   * Two neighbours that changed places have moved by 2: as Lucene counts.
   */
  *#isNear(entry: number, terms: readonly number[], slop: number): Work<boolean> {
    const begins: Float64Array[] = [];
    for (const [word, term] of terms.entries()) {
      begins.push(this.#placesOf(entry, term, word));
      if (this.#budget.isDue) yield;
    }
    const isNear = yield* this.#hasNarrowRange(begins, slop);
    for (const places of begins) this.#budget.release(places.byteLength);
    return isNear;
  }

  /** Where the phrase would begin if its word at `position` stood at each of the places of `term`. */
  #placesOf(entry: number, term: number, position: number): Float64Array {
    const column = this.#column;
    const start = column.starts[entry] as number;
    const end = column.starts[entry + 1] as number;
    this.#budget.spend(end - start);
    let count = 0;
    for (let at = start; at < end; at++) if (column.terms[at] === term) count++;
    this.#budget.hold(count * Float64Array.BYTES_PER_ELEMENT);
    const places = new Float64Array(count);
    let i = 0;
    for (let at = start; at < end; at++) {
      if (column.terms[at] === term) places[i++] = at - position;
    }
    return places;
  }

  /** The narrowest range that holds a place of every word: whichever is the lowest moves on. */
  *#hasNarrowRange(begins: readonly Float64Array[], slop: number): Work<boolean> {
    if (begins.some((places) => places.length === 0)) return false;
    const next = new Uint32Array(begins.length);
    for (;;) {
      let lowest = 0;
      let low = Number.POSITIVE_INFINITY;
      let high = Number.NEGATIVE_INFINITY;
      for (let word = 0; word < begins.length; word++) {
        const place = begins[word]?.[next[word] as number] as number; // next is below its length
        if (place < low) {
          low = place;
          lowest = word;
        }
        if (place > high) high = place;
      }
      if (high - low <= slop) return true;
      next[lowest] = (next[lowest] as number) + 1;
      if ((next[lowest] as number) >= (begins[lowest]?.length ?? 0)) return false;
      this.#budget.spend(begins.length);
      if (this.#budget.isDue) yield;
    }
  }

  #rangeDates(low: Bound | null, high: Bound | null): Work<EntrySet> {
    const { dictionary } = this.#column;
    const compare = (text: string) => {
      const sought = parseInstant(text);
      if (sought === null) return () => 1;
      return (term: number) => {
        const value = dictionary.values[term] as number;
        if (value !== sought.milliseconds) return value < sought.milliseconds ? -1 : 1;
        return dictionary.ticksOf(term) - sought.ticks;
      };
    };
    return this.#range("date", low, high, compare);
  }

  *#range(
    kind: OrderKind,
    low: Bound | null,
    high: Bound | null,
    compareWith: (text: string) => (term: number) => number,
  ): Work<EntrySet> {
    const order = yield* this.#column.orderInSlices(kind, this.#budget);
    const { terms } = order;
    let from = 0;
    let to = terms.length;
    if (low !== null) {
      const compare = compareWith(low.text);
      const { isInclusive } = low;
      from = order.lowerBound((term) => compare(term) || (isInclusive ? 0 : -1));
    }
    if (high !== null) {
      const compare = compareWith(high.text);
      const { isInclusive } = high;
      to = order.lowerBound((term) => compare(term) || (isInclusive ? -1 : 0));
    }
    const builder = this.#builder();
    const { firsts } = this.#column;
    for (let i = from; i < to; i++) {
      const rest = this.#addStride(builder, firsts[terms[i] as number] as number);
      if (rest !== 0) yield* this.#addFrom(builder, rest);
      if (((i - from) & (stride - 1)) === 0 && this.#budget.isDue) yield;
    }
    return builder.finish();
  }

  *#addPrefixed(builder: EntrySetBuilder, text: string): Work<void> {
    const prefix = Buffer.from(this.#folded(text));
    if (prefix.length === 0) {
      for (const term of this.#termsOf("")) if (term >= 0) yield* this.#addEntries(builder, term);
      return;
    }
    const { dictionary } = this.#column;
    const order = yield* this.#column.orderInSlices("bytes", this.#budget);
    const { terms } = order;
    const from = order.lowerBound((term) => dictionary.compareTo(term, prefix));
    for (let i = from; i < terms.length; i++) {
      const term = terms[i] as number;
      if (!dictionary.startsWith(term, prefix)) break;
      const rest = this.#addStride(builder, this.#firstOf(term));
      if (rest !== 0) yield* this.#addFrom(builder, rest);
      if (((i - from) & (stride - 1)) === 0 && this.#budget.isDue) yield;
    }
  }

  *#scanTerms(test: (term: number) => boolean): Work<EntrySet> {
    const builder = this.#builder();
    const { dictionary } = this.#column;
    const { count } = dictionary;
    for (let term = firstTerm; term < count; term++) {
      this.#budget.spend(1 + (dictionary.lengthOf(term) >>> 3));
      if (this.#budget.isDue) yield;
      if (!test(term)) continue;
      const rest = this.#addStride(builder, this.#firstOf(term));
      if (rest !== 0) yield* this.#addFrom(builder, rest);
    }
    return builder.finish();
  }

  /** Entries with one of the terms; -1 is none. */
  *#entriesOf(terms: readonly number[]): Work<EntrySet> {
    const builder = this.#builder();
    for (const term of terms) if (term >= 0) yield* this.#addEntries(builder, term);
    return builder.finish();
  }

  #addEntries(builder: EntrySetBuilder, term: number): Work<void> {
    return this.#addFrom(builder, this.#firstOf(term));
  }

  /** Adds the entries of a term from one of its values on. */
  *#addFrom(builder: EntrySetBuilder, first: number): Work<void> {
    let at = first;
    while (at !== 0) {
      at = this.#addStride(builder, at);
      if (at !== 0 && this.#budget.isDue) yield;
    }
  }

  /** The first value of a term, plus one. */
  #firstOf(term: number): number {
    return this.#column.firsts[term] ?? 0;
  }

  /** Adds the entries of some values of a term. @returns the value to go on with, plus one; 0: that was all */
  #addStride(builder: EntrySetBuilder, first: number): number {
    const { nexts, entries } = this.#column;
    const { size, live } = this.#view;
    let at = first;
    let count = 1;
    for (; at !== 0 && count < valueStride; at = nexts[at - 1] as number) {
      const entry = entries[at - 1] as number;
      if (entry >= size) {
        at = 0;
        break;
      }
      if (((live[entry >>> 5] as number) & (1 << (entry & 31))) !== 0) builder.add(entry);
      count++;
    }
    this.#budget.spend(count);
    return at;
  }

  #builder(): EntrySetBuilder {
    return new EntrySetBuilder(this.#view.size);
  }

  #termsOf(text: string): number[] {
    const { dictionary } = this.#column;
    return kinds.map((kind) => dictionary.findText(kind, text));
  }

  #termsOfText(text: string): number[] {
    const instant = parseInstant(text);
    if (instant === null) return this.#termsOf(this.#folded(text));
    const { dictionary } = this.#column;
    return termsOfInstant(instant).map((term) => dictionary.findText(dateKind, term));
  }

  /** A date in a list is the term that it would be indexed as, so that a day is no moment. */
  #termsOfListed(value: ListedValue): readonly number[] {
    if (value === null) return nullTerms;
    const { text, isText } = value;
    const instant = isText ? parseInstant(text) : null;
    if (instant === null) return this.#termsOf(isText ? this.#folded(text) : text);
    const isDay = text.length === dayLength;
    const terms = termsOfInstant(instant).filter((term) => (term.length === dayLength) === isDay);
    const { dictionary } = this.#column;
    return terms.map((term) => dictionary.findText(dateKind, term));
  }

  #folded(text: string): string {
    return this.#isExact ? text : lowerInvariant(text);
  }
}

/** By count of matched words: how many are matched when the next one is another (Knuth, Morris and Pratt). */
function fallbacksOf(terms: readonly number[]): Uint32Array {
  const fallbacks = new Uint32Array(terms.length);
  let matched = 0;
  for (let i = 1; i < terms.length; i++) {
    while (matched > 0 && terms[matched] !== terms[i]) matched = fallbacks[matched - 1] as number;
    if (terms[matched] === terms[i]) matched++;
    fallbacks[i] = matched;
  }
  return fallbacks;
}

/** True for terms that have a text. */
export function isTextTerm(term: number): boolean {
  return term !== gapTerm && term !== nullTerm && term !== objectTerm;
}

/** The whole part of a number's text, digits dropped towards zero. */
function wholePart(text: string): bigint {
  if (/^-?\d+(\.\d*)?$/.test(text)) return BigInt(text.split(".")[0] as string);
  const value = Math.trunc(Number(text));
  return Number.isFinite(value) ? BigInt(value) : 0n;
}
