/**
 * Group commit. Transactions are copied into the image of the active segment, one after another in an open frame. When
 * the device is idle the open frame is sealed, written and synced; transactions that arrive in the meantime go into the
 * next frame. There are no timers: the slower the device, the larger the frames.
 *
 *   image of the active segment
 *   +--------+---------+---------+------------------------+----------------------+------------+
 *   | header | frame 1 | frame 2 | frame 3, being synced  | open frame, growing  | free       |
 *   +--------+---------+---------+------------------------+----------------------+------------+
 *                                ^ segment.end            ^ #frameStart          ^ #tail      ^ segment.size
 *
 * Invariants:
 * - One write is in progress at a time. It writes one frame, or several frames of one segment if they were carried to
 *   other nodes (log-carrier.ts). The next is written when it is durable, so that a crash can tear only the last one,
 *   and every frame of a segment is durable before the first of the next segment is written.
 * - Transactions become durable, and are reported, in the order in which they were appended.
 * - Nothing durable is ever overwritten, except for the empty frame that closed a log. The device is assumed to write
 *   sectors atomically: a write interrupted by a power loss changes no byte outside of it.
 * - A transaction that was reported lost is not on the device: where its bytes may be, zeros are written and synced.
 */
import { crc32 } from "node:zlib";
import { assert } from "../../base/assert.ts";
import { combinedCrc } from "../../base/crc-combine.ts";
import type { Clock, Timer } from "../../base/environment.ts";
import { EngineError } from "../../base/errors.ts";
import { transactionBytesMax } from "../../base/limits.ts";
import { recordCheckAt, recordKindAt, recordLengthAt } from "../../base/record.ts";
import { pauseIfDue } from "../../base/scheduling/time-slices.ts";
import { pieceBytesMin } from "../segments/chunk-sums.ts";
import { DeferredCopies } from "../segments/deferred-copies.ts";
import { extendSums, nextExtentEdge } from "../segments/extent-sums.ts";
import { isSystemError } from "../segments/failed-read.ts";
import { encodeFrameHeader, frameFlags, frameHeaderBytes } from "../segments/frame.ts";
import { type Segment, segmentFileName, segmentHeaderBytes } from "../segments/segment.ts";
import type { SegmentStore } from "../segments/segment-store.ts";
import { CarriedFrames } from "./carried-frames.ts";
import type { DiskWriteKind } from "./disk-writes.ts";
import { diskFull, isDiskFull } from "./health.ts";
import { type LogListener, type Position, positionSegmentFactor, type SummedBytes } from "./log.ts";
import { type LogCarrier, markBytes, type PlacedMark } from "./log-carrier.ts";
import type { SpaceGuard } from "./space-guard.ts";

/**
 * Records from this length on are not read for the CRC of their frame: their checksum is the CRC of nearly all of their
 * bytes.
 */
const knownCrcBytesMin = 256 * 1024;
/** Number of bytes of a frame whose CRC is computed in one call. */
const crcChunkBytes = 128 * 1024;

/** Size of a write, in bytes, from which on no further frame is added to it. */
const writtenBytesMax = 8 * 1024 * 1024;

/** Milliseconds without a write after which an empty frame covers the last one. */
const barrierDelayMs = 50;

/** Upper bound of the size of new segments: this share of the live bytes, but at least `smallBytes`. */
interface SegmentPlan {
  readonly liveShare: number;
  readonly smallBytes: number;
}

/** While a log grows, few segments are cheapest: smaller ones took a fifth more processor time of inserts. */
const growingPlan: SegmentPlan = { liveShare: 1 / 8, smallBytes: 4 * 1024 * 1024 };
/** While records are being replaced, the free space of segments cannot be reclaimed by compaction. */
const rewrittenPlan: SegmentPlan = { liveShare: 1 / 16, smallBytes: 1024 * 1024 };
const growingDeadShare = 1 / 16;

/** One group commit being written. */
interface Frame {
  readonly segment: Segment;
  readonly start: number;
  readonly end: number;
  readonly transactionCount: number;
  readonly flags: number;
  /** Of its payload, without the mark before that is known. */
  payloadCrc: number;
  /** Other nodes must have it before it is written: the record of its mark, then. Null: it is not carried. */
  readonly carried: Promise<Buffer> | null;
  /** That record, once it is known. */
  record: Buffer | null;
  mark: PlacedMark | null;
  /** Of its header, once that is there; as `crc`. */
  number: number;
  crc: number;
}

interface Waiter {
  readonly count: number;
  resolve(): void;
  reject(error: Error): void;
}

/** The state from which the log continues after recovery. */
interface WriterStart {
  /** Null when the last segment cannot be appended to. Its image is in memory. */
  readonly active: Segment | null;
  /** Whether the last frame is the empty frame written by a proper close. */
  readonly wasClosed: boolean;
  readonly lastNumber: number;
  readonly lastCrc: number;
  /** Bytes of the next new segment. */
  readonly plannedSize: number;
}

interface WriterOptions {
  readonly store: SegmentStore;
  readonly space: SpaceGuard;
  readonly clock: Clock;
  readonly listener: LogListener;
  readonly segmentBytesMin: number;
  readonly segmentBytesMax: number;
  /** See `LogOptions`. */
  readonly oversizedBytesMin?: number;
  /** See `LogOptions`. */
  readonly carrier?: LogCarrier | undefined;
  /**
   * Called after each frame of `bytes`; returns a promise to await before the next frame, so that compaction keeps up.
   */
  slowDown(bytes: number): Promise<void> | null;
}

const oversizedBytesDefault = 32 * 1024 * 1024;

export class LogWriter {
  appendedCount = 0;
  durableCount = 0;
  appendedBytes = 0;
  /** Bytes appended but not yet durable. */
  unsyncedBytes = 0;
  /** Number of the last durable frame that was reported. */
  durableNumber: number;
  durableCrc: number;
  readonly #store: SegmentStore;
  readonly #space: SpaceGuard;
  readonly #clock: Clock;
  readonly #listener: LogListener;
  readonly #oversizedBytesMin: number;
  readonly #segmentBytesMin: number;
  readonly #segmentBytesMax: number;
  readonly #slowDown: (bytes: number) => Promise<void> | null;
  readonly #carried: CarriedFrames | null;
  /** Bytes of a segment that must remain after the records of the open frame: a mark, and the header of the last frame. */
  readonly #endingBytes: number;
  #plannedSize: number;
  #active: Segment | null;
  #frameStart = 0;
  #tail = 0;
  #openTransactions = 0;
  /** Whether a check is scheduled for the end of this tick whether the open frame must be sealed. */
  #willSeal = false;
  /**
   * The CRC-32 of the open frame's payload up to `#crcEnd`, computed while the bytes are still in the processor's
   * cache.
   */
  #crc = 0;
  #crcEnd = 0;
  /** Sealed frames of earlier segments, waiting to be written. */
  #sealed: Frame[] = [];
  /** Number of the last sealed frame. */
  #lastNumber: number;
  #lastCrc: number;
  #flushWaiters: Waiter[] = [];
  #spaceWaiters: Waiter[] = [];
  #running = false;
  #idle: Promise<void> = Promise.resolve();
  #barrierTimer: Timer | null = null;
  #lastIsEmpty = true;
  #closing = false;
  /** The spare while its file is being created. */
  #coming: Segment | null = null;
  /** The frame that closed the log, while it must still be rewritten. See `#repeatClosing`. */
  #closingFrame: { readonly segment: Segment; readonly start: number } | null;

  constructor(options: WriterOptions, start: WriterStart) {
    this.#store = options.store;
    this.#space = options.space;
    this.#clock = options.clock;
    this.#listener = options.listener;
    this.#segmentBytesMin = options.segmentBytesMin;
    this.#oversizedBytesMin = options.oversizedBytesMin ?? oversizedBytesDefault;
    this.#segmentBytesMax = options.segmentBytesMax;
    this.#slowDown = options.slowDown;
    const { carrier } = options;
    this.#carried =
      carrier === undefined
        ? null
        : new CarriedFrames(carrier, options.store.health, () => this.#sealEarly());
    this.#endingBytes = frameHeaderBytes + (carrier === undefined ? 0 : markBytes);
    this.#plannedSize = start.plannedSize;
    this.#active = start.active;
    const { active } = start;
    this.#closingFrame =
      start.wasClosed && active !== null
        ? { segment: active, start: active.end - frameHeaderBytes }
        : null;
    this.#lastNumber = start.lastNumber;
    this.#lastCrc = start.lastCrc;
    this.durableNumber = start.lastNumber;
    this.durableCrc = start.lastCrc;
    if (start.active !== null) this.#openFrameAt(start.active.end);
    this.#store.health.onStop = (error) => this.#stopped(error);
  }

  /** See `FileLog.append`. */
  append(
    payload: Buffer,
    length: number,
    evenIfFull: boolean,
    isGiven: boolean,
    summed: SummedBytes | null,
  ): Position {
    this.#store.health.check();
    assert(!this.#closing, "nothing is appended to a log that is closed");
    assert(length > 0 && length % 8 === 0, "a transaction is made of whole records");
    if (length > transactionBytesMax) {
      throw new EngineError("too-large", `A transaction of ${length} bytes is too large.`);
    }
    if (!evenIfFull && this.#space.isFull()) throw diskFull();
    let segment = this.#active;
    if (segment !== null && this.#carried?.isFull(this.#openBytes, length) === true) {
      this.#sealed.push(this.#seal(segment, 0));
    }
    if (segment === null || this.#tail + length + this.#endingBytes > segment.size) {
      segment = this.#roll(length);
    }
    const image = segment.image;
    assert(image !== null, "the active segment is in memory");
    const at = this.#tail;
    if (summed !== null) this.#appendSummed(segment, image, payload, length, summed);
    else if (length >= knownCrcBytesMin)
      this.#appendLarge(segment, image, payload, length, isGiven);
    else payload.copy(image, at, 0, length);
    this.#tail = at + length;
    if (this.#tail - this.#crcEnd >= crcChunkBytes) this.#extendCrc(segment, image);
    this.#openTransactions++;
    this.appendedCount++;
    this.appendedBytes += length;
    this.unsyncedBytes += length;
    if (this.#carried !== null && this.#running) this.#sealSoon();
    this.#wake();
    return segment.number * positionSegmentFactor + at;
  }

  /** Bytes of the open frame's payload. */
  get #openBytes(): number {
    return this.#openTransactions === 0 ? 0 : this.#tail - this.#frameStart - frameHeaderBytes;
  }

  /** Sends the open frame to other nodes while earlier frames are in flight there, or are being written here. */
  #sealEarly(): void {
    const segment = this.#active;
    if (this.#store.health.stopped !== null || segment === null) return;
    if (this.#carried?.mayFollow(this.#openBytes) === true) {
      this.#sealed.push(this.#seal(segment, 0));
    }
  }

  #sealSoon(): void {
    if (this.#willSeal) return;
    this.#willSeal = true;
    setImmediate(() => {
      this.#willSeal = false;
      this.#sealEarly();
    });
  }

  flush(): Promise<void> {
    const { stopped } = this.#store.health;
    if (this.durableCount >= this.appendedCount) {
      return stopped === null ? Promise.resolve() : Promise.reject(stopped);
    }
    const count = this.appendedCount;
    return new Promise((resolve, reject) => this.#flushWaiters.push({ count, resolve, reject }));
  }

  /** Resolves when at most `bytes` are not yet durable. Rejects when the log stops. */
  whenUnsyncedBelow(bytes: number): Promise<void> {
    if (this.#store.health.stopped !== null) return Promise.reject(this.#store.health.stopped);
    if (this.unsyncedBytes <= bytes) return Promise.resolve();
    return new Promise((resolve, reject) =>
      this.#spaceWaiters.push({ count: bytes, resolve, reject }),
    );
  }

  /** The active segment; for snapshots. */
  get active(): Segment | null {
    return this.#active;
  }

  /** Waits until nothing is being written, then ends the log with a closing frame. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#barrierTimer?.cancel();
    await this.#idle;
    await this.#coming?.ready?.catch(() => undefined);
    const segment = this.#active;
    if (this.#store.health.stopped !== null || segment === null || this.#store.disk === null)
      return;
    // A segment whose file was never created has nothing to close.
    if (segment.file === null || this.#frameStart + frameHeaderBytes > segment.size) return;
    const frame = this.#seal(segment, frameFlags.cleanClose);
    try {
      await this.#write([frame]);
    } catch (error) {
      // The next start finds no clean end and rewrites the tail: nothing is lost.
      if (!isDiskFull(error) && !isSystemError(error)) throw error;
    }
  }

  #openFrameAt(start: number): void {
    this.#frameStart = start;
    this.#tail = start + frameHeaderBytes;
    this.#openTransactions = 0;
    this.#crc = 0;
    this.#crcEnd = this.#tail;
  }

  #extendCrc({ chunkSums }: Segment, image: Buffer): void {
    if (this.#store.disk === null) return;
    while (this.#crcEnd < this.#tail) {
      const start = this.#crcEnd;
      const end = Math.min(this.#tail, nextExtentEdge(start));
      this.#crcEnd = end;
      const bytes = image.subarray(start, end);
      if (bytes.length < pieceBytesMin) {
        this.#crc = crc32(bytes, this.#crc);
        continue;
      }
      const sum = crc32(bytes);
      this.#crc = combinedCrc(this.#crc, sum, bytes.length);
      chunkSums.add(start, end, sum);
    }
  }

  /**
   * Copies records to the tail. Of a large record, if the payload `isGiven`, only the part that the frame's CRC needs:
   * the rest is copied before the frame is written.
   */
  #appendLarge(
    segment: Segment,
    image: Buffer,
    payload: Buffer,
    payloadLength: number,
    isGiven: boolean,
  ): void {
    const tail = this.#tail;
    let copied = 0;
    for (let at = 0, length = 0; at < payloadLength; at += length) {
      length = payload.readUInt32LE(at + recordLengthAt);
      assert(length > 0 && at + length <= payloadLength, "a transaction is made of whole records");
      if (length < knownCrcBytesMin) continue;
      payload.copy(image, tail + copied, copied, at + recordKindAt);
      copied = at + length;
      if (isGiven) {
        segment.deferredCopies ??= new DeferredCopies(image);
        segment.deferredCopies.add(payload, tail, tail + at + recordKindAt, tail + copied);
      } else payload.copy(image, tail + at + recordKindAt, at + recordKindAt, copied);
      if (this.#store.disk === null) continue;
      this.#crc = crc32(image.subarray(this.#crcEnd, tail + at + recordKindAt), this.#crc);
      const check = payload.readUInt32LE(at + recordCheckAt);
      this.#crc = combinedCrc(this.#crc, check, length - recordKindAt);
      this.#crcEnd = tail + copied;
    }
    payload.copy(image, tail + copied, copied, payloadLength);
  }

  /** Appends a payload whose prefix of `summed` bytes is copied later, in slices; the rest is copied immediately. */
  #appendSummed(
    segment: Segment,
    image: Buffer,
    payload: Buffer,
    length: number,
    summed: SummedBytes,
  ): void {
    assert(summed.length <= length, "the summed prefix is within the payload");
    const tail = this.#tail;
    const end = tail + summed.length;
    segment.deferredCopies ??= new DeferredCopies(image);
    segment.deferredCopies.add(payload, tail, tail, end);
    payload.copy(image, end, summed.length, length);
    if (this.#store.disk === null) return;
    this.#crc = crc32(image.subarray(this.#crcEnd, tail), this.#crc);
    this.#crc = combinedCrc(this.#crc, summed.crc, summed.length);
    this.#crcEnd = end;
  }

  /** Makes the deferred copies of large records, in slices. */
  async #fill(segment: Segment): Promise<void> {
    const { deferredCopies } = segment;
    while (this.#store.health.stopped === null && deferredCopies?.step() === true)
      await pauseIfDue();
    // Copies deferred in the meantime are made before their own frame is written.
    if (segment.deferredCopies?.isEmpty === true) segment.deferredCopies = null;
  }

  /** Switches to the next segment, which has space for `length` bytes. */
  #roll(length: number): Segment {
    const before = this.#active;
    if (before !== null && this.#openTransactions > 0) this.#sealed.push(this.#seal(before, 0));
    const isDurable = before?.end === this.#frameStart && this.#closingFrame === null;
    if (before !== null && isDurable) this.#sealSegment(before);
    const needed = segmentHeaderBytes + frameHeaderBytes + length + this.#endingBytes;
    const segment = this.#takeSpare(needed) ?? this.#newSegment(needed);
    segment.image = this.#store.cache.images.take(segment.size);
    if (this.#store.disk !== null) this.#store.cache.write(segment);
    this.#active = segment;
    this.#openFrameAt(segmentHeaderBytes);
    return segment;
  }

  /**
   * Returns the segment that was created, or is being created, ahead of need. It is the spare until its first frame is
   * written.
   */
  #takeSpare(needed: number): Segment | null {
    const ahead = this.#store.spare ?? this.#coming;
    if (ahead === null || ahead.isTaken || ahead.size < needed) return null;
    ahead.isTaken = true;
    return ahead;
  }

  #newSegment(needed: number): Segment {
    const planned = this.#space.isFull() ? this.#segmentBytesMin : this.#plannedSize;
    if (needed <= planned) this.#planNext(planned);
    const segment = this.#store.newSegment("log", Math.max(planned, needed));
    segment.isOversized = needed > planned && needed >= this.#oversizedBytesMin;
    return segment;
  }

  /**
   * Twice as large as the last one, but small relative to the live bytes: compaction cannot reclaim the space of the
   * active segment and of the spare.
   */
  #planNext(size: number): void {
    const live = this.#store.liveBytes();
    const isGrowing = this.#store.deadBytes() <= growingDeadShare * live;
    const plan = isGrowing ? growingPlan : rewrittenPlan;
    const share = Math.floor((plan.liveShare * live) / 8) * 8;
    this.#plannedSize = Math.min(
      size * 2,
      this.#segmentBytesMax,
      Math.max(this.#segmentBytesMin, plan.smallBytes, share),
    );
  }

  /** Ends the open frame, and opens the next one after it. */
  #seal(segment: Segment, flags: number): Frame {
    const image = segment.image;
    assert(image !== null, "a segment that is written to is in memory");
    const start = this.#frameStart;
    const payloadLength = this.#openBytes;
    this.#extendCrc(segment, image);
    const transactionCount = this.#openTransactions;
    const payloadCrc = this.#crc;
    let end = start + frameHeaderBytes + payloadLength;
    let carried: Promise<Buffer> | null = null;
    if (this.#carried !== null && transactionCount > 0) {
      carried = this.#carried.carry(segment, start + frameHeaderBytes, end);
      end += markBytes;
      this.appendedBytes += markBytes;
      this.unsyncedBytes += markBytes;
    }
    this.#openFrameAt(end);
    const frame: Frame = {
      segment,
      start,
      end,
      transactionCount,
      flags,
      payloadCrc,
      carried,
      record: null,
      mark: null,
      number: 0,
      crc: 0,
    };
    carried?.then(
      (record) => {
        frame.record = record;
      },
      () => undefined,
    );
    // Numbers and checksums go from frame to frame: a frame whose end is not known yet gets its header later.
    if (this.#carried === null) this.#encodeHeader(frame);
    return frame;
  }

  /** Writes the header of a sealed frame into the image. */
  #encodeHeader(frame: Frame): void {
    const { segment, start, end, transactionCount, flags, payloadCrc } = frame;
    assert(segment.image !== null, "a segment that is written to is in memory");
    frame.number = this.#lastNumber + 1;
    frame.crc = encodeFrameHeader(segment.image, start, segment.salt, {
      payloadLength: end - start - frameHeaderBytes,
      payloadCrc,
      number: frame.number,
      firstNumber: frame.number,
      durableNumber: this.durableNumber,
      previousCrc: this.#lastCrc,
      flags,
      transactionCount,
      wallClockMicros: this.#clock.nowMicros(),
    });
    this.#lastNumber = frame.number;
    this.#lastCrc = frame.crc;
  }

  /**
   * Waits until the frame was carried, and adds later frames that were carried too. One write and one sync are enough
   * for all of them: no header of one covers another as durable, so torn frames among them are the end of the log.
   */
  async #finishCarried(frames: Frame[]): Promise<void> {
    for (let next = frames[0]; next !== undefined; next = this.#nextCarried(frames)) {
      if (next.carried !== null) this.#addMark(next, next.record ?? (await next.carried));
      this.#encodeHeader(next);
    }
  }

  /** Moves the oldest sealed frame to `frames` if it was carried and is to be written after them. */
  #nextCarried(frames: Frame[]): Frame | undefined {
    const next = this.#sealed[0];
    if (next === undefined || next.record === null || next.segment !== frames[0]?.segment) return;
    if (bytesOf(frames) >= writtenBytesMax) return;
    this.#sealed.shift();
    frames.push(next);
    return next;
  }

  /** Puts its mark at the end of a frame. */
  #addMark(frame: Frame, record: Buffer): void {
    this.#store.health.check();
    assert(record.length === markBytes, "there is room for a mark");
    const { segment, end } = frame;
    assert(segment.image !== null, "a segment that is written to is in memory");
    const at = end - markBytes;
    record.copy(segment.image, at);
    frame.payloadCrc = crc32(record, frame.payloadCrc);
    frame.mark = { record, position: segment.number * positionSegmentFactor + at };
  }

  #wake(): void {
    if (this.#running) return;
    this.#running = true;
    this.#barrierTimer?.cancel();
    this.#barrierTimer = null;
    this.#idle = new Promise((resolve) => {
      setImmediate(() => {
        this.#run().then(resolve, (error: unknown) => {
          this.#store.health.stop(error);
          resolve();
        });
      });
    });
  }

  async #run(): Promise<void> {
    while (this.#store.health.stopped === null) {
      const frame = this.#takeFrame();
      if (frame === null) break;
      const frames: [Frame, ...Frame[]] = [frame];
      try {
        await this.#write(frames);
      } catch (error) {
        this.#fail(error);
        continue;
      }
      if (this.#store.health.stopped !== null) break;
      this.#becameDurable(frames);
      const pause = this.#slowDown(bytesOf(frames));
      if (pause !== null) await pause;
    }
    this.#running = false;
    this.#scheduleBarrier();
  }

  /** Returns the next frame to write; the open one when no sealed one is waiting. */
  #takeFrame(): Frame | null {
    const oldest = this.#sealed.shift();
    if (oldest !== undefined) return oldest;
    if (this.#active === null || this.#openTransactions === 0) return null;
    return this.#seal(this.#active, 0);
  }

  /**
   * Writes a frame and the later frames that were carried in the meantime, which it adds to `frames`: all in one
   * segment.
   */
  async #write(frames: [Frame, ...Frame[]]): Promise<void> {
    const [{ segment, start }] = frames;
    if (this.#carried !== null) await this.#finishCarried(frames);
    if (segment.deferredCopies !== null) await this.#fill(segment);
    await this.#store.prepare(segment, () => this.#store.append(segment));
    if (this.#store.spare === segment) {
      // The manifest lists the spare after the others: it need not be rewritten.
      this.#store.spare = null;
      this.#store.append(segment);
    }
    if (this.#store.disk === null) return;
    const { file, image } = segment;
    assert(file !== null && image !== null, "a prepared segment has a file and an image");
    await this.#repeatClosing(segment);
    const bytes = bytesOf(frames);
    const writeMs = this.#clock.monotonicMs();
    try {
      await file.write(image, start, bytes, start);
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      await this.#wipe(segment, start, bytes);
      throw error;
    }
    const syncMs = this.#clock.monotonicMs();
    this.#noteWrite("append", segment, bytes, syncMs - writeMs);
    await this.#store.sync(file);
    this.#noteWrite("sync", segment, bytes, this.#clock.monotonicMs() - syncMs);
  }

  #noteWrite(
    kind: DiskWriteKind,
    { number, size }: Segment,
    bytes: number,
    durationMs: number,
  ): void {
    const file = `log/${segmentFileName(number)}`;
    const endedAtMicros = this.#clock.nowMicros();
    this.#store.writes.add(kind, file, bytes, size, endedAtMicros, durationMs);
  }

  /**
   * Rewrites the frame that closed the log, before the first frame after it. If its sync had failed, recovery may have
   * read it only from the system's page cache; the log must not continue after a frame that is not on the device. It is
   * synced separately, so that a crash in between tears only this empty frame.
   */
  async #repeatClosing(next: Segment): Promise<void> {
    const closing = this.#closingFrame;
    if (closing === null) return;
    const { file, image } = closing.segment;
    assert(file !== null && image !== null, "the last segment is open and in memory");
    await file.write(image, closing.start, frameHeaderBytes, closing.start);
    await this.#store.sync(file);
    this.#closingFrame = null;
    const { segment } = closing;
    if (segment !== this.#active && this.#sealed[0]?.segment !== segment && segment !== next) {
      this.#sealSegment(segment);
    }
  }

  /** Makes sure that a partly written frame is never found. */
  async #wipe({ file }: Segment, start: number, length: number): Promise<void> {
    assert(file !== null, "a frame is written to a file");
    try {
      await file.write(Buffer.alloc(length), 0, length, start);
    } catch (error) {
      throw this.#store.health.stop(error);
    }
    await this.#store.sync(file);
  }

  #becameDurable(frames: readonly [Frame, ...Frame[]]): void {
    const { segment } = frames[0];
    let count = 0;
    for (const frame of frames) {
      const payloadLength = frame.end - frame.start - frameHeaderBytes;
      segment.end = frame.end;
      segment.payloadBytes += payloadLength;
      segment.lastNumber = frame.number;
      segment.lastCrc = frame.crc;
      this.#lastIsEmpty = frame.transactionCount === 0;
      this.unsyncedBytes -= payloadLength;
      count += frame.transactionCount;
    }
    this.durableNumber = segment.lastNumber;
    this.durableCrc = segment.lastCrc;
    this.durableCount += count;
    if (count > 0) this.#listener.durable(this.durableCount);
    for (const { mark } of frames) {
      if (mark === null) continue;
      this.#listener.marked?.(mark);
      this.#carried?.durable(mark.record);
    }
    const { image } = segment;
    if (image !== null && this.#store.disk !== null) extendSums(segment, image);
    if (segment !== this.#active && this.#sealed[0]?.segment !== segment)
      this.#sealSegment(segment);
    this.#settle(this.#flushWaiters, (waiter) => waiter.count <= this.durableCount);
    this.#settle(this.#spaceWaiters, (waiter) => this.unsyncedBytes <= waiter.count);
    this.#space.wrote();
    this.#prepareSpare();
  }

  #sealSegment(segment: Segment): void {
    segment.sealed = true;
    if (segment.end === segmentHeaderBytes) {
      // Never written: it covers no frames.
      segment.lastNumber = this.durableNumber;
      segment.lastCrc = this.durableCrc;
    }
    if (this.#store.disk !== null) {
      if (segment.image !== null) extendSums(segment, segment.image);
      if (segment.isOversized) this.#store.cache.remove(segment);
      else this.#store.cache.add(segment);
      this.#store.keepOpen(segment);
    }
    this.#store.onSealed?.();
  }

  #settle(waiters: Waiter[], isDone: (waiter: Waiter) => boolean): void {
    let count = 0;
    while (count < waiters.length && isDone(waiters[count] as Waiter)) count++;
    if (count > 0) for (const waiter of waiters.splice(0, count)) waiter.resolve();
  }

  /** Creates the next segment's file while the active one still has room. */
  #prepareSpare(): void {
    const segment = this.#active;
    const store = this.#store;
    if (segment === null || store.disk === null || this.#closing || this.#space.isFull()) return;
    if (store.spare !== null || this.#coming !== null || this.#tail < segment.size / 2) return;
    const coming = store.newSegment("log", this.#plannedSize);
    this.#planNext(coming.size);
    this.#coming = coming;
    store
      .prepare(coming, () => this.#listComing(coming))
      .catch((error: unknown) => {
        if (isDiskFull(error)) this.#space.becameFull();
        // If the segment was already in use, the writer receives the same error.
        if (!coming.isTaken) store.drop(coming);
      })
      .finally(() => {
        if (this.#coming === coming) this.#coming = null;
      });
  }

  #listComing(coming: Segment): () => void {
    this.#store.spare = coming;
    return () => {
      this.#store.spare = null;
    };
  }

  #fail(error: unknown): void {
    // Carried frames cannot be rolled back: such a log can only stop, and continue when space is available.
    if (!isDiskFull(error) || this.#carried !== null || this.#store.health.stopped !== null) {
      this.#store.health.stop(error);
      return;
    }
    this.#space.becameFull();
    // Space retained only for copies is released first.
    for (const follower of [...this.#store.followers]) follower.lose();
    this.#cutBack();
    this.#lose(diskFull(error));
  }

  /** Resets the image to the last durable frame; later segments, whose files do not exist, are dropped. */
  #cutBack(): void {
    const unborn = new Set(this.#sealed.map((frame) => frame.segment));
    if (this.#active !== null) unborn.add(this.#active);
    this.#sealed = [];
    for (const segment of unborn) {
      if (this.#store.order.includes(segment)) continue;
      this.#store.cache.remove(segment);
      segment.isTaken = false;
      segment.deferredCopies = null;
      segment.chunkSums.cut(0);
      if (segment !== this.#store.spare && segment !== this.#coming) this.#store.drop(segment);
    }
    const last = this.#store.order.at(-1);
    this.#active = null;
    this.#openFrameAt(0);
    this.#lastNumber = this.durableNumber;
    this.#lastCrc = this.durableCrc;
    if (last === undefined || last.kind !== "log" || last.image === null || last.sealed) return;
    this.#active = last;
    last.deferredCopies = null;
    last.chunkSums.cut(last.end);
    this.#openFrameAt(last.end);
    for (const segment of this.#store.order) {
      if (segment !== last && !segment.sealed) this.#sealSegment(segment);
    }
  }

  /** The log has stopped, whatever the reason. A frame that was being written may or may not be recovered. */
  #stopped(error: EngineError): void {
    this.#sealed = [];
    try {
      this.#lose(error);
    } finally {
      this.#listener.stopped(error);
    }
  }

  #lose(error: EngineError): void {
    const isLost = this.appendedCount > this.durableCount;
    this.appendedCount = this.durableCount;
    this.unsyncedBytes = 0;
    this.#openTransactions = 0;
    // These resume in a later tick, after the owner has dropped its staged state.
    for (const waiter of this.#flushWaiters.splice(0)) waiter.reject(error);
    if (this.#store.health.stopped === null) {
      this.#settle(this.#spaceWaiters, (waiter) => this.unsyncedBytes <= waiter.count);
    }
    for (const waiter of this.#spaceWaiters.splice(0)) waiter.reject(error);
    if (isLost) this.#listener.lost(this.durableCount, error);
  }

  /** Schedules the empty frame that distinguishes damage to the last frame from a torn tail. */
  #scheduleBarrier(): void {
    if (this.#lastIsEmpty || this.#closing || this.#store.disk === null) return;
    if (this.#store.health.stopped !== null) return;
    this.#barrierTimer = this.#clock.setTimer(barrierDelayMs, () => {
      this.#barrierTimer = null;
      if (this.#running || this.#closing) return;
      this.#running = true;
      this.#idle = this.#writeBarrier().then(
        () => this.#run(),
        (error: unknown) => {
          this.#store.health.stop(error);
        },
      );
    });
  }

  async #writeBarrier(): Promise<void> {
    let segment = this.#active;
    this.#lastIsEmpty = true;
    if (segment === null || this.#openTransactions > 0) return;
    // Its image can then be dropped: all of its space is used, and the empty frame goes to the next segment.
    if (segment.isOversized && !this.#space.isFull()) segment = this.#roll(0);
    else if (segment.file === null) return;
    // It leaves room for the frame that closes the log.
    if (this.#frameStart + 2 * frameHeaderBytes > segment.size) return;
    const frames: [Frame] = [this.#seal(segment, 0)];
    try {
      await this.#write(frames);
      if (this.#store.health.stopped === null) this.#becameDurable(frames);
    } catch (error) {
      this.#fail(error);
    }
  }
}

/** Returns the bytes of frames that follow one another. */
function bytesOf(frames: readonly Frame[]): number {
  const [first, last] = [frames[0], frames.at(-1)];
  return first === undefined || last === undefined ? 0 : last.end - first.start;
}
