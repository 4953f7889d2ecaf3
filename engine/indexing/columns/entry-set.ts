/**
 * A set of entry numbers of one index: the result of a condition. Small sets are sorted lists, large ones bitmaps. Has
 * no knowledge of the contents of entries.
 *
 * Invariants:
 * - A set is immutable once an operation has returned it.
 * - `list` is strictly ascending; bits at and above the size of the index are 0.
 */

/** A set with more than one in this many of the index's entries becomes a bitmap. */
const sparseFactor = 64;

export class EntrySet {
  /** Null: the set is in `words`. */
  readonly list: Uint32Array | null;
  readonly words: Uint32Array | null;
  readonly count: number;

  private constructor(list: Uint32Array | null, words: Uint32Array | null, count: number) {
    this.list = list;
    this.words = words;
    this.count = count;
  }

  static readonly empty = new EntrySet(new Uint32Array(0), null, 0);

  /** Takes ownership of the array, which must be strictly ascending. */
  static ofSorted(list: Uint32Array): EntrySet {
    return list.length === 0 ? EntrySet.empty : new EntrySet(list, null, list.length);
  }

  /** Takes ownership of the bitmap. */
  static ofWords(words: Uint32Array): EntrySet {
    return new EntrySet(null, words, countBits(words));
  }

  has(entry: number): boolean {
    if (this.words !== null) {
      return ((this.words[entry >>> 5] ?? 0) & (1 << (entry & 31))) !== 0;
    }
    const list = this.list as Uint32Array;
    const at = lowerBound(list, entry);
    return at < list.length && list[at] === entry;
  }

  /** Returns the first `count` entries in ascending order; the array must not be changed. */
  first(count: number): Uint32Array {
    const { list } = this;
    if (list !== null) return count >= list.length ? list : list.subarray(0, Math.max(0, count));
    return listOf(this.words as Uint32Array, Math.max(0, Math.min(count, this.count)));
  }

  /** Returns the entries in ascending order; the array must not be changed. */
  toList(): Uint32Array {
    return this.list ?? listOf(this.words as Uint32Array, this.count);
  }
}

/** Builds a set from entries in any order, with repeats. */
export class EntrySetBuilder {
  readonly #wordCount: number;
  readonly #sparseMax: number;
  #list: Uint32Array;
  #count = 0;
  #words: Uint32Array | null = null;
  #hasDead = false;

  /** `size`: entry numbers are below it. `expected`: about how many there will be, if that is known. */
  constructor(size: number, expected = 16) {
    this.#list = new Uint32Array(Math.max(1, expected));
    this.#wordCount = (size + 31) >>> 5;
    this.#sparseMax = Math.max(16, Math.floor(size / sparseFactor));
  }

  add(entry: number): void {
    if (this.#words !== null) {
      const at = entry >>> 5;
      this.#words[at] = (this.#words[at] as number) | (1 << (entry & 31));
      return;
    }
    if (this.#count === this.#list.length) {
      if (this.#count >= this.#sparseMax) {
        this.#toWords();
        this.add(entry);
        return;
      }
      const larger = new Uint32Array(this.#count * 2);
      larger.set(this.#list);
      this.#list = larger;
    }
    this.#list[this.#count++] = entry;
  }

  /** Adds a large bitmap, which may include dead entries; see `finishLive`. */
  addBits(bits: Uint32Array): void {
    const words = this.#wide();
    for (let i = 0; i < words.length; i++) words[i] = (words[i] as number) | (bits[i] ?? 0);
  }

  /**
   * Returns the set as a bitmap to which many entries can be added, including dead ones; see `finishLive`. Bits beyond
   * its end are lost. Null while the set is small, unless `isMany` announces many entries.
   */
  bits(isMany: boolean): Uint32Array | null {
    return isMany || this.#words !== null ? this.#wide() : null;
  }

  /** Adds those of the first `count` entries that are below `end` and have a bit in `live`. */
  addLive(entries: Uint32Array, count: number, live: Uint32Array, end: number): void {
    for (let i = 0; i < count; i++) {
      const entry = entries[i] as number;
      if (entry >= end) return;
      if (((live[entry >>> 5] as number) & (1 << (entry & 31))) !== 0) this.add(entry);
    }
  }

  /** Adds all entries of a set. */
  addSet({ list, words: added }: EntrySet): void {
    if (added === null) {
      for (const entry of list as Uint32Array) this.add(entry);
      return;
    }
    if (this.#words === null) this.#toWords();
    const words = this.#words as unknown as Uint32Array;
    for (let i = 0; i < added.length; i++) words[i] = (words[i] as number) | (added[i] as number);
  }

  /** Returns the set without entries that are not in `live`. */
  finishLive(live: Uint32Array): EntrySet {
    if (this.#hasDead) {
      const words = this.#wide();
      for (let i = 0; i < words.length; i++) words[i] = (words[i] as number) & (live[i] as number);
    }
    return this.finish();
  }

  finish(): EntrySet {
    if (this.#words !== null) return EntrySet.ofWords(this.#words);
    const all = this.#list;
    const list = this.#count === all.length ? all : all.subarray(0, this.#count);
    // The entries of a term are in descending order.
    if (isDescending(list)) list.reverse();
    if (isAscending(list)) return EntrySet.ofSorted(list);
    list.sort();
    let kept = 0;
    for (let i = 0; i < list.length; i++) {
      if (i > 0 && list[i] === list[i - 1]) continue;
      list[kept++] = list[i] as number;
    }
    return EntrySet.ofSorted(list.subarray(0, kept));
  }

  /** Returns the words, to which dead entries may be added. */
  #wide(): Uint32Array {
    this.#hasDead = true;
    if (this.#words === null) this.#toWords();
    return this.#words as unknown as Uint32Array;
  }

  #toWords(): void {
    const words = new Uint32Array(this.#wordCount);
    for (let i = 0; i < this.#count; i++) {
      const entry = this.#list[i] as number;
      words[entry >>> 5] = (words[entry >>> 5] as number) | (1 << (entry & 31));
    }
    this.#words = words;
  }
}

function isAscending(list: Uint32Array): boolean {
  for (let i = 1; i < list.length; i++) {
    if ((list[i - 1] as number) >= (list[i] as number)) return false;
  }
  return true;
}

function isDescending(list: Uint32Array): boolean {
  for (let i = 1; i < list.length; i++) {
    if ((list[i - 1] as number) <= (list[i] as number)) return false;
  }
  return true;
}

export function intersection(left: EntrySet, right: EntrySet): EntrySet {
  if (left.list === null && right.list === null) return wordwise(left, right, andWords);
  if (left.list !== null && (right.list === null || left.count <= right.count)) {
    return restricted(left.list, right, true);
  }
  return restricted(right.list as Uint32Array, left, true);
}

export function union(left: EntrySet, right: EntrySet): EntrySet {
  if (left.count === 0) return right;
  if (right.count === 0) return left;
  if (left.list !== null && right.list !== null) return mergedLists(left.list, right.list);
  if (left.list === null && right.list === null) return wordwise(left, right, orWords);
  const words = (left.words ?? (right.words as Uint32Array)).slice();
  const list = left.list ?? (right.list as Uint32Array);
  for (const entry of list)
    words[entry >>> 5] = (words[entry >>> 5] as number) | (1 << (entry & 31));
  return EntrySet.ofWords(words);
}

/** Returns the entries of `left` that are not in `right`. */
export function difference(left: EntrySet, right: EntrySet): EntrySet {
  if (right.count === 0 || left.count === 0) return left;
  if (left.list !== null) return restricted(left.list, right, false);
  if (right.list === null) return wordwise(left, right, andNotWords);
  const words = (left.words as Uint32Array).slice();
  for (const entry of right.list) {
    words[entry >>> 5] = (words[entry >>> 5] as number) & ~(1 << (entry & 31));
  }
  return EntrySet.ofWords(words);
}

function restricted(list: Uint32Array, other: EntrySet, isKept: boolean): EntrySet {
  const kept = new Uint32Array(list.length);
  let count = 0;
  for (const entry of list) if (other.has(entry) === isKept) kept[count++] = entry;
  return EntrySet.ofSorted(kept.subarray(0, count));
}

function mergedLists(left: Uint32Array, right: Uint32Array): EntrySet {
  const merged = new Uint32Array(left.length + right.length);
  let count = 0;
  let i = 0;
  let k = 0;
  while (i < left.length || k < right.length) {
    const a = i < left.length ? (left[i] as number) : Number.POSITIVE_INFINITY;
    const b = k < right.length ? (right[k] as number) : Number.POSITIVE_INFINITY;
    merged[count++] = a < b ? a : b;
    if (a <= b) i++;
    if (b <= a) k++;
  }
  return EntrySet.ofSorted(merged.subarray(0, count));
}

type WordLoop = (left: Uint32Array, right: Uint32Array, result: Uint32Array) => void;

function wordwise(left: EntrySet, right: EntrySet, loop: WordLoop): EntrySet {
  const a = left.words as Uint32Array;
  const b = right.words as Uint32Array;
  const result = new Uint32Array(Math.max(a.length, b.length));
  loop(a, b, result);
  return EntrySet.ofWords(result);
}

function andWords(a: Uint32Array, b: Uint32Array, result: Uint32Array): void {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) result[i] = (a[i] as number) & (b[i] as number);
}

function orWords(a: Uint32Array, b: Uint32Array, result: Uint32Array): void {
  for (let i = 0; i < result.length; i++) result[i] = (a[i] ?? 0) | (b[i] ?? 0);
}

function andNotWords(a: Uint32Array, b: Uint32Array, result: Uint32Array): void {
  for (let i = 0; i < a.length; i++) result[i] = (a[i] as number) & ~(b[i] ?? 0);
}

export function countBits(words: Uint32Array): number {
  let count = 0;
  for (let i = 0; i < words.length; i++) {
    let word = words[i] as number;
    word -= (word >>> 1) & 0x55555555;
    word = (word & 0x33333333) + ((word >>> 2) & 0x33333333);
    count += (((word + (word >>> 4)) & 0x0f0f0f0f) * 0x01010101) >>> 24;
  }
  return count;
}

/** Returns the first `count` entries of a bitmap, which must have as many. */
function listOf(words: Uint32Array, count: number): Uint32Array {
  const list = new Uint32Array(count);
  let at = 0;
  for (let i = 0; at < count; i++) {
    let word = words[i] as number;
    while (word !== 0 && at < count) {
      const low = word & -word;
      list[at++] = i * 32 + (31 - Math.clz32(low));
      word ^= low;
    }
  }
  return list;
}

/** Returns the first position whose element is not below `entry`. */
function lowerBound(list: Uint32Array, entry: number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((list[middle] as number) < entry) low = middle + 1;
    else high = middle;
  }
  return low;
}
