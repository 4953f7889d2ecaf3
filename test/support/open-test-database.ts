/**
 * Databases for tests. Each is checked completely when its test ends: its memory must equal that of another instance
 * opened from the same files, with its snapshot and by replaying the whole log.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { type DatabaseOptions, OpenDatabase } from "../../engine/database/open-database.ts";
import { nodeEnvironment } from "../../engine/platform/node-environment.ts";
import { isCold } from "./cold.ts";
import { describeDatabase, pictureOf } from "./database-picture.ts";

export interface TestDatabaseOptions extends DatabaseOptions {
  /** Keep everything in memory: then only invariants and blobs are checked. */
  readonly isInMemory?: boolean;
}

/** Creates a folder that is removed when the test ends. */
export async function newTestFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "jackdaw-test-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Opens a new database, which is checked completely when the test ends, unless the test has closed it. */
export async function openTestDatabase(options: TestDatabaseOptions = {}): Promise<OpenDatabase> {
  const { isInMemory, ...databaseOptions } = options;
  const folder = isInMemory === true && !isCold ? null : join(await newTestFolder(), "database");
  const database = await OpenDatabase.open(nodeEnvironment(), "test", folder, databaseOptions);
  onTestFinished(() => verifyAtEnd(database, isInMemory === true ? null : folder));
  return database;
}

/** @throws AssertionError when files and memory of the database differ */
async function verifyAtEnd(database: OpenDatabase, folder: string | null): Promise<void> {
  if (database.hasEnded) return;
  database.checkInvariants();
  expect(await database.blobs.findDamaged()).toEqual([]);
  if (folder === null) {
    await database.close();
    return;
  }
  await database.flush();
  const picture = pictureOf(database);
  const description = await describeDatabase(database);
  await database.close();
  for (const withSnapshot of [true, false]) {
    if (!withSnapshot) {
      const { files } = nodeEnvironment();
      for (const name of await files.list(`${folder}/snap`)) await rm(`${folder}/snap/${name}`);
    }
    const again = await OpenDatabase.open(nodeEnvironment(), "test", folder, {
      log: { mustExist: true },
    });
    try {
      again.checkInvariants();
      const after = pictureOf(again);
      // Closing waits for a compaction, which may reclaim dead bytes.
      expect(after.recordBytes).toBeLessThanOrEqual(picture.recordBytes);
      expect({ ...after, recordBytes: 0 }).toEqual({ ...picture, recordBytes: 0 });
      expect(await describeDatabase(again)).toBe(description);
    } finally {
      await again.abandon();
    }
  }
}
