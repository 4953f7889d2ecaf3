/** Statistics, multiple reads in one request, and streams of documents. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { routes } from "../../../server/endpoints/route-table.ts";
import { InternalExchange } from "../../../server/http/internal-exchange.ts";
import type { Route } from "../../../server/routing/route.ts";
import { type EndpointClient, startEndpointClient } from "../../support/endpoint-client.ts";
import { startTestServer, stopTestServers } from "../../support/start-test-server.ts";

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
  for (const n of [1, 2, 3]) {
    await client.send(`PUT docs?id=s%2F${n}`, { n, "@metadata": { "@collection": "Ss" } });
  }
});
afterAll(stopTestServers);

describe("statistics", () => {
  test("count added and removed items", async () => {
    const { send, json } = await startEndpointClient();
    expect(await json("GET stats/essential")).toEqual({
      CountOfIndexes: 0,
      CountOfDocuments: 0,
      CountOfRevisionDocuments: 0,
      CountOfTombstones: 0,
      CountOfDocumentsConflicts: 0,
      CountOfConflicts: 0,
      CountOfAttachments: 0,
      CountOfCounterEntries: 0,
      CountOfTimeSeriesSegments: 0,
      Indexes: [],
    });
    expect(await json("GET stats")).toMatchObject({ DatabaseChangeVector: "", LastDocEtag: 0 });
    for (const id of ["a/1", "a/2"]) {
      await send(`PUT docs?id=${id}`, { "@metadata": { "@collection": "As" } });
      await send(`PUT attachments?id=${id}&name=f`, "same");
      await send("POST counters", {
        Documents: [
          {
            DocumentId: id,
            Operations: ["x", "y"].map((CounterName) => ({
              Type: "Increment",
              CounterName,
              Delta: 1,
            })),
          },
        ],
      });
    }
    await send("PUT docs?id=n", {});
    expect(await json("GET stats")).toMatchObject({
      CountOfDocuments: 3,
      CountOfAttachments: 2,
      CountOfUniqueAttachments: 1,
      CountOfCounterEntries: 2,
      CountOfTombstones: 0,
    });
    await send("DELETE docs?id=a%2F2");
    await send("DELETE docs?id=n");
    expect(await json("GET collections/stats")).toMatchObject({
      CountOfDocuments: 1,
      CountOfTombstones: 3,
      CountOfCounterEntries: 1,
      Collections: { As: 1, "@empty": 0 },
    });
    const detailed = (await json("GET collections/stats/detailed")) as {
      Collections: Record<string, Record<string, unknown>>;
    };
    expect(detailed.Collections["As"]).toMatchObject({
      Name: "As",
      CountOfDocuments: 1,
      CountOfTombstones: 1,
      CountOfCounterEntries: 1,
      DocumentsSize: { SizeInBytes: expect.any(Number) },
    });
    await send("POST identity/next?name=i");
    await send("PUT cmpxchg?key=k&index=0", "{}");
    const counts = { CountOfIdentities: 1, CountOfCompareExchange: 1, CountOfDocuments: 1 };
    expect(await json("GET stats/detailed")).toMatchObject(counts);
    expect((await send("GET healthcheck")).status).toBe(204);
    expect((await send("GET stats")).headers.etag).toBeUndefined();
  });
});

describe("statistics of indexes", () => {
  test("report each index with its state", async () => {
    const requested = await client.json("POST queries", {
      Query: "from Ss where n = 1",
      WaitForNonStaleResults: true,
    });
    expect(requested).toMatchObject({ IsStale: false, TotalResults: 1 });
    expect(await client.json("GET stats")).toMatchObject({
      CountOfIndexes: 1,
      Indexes: [
        {
          Name: "Auto/Ss/Byn",
          IsStale: false,
          State: "Normal",
          LockMode: "Unlock",
          Priority: "Normal",
          Type: "AutoMap",
          SourceType: "Documents",
          LastIndexingTime: expect.stringMatching(/Z$/),
        },
      ],
    });
    const essential = { CountOfIndexes: 1, Indexes: [{ Name: "Auto/Ss/Byn", Type: "AutoMap" }] };
    expect(await client.json("GET stats/essential")).toMatchObject(essential);
  });
});

describe("POST multi_get", () => {
  const get = async (...Requests: unknown[]) =>
    ((await client.json("POST multi_get", { Requests })) as { Results: Record<string, unknown>[] })
      .Results;
  const url = "/databases/db/docs";

  test("answers each read separately, in order", async () => {
    const { etag } = (await client.send("GET docs?id=s%2F1")).headers;
    const results = await get(
      { Url: url, Query: "?&id=s%2F1", Method: "GET", Headers: {} },
      { Url: url, Query: "?id=s/1", Headers: { "If-None-Match": etag } },
      { Url: url, Query: "?", Method: "POST", Content: '{"Ids":["s/2","s/3"]}' },
      { Url: url, Query: "?pageSize=abc" },
      {},
      { Url: "/databases/db/nowhere", Query: "" },
    );
    expect(results[0]).toMatchObject({
      Result: { Results: [{ n: 1 }], Includes: {} },
      StatusCode: 200,
      Headers: { ETag: etag },
    });
    expect(results[1]).toEqual({ Result: null, StatusCode: 304, Headers: {} });
    expect(results[2]).toMatchObject({
      Result: { Results: [{ n: 2 }, { n: 3 }] },
      StatusCode: 200,
    });
    expect(results[3]).toMatchObject({
      Result: { Type: "System.ArgumentException" },
      StatusCode: 500,
    });
    expect(results[4]).toEqual({});
    expect(results[5]).toMatchObject({ StatusCode: 400 });
  });

  test("has the status of RavenDB 7.2.7 in each item, and rejects items that are not objects", async () => {
    const queries = "/databases/db/queries";
    const results = await get(
      { Url: "/databases/db/nowhere", Query: "" },
      { Url: url, Query: "?id=s/1&metadataOnly=x" },
      { Url: queries, Query: "", Method: "POST", Content: { Query: "from" } },
      { Url: queries, Query: "", Method: "POST" },
      { Url: queries, Query: "", Method: "POST", Content: null },
      { Url: url, Query: null },
      { Url: url, Query: "?id=s/9", Method: "PUT", Content: { n: 9 } },
      { Url: url, Query: "?id=s/1", Method: "PATCH", Content: { Patch: { Script: "" } } },
    );
    const seen = results.map(({ StatusCode, Result }) => [
      StatusCode,
      (Result as { Type?: string }).Type?.split(".").at(-1),
    ]);
    expect(seen).toEqual([
      [400, "RouteNotFoundException"],
      [500, "ArgumentException"],
      [500, "QueryParser+ParseException"],
      [500, "EndOfStreamException"],
      [500, "EndOfStreamException"],
      [200, undefined],
      [500, "EndOfStreamException"],
      [500, "EndOfStreamException"],
    ]);
    expect((await client.send("GET docs?id=s/9")).status).toBe(404);
    for (const item of [null, 5, "x", []]) {
      const { status } = await client.send("POST multi_get", { Requests: [item] });
      expect([item, status]).toEqual([item, 400]);
    }
  });

  test("returns results for missing items that clients can parse", async () => {
    expect(
      await get(
        { Url: url, Query: "?id=none" },
        { Url: "/databases/db/cmpxchg", Query: "?&key=a%2Fb" },
      ),
    ).toEqual([
      { Result: { Results: [null], Includes: {} }, StatusCode: 404, Headers: {} },
      { Result: null, StatusCode: 404, Headers: {} },
    ]);
  });

  test("cannot be nested, in any spelling of its path", async () => {
    const spellings = ["multi_get?", "multi_get?x=1", "%6Dulti_get", "multi%5Fget"];
    const Requests: unknown[] = [];
    const nested = spellings.map((path) => ({
      Url: `/databases/db/${path}`,
      Query: "",
      Method: "POST",
      Content: { Requests },
    }));
    const results = await get(...nested);
    expect(results.map(({ StatusCode }) => StatusCode)).toEqual([400, 400, 400, 400]);
    const refused = { Type: "Raven.Client.Exceptions.BadRequestException" };
    expect(results[0]?.["Result"]).toMatchObject(refused);
    expect(results[1]?.["Result"]).toMatchObject(refused);
  });

  test("executes no writes, and cannot be nested", async () => {
    const results = await get(
      { Url: url, Query: "?id=w", Method: "PUT", Content: "{}" },
      { Url: "/databases/db/multi_get", Query: "", Method: "POST", Content: { Requests: [] } },
    );
    expect(results.map(({ StatusCode }) => StatusCode)).toEqual([500, 400]);
    expect((await client.send("GET docs?id=w")).status).toBe(404);
  });

  test("does not bypass the client's access rights", async () => {
    const server = await startTestServer({ databases: [{ name: "mine" }, { name: "theirs" }] });
    const reader = await server.client({ permissions: { mine: "Read" } });
    const reply = await server.request(
      "/databases/mine/multi_get",
      {
        method: "POST",
        body: JSON.stringify({
          Requests: [
            { Url: "/databases/theirs/docs", Query: "" },
            { Url: "/admin/databases", Query: "?name=mine" },
            { Url: "/databases/mine/docs", Query: "" },
          ],
        }),
      },
      reader,
    );
    const { Results } = reply.json as { Results: { StatusCode: number }[] };
    expect(Results.map(({ StatusCode }) => StatusCode)).toEqual([403, 403, 200]);
  });

  test("rejects a body without requests", async () => {
    for (const body of ["", "{}", '{"Requests":5}']) {
      expect((await client.send("POST multi_get", body)).status, body).toBe(400);
    }
  });
});

describe("GET streams/docs", () => {
  test("returns one document per line, each ended by CRLF", async () => {
    const reply = await client.send("GET streams/docs?format=jsonl&startsWith=s%2F&matches=2|3");
    const lines = reply.text.split("\r\n");
    expect(lines.pop()).toBe("");
    expect(lines.map((line) => (JSON.parse(line) as { n: number }).n)).toEqual([2, 3]);
    expect(reply.headers.etag).toBeUndefined();
    const none = await client.send("GET streams/docs?format=jsonl&startsWith=zz");
    expect([none.status, none.headers["content-length"]]).toEqual([200, "0"]);
  });

  test("returns one object in the other format", async () => {
    const { Results } = (await client.json(
      "GET streams/docs?format=json&startsWith=s%2F&startAfter=s%2F1",
    )) as { Results: unknown[] };
    expect(Results).toHaveLength(2);
    expect((await client.send("GET streams/docs?startsWith=zz")).text).toBe('{"Results":[]}');
    expect((await client.send("GET streams/docs?pageSize=abc")).status).toBe(400);
  });
});

describe("an internal request", () => {
  test("is aborted if its reply exceeds the limit, streamed or whole", async () => {
    const statuses: (number | undefined)[] = [];
    const probe: Route = {
      kind: "database",
      method: "GET",
      path: "/databases/:database/probe",
      access: "read",
      handle: async (exchange, { server }) => {
        for (const target of ["/databases/db/docs", "/databases/db/stats/essential"]) {
          for (const bytesMax of [100, 10_000_000]) {
            const inner = new InternalExchange(exchange, { method: "GET", target }, bytesMax);
            await server.dispatch(inner);
            statuses.push((await inner.captureReply())?.status);
          }
        }
        exchange.reply(204);
      },
    };
    const { request } = await startTestServer({
      unsecured: true,
      databases: [{ name: "db" }],
      routes: [...routes, probe],
    });
    const text = "x".repeat(50_000);
    for (let n = 0; n < 5; n++) {
      await request(`/databases/db/docs?id=${n}`, {
        method: "PUT",
        body: JSON.stringify({ text }),
      });
    }
    expect((await request("/databases/db/probe")).status).toBe(204);
    expect(statuses).toEqual([undefined, 200, undefined, 200]);
  });
});
