/** Exports, imports, backups and restores of whole databases as dumps, in the format of RavenDB. */

import {
  type BackupMark,
  backupMark,
  hasDeletionsSince,
  putBackupMark,
} from "../services/smuggler/backup-marks.ts";
import { type ContentDigest, digestOf } from "../services/smuggler/content-digest.ts";
import {
  backupOptions,
  type DumpOptions,
  restoreOptions,
} from "../services/smuggler/dump-options.ts";
import { exportDump } from "../services/smuggler/export.ts";
import { type ImportSettings, importDump } from "../services/smuggler/import.ts";
import { SmugglerResult } from "../services/smuggler/smuggler-result.ts";
import type { OperationFigures, StartedOperation } from "../state/store/operations.ts";
import type { OpenDatabase } from "./database/open-database.ts";
import { databaseCounts } from "./database/statistics.ts";

export type { BackupMark, DumpOptions, SmugglerResult };

/** A backup in progress: the text of its dump, and its metadata. */
export interface BackupRun {
  /** Text of the dump, of the state at the moment of the first chunk. */
  readonly dump: AsyncGenerator<Buffer>;
  /** Counts so far, and messages. */
  readonly result: SmugglerResult;
  /** Reports progress to the watchers of the operation. */
  readonly progress: (figures: OperationFigures) => void;
  readonly signal: AbortSignal;
}

export class Smuggler {
  readonly #database: OpenDatabase;

  constructor(database: OpenDatabase) {
    this.#database = database;
  }

  /** Returns the text of a dump of the current database. @throws EngineError script-failed, record-damaged */
  export(options: DumpOptions): AsyncGenerator<Buffer> {
    return exportDump(this.#database, options, this.newResult());
  }

  /**
   * Starts an operation that exports the current database; its result has the counts.
   * @param send receives the text of the dump, and resolves when it has consumed all of it
   * @throws EngineError invalid-operation while an operation with that id runs
   */
  startExport(
    operationId: number,
    options: DumpOptions,
    send: (dump: AsyncGenerator<Buffer>) => Promise<void>,
    startedBy?: string,
  ): StartedOperation {
    const database = this.#database;
    const result = this.newResult();
    return database.operations.startWithId(
      operationId,
      "DatabaseExport",
      `Export database: ${database.name}`,
      async (progress, signal) => {
        await send(exportDump(database, options, result, progress, signal));
        return result.toJson(true);
      },
      { startedBy },
    );
  }

  /**
   * Starts an operation that imports the text of a dump; its result has the counts.
   * @throws EngineError invalid-operation while an operation with that id runs
   */
  startImport(
    operationId: number,
    dump: AsyncIterable<Buffer>,
    options: DumpOptions,
    settings: ImportSettings,
    startedBy?: string,
  ): StartedOperation {
    const database = this.#database;
    const result = this.newResult();
    return database.operations.startWithId(
      operationId,
      "DatabaseImport",
      `Import to: ${database.name}`,
      async (progress, signal) => {
        await importDump(database, dump, options, settings, result, progress, signal);
        return result.toJson(true);
      },
      { startedBy },
    );
  }

  /**
   * Starts an operation that creates a backup: `send` consumes the text, and returns the result of the operation. The
   * progress of a full backup includes `Processed` and `Total`, which count documents and revisions.
   * @param since an incremental backup contains only changes after this etag; 0: everything
   * @param id a new one when undefined
   */
  async startBackup(
    id: number | undefined,
    description: string,
    since: number,
    send: (run: BackupRun) => Promise<OperationFigures>,
    startedBy?: string,
  ): Promise<StartedOperation> {
    const database = this.#database;
    const work = async (report: BackupRun["progress"], signal: AbortSignal) => {
      const result = this.newResult();
      const counts = databaseCounts(database);
      const Total = counts.CountOfDocuments + counts.CountOfRevisionDocuments;
      const progress: BackupRun["progress"] = (figures) => {
        const Processed =
          result.of("Documents").readCount + result.of("RevisionDocuments").readCount;
        report(since > 0 ? figures : { ...figures, Processed, Total });
      };
      const dump = exportDump(database, backupOptions({ since }), result, progress, signal);
      return await send({ dump, result, progress, signal });
    };
    return await database.operations.start("DatabaseBackup", description, work, { id, startedBy });
  }

  /**
   * Imports one file of a backup into a database that contains the earlier files. Counts are added to `result`.
   * @param hasSuccessor a later file of the backup has its complete sections
   * @throws as `import`
   */
  async restore(
    dump: AsyncIterable<Buffer>,
    { hasSuccessor, skipsIndexes }: { hasSuccessor: boolean; skipsIndexes: boolean },
    nextIndex: () => Promise<number>,
    result: SmugglerResult,
    progress: (figures: OperationFigures) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const settings = { mayChangeRecord: true, mayDeployCSharp: true, isRestore: true, nextIndex };
    const options = restoreOptions(hasSuccessor, skipsIndexes);
    await importDump(this.#database, dump, options, settings, result, progress, signal);
  }

  /** Returns the recorded state of a task's backups; undefined if no backup was made. */
  backupMark(taskId: number): BackupMark | undefined {
    return backupMark(this.#database, taskId);
  }

  /** Undefined: forgets it. Resolves when that is durable. */
  putBackupMark(taskId: number, mark: BackupMark | undefined): Promise<void> {
    return putBackupMark(this.#database, taskId, mark);
  }

  /** Returns whether a backup of the changes after this etag can list the deletions since. */
  hasDeletionsSince(etag: number): boolean {
    return hasDeletionsSince(this.#database, etag);
  }

  /**
   * Returns counts and hashes of the current contents of the database. Cost: reads all documents. @throws EngineError
   * record-damaged
   */
  digest(signal?: AbortSignal): Promise<ContentDigest> {
    return digestOf(this.#database, signal);
  }

  /** Counts of nothing yet. */
  newResult(): SmugglerResult {
    return new SmugglerResult(() => this.#database.state.nowMicros());
  }

  /**
   * Imports the text of a dump. @returns the counts, once all of it is durable
   * @throws EngineError json-…, invalid-operation for a truncated dump, script-failed, disk-full, and others from storing
   */
  async import(
    dump: AsyncIterable<Buffer>,
    options: DumpOptions,
    settings: ImportSettings,
  ): Promise<OperationFigures> {
    const result = this.newResult();
    await importDump(this.#database, dump, options, settings, result);
    return result.toJson(true);
  }
}
