/**
 * Restores a database from the files of a backup: a full one, and the incremental ones that follow it in its folder.
 *
 *   values["server/restoring/<name>"]   {"Name","CreatedIndex"} of each restore in progress
 *
 * Invariants:
 * - A restore creates a new database; it never changes an existing one.
 * - Until the restore is complete, the database serves no requests (`DatabaseState` in its record). A failed restore
 *   removes the database, and after a crash the next start does.
 */

import { randomBytes } from "node:crypto";
import { foldedName } from "../../engine/base/case-folding.ts";
import { checkDatabaseName } from "../../engine/base/database-name.ts";
import type { FileSystem } from "../../engine/base/environment.ts";
import { EngineError, invalidArgument } from "../../engine/base/errors.ts";
import {
  type Database,
  type Databases,
  hasCompleteSections,
  type OperationFigures,
  type Operations,
  type SmugglerResult,
  type StartedOperation,
} from "../../engine/engine.ts";
import {
  type KeptRecord,
  keptRecord,
  restoringState,
  withoutBackupSecrets,
} from "../databases/database-record.ts";
import { dumpText } from "../databases/dump-body.ts";
import { dateText } from "../http/dates.ts";
import type { JsonObject } from "../http/json-body.ts";
import type { ValueStore } from "../settings/value-store.ts";
import {
  encryptionKey,
  folderStorage,
  type OpenDestination,
  s3Storage,
} from "./backup-destination.ts";
import { type BackupFileName, backupFilesIn, type FolderRules, isFolder } from "./backup-folder.ts";
import { restoredFiles } from "./backup-result.ts";
import type { BackupStorage } from "./backup-storage.ts";
import { ContinuousFolder, continuousToRestore, requireKeyFor } from "./continuous-folder.ts";
import { decrypted } from "./secret-stream.ts";
import { type RestoredBackup, verification } from "./verification.ts";

const prefix = "server/restoring/";

/** The databases to which a restored one is added. */
export interface RestoredDatabases {
  has(name: string): boolean;
  find(name: string): Database | undefined | Promise<Database | undefined>;
  create(name: string, record: JsonObject): Promise<Database>;
  createFromShipped: Databases["createFromShipped"];
  delete(name: string): Promise<boolean>;
}

/** The dependencies of restores. */
interface RestoreHost {
  readonly databases: RestoredDatabases;
  /** Databases of this node alone, whether or not it belongs to a cluster. */
  readonly ownDatabases: RestoredDatabases;
  readonly operations: Operations;
  readonly values: ValueStore;
  readonly files: FileSystem;
  readonly rules: FolderRules;
  nextIndex(): Promise<number>;
  /** Called after a whole record was replaced. */
  recordChanged(database: Database): Promise<void>;
}

/** A parsed restore request. */
interface RestoreRequest {
  readonly name: string;
  /** Path of a folder, or null for S3. */
  readonly location: string | null;
  /** S3 settings with secrets. */
  readonly s3: JsonObject | null;
  /** Null if the backup is not encrypted. */
  readonly key: Buffer | null;
  /** Last file to restore, or null for all. */
  readonly lastFile: string | null;
  /** Last moment to restore, in microseconds since the Unix epoch, or null for the newest. For continuous backups only. */
  readonly throughMicros: number | null;
  readonly disablesTasks: boolean;
  readonly skipsIndexes: boolean;
}

/** A restore in progress. */
interface Restoring {
  readonly request: RestoreRequest;
  readonly place: BackupStorage;
  /** The databases to which the restored one is added. */
  readonly databases: RestoredDatabases;
}

export class Restores {
  readonly #host: RestoreHost;

  constructor(host: RestoreHost) {
    this.#host = host;
  }

  /**
   * Starts an operation of the server that restores the backup described by `sent`.
   * @throws EngineError invalid-argument, not-supported
   */
  async start(sent: JsonObject, startedBy: string | undefined): Promise<StartedOperation> {
    const request = restoreRequest(sent);
    const place = await this.#existingPlace(request);
    return await this.#host.operations.start(
      "DatabaseRestore",
      `Database restore: ${request.name}`,
      (progress, signal) =>
        this.#restore(
          { request, place, databases: this.#host.databases },
          progress,
          signal,
          async ({ database, figures }) => {
            await this.#complete(database, request);
            return figures;
          },
        ),
      { startedBy },
    );
  }

  /**
   * Starts an operation of the server that restores the backup described by `sent` into a database that serves no requests,
   * compares it with the sums of the backup and with the database `CompareWith`, and removes it. Its result has
   * `Verification`. @throws as `start`
   */
  async verify(sent: JsonObject, startedBy: string | undefined): Promise<StartedOperation> {
    const name = `verification-${randomBytes(6).toString("hex")}`;
    const request = restoreRequest({ ...sent, DatabaseName: name, DisableOngoingTasks: true });
    const place = await this.#existingPlace(request);
    const comparedName = sent["CompareWith"] ?? null;
    if (comparedName !== null && !this.#host.databases.has(String(comparedName))) {
      throw invalidArgument(
        `The database '${String(comparedName)}' to compare with does not exist`,
      );
    }
    return await this.#host.operations.start(
      "DatabaseRestore",
      `Backup verification: ${place.where("")}`,
      (progress, signal) =>
        this.#restore(
          { request, place, databases: this.#host.ownDatabases },
          progress,
          signal,
          async (restored) => {
            const { databases, ownDatabases } = this.#host;
            const compared =
              comparedName === null ? undefined : await databases.find(String(comparedName));
            const Verification = await verification(restored, compared, signal);
            await removeMade(ownDatabases, name, restored.index);
            return { ...restored.figures, Verification };
          },
        ),
      { startedBy },
    );
  }

  async #existingPlace({ location, s3 }: RestoreRequest): Promise<BackupStorage> {
    if (location === null) return s3Storage(s3 ?? {});
    const place = await folderStorage(this.#host, location);
    if (await isFolder(place.path)) return place;
    throw invalidArgument(`Backup location doesn't exist, path: ${location}`);
  }

  /** Removes the databases of restores that a crash has interrupted. Must be called before requests are served. */
  async removeInterrupted(): Promise<void> {
    const { databases, values } = this.#host;
    for (const [key, text] of [...values.entries(prefix)]) {
      const { Name, CreatedIndex } = JSON.parse(text) as { Name: string; CreatedIndex: number };
      const database = databases.has(Name) ? await databases.find(Name) : undefined;
      // Another client may have created one of this name.
      if (database?.settings["CreatedIndex"] === CreatedIndex) await databases.delete(Name);
      await values.delete(key);
    }
  }

  async #restore(
    { request, place, databases }: Restoring,
    progress: (figures: OperationFigures) => void,
    signal: AbortSignal,
    use: (restored: RestoredBackup) => Promise<OperationFigures>,
  ): Promise<OperationFigures> {
    const { values } = this.#host;
    const { name } = request;
    checkName(name);
    if (databases.has(name)) throw exists(name);
    const continuous = await ContinuousFolder.within(place, request.key);
    if (continuous.length === 0 && request.throughMicros !== null) {
      throw invalidArgument(
        `PointInTime needs a continuous backup, but the backup location has none, path: ${place.path}`,
      );
    }
    const names = continuous.length === 0 ? await filesToRestore(place, request) : [];
    const index = await this.#host.nextIndex();
    const key = prefix + foldedName(name);
    await values.put(key, JSON.stringify({ Name: name, CreatedIndex: index }));
    try {
      const restored =
        continuous.length > 0
          ? await this.#makeContinuous(request, databases, continuous, index, progress, signal)
          : await this.#make({ request, place, databases }, names, index, progress, signal);
      return await use(restored);
    } catch (error) {
      // Another client has created one of this name meanwhile.
      if (error instanceof EngineError && error.code === "database-exists") throw exists(name);
      await removeMade(databases, name, index);
      throw error;
    } finally {
      await values.delete(key);
    }
  }

  async #make(
    { request, place, databases }: Restoring,
    names: readonly string[],
    index: number,
    progress: (figures: OperationFigures) => void,
    signal: AbortSignal,
  ): Promise<RestoredBackup> {
    const kept = keptRecord(request.name, {}, undefined, index, dateText(new Date()));
    const record = { ...kept, DatabaseState: restoringState };
    const database = await databases.create(request.name, record);
    const figures = await this.#fill(database, request, place, names, progress, signal);
    return { database, index, figures, place, names, continuous: null };
  }

  async #makeContinuous(
    request: RestoreRequest,
    databases: RestoredDatabases,
    folders: readonly ContinuousFolder[],
    index: number,
    progress: (figures: OperationFigures) => void,
    signal: AbortSignal,
  ): Promise<RestoredBackup> {
    const { name } = request;
    const micros = request.throughMicros ?? Number.MAX_SAFE_INTEGER;
    const chosen = await continuousToRestore(folders, request.throughMicros);
    const files = [chosen.base, ...chosen.frames];
    const names = files.map((file) => file.name);
    const TotalBytes = files.reduce((sum, { bytes }) => sum + bytes, 0);
    const own = keptRecord(name, {}, undefined, index, dateText(new Date()));
    const record = (found: JsonObject): JsonObject => ({
      ...found,
      DatabaseName: name,
      CreatedIndex: index,
      ChangedIndex: index,
      CreatedAt: own.CreatedAt,
      DatabaseState: restoringState,
    });
    const made = await databases.createFromShipped(name, record, micros, async (restore) => {
      let ProcessedBytes = 0;
      for (const [i, { name: file, bytes }] of files.entries()) {
        signal.throwIfAborted();
        const reached = restoredFiles(false, file, i + 1, names.length);
        progress({ ...reached, ProcessedBytes, TotalBytes });
        await restore.add(chosen.folder.place.where(file), chosen.folder.read(file));
        ProcessedBytes += bytes;
        if (restore.isDone) break;
      }
      for (const content of chosen.contents) {
        signal.throwIfAborted();
        await restore.addContent(content, chosen.folder.readContent(content));
      }
    });
    const { database, restored, missingContents } = made;
    const figures = {
      Documents: { ReadCount: database.statistics.counts().CountOfDocuments },
      Continuous: {
        Folder: chosen.folder.place.path,
        Commit: restored.commit,
        CommittedAt: new Date(restored.committedMicros / 1000).toISOString(),
        MissingContents: missingContents,
      },
      ...restoredFiles(true, null, names.length, names.length),
    };
    return { database, index, figures, place: chosen.folder.place, names, continuous: made };
  }

  async #fill(
    database: Database,
    { skipsIndexes, key }: RestoreRequest,
    place: BackupStorage,
    names: readonly string[],
    progress: (figures: OperationFigures) => void,
    signal: AbortSignal,
  ): Promise<OperationFigures> {
    const source: OpenDestination = { place, key };
    const result: SmugglerResult = database.smuggler.newResult();
    const stored = await place.files();
    const TotalBytes = stored.reduce(
      (sum, { name, bytes }) => sum + (names.includes(name) ? bytes : 0),
      0,
    );
    let ProcessedBytes = 0;
    const counting = (bytes: number) => {
      ProcessedBytes += bytes;
    };
    const guest = database.enter(true);
    try {
      const last = names.at(-1) as string; // never empty
      const isComplete = names.length > 1 && hasCompleteSections(await headOf(source, last));
      for (const [i, name] of names.entries()) {
        result.add("INFO", `Restoring file ${i + 1}/${names.length}`);
        const hasSuccessor = isComplete && i < names.length - 1;
        const tell = (figures: OperationFigures) =>
          progress({
            ...figures,
            ...restoredFiles(false, name, i + 1, names.length),
            ProcessedBytes,
            TotalBytes,
          });
        await database.smuggler.restore(
          dumpText(readDump(source, name, counting), true),
          { hasSuccessor, skipsIndexes },
          () => this.#host.nextIndex(),
          result,
          tell,
          signal,
        );
      }
    } finally {
      guest.release();
    }
    return { ...result.toJson(true), ...restoredFiles(true, null, names.length, names.length) };
  }

  /** Makes the database available. */
  async #complete(database: Database, { disablesTasks }: RestoreRequest): Promise<void> {
    const index = await this.#host.nextIndex();
    await database.changeSettings((record) => {
      const { DatabaseState: _restored, ...kept } = record as KeptRecord;
      const found = kept["PeriodicBackups"];
      // Files of RavenDB contain the secrets of their tasks.
      const tasks = Array.isArray(found) ? found.map(withoutBackupSecrets) : null;
      return {
        ...kept,
        ...(tasks === null ? {} : { PeriodicBackups: disablesTasks ? tasks.map(disabled) : tasks }),
        ChangedIndex: index,
      };
    });
    await this.#host.recordChanged(database);
  }
}

/** Removes the database of a failed restore, unless another client has created it. */
async function removeMade(
  databases: RestoredDatabases,
  name: string,
  createdIndex: number,
): Promise<void> {
  const found = await Promise.resolve(databases.find(name)).catch(() => undefined);
  const isOurs = found === undefined || found.settings["CreatedIndex"] === createdIndex;
  if (isOurs) await databases.delete(name);
}

function disabled(task: unknown): unknown {
  return typeof task === "object" && task !== null ? { ...task, Disabled: true } : task;
}

/** @throws EngineError invalid-argument, not-supported */
function restoreRequest(sent: JsonObject): RestoreRequest {
  const type = sent["Type"] ?? "Local";
  if (typeof type !== "string" || !/^(local|s3|azure|googlecloud)$/i.test(type)) {
    throw invalidArgument(`Unsupported restore type: ${String(type)} (supported: Local)`);
  }
  const isS3 = type.toLowerCase() === "s3";
  const unsupported: readonly (readonly [boolean, string])[] = [
    [
      !isS3 && type.toLowerCase() !== "local",
      `Restoring from ${type} is not supported. Restore from a folder or from S3.`,
    ],
    [
      isSet(sent["EncryptionKey"]),
      "A restored database cannot be encrypted (EncryptionKey). Send the key of an encrypted backup as BackupEncryptionSettings.",
    ],
    [
      isSet(sent["DataDirectory"]) || isSet(sent["JournalsStoragePath"]),
      "The folder of a database cannot be chosen. It is always in the data folder of the server.",
    ],
  ];
  const refused = unsupported.find(([isAsked]) => isAsked);
  if (refused !== undefined) throw new EngineError("not-supported", refused[1]);
  const s3 = isObject(sent["Settings"]) ? sent["Settings"] : {};
  const location = sent["BackupLocation"];
  const isMissing = typeof location !== "string" || location.trim() === "";
  if (!isS3 && isMissing) throw invalidArgument("Backup location can't be null or empty");
  const name = sent["DatabaseName"];
  const lastFile = sent["LastFileNameToRestore"];
  return {
    name: typeof name === "string" ? name : "",
    location: isS3 || isMissing ? null : location,
    // As in RavenDB, the folder is part of the settings.
    s3: isS3 ? (isMissing ? s3 : { ...s3, RemoteFolderName: location }) : null,
    key: encryptionKey(sent),
    lastFile: isSet(lastFile) ? String(lastFile) : null,
    throughMicros: momentOf(sent["PointInTime"]),
    disablesTasks: sent["DisableOngoingTasks"] === true,
    skipsIndexes: sent["SkipIndexes"] === true,
  };
}

/** @throws EngineError invalid-argument */
function momentOf(sent: unknown): number | null {
  if (!isSet(sent)) return null;
  const text = typeof sent === "string" ? sent : "";
  const micros = isMoment.test(text) ? Math.floor(Date.parse(text.replace(" ", "T")) * 1000) : NaN;
  if (Number.isNaN(micros)) {
    throw invalidArgument(
      `PointInTime must be a time with a zone, for example 2026-11-22T10:00:00Z or 2026-11-22T10:00:00.250+01:00, but is: ${String(sent)}`,
    );
  }
  return micros;
}

const isMoment = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)$/i;

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== "";
}

/** @throws EngineError invalid-operation */
function checkName(name: string): void {
  if (name.trim() === "")
    throw new EngineError("invalid-operation", "Name cannot be null or empty.");
  try {
    checkDatabaseName(name);
  } catch (error) {
    throw new EngineError("invalid-operation", (error as Error).message, { cause: error });
  }
}

/** Returns the names of the full backup and the incremental ones that follow it. @throws EngineError invalid-argument */
async function filesToRestore(
  place: BackupStorage,
  { lastFile, key }: RestoreRequest,
): Promise<readonly string[]> {
  const { path } = place;
  let found: readonly BackupFileName[] = await backupFilesIn(place);
  if (found.length === 0) {
    throw invalidArgument(`No files to restore from the backup location, path: ${path}`);
  }
  if (lastFile !== null) {
    const wanted = lastFile.slice(
      Math.max(lastFile.lastIndexOf("/"), lastFile.lastIndexOf("\\")) + 1,
    );
    const at = found.findIndex(({ name }) => name === wanted);
    if (at < 0) {
      throw invalidArgument(
        `The file ${wanted} does not exist in the backup location, path: ${path}`,
      );
    }
    found = found.slice(0, at + 1);
  }
  const first = found.findLastIndex(({ isIncremental }) => !isIncremental);
  const chosen = found.slice(Math.max(0, first));
  if (first < 0) {
    throw invalidArgument(
      `The backup location has no full backup before ${found.at(-1)?.name}, path: ${path}`,
    );
  }
  if (chosen.some(({ isSnapshot }) => isSnapshot)) {
    throw new EngineError("not-supported", "Snapshots cannot be restored.");
  }
  for (const { name, isEncrypted } of chosen) requireKeyFor(place.where(name), isEncrypted, key);
  return chosen.map(({ name }) => name);
}

function readDump(
  { place, key }: OpenDestination,
  name: string,
  counting: (bytes: number) => void = () => undefined,
): AsyncGenerator<Buffer> {
  const bytes = counted(place.read(name), counting);
  return key === null ? bytes : decrypted(key, bytes, place.where(name));
}

async function* counted(
  source: AsyncIterable<Buffer>,
  counting: (bytes: number) => void,
): AsyncGenerator<Buffer> {
  for await (const piece of source) {
    counting(piece.length);
    yield piece;
  }
}

/** Returns the beginning of the text of a backup. */
async function headOf(source: OpenDestination, name: string): Promise<string> {
  try {
    for await (const piece of dumpText(readDump(source, name))) {
      return piece.toString("latin1", 0, 1024);
    }
  } catch (error) {
    // Damage is reported by the restore itself.
    if (!(error instanceof EngineError)) throw error;
  }
  return "";
}

function exists(name: string): EngineError {
  return invalidArgument(`Cannot restore data to an existing database named ${name}`);
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
