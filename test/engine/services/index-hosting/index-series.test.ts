/**
 * Maps over time series: their arguments, the rows of their indexes, and their updates after every
 * change of a series.
 */
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { nodeEnvironment } from "../../../../engine/base/platform/node-environment.ts";
import { StaticIndex } from "../../../../engine/indexing/static-index.ts";
import type { SeriesEntry } from "../../../../engine/state/keyspaces/time-series/series-segment.ts";
import { ImagePool } from "../../../../engine/storage/segments/image-pool.ts";
import { SegmentCache } from "../../../../engine/storage/segments/segment-cache.ts";
import { deleteDocument } from "../../../../engine/writes/documents.ts";
import { appendToSeries, deleteFromSeries } from "../../../../engine/writes/time-series.ts";
import {
  closeDatabases,
  openAfterCrash,
  openDatabase,
  putAll,
  query,
  temporaryFolder,
} from "../../../support/open-database.ts";

afterEach(closeDatabases);

const hour = 3_600_000;

const entry = (time: number, value: number, tag: string | null = null): SeriesEntry => ({
  time: time * hour,
  values: [value],
  tag,
});

async function append(
  database: OpenDatabase,
  id: string,
  name: string,
  ...entries: SeriesEntry[]
): Promise<void> {
  await database.write((transaction) => appendToSeries(transaction, id, name, entries));
}

async function cut(
  database: OpenDatabase,
  id: string,
  name: string,
  from?: number,
  to?: number,
): Promise<void> {
  const [first, last] = [from, to].map((one) => (one === undefined ? undefined : one * hour));
  await database.write((transaction) => deleteFromSeries(transaction, id, name, first, last));
}

async function deploy(database: OpenDatabase, definition: Record<string, unknown>): Promise<void> {
  await database.queries.administration.deploy([{ Name: "I", ...definition }], true);
}

async function rows(database: OpenDatabase, text = "from index 'I'"): Promise<unknown[]> {
  const reply = await query(database, text, { waitForNonStale: true });
  return reply.rows.map(({ "@metadata": _, ...rest }) => rest);
}

async function sorted(database: OpenDatabase, text?: string): Promise<string[]> {
  return (await rows(database, text)).map((row) => JSON.stringify(row)).sort();
}

function indexOf(database: OpenDatabase): StaticIndex {
  const index = database.queries.indexes.byName("I");
  if (index instanceof StaticIndex) return index;
  throw new Error("the index is deployed");
}

const perEntry = "ts => ts.Entries.map(e => ({ Of: ts.DocumentId, V: e.Value }))";
const ofRates = { Maps: [`timeSeries.map('users', 'HeartRate', ${perEntry})`] };
const totals = {
  Maps: [
    "timeSeries.map('Users', ts => ts.Entries.map(e => { const u = load(ts.DocumentId, 'Users'); return { City: u && u.City, N: e.Value } }))",
  ],
  Reduce:
    "groupBy(x => x.City).aggregate(g => ({ City: g.key, N: g.values.reduce((s, v) => s + v.N, 0) }))",
};

async function withSeries(folder?: string): Promise<OpenDatabase> {
  const database = await openDatabase(folder);
  await putAll(database, "Users", { "Users/1": { City: "Rome" }, "users/2": { City: "Oslo" } });
  await putAll(database, "Dogs", { "dogs/1": {} });
  await append(database, "Users/1", "HeartRate", entry(8, 60, "watches/1"), entry(9, 72.5));
  await append(database, "users/2", "HEARTRATE", entry(8, 55));
  await append(database, "users/2", "Steps", entry(8, 1000), entry(32, 2000));
  await append(database, "dogs/1", "heartrate", entry(8, 90));
  return database;
}

describe("a map over time series", () => {
  it("in JavaScript receives a segment, its dates and lower-cased names", async () => {
    const database = await withSeries();
    await deploy(database, {
      Maps: [
        "timeSeries.map('Users', ts => ({ N: ts.Name, D: ts.DocumentId, C: ts.Count, S: ts.Start, E: ts.End, L: ts.Entries.length, Tag: ts.Entries[0].Tag, Vs: ts.Entries[0].Values, H: ts.Entries[0].Timestamp.getHours(), V1: ts.Entries[0].Values[1] }))",
      ],
    });
    expect(await rows(database)).toEqual([
      {
        N: "heartrate",
        D: "users/1",
        C: 2,
        S: "1970-01-01T08:00:00.0000000Z",
        E: "1970-01-01T09:00:00.0000000Z",
        L: 2,
        Tag: "watches/1",
        Vs: [60],
        H: 8,
        V1: null,
      },
      expect.objectContaining({ N: "heartrate", D: "users/2", C: 1, Tag: null }),
      expect.objectContaining({ N: "steps", D: "users/2", C: 2, Vs: [1000] }),
    ]);
    const { source, mapAttempts, collections } = indexOf(database).statistics();
    expect([source, mapAttempts]).toEqual(["TimeSeries", 3]);
    expect(collections.map(({ name, documentLag }) => [name, documentLag])).toEqual([["Users", 0]]);
  });

  it("in C# receives names as first spelled, doubles, and dates that are texts", async () => {
    const database = await withSeries();
    await deploy(database, {
      Maps: [
        "from ts in timeSeries.Users from e in ts.Entries select new { ts.Name, ts.DocumentId, e.Value, Half = e.Values[0] / 2, Day = e.Timestamp.Date, Year = e.Timestamp.Year, e.Tag, N = e.Values.Length }",
      ],
    });
    const reply = await query(database, "from index 'I'", { waitForNonStale: true });
    expect(reply.rows[0]).toEqual({
      Name: "HeartRate",
      DocumentId: "users/1",
      Value: 60,
      Half: 30,
      Day: "1970-01-01T00:00:00.0000000Z",
      Year: 1970,
      Tag: "watches/1",
      N: 1,
      "@metadata": { "@change-vector": null },
    });
    expect(reply.rows.map(({ Name, Value }) => [Name, Value])).toEqual([
      ["HeartRate", 60],
      ["HeartRate", 72.5],
      ["HEARTRATE", 55],
      ["Steps", 1000],
      ["Steps", 2000],
    ]);
  });

  it("in C# covers one name, all names, or the series of all documents, in query and method syntax", async () => {
    const database = await withSeries();
    for (const [map, count] of [
      ["from ts in timeSeries.Users.HeartRate from e in ts.Entries select new { e.Value }", 3],
      ["from ts in timeseries.Users.HeartRate from e in ts.Entries select new { e.Value }", 3],
      ["from ts in timeSeries.users from e in ts.Entries select new { e.Value }", 5],
      ["from ts in timeSeries from e in ts.Entries select new { e.Value }", 6],
      [
        "TimeSeries.Users.HeartRate.SelectMany(ts => ts.Entries, (ts, e) => new { Value = e.Value })",
        3,
      ],
      ["timeSeries.Users.Steps.Select(ts => new { Value = ts.Entries.Count() })", 1],
    ] as const) {
      await deploy(database, { Maps: [map] });
      await database.queries.indexes.waitForNonStale("ReplacementOf/I", 10_000);
      expect(await rows(database), map).toHaveLength(count);
    }
  });

  it("has rows with the mapped fields, and selected stored fields as texts", async () => {
    const database = await withSeries();
    await deploy(database, {
      Maps: [
        "timeSeries.map('Users', 'HeartRate', ts => ts.Entries.map(e => ({ V: e.Value, High: e.Value > 65, Tag: e.Tag, W: e.Value })))",
      ],
      Fields: { V: { Storage: "Yes" }, High: { Storage: "Yes" }, Tag: { Storage: "Yes" } },
    });
    const of = (text: string) => rows(database, `from index 'I' ${text}`);
    expect(await of("where V > 55 order by V as double desc")).toEqual([
      { V: 72.5, High: true, Tag: null, W: 72.5 },
      { V: 60, High: false, Tag: "watches/1", W: 60 },
    ]);
    expect(await of("where V = 72.5 select V, High, Tag, W")).toEqual([
      { V: "72.5", High: "true", Tag: null, W: 72.5 },
    ]);
    expect(await rows(database, "from index 'I' as i where V = 60 select { X: i.V }")).toEqual([
      { X: 60 },
    ]);
    expect(await of("where Tag = null")).toHaveLength(2);
    expect(await of("select facet(High)")).toEqual([
      expect.objectContaining({
        Values: [
          expect.objectContaining({ Range: "false", Count: 2 }),
          expect.objectContaining({ Range: "true", Count: 1 }),
        ],
      }),
    ]);
  });

  it("fails for one segment and not for other segments", async () => {
    const database = await withSeries();
    for (let i = 3; i < 12; i++) {
      await putAll(database, "Users", { [`users/${i}`]: {} });
      await append(database, `users/${i}`, "HeartRate", entry(i, i));
    }
    await deploy(database, {
      Maps: [
        "timeSeries.map(ts => ts.Entries.map(e => { if (e.Value === 2000) throw 'no'; return { V: e.Value } }))",
      ],
    });
    expect(await rows(database)).toHaveLength(13);
    const [error] = indexOf(database).errors.list;
    expect(error).toMatchObject({ document: "users/2|steps|621356256000000000", action: "Map" });
  });

  it("may execute as many statements as a full segment needs", async () => {
    const database = await withSeries();
    const many = Array.from({ length: 2_000 }, (_, i) => entry(i, i));
    await append(database, "users/2", "Many", ...many);
    await deploy(database, {
      Maps: [
        "timeSeries.map('Users', 'Many', ts => { const all = []; for (const e of ts.Entries) { let x = 0; for (let i = 0; i < 5; i++) x += e.Value; all.push({ X: x }); } return all; })",
      ],
    });
    expect(await rows(database, "from index 'I' where X >= 5000")).toHaveLength(1_000);
    expect(indexOf(database).errors.list).toEqual([]);
  });

  it("is rejected beside maps of another source, and with invalid arguments", async () => {
    const database = await withSeries();
    const refused = (...maps: string[]) => expect(deploy(database, { Maps: maps })).rejects;
    await refused(...ofRates.Maps, "counters.map('Users', c => ({ V: 1, Of: '' }))").toMatchObject({
      code: "invalid-operation",
      message: "Index definition cannot contain Maps with different source types.",
    });
    for (const [text, complaint] of [
      ["timeSeries.map('Users')", "method property isn't a 'Function'"],
      ["timeSeries.map(1, 'a', ts => ({}))", "collection name isn't a string"],
      ["timeSeries.map('Users', 2, ts => ({}))", "TimeSeries name isn't a string"],
      ["timeSeries.map('Users', 'a', 7)", "method property isn't a 'Function'"],
    ] as const) {
      await refused(text).toMatchObject({
        code: "index-creation",
        message: `JavaScript index I map function #0 ${complaint}`,
      });
    }
    await refused(
      "from ts in timeSeries.Users.HeartRate.More select new { ts.Name }",
    ).toMatchObject({ code: "index-compilation" });
  });
});

describe("an index over time series follows", () => {
  it("appends, with a new result etag, and waiting queries return them; other segments are not mapped again", async () => {
    const database = await withSeries();
    await deploy(database, ofRates);
    await rows(database);
    const long = Array.from({ length: 5_000 }, (_, i) => entry(100 + i, i));
    await append(database, "users/2", "heartrate", ...long);
    await rows(database);
    const etag = indexOf(database).lastEtag;
    const { mapAttempts } = indexOf(database).statistics();
    await append(database, "users/2", "heartrate", entry(9_000, 1));
    expect(indexOf(database).isStale).toBe(true);
    expect(await rows(database)).toHaveLength(5_004);
    expect(indexOf(database).lastEtag).toBeGreaterThan(etag);
    expect(indexOf(database).statistics().mapAttempts - mapAttempts).toBeLessThan(4);
  });

  it("deletions of ranges, of a series and of its document, and their recreation", async () => {
    const database = await withSeries();
    await deploy(database, ofRates);
    expect(await sorted(database)).toHaveLength(3);
    await cut(database, "users/1", "HEARTRATE", 8, 8);
    expect(await sorted(database)).toEqual([
      '{"Of":"users/1","V":72.5}',
      '{"Of":"users/2","V":55}',
    ]);
    await cut(database, "users/1", "HeartRate");
    expect(await sorted(database)).toEqual(['{"Of":"users/2","V":55}']);
    await database.write((transaction) => deleteDocument(transaction, "users/2"));
    expect(await sorted(database)).toEqual([]);
    expect(indexOf(database).statistics().entriesCount).toBe(0);
    await putAll(database, "Users", { "users/2": {} });
    expect(await sorted(database)).toEqual([]);
    await append(database, "users/2", "heartrate", entry(8, 7));
    expect(await sorted(database)).toEqual(['{"Of":"users/2","V":7}']);
  });

  it("documents that it loads", async () => {
    const database = await withSeries();
    await deploy(database, totals);
    expect(await sorted(database)).toEqual([
      '{"City":"Oslo","N":3055}',
      '{"City":"Rome","N":132.5}',
    ]);
    await putAll(database, "Users", { "users/2": { City: "Rome" } });
    expect(await sorted(database)).toEqual(['{"City":"Rome","N":3187.5}']);
    expect(indexOf(database).errors.mapReferenceAttempts).toBe(2);
    await cut(database, "users/2", "Steps");
    expect(await sorted(database)).toEqual(['{"City":"Rome","N":187.5}']);
    expect(indexOf(database).type).toBe("JavaScriptMapReduce");
  });

  it("deleted documents: a field of a missing one has no term", async () => {
    const database = await withSeries();
    await deploy(database, {
      Maps: [
        "timeSeries.map('Users', 'HeartRate', ts => ts.Entries.map(e => ({ City: load(ts.DocumentId, 'Users').City, Brand: load(e.Tag, 'Watches').Brand, Nothing: null, V: e.Value })))",
      ],
    });
    const found = async (condition: string) =>
      (await rows(database, `from index 'I' where ${condition}`)).length;
    expect(await found("City = 'rome'")).toBe(2);
    expect(await found("Brand = null")).toBe(0);
    expect(await found("Nothing = null")).toBe(3);
    expect(await rows(database)).toContainEqual({
      City: "Oslo",
      Brand: null,
      Nothing: null,
      V: 55,
    });
    await putAll(database, "Watches", { "watches/1": { Brand: "Fitbit" } });
    expect(await found("Brand = 'fitbit'")).toBe(1);
    await database.write((transaction) => deleteDocument(transaction, "watches/1"));
    expect(await found("Brand = 'fitbit' or Brand = null")).toBe(0);
  });

  it("after a reset, and after a crash", async () => {
    const folder = temporaryFolder();
    let database = await withSeries(folder);
    await deploy(database, ofRates);
    await rows(database);
    database.queries.indexes.reset("I");
    await append(database, "users/2", "heartrate", entry(10, 1));
    expect(await sorted(database)).toContain('{"Of":"users/2","V":1}');
    database = await openAfterCrash(folder);
    await append(database, "users/2", "heartrate", entry(11, 2));
    expect(await sorted(database)).toContain('{"Of":"users/2","V":2}');
    expect(await sorted(database)).toHaveLength(5);
  });

  it("for months without accumulating entries or segment numbers", async () => {
    const database = await withSeries();
    await deploy(database, totals);
    await rows(database);
    for (let round = 1; round <= 300; round++) {
      const id = `users/${2 + (round % 3)}`;
      await database.write((transaction) => deleteDocument(transaction, id));
      await putAll(database, "Users", { [id]: { City: `City ${round}` } });
      const entries = Array.from({ length: 20 }, (_, i) => entry(round * 100 + i, 1));
      await append(database, id, "HeartRate", ...entries);
      if (round % 50 === 0) await rows(database);
    }
    expect(await sorted(database)).toEqual([
      '{"City":"City 298","N":20}',
      '{"City":"City 299","N":20}',
      '{"City":"City 300","N":20}',
      '{"City":"Rome","N":132.5}',
    ]);
    const { entries, reduce } = indexOf(database).index;
    expect(entries.store.liveCount).toBe(4);
    expect(entries.store.entryCount).toBeLessThan(2_000);
    expect(reduce?.isSettled).toBe(true);
  });
});

/** Log segments of which at most one is in memory, in addition to the one being written. */
const coldLog = () => ({
  log: {
    segmentBytesMin: 16_384,
    segmentBytesMax: 65_536,
    cache: new SegmentCache(1, new ImagePool(true)),
  },
});

function openCold(folder: string): Promise<OpenDatabase> {
  return OpenDatabase.open(nodeEnvironment(), "cold", `${folder}/db`, coldLog());
}

describe("an index over time series restored from its snapshot", () => {
  it("maps nothing again, and follows later changes", async () => {
    const folder = temporaryFolder();
    let database = await openCold(folder);
    await putAll(database, "Users", { "users/1": { City: "Rome" }, "users/2": { City: "Oslo" } });
    for (let i = 0; i < 40; i++)
      await append(database, `users/${1 + (i % 2)}`, `s${i}`, entry(i, i));
    await deploy(database, totals);
    const before = await sorted(database);
    expect(before).toEqual(['{"City":"Oslo","N":400}', '{"City":"Rome","N":380}']);
    await database.close();

    database = await openCold(folder);
    expect(await sorted(database)).toEqual(before);
    expect(indexOf(database).statistics().mapAttempts).toBe(40);
    await append(database, "users/2", "s1", entry(100, 1_000));
    await cut(database, "users/2", "s3");
    await putAll(database, "Users", { "users/1": { City: "Oslo" } });
    expect(await sorted(database)).toEqual(['{"City":"Oslo","N":1777}']);
    expect(indexOf(database).statistics().mapAttempts).toBe(41);
    await database.close();

    database = await openCold(folder);
    await database.write((transaction) => deleteDocument(transaction, "users/2"));
    expect(await sorted(database)).toEqual(['{"City":"Oslo","N":380}']);
    await database.close();
  });

  it("equals a model that is recomputed, after any changes and at any closing point", async () => {
    const change = fc.record({
      kind: fc.constantFrom("append", "append", "append", "cut", "delete", "look", "reopen"),
      id: fc.constantFrom("users/1", "users/2", "users/3", "dogs/1"),
      name: fc.constantFrom("a", "b"),
      time: fc.integer({ min: 0, max: 8 }),
      length: fc.integer({ min: 0, max: 4 }),
      value: fc.integer({ min: -9, max: 9 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(change, { maxLength: 30 }), async (changes) => {
        const folder = temporaryFolder();
        let database = await openCold(folder);
        const maps = { Maps: [`timeSeries.map('Users', ${perEntry})`] };
        await deploy(database, maps);
        const model = new Map<string, Map<string, number>>();
        const expectSame = async () => {
          const expected = [...model].flatMap(([id, entries]) =>
            id.startsWith("dogs")
              ? []
              : [...entries.values()].map((value) => JSON.stringify({ Of: id, V: value })),
          );
          expect(await sorted(database)).toEqual(expected.sort());
        };
        for (const { kind, id, name, time, length, value } of changes) {
          if (kind === "look") await expectSame();
          if (kind === "reopen") {
            await database.close();
            database = await openCold(folder);
          }
          if (kind === "append") {
            if (!model.has(id)) {
              await putAll(database, id.startsWith("dogs") ? "Dogs" : "Users", { [id]: {} });
              model.set(id, new Map());
            }
            await append(database, id, name, entry(time, value));
            model.get(id)?.set(`${name} ${time}`, value);
          }
          if (kind === "cut" && model.has(id)) {
            await cut(database, id, name, time, time + length);
            for (let at = time; at <= time + length; at++) model.get(id)?.delete(`${name} ${at}`);
          }
          if (kind === "delete" && model.delete(id)) {
            await database.write((transaction) => deleteDocument(transaction, id));
          }
        }
        await expectSame();
        await database.close();
      }),
      { numRuns: 25 },
    );
  });
});
