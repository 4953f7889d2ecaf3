/** The official clients' facets, suggestions and moreLikeThis. */
import type * as current from "ravendb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { authentication, clients } from "../support/client-store.ts";
import { startTestServer, stopTestServers, type TestServer } from "../support/start-test-server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(stopTestServers);

describe.each(clients)("client %s", (version, client) => {
  class Product {
    name: string;
    brand: string;
    price: number;
    stock: number;
    constructor(name: string, brand: string, price: number, stock: number) {
      this.name = name;
      this.brand = brand;
      this.price = price;
      this.stock = stock;
    }
  }

  class ProductsByAll extends client.AbstractJavaScriptIndexCreationTask<Product, Product> {
    constructor() {
      super();
      this.map(Product, (product) => ({
        name: product.name,
        brand: product.brand,
        price: product.price,
        stock: product.stock,
      }));
      this.suggestion("brand");
      this.index("name", "Search");
      this.store("name", "Yes");
      this.termVector("name", "Yes");
    }
  }

  let store: current.DocumentStore;
  beforeAll(async () => {
    const name = `facets-${version}`;
    await server.running.services.databases.create(name, { DatabaseName: name });
    store = new client.DocumentStore(server.url, name, authentication(server));
    store.initialize();
    await new ProductsByAll().execute(store);
    const session = store.openSession();
    await session.store(new Product("red rain jacket", "Norda", 149.5, 5), "products/1");
    await session.store(new Product("blue rain hat", "Norda", 20, 7), "products/2");
    await session.store(new Product("walking shoe", "Fleet", 59, 0), "products/3");
    const setup = new client.FacetSetup();
    const byBrand = new client.Facet();
    byBrand.fieldName = "brand";
    const byPrice = new client.RangeFacet();
    byPrice.ranges = ["price < 50", "price >= 50"];
    setup.facets = [byBrand];
    setup.rangeFacets = [byPrice];
    await session.store(setup, "facets/shop");
    await session.saveChanges();
  });
  afterAll(() => store.dispose());

  const products = () => {
    const query = store.openSession().query({ index: ProductsByAll, documentType: Product });
    return query.waitForNonStaleResults();
  };

  test("facets by term, with options and sums", async () => {
    const found = await products()
      .aggregateBy((facet) => facet.byField("brand").sumOn("stock").averageOn("price", "mean"))
      .andAggregateBy((facet) =>
        facet.byField("name").withOptions({
          termSortMode: "CountDesc",
          pageSize: 1,
          includeRemainingTerms: true,
        } as current.FacetOptions),
      )
      .execute();
    expect(found["brand"]?.values).toMatchObject([
      { range: "fleet", count: 1, sum: 0, name: "stock" },
      { range: "fleet", count: 1, average: 59, name: "mean" },
      { range: "norda", count: 2, sum: 12, name: "stock" },
      { range: "norda", count: 2, average: 84.75, name: "mean" },
    ]);
    expect(found["name"]).toMatchObject({
      values: [{ range: "rain", count: 2 }],
      remainingHits: 6,
      remainingTermsCount: 6,
      remainingTerms: ["blue", "hat", "jacket", "red", "shoe", "walking"],
    });
  });

  test("facets by range, over the matches of the query", async () => {
    const price = client.RangeBuilder.forPath("price");
    const found = await products()
      .whereEquals("brand", "norda")
      .aggregateBy((facet) =>
        facet.byRanges(price.isLessThan(50), price.isGreaterThanOrEqualTo(50)).maxOn("stock"),
      )
      .execute();
    expect(found["price"]?.values).toMatchObject([
      { count: 1, max: 7, range: "price < 50" },
      { count: 1, max: 5, range: "price >= 50" },
    ]);
  });

  test("facets by a setup document, lazily", async () => {
    const lazy = products().aggregateUsing("facets/shop").executeLazy();
    const found = await lazy.getValue();
    expect(found["brand"]?.values.map(({ range, count }) => [range, count])).toEqual([
      ["fleet", 1],
      ["norda", 2],
    ]);
    expect(found["price"]?.values.map(({ count }) => count)).toEqual([1, 2]);
  });

  test("suggestions from an index and from a collection", async () => {
    const found = await products()
      .suggestUsing((one) => one.byField("brand", "nord").withDisplayName("names"))
      .execute();
    expect(found["names"]?.suggestions).toEqual(["norda"]);
    const dynamic = await store
      .openSession()
      .query({ collection: "Products", documentType: Product })
      .suggestUsing((one) =>
        one
          .byField("brand", ["flet", "norca"])
          .withOptions({ pageSize: 2, accuracy: 0.4 } as current.SuggestionOptions),
      )
      .execute();
    expect(dynamic["brand"]?.suggestions).toEqual(["fleet", "norda"]);
  });

  test("moreLikeThis with a condition and with a document", async () => {
    const options = {
      minimumTermFrequency: 1,
      minimumDocumentFrequency: 1,
      fields: ["name"],
    } as current.MoreLikeThisOptions;
    const similar = await products()
      .moreLikeThis((one) =>
        one.usingDocument((query) => query.whereEquals("id()", "products/1")).withOptions(options),
      )
      .all();
    expect(similar.map(({ name }) => name)).toEqual(["blue rain hat"]);
    const like = await products()
      .moreLikeThis((one) => one.usingDocument('{"name":"shoe"}').withOptions(options))
      .all();
    expect(like.map(({ name }) => name)).toEqual(["walking shoe"]);
  });
});
