/**
 * An exchange with a client of an HTTP thread, over the link (`link/link.ts`).
 *
 * Invariants:
 * - After the reply, or when the client has gone, the exchange is closed, and nothing more is sent to the HTTP thread.
 */
import { Readable, Writable } from "node:stream";
import type { BodyLimits } from "../http/body.ts";
import type { Connection } from "../http/connection.ts";
import { Exchange, isBodyless, unwatchedBytesMax } from "../http/exchange.ts";
import { bodyBroken, encodingUnknown } from "../http/request-error.ts";
import { jsonContentType, type ReplyHeaders } from "../http/response.ts";
import {
  type BodyFailure,
  fieldOf,
  fieldsIn,
  type HttpCommands,
  type RequestHead,
} from "../link/link.ts";
import { LinkSocket } from "./link-socket.ts";

/** Bytes of a body on their way at the same time. */
const windowBytes = 256 * 1024;
/** Bytes of a streamed reply on their way, up to which another chunk is sent: part of `streamHeldBytes`. */
const aheadBytesMax = 64 * 1024;

/** The HTTP thread of an exchange. */
export interface LinkThread {
  readonly commands: HttpCommands;
  /** Are the bytes of a reply copied when it is sent? */
  readonly copiesReplies: boolean;
  /** The exchange is closed. */
  forget(exchange: LinkExchange): void;
}

export class LinkExchange extends Exchange {
  readonly id: number;
  private readonly thread: LinkThread;
  private readonly head: RequestHead;
  private whole: Buffer | undefined;
  private source: LinkBody | undefined;
  private sink: LinkSink | undefined;
  private socket: LinkSocket | undefined;
  private closers: (() => void)[] | undefined;
  private hasEnded: boolean;
  private isSent: boolean;

  constructor(
    thread: LinkThread,
    connection: Connection,
    id: number,
    head: RequestHead,
    body: Buffer | undefined,
    limits: BodyLimits,
  ) {
    super(connection, head.method, head.target, limits);
    this.id = id;
    this.thread = thread;
    this.head = head;
    this.whole = body;
    this.source = undefined;
    this.sink = undefined;
    this.socket = undefined;
    this.closers = undefined;
    this.hasEnded = false;
    this.isSent = false;
  }

  override header(name: string): string | undefined {
    return fieldOf(this.head.fields, name);
  }

  override headers(): Iterable<readonly [string, string]> {
    return fieldsIn(this.head.fields);
  }

  override get authority(): string {
    return this.head.authority;
  }

  override get hasBody(): boolean {
    return this.head.body !== "none";
  }

  override get isClosed(): boolean {
    return this.hasEnded;
  }

  override whenClosed(onClose: () => void): void {
    if (this.hasEnded) onClose();
    else if (this.closers === undefined) this.closers = [onClose];
    else this.closers.push(onClose);
  }

  override get isReplyTaken(): boolean {
    return this.isSent && this.thread.copiesReplies;
  }

  protected override arrivedBody(bytesMax: number): Buffer | undefined {
    const { whole } = this;
    return whole !== undefined && whole.length <= bytesMax ? whole : undefined;
  }

  protected override rawBody(): Readable {
    if (this.head.body !== "pending") {
      return Readable.from(this.whole === undefined || this.whole.length === 0 ? [] : [this.whole]);
    }
    if (this.source === undefined) {
      this.source = new LinkBody((bytes) => this.thread.commands.pull(this.id, bytes));
      // The client may have gone while the request waited for memory.
      if (this.hasEnded) this.source.destroy();
    }
    return this.source;
  }

  protected override destroy(): void {
    if (this.hasEnded) return;
    this.thread.commands.abort(this.id);
    this.end();
  }

  protected override send(
    status: number,
    headers: ReplyHeaders | undefined,
    contentType: string | undefined,
    body: Buffer | undefined,
  ): void {
    if (this.hasEnded) return;
    const isCompressible = this.limits.compressReplies && contentType === jsonContentType;
    const length = isBodyless(status) ? undefined : (body?.length ?? 0);
    const fields = this.fields(headers, contentType, length);
    if (body !== undefined && body.length > unwatchedBytesMax && this.method !== "HEAD") {
      void this.sendSlowly(body, this.openSink(status, fields, isCompressible));
      return;
    }
    const shown = this.method === "HEAD" ? undefined : body;
    this.isSent = true;
    this.thread.commands.reply(this.id, status, fields, shown, isCompressible);
    this.end();
  }

  protected override open(
    status: number,
    headers: ReplyHeaders | undefined,
    contentType: string | undefined,
  ): Writable {
    const isCompressible = this.limits.compressReplies && contentType === jsonContentType;
    return this.openSink(status, this.fields(headers, contentType, undefined), isCompressible);
  }

  /** Accepts the request for a web socket. */
  acceptSocket(): LinkSocket {
    const { commands } = this.thread;
    commands.acceptSocket(this.id, noFields);
    this.socket = new LinkSocket(this.id, commands, () => this.end());
    return this.socket;
  }

  /** Accepts the request for a web socket that another node answers. @returns the client's side */
  acceptTunnel(): { readonly readable: Readable; readonly writable: Writable } {
    this.thread.commands.acceptTunnel(this.id, noFields);
    this.source = new LinkBody((bytes) => this.thread.commands.pull(this.id, bytes));
    this.sink = this.makeSink();
    return { readable: this.source, writable: this.sink };
  }

  // --- Events of the HTTP thread.

  bodyData(chunk: Buffer, isLast: boolean): void {
    this.source?.arrived(chunk, isLast);
  }

  bodyFailed(failure: BodyFailure, encoding: string): void {
    const error =
      failure === "unknown-encoding"
        ? encodingUnknown(encoding)
        : failure === "wrong-encoding"
          ? bodyBroken(encoding, undefined)
          : new Error("the client ended the request within its body");
    this.source?.destroy(error);
  }

  sent(bytes: number): void {
    if (this.socket !== undefined) this.socket.sent(bytes);
    else this.sink?.sent(bytes);
  }

  message(data: Buffer): void {
    this.socket?.emit("message", data);
  }

  private makeSink(): LinkSink {
    const aheadBytes = this.thread.copiesReplies ? aheadBytesMax : 0;
    return new LinkSink(this.id, this.thread.commands, aheadBytes, () => this.end());
  }

  private openSink(status: number, fields: string, isCompressible: boolean): Writable {
    const { commands } = this.thread;
    this.sink = this.makeSink();
    if (this.hasEnded) this.sink.destroy();
    else commands.open(this.id, status, fields, isCompressible);
    return this.sink;
  }

  /** Closes the exchange, of which the HTTP thread knows nothing any longer. */
  end(): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.thread.forget(this);
    this.sink?.destroy();
    this.socket?.ended();
    const { closers, source } = this;
    if (source !== undefined && !source.readableEnded) source.destroy();
    this.closers = undefined;
    if (closers !== undefined) for (const close of closers) close();
  }

  /** The header fields of a reply. `length`: of its body; undefined: unknown, or there can be none. */
  private fields(
    headers: ReplyHeaders | undefined,
    contentType: string | undefined,
    length: number | undefined,
  ): string {
    let text = "";
    if (contentType !== undefined) text += `\ncontent-type:${contentType}`;
    let hasLength = length === undefined;
    for (const name in headers) {
      const value = headers[name] as string | number | readonly string[];
      if (name === "content-length") hasLength = true;
      if (typeof value === "string") text += `\n${name}:${checked(name, value)}`;
      else if (typeof value === "number") text += `\n${name}:${value}`;
      else for (const one of value) text += `\n${name}:${checked(name, one)}`;
    }
    const { requestTime } = this;
    if (requestTime !== undefined) text += `\nrequest-time:${requestTime}`;
    if (!hasLength) text += `\ncontent-length:${length}`;
    return `${text}\n`;
  }
}

const noFields = "\n";

const wrongInValue = /[^\t\x20-\x7e\x80-\xff]/;

/** @throws TypeError for a value that no header can have */
function checked(name: string, value: string): string {
  if (wrongInValue.test(value)) {
    throw new TypeError(`Invalid character in the value of the header '${name}'.`);
  }
  return value;
}

/** The body of a request as it arrives. */
class LinkBody extends Readable {
  readonly #pull: (bytes: number) => void;
  /** Bytes that were pulled and have not arrived. */
  #pulledBytes = 0;

  constructor(pull: (bytes: number) => void) {
    super({ highWaterMark: windowBytes });
    this.#pull = pull;
    this.on("error", ignore); // those who read learn of it, too
  }

  override _read(): void {
    // Node calls this again after the next chunk only, so that one must be on its way.
    const missing = windowBytes - this.readableLength - this.#pulledBytes;
    if (this.#pulledBytes > 0 && missing < windowBytes / 2) return;
    const bytes = Math.max(missing, windowBytes / 4);
    this.#pulledBytes += bytes;
    this.#pull(bytes);
  }

  arrived(chunk: Buffer, isLast: boolean): void {
    if (this.destroyed) return;
    this.#pulledBytes -= chunk.length;
    if (chunk.length > 0) this.push(chunk);
    if (isLast) this.push(null);
  }
}

/** The body of a streamed reply. It finishes once the operating system has accepted all of it. */
class LinkSink extends Writable {
  readonly #id: number;
  readonly #commands: HttpCommands;
  readonly #aheadBytes: number;
  readonly #onEnd: () => void;
  #unsentBytes = 0;
  #resume: (() => void) | undefined = undefined;
  #isLastSent = false;

  /**
   * `aheadBytes`: unsent bytes up to which a write completes; 0 if chunks are not copied, since the memory of a chunk may be
   * reused once its write has completed. `onEnd`: called once all of it was sent.
   */
  constructor(id: number, commands: HttpCommands, aheadBytes: number, onEnd: () => void) {
    super({ highWaterMark: 64 * 1024 });
    this.#id = id;
    this.#commands = commands;
    this.#aheadBytes = aheadBytes;
    this.#onEnd = onEnd;
    this.on("error", ignore); // the client has gone
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    if (chunk.length === 0) {
      done();
      return;
    }
    this.#unsentBytes += chunk.length;
    // The bytes may be reported as sent within the call.
    this.#resume = done;
    this.#commands.data(this.#id, chunk, false);
    this.#complete();
  }

  override _final(done: () => void): void {
    this.#isLastSent = true;
    this.#resume = () => {
      done();
      this.#onEnd();
    };
    this.#commands.data(this.#id, noBytes, true);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const resume = this.#isLastSent ? undefined : this.#resume;
    this.#resume = undefined;
    resume?.();
    done(error);
  }

  sent(bytes: number): void {
    this.#unsentBytes -= bytes;
    if (this.#isLastSent && bytes > 0) return; // the end is reported by itself
    this.#complete();
  }

  #complete(): void {
    if (this.#unsentBytes > (this.#isLastSent ? 0 : this.#aheadBytes)) return;
    const resume = this.#resume;
    this.#resume = undefined;
    resume?.();
  }
}

const noBytes = Buffer.alloc(0);

function ignore(): void {
  // Nothing to do.
}
