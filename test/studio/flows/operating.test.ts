/** The operator's pages of the studio in a real browser: databases, backups, import and export, certificates, figures, settings. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ChangesSocket } from "../../support/changes-socket.ts";
import { studioBrowser } from "../../support/studio-browser.ts";
import { unzip } from "../../support/unzip.ts";

const studio = studioBrowser();
const folder = mkdtempSync(join(tmpdir(), "jackdaw-backups-"));

beforeAll(async () => {
  await studio.server.request("/databases/shop/studio/sample-data", { method: "POST" });
}, 60_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const button = (name: string | RegExp) => studio.page.getByRole("button", { name });
const documentsOf = async (database: string) => {
  const { json } = await studio.server.request(`/databases/${database}/stats/essential`);
  return (json as { CountOfDocuments: number }).CountOfDocuments;
};
const make = (name: string) => studio.server.running.services.databases.create(name, {});

test("a schedule is made, run and verified, and its backup restored into a new database", async () => {
  await studio.open("db/shop/backup");
  await studio.page.getByRole("heading", { name: "shop was never backed up from here" }).waitFor();
  await button("New schedule").click();
  await studio.page.getByRole("textbox", { name: "Folder on the server" }).fill(folder);
  await button("Save the schedule").click();
  await studio.page.getByText("Full on Sunday at 02:00, changes every day at 02:00").waitFor();
  await button("Back up now").click();
  await studio.page
    .getByText(/Verified: it was restored aside, and has all 1,\d+ documents/)
    .waitFor();
  await button("Close").click();
  await studio.page.getByRole("cell", { name: "Verified" }).waitFor();
  await button("Restore…").click();
  const dialog = studio.page.getByRole("dialog");
  await dialog.getByRole("textbox").fill("shop");
  await dialog.getByText("There is a database shop already.").waitFor();
  expect(await dialog.getByRole("button", { name: "Restore shop" }).isDisabled()).toBe(true);
  await dialog.getByRole("textbox").fill("again");
  await dialog.getByRole("button", { name: "Restore again" }).click();
  await studio.page.getByText(/again is restored, with 1,\d+ documents/).waitFor();
  expect(await documentsOf("again")).toBe(await documentsOf("shop"));
});

test("a backup is made by hand into a folder, where it can be restored from", async () => {
  await make("small");
  await studio.open("db/small/backup");
  await button("Back up now").click();
  const path = studio.page.getByRole("textbox", { name: "Folder on the server" });
  await path.fill("relative/path");
  studio.expectRefusal(400);
  await button("Back up small").click();
  await studio.page.getByRole("dialog").getByRole("alert").waitFor();
  await path.fill(join(folder, "by hand"));
  await button("Back up small").click();
  await studio.page.getByText(/Verified: it was restored aside/).waitFor();
  await button("Close").click();
  const rows = studio.page.getByRole("region", { name: "Made by hand" }).getByRole("row");
  await rows.nth(1).getByText("Verified").waitFor();
  await studio.page.reload();
  await rows.nth(1).getByRole("button", { name: "Restore…" }).waitFor();
});

test("lines of JSON are dropped, seen before they are imported, and those that exist are left alone", async () => {
  await make("lines");
  const put = (id: string, body: object) =>
    studio.server.request(`/databases/lines/docs?id=${id}`, {
      method: "PUT",
      body: JSON.stringify(body),
    });
  await put("orders/7", { Amount: "mine" });
  await studio.open("db/lines/backup?tab=import");
  const lines = Array.from({ length: 2500 }, (_, n) => `{"Key":"orders/${n}","Amount":${n}.10}`);
  await drop("orders-2025.jsonl", lines.join("\n"));
  await studio.page.getByRole("table", { name: "The first rows" }).getByText("orders/3").waitFor();
  expect(await studio.page.getByRole("textbox", { name: /Collection/ }).inputValue()).toBe(
    "Orders",
  );
  await studio.page.getByRole("combobox", { name: /Id from the field/ }).selectOption("Key");
  await studio.page.getByRole("checkbox", { name: /Leave documents that exist/ }).check();
  await button("Import orders-2025.jsonl").click();
  await studio.page
    .getByText("2,499 documents imported from orders-2025.jsonl, 1 skipped.")
    .waitFor();
  expect(await documentsOf("lines")).toBe(2500);
  const { text } = await studio.server.request("/databases/lines/docs?id=orders/7&id=orders/8");
  expect(text).toContain('"Amount":"mine"');
  // The digits of a number are kept, and the collection is the one that was chosen.
  expect(text).toContain('"Amount":8.10');
  expect(text).toContain('"@collection":"Orders"');
});

test("a table is imported with its types, and a broken one tells its line", async () => {
  await make("tables");
  await studio.open("db/tables/backup?tab=import");
  await drop("people.csv", 'Name,Age,Address.City\n"Ada",36,London\n"Alan, T.",41,"Wilmslow"\n');
  await button("Import people.csv").click();
  await studio.page.getByText("2 documents imported from people.csv.").waitFor();
  const { text } = await studio.server.request("/databases/tables/docs?startsWith=people/");
  expect(text).toContain('"Name":"Alan, T.","Age":41,"Address":{"City":"Wilmslow"}');
  await studio.page.getByRole("button", { name: "Another file" }).click();
  await drop("bad.csv", "A,B\n1,2\n3\n");
  await studio.page.getByText("Line 3 has 1 cells, and the first line has 2.").waitFor();
});

test("an export is downloaded, and imported again it gives the same documents", async () => {
  await studio.open("db/shop/backup?tab=export");
  await studio.page
    .getByRole("group", { name: "Only of these collections" })
    .getByText("Regions")
    .click();
  const download = studio.page.waitForEvent("download");
  await button("Export shop").click();
  const path = join(folder, "shop.ravendbdump");
  await (await download).saveAs(path);
  await studio.page.getByText(/is in your downloads/).waitFor();
  await make("copy");
  await studio.open("db/copy/backup?tab=import");
  await drop("shop.ravendbdump", readFileSync(path));
  await button("Import shop.ravendbdump").click();
  await studio.page.getByText("4 documents imported from shop.ravendbdump.").waitFor();
  expect(await documentsOf("copy")).toBe(4);
});

test("documents of one collection are exported as lines that are the documents", async () => {
  await studio.open("db/shop/backup?tab=export");
  await studio.page.getByRole("combobox", { name: "As" }).selectOption("jsonl");
  await studio.page
    .getByRole("group", { name: "Only of these collections" })
    .getByText("Regions")
    .click();
  const download = studio.page.waitForEvent("download");
  await button("Export shop").click();
  const path = join(folder, "regions.jsonl");
  await (await download).saveAs(path);
  const lines = readFileSync(path, "utf8").trim().split("\n");
  expect(lines.map((line) => (JSON.parse(line) as { Name: string }).Name.trim()).sort()).toEqual([
    "Eastern",
    "Northern",
    "Southern",
    "Western",
  ]);
});

test("sample data goes into a new database where this one has documents", async () => {
  await studio.open("db/shop/backup?tab=sample");
  await button("Make demo with it").click();
  await studio.page.getByRole("link", { name: /^Orders/ }).waitFor();
  expect(studio.page.url()).toContain("/db/demo/docs");
});

test("a certificate is made, used and revoked, which ends its open connection", async () => {
  await studio.open("certificates");
  await button("New certificate").click();
  const dialog = studio.page.getByRole("dialog");
  await dialog.getByRole("textbox", { name: "Name" }).fill("ci-runner");
  await dialog.getByRole("combobox", { name: "Add a database" }).selectOption("shop");
  await dialog.getByRole("radio", { name: "shop, read", exact: true }).check();
  const download = studio.page.waitForEvent("download");
  await button("Make and download").click();
  const path = join(folder, "ci-runner.zip");
  await (await download).saveAs(path);
  await studio.page.getByText("The key is in this file only.").waitFor();
  const files = Object.entries(unzip(readFileSync(path)));
  const file = (ending: string) =>
    String(files.find(([name]) => name.endsWith(ending) && !name.startsWith("ca"))?.[1]);
  const pair = { key: file(".key"), certificate: file(".crt") };
  await button("Done").click();
  const socket = await ChangesSocket.open(studio.server, "/databases/shop/changes", pair);
  await studio.page.reload();
  await button("ci-runner").click();
  const drawer = studio.page.getByRole("complementary", { name: "Certificate ci-runner" });
  await drawer.getByText("1 open", { exact: true }).waitFor();
  await drawer.getByRole("radio", { name: "shop, read and write" }).check();
  await drawer.getByRole("button", { name: "Save the rights" }).click();
  await drawer.getByText("Saved", { exact: true }).waitFor();
  const { certificates } = studio.server.running.services;
  expect(certificates.list().find(({ Name }) => Name === "ci-runner")?.Permissions).toEqual({
    shop: "ReadWrite",
  });
  await drawer.getByRole("button", { name: "Revoke…" }).click();
  await studio.page
    .getByRole("alertdialog")
    .getByText(/1 open connection/)
    .waitFor();
  await button("Revoke ci-runner").click();
  await socket.closed;
  await button("ci-runner").waitFor({ state: "detached" });
});

test("one's own certificate is marked, and cannot be revoked", async () => {
  await studio.open("certificates");
  const row = studio.page.getByRole("row", { name: /You/ });
  await row.getByRole("button").click();
  const revoke = studio.page.getByRole("complementary").getByRole("button", { name: "Revoke…" });
  expect(await revoke.isDisabled()).toBe(true);
  await studio.page.getByText("Another administrator can revoke it.").waitFor();
  await studio.page.keyboard.press("Escape");
  await studio.page.getByRole("complementary").waitFor({ state: "detached" });
});

test("plots move, the request of somebody else is seen, and a query that runs is killed", async () => {
  await studio.open("db/shop/performance");
  await studio.page.getByRole("img", { name: /^Latency, p99: / }).waitFor();
  await studio.page.getByRole("img", { name: /^Memory, process: / }).waitFor();
  const seen = studio.page.getByRole("table", { name: "Requests" });
  await expect
    .poll(
      async () => {
        await studio.server.request("/databases/shop/docs?id=orders/830-A");
        return await seen.getByText("orders/830-A").count();
      },
      { timeout: 10_000 },
    )
    .toBeGreaterThan(0);
  await studio.page.getByRole("searchbox", { name: "Filter the requests" }).fill("nothing like it");
  await seen.waitFor({ state: "detached" });
  // The peak that the requests made is in the table behind the plot.
  await button("As tables").click();
  const rows = studio.page.getByRole("region", { name: "Requests" }).first().getByRole("row");
  await expect.poll(() => rows.count()).toBeGreaterThan(2);
  await studio.page.getByRole("tab", { name: "Running" }).click();
  await studio.page.getByText("No query runs now.").waitFor();
  // It waits for an index that is paused.
  await studio.server.request("/databases/shop/admin/indexes/stop", { method: "POST" });
  const Query = "from Orders where Freight > 1 and ShipVia != null";
  const slow = studio.server.request("/databases/shop/queries", {
    method: "POST",
    body: JSON.stringify({
      Query,
      WaitForNonStaleResults: true,
      WaitForNonStaleResultsTimeout: "00:00:30",
    }),
  });
  await studio.page.getByRole("cell", { name: Query }).waitFor();
  await button("Kill").click();
  expect((await slow).status).toBeGreaterThanOrEqual(400);
  await studio.page.getByText("No query runs now.").waitFor();
  await studio.server.request("/databases/shop/admin/indexes/start", { method: "POST" });
});

test("a range is in the address, and a held page asks for nothing more", async () => {
  await studio.open("performance?range=1h");
  await studio.page.getByRole("img", { name: /^Requests, all: / }).waitFor();
  expect(await button("1 h").getAttribute("aria-pressed")).toBe("true");
  await button("5 min").click();
  expect(studio.page.url()).toContain("range=5m");
  let asked = 0;
  studio.page.on("request", (request) => {
    if (request.url().includes("/admin/metrics")) asked++;
  });
  await expect.poll(() => asked, { timeout: 10_000 }).toBeGreaterThan(1);
  await button("Hold").click();
  await studio.page.waitForTimeout(300);
  const before = asked;
  await studio.page.waitForTimeout(2500);
  expect(asked).toBe(before);
});

/** Drops a file on the place for it. */
async function drop(name: string, content: string | Buffer): Promise<void> {
  const base64 = Buffer.from(content).toString("base64");
  // As text: the browser's types are not those of the tests.
  const data = await studio.page.evaluateHandle(`(() => {
    const bytes = Uint8Array.from(atob("${base64}"), (one) => one.charCodeAt(0));
    const transfer = new DataTransfer();
    transfer.items.add(new File([bytes], ${JSON.stringify(name)}));
    return transfer;
  })()`);
  await studio.page.getByRole("group", { name: "File to import" }).dispatchEvent("drop", {
    dataTransfer: data,
  });
}
