/**
 * Sorting entries by a field: each entry gets a small rank, and ranks are radix-sorted.
 *
 * The rules are RavenDB 7.2.7's (Corax): ascending, missing comes first, then null, then values; a field that has dates
 * sorts by instants; as long or double a field sorts by its numbers. When such a field also has text, then missing,
 * null and text tie in front. An array sorts by its first element. With several keys missing and null tie. Descending
 * is the mirror; ties keep the order of entries.
 *
 * Hot: bench/query.bench.ts.
 */
import type { Work, WorkBudget } from "../base/work-budget.ts";
import type { FieldColumn } from "./field-column.ts";
import { slicedSort, slicedSortByKey } from "./sliced-sort.ts";
import { gapTerm, nullTerm, numberKind, objectTerm } from "./term-dictionary.ts";
import type { OrderKind } from "./term-order.ts";

export type SortForm = "string" | "long" | "double" | "alphaNumeric";

export interface FieldSort {
  readonly form: SortForm;
  readonly isDescending: boolean;
  readonly nulls: "first" | "last" | null;
  /** It is the only key: missing and null are distinguished. */
  readonly isOnly: boolean;
}

/** Ranks of entries without a sortable value. */
const missingRank = 0;
const nullRank = 1;
const valueRank = 2;
/** Cost of adding a term to a set, and of comparing two alphanumerically. */
const setUnits = 4;
const alphaNumericUnits = 64;
/** The whole order of a dictionary is built only when at least one in this many of its terms is needed. */
const orderShare = 16;

/** The sort key of each of `entries`, by position: ascending keys give the order of `sort`. */
export function* fieldSortKeys(
  column: FieldColumn | undefined,
  entries: Uint32Array,
  sort: FieldSort,
  budget: WorkBudget,
): Work<Uint32Array> {
  const keys = new Uint32Array(entries.length);
  if (column !== undefined) yield* fillRanks(column, entries, sort.form, keys, budget);
  if (!sort.isOnly)
    for (let i = 0; i < keys.length; i++) if (keys[i] === missingRank) keys[i] = nullRank;
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

/** Positions 0 … n-1 sorted by several keys, most significant first; the sort is stable. */
export function* sortPositions(
  count: number,
  keys: readonly Uint32Array[],
  budget: WorkBudget,
): Work<Uint32Array> {
  let positions = positionsOf(count);
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

function* fillRanks(
  column: FieldColumn,
  entries: Uint32Array,
  form: SortForm,
  keys: Uint32Array,
  budget: WorkBudget,
): Work<void> {
  const { starts, terms } = column;
  const sought = new Uint32Array(entries.length);
  for (let i = 0; i < entries.length; i++) {
    const entry = entries[i] as number;
    const from = starts[entry] as number;
    sought[i] = from === starts[entry + 1] ? gapTerm : (terms[from] as number);
  }
  budget.spend(entries.length * 2);
  if (budget.isDue) yield;
  const kind = orderKind(column, form);
  const isMixed = kind !== "bytes" && column.dictionary.textCount > 0;
  const ranks =
    form === "alphaNumeric"
      ? yield* alphaNumericRanks(column, sought, budget)
      : yield* termRanks(column, sought, kind, form, budget);
  for (let i = 0; i < sought.length; i++) {
    const term = sought[i] as number;
    if (term === gapTerm) keys[i] = missingRank;
    else if (term === nullTerm || term === objectTerm) keys[i] = nullRank;
    else {
      const rank = ranks(term);
      keys[i] = rank < 0 ? nullRank : rank + valueRank;
    }
    if (isMixed && keys[i] === nullRank) keys[i] = missingRank;
  }
}

function orderKind(column: FieldColumn, form: SortForm): OrderKind {
  if (form === "long" || form === "double") return "number";
  return form === "string" && column.dictionary.hasDates ? "date" : "bytes";
}

type Ranks = (term: number) => number;

/** The rank of a term in an order; -1 when the term is not in it. */
function* termRanks(
  column: FieldColumn,
  sought: Uint32Array,
  kind: OrderKind,
  form: SortForm,
  budget: WorkBudget,
): Work<Ranks> {
  const { dictionary } = column;
  const isLong = form === "long";
  if (!isLong && !column.hasOrder(kind) && sought.length * orderShare < dictionary.count) {
    const order = column.emptyOrder(kind);
    const fits = kind === "bytes" ? () => true : kindTest(column, kind);
    const compare = (left: number, right: number) => order.compare(left, right);
    return yield* localRanks(sought, fits, compare, budget);
  }
  if (isLong && dictionary.hasInexact) {
    const fits = kindTest(column, "number");
    const order = column.emptyOrder("number");
    const { values } = dictionary;
    const compare = (left: number, right: number) => {
      const a = Math.trunc(values[left] as number);
      const b = Math.trunc(values[right] as number);
      if (a !== b) return a - b;
      return Number.isSafeInteger(a) ? 0 : order.compare(left, right);
    };
    return yield* localRanks(sought, fits, compare, budget);
  }
  const order = yield* column.orderInSlices(kind, budget);
  const ranks = yield* order.ranks(budget);
  const fits = kind === "bytes" ? null : kindTest(column, kind);
  return (term) => (fits === null || fits(term) ? (ranks[term] as number) : -1);
}

function kindTest(column: FieldColumn, kind: OrderKind): (term: number) => boolean {
  const { dictionary } = column;
  if (kind === "number") return (term) => dictionary.kindOf(term) === numberKind;
  return (term) => dictionary.kindOf(term) === 2;
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

/** The distinct terms with a text among `terms`, in order of first occurrence. */
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
    const order = /^\d/.test(x) && /^\d/.test(y) ? compareDigits(x, y) : x < y ? -1 : x > y ? 1 : 0;
    if (order !== 0) return order;
  }
  return a.length - b.length;
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
