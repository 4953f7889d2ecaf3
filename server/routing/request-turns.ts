/**
 * Schedules when requests begin: at once while the server is not busy, else round-robin over the connections, so that a
 * thousand requests in one packet delay nobody else. A request whose client gave up while it waited is never begun, and
 * costs nothing.
 *
 * Of a request it uses only its connection, its start time and whether it was given up.
 *
 * Invariants:
 * - Requests of one connection begin in order of arrival. On an ordered one (HTTP/1.1) the next begins once the
 *   previous reply was read: pipelined requests are not processed ahead of their reader. On others they wait while the
 *   client has not read replies of 256 KB (held-replies.ts).
 * - Beginning requests takes at most `turnMs` of a turn of the event loop, plus the request that exceeded it.
 * - Of the connections with many requests in transit, one is read per turn: a packet may hold a thousand.
 */
import type { Connection } from "../http/connection.ts";
import type { Exchange } from "../http/exchange.ts";

/** Milliseconds per turn of the event loop for beginning requests. */
const turnMs = 4;
/** Waiting requests on an ordered connection at which reading from it is paused. */
const pipelinedMax = 32;

export class RequestTurns {
  readonly #begin: (exchange: Exchange) => void;
  /** Milliseconds used in the current turn. */
  #usedMs = 0;
  #isScheduled = false;
  /** Connections with requests that may begin, each once. */
  #ready: Connection[] = [];
  /** Reads to start or resume, one per turn. */
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

  /** Called when the reply on an ordered connection was read, or enough of those on another: the next request may begin. */
  taken(connection: Connection): void {
    connection.isAwaitingReader = false;
    if (connection.waiting.length > 0) this.#makeReady(connection);
  }

  /** Runs `read`, for a connection with potentially much input, in a turn without another such read. */
  read(read: () => void): void {
    this.#unread.push(read);
    if (this.#unread.length === 1) setImmediate(() => this.#readNext());
  }

  /** The connection has ended: drops its waiting requests. */
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

  /** Begins requests round-robin, one per connection. */
  #drain(): void {
    while (this.#usedMs < turnMs) {
      const connection = this.#ready.shift();
      if (connection === undefined) return;
      if (connection.isAwaitingReader) continue; // `taken` makes it ready again
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
