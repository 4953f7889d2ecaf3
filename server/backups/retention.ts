/**
 * Removes old backups after a new full backup: those whose newest file exceeds the retention of the task.
 *
 * Invariants:
 * - Only files named as backups of this database are removed, and folders that become empty.
 * - The newest backup is retained, however old it is.
 */
import type { Database } from "../../engine/engine.ts";
import { type PeriodicBackup, retentionMs } from "./backup-configuration.ts";
import { backupFilesIn, backupFoldersIn, timeOfStamp } from "./backup-folder.ts";
import type { BackupStorage } from "./backup-storage.ts";
import { sumsExtension } from "./backup-sums.ts";
import { unfinishedExtension } from "./folder-storage.ts";

/** @throws EngineError file-failed */
export async function removeOldBackups(
  place: BackupStorage,
  { name, originTag }: Pick<Database, "name" | "originTag">,
  task: PeriodicBackup,
  nowMs: number,
): Promise<void> {
  const keptMs = retentionMs(task);
  if (keptMs === null) return;
  const own = (await backupFoldersIn(place))
    .filter((one) => one.stamp !== null && one.database === name && one.nodeTag === originTag)
    .filter((one) => one.place !== place)
    .sort((a, b) => ((a.stamp ?? "") < (b.stamp ?? "") ? -1 : 1));
  for (const { place: folder } of own.slice(0, -1)) {
    const files = await backupFilesIn(folder);
    const newest = files.at(-1);
    if (newest !== undefined && nowMs - timeOfStamp(newest.stamp) < keptMs) continue;
    const names = files.map((file) => file.name);
    const others = (await folder.files())
      .map((file) => file.name)
      .filter((one) => one.endsWith(unfinishedExtension) || names.includes(nameOfSummed(one)));
    await folder.remove([...names, ...others]);
  }
}

/** Returns the name of the backup whose sums this file contains, or "". */
function nameOfSummed(name: string): string {
  return name.endsWith(sumsExtension) ? name.slice(0, -sumsExtension.length) : "";
}
