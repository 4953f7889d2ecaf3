/** The settings of logs, audit log and monitoring, as values. Their names are RavenDB's where it has them. */
import { StartError } from "./start-error.ts";

/** Levels in order, as RavenDB 7.2.7 calls them; `Off` is none. */
export const logLevels = ["Trace", "Debug", "Info", "Warn", "Error", "Fatal", "Off"] as const;
export type LogLevel = (typeof logLevels)[number];

/** What `Logs.Format` may be; `auto`: text on a terminal, else JSON. */
export const logFormats = ["auto", "json", "text"] as const;
export type LogFormat = (typeof logFormats)[number];

/** When a log's file becomes an archive, and when archives are deleted. */
export interface ArchiveSettings {
  readonly aboveBytes: number;
  readonly keepMs: number;
  /** undefined: any number. */
  readonly countMax: number | undefined;
  readonly isCompressed: boolean;
}

export interface LogSettings {
  readonly minLevel: LogLevel;
  readonly format: LogFormat;
  /** The folder of the log's files; undefined: standard error only. */
  readonly folder: string | undefined;
  readonly archives: ArchiveSettings;
  /** A line for each request. */
  readonly hasRequests: boolean;
  /** Milliseconds from which on a query or a write gets a line; 0: none does. */
  readonly slowQueryMs: number;
  readonly slowWriteMs: number;
}

export interface AuditSettings {
  /** undefined: there is no audit log. */
  readonly folder: string | undefined;
  readonly archives: ArchiveSettings;
}

export interface MonitoringSettings {
  /** Where metrics and health are served without TLS; undefined: only with everything else. */
  readonly url: URL | undefined;
  /** Databases with metrics of their own; 0: none. */
  readonly databasesMax: number;
}

/** Reads one of `known`, in any letter case. @throws StartError setting-invalid */
export function readWord<Word extends string>(
  name: string,
  text: string | undefined,
  known: readonly Word[],
): Word {
  const found = known.find((word) => word.toLowerCase() === text?.toLowerCase());
  if (found !== undefined) return found;
  throw new StartError(
    "setting-invalid",
    `${name} '${text ?? ""}' must be one of ${known.join(", ")}`,
  );
}
