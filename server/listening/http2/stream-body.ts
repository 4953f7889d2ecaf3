/** The bodies of a stream as Node's streams: that of the request, that of the reply, or both of a tunnel. */
import { Duplex } from "node:stream";

/** Bytes that are given to a reader, or taken of a writer, ahead of the other side. */
const aheadBytes = 64 * 1024;

/** A stream, as its bodies use it. */
export interface BodyHost {
  /** Gives the body what has come and will come, while it takes it. */
  giveBody(): void;
  /** Sends a part of the reply; `done` once it is on its way, under the peer's flow control. */
  sendPart(bytes: Buffer, isEnd: boolean, done: () => void): void;
  /** The body was destroyed. */
  abandon(body: StreamBody): void;
}

export class StreamBody extends Duplex {
  readonly #host: BodyHost;

  constructor(host: BodyHost, sides: { readonly readable: boolean; readonly writable: boolean }) {
    super({ ...sides, highWaterMark: aheadBytes });
    this.#host = host;
  }

  override _read(): void {
    this.#host.giveBody();
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    if (chunk.length === 0) done();
    else this.#host.sendPart(chunk, false, done);
  }

  /** What was written together leaves together: a web socket writes the head and the text of a message one by one. */
  override _writev(chunks: { readonly chunk: Buffer }[], done: () => void): void {
    this._write(Buffer.concat(chunks.map(({ chunk }) => chunk)), "", done);
  }

  override _final(done: () => void): void {
    this.#host.sendPart(nothing, true, done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#host.abandon(this);
    done(error);
  }
}

const nothing = Buffer.alloc(0);
