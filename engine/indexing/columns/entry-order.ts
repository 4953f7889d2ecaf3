/**
 * Sorting entries by a field: each entry gets a small rank, and ranks are radix-sorted.
 *
 * The rules are RavenDB 7.2.7's (Corax): in ascending order missing values are first, then null, then values. As long
 * or double a field sorts by its numbers, and dates count as ticks; a field that has dates also sorts this way, unless
 * a form is given. If it also has text, then missing, null and text tie at the front. An array sorts by its smallest
 * element; an array that contains null sorts as null. Missing and null tie when there are several keys, a condition or
 * a field with arrays, and in the form alphaNumeric. Descending is the mirror; ties keep the order of entries.
 *
 * Hot: bench/scan.bench.ts.
 */
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import { dateTicks } from "../dates/date-terms.ts";
import {
  fewMax,
  fewOrder,
  fewUnits,
  fillFew,
  missingRank,
  nullRank,
  orderShare,
  valueRank,
} from "./few-order.ts";
import type { FieldColumn } from "./field-column.ts";
import { slicedSort, slicedSortByKey } from "./sliced-sort.ts";
import { dateKind, gapTerm, nullTerm, numberKind, objectTerm } from "./term-dictionary.ts";
import type { OrderKind } from "./term-order.ts";

export type SortForm = "string" | "long" | "double" | "alphaNumeric";

export interface FieldSort {
  /** null: by values, dates as instants and all else as text. */
  readonly form: SortForm | null;
  readonly isDescending: boolean;
  readonly nulls: "first" | "last" | null;
  /** It is the only key, of all entries: missing and null are distinguished. */
  readonly isOnly: boolean;
}

/** Cost of adding a term to a set, and of comparing two alphanumerically. */
const setUnits = 4;
const alphaNumericUnits = 64;
/** As long: whole numbers are cut to 64 bits. */
const longEnd = 2 ** 63;

/** Returns the sort key of each of `entries`, by position: ascending keys give the order of `sort`. */
export function* fieldSortKeys(
  column: FieldColumn | undefined,
  entries: Uint32Array,
  sort: FieldSort,
  budget: WorkBudget,
): Work<Uint32Array> {
  const keys = new Uint32Array(entries.length);
  if (column !== undefined) yield* fillRanks(column, entries, sort.form, keys, budget);
  const isTied = !sort.isOnly || sort.form === "alphaNumeric" || column?.hasSeveral === true;
  if (isTied) for (let i = 0; i < keys.length; i++) if (keys[i] === missingRank) keys[i] = nullRank;
  return directed(keys, sort);
}

/** Sort keys for arbitrary numbers, by position, optionally descending; NaN sorts as the smallest. */
export function* numberSortKeys(
  values: Float64Array,
  isDescending: boolean,
  budget: WorkBudget,
): Work<Uint32Array> {
  const compare = (left: number, right: number) =>
    compareNumbers(values[left] as number, values[right] as number);
  const order = yield* slicedSort(positionsOf(values.length), compare, budget);
  const keys = new Uint32Array(values.length);
  let rank = 0;
  for (let i = 0; i < order.length; i++) {
    if (i > 0 && compare(order[i - 1] as number, order[i] as number) !== 0) rank++;
    keys[order[i] as number] = rank;
  }
  return isDescending ? mirrored(keys) : keys;
}

function compareNumbers(left: number, right: number): number {
  if (left === right) return 0;
  if (Number.isNaN(left) || Number.isNaN(right)) {
    return Number(Number.isNaN(right)) - Number(Number.isNaN(left));
  }
  return left < right ? -1 : 1;
}

/** Positions, which are ascending, sorted by several keys, most significant first; the sort is stable. */
export function* sortPositions(
  given: Uint32Array,
  keys: readonly Uint32Array[],
  budget: WorkBudget,
): Work<Uint32Array> {
  let positions = given;
  for (let k = keys.length - 1; k >= 0; k--) {
    positions = yield* slicedSortByKey(positions, keys[k] as Uint32Array, budget);
  }
  return positions;
}

export function positionsOf(count: number): Uint32Array {
  const positions = new Uint32Array(count);
  for (let i = 0; i < count; i++) positions[i] = i;
  return positions;
}

/** Ranges that keys are counted in to find the smallest ones. */
const rangeBits = 12;
/** Keys between two checks of the budget. */
const stride = 65_536;

/** Returns the positions of the smallest keys, ascending: at least `count`, with all that tie with one of them. */
export function* smallestPositions(
  keys: Uint32Array,
  count: number,
  budget: WorkBudget,
): Work<Uint32Array> {
  let max = 0;
  for (let i = 0; i < keys.length; i++) if ((keys[i] as number) > max) max = keys[i] as number;
  const shift = Math.max(0, 32 - Math.clz32(max) - rangeBits);
  const sizes = new Uint32Array((max >>> shift) + 1);
  for (let from = 0; from < keys.length; from += stride) {
    countRanges(keys, from, Math.min(from + stride, keys.length), shift, sizes);
    budget.spend(stride >>> 2);
    if (budget.isDue) yield;
  }
  let range = 0;
  let found = sizes[0] as number;
  while (found < count && range + 1 < sizes.length) found += sizes[++range] as number;
  const positions = new Uint32Array(found);
  let at = 0;
  for (let i = 0; i < keys.length; i++) {
    if ((keys[i] as number) >>> shift <= range) positions[at++] = i;
    if ((i & (stride - 1)) !== stride - 1) continue;
    budget.spend(stride >>> 2);
    if (budget.isDue) yield;
  }
  return positions;
}

function countRanges(
  keys: Uint32Array,
  from: number,
  to: number,
  shift: number,
  sizes: Uint32Array,
): void {
  for (let i = from; i < to; i++) {
    const range = (keys[i] as number) >>> shift;
    sizes[range] = (sizes[range] as number) + 1;
  }
}

export function mirrored(keys: Uint32Array): Uint32Array {
  let max = 0;
  for (let i = 0; i < keys.length; i++) if ((keys[i] as number) > max) max = keys[i] as number;
  for (let i = 0; i < keys.length; i++) keys[i] = max - (keys[i] as number);
  return keys;
}

function directed(keys: Uint32Array, sort: FieldSort): Uint32Array {
  const isNullsMoved = sort.nulls !== null && (sort.nulls === "last") !== sort.isDescending;
  if (isNullsMoved) {
    // Moves them to the end opposite to the default for the direction.
    let max = 0;
    for (let i = 0; i < keys.length; i++) if ((keys[i] as number) > max) max = keys[i] as number;
    for (let i = 0; i < keys.length; i++) {
      if ((keys[i] as number) < valueRank) keys[i] = max + 2 - (keys[i] as number);
    }
  }
  return sort.isDescending ? mirrored(keys) : keys;
}

/** Returns whether numbers and dates are sorted by their values, and nothing else is. */
export function sortsByValue({ dictionary }: FieldColumn, form: SortForm | null): boolean {
  return form === "long" || form === "double" || (form === null && dictionary.hasDates);
}

function* fillRanks(
  column: FieldColumn,
  entries: Uint32Array,
  form: SortForm | null,
  keys: Uint32Array,
  budget: WorkBudget,
): Work<void> {
  const { dictionary } = column;
  const sought = new Uint32Array(entries.length);
  const several: number[] = [];
  if (column.isPacked) takePackedTerms(column, entries, sought, several);
  else takeTerms(column, entries, sought, several);
  budget.spend(entries.length * 2);
  if (budget.isDue) yield;
  const isByValue = sortsByValue(column, form);
  const isMixed = isByValue && dictionary.textCount > 0;
  const heldBefore = budget.heldBytes;
  if (several.length === 0 && sought.length <= fewMax) {
    const order = fewOrder(column, sought.length, form, isByValue);
    if (order !== null) {
      fillFew(column, sought, order, keys);
      budget.spend(sought.length * fewUnits);
      if (isMixed) untie(keys);
      return;
    }
  }
  const all = yield* withOthers(sought, several, entries, column, budget);
  const ranks =
    form === "alphaNumeric"
      ? yield* alphaNumericRanks(column, all, budget)
      : isByValue
        ? yield* valueRanks(column, all, form, budget)
        : yield* termRanks(column, all, "bytes", budget);
  for (let i = 0; i < sought.length; i++) keys[i] = keyOf(sought[i] as number, ranks);
  for (const i of several) {
    const entry = entries[i] as number;
    keys[i] = leastKey(column, entry, isByValue, ranks);
    budget.spend(column.lengthOf(entry));
    if (budget.isDue) yield;
  }
  budget.release(budget.heldBytes - heldBefore);
  if (isMixed) untie(keys);
}

/** Makes null tie with missing values. */
function untie(keys: Uint32Array): void {
  for (let i = 0; i < keys.length; i++) if (keys[i] === nullRank) keys[i] = missingRank;
}

/** The first term of each entry, and the positions of entries that have several. */
function takeTerms(
  { starts, terms }: FieldColumn,
  entries: Uint32Array,
  sought: Uint32Array,
  several: number[],
): void {
  for (let i = 0; i < entries.length; i++) {
    const entry = entries[i] as number;
    const from = starts[entry] as number;
    const count = (starts[entry + 1] as number) - from;
    sought[i] = count === 0 ? gapTerm : (terms[from] as number);
    if (count > 1) several.push(i);
  }
}

/** As `takeTerms`. */
function takePackedTerms(
  column: FieldColumn,
  entries: Uint32Array,
  sought: Uint32Array,
  several: number[],
): void {
  for (let i = 0; i < entries.length; i++) {
    const terms = column.termsOf(entries[i] as number);
    sought[i] = terms[0] ?? gapTerm;
    if (terms.length > 1) several.push(i);
  }
}

function keyOf(term: number, ranks: Ranks): number {
  if (term === gapTerm) return missingRank;
  if (term === nullTerm || term === objectTerm) return nullRank;
  const rank = ranks(term);
  return rank < 0 ? nullRank : rank + valueRank;
}

/** Returns the smallest key of an array's elements; for numbers (`isByValue`), other elements are ignored. */
function leastKey(column: FieldColumn, entry: number, isByValue: boolean, ranks: Ranks): number {
  let least = Number.POSITIVE_INFINITY;
  for (const term of column.termsOf(entry)) {
    if (term === gapTerm) continue;
    const key = keyOf(term, ranks);
    if (isByValue && key < valueRank) continue;
    if (key < least) least = key;
  }
  return Number.isFinite(least) ? least : nullRank;
}

/** Returns the terms of all values: the first ones, followed by the others of entries that have several. */
function* withOthers(
  firsts: Uint32Array,
  several: readonly number[],
  entries: Uint32Array,
  column: FieldColumn,
  budget: WorkBudget,
): Work<Uint32Array> {
  if (several.length === 0) return firsts;
  let count = firsts.length;
  for (const i of several) count += column.lengthOf(entries[i] as number) - 1;
  budget.hold(count * Uint32Array.BYTES_PER_ELEMENT);
  const all = new Uint32Array(count);
  all.set(firsts);
  let at = firsts.length;
  for (const i of several) {
    const rest = column.termsOf(entries[i] as number).subarray(1);
    all.set(rest, at);
    at += rest.length;
    budget.spend(rest.length);
    if (budget.isDue) yield;
  }
  return all;
}

type Ranks = (term: number) => number;

/** Returns the rank of numbers and dates by their values; -1 for other terms. */
function* valueRanks(
  column: FieldColumn,
  sought: Uint32Array,
  form: SortForm | null,
  budget: WorkBudget,
): Work<Ranks> {
  const { dictionary } = column;
  const isWhole = form !== "double" && dictionary.hasInexact;
  if (!dictionary.hasDates && !isWhole) return yield* termRanks(column, sought, "number", budget);
  if (dictionary.hasDates && !dictionary.hasNumbers) {
    return yield* termRanks(column, sought, "date", budget);
  }
  const number = column.emptyOrder("number");
  const date = column.emptyOrder("date");
  const { values } = dictionary;
  const isDate = (term: number) => dictionary.kindOf(term) === dateKind;
  const numberOf = (term: number) => {
    const value = values[term] as number;
    if (isDate(term)) return Number(dateTicks(value, dictionary.ticksOf(term)));
    return isWhole ? Math.max(-longEnd, Math.min(longEnd, Math.trunc(value))) : value;
  };
  const compare = (left: number, right: number) => {
    if (isDate(left) && isDate(right)) return date.compare(left, right);
    const a = numberOf(left);
    const b = numberOf(right);
    if (a !== b) return a - b;
    if (Number.isSafeInteger(a) || isDate(left) || isDate(right)) return 0;
    return number.compare(left, right);
  };
  const fits = (term: number) => dictionary.kindOf(term) === numberKind || isDate(term);
  return yield* localRanks(sought, fits, compare, budget);
}

/** Returns the rank of a term in an order; -1 when the term is not in it. */
function* termRanks(
  column: FieldColumn,
  sought: Uint32Array,
  kind: OrderKind,
  budget: WorkBudget,
): Work<Ranks> {
  const { dictionary } = column;
  const wanted = kind === "number" ? numberKind : dateKind;
  const fits = kind === "bytes" ? null : (term: number) => dictionary.kindOf(term) === wanted;
  if (!column.hasOrder(kind) && sought.length * orderShare < dictionary.count) {
    const order = column.emptyOrder(kind);
    const compare = (left: number, right: number) => order.compare(left, right);
    return yield* localRanks(sought, fits ?? (() => true), compare, budget);
  }
  const order = yield* column.orderInSlices(kind, budget);
  const ranks = yield* order.ranks(budget);
  return (term) => (fits === null || fits(term) ? (ranks[term] as number) : -1);
}

/** Ranks only the terms that occur, by comparison. */
function* localRanks(
  sought: Uint32Array,
  fits: (term: number) => boolean,
  compare: (left: number, right: number) => number,
  budget: WorkBudget,
): Work<Ranks> {
  const occurring = yield* distinctTerms(sought, budget);
  const byText = (left: number, right: number) => compare(left, right) || left - right;
  const distinct = yield* slicedSort(occurring.filter(fits), byText, budget);
  const ranks = new Map<number, number>();
  let rank = 0;
  for (let i = 0; i < distinct.length; i++) {
    if (i > 0 && compare(distinct[i - 1] as number, distinct[i] as number) !== 0) rank++;
    ranks.set(distinct[i] as number, rank);
    budget.spend(setUnits);
    if (budget.isDue) yield;
  }
  return (term) => ranks.get(term) ?? -1;
}

/** Returns the distinct terms with a text among `terms`, in order of first occurrence. */
function* distinctTerms(terms: Uint32Array, budget: WorkBudget): Work<Uint32Array> {
  const seen = new Set<number>();
  for (const term of terms) {
    if (term > objectTerm) seen.add(term);
    budget.spend(setUnits);
    if (budget.isDue) yield;
  }
  return Uint32Array.from(seen);
}

function* alphaNumericRanks(
  column: FieldColumn,
  sought: Uint32Array,
  budget: WorkBudget,
): Work<Ranks> {
  const { dictionary } = column;
  return yield* localRanks(
    sought,
    () => true,
    (left, right) => {
      budget.spend(alphaNumericUnits);
      return compareAlphaNumeric(dictionary.textOf(left), dictionary.textOf(right));
    },
    budget,
  );
}

/** Compares texts by runs: digits as numbers, everything else by UTF-16 units; digits before letters. */
export function compareAlphaNumeric(left: string, right: string): number {
  // The empty text sorts after digits and before letters.
  if (left === "" || right === "") return compareEmpty(left, right);
  const a = left.match(/\d+|\D+/g) ?? [];
  const b = right.match(/\d+|\D+/g) ?? [];
  for (let i = 0; i < a.length && i < b.length; i++) {
    const x = a[i] as string;
    const y = b[i] as string;
    const order = compareRuns(x, y);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

function compareRuns(left: string, right: string): number {
  const isNumber = /^\d/.test(left);
  if (isNumber !== /^\d/.test(right)) return isNumber ? -1 : 1;
  if (isNumber) return compareDigits(left, right);
  return left < right ? -1 : left > right ? 1 : 0;
}

function compareEmpty(left: string, right: string): number {
  if (left === right) return 0;
  const other = left === "" ? right : left;
  return /^\d/.test(other) === (left === "") ? 1 : -1;
}

function compareDigits(left: string, right: string): number {
  const a = left.replace(/^0+/, "");
  const b = right.replace(/^0+/, "");
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : a > b ? 1 : 0;
}
