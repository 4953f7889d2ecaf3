/**
 * Follows the frames of a log, for a copy of it elsewhere: lists the bytes that are durable and were not copied yet.
 *
 *   segment 7 (taken up to here v)    segment 8            segment 9, active
 *   +--------+--------+--------+------+--------+-----------+--------+--------+------+
 *   | header | frame  | frame  | frame| header | frame ... | header | frame  | free |
 *   +--------+--------+--------+------+--------+-----------+--------+--------+------+
 *                              |<----------------- waiting ----------------->|
 *
 * Invariants:
 * - Frames are returned in commit order, without gaps, and only when they are durable.
 * - The segments of pending frames stay readable after compaction has replaced them. This costs space: if they use more
 *   than `keptBytesMax`, or the disk is full, the follower is lost and retains nothing. Writers never wait for it.
 */
import { assert } from "../../base/assert.ts";
import { EngineError } from "../../base/errors.ts";
import { followedBytesMin, followedShare } from "../../base/limits.ts";
import {
  decodeFrameHeader,
  type FrameHeader,
  frameCrc,
  frameHeaderBytes,
} from "../segments/frame.ts";
import { type Segment, segmentHeaderBytes } from "../segments/segment.ts";
import type { SegmentStore } from "../segments/segment-store.ts";

/** A frame: its number, and the CRC of its header, which depends on all frames before it. */
export interface LogPoint {
  readonly number: number;
  readonly crc: number;
}

/** Durable bytes of a segment, whole frames. */
export interface LogRange {
  readonly segment: Segment;
  readonly from: number;
  readonly to: number;
}

/** Frames that can be copied. */
export interface WaitingFrames {
  /** The frame before the first one. */
  readonly after: LogPoint;
  /** The last one. */
  readonly through: LogPoint;
  readonly ranges: readonly LogRange[];
  /** There are no later ones yet. */
  readonly isAll: boolean;
}

interface Followed {
  readonly segment: Segment;
  /** Offset up to which bytes were copied. */
  from: number;
}

export class LogFollower {
  /** Called once when it is lost. */
  whenLost: () => void = () => undefined;
  readonly #store: SegmentStore;
  readonly #segments: Followed[];
  #point: LogPoint;
  #keptBytes = 0;
  #isOpen = true;

  /** Registers itself with `store`. `segments`: in order, with everything after `point`. */
  constructor(store: SegmentStore, point: LogPoint, segments: readonly Followed[]) {
    this.#store = store;
    this.#point = point;
    this.#segments = [...segments];
    store.followers.add(this);
  }

  /** Follows from the present end of the log on. */
  static fromEnd(store: SegmentStore, point: LogPoint): LogFollower {
    const growing = store.order.filter(({ kind, sealed }) => kind === "log" && !sealed);
    const segments = growing.map((segment) => ({ segment, from: segment.end }));
    return new LogFollower(store, point, segments);
  }

  /** Follows from the oldest frame after which all frames are in their original form, not compacted. */
  static fromOldest(store: SegmentStore): LogFollower {
    const last = store.order.findLast(({ kind }) => kind === "compacted");
    const at = last === undefined ? 0 : store.order.indexOf(last) + 1;
    const point = { number: last?.lastNumber ?? 0, crc: last?.lastCrc ?? 0 };
    const segments = store.order
      .slice(at)
      .map((segment) => ({ segment, from: segmentHeaderBytes }));
    return new LogFollower(store, point, segments);
  }

  /** The position after the last copied frame. */
  get point(): LogPoint {
    return this.#point;
  }

  /** Whether it no longer retains segments: it was closed, or the retained segments used too much space. */
  get isLost(): boolean {
    return !this.#isOpen;
  }

  /** Bytes of frames that wait. */
  get waitingBytes(): number {
    return this.#segments.reduce((sum, { segment, from }) => sum + segment.end - from, 0);
  }

  /** Returns whether the file of `segment` must be retained. */
  needs(segment: Segment): boolean {
    return this.#segments.some((one) => one.segment === segment);
  }

  /** From the store: a segment was added to the end of the log. */
  added(segment: Segment): void {
    this.#segments.push({ segment, from: segmentHeaderBytes });
  }

  /** Called by the store: a segment without durable frames is no longer in the log. */
  dropped(segment: Segment): void {
    const at = this.#segments.findIndex((one) => one.segment === segment);
    if (at >= 0) this.#segments.splice(at, 1);
  }

  /** From the store: compaction has replaced `segment`. */
  replaced(segment: Segment): void {
    if (this.needs(segment)) this.keeps(segment.size);
  }

  /** `bytes` more are on the disk only for it. */
  keeps(bytes: number): void {
    this.#keptBytes += bytes;
    const bytesMax = Math.max(followedBytesMin, followedShare * this.#store.liveBytes());
    if (this.#keptBytes > bytesMax) this.lose();
  }

  /** Releases all segments: the follower is lost. */
  lose(): void {
    if (!this.#isOpen) return;
    this.close();
    this.whenLost();
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#segments.length = 0;
    this.#store.followers.delete(this);
    this.#store.removeRetired();
  }

  /**
   * Another follower, of the frames after `point`. @returns null when this one does not have them all, or the log has
   * another frame of this number
   */
  async branch(point: LogPoint): Promise<LogFollower | null> {
    const found = await this.#find(point);
    if (found === null || !this.#isOpen) return null;
    const at = this.#segments.findIndex(({ segment }) => segment === found.segment);
    const later = this.#segments.slice(at + 1);
    return new LogFollower(this.#store, point, [found, ...later.map((one) => ({ ...one }))]);
  }

  /** Returns the end of frame `point` in its segment. */
  async #find(point: LogPoint): Promise<Followed | null> {
    let before = this.#point;
    for (const { segment, from } of [...this.#segments]) {
      if (before.number === point.number && before.crc === point.crc) return { segment, from };
      if (segment.lastNumber < point.number && segment.sealed) {
        before = { number: segment.lastNumber, crc: segment.lastCrc };
        continue;
      }
      for (let at = from; at < segment.end; ) {
        const header = await this.#headerAt(segment, at);
        if (header === null || header.frame.number > point.number) return null;
        at += frameHeaderBytes + header.frame.payloadLength;
        if (header.frame.number < point.number) continue;
        return header.crc === point.crc ? { segment, from: at } : null;
      }
      before = { number: segment.lastNumber, crc: segment.lastCrc };
    }
    return null;
  }

  async #headerAt(
    segment: Segment,
    at: number,
  ): Promise<{ readonly frame: FrameHeader; readonly crc: number } | null> {
    const range = { segment, from: at, to: at + frameHeaderBytes };
    for await (const bytes of this.#store.readRange(range)) {
      const frame = decodeFrameHeader(bytes, 0, Number.POSITIVE_INFINITY, segment.salt);
      return frame === null ? null : { frame, crc: frameCrc(bytes, 0) };
    }
    return null;
  }

  /**
   * Returns the next pending frames, oldest first: about `bytesMax`, but at least those of a segment. Null if none is
   * pending, or if the follower is lost.
   */
  waiting(bytesMax: number): WaitingFrames | null {
    const ranges: LogRange[] = [];
    let bytes = 0;
    for (const { segment, from } of this.#segments) {
      if (bytes >= bytesMax) break;
      if (segment.end === from) continue;
      ranges.push({ segment, from, to: segment.end });
      bytes += segment.end - from;
    }
    const last = ranges.at(-1)?.segment;
    if (last === undefined) return null;
    const through = { number: last.lastNumber, crc: last.lastCrc };
    return { after: this.#point, through, ranges, isAll: bytes === this.waitingBytes };
  }

  /**
   * Copies of the bytes of a range, each valid until the next one. @throws EngineError read-failed; database-stopped if
   * the follower is lost in the meantime
   */
  async *read(range: LogRange): AsyncGenerator<Buffer> {
    for await (const bytes of this.#store.readRange(range)) {
      if (!this.#isOpen) throw behind();
      yield bytes;
    }
  }

  /** The copy of these frames is durable. */
  taken({ after, through, ranges }: WaitingFrames): void {
    if (!this.#isOpen) return;
    assert(after === this.#point, "frames are acknowledged in order");
    for (const { segment, to } of ranges) {
      const one = this.#segments.find((followed) => followed.segment === segment);
      assert(one !== undefined, "a segment is followed until it was taken");
      one.from = to;
    }
    this.#point = through;
    const kept = this.#segments.filter(({ segment, from }) => !isDone(segment, from));
    for (const { segment } of this.#segments) {
      const isReplaced = !this.#store.order.includes(segment);
      if (isReplaced && !kept.some((one) => one.segment === segment)) {
        this.#keptBytes -= segment.size;
      }
    }
    this.#segments.splice(0, this.#segments.length, ...kept);
    this.#store.removeRetired();
  }
}

function behind(): EngineError {
  return new EngineError(
    "database-stopped",
    "The log no longer retains the frames to be copied: the copy starts over.",
  );
}

function isDone(segment: Segment, from: number): boolean {
  return segment.sealed && from === segment.end;
}
