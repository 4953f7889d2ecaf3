/**
 * Reads concatenated JSON objects from a socket, without lengths or separators between them; white space is skipped.
 *
 * Invariants:
 * - A message never exceeds `messageBytesMax`, and at most `messagesMax` messages are buffered.
 */
import type { Socket } from "node:net";
import { EngineError } from "../../engine/base/errors.ts";
import { type JsonObject, parseObject } from "../http/json-body.ts";

/** Maximum size of one message, in bytes. Clients send a header, options, and acknowledgments: a few hundred. */
const messageBytesMax = 64 * 1024;
/** Maximum number of unread messages: a client sends one and then waits for the reply. */
const messagesMax = 16;

const byteOpen = 0x7b;
const byteClose = 0x7d;
const byteQuote = 0x22;
const byteBackslash = 0x5c;

export class MessageReader {
  readonly #socket: Socket;
  #partial: Buffer = Buffer.alloc(0);
  /** Nesting depth at the end of `#partial`. */
  #depth = 0;
  #isInText = false;
  #isEscaped = false;
  readonly #ready: Buffer[] = [];
  #failure: Error | null = null;
  #hasEnded = false;
  #waiting: (() => void) | null = null;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
    const end = () => {
      this.#hasEnded = true;
      this.#wake();
    };
    socket.on("end", end);
    socket.on("close", end);
  }

  /**
   * Resolves to the next message, or null at the end of the stream. One call at a time.
   * @throws EngineError json-invalid, json-truncated, json-not-object, json-escape, too-large; nothing can be read
   * after that
   */
  async next(): Promise<JsonObject | null> {
    for (;;) {
      const message = this.#ready.shift();
      if (message !== undefined) return parseObject(message);
      if (this.#failure !== null) throw this.#failure;
      if (this.#hasEnded) return null;
      await new Promise<void>((resolve) => {
        this.#waiting = resolve;
      });
    }
  }

  #wake(): void {
    this.#waiting?.();
    this.#waiting = null;
  }

  #fail(failure: EngineError): void {
    this.#failure = failure;
    this.#partial = Buffer.alloc(0);
    this.#socket.pause();
    this.#wake();
  }

  /** Splits the input at the end of each object. */
  #take(chunk: Buffer): void {
    if (this.#failure !== null) return;
    const known = this.#partial.length;
    const bytes = known === 0 ? chunk : Buffer.concat([this.#partial, chunk]);
    let start = 0;
    for (let at = known; at < bytes.length; at++) {
      const byte = bytes[at] as number; // at < length
      if (this.#depth === 0) {
        if (byte === byteOpen) start = at;
        else if (isSpace(byte)) continue;
        else {
          this.#fail(notAnObject(bytes, at));
          return;
        }
      }
      if (!this.#closes(byte)) continue;
      this.#ready.push(Buffer.from(bytes.subarray(start, at + 1)));
      start = at + 1;
    }
    this.#partial = this.#depth === 0 ? Buffer.alloc(0) : Buffer.from(bytes.subarray(start));
    if (this.#partial.length > messageBytesMax || this.#ready.length > messagesMax) {
      this.#fail(
        new EngineError(
          "too-large",
          `A message may have at most ${messageBytesMax} bytes, and at most ${messagesMax} may be pending.`,
        ),
      );
      return;
    }
    this.#wake();
  }

  /** Returns whether this byte ends an object. */
  #closes(byte: number): boolean {
    if (this.#isInText) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (byte === byteBackslash) this.#isEscaped = true;
      else if (byte === byteQuote) this.#isInText = false;
      return false;
    }
    if (byte === byteQuote) this.#isInText = true;
    else if (byte === byteOpen) this.#depth++;
    else if (byte === byteClose) return --this.#depth === 0;
    return false;
  }
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || (byte >= 0x09 && byte <= 0x0d);
}

function notAnObject(bytes: Buffer, at: number): EngineError {
  const shown = bytes.toString("latin1", at, at + 32).replace(/[^\x20-\x7e]/g, "?");
  return new EngineError(
    bytes[at] === 0x5b ? "json-not-object" : "json-invalid",
    `A message must be a JSON object, but it begins with '${shown}'`,
  );
}
