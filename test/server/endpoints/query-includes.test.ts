import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type EndpointClient, startEndpointClient } from "../../support/endpoint-client.ts";
import { stopTestServers } from "../../support/start-test-server.ts";

let client: EndpointClient;
let oldVector = "";
const user = (more: object) => ({ ...more, "@metadata": { "@collection": "Users" } });
beforeAll(async () => {
  client = await startEndpointClient();
  await client.send("POST admin/revisions/config", { Collections: { Users: {} } });
  await client.send("PUT docs?id=users/1", user({ Name: "old" }));
  const { headers } = await client.send("GET docs?id=users/1");
  oldVector = JSON.parse(headers.etag ?? "") as string;
  await client.send(
    "PUT docs?id=users/1",
    user({ Old: oldVector, All: [oldVector, null, "none"], In: { X: oldVector } }),
  );
  await client.send("PUT docs?id=cities/1", { "@metadata": { "@collection": "Cities" } });
  for (const Name of ["Heart", "Blood"]) {
    const Appends = [1, 2, 3].map((day) => ({
      Timestamp: `2020-01-0${day}T00:00:00.0000000Z`,
      Values: [day],
    }));
    await client.send("POST timeseries?docId=users/1", { Name, Appends });
  }
});
afterAll(stopTestServers);

type Json = Record<string, unknown>;

const post = (Query: string, QueryParameters: object = {}, headers = {}) =>
  client.send("POST queries", { Query, QueryParameters }, headers);
const reply = async (Query: string, parameters: object = {}) =>
  (await post(Query, parameters)).json as Json;

// Observed on RavenDB 7.2.7.
test("a parameter after include names a path by its own name", async () => {
  await client.send("PUT docs?id=homes/1", {
    City: "cities/1",
    Town: "none",
    "@metadata": { "@collection": "Homes" },
  });
  const included = async (text: string, parameters: object) => {
    const { IncludedPaths, Includes } = await reply(`from Homes include ${text}`, parameters);
    return [IncludedPaths, Object.keys(Includes as Json)];
  };
  expect(await included("$City", { City: "Town" })).toEqual([["City"], ["cities/1"]]);
  expect(await included("Town, $x", { x: "City" })).toEqual([["Town", "x"], []]);
  expect(await included("'City'", {})).toEqual([["City"], ["cities/1"]]);
});

describe("include revisions", () => {
  const vectorsOf = (answer: Json) =>
    (answer["RevisionIncludes"] as Json[] | undefined)?.map((row) => row["ChangeVector"]);

  test("adds revisions whose change vectors the documents contain", async () => {
    for (const text of ["'Old'", "Old", "All", "In.X", "Old, All"]) {
      const answer = await reply(`from Users include revisions(${text})`);
      expect(vectorsOf(answer), text).toEqual([oldVector]);
      expect(answer["RevisionIncludes"]).toMatchObject([
        { Id: "users/1", Revision: { Name: "old" } },
      ]);
    }
    const ofAlias = await reply("from Users as u include revisions(u.Old)");
    expect(vectorsOf(ofAlias)).toEqual([oldVector]);
  });

  test("adds the newest revision of each document up to a time", async () => {
    const query = "from Users include revisions($at, 'Old')";
    const answer = await reply(query, { at: "2100-01-01T00:00:00.0000000Z" });
    expect(vectorsOf(answer)).toHaveLength(2);
    expect(answer["RevisionIncludes"]).toMatchObject([
      { Before: "2100-01-01T00:00:00.0000000Z", Revision: { Old: oldVector } },
      { ChangeVector: oldVector },
    ]);
    expect(vectorsOf(await reply(query, { at: "2000-01-01T00:00:00.0000000Z" }))).toHaveLength(1);
  });

  test("is rejected if a document lacks the field", async () => {
    const answer = await post("from Users include revisions('Nothing')");
    expect(answer.json).toMatchObject({
      Type: "System.InvalidOperationException",
      Message:
        "Field `Nothing` (which is mentioned inside `include revisions(..)`) is missing in document.",
    });
  });
});

describe("include timeseries", () => {
  const timesOf = (answer: Json, name: string) => {
    const series = (answer["TimeSeriesIncludes"] as Record<string, Json>)["users/1"] ?? {};
    const ranges = series[name] as { Entries: { Timestamp: string }[] }[];
    return ranges.map(({ Entries }) => Entries.map(({ Timestamp }) => Timestamp.slice(8, 10)));
  };

  test("adds a range, the last entries, or all entries of the last interval", async () => {
    const cases: [string, string[]][] = [
      ["'Heart', null, null", ["01", "02", "03"]],
      ["'Heart', $from, null", ["02", "03"]],
      ["'Heart', last(2)", ["02", "03"]],
      ["'Heart', last(1, 'day')", ["02", "03"]],
      ["'Heart', last(1, 'month')", ["01", "02", "03"]],
      ["last(1)", ["03"]],
    ];
    for (const [text, times] of cases) {
      const query = `from Users include timeseries(${text})`;
      const answer = await reply(query, { from: "2020-01-02T00:00:00.0000000Z" });
      expect(timesOf(answer, "Heart"), text).toEqual([times]);
    }
  });

  test("adds all series of a document, and of referenced documents", async () => {
    const all = await reply("from Users include timeseries(last(1))");
    expect(timesOf(all, "Blood")).toEqual([["03"]]);
    await client.send("PUT docs?id=visits/1", {
      User: "users/1",
      "@metadata": { "@collection": "Visits" },
    });
    const related = await reply("from Visits as v include timeseries(v.User, 'Heart', null, null)");
    expect(timesOf(related, "Heart")).toEqual([["01", "02", "03"]]);
  });

  test("is rejected with invalid arguments", async () => {
    for (const text of ["'Heart'", "'Heart', 1, 2", "'Heart', last()", "'Heart', last(1, 'foo')"]) {
      const answer = await post(`from Users include timeseries(${text})`);
      expect(answer.json, text).toMatchObject({
        Type: "Raven.Client.Exceptions.InvalidQueryException",
      });
    }
  });
});

describe("a script of a query", () => {
  test("can include documents and compare-exchange values", async () => {
    await client.send("PUT cmpxchg?key=k1&index=0", '{"Object":1}');
    const answer = await reply(
      `declare function f(u) {
        include("cities/1"); includes.document("cities/2"); includes.cmpxchg(["k1", "k2"]);
        return { A: 1 };
      }
      from Users as u select f(u)`,
    );
    expect(Object.keys(answer["Includes"] as Json)).toEqual(["cities/1"]);
    expect(answer["CompareExchangeValueIncludes"]).toMatchObject({
      k1: { Key: "k1", Value: { Object: 1 } },
      k2: { Key: "k2", Index: -1, Value: null },
    });
  });
});

describe("the ETag of a query", () => {
  const changesWith = async (query: string, change: () => Promise<unknown>): Promise<void> => {
    const first = await post(query);
    const { etag } = first.headers;
    const again = await post(query, {}, { "if-none-match": String(etag) });
    expect(again.status, query).toBe(304);
    await change();
    const changed = await post(query, {}, { "if-none-match": String(etag) });
    expect(changed.status, query).toBe(200);
    expect(changed.headers.etag).not.toBe(etag);
  };

  test("changes with included items, even if no document changes", async () => {
    const increment = (Delta: number) => () =>
      client.send("POST counters", {
        Documents: [
          {
            DocumentId: "cities/1",
            Operations: [{ Type: "Increment", CounterName: "visits", Delta }],
          },
        ],
      });
    await increment(1)();
    await changesWith("from Cities include counters('visits')", increment(2));
    await changesWith("from Cities select counter('visits') as v", increment(3));
    const put = () => client.send("PUT cmpxchg?key=paris&index=0", '{"Object":1}');
    await changesWith("from Cities select cmpxchg('paris') as p", put);
  });
});

describe("a projection", () => {
  test("reads only the document, or only the index, on request", async () => {
    const sendRequest = (ProjectionBehavior: string, Query = "from Users select Old, Missing") =>
      client.send("POST queries", { Query, ProjectionBehavior });
    const fromDocument = (await sendRequest("FromDocument")).json as { Results: Json[] };
    expect(fromDocument.Results[0]).toMatchObject({ Old: oldVector, Missing: null });
    expect((await sendRequest("FromDocumentOrThrow")).text).toContain(
      "Could not extract field 'Missing' from document",
    );
    expect((await sendRequest("FromDocumentOrThrow", "from Users select Old")).status).toBe(200);
    const indexed = "from Users where Old != 'x' select Old";
    expect((await sendRequest("FromIndexOrThrow", indexed)).text).toContain(
      "Could not extract field 'Old' from index 'Auto/Users/ByOld'",
    );
    const fromIndex = (await sendRequest("FromIndex", indexed)).json as { Results: Json[] };
    expect(Object.keys(fromIndex.Results[0] ?? {})).toEqual(["@metadata"]);
    expect((await sendRequest("Nonsense")).status).toBe(400);
  });
});
