import { afterEach, beforeEach, expect, test } from "vitest";
import type { OpenDatabase } from "../../../engine/api/database/open-database.ts";
import { Database, openedDatabase } from "../../../engine/api/database.ts";
import { closeDatabases, openDatabase } from "../../support/open-database.ts";

let opened: OpenDatabase;
let database: Database;
beforeEach(async () => {
  opened = await openDatabase();
  database = Database.of(opened);
});
afterEach(closeDatabases);

test("Database.of returns the same façade for the same database", () => {
  expect(Database.of(opened)).toBe(database);
  expect(openedDatabase(database)).toBe(opened);
});

test("the façade reports the properties of the open database", async () => {
  expect([database.lastEtag, database.changeVector]).toEqual([0, ""]);
  await opened.put("a", {});
  expect(database.lastEtag).toBe(1);
  expect(database.changeVector).toBe(`A:1-${database.databaseId}`);
  expect(database.sizeBytes).toBeGreaterThan(0);
  expect(database.operations).toBe(opened.operations);
  await database.changeSettings((record) => ({ ...record, Disabled: true }));
  expect([database.isDisabled, database.settings]).toEqual([true, { Disabled: true }]);
});

test("a short-lived guest does not retain the numbers of deleted documents", async () => {
  const guest = database.enter(false);
  await opened.put("a", {});
  const number = opened.find("a");
  await opened.delete("a");
  await opened.put("b", {});
  expect(opened.find("b")).not.toBe(number);
  guest.release();
  database.enter(true).release();
});

test("serves requests until it is closed", async () => {
  database.assertServing();
  await database.compact();
  expect(database.hasEnded).toBe(false);
  await opened.close();
  expect(database.hasEnded).toBe(true);
  expect(() => database.assertServing()).toThrow(
    expect.objectContaining({ code: "database-stopped" }),
  );
});
