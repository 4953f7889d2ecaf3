/**
 * Verifies the files of a database that is not open: its log, the contents of its attachments, and the snapshots of its
 * indexes. Nothing is changed, except that the folder is locked during the check.
 */
import type { DirectoryLock, Environment, FileSystem } from "../../base/environment.ts";
import { EngineError } from "../../base/errors.ts";
import {
  BlobStore,
  contentName,
  hashOfContentName,
  isContentName,
} from "../../storage/log/blob-store.ts";
import { type CheckProgress, checkLog, type FoundDamage } from "../../storage/log/log-check.ts";
import { findSnapshotDamage } from "../../storage/log/snapshot-file.ts";
import { NewestRecords } from "./newest-records.ts";

/** The result of a check. The database is intact when there are no `damages`. */
export interface CheckedDatabase {
  readonly segments: number;
  readonly frames: number;
  readonly records: number;
  readonly documents: number;
  /** Contents of attachments that have a file. */
  readonly contents: number;
  readonly damages: readonly FoundDamage[];
  /** Snapshots that cannot be used: their contents are rebuilt from the log. */
  readonly unusableSnapshots: readonly FoundDamage[];
  /** Bytes of an interrupted write at the end of the log. It was not acknowledged. */
  readonly tornBytes: number;
  /** When the last commit was made, in microseconds since 1970; 0: none that is not compacted. */
  readonly committedMicros: number;
}

/** Returns the bytes of all files that a check reads, for its progress. */
export async function bytesToCheck({ files }: Environment, folder: string): Promise<number> {
  let bytes = 0;
  for (const inner of ["log", "snap", "indexes", "blobs"]) {
    for (const name of await namesIn(files, `${folder}/${inner}`)) {
      const file = await files.open(`${folder}/${inner}/${name}`, "read");
      bytes += await file.size().finally(() => file.close());
    }
  }
  return bytes;
}

/**
 * Checks the database in `folder`. `progress` is called with the bytes of each chunk that was read; an exception from
 * it ends the check. `under`: the lock of an enclosing folder.
 * @throws EngineError database-locked, database-missing
 */
export async function checkDatabase(
  environment: Environment,
  folder: string,
  progress: CheckProgress,
  under?: DirectoryLock,
): Promise<CheckedDatabase> {
  const { files } = environment;
  const lock = await files.lockDirectory(folder, under);
  try {
    const newest = new NewestRecords();
    const log = await checkLog(files, folder, newest, progress);
    const unusableSnapshots = [...log.unusableSnapshots];
    const indexes = await namesIn(files, `${folder}/indexes`);
    for (const name of indexes.filter((one) => /^\d{10}\.idx$/.test(one))) {
      if (log.databaseId === null) break;
      const file = `${folder}/indexes/${name}`;
      const identity = { databaseId: log.databaseId, number: Number(name.slice(0, 10)) };
      const found = await findSnapshotDamage(files, file, identity, progress);
      if (found !== null) unusableSnapshots.push({ file, ...found });
    }
    const contents = await checkContents(environment, folder, newest, progress);
    return {
      segments: log.segments,
      frames: log.frames,
      records: log.records,
      documents: newest.documents.documentCount,
      contents: contents.count,
      damages: [...log.damages, ...contents.damages],
      unusableSnapshots,
      tornBytes: log.tornBytes,
      committedMicros: log.committedMicros,
    };
  } finally {
    await lock.release();
  }
}

/** Checks every content that has a file, and every content that an attachment refers to. */
async function checkContents(
  environment: Environment,
  database: string,
  newest: NewestRecords,
  progress: CheckProgress,
): Promise<{ count: number; damages: FoundDamage[] }> {
  const folder = `${database}/blobs`;
  const names = (await namesIn(environment.files, folder)).filter(isContentName);
  const store = new BlobStore(environment, folder);
  const damages: FoundDamage[] = [];
  for (const name of names) {
    const reason = await damageOf(store, hashOfContentName(name), progress);
    if (reason !== null) damages.push({ file: `${folder}/${name}`, offset: 0, length: 0, reason });
  }
  const known = new Set(names);
  for (const [key, { hash }] of newest.keyspaces.attachments.withPrefix("")) {
    const name = contentName(hash);
    if (known.has(name) || !newest.hasOwner(key)) continue;
    known.add(name);
    const reason = `the content of ${key.replaceAll("\u0000", "/")} is missing`;
    damages.push({ file: `${folder}/${name}`, offset: 0, length: 0, reason });
  }
  return { count: names.length, damages };
}

async function damageOf(
  store: BlobStore,
  hash: string,
  progress: CheckProgress,
): Promise<string | null> {
  try {
    const reader = await store.open(hash);
    try {
      for await (const chunk of reader.read(0, reader.size)) progress(chunk.length);
    } finally {
      await reader.close();
    }
    return null;
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return error.code === "record-damaged" ? "its content has another hash" : error.message;
  }
}

async function namesIn(files: FileSystem, folder: string): Promise<string[]> {
  return (await files.exists(folder)) ? (await files.list(folder)).sort() : [];
}
