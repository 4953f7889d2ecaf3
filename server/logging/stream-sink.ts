/**
 * Writes the log to a stream, which is standard error: as text or as JSON lines.
 *
 * Invariants:
 * - A reader that does not keep up neither holds up the server nor makes it keep more than `waitingBytesMax` bytes:
 *   lines are dropped then, and their number is the next line once there is room.
 */
import type { Writable } from "node:stream";
import type { LogFormat } from "../settings/log-settings.ts";
import type { LogSink } from "./log.ts";
import { jsonLine, type LogEvent, textLine } from "./log-line.ts";

const waitingBytesMax = 1024 * 1024;

/** What is used of a stream. */
export type LogStream = Pick<Writable, "write" | "writableLength" | "destroyed"> & {
  readonly isTTY?: boolean;
};

export class StreamSink implements LogSink {
  readonly #stream: LogStream;
  readonly #lineOf: (event: LogEvent) => string;
  #untold = 0;
  droppedCount = 0;

  constructor(stream: LogStream, format: LogFormat) {
    this.#stream = stream;
    const isText = format === "auto" ? stream.isTTY === true : format === "text";
    this.#lineOf = isText ? textLine : jsonLine;
  }

  write(event: LogEvent): void {
    const stream = this.#stream;
    if (stream.destroyed || stream.writableLength > waitingBytesMax) {
      this.droppedCount++;
      this.#untold++;
      return;
    }
    if (this.#untold > 0) {
      const told = droppedEvent(this.#untold, event.timeMs);
      this.#untold = 0;
      stream.write(`${this.#lineOf(told)}\n`);
    }
    stream.write(`${this.#lineOf(event)}\n`);
  }

  /** What was written goes out by itself. */
  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** Tells that `count` lines are missing. */
export function droppedEvent(count: number, timeMs: number): LogEvent {
  return {
    level: "Warn",
    timeMs,
    message: `${count} lines of the log were dropped here: whatever takes them was too slow, or its disk is full`,
    fields: { event: "log-lines-dropped", count },
  };
}
