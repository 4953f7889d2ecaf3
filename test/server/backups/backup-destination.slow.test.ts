/** Encrypted backups and backups in S3: creation, restore, failures, and protection of secrets. */
import { randomBytes } from "node:crypto";
import {
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
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { decrypted } from "../../../server/backups/secret-stream.ts";
import { type EndpointClient, startEndpointClient } from "../../support/endpoint-client.ts";
import { realS3, type S3Access, S3Server } from "../../support/s3-server.ts";
import { stopTestServers } from "../../support/start-test-server.ts";

type Json = Record<string, unknown>;

const base = realpathSync(mkdtempSync(join(tmpdir(), "jackdaw-destination-")));
let client: EndpointClient;
let server: S3Server;
let s3: S3Access;
let count = 0;
beforeAll(async () => {
  server = await S3Server.start();
  s3 = realS3() ?? server.access;
  client = await startEndpointClient(["--RunInMemory=false", `--DataDir=${join(base, "data")}`]);
  for (let i = 0; i < 50; i++) await put(`a/${i}`, i);
  await client.send("PUT attachments?id=a/1&name=note", "an attachment");
});
afterAll(async () => {
  await stopTestServers();
  await server.stop();
  await rm(base, { recursive: true, force: true });
});

const put = (id: string, value: number) => client.send(`PUT docs?id=${id}`, { value });
const newKey = () => randomBytes(32).toString("base64");
const encryption = (Key: string) => ({ Key, EncryptionMode: "UseProvidedKey" });
const newFolder = () => join(base, `folder-${++count}`);
const newRemote = () => ({ ...s3, RemoteFolderName: `tests/${Date.now()}-${++count}` });

async function backedUp(body: object): Promise<Json> {
  const reply = await client.send("POST admin/backup", { BackupType: "Backup", ...body });
  expect(reply.status, reply.text).toBe(200);
  return await client.ended(`operations/state?id=${(reply.json as Json)["OperationId"]}`);
}

async function run(taskId: unknown, isFull: boolean): Promise<Json> {
  const path = `POST admin/backup/database?taskId=${taskId}&isFullBackup=${isFull}`;
  const { OperationId } = (await client.json(path)) as Json;
  return await client.ended(`operations/state?id=${OperationId}`);
}

async function task(body: object): Promise<number> {
  const reply = await client.send("POST admin/periodic-backup", body);
  expect(reply.status, reply.text).toBe(200);
  return Number((reply.json as Json)["TaskId"]);
}

/** @returns the state of the operation, or the rejection */
async function requested(path: string, body: object): Promise<Json> {
  const reply = await client.send(`POST ${path}`, body);
  if (reply.status !== 200) return reply.json as Json;
  return await client.ended(`/operations/state?id=${(reply.json as Json)["OperationId"]}`);
}

const restored = (body: object) =>
  requested("/admin/restore/database", { DisableOngoingTasks: true, ...body });

async function valueIn(database: string, id: string): Promise<unknown> {
  const reply = await client.send(`GET /databases/${database}/docs?id=${id}`);
  return ((reply.json as Json)["Results"] as Json[])[0]?.["value"];
}

/** Everything that a client can read about the definitions and the resulting files. */
async function shown(taskId: number): Promise<string> {
  const paths = [
    `/periodic-backup?name=db&taskId=${taskId}`,
    `/periodic-backup/status?name=db&taskId=${taskId}`,
    `task?key=${taskId}&type=Backup`,
    "tasks",
    "/admin/databases?name=db",
    "/databases?name=db",
    "operations",
  ];
  const replies = await Promise.all(paths.map((path) => client.send(`GET ${path}`)));
  const dump = await client.send("POST smuggler/export", {});
  const bytes = dump.body;
  const text = bytes[0] === 0x1f ? gunzipSync(bytes).toString() : bytes.toString();
  return replies.map((reply) => reply.text).join("\n") + text;
}

function onlyFolder(folder: string): string {
  return join(folder, String(readdirSync(folder)[0]));
}

function fileIn(folder: string, end: string): string {
  const name = readdirSync(folder).find((one) => one.endsWith(end));
  return join(folder, String(name));
}

test("restores and verifies an encrypted backup only with its key", async () => {
  const FolderPath = newFolder();
  const Key = newKey();
  const BackupEncryptionSettings = encryption(Key);
  const state = await backedUp({ LocalSettings: { FolderPath }, BackupEncryptionSettings });
  expect(state, JSON.stringify(state)).toMatchObject({ Status: "Completed" });
  const folder = onlyFolder(FolderPath);
  const path = fileIn(folder, ".ravendb-encrypted-full-backup");
  const whole = readFileSync(path);
  const source = decrypted(Buffer.from(Key, "base64"), inOnePiece(whole), "x");
  const parts: Buffer[] = [];
  for await (const part of source) parts.push(part);
  expect(gunzipSync(Buffer.concat(parts)).toString()).toContain('"a/49"');
  const points = await client.send("POST /admin/restore/points", { FolderPath });
  expect(points.text).toContain('"IsEncrypted":true');
  const body = { DatabaseName: "one", BackupLocation: folder };
  expect(await restored({ ...body, BackupEncryptionSettings })).toMatchObject({
    Status: "Completed",
  });
  expect(await valueIn("one", "a/49")).toBe(49);
  const check = { BackupLocation: folder, BackupEncryptionSettings, CompareWith: "db" };
  const verified = JSON.stringify(await requested("/admin/backups/verify", check));
  expect(verified).toContain('"IsValid":true');
  expect(verified).toContain('"IsEqual":true');

  const other = { ...body, DatabaseName: "two" };
  const fails = async (settings: object | undefined, message: string) => {
    const answer = await restored({ ...other, BackupEncryptionSettings: settings });
    const text = JSON.stringify(answer);
    expect(text).toContain(message);
    expect(text).not.toContain(Key);
  };
  await fails(undefined, "is encrypted. Send its key");
  await fails(encryption(newKey()), "the key is wrong");
  await fails(encryption("QUJD"), "must be 32 bytes, but was 3 bytes");
  await fails(encryption("%%%%"), "not a valid Base-64 string");
  await fails({ EncryptionMode: "UseProvidedKey" }, "an encryption key wasn't provided");
  await fails({ Key }, "EncryptionMode is set to None");
  for (const at of [10, 100, whole.length - 1]) {
    const flipped = Buffer.from(whole);
    flipped[at] = (flipped[at] as number) ^ 1;
    writeFileSync(path, flipped);
    await fails(BackupEncryptionSettings, "cannot be decrypted");
  }
  writeFileSync(path, whole.subarray(0, 24));
  await fails(BackupEncryptionSettings, "truncated");
  const plain = path.replace("encrypted-", "");
  writeFileSync(path, whole);
  renameSync(path, plain);
  await fails(BackupEncryptionSettings, "is not encrypted, but a key was sent");
}, 60_000);

async function* inOnePiece(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

test("incremental backups are encrypted, and a new key starts with a full backup", async () => {
  const FolderPath = newFolder();
  const Key = newKey();
  const definition = {
    Name: "secret",
    FullBackupFrequency: "0 2 1 1 *",
    IncrementalBackupFrequency: "0 3 1 1 *",
    LocalSettings: { FolderPath },
  };
  const taskId = await task({ ...definition, BackupEncryptionSettings: encryption(Key) });
  expect(await run(taskId, true)).toMatchObject({ Status: "Completed" });
  await put("a/1", 100);
  expect(await run(taskId, false)).toMatchObject({ Status: "Completed" });
  const folder = onlyFolder(FolderPath);
  fileIn(folder, ".ravendb-encrypted-incremental-backup");
  const text = await shown(taskId);
  expect(text).toContain('"EncryptionMode":"UseProvidedKey"');
  expect(text).toContain('"IsEncrypted":true');
  expect(text).not.toContain(Key);
  const body = { BackupLocation: folder, BackupEncryptionSettings: encryption(Key) };
  await restored({ ...body, DatabaseName: "incremental" });
  expect(await valueIn("incremental", "a/1")).toBe(100);

  // The definition is sent back as returned, and the key is retained.
  const seen = (await client.json(`GET /periodic-backup?name=db&taskId=${taskId}`)) as Json;
  expect(seen["BackupEncryptionSettings"]).toEqual({ Key: null, EncryptionMode: "UseProvidedKey" });
  await task({ ...seen, Name: "renamed" });
  expect(await run(taskId, false)).toMatchObject({ Status: "Completed" });
  expect(readdirSync(FolderPath)).toHaveLength(1);
  const second = newKey();
  await task({ ...seen, BackupEncryptionSettings: encryption(second) });
  expect(await run(taskId, false)).toMatchObject({ Status: "Completed" });
  expect(readdirSync(FolderPath)).toHaveLength(2);
  await task({ ...definition, TaskId: taskId });
  expect(await run(taskId, false)).toMatchObject({ Status: "Completed" });
  expect(readdirSync(FolderPath)).toHaveLength(3);
  const refused = await client.send("POST admin/periodic-backup", {
    ...definition,
    BackupEncryptionSettings: { EncryptionMode: "UseProvidedKey" },
  });
  expect(refused.text).toContain("an encryption key wasn't provided");
}, 60_000);

test("backups in S3: full, incremental, listed, restored, verified", async () => {
  const remote = newRemote();
  const taskId = await task({
    FullBackupFrequency: "0 2 1 1 *",
    IncrementalBackupFrequency: "0 3 1 1 *",
    S3Settings: remote,
  });
  expect(await run(taskId, true)).toMatchObject({ Status: "Completed" });
  await put("a/2", 200);
  expect(await run(taskId, false)).toMatchObject({ Status: "Completed" });
  const text = await shown(taskId);
  expect(text).toContain('"BackupDestinations":["AmazonS3"]');
  expect(text).toContain('"UploadToS3":{"LastFullBackup"');
  expect(text).not.toContain(remote.AwsSecretKey);
  const { List } = (await client.json("POST /admin/restore/points?type=S3", remote)) as {
    List: Json[];
  };
  expect(List).toHaveLength(2);
  const RemoteFolderName = List[0]?.["Location"];
  expect(RemoteFolderName).toContain(remote.RemoteFolderName);
  const body = { Type: "S3", Settings: { ...remote, RemoteFolderName } };
  expect(await restored({ ...body, DatabaseName: "remote" })).toMatchObject({
    Status: "Completed",
  });
  expect(await valueIn("remote", "a/2")).toBe(200);
  const verified = await requested("/admin/backups/verify", { ...body, CompareWith: "remote" });
  expect(JSON.stringify(verified)).toContain('"IsValid":true');
  expect(JSON.stringify(verified)).toContain('"IsEqual":true');
  const once = await backedUp({ S3Settings: newRemote() });
  expect(once).toMatchObject({ Status: "Completed" });
}, 60_000);

test("a secret for S3 is retained for an unchanged destination, and required for another", async () => {
  const remote = newRemote();
  const definition = { FullBackupFrequency: "0 2 1 1 *", S3Settings: remote };
  const taskId = await task(definition);
  const seen = (await client.json(`GET /periodic-backup?name=db&taskId=${taskId}`)) as Json;
  expect(seen["S3Settings"]).toMatchObject({ AwsSecretKey: null, BucketName: remote.BucketName });
  await task({ ...seen, FullBackupFrequency: "0 4 1 1 *" });
  expect(await run(taskId, true)).toMatchObject({ Status: "Completed" });
  const elsewhere = { ...(seen["S3Settings"] as Json), CustomServerUrl: "http://127.0.0.1:9" };
  const refused = await client.send("POST admin/periodic-backup", {
    ...seen,
    S3Settings: elsewhere,
  });
  expect(refused.text).toContain("AWS Secret Key cannot be null or empty");
});

test("a record sent by a client contains no secret, and its tasks report missing values", async () => {
  const remote = newRemote();
  const Key = newKey();
  const created = await client.send("PUT /admin/databases?name=sent", {
    DatabaseName: "sent",
    PeriodicBackups: [
      {
        TaskId: 5,
        Name: "theirs",
        FullBackupFrequency: "0 2 1 1 *",
        S3Settings: remote,
        BackupEncryptionSettings: encryption(Key),
      },
    ],
  });
  expect(created.status).toBe(201);
  const record = (await client.send("GET /admin/databases?name=sent")).text;
  expect(record).toContain('"theirs"');
  expect(record).not.toContain(Key);
  expect(record).not.toContain(remote.AwsSecretKey);
  const reply = await client.send("POST /databases/sent/admin/backup/database?taskId=5");
  expect(reply.text).toContain("The encryption key of the backup task 'theirs' is not known");
});

test.each(["folder", "S3"])(
  "a continuous backup to %s is encrypted, restored to a point in time, and resumed with the key",
  async (kind) => {
    const Key = newKey();
    const FolderPath = newFolder();
    const remote = newRemote();
    const definition = {
      Continuous: { IntervalInSec: 1 },
      ...(kind === "S3" ? { S3Settings: remote } : { LocalSettings: { FolderPath } }),
      BackupEncryptionSettings: encryption(Key),
    };
    const taskId = await task(definition);
    const status = async () => {
      const reply = await client.json(`GET /periodic-backup/status?name=db&taskId=${taskId}`);
      return ((reply as Json)["Status"] ?? {}) as Json;
    };
    const shipped = async () => {
      for (let i = 0; i < 800; i++) {
        if (((await status())["Continuous"] as Json | undefined)?.["WaitingBytes"] === 0) return;
        await sleep(25);
      }
      throw new Error(JSON.stringify(await status()));
    };
    await shipped();
    await put("a/3", 300);
    await sleep(5);
    const PointInTime = new Date().toISOString();
    await sleep(5);
    await put("a/3", 301);
    await shipped();
    const text = await shown(taskId);
    expect(text).not.toContain(Key);
    expect(text).not.toContain(s3.AwsSecretKey);
    const where = kind === "S3" ? { Type: "S3", Settings: remote } : { BackupLocation: FolderPath };
    const body = { ...where, BackupEncryptionSettings: encryption(Key) };
    const before = { ...body, PointInTime, DatabaseName: `before-${kind}` };
    expect(await restored(before)).toMatchObject({ Status: "Completed" });
    expect(await valueIn(`before-${kind}`, "a/3")).toBe(300);
    const newest = { ...body, DatabaseName: `newest-${kind}` };
    expect(await restored(newest)).toMatchObject({ Status: "Completed" });
    expect(await valueIn(`newest-${kind}`, "a/3")).toBe(301);
    const note = await client.send(`GET /databases/newest-${kind}/attachments?id=a/1&name=note`);
    expect(note.text).toBe("an attachment");
    const fails = async (settings: object | undefined, message: string) => {
      const answer = await restored({
        ...body,
        BackupEncryptionSettings: settings,
        DatabaseName: "not-made",
      });
      expect(JSON.stringify(answer)).toContain(message);
    };
    await fails(undefined, "is encrypted. Send its key");
    await fails(encryption(newKey()), "the key is wrong");
    // Another key: a base of its own, beside the one before.
    await task({ ...definition, TaskId: taskId, BackupEncryptionSettings: encryption(newKey()) });
    await shipped();
    await put("a/3", 302);
    await shipped();
    expect(await restored({ ...before, DatabaseName: `again-${kind}` })).toMatchObject({
      Status: "Completed",
    });
    const { FolderName } = await status();
    expect(String(FolderName)).toMatch(/-encrypted-continuous$/);
    await client.send(`POST admin/tasks/state?key=${taskId}&type=Backup&disable=true`);
  },
  60_000,
);
