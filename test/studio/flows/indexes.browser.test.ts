/** The pages of indexes in a real browser: errors, states, and their figures. */
import { beforeAll, expect, test } from "vitest";
import { studioBrowser } from "../../support/studio-browser.ts";

const studio = studioBrowser();

beforeAll(async () => {
  await studio.server.request("/databases/shop/studio/sample-data", { method: "POST" });
});

const deploy = (name: string, map: string) =>
  studio.server.request("/databases/shop/admin/indexes", {
    method: "PUT",
    body: JSON.stringify({ Indexes: [{ Name: name, Maps: [map] }] }),
  });

test("hundreds of different errors of an index are readable", async () => {
  const reason = "'Order ' + id(o) + ' of ' + o.Company + ': ' + o.Freight + ' is too much'";
  await deploy("Orders/Broken", `map('Orders', o => { throw new Error(${reason}); })`);
  await deploy(
    "Orders/Various",
    `map('Orders', o => { throw new Error(String(o.OrderedAt).replace(/[0-9]/g, d => 'abcdefghij'[d])); })`,
  );
  await studio.open("db/shop/index/Orders%2FBroken?tab=errors");
  // Messages that differ in the id and in numbers are one group.
  const groups = studio.page.getByRole("region", { name: /^Order / });
  await groups.getByText(/500 documents, and \d+ similar messages/).waitFor();
  expect(await groups.count()).toBe(1);
  await studio.open("db/shop/index/Orders%2FVarious?tab=errors");
  await studio.page.getByText(/^and \d+ more messages$/).waitFor();
  const heights = await studio.page
    .locator("section.panel")
    .evaluateAll((panels) => panels.map((panel) => panel.offsetHeight));
  expect(heights.length).toBe(50);
  expect(Math.min(...heights)).toBeGreaterThan(80);
});

test("an error of a definition is one sentence, and marked in its map", async () => {
  await studio.open("db/shop/index?new=map");
  await studio.page.getByRole("textbox", { name: "Name of the index" }).fill("Orders/Typo");
  await studio.page.getByRole("textbox", { name: "Map of the index" }).click();
  await studio.page.keyboard.press("Control+a");
  await studio.page.keyboard.type("map('Orders', o => ({ A: o. ");
  studio.expectRefusal(400);
  studio.expectRefusal(500);
  await studio.page.getByRole("button", { name: "Deploy" }).click();
  const alert = studio.page.getByRole("alert");
  await alert.getByText(/^Unexpected token/).waitFor();
  expect(await alert.textContent()).not.toMatch(/Raven|Exception|anonymous/);
  await studio.page.locator(".cm-mistake").first().waitFor();
});

test("an index whose new version failed is marked, and links to the errors", async () => {
  await deploy("Orders/Sound", "map('Orders', o => ({ Company: o.Company }))");
  await deploy("Orders/Sound", "map('Orders', o => { throw new Error('bad'); })");
  await studio.open("db/shop/indexes");
  const row = studio.page.getByRole("row", { name: /^Orders\/Sound/ });
  await row.getByText("New version failed").waitFor();
  await row.getByRole("link", { name: "Orders/Sound" }).click();
  await studio.page.getByText(/The new version failed: \d+ maps of 830 documents failed/).waitFor();
  await studio.page.getByRole("link", { name: "Show its errors" }).click();
  await studio.page.getByRole("region", { name: "bad" }).waitFor();
});

test("the last query of an index that was never queried is not a time", async () => {
  await deploy("Orders/Unqueried", "map('Orders', o => ({ Company: o.Company }))");
  await studio.open("db/shop/indexes");
  const row = studio.page.getByRole("row", { name: /^Orders\/Unqueried/ });
  await row.getByText("none since the start").waitFor();
  const query = "from index 'Orders/Unqueried'";
  await studio.server.request(`/databases/shop/queries?query=${encodeURIComponent(query)}`);
  await row.getByText("none since the start").waitFor({ state: "detached" });
});

test("the rate and the lag of an index are plotted while it is built", async () => {
  await deploy("Orders/Plotted", "map('Orders', o => ({ Company: o.Company }))");
  await studio.open("db/shop/index/Orders%2FPlotted?tab=speed");
  const rate = studio.page.getByRole("img", { name: /^Indexing rate, documents: / });
  // All orders were indexed in the last minutes.
  await expect.poll(() => rate.getAttribute("aria-label")).toMatch(/between 0 and [1-9]/);
  await studio.page.getByRole("img", { name: /^Index lag, changes: \d/ }).waitFor();
  await studio.page.getByText("Documents mapped").waitFor();
});

test("terms have a histogram: the most frequent ones, or ranges of numbers", async () => {
  await deploy("Orders/Facts", "map('Orders', o => ({ Company: o.Company, Freight: o.Freight }))");
  await studio.open("db/shop/index/Orders%2FFacts?tab=terms");
  const frequent = studio.page.getByRole("region", { name: "Most frequent terms" });
  await frequent.getByRole("row", { name: /^companies\/71-a.*31$/ }).waitFor();
  await frequent.getByText(/^69 other terms in \d+ entries$/).waitFor();
  await studio.page.getByRole("combobox", { name: "Field" }).selectOption("Freight");
  const ranges = studio.page.getByRole("region", { name: "Entries by value" }).getByRole("row");
  await ranges.nth(1).waitFor();
  const entries = await ranges.evaluateAll((rows) =>
    rows.slice(1).map((row) => Number(row.lastElementChild?.textContent)),
  );
  expect(entries.length).toBeGreaterThan(5);
  expect(entries.reduce((sum, one) => sum + one, 0)).toBe(830);
});

test("a map-reduce index is shown from its documents to its results", async () => {
  const definition = {
    Name: "Companies/Orders",
    Maps: ["map('Orders', o => [{ Company: o.Company, Count: 1 }, { Company: 'all', Count: 1 }])"],
    Reduce:
      "groupBy(x => x.Company).aggregate(g => ({ Company: g.key, Count: g.values.reduce((n, v) => n + v.Count, 0) }))",
  };
  await studio.server.request("/databases/shop/admin/indexes", {
    method: "PUT",
    body: JSON.stringify({ Indexes: [definition] }),
  });
  await studio.open("db/shop/index/Companies%2FOrders?tab=test");
  await studio.page.getByRole("button", { name: "Test", exact: true }).click();
  const picture = studio.page.getByRole("region", { name: "From documents to results" });
  const nodes = (title: string) =>
    picture.getByRole("list", { name: title }).getByRole("listitem").allTextContents();
  await picture.getByRole("list", { name: "Results" }).waitFor();
  expect(await nodes("Documents")).toHaveLength(5);
  expect(await nodes("Map entries")).toHaveLength(10);
  expect((await nodes("Groups")).filter((text) => text.startsWith('"all"'))).toHaveLength(1);
  const results = await nodes("Results");
  expect(results).toContainEqual('{"Company":"all","Count":5}, from "all"');
  expect(results.length).toBe((await nodes("Groups")).length);
});

test("the pictures of an index fit a phone, and support both themes", async () => {
  for (const width of [390, 1440]) {
    await studio.page.setViewportSize({ width, height: 900 });
    for (const colorScheme of ["light", "dark"] as const) {
      await studio.page.emulateMedia({ colorScheme });
      for (const tab of ["speed", "terms", "test"]) {
        await studio.open(`db/shop/index/Companies%2FOrders?tab=${tab}&doc=orders/830-A`);
        const shown = { speed: ".u-over", terms: ".terms .took", test: ".map-reduce" }[tab] ?? "";
        await studio.page.locator(shown).first().waitFor();
        await studio.page.waitForTimeout(300);
        expect(await studio.page.evaluate("document.documentElement.scrollWidth")).toBe(width);
        if (process.env["PICTURES"] !== undefined)
          await studio.page.screenshot({
            path: `${process.env["PICTURES"]}/index-${tab}-${width}-${colorScheme}.png`,
          });
      }
    }
  }
});
