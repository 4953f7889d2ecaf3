/**
 * A request that the server makes on behalf of a caller: the parts of multi_get, the replies in the info packages. It
 * passes the same routing, access and error handling, with the caller's rights.
 */

import { PassThrough, Readable, type TransformCallback, type Writable } from "node:stream";
import { collectBytes } from "../../engine/base/memory/collect-bytes.ts";
import type { BodyLimits } from "./body.ts";
import { Connection } from "./connection.ts";
import { Exchange } from "./exchange.ts";
import { interfaceVersion, type ReplyHeaders } from "./response.ts";

export interface CapturedReply {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: ReplyHeaders;
  readonly body: Buffer;
}

interface InternalRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** Names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
}

const internalLimits: BodyLimits = {
  bodyBytesMax: Number.MAX_SAFE_INTEGER,
  jsonBytesMax: Number.MAX_SAFE_INTEGER,
  idleMs: 2_147_483_647,
  bytesPerSecondMin: 0,
  rateGraceMs: 0,
  stallMs: 2_147_483_647,
  compressReplies: false,
};

export class InternalExchange extends Exchange {
  private readonly request: InternalRequest;
  private readonly outerAuthority: string;
  private readonly listeners: (() => void)[];
  private captured: CapturedReply | undefined;
  private sink: PassThrough | undefined;
  private wasDestroyed: boolean;
  private readonly replyBytesMax: number;

  /**
   * Acts as if the client of `outer` had sent `request`. A reply of more than `replyBytesMax` bytes is cut off, and the
   * exchange aborted.
   */
  constructor(outer: Exchange, request: InternalRequest, replyBytesMax = Number.MAX_SAFE_INTEGER) {
    const { identity, certificate, isSecure, remoteAddress } = outer.connection;
    // The caller is that of the outer one: `origin`.
    const connection = new Connection(identity, certificate, isSecure, remoteAddress);
    super(connection, request.method, request.target, internalLimits);
    this.request = request;
    this.outerAuthority = outer.authority;
    this.listeners = [];
    this.captured = undefined;
    this.sink = undefined;
    this.wasDestroyed = false;
    this.replyBytesMax = replyBytesMax;
    this.origin = outer.origin;
  }

  /** The captured reply; undefined when the exchange was aborted. */
  async captureReply(): Promise<CapturedReply | undefined> {
    if (this.wasDestroyed) return undefined;
    if (this.captured === undefined || this.sink === undefined) return this.captured;
    return { ...this.captured, body: await collectBytes(this.sink) };
  }

  override header(name: string): string | undefined {
    return this.request.headers?.[name];
  }

  override headers(): Iterable<readonly [string, string]> {
    return Object.entries(this.request.headers ?? {});
  }

  override get authority(): string {
    return this.outerAuthority;
  }

  override get hasBody(): boolean {
    return this.request.body !== undefined;
  }

  override get isClosed(): boolean {
    return this.wasDestroyed;
  }

  override bufferedBody(): Buffer {
    return this.request.body ?? Buffer.alloc(0);
  }

  override get collectedBody(): Buffer {
    return this.request.body ?? Buffer.alloc(0);
  }

  override get isBodyDecoded(): boolean {
    return true;
  }

  override jsonBytes(): Promise<Buffer> {
    return this.body();
  }

  override whenClosed(onClose: () => void): void {
    this.listeners.push(onClose);
  }

  protected override rawBody(): Readable {
    return Readable.from(this.request.body === undefined ? [] : [this.request.body]);
  }

  protected override destroy(): void {
    this.wasDestroyed = true;
    this.sink?.destroy();
    for (const listener of this.listeners) listener();
  }

  protected override send(
    status: number,
    headers: ReplyHeaders | undefined,
    contentType: string | undefined,
    body: Buffer | undefined,
  ): void {
    if (body !== undefined && body.length > this.replyBytesMax) {
      this.destroy();
      return;
    }
    this.captured = {
      status,
      headers: replyHead(headers, contentType, this.requestTime),
      body: this.method === "HEAD" || body === undefined ? Buffer.alloc(0) : body,
    };
  }

  protected override open(
    status: number,
    headers: ReplyHeaders | undefined,
    contentType: string | undefined,
  ): Writable {
    this.captured = {
      status,
      headers: replyHead(headers, contentType, this.requestTime),
      body: Buffer.alloc(0),
    };
    // It must accept the whole reply: the handler waits for its end before anything is read.
    this.sink = new BoundedSink(this.replyBytesMax);
    this.sink.on("error", () => this.destroy());
    return this.sink;
  }
}

/** Fails when more than `bytesMax` bytes are written. */
class BoundedSink extends PassThrough {
  private left: number;

  constructor(bytesMax: number) {
    super({ highWaterMark: Number.MAX_SAFE_INTEGER });
    this.left = bytesMax;
  }

  override _transform(chunk: Buffer, encoding: BufferEncoding, done: TransformCallback): void {
    this.left -= chunk.length;
    if (this.left < 0) done(new Error("the reply is larger than was allowed"));
    else super._transform(chunk, encoding, done);
  }
}

function replyHead(
  headers: ReplyHeaders | undefined,
  contentType: string | undefined,
  requestTime: string | undefined,
): ReplyHeaders {
  return {
    "raven-server-version": interfaceVersion,
    "service-server-version": interfaceVersion,
    ...(contentType === undefined ? {} : { "content-type": contentType }),
    ...headers,
    ...(requestTime === undefined ? {} : { "request-time": requestTime }),
  };
}
