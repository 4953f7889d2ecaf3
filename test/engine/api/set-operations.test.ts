import { afterEach, beforeEach, expect, test } from "vitest";
import type { OpenDatabase } from "../../../engine/api/database/open-database.ts";
import { Database } from "../../../engine/api/database.ts";
import { closeDatabases, openDatabase, putAll } from "../../support/open-database.ts";

let opened: OpenDatabase;
let database: Database;
beforeEach(async () => {
  opened = await openDatabase();
  database = Database.of(opened);
  await putAll(opened, "Things", { a: { n: 1 }, b: { n: 2 } });
});
afterEach(closeDatabases);

const options = {
  parametersText: null,
  allowsStale: false,
  staleTimeoutMs: undefined,
  operationsPerSecondMax: undefined,
  hasDetails: false,
  liftsLimits: false,
};
const increment = "from Things update { this.n += 10; }";

test("patches the documents of a query, then deletes them", async () => {
  const patched = await (await database.setOperations.patch(increment, options)).ended;
  expect(patched.info.state).toMatchObject({ status: "completed", result: { Total: 2 } });
  expect(await opened.get("b")).toMatchObject({ n: 12 });
  const deleted = await (await database.setOperations.delete("from Things", options)).ended;
  expect(deleted.info.state).toMatchObject({ status: "completed", result: { Total: 2 } });
  expect(database.statistics.counts().CountOfDocuments).toBe(0);
});

test("a dry run writes nothing", async () => {
  const tried = await database.setOperations.tryPatch(increment, null, "a");
  expect(tried?.isPatched).toBe(true);
  expect(JSON.parse(tried?.modified ?? "")).toMatchObject({ n: 11 });
  expect(await opened.get("a")).toMatchObject({ n: 1 });
  expect(await database.setOperations.tryPatch(increment, null, "none")).toBeNull();
});

test("an invalid query starts no operation", async () => {
  await expect(database.setOperations.patch("from", options)).rejects.toMatchObject({
    code: "query-syntax",
  });
  expect(database.operations.list()).toEqual([]);
});
