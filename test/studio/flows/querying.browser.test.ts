/** The query console with its plans, and indexes, in a real browser. */
import { readFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import { studioBrowser } from "../../support/studio-browser.ts";

const studio = studioBrowser();

const hookMs = 60_000;
beforeAll(async () => {
  await studio.server.request("/databases/shop/studio/sample-data", { method: "POST" });
}, hookMs);

const role: (typeof studio.page)["getByRole"] = (name, options) =>
  studio.page.getByRole(name, options);
const editor = () => role("textbox", { name: "RQL query" });
const send = (query: string, more = "") =>
  studio.open(`db/shop/query?q=${encodeURIComponent(query)}${more}`);
const button = (name: string) => role("button", { name, exact: true });
const menuItem = async (menu: string, item: string) => {
  await button(menu).click();
  await role("menuitem", { name: item }).click();
};
const admin = async (path: string, body?: object, method = "POST") => {
  const reply = await studio.server.request(`/databases/shop/${path}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  expect(reply.status).toBeLessThan(300);
  return reply;
};
/** The clipboard of the page's context. */
const copied = async () => {
  await studio.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  return () => studio.page.evaluate<string>("navigator.clipboard.readText()");
};

test("an empty page has examples with the database's own names, which run with the keyboard", async () => {
  await studio.open("db/shop/query");
  const examples = role("list", { name: "Examples" });
  await examples.getByText("from Orders order by").first().click();
  await editor().focus();
  await studio.page.keyboard.press("Control+Enter");
  await studio.page.getByText("10 results").or(studio.page.getByText("830 results")).waitFor();
  await role("grid", { name: "Results" }).waitFor();
});

test("the page shows how a query ran, creates the proposed index, and the query then reads less", async () => {
  await send("from Orders filter ShipTo.Country = 'France'");
  await studio.page.getByText("77 results").waitFor();
  await role("tab", { name: "Query plan" }).click();
  const how = role("region", { name: "Query plan" });
  await how.getByText("Read 830 documents and tested filter on 830: 77 passed.").waitFor();
  await how.getByText("A better index would read 77 entries, not 830").waitFor();
  await button("Create this index").click();
  await studio.page.getByText("Index is ready").waitFor();
  await how.getByText("Read 77 documents and tested filter on 77: 77 passed.").waitFor();
  await studio.page.getByText("77 results").waitFor();
  expect(await studio.page.evaluate("location.search")).toContain("Orders%2FByShipTo_Country");
  expect(await button("Create this index").count()).toBe(0);
});

test("a stale result is marked, and the page waits for the index", async () => {
  await admin(
    "indexes",
    { Indexes: [{ Name: "Late", Maps: ["map('Regions', r => ({ Name: r.Name }))"] }] },
    "PUT",
  );
  await admin("admin/indexes/stop?name=Late");
  await admin(
    "docs?id=regions/99",
    { Name: "Late", "@metadata": { "@collection": "Regions" } },
    "PUT",
  );
  await send("from index 'Late'");
  await studio.page.getByText("Late is stale: results may miss the newest documents.").waitFor();
  await admin("admin/indexes/start?name=Late");
  await button("Wait for the index").click();
  await studio.page.getByText("Up to date", { exact: true }).waitFor();
  await studio.page.getByText("5 results").waitFor();
});

test("a long-running query is cancelled on the server", async () => {
  await studio.open("db/shop/query");
  await editor().click();
  let isAborted = false;
  studio.page.on("requestfailed", (request) => {
    if (request.url().endsWith("/queries")) isAborted = true;
  });
  let release = (): void => undefined;
  const isReleased = new Promise<void>((resolve) => {
    release = resolve;
  });
  await studio.page.route("**/databases/shop/queries", async (route) => {
    await isReleased;
    await route.continue().catch(() => undefined);
  });
  await studio.page.keyboard.type("from Orders");
  await studio.page.keyboard.press("Control+Enter");
  await button("Cancel").click();
  await button("Run").waitFor();
  expect(isAborted).toBe(true);
  release();
  expect(await role("alert").count()).toBe(0);
});

test("all rows are streamed to a file", async () => {
  await send("from Orders where ShipTo.Country = $country", `&p.country=France`);
  await studio.page.getByText("77 results").waitFor();
  const [download] = await Promise.all([
    studio.page.waitForEvent("download"),
    role("link", { name: "CSV" }).click(),
  ]);
  const lines = readFileSync(await download.path(), "utf8")
    .trim()
    .split("\n");
  expect(lines).toHaveLength(78);
  expect(download.suggestedFilename()).toMatch(/^shop.*\.csv$/);
});

test("an error is marked at its position in the text", async () => {
  studio.expectRefusal(400);
  await send("from Orders\nwhere Freight > 5\n  and where");
  await role("alert")
    .getByText(/Failed to find second part/)
    .waitFor();
  await studio.page.locator(".cm-mistake", { hasText: "where" }).waitFor();
  await studio.page.locator(".cm-mistake-dot").waitFor();
});

test("a text that changes documents links to the patch page", async () => {
  await studio.open("db/shop/query");
  await editor().click();
  await studio.page.keyboard.type("from Orders update { this.A = 1; }");
  const link = role("link", { name: "Open on the patch page" });
  expect(await link.getAttribute("href")).toContain("/studio/db/shop/patch?q=from+Orders+update");
  expect(await button("Run").isDisabled()).toBe(true);
});

test("the history restores a query with its parameters, and can be cleared", async () => {
  await send("from Orders where ShipTo.City = $city", "&p.city=Reims");
  await studio.page.getByText("5 results").waitFor();
  await studio.open("db/shop/query");
  await button("History").click();
  await role("list", { name: "History" }).getByText("from Orders where ShipTo.City").click();
  await button("Run").click();
  await studio.page.getByText("5 results").waitFor();
  await editor().click();
  await studio.page.keyboard.press("Control+A");
  await studio.page.keyboard.type("from Regions");
  await studio.page.keyboard.press("Alt+ArrowUp");
  await role("textbox", { name: "Value of $city" }).waitFor();
  await button("History").click();
  await button("Clear").click();
  expect(await role("list", { name: "History" }).getByRole("listitem").count()).toBe(0);
});

test("a query is saved under a name, formatted and shared", async () => {
  const readClipboard = await copied();
  await send(
    "from Orders as o where o.Freight > 5 and o.ShipTo.City = 'Reims' order by o.Freight as double desc",
  );
  await button("Format").click();
  await studio.page
    .locator(".cm-line", { hasText: /^ {2}and o\.ShipTo\.City = 'Reims'$/ })
    .waitFor();
  await button("Saved").click();
  await role("textbox", { name: "Name of this query" }).fill("heavy");
  await button("Save it").click();
  await button("Close").click();
  await button("Share").click();
  await studio.page.getByText("Address copied").waitFor();
  expect(await readClipboard()).toContain("/studio/db/shop/query?q=from+Orders+as+o%0Awhere");
  await studio.open("db/shop/query");
  await button("Saved").click();
  await studio.page.getByText("heavy").click();
  await button("Run").click();
  await role("grid", { name: "Results" }).waitFor();
});

test("a query is copied as a program in four languages", async () => {
  const readClipboard = await copied();
  await send("from Orders where ShipTo.Country = $country", "&p.country=France");
  const expected = {
    "Node.js": '.addParameter("country", "France")',
    "C#": '.AddParameter("country", "France")',
    Python: '.add_parameter("country", "France")',
    curl: '"QueryParameters":{"country":"France"}',
  };
  for (const [language, part] of Object.entries(expected)) {
    await menuItem("Copy as", language);
    await studio.page.getByText(`Copied as ${language}`).waitFor();
    expect(await readClipboard()).toContain(part);
  }
});

test("included documents are shown beside the rows", async () => {
  await send("from Orders where id() = 'orders/1-A' include Company");
  await role("tab", { name: /Includes/ }).click();
  await role("link", { name: "companies/85-A" }).waitFor();
  await role("tab", { name: "JSON" }).click();
  await studio.page.locator("pre.source", { hasText: '"Company": "companies/85-A"' }).waitFor();
  expect(studio.page.url()).toContain("view=json");
});

test("a menu works with the keyboard, and restores the focus", async () => {
  await send("from Regions");
  await button("Copy as").focus();
  await studio.page.keyboard.press("ArrowDown");
  await studio.page.keyboard.press("End");
  expect(await studio.page.evaluate("document.activeElement.textContent")).toBe("curl");
  await studio.page.keyboard.press("c");
  expect(await studio.page.evaluate("document.activeElement.textContent")).toBe("C#");
  await studio.page.keyboard.press("Escape");
  expect(await studio.page.evaluate("document.activeElement.textContent")).toBe("Copy as");
});

test("the console fits a phone and supports the dark theme", async () => {
  await studio.page.emulateMedia({ colorScheme: "dark" });
  await studio.page.setViewportSize({ width: 360, height: 780 });
  await send("from Orders filter ShipTo.Country = 'Germany'", "&how=plan");
  await studio.page.getByText("A better index would read").waitFor();
  expect(await studio.page.evaluate("document.documentElement.scrollWidth")).toBe(360);
});

const failing =
  "map('Orders', order => {\n    if (order.Freight > 700) throw new Error('too heavy');\n    return { Freight: order.Freight };\n})";

test("an index with errors is repaired: errors, test on a document, deployment with a diff", async () => {
  await admin("indexes", { Indexes: [{ Name: "Orders/ByFreight", Maps: [failing] }] }, "PUT");
  await expect
    .poll(async () => (await admin("indexes/stats?name=Orders/ByFreight", undefined, "GET")).text)
    .toContain('"IsStale":false');
  await studio.open("db/shop/indexes?show=errors");
  await role("link", { name: "Orders/ByFreight" }).click();
  expect(await role("tab", { name: /Errors/ }).getAttribute("aria-selected")).toBe("true");
  const group = role("region", { name: "too heavy" });
  await group.getByText(/^map, line 2 · \d+ documents$/).waitFor();
  await studio.page.locator(".cm-mistake", { hasText: "throw" }).waitFor();
  await group.getByRole("link", { name: /^Test with orders/ }).click();
  await studio.page.getByText(/Map, line 2,/).waitFor();
  await button("Edit").click();
  await role("textbox", { name: "Map of the index" }).click();
  await studio.page.keyboard.press("Control+A");
  await studio.page.keyboard.type("map('Orders', order => ({ Freight: order.Freight }))");
  await button("Deploy").click();
  const dialog = role("dialog", { name: "Deploy Orders/ByFreight?" });
  await dialog.getByText("throw new Error('too heavy')").first().waitFor();
  await dialog.getByRole("button", { name: "Deploy" }).click();
  await role("tab", { name: "Errors" }).click();
  await role("heading", { name: "No errors" }).waitFor();
  await role("tab", { name: "History" }).click();
  await expect
    .poll(() => role("list", { name: "Deployed definitions" }).getByRole("listitem").count())
    .toBe(2);
});

test("a new map-reduce index is written, tried and deployed", async () => {
  await studio.open("db/shop/index?new=map");
  await button("Map-reduce").click();
  await role("textbox", { name: "Name of the index" }).fill("Orders/Countries");
  const map = role("textbox", { name: "Map of the index" });
  await map.click();
  await studio.page.keyboard.press("Control+A");
  await studio.page.keyboard.insertText(
    "map('Orders', o => ({ Name: o.ShipTo.Country, Count: 1 }))",
  );
  await role("textbox", { name: "Document to test" }).fill("orders/1-A");
  await button("Test").click();
  await studio.page.getByText("The reduce returned 1 result").waitFor();
  await button("Deploy").click();
  await role("heading", { name: "Orders/Countries" }).waitFor();
  await role("tab", { name: "Entries 21" }).click();
  await role("grid", { name: "Entries" }).waitFor();
});

test("all indexes are paused and resumed, one is reset, and its terms are found", async () => {
  await admin(
    "indexes",
    {
      Indexes: [
        {
          Name: "Cities",
          Maps: ["map('Orders', o => ({ City: o.ShipTo.City, Country: o.ShipTo.Country }))"],
        },
      ],
    },
    "PUT",
  );
  await studio.open("db/shop/indexes");
  const row = role("row", { name: /^Cities / });
  await row.waitFor();
  await button("Pause all").click();
  await row.getByText("Paused").waitFor();
  await button("Resume all").click();
  await row.getByText("Up to date").waitFor();
  await button("More about Cities").click();
  await role("menuitem", { name: /^Reset/ }).click();
  await row.getByText("Up to date").waitFor();
  await role("link", { name: "Cities" }).click();
  await role("tab", { name: "Terms" }).click();
  await role("combobox", { name: "Field" }).selectOption("Country");
  await role("searchbox", { name: "Terms that begin with" }).fill("fr");
  const terms = role("table", { name: "Terms", exact: true }).getByRole("cell");
  await expect.poll(() => terms.allTextContents()).toEqual(["france"]);
});

test("a locked index cannot be edited, and is deleted after confirmation", async () => {
  await admin(
    "indexes",
    { Indexes: [{ Name: "Gone", Maps: ["map('Regions', r => ({ Name: r.Name }))"] }] },
    "PUT",
  );
  await studio.open("db/shop/index/Gone");
  await menuItem("More about Gone", "Lock");
  await expect.poll(() => button("Edit").isDisabled()).toBe(true);
  await menuItem("More about Gone", "Unlock");
  await menuItem("More about Gone", "Delete…");
  await role("alertdialog").getByRole("button", { name: "Delete Gone" }).click();
  await role("heading", { name: "Indexes" }).waitFor();
  expect(await role("link", { name: "Gone", exact: true }).count()).toBe(0);
  await studio.open("db/shop/index/Gone");
  await role("heading", { name: "Index Gone does not exist" }).waitFor();
});

test("a database without indexes shows an explanation", async () => {
  await studio.server.request("/admin/databases?name=bare", {
    method: "PUT",
    body: '{"DatabaseName":"bare"}',
  });
  await studio.open("db/bare/indexes");
  await role("heading", { name: "No indexes yet" }).waitFor();
  await role("link", { name: "Write an index" }).click();
  await role("heading", { name: "New index" }).waitFor();
});

test("indexes and a single index fit a phone, in the dark theme", async () => {
  await studio.page.emulateMedia({ colorScheme: "dark" });
  await studio.page.setViewportSize({ width: 360, height: 780 });
  for (const path of [
    "indexes",
    "index/Cities",
    "index/Cities?tab=terms",
    "index/Orders%2FByFreight?tab=history",
  ]) {
    await studio.open(`db/shop/${path}`);
    await studio.page.getByRole("navigation", { name: "Pages" }).last().waitFor();
    await studio.page
      .getByText(/Cities|ByFreight/)
      .first()
      .waitFor();
    expect(await studio.page.evaluate("document.documentElement.scrollWidth"), path).toBe(360);
  }
});

test("lists, objects and time series in results open beside the table", async () => {
  const text =
    "from Companies where id() = 'companies/1-A' select Name, Address, timeseries(from StockPrices) as Prices";
  await studio.open(`db/shop/query?q=${encodeURIComponent(text)}`);
  const row = studio.page.getByRole("grid", { name: "Results" }).getByRole("row").nth(1);
  await row.getByRole("button", { name: /^\{ 7 \}$/ }).click();
  const beside = (name: string) => studio.page.getByRole("complementary", { name });
  await beside("companies/1-A Address").getByText('"Country": "Germany"').waitFor();
  await row.getByRole("button").last().click();
  await beside("companies/1-A Prices").getByText('"Results": [').waitFor();
  await studio.page.keyboard.press("Escape");
  await beside("companies/1-A Prices").waitFor({ state: "detached" });
  // Enter opens the row.
  await row.focus();
  await studio.page.keyboard.press("Enter");
  await beside("companies/1-A").getByText('"Name": "Alfreds Futterkiste"').waitFor();
});
