/** Pictures of data: query plans, charts, maps and schemas. */
import { beforeAll, expect, test } from "vitest";
import { studioBrowser } from "../../support/studio-browser.ts";

const studio = studioBrowser();

beforeAll(async () => {
  await studio.server.request("/databases/shop/studio/sample-data", { method: "POST" });
}, 60_000);

const role: (typeof studio.page)["getByRole"] = (name, options) =>
  studio.page.getByRole(name, options);
const query = (rql: string, more = "") =>
  studio.open(`db/shop/query?q=${encodeURIComponent(rql)}${more}`);

test("a query plan shows each step with its counts, its conditions, and the most expensive step", async () => {
  await query(
    "from Orders where Freight > 50 and ShipTo.Country = 'France' filter Employee = 'employees/1-A'",
    "&how=plan",
  );
  const steps = role("list", { name: "Steps of the query" });
  await steps.getByText("Most expensive:").waitFor();
  const titles = await steps.locator("> li > .row b").allTextContents();
  expect(titles).toEqual(["Find", "Read", "Return"]);
  const conditions = steps.getByRole("list", { name: "Conditions" }).getByRole("listitem");
  expect(await conditions.count()).toBe(2);
  expect(await conditions.last().textContent()).toContain("77 alone");
  const figures = await steps.locator("> li").nth(1).locator("dl > div").allTextContents();
  expect(figures[0]).toMatch(/^Read\d+$/);
  expect(figures[2]).toMatch(/^Time[\d.]+ ms$/);
  expect(await steps.locator(".slowest").count()).toBe(1);
});
