/** A server without databases in a real browser. */
import { expect, test } from "vitest";
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
