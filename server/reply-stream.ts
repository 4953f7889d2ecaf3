/**
 * A reply written piece by piece, with back-pressure: optionally through a compressor, always no faster than
 * the client reads. A client that reads nothing for too long is cut off.
 *
 * Invariants:
 * - After the client has gone, `write` and `end` do nothing and resolve.
 */
import type { Writable } from "node:stream";
import type { BrotliCompress, Deflate, Gzip } from "node:zlib";

export class ReplyStream {
  private readonly sink: Writable;
  private readonly target: Writable;
  private readonly compressor: Gzip | BrotliCompress | Deflate | undefined;
  private readonly stallMs: number;
  private readonly giveUp: () => void;

  constructor(
    sink: Writable,
    compressor: Gzip | BrotliCompress | Deflate | undefined,
    stallMs: number,
    giveUp: () => void,
  ) {
    this.sink = sink;
    this.compressor = compressor;
    this.target = compressor ?? sink;
    this.stallMs = stallMs;
    this.giveUp = giveUp;
    if (compressor !== undefined) {
      compressor.pipe(sink);
      compressor.on("error", giveUp);
      sink.once("close", () => compressor.destroy());
    }
  }

  /** Has the client gone, or is everything sent? Then writing is in vain. */
  get isClosed(): boolean {
    return this.sink.destroyed || this.sink.writableEnded;
  }

  /**
   * Writes a piece. @returns undefined when more may be written at once, else a promise to wait for; it resolves
   * (never rejects) when there is room or the client has gone.
   */
  write(chunk: Uint8Array | string): Promise<void> | undefined {
    if (this.isClosed) return undefined;
    return this.target.write(chunk) ? undefined : this.room("drain", this.target);
  }

  /** What was written so far leaves now, though compression would gain by waiting. */
  flush(): void {
    this.compressor?.flush();
  }

  /** Ends the reply; resolves when all of it was handed to the system, or the client has gone. */
  async end(chunk?: Uint8Array | string): Promise<void> {
    if (this.isClosed) return;
    if (chunk !== undefined) this.target.write(chunk);
    this.target.end();
    await this.room("finish", this.sink);
  }

  private room(event: "drain" | "finish", stream: Writable): Promise<void> {
    return new Promise((resolve) => {
      let lastBuffered = this.sink.writableLength;
      const timer = setInterval(() => {
        // Some of it went out: slow, but alive.
        const buffered = this.sink.writableLength;
        if (buffered >= lastBuffered) this.giveUp();
        lastBuffered = buffered;
      }, this.stallMs);
      const done = () => {
        clearInterval(timer);
        stream.off(event, done);
        this.sink.off("close", done);
        resolve();
      };
      stream.on(event, done);
      this.sink.on("close", done);
      if (this.sink.destroyed) done();
    });
  }
}
