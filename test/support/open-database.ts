/** Databases for tests: in memory, or in a folder that is removed after the test. */
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { OpenDatabase } from "../../engine/api/database/open-database.ts";
import { type OpenFolder, openFolder } from "../../engine/api/database/open-folder.ts";

import { isLockName } from "../../engine/base/platform/lock/lock-record.ts";
import type { QueryOutcome } from "../../engine/queries/execution/results.ts";
import type { QueryOptions } from "../../engine/services/querying/query-host.ts";

const engines: OpenFolder[] = [];
const folders: string[] = [];

/**
 * Closes the databases of the test, checks their invariants, and removes their folders. For
 * afterEach.
 */
export async function closeDatabases(): Promise<void> {
  for (const engine of engines.splice(0)) {
    for (const database of engine.databases.opened()) {
      database.queries.indexes.checkInvariants();
      database.checkInvariants();
    }
    await engine.close();
  }
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "jackdaw-test-"));
  folders.push(folder);
  return folder;
}

/** Opens the database `db` in a folder; undefined: in memory. */
export async function openDatabase(folder?: string): Promise<OpenDatabase> {
  const engine = await openFolder(folder === undefined ? {} : { folder });
  engines.push(engine);
  return (await engine.databases.find("db")) ?? (await engine.databases.create("db", {}));
}

/**
 * Opens the files that a crash of the process would leave. Call it while the first instance is
 * still open.
 */
export async function openAfterCrash(folder: string): Promise<OpenDatabase> {
  const copy = temporaryFolder();
  cpSync(folder, copy, { recursive: true, filter: isNoLock });
  return await openDatabase(copy);
}

/** Filter for copying a folder in use: everything but its lock. */
export function isNoLock(path: string): boolean {
  return !isLockName(basename(path));
}

/** Stores documents of a collection: id -> body. */
export async function putAll(
  database: OpenDatabase,
  collection: string,
  bodies: Readonly<Record<string, object>>,
): Promise<void> {
  for (const [id, body] of Object.entries(bodies)) {
    await database.put(id, { ...body, "@metadata": { "@collection": collection } });
  }
}

export interface QueryReply {
  readonly outcome: QueryOutcome | null;
  readonly rows: readonly Record<string, unknown>[];
  readonly ids: readonly string[];
}

export async function query(
  database: OpenDatabase,
  text: string,
  options: QueryOptions = {},
): Promise<QueryReply> {
  const rows: Record<string, unknown>[] = [];
  const outcome = await database.query(
    text,
    { waitForNonStale: true, ...options },
    {
      add(row) {
        rows.push(JSON.parse(row.toString()) as Record<string, unknown>);
        return null;
      },
    },
  );
  const ids = rows.map((row) => (row["@metadata"] as { "@id": string } | undefined)?.["@id"] ?? "");
  return { outcome, rows, ids };
}
