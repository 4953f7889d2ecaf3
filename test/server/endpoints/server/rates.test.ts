/** Rates of requests, writes and indexes over HTTP, with counts as RavenDB 7.2.7 gives them. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { isCold } from "../../../support/cold.ts";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { stopTestServers } from "../../../support/start-test-server.ts";

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
});
afterAll(stopTestServers);

interface Rate {
  readonly Count: number;
  readonly Raw?: Readonly<Record<string, number>>;
}
type Rates = Readonly<Record<string, Readonly<Record<string, Rate>>>>;

const kinds = ["Docs", "Attachments", "Counters", "TimeSeries"] as const;

/** Counts of puts and bytes by kind. */
async function counts(path = "metrics"): Promise<Record<string, readonly (number | undefined)[]>> {
  const rates = (await client.json(`GET ${path}`)) as Rates;
  return Object.fromEntries(
    kinds.map((kind) => [
      kind,
      [rates[kind]?.["PutsPerSec"]?.Count, rates[kind]?.["BytesPutsPerSec"]?.Count],
    ]),
  );
}

/** The increase of each by `change`; kinds without one are left out. */
async function counted(change: () => Promise<unknown>): Promise<Record<string, number[]>> {
  const before = await counts();
  await change();
  const grown = Object.entries(await counts()).map(
    ([kind, after]) => [kind, after.map((one = 0, at) => one - (before[kind]?.[at] ?? 0))] as const,
  );
  return Object.fromEntries(grown.filter(([, [puts]]) => puts !== 0));
}

const text = "x".repeat(1000);
const at = (second: number) => `2026-01-01T00:00:0${second}.000Z`;
const increment = (...names: string[]) =>
  client.send("POST counters", {
    Documents: [
      {
        DocumentId: "a",
        Operations: names.map((CounterName) => ({ Type: "Increment", CounterName, Delta: 1 })),
      },
    ],
  });
const append = (...seconds: number[]) =>
  client.send("POST timeseries?docId=a", {
    Name: "hr",
    Appends: seconds.map((second) => ({ Timestamp: at(second), Values: [1] })),
  });

// A reopened database counts from zero.
test.skipIf(isCold)(
  "puts and bytes of documents, attachments, counters and series are counted as by RavenDB 7.2.7",
  async () => {
    const put = await counted(() => client.send("PUT docs?id=a", { text }));
    expect(put).toEqual({ Docs: [1, expect.any(Number)] });
    expect(put["Docs"]?.[1]).toBeGreaterThan(1000);
    // The document's metadata list the names of attachments, counters and series.
    const attach = (name: string) => client.send(`PUT attachments?id=a&name=${name}`, text);
    const document = [1, expect.any(Number)];
    expect(await counted(() => attach("x"))).toEqual({ Docs: document, Attachments: [1, 1000] });
    expect(await counted(() => attach("y"))).toEqual({ Docs: document, Attachments: [1, 1000] });
    const detach = () => client.send("DELETE attachments?id=a&name=x");
    expect(await counted(detach)).toEqual({ Docs: document });
    expect(await counted(() => increment("x", "y", "z"))).toEqual({
      Docs: document,
      Counters: [3, expect.any(Number)],
    });
    expect(await counted(() => increment("x"))).toEqual({ Counters: [1, expect.any(Number)] });
    expect(await counted(() => append(1, 2, 3, 4, 5))).toEqual({
      Docs: document,
      TimeSeries: [5, expect.any(Number)],
    });
    expect(await counted(() => append(6))).toEqual({ TimeSeries: [1, expect.any(Number)] });
    const shorten = () =>
      client.send("POST timeseries?docId=a", { Name: "hr", Deletes: [{ From: at(1), To: at(2) }] });
    expect(await counted(shorten)).toEqual({ TimeSeries: [2, expect.any(Number)] });
    expect(await counted(() => client.send("DELETE docs?id=a"))).toEqual({});
  },
);

test.skipIf(isCold)("the rates of the last tenths of a second are listed", async () => {
  await client.send("PUT docs?id=b", {});
  const [count = 0] = (await counts())["Docs"] ?? [];
  const { text: puts, json } = await client.send("GET metrics/puts");
  expect(Object.keys(json as Rates)).toEqual(kinds);
  expect(Object.keys((json as Rates)["Docs"] ?? {})).toEqual(["PutsPerSec"]);
  const docs = (json as Rates)["Docs"]?.["PutsPerSec"];
  expect(Object.keys(docs ?? {})).toEqual([
    ...["Current", "Count", "MeanRate", "OneMinuteRate", "FiveMinuteRate", "FifteenMinuteRate"],
    "Raw",
  ]);
  const sum = Object.values(docs?.Raw ?? {}).reduce((all, one) => all + one, 0);
  expect(sum).toBeCloseTo(count * 10);
  const [time = ""] = Object.keys(docs?.Raw ?? {});
  expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d00000(0)Z$/);
  expect(Math.abs(Date.now() - Date.parse(time))).toBeLessThan(60_000);
  expect(puts).toMatch(/"MeanRate":\d+\.\d,/);
  const bytes = (await client.json("GET metrics/bytes?empty=true")) as Rates;
  expect(Object.keys(bytes["TimeSeries"] ?? {})).toEqual(["BytesPutsPerSec"]);
  expect((await client.send("GET metrics/bytes?empty=maybe")).status).toBe(400);
  await client.server.request("/admin/databases?name=empty&replicationFactor=1", {
    method: "PUT",
    body: JSON.stringify({ DatabaseName: "empty" }),
  });
  const none = (await client.json("GET /databases/empty/metrics/puts")) as Rates;
  expect(none["Counters"]?.["PutsPerSec"]).toMatchObject({ Count: 0, Raw: {} });
});

test.skipIf(isCold)(
  "requests and the work of indexes are counted, per database and in sum",
  async () => {
    const rate = async (path: string, group: string, name: string) =>
      ((await client.json(`GET ${path}`)) as Rates)[group]?.[name]?.Count ?? Number.NaN;
    const requests = () => rate("metrics", "Requests", "RequestsPerSec");
    const before = await requests();
    for (let i = 0; i < 20; i++) await client.send("PUT docs?id=items/", { i });
    // The reply is sent before its request is counted.
    expect(await requests()).toBeGreaterThanOrEqual(before + 20);
    expect(await requests()).toBeLessThanOrEqual(before + 24);
    const of = ["Maps", "Reduces"].map((Name) => ({
      Name,
      Maps: ["from d in docs select new { d.i, Count = 1 }"],
      ...(Name === "Maps"
        ? {}
        : {
            Reduce: "from r in results group r by r.i into g select new { i = g.Key, Count = 2 }",
          }),
    }));
    await client.send("PUT admin/indexes", { Indexes: of });
    for (const { Name } of of)
      await client.send("POST queries", {
        Query: `from index '${Name}'`,
        WaitForNonStaleResults: true,
      });
    const ofDatabase = async (path: string) => [
      await rate(path, "MapIndexes", "IndexedPerSec"),
      await rate(path, "MapReduceIndexes", "MappedPerSec"),
      (await rate(path, "MapReduceIndexes", "ReducedPerSec")) > 0,
    ];
    await expect.poll(() => ofDatabase("metrics")).toEqual([21, 21, true]);
    expect(await ofDatabase("/admin/metrics")).toEqual([21, 21, true]);
    expect(await counts("/admin/metrics")).toEqual(await counts());
    const { Requests } = (await client.json("GET /admin/metrics")) as Record<string, object>;
    expect(Requests).toMatchObject({ ConcurrentRequestsCount: 1 });
    const { AverageDuration } = Requests as { AverageDuration: number };
    expect(AverageDuration).toBeGreaterThan(0);
    await client.send("PUT /databases/empty/docs?id=a", { text });
    const [puts = 0] = (await counts())["Docs"] ?? [];
    expect((await counts("/admin/metrics"))["Docs"]?.[0]).toBe(puts + 1);
  },
);
