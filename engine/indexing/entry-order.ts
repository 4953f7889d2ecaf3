/**
 * Sorting entries by a field: each entry gets a small number, and numbers are sorted by radix.
 *
 * The rules are RavenDB 7.2.7's (Corax): ascending, missing comes first, then null, then values; a field that has dates sorts
 * by instants; as long or double a field sorts by its numbers. When such a field has text besides, then missing, null and text
 * tie in front. An array sorts by its first element. With several keys missing and null tie. Descending is the mirror; ties keep the order of entries.
 *
 * Hot: bench/query.bench.ts.
 */
import type { FieldColumn } from "./field-column.ts";
import { sortByKey } from "./packed.ts";
import { gapTerm, nullTerm, numberKind, objectTerm } from "./term-dictionary.ts";
import type { OrderKind } from "./term-order.ts";

export type SortForm = "string" | "long" | "double" | "alphaNumeric";

export interface FieldSort {
  readonly form: SortForm;
  readonly isDescending: boolean;
  readonly nulls: "first" | "last" | null;
  /** No other key: missing and null are told apart. */
  readonly isOnly: boolean;
}

/** Ranks of entries that have no value to sort by. */
const missingRank = 0;
const nullRank = 1;
const valueRank = 2;
/** A term in this many of a dictionary at least must be sought, before its whole order is made for it. */
const orderShare = 16;

/** The sort key of each of `entries`, by position: ascending keys are the order that `sort` asks for. */
export function fieldSortKeys(
  column: FieldColumn | undefined,
  entries: Uint32Array,
  sort: FieldSort,
): Uint32Array {
  const keys = new Uint32Array(entries.length);
  if (column !== undefined) fillRanks(column, entries, sort.form, keys);
  if (!sort.isOnly)
    for (let i = 0; i < keys.length; i++) if (keys[i] === missingRank) keys[i] = nullRank;
  return directed(keys, sort);
}

/** Keys that sort by any numbers, by position, descending when asked for; NaN sorts as the smallest. */
export function numberSortKeys(values: Float64Array, isDescending: boolean): Uint32Array {
  const distinct = [...new Set(values)].sort((a, b) => a - b);
  const ranks = new Map(distinct.map((value, rank) => [value, rank]));
  const keys = new Uint32Array(values.length);
  for (let i = 0; i < values.length; i++) keys[i] = ranks.get(values[i] as number) ?? 0;
  return isDescending ? mirrored(keys) : keys;
}

/** Positions 0 … n-1 in the order of several keys, the first of which decides; ties keep positions' order. */
export function sortPositions(count: number, keys: readonly Uint32Array[]): Uint32Array {
  const positions = new Uint32Array(count);
  for (let i = 0; i < count; i++) positions[i] = i;
  for (let k = keys.length - 1; k >= 0; k--) sortByKey(positions, count, keys[k] as Uint32Array);
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
    // They stand at the end that the direction would not give them.
    let max = 0;
    for (let i = 0; i < keys.length; i++) if ((keys[i] as number) > max) max = keys[i] as number;
    for (let i = 0; i < keys.length; i++) {
      if ((keys[i] as number) < valueRank) keys[i] = max + 2 - (keys[i] as number);
    }
  }
  return sort.isDescending ? mirrored(keys) : keys;
}

function fillRanks(
  column: FieldColumn,
  entries: Uint32Array,
  form: SortForm,
  keys: Uint32Array,
): void {
  const { starts, terms } = column;
  const sought = new Uint32Array(entries.length);
  for (let i = 0; i < entries.length; i++) {
    const entry = entries[i] as number;
    const from = starts[entry] as number;
    sought[i] = from === starts[entry + 1] ? gapTerm : (terms[from] as number);
  }
  const kind = orderKind(column, form);
  const isMixed = kind !== "bytes" && column.dictionary.textCount > 0;
  const ranks =
    form === "alphaNumeric"
      ? alphaNumericRanks(column, sought)
      : termRanks(column, sought, kind, form);
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

/** The rank of a term in an order; -1 when the order has no such term. */
function termRanks(
  column: FieldColumn,
  sought: Uint32Array,
  kind: OrderKind,
  form: SortForm,
): Ranks {
  const { dictionary } = column;
  const isLong = form === "long";
  if (!isLong && !column.hasOrder(kind) && sought.length * orderShare < dictionary.count) {
    const order = column.emptyOrder(kind);
    const fits = kind === "bytes" ? () => true : kindTest(column, kind);
    return localRanks(sought, fits, (left, right) => order.compare(left, right));
  }
  if (isLong && dictionary.hasInexact) {
    const fits = kindTest(column, "number");
    const order = column.emptyOrder("number");
    const { values } = dictionary;
    return localRanks(sought, fits, (left, right) => {
      const a = Math.trunc(values[left] as number);
      const b = Math.trunc(values[right] as number);
      if (a !== b) return a - b;
      return Number.isSafeInteger(a) ? 0 : order.compare(left, right);
    });
  }
  const { ranks } = column.order(kind);
  const fits = kind === "bytes" ? null : kindTest(column, kind);
  return (term) => (fits === null || fits(term) ? (ranks[term] as number) : -1);
}

function kindTest(column: FieldColumn, kind: OrderKind): (term: number) => boolean {
  const { dictionary } = column;
  if (kind === "number") return (term) => dictionary.kindOf(term) === numberKind;
  return (term) => dictionary.kindOf(term) === 2;
}

/** Ranks of the terms that occur, by comparing them. */
function localRanks(
  sought: Uint32Array,
  fits: (term: number) => boolean,
  compare: (left: number, right: number) => number,
): Ranks {
  const distinct = [...new Set(sought)].filter((term) => term > objectTerm && fits(term));
  distinct.sort((a, b) => compare(a, b) || a - b);
  const ranks = new Map<number, number>();
  let rank = 0;
  for (let i = 0; i < distinct.length; i++) {
    if (i > 0 && compare(distinct[i - 1] as number, distinct[i] as number) !== 0) rank++;
    ranks.set(distinct[i] as number, rank);
  }
  return (term) => ranks.get(term) ?? -1;
}

function alphaNumericRanks(column: FieldColumn, sought: Uint32Array): Ranks {
  const texts = new Map<number, string>();
  for (const term of sought) {
    if (term > objectTerm && !texts.has(term)) texts.set(term, column.dictionary.textOf(term));
  }
  return localRanks(
    sought,
    () => true,
    (left, right) => compareAlphaNumeric(texts.get(left) ?? "", texts.get(right) ?? ""),
  );
}

/** Orders texts by runs: digits as numbers, everything else by UTF-16 units; digits before letters. */
export function compareAlphaNumeric(left: string, right: string): number {
  // No text at all comes behind digits and before letters.
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
