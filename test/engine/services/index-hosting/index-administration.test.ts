import { afterEach, describe, expect, it } from "vitest";
import type { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import {
  closeDatabases,
  openAfterCrash,
  openDatabase,
  putAll,
  query,
  temporaryFolder,
} from "../../../support/open-database.ts";

afterEach(closeDatabases);

const byName = { Name: "I", Maps: ["map('Users', u => ({ Name: u.Name }))"] };
const byAge = { Name: "I", Maps: ["map('Users', u => ({ Age: u.Age }))"] };

async function withUsers(folder?: string): Promise<OpenDatabase> {
  const database = await openDatabase(folder);
  await putAll(database, "Users", {
    "users/1": { Name: "Ann", Age: 30 },
    "users/2": { Name: "Bob", Age: 20 },
  });
  return database;
}

const deploy = (database: OpenDatabase, ...definitions: Record<string, unknown>[]) =>
  database.queries.administration.deploy(definitions, true);

const names = (database: OpenDatabase) => database.queries.indexes.all().map(({ name }) => name);

const idsOf = async (database: OpenDatabase, text: string) => (await query(database, text)).ids;

const failureOf = async (work: Promise<unknown>) =>
  await work.then(
    () => "none",
    ({ code, message }: { code: string; message: string }) => `${code}: ${message}`,
  );

describe("a deployed index", () => {
  it("survives a crash, with its options, and is rebuilt", async () => {
    const folder = temporaryFolder();
    const database = await withUsers(folder);
    await deploy(database, { ...byName, Priority: "High", LockMode: "LockedError" });
    const again = await openAfterCrash(folder);
    const index = again.queries.indexes.byName("i");
    expect([index?.name, index?.priority, index?.lockMode]).toEqual(["I", "High", "LockedError"]);
    expect(await idsOf(again, "from index 'I' where Name = 'bob'")).toEqual(["users/2"]);
  });

  it("keeps its creation time over a restart, until it is reset", async () => {
    const folder = temporaryFolder();
    const database = await withUsers(folder);
    await deploy(database, byName);
    await query(database, "from Users where Age = 20");
    // An automatic index is on disk once a later write is.
    await putAll(database, "Users", { "users/3": { Name: "Cid", Age: 40 } });
    const times = (one: OpenDatabase) =>
      one.queries.indexes.all().map((index) => index.statistics().createdAtMicros);
    const created = times(database);
    expect(created.length).toBe(2);
    expect(times(await openAfterCrash(folder))).toEqual(created);
    for (const name of names(database)) database.queries.indexes.reset(name);
    const renewed = times(database);
    await putAll(database, "Users", { "users/4": { Name: "Dan", Age: 50 } });
    for (const [i, micros] of renewed.entries()) expect(micros).toBeGreaterThan(Number(created[i]));
    expect(times(await openAfterCrash(folder))).toEqual(renewed);
  });

  it("is deployed completely or not at all", async () => {
    const database = await withUsers();
    const bad = { Name: "Bad", Maps: ["map('Users', u => ({"] };
    expect(await failureOf(deploy(database, byName, bad))).toMatch(/^index-compilation/);
    expect(names(database)).toEqual([]);
  });

  it("is rejected with the reason if its definition is invalid", async () => {
    const database = await openDatabase();
    const refused = (definition: Record<string, unknown>) =>
      failureOf(deploy(database, definition));
    expect(await refused({ ...byName, Name: "" })).toBe(
      "invalid-argument: Index name cannot be empty!",
    );
    expect(await refused({ ...byName, Name: "Auto/x" })).toMatch(/^invalid-argument/);
    expect(await refused({ ...byName, Name: "a b" })).toMatch(/^invalid-argument/);
    expect(await refused({ Name: "I", Maps: [] })).toBe(
      "invalid-argument: Index must have a 'Maps' fields",
    );
    expect(await refused({ ...byName, Fields: { Name: { Indexing: "Nope" } } })).toMatch(
      /^invalid-format/,
    );
    expect(await refused({ ...byName, Fields: { Name: { Analyzer: "Nope" } } })).toBe(
      "index-compilation: Failed to compile index 'I': Cannot find analyzer type 'Nope' for field: Name",
    );
    expect(await refused({ Name: "I", Maps: ["map('X', p => { bad( })"] })).toMatch(
      /^index-compilation: Failed to compile index 'I': Unexpected token '}' \(<anonymous>:1:22\)/,
    );
    expect(await refused({ Name: "I", Maps: ["map('X', p => ({ "] })).toMatch(
      /Unexpected end of input \(<anonymous>:1:18\)/,
    );
    expect(
      await refused({ Name: "I", Maps: ["from u in docs.Users select new { X = v.Name }"] }),
    ).toBe(
      "index-compilation: Failed to compile index 'I': (1,39): The name 'v' does not exist in the current context",
    );
    const vector = { Name: { Vector: { SourceEmbeddingType: "Text" } } };
    expect(await refused({ ...byName, Fields: vector })).toMatch(/^not-supported/);
    const strategy = { Name: { Spatial: { Strategy: "Nope" } } };
    expect(await refused({ ...byName, Fields: strategy })).toBe(
      "invalid-format: Could not convert Sparrow.Json.LazyStringValue ('Nope') to Raven.Client.Documents.Indexes.Spatial.SpatialSearchStrategy",
    );
    const bounds = { Name: { Spatial: { Type: "Cartesian", MinX: 5, MaxX: 5 } } };
    expect(await refused({ ...byName, Fields: bounds })).toMatch(/^invalid-argument/);
    expect(names(database)).toEqual([]);
  });

  it("cannot be in C# where only JavaScript may be deployed", async () => {
    const database = await openDatabase();
    const definition = { Name: "C", Maps: ["docs.Users.Select(u => new { u.Name })"] };
    const refused = database.queries.administration.deploy([definition], false);
    expect(await failureOf(refused)).toMatch(/^access-refused: Index C is a C# index/);
  });

  it("cannot have the name of another index in a different letter case", async () => {
    const database = await openDatabase();
    await deploy(database, byName);
    expect(await failureOf(deploy(database, { ...byName, Name: "i" }))).toMatch(/^index-creation/);
  });
});

describe("a redeployed index", () => {
  it("is unchanged if the definition is the same, except for its options", async () => {
    const database = await withUsers();
    await deploy(database, byName);
    const index = database.queries.indexes.byName("I");
    expect(database.queries.administration.hasChanged(byName)).toBe(false);
    expect(database.queries.administration.hasChanged(byAge)).toBe(true);
    await deploy(database, { ...byName, Priority: "Low" });
    expect(database.queries.indexes.byName("I")).toBe(index);
    expect(index?.priority).toBe("Low");
    expect(names(database)).toEqual(["I"]);
  });

  it("is built beside the old one, which answers until the new one has caught up", async () => {
    const folder = temporaryFolder();
    const database = await withUsers(folder);
    await deploy(database, byName);
    await idsOf(database, "from index 'I'");
    database.queries.administration.setPaused(true);
    await deploy(database, byAge);
    expect(names(database)).toEqual(["I", "ReplacementOf/I"]);
    expect(await idsOf(database, "from index 'I' where Name = 'ann'")).toEqual(["users/1"]);
    const between = await openAfterCrash(folder);
    await database.queries.indexes.waitForNonStale("I", 1);
    database.queries.administration.setPaused(false);
    await database.queries.indexes.waitForNonStale("ReplacementOf/I", 5000);
    expect(names(database)).toEqual(["I"]);
    expect(await idsOf(database, "from index 'I' where Age = 20")).toEqual(["users/2"]);
    // Writes become durable in order, and this one follows the swap of the names.
    await putAll(database, "Users", { "users/3": {} });
    const after = await openAfterCrash(folder);
    expect(names(after)).toEqual(["I"]);
    expect(await idsOf(after, "from index 'I' where Age = 20")).toEqual(["users/2"]);
    await between.queries.indexes.waitForNonStale("ReplacementOf/I", 5000);
    expect(names(between)).toEqual(["I"]);
    expect(await idsOf(between, "from index 'I' where Age = 20")).toEqual(["users/2"]);
  });

  it("replaces the old index immediately on request", async () => {
    const database = await withUsers();
    await deploy(database, byName);
    database.queries.administration.setPaused(true);
    const replace = (name: string) => database.queries.administration.replace(name);
    expect(await failureOf(replace("I"))).toMatch(/^index-missing: Could not find side-by-side/);
    expect(await failureOf(replace("None"))).toMatch(/^index-missing: Could not find 'None' and/);
    await deploy(database, byAge);
    await replace("i");
    expect(names(database)).toEqual(["I"]);
    expect(database.queries.administration.hasChanged(byAge)).toBe(false);
  });

  it("drops its replacement if the old definition is deployed again", async () => {
    const database = await withUsers();
    await deploy(database, byName);
    await idsOf(database, "from index 'I'");
    database.queries.administration.setPaused(true);
    await deploy(database, byAge);
    await deploy(database, byName);
    expect(names(database)).toEqual(["I"]);
  });

  it("is ignored or rejected if the index is locked, and so is its deletion", async () => {
    const database = await withUsers();
    await deploy(database, { ...byName, LockMode: "LockedIgnore" });
    await deploy(database, byAge);
    expect(await database.queries.administration.delete("I")).toBe(true);
    expect(
      database.queries.administration.hasChanged({ ...byName, LockMode: "LockedIgnore" }),
    ).toBe(false);
    const index = database.queries.indexes.byName("I");
    if (index !== undefined) index.lockMode = "LockedError";
    expect(await failureOf(deploy(database, byAge))).toMatch(/^index-creation/);
    expect(await failureOf(database.queries.administration.delete("I"))).toMatch(/^index-deletion/);
    expect(names(database)).toEqual(["I"]);
  });
});

describe("an index", () => {
  it("is deleted permanently, together with its replacement", async () => {
    const folder = temporaryFolder();
    const database = await withUsers(folder);
    await deploy(database, byName);
    await idsOf(database, "from index 'I'");
    database.queries.administration.setPaused(true);
    await deploy(database, byAge);
    expect(await database.queries.administration.delete("i")).toBe(true);
    expect(await database.queries.administration.delete("i")).toBe(false);
    expect(names(database)).toEqual([]);
    expect(names(await openAfterCrash(folder))).toEqual([]);
  });

  it("is rebuilt after a reset", async () => {
    const database = await withUsers();
    await deploy(database, { ...byName, Priority: "High" });
    await idsOf(database, "from index 'I'");
    const index = database.queries.indexes.byName("I");
    expect(database.queries.indexes.reset("I")).toBe(true);
    expect(database.queries.indexes.byName("I")).not.toBe(index);
    expect(database.queries.indexes.byName("I")?.priority).toBe("High");
    expect(await idsOf(database, "from index 'I'")).toHaveLength(2);
  });

  it("is idle while it is disabled, also after a restart", async () => {
    const folder = temporaryFolder();
    const database = await withUsers(folder);
    await deploy(database, { ...byName, State: "Disabled" });
    const again = await openAfterCrash(folder);
    await again.queries.indexes.waitForNonStale("I", 20);
    const index = again.queries.indexes.byName("I");
    expect([index?.isStale, index?.statistics().state]).toEqual([true, "Disabled"]);
  });

  it("keeps tombstones that it has not read yet", async () => {
    const database = await withUsers();
    await deploy(database, byName);
    await idsOf(database, "from index 'I'");
    database.queries.administration.setPaused(true);
    await database.delete("users/1");
    expect(database.queries.administration.lastDeletionEtagNeeded).toBeLessThan(3);
    database.queries.administration.setPaused(false);
    await idsOf(database, "from index 'I'");
    expect(database.queries.administration.lastDeletionEtagNeeded).toBe(Number.MAX_SAFE_INTEGER);
  });
});

describe("errors of an index", () => {
  const failing = {
    Name: "E",
    Maps: ["map('Users', u => { if (u.Age === 20) throw 'too young'; return { Name: u.Name }; })"],
  };

  it("are stored for the document, which has no entry; other documents have entries", async () => {
    const database = await withUsers();
    await putAll(database, "Users", { "users/3": { Name: "Cid", Age: 1 } });
    await deploy(database, failing);
    expect(await idsOf(database, "from index 'E'")).toEqual(["users/1", "users/3"]);
    const index = database.queries.indexes.byName("E") as never as {
      errors: { list: { document: string; action: string; message: string }[] };
    };
    expect(index.errors.list).toEqual([
      expect.objectContaining({
        document: "users/2",
        action: "Map",
        message: expect.stringContaining("Failed to execute mapping function on users/2"),
      }),
    ]);
    await putAll(database, "Users", { "users/2": { Name: "Bob", Age: 21 } });
    expect(await idsOf(database, "from index 'E' where Name = 'bob'")).toEqual(["users/2"]);
  });

  it("make the index reject queries if all documents fail, until it is rebuilt", async () => {
    const database = await withUsers();
    await deploy(database, { Name: "E", Maps: ["map('Users', u => { throw 'no'; })"] });
    expect(await failureOf(query(database, "from index 'E'"))).toBe(
      "invalid-operation: Index 'E' is marked as errored. Index E is invalid, out of 2 map attempts, 2 has failed. Error rate of 100% exceeds allowed 15% error rate",
    );
    expect(database.queries.indexes.byName("E")?.statistics().state).toBe("Error");
    await deploy(database, { ...byName, Name: "E" });
    await database.queries.indexes.waitForNonStale("ReplacementOf/E", 5000);
    expect(await idsOf(database, "from index 'E'")).toHaveLength(2);
  });

  it("include endless scripts", async () => {
    const database = await withUsers();
    await deploy(database, {
      Name: "E",
      Maps: ["map('Users', u => { while (u.Age === 20) {} return { Name: u.Name }; })"],
    });
    expect(await idsOf(database, "from index 'E'")).toEqual(["users/1"]);
  });

  it("of a reduce remove its key from the index", async () => {
    const database = await withUsers();
    await deploy(database, {
      Name: "R",
      Maps: ["map('Users', u => ({ Name: u.Name }))"],
      Reduce:
        "groupBy(x => x.Name).aggregate(g => { if (g.key === 'Bob') throw new Error('bad'); return { Name: g.key }; })",
    });
    const { rows } = await query(database, "from index 'R'");
    expect(rows.map(({ Name }) => Name)).toEqual(["Ann"]);
  });
});
