/** Composes JSON text in one growing buffer: bytes of values that exist, and the text between them. */

/** Texts begin in sections of one buffer: a buffer of its own costs a microsecond or two. */
const sharedBytes = 64 * 1024;
const pieceBytesMax = 8 * 1024;
let shared = Buffer.allocUnsafeSlow(sharedBytes);
let sharedAt = 0;

/** Returns bytes for exclusive use. */
function newBytes(length: number): Buffer {
  if (length > pieceBytesMax) return Buffer.allocUnsafe(length);
  if (sharedAt + length > sharedBytes) {
    shared = Buffer.allocUnsafeSlow(sharedBytes);
    sharedAt = 0;
  }
  const bytes = shared.subarray(sharedAt, sharedAt + length);
  sharedAt += length;
  return bytes;
}

/** Texts for use again, and the bytes of each. */
const spares: JsonText[] = [];
const sparesMax = 4;
const spareBytes = 8 * 1024;
const spareBytesMax = 64 * 1024;

/** Acquires an empty text, to be released by the caller: each query uses one or two. */
export function acquireText(): JsonText {
  return spares.pop() ?? new JsonText(spareBytes);
}

/** Releases a text whose bytes are no longer read. */
export function releaseText(text: JsonText): void {
  if (spares.length === sparesMax || text.capacity > spareBytesMax) return;
  text.clear();
  spares.push(text);
}

export class JsonText {
  #bytes: Buffer;
  #length = 0;

  /** `expectedBytes`: estimated length of the text. */
  constructor(expectedBytes = 1024) {
    this.#bytes = newBytes(expectedBytes);
  }

  /** Bytes so far. */
  get length(): number {
    return this.#length;
  }

  /** Current capacity, in bytes. */
  get capacity(): number {
    return this.#bytes.length;
  }

  /** The text; valid until more is added. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Returns the text from a position on, as `bytes`. */
  from(start: number): Buffer {
    return this.#bytes.subarray(start, this.#length);
  }

  /** Starts a new text in the place of this one. */
  clear(): void {
    this.#length = 0;
  }

  /** Returns the text and starts a new one. */
  take(): Buffer {
    const taken = this.bytes;
    this.#bytes = newBytes(1024);
    this.#length = 0;
    return taken;
  }

  addText(text: string): this {
    const at = this.#length;
    const written = this.reserve(text.length * 3).utf8Write(text, at);
    this.#length = at + written;
    return this;
  }

  addBytes(bytes: Uint8Array, start = 0, end = bytes.length): this {
    const at = this.#length;
    const target = this.reserve(end - start);
    target.set(start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end), at);
    this.#length = at + end - start;
    return this;
  }

  /** A string as JSON, with its quotes. */
  addString(text: string): this {
    return this.addText(JSON.stringify(text));
  }

  /** Makes room for `count` more bytes, from `length` on. @returns the buffer to write them to; then `advance`. */
  reserve(count: number): Buffer {
    const needed = this.#length + count;
    if (needed > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2));
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    return this.#bytes;
  }

  /** Adds the `count` bytes that were written after `reserve`. */
  advance(count: number): void {
    this.#length += count;
  }
}
