import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { OpenDatabase } from "../../../engine/api/database/open-database.ts";
import type { SeriesEntry } from "../../../engine/state/keyspaces/time-series/series-segment.ts";
import {
  committedSegments,
  segmentPrefix,
  segmentsBetween,
  summaryOf,
} from "../../../engine/state/keyspaces/time-series/time-series.ts";
import {
  appendToSeries,
  copySeries,
  deleteFromSeries,
  incrementSeries,
} from "../../../engine/writes/time-series.ts";
import {
  databaseFolder,
  logOptions,
  simulatedEnvironment,
} from "../../support/simulated-database.ts";
import { SimulatedFileSystem } from "../../support/simulated-file-system.ts";

let files: SimulatedFileSystem;
let database: OpenDatabase;

const open = () =>
  OpenDatabase.open(simulatedEnvironment(files), "db", databaseFolder, {
    log: { ...logOptions().log, segmentBytesMin: 64 * 1024, segmentBytesMax: 256 * 1024 },
  });

beforeEach(async () => {
  files = new SimulatedFileSystem();
  database = await open();
  await database.put("users/1", {});
  await database.put("users/2", {});
});

afterEach(async () => {
  database.checkInvariants();
  await database.close();
});

function entriesOf(id: string, name: string, from = -Infinity, to = Infinity): SeriesEntry[] {
  const source = committedSegments(database.state.keyspaces.timeSeriesSegments);
  const [first, last] = [Math.max(from, -62_135_596_800_000), Math.min(to, 253_402_300_799_999)];
  return [...segmentsBetween(source, segmentPrefix(id, name), first, last)]
    .flatMap(([, segment]) => segment.toEntries())
    .filter(({ time }) => time >= from && time <= to);
}

const at = (time: number, ...values: number[]): SeriesEntry => ({ time, values, tag: null });
const append = (name: string, entries: readonly SeriesEntry[], id = "users/1") =>
  database.write((transaction) => appendToSeries(transaction, id, name, entries));
const remove = (name: string, from?: number, to?: number) =>
  database.write((transaction) => deleteFromSeries(transaction, "users/1", name, from, to));

async function metadata(id = "users/1"): Promise<Record<string, unknown>> {
  return (await database.get(id))?.["@metadata"] as Record<string, unknown>;
}

/** A slow, simple model of one series. */
class SortedArray {
  entries: SeriesEntry[] = [];

  append(added: readonly SeriesEntry[]): void {
    for (const entry of added) {
      this.delete(entry.time, entry.time);
      this.entries.push(entry);
    }
    this.entries.sort((one, other) => one.time - other.time);
  }

  delete(from: number, to: number): void {
    this.entries = this.entries.filter(({ time }) => time < from || time > to);
  }
}

const time = fc.oneof(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 0, max: 3000 }));
const entry: fc.Arbitrary<SeriesEntry> = fc.record({
  time,
  values: fc.oneof(
    fc.tuple(fc.integer({ min: -9, max: 9 })),
    fc.array(fc.double({ noNaN: true }), { minLength: 32, maxLength: 32 }),
  ),
  tag: fc.option(fc.constantFrom("a", "b"), { nil: null }),
});
const run = fc
  .record({ start: time, count: fc.integer({ min: 1, max: 700 }), step: fc.constantFrom(1, 2) })
  .map(({ start, count, step }) =>
    Array.from({ length: count }, (_, i) => at(start + i * step, i % 7)),
  );
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ append: fc.array(entry, { minLength: 1, maxLength: 40 }) }) },
  { weight: 2, arbitrary: fc.record({ append: run }) },
  { weight: 2, arbitrary: fc.record({ from: time, to: time }) },
);

describe("a time series", () => {
  it("equals a sorted array after any appends and deletions", async () => {
    let round = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(step, { maxLength: 4 }), { maxLength: 8 }),
        async (steps) => {
          const name = `series ${round++}`;
          const model = new SortedArray();
          for (const together of steps) {
            await database.write((transaction) => {
              for (const one of together) {
                if ("append" in one) appendToSeries(transaction, "users/1", name, one.append);
                else deleteFromSeries(transaction, "users/1", name, one.from, one.to);
              }
            });
            for (const one of together) {
              if ("append" in one) model.append(one.append);
              else model.delete(one.from, one.to);
            }
            expect(entriesOf("users/1", name)).toEqual(model.entries);
            expect(entriesOf("users/1", name, 10, 200)).toEqual(
              model.entries.filter(({ time: at }) => at >= 10 && at <= 200),
            );
            const listed = ((await metadata())["@timeseries"] ?? []) as string[];
            expect(listed.includes(name)).toBe(model.entries.length > 0);
          }
          database.checkInvariants();
        },
      ),
      { numRuns: 25 },
    );
  });

  it("rewrites few entries when one is appended to many", async () => {
    for (let i = 0; i < 1200; i++) await append("Heart", [at(i * 1000, i)]);
    const { recordBytes } = database.logMetrics;
    for (let i = 1200; i < 1400; i++) await append("Heart", [at(i * 1000, i)]);
    expect((database.logMetrics.recordBytes - recordBytes) / 200).toBeLessThan(500);
    expect(database.state.keyspaces.timeSeriesSegments.count).toBeLessThan(8);
    expect(entriesOf("users/1", "heart").map(({ values }) => values[0])).toEqual(
      Array.from({ length: 1400 }, (_, i) => i),
    );
  });

  it("stays small when entries arrive in reverse order", async () => {
    for (let i = 600; i > 0; i--) await append("back", [at(i, i)]);
    expect(database.state.keyspaces.timeSeriesSegments.count).toBe(2);
    expect(entriesOf("users/1", "back")).toHaveLength(600);
  });

  it("survives closing and a crash", async () => {
    await append(
      "A",
      Array.from({ length: 1500 }, (_, i) => at(i, i, -i)),
    );
    await remove("A", 100, 1200);
    const expected = entriesOf("users/1", "a");
    expect(expected).toHaveLength(399);
    await database.close();
    database = await open();
    expect(entriesOf("users/1", "a")).toEqual(expected);
    await append("A", [at(5, 1)]);
    const crashed = files.restart();
    await database.close();
    files = crashed;
    database = await open();
    expect(entriesOf("users/1", "a", 5, 5)).toEqual([at(5, 1)]);
    expect((await metadata())["@timeseries"]).toEqual(["A"]);
  });

  it("survives compaction", async () => {
    await append(
      "A",
      Array.from({ length: 2000 }, (_, i) => at(i, i)),
    );
    for (let i = 0; i < 200; i++) await append("B", [at(i, i)]);
    await remove("A", 10, 1990);
    const expected = [entriesOf("users/1", "A"), entriesOf("users/1", "B")];
    await database.compact();
    await database.close();
    for (const path of files.paths()) if (path.includes("/snap/")) files.remove(path);
    database = await open();
    expect([entriesOf("users/1", "A"), entriesOf("users/1", "B")]).toEqual(expected);
  });

  it("is deleted with its document, and is absent when the document is recreated", async () => {
    await append("A", [at(1, 1)]);
    await database.delete("USERS/1");
    await database.put("users/1", {});
    expect(entriesOf("users/1", "A")).toEqual([]);
    expect(await metadata()).not.toHaveProperty("@flags");
    expect(database.state.keyspaces.timeSeries.count).toBe(0);
    expect(database.state.keyspaces.timeSeriesSegments.count).toBe(0);
  });

  it("is listed by its first spelling, sorted ignoring case, until it is empty", async () => {
    await append("b", [at(1, 1)]);
    await append("B2", [at(1, 1)]);
    await append("A", [at(1, 1)]);
    await append("B", [at(2, 1)]);
    expect(await metadata()).toMatchObject({
      "@timeseries": ["A", "b", "B2"],
      "@flags": "HasTimeSeries",
    });
    await remove("a");
    await database.put("users/1", { name: "again", "@metadata": { "@timeseries": ["forged"] } });
    expect((await metadata())["@timeseries"]).toEqual(["b", "B2"]);
    await remove("B");
    await remove("b2", 1, 1);
    expect(await metadata()).not.toHaveProperty("@timeseries");
    expect(await metadata()).not.toHaveProperty("@flags");
  });

  it("changes its document only when it is created or becomes empty", async () => {
    const vector = async () => (await metadata())["@change-vector"];
    await append("A", [at(1, 1)]);
    const before = await vector();
    await append("A", [at(2, 1)]);
    await remove("A", 1, 1);
    expect(await vector()).toBe(before);
    expect(await remove("A", 50, 60)).toBe(0);
    await remove("A");
    expect(await vector()).not.toBe(before);
  });

  it("of increments adds them up, and tags increases with the database hash", async () => {
    const increment = (...values: number[]) =>
      database.write((transaction) =>
        incrementSeries(transaction, "users/1", "INC:x", [{ time: 1, values }]),
      );
    const hash = database.state.origin.hash;
    await increment(1, 2);
    expect(entriesOf("users/1", "inc:x")).toEqual([{ ...at(1, 1, 2), tag: `TC:INC-${hash}` }]);
    await increment(1, 0, 5);
    expect(entriesOf("users/1", "inc:x")).toEqual([{ ...at(1, 2, 2, 5), tag: `TC:INC-${hash}` }]);
    await increment(-9);
    expect(entriesOf("users/1", "inc:x")).toEqual([at(1, -7, 2, 5)]);
  });

  it("is copied partially, and added if it consists of increments", async () => {
    await append(
      "A",
      Array.from({ length: 10 }, (_, i) => at(i, i)),
    );
    await database.write((transaction) => {
      const source = { documentId: "users/1", name: "a", from: 3, to: 5 };
      copySeries(transaction, source, { documentId: "users/2", name: "C" });
      incrementSeries(transaction, "users/1", "INC:x", [{ time: 1, values: [2] }]);
      for (let i = 0; i < 3; i++) {
        const increments = { documentId: "users/1", name: "INC:x" };
        copySeries(transaction, increments, { documentId: "users/2", name: "INC:y" });
      }
      expect(
        copySeries(
          transaction,
          { documentId: "users/1", name: "none" },
          { documentId: "users/2", name: "N" },
        ),
      ).toBe(0);
    });
    expect(entriesOf("users/2", "C")).toEqual([at(3, 3), at(4, 4), at(5, 5)]);
    expect(entriesOf("users/2", "INC:y")).toMatchObject([{ values: [6] }]);
    expect((await metadata("users/2"))["@timeseries"]).toEqual(["C", "INC:y"]);
  });

  it("has a known size without unpacking", async () => {
    await append(
      "A",
      Array.from({ length: 1500 }, (_, i) => at(i + 7, i)),
    );
    const source = committedSegments(database.state.keyspaces.timeSeriesSegments);
    expect(summaryOf(source, segmentPrefix("users/1", "A"))).toEqual({
      count: 1500,
      first: 7,
      last: 1506,
    });
    expect(summaryOf(source, segmentPrefix("users/1", "B"))).toBeUndefined();
  });

  it.each([
    ["document-missing", "A", at(1, 1), "users/9"],
    ["invalid-operation", "a@b", at(1, 1), "users/1"],
    ["invalid-operation", "INC:a", at(1, 1), "users/1"],
    ["json-invalid", "A", at(1), "users/1"],
    ["series-value-invalid", "A", at(1, 1, Number.NaN), "users/1"],
    ["series-out-of-range", "A", at(1, ...new Array<number>(33).fill(0)), "users/1"],
    ["series-out-of-range", "A", { ...at(1, 1), tag: "ä".repeat(128) }, "users/1"],
  ] as const)("rejects with %s (%s)", async (code, name, wrong, id) => {
    await expect(append(name, [at(0, 0), wrong], id)).rejects.toMatchObject({ code });
    expect(database.state.keyspaces.timeSeriesSegments.count).toBe(0);
  });

  it("notifies listeners of changes once they are durable", async () => {
    const reported: unknown[] = [];
    const stop = database.feed.listen((change) => reported.push(change));
    await append("A", [at(5, 1), at(1, 1)]);
    await remove("A", 1, 2);
    stop();
    expect(
      reported.filter((change) => (change as { kind: string }).kind === "time-series"),
    ).toMatchObject([
      { type: "Put", documentId: "users/1", name: "A", from: 1, to: 5 },
      { type: "Delete", documentId: "users/1", name: "A", from: 1, to: 2 },
    ]);
  });
});
