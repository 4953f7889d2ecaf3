/**
 * Documents in id order, sorted lazily: new ones wait in a pending list until an ordered read, or idle time, merges
 * them, in slices.
 *
 * Sorted leaves of document numbers, compared by the ids in the slab. The order of two documents never changes, so a
 * view needs no copy: it skips documents that it does not see, and documents that a view sees are not removed.
 *
 * Invariants:
 * - Each document with a committed row is a member: in a leaf or pending, in one place only.
 * - Leaves ascend by id and are not empty; a leaf is never changed, only replaced.
 */

import { assert } from "../assert.ts";
import { partitionPoint } from "../partition-point.ts";
import { compareBytes } from "./compare.ts";
import type { IdSlab } from "./id-slab.ts";
import { IdSort } from "./id-sort.ts";
import type { RowColumns, RowStore } from "./row-columns.ts";
import { type ByteReader, bytesOf } from "./sections.ts";

export class IdOrder {
  readonly #slab: IdSlab;
  readonly #leafMax: number;
  readonly #memberShift: number;
  readonly #memberMask: number;
  #leaves: Uint32Array[] = [];
  /** Document numbers sorted and merged in one step, between two calls of `mayContinue`. */
  readonly #batchMax: number;
  readonly #pendingMax: number;
  /** Pending document numbers in chunks of `#pendingMax`; the last is filled up to `#pendingTail`. */
  #pending: Uint32Array[] = [];
  #pendingTail: number;
  /** The run of pending document numbers that is being sorted and merged; numbers before `#runAt` are in leaves. */
  #run: IdSort | undefined;
  #runAt = 0;
  /** A bitmap of the document numbers that are members. */
  #members: Uint32Array[] = [];
  #memberCount = 0;
  #version = 0;
  /** The next leaf to sweep; -1 when no sweep is in progress. */
  #sweepAt = -1;
  /** Members that the last sweep kept only for views, and the store's `releaseCount` at that time. */
  #keptCount = 0;
  #keptRelease = -1;

  /** @param leafMax - capacity of a leaf. @param membersPerChunk - both powers of two. */
  constructor(slab: IdSlab, leafMax: number, membersPerChunk: number) {
    this.#slab = slab;
    this.#leafMax = leafMax;
    this.#batchMax = leafMax / 2;
    this.#pendingMax = leafMax * 16;
    this.#pendingTail = this.#pendingMax;
    this.#memberShift = Math.log2(Math.max(32, membersPerChunk));
    this.#memberMask = 2 ** this.#memberShift - 1;
  }

  /** Changes when leaves change: a position in them is valid only for one version. */
  get version(): number {
    return this.#version;
  }

  get leaves(): readonly Uint32Array[] {
    return this.#leaves;
  }

  get slab(): IdSlab {
    return this.#slab;
  }

  /** Returns whether the document is in a leaf or pending. Then its id is still needed. */
  has(docNum: number): boolean {
    return this.#isMember(docNum);
  }

  /** Makes a document a member, unless it is one. Cost: O(1). */
  add(docNum: number): void {
    if (this.#isMember(docNum)) return;
    this.#setMember(docNum, true);
    this.#memberCount++;
    if (this.#pendingTail === this.#pendingMax) {
      this.#pending.push(new Uint32Array(this.#pendingMax));
      this.#pendingTail = 0;
    }
    (this.#pending[this.#pending.length - 1] as Uint32Array)[this.#pendingTail++] = docNum;
  }

  /**
   * Merges pending documents, and removes the members of deleted ones when they are more than a fifth. Stops when
   * `mayContinue`, which is called about every millisecond, returns false. @returns whether all is done.
   */
  settle(rows: RowStore, mayContinue: () => boolean): boolean {
    while (this.#isPending()) {
      this.#settleStep(rows);
      if (!mayContinue()) break;
    }
    if (this.#isPending()) return false;
    if (this.#sweepAt < 0 && this.#isSweepDue(rows)) {
      this.#sweepAt = 0;
      this.#keptCount = 0;
      this.#keptRelease = rows.releaseCount;
    }
    while (this.#sweepAt >= 0) {
      if (this.#sweepAt < this.#leaves.length) this.#sweepLeaf(rows);
      if (this.#sweepAt >= this.#leaves.length) {
        this.#sweepAt = -1;
      } else if (!mayContinue()) return false;
    }
    return true;
  }

  /** Merges all pending documents synchronously, for a read that must not wait. */
  settlePending(rows: RowStore): void {
    while (this.#isPending()) this.#settleStep(rows);
  }

  #isPending(): boolean {
    return this.#pending.length > 0 || this.#run !== undefined;
  }

  #isSweepDue(rows: RowStore): boolean {
    const kept = this.#keptRelease === rows.releaseCount ? this.#keptCount : 0;
    const gone = this.#memberCount - rows.columns.documentCount - kept;
    return gone > rows.columns.documentCount / 4 + this.#leafMax;
  }

  /** Starts a run of pending documents, or sorts or merges part of it. At least one document must be pending. */
  #settleStep(rows: RowStore): void {
    if (this.#run === undefined) this.#takeRun(rows);
    else if (this.#run.step()) this.#mergeSome(this.#run.items);
  }

  #takeRun(rows: RowStore): void {
    const chunk = this.#pending.pop() as Uint32Array; // the caller has checked
    let count = 0;
    for (let at = 0; at < this.#pendingTail; at++) {
      const docNum = chunk[at] as number; // at < pendingTail
      if (rows.isDocumentSeen(docNum)) chunk[count++] = docNum;
      else this.#leave(docNum);
    }
    this.#pendingTail = this.#pendingMax; // all pending chunks but the last are full
    if (count === 0) return;
    this.#run = new IdSort(chunk.subarray(0, count), this.#slab, this.#batchMax);
    this.#runAt = 0;
  }

  /** Merges the next part of the sorted run, about `#batchMax` numbers, into the leaves. */
  #mergeSome(sorted: Uint32Array): void {
    this.#version++;
    const stop = Math.min(sorted.length, this.#runAt + this.#batchMax);
    let leafAt = 0;
    while (this.#runAt < stop) {
      const start = this.#runAt;
      leafAt = this.#leafFor(sorted[start] as number, leafAt); // start < length
      const next = this.#leaves[leafAt + 1]?.[0];
      let end = start + 1;
      while (end < stop) {
        if (next !== undefined && this.#slab.compare(sorted[end] as number, next) >= 0) break; // within
        end++;
      }
      leafAt += this.#mergeLeaf(leafAt, sorted.subarray(start, end)) - 1;
      this.#runAt = end;
    }
    if (this.#runAt === sorted.length) this.#run = undefined;
  }

  /** Returns the last leaf at or after `from` whose first document is not after `docNum`; else `from`. */
  #leafFor(docNum: number, from: number): number {
    const isBefore = (at: number) => this.#slab.compare(this.#firstOf(at), docNum) <= 0;
    return partitionPoint(from + 1, this.#leaves.length, isBefore) - 1;
  }

  /** Replaces leaf `leafAt` by one or more with `added` merged in; returns their number. */
  #mergeLeaf(leafAt: number, added: Uint32Array): number {
    const leaf = this.#leaves[leafAt] ?? new Uint32Array(0);
    const merged = new Uint32Array(leaf.length + added.length);
    let from = 0;
    let to = 0;
    for (let at = 0; at < added.length; at++) {
      const docNum = added[at] as number; // at < length
      const until = this.#entryFor(leaf, docNum, from);
      merged.set(leaf.subarray(from, until), to);
      to += until - from;
      merged[to++] = docNum;
      from = until;
    }
    merged.set(leaf.subarray(from), to);
    // Ascending ids leave full leaves; otherwise a split leaves space on both sides.
    const isAppend = from === leaf.length && leafAt >= this.#leaves.length - 1;
    const pieceCount = Math.ceil(merged.length / this.#leafMax);
    const size = isAppend ? this.#leafMax : Math.ceil(merged.length / pieceCount);
    const pieces: Uint32Array[] = [];
    if (pieceCount === 1) pieces.push(merged);
    else for (let at = 0; at < merged.length; at += size) pieces.push(merged.slice(at, at + size));
    this.#leaves.splice(leafAt, 1, ...pieces);
    if (leafAt < this.#sweepAt) this.#sweepAt += pieces.length - 1; // the leaves after it moved
    return pieces.length;
  }

  /** Returns the first position in `leaf`, at or after `from`, whose document is after `docNum`. */
  #entryFor(leaf: Uint32Array, docNum: number, from: number): number {
    let low = from;
    let high = leaf.length;
    if (high > low && this.#slab.compare(leaf[high - 1] as number, docNum) < 0) return high; // appended
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#slab.compare(leaf[middle] as number, docNum) < 0)
        low = middle + 1; // middle < length
      else high = middle;
    }
    return low;
  }

  #sweepLeaf(rows: RowStore): void {
    const at = this.#sweepAt;
    const leaf = this.#leaves[at] as Uint32Array; // the caller has checked
    const kept = leaf.filter((docNum) => rows.isDocumentSeen(docNum));
    for (const docNum of kept) if (rows.columns.etagOf(docNum) === 0) this.#keptCount++;
    if (kept.length < leaf.length) {
      for (const docNum of leaf) if (!rows.isDocumentSeen(docNum)) this.#leave(docNum);
    }
    const before = at > 0 ? (this.#leaves[at - 1] as Uint32Array) : undefined;
    this.#version++;
    if (kept.length === 0) this.#leaves.splice(at, 1);
    else if (before !== undefined && before.length + kept.length <= this.#leafMax) {
      const joined = new Uint32Array(before.length + kept.length);
      joined.set(before);
      joined.set(kept, before.length);
      this.#leaves.splice(at - 1, 2, joined);
    } else {
      this.#leaves[at] = kept;
      this.#sweepAt = at + 1;
    }
  }

  #leave(docNum: number): void {
    this.#setMember(docNum, false);
    this.#memberCount--;
  }

  #isMember(docNum: number): boolean {
    const chunk = this.#members[docNum >>> this.#memberShift];
    if (chunk === undefined) return false;
    const word = chunk[(docNum & this.#memberMask) >>> 5] as number; // within the chunk
    return ((word >>> (docNum & 31)) & 1) !== 0;
  }

  #setMember(docNum: number, isMember: boolean): void {
    const at = docNum >>> this.#memberShift;
    while (at >= this.#members.length) {
      this.#members.push(new Uint32Array((this.#memberMask + 1) / 32));
    }
    const chunk = this.#members[at] as Uint32Array; // created above at the latest
    const word = (docNum & this.#memberMask) >>> 5;
    const bit = 1 << (docNum & 31);
    chunk[word] = isMember ? (chunk[word] as number) | bit : (chunk[word] as number) & ~bit;
  }

  /**
   * Returns the last leaf whose first id is below `bytes`, or 0: the leaf in which to search for the first id at or
   * after `bytes`.
   */
  leafFrom(bytes: Buffer): number {
    const isBefore = (at: number) => this.#slab.compareTo(this.#firstOf(at), bytes) < 0;
    return partitionPoint(1, this.#leaves.length, isBefore) - 1;
  }

  #firstOf(leafAt: number): number {
    return this.#leaves[leafAt]?.[0] as number; // leaves are not empty
  }

  /** Returns the first position in leaf `leafAt` whose id is not below `bytes`; its length if all are below. */
  entryFrom(leafAt: number, bytes: Buffer): number {
    const leaf = this.#leaves[leafAt] ?? [];
    const isBefore = (at: number) => this.#slab.compareTo(leaf[at] as number, bytes) < 0; // at < length
    return partitionPoint(0, leaf.length, isBefore);
  }

  memoryBytes(): number {
    let bytes = this.#pending.length * this.#pendingMax * 4;
    bytes += (this.#run?.items.length ?? 0) * 8;
    bytes += (this.#members.length * (this.#memberMask + 1)) / 8;
    for (const leaf of this.#leaves) bytes += leaf.byteLength + 8;
    return bytes;
  }

  #pendingParts(): Uint32Array[] {
    const last = this.#pending.length - 1;
    const parts = this.#pending.map((chunk, at) =>
      at === last ? chunk.subarray(0, this.#pendingTail) : chunk,
    );
    if (this.#run !== undefined) parts.push(this.#run.items.subarray(this.#runAt));
    return parts;
  }

  /** Returns the members as bytes; unaffected by later changes of the order. */
  parts(): Uint8Array[] {
    const pending = this.#pendingParts().map((part) => part.slice());
    const lengths = Uint32Array.from(this.#leaves, (leaf) => leaf.length);
    const pendingCount = this.#memberCount - lengths.reduce((sum, length) => sum + length, 0);
    return [
      bytesOf(Uint32Array.of(lengths.length, pendingCount)),
      bytesOf(lengths),
      ...this.#leaves.map(bytesOf),
      ...pending.map(bytesOf),
    ];
  }

  /** Fills an empty order from the bytes of `parts`. @throws EngineError database-damaged */
  restore(reader: ByteReader): void {
    assert(this.#memberCount === 0, "only an empty order is restored");
    const leafCount = reader.uint32();
    const pendingCount = reader.uint32();
    const count = this.#slab.count;
    reader.expect(leafCount <= count && pendingCount <= count, "counts");
    for (const length of reader.uint32s(leafCount)) {
      reader.expect(length > 0, "leaf length");
      const leaf = reader.uint32s(length);
      for (let at = 0; at < length; at++) this.#restoreMember(leaf[at] as number, reader, count);
      this.#leaves.push(leaf);
    }
    for (const docNum of reader.uint32s(pendingCount)) {
      reader.expect(docNum < count && !this.#isMember(docNum), "pending document number");
      this.add(docNum);
    }
  }

  /** Hot: once for each document. */
  #restoreMember(docNum: number, reader: ByteReader, count: number): void {
    if (docNum >= count || this.#isMember(docNum)) reader.expect(false, "document number");
    this.#setMember(docNum, true);
    this.#memberCount++;
  }

  checkInvariants(rows: RowStore): void {
    const members = new Set<number>();
    let previous = -1;
    for (const leaf of this.#leaves) {
      assert(leaf.length > 0 && leaf.length <= this.#leafMax, "leaves are filled within bounds");
      for (const docNum of leaf) {
        assert(previous < 0 || this.#slab.compare(previous, docNum) < 0, "leaves ascend by id");
        previous = docNum;
        members.add(docNum);
      }
    }
    let count = [...this.#leaves].reduce((sum, leaf) => sum + leaf.length, 0);
    for (const part of this.#pendingParts()) {
      for (const docNum of part) members.add(docNum);
      count += part.length;
    }
    assert(members.size === count, "a member is in one place");
    assert(count === this.#memberCount, "members are counted");
    for (let docNum = 0; docNum < this.#slab.count; docNum++) {
      assert(this.#isMember(docNum) === members.has(docNum), "members are marked");
      assert(members.has(docNum) || !rows.isDocumentSeen(docNum), "every document is in the order");
    }
  }
}

/** Iterates over documents by id. Remains valid when the order changes between two calls. */
export class IdCursor {
  readonly #order: IdOrder;
  readonly #rows: () => RowColumns;
  /** The range of ids: from `#lower` to `#upper` (exclusive; empty: to the end). */
  readonly #lower: Buffer;
  readonly #upper: Buffer;
  readonly #isLowerExclusive: boolean;
  #version = -1;
  #leafAt = 0;
  #entry = 0;
  #endLeaf = 0;
  #endEntry = 0;
  /**
   * The id of the last document visited, null before the first: its number may belong to another id by the next call.
   */
  #last: Buffer | null = null;

  /** Created by a table or view, from an order without pending documents. */
  constructor(order: IdOrder, rows: () => RowColumns, prefix: Buffer, after: Buffer | undefined) {
    this.#order = order;
    this.#rows = rows;
    const isAfter = after !== undefined && compareAll(after, prefix) >= 0;
    this.#lower = isAfter ? after : prefix;
    this.#isLowerExclusive = isAfter;
    this.#upper = Buffer.from(prefix);
    // The least text above all that begin with the prefix. No byte of UTF-8 is 255, so adding 1 never carries.
    if (prefix.length > 0)
      this.#upper[prefix.length - 1] = (prefix[prefix.length - 1] as number) + 1;
  }

  /**
   * Puts the next document numbers, at most `limit`, into `batch`.
   * @returns how many; fewer than `limit` only at the end. Cost: O(log documents + entries passed).
   */
  fill(batch: Uint32Array | Int32Array, limit: number): number {
    assert(limit <= batch.length, "a batch has room for its limit");
    if (this.#version !== this.#order.version) this.#seek();
    const rows = this.#rows();
    const leaves = this.#order.leaves;
    let filled = 0;
    let last = -1;
    for (; this.#leafAt <= this.#endLeaf; this.#leafAt++, this.#entry = 0) {
      const leaf = leaves[this.#leafAt];
      if (leaf === undefined) break;
      const end = this.#leafAt === this.#endLeaf ? this.#endEntry : leaf.length;
      for (; this.#entry < end && filled < limit; this.#entry++) {
        last = leaf[this.#entry] as number; // entry < end <= length
        if (rows.etagOf(last) !== 0) batch[filled++] = last;
      }
      if (this.#entry < end || this.#leafAt === this.#endLeaf) break;
    }
    if (last >= 0) this.#last = Buffer.from(this.#order.slab.textOf(last));
    return filled;
  }

  /** Finds the position after the last document visited, and the end, in the present leaves. */
  #seek(): void {
    const order = this.#order;
    this.#version = order.version;
    const isStart = this.#last === null;
    const lower = this.#last ?? this.#lower;
    this.#leafAt = order.leafFrom(lower);
    this.#entry = order.entryFrom(this.#leafAt, lower);
    if (this.#entry === order.leaves[this.#leafAt]?.length) {
      this.#leafAt++;
      this.#entry = 0;
    }
    const found = order.leaves[this.#leafAt]?.[this.#entry];
    const isExclusive = isStart ? this.#isLowerExclusive : true;
    if (isExclusive && found !== undefined && order.slab.compareTo(found, lower) === 0)
      this.#entry++;
    if (this.#upper.length === 0) {
      this.#endLeaf = order.leaves.length - 1;
      this.#endEntry = order.leaves[this.#endLeaf]?.length ?? 0;
    } else {
      this.#endLeaf = order.leafFrom(this.#upper);
      this.#endEntry = order.entryFrom(this.#endLeaf, this.#upper);
    }
  }
}

function compareAll(left: Buffer, right: Buffer): number {
  return compareBytes(left, 0, left.length, right, 0, right.length);
}
