/**
 * An HTTP/1.1 connection. Requests that arrive whole and plain, as nearly all do, are parsed here, which takes half of
 * node:http's processor time; the first other one hands the connection over to node:http, for good.
 *
 * Invariants:
 * - One request is in progress at a time. What arrives meanwhile waits, and reading is paused: no more than one read of
 *   the system is held.
 * - The connection is handed over between two requests, with all bytes that no request has consumed.
 */
import type { Socket } from "node:net";
import type { BodyLimits } from "../http/body.ts";
import type { Connection } from "../http/connection.ts";
import type { Exchange } from "../http/exchange.ts";
import { WholeExchange, type WholeHost } from "./whole-exchange.ts";
import { parseWholeRequest } from "./whole-request.ts";

/** What a connection needs of the server. */
export interface Http1Host {
  readonly bodyLimits: BodyLimits;
  /** Milliseconds that an idle connection stays open, and those until its first request. */
  readonly keepAliveMs: number;
  readonly headersMs: number;
  readonly isStopping: boolean;
  /** Queues a request. */
  accept(exchange: Exchange): void;
  /** The reply to a connection's request has left. */
  taken(connection: Connection): void;
  /** From now on node:http serves the connection; it reads `unread` first. */
  handOver(from: Http1Connection, unread: Buffer): void;
}

export class Http1Connection implements WholeHost {
  readonly socket: Socket;
  readonly connection: Connection;
  readonly #host: Http1Host;
  #current: WholeExchange | undefined;
  #unread: Buffer | undefined;
  #isServing = false;
  /** The method of the last request that was served here. */
  lastMethod: string | undefined = undefined;
  /** Since when it is idle, in milliseconds of `performance.now()`. */
  #idleSinceMs = performance.now();
  readonly #onData = (chunk: Buffer) => this.feed(chunk);
  readonly #onClose = () => this.#current?.end();

  constructor(connection: Connection, socket: Socket, host: Http1Host) {
    this.socket = socket;
    this.connection = connection;
    this.#host = host;
    socket.on("data", this.#onData);
    socket.on("close", this.#onClose);
  }

  get keepAliveMs(): number {
    return this.#host.keepAliveMs;
  }

  get isStopping(): boolean {
    return this.#host.isStopping;
  }

  /** Takes bytes that the socket has read. Hot. */
  feed(chunk: Buffer): void {
    this.#unread = this.#unread === undefined ? chunk : Buffer.concat([this.#unread, chunk]);
    if (this.#current === undefined) this.#serve();
    else this.socket.pause();
  }

  finish(isLast: boolean): void {
    this.#current?.end();
    this.#current = undefined;
    this.#idleSinceMs = performance.now();
    this.#host.taken(this.connection);
    if (isLast) this.socket.end();
    else if (this.#unread !== undefined) this.#serve();
    if (this.#current === undefined && this.socket.isPaused()) this.socket.resume();
  }

  /** Ends a connection that waits for a request: for too long, or at all with `isOver`. */
  endIdle(nowMs: number, isOver: boolean): void {
    if (this.#current !== undefined) return;
    const patienceMs =
      this.lastMethod !== undefined ? this.#host.keepAliveMs : this.#host.headersMs;
    if (isOver || nowMs - this.#idleSinceMs > patienceMs) this.socket.destroy();
  }

  /** Begins the requests in `#unread`, one after the other. */
  #serve(): void {
    if (this.#isServing) return;
    this.#isServing = true;
    while (this.#current === undefined && this.#unread !== undefined && !this.socket.destroyed) {
      const bytes: Buffer = this.#unread;
      const request = parseWholeRequest(bytes, 0);
      if (request === null) {
        this.#handOver(bytes);
        break;
      }
      this.#unread = request.end === bytes.length ? undefined : bytes.subarray(request.end);
      this.lastMethod = request.head.method;
      this.#current = new WholeExchange(this.connection, request, this.#host.bodyLimits, this);
      this.#host.accept(this.#current);
    }
    this.#isServing = false;
  }

  #handOver(unread: Buffer): void {
    const { socket } = this;
    socket.off("data", this.#onData);
    socket.off("close", this.#onClose);
    this.#unread = undefined;
    this.#host.handOver(this, unread);
  }
}
