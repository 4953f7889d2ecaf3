/**
 * Evaluates a condition on one field of one index: from terms to entries. Returns only live entries.
 *
 * Knows nothing of query syntax: values arrive as typed text. Operations that may visit many terms or entries are work
 * that pauses (work-budget.ts); terms and entries added in the meantime are not visible.
 *
 * Hot: bench/scan.bench.ts.
 */
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import { dateTicks, type Instant } from "../dates/date-terms.ts";
import { parseMoment, termsOfMoment } from "../dates/moment-terms.ts";
import { lowerInvariant, type SearchPhrase } from "../text/analyzer.ts";
import { TextColumn } from "../text/text-column.ts";
import { containsAny, type WildcardPhrase } from "../text/wildcard-automaton.ts";
import { EntrySet, EntrySetBuilder, intersection } from "./entry-set.ts";
import type { EntryView } from "./entry-view.ts";
import type { FieldColumn } from "./field-column.ts";
import {
  dateKind,
  firstTerm,
  gapTerm,
  type LikelyTest,
  nullTerm,
  numberKind,
  textKind,
} from "./term-dictionary.ts";
import { type OrderKind, wholePart } from "./term-order.ts";
import type { PostingReader } from "./term-postings.ts";

/** One end of a range. */
interface Bound {
  readonly text: string;
  readonly isInclusive: boolean;
}

/** A value of a list, as text; null is null. `isText`: a case-insensitive string, which may be a date. */
export type ListedValue = { readonly text: string; readonly isText: boolean } | null;

/** A test of terms. */
export interface TermTest extends LikelyTest {
  ofText(text: string): boolean;
  /** The same test for `bytes[from, to)`; if it is null or returns null, the text must be tested. */
  readonly ofBytes: ((bytes: Buffer, from: number, to: number) => boolean | null) | null;
}

const nullTerms = [nullTerm];
/** Cost of looking up a value of a list. */
const listedUnits = 16;

/** Maximum number of candidate entries for which a condition checks their values instead of all terms. */
const withinMax = 1024;
/** Number of values of a term per candidate entry from which checking the candidates is faster. */
const withinShare = 4;
/** Maximum share of the candidates' values in all values for which a range checks the candidates one by one. */
const withinOfAllShare = 16;

/** Characters of `yyyy-MM-dd`. */
const dayLength = 10;

/** Postings of one term that are read without checking the budget. */
const valueStride = 4096;
/** Terms, or values of an entry, between two checks of the budget. */
const stride = 256;
/** Bytes of terms that are tested without charging the budget. */
const scannedBytes = 2048;
/** Number of terms rejected by their letters that are not charged to the budget. */
const likelyStride = 4096;
/** Values of a range from which on, and the share of all from which on, all are looked at. */
const wideMin = 4096;
const wideShare = 8;
/** Slices of packed postings that are read without checking the budget. */
const slicesPerStep = 32;

export class FieldSearch {
  readonly #view: EntryView;
  readonly #column: FieldColumn;
  /** Whether the terms of this field are case-sensitive. */
  readonly #isExact: boolean;
  readonly #budget: WorkBudget;
  /** Only these entries matter; null: all do. */
  readonly #within: EntrySet | null;
  /** The same, if they are few. */
  readonly #few: EntrySet | null;
  /** Null: the values of the column are not packed. */
  readonly #packed: TextColumn | null;
  readonly #reader: PostingReader | null;

  /** `within`: results need not have other entries than these. */
  constructor(
    view: EntryView,
    column: FieldColumn,
    isExact: boolean,
    budget: WorkBudget,
    within: EntrySet | null = null,
  ) {
    this.#view = view;
    this.#column = column;
    this.#isExact = isExact;
    this.#budget = budget;
    this.#packed = column instanceof TextColumn ? column : null;
    this.#reader = this.#packed?.reader() ?? null;
    this.#within = within;
    this.#few = within !== null && within.count <= withinMax ? within : null;
  }

  isNull(): Work<EntrySet> {
    return this.#entriesOf([nullTerm]);
  }

  /** Returns entries with any term, including null and objects; a text without words has no term. */
  *exists(): Work<EntrySet> {
    const builder = this.#builder();
    const { size } = this.#view;
    for (let from = 0; from < size; from += valueStride) {
      const to = Math.min(size, from + valueStride);
      for (let entry = from; entry < to; entry++) {
        if (this.#hasTerm(entry) && this.#view.isLive(entry)) builder.add(entry);
      }
      this.#budget.spend(to - from);
      if (this.#budget.isDue) yield;
    }
    return this.#finish(builder);
  }

  #hasTerm(entry: number): boolean {
    if (this.#packed !== null) return this.#packed.termsOf(entry).some((term) => term !== gapTerm);
    const { starts, terms } = this.#column;
    const end = starts[entry + 1] as number;
    for (let at = starts[entry] as number; at < end; at++) if (terms[at] !== gapTerm) return true;
    return false;
  }

  /** Finds a string: a date is compared as an instant, any other text as a term, whatever its original type. */
  equalsText(text: string): Work<EntrySet> {
    return this.#entriesOf(this.#termsOfText(text));
  }

  /** Any term with exactly this text. */
  equalsTerm(text: string): Work<EntrySet> {
    return this.#entriesOf(this.#termsOf(text));
  }

  /** As `equalsText`, where at most some thousand entries have it; null: they may be more. Hot. */
  equalsTextNow(text: string): EntrySet | null {
    return this.#fewOf(this.#termsOfText(text));
  }

  /** As `equalsTerm`, as far as `equalsTextNow`. */
  equalsTermNow(text: string): EntrySet | null {
    return this.#fewOf(this.#termsOf(text));
  }

  /** As `equalsLong`, as far as `equalsTextNow`. */
  equalsLongNow(value: bigint): EntrySet | null {
    const { dictionary } = this.#column;
    if (dictionary.hasInexact || dictionary.hasDates) return null;
    return this.#fewOf([dictionary.findText(numberKind, value.toString())]);
  }

  /** Finds numbers whose whole part is this integer, given as digits; a date is the number of its ticks. */
  equalsLong(digits: string): Work<EntrySet> {
    const { dictionary } = this.#column;
    if (!dictionary.hasInexact && !dictionary.hasDates) {
      return this.#entriesOf([dictionary.findText(numberKind, BigInt(digits).toString())]);
    }
    return this.rangeLong({ text: digits, isInclusive: true }, { text: digits, isInclusive: true });
  }

  /** Numbers whose double is this one. */
  equalsDouble(value: number): Work<EntrySet> {
    const text = value.toString();
    return this.rangeDouble({ text, isInclusive: true }, { text, isInclusive: true });
  }

  /** Returns the entries with any value of a list (`isAll`: with all of them). */
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
      const found = this.#finish(builder);
      all = all === null ? found : intersection(all, found);
      if (all.count === 0) return all;
      builder = this.#builder();
    }
    return isAll ? (all ?? EntrySet.empty) : this.#finish(builder);
  }

  /** Numbers by their whole parts; a date is the number of its ticks. Null: no bound on that side. */
  rangeLong(low: Bound | null, high: Bound | null): Work<EntrySet> {
    return this.#rangeValues(low, high, this.#longs());
  }

  /** As `rangeLong`, by doubles. */
  rangeDouble(low: Bound | null, high: Bound | null): Work<EntrySet> {
    return this.#rangeValues(low, high, this.#doubles());
  }

  /**
   * In a field that has dates, bounds that are dates are compared as instants; numbers are then ticks. All other terms
   * are compared by their bytes.
   */
  rangeText(low: Bound | null, high: Bound | null): Work<EntrySet> {
    return this.#areDates(low, high)
      ? this.#rangeValues(low, high, this.#instants())
      : this.#range("bytes", low, high, this.#texts());
  }

  /** Returns a test for the terms in a range, as the three methods above compare them. `hasDates`: dates are numbers. */
  rangeTest(
    type: RangeType,
    low: Bound | null,
    high: Bound | null,
    hasDates: boolean,
  ): (term: number) => boolean {
    const areDates = type === "text" && this.#areDates(low, high);
    if (type === "text" && !areDates) return this.#rangeTest("bytes", low, high, this.#texts());
    const compareWith =
      type === "long" ? this.#longs() : areDates ? this.#instants() : this.#doubles();
    const ofNumber = this.#rangeTest("number", low, high, (text) => compareWith(text).ofNumber);
    if (!hasDates && !areDates) return ofNumber;
    const ofDate = this.#rangeTest("date", low, high, (text) => compareWith(text).ofDate);
    return (term) => ofNumber(term) || ofDate(term);
  }

  *startsWith(text: string): Work<EntrySet> {
    const builder = this.#builder();
    yield* this.#addPrefixed(builder, text);
    return this.#finish(builder);
  }

  endsWith(text: string): Work<EntrySet> {
    const suffix = Buffer.from(this.#folded(text));
    const { dictionary } = this.#column;
    return this.#scanTerms((term) => dictionary.endsWith(term, suffix));
  }

  /**
   * Returns the entries with a term whose text passes any of the tests. Cost: a call of each for each distinct term.
   */
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

  /** Returns the entries with a term that passes a test. */
  similar(test: TermTest): Work<EntrySet> {
    const { ofText, ofBytes } = test;
    if (ofBytes === null) return this.matching(ofText);
    const { dictionary } = this.#column;
    const passes = (term: number) => {
      const start = dictionary.startOf(term);
      const isFound = ofBytes(dictionary.slab, start, start + dictionary.lengthOf(term));
      return isFound ?? ofText(dictionary.textOf(term));
    };
    return this.#few === null ? this.#scanLikely(test, passes) : this.#scanTerms(passes);
  }

  /** As `#scanTerms`, for tests that reject most terms by their letters. */
  *#scanLikely(test: TermTest, passes: (term: number) => boolean): Work<EntrySet> {
    const { dictionary } = this.#column;
    const builder = this.#builder();
    const { count } = dictionary;
    for (let from = firstTerm; from < count; from += likelyStride) {
      const to = Math.min(count, from + likelyStride);
      this.#budget.spend((to - from) >>> 2);
      for (const term of dictionary.likely(from, to, test)) {
        this.#budget.spend(1 + (dictionary.lengthOf(term) >>> 3));
        const rest = passes(term) ? this.#addTerm(builder, term) : null;
        if (rest !== null) yield* rest;
        if (this.#budget.isDue) yield;
      }
      if (this.#budget.isDue) yield;
    }
    return this.#finish(builder);
  }

  /** Full text: finds entries that match any phrase (`isAll`: every phrase). */
  *search(pieces: readonly SearchPhrase[], isAll: boolean): Work<EntrySet> {
    if (!isAll) return yield* this.#searchAny(pieces);
    let result: EntrySet | null = null;
    for (const piece of pieces) {
      const found = yield* this.#searchAny([piece]);
      result = result === null ? found : intersection(result, found);
      if (result.count === 0) return result;
    }
    return result ?? EntrySet.empty;
  }

  /** Phrases that must scan all terms share one scan. */
  *#searchAny(pieces: readonly SearchPhrase[]): Work<EntrySet> {
    const builder = this.#builder();
    const walked: WildcardPhrase[] = [];
    for (const piece of pieces) {
      if (piece.kind === "words") {
        builder.addSet(yield* this.#searchWords(piece.words));
        this.#budget.spend(this.#view.size >>> 10);
      } else if (piece.text === "") builder.addSet(yield* this.exists());
      else if (!piece.startsOpen && piece.endsOpen) {
        yield* this.#addPrefixed(builder, piece.text);
      } else walked.push(piece);
      if (this.#budget.isDue) yield;
    }
    if (walked.length > 0) {
      const test = yield* containsAny(walked, this.#budget);
      const { dictionary } = this.#column;
      builder.addSet(yield* this.#scanTerms((term) => test(dictionary.textOf(term))));
    }
    return this.#finish(builder);
  }

  #searchWords(words: readonly string[]): Work<EntrySet> {
    return words.length === 1 ? this.equalsTerm(words[0] as string) : this.phrase(words, 0);
  }

  /**
   * Returns the entries with the words in adjacent positions. With `slop`: displaced by at most that distance, see
   * `#isNear`.
   */
  *phrase(words: readonly string[], slop: number): Work<EntrySet> {
    let candidates: EntrySet | null = null;
    const terms: number[] = [];
    const sought = new Map<string, number>();
    for (const word of words) {
      this.#budget.spend(listedUnits);
      if (this.#budget.isDue) yield;
      let term = sought.get(word);
      if (term === undefined) {
        term = this.#termOfWord(word);
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
    return this.#finish(builder);
  }

  /**
   * Returns how often an entry has a phrase, as Lucene 3.0 counts it: where the words are displaced, by the inverse of the
   * displacement plus one.
   */
  *phraseFrequency(entry: number, words: readonly string[], slop: number): Work<number> {
    const begins = words.map((word, at) => this.#placesOf(entry, this.#termOfWord(word), at));
    const isPossible = begins.every((places) => places.length > 0);
    const frequency = isPossible ? yield* this.#frequencyOf(begins, slop) : 0;
    for (const places of begins) this.#budget.release(places.byteLength);
    return frequency;
  }

  /** Returns the frequency of a phrase whose words would begin it at these places. */
  *#frequencyOf(begins: readonly Float64Array[], slop: number): Work<number> {
    const next = new Uint32Array(begins.length);
    const placeOf = (word: number) => begins[word]?.[next[word] as number] ?? Infinity;
    let end = Math.max(...begins.map((_, word) => placeOf(word)));
    let frequency = 0;
    for (;;) {
      const order = begins.map((_, word) => word).sort((a, b) => placeOf(a) - placeOf(b));
      const [lowest = 0, second = 0] = order;
      const limit = placeOf(second);
      let start = placeOf(lowest);
      for (let at = start; at <= limit && at !== Infinity; at = placeOf(lowest)) {
        start = at;
        next[lowest] = (next[lowest] as number) + 1;
      }
      if (end - start <= slop)
        frequency = Math.fround(frequency + Math.fround(1 / (end - start + 1)));
      end = Math.max(end, placeOf(lowest));
      this.#budget.spend(begins.length);
      if (this.#budget.isDue) yield;
      if (end === Infinity) return frequency;
    }
  }

  #termOfWord(word: string): number {
    const { dictionary } = this.#column;
    const text = dictionary.findText(textKind, word);
    return text >= 0 ? text : dictionary.findText(numberKind, word);
  }

  /** Returns the texts of the field that pass a test. Cost: all terms. */
  *termsPassing({ ofText }: TermTest): Work<string[]> {
    const { dictionary } = this.#column;
    const texts: string[] = [];
    for (let term = firstTerm; term < dictionary.count; term++) {
      const text = dictionary.textOf(term);
      if (ofText(text)) texts.push(text);
      this.#budget.spend(1 + (text.length >>> 3));
      if (this.#budget.isDue) yield;
    }
    return texts;
  }

  /** Visits each value of the entry once (Knuth, Morris and Pratt). */
  *#hasPhrase(entry: number, terms: readonly number[], fallbacks: Uint32Array): Work<boolean> {
    let values = this.#column.termsOf(entry);
    // Other queries may reuse the buffer during a pause.
    if (values.length >= stride) values = values.slice();
    let matched = 0;
    for (let at = 0; at < values.length; at++) {
      const term = values[at];
      while (matched > 0 && terms[matched] !== term) matched = fallbacks[matched - 1] as number;
      if (terms[matched] === term) matched++;
      if (matched === terms.length) return true;
      if ((at & (stride - 1)) !== stride - 1) continue;
      this.#budget.spend(stride);
      if (this.#budget.isDue) yield;
    }
    return false;
  }

  /**
   * Returns whether the words can be assigned to positions as in the phrase, with a total displacement of at most
   * `slop`. Two swapped neighbors are displaced by 2, as in Lucene.
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

  /** Returns the starts of the phrase for which its word at `position` falls on an occurrence of `term`. */
  #placesOf(entry: number, term: number, position: number): Float64Array {
    const values = this.#column.termsOf(entry);
    this.#budget.spend(values.length);
    let count = 0;
    for (let at = 0; at < values.length; at++) if (values[at] === term) count++;
    this.#budget.hold(count * Float64Array.BYTES_PER_ELEMENT);
    const places = new Float64Array(count);
    let i = 0;
    for (let at = 0; at < values.length; at++) {
      if (values[at] === term) places[i++] = at - position;
    }
    return places;
  }

  /** Finds the narrowest range that holds an occurrence of every word, by advancing the lowest one. */
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

  #longs(): CompareValues {
    const { dictionary } = this.#column;
    return (digits) => {
      const sought = BigInt(digits);
      // Comparing big integers costs many times as much, and most are small.
      const small = Number(digits);
      const isSmall = Number.isSafeInteger(small);
      return {
        ofNumber: (term) => {
          const value = dictionary.values[term] as number;
          if (!Number.isSafeInteger(value)) {
            return compareBig(wholePart(dictionary.textOf(term)), sought);
          }
          return isSmall ? value - small : compareBig(BigInt(value), sought);
        },
        ofDate: (term) => compareBig(this.#ticksOf(term), sought),
      };
    };
  }

  #doubles(): CompareValues {
    const { dictionary } = this.#column;
    return (text) => {
      const sought = Number(text);
      return {
        ofNumber: (term) => (dictionary.values[term] as number) - sought,
        ofDate: (term) => Number(this.#ticksOf(term)) - sought,
      };
    };
  }

  #texts(): (text: string) => (term: number) => number {
    const { dictionary } = this.#column;
    return (text) => {
      const sought = Buffer.from(this.#folded(text));
      return (term) => dictionary.compareTo(term, sought);
    };
  }

  /** Returns whether the bounds are dates, and the field has some. */
  #areDates(low: Bound | null, high: Bound | null): boolean {
    const isDate = (bound: Bound | null) => bound === null || parseMoment(bound.text) !== null;
    return this.#column.dictionary.hasDates && isDate(low) && isDate(high);
  }

  #instants(): CompareValues {
    const { dictionary } = this.#column;
    return (text) => {
      const { milliseconds, ticks } = parseMoment(text) as Instant; // both bounds are dates
      const sought = dateTicks(milliseconds, ticks);
      return {
        ofNumber: (term) => {
          const value = dictionary.values[term] as number;
          return compareBig(
            Number.isSafeInteger(value) ? BigInt(value) : wholePart(dictionary.textOf(term)),
            sought,
          );
        },
        ofDate: (term) => {
          const value = dictionary.values[term] as number;
          if (value !== milliseconds) return value < milliseconds ? -1 : 1;
          return dictionary.ticksOf(term) - ticks;
        },
      };
    };
  }

  #ticksOf(term: number): bigint {
    const { dictionary } = this.#column;
    return dateTicks(dictionary.values[term] as number, dictionary.ticksOf(term));
  }

  /** Numbers and dates between two bounds. */
  *#rangeValues(low: Bound | null, high: Bound | null, compareWith: CompareValues): Work<EntrySet> {
    const numbers = yield* this.#range("number", low, high, (text) => compareWith(text).ofNumber);
    if (!this.#column.dictionary.hasDates) return numbers;
    const builder = this.#builder();
    builder.addSet(numbers);
    builder.addSet(yield* this.#range("date", low, high, (text) => compareWith(text).ofDate));
    return this.#finish(builder);
  }

  *#range(
    kind: OrderKind,
    low: Bound | null,
    high: Bound | null,
    compareWith: (text: string) => (term: number) => number,
  ): Work<EntrySet> {
    const test = () => this.#rangeTest(kind, low, high, compareWith);
    if (this.#few !== null) return yield* this.#passing(test(), this.#few);
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
    const valuesMin = this.#valuesToPass();
    if (this.#within !== null && (yield* this.#hasValues(terms, from, to, valuesMin))) {
      return yield* this.#passing(test(), this.#within);
    }
    const builder = this.#builder();
    yield* this.#addRun(builder, terms, from, to);
    return this.#finish(builder);
  }

  /** Returns the number of a term's values from which checking the candidate entries is faster. */
  #valuesToPass(): number {
    const { entryCount, valueCount } = this.#column;
    if (this.#within === null) return Number.POSITIVE_INFINITY;
    const values = this.#within.count * (1 + valueCount / Math.max(1, entryCount));
    return values * withinOfAllShare > valueCount ? Number.POSITIVE_INFINITY : values * withinShare;
  }

  /** Adds the entries of the terms [from, to) of an order. */
  *#addRun(builder: EntrySetBuilder, terms: Uint32Array, from: number, to: number): Work<void> {
    if (yield* this.#isWide(terms, from, to)) {
      yield* this.#addWide(builder, terms, from, to);
      return;
    }
    for (let i = from; i < to; i++) {
      const rest = this.#addTerm(builder, terms[i] as number);
      if (rest !== null) yield* rest;
      if (((i - from) & (stride - 1)) === 0 && this.#budget.isDue) yield;
    }
  }

  /** Returns whether scanning all values of the column is faster than reading the values of each term. */
  *#isWide(terms: Uint32Array, from: number, to: number): Work<boolean> {
    const { valueCount, isPacked } = this.#column;
    const valuesMin = Math.max(wideMin, valueCount / wideShare);
    return !isPacked && (yield* this.#hasValues(terms, from, to, valuesMin));
  }

  /** Returns whether the terms [from, to) of an order have so many values. */
  *#hasValues(terms: Uint32Array, from: number, to: number, valuesMin: number): Work<boolean> {
    const { counts, valueCount } = this.#column;
    if (valueCount < valuesMin) return false;
    let values = 0;
    for (let i = from; i < to && values < valuesMin; i++) {
      values += counts[terms[i] as number] ?? 0;
      if (((i - from) & (valueStride - 1)) !== valueStride - 1) continue;
      this.#budget.spend(stride);
      if (this.#budget.isDue) yield;
    }
    return values >= valuesMin;
  }

  /** As `#addRun`, for terms with many values: scans all values of the column in memory order. */
  *#addWide(builder: EntrySetBuilder, terms: Uint32Array, from: number, to: number): Work<void> {
    const column = this.#column;
    const marks = Buffer.alloc(column.dictionary.count);
    this.#budget.hold(marks.length);
    for (let i = from; i < to; i++) {
      marks[terms[i] as number] = 1;
      if (((i - from) & (valueStride - 1)) !== valueStride - 1) continue;
      this.#budget.spend(valueStride >>> 2);
      if (this.#budget.isDue) yield;
    }
    const bits = builder.bits(true) as Uint32Array; // they are many
    const end = column.starts[this.#view.size] as number;
    for (let at = 0; at < end; at += valueStride) {
      addMarked(bits, marks, column, at, Math.min(end, at + valueStride));
      this.#budget.spend(valueStride >>> 2);
      if (this.#budget.isDue) yield;
    }
    this.#budget.release(marks.length);
  }

  #rangeTest(
    kind: OrderKind,
    low: Bound | null,
    high: Bound | null,
    compareWith: (text: string) => (term: number) => number,
  ): (term: number) => boolean {
    const { dictionary } = this.#column;
    const wanted = kind === "number" ? numberKind : dateKind;
    const toLow = low === null ? null : compareWith(low.text);
    const toHigh = high === null ? null : compareWith(high.text);
    const lowMin = low?.isInclusive === true ? 0 : Number.MIN_VALUE;
    const highMax = high?.isInclusive === true ? 0 : -Number.MIN_VALUE;
    return (term) => {
      if (term < firstTerm) return false;
      if (kind !== "bytes" && dictionary.kindOf(term) !== wanted) return false;
      // NaN: both are infinite, and so equal.
      if (toLow !== null && (toLow(term) || 0) < lowMin) return false;
      return toHigh === null || (toHigh(term) || 0) <= highMax;
    };
  }

  /** Returns the candidate entries that have a value whose term passes the test. */
  *#passing(test: (term: number) => boolean, within: EntrySet): Work<EntrySet> {
    const list = within.toList();
    const passing = new Uint32Array(list.length);
    let count = 0;
    for (let i = 0; i < list.length; i++) {
      const entry = list[i] as number; // i < length
      if (this.#packed === null ? this.#passes(test, entry) : this.#passesPacked(test, entry)) {
        passing[count++] = entry;
      }
      if (this.#budget.isDue) yield;
    }
    return EntrySet.ofSorted(passing.subarray(0, count));
  }

  #passes(test: (term: number) => boolean, entry: number): boolean {
    const { starts, terms } = this.#column;
    const end = starts[entry + 1] as number;
    for (let at = starts[entry] as number; at < end; at++) {
      this.#budget.spend(1);
      const term = terms[at] as number; // at < end
      if (term !== gapTerm && test(term)) return true;
    }
    return false;
  }

  #passesPacked(test: (term: number) => boolean, entry: number): boolean {
    const terms = this.#column.termsOf(entry);
    for (let at = 0; at < terms.length; at++) {
      this.#budget.spend(1);
      const term = terms[at] as number; // at < length
      if (term !== gapTerm && test(term)) return true;
    }
    return false;
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
    const to = order.lowerBound((term) =>
      dictionary.startsWith(term, prefix) ? -1 : dictionary.compareTo(term, prefix),
    );
    yield* this.#addRun(builder, terms, from, to);
  }

  *#scanTerms(test: (term: number) => boolean): Work<EntrySet> {
    const { dictionary } = this.#column;
    if (this.#few !== null) {
      const testAll = (term: number) => {
        this.#budget.spend(dictionary.lengthOf(term) >>> 3);
        return term >= firstTerm && test(term);
      };
      return yield* this.#passing(testAll, this.#few);
    }
    const builder = this.#builder();
    const { count } = dictionary;
    for (let from = firstTerm; from < count; ) {
      const { to, found, isDue } = this.#passingTerms(test, from, count);
      for (const term of found) {
        const rest = this.#addTerm(builder, term);
        if (rest !== null) yield* rest;
      }
      this.#budget.spend(to - from + ((dictionary.startOf(to) - dictionary.startOf(from)) >>> 3));
      // `isDue` returns true once per slice: the result of the scan must not be lost.
      if (isDue || this.#budget.isDue) yield;
      from = to;
    }
    return this.#finish(builder);
  }

  /** Returns the terms from a position on that pass a test, up to some bytes of text, or until the time slice ends. */
  #passingTerms(
    test: (term: number) => boolean,
    from: number,
    count: number,
  ): { readonly to: number; readonly found: readonly number[]; readonly isDue: boolean } {
    const { dictionary } = this.#column;
    const end = dictionary.startOf(from) + scannedBytes;
    const found: number[] = [];
    let term = from;
    let isDue = false;
    do {
      if (test(term)) found.push(term);
      term++;
      isDue = this.#budget.isDue;
    } while (!isDue && term < count && term - from < stride && dictionary.startOf(term) < end);
    return { to: term, found, isDue };
  }

  /** Returns the entries with one of the terms; -1: no term. */
  *#entriesOf(terms: readonly number[]): Work<EntrySet> {
    // Packed values of an entry are as many as a text has words.
    const within = this.#packed === null ? this.#within : this.#few;
    if (within !== null) {
      const { counts } = this.#column;
      const values = terms.reduce((sum, term) => sum + (counts[term] ?? 0), 0);
      if (values > within.count * withinShare) {
        return yield* this.#passing((term) => terms.includes(term), within);
      }
    }
    const builder = this.#builder();
    for (const term of terms) {
      if (term < 0) continue;
      if (this.#packed !== null) {
        yield* this.#addEntries(builder, term);
        continue;
      }
      const rest = this.#addTerm(builder, term);
      if (rest !== null) yield* rest;
    }
    return this.#finish(builder);
  }

  /** Returns the entries with one of the terms; null: they have many, or must be unpacked. */
  #fewOf(terms: readonly number[]): EntrySet | null {
    if (this.#packed !== null) return null;
    const { counts } = this.#column;
    let values = 0;
    for (const term of terms) values += term < 0 ? 0 : (counts[term] ?? 0);
    if (values >= valueStride) return null;
    if (values === 0) return EntrySet.empty;
    const builder = new EntrySetBuilder(this.#view.size, values);
    for (const term of terms) if (term >= 0) this.#addStride(builder, this.#firstOf(term));
    return this.#finish(builder);
  }

  *#addEntries(builder: EntrySetBuilder, term: number): Work<void> {
    const bits = this.#packed === null ? null : yield* this.#packed.bitsOf(term, this.#budget);
    if (bits !== null) {
      builder.addBits(bits);
      this.#budget.spend(this.#view.size >>> 10);
      return;
    }
    const rest = this.#addTerm(builder, term);
    if (rest === null) return;
    if (this.#budget.isDue) yield;
    yield* rest;
  }

  /** Adds the first entries of a term. @returns the remaining work; null if all entries were added */
  #addTerm(builder: EntrySetBuilder, term: number): Work<void> | null {
    if (this.#reader !== null) {
      const reader = this.#reader.begin(term);
      const bits = builder.bits((this.#column.counts[term] ?? 0) > this.#view.size >>> 5);
      return this.#addSlices(builder, bits, reader)
        ? null
        : this.#addFurther(builder, bits, reader);
    }
    const rest = this.#addStride(builder, this.#firstOf(term));
    return rest === 0 ? null : this.#addFrom(builder, rest);
  }

  /**
   * Adds the entries of some slices. `bits`: bitmap of the builder, if it uses one. @returns whether the last slice was
   * read
   */
  #addSlices(builder: EntrySetBuilder, bits: Uint32Array | null, reader: PostingReader): boolean {
    const { size, live } = this.#view;
    let visited = 1;
    let slices = 0;
    let isLast = true;
    while (slices < slicesPerStep) {
      if (!(bits === null ? reader.read() : reader.readBits(bits))) break;
      isLast = ++slices < slicesPerStep;
      visited += reader.count;
      if (bits === null) builder.addLive(reader.entries, reader.count, live, size);
    }
    this.#budget.spend(visited);
    return isLast;
  }

  *#addFurther(
    builder: EntrySetBuilder,
    bits: Uint32Array | null,
    reader: PostingReader,
  ): Work<void> {
    while (!this.#addSlices(builder, bits, reader)) if (this.#budget.isDue) yield;
  }

  /** Adds the entries of a term's posting list from one value on. */
  *#addFrom(builder: EntrySetBuilder, first: number): Work<void> {
    let at = first;
    while (at !== 0) {
      at = this.#addStride(builder, at);
      if (at !== 0 && this.#budget.isDue) yield;
    }
  }

  /** Returns the first value of a term, plus one. */
  #firstOf(term: number): number {
    return this.#column.firsts[term] ?? 0;
  }

  /** Adds the entries of a stretch of a posting list. @returns the value to continue with, plus one; 0 at the end */
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

  #finish(builder: EntrySetBuilder): EntrySet {
    return builder.finishLive(this.#view.live);
  }

  #termsOf(text: string): number[] {
    const { dictionary } = this.#column;
    const terms = [dictionary.findText(textKind, text)];
    if (dictionary.hasNumbers) terms.push(dictionary.findText(numberKind, text));
    if (dictionary.hasDates) terms.push(dictionary.findText(dateKind, text));
    return terms;
  }

  #termsOfText(text: string): number[] {
    const instant = parseMoment(text);
    if (instant === null) return this.#termsOf(this.#folded(text));
    const { dictionary } = this.#column;
    return termsOfMoment(instant).map((term) => dictionary.findText(dateKind, term));
  }

  /** A date in a list is compared as the term it would be indexed as, so that a day does not match a time. */
  #termsOfListed(value: ListedValue): readonly number[] {
    if (value === null) return nullTerms;
    const { text, isText } = value;
    const instant = isText ? parseMoment(text) : null;
    if (instant === null) return this.#termsOf(isText ? this.#folded(text) : text);
    const isDay = text.length === dayLength;
    const all = termsOfMoment(instant);
    const terms =
      all.length === 1 ? all : all.filter((term) => (term.length === dayLength) === isDay);
    const { dictionary } = this.#column;
    return terms.map((term) => dictionary.findText(dateKind, term));
  }

  #folded(text: string): string {
    return this.#isExact ? text : lowerInvariant(text);
  }
}

/** Adds the entries of the values [from, to) whose terms are marked with 1. */
function addMarked(
  bits: Uint32Array,
  marks: Buffer,
  { terms, entries, hasSeveral, emptyCount }: FieldColumn,
  from: number,
  to: number,
): void {
  if (hasSeveral || emptyCount > 0) {
    for (let at = from; at < to; at++) {
      if (marks[terms[at] as number] !== 1) continue;
      const entry = entries[at] as number;
      bits[entry >>> 5] = (bits[entry >>> 5] as number) | (1 << (entry & 31));
    }
    return;
  }
  // Each entry has one value, whose number equals the entry's. Marks of terms added later are undefined.
  for (let at = from; at < to; at += 32) {
    const end = Math.min(32, to - at);
    let word = 0;
    for (let bit = 0; bit < end; bit++) word |= (marks[terms[at + bit] as number] as number) << bit;
    bits[at >>> 5] = (bits[at >>> 5] as number) | word;
  }
}

/** KMP failure function: by number of matched words, how many remain matched on a mismatch. */
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

/** Compares a term with a bound: negative, 0 or positive. */
interface ValueComparison {
  readonly ofNumber: (term: number) => number;
  readonly ofDate: (term: number) => number;
}

/** Creates comparisons with a bound, given as text. */
type CompareValues = (text: string) => ValueComparison;

/** How bounds are compared: by whole parts, as doubles, or as texts. */
export type RangeType = "long" | "double" | "text";

function compareBig(left: bigint, right: bigint): number {
  return left < right ? -1 : left > right ? 1 : 0;
}
