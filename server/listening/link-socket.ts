/** A web socket with a client of an HTTP thread. */
import { EventEmitter } from "node:events";
import type { MessageSocket } from "../http/message-socket.ts";
import type { HttpCommands } from "../link/link.ts";

interface Unsent {
  bytes: number;
  readonly done: ((error?: Error) => void) | undefined;
}

export class LinkSocket extends EventEmitter implements MessageSocket {
  bufferedAmount = 0;
  isOpen = true;
  readonly #id: number;
  readonly #commands: HttpCommands;
  readonly #onEnd: () => void;
  readonly #unsent: Unsent[] = [];

  /** `onEnd`: called when it is to be forgotten. */
  constructor(id: number, commands: HttpCommands, onEnd: () => void) {
    super();
    this.#id = id;
    this.#commands = commands;
    this.#onEnd = onEnd;
  }

  send(text: string | Buffer, done?: (error?: Error) => void): void {
    if (!this.isOpen) {
      done?.(new Error("the web socket is closed"));
      return;
    }
    const bytes = typeof text === "string" ? Buffer.from(text) : text;
    this.bufferedAmount += bytes.length;
    this.#unsent.push({ bytes: bytes.length, done });
    this.#commands.send(this.#id, bytes, true);
  }

  close(code: number, reason = ""): void {
    if (this.isOpen) this.#commands.closeSocket(this.#id, code, reason);
  }

  /** Ends it without a closing handshake. */
  terminate(): void {
    if (!this.isOpen) return;
    this.#commands.closeSocket(this.#id, 0, "");
    this.#onEnd();
  }

  /** The operating system has accepted `bytes`. */
  sent(bytes: number): void {
    this.bufferedAmount -= bytes;
    for (let left = bytes; ; ) {
      const first = this.#unsent[0];
      if (first === undefined || first.bytes > left) {
        if (first !== undefined) first.bytes -= left;
        return;
      }
      left -= first.bytes;
      this.#unsent.shift();
      first.done?.();
    }
  }

  /** It has closed. */
  ended(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    for (const { done } of this.#unsent.splice(0)) done?.(new Error("the web socket is closed"));
    this.emit("close");
  }
}
