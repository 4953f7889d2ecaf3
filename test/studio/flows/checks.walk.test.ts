/**
 * Checks of every page: the rules of axe, contrast in both themes, and no page wider than the
 * window. A new page is a line in `pages`.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { beforeAll, expect, test } from "vitest";
import { studioBrowser } from "../../support/studio-browser.ts";

const studio = studioBrowser();

/** Addresses below /studio/, and a selector of an element on the loaded page. */
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
  ["db/shop/doc/employees%2F8-A?side=series", ".plot"],
  ["db/shop/doc/products%2F1-A?side=counters", ".counter"],
  ["db/shop/doc/nobody", ".empty"],
  ["db/shop/doc?new=Orders", ".editor"],
  ["db/shop/query", ".editor"],
  ["db/shop/backup?tab=revert", "form"],
  ["db/shop/settings", "form"],
  ["db/shop/subscriptions", ".page"],
  ["db/shop/subscriptions?new=1", ".editor"],
  ["db/shop/query?q=from%20Orders%20filter%20Freight%20%3E%20500&how=plan", ".plan"],
  ["db/shop/query?q=from%20Products&view=chart", ".bars"],
  ["db/shop/query?q=from%20Orders&view=chart", "canvas"],
  ["db/shop/query?q=from%20Companies&view=map", ".map svg"],
  ["db/shop/docs/Orders?view=schema", ".schema"],
  ["db/shop/doc/companies%2F85-A?side=related&referring=1", ".node.all"],
  ["db/shop/index/Orders%2FTotals?tab=terms", ".terms .took"],
  ["db/shop/index/Orders%2FTotals?tab=speed", ".u-over"],
  ["db/shop/index/Orders%2FByCompany?tab=test&doc=orders%2F1-A", ".map-reduce"],
  ["db/shop/performance?storage=parts", "table .took"],
  ["db/other/docs", ".empty"],
  ["nothing", ".empty"],
  ["cluster", ".empty"],
  ["log?level=Trace", ".page"],
  ["performance?at=2020-01-01T00:00", ".note"],
];

const widths = [360, 1024, 1440];

/** Injected into the page from outside: the page itself may load only its own script. */
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

beforeAll(async () => {
  await studio.server.request("/databases/shop/studio/sample-data", { method: "POST" });
});

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

/** Violated rules, as text. */
const broken = async (rules: string): Promise<string[]> => {
  const found = (await studio.page.evaluate(`axe.run(document, { runOnly: ${rules} })`)) as {
    violations: readonly Violation[];
  };
  return found.violations.flatMap(({ id, nodes }) =>
    nodes.map(
      ({ html, failureSummary = "" }) =>
        `${id}: ${html.slice(0, 200)} ${failureSummary.slice(0, 300)}`,
    ),
  );
};

test.each(pages)(
  "the page violates no rule of axe, and fits every window: %s",
  async (address, ready) => {
    await studio.page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
    await studio.open(address);
    await studio.page.locator(ready).first().waitFor();
    await studio.page.evaluate(axe);
    expect(await broken("['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']")).toEqual([]);
    await studio.page.emulateMedia({ colorScheme: "dark" });
    expect(await broken("{ type: 'rule', values: ['color-contrast'] }")).toEqual([]);
    for (const width of widths) {
      await studio.page.setViewportSize({ width, height: 800 });
      const shown = () => studio.page.evaluate("document.documentElement.scrollWidth");
      await expect.poll(shown, { message: `at ${width}` }).toBe(width);
    }
  },
);
