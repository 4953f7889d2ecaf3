/**
 * Limits of index scripts: a document that exceeds them fails alone, and is listed in the index's
 * errors.
 */
import { afterEach, describe, expect, it } from "vitest";
import type { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { StaticIndex } from "../../../../engine/indexing/static-index.ts";
import { closeDatabases, openDatabase, putAll, query } from "../../../support/open-database.ts";

afterEach(closeDatabases);

const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);

/** One document with a long list, and enough with short ones for the index to stay valid. */
async function withLists(length = 60): Promise<OpenDatabase> {
  const database = await openDatabase();
  const short = numbers(20).map((i) => [`lists/${i}`, { L: numbers(2) }] as const);
  await putAll(database, "Lists", {
    "lists/long": { L: numbers(length) },
    ...Object.fromEntries(short),
  });
  return database;
}

async function deployed(database: OpenDatabase, maps: readonly string[], reduce?: string) {
  const definition = { Name: "I", Maps: maps, ...(reduce === undefined ? {} : { Reduce: reduce }) };
  await database.queries.administration.deploy([definition], true);
  await database.queries.indexes.waitForNonStale("I", 20_000);
  const index = database.queries.indexes.byName("I");
  if (!(index instanceof StaticIndex)) throw new Error("there is no such index");
  return index.errors.list;
}

/** Checks that only the long document failed, with this message. */
async function expectLongFails(database: OpenDatabase, message: RegExp): Promise<void> {
  const index = database.queries.indexes.byName("I");
  if (!(index instanceof StaticIndex)) throw new Error("there is no such index");
  expect(index.errors.list.map(({ document }) => document)).toEqual(["lists/long"]);
  expect(index.errors.list[0]?.message).toMatch(message);
}

const timeLimit = /may take 25 ms of processor time.*Patching\.MaxTimeForScriptInMs/;
const memoryLimit = /values of 64 MB.*Patching\.MaxMemoryForScriptInMb/;

describe("a document with too many outputs", () => {
  it("fails alone, by cross joins of C#", async () => {
    const joins = ["a", "b", "c", "e", "f"].map((name) => `from ${name} in d.L`).join(" ");
    const database = await withLists();
    await deployed(database, [
      `from d in docs.Lists ${joins} select new { X = a + b + c + e + f }`,
    ]);
    await expectLongFails(database, timeLimit);
    const { ids } = await query(database, "from index 'I' where X = 5");
    expect(ids).toHaveLength(20);
  });

  it("fails because a sequence exceeds its memory", async () => {
    const range = "Enumerable.Range(0, d.L.Length > 10 ? 100000000 : 1)";
    const database = await withLists();
    await deployed(database, [`from d in docs.Lists from i in ${range} select new { X = i }`]);
    await expectLongFails(database, memoryLimit);
  });

  it("fails because of the sum of all its maps", async () => {
    const loop = "for (let i = 0; i < d.L.length * 60; i++) n += d.L.length % 7 + i * 3";
    const map = (number: number) =>
      `map('Lists', d => { let n = ${number}; ${loop}; return { n } })`;
    const database = await withLists();
    await deployed(database, numbers(100).map(map));
    await expectLongFails(database, timeLimit);
  });

  it("fails because of the total size of its output keys", async () => {
    const map = "map('Lists', d => d.L.map(x => ({ K: x, C: 1 })))";
    const reduce =
      "groupBy(r => { for (let i = 0; i < 4000; i++); return r.K })" +
      ".aggregate(g => ({ K: g.key, C: g.values.length }))";
    const database = await withLists(400);
    await deployed(database, [map], reduce);
    await expectLongFails(database, timeLimit);
  });
});

describe("a document with many outputs", () => {
  it("is indexed completely, however slowly code runs at first", async () => {
    const pairs = "from a in d.L from b in d.L";
    const map = `from d in docs.Lists ${pairs} select new { X = a + b, Y = a, Z = b, W = "x" + a }`;
    const database = await withLists(40);
    expect(await deployed(database, [map])).toEqual([]);
    const { ids } = await query(database, "from index 'I' where X = 78");
    expect(ids).toEqual(["lists/long"]);
  });
});

describe("a group whose reduce exceeds the limit", () => {
  it("has no result and is listed in the errors", async () => {
    const map = "map('Lists', d => d.L.map(x => ({ K: x < 1, C: 1 })))";
    const reduce =
      "groupBy(r => r.K).aggregate(g => { if (!g.key) for (;;) g.values.push('x'); " +
      "return { K: g.key, C: g.values.length } })";
    const errors = await deployed(await withLists(), [map], reduce);
    expect(errors.map(({ document }) => document)).toEqual(["Reduce key: { 'K' : false }"]);
  });
});
