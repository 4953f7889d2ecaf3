/** A client's connection on an HTTP thread. */
import type { Socket } from "node:net";
import type { FrontExchange } from "./front-exchange.ts";

export class FrontConnection {
  readonly id: number;
  readonly socket: Socket;
  readonly exchanges = new Map<number, FrontExchange>();
  /** Bytes of replies that the operating system has not accepted. */
  heldBytes = 0;
  /** When a request was last in progress, as `performance.now()`. */
  activeMs = performance.now();
  readonly #onHold: (bytes: number) => void;

  /** `onHold`: called with the bytes that are held in addition, or released (negative). */
  constructor(id: number, socket: Socket, onHold: (bytes: number) => void) {
    this.id = id;
    this.socket = socket;
    this.#onHold = onHold;
  }

  hold(bytes: number): void {
    this.heldBytes += bytes;
    this.#onHold(bytes);
  }

  release(bytes: number): void {
    this.heldBytes -= bytes;
    this.#onHold(-bytes);
  }
}
