/**
 * Reads a log from its segments, in commit order, and finds its end.
 *
 * A frame that is not intact has one of two causes. If a later header covers it as durable, or a later segment was
 * begun, it had been acknowledged: the log is damaged, and recovery fails. Otherwise it is the torn end of a log whose
 * last write was interrupted by a crash: it is truncated silently, because it was never acknowledged.
 *
 * Invariants:
 * - Only intact frames are replayed, in commit order, from the snapshot's cut (or the beginning) to the end.
 * - Nothing is changed on disk before the end is found.
 * - If the log was not closed properly, its last file is rewritten before anything is appended: the bytes read may be
 *   in the page cache and not on the device (a failed sync leaves such pages).
 */
import { assert } from "../../base/assert.ts";
import { EngineError } from "../../base/errors.ts";
import { recordHeaderBytes, recordLengthAt } from "../../base/record.ts";
import { extendAllSums } from "../segments/extent-sums.ts";
import {
  decodeFrameHeader,
  type FrameHeader,
  findMagic,
  frameCrc,
  frameFlags,
  frameHeaderBytes,
  isZero,
  payloadIsWhole,
} from "../segments/frame.ts";
import { newImage, type Segment, segmentHeaderBytes } from "../segments/segment.ts";
import type { SegmentStore } from "../segments/segment-store.ts";
import { positionSegmentFactor, type RecordOwner } from "./log.ts";
import type { SnapshotCut, SnapshotSegment } from "./snapshot-file.ts";
import type { Throttle } from "./throttle.ts";

/** The result of recovery. */
export interface RecoveryResult {
  /** The last log segment with frames; its image is in memory. Null if no log segment has frames. */
  readonly active: Segment | null;
  readonly lastNumber: number;
  readonly lastCrc: number;
  /** The log was closed properly: everything that was read is on the device. */
  readonly wasClosed: boolean;
  /** Transactions passed to the owner's `replay`. */
  readonly replayedTransactions: number;
  /** Bytes from the torn frame to the end of its segment; 0 when there was none. */
  readonly tornBytes: number;
}

export class Recovery {
  readonly #store: SegmentStore;
  readonly #owner: RecordOwner;
  readonly #cut: SnapshotCut | null;
  readonly #known = new Map<number, SnapshotSegment>();
  readonly #throttle: Throttle;
  /** Number, CRC and flags of the last intact frame so far. */
  #lastNumber = 0;
  #lastCrc = 0;
  #lastFlags = 0;
  #active: Segment | null = null;
  /** The segment that is read ahead while the one before it is replayed; its image is null if it is unused. */
  #ahead: { readonly segment: Segment; readonly image: Promise<Buffer | null> } | null = null;
  #replayedTransactions = 0;
  #tornBytes = 0;

  constructor(
    store: SegmentStore,
    owner: RecordOwner,
    cut: SnapshotCut | null,
    throttle: Throttle,
  ) {
    this.#store = store;
    this.#owner = owner;
    this.#cut = cut;
    this.#throttle = throttle;
    for (const segment of cut?.segments ?? []) this.#known.set(segment.number, segment);
  }

  /** @throws EngineError database-damaged with file, offset and the number of later commits */
  async run(): Promise<RecoveryResult> {
    const segments = this.#store.order;
    let isTorn = false;
    for (let index = 0; index < segments.length; index++) {
      const segment = segments[index] as Segment;
      const later = segments.slice(index + 1);
      if (segment.kind === "compacted") await this.#readCompacted(segment, later);
      else if (!this.#skip(segment)) isTorn = await this.#readLog(segment, later);
      if (isTorn) break;
    }
    await this.#ahead?.image.catch(() => undefined);
    const wasClosed =
      !isTorn && ((this.#lastFlags & frameFlags.cleanClose) !== 0 || this.#active === null);
    return {
      active: this.#active,
      lastNumber: this.#lastNumber,
      lastCrc: this.#lastCrc,
      wasClosed,
      replayedTransactions: this.#replayedTransactions,
      tornBytes: this.#tornBytes,
    };
  }

  /**
   * Restores a segment that the snapshot covers entirely from the snapshot. @returns false for other segments, which
   * must be read
   */
  #skip(segment: Segment): boolean {
    const known = this.#known.get(segment.number);
    if (known === undefined) return false;
    takeFromSnapshot(segment, known);
    if (known === this.#cut?.segments.at(-1)) return false;
    segment.sealed = true;
    this.#lastNumber = known.lastNumber;
    this.#lastCrc = known.lastCrc;
    return true;
  }

  async #readCompacted(segment: Segment, later: readonly Segment[]): Promise<void> {
    const known = this.#known.get(segment.number);
    segment.sealed = true;
    await this.#sealActive();
    this.#lastFlags = 0;
    if (segment.firstNumber !== this.#lastNumber + 1) {
      throw this.#damaged(segment, segmentHeaderBytes, segment.lastNumber - this.#lastNumber);
    }
    if (known !== undefined) takeFromSnapshot(segment, known);
    else await this.#replayCompacted(segment, later);
    this.#lastNumber = segment.lastNumber;
    this.#lastCrc = segment.lastCrc;
  }

  /** Every frame must be intact: the segment was complete before it was listed. */
  async #replayCompacted(segment: Segment, later: readonly Segment[]): Promise<void> {
    const image = await this.#load(segment);
    this.#readAhead(later[0]);
    const through = this.#cut?.throughNumber ?? 0;
    let previousCrc = 0;
    let at = segmentHeaderBytes;
    while (at < segment.size) {
      const header = decodeFrameHeader(image, at, segment.size, segment.salt);
      const isNext = header !== null && header.previousCrc === previousCrc;
      if (!isNext || !payloadIsWhole(image, at, header)) throw this.#damaged(segment, at, 0);
      const start = at + frameHeaderBytes;
      const end = start + header.payloadLength;
      segment.payloadBytes += header.payloadLength;
      if (header.firstNumber > through) {
        this.#replay(segment, image, start, end);
        this.#replayedTransactions += header.transactionCount;
      } else {
        if (header.number > through) throw this.#damaged(segment, at, 0);
        this.#relocate(segment, image, start, end);
      }
      previousCrc = frameCrc(image, at);
      at = end;
      if (this.#throttle.isDue()) await this.#throttle.yield();
    }
    segment.end = at;
    await this.#keep(segment, image);
  }

  /** @returns true when the log ends here with a torn frame. */
  async #readLog(segment: Segment, later: readonly Segment[]): Promise<boolean> {
    const known = this.#known.get(segment.number);
    if (known === undefined && (await this.#isUnused(segment))) {
      segment.lastNumber = this.#lastNumber;
      segment.lastCrc = this.#lastCrc;
      return false;
    }
    const image = await this.#load(segment);
    this.#readAhead(later[0]);
    if (known !== undefined) {
      const bad = findDamagedFrame(segment, image, known.end);
      if (bad !== null) throw this.#damaged(segment, bad, known.lastNumber - this.#lastNumber);
      this.#lastNumber = known.lastNumber;
      this.#lastCrc = known.lastCrc;
      this.#lastFlags = this.#flagsAtCut(segment, image);
    }
    await this.#replayLog(segment, image);
    const { end } = segment;
    const isAtEnd = isZero(image, end, segment.size);
    if (!isAtEnd && !(await this.#isContinuedIn(later))) {
      await this.#checkTorn(segment, image, later);
      this.#tornBytes = segment.size - end;
      await this.#makeActive(segment, image);
      return true;
    }
    await this.#makeActive(segment, image);
    return false;
  }

  /** Flags of the frame just before the snapshot's cut if it is empty, as the frame that closes a log is; else 0. */
  #flagsAtCut(segment: Segment, image: Buffer): number {
    const at = segment.end - frameHeaderBytes;
    if (at < segmentHeaderBytes) return 0;
    const header = decodeFrameHeader(image, at, segment.end, segment.salt);
    return header?.payloadLength === 0 ? header.flags : 0;
  }

  async #replayLog(segment: Segment, image: Buffer): Promise<void> {
    for (;;) {
      const at = segment.end;
      const header = decodeFrameHeader(image, at, segment.size, segment.salt);
      if (header === null || !this.#isNext(header) || !payloadIsWhole(image, at, header)) return;
      const start = at + frameHeaderBytes;
      const end = start + header.payloadLength;
      segment.payloadBytes += header.payloadLength;
      this.#replay(segment, image, start, end);
      this.#replayedTransactions += header.transactionCount;
      this.#lastNumber = header.number;
      this.#lastCrc = frameCrc(image, at);
      this.#lastFlags = header.flags;
      segment.lastNumber = this.#lastNumber;
      segment.lastCrc = this.#lastCrc;
      segment.end = end;
      if (this.#throttle.isDue()) await this.#throttle.yield();
    }
  }

  #isNext(header: FrameHeader): boolean {
    return header.number === this.#lastNumber + 1 && header.previousCrc === this.#lastCrc;
  }

  /**
   * Returns whether the next used segment begins with the next frame. Then the bytes after the end of this one are no
   * frame.
   */
  async #isContinuedIn(later: readonly Segment[]): Promise<boolean> {
    for (const segment of later) {
      if (segment.kind === "compacted") return segment.firstNumber === this.#lastNumber + 1;
      if (await this.#isUnused(segment)) continue;
      const head = await this.#read(segment, segmentHeaderBytes + frameHeaderBytes);
      const limit = Number.POSITIVE_INFINITY;
      const header = decodeFrameHeader(head, segmentHeaderBytes, limit, segment.salt);
      return header !== null && this.#isNext(header);
    }
    return false;
  }

  /** @throws EngineError database-damaged if the bad frame at the end of `segment` had been durable. */
  async #checkTorn(segment: Segment, image: Buffer, later: readonly Segment[]): Promise<void> {
    const number = this.#lastNumber + 1;
    const found = { durableNumber: 0, number: 0 };
    scanHeaders(segment, image, segment.end, found);
    for (const next of later) {
      const nextImage = await this.#load(next);
      // The first frame of a segment is written only after all earlier frames are durable.
      if (isZero(nextImage, segmentHeaderBytes, next.size)) continue;
      scanHeaders(next, nextImage, segmentHeaderBytes, found);
      found.durableNumber = Math.max(found.durableNumber, number);
    }
    if (found.durableNumber < number) return;
    throw this.#damaged(segment, segment.end, Math.max(found.number, number) - number);
  }

  #damaged(segment: Segment, at: number, laterCommits: number): EngineError {
    const path = this.#store.pathOf(segment);
    return new EngineError(
      "database-damaged",
      `${path} is damaged at byte ${at}: commit ${this.#lastNumber + 1} was durable and is not whole; ` +
        `${laterCommits} later commits follow it. Nothing was changed; the readable records can be copied with 'jackdaw salvage'.`,
      { details: { file: path, offset: at, commitsBehind: laterCommits } },
    );
  }

  #replay(segment: Segment, image: Buffer, start: number, end: number): void {
    const base = segment.number * positionSegmentFactor;
    for (let at = start; at < end; ) {
      const length = recordLengthIn(image, at, end);
      this.#owner.replay(image, at, length, base + at);
      at += length;
    }
  }

  #relocate(segment: Segment, image: Buffer, start: number, end: number): void {
    const base = segment.number * positionSegmentFactor;
    for (let at = start; at < end; ) {
      const length = recordLengthIn(image, at, end);
      if (!this.#owner.relocate(image, at, length, base + at)) segment.deadBytes += length;
      at += length;
    }
  }

  async #makeActive(segment: Segment, image: Buffer): Promise<void> {
    await this.#sealActive();
    this.#active = segment;
    segment.image = image;
    this.#store.cache.write(segment);
  }

  /** Seals the segment that seemed to be the last: the log continues after it. */
  async #sealActive(): Promise<void> {
    const segment = this.#active;
    if (segment === null) return;
    this.#active = null;
    segment.sealed = true;
    await this.#keep(segment, segment.image);
  }

  /** Keeps the image of a sealed segment if the cache has space for it, else releases it. */
  async #keep(segment: Segment, image: Buffer | null): Promise<void> {
    const { cache } = this.#store;
    segment.image = image;
    if (image !== null) await extendAllSums(segment, image, this.#throttle);
    if (image !== null && cache.hasRoom(segment.size)) {
      cache.add(segment);
      return;
    }
    const isOwned = segment.imageBlock !== null;
    cache.remove(segment);
    if (image !== null && !isOwned) cache.images.releaseImage(image);
  }

  /** Returns whether no frame was ever written to the segment. */
  async #isUnused(segment: Segment): Promise<boolean> {
    const head = await this.#read(segment, segmentHeaderBytes + frameHeaderBytes);
    return isZero(head, segmentHeaderBytes, head.length);
  }

  async #read(segment: Segment, length: number): Promise<Buffer> {
    return await this.#readInto(segment, newImage(length));
  }

  async #load(segment: Segment): Promise<Buffer> {
    const ahead = this.#ahead?.segment === segment ? await this.#ahead.image : null;
    this.#ahead = null;
    return ahead ?? (await this.#readInto(segment, this.#newImage(segment)));
  }

  #newImage(segment: Segment): Buffer {
    return this.#store.cache.images.take(segment.size);
  }

  /** Starts reading the segment that is replayed next, unless it is unused or known from the snapshot. */
  #readAhead(segment: Segment | undefined): void {
    if (segment === undefined || this.#known.has(segment.number)) return;
    const read = async (): Promise<Buffer | null> => {
      if (segment.kind === "log" && (await this.#isUnused(segment))) return null;
      return await this.#readInto(segment, this.#newImage(segment));
    };
    const image = read();
    // An error is reported when the segment is needed.
    image.catch(() => undefined);
    this.#ahead = { segment, image };
  }

  async #readInto(segment: Segment, target: Buffer): Promise<Buffer> {
    const path = this.#store.pathOf(segment);
    const count = await this.#store.readFrom(segment, target, 0);
    if (count < target.length) throw shortFile(path, count, segment.size);
    return target;
  }
}

function shortFile(path: string, count: number, size: number): EngineError {
  return new EngineError(
    "database-damaged",
    `${path} ends at byte ${count}, it should have ${size} bytes. Nothing was changed; the readable records can be copied with 'jackdaw salvage'.`,
    { details: { file: path, offset: count } },
  );
}

/** Returns the offset of the first frame before `end` that is not intact, or null. */
function findDamagedFrame(segment: Segment, image: Buffer, end: number): number | null {
  let at = segmentHeaderBytes;
  while (at < end) {
    const header = decodeFrameHeader(image, at, end, segment.salt);
    if (header === null || !payloadIsWhole(image, at, header)) return at;
    at += frameHeaderBytes + header.payloadLength;
  }
  return null;
}

function takeFromSnapshot(segment: Segment, known: SnapshotSegment): void {
  segment.end = known.end;
  segment.payloadBytes = known.payloadBytes;
  segment.deadBytes = known.deadBytes;
  segment.lastNumber = known.lastNumber;
  segment.lastCrc = known.lastCrc;
  segment.extentSums = [...(known.extentSums ?? [])];
}

/** Returns the length of the record at `at`, in a payload whose checksum holds. */
export function recordLengthIn(image: Buffer, at: number, end: number): number {
  const length = image.readUInt32LE(at + recordLengthAt);
  assert(length >= recordHeaderBytes, "a record in a whole frame has a header");
  assert(at + length <= end, "a record in a whole frame ends in it");
  return length;
}

/** Raises `found` to the highest numbers in headers of this segment from `from` on, whether or not they are chained. */
function scanHeaders(
  segment: Segment,
  image: Buffer,
  from: number,
  found: { durableNumber: number; number: number },
): void {
  for (let at = findMagic(image, from, segment.size); at >= 0; ) {
    const header = decodeFrameHeader(image, at, segment.size, segment.salt);
    if (header !== null) {
      found.durableNumber = Math.max(found.durableNumber, header.durableNumber);
      found.number = Math.max(found.number, header.number);
    }
    at = findMagic(image, at + 8, segment.size);
  }
}
