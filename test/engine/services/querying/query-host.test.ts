import { afterEach, describe, expect, it, vi } from "vitest";
import { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import type { Clock } from "../../../../engine/base/environment.ts";
import { nodeEnvironment } from "../../../../engine/base/platform/node-environment.ts";
import type { AutomaticIndex } from "../../../../engine/indexing/automatic-index.ts";
import {
  closeDatabases,
  openAfterCrash,
  openDatabase,
  putAll,
  query,
  temporaryFolder,
} from "../../../support/open-database.ts";

afterEach(closeDatabases);

const people = {
  "users/1": { Name: "Ann", Age: 30, Boss: "users/2" },
  "users/2": { Name: "Bob", Age: 20 },
  "users/3": { Name: "Cid", Age: 40.5, Boss: "users/9" },
};

async function withPeople(folder?: string): Promise<OpenDatabase> {
  const database = await openDatabase(folder);
  await putAll(database, "Users", people);
  return database;
}

describe("queries of a collection", () => {
  it("return documents in the order of their last writes, and count them", async () => {
    const database = await withPeople();
    await database.put("users/1", { Name: "Ada", "@metadata": { "@collection": "Users" } });
    await putAll(database, "Others", { "others/1": {} });
    const { ids, outcome } = await query(database, "from users");
    expect(ids).toEqual(["users/2", "users/3", "users/1"]);
    expect(outcome).toMatchObject({ totalResults: 3, indexName: "collection/users" });
  });

  it("find ids in any case, by list and by prefix", async () => {
    const database = await withPeople();
    expect((await query(database, "from Users where id() in ('USERS/2', 'nope')")).ids).toEqual([
      "users/2",
    ]);
    expect((await query(database, "from Users where startsWith(id(), 'Users/')")).ids).toEqual([
      "users/1",
      "users/2",
      "users/3",
    ]);
  });

  it("use one view, whatever is written while rows are sent", async () => {
    const database = await withPeople();
    const names: string[] = [];
    await database.query("from Users", {}, {
      async add(row: Buffer) {
        names.push((JSON.parse(row.toString()) as { Name: string }).Name);
        await database.put("users/3", { Name: "new", "@metadata": { "@collection": "Users" } });
        await database.delete("users/2");
      },
    } as never);
    expect(names).toEqual(["Ann", "Bob", "Cid"]);
  });

  it("read 64-bit parameters exactly", async () => {
    const database = await openDatabase();
    await database.put("n/1", '{"N":9007199254740993,"@metadata":{"@collection":"Ns"}}');
    const found = async (parametersText: string) =>
      (await query(database, "from Ns where N = $n", { parametersText })).ids;
    expect(await found('{"n":9007199254740993}')).toEqual(["n/1"]);
    expect(await found('{"n":9007199254740992}')).toEqual([]);
  });
});

describe("automatic indexes", () => {
  it("follow writes and deletions", async () => {
    const database = await withPeople();
    const adults = () => query(database, "from Users where Age >= 25 order by Name");
    expect((await adults()).ids).toEqual(["users/1", "users/3"]);
    await database.delete("users/1");
    await putAll(database, "Users", { "users/4": { Name: "Dan", Age: 50 }, "users/3": { Age: 1 } });
    expect((await adults()).ids).toEqual(["users/4"]);
    await database.put("users/1", { Age: 99, "@metadata": { "@collection": "Users" } });
    expect((await adults()).ids).toEqual(["users/1", "users/4"]);
  });

  it("lose a document that was deleted and stored again in another collection", async () => {
    const database = await withPeople();
    await query(database, "from Users where Age > 0");
    await database.delete("users/1");
    await database.put("users/1", { Age: 30, "@metadata": { "@collection": "Others" } });
    expect((await query(database, "from Users where Age > 0")).ids).toEqual(["users/2", "users/3"]);
    expect((await query(database, "from Others where Age > 0")).ids).toEqual(["users/1"]);
  });

  it("are known after a crash, and are rebuilt", async () => {
    const folder = temporaryFolder();
    const database = await withPeople(folder);
    await query(database, "from Users where Age > 25");
    const index = database.queries.indexes.byName("Auto/Users/ByAge");
    expect(index).toBeDefined();
    if (index === undefined) return;
    index.priority = "High";
    await database.queries.administration.save(index);
    const again = await openAfterCrash(folder);
    const [known] = again.queries.indexes.all();
    expect([known?.name, known?.priority]).toEqual(["Auto/Users/ByAge", "High"]);
    expect((await query(again, "from Users where Age > 25")).ids).toEqual(["users/1", "users/3"]);
  });

  it("of words only are replaced after a restart by indexes with whole values", async () => {
    const folder = temporaryFolder();
    const database = await withPeople(folder);
    const name = "Auto/Users/BySearch(Name)";
    expect((await query(database, "from Users where search(Name, 'ann')")).ids).toEqual([
      "users/1",
    ]);
    const [lean] = database.queries.indexes.all();
    if (lean === undefined) throw new Error("the query made an index");
    // The state if the process ends before the new index has caught up.
    lean.isPaused = true;
    await database.put("users/4", { Name: "Dan", "@metadata": { "@collection": "Users" } });
    const whole = database.queries.indexes.withWholeFields(name, () => null);
    if (whole === undefined) throw new Error("the index is there");
    whole.isPaused = true;
    await database.queries.administration.save(lean);
    expect(whole.name).toBe(`ReplacementOf/${name}`);

    const again = await openAfterCrash(folder);
    const { indexes } = again.queries;
    expect((await query(again, `from index '${name}' where Name = 'DAN'`)).ids).toEqual([
      "users/4",
    ]);
    expect(indexes.all().map((one) => [one.name, one.wordsOnly.size])).toEqual([[name, 0]]);
    const third = await openAfterCrash(folder);
    expect((await query(third, "from Users where Name != null order by Name")).ids).toEqual([
      "users/1",
      "users/2",
      "users/3",
      "users/4",
    ]);
    expect(third.queries.indexes.all().map((one) => one.name)).toEqual([name]);
  });

  it("with whole values stay if the leader has an index of words only", async () => {
    const database = await withPeople();
    const { indexes, administration } = database.queries;
    const { indexDefinitions } = database.state.keyspaces;
    const name = "Auto/Users/BySearch(Name)";
    const key = name.toLowerCase();
    await query(database, "from Users where search(Name, 'ann')");
    // The definition may be stored after the query has its result.
    await vi.waitFor(() => expect(indexDefinitions.get(key)).toBeDefined());
    const lean = indexDefinitions.get(key);
    await query(database, "from Users where search(Name, 'ann') and Name = 'Ann'");
    const whole = indexes.byName(name);
    expect(whole?.wordsOnly.size).toBe(0);
    await database.write((transaction) => transaction.putEntry(indexDefinitions, key, lean));
    administration.follow([key]);
    expect(indexes.byName(name)).toBe(whole);
    // In the opposite case the index is rebuilt.
    indexes.drop(name);
    await query(database, "from Users where search(Name, 'ann')");
    const stored = { ...lean, definition: (whole as AutomaticIndex).definition };
    await database.write((transaction) => transaction.putEntry(indexDefinitions, key, stored));
    administration.follow([key]);
    expect(indexes.all().map((one) => [one.name, one.wordsOnly.size])).toEqual([[name, 0]]);
  });

  it("of words only, queried by name: facets and orders have the values", async () => {
    const database = await withPeople();
    const name = "Auto/Users/BySearch(Name)";
    const { indexes } = database.queries;
    const requested = async (text: string) => {
      for (const { name } of indexes.all()) indexes.drop(name);
      await query(database, "from Users where search(Name, 'ann')");
      expect(indexes.byName(name)?.wordsOnly.size).toBe(1);
      return await query(database, text);
    };
    const facets = await requested(`from index '${name}' select facet(Name)`);
    expect(facets.rows[0]).toMatchObject({
      Values: [{ Range: "ann" }, { Range: "bob" }, { Range: "cid" }],
    });
    const searched = await requested(`from index '${name}' where search(Name, 'bob')`);
    expect(searched.ids).toEqual(["users/2"]);
    expect(indexes.byName(name)?.wordsOnly.size).toBe(1);
    const sorted = await requested(`from index '${name}' order by Name desc`);
    expect(sorted.ids).toEqual(["users/3", "users/2", "users/1"]);
    expect(sorted.outcome?.indexName).toBe(name);
  });

  it("stay dropped after a restart", async () => {
    const folder = temporaryFolder();
    const database = await withPeople(folder);
    await query(database, "from Users where Age > 25");
    database.queries.indexes.drop("Auto/Users/ByAge");
    await closeDatabasesButFolders(database);
    const again = await openAfterCrash(folder);
    expect(again.queries.indexes.all()).toEqual([]);
  });

  it("retain tombstones of deletions that they have not indexed", async () => {
    const database = await withPeople();
    await query(database, "from Users where Age > 25");
    const index = database.queries.indexes.byName("Auto/Users/ByAge");
    if (index === undefined) throw new Error("the query made an index");
    index.isPaused = true;
    await database.delete("users/1");
    await putAll(database, "Others", { "others/1": {} });
    await database.delete("others/1");
    expect(database.queries.administration.lastDeletionEtagNeeded).toBe(0);
    expect(await database.maintenance.cleanTombstones()).toBe(0);
    index.isPaused = false;
    expect((await query(database, "from Users where Age > 25")).ids).toEqual(["users/3"]);
    expect(await database.maintenance.cleanTombstones()).toBe(2);
  });
});

/** Waits until the database's own writes are durable. */
async function closeDatabasesButFolders(database: OpenDatabase): Promise<void> {
  await database.put("waits/1", {});
}

describe("a query that waits for an index", () => {
  it("keeps the process alive in a program that does nothing else", async () => {
    const environment = nodeEnvironment();
    const awaited: number[] = [];
    const clock: Clock = {
      ...environment.clock,
      setTimer: (ms, run, isAwaited) => {
        if (isAwaited === true) awaited.push(ms);
        return environment.clock.setTimer(ms, run, isAwaited);
      },
    };
    const database = await OpenDatabase.open({ ...environment, clock }, "waiting", null);
    await database.put("users/1", { Age: 1, "@metadata": { "@collection": "Users" } });
    database.queries.administration.setPaused(true);
    const wait = { waitForNonStale: true, timeoutMs: 77 };
    await database
      .query("from Users where Age = 1", wait, { add: () => null })
      .catch(() => undefined);
    expect(awaited).toContain(77);
    await database.close();
  });
});

describe("the etag of a result", () => {
  it("is unchanged while the collection is, and then skips the query", async () => {
    const database = await withPeople();
    const first = await query(database, "from Users where Age > 25");
    const unlessEtag = first.outcome?.resultEtag;
    await putAll(database, "Others", { "others/1": {} });
    const second = await query(database, "from Users where Age > 25", { unlessEtag });
    expect([second.outcome, second.rows]).toEqual([null, []]);
    await database.delete("users/1");
    const third = await query(database, "from Users where Age > 25", { unlessEtag });
    expect(third.ids).toEqual(["users/3"]);
  });

  it("changes with any document if the query reads other collections", async () => {
    const database = await withPeople();
    const text = "from Users where id() = 'users/1' include Boss";
    const first = await query(database, text);
    await putAll(database, "Others", { "others/1": {} });
    const again = await query(database, text, { unlessEtag: first.outcome?.resultEtag });
    expect(again.ids).toEqual(["users/1"]);
  });
});

describe("scripts in queries", () => {
  it("project, call declared functions and load", async () => {
    const database = await withPeople();
    const text =
      "declare function title(u, suffix) { return { T: u.Name + suffix, B: load(u.Boss)?.Name }; } " +
      "from Users as u where u.Age < 35 order by u.Age as double select title(u, $s)";
    const { rows } = await query(database, text, { parametersText: '{"s":"!"}' });
    expect(rows).toMatchObject([
      { T: "Bob!", B: null },
      { T: "Ann!", B: "Bob" },
    ]);
  });

  it("produce columns beside ordinary ones", async () => {
    const database = await withPeople();
    const text =
      "declare function twice(u) { return u.Age * 2; } from Users as u where id() = 'users/1' select u.Name as N, twice(u) as D";
    expect((await query(database, text)).rows).toMatchObject([{ N: "Ann", D: 60 }]);
  });

  it("filter by methods of values", async () => {
    const database = await withPeople();
    const text = "from Users as u filter u.Name.startsWith('A') and u.Age > 3";
    expect((await query(database, text)).ids).toEqual(["users/1"]);
  });

  it("filter by lengths, positions, other fields and unknown values", async () => {
    const database = await openDatabase();
    await putAll(database, "Things", {
      "things/1": { N: 1, M: 2, L: ["a"], R: "things/2" },
      "things/2": { N: 3, M: 2, L: ["b", "c"], R: null },
      "things/3": { N: 2, M: 2, L: "abc", R: "things/404" },
    });
    const found = async (filter: string) =>
      (await query(database, `from Things as t ${filter}`)).ids.map((id) => id.slice(7)).join("");
    expect(await found("filter t.L.length = 2")).toBe("2");
    expect(await found("filter t.L.length = 3")).toBe("3");
    expect(await found("filter t.L[0] = 'a'")).toBe("13");
    expect(await found("filter t.N > t.M")).toBe("2");
    expect(await found("filter t.N = t.M or t.N = 1")).toBe("13");
    expect(await found("filter unknown(t)")).toBe("");
    expect(await found("filter regex(id(t), '^THINGS') and t.N < 3")).toBe("13");
    expect(await found("load t.R as r filter r.N = 3")).toBe("1");
    expect(await found("load t.R as r filter r = null")).toBe("2");
  });

  it("return a document unchanged, and a modified one as a projection", async () => {
    const database = await withPeople();
    const answer = async (body: string) => {
      const text = `declare function f(u) { ${body} } from Users as u where id() = 'users/1' select f(u)`;
      const { rows } = await query(database, text);
      return rows[0] as { "@metadata": Record<string, unknown> };
    };
    expect(await answer("return u")).toMatchObject({
      ...people["users/1"],
      "@metadata": { "@collection": "Users", "@id": "users/1", "@index-score": 0 },
    });
    expect((await answer("return u"))["@metadata"]).not.toHaveProperty("@projection");
    expect(await answer("return load(u.Boss)")).toMatchObject({ Name: "Bob" });
    expect(await answer("u.Age = 1; return u")).toMatchObject({
      Age: 1,
      "@metadata": { "@collection": "Users", "@projection": true, "@id": "users/1" },
    });
  });

  it("load lists as rows and as columns, and reject several documents under one alias", async () => {
    const database = await openDatabase();
    await putAll(database, "Things", {
      "things/1": { N: 1, L: ["things/2", "things/3"] },
      "things/2": { N: 2 },
      "things/3": { N: 3 },
    });
    const list = await query(database, "from Things as t load t.L as l[] select l");
    expect(list.ids).toEqual(["things/2", "things/3"]);
    expect(list.outcome).toMatchObject({ totalResults: 4, skippedResults: 2 });
    const columns = await query(database, "from Things as t load t.L as l[] select l.N as X, t.N");
    expect(columns.rows).toMatchObject([
      { X: [2, 3], N: 1 },
      { X: [], N: 2 },
      { X: [], N: 3 },
    ]);
    for (const select of ["l.N as X", "l", "{ X: l.N }"]) {
      await expect(
        query(database, `from Things as t load t.L as l select ${select}`),
      ).rejects.toMatchObject({ code: "not-supported" });
    }
  });

  it("include documents that a script requests, and no result twice", async () => {
    const database = await withPeople();
    const included = async (text: string) => {
      const { outcome } = await query(database, text);
      return outcome?.includes.map(({ id }) => id);
    };
    expect(await included("from Users as u select { X: include(u.Boss) }")).toEqual(["users/2"]);
    expect(await included("from Users include Boss")).toEqual([]);
    expect(await included("from Users where id() = 'users/1' include Boss")).toEqual(["users/2"]);
    expect(await included("from Users select Boss include Boss")).toEqual(["users/2"]);
  });

  it("change nothing", async () => {
    const database = await withPeople();
    const text = "from Users as u select { X: put('x/1', { a: 1 }) }";
    await expect(query(database, text)).rejects.toMatchObject({ code: "invalid-operation" });
  });
});

describe("highlights", () => {
  it("are those of the stored fields of the entry that is shown, if others of its document are found", async () => {
    const database = await openDatabase();
    await putAll(database, "Docs", {
      "docs/1": { Lines: ["red fox", "old fox"] },
      "docs/2": { Lines: ["fox two"] },
    });
    const Maps = ["map('Docs', d => d.Lines.map(l => ({ Text: l })))"];
    const Fields = { Text: { Storage: "Yes", Indexing: "Search" } };
    await database.queries.administration.deploy([{ Name: "I", Maps, Fields }], true);
    const text = "from index 'I' where search(Text, 'fox') include highlight(Text, 100, 2)";
    const { ids, outcome } = await query(database, text);
    expect(ids).toEqual(["docs/1", "docs/2"]);
    const found = outcome?.highlightings?.get("Text");
    expect(found?.get("docs/1")?.join()).toContain("fox");
    expect(found?.get("docs/2")?.join()).toContain("two");
  });
});
