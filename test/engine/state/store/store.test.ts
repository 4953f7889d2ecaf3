/** The single writer: transactions are atomic, in order, and visible exactly when they are durable. */
import { describe, expect, test } from "vitest";
import { EngineError } from "../../../../engine/base/errors.ts";
import type { Store } from "../../../../engine/state/store/store.ts";
import { deleteDocument, putText } from "../../../../engine/writes/documents.ts";
import { openTestDatabase } from "../../../support/open-test-database.ts";

const ids = (store: Store, all: readonly string[]) => all.filter((id) => store.find(id) >= 0);

describe("a transaction", () => {
  test("is visible when its promise resolves, and not before", async () => {
    const database = await openTestDatabase();
    const written = database.write((transaction) => putText(transaction, "a", '{"n":1}'));
    expect(ids(database, ["a"])).toEqual([]);
    await written;
    expect(ids(database, ["a"])).toEqual(["a"]);
    expect(database.bodyText("a")).toBe('{"n":1}');
    expect(database.bodyText("b")).toBeNull();
  });

  test("sees preceding ones that are not durable yet", async () => {
    const database = await openTestDatabase();
    const first = database.write((transaction) => putText(transaction, "a", "{}"));
    const second = database.write((transaction) => {
      expect(transaction.find("a")).toBeGreaterThanOrEqual(0);
      return deleteDocument(transaction, "a");
    });
    expect(await second).toBe(true);
    await first;
    expect(ids(database, ["a"])).toEqual([]);
  });

  test("that throws has no effect, and does not affect others", async () => {
    const database = await openTestDatabase();
    const before = database.write((transaction) => putText(transaction, "a", "{}"));
    const failing = database.write((transaction) => {
      putText(transaction, "b", "{}");
      deleteDocument(transaction, "a");
      throw new EngineError("invalid-operation", "no");
    });
    const after = database.write((transaction) => putText(transaction, "c", "{}"));
    await expect(failing).rejects.toMatchObject({ code: "invalid-operation" });
    await Promise.all([before, after]);
    expect(ids(database, ["a", "b", "c"])).toEqual(["a", "c"]);
  });

  test("that is rejected because of undurable data is notified when that data is durable", async () => {
    const database = await openTestDatabase();
    const order: string[] = [];
    const note = (what: string) => () => void order.push(what);
    const refuse = (transaction: { find(id: string): number }) => {
      if (transaction.find("a") >= 0) throw new EngineError("concurrency", "it is there");
    };
    await Promise.all([
      database.write((transaction) => putText(transaction, "a", "{}")).then(note("written")),
      database.write(refuse).catch(note("refused")),
    ]);
    await Promise.all([
      database.write((transaction) => putText(transaction, "b", "{}")).then(note("written")),
      database
        .writeInSlices(function* write(transaction) {
          yield;
          refuse(transaction);
        })
        .catch(note("refused")),
    ]);
    expect(order).toEqual(["written", "refused", "written", "refused"]);
  });

  test("in slices is one transaction: readers see none of it, and no other begins", async () => {
    const database = await openTestDatabase();
    const order: string[] = [];
    const long = database.writeInSlices(function* write(transaction) {
      for (let n = 0; n < 500; n++) {
        putText(transaction, `n/${n}`, "{}");
        yield;
      }
      order.push("long");
    });
    const other = database.write((transaction) => {
      order.push("other");
      return transaction.find("n/499");
    });
    expect(ids(database, ["n/0"])).toEqual([]);
    expect(await other).toBeGreaterThanOrEqual(0);
    await long;
    expect(order).toEqual(["long", "other"]);
  });

  test("notifies listeners of its changes in the tick in which they become visible", async () => {
    const database = await openTestDatabase();
    const reported: [string, boolean][] = [];
    const stop = database.feed.listen((change) => {
      if (change.kind === "document") reported.push([change.id, database.find(change.id) >= 0]);
    });
    await Promise.all(
      ["a", "b"].map((id) => database.write((transaction) => putText(transaction, id, "{}"))),
    );
    stop();
    await database.write((transaction) => putText(transaction, "c", "{}"));
    expect(reported).toEqual([
      ["a", true],
      ["b", true],
    ]);
  });
});

test("a view does not change, whatever is written", async () => {
  const database = await openTestDatabase();
  await database.write((transaction) => putText(transaction, "a", '{"n":1}'));
  const view = database.view();
  const etag = view.documents.etagOf(database.find("a"));
  await database.write((transaction) => putText(transaction, "a", '{"n":2}'));
  await database.write((transaction) => putText(transaction, "b", "{}"));
  expect(view.documents.etagOf(database.find("a"))).toBe(etag);
  expect(view.lastEtag).toBe(etag);
  view.release();
});

test("settings are changed one after another, and each change is durable", async () => {
  const database = await openTestDatabase();
  await Promise.all(
    [1, 2, 3].map((n) =>
      database.changeSettings((settings) => ({
        ...settings,
        All: [...((settings["All"] as number[] | undefined) ?? []), n],
      })),
    ),
  );
  expect(database.settings["All"]).toEqual([1, 2, 3]);
});

test("nothing is written or read after closing", async () => {
  const database = await openTestDatabase();
  await database.close();
  const write = database.write((transaction) => putText(transaction, "a", "{}"));
  await expect(write).rejects.toMatchObject({ code: "database-stopped" });
  expect(() => database.find("a")).toThrow(EngineError);
  expect(() => database.view()).toThrow(EngineError);
});
