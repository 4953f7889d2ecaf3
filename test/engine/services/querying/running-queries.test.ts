import { afterEach, expect, it } from "vitest";
import { RunningQueries } from "../../../../engine/services/querying/running-queries.ts";
import { closeDatabases, openDatabase, putAll } from "../../../support/open-database.ts";

afterEach(closeDatabases);

const query = async () => (await openDatabase()).queries.prepare("from Users", "read", {});

it("lists running queries, newest first, also if some end in between", async () => {
  const analyzed = await query();
  const running = new RunningQueries();
  const added = [1, 2, 3, 4, 5].map((ms) => running.add(analyzed, {}, ms));
  const ids = () => running.list(10).map(({ id }) => id);
  expect(ids()).toEqual([5, 4, 3, 2, 1]);
  for (const [at, left] of [
    [2, [5, 4, 2, 1]],
    [4, [4, 2, 1]],
    [0, [4, 2]],
    [3, [2]],
    [1, []],
  ] as const) {
    running.remove(added[at] as (typeof added)[number]); // Five were added.
    expect(ids()).toEqual(left);
  }
});

it("ends only the query with that number and index, and notifies its receiver once", async () => {
  const analyzed = await query();
  const running = new RunningQueries();
  let reported = 0;
  const one = running.add(analyzed, { taker: { queryKilled: () => reported++ } }, 0);
  const other = running.add(analyzed, {}, 0);
  expect(running.kill("collection/Others", one.id)).toBe(false);
  expect(running.kill("collection/Users", 99)).toBe(false);
  expect(running.kill("Collection/users", one.id)).toBe(true);
  expect(running.kill("collection/Users", one.id)).toBe(true);
  expect([one.aborted, other.aborted, reported]).toEqual([true, false, 1]);
});

it("a query is aborted when its client disconnects", async () => {
  const signal = { aborted: false };
  const one = new RunningQueries().add(await query(), { signal }, 0);
  expect(one.aborted).toBe(false);
  signal.aborted = true;
  expect(one.aborted).toBe(true);
});

it("a kill ends a query that waits for an index, and nothing stays listed", async () => {
  const database = await openDatabase();
  await putAll(database, "Users", { "users/1": { Name: "Ann" } });
  const { queries } = database;
  queries.indexes.automatic = (definition) => {
    const index = Object.getPrototypeOf(queries.indexes).automatic.call(
      queries.indexes,
      definition,
    );
    Object.defineProperty(index, "isStale", { get: () => true });
    return index;
  };
  queries.indexes.waitForNonStale = () => new Promise(() => undefined);
  const options = { waitForNonStale: true, timeoutMs: 20_000 };
  const answer = queries.query("from Users where Name = 'x'", options, { add: () => null });
  const refused = expect(answer).rejects.toMatchObject({
    code: "query-killed",
    message: "The operation was canceled.",
  });
  while (queries.running.list(0).length === 0) await new Promise(setImmediate);
  const [shown] = queries.running.list(0);
  expect(shown).toMatchObject({
    indexName: "Auto/Users/ByName",
    waitsForNonStale: true,
    timeoutMs: 20_000,
    skip: 0,
    take: null,
    isStream: false,
  });
  expect(queries.running.kill("Auto/Users/ByName", shown?.id ?? 0)).toBe(true);
  await refused;
  expect(queries.running.list(0)).toEqual([]);
});
