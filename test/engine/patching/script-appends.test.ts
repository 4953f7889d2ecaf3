/** Entries that a script appends to time series are stored together, and no operation of the script notices that. */
import { afterEach, expect, it } from "vitest";
import type { OpenDatabase } from "../../../engine/api/database/open-database.ts";
import { patchDocument } from "../../../engine/patching/patch.ts";
import { pageOf } from "../../../engine/state/keyspaces/time-series/series-page.ts";
import { segmentPrefix } from "../../../engine/state/keyspaces/time-series/time-series.ts";
import { putText } from "../../../engine/writes/documents.ts";
import { segmentsIn } from "../../../engine/writes/series-source.ts";
import { closeDatabases, openDatabase } from "../../support/open-database.ts";

afterEach(closeDatabases);

async function withDocuments(): Promise<OpenDatabase> {
  const database = await openDatabase();
  await database.write((transaction) => {
    for (const id of ["a", "b"]) putText(transaction, id, "{}");
  });
  return database;
}

/** Patches the document `a`. */
function patch(database: OpenDatabase, script: string) {
  return database.write((transaction) =>
    patchDocument(transaction, { id: "a", patch: { script, values: "{}" } }),
  );
}

/** The entries of a series: day of January 2020, first value. */
async function entriesOf(database: OpenDatabase, id: string, name: string): Promise<number[][]> {
  let found: number[][] = [];
  await database.write((transaction) => {
    found = pageOf(segmentsIn(transaction), segmentPrefix(id, name), {
      from: undefined,
      to: undefined,
    }).slices.flatMap((slice) =>
      slice.segment
        .toEntries()
        .map(({ time, values }) => [new Date(time).getUTCDate(), values[0] ?? Number.NaN]),
    );
  });
  return found;
}

it("reads, deletions and other series see the entries appended before them", async () => {
  const database = await withDocuments();
  const { modified, actions } = await patch(
    database,
    `const t = timeseries(this, 'h');
    const day = (n) => '2020-01-0' + n + 'T00:00:00.000Z';
    t.append(day(2), [2]);
    t.append(day(1), [1]);
    this.Two = t.get().length;
    t.append(day(1), [10]);
    this.First = t.get()[0].Values[0];
    t.append(day(3), [3]);
    t.delete(day(2), day(2));
    timeseries('b', 'h').append(day(5), [5]);
    t.append(day(4), [4]);
    this.Stats = t.getStats().Count;
    t.append(day(7), [7]);`,
  );
  expect(JSON.parse(modified ?? "")).toEqual({ Two: 2, First: 10, Stats: 3 });
  expect(await entriesOf(database, "a", "h")).toEqual([
    [1, 10],
    [3, 3],
    [4, 4],
    [7, 7],
  ]);
  expect(await entriesOf(database, "b", "h")).toEqual([[5, 5]]);
  const created = actions?.seriesAppends.map((text) => JSON.parse(text).Created);
  expect(created).toEqual([true, false, false, false, true, false, false]);
});

it("an entry that is refused ends the script, and nothing is stored", async () => {
  const database = await withDocuments();
  const script =
    "const t = timeseries(this, 'h'); t.append('2020-01-01', [1]); t.append('2020', [])";
  await expect(patch(database, script)).rejects.toThrow("at least one value");
  await expect(patch(database, "timeseries('c', 'h').append('2020', [1])")).rejects.toThrow("'c'");
  expect(await entriesOf(database, "a", "h")).toEqual([]);
});

it("a document that the script deletes keeps no appended entries", async () => {
  const database = await withDocuments();
  await patch(
    database,
    "timeseries('b', 'h').append('2020-01-01T00:00:00.000Z', [1]); del('b'); put('b', {})",
  );
  expect(await entriesOf(database, "b", "h")).toEqual([]);
});

it("many entries are stored together", async () => {
  const database = await withDocuments();
  const before = database.state.committedEtag;
  await patch(
    database,
    "const t = timeseries(this, 'h'); for (let i = 0; i < 1500; i++) t.append(new Date(1577836800000 + i * 1000), [i])",
  );
  expect((await entriesOf(database, "a", "h")).map(([, value]) => value)).toEqual(
    Array.from({ length: 1500 }, (_, i) => i),
  );
  // Segments of at most some hundred entries each, the list of names and the document.
  expect(database.state.committedEtag - before).toBeLessThan(50);
});
