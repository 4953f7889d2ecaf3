/**
 * An exchange over one HTTP/2 stream, on node:http2's stream interface: a reply is one respond() and one end().
 */
import {
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import type { Readable, Writable } from "node:stream";
import type { BodyLimits } from "../http/body.ts";
import type { Connection } from "../http/connection.ts";
import { Exchange, isBodyless, unwatchedBytesMax } from "../http/exchange.ts";
import { interfaceVersion, type ReplyHeaders } from "../http/response.ts";

export class Http2Exchange extends Exchange {
  private readonly http2Stream: ServerHttp2Stream;
  private readonly headerFields: IncomingHttpHeaders;

  constructor(
    connection: Connection,
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    limits: BodyLimits,
  ) {
    super(connection, pseudo(headers, ":method"), pseudo(headers, ":path"), limits);
    this.http2Stream = stream;
    this.headerFields = headers;
  }

  override header(name: string): string | undefined {
    const value = this.headerFields[name];
    return typeof value === "string" || value === undefined ? value : value.join(", ");
  }

  override *headers(): Iterable<readonly [string, string]> {
    for (const name of Object.keys(this.headerFields)) {
      if (!name.startsWith(":")) yield [name, this.header(name) ?? ""];
    }
  }

  override get authority(): string {
    return pseudo(this.headerFields, ":authority") || (this.header("host") ?? "");
  }

  override get hasBody(): boolean {
    return !this.http2Stream.endAfterHeaders;
  }

  override get isClosed(): boolean {
    return this.http2Stream.destroyed || this.http2Stream.closed;
  }

  override whenClosed(onClose: () => void): void {
    if (this.http2Stream.destroyed) onClose();
    else this.http2Stream.once("close", onClose);
  }

  protected override rawBody(): Readable {
    return this.http2Stream;
  }

  protected override destroy(): void {
    const stream = this.http2Stream;
    if (!stream.headersSent) {
      stream.close(constants.NGHTTP2_CANCEL);
      return;
    }
    // `close` may end the stream, and half a reply would look complete: an error resets it (NGHTTP2_INTERNAL_ERROR).
    stream.on("error", () => undefined);
    stream.destroy(new Error("The reply was cut off."));
  }

  protected override send(
    status: number,
    headers: ReplyHeaders | undefined,
    contentType: string | undefined,
    body: Buffer | undefined,
  ): void {
    const stream = this.http2Stream;
    if (stream.destroyed || stream.closed) return;
    const out = replyHead(status, headers, contentType, this.requestTime);
    if (!isBodyless(status)) out["content-length"] ??= body === undefined ? 0 : body.length;
    if (body === undefined || body.length === 0 || this.method === "HEAD") {
      stream.respond(out, { endStream: true });
    } else {
      stream.respond(out);
      if (body.length <= unwatchedBytesMax) stream.end(body);
      else void this.sendSlowly(body, stream);
    }
    if (this.hasBody && !stream.readableEnded) this.refuseBody();
  }

  protected override open(
    status: number,
    headers: ReplyHeaders | undefined,
    contentType: string | undefined,
  ): Writable {
    const stream = this.http2Stream;
    if (!stream.destroyed && !stream.closed) {
      stream.respond(replyHead(status, headers, contentType, this.requestTime));
    }
    return stream;
  }

  /** Signals that the rest of the body is not wanted, once the reply is sent (RFC 9113, 8.1). */
  private refuseBody(): void {
    const stream = this.http2Stream;
    const close = () => stream.close(constants.NGHTTP2_NO_ERROR);
    if (stream.writableFinished) close();
    else stream.once("finish", close);
  }
}

function replyHead(
  status: number,
  headers: ReplyHeaders | undefined,
  contentType: string | undefined,
  requestTime: string | undefined,
): OutgoingHttpHeaders {
  const out: OutgoingHttpHeaders = {
    ":status": status,
    "raven-server-version": interfaceVersion,
    "service-server-version": interfaceVersion,
  };
  if (contentType !== undefined) out["content-type"] = contentType;
  if (headers !== undefined) {
    for (const name in headers) out[name] = headers[name] as string;
  }
  if (requestTime !== undefined) out["request-time"] = requestTime;
  return out;
}

function pseudo(headers: IncomingHttpHeaders, name: string): string {
  const value = headers[name];
  return typeof value === "string" ? value : "";
}
