/**
 * One request and its reply: the only thing a handler sees of HTTP. `Http2Exchange`, `Http1Exchange` and
 * `InternalExchange` (a request made by the server itself) are the three ways it comes about.
 *
 * Invariants:
 * - Exactly one reply: `reply`, `replyJson` or `stream`, once. When the client has gone they do nothing.
 * - A reply to HEAD and the statuses 204 and 304 carry no body.
 * - The body is read once, by `body` or `bodyStream`.
 */
import type { X509Certificate } from "node:crypto";
import type { Readable, Writable } from "node:stream";
import { assert } from "../engine/assert.ts";
import type { DocumentPieces } from "../engine/document-pieces.ts";
import type { Identity, Requirement } from "./access.ts";
import { type BodyLimits, collectBody, decodeBody } from "./body.ts";
import { BodyRoom } from "./body-room.ts";
import type { Connection } from "./connection.ts";
import { forceRoom } from "./reply-room.ts";
import { ReplyStream, streamHeldBytes, writePieces } from "./reply-stream.ts";
import { QueryString } from "./request.ts";
import { jsonTooLarge } from "./request-error.ts";
import {
  chooseEncoding,
  compress,
  compressibleBytesMin,
  compressor,
  compressorCount,
  jsonContentType,
  noContentType,
  type ReplyEncoding,
  type ReplyHeaders,
} from "./response.ts";

export abstract class Exchange {
  readonly connection: Connection;
  /** Capitals, as sent. */
  readonly method: string;
  /** Path and query as sent. */
  readonly target: string;
  /** The part of `target` before `?`, still percent-encoded. */
  readonly path: string;
  /** Milliseconds on the clock of `performance.now()` when the request came. */
  readonly startedMs: number;
  protected readonly limits: BodyLimits;
  /** Set by the pipeline: what the route asked for, to ask again when rights change. */
  requirement: Requirement | undefined;
  /** Set by the pipeline: the database name in the path, decoded. */
  databaseName: string | undefined;
  /** Set by the pipeline: headers that the reply has beside its own. */
  notices: ReplyHeaders | undefined;
  /** Set by the pipeline: the reply says how long it took. */
  isTimed: boolean;
  private hasReplied: boolean;
  private isBodyTaken: boolean;
  private lazyQuery: QueryString | undefined;
  private abortController: AbortController | undefined;
  private wasAborted: boolean;

  constructor(connection: Connection, method: string, target: string, limits: BodyLimits) {
    this.connection = connection;
    this.method = method;
    this.target = target;
    const question = target.indexOf("?");
    this.path = question < 0 ? target : target.slice(0, question);
    this.startedMs = performance.now();
    this.limits = limits;
    this.requirement = undefined;
    this.databaseName = undefined;
    this.notices = undefined;
    this.isTimed = false;
    this.hasReplied = false;
    this.isBodyTaken = false;
    this.lazyQuery = undefined;
    this.abortController = undefined;
    this.wasAborted = false;
  }

  /** A request header; `name` in lower case. Repeated ones are joined by ", ". */
  abstract header(name: string): string | undefined;
  /** Host and port as the client called them, "" when it did not say. */
  abstract get authority(): string;
  /** The body as it comes over the wire. */
  protected abstract rawBody(): Readable;
  /** Does the request have a body (of zero or more bytes)? */
  abstract get hasBody(): boolean;
  /** Sends the whole reply. `body` undefined: none, and Content-Length 0 where the status allows a body. */
  protected abstract send(
    status: number,
    headers: ReplyHeaders | undefined,
    contentType: string | undefined,
    body: Buffer | undefined,
  ): void;
  /** Sends the head and gives the sink for the body. */
  protected abstract open(
    status: number,
    headers: ReplyHeaders | undefined,
    contentType: string | undefined,
  ): Writable;
  /** Ends the exchange at once, without a (whole) reply. */
  protected abstract destroy(): void;
  /** Calls `onClose` once when the exchange has ended, for whatever reason. */
  abstract whenClosed(onClose: () => void): void;
  /** Has the transport under it ended? */
  abstract get isClosed(): boolean;

  get query(): QueryString {
    this.lazyQuery ??= new QueryString(
      this.path.length === this.target.length ? "" : this.target.slice(this.path.length + 1),
    );
    return this.lazyQuery;
  }

  get identity(): Identity {
    return this.connection.identity;
  }

  /** The certificate that the client showed, whether known here or not. */
  get remoteCertificate(): X509Certificate | undefined {
    return this.connection.certificate;
  }

  /** `https://host:port` as the client calls this server; links to ourselves begin with it. */
  get baseUrl(): string {
    return `${this.connection.isSecure ? "https" : "http"}://${this.authority}`;
  }

  /** Whole milliseconds since the request came, for `Request-Time`. */
  private get elapsedMs(): number {
    return Math.round(performance.now() - this.startedMs);
  }

  get isReplied(): boolean {
    return this.hasReplied;
  }

  /** Aborted when the client goes, or loses the right to the route, before the exchange is complete. */
  get signal(): AbortSignal {
    if (this.abortController === undefined) {
      const controller = new AbortController();
      this.abortController = controller;
      if (this.wasAborted || this.isClosed) controller.abort();
      else this.whenClosed(() => controller.abort());
    }
    return this.abortController.signal;
  }

  /** Ends the exchange from our side without a (whole) reply. */
  abort(): void {
    this.wasAborted = true;
    this.hasReplied = true;
    this.abortController?.abort();
    this.destroy();
  }

  /**
   * The whole body, decoded (gzip, br, deflate, zstd).
   * @throws RequestError 413 over the limit, 408 too slow, 415 unknown encoding, 400 not in that encoding, 503 no room
   */
  body(): Promise<Buffer> {
    if (!this.hasBody) return Promise.resolve(Buffer.alloc(0));
    const encoding = this.header("content-encoding");
    const length = this.header("content-length");
    const room = new BodyRoom();
    if (encoding === undefined && Number(length ?? Number.NaN) <= room.bytes) {
      return collectBody(() => this.takeBody(), encoding, length, this.limits, room);
    }
    this.whenClosed(() => room.release());
    return collectBody(() => this.takeBody(), encoding, length, this.limits, room, this.signal);
  }

  /**
   * The whole body when it is an object that says what to do, and is parsed at once.
   * @throws RequestError as `body`, 413 over a limit of its own
   */
  async jsonBytes(): Promise<Buffer> {
    const { jsonBytesMax } = this.limits;
    if (Number(this.header("content-length") ?? 0) > jsonBytesMax) throw jsonTooLarge(jsonBytesMax);
    const bytes = await this.body();
    if (bytes.length > jsonBytesMax) throw jsonTooLarge(jsonBytesMax);
    return bytes;
  }

  /**
   * The body, decoded, piece by piece, as it comes; not limited in size. It need not end before the reply.
   * @throws (while iterating) as `body`, and when the client goes
   */
  bodyStream(): AsyncIterable<Buffer> {
    return decodeBody(this.takeBody(), this.header("content-encoding"), this.limits);
  }

  /**
   * Answers with any body, or none. A string is sent as UTF-8; `content-type` is yours to give. A reply without a body
   * calls itself JSON, as most of RavenDB's do, except 204; `noContentType` says that it is not to.
   */
  reply(status: number, given?: ReplyHeaders, body?: Buffer | string): void {
    if (!this.mayReply()) return;
    const headers = this.withNotices(given);
    const bytes = typeof body === "string" ? Buffer.from(body) : body;
    const isEmpty = bytes === undefined || isBodyless(status);
    const givenType = headers?.["content-type"];
    const isUsual = isEmpty && givenType === undefined && status !== 204;
    const sent = givenType === noContentType ? withoutType(headers) : headers;
    this.send(status, sent, isUsual ? jsonContentType : undefined, isEmpty ? undefined : bytes);
  }

  /**
   * Answers with JSON, compressed when the client takes it and it is worth it. Strings and Buffers are JSON text
   * already; everything else is stringified.
   */
  replyJson(status: number, value: unknown, given?: ReplyHeaders): void {
    if (!this.mayReply()) return;
    const headers = this.withNotices(given);
    let bytes: Buffer;
    if (Buffer.isBuffer(value)) bytes = value;
    else bytes = Buffer.from(typeof value === "string" ? value : JSON.stringify(value));
    const encoding =
      bytes.length < compressibleBytesMin || !this.limits.compressReplies
        ? undefined
        : chooseEncoding(this.header("accept-encoding"));
    if (encoding === undefined) {
      this.send(status, headers, jsonContentType, bytes);
      return;
    }
    const marked = { ...headers, "content-encoding": encoding, vary: "Accept-Encoding" };
    const compressed = compress(bytes, encoding);
    if (Buffer.isBuffer(compressed)) {
      this.send(status, marked, jsonContentType, compressed);
      return;
    }
    compressed.then(
      (small) => this.send(status, marked, jsonContentType, small),
      () => this.send(status, headers, jsonContentType, bytes),
    );
  }

  /**
   * Answers piece by piece: sends the head now, the body through the result. JSON bodies (no `content-type` of your
   * own) are compressed when the client takes it. `giveRoom` gives back room that was taken for `streamHeldBytes`.
   */
  stream(status: number, given?: ReplyHeaders, giveRoom?: () => void): ReplyStream {
    assert(!this.hasReplied || this.wasAborted, "a request is answered once");
    this.hasReplied = true;
    const headers = this.withNotices(given);
    const ownType = headers?.["content-type"] !== undefined;
    const encoding =
      ownType || this.method === "HEAD" || !this.limits.compressReplies
        ? undefined
        : this.streamEncoding();
    const marked =
      encoding === undefined
        ? headers
        : { ...headers, "content-encoding": encoding, vary: "Accept-Encoding" };
    const sink = this.open(status, marked, ownType ? undefined : jsonContentType);
    const give = giveRoom ?? forceRoom("replies", streamHeldBytes);
    if (sink.destroyed) give();
    else sink.once("close", give);
    return new ReplyStream(
      sink,
      encoding === undefined ? undefined : compressor(encoding),
      this.limits.stallMs,
      () => this.abort(),
    );
  }

  /**
   * Answers with the JSON text that `pieces` give, no faster than the client takes it; compressed as by `stream`.
   * `before` and `behind` stand around it. Resolves when all of it was handed to the system, or the client has gone.
   */
  async replyPieces(
    status: number,
    before: string,
    pieces: DocumentPieces,
    behind: string,
    given?: ReplyHeaders,
  ): Promise<void> {
    if (this.wasAborted || this.isClosed) return;
    const length = before.length + pieces.length + behind.length;
    if (this.method === "HEAD") {
      this.reply(status, { ...given, "content-type": jsonContentType, "content-length": length });
      return;
    }
    const isFolded = this.limits.compressReplies && this.streamEncoding() !== undefined;
    const stream = this.stream(status, isFolded ? given : { ...given, "content-length": length });
    await stream.write(before);
    await writePieces(stream, pieces);
    await stream.end(behind);
  }

  /** Compressing is for the time that is left: while much is compressed, further replies go as they are. */
  private streamEncoding(): ReplyEncoding | undefined {
    if (compressorCount() >= compressorsMax) return undefined;
    return chooseEncoding(this.header("accept-encoding"));
  }

  /** Has nobody asked for the body yet? */
  protected get isBodyUntouched(): boolean {
    return !this.isBodyTaken;
  }

  /** Sends a large body in slices, no faster than the client reads; one that reads nothing is cut off. */
  protected async sendSlowly(body: Buffer, sink: Writable): Promise<void> {
    const { open } = this.connection;
    const stream = new ReplyStream(sink, undefined, this.limits.stallMs, () => this.abort());
    // The handler is done before this is: until then it can still be cut off when rights change.
    open.add(this);
    const give = forceRoom("replies", body.length);
    for (let start = 0; start < body.length && !stream.isClosed; start += unwatchedBytesMax) {
      await stream.write(body.subarray(start, start + unwatchedBytesMax));
      open.add(this);
    }
    await stream.end();
    give();
    open.delete(this);
  }

  private withNotices(headers: ReplyHeaders | undefined): ReplyHeaders | undefined {
    const all = this.notices === undefined ? headers : { ...this.notices, ...headers };
    return this.isTimed ? { ...all, "request-time": String(this.elapsedMs) } : all;
  }

  private takeBody(): Readable {
    assert(!this.isBodyTaken, "a body is read once");
    this.isBodyTaken = true;
    return this.rawBody();
  }

  private mayReply(): boolean {
    if (this.wasAborted || this.isClosed) return false;
    assert(!this.hasReplied, "a request is answered once");
    this.hasReplied = true;
    return true;
  }
}

/** Bodies up to this go out in one write, without watching whether the client reads them. */
export const unwatchedBytesMax = 64 * 1024;

/** Replies that are compressed as they are written, at once. */
const compressorsMax = 2;

/** Statuses whose replies have no body by definition. */
export function isBodyless(status: number): boolean {
  return status === 204 || status === 304;
}

function withoutType(headers: ReplyHeaders | undefined): ReplyHeaders {
  const { "content-type": _, ...others } = headers ?? {};
  return others;
}
