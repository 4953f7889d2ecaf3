/**
 * The part of the server that HTTP threads run: accepts connections on one port with TLS (HTTP/2, HTTP/1.1 and web
 * sockets by ALPN) or without it (HTTP/1.1, and HTTP/2 with prior knowledge), and exchanges requests and replies with
 * the engine thread through a link.
 *
 * Invariants:
 * - Every accepted socket is in `#connections` until it is closed, which is reported after the end of its exchanges.
 * - Bytes of replies that clients do not read are bounded (held-replies.ts), and connections are shared (connection-shares.ts).
 */
import type { Server, Socket } from "node:net";
import * as net from "node:net";
import type { Duplex } from "node:stream";
import * as tls from "node:tls";

import type { HttpCommands, HttpEvents, RequestHead } from "../link/link.ts";
import { tlsPolicy } from "../security/tls-policy.ts";
import { ConnectionShares } from "./connection-shares.ts";
import { FrontConnection } from "./front-connection.ts";
import type { FrontExchange } from "./front-exchange.ts";
import type { FrontHost, FrontLimits } from "./front-host.ts";
import { HeldReplies } from "./held-replies.ts";
import { Http1Front } from "./http1-front.ts";
import { rejectionReply } from "./http1-salvage.ts";
import { Http2Front } from "./http2-front.ts";
import { prepareSocket, setCertificate, unrefAll } from "./listening.ts";

const checkMs = 500;
/** The first bytes of every connection of HTTP/2. */
const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** What is published for metrics. */
export interface FrontCounts {
  readonly connections: number;
  readonly http2: number;
  readonly heldBytes: number;
}

/** Where to listen: an address, or a socket that another HTTP thread listens on. */
export type ListenTarget =
  | { readonly host: string; readonly port: number }
  | { readonly fd: number };

export class HttpFront implements HttpCommands, FrontHost {
  readonly limits: FrontLimits;
  readonly events: HttpEvents;
  isStopping = false;
  readonly #http1: Http1Front;
  readonly #http2: Http2Front;
  readonly #listeners: Server[] = [];
  /** All addresses on which it listens share the connections. */
  #shares: ConnectionShares | undefined = undefined;
  readonly #connections = new Map<number, FrontConnection>();
  readonly #exchanges = new Map<number, FrontExchange>();
  readonly #timer: NodeJS.Timeout;
  #lastConnection = 0;
  #lastExchange = 0;
  readonly #held: HeldReplies;
  readonly #ticketKeys: Buffer;
  #whenIdle: (() => void) | undefined = undefined;

  /** `eventsFor`: returns what is notified by this object, which executes the commands. */
  constructor(limits: FrontLimits, eventsFor: (commands: HttpCommands) => HttpEvents) {
    this.limits = limits;
    this.#ticketKeys = Buffer.from(limits.ticketKeys);
    this.#held = new HeldReplies(limits.heldReplyBytesMax);
    this.events = eventsFor(this);
    this.#http1 = new Http1Front(this);
    this.#http2 = new Http2Front(this);
    this.#timer = setInterval(() => this.#check(), checkMs).unref();
  }

  /** Listens with TLS (`secure`), or without (undefined). @returns the server, once it listens. @throws Node's listen errors */
  async listen(
    target: ListenTarget,
    secure: tls.SecureContextOptions | undefined,
  ): Promise<Server> {
    const server = secure === undefined ? this.#makePlain() : this.#makeSecure(secure);
    this.#shares ??= new ConnectionShares(this.limits.connectionCountMax, secure !== undefined);
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(target, () => {
        server.off("error", reject);
        resolve();
      });
    });
    this.#listeners.push(server);
    return server;
  }

  /** Presents this certificate on new connections. */
  setCertificate(secure: tls.SecureContextOptions): void {
    setCertificate(this.#listeners, { ...secure, ticketKeys: this.#ticketKeys });
  }

  get counts(): FrontCounts {
    return {
      connections: this.#connections.size,
      http2: this.#http2.sessionCount,
      heldBytes: this.#held.bytes,
    };
  }

  /** From now on it does not keep the process alive. */
  unref(): void {
    unrefAll(this.#listeners);
  }

  /**
   * Accepts no more connections, finishes the requests in progress, and resolves; what is open after `timeoutMs` is closed.
   * `closesSocket`: not where other threads listen on the same one.
   */
  async close(timeoutMs: number, closesSocket: boolean): Promise<void> {
    this.isStopping = true;
    if (closesSocket) for (const listener of this.#listeners) listener.close();
    this.#http1.close();
    this.#http2.close();
    if (this.#connections.size > 0) {
      const timer = setTimeout(() => {
        for (const { socket } of this.#connections.values()) socket.destroy();
      }, timeoutMs);
      await new Promise<void>((resolve) => {
        this.#whenIdle = resolve;
      });
      clearTimeout(timer);
    }
    this.#http1.end();
    clearInterval(this.#timer);
  }

  // --- For the protocols.

  nextExchange(): number {
    do {
      this.#lastExchange = (this.#lastExchange + 1) >>> 0;
    } while (this.#exchanges.has(this.#lastExchange));
    return this.#lastExchange;
  }

  accept(exchange: FrontExchange, head: RequestHead, body: Buffer | undefined): void {
    this.#exchanges.set(exchange.id, exchange);
    exchange.began();
    exchange.onOver = this.#forget;
    this.events.request(exchange.connection.id, exchange.id, head, body);
  }

  readonly #forget = (exchange: FrontExchange) => {
    this.#exchanges.delete(exchange.id);
  };

  // --- Commands of the engine thread.

  reply(
    exchange: number,
    status: number,
    fields: string,
    body: Buffer | undefined,
    isCompressible: boolean,
  ): void {
    this.#exchanges.get(exchange)?.reply(status, fields, body, isCompressible);
  }

  open(exchange: number, status: number, fields: string, isCompressible: boolean): void {
    this.#exchanges.get(exchange)?.open(status, fields, isCompressible);
  }

  data(exchange: number, chunk: Buffer, isLast: boolean): void {
    this.#exchanges.get(exchange)?.data(chunk, isLast);
  }

  pull(exchange: number, bytes: number): void {
    this.#exchanges.get(exchange)?.pull(bytes);
  }

  abort(exchange: number): void {
    this.#exchanges.get(exchange)?.abort();
  }

  identify(connection: number, client: string): void {
    const known = this.#connections.get(connection);
    if (known === undefined) return;
    known.client = client;
    this.#shares?.identify(known.socket, known);
  }

  disconnect(connection: number): void {
    this.#connections.get(connection)?.socket.destroy();
  }

  acceptSocket(exchange: number, fields: string): void {
    this.#exchanges.get(exchange)?.acceptSocket(fields);
  }

  acceptTunnel(exchange: number, fields: string): void {
    this.#exchanges.get(exchange)?.acceptTunnel(fields);
  }

  send(exchange: number, chunk: Buffer, isLast: boolean): void {
    this.#exchanges.get(exchange)?.send(chunk, isLast);
  }

  closeSocket(exchange: number, code: number, reason: string): void {
    this.#exchanges.get(exchange)?.closeSocket(code, reason);
  }

  // --- Connections.

  #makeSecure(secure: tls.SecureContextOptions): tls.Server {
    const server = tls.createServer({
      ...secure,
      ...tlsPolicy,
      ALPNProtocols: ["h2", "http/1.1"],
      handshakeTimeout: this.limits.handshakeMs,
      ticketKeys: this.#ticketKeys,
    });
    server.on("connection", (socket) => this.#enter(socket));
    server.on("secureConnection", (socket) => {
      const isHttp2 = socket.alpnProtocol === "h2";
      const certificate = socket.getPeerX509Certificate();
      const connection = this.#opened(socket, true, certificate?.raw);
      (isHttp2 ? this.#http2 : this.#http1).enter(connection);
    });
    // A failed handshake is the client's problem; one that spoke plain HTTP gets an explanation.
    server.on("tlsClientError", (error: NodeJS.ErrnoException, socket) => {
      if (plainCodes.has(error.code)) answerPlain(socket);
      socket.destroy();
    });
    return server;
  }

  #makePlain(): Server {
    return net.createServer({ noDelay: true }, (socket) => {
      if (this.#enter(socket)) this.#dispatchPlain(socket);
    });
  }

  /** @returns false if it was closed, since there is no room for it */
  #enter(socket: Socket): boolean {
    if (this.isStopping) socket.destroy();
    if (socket.destroyed || this.#shares?.enter(socket) !== true) return false;
    prepareSocket(socket);
    return true;
  }

  /** Reads the first bytes, puts them back, and passes the socket to the protocol they belong to. */
  #dispatchPlain(socket: Socket): void {
    const timer = setTimeout(() => socket.destroy(), this.limits.headersMs);
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
      socket.unshift(seen);
      // Node forgets the listener in the next tick only; until then a parser cannot pause the socket.
      process.nextTick(() => {
        if (socket.destroyed) return;
        const connection = this.#opened(socket, false, undefined);
        (isHttp2 ? this.#http2 : this.#http1).enter(connection);
      });
    };
    socket.on("readable", onReadable);
    socket.once("close", () => clearTimeout(timer));
  }

  #opened(socket: Socket, isSecure: boolean, certificate: Buffer | undefined): FrontConnection {
    do {
      this.#lastConnection = (this.#lastConnection + 1) >>> 0;
    } while (this.#connections.has(this.#lastConnection));
    const id = this.#lastConnection;
    const connection = new FrontConnection(id, socket, this.#held);
    this.#connections.set(id, connection);
    this.#shares?.identify(socket, connection);
    const address = socket.remoteAddress ?? "";
    this.events.opened(id, { address, isSecure, certificate });
    socket.once("close", () => this.#closed(connection));
    return connection;
  }

  #closed(connection: FrontConnection): void {
    for (const exchange of [...connection.exchanges.values()]) exchange.closed();
    connection.share.close();
    this.#connections.delete(connection.id);
    this.events.closed(connection.id);
    if (this.#connections.size === 0) this.#whenIdle?.();
  }

  #check(): void {
    const nowMs = performance.now();
    for (const connection of this.#connections.values()) {
      connection.check(nowMs);
      for (const exchange of connection.exchanges.values()) {
        exchange.check(nowMs, this.limits.stallMs);
      }
    }
    this.#http2.check(nowMs);
    this.#held.sweep();
  }
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
