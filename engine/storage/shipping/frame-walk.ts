/**
 * Walks through the frames of a shipped file as its bytes arrive, and verifies each: its checksums, and that it follows
 * the previous frame. Stops before the first frame that was committed after the requested moment.
 */
import { crc32 } from "node:zlib";
import type { LogPoint } from "../log/log-follower.ts";
import {
  decodeFrameHeader,
  type FrameHeader,
  frameCrc,
  frameHeaderBytes,
} from "../segments/frame.ts";
import { damaged, type ShippedSegment } from "./shipped-file.ts";

export class FrameWalk {
  /** The last whole frame. In a compacted segment: the last frame that the segment replaces. */
  point: LogPoint;
  /** Microseconds since 1970 at which the last frame with transactions was committed; 0: there was none. */
  committedMicros = 0;
  /** Whether it has stopped before a frame that was committed later. */
  isCut = false;
  readonly #throughMicros: number;
  readonly #head = Buffer.alloc(frameHeaderBytes);
  #headBytes = 0;
  #name = "";
  #segment: ShippedSegment | null = null;
  /** The offset of the present frame in its segment. */
  #at = 0;
  #header: FrameHeader | null = null;
  #payloadLeft = 0;
  #payloadCrc = 0;
  /** Of the frame before in a compacted segment, which has a chain of its own. */
  #previousCrc = 0;

  /** @param throughMicros the last moment that is wanted, inclusive */
  constructor(point: LogPoint, throughMicros: number) {
    this.point = point;
    this.#throughMicros = throughMicros;
  }

  /**
   * Begins `segment`, whose bytes follow. @param name name of the file, for messages. @throws EngineError
   * backup-damaged
   */
  begin(segment: ShippedSegment, name: string): void {
    this.#segment = segment;
    this.#name = name;
    this.#at = segment.from;
    this.#previousCrc = 0;
    if (segment.kind === "compacted" && segment.firstNumber !== this.point.number + 1) {
      throw damaged(name, `commit ${this.point.number + 1} is missing in it`);
    }
  }

  /**
   * Processes the next bytes of the segment. @returns the number of bytes that belong to requested frames: fewer if the
   * file is cut. @throws EngineError backup-damaged
   */
  feed(bytes: Buffer): number {
    let at = 0;
    while (at < bytes.length) {
      if (this.#header !== null) {
        const count = Math.min(this.#payloadLeft, bytes.length - at);
        this.#payloadCrc = crc32(bytes.subarray(at, at + count), this.#payloadCrc);
        this.#payloadLeft -= count;
        at += count;
        if (this.#payloadLeft === 0) this.#endFrame(this.#header);
        continue;
      }
      const count = Math.min(frameHeaderBytes - this.#headBytes, bytes.length - at);
      bytes.copy(this.#head, this.#headBytes, at, at + count);
      this.#headBytes += count;
      at += count;
      if (this.#headBytes < frameHeaderBytes) continue;
      const header = this.#checkedHeader();
      if (this.#segment?.kind === "log" && header.wallClockMicros > this.#throughMicros) {
        this.isCut = true;
        // Bytes of its header that arrived earlier were counted: they never complete a frame.
        return Math.max(0, at - frameHeaderBytes);
      }
      this.#beginFrame(header);
    }
    return at;
  }

  /** The segment's bytes have ended. @throws EngineError backup-damaged */
  end(): void {
    if (this.#header !== null || this.#headBytes > 0) throw this.#damaged("the last frame is cut");
    const { kind, lastNumber, lastCrc } = this.#segment as ShippedSegment; // `begin` was called
    if (kind === "compacted") this.point = { number: lastNumber, crc: lastCrc };
  }

  /** Where the last whole frame ends in its segment. */
  get offset(): number {
    return this.#at;
  }

  #checkedHeader(): FrameHeader {
    const segment = this.#segment as ShippedSegment; // `begin` was called
    const header = decodeFrameHeader(this.#head, 0, Number.POSITIVE_INFINITY, segment.salt);
    const end = this.#at + frameHeaderBytes + (header?.payloadLength ?? 0);
    if (header === null || end > segment.to) throw this.#damaged("there is no whole frame");
    const isNext =
      segment.kind === "compacted"
        ? header.previousCrc === this.#previousCrc
        : header.number === this.point.number + 1 && header.previousCrc === this.point.crc;
    if (isNext) return header;
    throw this.#damaged(`commit ${header.number} does not follow commit ${this.point.number}`);
  }

  #beginFrame(header: FrameHeader): void {
    this.#header = header;
    this.#payloadLeft = header.payloadLength;
    this.#payloadCrc = 0;
    if (header.payloadLength === 0) this.#endFrame(header);
  }

  #endFrame(header: FrameHeader): void {
    if (this.#payloadCrc !== header.payloadCrc) throw this.#damaged("the frame is damaged");
    this.#at += frameHeaderBytes + header.payloadLength;
    this.#previousCrc = frameCrc(this.#head, 0);
    if (this.#segment?.kind === "log") {
      this.point = { number: header.number, crc: this.#previousCrc };
      if (header.transactionCount > 0) this.committedMicros = header.wallClockMicros;
    }
    this.#header = null;
    this.#headBytes = 0;
  }

  #damaged(what: string): Error {
    return damaged(this.#name, `${what} at byte ${this.#at} of segment ${this.#segment?.number}`);
  }
}
