/**
 * Periodic backups: when they run, which backup they continue, retention, failures and restarts.
 */
import { mkdtempSync, readdirSync, realpathSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { EngineError } from "../../../engine/base/errors.ts";
import { type Database, nodeEnvironment } from "../../../engine/engine.ts";
import { SecretStore } from "../../../server/backups/backup-destination.ts";
import { BackupRunner } from "../../../server/backups/backup-runner.ts";
import { historyOf } from "../../../server/backups/backup-status.ts";
import { PeriodicBackups } from "../../../server/backups/periodic-backups.ts";
import {
  startTestServer,
  stopTestServers,
  type TestServer,
} from "../../support/start-test-server.ts";

const base = realpathSync(mkdtempSync(join(tmpdir(), "jackdaw-periodic-")));
let server: TestServer;
let database: Database;
let periodic: PeriodicBackups;
let nowMs = 0;
let reports: string[] = [];
let count = 0;

beforeAll(async () => {
  server = await startTestServer({ unsecured: true });
});
afterEach(() => periodic.close());
afterAll(async () => {
  await stopTestServers();
  await rm(base, { recursive: true, force: true });
});

/** The next morning at this time. */
function clock(hour: number, minute = 0, day = 2): number {
  return new Date(2026, 2, day, hour, minute).getTime();
}

/** Whether another node of the cluster is responsible for backups. */
const elsewhere = false;

function newPeriodic(root?: string, files = nodeEnvironment().files): PeriodicBackups {
  const { databases, values, commandIndex } = server.running.services;
  return new PeriodicBackups({
    databases,
    values,
    rules: { root, dataFolder: undefined },
    report: (line) => reports.push(line),
    runner: new BackupRunner(),
    secrets: new SecretStore(values),
    files,
    isElsewhere: () => elsewhere,
    nextIndex: () => commandIndex.next(),
    nowMs: () => nowMs,
  });
}

/** A new database with a task. @returns its id, and its folder. */
async function newTask(change: object = {}): Promise<{ taskId: number; folder: string }> {
  const name = `periodic-${++count}`;
  database = await server.running.services.databases.create(name, { DatabaseName: name });
  await database.documents.put("a", Buffer.from("{}"));
  reports = [];
  nowMs = clock(1);
  periodic = newPeriodic();
  const folder = join(base, name);
  const { taskId } = await periodic.put(database, {
    Name: "nightly",
    FullBackupFrequency: "0 2 * * *",
    IncrementalBackupFrequency: "0 * * * *",
    LocalSettings: { FolderPath: folder },
    ...change,
  });
  return { taskId, folder };
}

function filesIn(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true })
      .map(String)
      .filter((name) => name.endsWith("backup") && name.includes("/"))
      .map((name) => name.replace(/^.*ravendb-(full|incremental)-backup$/, "$1"))
      .sort();
  } catch {
    return [];
  }
}

async function until(condition: () => boolean): Promise<void> {
  await expect.poll(condition, { timeout: 10_000 }).toBe(true);
}

/** Runs the due backups and waits for them. */
async function passTo(ms: number): Promise<void> {
  nowMs = ms;
  // The first may have started before the clock was set.
  await periodic.check();
  await periodic.check();
  await until(() => !database.operations.isRunning);
  await sleep(10);
}

test("runs once when due, first full and then incremental", async () => {
  const { taskId, folder } = await newTask();
  await passTo(clock(1, 59));
  expect(filesIn(folder)).toEqual([]);
  await passTo(clock(2));
  expect(filesIn(folder)).toEqual(["full"]);
  await passTo(clock(2, 1));
  expect(filesIn(folder)).toEqual(["full"]);
  await passTo(clock(3));
  await passTo(clock(3, 30));
  expect(filesIn(folder)).toEqual(["full", "incremental"]);
  await passTo(clock(2, 0, 3));
  expect(filesIn(folder)).toEqual(["full", "full", "incremental"]);
  const mark = database.smuggler.backupMark(taskId);
  expect(mark?.status).toMatchObject({
    TaskId: taskId,
    IsFull: true,
    Version: 3,
    Error: null,
    LocalBackup: {
      BackupDirectory: expect.stringContaining(".ravendb-periodic-"),
      Exception: null,
    },
  });
  expect(historyOf(mark?.status)).toMatchObject({
    lastFullMs: clock(2, 0, 3),
    lastIncrementalMs: clock(3),
    error: null,
  });
  const task = periodic.find(database, taskId);
  expect(task && periodic.next(database, task)).toEqual({ atMs: clock(3, 0, 3), isFull: false });
});

test("resumes after a restart and runs a missed backup once", async () => {
  const { folder } = await newTask({ IncrementalBackupFrequency: null });
  await passTo(clock(2));
  periodic.close();
  periodic = newPeriodic();
  nowMs = clock(12, 0, 9);
  periodic.start();
  await until(() => filesIn(folder).length === 2);
  await passTo(clock(12, 1, 9));
  expect(filesIn(folder)).toEqual(["full", "full"]);
});

test("is full if the backup to continue is missing, and in another folder", async () => {
  const { taskId, folder } = await newTask();
  await passTo(clock(2));
  await rm(folder, { recursive: true });
  await passTo(clock(3));
  expect(filesIn(folder)).toEqual(["full"]);
  const task = periodic.find(database, taskId);
  const LocalSettings = { FolderPath: `${folder}-moved` };
  expect(await periodic.put(database, { ...task, LocalSettings })).toMatchObject({ taskId });
  await passTo(clock(4));
  expect(filesIn(`${folder}-moved`)).toEqual(["full"]);
});

test("neither a disabled task nor a deleted one runs", async () => {
  const { taskId, folder } = await newTask();
  await periodic.setDisabled(database, taskId, true);
  await passTo(clock(5));
  await expect(periodic.runNow(database, taskId, true, undefined)).rejects.toThrow("is disabled");
  await periodic.delete(database, taskId);
  await passTo(clock(6));
  expect(filesIn(folder)).toEqual([]);
  expect(periodic.list(database)).toEqual([]);
  await expect(periodic.runNow(database, taskId, true, undefined)).rejects.toMatchObject({
    status: 408,
    type: "System.TimeoutException",
  });
});

test("reports a failed run and retries it at increasing intervals", async () => {
  const { taskId, folder } = await newTask({ IncrementalBackupFrequency: null });
  writeFileSync(folder, "a file");
  await passTo(clock(2));
  expect(historyOf(database.smuggler.backupMark(taskId)?.status)).toMatchObject({
    lastFullMs: null,
    error: expect.stringContaining("is a file"),
  });
  expect(reports).toHaveLength(1);
  await passTo(clock(2, 0) + 30_000);
  expect(reports).toHaveLength(1);
  await passTo(clock(2, 1));
  expect(reports).toHaveLength(2);
  await passTo(clock(2, 2));
  expect(reports).toHaveLength(2);
  await rm(folder);
  await passTo(clock(2, 4));
  expect(filesIn(folder)).toEqual(["full"]);
  expect(historyOf(database.smuggler.backupMark(taskId)?.status)).toMatchObject({ error: null });
  const wasFile = { IsFull: true, Error: expect.stringContaining("is a file"), FileName: null };
  expect(periodic.runs(database, taskId)).toMatchObject([
    { IsFull: true, Error: null, FileName: expect.stringContaining("full-backup") },
    wasFile,
    wasFile,
  ]);
  expect(periodic.status(database, taskId)).not.toHaveProperty("Runs");
  expect(reports.at(-1)).toContain("succeed again");
});

test("a run interrupted by the closing of its database is not a failure", async () => {
  await newTask();
  nowMs = clock(2);
  const checked = periodic.check();
  await server.running.services.databases.delete(database.name);
  await checked;
  await sleep(50);
  expect(reports).toEqual([]);
});

test("a run refused by a database that has just begun to close is not a failure", async () => {
  const { taskId, folder } = await newTask();
  const closing = new EngineError("database-stopped", "The database is closing.");
  vi.spyOn(database.smuggler, "startBackup").mockRejectedValueOnce(closing);
  await passTo(clock(2));
  expect(reports).toEqual([]);
  expect(filesIn(folder)).toEqual(["full"]);
  expect(periodic.runs(database, taskId)).toHaveLength(1);
});

test("a running task that is delayed stops, and runs later", async () => {
  const { taskId, folder } = await newTask();
  expect(() => periodic.delay(database, taskId, 1)).toThrow("isn't registered");
  const puts = Array.from({ length: 5_000 }, (_, n) =>
    database.documents.put(`many/${n}`, Buffer.from("{}")),
  );
  await Promise.all(puts);
  nowMs = clock(2);
  const started = await periodic.runNow(database, taskId, true, undefined);
  periodic.delay(database, taskId, 600_000);
  expect((await started.ended).error).toBeDefined();
  await passTo(clock(2, 9));
  expect(filesIn(folder)).toEqual([]);
  expect(periodic.runs(database, taskId)).toEqual([]);
  await passTo(clock(2, 10));
  expect(filesIn(folder)).toEqual(["full"]);
  expect(reports).toEqual([]);
});

test("runs immediately on request", async () => {
  const { taskId, folder } = await newTask();
  const first = await periodic.runNow(database, taskId, false, 77);
  expect(first.id).toBe(77);
  expect((await first.ended).error).toBeUndefined();
  await (await periodic.runNow(database, taskId, false, undefined)).ended;
  await (await periodic.runNow(database, taskId, false, undefined)).ended;
  expect(filesIn(folder)).toEqual(["full", "incremental", "incremental"]);
});

test("deletes only backups older than the retention time", async () => {
  const RetentionPolicy = { MinimumBackupAgeToKeep: "1.00:00:00" };
  const { taskId, folder } = await newTask({ RetentionPolicy });
  periodic.close(); // Only runs requested by the test.
  await (await periodic.runNow(database, taskId, true, undefined)).ended;
  const [first = ""] = readdirSync(folder);
  const other = first.replace(database.name, "other");
  await nodeEnvironment().files.makeDirectory(join(folder, other));
  writeFileSync(join(folder, "notes.txt"), "mine");
  writeFileSync(join(folder, first, "x.ravendb-full-backup.in-progress"), "");
  const oneDay = 86_400_000;
  nowMs = Date.now() + oneDay / 2;
  await (await periodic.runNow(database, taskId, true, undefined)).ended;
  expect(readdirSync(folder)).toContain(first);
  nowMs = Date.now() + 2 * oneDay;
  await (await periodic.runNow(database, taskId, true, undefined)).ended;
  const left = readdirSync(folder);
  expect(left).not.toContain(first);
  expect(left).toEqual(expect.arrayContaining([other, "notes.txt"]));
  // The newest one stays, however old it is by this clock.
  expect(left.filter((name) => name.includes(`-${database.name}-`))).toHaveLength(1);
});

test("creates a backup even if old ones cannot be deleted", async () => {
  const RetentionPolicy = { MinimumBackupAgeToKeep: "1.00:00:00" };
  const { taskId, folder } = await newTask({ RetentionPolicy });
  periodic.close();
  const { files } = nodeEnvironment();
  const unlink = async () => {
    throw new Error("the file is in use");
  };
  periodic = newPeriodic(undefined, Object.assign(Object.create(files), { unlink }));
  periodic.close(); // Only runs requested by the test.
  const old = join(folder, `2020-01-01-00-00-00.ravendb-${database.name}-A-backup`);
  await files.makeDirectory(old);
  writeFileSync(join(old, "2020-01-01-00-00-00.ravendb-full-backup"), "");
  const { ended } = await periodic.runNow(database, taskId, true, undefined);
  expect((await ended).error).toBeUndefined();
  expect(reports).toEqual([expect.stringContaining("could not be removed")]);
  expect(historyOf(database.smuggler.backupMark(taskId)?.status)).toMatchObject({ error: null });
});

test("rejects a folder outside of the root, both in the definition and in a run", async () => {
  const { taskId } = await newTask();
  const confined = newPeriodic(join(base, "root"));
  const task = periodic.find(database, taskId);
  await expect(confined.put(database, { ...task })).rejects.toThrow("must be within");
  await expect(confined.runNow(database, taskId, true, undefined)).rejects.toThrow(
    "must be within",
  );
  confined.close();
});
