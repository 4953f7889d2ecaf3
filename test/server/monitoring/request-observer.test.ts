/**
 * Log lines for slow queries: replies, streams, patches and deletions by query, with their plan and
 * without values.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Log } from "../../../server/logging/log.ts";
import type { LogEvent } from "../../../server/logging/log-line.ts";
import { type EndpointClient, startEndpointClient } from "../../support/endpoint-client.ts";
import { stopTestServers } from "../../support/start-test-server.ts";

const events: LogEvent[] = [];
let client: EndpointClient;
beforeAll(async () => {
  const sink = {
    droppedCount: 0,
    write: (event: LogEvent) => void events.push(event),
    close: () => Promise.resolve(),
  };
  client = await startEndpointClient(["--Logs.SlowQueryInMs=1"], new Log("Info", [sink]));
  const Commands = Array.from({ length: 400 }, (_, n) => ({
    Type: "PUT",
    Id: `items/${n}`,
    Document: { n, secret: `s3cret${n}`, "@metadata": { "@collection": "Items" } },
  }));
  await client.send("POST bulk_docs", { Commands });
});
afterAll(stopTestServers);

/** The next line with this message. */
async function reported(message: string): Promise<Record<string, unknown>> {
  const find = () => events.findIndex((event) => event.message === message);
  await expect.poll(find).toBeGreaterThanOrEqual(0);
  const [event] = events.splice(find(), 1);
  return { ...event?.fields };
}

const slow = "declare function f(x) { for (var i = 0; i < 900; i++) { } return { s: 's3cret' }; }";

test.each([
  ["POST queries", "/databases/:database/queries"],
  ["POST streams/queries", "/databases/:database/streams/queries"],
])("a slow reply to %s is logged with its plan", async (route, path) => {
  events.length = 0;
  const Query = `${slow} from Items as i where i.secret != 's3cret1' and i.n >= $low select f(i)`;
  await client.send(route, {
    Query,
    QueryParameters: { low: 7 },
    WaitForNonStaleResults: true,
  });
  expect(await reported("A query was slow")).toMatchObject({
    event: "slow-query",
    route: path,
    database: "db",
    status: 200,
    index: "Auto/Items/BynAndsecret",
    results: 393,
    waitedForIndex: true,
    plan: "index Auto/Items/BynAndsecret: (secret != ? and n >= ?); rows by script",
  });
  const metrics = (await client.json("GET metrics/history")) as { SlowQueries: unknown[] };
  const [listed] = metrics.SlowQueries;
  expect(listed).toMatchObject({ Database: "db", IndexName: "Auto/Items/BynAndsecret" });
  expect(JSON.stringify(listed)).not.toContain("s3cret");
});

test("a filter is logged with its cost, without its values", async () => {
  events.length = 0;
  await client.send("POST queries", {
    Query: `${slow} from Items as i filter i.secret != 's3cret9' select f(i)`,
  });
  const line = await reported("A query was slow");
  expect(line).toMatchObject({
    plan: "collection Items: all of it; filter on each document; rows by script",
  });
  expect(Number(line["scanned"])).toBeGreaterThan(0);
  expect(JSON.stringify(line)).not.toContain("s3cret");
});

test.each([
  ["PATCH", "A patch by query was slow", " update { this.done = 's3cret'; }", 400],
  ["PATCH", "A dry run of a patch by query was slow", " update { this.done = 's3cret'; }", 400],
  ["DELETE", "A deletion by query was slow", "", 400],
])(
  "an operation started by %s is logged when it has ended",
  async (method, message, tail, results) => {
    const Query = `from Items${tail}`;
    const body = method === "PATCH" ? { Query: { Query } } : { Query };
    const path = message.includes("dry run") ? "queries/dry-run" : "queries";
    expect((await client.send(`${method} ${path}`, body)).status).toBe(200);
    const line = await reported(message);
    expect(line).toMatchObject({
      method,
      ended: "completed",
      results,
      plan: "collection Items: all of it",
    });
    expect(JSON.stringify(line)).not.toContain("s3cret");
  },
);
