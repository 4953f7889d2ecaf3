import { afterEach, beforeEach, expect, test } from "vitest";
import type { OpenDatabase } from "../../../engine/api/database/open-database.ts";
import { Database } from "../../../engine/api/database.ts";
import { subscriptionClosed } from "../../../engine/api/subscriptions.ts";
import { closeDatabases, openDatabase, putAll } from "../../support/open-database.ts";

let opened: OpenDatabase;
let database: Database;
beforeEach(async () => {
  opened = await openDatabase();
  database = Database.of(opened);
  await putAll(opened, "Things", { a: { n: 1 }, b: { n: 2 } });
});
afterEach(closeDatabases);

const query = "from Things";

test("defines, changes, finds and deletes tasks", async () => {
  const { subscriptions } = database;
  await subscriptions.put({ name: "s", query }, 5);
  expect(subscriptions.get({ id: 5 })).toEqual(subscriptions.get({ name: "S" }));
  expect([subscriptions.has("S"), subscriptions.has("t")]).toEqual([true, false]);
  const { isChanged } = await subscriptions.update({ name: "s" }, { query }, 6);
  expect(isChanged).toBe(false);
  await subscriptions.setDisabled({ id: 5 }, true);
  expect(subscriptions.list().map(({ isDisabled }) => isDisabled)).toEqual([true]);
  await subscriptions.delete({ name: "none" });
  await expect(subscriptions.delete({ id: 7 })).rejects.toMatchObject({
    code: "subscription-missing",
  });
  await subscriptions.delete({ id: 5 });
  expect(subscriptions.list()).toEqual([]);
});

test("checks and tries a query without a task", async () => {
  const { subscriptions } = database;
  expect(() => subscriptions.checkQuery("from")).toThrow();
  subscriptions.checkQuery(query);
  const { items } = await subscriptions.try(`${query} where n = 2`, null, 10, 1000);
  expect(items.map((item) => (JSON.parse(item.toString()) as { n: number }).n)).toEqual([2]);
});

test("a worker receives batches until it is dropped", async () => {
  const { subscriptions } = database;
  await subscriptions.put({ name: "s", query }, 1);
  const ends: string[] = [];
  const worker = await subscriptions.connect(
    {
      name: "s",
      strategy: "OpenIfFree",
      documentsPerBatchMax: 1,
      closesWhenNoneLeft: false,
      workerId: "w",
      unreadable: [],
      client: "here",
      onEnd: ({ message }) => ends.push(message),
    },
    new AbortController().signal,
  );
  expect((await worker.nextBatch())?.items).toHaveLength(1);
  await worker.acknowledge();
  expect((await worker.nextBatch())?.items).toHaveLength(1);
  const shown = { client: "here", strategy: "OpenIfFree", workerId: "w" };
  expect(subscriptions.workersOf("S")).toEqual([shown]);
  expect(subscriptions.pendingOf("s")).toEqual([]);
  subscriptions.drop("s", "other", subscriptionClosed("no", false));
  expect(worker.isEnded).toBe(false);
  subscriptions.drop("s", "w", subscriptionClosed("dropped", false));
  expect([worker.isEnded, ends]).toEqual([true, ["dropped"]]);
});
