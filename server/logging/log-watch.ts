/**
 * Clients that watch the log over web sockets, in the messages of RavenDB 7.2.7. They have their own level, so that a lower
 * level for a while does not fill the files.
 *
 * Invariants:
 * - Nothing is computed without watchers.
 * - A slow watcher misses lines: at most `waitingBytesMax` bytes are buffered for it.
 */
import type { LogLevel } from "../settings/log-settings.ts";
import { type LogEvent, levelNumbers, messageText } from "./log-line.ts";

/** The used part of a web socket. */
export interface LogSocket {
  readonly bufferedAmount: number;
  send(text: string): void;
  once(event: "close", listener: () => void): unknown;
}

export const logWatchersMax = 32;
const waitingBytesMax = 1024 * 1024;

export class LogWatch {
  readonly #watchers = new Map<LogSocket, string>();
  minLevel: LogLevel = "Trace";

  isOn(level: LogEvent["level"]): boolean {
    return this.#watchers.size > 0 && levelNumbers[level] >= levelNumbers[this.minLevel];
  }

  /** `nodeTag` appears in its lines. @returns false if too many clients watch */
  add(socket: LogSocket, nodeTag: string): boolean {
    if (this.#watchers.size >= logWatchersMax) return false;
    this.#watchers.set(socket, nodeTag);
    socket.once("close", () => this.#watchers.delete(socket));
    return true;
  }

  /** Sends an event to the watchers only, if its level is enabled. */
  tell(event: LogEvent): void {
    if (!this.isOn(event.level)) return;
    for (const [socket, nodeTag] of this.#watchers) {
      if (socket.bufferedAmount <= waitingBytesMax) socket.send(lineOf(event, nodeTag));
    }
  }
}

function lineOf(event: LogEvent, nodeTag: string): string {
  const { level, timeMs, fields } = event;
  return JSON.stringify({
    // RavenDB's format, in UTC.
    Date: `${new Date(timeMs).toISOString().replace("T", " ").replace("Z", "0")}`,
    NodeTag: nodeTag,
    Level: level.toUpperCase(),
    ThreadID: "1",
    Resource: fields?.["database"] ?? "Server",
    Logger: fields?.["event"] ?? "Server",
    Message: messageText(event),
  });
}
