/** Backups as the server tells of them: schedules, their runs, and what can be restored. */
import { send } from "./client.ts";

/** A schedule, as a list of tasks has it. */
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

export interface Retention {
  readonly Disabled: boolean;
  readonly MinimumBackupAgeToKeep: string | null;
}

/** A schedule as it is stored. */
export interface BackupDefinition {
  readonly TaskId: number;
  readonly Name: string;
  readonly Disabled: boolean;
  readonly LocalSettings: { readonly FolderPath: string | null } | null;
  readonly S3Settings: object | null;
  readonly FullBackupFrequency: string | null;
  readonly IncrementalBackupFrequency: string | null;
  readonly RetentionPolicy: Retention | null;
  readonly Continuous?: { readonly IntervalInSec: number };
}

/** One of the last runs of a schedule. */
export interface BackupRun {
  readonly StartedAt: string;
  readonly DurationInMs: number;
  readonly IsFull: boolean;
  readonly IsEncrypted: boolean;
  readonly FolderName: string | null;
  readonly FileName: string | null;
  /** Missing in runs that an earlier version made. */
  readonly SizeInBytes?: number | null;
  readonly Error: string | null;
}

/** What can be restored from a folder. */
export interface RestorePoint {
  readonly DateTime: string;
  readonly Location: string;
  readonly FileName: string;
  readonly IsEncrypted: boolean;
  readonly IsIncremental: boolean;
  readonly DatabaseName: string;
}

/** A backup that was made. */
export interface MadeBackup {
  readonly time: string;
  readonly isFull: boolean;
  readonly isEncrypted: boolean;
  /** The folder with it; null: it has failed, or is not in a folder. */
  readonly location: string | null;
  /** Null: a continuous one, of which every moment can be restored. */
  readonly file: string | null;
  readonly bytes: number | null;
  readonly ms: number | null;
  readonly error: string | null;
}

export function madeByRun(run: BackupRun, folder: string | null): MadeBackup {
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

export function madeAtPoint(point: RestorePoint): MadeBackup {
  return {
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

/** What a restore is asked for, besides the backup itself. */
export interface RestoreWishes {
  readonly name: string;
  /** Base64; "": it is not encrypted. */
  readonly key: string;
  /** With its zone; "": the newest. Of continuous backups only. */
  readonly moment: string;
  readonly keepsTasks: boolean;
}

export async function startRestore(made: MadeBackup, wishes: RestoreWishes): Promise<number> {
  const { body } = await send<StartedOperation>("POST", "/admin/restore/database", {
    json: {
      ...placeOf(made, wishes.key),
      DatabaseName: wishes.name,
      DisableOngoingTasks: !wishes.keepsTasks,
      ...(wishes.moment === "" ? {} : { PointInTime: wishes.moment }),
    },
  });
  return body.OperationId;
}

/** Starts an operation of the server that restores it aside, and compares it with what is known of it. */
export async function startVerification(made: MadeBackup, key: string): Promise<number> {
  const { body } = await send<StartedOperation>("POST", "/admin/backups/verify", {
    json: placeOf(made, key),
  });
  return body.OperationId;
}

function placeOf({ location, file }: MadeBackup, key: string): object {
  return {
    Type: "Local",
    BackupLocation: location,
    ...(file === null ? {} : { LastFileNameToRestore: file }),
    ...(key === ""
      ? {}
      : { BackupEncryptionSettings: { Key: key, EncryptionMode: "UseProvidedKey" } }),
  };
}

const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/** A cron expression in words, where there are some: `on Sunday at 02:00`. */
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

/** What a schedule does, in a sentence. */
export function definitionText(definition: BackupDefinition): string {
  const { FullBackupFrequency: full, IncrementalBackupFrequency: changes, Continuous } = definition;
  const parts: string[] = [];
  if (Continuous !== undefined)
    parts.push(`Every moment: what is written is copied every ${Continuous.IntervalInSec} s`);
  if (full !== null) parts.push(`Full ${scheduleText(full)}`);
  if (changes !== null)
    parts.push(`${full === null ? "Changes" : "changes"} ${scheduleText(changes)}`);
  const age = definition.RetentionPolicy?.MinimumBackupAgeToKeep;
  const kept =
    age == null || definition.RetentionPolicy?.Disabled === true
      ? "All are kept."
      : `Kept for ${keptText(age)}.`;
  return `${parts.join(", ")}. ${kept}`;
}

/** `30.00:00:00` is 30 days. */
function keptText(age: string): string {
  const whole = /^(\d+)(?:\.00:00:00)?$/.exec(age)?.[1];
  return whole === undefined ? age : `${whole} ${whole === "1" ? "day" : "days"}`;
}

/** Milliseconds since 1970 of the last backup that was made; null: never. */
export function lastBackupMs(tasks: readonly BackupTask[]): number | null {
  const times = tasks
    .flatMap((task) => [task.LastFullBackup, task.LastIncrementalBackup])
    .flatMap((time) => (time === null ? [] : [new Date(time).getTime()]));
  return times.length === 0 ? null : Math.max(...times);
}

/** Which backups were found to be good, in this session of the browser: location and file. */
const verifiedKey = "jackdaw-verified";
const fileOf = ({ location, file }: MadeBackup) =>
  `${location ?? ""} ${(file ?? "").split(/[\\/]/).at(-1) ?? ""}`;

export function isVerified(made: MadeBackup): boolean {
  return verifiedBackups().includes(fileOf(made));
}

function verifiedBackups(): readonly string[] {
  return JSON.parse(sessionStorage.getItem(verifiedKey) ?? "[]") as string[];
}

export function rememberVerified(made: MadeBackup): void {
  const names = new Set([...verifiedBackups(), fileOf(made)]);
  sessionStorage.setItem(verifiedKey, JSON.stringify([...names].slice(-100)));
}
