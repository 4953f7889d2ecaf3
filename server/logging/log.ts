/**
 * The log of the server: events with a level, passed to its sinks. Everything that an operator should learn of goes
 * through here; what a library of the field would add (transports, serializers, child loggers) has no use, and the lines
 * are those of pino, so its tools read them.
 *
 * Invariants:
 * - No secret and nothing of a document is logged: who logs passes ids, names, counts, and texts with masked values.
 * - Logging never throws and never waits.
 */
import type { Report, ReportEvent } from "../../engine/base/environment.ts";
import { type LogLevel, logLevels } from "../settings/log-settings.ts";
import { type LogEvent, type LogFields, levelNumbers } from "./log-line.ts";
import { LogWatch } from "./log-watch.ts";

/** Where events go. */
export interface LogSink {
  write(event: LogEvent): void;
  /** Events that were lost because they came too fast, or could not be written. */
  readonly droppedCount: number;
  /** Resolves when everything is written. */
  close(): Promise<void>;
}

/** How grave an event of the engine is, and what to do about it. */
const engineEvents: Readonly<
  Record<ReportEvent, { readonly level: LogEvent["level"]; readonly advice?: string }>
> = {
  "disk-full": {
    level: "Error",
    advice: "Make room on that disk, or delete documents or databases; nothing need be restarted",
  },
  "disk-has-room": { level: "Info" },
  damage: {
    level: "Error",
    advice:
      "Check the disk, and restore what is named from a backup; everything else is still served",
  },
  "database-stopped": {
    level: "Error",
    advice:
      "It is opened again by itself; if that happens again, check the disk and the log of the system",
  },
  "database-closed": {
    level: "Error",
    advice: "Find out why from the lines before; then request it again, or restart the server",
  },
  "database-reopened": { level: "Info" },
  "writers-held": {
    level: "Warn",
    advice:
      "Writes are slower until compaction has caught up; a faster disk or fewer overwrites help",
  },
};

export class Log {
  /** Those who watch it being written. */
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

  /** The level of the settings. */
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

  /** Is this level logged? For those who would compose much for nothing. */
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

  /** What the engine reports to the operator. */
  readonly report: Report = (message, cause, event) => {
    const { level, advice } =
      event === undefined
        ? { level: cause === undefined ? ("Warn" as const) : ("Error" as const), advice: undefined }
        : engineEvents[event];
    const told = advice === undefined ? `${message}.` : `${message}. ${advice}.`;
    this.write(level, told, event === undefined ? undefined : { event }, cause);
  };

  /** An error whose details no reply shows; the reply names the reference. */
  readonly logError = (reference: string, error: unknown): void => {
    this.write("Error", `Error ${reference}`, { reference }, error);
  };

  /** The audit log cannot be written. */
  readonly auditFailed = (error: unknown): void => {
    const told = "The audit log cannot be written, and lines of it are lost: check its disk.";
    this.write("Error", told, { event: "audit-failed" }, error);
  };

  /** Resolves when everything that was logged is written. */
  async close(): Promise<void> {
    for (const sink of this.#sinks) await sink.close();
  }
}

/** Logs nothing: for servers inside other programs. */
export function silentLog(): Log {
  return new Log("Off", []);
}

/** The level of this name, spelled exactly so; undefined: there is none. */
export function levelNamed(name: unknown): LogLevel | undefined {
  return logLevels.find((level) => level === name);
}
