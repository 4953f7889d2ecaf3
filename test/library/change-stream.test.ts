/** Loops over changes: their contents, order, and end. */
import { afterEach, describe, expect, test } from "vitest";
import type { OpenDatabase } from "../../engine/api/database/open-database.ts";
import { changesWaitingMax } from "../../engine/base/limits.ts";
import { Changes, type Database } from "../../engine/engine.ts";
import { ChangeFeed } from "../../engine/state/store/changes.ts";
import { ChangeStream } from "../../library/change-stream.ts";
import { type Engine, openEngine } from "../../library/library.ts";

const engines: Engine[] = [];

afterEach(async () => {
  for (const engine of engines.splice(0)) await engine.close();
});

async function open() {
  const engine = await openEngine();
  engines.push(engine);
  return { engine, shop: await engine.database("shop") };
}

describe("a loop over changes", () => {
  test("receives writes and deletions after the call, in order", async () => {
    const { shop } = await open();
    await shop.put("users/0", {}, { collection: "Users" });
    const changes = shop.changes();
    const { changeVector } = await shop.put("users/1", {}, { collection: "Users" });
    await shop.delete("users/0");
    await shop.put("orders/1", {}, { collection: "Orders" });
    const seen: string[] = [];
    for await (const change of changes) {
      seen.push(`${change.type} ${change.id} ${change.collection}`);
      if (change.id === "users/1") expect(change.changeVector).toBe(changeVector);
      if (seen.length === 3) break;
    }
    expect(seen).toEqual(["put users/1 Users", "delete users/0 Users", "put orders/1 Orders"]);
  });

  test("receives only the requested collection and ids", async () => {
    const { engine, shop } = await open();
    const changes = shop.changes({ collection: "users", idPrefix: "USERS/1" });
    for (const id of ["users/1", "users/2", "users/12", "orders/1"]) {
      await shop.put(id, {}, { collection: id.startsWith("users") ? "Users" : "Orders" });
    }
    await engine.close();
    const seen: string[] = [];
    for await (const { id } of changes) seen.push(id);
    expect(seen).toEqual(["users/1", "users/12"]);
  });

  test("ends when the engine is closed, and fails when its database is deleted", async () => {
    const { engine, shop } = await open();
    const other = await engine.database("other");
    const deleted = other.changes().next();
    const closed = shop.changes().next();
    const rejected = expect(deleted).rejects.toMatchObject({ code: "database-stopped" });
    await engine.deleteDatabase("other");
    await rejected;
    await engine.close();
    expect(await closed).toEqual({ done: true, value: undefined });
    expect(await shop.changes().next()).toEqual({ done: true, value: undefined });
  });

  test("fails for a deleted database", async () => {
    const { engine, shop } = await open();
    await engine.deleteDatabase("shop");
    await expect(shop.changes().next()).rejects.toMatchObject({ code: "database-missing" });
  });

  test("fails with the reason of its signal, before, during and after waiting", async () => {
    const { shop } = await open();
    const reason = new Error("enough");
    await expect(shop.changes({ signal: AbortSignal.abort(reason) }).next()).rejects.toBe(reason);
    const controller = new AbortController();
    const waiting = shop.changes({ signal: controller.signal });
    const idle = shop.changes({ signal: controller.signal });
    await shop.put("a", {});
    await waiting.next();
    const next = waiting.next();
    controller.abort(reason);
    await expect(next).rejects.toBe(reason);
    await expect(idle.next()).rejects.toBe(reason);
    expect(await idle.next()).toEqual({ done: true, value: undefined });
  });
});

test("an unread stream ends automatically, and unsubscribes", async () => {
  const feed = new ChangeFeed();
  const state = { keyspaces: { collections: { nameOf: () => "Users" } } };
  const stream = new ChangeStream({}, new AbortController().signal);
  const changes = new Changes({ feed, state } as unknown as OpenDatabase);
  stream.follow({ changes } as Database);
  expect(feed.isIdle).toBe(false);
  const change = { kind: "document", type: "Put", id: "a", collectionId: 0, etag: 1 } as const;
  const notify = (count: number) =>
    feed.notify(Array.from({ length: count }, () => ({ ...change, changeVector: "A:1-x" })));
  notify(changesWaitingMax);
  expect(feed.isIdle).toBe(false);
  notify(1);
  expect(feed.isIdle).toBe(true);
  expect(feed.isFollowed).toBe(false);
  let read = 0;
  const loop = async () => {
    for await (const _ of stream) read++;
  };
  await expect(loop()).rejects.toMatchObject({ code: "overloaded" });
  expect(read).toBe(changesWaitingMax);
});
