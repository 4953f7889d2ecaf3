/** The dashboard's widgets: real metrics of readable databases, at their intervals. */
import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { CertificatePair } from "../../../../certs/authority.ts";
import {
  startTestServer,
  stopTestServers,
  type TestServer,
  tlsOptions,
} from "../../../support/start-test-server.ts";

interface Message {
  readonly Id: number;
  readonly Data: {
    readonly Type: string;
    readonly Items?: readonly Readonly<Record<string, unknown>>[];
    readonly [member: string]: unknown;
  };
}

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    databases: [{ name: "shop" }, { name: "hidden" }],
    flags: ["--RunInMemory=false"],
  });
});
afterAll(stopTestServers);

async function open(pair: CertificatePair = server.admin, query = "?node=A") {
  const url = `${server.url.replace("https", "wss")}/cluster-dashboard/watch${query}`;
  const socket = new WebSocket(url, tlsOptions(server.authority, pair));
  const reported: Message[] = [];
  socket.on("message", (data) => {
    if (String(data).trim() !== "") reported.push(JSON.parse(String(data)) as Message);
  });
  await once(socket, "open");
  const send = (Command: string, Id: number, Type?: string) =>
    socket.send(JSON.stringify({ Command, Id, Type }));
  const of = (type: string) => reported.filter(({ Data }) => Data.Type === type);
  return { socket, reported, send, of };
}

const types = [
  "CpuUsage",
  "MemoryUsage",
  "IoStats",
  "StorageUsage",
  "DatabaseStorageUsage",
  "Traffic",
  "DatabaseTraffic",
  "Indexing",
  "DatabaseIndexing",
  "DatabaseOverview",
  "OngoingTasks",
  "ClusterOverview",
  "DatabasesNotifications",
  "GcInfo",
];

test("each widget has metrics of this server", { timeout: 20_000 }, async () => {
  const { socket, reported, send, of } = await open();
  const sendRequest = (path: string, method: string, body: object) =>
    server.request(path, { method, body: JSON.stringify(body) });
  const maps = ["map('Notes', (n) => ({ A: n.A }))"];
  await sendRequest("/databases/shop/admin/indexes", "PUT", {
    Indexes: [{ Name: "ByA", Maps: maps }],
  });
  await sendRequest("/databases/shop/subscriptions", "PUT", { Query: "from Notes" });
  for (const [at, type] of types.entries()) send("watch", at + 1, type);
  await expect
    .poll(() => new Set(reported.map(({ Data }) => Data.Type)))
    .toEqual(new Set(["ServerTime", ...types]));
  expect(reported[0]).toMatchObject({ Id: -1 });
  for (let at = 0; at < 5; at++) {
    await sendRequest(`/databases/shop/docs?id=notes/${at}`, "PUT", {
      A: at,
      "@metadata": { "@collection": "Notes" },
    });
  }
  const Operations = [{ Type: "Increment", CounterName: "n", Delta: 1 }];
  await sendRequest("/databases/shop/counters", "POST", {
    Documents: [{ DocumentId: "notes/1", Operations }],
  });
  const shopOf = (type: string) =>
    of(type).flatMap(({ Data }) => (Data.Items ?? []).filter((one) => one["Database"] === "shop"));
  const grown = (type: string, member: string) =>
    shopOf(type).reduce((sum, item) => sum + Number(item[member]), 0);
  await expect
    .poll(() => grown("DatabaseTraffic", "DocumentWritesPerSecond"), { timeout: 8_000 })
    .toBeGreaterThan(0);
  await expect
    .poll(() => grown("DatabaseTraffic", "CountersWriteBytesPerSecond"), { timeout: 8_000 })
    .toBeGreaterThan(0);
  await expect
    .poll(() => grown("DatabaseIndexing", "IndexedPerSecond"), { timeout: 8_000 })
    .toBeGreaterThan(0);
  await expect
    .poll(() => shopOf("DatabaseOverview").at(-1), { timeout: 8_000 })
    .toMatchObject({ DocumentsCount: 5, IndexesCount: 1, Online: true, OngoingTasksCount: 1 });
  expect(shopOf("OngoingTasks").at(-1)).toMatchObject({ SubscriptionCount: 1, SqlEtlCount: 0 });
  expect(of("MemoryUsage")[0]?.Data["WorkingSet"]).toBeGreaterThan(1_000_000);
  expect(of("ClusterOverview")[0]?.Data).toMatchObject({ NodeTag: "A", NodeUrl: server.url });
  const [disk] = of("StorageUsage")[0]?.Data.Items ?? [];
  expect(disk?.["TotalCapacity"]).toBeGreaterThan(Number(disk?.["FreeSpace"]));
  expect(of("CpuUsage").length).toBeGreaterThan(of("Traffic").length);
  send("unwatch", types.indexOf("CpuUsage") + 1);
  await new Promise((resolve) => setTimeout(resolve, 300));
  const { length } = of("CpuUsage");
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  expect(of("CpuUsage")).toHaveLength(length);
  socket.close();
});

test("a client sees only the databases that it may read", async () => {
  const reader = await server.client({ permissions: { shop: "Read" } });
  const { socket, send, of } = await open(reader);
  send("watch", 1, "DatabaseOverview");
  send("watch", 2, "DatabasesNotifications");
  await expect.poll(() => of("DatabasesNotifications").length).toBe(1);
  const names = of("DatabaseOverview").flatMap(({ Data }) => Data.Items ?? []);
  expect(names.map((one) => one["Database"])).toEqual(["shop"]);
  expect(JSON.stringify(of("DatabasesNotifications"))).not.toContain("hidden");
  socket.close();
});

test("an invalid command closes the socket with a reason", async () => {
  const closing = async (text: string, query?: string) => {
    const { socket } = await open(server.admin, query);
    socket.send(text);
    const [code, reason] = (await once(socket, "close")) as [number, Buffer];
    return `${code} ${String(reason)}`;
  };
  expect(await closing("no json")).toContain("1008 A command needs a numeric 'Id'");
  expect(await closing('{"Command":"watch","Id":1,"Type":"toString"}')).toContain(
    "The widget 'toString' does not exist",
  );
  expect(await closing('{"Command":"sleep","Id":1}')).toContain("'watch' or 'unwatch'");
  expect(await closing("{}", "")).toContain("node is mandatory");
});
