/**
 * An exchange over HTTP/1.1 whose request had arrived whole. A reply of known length is composed with its head and leaves
 * in one write, a small one beside those of others (reply-batch.ts); one that is streamed follows its head, in chunks
 * where its length is unknown.
 */
import { STATUS_CODES, validateHeaderValue } from "node:http";
import type { Socket } from "node:net";
import { Readable, Writable } from "node:stream";
import type { BodyLimits } from "../http/body.ts";
import type { Connection } from "../http/connection.ts";
import { Exchange, isBodyless, unwatchedBytesMax } from "../http/exchange.ts";
import {
  dateText,
  interfaceVersion,
  jsonContentType,
  type ReplyHeaders,
} from "../http/response.ts";
import { titleCase } from "./http1-exchange.ts";
import { batchedBytesMax, ReplyBatch, type ReplySender } from "./reply-batch.ts";
import type { WholeRequest } from "./whole-request.ts";

const standardHeaders =
  `Raven-Server-Version: ${interfaceVersion}\r\n` +
  `Service-Server-Version: ${interfaceVersion}\r\n`;

/** The beginning of a head. */
function startText(status: number, contentType: string | undefined): string {
  const start = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "unknown"}\r\n${standardHeaders}`;
  return contentType === undefined ? start : `${start}Content-Type: ${contentType}\r\n`;
}

/** That of nearly all replies. */
const jsonStart = startText(200, jsonContentType);
const closeEnd = "Connection: close\r\n\r\n";
/** The end of a head after which the connection stays open for `keptMs`, as node:http tells clients. */
let keptText = "";
let keptMs = Number.NaN;

function keptEnd(ms: number): string {
  if (ms === keptMs) return keptText;
  keptMs = ms;
  keptText = `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(ms / 1000)}\r\n\r\n`;
  return keptText;
}

/** The connection of an exchange, as the exchange uses it. */
export interface WholeHost extends ReplySender {
  readonly socket: Socket;
  readonly keepAliveMs: number;
  readonly isStopping: boolean;
}

/** Of all connections. */
const replies = new ReplyBatch();

export class WholeExchange extends Exchange {
  private readonly request: WholeRequest;
  private readonly host: WholeHost;
  private closers: (() => void)[] | undefined;
  private hasEnded: boolean;
  /** Whether the reply was copied to where it is sent from. */
  private isComposed: boolean;

  constructor(connection: Connection, request: WholeRequest, limits: BodyLimits, host: WholeHost) {
    super(connection, request.head.method, request.head.target, limits);
    this.request = request;
    this.host = host;
    this.closers = undefined;
    this.hasEnded = false;
    this.isComposed = false;
  }

  override header(name: string): string | undefined {
    return this.request.head.headers.get(name);
  }

  override headers(): Iterable<readonly [string, string]> {
    return this.request.head.headers;
  }

  override get authority(): string {
    return this.header("host") ?? "";
  }

  override get hasBody(): boolean {
    const length = this.header("content-length");
    return length !== undefined && length !== "0";
  }

  override get isClosed(): boolean {
    return this.hasEnded || this.host.socket.destroyed;
  }

  override whenClosed(onClose: () => void): void {
    if (this.isClosed) onClose();
    else if (this.closers === undefined) this.closers = [onClose];
    else this.closers.push(onClose);
  }

  protected override arrivedBody(bytesMax: number): Buffer | undefined {
    const { body } = this.request;
    return body.length <= bytesMax ? body : undefined;
  }

  override get isReplyTaken(): boolean {
    return this.isComposed;
  }

  /** The exchange is over: its reply has left, or the client has gone. */
  end(): void {
    this.hasEnded = true;
    const { closers } = this;
    this.closers = undefined;
    for (const close of closers ?? []) close();
  }

  protected override rawBody(): Readable {
    return Readable.from(this.request.body.length === 0 ? [] : [this.request.body]);
  }

  protected override destroy(): void {
    this.host.socket.destroy();
  }

  protected override send(
    status: number,
    headers: ReplyHeaders | undefined,
    contentType: string | undefined,
    body: Buffer | undefined,
  ): void {
    if (this.isClosed) return;
    if (body !== undefined && body.length > unwatchedBytesMax) {
      const length = headers?.["content-length"] ?? body.length;
      const response = this.open(status, { ...headers, "content-length": length }, contentType);
      void this.sendSlowly(body, response);
      return;
    }
    const { isLast } = this;
    const shown = this.method === "HEAD" ? undefined : body;
    const head = this.headText(status, headers, contentType, body?.length ?? 0);
    const length = head.length + (shown?.length ?? 0);
    this.isComposed = true;
    // TLS never takes a reply at once.
    if (length <= batchedBytesMax && !this.connection.isSecure) {
      replies.add(head, shown, this.host, isLast);
      return;
    }
    const reply = Buffer.allocUnsafe(length);
    const at = reply.latin1Write(head, 0);
    shown?.copy(reply, at);
    this.host.socket.write(reply, () => this.host.finish(isLast));
  }

  protected override open(
    status: number,
    headers: ReplyHeaders | undefined,
    contentType: string | undefined,
  ): Writable {
    const { socket } = this.host;
    const { isLast } = this;
    const isChunked = headers?.["content-length"] === undefined && !isBodyless(status);
    socket.write(this.headText(status, headers, contentType, null), "latin1");
    const body = new StreamedBody(socket, isChunked, this.method !== "HEAD");
    body.on("error", () => undefined); // the client disconnected
    body.once("finish", () => this.host.finish(isLast));
    this.whenClosed(() => body.destroy());
    return body;
  }

  private get isLast(): boolean {
    return this.request.head.isLast || this.host.isStopping;
  }

  /**
   * The head of a reply in Latin-1, as node:http sends it. `length`: null when the body comes in chunks, unless a header
   * tells its length.
   * @throws TypeError for a value that no header can have
   */
  private headText(
    status: number,
    headers: ReplyHeaders | undefined,
    contentType: string | undefined,
    length: number | null,
  ): string {
    let text =
      status === 200 && contentType === jsonContentType
        ? jsonStart
        : startText(status, contentType);
    let hasLength = isBodyless(status);
    for (const name in headers) {
      const value = headers[name] as string | number | readonly string[];
      const title = titleCase(name);
      if (name === "content-length") hasLength = true;
      if (typeof value === "string" || typeof value === "number") {
        validateHeaderValue(title, String(value));
        text += `${title}: ${value}\r\n`;
        continue;
      }
      for (const one of value) {
        validateHeaderValue(title, one);
        text += `${title}: ${one}\r\n`;
      }
    }
    const { requestTime } = this;
    if (requestTime !== undefined) text += `Request-Time: ${requestTime}\r\n`;
    text += `Date: ${dateText()}\r\n`;
    if (!hasLength) {
      text += length === null ? chunkedHeader : `Content-Length: ${length}\r\n`;
    }
    return text + (this.isLast ? closeEnd : keptEnd(this.host.keepAliveMs));
  }
}

const chunkedHeader = "Transfer-Encoding: chunked\r\n";

/** The body of a streamed reply; the socket stays open behind it. */
class StreamedBody extends Writable {
  private readonly socket: Socket;
  private readonly isChunked: boolean;
  private readonly isShown: boolean;

  /** `isShown`: false in the reply to HEAD, which has no body. */
  constructor(socket: Socket, isChunked: boolean, isShown: boolean) {
    super();
    this.socket = socket;
    this.isChunked = isChunked;
    this.isShown = isShown;
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    const { socket } = this;
    // An empty chunk would be the last one.
    if (!this.isShown || chunk.length === 0) done();
    else if (!this.isChunked) socket.write(chunk, done);
    else {
      socket.cork();
      socket.write(`${chunk.length.toString(16)}\r\n`, "latin1");
      socket.write(chunk);
      socket.write("\r\n", "latin1", done);
      socket.uncork();
    }
  }

  override _final(done: (error?: Error | null) => void): void {
    if (this.isChunked && this.isShown) this.socket.write("0\r\n\r\n", "latin1", done);
    else done();
  }
}
