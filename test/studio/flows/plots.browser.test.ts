/** Plots in a real browser: time series with any number of entries, zoom, several series. */
import { beforeAll, expect, test } from "vitest";
import { studioBrowser } from "../../support/studio-browser.ts";

const studio = studioBrowser();
const shop = "/databases/shop";
const startMs = Date.UTC(2026, 0, 1);
const million = 1_000_000;

beforeAll(async () => {
  await studio.server.request(`${shop}/docs?id=sensors/1`, {
    method: "PUT",
    body: '{"Name":"Roof","@metadata":{"@collection":"Sensors"}}',
  });
  await studio.server.request(`${shop}/timeseries/names/config`, {
    method: "POST",
    body: JSON.stringify({ Collection: "Sensors", TimeSeries: "Air", ValueNames: ["Celsius"] }),
  });
  // Each second, with a day without entries; the largest value is that of one entry.
  for (let from = 0; from < million; from += 20_000)
    await append("Air", 20_000, (n) => {
      const at = from + n;
      const value = at === 700_001 ? 99 : Math.round(2000 * Math.sin(at / 14_000)) / 100;
      return [startMs + at * 1000 + (at < million * 0.3 ? 0 : 86_400_000), value];
    });
  await append("Wind", 300, (n) => [startMs + n * 3_600_000, n % 10]);
}, 120_000);

async function append(name: string, count: number, of: (n: number) => [ms: number, value: number]) {
  const Appends = Array.from({ length: count }, (_, n) => {
    const [ms, value] = of(n);
    return { Timestamp: new Date(ms).toISOString(), Values: [value], Tag: "roof" };
  });
  const { status, text } = await studio.server.request(`${shop}/timeseries?docId=sensors/1`, {
    method: "POST",
    body: JSON.stringify({ Name: name, Appends }),
  });
  expect(status, text).toBe(204);
}

const air = () => studio.page.getByRole("img", { name: /^Air: / });
const labelOf = async () => (await air().getAttribute("aria-label")) ?? "";

/** Selects a part of the plot, from and to a share of its width. */
async function drag(from: number, to: number): Promise<void> {
  const area = studio.page.locator(".u-over").first();
  const { x, y, width, height } = (await area.boundingBox()) ?? expect.fail("no plot");
  await studio.page.mouse.move(x + from * width, y + height / 2);
  await studio.page.mouse.down();
  await studio.page.mouse.move(x + ((from + to) / 2) * width, y + height / 2);
  await studio.page.mouse.move(x + to * width, y + height / 2);
  await studio.page.mouse.up();
}

const taskCategory = "disabled-by-default-devtools.timeline";

/** Returns the longest task of a page in a trace, in milliseconds of the processor: other processes may interrupt it. */
function longestTaskMs(trace: Buffer): number {
  const { traceEvents } = JSON.parse(trace.toString()) as {
    traceEvents: {
      name: string;
      pid: number;
      tid: number;
      tdur?: number;
      args: { name?: string };
    }[];
  };
  const isMain = ({ name, args }: (typeof traceEvents)[number]) =>
    name === "thread_name" && args.name === "CrRendererMain";
  const main = new Set(traceEvents.filter(isMain).map(({ pid, tid }) => `${pid} ${tid}`));
  const tasks = traceEvents.filter(
    ({ name, pid, tid }) => name === "RunTask" && main.has(`${pid} ${tid}`),
  );
  return Math.max(...tasks.map(({ tdur = 0 }) => tdur / 1000));
}

test("a million entries are shown, zoomed and scrolled without a long frame, and no value is lost", async () => {
  await studio.open("db/shop/doc/sensors%2F1?side=counters&series=Air");
  await studio.page.locator(".cm-content").waitFor();
  await studio.page.waitForTimeout(500);
  await studio.browser.startTracing(studio.page, { categories: [taskCategory] });
  await studio.page.getByRole("tab", { name: /^Time series/ }).click();
  await air().waitFor();
  expect(await labelOf()).toBe(
    "Air: 1,000,000 entries; minimum, maximum and average of 30 minutes; Celsius between -20 and 99",
  );
  await drag(0.6, 0.7);
  await expect.poll(labelOf).toMatch(/^Air: 1\d\d,\d{3} entries; .* of 5 minutes; /);
  // A click selects nothing.
  await drag(0.5, 0.501);
  await drag(0.5, 0.52);
  await expect.poll(labelOf).toMatch(/ of 5 seconds; /);
  await drag(0.4, 0.42);
  await expect.poll(labelOf).toMatch(/^Air: \d\d entries; Celsius between /);
  await studio.page.getByRole("button", { name: "Whole range" }).click();
  await expect.poll(labelOf).toMatch(/^Air: 1,000,000 entries; /);
  const table = studio.page.getByRole("grid", { name: "Entries of Air" });
  await table.getByRole("row").nth(1).focus();
  await studio.page.keyboard.press("End");
  const last = table.locator('[aria-rowindex="1000001"]');
  await last.getByText("roof").waitFor();
  expect(await last.textContent()).toContain("2026");
  const longest = longestTaskMs(await studio.browser.stopTracing());
  expect(longest).toBeGreaterThan(1);
  expect(longest).toBeLessThan(50);
});

test("the address contains the range, and keys change it", async () => {
  await studio.open("db/shop/doc/sensors%2F1?side=series&series=Air");
  await air().waitFor();
  const button = (name: string) => studio.page.getByRole("button", { name });
  for (let n = 0; n < 16; n++) await button("Zoom in").press("Enter");
  // About 16.6 seconds.
  await expect.poll(labelOf).toMatch(/^Air: 1\d entries; Celsius between /);
  const from = () => new URL(studio.page.url()).searchParams.get("from");
  const zoomed = from();
  expect(zoomed).toMatch(/^2026-01-\d\dT.*Z$/);
  const shown = await labelOf();
  await studio.page.reload();
  await expect.poll(labelOf).toBe(shown);
  await button("Later").click();
  expect(from()).not.toBe(zoomed);
  await button("Earlier").click();
  expect(from()).toBe(zoomed);
  await button("Zoom out").click();
  await expect.poll(labelOf).not.toBe(shown);
  await button("Whole range").click();
  await expect.poll(labelOf).toMatch(/^Air: 1,000,000 entries; /);
  expect(studio.page.url()).not.toContain("from=");
});

test("several series share the range and the crosshair", async () => {
  await studio.open("db/shop/doc/sensors%2F1?side=series&series=Air");
  await air().waitFor();
  await studio.page.getByRole("button", { name: /^Wind/ }).click();
  await studio.page
    .getByRole("img", { name: /^Wind: 300 entries; value between 0 and 9/ })
    .waitFor();
  const wind = studio.page.getByRole("region", { name: "Wind" });
  const area = studio.page.getByRole("region", { name: "Air" }).locator(".u-over");
  await area.hover({ position: { x: 40, y: 60 } });
  // The crosshair is above Air, and Wind shows its value there.
  await expect.poll(() => wind.locator(".key b").textContent()).toMatch(/^\d$/);
  await studio.page.getByRole("combobox", { name: "Entries of" }).selectOption("Wind");
  await studio.page
    .getByRole("grid", { name: "Entries of Wind" })
    .getByText("roof")
    .first()
    .waitFor();
});

test("the result of timeseries() in a query is a plot", async () => {
  const text =
    "from Sensors as s select s.Name, timeseries(from s.Wind group by '1 day' select min(), max(), avg()) as Days";
  await studio.open(`db/shop/query?q=${encodeURIComponent(text)}`);
  const row = studio.page.getByRole("grid", { name: "Results" }).getByRole("row").nth(1);
  await row.getByRole("button").last().click();
  await studio.page
    .getByRole("img", { name: /^sensors\/1 Days: 300 entries; value between 0 and 9/ })
    .waitFor();
  await studio.page.getByText('"Results": [').waitFor();
});

test("plots fit a phone, and support both themes", async () => {
  for (const width of [390, 1440]) {
    await studio.page.setViewportSize({ width, height: 900 });
    for (const colorScheme of ["light", "dark"] as const) {
      await studio.page.emulateMedia({ colorScheme });
      await studio.open(
        `db/shop/doc/sensors%2F1?${new URLSearchParams({ side: "series", series: "Air\nWind" })}`,
      );
      // On a phone, the two halves of the page are tabs.
      const related = studio.page.getByRole("button", { name: "Related data" });
      if (width < 680) await related.click();
      await studio.page.getByRole("img", { name: /^Wind: / }).waitFor();
      await studio.page.waitForTimeout(300);
      expect(await studio.page.evaluate("document.documentElement.scrollWidth")).toBe(width);
      if (process.env["PICTURES"] !== undefined)
        await studio.page.screenshot({
          path: `${process.env["PICTURES"]}/series-${width}-${colorScheme}.png`,
        });
    }
  }
});
