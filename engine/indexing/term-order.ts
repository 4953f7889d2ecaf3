/**
 * The terms of a dictionary in an order: of their bytes, of their numbers, or of their dates. Kept lazily: terms that came
 * since the last use are sorted and merged in when the order is asked for.
 *
 * Invariants:
 * - `terms[0, count)` are all terms of the order's kind that the dictionary had at the last `refresh`, ascending.
 * - `ranks[term]` counts the distinct values below it; terms that are equal in this order share a rank.
 *
 * Hot: bench/query.bench.ts.
 */
import { sortByKey } from "./packed.ts";
import type { PartReader, PartWriter } from "./saved-parts.ts";
import { dateKind, firstTerm, numberKind, type TermDictionary } from "./term-dictionary.ts";

/** bytes: every term as text; number, date: terms of that kind only. */
export type OrderKind = "bytes" | "number" | "date";

/** Groups of equal keys up to this size are sorted by comparing, larger ones by their next bytes. */
const compareCountMax = 48;

export class TermOrder {
  readonly kind: OrderKind;
  terms: Uint32Array = new Uint32Array(0);
  readonly #dictionary: TermDictionary;
  /** Terms below this number are in `terms`. */
  #seen = firstTerm;
  #ranks: Uint32Array | null = null;
  #rankCount = 0;

  constructor(kind: OrderKind, dictionary: TermDictionary) {
    this.kind = kind;
    this.#dictionary = dictionary;
  }

  /** Arrays of terms are replaced, never changed. */
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

  /** Takes in the terms that came since. Cost: sorting them, and a copy of the order. */
  refresh(): void {
    const dictionary = this.#dictionary;
    if (this.#seen === dictionary.count) return;
    const fresh = this.#freshTerms();
    this.#seen = dictionary.count;
    if (fresh.length === 0) return;
    this.#sort(fresh, 0, fresh.length, 0);
    this.terms = this.terms.length === 0 ? fresh : this.#merged(fresh);
    this.#ranks = null;
  }

  /** See the invariants. Terms of another kind have rank 0, like the smallest. */
  get ranks(): Uint32Array {
    if (this.#ranks !== null) return this.#ranks;
    const ranks = new Uint32Array(this.#dictionary.count);
    const terms = this.terms;
    let rank = 0;
    for (let i = 0; i < terms.length; i++) {
      if (i > 0 && this.compare(terms[i - 1] as number, terms[i] as number) !== 0) rank++;
      ranks[terms[i] as number] = rank;
    }
    this.#ranks = ranks;
    this.#rankCount = terms.length === 0 ? 0 : rank + 1;
    return ranks;
  }

  /** How many distinct ranks there are. */
  get rankCount(): number {
    void this.ranks;
    return this.#rankCount;
  }

  /** The order of two terms: negative, 0 when they are equal in it, positive. */
  compare(left: number, right: number): number {
    const dictionary = this.#dictionary;
    if (this.kind === "bytes") return dictionary.compareBytes(left, right);
    const a = dictionary.values[left] as number;
    const b = dictionary.values[right] as number;
    if (a !== b) return a < b ? -1 : 1;
    if (this.kind === "date") return dictionary.ticksOf(left) - dictionary.ticksOf(right);
    return Number.isSafeInteger(a) ? 0 : compareNumberTexts(dictionary, left, right);
  }

  /** The first position whose term is not below; `compareTo(term)` is the order of the term and what is sought. */
  lowerBound(compareTo: (term: number) => number): number {
    let low = 0;
    let high = this.terms.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compareTo(this.terms[middle] as number) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #freshTerms(): Uint32Array {
    const dictionary = this.#dictionary;
    const wanted = this.kind === "number" ? numberKind : dateKind;
    const fresh = new Uint32Array(dictionary.count - this.#seen);
    let count = 0;
    for (let term = this.#seen; term < dictionary.count; term++) {
      if (this.kind === "bytes" || dictionary.kindOf(term) === wanted) fresh[count++] = term;
    }
    return fresh.slice(0, count);
  }

  /** Sorts `terms[from, to)`, which are equal in their first `depth` bytes. */
  #sort(terms: Uint32Array, from: number, to: number, depth: number): void {
    if (to - from <= compareCountMax) {
      terms.subarray(from, to).sort((a, b) => this.compare(a, b) || a - b);
      return;
    }
    if (this.kind === "bytes") this.#sortBytes(terms, from, to, depth);
    else this.#sortValues(terms.subarray(from, to));
  }

  /** One round of radix sorting by four bytes, then each group of equals by the next four. */
  #sortBytes(terms: Uint32Array, from: number, to: number, depth: number): void {
    const dictionary = this.#dictionary;
    const keys = new Uint32Array(to - from);
    const order = new Uint32Array(to - from);
    const items = terms.slice(from, to);
    for (let i = 0; i < items.length; i++) {
      keys[i] = dictionary.bytesAt(items[i] as number, depth);
      order[i] = i;
    }
    sortByKey(order, order.length, keys);
    for (let i = 0; i < order.length; i++) terms[from + i] = items[order[i] as number] as number;
    let start = 0;
    for (let i = 1; i <= order.length; i++) {
      if (i < order.length && keys[order[i] as number] === keys[order[start] as number]) continue;
      if (i - start > 1) this.#sortGroup(terms, from + start, from + i, depth + 4);
      start = i;
    }
  }

  #sortGroup(terms: Uint32Array, from: number, to: number, depth: number): void {
    for (let i = from; i < to; i++) {
      if (this.#dictionary.lengthOf(terms[i] as number) > depth) {
        this.#sort(terms, from, to, depth);
        return;
      }
    }
    // All end within these bytes: they differ in their length (a byte 0 at the end) or in their kind.
    terms.subarray(from, to).sort((a, b) => this.compare(a, b) || a - b);
  }

  #sortValues(terms: Uint32Array): void {
    const { values } = this.#dictionary;
    const pairs = new Float64Array(terms.length);
    for (let i = 0; i < terms.length; i++) pairs[i] = values[terms[i] as number] as number;
    const high = new Uint32Array(terms.length);
    const low = new Uint32Array(terms.length);
    const words = new Uint32Array(pairs.buffer);
    const order = new Uint32Array(terms.length);
    for (let i = 0; i < terms.length; i++) {
      // A double's bits order as integers once negatives are inverted and positives get the sign bit.
      const upper = words[2 * i + 1] as number;
      const lower = words[2 * i] as number;
      high[i] = upper >>> 31 === 1 ? ~upper : upper | 0x80000000;
      low[i] = upper >>> 31 === 1 ? ~lower : lower;
      order[i] = i;
    }
    sortByKey(order, order.length, low);
    sortByKey(order, order.length, high);
    const items = terms.slice();
    for (let i = 0; i < order.length; i++) terms[i] = items[order[i] as number] as number;
    this.#sortEqualValues(terms);
  }

  /** Equal doubles may differ in their ticks, or in digits that a double does not hold. */
  #sortEqualValues(terms: Uint32Array): void {
    const { values } = this.#dictionary;
    let start = 0;
    for (let i = 1; i <= terms.length; i++) {
      if (i < terms.length && values[terms[i] as number] === values[terms[start] as number])
        continue;
      if (i - start > 1) terms.subarray(start, i).sort((a, b) => this.compare(a, b) || a - b);
      start = i;
    }
  }

  #merged(fresh: Uint32Array): Uint32Array {
    const old = this.terms;
    const merged = new Uint32Array(old.length + fresh.length);
    let from = 0;
    let at = 0;
    for (let i = 0; i < fresh.length; i++) {
      const term = fresh[i] as number;
      const bound = this.lowerBound((other) => this.compare(other, term) || other - term);
      merged.set(old.subarray(from, bound), at);
      at += bound - from;
      from = bound;
      merged[at++] = term;
    }
    merged.set(old.subarray(from), at);
    return merged;
  }
}

function compareNumberTexts(dictionary: TermDictionary, left: number, right: number): number {
  const a = dictionary.textOf(left);
  const b = dictionary.textOf(right);
  if (!/^-?\d+$/.test(a) || !/^-?\d+$/.test(b)) return 0;
  const difference = BigInt(a) - BigInt(b);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}
