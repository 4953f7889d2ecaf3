/**
 * One request and its reply: the only part of HTTP that handlers use. Implemented by `LinkExchange` (a request from an HTTP
 * thread) and `InternalExchange` (a request made by the server itself).
 *
 * Invariants:
 * - Exactly one reply: `reply`, `replyJson` or `stream`, once. They do nothing after the client has disconnected.
 * - A reply to HEAD and the statuses 204 and 304 carry no body.
 * - The body is read once, by `body` or `bodyStream`.
 */
import type { X509Certificate } from "node:crypto";
import { Readable, type Writable } from "node:stream";
import { assert } from "../../engine/base/assert.ts";
import type { DocumentChunks } from "../../engine/engine.ts";
import type { Identity, Requirement } from "../security/access.ts";
import { type BodyLimits, collectBody, decodeBody } from "./body.ts";
import { BodyRoom, freeBodyBytes } from "./body-room.ts";
import type { Connection } from "./connection.ts";
import { forceRoom } from "./reply-room.ts";
import { ReplyStream, streamHeldBytes, writePieces } from "./reply-stream.ts";
import { QueryString } from "./request.ts";
import { jsonTooLarge } from "./request-error.ts";
import { jsonContentType, noContentType, type ReplyHeaders } from "./response.ts";

/** The description of a forwarded request by the node that received it. */
interface Origin {
  readonly nodeTag: string;
  readonly identity: Identity;
  /** The certificate of the caller, if it is registered. */
  readonly certificate: X509Certificate | undefined;
  /** The address of the caller, as that node sees it. */
  readonly address: string;
}

export abstract class Exchange {
  readonly connection: Connection;
  /** In capitals, as sent. */
  readonly method: string;
  /** Path and query as sent. */
  readonly target: string;
  /** The part of `target` before `?`, still percent-encoded. */
  readonly path: string;
  /** Arrival time, in milliseconds of `performance.now()`. */
  readonly startedMs: number;
  protected readonly limits: BodyLimits;
  /** Set by the pipeline: the route's requirement, checked again when rights change. */
  requirement: Requirement | undefined;
  /** Set by the pipeline: the database name in the path, decoded. */
  databaseName: string | undefined;
  /** Set by the pipeline: headers added to those of the reply. */
  notices: ReplyHeaders | undefined;
  /** Set by the pipeline: further headers, computed when the reply is sent. */
  lateNotices: (() => ReplyHeaders) | undefined;
  /** Set by the pipeline: the reply reports its duration. */
  isTimed: boolean;
  /** Set by the pipeline: the position of the route in its table; -1: none was matched, or the caller is unknown. */
  routeNumber: number;
  /** The status of the reply; 0: there was none. */
  status: number;
  /** Bytes of the reply's body before compression; of a streamed one, those written so far. */
  replyBytes: number;
  /** Names of changed items, for the audit log. */
  changedNames: readonly string[] | undefined;
  /** The text of a query, for the traffic watch; undefined for other requests. */
  queryText: string | undefined;
  /** Set by the pipeline: the origin of a request that another node forwarded. */
  origin: Origin | undefined;
  /** Set by the pipeline: the tag of the node to which the request was forwarded. */
  passedTo: string | undefined;
  /** Set by the pipeline: the body is retained after `body`, so that another node can process the request. */
  isRepeatable: boolean;
  /** The bodies that `bodyAsSent`, and `body` of a repeatable request, have collected. */
  private sentBody: Buffer | undefined;
  private readBody: Buffer | undefined;
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
    this.lateNotices = undefined;
    this.isTimed = false;
    this.routeNumber = -1;
    this.status = 0;
    this.replyBytes = 0;
    this.changedNames = undefined;
    this.queryText = undefined;
    this.origin = undefined;
    this.passedTo = undefined;
    this.isRepeatable = false;
    this.sentBody = undefined;
    this.readBody = undefined;
    this.hasReplied = false;
    this.isBodyTaken = false;
    this.lazyQuery = undefined;
    this.abortController = undefined;
    this.wasAborted = false;
  }

  /** Returns a request header; `name` in lower case. Repeated headers are joined by ", ". */
  abstract header(name: string): string | undefined;
  /** Returns all headers of the request, with names in lower case; repeated headers are joined as by `header`. */
  abstract headers(): Iterable<readonly [name: string, value: string]>;
  /** Host and port as sent by the client, or "". */
  abstract get authority(): string;
  /** The body as received, still encoded. */
  protected abstract rawBody(): Readable;
  /** Whether the request has a body (of zero or more bytes). */
  abstract get hasBody(): boolean;
  /** Sends the whole reply. `body` undefined: none, with Content-Length 0 where the status allows a body. */
  protected abstract send(
    status: number,
    headers: ReplyHeaders | undefined,
    contentType: string | undefined,
    body: Buffer | undefined,
  ): void;
  /** Sends the head. @returns the sink for the body */
  protected abstract open(
    status: number,
    headers: ReplyHeaders | undefined,
    contentType: string | undefined,
  ): Writable;
  /** Ends the exchange immediately, without a complete reply. */
  protected abstract destroy(): void;
  /** Calls `onClose` once when the exchange has ended, for any reason. */
  abstract whenClosed(onClose: () => void): void;
  /** Whether the underlying transport has ended. */
  abstract get isClosed(): boolean;

  get query(): QueryString {
    if (this.path.length === this.target.length) return noQuery;
    this.lazyQuery ??= new QueryString(this.target.slice(this.path.length + 1));
    return this.lazyQuery;
  }

  /** Identity of the caller, also of a forwarded request. */
  get identity(): Identity {
    return this.origin === undefined ? this.connection.identity : this.origin.identity;
  }

  /** Address of the caller, also of a forwarded request. */
  get remoteAddress(): string {
    return this.origin === undefined ? this.connection.remoteAddress : this.origin.address;
  }

  /** The certificate that the client presented, registered here or not. */
  get remoteCertificate(): X509Certificate | undefined {
    return this.origin === undefined ? this.connection.certificate : this.origin.certificate;
  }

  /** `https://host:port` as the client addresses this server; the base of links to ourselves. */
  get baseUrl(): string {
    return `${this.connection.isSecure ? "https" : "http"}://${this.authority}`;
  }

  /** The header `Request-Time`: whole milliseconds since the request came; undefined: the route has none. */
  protected get requestTime(): string | undefined {
    return this.isTimed ? String(Math.round(performance.now() - this.startedMs)) : undefined;
  }

  get isReplied(): boolean {
    return this.hasReplied;
  }

  /** Whether the exchange has ended. Cheaper than `signal`. */
  get aborted(): boolean {
    return this.wasAborted || this.isClosed;
  }

  /** Aborted when the client disconnects, or loses the right to the route, before the exchange is complete. */
  get signal(): AbortSignal {
    if (this.abortController === undefined) {
      const controller = new AbortController();
      this.abortController = controller;
      if (this.wasAborted || this.isClosed) controller.abort(endedReason);
      else this.whenClosed(() => controller.abort(endedReason));
    }
    return this.abortController.signal;
  }

  /** Ends the exchange on behalf of the server, without a complete reply. */
  abort(): void {
    this.wasAborted = true;
    this.hasReplied = true;
    this.abortController?.abort(endedReason);
    this.destroy();
  }

  /**
   * Returns the whole body, decoded (gzip, br, deflate, zstd).
   * @throws RequestError 413 over the limit, 408 too slow, 415 unknown encoding, 400 not in that encoding, 503 no room
   */
  body(): Promise<Buffer> {
    return Promise.resolve(this.bufferedBody());
  }

  /** As `body`, but synchronous if the body has arrived completely, is small, and needs no decoding. */
  bufferedBody(): Buffer | Promise<Buffer> {
    if (this.readBody !== undefined) return this.readBody;
    const encoding = this.header("content-encoding");
    const isPlain = encoding === undefined && this.sentBody === undefined;
    const bytesMax = Math.min(freeBodyBytes, this.limits.bodyBytesMax);
    const arrived = isPlain ? this.arrivedBody(bytesMax) : undefined;
    if (arrived !== undefined) {
      this.takeUnread();
      if (this.isRepeatable) this.readBody = arrived;
      return arrived;
    }
    const collected = this.collect(encoding);
    return this.isRepeatable ? this.keep(collected) : collected;
  }

  /** Returns the whole body, if it is in memory and not longer than `bytesMax`; it then counts as read. */
  protected arrivedBody(_bytesMax: number): Buffer | undefined {
    return undefined;
  }

  /** Whether the system has copied the reply, so that its buffer is no longer read. */
  get isReplyTaken(): boolean {
    return false;
  }

  /** The collected body, which can be sent again; undefined if it was not collected. */
  get collectedBody(): Buffer | undefined {
    return this.readBody ?? this.sentBody ?? (this.hasBody ? undefined : Buffer.alloc(0));
  }

  /** Whether `collectedBody` is decoded. */
  get isBodyDecoded(): boolean {
    return this.readBody !== undefined;
  }

  /** Returns the whole body, still encoded; it can be read again. @throws RequestError as `body` */
  async bodyAsSent(): Promise<Buffer> {
    this.sentBody ??= await this.collect(undefined);
    return this.sentBody;
  }

  /** Returns the body in chunks, still encoded. @throws (while iterating) RequestError 408, and when the client disconnects */
  chunksAsSent(): AsyncIterable<Buffer> {
    return decodeBody(this.takeBody(), undefined, this.limits);
  }

  private collect(encoding: string | undefined): Promise<Buffer> {
    if (!this.hasBody) return Promise.resolve(Buffer.alloc(0));
    const length = this.header("content-length");
    const room = new BodyRoom();
    if (encoding === undefined && Number(length ?? Number.NaN) <= room.bytes) {
      return collectBody(() => this.takeBody(), encoding, length, this.limits, room);
    }
    this.whenClosed(() => room.release());
    return collectBody(() => this.takeBody(), encoding, length, this.limits, room, this);
  }

  /** Retains a collected body. */
  private async keep(collecting: Promise<Buffer>): Promise<Buffer> {
    const body = await collecting;
    this.readBody = body;
    return body;
  }

  /**
   * Returns the whole body of instructions, which are parsed without a pause.
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
   * Returns the decoded body in chunks, as they arrive; its size is not limited. The reply may end before the body does.
   * @throws (while iterating) as `body`, and when the client disconnects
   */
  bodyStream(): AsyncIterable<Buffer> {
    return decodeBody(this.takeBody(), this.header("content-encoding"), this.limits);
  }

  /**
   * Replies with any body, or none. A string is sent as UTF-8; the caller sets `content-type`. A reply without a body
   * is labeled JSON, as most of RavenDB's are, except 204; `noContentType` suppresses that.
   */
  reply(status: number, given?: ReplyHeaders, body?: Buffer | string): void {
    if (!this.mayReply()) return;
    const headers = this.withNotices(given);
    const bytes = typeof body === "string" ? Buffer.from(body) : body;
    const isEmpty = bytes === undefined || isBodyless(status);
    this.status = status;
    if (!isEmpty) this.replyBytes = bytes.length;
    const givenType = headers?.["content-type"];
    const isUsual = isEmpty && givenType === undefined && status !== 204;
    const sent = givenType === noContentType ? withoutType(headers) : headers;
    this.send(status, sent, isUsual ? jsonContentType : undefined, isEmpty ? undefined : bytes);
  }

  /**
   * Replies with JSON. Strings and Buffers contain JSON text; other values are converted.
   */
  replyJson(status: number, value: unknown, given?: ReplyHeaders): void {
    if (!this.mayReply()) return;
    const headers = this.withNotices(given);
    let bytes: Buffer;
    if (Buffer.isBuffer(value)) bytes = value;
    else bytes = Buffer.from(typeof value === "string" ? value : JSON.stringify(value));
    this.status = status;
    this.replyBytes = bytes.length;
    this.send(status, headers, jsonContentType, bytes);
  }

  /**
   * Streams a reply: sends the head now, the body through the result. `giveRoom` releases the
   * memory that was reserved for `streamHeldBytes`.
   */
  stream(status: number, given?: ReplyHeaders, giveRoom?: () => void): ReplyStream {
    assert(!this.hasReplied || this.wasAborted, "a request is answered once");
    this.hasReplied = true;
    const headers = this.withNotices(given);
    const ownType = headers?.["content-type"] !== undefined;
    this.status = status;
    const sink = this.open(status, headers, ownType ? undefined : jsonContentType);
    const give = giveRoom ?? forceRoom("replies", streamHeldBytes);
    if (sink.destroyed) give();
    else sink.once("close", give);
    const count = (bytes: number) => {
      this.replyBytes += bytes;
    };
    return new ReplyStream(sink, this.limits.stallMs, () => this.abort(), count);
  }

  /**
   * Streams the JSON text in `pieces`, between `prefix` and `suffix`, under the client's back-pressure.
   * Resolves when the system has all of it, or the client has disconnected.
   */
  async replyPieces(
    status: number,
    prefix: string,
    pieces: DocumentChunks,
    suffix: string,
    given?: ReplyHeaders,
  ): Promise<void> {
    if (this.wasAborted || this.isClosed) return;
    const length = prefix.length + pieces.length + suffix.length;
    if (this.method === "HEAD") {
      this.reply(status, { ...given, "content-type": jsonContentType, "content-length": length });
      return;
    }
    const stream = this.stream(status, { ...given, "content-length": length });
    await stream.write(prefix);
    await writePieces(stream, pieces);
    await stream.end(suffix);
  }

  /** Sends a large body in slices under the client's back-pressure; a client that reads nothing is disconnected. */
  protected async sendSlowly(body: Buffer, sink: Writable): Promise<void> {
    const { open } = this.connection;
    const stream = new ReplyStream(sink, this.limits.stallMs, () => this.abort());
    // The handler ends before this does: `open` keeps the exchange abortable when rights change.
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
    const late = this.lateNotices?.();
    if (this.notices === undefined && late === undefined) return headers;
    return { ...this.notices, ...headers, ...late };
  }

  private takeBody(): Readable {
    if (this.sentBody !== undefined) return Readable.from([this.sentBody]);
    this.takeUnread();
    return this.rawBody();
  }

  /** Asserts that nothing has read the body. */
  private takeUnread(): void {
    assert(!this.isBodyTaken, "a body is read once");
    this.isBodyTaken = true;
  }

  private mayReply(): boolean {
    if (this.wasAborted || this.isClosed) return false;
    assert(!this.hasReplied, "a request is answered once");
    this.hasReplied = true;
    return true;
  }
}

const noQuery = new QueryString("");

/** Shared, because nearly every query ends with it, and creating an exception with its stack takes 10 µs. */
const endedReason = new DOMException("The exchange has ended.", "AbortError");

/** Bodies up to this size are sent in one write, without watching whether the client reads them. */
export const unwatchedBytesMax = 64 * 1024;

/** Statuses whose replies have no body by definition. */
export function isBodyless(status: number): boolean {
  return status === 204 || status === 304;
}

function withoutType(headers: ReplyHeaders | undefined): ReplyHeaders {
  const { "content-type": _, ...others } = headers ?? {};
  return others;
}
