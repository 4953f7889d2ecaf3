/**
 * A request and its reply on an HTTP thread: decoding of the body, compression of the reply, and credit in both
 * directions. The protocols implement how bytes are sent.
 *
 * Invariants:
 * - No more bytes of a body are passed to the engine thread than it has pulled, except for one chunk.
 * - Every byte of a reply is counted from its arrival here until the operating system has accepted it.
 */
import type { Duplex, Readable, Writable } from "node:stream";
import { countPassing } from "../../engine/base/memory/gc-hints.ts";
import { unfoldStream } from "../http/body.ts";
import { RequestError } from "../http/request-error.ts";
import {
  chooseEncoding,
  compress,
  compressibleBytesMin,
  compressor,
  compressorCount,
  namesOneEncoding,
  type ReplyEncoding,
} from "../http/response.ts";
import { fieldOf, type HttpEvents, type RequestHead } from "../link/link.ts";
import type { FrontConnection } from "./front-connection.ts";
import type { FrontHost } from "./front-host.ts";
import { FrontSocket } from "./front-socket.ts";

/** Bodies of up to this many bytes that arrive soon are passed with the head of their request. */
const inlineBodyBytesMax = 16 * 1024;
/**
 * Milliseconds within which they must arrive, plus the interval between two checks. Those of unknown length, which may be
 * endless, must arrive together with the head, as clients of HTTP/2 send them.
 */
const inlineBodyMs = 250;
/**
 * Calls of `process.nextTick` after which a stream has emitted `end`, if it was read to its end with the head: it resumes
 * and ends in one each. Waiting for anything later would let requests begin that arrived after this one.
 */
const endTicks = 3;
/** Streamed replies that may be compressed at the same time: beyond that, they are sent uncompressed. */
const compressorsMax = 2;

/** Encodings of bodies that are decoded here. */
const decoders: Readonly<Record<string, "gzip" | "br" | "deflate" | "zstd">> = {
  gzip: "gzip",
  "x-gzip": "gzip",
  br: "br",
  deflate: "deflate",
  zstd: "zstd",
};

type Compressing = ReturnType<typeof compressor>;

export abstract class FrontExchange {
  readonly id: number;
  readonly connection: FrontConnection;
  readonly method: string;
  /** Composed header fields of the request, see `link.ts`. */
  readonly fields: string;
  readonly hasBody: boolean;
  /** The encoding of the body; "": none. */
  readonly #bodyEncoding: string;
  protected readonly events: HttpEvents;
  /** Called when all of it has ended. */
  onOver: (exchange: FrontExchange) => void = ignore;
  /** Has the engine thread, or the client, ended it? */
  isOver = false;
  /** Is it one of the unanswered requests of its connection? */
  #isUnanswered = false;
  #compressing: Compressing | undefined = undefined;
  #sink: Writable | undefined = undefined;
  #socket: FrontSocket | undefined = undefined;
  #tunnel: Duplex | undefined = undefined;
  /** Bytes of the body that the engine thread accepts. */
  #pulledBytes = 0;
  #isPumping = false;
  #resumePump: (() => void) | undefined = undefined;
  /** Reports the request without its body, which arrives slowly. */
  #endCollecting: (() => void) | undefined = undefined;
  /** Bytes of the reply that are held here. */
  heldBytes = 0;
  /** Bytes held when progress was last seen, and that moment. */
  #seenBytes = 0;
  #seenMs = 0;

  constructor(
    id: number,
    connection: FrontConnection,
    head: RequestHead,
    bodyEncoding: string,
    events: HttpEvents,
  ) {
    this.id = id;
    this.connection = connection;
    this.method = head.method;
    this.fields = head.fields;
    this.hasBody = head.body !== "none";
    this.#bodyEncoding = bodyEncoding;
    this.events = events;
  }

  /** Accepts the request for a web socket. @returns the bytes in both directions from then on */
  protected abstract upgrade(fields: string): Duplex;
  /** The body as it arrives. */
  protected abstract source(): Readable;
  /** Sends a whole reply. */
  protected abstract respond(status: number, fields: string, body: Buffer | undefined): void;
  /** Sends the head of a reply. @returns where its body is written */
  protected abstract respondHead(status: number, fields: string): Writable;
  /** Ends the exchange without a complete reply, and reports nothing. */
  protected abstract cut(): void;
  /** Bytes of the reply that wait in this process. */
  protected abstract get waitingBytes(): number;

  /**
   * Reports the request to the engine thread, with its whole body if that is short and arrives soon. `length`: of the
   * body as the client declared it. Hot.
   */
  begin(host: FrontHost, head: RequestHead, source: Readable, length: string | undefined): void {
    const isShort = length === undefined || Number(length) <= inlineBodyBytesMax;
    if (head.body !== "pending" || this.#bodyEncoding !== "" || !isShort) {
      host.accept(this, head, undefined);
      return;
    }
    this.#collect(source, length !== undefined, (whole) => {
      if (this.isOver) return;
      if (whole !== undefined) head.body = "whole";
      host.accept(this, head, whole);
    });
  }

  /** The request is reported to the engine thread. Hot. */
  began(): void {
    this.#isUnanswered = true;
    this.connection.began();
  }

  reply(status: number, fields: string, body: Buffer | undefined, isCompressible: boolean): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#answered();
    const encoding =
      isCompressible && body !== undefined ? this.#encodingOf(body.length) : undefined;
    if (body === undefined || encoding === undefined) {
      this.#respond(status, fields, body);
      return;
    }
    const compressed = compress(body, encoding);
    if (Buffer.isBuffer(compressed)) {
      this.#respond(status, encodedFields(fields, encoding, compressed.length), compressed);
      return;
    }
    this.#hold(body.length);
    compressed.then(
      (small) => {
        this.#release(body.length);
        this.#respond(status, encodedFields(fields, encoding, small.length), small);
      },
      () => {
        this.#release(body.length);
        this.#respond(status, fields, body);
      },
    );
  }

  open(status: number, fields: string, isCompressible: boolean): void {
    if (this.isOver) return;
    this.#answered();
    const encoding = isCompressible ? this.#streamEncoding() : undefined;
    const head = encoding === undefined ? fields : encodedFields(fields, encoding, undefined);
    const sink = this.respondHead(status, head);
    this.#sink = sink;
    if (encoding === undefined) return;
    const compressing = compressor(encoding);
    compressing.pipe(sink);
    compressing.on("error", () => this.fail());
    sink.once("close", () => compressing.destroy());
    this.#compressing = compressing;
  }

  data(chunk: Buffer, isLast: boolean): void {
    const target = this.#compressing ?? this.#sink;
    if (this.isOver || target === undefined) return;
    const { length } = chunk;
    this.#hold(length);
    const done = () => {
      this.#release(length);
      countPassing(length);
      this.events.sent(this.id, length);
    };
    if (isLast) this.isOver = true;
    if (!isLast) target.write(chunk, done);
    else {
      // Everything has been handed to the system when the sink has finished, not when the compressor has.
      this.#sink?.once("finish", done);
      // Node never completes a write whose last buffer is empty (OnSendData in node_http2.cc, Node 20 to 26).
      if (length > 0) target.end(chunk);
      else target.end();
    }
  }

  /** Answers a web socket here: its messages are events. */
  acceptSocket(fields: string): void {
    if (this.isOver) return;
    this.#answered();
    const socket = new FrontSocket(this.id, this.upgrade(fields), this.events);
    this.#socket = socket;
  }

  /** Lets the engine thread answer the bytes of a web socket. */
  acceptTunnel(fields: string): void {
    if (this.isOver) return;
    this.#answered();
    const tunnel = this.upgrade(fields);
    this.#sink = tunnel;
    this.#tunnel = tunnel;
  }

  /** Sends a part of a message on a web socket. */
  send(chunk: Buffer, isLast: boolean): void {
    const { length } = chunk;
    this.#hold(length);
    this.#socket?.send(chunk, isLast, () => {
      this.#release(length);
      this.events.sent(this.id, length);
    });
  }

  closeSocket(code: number, reason: string): void {
    this.#socket?.close(code, reason);
  }

  /** Ends the exchange at the request of the engine thread. */
  abort(): void {
    this.isOver = true;
    this.cut();
  }

  /** Ends the exchange from this side. */
  fail(): void {
    if (!this.isOver) this.events.aborted(this.id);
    this.abort();
  }

  /** The client has ended the exchange, or all has been sent. To be called once by the protocol. */
  closed(): void {
    if (!this.isOver) this.events.aborted(this.id);
    this.isOver = true;
    this.connection.exchanges.delete(this.id);
    this.#answered();
    this.#release(this.heldBytes);
    this.#endCollecting = undefined;
    this.#resumePump?.();
    this.onOver(this);
  }

  pull(bytes: number): void {
    this.#pulledBytes += bytes;
    if (this.#isPumping) this.#resumePump?.();
    else {
      this.#isPumping = true;
      void this.#pump();
    }
  }

  /** Ends the exchange if its client has accepted nothing of a reply for `stallMs`. To be called twice a second. */
  check(nowMs: number, stallMs: number): void {
    if (this.#endCollecting !== undefined) {
      if (nowMs - this.#seenMs > inlineBodyMs) this.#endCollecting();
      return;
    }
    const { waitingBytes } = this;
    if (waitingBytes === 0 || waitingBytes !== this.#seenBytes) {
      this.#seenBytes = waitingBytes;
      this.#seenMs = nowMs;
    } else if (nowMs - this.#seenMs > stallMs) this.fail();
  }

  /**
   * Collects a small body before the request is reported. `report` is called once: with the whole body, or with
   * nothing when it has not arrived soon; what has arrived is then passed once it is pulled.
   */
  #collect(
    source: Readable,
    isLengthKnown: boolean,
    report: (whole: Buffer | undefined) => void,
  ): void {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const onData = (chunk: Buffer) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > inlineBodyBytesMax) end(undefined);
    };
    const onEnd = () => end(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)); // one chunk: it is there
    const end = (whole: Buffer | undefined) => {
      this.#endCollecting = undefined;
      source.off("data", onData);
      source.off("end", onEnd);
      if (whole === undefined) {
        source.pause();
        for (const chunk of chunks.reverse()) source.unshift(chunk);
      }
      report(whole);
    };
    this.#endCollecting = () => end(undefined);
    this.#seenMs = performance.now();
    source.on("data", onData);
    source.on("end", onEnd);
    if (!isLengthKnown) afterTicks(endTicks, () => this.#endCollecting?.());
  }

  #respond(status: number, fields: string, body: Buffer | undefined): void {
    if (body !== undefined) this.#hold(body.length);
    this.respond(status, fields, body);
  }

  #answered(): void {
    if (!this.#isUnanswered) return;
    this.#isUnanswered = false;
    this.connection.answered();
  }

  #hold(bytes: number): void {
    this.heldBytes += bytes;
    this.connection.hold(bytes);
  }

  #release(bytes: number): void {
    const held = Math.min(bytes, this.heldBytes);
    this.heldBytes -= held;
    this.connection.release(held);
  }

  #encodingOf(length: number): ReplyEncoding | undefined {
    const accepted = fieldOf(this.fields, "accept-encoding");
    if (accepted === undefined) return undefined;
    return length >= compressibleBytesMin || namesOneEncoding(accepted)
      ? chooseEncoding(accepted)
      : undefined;
  }

  #streamEncoding(): ReplyEncoding | undefined {
    if (this.method === "HEAD" || compressorCount() >= compressorsMax) return undefined;
    return chooseEncoding(fieldOf(this.fields, "accept-encoding"));
  }

  /** Passes the body to the engine thread, as far as it has pulled. */
  async #pump(): Promise<void> {
    const encoding = this.#bodyEncoding;
    const decoder = decoders[encoding];
    if (encoding !== "" && decoder === undefined) {
      this.events.bodyFailed(this.id, "unknown-encoding", encoding);
      return;
    }
    // The stream of the body may be that of the reply, too.
    const source = this.#tunnel ?? this.source();
    const raw: AsyncIterable<Buffer> = source.iterator({ destroyOnReturn: false });
    const body = decoder === undefined ? raw : unfoldStream(raw, decoder, Number.POSITIVE_INFINITY);
    try {
      for await (const chunk of body) {
        await this.#passToEngine(chunk);
        if (this.isOver) return;
      }
      this.events.bodyData(this.id, noBytes, true);
    } catch (error) {
      if (this.isOver) return;
      const isBroken = error instanceof RequestError;
      this.events.bodyFailed(this.id, isBroken ? "wrong-encoding" : "cut-off", encoding);
    }
  }

  /** Passes a chunk to the engine thread, in parts if that has not pulled enough. */
  async #passToEngine(chunk: Buffer): Promise<void> {
    for (let start = 0; start < chunk.length && !this.isOver; ) {
      if (this.#pulledBytes <= 0) {
        await this.#nextPull();
        continue;
      }
      const end = Math.min(chunk.length, start + this.#pulledBytes);
      this.#pulledBytes -= end - start;
      this.events.bodyData(this.id, chunk.subarray(start, end), false);
      start = end;
    }
    countPassing(chunk.length);
  }

  #nextPull(): Promise<void> {
    return new Promise((resolve) => {
      this.#resumePump = () => {
        this.#resumePump = undefined;
        resolve();
      };
    });
  }
}

const noBytes = Buffer.alloc(0);

function ignore(): void {
  // Nothing to do.
}

function afterTicks(count: number, then: () => void): void {
  if (count === 0) then();
  else process.nextTick(afterTicks, count - 1, then);
}

/** The fields of a reply whose body is encoded. `length`: of the encoded body; undefined: unknown. */
function encodedFields(
  fields: string,
  encoding: ReplyEncoding,
  length: number | undefined,
): string {
  const rest = fields.replace(/\ncontent-length:[^\n]*/, "");
  const sized = length === undefined ? rest : `\ncontent-length:${length}${rest}`;
  return `\ncontent-encoding:${encoding}\nvary:Accept-Encoding${sized}`;
}
