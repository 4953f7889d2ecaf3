/**
 * When requests begin: at once while the server is not busy, else connection by connection, so that a thousand requests in
 * one packet hold up nobody else. A request whose client gave up while it waited is never begun, and costs nothing.
 *
 * Knows nothing of what a request is, but that it belongs to a connection and can have been given up.
 *
 * Invariants:
 * - Requests of one connection begin in the order in which they came. On an ordered one (HTTP/1.1) the next begins when the reply
 *   before it was taken: pipelined requests are not worked on ahead of their reader.
 * - Beginning requests takes no more than `turnMs` of a turn of the event loop, and the one that went over it.
 * - Of the connections that send requests ahead of their replies, one is read in a turn: a packet may have a thousand.
 */
import type { Connection } from "./connection.ts";
import type { Exchange } from "./exchange.ts";

/** Milliseconds in one turn of the event loop that requests are begun. */
const turnMs = 4;
/** Requests that wait on an ordered connection, above which nothing more is read from it. */
const pipelinedMax = 32;

export class RequestTurns {
  readonly #begin: (exchange: Exchange) => void;
  /** Milliseconds of the present turn. */
  #usedMs = 0;
  #isScheduled = false;
  /** Connections with requests that may begin, each once. */
  #ready: Connection[] = [];
  /** Connections to be read again, or for the first time: one in a turn. */
  #unread: (() => void)[] = [];
  /** Requests that have not begun. */
  waitingCount = 0;

  constructor(begin: (exchange: Exchange) => void) {
    this.#begin = begin;
  }

  /** Begins a request, now or later. Hot. */
  add(exchange: Exchange): void {
    const { connection } = exchange;
    if (this.#usedMs < turnMs && connection.waiting.length === 0 && !connection.isAwaitingReader) {
      this.#run(exchange, exchange.startedMs);
      return;
    }
    connection.waiting.push(exchange);
    this.waitingCount++;
    if (connection.waiting.length === pipelinedMax && connection.isOrdered) connection.pause?.();
    if (connection.waiting.length === 1 && !connection.isAwaitingReader)
      this.#makeReady(connection);
  }

  /** The reply on an ordered connection was taken: the next request may begin. */
  taken(connection: Connection): void {
    connection.isAwaitingReader = false;
    if (connection.waiting.length > 0) this.#makeReady(connection);
  }

  /** Calls `read`, which reads from a connection that may have much to say, in a turn in which no other such does. */
  read(read: () => void): void {
    this.#unread.push(read);
    if (this.#unread.length === 1) setImmediate(() => this.#readNext());
  }

  /** The connection has ended: what waits on it is forgotten. */
  forget(connection: Connection): void {
    this.waitingCount -= connection.waiting.length;
    connection.waiting.length = 0;
  }

  #readNext(): void {
    this.#unread.shift()?.();
    if (this.#unread.length > 0) setImmediate(() => this.#readNext());
  }

  #run(exchange: Exchange, startedMs: number): void {
    if (exchange.isClosed) return;
    if (exchange.connection.isOrdered) exchange.connection.isAwaitingReader = true;
    this.#begin(exchange);
    this.#usedMs += performance.now() - startedMs;
    if (this.#usedMs >= turnMs) this.#schedule();
  }

  #makeReady(connection: Connection): void {
    this.#ready.push(connection);
    if (this.#usedMs >= turnMs || this.#ready.length > 1) this.#schedule();
    else this.#drain();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#usedMs = 0;
      this.#drain();
    });
  }

  /** One request of each connection after the other. */
  #drain(): void {
    while (this.#usedMs < turnMs) {
      const connection = this.#ready.shift();
      if (connection === undefined) return;
      const exchange = connection.waiting.shift();
      if (exchange === undefined) continue;
      this.waitingCount--;
      if (connection.waiting.length === pipelinedMax / 2 && connection.isOrdered) {
        this.read(() => connection.resume?.());
      }
      this.#run(exchange, performance.now());
      if (connection.waiting.length > 0 && !connection.isAwaitingReader) {
        this.#ready.push(connection);
      }
    }
    this.#schedule();
  }
}
