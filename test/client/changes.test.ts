/**
 * The official clients follow changes of every type, over HTTP and over mutual TLS, with both
 * supported versions.
 */

import type * as current from "ravendb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openedDatabase } from "../../engine/api/database.ts";
import { authentication, clients } from "../support/client-store.ts";
import { startTestServer, stopTestServers, type TestServer } from "../support/start-test-server.ts";

const ways = clients.flatMap(([version, client]) =>
  ([true, false] as const).map((isSecure) => ({ version, client, isSecure })),
);

let plain: TestServer;
let secure: TestServer;

beforeAll(async () => {
  plain = await startTestServer({ unsecured: true });
  secure = await startTestServer();
});
afterAll(stopTestServers);

let databases = 0;

describe.each(ways)("client $version, secure: $isSecure", ({ client, isSecure }) => {
  class User {
    name: string;
    constructor(name: string) {
      this.name = name;
    }
  }

  let store: current.DocumentStore;
  let server: TestServer;

  const open = (database: string): current.DocumentStore =>
    new client.DocumentStore(server.url, database, authentication(server));

  beforeAll(async () => {
    server = isSecure ? secure : plain;
    databases++;
    const name = `changes-${databases}`;
    await server.running.services.databases.create(name, { DatabaseName: name });
    store = open(name);
    store.initialize();
  });
  afterAll(() => store.dispose());

  /** Subscribes and waits for the server's confirmation. */
  async function gathered<Change>(
    observable: current.IChangesObservable<Change>,
  ): Promise<{ readonly all: Change[]; until(count: number): Promise<Change[]> }> {
    const all: Change[] = [];
    observable.on("data", (change) => all.push(change));
    await observable.ensureSubscribedNow();
    return {
      all,
      async until(count) {
        await expect.poll(() => all.length).toBeGreaterThanOrEqual(count);
        return all;
      },
    };
  }

  async function save(id: string, name: string): Promise<void> {
    const session = store.openSession();
    await session.store(new User(name), id);
    await session.saveChanges();
  }

  test("receives changes of one document, of a prefix, of a collection, and of all documents", async () => {
    const changes = store.changes();
    await changes.ensureConnectedNow();
    const one = await gathered(changes.forDocument("users/1"));
    const prefix = await gathered(changes.forDocumentsStartingWith("users/"));
    const collection = await gathered(changes.forDocumentsInCollection("Users"));
    const all = await gathered(changes.forAllDocuments());
    await save("users/2", "Bea");
    await save("users/1", "Ann");
    const session = store.openSession();
    await session.delete("users/1");
    await session.saveChanges();
    const seen = (list: readonly current.DocumentChange[]) =>
      list.map(({ type, id, collectionName }) => [type, id, collectionName]);
    const two = ["Put", "users/2", "Users"];
    const ann = [
      ["Put", "users/1", "Users"],
      ["Delete", "users/1", "Users"],
    ];
    expect(seen(await one.until(2))).toEqual(ann);
    expect(seen(await prefix.until(3))).toEqual([two, ...ann]);
    expect(seen(await collection.until(3))).toEqual([two, ...ann]);
    expect(seen(await all.until(3))).toEqual([two, ...ann]);
    changes.dispose();
  });

  test("receives no more after it has unsubscribed", async () => {
    const changes = store.changes();
    await changes.ensureConnectedNow();
    const heard: unknown[] = [];
    const observable = changes.forDocument("users/7");
    const listen = (change: unknown) => heard.push(change);
    observable.on("data", listen);
    await observable.ensureSubscribedNow();
    observable.off("data", listen);
    const witness = await gathered(changes.forDocument("users/8"));
    await save("users/7", "Gus");
    await save("users/8", "Hal");
    await witness.until(1);
    expect(heard).toEqual([]);
    changes.dispose();
  });

  test("receives changes of counters in every subscription", async () => {
    await save("counted/1", "Cat");
    const changes = store.changes();
    await changes.ensureConnectedNow();
    const ways = await Promise.all(
      [
        changes.forAllCounters(),
        changes.forCounter("Likes"),
        changes.forCounterOfDocument("counted/1", "Likes"),
        changes.forCountersOfDocument("counted/1"),
      ].map((observable) => gathered(observable)),
    );
    for (const delta of [5, 3]) {
      const session = store.openSession();
      session.countersFor("counted/1").increment("Likes", delta);
      await session.saveChanges();
    }
    for (const way of ways) {
      expect(await way.until(2)).toMatchObject([
        { type: "Put", name: "Likes", value: 5, documentId: "counted/1", collectionName: "Users" },
        { type: "Increment", name: "Likes", value: 8, documentId: "counted/1" },
      ]);
    }
    changes.dispose();
  });

  test("receives changes of time series in every subscription", async () => {
    await save("series/1", "Dan");
    const changes = store.changes();
    await changes.ensureConnectedNow();
    const ways = await Promise.all(
      [
        changes.forAllTimeSeries(),
        changes.forTimeSeries("Likes"),
        changes.forTimeSeriesOfDocument("series/1", "Likes"),
        changes.forTimeSeriesOfDocument("series/1"),
      ].map((observable) => gathered(observable)),
    );
    const moment = new Date(Date.UTC(2020, 0, 1, 12));
    const session = store.openSession();
    session.timeSeriesFor("series/1", "Likes").append(moment, 3);
    await session.saveChanges();
    for (const way of ways) {
      expect(await way.until(1)).toMatchObject([
        { type: "Put", name: "Likes", from: moment, to: moment, documentId: "series/1" },
      ]);
    }
    changes.dispose();
  });

  test("receives changes of indexes", async () => {
    const changes = store.changes();
    await changes.ensureConnectedNow();
    const one = await gathered(changes.forIndex("Auto/Users/Byname"));
    const all = await gathered(changes.forAllIndexes());
    const session = store.openSession();
    await session.query({ collection: "Users" }).whereEquals("name", "Bea").all();
    const seen = await one.until(2);
    expect(seen[0]).toMatchObject({ type: "IndexAdded", name: "Auto/Users/Byname" });
    expect(seen[1]).toMatchObject({ type: "BatchCompleted" });
    expect(await all.until(2)).toEqual(seen);
    changes.dispose();
  });

  test("receives the progress of operations until their end", async () => {
    await save("patched/1", "Eve");
    const changes = store.changes();
    await changes.ensureConnectedNow();
    const all = await gathered(changes.forAllOperations());
    const operation = await store.operations.send(
      new client.PatchByQueryOperation("from Users update { this.seen = true }"),
    );
    await operation.waitForCompletion();
    const isEnd = ({ state }: current.OperationStatusChange) => state.status === "Completed";
    await expect.poll(() => all.all.some(isEnd)).toBe(true);
    expect(all.all.every(({ operationId }) => operationId === all.all[0]?.operationId)).toBe(true);
    changes.dispose();
  });

  test("caches replies until a change arrives, if configured", async () => {
    await save("kept/1", "first");
    const executor = store.getRequestExecutor();
    const changes = store.changes();
    await changes.ensureConnectedNow();
    const heard = await gathered(changes.forAllDocuments());
    // Clients of other languages do this for aggressive caching.
    changes.forAllDocuments().on("data", () => executor.cache.clear());
    const nameNow = async () => (await store.openSession().load<User>("kept/1"))?.name;
    executor.aggressiveCaching = { duration: 60_000 };
    try {
      expect(await nameNow()).toBe("first");
      const database = await server.running.services.databases.find(store.database);
      if (database === undefined) throw new Error("no database");
      await openedDatabase(database).put("kept/1", {
        name: "second",
        "@metadata": { "@collection": "Users" },
      });
      await heard.until(1);
      expect(await nameNow()).toBe("second");
      // Without a change, the server is not queried.
      const requests = executor.numberOfServerRequests;
      expect(await nameNow()).toBe("second");
      expect(executor.numberOfServerRequests).toBe(requests);
    } finally {
      executor.aggressiveCaching = { duration: 0 };
      changes.dispose();
    }
  });

  test("is notified that its database was deleted", async () => {
    const name = `doomed-${databases}`;
    await server.running.services.databases.create(name, { DatabaseName: name });
    const own = open(name);
    own.initialize();
    const changes = own.changes();
    await changes.ensureConnectedNow();
    const closed = new Promise<void>((resolve) => {
      changes.on("connectionStatus", () => {
        if (!changes.connected) resolve();
      });
    });
    changes.on("error", () => undefined);
    const seen = await gathered(changes.forAllDocuments());
    // For each command that is unconfirmed at the end, the client rejects a promise without a
    // handler.
    const session = own.openSession();
    await session.store(new User("a"), "users/a");
    await session.saveChanges();
    await seen.until(1);
    await server.running.services.databases.delete(name);
    await expect.poll(() => changes.connected).toBe(false);
    changes.dispose();
    own.dispose();
    await closed;
  });
});
