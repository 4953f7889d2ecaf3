/** The official client of version 5.4: a sample of each feature. */
import {
  ConfigureExpirationOperation,
  ConfigureRevisionsOperation,
  CreateDatabaseOperation,
  DeleteByQueryOperation,
  DeleteDatabasesOperation,
  type DocumentStore,
  GetCompareExchangeValueOperation,
  GetDatabaseNamesOperation,
  GetStatisticsOperation,
  NextIdentityForOperation,
  PatchByQueryOperation,
  PutCompareExchangeValueOperation,
  RevisionsCollectionConfiguration,
  RevisionsConfiguration,
} from "ravendb-5.4";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { closeStores, openOlderStore, startServer, ways } from "../support/client-store.ts";

class User {
  id?: string;
  name: string;
  age: number;
  friend: string | null;
  constructor(name: string, age = 1, friend: string | null = null) {
    this.name = name;
    this.age = age;
    this.friend = friend;
  }
}

afterAll(closeStores);

describe.each(ways)("the client of 5.4 $name", (way) => {
  let store: DocumentStore;
  beforeAll(async () => {
    store = await openOlderStore(await startServer(way));
    const session = store.openSession();
    await session.store(new User("Ann", 30, "users/b"), "users/a");
    await session.store(new User("Bob", 20), "users/b");
    await session.saveChanges();
  });

  test("loads, includes, loads lazily and conditionally", async () => {
    const session = store.openSession();
    const ann = (await session.include("friend").load<User>("users/a", User)) as User;
    expect((await session.load<User>("users/b", User))?.name).toBe("Bob");
    expect(session.advanced.numberOfRequests).toBe(1);
    const vector = session.advanced.getChangeVectorFor(ann);
    const fresh = store.openSession();
    const same = await fresh.advanced.conditionalLoad<User>("users/a", vector, User);
    expect(same.entity).toBeNull();
    const lazily = fresh.advanced.lazily.load<User>("users/a", User);
    const nobody = fresh.advanced.lazily.load<User>("users/none", User);
    expect((await lazily.getValue())?.name).toBe("Ann");
    expect(await nobody.getValue()).toBeNull();
    expect(await session.load("users/none")).toBeNull();
  });

  test("stores under ids of every type, and rejects outdated versions", async () => {
    const session = store.openSession();
    const users = [new User("a"), new User("b"), new User("c")] as const;
    await session.store(users[0]);
    await session.store(users[1], "users/");
    await session.store(users[2], "people|");
    await session.saveChanges();
    expect(users[0].id).toMatch(/^users\/\d+-A$/);
    expect(users[1].id).toMatch(/^users\/\d{19}-A$/);
    expect(users[2].id).toBe("people/1");
    expect(await store.maintenance.send(new NextIdentityForOperation("people|"))).toBe(2);
    const one = store.openSession();
    one.advanced.useOptimisticConcurrency = true;
    const mine = (await one.load<User>("people/1", User)) as User;
    users[2].name = "changed";
    await session.saveChanges();
    mine.name = "mine";
    await expect(one.saveChanges()).rejects.toMatchObject({ name: "ConcurrencyException" });
    await session.delete("people/1");
    await session.saveChanges();
    expect(await session.advanced.exists("people/1")).toBe(false);
  });

  test("queries, streams, patches and deletes", async () => {
    const insert = store.bulkInsert();
    for (let i = 0; i < 20; i++) await insert.store(new User(`bulk ${i}`, i), `bulk/${i}`);
    await insert.countersFor("bulk/1").increment("likes", 3);
    await insert.finish();
    const session = store.openSession();
    const grown = () =>
      session.query<User>(User).whereStartsWith("name", "bulk").waitForNonStaleResults();
    expect(await grown().whereGreaterThan("age", 9).count()).toBe(10);
    const paged = await grown().orderBy("age", "Long").skip(2).take(2).all();
    expect(paged.map(({ age }) => age)).toEqual([2, 3]);
    let streamed = 0;
    const all = session.query<User>(User).whereStartsWith("name", "bulk");
    for await (const _row of await session.advanced.stream(all)) streamed++;
    expect(streamed).toBe(20);
    const patch = "from Users where startsWith(id(), 'bulk/') update { this.age += 100; }";
    await (await store.operations.send(new PatchByQueryOperation(patch))).waitForCompletion();
    const fresh = store.openSession();
    fresh.advanced.increment("bulk/1", "age", 1);
    await fresh.saveChanges();
    expect((await fresh.load<User>("bulk/1", User))?.age).toBe(102);
    const deletion = new DeleteByQueryOperation("from Users where startsWith(id(), 'bulk/1')");
    await (await store.operations.send(deletion)).waitForCompletion();
    expect(await grown().count()).toBe(9);
  });

  test("keeps attachments, counters, time series and revisions", async () => {
    const rule = new RevisionsCollectionConfiguration();
    const configuration = new RevisionsConfiguration();
    configuration.collections = new Map([["Users", rule]]);
    await store.maintenance.send(new ConfigureRevisionsOperation(configuration));
    const session = store.openSession();
    await session.store(new User("full"), "users/full");
    session.advanced.attachments.store("users/full", "note", Buffer.from("hello"), "text/plain");
    session.countersFor("users/full").increment("likes", 2);
    session.timeSeriesFor("users/full", "Heart").append(new Date(), 60);
    await session.saveChanges();
    const reader = store.openSession();
    const note = await reader.advanced.attachments.get("users/full", "note");
    expect(note?.details).toMatchObject({ contentType: "text/plain", size: 5 });
    note?.dispose();
    expect(await reader.countersFor("users/full").getAll()).toEqual({ likes: 2 });
    expect(await reader.timeSeriesFor("users/full", "Heart").get()).toHaveLength(1);
    expect(await reader.advanced.revisions.getCountFor("users/full")).toBeGreaterThan(0);
  });

  test("exchanges values, and commits cluster-wide", async () => {
    const put = new PutCompareExchangeValueOperation("key", { a: 1 }, 0);
    expect((await store.operations.send(put)).successful).toBe(true);
    const get = new GetCompareExchangeValueOperation<{ a: number }>("key");
    expect((await store.operations.send(get)).value.a).toBe(1);
    const session = store.openSession({ transactionMode: "ClusterWide" });
    await session.store(new User("wide"), "users/wide");
    session.advanced.clusterTransaction.createCompareExchangeValue("wide", "users/wide");
    await session.saveChanges();
    const found = await store.openSession().load<User>("users/wide", User);
    expect(found?.name).toBe("wide");
  });

  test("creates databases and configures them", async () => {
    const { server } = store.maintenance;
    await server.send(new CreateDatabaseOperation({ databaseName: "older" }));
    expect(await server.send(new GetDatabaseNamesOperation(0, 50))).toContain("older");
    await server.send(new DeleteDatabasesOperation({ databaseNames: ["older"], hardDelete: true }));
    expect(await server.send(new GetDatabaseNamesOperation(0, 50))).not.toContain("older");
    const expiration = new ConfigureExpirationOperation({ disabled: true } as never);
    await store.maintenance.send(expiration);
    const statistics = await store.maintenance.send(new GetStatisticsOperation());
    expect(statistics.countOfDocuments).toBeGreaterThan(0);
  });
});
