/** Backups of the server's databases: one-time and scheduled backups, and restores. */
import type { FileSystem, Report } from "../../engine/base/environment.ts";
import { EngineError } from "../../engine/base/errors.ts";
import type { Database, Operations, StartedOperation } from "../../engine/engine.ts";
import { unzonedDateText } from "../http/dates.ts";
import type { JsonObject } from "../http/json-body.ts";
import type { ValueStore } from "../settings/value-store.ts";
import { oneTimeFolder } from "./backup-configuration.ts";
import { destinationOf, folderStorage, SecretStore, s3Storage } from "./backup-destination.ts";
import {
  type BackupFolderName,
  backupFilesIn,
  backupFoldersIn,
  type FolderRules,
  isFolder,
  requireWritable,
  timeOfStamp,
  unwritable,
} from "./backup-folder.ts";
import { BackupRunner } from "./backup-runner.ts";
import { PeriodicBackups } from "./periodic-backups.ts";
import { type RestoredDatabases, Restores } from "./restores.ts";

/** The dependencies of backups. */
interface BackupHost {
  readonly databases: RestoredDatabases;
  /** Databases of this node alone, used to verify backups. */
  readonly ownDatabases: RestoredDatabases;
  /** The server's own operations. */
  readonly operations: () => Operations;
  readonly values: ValueStore;
  readonly files: FileSystem;
  readonly rules: FolderRules;
  readonly report: Report;
  /** Returns whether another node of the cluster runs the periodic backups of this database. */
  isElsewhere(name: string): boolean;
  nextIndex(): Promise<number>;
}

export class Backups {
  readonly periodic: PeriodicBackups;
  readonly restores: Restores;
  readonly #runner: BackupRunner;
  readonly #host: BackupHost;
  #oneTimeCount = 0;

  constructor(host: BackupHost) {
    this.#host = host;
    this.#runner = new BackupRunner();
    const { values, databases, ownDatabases, rules, files, report } = host;
    const nextIndex = () => host.nextIndex();
    this.periodic = new PeriodicBackups({
      databases,
      values,
      rules,
      report,
      runner: this.#runner,
      secrets: new SecretStore(values),
      files,
      isElsewhere: (name) => host.isElsewhere(name),
      nextIndex,
      nowMs: () => Date.now(),
    });
    this.restores = new Restores({
      databases,
      ownDatabases,
      get operations() {
        return host.operations();
      },
      values,
      files,
      rules,
      nextIndex,
      recordChanged: (database) => this.periodic.recordChanged(database),
    });
  }

  /** Cleans up after a crash, then starts the schedules. Must be called before requests are served. */
  async start(): Promise<void> {
    await this.restores.removeInterrupted();
    this.periodic.start();
  }

  close(): void {
    this.periodic.close();
  }

  /** Must be called after `close` and after the last write, before the databases are closed. */
  finish(): Promise<void> {
    return this.periodic.finish();
  }

  /**
   * Starts a one-time backup, an operation of the database.
   * @throws EngineError, RequestError for unsupported settings, or while another backup runs
   */
  async makeOne(
    database: Database,
    sent: JsonObject,
    startedBy: string | undefined,
  ): Promise<StartedOperation> {
    const path = oneTimeFolder(sent);
    const { files, rules } = this.#host;
    const { place, key } = await destinationOf({ files, rules }, sent);
    if (path !== null) {
      try {
        await files.makeDirectory(place.path);
      } catch (error) {
        throw unwritable(path, error);
      }
      await requireWritable(place.path, path);
    }
    const plan = {
      description: `Manual backup for database: ${database.name}`,
      taskName: `One Time Backup #${++this.#oneTimeCount}`,
      place,
      key,
      startedBy,
      continued: null,
    };
    return await this.#runner.start(database, plan, undefined, async () => undefined);
  }

  /**
   * Returns the points in time that the backups in a folder or in S3 can restore, newest first.
   * @param sent `{"FolderPath"}`, or S3Settings with secrets @throws EngineError invalid-operation if none exists
   */
  async restorePoints(type: "local" | "s3", sent: JsonObject): Promise<JsonObject[]> {
    const { files, rules } = this.#host;
    const path = sent["FolderPath"];
    const place =
      type === "s3" ? s3Storage(sent) : await folderStorage({ files, rules }, String(path));
    if (type === "local" && !(await isFolder(place.path))) {
      throw new EngineError("invalid-operation", `Path '${path}' doesn't exist`);
    }
    const points: JsonObject[] = [];
    for (const one of await backupFoldersIn(place)) points.push(...(await pointsIn(one)));
    if (points.length === 0) {
      throw new EngineError("invalid-operation", "Couldn't locate any backup files.");
    }
    return points.sort((a, b) => (String(a["DateTime"]) < String(b["DateTime"]) ? 1 : -1));
  }
}

async function pointsIn({ place, database, nodeTag }: BackupFolderName): Promise<JsonObject[]> {
  const files = await backupFilesIn(place);
  let count = 0;
  return files.map(({ name, stamp, isIncremental, isSnapshot, isEncrypted }) => {
    count = isIncremental ? count + 1 : 1;
    return {
      DateTime: unzonedDateText(new Date(timeOfStamp(stamp))),
      Location: place.path,
      FileName: place.pathOf(name),
      IsSnapshotRestore: isSnapshot,
      IsEncrypted: isEncrypted,
      IsIncremental: isIncremental,
      FilesToRestore: count,
      DatabaseName: database,
      NodeTag: nodeTag,
    };
  });
}
