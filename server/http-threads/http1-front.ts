/**
 * HTTP/1.1 on an HTTP thread: the requests of node:http as exchanges.
 *
 * Invariants:
 * - The requests of a connection are reported one after the other, the next once the previous reply has been read.
 * - A body that is left unread ends the connection after the reply, so that the client can read why.
 */
import { createHash } from "node:crypto";
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeader,
  type Server,
  type ServerResponse,
} from "node:http";
import type { Socket } from "node:net";
import type { Duplex, Readable, Writable } from "node:stream";
import type { RequestHead } from "../link/link.ts";
import type { FrontConnection } from "./front-connection.ts";
import { FrontExchange } from "./front-exchange.ts";
import type { FrontHost } from "./front-host.ts";
import {
  detachedResponse,
  methodIn,
  parseRejected,
  rejectedPart,
  rejectionReply,
} from "./http1-salvage.ts";
import { headersOf } from "./reply-head.ts";
import { encodingOf, requestFields } from "./request-fields.ts";

/** Milliseconds that a client has to read why its request was refused. */
const lingerMs = 1_000;
/** Requests that wait on a connection before nothing more is read of it. */
const pipelinedMax = 32;
/** An unread body of at most this many bytes is skipped, so that the connection can be used again. */
const skippedBytesMax = 64 * 1024;

interface Request {
  readonly message: IncomingMessage;
  /** Made by Node; undefined: it is made when the request begins, since a socket serves one response at a time. */
  readonly response: ServerResponse | undefined;
  /** Does the client wait for "100 Continue" before it sends the body? */
  readonly awaitsContinue: boolean;
  /** Of a request for a web socket: the bytes after it. */
  readonly upgradeHead: Buffer | undefined;
}

/** A connection of HTTP/1.1. */
interface Ordered {
  readonly connection: FrontConnection;
  readonly waiting: Request[];
  isBusy: boolean;
  /** Is nothing read of it, because too many requests wait? */
  isFull: boolean;
  /** The reply to the last HEAD: until it is sent, its client does not expect a body. */
  headReply: ServerResponse | undefined;
}

export class Http1Front {
  readonly #host: FrontHost;
  readonly #server: Server;
  readonly #connections = new Map<Duplex, Ordered>();

  constructor(host: FrontHost) {
    this.#host = host;
    const { limits } = host;
    const server = createServer({
      maxHeaderSize: limits.headerBytesMax + limits.targetLengthMax,
      headersTimeout: limits.headersMs,
      requestTimeout: 0, // bodies have limits of their own: a bulk insert may take hours
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: Math.min(1000, limits.headersMs),
      requireHostHeader: false, // checked below, so that the error reply has our format
    });
    server.maxHeadersCount = 0; // size is limited instead; over the count Node drops headers silently
    server.timeout = 0;
    const arrived = (message: IncomingMessage, response: ServerResponse, awaitsContinue = false) =>
      this.#arrived({ message, response, awaitsContinue, upgradeHead: undefined });
    server.on("request", (message, response) => arrived(message, response));
    server.on("checkContinue", (message, response) => arrived(message, response, true));
    server.on("checkExpectation", (message, response) => arrived(message, response));
    server.on("upgrade", (message, _socket, head) => this.#upgrade(message, head));
    server.on("connect", (_message, socket) => socket.end(rejectionReply(400)));
    server.on("clientError", (error, socket) => this.#onClientError(error, socket));
    // It never listens itself; this event starts its check for slow headers.
    server.emit("listening");
    this.#server = server;
  }

  /** Serves a connection. What was read of it has been put back. */
  enter(connection: FrontConnection): void {
    const { socket } = connection;
    const ordered: Ordered = {
      connection,
      waiting: [],
      isBusy: false,
      isFull: false,
      headReply: undefined,
    };
    this.#connections.set(socket, ordered);
    socket.once("close", () => this.#connections.delete(socket));
    this.#server.emit("connection", socket);
    withoutStacks(socket);
    // Node resumes the socket by itself: at its start, and whenever replies have been sent.
    socket.on("resume", () => {
      if (ordered.isFull) socket.pause();
    });
  }

  /** Takes no new requests, and ends connections without requests. */
  close(): void {
    this.#server.closeIdleConnections();
  }

  /** Releases the timers. */
  end(): void {
    this.#server.close();
  }

  #arrived(request: Request): void {
    const { message } = request;
    const ordered = this.#connections.get(message.socket);
    if (ordered === undefined) {
      message.socket.destroy();
      return;
    }
    if (message.rawHeaders.length > 2 * this.#host.limits.headerCountMax) {
      message.socket.end(rejectionReply(431, message.method));
      return;
    }
    if (!hasOneHost(message)) {
      message.socket.end(rejectionReply(400, message.method));
      return;
    }
    if (!ordered.isBusy) {
      this.#begin(ordered, request);
      return;
    }
    ordered.waiting.push(request);
    if (ordered.waiting.length < pipelinedMax) return;
    ordered.isFull = true;
    message.socket.pause();
  }

  #begin(ordered: Ordered, request: Request): void {
    const { connection } = ordered;
    const { message, awaitsContinue, upgradeHead } = request;
    const response = request.response ?? detachedResponse(message, message.socket);
    ordered.isBusy = true;
    if (message.method === "HEAD") ordered.headReply = response;
    const head = requestHead(message, upgradeHead !== undefined);
    const exchange = new Http1Exchange(this.#host, connection, message, response, head, {
      awaitsContinue,
      upgradeHead,
    });
    connection.exchanges.set(exchange.id, exchange);
    response.on("error", ignore); // the client has disconnected
    response.once("close", () => {
      exchange.closed();
      this.#next(ordered);
    });
    // A body for which the client awaits permission is not awaited here.
    if (awaitsContinue) this.#host.accept(exchange, head, undefined);
    else exchange.begin(this.#host, head, message, message.headers["content-length"]);
  }

  /** The reply has been read: the next request may begin. */
  #next(ordered: Ordered): void {
    ordered.isBusy = false;
    // The head of the reply may have promised to keep the connection before the server began to stop.
    if (this.#host.isStopping) this.#server.closeIdleConnections();
    const { socket } = ordered.connection;
    if (socket.destroyed) return;
    const request = ordered.waiting.shift();
    if (request === undefined) return;
    if (ordered.isFull && ordered.waiting.length <= pipelinedMax / 2) {
      ordered.isFull = false;
      socket.resume();
    }
    this.#begin(ordered, request);
  }

  #upgrade(message: IncomingMessage, head: Buffer): void {
    // Upgrades to HTTP/2 are declined: the request is answered over HTTP/1.1.
    const isSocket = message.headers.upgrade?.toLowerCase() === "websocket";
    const upgradeHead = isSocket && message.method === "GET" ? head : undefined;
    this.#arrived({ message, response: undefined, awaitsContinue: false, upgradeHead });
  }

  /** Requests that Node's parser rejected: an unknown method is served anyway, the rest get an error status. */
  #onClientError(
    error: Error & { code?: string; rawPacket?: Buffer; bytesParsed?: number },
    socket: Duplex,
  ): void {
    if (socket.destroyed || !socket.writable) {
      socket.destroy();
      return;
    }
    const { rawPacket, bytesParsed } = error;
    const rejected = rawPacket === undefined ? undefined : rejectedPart(rawPacket, bytesParsed);
    if (error.code === "HPE_INVALID_METHOD" && rejected !== undefined) {
      const message = parseRejected(rejected, socket as Socket);
      if (message !== undefined) {
        socket.removeAllListeners("data");
        const request = { response: undefined, awaitsContinue: false, upgradeHead: undefined };
        this.#arrived({ message, ...request });
        return;
      }
    }
    const isHeadOpen = this.#connections.get(socket)?.headReply?.writableEnded === false;
    const method = isHeadOpen ? "HEAD" : rejected && methodIn(rejected);
    if (error.code === "HPE_HEADER_OVERFLOW") refuse(socket, rejectionReply(431, method));
    else if (error.code === "ERR_HTTP_REQUEST_TIMEOUT") refuse(socket, rejectionReply(408, method));
    else if (error.code?.startsWith("HPE_") === true) refuse(socket, rejectionReply(400, method));
    else socket.destroy();
  }
}

class Http1Exchange extends FrontExchange {
  readonly #host: FrontHost;
  readonly #message: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #awaitsContinue: boolean;
  readonly #upgradeHead: Buffer | undefined;
  #isRead = false;

  constructor(
    host: FrontHost,
    connection: FrontConnection,
    message: IncomingMessage,
    response: ServerResponse,
    head: RequestHead,
    request: Pick<Request, "awaitsContinue" | "upgradeHead">,
  ) {
    const encoding = head.body === "none" ? "" : encodingOf(message.headers["content-encoding"]);
    super(host.nextExchange(), connection, head, encoding, host.events);
    this.#host = host;
    this.#message = message;
    this.#response = response;
    this.#awaitsContinue = request.awaitsContinue;
    this.#upgradeHead = request.upgradeHead;
  }

  protected override upgrade(fields: string): Duplex {
    const { socket } = this.#message;
    this.#response.detachSocket(socket);
    const key = this.#message.headers["sec-websocket-key"];
    let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";
    if (key !== undefined) head += `Sec-WebSocket-Accept: ${acceptance(key)}\r\n`;
    for (const [name, value] of Object.entries(headersOf(fields))) {
      head += `${titleCase(name)}: ${value}\r\n`;
    }
    socket.write(`${head}\r\n`, "latin1");
    if (this.#upgradeHead !== undefined && this.#upgradeHead.length > 0) {
      socket.unshift(this.#upgradeHead);
    }
    socket.once("close", () => this.closed());
    return socket;
  }

  protected override source(): Readable {
    this.#isRead = true;
    if (this.#awaitsContinue) this.#response.writeContinue();
    return this.#message;
  }

  protected override respond(status: number, fields: string, body: Buffer | undefined): void {
    const response = this.#response;
    if (response.destroyed) return;
    if (this.hasBody && !this.#message.complete) this.#leaveBody();
    this.#writeHead(status, fields);
    response.end(this.method === "HEAD" ? undefined : body);
  }

  protected override respondHead(status: number, fields: string): Writable {
    if (!this.#response.destroyed) this.#writeHead(status, fields);
    return this.#response;
  }

  protected override cut(): void {
    this.#message.socket.destroy();
  }

  protected override get waitingBytes(): number {
    return this.#response.destroyed ? 0 : this.#response.writableLength;
  }

  #writeHead(status: number, fields: string): void {
    const response = this.#response;
    if (this.#host.isStopping) response.shouldKeepAlive = false;
    const headers = headersOf(fields);
    const out: OutgoingHttpHeader[] = [];
    for (const name in headers) out.push(titleCase(name), headers[name] as OutgoingHttpHeader);
    response.writeHead(status, out);
  }

  /** The rest of the body is not wanted. A small untouched one is already in transit, and is skipped. */
  #leaveBody(): void {
    const length = Number(this.#message.headers["content-length"] ?? Number.NaN);
    if (!this.#isRead && !this.#awaitsContinue && length <= skippedBytesMax) {
      const timer = setTimeout(() => this.cut(), lingerMs);
      this.#message.once("close", () => clearTimeout(timer));
      this.#message.resume();
      return;
    }
    // Closing with bytes unread would make the system discard the reply in transit.
    this.#response.setHeader("Connection", "close");
    const { socket } = this.#message;
    socket.destroySoon = () => {
      socket.end();
      const timer = setTimeout(() => socket.destroy(), lingerMs);
      socket.once("close", () => clearTimeout(timer));
    };
  }
}

function requestHead(message: IncomingMessage, isWebSocket: boolean): RequestHead {
  const { headers } = message;
  const length = headers["content-length"];
  const hasBody =
    length === undefined ? headers["transfer-encoding"] !== undefined : length !== "0";
  return {
    method: message.method ?? "GET",
    target: originForm(message.url ?? "/"),
    authority: headers.host ?? "",
    fields: requestFields(headers, hasBody && encodingOf(headers["content-encoding"]) !== ""),
    body: hasBody ? "pending" : "none",
    isWebSocket,
  };
}

/** `GET http://host/path` is legal on the wire and means `/path`. */
function originForm(url: string): string {
  if (url.startsWith("/")) return url;
  const match = /^https?:\/\/[^/?]*(.*)$/i.exec(url);
  return match?.[1] || "/";
}

/** The proof that the request for a web socket was understood (RFC 6455, 4.2.2). */
function acceptance(key: string): string {
  return createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
}

const titles = new Map<string, string>([
  ["etag", "ETag"],
  ["www-authenticate", "WWW-Authenticate"],
]);

/** `content-type` -> `Content-Type`, the usual form in HTTP/1.1. Names come from code, so they are few. */
function titleCase(name: string): string {
  let title = titles.get(name);
  if (title === undefined) {
    title = name.replace(/(^|-)[a-z]/g, (match) => match.toUpperCase());
    if (titles.size < 500) titles.set(name, title);
  }
  return title;
}

/** HTTP/1.1 requires exactly one Host; Node would take the first of several. */
function hasOneHost(request: IncomingMessage): boolean {
  let count = 0;
  const { rawHeaders } = request;
  for (let position = 0; position < rawHeaders.length; position += 2) {
    const name = rawHeaders[position];
    if (name?.length === 4 && name.toLowerCase() === "host") count++;
  }
  return (
    count === 1 ||
    (count === 0 && (request.httpVersion === "1.0" || request.headers.host !== undefined))
  );
}

/** Replies and ends the connection. Input is discarded for `lingerMs`: unread bytes would lose the reply. */
function refuse(socket: Duplex, reply: string): void {
  socket.removeAllListeners("data");
  socket.on("data", ignore);
  socket.end(reply);
  setTimeout(() => socket.destroy(), lingerMs).unref();
}

/**
 * When a connection ends with an error, Node destroys each request waiting on it with an error of its own: for a
 * thousand pipelined requests, collecting stack traces that nobody reads took 200 milliseconds.
 */
function withoutStacks(socket: Socket): void {
  let limit = 0;
  socket.prependListener("close", () => {
    limit = Error.stackTraceLimit;
    Error.stackTraceLimit = 0;
  });
  // Listeners run synchronously, in order of registration.
  socket.on("close", () => {
    Error.stackTraceLimit = limit;
  });
}

function ignore(): void {
  // Nothing to do.
}
