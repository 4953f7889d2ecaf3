/**
 * Listing and killing running queries over HTTP: queries, streams, facets, operations on an index.
 */
import { once } from "node:events";
import http from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isCold } from "../../../support/cold.ts";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { stopTestServers } from "../../../support/start-test-server.ts";

let client: EndpointClient;
const count = 1_500;
beforeAll(async () => {
  client = await startEndpointClient();
  const Commands = Array.from({ length: count }, (_, n) => ({
    Type: "PUT",
    Id: `items/${n}`,
    Document: { n, "@metadata": { "@collection": "Items" } },
  }));
  expect((await client.send("POST bulk_docs", { Commands })).status).toBe(201);
  const wait = { Query: "from Items where n >= 0 limit 1", WaitForNonStaleResults: true };
  expect((await client.send("POST queries", wait)).status).toBe(200);
});
afterAll(stopTestServers);

type Running = Record<string, { QueryId: number; QueryInfo: object; IsStreaming: boolean }[]>;

/** Waits for a query of this index, kills it, and returns its entry in the list. */
async function killed(indexName: string): Promise<object> {
  for (;;) {
    const listed = (await client.json("GET debug/queries/running")) as Running;
    const [one] = listed[indexName] ?? [];
    if (one === undefined) continue;
    const to = `indexName=${encodeURIComponent(indexName)}&id=${one.QueryId}`;
    expect((await client.send(`POST debug/queries/kill?${to}`)).status).toBe(204);
    return one;
  }
}

const slow = `declare function slow(x) { var s = 0; for (var i = 0; i < 9000; i++) { s += i % 7; } return { s: s }; }`;

test.each([
  ["collection/Items", "POST queries", "from Items as i select slow(i)", false],
  ["Auto/Items/Byn", "POST queries", "from Items as i where i.n >= 0 select slow(i)", false],
  ["collection/Items", "POST streams/queries", "from Items as i select slow(i)", true],
])("a query of %s by %s is listed, and ends when killed", async (index, route, text, isStream) => {
  const answer = client.send(route, { Query: `${slow} ${text}` });
  expect(await killed(index)).toMatchObject({
    IndexName: index,
    IsStreaming: isStream,
    QueryInfo: { PageSize: 2_147_483_647, Query: `${slow} ${text}`, Start: 0 },
    StartTime: expect.stringMatching(/Z$/),
    Duration: expect.stringMatching(/^00:00:/),
  });
  const { status, json } = await answer;
  expect([status, json]).toMatchObject([
    500,
    { Type: "System.OperationCanceledException", Message: "The operation was canceled." },
  ]);
});

test("killing a stream whose client does not read ends it and its connection", async () => {
  const { port } = client.server;
  const Query = `${slow} from Items as i select { text: 'x'.repeat(200000), n: i.n }`;
  const body = JSON.stringify({ Query });
  const request = http.request({
    port,
    host: "127.0.0.1",
    method: "POST",
    path: "/databases/db/streams/queries",
    headers: { "content-length": Buffer.byteLength(body) },
  });
  request.on("error", () => undefined);
  request.end(body);
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  response.on("error", () => undefined);
  response.pause();
  // It waits for its client when it produces no more rows.
  await sleep(300);
  const listed = () => client.json("GET debug/queries/running") as Promise<Running>;
  expect(Object.keys(await listed())).toContain("collection/Items");
  await killed("collection/Items");
  await expect
    .poll(async () => Object.keys(await listed()), { timeout: 3_000 })
    .toEqual(["@metadata"]);
  const closed = new Promise((resolve) => response.once("close", resolve));
  response.resume();
  await closed;
  expect(response.complete).toBe(false);
});

test("killing an operation on an index cancels it, and its changes persist", async () => {
  const body = "var s = 0; for (var i = 0; i < 9000; i++) { s += i % 7; } this.s = s;";
  const Query = { Query: `from Items where n >= 0 update { ${body} }` };
  const started = await client.send("PATCH queries", { Query });
  const { OperationId } = started.json as { OperationId: number };
  await killed("Auto/Items/Byn");
  for (;;) {
    const state = (await client.json(`GET operations/state?id=${OperationId}`)) as object;
    if ("Status" in state && state.Status === "InProgress") continue;
    expect(state).toMatchObject({ Status: "Canceled" });
    break;
  }
  expect(Object.keys((await client.json("GET debug/queries/running")) as object)).toEqual([
    "@metadata",
  ]);
});

test("killing a query that is not running is 404, and an error without a name or number", async () => {
  const kill = (parameters: string) => client.send(`POST debug/queries/kill${parameters}`);
  expect((await kill("?indexName=Auto/Items/Byn&id=99999")).status).toBe(404);
  expect((await kill("?id=1")).status).toBe(400);
  expect((await kill("?indexName=x")).status).toBe(400);
});

// A database that is reopened before every read caches none.
test.skipIf(isCold)("cached query texts are listed with their execution path", async () => {
  await client.send("POST queries", { Query: "from Items group by n select count(), n limit 1" });
  await client.send("POST queries", { Query: "from index 'Auto/Items/Byn' where n = 3" });
  const listed = (await client.json("GET debug/queries/cache/list")) as {
    TotalCachedQueries: number;
    Results: { QueryText: string }[];
  };
  expect(listed.TotalCachedQueries).toBe(listed.Results.length);
  const one = (text: string) => listed.Results.find(({ QueryText }) => QueryText.startsWith(text));
  const time = expect.stringMatching(/Z$/);
  expect(one("from Items where n >= 0 limit 1")).toEqual({
    CreatedAt: time,
    LastQueriedAt: time,
    IsDynamic: true,
    CollectionName: "Items",
    AutoIndexName: "Auto/Items/Byn",
    QueryText: "from Items where n >= 0 limit 1",
  });
  expect(one("from Items group by")).toMatchObject({
    IsGroupBy: true,
    AutoIndexName: "Auto/Items/ByCountReducedByn",
  });
  expect(one("from index")).toMatchObject({ IndexName: "Auto/Items/Byn" });
});
