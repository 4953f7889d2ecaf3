/** Sample data: its content, and when creating it is rejected. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { startTestServer, stopTestServers } from "../../../support/start-test-server.ts";

type Json = Record<string, unknown>;

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
  expect((await client.send("POST studio/sample-data")).status).toBe(204);
}, 60_000);
afterAll(stopTestServers);

async function query(Query: string): Promise<Json[]> {
  const body = { Query, WaitForNonStaleResults: true };
  return ((await client.json("POST queries", body)) as { Results: Json[] }).Results;
}

describe("a database with sample data", () => {
  test("has the shop's collections, histories, pictures, votes and measurements", async () => {
    expect(await client.json("GET collections/stats")).toMatchObject({
      CountOfDocuments: 1059,
      CountOfRevisionDocuments: 5475,
      CountOfAttachments: 17,
      Collections: {
        Categories: 8,
        Companies: 91,
        Employees: 9,
        Orders: 830,
        Products: 77,
        Regions: 4,
        Shippers: 3,
        Suppliers: 29,
        "@hilo": 8,
      },
    });
    expect(await client.json("GET stats")).toMatchObject({
      CountOfUniqueAttachments: 17,
      CountOfCounterEntries: 77,
      CountOfIndexes: 7,
    });
    expect(await client.json("GET cmpxchg?key=products/1-A")).toMatchObject({
      Results: [{ Value: { Object: 1 } }],
    });
  });

  test("has orders whose lines refer to products, and revisions from their completion", async () => {
    const { Results } = (await client.json("GET docs?id=orders/1-A")) as { Results: Json[] };
    expect(Results[0]).toMatchObject({
      Company: "companies/85-A",
      Lines: [{ Product: "products/11-A", ProductName: "Queso Cabrales" }, {}, {}],
      OrderedAt: "1996-07-04T00:00:00.0000000",
      ShipTo: { City: "Reims" },
      "@metadata": { "@collection": "Orders", "@flags": "HasRevisions" },
    });
    const revisions = (await client.json("GET revisions?id=orders/1-A")) as {
      Results: { Lines: unknown[] }[];
    };
    expect(revisions.Results.map(({ Lines }) => Lines.length)).toEqual([3, 2, 1, 0, 3, 3, 3]);
  });

  test("has different JPEG pictures", async () => {
    const one = await client.send("GET attachments?id=employees/1-A&name=photo.jpg");
    const other = await client.send("GET attachments?id=categories/1-A&name=image.jpg");
    for (const { headers, body } of [one, other]) {
      expect(headers["content-type"]).toBe("image/jpeg");
      expect(body.subarray(0, 3).toString("hex")).toBe("ffd8ff");
      expect(body.subarray(-2).toString("hex")).toBe("ffd9");
    }
    expect(one.body.equals(other.body)).toBe(false);
  });

  test("has time series of known lengths", async () => {
    const series = async (id: string, name: string) =>
      (await client.json(`GET timeseries?docId=${id}&name=${name}`)) as {
        TotalResults: number;
        Entries: { Timestamp: string; Values: number[]; Tag: string }[];
      };
    const prices = await series("companies/91-A", "StockPrices");
    expect(prices.TotalResults).toBe(100);
    expect(prices.Entries.at(-1)?.Timestamp).toBe("2020-05-11T00:00:00.0000000Z");
    for (const { Values, Tag } of prices.Entries) {
      const [open = 0, close = 0, high = 0, low = 0] = Values;
      expect(high).toBeGreaterThanOrEqual(Math.max(open, close));
      expect(low).toBeLessThanOrEqual(Math.min(open, close));
      expect(Tag).toMatch(/^employees\/[1-9]-A$/);
    }
    expect((await series("employees/9-A", "HeartRates")).TotalResults).toBe(120);
    expect((await series("products/77-A", "INC:Views")).TotalResults % 325).toBe(0);
  });

  test("can be queried through its indexes", async () => {
    const best = await query("from index 'Orders/ByCompany' order by Total as double desc limit 1");
    expect(best).toMatchObject([{ Company: "companies/63-A", Count: 28 }]);
    expect(await query("from index 'Product/Search' where search(Name, 'chai')")).toHaveLength(1);
    expect(await query("from index 'Orders/ByShipment/Location' limit 1")).toHaveLength(1);
    const [chai] = await query("from index 'Product/Rating' where Name = 'Chai'");
    expect(chai).toMatchObject({ Name: "Chai", AllRatings: [{}, {}, {}, {}, {}] });
    const volumes = await query(
      "from index 'Companies/StockPrices/TradeVolumeByMonth' where Country = 'Mexico'",
    );
    expect(volumes[0]).toMatchObject({ Country: "Mexico", Volume: expect.any(Number) });
    expect(await query("from index 'Products/ByUnitOnStock' where UnitOnStock > 20")).toHaveLength(
      19,
    );
    expect(
      await query("from index 'Orders/Totals' where Employee = 'employees/1-A' and Total > 10000"),
    ).not.toHaveLength(0);
  });

  test("does not accept sample data again", async () => {
    expect((await client.send("POST studio/sample-data")).json).toMatchObject({
      Type: "System.InvalidOperationException",
      Message: "You cannot create sample data in a database that already contains documents",
    });
  });
});

test("creates only the requested types", async () => {
  const databases = ["some", "none", "odd"].map((name) => ({ name }));
  const server = await startTestServer({ unsecured: true, databases });
  const post = (database: string, types: string) =>
    server.request(`/databases/${database}/studio/sample-data?${types}`, { method: "POST" });
  const types = "operateOnTypes=Documents&operateOnTypes=Indexes";
  expect((await post("some", types)).status).toBe(204);
  expect((await server.request("/databases/some/stats")).json).toMatchObject({
    CountOfDocuments: 1059,
    CountOfIndexes: 7,
    CountOfRevisionDocuments: 0,
    CountOfAttachments: 0,
    CountOfTimeSeriesSegments: 0,
  });
  const order = (await server.request("/databases/some/docs?id=orders/1-A")).json as {
    Results: { "@metadata": Json }[];
  };
  expect(order.Results[0]?.["@metadata"]).not.toHaveProperty("@flags");
  expect((await post("none", "operateOnTypes=None")).status).toBe(204);
  expect((await server.request("/databases/none/stats")).json).toMatchObject({
    CountOfDocuments: 0,
  });
  expect((await post("odd", "operateOnTypes=Bogus")).json).toMatchObject({
    Type: "System.ArgumentException",
    Message: "Requested value 'Bogus' was not found.",
  });
}, 60_000);
