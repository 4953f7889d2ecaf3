/**
 * Blocks: the record cache's memory, in buffers of equal size. An extent is a copy of a range of a segment's file; a
 * gathered block contains individually read records of any segments, one after another.
 *
 *   segment   | extent 0        | extent 1        | extent 2 ...
 *   extent 0  | bytes           | over | beyond its end, as much as most records need: a record that begins in an
 *                                        extent is entirely in it, unless it is long
 *
 * Invariants:
 * - The memory of an evicted block is not reused before the next tick of the event loop, nor while the block is held. A
 *   reader that uses a record for longer than a tick holds its block; if it does not release the block, its memory is
 *   left to the garbage collector.
 * - A record is returned only after it has been verified since it was read: by its own checksum, or by the checksum of
 *   its extent, computed from bytes just written or verified; or if the extent was verified shortly before
 *   (`ComparedExtents`).
 */
import { setImmediate } from "node:timers";
import { type BorrowedBytes, borrowed } from "../../base/memory/borrowed-bytes.ts";
import { verifyRecord } from "../../base/record.ts";
import { blockBytesFor, extentBytesMax, sumOf } from "./extent-sums.ts";
import { sharedMemory } from "./image-pool.ts";
import type { Segment } from "./segment.ts";

/** Records of an extent that are verified singly before its sum is, if known, at the cost of some 500 records. */
const aloneMax = 32;
/** Tests overwrite released memory with this byte, to detect late reads. */
const poison = 0xdb;

/** The place of a record in memory. */
export interface RecordPlace {
  bytes: BorrowedBytes;
  /** Offset of the record in `bytes`. */
  start: number;
  /** Must be held by a reader that uses the record for longer than a tick of the event loop; null: nothing to hold. */
  block: Block | null;
}

export function newPlace(): RecordPlace {
  return { bytes: nothing, start: 0, block: null };
}

const nothing = borrowed(Buffer.alloc(0));

/** Recycles the memory of blocks. */
export class BlockPool implements BlockKeeper {
  /** Size of an extent in bytes, without the overlap after its end; a power of 2. */
  readonly extentBytes: number;
  /** Bytes of a block's memory. */
  readonly blockBytes: number;
  /** Bytes of all memory allocated here and not yet dropped or collected. */
  bytes = 0;
  readonly #poisons: boolean;
  readonly #collect: (memory: ArrayBufferLike) => void;
  readonly #idle: Buffer[] = [];
  #given = new Set<Block>();
  /** Accounts for memory that was never released, when it is collected. */
  readonly #forgotten = new FinalizationRegistry<null>(() => {
    this.bytes -= this.blockBytes;
  });

  constructor(extentBytes: number, poisons: boolean, collect: (memory: ArrayBufferLike) => void) {
    this.extentBytes = extentBytes;
    this.blockBytes = blockBytesFor(extentBytes);
    this.#poisons = poisons;
    this.#collect = collect;
  }

  get idleBytes(): number {
    return this.#idle.length * this.blockBytes;
  }

  /** Bytes of blocks that are cached, being filled, or evicted but still held. */
  get usedBytes(): number {
    return this.bytes - (this.#idle.length + this.#given.size) * this.blockBytes;
  }

  take(): Buffer {
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    this.bytes += this.blockBytes;
    const memory = sharedMemory(this.blockBytes, this.blockBytes);
    this.#forgotten.register(memory.buffer, null, memory.buffer);
    return memory;
  }

  /**
   * Releases a block that is neither cached nor held: unless that changes, its memory is reusable in the next tick of
   * the event loop.
   */
  give(block: Block): void {
    if (!isPooled(block.bytes)) return;
    this.#given.add(block);
    if (this.#given.size > 1) return;
    setImmediate(() => {
      const given = this.#given;
      this.#given = new Set();
      for (const one of given) if (one.isFree) this.#keep(one);
    });
  }

  /** Drops the memory of one idle block. @returns false when there was none */
  drop(): boolean {
    const memory = this.#idle.pop();
    if (memory === undefined) return false;
    this.bytes -= this.blockBytes;
    this.#forgotten.unregister(memory.buffer);
    this.#collect(memory.buffer);
    return true;
  }

  #keep(block: Block): void {
    const memory = block.end();
    if (memory === null) return;
    if (this.#poisons) memory.fill(poison);
    this.#idle.push(memory);
  }
}

/** Returns whether the memory was allocated by the pool. A long record has its own memory. */
function isPooled(memory: Buffer): boolean {
  return memory.buffer instanceof SharedArrayBuffer;
}

/** Receives blocks that are neither cached nor held. */
export interface BlockKeeper {
  give(block: Block): void;
}

/** Memory that is recycled when it is neither cached nor held. The image of a segment is one too. */
export class Block {
  bytes: Buffer;
  /** When it was last used, in ticks of the cache. */
  usedAt = 0;
  isCached = false;
  readonly #keeper: BlockKeeper;
  #holders = 0;
  #hasEnded = false;

  constructor(bytes: Buffer, keeper: BlockKeeper) {
    this.bytes = bytes;
    this.#keeper = keeper;
  }

  /** Whether it contains the whole segment, from byte 0 on. */
  get isImage(): boolean {
    return true;
  }

  get isFree(): boolean {
    return this.#holders === 0 && !this.isCached;
  }

  hold(): void {
    this.#holders++;
  }

  release(): void {
    this.#holders--;
    if (this.isFree) this.#keeper.give(this);
  }

  /** To be called when the block has been removed from the cache. */
  leave(): void {
    this.isCached = false;
    if (this.isFree) this.#keeper.give(this);
  }

  /** @returns its memory on the first call, then null */
  end(): Buffer | null {
    if (this.#hasEnded) return null;
    this.#hasEnded = true;
    return this.bytes;
  }
}

/** Bytes `[start, end)` of a segment. */
export class Extent extends Block {
  readonly segment: Segment;
  /** Its number in the segment, or -1: a single long record. */
  readonly index: number;
  readonly start: number;
  readonly endOffset: number;
  /** CLOCK counter: incremented by each use up to a small number, decremented when eviction passes over it. */
  uses = 0;
  isMain = false;
  readonly #ownBytes: number;
  readonly #readAtMs: number;
  /** Checksum of all its bytes, if known; null after the comparison. */
  #sum: number | null;
  #isWhole: boolean;
  #aloneCount = 0;
  /** A bit for each multiple of 8: the record that begins there is verified. Null: none is. */
  #checked: Uint8Array | null = null;

  /** `readAtMs`: start of the read of its bytes, see `ComparedExtents`. */
  constructor(
    segment: Segment,
    index: number,
    start: number,
    length: number,
    bytes: Buffer,
    pool: BlockPool,
    readAtMs = 0,
  ) {
    super(bytes, pool);
    this.segment = segment;
    this.index = index;
    this.start = start;
    this.endOffset = start + length;
    this.#ownBytes = index < 0 ? 1 : pool.extentBytes;
    this.#sum = pool.extentBytes === extentBytesMax ? (segment.extentSums[index] ?? null) : null;
    this.#readAtMs = readAtMs;
    this.#isWhole = this.#sum !== null && segment.compared.isTrusted(index, readAtMs);
  }

  override get isImage(): boolean {
    return false;
  }

  /** Returns whether it contains the record of `length` bytes at `offset` of the segment, verified. Hot. */
  has(offset: number, length: number): boolean {
    if (offset < this.start || offset + length > this.endOffset) return false;
    const at = offset - this.start;
    // A record that begins beyond the extent's end belongs to the next extent.
    if (at >= this.#ownBytes) return false;
    return this.#isWhole || this.#isChecked(at, length);
  }

  #isChecked(at: number, length: number): boolean {
    this.#checked ??= new Uint8Array(Math.ceil(this.#ownBytes / 64));
    const bit = 1 << ((at >>> 3) & 7);
    const checked = this.#checked[at >>> 6] as number; // at < ownBytes
    if ((checked & bit) !== 0) return true;
    if (this.#sum !== null && this.#aloneCount++ === aloneMax && this.#compareSum()) return true;
    if (!verifyRecord(this.bytes, at, length)) {
      this.segment.compared.forget();
      return false;
    }
    this.#checked[at >>> 6] = checked | bit;
    return true;
  }

  #compareSum(): boolean {
    this.#isWhole = sumOf(this.bytes, this.start, this.endOffset, this.start) === this.#sum;
    this.#sum = null;
    if (this.#isWhole) {
      this.#checked = null;
      this.segment.compared.add(this.index, this.#readAtMs);
    } else this.segment.compared.forget();
    return this.#isWhole;
  }
}

/** Bytes before each record of a gathered block, as u32: index in its list of segments, offset / 8, length, unused. */
const entryBytes = 16;

/** Individually read records of any segments. */
export class GatheredBlock extends Block {
  /** Its number among the gathered blocks of the cache. */
  readonly slot: number;
  filled = 0;
  readonly #segments: Segment[] = [];
  readonly #indexes = new Map<Segment, number>();

  constructor(slot: number, bytes: Buffer, pool: BlockPool) {
    super(bytes, pool);
    this.slot = slot;
  }

  override get isImage(): boolean {
    return false;
  }

  hasRoom(length: number): boolean {
    const end = this.filled + entryBytes + length;
    return end <= this.bytes.length && end <= placeEnd;
  }

  /** @returns the offset of the record in `bytes` */
  add(segment: Segment, offset: number, source: Buffer, start: number, length: number): number {
    let index = this.#indexes.get(segment);
    if (index === undefined) {
      index = this.#segments.push(segment) - 1;
      this.#indexes.set(segment, index);
    }
    const at = this.filled + entryBytes;
    this.bytes.writeUInt32LE(index, this.filled);
    this.bytes.writeUInt32LE(offset / 8, this.filled + 4);
    this.bytes.writeUInt32LE(length, this.filled + 8);
    source.copy(this.bytes, at, start, start + length);
    this.filled = at + length;
    return at;
  }

  /** Calls `visit` for each record, including records that were removed from their segment's table. */
  each(visit: (segment: Segment, offset: number, start: number, length: number) => void): void {
    for (let at = 0; at < this.filled; ) {
      const segment = this.#segments[this.bytes.readUInt32LE(at)] as Segment; // added with it
      const length = this.bytes.readUInt32LE(at + 8);
      visit(segment, this.bytes.readUInt32LE(at + 4) * 8, at + entryBytes, length);
      at += entryBytes + length;
    }
  }
}

/** Bits of an offset in a block, divided by 8, in a `SingleTable`, and the bytes of a block that they can address. */
const placeBits = 17;
const placeEnd = 8 * 2 ** placeBits;
/** Highest slot in a `SingleTable`: 32 bits hold slot, offset and one flag. */
export const slotCountMax = 2 ** (31 - placeBits) - 1;
const entryCountMin = 16;

/** The place of an individually read record: block and offset in it. */
export interface SinglePlace {
  slot: number;
  start: number;
}

/** Single records of a segment: slot, offset in the block / 8 and "used" bit, by offset / 8. Open addressing. */
export class SingleTable {
  #keys = new Uint32Array(entryCountMin);
  #values = new Uint32Array(entryCountMin);
  #count = 0;

  /** Sets `found` to the record's place and marks it as used. @returns whether the table contains the record */
  find(offset: number, found: SinglePlace): boolean {
    const at = this.#indexOf(offset / 8);
    if (at < 0) return false;
    const value = this.#values[at] as number;
    this.#values[at] = value | 1;
    found.slot = value >>> (placeBits + 1);
    found.start = ((value >>> 1) & (2 ** placeBits - 1)) * 8;
    return true;
  }

  /** Removes the record if it is at that position. @returns whether it was used; null if it is not there */
  remove(offset: number, slot: number, start: number): boolean | null {
    const at = this.#indexOf(offset / 8);
    if (at < 0) return null;
    const value = this.#values[at] as number;
    if ((value & ~1) >>> 0 !== packedPlace(slot, start)) return null;
    this.#removeAt(at);
    return (value & 1) !== 0;
  }

  set(offset: number, slot: number, start: number): void {
    if (this.#count * 2 >= this.#keys.length) this.#grow();
    const value = packedPlace(slot, start);
    const found = this.#indexOf(offset / 8);
    if (found >= 0) this.#values[found] = value;
    else this.#insert(offset / 8, value);
  }

  #insert(key: number, value: number): void {
    const mask = this.#keys.length - 1;
    let at = hashOf(key) & mask;
    while (this.#keys[at] !== 0) at = (at + 1) & mask;
    this.#keys[at] = key;
    this.#values[at] = value;
    this.#count++;
  }

  #indexOf(key: number): number {
    const keys = this.#keys;
    const mask = keys.length - 1;
    for (let at = hashOf(key) & mask; ; at = (at + 1) & mask) {
      const found = keys[at];
      if (found === key) return at;
      if (found === 0) return -1;
    }
  }

  /** Shifts later entries of the probe sequence back, so that no tombstones are needed. */
  #removeAt(index: number): void {
    const keys = this.#keys;
    const mask = keys.length - 1;
    let hole = index;
    for (let at = (index + 1) & mask; keys[at] !== 0; at = (at + 1) & mask) {
      const home = hashOf(keys[at] as number) & mask;
      if (((at - home) & mask) < ((at - hole) & mask)) continue;
      keys[hole] = keys[at] as number;
      this.#values[hole] = this.#values[at] as number;
      hole = at;
    }
    keys[hole] = 0;
    this.#count--;
  }

  #grow(): void {
    const keys = this.#keys;
    const values = this.#values;
    this.#keys = new Uint32Array(keys.length * 2);
    this.#values = new Uint32Array(keys.length * 2);
    this.#count = 0;
    for (let at = 0; at < keys.length; at++) {
      if (keys[at] !== 0) this.#insert(keys[at] as number, values[at] as number);
    }
  }
}

function packedPlace(slot: number, start: number): number {
  return ((slot << (placeBits + 1)) | (start >>> 2)) >>> 0;
}

function hashOf(key: number): number {
  const mixed = Math.imul(key, 0x9e3779b1);
  return (mixed ^ (mixed >>> 15)) >>> 0;
}
