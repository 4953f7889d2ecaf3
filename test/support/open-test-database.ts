/**
 * Databases for tests. Each is checked whole when its test ends: what is in memory must be what another instance makes
 * of the same files, with its index snapshot and by reading the whole log.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { Database, type DatabaseOptions } from "../../engine/database.ts";
import { nodeEnvironment } from "../../engine/node-environment.ts";
import { isCold } from "./cold.ts";
import { describeDatabase, pictureOf } from "./database-picture.ts";

export interface TestDatabaseOptions extends DatabaseOptions {
  /** Keep everything in memory: then only its invariants are checked. */
  readonly isInMemory?: boolean;
}

/** A new folder that is removed when the test ends. */
export async function newTestFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "jackdaw-test-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Opens a new database that is checked whole when the test ends, if the test has not ended it itself. */
export async function openTestDatabase(options: TestDatabaseOptions = {}): Promise<Database> {
  const { isInMemory, ...databaseOptions } = options;
  const folder = isInMemory === true && !isCold ? null : join(await newTestFolder(), "database");
  const database = await Database.open(nodeEnvironment(), "test", folder, databaseOptions);
  onTestFinished(() => verifyAtEnd(database, isInMemory === true ? null : folder));
  return database;
}

/** @throws AssertionError when the files of the database do not say what its memory says. */
async function verifyAtEnd(database: Database, folder: string | null): Promise<void> {
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
    const again = await Database.open(nodeEnvironment(), "test", folder, {
      log: { mustExist: true },
    });
    try {
      again.checkInvariants();
      const after = pictureOf(again);
      // Closing waits for a compaction, which may give back what is dead.
      expect(after.recordBytes).toBeLessThanOrEqual(picture.recordBytes);
      expect({ ...after, recordBytes: 0 }).toEqual({ ...picture, recordBytes: 0 });
      expect(await describeDatabase(again)).toBe(description);
    } finally {
      await again.abandon();
    }
  }
}
