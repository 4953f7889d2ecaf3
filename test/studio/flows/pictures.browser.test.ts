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

const byCountry =
  "from Orders group by ShipTo.Country order by count() as long desc select ShipTo.Country as Country, count() as Count, sum(Freight) as Freight";

test("groups are bars, numbers over time are lines, and the address has the choice", async () => {
  await query(byCountry);
  await role("tab", { name: "Chart" }).click();
  const bars = role("table", { name: "Count by Country" });
  await bars.getByRole("row", { name: /^USA 122$/ }).waitFor();
  const widths = async () =>
    await bars.locator("i").evaluateAll((all) => all.map((one) => one.clientWidth));
  const [first = 0, second = 0, third = 0] = await widths();
  // Germany and the USA have 122 orders each, Brazil has 83.
  expect(second).toBe(first);
  expect(third / first).toBeCloseTo(83 / 122, 1);
  await role("checkbox", { name: "Freight" }).check();
  await role("table", { name: "Count, Freight by Country" }).waitFor();
  expect(studio.page.url()).toContain("values=Count%2CFreight");
  await role("button", { name: "Lines" }).click();
  await role("img", { name: /^21 rows by Country; Count: between 6 and 122;/ }).waitFor();
  await query("from Orders", "&view=chart");
  const lines = role("img", {
    name: /^830 rows by OrderedAt; Freight: between 0.02 and 1,007.64$/,
  });
  await lines.waitFor();
  await lines.hover();
  await studio.page.locator(".key b").waitFor();
  await query("from Regions select Name", "&view=chart");
  await role("heading", { name: "No numbers" }).waitFor();
});

test("results with coordinates are on a map with the searched circle, and a point leads to its document", async () => {
  const point = "spatial.point(Address.Location.Latitude, Address.Location.Longitude)";
  await query(`from Companies where spatial.within(${point}, spatial.circle(800, 48.8, 2.3))`);
  await studio.page.getByText("24 results").waitFor();
  await role("tab", { name: "Map" }).click();
  const map = role("img", { name: "Map of 24 results and the searched area" });
  await map.locator(".outline").waitFor();
  const land = () => map.locator(".land").getAttribute("d");
  const fitted = await land();
  expect(fitted?.length).toBeGreaterThan(500);
  // All points are inside the circle.
  const box = async (part: string) => (await map.locator(part).boundingBox()) ?? { x: 0, width: 0 };
  const [spots, outline] = [await box(".spots"), await box(".outline")];
  expect(spots.x).toBeGreaterThan(outline.x - 5);
  expect(spots.x + spots.width).toBeLessThan(outline.x + outline.width + 5);
  await role("button", { name: "Zoom in" }).click();
  await expect.poll(land).not.toBe(fitted);
  await role("button", { name: "Fit" }).click();
  await expect.poll(land).toBe(fitted);
  // The keyboard moves and zooms it as well.
  await role("group", { name: "Map" }).focus();
  for (const [key, back] of [
    ["ArrowLeft", "ArrowRight"],
    ["ArrowDown", "ArrowUp"],
    ["+", "-"],
    ["ArrowRight", "0"],
  ] as const) {
    await studio.page.keyboard.press(key);
    await expect.poll(land).not.toBe(fitted);
    await studio.page.keyboard.press(back);
    await expect.poll(land).toBe(fitted);
  }
  await map.locator(".spots").click({ position: { x: 4, y: 4 }, force: true });
  await studio.page.getByText("Places as a table").click();
  const places = role("table", { name: "Places" });
  expect(await places.getByRole("row").count()).toBe(25);
  await places.getByRole("link").first().click();
  await role("heading", { name: /^companies\// }).waitFor();
});

test("a map has no tab without coordinates", async () => {
  await query("from Regions");
  await studio.page.getByText("4 results").waitFor();
  expect(await role("tab", { name: "Map" }).count()).toBe(0);
});

test("the schema of a collection has types, frequencies, ranges and top values, which lead to their documents", async () => {
  await studio.open("db/shop/docs/Orders");
  await role("link", { name: "Schema" }).click();
  await studio.page.getByText("All 830 documents").waitFor();
  const fields = role("table", { name: "Fields of Orders" });
  const field = (name: RegExp) => fields.getByRole("row", { name });
  await field(/^Freight number 100 % 0.02 to 1,007.64/).waitFor();
  await field(/^Freight/)
    .getByRole("img", { name: /^Histogram from 0.02 to 1,007.64/ })
    .waitFor();
  await field(/^OrderedAt date 100 % 1996-07-04 to 1998-05-06/).waitFor();
  await field(/Lines list 100 % 1 to 25 elements/).waitFor();
  await field(/^Quantity number/).waitFor();
  await fields.getByRole("button", { name: "Lines" }).click();
  await field(/^Quantity/).waitFor({ state: "detached" });
  await field(/^Employee id 100 % 9 distinct/)
    .getByRole("link", { name: "employees/4-A" })
    .click();
  await studio.page.getByText("156 documents", { exact: true }).waitFor();
});

test("the schema of a large collection is read from a sample of all of its parts", async () => {
  const put = (n: number) => ({
    Type: "PUT",
    Id: `marks/${String(n).padStart(5, "0")}`,
    Document: { Part: Math.floor(n / 300), "@metadata": { "@collection": "Marks" } },
  });
  const reply = await studio.server.request("/databases/shop/bulk_docs", {
    method: "POST",
    body: JSON.stringify({ Commands: Array.from({ length: 3000 }, (_, n) => put(n)) }),
  });
  expect(reply.status).toBe(201);
  await studio.open("db/shop/docs/Marks?view=schema");
  await studio.page.getByText("A sample of 1,000 of 3,000 documents").waitFor();
  await role("row", { name: /^Part number 100 % 0 to 9/ }).waitFor();
  await role("combobox", { name: "Sample" }).selectOption("10,000 documents");
  await studio.page.getByText("All 3,000 documents").waitFor();
});

test("the graph of related documents has both directions, and is walked by its links", async () => {
  await studio.open("db/shop/doc/orders%2F1-A?side=related");
  const out = role("list", { name: "Documents that it refers to" });
  await out.getByRole("link", { name: "companies/85-A" }).click();
  await role("heading", { name: "companies/85-A" }).waitFor();
  await role("button", { name: "Search", exact: true }).click();
  const referring = role("list", { name: "Referring documents" });
  await referring.getByRole("link", { name: "5 Orders" }).waitFor();
  expect(await studio.page.locator(".edges").count()).toBe(1);
  // The search continues with the next document.
  await referring
    .getByRole("link", { name: /^orders\/\d/ })
    .last()
    .click();
  await role("heading", { name: /^orders\/\d/ }).waitFor();
  await studio.page.getByText("No document refers to it.").waitFor();
  await out
    .getByRole("link", { name: "employees/4-A" })
    .or(out.getByRole("link", { name: /^employees/ }))
    .click();
  await referring.getByRole("link", { name: /^\d+ Orders$/ }).waitFor();
});

test("a reference to a missing document is marked", async () => {
  await studio.server.request("/databases/shop/docs?id=notes/1", {
    method: "PUT",
    body: JSON.stringify({ Owner: "employees/99-A" }),
  });
  await studio.open("db/shop/doc/notes%2F1?side=related");
  await role("listitem").filter({ hasText: "employees/99-A" }).getByText("missing").waitFor();
});

/** A frame may take 50 ms; this is processor time of several frames, which is longer beside other tests. */
const cpuMsMax = 150;

test("a thousand rows are charted and mapped without blocking the page", async () => {
  const put = (n: number) => ({
    Type: "PUT",
    Id: `spots/${n}`,
    Document: {
      N: n,
      Latitude: (n % 170) - 85,
      Longitude: (n % 360) - 180,
      "@metadata": { "@collection": "Spots" },
    },
  });
  await studio.server.request("/databases/shop/bulk_docs", {
    method: "POST",
    body: JSON.stringify({ Commands: Array.from({ length: 1000 }, (_, n) => put(n)) }),
  });
  const session = await studio.context.newCDPSession(studio.page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  /** Processor time of the page so far, in milliseconds. */
  const cpuMs = async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    const used = metrics.filter(({ name }) => /^(Script|Layout|RecalcStyle)Duration$/.test(name));
    expect(used).toHaveLength(3);
    return used.reduce((sum, { value }) => sum + value * 1000, 0);
  };
  await query("from Spots");
  await studio.page.getByText("1,000 results").waitFor();
  for (const [tab, ready] of [
    ["Chart", ".bars"],
    ["Map", ".map .spots"],
  ] as const) {
    const before = await cpuMs();
    await role("tab", { name: tab }).click();
    await studio.page.locator(ready).first().waitFor();
    expect((await cpuMs()) - before, tab).toBeLessThan(cpuMsMax);
  }
});
