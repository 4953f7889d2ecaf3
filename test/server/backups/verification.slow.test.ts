/** Verification of backups: comparisons, and detection of changed files and databases. */
import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type EndpointClient, startEndpointClient } from "../../support/endpoint-client.ts";
import { stopTestServers } from "../../support/start-test-server.ts";

type Json = Record<string, unknown>;

const base = realpathSync(mkdtempSync(join(tmpdir(), "jackdaw-verification-")));
let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient(["--RunInMemory=false", `--DataDir=${join(base, "data")}`]);
  await client.send("POST studio/sample-data");
  await client.send("PUT cmpxchg?key=k&index=0", { Object: { a: 1 } });
  await client.send("POST identity/next?name=orders");
}, 60_000);
afterAll(async () => {
  await stopTestServers();
  await rm(base, { recursive: true, force: true });
});

async function backedUp(folder: string): Promise<string> {
  const body = { BackupType: "Backup", LocalSettings: { FolderPath: folder } };
  const { OperationId } = (await client.json("POST admin/backup", body)) as Json;
  const state = await client.ended(`operations/state?id=${OperationId}`);
  const { BackupDirectory } = (state["Result"] as Json)["LocalBackup"] as Json;
  return join(folder, String(BackupDirectory));
}

async function verified(body: Json): Promise<Json> {
  const reply = await client.send("POST /admin/backups/verify", body);
  if (reply.status !== 200) return reply.json as Json;
  return await client.ended(`/operations/state?id=${(reply.json as Json)["OperationId"]}`);
}

const verificationOf = (state: Json) => (state["Result"] as Json)["Verification"] as Json;

test("a complete backup is valid, equal to its database, and verification leaves no files", async () => {
  const folder = await backedUp(join(base, "one"));
  const state = await verified({ BackupLocation: folder, CompareWith: "db" });
  expect(state, JSON.stringify(state)).toMatchObject({ Status: "Completed" });
  expect(verificationOf(state)).toMatchObject({
    IsValid: true,
    Kind: "Backup",
    Problems: [],
    Counts: { Documents: 1059 },
    Expected: { Documents: 1059 },
    Compared: { Database: "db", IsEqual: true, Differences: [] },
  });
  expect(await client.json("GET /databases?namesOnly=true")).toEqual({ Databases: ["db"] });
  expect(readdirSync(join(base, "data", "Databases"))).toEqual(["db"]);
});

test("reports differences from the database by type", async () => {
  const folder = await backedUp(join(base, "two"));
  await client.send("PUT docs?id=new", { a: 1 });
  await client.send("PUT cmpxchg?key=k2&index=0", { Object: { a: 2 } });
  const state = await verified({ BackupLocation: folder, CompareWith: "db" });
  expect(verificationOf(state)).toMatchObject({
    IsValid: true,
    Compared: {
      IsEqual: false,
      Differences: [
        { Kind: "Documents", Backup: 1059, Database: 1060 },
        { Kind: "CompareExchange", Backup: 78, Database: 79 },
      ],
    },
  });
});

test("detects a replaced file, even if it can be restored", async () => {
  const folder = await backedUp(join(base, "three"));
  const [name] = readdirSync(folder).filter((one) => one.endsWith("-backup")) as [string];
  const path = join(folder, name);
  const text = gunzipSync(readFileSync(path)).toString("latin1");
  const id = /"Name":"([A-Z])/.exec(text);
  writeFileSync(path, gzipSync(Buffer.from(text.replace(String(id?.[0]), '"Name":"_'), "latin1")));
  const state = await verified({ BackupLocation: folder, CompareWith: "db" });
  expect(verificationOf(state)).toMatchObject({
    IsValid: false,
    Problems: [expect.stringContaining(name)],
    Compared: { IsEqual: false, Differences: [{ Kind: "Documents" }] },
  });
});

test("a damaged file fails the verification, which leaves no files", async () => {
  const folder = await backedUp(join(base, "four"));
  const [name] = readdirSync(folder).filter((one) => one.endsWith("-backup")) as [string];
  const path = join(folder, name);
  writeFileSync(path, readFileSync(path).subarray(0, -100));
  expect(await verified({ BackupLocation: folder })).toMatchObject({ Status: "Faulted" });
  expect(await client.json("GET /databases?namesOnly=true")).toEqual({ Databases: ["db"] });
});

test("compares a continuous backup with its last file and with the database", async () => {
  const folder = join(base, "continuous");
  const { TaskId } = (await client.json("POST admin/periodic-backup", {
    Continuous: { IntervalInSec: 1 },
    LocalSettings: { FolderPath: folder },
  })) as Json;
  for (let i = 0; i < 400; i++) {
    const { Status } = (await client.json(
      `GET /periodic-backup/status?name=db&taskId=${TaskId}`,
    )) as { Status: Json | null };
    if ((Status?.["Continuous"] as Json | undefined)?.["WaitingBytes"] === 0) break;
    await sleep(25);
  }
  const state = await verified({ BackupLocation: folder, CompareWith: "db" });
  expect(state, JSON.stringify(state)).toMatchObject({ Status: "Completed" });
  expect(verificationOf(state)).toMatchObject({
    IsValid: true,
    Kind: "Continuous",
    Problems: [],
    Expected: { Documents: 1060, Etag: expect.any(Number) },
    Compared: { IsEqual: true },
  });
  await client.send(`DELETE admin/tasks?id=${TaskId}&type=Backup`);
  const [own] = readdirSync(folder) as [string];
  const [file] = readdirSync(join(folder, own)).filter((name) => name.endsWith("base")) as [string];
  appendFileSync(join(folder, own, file), "x");
  const damaged = await verified({ BackupLocation: folder });
  expect(damaged).toMatchObject({ Status: "Faulted" });
  expect(JSON.stringify(damaged)).toContain(file);
});

test("does not compare with a missing database", async () => {
  const state = await verified({ BackupLocation: base, CompareWith: "nobody" });
  expect(JSON.stringify(state)).toContain("database 'nobody' to compare with does not exist");
});

test("restores and counts a backup whose file list is missing", async () => {
  const folder = await backedUp(join(base, "five"));
  const [sums] = readdirSync(folder).filter((one) => one.endsWith(".sums.json")) as [string];
  renameSync(join(folder, sums), join(base, "sums.json"));
  const state = await verified({ BackupLocation: folder });
  expect(verificationOf(state)).toMatchObject({ IsValid: true, Expected: null, Compared: null });
});
