/** Live metrics: index batches, file writes and running queries; also on request. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { stopTestServers } from "../../../support/start-test-server.ts";

interface Batch {
  readonly Id: number;
  readonly Completed: string | null;
  readonly InputCount: number;
  readonly OutputCount: number;
  readonly DurationInMs: number;
  readonly Details: { readonly Operations: readonly { readonly Name: string }[] };
}
interface Performance {
  readonly Results: readonly { readonly Name: string; readonly Performance: readonly Batch[] }[];
}

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient(["--RunInMemory=false"]);
});
afterAll(stopTestServers);

async function watch<Frame>(path: string) {
  const frames: Frame[] = [];
  const url = client.server.url.replace("http", "ws");
  const socket = new WebSocket(url + (path.startsWith("/") ? path : `/databases/db/${path}`));
  socket.on("message", (data) => {
    if (String(data).trim() !== "") frames.push(JSON.parse(String(data)) as Frame);
  });
  await new Promise((resolve) => socket.once("open", resolve));
  return { frames, socket };
}

const put = (id: string, collection: string, body: object = {}) =>
  client.send(`PUT docs?id=${id}`, { ...body, "@metadata": { "@collection": collection } });

describe("batches of indexes", () => {
  const batchesOf = (frames: readonly Performance[], index: string) =>
    frames.flatMap(({ Results }) =>
      Results.filter(({ Name }) => Name === index).flatMap(({ Performance: batches }) => batches),
    );

  test("are reported as they happen, with the indexed items, and listed", async () => {
    const maps = ["map('Orders', (o) => ({ Company: o.Company, Count: 1 }))"];
    const reduce =
      "groupBy((x) => ({ Company: x.Company })).aggregate((g) => ({ Company: g.key.Company, Count: g.values.reduce((a, b) => a + b.Count, 0) }))";
    await client.send("PUT /databases/db/admin/indexes", {
      Indexes: [
        { Name: "ByCompany", Maps: maps, Reduce: reduce },
        { Name: "Other", Maps: maps },
      ],
    });
    const all = await watch<Performance>("indexes/performance/live");
    const other = await watch<Performance>("indexes/performance/live?name=OTHER");
    await put("orders/1", "Orders", { Company: "a" });
    await put("orders/2", "Orders", { Company: "b" });
    const done = () =>
      batchesOf(all.frames, "ByCompany").filter(({ Completed }) => Completed !== null);
    const taken = () => done().reduce((sum, { InputCount }) => sum + InputCount, 0);
    await expect.poll(taken, { timeout: 5_000 }).toBe(2);
    const batch = done().at(-1);
    expect(batch).toMatchObject({
      FailedCount: 0,
      OutputCount: expect.any(Number),
      Details: {
        Name: "Indexing",
        Operations: [{ Name: "Map" }, { Name: "Reduce" }],
      },
    });
    await expect.poll(() => other.frames.length, { timeout: 5_000 }).toBeGreaterThan(0);
    expect(new Set(other.frames.flatMap(({ Results }) => Results.map(({ Name }) => Name)))).toEqual(
      new Set(["Other"]),
    );
    const listed = (await client.json("GET indexes/performance?name=ByCompany")) as Performance;
    expect(listed.Results).toHaveLength(1);
    expect(listed.Results[0]?.Performance.map(({ Id }) => Id)).toContain(batch?.Id);
    all.socket.close();
    other.socket.close();
  });
});

describe("writes to files", () => {
  interface Disk {
    readonly Environments: readonly {
      readonly Path: string;
      readonly Type: string;
      readonly Files: readonly {
        readonly File: string;
        readonly Recent: readonly { readonly Type: string; readonly Size: number }[];
      }[];
    }[];
  }
  const rowsOf = (disks: readonly Disk[]) =>
    disks.flatMap(({ Environments }) =>
      Environments.flatMap(({ Files }) => Files.flatMap(({ Recent }) => Recent)),
    );

  test("of a database are reported once, with sizes and types", async () => {
    const { frames, socket } = await watch<Disk>("debug/io-metrics/live");
    await expect.poll(() => frames.length).toBe(1);
    const before = rowsOf(frames).length;
    await put("big/1", "Big", { Text: "x".repeat(50_000) });
    await expect.poll(() => rowsOf(frames).length, { timeout: 5_000 }).toBeGreaterThan(before);
    const appended = rowsOf(frames).filter(({ Type }) => Type === "JournalWrite");
    expect(Math.max(...appended.map(({ Size }) => Size))).toBeGreaterThan(50_000);
    const syncs = rowsOf(frames).filter(({ Type }) => Type === "DataSync");
    expect(syncs).toHaveLength(appended.length);
    expect(frames[0]?.Environments[0]).toMatchObject({
      Path: expect.stringMatching(/Databases.db$/),
      Type: "Documents",
      Files: [{ File: expect.stringMatching(/^log\//) }],
    });
    const listed = (await client.json("GET debug/io-metrics")) as Disk;
    expect(rowsOf([listed])).toHaveLength(rowsOf(frames).length);
    socket.close();
  });

  test("of the server are reported, but not of databases in memory", async () => {
    const { frames, socket } = await watch<Disk>("/admin/debug/io-metrics/live");
    await expect.poll(() => frames[0]?.Environments[0]).toMatchObject({ Type: "System" });
    const listed = (await client.json("GET /admin/debug/io-metrics")) as Disk;
    expect(rowsOf([listed]).length).toBeGreaterThan(0);
    socket.close();
    const inMemory = await startEndpointClient();
    await inMemory.send("PUT docs?id=a/1", {});
    expect(await inMemory.json("GET debug/io-metrics")).toMatchObject({ Environments: [] });
  });
});

test("running queries are reported, with the number needed to kill them", async () => {
  interface Running {
    readonly DatabaseName: string;
    readonly IndexName: string;
    readonly RunningQueries: readonly { readonly QueryId: number }[];
  }
  // Ten times the reporting interval, also on a fast machine.
  for (let part = 0; part < 12; part++) {
    const Commands = Array.from({ length: 2_000 }, (_, n) => ({
      Type: "PUT",
      Id: `slow/${part}/${n}`,
      Document: { n, "@metadata": { "@collection": "Slow" } },
    }));
    await client.send("POST bulk_docs", { Commands });
  }
  const { frames, socket } = await watch<Running[]>("/debug/queries/running/live");
  const Query =
    "declare function f(o) { var x = 0; for (var i = 0; i < 9000; i++) x += i % 7; return { x: x } } from Slow as o select f(o)";
  const answer = client.send("POST queries", { Query });
  await expect.poll(() => frames.flat().length, { timeout: 10_000 }).toBeGreaterThan(0);
  const [row] = frames.flat();
  expect(row).toMatchObject({ DatabaseName: "db", IndexName: "collection/Slow" });
  const id = row?.RunningQueries[0]?.QueryId;
  await client.send(`POST debug/queries/kill?indexName=collection/Slow&id=${id}`);
  expect((await answer).status).toBeGreaterThanOrEqual(400);
  await expect.poll(() => frames.at(-1), { timeout: 5_000 }).toEqual([]);
  socket.close();
});

test("threads are reported with their processor usage", async () => {
  const { frames, socket } = await watch<{ ThreadsCount: number; List: { Id: number }[] }>(
    "/threads-info/watch",
  );
  await expect.poll(() => frames.length, { timeout: 5_000 }).toBeGreaterThan(1);
  expect(frames[1]).toMatchObject({ ActiveCores: expect.any(Number) });
  expect(frames[1]?.List).toHaveLength(frames[1]?.ThreadsCount ?? -1);
  if (process.platform === "linux") {
    expect(frames[1]?.List.map(({ Id }) => Id)).toContain(process.pid);
  }
  socket.close();
});

test("unsupported tasks have an empty list, and the socket closes with its database", async () => {
  for (const path of ["etl", "queue-sink", "cdc-sink"]) {
    const { frames, socket } = await watch(`${path}/performance/live`);
    await expect.poll(() => frames).toEqual([{ Results: [] }]);
    socket.close();
  }
  await client.server.running.services.databases.create("gone", { DatabaseName: "gone" });
  for (const path of [
    "subscriptions/performance",
    "replication/performance",
    "replication/pulses",
  ]) {
    const { frames, socket } = await watch(`/databases/gone/${path}/live`);
    expect(frames).toEqual([]);
    if (path === "replication/pulses") {
      const closed = new Promise((resolve) => socket.once("close", resolve));
      await client.server.running.services.databases.delete("gone");
      expect(await closed).toBe(1001);
    } else socket.close();
  }
});
