/**
 * Splits the data received from a NATS server into buffers of complete messages, and parses only the message boundaries.
 * The client's parser collects a message that arrives in many reads in a buffer that it reallocates at twice the size,
 * filled with zeros, whenever it is full: 3.6 MiB for a message of 1 MiB. A complete message is not copied.
 *
 *     MSG <subject> <sid> [reply] <bytes>\r\n <payload> \r\n
 *     HMSG <subject> <sid> [reply] <bytes of headers> <bytes>\r\n <headers, payload> \r\n
 *     INFO …\r\n    PING\r\n    PONG\r\n    +OK\r\n    -ERR …\r\n
 *
 * Invariants:
 * - The buffers contain the received bytes in order, and each ends at the end of a line or a message.
 * - A message received in many reads to `room` is not copied.
 * - Only an incomplete line or message is retained.
 */

/** Size of a read while no message is incomplete, in bytes. */
const readBytes = 64 * 1024;
/** Maximum message size, in bytes. A larger message violates the protocol, and is forwarded as received. */
const messageBytesMax = 64 * 1024 * 1024;
/** Maximum line length, in bytes. A longer line is forwarded as received. */
const lineBytesMax = 1024 * 1024;
const lineFeed = 10;

export class MessageAssembler {
  readonly #take: (piece: Buffer) => void;
  readonly #scratch = Buffer.allocUnsafeSlow(readBytes);
  /** The incomplete message, allocated at its final length, or null. */
  #message: Buffer | null = null;
  #filled = 0;
  /** The incomplete line. */
  #line: Buffer = Buffer.alloc(0);

  /** @param take called with each buffer, which it then owns */
  constructor(take: (piece: Buffer) => void) {
    this.#take = take;
  }

  /** Buffer for the next read; never empty. The caller reports the number of bytes to `filled`. */
  get room(): Buffer {
    return this.#message?.subarray(this.#filled) ?? this.#scratch;
  }

  /** Reports that the first `count` bytes of `room` were filled. */
  filled(count: number): void {
    if (this.#message === null) this.add(this.#scratch.subarray(0, count));
    else this.#grow(this.#message, count);
  }

  /** Adds bytes that were received in another buffer. They are copied. */
  add(bytes: Buffer): void {
    let rest = bytes;
    while (rest.length > 0) {
      if (this.#message === null) {
        rest = this.#cut(rest);
        continue;
      }
      const count = rest.copy(this.#message, this.#filled);
      rest = rest.subarray(count);
      this.#grow(this.#message, count);
    }
  }

  #grow(message: Buffer, count: number): void {
    this.#filled += count;
    if (this.#filled < message.length) return;
    this.#message = null;
    this.#filled = 0;
    this.#take(message);
  }

  /** Emits complete messages, and starts an incomplete one. @returns the bytes of that */
  #cut(read: Buffer): Buffer {
    const bytes = this.#line.length === 0 ? read : Buffer.concat([this.#line, read]);
    this.#line = Buffer.alloc(0);
    let at = 0;
    for (;;) {
      const end = bytes.indexOf(lineFeed, at) + 1;
      if (end === 0) break;
      const message = messageIn(bytes, at, end);
      const next = message === null ? end : end + message.bytes + 2;
      if (message !== null && next > bytes.length) {
        this.#pass(bytes.subarray(0, at));
        this.#message = alignedBuffer(next - at, end - at + message.headerBytes);
        return bytes.subarray(at);
      }
      at = next;
    }
    if (bytes.length - at > lineBytesMax) at = bytes.length;
    this.#pass(bytes.subarray(0, at));
    this.#line = Buffer.from(bytes.subarray(at));
    return bytes.subarray(bytes.length);
  }

  #pass(bytes: Buffer): void {
    if (bytes.length > 0) this.#take(Buffer.from(bytes));
  }
}

/** Parses the message whose line is `[start, end)`. Returns null if it is not a message. */
function messageIn(bytes: Buffer, start: number, end: number) {
  const words = bytes.toString("latin1", start, end).trim().split(/\s+/);
  const operation = words[0]?.toUpperCase();
  if (operation !== "MSG" && operation !== "HMSG") return null;
  const count = Number(words.at(-1));
  const headerBytes = operation === "MSG" ? 0 : Number(words.at(-2));
  const isSized = count >= headerBytes && headerBytes >= 0 && count <= messageBytesMax;
  return isSized ? { bytes: count, headerBytes } : null;
}

/** Allocates `length` bytes whose byte at `at` has an address divisible by 8, so that V8 copies words instead of bytes. */
function alignedBuffer(length: number, at: number): Buffer {
  const room = Buffer.allocUnsafe(length + 7);
  const from = (8 - ((room.byteOffset + at) % 8)) % 8;
  return room.subarray(from, from + length);
}
