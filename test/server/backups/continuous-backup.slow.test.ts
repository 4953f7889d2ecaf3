/**
 * Continuous backups over HTTP: restored content and points in time; a lost folder, a failing
 * destination, a restart and damaged files.
 */
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import type { FileSystem } from "../../../engine/base/environment.ts";
import { type Database, nodeEnvironment } from "../../../engine/engine.ts";
import { periodicBackup } from "../../../server/backups/backup-configuration.ts";
import { ContinuousBackup } from "../../../server/backups/continuous-backup.ts";
import {
  ContinuousFolder,
  continuousToRestore,
} from "../../../server/backups/continuous-folder.ts";
import { FolderStorage } from "../../../server/backups/folder-storage.ts";
import { type EndpointClient, startEndpointClient } from "../../support/endpoint-client.ts";
import { startTestServer, stopTestServers } from "../../support/start-test-server.ts";

type Json = Record<string, unknown>;

const root = realpathSync(mkdtempSync(join(tmpdir(), "jackdaw-continuous-")));
let count = 0;
afterAll(async () => {
  await stopTestServers();
  await rm(root, { recursive: true, force: true });
});

interface Setup {
  readonly client: EndpointClient;
  readonly folder: string;
  readonly taskId: number;
}

/** A server whose database is backed up every second. */
async function setUp(change: object = {}): Promise<Setup> {
  const client = await startEndpointClient([
    "--RunInMemory=false",
    `--DataDir=${newFolder("data")}`,
  ]);
  const folder = newFolder("backup");
  const reply = (await client.json("POST admin/periodic-backup", {
    Continuous: { IntervalInSec: 1 },
    LocalSettings: { FolderPath: folder },
    ...change,
  })) as Json;
  return { client, folder, taskId: Number(reply["TaskId"]) };
}

function newFolder(kind: string): string {
  return join(root, `${kind}-${++count}`);
}

async function statusOf({ client, taskId }: Setup): Promise<Json> {
  const reply = (await client.json(`GET /periodic-backup/status?name=db&taskId=${taskId}`)) as Json;
  return (reply["Status"] ?? {}) as Json;
}

/** Waits until the status matches. */
async function until(setup: Setup, condition: (status: Json) => boolean): Promise<Json> {
  for (let i = 0; i < 600; i++) {
    const status = await statusOf(setup);
    if (condition(status)) return status;
    await sleep(25);
  }
  throw new Error(`not reached: ${JSON.stringify(await statusOf(setup))}`);
}

const isShipped = (status: Json) => (status["Continuous"] as Json)?.["WaitingBytes"] === 0;

async function restored(client: EndpointClient, body: Json): Promise<Json> {
  const reply = await client.send("POST /admin/restore/database", body);
  if (reply.status !== 200) return reply.json as Json;
  const { OperationId } = reply.json as Json;
  return await client.ended(`/operations/state?id=${OperationId}`);
}

const put = (client: EndpointClient, id: string, value: number) =>
  client.send(`PUT docs?id=${id}`, { value });

async function valueIn(client: EndpointClient, database: string, id: string): Promise<unknown> {
  const reply = await client.send(`GET /databases/${database}/docs?id=${id}`);
  if (reply.status !== 200) return undefined;
  return ((reply.json as Json)["Results"] as Json[])[0]?.["value"];
}

const generations = (folder: string) =>
  readdirSync(folder).filter((name) => name.endsWith("-continuous"));

function onlyFolder(folder: string): string {
  const [name] = generations(folder);
  return join(folder, String(name));
}

/** A place to which something is written as soon as its files were listed. */
class GrowingPlace extends FolderStorage {
  grow: () => void = () => undefined;

  override async files(): ReturnType<FolderStorage["files"]> {
    const found = await super.files();
    this.grow();
    return found;
  }
}

test("writes during a check of the folder are not missed", async () => {
  const setup = await setUp();
  await put(setup.client, "a/1", 1);
  await until(setup, isShipped);
  const folder = onlyFolder(setup.folder);
  const newest = join(folder, "newest.json");
  const before = readFileSync(newest);
  await put(setup.client, "a/1", 2);
  await expect.poll(() => readFileSync(newest).equals(before)).toBe(false);
  await until(setup, isShipped);
  await setup.client.send(`DELETE admin/tasks?id=${setup.taskId}&type=Backup`);
  const after = readFileSync(newest);
  const { name } = JSON.parse(after.toString()) as { name: string };
  const bytes = readFileSync(join(folder, name));
  rmSync(join(folder, name));
  writeFileSync(newest, before);
  const place = new GrowingPlace(nodeEnvironment().files, folder);
  place.grow = () => {
    writeFileSync(join(folder, name), bytes);
    writeFileSync(newest, after);
  };
  const { frames } = await continuousToRestore([new ContinuousFolder(place, null)], null);
  expect(frames.map((file) => file.name)).not.toContain(name);
  rmSync(join(folder, name));
  place.grow = () => undefined;
  const missed = continuousToRestore([new ContinuousFolder(place, null)], null);
  await expect(missed).rejects.toThrow("the last one, is missing");
});

test("restores a database destroyed under traffic, with all acknowledged writes except the last seconds", async () => {
  const setup = await setUp();
  const { client, folder } = setup;
  const acknowledged: { id: string; value: number; ms: number }[] = [];
  let isOver = false;
  const writer = async (number: number): Promise<void> => {
    for (let value = 1; !isOver; value++) {
      const id = `w${number}/${value % 50}`;
      const { status } = await put(client, id, value);
      if (status !== 201) return;
      acknowledged.push({ id, value, ms: performance.now() });
    }
  };
  const writers = [1, 2, 3, 4].map(writer);
  await sleep(3500);
  const destroyedMs = performance.now();
  // The folder and the memory of the process are lost: nothing of either is used below.
  const saved = newFolder("saved");
  renameSync(folder, saved);
  isOver = true;
  await Promise.all(writers);
  const other = await startEndpointClient([
    "--RunInMemory=false",
    `--DataDir=${newFolder("data")}`,
  ]);
  const state = await restored(other, { DatabaseName: "again", BackupLocation: saved });
  expect(state).toMatchObject({ Status: "Completed" });
  const lastById = new Map<string, number>();
  const sureById = new Map<string, number>();
  for (const { id, value, ms } of acknowledged) {
    lastById.set(id, value);
    // An interval, and the duration of a round.
    if (ms < destroyedMs - 2000) sureById.set(id, value);
  }
  expect(sureById.size).toBeGreaterThan(20);
  for (const [id, value] of sureById) {
    const found = Number(await valueIn(other, "again", id));
    expect(found, id).toBeGreaterThanOrEqual(value);
    expect(found, id).toBeLessThanOrEqual((lastById.get(id) ?? 0) + 50);
  }
}, 60_000);

test("restores a point in time with all writes acknowledged before it, and none sent after it", async () => {
  const setup = await setUp();
  const { client, folder } = setup;
  const moments: { at: string; values: number[] }[] = [];
  const values = [0, 0, 0];
  await Promise.all(values.map((value, i) => put(client, `m/${i}`, value)));
  await until(setup, isShipped);
  for (let round = 1; round <= 12; round++) {
    await sleep(60);
    moments.push({ at: new Date().toISOString(), values: [...values] });
    await sleep(5);
    for (let i = 0; i < 3; i++) values[i] = round * 10 + i;
    // One transaction.
    const Commands = values.map((value, i) => ({ Type: "PUT", Id: `m/${i}`, Document: { value } }));
    expect((await client.send("POST bulk_docs", { Commands })).status).toBe(201);
  }
  await until(setup, isShipped);
  for (const [i, { at, values: wanted }] of moments.entries()) {
    if (i % 4 !== 1) continue;
    const name = `moment-${i}`;
    const state = await restored(client, {
      DatabaseName: name,
      BackupLocation: folder,
      PointInTime: at,
      DisableOngoingTasks: true,
    });
    expect(state, JSON.stringify(state)).toMatchObject({ Status: "Completed" });
    const found = await Promise.all([0, 1, 2].map((one) => valueIn(client, name, `m/${one}`)));
    expect(found).toEqual(wanted);
  }
  const early = await restored(client, {
    DatabaseName: "early",
    BackupLocation: folder,
    PointInTime: "2020-01-01T00:00:00Z",
  });
  expect(JSON.stringify(early)).toContain("An earlier moment cannot be restored");
  expect(await client.json("GET /databases?namesOnly=true")).not.toMatchObject({
    Databases: expect.arrayContaining(["early"]),
  });
}, 60_000);

test.each([
  [{ PointInTime: "yesterday" }, "PointInTime must be a time with a zone"],
  [{ PointInTime: "2026-11-22T10:00" }, "PointInTime must be a time with a zone"],
])("refuses to restore %j", async (change, message) => {
  const client = await startEndpointClient();
  const body = { DatabaseName: "x", BackupLocation: root, ...change };
  expect(JSON.stringify(await restored(client, body))).toContain(message);
});

test.each([
  [{ Continuous: 5 }, "'Continuous' must be an object"],
  [{ Continuous: { IntervalInSec: 0 } }, "IntervalInSec must be a number of seconds"],
  [{ Continuous: { NewBaseAfter: "1" } }, "NewBaseAfter must be a time span"],
  [{ Continuous: {}, FullBackupFrequency: "0 2 * * *" }, "Create two tasks"],
])("refuses the definition %j", async (change, message) => {
  const client = await startEndpointClient();
  const reply = await client.send("POST admin/periodic-backup", {
    LocalSettings: { FolderPath: root },
    ...change,
  });
  expect(reply.status).toBeGreaterThanOrEqual(400);
  expect(reply.text).toContain(message);
});

test("restores attachments with their contents", async () => {
  const setup = await setUp();
  const { client, folder } = setup;
  await put(client, "a", 1);
  await until(setup, isShipped);
  await client.send("PUT attachments?id=a&name=note", "hello");
  await until(setup, isShipped);
  await restored(client, {
    DatabaseName: "again",
    BackupLocation: folder,
    DisableOngoingTasks: true,
  });
  const reply = await client.send("GET /databases/again/attachments?id=a&name=note");
  expect(reply.text).toBe("hello");
});

test("retries a failing destination without affecting writers", async () => {
  const setup = await setUp();
  const { client, folder } = setup;
  await put(client, "a", 1);
  await until(setup, isShipped);
  const own = onlyFolder(folder);
  const away = `${own}-away`;
  renameSync(own, away);
  expect((await put(client, "a", 2)).status).toBe(201);
  const failed = await until(setup, (status) => status["Error"] !== null);
  expect(JSON.stringify(failed["Error"])).toContain("ENOENT");
  expect((failed["Continuous"] as Json)["WaitingBytes"]).toBeGreaterThan(0);
  expect((await put(client, "a", 3)).status).toBe(201);
  renameSync(away, own);
  await until(setup, (status) => status["Error"] === null && isShipped(status));
  expect(generations(folder)).toHaveLength(1);
  await restored(client, {
    DatabaseName: "again",
    BackupLocation: folder,
    DisableOngoingTasks: true,
  });
  expect(await valueIn(client, "again", "a")).toBe(3);
}, 30_000);

test("a full disk fails the backup but not the writers, leaves no partial files, and resumes when space is free", async () => {
  const client = await startEndpointClient([
    "--RunInMemory=false",
    `--DataDir=${newFolder("data")}`,
  ]);
  const database = (await client.server.running.services.databases.find("db")) as Database;
  const folder = newFolder("backup");
  const definition = {
    Continuous: { IntervalInSec: 3600 },
    LocalSettings: { FolderPath: folder },
  };
  const { files } = nodeEnvironment();
  let isFull = false;
  const full: FileSystem = Object.assign(Object.create(files) as FileSystem, {
    open: async (...args: Parameters<FileSystem["open"]>) => {
      const handle = await files.open(...args);
      if (!isFull) return handle;
      const write = async () => {
        throw Object.assign(new Error("no space"), { code: "ENOSPC", syscall: "write" });
      };
      return Object.assign(Object.create(handle) as typeof handle, {
        write,
        sync: () => handle.sync(),
        close: () => handle.close(),
      });
    },
  });
  const reports: string[] = [];
  const host = {
    report: (line: string) => reports.push(line),
    nowMs: () => Date.now(),
    ended: () => undefined,
  };
  const task = periodicBackup(definition, 1, new Date());
  const backup = new ContinuousBackup(host, database, task, {
    place: new FolderStorage(full, folder),
    key: null,
  });
  await put(client, "a", 1);
  await backup.ship();
  const before = readdirSync(onlyFolder(folder));
  isFull = true;
  for (let value = 2; value < 5; value++) {
    expect((await put(client, "a", value)).status).toBe(201);
    await backup.ship();
  }
  expect(JSON.stringify(backup.status()["Error"])).toContain("The disk is full");
  expect(readdirSync(onlyFolder(folder))).toEqual(before);
  expect(reports).toHaveLength(1);
  isFull = false;
  await backup.ship();
  expect(backup.status()).toMatchObject({ Error: null, Continuous: { WaitingBytes: 0 } });
  expect(reports.at(-1)).toContain("has resumed");
  await restored(client, { DatabaseName: "again", BackupLocation: folder });
  expect(await valueIn(client, "again", "a")).toBe(4);
  backup.close();
});

test("commits during a round are left to the next one, so a round always ends", async () => {
  const client = await startEndpointClient([
    "--RunInMemory=false",
    `--DataDir=${newFolder("data")}`,
  ]);
  const database = (await client.server.running.services.databases.find("db")) as Database;
  const folder = newFolder("backup");
  const definition = {
    Continuous: { IntervalInSec: 3600 },
    LocalSettings: { FolderPath: folder },
  };
  const { files } = nodeEnvironment();
  let value = 0;
  // A write is committed before each new file is complete.
  const busy: FileSystem = Object.assign(Object.create(files) as FileSystem, {
    open: async (...args: Parameters<FileSystem["open"]>) => {
      if (value > 0) await put(client, "a", ++value);
      return await files.open(...args);
    },
  });
  const host = { report: () => undefined, nowMs: () => Date.now(), ended: () => undefined };
  const backup = new ContinuousBackup(host, database, periodicBackup(definition, 1, new Date()), {
    place: new FolderStorage(busy, folder),
    key: null,
  });
  await backup.ship();
  await put(client, "a", ++value);
  const filesBefore = readdirSync(onlyFolder(folder)).length;
  await backup.ship();
  expect(readdirSync(onlyFolder(folder)).length).toBe(filesBefore + 1);
  const { WaitingBytes, BehindInSec } = backup.status()["Continuous"] as Json;
  expect(WaitingBytes).toBeGreaterThan(0);
  expect(BehindInSec).toBeLessThan(60);
  await backup.finish();
  value = 0;
  await restored(client, { DatabaseName: "again", BackupLocation: folder });
  expect(await valueIn(client, "again", "a")).toBeGreaterThan(1);
});

test("creates a new base in time, beside the continuation of the old one, which is retained as configured", async () => {
  const client = await startEndpointClient([
    "--RunInMemory=false",
    `--DataDir=${newFolder("data")}`,
  ]);
  const database = (await client.server.running.services.databases.find("db")) as Database;
  const folder = newFolder("backup");
  const definition = {
    Continuous: { IntervalInSec: 3600, NewBaseAfter: "00:10:00" },
    LocalSettings: { FolderPath: folder },
    RetentionPolicy: { MinimumBackupAgeToKeep: "1.00:00:00" },
  };
  const task = periodicBackup(definition, 1, new Date());
  let nowMs = Date.now();
  const reports: string[] = [];
  const host = {
    report: (line: string) => reports.push(line),
    nowMs: () => nowMs,
    ended: () => undefined,
  };
  const backup = new ContinuousBackup(host, database, task, {
    place: new FolderStorage(nodeEnvironment().files, folder),
    key: null,
  });
  const passTo = async (minutes: number, value: number): Promise<void> => {
    nowMs += minutes * 60_000;
    await put(client, "a", value);
    await backup.ship();
    for (let i = 0; i < 200 && (backup.status()["Continuous"] as Json)["NewBase"]; i++) {
      await sleep(10);
    }
  };
  await passTo(0, 1);
  await passTo(5, 2);
  expect(generations(folder)).toHaveLength(1);
  await passTo(6, 3);
  expect(generations(folder)).toHaveLength(2);
  await passTo(1, 4);
  await passTo(1, 5);
  expect(generations(folder)).toHaveLength(2);
  const [first, second] = generations(folder).map((name) => join(folder, name)) as [string, string];
  // The first base covers all commits until the second one existed.
  const bodies = { DisableOngoingTasks: true };
  await restored(client, { ...bodies, DatabaseName: "one", BackupLocation: first });
  expect(await valueIn(client, "one", "a")).toBe(3);
  await restored(client, { ...bodies, DatabaseName: "two", BackupLocation: second });
  expect(await valueIn(client, "two", "a")).toBe(5);
  // Its points in time expire when the second one has existed for a day.
  await passTo(23 * 60, 6);
  expect(generations(folder)).toHaveLength(3);
  await passTo(2 * 60, 7);
  expect(generations(folder).map((name) => join(folder, name))).not.toContain(first);
  expect(generations(folder)).toHaveLength(3);
  await restored(client, { ...bodies, DatabaseName: "three", BackupLocation: folder });
  expect(await valueIn(client, "three", "a")).toBe(7);
  expect(reports).toEqual([]);
  backup.close();
});

test("reports a flipped bit, a truncation, a missing file, and an outdated last file by name", async () => {
  const setup = await setUp();
  const { client, folder } = setup;
  for (let value = 1; value <= 3; value++) {
    await put(client, "a", value);
    await until(setup, isShipped);
  }
  await client.send(`POST admin/tasks/state?key=${setup.taskId}&type=Backup&disable=true`);
  const own = onlyFolder(folder);
  const frames = readdirSync(own)
    .filter((name) => name.endsWith("frames"))
    .sort();
  expect(frames.length).toBeGreaterThanOrEqual(2);
  let number = 0;
  const attempt = async (body: Json = {}) => {
    const DatabaseName = `damaged-${++number}`;
    const state = await restored(client, { DatabaseName, BackupLocation: folder, ...body });
    return JSON.stringify(state);
  };
  const last = join(own, frames.at(-1) as string);
  const whole = readFileSync(last);
  for (const at of [3, whole.length - 100, whole.length - 5]) {
    const flipped = Buffer.from(whole);
    flipped[at] = (flipped[at] as number) ^ 1;
    writeFileSync(last, flipped);
    const text = await attempt();
    expect(text).toContain("Faulted");
    expect(text).toContain(frames.at(-1));
  }
  writeFileSync(last, whole.subarray(0, whole.length - 8));
  expect(await attempt()).toContain(frames.at(-1));
  rmSync(last);
  expect(await attempt()).toContain("the last one, is missing");
  writeFileSync(last, whole);
  const first = join(own, frames[0] as string);
  const kept = readFileSync(first);
  rmSync(first);
  expect(await attempt()).toContain("is missing before it");
  writeFileSync(first, kept);
  expect(await attempt()).toContain("Completed");
  expect(statSync(last).size).toBe(whole.length);
}, 30_000);

test("resumes in the same files after a restart, and writes pending data on shutdown", async () => {
  const data = newFolder("data");
  const flags = ["--RunInMemory=false", `--DataDir=${data}`];
  const client = await startEndpointClient(flags);
  const folder = newFolder("backup");
  await client.send("POST admin/periodic-backup", {
    Continuous: { IntervalInSec: 600 },
    LocalSettings: { FolderPath: folder },
  });
  await expect.poll(() => hasBase(folder), { timeout: 10_000 }).toBe(true);
  await put(client, "a", 7);
  await client.server.running.stop();
  const other = await startEndpointClient([
    "--RunInMemory=false",
    `--DataDir=${newFolder("data")}`,
  ]);
  const body = { DatabaseName: "again", BackupLocation: folder, DisableOngoingTasks: true };
  expect(await restored(other, body)).toMatchObject({ Status: "Completed" });
  expect(await valueIn(other, "again", "a")).toBe(7);
  const second = await startTestServer({ unsecured: true, flags });
  const before = readdirSync(onlyFolder(folder)).length;
  await second.request("/databases/db/docs?id=a", { method: "PUT", body: '{"value":8}' });
  await sleep(500);
  await second.running.stop();
  expect(generations(folder)).toHaveLength(1);
  expect(readdirSync(onlyFolder(folder)).length).toBeGreaterThan(before);
  await restored(other, { ...body, DatabaseName: "later" });
  expect(await valueIn(other, "later", "a")).toBe(8);
});

function hasBase(folder: string): boolean {
  try {
    return readdirSync(onlyFolder(folder)).some((name) => name.endsWith("base"));
  } catch {
    return false;
  }
}

test("the task is listed with its progress, and cannot run on demand", async () => {
  const setup = await setUp();
  const { client, taskId } = setup;
  await put(client, "a", 1);
  await until(setup, isShipped);
  const { OngoingTasks } = (await client.json("GET tasks")) as { OngoingTasks: Json[] };
  expect(OngoingTasks[0]).toMatchObject({
    TaskName: "Continuous backup to Local",
    LastFullBackup: expect.any(String),
    LastIncrementalBackup: expect.any(String),
    NextBackup: null,
    Error: null,
  });
  const reply = await client.send(`POST admin/backup/database?taskId=${taskId}`);
  expect(reply.text).toContain("which is always running");
});
