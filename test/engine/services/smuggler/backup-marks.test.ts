/**
 * Chains of backups: a full and several incremental ones restore the content, including deletions;
 * and their marks.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { nodeEnvironment } from "../../../../engine/base/platform/node-environment.ts";
import {
  backupMark,
  deletionsBackedUp,
  hasDeletionsSince,
  putBackupMark,
} from "../../../../engine/services/smuggler/backup-marks.ts";
import {
  backupOptions,
  restoreOptions,
} from "../../../../engine/services/smuggler/dump-options.ts";
import { hasCompleteSections } from "../../../../engine/services/smuggler/dump-record.ts";
import { exportDump } from "../../../../engine/services/smuggler/export.ts";
import { importDump } from "../../../../engine/services/smuggler/import.ts";
import { SmugglerResult } from "../../../../engine/services/smuggler/smuggler-result.ts";
import { dumpedContents, play, type Step, step } from "../../../support/dump-steps.ts";
import { newTestFolder, openTestDatabase } from "../../../support/open-test-database.ts";

interface File {
  readonly bytes: Buffer;
  readonly etag: number;
}

function resultOf(database: OpenDatabase): SmugglerResult {
  return new SmugglerResult(() => database.state.nowMicros());
}

async function backedUp(database: OpenDatabase, since: number): Promise<File> {
  const pieces: Buffer[] = [];
  const result = resultOf(database);
  for await (const piece of exportDump(database, backupOptions({ since }), result)) {
    pieces.push(Buffer.from(piece));
  }
  return { bytes: Buffer.concat(pieces), etag: result.asOfEtag };
}

async function* whole(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

async function restored(files: readonly File[]): Promise<OpenDatabase> {
  const database = await openTestDatabase({ isInMemory: true });
  let index = 0;
  const settings = {
    mayChangeRecord: true,
    mayDeployCSharp: true,
    isRestore: true,
    nextIndex: () => Promise.resolve(++index),
  };
  for (const [i, { bytes }] of files.entries()) {
    expect(hasCompleteSections(bytes.toString("latin1", 0, 200))).toBe(true);
    const options = restoreOptions(i < files.length - 1, false);
    const result = resultOf(database);
    await importDump(database, whole(bytes), options, settings, result);
    expect(JSON.stringify(result.toJson(true))).not.toContain("ERROR");
  }
  return database;
}

test("a chain of backups restores the state at its end", async () => {
  const rounds = fc.array(fc.array(step, { maxLength: 12 }), { minLength: 1, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(rounds, async (parts) => {
      const source = await openTestDatabase({ isInMemory: true });
      const files: File[] = [];
      for (const steps of parts) {
        for (const one of steps) await play(source, one);
        files.push(await backedUp(source, files.at(-1)?.etag ?? 0));
      }
      const database = await restored(files);
      expect(await dumpedContents(database)).toBe(await dumpedContents(source));
    }),
    { numRuns: 80 },
  );
}, 120_000);

test("an incremental backup contains only changes, and restores deletions and moves", async () => {
  const source = await openTestDatabase({ isInMemory: true });
  const users = '{"N":1,"@metadata":{"@collection":"Users"}}';
  const steps: Step[] = [
    { kind: "put", id: "a", body: users },
    { kind: "put", id: "b", body: users },
    { kind: "put", id: "Users/1", body: users },
    { kind: "attach", id: "a", name: "big", content: "x".repeat(3000) },
    { kind: "count", id: "a", name: "n", by: 1n },
    { kind: "count", id: "a", name: "gone", by: 1n },
    { kind: "append", id: "a", name: "s", times: [1, 50_000, 90_000], tag: null },
    { kind: "exchange", name: "kept", value: 1 },
    { kind: "exchange", name: "gone", value: 1 },
  ];
  for (const one of steps) await play(source, one);
  const full = await backedUp(source, 0);
  const later: Step[] = [
    { kind: "put", id: "a", body: '{"N":2,"@metadata":{"@collection":"Users"}}' },
    { kind: "uncount", id: "a", name: "gone" },
    { kind: "unappend", id: "a", name: "s", from: 40_000, to: 60_000 },
    { kind: "unexchange", name: "gone" },
    { kind: "delete", id: "b" },
    { kind: "delete", id: "Users/1" },
    { kind: "put", id: "Users/1", body: '{"N":3,"@metadata":{"@collection":"Other"}}' },
  ];
  for (const one of later) await play(source, one);
  const incremental = await backedUp(source, full.etag);
  const text = incremental.bytes.toString("latin1");
  expect(text).not.toContain("xxxxxxxx");
  expect(incremental.bytes.length).toBeLessThan(full.bytes.length);
  const empty = await backedUp(source, incremental.etag);
  expect(empty.bytes.toString("latin1")).toContain('"Docs":[]');
  const database = await restored([full, incremental, empty]);
  expect(await dumpedContents(database)).toBe(await dumpedContents(source));
  expect(await database.get("b")).toBeNull();
});

test("restores revisions unchanged, without creating new ones, and the configuration", async () => {
  const source = await openTestDatabase({ isInMemory: true });
  await source.putSettings({
    Revisions: { Default: null, Collections: { Users: { MinimumRevisionsToKeep: 9 } } },
    RavenConnectionStrings: { One: { Name: "One" } },
    PeriodicBackups: [{ Name: "nightly", TaskId: 7 }],
  });
  for (const N of [1, 2])
    await source.put("Users/1", { N, "@metadata": { "@collection": "Users" } });
  const full = await backedUp(source, 0);
  await source.put("Users/1", { N: 3, "@metadata": { "@collection": "Users" } });
  await source.delete("Users/1");
  const incremental = await backedUp(source, full.etag);
  const database = await restored([full, incremental]);
  const revisions = (of: OpenDatabase) =>
    of.state.keyspaces.revisions
      .rowsFrom(0)
      .map((row) => of.state.keyspaces.revisions.lengthOf(row));
  expect(revisions(source)).toHaveLength(4);
  expect(revisions(database)).toHaveLength(4);
  expect(database.settings).toMatchObject(source.settings);
});

test("retains the tombstones that the next incremental backup of an enabled task needs", async () => {
  const folder = `${await newTestFolder()}/database`;
  const environment = nodeEnvironment();
  let database = await OpenDatabase.open(environment, "test", folder);
  await database.putSettings({
    PeriodicBackups: [
      null,
      { TaskId: 1, IncrementalBackupFrequency: "0 * * * *" },
      { TaskId: 2, IncrementalBackupFrequency: "0 * * * *", Disabled: true },
      { TaskId: 3, FullBackupFrequency: "0 * * * *" },
    ],
  });
  for (const id of ["a", "b"]) await database.put(id, {});
  expect(deletionsBackedUp(database)).toBe(Number.POSITIVE_INFINITY);
  const { etag } = await backedUp(database, 0);
  for (const task of [1, 2, 3]) {
    await putBackupMark(database, task, { etag: task === 1 ? etag : 1, status: { Version: task } });
  }
  await database.delete("a");
  await database.close();
  database = await OpenDatabase.open(environment, "test", folder, { log: { mustExist: true } });
  expect(deletionsBackedUp(database)).toBe(etag);
  await database.maintenance.cleanTombstones();
  expect(database.state.keyspaces.tombstones.count).toBe(1);
  expect(hasDeletionsSince(database, etag)).toBe(true);
  expect(backupMark(database, 1)).toEqual({ etag, status: { Version: 1 } });
  await putBackupMark(database, 1, undefined);
  await database.put("c", {});
  await database.maintenance.cleanTombstones();
  expect(database.state.keyspaces.tombstones.count).toBe(0);
  expect(hasDeletionsSince(database, etag)).toBe(false);
  await database.close();
});
