/**
 * A JSON reply that is put together piece by piece: sent whole when it stays small, streamed with back-pressure when
 * it does not.
 */
import type { Database } from "../engine/database.ts";
import { ReplyText } from "../engine/reply-text.ts";
import type { Exchange } from "./exchange.ts";
import { openLargeDocument, type RecordAddress } from "./large-document.ts";
import { takeRoom } from "./reply-room.ts";
import { type ReplyStream, streamHeldBytes, writePieces } from "./reply-stream.ts";
import type { ReplyHeaders } from "./response.ts";

/** Bytes that are gathered before a reply is streamed, and between two pieces of it. */
const pieceBytes = 64 * 1024;

export class StreamedReply {
  readonly text = new ReplyText(4096);
  readonly #exchange: Exchange;
  readonly #status: number;
  /** May be set until something is sent. */
  headers: ReplyHeaders | undefined;
  #stream: ReplyStream | undefined;

  constructor(exchange: Exchange, status: number, headers?: ReplyHeaders) {
    this.#exchange = exchange;
    this.#status = status;
    this.headers = headers;
  }

  /** Has the client gone? Then gathering more is in vain. */
  get isClosed(): boolean {
    return this.#exchange.isClosed || this.#stream?.isClosed === true;
  }

  /** Sends what was gathered when it is enough; wait for the promise, if there is one. @throws RequestError 503 */
  flush(): Promise<void> | undefined {
    if (this.text.length < pieceBytes) return undefined;
    if (this.#stream === undefined) return this.#open().then((stream) => this.#send(stream));
    return this.#send(this.#stream);
  }

  /**
   * Adds a document that is too large to be composed at once, and sends it as it is taken.
   * @throws RequestError 503, EngineError record-damaged
   */
  async addLarge(database: Database, address: RecordAddress): Promise<void> {
    const large = await openLargeDocument(database, address);
    try {
      const stream = this.#stream ?? (await this.#open());
      await this.#send(stream);
      await writePieces(stream, large.pieces);
    } finally {
      large.release();
    }
  }

  /** Ends the reply; resolves when all of it was handed to the system. */
  async end(): Promise<void> {
    if (this.#stream === undefined) {
      this.#exchange.replyJson(this.#status, this.text.bytes, this.headers);
    } else {
      await this.#stream.end(this.text.bytes);
    }
  }

  /** @throws RequestError 503 */
  async #open(): Promise<ReplyStream> {
    const give = await takeRoom("replies", streamHeldBytes, this.#exchange.signal);
    this.#stream = this.#exchange.stream(this.#status, this.headers, give);
    return this.#stream;
  }

  #send(stream: ReplyStream): Promise<void> | undefined {
    return stream.write(this.text.take());
  }

  /** The reply cannot be finished: cuts it off if some of it is sent. @returns false when nothing was. */
  fail(): boolean {
    if (this.#stream === undefined) return false;
    this.#exchange.abort();
    return true;
  }
}
