/**
 * Restoring a database from the files of a backup: a full one, and the incremental ones that follow it in its folder.
 *
 *   values["server/restoring/<name>"]   {"Name","CreatedIndex"}: of each restore under way
 *
 * Invariants:
 * - A restore makes a new database; it never changes one that exists.
 * - Until all of it is restored the database serves nobody (`DatabaseState` in its record). A restore that fails
 *   removes what it made, and so does the next start after a crash.
 */
import { join } from "node:path";
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
import { type KeptRecord, keptRecord, restoringState } from "../databases/database-record.ts";
import { dumpText } from "../databases/dump-body.ts";
import { dateText } from "../http/dates.ts";
import type { JsonObject } from "../http/json-body.ts";
import type { ValueStore } from "../settings/value-store.ts";
import { fileError, readBackupFile } from "./backup-file.ts";
import {
  type BackupFileName,
  backupFilesIn,
  checkedFolder,
  type FolderRules,
  isFolder,
} from "./backup-folder.ts";
import { restoredFiles } from "./backup-result.ts";
import { ContinuousFolder, continuousToRestore } from "./continuous-folder.ts";

const prefix = "server/restoring/";
const restoreType = "Raven.Client.ServerWide.Operations.RestoreResult, Raven.Client";
/** Bytes of a compressed file from which the beginning of its text is read. */
const headBytes = 64 * 1024;

/** The databases among which a restored one is made. */
export interface RestoredDatabases {
  has(name: string): boolean;
  find(name: string): Database | undefined | Promise<Database | undefined>;
  create(name: string, record: JsonObject): Promise<Database>;
  createFromShipped: Databases["createFromShipped"];
  delete(name: string): Promise<boolean>;
}

/** What restores need of the server. */
export interface RestoreHost {
  readonly databases: RestoredDatabases;
  readonly operations: Operations;
  readonly values: ValueStore;
  readonly files: FileSystem;
  readonly rules: FolderRules;
  nextIndex(): Promise<number>;
  /** The record of a database has changed as a whole. */
  recordChanged(database: Database): Promise<void>;
}

/** What to restore, as asked for. */
interface RestoreRequest {
  readonly name: string;
  readonly location: string;
  /** The last file to restore; null: all. */
  readonly lastFile: string | null;
  /** The last moment to restore, in microseconds since 1970; null: the newest. Of continuous backups only. */
  readonly throughMicros: number | null;
  readonly disablesTasks: boolean;
  readonly skipsIndexes: boolean;
}

export class Restores {
  readonly #host: RestoreHost;

  constructor(host: RestoreHost) {
    this.#host = host;
  }

  /**
   * Starts an operation of the server that restores what `sent` asks for.
   * @throws EngineError invalid-argument, not-supported for what cannot be tried
   */
  async start(sent: JsonObject): Promise<StartedOperation> {
    const request = restoreRequest(sent);
    const folder = await checkedFolder(request.location, this.#host.rules);
    if (!(await isFolder(folder))) {
      throw invalidArgument(`Backup location doesn't exist, path: ${request.location}`);
    }
    return await this.#host.operations.start(
      "DatabaseRestore",
      `Database restore: ${request.name}`,
      (progress, signal) => this.#restore(request, folder, progress, signal),
    );
  }

  /** Removes the databases whose restore a crash has interrupted. Before any request is served. */
  async removeInterrupted(): Promise<void> {
    const { databases, values } = this.#host;
    for (const [key, text] of [...values.entries(prefix)]) {
      const { Name, CreatedIndex } = JSON.parse(text) as { Name: string; CreatedIndex: number };
      const database = databases.has(Name) ? await databases.find(Name) : undefined;
      // One of this name may have been made by someone else.
      if (database?.settings["CreatedIndex"] === CreatedIndex) await databases.delete(Name);
      await values.delete(key);
    }
  }

  async #restore(
    request: RestoreRequest,
    folder: string,
    progress: (figures: OperationFigures) => void,
    signal: AbortSignal,
  ): Promise<OperationFigures> {
    const { databases, values } = this.#host;
    const { name } = request;
    checkName(name);
    if (databases.has(name)) throw exists(name);
    const continuous = await ContinuousFolder.within(this.#host.files, folder);
    if (continuous.length === 0 && request.throughMicros !== null) {
      throw invalidArgument(
        `PointInTime needs a continuous backup, and there is none in the backup location, path: ${request.location}`,
      );
    }
    const names = continuous.length === 0 ? await filesToRestore(folder, request) : [];
    const CreatedIndex = await this.#host.nextIndex();
    const key = prefix + name.toLowerCase();
    await values.put(key, JSON.stringify({ Name: name, CreatedIndex }));
    try {
      if (continuous.length > 0) {
        return await this.#restoreContinuous(request, continuous, CreatedIndex, progress, signal);
      }
      const database = await this.#create(name, CreatedIndex);
      try {
        const figures = await this.#fill(database, request, folder, names, progress, signal);
        await this.#complete(database, request);
        return figures;
      } catch (error) {
        await this.#remove(name, CreatedIndex);
        throw error;
      }
    } finally {
      await values.delete(key);
    }
  }

  async #restoreContinuous(
    request: RestoreRequest,
    folders: readonly ContinuousFolder[],
    index: number,
    progress: (figures: OperationFigures) => void,
    signal: AbortSignal,
  ): Promise<OperationFigures> {
    const { name } = request;
    const micros = request.throughMicros ?? Number.MAX_SAFE_INTEGER;
    const chosen = await continuousToRestore(folders, request.throughMicros);
    const names = [chosen.base, ...chosen.frames].map((file) => file.name);
    const own = keptRecord(name, {}, undefined, index, dateText(new Date()));
    const record = (found: JsonObject): JsonObject => ({
      ...found,
      DatabaseName: name,
      CreatedIndex: index,
      ChangedIndex: index,
      CreatedAt: own.CreatedAt,
      DatabaseState: restoringState,
    });
    try {
      const made = await this.#host.databases.createFromShipped(
        name,
        record,
        micros,
        async (restore) => {
          for (const [i, file] of names.entries()) {
            signal.throwIfAborted();
            progress({ $type: restoreType, ...restoredFiles(false, file, i + 1, names.length) });
            await restore.add(join(chosen.folder.path, file), chosen.folder.read(file));
            if (restore.isDone) break;
          }
          for (const content of chosen.contents) {
            signal.throwIfAborted();
            await restore.addContent(content, chosen.folder.readContent(content));
          }
        },
      );
      await this.#complete(made.database, request);
      const { commit, committedMicros } = made.restored;
      const MissingContents = made.missingContents;
      return {
        $type: restoreType,
        Documents: { ReadCount: made.database.statistics.counts().CountOfDocuments },
        Continuous: {
          Folder: chosen.folder.path,
          Commit: commit,
          CommittedAt: new Date(committedMicros / 1000).toISOString(),
          MissingContents,
        },
        ...restoredFiles(true, null, names.length, names.length),
      };
    } catch (error) {
      await this.#remove(name, index);
      throw nameTaken(error, name);
    }
  }

  async #create(name: string, index: number): Promise<Database> {
    const kept = keptRecord(name, {}, undefined, index, dateText(new Date()));
    try {
      return await this.#host.databases.create(name, { ...kept, DatabaseState: restoringState });
    } catch (error) {
      throw nameTaken(error, name);
    }
  }

  async #remove(name: string, createdIndex: number): Promise<void> {
    const found = await Promise.resolve(this.#host.databases.find(name)).catch(() => undefined);
    const isOurs = found === undefined || found.settings["CreatedIndex"] === createdIndex;
    if (isOurs) await this.#host.databases.delete(name);
  }

  async #fill(
    database: Database,
    { skipsIndexes }: RestoreRequest,
    folder: string,
    names: readonly string[],
    progress: (figures: OperationFigures) => void,
    signal: AbortSignal,
  ): Promise<OperationFigures> {
    const { files } = this.#host;
    const result: SmugglerResult = database.smuggler.newResult();
    const guest = database.enter(true);
    try {
      const last = join(folder, names.at(-1) as string); // there is one
      const isComplete = names.length > 1 && hasCompleteSections(await headOf(files, last));
      for (const [i, name] of names.entries()) {
        result.add("INFO", `Restoring file ${i + 1}/${names.length}`);
        const hasSuccessor = isComplete && i < names.length - 1;
        const tell = (figures: OperationFigures) =>
          progress({ ...figures, ...restoredFiles(false, name, i + 1, names.length) });
        await database.smuggler.restore(
          dumpText(readBackupFile(files, join(folder, name)), true),
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

  /** From now on it serves. */
  async #complete(database: Database, { disablesTasks }: RestoreRequest): Promise<void> {
    const index = await this.#host.nextIndex();
    await database.changeSettings((record) => {
      const { DatabaseState: _restored, ...kept } = record as KeptRecord;
      const tasks = kept["PeriodicBackups"];
      const isDisabled = disablesTasks && Array.isArray(tasks);
      return {
        ...kept,
        ...(isDisabled ? { PeriodicBackups: tasks.map(disabled) } : {}),
        ChangedIndex: index,
      };
    });
    await this.#host.recordChanged(database);
  }
}

function disabled(task: unknown): unknown {
  return typeof task === "object" && task !== null ? { ...task, Disabled: true } : task;
}

/** @throws EngineError invalid-argument, not-supported */
function restoreRequest(sent: JsonObject): RestoreRequest {
  const type = sent["Type"] ?? "Local";
  if (typeof type !== "string" || !/^(local|s3|azure|googlecloud)$/i.test(type)) {
    throw invalidArgument(`Unsupported restore type: ${String(type)} (the one there is is Local)`);
  }
  const encryption = sent["BackupEncryptionSettings"];
  const isEncrypted =
    isObject(encryption) &&
    (typeof encryption["Key"] === "string" || (encryption["EncryptionMode"] ?? "None") !== "None");
  const unsupported: readonly (readonly [boolean, string])[] = [
    [
      type.toLowerCase() !== "local",
      `Restoring from ${type} is not supported: only from a folder.`,
    ],
    [isSet(sent["EncryptionKey"]) || isEncrypted, "Encrypted backups cannot be restored."],
    [
      isSet(sent["DataDirectory"]) || isSet(sent["JournalsStoragePath"]),
      "The folder of a database cannot be chosen: it is in the data folder of the server.",
    ],
  ];
  const refused = unsupported.find(([isAsked]) => isAsked);
  if (refused !== undefined) throw new EngineError("not-supported", refused[1]);
  const location = sent["BackupLocation"];
  if (typeof location !== "string" || location.trim() === "") {
    throw invalidArgument("Backup location can't be null or empty");
  }
  const name = sent["DatabaseName"];
  const lastFile = sent["LastFileNameToRestore"];
  return {
    name: typeof name === "string" ? name : "",
    location,
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
      `PointInTime must be a time with its zone, as 2026-11-22T10:00:00Z or 2026-11-22T10:00:00.250+01:00, but is: ${String(sent)}`,
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

/** Names of the full backup and of the incremental ones behind it. @throws EngineError invalid-argument */
async function filesToRestore(
  folder: string,
  { location, lastFile }: RestoreRequest,
): Promise<readonly string[]> {
  let found: readonly BackupFileName[] = await backupFilesIn(folder).catch((error: unknown) => {
    throw fileError(error, location);
  });
  if (found.length === 0) {
    throw invalidArgument(`No files to restore from the backup location, path: ${location}`);
  }
  if (lastFile !== null) {
    const wanted = lastFile.slice(
      Math.max(lastFile.lastIndexOf("/"), lastFile.lastIndexOf("\\")) + 1,
    );
    const at = found.findIndex(({ name }) => name === wanted);
    if (at < 0) {
      throw invalidArgument(`There is no file ${wanted} in the backup location, path: ${location}`);
    }
    found = found.slice(0, at + 1);
  }
  const first = found.findLastIndex(({ isIncremental }) => !isIncremental);
  const chosen = found.slice(Math.max(0, first));
  if (first < 0) {
    throw invalidArgument(
      `There is no full backup before ${found.at(-1)?.name} in the backup location, path: ${location}`,
    );
  }
  if (chosen.some(({ isSnapshot, isEncrypted }) => isSnapshot || isEncrypted)) {
    throw new EngineError("not-supported", "Snapshots and encrypted backups cannot be restored.");
  }
  return chosen.map(({ name }) => name);
}

/** The beginning of the text of a backup. */
async function headOf(files: FileSystem, path: string): Promise<string> {
  try {
    for await (const piece of dumpText(readBackupFile(files, path, headBytes))) {
      return piece.toString("latin1", 0, 1024);
    }
  } catch (error) {
    // A part of a compressed file is truncated; a damaged one is found when it is restored.
    if (!(error instanceof EngineError)) throw error;
  }
  return "";
}

function nameTaken(error: unknown, name: string): unknown {
  return error instanceof EngineError && error.code === "database-exists" ? exists(name) : error;
}

function exists(name: string): EngineError {
  return invalidArgument(`Cannot restore data to an existing database named ${name}`);
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
