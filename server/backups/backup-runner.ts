/**
 * Makes backups: one at a time in the whole server, since each reads a whole database.
 *
 * Invariants:
 * - A backup is the state of its database at one moment; writes go on meanwhile.
 * - It is an operation of its database: it reports progress, and can be cancelled.
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

/** What a backup is to contain, and where it goes. */
export interface BackupPlan {
  /** For people: what the operation does. */
  readonly description: string;
  readonly taskName: string;
  /** In which backups get folders of their own. */
  readonly place: BackupStorage;
  /** Null: it is not encrypted. */
  readonly key: Buffer | null;
  /** The earlier backup that it continues; null: a full one. */
  readonly continued: { readonly place: BackupStorage; readonly etag: number } | null;
}

/** A finished backup. */
export interface FinishedBackup {
  readonly isFull: boolean;
  /** Name of its folder, and of its file in it. */
  readonly folderName: string;
  readonly fileName: string;
  readonly bytes: number;
  /** It has every change up to this etag. */
  readonly etag: number;
}

export class BackupRunner {
  #current: string | null = null;

  get isBusy(): boolean {
    return this.#current !== null;
  }

  /**
   * Starts an operation of the database. `finished` is called with the backup before the operation ends.
   * @param operationId a new one when undefined. @throws RequestError while another one is made
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
    // The dump takes the state of the database in this turn, before it waits for anything.
    const first = dump.next();
    first.catch(() => undefined); // whoever takes it gets the error
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

  /** A place and a stamp that no other backup has; within a place, stamps grow. */
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

/** All pieces, of which the first is under way. */
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
    `Failed to start Backup Task: '${taskName}' of database '${database}': one backup is made at a time, and the one that is being made is ${current}. Try again when it has ended.`,
  );
}
