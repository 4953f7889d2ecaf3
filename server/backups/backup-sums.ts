/**
 * What is known of a backup's file when it is written, in a small file beside it, for verification: RavenDB, and whoever
 * restores, does without it.
 *
 *   <stamp>.ravendb-full-backup.sums.json   {"Bytes","Sha256","Counts":{"Documents",…}}
 */
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import type { FileSystem } from "../../engine/base/environment.ts";
import type { DatabaseCounts } from "../../engine/engine.ts";
import { readBackupFile, type WrittenFile } from "./backup-file.ts";

export const sumsExtension = ".sums.json";

/** Counts that a restore must give. */
export interface BackupCounts {
  readonly Documents: number;
  readonly Attachments: number;
  readonly Counters: number;
}

export interface BackupSums {
  readonly Bytes: number;
  readonly Sha256: string;
  /** Of the whole database at the moment of the backup. */
  readonly Counts: BackupCounts;
}

export function backupCounts(counts: DatabaseCounts): BackupCounts {
  return {
    Documents: counts.CountOfDocuments,
    Attachments: counts.CountOfAttachments,
    Counters: counts.CountOfCounterEntries,
  };
}

/** Writes the sums of the file `path`. */
export async function writeSums(
  path: string,
  { bytes, sha256 }: WrittenFile,
  counts: BackupCounts,
): Promise<void> {
  const sums: BackupSums = { Bytes: bytes, Sha256: sha256, Counts: counts };
  await writeFile(path + sumsExtension, `${JSON.stringify(sums)}\n`, { mode: 0o600 });
}

/** The sums of the file `path`; null: there are none, as it was made by another server. */
export async function readSums(path: string): Promise<BackupSums | null> {
  try {
    return JSON.parse(await readFile(path + sumsExtension, "utf8")) as BackupSums;
  } catch {
    return null;
  }
}

/** What of the file `path` differs from its sums; null: nothing. @throws EngineError file-failed */
export async function differenceFrom(
  files: FileSystem,
  path: string,
  { Bytes, Sha256 }: BackupSums,
): Promise<string | null> {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const piece of readBackupFile(files, path)) {
    hash.update(piece);
    bytes += piece.length;
  }
  if (bytes !== Bytes) return `${path} has ${bytes} bytes, and was written with ${Bytes}.`;
  if (hash.digest("hex") !== Sha256)
    return `${path} is not as it was written: its SHA-256 differs.`;
  return null;
}
