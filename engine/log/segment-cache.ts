/**
 * The memory that records of sealed segments may take, shared by all logs of a process: images of whole segments that
 * were written or replayed, and blocks (blocks.ts) of what was read since. Segments that are being written are counted,
 * not kept; those of in-memory logs are neither.
 *
 * What goes first, so that a walk over more than there is room for does not take the place of what is used again:
 * - New extents are on probation, and go in the order of coming while all of them take more than a tenth. One that was
 *   used meanwhile, or comes back soon, is kept like the others.
 * - Of the others (images, extents, blocks of single records) the one that was not used for longest. Of a block of single
 *   records those that were used are gathered again.
 * A walk's use of an extent does not count: it comes to everything once.
 *
 * Invariants:
 * - What it keeps takes at most `bytesMax` bytes.
 */
import { MemoryBudget } from "../base/memory-budget.ts";
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

/** A cache has room for this many blocks at least, or they are smaller. */
const blockCountMin = 16;
const extentBytesMin = 256;
/** Caches below this have no room for anything: then blocks, which readers hold, are as large as usual. */
const cacheBytesMin = 4096;
/** The part of the bytes that new extents may take. */
const probationShare = 1 / 10;
const usesMax = 3;
/** Of the bytes, what is left for records though segments that are written take all. */
const recordsShare = 1 / 4;
/** A single record takes at most this part of a block; a longer one has memory of its own. */
const singleShare = 1 / 8;
/** The part of the bytes that is left free for what is read next; and for images. */
const idleShare = 1 / 16;
/** So much more than there is room for is not given back at once: what work takes for a moment it gives back in the next. */
const slackShare = 1 / 8;
/** Blocks whose used records are gathered again in one go; of more, all go. */
const gatheredAgainMax = 8;

export class SegmentCache {
  /** Where images come from, and where those of segments that are gone go. */
  readonly images: ImagePool;
  readonly blocks: BlockPool;
  readonly #limit: number | MemoryBudget;
  readonly #segments = new Set<Segment>();
  #imageBytes = 0;
  readonly #written = new Set<Segment>();
  #writtenBytes = 0;
  /** Of the last one: the next one may take the memory of one that goes. */
  #writtenImageBytes = 0;
  readonly #probation = new Set<Extent>();
  #probationBytes = 0;
  readonly #main = new Set<Extent>();
  #mainBytes = 0;
  /** Of records that have memory of their own; they are among the extents too. */
  #longBytes = 0;
  readonly #gathered = new Set<GatheredBlock>();
  /** By slot. */
  readonly #slots: (GatheredBlock | null)[] = [];
  readonly #freeSlots: number[] = [];
  #open: GatheredBlock | null = null;
  /** Extents that went from probation lately, by segment and number. */
  readonly #ghosts = new Set<string>();
  #ticks = 0;
  /** Used again by every call. */
  readonly #found: SinglePlace = { slot: 0, start: 0 };

  constructor(limit: number | MemoryBudget, images = new ImagePool(), extentBytes?: number) {
    this.#limit = limit;
    this.images = images;
    const bytes = extentBytes ?? extentBytesFor(limit);
    this.blocks = new BlockPool(bytes, images.poisons, letGo);
    if (limit instanceof MemoryBudget) limit.addCache(() => this.#shrink());
  }

  /** Bytes that it may take now. */
  get bytesMax(): number {
    const limit = this.#limit;
    const all = typeof limit === "number" ? limit : limit.cacheBytesMax;
    return Math.max(all - this.#writtenBytes, Math.floor(all * recordsShare));
  }

  /** Bytes of what it keeps now, and of blocks that are held by others or being read. */
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

  /** The image of `segment` is written to: it stays, and others have less room, until `add` or `remove`. */
  write(segment: Segment): void {
    if (this.#written.has(segment)) return;
    this.#ownImage(segment);
    this.#written.add(segment);
    this.#writtenBytes += segment.size;
    this.#writtenImageBytes = segment.size;
    this.#shrink();
  }

  /** Takes charge of the image of `segment`, which is final, and drops others until it fits. */
  add(segment: Segment): void {
    if (this.#segments.has(segment) || segment.image === null) return;
    this.#ownImage(segment);
    if (this.#written.delete(segment)) this.#writtenBytes -= segment.size;
    this.touch(segment);
    this.#segments.add(segment);
    this.#imageBytes += segment.size;
    this.#shrink();
  }

  /** Is there room for `bytes` without dropping anything? */
  hasRoom(bytes: number): boolean {
    return this.bytes + bytes <= this.bytesMax;
  }

  /** Drops all of the segment: it is gone, or its log is closed. */
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

  /** The extent at byte `offset` of the segment, if it is there. */
  extentAt(segment: Segment, offset: number): Extent | null {
    return segment.extents[Math.floor(offset / this.blocks.extentBytes)] ?? null;
  }

  /** Keeps what was read of a segment that is still there. */
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

  /** Keeps a copy of a record that was read by itself and is whole. */
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

  /** Puts the record's place in memory into `target`, when it is not in an image. @returns whether it is there */
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
        const block = this.#slots[found.slot] as GatheredBlock; // the table names blocks that are there
        block.usedAt = ++this.#ticks;
        target.bytes = block.bytes;
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
    target.bytes = extent.bytes;
    target.start = offset - extent.start;
    target.block = extent;
    return true;
  }

  // What goes

  #shrink(): void {
    const { bytesMax } = this;
    // Memory of what goes now is there for what comes next, and is not given anew by the system each time.
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
   * Bytes that are left to images that wait to be used again: for one while images come and go, whether it is there or not.
   * Each new image then takes the place of one. (With what is there at the moment, none goes when one comes, the next has new
   * memory, and then two go.)
   */
  #idleImageBytes(bytesMax: number): number {
    return this.images.isInUse ? Math.max(bytesMax * idleShare, this.#writtenImageBytes) : 0;
  }

  /** What goes by more than is left for it is kept too for a while: dropped, it would take the same memory until it is collected. */
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

  /** The extent that goes next, if one must. Those on probation that were used meanwhile are kept with the others. */
  #nextExtent(bytesMax: number): Extent | null {
    for (;;) {
      const newest = first(this.#probation);
      if (newest === null) break;
      const isCrowded = this.#probationBytes > bytesMax * probationShare;
      const others = this.#mainBytes + this.#imageBytes + this.#gathered.size;
      if (!isCrowded && others > 0) break;
      // It goes before anything else.
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

/** What was not used for longest. */
function oldestOf(...items: readonly (Segment | Block | null)[]): Segment | Block | null {
  let oldest: Segment | Block | null = null;
  for (const item of items) {
    if (item !== null && (oldest === null || item.usedAt < oldest.usedAt)) oldest = item;
  }
  return oldest;
}
