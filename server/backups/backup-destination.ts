/**
 * The destination of a backup and its encryption key, from a definition, a one-time backup, or a restore. Keys are those of
 * RavenDB 7.2.7.
 *
 *   values["server/backup-secrets/<database>/<task>"]   the secrets of a periodic backup
 *
 * Invariants:
 * - Secrets appear in no record, dump, backup, reply, message, or log line. Definitions are stored without them.
 */
import { foldedName } from "../../engine/base/case-folding.ts";
import type { FileSystem } from "../../engine/base/environment.ts";
import { EngineError, invalidArgument } from "../../engine/base/errors.ts";
import type { JsonObject } from "../http/json-body.ts";
import type { ValueStore } from "../settings/value-store.ts";
import { checkedFolder, type FolderRules } from "./backup-folder.ts";
import type { BackupStorage } from "./backup-storage.ts";
import { FolderStorage } from "./folder-storage.ts";
import { S3Client, type S3Settings } from "./s3-client.ts";
import { S3Storage } from "./s3-storage.ts";
import { keyBytes } from "./secret-stream.ts";

const prefix = "server/backup-secrets/";

/** A storage and its encryption key, or null if it is not encrypted. */
export interface OpenDestination {
  readonly place: BackupStorage;
  readonly key: Buffer | null;
}

/** The dependencies for opening destinations. */
interface DestinationHost {
  readonly files: FileSystem;
  readonly rules: FolderRules;
}

/** The secret members of a definition. */
interface BackupSecrets extends JsonObject {
  readonly Key: string | null;
  readonly AwsSecretKey: string | null;
  readonly AwsSessionToken: string | null;
}

function secretsOf(sent: JsonObject): BackupSecrets {
  const s3 = objectOf(sent["S3Settings"]);
  return {
    Key: textOf(objectOf(sent["BackupEncryptionSettings"])?.["Key"]),
    AwsSecretKey: textOf(s3?.["AwsSecretKey"]),
    AwsSessionToken: textOf(s3?.["AwsSessionToken"]),
  };
}

/** Returns a stored definition with its secrets. */
export function withSecrets(task: JsonObject, secrets: BackupSecrets): JsonObject {
  const { Key, AwsSecretKey, AwsSessionToken } = secrets;
  const s3 = objectOf(task["S3Settings"]);
  const encryption = objectOf(task["BackupEncryptionSettings"]);
  return {
    ...task,
    ...(s3 === null ? {} : { S3Settings: { ...s3, AwsSecretKey, AwsSessionToken } }),
    ...(encryption === null ? {} : { BackupEncryptionSettings: { ...encryption, Key } }),
  };
}

/**
 * Returns the secrets of `sent`, or the stored ones if it has none and the same destination: a client that changes a
 * definition sends it as it was returned, without secrets.
 */
export function keptSecrets(
  sent: JsonObject,
  previous: JsonObject | undefined,
  known: BackupSecrets,
): BackupSecrets {
  const own = secretsOf(sent);
  const isSamePlace =
    previous !== undefined && placeText(previous["S3Settings"]) === placeText(sent["S3Settings"]);
  const isEncrypted = encryptionMode(sent) !== "none";
  const s3 = own.AwsSecretKey === null && isSamePlace ? known : own;
  return {
    Key: own.Key ?? (isEncrypted ? known.Key : null),
    AwsSecretKey: s3.AwsSecretKey,
    AwsSessionToken: s3.AwsSessionToken,
  };
}

function placeText(settings: unknown): string {
  const { AwsAccessKey, BucketName, CustomServerUrl, AwsRegionName } = objectOf(settings) ?? {};
  return JSON.stringify([AwsAccessKey, BucketName, CustomServerUrl ?? null, AwsRegionName ?? null]);
}

/** Stores the secrets of periodic backups. */
export class SecretStore {
  readonly #values: ValueStore;

  constructor(values: ValueStore) {
    this.#values = values;
  }

  of(database: string, taskId: number): BackupSecrets {
    const text = this.#values.get(keyOf(database, taskId));
    return text === undefined ? secretsOf({}) : (JSON.parse(text) as BackupSecrets);
  }

  async put(database: string, taskId: number, secrets: BackupSecrets): Promise<void> {
    if (Object.values(secrets).every((one) => one === null)) await this.delete(database, taskId);
    else await this.#values.put(keyOf(database, taskId), JSON.stringify(secrets));
  }

  async delete(database: string, taskId: number): Promise<void> {
    const key = keyOf(database, taskId);
    if (this.#values.get(key) !== undefined) await this.#values.delete(key);
  }

  /** Deletes the secrets of a deleted database. */
  async deleteAll(database: string): Promise<void> {
    const keys = [...this.#values.entries(`${prefix}${foldedName(database)}/`)];
    for (const [key] of keys) await this.#values.delete(key);
  }
}

function keyOf(database: string, taskId: number): string {
  return `${prefix}${foldedName(database)}/${taskId}`;
}

/** "none" or "useprovidedkey". @throws EngineError invalid-format, not-supported */
function encryptionMode(sent: JsonObject): "none" | "useprovidedkey" {
  const settings = objectOf(sent["BackupEncryptionSettings"]);
  const mode = settings?.["EncryptionMode"] ?? "None";
  const found = typeof mode === "string" ? mode.toLowerCase() : "";
  if (found === "none" || found === "useprovidedkey") return found;
  if (found === "usedatabasekey") {
    throw new EngineError(
      "not-supported",
      "The EncryptionMode UseDatabaseKey is not supported, because databases are not encrypted. Use UseProvidedKey with a Key.",
    );
  }
  throw new EngineError(
    "invalid-format",
    `Could not convert '${String(mode)}' to Raven.Client.Documents.Operations.Backups.EncryptionMode`,
  );
}

/** Returns the settings without the key, or null if not encrypted. @throws EngineError */
export function shownEncryption(sent: JsonObject): JsonObject | null {
  return encryptionMode(sent) === "none" && secretsOf(sent).Key === null
    ? null
    : { Key: null, EncryptionMode: "UseProvidedKey" };
}

/** Returns the key, or null if not encrypted. @throws EngineError invalid-operation, invalid-format, not-supported */
export function encryptionKey(sent: JsonObject): Buffer | null {
  const mode = encryptionMode(sent);
  const { Key: text } = secretsOf(sent);
  if (mode === "none") {
    if (text === null) return null;
    throw new EngineError(
      "invalid-operation",
      "EncryptionMode is set to None but an encryption key was provided",
    );
  }
  if (text === null) {
    throw new EngineError(
      "invalid-operation",
      "EncryptionMode is set to UseProvidedKey but an encryption key wasn't provided",
    );
  }
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text) || text.length % 4 !== 0) {
    throw new EngineError(
      "invalid-format",
      "The encryption key is not a valid Base-64 string. `openssl rand -base64 32` generates one.",
    );
  }
  const key = Buffer.from(text, "base64");
  if (key.length === keyBytes) return key;
  throw new EngineError(
    "invalid-operation",
    `The size of the key must be ${keyBytes} bytes, but was ${key.length} bytes. \`openssl rand -base64 32\` generates one.`,
  );
}

const s3Keys = [
  "AwsAccessKey",
  "AwsRegionName",
  "RemoteFolderName",
  "BucketName",
  "CustomServerUrl",
  "StorageClass",
] as const;

/** Returns the settings to store, without secrets, or null if missing or disabled. @throws EngineError */
export function shownS3(sent: unknown): JsonObject | null {
  const settings = objectOf(sent);
  if (settings === null || settings["Disabled"] === true) return null;
  // As in RavenDB, settings without a bucket are no destination.
  if (textOf(settings["BucketName"]) === null) return null;
  const kept = Object.fromEntries(s3Keys.map((key) => [key, textOf(settings[key])]));
  checkS3(kept);
  return {
    Disabled: false,
    GetBackupConfigurationScript: null,
    AwsAccessKey: kept["AwsAccessKey"],
    AwsSecretKey: null,
    AwsSessionToken: null,
    AwsRegionName: kept["AwsRegionName"],
    RemoteFolderName: kept["RemoteFolderName"],
    BucketName: kept["BucketName"],
    CustomServerUrl: kept["CustomServerUrl"],
    ForcePathStyle: settings["ForcePathStyle"] === true,
    StorageClass: kept["StorageClass"],
  };
}

const isBucket = /^[A-Za-z0-9][A-Za-z0-9._-]{1,254}$/;
const isHeaderText = /^[\x21-\x7e]+$/;

function checkS3(settings: JsonObject): void {
  const { BucketName, CustomServerUrl, AwsRegionName, StorageClass } = settings;
  if (!isBucket.test(String(BucketName))) {
    throw invalidArgument(`The BucketName of S3Settings is not a valid bucket name: ${BucketName}`);
  }
  for (const text of [AwsRegionName, StorageClass]) {
    if (text !== null && !isHeaderText.test(String(text))) {
      throw invalidArgument(`S3Settings contains invalid characters: ${text}`);
    }
  }
  if (CustomServerUrl === null) {
    if (AwsRegionName === null) throw invalidArgument("AWS Region Name cannot be null or empty");
    if (!/^[a-z0-9-]+$/.test(String(AwsRegionName))) {
      throw invalidArgument(`The AwsRegionName of S3Settings is not a region: ${AwsRegionName}`);
    }
    return;
  }
  const url = URL.canParse(String(CustomServerUrl)) ? new URL(String(CustomServerUrl)) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== "" || url.search !== "") {
    throw invalidArgument(
      `The CustomServerUrl of S3Settings must be a URL without user and parameters, for example https://s3.example.com:9000`,
    );
  }
}

/** @throws EngineError invalid-argument for missing members */
function s3SettingsOf(sent: JsonObject): { settings: S3Settings; folder: string } {
  const shown = shownS3(sent);
  if (shown === null) throw invalidArgument("The BucketName of S3Settings is missing");
  const accessKey = textOf(sent["AwsAccessKey"]);
  const secretKey = textOf(sent["AwsSecretKey"]);
  if (accessKey === null) throw invalidArgument("AWS Access Key cannot be null or empty");
  if (secretKey === null) throw invalidArgument("AWS Secret Key cannot be null or empty");
  const serverUrl = textOf(shown["CustomServerUrl"]);
  const bucket = String(shown["BucketName"]);
  const settings = {
    bucket,
    accessKey,
    secretKey,
    sessionToken: textOf(sent["AwsSessionToken"]),
    region: textOf(shown["AwsRegionName"]) ?? "us-east-1",
    serverUrl,
    // No server certificate covers names with dots or capitals.
    isPathStyle: shown["ForcePathStyle"] === true || !/^[a-z0-9-]+$/.test(bucket),
    storageClass: textOf(shown["StorageClass"]),
  };
  return { settings, folder: textOf(shown["RemoteFolderName"]) ?? "" };
}

/** @param sent S3Settings with secrets @throws EngineError invalid-argument */
export function s3Storage(sent: JsonObject): BackupStorage {
  const { settings, folder } = s3SettingsOf(sent);
  return new S3Storage(new S3Client(settings), folder);
}

/** @param path path of a folder @throws EngineError invalid-argument */
export async function folderStorage(
  { files, rules }: DestinationHost,
  path: string,
): Promise<BackupStorage> {
  return new FolderStorage(files, await checkedFolder(path, rules));
}

/**
 * Opens the destination of a backup. @param sent settings with secrets @throws EngineError invalid-argument, invalid-operation
 */
export async function destinationOf(
  host: DestinationHost,
  sent: JsonObject,
): Promise<OpenDestination> {
  const key = encryptionKey(sent);
  const s3 = objectOf(sent["S3Settings"]);
  if (s3 !== null && shownS3(s3) !== null) return { place: s3Storage(s3), key };
  const path = objectOf(sent["LocalSettings"])?.["FolderPath"];
  if (typeof path === "string") return { place: await folderStorage(host, path), key };
  throw new EngineError("invalid-operation", "The backup configuration target no destinations");
}

function textOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

function objectOf(value: unknown): JsonObject | null {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as JsonObject)
    : null;
}
