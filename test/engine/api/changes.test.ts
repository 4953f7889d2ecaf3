import { afterEach, beforeEach, expect, test } from "vitest";
import type { Change } from "../../../engine/api/changes.ts";
import type { OpenDatabase } from "../../../engine/api/database/open-database.ts";
import { Database } from "../../../engine/api/database.ts";
import { appendToSeries } from "../../../engine/writes/time-series.ts";
import { closeDatabases, openDatabase } from "../../support/open-database.ts";

let opened: OpenDatabase;
let database: Database;
beforeEach(async () => {
  opened = await openDatabase();
  database = Database.of(opened);
});
afterEach(closeDatabases);

test("reports writes with collection and change vector until the listener unsubscribes", async () => {
  const heard: Change[] = [];
  const stop = database.changes.listen((change) => heard.push(change));
  const vector = (etag: number) => `A:${etag}-${database.databaseId}`;
  await opened.put("a", { "@metadata": { "@collection": "Things" } });
  expect(heard.splice(0)).toEqual([
    { kind: "document", type: "Put", id: "a", collection: "Things", changeVector: vector(1) },
  ]);
  const increment = { type: "Increment" as const, name: "c", delta: 3n };
  await database.counters.apply([{ documentId: "a", operations: [increment] }]);
  expect(heard.splice(0)).toContainEqual({
    kind: "counter",
    type: "Put",
    documentId: "a",
    name: "c",
    value: 3n,
    collection: "Things",
    changeVector: vector(2),
  });
  await opened.write((transaction) =>
    appendToSeries(transaction, "a", "s", [{ time: 0, values: [1], tag: null }]),
  );
  expect(heard.splice(0)).toContainEqual(
    expect.objectContaining({
      kind: "time-series",
      name: "s",
      from: "1970-01-01T00:00:00.0000000Z",
      to: "1970-01-01T00:00:00.0000000Z",
      collection: "Things",
    }),
  );
  stop();
  await opened.put("b", {});
  expect(heard).toEqual([]);
  expect(opened.feed.isIdle).toBe(true);
});

test("reports index events and the closing of the database", async () => {
  const heard: string[] = [];
  database.changes.listenToIndexes(({ type, name }) => heard.push(`${type} ${name}`));
  database.changes.listenToEnd((reason) => heard.push(reason));
  await database.indexes.deploy([{ Name: "I", Maps: ["map('T', t => ({ N: t.N }))"] }], false);
  expect(heard).toContain("IndexAdded I");
  await database.changeSettings(() => ({ Disabled: true }));
  expect(heard.at(-1)).toBe("Database 'db' is disabled.");
});
