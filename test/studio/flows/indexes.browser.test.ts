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
