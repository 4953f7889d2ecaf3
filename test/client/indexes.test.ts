/** The official clients deploy, query and administer JavaScript indexes, over HTTP and over mutual TLS, with both versions. */

import type * as current from "ravendb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
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

interface Line {
  readonly product: string;
  readonly count: number;
}

describe.each(ways)("client $version, secure: $isSecure", ({ client, isSecure }) => {
  class Order {
    company: string;
    lines: Line[];
    constructor(company: string, lines: Line[]) {
      this.company = company;
      this.lines = lines;
    }
  }

  class OrdersByProduct extends client.AbstractJavaScriptIndexCreationTask<
    Order,
    { product: string; company: string }
  > {
    constructor() {
      super();
      this.map(Order, (order) =>
        order.lines.map((line) => ({ product: line.product, company: order.company })),
      );
      this.store("company", "Yes");
      this.index("product", "Search");
    }
  }

  class OrdersByCompany extends client.AbstractJavaScriptIndexCreationTask<
    Order,
    { company: string; count: number }
  > {
    constructor() {
      super();
      this.map(Order, (order) => ({ company: order.company, count: 1 }));
      this.reduce((mapper) =>
        mapper
          .groupBy((row) => row.company)
          .aggregate((group) => ({
            company: group.key,
            count: group.values.reduce((n, row) => n + row.count, 0),
          })),
      );
    }
  }

  let store: current.DocumentStore;
  let server: TestServer;

  const open = (database: string): current.DocumentStore =>
    new client.DocumentStore(server.url, database, authentication(server));

  beforeAll(async () => {
    server = isSecure ? secure : plain;
    databases++;
    const name = `indexes-${databases}`;
    await server.running.services.databases.create(name, { DatabaseName: name });
    store = open(name);
    store.initialize();
    const session = store.openSession();
    await session.store(new Order("acme", [{ product: "red hat", count: 1 }]), "orders/1");
    await session.store(new Order("acme", [{ product: "blue sock", count: 2 }]), "orders/2");
    await session.store(new Order("umbrella", []), "orders/3");
    await session.saveChanges();
  });
  afterAll(() => store.dispose());

  test("deploys a map by its class, and queries it, projecting stored fields", async () => {
    await new OrdersByProduct().execute(store);
    const session = store.openSession();
    const found = await session
      .query<Order>({ indexName: "OrdersByProduct", documentType: Order })
      .waitForNonStaleResults()
      .search("product", "HAT")
      .all();
    expect(found.map((order) => order.company)).toEqual(["acme"]);
    const projected = await session
      .query({ indexName: "OrdersByProduct" })
      .whereEquals("product", "sock")
      .selectFields<{ company: string; lines: Line[] }>(["company", "lines"])
      .all();
    expect(projected.map(({ company, lines }) => [company, lines.length])).toEqual([["acme", 1]]);
  });

  test("deploys a map-reduce by its class, and gets reduced objects", async () => {
    await new OrdersByCompany().execute(store);
    const session = store.openSession();
    const rows = await session
      .query<{ company: string; count: number }>({ indexName: "OrdersByCompany" })
      .waitForNonStaleResults()
      .orderByDescending("count", "Long")
      .all();
    expect(rows.map(({ company, count }) => [company, count])).toEqual([
      ["acme", 2],
      ["umbrella", 1],
    ]);
  });

  test("deploys a map and a reduce in C#, and gets their results", async () => {
    class ProductTotals extends client.AbstractCsharpIndexCreationTask {
      constructor() {
        super();
        this.map =
          "docs.Orders.SelectMany(order => order.lines, (order, line) => new { order = order, line = line })" +
          ".Select(this0 => new { product = this0.line.product.ToUpper(), count = this0.line.count, orders = new[] { this0.order.Id } })";
        this.reduce =
          "results.GroupBy(result => result.product).Select(g => new { product = g.Key, " +
          "count = g.Sum(x => x.count), orders = g.SelectMany(x => x.orders).Distinct() })";
      }
    }
    await new ProductTotals().execute(store);
    const session = store.openSession();
    const rows = await session
      .query<{ product: string; count: number; orders: string[] }>({ indexName: "ProductTotals" })
      .waitForNonStaleResults()
      .orderBy("product")
      .all();
    expect(rows.map(({ product, count, orders }) => [product, count, orders])).toEqual([
      ["BLUE SOCK", 2, ["orders/2"]],
      ["RED HAT", 1, ["orders/1"]],
    ]);
    await store.maintenance.send(new client.DeleteIndexOperation("ProductTotals"));
  });

  test("deploys maps over counters by their class, and sees increments", async () => {
    class Visits extends client.AbstractRawJavaScriptCountersIndexCreationTask {
      constructor() {
        super();
        this.maps.add(
          "counters.map('Orders', 'visits', c => ({ visits: c.Value, of: c.DocumentId }))",
        );
      }
    }
    await new Visits().execute(store);
    for (const [more, visits] of [
      [2, 2],
      [3, 5],
    ] as const) {
      const session = store.openSession();
      session.countersFor("orders/1").increment("Visits", more);
      await session.saveChanges();
      const rows = await session
        .query<{ visits: number; of: string }>({ indexName: "Visits" })
        .waitForNonStaleResults()
        .all();
      expect(rows.map((row) => [row.visits, row.of])).toEqual([[visits, "orders/1"]]);
    }
    const stats = await store.maintenance.send(new client.GetIndexStatisticsOperation("Visits"));
    expect(stats.sourceType).toBe("Counters");
    await store.maintenance.send(new client.DeleteIndexOperation("Visits"));
  });

  test("administers indexes", async () => {
    const { maintenance } = store;
    const definition = new client.IndexDefinition();
    definition.name = "Plain";
    definition.maps = new Set(["map('Orders', o => ({ company: o.company }))"]);
    await maintenance.send(new client.PutIndexesOperation(definition));
    const names = await maintenance.send(new client.GetIndexNamesOperation(0, 10));
    expect(names).toEqual(["OrdersByCompany", "OrdersByProduct", "Plain"]);
    const known = await maintenance.send(new client.GetIndexOperation("Plain"));
    expect([known?.name, known?.type]).toEqual(["Plain", "JavaScriptMap"]);
    await maintenance.send(new client.SetIndexesLockOperation("Plain", "LockedIgnore"));
    await maintenance.send(new client.SetIndexesPriorityOperation("Plain", "High"));
    const session = store.openSession();
    await session.query({ indexName: "Plain" }).waitForNonStaleResults().all();
    const stats = await maintenance.send(new client.GetIndexStatisticsOperation("Plain"));
    expect([stats.lockMode, stats.priority, stats.entriesCount]).toEqual([
      "LockedIgnore",
      "High",
      3,
    ]);
    const terms = await maintenance.send(new client.GetTermsOperation("Plain", "company", ""));
    expect(terms).toEqual(["acme", "umbrella"]);
    await maintenance.send(new client.DisableIndexOperation("Plain"));
    const status = await maintenance.send(new client.GetIndexingStatusOperation());
    expect(status.indexes.find(({ name }) => name === "Plain")?.status).toBe("Disabled");
    await maintenance.send(new client.EnableIndexOperation("Plain"));
    await maintenance.send(new client.StopIndexOperation("Plain"));
    await maintenance.send(new client.StartIndexOperation("Plain"));
    await maintenance.send(new client.StopIndexingOperation());
    await maintenance.send(new client.StartIndexingOperation());
    await maintenance.send(new client.ResetIndexOperation("Plain"));
    expect(await maintenance.send(new client.GetIndexErrorsOperation(["Plain"]))).toEqual([
      { name: "Plain", errors: [] },
    ]);
    await maintenance.send(new client.SetIndexesLockOperation("Plain", "Unlock"));
    await maintenance.send(new client.DeleteIndexOperation("Plain"));
    expect((await maintenance.send(new client.GetIndexOperation("Plain"))) ?? null).toBeNull();
  });

  test("replaces an index side by side when its definition changes", async () => {
    const deploy = async (field: string) => {
      const definition = new client.IndexDefinition();
      definition.name = "Changing";
      definition.maps = new Set([`map('Orders', o => ({ ${field}: o.company }))`]);
      await store.maintenance.send(new client.PutIndexesOperation(definition));
      return definition;
    };
    await deploy("before");
    const definition = await deploy("after");
    const session = store.openSession();
    for (;;) {
      const names = await store.maintenance.send(new client.GetIndexNamesOperation(0, 10));
      if (!names.includes("ReplacementOf/Changing")) break;
    }
    const found = await session.query({ indexName: "Changing" }).whereEquals("after", "acme").all();
    expect(found).toHaveLength(2);
    await expect(
      session.query({ indexName: "Changing" }).whereEquals("before", "acme").all(),
    ).rejects.toThrow(/'before' is not indexed in 'Changing'/);
    expect(definition.name).toBe("Changing");
  });

  test("receives an error as the exception that it knows", async () => {
    const definition = new client.IndexDefinition();
    definition.name = "Bad";
    definition.maps = new Set(["map('Orders', o => ({"]);
    await expect(
      store.maintenance.send(new client.PutIndexesOperation(definition)),
    ).rejects.toMatchObject({ name: "IndexCompilationException" });
  });
});
