/**
 * A JSON reply that is put together piece by piece: sent whole when it stays small, streamed with back-pressure when
 * it does not.
 */
import { ReplyText } from "../engine/reply-text.ts";
import type { Exchange } from "./exchange.ts";
import type { ReplyStream } from "./reply-stream.ts";
import type { ReplyHeaders } from "./response.ts";

/** Bytes that are gathered before a reply is streamed, and between two pieces of it. */
const pieceBytes = 64 * 1024;

export class StreamedReply {
  readonly text = new ReplyText(4096);
  readonly #exchange: Exchange;
  readonly #status: number;
  readonly #headers: ReplyHeaders | undefined;
  #stream: ReplyStream | undefined;

  constructor(exchange: Exchange, status: number, headers?: ReplyHeaders) {
    this.#exchange = exchange;
    this.#status = status;
    this.#headers = headers;
  }

  /** Has the client gone? Then gathering more is in vain. */
  get isClosed(): boolean {
    return this.#exchange.isClosed || this.#stream?.isClosed === true;
  }

  /** Sends what was gathered when it is enough; wait for the promise, if there is one. */
  flush(): Promise<void> | undefined {
    if (this.text.length < pieceBytes) return undefined;
    this.#stream ??= this.#exchange.stream(this.#status, this.#headers);
    return this.#stream.write(this.text.take());
  }

  /** Ends the reply; resolves when all of it was handed to the system. */
  async end(): Promise<void> {
    if (this.#stream === undefined) {
      this.#exchange.replyJson(this.#status, this.text.bytes, this.#headers);
    } else {
      await this.#stream.end(this.text.bytes);
    }
  }

  /** The reply cannot be finished: cuts it off if some of it is sent. @returns false when nothing was. */
  fail(): boolean {
    if (this.#stream === undefined) return false;
    this.#exchange.abort();
    return true;
  }
}
