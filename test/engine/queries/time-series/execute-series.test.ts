import { describe, expect, test } from "vitest";
import { setWorkLimits, workLimits } from "../../../../engine/base/scheduling/work-budget.ts";
import type { SeriesEntry } from "../../../../engine/state/keyspaces/time-series/series-segment.ts";
import { seriesKey } from "../../../../engine/state/keyspaces/time-series/time-series.ts";
import { SeededRandom } from "../../../support/random.ts";
import { ArrayDatabase } from "../execution/execute-array-host.ts";

const entry = (time: string, values: number[], tag: string | null = null): SeriesEntry => ({
  time: Date.parse(`${time}Z`),
  values,
  tag,
});

/** The expected results below were measured on RavenDB 7.2.7. */
const gaps = [
  entry("2023-01-10T01:00", [1, 10], "a"),
  entry("2023-01-10T01:30", [3, 20], "a"),
  entry("2023-01-10T01:50", [5, 30], "b"),
  entry("2023-01-10T05:10", [9], "a"),
  entry("2023-01-10T08:20", [20, 100], "b"),
  entry("2023-04-20T08:20", [21, 100, 7], "b"),
  entry("2023-09-20T08:20", [30, 1], "b"),
];

function databaseWith(entries: readonly SeriesEntry[], names: readonly string[] = ["Gap"]) {
  const database = new ArrayDatabase();
  database.put(
    "users/1",
    '{"Name":"Ann","Age":9,"From":"2023-01-10T01:30","Tags":["a"],"@metadata":{"@collection":"Users"}}',
  );
  database.put("a", '{"Brand":"A","Deep":{"City":"X"},"@metadata":{"@collection":"Watches"}}');
  for (const name of names) database.series.set(seriesKey("users/1", name), entries);
  return database;
}

interface Group {
  readonly From: string | null;
  readonly To: string | null;
  readonly Key: unknown;
  readonly [aggregate: string]: unknown;
}

interface Reply {
  readonly Count: number;
  readonly Results: (Group & { Values: number[]; Tag: string | null; Timestamp: string })[];
}

async function rows(
  query: string,
  parameters: object | null = null,
  database = databaseWith(gaps),
) {
  const reply = await database.query(query, parameters);
  return reply.rows.map((row) => JSON.parse(row) as Record<string, unknown>);
}

async function series(body: string, parameters: object | null = null): Promise<Reply> {
  const query = `from Users where id() = 'users/1' select timeseries(${body})`;
  const [row] = await rows(query, parameters);
  return row as unknown as Reply;
}

const values = ({ Results }: Reply) => Results.map(({ Values }) => Values[0]);
const starts = ({ Results }: Reply) => Results.map(({ From }) => From?.slice(0, 16));
const column = ({ Results }: Reply, key: string) => Results.map((result) => result[key]);

describe("raw entries", () => {
  test("have their tags, and numbers that are doubles", async () => {
    const { rows: texts } = await databaseWith(gaps.slice(2, 4)).query(
      "from Users where id() = 'users/1' select timeseries(from Gap)",
    );
    expect(texts[0]).toContain(
      '{"Count":2,"Results":[{"Tag":"b","Timestamp":"2023-01-10T01:50:00.0000000Z","Values":[5.0,30.0],"IsRollup":false},' +
        '{"Tag":"a","Timestamp":"2023-01-10T05:10:00.0000000Z","Values":[9.0],"IsRollup":false}],"@metadata":{"@projection":true,',
    );
  });

  test("are those of a range, bounds included", async () => {
    const between = "from Gap between '2023-01-10T01:30' and '2023-01-10T05:10'";
    expect(values(await series(between))).toEqual([3, 5, 9]);
    expect(values(await series("from Gap between $a and $b", { a: "2023-04", b: "2024" }))).toEqual(
      [21, 30],
    );
    expect(values(await series("from gap last 0 days"))).toEqual([30]);
    expect(values(await series("from Gap first 1h"))).toEqual([1, 3, 5]);
    expect(values(await series("from Gap last 6 months"))).toEqual([21, 30]);
    expect(values(await series("from Gap between '2024' and '2023'"))).toEqual([]);
    expect(await series("from Nothing group by '1 h'")).toMatchObject({ Count: 0, Results: [] });
  });

  test("are scaled and shifted: times without time zone", async () => {
    const reply = await series("from Gap where Value = 1 scale 2 offset '-02:00'");
    expect(reply.Results).toMatchObject([
      { Timestamp: "2023-01-09T23:00:00.0000000", Values: [2, 20] },
    ]);
  });
});

describe("where", () => {
  test.each([
    ["Value > 9", [20, 21, 30]],
    ["Values[1] = null", [9]],
    ["Values[2] != null", [21]],
    ["Values[9] > 1", []],
    ["Value in (20, 30)", [20, 30]],
    ["Value between 2 and 5", [3, 5]],
    ["Value > 2 and not (Tag = 'a' or Value = 20)", [5, 21, 30]],
    ["Tag in ('b', null) and Value < 6", [5]],
    ["Tag > 'a'", [5, 20, 21, 30]],
    ["Value = '20'", []],
    ["Value > null", []],
    ["Timestamp = '2023-01-10T01:30'", [3]],
    ["Timestamp > '2023-02'", [21, 30]],
    ["Value < Values[1]", [1, 3, 5, 20, 21]],
    ["Value > 0 or Foo = 5", [1, 3, 5, 9, 20, 21, 30]],
    ["Value = 100000 and Foo = 5", []],
  ])("%s", async (where, expected) => {
    expect(values(await series(`from Gap where ${where}`))).toEqual(expected);
  });

  test.each([
    ["Foo = 1", "'Foo' is unknown"],
    ["true", "Unsupported expression 'true'"],
    ["startsWith(Tag, 'a')", "Unsupported expression"],
    ["Value > '3'", "failed to execute expression"],
    ["Value in (20, '9')", "failed to execute InExpression"],
    ["Value all in (20)", "'ALL IN' is not supported"],
    ["Tag between 'a' and 'b'", "failed to execute BetweenExpression"],
    ["Timestamp > 5", "failed to execute expression"],
    ["Value[0] = 1", "Failed to evaluate expression"],
    ["9 < Value", "Failed to parse filter expression"],
  ])("%s is rejected", async (where, message) => {
    await expect(series(`from Gap where ${where}`)).rejects.toThrow(
      expect.objectContaining({ code: "query-invalid", message: expect.stringContaining(message) }),
    );
  });

  test("reads the documents named by tags", async () => {
    const load = "from Gap load Tag as w where";
    expect(values(await series(`${load} w.Brand = 'A'`))).toEqual([1, 3, 9]);
    expect(values(await series(`${load} w.Brand != 'A'`))).toEqual([5, 20, 21, 30]);
    expect(values(await series(`${load} w.Deep.City = 'X' and Value > 1`))).toEqual([3, 9]);
    expect(values(await series(`${load} w = null`))).toEqual([5, 20, 21, 30]);
    await expect(series(`${load} w.Nope = 1`)).rejects.toThrow("does not have a property");
    const byCity = await series(`${load} w != null group by '1 y', w.Deep select count()`);
    expect(byCity.Results).toMatchObject([{ Key: { City: "X" }, Count: [3, 2] }]);
  });
});

describe("groups", () => {
  test("have all aggregates without a select, and leave out empty intervals", async () => {
    const reply = await series("from Gap where Timestamp < '2023-02' group by 1h");
    expect(reply).toMatchObject({
      Count: 5,
      Results: [
        {
          From: "2023-01-10T01:00:00.0000000Z",
          To: "2023-01-10T02:00:00.0000000Z",
          Key: null,
          First: [1, 10],
          Last: [5, 30],
          Min: [1, 10],
          Max: [5, 30],
          Sum: [9, 60],
          Count: [3, 3],
          Average: [3, 20],
        },
        { Count: [1], Max: [9] },
        { Count: [1, 1], Max: [20, 100] },
      ],
    });
  });

  test("have a second key, in the order of first entries", async () => {
    const reply = await series("from Gap group by '1 month', tag select max()");
    expect(reply.Results.map(({ Key, Max }) => [Key, Max])).toEqual([
      ["a", [9, 20]],
      ["b", [20, 100]],
      ["b", [21, 100, 7]],
      ["b", [30, 1]],
    ]);
  });

  test("support percentiles, slopes and deviations", async () => {
    const reply = await series(
      "from Gap group by '1 day' select stddev(), slope(), percentile(50)",
    );
    expect(reply.Results[0]).toMatchObject({
      Count: [5, 4],
      StandardDeviation: [7.536577472566709, 40.824829046386306],
      Slope: [2.199074074074074e-7, 1.0416666666666667e-6],
      Percentile: [5, 25],
    });
    expect(reply.Results[1]).toMatchObject({
      StandardDeviation: ["NaN", "NaN", "NaN"],
      Slope: [0, 0, 0],
    });
    const whole = await series("from Gap select percentile(50), percentile(33.3) as P");
    expect(whole.Results).toMatchObject([
      { From: null, To: null, Count: [7, 6, 1], P: [4.327999999999999, 13.309999999999995, 7] },
    ]);
  });

  test("are scaled except for counts and averages", async () => {
    const reply = await series("from Gap select max(), avg(), count() scale 0.5");
    expect(reply.Results).toMatchObject([{ Max: [15, 50, 3.5], Count: [7, 6, 1] }]);
    expect((reply.Results[0] as unknown as { Average: number[] }).Average[2]).toBe(7);
  });

  test("without group by have the bounds of the range", async () => {
    const reply = await series("from Gap first 1 month select count()");
    expect(reply.Results).toMatchObject([{ From: null, To: "2023-02-10T01:00:00.0000000Z" }]);
  });

  test("treat a missing parameter as no grouping", async () => {
    const grouped = await series("from Gap group by $g select count()", { g: "1 y" });
    expect(starts(grouped)).toEqual(["2023-01-01T00:00"]);
    expect(starts(await series("from Gap group by $g select count()", { x: 1 }))).toEqual([
      undefined,
    ]);
  });

  test.each([
    ["select median()", "invalid-argument"],
    ["select min", "invalid-argument"],
    ["select percentile()", "invalid-argument"],
    ["select percentile('50')", "invalid-argument"],
    ["select percentile(0)", "out-of-range"],
    ["select percentile(101)", "out-of-range"],
    ["select slope()", "invalid-operation"],
    ["scale 'x'", "invalid-operation"],
    ["offset 'x'", "invalid-operation"],
    ["offset 5", "invalid-operation"],
    ["offset '10000000.00:00'", "out-of-range"],
    ["group by tag", "query-syntax"],
    ["group by '1 h', w.Brand", "query-invalid"],
    ["group by '1 h' with interpolation(cubic)", "invalid-argument"],
    ["group by '1 h' with interpolation()", "invalid-argument"],
    ["group by '1 h' with foo(linear)", "invalid-argument"],
    ["between 'a' and 'b'", "invalid-argument"],
    ["between null and '2023'", "invalid-argument"],
    ["between '2023' and '2024' last 1 h", "query-invalid"],
    ["load Other as o", "query-invalid"],
    ["foo", "query-syntax"],
    [", Steps", "query-syntax"],
    ["scale 2 scale 3", "query-syntax"],
  ])("%s is rejected", async (rest, code) => {
    await expect(series(`from Gap ${rest}`)).rejects.toThrow(expect.objectContaining({ code }));
  });
});

describe("interpolation", () => {
  const hours = "from Gap where Timestamp < '2023-02' group by '1 h' with interpolation";

  test("is linear, also for counts and numbers that both neighbors have", async () => {
    const reply = await series(`${hours}(linear) select count(), max()`);
    expect(reply.Count).toBe(13);
    expect(column(reply, "Count")).toEqual([[3, 3], [2.5], [2], [1.5], [1], [1], [1], [1, 1]]);
    expect(column(reply, "Max")).toEqual([
      [5, 30],
      [24.75],
      [19.5],
      [14.25],
      [9],
      [12.666666666666666],
      [16.333333333333332],
      [20, 100],
    ]);
  });

  test.each([
    ["nearest", [5, 5, 5, 9, 9, 9, 20, 20]],
    ["last", [5, 5, 5, 5, 9, 9, 9, 20]],
    ["next", [5, 9, 9, 9, 9, 20, 20, 20]],
  ])("%s", async (word, expected) => {
    const reply = await series(`${hours}(${word}) select max()`);
    expect(column(reply, "Max").map((numbers) => (numbers as number[])[0])).toEqual(expected);
  });

  test("handles months of different lengths", async () => {
    const reply = await series(
      "from Gap group by '1 month' with interpolation(linear) select max()",
    );
    expect(reply.Count).toBe(17);
    expect(column(reply, "Max").slice(0, 5)).toEqual([
      [20, 100],
      [20.344444444444445, 100],
      [20.655555555555555, 100],
      [21, 100, 7],
      [22.764705882352942, 5.823529411764706],
    ]);
  });

  test("fills each key separately", async () => {
    const reply = await series(
      "from Gap where Timestamp < '2023-02' group by '1 h', tag with interpolation(last) select max()",
    );
    const hoursOf = (key: string) =>
      reply.Results.filter(({ Key }) => Key === key).map(({ From }) => From?.slice(11, 13));
    expect(hoursOf("a")).toEqual(["01", "02", "03", "04", "05"]);
    expect(hoursOf("b")).toEqual(["01", "02", "03", "04", "05", "06", "07", "08"]);
  });

  test("of a long gap in small steps stops at the limit of work or memory", async () => {
    const far = [entry("0002-01-01T00:00", [1]), entry("9998-01-01T00:00", [1])];
    const query =
      "from Users where id() = 'users/1' select timeseries(from Gap group by '1 ms' with interpolation(last))";
    const limits = workLimits;
    setWorkLimits({ ...limits, unitsMax: 3_000_000 });
    try {
      await expect(rows(query, null, databaseWith(far))).rejects.toThrow(
        expect.objectContaining({ code: "work-limit" }),
      );
    } finally {
      setWorkLimits(limits);
    }
  });
});

describe("columns", () => {
  test("have aliases, or names by position", async () => {
    const [row] = await rows(
      "from Users as u where id(u) = 'users/1' select u.Name, timeseries(from u.Gap last 0 days) as G, timeseries(from Gap first 0 days)",
    );
    expect(row).toMatchObject({
      Name: "Ann",
      G: { Count: 1, Results: [{ Values: [30, 1] }] },
      __timeSeriesQueryFunction1: { Count: 1, Results: [{ Values: [1, 10] }] },
    });
    expect(Object.keys(row ?? {}).at(-1)).toBe("@metadata");
  });

  test("may come from documents that the query loads", async () => {
    const database = databaseWith(gaps);
    database.put("users/2", '{"Friend":"users/1","@metadata":{"@collection":"Users"}}');
    const query = `from Users as u where id(u) = $id load u.Friend as f select timeseries(from f.Gap last 0 days)`;
    expect(await rows(query, { id: "users/2" }, database)).toMatchObject([{ Count: 1 }]);
    expect(await rows(query, { id: "users/1" }, database)).toMatchObject([{ Count: 0 }]);
  });

  test("duplicates are removed by distinct", async () => {
    const database = databaseWith(gaps);
    database.put("users/2", '{"@metadata":{"@collection":"Users"}}');
    database.put("users/3", '{"@metadata":{"@collection":"Users"}}');
    const reply = await rows(
      "from Users select distinct timeseries(from Gap last 0 days)",
      null,
      database,
    );
    expect(reply.map(({ Count }) => Count)).toEqual([1, 0]);
  });
});

describe("declared functions", () => {
  const declared = (parameters: string, body: string, call: string) =>
    `declare timeseries f(${parameters}) { ${body} } from Users as u where id(u) = 'users/1' select ${call}`;

  test("accept documents, values and fields of documents", async () => {
    const above = declared("u, x", "from u.Gap where Value > u.Age and Value < x", "f(u, 25) as G");
    expect(await rows(above)).toMatchObject([{ G: { Count: 2 } }]);
    const range = declared("u", "from u.Gap between u.From and '2023-01-10T05:10'", "f(u)");
    expect(await rows(range)).toMatchObject([{ Count: 3 }]);
    const tagged = declared("u, t", "from u.Gap where Tag = t", "f(u, 'a')");
    expect(await rows(tagged)).toMatchObject([{ Count: 3 }]);
    expect(await rows(declared("name", "from name last 0 days", "f('Gap')"))).toMatchObject([
      { Count: 1 },
    ]);
    const parameter = declared("u, x", "from u.Gap where Value > $y and Value > x", "f(u, $x)");
    expect(await rows(parameter, { x: 8, y: 20 })).toMatchObject([{ Count: 2 }]);
  });

  test("use the row and null for missing arguments", async () => {
    expect(await rows(declared("u, x", "from u.Gap where Tag = x", "f(u)"))).toMatchObject([
      { Count: 0 },
    ]);
    expect(await rows(declared("", "from Gap", "f()"))).toMatchObject([{ Count: 7 }]);
    await expect(rows(declared("u, x", "from u.Gap", "f()"))).rejects.toThrow(
      "Expected '2' arguments",
    );
  });

  test.each([
    ["s", "", "f(u)", "query-syntax"],
    ["s", "from s.Gap foo", "f(u)", "query-syntax"],
    ["s", "from n.Gap", "f(u)", "query-invalid"],
    ["s", "from s", "f(u)", "query-invalid"],
    ["s, n", "from s.Gap group by n", "f(u)", "query-syntax"],
    ["s, n", "from s.Gap scale n", "f(u)", "query-invalid"],
    ["5", "from s.Gap", "f(u)", "query-invalid"],
    ["s", "from s.Gap where Value > s", "f(u)", "query-invalid"],
  ])("f(%s) { %s } is rejected", async (parameters, body, call, code) => {
    await expect(rows(declared(parameters, body, call))).rejects.toThrow(
      expect.objectContaining({ code }),
    );
  });
});

test("groups of random entries equal those of a simple computation", async () => {
  const seed = 0x5e12;
  const random = new SeededRandom(seed);
  const entries: SeriesEntry[] = [];
  let time = Date.parse("2023-01-01T00:00Z");
  for (let i = 0; i < 3000; i++) {
    time += 1 + random.below(100_000);
    entries.push({ time, values: [random.below(100) - 50, random.next()], tag: null });
  }
  const query =
    "from Users where id() = 'users/1' select timeseries(from Gap where Value > -20 group by '1 h' select min(), max(), sum(), avg(), percentile(75), count())";
  const [row] = await rows(query, null, databaseWith(entries));
  const groups = new Map<number, number[]>();
  for (const {
    time: at,
    values: [value = 0],
  } of entries) {
    if (value <= -20) continue;
    const hour = Math.floor(at / 3_600_000);
    groups.set(hour, [...(groups.get(hour) ?? []), value]);
  }
  const expected = [...groups.values()].map((all) => {
    const sorted = all.toSorted((a, b) => a - b);
    const rank = Math.min(all.length, Math.max(1, 0.75 * (all.length + 1)));
    const low = sorted[Math.floor(rank) - 1] as number;
    const high = sorted[Math.ceil(rank) - 1] as number;
    const sum = all.reduce((a, b) => a + b, 0);
    return [
      sorted[0],
      sorted.at(-1),
      sum,
      sum / all.length,
      low + (rank % 1) * (high - low),
      all.length,
    ];
  });
  const found = (row as unknown as Reply).Results.map((group) =>
    ["Min", "Max", "Sum", "Average", "Percentile", "Count"].map(
      (key) => (group[key] as number[])[0],
    ),
  );
  expect(found, `seed ${seed}`).toEqual(expected);
});
