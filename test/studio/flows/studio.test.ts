/**
 * The studio in a real browser, over TLS with a client certificate: `npm run test:studio`, after `npm run build`.
 * It needs Chromium: the one of the system, or the one that CHROMIUM names.
 */
import { existsSync, mkdirSync } from "node:fs";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import {
  startTestServer,
  stopTestServers,
  type TestServer,
} from "../../support/start-test-server.ts";

const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
/** Where pictures of the pages go, to be looked at; none without it. */
const pictures = process.env["PICTURES"];

let server: TestServer;
let browser: Browser;
let context: BrowserContext;
let page: Page;
/** What the browser complained about. */
let complaints: string[];

beforeAll(async () => {
  if (!existsSync(executablePath))
    throw new Error(`There is no Chromium at ${executablePath}: install it, or set CHROMIUM.`);
  server = await startTestServer({ databases: [{ name: "shop" }] });
  await server.request("/databases/shop/studio/sample-data", { method: "POST" });
  const flags =
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync";
  browser = await chromium.launch({ executablePath, args: flags.split(" ") });
  if (pictures !== undefined) mkdirSync(pictures, { recursive: true });
}, 120_000);

afterAll(async () => {
  await browser?.close();
  await stopTestServers();
});

beforeEach(async () => {
  const { key, certificate } = await server.client({ clearance: "ClusterAdmin" });
  context = await browser.newContext({
    viewport: { width: 1440, height: 900 },
    ignoreHTTPSErrors: true,
    clientCertificates: [
      { origin: server.url, key: Buffer.from(key ?? ""), cert: Buffer.from(certificate ?? "") },
    ],
  });
  page = await context.newPage();
  complaints = [];
  page.on("console", (message) => {
    // A refused request is told by the page itself, and looked for by the tests that cause one.
    if (message.type() === "error" && !/status of (?:404|409)/.test(message.text()))
      complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => {
    if (!request.url().startsWith(server.url)) complaints.push(`foreign request: ${request.url()}`);
  });
}, 60_000);

afterEach(async ({ task }) => {
  if (pictures !== undefined)
    await page.screenshot({ path: `${pictures}/${task.name.replace(/\W+/g, "-")}.png` });
  await context.close();
  expect(complaints).toEqual([]);
});

const open = (path: string) => page.goto(`${server.url}/studio/${path}`);
const editorOf = (id: string) => page.getByRole("textbox", { name: `Document ${id}` });
const stored = async (id: string) => {
  const { json } = await server.request(`/databases/shop/docs?id=${encodeURIComponent(id)}`);
  return (json as { Results: Record<string, unknown>[] }).Results[0] as Record<string, unknown>;
};

test("the list of databases leads to the documents of one", async () => {
  await open("");
  await page.getByRole("link", { name: "shop", exact: true }).click();
  await page.getByRole("link", { name: /^Orders/ }).click();
  await page.getByRole("grid", { name: "Documents of Orders" }).waitFor();
  expect(await page.getByRole("heading", { level: 1 }).textContent()).toBe("Orders");
  await page.getByText("830 documents").waitFor();
  expect(page.url()).toContain("/studio/db/shop/docs/Orders");
});

test("a database is made and deleted, with its name typed", async () => {
  await open("databases");
  await page.getByRole("button", { name: "New database" }).click();
  const name = page.getByRole("textbox", { name: "Name" });
  await name.fill("a b");
  await page.locator("#name-problem.bad").waitFor();
  expect(await page.getByRole("button", { name: "Make a b" }).isDisabled()).toBe(true);
  await name.fill("made");
  await page.getByRole("button", { name: "Make made" }).click();
  await page.getByRole("heading", { name: "No documents in made yet" }).waitFor();
  await page.getByRole("link", { name: "Databases" }).first().click();
  await page.getByRole("button", { name: "Delete made" }).click();
  const remove = page.getByRole("alertdialog").getByRole("button", { name: "Delete made" });
  expect(await remove.isDisabled()).toBe(true);
  await page.getByRole("alertdialog").getByRole("textbox").fill("made");
  await remove.click();
  await page.getByRole("link", { name: "made", exact: true }).waitFor({ state: "detached" });
});

test("the keys walk through the rows and open one", async () => {
  await open("db/shop/docs/Orders");
  const first = page.getByRole("row", { name: /orders\/830-A/ });
  await first.focus();
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "orders/828-A" }).waitFor();
  await page.goBack();
  await first.focus();
  await page.keyboard.press("End");
  await page.getByRole("row", { name: /orders\/1-A\b/ }).waitFor();
  expect(await page.getByRole("row").count()).toBeLessThan(60);
});

test("a document is changed and saved with the keyboard", async () => {
  await open("db/shop/doc/products%2F7-A");
  await editorOf("products/7-A").click();
  await page.keyboard.press("Control+Home");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.type('"Large": 12345678901234567890.10, ');
  await page.getByText("1 field changed").waitFor();
  await page.keyboard.press("Control+s");
  await page.getByText("Saved", { exact: true }).waitFor();
  const { text } = await server.request("/databases/shop/docs?id=products/7-A");
  expect(text).toContain("12345678901234567890.10");
});

test("a text that is no JSON is not saved, and its place is told", async () => {
  await open("db/shop/doc/products%2F8-A");
  await editorOf("products/8-A").click();
  await page.keyboard.press("Control+Home");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.type("x");
  await page.getByText("Line 1: Expected a name in quotes, but there is x").waitFor();
  expect(await page.getByRole("button", { name: "Save" }).isDisabled()).toBe(true);
});

test("a conflict is merged field by field, and nothing of either is lost", async () => {
  const id = "orders/830-A";
  await open(`db/shop/doc/${encodeURIComponent(id)}`);
  await editorOf(id).click();
  await page.keyboard.press("Control+Home");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.type('"Note": "mine", ');
  const theirs = { ...(await stored(id)), Freight: 99 };
  await server.request(`/databases/shop/docs?id=${id}`, {
    method: "PUT",
    body: JSON.stringify(theirs),
  });
  await page.keyboard.press("Control+s");
  await page.getByRole("alertdialog", { name: `Somebody else saved ${id} first` }).waitFor();
  await page.getByRole("button", { name: "Save the merge" }).click();
  await page.getByText("Saved", { exact: true }).waitFor();
  expect(await stored(id)).toMatchObject({ Note: "mine", Freight: 99 });
});

test("a query with a parameter answers, and its address shows the same again", async () => {
  await open("db/shop/query");
  await page.getByRole("textbox", { name: "RQL query" }).click();
  await page.keyboard.type("from Orders where ShipTo.Country = $country");
  await page.getByRole("textbox", { name: "Value of $country" }).fill("France");
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByText("77 results").waitFor();
  const address = page.url();
  await page.goto("about:blank");
  await page.goto(address);
  await page.getByText("77 results").waitFor();
  await page.getByRole("grid", { name: "Results" }).waitFor();
});

test("completion offers the fields that there are", async () => {
  await open("db/shop/query");
  await page.getByRole("textbox", { name: "RQL query" }).click();
  await page.keyboard.type("from Orders where ShipTo.Co");
  await page.getByRole("option", { name: /Country/ }).waitFor();
});

test("a mistake in a query is told, and the results before stay", async () => {
  await open("db/shop/query?q=from%20Regions");
  await page.getByText("4 results").waitFor();
  await page.getByRole("textbox", { name: "RQL query" }).click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type(" where where");
  complaints = [];
  await page.keyboard.press("Control+Enter");
  await page.getByRole("alert").waitFor();
  await page.getByText("4 results").waitFor();
  complaints = complaints.filter((text) => !text.includes("status of"));
});

test("a phone shows the same, without a page that is wider than it", async () => {
  await page.setViewportSize({ width: 360, height: 780 });
  for (const path of [
    "databases",
    "db/shop/docs/Orders",
    "db/shop/doc/orders%2F1-A",
    "db/shop/query",
  ]) {
    await open(path);
    await page.getByRole("navigation", { name: "Pages" }).last().waitFor();
    const width = await page.evaluate("document.documentElement.scrollWidth");
    expect(width, path).toBe(360);
  }
});
