/** The documents of a database, and a single document: user actions on pages 2 and 3. */
import { readFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import { studioBrowser } from "../../support/studio-browser.ts";

const studio = studioBrowser();

const request = (method: string, path: string, body?: unknown) =>
  studio.server.request(`/databases/shop/${path}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
const put = (id: string, document: object) =>
  request("PUT", `docs?id=${encodeURIComponent(id)}`, document);
const stored = async (id: string) => {
  const { json } = await request("GET", `docs?id=${encodeURIComponent(id)}`);
  return (json as { Results: Record<string, unknown>[] }).Results[0] as Record<string, unknown>;
};
const grid = (collection: string) =>
  studio.page.getByRole("grid", { name: `Documents of ${collection}` });
const editorOf = (id: string) => studio.page.getByRole("textbox", { name: `Document ${id}` });
const filter = () => studio.page.getByRole("combobox", { name: "Filter" });
const openDocument = (id: string, more = "") =>
  studio.open(`db/shop/doc/${encodeURIComponent(id)}${more}`);
/** Inserts a member as the first one. */
const typeMember = async (id: string, text: string) => {
  await editorOf(id).click();
  await studio.page.keyboard.press("Control+Home");
  await studio.page.keyboard.press("ArrowRight");
  await studio.page.keyboard.type(text);
};

beforeAll(async () => {
  await request("POST", "studio/sample-data");
  for (const name of ["a", "b", "c"])
    await put(`notes/${name}`, {
      Text: `=1+1 ${name}`,
      N: 1,
      "@metadata": { "@collection": "Notes" },
    });
});

test("a filter narrows the list, and its URL restores it", async () => {
  await studio.open("db/shop/docs/Orders");
  await filter().fill("ShipTo.Country = 'France'");
  await filter().press("Enter");
  await studio.page.getByText("77 documents", { exact: true }).waitFor();
  const address = studio.page.url();
  expect(address).toContain("where=");
  await studio.page.goto("about:blank");
  await studio.page.goto(address);
  await studio.page.getByText("77 documents", { exact: true }).waitFor();
  await filter().fill("orders/82");
  await filter().press("Enter");
  await studio.page.getByText("11 documents", { exact: true }).waitFor();
});

test("a filter completes existing fields", async () => {
  await studio.open("db/shop/docs/Orders");
  await filter().pressSequentially("ShipTo.Coun");
  await studio.page.getByRole("option", { name: /Country/ }).click();
  expect(await filter().inputValue()).toBe("ShipTo.Country");
});

test("a filter without results suggests similar ones", async () => {
  await studio.open("db/shop/docs/Orders");
  await filter().fill("ShipTo.City = 'Rheims'");
  await filter().press("Enter");
  await studio.page.getByRole("heading", { name: /Nothing found for ShipTo.City/ }).waitFor();
  await studio.page.getByRole("button", { name: "Search for reims" }).click();
  await grid("Orders").getByRole("row").nth(1).waitFor();
});

test("an invalid filter shows the error", async () => {
  studio.expectRefusal(400);
  await studio.open("db/shop/docs/Orders");
  await filter().fill("where where");
  await filter().press("Enter");
  await studio.page.getByRole("alert").waitFor();
});

test("a word is an id prefix, and an invalid condition is one sentence without old rows", async () => {
  await studio.open("db/shop/docs/Orders");
  await studio.page.getByRole("row", { name: /orders\/830-A/ }).waitFor();
  const filter = studio.page.getByRole("combobox", { name: "Filter" });
  await filter.fill("vinet");
  await filter.press("Enter");
  await studio.page.getByRole("heading", { name: "Nothing found for vinet" }).waitFor();
  await filter.fill("orders");
  await filter.press("Enter");
  await studio.page.getByRole("row", { name: /orders\/1-A\b/ }).waitFor();
  studio.expectRefusal(400);
  await filter.fill("Freight more 7");
  await filter.press("Enter");
  const alert = studio.page.getByRole("alert");
  await alert.getByText(/^Expected operator after 'Freight' field/).waitFor();
  expect(await alert.textContent()).not.toMatch(/Raven|Exception|Query:/);
  expect(await studio.page.getByRole("row").count()).toBe(0);
});

test("a list that is sorted at its end shows the first rows of the new order", async () => {
  await studio.open("db/shop/docs/Orders");
  const grid = studio.page.getByRole("grid", { name: "Documents of Orders" });
  await grid.getByRole("row", { name: /orders\/830-A/ }).focus();
  await studio.page.keyboard.press("End");
  await grid.getByRole("row", { name: /orders\/1-A\b/ }).waitFor();
  await grid.getByRole("button", { name: /^Freight/ }).click();
  await grid.getByRole("gridcell", { name: "0.02" }).waitFor();
  await expect.poll(() => grid.locator(".bone").count()).toBe(0);
  // Scrolling to the end of the new list loads it.
  await grid.getByRole("row").nth(1).focus();
  await studio.page.keyboard.press("End");
  await grid.getByRole("gridcell", { name: "1007.64" }).waitFor();
});

test("chosen columns are remembered", async () => {
  await studio.open("db/shop/docs/Orders");
  const freight = studio.page.getByRole("columnheader", { name: /^Freight/ });
  await freight.waitFor();
  await studio.page.getByRole("button", { name: "Columns" }).click();
  await studio.page.getByRole("checkbox", { name: "Freight" }).uncheck();
  await freight.waitFor({ state: "detached" });
  await studio.page.getByRole("textbox", { name: "Another field" }).fill("ShipTo.City");
  await studio.page.keyboard.press("Enter");
  await studio.page.getByRole("columnheader", { name: /^ShipTo\.City/ }).waitFor();
  await grid("Orders").getByText("Albuquerque").waitFor();
  expect(studio.page.url()).toContain("cols=");
  await studio.open("db/shop/docs/Orders");
  await studio.page.getByRole("columnheader", { name: /^ShipTo\.City/ }).waitFor();
  expect(await freight.count()).toBe(0);
});

test("a column is resized and moved before another one", async () => {
  await studio.open("db/shop/docs/Orders");
  const company = studio.page.getByRole("columnheader", { name: /^Company/ });
  const before = (await company.boundingBox())?.width ?? 0;
  const edge = await company.locator(".edge-of-column").boundingBox();
  if (edge === null) throw new Error("There is no edge.");
  await studio.page.mouse.move(edge.x + 4, edge.y + 10);
  await studio.page.mouse.down();
  await studio.page.mouse.move(edge.x + 64, edge.y + 10, { steps: 4 });
  await studio.page.mouse.up();
  expect((await company.boundingBox())?.width).toBeGreaterThan(before + 40);
  await studio.page.getByRole("columnheader", { name: /^Freight/ }).dragTo(company);
  await expect
    .poll(async () => (await studio.page.getByRole("columnheader").allTextContents()).slice(2, 4))
    .toEqual(["Freightnum", "Companyid"]);
});

test("a column is resized and moved with the keyboard, including the id column", async () => {
  await studio.open("db/shop/docs/Orders");
  const head = (name: RegExp) => studio.page.getByRole("columnheader", { name });
  const widthOf = async (name: RegExp) => (await head(name).boundingBox())?.width ?? 0;
  const before = { company: await widthOf(/^Company/), id: await widthOf(/^Id/) };
  await head(/^Company/)
    .getByRole("button")
    .focus();
  await studio.page.keyboard.press("Shift+ArrowRight");
  await studio.page.keyboard.press("Shift+ArrowRight");
  await expect.poll(() => widthOf(/^Company/)).toBe(before.company + 32);
  await studio.page.keyboard.press("Alt+ArrowRight");
  const names = async () =>
    (await studio.page.getByRole("columnheader").allTextContents()).slice(2, 4);
  await expect.poll(names).toEqual(["Employeeid", "Companyid"]);
  await head(/^Id/).getByRole("button").focus();
  await studio.page.keyboard.press("Shift+ArrowLeft");
  await expect.poll(() => widthOf(/^Id/)).toBe(before.id - 16);
  await studio.page.reload();
  await expect.poll(names).toEqual(["Employeeid", "Companyid"]);
  expect(await widthOf(/^Id/)).toBe(before.id - 16);
});

test("a pane is made wider by dragging and by the arrows, stays so, and is put back", async () => {
  const line = studio.page.getByRole("separator", { name: "Resize document" });
  const at = async () => (await line.boundingBox())?.x ?? 0;
  await studio.open("db/shop/doc/orders%2F830-A");
  const middle = await at();
  await studio.page.mouse.move(middle, 400);
  await studio.page.mouse.down();
  await studio.page.mouse.move(middle + 100, 400, { steps: 4 });
  await studio.page.mouse.up();
  await expect.poll(async () => Math.abs((await at()) - middle - 100) < 2).toBe(true);
  await line.press("ArrowRight");
  await expect.poll(async () => Math.abs((await at()) - middle - 116) < 2).toBe(true);
  await studio.page.reload();
  await expect.poll(async () => Math.abs((await at()) - middle - 116) < 2).toBe(true);
  await line.dblclick();
  await expect.poll(at).toBe(middle);
  await studio.open("db/shop/docs/Orders");
  const collections = studio.page.getByRole("separator", { name: "Resize collections" });
  const before = (await collections.boundingBox())?.x ?? 0;
  await collections.press("ArrowRight");
  await expect.poll(async () => (await collections.boundingBox())?.x).toBeGreaterThan(before + 14);
});

test("a list is paged by the time of changes, and its pages do not shift meanwhile", async () => {
  const put = (id: string, collection: string) =>
    studio.server.request(`/databases/shop/docs?id=${id}`, {
      method: "PUT",
      body: JSON.stringify({ n: 1, "@metadata": { "@collection": collection } }),
    });
  await Promise.all(Array.from({ length: 300 }, (_, n) => put(`moments/${n}`, "Moments")));
  await studio.open("db/shop/docs/Moments");
  const table = grid("Moments");
  await table.waitFor();
  const idOf = (row: number) =>
    table.locator(`[aria-rowindex="${row + 2}"] .idlink`).textContent({ timeout: 10_000 });
  const last = await idOf(10);
  // New writes of others are first on the server; the list continues where it ended.
  await Promise.all(Array.from({ length: 7 }, (_, n) => put(`moments/new${n}`, "Moments")));
  await studio.page.getByText("7 moments changed").waitFor();
  await table.evaluate((element: { scrollTop: number }) => {
    element.scrollTop = 115 * 32;
  });
  const around = [await idOf(126), await idOf(127), await idOf(128), await idOf(129)];
  expect(new Set(around).size).toBe(4);
  const all = await studio.server.request(
    "/databases/shop/studio/collections/preview?collection=Moments&start=0&pageSize=400",
  );
  const ids = (all.json as { Results: { "@metadata": { "@id": string } }[] }).Results.map(
    (one) => one["@metadata"]["@id"],
  );
  expect(around).toEqual(ids.slice(7 + 126, 7 + 130));
  expect(last).toBe(ids[17]);
  await studio.open("db/shop/docs");
  await studio.page.getByRole("button", { name: "Go to" }).click();
  await studio.page.getByLabel("Changed at or before").fill("2019-01-01T00:00");
  await studio.page.getByRole("button", { name: "Go", exact: true }).click();
  const focused = studio.page.locator(".vrow:focus");
  await focused.waitFor();
  const index = Number(await focused.getAttribute("aria-rowindex")) - 2;
  expect(index).toBeGreaterThan(300);
  const reply = await studio.server.request(
    `/databases/shop/studio/collections/preview?start=${index - 1}&pageSize=2`,
  );
  const times = (
    reply.json as { Results: { "@metadata": { "@last-modified": string } }[] }
  ).Results.map((one) => one["@metadata"]["@last-modified"] > "2019-01-01T00:01");
  expect(times).toEqual([true, false]);
});

test("a click on a header sorts, numbers by value", async () => {
  await studio.open("db/shop/docs/Orders");
  const freight = studio.page.getByRole("button", { name: /^Freight/ });
  await freight.click();
  await studio.page.getByText("by Freight").waitFor();
  await freight.click();
  await grid("Orders").getByText("1007.64").waitFor();
  expect(studio.page.url()).toContain("order=Freight%3Adesc");
});

test("changes of others are announced in a line, and no row moves", async () => {
  await studio.open("db/shop/docs/Orders");
  const first = grid("Orders").getByRole("row").nth(1);
  await first.getByText("orders/830-A").waitFor();
  // The socket is connected when the count of a collection changes.
  await put("orders/5-A", { ...(await stored("orders/5-A")), Freight: 1 });
  await put("orders/6-A", { ...(await stored("orders/6-A")), Freight: 1 });
  await studio.page.getByRole("status").filter({ hasText: "2 orders changed." }).waitFor();
  expect(await first.textContent()).toContain("orders/830-A");
  await studio.page.getByRole("button", { name: "Show" }).click();
  await first.getByText("orders/6-A").waitFor();
});

test("a selection is exported as CSV, without formulas", async () => {
  await studio.open("db/shop/docs/Notes");
  for (const name of ["a", "b", "c"])
    await studio.page.getByRole("checkbox", { name: `Select notes/${name}` }).click();
  const bar = studio.page.getByRole("toolbar", { name: "3 selected" });
  await bar.getByRole("button", { name: "Export" }).click();
  const downloading = studio.page.waitForEvent("download");
  await studio.page.getByRole("button", { name: "Export 3 documents" }).click();
  const text = readFileSync(await (await downloading).path(), "utf8");
  expect(text.trimEnd().split("\r\n").sort()).toEqual([
    "id,Text,N",
    "notes/a,'=1+1 a,1",
    "notes/b,'=1+1 b,1",
    "notes/c,'=1+1 c,1",
  ]);
});

test("filtered documents are exported as JSON lines", async () => {
  await studio.open("db/shop/docs/Orders?where=ShipTo.Country%20%3D%20'France'");
  await studio.page.getByText("77 documents", { exact: true }).waitFor();
  await studio.page.getByRole("button", { name: "Export" }).click();
  await studio.page.getByRole("button", { name: "JSON lines" }).click();
  const downloading = studio.page.waitForEvent("download");
  await studio.page.getByRole("button", { name: "Export 77 documents" }).click();
  const lines = readFileSync(await (await downloading).path(), "utf8")
    .trimEnd()
    .split("\n");
  expect(lines).toHaveLength(77);
  expect(JSON.parse(lines[0] as string)).toMatchObject({ ShipTo: { Country: "France" } });
});

test("a selection is deleted and restored", async () => {
  const large = '{"Big":12345678901234567890.10,"@metadata":{"@collection":"Notes"}}';
  await studio.server.request("/databases/shop/docs?id=notes/large", {
    method: "PUT",
    body: large,
  });
  await studio.open("db/shop/docs/Notes");
  await studio.page.getByRole("checkbox", { name: "Select notes/a" }).click();
  await studio.page.getByRole("checkbox", { name: "Select notes/large" }).click();
  await studio.page.getByRole("button", { name: "Delete", exact: true }).click();
  const dialog = studio.page.getByRole("alertdialog", { name: "Delete 2 notes?" });
  await dialog.getByRole("button", { name: "Delete 2 notes" }).click();
  await studio.page.getByText("Deleted 2 notes").waitFor();
  expect((await request("GET", "docs?id=notes/a")).status).toBe(404);
  await studio.page.getByRole("button", { name: "Undo" }).click();
  await studio.page.getByText("Restored 2 notes").waitFor();
  const { text } = await request("GET", "docs?id=notes/large");
  expect(text).toContain("12345678901234567890.10");
  await studio.page.getByRole("checkbox", { name: "Select notes/a" }).waitFor();
});

test("Space previews a document beside the list, and the arrow keys change it", async () => {
  await studio.open("db/shop/docs/Orders?where=orders/82");
  await grid("Orders").getByRole("row").nth(1).focus();
  await studio.page.keyboard.press("Space");
  const beside = studio.page.getByRole("complementary");
  const first = await beside.getByRole("heading").textContent();
  await studio.page.keyboard.press("ArrowDown");
  await expect.poll(() => beside.getByRole("heading").textContent()).not.toBe(first);
  await studio.page.keyboard.press("Escape");
  await beside.waitFor({ state: "detached" });
});

test("a new document has the fields of its collection", async () => {
  await studio.open("db/shop/docs/Shippers");
  await studio.page.getByRole("link", { name: "New document" }).click();
  const editor = studio.page.getByRole("textbox", { name: "New document" });
  await expect.poll(() => editor.textContent()).toContain('"Phone"');
  await studio.page.getByRole("button", { name: "Save" }).click();
  await studio.page.getByRole("heading", { name: /^shippers\/\d/ }).waitFor();
  const id = decodeURIComponent(studio.page.url().split("/").at(-1) ?? "");
  expect(await stored(id)).toMatchObject({ Name: "", "@metadata": { "@collection": "Shippers" } });
});

test("Ctrl D duplicates a document, and does not overwrite another one", async () => {
  await openDocument("shippers/1-A");
  await editorOf("shippers/1-A").click();
  await studio.page.keyboard.press("Control+d");
  await studio.page.getByRole("heading", { name: "Copy of shippers/1-A" }).waitFor();
  const editor = studio.page.getByRole("textbox", { name: "New document" });
  await expect.poll(() => editor.textContent()).toContain("Speedy Express");
  await studio.page.getByLabel("Id").fill("shippers/2-A");
  await studio.page.getByRole("button", { name: "Save" }).click();
  await studio.page.getByRole("alert").waitFor();
  expect(await stored("shippers/2-A")).toMatchObject({ Name: "United Package" });
});

test("saves by others while reading are announced, and compared", async () => {
  await openDocument("orders/10-A");
  await typeMember("orders/10-A", '"Note": "mine", ');
  await put("orders/10-A", { ...(await stored("orders/10-A")), Freight: 4.5 });
  await studio.page.getByText(/This document changed on the server/).waitFor();
  await studio.page.getByRole("button", { name: "Compare" }).click();
  const difference = studio.page.getByRole("dialog").getByRole("region", { name: "Difference" });
  await difference.getByText('"Freight": ').first().waitFor();
  await studio.page.getByRole("button", { name: "Take theirs" }).click();
  await expect.poll(() => editorOf("orders/10-A").textContent()).toContain("4.5");
});

test("a document that is deleted while it is edited can be saved again", async () => {
  await put("notes/short", { Text: "x", "@metadata": { "@collection": "Notes" } });
  await openDocument("notes/short");
  await editorOf("notes/short").waitFor();
  await request("DELETE", "docs?id=notes/short");
  await studio.page.getByText("was deleted on the server").waitFor();
  await studio.page.getByRole("button", { name: "Save" }).click();
  await studio.page.getByText("Saved", { exact: true }).waitFor();
  expect(await stored("notes/short")).toMatchObject({ Text: "x" });
});

test("a draft survives closing its tab, without losing saves by others", async () => {
  const id = "orders/11-A";
  await openDocument(id);
  await typeMember(id, '"Note": "draft", ');
  await expect
    .poll(() =>
      studio.page.evaluate("Object.keys(localStorage).some((k) => k.startsWith('jackdaw-draft'))"),
    )
    .toBe(true);
  await studio.page.goto("about:blank");
  await put(id, { ...(await stored(id)), Freight: 7.25 });
  await openDocument(id);
  await studio.page.getByText("You have a draft of").waitFor();
  await studio.page.getByRole("button", { name: "Open" }).click();
  await expect.poll(() => editorOf(id).textContent()).toContain("draft");
  await studio.page.getByRole("button", { name: "Save" }).click();
  await studio.page.getByRole("alertdialog").getByRole("button", { name: "Save merged" }).click();
  await studio.page.getByText("Saved", { exact: true }).waitFor();
  expect(await stored(id)).toMatchObject({ Note: "draft", Freight: 7.25 });
});

test("two revisions are compared, and one is restored", async () => {
  const id = "orders/830-A";
  await openDocument(id);
  const revisions = studio.page.getByRole("listbox", { name: "Revisions" });
  await revisions.getByRole("option").nth(2).click();
  const difference = studio.page.getByRole("region", { name: "Difference" });
  await difference.getByText("+14").waitFor();
  expect(studio.page.url()).toContain("rev=");
  const lines = ((await stored(id))["Lines"] as unknown[]).length;
  await difference.getByRole("button", { name: "Restore this revision" }).click();
  await expect.poll(async () => ((await stored(id))["Lines"] as unknown[]).length).toBe(lines - 2);
  await studio.page.getByRole("tab", { name: "Revisions 30" }).waitFor();
});

test("revisions can be enabled where they are missing", async () => {
  await openDocument("regions/1-A");
  await studio.page.getByRole("heading", { name: "Revisions are disabled for Regions" }).waitFor();
  await studio.page.getByRole("button", { name: "Keep at most 10 revisions" }).click();
  await studio.page.getByRole("heading", { name: "No revisions yet" }).waitFor();
  const { json } = await request("GET", "revisions/config");
  expect(json).toMatchObject({
    Collections: { Regions: { MinimumRevisionsToKeep: 10 }, Orders: { Disabled: false } },
  });
});

test("an attachment is added and displayed; HTML can only be downloaded", async () => {
  await openDocument("notes/b", "?side=attachments");
  const pixel =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const choosing = studio.page.waitForEvent("filechooser");
  await studio.page.getByRole("button", { name: "choose some" }).click();
  await (await choosing).setFiles([
    { name: "photo.png", mimeType: "image/png", buffer: Buffer.from(pixel, "base64") },
    { name: "x.html", mimeType: "text/html", buffer: Buffer.from("<script>1</script>") },
  ]);
  const listed = (name: string) => studio.page.getByRole("listitem").filter({ hasText: name });
  await listed("photo.png").getByRole("button", { name: "Preview" }).click();
  await studio.page.getByRole("img", { name: "photo.png" }).waitFor();
  await listed("x.html").getByRole("link", { name: "Download" }).waitFor();
  expect(await listed("x.html").getByRole("button", { name: "Preview" }).count()).toBe(0);
  const downloading = studio.page.waitForEvent("download");
  await listed("x.html").getByRole("link", { name: "Download" }).click();
  expect(readFileSync(await (await downloading).path(), "utf8")).toBe("<script>1</script>");
});

test("a counter is incremented exactly", async () => {
  await request("POST", "counters", {
    Documents: [
      {
        DocumentId: "notes/c",
        Operations: [{ Type: "Increment", CounterName: "likes", Delta: 42 }],
      },
    ],
  });
  await studio.server.request("/databases/shop/counters", {
    method: "POST",
    body: '{"Documents":[{"DocumentId":"notes/c","Operations":[{"Type":"Increment","CounterName":"big","Delta":9007199254740993}]}]}',
  });
  await openDocument("notes/c");
  await studio.page.getByRole("tab", { name: /^Counters/ }).click();
  await studio.page.getByRole("button", { name: "Add 1 to likes" }).click();
  await studio.page.getByText("43", { exact: true }).waitFor();
  await studio.page.getByRole("button", { name: "Subtract 1 from likes" }).click();
  await studio.page.getByText("42", { exact: true }).waitFor();
  await studio.page.getByText("9,007,199,254,740,993").waitFor();
});

test("a time series is a chart and a table", async () => {
  await openDocument("employees/8-A", "?side=series");
  await studio.page.getByRole("img", { name: /^HeartRates: 120 entries/ }).waitFor();
  await studio.page.getByRole("grid", { name: "Entries of HeartRates" }).waitFor();
});

test("an id in a document is a link, and Back returns to the previous page", async () => {
  await openDocument("orders/1-A", "?side=related");
  await studio.page.getByRole("link", { name: "companies/85-A" }).click();
  await studio.page.getByRole("heading", { name: "companies/85-A" }).waitFor();
  await studio.page.getByRole("tab", { name: /^Related/ }).click();
  await studio.page.getByRole("button", { name: "Search", exact: true }).click();
  await studio.page.getByRole("link", { name: "5 Orders" }).waitFor();
  await studio.page.goBack();
  await studio.page.getByRole("heading", { name: "orders/1-A" }).waitFor();
  const tab = studio.page.getByRole("tab", { name: /^Related/ });
  expect(await tab.getAttribute("aria-selected")).toBe("true");
});

test("a document is shown as a tree with exact numbers", async () => {
  await studio.server.request("/databases/shop/docs?id=notes/tree", {
    method: "PUT",
    body: '{"Inner":{"Exact":1.10},"@metadata":{"@collection":"Notes"}}',
  });
  await openDocument("notes/tree", "?view=tree");
  const tree = studio.page.getByRole("treegrid", { name: "Values of notes/tree" });
  await tree.getByRole("row").nth(1).focus();
  await studio.page.keyboard.press("ArrowRight");
  await tree.getByText("1.10").waitFor();
});

test("a missing id shows the nearest existing ones", async () => {
  await openDocument("orders/830x");
  await studio.page.getByRole("heading", { name: "Document orders/830x does not exist" }).waitFor();
  await studio.page.getByRole("link", { name: "orders/830-A" }).waitFor();
});

test("values, identities and deleted documents have lists", async () => {
  await request("PUT", "cmpxchg?key=lock&index=0", { Object: 12345 });
  await put("users|", { Name: "x" });
  await request("DELETE", "docs?id=orders/20-A");
  await studio.open("db/shop/docs/@cmpxchg");
  await studio.page.getByRole("cell", { name: "12345" }).waitFor();
  await studio.page.getByRole("link", { name: "Identities" }).click();
  await studio.page.getByRole("cell", { name: "users|" }).waitFor();
  await studio.page.getByRole("link", { name: "Deleted, kept" }).click();
  await studio.page.getByRole("button", { name: "Restore orders/20-A" }).click();
  await expect.poll(async () => (await request("GET", "docs?id=orders/20-A")).status).toBe(200);
});

test("Enter indents as the document does", async () => {
  await studio.open("db/shop/doc/companies%2F1-A");
  const editor = studio.page.getByRole("textbox", { name: "Document companies/1-A" });
  await editor.click();
  await studio.page.keyboard.press("Control+Home");
  await studio.page.keyboard.press("ArrowRight");
  await studio.page.keyboard.press("Enter");
  await studio.page.keyboard.type('"A": 1,');
  await expect.poll(() => editor.locator(".cm-line").nth(1).textContent()).toBe('    "A": 1,');
});

test("related documents are counted only after a search", async () => {
  await studio.open("db/shop/doc/shippers%2F1-A?side=related");
  const tab = studio.page.getByRole("tab", { name: /^Related/ });
  await studio.page.getByText("No value looks like an id.").waitFor();
  expect(await tab.textContent()).toBe("Related");
  await studio.page.getByRole("button", { name: "Search", exact: true }).click();
  await studio.page.getByRole("link", { name: "249 Orders" }).waitFor();
  await expect.poll(() => tab.textContent()).toBe("Related249");
});

test("an object in the list opens its document beside the list", async () => {
  await studio.open("db/shop/docs/Orders?cols=ShipTo,Lines");
  const row = studio.page.getByRole("row", { name: /orders\/830-A/ });
  await row
    .getByRole("button", { name: /^\{ \d+ \}$/ })
    .first()
    .click();
  await studio.page
    .getByRole("complementary", { name: "orders/830-A" })
    .getByText('"ShipTo": {')
    .waitFor();
});

test("a table shows that columns continue, until its end is reached", async () => {
  const { page } = studio;
  await page.setViewportSize({ width: 390, height: 844 });
  await studio.open("db/shop/docs/Orders");
  const grid = page.getByRole("grid", { name: "Documents of Orders" });
  await grid.getByRole("row", { name: /orders\/830-A/ }).waitFor();
  const style = "getComputedStyle(document.querySelector('.vtable')).maskImage";
  const hasMore = async () => (await page.evaluate(style)) !== "none";
  await expect.poll(hasMore).toBe(true);
  await grid.evaluate((one) => one.scrollTo({ left: one.scrollWidth }));
  await expect.poll(hasMore).toBe(false);
  await page.setViewportSize({ width: 1440, height: 900 });
  await studio.open("db/shop/docs/Orders?cols=Company");
  await grid.getByRole("row", { name: /orders\/830-A/ }).waitFor();
  expect(await hasMore()).toBe(false);
});
