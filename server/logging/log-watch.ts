/**
 * Those who watch the log as it is written, over web sockets, in the messages of RavenDB 7.2.7. They have a level of
 * their own, so that looking closer for a while does not fill the files.
 *
 * Invariants:
 * - Nothing is composed while nobody watches.
 * - A watcher that does not keep up misses lines: at most `waitingBytesMax` bytes wait for it.
 */
import type { LogLevel } from "../settings/log-settings.ts";
import { type LogEvent, levelNumbers, messageText } from "./log-line.ts";

/** What is used of a web socket. */
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

  /** `nodeTag`: as its lines tell it. @returns false when there are too many */
  add(socket: LogSocket, nodeTag: string): boolean {
    if (this.#watchers.size >= logWatchersMax) return false;
    this.#watchers.set(socket, nodeTag);
    socket.once("close", () => this.#watchers.delete(socket));
    return true;
  }

  /** Tells an event to the watchers alone, if its level is on. */
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
    // RavenDB's form, in UTC.
    Date: `${new Date(timeMs).toISOString().replace("T", " ").replace("Z", "0")}`,
    NodeTag: nodeTag,
    Level: level.toUpperCase(),
    ThreadID: "1",
    Resource: fields?.["database"] ?? "Server",
    Logger: fields?.["event"] ?? "Server",
    Message: messageText(event),
  });
}
