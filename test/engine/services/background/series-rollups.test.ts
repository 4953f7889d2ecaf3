import fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { EngineError } from "../../../../engine/base/errors.ts";
import { parseSeriesCollections } from "../../../../engine/state/keyspaces/time-series/series-policies.ts";
import type { SeriesEntry } from "../../../../engine/state/keyspaces/time-series/series-segment.ts";
import {
  committedSegments,
  segmentPrefix,
  segmentsBetween,
  timeMax,
  timeMin,
} from "../../../../engine/state/keyspaces/time-series/time-series.ts";
import { Store } from "../../../../engine/state/store/store.ts";
import { appendToSeries } from "../../../../engine/writes/time-series.ts";
import { query } from "../../../support/open-database.ts";
import { simulatedEnvironment } from "../../../support/simulated-database.ts";
import { SimulatedFileSystem } from "../../../support/simulated-file-system.ts";

const open: OpenDatabase[] = [];
afterEach(async () => {
  for (const database of open.splice(0)) {
    database.checkInvariants();
    await database.close();
  }
});

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const seconds = (ms: number) => ({ Value: ms / 1000, Unit: "Second" });
const never = { Value: 2_147_483_647, Unit: "None" };

const policy = (Name: string, every: number, kept?: number) => ({
  Name,
  AggregationTime: seconds(every),
  RetentionTime: kept === undefined ? never : seconds(kept),
});

const raw = (kept: number) => ({ Name: "rawpolicy", RetentionTime: seconds(kept) });

async function opened(rule: object, files = new SimulatedFileSystem()) {
  const environment = simulatedEnvironment(files);
  const database = await OpenDatabase.open(environment, "shop", "/data/shop");
  open.push(database);
  const { clock } = environment;
  const Collections = parseSeriesCollections({ Users: rule });
  await database.putSettings({ TimeSeries: { Collections } });
  await database.put("users/1", { "@metadata": { "@collection": "Users" } });
  /** The start of the current day. */
  const today = Math.floor(clock.nowMicros() / 1000 / day) * day;
  const append = (name: string, ...entries: readonly [number, ...number[]][]) =>
    database.write((transaction) =>
      appendToSeries(
        transaction,
        "users/1",
        name,
        entries.map(([time, ...values]) => ({ time, values, tag: "t" })),
      ),
    );
  return { database, clock, today, append, files };
}

function entriesOf(database: OpenDatabase, name: string): SeriesEntry[] {
  const source = committedSegments(database.state.keyspaces.timeSeriesSegments);
  const prefix = segmentPrefix("users/1", name);
  return [...segmentsBetween(source, prefix, timeMin, timeMax)].flatMap(([, one]) =>
    one.toEntries(),
  );
}

const numbersOf = (database: OpenDatabase, name: string) =>
  entriesOf(database, name).map(({ time, values }) => [time, ...values]);

describe("time series with policies", () => {
  test("are rolled up when an interval ends, and rollups are rolled up further", async () => {
    const { database, today, append } = await opened({
      Policies: [policy("ByDay", day), policy("ByHour", hour)],
    });
    const start = today - 2 * day;
    await append(
      "Heart",
      [start, 10, 1],
      [start + minute, 30],
      [start + hour, 20, 2],
      [start + day, 5],
    );
    await append("Heart", [today + 10 * day, 7]);
    expect(await database.seriesRollups.run()).toBe(5);
    expect(numbersOf(database, "Heart@ByHour")).toEqual([
      [start, 10, 30, 10, 30, 40, 2, 1, 1, 1, 1, 1, 1],
      [start + hour, 20, 20, 20, 20, 20, 1, 2, 2, 2, 2, 2, 1],
      [start + day, 5, 5, 5, 5, 5, 1],
    ]);
    expect(numbersOf(database, "heart@byday")).toEqual([
      [start, 10, 20, 10, 30, 60, 3, 1, 2, 1, 2, 3, 2],
      [start + day, 5, 5, 5, 5, 5, 1],
    ]);
    expect(await database.seriesRollups.run()).toBe(0);
    const { rows } = await query(
      database,
      "from Users select timeseries(from 'Heart@ByDay' select max(), avg(), count())",
    );
    expect(rows[0]).toMatchObject({
      Results: [{ Max: [30, 2], Average: [16.25, 1.5], Count: [4, 2] }],
    });
    const all = await query(database, "from Users select timeseries(from 'Heart@ByDay')");
    expect(all.rows[0]).toMatchObject({ Results: [{ IsRollup: true }, { IsRollup: true }] });
  });

  test("are rolled up again after late entries", async () => {
    const { database, today, append } = await opened({
      Policies: [policy("ByHour", hour), policy("ByDay", day)],
    });
    const start = today - 5 * day;
    await append("Heart", [start, 1], [start + 2 * day, 2]);
    await database.seriesRollups.run();
    await append("Heart", [start + minute, 9]);
    expect(await database.seriesRollups.run()).toBe(2);
    expect(numbersOf(database, "Heart@ByDay")).toEqual([
      [start, 1, 9, 1, 9, 10, 2],
      [start + 2 * day, 2, 2, 2, 2, 2, 1],
    ]);
    expect(await database.seriesRollups.run()).toBe(0);
  });

  test("lose entries after their retention, but keep the rollups", async () => {
    const { database, today, append } = await opened({
      RawPolicy: raw(2 * day),
      Policies: [policy("ByDay", day)],
    });
    const start = today - 10 * day;
    const entries = Array.from(
      { length: 240 },
      (_, i) => [start + i * hour, i] as [number, number],
    );
    await append("Heart", ...entries);
    await database.seriesRollups.run();
    const kept = entriesOf(database, "Heart");
    expect(kept.every(({ time }) => time >= today - 2 * day)).toBe(true);
    expect(kept.length).toBeGreaterThan(20);
    expect(entriesOf(database, "Heart@ByDay").length).toBe(10);
    const total = (239 * 240) / 2;
    const aggregated = await query(
      database,
      "from Users select timeseries(from Heart select sum(), count(), first(), last())",
    );
    expect(aggregated.rows[0]).toMatchObject({
      Results: [{ Sum: [total], Count: [240], First: [0], Last: [239] }],
    });
    const byDay = await query(
      database,
      "from Users select timeseries(from Heart group by '1 day' select count())",
    );
    const { Results } = byDay.rows[0] as { Results: { Count: number[] }[] };
    expect(Results.map(({ Count }) => Count)).toEqual(Array(10).fill([24]));
    // Too late: the entries of this interval were already deleted.
    await append("Heart", [start + minute, 1_000_000]);
    await database.seriesRollups.run();
    expect(numbersOf(database, "Heart@ByDay")[0]).toEqual([start, 0, 23, 0, 23, 276, 24]);
    expect(entriesOf(database, "Heart").some(({ time }) => time < today - 2 * day)).toBe(false);
  });

  test("lose their policies, and the rollups stay readable under their own names", async () => {
    const { database, today, append } = await opened({
      RawPolicy: raw(day),
      Policies: [policy("ByHour", hour, 30 * day), policy("ByDay", day)],
    });
    await append("Heart", [today - 40 * day, 1], [today - 10 * day, 2]);
    await database.seriesRollups.run();
    expect(entriesOf(database, "Heart")).toEqual([]);
    expect(numbersOf(database, "Heart@ByHour").map(([time]) => time)).toEqual([today - 10 * day]);
    expect(numbersOf(database, "Heart@ByDay")).toHaveLength(2);
    const { rows } = await query(database, "from Users select timeseries(from Heart select sum())");
    expect(rows[0]).toMatchObject({ Count: 2, Results: [{ Sum: [3] }] });
  });

  test("accept entries under rollup names of existing policies", async () => {
    const { database, today, append } = await opened({ Policies: [policy("ByHour", hour)] });
    await append("Heart@byhour", [today, 1, 1, 1, 1, 1, 1]);
    expect(entriesOf(database, "Heart@ByHour")).toHaveLength(1);
    await expect(append("Heart@ByDay", [today, 1])).rejects.toMatchObject({
      code: "invalid-operation",
    });
  });

  test("are skipped if disabled, of another collection, or too wide", async () => {
    const rule = { RawPolicy: raw(day), Policies: [policy("ByHour", hour)] };
    const { database, today, append } = await opened(rule);
    await append("Wide", [today - 3 * day, 1, 2, 3, 4, 5, 6]);
    await database.seriesRollups.run();
    expect(entriesOf(database, "Wide")).toHaveLength(1);
    expect(entriesOf(database, "Wide@ByHour")).toEqual([]);
    await append("Heart", [today - 3 * day, 1]);
    for (const Collections of [
      parseSeriesCollections({ Users: { ...rule, Disabled: true } }),
      parseSeriesCollections({ Dogs: rule }),
    ]) {
      await database.putSettings({ TimeSeries: { Collections } });
      expect(await database.seriesRollups.run()).toBe(0);
      expect(entriesOf(database, "Heart")).toHaveLength(1);
    }
    expect(database.seriesRollups.isConfigured).toBe(true);
    await database.putSettings({ TimeSeries: null });
    expect(database.seriesRollups.isConfigured).toBe(false);
  });

  test("are rolled up later if a write failed", async () => {
    const { database, today, append } = await opened({
      Policies: [policy("ByHour", hour), policy("ByDay", day)],
    });
    const start = today - 2 * day;
    await append(
      "S",
      ...Array.from({ length: 48 }, (_, i) => [start + i * hour, i] as [number, number]),
    );
    // The hourly rollups are written, but not the daily ones.
    let writes = 0;
    const refuse = vi.spyOn(database, "write").mockImplementation(async (change, options) => {
      if (++writes > 1) throw new EngineError("disk-full", "The disk is full.");
      return await Store.prototype.write.call(database, change, options);
    });
    await database.seriesRollups.run().catch(() => undefined);
    refuse.mockRestore();
    expect(numbersOf(database, "S@ByDay")).toEqual([]);
    await database.seriesRollups.run();
    expect(numbersOf(database, "S@ByHour")).toHaveLength(48);
    expect(numbersOf(database, "S@ByDay").map((row) => row.at(-1))).toEqual([24, 24]);
  });

  test("have the same rollups as a model that computes all of them at the end, in any order of arrival", async () => {
    const step = fc.oneof(
      fc.record({
        at: fc.integer({ min: 0, max: 50 }),
        value: fc.integer({ min: -9, max: 9 }),
      }),
      fc.constantFrom("run", "run", "hours", "reopen"),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const rule = { Policies: [policy("P2", 2 * hour), policy("P6", 6 * hour)] };
        const files = new SimulatedFileSystem();
        let { database, clock, today, append } = await opened(rule, files);
        const start = today;
        const model = new Map<number, number>();
        for (const one of steps) {
          if (one === "run") await database.seriesRollups.run();
          else if (one === "hours") clock.advance(5 * hour);
          else if (one === "reopen") {
            await database.close();
            const environment = simulatedEnvironment(files);
            environment.clock.advance(
              clock.nowMicros() / 1000 - environment.clock.nowMicros() / 1000,
            );
            clock = environment.clock;
            database = await OpenDatabase.open(environment, "shop", "/data/shop");
            open.push(database);
          } else {
            const time = start + one.at * hour;
            await database.write((transaction) =>
              appendToSeries(transaction, "users/1", "S", [
                { time, values: [one.value], tag: null },
              ]),
            );
            model.set(time, one.value);
          }
        }
        await database.seriesRollups.run();
        const now = clock.nowMicros() / 1000;
        for (const [name, length] of [
          ["S@P2", 2 * hour],
          ["S@P6", 6 * hour],
        ] as const) {
          const groups = new Map<number, number[]>();
          for (const [time, value] of [...model].sort(([a], [b]) => a - b)) {
            const from = Math.floor(time / length) * length;
            if (from + length > Math.floor(now / length) * length) continue;
            groups.set(from, [...(groups.get(from) ?? []), value]);
          }
          const expected = [...groups].map(([from, values]) => [
            from,
            values[0],
            values.at(-1),
            Math.min(...values),
            Math.max(...values),
            values.reduce((sum, one) => sum + one, 0),
            values.length,
          ]);
          expect(numbersOf(database, name)).toEqual(expected);
        }
        void append;
        for (const one of open.splice(0)) if (one === database) await one.close();
      }),
      { numRuns: 30 },
    );
  });
});
