/** Editing of single values of a document: in the tree with their types, and the times of the metadata. */
import { beforeEach, expect, test } from "vitest";
import { studioBrowser } from "../../support/studio-browser.ts";

const studio = studioBrowser();
const id = "notes/1";
const path = `/databases/shop/docs?id=${id}`;

beforeEach(async () => {
  const text =
    '{"Zip":"0815","Total":12345678901234567890.10,"Paid":false,"Lines":[{"Amount":2}],"@metadata":{"@collection":"Notes"}}';
  await studio.server.request(path, { method: "PUT", body: text });
});

const role = (...[name, options]: Parameters<typeof studio.page.getByRole>) =>
  studio.page.getByRole(name, options);
const row = (name: RegExp) => role("row", { name });
const save = async () => {
  await role("button", { name: /^Save/ }).click();
  await studio.page.getByText("Saved", { exact: true }).waitFor();
  return (await studio.server.request(path)).text;
};

test("values in the tree keep their types, and digits", async () => {
  await studio.open(`db/shop/doc/${encodeURIComponent(id)}?view=tree`);
  await row(/^Zip/).getByRole("button").click();
  await role("textbox", { name: "Value of Zip" }).fill("0817");
  await studio.page.keyboard.press("Enter");
  await row(/^Zip "0817" text/).waitFor();
  // A nested value, with the keyboard only.
  await row(/Lines/).focus();
  await studio.page.keyboard.press("ArrowRight");
  await studio.page.keyboard.press("ArrowDown");
  await studio.page.keyboard.press("ArrowRight");
  await studio.page.keyboard.press("ArrowDown");
  await studio.page.keyboard.press("Enter");
  const amount = role("textbox", { name: "Value of Lines[0].Amount" });
  await amount.fill("three");
  expect(await role("button", { name: "Apply" }).isDisabled()).toBe(true);
  await amount.fill("3.50");
  await studio.page.keyboard.press("Enter");
  await row(/Amount 3.50 num/).waitFor();
  await studio.page.getByText("2 fields changed").waitFor();
  const text = await save();
  expect(text).toContain('"Zip":"0817"');
  expect(text).toContain('"Total":12345678901234567890.10');
  expect(text).toContain('"Amount":3.50');
});

test("the type of a value is changed, and Esc changes nothing", async () => {
  await studio.open(`db/shop/doc/${encodeURIComponent(id)}?view=tree`);
  await row(/^Zip/).getByRole("button").click();
  await role("textbox", { name: "Value of Zip" }).fill("9");
  await studio.page.keyboard.press("Escape");
  await row(/^Zip "0815" text/).waitFor();
  await row(/^Zip/).getByRole("button").click();
  const type = role("combobox", { name: "Type of Zip" });
  await type.selectOption("number");
  // 0815 is no number in JSON.
  expect(await role("button", { name: "Apply" }).isDisabled()).toBe(true);
  await role("textbox", { name: "Value of Zip" }).fill("815");
  await role("button", { name: "Apply" }).click();
  await row(/^Zip 815 num/).waitFor();
  await row(/^Total/)
    .getByRole("button")
    .click();
  await role("combobox", { name: "Type of Total" }).selectOption("text");
  await role("button", { name: "Apply" }).click();
  await row(/^Paid/).getByRole("button").click();
  await role("combobox", { name: "Value of Paid" }).selectOption("true");
  await role("button", { name: "Apply" }).click();
  const text = await save();
  expect(text).toContain('"Zip":815,"Total":"12345678901234567890.10","Paid":true');
});

test("the time at which a document expires is set and removed", async () => {
  await studio.server.request("/databases/shop/admin/expiration/config", {
    method: "POST",
    body: JSON.stringify({ Disabled: false }),
  });
  await studio.open(`db/shop/doc/${encodeURIComponent(id)}?view=meta`);
  const expires = studio.page.getByLabel("Expires");
  await studio.page.getByText("Refresh is disabled in this database.").waitFor();
  expect(await studio.page.getByText("Expiration is disabled in this database.").count()).toBe(0);
  await expires.fill("2099-12-31T10:30:15");
  await studio.page.getByText("1 field changed").waitFor();
  const utc = new Date("2099-12-31T10:30:15").toISOString().slice(0, 19);
  expect(await save()).toContain(`"@expires":"${utc}.0000000Z"`);
  await row(/^@expires/).waitFor();
  await studio.page.reload();
  expect(await expires.inputValue()).toBe("2099-12-31T10:30:15");
  // A removal that was not saved is in the draft.
  await expires.fill("");
  const drafts =
    "Object.keys(localStorage).filter((key) => key.startsWith('jackdaw-draft')).length";
  await expect.poll(() => studio.page.evaluate(drafts)).toBe(1);
  await studio.page.goto("about:blank");
  await studio.page.goBack();
  await studio.page.getByText("You have a draft of").waitFor();
  expect(await expires.inputValue()).toBe("2099-12-31T10:30:15");
  await studio.page.getByRole("button", { name: "Open" }).click();
  await expect.poll(() => expires.inputValue()).toBe("");
  expect(await save()).not.toContain("@expires");
});

test("a changed time is merged with the changes of another user", async () => {
  await studio.open(`db/shop/doc/${encodeURIComponent(id)}?view=meta`);
  await studio.page.getByLabel("Refresh").fill("2099-12-31T10:30:15");
  await studio.server.request(path, {
    method: "PUT",
    body: JSON.stringify({ Zip: "1", "@metadata": { "@collection": "Notes" } }),
  });
  await role("button", { name: /^Save/ }).click();
  await role("button", { name: "Save merged" }).click();
  await studio.page.getByText("Saved", { exact: true }).waitFor();
  const { text } = await studio.server.request(path);
  expect(text).toContain('"Zip":"1"');
  expect(text).toContain("@refresh");
});

test("the patch editor completes fields of the document, and functions with their help", async () => {
  await studio.open(`db/shop/patch?q=${encodeURIComponent("from Notes as n update { ")}`);
  const editor = role("textbox", { name: "Patch" });
  const accept = async () => {
    // The list ignores keys that are pressed as soon as it opens.
    await studio.page.waitForTimeout(150);
    await studio.page.keyboard.press("Enter");
  };
  await editor.click();
  await studio.page.keyboard.press("Control+End");
  await studio.page.keyboard.type("this.To");
  await role("option", { name: /^Total/ }).waitFor();
  await accept();
  await studio.page.keyboard.type(" = n.Zi");
  await role("option", { name: /^Zip/ }).waitFor();
  await accept();
  await studio.page.keyboard.type("; incr");
  await role("option", { name: "incrementCounter(document, name, by)" }).waitFor();
  await studio.page.getByText("Adds to a counter, 1 by default").waitFor();
  await accept();
  await studio.page.keyboard.type("(this, 'this.To");
  await studio.page.waitForTimeout(300);
  // Nothing is completed in a text.
  expect(await role("option").count()).toBe(0);
  expect(await editor.textContent()).toContain(
    "this.Total = n.Zip; incrementCounter(this, 'this.To",
  );
  await studio.page.keyboard.type("'); archived.ar");
  await role("option", { name: /^archiveAt/ }).waitFor();
});
