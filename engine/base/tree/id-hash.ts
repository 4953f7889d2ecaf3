/**
 * Maps an id's bytes to its document number: extendible hashing over packed pages. Growth splits one page at a time, so
 * no insertion pauses to rehash the whole table.
 *
 *   page (i32): depth | count | capacity | epoch | hash, place, docNum | hash, place, docNum | ...
 *
 * The directory's entry for the upper bits of a hash points to the page; in it, linear probing starts from the lower
 * bits. The place is that of the id in the slab, 0 in a free slot; with the number beside it, a document's row can be
 * read while its id is still being compared. A removal leaves no tombstone: the entries after it are shifted back.
 * Nearly empty pages are merged with their siblings, or shrink.
 *
 * Invariants:
 * - A page of depth d is in 2^(directory depth - d) adjacent entries of the directory, and all hashes in it share their
 *   upper d bits.
 * - The load factor of a page is at most 4/5.
 * - While the table is frozen, pages older than the freeze are copied on write.
 */
import { assert } from "../assert.ts";
import type { IdKey } from "./id-key.ts";
import type { IdSlab } from "./id-slab.ts";
import { type ByteReader, bytesOf } from "./sections.ts";

const headInts = 4;
const slotInts = 3;
const depthAt = 0;
const countAt = 1;
const capacityAt = 2;
const epochAt = 3;
const capacityMin = 16;
/** Beyond this depth pages grow instead: only ids constructed to collide get there. */
const depthMax = 20;

export class IdHash {
  readonly #slab: IdSlab;
  readonly #capacityMax: number;
  #directory: Int32Array[];
  #depth = 0;
  #epoch = 0;
  #freezeCount = 0;
  #candidatePlace = 0;
  #count = 0;

  /** @param capacityMax - slots of a page before it splits; a power of two, at least 16. */
  constructor(slab: IdSlab, capacityMax: number) {
    assert(capacityMax >= capacityMin, "a page has room for some ids");
    this.#slab = slab;
    this.#capacityMax = capacityMax;
    this.#directory = [newPage(0, capacityMin, 0)];
  }

  /** Returns the number of the document with this id, or -1. Hot. */
  find(key: IdKey): number {
    const hash = key.hash;
    const page = this.#directory[this.#entryOf(hash)] as Int32Array; // entries cover all hashes
    const mask = (page[capacityAt] as number) - 1;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const at = headInts + slotInts * slot;
      const place = page[at + 1] as number; // slot <= mask
      if (place === 0) return -1; // a page is never full
      if (page[at] !== hash) continue;
      if (this.#slab.has(place >>> 0, key.bytes, key.length)) return (page[at + 2] as number) >>> 0;
    }
  }

  /**
   * Returns the number of the first document whose id has the same 32-bit hash, or -1: almost always the result of
   * `find`. Verify it with `isCandidate`. Hot.
   */
  candidate(key: IdKey): number {
    const hash = key.hash;
    const page = this.#directory[this.#entryOf(hash)] as Int32Array; // entries cover all hashes
    const mask = (page[capacityAt] as number) - 1;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const at = headInts + slotInts * slot;
      this.#candidatePlace = page[at + 1] as number; // slot <= mask
      if (this.#candidatePlace === 0) return -1; // a page is never full
      if (page[at] === hash) return (page[at + 2] as number) >>> 0;
    }
  }

  /** Returns whether the document last returned by `candidate` has this id. Hot. */
  isCandidate(key: IdKey): boolean {
    return this.#slab.has(this.#candidatePlace >>> 0, key.bytes, key.length);
  }

  /** Inserts a document's id with its hash and place; it must not be in the table. */
  insert(hash: number, place: number, docNum: number): void {
    let page = this.#pageToChange(this.#entryOf(hash));
    while (((page[countAt] as number) + 1) * 5 > (page[capacityAt] as number) * 4) {
      this.#widen(page, hash);
      page = this.#directory[this.#entryOf(hash)] as Int32Array; // see find
    }
    put(page, hash, place | 0, docNum | 0);
    this.#count++;
  }

  /** Removes the id at this place. Cost: as `insert`. */
  remove(hash: number, place: number): void {
    const page = this.#pageToChange(this.#entryOf(hash));
    const mask = (page[capacityAt] as number) - 1;
    let hole = slotAt(page, hash, place);
    for (let slot = (hole + 1) & mask; ; slot = (slot + 1) & mask) {
      const at = headInts + slotInts * slot;
      if (page[at + 1] === 0) break; // a page is never full
      const home = (page[at] as number) & mask;
      // It may fill the hole unless its home slot lies between them.
      if (((slot - home) & mask) < ((slot - hole) & mask)) continue;
      page.copyWithin(headInts + slotInts * hole, at, at + slotInts);
      hole = slot;
    }
    page.fill(0, headInts + slotInts * hole, headInts + slotInts * (hole + 1));
    page[countAt] = (page[countAt] as number) - 1;
    this.#count--;
    this.#narrow(page, hash);
  }

  /** The id has moved from place `from` to `to`. @returns its document's number */
  move(hash: number, from: number, to: number): number {
    const page = this.#pageToChange(this.#entryOf(hash));
    const at = headInts + slotInts * slotAt(page, hash, from);
    page[at + 1] = to | 0;
    return (page[at + 2] as number) >>> 0;
  }

  get isFrozen(): boolean {
    return this.#freezeCount > 0;
  }

  /** Until `thaw`, existing pages are not changed. May be nested. */
  freeze(): void {
    this.#freezeCount++;
    this.#epoch++;
  }

  thaw(): void {
    assert(this.#freezeCount > 0, "only a frozen table is thawed");
    this.#freezeCount--;
  }

  memoryBytes(): number {
    let bytes = this.#directory.length * 8;
    this.#eachPage((page) => {
      bytes += page.byteLength;
    });
    return bytes;
  }

  /** Returns the table's bytes, valid while it is frozen. */
  parts(): Uint8Array[] {
    assert(this.#freezeCount > 0, "a table is frozen while its parts are used");
    const pages: Uint8Array[] = [];
    this.#eachPage((page) => {
      pages.push(bytesOf(page));
    });
    return [bytesOf(Uint32Array.of(this.#depth, pages.length, this.#count)), ...pages];
  }

  /** Fills an empty table from the bytes of `parts`. @throws EngineError database-damaged */
  restore(reader: ByteReader): void {
    assert(this.#count === 0, "only an empty table is restored");
    this.#depth = reader.uint32();
    const pageCount = reader.uint32();
    this.#count = reader.uint32();
    reader.expect(this.#depth <= depthMax && this.#count <= this.#slab.count, "counts");
    this.#directory = [];
    const length = 2 ** this.#depth;
    const head = new Int32Array(headInts);
    let counted = 0;
    for (let at = 0; at < pageCount; at++) {
      reader.copy(head, head.byteLength);
      const depth = head[depthAt] as number;
      const capacity = head[capacityAt] as number;
      reader.expect(depth >= 0 && depth <= this.#depth, "page depth");
      reader.expect(capacity >= capacityMin && (capacity & (capacity - 1)) === 0, "page capacity");
      reader.reserve(capacity * slotInts * 4);
      const page = newPage(depth, capacity, 0);
      reader.copy(page.subarray(headInts), capacity * slotInts * 4);
      page[countAt] = head[countAt] as number;
      reader.expect(isPageSound(page, this.#slab), "page");
      counted += page[countAt] as number;
      const copies = 2 ** (this.#depth - depth);
      reader.expect(this.#directory.length % copies === 0, "page order");
      reader.expect(this.#directory.length + copies <= length, "page order");
      for (let copy = 0; copy < copies; copy++) this.#directory.push(page);
    }
    reader.expect(this.#directory.length === length && counted === this.#count, "page count");
  }

  checkInvariants(): void {
    assert(this.#directory.length === 2 ** this.#depth, "the directory covers all hashes");
    let entry = 0;
    let count = 0;
    this.#eachPage((page) => {
      const depth = page[depthAt] as number;
      const copies = 2 ** (this.#depth - depth);
      for (let copy = 0; copy < copies; copy++) {
        assert(this.#directory[entry + copy] === page, "a page stands in neighbouring entries");
      }
      assert(isPageSound(page, this.#slab), "a page's slots agree with its count");
      for (let slot = 0; slot < (page[capacityAt] as number); slot++) {
        if (page[headInts + slotInts * slot + 1] === 0) continue;
        const at = this.#entryOf(page[headInts + slotInts * slot] as number);
        assert(at >= entry && at < entry + copies, "a hash is in the page of its upper bits");
      }
      entry += copies;
      count += page[countAt] as number;
    });
    assert(count === this.#count, "pages hold what was inserted");
  }

  /** Number of ids. */
  get count(): number {
    return this.#count;
  }

  #entryOf(hash: number): number {
    return this.#depth === 0 ? 0 : hash >>> (32 - this.#depth);
  }

  #eachPage(visit: (page: Int32Array) => void): void {
    for (let entry = 0; entry < this.#directory.length; ) {
      const page = this.#directory[entry] as Int32Array; // entry < length
      visit(page);
      entry += 2 ** (this.#depth - (page[depthAt] as number));
    }
  }

  #pageToChange(entry: number): Int32Array {
    const page = this.#directory[entry] as Int32Array; // see find
    if (this.#freezeCount === 0 || (page[epochAt] as number) >= this.#epoch) return page;
    const copy = page.slice();
    copy[epochAt] = this.#epoch;
    this.#place(copy, entry);
    return copy;
  }

  /** Points all directory entries of the page at `entry` to `page`, which has the same depth. */
  #place(page: Int32Array, entry: number): void {
    const copies = 2 ** (this.#depth - (page[depthAt] as number));
    const first = entry - (entry % copies);
    for (let copy = 0; copy < copies; copy++) this.#directory[first + copy] = page;
  }

  /** Makes room in the page of `hash`: by doubling it while it is small, then by splitting it. */
  #widen(page: Int32Array, hash: number): void {
    const depth = page[depthAt] as number;
    const capacity = page[capacityAt] as number;
    if (capacity < this.#capacityMax || depth >= depthMax) {
      const wide = newPage(depth, capacity * 2, this.#epoch);
      for (let slot = 0; slot < capacity; slot++) move(page, slot, wide);
      this.#place(wide, this.#entryOf(hash));
      return;
    }
    if (depth === this.#depth) {
      const wide: Int32Array[] = [];
      for (const each of this.#directory) wide.push(each, each);
      this.#directory = wide;
      this.#depth++;
    }
    const left = newPage(depth + 1, capacity, this.#epoch);
    const right = newPage(depth + 1, capacity, this.#epoch);
    for (let slot = 0; slot < capacity; slot++) {
      const bit = ((page[headInts + slotInts * slot] as number) >>> (31 - depth)) & 1;
      move(page, slot, bit === 0 ? left : right);
    }
    const copies = 2 ** (this.#depth - depth - 1);
    const entry = this.#entryOf(hash);
    const first = entry - (entry % (2 * copies));
    this.#place(left, first);
    this.#place(right, first + copies);
  }

  /** Shrinks the page of `hash` when little of it is used: merges it with its sibling, or halves it. */
  #narrow(page: Int32Array, hash: number): void {
    const depth = page[depthAt] as number;
    const capacity = page[capacityAt] as number;
    const count = page[countAt] as number;
    if (count * 8 > capacity) return;
    const entry = this.#entryOf(hash);
    const sibling = depth === 0 ? page : this.#siblingOf(entry, depth);
    if (sibling !== page && sibling[depthAt] === depth) {
      const both = count + (sibling[countAt] as number);
      const wider = Math.max(capacity, sibling[capacityAt] as number);
      if (both * 4 <= wider) {
        const joined = newPage(depth - 1, wider, this.#epoch);
        for (let slot = 0; slot < capacity; slot++) move(page, slot, joined);
        for (let slot = 0; slot < (sibling[capacityAt] as number); slot++) {
          move(sibling, slot, joined);
        }
        this.#place(joined, entry);
        this.#fold();
        this.#narrow(joined, hash);
        return;
      }
    }
    if (capacity === capacityMin) return;
    const small = newPage(depth, capacity / 2, this.#epoch);
    for (let slot = 0; slot < capacity; slot++) move(page, slot, small);
    this.#place(small, entry);
  }

  /** Returns the page of the hashes that differ from those of `entry` in bit `depth`. */
  #siblingOf(entry: number, depth: number): Int32Array {
    return this.#directory[entry ^ (2 ** (this.#depth - depth))] as Int32Array; // within the directory
  }

  /**
   * Halves the directory while no page needs its depth. Cost: O(directory), which is far below the number of removals.
   */
  #fold(): void {
    while (this.#depth > 0) {
      for (const page of this.#directory) if (page[depthAt] === this.#depth) return;
      this.#directory = this.#directory.filter((_, at) => at % 2 === 0);
      this.#depth--;
    }
  }
}

/** Returns the slot of the entry with this hash and place, which must exist. */
function slotAt(page: Int32Array, hash: number, place: number): number {
  const mask = (page[capacityAt] as number) - 1;
  for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
    const at = headInts + slotInts * slot;
    assert(page[at + 1] !== 0, "an id that is there is in its page"); // a page is never full
    if (page[at] === hash && page[at + 1] === (place | 0)) return slot;
  }
}

function newPage(depth: number, capacity: number, epoch: number): Int32Array {
  const page = new Int32Array(headInts + slotInts * capacity);
  page[depthAt] = depth;
  page[capacityAt] = capacity;
  page[epochAt] = epoch;
  return page;
}

/** Inserts an entry into a page that has room. */
function put(page: Int32Array, hash: number, place: number, docNum: number): void {
  const mask = (page[capacityAt] as number) - 1;
  let slot = hash & mask;
  while (page[headInts + slotInts * slot + 1] !== 0) slot = (slot + 1) & mask;
  const at = headInts + slotInts * slot;
  page[at] = hash;
  page[at + 1] = place;
  page[at + 2] = docNum;
  page[countAt] = (page[countAt] as number) + 1;
}

/** Copies the entry in a slot of `source`, if any, into `target`. */
function move(source: Int32Array, slot: number, target: Int32Array): void {
  const at = headInts + slotInts * slot;
  const place = source[at + 1] as number; // slot < capacity
  if (place !== 0) put(target, source[at] as number, place, source[at + 2] as number);
}

/**
 * Returns whether the places and document numbers in `page` are within the slab, as many as its count, at the allowed
 * load factor.
 */
function isPageSound(page: Int32Array, slab: IdSlab): boolean {
  const capacity = page[capacityAt] as number;
  let count = 0;
  for (let slot = 0; slot < capacity; slot++) {
    const at = headInts + slotInts * slot;
    const place = page[at + 1] as number; // slot < capacity
    if (place === 0) continue;
    if (!slab.covers(place >>> 0) || (page[at + 2] as number) >>> 0 >= slab.count) return false;
    count++;
  }
  return count === page[countAt] && count * 5 <= capacity * 4;
}
