/**
 * The sort keys of few entries of a field that has many terms: their terms are compared with each other, instead of with
 * all. The rules of the order are in entry-order.ts.
 *
 * Hot: bench/query.bench.ts. A range of some entries ordered by a number takes 60 µs instead of 105 (docs/measured.md).
 */
import type { SortForm } from "./entry-order.ts";
import type { FieldColumn } from "./field-column.ts";
import { dateKind, gapTerm, numberKind, objectTerm } from "./term-dictionary.ts";
import type { TermOrder } from "./term-order.ts";

/** Ranks of entries without a sortable value. */
export const missingRank = 0;
export const nullRank = 1;
export const valueRank = 2;
/** The whole order of a dictionary is built only when at least one in this many of its terms is needed. */
export const orderShare = 16;
/** Entries whose values are compared with each other, and the cost of one. */
export const fewMax = 512;
export const fewUnits = 16;

/**
 * Returns the order of a field in which a few terms are compared directly; null if the field has no such order, or if
 * another strategy is faster.
 */
export function fewOrder(
  column: FieldColumn,
  count: number,
  form: SortForm | null,
  isByValue: boolean,
): TermOrder | null {
  const { dictionary } = column;
  if (form === "alphaNumeric" || count * orderShare >= dictionary.count) return null;
  if (!isByValue) return column.emptyOrder("bytes");
  if (form !== "double" && dictionary.hasInexact) return null;
  if (!dictionary.hasDates) return column.emptyOrder("number");
  return dictionary.hasNumbers ? null : column.emptyOrder("date");
}

/** As `termRanks` and `keyOf` for the terms of few entries, which are compared with each other. */
export function fillFew(
  column: FieldColumn,
  sought: Uint32Array,
  order: TermOrder,
  keys: Uint32Array,
): void {
  const { dictionary } = column;
  const wanted = order.kind === "number" ? numberKind : dateKind;
  const positions: number[] = [];
  for (let i = 0; i < sought.length; i++) {
    const term = sought[i] as number; // i < length
    keys[i] = term === gapTerm ? missingRank : nullRank;
    if (term <= objectTerm) continue;
    if (order.kind === "bytes" || dictionary.kindOf(term) === wanted) positions.push(i);
  }
  if (order.kind === "number" && fillNumbers(column, sought, positions, order, keys)) return;
  positions.sort((a, b) => order.compare(sought[a] as number, sought[b] as number));
  let key = valueRank;
  let last = -1;
  for (const position of positions) {
    const term = sought[position] as number; // among them
    if (last >= 0 && order.compare(last, term) !== 0) key++;
    keys[position] = key;
    last = term;
  }
}

/**
 * Sets the keys at some positions, whose terms are numbers: their doubles are sorted by themselves, which costs a part of
 * comparing the terms. @returns false where equal ones are of numbers that are not: the keys are then wrong
 */
function fillNumbers(
  { dictionary }: FieldColumn,
  sought: Uint32Array,
  positions: readonly number[],
  order: TermOrder,
  keys: Uint32Array,
): boolean {
  const { values } = dictionary;
  const sorted = new Float64Array(positions.length);
  for (let i = 0; i < sorted.length; i++) {
    sorted[i] = values[sought[positions[i] as number] as number] as number; // i < length
  }
  sorted.sort();
  let count = 0;
  for (let i = 0; i < sorted.length; i++) {
    if (count === 0 || sorted[count - 1] !== sorted[i]) sorted[count++] = sorted[i] as number;
  }
  /** By the place of the value; 0: none yet. */
  const terms = new Uint32Array(count);
  for (let i = 0; i < positions.length; i++) {
    const position = positions[i] as number; // i < length
    const term = sought[position] as number;
    const value = values[term] as number;
    let low = 0;
    let high = count - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((sorted[middle] as number) < value) low = middle + 1;
      else high = middle;
    }
    const known = terms[low] as number;
    if (known !== 0 && known !== term && order.compare(known, term) !== 0) return false;
    terms[low] = term;
    keys[position] = valueRank + low;
  }
  return true;
}
