import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { DatabaseCatalog } from "../../../../engine/api/database/database-catalog.ts";
import { nodeEnvironment } from "../../../../engine/base/platform/node-environment.ts";
import { newTestFolder } from "../../../support/open-test-database.ts";

async function openCatalog(folder: string | null): Promise<DatabaseCatalog> {
  const catalog = await DatabaseCatalog.open(nodeEnvironment(), folder);
  onTestFinished(() => catalog.close());
  return catalog;
}

const types = [
  ["on disk", false],
  ["in memory", true],
] as const;

test.each(types)(
  "finds a database in any spelling until it is deleted: %s",
  async (_, inMemory) => {
    const catalog = await openCatalog(inMemory ? null : await newTestFolder());
    const database = await catalog.create("Shop", { Disabled: false });
    expect(await catalog.find("SHOP")).toBe(database);
    expect(catalog.names()).toEqual(["Shop"]);
    await expect(catalog.create("shop", {})).rejects.toMatchObject({ code: "database-exists" });
    expect(await catalog.delete("sHop")).toBe(true);
    expect(await catalog.find("shop")).toBeUndefined();
    expect(await catalog.delete("shop")).toBe(false);
    expect(() => database.find("a")).toThrow("closed");
  },
);

test.each(types)(
  "a lookup waits for a pending creation, and a second creation is rejected: %s",
  async (_, inMemory) => {
    const catalog = await openCatalog(inMemory ? null : await newTestFolder());
    const created = catalog.create("shop", { Mark: 1 });
    const found = catalog.find("shop");
    await expect(catalog.create("SHOP", {})).rejects.toMatchObject({ code: "database-exists" });
    expect(await found).toBe(await created);
  },
);

test.each(types)(
  "of two concurrent deletions, one deletes and the other finds nothing: %s",
  async (_, inMemory) => {
    const catalog = await openCatalog(inMemory ? null : await newTestFolder());
    await catalog.create("shop", {});
    const results = await Promise.all([catalog.delete("shop"), catalog.delete("shop")]);
    expect(results).toEqual([true, false]);
    expect(catalog.has("shop")).toBe(false);
  },
);

test("concurrent open, delete and find leave the database deleted", async () => {
  const folder = await newTestFolder();
  const first = await DatabaseCatalog.open(nodeEnvironment(), folder);
  await (await first.create("shop", {})).put("a", { a: 1 });
  await first.close();
  const catalog = await openCatalog(folder);
  const opened = catalog.find("shop");
  const deleted = catalog.delete("shop");
  const later = catalog.find("shop");
  expect(await opened).toBeDefined();
  expect(await deleted).toBe(true);
  expect(await later).toBeUndefined();
  expect(await catalog.find("shop")).toBeUndefined();
});

test("a name can be reused while the previous database is being deleted", async () => {
  const catalog = await openCatalog(await newTestFolder());
  const before = await catalog.create("shop", { Mark: 1 });
  const deleted = catalog.delete("shop");
  const again = await catalog.create("shop", { Mark: 2 });
  expect(await deleted).toBe(true);
  expect(again).not.toBe(before);
  expect(again.settings).toEqual({ Mark: 2 });
  expect(await catalog.find("shop")).toBe(again);
});

test("writes in flight during a deletion complete or are rejected", async () => {
  const catalog = await openCatalog(await newTestFolder());
  const database = await catalog.create("shop", {});
  const writes = Array.from({ length: 50 }, (_, index) => database.put(`a/${index}`, { index }));
  const deletion = catalog.delete("shop");
  const late = database.put("late", {});
  const outcomes = await Promise.allSettled([...writes, late]);
  expect(await deletion).toBe(true);
  for (const outcome of outcomes) {
    if (outcome.status === "rejected") {
      expect(outcome.reason).toMatchObject({ code: "database-stopped" });
    }
  }
  await expect(database.put("b", {})).rejects.toMatchObject({ code: "database-stopped" });
});

test("fails on a database folder without files instead of creating a database", async () => {
  const folder = await newTestFolder();
  await mkdir(join(folder, "shop"));
  const catalog = await openCatalog(folder);
  await expect(catalog.find("shop")).rejects.toMatchObject({ code: "database-missing" });
});

test("creates and opens nothing once the catalog is closing", async () => {
  const folder = await newTestFolder();
  const catalog = await DatabaseCatalog.open(nodeEnvironment(), folder);
  await catalog.create("shop", {});
  const closed = catalog.close();
  await expect(catalog.create("other", {})).rejects.toMatchObject({ code: "database-stopped" });
  await closed;
  await expect(catalog.find("shop")).rejects.toMatchObject({ code: "database-stopped" });
  await expect(catalog.delete("shop")).rejects.toMatchObject({ code: "database-stopped" });
  const again = await openCatalog(folder);
  expect(again.names()).toEqual(["shop"]);
});

test("closes an idle database and reopens it on the next request", async () => {
  const folder = await newTestFolder();
  const idle = { idleMs: 0, checkMs: 1_000_000 };
  const catalog = await DatabaseCatalog.open(nodeEnvironment(), folder, {}, idle);
  onTestFinished(() => catalog.close());
  const first = await catalog.create("shop", {});
  await first.put("a", { a: 1 });
  await catalog.closeIdle();

  const used = (await catalog.find("shop"))!;
  const guest = used.enter();
  expect(await catalog.closeIdle()).toBe(0);
  guest.release();
  const unfollow = used.feed.listenToEnd(() => undefined);
  expect(await catalog.closeIdle()).toBe(0);
  unfollow();

  const closing = catalog.closeIdle();
  const found = await Promise.all([catalog.find("SHOP"), catalog.find("shop")]);
  expect(await closing).toBe(1);
  expect(used.hasEnded).toBe(true);
  expect(found[0]).toBe(found[1]);
  expect(found[0]).not.toBe(used);
  expect(await found[0]!.get("a")).toMatchObject({ a: 1 });
  await found[0]!.changeSettings((record) => ({ ...record, Expiration: { Disabled: false } }));
  expect(await catalog.closeIdle()).toBe(0);
  expect(catalog.opened()).toEqual([found[0]]);
});

test("serves all requests that arrive while idle databases are being closed", async () => {
  const folder = await newTestFolder();
  const idle = { idleMs: 0, checkMs: 1_000_000 };
  const catalog = await DatabaseCatalog.open(nodeEnvironment(), folder, {}, idle);
  onTestFinished(() => catalog.close());
  await catalog.create("shop", {});
  let isOver = false;
  const closing = (async () => {
    let closed = 0;
    while (!isOver) {
      closed += await catalog.closeIdle();
      await new Promise((resolve) => setImmediate(resolve));
    }
    return closed;
  })();
  for (let n = 0; n < 40; n++) {
    const database = (await catalog.find("shop"))!;
    const guest = database.enter();
    await database.put(`a/${n}`, { n });
    guest.release();
  }
  isOver = true;
  expect(await closing).toBeGreaterThan(0);
  expect((await catalog.find("shop"))!.state.documents.documentCount).toBe(40);
});

test("never closes an idle database in memory", async () => {
  const idle = { idleMs: 0, checkMs: 1_000_000 };
  const catalog = await DatabaseCatalog.open(nodeEnvironment(), null, {}, idle);
  onTestFinished(() => catalog.close());
  const database = await catalog.create("shop", {});
  expect(await catalog.closeIdle()).toBe(0);
  expect(database.hasEnded).toBe(false);
});
