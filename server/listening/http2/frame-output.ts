/**
 * Composes the frames of a connection, and writes what one turn of the event loop has made with one call: each write is
 * an encryption and a call of the system.
 */
import type { Duplex } from "node:stream";
import { type ErrorCode, flags, frameBytesMax, frameHeadBytes, frameTypes } from "./frames.ts";
import type { HeaderEncoder } from "./header-encoder.ts";

/** Bytes that are composed in one piece of memory. What was written is not used again: the socket may have it yet. */
const slabBytesMax = 32 * 1024;
/** Bytes of the first of these: a connection that sends little holds no more. Each next one is twice as large. */
const slabBytesMin = 2 * 1024;

export class FrameOutput {
  readonly #socket: Duplex;
  #slab: Buffer = Buffer.alloc(0);
  #slabBytes = slabBytesMin;
  /** Where the next byte goes, and the first that was not written. */
  #at = 0;
  #from = 0;
  #writtenBytes = 0;

  constructor(socket: Duplex) {
    this.#socket = socket;
  }

  /** Bytes that were composed and that the system has not taken. */
  get heldBytes(): number {
    return this.#at - this.#from + this.#socket.writableLength;
  }

  /** Bytes that the system has taken so far. */
  get leftBytes(): number {
    return this.#writtenBytes - this.#socket.writableLength;
  }

  /** Writes what was composed. */
  flush(): void {
    if (this.#at === this.#from) return;
    const piece = this.#slab.subarray(this.#from, this.#at);
    this.#from = this.#at;
    this.#writtenBytes += piece.length;
    this.#socket.write(piece);
  }

  /** `fields`: names and values in turn. @throws TypeError for what no header can hold */
  head(
    id: number,
    encoder: HeaderEncoder,
    status: number,
    fields: readonly string[],
    isEnd: boolean,
  ): void {
    const roomMax = encoder.bytesMax(fields);
    this.#reserve(roomMax + frameHeadBytes * (1 + Math.ceil(roomMax / frameBytesMax)));
    const start = this.#at + frameHeadBytes;
    const end = encoder.encode(status, fields, this.#slab, start);
    const ending = isEnd ? flags.endStream : 0;
    if (end - start <= frameBytesMax) {
      this.#head(end - start, frameTypes.headers, ending | flags.endHeaders, id);
      this.#at = end;
      return;
    }
    const block = Buffer.from(this.#slab.subarray(start, end));
    for (let from = 0; from < block.length; from += frameBytesMax) {
      const part = block.subarray(from, from + frameBytesMax);
      const isLast = from + part.length === block.length;
      const type = from === 0 ? frameTypes.headers : frameTypes.continuation;
      this.#head(
        part.length,
        type,
        (from === 0 ? ending : 0) | (isLast ? flags.endHeaders : 0),
        id,
      );
      this.#at += part.copy(this.#slab, this.#at);
    }
  }

  /** `end` - `start` is no more than `frameBytesMax`. */
  data(id: number, bytes: Uint8Array, start: number, end: number, isEnd: boolean): void {
    this.#reserve(frameHeadBytes + end - start);
    this.#head(end - start, frameTypes.data, isEnd ? flags.endStream : 0, id);
    this.#slab.set(
      start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end),
      this.#at,
    );
    this.#at += end - start;
  }

  /** `values`: each a number of a setting and its value. */
  settings(values: readonly (readonly [number, number])[]): void {
    this.#reserve(frameHeadBytes + values.length * 6);
    this.#head(values.length * 6, frameTypes.settings, 0, 0);
    for (const [number, value] of values) {
      this.#at = this.#slab.writeUInt16BE(number, this.#at);
      this.#at = this.#slab.writeUInt32BE(value, this.#at);
    }
  }

  settingsTaken(): void {
    this.#reserve(frameHeadBytes);
    this.#head(0, frameTypes.settings, flags.ack, 0);
  }

  pong(bytes: Uint8Array): void {
    this.#reserve(frameHeadBytes + bytes.length);
    this.#head(bytes.length, frameTypes.ping, flags.ack, 0);
    this.#slab.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  reset(id: number, code: ErrorCode): void {
    this.#number(id, frameTypes.reset, code);
  }

  /** Lets the peer send `bytes` more. */
  window(id: number, bytes: number): void {
    this.#number(id, frameTypes.windowUpdate, bytes);
  }

  goAway(lastId: number, code: ErrorCode, reason: string): void {
    this.#reserve(frameHeadBytes + 8 + reason.length);
    this.#head(8 + reason.length, frameTypes.goAway, 0, 0);
    this.#at = this.#slab.writeUInt32BE(lastId, this.#at);
    this.#at = this.#slab.writeUInt32BE(code, this.#at);
    this.#at += this.#slab.latin1Write(reason, this.#at);
  }

  #number(id: number, type: number, value: number): void {
    this.#reserve(frameHeadBytes + 4);
    this.#head(4, type, 0, id);
    this.#at = this.#slab.writeUInt32BE(value, this.#at);
  }

  #head(length: number, type: number, flagBits: number, id: number): void {
    const slab = this.#slab;
    const at = this.#at;
    slab[at] = length >> 16;
    slab[at + 1] = length >> 8;
    slab[at + 2] = length;
    slab[at + 3] = type;
    slab[at + 4] = flagBits;
    slab[at + 5] = id >> 24;
    slab[at + 6] = id >> 16;
    slab[at + 7] = id >> 8;
    slab[at + 8] = id;
    this.#at = at + frameHeadBytes;
  }

  #reserve(bytes: number): void {
    if (this.#slab.length - this.#at >= bytes) return;
    this.flush();
    this.#slab = Buffer.allocUnsafeSlow(Math.max(this.#slabBytes, bytes));
    this.#slabBytes = Math.min(slabBytesMax, 2 * this.#slabBytes);
    this.#at = 0;
    this.#from = 0;
  }
}
