/** The studio's first pages in a real browser, over TLS with a client certificate. */
import { beforeAll, expect, test } from "vitest";
import { studioBrowser } from "../../support/studio-browser.ts";

const studio = studioBrowser();

beforeAll(async () => {
  await studio.server.request("/databases/shop/studio/sample-data", { method: "POST" });
});

const editorOf = (id: string) => studio.page.getByRole("textbox", { name: `Document ${id}` });
const stored = async (id: string) => {
  const { json } = await studio.server.request(`/databases/shop/docs?id=${encodeURIComponent(id)}`);
  return (json as { Results: Record<string, unknown>[] }).Results[0] as Record<string, unknown>;
};

test("the list of databases leads to the documents of one", async () => {
  await studio.open("");
  await studio.page.getByRole("link", { name: "shop", exact: true }).click();
  await studio.page.getByRole("link", { name: /^Orders/ }).click();
  await studio.page.getByRole("grid", { name: "Documents of Orders" }).waitFor();
  expect(await studio.page.getByRole("heading", { level: 1 }).textContent()).toBe("Orders");
  await studio.page.getByText("830 documents").waitFor();
  expect(studio.page.url()).toContain("/studio/db/shop/docs/Orders");
});

test("a database is created, and deleted after typing its name", async () => {
  await studio.open("databases");
  await studio.page.getByRole("button", { name: "New database" }).click();
  const name = studio.page.getByRole("textbox", { name: "Name" });
  await name.fill("a b");
  await studio.page.locator("#name-problem.bad").waitFor();
  expect(await studio.page.getByRole("button", { name: "Create a b" }).isDisabled()).toBe(true);
  await name.fill("made");
  await studio.page.getByRole("button", { name: "Create made" }).click();
  await studio.page.getByRole("heading", { name: "No documents in made yet" }).waitFor();
  await studio.page.getByRole("link", { name: "Databases" }).first().click();
  await studio.page.getByRole("button", { name: "More about made" }).click();
  await studio.page.getByRole("menuitem", { name: "Delete…" }).click();
  const remove = studio.page.getByRole("alertdialog").getByRole("button", { name: "Delete made" });
  expect(await remove.isDisabled()).toBe(true);
  await studio.page.getByRole("alertdialog").getByRole("textbox").fill("made");
  await remove.click();
  await studio.page.getByRole("link", { name: "made", exact: true }).waitFor({ state: "detached" });
});

test("the keyboard moves through the rows and opens one", async () => {
  await studio.open("db/shop/docs/Orders");
  const first = studio.page.getByRole("row", { name: /orders\/830-A/ });
  await first.focus();
  await studio.page.keyboard.press("j");
  await studio.page.keyboard.press("j");
  await studio.page.keyboard.press("Enter");
  await studio.page.getByRole("heading", { name: "orders/828-A" }).waitFor();
  await studio.page.goBack();
  await first.focus();
  await studio.page.keyboard.press("End");
  await studio.page.getByRole("row", { name: /orders\/1-A\b/ }).waitFor();
  expect(await studio.page.getByRole("row").count()).toBeLessThan(60);
});

test("a document is changed and saved with the keyboard", async () => {
  await studio.open("db/shop/doc/products%2F7-A");
  await editorOf("products/7-A").click();
  await studio.page.keyboard.press("Control+Home");
  await studio.page.keyboard.press("ArrowRight");
  await studio.page.keyboard.type('"Large": 12345678901234567890.10, ');
  await studio.page.getByText("1 field changed").waitFor();
  await studio.page.keyboard.press("Control+s");
  await studio.page.getByText("Saved", { exact: true }).waitFor();
  const { text } = await studio.server.request("/databases/shop/docs?id=products/7-A");
  expect(text).toContain("12345678901234567890.10");
});

test("invalid JSON is not saved, and its position is shown", async () => {
  await studio.open("db/shop/doc/products%2F8-A");
  await editorOf("products/8-A").click();
  await studio.page.keyboard.press("Control+Home");
  await studio.page.keyboard.press("ArrowRight");
  await studio.page.keyboard.type("x");
  await studio.page.getByText("Line 1: Expected a quoted name, but found x").waitFor();
  expect(await studio.page.getByRole("button", { name: "Save" }).isDisabled()).toBe(true);
});

test("a conflict is merged field by field without data loss", async () => {
  const id = "orders/830-A";
  await studio.open(`db/shop/doc/${encodeURIComponent(id)}`);
  await editorOf(id).click();
  await studio.page.keyboard.press("Control+Home");
  await studio.page.keyboard.press("ArrowRight");
  await studio.page.keyboard.type('"Note": "mine", ');
  const theirs = { ...(await stored(id)), Freight: 99 };
  await studio.server.request(`/databases/shop/docs?id=${id}`, {
    method: "PUT",
    body: JSON.stringify(theirs),
  });
  await studio.page.keyboard.press("Control+s");
  await studio.page
    .getByRole("alertdialog", { name: `${id} was changed by another user` })
    .waitFor();
  await studio.page.getByRole("button", { name: "Save merged" }).click();
  await studio.page.getByText("Saved", { exact: true }).waitFor();
  expect(await stored(id)).toMatchObject({ Note: "mine", Freight: 99 });
});

test("a query with a parameter runs, and its URL restores it", async () => {
  await studio.open("db/shop/query");
  await studio.page.getByRole("textbox", { name: "RQL query" }).click();
  await studio.page.keyboard.type("from Orders where ShipTo.Country = $country");
  await studio.page.getByRole("textbox", { name: "Value of $country" }).fill("France");
  await studio.page.getByRole("button", { name: "Run", exact: true }).click();
  await studio.page.getByText("77 results").waitFor();
  const address = studio.page.url();
  await studio.page.goto("about:blank");
  await studio.page.goto(address);
  await studio.page.getByText("77 results").waitFor();
  await studio.page.getByRole("grid", { name: "Results" }).waitFor();
});

test("completion offers existing fields", async () => {
  await studio.open("db/shop/query");
  await studio.page.getByRole("textbox", { name: "RQL query" }).click();
  await studio.page.keyboard.type("from Orders where ShipTo.Co");
  await studio.page.getByRole("option", { name: /Country/ }).waitFor();
});

test("an error in a query is shown, and the previous results stay", async () => {
  await studio.open("db/shop/query?q=from%20Regions");
  await studio.page.getByText("4 results").waitFor();
  await studio.page.getByRole("textbox", { name: "RQL query" }).click();
  await studio.page.keyboard.press("Control+End");
  await studio.page.keyboard.type(" where where");
  studio.expectRefusal(400);
  await studio.page.keyboard.press("Control+Enter");
  await studio.page.getByRole("alert").waitFor();
  await studio.page.getByText("4 results").waitFor();
});

test("the pages fit a phone without horizontal scrolling", async () => {
  await studio.page.setViewportSize({ width: 360, height: 780 });
  for (const path of [
    "databases",
    "db/shop/docs/Orders",
    "db/shop/doc/orders%2F1-A",
    "db/shop/query",
  ]) {
    await studio.open(path);
    await studio.page.getByRole("navigation", { name: "Pages" }).last().waitFor();
    const width = await studio.page.evaluate("document.documentElement.scrollWidth");
    expect(width, path).toBe(360);
  }
});
