/**
 * Maps over counters: their arguments, the rows of their indexes, and their updates after every
 * change of a counter.
 */
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import type { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { StaticIndex } from "../../../../engine/indexing/static-index.ts";
import { deleteCounter, incrementCounter } from "../../../../engine/writes/counters.ts";
import { deleteDocument } from "../../../../engine/writes/documents.ts";
import {
  closeDatabases,
  openAfterCrash,
  openDatabase,
  putAll,
  query,
  temporaryFolder,
} from "../../../support/open-database.ts";

afterEach(closeDatabases);

async function increment(
  database: OpenDatabase,
  id: string,
  name: string,
  delta = 1,
): Promise<void> {
  await database.write((transaction) => incrementCounter(transaction, id, name, BigInt(delta)));
}

async function deploy(database: OpenDatabase, definition: Record<string, unknown>): Promise<void> {
  await database.queries.administration.deploy([{ Name: "I", ...definition }], true);
}

async function rows(database: OpenDatabase, text = "from index 'I'"): Promise<unknown[]> {
  const reply = await query(database, text, { waitForNonStale: true });
  return reply.rows.map(({ "@metadata": _, ...rest }) => JSON.stringify(rest)).sort();
}

function indexOf(database: OpenDatabase): StaticIndex {
  const index = database.queries.indexes.byName("I");
  if (index instanceof StaticIndex) return index;
  throw new Error("the index is deployed");
}

const shown = (value: number, name: string, of: string) =>
  JSON.stringify({ Value: value, Name: name, Of: of });
const body = "c => ({ Value: c.Value, Name: c.Name, Of: c.DocumentId })";
const ofUsers = { Maps: [`counters.map('users', ${body})`] };
const totals = {
  Maps: [
    "counters.map('Users', c => { const u = load(c.DocumentId, 'Users'); return { City: u && u.City, N: c.Value } })",
  ],
  Reduce:
    "groupBy(x => x.City).aggregate(g => ({ City: g.key, N: g.values.reduce((s, v) => s + v.N, 0) }))",
};

async function withCounters(folder?: string): Promise<OpenDatabase> {
  const database = await openDatabase(folder);
  await putAll(database, "Users", { "Users/1": { City: "Rome" }, "users/2": { City: "Oslo" } });
  await putAll(database, "Dogs", { "dogs/1": {} });
  await increment(database, "Users/1", "Likes", 3);
  await increment(database, "users/1", "Visits", 9);
  await increment(database, "users/2", "LIKES", 5);
  await increment(database, "dogs/1", "likes", 7);
  return database;
}

describe("a map over counters", () => {
  it("receives the value, the name as first spelled, and the lower-cased document id", async () => {
    const database = await withCounters();
    await deploy(database, ofUsers);
    expect(await rows(database)).toEqual([
      shown(3, "Likes", "users/1"),
      shown(5, "LIKES", "users/2"),
      shown(9, "Visits", "users/1"),
    ]);
    expect(indexOf(database).statistics().source).toBe("Counters");
    expect(indexOf(database).statistics().mapAttempts).toBe(3);
  });

  it("covers one name in any case, or the counters of all documents", async () => {
    const database = await withCounters();
    await deploy(database, { Maps: [`counters.map('Users', 'liKes', ${body})`] });
    expect(await rows(database)).toEqual([
      shown(3, "Likes", "users/1"),
      shown(5, "LIKES", "users/2"),
    ]);
    await deploy(database, { Maps: [`counters.map(${body})`] });
    await database.queries.indexes.waitForNonStale("ReplacementOf/I", 10_000);
    expect(await rows(database)).toHaveLength(4);
  });

  it("has rows with the mapped fields, without an id, which can be filtered, sorted and projected", async () => {
    const database = await withCounters();
    await deploy(database, {
      Maps: [
        `counters.map('Users', 'Likes', ${body})`,
        "counters.map('Dogs', c => [{ Value: c.Value, Name: c.Name, Of: null }, { Value: 0, Name: c.Name, Of: null }])",
      ],
    });
    const reply = await query(
      database,
      "from index 'I' where Value between 3 and 7 order by Value as long desc",
      { waitForNonStale: true },
    );
    expect(reply.rows).toEqual([
      { Value: 7, Name: "likes", Of: null, "@metadata": { "@change-vector": null } },
      { Value: 5, Name: "LIKES", Of: "users/2", "@metadata": { "@change-vector": null } },
      { Value: 3, Name: "Likes", Of: "users/1", "@metadata": { "@change-vector": null } },
    ]);
    expect(await rows(database, "from index 'I' where Of = 'users/2' select Value, id()")).toEqual([
      '{"Value":5,"id()":null}',
    ]);
    expect(await rows(database, "from index 'I' where id() = 'users/1'")).toEqual([]);
    expect(indexOf(database).outputsPerDocumentMax).toBe(2);
  });

  it("fails for one counter and not for the other counters of its document", async () => {
    const database = await withCounters();
    const maps = [
      "counters.map(c => { if (c.Name === 'Visits') throw 'no'; return { X: c.Value } })",
    ];
    for (const name of ["a", "b", "c", "d"]) await increment(database, "users/2", name);
    await deploy(database, { Maps: maps });
    expect(await rows(database)).toHaveLength(7);
    const [error] = indexOf(database).errors.list;
    expect(error).toMatchObject({ document: "users/1|visits", action: "Map" });
  });

  it("is rejected beside maps of another source, and with invalid arguments", async () => {
    const database = await withCounters();
    const refused = (...maps: string[]) => expect(deploy(database, { Maps: maps })).rejects;
    await refused(`counters.map('Users', ${body})`, "map('Users', u => ({ X: 1 }))").toMatchObject({
      code: "invalid-operation",
    });
    for (const text of [
      "counters.map()",
      "counters.map('Users')",
      "counters.map(1, c => ({}))",
      "counters.map('Users', 2, c => ({}))",
      "counters.map('Users', 'Likes')",
      "counters.map('Users', 'a', 'b', c => ({}))",
    ]) {
      await refused(text).toMatchObject({ code: "index-creation" });
    }
  });
});

describe("an index over counters follows", () => {
  it("increments, with a new result etag, and waiting queries return them", async () => {
    const database = await withCounters();
    await deploy(database, { Maps: [`counters.map('Users', 'Likes', ${body})`] });
    await rows(database);
    const etag = indexOf(database).lastEtag;
    await increment(database, "users/2", "likes", 10);
    expect(indexOf(database).isStale).toBe(true);
    expect(await rows(database)).toEqual([
      shown(15, "LIKES", "users/2"),
      shown(3, "Likes", "users/1"),
    ]);
    expect(indexOf(database).lastEtag).toBeGreaterThan(etag);
  });

  it("deletions of a counter and of its document, and their recreation", async () => {
    const database = await withCounters();
    await deploy(database, ofUsers);
    await rows(database);
    await database.write((transaction) => deleteCounter(transaction, "users/1", "LIKES"));
    await database.write((transaction) => deleteDocument(transaction, "users/2"));
    expect(await rows(database)).toEqual([shown(9, "Visits", "users/1")]);
    await putAll(database, "Users", { "users/2": {} });
    expect(await rows(database)).toHaveLength(1);
    await increment(database, "users/2", "likes", 2);
    expect(await rows(database)).toEqual([
      shown(2, "likes", "users/2"),
      shown(9, "Visits", "users/1"),
    ]);
  });

  it("documents that it loads", async () => {
    const database = await withCounters();
    await deploy(database, totals);
    expect(await rows(database)).toEqual(['{"City":"Oslo","N":5}', '{"City":"Rome","N":12}']);
    await putAll(database, "Users", { "users/2": { City: "Rome" } });
    expect(await rows(database)).toEqual(['{"City":"Rome","N":17}']);
    await increment(database, "users/2", "likes", -5);
    expect(await rows(database)).toEqual(['{"City":"Rome","N":12}']);
    expect(indexOf(database).type).toBe("JavaScriptMapReduce");
  });

  it("after a reset and after a restart", async () => {
    const folder = temporaryFolder();
    let database = await withCounters(folder);
    await deploy(database, ofUsers);
    await rows(database);
    database.queries.indexes.reset("I");
    await increment(database, "users/2", "likes", 10);
    expect(await rows(database)).toContain(shown(15, "LIKES", "users/2"));
    const etag = indexOf(database).lastEtag;
    database = await openAfterCrash(folder);
    await increment(database, "users/2", "likes", 10);
    expect(await rows(database)).toContain(shown(25, "LIKES", "users/2"));
    expect(await rows(database)).toHaveLength(3);
    expect(indexOf(database).lastEtag).toBeGreaterThan(etag);
  });

  it("any sequence of changes", async () => {
    const change = fc.record({
      kind: fc.constantFrom("increment", "increment", "deleteCounter", "deleteDocument", "look"),
      id: fc.constantFrom("users/1", "users/2", "users/3", "dogs/1"),
      name: fc.constantFrom("a", "b", "c"),
      delta: fc.integer({ min: -9, max: 9 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(change, { maxLength: 40 }), async (changes) => {
        const database = await openDatabase();
        await deploy(database, ofUsers);
        const model = new Map<string, Map<string, number>>();
        const expectSame = async () => {
          const expected = [...model].flatMap(([id, counters]) =>
            id.startsWith("dogs") ? [] : [...counters].map(([name, n]) => shown(n, name, id)),
          );
          expect(await rows(database)).toEqual(expected.sort());
        };
        for (const { kind, id, name, delta } of changes) {
          const counters = model.get(id);
          if (kind === "look") await expectSame();
          else if (kind === "increment") {
            if (counters === undefined) {
              await putAll(database, id.startsWith("dogs") ? "Dogs" : "Users", { [id]: {} });
              model.set(id, new Map());
            }
            await increment(database, id, name, delta);
            model.get(id)?.set(name, (counters?.get(name) ?? 0) + delta);
          } else if (kind === "deleteCounter" && counters !== undefined) {
            await database.write((transaction) => deleteCounter(transaction, id, name));
            counters.delete(name);
          } else if (kind === "deleteDocument" && counters !== undefined) {
            await database.write((transaction) => deleteDocument(transaction, id));
            model.delete(id);
          }
        }
        await expectSame();
        await closeDatabases();
      }),
      { numRuns: 40 },
    );
  });
});
