/**
 * Blocks: pieces of memory of one size that the cache of records is made of. An extent is a stretch of a segment's file as
 * it stands there; a gathered block has records from anywhere, one behind the other, each read by itself.
 *
 *   segment   | extent 0        | extent 1        | extent 2 ...
 *   extent 0  | bytes           | over | behind its end as much again as most records need: one that begins in an
 *                                        extent is in it whole, unless it is long
 *
 * Invariants:
 * - The memory of a block that left the cache is not used again before the next turn of the event loop, nor while anybody
 *   holds it. Who looks at a record for longer than a turn holds its block; who forgets to release it leaves the memory
 *   to the collector.
 * - Nobody sees a record that was not verified since it was read: by its own check, or by the sum of the whole extent, which
 *   was taken of bytes in memory that were just written or verified; or a short time before that (`ComparedExtents`).
 */
import { setImmediate } from "node:timers";
import { verifyRecord } from "../base/record.ts";
import { blockBytesFor, extentBytesMax, sumOf } from "./extent-sums.ts";
import { sharedMemory } from "./image-pool.ts";
import type { Segment } from "./segment.ts";

/** Of an extent whose sum is known so many records are checked each by itself; then all of it, which is as cheap as some 500. */
const aloneMax = 32;
/** What a test that reads a record too late finds. */
const poison = 0xdb;

/** Where a record is in memory. */
export interface RecordPlace {
  bytes: Buffer;
  /** Where the record begins in `bytes`. */
  start: number;
  /** To be held by who looks at it for longer than a turn; null: there is nothing to hold. */
  block: Block | null;
}

export function newPlace(): RecordPlace {
  return { bytes: nothing, start: 0, block: null };
}

const nothing = Buffer.alloc(0);

/** Memory of blocks that are gone, for the next ones. */
export class BlockPool implements BlockKeeper {
  /** Bytes of an extent's own part, a power of 2. */
  readonly extentBytes: number;
  /** Bytes of a block's memory. */
  readonly blockBytes: number;
  /** Bytes of all memory that was made, wherever it is now, but for what was dropped or collected. */
  bytes = 0;
  readonly #poisons: boolean;
  readonly #collect: (memory: ArrayBufferLike) => void;
  readonly #idle: Buffer[] = [];
  #given = new Set<Block>();
  /** Memory that nobody gave back. */
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

  /** Bytes of what is in the cache, being read, or held by somebody though it left the cache. */
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

  /** The block is not in the cache, and nobody holds it: unless that changes, its memory is free in the next turn. */
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

  /** Drops one idle memory. @returns whether there was any */
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

/** Was it made here? A long record has memory of its own. */
function isPooled(memory: Buffer): boolean {
  return memory.buffer instanceof SharedArrayBuffer;
}

/** Where memory of blocks goes. */
export interface BlockKeeper {
  give(block: Block): void;
}

/** Memory that is used again when nobody holds it any more. The image of a whole segment is one too. */
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

  /** Is it the whole segment, from its byte 0 on? */
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

  /** It is no longer in the cache. */
  leave(): void {
    this.isCached = false;
    if (this.isFree) this.#keeper.give(this);
  }

  /** @returns its memory, once: null when it was given before */
  end(): Buffer | null {
    if (this.#hasEnded) return null;
    this.#hasEnded = true;
    return this.bytes;
  }
}

/** Bytes `[start, end)` of a segment. */
export class Extent extends Block {
  readonly segment: Segment;
  /** Which one of the segment's, or -1: a long record alone. */
  readonly index: number;
  readonly start: number;
  readonly endOffset: number;
  /** How often it was used since it was last looked at for eviction, up to a small number. */
  uses = 0;
  isMain = false;
  readonly #ownBytes: number;
  readonly #readAtMs: number;
  /** Of all its bytes, when it is known; null once they were compared. */
  #sum: number | null;
  #isWhole: boolean;
  #aloneCount = 0;
  /** A bit for each multiple of 8: the record that begins there is whole. Null: none was looked at. */
  #checked: Uint8Array | null = null;

  /** `readAtMs`: when reading its bytes was begun, see `ComparedExtents`. */
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

  /** Is the record of `length` bytes at `offset` of the segment in here, and whole? Hot. */
  has(offset: number, length: number): boolean {
    if (offset < this.start || offset + length > this.endOffset) return false;
    const at = offset - this.start;
    // What begins behind an extent's own part belongs to the next.
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

/** Bytes before each record of a gathered block: which segment of the block's list, offset / 8, length, nothing. */
const entryBytes = 16;

/** Records from anywhere. */
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

  /** @returns where the record stands now */
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

  /** Tells of all records, also of those that are not asked for here any more. */
  each(tell: (segment: Segment, offset: number, start: number, length: number) => void): void {
    for (let at = 0; at < this.filled; ) {
      const segment = this.#segments[this.bytes.readUInt32LE(at)] as Segment; // added with it
      const length = this.bytes.readUInt32LE(at + 8);
      tell(segment, this.bytes.readUInt32LE(at + 4) * 8, at + entryBytes, length);
      at += entryBytes + length;
    }
  }
}

/** Bits of a place / 8 in a `SingleTable`, and the bytes of a block that can be named so. */
const placeBits = 17;
const placeEnd = 8 * 2 ** placeBits;
/** Slots that a `SingleTable` can name: in 32 bits with a place and one bit more. */
export const slotCountMax = 2 ** (31 - placeBits) - 1;
const entryCountMin = 16;

/** Where a record that was read by itself stands. */
export interface SinglePlace {
  slot: number;
  start: number;
}

/** Where single records of one segment stand: slot, place / 8 and a bit for "used", by offset / 8. Open addressing. */
export class SingleTable {
  #keys = new Uint32Array(entryCountMin);
  #values = new Uint32Array(entryCountMin);
  #count = 0;

  /** Tells `found` where the record is. It counts as a use. @returns whether it is there */
  find(offset: number, found: SinglePlace): boolean {
    const at = this.#indexOf(offset / 8);
    if (at < 0) return false;
    const value = this.#values[at] as number;
    this.#values[at] = value | 1;
    found.slot = value >>> (placeBits + 1);
    found.start = ((value >>> 1) & (2 ** placeBits - 1)) * 8;
    return true;
  }

  /** Removes the record if it stands there. @returns whether it was used, or null when it was not there */
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

  /** What stands behind moves up, so that nothing is found in vain. */
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
