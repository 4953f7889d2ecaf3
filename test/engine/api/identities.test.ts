import { afterEach, beforeEach, expect, test } from "vitest";
import { Database } from "../../../engine/api/database.ts";
import { closeDatabases, openDatabase } from "../../support/open-database.ts";

let database: Database;
beforeEach(async () => {
  database = Database.of(await openDatabase());
});
afterEach(closeDatabases);

test("identity values increase, and seeding lowers them only if forced", async () => {
  const { identities } = database;
  expect(await identities.next("users|")).toBe(1);
  expect(await identities.seed("users|", 10, false)).toBe(10);
  expect(await identities.seed("users|", 5, false)).toBe(10);
  expect(await identities.seed("users|", 5, true)).toBe(5);
  expect(await identities.next("users|")).toBe(6);
  expect([...identities.list()]).toEqual([["users|", 6]]);
});

test("ranges do not overlap, grow under load, and the last range can be returned", async () => {
  const { identities } = database;
  const first = await identities.nextRange("users", { size: 0, at: 0, max: 0 });
  expect(first).toMatchObject({ low: 1, high: first.size });
  const second = await identities.nextRange("users", { ...first, max: first.high });
  expect(second.low).toBe(first.high + 1);
  expect(second.size).toBeGreaterThan(first.size);
  await identities.returnRange("users", second.high, second.low);
  const third = await identities.nextRange("users", { size: 0, at: 0, max: 0 });
  expect(third.low).toBe(second.low + 1);
});
