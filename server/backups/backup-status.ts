/**
 * The status of a periodic backup: its last runs. Keys are those of RavenDB. The status is stored in the database, together
 * with the etag up to which the backups are complete (engine/services/smuggler/backup-marks.ts) and a list of runs.
 */
import type { BackupMark } from "../../engine/engine.ts";
import { dateText } from "../http/dates.ts";
import type { JsonObject } from "../http/json-body.ts";
import type { FinishedBackup } from "./backup-runner.ts";

/** Number of runs that are stored. */
const runsMax = 50;

/** Returns a status without the members that RavenDB does not have. */
export function shownStatus(status: JsonObject | null | undefined): JsonObject | null {
  if (status === null || status === undefined) return null;
  const { Runs: _runs, ...shown } = status;
  return shown;
}

/** Returns the last runs, newest first. */
export function runsOf(status: JsonObject | null | undefined): readonly unknown[] {
  const runs = status?.["Runs"];
  return Array.isArray(runs) ? runs : [];
}

function runsAfter(
  before: JsonObject,
  run: EndedRun,
  backup: FinishedBackup | null,
  error: string | null,
): readonly unknown[] {
  const own = {
    StartedAt: dateText(new Date(run.startedMs)),
    DurationInMs: run.endedMs - run.startedMs,
    IsFull: run.isFull,
    IsEncrypted: run.isEncrypted,
    FolderName: backup?.folderName ?? null,
    FileName: backup?.fileName ?? null,
    SizeInBytes: backup?.bytes ?? null,
    LastEtag: backup?.etag ?? null,
    Error: error,
  };
  return [own, ...runsOf(before)].slice(0, runsMax);
}

/** The parts of a status that schedules and replies need. Times are in milliseconds since the Unix epoch, or null. */
export interface BackupHistory {
  readonly lastFullMs: number | null;
  readonly lastIncrementalMs: number | null;
  /** Name of the folder of the last full backup. */
  readonly folderName: string | null;
  readonly error: string | null;
}

export function historyOf(found: JsonObject | null | undefined): BackupHistory {
  const status = found ?? {};
  const error = status["Error"] as JsonObject | null | undefined;
  return {
    lastFullMs: timeOf(status["LastFullBackup"]),
    lastIncrementalMs: timeOf(status["LastIncrementalBackup"]),
    folderName: typeof status["FolderName"] === "string" ? status["FolderName"] : null,
    error: typeof error?.["Exception"] === "string" ? error["Exception"] : null,
  };
}

/** A finished run of a task. */
export interface EndedRun {
  readonly taskId: number;
  readonly nodeTag: string;
  readonly operationId: number;
  readonly startedMs: number;
  readonly endedMs: number;
  readonly isFull: boolean;
  readonly isEncrypted: boolean;
  readonly isToS3: boolean;
  readonly changeVector: string;
}

/** Returns the mark after a successful run. */
export function markAfter(
  previous: BackupMark | undefined,
  run: EndedRun,
  backup: FinishedBackup,
): BackupMark {
  const started = dateText(new Date(run.startedMs));
  const before = previous?.status ?? {};
  const duration = run.endedMs - run.startedMs;
  const lastFull = backup.isFull ? started : (before["LastFullBackup"] ?? null);
  const lastIncremental = backup.isFull ? (before["LastIncrementalBackup"] ?? null) : started;
  const times = {
    LastFullBackup: lastFull,
    LastIncrementalBackup: lastIncremental,
    FullBackupDurationInMs: backup.isFull ? duration : null,
    IncrementalBackupDurationInMs: backup.isFull ? null : duration,
    Exception: null,
  };
  const status = {
    TaskId: run.taskId,
    BackupType: "Backup",
    IsFull: backup.isFull,
    NodeTag: run.nodeTag,
    LastFullBackup: lastFull,
    LastIncrementalBackup: lastIncremental,
    LastFullBackupInternal: lastFull,
    LastIncrementalBackupInternal: lastIncremental,
    LocalBackup: run.isToS3
      ? null
      : {
          ...times,
          BackupDirectory: backup.folderName,
          FileName: backup.fileName,
          TempFolderUsed: false,
        },
    UploadToS3: run.isToS3 ? { ...times, Skipped: false } : null,
    UploadToGlacier: null,
    UploadToAzure: null,
    UploadToGoogleCloud: null,
    UploadToFtp: null,
    LastEtag: backup.etag,
    LastDatabaseChangeVector: run.changeVector,
    LastRaftIndex: { LastEtag: null },
    FolderName: backup.folderName,
    DurationInMs: duration,
    LocalRetentionDurationInMs: null,
    Version: versionOf(before) + 1,
    Error: null,
    LastOperationId: run.operationId,
    IsEncrypted: run.isEncrypted,
    DelayUntil: null,
    OriginalBackupTime: null,
    Runs: runsAfter(before, run, backup, null),
  };
  return { etag: backup.etag, status };
}

/** Returns the mark after a failed run, with the state of earlier runs. */
export function markAfterFailure(
  previous: BackupMark | undefined,
  run: EndedRun,
  message: string,
): BackupMark {
  const before = previous?.status ?? {
    TaskId: run.taskId,
    BackupType: "Backup",
    IsFull: run.isFull,
    NodeTag: run.nodeTag,
    LastFullBackup: null,
    LastIncrementalBackup: null,
  };
  const failure = { Exception: message, At: dateText(new Date(run.endedMs)) };
  return {
    etag: previous?.etag ?? 0,
    status: {
      ...before,
      DurationInMs: run.endedMs - run.startedMs,
      Version: versionOf(before) + 1,
      Error: failure,
      LastOperationId: run.operationId,
      Runs: runsAfter(before, run, null, message),
    },
  };
}

function versionOf(status: JsonObject): number {
  return typeof status["Version"] === "number" ? status["Version"] : 0;
}

function timeOf(text: unknown): number | null {
  const ms = typeof text === "string" ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? null : ms;
}
