/**
 * The operator's pages of the studio in a real browser: databases, backups, import and export,
 * certificates, metrics, settings.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { ChangesSocket } from "../../support/changes-socket.ts";
import { S3Server } from "../../support/s3-server.ts";
import { studioBrowser } from "../../support/studio-browser.ts";
import { unzip } from "../../support/unzip.ts";

const studio = studioBrowser();
const folder = mkdtempSync(join(tmpdir(), "jackdaw-backups-"));

beforeAll(async () => {
  await studio.server.request("/databases/shop/studio/sample-data", { method: "POST" });
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const button = (name: string | RegExp) => studio.page.getByRole("button", { name });
const documentsOf = async (database: string) => {
  const { json } = await studio.server.request(`/databases/${database}/stats/essential`);
  return (json as { CountOfDocuments: number }).CountOfDocuments;
};
const make = (name: string) => studio.server.running.services.databases.create(name, {});

test("a schedule is created, run and verified, and its backup restored into a new database", async () => {
  await studio.open("db/shop/backup");
  await studio.page.getByRole("heading", { name: "shop has no backup" }).waitFor();
  await button("New schedule").click();
  await studio.page.getByRole("textbox", { name: "Folder on the server" }).fill(folder);
  await button("Save schedule").click();
  await studio.page.getByText("Full on Sunday at 02:00, changes every day at 02:00").waitFor();
  await button("Back up now").click();
  await studio.page.getByText(/Verified: a test restore contains all 1,\d+ documents/).waitFor();
  await button("Close").click();
  await studio.page.getByRole("cell", { name: "Verified" }).waitFor();
  await button("Restore…").click();
  const dialog = studio.page.getByRole("dialog");
  await dialog.getByRole("textbox").fill("shop");
  await dialog.getByText("A database named shop already exists.").waitFor();
  expect(await dialog.getByRole("button", { name: "Restore shop" }).isDisabled()).toBe(true);
  await dialog.getByRole("textbox").fill("again");
  await dialog.getByRole("button", { name: "Restore again" }).click();
  await studio.page.getByText(/again is restored, with 1,\d+ documents/).waitFor();
  expect(await documentsOf("again")).toBe(await documentsOf("shop"));
});

test("a one-time backup is written to a folder, from which it can be restored", async () => {
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
  await studio.page.getByText(/Verified: a test restore/).waitFor();
  await button("Close").click();
  const rows = studio.page.getByRole("region", { name: "Manual backups" }).getByRole("row");
  await rows.nth(1).getByText("Verified").waitFor();
  await rows.nth(1).getByRole("button", { name: "Restore…" }).waitFor();
});

test("backups are encrypted with a generated key, and written to S3", async () => {
  const s3 = await S3Server.start();
  onTestFinished(() => s3.stop());
  await make("vault");
  const put = { method: "PUT", body: "{}" };
  await studio.server.request("/databases/vault/docs?id=items/1", put);
  await studio.open("db/vault/backup");
  await button("New schedule").click();
  const dialog = studio.page.getByRole("dialog");
  const field = (name: string | RegExp) => dialog.getByRole("textbox", { name });
  await dialog.getByRole("combobox", { name: "Target" }).selectOption("s3");
  await field("Bucket").first().fill(s3.access.BucketName);
  await field("Region").fill(s3.access.AwsRegionName);
  await field("Folder in the bucket").fill("vault");
  await field("Access key").fill(s3.access.AwsAccessKey);
  await dialog.getByLabel("Secret key").fill(s3.access.AwsSecretKey);
  await field(/^Server/).fill(s3.access.CustomServerUrl);
  await dialog.getByRole("checkbox", { name: "Encrypt backups" }).check();
  const save = dialog.getByRole("button", { name: "Save schedule" });
  expect(await save.isDisabled()).toBe(true);
  await dialog.getByRole("button", { name: "Generate a key" }).click();
  expect(Buffer.from(await field(/^Key/).inputValue(), "base64").length).toBe(32);
  await save.click();
  await button(/^Run$/).click();
  await studio.page.getByText("vault was backed up").waitFor();
  const names = [...s3.objects.keys()];
  expect(names.some((name) => name.startsWith("vault/") && name.includes("encrypted"))).toBe(true);
  // Secrets that are not typed again are retained.
  await button("Edit").click();
  await dialog.getByLabel("Secret key").waitFor();
  expect(await dialog.getByLabel("Secret key").inputValue()).toBe("");
  await dialog.getByRole("button", { name: "Save schedule" }).click();
  await dialog.waitFor({ state: "detached" });
  s3.objects.clear();
  await button(/^Run$/).click();
  await expect.poll(() => s3.objects.size).toBeGreaterThan(0);
});

test("backups in S3 are listed, and restored", async () => {
  const s3 = await S3Server.start();
  onTestFinished(() => s3.stop());
  await make("cloud");
  const put = { method: "PUT", body: "{}" };
  await studio.server.request("/databases/cloud/docs?id=items/1", put);
  const S3Settings = { ...s3.access, RemoteFolderName: "far" };
  const start = () =>
    studio.server.request("/databases/cloud/admin/backup", {
      method: "POST",
      body: JSON.stringify({ BackupType: "Backup", S3Settings }),
    });
  // Only one backup runs at a time, and schedules of other tests may be due.
  let started = await start();
  while (started.text.includes("only one backup runs at a time")) {
    await sleep(100);
    started = await start();
  }
  expect(started.status, started.text).toBe(200);
  const { OperationId } = started.json as { OperationId: number };
  const state = async () => {
    const path = `/databases/cloud/operations/state?id=${OperationId}`;
    return ((await studio.server.request(path)).json as { Status: string }).Status;
  };
  await expect.poll(state).toBe("Completed");
  await studio.open("db/cloud/backup");
  const dialog = studio.page.getByRole("dialog");
  await button("Show other backups…").click();
  await dialog.getByRole("combobox", { name: "Place" }).selectOption("s3");
  for (const [name, value] of [
    ["Bucket", s3.access.BucketName],
    ["Region", s3.access.AwsRegionName],
    ["Folder in the bucket", "far"],
    ["Access key", s3.access.AwsAccessKey],
    ["Secret key", s3.access.AwsSecretKey],
    ["Server, if it is not Amazon's", s3.access.CustomServerUrl],
  ] as const)
    await dialog.getByLabel(name, { exact: true }).fill(value);
  await button("Show backups").click();
  const row = dialog.getByRole("row", { name: /^cloud/ });
  await row.getByRole("button", { name: "Restore…" }).click();
  await button("Restore cloud-restored").click();
  await studio.page.getByText("cloud-restored is restored, with 1 document.").waitFor();
});

test("dropped JSON lines are previewed before the import, and existing documents are not changed", async () => {
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
  await studio.page.getByRole("combobox", { name: /Id field/ }).selectOption("Key");
  await studio.page.getByRole("checkbox", { name: /Keep existing documents/ }).check();
  await button("Import orders-2025.jsonl").click();
  await studio.page
    .getByText("2,499 documents imported from orders-2025.jsonl, 1 skipped.")
    .waitFor();
  expect(await documentsOf("lines")).toBe(2500);
  const { text } = await studio.server.request("/databases/lines/docs?id=orders/7&id=orders/8");
  expect(text).toContain('"Amount":"mine"');
  // The digits of a number are preserved, and the collection is the chosen one.
  expect(text).toContain('"Amount":8.10');
  expect(text).toContain('"@collection":"Orders"');
});

test("a table is imported with its types, and a malformed one reports its line", async () => {
  await make("tables");
  await studio.open("db/tables/backup?tab=import");
  await drop("people.csv", 'Name,Age,Address.City\n"Ada",36,London\n"Alan, T.",41,"Wilmslow"\n');
  await button("Import people.csv").click();
  await studio.page.getByText("2 documents imported from people.csv.").waitFor();
  const { text } = await studio.server.request("/databases/tables/docs?startsWith=people/");
  expect(text).toContain('"Name":"Alan, T.","Age":41,"Address":{"City":"Wilmslow"}');
  await studio.page.getByRole("button", { name: "Another file" }).click();
  await drop("bad.csv", "A,B\n1,2\n3\n");
  await studio.page.getByText("Line 3 has 1 cells; the first line has 2.").waitFor();
});

test("a JSON array that is dropped on the documents is imported into their collection", async () => {
  await make("arrays");
  await studio.server.request("/databases/arrays/docs?id=notes/1", {
    method: "PUT",
    body: JSON.stringify({ a: 1, "@metadata": { "@collection": "Notes" } }),
  });
  await studio.open("db/arrays/docs/Notes");
  await studio.page.getByRole("grid").waitFor();
  const dropped = await fileOf("any.json", '[{"a":1.50,"Text":"]}\\""},\n {"a":[{"b":2}]}]');
  await studio.page.locator(".docs").dispatchEvent("dragover", { dataTransfer: dropped });
  await studio.page.getByText("Drop the file to import it into Notes").waitFor();
  await studio.page.locator(".docs").dispatchEvent("drop", { dataTransfer: dropped });
  expect(await studio.page.getByRole("textbox", { name: /Collection/ }).inputValue()).toBe("Notes");
  await button("Import any.json").click();
  await studio.page.getByText("2 documents imported from any.json.").waitFor();
  const { text } = await studio.server.request("/databases/arrays/docs?startsWith=notes/");
  expect(text).toContain('{"a":1.50,"Text":"]}\\""');
  expect(await documentsOf("arrays")).toBe(3);
  await button("Another file").click();
  await drop("bad.json", '[{"a":1}\n{"a":2}]');
  await studio.page.getByText("Line 2: expected a JSON object, but found {").waitFor();
});

test("an export of MongoDB is recognized and converted", async () => {
  await make("mongo");
  await studio.open("db/mongo/backup?tab=import");
  const lines = [
    '{"_id":{"$oid":"5f1d7f3e2b4c8a0011223344"},"Total":{"$numberDecimal":"12.50"}}',
    '{"_id":7,"At":{"$date":"2026-01-02T03:04:05Z"}}',
  ];
  await drop("invoices.json", lines.join("\n"));
  await studio.page.getByRole("cell", { name: "5f1d7f3e2b4c8a0011223344" }).waitFor();
  const choice = studio.page.getByRole("checkbox", { name: /Export of MongoDB/ });
  expect(await choice.isChecked()).toBe(true);
  await choice.uncheck();
  await studio.page.getByRole("columnheader", { name: "_id" }).waitFor();
  await choice.check();
  await button("Import invoices.json").click();
  await studio.page.getByText("2 documents imported from invoices.json.").waitFor();
  const { text } = await studio.server.request(
    "/databases/mongo/docs?id=5f1d7f3e2b4c8a0011223344&id=7",
  );
  expect(text).toContain('"Total":12.50');
  expect(text).toContain('"At":"2026-01-02T03:04:05Z"');
  expect(text).toContain('"@collection":"Invoices"');
});

test("an export is downloaded, and its import restores the same documents", async () => {
  await studio.open("db/shop/backup?tab=export");
  await studio.page
    .getByRole("group", { name: "Only these collections" })
    .getByText("Regions")
    .click();
  const download = studio.page.waitForEvent("download");
  await button("Export shop").click();
  const path = join(folder, "shop.ravendbdump");
  await (await download).saveAs(path);
  await studio.page.getByText(/was downloaded/).waitFor();
  await make("copy");
  await studio.open("db/copy/backup?tab=import");
  await drop("shop.ravendbdump", readFileSync(path));
  await button("Import shop.ravendbdump").click();
  await studio.page.getByText("4 documents imported from shop.ravendbdump.").waitFor();
  expect(await documentsOf("copy")).toBe(4);
});

test("documents of one collection are exported as JSON lines", async () => {
  await studio.open("db/shop/backup?tab=export");
  await studio.page.getByRole("combobox", { name: "As" }).selectOption("jsonl");
  await studio.page
    .getByRole("group", { name: "Only these collections" })
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

test("a collection is reverted to a point in time, after typing its name", async () => {
  await make("mistaken");
  const send = (method: string, path: string, body: object) =>
    studio.server.request(`/databases/mistaken${path}`, { method, body: JSON.stringify(body) });
  const note = (n: number) => ({ n, "@metadata": { "@collection": "Notes" } });
  await send("POST", "/admin/revisions/config", { Default: { Disabled: false }, Collections: {} });
  await send("PUT", "/docs?id=notes/1", note(1));
  // The point in time is a whole second, which must pass before the mistakes.
  await studio.page.waitForTimeout(1100);
  const then = new Date(Date.now());
  await studio.page.waitForTimeout(1100);
  await send("PUT", "/docs?id=notes/1", note(2));
  await send("PUT", "/docs?id=notes/2", note(2));
  await studio.open("db/mistaken/backup?tab=revert&collection=Notes");
  const at = new Date(then.getTime() - then.getTimezoneOffset() * 60_000);
  await studio.page.getByLabel("Point in time").fill(at.toISOString().slice(0, 19));
  await button("Revert…").click();
  const dialog = studio.page.getByRole("alertdialog");
  const revert = dialog.getByRole("button", { name: "Revert Notes" });
  expect(await revert.isDisabled()).toBe(true);
  await dialog.getByRole("textbox").fill("Notes");
  await revert.click();
  await studio.page.getByText("2 documents reverted of 2 with revisions.").waitFor();
  expect(await documentsOf("mistaken")).toBe(1);
  const { json } = await studio.server.request("/databases/mistaken/docs?id=notes/1");
  expect(json).toMatchObject({ Results: [{ n: 1 }] });
  expect(studio.page.url()).toMatch(/revert=\d+/);
});

test("sample data is put into a new database if this one has documents", async () => {
  await studio.open("db/shop/backup?tab=sample");
  await button("Create demo").click();
  await studio.page.getByRole("link", { name: /^Orders/ }).waitFor();
  expect(studio.page.url()).toContain("/db/demo/docs");
});

test("a certificate is created, used and revoked, which closes its open connection", async () => {
  await studio.open("certificates");
  await button("New certificate").click();
  const dialog = studio.page.getByRole("dialog");
  await dialog.getByRole("textbox", { name: "Name" }).fill("ci-runner");
  const warning = dialog.getByText(
    "Without a database, this certificate can read and write nothing.",
  );
  await warning.waitFor();
  await dialog.getByRole("combobox", { name: "Add a database" }).selectOption("shop");
  await warning.waitFor({ state: "detached" });
  await dialog.getByRole("radio", { name: "shop, read", exact: true }).check();
  const download = studio.page.waitForEvent("download");
  await button("Create and download").click();
  const path = join(folder, "ci-runner.zip");
  await (await download).saveAs(path);
  await studio.page.getByText("It contains the only copy of the key.").waitFor();
  const command = await studio.page.locator("pre").textContent();
  expect(command?.replace(/\s+/g, " ").trim()).toBe(
    `curl --cacert ca.crt --cert ci-runner.crt --key ci-runner.key ${studio.server.url}/databases`,
  );
  const files = Object.entries(unzip(readFileSync(path)));
  const file = (ending: string) =>
    String(files.find(([name]) => name.endsWith(ending) && !name.startsWith("ca"))?.[1]);
  const pair = { key: file(".key"), certificate: file(".crt") };
  await button("Done").click();
  const socket = await ChangesSocket.open(studio.server, "/databases/shop/changes", pair);
  await studio.page.reload();
  await button(/^ci-runner/).click();
  const drawer = studio.page.getByRole("complementary", { name: "Certificate ci-runner" });
  await drawer.getByText("1 open", { exact: true }).waitFor();
  await drawer.getByRole("radio", { name: "shop, read and write" }).check();
  await drawer.getByRole("button", { name: "Save access" }).click();
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
  await button(/^ci-runner/).waitFor({ state: "detached" });
});

test("the user's own certificate is marked, and cannot be revoked", async () => {
  await studio.open("certificates");
  const row = studio.page.getByRole("row", { name: /You/ });
  await row.getByRole("button").click();
  const revoke = studio.page.getByRole("complementary").getByRole("button", { name: "Revoke…" });
  expect(await revoke.isDisabled()).toBe(true);
  await studio.page.getByText("Another administrator can revoke it.").waitFor();
  await studio.page.keyboard.press("Escape");
  await studio.page.getByRole("complementary").waitFor({ state: "detached" });
});

test("plots update, requests of other clients are shown, and a running query is killed", async () => {
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
  await studio.page.getByRole("searchbox", { name: "Filter requests" }).fill("nothing like it");
  await seen.waitFor({ state: "detached" });
  // The peak caused by the requests is in the table of the plot.
  await button("As tables").click();
  const rows = studio.page.getByRole("region", { name: "Requests" }).first().getByRole("row");
  await expect.poll(() => rows.count()).toBeGreaterThan(2);
  await studio.page.getByRole("tab", { name: "Running" }).click();
  await studio.page.getByText("No queries are running.").waitFor();
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
  await studio.page.getByText("No queries are running.").waitFor();
  await studio.server.request("/databases/shop/admin/indexes/start", { method: "POST" });
});

test("queries that were slow before the page was opened are listed", async () => {
  const { monitoring } = studio.server.running.services;
  monitoring.figures.slowQuery({
    atMs: Date.now(),
    database: "shop",
    query: "from Orders where search(Note, ?)",
    index: "Auto/Orders/BySearch(Note)",
    ms: 4711,
  });
  for (const path of ["performance?tab=slow", "db/shop/performance?tab=slow"]) {
    await studio.open(path);
    const row = studio.page.getByRole("table", { name: "Logged slow queries" }).getByRole("row");
    await row.getByText("from Orders where search(Note, ?)").waitFor();
    await row.getByText(/4[.,]7(11)? m?s/).waitFor();
  }
});

test("the log is shown live, filtered by level and text, and paused", async () => {
  const { log } = studio.server.running.services;
  await studio.open("log");
  const lines = studio.page.getByRole("table", { name: "Log" });
  // Requests have lines of level Debug.
  await expect
    .poll(async () => {
      await studio.server.request("/databases/shop/docs?id=orders/7-A");
      return await lines.getByText("/databases/:database/docs - 200").count();
    })
    .toBeGreaterThan(0);
  await studio.page.getByRole("combobox", { name: "Level" }).selectOption("Warn");
  await lines.waitFor({ state: "detached" });
  log.write("Error", "the disk of the test is full", { event: "test-disk-full", database: "shop" });
  log.warn("the disk of the test fills up");
  await lines.getByText("the disk of the test is full").waitFor();
  await lines.getByText("the disk of the test fills up").waitFor();
  await studio.page.getByRole("searchbox", { name: "Filter" }).fill("TEST-DISK");
  await expect.poll(() => lines.getByRole("row").count()).toBe(2);
  expect(studio.page.url()).toContain("level=Warn&filter=TEST-DISK");
  await lines.getByRole("button").click();
  const line = studio.page.getByRole("complementary", { name: "Line of the log" });
  await line.getByText("event=test-disk-full").waitFor();
  await button("Pause updates").click();
  log.write("Error", "test-disk again");
  await studio.page.waitForTimeout(600);
  expect(await lines.getByRole("row").count()).toBe(2);
  await button("Resume updates").click();
  log.write("Error", "test-disk at last");
  await lines.getByText("test-disk at last").waitFor();
  expect(await lines.getByText("test-disk again").count()).toBe(0);
});

test("the URL contains the range, and a paused page sends no requests", async () => {
  await studio.open("performance?range=1h");
  await studio.page.getByRole("img", { name: /^Requests, all: / }).waitFor();
  expect(await button("1 h").getAttribute("aria-pressed")).toBe("true");
  await button("5 min").click();
  expect(studio.page.url()).toContain("range=5m");
  let requested = 0;
  studio.page.on("request", (request) => {
    if (request.url().includes("/admin/metrics/history")) requested++;
  });
  await expect.poll(() => requested, { timeout: 10_000 }).toBeGreaterThan(1);
  await button("Pause updates").click();
  await studio.page.waitForTimeout(300);
  const before = requested;
  await studio.page.waitForTimeout(2500);
  expect(requested).toBe(before);
});

test("the hour around a moment of the last day is shown, and its URL shared", async () => {
  await studio.open("performance");
  await studio.page.getByRole("img", { name: /^Requests, all: / }).waitFor();
  const around = studio.page.getByLabel("Around");
  // The field's format: local time, to the minute.
  const local = (ms: number) =>
    studio.page.evaluate(
      `new Date(${ms} - new Date(${ms}).getTimezoneOffset() * 60000).toISOString().slice(0, 16)`,
    ) as Promise<string>;
  const minuteMs = Math.floor(Date.now() / 60_000) * 60_000;
  await around.fill(await local(minuteMs));
  await around.blur();
  await expect
    .poll(() => studio.page.url())
    .toContain(encodeURIComponent(new Date(minuteMs).toISOString()));
  // Ten seconds per sample: those of the last hour exist.
  await studio.page.getByRole("img", { name: /^Requests, all: / }).waitFor();
  expect(await button("5 min").getAttribute("aria-pressed")).toBe("false");
  expect(await button("Pause updates").count()).toBe(0);
  expect(await studio.page.getByRole("region", { name: "Requests" }).count()).toBe(1);
  await studio.page.reload();
  expect(await around.inputValue()).toBe(await local(minuteMs));
  await studio.page.getByRole("img", { name: /^Requests, all: / }).waitFor();
  let requested = "";
  studio.page.on("request", (request) => {
    if (request.url().includes("/admin/metrics/history")) requested = request.url();
  });
  // The server was not running then.
  await around.fill(await local(minuteMs - 5 * 3_600_000));
  await around.blur();
  await studio.page.getByText("No metrics exist for the hour around").waitFor();
  expect(requested).toContain("range=24h");
  await button("1 h").click();
  await button("Pause updates").waitFor();
  expect(studio.page.url()).not.toContain("at=");
});

test("plots share the crosshair, are zoomed by dragging, and their markers are listed", async () => {
  await studio.server.request("/databases/shop/queries", {
    method: "PATCH",
    body: JSON.stringify({ Query: { Query: "from Shippers update { this.Seen = 1 }" } }),
  });
  await studio.open("db/shop/performance");
  const requests = studio.page.getByRole("region", { name: "Requests" }).first();
  await requests.getByRole("img").waitFor();
  const markers = studio.page.getByRole("list").filter({ has: studio.page.locator("time") });
  await markers.getByRole("link", { name: "Patch Shippers" }).first().waitFor();
  await markers.getByText("The server was started").waitFor();
  const area = requests.locator(".u-over");
  const { x, y, width } = (await area.boundingBox()) ?? expect.fail("no plot");
  await area.hover({ position: { x: width - 4, y: 40 } });
  // Every plot shows the time of the crosshair and its values there.
  const memory = studio.page.getByRole("region", { name: "Memory" });
  await memory
    .locator("small")
    .getByText(/^Today \d/)
    .waitFor();
  await expect.poll(() => memory.locator(".key b").first().textContent()).toMatch(/^\d+ MB$/);
  // The plots continue while they are read.
  const times = () =>
    Promise.all([memory, requests].map((one) => one.locator("small").innerText()));
  await expect.poll(async () => new Set(await times()).size).toBe(1);
  await studio.page.mouse.move(x + width - 34, y + 40);
  await studio.page.mouse.down();
  await studio.page.mouse.move(x + width - 20, y + 40);
  await studio.page.mouse.move(x + width - 4, y + 40);
  await studio.page.mouse.up();
  await button("Whole range").waitFor();
  const query = () => new URL(studio.page.url()).searchParams;
  const lengthMs = Date.parse(query().get("to") ?? "") - Date.parse(query().get("from") ?? "");
  expect(lengthMs).toBeGreaterThan(1000);
  expect(lengthMs).toBeLessThan(60_000);
  await studio.page.reload();
  await studio.page.getByRole("img", { name: /^Memory, process: / }).waitFor();
  await button("Whole range").click();
  expect(query().has("from")).toBe(false);
  await button("Pause updates").waitFor();
});

test("the storage of a database is plotted over time, and listed by its parts", async () => {
  const put = (path: string, body: string) =>
    studio.server.request(`/databases/shop${path}`, { method: "PUT", body });
  await put("/docs?id=notes/1", '{"Text":"a"}');
  await put("/attachments?id=notes/1&name=a.bin", "x".repeat(5 * 1024 * 1024));
  await studio.open("db/shop/performance");
  await studio.page.getByRole("img", { name: /^Storage, live: \d.* MB/ }).waitFor();
  await button("Show the parts").click();
  const parts = studio.page.getByRole("table", { name: "Parts" });
  const row = (name: RegExp) => parts.getByRole("row", { name });
  await row(/^Documents Orders 830 \d.* (MB|kB)$/).waitFor();
  await row(/^Attachments \d+ [\d.]+ MB$/).waitFor();
  await row(/^Log dead records and free space \d/).waitFor();
  await row(/^Total \d+ MB$/).waitFor();
  expect(studio.page.url()).toContain("storage=parts");
  await button("Hide the parts").click();
  await parts.waitFor({ state: "detached" });
  // The page of the server has no storage of a database.
  await studio.open("performance");
  await studio.page.getByRole("img", { name: /^Memory, process: / }).waitFor();
  expect(await studio.page.getByRole("region", { name: /^Storage/ }).count()).toBe(0);
});

test("settings are saved and persist", async () => {
  await make("settled");
  await studio.open("db/settled/settings");
  const revisions = studio.page.getByRole("region", { name: "Revisions" });
  await revisions.getByRole("textbox", { name: "Collection" }).fill("Orders");
  await revisions.getByRole("button", { name: "Add" }).click();
  const ofOrders = revisions.getByRole("group", { name: "Orders" });
  await ofOrders.getByRole("spinbutton", { name: "Keep at most N revisions" }).fill("25");
  const others = revisions.getByRole("group", { name: "Default for other collections" });
  await others.getByRole("checkbox", { name: "Enabled" }).check();
  await button("Save revisions").click();
  await revisions.getByText("Saved").waitFor();
  const expiration = studio.page.getByRole("region", { name: "Expiration" });
  await expiration.getByRole("checkbox", { name: "Enabled" }).check();
  await expiration.getByRole("spinbutton").fill("30");
  await button("Save expiration").click();
  await expiration.getByText("Saved").waitFor();
  const { json } = await studio.server.request("/databases/settled/revisions/config");
  expect(json).toMatchObject({
    Default: { Disabled: false },
    Collections: { Orders: { MinimumRevisionsToKeep: 25 } },
  });
  await studio.page.reload();
  expect(await ofOrders.getByRole("spinbutton").inputValue()).toBe("25");
  expect(await others.getByRole("checkbox", { name: "Enabled" }).isChecked()).toBe(true);
  expect(await expiration.getByRole("spinbutton").inputValue()).toBe("30");
});

test("policies of time series are set for a collection, and persist", async () => {
  await make("measured");
  await studio.open("db/measured/settings");
  const section = studio.page.getByRole("region", { name: "Time series" });
  await section.getByRole("textbox", { name: "Collection" }).fill("Sensors");
  await section.getByRole("button", { name: "Add", exact: true }).click();
  const sensors = section.getByRole("group", { name: "Time series of Sensors" });
  await sensors.getByRole("combobox", { name: "Keep raw entries for: unit" }).selectOption("days");
  await sensors.getByRole("spinbutton", { name: "Keep raw entries for" }).fill("30");
  for (const name of ["ByHour", "ByDay"]) {
    await sensors.getByRole("button", { name: "Add policy" }).click();
    await sensors.getByRole("group", { name: `Policy ${name}` }).waitFor();
  }
  const byHour = sensors.getByRole("group", { name: "Policy ByHour" });
  await byHour.getByRole("spinbutton", { name: "Aggregate over" }).fill("5");
  studio.expectRefusal(400);
  await button("Save time series").click();
  // 24 hours are no multiple of 5 hours.
  await section.getByText("without a remainder").waitFor();
  await byHour.getByRole("spinbutton", { name: "Aggregate over" }).fill("6");
  await byHour.getByRole("combobox", { name: "Keep for: unit" }).selectOption("years");
  await section.getByRole("spinbutton", { name: "Interval in seconds" }).fill("3700");
  await button("Save time series").click();
  await section.getByText("Saved").waitFor();
  const { json } = await studio.server.request("/databases/measured/timeseries/config");
  expect(json).toMatchObject({
    Collections: {
      Sensors: {
        Disabled: false,
        RawPolicy: { RetentionTime: { Value: 30 * 86_400, Unit: "Second" } },
        Policies: [
          {
            Name: "ByHour",
            AggregationTime: { Value: 6 * 3600, Unit: "Second" },
            RetentionTime: { Value: 12, Unit: "Month" },
          },
          { Name: "ByDay", RetentionTime: { Unit: "None" } },
        ],
      },
    },
    PolicyCheckFrequency: "01:01:40",
  });
  await studio.page.reload();
  expect(await byHour.getByRole("spinbutton", { name: "Aggregate over" }).inputValue()).toBe("6");
  await sensors.getByRole("button", { name: "Remove" }).last().click();
  await button("Save time series").click();
  await section.getByText("Saved").waitFor();
  const left = await studio.server.request("/databases/measured/timeseries/config");
  expect(left.text).not.toContain("ByDay");
});

test("a database is disabled and enabled, and deleted after typing its name, with the keyboard", async () => {
  await make("tests-main");
  await studio.open("databases");
  const row = studio.page.getByRole("row", { name: /tests-main/ });
  const more = row.getByRole("button", { name: "More about tests-main" });
  await more.click();
  await studio.page.getByRole("menuitem", { name: "Disable" }).click();
  await row.getByText("Disabled").waitFor();
  studio.expectRefusal(503);
  expect((await studio.server.request("/databases/tests-main/stats")).status).toBe(503);
  await more.click();
  await studio.page.getByRole("menuitem", { name: "Enable" }).click();
  await row.getByText("Online").waitFor();
  await more.click();
  await studio.page.getByRole("menuitem", { name: "Compact" }).click();
  await studio.page.getByText("tests-main is being compacted.").waitFor();
  await more.focus();
  await studio.page.keyboard.press("ArrowUp");
  await studio.page.keyboard.press("Enter");
  const dialog = studio.page.getByRole("alertdialog", { name: "Delete the database tests-main?" });
  await dialog.getByText("It has no scheduled backup.").waitFor();
  const remove = dialog.getByRole("button", { name: "Delete tests-main" });
  await dialog.getByRole("textbox").fill("tests");
  expect(await remove.isDisabled()).toBe(true);
  await dialog.getByRole("textbox").fill("tests-main");
  await remove.focus();
  await studio.page.keyboard.press("Enter");
  await row.waitFor({ state: "detached" });
});

test("warnings link to the pages that resolve them", async () => {
  const name = "attended";
  await make(name);
  await studio.server.request(`/databases/${name}/docs?id=a`, { method: "PUT", body: "{}" });
  await studio.open("databases");
  const attention = studio.page.getByRole("complementary", { name: "Needs attention" });
  await attention.getByRole("link", { name: `${name} has no scheduled backup` }).click();
  await studio.page.getByRole("heading", { name: `${name} has no backup` }).waitFor();
  expect(studio.page.url()).toContain(`/db/${name}/backup`);
});

test("the operator's pages fit a phone, and support the dark theme", async () => {
  await studio.page.emulateMedia({ colorScheme: "dark" });
  await studio.page.setViewportSize({ width: 360, height: 780 });
  const pages = {
    databases: "Databases",
    certificates: "Certificates",
    performance: "Performance",
    "db/shop/performance": "Performance",
    "db/shop/performance?storage=parts": "Performance",
    "db/shop/backup": "Backup and import",
    "db/shop/backup?tab=import": "Backup and import",
    "db/shop/backup?tab=export": "Backup and import",
    "db/shop/settings": "Settings",
  };
  for (const [path, title] of Object.entries(pages)) {
    await studio.open(path);
    await studio.page.getByText(title).first().waitFor();
    await studio.page.waitForTimeout(700);
    const width = await studio.page.evaluate("document.documentElement.scrollWidth");
    expect(width, path).toBe(360);
    const ground = await studio.page.evaluate("getComputedStyle(document.body).backgroundColor");
    expect(ground, path).toBe("rgb(14, 16, 22)");
    if (process.env["PICTURES"] !== undefined)
      await studio.page.screenshot({
        path: `${process.env["PICTURES"]}/phone-${path.replace(/\W+/g, "-")}.png`,
      });
  }
});

/** Returns what a drag of a file transfers. */
async function fileOf(name: string, content: string | Buffer) {
  const base64 = Buffer.from(content).toString("base64");
  // As text, because the browser's types differ from those of the tests.
  return await studio.page.evaluateHandle(`(() => {
    const bytes = Uint8Array.from(atob("${base64}"), (one) => one.charCodeAt(0));
    const transfer = new DataTransfer();
    transfer.items.add(new File([bytes], ${JSON.stringify(name)}));
    return transfer;
  })()`);
}

/** Drops a file on its drop zone. */
async function drop(name: string, content: string | Buffer): Promise<void> {
  const data = await fileOf(name, content);
  await studio.page.getByRole("group", { name: "File to import" }).dispatchEvent("drop", {
    dataTransfer: data,
  });
}
