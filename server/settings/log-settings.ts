/** The settings of logs, audit log, and monitoring as values. Their names are RavenDB's where it has them. */
import { StartError } from "./start-error.ts";

/** Levels in order, with RavenDB 7.2.7's names; `Off` logs nothing. */
export const logLevels = ["Trace", "Debug", "Info", "Warn", "Error", "Fatal", "Off"] as const;
export type LogLevel = (typeof logLevels)[number];

/** Values of `Logs.Format`; `auto` is text on a terminal, else JSON. */
export const logFormats = ["auto", "json", "text"] as const;
export type LogFormat = (typeof logFormats)[number];

/** Limits at which a log file is archived, and archives are deleted. */
export interface ArchiveSettings {
  readonly aboveBytes: number;
  readonly keepMs: number;
  /** Undefined for any number. */
  readonly countMax: number | undefined;
  readonly isCompressed: boolean;
}

export interface LogSettings {
  readonly minLevel: LogLevel;
  readonly format: LogFormat;
  /** Folder of the log files, or undefined for standard error only. */
  readonly folder: string | undefined;
  readonly archives: ArchiveSettings;
  /** Whether each request is logged. */
  readonly hasRequests: boolean;
  /** Duration from which a query or a write is logged, in milliseconds; 0 for never. */
  readonly slowQueryMs: number;
  readonly slowWriteMs: number;
}

export interface AuditSettings {
  /** Undefined without an audit log. */
  readonly folder: string | undefined;
  readonly archives: ArchiveSettings;
}

export interface MonitoringSettings {
  /** Address of metrics and health without TLS, or undefined to serve them only with everything else. */
  readonly url: URL | undefined;
  /** Maximum number of databases with their own metrics. */
  readonly databasesMax: number;
}

/** Parses one of `known`, in any letter case. @throws StartError setting-invalid */
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
