/** Verifies a backup: compares the restored database with the sums of the backup, and with another database. */
import type { Database, OperationFigures, ShippedDatabase } from "../../engine/engine.ts";
import type { JsonObject } from "../http/json-body.ts";
import type { BackupStorage } from "./backup-storage.ts";
import { backupCounts, differenceFrom, readSums } from "./backup-sums.ts";

/** A backup that was restored into a database that serves no requests yet. */
export interface RestoredBackup {
  readonly database: Database;
  /** The index of the command that created it. */
  readonly index: number;
  /** The result of the restore. */
  readonly figures: OperationFigures;
  /** Storage of the backup, and the names of the restored files, in order. */
  readonly place: BackupStorage;
  readonly names: readonly string[];
  /** Null if the files are dumps. */
  readonly continuous: ShippedDatabase | null;
}

/**
 * Returns `{"IsValid","Kind","Problems":[…],"Counts":{…},"Expected":{…}|null,"Compared":{…}|null}`. Damaged files fail the
 * restore earlier.
 */
export async function verification(
  restored: RestoredBackup,
  compared: Database | undefined,
  signal: AbortSignal,
): Promise<JsonObject> {
  const { database, continuous, figures } = restored;
  const problems: string[] = [];
  const Counts = backupCounts(database.statistics.counts());
  const Expected =
    continuous === null
      ? await expectedOfDumps(restored, problems, signal)
      : expectedOfShipped(continuous, problems);
  for (const [kind, count] of Object.entries(Expected ?? {})) {
    const found = kind === "Etag" ? continuous?.etag : Counts[kind as keyof typeof Counts];
    if (found !== count) problems.push(`${kind}: ${found} restored, ${count} expected.`);
  }
  for (const [kind, one] of Object.entries(figures)) {
    const errors = (one as { ErroredCount?: unknown } | null)?.ErroredCount;
    if (typeof errors === "number" && errors > 0) problems.push(`${kind}: ${errors} errors.`);
  }
  const Compared = compared === undefined ? null : await comparison(database, compared, signal);
  return {
    IsValid: problems.length === 0,
    Kind: continuous === null ? "Backup" : "Continuous",
    Problems: problems,
    Counts,
    Expected,
    Compared,
  };
}

/** Reads the sums of the last file. Returns null for files of other servers. */
async function expectedOfDumps(
  { place, names }: RestoredBackup,
  problems: string[],
  signal: AbortSignal,
): Promise<JsonObject | null> {
  let counts: JsonObject | null = null;
  for (const name of names) {
    signal.throwIfAborted();
    const sums = await readSums(place, name);
    counts = sums === null ? null : { ...sums.Counts };
    const difference = sums === null ? null : await differenceFrom(place, name, sums);
    if (difference !== null) problems.push(difference);
  }
  return counts;
}

/** Returns the counts in the last file, if all of it was restored. */
function expectedOfShipped(
  { restored, missingContents }: ShippedDatabase,
  problems: string[],
): JsonObject | null {
  if (missingContents > 0) {
    problems.push(
      `Attachments: ${missingContents} contents are missing, because they were damaged in the database.`,
    );
  }
  const { last } = restored;
  return last === null || last.documents === null
    ? null
    : { Documents: last.documents, Etag: last.etag };
}

/** Returns `{"Database","IsEqual","Differences":[…]}`, by type of content. */
async function comparison(
  restored: Database,
  other: Database,
  signal: AbortSignal,
): Promise<JsonObject> {
  const guest = other.enter(true);
  try {
    const one = await restored.smuggler.digest(signal);
    const two = await other.smuggler.digest(signal);
    const Differences = Object.entries(one.kinds).flatMap(([Kind, { count, hash }]) => {
      const there = two.kinds[Kind];
      if (there?.hash === hash && there.count === count) return [];
      return [{ Kind, Backup: count, Database: there?.count ?? 0 }];
    });
    return { Database: other.name, IsEqual: Differences.length === 0, Differences };
  } finally {
    guest.release();
  }
}
