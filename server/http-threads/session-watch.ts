/**
 * Detects abuse of an HTTP/2 session: frames that cost their sender nothing. Node's own limits stop floods of pings,
 * empty data and endless headers; these limits cover what it lets pass.
 *
 * Node reports only settings, priorities, data, aborted streams, and the bytes read and written. So window updates and
 * frames of unknown types appear here as bytes without a purpose.
 *
 * Invariants:
 * - A session that only requests, replies and transfers is never ended here, however fast, unless it sends bodies byte by byte.
 */
import { constants, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Readable } from "node:stream";

/**
 * Streams that a client may abort in a burst, and how many more after each check. A client that aborts everything it has
 * open aborts as many as the settings permit, 100. With 900, sixteen clients delayed others by a second, with 200 by 0.3.
 */
const resetsMax = 200;
const resetsForgotten = 16;
/** Priority frames allowed per session, plus those for each stream. */
const prioritiesMax = 1_000;
const prioritiesPerStream = 10;
/** Changes of settings allowed between two checks: each changes the window of every open stream. */
const settingsMax = 64;
/**
 * Frames of data in one tick of the event loop, whose average length is less than `smallBytes`. A client that sends each
 * token of a JSON text by itself has longer ones, about 4 bytes; it is as expensive, but it may be honest.
 */
const smallFramesMax = 2_000;
const smallBytes = 3;
/**
 * Bytes allowed between two checks without an upload: a fixed part, one per stream, and a share of the bytes sent
 * (window updates).
 */
const idleBytesMax = 64 * 1024;
const streamBytesMax = 64 * 1024;
const bytesSentPerByte = 100;
/** Bytes of a refused upload that may still be in transit: the flow-control window. */
const lateBytesMax = 8 * 1024 * 1024;

export class SessionWatch {
  readonly #session: ServerHttp2Session;
  #streams = 0;
  #resets = 0;
  #priorities = 0;
  #settings = 0;
  /** Frames of data in the current tick, and their bytes. */
  #dataFrames = 0;
  #dataBytes = 0;
  /** Was an upload open at the last check, or has one begun since? */
  #mayUpload = false;
  #lateBytes = 0;
  #streamsSeen = 0;
  #bytesReadSeen = 0;
  #bytesWrittenSeen = 0;

  constructor(session: ServerHttp2Session) {
    this.#session = session;
    // The types have this event on streams only; for streams that do not exist yet, the session emits it.
    (session as NodeJS.EventEmitter).on("priority", () => {
      if (++this.#priorities > prioritiesMax + prioritiesPerStream * this.#streams) this.#end();
    });
    session.on("remoteSettings", () => {
      if (++this.#settings > settingsMax) this.#end();
    });
  }

  /** A stream has opened. Hot. */
  began(stream: ServerHttp2Stream): void {
    this.#streams++;
    if (stream.endAfterHeaders) return;
    this.#mayUpload = true;
    // Frames must be counted as they arrive: one read of the socket may have six thousand of them. Those read together
    // with the head of the request are in the stream already.
    const { push } = stream;
    stream.push = (chunk: Buffer | null) => {
      if (chunk !== null) this.#received(1, chunk.length);
      return push.call(stream, chunk);
    };
    if (stream.readableLength > 0) this.#received(chunkCountOf(stream), stream.readableLength);
  }

  /** A stream has closed. Hot. */
  ended(stream: ServerHttp2Stream): void {
    if (stream.aborted && ++this.#resets > resetsMax) this.#end();
  }

  /** To be called twice a second. `exchanges`: those that are open. */
  check(exchanges: Iterable<{ readonly hasBody: boolean }>): void {
    this.#resets = Math.max(0, this.#resets - resetsForgotten);
    this.#settings = 0;
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
    this.#mayUpload = isUploadOpen(exchanges);
    if (mightUpload || this.#mayUpload) this.#lateBytes = lateBytesMax;
    else if (surplus > 0) {
      this.#lateBytes -= surplus;
      if (this.#lateBytes < 0) this.#end();
    }
  }

  #received(frames: number, bytes: number): void {
    if (this.#dataFrames === 0) {
      setImmediate(() => {
        this.#dataFrames = 0;
        this.#dataBytes = 0;
      });
    }
    this.#dataFrames += frames;
    this.#dataBytes += bytes;
    if (this.#dataFrames > smallFramesMax && this.#dataBytes < this.#dataFrames * smallBytes) {
      this.#end();
    }
  }

  #end(): void {
    if (!this.#session.destroyed)
      this.#session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }
}

/** Chunks in the buffer of a stream, which has no public name in Node; 0 where it is missing. */
function chunkCountOf(stream: Readable): number {
  const { _readableState: state } = stream as {
    readonly _readableState?: { readonly buffer?: { readonly length: number } };
  };
  return state?.buffer?.length ?? 0;
}

function isUploadOpen(exchanges: Iterable<{ readonly hasBody: boolean }>): boolean {
  for (const exchange of exchanges) if (exchange.hasBody) return true;
  return false;
}
