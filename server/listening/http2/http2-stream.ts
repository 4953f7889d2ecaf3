/**
 * A stream of an HTTP/2 connection: one request and its reply (RFC 9113, 5).
 *
 * Invariants:
 * - Nothing is sent on it once it is closed; it is closed once.
 * - All that its peer has sent is given back to the flow-control windows: when it is read, or when the stream is closed.
 */
import type { Duplex } from "node:stream";
import { BodyParts } from "./body-parts.ts";
import { type ErrorCode, errorCodes, frameBytesMax, windowMax } from "./frames.ts";
import type { RequestHead } from "./request-head.ts";
import { type BodyHost, StreamBody } from "./stream-body.ts";

/** A connection, as its streams use it. */
export interface StreamHost {
  /** Bytes of bodies that the peer takes on all streams together. */
  readonly sendWindow: number;
  /** Must what is not urgent wait, because the peer does not read? */
  readonly isHeld: boolean;
  sendHead(stream: Http2Stream, status: number, fields: readonly string[], isEnd: boolean): void;
  sendData(stream: Http2Stream, bytes: Buffer, start: number, end: number, isEnd: boolean): void;
  /** The stream has something to send, and is called with `sendSome` when it may. */
  awaitTurn(stream: Http2Stream): void;
  /** `bytes` more wait on a stream to be sent; negative: less. */
  countWaiting(bytes: number): void;
  /** `bytes` of the peer's windows are free again. */
  giveBack(stream: Http2Stream, bytes: number): void;
  /** The reply has ended; the request may not have. */
  replyEnded(stream: Http2Stream): void;
  /** Resets the stream at the will of this side. */
  resetBy(stream: Http2Stream, code: ErrorCode): void;
}

interface Part {
  readonly bytes: Buffer;
  sent: number;
  readonly isEnd: boolean;
  readonly done: (() => void) | undefined;
}

export class Http2Stream implements BodyHost {
  readonly id: number;
  readonly head: RequestHead;
  /** Did anything follow the head? */
  readonly hasBody: boolean;
  /** Bytes that the peer takes on this stream; negative after it has made its windows smaller. */
  sendWindow: number;
  /** Bytes that the peer may send on this stream. */
  receiveWindow: number;
  /** Bytes that were read of the body and not told to the peer. */
  readBytes: number;
  isRequestEnded: boolean;
  /** Of a tunnel: has this side ended, while the other has not? */
  isReplyEnded: boolean;
  isClosed: boolean;
  readonly #host: StreamHost;
  /** Of the body, what nobody has read; undefined: nothing has come. */
  #unread: BodyParts | undefined;
  #receivedBytes: number;
  #reader: StreamBody | undefined;
  #isReaderHungry: boolean;
  #writer: StreamBody | undefined;
  #parts: Part[] | undefined;
  #isHeadSent: boolean;
  #closers: (() => void)[] | undefined;
  /** The part that waited when it was looked last, how much of it had been sent, and since when that was so. */
  #stuck: { readonly part: Part; readonly sent: number; readonly sinceMs: number } | undefined;

  constructor(
    host: StreamHost,
    id: number,
    head: RequestHead,
    hasBody: boolean,
    sendWindow: number,
    receiveWindow: number,
  ) {
    this.#host = host;
    this.id = id;
    this.head = head;
    this.hasBody = hasBody;
    this.sendWindow = sendWindow;
    this.receiveWindow = receiveWindow;
    this.readBytes = 0;
    this.isRequestEnded = !hasBody;
    this.isReplyEnded = false;
    this.isClosed = false;
    this.#unread = undefined;
    this.#receivedBytes = 0;
    this.#reader = undefined;
    this.#isReaderHungry = false;
    this.#writer = undefined;
    this.#parts = undefined;
    this.#isHeadSent = false;
    this.#closers = undefined;
    this.#stuck = undefined;
  }

  // --- For who answers the request.

  get isHeadSent(): boolean {
    return this.#isHeadSent;
  }

  /** Has all that was to be sent been composed, so that nothing reads its bytes any more? */
  get isReplyTaken(): boolean {
    return this.#isHeadSent && this.#parts === undefined;
  }

  /** Bytes of the body that have come and that nobody has read. */
  get unreadBytes(): number {
    return this.#unread?.bytes ?? 0;
  }

  /** The body, if it has come whole and nobody has begun to read it; it then counts as read. */
  takeWholeBody(): Buffer | undefined {
    if (!this.isRequestEnded || this.#reader !== undefined || this.isClosed) return undefined;
    const body = this.#unread?.takeAll() ?? nothing;
    this.#host.giveBack(this, body.length);
    return body;
  }

  /** The body as it comes. */
  body(): StreamBody {
    this.#reader ??= this.#bodyOf({ readable: true, writable: false });
    return this.#reader;
  }

  /** Sends the whole reply. `fields`: names and values in turn. @throws TypeError for what no header can hold */
  respond(status: number, fields: readonly string[], body: Buffer | undefined): void {
    if (this.isClosed || this.#isHeadSent) return;
    const isEnd = body === undefined || body.length === 0;
    this.#host.sendHead(this, status, fields, isEnd);
    this.#isHeadSent = true;
    if (isEnd) this.#host.replyEnded(this);
    else this.#send(body, true, undefined);
  }

  /** Sends the head of a reply whose body is written to the result. @throws TypeError as `respond` */
  open(status: number, fields: readonly string[]): StreamBody {
    this.#writer = this.#bodyOf({ readable: false, writable: true });
    this.sendHead(status, fields);
    return this.#writer;
  }

  /** The stream as a tunnel, as which it is used once `sendHead` has accepted it (RFC 9113, 8.5). */
  tunnel(): Duplex {
    const both = this.#bodyOf({ readable: true, writable: true });
    this.#reader = both;
    this.#writer = both;
    return both;
  }

  /** @throws TypeError as `respond` */
  sendHead(status: number, fields: readonly string[]): void {
    if (this.isClosed || this.#isHeadSent) return;
    this.#host.sendHead(this, status, fields, false);
    this.#isHeadSent = true;
  }

  /** Ends the stream without a complete reply. */
  reset(code: ErrorCode): void {
    if (!this.isClosed) this.#host.resetBy(this, code);
  }

  /** Calls `onClose` once when the stream has ended, for whatever reason. */
  whenClosed(onClose: () => void): void {
    if (this.isClosed) onClose();
    else if (this.#closers === undefined) this.#closers = [onClose];
    else this.#closers.push(onClose);
  }

  // --- For its bodies.

  giveBody(): void {
    this.#isReaderHungry = true;
    while (this.#isReaderHungry) {
      const chunk = this.#unread?.take();
      if (chunk === undefined) break;
      this.#isReaderHungry = this.#reader?.push(chunk) ?? false;
      this.#host.giveBack(this, chunk.length);
    }
    if (this.unreadBytes === 0 && this.isRequestEnded) this.#endReader();
  }

  sendPart(bytes: Buffer, isEnd: boolean, done: () => void): void {
    if (!this.isClosed) this.#send(bytes, isEnd, done);
  }

  abandon(body: StreamBody): void {
    if (!this.isClosed && body === this.#writer) this.#host.resetBy(this, errorCodes.internal);
  }

  // --- For its connection.

  /** Is it a tunnel, whose sides end one by one? */
  get isTunnel(): boolean {
    return this.#writer !== undefined && this.#writer === this.#reader;
  }

  /** Takes a part of the body, of a chunk of `chunkBytes`. @returns false if it is not as long as was declared */
  receive(bytes: Buffer, isEnd: boolean, chunkBytes: number): boolean {
    this.#receivedBytes += bytes.length;
    const { length } = this.head;
    if (
      length !== undefined &&
      (isEnd ? this.#receivedBytes !== length : this.#receivedBytes > length)
    ) {
      return false;
    }
    if (bytes.length > 0) {
      this.#unread ??= new BodyParts();
      this.#unread.add(bytes, isEnd ? 0 : chunkBytes);
    }
    this.isRequestEnded = isEnd;
    return true;
  }

  /** Is somebody to be told of what has come? */
  get isReaderWaiting(): boolean {
    return this.#isReaderHungry || (this.isRequestEnded && this.#reader !== undefined);
  }

  /** Gives the reader what has come, if it takes it. */
  feedReader(): void {
    if (this.isClosed || !this.isReaderWaiting) return;
    if (this.#isReaderHungry) this.giveBody();
    else if (this.unreadBytes === 0) this.#endReader();
  }

  /** Resets the stream if its peer has taken nothing of a reply for `stallMs`, though only this stream's window was in the way. */
  look(nowMs: number, stallMs: number): void {
    const part = this.maySend ? undefined : this.#parts?.[0];
    if (part === undefined) this.#stuck = undefined;
    else if (this.#stuck?.part !== part || this.#stuck.sent !== part.sent) {
      this.#stuck = { part, sent: part.sent, sinceMs: nowMs };
    } else if (nowMs - this.#stuck.sinceMs > stallMs) this.reset(errorCodes.cancel);
  }

  /** Does it have something to send that its own window allows? */
  get maySend(): boolean {
    const part = this.#parts?.[0];
    return part !== undefined && (this.sendWindow > 0 || part.bytes.length === part.sent);
  }

  /** Is the end all that waits to be sent, which no window holds up? */
  get hasOnlyItsEnd(): boolean {
    const part = this.#parts?.[0];
    return part !== undefined && part.bytes.length === part.sent;
  }

  /** Sends one frame of what waits. */
  sendSome(): void {
    const part = this.#parts?.[0];
    if (part === undefined) return;
    const { bytes, sent } = part;
    const room = Math.min(frameBytesMax, this.sendWindow, this.#host.sendWindow);
    const end = Math.min(bytes.length, sent + Math.max(0, room));
    if (end === sent && end < bytes.length) return;
    part.sent = end;
    this.#host.countWaiting(sent - end);
    const isWhole = end === bytes.length;
    this.#host.sendData(this, bytes, sent, end, isWhole && part.isEnd);
    if (!isWhole) return;
    if (this.#parts?.length === 1) this.#parts = undefined;
    else this.#parts?.shift();
    part.done?.();
    if (part.isEnd) this.#host.replyEnded(this);
  }

  /** The peer takes more. @returns false if that is more than any window has */
  widen(bytes: number): boolean {
    this.sendWindow += bytes;
    return this.sendWindow <= windowMax;
  }

  /** Nothing more is sent or received. Called by its connection, once. */
  close(): void {
    this.isClosed = true;
    for (const part of this.#parts ?? []) this.#host.countWaiting(part.sent - part.bytes.length);
    this.#parts = undefined;
    const bytes = this.unreadBytes;
    this.#unread = undefined;
    if (bytes > 0) this.#host.giveBack(this, bytes);
    if (this.#reader?.readableEnded === false) this.#reader.destroy();
    if (this.#writer?.writableFinished === false) this.#destroyUnlessDone(this.#writer);
    const closers = this.#closers;
    this.#closers = undefined;
    if (closers !== undefined) for (const close of closers) close();
  }

  /** The last part may have been sent in this very turn: the writer then ends by itself. */
  #destroyUnlessDone(writer: StreamBody): void {
    process.nextTick(() => {
      if (!writer.writableFinished) writer.destroy();
    });
  }

  #endReader(): void {
    this.#isReaderHungry = false;
    this.#reader?.push(null);
  }

  #bodyOf(sides: { readonly readable: boolean; readonly writable: boolean }): StreamBody {
    const body = new StreamBody(this, sides);
    body.on("error", ignore); // the client has disconnected
    if (this.isClosed) body.destroy();
    return body;
  }

  #send(bytes: Buffer, isEnd: boolean, done: (() => void) | undefined): void {
    const host = this.#host;
    const { length } = bytes;
    if (
      this.#parts !== undefined ||
      host.isHeld ||
      length > this.sendWindow ||
      length > host.sendWindow
    ) {
      const part = { bytes, sent: 0, isEnd, done };
      if (this.#parts === undefined) this.#parts = [part];
      else this.#parts.push(part);
      host.countWaiting(length);
      host.awaitTurn(this);
      return;
    }
    let start = 0;
    do {
      const end = Math.min(length, start + frameBytesMax);
      host.sendData(this, bytes, start, end, isEnd && end === length);
      start = end;
    } while (start < length);
    done?.();
    if (isEnd) host.replyEnded(this);
  }
}

const nothing = Buffer.alloc(0);

function ignore(): void {
  // Nothing to do.
}
