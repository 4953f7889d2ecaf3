/**
 * The terms of a dictionary in an order: by bytes, by number, or by date. Maintained lazily: terms added since the last
 * use are sorted and merged on demand, as work that pauses; terms added in the meantime wait for the next use.
 *
 * Invariants:
 * - `terms[0, count)` are all terms of the order's type that the dictionary had at the last `refresh`, ascending.
 * - `ranks[term]` counts the distinct values below it; terms that are equal in this order share a rank.
 *
 * Hot: bench/scan.bench.ts.
 */
import { partitionPoint } from "../../base/partition-point.ts";
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import type { PartReader, PartWriter } from "../saved/saved-parts.ts";
import { slicedSort, slicedSortByKey } from "./sliced-sort.ts";
import { dateKind, firstTerm, numberKind, type TermDictionary } from "./term-dictionary.ts";

/** bytes: every term as text; number, date: terms of that kind only. */
export type OrderKind = "bytes" | "number" | "date";

/** Terms between two checks of the budget. */
const stride = 1024;
/** Groups of equal keys up to this size are sorted by comparison, larger ones by their next bytes. */
const compareCountMax = 48;

/** Cost of finding the position of a term. */
const mergedUnits = 16;

/** Terms `[from, to)` of an order that are equal in their first `depth` bytes. */
interface SortGroup {
  readonly from: number;
  readonly to: number;
  readonly depth: number;
}

export class TermOrder {
  readonly kind: OrderKind;
  terms: Uint32Array = new Uint32Array(0);
  readonly #dictionary: TermDictionary;
  /** Terms below this number have been merged into `terms`. */
  #seen = firstTerm;
  #ranks: Uint32Array | null = null;

  constructor(kind: OrderKind, dictionary: TermDictionary) {
    this.kind = kind;
    this.#dictionary = dictionary;
  }

  /** Saved by reference: arrays of terms are replaced, never modified. */
  save(parts: PartWriter): void {
    parts.set("seen", this.#seen);
    parts.add("terms", this.terms);
  }

  restore(parts: PartReader): void {
    this.#seen = parts.get<number>("seen");
    this.terms = parts.uint32("terms");
  }

  get isCurrent(): boolean {
    return this.#seen === this.#dictionary.count;
  }

  /** Merges in the terms added since. Cost: sorting them, and a copy of the order. */
  *refresh(budget: WorkBudget): Work<void> {
    while (!this.isCurrent) {
      const { count } = this.#dictionary;
      const seen = this.#seen;
      const fresh = yield* this.#sorted(this.#freshTerms(count), budget);
      const hasNone = fresh.length === 0;
      const merged = hasNone ? this.terms : yield* this.#merged(this.terms, fresh, budget);
      // Another query may have refreshed it in the meantime.
      if (this.#seen !== seen) continue;
      this.#seen = count;
      if (hasNone) return;
      this.terms = merged;
      this.#ranks = null;
      return;
    }
  }

  /** By term: see the invariants. Terms of another kind have rank 0, like the smallest. */
  *ranks(budget: WorkBudget): Work<Uint32Array> {
    if (this.#ranks !== null) return this.#ranks;
    const { terms } = this;
    const ranks = new Uint32Array(this.#dictionary.count);
    let rank = 0;
    for (let i = 0; i < terms.length; i++) {
      if (i > 0 && this.compare(terms[i - 1] as number, terms[i] as number) !== 0) rank++;
      ranks[terms[i] as number] = rank;
      if ((i & (stride - 1)) !== 0) continue;
      budget.spend(stride);
      if (budget.isDue) yield;
    }
    if (terms === this.terms) this.#ranks = ranks;
    return ranks;
  }

  /** Compares two terms in this order: negative, 0 when equal, positive. */
  compare(left: number, right: number): number {
    const dictionary = this.#dictionary;
    if (this.kind === "bytes") return dictionary.compareBytes(left, right);
    const a = dictionary.values[left] as number;
    const b = dictionary.values[right] as number;
    if (a !== b) return a < b ? -1 : 1;
    if (this.kind === "date") return dictionary.ticksOf(left) - dictionary.ticksOf(right);
    return Number.isSafeInteger(a) ? 0 : compareNumberTexts(dictionary, left, right);
  }

  /**
   * Returns the first position whose term is not below the target; `compareTo(term)` compares the term with the target.
   */
  lowerBound(compareTo: (term: number) => number): number {
    return lowerBound(this.terms, compareTo);
  }

  #freshTerms(end: number): Uint32Array {
    const dictionary = this.#dictionary;
    const wanted = this.kind === "number" ? numberKind : dateKind;
    const fresh = new Uint32Array(end - this.#seen);
    let count = 0;
    for (let term = this.#seen; term < end; term++) {
      if (this.kind === "bytes" || dictionary.kindOf(term) === wanted) fresh[count++] = term;
    }
    return fresh.slice(0, count);
  }

  *#sorted(terms: Uint32Array, budget: WorkBudget): Work<Uint32Array> {
    if (terms.length <= compareCountMax) terms.sort((a, b) => this.compare(a, b) || a - b);
    else if (this.kind === "bytes") yield* this.#sortBytes(terms, budget);
    else yield* this.#sortValues(terms, budget);
    return terms;
  }

  /** MSD radix sort by four bytes at a time: all terms, then each group of equals by the next four, and so on. */
  *#sortBytes(terms: Uint32Array, budget: WorkBudget): Work<void> {
    const groups = [{ from: 0, to: terms.length, depth: 0 }];
    for (let group = groups.pop(); group !== undefined; group = groups.pop()) {
      const { from, to, depth } = group;
      if (to - from <= compareCountMax || !this.#isLonger(terms, from, to, depth)) {
        // Terms that end within these bytes differ in length (a byte 0 at the end) or in kind.
        terms.subarray(from, to).sort((a, b) => this.compare(a, b) || a - b);
      } else yield* this.#sortRound(terms, group, groups, budget);
      budget.spend(to - from);
      if (budget.isDue) yield;
    }
  }

  *#sortRound(
    terms: Uint32Array,
    { from, to, depth }: SortGroup,
    groups: SortGroup[],
    budget: WorkBudget,
  ): Work<void> {
    const keys = this.#keysOf(terms, from, to, depth);
    let order: Uint32Array = new Uint32Array(to - from);
    for (let i = 0; i < order.length; i++) order[i] = i;
    order = yield* slicedSortByKey(order, keys, budget);
    const items = terms.slice(from, to);
    for (let i = 0; i < order.length; i++) terms[from + i] = items[order[i] as number] as number;
    let start = 0;
    for (let i = 1; i <= order.length; i++) {
      if (i < order.length && keys[order[i] as number] === keys[order[start] as number]) continue;
      if (i - start > 1) groups.push({ from: from + start, to: from + i, depth: depth + 4 });
      start = i;
    }
  }

  #keysOf(terms: Uint32Array, from: number, to: number, depth: number): Uint32Array {
    const dictionary = this.#dictionary;
    const keys = new Uint32Array(to - from);
    for (let i = from; i < to; i++) {
      keys[i - from] = dictionary.bytesAt(terms[i] as number, depth);
    }
    return keys;
  }

  #isLonger(terms: Uint32Array, from: number, to: number, depth: number): boolean {
    for (let i = from; i < to; i++) {
      if (this.#dictionary.lengthOf(terms[i] as number) > depth) return true;
    }
    return false;
  }

  *#sortValues(terms: Uint32Array, budget: WorkBudget): Work<void> {
    const { high, low } = this.#valueKeys(terms);
    let order: Uint32Array = new Uint32Array(terms.length);
    for (let i = 0; i < order.length; i++) order[i] = i;
    order = yield* slicedSortByKey(order, low, budget);
    order = yield* slicedSortByKey(order, high, budget);
    const items = terms.slice();
    for (let i = 0; i < order.length; i++) terms[i] = items[order[i] as number] as number;
    yield* this.#sortEqualValues(terms, budget);
  }

  #valueKeys(terms: Uint32Array): { readonly high: Uint32Array; readonly low: Uint32Array } {
    const { values } = this.#dictionary;
    const pairs = new Float64Array(terms.length);
    for (let i = 0; i < terms.length; i++) pairs[i] = values[terms[i] as number] as number;
    const high = new Uint32Array(terms.length);
    const low = new Uint32Array(terms.length);
    const words = new Uint32Array(pairs.buffer);
    for (let i = 0; i < terms.length; i++) {
      // The bits of a double sort as integers once negatives are inverted and positives get the sign bit.
      const upper = words[2 * i + 1] as number;
      const lower = words[2 * i] as number;
      high[i] = upper >>> 31 === 1 ? ~upper : upper | 0x80000000;
      low[i] = upper >>> 31 === 1 ? ~lower : lower;
    }
    return { high, low };
  }

  /** Equal doubles may differ in their ticks, or in digits beyond the precision of a double. */
  *#sortEqualValues(terms: Uint32Array, budget: WorkBudget): Work<void> {
    const { values } = this.#dictionary;
    let start = 0;
    for (let i = 1; i <= terms.length; i++) {
      if (i < terms.length && values[terms[i] as number] === values[terms[start] as number])
        continue;
      if (i - start > 1) {
        const equal = terms.subarray(start, i);
        const byText = (a: number, b: number) => this.compare(a, b) || a - b;
        equal.set(yield* slicedSort(equal.slice(), byText, budget));
      }
      start = i;
      budget.spend(1);
      if (budget.isDue) yield;
    }
  }

  *#merged(old: Uint32Array, fresh: Uint32Array, budget: WorkBudget): Work<Uint32Array> {
    if (old.length === 0) return fresh;
    const merged = new Uint32Array(old.length + fresh.length);
    let from = 0;
    let at = 0;
    for (let i = 0; i < fresh.length; i++) {
      const term = fresh[i] as number;
      const bound = lowerBound(old, (other) => this.compare(other, term) || other - term);
      merged.set(old.subarray(from, bound), at);
      at += bound - from;
      from = bound;
      merged[at++] = term;
      budget.spend(mergedUnits);
      if (budget.isDue) yield;
    }
    merged.set(old.subarray(from), at);
    return merged;
  }
}

function lowerBound(terms: Uint32Array, compareTo: (term: number) => number): number {
  return partitionPoint(0, terms.length, (at) => compareTo(terms[at] as number) < 0);
}

/**
 * Numbers beyond 2^53 with the same double are ordered by their whole parts, as ranges compare them. Texts with a fraction
 * or an exponent have one, too: if they were equal to all others, this would be no order, and merging would lose terms.
 */
function compareNumberTexts(dictionary: TermDictionary, left: number, right: number): number {
  const a = wholePart(dictionary.textOf(left));
  const b = wholePart(dictionary.textOf(right));
  return a < b ? -1 : a > b ? 1 : 0;
}

const longMax = 2n ** 63n - 1n;
const longMin = -(2n ** 63n);

/** Returns the whole part of a number in decimal notation, limited to 64 bits; 0 beyond the doubles. */
export function wholePart(text: string): bigint {
  if (/^-?\d+(\.\d*)?$/.test(text)) return clamped(BigInt(text.split(".")[0] as string));
  const value = Math.trunc(Number(text));
  return Number.isFinite(value) ? clamped(BigInt(value)) : 0n;
}

function clamped(value: bigint): bigint {
  return value > longMax ? longMax : value < longMin ? longMin : value;
}
