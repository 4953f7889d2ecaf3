import { afterEach, beforeEach, expect, test } from "vitest";
import type { OpenDatabase } from "../../../engine/api/database/open-database.ts";
import { automaticIndexes, indexDetails, indexInfo } from "../../../engine/api/index-info.ts";
import type { OpenIndex } from "../../../engine/indexing/open-index.ts";
import { closeDatabases, openDatabase, putAll, query } from "../../support/open-database.ts";

let database: OpenDatabase;
beforeEach(async () => {
  database = await openDatabase();
  await putAll(database, "Things", { a: { n: 1, o: "b" }, b: { n: 2 } });
});
afterEach(closeDatabases);

const named = (name: string) => database.queries.indexes.byName(name) as OpenIndex;

test("an automatic index counts only its maps", async () => {
  await query(database, "from Things where n = 1");
  const index = named("Auto/Things/Byn");
  expect(indexInfo(index)).toMatchObject({ isStatic: false, isRunning: true, errors: [] });
  const now = database.clock.nowMicros();
  expect(indexDetails(index, { Settings: {} }, now)).toMatchObject({
    name: "Auto/Things/Byn",
    type: "AutoMap",
    isStale: false,
    entriesCount: 2,
    mapAttempts: 2,
    mappedPerSecond: 2 / 60,
    reducedPerSecond: 0,
    searchEngine: "Corax",
    output: null,
    references: null,
    reduces: null,
  });
  const settings = { Settings: { "Indexing.Auto.SearchEngineType": "Lucene" } };
  expect(indexDetails(index, settings, now).searchEngine).toBe("Lucene");
  expect(automaticIndexes(database.queries.indexes.all())).toEqual([
    {
      name: "Auto/Things/Byn",
      type: "AutoMap",
      priority: "Normal",
      definition: expect.objectContaining({ collection: "Things" }),
    },
  ]);
});

test("a deployed index reports its stages, output and errors", async () => {
  await database.queries.administration.deploy(
    [
      {
        Name: "Loads",
        Maps: [
          "map('Things', t => { if (t.n === 2) throw 'no'; return { M: load(t.o, 'Others').m }; })",
        ],
      },
      {
        Name: "Sums",
        Maps: ["map('Things', t => ({ Key: 1, N: t.n }))"],
        Reduce:
          "groupBy(r => r.Key).aggregate(g => ({ Key: g.key, N: g.values.reduce((s, v) => s + v.N, 0) }))",
        OutputReduceToCollection: "Totals",
      },
    ],
    false,
  );
  for (const name of ["Loads", "Sums"]) {
    await database.queries.indexes.waitForNonStale(name, 10_000);
  }
  const now = database.clock.nowMicros();
  const loads = indexDetails(named("Loads"), {}, now);
  expect(loads).toMatchObject({
    isStatic: true,
    type: "JavaScriptMap",
    referencedCollections: ["Others"],
    references: { errors: 0 },
    output: null,
  });
  expect(loads.errors.map(({ document, action }) => [document, action])).toContainEqual([
    "b",
    "Map",
  ]);
  const sums = indexDetails(named("Sums"), {}, now);
  expect(sums).toMatchObject({
    type: "JavaScriptMapReduce",
    references: null,
    reduces: { attempts: 2, errors: 0 },
    mappedPerSecond: 2 / 60,
    reducedPerSecond: 2 / 60,
    output: { collection: "Totals", pattern: null },
  });
  const aMinuteLater = indexDetails(named("Sums"), {}, now + 61_000_000);
  expect(aMinuteLater).toMatchObject({ mappedPerSecond: 0, reducedPerSecond: 0 });
  expect(automaticIndexes(database.queries.indexes.all())).toEqual([]);
});
