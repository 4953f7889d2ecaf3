import { expect, test } from "vitest";
import { intervalFor, isSeriesResult, pointsOf } from "../../../studio/base/series-points.ts";

const entry = (minute: number, ...Values: unknown[]) => ({
  Timestamp: new Date(minute * 60_000).toISOString(),
  Tag: null,
  Values,
});

test("each value of the entries is a column", () => {
  const { times, columns } = pointsOf(
    [entry(0, 1, 10), entry(1, 2), entry(2, 3, "NaN")],
    ["Beats"],
  );
  expect(times).toEqual([0, 60, 120]);
  expect(columns).toEqual([
    { name: "Beats", values: [1, 2, 3] },
    { name: "value 2", values: [10, null, null] },
  ]);
});

test("a distance that is much longer than the others is a gap", () => {
  const minutes = [0, 1, 2, 3, 10, 11, 12, 14];
  const { times, columns } = pointsOf(minutes.map((minute) => entry(minute, minute)));
  expect(times).toEqual([0, 60, 120, 180, 390, 600, 660, 720, 840]);
  expect(columns[0]?.values).toEqual([0, 1, 2, 3, null, 10, 11, 12, 14]);
});

test("rollups are averages with bounds", () => {
  const rollup = { ...entry(0, 5, 7, 4, 9, 24, 4, 1, 1, 1, 1, 1, 1), IsRollup: true };
  expect(pointsOf([rollup]).columns).toEqual([
    { name: "value 1", values: [6], bounds: { low: [4], high: [9] } },
    { name: "value 2", values: [1] },
  ]);
});

test("groups have one column with bounds, or one for each aggregate and key", () => {
  const From = "1970-01-01T00:00:00.0000000Z";
  const To = "1970-01-01T01:00:00.0000000Z";
  const group = { From, To, Key: null, Count: [2], Min: [1], Max: [4], Average: [2.5] };
  expect(pointsOf([group])).toEqual({
    times: [0],
    columns: [{ name: "value", values: [2.5], bounds: { low: [1], high: [4] } }],
  });
  const keyed = ["a", "b"].map((Key, at) => ({ From, To, Key, Count: [1], Sum: [at], Last: [8] }));
  expect(pointsOf(keyed, ["Beats"]).columns).toEqual([
    { name: "a Sum Beats", values: [0] },
    { name: "a Last Beats", values: [8] },
    { name: "b Sum Beats", values: [1] },
    { name: "b Last Beats", values: [8] },
  ]);
  expect(pointsOf([{ From, To, Count: [3] }]).columns).toEqual([{ name: "Count", values: [3] }]);
  expect(pointsOf([{ From: null, To: null, Count: [3] }]).times).toEqual([]);
});

test("results of time series are recognized", () => {
  expect(isSeriesResult({ Count: 1, Results: [entry(0, 1)] })).toBe(true);
  expect(isSeriesResult({ Count: 1, Results: [{ From: "…", To: "…" }] })).toBe(true);
  expect(isSeriesResult({ Count: 0, Results: [] })).toBe(false);
  expect(isSeriesResult({ Count: 1, Results: [{ Name: "…" }] })).toBe(false);
  expect(isSeriesResult([1, 2])).toBe(false);
});

test("the interval of a range is the shortest usual one with few enough parts", () => {
  const hour = 3_600_000;
  expect(intervalFor(400, 500)).toBe("1 millisecond");
  expect(intervalFor(hour, 500)).toBe("10 seconds");
  expect(intervalFor(11.6 * 24 * hour, 500)).toBe("1 hour");
  expect(intervalFor(365 * 24 * hour, 500)).toBe("1 day");
  expect(intervalFor(9000 * 365.25 * 24 * hour, 500)).toBe("20 years");
});
