/** An exchange over a stream of HTTP/2. A reply of known length is composed with its head. */
import type { Readable, Writable } from "node:stream";
import type { BodyLimits } from "../http/body.ts";
import type { Connection } from "../http/connection.ts";
import { Exchange, isBodyless, unwatchedBytesMax } from "../http/exchange.ts";
import { dateText, interfaceVersion, type ReplyHeaders } from "../http/response.ts";
import { errorCodes } from "./http2/frames.ts";
import type { Http2Stream } from "./http2/http2-stream.ts";

export class Http2Exchange extends Exchange {
  private readonly http2: Http2Stream;

  constructor(connection: Connection, stream: Http2Stream, limits: BodyLimits) {
    super(connection, stream.head.method, stream.head.target, limits);
    this.http2 = stream;
  }

  override header(name: string): string | undefined {
    return this.http2.head.get(name);
  }

  override headers(): Iterable<readonly [string, string]> {
    return this.http2.head.entries();
  }

  override get authority(): string {
    return this.http2.head.authority || (this.header("host") ?? "");
  }

  override get hasBody(): boolean {
    return this.http2.hasBody;
  }

  override get isClosed(): boolean {
    return this.http2.isClosed;
  }

  override whenClosed(onClose: () => void): void {
    this.http2.whenClosed(onClose);
  }

  protected override arrivedBody(bytesMax: number): Buffer | undefined {
    return this.http2.unreadBytes <= bytesMax ? this.http2.takeWholeBody() : undefined;
  }

  override get isReplyTaken(): boolean {
    return this.http2.isReplyTaken;
  }

  protected override rawBody(): Readable {
    return this.http2.body();
  }

  protected override destroy(): void {
    this.http2.reset(this.http2.isHeadSent ? errorCodes.internal : errorCodes.cancel);
  }

  protected override send(
    status: number,
    headers: ReplyHeaders | undefined,
    contentType: string | undefined,
    body: Buffer | undefined,
  ): void {
    const { http2 } = this;
    if (http2.isClosed) return;
    const length = isBodyless(status) ? undefined : (body?.length ?? 0);
    const fields = this.fields(headers, contentType, length);
    if (body === undefined || this.method === "HEAD") http2.respond(status, fields, undefined);
    else if (body.length <= unwatchedBytesMax) http2.respond(status, fields, body);
    else void this.sendSlowly(body, http2.open(status, fields));
  }

  protected override open(
    status: number,
    headers: ReplyHeaders | undefined,
    contentType: string | undefined,
  ): Writable {
    return this.http2.open(status, this.fields(headers, contentType, undefined));
  }

  /** The head of a reply but its status: names and values in turn. `length`: undefined when it is not known. */
  private fields(
    headers: ReplyHeaders | undefined,
    contentType: string | undefined,
    length: number | undefined,
  ): string[] {
    const fields = [
      "raven-server-version",
      interfaceVersion,
      "service-server-version",
      interfaceVersion,
      "date",
      dateText(),
    ];
    if (contentType !== undefined) fields.push("content-type", contentType);
    let hasLength = length === undefined;
    for (const name in headers) {
      const value = headers[name] as string | number | readonly string[];
      if (name === "content-length") hasLength = true;
      if (typeof value === "string") fields.push(name, value);
      else if (typeof value === "number") fields.push(name, String(value));
      else for (const one of value) fields.push(name, one);
    }
    const { requestTime } = this;
    if (requestTime !== undefined) fields.push("request-time", requestTime);
    if (!hasLength) fields.push("content-length", String(length));
    return fields;
  }
}
