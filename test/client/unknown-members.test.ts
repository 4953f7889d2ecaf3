/**
 * Replies have members beyond those of RavenDB: `hint` of errors, `Reached`, `IsPaused` and
 * `MaxOpsPerSec` of operations, and later versions will add more. The official clients must ignore
 * them everywhere.
 */
import * as current from "ravendb";
import * as older from "ravendb-5.4";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type AddingProxy, startAddingProxy } from "../support/adding-proxy.ts";
import { startTestServer, stopTestServers, type TestServer } from "../support/start-test-server.ts";

class Item {
  id?: string;
  n: number;
  constructor(n = 0) {
    this.n = n;
  }
}

const added = {
  hint: "A sentence.",
  Reached: { Changed: 1 },
  MaxOpsPerSec: 5,
  IsPaused: false,
  Unheard: { Of: [1, { a: null }] },
};

let server: TestServer;
let proxy: AddingProxy;
beforeAll(async () => {
  server = await startTestServer({ unsecured: true });
  proxy = await startAddingProxy(server.url, added);
});
afterAll(async () => {
  proxy.close();
  await stopTestServers();
});

describe.each([
  ["7.2", current],
  ["5.4", older as unknown as typeof current],
])("members unknown to the client of %s", (version, client) => {
  const database = `unknown-${version}`;
  let store: current.DocumentStore;
  beforeAll(async () => {
    await server.running.services.databases.create(database, { DatabaseName: database });
    store = new client.DocumentStore(proxy.url, database);
    store.conventions.disableTopologyUpdates = true;
    store.initialize();
    const session = store.openSession();
    for (const n of [1, 2, 3]) await session.store(new Item(n), `items/${n}`);
    await session.saveChanges();
  });
  afterAll(() => store.dispose());

  /** Whether recent replies had added members. */
  const wasChanged = (reply: RegExp) => proxy.changed.some((one) => reply.test(one));

  test("do not affect loads, lists and counts", async () => {
    const session = store.openSession();
    expect((await session.load<Item>("items/1", Item))?.n).toBe(1);
    const loaded = await session.load<Item>(["items/2", "items/none"], Item);
    expect([loaded["items/2"]?.n, loaded["items/none"]]).toEqual([2, null]);
    const listed = await session.advanced.loadStartingWith<Item>("items/", { documentType: Item });
    expect(listed.map(({ n }) => n)).toEqual([1, 2, 3]);
    const lazily = store.openSession().advanced.lazily.load<Item>("items/3", Item);
    expect((await lazily.getValue())?.n).toBe(3);
    const statistics = await store.maintenance.send(new client.GetStatisticsOperation());
    expect(statistics.countOfDocuments).toBe(3);
    expect(wasChanged(/^200 .*\/docs$/) && wasChanged(/^200 .*\/multi_get$/)).toBe(true);
  });

  test("do not affect the results of queries and writes", async () => {
    const session = store.openSession();
    const query = session.query<Item>(Item).whereGreaterThan("n", 1).waitForNonStaleResults();
    const reported: current.QueryStatistics[] = [];
    const found = await query.statistics((statistics) => void reported.push(statistics)).all();
    expect([found.map(({ n }) => n).sort(), reported[0]?.totalResults]).toEqual([[2, 3], 2]);
    const [first] = found;
    if (first !== undefined) first.n += 10;
    await session.saveChanges();
    expect((await store.openSession().load<Item>(first?.id ?? "", Item))?.n).toBe(first?.n);
    expect(wasChanged(/^200 .*\/queries$/) && wasChanged(/^201 .*\/bulk_docs$/)).toBe(true);
  });

  test("do not affect the states of operations", async () => {
    const patch = "from Items update { this.seen = true }";
    const operation = await store.operations.send(new client.PatchByQueryOperation(patch));
    await operation.waitForCompletion();
    const session = store.openSession();
    expect(await session.load("items/1")).toMatchObject({ n: 1, seen: true });
    expect(wasChanged(/^200 .*\/operations\/state$/)).toBe(true);
  });

  test("do not affect error messages", async () => {
    const failed = async (work: Promise<unknown>) => {
      const error = await work.then(
        () => undefined,
        (reason: Error) => reason,
      );
      return [error?.name, error?.message.split("\n")[0]] as const;
    };
    const session = store.openSession();
    const [name, message] = await failed(session.advanced.rawQuery("from Items where").all());
    expect([name, message]).toEqual([
      "RavenException",
      "Raven.Server.Documents.Queries.Parser.QueryParser+ParseException: 1:17 Unable to parse WHERE clause but got to the end of the query",
    ]);
    const stale = await session.load<Item>("items/1", Item);
    const other = store.openSession();
    const one = await other.load<Item>("items/1", Item);
    if (one !== null) one.n = 100;
    await other.saveChanges();
    if (stale !== null) stale.n = 200;
    session.advanced.useOptimisticConcurrency = true;
    expect((await failed(session.saveChanges()))[0]).toBe("ConcurrencyException");
    const missing = new client.GetIndexOperation("none");
    expect(await store.maintenance.send(missing)).toBeUndefined();
    expect(wasChanged(/^4\d\d .*\/queries$/) && wasChanged(/^409 .*\/bulk_docs$/)).toBe(true);
  });
});
