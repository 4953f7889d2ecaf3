/** Abuse of transactions: many changes at once, of every kind. See `run-abuse.ts` for how a case is written. */
import assert from "node:assert/strict";
import { type AbuseCase, assertRefused } from "./abuse-case.ts";
import type { AbuseServer, Reply } from "./abuse-server.ts";

const area = "batches";
const day = Date.parse("2026-01-01T00:00:00.000Z");

type Command = Readonly<Record<string, unknown>>;

/** @returns the results of `make` for 0 to `count` - 1 */
function many<Item>(count: number, make: (n: number) => Item): Item[] {
  return Array.from({ length: count }, (_, n) => make(n));
}

async function postBatch(
  server: AbuseServer,
  commands: readonly Command[],
  mode?: string,
): Promise<Reply[]> {
  const body = JSON.stringify({ Commands: commands, TransactionMode: mode });
  return [await server.request(`${server.database}/bulk_docs`, { method: "POST", body })];
}

/** Sends all commands of a bulk insert in one request body. */
async function bulkInsert(server: AbuseServer, commands: readonly Command[]): Promise<Reply[]> {
  const path = `${server.database}/bulk_insert?id=${Math.floor(performance.now())}`;
  return [await server.request(path, { method: "POST", body: JSON.stringify(commands) })];
}

function assertDone([reply]: readonly Reply[]): void {
  assert.ok(
    reply !== undefined && reply.status >= 200 && reply.status < 300,
    `${reply?.status} ${reply?.text.slice(0, 300)}`,
  );
}

const text = "x".repeat(2000);

function users(server: AbuseServer, count: number): Promise<void> {
  return server.fill(count, (n) => `{"N":${n},"Text":"${text.slice(0, 200)}"}`);
}

function increments(count: number): Command[] {
  return many(count, (n) => ({ Type: "Increment", CounterName: `likes${n}`, Delta: 1 }));
}

function appends(count: number): Command[] {
  return many(count, (n) => ({
    Timestamp: new Date(day + n * 1000).toISOString(),
    Values: [n, n + 1],
    Tag: "watches/1",
  }));
}

const batches: readonly AbuseCase[] = [
  {
    name: "a batch of 20,000 documents of 2 KB",
    area,
    gap: "the images of its segments stay in the cache of records: 160 MB after three batches of 40 MB",
    who: "writer",
    attack: (server) =>
      postBatch(
        server,
        many(server.count(20_000, 8_000), (n) => ({
          Type: "PUT",
          Id: `a/${n}`,
          Document: { N: n, Text: text, "@metadata": { "@collection": "As" } },
        })),
      ),
    check: assertDone,
  },
  {
    name: "a batch of 25,000 documents that change all the time, in a database with revisions",
    area,
    who: "writer",
    async setUp(server) {
      await server.ask(`${server.database}/admin/revisions/config`, {
        method: "POST",
        body: JSON.stringify({ Default: { Disabled: false } }),
      });
    },
    attack: (server) =>
      postBatch(
        server,
        many(server.count(25_000, 8_000), (n) => ({
          Type: "PUT",
          Id: `a/${n}`,
          Document: { N: Math.random(), Text: text.slice(0, 200) },
        })),
      ),
    check: assertDone,
  },
  {
    name: "a batch of 20,000 patches",
    area,
    who: "writer",
    setUp: (server) => users(server, 20_000),
    attack: (server) =>
      postBatch(
        server,
        many(server.count(20_000, 5_000), (n) => ({
          Type: "PATCH",
          Id: `users/${n}`,
          Patch: { Script: "this.N = this.N + args.By", Values: { By: n } },
        })),
      ),
    check: assertDone,
  },
  {
    name: "a batch of 500 patches of 10 ms",
    area,
    who: "writer",
    setUp: (server) => users(server, 500),
    attack: (server) =>
      postBatch(
        server,
        many(server.count(500, 100), (n) => ({
          Type: "PATCH",
          Id: `users/${n}`,
          Patch: { Script: "for (var i = 0; i < 3000; i++) this.N = this.N + i", Values: {} },
        })),
      ),
    check: assertDone,
  },
  {
    name: "a patch of 20,000 documents by one command",
    area,
    who: "writer",
    setUp: (server) => users(server, 20_000),
    attack: (server) =>
      postBatch(server, [
        {
          Type: "BatchPATCH",
          Ids: many(server.count(20_000, 5_000), (n) => ({ Id: `users/${n}` })),
          Patch: { Script: "this.N = this.N + 1", Values: {} },
        },
      ]),
    check: assertDone,
  },
  {
    name: "a batch of 20,000 deletions",
    area,
    who: "writer",
    setUp: (server) => users(server, 20_000),
    attack: (server) =>
      postBatch(
        server,
        many(20_000, (n) => ({ Type: "DELETE", Id: `users/${n}` })),
      ),
    check: assertDone,
  },
  {
    name: "a deletion of 25,000 documents by their prefix",
    area,
    who: "writer",
    async attack(server) {
      await users(server, server.count(25_000, 10_000));
      return postBatch(server, [{ Type: "DELETE", Id: "users/", IdPrefixed: true }]);
    },
    check: assertDone,
  },
  {
    name: "deletions of 100,000 documents by their prefix",
    area,
    who: "writer",
    setUp: (server) => users(server, server.count(100_000, 30_000)),
    async attack(server) {
      const replies: Reply[] = [];
      for (let n = 0; n < 5; n++) {
        const command = { Type: "DELETE", Id: "users/", IdPrefixed: true };
        replies.push(...(await postBatch(server, [command])));
      }
      return replies;
    },
    check: (replies) => {
      for (const reply of replies) assertRefused(reply, [413], /by query/);
    },
  },
  {
    name: "a batch of 20,000 counters",
    area,
    who: "writer",
    setUp: (server) => users(server, 20_000),
    attack: (server) =>
      postBatch(
        server,
        many(server.count(20_000, 5_000), (n) => ({
          Type: "Counters",
          Id: `users/${n}`,
          Counters: { DocumentId: `users/${n}`, Operations: increments(1) },
        })),
      ),
    check: assertDone,
  },
  {
    name: "a command of 50,000 counters",
    area,
    who: "writer",
    setUp: (server) => users(server, 10),
    attack: (server) =>
      postBatch(server, [
        {
          Type: "Counters",
          Id: "users/1",
          Counters: { DocumentId: "users/1", Operations: increments(server.count(50_000, 10_000)) },
        },
      ]),
    check: assertDone,
  },
  {
    name: "a request of 50,000 counters",
    area,
    who: "writer",
    setUp: (server) => users(server, 10),
    attack: async (server) => {
      const Operations = increments(server.count(50_000, 10_000));
      const body = JSON.stringify({ Documents: [{ DocumentId: "users/1", Operations }] });
      return [await server.request(`${server.database}/counters`, { method: "POST", body })];
    },
    check: assertDone,
  },
  {
    name: "a batch of 20,000 time series",
    area,
    who: "writer",
    setUp: (server) => users(server, 20_000),
    attack: (server) =>
      postBatch(
        server,
        many(server.count(20_000, 5_000), (n) => ({
          Type: "TimeSeries",
          Id: `users/${n}`,
          TimeSeries: { Name: "Heartrate", Appends: appends(2) },
        })),
      ),
    check: assertDone,
  },
  {
    name: "a time series of 100,000 entries in one command",
    area,
    who: "writer",
    setUp: (server) => users(server, 10),
    attack: (server) =>
      postBatch(server, [
        {
          Type: "TimeSeries",
          Id: "users/1",
          TimeSeries: { Name: "Heartrate", Appends: appends(server.count(100_000, 20_000)) },
        },
      ]),
    check: assertDone,
  },
  {
    name: "a cluster-wide batch of 20,000 documents",
    area,
    who: "writer",
    attack: (server) =>
      postBatch(
        server,
        many(server.count(20_000, 5_000), (n) => ({
          Type: "PUT",
          Id: `a/${Math.random()}`,
          Document: { N: n, Text: text.slice(0, 200) },
        })),
        "ClusterWide",
      ),
    check: assertDone,
  },
  {
    name: "a batch whose last of 20,000 commands fails",
    area,
    who: "writer",
    attack: (server) =>
      postBatch(server, [
        ...many(server.count(20_000, 5_000), (n) => ({
          Type: "PUT",
          Id: "a|",
          Document: { N: n },
        })),
        { Type: "DELETE", Id: "a", ChangeVector: "A:1-x" },
      ]),
    check: ([reply]) => assertRefused(reply, [409], /change vector/i),
  },
  {
    name: "ten batches of 5,000 documents at once",
    area,
    who: "writer",
    attack: async (server) => {
      const all = await Promise.all(
        many(10, (batch) =>
          postBatch(
            server,
            many(5_000, (n) => ({ Type: "PUT", Id: `a/${batch}/${n}`, Document: { N: n } })),
          ),
        ),
      );
      return all.flat();
    },
    check: (replies) => {
      for (const reply of replies) assertDone([reply]);
    },
  },
];

const streams: readonly AbuseCase[] = [
  {
    name: "a bulk insert of 200,000 tiny documents",
    area,
    who: "writer",
    attack: (server) =>
      bulkInsert(
        server,
        many(server.count(200_000, 50_000), (n) => ({ Id: `a/${n}`, Type: "PUT", Document: {} })),
      ),
    check: assertDone,
  },
  {
    name: "a bulk insert of 50,000 counters in one command",
    area,
    who: "writer",
    setUp: (server) => users(server, 10),
    attack: (server) =>
      bulkInsert(server, [
        {
          Type: "Counters",
          Id: "users/1",
          Counters: { DocumentId: "users/1", Operations: increments(server.count(50_000, 10_000)) },
        },
      ]),
    check: assertDone,
  },
  {
    name: "a bulk insert of 100,000 entries of a time series in one command",
    area,
    who: "writer",
    setUp: (server) => users(server, 10),
    attack: (server) =>
      bulkInsert(server, [
        {
          Type: "TimeSeriesBulkInsert",
          Id: "users/1",
          TimeSeries: {
            Name: "Heartrate",
            TimeFormat: "UnixTimeInMs",
            Appends: many(server.count(100_000, 20_000), (n) => [day + n * 1000, 1, n]),
          },
        },
      ]),
    check: assertDone,
  },
  {
    name: "an import of 100,000 tiny documents",
    area,
    who: "writer",
    async attack(server) {
      const Docs = many(server.count(100_000, 20_000), (n) => ({
        N: n,
        "@metadata": { "@id": `a/${n}` },
      }));
      const form = new FormData();
      form.set("importOptions", "{}");
      form.set("file", new Blob([JSON.stringify({ BuildVersion: 60_000, Docs })]), "a.ravendbdump");
      const encoded = new Response(form);
      const body = Buffer.from(await encoded.arrayBuffer());
      const headers = { "Content-Type": encoded.headers.get("content-type") ?? "" };
      const path = `${server.database}/smuggler/import`;
      return [await server.request(path, { method: "POST", headers, body })];
    },
    check: assertDone,
  },
  {
    name: "multi_get of 25,000 small requests",
    area,
    who: "reader",
    setUp: (server) => users(server, 100),
    async attack(server) {
      const Requests = many(server.count(25_000, 10_000), (n) => ({
        Url: `${server.database}/docs`,
        Query: `?id=users/${n % 100}`,
      }));
      const body = JSON.stringify({ Requests });
      return [await server.request(`${server.database}/multi_get`, { method: "POST", body })];
    },
    check: assertDone,
  },
];

export const batchCases: readonly AbuseCase[] = [...batches, ...streams];
