/**
 * Watches what a session of HTTP/2 makes the server do beside answering: frames that cost their sender nothing. Node's own
 * limits end floods of pings, settings, empty data and endless headers; here are those that it lets pass.
 *
 * Knows of frames only what Node tells: priorities, streams that are cut off, and how many bytes came and went. So window updates
 * and frames of no known kind are seen as bytes that came for nothing.
 *
 * Invariants:
 * - A session that only asks, answers and transfers is never ended here, however fast.
 */
import { constants, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Connection } from "./connection.ts";

/** Streams that a client may cut off at once, and how many more after each look. Node's limit is a little higher. */
const resetsMax = 900;
const resetsForgotten = 16;
/** Priorities beside those of streams, and for each of them. */
const prioritiesMax = 1_000;
const prioritiesPerStream = 10;
/** Bytes that may come between two looks without an upload: as many, for each stream, and a part of what was sent (its window updates). */
const idleBytesMax = 64 * 1024;
const streamBytesMax = 64 * 1024;
const bytesSentPerByte = 100;
/** Bytes of an upload that was refused may be on their way still: what the windows allow. */
const lateBytesMax = 8 * 1024 * 1024;

export class SessionWatch {
  readonly #session: ServerHttp2Session;
  readonly #connection: Connection;
  #streams = 0;
  #resets = 0;
  #priorities = 0;
  /** Was a stream with a body open at the last look, or has one begun since? */
  #mayUpload = false;
  #lateBytes = 0;
  #streamsSeen = 0;
  #bytesReadSeen = 0;
  #bytesWrittenSeen = 0;
  readonly #onAborted: () => void;

  constructor(session: ServerHttp2Session, connection: Connection) {
    this.#session = session;
    this.#connection = connection;
    this.#onAborted = () => {
      if (++this.#resets > resetsMax) this.#end();
    };
    // The types know it of streams alone; of those that are not there yet the session tells.
    (session as NodeJS.EventEmitter).on("priority", () => {
      if (++this.#priorities > prioritiesMax + prioritiesPerStream * this.#streams) this.#end();
    });
  }

  /** Hot. */
  add(stream: ServerHttp2Stream): void {
    this.#streams++;
    if (!stream.endAfterHeaders) this.#mayUpload = true;
    // Those whose end came in the same packet were cut off before anybody could listen.
    if (stream.aborted) this.#onAborted();
    else stream.on("aborted", this.#onAborted);
  }

  /** To be called a few times a second. */
  look(): void {
    this.#resets = Math.max(0, this.#resets - resetsForgotten);
    const { socket } = this.#session;
    if (socket === undefined || this.#session.destroyed) return;
    const { bytesRead, bytesWritten } = socket;
    const allowed =
      idleBytesMax +
      streamBytesMax * (this.#streams - this.#streamsSeen) +
      (bytesWritten - this.#bytesWrittenSeen) / bytesSentPerByte;
    const surplus = bytesRead - this.#bytesReadSeen - allowed;
    this.#streamsSeen = this.#streams;
    this.#bytesReadSeen = bytesRead;
    this.#bytesWrittenSeen = bytesWritten;
    const mightUpload = this.#mayUpload;
    this.#mayUpload = this.#isUploadOpen();
    if (mightUpload || this.#mayUpload) this.#lateBytes = lateBytesMax;
    else if (surplus > 0) {
      this.#lateBytes -= surplus;
      if (this.#lateBytes < 0) this.#end();
    }
  }

  #isUploadOpen(): boolean {
    for (const exchange of this.#connection.open) if (exchange.hasBody) return true;
    return false;
  }

  #end(): void {
    if (!this.#session.destroyed)
      this.#session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }
}
