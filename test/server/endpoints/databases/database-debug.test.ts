/** RavenDB's debug routes of a database. The formats are those of RavenDB 7.2.7's replies. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { isCold } from "../../../support/cold.ts";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { stopTestServers } from "../../../support/start-test-server.ts";

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient(["--RunInMemory=false"]);
});
afterAll(stopTestServers);

const metadata = { DateTime: expect.any(String), WebUrl: expect.any(String), NodeTag: "A" };

test.each([
  ["ai/errors", { NodeTag: "A", ShardNumber: null, Results: [] }],
  ["cdc-sink/errors", { NodeTag: "A", ShardNumber: null, Results: [] }],
  ["cdc-sink/performance", { Results: [] }],
  ["etl/debug/stats", { Results: [] }],
  ["etl/errors", { NodeTag: "A", ShardNumber: null, Results: [] }],
  ["etl/performance", { Results: [] }],
  ["etl/progress", { "@metadata": metadata, Results: [] }],
  ["replication/active-connections", { IncomingConnections: [], OutgoingConnections: [] }],
  ["replication/debug/incoming-last-activity-time", { "@metadata": metadata, Stats: [] }],
  ["replication/debug/incoming-rejection-info", { "@metadata": metadata, Stats: [] }],
  ["replication/debug/outgoing-failures", { "@metadata": metadata, Stats: [] }],
  ["replication/debug/outgoing-reconnect-queue", { "@metadata": metadata, "Queue-Info": [] }],
  ["replication/internal/outgoing/progress", { "@metadata": metadata, Results: [] }],
  ["replication/performance", { Incoming: [], Outgoing: [] }],
  ["replication/progress", { "@metadata": metadata, Results: [] }],
  ["admin/tasks/pull-replication/hub/access?name=x", { Results: [] }],
  ["tcp", { "@metadata": metadata, Results: [] }],
  ["studio-tasks/suggest-conflict-resolution?docId=x", { Document: {}, Metadata: {} }],
  ["admin/debug/cluster/txinfo?from=1&take=5", { "@metadata": metadata, Results: [] }],
])("GET %s is empty", async (path, reply) => {
  expect(await client.json(`GET ${path}`)).toEqual(reply);
});

test.each([
  ["ai", "Ai"],
  ["cdc-sink", "CdcSink"],
  ["etl", "Etl"],
])("named tasks of %s have no errors, whether or not they exist", async (path, Category) => {
  const row = (TaskName: string) => {
    const none = { EtlType: null, EtlSubType: null, ProcessErrors: [], ItemErrors: [] };
    return { TaskName, Category, ...none };
  };
  expect(await client.json(`GET ${path}/errors?name=x&name=`)).toEqual({
    NodeTag: "A",
    ShardNumber: null,
    Results: [row("x"), row("")],
  });
});

test("rejects a position that is not a number", async () => {
  const { status, text } = await client.send("GET admin/debug/cluster/txinfo?from=x");
  expect([status, JSON.parse(text).Message]).toEqual([
    400,
    "Could not parse header 'from' header as long, value was: x",
  ]);
});

test("lists loads of huge documents, newest first", async () => {
  const huge = async () => (await client.json("GET debug/documents/huge")) as { Results: object[] };
  expect(await huge()).toEqual({ "@metadata": metadata, Results: [] });
  const text = Array.from({ length: 1_000_000 }, (_, n) => (n * 7919).toString(36)).join(" ");
  for (const id of ["huge/1", "huge/2"]) await client.send(`PUT docs?id=${id}`, { text });
  await client.send("PUT docs?id=small/1", { text: "small" });
  expect((await huge()).Results).toEqual([]);
  await client.send("GET docs?id=huge/1");
  await client.send("GET docs?id=small/1&id=HUGE/2");
  const row = (Id: string) => ({ Id, Size: expect.any(Number), LastAccess: expect.any(String) });
  const { Results } = await huge();
  expect(Results).toEqual([row("huge/2"), row("huge/1")]);
  const [first] = Results as { Size: number; LastAccess: string }[];
  expect(first?.Size).toBeGreaterThan(5 * 1024 * 1024);
  expect(Math.abs(Date.parse(first?.LastAccess ?? "") - Date.now())).toBeLessThan(60_000);
});

// Counted since the database was opened.
test.skipIf(isCold)("lists patch scripts with their runs", async () => {
  await client.send("PUT docs?id=a/1", { n: 0 });
  const patch = (Script: string) =>
    client.send("PATCH docs?id=a/1", { Patch: { Script, Values: {} } });
  for (const script of ["this.n++", "this.m = 1", "this.n++"]) await patch(script);
  const { ScriptRunners } = (await client.json("GET debug/script-runners")) as {
    ScriptRunners: { CreationTime: string; LastRun: string; Runs: number }[];
  };
  expect(ScriptRunners.map(({ Runs }) => Runs)).toEqual([1, 2]);
  const [, twice] = ScriptRunners;
  expect(twice).toEqual({
    Type: "PatchRequest",
    CreationTime: expect.any(String),
    LastRun: expect.any(String),
    Runs: 2,
    CachedScriptsCount: 1,
  });
  expect((twice?.CreationTime ?? "") < (twice?.LastRun ?? "")).toBe(true);
});

test.skipIf(isCold)("lists commits with their durations", async () => {
  await client.send("PUT docs?id=commit/1", { n: 0 });
  const { PerfMetrics } = (await client.json("GET debug/perf-metrics")) as {
    PerfMetrics: { MetricType: string; Recent: { Duration: number }[] }[];
  };
  expect(PerfMetrics.map(({ MetricType }) => MetricType)).toEqual(["Transaction"]);
  expect(PerfMetrics[0]?.Recent.at(-1)).toEqual({
    Start: expect.any(String),
    Duration: expect.any(Number),
    Type: "Transaction",
  });
});

test("lists the transaction environments of the database, its settings, and its indexes", async () => {
  const places = async (path: string) => {
    const reply = (await client.json(`GET ${path}`)) as { "tx-info": { BasePath: string }[] };
    for (const one of reply["tx-info"]) expect(one).toMatchObject({ Information: [] });
    return reply["tx-info"].map(({ BasePath }) => BasePath.replace(/.*\//, ""));
  };
  await client.send("PUT admin/indexes", {
    Indexes: [{ Name: "ByN", Maps: ["from a in docs.As select new { a.n }"] }],
  });
  expect(await places("admin/debug/txinfo")).toEqual(["db", "System", ":memory:"]);
  expect(await places("/admin/debug/txinfo")).toEqual(["System"]);
});

test("lists collections with their ids, revisions and change vectors", async () => {
  const of = (collection: string) => ({ n: 1, "@metadata": { "@collection": collection } });
  for (const id of ["c/1", "c/2", "c/3"]) await client.send(`PUT docs?id=${id}`, of("Cs"));
  const ids = async (query: string) => client.json(`GET collections/docs/ids?${query}`);
  expect(await ids("name=Cs")).toEqual({ Results: ["c/3", "c/2", "c/1"] });
  expect(await ids("name=cs&start=1&pageSize=1")).toEqual({ Results: ["c/2"] });
  expect(await ids("name=Cs&pageSize=0")).toEqual({ Results: [] });
  expect(await ids("name=None")).toEqual({ Results: [] });
  expect((await client.send("GET collections/docs/ids")).status).toBe(400);
  const { DatabaseChangeVector: vector } = (await client.json("GET stats")) as {
    DatabaseChangeVector: string;
  };
  expect(await client.json("GET collections/last-change-vector?name=Cs")).toEqual({
    Collection: "Cs",
    LastChangeVector: vector,
  });
  expect(await client.json("GET revisions/collections/stats")).toMatchObject({
    CountOfRevisions: 0,
    Collections: { Cs: 0 },
  });
  expect(await client.json("GET notification-center/stats")).toMatchObject({
    CountOfConflicts: 0,
    CountOfEtlTasksErrors: 0,
    CountOfIndexingErrors: 0,
    GlobalChangeVector: vector,
    LastIndexingErrorTime: null,
    Collections: { Cs: { Name: "Cs", Count: 3, LastDocumentChangeVector: vector } },
  });
});

test("reports an open database as loaded", async () => {
  const loaded = (name: string) => client.json(`GET /debug/is-loaded?name=${name}`);
  expect(await loaded("DB")).toEqual({ DatabaseName: "DB", IsLoaded: true });
  expect(await loaded("none")).toEqual({ DatabaseName: "none", IsLoaded: false });
});

test("shows the last use of each database, and why it is not closed", async () => {
  expect(await client.json("GET /admin/debug/databases/idle")).toMatchObject({
    MaxIdleTime: expect.stringMatching(/^\d\d:\d\d:\d\d$/),
    Results: [
      {
        Name: "db",
        IsLoaded: true,
        CanUnload: false,
        Explanations: ["Cannot unload database because it was used recently."],
      },
    ],
  });
});

test("dismissing and postponing a notification has no effect, but requires an id", async () => {
  const send = async (path: string) =>
    (await client.send(`POST notification-center/${path}`)).status;
  expect(await send("dismiss?id=x&forever=true")).toBe(204);
  expect(await send("dismiss")).toBe(400);
  expect(await send("postpone?id=x&timeInSec=5")).toBe(204);
  expect(await send("postpone?id=x")).toBe(400);
});

test("the server reports the processor time of the process and of its threads", async () => {
  const time = expect.stringMatching(/^\d\d:\d\d:\d\d\.\d{7}$/);
  expect(await client.json("GET /admin/debug/cpu/stats")).toMatchObject({
    CpuStats: [{ ProcessName: "node", TotalProcessorTime: time, UserProcessorTime: time }],
  });
  const runaway = (await client.json("GET /admin/debug/threads/runaway")) as {
    "Runaway Threads": { List: { CpuUsage: number; TotalProcessorTime: string }[] };
  };
  const { List } = runaway["Runaway Threads"];
  expect(List.length).toBeGreaterThan(0);
  expect(List.map(({ CpuUsage }) => CpuUsage)).toEqual(
    List.map(({ CpuUsage }) => CpuUsage).sort((a, b) => b - a),
  );
  const { text } = await client.send("GET /admin/debug/proc/status");
  expect(text).toMatch(new RegExp(`^Pid:\\t${process.pid}$`, "m"));
});
