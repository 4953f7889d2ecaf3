/**
 * Runs backups one at a time in the whole server, because each reads a whole database.
 *
 * Invariants:
 * - A backup is the state of its database at one moment; writes continue meanwhile.
 * - It is an operation of its database: it reports progress and can be cancelled.
 */
import type {
  BackupRun,
  Database,
  OperationFigures,
  StartedOperation,
} from "../../engine/engine.ts";
import { RequestError } from "../http/request-error.ts";
import { writeBackupFile } from "./backup-file.ts";
import {
  backupFileName,
  backupFilesIn,
  folderName,
  stampOf,
  timeOfStamp,
} from "./backup-folder.ts";
import { backupStorages } from "./backup-result.ts";
import type { BackupStorage } from "./backup-storage.ts";
import { backupCounts, writeSums } from "./backup-sums.ts";

/** The content and destination of a backup. */
interface BackupPlan {
  /** Description of the operation, for people. */
  readonly description: string;
  readonly taskName: string;
  /** Storage in which each backup gets its own folder. */
  readonly place: BackupStorage;
  /** Null for no encryption. */
  readonly key: Buffer | null;
  /** Name of the caller; undefined for a scheduled backup. */
  readonly startedBy: string | undefined;
  /** The earlier backup that this one continues, or null for a full one. */
  readonly continued: { readonly place: BackupStorage; readonly etag: number } | null;
}

/** A finished backup. */
export interface FinishedBackup {
  readonly isFull: boolean;
  /** Name of its folder, and of its file there. */
  readonly folderName: string;
  readonly fileName: string;
  readonly bytes: number;
  /** Contains every change up to this etag. */
  readonly etag: number;
}

export class BackupRunner {
  #current: string | null = null;

  get isBusy(): boolean {
    return this.#current !== null;
  }

  /**
   * Starts an operation of the database. `finished` is called with the backup before the operation ends.
   * @param operationId undefined for a new one @throws RequestError while another backup runs
   */
  async start(
    database: Database,
    plan: BackupPlan,
    operationId: number | undefined,
    finished: (backup: FinishedBackup) => Promise<void>,
  ): Promise<StartedOperation> {
    if (this.#current !== null) throw busy(plan.taskName, database.name, this.#current);
    this.#current = `'${plan.taskName}' of database '${database.name}'`;
    try {
      const started = await database.smuggler.startBackup(
        operationId,
        plan.description,
        plan.continued?.etag ?? 0,
        async (run) => {
          const { backup, result } = await this.#write(database, plan, run);
          await finished(backup);
          return result;
        },
        plan.startedBy,
      );
      void started.ended.then(() => {
        this.#current = null;
      });
      return started;
    } catch (error) {
      this.#current = null;
      throw error;
    }
  }

  async #write(
    database: Database,
    plan: BackupPlan,
    { dump, result }: BackupRun,
  ): Promise<{ readonly backup: FinishedBackup; readonly result: OperationFigures }> {
    const isFull = plan.continued === null;
    result.add("INFO", `Started task: '${plan.taskName}'`);
    result.add("INFO", `Started ${isFull ? "a full" : "an incremental"} backup`);
    const { place, stamp } = await this.#place(database, plan);
    const fileName = backupFileName(stamp, isFull, plan.key !== null);
    // The dump captures the state of the database synchronously, before it waits for anything.
    const first = dump.next();
    first.catch(() => undefined); // the reader of the dump gets the error
    const counts = backupCounts(database.statistics.counts());
    const pieces = continued(first, dump);
    const written = await writeBackupFile(place, fileName, pieces, plan.key).finally(() =>
      dump.return(undefined),
    );
    await writeSums(place, fileName, written, counts);
    const { bytes } = written;
    const backup = { isFull, folderName: place.name, fileName, bytes, etag: result.asOfEtag };
    return {
      backup,
      result: { ...result.toJson(true), ...backupStorages(backup.folderName, fileName) },
    };
  }

  /** Returns an unused folder and stamp. Stamps increase within a storage. */
  async #place(
    database: Database,
    { place, continued }: BackupPlan,
  ): Promise<{ readonly place: BackupStorage; readonly stamp: string }> {
    let ms = Math.floor(database.nowMicros() / 1000);
    if (continued !== null) {
      const last = (await backupFilesIn(continued.place)).at(-1);
      if (last !== undefined) ms = Math.max(ms, timeOfStamp(last.stamp) + 1000);
      return { place: continued.place, stamp: stampOf(ms) };
    }
    for (;;) {
      const stamp = stampOf(ms);
      const own = place.within(folderName(stamp, database.name, database.originTag));
      if (!(await own.exists())) return { place: own, stamp };
      ms += 1000;
    }
  }
}

/** Yields all chunks, of which the first was already requested. */
async function* continued(
  first: Promise<IteratorResult<Buffer, void>>,
  rest: AsyncGenerator<Buffer>,
): AsyncGenerator<Buffer> {
  const { value, done } = await first;
  if (done !== true) yield value;
  yield* rest;
}

function busy(taskName: string, database: string, current: string): RequestError {
  return new RequestError(
    400,
    "Raven.Server.Documents.PeriodicBackup.BackupDelayException",
    `Failed to start Backup Task: '${taskName}' of database '${database}': only one backup runs at a time, and ${current} is running. Try again after it has finished.`,
  );
}
