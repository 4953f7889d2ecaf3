/** Asking: the query console with its plans, and indexes, in a real browser. */
import { readFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import { studioBrowser } from "../../support/studio-browser.ts";

const studio = studioBrowser();

beforeAll(async () => {
  await studio.server.request("/databases/shop/studio/sample-data", { method: "POST" });
});

const role: (typeof studio.page)["getByRole"] = (name, options) =>
  studio.page.getByRole(name, options);
const editor = () => role("textbox", { name: "RQL query" });
const ask = (query: string, more = "") =>
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

test("an empty page has examples in the database's own names, which run by keyboard", async () => {
  await studio.open("db/shop/query");
  const examples = role("list", { name: "Examples" });
  await examples.getByText("from Orders order by").first().click();
  await editor().focus();
  await studio.page.keyboard.press("Control+Enter");
  await studio.page.getByText("10 results").or(studio.page.getByText("830 results")).waitFor();
  await role("grid", { name: "Results" }).waitFor();
});

test("how a query ran is told, the better index is made, and the query reads less", async () => {
  await ask("from Orders filter ShipTo.Country = 'France'");
  await studio.page.getByText("77 results").waitFor();
  await role("tab", { name: "How it ran" }).click();
  const how = role("region", { name: "How it ran" });
  await how.getByText("Read 830 documents and tested filter on 830: 77 passed.").waitFor();
  await how.getByText("A better index would read 77 entries, not 830").waitFor();
  await button("Make this index").click();
  await studio.page.getByText("Index is ready").waitFor();
  await how.getByText("Read 77 documents and tested filter on 77: 77 passed.").waitFor();
  await studio.page.getByText("77 results").waitFor();
  expect(await studio.page.evaluate("location.search")).toContain("Orders%2FByShipTo_Country");
  expect(await button("Make this index").count()).toBe(0);
});

test("an answer of an index that is behind says so, and waits for it", async () => {
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
  await ask("from index 'Late'");
  await studio.page.getByText("Late is behind: results may miss the newest documents.").waitFor();
  await admin("admin/indexes/start?name=Late");
  await button("Wait for it").click();
  await studio.page.getByText("Fresh", { exact: true }).waitFor();
  await studio.page.getByText("5 results").waitFor();
});

test("a query that runs long is cancelled, and the server is told", async () => {
  await studio.open("db/shop/query");
  await editor().click();
  let isAborted = false;
  studio.page.on("requestfailed", (request) => {
    if (request.url().endsWith("/queries")) isAborted = true;
  });
  await studio.page.route("**/databases/shop/queries", async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 3000));
    await route.continue().catch(() => undefined);
  });
  await studio.page.keyboard.type("from Orders");
  await studio.page.keyboard.press("Control+Enter");
  await button("Cancel").click();
  await button("Run").waitFor();
  expect(isAborted).toBe(true);
  expect(await role("alert").count()).toBe(0);
});

test("all rows are streamed to a file", async () => {
  await ask("from Orders where ShipTo.Country = $country", `&p.country=France`);
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

test("a mistake is marked at its place in the text", async () => {
  studio.expectRefusal(400);
  await ask("from Orders\nwhere Freight > 5\n  and where");
  await role("alert")
    .getByText(/Failed to find second part/)
    .waitFor();
  await studio.page.locator(".cm-lintRange-error", { hasText: "where" }).waitFor();
  await studio.page.locator(".cm-lint-marker-error").waitFor();
});

test("a text that changes documents leads to the patch page", async () => {
  await studio.open("db/shop/query");
  await editor().click();
  await studio.page.keyboard.type("from Orders update { this.A = 1; }");
  const link = role("link", { name: "Open it on the patch page" });
  expect(await link.getAttribute("href")).toContain("/studio/db/shop/patch?q=from+Orders+update");
  expect(await button("Run").isDisabled()).toBe(true);
});

test("the history brings a query back with its parameters, and is forgotten", async () => {
  await ask("from Orders where ShipTo.City = $city", "&p.city=Reims");
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
  await button("Forget all").click();
  expect(await role("list", { name: "History" }).getByRole("listitem").count()).toBe(0);
});

test("a query is saved under a name, formatted and shared", async () => {
  const readClipboard = await copied();
  await ask(
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
  await studio.page.getByText("Copied the address").waitFor();
  expect(await readClipboard()).toContain("/studio/db/shop/query?q=from+Orders+as+o%0Awhere");
  await studio.open("db/shop/query");
  await button("Saved").click();
  await studio.page.getByText("heavy").click();
  await button("Run").click();
  await role("grid", { name: "Results" }).waitFor();
});

test("a query is copied as a program in four languages", async () => {
  const readClipboard = await copied();
  await ask("from Orders where ShipTo.Country = $country", "&p.country=France");
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

test("what a query includes is shown beside its rows", async () => {
  await ask("from Orders where id() = 'orders/1-A' include Company");
  await role("tab", { name: /Includes/ }).click();
  await role("link", { name: "companies/85-A" }).waitFor();
  await role("tab", { name: "JSON" }).click();
  await studio.page.locator("pre.source", { hasText: '"Company": "companies/85-A"' }).waitFor();
  expect(studio.page.url()).toContain("view=json");
});

test("a menu is worked by the keyboard, and gives the focus back", async () => {
  await ask("from Regions");
  await button("Copy as").focus();
  await studio.page.keyboard.press("ArrowDown");
  await studio.page.keyboard.press("End");
  expect(await studio.page.evaluate("document.activeElement.textContent")).toBe("curl");
  await studio.page.keyboard.press("c");
  expect(await studio.page.evaluate("document.activeElement.textContent")).toBe("C#");
  await studio.page.keyboard.press("Escape");
  expect(await studio.page.evaluate("document.activeElement.textContent")).toBe("Copy as");
});

test("on a phone and in the dark the console fits", async () => {
  await studio.page.emulateMedia({ colorScheme: "dark" });
  await studio.page.setViewportSize({ width: 360, height: 780 });
  await ask("from Orders filter ShipTo.Country = 'Germany'", "&how=plan");
  await studio.page.getByText("A better index would read").waitFor();
  expect(await studio.page.evaluate("document.documentElement.scrollWidth")).toBe(360);
});
