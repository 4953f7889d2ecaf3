/** Metrics of the last day: counts, retention, and no cost for idle databases. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { LatencyCounts } from "../../../engine/base/scheduling/latency-counts.ts";
import { CountedLatency } from "../../../server/monitoring/counted-latency.ts";
import { FigureRing, figureSteps } from "../../../server/monitoring/figure-ring.ts";
import { Figures } from "../../../server/monitoring/figures.ts";
import { isCold } from "../../support/cold.ts";
import {
  startTestServer,
  stopTestServers,
  type TestServer,
} from "../../support/start-test-server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ databases: [{ name: "Shop" }, { name: "idle" }] });
  // The tests take the samples, at simulated times.
  server.running.services.monitoring.figures.stop();
});
afterAll(stopTestServers);

const put = (id: string) =>
  server.request(`/databases/shop/docs?id=${id}`, { method: "PUT", body: "{}" });

interface Reply {
  readonly StepInMs: number;
  readonly From: string;
  readonly Columns: Readonly<Record<string, readonly (number | null)[]>>;
  readonly Events: readonly { readonly Kind: string; readonly Database: string | null }[];
}

const figuresOf = async (path: string) => (await server.request(path)).json as Reply;
const sum = (values: readonly (number | null)[] = []) =>
  values.reduce<number>((all, one) => all + (one ?? 0), 0);

test("a ring keeps the newest samples, and marks missing ones", () => {
  const ring = new FigureRing({ ms: 1_000, count: 300 });
  ring.add(1_000_000, { A: 1 });
  ring.add(1_001_000, { A: 2, B: 7 });
  ring.add(1_004_000, { A: 5 });
  expect(ring.read(1_000_000, 1_005_000)).toEqual({
    startMs: 1_000_000,
    columns: { A: [1, 2, null, null, 5, null], B: [null, 7, null, null, null, null] },
  });
  for (let at = 5; at < 400; at++) ring.add(1_000_000 + at * 1_000, { A: at });
  const { startMs, columns } = ring.read(0, 1_399_000);
  expect(startMs).toBe(1_100_000);
  expect(columns["A"]).toEqual(Array.from({ length: 300 }, (_, at) => at + 100));
  // A pause longer than the ring clears it.
  ring.add(9_000_000, { A: 1 });
  expect(ring.read(0, 9_000_000).columns["A"]?.filter((one) => one !== null)).toEqual([1]);
});

test("percentiles cover the values since the last read", () => {
  const counts = new LatencyCounts();
  const latency = new CountedLatency(counts);
  for (let at = 0; at < 99; at++) counts.add(0.2);
  counts.add(40);
  const { count, ms } = latency.look([0.5, 0.99, 1]);
  expect(count).toBe(100);
  expect(ms[0]).toBeGreaterThan(0.1);
  expect(ms[0]).toBeLessThan(0.25);
  expect(ms[1]).toBeLessThanOrEqual(0.25);
  expect(ms[2]).toBe(50);
  expect(latency.look([0.5])).toEqual({ count: 0, ms: [Number.NaN] });
  counts.add(7);
  expect(latency.look([0.5]).ms[0]).toBeGreaterThan(5);
});

// A reopened database has no earlier metrics.
test.skipIf(isCold)(
  "reports requests, changes and written bytes per database, in any spelling of its name",
  async () => {
    await put("a");
    const { figures } = server.running.services.monitoring;
    const nowMs = Date.now();
    figures.tick(nowMs);
    for (let at = 0; at < 20; at++) await put(`b/${at}`);
    await server.request("/databases/SHOP/docs?id=a");
    figures.tick(nowMs + 1_000);
    figures.tick(nowMs + 2_000);
    const database = await server.running.services.databases.find("Shop");
    const read = figures.read(database, 1_000, nowMs - 10_000, nowMs + 3_000);
    expect(sum(read?.columns["Changes"])).toBeGreaterThanOrEqual(20);
    expect(sum(read?.columns["WrittenBytes"])).toBeGreaterThan(1_000);
    expect(sum(read?.columns["Requests"])).toBeGreaterThanOrEqual(20);
    expect(sum(read?.columns["LiveBytes"])).toBeGreaterThan(1_000);
    expect(read?.columns["DeadBytes"]?.some((one) => one !== null)).toBe(true);
    expect(read?.columns["LatencyP99"]?.some((one) => one !== null && one > 0)).toBe(true);
    const all = figures.read(undefined, 1_000, nowMs - 10_000, nowMs + 3_000)?.columns ?? {};
    expect(sum(all["Memory"])).toBeGreaterThan(1024 * 1024);
    expect(sum(all["Changes"])).toBeGreaterThanOrEqual(20);
    // An idle database uses no memory.
    const idle = await server.running.services.databases.find("idle");
    expect(figures.read(idle, 1_000, 0, nowMs + 3_000)).toBeNull();
  },
);

test("samples each step at its own interval", async () => {
  const nowMs = Math.ceil(Date.now() / 60_000) * 60_000;
  const figures = new Figures(
    { opened: () => [], operations: () => server.running.services.operations },
    nowMs,
  );
  for (let at = 1; at <= 120; at++) {
    figures.ended(undefined, at % 2 === 0 ? 200 : 500, 3);
    figures.tick(nowMs + at * 1_000);
  }
  const endMs = nowMs + 120_000;
  const of = (step: number, column: string) =>
    figures
      .read(undefined, step, nowMs, endMs + step)
      ?.columns[column]?.filter((one) => one !== null) ?? [];
  expect(of(1_000, "Requests")).toEqual(Array.from({ length: 120 }, () => 1));
  expect(of(10_000, "Requests")).toHaveLength(12);
  expect(of(60_000, "Requests")).toEqual([1, 1]);
  expect(of(60_000, "Failed")).toEqual([0.5, 0.5]);
  expect(figureSteps.map(({ ms, count }) => ms * count)).toEqual([300_000, 3_600_000, 86_400_000]);
});

test("the routes return samples and events", async () => {
  await server.request("/databases/Shop/queries", {
    method: "PATCH",
    body: JSON.stringify({ Query: { Query: "from @all_docs update { this.A = 1 }" } }),
  });
  await server.request("/databases/Shop/admin/indexes", {
    method: "PUT",
    body: JSON.stringify({
      Indexes: [{ Name: "All", Maps: ["from d in docs select new { d.A }"] }],
    }),
  });
  const { figures } = server.running.services.monitoring;
  figures.tick(Date.now());
  const one = await figuresOf("/databases/Shop/metrics/history?range=1h");
  expect(one.StepInMs).toBe(10_000);
  expect(one.Events.map(({ Kind }) => Kind)).toEqual(
    expect.arrayContaining(["start", "UpdateByQuery", "IndexDeploy"]),
  );
  expect((await figuresOf("/admin/metrics/history")).StepInMs).toBe(1_000);
  const columns = async () => {
    figures.tick(Date.now());
    return Object.keys((await figuresOf("/admin/metrics/history")).Columns);
  };
  // The second of a sample must have passed.
  await expect.poll(columns).toEqual(expect.arrayContaining(["Requests", "FsyncP99", "Memory"]));
  const later = await figuresOf(
    `/admin/metrics/history?since=${new Date(Date.now() + 1e6).toISOString()}`,
  );
  expect(later.Events).toEqual([]);
  // Events of other databases are not returned.
  const other = await figuresOf("/databases/idle/metrics/history");
  expect(other.Events.map(({ Database }) => Database)).toEqual([null]);
  expect((await server.request("/admin/metrics/history?range=1y")).status).toBe(400);
  expect((await server.request("/admin/metrics/history?since=noon")).status).toBe(400);
});

test("reports the last use of a certificate and its open connections", async () => {
  const pair = await server.client({ clearance: "Operator" }, "a user");
  const session = server.session(pair);
  await new Promise((resolve) => session.once("connect", resolve));
  const usage = async () =>
    (await server.request("/admin/certificates/usage")).json as {
      Results: { Thumbprint: string; OpenConnections: number; LastUsed: string }[];
    };
  const { certificates } = server.running.services;
  const thumbprint = certificates.list().find(({ Name }) => Name === "a user")?.Thumbprint;
  const own = async () =>
    (await usage()).Results.find(({ Thumbprint }) => Thumbprint === thumbprint);
  expect(await own()).toMatchObject({ OpenConnections: 1 });
  session.close();
  await new Promise((resolve) => session.once("close", resolve));
  await expect.poll(own).toMatchObject({ OpenConnections: 0 });
  expect(Date.now() - Date.parse((await own())?.LastUsed ?? "")).toBeLessThan(60_000);
});
