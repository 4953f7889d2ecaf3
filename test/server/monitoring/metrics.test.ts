/** All of `/metrics`, parsed strictly, from a server with data of every type. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import { parsePrometheus } from "../../support/prometheus-text.ts";
import {
  requestHttp2,
  startTestServer,
  stopTestServers,
  type TestServer,
  tlsOptions,
} from "../../support/start-test-server.ts";

/** Its name contains characters that must be escaped in a label. */
const oddIndex = 'Auto/Odd"\\ones/ByName';
const root = mkdtempSync(join(tmpdir(), "jackdaw-metrics-"));
let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    databases: [{ name: "mine" }],
    flags: [
      "--RunInMemory=false",
      `--DataDir=${join(root, "data")}`,
      "--Query.MaxWorkInMillions=1",
    ],
  });
});
afterAll(async () => {
  await stopTestServers();
  rmSync(root, { recursive: true, force: true });
});

const send = async (method: string, path: string, body?: object) => {
  const text = body === undefined ? {} : { body: JSON.stringify(body) };
  return await server.request(path, { method, ...text });
};

async function scrape() {
  const { status, text } = await server.request("/admin/monitoring/v1/prometheus");
  expect(status).toBe(200);
  const families = parsePrometheus(text);
  return (name: string, labels: object = {}) =>
    families
      .get(name)
      ?.samples.filter((one) =>
        Object.entries(labels).every(([key, value]) => one.labels[key] === value),
      )
      .map(({ value }) => value);
}

/** Other work may share the machine. */
const soon = { timeout: 10_000 };

test("all lines follow the exposition format, for any names", async () => {
  await send("PUT", "/databases/mine/docs?id=users/1", { Name: "Ann" });
  const Document = { Name: "Cid", "@metadata": { "@collection": 'Odd"\\ones' } };
  await send("PUT", "/databases/mine/docs?id=odd/1", Document);
  const Query = "from 'Odd\"\\\\ones' where Name = 'Cid'";
  expect((await send("POST", "/databases/mine/queries", { Query })).json).toMatchObject({
    IndexName: oddIndex,
    TotalResults: 1,
  });
  const of = await scrape();
  expect(of("jackdaw_documents", { database: "mine" })).toEqual([2]);
  expect(of("jackdaw_registered_certificate_days_left")?.length).toBeGreaterThan(0);
  expect(of("jackdaw_limits_hit_total")).toEqual([0, 0, 0, 0, 0]);
  const [behind] = of("jackdaw_index_behind_etags", { index: oddIndex }) ?? [];
  expect(behind).toBeGreaterThanOrEqual(0);
});

test("certificates are listed by thumbprint, for operators only", async () => {
  const user = await server.client({ permissions: { mine: "Read" } });
  const { text } = await server.request("/metrics", {}, user);
  const families = parsePrometheus(text);
  expect(families.get("jackdaw_registered_certificates_days_left")?.samples).toHaveLength(1);
  expect(families.has("jackdaw_registered_certificate_days_left")).toBe(false);
  expect(text).not.toContain("thumbprint");
});

test("connections are counted by protocol", async () => {
  const session = server.session(server.admin);
  await requestHttp2(session, "/build/version");
  const socket = new WebSocket(
    `${server.url.replace(/^http/, "ws")}/databases/mine/changes`,
    tlsOptions(server.authority, server.admin),
  );
  await new Promise((resolve) => socket.once("open", resolve));
  const of = await scrape();
  const types = (kind: string) => of("jackdaw_connections", { kind });
  expect(["http2", "websocket", "tcp"].map(types)).toEqual([[1], [1], [0]]);
  expect(types("http1")?.[0]).toBeGreaterThanOrEqual(1);
  socket.close();
  session.close();
  await expect
    .poll(async () => {
      const now = await scrape();
      return [
        now("jackdaw_connections", { kind: "http2" }),
        now("jackdaw_connections", { kind: "websocket" }),
      ];
    }, soon)
    .toEqual([[0], [0]]);
});

test("an index that fails on documents has its errors counted, and a paused one lags", async () => {
  const Maps = ["map('@all_docs', d => { throw 'no'; })"];
  await send("PUT", "/databases/mine/admin/indexes", { Indexes: [{ Name: "Fails", Maps }] });
  await expect
    .poll(async () => (await scrape())("jackdaw_index_errors_total", { index: "Fails" })?.[0], soon)
    .toBeGreaterThan(0);
  await send("DELETE", "/databases/mine/indexes?name=Fails");
  await send("POST", "/databases/mine/admin/indexes/stop");
  const Document = { Name: "Bob", "@metadata": { "@collection": 'Odd"\\ones' } };
  await send("PUT", "/databases/mine/docs?id=odd/2", Document);
  const labels = { index: oddIndex };
  const before = await scrape();
  expect(before("jackdaw_index_behind_etags", labels)?.[0]).toBeGreaterThan(0);
  await expect
    .poll(async () => (await scrape())("jackdaw_index_behind_seconds", labels)?.[0], soon)
    .toBeGreaterThanOrEqual(0.05);
  await send("POST", "/databases/mine/admin/indexes/start");
  await expect
    .poll(async () => (await scrape())("jackdaw_index_behind_seconds", labels), soon)
    .toEqual([0]);
});

test("record lookups are counted as hits or misses", async () => {
  const before = (await scrape())("jackdaw_record_lookups_total", { result: "hit" })?.[0] ?? 0;
  for (let i = 0; i < 20; i++) await send("GET", "/databases/mine/docs?id=users/1");
  const after = (await scrape())("jackdaw_record_lookups_total", { result: "hit" })?.[0] ?? 0;
  expect(after - before).toBeGreaterThanOrEqual(20);
});

test("a request rejected by a limit is counted for that limit", async () => {
  const many = Array.from({ length: 400 }, (_, n) => `regex(Name, '(a|b)*${n}.*c{1,9}')`);
  for (let i = 0; i < 1500; i += 500) {
    const Commands = Array.from({ length: 500 }, (_, n) => ({
      Type: "PUT",
      Id: `long/${i + n}`,
      Document: { Name: `${"ab".repeat(40)}${i + n}` },
    }));
    await send("POST", "/databases/mine/bulk_docs", { Commands });
  }
  const Query = `from @all_docs where ${many.join(" or ")}`;
  const { status, json } = await send("POST", "/databases/mine/queries", {
    Query,
    WaitForNonStaleResults: true,
  });
  expect([status, json]).toMatchObject([400, { Message: /million steps of work/ }]);
  const of = await scrape();
  expect(of("jackdaw_limits_hit_total", { limit: "query-work" })).toEqual([1]);
});

test("backups report their age and failures", async () => {
  const folder = join(root, "backups");
  const task = await send("POST", "/databases/mine/admin/periodic-backup", {
    FullBackupFrequency: "0 0 1 1 *",
    LocalSettings: { FolderPath: folder },
  });
  const { TaskId } = task.json as { TaskId: number };
  const labels = { database: "mine", task: String(TaskId) };
  expect((await scrape())("jackdaw_backup_age_seconds", labels)).toEqual([]);
  const run = () =>
    send("POST", `/databases/mine/admin/backup/database?taskId=${TaskId}&isFullBackup=true`);
  expect((await run()).status).toBe(200);
  await expect
    .poll(async () => (await scrape())("jackdaw_backup_age_seconds", labels)?.[0], soon)
    .toBeLessThan(30);
  expect((await scrape())("jackdaw_backup_failed", labels)).toEqual([0]);
});

test("a continuous backup reports its lag", async () => {
  const task = await send("POST", "/databases/mine/admin/periodic-backup", {
    Continuous: { IntervalInSec: 1 },
    LocalSettings: { FolderPath: join(root, "continuous") },
  });
  const { TaskId } = task.json as { TaskId: number };
  const labels = { database: "mine", task: String(TaskId) };
  const isCopied = async () => {
    const of = await scrape();
    return [
      of("jackdaw_continuous_backup_lag_seconds", labels),
      of("jackdaw_continuous_backup_waiting_bytes", labels),
    ];
  };
  await expect.poll(isCopied, soon).toEqual([[0], [0]]);
});
