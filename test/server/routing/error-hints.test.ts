/** `hint` in the body of an error: suggestions, with names that the caller may see. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { EngineError } from "../../../engine/base/errors.ts";
import { hintOf } from "../../../server/routing/error-hints.ts";
import { type EndpointClient, startEndpointClient } from "../../support/endpoint-client.ts";
import { requestHttp2, startTestServer, stopTestServers } from "../../support/start-test-server.ts";

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
  const Maps = ["map('Orders', o => ({ Country: o.Country, Total: o.Total }))"];
  await client.send("PUT indexes", { Indexes: [{ Name: "Orders/Totals", Maps }] });
  await client.send("PUT indexes", { Indexes: [{ Name: "Orders/ByCompany", Maps }] });
});
afterAll(stopTestServers);

const hint = async (Query: string) => {
  const { json } = await client.send("POST queries", { Query });
  return json as { hint?: string; Message: string; Error: string };
};

test("suggests the nearest names for a missing index", async () => {
  const { json } = await client.send("POST indexes/replace?name=Orders/Total");
  expect(json).toMatchObject({ hint: "Did you mean 'Orders/Totals'?" });
  const stats = await client.send("GET indexes/terms?name=Orders/Old&field=x");
  expect(stats.json).toMatchObject({
    Message: "There is no index with 'Orders/Old' name.",
    hint: "Did you mean 'Orders/Totals' or 'Orders/ByCompany'?",
  });
  expect(Object.keys(stats.json as object)).toEqual(["Url", "Type", "Message", "Error", "hint"]);
});

test("suggests the nearest field, or lists the existing ones", async () => {
  expect((await hint("from index 'Orders/Totals' where Contry = 'x'")).hint).toBe(
    "Did you mean 'Country'?",
  );
  expect((await hint("from index 'Orders/Totals' where Elsewhere = 'x'")).hint).toBe(
    "'Orders/Totals' has 'Country', 'Total'.",
  );
});

test("has the position of an error in the text, as editors count", async () => {
  expect((await hint("from Orders where where")).hint).toBe(
    "The error is at line 1, column 19 of the query.",
  );
  expect((await hint("from Orders\nwhere A > 5\n  and where")).hint).toBe(
    "The error is at line 3, column 7 of the query.",
  );
});

test("suggests the keyword that a query misspells", async () => {
  const meant = {
    "from Orders whre Age > 3": "where",
    "from Orders where Age > 3 ordr by Age": "order",
    "from Orders where Age > 3 adn Name = 'x'": "and",
    "form Orders": "from",
  };
  for (const [query, keyword] of Object.entries(meant))
    expect((await hint(query)).hint).toMatch(
      new RegExp(`^Did you mean '${keyword}'\\? The error is at`),
    );
  for (const query of [
    "from Orders where where",
    "from Orders o Age",
    "from Orders ordering x",
    `from Orders where Age > 3 ${"x".repeat(100_000)}`,
  ])
    expect((await hint(query)).hint).toMatch(/^The error is at/);
});

test("an error without a hint lacks the key", async () => {
  const { json } = await client.send("PUT docs?id=x", "[1]");
  expect(Object.keys(json as object)).not.toContain("hint");
  const names = { databases: () => [], indexes: () => [], fields: () => [] };
  expect(hintOf(new EngineError("invalid-argument", "no"), names)).toBeUndefined();
  expect(hintOf(new Error("a bug"), names)).toBeUndefined();
  expect(hintOf(new EngineError("timeout", "too late"), names)).toContain("Increase the timeout");
});

test("does not suggest databases that the caller may not see", async () => {
  const server = await startTestServer({ databases: [{ name: "shop" }, { name: "shop-secret" }] });
  const reader = await server.client({ permissions: { shop: "Read", shops: "Read" } });
  const session = server.session(reader);
  const requested = await requestHttp2(session, "/databases/shops/stats", { method: "GET" });
  expect(requested.json).toMatchObject({ hint: "Did you mean 'shop'?" });
  const far = await server.client({ permissions: { "shop-secre": "Read" } });
  const other = server.session(far);
  const refused = await requestHttp2(other, "/databases/shop-secre/stats", { method: "GET" });
  expect(refused.json).not.toHaveProperty("hint");
  session.close();
  other.close();
});
