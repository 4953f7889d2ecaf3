/**
 * Writes the log to a stream, which is standard error, as text or as JSON lines.
 *
 * Invariants:
 * - A slow reader neither blocks the server nor makes it buffer more than `waitingBytesMax` bytes: further lines are
 *   dropped, and their number is logged once space is available.
 */
import type { Writable } from "node:stream";
import type { LogFormat } from "../settings/log-settings.ts";
import type { LogSink } from "./log.ts";
import { jsonLine, type LogEvent, textLine } from "./log-line.ts";

const waitingBytesMax = 1024 * 1024;

/** The used part of a stream. */
export type LogStream = Pick<Writable, "write" | "writableLength" | "destroyed"> & {
  readonly isTTY?: boolean;
};

export class StreamSink implements LogSink {
  readonly #stream: LogStream;
  readonly #lineOf: (event: LogEvent) => string;
  #unreported = 0;
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
      this.#unreported++;
      return;
    }
    if (this.#unreported > 0) {
      const dropped = droppedEvent(this.#unreported, event.timeMs);
      this.#unreported = 0;
      stream.write(`${this.#lineOf(dropped)}\n`);
    }
    stream.write(`${this.#lineOf(event)}\n`);
  }

  /** Data that was written is flushed by the stream itself. */
  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** Returns the event that reports `count` dropped lines. */
export function droppedEvent(count: number, timeMs: number): LogEvent {
  return {
    level: "Warn",
    timeMs,
    message: `${count} log lines were dropped here, because their reader was too slow, or its disk is full`,
    fields: { event: "log-lines-dropped", count },
  };
}
