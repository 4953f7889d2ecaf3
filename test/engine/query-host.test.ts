import { afterEach, describe, expect, it } from "vitest";
import type { Database } from "../../engine/engine.ts";
import {
  closeDatabases,
  openAfterCrash,
  openDatabase,
  putAll,
  query,
  temporaryFolder,
} from "../support/open-database.ts";

afterEach(closeDatabases);

const people = {
  "users/1": { Name: "Ann", Age: 30, Boss: "users/2" },
  "users/2": { Name: "Bob", Age: 20 },
  "users/3": { Name: "Cid", Age: 40.5, Boss: "users/9" },
};

async function withPeople(folder?: string): Promise<Database> {
  const database = await openDatabase(folder);
  await putAll(database, "Users", people);
  return database;
}

describe("queries of a collection", () => {
  it("give its documents in the order of their last writes, and count them", async () => {
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

  it("see one moment, whatever is written while rows are given", async () => {
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

  it("are known again after a crash, and built anew", async () => {
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

  it("that were dropped stay so after a restart", async () => {
    const folder = temporaryFolder();
    const database = await withPeople(folder);
    await query(database, "from Users where Age > 25");
    database.queries.indexes.drop("Auto/Users/ByAge");
    await closeDatabasesButFolders(database);
    const again = await openAfterCrash(folder);
    expect(again.queries.indexes.all()).toEqual([]);
  });

  it("hold the markers of deletions that they have not taken in", async () => {
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

/** Waits until what the database writes by itself is durable. */
async function closeDatabasesButFolders(database: Database): Promise<void> {
  await database.put("waits/1", {});
}

describe("the etag of an answer", () => {
  it("stays while nothing of the collection changes, and then stops the query", async () => {
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

  it("changes with any document when the query reads others than its own", async () => {
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

  it("make columns beside plain ones", async () => {
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

  it("change nothing", async () => {
    const database = await withPeople();
    const text = "from Users as u select { X: put('x/1', { a: 1 }) }";
    await expect(query(database, text)).rejects.toMatchObject({ code: "invalid-operation" });
  });
});
