/**
 * Schedules the start of requests: immediately while the server is not busy, else round-robin over the connections, so
 * that a thousand requests in one packet delay no other client. A request that its client has aborted while it waited
 * never starts.
 *
 * It uses only the connection, the start time, and the aborted state of a request.
 *
 * Invariants:
 * - Requests of one connection begin in order of arrival.
 * - Starting requests takes at most `sliceMs` of an event-loop tick, plus the request that exceeded it.
 */
import type { Connection } from "../http/connection.ts";
import type { Exchange } from "../http/exchange.ts";

/** Time slice for starting requests, per event-loop tick, in milliseconds. */
const sliceMs = 4;

export class RequestScheduler {
  readonly #begin: (exchange: Exchange) => void;
  /** Time used in the current tick, in milliseconds. */
  #usedMs = 0;
  #isScheduled = false;
  /** Connections with requests that may begin, each once. */
  #ready: Connection[] = [];
  /** Requests that have not begun. */
  waitingCount = 0;

  constructor(begin: (exchange: Exchange) => void) {
    this.#begin = begin;
  }

  /** Begins a request, now or later. Hot. */
  add(exchange: Exchange): void {
    const { connection } = exchange;
    if (this.#usedMs < sliceMs && connection.waiting.length === 0) {
      this.#run(exchange, exchange.startedMs);
      return;
    }
    connection.waiting.push(exchange);
    this.waitingCount++;
    if (connection.waiting.length === 1) this.#makeReady(connection);
  }

  /** The connection has ended: drops its waiting requests. */
  forget(connection: Connection): void {
    this.waitingCount -= connection.waiting.length;
    connection.waiting.length = 0;
  }

  #run(exchange: Exchange, startedMs: number): void {
    if (exchange.isClosed) return;
    this.#begin(exchange);
    this.#usedMs += performance.now() - startedMs;
    if (this.#usedMs >= sliceMs) this.#schedule();
  }

  #makeReady(connection: Connection): void {
    this.#ready.push(connection);
    if (this.#usedMs >= sliceMs || this.#ready.length > 1) this.#schedule();
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

  /** Begins requests round-robin, one per connection. */
  #drain(): void {
    while (this.#usedMs < sliceMs) {
      const connection = this.#ready.shift();
      if (connection === undefined) return;
      const exchange = connection.waiting.shift();
      if (exchange === undefined) continue;
      this.waitingCount--;
      this.#run(exchange, performance.now());
      if (connection.waiting.length > 0) this.#ready.push(connection);
    }
    this.#schedule();
  }
}
