/**
 * Cuts what a server of NATS sends into pieces of whole messages, without understanding more of it than where a message
 * ends. The client's parser puts a message that comes in many reads into a buffer that it makes anew, twice as large and
 * full of zeros, whenever that is full: of a message of 1 MiB, 3.6 MiB. In one piece it takes it as it is.
 *
 *     MSG <subject> <sid> [reply] <bytes>\r\n <payload> \r\n
 *     HMSG <subject> <sid> [reply] <bytes of headers> <bytes>\r\n <headers, payload> \r\n
 *     INFO …\r\n    PING\r\n    PONG\r\n    +OK\r\n    -ERR …\r\n
 *
 * Invariants:
 * - The pieces together are the bytes that came, in their order, and each ends where a line or a message does.
 * - Of a message that comes in many reads, what is read to `room` is not copied.
 * - What has come of a line or a message, and nothing else, is kept.
 */

/** Bytes of one read while no message is under way. */
const readBytes = 64 * 1024;
/** A larger message is not of a server that keeps its word: what comes of it goes on as it comes. */
const messageBytesMax = 64 * 1024 * 1024;
/** A longer line goes on as it comes, likewise. */
const lineBytesMax = 1024 * 1024;
const lineFeed = 10;

export class WholeMessages {
  readonly #take: (piece: Buffer) => void;
  readonly #scratch = Buffer.allocUnsafeSlow(readBytes);
  /** The message that is under way, as long as it will be; null: none is. */
  #message: Buffer | null = null;
  #filled = 0;
  /** A line that has no end yet. */
  #line: Buffer = Buffer.alloc(0);

  /** @param take called with each piece, which it owns */
  constructor(take: (piece: Buffer) => void) {
    this.#take = take;
  }

  /** Where the next bytes may be read to; never empty. What was read is told by `filled`. */
  get room(): Buffer {
    return this.#message?.subarray(this.#filled) ?? this.#scratch;
  }

  /** The first `count` bytes of `room` have come. */
  filled(count: number): void {
    if (this.#message === null) this.add(this.#scratch.subarray(0, count));
    else this.#grow(this.#message, count);
  }

  /** Bytes that have come elsewhere. They are copied. */
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

  /** Passes on what is whole, and begins the message that is not. @returns what belongs to that */
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

/** The message whose line is `[start, end)`; null: it is none. */
function messageIn(bytes: Buffer, start: number, end: number) {
  const words = bytes.toString("latin1", start, end).trim().split(/\s+/);
  const operation = words[0]?.toUpperCase();
  if (operation !== "MSG" && operation !== "HMSG") return null;
  const count = Number(words.at(-1));
  const headerBytes = operation === "MSG" ? 0 : Number(words.at(-2));
  const isSized = count >= headerBytes && headerBytes >= 0 && count <= messageBytesMax;
  return isSized ? { bytes: count, headerBytes } : null;
}

/** `length` bytes, of which the one at `at` has an address that is a multiple of 8: V8 copies words from there, not bytes. */
function alignedBuffer(length: number, at: number): Buffer {
  const room = Buffer.allocUnsafe(length + 7);
  const from = (8 - ((room.byteOffset + at) % 8)) % 8;
  return room.subarray(from, from + length);
}
