/**
 * An exchange over HTTP/1.1: node:http's request and response.
 *
 * Invariants:
 * - When a body is left unread, the connection ends after the reply: the client is notified, and given `lingerMs` to
 *   read the reply before the socket is closed.
 */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Readable, Writable } from "node:stream";
import type { BodyLimits } from "../http/body.ts";
import type { Connection } from "../http/connection.ts";
import { Exchange, isBodyless, unwatchedBytesMax } from "../http/exchange.ts";
import { interfaceVersion, type ReplyHeaders } from "../http/response.ts";

/** An unread body of at most this many bytes is skipped, so that the connection can be used again. */
const skippedBytesMax = 64 * 1024;
/** Milliseconds that a client has to read the reply to a request whose body was not wanted. */
const lingerMs = 1000;

export class Http1Exchange extends Exchange {
  private readonly request: IncomingMessage;
  private readonly response: ServerResponse;
  private readonly awaitsContinue: boolean;
  private readonly server: { readonly isStopping: boolean };

  /** `awaitsContinue`: the client waits for "100 Continue" before it sends the body. */
  constructor(
    connection: Connection,
    request: IncomingMessage,
    response: ServerResponse,
    limits: BodyLimits,
    awaitsContinue: boolean,
    server: { readonly isStopping: boolean },
  ) {
    super(connection, request.method ?? "GET", originForm(request.url ?? "/"), limits);
    this.request = request;
    this.response = response;
    this.awaitsContinue = awaitsContinue;
    this.server = server;
  }

  override header(name: string): string | undefined {
    const value = this.request.headers[name];
    return typeof value === "string" || value === undefined ? value : value.join(", ");
  }

  override *headers(): Iterable<readonly [string, string]> {
    for (const name of Object.keys(this.request.headers)) yield [name, this.header(name) ?? ""];
  }

  override get authority(): string {
    return this.header("host") ?? "";
  }

  override get hasBody(): boolean {
    const length = this.header("content-length");
    return length === undefined ? this.header("transfer-encoding") !== undefined : length !== "0";
  }

  override get isClosed(): boolean {
    return this.response.destroyed || this.request.socket.destroyed;
  }

  override whenClosed(onClose: () => void): void {
    if (this.response.destroyed) onClose();
    else this.response.once("close", onClose);
  }

  protected override rawBody(): Readable {
    if (this.awaitsContinue) this.response.writeContinue();
    return this.request;
  }

  protected override destroy(): void {
    this.request.socket.destroy();
  }

  protected override send(
    status: number,
    headers: ReplyHeaders | undefined,
    contentType: string | undefined,
    body: Buffer | undefined,
  ): void {
    if (this.isClosed) return;
    const out = replyHead(headers, contentType, this.requestTime);
    if (!isBodyless(status)) out["Content-Length"] ??= body === undefined ? 0 : body.length;
    if (this.hasBody && !this.request.complete) this.leaveBody();
    if (this.server.isStopping) this.response.shouldKeepAlive = false;
    this.response.writeHead(status, out);
    if (body === undefined || body.length <= unwatchedBytesMax) this.response.end(body);
    else void this.sendSlowly(body, this.response);
  }

  protected override open(
    status: number,
    headers: ReplyHeaders | undefined,
    contentType: string | undefined,
  ): Writable {
    if (this.server.isStopping) this.response.shouldKeepAlive = false;
    this.response.writeHead(status, replyHead(headers, contentType, this.requestTime));
    return this.response;
  }

  /** The rest of the body is not wanted. A small untouched one is already in transit, and is skipped. */
  private leaveBody(): void {
    const length = Number(this.header("content-length") ?? Number.NaN);
    if (this.isBodyUntouched && !this.awaitsContinue && length <= skippedBytesMax) {
      const timer = setTimeout(() => this.destroy(), lingerMs);
      this.request.once("close", () => clearTimeout(timer));
    } else {
      this.endAfterReply();
    }
  }

  /**
   * Closing with bytes unread would make the system discard the reply in transit. So the socket is closed for writing
   * only, input is dropped for `lingerMs`, and then it is destroyed.
   */
  private endAfterReply(): void {
    this.response.setHeader("Connection", "close");
    const { socket } = this.request;
    socket.destroySoon = () => {
      socket.end();
      const timer = setTimeout(() => socket.destroy(), lingerMs);
      socket.once("close", () => clearTimeout(timer));
    };
  }
}

/** `GET http://host/path` is legal on the wire and means `/path`. */
export function originForm(url: string): string {
  if (url.startsWith("/")) return url;
  const match = /^https?:\/\/[^/?]*(.*)$/i.exec(url);
  return match?.[1] || "/";
}

function replyHead(
  headers: ReplyHeaders | undefined,
  contentType: string | undefined,
  requestTime: string | undefined,
): OutgoingHttpHeaders {
  const out: OutgoingHttpHeaders = {
    "Raven-Server-Version": interfaceVersion,
    "Service-Server-Version": interfaceVersion,
  };
  if (contentType !== undefined) out["Content-Type"] = contentType;
  if (headers !== undefined) {
    for (const name in headers) {
      out[titleCase(name)] = headers[name] as string;
    }
  }
  if (requestTime !== undefined) out["Request-Time"] = requestTime;
  return out;
}

const titles = new Map<string, string>([
  ["etag", "ETag"],
  ["www-authenticate", "WWW-Authenticate"],
]);

/** `content-type` -> `Content-Type`, the usual form in HTTP/1.1. Names come from code, so they are few. */
export function titleCase(name: string): string {
  let title = titles.get(name);
  if (title === undefined) {
    title = name.replace(/(^|-)[a-z]/g, (match) => match.toUpperCase());
    if (titles.size < 500) titles.set(name, title);
  }
  return title;
}
