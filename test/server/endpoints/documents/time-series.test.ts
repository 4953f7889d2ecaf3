import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from "vitest";
import { isCold } from "../../../support/cold.ts";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { stopTestServers } from "../../../support/start-test-server.ts";

let client: EndpointClient;
let id: string;
let count = 0;

beforeAll(async () => {
  client = await startEndpointClient();
  await client.send("PUT docs?id=watches/1", { name: "watch" });
});

afterAll(stopTestServers);

beforeEach(async () => {
  id = `users/${++count}`;
  await client.send(`PUT docs?id=${id}`, { "@metadata": { "@collection": "Users" } });
});

const at = (second: number) => `2020-01-01T00:00:0${second}.0000000Z`;
const entry = (second: number, values: number[], tag: string | null = null) => ({
  Timestamp: at(second),
  Tag: tag,
  Values: values,
  IsRollup: false,
});
const post = (name: string, change: object, document = id) =>
  client.send(`POST timeseries?docId=${document}`, { Name: name, ...change });
const get = (query: string) => client.json(`GET timeseries?docId=${id}&${query}`);
const typeOf = (json: unknown) => (json as { Type: string }).Type;

/** Entries at seconds 1, 2, 3 and 5. */
async function fill(name = "Heart"): Promise<void> {
  const reply = await post(name, {
    Appends: [
      { Timestamp: at(3), Values: [3, 4.5] },
      { Timestamp: at(1), Values: [1], Tag: "watches/1" },
      { Timestamp: "2020-01-01T00:00:02", Values: ["2"] },
      { Timestamp: at(5), Values: [0.25, 1e21] },
    ],
  });
  expect(reply.status).toBe(204);
  expect(reply.body).toHaveLength(0);
}

describe("GET timeseries", () => {
  it("returns all entries in time order, in any spelling of the name", async () => {
    await fill();
    expect(await get("name=HEART")).toEqual({
      From: null,
      To: null,
      Entries: [
        entry(1, [1], "watches/1"),
        entry(2, [2]),
        entry(3, [3, 4.5]),
        entry(5, [0.25, 1e21]),
      ],
      TotalResults: 4,
    });
  });

  it.each([
    ["start=1&pageSize=2", at(2), at(3), [2, 3], 4],
    ["pageSize=4", null, null, [1, 2, 3, 5], 4],
    ["start=9", at(5), null, [], 4],
    ["pageSize=0", null, null, [], 4],
    [`from=${at(2)}&to=${at(4)}`, at(2), at(4), [2, 3], undefined],
    [`from=${at(2)}&start=1&pageSize=1`, at(3), at(3), [3], undefined],
    [`from=${at(0)}&to=${at(5)}`, at(0), at(5), [1, 2, 3, 5], 4],
    [`from=${at(5)}&to=${at(2)}`, at(5), at(2), [], undefined],
    [`from=${at(6)}`, at(6), null, [], undefined],
  ])("with %s returns From %s, To %s and entries %j", async (query, from, to, seconds, total) => {
    await fill();
    const reply = (await get(`name=Heart&${query}`)) as {
      From: unknown;
      To: unknown;
      Entries: { Timestamp: string }[];
      TotalResults?: number;
    };
    expect(reply.Entries.map(({ Timestamp }) => Timestamp)).toEqual(seconds.map(at));
    expect([reply.From, reply.To, reply.TotalResults]).toEqual([from, to, total]);
  });

  it("includes the document and those named by tags", async () => {
    await fill();
    const reply = await get("name=Heart&includeDocument=true&includeTags=true");
    expect(Object.keys((reply as { Includes: object }).Includes)).toEqual([id, "watches/1"]);
    const page = await get("name=Heart&includeTags=true&start=1");
    expect(page).not.toHaveProperty("Includes");
  });

  it("returns 304 until the series or an included document changes", async () => {
    await fill();
    const path = `GET timeseries?docId=${id}&name=Heart&includeTags=true`;
    const etagOf = async () => (await client.send(path)).headers.etag as string;
    const etag = await etagOf();
    expect((await client.send(path, undefined, { "if-none-match": etag })).status).toBe(304);
    await post("Other", { Appends: [{ Timestamp: at(1), Values: [1] }] });
    expect(await etagOf()).toBe(etag);
    await client.send("PUT docs?id=watches/1", { name: "another" });
    const changed = await etagOf();
    expect(changed).not.toBe(etag);
    await post("Heart", { Deletes: [{ From: at(5), To: null }] });
    expect(await etagOf()).not.toBe(changed);
  });

  it("returns 404 for a missing series, 400 for an invalid request", async () => {
    await fill();
    const statusOf = async (query: string) => (await client.send(`GET timeseries?${query}`)).status;
    expect(await statusOf(`docId=${id}&name=none`)).toBe(404);
    expect(await statusOf("docId=none&name=Heart")).toBe(404);
    expect(await statusOf(`docId=${id}`)).toBe(400);
    expect(await statusOf(`docId=${id}&name=Heart&from=bad`)).toBe(400);
    expect(await statusOf(`docId=${id}&name=Heart&pageSize=-1`)).toBe(400);
  });

  it("keeps bounds with a precision below a millisecond", async () => {
    await fill();
    const [from, to] = ["2020-01-01T00:00:01.0000001Z", "2020-01-01T00:00:03.0000009Z"];
    const range = { From: from, To: to, Entries: [entry(2, [2]), entry(3, [3, 4.5])] };
    expect(await get(`name=Heart&from=${from}&to=${to}`)).toEqual(range);
    expect(await get(`name=Heart&from=${at(1)}&to=2020-01-01T00:00:01.9999999Z`)).toMatchObject({
      Entries: [entry(1, [1], "watches/1")],
    });
    const ranges = await client.json(
      `GET timeseries/ranges?docId=${id}&name=Heart&from=${from}&to=${to}`,
    );
    expect(ranges).toEqual({ Id: id, Values: { Heart: [range] } });
    const loaded = await client.json(`GET docs?id=${id}&timeseries=Heart&from=${from}&to=${to}`);
    expect(loaded).toMatchObject({ TimeSeriesIncludes: { [id]: { Heart: [range] } } });
    const Query = `from Users where id() = '${id}' include timeseries('Heart', '${from}', $to)`;
    const found = await client.json("POST queries", { Query, QueryParameters: { to } });
    expect(found).toMatchObject({ TimeSeriesIncludes: { [id]: { Heart: [range] } } });
  });

  it("uses the first and the last timestamp for open bounds", async () => {
    await fill();
    const bounds = "from=0001-01-01T00:00:00.0000000Z&to=9999-12-31T23:59:59.9999999Z";
    expect(await get(`name=Heart&${bounds}`)).toMatchObject({ From: null, To: null });
  });

  it("streams a long series", async () => {
    const appends = Array.from({ length: 20_000 }, (_, i) => [1_577_836_800_000 + i, 2, i, i / 3]);
    await client.send("POST bulk_docs", {
      Commands: [
        { Type: "TimeSeriesBulkInsert", Id: id, TimeSeries: { Name: "Long", Appends: appends } },
      ],
    });
    const { Entries } = (await get("name=Long")) as { Entries: { Values: number[] }[] };
    expect(Entries.map(({ Values }) => Values)).toEqual(appends.map(([, , a, b]) => [a, b]));
  });
});

describe("GET timeseries/ranges", () => {
  const ranges = (query: string) =>
    client.json(`GET timeseries/ranges?docId=${id}&${query}`) as Promise<{
      Values: Record<string, { From: unknown; Entries: object[]; TotalResults?: number }[]>;
    }>;

  it("returns several ranges of several series", async () => {
    await fill();
    await fill("Steps");
    const { Values } = await ranges(
      `name=Heart&from=&to=&name=Steps&from=${at(2)}&to=${at(3)}&name=heart&from=${at(5)}&to=`,
    );
    expect(Object.keys(Values)).toEqual(["Heart", "Steps"]);
    expect(Values["Heart"]?.map(({ Entries }) => Entries.length)).toEqual([4, 1]);
    expect(Values["Heart"]?.map(({ TotalResults }) => TotalResults)).toEqual([4, undefined]);
    expect(Values["Steps"]).toEqual([
      { From: at(2), To: at(3), Entries: [entry(2, [2]), entry(3, [3, 4.5])] },
    ]);
  });

  it("pages through all of them together", async () => {
    await fill();
    await fill("Steps");
    const both = "name=Heart&from=&to=&name=Steps&from=&to=";
    const page = await ranges(`${both}&start=3&pageSize=2`);
    expect(page.Values["Heart"]?.[0]?.Entries).toEqual([entry(5, [0.25, 1e21])]);
    expect(page.Values["Steps"]?.[0]?.Entries).toEqual([entry(1, [1], "watches/1")]);
    expect(page.Values["Steps"]?.[0]).not.toHaveProperty("TotalResults");
    expect((await ranges(`${both}&pageSize=4`)).Values).not.toHaveProperty("Steps");
    expect((await ranges(`${both}&pageSize=0`)).Values).toEqual({});
  });

  it("requires every series to exist, and as many bounds as names", async () => {
    await fill();
    const statusOf = async (query: string) =>
      (await client.send(`GET timeseries/ranges?docId=${id}&${query}`)).status;
    expect(await statusOf("name=Heart&from=&to=&name=none&from=&to=")).toBe(404);
    expect(await statusOf("name=Heart")).toBe(400);
    expect(await statusOf("name=Heart&from=&to=&from=")).toBe(400);
    expect(await statusOf("name=Heart&name=Heart&from=&to=")).toBe(400);
    expect(await statusOf("name=Heart&from=x&to=")).toBe(400);
  });
});

describe("GET timeseries/stats", () => {
  it("returns size and bounds of each series", async () => {
    await fill("b");
    await post("A", { Appends: [{ Timestamp: at(7), Values: [1] }] });
    expect(await client.json(`GET timeseries/stats?docId=${id}`)).toEqual({
      DocumentId: id,
      TimeSeries: [
        { Name: "A", NumberOfEntries: 1, StartDate: at(7), EndDate: at(7) },
        { Name: "b", NumberOfEntries: 4, StartDate: at(1), EndDate: at(5) },
      ],
    });
    expect((await client.send("GET timeseries/stats?docId=none")).status).toBe(404);
  });

  it("is included in the statistics of the database and of the collection", async () => {
    const counts = async () => {
      const all = (await client.json("GET stats")) as { CountOfTimeSeriesSegments: number };
      const detailed = (await client.json("GET collections/stats/detailed")) as {
        Collections: { Users: { CountOfTimeSeriesSegments: number } };
      };
      return [all.CountOfTimeSeriesSegments, detailed.Collections.Users.CountOfTimeSeriesSegments];
    };
    const before = await counts();
    await fill();
    expect(await counts()).toEqual(before.map((number) => number + 1));
  });
});

describe("POST timeseries", () => {
  it("deletes first, then stores", async () => {
    await fill();
    await post("Heart", {
      Appends: [{ Timestamp: at(8), Values: [8] }],
      Deletes: [{ From: null, To: null }],
    });
    expect(await get("name=Heart")).toMatchObject({ Entries: [entry(8, [8])], TotalResults: 1 });
  });

  it("adds increments, and lists the values per node on request", async () => {
    await post("INC:d", { Increments: [{ Timestamp: at(1), Values: [1] }] });
    await post("INC:d", { Increments: [{ Timestamp: at(1), Values: [2, 1] }] });
    const { Entries } = (await get("name=inc:d&full=true")) as {
      Entries: { Values: number[]; Tag: string; NodeValues: Record<string, number[]> }[];
    };
    expect(Entries).toMatchObject([{ Values: [3, 1] }]);
    expect(Entries[0]?.Tag).toMatch(/^TC:INC-.{22}$/);
    expect(Object.keys(Entries[0]?.NodeValues ?? {})[0]).toMatch(/^A-.{22}$/);
    expect(await get("name=inc:d")).not.toHaveProperty("Entries.0.NodeValues");
  });

  it.each([
    ["System.FormatException", { Appends: [{ Timestamp: "bad", Values: [1] }] }],
    ["System.FormatException", { Appends: [{ Timestamp: "2020-01-01", Values: [1] }] }],
    ["System.FormatException", { Appends: [{ Timestamp: 5, Values: [1] }] }],
    ["System.FormatException", { Appends: [{ Timestamp: at(1), Values: ["a"] }] }],
    ["System.FormatException", { Appends: [{ Timestamp: at(1), Values: 5 }] }],
    ["System.FormatException", { Appends: "x" }],
    ["System.FormatException", { Deletes: [{ From: "x" }] }],
    ["System.IO.InvalidDataException", { Appends: [{ Values: [1] }] }],
    ["System.IO.InvalidDataException", { Appends: [{ Timestamp: at(1) }] }],
    ["System.IO.InvalidDataException", { Appends: [{ Timestamp: at(1), Values: [] }] }],
    [
      "System.IO.InvalidDataException",
      {
        Appends: [
          { Timestamp: "2020-01-01T00:00:00.1231", Values: [1] },
          { Timestamp: "2020-01-01T00:00:00.1239", Values: [2] },
        ],
      },
    ],
    [
      "System.ArgumentOutOfRangeException",
      { Appends: [{ Timestamp: at(1), Values: new Array(33).fill(1) }] },
    ],
    [
      "Raven.Server.Documents.TimeSeries.NanValueException",
      { Appends: [{ Timestamp: at(1), Values: ["NaN"] }] },
    ],
    ["System.InvalidOperationException", { Increments: [{ Timestamp: at(1), Values: [1] }] }],
  ])("rejects with %s the request: %j", async (type, change) => {
    const reply = await post("Heart", change);
    expect(reply.status).toBe(400);
    expect(typeOf(reply.json)).toBe(type);
    expect(await client.json(`GET timeseries/stats?docId=${id}`)).toMatchObject({ TimeSeries: [] });
  });

  it("rejects invalid names, and missing documents", async () => {
    const Appends = [{ Timestamp: at(1), Values: [1] }];
    expect(typeOf((await post("a@b", { Appends })).json)).toBe("System.InvalidOperationException");
    expect(typeOf((await post("INC:a", { Appends })).json)).toBe(
      "System.InvalidOperationException",
    );
    for (const name of ["", "a\u0000b"]) {
      expect((await post(name, { Appends })).status).toBe(400);
    }
    expect(typeOf((await post("a", { Appends }, "none")).json)).toMatch(
      /DocumentDoesNotExistException$/,
    );
  });

  it("stores policies of collections, in the order of their times", async () => {
    const seconds = (Value: number) => ({ Value, Unit: "Second" });
    const forever = { Value: 2_147_483_647, Unit: "None" };
    const policy = (Name: string, every: number, kept: object = forever) => ({
      Name,
      RetentionTime: kept,
      AggregationTime: seconds(every),
    });
    const configure = (rule: object, more = {}) =>
      client.send("POST admin/timeseries/config", { Collections: { Users: rule }, ...more });
    expect((await client.send("GET timeseries/config")).status).toBe(404);
    const deleteOf = (name: string) =>
      client.send(`DELETE admin/timeseries/policy?collection=users&name=${name}`);
    expect(await deleteOf("ByDay")).toMatchObject({ status: 200, text: "" });
    const PolicyCheckFrequency = "00:00:01.5000000";
    await configure({ Policies: [policy("ByDay", 86_400)] }, { PolicyCheckFrequency });
    const put = (body: object) => client.send("PUT admin/timeseries/policy?collection=users", body);
    expect((await put(policy("ByHour", 3600))).status).toBe(200);
    // The Java client sends null for the unit None, and RavenDB 7.2.7 reads a missing or null
    // member as its default.
    for (const RetentionTime of [{ Value: 10, Unit: null }, { Value: 10 }]) {
      expect((await put({ Name: "rawpolicy", RetentionTime })).status).toBe(200);
      expect(await client.json("GET timeseries/config")).toMatchObject({
        Collections: { Users: { RawPolicy: { RetentionTime: { Unit: "None" } } } },
      });
    }
    for (const RetentionTime of [{ Unit: "Second" }, { Value: null, Unit: "Second" }, {}]) {
      expect((await put({ Name: "rawpolicy", RetentionTime })).json).toMatchObject({
        Message: "Retention time of the RawPolicy must be greater than zero",
      });
    }
    expect((await put({ Name: "rawpolicy", RetentionTime: seconds(7200) })).status).toBe(200);
    expect(await client.json("GET timeseries/config")).toEqual({
      Collections: {
        Users: {
          Disabled: false,
          Policies: [policy("ByHour", 3600), policy("ByDay", 86_400)],
          RawPolicy: {
            Name: "rawpolicy",
            RetentionTime: seconds(7200),
            AggregationTime: { Value: 0, Unit: "None" },
          },
        },
      },
      PolicyCheckFrequency,
      NamedValues: {},
    });
    await deleteOf("byhour");
    // The remaining policies would delete entries before their rollup.
    expect((await deleteOf("ByHour")).status).toBe(400);
    await deleteOf("rawpolicy");
    const { Collections } = (await client.json("GET timeseries/config")) as {
      Collections: { Users: { Policies: { Name: string }[] } };
    };
    expect(Collections.Users.Policies.map(({ Name }) => Name)).toEqual(["ByHour", "ByDay"]);
  });

  it("rejects contradictory policies with RavenDB's messages", async () => {
    const seconds = (Value: number) => ({ Value, Unit: "Second" });
    const months = (Value: number) => ({ Value, Unit: "Month" });
    const forever = { Value: 2_147_483_647, Unit: "None" };
    const policy = (Name: string, AggregationTime: object, RetentionTime: object = forever) => ({
      Name,
      AggregationTime,
      RetentionTime,
    });
    const day = 86_400;
    for (const [rule, message] of [
      [
        { Policies: [policy("A", seconds(1)), policy("a", seconds(2))] },
        "Policy names must be unique, policy with the name 'a' has duplicates.",
      ],
      [
        { Policies: [policy("A", seconds(3600)), policy("B", seconds(3600))] },
        "The policy 'A' has the same aggregation time as the policy 'B'",
      ],
      [
        { Policies: [policy("A", seconds(0))] },
        "Aggregation time of 'A' must be greater than zero",
      ],
      [
        { Policies: [policy("A", seconds(1), seconds(-1))] },
        "Retention time of 'A' must be greater than zero",
      ],
      [
        { Policies: [policy("A", seconds(27 * day)), policy("B", seconds(364 * day))] },
        "The aggregation time of the policy 'B' (364 days) must be divided by the aggregation time of 'A' (27 days) without a remainder.",
      ],
      [
        { Policies: [policy("A", seconds(18_000)), policy("B", months(1))] },
        "The aggregation time of the policy 'B' (1 month) must be divided by the aggregation time of 'A' (5 hours) without a remainder.",
      ],
      [
        { Policies: [policy("A", months(5)), policy("B", months(12))] },
        "The aggregation time of the policy 'B' (1 year) must be divided by the aggregation time of 'A' (5 months) without a remainder.",
      ],
      [
        {
          RawPolicy: { RetentionTime: months(1) },
          Policies: [policy("A", seconds(30 * day))],
        },
        "Unable to compare 1 month with 30 days, since a month might have different number of days.",
      ],
      [
        { RawPolicy: { RetentionTime: seconds(60) }, Policies: [policy("A", seconds(3600))] },
        "The policy 'rawpolicy' has a retention time of '60 seconds' but should be aggregated by policy 'A' with the aggregation time frame of 60 minutes",
      ],
      [
        { RawPolicy: { RetentionTime: seconds(0) } },
        "Retention time of the RawPolicy must be greater than zero",
      ],
    ] as const) {
      const reply = await client.send("POST admin/timeseries/config", {
        Collections: { Users: rule },
      });
      expect(reply.json).toMatchObject({
        Type: "System.InvalidOperationException",
        Message: message,
      });
    }
    const bad = { Collections: {}, PolicyCheckFrequency: "00:00:00" };
    expect((await client.send("POST admin/timeseries/config", bad)).json).toMatchObject({
      Message: "PolicyCheckFrequency must be positive.",
    });
    const unit = { Users: { Policies: [policy("A", { Value: 1, Unit: "Day" })] } };
    expect(
      (await client.send("POST admin/timeseries/config", { Collections: unit })).json,
    ).toMatchObject({ Type: "System.FormatException" });
  });
});

describe("a batch", () => {
  const batch = (...Commands: object[]) => client.send("POST bulk_docs", { Commands });
  const appends = (...seconds: number[]) =>
    seconds.map((second) => ({ Timestamp: at(second), Values: [second] }));

  it("changes series, and writes their document once", async () => {
    const reply = await batch(
      { Type: "PUT", Id: id, Document: { "@metadata": { "@collection": "Users" } } },
      { Type: "TimeSeries", Id: id, TimeSeries: { Name: "A", Appends: appends(1) } },
      { Type: "TimeSeries", Id: id, TimeSeries: { Name: "A", Appends: appends(2) } },
      { Type: "TimeSeries", Id: id, TimeSeries: { Name: "B", Deletes: [{}] } },
      {
        Type: "TimeSeriesWithIncrements",
        Id: id,
        TimeSeries: { Name: "INC:a", Increments: appends(1) },
      },
    );
    expect(reply.status).toBe(201);
    const { Results } = reply.json as { Results: Record<string, unknown>[] };
    expect(Results.map((row) => [row["Type"], row["ChangeVector"] === null])).toEqual([
      ["PUT", false],
      ["TimeSeries", false],
      ["TimeSeries", false],
      ["TimeSeries", true],
      ["TimeSeriesWithIncrements", false],
    ]);
    expect(Object.keys(Results[1] ?? {})).toEqual(["Id", "ChangeVector", "Type"]);
    expect(await client.json(`GET docs?id=${id}`)).toMatchObject({
      Results: [{ "@metadata": { "@timeseries": ["A", "INC:a"], "@flags": "HasTimeSeries" } }],
    });
  });

  it("copies a section of a series", async () => {
    await fill();
    const copy = { Type: "TimeSeriesCopy", Id: id, Name: "heart", DestinationId: "watches/1" };
    const reply = await batch(
      { ...copy, DestinationName: "Copy", From: "2020-01-01T00:00:01.0000001Z", To: at(3) },
      { ...copy, Name: "none", DestinationName: "Nothing" },
    );
    expect(reply.json).toMatchObject({
      Results: [
        { Id: "watches/1", Type: "TimeSeriesCopy" },
        { Id: "watches/1", ChangeVector: null },
      ],
    });
    expect(await client.json("GET timeseries?docId=watches/1&name=Copy")).toMatchObject({
      Entries: [entry(2, [2]), entry(3, [3, 4.5])],
    });
  });

  it("has no effect if one command fails", async () => {
    const reply = await batch(
      { Type: "TimeSeries", Id: id, TimeSeries: { Name: "A", Appends: appends(1) } },
      { Type: "TimeSeries", Id: "none", TimeSeries: { Name: "A", Appends: appends(1) } },
    );
    expect(reply.status).toBe(400);
    expect((await client.send(`GET timeseries?docId=${id}&name=A`)).status).toBe(404);
  });

  it("accepts the appends of a bulk insert", async () => {
    const commands = [
      { Id: `${id}/b`, Type: "PUT", Document: { "@metadata": { "@collection": "Users" } } },
      {
        Id: `${id}/b`,
        Type: "TimeSeriesBulkInsert",
        TimeSeries: {
          Name: "HR",
          TimeFormat: "UnixTimeInMs",
          Appends: [
            [1_577_836_801_000, 1, 5],
            [1_577_836_802_000, 2, 1, 2.5, "watches/1"],
            [1_577_836_803_000, 3, 1, null, null],
          ],
        },
      },
    ];
    const reply = await client.send("POST bulk_insert?id=1", JSON.stringify(commands));
    expect(reply.status).toBe(201);
    expect(await client.json(`GET timeseries?docId=${id}/b&name=hr`)).toMatchObject({
      Entries: [entry(1, [5]), entry(2, [1, 2.5], "watches/1"), entry(3, [1, 0, 0])],
    });
    const wrong = {
      Type: "TimeSeriesBulkInsert",
      Id: id,
      TimeSeries: { Name: "HR", Appends: [[1, 3, 1]] },
    };
    expect(typeOf((await batch(wrong)).json)).toBe("System.IO.InvalidDataException");
  });
});

describe("GET docs with time series", () => {
  const load = async (query: string) => {
    const reply = (await client.json(`GET docs?id=${id}&${query}`)) as {
      TimeSeriesIncludes: Record<string, Record<string, { From: string; Entries: object[] }[]>>;
    };
    return reply.TimeSeriesIncludes[id];
  };

  it("includes ranges, under the requested names", async () => {
    await fill();
    expect(
      await load(`timeseries=heart&from=${at(2)}&to=${at(3)}&timeseries=none&from=&to=`),
    ).toEqual({
      heart: [{ From: at(2), To: at(3), Entries: [entry(2, [2]), entry(3, [3, 4.5])] }],
      none: [{ From: null, To: null, Entries: [] }],
    });
  });

  it("includes the last entries, by number and by time", async () => {
    await fill();
    await post("Months", {
      Appends: [
        { Timestamp: "2020-02-29T00:00:00", Values: [1] },
        { Timestamp: "2020-03-31T00:00:00", Values: [2] },
      ],
    });
    const open = { To: null };
    expect(await load("timeseriescount=Heart&countType=Last&countValue=2")).toEqual({
      Heart: [{ From: at(3), ...open, Entries: [entry(3, [3, 4.5]), entry(5, [0.25, 1e21])] }],
    });
    expect(await load("timeseriestime=Heart&timeType=Last&timeValue=3&timeUnit=Second")).toEqual({
      Heart: [
        {
          From: at(2),
          ...open,
          Entries: [entry(2, [2]), entry(3, [3, 4.5]), entry(5, [0.25, 1e21])],
        },
      ],
    });
    const months = await load("timeseriestime=Months&timeType=Last&timeValue=1&timeUnit=Month");
    expect(months?.["Months"]?.[0]).toMatchObject({
      From: "2020-02-29T00:00:00.0000000Z",
      Entries: [{ Values: [1] }, { Values: [2] }],
    });
    expect(await load("timeseriescount=none&countType=Last&countValue=2")).toEqual({});
  });

  it("includes all series of the document", async () => {
    await fill();
    await fill("Steps");
    const all = await load("timeseriescount=@all_timeseries&countType=Last&countValue=1");
    expect(Object.keys(all ?? {})).toEqual(["Heart", "Steps"]);
  });

  it("returns 304 until a series changes", async () => {
    await fill();
    const path = `GET docs?id=${id}&timeseries=Heart&from=&to=`;
    const etag = (await client.send(path)).headers.etag as string;
    expect((await client.send(path, undefined, { "if-none-match": etag })).status).toBe(304);
    await post("Heart", { Appends: [{ Timestamp: at(7), Values: [1] }] });
    expect((await client.send(path, undefined, { "if-none-match": etag })).status).toBe(200);
  });

  it.each([
    "timeseries=Heart",
    "timeseries=Heart&from=bad&to=",
    "timeseriestime=Heart&timeType=None&timeValue=1&timeUnit=Month",
    "timeseriestime=Heart&timeType=Last&timeValue=1&timeUnit=Year",
    "timeseriescount=Heart&countType=First&countValue=1",
    "timeseriescount=Heart&countType=Last&countValue=x",
  ])("rejects %s", async (query) => {
    expect((await client.send(`GET docs?id=${id}&${query}`)).status).toBe(400);
  });
});

describe("a patch script", () => {
  const patch = async (Script: string) =>
    (await client.json(`PATCH docs?id=${id}&debug=true`, { Patch: { Script } })) as {
      Status: string;
      ChangeVector: string;
      Debug: { Info: string[]; Actions: Record<string, object[]> };
    };

  it("appends, reads, increments and deletes", async () => {
    const created = await patch(`
      const series = timeseries(this, 'S');
      series.append('${at(1)}', 1, 'tag');
      series.append('${at(2)}', [1, 2]);
      timeseries('${id}', 'INC:s').increment('${at(1)}', 3);
      output(series.get('${at(2)}', '${at(9)}'));
      output(series.getStats());
    `);
    expect(created.Status).toBe("Patched");
    expect(created.Debug.Info.map((text) => JSON.parse(text) as unknown)).toEqual([
      [entry(2, [1, 2])],
      { Start: at(1), End: at(2), Count: 2 },
    ]);
    expect(created.Debug.Actions["AppendTimeSeries"]).toMatchObject([
      { Name: "S", Tag: "tag", Created: true },
      { Name: "S", Created: false },
    ]);
    const document = (await client.json(`GET docs?id=${id}`)) as {
      Results: { "@metadata": Record<string, unknown> }[];
    };
    expect(document.Results[0]?.["@metadata"]).toMatchObject({
      "@timeseries": ["INC:s", "S"],
      "@change-vector": created.ChangeVector,
    });
    const gone = await patch(
      `timeseries(this, 'S').delete(); output(timeseries(this, 'S').getStats().Count)`,
    );
    expect(gone).toMatchObject({ Status: "Patched", Debug: { Info: ["0"] } });
    expect((await patch("timeseries(this, 'none').delete()")).Status).toBe("NotModified");
  });
});

describe("a revision", () => {
  it("contains the sizes of the series at its time", async () => {
    await client.send("POST admin/revisions/config", {
      Collections: { Tracked: { Disabled: false } },
    });
    await client.send("PUT docs?id=tracked/1", { "@metadata": { "@collection": "Tracked" } });
    await post("A", { Appends: [{ Timestamp: at(1), Values: [1] }] }, "tracked/1");
    const { Results } = (await client.json("GET revisions?id=tracked/1")) as {
      Results: { "@metadata": Record<string, unknown> }[];
    };
    expect(Results[0]?.["@metadata"]).toMatchObject({
      "@timeseries-snapshot": { A: { Count: 1, Start: at(1), End: at(1) } },
      "@flags": "HasRevisions, Revision, HasTimeSeries",
    });
    expect(Results[0]?.["@metadata"]).not.toHaveProperty("@timeseries");
  });
});

// Observed on RavenDB 7.2.7.
test("increments of one time and request must have equally many values; later requests may have more", async () => {
  const increment = (...lists: number[][]) =>
    post("INC:Steps", { Increments: lists.map((Values) => ({ Timestamp: at(1), Values })) });
  const refused = await increment([1], [1, 2]);
  expect(refused.status).toBe(400);
  expect(refused.json).toMatchObject({
    Type: "System.InvalidOperationException",
    Message: expect.stringMatching(
      /^Previous increment to timestamp 01\/01\/2020 00:00:01 had different number of values 1 vs\. current with 2/,
    ),
  });
  const missing = await client.send(`GET timeseries?docId=${id}&name=INC:Steps`);
  expect(missing.status).toBe(404);
  expect((await increment([1, 1], [1, 2])).status).toBe(204);
  expect((await increment([1])).status).toBe(204);
  expect(await get("name=INC:Steps")).toMatchObject({ Entries: [{ Values: [3, 3] }] });
});

test("debug/segments-summary returns the stored parts, within the requested times", async () => {
  const time = (n: number) =>
    `2020-01-01T00:${String(Math.floor(n / 60)).padStart(2, "0")}:${String(n % 60).padStart(2, "0")}.0000000Z`;
  const Appends = Array.from({ length: 1200 }, (_, n) => ({ Timestamp: time(n), Values: [n] }));
  await post("Parts", { Appends });
  const parts = async (more = "") => {
    const path = `timeseries/debug/segments-summary?docId=${id}&name=PARTS${more}`;
    const { Results } = (await client.json(`GET ${path}`)) as {
      Results: { [key: string]: unknown }[];
    };
    return Results;
  };
  const all = await parts();
  const counts = all.map(({ NumberOfEntries }) => NumberOfEntries as number);
  expect(counts.reduce((sum, one) => sum + one, 0)).toBe(1200);
  expect(all[0]).toEqual({
    DocumentId: id,
    Name: "parts",
    StartTime: time(0),
    NumberOfEntries: counts[0],
    NumberOfLiveEntries: counts[0],
    ChangeVector: expect.stringMatching(/^A:\d+-/),
  });
  expect(await parts(`&from=${time(1199)}`)).toEqual(all.slice(-1));
  expect(await parts(`&to=${time(0)}`)).toEqual(all.slice(0, 1));
  expect(await client.json(`GET timeseries/debug/segments-summary?docId=none&name=x`)).toEqual({
    Results: [],
  });
});

test("booleans are numbers in an append", async () => {
  expect(
    (await post("Flags", { Appends: [{ Timestamp: at(1), Values: [true, false] }] })).status,
  ).toBe(204);
  expect(await get("name=Flags")).toMatchObject({ Entries: [{ Values: [1, 0] }] });
});

// Counted since the database was opened.
test.skipIf(isCold)("counts deleted ranges and deleted series", async () => {
  const ranges = async () =>
    ((await client.json("GET stats/detailed")) as { CountOfTimeSeriesDeletedRanges: number })
      .CountOfTimeSeriesDeletedRanges;
  const before = await ranges();
  await fill("Heart");
  await fill("Other");
  await post("Heart", {
    Deletes: [
      { From: at(1), To: at(1) },
      { From: at(3), To: at(3) },
    ],
  });
  expect((await ranges()) - before).toBe(2);
  await client.send(`DELETE docs?id=${id}`);
  expect((await ranges()) - before).toBe(4);
});

test("times in bodies may have an offset from UTC, times in addresses may not", async () => {
  const at = (Timestamp: string) => ({ Timestamp, Values: [1] });
  const Appends = [at("2024-03-01T01:00:00+01:00"), at("2024-03-01T01:00:00.5-0530")];
  expect(
    (await client.send(`POST timeseries?docId=${id}`, { Name: "Zones", Appends })).status,
  ).toBe(204);
  const times = async () =>
    ((await get("name=Zones")) as { Entries: { Timestamp: string }[] }).Entries.map(
      ({ Timestamp }) => Timestamp,
    );
  expect(await times()).toEqual(["2024-03-01T00:00:00.0000000Z", "2024-03-01T06:30:00.5000000Z"]);
  const Deletes = [{ From: "2024-03-01T00:00:00-00:00", To: "2024-03-01T05:00:00+05:00" }];
  await client.send(`POST timeseries?docId=${id}`, { Name: "Zones", Deletes });
  expect(await times()).toEqual(["2024-03-01T06:30:00.5000000Z"]);
  for (const Timestamp of ["2024-03-01T01:00:00+15:00", "2024-03-01T01:00:00z", "2024-03-01"]) {
    const body = { Name: "Zones", Appends: [{ Timestamp, Values: [1] }] };
    expect((await client.send(`POST timeseries?docId=${id}`, body)).json).toMatchObject({
      Type: "System.FormatException",
    });
  }
  const range = "name=Zones&from=2024-03-01T00%3A30%3A00%2B01%3A00";
  expect((await client.send(`GET timeseries?docId=${id}&${range}`)).status).toBe(400);
});
