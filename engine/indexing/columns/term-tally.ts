/**
 * Counts the terms of one field in a set of entries, and sums numbers of other fields by these terms: the data of
 * facets. An entry counts once for each of its distinct terms.
 *
 * Reads columns only; pauses between stretches of entries (work-budget.ts). Terms added in the meantime occur in none
 * of the entries.
 *
 * Hot: bench/scan.bench.ts.
 */
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import { dateTicks } from "../dates/date-terms.ts";
import type { FieldColumn } from "./field-column.ts";
import { slicedSort } from "./sliced-sort.ts";
import {
  dateKind,
  firstTerm,
  gapTerm,
  nullTerm,
  numberKind,
  objectTerm,
  type TermDictionary,
  vectorKind,
} from "./term-dictionary.ts";
import type { TermOrder } from "./term-order.ts";

/** Values, or entries, that are counted between two checks of the budget. */
const stride = 8192;
/** Terms that are visited between two checks of the budget. */
const termStride = 4096;
/** Terms of a field, per counted one, from which on the counted ones are sorted and the order of all is not made. */
const fewTermsFactor = 16;
/** Bytes for each term: of counts, marks, and of numbers. */
const countBytes = 4;
const numberBytes = 28;
/** Intervals that are told apart in one pass. */
const slotMax = 2 ** 16 - 1;

const nullText = "NULL_VALUE";
const emptyText = "EMPTY_STRING";

/** Numbers from `low` to `high`; `isWhole`: by their whole parts. */
export interface NumberInterval {
  readonly isWhole: boolean;
  readonly low: number;
  readonly hasLow: boolean;
  readonly high: number;
  readonly hasHigh: boolean;
}

/** Statistics of the numbers of some entries. */
export interface NumberTotals {
  /** Entries with a number. */
  readonly count: number;
  readonly sum: number;
  /** The largest and the smallest double, when there is no number. */
  readonly min: number;
  readonly max: number;
}

/** Returns the number that a term counts as: its own, or a date's ticks; NaN: none. */
function numberOf(dictionary: TermDictionary, term: number, hasDates: boolean): number {
  if (term < firstTerm) return Number.NaN;
  const kind = dictionary.kindOf(term);
  const value = dictionary.values[term] as number;
  if (kind === numberKind) return value;
  if (kind !== dateKind || !hasDates) return Number.NaN;
  return Number(dateTicks(value, dictionary.ticksOf(term)));
}

/** Which numbers of the entries count. */
interface NumberChoice {
  /** Whether the smallest and the largest are needed: otherwise the totals may lack them. */
  readonly hasExtremes: boolean;
  /** Lucene: of several numbers of an entry, only the largest counts, and dates do not count. */
  readonly isLucene: boolean;
}

/**
 * Iterates the distinct numbers of entries in one field; without a column, no entry has numbers. Dates count as their
 * ticks, unless the index is made for Lucene.
 */
export class EntryNumbers {
  sum = 0;
  min = 0;
  max = 0;
  /** Number of values of the last entry. */
  valueCount = 0;
  /** The column, when its entries have a value at most, which is read without this object. */
  readonly plain: FieldColumn | null;
  readonly hasExtremes: boolean;
  readonly hasDates: boolean;
  readonly #column: FieldColumn | undefined;
  readonly #isLucene: boolean;
  /** By term: the last entry that had it, plus one. Only for entries with several values. */
  #marks: Uint32Array | null = null;

  constructor(column: FieldColumn | undefined, { hasExtremes, isLucene }: NumberChoice) {
    this.#column = column;
    this.hasExtremes = hasExtremes;
    this.hasDates = !isLucene;
    this.#isLucene = isLucene;
    this.plain = column === undefined || isSeveral(column) ? null : column;
  }

  /** @returns whether the entry has any */
  read(entry: number): boolean {
    const column = this.#column;
    if (column === undefined) return false;
    if (column.isPacked) {
      const terms = column.termsOf(entry);
      this.valueCount = terms.length;
      return this.#readSeveral(column, entry, terms, 0, terms.length);
    }
    const start = column.starts[entry] as number;
    const end = column.starts[entry + 1] as number;
    this.valueCount = end - start;
    if (end - start > 1) return this.#readSeveral(column, entry, column.terms, start, end);
    if (end === start) return false;
    const value = numberOf(column.dictionary, column.terms[start] as number, this.hasDates);
    if (Number.isNaN(value)) return false;
    this.sum = value;
    this.min = value;
    this.max = value;
    return true;
  }

  #readSeveral(
    { dictionary }: FieldColumn,
    entry: number,
    terms: Uint32Array,
    start: number,
    end: number,
  ): boolean {
    this.#marks ??= new Uint32Array(dictionary.count);
    const marks = this.#marks;
    let isAny = false;
    for (let at = start; at < end; at++) {
      const term = terms[at] as number;
      if (term < firstTerm || marks[term] === entry + 1) continue;
      marks[term] = entry + 1;
      const value = numberOf(dictionary, term, this.hasDates);
      if (Number.isNaN(value)) continue;
      this.sum = isAny ? this.sum + value : value;
      this.min = isAny ? Math.min(this.min, value) : value;
      this.max = isAny ? Math.max(this.max, value) : value;
      isAny = true;
    }
    if (isAny && this.#isLucene) {
      this.sum = this.max;
      this.min = this.max;
    }
    return isAny;
  }
}

/** Returns whether entries may have several values. */
export function isSeveral({ isPacked, hasSeveral }: FieldColumn): boolean {
  return isPacked || hasSeveral;
}

/** Returns whether each entry has one value: both have the same number then. */
function isOneEach({ isPacked, hasSeveral, emptyCount }: FieldColumn): boolean {
  return !isPacked && !hasSeveral && emptyCount === 0;
}

/** Totals of numbers, by slot. */
class NumberTable {
  readonly numbers: EntryNumbers;
  readonly #counts: Uint32Array;
  readonly #sums: Float64Array;
  readonly #mins: Float64Array;
  readonly #maxes: Float64Array;

  constructor(numbers: EntryNumbers, size: number) {
    this.numbers = numbers;
    this.#counts = new Uint32Array(size);
    this.#sums = new Float64Array(size);
    this.#mins = new Float64Array(size).fill(Number.MAX_VALUE);
    this.#maxes = new Float64Array(size).fill(-Number.MAX_VALUE);
  }

  /** Adds the numbers that were read last. */
  add(slot: number): void {
    const { sum, min, max } = this.numbers;
    this.#counts[slot] = (this.#counts[slot] as number) + 1;
    this.#sums[slot] = (this.#sums[slot] as number) + sum;
    if (min < (this.#mins[slot] as number)) this.#mins[slot] = min;
    if (max > (this.#maxes[slot] as number)) this.#maxes[slot] = max;
  }

  /** Adds the numbers of entries `[from, to)`, each to its slot; 0: to none. `slots`: by position from `from` on. */
  addEach(entries: Uint32Array, from: number, to: number, slots: Uint32Array): void {
    const { plain } = this.numbers;
    if (plain !== null) {
      this.#addPlain(plain, entries, from, to, slots);
      return;
    }
    for (let at = from; at < to; at++) {
      const slot = slots[at - from] as number;
      if (slot !== 0 && this.numbers.read(entries[at] as number)) this.add(slot);
    }
  }

  #addPlain(
    column: FieldColumn,
    entries: Uint32Array,
    from: number,
    to: number,
    slots: Uint32Array,
  ): void {
    const { starts, terms, dictionary } = column;
    const isFull = isOneEach(column);
    const { hasExtremes, hasDates } = this.numbers;
    const counts = this.#counts;
    const sums = this.#sums;
    const mins = this.#mins;
    const maxes = this.#maxes;
    for (let at = from; at < to; at++) {
      const slot = slots[at - from] as number;
      const entry = entries[at] as number;
      const start = isFull ? entry : (starts[entry] as number);
      if (slot === 0 || (!isFull && start === starts[entry + 1])) continue;
      const value = numberOf(dictionary, terms[start] as number, hasDates);
      if (Number.isNaN(value)) continue;
      counts[slot] = (counts[slot] as number) + 1;
      sums[slot] = (sums[slot] as number) + value;
      if (!hasExtremes) continue;
      if (value < (mins[slot] as number)) mins[slot] = value;
      if (value > (maxes[slot] as number)) maxes[slot] = value;
    }
  }

  /** Adds the totals of one slot to another. */
  fold(into: number, from: number): void {
    this.#counts[into] = (this.#counts[into] as number) + (this.#counts[from] as number);
    this.#sums[into] = (this.#sums[into] as number) + (this.#sums[from] as number);
    this.#mins[into] = Math.min(this.#mins[into] as number, this.#mins[from] as number);
    this.#maxes[into] = Math.max(this.#maxes[into] as number, this.#maxes[from] as number);
  }

  totals(slot: number): NumberTotals {
    return {
      count: this.#counts[slot] as number,
      sum: this.#sums[slot] as number,
      min: this.#mins[slot] as number,
      max: this.#maxes[slot] as number,
    };
  }
}

/** Returns the totals of each field's numbers over all entries. */
export function* totalsOf(
  entries: Uint32Array,
  numbers: readonly EntryNumbers[],
  budget: WorkBudget,
): Work<NumberTotals[]> {
  const tables = numbers.map((one) => new NumberTable(one, 2));
  const slots = new Uint32Array(strideOf(numbers)).fill(1);
  for (let from = 0; from < entries.length && tables.length > 0; from += slots.length) {
    const to = Math.min(entries.length, from + slots.length);
    for (const table of tables) table.addEach(entries, from, to, slots);
    budget.spend(stride * tables.length);
    if (budget.isDue) yield;
  }
  return tables.map((table) => table.totals(1));
}

/** Returns the entries whose numbers are read between two checks of the budget: fewer when one may have many. */
function strideOf(numbers: readonly EntryNumbers[]): number {
  return numbers.every(({ plain }) => plain !== null) ? stride : stride >>> 6;
}

/** How many entries are in each of some intervals, and the totals of their numbers. */
export interface IntervalTotals {
  readonly count: number;
  readonly totals: readonly NumberTotals[];
}

/**
 * Returns the entries in each of some intervals of a column's numbers, in one pass. Returns null if intervals overlap, if
 * an interval may contain a value that is not a number, or if an entry has several values.
 */
export function* totalsWithin(
  column: FieldColumn,
  intervals: readonly NumberInterval[],
  entries: Uint32Array,
  numbers: readonly EntryNumbers[],
  budget: WorkBudget,
): Work<IntervalTotals[] | null> {
  if (isSeveral(column) || column.dictionary.hasDates) return null;
  const slotsOfTerms = yield* slotsWithin(column, intervals, budget);
  if (slotsOfTerms === null) return null;
  const counts = new Uint32Array(intervals.length + 1);
  const tables = numbers.map((one) => new NumberTable(one, intervals.length + 1));
  const slots = new Uint32Array(strideOf(numbers));
  for (let from = 0; from < entries.length; from += slots.length) {
    const to = Math.min(entries.length, from + slots.length);
    const { starts, terms } = column;
    const isFull = isOneEach(column);
    for (let at = from; at < to; at++) {
      const entry = entries[at] as number;
      const start = isFull ? entry : (starts[entry] as number);
      const isEmpty = !isFull && start === starts[entry + 1];
      // A term added in the meantime is in none of the entries.
      const slot = isEmpty ? 0 : (slotsOfTerms[terms[start] as number] as number);
      slots[at - from] = slot;
      counts[slot] = (counts[slot] as number) + 1;
    }
    for (const table of tables) table.addEach(entries, from, to, slots);
    budget.spend(stride * (1 + tables.length));
    if (budget.isDue) yield;
  }
  budget.release(slotsOfTerms.byteLength);
  return intervals.map((_, i) => ({
    count: counts[i + 1] as number,
    totals: tables.map((table) => table.totals(i + 1)),
  }));
}

/**
 * How the values of an entry count that are in a range: each of them; all of them as one; or only the first of all its
 * values, by bytes.
 */
export type ValueCount = "each" | "once" | "first";

/**
 * Returns whether a term is in a range. `special`: the name of a term that has no text of its own, such as null;
 * otherwise null.
 */
type RangeTest = (term: number, special: string | null) => boolean;

/**
 * Returns the entries in each of some ranges, and the totals of their numbers, from a visit to every value of the
 * entries.
 */
export function* totalsPassing(
  column: FieldColumn,
  tests: readonly RangeTest[],
  valueCount: ValueCount,
  entries: Uint32Array,
  numbers: readonly EntryNumbers[],
  budget: WorkBudget,
): Work<IntervalTotals[]> {
  const counts = new Uint32Array(tests.length);
  const tables = numbers.map((one) => new NumberTable(one, tests.length));
  const { dictionary } = column;
  for (const entry of entries) {
    const distinct = new Set(column.termsOf(entry));
    distinct.delete(gapTerm);
    const terms = valueCount === "first" ? firstByBytes(distinct, dictionary) : [...distinct];
    const found = tables.filter(({ numbers: one }) => one.read(entry));
    for (const [i, test] of tests.entries()) {
      const passing = terms.filter((term) => test(term, specialText(dictionary, term))).length;
      const times = valueCount === "once" ? Math.min(passing, 1) : passing;
      counts[i] = (counts[i] as number) + times;
      for (const table of found) for (let n = 0; n < times; n++) table.add(i);
    }
    budget.spend(1 + terms.length * tests.length);
    if (budget.isDue) yield;
  }
  return tests.map((_, i) => ({
    count: counts[i] as number,
    totals: tables.map((table) => table.totals(i)),
  }));
}

function firstByBytes(terms: ReadonlySet<number>, dictionary: TermDictionary): number[] {
  let first: number | null = null;
  for (const term of terms) {
    if (term < firstTerm) continue;
    if (first === null || dictionary.compareBytes(term, first) < 0) first = term;
  }
  return first === null ? [] : [first];
}

/** Returns the text that stands for a null or an empty text; null: the term has a text of its own. */
function specialText(dictionary: TermDictionary, term: number): string | null {
  if (term === nullTerm) return nullText;
  return term >= firstTerm && dictionary.lengthOf(term) === 0 ? emptyText : null;
}

/** By term: the number of the interval that it is in, from 1 on, or 0; null: one is in several. */
function* slotsWithin(
  column: FieldColumn,
  intervals: readonly NumberInterval[],
  budget: WorkBudget,
): Work<Uint16Array | null> {
  if (intervals.length > slotMax) return null;
  const order = yield* column.orderInSlices("number", budget);
  const { values, count } = column.dictionary;
  const { terms } = order;
  // The whole part of an infinite number is 0.
  const ends = terms.length === 0 ? [] : [terms[0] as number, terms.at(-1) as number];
  if (!ends.every((term) => Number.isFinite(values[term]))) return null;
  budget.hold(count * Uint16Array.BYTES_PER_ELEMENT);
  const slots = new Uint16Array(count);
  for (const [i, interval] of intervals.entries()) {
    const [from, to] = placesWithin(order, values, interval);
    for (let start = from; start < to; start += termStride) {
      const end = Math.min(to, start + termStride);
      for (let at = start; at < end; at++) {
        const term = terms[at] as number;
        if (slots[term] !== 0) return null;
        slots[term] = i + 1;
      }
      budget.spend(end - start);
      if (budget.isDue) yield;
    }
  }
  return slots;
}

/** Returns the positions of an interval's terms in their order: from the first one up to the second. */
function placesWithin(
  order: TermOrder,
  values: Float64Array,
  { low, hasLow, high, hasHigh, isWhole }: NumberInterval,
): readonly [number, number] {
  const comparedOf = (term: number) => {
    const value = values[term] as number;
    return isWhole ? Math.trunc(value) : value;
  };
  const from = order.lowerBound((term) => comparedOf(term) - low || (hasLow ? 0 : -1));
  const to = order.lowerBound((term) => comparedOf(term) - high || (hasHigh ? -1 : 0));
  return [from, to];
}

export class TermTally {
  readonly #column: FieldColumn;
  readonly #counts: Uint32Array;
  /** By term: the last entry that had it, plus one; null until an entry with several values was counted. */
  #marks: Uint32Array | null = null;
  readonly #tables: readonly NumberTable[];
  /** By table: whether the current entry has a number. */
  readonly #found: Uint8Array;
  readonly #budget: WorkBudget;
  /** By position in a stretch of entries: the term. */
  readonly #slots: Uint32Array;

  private constructor(column: FieldColumn, numbers: readonly EntryNumbers[], budget: WorkBudget) {
    const size = column.dictionary.count;
    budget.hold(size * (countBytes + numbers.length * numberBytes));
    this.#column = column;
    this.#counts = new Uint32Array(size);
    this.#tables = numbers.map((one) => new NumberTable(one, size));
    this.#found = new Uint8Array(numbers.length);
    this.#budget = budget;
    this.#slots = new Uint32Array(strideOf(numbers));
  }

  /** Counts the terms of a column in the entries. */
  static *of(
    column: FieldColumn,
    entries: Uint32Array,
    numbers: readonly EntryNumbers[],
    budget: WorkBudget,
  ): Work<TermTally> {
    const tally = new TermTally(column, numbers, budget);
    for (let at = 0; at < entries.length; ) {
      const from = at;
      if (!isSeveral(column)) at = tally.#countPlain(entries, at);
      else if (column.isPacked) at = tally.#countPacked(entries, at);
      else at = tally.#count(entries, at);
      budget.spend((at - from) * (1 + numbers.length));
      if (budget.isDue) yield;
    }
    return tally;
  }

  /** Returns the entries that have the term. */
  countOf(term: number): number {
    return this.#counts[term] as number;
  }

  /** Whether some counted entry has several values: counts of terms are then more than counts of entries. */
  get hasSeveral(): boolean {
    return this.#marks !== null;
  }

  /** How often numbers within each interval were counted. */
  *countsWithin(intervals: readonly NumberInterval[]): Work<number[]> {
    const { values } = this.#column.dictionary;
    const order = yield* this.#column.orderInSlices("number", this.#budget);
    const { terms } = order;
    const counts: number[] = [];
    for (const interval of intervals) {
      const [from, to] = placesWithin(order, values, interval);
      let count = 0;
      for (let start = from; start < to; start += termStride) {
        const end = Math.min(to, start + termStride);
        // A term added in the meantime was not counted.
        for (let i = start; i < end; i++) count += this.#counts[terms[i] as number] ?? 0;
        this.#budget.spend(end - start);
        if (this.#budget.isDue) yield;
      }
      counts.push(count);
    }
    return counts;
  }

  /** By field of numbers. */
  totalsOf(term: number): NumberTotals[] {
    return this.#tables.map((table) => table.totals(term));
  }

  /** Returns whether its text equals that of the term in the dictionary. */
  isSpelled(term: number): boolean {
    const { dictionary } = this.#column;
    return (
      term >= firstTerm && dictionary.lengthOf(term) > 0 && dictionary.kindOf(term) !== vectorKind
    );
  }

  textOf(term: number): string {
    const { dictionary } = this.#column;
    return specialText(dictionary, term) ?? dictionary.textOf(term);
  }

  /**
   * Returns the counted terms: null, the empty text, then the others in the order of their bytes. Terms of equal text,
   * for example a number and a string, are merged.
   */
  *ordered(): Work<Uint32Array> {
    const { dictionary } = this.#column;
    const sorted = yield* this.#sortedTerms();
    const kept = new Uint32Array(sorted.length);
    let count = 0;
    let empty = -1;
    for (let i = 0; i < sorted.length; i++) {
      const term = sorted[i] as number;
      if (dictionary.lengthOf(term) === 0) empty = term;
      else if (count > 0 && this.#isSame(kept[count - 1] as number, term)) {
        this.#fold(kept[count - 1] as number, term);
      } else kept[count++] = term;
      if (i % termStride === termStride - 1) {
        this.#budget.spend(termStride);
        if (this.#budget.isDue) yield;
      }
    }
    const first = this.countOf(nullTerm) > 0 ? [nullTerm] : [];
    if (empty >= 0) first.push(empty);
    if (first.length === 0) return kept.subarray(0, count);
    const terms = new Uint32Array(first.length + count);
    terms.set(first);
    terms.set(kept.subarray(0, count), first.length);
    return terms;
  }

  /** Counts a stretch of entries that have a value at most. @returns where the next one begins */
  #countPlain(entries: Uint32Array, from: number): number {
    const { starts, terms } = this.#column;
    const counts = this.#counts;
    const slots = this.#slots;
    const isFull = isOneEach(this.#column);
    const to = Math.min(entries.length, from + slots.length);
    for (let at = from; at < to; at++) {
      const entry = entries[at] as number;
      const start = isFull ? entry : (starts[entry] as number);
      const isEmpty = !isFull && start === starts[entry + 1];
      // The count of a gap is ignored.
      const term = isEmpty ? gapTerm : (terms[start] as number);
      counts[term] = (counts[term] as number) + 1;
      slots[at - from] = term;
    }
    for (const table of this.#tables) table.addEach(entries, from, to, slots);
    return to;
  }

  /** Counts a stretch of entries. @returns where the next one begins */
  #count(entries: Uint32Array, from: number): number {
    const { starts, terms } = this.#column;
    const counts = this.#counts;
    const tables = this.#tables;
    let values = 0;
    let at = from;
    for (; at < entries.length && values < stride && at - from < stride; at++) {
      const entry = entries[at] as number;
      const start = starts[entry] as number;
      const end = starts[entry + 1] as number;
      if (end === start) continue;
      values += end - start;
      if (tables.length > 0 || end - start > 1) {
        values += this.#countSeveral(entry, terms, start, end);
        continue;
      }
      const term = terms[start] as number;
      counts[term] = (counts[term] as number) + 1;
    }
    this.#budget.spend(values);
    return at;
  }

  /** As `#count`, for a column whose values are packed. */
  #countPacked(entries: Uint32Array, from: number): number {
    let values = 0;
    let at = from;
    for (; at < entries.length && values < stride && at - from < stride; at++) {
      const entry = entries[at] as number;
      // The column of the numbers may be the same and its buffer reused: the terms are copied.
      const terms = this.#column.termsOf(entry).slice();
      values += terms.length + this.#countSeveral(entry, terms, 0, terms.length);
    }
    this.#budget.spend(values);
    return at;
  }

  /** Counts one entry that has several values, or whose numbers are added. @returns visited values of numbers */
  #countSeveral(entry: number, terms: Uint32Array, start: number, end: number): number {
    const counts = this.#counts;
    const tables = this.#tables;
    const found = this.#found;
    if (end - start > 1 && this.#marks === null) {
      this.#budget.hold(counts.length * countBytes);
      this.#marks = new Uint32Array(counts.length);
    }
    const marks = end - start > 1 ? this.#marks : null;
    let values = 0;
    for (let i = 0; i < tables.length; i++) {
      const { numbers } = tables[i] as NumberTable;
      found[i] = numbers.read(entry) ? 1 : 0;
      values += numbers.valueCount;
    }
    for (let at = start; at < end; at++) {
      const term = terms[at] as number;
      if (marks !== null) {
        if (marks[term] === entry + 1) continue;
        marks[term] = entry + 1;
      }
      counts[term] = (counts[term] as number) + 1;
      for (let i = 0; i < found.length; i++) {
        if (found[i] === 1) (tables[i] as NumberTable).add(term);
      }
    }
    return values;
  }

  /** Returns the counted terms but null, by their bytes. */
  *#sortedTerms(): Work<Uint32Array> {
    const column = this.#column;
    const size = this.#counts.length;
    this.#counts[gapTerm] = 0;
    this.#counts[objectTerm] = 0;
    let counted = 0;
    for (let from = firstTerm; from < size; from += termStride) {
      const to = Math.min(size, from + termStride);
      for (let term = from; term < to; term++) if (this.countOf(term) > 0) counted++;
      this.#budget.spend(to - from);
      if (this.#budget.isDue) yield;
    }
    this.#budget.hold(2 * countBytes * counted);
    const used = new Uint32Array(counted);
    let at = 0;
    if (!column.hasOrder("bytes") && counted * fewTermsFactor < size) {
      for (let from = firstTerm; from < size; from += termStride) {
        const to = Math.min(size, from + termStride);
        for (let term = from; term < to; term++) if (this.countOf(term) > 0) used[at++] = term;
        this.#budget.spend(to - from);
        if (this.#budget.isDue) yield;
      }
      const { dictionary } = column;
      const compare = (left: number, right: number) => dictionary.compareBytes(left, right);
      return yield* slicedSort(used, compare, this.#budget);
    }
    const { terms } = yield* column.orderInSlices("bytes", this.#budget);
    for (let from = 0; from < terms.length; from += termStride) {
      const to = Math.min(terms.length, from + termStride);
      for (let i = from; i < to; i++) {
        const term = terms[i] as number;
        if (term < size && this.countOf(term) > 0) used[at++] = term;
      }
      this.#budget.spend(to - from);
      if (this.#budget.isDue) yield;
    }
    return used;
  }

  #isSame(left: number, right: number): boolean {
    const { dictionary } = this.#column;
    if (dictionary.kindOf(left) === dictionary.kindOf(right)) return false;
    return dictionary.compareBytes(left, right) === 0;
  }

  #fold(into: number, from: number): void {
    this.#counts[into] = this.countOf(into) + this.countOf(from);
    for (const table of this.#tables) table.fold(into, from);
  }
}
