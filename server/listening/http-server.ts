/**
 * The listening server: one port for TLS with HTTP/2, HTTP/1.1 and web sockets by ALPN; or, unsecured, HTTP/1.1 and
 * HTTP/2 with prior knowledge. Identifies the client of each connection, enforces rights and limits, and stops
 * gracefully.
 *
 * The TLS listener is our own and hands each socket to one of Node's two protocol engines, which do not listen
 * themselves, so that identity, limits and shutdown are implemented once for both.
 *
 * Invariants:
 * - Every accepted socket is in `sockets` until it is closed.
 * - A change of a certificate's rights applies to its open connections in the same turn, its expiry within `sweepMs`.
 */
import { EventEmitter, once } from "node:events";
import * as http from "node:http";
import * as net from "node:net";
import type { Duplex } from "node:stream";
import * as tls from "node:tls";
import { processMemory } from "../../engine/base/memory-budget.ts";
import { TurnQueue } from "../../engine/base/turn-queue.ts";
import type { BodyLimits } from "../http/body.ts";
import { Connection } from "../http/connection.ts";
import type { Exchange } from "../http/exchange.ts";
import { HeldReplies, type HeldShare, type ReplyHolder } from "../http/held-replies.ts";
import {
  detachedResponse,
  methodIn,
  parseRejected,
  rejectionReply,
} from "../http-threads/http1-salvage.ts";
import type { Dispatcher } from "../routing/dispatcher.ts";
import type { CertificateUse, ServerServices } from "../routing/services.ts";
import { isAllowed, unsecured } from "../security/access.ts";
import { tlsPolicy } from "../security/tls-policy.ts";
import { ConnectionShares } from "./connection-shares.ts";
import { Http1Connection, type Http1Host } from "./http1-connection.ts";
import { Http1Exchange, originForm } from "./http1-exchange.ts";
import { errorCodes } from "./http2/frames.ts";
import { type Http2Host, Http2Session, preface } from "./http2/http2-session.ts";
import type { Http2Stream } from "./http2/http2-stream.ts";
import { Http2Exchange } from "./http2-exchange.ts";
import { InputScheduler } from "./input-scheduler.ts";
import { listenOn, prepareSocket, setCertificate, unrefAll } from "./listening.ts";
import type { WebSocketAcceptor } from "./web-socket-acceptor.ts";

const sweepMs = 500;

/** Milliseconds that a client has to read why its request was refused. */
const lingerMs = 1_000;

/** First bytes of a new connection above which it waits for a turn of its own. */
const firstBytesMax = 4 * 1024;
/** Headers of one request. */
const headerCountMax = 128;

/** Certificates of which it is remembered when they were used last, besides those with open connections. */
const usedCertificatesMax = 1_000;

export class HttpServer {
  private readonly services: ServerServices;
  private readonly dispatcher: Dispatcher;
  private readonly webSockets: WebSocketAcceptor;
  private readonly bodyLimits: BodyLimits;
  private readonly http1: http.Server;
  private readonly listeners: net.Server[] = [];
  private shares: ConnectionShares | undefined;
  private readonly sockets = new Set<net.Socket>();
  /** Those that node:http does not serve. */
  private readonly http1Connections = new Set<Http1Connection>();
  private readonly http1Host: Http1Host;
  private readonly sessions = new Map<Http2Session, Connection>();
  private readonly connections = new WeakMap<Duplex, Connection>();
  /** The replies to the last HEAD of each socket: until one is sent, its client would not expect a body. */
  private readonly headReplies = new WeakMap<Duplex, http.ServerResponse>();
  private readonly byThumbprint = new Map<string, Set<Connection>>();
  /** When certificates without open connections were used last, as `performance.now()`; those used first are first. */
  private readonly usedMs = new Map<string, number>();
  private readonly sweep: NodeJS.Timeout;
  private readonly forgetChanges: () => void;
  private readonly input = new InputScheduler();
  private readonly held = new HeldReplies();
  /** New connections that sent a request at once. */
  private readonly entering = new TurnQueue();
  private readonly stopping = { isStopping: false };
  private readonly idle = new EventEmitter();

  constructor(services: ServerServices, dispatcher: Dispatcher, webSockets: WebSocketAcceptor) {
    this.services = services;
    this.dispatcher = dispatcher;
    this.webSockets = webSockets;
    const { limits } = services.config;
    this.bodyLimits = {
      bodyBytesMax: limits.bodyBytesMax,
      jsonBytesMax: limits.jsonBytesMax,
      idleMs: limits.bodyIdleMs,
      bytesPerSecondMin: limits.bodyBytesPerSecondMin,
      rateGraceMs: limits.bodyRateGraceMs,
      stallMs: limits.stallMs,
      compressReplies: limits.compressReplies,
    };
    processMemory.limitUse("replies", limits.heldReplyBytesMax);
    processMemory.limitUse("bodies", limits.heldBodyBytesMax);
    this.http1Host = this.makeHttp1Host();
    this.http1 = this.makeHttp1();
    this.forgetChanges = services.certificates.onChange((thumbprint) =>
      this.reconsider(thumbprint),
    );
    this.sweep = setInterval(() => {
      this.reconsiderDates();
      const nowMs = performance.now();
      for (const [session, { open }] of this.sessions) session.look(nowMs, open.size > 0);
      this.endIdle(false);
      this.held.sweep();
    }, sweepMs).unref();
  }

  /**
   * Listens on each of `hosts` with the same port (0: any free one). `secure` undefined: without TLS.
   * @returns the port. @throws Node's listen errors (of the first host; the others are optional)
   */
  async listen(
    hosts: readonly string[],
    port: number,
    secure: tls.SecureContextOptions | undefined,
  ): Promise<number> {
    const isSecure = secure !== undefined;
    const isIdle = ({ open, waiting }: Connection) => open.size === 0 && waiting.length === 0;
    const shares = new ConnectionShares(this.services.config.limits.connectionCountMax, {
      isSecure,
      isIdle,
    });
    this.shares = shares;
    const listening = await listenOn(hosts, port, () => {
      if (secure !== undefined) {
        const listener = this.makeSecure(secure);
        return listener.on("connection", (socket: net.Socket) => this.track(socket, shares));
      }
      return net.createServer({ noDelay: true }, (socket) => {
        if (this.track(socket, shares)) this.enterPlain(socket);
      });
    });
    this.listeners.push(...listening.listeners);
    return listening.port;
  }

  /** Open connections by what is spoken on them; web sockets within HTTP/2 are counted besides their connection. */
  connectionCounts(): { http1: number; http2: number; websocket: number } {
    const http2 = this.sessions.size;
    const { upgradedCount, openCount } = this.webSockets;
    const http1 = Math.max(0, this.sockets.size - http2 - upgradedCount);
    return { http1, http2, websocket: openCount };
  }

  /** There are no HTTP threads. */
  readonly threadFigures = [];
  readonly restartCount = 0;

  /** Presents this certificate on new connections. */
  setCertificate(secure: tls.SecureContextOptions): void {
    setCertificate(this.listeners, secure);
  }

  /** From now on it does not keep the process alive. Call it once it listens. */
  unref(): void {
    unrefAll(this.listeners);
  }

  /** Stops accepting, finishes requests in flight, and resolves; whatever is open after `timeoutMs` is cut off. */
  async close(timeoutMs: number): Promise<void> {
    this.stopping.isStopping = true;
    for (const listener of this.listeners) listener.close();
    this.webSockets.closeAll();
    for (const session of this.sessions.keys()) session.close();
    this.http1.closeIdleConnections();
    this.endIdle(true);
    if (this.sockets.size > 0) {
      const timer = setTimeout(() => {
        for (const socket of this.sockets) socket.destroy();
      }, timeoutMs);
      await once(this.idle, "idle");
      clearTimeout(timer);
    }
    this.http1.close();
    clearInterval(this.sweep);
    this.forgetChanges();
  }

  /** @returns false if it was closed, since there is no room for it */
  private track(socket: net.Socket, shares: ConnectionShares): boolean {
    if (!shares.enter(socket)) return false;
    this.sockets.add(socket);
    prepareSocket(socket);
    socket.once("close", () => {
      this.sockets.delete(socket);
      if (this.sockets.size === 0) this.idle.emit("idle");
    });
    return true;
  }

  private makeSecure(secure: tls.SecureContextOptions): tls.Server {
    const server = tls.createServer({
      ...secure,
      ...tlsPolicy,
      ALPNProtocols: ["h2", "http/1.1"],
      handshakeTimeout: this.services.config.limits.handshakeMs,
    });
    server.on("secureConnection", (socket) => {
      const certificate = socket.getPeerX509Certificate();
      const identity = this.services.certificates.identityOf(certificate);
      const connection = new Connection(identity, certificate, true, socket.remoteAddress ?? "");
      this.remember(connection, socket);
      if (socket.alpnProtocol === "h2") this.enterHttp2(connection, socket);
      else this.enterHttp1(connection, socket);
    });
    // A failed handshake is the client's problem; one that spoke plain HTTP gets an explanation.
    server.on("tlsClientError", (error: NodeJS.ErrnoException, socket) => {
      if (plainCodes.has(error.code)) answerPlain(socket);
      socket.destroy();
    });
    return server;
  }

  private enterPlain(socket: net.Socket): void {
    const connection = new Connection(unsecured, undefined, false, socket.remoteAddress ?? "");
    this.remember(connection, socket);
    this.dispatchPlain(connection, socket);
  }

  /** HTTP/1.1 requests are answered in order. `seen`: bytes that were read already. */
  private enterHttp1(connection: Connection, socket: net.Socket, seen?: Buffer): void {
    connection.isOrdered = true;
    this.heldBy(connection, socket);
    const http1 = new Http1Connection(connection, socket, this.http1Host);
    this.http1Connections.add(http1);
    socket.once("close", () => this.http1Connections.delete(http1));
    if (seen !== undefined) http1.feed(seen);
  }

  private makeHttp1Host(): Http1Host {
    const { bodyLimits, dispatcher, stopping } = this;
    const { keepAliveMs, headersMs } = this.services.config.limits;
    return {
      bodyLimits,
      keepAliveMs,
      headersMs,
      get isStopping() {
        return stopping.isStopping;
      },
      accept: (exchange) => dispatcher.accept(exchange),
      taken: (connection) => dispatcher.turns.taken(connection),
      handOver: (from, unread) => this.handOver(from, unread),
    };
  }

  /** Has node:http serve a connection from now on. */
  private handOver(from: Http1Connection, unread: Buffer): void {
    const { connection, socket } = from;
    this.http1Connections.delete(from);
    connection.pause = () => socket.pause();
    connection.resume = () => socket.resume();
    socket.unshift(unread);
    this.http1.emit("connection", socket);
    withoutStacks(socket);
  }

  /** Ends connections that wait for a request too long, or all that wait for one. */
  private endIdle(isOver: boolean): void {
    const nowMs = performance.now();
    for (const http1 of this.http1Connections) http1.endIdle(nowMs, isOver);
  }

  private enterHttp2(connection: Connection, socket: net.Socket, seen?: Buffer): void {
    const held = this.heldBy(connection, socket);
    const session = new Http2Session(socket, this.http2HostOf(connection, held));
    held.holder = holderOf(session, socket, (isFull) => {
      connection.isAwaitingReader = isFull;
      if (!isFull) this.dispatcher.turns.taken(connection);
    });
    this.sessions.set(session, connection);
    socket.once("close", () => this.sessions.delete(session));
    if (this.stopping.isStopping) session.close();
    if (seen !== undefined) session.feed(seen);
  }

  /** Counts the replies that a connection holds, from now on. */
  private heldBy(connection: Connection, socket: net.Socket): HeldShare {
    const source = {
      get heldBytes() {
        return socket.writableLength;
      },
      get takenBytes() {
        return socket.bytesWritten - socket.writableLength;
      },
    };
    // Requests of an ordered connection wait for their readers in any case.
    const held = this.held.shareOf(holderOf(source, socket, () => undefined));
    connection.held = held;
    socket.once("close", () => held.close());
    return held;
  }

  /** Peeks at the first bytes, puts them back, and hands the socket to the protocol they belong to. */
  private dispatchPlain(connection: Connection, socket: net.Socket): void {
    const timer = setTimeout(() => socket.destroy(), this.services.config.limits.headersMs);
    let seen: Buffer = Buffer.alloc(0);
    const onReadable = () => {
      const chunk = socket.read() as Buffer | null;
      if (chunk === null) return;
      seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
      const length = Math.min(seen.length, preface.length);
      const isHttp2 = seen.subarray(0, length).equals(preface.subarray(0, length));
      if (isHttp2 && length < preface.length) return;
      clearTimeout(timer);
      socket.off("readable", onReadable);
      const enter = () => {
        if (socket.destroyed) return;
        if (!isHttp2) {
          this.enterHttp1(connection, socket, seen);
          return;
        }
        this.enterHttp2(connection, socket, seen);
      };
      // This many bytes are several requests or a large one: such connections are read one per turn.
      if (seen.length > firstBytesMax) this.dispatcher.turns.read(enter);
      else if (this.entering.isOver()) void this.entering.next().then(enter);
      else enter();
    };
    socket.on("readable", onReadable);
    socket.once("close", () => clearTimeout(timer));
  }

  private remember(connection: Connection, socket: net.Socket): void {
    this.connections.set(socket, connection);
    this.shares?.identify(socket, connection);
    socket.once("close", () => this.dispatcher.turns.forget(connection));
    const { thumbprint } = connection.identity;
    if (thumbprint === "") return;
    let known = this.byThumbprint.get(thumbprint);
    if (known === undefined) {
      known = new Set();
      this.byThumbprint.set(thumbprint, known);
    }
    known.add(connection);
    socket.once("close", () => {
      known.delete(connection);
      if (known.size > 0) return;
      this.byThumbprint.delete(thumbprint);
      this.usedMs.delete(thumbprint);
      if (connection.identity.standing !== "known") return;
      this.usedMs.set(thumbprint, connection.usedMs);
      for (const oldest of this.usedMs.keys()) {
        if (this.usedMs.size <= usedCertificatesMax) break;
        this.usedMs.delete(oldest);
      }
    });
  }

  /** The use of a certificate since the server was started. */
  certificateUse(thumbprint: string): CertificateUse {
    let usedMs = this.usedMs.get(thumbprint) ?? null;
    const open = this.byThumbprint.get(thumbprint);
    for (const connection of open ?? []) usedMs = Math.max(usedMs ?? 0, connection.usedMs);
    return { openCount: open?.size ?? 0, usedMs };
  }

  /**
   * A certificate's rights have changed (undefined: those of any): updates identities, and aborts exchanges that are no
   * longer allowed.
   */
  private reconsider(thumbprint: string | undefined): void {
    const { certificates } = this.services;
    const known =
      thumbprint === undefined
        ? [...this.byThumbprint.values()].flatMap((connections) => [...connections])
        : (this.byThumbprint.get(thumbprint) ?? []);
    for (const connection of known) {
      connection.identity = certificates.identityOf(connection.certificate);
      for (const exchange of connection.open) abortUnlessAllowed(exchange);
    }
    this.shares?.reconsider();
    for (const exchange of this.dispatcher.arrivals.open) {
      const { origin } = exchange;
      if (origin === undefined || origin.identity.standing === "unsecured") continue;
      if (thumbprint !== undefined && origin.identity.thumbprint !== thumbprint) continue;
      exchange.origin = { ...origin, ...certificates.identityNamed(origin.identity.thumbprint) };
      abortUnlessAllowed(exchange);
    }
  }

  private reconsiderDates(): void {
    const now = Date.now();
    for (const [thumbprint, connections] of this.byThumbprint) {
      for (const { identity } of connections) {
        const isOver = identity.standing === "known" && now > identity.validUntilMs;
        const hasBegun = identity.standing === "not-yet-valid" && now >= identity.validFromMs;
        if (isOver || hasBegun) this.reconsider(thumbprint);
        break; // all have the same certificate
      }
    }
  }

  private makeHttp1(): http.Server {
    const { limits } = this.services.config;
    const server = http.createServer({
      maxHeaderSize: limits.headerBytesMax + limits.targetLengthMax,
      headersTimeout: limits.headersMs,
      requestTimeout: 0, // bodies have limits of their own: a bulk insert may take hours
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: Math.min(1000, limits.headersMs),
      requireHostHeader: false, // checked below, so that the error reply has our format
    });
    server.maxHeadersCount = 0; // size is limited instead; over the count Node drops headers silently
    server.timeout = 0;
    server.on("request", (request, response) => this.onRequest(request, response, false));
    server.on("checkContinue", (request, response) => this.onRequest(request, response, true));
    server.on("checkExpectation", (request, response) => this.onRequest(request, response, false));
    server.on("upgrade", (request, socket, head) => this.onUpgrade(request, socket, head));
    server.on("connect", (_request, socket) => socket.end(rejectionReply(400)));
    server.on("clientError", (error, socket) => this.onClientError(error, socket));
    // It never listens itself; this event starts its check for slow headers.
    server.emit("listening");
    return server;
  }

  private onRequest(
    request: http.IncomingMessage,
    response: http.ServerResponse,
    awaitsContinue: boolean,
  ): void {
    const connection = this.connections.get(request.socket);
    if (connection === undefined) {
      request.socket.destroy();
      return;
    }
    if (request.rawHeaders.length > 2 * headerCountMax) {
      request.socket.end(rejectionReply(431));
      return;
    }
    if (!hasOneHost(request)) {
      request.socket.end(rejectionReply(400, request.method));
      return;
    }
    if (request.method === "HEAD") this.headReplies.set(request.socket, response);
    response.once("close", () => {
      this.dispatcher.turns.taken(connection);
      // The reply head may have promised keep-alive before the shutdown began.
      if (this.stopping.isStopping) this.http1.closeIdleConnections();
    });
    response.on("error", () => undefined); // the client disconnected
    this.dispatcher.accept(this.exchangeOf(connection, request, response, awaitsContinue));
  }

  private exchangeOf(
    connection: Connection,
    request: http.IncomingMessage,
    response: http.ServerResponse,
    awaitsContinue: boolean,
  ): Http1Exchange {
    const limits = this.bodyLimits;
    return new Http1Exchange(connection, request, response, limits, awaitsContinue, this.stopping);
  }

  private onUpgrade(request: http.IncomingMessage, socket: Duplex, head: Buffer): void {
    const connection = this.connections.get(socket);
    if (connection === undefined) {
      socket.destroy();
      return;
    }
    const response = detachedResponse(request, socket);
    // Upgrades to HTTP/2, and to web sockets where there is none, are declined: the request is answered over HTTP/1.1.
    if (!this.opensWebSocket(request)) {
      this.onRequest(request, response, false);
      return;
    }
    const exchange = this.exchangeOf(connection, request, response, false);
    const release = () => response.detachSocket(socket as net.Socket);
    this.webSockets
      .acceptHttp1(exchange, request, socket, head, release)
      .catch((error: unknown) => {
        this.dispatcher.report(error);
        socket.destroy();
      });
  }

  private opensWebSocket({ method, url = "", headers }: http.IncomingMessage): boolean {
    if (method !== "GET" || headers.upgrade?.toLowerCase() !== "websocket") return false;
    const [path = ""] = originForm(url).split("?");
    return this.services.routes.match("GET", path).endpoint?.route.kind === "websocket";
  }

  /** Requests that Node's parser rejected: an unknown method is served anyway, the rest get an error status. */
  private onClientError(
    error: Error & { code?: string; rawPacket?: Buffer; bytesParsed?: number },
    socket: Duplex,
  ): void {
    if (socket.destroyed || !socket.writable) {
      socket.destroy();
      return;
    }
    if (error.code === "HPE_INVALID_METHOD" && error.rawPacket !== undefined) {
      const request = parseRejected(error.rawPacket, socket as net.Socket);
      if (request !== undefined) {
        socket.removeAllListeners("data");
        this.onRequest(request, detachedResponse(request, socket), false);
        return;
      }
    }
    const isHeadOpen = this.headReplies.get(socket)?.writableEnded === false;
    const method = isHeadOpen ? "HEAD" : methodIn(error.rawPacket, error.bytesParsed);
    if (error.code === "HPE_HEADER_OVERFLOW") refuse(socket, rejectionReply(431, method));
    else if (error.code === "ERR_HTTP_REQUEST_TIMEOUT") refuse(socket, rejectionReply(408, method));
    else if (error.code?.startsWith("HPE_") === true) refuse(socket, rejectionReply(400, method));
    else socket.destroy();
  }

  private http2HostOf(connection: Connection, held: HeldShare): Http2Host {
    const { limits } = this.services.config;
    return {
      limits: {
        headerBytesMax: limits.headerBytesMax,
        headerCountMax,
        streamCountMax: limits.streamsPerConnectionMax,
        headersMs: limits.headersMs,
        keepAliveMs: limits.keepAliveMs,
        stallMs: limits.stallMs,
      },
      input: this.input,
      held,
      get isKnown() {
        return connection.isKnown;
      },
      accept: (stream) => this.onStream(connection, stream),
      report: (error) => this.dispatcher.report(error),
    };
  }

  private onStream(connection: Connection, stream: Http2Stream): void {
    const exchange = new Http2Exchange(connection, stream, this.bodyLimits);
    if (stream.head.protocol !== "websocket") {
      this.dispatcher.accept(exchange);
      return;
    }
    this.webSockets.acceptHttp2(exchange, stream).catch((error: unknown) => {
      this.dispatcher.report(error);
      stream.reset(errorCodes.internal);
    });
  }
}

function holderOf(
  source: Pick<ReplyHolder, "heldBytes" | "takenBytes">,
  socket: net.Socket,
  setFull: (isFull: boolean) => void,
): ReplyHolder {
  return {
    get heldBytes() {
      return source.heldBytes;
    },
    get takenBytes() {
      return source.takenBytes;
    },
    setFull,
    endHolding: () => socket.destroy(),
  };
}

/** What is passed on by who is no node any more has lost its rights, whoever it is for. */
function abortUnlessAllowed(exchange: Exchange): void {
  const { requirement, databaseName, origin, identity, connection } = exchange;
  if (requirement === undefined) return;
  const isTold = origin === undefined || connection.identity.isNode;
  if (!isTold || !isAllowed(identity, requirement, databaseName)) exchange.abort();
}

/** OpenSSL's codes for bytes that are not TLS: it recognizes some HTTP methods, and not the others. */
const plainCodes: ReadonlySet<string | undefined> = new Set([
  "ERR_SSL_HTTP_REQUEST",
  "ERR_SSL_WRONG_VERSION_NUMBER",
]);

/** Answers a client that spoke plain HTTP on the TLS port. */
function answerPlain(socket: tls.TLSSocket): void {
  // The raw socket below the TLS socket, which has no public name in Node; without it no answer is sent.
  const { _parent: raw } = socket as unknown as { readonly _parent?: Duplex | null };
  if (!(raw instanceof net.Socket) || !raw.writable) return;
  raw.end(
    rejectionReply(
      400,
      undefined,
      "This port speaks HTTPS, and the request came without TLS. Write https:// instead of http://.",
    ),
  );
}

/** HTTP/1.1 requires exactly one Host; Node would take the first of several. */
function hasOneHost(request: http.IncomingMessage): boolean {
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
  socket.on("data", () => undefined);
  socket.end(reply);
  setTimeout(() => socket.destroy(), lingerMs).unref();
}

/**
 * When a connection ends with an error, Node destroys each request waiting on it with an error of its own: for a
 * thousand pipelined requests, collecting stack traces that nobody reads took 200 milliseconds.
 */
function withoutStacks(socket: net.Socket): void {
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
