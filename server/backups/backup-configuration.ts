/**
 * Parses the configuration of one-time and periodic backups. Keys, their order, types, and texts are those of RavenDB
 * 7.2.7. Destinations other than a folder and S3, snapshots, and scripts are refused.
 */
import { EngineError, invalidArgument } from "../../engine/base/errors.ts";
import { dateText } from "../http/dates.ts";
import type { JsonObject } from "../http/json-body.ts";
import { parseTimeSpanMs } from "../http/request.ts";
import { shownEncryption, shownS3 } from "./backup-destination.ts";
import { CronSchedule } from "./cron-schedule.ts";

const dayMs = 86_400_000;
const weekMs = 7 * dayMs;
/** Default interval of a continuous backup's files, in seconds. */
const intervalDefault = 10;
const intervalMax = 3600;
const baseAfterMsMin = 60_000;

/** Known destinations that are refused. */
const remoteDestinations = {
  GlacierSettings: "Glacier",
  AzureSettings: "Azure",
  GoogleCloudSettings: "Google Cloud",
  FtpSettings: "FTP",
} as const;

/** The stored definition of a periodic backup, with every key of RavenDB's; missing values are null. */
export interface PeriodicBackup extends JsonObject {
  readonly Name: string;
  readonly TaskId: number;
  readonly Disabled: boolean;
  readonly LocalSettings: JsonObject | null;
  /** Without secrets, like `BackupEncryptionSettings`: see backup-destination.ts. */
  readonly S3Settings: JsonObject | null;
  readonly BackupEncryptionSettings: JsonObject | null;
  readonly FullBackupFrequency: string | null;
  readonly IncrementalBackupFrequency: string | null;
  readonly RetentionPolicy: JsonObject | null;
  readonly CreatedAt: string;
}

/**
 * Returns the folder of a one-time backup as sent, or null if it goes to S3.
 * @throws EngineError, RequestError for unsupported settings
 */
export function oneTimeFolder(sent: JsonObject): string | null {
  refuseUnsupported(sent);
  const local = localSettings(sent);
  const s3 = shownS3(sent["S3Settings"]);
  requireOneDestination(local, s3);
  if (local !== null) return folderOf(local);
  if (s3 !== null) return null;
  throw new EngineError("invalid-operation", "The backup configuration target no destinations");
}

function requireOneDestination(local: JsonObject | null, s3: JsonObject | null): void {
  if (local === null || s3 === null) return;
  throw new EngineError(
    "not-supported",
    "A backup has one destination, LocalSettings or S3Settings. Create two backups.",
  );
}

/**
 * Converts a sent definition to the one to store. @throws EngineError, RequestError
 * @param taskId its id @param now time of creation
 */
export function periodicBackup(sent: JsonObject, taskId: number, now: Date): PeriodicBackup {
  refuseUnsupported(sent);
  const Disabled = sent["Disabled"] === true;
  const local = localSettings(sent);
  const full = textOf(sent, "FullBackupFrequency");
  const incremental = textOf(sent, "IncrementalBackupFrequency");
  for (const expression of [full, incremental]) {
    if (expression !== null) void new CronSchedule(expression);
  }
  const continuous = continuousOf(sent);
  if (continuous !== null && (full !== null || incremental !== null)) {
    throw invalidArgument(
      "A continuous backup (Continuous) cannot have FullBackupFrequency or IncrementalBackupFrequency. Create two tasks.",
    );
  }
  if (continuous === null && full === null && incremental === null) {
    throw invalidArgument(
      "Couldn't parse the cron expressions for both full and incremental backups. full backup cron expression: , incremental backup cron expression: ",
    );
  }
  const retention = retentionOf(sent["RetentionPolicy"]);
  const s3 = shownS3(sent["S3Settings"]);
  requireOneDestination(local, s3);
  if (local === null && s3 === null && !Disabled) {
    throw new EngineError(
      "invalid-operation",
      "The backup configuration is enabled without target any destinations",
    );
  }
  if (local !== null) folderOf(local);
  return {
    BackupType: "Backup",
    BackupUploadMode: "Default",
    SnapshotSettings: null,
    BackupEncryptionSettings: shownEncryption(sent),
    MaxReadOpsPerSecond: null,
    LocalSettings: local,
    S3Settings: s3,
    GlacierSettings: null,
    AzureSettings: null,
    GoogleCloudSettings: null,
    FtpSettings: null,
    Name: textOf(sent, "Name") ?? defaultName(local, s3, continuous),
    TaskId: taskId,
    Disabled,
    MentorNode: textOf(sent, "MentorNode"),
    PinToMentorNode: sent["PinToMentorNode"] === true,
    FullBackupFrequency: full,
    IncrementalBackupFrequency: incremental,
    RetentionPolicy: retention,
    CreatedAt: dateText(now),
    ...(continuous === null ? {} : { Continuous: continuous }),
  };
}

function defaultName(
  local: JsonObject | null,
  s3: JsonObject | null,
  continuous: JsonObject | null,
): string {
  if (local === null && s3 === null) return "Backup w/o destinations";
  const place = local === null ? "S3" : "Local";
  return continuous === null ? `Backup to ${place}` : `Continuous backup to ${place}`;
}

/** Returns whether the definition has a destination. */
export function hasDestination({ LocalSettings, S3Settings }: PeriodicBackup): boolean {
  return LocalSettings !== null || S3Settings !== null;
}

/** The schedule of a continuous backup. */
export interface ContinuousSettings {
  /** Interval of files, in milliseconds. */
  readonly intervalMs: number;
  /** Age of the base at which a new one is written, in milliseconds. */
  readonly baseAfterMs: number;
}

/** Returns whether it is a continuous backup, as opposed to a scheduled one. */
export function isContinuous(task: PeriodicBackup): boolean {
  return isObject(task["Continuous"]);
}

/** Returns null for a scheduled backup. */
export function continuousSettings(task: PeriodicBackup): ContinuousSettings | null {
  const continuous = task["Continuous"];
  if (!isObject(continuous)) return null;
  return {
    intervalMs: Number(continuous["IntervalInSec"]) * 1000,
    baseAfterMs: parseTimeSpanMs(String(continuous["NewBaseAfter"])) ?? weekMs,
  };
}

/** @throws EngineError invalid-argument, invalid-format */
function continuousOf(sent: JsonObject): JsonObject | null {
  const continuous = sent["Continuous"] ?? null;
  if (continuous === null) return null;
  if (!isObject(continuous)) {
    throw new EngineError(
      "invalid-format",
      "'Continuous' must be an object, for example {\"IntervalInSec\":5}.",
    );
  }
  const interval = continuous["IntervalInSec"] ?? intervalDefault;
  if (typeof interval !== "number" || !(interval >= 1 && interval <= intervalMax)) {
    throw invalidArgument(`IntervalInSec must be a number of seconds from 1 to ${intervalMax}.`);
  }
  const after = continuous["NewBaseAfter"] ?? "7.00:00:00";
  const ms = typeof after === "string" ? parseTimeSpanMs(after) : undefined;
  if (ms === undefined || ms < baseAfterMsMin) {
    throw invalidArgument(
      "NewBaseAfter must be a time span of a minute or more, for example 7.00:00:00 for a week.",
    );
  }
  return { IntervalInSec: interval, NewBaseAfter: after };
}

/**
 * Returns the periodic backups of a database's record. Records also come from clients and dumps, so definitions that this
 * server would not have stored are skipped.
 */
export function periodicBackupsOf(record: JsonObject): PeriodicBackup[] {
  const stored = record["PeriodicBackups"];
  if (!Array.isArray(stored)) return [];
  return (stored as readonly unknown[]).flatMap((one) => {
    if (!isObject(one) || !Number.isSafeInteger(one["TaskId"])) return [];
    try {
      const kept = periodicBackup(one, Number(one["TaskId"]), new Date(0));
      return [{ ...kept, CreatedAt: String(one["CreatedAt"] ?? kept.CreatedAt) }];
    } catch {
      return [];
    }
  });
}

/** Returns the folder of a periodic backup, or null if it goes to S3 or has no destination. */
export function periodicFolder({ LocalSettings }: PeriodicBackup): string | null {
  return LocalSettings === null ? null : folderOf(LocalSettings);
}

/** Returns the age from which a backup may be removed, in milliseconds, or null if all are retained. */
export function retentionMs({ RetentionPolicy }: PeriodicBackup): number | null {
  if (RetentionPolicy === null || RetentionPolicy["Disabled"] === true) return null;
  const age = RetentionPolicy["MinimumBackupAgeToKeep"];
  return typeof age === "string" ? (parseTimeSpanMs(age) ?? null) : null;
}

function refuseUnsupported(sent: JsonObject): void {
  const type = sent["BackupType"] ?? "Backup";
  if (typeof type !== "string" || !/^(backup|snapshot)$/i.test(type)) {
    throw new EngineError(
      "invalid-format",
      `Could not convert '${String(type)}' to Raven.Client.Documents.Operations.Backups.BackupType`,
    );
  }
  const s3 = sent["S3Settings"];
  if (isObject(s3) && s3["Disabled"] !== true && hasScript(s3)) throw scriptRefused();
  if (type.toLowerCase() === "snapshot") {
    throw new EngineError(
      "not-supported",
      "Snapshots are not supported. Use the BackupType 'Backup'.",
    );
  }
  for (const [key, name] of Object.entries(remoteDestinations)) {
    const destination = sent[key];
    if (!isObject(destination) || destination["Disabled"] === true) continue;
    throw new EngineError(
      "not-supported",
      `Backups to ${name} are not supported. Use a folder (LocalSettings) or S3 (S3Settings).`,
    );
  }
}

/** Returns null if the folder is missing or disabled. */
function localSettings(sent: JsonObject): JsonObject | null {
  const local = sent["LocalSettings"];
  if (!isObject(local) || local["Disabled"] === true) return null;
  if (hasScript(local)) throw scriptRefused();
  return {
    Disabled: false,
    GetBackupConfigurationScript: null,
    FolderPath: local["FolderPath"] ?? null,
    ShardNumber: null,
  };
}

function scriptRefused(): EngineError {
  return new EngineError(
    "not-supported",
    "GetBackupConfigurationScript is not supported, because the server runs no programs for clients.",
  );
}

function hasScript({ GetBackupConfigurationScript: script }: JsonObject): boolean {
  return isObject(script) || (typeof script === "string" && script !== "");
}

function folderOf({ FolderPath: path }: JsonObject): string {
  if (typeof path === "string" && path.trim() !== "") return path;
  throw invalidArgument("FolderPath and GetBackupConfigurationScript cannot be both null or empty");
}

function retentionOf(sent: unknown): JsonObject | null {
  if (!isObject(sent)) return null;
  const age = sent["MinimumBackupAgeToKeep"] ?? null;
  if (age !== null) {
    const ms = typeof age === "string" ? parseTimeSpanMs(age) : undefined;
    if (ms === undefined) {
      throw new EngineError(
        "invalid-format",
        `Could not convert '${String(age)}' to a time span, for example 7.00:00:00 for a week.`,
      );
    }
    if (ms < dayMs) throw invalidArgument("MinimumBackupAgeToKeep must be bigger than one day");
  }
  return { Disabled: sent["Disabled"] === true, MinimumBackupAgeToKeep: age };
}

/** @throws EngineError invalid-format for values other than text */
function textOf(sent: JsonObject, key: string): string | null {
  const value = sent[key] ?? null;
  if (value === null || value === "") return null;
  if (typeof value === "string") return value;
  throw new EngineError("invalid-format", `'${key}' must be text.`);
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
