/** The official client's store: databases, statistics, configuration, identities and bulk insert. */
import {
  CreateDatabaseOperation,
  DeleteDatabasesOperation,
  type DocumentStore,
  GetBuildNumberOperation,
  GetClientConfigurationOperation,
  GetCollectionStatisticsOperation,
  GetDatabaseNamesOperation,
  GetDatabaseRecordOperation,
  GetIdentitiesOperation,
  GetIndexNamesOperation,
  GetStatisticsOperation,
  NextIdentityForOperation,
  PutClientConfigurationOperation,
  SeedIdentityForOperation,
  ToggleDatabasesStateOperation,
  UpdateDatabaseOperation,
} from "ravendb";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { closeStores, openStore, startServer, ways } from "../support/client-store.ts";

class User {
  id?: string;
  name: string;
  constructor(name: string) {
    this.name = name;
  }
}

afterAll(closeStores);

describe.each(ways)("a store $name", (way) => {
  let store: DocumentStore;
  beforeAll(async () => {
    store = await openStore(await startServer(way));
  });

  test("creates, lists, changes, disables and deletes databases", async () => {
    const { server } = store.maintenance;
    await server.send(new CreateDatabaseOperation({ databaseName: "Made" }));
    await expect(
      server.send(new CreateDatabaseOperation({ databaseName: "made" })),
    ).rejects.toMatchObject({ name: "ConcurrencyException" });
    expect(await server.send(new GetDatabaseNamesOperation(0, 100))).toContain("Made");
    const record = await server.send(new GetDatabaseRecordOperation("Made"));
    record.settings = { OwnSetting: "1" };
    await server.send(new UpdateDatabaseOperation(record, record.etag));
    const changed = await server.send(new GetDatabaseRecordOperation("Made"));
    expect(changed.settings).toEqual({ OwnSetting: "1" });
    await expect(
      server.send(new UpdateDatabaseOperation(record, record.etag)),
    ).rejects.toMatchObject({ name: /Concurrency/ });
    await server.send(new ToggleDatabasesStateOperation("Made", true));
    const session = store.openSession("Made");
    await expect(session.load("users/1")).rejects.toMatchObject({
      name: "DatabaseDisabledException",
    });
    await server.send(new ToggleDatabasesStateOperation("Made", false));
    expect(await store.openSession("Made").load("users/1")).toBeNull();
    await server.send(new DeleteDatabasesOperation({ databaseNames: ["Made"], hardDelete: true }));
    expect((await server.send(new GetDatabaseRecordOperation("Made"))) ?? null).toBeNull();
    await expect(store.openSession("Made").load("users/1")).rejects.toMatchObject({
      name: "DatabaseDoesNotExistException",
    });
    const build = await server.send(new GetBuildNumberOperation());
    expect(build.productVersion).toMatch(/^\d+\.\d+$/);
  });

  test("returns statistics", async () => {
    const session = store.openSession();
    await session.store(new User("Ann"), "users/1");
    await session.saveChanges();
    await session.query(User).whereEquals("name", "Ann").waitForNonStaleResults().all();
    // A reopened database first checks whether its index is current.
    await vi.waitFor(async () => {
      const statistics = await store.maintenance.send(new GetStatisticsOperation());
      expect(statistics).toMatchObject({ countOfDocuments: 1, countOfIndexes: 1 });
      expect(statistics.indexes[0]).toMatchObject({ name: "Auto/Users/Byname", isStale: false });
    });
    const collections = await store.maintenance.send(new GetCollectionStatisticsOperation());
    expect(collections).toMatchObject({ countOfDocuments: 1, collections: { Users: 1 } });
    expect(await store.maintenance.send(new GetIndexNamesOperation(0, 10))).toEqual([
      "Auto/Users/Byname",
    ]);
  });

  test("counts identities", async () => {
    expect(await store.maintenance.send(new NextIdentityForOperation("orders|"))).toBe(1);
    expect(await store.maintenance.send(new SeedIdentityForOperation("orders|", 40))).toBe(40);
    expect(await store.maintenance.send(new NextIdentityForOperation("Orders|"))).toBe(41);
    expect(await store.maintenance.send(new GetIdentitiesOperation())).toEqual({ "orders|": 41 });
  });

  test("takes its configuration from the server", async () => {
    await store.maintenance.send(
      new PutClientConfigurationOperation({ maxNumberOfRequestsPerSession: 3 }),
    );
    const kept = await store.maintenance.send(new GetClientConfigurationOperation());
    expect(kept.configuration).toMatchObject({ maxNumberOfRequestsPerSession: 3 });
    const isLimited = async () => {
      await store.openSession().load("users/1");
      return store.getRequestExecutor().conventions.maxNumberOfRequestsPerSession;
    };
    await expect.poll(isLimited).toBe(3);
    await store.maintenance.send(new PutClientConfigurationOperation({ disabled: true }));
    await expect.poll(isLimited).toBe(30);
  });

  test("inserts documents in bulk, with related items", async () => {
    const insert = store.bulkInsert();
    for (let i = 0; i < 300; i++) await insert.store(new User(`bulk ${i}`), `bulk/${i}`);
    await insert.store(new User("ranged"));
    await insert.countersFor("bulk/0").increment("likes", 7);
    const series = insert.timeSeriesFor("bulk/0", "Heart");
    await series.append(new Date(Date.UTC(2024, 0, 1)), 60);
    series.dispose();
    await insert.attachmentsFor("bulk/0").store("note", Buffer.from("hello"));
    await insert.finish();
    const session = store.openSession();
    const found = await session.advanced.loadStartingWith<User>("bulk/", { pageSize: 1000 });
    expect(found).toHaveLength(300);
    expect(await session.countersFor("bulk/0").get("likes")).toBe(7);
    expect(await session.timeSeriesFor("bulk/0", "Heart").get()).toHaveLength(1);
    expect(await session.advanced.attachments.exists("bulk/0", "note")).toBe(true);
  });

  test("inserts in bulk compressed, and can be aborted", async () => {
    const compressed = store.bulkInsert({ useCompression: true });
    for (let i = 0; i < 50; i++) await compressed.store(new User(`z ${i}`), `zipped/${i}`);
    await compressed.finish();
    const listed = await store.openSession().advanced.loadStartingWith("zipped/", { pageSize: 99 });
    expect(listed).toHaveLength(50);
    const aborted = store.bulkInsert();
    await aborted.store(new User("never"), "aborted/1");
    await aborted.abort();
    expect(await store.openSession().advanced.exists("zipped/49")).toBe(true);
  });
});
