/** A client's connection on an HTTP thread. */
import type { Socket } from "node:net";
import type { SharedConnection } from "./connection-shares.ts";
import type { FrontExchange } from "./front-exchange.ts";
import {
  type HeldReplies,
  type HeldShare,
  type ReplyHolder,
  reportedBytesMin,
} from "./held-replies.ts";

/**
 * Requests of a connection that begin before the first of them is answered: their replies are held if the client does not
 * read. Requests that take longer than the interval between two checks do not count, so they do not block others.
 */
const unansweredMax = 32;

export class FrontConnection implements SharedConnection, ReplyHolder {
  readonly id: number;
  readonly socket: Socket;
  readonly exchanges = new Map<number, FrontExchange>();
  readonly share: HeldShare;
  client = "";
  /** Bytes of replies that the operating system has not accepted. */
  heldBytes = 0;
  takenBytes = 0;
  /** When a request was last in progress, as `performance.now()`, to within the interval between two checks. */
  usedMs = performance.now();
  /** Whether the client must read replies before further requests begin. */
  #isFull = false;
  /** Requests that have begun since the last check, and are not answered. */
  #unanswered = 0;
  #isUsed = false;
  /** Requests that wait to begin, in order. */
  readonly #waiting: (() => void)[] = [];

  constructor(id: number, socket: Socket, held: HeldReplies) {
    this.id = id;
    this.socket = socket;
    this.share = held.shareOf(this);
  }

  get isIdle(): boolean {
    return this.exchanges.size === 0;
  }

  /** Counts bytes of a reply until `release`. Hot. */
  hold(bytes: number): void {
    this.heldBytes += bytes;
    if (this.heldBytes >= reportedBytesMin) this.share.report();
  }

  release(bytes: number): void {
    this.heldBytes -= bytes;
    this.takenBytes += bytes;
    if (this.share.bytes > 0) this.share.report();
  }

  setFull(isFull: boolean): void {
    this.#isFull = isFull;
    this.#beginWaiting();
  }

  /** Calls `begin` as soon as a further request may begin. Hot. */
  whenFree(begin: () => void): void {
    if (this.#mayBegin) begin();
    else this.#waiting.push(begin);
  }

  /** Counts a request that has begun. Hot. */
  began(): void {
    this.#unanswered++;
    this.#isUsed = true;
  }

  /** Counts a request that was answered or aborted. Hot. */
  answered(): void {
    if (this.#unanswered > 0) this.#unanswered--;
    this.#beginWaiting();
  }

  /** To be called twice a second. */
  check(nowMs: number): void {
    if (this.#isUsed || !this.isIdle) this.usedMs = nowMs;
    this.#isUsed = false;
    this.#unanswered = 0;
    this.#beginWaiting();
  }

  get #mayBegin(): boolean {
    return !this.#isFull && this.#unanswered < unansweredMax;
  }

  #beginWaiting(): void {
    while (this.#waiting.length > 0 && this.#mayBegin && !this.socket.destroyed) {
      this.#waiting.shift()?.();
    }
  }

  endHolding(): void {
    this.socket.destroy();
  }
}
