/** Composes JSON text in one growing buffer: bytes of values that exist, and the text between them. */

export class JsonText {
  #bytes: Buffer;
  #length = 0;

  /** `expectedBytes`: estimated length of the text. */
  constructor(expectedBytes = 1024) {
    this.#bytes = Buffer.allocUnsafe(expectedBytes);
  }

  /** Bytes so far. */
  get length(): number {
    return this.#length;
  }

  /** The text; valid until more is added. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Returns the text and starts a new one. */
  take(): Buffer {
    const taken = this.bytes;
    this.#bytes = Buffer.allocUnsafe(1024);
    this.#length = 0;
    return taken;
  }

  addText(text: string): this {
    const at = this.#length;
    const written = this.reserve(text.length * 3).write(text, at);
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
