import { afterEach, describe, expect, it } from "vitest";
import { automaticIndexesMax, automaticIndexFieldsMax } from "../../../engine/base/limits.ts";
import type { AutomaticIndex } from "../../../engine/indexing/automatic-index.ts";
import type {
  DefinitionField,
  IndexDefinition,
} from "../../../engine/indexing/definitions/index-definition.ts";
import { ArrayDatabase, rowIds } from "../queries/execution/execute-array-host.ts";

const open: ArrayDatabase[] = [];
function newDatabase(): ArrayDatabase {
  const database = new ArrayDatabase();
  open.push(database);
  return database;
}

afterEach(() => {
  for (const database of open.splice(0)) {
    database.indexes.checkInvariants();
    database.indexes.close();
  }
});

function field(name: string, options: Partial<DefinitionField> = {}): DefinitionField {
  return {
    name,
    path: [{ name, arrays: 0 }],
    isQuoted: false,
    hasSearch: false,
    hasExact: false,
    hasHighlight: false,
    hasSuggest: false,
    ...options,
  };
}

function over(...fields: DefinitionField[]): IndexDefinition {
  return { collection: "Users", fields, groupBy: null };
}

function user(database: ArrayDatabase, n: number, fields: object): void {
  database.put(
    `users/${n}`,
    JSON.stringify({ ...fields, "@metadata": { "@collection": "Users" } }),
  );
}

describe("IndexSet", () => {
  it("answers from an index with more fields than the query needs", () => {
    const { indexes } = newDatabase();
    const both = indexes.automatic(over(field("A"), field("B")));
    expect(indexes.automatic(over(field("A")))).toBe(both);
    expect(indexes.all()).toHaveLength(1);
  });

  it("answers the same definition from the existing index", () => {
    const { indexes } = newDatabase();
    const needed = over(field("A"));
    const first = indexes.automatic(needed);
    expect(indexes.automatic(needed)).toBe(first);
    indexes.drop(first.name);
    const second = indexes.automatic(needed);
    expect(second).not.toBe(first);
    indexes.reset(second.name);
    const third = indexes.automatic(needed);
    expect(third).not.toBe(second);
    const wider = indexes.automatic(over(field("B")));
    wider.hasCaughtUp = true;
    expect(indexes.automatic(needed)).toBe(wider);
  });

  it("extends: the new index has the fields of both", () => {
    const { indexes } = newDatabase();
    indexes.automatic(over(field("A")));
    const created = indexes.automatic(over(field("B")));
    expect(created.name).toBe("Auto/Users/ByAAndB");
  });

  it("changes the options of a field as required by the extending query", () => {
    const { indexes } = newDatabase();
    const search = indexes.automatic(over(field("A", { hasSearch: true }), field("B")));
    const exact = indexes.automatic(over(field("A", { hasExact: true })));
    expect(exact.name).toBe("Auto/Users/ByBAndExact(A)");
    expect(search.successor).toBeNull();
  });

  it("keeps only the words of a field until a query needs its whole values", async () => {
    const database = newDatabase();
    const { indexes } = database;
    const names = () => indexes.all().map(({ name }) => name);
    user(database, 1, { A: "quick Fox", B: "red" });
    user(database, 2, { A: "lazy dog", B: "brown fox" });
    const byWord = "from Users where search(A, 'fox')";
    expect(rowIds((await database.query(byWord)).rows)).toEqual(["users/1"]);
    const lean = indexes.byName("Auto/Users/BySearch(A)") as AutomaticIndex;
    expect(lean.index.columnNames).toEqual(["search(A)"]);
    lean.priority = "High";

    for (const [condition, found] of [
      ["A = 'QUICK fox'", ["users/1"]],
      ["A = 'fox'", []],
      ["startsWith(A, 'lazy')", ["users/2"]],
      ["A != null order by A", ["users/2", "users/1"]],
    ] as const) {
      const { rows } = await database.query(`from Users where ${condition}`);
      expect([condition, rowIds(rows)]).toEqual([condition, found]);
    }
    expect(names()).toEqual(["Auto/Users/BySearch(A)"]);
    const whole = indexes.byName("Auto/Users/BySearch(A)") as AutomaticIndex;
    expect(whole.index.columnNames).toEqual(["A", "search(A)"]);
    expect(whole).toMatchObject({ priority: "High", createdAtMicros: lean.createdAtMicros });
    expect(rowIds((await database.query(byWord)).rows)).toEqual(["users/1"]);
    // The words of another field are added to the existing ones.
    await database.query("from Users where search(B, 'fox') and A = 'x'");
    const both = indexes.byName("Auto/Users/BySearch(A)AndSearch(B)") as AutomaticIndex;
    expect(both.index.columnNames).toEqual(["A", "search(A)", "search(B)"]);
    expect(rowIds((await database.query("from Users where B = 'red'")).rows)).toEqual(["users/1"]);
  });

  it("answers searches from an index of words while the index with values is built", async () => {
    const database = newDatabase();
    const { indexes } = database;
    user(database, 1, { A: "quick Fox" });
    const byWord = over(field("A", { hasSearch: true, isWordsOnly: true }));
    const lean = indexes.automatic(byWord);
    await indexes.waitForNonStale(lean.name, 5000);
    const whole = indexes.automatic(over(field("A")));
    expect(whole.name).toBe(`ReplacementOf/${lean.name}`);
    expect(indexes.automatic(byWord)).toBe(lean);
    expect(indexes.withWholeFields(lean.name, () => new Set())).toBe(lean);
    expect(indexes.withWholeFields(lean.name, () => new Set(["A"]))).toBe(whole);
    expect(indexes.withWholeFields(lean.name, () => null)).toBe(whole);
    await indexes.waitForNonStale(whole.name, 5000);
    expect(indexes.all()).toEqual([whole]);
    expect(indexes.automatic(byWord)).toBe(whole);
  });

  it("drops an index some time after its successor has caught up, not before", async () => {
    const database = newDatabase();
    const timers: { ms: number; run: () => void }[] = [];
    database.setTimer = (ms, run) => {
      timers.push({ ms, run });
      return { cancel: () => {} };
    };
    user(database, 1, { A: 1, B: 2 });
    await database.query("from Users where A = 1");
    await database.query("from Users where B = 2");
    expect(database.indexes.all().map((index) => index.name)).toEqual([
      "Auto/Users/ByA",
      "Auto/Users/ByAAndB",
    ]);
    timers.find((timer) => timer.ms === 15_000)?.run();
    for (const timer of timers) timer.run();
    expect(database.indexes.all().map((index) => index.name)).toEqual(["Auto/Users/ByAAndB"]);
  });

  it("is stale until it has indexed the last write, and reports so", async () => {
    const database = newDatabase();
    user(database, 1, { A: 1 });
    const index = database.indexes.automatic(over(field("A")));
    expect(index.isStale).toBe(true);
    await database.indexes.waitForNonStale(index.name, 5000);
    expect(index.isStale).toBe(false);
    expect(index.statistics()).toMatchObject({
      entriesCount: 1,
      mapAttempts: 1,
      collections: [{ documentLag: 0 }],
    });
    user(database, 2, { A: 1 });
    expect(index.isStale).toBe(true);
    expect(index.statistics().collections[0]?.documentLag).toBe(1);
  });

  it("is stale after a deletion until it has indexed it", async () => {
    const database = newDatabase();
    user(database, 1, { A: 1 });
    await database.query("from Users where A = 1");
    database.remove("users/1");
    const index = database.indexes.byName("auto/users/bya");
    expect(index?.isStale).toBe(true);
    expect((await database.query("from Users where A = 1")).rows).toEqual([]);
    expect(index?.statistics().entriesCount).toBe(0);
  });

  it("stops waiting when the timeout expires or the index is dropped", async () => {
    const database = newDatabase();
    user(database, 1, { A: 1 });
    const index = database.indexes.automatic(over(field("A")));
    index.isPaused = true;
    expect(await database.indexes.waitForNonStale(index.name, 5)).toBe(false);
    expect(index.isStale).toBe(true);
    const waiting = database.indexes.waitForNonStale(index.name, 600_000);
    database.indexes.drop(index.name);
    expect(await waiting).toBe(true);
    expect(database.indexes.byName(index.name)).toBeUndefined();
  });

  it("continues with other indexes when one index fails", async () => {
    const database = newDatabase();
    user(database, 1, { A: 1 });
    const broken = database.indexes.automatic(over(field("A")));
    broken.index.catchUp = () => {
      throw new Error("broken");
    };
    await database.indexes.waitForNonStale(broken.name, 5000);
    expect(broken.statistics().state).toBe("Error");
    const { rows } = await database.query("from Users group by A select A");
    expect(rows).toHaveLength(1);
  });

  it("rebuilds after a reset", async () => {
    const database = newDatabase();
    user(database, 1, { A: 1 });
    await database.query("from Users where A = 1");
    expect(database.indexes.reset("Auto/Users/ByA")).toBe(true);
    expect(database.indexes.reset("nope")).toBe(false);
    expect((await database.query("from Users where A = 1")).rows).toHaveLength(1);
  });

  it("copies live entries to a new store when most entries are dead", async () => {
    const database = newDatabase();
    for (let round = 0; round < 6; round++) {
      for (let n = 0; n < 500; n++) user(database, n, { A: n % 10, B: `r${round}`, C: ["x", n] });
      await database.query("from Users where A = 3 and B = 'x' and C = 'x'");
    }
    for (let n = 0; n < 400; n++) database.remove(`users/${n}`);
    const { rows } = await database.query("from Users where A = 3 and B = 'r5' and C = 'x'");
    expect(rowIds(rows)).toEqual(Array.from({ length: 10 }, (_, i) => `users/${403 + i * 10}`));
    const index = database.indexes.byName("Auto/Users/ByAAndBAndC");
    // It copies in the time left after it has caught up: in a busy process, perhaps only with a
    // later change.
    const entryCount = async () => {
      user(database, 499, { A: 9, B: `r${Math.random()}`, C: ["x"] });
      await database.query("from Users where A = 3 and B = 'x' and C = 'x'");
      return index?.index.store.entryCount;
    };
    await expect.poll(entryCount).toBeLessThan(3000);
  });

  it("drops an index that was not queried for days", () => {
    const database = newDatabase();
    const index = database.indexes.automatic(over(field("A")));
    const start = database.nowMicros();
    database.nowMicros = () => start + 31 * 60 * 1_000_000;
    database.indexes.tidy();
    expect(index.statistics().state).toBe("Idle");
    expect(database.indexes.all()).toHaveLength(1);
    database.nowMicros = () => start + 73 * 3600 * 1_000_000;
    database.indexes.tidy();
    expect(database.indexes.all()).toHaveLength(0);
  });

  it("drops idle indexes after the time set in the database's settings", () => {
    const database = newDatabase();
    database.settings = {
      "Indexing.TimeToWaitBeforeMarkingAutoIndexAsIdleInMin": "5",
      "Indexing.TimeToWaitBeforeDeletingAutoIndexMarkedAsIdleInHrs": "1",
    };
    const index = database.indexes.automatic(over(field("A")));
    const start = database.nowMicros();
    database.nowMicros = () => start + 6 * 60 * 1_000_000;
    expect(index.statistics().state).toBe("Idle");
    database.nowMicros = () => start + 64 * 60 * 1_000_000;
    database.indexes.tidy();
    expect(database.indexes.all()).toHaveLength(1);
    database.nowMicros = () => start + 66 * 60 * 1_000_000;
    database.indexes.tidy();
    expect(database.indexes.all()).toHaveLength(0);
  });

  it("limits the number of automatic indexes: the least recently queried one is dropped", () => {
    const database = newDatabase();
    let now = database.nowMicros();
    database.nowMicros = () => ++now;
    const ofCollection = (n: number) =>
      database.indexes.automatic({ ...over(field("A")), collection: `C${n}` });
    const first = ofCollection(0);
    for (let n = 1; n < automaticIndexesMax; n++) ofCollection(n);
    first.reader();
    for (let n = 0; n < 3; n++) ofCollection(automaticIndexesMax + n);
    const names = database.indexes.all().map(({ name }) => name);
    expect(names).toHaveLength(automaticIndexesMax);
    expect(names).toContain(first.name);
    for (const n of [1, 2, 3]) expect(names).not.toContain(`Auto/C${n}/ByA`);
  });

  it("limits the fields of an extended index, and creates another index beyond that", () => {
    const { indexes } = newDatabase();
    for (let n = 0; n < automaticIndexFieldsMax + 10; n++) indexes.automatic(over(field(`F${n}`)));
    expect(indexes.all().length).toBeLessThanOrEqual(automaticIndexesMax);
    for (const index of indexes.all()) {
      expect((index as AutomaticIndex).definition.fields.length).toBeLessThanOrEqual(
        automaticIndexFieldsMax,
      );
    }
  });
});
