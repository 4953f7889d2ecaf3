/**
 * Iterates over the frames of a sealed segment: from its image if that is in memory, else from its file through a
 * window, so that a large segment needs only the memory of its largest frame (at least 1 MiB).
 *
 * Invariants:
 * - Frames read from the file have been verified against their CRC-32.
 */

import type { Throttle } from "../log/throttle.ts";
import type { Block } from "./blocks.ts";
import {
  decodeFrameHeader,
  type FrameHeader,
  frameHeaderBytes,
  slicedPayloadCrcOf,
} from "./frame.ts";
import { type Segment, segmentHeaderBytes } from "./segment.ts";
import type { SegmentStore } from "./segment-store.ts";

const windowBytes = 1024 * 1024;

/** A frame in memory, valid until the next call of `next`. */
interface ReadFrame {
  readonly header: FrameHeader;
  readonly bytes: Buffer;
  /** Bounds of its payload in `bytes`, `end` exclusive. */
  readonly start: number;
  readonly end: number;
  /** Offset of byte 0 of `bytes` in the segment. */
  readonly base: number;
}

export class FrameReader {
  readonly #store: SegmentStore;
  readonly #segment: Segment;
  readonly #throttle: Throttle;
  readonly #image: Buffer | null;
  readonly #block: Block | null;
  /** The part of the file that was read last, in reused memory, and its offset in the segment. */
  #window: Buffer = Buffer.alloc(0);
  #memory: Buffer = this.#window;
  #windowStart = 0;
  #at = segmentHeaderBytes;

  /** Pins the segment's image until `close`. */
  constructor(store: SegmentStore, segment: Segment, throttle: Throttle) {
    this.#store = store;
    this.#segment = segment;
    this.#throttle = throttle;
    this.#image = segment.image;
    this.#block = segment.imageBlock;
    this.#block?.hold();
  }

  close(): void {
    this.#block?.release();
  }

  /** Whether another frame follows. */
  get hasNext(): boolean {
    return this.#at < this.#segment.end;
  }

  /** @returns null when the frame is not intact. @throws EngineError read-failed */
  async next(): Promise<ReadFrame | null> {
    const frame = this.#image === null ? await this.#read() : this.#frameIn(this.#image, 0);
    if (frame !== null) this.#at = frame.base + frame.end;
    return frame;
  }

  #frameIn(bytes: Buffer, base: number): ReadFrame | null {
    const { end, salt } = this.#segment;
    const at = this.#at - base;
    const header = decodeFrameHeader(bytes, at, end - base, salt);
    if (header === null) return null;
    const start = at + frameHeaderBytes;
    return { header, bytes, start, end: start + header.payloadLength, base };
  }

  async #read(): Promise<ReadFrame | null> {
    if (!(await this.#fill(frameHeaderBytes))) return null;
    const head = this.#frameIn(this.#window, this.#windowStart);
    if (head === null || !(await this.#fill(head.end - head.start + frameHeaderBytes))) return null;
    const frame = this.#frameIn(this.#window, this.#windowStart);
    if (frame === null) return null;
    const { bytes, start, header } = frame;
    const at = start - frameHeaderBytes;
    const crc = await slicedPayloadCrcOf(bytes, at, header.payloadLength, this.#throttle);
    return crc === header.payloadCrc ? frame : null;
  }

  /** Makes the window contain the first `length` bytes of the present frame. @returns false when they cannot be read */
  async #fill(length: number): Promise<boolean> {
    const end = this.#at + length;
    if (this.#at >= this.#windowStart && end <= this.#windowStart + this.#window.length)
      return true;
    const wanted = Math.min(this.#segment.end - this.#at, Math.max(length, windowBytes));
    if (wanted < length) return false;
    if (this.#memory.length < wanted) this.#memory = Buffer.from(new ArrayBuffer(wanted));
    this.#window = this.#memory.subarray(0, wanted);
    this.#windowStart = this.#at;
    return (await this.#store.readFrom(this.#segment, this.#window, this.#at)) === wanted;
  }
}
