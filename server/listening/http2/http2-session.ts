/**
 * A connection of HTTP/2, the server's side (RFC 9113): reads frames, keeps the streams, and sends replies under the
 * peer's flow control, a frame of each stream in turn.
 *
 * Invariants:
 * - Requests that came together begin together, and what they answer at once leaves with one write.
 * - Frames are processed in time slices (input-scheduler.ts). Between them the connection is not read.
 * - A peer that does not read is not read from: no more is held for it than its streams may have open.
 * - A peer that breaks the protocol loses a stream or the connection, as the RFC demands, and disturbs nobody else.
 */
import type { Socket } from "node:net";
import { type HeldShare, reportedBytesMin } from "../../http/held-replies.ts";
import type { InputScheduler, InputShare } from "../input-scheduler.ts";
import { FrameBudget } from "./frame-budget.ts";
import { FrameOutput } from "./frame-output.ts";
import {
  ConnectionError,
  type ErrorCode,
  errorCodes,
  firstWindowBytes,
  flags,
  frameBytesMax,
  frameHeadBytes,
  frameTypes,
  settings,
  windowMax,
} from "./frames.ts";
import { blockShare, HeaderDecoder, type HeaderLimits, tooManyHeaders } from "./header-decoder.ts";
import { HeaderEncoder } from "./header-encoder.ts";
import { Http2Stream, type StreamHost } from "./http2-stream.ts";
import { areTrailers, requestHead } from "./request-head.ts";

/** The first bytes of every connection of HTTP/2. */
export const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** Flow-control windows for bodies of requests, in bytes: of a stream, and of the connection. */
const streamWindowBytes = 1024 * 1024;
const connectionWindowBytes = 8 * 1024 * 1024;
/** Bytes on their way to a peer at which bodies wait, and nothing is read of it. */
const heldBytesMax = 128 * 1024;
/**
 * Maximum number of CONTINUATION frames in a header block, the limit of nghttp2. Blocks of any permitted size fit, if
 * their frames are full; an unlimited number of short frames exhausted the heap, since each one retains a buffer.
 */
const continuationsMax = 8;
/** Milliseconds that an idle connection has to end by itself after it was asked to close. */
const farewellMs = 1_000;
/** Milliseconds that a peer has to read a reply before the rest of its request is refused. */
const replyReadMs = 250;
/** Frames between two checks whether the time slice is used up, and bytes of a header block that count as one more. */
const framesPerCheck = 16;
const headBytesPerFrame = 512;
/** Milliseconds that a peer has to read why its connection was ended. */
const lingerMs = 1_000;

export interface Http2Limits extends HeaderLimits {
  /** Streams open at the same time. */
  readonly streamCountMax: number;
  /** Milliseconds: of a head that is not complete, of a connection without requests, of a peer that reads nothing. */
  readonly headersMs: number;
  readonly keepAliveMs: number;
  readonly stallMs: number;
}

/** Who answers the requests of a connection. */
export interface Http2Host {
  readonly limits: Http2Limits;
  readonly input: InputScheduler;
  /** Counts the replies that the peer has not read. */
  readonly held: HeldShare;
  /** Does the client have a registered certificate, or need none? */
  readonly isKnown: boolean;
  /** A request has come, its body perhaps not. */
  accept(stream: Http2Stream): void;
  /** An error of ours has ended the connection. */
  report(error: unknown): void;
}

/** A header block that is not complete. */
interface OpenBlock {
  readonly id: number;
  readonly isEnd: boolean;
  readonly isMalformed: boolean;
  readonly parts: Buffer[];
  length: number;
  readonly sinceMs: number;
}

/** A stream that was ended here before its peer ended it. */
interface EndedStream {
  /** Bytes that the peer may still send. */
  left: number;
  /** Was the peer told by a reset? Not at once where the reply was whole: some clients then throw it away. */
  isReset: boolean;
  readonly sinceMs: number;
}

export class Http2Session implements StreamHost {
  sendWindow = firstWindowBytes;
  readonly #socket: Socket;
  readonly #host: Http2Host;
  readonly #output: FrameOutput;
  readonly #encoder = new HeaderEncoder();
  readonly #decoder: HeaderDecoder;
  readonly #budget = new FrameBudget();
  readonly #streams = new Map<number, Http2Stream>();
  /** Streams that were ended here, and whose peer may not have learned it, by number. */
  readonly #ended = new Map<number, EndedStream>();
  /** Streams that have something to send, in the order of their turns. */
  readonly #ready = new Set<Http2Stream>();
  /** Requests that came with what is being read. */
  #arrived: Http2Stream[] = [];
  #block: OpenBlock | undefined;
  #unread: Buffer | undefined;
  #phase: "preface" | "settings" | "open" | "over" = "preface";
  /** The highest number of a stream that the peer has opened. */
  #lastId = 0;
  /** The highest that is served, once the peer was told; undefined: it was not. */
  #servedId: number | undefined;
  /** Is something going on that ends with sending? */
  #isInTurn = false;
  /** What the peer takes of each new stream. */
  #peerWindow = firstWindowBytes;
  #receiveWindow = connectionWindowBytes;
  /** Bytes that were read of bodies and not told to the peer. */
  #readBytes = 0;
  /** When the peer has sent something, or was worked for, last. */
  #activeMs = performance.now();
  readonly #openedMs = performance.now();
  /** Since when the frame is read that is not complete. */
  #unreadSinceMs = 0;
  /** Must bodies wait, because the peer does not read? */
  #isHeld = false;
  /** Bytes that wait on streams. */
  #waitingBytes = 0;
  readonly #input: InputShare;
  #isPaused = false;
  /** Frames until the next check whether the time slice is used up. */
  #framesToCheck = framesPerCheck;
  /** What had left when something left last, and when that was noticed. */
  #left = { bytes: 0, ms: performance.now() };
  /** Bytes of bodies that were sent, and how many those were when it was noticed last that they grew. */
  #sentBytes = 0;
  #sent = { bytes: 0, ms: performance.now() };
  /** Streams that have something for those who read their bodies, from what is being read. */
  readonly #fed = new Set<Http2Stream>();

  constructor(socket: Socket, host: Http2Host) {
    this.#socket = socket;
    this.#host = host;
    this.#output = new FrameOutput(socket);
    this.#input = host.input.shareOf(this);
    this.#decoder = new HeaderDecoder(host.limits);
    socket.on("data", (chunk: Buffer) => this.feed(chunk));
    socket.on("drain", () => this.#drained());
    socket.on("close", () => this.#end());
    // A write to a peer that has gone.
    socket.on("error", () => socket.destroy());
    this.#output.settings([
      [settings.maxConcurrentStreams, host.limits.streamCountMax],
      [settings.initialWindowSize, streamWindowBytes],
      [settings.maxHeaderListSize, host.limits.headerBytesMax],
      [settings.enableConnectProtocol, 1],
    ]);
    this.#output.window(0, connectionWindowBytes - firstWindowBytes);
    this.#sendSoon();
  }

  get isHeld(): boolean {
    return this.#isHeld;
  }

  /** Bytes of replies that the kernel has not accepted, and those that it has. */
  get heldBytes(): number {
    return this.#output.heldBytes + this.#waitingBytes;
  }

  get takenBytes(): number {
    return this.#output.leftBytes;
  }

  get isKnown(): boolean {
    return this.#host.isKnown;
  }

  /** Takes bytes that the socket has read. Hot. */
  feed(chunk: Buffer): void {
    if (this.#phase === "over") return;
    this.#activeMs = performance.now();
    const bytes = this.#unread === undefined ? chunk : Buffer.concat([this.#unread, chunk]);
    if (this.#input.begin(this.#activeMs)) this.#process(bytes);
    else {
      this.#unread = bytes;
      this.#pauseOrResume();
    }
  }

  /** Continues with the frames for which there was no time. */
  resumeInput(): void {
    if (this.#phase === "over") return;
    if (this.#unread !== undefined && !this.#isHeld) this.#process(this.#unread);
    else this.#pauseOrResume();
  }

  /** Processes frames for a time slice. */
  #process(bytes: Buffer): void {
    this.#isInTurn = true;
    let isMore = false;
    try {
      isMore = this.#readFrames(bytes);
      this.#input.end(isMore);
      this.#begin();
    } catch (error) {
      this.#failBy(error);
    } finally {
      this.#isInTurn = false;
      this.#send();
      if (isMore || this.#isPaused) this.#pauseOrResume();
    }
  }

  /** The socket is read unless frames wait for a time slice, or the peer does not read. */
  #pauseOrResume(): void {
    const isPaused = this.#phase !== "over" && (this.#isHeld || this.#input.isWaiting);
    if (isPaused === this.#isPaused) return;
    this.#isPaused = isPaused;
    if (isPaused) this.#socket.pause();
    else this.#socket.resume();
  }

  /** Takes no new requests, and ends the connection once those in progress are answered. */
  close(): void {
    if (this.#servedId !== undefined || this.#phase === "over") return;
    this.#servedId = this.#lastId;
    this.#output.goAway(this.#servedId, errorCodes.none, "");
    this.#sendSoon();
    this.#endIfDone();
  }

  /** Ends what has taken too long. To be called twice a second. `isWorking`: requests are in progress. */
  look(nowMs: number, isWorking: boolean): void {
    this.#budget.look();
    const { headersMs, keepAliveMs, stallMs } = this.#host.limits;
    if (this.#output.heldBytes === 0 || this.#output.leftBytes > this.#left.bytes) {
      this.#left = { bytes: this.#output.leftBytes, ms: nowMs };
    } else if (nowMs - this.#left.ms > stallMs) this.#socket.destroy();
    if (this.sendWindow > 0 || this.#ready.size === 0 || this.#sentBytes > this.#sent.bytes) {
      this.#sent = { bytes: this.#sentBytes, ms: nowMs };
    } else if (nowMs - this.#sent.ms > stallMs) this.#socket.destroy();
    if (this.#phase === "over") return;
    if (nowMs - this.#headSinceMs(nowMs) > headersMs) this.#socket.destroy();
    for (const [id, ended] of this.#ended) {
      if (nowMs - ended.sinceMs > replyReadMs) this.#tellEnd(id, ended);
    }
    for (const stream of this.#streams.values()) stream.look(nowMs, stallMs);
    if (isWorking || this.#streams.size > 0 || this.#output.heldBytes > 0) this.#activeMs = nowMs;
    const idleMs = nowMs - this.#activeMs;
    if (idleMs <= keepAliveMs) return;
    this.close();
    if (idleMs > keepAliveMs + farewellMs) this.#socket.destroy();
  }

  /** Since when the peer has been sending a head, or what opens the connection. */
  #headSinceMs(nowMs: number): number {
    if (this.#phase !== "open") return this.#openedMs;
    if (this.#block !== undefined) return this.#block.sinceMs;
    const isHead = this.#unread !== undefined && this.#unread[3] !== frameTypes.data;
    return isHead ? this.#unreadSinceMs : nowMs;
  }

  // --- For its streams.

  sendHead(stream: Http2Stream, status: number, fields: readonly string[], isEnd: boolean): void {
    this.#output.head(stream.id, this.#encoder, status, fields, isEnd);
    this.#sendSoon();
  }

  sendData(stream: Http2Stream, bytes: Buffer, start: number, end: number, isEnd: boolean): void {
    const length = end - start;
    stream.sendWindow -= length;
    this.sendWindow -= length;
    this.#sentBytes += length;
    this.#output.data(stream.id, bytes, start, end, isEnd);
    this.#budget.piece(length);
    this.#sendSoon();
  }

  awaitTurn(stream: Http2Stream): void {
    this.#ready.add(stream);
    this.#sendSoon();
  }

  countWaiting(bytes: number): void {
    this.#waitingBytes += bytes;
  }

  giveBack(stream: Http2Stream, bytes: number): void {
    this.#giveBack(bytes);
    stream.readBytes += bytes;
    if (stream.isRequestEnded || stream.isClosed) return;
    if (stream.readBytes >= streamWindowBytes / 2) {
      this.#output.window(stream.id, stream.readBytes);
      stream.receiveWindow += stream.readBytes;
      stream.readBytes = 0;
      this.#sendSoon();
    }
  }

  replyEnded(stream: Http2Stream): void {
    if (stream.isRequestEnded) this.#closeStream(stream);
    else if (stream.isTunnel) stream.isReplyEnded = true;
    else {
      this.#expectLate(stream.id, stream.receiveWindow, false);
      this.#closeStream(stream);
    }
  }

  resetBy(stream: Http2Stream, code: ErrorCode): void {
    this.#output.reset(stream.id, code);
    this.#expectLate(stream.id, stream.receiveWindow, true);
    this.#closeStream(stream);
    this.#sendSoon();
  }

  // --- Sending.

  /** Sends what was composed when this turn is over. */
  #sendSoon(): void {
    if (this.#isInTurn) return;
    this.#isInTurn = true;
    process.nextTick(() => {
      this.#isInTurn = false;
      try {
        this.#send();
      } catch (error) {
        this.#failBy(error);
      }
    });
  }

  /** Sends what was composed, and of what waits as much as the peer takes. */
  #send(): void {
    if (this.#phase === "over") return;
    this.#isInTurn = true;
    let isMore: boolean;
    do {
      isMore = !this.#isHeld && this.#sendFrames();
      this.#output.flush();
      if (!this.#isHeld && this.#socket.writableLength > heldBytesMax) {
        this.#isHeld = true;
        this.#pauseOrResume();
      }
    } while (isMore);
    this.#isInTurn = false;
    this.#reportHeld();
  }

  /** Most connections hold little, and are counted by the sweeps of held-replies.ts. Hot. */
  #reportHeld(): void {
    const { held } = this.#host;
    if (held.bytes > 0 || this.heldBytes >= reportedBytesMin) held.report();
  }

  /** Composes a frame of each stream that may send, in turn. @returns whether there is more than is sent at once */
  #sendFrames(): boolean {
    // Those that are added meanwhile come at its end.
    for (const stream of this.#ready) {
      if (this.#output.heldBytes > heldBytesMax) return true;
      if (this.sendWindow <= 0 && !stream.hasOnlyItsEnd) continue;
      this.#ready.delete(stream);
      if (!stream.maySend) continue;
      stream.sendSome();
      if (stream.maySend) this.#ready.add(stream);
    }
    return false;
  }

  #drained(): void {
    this.#reportHeld();
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#pauseOrResume();
    this.#send();
    // Frames that were read before the peer stopped reading.
    const unread = this.#unread;
    if (unread !== undefined && this.#input.begin(performance.now())) this.#process(unread);
  }

  #closeStream(stream: Http2Stream): void {
    this.#streams.delete(stream.id);
    this.#ready.delete(stream);
    stream.close();
    this.#endIfDone();
  }

  #endIfDone(): void {
    if (this.#servedId === undefined || this.#streams.size > 0 || this.#phase === "over") return;
    this.#phase = "over";
    this.#output.flush();
    // The peer may still be reading replies: until then it is only `look` that ends a peer that has stopped.
    this.#socket.end(() => this.#linger());
    this.#socket.resume();
  }

  #linger(): void {
    setTimeout(() => this.#socket.destroy(), lingerMs).unref();
  }

  /** Something has gone wrong: this connection ends, and nobody else notices. */
  #failBy(error: unknown): void {
    if (error instanceof ConnectionError) {
      this.#fail(error);
      return;
    }
    this.#end();
    this.#socket.destroy();
    this.#host.report(error);
  }

  /** Ends the connection because of the peer. */
  #fail(error: ConnectionError): void {
    this.#output.goAway(this.#servedId ?? this.#lastId, error.code, error.message);
    this.#output.flush();
    this.#end();
    this.#socket.end();
    this.#socket.resume();
    this.#linger();
  }

  #end(): void {
    this.#phase = "over";
    this.#input.close();
    this.#unread = undefined;
    this.#block = undefined;
    this.#ready.clear();
    this.#fed.clear();
    this.#arrived = [];
    const streams = [...this.#streams.values()];
    this.#streams.clear();
    for (const stream of streams) stream.close();
  }

  // --- Reading.

  /** Gives readers what has come for them, and begins the requests that have. */
  #begin(): void {
    if (this.#fed.size > 0) {
      for (const stream of this.#fed) stream.feedReader();
      this.#fed.clear();
    }
    const arrived = this.#arrived;
    if (arrived.length === 0) return;
    this.#arrived = [];
    const late: Http2Stream[] = [];
    for (const stream of arrived) {
      if (stream.isRequestEnded) this.#accept(stream);
      else late.push(stream);
    }
    // A body that came in a packet of its own has been read by then, and is taken at once.
    if (late.length === 0) return;
    setImmediate(() => {
      try {
        for (const stream of late) this.#accept(stream);
      } catch (error) {
        this.#failBy(error);
      }
    });
  }

  #accept(stream: Http2Stream): void {
    if (!stream.isClosed) this.#host.accept(stream);
  }

  /** @returns whether complete frames may be left, because the time slice is used up */
  #readFrames(bytes: Buffer): boolean {
    let at = 0;
    if (this.#phase === "preface") {
      const length = Math.min(bytes.length, preface.length);
      if (bytes.compare(preface, 0, length, 0, length) !== 0) throw protocolError("no preface");
      if (length < preface.length) {
        this.#unread = bytes;
        return false;
      }
      at = length;
      this.#phase = "settings";
    }
    const begin = at;
    let isMore = false;
    this.#framesToCheck = framesPerCheck;
    while (bytes.length - at >= frameHeadBytes && !this.#isOver) {
      if (this.#framesToCheck-- <= 0) {
        isMore = this.#input.isOver();
        if (isMore) break;
        this.#framesToCheck = framesPerCheck;
      }
      const length = ((bytes[at] as number) << 16) | bytes.readUInt16BE(at + 1);
      if (length > frameBytesMax) throw sizeError();
      const start = at + frameHeadBytes;
      if (bytes.length - start < length) break;
      const id = bytes.readUInt32BE(at + 5) & windowMax;
      at = start + length;
      this.#frame(bytes[start - 6] as number, bytes[start - 5] as number, id, bytes, start, at);
    }
    if (at > begin || this.#unread === undefined) this.#unreadSinceMs = this.#activeMs;
    this.#unread = at === bytes.length || this.#isOver ? undefined : bytes.subarray(at);
    return isMore;
  }

  /** Frames may end the connection while others are behind them. */
  get #isOver(): boolean {
    return this.#phase === "over";
  }

  #frame(
    type: number,
    flagBits: number,
    id: number,
    bytes: Buffer,
    start: number,
    end: number,
  ): void {
    if (this.#phase !== "open") this.#openWith(type, flagBits);
    if (this.#block !== undefined && (type !== frameTypes.continuation || this.#block.id !== id)) {
      throw protocolError("a header block was not continued");
    }
    switch (type) {
      case frameTypes.data:
        this.#data(flagBits, id, bytes, start, end);
        break;
      case frameTypes.headers:
        this.#headers(flagBits, id, bytes, start, end);
        break;
      case frameTypes.continuation:
        this.#continuation(flagBits, bytes, start, end);
        break;
      case frameTypes.windowUpdate:
        this.#windowUpdate(id, bytes, start, end);
        break;
      case frameTypes.reset:
        this.#reset(id, start, end);
        break;
      case frameTypes.settings:
        this.#settings(flagBits, id, bytes, start, end);
        break;
      case frameTypes.ping:
        this.#spend();
        if (id !== 0) throw protocolError("a ping of a stream");
        if (end - start !== 8) throw sizeError();
        if ((flagBits & flags.ack) === 0) this.#output.pong(bytes.subarray(start, end));
        break;
      case frameTypes.goAway:
        if (id !== 0) throw protocolError("a farewell of a stream");
        if (end - start < 8) throw sizeError();
        this.close();
        break;
      case frameTypes.priority:
        this.#spend();
        if (id === 0) throw protocolError("a priority without a stream");
        if (end - start !== 5) throw sizeError();
        if ((bytes.readUInt32BE(start) & windowMax) === id) throw protocolError(dependsOnItself);
        break;
      case frameTypes.pushPromise:
        throw protocolError("a client pushes nothing");
      default:
        this.#spend(); // what is not known is ignored
    }
  }

  /** The first frame tells the peer's settings. */
  #openWith(type: number, flagBits: number): void {
    if (type !== frameTypes.settings || (flagBits & flags.ack) !== 0) {
      throw protocolError("settings come first");
    }
    this.#phase = "open";
  }

  #spend(): void {
    if (!this.#budget.spend()) throw calmError("too many frames without use");
  }

  #data(flagBits: number, id: number, bytes: Buffer, start: number, end: number): void {
    const length = end - start;
    const isEnd = (flagBits & flags.endStream) !== 0;
    if (id === 0) throw protocolError("data without a stream");
    this.#receiveWindow -= length;
    if (this.#receiveWindow < 0) throw flowError();
    let from = start;
    let to = end;
    if ((flagBits & flags.padded) !== 0) {
      from++;
      to -= paddingOf(bytes, start, end);
      if (to < from) throw protocolError(paddedOver);
    }
    const stream = this.#streams.get(id);
    if (stream === undefined) {
      this.#lateData(id, length, isEnd);
      return;
    }
    if (stream.isRequestEnded) {
      this.giveBack(stream, length);
      this.#resetFor(stream, errorCodes.streamClosed);
      return;
    }
    stream.receiveWindow -= length;
    if (stream.receiveWindow < 0) {
      this.giveBack(stream, length);
      this.#resetFor(stream, errorCodes.flowControl);
      return;
    }
    if (length === 0 && !isEnd) this.#spend();
    else this.#budget.piece(length);
    if (length > to - from) this.giveBack(stream, length - (to - from));
    if (!stream.receive(bytes.subarray(from, to), isEnd, bytes.length)) {
      this.giveBack(stream, to - from);
      this.#resetFor(stream, errorCodes.protocol);
    } else this.#received(stream);
  }

  #received(stream: Http2Stream): void {
    if (stream.isRequestEnded && stream.isReplyEnded) {
      stream.feedReader();
      this.#closeStream(stream);
    } else if (stream.isReaderWaiting) this.#fed.add(stream);
  }

  /** Data of a stream that is closed: it was in transit when it was reset here, or should not have been sent. */
  #lateData(id: number, length: number, isEnd: boolean): void {
    if (id > this.#lastId || id % 2 === 0)
      throw protocolError("data of a stream that was not opened");
    const ended = this.#ended.get(id);
    if (ended === undefined || ended.left < length) {
      throw new ConnectionError(errorCodes.streamClosed, "data of a closed stream");
    }
    ended.left -= length;
    if (isEnd) this.#ended.delete(id);
    this.#spend();
    // Empty frames use up no window: if they earned a budget, a peer could send them forever.
    if (length > 0) this.#budget.piece(length);
    this.#giveBack(length);
  }

  /** The peer may send `bytes` on a stream before it learns that the stream has ended. */
  #expectLate(id: number, bytes: number, isReset: boolean): void {
    this.#ended.set(id, { left: bytes, isReset, sinceMs: performance.now() });
    if (this.#ended.size <= 2 * this.#host.limits.streamCountMax) return;
    for (const [oldest, ended] of this.#ended) {
      this.#tellEnd(oldest, ended);
      this.#ended.delete(oldest);
      break;
    }
  }

  /** The rest of the request is not wanted (RFC 9113, 8.1). */
  #tellEnd(id: number, ended: EndedStream): void {
    if (ended.isReset) return;
    ended.isReset = true;
    this.#output.reset(id, errorCodes.none);
    this.#sendSoon();
  }

  #giveBack(bytes: number): void {
    this.#readBytes += bytes;
    if (this.#readBytes < connectionWindowBytes / 2) return;
    this.#output.window(0, this.#readBytes);
    this.#receiveWindow += this.#readBytes;
    this.#readBytes = 0;
    this.#sendSoon();
  }

  #headers(flagBits: number, id: number, bytes: Buffer, start: number, end: number): void {
    if (id % 2 === 0) throw protocolError("the number of a stream that no client opens");
    let from = start;
    let to = end;
    let isMalformed = false;
    if ((flagBits & flags.padded) !== 0) {
      from++;
      to -= paddingOf(bytes, start, end);
    }
    if ((flagBits & flags.priority) !== 0) {
      if (to - from < 5) throw sizeError();
      isMalformed = (bytes.readUInt32BE(from) & windowMax) === id;
      from += 5;
    }
    if (to < from) throw protocolError(paddedOver);
    const isEnd = (flagBits & flags.endStream) !== 0;
    if ((flagBits & flags.endHeaders) !== 0) {
      this.#head(id, isEnd, isMalformed, bytes, from, to);
      return;
    }
    // A copy: the block may wait, and a slice would retain the whole chunk that was read.
    const part = Buffer.from(bytes.subarray(from, to));
    const sinceMs = performance.now();
    this.#block = { id, isEnd, isMalformed, parts: [part], length: part.length, sinceMs };
  }

  #continuation(flagBits: number, bytes: Buffer, start: number, end: number): void {
    const block = this.#block;
    if (block === undefined) throw protocolError("a continuation of nothing");
    block.length += end - start;
    if (block.length > blockShare * this.#host.limits.headerBytesMax) throw tooManyHeaders();
    if (block.parts.length > continuationsMax) throw calmError("too many CONTINUATION frames");
    block.parts.push(Buffer.from(bytes.subarray(start, end)));
    if ((flagBits & flags.endHeaders) === 0) return;
    this.#block = undefined;
    const whole = Buffer.concat(block.parts);
    this.#head(block.id, block.isEnd, block.isMalformed, whole, 0, whole.length);
  }

  /** A header block is complete: of a request, or behind its body. */
  #head(
    id: number,
    isEnd: boolean,
    isMalformed: boolean,
    bytes: Buffer,
    start: number,
    end: number,
  ): void {
    this.#framesToCheck -= Math.ceil((end - start) / headBytesPerFrame);
    const fields = this.#decoder.decode(bytes, start, end);
    if (id <= this.#lastId) {
      this.#trailers(id, isEnd, fields !== undefined && !isMalformed && areTrailers(fields));
      return;
    }
    this.#lastId = id;
    if (this.#servedId !== undefined) {
      this.#spend();
      this.#expectLate(id, streamWindowBytes, true);
      return;
    }
    const { limits } = this.#host;
    if (this.#streams.size >= limits.streamCountMax) {
      this.#refuse(id, errorCodes.refused);
      return;
    }
    if (fields === undefined) {
      this.#refuse(id, errorCodes.enhanceYourCalm);
      return;
    }
    const head = isMalformed ? undefined : requestHead(fields);
    const isShort = isEnd && head?.length !== undefined && head.length > 0;
    if (head === undefined || isShort) {
      this.#refuse(id, errorCodes.protocol);
      return;
    }
    this.#budget.request();
    const window = streamWindowBytes;
    const stream = new Http2Stream(this, id, head, !isEnd, this.#peerWindow, window);
    this.#streams.set(id, stream);
    this.#arrived.push(stream);
  }

  #trailers(id: number, isEnd: boolean, areValid: boolean): void {
    const stream = this.#streams.get(id);
    if (stream === undefined) {
      this.#spend();
      if (this.#ended.has(id)) {
        if (isEnd) this.#ended.delete(id);
        return;
      }
      throw new ConnectionError(errorCodes.streamClosed, "headers of a closed stream");
    }
    if (stream.isRequestEnded) this.#resetFor(stream, errorCodes.streamClosed);
    else if (!isEnd || !areValid || !stream.receive(nothing, true, 0)) {
      this.#resetFor(stream, errorCodes.protocol);
    } else this.#received(stream);
  }

  /** A stream that is not begun. */
  #refuse(id: number, code: ErrorCode): void {
    if (!this.#budget.spendReset()) throw calmError("too many streams refused");
    this.#expectLate(id, streamWindowBytes, true);
    this.#output.reset(id, code);
  }

  /** Resets a stream because of what the peer did. */
  #resetFor(stream: Http2Stream, code: ErrorCode): void {
    if (!this.#budget.spendReset()) throw calmError("too many streams reset");
    this.resetBy(stream, code);
  }

  #reset(id: number, start: number, end: number): void {
    if (end - start !== 4) throw sizeError();
    if (id === 0 || id > this.#lastId)
      throw protocolError("the reset of a stream that was not opened");
    this.#ended.delete(id);
    const stream = this.#streams.get(id);
    if (stream === undefined) {
      this.#spend();
      return;
    }
    if (!this.#budget.spendReset()) throw calmError("too many streams reset");
    this.#closeStream(stream);
  }

  #windowUpdate(id: number, bytes: Buffer, start: number, end: number): void {
    if (end - start !== 4) throw sizeError();
    this.#spend();
    const more = bytes.readUInt32BE(start) & windowMax;
    if (id === 0) {
      if (more === 0) throw protocolError(nothingMore);
      this.sendWindow += more;
      if (this.sendWindow > windowMax) throw flowError();
      return;
    }
    if (id > this.#lastId) throw protocolError("a window of a stream that was not opened");
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    if (more === 0) this.#resetFor(stream, errorCodes.protocol);
    else if (!stream.widen(more)) this.#resetFor(stream, errorCodes.flowControl);
    else if (stream.maySend) this.#ready.add(stream);
  }

  #settings(flagBits: number, id: number, bytes: Buffer, start: number, end: number): void {
    this.#spend();
    if (id !== 0) throw protocolError("settings of a stream");
    if ((flagBits & flags.ack) !== 0) {
      if (end > start) throw sizeError();
      return;
    }
    if ((end - start) % 6 !== 0) throw sizeError();
    for (let at = start; at < end; at += 6) {
      this.#spend(); // some cost a look at every stream
      this.#setting(bytes.readUInt16BE(at), bytes.readUInt32BE(at + 2));
    }
    this.#output.settingsTaken();
  }

  #setting(number: number, value: number): void {
    switch (number) {
      case settings.headerTableSize:
        this.#encoder.resize(value);
        break;
      case settings.enablePush:
        if (value > 1) throw protocolError("a setting that is neither on nor off");
        break;
      case settings.initialWindowSize:
        if (value > windowMax) throw flowError();
        for (const stream of this.#streams.values()) {
          if (!stream.widen(value - this.#peerWindow)) throw flowError();
          if (stream.maySend) this.#ready.add(stream);
        }
        this.#peerWindow = value;
        break;
      case settings.maxFrameSize:
        if (value < frameBytesMax || value >= 2 ** 24) throw protocolError("a size of no frame");
        break;
      default: // the others do not concern what is sent here
    }
  }
}

const nothing = Buffer.alloc(0);
const dependsOnItself = "a stream that depends on itself";
const paddedOver = "more padding than there is room for";
const nothingMore = "a window that grows by nothing";

function paddingOf(bytes: Buffer, start: number, end: number): number {
  if (start === end) throw sizeError();
  return bytes[start] as number;
}

function protocolError(message: string): ConnectionError {
  return new ConnectionError(errorCodes.protocol, message);
}

function sizeError(): ConnectionError {
  return new ConnectionError(errorCodes.frameSize, "a frame of a size that it may not have");
}

function flowError(): ConnectionError {
  return new ConnectionError(errorCodes.flowControl, "more than a window allows");
}

function calmError(message: string): ConnectionError {
  return new ConnectionError(errorCodes.enhanceYourCalm, message);
}
