/**
 * Invalid names and values on every input path: each is rejected with a reason, and the database
 * continues. On disk, so that rejected data is also absent after the database is reopened.
 */
import { cpSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { OpenDatabase } from "../../../engine/api/database/open-database.ts";
import { openedDatabase } from "../../../engine/api/database.ts";
import { nameBytesMax } from "../../../engine/base/limits.ts";
import { nodeEnvironment } from "../../../engine/base/platform/node-environment.ts";
import type { Database } from "../../../engine/engine.ts";
import { pictureOf } from "../../support/database-picture.ts";
import {
  type EndpointClient,
  multipart,
  startEndpointClient,
} from "../../support/endpoint-client.ts";
import { newTestFolder } from "../../support/open-test-database.ts";
import { type Reply, stopTestServers } from "../../support/start-test-server.ts";

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient(["--RunInMemory=false"]);
  await put("keep/1", { n: 1, "@metadata": { "@collection": "Keeps" } });
});
afterAll(stopTestServers);

function put(id: string, document: object): Promise<Reply> {
  return client.send(`PUT docs?id=${encodeURIComponent(id)}`, document);
}

/**
 * A lone surrogate: valid in JSON, not in UTF-8. If it is accepted, it becomes U+FFFD, as in
 * RavenDB 7.2.7.
 */
const half = "\ud800";
const isWhole = (text: string) => !/\p{Surrogate}/u.test(text);
const badNames: readonly (readonly [what: string, name: string])[] = [
  ["70,000 characters", "n".repeat(70_000)],
  ["513 bytes", `${"é".repeat(256)}x`],
  ["a lone surrogate", `a${half}b`],
];

interface Way {
  readonly what: string;
  /** Whether an invalid name is counted as an error while the rest is imported. */
  readonly isCounted?: true;
  /** @returns null if this path cannot transmit the name */
  send(name: string): Promise<Reply> | null;
}

function inCollection(name: string): object {
  return { x: 1, "@metadata": { "@collection": name } };
}

function bulk(...commands: object[]): Promise<Reply> {
  return client.send("POST bulk_docs", { Commands: commands });
}

async function bulkInsert(...commands: object[]): Promise<Reply> {
  const id = ((await client.json("GET operations/next-operation-id")) as { Id: number }).Id;
  return await client.send(`POST bulk_insert?id=${id}`, JSON.stringify(commands));
}

function importing(dump: object | string): Promise<Reply> {
  const text = typeof dump === "string" ? dump : JSON.stringify(dump);
  const body = multipart("xyz", ["{}", text]);
  return client.send("POST smuggler/import", body, {
    "content-type": "multipart/form-data; boundary=xyz",
  });
}

function patch(Script: string, Values: object): Promise<Reply> {
  return client.send("PATCH docs?id=keep/1", { Patch: { Script, Values } });
}

/** A name in the URL, which cannot contain a lone surrogate. */
function inAddress(name: string): string | null {
  return isWhole(name) ? encodeURIComponent(name) : null;
}

/** Long URLs are rejected before they are parsed. */
function sendAddress(what: string, name: string, after = "", body?: object): Promise<Reply> | null {
  const text = inAddress(name);
  return text === null ? null : client.send(`${what}${text}${after}`, body);
}

const collections: readonly Way[] = [
  { what: "PUT docs", send: (name) => put("c/1", inCollection(name)) },
  {
    what: "bulk_docs",
    send: (name) => bulk({ Type: "PUT", Id: "c/2", Document: inCollection(name) }),
  },
  {
    what: "ClusterWide",
    send: (name) =>
      client.send("POST bulk_docs", {
        Commands: [{ Type: "PUT", Id: "c/3", Document: inCollection(name) }],
        TransactionMode: "ClusterWide",
      }),
  },
  {
    what: "bulk_insert",
    send: (name) => bulkInsert({ Type: "PUT", Id: "c/4", Document: inCollection(name) }),
  },
  {
    what: "a put by a script",
    send: (name) => patch("put('c/5', {x: 1, '@metadata': {'@collection': args.c}})", { c: name }),
  },
  {
    what: "a patch that creates the document",
    send: (name) =>
      client.send("PATCH docs?id=c/6", {
        Patch: { Script: "this.x = 1" },
        PatchIfMissing: {
          Script: "this.x = 1; this['@metadata'] = {'@collection': args.c}",
          Values: { c: name },
        },
      }),
  },
  {
    what: "a document of a dump",
    send: (name) =>
      importing({ Docs: [{ x: 1, "@metadata": { "@id": "c/7", "@collection": name } }] }),
  },
  {
    what: "a revision of a dump",
    send: (name) =>
      importing({
        RevisionDocuments: [
          {
            x: 1,
            "@metadata": {
              "@id": "c/8",
              "@collection": name,
              "@change-vector": "A:1-AAAAAAAAAAAAAAAAAAAAAA",
            },
          },
        ],
      }),
  },
  {
    what: "OutputReduceToCollection",
    send: (name) => deploy({ OutputReduceToCollection: name }),
  },
  {
    what: "PatternReferencesCollectionName",
    send: (name) =>
      deploy({
        OutputReduceToCollection: "Outs",
        PatternForOutputReduceToCollectionReferences: "out/{Name}",
        PatternReferencesCollectionName: name,
      }),
  },
];

function deploy(more: object): Promise<Reply> {
  return client.send("PUT admin/indexes", {
    Indexes: [
      {
        Name: "Keeps/ByName",
        Maps: ["map('Keeps', d => ({ Name: 'a', Count: 1 }))"],
        Reduce: "groupBy(x => x.Name).aggregate(g => ({ Name: g.key, Count: g.values.length }))",
        Type: "JavaScriptMapReduce",
        ...more,
      },
    ],
  });
}

const at = "2020-01-01T00:00:00.0000000Z";

const others: readonly Way[] = [
  { what: "an id of a document", send: (name) => bulk({ Type: "PUT", Id: name, Document: {} }) },
  {
    what: "an id of a bulk insert",
    send: (name) => bulkInsert({ Type: "PUT", Id: name, Document: {} }),
  },
  { what: "an id that a script stores", send: (name) => patch("put(args.n, {})", { n: name }) },
  {
    what: "an id of a dump",
    send: (name) => importing({ Docs: [{ "@metadata": { "@id": name } }] }),
  },
  {
    what: "an identity in an id",
    send: (name) => bulk({ Type: "PUT", Id: `${name}|`, Document: {} }),
  },
  { what: "identity/next", send: (name) => sendAddress("POST identity/next?name=", name) },
  {
    what: "identity/seed",
    send: (name) => sendAddress("POST identity/seed?name=", name, "&value=5"),
  },
  {
    what: "an identity of a dump",
    isCounted: true,
    send: (name) => importing({ Identities: [{ Key: name, Value: "3" }] }),
  },
  { what: "hilo", send: (name) => sendAddress("GET hilo/next?tag=", name) },
  {
    what: "a counter",
    send: (name) =>
      client.send("POST counters", {
        Documents: [
          {
            DocumentId: "keep/1",
            Operations: [{ Type: "Increment", CounterName: name, Delta: 1 }],
          },
        ],
      }),
  },
  {
    what: "a counter of a script",
    send: (name) => patch("incrementCounter(this, args.n, 1)", { n: name }),
  },
  {
    what: "a counter of a dump",
    send: (name) =>
      importing({ CounterGroups: [{ DocId: "keep/1", Values: { "@vals": { [name]: [1, 1] } } }] }),
  },
  {
    what: "a time series",
    send: (name) =>
      client.send("POST timeseries?docId=keep/1", {
        Name: name,
        Appends: [{ Timestamp: at, Values: [1] }],
      }),
  },
  {
    what: "a time series of a bulk insert",
    send: (name) =>
      bulkInsert({
        Id: "keep/1",
        Type: "TimeSeriesBulkInsert",
        TimeSeries: { Name: name, TimeFormat: "UnixTimeInMs", Appends: [[1, 1, 1]] },
      }),
  },
  {
    what: "a time series of a script",
    send: (name) => patch("timeseries(this, args.n).append(new Date(0), 1)", { n: name }),
  },
  {
    what: "an incremental series of a script",
    send: (name) =>
      patch("timeseries(this, args.n).increment(new Date(0), 1)", { n: `INC:${name}` }),
  },
  {
    what: "an attachment",
    send: (name) => {
      const text = inAddress(name);
      return text === null
        ? null
        : client.send(`PUT attachments?id=keep/1&name=${text}`, "content");
    },
  },
  {
    what: "a compare-exchange value",
    send: (name) => sendAddress("PUT cmpxchg?key=", name, "&index=0", { Object: 1 }),
  },
  {
    what: "a compare-exchange value of a cluster-wide batch",
    send: (name) =>
      client.send("POST bulk_docs", {
        Commands: [{ Type: "CompareExchangePUT", Id: name, Document: { Object: 1 }, Index: 0 }],
        TransactionMode: "ClusterWide",
      }),
  },
  {
    what: "a compare-exchange value of a dump",
    isCounted: true,
    send: (name) => importing({ CompareExchange: [{ Key: name, Value: '{"Object":1}' }] }),
  },
  {
    what: "a subscription",
    send: (name) => client.send("PUT subscriptions", { Name: name, Query: "from Keeps" }),
  },
  { what: "an index", send: (name) => deploy({ Name: name }) },
];

/** @throws AssertionError unless the database serves reads and writes */
async function expectServing(): Promise<void> {
  expect((await client.send("GET docs?id=keep/1")).status).toBe(200);
  expect((await put("keep/2", inCollection("Keeps"))).status).toBe(201);
}

describe.each(badNames)("a name with %s", (_what, name) => {
  test.each([...collections, ...others])("is rejected as $what", async ({ send, isCounted }) => {
    const reply = await send(name);
    if (reply === null) return;
    if (isCounted && isWhole(name) && reply.status === 200) {
      expect(reply.text).toContain('"ErroredCount":1');
      return;
    }
    expect({ status: reply.status, text: reply.text.slice(0, 300) }).toMatchObject({
      status: expect.toSatisfy((status: number) =>
        isWhole(name) ? status >= 400 && status < 500 : status < 500,
      ),
    });
    if (reply.status >= 400) {
      expect(reply.text.length).toBeLessThan(5000);
      expect(JSON.parse(reply.text)).toMatchObject({ Error: expect.any(String) });
    }
    await expectServing();
  });
});

describe("invalid values", () => {
  test.each([
    ["no @id", { x: 1, "@metadata": {} }],
    ["an empty @id", { "@metadata": { "@id": "" } }],
    ["an @id that is not a string", { "@metadata": { "@id": 5 } }],
    ["an @id that is null", { "@metadata": { "@id": null } }],
    ["no metadata", { x: 1 }],
    ["metadata that is not an object", { "@metadata": [] }],
    ["a control character in its @id", { "@metadata": { "@id": "a\u0000b" } }],
    [
      "a time before 1970",
      { "@metadata": { "@id": "t/1", "@last-modified": "0001-01-01T00:00:00Z" } },
    ],
  ])("a document or revision of a dump with %s", async (_what, document) => {
    const vector = { "@change-vector": "A:1-AAAAAAAAAAAAAAAAAAAAAA" };
    const { "@metadata": metadata } = document as { "@metadata"?: object };
    const revision = { ...document, "@metadata": { ...metadata, ...vector } };
    for (const dump of [{ Docs: [document] }, { RevisionDocuments: [revision] }]) {
      const reply = await importing(dump);
      expect([reply.status, reply.text.slice(0, 200)]).toEqual([400, expect.any(String)]);
      await expectServing();
    }
  });

  test("a change vector too long for a record", async () => {
    const entry = `A:${"1".repeat(15)}-AAAAAAAAAAAAAAAAAAAAAA`;
    const vector = Array.from({ length: 2000 }, () => entry).join(", ");
    const metadata = { "@id": "v/1", "@change-vector": vector };
    const reply = await importing({ RevisionDocuments: [{ "@metadata": metadata }] });
    expect(reply.json).toMatchObject({ RevisionDocuments: { ErroredCount: 1 } });
    await expectServing();
  });

  test.each(["NaN", "Infinity", "-Infinity", "1e400", "-1e400"])(
    "a counter's delta of %s",
    async (delta) => {
      const operations = `{"Documents":[{"DocumentId":"keep/1","Operations":[{"Type":"Increment","CounterName":"n","Delta":`;
      for (const sent of [JSON.stringify(delta), delta]) {
        const reply = await client.send("POST counters", `${operations}${sent}}]}]}`);
        expect([sent, reply.status]).toEqual([sent, 400]);
      }
      const script = await patch(`incrementCounter(this, 'n', ${delta})`, {});
      expect(script.status).toBe(400);
      expect(script.text).toContain("finite number");
      await expectServing();
    },
  );

  test("a delta with very many digits is clamped to the range, at no cost", async () => {
    const digits = "9".repeat(2_000_000);
    const body = `{"Documents":[{"DocumentId":"keep/1","Operations":[{"Type":"Increment","CounterName":"many","Delta":"-${digits}"}]}]}`;
    const reply = await client.send("POST counters", body);
    expect(reply.status).toBe(200);
    expect(reply.text).toContain("-9223372036854775808");
  });

  test.each([
    ["before the year 1", "new Date(-62135596800001)"],
    ["after the year 9999", "new Date(253402300800000)"],
    ["at the maximum timestamp", "new Date(8640000000000000)"],
    ["in the year 0", "'0000'"],
  ])("a time series timestamp %s, in a script", async (_what, time) => {
    for (const call of [
      `timeseries(this, 's').append(${time}, 1)`,
      `timeseries(this, 'INC:s').increment(${time}, 1)`,
    ]) {
      const reply = await patch(call, {});
      expect([reply.status, reply.text]).toEqual([400, expect.stringContaining("years 1 to 9999")]);
    }
    // A range may be wider than all timestamps.
    await patch("timeseries(this, 's').append('2020', 1)", {});
    for (const call of ["get", "delete"]) {
      const reply = await patch(`timeseries(this, 's').${call}(${time}, ${time})`, {});
      expect(reply.status).toBe(200);
    }
    await expectServing();
  });

  test.each(["-0001-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "0000-12-31T23:59:59.9999999Z"])(
    "a time series timestamp of %s, over HTTP",
    async (Timestamp) => {
      const sent = { Name: "h", Appends: [{ Timestamp, Values: [1] }] };
      expect((await client.send("POST timeseries?docId=keep/1", sent)).status).toBe(400);
      const bulkReply = await bulkInsert({
        Id: "keep/1",
        Type: "TimeSeriesBulkInsert",
        TimeSeries: { Name: "h", Appends: [[Date.UTC(10_000, 0, 1), 1, 1]] },
      });
      expect(bulkReply.status).toBe(400);
      const range = `from=${encodeURIComponent(Timestamp)}&to=`;
      const read = await client.send(`GET timeseries?docId=keep/1&name=h&${range}`);
      expect([400, 404]).toContain(read.status);
      await expectServing();
    },
  );

  test("a range that ends in the year 9999 can be read", async () => {
    const body = { Name: "r", Appends: [{ Timestamp: at, Values: [1] }] };
    expect((await client.send("POST timeseries?docId=keep/1", body)).status).toBe(204);
    const last = "9999-12-31T23:59:59.9999999Z";
    for (const range of [`from=${last}&to=${last}`, `from=${last}`, `to=${last}`]) {
      const reply = await client.send(`GET timeseries?docId=keep/1&name=r&${range}`);
      expect(reply.status).toBe(200);
    }
  });

  test("a revision listed twice is deleted once", async () => {
    await client.send("POST admin/revisions/config", {
      Default: null,
      Collections: { Keeps: { Disabled: false } },
    });
    for (const x of [1, 2]) await put("rev/1", { x, "@metadata": { "@collection": "Keeps" } });
    const { Results } = (await client.json("GET revisions?id=rev/1")) as {
      Results: { "@metadata": { "@change-vector": string } }[];
    };
    const vector = Results[0]?.["@metadata"]["@change-vector"];
    const reply = await client.send("DELETE admin/revisions", {
      DocumentIds: ["rev/1"],
      RevisionsChangeVectors: [vector, vector],
      RemoveForceCreatedRevisions: true,
    });
    expect([reply.status, reply.json]).toEqual([200, { TotalDeletes: 1 }]);
    await expectServing();
  });
});

test("accepted data exists after the database is reopened, and rejected data does not", async () => {
  const { config, databases } = client.server.running.services;
  const database = openedDatabase((await databases.find("db")) as Database);
  expect(client.server.errors).toEqual([]);
  database.checkInvariants();
  await database.flush();
  const picture = pictureOf(database);
  const copy = await newTestFolder();
  const from = join(config.dataFolder, "Databases", "db");
  cpSync(from, copy, { recursive: true, filter: (path) => !/\bLOCK[^/]*$/.test(path) });
  const again = await OpenDatabase.open(nodeEnvironment(), "db", copy, {
    log: { mustExist: true },
  });
  try {
    again.checkInvariants();
    expect(pictureOf(again)).toEqual(picture);
    for (const [key] of again.state.keyspaces.collections.records.withPrefix("")) {
      expect(Buffer.byteLength(key)).toBeLessThanOrEqual(nameBytesMax);
    }
  } finally {
    await again.abandon();
  }
});
