/**
 * Checksums and counts of a backup's file, computed during its creation and stored in a small file beside it for
 * verification. Restores, and RavenDB, do not need them.
 *
 *   <stamp>.ravendb-full-backup.sums.json   {"Bytes","Sha256","Counts":{"Documents",…}}
 */
import { createHash } from "node:crypto";
import { EngineError } from "../../engine/base/errors.ts";
import type { DatabaseCounts } from "../../engine/engine.ts";
import type { WrittenFile } from "./backup-file.ts";
import type { BackupStorage } from "./backup-storage.ts";

export const sumsExtension = ".sums.json";
const sumsBytesMax = 64 * 1024;

/** Expected counts of a restored database. */
interface BackupCounts {
  readonly Documents: number;
  readonly Attachments: number;
  readonly Counters: number;
}

interface BackupSums {
  readonly Bytes: number;
  readonly Sha256: string;
  /** Counts of the whole database at the time of the backup. */
  readonly Counts: BackupCounts;
}

export function backupCounts(counts: DatabaseCounts): BackupCounts {
  return {
    Documents: counts.CountOfDocuments,
    Attachments: counts.CountOfAttachments,
    Counters: counts.CountOfCounterEntries,
  };
}

/** Writes the sums of the file `name`. */
export async function writeSums(
  place: BackupStorage,
  name: string,
  { bytes, sha256 }: WrittenFile,
  counts: BackupCounts,
): Promise<void> {
  const sums: BackupSums = { Bytes: bytes, Sha256: sha256, Counts: counts };
  await place.write(name + sumsExtension, [Buffer.from(`${JSON.stringify(sums)}\n`)]);
}

/** Reads the sums of the file `name`. Returns null for files of other servers, which have none. */
export async function readSums(place: BackupStorage, name: string): Promise<BackupSums | null> {
  const sumsName = name + sumsExtension;
  if (!(await place.files()).some((file) => file.name === sumsName)) return null;
  const pieces: Buffer[] = [];
  for await (const piece of place.read(sumsName, sumsBytesMax)) pieces.push(piece);
  try {
    return JSON.parse(Buffer.concat(pieces).toString()) as BackupSums;
  } catch (cause) {
    throw new EngineError("backup-damaged", `The file ${place.where(sumsName)} is damaged.`, {
      cause,
    });
  }
}

/** Returns the difference between the file `name` and its sums as a sentence, or null. @throws EngineError file-failed */
export async function differenceFrom(
  place: BackupStorage,
  name: string,
  { Bytes, Sha256 }: BackupSums,
): Promise<string | null> {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const piece of place.read(name)) {
    hash.update(piece);
    bytes += piece.length;
  }
  const path = place.where(name);
  if (bytes !== Bytes) return `${path} has ${bytes} bytes, and was written with ${Bytes}.`;
  if (hash.digest("hex") !== Sha256)
    return `${path} was changed after it was written: its SHA-256 differs.`;
  return null;
}
