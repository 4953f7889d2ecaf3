/**
 * Removes old backups: after a new full backup, those whose newest file is older than the task keeps them.
 *
 * Invariants:
 * - Only files that are named as backups of this database are removed, and the folders that this leaves empty.
 * - The newest backup stays, however old it is.
 */
import { readdir, rmdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import type { Database } from "../../engine/engine.ts";
import { type PeriodicBackup, retentionMs } from "./backup-configuration.ts";
import { unfinishedExtension } from "./backup-file.ts";
import { backupFilesIn, backupFoldersIn, timeOfStamp } from "./backup-folder.ts";
import { sumsExtension } from "./backup-sums.ts";

/** @throws as node:fs does */
export async function removeOldBackups(
  folder: string,
  { name, nodeTag }: Pick<Database, "name" | "nodeTag">,
  task: PeriodicBackup,
  nowMs: number,
): Promise<void> {
  const keptMs = retentionMs(task);
  if (keptMs === null) return;
  const own = (await backupFoldersIn(folder))
    .filter((one) => one.stamp !== null && one.database === name && one.nodeTag === nodeTag)
    .filter(({ path }) => path !== folder)
    .sort((a, b) => ((a.stamp ?? "") < (b.stamp ?? "") ? -1 : 1));
  for (const { path } of own.slice(0, -1)) {
    const files = await backupFilesIn(path);
    const newest = files.at(-1);
    if (newest !== undefined && nowMs - timeOfStamp(newest.stamp) < keptMs) continue;
    await removeBackups(
      path,
      files.map((file) => file.name),
    );
  }
}

/** The name of the backup that this file has the sums of; "": it has none. */
function nameOfSummed(name: string): string {
  return name.endsWith(sumsExtension) ? name.slice(0, -sumsExtension.length) : "";
}

async function removeBackups(path: string, names: readonly string[]): Promise<void> {
  const others = (await readdir(path)).filter(
    (name) => name.endsWith(unfinishedExtension) || names.includes(nameOfSummed(name)),
  );
  for (const name of [...names, ...others]) await unlink(join(path, name));
  // Someone else's files stay, and the folder with them.
  await rmdir(path).catch(() => undefined);
}
