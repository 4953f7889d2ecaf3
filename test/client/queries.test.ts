/** The official client's queries, patches and deletions by query. */
import {
  DeleteByQueryOperation,
  type DocumentStore,
  GetOperationStateOperation,
  IndexQuery,
  PatchByQueryOperation,
  PatchOperation,
  PatchRequest,
  type QueryOperationOptions,
  type QueryStatistics,
} from "ravendb";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { closeStores, openStore, startServer, ways } from "../support/client-store.ts";

class Product {
  id?: string;
  name: string;
  price: number;
  tags: string[];
  supplier: string;
  constructor(name: string, price: number, tags: string[], supplier: string) {
    this.name = name;
    this.price = price;
    this.tags = tags;
    this.supplier = supplier;
  }
}

class Supplier {
  id?: string;
  title: string;
  constructor(title: string) {
    this.title = title;
  }
}

afterAll(closeStores);

describe.each(ways)("a query $name", (way) => {
  let store: DocumentStore;
  beforeAll(async () => {
    store = await openStore(await startServer(way));
  });

  beforeEach(async () => {
    const session = store.openSession();
    await session.store(new Supplier("Acme"), "suppliers/1");
    await session.store(new Product("Bolt", 1.5, ["steel", "small"], "suppliers/1"), "products/1");
    await session.store(new Product("Nut", 0.5, ["steel"], "suppliers/1"), "products/2");
    await session.store(new Product("Oil", 12, ["fluid"], "suppliers/2"), "products/3");
    await session.saveChanges();
  });

  const options = { allowStale: false, staleTimeout: 5_000 } as QueryOperationOptions;
  const names = (products: readonly Product[]) => products.map(({ name }) => name);
  const products = () => store.openSession().query<Product>(Product).waitForNonStaleResults();

  test("finds by equality, range, list, text and prefix, in order", async () => {
    expect(names(await products().whereEquals("name", "Nut").all())).toEqual(["Nut"]);
    const cheap = products().whereLessThan("price", 10).orderBy("price", "Double");
    expect(names(await cheap.all())).toEqual(["Nut", "Bolt"]);
    const between = products().whereBetween("price", 1.2, 12).orderByDescending("name");
    expect(names(await between.all())).toEqual(["Oil", "Bolt"]);
    const listed = products().whereIn("name", ["Oil", "Nut"]).orderBy("name");
    expect(names(await listed.all())).toEqual(["Nut", "Oil"]);
    expect(names(await products().containsAny("tags", ["fluid"]).all())).toEqual(["Oil"]);
    expect(names(await products().search("tags", "SMALL").all())).toEqual(["Bolt"]);
    expect(names(await products().whereStartsWith("name", "B").all())).toEqual(["Bolt"]);
    const either = products()
      .openSubclause()
      .whereEquals("name", "Bolt")
      .orElse()
      .whereEquals("name", "Oil")
      .closeSubclause()
      .andAlso()
      .not()
      .whereEquals("supplier", "suppliers/2");
    expect(names(await either.all())).toEqual(["Bolt"]);
  });

  test("pages, counts, and returns statistics", async () => {
    let statistics: QueryStatistics | undefined;
    const page = await products()
      .whereGreaterThan("price", -1)
      .orderBy("name")
      .statistics((reported) => {
        statistics = reported;
      })
      .skip(1)
      .take(1)
      .all();
    expect(names(page)).toEqual(["Nut"]);
    expect(statistics).toMatchObject({ totalResults: 3, isStale: false });
    expect(statistics?.indexName).toMatch(/^Auto\/Products\/By/);
    expect(await products().whereLessThan("price", 10).count()).toBe(2);
    expect(await products().whereEquals("name", "none").any()).toBe(false);
    expect((await products().whereEquals("name", "Oil").single()).price).toBe(12);
    expect(await products().whereEquals("name", "none").firstOrNull()).toBeNull();
  });

  test("projects fields, and values computed by a script", async () => {
    const fields = products().orderBy("name").selectFields<Product>(["name", "price"]);
    expect((await fields.all()).map(({ name, price, tags }) => [name, price, tags])).toEqual([
      ["Bolt", 1.5, undefined],
      ["Nut", 0.5, undefined],
      ["Oil", 12, undefined],
    ]);
    expect(await products().selectFields<string>("name").orderBy("name").all()).toEqual([
      "Bolt",
      "Nut",
      "Oil",
    ]);
    const session = store.openSession();
    const rows = await session.advanced
      .rawQuery<{ label: string }>(
        `declare function label(p, s) { return p.name + " of " + s.title; }
         from Products as p where p.price < $max load p.supplier as s
         select { label: label(p, s) }`,
      )
      .addParameter("max", 1.2)
      .waitForNonStaleResults()
      .all();
    expect(rows.map(({ label }) => label)).toEqual(["Nut of Acme"]);
  });

  test("groups, and sums", async () => {
    const rows = (await products()
      .groupBy("supplier")
      .selectKey("supplier")
      .selectSum({ fieldName: "price", projectedName: "total" })
      .orderBy("supplier")
      .all()) as unknown as { supplier: string; total: number }[];
    expect(rows.map(({ supplier, total }) => [supplier, total])).toEqual([
      ["suppliers/1", 2],
      ["suppliers/2", 12],
    ]);
    const counted = products().groupBy("supplier").selectKey("supplier").selectCount();
    expect(await counted.all()).toMatchObject([{ count: 2 }, { count: 1 }]);
  });

  test("in RQL uses parameters, and includes referenced documents", async () => {
    const session = store.openSession();
    const found = await session.advanced
      .rawQuery<Product>("from Products where name = $name include supplier", Product)
      .addParameter("name", "Bolt")
      .waitForNonStaleResults()
      .all();
    expect(names(found)).toEqual(["Bolt"]);
    expect((await session.load<Supplier>("suppliers/1", Supplier))?.title).toBe("Acme");
    expect(session.advanced.numberOfRequests).toBe(1);
    await expect(session.advanced.rawQuery("from where").all()).rejects.toThrow(/ParseException/);
  });

  test("streams its rows, with statistics", async () => {
    const session = store.openSession();
    let total = 0;
    const query = session.query<Product>(Product).whereLessThan("price", 10).orderBy("name");
    const stream = await session.advanced.stream(query, (reported) => {
      total = reported.totalResults;
    });
    const seen: [string, string][] = [];
    for await (const { id, document } of stream as AsyncIterable<{
      id: string;
      document: Product;
    }>) {
      seen.push([id, document.name]);
    }
    expect(seen).toEqual([
      ["products/1", "Bolt"],
      ["products/2", "Nut"],
    ]);
    expect(total).toBe(2);
    const byPrefix: string[] = [];
    for await (const { id } of (await session.advanced.stream("products/")) as AsyncIterable<{
      id: string;
    }>) {
      byPrefix.push(id);
    }
    expect(byPrefix).toEqual(["products/1", "products/2", "products/3"]);
  });

  test("patches its matches, and reports their number", async () => {
    const operation = await store.operations.send(
      new PatchByQueryOperation(
        new IndexQuery("from Products where price < 10 update { this.price *= 2; }"),
        options,
      ),
    );
    await operation.waitForCompletion();
    expect(names(await products().whereEquals("price", 3).all())).toEqual(["Bolt"]);
    const state = await store.maintenance.send(new GetOperationStateOperation(operation.id));
    expect(state).toMatchObject({ status: "Completed", result: { total: 2 } });
    const failing = await store.operations.send(
      new PatchByQueryOperation("from Products update { throw 'no'; }"),
    );
    await expect(failing.waitForCompletion()).rejects.toThrow();
  });

  test("deletes its matches", async () => {
    const operation = await store.operations.send(
      new DeleteByQueryOperation(new IndexQuery("from Products where name = 'Oil'"), options),
    );
    await operation.waitForCompletion();
    expect(names(await products().orderBy("name").all())).toEqual(["Bolt", "Nut"]);
  });
});

describe.each(ways)("a patch $name", (way) => {
  let store: DocumentStore;
  beforeAll(async () => {
    store = await openStore(await startServer(way));
  });

  beforeEach(async () => {
    const session = store.openSession();
    await session.store(new Product("Bolt", 1, ["a", "b"], "suppliers/1"), "products/1");
    await session.saveChanges();
  });

  const stored = async () =>
    (await store.openSession().load<Product>("products/1", Product)) as Product;

  test("of a session sets, increments and changes arrays", async () => {
    const session = store.openSession();
    session.advanced.patch("products/1", "name", "Screw");
    session.advanced.increment("products/1", "price", 4);
    session.advanced.patchArray("products/1", "tags", (tags) => tags.push("c", "d"));
    session.advanced.patchArray("products/1", "tags", (tags) => tags.removeAt(0));
    await session.saveChanges();
    expect(await stored()).toMatchObject({ name: "Screw", price: 5, tags: ["b", "c", "d"] });
  });

  test("of a loaded document is visible in it after a refresh", async () => {
    const session = store.openSession();
    const product = (await session.load<Product>("products/1", Product)) as Product;
    session.advanced.increment(product, "price", 9);
    await session.saveChanges();
    await session.advanced.refresh(product);
    expect(product.price).toBe(10);
  });

  test("creates a missing document", async () => {
    const session = store.openSession();
    const created = new Product("Made", 1, [], "suppliers/1");
    session.advanced.addOrIncrement("products/counted", created, "price", 5);
    await session.saveChanges();
    const again = store.openSession();
    again.advanced.addOrIncrement("products/counted", created, "price", 5);
    await again.saveChanges();
    const found = await store.openSession().load<Product>("products/counted", Product);
    expect(found?.price).toBe(6);
  });

  test("by a script uses arguments, and returns its outcome", async () => {
    const request = PatchRequest.forScript("this.price = args.price; this.note = id(this);");
    request.values = { price: 7 };
    const result = await store.operations.send(new PatchOperation("products/1", "", request));
    expect(result).toMatchObject({ status: "Patched" });
    expect(await stored()).toMatchObject({ price: 7, note: "products/1" });
    const missing = await store.operations.send(new PatchOperation("products/none", "", request));
    expect(missing).toMatchObject({ status: "DocumentDoesNotExist" });
    const same = await store.operations.send(new PatchOperation("products/1", "", request));
    expect(same).toMatchObject({ status: "NotModified" });
  });
});
