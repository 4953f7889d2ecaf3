/**
 * One field of one index: for each entry the terms of its values, and for each term its posting list. Packed and
 * append-only: the values of a removed entry stay until the index is compacted (entry-store.ts).
 *
 *   entry ──starts──► [term term term]   the entry's values, in the order of the document
 *   term ──first──► value ──next──► value …   the same values as one list for each term, ascending
 *
 * The position of a value inside its entry is the position of a word in a text; a gap separates values that must not
 * match as a phrase.
 *
 * Invariants:
 * - Entries are appended in ascending order; the values of an entry are adjacent.
 * - The list of a term is in ascending order of values, and so of entries.
 *
 * Hot: bench/scan.bench.ts.
 */
import { assert } from "../../base/assert.ts";
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import type { PartReader, PartWriter } from "../saved/saved-parts.ts";
import { grownUint32 } from "./packed.ts";
import { restoreStride, type StoreColumn } from "./store-column.ts";
import {
  dateKind,
  firstTerm,
  gapTerm,
  numberKind,
  TermDictionary,
  textKind,
} from "./term-dictionary.ts";
import { type OrderKind, TermOrder } from "./term-order.ts";

const kinds = [textKind, numberKind, dateKind];

export class FieldColumn implements StoreColumn {
  readonly dictionary = new TermDictionary();
  /** Number of appended entries. */
  entryCount = 0;
  valueCount = 0;
  /** By entry: its values are [starts[e], starts[e + 1]). */
  starts: Uint32Array = new Uint32Array(17);
  /** By value. */
  terms: Uint32Array = new Uint32Array(16);
  entries: Uint32Array = new Uint32Array(16);
  /** By value: the next value of the same term, plus one; 0 ends the list. */
  nexts: Uint32Array = new Uint32Array(16);
  /** By term: the first and last value, plus one; 0 if the term has no value. */
  firsts: Uint32Array = new Uint32Array(16);
  lasts: Uint32Array = new Uint32Array(16);
  /** By term: number of values, including values of removed entries. */
  counts: Uint32Array = new Uint32Array(16);
  /** Whether some entry has, or had, several values. */
  hasSeveral = false;
  /** Number of entries without a value, including removed ones. */
  emptyCount = 0;
  /** Whether the values are packed (text-column.ts): the arrays by value and by entry are then empty. */
  readonly isPacked: boolean = false;
  readonly #orders = new Map<OrderKind, TermOrder>();

  /** Adds a value to the entry that `endEntry` will end. */
  add(term: number): void {
    const value = this.valueCount++;
    if (value >= this.terms.length) {
      this.terms = grownUint32(this.terms, value + 1);
      this.entries = grownUint32(this.entries, value + 1);
      this.nexts = grownUint32(this.nexts, value + 1);
    }
    this.terms[value] = term;
    this.entries[value] = this.entryCount;
  }

  repeats(entry: number): boolean {
    const from = this.starts[this.entryCount] as number;
    const before = this.starts[entry] as number;
    const count = this.valueCount - from;
    if ((this.starts[entry + 1] as number) - before !== count) return false;
    for (let i = 0; i < count; i++) {
      if (this.terms[from + i] !== this.terms[before + i]) return false;
    }
    return true;
  }

  dropPending(): void {
    this.valueCount = this.starts[this.entryCount] as number;
  }

  #link(term: number, value: number): void {
    if (term >= this.firsts.length) this.#growTerms(term);
    const last = this.lasts[term] as number;
    if (last === 0) this.firsts[term] = value + 1;
    else this.nexts[last - 1] = value + 1;
    this.lasts[term] = value + 1;
    this.counts[term] = (this.counts[term] as number) + 1;
  }

  endEntry(): void {
    const entry = this.entryCount++;
    const from = this.starts[entry] as number;
    for (let value = from; value < this.valueCount; value++) {
      const term = this.terms[value] as number;
      if (term !== gapTerm) this.#link(term, value);
    }
    const count = this.valueCount - from;
    if (count > 1) this.hasSeveral = true;
    else if (count === 0) this.emptyCount++;
    if (entry + 1 >= this.starts.length) this.starts = grownUint32(this.starts, entry + 2);
    this.starts[entry + 1] = this.valueCount;
  }

  /** Returns the terms that have a text, of whatever kinds. */
  termsOfText(text: string): number[] {
    const terms = kinds.map((kind) => this.dictionary.findText(kind, text));
    return terms.filter((term) => term >= 0);
  }

  /** Returns the number of values of an entry. */
  lengthOf(entry: number): number {
    return (this.starts[entry + 1] as number) - (this.starts[entry] as number);
  }

  /** Returns the terms of an entry's values, in order; valid until the next call. */
  termsOf(entry: number): Uint32Array {
    return this.terms.subarray(this.starts[entry], this.starts[entry + 1]);
  }

  /** Yields the entries of a term, ascending; an entry that has the term several times may be repeated. */
  *entriesOf(term: number): Generator<number> {
    for (let at = this.firsts[term] ?? 0; at !== 0; at = this.nexts[at - 1] as number) {
      yield this.entries[at - 1] as number;
    }
  }

  /** An entry is no longer live. */
  removed(_entry: number): void {}

  /** Returns the order of this type, updated with all terms. */
  *orderInSlices(kind: OrderKind, budget: WorkBudget): Work<TermOrder> {
    let order = this.#orders.get(kind);
    if (order === undefined) {
      order = new TermOrder(kind, this.dictionary);
      this.#orders.set(kind, order);
    }
    if (!order.isCurrent) yield* order.refresh(budget);
    return order;
  }

  /** Returns an order for comparing terms, containing none. */
  emptyOrder(kind: OrderKind): TermOrder {
    return new TermOrder(kind, this.dictionary);
  }

  /** True when `orderInSlices(kind)` costs nothing. */
  hasOrder(kind: OrderKind): boolean {
    return this.#orders.get(kind)?.isCurrent === true;
  }

  empty(): FieldColumn {
    return new FieldColumn();
  }

  copierTo(target: FieldColumn): (entry: number) => void {
    /** By term: its number in the target; 0: not copied yet. */
    let mapped: Uint32Array = new Uint32Array(this.dictionary.count);
    return (entry) => {
      if (mapped.length < this.dictionary.count) {
        mapped = grownUint32(mapped, this.dictionary.count);
      }
      const end = this.starts[entry + 1] as number;
      for (let value = this.starts[entry] as number; value < end; value++) {
        const term = this.terms[value] as number;
        if (term >= firstTerm && mapped[term] === 0) {
          mapped[term] = target.dictionary.internFrom(this.dictionary, term);
        }
        target.add(term < firstTerm ? term : (mapped[term] as number));
      }
    };
  }

  save(parts: PartWriter): void {
    parts.set("valueCount", this.valueCount);
    parts.add("starts", this.starts.subarray(0, this.entryCount + 1));
    parts.add("terms", this.terms.subarray(0, this.valueCount));
    this.saveTerms(parts);
  }

  /** Saves the dictionary and its orders. */
  protected saveTerms(parts: PartWriter): void {
    parts.set("orders", [...this.#orders.keys()]);
    for (const [kind, order] of this.#orders) order.save(parts.under(`order-${kind}`));
    this.dictionary.save(parts.under("dictionary"));
  }

  /** Restores the output of `saveTerms`. */
  protected *restoreTerms(parts: PartReader): Generator<void> {
    yield* this.dictionary.restore(parts.under("dictionary"));
    for (const kind of parts.get<OrderKind[]>("orders")) {
      const order = new TermOrder(kind, this.dictionary);
      order.restore(parts.under(`order-${kind}`));
      this.#orders.set(kind, order);
    }
  }

  *restore(parts: PartReader): Generator<void> {
    yield* this.restoreTerms(parts);
    this.#growTerms(this.dictionary.count);
    this.starts = parts.uint32("starts");
    this.terms = parts.uint32("terms");
    this.entryCount = this.starts.length - 1;
    this.valueCount = parts.get<number>("valueCount");
    this.entries = new Uint32Array(this.valueCount);
    this.nexts = new Uint32Array(this.valueCount);
    for (let from = 0; from < this.entryCount; from += restoreStride) {
      yield;
      this.#restoreLists(from, Math.min(from + restoreStride, this.entryCount));
    }
  }

  /** Rebuilds the posting lists of entries [from, to). Hot: a snapshot has millions of values. */
  #restoreLists(from: number, to: number): void {
    const { starts, terms, entries, nexts, firsts, lasts, counts } = this;
    let value = starts[from] as number;
    for (let entry = from; entry < to; entry++) {
      const end = starts[entry + 1] as number;
      if (end - value > 1) this.hasSeveral = true;
      else if (end === value) this.emptyCount++;
      for (; value < end; value++) {
        entries[value] = entry;
        const term = terms[value] as number;
        if (term === gapTerm) continue;
        const last = lasts[term] as number;
        if (last === 0) firsts[term] = value + 1;
        else nexts[last - 1] = value + 1;
        lasts[term] = value + 1;
        counts[term] = (counts[term] as number) + 1;
      }
    }
  }

  checkInvariants(): void {
    this.dictionary.checkInvariants();
    let listed = 0;
    for (let term = 1; term < this.dictionary.count; term++) {
      let previous = 0;
      let count = 0;
      for (let at = this.firsts[term] ?? 0; at !== 0; at = this.nexts[at - 1] as number) {
        assert(at > previous, "the list of a term ascends");
        assert(this.terms[at - 1] === term, "the list of a term has its values only");
        previous = at;
        count++;
      }
      assert(count === (this.counts[term] ?? 0), "the count of a term is the length of its list");
      listed += count;
    }
    let gaps = 0;
    for (let value = 0; value < this.valueCount; value++) if (this.terms[value] === gapTerm) gaps++;
    assert(listed + gaps === this.valueCount, "every value but gaps is in one list");
  }

  #growTerms(term: number): void {
    this.firsts = grownUint32(this.firsts, term + 1);
    this.lasts = grownUint32(this.lasts, term + 1);
    this.counts = grownUint32(this.counts, term + 1);
  }
}
