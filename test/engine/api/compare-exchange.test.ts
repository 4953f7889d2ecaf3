import { afterEach, beforeEach, expect, test } from "vitest";
import { Database } from "../../../engine/api/database.ts";
import { closeDatabases, openDatabase } from "../../support/open-database.ts";

let database: Database;
beforeEach(async () => {
  database = Database.of(await openDatabase());
});
afterEach(closeDatabases);

test("replaces and deletes a value only by its version", async () => {
  const { compareExchange } = database;
  const value = Buffer.from('{ "Object": 1.50, "@metadata": {"a": 1} }');
  const put = await compareExchange.put("Key", 0, value);
  const text = '{"Object":1.50,"@metadata":{"a":1}}';
  expect(put).toEqual({ isSuccessful: true, index: 1, text });
  expect(compareExchange.get("kEY")).toEqual({ key: "Key", index: 1, text });
  const refused = await compareExchange.put("Key", 0, '{"Object":2}');
  expect(refused).toEqual({ isSuccessful: false, index: 1, text });
  expect((await compareExchange.delete("Key", 7)).isSuccessful).toBe(false);
  expect((await compareExchange.delete("Key", 1)).isSuccessful).toBe(true);
  expect(compareExchange.get("Key")).toBeUndefined();
});

test.each([
  ["[1]", "json-not-object"],
  ["", "json-truncated"],
  ["{} {}", "json-invalid"],
])("rejects the value %j", async (value, code) => {
  await expect(database.compareExchange.put("Key", 0, value)).rejects.toMatchObject({ code });
});

test("requires the expiration time to be text with a time, as RavenDB 7.2.7 does", async () => {
  const { compareExchange } = database;
  const put = (key: string, metadata: object) =>
    compareExchange.put(key, 0, JSON.stringify({ Object: 1, "@metadata": metadata }));
  for (const value of [null, "", "x", "2030-01-02", "2030-01-02T03:04:05+15:00", true, 0, [], {}]) {
    await expect(put("a", { "@expires": value })).rejects.toMatchObject({
      code: "raft-apply",
      message: expect.stringContaining("failed to get `Expires` for compare exchange key:a "),
    });
  }
  expect((await put("b", { "@expires": "2030-01-02T03:04:05+02:00" })).isSuccessful).toBe(true);
  // The key contains a space, so this member is not a time.
  for (const metadata of [{ "@refresh": null }, { "@Expires": "x" }, { a: { "@expires": null } }]) {
    expect((await put(`c${Object.keys(metadata)}`, metadata)).isSuccessful).toBe(true);
  }
});

test("lists values by prefix, in pages", async () => {
  for (const key of ["b/2", "a/1", "B/3", "b/1"]) {
    await database.compareExchange.put(key, 0, "{}");
  }
  const keys = (...page: Parameters<typeof database.compareExchange.list>) =>
    database.compareExchange.list(...page).map(({ key }) => key);
  expect(keys("", 0, 10)).toEqual(["a/1", "b/1", "b/2", "B/3"]);
  expect(keys("B/", 1, 1)).toEqual(["b/2"]);
  expect(keys("", 0, 0)).toEqual([]);
  expect(keys("", -1, 10)).toEqual([]);
});
