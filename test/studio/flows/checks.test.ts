/**
 * What holds on every page: the rules of axe, in both themes, and no page that is wider than the window. A new page is a
 * line in `pages`.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { beforeAll, expect, test } from "vitest";
import { studioBrowser } from "../../support/studio-browser.ts";

const studio = studioBrowser();

/** Addresses behind /studio/, and a selector of what is there when the page is. */
const pages: readonly (readonly [address: string, ready: string])[] = [
  ["databases", "table"],
  ["db/shop/docs", "[role=grid] [role=row]:nth-child(1)"],
  ["db/shop/docs/Orders", "[role=grid] .idlink"],
  ["db/shop/docs/Orders?where=ShipTo.City%20%3D%20'Rheims'", ".empty"],
  ["db/shop/docs/@cmpxchg", "table"],
  ["db/shop/docs/@revisions-bin", ".empty"],
  ["db/shop/doc/orders%2F830-A", ".diff"],
  ["db/shop/doc/orders%2F830-A?view=tree&side=related", ".tree"],
  ["db/shop/doc/employees%2F8-A?view=meta&side=attachments", ".parts"],
  ["db/shop/doc/employees%2F8-A?side=series", ".line-plot"],
  ["db/shop/doc/products%2F1-A?side=counters", ".counter"],
  ["db/shop/doc/nobody", ".empty"],
  ["db/shop/doc?new=Orders", ".editor"],
  ["db/shop/query", ".editor"],
  ["db/other/docs", ".empty"],
  ["nothing", ".empty"],
  ["cluster", ".empty"],
  ["performance?at=2020-01-01T00:00", ".note"],
];

const widths = [360, 1024, 1440];

/** Put into the page from outside: the page itself may load no script but its own. */
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

beforeAll(async () => {
  await studio.server.request("/databases/shop/studio/sample-data", { method: "POST" });
}, 60_000);

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

const opened = async (address: string, ready: string) => {
  await studio.open(address);
  await studio.page.locator(ready).first().waitFor();
};

for (const theme of ["light", "dark"] as const) {
  test(`no page breaks a rule of axe, ${theme}`, async () => {
    await studio.page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
    const broken: string[] = [];
    for (const [address, ready] of pages) {
      await opened(address, ready);
      await studio.page.evaluate(axe);
      const found = (await studio.page.evaluate(
        "axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] })",
      )) as { violations: readonly Violation[] };
      for (const { id, nodes } of found.violations)
        for (const { html, failureSummary = "" } of nodes)
          broken.push(`${address}: ${id}: ${html.slice(0, 200)} ${failureSummary.slice(0, 300)}`);
    }
    expect(broken).toEqual([]);
  }, 180_000);
}

test("no page is wider than the window", async () => {
  const wide: string[] = [];
  for (const width of widths) {
    await studio.page.setViewportSize({ width, height: 800 });
    for (const [address, ready] of pages) {
      await opened(address, ready);
      const found = await studio.page.evaluate("document.documentElement.scrollWidth");
      if (found !== width) wide.push(`${address} at ${width}: ${found}`);
    }
  }
  expect(wide).toEqual([]);
}, 180_000);
