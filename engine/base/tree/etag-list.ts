/**
 * Documents in etag order: each change appends an entry, and the entry that it replaces is dead and skipped from then
 * on. When more than half of the entries are dead, the list is swept, a chunk at a time along with further changes.
 *
 *   chunk (u32): docNum | etag - base | docNum | etag - base | ...
 *
 * An entry is live for a reader when the reader's row of docNum has its etag. So a view needs no copy of the list: a
 * sweep keeps the entries that any view sees.
 *
 * Invariants:
 * - Etags are unique and ascend through the whole list; no chunk is empty; its base is its first etag.
 * - A written entry is never changed while a view is held: a sweep or a late entry creates new chunks, and a chunk that
 *   a sweep has emptied is reused only if there was no view.
 */
import { assert } from "../assert.ts";
import type { RowColumns, RowStore } from "./row-columns.ts";
import { type ByteReader, bytesOf } from "./sections.ts";
import { type StagedRun, stagedDocNumAt, stagedWords } from "./staged-rows.ts";

const entriesMin = 16;
const unknown = -1;
/** Gathers the entries that a sweep keeps of a chunk: most chunks are entirely dead or live, and need no new memory. */
let sweepScratch = new Uint32Array(0);
/** Entries swept per change of the list, so that the sweep ends before the list doubles. */
const sweepPace = 4;

export class EtagList {
  readonly #entriesMax: number;
  #chunks: Uint32Array[] = [];
  #bases: number[] = [];
  #counts: number[] = [];
  /** Live entries of each chunk, or `unknown`: most chunks are entirely dead or live, and a sweep need not read them. */
  #lives: number[] = [];
  #length = 0;
  #live = 0;
  /** The next chunk to sweep; -1 when no sweep is in progress. */
  #sweepAt = -1;
  #sweepCredit = 0;
  /** Dead entries that the last sweep kept for views, and the store's `releaseCount` at that time. */
  #keptCount = 0;
  #keptRelease = -1;
  /** The chunk of the last `#chunkOf`, and the entry after the last result of `documentOf` in it. */
  #askedChunk = 0;
  #nextEntry = 0;
  /** Empty chunks of full size, for reuse. */
  readonly #spare: Uint32Array[] = [];

  /** @param entriesMax - capacity of a chunk in entries. */
  constructor(entriesMax: number) {
    this.#entriesMax = entriesMax;
  }

  /** Number of entries that are live for the committed rows. */
  get live(): number {
    return this.#live;
  }

  /** The greatest etag in the list, dead or live; 0 when it is empty. Cost: O(1). */
  get newestEtag(): number {
    const tail = this.#chunks.length - 1;
    return tail < 0 ? 0 : (this.#bases[tail] as number) + this.#lastDelta(tail);
  }

  /** Adds an entry; usually its etag is the greatest. Cost: O(1), or O(chunks) for a late one. */
  add(docNum: number, etag: number): void {
    this.#live++;
    this.#length++;
    const tail = this.#chunks.length - 1;
    const base = this.#bases[tail] as number; // undefined only when tail = -1
    if (tail >= 0 && etag <= base + this.#lastDelta(tail)) {
      this.#addDeferred(docNum, etag);
      return;
    }
    if (tail < 0 || etag - base >= 2 ** 32 || this.#counts[tail] === this.#entriesMax) {
      const entries = Math.min(tail < 0 ? entriesMin : Infinity, this.#entriesMax);
      const chunk = (tail < 0 ? undefined : this.#spare.pop()) ?? new Uint32Array(2 * entries);
      chunk[0] = docNum;
      chunk[1] = 0;
      this.#insertChunk(tail + 1, chunk, etag, 1);
      return;
    }
    const count = this.#counts[tail] as number; // tail >= 0
    let chunk = this.#chunks[tail] as Uint32Array;
    if (count * 2 === chunk.length) {
      const wide = new Uint32Array(2 * Math.min(count * 2, this.#entriesMax));
      wide.set(chunk);
      this.#chunks[tail] = wide;
      chunk = wide;
    }
    chunk[count * 2] = docNum;
    chunk[count * 2 + 1] = etag - base;
    this.#counts[tail] = count + 1;
    this.#addLive(tail, 1);
  }

  /** The live entry with this etag is dead from now on. */
  remove(etag: number): void {
    this.#live--;
    const at = this.#chunkOf(etag);
    if (at >= 0) this.#addLive(at, -1);
  }

  /**
   * `add` and `remove` for each document of the run, whose etags ascend, and one sweep for all of them. Hot.
   * @param previous the etags that the documents had before, by place in the run
   */
  replaceRun(run: StagedRun, previous: Float64Array, rows: RowStore): void {
    const { numbers, words } = run;
    for (let at = run.from; at < run.to; ) {
      const end = this.#append(run, at);
      if (end === at) {
        this.add(words[at * stagedWords + stagedDocNumAt] as number, numbers[at << 1] as number);
        at++;
      } else at = end;
    }
    this.#removeRun(previous, run.to - run.from);
    this.sweep(rows, run.to - run.from);
  }

  /** `remove` for the first `count` etags: neighbors are mostly in one chunk, which is looked up once. */
  #removeRun(etags: Float64Array, count: number): void {
    this.#live -= count;
    for (let k = 0; k < count; ) {
      const at = this.#chunkOf(etags[k] as number); // k < count
      const from = at < 0 ? 0 : (this.#bases[at] as number);
      const to = this.#bases[at + 1] ?? Number.POSITIVE_INFINITY;
      const first = k;
      for (k++; k < count; k++) {
        const etag = etags[k] as number; // k < count
        if (etag < from || etag >= to) break;
      }
      if (at >= 0) this.#addLive(at, first - k);
    }
  }

  #addLive(at: number, count: number): void {
    const live = this.#lives[at] as number; // the caller's chunk is in the list
    if (live !== unknown) this.#lives[at] = live + count;
  }

  /** As `chunkBelow`, cheaper for consecutive etags. */
  #chunkOf(etag: number): number {
    const asked = this.#askedChunk;
    const from = this.#bases[asked]; // undefined when there are fewer chunks by now
    if (from !== undefined && etag >= from) {
      if (etag < (this.#bases[asked + 1] ?? Number.POSITIVE_INFINITY)) return asked;
    }
    const at = this.chunkBelow(etag);
    if (at >= 0) this.#askedChunk = at;
    return at;
  }

  /** Appends entries of the run from `from` while they fit into the last chunk. @returns the first that does not. */
  #append({ numbers, words, to }: StagedRun, from: number): number {
    const tail = this.#chunks.length - 1;
    const chunk = this.#chunks[tail];
    if (chunk === undefined) return from;
    const count = this.#counts[tail] as number; // as many counts and bases as chunks
    const base = this.#bases[tail] as number;
    const end = Math.min(to, from + (chunk.length >>> 1) - count);
    let last = chunk[2 * count - 1] as number; // no chunk is empty
    let next = 2 * count;
    let at = from;
    for (; at < end; at++) {
      const delta = (numbers[at << 1] as number) - base;
      if (delta <= last || delta >= 2 ** 32) break;
      chunk[next] = words[at * stagedWords + stagedDocNumAt] as number;
      chunk[next + 1] = delta;
      next += 2;
      last = delta;
    }
    this.#counts[tail] = next >>> 1;
    this.#length += at - from;
    this.#live += at - from;
    this.#addLive(tail, at - from);
    return at;
  }

  /** Advances a sweep that is due; called after each `changes` changes. Cost: amortized O(changes). */
  sweep(rows: RowStore, changes = 1): void {
    if (this.#sweepAt < 0) {
      if (!this.#isSweepDue(rows)) return;
      this.#sweepAt = 0;
      this.#sweepCredit = 0;
    }
    this.#sweepCredit += sweepPace * changes;
    while (this.#sweepAt >= 0 && this.#sweepCredit >= (this.#counts[this.#sweepAt] ?? 0)) {
      this.#sweepCredit -= this.#counts[this.#sweepAt] ?? 0;
      if (this.#sweepAt < this.#chunks.length) this.#sweepChunk(this.#sweepAt, rows);
      if (this.#sweepAt >= this.#chunks.length) {
        this.#sweepAt = -1;
        this.#dropSpare();
        this.#keptCount = this.#length - this.#live;
        this.#keptRelease = rows.releaseCount;
      }
    }
  }

  #isSweepDue(rows: RowStore): boolean {
    const kept = this.#keptRelease === rows.releaseCount ? this.#keptCount : 0;
    return this.#length - this.#live - kept > this.#live + 2 * entriesMin;
  }

  /** Removes the dead entries of a chunk, and merges the rest into the previous chunk if it fits. */
  #sweepChunk(at: number, rows: RowStore): void {
    const chunk = this.#chunks[at] as Uint32Array; // at < chunks.length
    const base = this.#bases[at] as number;
    const count = this.#counts[at] as number;
    const live = this.#lives[at] as number;
    if (live === count && (at === 0 || !this.#hasRoomFor(at - 1, count))) {
      this.#sweepAt = at + 1;
      return;
    }
    if (live === 0 && !rows.hasViews) {
      this.#length -= count;
      this.#keepSpare(chunk);
      this.#removeChunk(at);
      return;
    }
    if (sweepScratch.length < 2 * count) sweepScratch = new Uint32Array(2 * count);
    const kept = sweepScratch;
    let keptCount = 0;
    let keptLive = 0;
    let keptBase = 0;
    const { numbers, shift, mask } = rows.columns;
    const { hasViews } = rows;
    for (let entry = 0; entry < count; entry++) {
      const docNum = chunk[entry * 2] as number; // entry < count
      const etag = base + (chunk[entry * 2 + 1] as number);
      const column = numbers[docNum >>> shift];
      const isNewest = column !== undefined && column[(docNum & mask) << 1] === etag;
      if (isNewest) keptLive++;
      else if (!(hasViews && rows.isEtagHeld(docNum, etag))) continue;
      if (keptCount === 0) keptBase = etag;
      kept[keptCount * 2] = docNum;
      kept[keptCount * 2 + 1] = etag - keptBase;
      keptCount++;
    }
    this.#length -= count - keptCount;
    if (keptCount < count && !hasViews) this.#keepSpare(chunk);
    if (keptCount === 0 || (at > 0 && this.#joins(at - 1, kept, keptBase, keptCount))) {
      if (keptCount > 0) this.#addLive(at - 1, keptLive);
      this.#removeChunk(at);
      return;
    }
    this.#sweepAt = at + 1;
    this.#lives[at] = keptLive;
    if (keptCount === count) return;
    this.#chunks[at] = kept.slice(0, 2 * keptCount);
    this.#bases[at] = keptBase;
    this.#counts[at] = keptCount;
  }

  /** Retains a chunk for reuse, as long as spare chunks use at most as much memory as dead entries may. */
  #keepSpare(chunk: Uint32Array): void {
    if (chunk.length !== 2 * this.#entriesMax) return;
    if (this.#hasRoomBeside(this.#spare.length)) this.#spare.push(chunk);
  }

  /** Drops spare chunks that are too many after deletions. */
  #dropSpare(): void {
    const spare = this.#spare;
    while (spare.length > 0 && !this.#hasRoomBeside(spare.length - 1)) spare.pop();
  }

  /** Returns whether one more than `spareCount` spare chunks may be retained. */
  #hasRoomBeside(spareCount: number): boolean {
    return this.#length + spareCount * this.#entriesMax < 2 * this.#live;
  }

  #hasRoomFor(at: number, entryCount: number): boolean {
    return (this.#counts[at] as number) + entryCount <= this.#entriesMax; // at < chunks.length
  }

  /** Appends entries with deltas from `base` to chunk `at`. @returns false when they do not fit. */
  #joins(at: number, entries: Uint32Array, base: number, entryCount: number): boolean {
    const count = this.#counts[at] as number; // at < chunks.length
    const shift = base - (this.#bases[at] as number);
    const lastDelta = entries[2 * entryCount - 1] as number; // entryCount > 0
    if (!this.#hasRoomFor(at, entryCount) || shift + lastDelta >= 2 ** 32) return false;
    const joined = new Uint32Array(2 * (count + entryCount));
    joined.set((this.#chunks[at] as Uint32Array).subarray(0, 2 * count));
    for (let entry = 0; entry < entryCount; entry++) {
      joined[2 * (count + entry)] = entries[2 * entry] as number; // entry < entryCount
      joined[2 * (count + entry) + 1] = (entries[2 * entry + 1] as number) + shift;
    }
    this.#chunks[at] = joined;
    this.#counts[at] = count + entryCount;
    return true;
  }

  /** Inserts an entry among newer ones, as the replay of relocated records may need. */
  #addDeferred(docNum: number, etag: number): void {
    const at = Math.max(0, this.chunkBelow(etag));
    const chunk = this.#chunks[at] as Uint32Array; // the list is not empty
    const count = this.#counts[at] as number;
    const base = this.#bases[at] as number;
    const entry = etag < base ? 0 : this.entryFrom(at, etag);
    assert(entry === count || etag - base !== chunk[2 * entry + 1], "etags are unique");
    if (etag < base) {
      const only = new Uint32Array(2);
      only[0] = docNum;
      this.#insertChunk(at, only, etag, 1);
    } else if (entry === count && etag - base >= 2 ** 32) {
      this.#insertChunk(at + 1, Uint32Array.of(docNum, 0), etag, 1);
    } else {
      const wide = new Uint32Array(2 * (count + 1));
      wide.set(chunk.subarray(0, 2 * entry));
      wide[2 * entry] = docNum;
      wide[2 * entry + 1] = etag - base;
      wide.set(chunk.subarray(2 * entry, 2 * count), 2 * (entry + 1));
      this.#chunks[at] = wide;
      this.#counts[at] = count + 1;
      this.#addLive(at, 1);
      if (count + 1 > this.#entriesMax) this.#splitChunk(at);
    }
    this.#sweepAt = this.#sweepAt < 0 ? -1 : 0; // chunks have moved
  }

  #splitChunk(at: number): void {
    const chunk = this.#chunks[at] as Uint32Array; // full
    const keep = (this.#counts[at] as number) >>> 1;
    const right = chunk.slice(2 * keep);
    const shift = right[1] as number; // a half of a full chunk is not empty
    for (let entry = 1; entry < right.length; entry += 2) {
      right[entry] = (right[entry] as number) - shift;
    }
    this.#chunks[at] = chunk.slice(0, 2 * keep);
    this.#counts[at] = keep;
    this.#lives[at] = unknown;
    this.#insertChunk(at + 1, right, (this.#bases[at] as number) + shift, right.length / 2);
    this.#lives[at + 1] = unknown;
  }

  /** Inserts a chunk of live entries. */
  #insertChunk(at: number, chunk: Uint32Array, base: number, count: number): void {
    this.#chunks.splice(at, 0, chunk);
    this.#bases.splice(at, 0, base);
    this.#counts.splice(at, 0, count);
    this.#lives.splice(at, 0, count);
  }

  #removeChunk(at: number): void {
    this.#chunks.splice(at, 1);
    this.#bases.splice(at, 1);
    this.#counts.splice(at, 1);
    this.#lives.splice(at, 1);
  }

  #lastDelta(at: number): number {
    return (this.#chunks[at] as Uint32Array)[2 * (this.#counts[at] as number) - 1] as number; // not empty
  }

  /** Returns the last chunk whose first etag is at most `etag`, or -1. */
  chunkBelow(etag: number): number {
    let low = 0;
    let high = this.#bases.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#bases[middle] as number) <= etag)
        low = middle + 1; // middle < high
      else high = middle;
    }
    return low - 1;
  }

  /** Returns the first entry of chunk `at` whose etag is at least `etag`; the chunk's count when none is. */
  entryFrom(at: number, etag: number): number {
    const chunk = this.#chunks[at] as Uint32Array; // the caller's chunk is in the list
    const delta = etag - (this.#bases[at] as number);
    let low = 0;
    let high = this.#counts[at] as number;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((chunk[2 * middle + 1] as number) < delta)
        low = middle + 1; // middle < count
      else high = middle;
    }
    return low;
  }

  /**
   * Returns the document of the entry with this etag, dead or live; -1 if no entry exists (sweeps remove dead entries).
   * Cost: O(log entries), less for consecutive etags.
   */
  documentOf(etag: number): number {
    const at = this.#chunkOf(etag);
    if (at < 0) return -1;
    const chunk = this.#chunks[at] as Uint32Array; // at < chunks.length
    const delta = etag - (this.#bases[at] as number);
    const count = this.#counts[at] as number;
    const next = this.#nextEntry;
    const isNext = next < count && chunk[2 * next + 1] === delta;
    const entry = isNext ? next : this.entryFrom(at, etag);
    this.#nextEntry = entry + 1;
    return entry < count && chunk[2 * entry + 1] === delta ? (chunk[2 * entry] as number) : -1;
  }

  get chunkCount(): number {
    return this.#chunks.length;
  }

  chunkAt(at: number): Uint32Array {
    return this.#chunks[at] as Uint32Array; // the caller's chunk is in the list
  }

  baseAt(at: number): number {
    return this.#bases[at] as number; // the caller's chunk is in the list
  }

  countAt(at: number): number {
    return this.#counts[at] as number; // the caller's chunk is in the list
  }

  memoryBytes(): number {
    let bytes = 0;
    for (const chunk of this.#chunks) bytes += chunk.byteLength + 32; // including its slots in four arrays
    for (const chunk of this.#spare) bytes += chunk.byteLength;
    return bytes;
  }

  /** Returns the bytes of the entries up to `etag`, inclusive; unaffected by later changes of the list. */
  parts(etag: number): Uint8Array[] {
    const last = this.chunkBelow(etag);
    const counts = this.#counts.slice(0, last + 1);
    if (last >= 0) counts[last] = this.entryFrom(last, etag + 1);
    const length = counts.reduce((sum, count) => sum + count, 0);
    const parts: Uint8Array[] = [
      bytesOf(Uint32Array.of(counts.length, length)),
      bytesOf(Float64Array.from(this.#bases.slice(0, last + 1))),
      bytesOf(Uint32Array.from(counts)),
    ];
    for (const [at, count] of counts.entries()) {
      parts.push(bytesOf(this.chunkAt(at).subarray(0, 2 * count)));
    }
    return parts;
  }

  /**
   * Fills an empty list from the bytes of `parts`. @throws EngineError database-damaged
   * @param live - how many of the entries are live.
   */
  restore(reader: ByteReader, live: number): void {
    assert(this.#length === 0, "only an empty list is restored");
    const chunkCount = reader.uint32();
    this.#length = reader.uint32();
    this.#live = live >>> 0;
    reader.expect(live <= this.#length && chunkCount <= this.#length, "list length");
    this.#bases = Array.from(reader.float64s(chunkCount));
    this.#counts = Array.from(reader.uint32s(chunkCount));
    this.#lives = this.#counts.map(() => unknown);
    let length = 0;
    let etag = -1;
    for (const [at, count] of this.#counts.entries()) {
      reader.expect(count > 0 && length + count <= this.#length, "list chunk");
      reader.expect((this.#bases[at] as number) > etag, "order of a list"); // as many bases as counts
      this.#chunks.push(reader.uint32s(2 * count));
      etag = (this.#bases[at] as number) + this.#lastDelta(at);
      length += count;
    }
    reader.expect(length === this.#length, "list length");
  }

  checkInvariants(rows: RowStore): void {
    let length = 0;
    let live = 0;
    let etag = 0;
    for (const [at, chunk] of this.#chunks.entries()) {
      const count = this.countAt(at);
      const liveBefore = live;
      assert(count > 0 && count <= chunk.length / 2, "no chunk of a list is empty");
      assert(chunk[1] === 0, "a chunk's base is its first etag");
      for (let entry = 0; entry < count; entry++) {
        const next = this.baseAt(at) + (chunk[2 * entry + 1] as number); // entry < count
        assert(next > etag, "etags ascend");
        etag = next;
        if (rows.columns.etagOf(chunk[2 * entry] as number) === etag) live++;
      }
      length += count;
      const known = this.#lives[at];
      const isKnown = known === unknown || known === live - liveBefore;
      assert(isKnown, "the live entries of a chunk are counted");
    }
    assert(this.#lives.length === this.#chunks.length, "each chunk has a count of live entries");
    assert(length === this.#length, "entries are counted");
    assert(live === this.#live, "live entries are counted");
  }
}

/** Iterates over the documents of a list by etag. Remains valid when the list changes between two calls. */
export class EtagCursor {
  readonly #list: EtagList | undefined;
  readonly #rows: () => RowColumns;
  readonly #descending: boolean;
  /** The least etag, or the greatest when descending, that was not visited yet. */
  #etag: number;

  /** Created by a table or view. `rows` returns the rows that determine which entries are live. */
  constructor(
    list: EtagList | undefined,
    rows: () => RowColumns,
    from: number,
    descending: boolean,
  ) {
    this.#list = list;
    this.#rows = rows;
    this.#descending = descending;
    this.#etag = from;
  }

  /**
   * Puts the next document numbers, at most `limit`, into `batch`.
   * @returns how many; fewer than `limit` only at the end. Cost: O(log entries + entries passed).
   */
  fill(batch: Uint32Array | Int32Array, limit: number): number {
    assert(limit <= batch.length, "a batch has room for its limit");
    if (this.#list === undefined) return 0;
    const rows = this.#rows();
    return this.#descending
      ? this.#fillDown(this.#list, rows, batch, limit)
      : this.#fillUp(this.#list, rows, batch, limit);
  }

  #fillUp(
    list: EtagList,
    rows: RowColumns,
    batch: Uint32Array | Int32Array,
    limit: number,
  ): number {
    let filled = 0;
    let at = Math.max(0, list.chunkBelow(this.#etag));
    let entry = at < list.chunkCount ? list.entryFrom(at, this.#etag) : 0;
    for (; at < list.chunkCount; at++) {
      const chunk = list.chunkAt(at);
      const base = list.baseAt(at);
      const count = list.countAt(at);
      for (; entry < count; entry++) {
        if (filled === limit) return filled;
        const docNum = chunk[2 * entry] as number; // entry < count
        const etag = base + (chunk[2 * entry + 1] as number);
        this.#etag = etag + 1;
        if (rows.etagOf(docNum) === etag) batch[filled++] = docNum;
      }
      entry = 0;
    }
    return filled;
  }

  #fillDown(
    list: EtagList,
    rows: RowColumns,
    batch: Uint32Array | Int32Array,
    limit: number,
  ): number {
    let filled = 0;
    let at = list.chunkBelow(this.#etag);
    let entry = at < 0 ? -1 : list.entryFrom(at, this.#etag + 1) - 1;
    while (at >= 0) {
      const chunk = list.chunkAt(at);
      const base = list.baseAt(at);
      for (; entry >= 0; entry--) {
        if (filled === limit) return filled;
        const docNum = chunk[2 * entry] as number; // entry < count
        const etag = base + (chunk[2 * entry + 1] as number);
        this.#etag = etag - 1;
        if (rows.etagOf(docNum) === etag) batch[filled++] = docNum;
      }
      at--;
      entry = at < 0 ? -1 : list.countAt(at) - 1;
    }
    return filled;
  }
}
