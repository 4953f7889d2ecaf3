/** The backup routes: definitions as tasks, their errors, and access rights. */
import { mkdtempSync, realpathSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { startTestServer, stopTestServers } from "../../../support/start-test-server.ts";

type Json = Record<string, unknown>;

const base = realpathSync(mkdtempSync(join(tmpdir(), "jackdaw-backups-")));
const definition = {
  Name: "nightly",
  BackupType: "Backup",
  FullBackupFrequency: "0 2 1 1 *",
  LocalSettings: { FolderPath: join(base, "nightly") },
};
let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient([`--Backup.LocalRootPath=${base}`]);
});
afterAll(async () => {
  await stopTestServers();
  await rm(base, { recursive: true, force: true });
});

test("a definition is a task: listed, found, run, disabled, deleted", async () => {
  const added = (await client.json("POST admin/periodic-backup", definition)) as Json;
  const id = Number(added["TaskId"]);
  expect(added).toEqual({ RaftCommandIndex: id, TaskId: id });
  const { OngoingTasks } = (await client.json("GET tasks")) as { OngoingTasks: Json[] };
  expect(OngoingTasks).toMatchObject([
    {
      TaskId: id,
      TaskType: "Backup",
      ResponsibleNode: { NodeTag: "A" },
      TaskState: "Enabled",
      BackupDestinations: ["Local"],
      LastFullBackup: null,
      NextBackup: { IsFull: true, OriginalBackupTime: null },
      FullBackupFrequency: "0 2 1 1 *",
    },
  ]);
  const run = (await client.json(`POST admin/backup/database?taskId=${id}`)) as Json;
  expect(run).toMatchObject({ ResponsibleNode: "A" });
  for (;;) {
    const { json, text } = await client.send(`GET operations/state?id=${run["OperationId"]}`);
    const state = json as Json;
    if (state["Status"] === "Completed") {
      // A rate is a double, and RavenDB writes it as one.
      expect(text).toContain('"BytesPutsPerSec":0.0,');
      break;
    }
    expect(state["Status"]).toBe("InProgress");
    await sleep(5);
  }
  expect(await client.json(`GET /periodic-backup/status?name=db&taskId=${id}`)).toMatchObject({
    IsSharded: false,
    Status: { TaskId: id, IsFull: true, NodeTag: "A", LastOperationId: run["OperationId"] },
  });
  const disabled = `POST admin/tasks/state?key=${id}&type=Backup&disable=true`;
  expect(await client.json(disabled)).toMatchObject({ TaskId: id });
  const task = (await client.json(`GET task?key=${id}&type=Backup`)) as Json;
  expect(Object.keys(task).slice(0, 3)).toEqual(["@metadata", "TaskId", "TaskType"]);
  expect(task).toMatchObject({
    TaskState: "Disabled",
    ResponsibleNode: { NodeTag: null, NodeUrl: null },
    LastExecutingNodeTag: "A",
    LastFullBackup: expect.stringContaining("T"),
    NextBackup: null,
  });
  expect(await client.json(`GET /periodic-backup?name=db&taskId=${id}`)).toMatchObject({
    Name: "nightly",
    Disabled: true,
  });
  const record = (await client.json("GET admin/record")) as Json;
  expect(record["PeriodicBackups"]).toMatchObject([{ Name: "nightly" }]);
  expect((await client.send(`DELETE admin/tasks?id=${id}&type=Backup`)).status).toBe(200);
  expect((await client.send(`GET task?key=${id}&type=Backup`)).status).toBe(404);
  expect((await client.send("GET task?taskName=nightly&type=Backup")).status).toBe(404);
});

test.each([
  [
    "GET /periodic-backup?name=db&taskId=99",
    undefined,
    "Periodic backup task ID: 99 doesn't exist",
  ],
  ["GET /periodic-backup?name=db", undefined, "Query string taskId is mandatory"],
  ["GET /periodic-backup?name=none&taskId=1", undefined, "Database 'none' does not exist"],
  ["POST admin/backup", { BackupType: "Backup" }, "target no destinations"],
  ["POST admin/backup", { LocalSettings: { FolderPath: "/proc/no" } }, "must be within"],
  ["POST admin/backup", { LocalSettings: { FolderPath: "no" } }, "must be an absolute path"],
  ["POST admin/backup", { S3Settings: { BucketName: "bucket" } }, "AWS Region Name cannot be null"],
  ["POST admin/backup", "[]", "object"],
  ["POST admin/periodic-backup", { ...definition, FullBackupFrequency: "x" }, "too few parameters"],
  ["POST admin/backup/database?taskId=99", undefined, "no backup task"],
  ["POST /admin/restore/points?type=Nope", {}, "was not recognized as a valid type"],
  ["POST /admin/restore/points?type=S3", {}, "BucketName of S3Settings is missing"],
  ["POST /admin/restore/points?type=Azure", {}, "Restore from a folder or from S3"],
  ["POST /admin/restore/points", {}, "Value cannot be null. (Parameter 'path')"],
  ["POST /admin/restore/points", { FolderPath: join(base, "none") }, "doesn't exist"],
  ["POST /admin/restore/points", { FolderPath: base }, "Couldn't locate any backup files."],
  ["POST /admin/restore/points", { FolderPath: "/etc" }, "must be within"],
])("%s %j is rejected", async (what, body, message) => {
  const reply = await client.send(what, body);
  expect(reply.status).toBeGreaterThanOrEqual(400);
  expect(reply.text).toContain(message);
});

test("reports a folder that cannot be created immediately", async () => {
  const free = await startEndpointClient();
  const reply = await free.send("POST admin/backup", { LocalSettings: { FolderPath: "/proc/no" } });
  expect(reply.json).toMatchObject({
    Type: "System.ArgumentException",
    Message: expect.stringContaining("Cannot write to directory path: /proc/no"),
  });
});

test("the configuration lists the permitted destinations", async () => {
  expect(await client.json("GET admin/periodic-backup/config")).toEqual({
    LocalRootPath: base,
    AllowedAwsRegions: null,
    AllowedDestinations: ["Local", "AmazonS3"],
  });
});

test("backups are for administrators of the database, restores for operators", async () => {
  const server = await startTestServer({ databases: [{ name: "db" }, { name: "other" }] });
  const grants = {
    writer: { permissions: { db: "ReadWrite" } },
    admin: { permissions: { db: "Admin" } },
    operator: { clearance: "Operator" },
  } as const;
  const routes: readonly (readonly [string, string, readonly boolean[]])[] = [
    ["POST", "/databases/db/admin/backup", [false, true, true]],
    ["POST", "/databases/db/admin/periodic-backup", [false, true, true]],
    ["POST", "/databases/db/admin/backup/database?taskId=1", [false, true, true]],
    ["GET", "/databases/db/admin/periodic-backup/config", [false, true, true]],
    ["POST", "/databases/other/admin/backup", [false, false, true]],
    ["GET", "/periodic-backup?name=db&taskId=1", [true, true, true]],
    ["GET", "/periodic-backup/status?name=db&taskId=1", [true, true, true]],
    ["GET", "/periodic-backup?name=other&taskId=1", [false, false, true]],
    ["GET", "/periodic-backup/status?name=other&taskId=1", [false, false, true]],
    ["POST", "/admin/restore/points", [false, false, true]],
    ["POST", "/admin/restore/database", [false, false, true]],
  ];
  for (const [i, grant] of Object.values(grants).entries()) {
    const pair = await server.client(grant, `caller ${i}`);
    for (const [method, path, allowed] of routes) {
      const body = method === "POST" ? { body: "{}" } : {};
      const { status } = await server.request(path, { method, ...body }, pair);
      expect(status !== 403, `${i} ${path}`).toBe(allowed[i]);
    }
  }
});
