/**
 * The frame around the pages: palette, shortcuts, switcher, status line, and mistyped addresses.
 */
import { beforeAll, expect, test } from "vitest";
import { studioBrowser } from "../../support/studio-browser.ts";

const studio = studioBrowser({ databases: [{ name: "shop" }, { name: "archive" }] });

beforeAll(async () => {
  await studio.server.request("/databases/shop/studio/sample-data", { method: "POST" });
});

const palette = () => studio.page.getByRole("combobox", { name: "Search or run a command" });
const heading = (name: string | RegExp) => studio.page.getByRole("heading", { name }).waitFor();
const opened = async (path: string) => {
  await studio.open(path);
  await studio.page.getByRole("contentinfo", { name: "State" }).getByText("Connected").waitFor();
};

test("the palette finds pages, collections, indexes and ids, and opens them with the keyboard", async () => {
  await opened("db/shop/docs");
  await studio.page.keyboard.press("Control+k");
  await palette().fill("Compan");
  await studio.page.getByRole("option", { name: "Companies collection" }).waitFor();
  await palette().press("Enter");
  await studio.page.getByRole("grid", { name: "Documents of Companies" }).waitFor();
  await studio.page.keyboard.press("Control+k");
  await palette().fill("orders/82");
  await studio.page.getByRole("option", { name: /^orders\/820-A/ }).waitFor();
  await palette().press("ArrowDown");
  await palette().press("Enter");
  await heading(/^orders\/82/);
  await studio.page.keyboard.press("Control+k");
  await palette().fill("archive");
  await studio.page.getByRole("option", { name: "archive database" }).click();
  await heading("No documents in archive yet");
});

test("the palette searches the contents of documents only when this is chosen", async () => {
  await opened("db/shop/docs/Companies");
  const queries: string[] = [];
  studio.page.on("request", (request) => {
    if (request.url().includes("/queries")) queries.push(request.url());
  });
  await studio.page.keyboard.press("Control+k");
  // The text of a JSON string is escaped.
  await palette().fill('Rue De "L');
  await studio.page.getByRole("option", { name: /^Contents of Companies/ }).waitFor();
  await palette().fill("rue de");
  await studio.page.waitForTimeout(400);
  expect(queries).toEqual([]);
  await studio.page.getByRole("option", { name: /^Contents of Companies: rue de/ }).click();
  await studio.page.getByRole("textbox", { name: "Value of $text" }).waitFor();
  await studio.page
    .getByRole("grid", { name: "Results" })
    .getByText(/^companies\//)
    .first()
    .waitFor();
  expect(queries.length).toBeGreaterThan(0);
  await studio.page.keyboard.press("Control+k");
  await palette().fill("queso");
  await studio.page.getByRole("option", { name: /^Contents of all documents in shop/ }).click();
  await studio.page.getByText(/^5\d results/).waitFor();
});

test("the palette runs commands, and shows shortcuts", async () => {
  await opened("databases");
  const theme = () => studio.page.evaluate("document.documentElement.dataset.theme");
  const before = await theme();
  await studio.page.keyboard.press("Control+k");
  await palette().fill(">light");
  await palette().press("Enter");
  expect(await theme()).not.toBe(before);
  await studio.page.keyboard.press("?");
  await studio.page.getByText("In lists: peek").waitFor();
  await studio.page.keyboard.press("Escape");
  await palette().waitFor({ state: "detached" });
});

test("a long list in the palette leaves its input at full height", async () => {
  await studio.page.setViewportSize({ width: 1440, height: 480 });
  await opened("db/shop/docs");
  await studio.page.keyboard.press("Control+k");
  const dialog = studio.page.getByRole("dialog", { name: "Search or run a command" });
  await dialog.getByRole("combobox").fill("e");
  await expect.poll(() => dialog.getByRole("option").count()).toBeGreaterThan(10);
  const { height } = (await dialog.locator(".ask-line").boundingBox()) ?? { height: 0 };
  expect(height).toBe(48);
});

test("g and a letter open a page, but not during typing, or if letter shortcuts are off", async () => {
  await opened("db/shop/docs/Orders");
  await studio.page.keyboard.press("g");
  await studio.page.keyboard.press("q");
  await studio.page.getByRole("textbox", { name: "RQL query" }).waitFor();
  await studio.page.getByRole("textbox", { name: "RQL query" }).click();
  await studio.page.keyboard.type("gd");
  expect(studio.page.url()).toContain("/query");
  await studio.open("db/shop/docs/Orders");
  await studio.page.getByRole("grid").waitFor();
  await studio.page.keyboard.press("?");
  await studio.page.getByRole("checkbox", { name: "Enable single-letter shortcuts" }).uncheck();
  await studio.page.keyboard.press("Escape");
  await studio.page.keyboard.press("g");
  await studio.page.keyboard.press("q");
  expect(studio.page.url()).toContain("/docs/Orders");
});

test("/ focuses the filter, and n creates a document", async () => {
  await opened("db/shop/docs/Orders");
  await studio.page.getByRole("grid").waitFor();
  await studio.page.keyboard.press("/");
  expect(await studio.page.evaluate("document.activeElement.id")).toBe("filter");
  await studio.page.keyboard.press("Tab");
  await studio.page.getByRole("row").nth(1).focus();
  await studio.page.keyboard.press("n");
  await heading("New document");
});

test("another database is chosen in the bar", async () => {
  await opened("db/shop/docs");
  await studio.page.getByRole("button", { name: "shop" }).click();
  await studio.page.getByRole("menuitemradio", { name: "archive" }).click();
  await heading("No documents in archive yet");
});

test("a missing database shows the nearest ones, and sends no requests for it", async () => {
  await studio.open("db/shp/docs");
  await heading("Database shp does not exist");
  await studio.page.getByRole("link", { name: "shop", exact: true }).click();
  await studio.page.getByRole("grid").waitFor();
  await studio.open("db/shop/dcs");
  await heading("This page does not exist");
  await studio.page.getByRole("main").getByRole("link", { name: "Documents" }).click();
  await studio.page.getByRole("grid").waitFor();
});

test("the first Tab skips to the content, and an opened page is focused and announced", async () => {
  await opened("databases");
  await studio.page.keyboard.press("Tab");
  expect(await studio.page.evaluate("document.activeElement.textContent")).toBe("Skip to content");
  await studio.page.getByRole("link", { name: "shop", exact: true }).click();
  await studio.page.getByRole("status").filter({ hasText: "All documents" }).first().waitFor({
    state: "attached",
  });
  expect(await studio.page.evaluate("document.activeElement.id")).toBe("main");
  expect(await studio.page.title()).toBe("All documents · Documents · shop · Jackdaw studio");
});

test("a lost connection is shown and retried, and missed data is requested", async () => {
  await opened("db/shop/docs/Orders");
  await studio.page.getByRole("grid").waitFor();
  await studio.context.setOffline(true);
  studio.expectOffline();
  await studio.page.evaluate("fetch('/build/version').catch(() => 0)");
  await studio.page.getByRole("button", { name: "Columns" }).waitFor();
  await studio.page.getByRole("row").nth(1).getByRole("link").first().click();
  await studio.page.getByText("Not connected.").waitFor();
  await studio.page.getByText(/Reconnecting in \d+ s|Connecting/).waitFor();
  await studio.context.setOffline(false);
  await studio.page.getByRole("button", { name: "Reconnect now" }).click();
  await studio.page.getByText("Reconnected").waitFor();
});

test("on a phone all pages are reachable", async () => {
  await studio.page.setViewportSize({ width: 360, height: 780 });
  await studio.open("db/shop/docs/Orders");
  const tabs = studio.page.getByRole("navigation", { name: "Pages" }).last();
  await tabs.getByRole("link", { name: "Query" }).click();
  await studio.page.getByRole("textbox", { name: "RQL query" }).waitFor();
  await studio.page.goBack();
  await studio.page.getByRole("combobox", { name: "Collection" }).selectOption("Companies");
  await studio.page.getByRole("grid", { name: "Documents of Companies" }).waitFor();
});

test("on a phone the header names the database, and switches to another one", async () => {
  await studio.page.setViewportSize({ width: 390, height: 844 });
  await studio.open("db/shop/docs/Orders");
  await studio.page.getByRole("button", { name: "shop", exact: true }).click();
  await studio.page.getByRole("menuitemradio", { name: "archive" }).click();
  await heading("No documents in archive yet");
  expect(await studio.page.evaluate("document.documentElement.scrollWidth")).toBe(390);
});

test("a part that cannot be loaded because the server is gone appears when it is back", async () => {
  await opened("databases");
  await studio.page.waitForTimeout(1500);
  await studio.context.setOffline(true);
  studio.expectOffline();
  await studio.page.evaluate(
    "history.pushState(null, '', '/studio/db/shop/query'), dispatchEvent(new PopStateEvent('popstate'))",
  );
  await studio.page.getByText(/^The server is unreachable\. This part/).waitFor();
  expect(await studio.page.getByText("The studio was updated").count()).toBe(0);
  await studio.context.setOffline(false);
  await studio.page.getByRole("textbox", { name: "RQL query" }).waitFor();
});
