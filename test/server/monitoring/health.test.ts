/**
 * Reasons for not being ready: a full disk, a folder that cannot be written, a failed index; and
 * recovery.
 */
import files, { mkdtemp, rm, writeFile } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Log } from "../../../server/logging/log.ts";
import type { LogEvent } from "../../../server/logging/log-line.ts";
import { Health } from "../../../server/monitoring/health.ts";
import {
  noCertificate,
  startTestServer,
  stopTestServers,
} from "../../support/start-test-server.ts";

/** Simulated free blocks of the file system; null for the real value. */
const disk: { freeBytes: number | null } = { freeBytes: null };
const actual = files.statfs;
const reported = async (path: string) => {
  const found = await actual(path);
  return disk.freeBytes === null ? found : { ...found, bsize: 1, bavail: disk.freeBytes };
};
/** Replaced for all importers. */
function setStatfs(statfs: typeof actual): void {
  files.statfs = statfs;
  syncBuiltinESMExports();
}
setStatfs(reported as typeof actual);
afterAll(() => setStatfs(actual));

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "jackdaw-health-"));
});
afterAll(async () => {
  await stopTestServers();
  await rm(root, { recursive: true, force: true });
});

/** Simulated reason of the cluster; null if it is ready or does not exist. */
const trouble: { cluster: string | null } = { cluster: null };

function withLog(dataFolder: string) {
  const events: LogEvent[] = [];
  const sink = {
    droppedCount: 0,
    write: (event: LogEvent) => void events.push(event),
    close: () => Promise.resolve(),
  };
  let nowMs = 0;
  const host = {
    dataFolder,
    opened: () => [],
    troubles: () => new Map<string, Error>(),
    clusterTrouble: () => trouble.cluster,
  };
  const health = new Health(host, new Log("Info", [sink]), () => nowMs);
  const later = async (ms: number) => {
    nowMs += ms;
    return [...(await health.findings()).keys()];
  };
  return { later, reported: () => events.map(({ message }) => message) };
}

test("a full disk answers 503 over HTTP, and 200 when there is space again", async () => {
  const server = await startTestServer({
    databases: [{ name: "mine" }],
    flags: ["--RunInMemory=false", `--DataDir=${join(root, "data")}`],
  });
  const ready = async () => {
    const { status, text } = await server.request("/readyz", {}, noCertificate);
    return [status, text];
  };
  expect(await ready()).toEqual([200, "ok\n"]);
  disk.freeBytes = 1024;
  await expect.poll(ready, { timeout: 4_000 }).toEqual([503, "not ready\n"]);
  const { text } = await server.request("/metrics");
  expect(text).toContain('jackdaw_ready{check="disk"} 0');
  expect(text).toContain('jackdaw_ready{check="indexes"} 1');
  expect((await server.request("/livez", {}, noCertificate)).status).toBe(200);
  disk.freeBytes = null;
  await expect.poll(ready, { timeout: 4_000 }).toEqual([200, "ok\n"]);
});

test("a full disk is logged once, with its remedy", async () => {
  const { later, reported } = withLog(root);
  expect(await later(0)).toEqual([]);
  disk.freeBytes = 1024;
  expect(await later(500)).toEqual([]); // It checks at most once a second.
  expect(await later(600)).toEqual(["disk"]);
  expect(await later(1_100)).toEqual(["disk"]);
  disk.freeBytes = null;
  expect(await later(1_100)).toEqual([]);
  expect(reported()).toEqual([
    "The server is not ready: disk (the disk is full)",
    "The server is ready again",
  ]);
});

test("the next probe detects an unwritable folder, and its recovery", async () => {
  const folder = join(root, "folder");
  // A file in its place rejects all writes, also those of the superuser.
  await writeFile(folder, "");
  const { later, reported } = withLog(folder);
  expect(await later(0)).toEqual(["disk"]);
  await rm(folder);
  await files.mkdir(folder);
  expect(await later(5_000)).toEqual(["disk"]); // It writes at most once in ten seconds.
  expect(await later(6_000)).toEqual([]);
  expect(await files.readdir(folder)).toEqual([]);
  await rm(folder, { recursive: true });
  expect(await later(11_000)).toEqual(["disk"]);
  expect(reported()[0]).toMatch(
    /^The server is not ready: disk \(the data folder cannot be written: ENOTDIR/,
  );
  expect(reported()[2]).toMatch(/cannot be read: ENOENT/);
});

test("an index that fails on all documents answers 503 until it is deleted", async () => {
  const server = await startTestServer({ databases: [{ name: "mine" }] });
  const send = (method: string, path: string, body: object) =>
    server.request(path, { method, body: JSON.stringify(body) });
  const Commands = Array.from({ length: 150 }, (_, n) => ({
    Type: "PUT",
    Id: `users/${n}`,
    Document: {},
  }));
  await send("POST", "/databases/mine/bulk_docs", { Commands });
  const Maps = ["map('@all_docs', d => { throw 'no'; })"];
  await send("PUT", "/databases/mine/admin/indexes", { Indexes: [{ Name: "Fails", Maps }] });
  const status = async () => (await server.request("/readyz", {}, noCertificate)).status;
  await expect.poll(status, { timeout: 5_000 }).toBe(503);
  expect((await server.request("/metrics")).text).toContain('jackdaw_ready{check="indexes"} 0');
  await server.request("/databases/mine/indexes?name=Fails", { method: "DELETE" });
  await expect.poll(status, { timeout: 5_000 }).toBe(200);
});
