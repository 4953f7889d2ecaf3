/**
 * The log of the server: events with a level, passed to its sinks. Everything that concerns an operator is logged here. A
 * logging library is not needed (transports, serializers, child loggers), but the lines have pino's format, so that its
 * tools can read them.
 *
 * Invariants:
 * - No secret and no part of a document is logged: callers pass ids, names, counts, and texts with masked values.
 * - Logging never throws and never waits.
 */
import type { Report, ReportEvent } from "../../engine/base/environment.ts";
import { type LogLevel, logLevels } from "../settings/log-settings.ts";
import { type LogEvent, type LogFields, levelNumbers } from "./log-line.ts";
import { LogWatch } from "./log-watch.ts";

/** A destination of events. */
export interface LogSink {
  write(event: LogEvent): void;
  /** Number of events lost because they came too fast, or could not be written. */
  readonly droppedCount: number;
  /** Resolves when everything is written. */
  close(): Promise<void>;
}

/** Severity of the engine's events, and advice. */
const engineEvents: Readonly<
  Record<ReportEvent, { readonly level: LogEvent["level"]; readonly advice?: string }>
> = {
  "disk-full": {
    level: "Error",
    advice: "Free space on that disk, or delete documents or databases; no restart is needed",
  },
  "disk-has-room": { level: "Info" },
  damage: {
    level: "Error",
    advice:
      "Check the disk, and restore the named items from a backup; everything else is still available",
  },
  "database-stopped": {
    level: "Error",
    advice:
      "It is reopened automatically; if the problem recurs, check the disk and the log of the system",
  },
  "database-closed": {
    level: "Error",
    advice:
      "See the preceding lines for the reason; then send a request for it, or restart the server",
  },
  "database-reopened": { level: "Info" },
  "writers-held": {
    level: "Warn",
    advice:
      "Writes are slower until compaction has caught up; a faster disk or fewer overwrites help",
  },
};

export class Log {
  /** Clients that watch the log. */
  readonly watch = new LogWatch();
  readonly #sinks: readonly LogSink[];
  readonly #nowMs: () => number;
  readonly #configuredLevel: LogLevel;
  #minLevel: LogLevel;
  #minNumber: number;

  constructor(minLevel: LogLevel, sinks: readonly LogSink[], nowMs: () => number = Date.now) {
    this.#sinks = sinks;
    this.#nowMs = nowMs;
    this.#configuredLevel = minLevel;
    this.#minLevel = minLevel;
    this.#minNumber = levelNumbers[minLevel];
  }

  /** The configured level. */
  get configuredLevel(): LogLevel {
    return this.#configuredLevel;
  }

  /** The lowest level that is logged now. */
  get minLevel(): LogLevel {
    return this.#minLevel;
  }

  set minLevel(level: LogLevel) {
    this.#minLevel = level;
    this.#minNumber = levelNumbers[level];
  }

  get droppedCount(): number {
    return this.#sinks.reduce((sum, sink) => sum + sink.droppedCount, 0);
  }

  /** Returns whether this level is logged, for callers whose messages are expensive. */
  isOn(level: LogEvent["level"]): boolean {
    return this.#sinks.length > 0 && levelNumbers[level] >= this.#minNumber;
  }

  write(level: LogEvent["level"], message: string, fields?: LogFields, error?: unknown): void {
    const isWritten = this.isOn(level);
    if (!isWritten && !this.watch.isOn(level)) return;
    const event: LogEvent = { level, timeMs: this.#nowMs(), message, fields, error };
    if (isWritten) for (const sink of this.#sinks) sink.write(event);
    this.watch.tell(event);
  }

  info(message: string, fields?: LogFields): void {
    this.write("Info", message, fields);
  }

  warn(message: string, fields?: LogFields): void {
    this.write("Warn", message, fields);
  }

  /** Logs reports of the engine to the operator. */
  readonly report: Report = (message, cause, event) => {
    const { level, advice } =
      event === undefined
        ? { level: cause === undefined ? ("Warn" as const) : ("Error" as const), advice: undefined }
        : engineEvents[event];
    const text = advice === undefined ? `${message}.` : `${message}. ${advice}.`;
    this.write(level, text, event === undefined ? undefined : { event }, cause);
  };

  /** Logs an error whose details no reply contains; the reply contains the reference. */
  readonly logError = (reference: string, error: unknown): void => {
    this.write("Error", `Error ${reference}`, { reference }, error);
  };

  /** Logs that the audit log cannot be written. */
  readonly auditFailed = (error: unknown): void => {
    const text = "The audit log cannot be written, and lines are lost. Check its disk.";
    this.write("Error", text, { event: "audit-failed" }, error);
  };

  /** Resolves when every logged event is written. */
  async close(): Promise<void> {
    for (const sink of this.#sinks) await sink.close();
  }
}

/** Returns a log without sinks, for servers inside other programs. */
export function silentLog(): Log {
  return new Log("Off", []);
}

/** Returns the level of exactly this name, or undefined. */
export function levelNamed(name: unknown): LogLevel | undefined {
  return logLevels.find((level) => level === name);
}
