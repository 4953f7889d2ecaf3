/**
 * Returns the first entries of a set in the order of a field, by walking its terms in order instead of sorting the set:
 * a page of ten from a million entries visits few of them.
 *
 * Hot: bench/scan.bench.ts.
 */
import type { Work } from "../../base/scheduling/work-budget.ts";
import type { IndexReader } from "../index-reader.ts";
import { type FieldSort, sortsByValue } from "./entry-order.ts";
import type { EntrySet } from "./entry-set.ts";
import type { FieldColumn } from "./field-column.ts";
import { nullTerm, objectTerm } from "./term-dictionary.ts";
import type { OrderKind, TermOrder } from "./term-order.ts";

/** Sets smaller than this are sorted as fast. */
const entriesMin = 256;
/** Values that are visited for each entry of the set before sorting it is cheaper. */
const visitsShare = 4;
/** An order is built when the set is no smaller than one in this many of the terms. */
const orderShare = 16;
/** Entries between two checks of the budget. */
const stride = 4096;
/** Memory of an entry that is found, until it is sorted. */
const foundBytes = 12;

/**
 * Returns the entries of the set, ascending: at least the first `count` in the order of `sort`, and with each all that
 * tie with it. Null: the set is better sorted.
 */
export function* firstInOrder(
  column: FieldColumn,
  set: EntrySet,
  sort: FieldSort,
  count: number,
  reader: IndexReader,
): Work<Uint32Array | null> {
  const kind = walkedKind(column, sort);
  const visitsMax = set.count / visitsShare;
  const expectedVisits = (count * reader.view.size) / set.count;
  if (kind === null || set.count < entriesMin || expectedVisits > visitsMax) return null;
  if (!column.hasOrder(kind) && set.count * orderShare < column.dictionary.count) return null;
  const order = yield* column.orderInSlices(kind, reader.budget);
  const heldBefore = reader.budget.heldBytes;
  const prefix = new Prefix(column, set, reader, visitsMax);
  const isFrontFirst = sort.nulls === null ? !sort.isDescending : sort.nulls === "first";
  if (isFrontFirst) yield* prefix.addWithoutValue();
  yield* prefix.addInOrder(order, sort.isDescending, count);
  if (!isFrontFirst && prefix.found.length < count) yield* prefix.addWithoutValue();
  reader.budget.release(reader.budget.heldBytes - heldBefore);
  if (prefix.visits > visitsMax) return null;
  return Uint32Array.from(prefix.found).sort();
}

/**
 * Returns the order whose terms are all values that the field is sorted by; null: it is sorted by more than terms in
 * one order.
 */
function walkedKind(column: FieldColumn, { form }: FieldSort): OrderKind | null {
  const { dictionary, hasSeveral, isPacked } = column;
  if (isPacked || hasSeveral || form === "alphaNumeric") return null;
  if (!sortsByValue(column, form)) return "bytes";
  if (dictionary.textCount > 0) return null;
  if (!dictionary.hasDates) return form === "double" || !dictionary.hasInexact ? "number" : null;
  return dictionary.hasNumbers ? null : "date";
}

class Prefix {
  readonly found: number[] = [];
  visits = 0;
  readonly #column: FieldColumn;
  readonly #set: EntrySet;
  readonly #reader: IndexReader;
  readonly #visitsMax: number;

  constructor(column: FieldColumn, set: EntrySet, reader: IndexReader, visitsMax: number) {
    this.#column = column;
    this.#set = set;
    this.#reader = reader;
    this.#visitsMax = visitsMax;
  }

  /** Adds the entries without a value to sort by: they tie, or nearly so. */
  *addWithoutValue(): Work<void> {
    yield* this.#addTerm(nullTerm);
    yield* this.#addTerm(objectTerm);
    const { emptyCount } = this.#column;
    if (emptyCount === 0) return;
    const { budget } = this.#reader;
    const entries = this.#set.toList();
    for (let from = 0; from < entries.length; from += stride) {
      const before = this.found.length;
      this.#addEmpty(entries, from, Math.min(from + stride, entries.length));
      budget.hold((this.found.length - before) * foundBytes);
      budget.spend(stride);
      if (budget.isDue) yield;
    }
  }

  #addEmpty(entries: Uint32Array, from: number, to: number): void {
    const { starts } = this.#column;
    for (let i = from; i < to; i++) {
      const entry = entries[i] as number;
      if (starts[entry] === starts[entry + 1]) this.found.push(entry);
    }
  }

  /** Adds the entries of terms in order, until there are `count` and the next term is another value. */
  *addInOrder(order: TermOrder, isDescending: boolean, count: number): Work<void> {
    const { terms } = order;
    const { length } = terms;
    const at = (i: number) => terms[isDescending ? length - 1 - i : i] as number;
    for (let i = 0; i < length && this.visits <= this.#visitsMax; i++) {
      const isEnough = this.found.length >= count;
      if (isEnough && (i === 0 || order.compare(at(i - 1), at(i)) !== 0)) return;
      yield* this.#addTerm(at(i));
    }
  }

  *#addTerm(term: number): Work<void> {
    const { budget } = this.#reader;
    const set = this.#set;
    let visited = 0;
    const before = this.found.length;
    for (let value = this.#column.firsts[term] ?? 0; value !== 0; ) {
      const { entries, nexts } = this.#column;
      const entry = entries[value - 1] as number;
      if (set.has(entry)) this.found.push(entry);
      value = nexts[value - 1] as number;
      if ((++visited & (stride - 1)) !== 0) continue;
      budget.spend(stride);
      if (budget.isDue) yield;
    }
    this.visits += visited + 1;
    budget.hold((this.found.length - before) * foundBytes);
    budget.spend((visited & (stride - 1)) + 1);
    if (budget.isDue) yield;
  }
}
