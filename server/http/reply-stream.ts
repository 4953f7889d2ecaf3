/**
 * A streamed reply under the client's back-pressure. A client that reads nothing for too long is
 * disconnected; sooner if other replies wait for memory.
 *
 * Invariants:
 * - After the client has disconnected, `write` and `end` do nothing and resolve.
 */
import type { Writable } from "node:stream";
import { pressedStallMs } from "../../engine/base/limits.ts";
import { processMemory } from "../../engine/base/memory/memory-budget.ts";
import { pauseIfDue } from "../../engine/base/scheduling/time-slices.ts";
import type { TextChunks } from "../../engine/engine.ts";

/** Bytes counted for an open streamed reply: a pending chunk, and two in transit to the client. */
export const streamHeldBytes = 192 * 1024;
const pieceBytes = 64 * 1024;

export class ReplyStream {
  private readonly sink: Writable;
  private readonly stallMs: number;
  private readonly giveUp: () => void;
  private readonly counted: ((bytes: number) => void) | undefined;

  /** `counted` receives the length of each chunk. */
  constructor(
    sink: Writable,
    stallMs: number,
    giveUp: () => void,
    counted?: (bytes: number) => void,
  ) {
    this.counted = counted;
    this.sink = sink;
    this.stallMs = stallMs;
    this.giveUp = giveUp;
  }

  /** Whether the client has disconnected or everything is sent. Further writes have no effect. */
  get isClosed(): boolean {
    return this.sink.destroyed || this.sink.writableEnded;
  }

  /**
   * Writes a chunk. @returns undefined if more may be written immediately, otherwise a promise that resolves (and never
   * rejects) when the buffer has drained or the client has disconnected
   */
  write(chunk: Uint8Array | string): Promise<void> | undefined {
    if (this.isClosed) return undefined;
    this.counted?.(chunk.length);
    return this.sink.write(chunk) ? undefined : this.room("drain");
  }

  /** Ends the reply; resolves when the system has all of it, or the client has disconnected. */
  async end(chunk?: Uint8Array | string): Promise<void> {
    if (this.isClosed) return;
    if (chunk !== undefined) {
      this.counted?.(chunk.length);
      this.sink.write(chunk);
    }
    this.sink.end();
    await this.room("finish");
  }

  private room(event: "drain" | "finish"): Promise<void> {
    return new Promise((resolve) => {
      let lastBuffered = this.sink.writableLength;
      let stalledMs = 0;
      const lookMs = Math.min(this.stallMs, pressedStallMs);
      const timer = setInterval(() => {
        // Progress was made: the client is slow, but reading.
        const buffered = this.sink.writableLength;
        stalledMs = buffered < lastBuffered ? 0 : stalledMs + lookMs;
        lastBuffered = buffered;
        const isPressed = stalledMs > 0 && processMemory.waitersOf("replies") > 0;
        if (isPressed || stalledMs >= this.stallMs) this.giveUp();
      }, lookMs);
      const done = () => {
        clearInterval(timer);
        this.sink.off(event, done);
        this.sink.off("close", done);
        resolve();
      };
      this.sink.on(event, done);
      this.sink.on("close", done);
      if (this.sink.destroyed) done();
    });
  }
}

/** Writes a document under the client's back-pressure. */
export async function writePieces(stream: ReplyStream, pieces: TextChunks): Promise<void> {
  for (let start = 0; start < pieces.length && !stream.isClosed; start += pieceBytes) {
    await pauseIfDue();
    await stream.write(pieces.copy(start, Math.min(pieces.length, start + pieceBytes)));
  }
}
