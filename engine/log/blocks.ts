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
 * - The check of each record was verified before anybody sees it: in an extent when the record is first asked for.
 */
import { setImmediate } from "node:timers";
import { sharedMemory } from "./image-pool.ts";
import { verifyRecord } from "./record.ts";
import type { Segment } from "./segment.ts";

/** Bytes of an extent when a cache is large enough for it. */
export const extentBytesMax = 256 * 1024;
/** Behind the end of an extent this part of its bytes is read too. */
const overShare = 1 / 16;
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
  readonly #poisons: boolean;
  readonly #collect: (memory: ArrayBufferLike) => void;
  readonly #idle: Buffer[] = [];
  #given: Block[] = [];

  constructor(extentBytes: number, poisons: boolean, collect: (memory: ArrayBufferLike) => void) {
    this.extentBytes = extentBytes;
    this.blockBytes = extentBytes + extentBytes * overShare;
    this.#poisons = poisons;
    this.#collect = collect;
  }

  get idleBytes(): number {
    return this.#idle.length * this.blockBytes;
  }

  take(): Buffer {
    return this.#idle.pop() ?? sharedMemory(this.blockBytes, this.blockBytes);
  }

  /** The block is not in the cache, and nobody holds it: unless that changes, its memory is free in the next turn. */
  give(block: Block): void {
    this.#given.push(block);
    if (this.#given.length > 1) return;
    setImmediate(() => {
      const given = this.#given;
      this.#given = [];
      for (const one of given) if (one.isFree) this.#keep(one);
    });
  }

  /** Drops one idle memory. @returns whether there was any */
  drop(): boolean {
    const memory = this.#idle.pop();
    if (memory === undefined) return false;
    this.#collect(memory.buffer);
    return true;
  }

  #keep(block: Block): void {
    const memory = block.end();
    if (memory === null) return;
    if (this.#poisons) memory.fill(poison);
    if (memory.length === this.blockBytes) this.#idle.push(memory);
    else this.#collect(memory.buffer);
  }
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
  /** A bit for each multiple of 8: the record that begins there is whole. */
  readonly #checked: Uint8Array;

  constructor(
    segment: Segment,
    index: number,
    start: number,
    length: number,
    bytes: Buffer,
    pool: BlockPool,
  ) {
    super(bytes, pool);
    this.segment = segment;
    this.index = index;
    this.start = start;
    this.endOffset = start + length;
    this.#checked = new Uint8Array(index < 0 ? 1 : pool.extentBytes >>> 6);
  }

  override get isImage(): boolean {
    return false;
  }

  /** Is the record of `length` bytes at `offset` of the segment in here, and whole? */
  has(offset: number, length: number): boolean {
    if (offset < this.start || offset + length > this.endOffset) return false;
    const at = offset - this.start;
    const bit = 1 << ((at >>> 3) & 7);
    const checked = this.#checked[at >>> 6];
    // What begins behind an extent's own part belongs to the next.
    if (checked === undefined) return false;
    if ((checked & bit) !== 0) return true;
    if (!verifyRecord(this.bytes, at, length)) return false;
    this.#checked[at >>> 6] = checked | bit;
    return true;
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
    return this.filled + entryBytes + length <= this.bytes.length;
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

/** Slots that a `SingleTable` can name. */
export const slotCountMax = 32_767;
const entryCountMin = 16;

/** Where single records of one segment stand: slot, place / 8 and a bit for "used", by offset / 8. Open addressing. */
export class SingleTable {
  #keys = new Uint32Array(entryCountMin);
  #values = new Uint32Array(entryCountMin);
  #count = 0;

  /** @returns the slot and the place as `slot * 2^16 + place / 8`, or -1. It counts as a use. */
  find(offset: number): number {
    const at = this.#indexOf(offset / 8);
    if (at < 0) return -1;
    const value = this.#values[at] as number;
    this.#values[at] = value | 1;
    return value >>> 1;
  }

  /** Removes the record if it stands there. @returns whether it was used, or null when it was not there */
  remove(offset: number, slot: number, start: number): boolean | null {
    const at = this.#indexOf(offset / 8);
    if (at < 0) return null;
    const value = this.#values[at] as number;
    if (value >>> 1 !== slot * 0x1_0000 + start / 8) return null;
    this.#removeAt(at);
    return (value & 1) !== 0;
  }

  set(offset: number, slot: number, start: number): void {
    if (this.#count * 2 >= this.#keys.length) this.#grow();
    const value = (slot * 0x2_0000 + (start / 8) * 2) >>> 0;
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

function hashOf(key: number): number {
  const mixed = Math.imul(key, 0x9e3779b1);
  return (mixed ^ (mixed >>> 15)) >>> 0;
}
