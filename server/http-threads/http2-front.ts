/** HTTP/2 on an HTTP thread: the streams of node:http2 as exchanges. */
import {
  constants,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { Duplex, Readable, Writable } from "node:stream";
import type { RequestHead } from "../link/link.ts";
import type { FrontConnection } from "./front-connection.ts";
import { FrontExchange } from "./front-exchange.ts";
import type { FrontHost } from "./front-host.ts";
import { headersOf } from "./reply-head.ts";
import { encodingOf, requestFields } from "./request-fields.ts";
import { SessionWatch } from "./session-watch.ts";

/** Flow-control windows for bodies of requests, in bytes: of a stream, and of a connection. */
const streamWindowBytes = 1024 * 1024;
const connectionWindowBytes = 8 * 1024 * 1024;
/** Memory of a session in MB, as Node counts it: windows and queued replies. */
const sessionMegabytesMax = 64;
/** Milliseconds that an idle session has to end by itself after it was asked to close. */
const farewellMs = 1_000;
/** Milliseconds that a client has to read a reply before the rest of its request is refused. */
const replyReadMs = 250;

interface Session {
  readonly connection: FrontConnection;
  readonly watch: SessionWatch;
}

export class Http2Front {
  readonly #host: FrontHost;
  readonly #server: Http2Server;
  readonly #sessions = new Map<ServerHttp2Session, Session>();
  /** The connection whose session begins. */
  #entering: FrontConnection | undefined = undefined;

  constructor(host: FrontHost) {
    this.#host = host;
    const { limits } = host;
    this.#server = createServer({
      maxSessionMemory: sessionMegabytesMax,
      maxSessionRejectedStreams: 1000,
      maxHeaderListPairs: limits.headerCountMax + 4,
      settings: {
        enableConnectProtocol: true,
        initialWindowSize: streamWindowBytes,
        maxConcurrentStreams: limits.streamCountMax,
        maxHeaderListSize: limits.headerBytesMax,
      },
    });
    this.#server.on("session", (session) => this.#begin(session));
    this.#server.on("sessionError", ignore); // the session is destroyed
  }

  get sessionCount(): number {
    return this.#sessions.size;
  }

  /** Serves a connection. What was read of it has been put back. */
  enter(connection: FrontConnection): void {
    const { socket } = connection;
    this.#entering = connection;
    this.#server.once("session", (session: ServerHttp2Session) => endReadsWith(session, socket));
    this.#server.emit("connection", socket);
    this.#entering = undefined;
  }

  /** Takes no new requests, and ends each session once its requests are answered. */
  close(): void {
    for (const session of this.#sessions.keys()) session.close();
  }

  /** Ends sessions that abuse the protocol, or are idle. To be called twice a second. */
  check(nowMs: number): void {
    const { keepAliveMs } = this.#host.limits;
    for (const [session, { connection, watch }] of this.#sessions) {
      watch.check(connection.exchanges.values());
      const idleMs = nowMs - connection.usedMs;
      if (idleMs > keepAliveMs) session.close();
      // A session with unfinished headers does not close by itself.
      if (idleMs > keepAliveMs + farewellMs) session.destroy();
    }
  }

  #begin(session: ServerHttp2Session): void {
    const connection = this.#entering;
    if (connection === undefined) {
      session.destroy();
      return;
    }
    const watch = new SessionWatch(session);
    this.#sessions.set(session, { connection, watch });
    session.once("close", () => this.#sessions.delete(session));
    session.setLocalWindowSize(connectionWindowBytes);
    if (this.#host.isStopping) session.close();
    session.on("stream", (stream, headers) => {
      watch.began(stream);
      this.#accept(connection, watch, stream, headers);
    });
  }

  /** Hot. */
  #accept(
    connection: FrontConnection,
    watch: SessionWatch,
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
  ): void {
    stream.on("error", ignore); // resets by the client arrive here
    const head = requestHead(headers, stream);
    const exchange = new Http2Exchange(this.#host, connection, stream, head, headers);
    connection.exchanges.set(exchange.id, exchange);
    stream.on("close", () => {
      watch.ended(stream);
      exchange.closed();
    });
    connection.whenFree(() => {
      if (!exchange.isOver) exchange.begin(this.#host, head, stream, headers["content-length"]);
    });
  }
}

/** A stream as an exchange. */
class Http2Exchange extends FrontExchange {
  readonly #stream: ServerHttp2Stream;

  constructor(
    host: FrontHost,
    connection: FrontConnection,
    stream: ServerHttp2Stream,
    head: RequestHead,
    headers: IncomingHttpHeaders,
  ) {
    const encoding = head.body === "none" ? "" : encodingOf(headers["content-encoding"]);
    super(host.nextExchange(), connection, head, encoding, host.events);
    this.#stream = stream;
  }

  protected override upgrade(fields: string): Duplex {
    this.#stream.respond({ ":status": 200, ...headersOf(fields) });
    return this.#stream;
  }

  protected override source(): Readable {
    return this.#stream;
  }

  protected override respond(status: number, fields: string, body: Buffer | undefined): void {
    const stream = this.#stream;
    if (stream.destroyed || stream.closed) return;
    const head = headersOf(fields);
    head[":status"] = status;
    if (body === undefined || body.length === 0) stream.respond(head, { endStream: true });
    else {
      stream.respond(head);
      stream.end(body);
    }
    if (!stream.endAfterHeaders && !stream.readableEnded) this.#refuseBody();
  }

  protected override respondHead(status: number, fields: string): Writable {
    const stream = this.#stream;
    if (!stream.destroyed && !stream.closed) {
      stream.respond({ ":status": status, ...headersOf(fields) });
      if (!stream.endAfterHeaders && !stream.readableEnded) {
        stream.once("finish", () => this.#refuseBody());
      }
    }
    return stream;
  }

  protected override cut(): void {
    const stream = this.#stream;
    if (stream.destroyed) return;
    if (!stream.headersSent) {
      stream.close(constants.NGHTTP2_CANCEL);
      return;
    }
    // `close` may end the stream, and half a reply would look complete: an error resets it (NGHTTP2_INTERNAL_ERROR).
    stream.destroy(new Error("The reply was cut off."));
  }

  protected override get waitingBytes(): number {
    return this.#stream.destroyed ? 0 : this.#stream.bufferSize;
  }

  /**
   * Signals that the rest of the body is not wanted (RFC 9113, 8.1). Clients that get the reset with the reply lose the
   * reply, so what arrives is dropped for a while.
   */
  #refuseBody(): void {
    const stream = this.#stream;
    stream.resume();
    setTimeout(() => {
      if (!stream.destroyed) stream.close(constants.NGHTTP2_NO_ERROR);
    }, replyReadMs).unref();
  }
}

function requestHead(headers: IncomingHttpHeaders, stream: ServerHttp2Stream): RequestHead {
  const isWebSocket = headers[":method"] === "CONNECT" && headers[":protocol"] === "websocket";
  const hasBody = !stream.endAfterHeaders && !isWebSocket;
  return {
    method: headers[":method"] ?? "",
    target: headers[":path"] ?? "",
    authority: headers[":authority"] || (headers.host ?? ""),
    fields: requestFields(headers, hasBody && encodingOf(headers["content-encoding"]) !== ""),
    body: hasBody ? "pending" : "none",
    isWebSocket,
  };
}

function ignore(): void {
  // Nothing to do.
}

/**
 * In the next tick Node passes the session what the socket had read before, chunk by chunk, and continues after a chunk
 * has ended the session: then it throws outside any handler (`setupHandle` in lib/internal/http2/core.js, Node 20 to
 * 26). Reads therefore return null once the session is destroyed.
 */
function endReadsWith(session: ServerHttp2Session, socket: Duplex): void {
  const read = socket.read;
  socket.read = (size?: number) =>
    session.destroyed ? null : (read.call(socket, size) as unknown);
  setImmediate(() => {
    socket.read = read;
  });
}
