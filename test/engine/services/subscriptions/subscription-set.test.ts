import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import type { EngineError } from "../../../../engine/base/errors.ts";
import type { SubscriptionBatch } from "../../../../engine/services/subscriptions/subscription.ts";
import type {
  SubscriptionWorker,
  WorkerOptions,
} from "../../../../engine/services/subscriptions/subscription-worker.ts";
import {
  deleteSubscription,
  setSubscriptionDisabled,
} from "../../../../engine/writes/subscriptions.ts";
import {
  closeDatabases,
  openAfterCrash,
  openDatabase,
  temporaryFolder,
} from "../../../support/open-database.ts";
import { openTestDatabase } from "../../../support/open-test-database.ts";

let database: OpenDatabase;
let ends: string[];
let index: number;
beforeEach(async () => {
  database = await openTestDatabase();
  ends = [];
  index = 0;
});
afterEach(closeDatabases);

const never = new AbortController().signal;

function define(query: string, changeVector: string | null = null, name = "s") {
  return database.subscriptions.put({ name, query, changeVector }, ++index);
}

function open(options: Partial<WorkerOptions> = {}, signal = never): Promise<SubscriptionWorker> {
  const { workerId = "w" } = options;
  return database.subscriptions.connect(
    {
      name: "s",
      strategy: "OpenIfFree",
      documentsPerBatchMax: 100,
      closesWhenNoneLeft: false,
      unreadable: [],
      workerId,
      client: "test",
      onEnd: (reason: EngineError) => ends.push(`${workerId}: ${reason.code}: ${reason.message}`),
      ...options,
    },
    signal,
  );
}

function put(id: string, body: object = {}, collection = "Users") {
  return database.put(id, { ...body, "@metadata": { "@collection": collection } });
}

/** Ids and errors in a batch. */
function idsOf(batch: SubscriptionBatch | null): string[] {
  return (batch?.items ?? []).map(({ text, error }) => {
    const { "@metadata": metadata } = JSON.parse(text.toString()) as {
      "@metadata": { "@id": string };
    };
    return error === null ? metadata["@id"] : `${metadata["@id"]}: ${error.code}`;
  });
}

function objectsOf(batch: SubscriptionBatch | null): unknown[] {
  return (batch?.items ?? []).map(({ text }) => {
    const { "@metadata": _, ...rest } = JSON.parse(text.toString()) as Record<string, unknown>;
    return rest;
  });
}

async function nextIds(worker: SubscriptionWorker): Promise<string[]> {
  const ids = idsOf(await worker.nextBatch());
  await worker.acknowledge();
  return ids;
}

const position = (name = "s") => database.subscriptions.task({ name }).changeVector;
const vector = (etag: number) => database.state.changeVectorAt(etag);

describe("a worker", () => {
  test("receives the documents of the collection in write order, in batches", async () => {
    for (const id of ["users/1", "users/2", "users/3"]) await put(id);
    await put("dogs/1", {}, "Dogs");
    await define("from users");
    const worker = await open({ documentsPerBatchMax: 2 });
    expect(await nextIds(worker)).toEqual(["users/1", "users/2"]);
    expect(await nextIds(worker)).toEqual(["users/3"]);
    expect(position()).toBe(vector(3));
  });

  test("waits for new documents", async () => {
    await define("from Users");
    const worker = await open();
    const batch = worker.nextBatch();
    await put("dogs/1", {}, "Dogs");
    await put("users/1");
    expect(idsOf(await batch)).toEqual(["users/1"]);
  });

  test("receives a document again that changes during its batch, and no deleted one", async () => {
    await put("users/1");
    await put("users/2");
    await define("from Users");
    const worker = await open({ documentsPerBatchMax: 1 });
    expect(idsOf(await worker.nextBatch())).toEqual(["users/1"]);
    await put("users/1", { Name: "new" });
    await database.delete("users/2");
    await worker.acknowledge();
    expect(objectsOf(await worker.nextBatch())).toEqual([{ Name: "new" }]);
  });

  test("receives documents that the previous worker did not acknowledge", async () => {
    await put("users/1");
    await put("users/2");
    await define("from Users");
    const first = await open({ documentsPerBatchMax: 1 });
    await nextIds(first);
    expect(idsOf(await first.nextBatch())).toEqual(["users/2"]);
    first.close();
    const second = await open();
    expect(await nextIds(second)).toEqual(["users/2"]);
    second.close();
    const third = await open({ closesWhenNoneLeft: true });
    expect(await third.nextBatch()).toBeNull();
  });

  test("begins at the start point of its task", async () => {
    await put("users/1");
    await define("from Users", "LastDocument");
    expect(position()).toBe(vector(1));
    await put("users/2");
    expect(await nextIds(await open())).toEqual(["users/2"]);
    await define("from Users", vector(1), "explicit");
    expect(await nextIds(await open({ name: "EXPLICIT" }))).toEqual(["users/2"]);
    await define("from Users", "A:77-AAAAAAAAAAAAAAAAAAAAAA", "of another database");
    expect(await nextIds(await open({ name: "of another database" }))).toHaveLength(2);
  });

  test("receives no documents that the condition excludes, and need not acknowledge them", async () => {
    for (const age of [1, 2, 3, 4]) await put(`users/${age}`, { Age: age });
    await define("from Users where Age > 1 and Age < 4");
    const worker = await open();
    expect(await nextIds(worker)).toEqual(["users/2", "users/3"]);
    expect(position()).toBe(vector(4));
    const batch = worker.nextBatch();
    await put("users/5", { Age: 5 });
    await put("users/6", { Age: 3 });
    expect(idsOf(await batch)).toEqual(["users/6"]);
  });

  test("receives nothing more if it is closed while it waits", async () => {
    await define("from Users");
    const worker = await open();
    const batch = worker.nextBatch();
    worker.close();
    expect(await batch).toBeNull();
    expect(ends).toEqual([]);
  });
});

describe("a query", () => {
  test("selects with a script, and does not send a document with an empty selection", async () => {
    for (const age of [1, 2]) await put(`users/${age}`, { Age: age });
    await define(
      "declare function f(u) { return u.Age == 1 ? null : { twice: u.Age * 2 }; } from Users as u select f(u)",
    );
    expect(objectsOf(await (await open()).nextBatch())).toEqual([{ twice: 4 }]);
    await define(
      "from Users as u where u.Age < 2 select { age: u.Age, id: id(u) }",
      null,
      "object",
    );
    const worker = await open({ name: "object" });
    expect(objectsOf(await worker.nextBatch())).toEqual([{ age: 1, id: "users/1" }]);
  });

  test("sends the error of a document on which it fails, and continues", async () => {
    for (const age of [1, 2, 3]) await put(`users/${age}`, { Age: age });
    await define(
      "declare function f(u) { if (u.Age == 2) throw 'no'; return true; } from Users as u where f(u)",
    );
    const worker = await open();
    const batch = await worker.nextBatch();
    expect(idsOf(batch)).toEqual(["users/1", "users/2: script-failed", "users/3"]);
    expect(objectsOf(batch)[1]).toEqual({});
    await worker.acknowledge();
    expect(position()).toBe(vector(3));
  });

  test("loads and includes other documents", async () => {
    await put("dogs/1", { Name: "Rex" }, "Dogs");
    await put("users/1", { Dog: "dogs/1" });
    await put("users/2", { Dog: "dogs/9" });
    await define("from Users as u load u.Dog as d select { dog: d.Name } include u.Dog");
    const batch = await (await open()).nextBatch();
    expect(objectsOf(batch)).toEqual([{ dog: "Rex" }, { dog: null }]);
    await define("from Users include Dog", null, "including");
    const worker = await open({ name: "including", documentsPerBatchMax: 1 });
    expect((await worker.nextBatch())?.includes.documents.map(({ id }) => id)).toEqual(["dogs/1"]);
    await worker.acknowledge();
    expect((await worker.nextBatch())?.includes.documents).toEqual([]);
    const query = "from Users as u select { dog: include(u.Dog) }";
    await define(query, null, "by script");
    const scripted = await open({ name: "by script", documentsPerBatchMax: 1 });
    expect((await scripted.nextBatch())?.includes.documents.map(({ id }) => id)).toEqual([
      "dogs/1",
    ]);
    await scripted.acknowledge();
    expect((await scripted.nextBatch())?.includes.documents).toEqual([]);
  });

  test("of revisions sends each with its predecessor", async () => {
    await database.putSettings({ Revisions: { Default: { Disabled: false } } });
    await put("users/1", { Age: 1 });
    await put("users/1", { Age: 2 });
    await database.delete("users/1");
    await define("from Users (Revisions = true)");
    const batch = await (await open()).nextBatch();
    expect(idsOf(batch)).toEqual(["users/1", "users/1", "users/1"]);
    expect(objectsOf(batch)).toMatchObject([
      { Current: { Age: 1 }, Previous: null },
      { Current: { Age: 2 }, Previous: { Age: 1 } },
      { Current: null, Previous: { Age: 2 } },
    ]);
    await define(
      "from Users (Revisions = true) as r where r.Current.Age > r.Previous.Age select { grew: r.Current.Age - r.Previous.Age }",
      null,
      "growth",
    );
    expect(objectsOf(await (await open({ name: "growth" })).nextBatch())).toContainEqual({
      grew: 1,
    });
  });

  test("of revisions omits none that is stored during a batch", async () => {
    await database.putSettings({ Revisions: { Default: { Disabled: false } } });
    for (const age of [1, 2, 3]) await put("users/1", { Age: age });
    await define("from Users (Revisions = true) as r select { age: r.Current.Age }");
    const worker = await open({ documentsPerBatchMax: 2 });
    expect(objectsOf(await worker.nextBatch())).toEqual([{ age: 1 }, { age: 2 }]);
    await put("users/1", { Age: 4 });
    await worker.acknowledge();
    const ages = objectsOf(await worker.nextBatch());
    await worker.acknowledge();
    if (ages.length === 1) ages.push(...objectsOf(await worker.nextBatch()));
    expect(ages).toEqual([{ age: 3 }, { age: 4 }]);
  });

  test("can be tried without a task", async () => {
    for (const age of [1, 2, 3]) await put(`users/${age}`, { Age: age });
    const tried = await database.subscriptions.try("from Users where Age > 1", null, 1, 10_000);
    expect(tried.items.map((text) => JSON.parse(text.toString()))).toMatchObject([{ Age: 2 }]);
    const last = await database.subscriptions.try("from Users", "LastDocument", 9, 10_000);
    expect(last.items).toEqual([]);
  });
});

describe("strategies", () => {
  beforeEach(async () => {
    for (const id of ["users/1", "users/2", "users/3", "users/4"]) await put(id);
    await define("from Users");
  });

  test("OpenIfFree is rejected while another worker is connected", async () => {
    const first = await open();
    await expect(open()).rejects.toMatchObject({ code: "subscription-in-use" });
    first.close();
    await expect(open()).resolves.toBeDefined();
  });

  test("TakeOver disconnects the current worker, and receives its pending documents", async () => {
    const first = await open({ workerId: "first" });
    await first.nextBatch();
    const second = await open({ workerId: "second", strategy: "TakeOver" });
    expect(ends).toEqual(["first: subscription-in-use: Closed by TakeOver"]);
    expect(first.isEnded).toBe(true);
    await expect(first.acknowledge()).rejects.toMatchObject({ code: "subscription-closed" });
    await expect(open({ strategy: "TakeOver" })).rejects.toMatchObject({
      code: "subscription-in-use",
      message: expect.stringContaining("by a TakeOver connection"),
    });
    expect(await nextIds(second)).toHaveLength(4);
  });

  test("WaitForFree waits in order of arrival, and can be cancelled", async () => {
    const first = await open();
    const order: string[] = [];
    const wait = (workerId: string) =>
      open({ workerId, strategy: "WaitForFree" }).then((worker) => {
        order.push(workerId);
        return worker;
      });
    const second = wait("second");
    const third = wait("third");
    const giving = new AbortController();
    const fourth = open({ strategy: "WaitForFree" }, giving.signal);
    giving.abort();
    await expect(fourth).rejects.toMatchObject({ code: "operation-cancelled" });
    expect(database.subscriptions.pendingOf("s")).toHaveLength(2);
    first.close();
    (await second).close();
    (await third).close();
    expect(order).toEqual(["second", "third"]);
  });

  test("Concurrent workers share the documents, each sent to one of them", async () => {
    const one = await open({ strategy: "Concurrent", workerId: "one", documentsPerBatchMax: 1 });
    const two = await open({ strategy: "Concurrent", workerId: "two", documentsPerBatchMax: 1 });
    await expect(open()).rejects.toMatchObject({ code: "subscription-in-use" });
    await expect(open({ strategy: "TakeOver" })).rejects.toMatchObject({
      code: "subscription-in-use",
    });
    expect(idsOf(await one.nextBatch())).toEqual(["users/1"]);
    expect(await nextIds(two)).toEqual(["users/2"]);
    expect(position()).toBeNull();
    expect(await nextIds(two)).toEqual(["users/3"]);
    await one.acknowledge();
    expect(position()).toBe(vector(3));
  });

  test("pending documents of a disconnected Concurrent worker are sent to another", async () => {
    const one = await open({ strategy: "Concurrent", workerId: "one", documentsPerBatchMax: 2 });
    const two = await open({ strategy: "Concurrent", workerId: "two", documentsPerBatchMax: 2 });
    await one.nextBatch();
    expect(await nextIds(two)).toEqual(["users/3", "users/4"]);
    const batch = two.nextBatch();
    one.close();
    expect(idsOf(await batch)).toEqual(["users/1", "users/2"]);
    expect(position()).toBeNull();
    await two.acknowledge();
    expect(position()).toBe(vector(4));
  });

  test("a document that changes stays with the Concurrent worker that has it", async () => {
    const one = await open({ strategy: "Concurrent", workerId: "one", documentsPerBatchMax: 1 });
    const two = await open({ strategy: "Concurrent", workerId: "two", documentsPerBatchMax: 9 });
    expect(idsOf(await one.nextBatch())).toEqual(["users/1"]);
    await put("users/1", { Name: "new" });
    expect(await nextIds(two)).toEqual(["users/2", "users/3", "users/4"]);
    const batch = two.nextBatch();
    await one.acknowledge();
    expect(objectsOf(await batch)).toEqual([{ Name: "new" }]);
    expect(position()).toBe(vector(4));
    await two.acknowledge();
    expect(position()).toBe(vector(5));
  });
});

describe("workers are disconnected", () => {
  beforeEach(async () => {
    await put("users/1");
    await define("from Users");
  });

  test("when their task is removed, disabled or changed", async () => {
    await open();
    await database.write((transaction) =>
      setSubscriptionDisabled(transaction, { name: "S" }, true),
    );
    await expect(open()).rejects.toMatchObject({
      code: "subscription-closed",
      details: { CanReconnect: false },
    });
    await database.write((transaction) => setSubscriptionDisabled(transaction, { id: 1 }, false));
    await open();
    await database.subscriptions.update(
      { name: "s" },
      { query: "from Users where a = 1" },
      ++index,
    );
    await open();
    await database.subscriptions.update({ name: "s" }, { changeVector: "LastDocument" }, ++index);
    await open();
    await database.write((transaction) => deleteSubscription(transaction, "s"));
    expect(ends).toEqual([
      "w: subscription-closed: The subscription s is disabled and cannot be used until enabled",
      "w: subscription-closed: The subscription s query has been modified, connection must be restarted",
      "w: subscription-closed: The subscription s was modified, connection must be restarted",
      "w: subscription-missing: The subscription s had been deleted",
    ]);
    await expect(open()).rejects.toMatchObject({ code: "subscription-missing" });
  });

  test("when the database is disabled or closed, including waiting workers", async () => {
    await open();
    const waiting = open({ strategy: "WaitForFree" });
    await Promise.all([
      expect(waiting).rejects.toMatchObject({ code: "database-disabled" }),
      database.putSettings({ Disabled: true }),
    ]);
    await open({ workerId: "later" });
    await database.close();
    expect(ends.map((end) => end.split(":")[1])).toEqual([
      " database-disabled",
      " database-stopped",
    ]);
  });

  test("and an acknowledgment for another definition is rejected", async () => {
    const worker = await open();
    await worker.nextBatch();
    const update = database.subscriptions.update(
      { name: "s" },
      { changeVector: "BeginningOfTime" },
      ++index,
    );
    await expect(worker.acknowledge()).rejects.toMatchObject({ code: "subscription-changed" });
    await update;
    expect(position()).toBeNull();
  });
});

describe("a task", () => {
  test("has a unique name in any letter case, and keeps its id", async () => {
    await define("from Users");
    await expect(define("from Dogs", null, "S")).rejects.toMatchObject({ code: "raft-apply" });
    const nameless = await database.subscriptions.put({ query: "from Users" }, 7);
    expect(nameless).toMatchObject({ id: 7, name: "7" });
    const renamed = await database.subscriptions.update({ id: 7 }, { name: "seven" }, 8);
    expect(renamed.task).toMatchObject({ id: 7, name: "seven", index: 8 });
    expect([...database.subscriptions.tasks()].map(({ name }) => name)).toEqual(["s", "seven"]);
    const chosen = await database.subscriptions.put({ name: "nine", query: "from A" }, 9, 10);
    expect(chosen.id).toBe(10);
    expect((await database.subscriptions.put({ query: "from A" }, 10)).id).toBe(11);
  });

  test.each([
    ["from", "query-syntax"],
    ["from index 'x'", "not-supported"],
    ["from Users order by Name", "not-supported"],
    ["from Users group by Name", "not-supported"],
  ])("cannot be defined with '%s'", async (query, code) => {
    await expect(define(query)).rejects.toMatchObject({ code });
  });

  test("survives a crash with its position", async () => {
    const folder = temporaryFolder();
    database = await openDatabase(folder);
    await put("users/1");
    await define("from Users");
    await nextIds(await open());
    const { acknowledgedAt } = database.subscriptions.task({ name: "s" });
    database = await openAfterCrash(folder);
    expect(position()).toBe(vector(1));
    expect(database.subscriptions.task({ id: 1 })).toMatchObject({ name: "s", acknowledgedAt });
    await put("users/2");
    expect(await nextIds(await open())).toEqual(["users/2"]);
  });
});
