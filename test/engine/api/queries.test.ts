import { afterEach, expect, test } from "vitest";
import type { Database, QueryOutcome } from "../../../engine/engine.ts";
import { closeDatabaseApis, openDatabaseApi, putText } from "../../support/open-database-api.ts";

afterEach(closeDatabaseApis);

async function filled(): Promise<Database> {
  const database = await openDatabaseApi();
  await putText(database, "users/1", { Age: 3 });
  await putText(database, "users/2", { Age: 5 });
  return database;
}

async function run(
  { queries }: Database,
  text: string,
  unlessEtag?: number,
): Promise<{ rows: string[]; outcome: QueryOutcome | null }> {
  const rows: string[] = [];
  const add = (row: Buffer) => {
    rows.push(row.toString());
    return null;
  };
  const outcome = await queries.run(text, { waitForNonStale: true, unlessEtag }, { add });
  return { rows, outcome };
}

test("sends rows to the sink and returns the outcome", async () => {
  const { rows, outcome } = await run(await filled(), "from Users where Age > 4 select Age");
  expect(rows).toHaveLength(1);
  expect(JSON.parse(rows[0] ?? "")).toMatchObject({ Age: 5 });
  expect(outcome).toMatchObject({ totalResults: 1, indexName: "Auto/Users/ByAge", isStale: false });
});

test("sends no rows if the client already has this result", async () => {
  const database = await filled();
  const text = "from Users where Age > 4";
  const { outcome } = await run(database, text);
  expect(await run(database, text, outcome?.resultEtag)).toEqual({ rows: [], outcome: null });
  await putText(database, "users/3", { Age: 9 });
  expect((await run(database, text, outcome?.resultEtag)).rows).toHaveLength(2);
});

test("a prepared query lists its includes and the collections it reads", async () => {
  const { queries } = await filled();
  const walk = await queries.prepare("from Users include counters(), Age", {});
  expect(walk.collectionCount).toBe(2);
  expect(walk.includes).toEqual(["documents", "counters"]);
  expect(walk.namedIndex).toBeNull();
  const named = await queries.prepare("from index 'ByAge'", {});
  expect(named.namedIndex).toBe("ByAge");
  expect(named.collectionCount).toBeNull();
});

test("returns entries with the times of their index", async () => {
  const database = await filled();
  const text = "from Users where Age > 4";
  await expect(database.queries.entries(text, {})).rejects.toMatchObject({ code: "index-missing" });
  await run(database, text);
  const found = await database.queries.entries(text, {});
  expect(found).toMatchObject({ totalResults: 1, indexName: "Auto/Users/ByAge" });
  expect(found.indexTimestamp).toBeGreaterThan(0);
});
