import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { processMemory } from "../../../engine/base/memory/memory-budget.ts";
import { setWorkLimits, workLimits } from "../../../engine/base/scheduling/work-budget.ts";
import { isCold } from "../../support/cold.ts";
import { type EndpointClient, startEndpointClient } from "../../support/endpoint-client.ts";
import { stopTestServers } from "../../support/start-test-server.ts";

let client: EndpointClient;

interface SeriesRow {
  readonly Count: number;
  readonly Results: readonly Record<string, unknown>[];
  readonly "@metadata": Record<string, unknown>;
}

interface Reply {
  readonly Results: readonly (SeriesRow & Record<string, SeriesRow>)[];
  readonly TimeSeriesFields?: readonly string[];
  readonly Message?: string;
}

const hour = 3_600_000;
const start = Date.parse("2023-05-01T08:00:00Z");
const timeText = (ms: number) => new Date(ms).toISOString().replace("Z", "0000Z");

const query = async (text: string, parameters: object | null = null, flags = "") =>
  (await client.json(`POST queries${flags}`, {
    Query: text,
    QueryParameters: parameters,
    WaitForNonStaleResults: true,
  })) as Reply;

beforeAll(async () => {
  client = await startEndpointClient();
  const user = (Name: string) => ({ Name, "@metadata": { "@collection": "Users" } });
  await client.send("PUT docs?id=users/1", user("Ada"));
  await client.send("PUT docs?id=users/2", user("Bob"));
  const appends = [60, 72, 66].map((value, i) => ({
    Timestamp: timeText(start + i * hour),
    Values: [value, 1],
  }));
  await client.send("POST timeseries?docId=users/1", { Name: "HeartRates", Appends: appends });
});

afterAll(stopTestServers);

describe("rows of series queries", () => {
  it("are results, with the metadata of projections", async () => {
    const { Results } = await query("from Users select timeseries(from HeartRates select max())");
    expect(Results.map(({ Count }) => Count).toSorted()).toEqual([0, 3]);
    const found = Results.find(({ Count }) => Count === 3);
    expect(found).toMatchObject({
      Results: [{ From: null, To: null, Key: null, Count: [3, 3], Max: [72, 1] }],
      "@metadata": { "@id": "users/1", "@projection": true, "@flags": "HasTimeSeries" },
    });
  });

  it("have the names of values on request", async () => {
    await client.send("POST timeseries/names/config", {
      Collection: "Users",
      TimeSeries: "HeartRates",
      ValueNames: ["Rate", "Other"],
    });
    const named = "?addTimeSeriesNames=true";
    const one = "from Users where id() = 'users/1' select";
    const alone = await query(`${one} timeseries(from HeartRates where Rate > 70)`, null, named);
    expect(alone.TimeSeriesFields).toEqual([]);
    expect(alone.Results).toMatchObject([
      {
        Count: 1,
        "@metadata": { "@timeseries-named-values": ["Rate", "Other"], "@id": "users/1" },
      },
    ]);
    const beside = await query(`${one} Name, timeseries(from HeartRates) as H`, null, named);
    expect(beside.TimeSeriesFields).toEqual(["H"]);
    expect(beside.Results[0]?.["H"]?.["@metadata"]).toEqual({
      "@timeseries-named-values": ["Rate", "Other"],
    });
    const plain = await query(`${one} timeseries(from HeartRates)`);
    expect(plain).not.toHaveProperty("TimeSeriesFields");
    expect(plain.Results[0]?.["@metadata"]).not.toHaveProperty("@timeseries-named-values");
  });

  it("are returned by static and automatic indexes", async () => {
    await client.send("PUT admin/indexes", {
      Indexes: [{ Name: "ByName", Maps: ["map('Users', u => ({ Name: u.Name }))"] }],
    });
    for (const source of ["index 'ByName'", "Users"]) {
      const found = await query(
        `from ${source} where Name = 'Ada' select timeseries(from HeartRates group by '2 h' select count())`,
      );
      expect(found.Results).toMatchObject([
        { Count: 3, Results: [{ Count: [2, 2] }, { Count: [1, 1] }] },
      ]);
    }
  });

  it("have another ETag after an append", async () => {
    const text = { Query: "from Users select timeseries(from HeartRates select count())" };
    const first = await client.send("POST queries", text);
    const etag = String(first.headers["etag"]);
    const again = await client.send("POST queries", text, { "if-none-match": etag });
    // A reopened database has another ETag.
    if (!isCold) expect(again.status).toBe(304);
    const Appends = [{ Timestamp: timeText(start + 3 * hour), Values: [61, 1] }];
    await client.send("POST timeseries?docId=users/1", { Name: "HeartRates", Appends });
    const changed = await client.send("POST queries", text, { "if-none-match": etag });
    expect(changed.status).toBe(200);
    const Deletes = [{ From: timeText(start + 3 * hour), To: null }];
    await client.send("POST timeseries?docId=users/1", { Name: "HeartRates", Deletes });
  });

  it("are lists in streams, after the metadata", async () => {
    const text =
      "from Users where id() = 'users/1' select timeseries(from HeartRates last 0 h) as C";
    const lines = await client.send("POST streams/queries?format=jsonl", { Query: text });
    const row = String(lines.body).split("\r\n")[1];
    expect(row).toMatch(/^\{"Item":\{"@metadata":\{.*\},"C":\[\{"Tag":null,.*\}\]\}\}$/);
    const unnamed = await client.json("POST streams/queries", {
      Query: "from Users where id() = 'users/2' select timeseries(from HeartRates)",
    });
    expect(unnamed).toMatchObject({ Results: [{ __timeSeriesQueryFunction0: [] }] });
  });
});

describe("scripts", () => {
  it("call declared series queries, and read series", async () => {
    const { Results } = await query(
      `declare timeseries hr(u, least) { from u.HeartRates where Value > least group by '1 d' select max() }
       declare function top(u) { return hr(u, 65).Results[0].Max[0]; }
       from Users as u where id() = 'users/1'
       select { Top: top(u), Low: hr(u, 0).Count, High: hr(u, 70).Count, Stats: timeseries(u, 'heartrates').getStats(),
                First: timeseries(u, 'HeartRates').get(null, '2023-05-01T08:00')[0].Values[0] }`,
      { any: 1 },
    );
    expect(Results).toMatchObject([
      { Top: 72, Low: 3, High: 1, First: 60, Stats: { Count: 3, Start: timeText(start) } },
    ]);
  });

  it("compute columns beside series queries in select", async () => {
    const { Results } = await query(
      `declare function name(u) { return u.Name + '!'; } declare timeseries hr(u) { from u.HeartRates }
       from Users as u where id() = 'users/1' select name(u) as N, hr(u) as H, timeseries(from u.HeartRates last 0 d) as L`,
    );
    expect(Results).toMatchObject([{ N: "Ada!", H: { Count: 3 }, L: { Count: 1 } }]);
  });

  it("call them with a limited number of distinct arguments", async () => {
    const reply = await query(
      `declare timeseries hr(u, x) { from u.HeartRates where Value > x }
       from Users as u where id() = 'users/1' select { All: Array.from({ length: 999 }, (_, i) => hr(u, i).Count) }`,
    );
    expect(reply.Message).toMatch(/more than 128 different arguments/);
  });

  it.each([
    [
      "declare function f(u) { timeseries(u, 'HeartRates').append('2023-01-01', 5); return {}; } from Users as u select f(u)",
    ],
    [
      "declare function f(u) { timeseries(u, 'HeartRates').delete(); return {}; } from Users as u select f(u)",
    ],
  ])("change nothing: %s", async (text) => {
    expect((await query(text)).Message).toMatch(/readonly/);
  });

  it("call only declared ones", async () => {
    const known = "declare timeseries hr(u) { from u.HeartRates }";
    for (const declared of ["", known]) {
      const reply = await query(
        `${declared} from Users as u select { X: __timeSeriesQuery('nope', []) }`,
        { any: 1 },
      );
      expect(reply).toMatchObject({ Message: expect.stringMatching(/not defined/) });
    }
    const odd = await query(
      "declare timeseries a-b(u) { from u.HeartRates } from Users as u select { X: u.Name }",
    );
    expect(odd).toHaveProperty("Type");
  });

  it("of patches cannot use series queries", async () => {
    const reply = await client.json("PATCH docs?id=users/1", {
      Patch: { Script: "__timeSeriesQuery('f', [])" },
    });
    expect(reply).toMatchObject({ Message: expect.stringMatching(/not defined/) });
    const declared = await client.json("PATCH queries", {
      Query: {
        Query: "declare timeseries f(u) { from u.A } from Users as u update { u.A = f(u) }",
      },
    });
    expect(declared).toMatchObject({ Type: "System.NotSupportedException" });
  });
});

describe("a long series", () => {
  const count = 120_000;

  beforeAll(async () => {
    await client.send("PUT docs?id=long/1", { "@metadata": { "@collection": "Longs" } });
    for (let from = 0; from < count; from += 20_000) {
      const Appends = Array.from({ length: 20_000 }, (_, i) => ({
        Timestamp: timeText(start + (from + i) * 1000),
        Values: [(from + i) % 1000],
        Tag: i % 3 === 0 ? "users/1" : null,
      }));
      await client.send("POST timeseries?docId=long/1", { Name: "Numbers", Appends });
    }
  });

  it("is sent in chunks, entry by entry", async () => {
    const { Results } = await query("from Longs select timeseries(from Numbers)");
    const [row] = Results;
    expect(row?.Count).toBe(count);
    expect(row?.Results).toHaveLength(count);
    expect(row?.Results[count - 1]).toEqual({
      Tag: null,
      Timestamp: timeText(start + (count - 1) * 1000),
      Values: [999],
      IsRollup: false,
    });
    const stream = (await client.json("POST streams/queries", {
      Query: "from Longs select timeseries(from Numbers where Value < 500) as N",
    })) as { Results: { N: unknown[] }[] };
    expect(stream.Results[0]?.N).toHaveLength(count / 2);
  });

  it("is aggregated completely, with the documents named by its tags", async () => {
    const { Results } = await query(
      `from Longs select timeseries(from Numbers load Tag as t where t.Name = 'Ada' group by '1 d', tag
       select count(), percentile(50), sum())`,
    );
    const groups = Results[0]?.Results as { Count: number[]; Key: string }[];
    expect(groups.map(({ Key }) => Key)).toEqual(
      ["users/1", "users/1", "users/1"].slice(0, groups.length),
    );
    expect(groups.reduce((sum, group) => sum + (group.Count[0] ?? 0), 0)).toBe(Results[0]?.Count);
    expect(Results[0]?.Count).toBe(6 * Math.ceil(20_000 / 3));
  });

  it("is rejected if it exceeds a query's memory, and nothing stays reserved", async () => {
    const limits = workLimits;
    setWorkLimits({ ...limits, bytesMax: 4 * 1024 * 1024 });
    try {
      expect((await query("from Longs select timeseries(from Numbers)")).Message).toMatch(
        /needs more than 4 MB of memory/,
      );
      const { Results } = await query("from Longs select timeseries(from Numbers select count())");
      expect(Results[0]?.Count).toBe(count);
      expect(processMemory.workBytesOf("queries")).toBe(0);
    } finally {
      setWorkLimits(limits);
    }
  });

  it("is read from one view while it changes", async () => {
    const reading = query("from Longs select timeseries(from Numbers select count(), sum())");
    const change = { Name: "Numbers", Deletes: [{ From: null, To: null }] };
    const [found] = await Promise.all([
      reading,
      client.send("POST timeseries?docId=long/1", change),
    ]);
    expect([0, count]).toContain(found.Results[0]?.Count);
  });
});
