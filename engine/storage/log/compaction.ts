/**
 * Reclaims the space of records that are no longer needed. The live records of adjacent sealed segments that are at
 * least half dead are copied, in order, into one compacted segment that replaces them:
 *
 *   order before   | 1 dead | 2 dead | 3 alive | 4 active |
 *   order after    | 5 compacted     | 3 alive | 4 active |
 *
 * so reading the log in order still yields the commits in order. The steps; a crash after any of them is safe:
 *   1. the output is written and synced, but not listed: recovery removes it;
 *   2. the manifest lists it in the place of its sources: recovery reads it, and has the owner relocate;
 *   3. the owner relocates its entries to the copies, record by record;
 *   4. the sources are removed when no pin needs them: recovery removes files that are not listed.
 *
 * A deletion must be retained as long as the deleted record could reappear: from an earlier segment that has dead
 * records and was not rewritten since, or from an earlier snapshot. `canDrop` is the rule. If segments force the
 * retention of too many deletions, they are rewritten, even if few of their records are dead.
 *
 * Invariants:
 * - A frame of the output never has records from both sides of a snapshot's cut.
 * - Only records of intact frames are copied; a damaged segment is not compacted.
 */
import { assert } from "../../base/assert.ts";
import type { Clock } from "../../base/environment.ts";
import { extendAllSums } from "../segments/extent-sums.ts";
import {
  encodeFrameHeader,
  type FrameHeader,
  frameFlags,
  frameHeaderBytes,
  slicedPayloadCrcOf,
} from "../segments/frame.ts";
import { FrameReader } from "../segments/frame-reader.ts";
import type { ImagePool } from "../segments/image-pool.ts";
import {
  encodeSegmentHeader,
  type Segment,
  segmentFileName,
  segmentHeaderBytes,
} from "../segments/segment.ts";
import type { SegmentStore } from "../segments/segment-store.ts";
import { type CompactionPace, paceOf } from "./compaction-pace.ts";
import { diskFull, isDiskFull } from "./health.ts";
import { positionSegmentFactor, type RecordOwner } from "./log.ts";
import { recordLengthIn } from "./recovery.ts";
import { Throttle } from "./throttle.ts";

const framePayloadBytesMax = 256 * 1024;
const writeBytes = 256 * 1024;
/** Written bytes are synced this often, so that no other sync has to wait for many of them. */
const syncBytes = 8 * 1024 * 1024;
const moveBytes = 256 * 1024;
/** Deletions that must be kept because of earlier segments are at most this share of the live bytes. */
const blockedShareMax = 0.25;

export interface CompactionOptions {
  /** Maximum bytes copied per second. */
  readonly bytesPerSecond: number;
}

export interface CompactionReport {
  /** Number of replaced segments, and of segments that replaced them. */
  readonly sources: number;
  readonly outputs: number;
  /** Bytes by which the files shrank, counting sources that a pin still holds. */
  readonly bytesFreed: number;
  /** Segments that cannot be compacted because they are damaged. */
  readonly damaged: number;
}

/** The parts of the log that compaction uses. */
interface CompactionContext {
  readonly store: SegmentStore;
  readonly owner: RecordOwner;
  readonly clock: Clock;
  readonly segmentBytesMax: number;
  /** Lower bound for the live bytes of a log in pace calculations. */
  readonly leastBytes: number;
  /** Returns the last frame reported to the owner as durable. */
  durableNumber(): number;
  /** Returns the last frames of all snapshots, including one being written. */
  cuts(): number[];
}

/** A segment and the space that compacting it would reclaim. */
interface Candidate {
  readonly segment: Segment;
  /** The share of its bytes that would be reclaimed: 0 to 1. */
  readonly share: number;
}

/** A frame of the output. */
interface FramePlan {
  readonly start: number;
  end: number;
  readonly firstNumber: number;
  number: number;
}

export class Compactor {
  readonly #context: CompactionContext;
  /** The segments being compacted. */
  #run: readonly Segment[] = [];
  /** Deletions up to this frame may be dropped in the present run. */
  #dropThrough = 0;
  #throttle: Throttle | null = null;
  #isCancelled = false;

  constructor(context: CompactionContext) {
    this.#context = context;
  }

  /** See `FileLog.canDropDeletion`. */
  canDrop(segment: Segment): boolean {
    return this.#run.includes(segment) && segment.lastNumber <= this.#dropThrough;
  }

  /** Returns the present pace, see `paceOf`. Cost: O(segments). */
  pace(isHeld: boolean): CompactionPace {
    const { store, leastBytes } = this.#context;
    const space = {
      liveBytes: store.liveBytes(),
      totalBytes: store.segmentBytes() + store.snapshotBytes(),
      deadBytes: 0,
      emptyBytes: 0,
    };
    for (const { segment, share } of this.#plainCandidates()) {
      space.deadBytes += share * segment.payloadBytes;
      if (isEmpty(segment)) space.emptyBytes += segment.payloadBytes;
    }
    return paceOf(space, leastBytes, isHeld);
  }

  /** Returns whether a segment is worth compacting. */
  isWorthwhile(pace: CompactionPace): boolean {
    return this.#nextRun(pace.worthShare, pace.runBytesMax, false) !== null;
  }

  /** Makes a running compaction end soon, in a consistent state. */
  cancel(): void {
    this.#isCancelled = true;
    this.#throttle?.hurry();
  }

  /**
   * Compacts until no segment is worth it, or, with `isUrgent`, until none is urgent. `isHeld`: see `paceOf`.
   * @throws EngineError disk-full, database-stopped
   */
  async compact(
    options: CompactionOptions,
    isHeld: () => boolean,
    isUrgent: boolean,
  ): Promise<CompactionReport> {
    assert(this.#run.length === 0, "one compaction at a time");
    const report = { sources: 0, outputs: 0, bytesFreed: 0, damaged: 0 };
    for (;;) {
      // Sources use space until their files are removed.
      await this.#context.store.finishRemovals();
      const pace = this.pace(isHeld());
      const worthShare = isUrgent ? pace.urgentShare : pace.worthShare;
      const run = this.#nextRun(worthShare, pace.runBytesMax, isUrgent);
      if (run === null || this.#isCancelled) return report;
      const speed = options.bytesPerSecond * pace.speedUp;
      const throttle = new Throttle(this.#context.clock, speed);
      throttle.timeShare = pace.timeShare;
      this.#throttle = throttle;
      this.#run = run;
      try {
        const output = await this.#compactRun(run, throttle);
        if (output === null) {
          if (!this.#isCancelled) report.damaged++;
          continue;
        }
        report.sources += run.length;
        report.outputs++;
        report.bytesFreed += run.reduce((sum, source) => sum + source.size, -output.size);
      } catch (error) {
        if (isDiskFull(error)) throw diskFull(error);
        throw error;
      } finally {
        this.#run = [];
      }
    }
  }

  /**
   * Returns the segment that reclaims most, with adjacent ones that are worth copying too, up to the size of a run.
   * When urgent, segments that need no copying go first, and separately from the others.
   */
  #nextRun(worthShare: number, runBytesMax: number, isUrgent: boolean): Segment[] | null {
    const candidates = this.#candidates();
    let best: Candidate | null = null;
    for (const candidate of candidates) {
      if (!isWorth(candidate, worthShare)) continue;
      if (best === null || candidate.share > best.share) best = candidate;
    }
    if (best === null) return null;
    const bytesMax = Math.min(this.#context.segmentBytesMax, runBytesMax);
    let first = candidates.indexOf(best);
    let end = first + 1;
    let bytes = liveBytesOf([best.segment]);
    const share = isUrgent && isEmpty(best.segment) ? 1 : worthShare;
    const takes = (candidate: Candidate | undefined): boolean => {
      if (candidate === undefined) return false;
      const { segment } = candidate;
      const bytesThen = bytes + liveBytesOf([segment]);
      if (bytesThen > bytesMax) return false;
      if (!isWorth(candidate, share) && !isSmall(segment, bytesMax)) return false;
      bytes = bytesThen;
      return true;
    };
    while (takes(candidates[first - 1])) first--;
    while (takes(candidates[end])) end++;
    return candidates.slice(first, end).map(({ segment }) => segment);
  }

  /**
   * Returns all segments in order; segments that cannot be compacted, or hold mostly deletions that must be retained,
   * reclaim nothing.
   */
  #plainCandidates(): Candidate[] {
    const candidates: Candidate[] = [];
    let dropThrough = Math.min(...this.#context.cuts());
    for (const segment of this.#context.store.order) {
      const kept = segment.lastNumber <= dropThrough ? 0 : segment.deadBytesAtBirth;
      candidates.push({ segment, share: isFree(segment) ? shareOf(segment, kept) : 0 });
      dropThrough = Math.min(dropThrough, cleanThroughOf(segment));
    }
    return candidates;
  }

  /** As `#plainCandidates`, but segments that make too many deletions stay count as entirely dead. */
  #candidates(): Candidate[] {
    const { store, leastBytes } = this.#context;
    const candidates = this.#plainCandidates();
    const cut = Math.min(...this.#context.cuts());
    let through = cut;
    let blockedBytes = 0;
    let last = -1;
    for (const [at, segment] of store.order.entries()) {
      if (segment.lastNumber > through && segment.lastNumber <= cut) {
        blockedBytes += segment.deadBytesAtBirth;
        if (segment.deadBytesAtBirth > 0) last = at;
      }
      through = Math.min(through, cleanThroughOf(segment));
    }
    if (blockedBytes <= blockedShareMax * Math.max(store.liveBytes(), leastBytes)) {
      return candidates;
    }
    const end = store.order[last]?.lastNumber ?? 0;
    return candidates.map((candidate, at) => {
      const { segment } = candidate;
      const isInTheWay = at <= last && isFree(segment) && cleanThroughOf(segment) < end;
      return isInTheWay ? { segment, share: 1 } : candidate;
    });
  }

  /** Returns the frame up to which deletions in `first`, the first segment of a run, can be dropped. */
  #dropThroughBefore(first: Segment): number {
    let through = Math.min(...this.#context.cuts());
    for (const segment of this.#context.store.order) {
      if (segment === first) break;
      through = Math.min(through, cleanThroughOf(segment));
    }
    return through;
  }

  /** @returns null when a source is damaged or the compaction was cancelled; then nothing was changed. */
  async #compactRun(run: readonly Segment[], throttle: Throttle): Promise<Segment | null> {
    const { store } = this.#context;
    const cleanThrough = this.#context.durableNumber();
    this.#dropThrough = this.#dropThroughBefore(run[0] as Segment);
    const builder = new OutputBuilder(this.#context.cuts(), liveBytesOf(run), store.cache.images);
    for (const source of run) {
      assert(source.replacedBytes <= source.payloadBytes, "a record is replaced once");
      if (isEmpty(source)) continue;
      const isWhole = await this.#copy(source, builder, throttle);
      if (!isWhole) source.damaged = true;
      if (isWhole && !this.#isCancelled) continue;
      builder.discard();
      return null;
    }
    const output = store.newSegment("compacted", builder.size);
    const last = run.at(-1) as Segment;
    output.firstNumber = this.#firstNumberOf(run[0] as Segment);
    output.lastNumber = last.lastNumber;
    output.lastCrc = last.lastCrc;
    output.cleanThrough = cleanThrough;
    output.settled = false;
    try {
      await this.#write(output, builder, throttle);
      await store.saveManifest(() => this.#replace(run, output));
    } catch (error) {
      store.drop(output);
      if (isDiskFull(error)) await store.removeFile(output);
      throw error;
    }
    await this.#relocate(output, builder, throttle);
    output.settled = true;
    if (store.disk !== null) store.cache.add(output);
    store.retire(run);
    return output;
  }

  /** Returns the segments of a log cover all frames without a gap. */
  #firstNumberOf(segment: Segment): number {
    const { order } = this.#context.store;
    const before = order[order.indexOf(segment) - 1];
    return before === undefined ? 1 : before.lastNumber + 1;
  }

  /** @returns false when a frame of the source is damaged */
  async #copy(source: Segment, builder: OutputBuilder, throttle: Throttle): Promise<boolean> {
    const base = source.number * positionSegmentFactor;
    const { owner, store } = this.#context;
    const frames = new FrameReader(store, source, throttle);
    try {
      while (frames.hasNext && !this.#isCancelled) {
        const frame = await frames.next();
        if (frame === null) return false;
        const { bytes, start, end, header } = frame;
        const position = base + frame.base;
        for (let at = start; at < end; ) {
          const length = recordLengthIn(bytes, at, end);
          if (owner.isLive(bytes, at, length, position + at)) {
            if (!builder.hasRoom(length)) await builder.grow(length, throttle);
            builder.add(bytes, at, length, header);
          }
          at += length;
          if (throttle.isDue()) await throttle.yield();
        }
      }
      return true;
    } finally {
      frames.close();
    }
  }

  async #write(output: Segment, builder: OutputBuilder, throttle: Throttle): Promise<void> {
    const { store, clock } = this.#context;
    const nowMicros = clock.nowMicros();
    const image = await builder.finish(output, store.databaseId, nowMicros, throttle);
    output.image = image;
    if (store.disk !== null) store.cache.write(output);
    output.end = output.size;
    output.payloadBytes = builder.payloadBytes;
    output.sealed = true;
    output.ready = Promise.resolve();
    if (store.disk === null) return;
    await extendAllSums(output, image, throttle);
    const startMs = clock.monotonicMs();
    output.file = await store.createFile(output, async (file) => {
      for (let at = 0; at < image.length; at += writeBytes) {
        const count = Math.min(writeBytes, image.length - at);
        await file.write(image, at, count, at);
        throttle.resumed();
        await throttle.spend(count);
        if ((at + count) % syncBytes === 0) await store.sync(file);
      }
    });
    const file = `log/${segmentFileName(output.number)}`;
    const durationMs = clock.monotonicMs() - startMs;
    const endedAtMicros = clock.nowMicros();
    store.writes.add("rewrite", file, image.length, output.size, endedAtMicros, durationMs);
    store.keepOpen(output);
  }

  #replace(run: readonly Segment[], output: Segment): () => void {
    const { store } = this.#context;
    const first = store.order.indexOf(run[0] as Segment);
    assert(first >= 0, "the sources of a compaction are listed");
    store.order = store.order.toSpliced(first, run.length, output);
    return () => {
      store.order = store.order.toSpliced(store.order.indexOf(output), 1, ...run);
    };
  }

  async #relocate(output: Segment, builder: OutputBuilder, throttle: Throttle): Promise<void> {
    const { owner } = this.#context;
    const { image } = output;
    assert(image !== null, "the output stays in memory until its records are relocated");
    const base = output.number * positionSegmentFactor;
    for (const frame of builder.frames) {
      for (let at = frame.start + frameHeaderBytes; at < frame.end; ) {
        const length = recordLengthIn(image, at, frame.end);
        if (!owner.relocate(image, at, length, base + at)) {
          output.deadBytes += length;
          // The record was superseded while it was copied, or is a deletion that had to be retained.
          if (owner.isLive(image, at, length, base + at)) output.deadBytesAtBirth += length;
          else output.replacedBytes += length;
        }
        at += length;
        if (throttle.isDue()) await throttle.yield();
      }
    }
  }
}

/** Gathers the records of one output in frames. */
class OutputBuilder {
  readonly frames: FramePlan[] = [];
  readonly #cuts: readonly number[];
  readonly #images: ImagePool;
  #image: Buffer;
  #end = segmentHeaderBytes;

  /** `bytes`: the expected total of records. */
  constructor(cuts: readonly number[], bytes: number, images: ImagePool) {
    this.#cuts = cuts;
    this.#images = images;
    this.#image = images.take(bytes + Math.ceil(bytes / 4096) * frameHeaderBytes + 4096);
  }

  /** Abandons the output. */
  discard(): void {
    this.#images.releaseImage(this.#image);
  }

  /** Bytes of the whole segment. */
  get size(): number {
    return this.#end;
  }

  get payloadBytes(): number {
    return this.#end - segmentHeaderBytes - this.frames.length * frameHeaderBytes;
  }

  /** Copies a record from the frame of `header`. */
  add(source: Buffer, start: number, length: number, header: FrameHeader): void {
    let frame = this.frames.at(-1);
    assert(this.hasRoom(length), "the image grows before a record is added");
    if (frame === undefined || this.#mustBreak(frame, header, length)) {
      const { firstNumber, number } = header;
      frame = { start: this.#end, end: 0, firstNumber, number };
      this.frames.push(frame);
      this.#end += frameHeaderBytes;
    }
    source.copy(this.#image, this.#end, start, start + length);
    this.#end += length;
    frame.end = this.#end;
    frame.number = header.number;
  }

  #mustBreak(frame: FramePlan, header: FrameHeader, length: number): boolean {
    if (frame.end - frame.start + length > framePayloadBytesMax) return true;
    return this.#cuts.some((cut) => frame.number <= cut && cut < header.firstNumber);
  }

  /** Returns whether one more record fits, in a frame of its own. */
  hasRoom(length: number): boolean {
    return this.#end + frameHeaderBytes + length <= this.#image.length;
  }

  async grow(length: number, throttle: Throttle): Promise<void> {
    const needed = this.#end + frameHeaderBytes + length;
    await this.#moveTo(this.#images.take(Math.max(this.#image.length * 2, needed)), throttle);
  }

  async #moveTo(image: Buffer, throttle: Throttle): Promise<void> {
    for (let at = 0; at < this.#end; at += moveBytes) {
      this.#image.copy(image, at, at, Math.min(this.#end, at + moveBytes));
      if (throttle.isDue()) await throttle.yield();
    }
    this.#images.releaseImage(this.#image);
    this.#image = image;
  }

  /** Writes the headers. @returns the image, exactly `size` bytes. */
  async finish(
    segment: Segment,
    databaseId: Buffer,
    nowMicros: number,
    throttle: Throttle,
  ): Promise<Buffer> {
    assert(segment.size === this.#end, "the size of the output is known");
    // Copied only when much of it is unused.
    if (this.#image.length > this.#end * 1.25) {
      await this.#moveTo(this.#images.take(this.#end), throttle);
    }
    const image = this.#image.subarray(0, this.#end);
    const { number, kind, salt, size } = segment;
    encodeSegmentHeader(image, { number, kind, salt, size, databaseId });
    let previousCrc = 0;
    for (const frame of this.frames) {
      const isLast = frame === this.frames.at(-1);
      const payloadLength = frame.end - frame.start - frameHeaderBytes;
      previousCrc = encodeFrameHeader(image, frame.start, salt, {
        payloadLength,
        payloadCrc: await slicedPayloadCrcOf(image, frame.start, payloadLength, throttle),
        number: frame.number,
        firstNumber: frame.firstNumber,
        durableNumber: frame.number,
        previousCrc,
        flags: frameFlags.compacted | (isLast ? frameFlags.last : 0),
        transactionCount: 0,
        wallClockMicros: nowMicros,
      });
    }
    return image;
  }
}

function isFree(segment: Segment): boolean {
  return segment.sealed && segment.settled && !segment.damaged;
}

/**
 * Returns a small output of an earlier compaction, which is merged with adjacent segments when these are rewritten
 * anyway.
 */
function isSmall(segment: Segment, runBytesMax: number): boolean {
  return segment.kind === "compacted" && isFree(segment) && segment.size * 8 <= runBytesMax;
}

/** No record in it was superseded by a frame up to this one. */
function cleanThroughOf(segment: Segment): number {
  const isClean = segment.settled && segment.deadBytes === 0;
  return isClean ? Number.POSITIVE_INFINITY : segment.cleanThrough;
}

/** Returns whether every record in the segment was replaced. Then it is reclaimed without being read. */
function isEmpty(segment: Segment): boolean {
  return isFree(segment) && segment.replacedBytes === segment.payloadBytes;
}

/** Returns the share of a segment that compacting it reclaims when `keptBytes` of its dead bytes must be kept. */
function shareOf(segment: Segment, keptBytes: number): number {
  if (segment.payloadBytes === 0) return segment.kind === "log" ? 1 : 0;
  return (segment.deadBytes - keptBytes) / segment.payloadBytes;
}

function isWorth({ segment, share }: Candidate, worthShare: number): boolean {
  return share > 0 && (share >= worthShare || isEmpty(segment));
}

function liveBytesOf(run: readonly Segment[]): number {
  return run.reduce((sum, source) => sum + source.payloadBytes - source.deadBytes, 0);
}
