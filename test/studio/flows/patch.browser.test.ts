/**
 * The patch page in a real browser: a patch is tried, dry-run, run, controlled, undone, and resumed
 * after a restart.
 */
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { ChildServer } from "../../support/child-server.ts";
import { studioBrowser } from "../../support/studio-browser.ts";

const studio = studioBrowser({ databases: [{ name: "shop" }] });
const count = 3000;

/** Commands that store the documents. */
const orders = () =>
  Array.from({ length: count }, (_, n) => ({
    Type: "PUT",
    Id: `orders/${n}`,
    Document: { N: n, Freight: `${n},5`, "@metadata": { "@collection": "Orders" } },
  }));

beforeEach(async () => {
  await studio.server.request("/databases/shop/bulk_docs", {
    method: "POST",
    body: JSON.stringify({ Commands: orders() }),
  });
});

const role = (...[name, options]: Parameters<typeof studio.page.getByRole>) =>
  studio.page.getByRole(name, options);

async function total(where: string): Promise<number> {
  const body = JSON.stringify({
    Query: `from Orders where ${where}`,
    PageSize: 0,
    WaitForNonStaleResults: true,
  });
  const { json } = await studio.server.request("/databases/shop/queries", { method: "POST", body });
  return (json as { TotalResults: number }).TotalResults;
}

async function startPatch(text: string, parameters: string): Promise<number> {
  const body = JSON.stringify({ Query: { Query: text } });
  const path = `/databases/shop/queries?${parameters}`;
  const { json } = await studio.server.request(path, { method: "PATCH", body });
  return (json as { OperationId: number }).OperationId;
}

const addressOf = (text: string) => `db/shop/patch?q=${encodeURIComponent(text)}`;

test("a patch is tried on one document, with the keyboard, and nothing is written", async () => {
  await studio.open("db/shop/docs");
  await role("link", { name: "Patch" }).first().click();
  const editor = role("textbox", { name: "Patch" });
  await expect.poll(() => editor.textContent()).toContain("from Orders as o");
  await editor.click();
  for (let line = 0; line < 5; line++) await studio.page.keyboard.press("ArrowUp");
  for (let line = 0; line < 3; line++) await studio.page.keyboard.press("ArrowDown");
  await studio.page.keyboard.type("o.Freight = 1; o.Total = 2;");
  await studio.page.keyboard.press("Control+Enter");
  const tried = role("region", { name: "Test on orders/0" });
  await tried.waitFor();
  await expect.poll(() => tried.textContent()).toContain('"Total": 2');
  expect(await tried.locator(".ins, .add, [class*=add]").count()).toBeGreaterThan(0);
  expect(await total("Total = 2")).toBe(0);
  // The same key continues with the next step.
  await editor.click();
  await studio.page.keyboard.press("Control+Enter");
  await studio.page.getByText("3,000 of 3,000 documents of Orders would change.").waitFor();
  expect(await total("Total = 2")).toBe(0);
});

test("a script without effect is reported as such; a failing one shows the reason", async () => {
  await studio.open(addressOf("from Orders as o update { if (o.N > 10) o.N = 10; }"));
  await role("textbox", { name: "Document to test" }).fill("orders/4");
  await role("button", { name: "Test" }).click();
  await studio.page.getByText("The script leaves orders/4 unchanged.").waitFor();
  await studio.open(addressOf("from Orders as o update { throw 'not this one'; }"));
  studio.expectRefusal(500);
  studio.expectRefusal(400);
  await role("button", { name: "Test" }).click();
  await role("alert")
    .getByText(/not this one/)
    .first()
    .waitFor();
});

test("an error of a script is one sentence, and marked in the text", async () => {
  studio.expectRefusal(500);
  studio.expectRefusal(400);
  const marked = studio.page.locator(".cm-mistake");
  const alert = role("alert");
  const attempt = async (text: string) => {
    await studio.open(addressOf(text));
    await role("button", { name: "Test" }).click();
    await marked.first().waitFor();
    expect(await alert.textContent()).not.toMatch(/Raven|Exception|Line|Query:/);
    return (await marked.allTextContents()).join("");
  };
  expect(await attempt("from Orders as o\nupdate {\n  o.N = 1;\n  throw 'reason';\n}")).toBe("'");
  expect(await alert.textContent()).toBe("reason (orders/0)");
  expect(await attempt("from Orders as o\nupdate { o.N = ; }")).toBe(";");
  expect(await alert.textContent()).toBe("Update clause contains invalid script");
  expect(await attempt("from Orders as o wher x = 1 update { o.N = 1; }")).toBe("wher");
});

test("a dry run shows counts, examples and failures; the run shows its result", async () => {
  await studio.open(
    addressOf(
      "from Orders as o update { if (o.N == 7) throw 'seven'; if (o.N >= 1000) o.Big = true; }",
    ),
  );
  await role("button", { name: "Dry run" }).click();
  await studio.page.getByText("2,000 of 3,000 documents of Orders would change.").waitFor();
  await studio.page.getByText("999 would be unchanged.").waitFor();
  await studio.page.getByText("1 would fail").waitFor();
  await role("button", { name: "orders/1000" }).click();
  await studio.page.getByText('"Big": true').first().waitFor();
  expect(await total("Big = true")).toBe(0);
  await studio.open(addressOf("from Orders as o update { if (o.N >= 1000) o.Big = true; }"));
  await role("button", { name: "Dry run" }).click();
  await studio.page.getByText("None fails.").waitFor();
  await role("button", { name: "Patch 2,000 documents of Orders" }).click();
  await role("heading", { name: /^Patched 2,000 documents of Orders in / }).waitFor();
  await studio.page.getByText("1,000 were unchanged.").waitFor();
  expect(studio.page.url()).toMatch(/\/studio\/db\/shop\/patch\/\d+$/);
  expect(await total("Big = true")).toBe(2000);
  // The list shows who started it.
  const row = role("row", { name: /Patch Orders/ }).first();
  await expect.poll(() => row.textContent()).toContain("test client");
});

test("a dry run is stopped", async () => {
  const slow = "from Orders update { for (let i = 0; i < 20000; i++) this.N = i; }";
  await studio.open(addressOf(slow));
  await role("button", { name: "Dry run" }).click();
  await role("button", { name: "Stop" }).click();
  await studio.page.getByText("The dry run was stopped. Nothing was written.").waitFor();
  await role("button", { name: "Dry run" }).waitFor();
  await studio.page
    .locator("tr", { hasText: "Dry run Orders" })
    .first()
    .getByText("Stopped")
    .waitFor();
});

test("the button that runs a patch is in view after the dry run, also on a phone", async () => {
  for (const size of [
    { width: 1440, height: 900 },
    { width: 390, height: 844 },
  ]) {
    await studio.page.setViewportSize(size);
    await studio.open(addressOf("from Orders as o update { o.Big = true; o.Note = 'Note'; }"));
    await role("button", { name: "Test", exact: true }).click();
    await role("region", { name: "Test on orders/0" }).waitFor();
    await role("button", { name: "Dry run" }).click();
    const run = role("button", { name: "Patch 3,000 documents of Orders" });
    await run.waitFor();
    const { y = Number.NaN, height = 0 } = (await run.boundingBox()) ?? {};
    // Above the tabs at the bottom.
    expect(y + height).toBeLessThan(size.height - 56);
  }
});

test("a run is paused, limited, resumed and stopped, on a phone", async () => {
  await studio.page.setViewportSize({ width: 360, height: 740 });
  const id = await startPatch("from Orders update { this.Slow = 1 }", "maxOpsPerSec=50&undo=true");
  await studio.open(`db/shop/patch/${id}`);
  await role("progressbar", { name: "Patch Orders" }).waitFor();
  await role("button", { name: "Pause" }).click();
  await role("heading", { name: /^Paused at / }).waitFor();
  const paused = await total("Slow = 1");
  expect(paused).toBeGreaterThan(0);
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(await total("Slow = 1")).toBe(paused);
  const slider = role("slider", { name: "Maximum documents per second" });
  await slider.focus();
  await studio.page.keyboard.press("Home");
  await studio.page.getByText("10 / s", { exact: true }).waitFor();
  await expect
    .poll(async () => {
      const path = `/databases/shop/operations/state?id=${id}`;
      return ((await studio.server.request(path)).json as { MaxOpsPerSec: number }).MaxOpsPerSec;
    })
    .toBe(10);
  await role("button", { name: "Resume" }).click();
  await role("button", { name: "Pause" }).waitFor();
  await expect.poll(() => total("Slow = 1"), { timeout: 10_000 }).toBeGreaterThan(paused);
  const width = await studio.page.evaluate("document.documentElement.scrollWidth");
  expect(width).toBe(360);
  await role("button", { name: "Stop…" }).click();
  const question = role("alertdialog");
  await question.getByText("Undo is possible afterwards.").waitFor();
  // Esc does not stop it.
  await studio.page.keyboard.press("Escape");
  await question.waitFor({ state: "hidden" });
  await role("button", { name: "Stop…" }).click();
  await role("alertdialog").getByRole("button", { name: "Stop", exact: true }).click();
  await role("heading", { name: /^Stopped after / }).waitFor();
  const stopped = await total("Slow = 1");
  expect(stopped).toBeLessThan(count);
});

test("an operation is undone; later changes of others are kept and listed", async () => {
  const id = await startPatch("from Orders update { this.N = -1 }", "undo=true");
  await studio.open(`db/shop/patch/${id}`);
  await role("heading", { name: /^Patched 3,000/ }).waitFor();
  await studio.server.request("/databases/shop/docs?id=orders/5", {
    method: "PUT",
    body: JSON.stringify({ N: -5, "@metadata": { "@collection": "Orders" } }),
  });
  await role("button", { name: "Undo…" }).click();
  const question = role("alertdialog", {
    name: `Restore 3,000 documents of Orders to their state before operation ${id}?`,
  });
  await question.getByRole("button", { name: "Restore" }).click();
  await role("heading", { name: /^Restored 2,999 documents in / }).waitFor();
  await studio.page.getByText("1 were changed since then and not restored.").waitFor();
  await studio.page.getByText("orders/5", { exact: true }).waitFor();
  expect(await total("N = -1")).toBe(0);
  expect(await total("N = 17")).toBe(1);
  await studio.open(`db/shop/patch/${id}`);
  await studio.page.getByText(/Undone by operation \d+/).waitFor();
  expect(await role("button", { name: "Undo…" }).count()).toBe(0);
});

test("a patch resumes after its server was killed and restarted", async () => {
  const server = new ChildServer();
  onTestFinished(() => server.remove());
  await server.start();
  await server.request("/admin/databases?name=shop", "PUT", { DatabaseName: "shop" });
  await server.request("/databases/shop/bulk_docs", "POST", { Commands: orders() });
  const text = "from Orders update { this.N += 100000 }";
  const { OperationId: id } = (await server.request(
    "/databases/shop/queries?maxOpsPerSec=500",
    "PATCH",
    { Query: { Query: text } },
  )) as { OperationId: number };
  const context = await studio.browser.newContext({ viewport: { width: 1440, height: 900 } });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  const mistakes: string[] = [];
  page.on("pageerror", (error) => mistakes.push(error.message));
  await page.goto(`${server.url}/studio/db/shop/patch/${id}`);
  const { url } = server;
  await page.getByRole("progressbar", { name: "Patch Orders" }).waitFor();
  const patched = async () => {
    const query = encodeURIComponent("from Orders where N >= 100000");
    const path = `/databases/shop/queries?query=${query}&pageSize=0&waitForNonStaleResults=true`;
    return ((await server.request(path)) as { TotalResults: number }).TotalResults;
  };
  await expect.poll(patched).toBeGreaterThan(100);
  await server.kill();
  await page.getByRole("alert").getByText("Not connected.").waitFor();
  await server.start();
  expect(server.url).toBe(url);
  await page.getByRole("status").getByText("Reconnected").waitFor();
  const half = await patched();
  expect(half).toBeGreaterThan(100);
  expect(half).toBeLessThan(count);
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByRole("heading", { name: /^Patched 3,000 documents of Orders/ }).waitFor();
  expect(await patched()).toBe(count);
  // Once each: none is patched twice.
  const { Results } = (await server.request(
    `/databases/shop/queries?query=${encodeURIComponent("from Orders")}&pageSize=${count}`,
  )) as { Results: { N: number }[] };
  const numbers = Results.map(({ N }) => N).sort((one, other) => one - other);
  expect(numbers).toEqual(Array.from({ length: count }, (_, n) => n + 100_000));
  expect(mistakes).toEqual([]);
});
