/** Subscriptions in the studio: they are tested, created, edited, disabled and deleted, and their workers disconnected. */
import { beforeAll, expect, test } from "vitest";
import { studioBrowser } from "../../support/studio-browser.ts";
import { openTcp } from "../../support/tcp-client.ts";

const studio = studioBrowser();

beforeAll(async () => {
  await studio.server.request("/databases/shop/studio/sample-data", { method: "POST" });
});

const role = (...[name, options]: Parameters<typeof studio.page.getByRole>) =>
  studio.page.getByRole(name, options);
const put = async (Name: string) => {
  const { status } = await studio.server.request("/databases/shop/subscriptions", {
    method: "PUT",
    body: JSON.stringify({ Name, Query: "from Shippers" }),
  });
  expect(status).toBe(201);
};
const stored = async (name: string) => {
  const path = `/databases/shop/subscriptions/state?name=${encodeURIComponent(name)}`;
  return (await studio.server.request(path)).json as Record<string, unknown>;
};
const connect = async (SubscriptionName: string) => {
  const pair = await studio.server.client({ clearance: "ClusterAdmin" });
  const worker = await openTcp(studio.server, { SubscriptionName }, "shop", pair);
  expect(await worker.next()).toMatchObject({ Status: "Accepted" });
  return worker;
};

test("a subscription is tested, created and edited", async () => {
  await studio.open("db/shop/subscriptions");
  await role("heading", { name: "No subscriptions in shop yet" }).waitFor();
  await role("link", { name: "New subscription" }).click();
  await role("textbox", { name: "Query" }).click();
  await studio.page.keyboard.press("Control+a");
  await studio.page.keyboard.type("from Shippers where Name = 'Speedy Express'");
  await role("textbox", { name: "Name" }).fill("shippers");
  await role("button", { name: "Test" }).click();
  await studio.page.getByText("A worker would receive 1 document.").waitFor();
  await role("region", { name: "Test" }).getByText("shippers/1-A").first().waitFor();
  await role("button", { name: "Save" }).click();
  await role("complementary", { name: "Subscription shippers" }).waitFor();
  expect(await stored("shippers")).toMatchObject({
    Query: "from Shippers where Name = 'Speedy Express'",
    ChangeVectorForNextBatchStartingPoint: null,
  });
  await role("link", { name: "Edit" }).click();
  await role("combobox", { name: "Start with" }).selectOption({ label: "The next change" });
  await role("button", { name: "Test" }).click();
  await studio.page.getByText("A worker would receive no document now.").waitFor();
  await role("button", { name: "Save" }).click();
  await role("complementary", { name: "Subscription shippers" }).waitFor();
  expect((await stored("shippers"))["ChangeVectorForNextBatchStartingPoint"]).toMatch(/^A:\d+/);
});

test("an invalid query is marked, and not stored", async () => {
  await studio.open("db/shop/subscriptions?new=1&q=from%20Orders%20where%20where");
  await role("textbox", { name: "Name" }).fill("wrong");
  studio.expectRefusal(400);
  await role("button", { name: "Save" }).click();
  await role("alert").waitFor();
  expect((await studio.server.request("/databases/shop/subscriptions?name=wrong")).status).toBe(
    400,
  );
});

test("workers are listed and disconnected", async () => {
  await put("workers");
  const worker = await connect("workers");
  expect(await worker.batch()).toHaveLength(3);
  await studio.open("db/shop/subscriptions?select=workers");
  const row = role("row", { name: /^workers/ });
  await row.getByText("Connected").waitFor();
  const workers = role("table", { name: "Workers" });
  await workers.getByText("127.0.0.1").waitFor();
  await workers.getByRole("button", { name: "Disconnect" }).click();
  for (let message = await worker.next(); message !== null; message = await worker.next()) {
    if (message["Status"] === "Closed") break;
  }
  await studio.page.getByText("No worker is connected.").waitFor();
  await row.getByText("Enabled, no worker").waitFor();
  worker.close();
});

test("a subscription is disabled, enabled, and deleted", async () => {
  await put("old");
  await studio.open("db/shop/subscriptions");
  const row = role("row", { name: /^old/ });
  const choose = async (name: string) => {
    await role("button", { name: "More about old" }).click();
    await role("menuitem", { name }).click();
  };
  await choose("Disable");
  await row.getByText("Disabled").waitFor();
  expect(await stored("old")).toMatchObject({ Disabled: true });
  await choose("Enable");
  await row.getByText("Enabled, no worker").waitFor();
  await choose("Delete…");
  await role("alertdialog").getByRole("button", { name: "Delete old" }).click();
  await row.waitFor({ state: "detached" });
  expect((await studio.server.request("/databases/shop/subscriptions?name=old")).status).toBe(400);
});
