/** A server without databases in a real browser. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { studioBrowser } from "../../support/studio-browser.ts";

const studio = studioBrowser({});
const heading = "The server is running. It has no database yet.";

test("one click creates sample data, and deleting the last database returns to the first start", async () => {
  await studio.page.setViewportSize({ width: 360, height: 780 });
  await studio.open("");
  await studio.page.getByRole("heading", { name: heading }).waitFor();
  expect(await studio.page.evaluate("document.documentElement.scrollWidth")).toBe(360);
  await studio.page.setViewportSize({ width: 1440, height: 900 });
  await studio.page.getByRole("button", { name: "Create demo with sample data" }).click();
  await studio.page.getByRole("link", { name: /^Orders/ }).waitFor({ timeout: 60_000 });
  // An open page still requests it.
  await studio.page.goto("about:blank");
  await studio.server.running.services.databases.delete("demo");
}, 90_000);

test("a first database is created with the keyboard, and its name checked during typing", async () => {
  await studio.open("");
  await studio.page.getByRole("heading", { name: heading }).waitFor();
  const name = studio.page.getByRole("textbox", { name: "Name" });
  await name.fill("a b");
  await studio.page.locator("#first-problem.bad").waitFor();
  expect(await studio.page.getByRole("button", { name: "Create a b" }).isDisabled()).toBe(true);
  await name.fill("shop");
  await expect.poll(() => studio.page.locator("#first-problem.bad").count()).toBe(0);
  await name.focus();
  await studio.page.keyboard.press("Enter");
  await studio.page.getByRole("heading", { name: "No documents in shop yet" }).waitFor();
});

test("an empty server offers to restore a backup that was made elsewhere", async () => {
  const folder = mkdtempSync(join(tmpdir(), "jackdaw-elsewhere-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const { server, page } = studio;
  const { databases } = server.running.services;
  const remove = (...DatabaseNames: string[]) =>
    server.request("/admin/databases", {
      method: "DELETE",
      body: JSON.stringify({ DatabaseNames, HardDelete: true }),
    });
  const listed = (await server.request("/databases")).json as { Databases: { Name: string }[] };
  await remove(...listed.Databases.map(({ Name }) => Name));
  await databases.create("lost", {});
  const put = { method: "PUT", body: "{}" };
  for (let n = 0; n < 3; n++) await server.request(`/databases/lost/docs?id=items/${n}`, put);
  const backup = { BackupType: "Backup", LocalSettings: { FolderPath: folder } };
  const { json } = await server.request("/databases/lost/admin/backup", {
    method: "POST",
    body: JSON.stringify(backup),
  });
  const { OperationId } = json as { OperationId: number };
  const state = async () => {
    const path = `/databases/lost/operations/state?id=${OperationId}`;
    return ((await server.request(path)).json as { Status: string }).Status;
  };
  await expect.poll(state).toBe("Completed");
  // The studio shows it for its database, although it did not make it.
  await studio.open("db/lost/backup");
  await page.getByRole("heading", { name: "lost has no backup schedule" }).waitFor();
  await page.getByRole("button", { name: "Show other backups…" }).click();
  await page.getByRole("textbox", { name: /Folder on the server/ }).fill(folder);
  await page.getByRole("button", { name: "Show backups", exact: true }).click();
  const row = page.getByRole("row", { name: /^lost/ });
  await row.getByRole("button", { name: "Restore…" }).waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("region", { name: "Manual backups" }).getByText("Completed").waitFor();
  await page.goto("about:blank");
  await remove("lost");
  await studio.open("databases");
  await page.getByRole("button", { name: "Restore from elsewhere…" }).click();
  await page.getByRole("textbox", { name: /Folder on the server/ }).fill(folder);
  await page.getByRole("button", { name: "Show backups", exact: true }).click();
  await row.getByRole("button", { name: "Restore…" }).click();
  await page.getByRole("textbox", { name: "Name of the new database" }).fill("found");
  await page.getByRole("button", { name: "Restore found" }).click();
  await page.getByText("found is restored, with 3 documents.").waitFor();
  await page.getByRole("link", { name: "Open found" }).click();
  await page.getByRole("grid").waitFor();
});
