/**
 * Pages for users with limited rights: they offer nothing that the server would reject. After each
 * test, the server must not have rejected any request (studio-browser.ts).
 */
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import type { DatabaseAccess } from "../../../server/security/access.ts";
import { studioBrowser } from "../../support/studio-browser.ts";

const studio = studioBrowser({ databases: [{ name: "shop" }, { name: "other" }] });

/** Addresses below /studio/, and a selector of an element on the loaded page. */
const pages: readonly (readonly [address: string, ready: string])[] = [
  ["databases", "table"],
  ["cluster", ".empty"],
  ["performance", ".page"],
  ["certificates", ".empty"],
  ["log", ".page h1"],
  ["db/shop/docs", "[role=grid] .idlink"],
  ["db/shop/docs/Orders", "[role=grid] .idlink"],
  ["db/shop/docs/Nothing", ".empty"],
  ["db/shop/docs/@cmpxchg", "table"],
  ["db/shop/docs/@identities", "table, .empty"],
  ["db/shop/docs/@revisions-bin", "table"],
  ["db/shop/doc/orders%2F830-A", ".diff"],
  ["db/shop/doc/orders%2F830-A?side=related", ".side-body"],
  ["db/shop/doc/companies%2F1-A", ".split"],
  ["db/shop/doc/employees%2F8-A?view=meta&side=attachments", ".parts"],
  ["db/shop/doc/employees%2F8-A?side=series", ".plot"],
  ["db/shop/doc/products%2F1-A?side=counters", ".counter"],
  ["db/shop/doc?new=Orders", ".empty"],
  ["db/shop/query?q=from%20Orders%20where%20Freight%20%3E%20100&how=plan", ".editor"],
  ["db/shop/query?q=from%20Orders&view=chart", ".chart"],
  ["db/shop/query?q=from%20Companies&view=map", ".map"],
  ["db/shop/docs/Orders?view=schema", ".schema"],
  ["db/shop/patch", ".empty"],
  ["db/shop/patch/1", ".panel"],
  ["db/shop/indexes", "table"],
  ["db/shop/index?new=map", ".empty"],
  ["db/shop/index/Failing?tab=errors", ".pane"],
  ["db/shop/index/Failing", ".editor"],
  ["db/shop/index/Failing?tab=terms", ".pane"],
  ["db/shop/index/Failing?tab=entries", ".pane"],
  ["db/shop/index/Failing?tab=speed", ".pane"],
  ["db/shop/index/Failing?tab=history", ".pane"],
  ["db/shop/subscriptions?select=mail", ".drawer"],
  ["db/shop/performance", ".plot"],
  ["db/shop/performance?tab=running", ".plot"],
  ["db/shop/performance?storage=parts", "table .took"],
  ["db/shop/backup", "h2"],
  ["db/shop/backup?tab=import", "h2"],
  ["db/shop/backup?tab=export", ".panel"],
  ["db/shop/backup?tab=sample", "h2"],
  ["db/shop/settings", ".empty"],
];

/** Names with these prefixes change something, here or on the server. */
const writing =
  /^(Add|Back up|Clear errors|Clone|Compact|Create|Delete|Deploy|Disable|Disconnect|Dry run|Edit|Enable|Import|Keep|Kill|Lock|New|Patch|Pause(?! updates)|Priority|Remove|Renew|Reset|Restore|Resume(?! updates)|Revert|Revoke|Save$|Save (access|merged|schedule)|Stop|Subtract|Test$|Transfer|Undo|Unlock|Verify|Write an)/;

beforeAll(async () => {
  const send = async (method: string, path: string, body?: object) => {
    const { status, text } = await studio.server.request(`/databases/shop${path}`, {
      method,
      headers: { "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    expect(status, text).toBeLessThan(300);
  };
  await send("POST", "/studio/sample-data");
  await send("PUT", "/cmpxchg?key=a&index=0", { Object: 1 });
  await send("PUT", "/admin/indexes", {
    Indexes: [{ Name: "Failing", Maps: ["map('Orders', o => ({ a: o.Missing.Name }))"] }],
  });
  await send("PUT", "/subscriptions", { Name: "mail", Query: "from Orders" });
  await send("PATCH", "/queries", { Query: { Query: "from Shippers update { this.n = 1 }" } });
  await send("POST", "/admin/periodic-backup", {
    Name: "Nightly",
    BackupType: "Backup",
    FullBackupFrequency: "0 2 * * *",
    LocalSettings: { FolderPath: "/tmp/never-made" },
  });
  await send("POST", "/admin/revisions/config", { Default: { Disabled: false }, Collections: {} });
  await send("PUT", "/docs?id=notes/1", { a: 1 });
  await send("DELETE", "/docs?id=notes/1");
});

const open = async (page: Page, address: string, ready: string) => {
  await page.goto(`${studio.server.url}/studio/${address}`);
  await page.locator(ready).first().waitFor({ timeout: 15_000 });
  // Nothing is offered before the user is known.
  await page.locator(".who").waitFor();
};
const named = (access: DatabaseAccess) => studio.as({ permissions: { Shop: access } }, "reports");
/** Names of all controls on the page, including menus and dialogs. */
const offered = async (page: Page): Promise<string[]> =>
  (await page.evaluate(`[...document.querySelectorAll("button, a.btn, [role=menuitem], input[type=submit], input[type=file]")]
    .filter((one) => !one.closest("header, nav, footer"))
    .map((one) => (one.getAttribute("aria-label") ?? one.textContent ?? "").trim())`)) as string[];

test("a read-only user is offered nothing that writes, on any page", async () => {
  const page = await named("Read");
  const found: string[] = [];
  for (const [address, ready] of pages) {
    await open(page, address, ready);
    for (const name of await offered(page))
      if (writing.test(name)) found.push(`${address}: ${name}`);
    expect(await page.locator("[data-new]").count()).toBe(0);
  }
  expect(found).toEqual([]);
}, 180_000);

test("a read-only user can press every button without a rejection", async () => {
  const page = await named("Read");
  let pressed = 0;
  for (const [address, ready] of pages) {
    await open(page, address, ready);
    const buttons = page.locator("main button:enabled:visible");
    const number = Math.min(12, await buttons.count());
    for (let n = 0; n < number; n++) {
      const button = buttons.nth(n);
      // An earlier press may have removed it.
      if (!(await button.isVisible().catch(() => false))) break;
      await button.click({ timeout: 1000 }).catch(() => undefined);
      pressed++;
      if ((await page.locator("dialog[open]").count()) > 0) {
        expect((await offered(page)).filter((name) => writing.test(name))).toEqual([]);
        await page.keyboard.press("Escape");
      }
      if (!page.url().includes(address.split("?")[0] ?? "")) await open(page, address, ready);
    }
  }
  expect(pressed).toBeGreaterThan(60);
}, 240_000);

test("a document opens as read only", async () => {
  const page = await named("Read");
  await open(page, "db/shop/doc/companies%2F1-A", ".cm-content");
  await page.getByText("Read only").waitFor();
  const text = page.getByRole("textbox", { name: "Document companies/1-A" });
  const before = await text.textContent();
  await text.focus();
  await page.keyboard.type("x");
  await page.keyboard.press("Control+s");
  expect(await text.textContent()).toBe(before);
});

test("pages that only change something name the required role", async () => {
  const page = await named("Read");
  for (const [address, title] of [
    ["db/shop/patch", "shop is read-only for you"],
    ["db/shop/doc?new=Orders", "shop is read-only for you"],
    ["db/shop/index?new=map", "shop is read-only for you"],
    ["db/shop/settings", "Settings require administrator access to shop"],
    ["certificates", "Certificates require operator access"],
    ["log", "The log requires operator access"],
  ] as const) {
    await open(page, address, ".empty");
    await page.getByRole("heading", { name: title }).waitFor();
    await page.getByText("Your certificate reports does not have this access.").waitFor();
  }
});

test("keys and commands offer no more than buttons", async () => {
  const page = await named("Read");
  await open(page, "db/shop/docs/Orders", "[role=grid] .idlink");
  await page.getByRole("checkbox").nth(1).check();
  const bar = page.getByRole("toolbar", { name: "1 selected" });
  await bar.waitFor();
  expect(await bar.getByRole("button").allTextContents()).not.toContain("Delete");
  await page.keyboard.press("Delete");
  await page.keyboard.press("n");
  expect(await page.getByRole("alertdialog").count()).toBe(0);
  expect(page.url()).toContain("docs/Orders");
  await page.keyboard.press("Control+k");
  await page.getByRole("dialog").getByRole("combobox").fill(">");
  await page.getByRole("option", { name: /Light or dark/ }).waitFor();
  expect(await page.getByRole("option", { name: /New document/ }).count()).toBe(0);
});

test("a user with write access has documents and indexes, and no administration", async () => {
  const page = await named("ReadWrite");
  await open(page, "databases", "table");
  expect(await page.getByText("other", { exact: true }).count()).toBe(0);
  expect(await page.getByRole("button", { name: "New database" }).count()).toBe(0);
  await open(page, "db/shop/docs/Orders", "[role=grid] .idlink");
  await page.getByRole("link", { name: "New document" }).waitFor();
  await open(page, "db/shop/indexes", "table");
  await page.getByRole("link", { name: "New index" }).waitFor();
  expect(await page.getByRole("button", { name: "Pause all" }).count()).toBe(0);
  await page.getByRole("button", { name: "More about Failing" }).click();
  await page.getByRole("menuitem", { name: "Delete…" }).waitFor();
  expect(await page.getByRole("menuitem", { name: "Pause" }).count()).toBe(0);
  await open(page, "db/shop/backup", "h2");
  await page.getByRole("heading", { name: "Nightly" }).waitFor();
  expect(await page.getByRole("button", { name: "Back up now" }).count()).toBe(0);
  await page.getByRole("tab", { name: "Sample data" }).click();
  await page.getByText("only operators can create databases").waitFor();
  await open(page, "db/shop/patch", ".editor");
  // A real write, because it is permitted.
  await open(page, "db/shop/doc/companies%2F2-A", ".cm-content");
  await page.getByRole("button", { name: "Save" }).waitFor();
}, 90_000);

test("a database administrator has its settings and schedules", async () => {
  const page = await named("Admin");
  await open(page, "db/shop/settings", "form");
  await open(page, "db/shop/backup", "h2");
  await page.getByRole("button", { name: "Back up now" }).waitFor();
  await open(page, "databases", "table");
  await page.getByRole("button", { name: "More about shop" }).click();
  expect(await page.getByRole("menuitem").allTextContents()).toEqual(["Back up"]);
});

test("an operator opens every page, and cannot grant more rights than his own", async () => {
  const page = await studio.as({ clearance: "Operator" }, "operator");
  for (const [address] of pages) await open(page, address, "h1");
  await open(page, "certificates", "table");
  await page.getByRole("button", { name: "New certificate" }).click();
  const clearance = page.getByRole("dialog").getByRole("combobox", { name: "May" });
  expect(await clearance.getByRole("option").count()).toBe(2);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "test client" }).first().click();
  await page.getByText("Only cluster administrators can change it.").waitFor();
  expect(await page.getByRole("button", { name: /Revoke|Save access|Renew/ }).count()).toBe(0);
}, 120_000);
