/**
 * Gives back the room of records that are no longer needed. Neighbouring sealed segments of which at least half is
 * dead are copied, live records only and in order, into one compacted segment that takes their place:
 *
 *   order before   | 1 dead | 2 dead | 3 alive | 4 active |
 *   order after    | 5 compacted     | 3 alive | 4 active |
 *
 * so that reading the log in order still gives the commits in order. The steps, each safe to crash after:
 *   1. the output is written and synced, but not listed: recovery removes it;
 *   2. the manifest lists it in the place of its sources: recovery reads it, and has the owner relocate;
 *   3. the owner is told, record by record, where the copies are;
 *   4. the sources are removed when no pin needs them: recovery removes what is not listed.
 *
 * A deletion must stay as long as anything that it deletes could come back: from a segment before it that was not
 * rewritten since, or from a snapshot that was taken before it. `canDrop` is the rule.
 *
 * Invariants:
 * - A frame of the output never has records from both sides of a snapshot's cut.
 * - Only records whose frame is whole are copied; a segment with damage stays as it is.
 */
import { assert } from "../assert.ts";
import type { Clock } from "../environment.ts";
import {
  decodeFrameHeader,
  encodeFrameHeader,
  type FrameHeader,
  frameFlags,
  frameHeaderBytes,
  payloadCrcOf,
  payloadIsWhole,
} from "./frame.ts";
import { diskFull, isDiskFull } from "./health.ts";
import { positionSegmentFactor, type RecordOwner } from "./log.ts";
import { recordLengthIn } from "./recovery.ts";
import { encodeSegmentHeader, newImage, type Segment, segmentHeaderBytes } from "./segment.ts";
import type { SegmentStore } from "./segment-store.ts";
import { Throttle } from "./throttle.ts";

const framePayloadBytesMax = 1024 * 1024;
const writeBytes = 1024 * 1024;

export interface CompactionOptions {
  /** Bytes copied in a second at most. */
  readonly bytesPerSecond: number;
}

export interface CompactionReport {
  /** Segments that were replaced, and by how many. */
  readonly sources: number;
  readonly outputs: number;
  /** How much smaller the files are now, counting sources that a pin still holds. */
  readonly bytesFreed: number;
  /** Segments that cannot be compacted because they are damaged. */
  readonly damaged: number;
}

/** What compaction asks of the rest of the log. */
export interface CompactionContext {
  readonly store: SegmentStore;
  readonly owner: RecordOwner;
  readonly clock: Clock;
  readonly segmentBytesMax: number;
  /** The last frame that the owner was told to be durable. */
  durableNumber(): number;
  /** The last frames of all snapshots, also of one that is being written. */
  cuts(): number[];
}

/** Records that are copied into one output. */
interface FramePlan {
  readonly start: number;
  end: number;
  readonly firstNumber: number;
  number: number;
}

export class Compactor {
  readonly #context: CompactionContext;
  /** Segments that are being compacted. */
  #run: readonly Segment[] = [];
  /** Deletions up to this frame may be left out of the present run. */
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

  /** Is there anything to compact? Cost: one look at each segment. */
  isWorthwhile(): boolean {
    return this.#nextRun() !== null;
  }

  /** Makes a compaction that is under way end soon, in a state that is as good as any other. */
  cancel(): void {
    this.#isCancelled = true;
    this.#throttle?.hurry();
  }

  /** Compacts until nothing is left that is worth it. @throws EngineError disk-full, database-stopped */
  async compact(options: CompactionOptions): Promise<CompactionReport> {
    assert(this.#run.length === 0, "one compaction at a time");
    const throttle = new Throttle(this.#context.clock, options.bytesPerSecond);
    this.#throttle = throttle;
    const report = { sources: 0, outputs: 0, bytesFreed: 0, damaged: 0 };
    for (;;) {
      const run = this.#nextRun();
      if (run === null || this.#isCancelled) return report;
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

  /** The first run of neighbours that are worth it, not larger than a segment may be. */
  #nextRun(): Segment[] | null {
    const { store, segmentBytesMax } = this.#context;
    let run: Segment[] = [];
    let liveBytes = 0;
    let isWorth = false;
    for (const segment of store.order) {
      const live = segment.payloadBytes - segment.deadBytes;
      const worth = this.#isWorth(segment);
      const fits = liveBytes + live <= segmentBytesMax;
      if ((worth || this.#isSmall(segment)) && fits) {
        run.push(segment);
        liveBytes += live;
        isWorth ||= worth;
        continue;
      }
      if (isWorth) return run;
      run = worth ? [segment] : [];
      liveBytes = worth ? live : 0;
      isWorth = worth;
    }
    return isWorth ? run : null;
  }

  #isFree(segment: Segment): boolean {
    return segment.sealed && segment.settled && !segment.damaged;
  }

  /** Would rewriting it give back half of it? Deletions that must be kept give back nothing. */
  #isWorth(segment: Segment): boolean {
    if (!this.#isFree(segment)) return false;
    if (segment.payloadBytes === 0) return segment.kind === "log";
    const canDropAll = segment.lastNumber <= this.#dropThroughBefore(segment);
    const kept = canDropAll ? 0 : segment.deadBytesAtBirth;
    return (segment.deadBytes - kept) * 2 >= segment.payloadBytes;
  }

  /** An output of an earlier compaction that is worth joining to its neighbours when they are rewritten anyway. */
  #isSmall(segment: Segment): boolean {
    const isOutput = segment.kind === "compacted" && this.#isFree(segment);
    return isOutput && segment.size * 8 <= this.#context.segmentBytesMax;
  }

  /** Up to which frame deletions in `first`, the first segment of a run, can be left out. */
  #dropThroughBefore(first: Segment): number {
    let through = Math.min(...this.#context.cuts());
    for (const segment of this.#context.store.order) {
      if (segment === first) break;
      through = Math.min(through, segment.cleanThrough);
    }
    return through;
  }

  /** @returns null when a source is damaged or it was cancelled; then nothing happened. */
  async #compactRun(run: readonly Segment[], throttle: Throttle): Promise<Segment | null> {
    const { store } = this.#context;
    const cleanThrough = this.#context.durableNumber();
    this.#dropThrough = this.#dropThroughBefore(run[0] as Segment);
    const builder = new OutputBuilder(this.#context.cuts(), liveBytesOf(run));
    for (const source of run) {
      if (source.replacedBytes === source.payloadBytes) continue; // nothing in it is needed
      const image = source.image ?? (await loadWhole(store, source, throttle));
      if (image === null) {
        source.damaged = true;
        return null;
      }
      await this.#copy(source, image, builder, throttle);
      if (this.#isCancelled) return null;
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

  /** The segments of a log stand for all frames without a gap. */
  #firstNumberOf(segment: Segment): number {
    const { order } = this.#context.store;
    const before = order[order.indexOf(segment) - 1];
    return before === undefined ? 1 : before.lastNumber + 1;
  }

  async #copy(
    source: Segment,
    image: Buffer,
    builder: OutputBuilder,
    throttle: Throttle,
  ): Promise<void> {
    const base = source.number * positionSegmentFactor;
    const { owner } = this.#context;
    let at = segmentHeaderBytes;
    while (at < source.end) {
      const header = decodeFrameHeader(image, at, source.end, source.salt);
      assert(header !== null, "the frames of a sealed segment are whole");
      const start = at + frameHeaderBytes;
      const end = start + header.payloadLength;
      for (at = start; at < end; ) {
        const length = recordLengthIn(image, at, end);
        if (owner.isLive(image, at, length, base + at)) builder.add(image, at, length, header);
        at += length;
        if (throttle.isDue()) await throttle.yield();
      }
      if (this.#isCancelled) return;
    }
  }

  async #write(output: Segment, builder: OutputBuilder, throttle: Throttle): Promise<void> {
    const { store, clock } = this.#context;
    const nowMicros = clock.nowMicros();
    const image = await builder.finish(output, store.databaseId, nowMicros, throttle);
    output.image = image;
    output.end = output.size;
    output.payloadBytes = builder.payloadBytes;
    output.sealed = true;
    output.ready = Promise.resolve();
    if (store.disk === null) return;
    output.file = await store.createFile(output, async (file) => {
      for (let at = 0; at < image.length; at += writeBytes) {
        const count = Math.min(writeBytes, image.length - at);
        await file.write(image, at, count, at);
        await throttle.spend(count);
      }
    });
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
          // It died while it was copied, or is a deletion that had to be kept.
          if (owner.isLive(image, at, length, base + at)) output.deadBytesAtBirth += length;
          else output.replacedBytes += length;
        }
        at += length;
        if (throttle.isDue()) await throttle.yield();
      }
    }
  }
}

/** Gathers the records of one output, in frames. */
class OutputBuilder {
  readonly frames: FramePlan[] = [];
  readonly #cuts: readonly number[];
  #image: Buffer;
  #end = segmentHeaderBytes;

  /** `bytes` is about what will come together. */
  constructor(cuts: readonly number[], bytes: number) {
    this.#cuts = cuts;
    this.#image = newImage(bytes + Math.ceil(bytes / 4096) * frameHeaderBytes + 4096);
  }

  /** Bytes of the whole segment. */
  get size(): number {
    return this.#end;
  }

  get payloadBytes(): number {
    return this.#end - segmentHeaderBytes - this.frames.length * frameHeaderBytes;
  }

  /** Copies a record that stood in the frame of `header`. */
  add(source: Buffer, start: number, length: number, header: FrameHeader): void {
    let frame = this.frames.at(-1);
    this.#reserve(frameHeaderBytes + length);
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

  #reserve(bytes: number): void {
    if (this.#end + bytes <= this.#image.length) return;
    const larger = newImage(Math.max(this.#image.length * 2, this.#end + bytes));
    this.#image.copy(larger, 0, 0, this.#end);
    this.#image = larger;
  }

  /** Writes the headers. @returns the image, exactly `size` bytes. */
  async finish(
    segment: Segment,
    databaseId: Buffer,
    nowMicros: number,
    throttle: Throttle,
  ): Promise<Buffer> {
    assert(segment.size === this.#end, "the size of the output is known");
    const image = this.#trimmed();
    const { number, kind, salt, size } = segment;
    encodeSegmentHeader(image, { number, kind, salt, size, databaseId });
    let previousCrc = 0;
    for (const frame of this.frames) {
      const isLast = frame === this.frames.at(-1);
      const payloadLength = frame.end - frame.start - frameHeaderBytes;
      previousCrc = encodeFrameHeader(image, frame.start, salt, {
        payloadLength,
        payloadCrc: payloadCrcOf(image, frame.start, payloadLength),
        number: frame.number,
        firstNumber: frame.firstNumber,
        durableNumber: frame.number,
        previousCrc,
        flags: frameFlags.compacted | (isLast ? frameFlags.last : 0),
        transactionCount: 0,
        wallClockMicros: nowMicros,
      });
      if (throttle.isDue()) await throttle.yield();
    }
    return image;
  }

  /** Copies the image only when much of it is not used. */
  #trimmed(): Buffer {
    if (this.#image.length <= this.#end * 1.25) return this.#image.subarray(0, this.#end);
    const image = newImage(this.#end);
    this.#image.copy(image, 0, 0, this.#end);
    return image;
  }
}

function liveBytesOf(run: readonly Segment[]): number {
  return run.reduce((sum, source) => sum + source.payloadBytes - source.deadBytes, 0);
}

/** The bytes of a sealed segment, read from its file. @returns null when it cannot be read, or a frame is not whole. */
export async function loadWhole(
  store: SegmentStore,
  segment: Segment,
  throttle: Throttle,
): Promise<Buffer | null> {
  const image = newImage(segment.size);
  const count = await store.readFrom(segment, image, 0).catch(() => 0);
  if (count !== segment.size) return null;
  for (let at = segmentHeaderBytes; at < segment.end; ) {
    const header = decodeFrameHeader(image, at, segment.end, segment.salt);
    if (header === null || !payloadIsWhole(image, at, header)) return null;
    at += frameHeaderBytes + header.payloadLength;
    if (throttle.isDue()) await throttle.yield();
  }
  return image;
}
