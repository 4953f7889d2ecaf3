/**
 * Cache of the records of sealed segments, shared by all logs of a process: images of segments that were written or
 * replayed, and blocks (blocks.ts) of records read since. Images of segments that are being written are counted but
 * never evicted; images of in-memory logs are neither cached nor counted.
 *
 * Eviction is resistant to scans of more data than fits:
 * - New extents are on probation, and are evicted first in, first out while they use more than a tenth of the bytes. An
 *   extent that is used during probation, or is read again soon after its eviction, is promoted to the main queue.
 * - Else the least recently used of all others (images, extents, blocks of single records) is evicted. The records of
 *   an evicted block that were used are copied to another block.
 * A scan's use of an extent does not count, as it visits everything once.
 *
 * Invariants:
 * - Cached data uses at most `bytesMax` bytes.
 */

import { borrowed } from "../../base/memory/borrowed-bytes.ts";
import { MemoryBudget } from "../../base/memory/memory-budget.ts";
import {
  Block,
  BlockPool,
  Extent,
  GatheredBlock,
  type RecordPlace,
  type SinglePlace,
  SingleTable,
  slotCountMax,
} from "./blocks.ts";
import { extentBytesMax } from "./extent-sums.ts";
import { ImagePool, letGo } from "./image-pool.ts";
import type { Segment } from "./segment.ts";

/** A cache holds at least this many blocks: in a small cache, blocks are smaller. */
const blockCountMin = 16;
const extentBytesMin = 256;
/** A smaller cache holds nothing: then blocks, which only readers hold, have the usual size. */
const cacheBytesMin = 4096;
/** Maximum share of the bytes for new extents. */
const probationShare = 1 / 10;
const usesMax = 3;
/** Minimum share of the bytes for records, regardless of the segments that are being written. */
const recordsShare = 1 / 4;
/** Maximum share of a block for a single record; a longer record has its own memory. */
const singleShare = 1 / 8;
/** The share of the bytes that is kept free for the next reads; likewise for images. */
const idleShare = 1 / 16;
/** Idle blocks are freed only beyond this excess over the maximum: memory that readers hold is returned shortly. */
const slackShare = 1 / 8;
/** Evicted blocks whose used records are copied, in one call; of further blocks all records are dropped. */
const gatheredAgainMax = 8;

export class SegmentCache {
  /** Allocates images, and recycles the images of removed segments. */
  readonly images: ImagePool;
  readonly blocks: BlockPool;
  readonly #limit: number | MemoryBudget;
  readonly #segments = new Set<Segment>();
  #imageBytes = 0;
  readonly #written = new Set<Segment>();
  #writtenBytes = 0;
  /** Bytes of the last of them: the next one may reuse the memory of an evicted image. */
  #writtenImageBytes = 0;
  readonly #probation = new Set<Extent>();
  #probationBytes = 0;
  readonly #main = new Set<Extent>();
  #mainBytes = 0;
  /** Bytes of records with their own memory; they are counted among the extents too. */
  #longBytes = 0;
  readonly #gathered = new Set<GatheredBlock>();
  /** By slot. */
  readonly #slots: (GatheredBlock | null)[] = [];
  readonly #freeSlots: number[] = [];
  #open: GatheredBlock | null = null;
  /** Extents evicted from probation lately, by segment and number. */
  readonly #ghosts = new Set<string>();
  #ticks = 0;
  /** Scratch value of `place`. */
  readonly #found: SinglePlace = { slot: 0, start: 0 };

  constructor(limit: number | MemoryBudget, images = new ImagePool(), extentBytes?: number) {
    this.#limit = limit;
    this.images = images;
    const bytes = extentBytes ?? extentBytesFor(limit);
    this.blocks = new BlockPool(bytes, images.poisons, letGo);
    if (limit instanceof MemoryBudget) limit.addCache(() => this.#shrink());
  }

  /** Bytes that it may hold now. */
  get bytesMax(): number {
    const limit = this.#limit;
    const all = typeof limit === "number" ? limit : limit.cacheBytesMax;
    return Math.max(all - this.#writtenBytes, Math.floor(all * recordsShare));
  }

  /** Bytes that it holds now, including idle blocks and blocks that are held by readers or being filled. */
  get bytes(): number {
    return this.#usedBytes + this.blocks.idleBytes;
  }

  get #usedBytes(): number {
    return this.#imageBytes + this.#longBytes + this.blocks.usedBytes;
  }

  // Images

  touch(segment: Segment): void {
    segment.usedAt = ++this.#ticks;
  }

  /** `segment` is being written: its image is counted, and not evicted, until `add` or `remove`. */
  write(segment: Segment): void {
    if (this.#written.has(segment)) return;
    this.#ownImage(segment);
    this.#written.add(segment);
    this.#writtenBytes += segment.size;
    this.#writtenImageBytes = segment.size;
    this.#shrink();
  }

  /** Caches the image of `segment`, which is final, and evicts others until it fits. */
  add(segment: Segment): void {
    if (this.#segments.has(segment) || segment.image === null) return;
    this.#ownImage(segment);
    if (this.#written.delete(segment)) this.#writtenBytes -= segment.size;
    this.touch(segment);
    this.#segments.add(segment);
    this.#imageBytes += segment.size;
    this.#shrink();
  }

  /** Returns whether `bytes` more bytes fit without an eviction. */
  hasRoom(bytes: number): boolean {
    return this.bytes + bytes <= this.bytesMax;
  }

  /** Drops everything of a segment that was removed, or whose log is closed. */
  remove(segment: Segment): void {
    this.#dropImage(segment);
    for (const extent of segment.extents) if (extent) this.#dropExtent(extent);
    for (const extent of segment.longRecords.values()) this.#dropExtent(extent);
    segment.singles = null;
    this.#keepIdle();
  }

  #dropImage(segment: Segment): void {
    if (this.#written.delete(segment)) this.#writtenBytes -= segment.size;
    if (this.#segments.delete(segment)) this.#imageBytes -= segment.size;
    segment.image = null;
    segment.imageBlock?.leave();
    segment.imageBlock = null;
  }

  #ownImage(segment: Segment): void {
    if (segment.image === null || segment.imageBlock !== null) return;
    segment.imageBlock = new Block(segment.image, this.images);
    segment.imageBlock.isCached = true;
  }

  // Extents

  /** Returns the extent at byte `offset` of the segment, if it is cached. */
  extentAt(segment: Segment, offset: number): Extent | null {
    return segment.extents[Math.floor(offset / this.blocks.extentBytes)] ?? null;
  }

  /** Caches an extent or a long record that was read. The segment must still be in its log. */
  addExtent(extent: Extent): void {
    const { segment, index } = extent;
    if (index < 0) segment.longRecords.set(extent.start, extent);
    else segment.extents[index] = extent;
    extent.isCached = true;
    extent.usedAt = ++this.#ticks;
    extent.isMain = this.#ghosts.delete(ghostOf(extent));
    const queue = extent.isMain ? this.#main : this.#probation;
    queue.add(extent);
    this.#count(extent, extent.bytes.length);
    if (index < 0) this.#longBytes += extent.bytes.length;
    this.#shrink();
  }

  #count(extent: Extent, bytes: number): void {
    if (extent.isMain) this.#mainBytes += bytes;
    else this.#probationBytes += bytes;
  }

  #dropExtent(extent: Extent): void {
    const { segment, index } = extent;
    (extent.isMain ? this.#main : this.#probation).delete(extent);
    this.#count(extent, -extent.bytes.length);
    if (index < 0) {
      segment.longRecords.delete(extent.start);
      this.#longBytes -= extent.bytes.length;
    } else segment.extents[index] = null;
    extent.leave();
  }

  // Single records

  /** Caches a copy of a record that was read individually and verified. */
  addSingle(segment: Segment, offset: number, source: Buffer, start: number, length: number): void {
    const { blockBytes } = this.blocks;
    if (blockBytes > this.bytesMax) return;
    if (length > blockBytes * singleShare) {
      if (length > this.bytesMax * probationShare || segment.longRecords.has(offset)) return;
      const bytes = Buffer.from(source.subarray(start, start + length));
      this.addExtent(new Extent(segment, -1, offset, length, bytes, this.blocks));
      return;
    }
    this.#gather(segment, offset, source, start, length);
    this.#shrink();
  }

  #gather(segment: Segment, offset: number, source: Buffer, start: number, length: number): void {
    const block = this.#open?.hasRoom(length) ? this.#open : this.#openGathered();
    if (block === null) return;
    segment.singles ??= new SingleTable();
    segment.singles.set(offset, block.slot, block.add(segment, offset, source, start, length));
  }

  #openGathered(): GatheredBlock | null {
    const slot = this.#freeSlots.pop() ?? this.#slots.length;
    if (slot > slotCountMax) return null;
    const block = new GatheredBlock(slot, this.blocks.take(), this.blocks);
    block.isCached = true;
    block.usedAt = ++this.#ticks;
    this.#slots[slot] = block;
    this.#gathered.add(block);
    this.#open = block;
    return block;
  }

  // Finding

  /** Sets `target` to the position of a record outside of images. @returns whether it is in memory */
  place(
    segment: Segment,
    offset: number,
    length: number,
    target: RecordPlace,
    isWalk: boolean,
  ): boolean {
    const extent = this.extentAt(segment, offset);
    if (extent?.has(offset, length)) return this.#foundIn(extent, offset, target, isWalk);
    const { singles } = segment;
    if (singles !== null) {
      const found = this.#found;
      if (singles.find(offset, found)) {
        const block = this.#slots[found.slot] as GatheredBlock; // the table refers only to cached blocks
        block.usedAt = ++this.#ticks;
        target.bytes = borrowed(block.bytes);
        target.start = found.start;
        target.block = block;
        return true;
      }
    }
    const long = segment.longRecords.size === 0 ? undefined : segment.longRecords.get(offset);
    return long?.has(offset, length) ? this.#foundIn(long, offset, target, isWalk) : false;
  }

  #foundIn(extent: Extent, offset: number, target: RecordPlace, isWalk: boolean): boolean {
    if (!isWalk) {
      if (extent.uses < usesMax) extent.uses++;
      extent.usedAt = ++this.#ticks;
    }
    target.bytes = borrowed(extent.bytes);
    target.start = offset - extent.start;
    target.block = extent;
    return true;
  }

  // Eviction

  #shrink(): void {
    const { bytesMax } = this;
    // Evicts in advance, so that the next reads recycle memory instead of allocating it.
    const { blocks } = this;
    const idleBytes = Math.floor((bytesMax * idleShare) / blocks.blockBytes) * blocks.blockBytes;
    const idleImages = this.#idleImageBytes(bytesMax);
    const most = bytesMax - idleBytes - idleImages;
    let gatheredAgain = 0;
    while (this.#usedBytes > most) {
      const image = this.#oldestImage();
      const extent = this.#nextExtent(bytesMax);
      const block = first(this.#gathered);
      const oldest = oldestOf(image, extent, block);
      if (oldest === null) break;
      if (oldest === image) this.#dropImage(image as Segment);
      else if (oldest === block) this.#dropGathered(block, gatheredAgain++ < gatheredAgainMax);
      else this.#evict(oldest as Extent);
    }
    const bytesThen = bytesMax * (1 + slackShare) - idleImages;
    while (this.bytes > bytesThen && blocks.drop());
    this.#keepIdle();
  }

  /**
   * Returns the bytes reserved for idle images: while images are in use, enough for one, whether or not one is idle.
   * Each new image then reuses the memory of an evicted image. (If only the current idle bytes were counted, a new
   * image would evict none, the next would need new memory, and then two would be evicted.)
   */
  #idleImageBytes(bytesMax: number): number {
    return this.images.isInUse ? Math.max(bytesMax * idleShare, this.#writtenImageBytes) : 0;
  }

  /** Idle images may exceed the reserved bytes for a while: dropped images use memory until they are collected. */
  #keepIdle(): void {
    const { bytesMax } = this;
    const room = bytesMax - this.bytes;
    const least = Math.max(bytesMax * idleShare, this.#writtenImageBytes);
    this.images.keepIdle(Math.max(2 * least, room));
  }

  #oldestImage(): Segment | null {
    let oldest: Segment | null = null;
    for (const segment of this.#segments) {
      if (oldest === null || segment.usedAt < oldest.usedAt) oldest = segment;
    }
    return oldest;
  }

  /** Returns the extent to evict next, if any. Promotes extents that were used during probation. */
  #nextExtent(bytesMax: number): Extent | null {
    for (;;) {
      const newest = first(this.#probation);
      if (newest === null) break;
      const isCrowded = this.#probationBytes > bytesMax * probationShare;
      const others = this.#mainBytes + this.#imageBytes + this.#gathered.size;
      if (!isCrowded && others > 0) break;
      // An extent evicted first.
      if (newest.uses === 0) {
        newest.usedAt = 0;
        return newest;
      }
      this.#probation.delete(newest);
      this.#count(newest, -newest.bytes.length);
      newest.uses = 0;
      newest.isMain = true;
      this.#main.add(newest);
      this.#count(newest, newest.bytes.length);
    }
    for (;;) {
      const oldest = first(this.#main);
      if (oldest === null || oldest.uses === 0) return oldest ?? first(this.#probation);
      oldest.uses--;
      this.#main.delete(oldest);
      this.#main.add(oldest);
    }
  }

  #evict(extent: Extent): void {
    if (!extent.isMain && extent.index >= 0) this.#remember(extent);
    this.#dropExtent(extent);
  }

  #remember(extent: Extent): void {
    this.#ghosts.add(ghostOf(extent));
    const most = this.bytesMax / this.blocks.blockBytes;
    for (const ghost of this.#ghosts) {
      if (this.#ghosts.size <= most) return;
      this.#ghosts.delete(ghost);
    }
  }

  #dropGathered(block: GatheredBlock | null, keepsUsed: boolean): void {
    if (block === null) return;
    this.#gathered.delete(block);
    this.#slots[block.slot] = null;
    if (this.#open === block) this.#open = null;
    block.isCached = false;
    block.each((segment, offset, start, length) => {
      const wasUsed = segment.singles?.remove(offset, block.slot, start);
      if (wasUsed && keepsUsed) this.#gather(segment, offset, block.bytes, start, length);
    });
    this.#freeSlots.push(block.slot);
    block.leave();
  }
}

function extentBytesFor(limit: number | MemoryBudget): number {
  if (typeof limit !== "number" || limit < cacheBytesMin) return extentBytesMax;
  const bytes = 2 ** Math.floor(Math.log2(limit / blockCountMin));
  return Math.max(extentBytesMin, Math.min(extentBytesMax, bytes));
}

function ghostOf({ segment, index }: Extent): string {
  return `${segment.salt}.${segment.number}.${index}`;
}

function first<Item>(set: ReadonlySet<Item>): Item | null {
  for (const item of set) return item;
  return null;
}

/** Returns the least recently used item. */
function oldestOf(...items: readonly (Segment | Block | null)[]): Segment | Block | null {
  let oldest: Segment | Block | null = null;
  for (const item of items) {
    if (item !== null && (oldest === null || item.usedAt < oldest.usedAt)) oldest = item;
  }
  return oldest;
}
