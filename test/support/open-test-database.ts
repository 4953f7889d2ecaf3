/**
 * Databases for tests. Each is checked completely when its test ends: its memory must equal that of another instance
 * opened from the same files, with its snapshot and by replaying the whole log.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { type DatabaseOptions, OpenDatabase } from "../../engine/api/database/open-database.ts";
import { nodeEnvironment } from "../../engine/base/platform/node-environment.ts";
import { isCold } from "./cold.ts";
import { describeDatabase, pictureOf } from "./database-picture.ts";
import {
  expectSameContents,
  FollowingCarrier,
  follow as followGroups,
  GroupList,
} from "./followed-database.ts";

interface TestDatabaseOptions extends DatabaseOptions {
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
  const carrier = isFollowed ? new GroupList() : undefined;
  const log = { ...databaseOptions.log, ...(carrier === undefined ? {} : { carrier }) };
  const all = { ...databaseOptions, log };
  const database = await OpenDatabase.open(nodeEnvironment(), "test", folder, all);
  onTestFinished(() => verifyAtEnd(database, isInMemory === true ? null : folder));
  if (carrier !== undefined) onTestFinished(() => verifyFollower(database, carrier));
  return database;
}

/** Whether each test database is compared with a follower. See followed-database.test.ts. */
const isFollowed = process.env["FOLLOWED"] === "1";

/** @throws AssertionError if a follower differs */
async function verifyFollower(database: OpenDatabase, carrier: GroupList): Promise<void> {
  if (database.hasEnded) return;
  await database.flush();
  const own = new FollowingCarrier();
  const follower = await OpenDatabase.open(nodeEnvironment(), "test", null, {
    log: { carrier: own, databaseId: database.databaseId },
  });
  follower.follow();
  await followGroups(database, carrier.groups, follower, own);
  await expectSameContents(database, follower);
  await follower.close();
}

/** @throws AssertionError if files and memory of the database differ */
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
