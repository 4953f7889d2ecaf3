/**
 * Backups restored over HTTP: restored content, rejections, the state after a failure or a crash,
 * and a lost folder.
 */
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { FolderStorage } from "../../../server/backups/folder-storage.ts";
import {
  clientOf,
  type EndpointClient,
  startEndpointClient,
} from "../../support/endpoint-client.ts";
import { startTestServer, stopTestServers } from "../../support/start-test-server.ts";

type Json = Record<string, unknown>;

const base = realpathSync(mkdtempSync(join(tmpdir(), "jackdaw-restores-")));
let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
});
afterAll(async () => {
  await stopTestServers();
  await rm(base, { recursive: true, force: true });
});

/** Creates a one-time backup. @returns the folder of its files. */
async function backedUp(to: EndpointClient, folder: string): Promise<string> {
  const body = { BackupType: "Backup", LocalSettings: { FolderPath: folder } };
  const { OperationId } = (await to.json("POST admin/backup", body)) as Json;
  const state = await to.ended(`operations/state?id=${OperationId}`);
  expect(state["Status"], JSON.stringify(state)).toBe("Completed");
  const result = state["Result"] as Json;
  const { BackupDirectory } = result["LocalBackup"] as Json;
  return join(folder, String(BackupDirectory));
}

async function restoring(to: EndpointClient, body: Json): Promise<Json> {
  const reply = await to.send("POST /admin/restore/database", body);
  if (reply.status !== 200) return reply.json as Json;
  const { OperationId } = reply.json as Json;
  return await to.ended(`/operations/state?id=${OperationId}`);
}

async function names(to: EndpointClient): Promise<unknown> {
  return ((await to.json("GET /databases?namesOnly=true")) as Json)["Databases"];
}

test("a restored database has the content of the backup", async () => {
  await client.send("POST studio/sample-data");
  await client.send("PUT cmpxchg?key=k&index=0", { Object: { a: 1 } });
  await client.send("POST identity/next?name=orders");
  const body = { LocalSettings: { FolderPath: join(base, "p") }, Disabled: false };
  await client.send("POST admin/periodic-backup", { ...body, FullBackupFrequency: "0 2 * * *" });
  const folder = await backedUp(client, join(base, "one"));
  const request = { DatabaseName: "copy", BackupLocation: folder, DisableOngoingTasks: true };
  const state = await restoring(client, request);
  expect(state).toMatchObject({
    Status: "Completed",
    Result: {
      $type: "Raven.Client.ServerWide.Operations.RestoreResult, Raven.Client",
      Documents: { ReadCount: 1059, ErroredCount: 0 },
      Files: { CurrentFileName: null, CurrentFile: 1, FileCount: 1 },
    },
  });
  expect(JSON.stringify(state)).not.toContain("ERROR");
  const facts = [
    "stats/essential",
    "cmpxchg?key=k",
    "collections/stats",
    "counters?docId=Products%2F1-A",
  ];
  for (const path of facts) {
    const copied = await client.json(`GET /databases/copy/${path}`);
    const { Indexes: _list, ...left } = copied as Json;
    expect(await client.json(`GET ${path}`)).toMatchObject(path.startsWith("cmp") ? {} : left);
  }
  expect(await client.json("POST /databases/copy/identity/next?name=orders")).toEqual({
    NewIdentityValue: 2,
  });
  const record = (await client.json("GET /databases/copy/admin/record")) as Json;
  expect(record).toMatchObject({
    DatabaseState: "Normal",
    PeriodicBackups: [{ Name: "Backup to Local", Disabled: true }],
  });
  const points = (await client.json("POST /admin/restore/points?type=Local", {
    FolderPath: join(base, "one"),
  })) as Json;
  expect(points["List"]).toMatchObject([
    { Location: folder, IsIncremental: false, FilesToRestore: 1, DatabaseName: "db", NodeTag: "A" },
  ]);
});

test("reports how many bytes it has read", async () => {
  const folder = await backedUp(client, join(base, "bytes"));
  const seen: Json[] = [];
  const { operations } = client.server.running.services;
  const stop = operations.listen(({ state }) => {
    if (state.status === "running" && state.progress !== null) seen.push(state.progress);
  });
  let nowMs = performance.now();
  const clock = vi.spyOn(performance, "now").mockImplementation(() => (nowMs += 1000));
  const state = await restoring(client, { DatabaseName: "counted", BackupLocation: folder });
  clock.mockRestore();
  stop();
  expect(state["Status"]).toBe("Completed");
  const { ProcessedBytes, TotalBytes } = seen.at(-1) ?? {};
  expect(TotalBytes).toBeGreaterThan(0);
  expect(ProcessedBytes).toBe(TotalBytes);
  await client.send("DELETE /admin/databases", { DatabaseNames: ["counted"], HardDelete: true });
});

test("changes no existing database", async () => {
  const folder = await backedUp(client, join(base, "two"));
  await client.send("PUT /databases/copy/docs?id=mine", { a: 1 });
  const state = await restoring(client, { DatabaseName: "COPY", BackupLocation: folder });
  expect(state).toMatchObject({
    Status: "Faulted",
    Result: {
      Type: "System.ArgumentException",
      Message: "Cannot restore data to an existing database named COPY",
    },
  });
  expect((await client.send("GET /databases/copy/docs?id=mine")).status).toBe(200);
});

test.each([
  [{ DatabaseName: "x", BackupLocation: "" }, "Backup location can't be null or empty"],
  [{ DatabaseName: "x", BackupLocation: join(base, "none") }, "Backup location doesn't exist"],
  [{ DatabaseName: "x", BackupLocation: "some/folder" }, "must be an absolute path"],
  [{ DatabaseName: "x", BackupLocation: base }, "No files to restore from the backup location"],
  [{ DatabaseName: "a/b", BackupLocation: base }, "The name 'a/b' is not permitted"],
  [{ BackupLocation: base }, "Name cannot be null or empty."],
  [{ Type: "Floppy", DatabaseName: "x", BackupLocation: base }, "Unsupported restore type: Floppy"],
  [{ Type: "Azure", DatabaseName: "x" }, "Restoring from Azure is not supported"],
  [{ Type: "S3", DatabaseName: "x" }, "The BucketName of S3Settings is missing"],
  [{ DatabaseName: "x", BackupLocation: base, EncryptionKey: "k" }, "cannot be encrypted"],
  [{ DatabaseName: "x", BackupLocation: base, DataDirectory: "/x" }, "cannot be chosen"],
])("rejects %j", async (body, message) => {
  expect(JSON.stringify(await restoring(client, body))).toContain(message);
});

test("a damaged backup leaves no database", async () => {
  const folder = await backedUp(client, join(base, "three"));
  const [name = ""] = readdirSync(folder);
  const bytes = readFileSync(join(folder, name));
  const flipped = Buffer.from(bytes);
  flipped.writeUInt8((bytes[bytes.length >> 1] ?? 0) ^ 1, bytes.length >> 1);
  const hostile = Buffer.from('{"BuildVersion":72051,"Docs":[{"@metadata":{"@id":"a"}},7]}');
  const cases = [flipped, bytes.subarray(0, bytes.length - 9), Buffer.from("text"), hostile];
  for (const [i, damaged] of cases.entries()) {
    writeFileSync(join(folder, name), damaged);
    const request = { DatabaseName: `damaged-${i}`, BackupLocation: folder };
    const state = await restoring(client, request);
    expect(state["Status"], `${i}: ${JSON.stringify(state)}`).toBe("Faulted");
  }
  truncateSync(join(folder, name), 0);
  const empty = await restoring(client, { DatabaseName: "damaged-x", BackupLocation: folder });
  expect(empty["Status"]).toBe("Faulted");
  expect(await names(client)).toEqual(["copy", "db"]);
});

test("rejects requests to a database while it is being restored", async () => {
  const { databases } = client.server.running.services;
  await databases.create("half", { DatabaseName: "half", DatabaseState: "RestoreInProgress" });
  const reply = await client.send("GET /databases/half/docs?id=a");
  expect(reply.status).toBe(503);
  expect(reply.json).toMatchObject({ Type: expect.stringContaining("DatabaseRestoringException") });
  const deletion = { DatabaseNames: ["half"], HardDelete: true };
  expect(await client.json("DELETE /admin/databases", deletion)).toMatchObject({
    Type: "System.InvalidOperationException",
    Message: expect.stringContaining("while the restore process is in progress"),
  });
  await databases.delete("half");
});

test("only one backup of a database runs at a time", async () => {
  const body = { LocalSettings: { FolderPath: join(base, "four") } };
  const replies = await Promise.all([1, 2, 3].map(() => client.send("POST admin/backup", body)));
  expect(replies.map(({ status }) => status).sort()).toEqual([200, 400, 400]);
  const refused = replies.find(({ status }) => status === 400)?.json;
  expect(refused).toMatchObject({
    Type: "Raven.Server.Documents.PeriodicBackup.BackupDelayException",
  });
  const created = replies.find(({ status }) => status === 200)?.json as Json;
  await client.ended(`operations/state?id=${created["OperationId"]}`);
  await backedUp(client, join(base, "four"));
});

test("a killed backup leaves no files", async () => {
  const folder = join(base, "stopped");
  const body = { LocalSettings: { FolderPath: folder } };
  let release = (): void => undefined;
  const isKilled = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { write } = FolderStorage.prototype;
  const spy = vi.spyOn(FolderStorage.prototype, "write");
  spy.mockImplementation(async function (this: FolderStorage, name, bytes) {
    await isKilled;
    return write.call(this, name, bytes);
  });
  const { OperationId } = (await client.json("POST admin/backup", body)) as Json;
  await expect.poll(() => spy.mock.calls.length, { timeout: 10_000 }).toBe(1);
  await client.send(`POST operations/kill?id=${OperationId}`);
  release();
  const state = await client.ended(`operations/state?id=${OperationId}`);
  spy.mockRestore();
  expect(state["Status"]).toBe("Canceled");
  await expect.poll(() => readdirSync(folder)).toEqual([]);
});

test("the next start removes the remains of a restore that crashed", async () => {
  const data = join(base, "crashed");
  const flags = [`--DataDir=${data}`, "--RunInMemory=false"];
  const first = await startTestServer({ unsecured: true, flags });
  const { services } = first.running;
  const half = { DatabaseName: "half", CreatedIndex: 4711, DatabaseState: "RestoreInProgress" };
  await services.databases.create("half", half);
  await services.databases.create("other", { DatabaseName: "other", CreatedIndex: 4712 });
  for (const Name of ["half", "other", "never"]) {
    const value = JSON.stringify({ Name, CreatedIndex: 4711 });
    await services.values.put(`server/restoring/${Name}`, value);
  }
  await first.stop();
  const again = await startTestServer({ unsecured: true, flags });
  expect(again.running.services.databases.names()).toEqual(["other"]);
  expect([...again.running.services.values.entries("server/restoring/")]).toEqual([]);
  await again.stop();
});

test("a folder lost under traffic is restored with all writes acknowledged before the backup", async () => {
  const data = join(base, "lost");
  const flags = [`--DataDir=${data}`, "--RunInMemory=false", "--Server.FolderSilenceInSec=1"];
  const to = await startEndpointClient(flags);
  const acknowledged = new Map<string, number>();
  let isWriting = true;
  let next = 0;
  const writer = async (): Promise<void> => {
    while (isWriting) {
      const number = next++;
      const id = `docs/${number % 500}`;
      const reply = await to
        .send(`PUT docs?id=${encodeURIComponent(id)}`, { number })
        .catch(() => null);
      if (reply?.status === 201) acknowledged.set(id, Math.max(number, acknowledged.get(id) ?? -1));
    }
  };
  const writers = [writer(), writer(), writer()];
  await expect.poll(() => acknowledged.size, { timeout: 10_000 }).toBeGreaterThan(100);
  const before = new Map(acknowledged);
  const folder = await backedUp(to, join(base, "safe"));
  const written = next;
  await expect.poll(() => next, { timeout: 10_000 }).toBeGreaterThan(written + 10);
  await rm(join(data, "db"), { recursive: true, force: true });
  const lost = next;
  await expect.poll(() => next, { timeout: 10_000 }).toBeGreaterThan(lost + 10);
  isWriting = false;
  await Promise.all(writers);
  await to.server.stop();
  await rm(data, { recursive: true, force: true });

  const fresh = await startTestServer({ unsecured: true, flags: flags.slice(0, 2) });
  const other = clientOf(fresh);
  const state = await restoring(other, { DatabaseName: "db", BackupLocation: folder });
  expect(state["Status"], JSON.stringify(state)).toBe("Completed");
  expect(before.size).toBeGreaterThan(20);
  for (const [id, number] of before) {
    const reply = (await other.json(`GET /databases/db/docs?id=${encodeURIComponent(id)}`)) as Json;
    const [document] = reply["Results"] as Json[];
    // Writes during the backup may be in it.
    expect(Number(document?.["number"]), id).toBeGreaterThanOrEqual(number);
    expect(Number(document?.["number"]), id).toBeLessThanOrEqual(acknowledged.get(id) ?? -1);
  }
  await fresh.stop();
});
