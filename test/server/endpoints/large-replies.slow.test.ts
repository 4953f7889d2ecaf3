/** Replies with documents too large to be composed in one step. */
import { setTimeout as sleep } from "node:timers/promises";
import { gunzipSync } from "node:zlib";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { processMemory } from "../../../engine/base/memory/memory-budget.ts";
import { type EndpointClient, startEndpointClient } from "../../support/endpoint-client.ts";
import { requestHttp2, stopTestServers } from "../../support/start-test-server.ts";

const large = { Text: "ä".repeat(700_000), Rows: Array.from({ length: 5_000 }, (_, n) => n) };
let client: EndpointClient;

beforeAll(async () => {
  client = await startEndpointClient();
  for (const id of ["l/1", "l/2"]) {
    await client.send(`PUT docs?id=${id}`, { ...large, "@metadata": { "@collection": "Ls" } });
  }
  await client.send("PUT docs?id=l/3", { Small: 1, "@metadata": { "@collection": "Ls" } });
});
afterEach(async () => {
  for (let n = 0; n < 100 && processMemory.workBytesOf("replies") > 0; n++) await sleep(20);
  expect(processMemory.workBytesOf("replies")).toBe(0);
});
afterAll(stopTestServers);

interface Loaded {
  readonly Results: readonly (Record<string, unknown> & { "@metadata": { "@id": string } })[];
  readonly Includes: Record<string, unknown>;
}

test("a large document is returned completely, with its metadata and length", async () => {
  const reply = await client.send("GET docs?id=l/1");
  const { Results, Includes } = reply.json as Loaded;
  expect(Results[0]).toMatchObject({
    ...large,
    "@metadata": { "@id": "l/1", "@collection": "Ls" },
  });
  expect(Includes).toEqual({});
  expect(Number(reply.headers["content-length"])).toBe(reply.body.length);
  expect(reply.headers.etag).toBeDefined();
  const again = await client.send("GET docs?id=l/1", undefined, {
    "if-none-match": String(reply.headers.etag),
  });
  expect(again.status).toBe(304);
});

test("it is compressed for a client that accepts this, also over HTTP/2", async () => {
  const plain = await client.send("GET docs?id=l/1");
  const folded = await client.send("GET docs?id=l/1", undefined, { "accept-encoding": "gzip" });
  expect(folded.headers["content-encoding"]).toBe("gzip");
  expect(gunzipSync(folded.body).equals(plain.body)).toBe(true);
  const session = client.server.session(undefined);
  const other = await requestHttp2(session, "/databases/db/docs?id=l/1");
  expect(other.body.equals(plain.body)).toBe(true);
});

test("lists, multiple loads and streams may include it", async () => {
  const ids = (loaded: unknown) =>
    (loaded as Loaded).Results.map((row) => row?.["@metadata"]["@id"] ?? null);
  for (const path of [
    "GET docs?id=l/1&id=none&id=l/2&id=l/3",
    "GET docs?startsWith=l/",
    "GET streams/docs?startsWith=l/",
    "GET collections/docs?name=Ls",
  ]) {
    const { Results } = (await client.json(path)) as Loaded;
    const first = Results.find((row) => row?.["@metadata"]["@id"] === "l/1");
    expect(first, path).toMatchObject(large);
  }
  expect(ids(await client.json("GET docs?id=l/1&id=none&id=l/2&id=l/3"))).toEqual([
    "l/1",
    null,
    "l/2",
    "l/3",
  ]);
  const lines = (await client.send("GET streams/docs?startsWith=l/&format=jsonl")).text;
  const rows = lines.trim().split("\r\n");
  expect(rows.map((line) => (JSON.parse(line) as { Rows?: unknown[] }).Rows?.length)).toEqual([
    5_000,
    5_000,
    undefined,
  ]);
});

test("its metadata alone is short", async () => {
  const { Results } = (await client.json("GET docs?id=l/1&metadataOnly=true")) as Loaded;
  expect(Object.keys(Results[0] ?? {})).toEqual(["@metadata"]);
});

test("without memory it is rejected after a while, with a message, and small ones are not", async () => {
  const taken = processMemory.useBytesMax("replies");
  processMemory.force("replies", taken);
  try {
    const refused = client.send("GET docs?id=l/1");
    const listed = client.send("GET docs?startsWith=l/");
    expect((await client.send("GET docs?id=l/3")).status).toBe(200);
    for (const reply of [await refused, await listed]) {
      expect(reply.status).toBe(503);
      expect(reply.headers["retry-after"]).toBe("2");
      expect(reply.text).toContain("setting Http.MaxHeldRepliesInMb");
    }
  } finally {
    processMemory.release("replies", taken);
  }
  expect((await client.send("GET docs?id=l/1")).status).toBe(200);
});
