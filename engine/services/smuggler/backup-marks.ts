/**
 * State of a database's periodic backups, among its values: for each task the status of the last run, as written by its
 * runner, and the etag up to which the backups are complete.
 *
 *   values["backups/<task id>"]   {"etag","status"}
 *
 * Invariants:
 * - Tombstones that the next incremental backup of an enabled task needs are not purged.
 */
import type { JsonObject } from "../../base/json/json-object.ts";
import type { Store } from "../../state/store/store.ts";

const prefix = "backups/";

export interface BackupMark {
  /**
   * The backups contain all changes up to this etag, and an incremental backup can continue from there; 0 before the
   * first backup.
   */
  readonly etag: number;
  readonly status: JsonObject;
}

/** The interface of a database for its marks. */
type MarkedStore = Pick<Store, "settings" | "state" | "write">;

export function backupMark({ state }: MarkedStore, taskId: number): BackupMark | undefined {
  return state.keyspaces.values.get(prefix + taskId) as BackupMark | undefined;
}

/** Undefined: forgets it. Resolves when that is durable. */
export async function putBackupMark(
  store: MarkedStore,
  taskId: number,
  mark: BackupMark | undefined,
): Promise<void> {
  await store.write((transaction) => {
    const { values } = transaction.keyspaces;
    if (mark === undefined && transaction.entry(values, prefix + taskId) === undefined) return;
    transaction.putEntry(values, prefix + taskId, mark);
  });
}

/** Returns the etag up to which no backup needs a tombstone: a follower of the database's maintenance. */
export function deletionsBackedUp(store: MarkedStore): number {
  const tasks = store.settings["PeriodicBackups"];
  if (!Array.isArray(tasks) || tasks.length === 0) return Number.POSITIVE_INFINITY;
  let needed = Number.POSITIVE_INFINITY;
  for (const task of tasks as readonly (JsonObject | null)[]) {
    if (
      task === null ||
      task["Disabled"] === true ||
      typeof task["IncrementalBackupFrequency"] !== "string"
    ) {
      continue;
    }
    const etag = backupMark(store, Number(task["TaskId"]))?.etag ?? 0;
    // Without a mark, the next one is a full backup.
    if (etag > 0) needed = Math.min(needed, etag);
  }
  return needed;
}

/** Returns whether an incremental backup can list the deletions since the etag. */
export function hasDeletionsSince({ state }: MarkedStore, etag: number): boolean {
  return etag > 0 && state.keyspaces.tombstones.purgedThrough <= etag;
}
