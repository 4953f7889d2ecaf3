import { afterEach, describe, expect, it } from "vitest";
import type { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { StaticIndex } from "../../../../engine/indexing/static-index.ts";
import { putCompareExchange } from "../../../../engine/writes/compare-exchange.ts";
import {
  closeDatabases,
  openDatabase,
  putAll,
  type QueryReply,
  query,
} from "../../../support/open-database.ts";

afterEach(closeDatabases);

const users = {
  "users/1": { Name: "Ann Lee", Age: 30, City: "cities/1", Tags: ["A", "b"] },
  "users/2": { Name: "Bob", Age: 20, City: "cities/2", Tags: [] },
  "Users/3": { Name: "ann", Age: 2.5, City: "CITIES/1" },
};
const cities = { "cities/1": { Name: "Rome" }, "cities/2": { Name: "Oslo" } };

async function withDocuments(folder?: string): Promise<OpenDatabase> {
  const database = await openDatabase(folder);
  await putAll(database, "Users", users);
  await putAll(database, "Cities", cities);
  return database;
}

async function deploy(database: OpenDatabase, ...definitions: Record<string, unknown>[]) {
  return await database.queries.administration.deploy(definitions, true);
}

async function settled(database: OpenDatabase, text: string): Promise<QueryReply> {
  return await query(database, text, { waitForNonStale: true });
}

function staticIndex(database: OpenDatabase, name: string): StaticIndex {
  const index = database.queries.indexes.byName(name);
  if (index instanceof StaticIndex) return index;
  throw new Error(`no index ${name}`);
}

const without = (rows: readonly Record<string, unknown>[]) =>
  rows.map(({ "@metadata": _, ...rest }) => rest);

describe("an index that maps", () => {
  it("answers from the computed fields, ignoring case, by ranges and in order", async () => {
    const database = await withDocuments();
    await deploy(database, {
      Name: "Users/ByName",
      Maps: ["map('users', u => ({ Name: u.Name, Double: u.Age * 2, Tags: u.Tags }))"],
    });
    const ids = async (text: string) => (await settled(database, text)).ids;
    expect(await ids("from index 'users/byname' where Name = 'ANN'")).toEqual(["Users/3"]);
    expect(await ids("from index 'Users/ByName' where Double > 40")).toEqual(["users/1"]);
    expect(await ids("from index 'Users/ByName' where Tags = 'B'")).toEqual(["users/1"]);
    expect(await ids("from index 'Users/ByName' order by Double as double desc")).toEqual([
      "users/1",
      "users/2",
      "Users/3",
    ]);
    expect(await ids("from index 'Users/ByName' where exact(Name = 'Bob')")).toEqual([]);
    expect(await ids("from index 'Users/ByName' where exact(Name = 'bob')")).toEqual(["users/2"]);
  });

  it("finds objects by equality of the whole value", async () => {
    const database = await openDatabase();
    await putAll(database, "Users", {
      "users/1": { Home: { Street: "A", No: 1.5 }, Others: [{ No: 1 }, { No: 2 }] },
      "users/2": { Home: { Street: "a", No: 1.5 }, Others: [] },
    });
    await deploy(database, {
      Name: "I",
      Maps: ["map('Users', u => ({ Home: u.Home, Others: u.Others }))"],
    });
    const found = async (condition: string, p: unknown) => {
      const parametersText = JSON.stringify({ p });
      const text = `from index 'I' where ${condition}`;
      return (await query(database, text, { waitForNonStale: true, parametersText })).ids;
    };
    expect(await found("Home = $p", { Street: "A", No: 1.5 })).toEqual(["users/1"]);
    expect(await found("Home = $p", { No: 1.5, Street: "A" })).toEqual([]);
    expect(await found("Home != $p", { Street: "A", No: 1.5 })).toEqual(["users/2"]);
    expect(await found("Home in ($p)", [{ Street: "a", No: 1.5 }])).toEqual(["users/2"]);
    expect(await found("Others = $p", { No: 2 })).toEqual(["users/1"]);
    expect(staticIndex(database, "I").hasArrays("Others")).toBe(true);
    expect(staticIndex(database, "I").hasArrays("Home")).toBe(false);
  });

  it("keeps the position of a document whose mapped values are unchanged", async () => {
    const database = await withDocuments();
    await deploy(database, {
      Name: "I",
      Maps: ["map('Users', u => ({ Name: u.Name, Tags: u.Tags }))"],
    });
    const texts = ["from index 'I' where Name != 'x'", "from Users where Name != 'x'"];
    const all = ["users/1", "users/2", "Users/3"];
    for (const text of texts) expect((await settled(database, text)).ids).toEqual(all);
    await putAll(database, "Users", { "users/1": { ...users["users/1"], Age: 31 } });
    for (const text of texts) {
      const { ids, rows } = await settled(database, text);
      expect(ids).toEqual(all);
      expect(rows[0]).toMatchObject({ Age: 31 });
    }
    // One value and a list with this value have the same terms, but differ.
    expect(staticIndex(database, "I").hasArrays("Tags")).toBe(true);
    await putAll(database, "Users", { "users/1": { Name: "Ann", Tags: ["b"] }, "users/2": {} });
    await settled(database, texts[0] as string);
    expect(staticIndex(database, "I").hasArrays("Tags")).toBe(true);
    await putAll(database, "Users", { "users/1": { Name: "Ann", Tags: "b" } });
    await settled(database, texts[0] as string);
    expect(staticIndex(database, "I").hasArrays("Tags")).toBe(false);
  });

  it("ranks boosted entries first, boosted as a whole or in one field", async () => {
    const database = await openDatabase();
    await putAll(database, "Users", {
      "users/1": { Name: "ann", Weight: 1 },
      "users/2": { Name: "ann", Weight: 3 },
      "users/3": { Name: "ann", Weight: 2 },
    });
    await deploy(
      database,
      { Name: "Whole", Maps: ["map('Users', u => boost({ Name: u.Name, Age: 1 }, u.Weight))"] },
      { Name: "Field", Maps: ["map('Users', u => ({ Name: boost(u.Name, u.Weight), Age: 1 }))"] },
      { Name: "Wrong", Maps: ["map('Users', u => ({ Name: boost(u.Name) }))"] },
    );
    const ids = async (text: string) => (await settled(database, text)).ids;
    const byWeight = ["users/2", "users/3", "users/1"];
    expect(await ids("from index 'Whole' where Name = 'ann'")).toEqual(byWeight);
    expect(await ids("from index 'Whole' where Age = 1")).toEqual(byWeight);
    expect(await ids("from index 'Whole'")).toEqual(byWeight);
    expect(await ids("from index 'Whole' limit 2")).toEqual(byWeight.slice(0, 2));
    expect(await ids("from index 'Field' where Name = 'ann'")).toEqual(byWeight);
    expect(await ids("from index 'Field' where Age = 1 order by score()")).toEqual([
      "users/1",
      "users/2",
      "users/3",
    ]);
    // RavenDB 7.2.7 also reverses the order here.
    await putAll(database, "Users", { "users/4": { Name: "bob", Weight: 2 } });
    await putAll(database, "Users", { "users/5": { Name: "cid", Weight: 1 } });
    const firstAt = async (boost: number) => {
      const condition = `Name = 'bob' or boost(Name = 'cid', ${boost})`;
      return (await ids(`from index 'Whole' where ${condition} order by score()`))[0];
    };
    expect(await firstAt(1.1555)).toBe("users/4");
    expect(await firstAt(1.1557)).toBe("users/5");
    await putAll(database, "Users", { "users/2": { Name: "ann", Weight: 0.5 } });
    expect(await ids("from index 'Field' where Name = 'ann'")).toEqual([
      "users/3",
      "users/1",
      "users/2",
    ]);
    // It has failed, so there is nothing to wait for.
    expect(await database.queries.indexes.waitForNonStale("Wrong", 10_000)).toBe(true);
    expect(staticIndex(database, "Wrong").errors.mapErrors).toBeGreaterThan(0);
  });

  it("reports whether some entry has a list in a field", async () => {
    const database = await openDatabase();
    await deploy(database, { Name: "I", Maps: ["map('Users', u => ({ Tags: u.Tags }))"] });
    const hasLists = async () => {
      await settled(database, "from index 'I'");
      return staticIndex(database, "I").hasArrays("Tags");
    };
    await putAll(database, "Users", { "users/1": { Tags: "a" } });
    expect(await hasLists()).toBe(false);
    await putAll(database, "Users", { "users/1": { Tags: ["a"] }, "users/2": { Tags: [] } });
    expect(await hasLists()).toBe(true);
    await putAll(database, "Users", { "users/1": { Tags: "a" } });
    expect(await hasLists()).toBe(true);
    await database.delete("users/2");
    expect(await hasLists()).toBe(false);
  });

  it("is kept in step with writes and deletions", async () => {
    const database = await withDocuments();
    await deploy(database, { Name: "I", Maps: ["map('Users', u => ({ Age: u.Age }))"] });
    const all = "from index 'I' where Age = 20";
    expect((await settled(database, all)).ids).toEqual(["users/2"]);
    await putAll(database, "Users", { "users/4": { Age: 20 }, "users/2": { Age: 21 } });
    expect(staticIndex(database, "I").isStale).toBe(true);
    expect((await settled(database, all)).ids).toEqual(["users/4"]);
    await database.delete("users/4");
    expect((await settled(database, all)).ids).toEqual([]);
  });

  it("may have several entries per document, which are one row when whole documents are returned", async () => {
    const database = await withDocuments();
    await deploy(database, {
      Name: "I",
      Maps: ["map('Users', u => (u.Tags || []).map(t => ({ Tag: t })))"],
    });
    const { ids, outcome } = await settled(database, "from index 'I'");
    expect(ids).toEqual(["users/1"]);
    expect(outcome).toMatchObject({ totalResults: 2, skippedResults: 1 });
  });

  it("may have several maps, and one over all documents", async () => {
    const database = await withDocuments();
    await deploy(
      database,
      {
        Name: "Two",
        Maps: ["map('Users', u => ({ Name: u.Name }))", "map('Cities', c => ({ Name: c.Name }))"],
      },
      { Name: "All", Maps: ["map('@all_docs', d => ({ C: getMetadata(d)['@collection'] }))"] },
    );
    const two = await settled(database, "from index 'Two' where Name in ('bob', 'oslo')");
    expect(two.ids).toEqual(["users/2", "cities/2"]);
    const all = await settled(database, "from index 'All' where C = 'cities'");
    expect(all.ids).toEqual(["cities/1", "cities/2"]);
  });

  it("has no entry if the map returns none", async () => {
    const database = await withDocuments();
    await deploy(database, {
      Name: "I",
      Maps: ["map('Users', u => u.Age > 10 ? { Missing: u.Missing, Age: u.Age } : null)"],
    });
    expect((await settled(database, "from index 'I'")).ids).toEqual(["users/1", "users/2"]);
    expect((await settled(database, "from index 'I' where exists(Missing)")).ids).toEqual([]);
  });

  // As measured on RavenDB 7.2.7.
  it("has null for a missing field if a setting requires it", async () => {
    const database = await openDatabase();
    await putAll(database, "Cs", {
      "c/1": { N: "a" },
      "c/2": { N: "b", U: null },
      "c/3": { U: 5 },
    });
    const Maps = ["map('Cs', c => ({ N: c.N, U: c.U, V: c.V }))"];
    const key = "Indexing.IndexMissingFieldsAsNull";
    await deploy(
      database,
      { Name: "Plain", Maps },
      { Name: "Nulls", Maps, Configuration: { [key]: "true" } },
    );
    await database.changeSettings((record) => ({ ...record, Settings: { [key]: "True" } }));
    await deploy(
      database,
      { Name: "ByDatabase", Maps },
      { Name: "Not", Maps, Configuration: { [key]: "false" } },
      {
        Name: "Reduced",
        Maps,
        Reduce: "groupBy(c => c.N).aggregate(g => ({ N: g.key, U: g.values[0].U, V: 1 }))",
      },
    );
    const ids = async (name: string, where: string) =>
      (await settled(database, `from index '${name}' where ${where}`)).ids;
    for (const name of ["Plain", "Not"]) {
      expect(await ids(name, "U = null"), name).toEqual(["c/2"]);
      expect(await ids(name, "exists(V)"), name).toEqual([]);
    }
    for (const name of ["Nulls", "ByDatabase"]) {
      expect(await ids(name, "U = null"), name).toEqual(["c/1", "c/2"]);
      expect(await ids(name, "U != null"), name).toEqual(["c/3"]);
      expect(await ids(name, "V = null and N = null"), name).toEqual(["c/3"]);
    }
    const { rows } = await settled(database, "from index 'Reduced' where U = null");
    expect(without(rows).map(({ N }) => N)).toEqual(["a", "b"]);
  });

  it("calls functions of additional sources", async () => {
    const database = await withDocuments();
    await deploy(database, {
      Name: "I",
      Maps: ["map('Users', u => ({ N: initial(u.Name) }))"],
      AdditionalSources: { "f.js": "function initial(text) { return text.charAt(0); }" },
    });
    expect((await settled(database, "from index 'I' where N = 'b'")).ids).toEqual(["users/2"]);
  });
});

describe("fields of an index", () => {
  const definition = {
    Name: "I",
    Maps: ["map('Users', u => ({ Words: u.Name, Plain: u.Name, Same: u.Name, Age: u.Age }))"],
    Fields: {
      Words: { Indexing: "Search", Analyzer: "StandardAnalyzer" },
      Same: { Indexing: "Exact", Storage: "Yes" },
      Age: { Indexing: "No", Storage: "Yes" },
    },
  };

  it("are indexed according to their options", async () => {
    const database = await withDocuments();
    await deploy(database, definition);
    const ids = async (text: string) => (await settled(database, `from index 'I' ${text}`)).ids;
    expect(await ids("where search(Words, 'lee')")).toEqual(["users/1"]);
    expect(await ids("where Words = 'ann'")).toEqual(["users/1", "Users/3"]);
    expect(await ids("where search(Plain, 'lee')")).toEqual([]);
    expect(await ids("where Same = 'Bob'")).toEqual(["users/2"]);
    expect(await ids("where Same = 'bob'")).toEqual([]);
    expect(await ids("where Age = 20")).toEqual([]);
  });

  it("are projected from the index if stored, numbers as texts, without reading the document", async () => {
    const database = await withDocuments();
    await deploy(database, definition);
    const { rows } = await settled(database, "from index 'I' where Same = 'ann' select Same, Age");
    expect(rows).toEqual([
      {
        Same: "ann",
        Age: "2.5",
        "@metadata": { "@projection": true, "@change-vector": null, "@id": "users/3" },
      },
    ]);
    const mixed = await settled(
      database,
      "from index 'I' where Same = 'ann' select Age, City, Nope",
    );
    expect(without(mixed.rows)).toEqual([{ Age: "2.5", City: "CITIES/1" }]);
    const script = "from index 'I' as i where i.Same = 'ann' select { a: i.Age + 1, c: i.City }";
    expect(without((await settled(database, script)).rows)).toEqual([{ a: 3.5, c: "CITIES/1" }]);
  });

  it("are rejected by name if unknown, unless a map computes field names", async () => {
    const database = await withDocuments();
    await deploy(database, definition, {
      Name: "Dynamic",
      Maps: [
        "map('Users', u => ({ _: (u.Tags || []).map(t => createField('T_' + t, 1, { storage: true })), A: { $name: 'Years', $value: u.Age } }))",
      ],
    });
    for (const text of ["where Nope = 1", "order by Nope", "where Words = 'x' and Nope = 1"]) {
      await expect(settled(database, `from index 'I' ${text}`)).rejects.toMatchObject({
        code: "invalid-argument",
        message: `The field 'Nope' is not indexed in 'I', cannot query/sort on fields that are not indexed in query: from index 'I' ${text}`,
      });
    }
    const ids = async (text: string) =>
      (await settled(database, `from index 'Dynamic' ${text}`)).ids;
    expect(await ids("where Nope = 1")).toEqual([]);
    expect(await ids("where T_A = 1")).toEqual(["users/1"]);
    expect(await ids("where Years = 20")).toEqual(["users/2"]);
    const { rows } = await settled(database, "from index 'Dynamic' where T_A = 1 select T_A");
    expect(without(rows)).toEqual([{ T_A: "1" }]);
  });
});

describe("a query that names its index", () => {
  it("has no explanation", async () => {
    const database = await withDocuments();
    await deploy(database, { Name: "I", Maps: ["map('Users', u => ({ Age: u.Age }))"] });
    await expect(database.queries.explain("from index 'I'", {})).rejects.toThrow(
      "Explain can only work on dynamic indexes",
    );
  });
});

describe("an index that loads", () => {
  const definition = {
    Name: "I",
    Maps: ["map('Users', u => ({ City: load(u.City, 'Cities').Name }))"],
  };
  const find = async (database: OpenDatabase, name: string) =>
    (await settled(database, `from index 'I' where City = '${name}'`)).ids;

  it("maps a document again when its loaded document is changed, deleted or created", async () => {
    const database = await withDocuments();
    await deploy(database, definition);
    expect(await find(database, "rome")).toEqual(["users/1", "Users/3"]);
    await putAll(database, "Cities", { "cities/1": { Name: "Roma" } });
    expect(staticIndex(database, "I").isStale).toBe(true);
    expect(await find(database, "rome")).toEqual([]);
    expect(await find(database, "roma")).toEqual(["users/1", "Users/3"]);
    await database.delete("cities/1");
    expect(await find(database, "roma")).toEqual([]);
    await putAll(database, "Cities", { "cities/1": { Name: "Milan" } });
    expect(await find(database, "milan")).toEqual(["users/1", "Users/3"]);
  });

  it("does not follow documents loaded without tracking", async () => {
    const database = await withDocuments();
    const map = "map('Users', u => ({ City: noTracking.load(u.City, 'Cities').Name }))";
    await deploy(database, { ...definition, Maps: [map] });
    expect(await find(database, "oslo")).toEqual(["users/2"]);
    await putAll(database, "Cities", { "cities/2": { Name: "Bergen" } });
    expect(await find(database, "oslo")).toEqual(["users/2"]);
  });

  it("maps a document again when a loaded compare-exchange value changes", async () => {
    const database = await withDocuments();
    await deploy(database, {
      Name: "I",
      Maps: ["map('Users', u => ({ City: loadCompareExchangeValue(u.Name) }))"],
    });
    expect(await find(database, "x")).toEqual([]);
    await database.write((transaction) =>
      putCompareExchange(transaction, "Bob", 0, '{"Object":"x"}'),
    );
    expect(staticIndex(database, "I").isStale).toBe(true);
    expect(await find(database, "x")).toEqual(["users/2"]);
  });
});

describe("an index that reduces", () => {
  const definition = {
    Name: "R",
    Maps: ["map('Users', u => ({ City: u.City.toLowerCase(), Count: 1, Age: u.Age }))"],
    Reduce:
      "groupBy(x => x.City).aggregate(g => ({ City: g.key, Count: g.values.reduce((n, v) => n + v.Count, 0), Age: g.values.reduce((n, v) => n + v.Age, 0) }))",
  };
  const rowsOf = async (database: OpenDatabase, text: string) =>
    without((await settled(database, `from index 'R' ${text}`)).rows);

  it("has one object per key, for conditions, order and projections", async () => {
    const database = await withDocuments();
    await deploy(database, definition);
    expect(await rowsOf(database, "order by City")).toEqual([
      { City: "cities/1", Count: 2, Age: 32.5 },
      { City: "cities/2", Count: 1, Age: 20 },
    ]);
    expect(await rowsOf(database, "where Count > 1 select Age")).toEqual([{ Age: 32.5 }]);
    expect(await rowsOf(database, "as r where r.Age < 30 select { c: r.City }")).toEqual([
      { c: "cities/2" },
    ]);
    const { rows } = await settled(database, "from index 'R' where Count > 1");
    expect(rows[0]?.["@metadata"]).toEqual({ "@change-vector": null });
  });

  it("does not reduce again when a document changes outside of the mapped fields", async () => {
    const database = await withDocuments();
    await deploy(database, definition);
    const before = await rowsOf(database, "order by City");
    const { errors } = staticIndex(database, "R");
    const { mapAttempts, reduceAttempts } = errors;
    await putAll(database, "Users", { "users/1": { ...users["users/1"], Name: "Ann" } });
    expect(await rowsOf(database, "order by City")).toEqual(before);
    expect(errors).toMatchObject({ mapAttempts: mapAttempts + 1, reduceAttempts });
    await putAll(database, "Users", { "users/1": { ...users["users/1"], Age: 31 } });
    expect((await rowsOf(database, "order by City"))[0]).toMatchObject({ Age: 33.5 });
    expect(errors.reduceAttempts).toBeGreaterThan(reduceAttempts);
  });

  it("removes changed and deleted documents from a key", async () => {
    const database = await withDocuments();
    await deploy(database, definition);
    await settled(database, "from index 'R'");
    await putAll(database, "Users", { "users/1": { Age: 1, City: "cities/2" } });
    await database.delete("Users/3");
    expect(await rowsOf(database, "")).toEqual([{ City: "cities/2", Count: 2, Age: 21 }]);
  });

  it("reduces many values of one key in pages", async () => {
    const database = await openDatabase();
    const many = Object.fromEntries(
      Array.from({ length: 2500 }, (_, i) => [`users/${i}`, { City: "C", Age: 1 }]),
    );
    await putAll(database, "Users", many);
    await deploy(database, definition);
    expect(await rowsOf(database, "")).toEqual([{ City: "c", Count: 2500, Age: 2500 }]);
    await database.delete("users/7");
    await putAll(database, "Users", { "users/2000": { City: "C", Age: 11 } });
    expect(await rowsOf(database, "")).toEqual([{ City: "c", Count: 2499, Age: 2509 }]);
  });
});
