/** Backups in the format of the server: schedules, their runs, and restore points. */
import { send } from "./client.ts";

/** A schedule in the list of tasks. */
export interface BackupTask {
  readonly TaskId: number;
  readonly TaskType: string;
  readonly TaskName: string;
  readonly TaskState: "Enabled" | "Disabled";
  readonly Error: string | null;
  readonly LastFullBackup: string | null;
  readonly LastIncrementalBackup: string | null;
  readonly OnGoingBackup: { readonly RunningBackupTaskId: number; readonly IsFull: boolean } | null;
  readonly NextBackup: { readonly DateTime: string; readonly IsFull: boolean } | null;
  readonly IsEncrypted: boolean;
  readonly FullBackupFrequency: string | null;
  readonly IncrementalBackupFrequency: string | null;
  readonly RetentionPolicy: Retention | null;
  readonly BackupDestinations: readonly string[];
}

interface Retention {
  readonly Disabled: boolean;
  readonly MinimumBackupAgeToKeep: string | null;
}

/** The stored definition of a schedule. */
export interface BackupDefinition {
  readonly TaskId: number;
  readonly Name: string;
  readonly Disabled: boolean;
  readonly LocalSettings: { readonly FolderPath: string | null } | null;
  /** Without secrets. */
  readonly S3Settings: object | null;
  /** Without the key. */
  readonly BackupEncryptionSettings?: object | null;
  readonly FullBackupFrequency: string | null;
  readonly IncrementalBackupFrequency: string | null;
  readonly RetentionPolicy: Retention | null;
  readonly Continuous?: { readonly IntervalInSec: number };
}

/** A recent run of a schedule. */
export interface BackupRun {
  readonly StartedAt: string;
  readonly DurationInMs: number;
  readonly IsFull: boolean;
  readonly IsEncrypted: boolean;
  readonly FolderName: string | null;
  readonly FileName: string | null;
  /** Absent from runs of earlier versions. */
  readonly SizeInBytes?: number | null;
  readonly Error: string | null;
}

/** A backup in a folder or in S3 that can be restored. */
export interface RestorePoint {
  readonly DateTime: string;
  readonly Location: string;
  readonly FileName: string;
  readonly IsEncrypted: boolean;
  readonly IsIncremental: boolean;
  readonly DatabaseName: string;
}

/** A completed or failed backup. */
export interface Backup {
  readonly time: string;
  readonly isFull: boolean;
  readonly isEncrypted: boolean;
  /** Folder of the backup; null if it failed, or is in the S3 bucket of a schedule. */
  readonly location: string | null;
  /** Settings of S3 with secrets, if `location` is in a bucket. */
  readonly s3?: object | undefined;
  /** Null for a continuous backup, which can be restored as of any time. */
  readonly file: string | null;
  readonly bytes: number | null;
  readonly ms: number | null;
  readonly error: string | null;
}

export function backupOfRun(run: BackupRun, folder: string | null): Backup {
  const isThere = folder !== null && run.FolderName !== null && run.Error === null;
  return {
    time: run.StartedAt,
    isFull: run.IsFull,
    isEncrypted: run.IsEncrypted,
    location: isThere ? `${folder.replace(/[\\/]+$/, "")}/${run.FolderName}` : null,
    file: run.FileName,
    bytes: run.SizeInBytes ?? null,
    ms: run.DurationInMs,
    error: run.Error,
  };
}

export function backupOfPoint(point: RestorePoint, s3?: object): Backup {
  return {
    s3,
    time: point.DateTime.endsWith("Z") ? point.DateTime : `${point.DateTime}Z`,
    isFull: !point.IsIncremental,
    isEncrypted: point.IsEncrypted,
    location: point.Location,
    file: point.FileName,
    bytes: null,
    ms: null,
    error: null,
  };
}

export interface StartedOperation {
  readonly OperationId: number;
}

/** Options of a restore. */
interface RestoreOptions {
  readonly name: string;
  /** Encryption key in Base64; "" if the backup is not encrypted. */
  readonly key: string;
  /** Time with zone, for continuous backups; "" for the newest state. */
  readonly moment: string;
  readonly keepsTasks: boolean;
}

export async function startRestore(backup: Backup, options: RestoreOptions): Promise<number> {
  const { body } = await send<StartedOperation>("POST", "/admin/restore/database", {
    json: {
      ...sourceOf(backup, options.key),
      DatabaseName: options.name,
      DisableOngoingTasks: !options.keepsTasks,
      ...(options.moment === "" ? {} : { PointInTime: options.moment }),
    },
  });
  return body.OperationId;
}

/** Starts a server operation that restores a backup temporarily and compares it with the recorded counts. */
export async function startVerification(backup: Backup, key: string): Promise<number> {
  const { body } = await send<StartedOperation>("POST", "/admin/backups/verify", {
    json: sourceOf(backup, key),
  });
  return body.OperationId;
}

function sourceOf({ location, file, s3 }: Backup, key: string): object {
  return {
    ...(s3 === undefined ? { Type: "Local" } : { Type: "S3", Settings: s3 }),
    BackupLocation: location,
    ...(file === null ? {} : { LastFileNameToRestore: file }),
    ...(key === ""
      ? {}
      : { BackupEncryptionSettings: { Key: key, EncryptionMode: "UseProvidedKey" } }),
  };
}

const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/** Returns a cron expression in words if possible: `on Sunday at 02:00`. */
export function scheduleText(expression: string): string {
  const [minute = "", hour = "", day, month, weekday = ""] = expression.trim().split(/\s+/);
  if (day !== "*" || month !== "*" || !/^\d+$/.test(minute)) return `at "${expression}"`;
  if (hour === "*") return weekday === "*" ? "every hour" : `at "${expression}"`;
  if (!/^\d+$/.test(hour)) return `at "${expression}"`;
  const time = `${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`;
  if (weekday === "*") return `every day at ${time}`;
  const found = days.find((name, at) => {
    return weekday.toLowerCase() === name.slice(0, 3).toLowerCase() || weekday === String(at);
  });
  return found === undefined ? `at "${expression}"` : `on ${found} at ${time}`;
}

/** Describes a schedule in a sentence. */
export function definitionText(definition: BackupDefinition): string {
  const { FullBackupFrequency: full, IncrementalBackupFrequency: changes, Continuous } = definition;
  const parts: string[] = [];
  if (Continuous !== undefined)
    parts.push(`Continuous: changes are copied every ${Continuous.IntervalInSec} s`);
  if (full !== null) parts.push(`Full ${scheduleText(full)}`);
  if (changes !== null)
    parts.push(`${full === null ? "Changes" : "changes"} ${scheduleText(changes)}`);
  const age = definition.RetentionPolicy?.MinimumBackupAgeToKeep;
  const kept =
    age == null || definition.RetentionPolicy?.Disabled === true
      ? "All backups are kept."
      : `Kept for ${keptText(age)}.`;
  return `${parts.join(", ")}. ${kept}`;
}

/** Formats a retention time: `30.00:00:00` is 30 days. */
function keptText(age: string): string {
  const whole = /^(\d+)(?:\.00:00:00)?$/.exec(age)?.[1];
  return whole === undefined ? age : `${whole} ${whole === "1" ? "day" : "days"}`;
}

/** Returns the time of the newest backup in milliseconds since 1970, or null. */
export function lastBackupMs(tasks: readonly BackupTask[]): number | null {
  const times = tasks
    .flatMap((task) => [task.LastFullBackup, task.LastIncrementalBackup])
    .flatMap((time) => (time === null ? [] : [new Date(time).getTime()]));
  return times.length === 0 ? null : Math.max(...times);
}

/** Backups verified in this browser session, by location and file. */
const verifiedKey = "jackdaw-verified";
const fileOf = ({ location, file }: Backup) =>
  `${location ?? ""} ${(file ?? "").split(/[\\/]/).at(-1) ?? ""}`;

export function isVerified(backup: Backup): boolean {
  return verifiedBackups().includes(fileOf(backup));
}

function verifiedBackups(): readonly string[] {
  return JSON.parse(sessionStorage.getItem(verifiedKey) ?? "[]") as string[];
}

export function rememberVerified(backup: Backup): void {
  const names = new Set([...verifiedBackups(), fileOf(backup)]);
  sessionStorage.setItem(verifiedKey, JSON.stringify([...names].slice(-100)));
}
