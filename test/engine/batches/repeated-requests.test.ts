import { afterEach, expect, test } from "vitest";
import { Database } from "../../../engine/api/database.ts";
import { closeDatabases, openDatabase } from "../../support/open-database.ts";

afterEach(closeDatabases);

test("returns the recorded outcome to a request of the same type and id, up to a limit", async () => {
  const open = await openDatabase();
  const { compareExchange, identities } = Database.of(open);
  const kept = () => [...open.state.keyspaces.values.withPrefix("request/")];
  expect(await identities.next("a", "same")).toBe(1);
  expect((await compareExchange.put("k", 0, "{}", "same")).isSuccessful).toBe(true);
  expect(await identities.next("a", "same")).toBe(1);
  expect((await compareExchange.put("k", 0, "{}", "same")).isSuccessful).toBe(true);
  // Nothing is recorded without an id or with an invalid one.
  for (const id of [undefined, "", "x".repeat(101)]) {
    const first = await identities.next("b", id);
    expect(await identities.next("b", id)).toBe(first + 1);
  }
  expect(kept().flatMap(([, set]) => set)).toHaveLength(2);

  const ids = Array.from({ length: 6000 }, (_, n) => `id-${n}`);
  const numbers = await Promise.all(ids.map((id) => identities.next("c", id)));
  expect(new Set(numbers).size).toBe(ids.length);
  expect(kept().length).toBeLessThanOrEqual(512);
  expect(kept().flatMap(([, set]) => set).length).toBeLessThanOrEqual(4 * 512);
  const last = numbers.length;
  const again = await Promise.all(ids.slice(-200).map((id) => identities.next("c", id)));
  expect(again).toEqual(numbers.slice(-200));
  expect(await identities.next("c")).toBe(last + 1);
});

test("a large outcome is not recorded", async () => {
  const { compareExchange } = Database.of(await openDatabase());
  const large = JSON.stringify({ Object: "x".repeat(20_000) });
  const { index } = await compareExchange.put("k", 0, large, "put");
  // Written documents are not part of the outcome, because the request has them.
  expect(await compareExchange.put("k", 0, large, "put")).toMatchObject({ index });
  expect((await compareExchange.delete("k", index, "delete")).isSuccessful).toBe(true);
  expect((await compareExchange.delete("k", index, "delete")).isSuccessful).toBe(false);
});
