/**
 * A reply composed in pieces, JSON unless its headers have another type: a small one is sent in one write, a larger one is
 * streamed with back-pressure.
 */

import { JsonText } from "../../engine/base/json/json-text.ts";
import type { FoundDocument } from "../../engine/engine.ts";
import type { Exchange } from "./exchange.ts";
import { reserveForReply, takeRoom } from "./reply-room.ts";
import { type ReplyStream, streamHeldBytes, writePieces } from "./reply-stream.ts";
import type { ReplyHeaders } from "./response.ts";

/** Bytes that are buffered before a reply is streamed, and between its chunks. */
const pieceBytes = 64 * 1024;

export class StreamedReply {
  readonly text = new JsonText(4096);
  readonly #exchange: Exchange;
  readonly #status: number;
  /** May be changed until something is sent. */
  headers: ReplyHeaders | undefined;
  #stream: ReplyStream | undefined;

  constructor(exchange: Exchange, status: number, headers?: ReplyHeaders) {
    this.#exchange = exchange;
    this.#status = status;
    this.headers = headers;
  }

  /** Whether the client has disconnected. Further output has no effect. */
  get isClosed(): boolean {
    return this.#exchange.isClosed || this.#stream?.isClosed === true;
  }

  /** Sends the buffered text if it is long enough; await the promise, if any. @throws RequestError 503 */
  flush(): Promise<void> | undefined {
    if (this.text.length < pieceBytes) return undefined;
    if (this.#stream === undefined) return this.#open().then((stream) => this.#send(stream));
    return this.#send(this.#stream);
  }

  /**
   * Adds a document that is too large for one buffer, under the client's back-pressure.
   * @throws RequestError 503, EngineError record-damaged
   */
  async addLarge(document: FoundDocument): Promise<void> {
    const large = await document.open(reserveForReply);
    try {
      const stream = this.#stream ?? (await this.#open());
      await this.#send(stream);
      await writePieces(stream, large.pieces);
    } finally {
      large.release();
    }
  }

  /** Ends the reply; resolves when the system has all of it. */
  async end(): Promise<void> {
    const { bytes } = this.text;
    if (this.#stream !== undefined) await this.#stream.end(bytes);
    else if (this.headers?.["content-type"] === undefined) {
      this.#exchange.replyJson(this.#status, bytes, this.headers);
    } else this.#exchange.reply(this.#status, this.headers, bytes);
  }

  /** @throws RequestError 503 */
  async #open(): Promise<ReplyStream> {
    const give = await takeRoom("replies", streamHeldBytes, this.#exchange);
    this.#stream = this.#exchange.stream(this.#status, this.headers, give);
    return this.#stream;
  }

  #send(stream: ReplyStream): Promise<void> | undefined {
    return stream.write(this.text.take());
  }
}
