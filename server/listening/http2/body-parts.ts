/**
 * Of the body of a request, what has come and nobody has read. A peer may send a body in frames of one byte: its pieces
 * are gathered, so that they take no more memory than what the peer's flow-control window allows.
 *
 * Invariants:
 * - What is held takes a small multiple of its bytes, whatever the sizes of the frames, and of the chunks of the socket.
 * - Adding and taking are constant time, but for copying.
 */

/** Bytes up to which a piece is copied, and of the memory to which it is. */
const pieceBytesMax = 1024;
const slabBytes = 4 * 1024;
/** A piece that is a smaller share of its chunk than this is copied, since it would keep the whole chunk. */
const chunkShare = 4;

export class BodyParts {
  /** Bytes held. */
  bytes = 0;
  #parts: Buffer[] = [];
  /** The first part that was not taken. */
  #first = 0;
  /** Where copies go, and which of them are the last part, not among `#parts` yet. */
  #slab: Buffer | undefined;
  #start = 0;
  #end = 0;

  /** `chunkBytes`: of the memory that it is a part of; 0: no others will follow. */
  add(bytes: Buffer, chunkBytes: number): void {
    this.bytes += bytes.length;
    const isLone = chunkBytes === 0 && this.bytes === bytes.length;
    if (isLone || (bytes.length > pieceBytesMax && bytes.length * chunkShare >= chunkBytes)) {
      this.#seal();
      this.#parts.push(bytes);
    } else if (bytes.length > pieceBytesMax) {
      this.#seal();
      this.#parts.push(Buffer.from(bytes));
    } else this.#copy(bytes);
  }

  /** The first part; undefined: nothing is held. */
  take(): Buffer | undefined {
    if (this.#first === this.#parts.length) this.#seal();
    const part = this.#parts[this.#first];
    if (part === undefined) return undefined;
    this.#parts[this.#first] = none;
    if (++this.#first === this.#parts.length) {
      this.#parts = [];
      this.#first = 0;
    }
    this.bytes -= part.length;
    return part;
  }

  /** All parts as one. */
  takeAll(): Buffer {
    const first = this.take() ?? none;
    if (this.bytes === 0) return first;
    this.#seal();
    const whole = Buffer.concat([first, ...this.#parts.slice(this.#first)]);
    this.#parts = [];
    this.#first = 0;
    this.bytes = 0;
    return whole;
  }

  #copy(bytes: Buffer): void {
    if (this.#slab === undefined || this.#slab.length - this.#end < bytes.length) {
      this.#seal();
      this.#slab = Buffer.allocUnsafeSlow(slabBytes);
      this.#start = 0;
      this.#end = 0;
    }
    this.#slab.set(bytes, this.#end);
    this.#end += bytes.length;
  }

  /** What was copied becomes a part. */
  #seal(): void {
    if (this.#slab === undefined || this.#start === this.#end) return;
    this.#parts.push(this.#slab.subarray(this.#start, this.#end));
    this.#start = this.#end;
  }
}

const none = Buffer.alloc(0);
