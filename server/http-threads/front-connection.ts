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

export class FrontConnection implements SharedConnection, ReplyHolder {
  readonly id: number;
  readonly socket: Socket;
  readonly exchanges = new Map<number, FrontExchange>();
  readonly share: HeldShare;
  client = "";
  /** Bytes of replies that the operating system has not accepted. */
  heldBytes = 0;
  takenBytes = 0;
  /** When a request was last in progress, as `performance.now()`. */
  usedMs = performance.now();
  /** Whether the client must read replies before further requests begin. */
  isFull = false;
  /** Requests that wait until the client has read. */
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
    this.isFull = isFull;
    while (!this.isFull && !this.socket.destroyed) {
      const begin = this.#waiting.shift();
      if (begin === undefined) return;
      begin();
    }
  }

  /** Calls `begin` once the client has read. */
  whenRead(begin: () => void): void {
    this.#waiting.push(begin);
  }

  endHolding(): void {
    this.socket.destroy();
  }
}
