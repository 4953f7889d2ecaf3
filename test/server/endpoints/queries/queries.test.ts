import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { stopTestServers } from "../../../support/start-test-server.ts";

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
  for (const [id, body] of Object.entries({
    "users/1": '{"Name":"Ann","Age":30,"Ref":"users/2","@metadata":{"@collection":"Users"}}',
    "users/2": '{"Name":"Bob, \\"B\\"","Age":20.50,"@metadata":{"@collection":"Users"}}',
    "n/1": '{"N":9007199254740993,"@metadata":{"@collection":"Ns"}}',
  })) {
    await client.send(`PUT docs?id=${encodeURIComponent(id)}`, body);
  }
});
afterAll(stopTestServers);

type Json = Record<string, unknown>;

const post = (Query: string, more: object = {}) => client.send("POST queries", { Query, ...more });
const idsOf = (reply: { readonly json: unknown }) =>
  ((reply.json as Json)["Results"] as { "@metadata": { "@id": string } }[]).map(
    (row) => row["@metadata"]["@id"],
  );

async function ended(reply: { readonly json: unknown }): Promise<Json> {
  const { OperationId } = reply.json as { OperationId: number };
  return await client.ended(`operations/state?id=${OperationId}`);
}

describe("queries", () => {
  test("return rows and the other members in a fixed order", async () => {
    const reply = await post("from Users where Age > 25");
    expect(reply.status).toBe(200);
    expect(Object.keys(reply.json as Json)).toEqual(
      [
        "TotalResults ScannedResults SkippedResults DurationInMs IncludedPaths IndexName Results Includes",
        "IndexTimestamp LastQueryTime IsStale ResultEtag NodeTag IndexDefinitionRaftIndex",
      ]
        .join(" ")
        .split(" "),
    );
    expect(reply.json).toMatchObject({ TotalResults: 1, IndexName: "Auto/Users/ByAge" });
    expect(reply.headers["request-time"]).toMatch(/^\d+$/);
    expect(idsOf(reply)).toEqual(["users/1"]);
  });

  test("accept 64-bit parameters exactly", async () => {
    const text = (n: string) => `{"Query":"from Ns where N = $n","QueryParameters":{"n":${n}}}`;
    expect(idsOf(await client.send("POST queries", text("9007199254740993")))).toEqual(["n/1"]);
    expect(idsOf(await client.send("POST queries", text("9007199254740992")))).toEqual([]);
  });

  test("evaluate times, and are not answered with 304 if they depend on the current time", async () => {
    const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();
    for (const [id, days] of [
      ["past", -2],
      ["future", 2],
    ] as const) {
      const metadata = { "@collection": "Events" };
      await client.send(`PUT docs?id=${id}`, { At: inDays(days), "@metadata": metadata });
    }
    const found = async (condition: string, parameters?: object) =>
      idsOf(await post(`from Events where ${condition}`, { QueryParameters: parameters }));
    expect(await found("At > now()")).toEqual(["future"]);
    expect(await found("At < today()")).toEqual(["past"]);
    expect(await found("At > now($ago) and At < now('-12h')", { ago: "-1 month" })).toEqual([
      "past",
    ]);
    const query = { Query: "from Events where At > now()", WaitForNonStaleResults: true };
    const { etag = "" } = (await client.send("POST queries", query)).headers;
    const again = await client.send("POST queries", query, { "if-none-match": String(etag) });
    expect(again.status).toBe(200);
    for (const id of ["past", "future"]) await client.send(`DELETE docs?id=${id}`);
  });

  test("page by text, body and address, the narrower one", async () => {
    const reply = await post("from @all_docs limit 1, 2", { Start: 2, PageSize: 5 });
    expect(idsOf(reply)).toEqual(["n/1"]);
    expect(reply.json).toMatchObject({ TotalResults: 3, CappedMaxResults: 2 });
    const get = await client.send("GET queries?query=from%20Users&start=1&pageSize=5");
    expect(idsOf(get)).toEqual(["users/2"]);
  });

  test("return 304 while their etag is current", async () => {
    const query = { Query: "from Users where Name = 'ann'" };
    const first = await client.send("POST queries", query);
    const etag = first.headers.etag as string;
    expect(etag).toMatch(/^\d+$/);
    const again = await client.send("POST queries", query, { "if-none-match": etag });
    expect([again.status, again.text]).toEqual([304, ""]);
    await client.send("PUT docs?id=users%2F3", { "@metadata": { "@collection": "Users" } });
    const third = await client.send("POST queries", query, { "if-none-match": `"${etag}"` });
    expect(third.status).toBe(200);
    await client.send("DELETE docs?id=users%2F3");
  });

  test("include documents, and return metadata alone", async () => {
    const included = (await post("from Users where id() = 'users/1' include Ref")).json as Json;
    expect(Object.keys(included["Includes"] as Json)).toEqual(["users/2"]);
    const reply = await client.send("POST queries?metadataOnly=true", { Query: "from Users" });
    const [row] = (reply.json as { Results: Json[] }).Results;
    expect(Object.keys(row ?? {})).toEqual(["@metadata"]);
  });

  test("report errors by type; a missing index is 404 without a body", async () => {
    const failed = await post("from Users where");
    expect(failed.json).toMatchObject({
      Type: "Raven.Server.Documents.Queries.Parser.QueryParser+ParseException",
    });
    expect((await post("")).json).toMatchObject({ Type: "System.InvalidOperationException" });
    const missing = await post("from index 'Nope'");
    expect([missing.status, missing.text]).toEqual([404, ""]);
  });

  test("send large results while more rows are produced", async () => {
    const big = "x".repeat(600_000);
    for (let n = 0; n < 10; n++) {
      await client.send(`PUT docs?id=big%2F${n}`, {
        Text: `${big}${n}`,
        "@metadata": { "@collection": "Big" },
      });
    }
    const reply = await post("from Big");
    expect(idsOf(reply)).toHaveLength(10);
    expect(reply.json).toMatchObject({ TotalResults: 10, IsStale: false });
    await ended(await client.send("DELETE queries", { Query: "from Big" }));
  });

  test("explain themselves", async () => {
    const debug = async (what: string, Query: string) =>
      (await client.send(`POST queries?debug=${what}`, { Query })).json;
    await post("from Users where Age > 25");
    const entries = (await debug("entries", "from Users where Age > 25")) as { Results: Json[] };
    expect(entries.Results).toMatchObject([{ "id()": "users/1", Age: "30" }]);
    // Observed on RavenDB 7.2.7: terms, then stored values, numbers as doubles.
    await client.send("PUT admin/indexes", {
      Indexes: [
        {
          Name: "Kept",
          Maps: [
            "from u in docs.Users where u.Age == 30 select new { A = u.Age, B = true, S = new[] { 'y', 'X' }, N = (string)null }".replaceAll(
              "'",
              '"',
            ),
          ],
          Fields: { __all_fields: { Storage: "Yes" } },
        },
      ],
    });
    const { text } = await client.send("POST queries?debug=entries", {
      Query: "from index 'Kept'",
      WaitForNonStaleResults: true,
    });
    expect(text).toContain('"A":["30",30.0],"B":["true","true"],"S":["x","y","y","X"]');
    expect(text).toContain('"N":[null,null]');
    const explained = (await debug("explain", "from Users where Age > 1 and Zip = 2")) as Json;
    expect(explained["Results"]).toContainEqual({
      Index: "Auto/Users/ByAge",
      Reason: "The following field is missing: Zip",
    });
    expect(await debug("nothing", "from Users")).toMatchObject({
      Type: "System.NotSupportedException",
    });
  });
});

describe("streams", () => {
  const stream = (format: string, Query: string) =>
    client.send(`POST streams/queries${format}`, { Query });

  test("are an object, lines or comma-separated values", async () => {
    const object = (await stream("", "from Users")).json as Json;
    expect(Object.keys(object)).toEqual(
      "ResultEtag IsStale IndexName TotalResults IndexTimestamp Results".split(" "),
    );
    const lines = (await stream("?format=jsonl", "from Users")).text.trim().split("\r\n");
    expect(lines.map((line) => Object.keys(JSON.parse(line) as Json))).toEqual([
      ["Stats"],
      ["Item"],
      ["Item"],
    ]);
    const chosen = await stream(
      "?format=csv&field=Age&field=Name&field=No",
      "from Users select Name, Age",
    );
    expect(chosen.text.split("\r\n")[0]).toBe("\uFEFFAge,Name,No");
    const csv = await stream("?format=csv", "from Users select Name, Age");
    expect(csv.text).toBe(
      '\uFEFF@id,Name,Age,@metadata.@projection\r\n"users/1","Ann",30,True\r\n"users/2","Bob, ""B""",20.50,True\r\n',
    );
  });

  test("have cells of any value as comma-separated values", async () => {
    const deep = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;
    const nested = `${'{"a":'.repeat(100)}1${"}".repeat(100)}`;
    const text = `{"2":null,"1":{"b":1.50,"c":[1, "x"]},"Deep":${deep(9_000)},"Nested":${nested},"@metadata":{"@collection":"Odd","Own":${deep(9_000)},"Sum":1.0}}`;
    await client.send("PUT docs?id=odd%2F1", Buffer.from(text));
    const reply = await stream("?format=csv", "from Odd");
    const [head, row] = reply.text.split("\r\n").map((line) => line.split(","));
    expect(head?.map((column) => column.replace(/(\.a)+$/, ".…"))).toEqual(
      "\uFEFF@id 2 1.b 1.c Deep Nested.… @metadata.@collection @metadata.Own @metadata.Sum".split(
        " ",
      ),
    );
    const listed = '"[1';
    expect(row?.slice(0, 4)).toEqual(['"odd/1"', "", "1.50", listed]);
    expect(row).toContain(`"${deep(9_000)}"`);
    expect(row?.at(-1)).toBe("1.0");
    await ended(await client.send("DELETE queries", { Query: "from Odd" }));
  });

  test("of a collection include its number of documents", async () => {
    for (const rest of [
      "",
      " where id() = 'users/1'",
      " where startsWith(id(), 'x')",
      " limit 1",
    ]) {
      expect((await stream("", `from Users${rest}`)).json).toMatchObject({ TotalResults: 2 });
    }
    expect((await stream("", "from Nope")).json).toMatchObject({ TotalResults: 0 });
  });

  test("reject includes, and name the missing index", async () => {
    expect((await stream("", "from Users include Ref")).json).toMatchObject({
      Type: "System.NotSupportedException",
    });
    const missing = await stream("?format=jsonl", "from index 'Nope'");
    expect([missing.status, missing.text]).toEqual([404, '{"Error":"Index Nope does not exist"}']);
  });
});

describe("set operations", () => {
  test("return an operation id immediately; its state has the result", async () => {
    const reply = await client.send("PATCH queries?allowStale=&details=true", {
      Query: {
        Query: "from Users where Age > 25 update { this.P = $p }",
        QueryParameters: { p: 1 },
      },
    });
    expect(reply.json).toEqual({ OperationId: expect.any(Number), OperationNodeTag: "A" });
    expect(await ended(reply)).toMatchObject({
      Status: "Completed",
      Progress: null,
      Result: {
        $type: "Raven.Client.Documents.Operations.BulkOperationResult, Raven.Client",
        Total: 1,
        Message: "Processed 1 items.",
        Details: [{ Id: "users/1", Status: "Patched" }],
      },
    });
    const faulted = await client.send("PATCH queries", {
      Query: { Query: "from Users update { throw 5 }" },
    });
    expect(await ended(faulted)).toMatchObject({
      Status: "Faulted",
      Result: { Type: "Raven.Client.Exceptions.Documents.Patching.JavaScriptException" },
    });
  });

  test("reject invalid bodies", async () => {
    const typeOf = async (body: object) =>
      ((await client.send("PATCH queries", body)).json as Json)["Type"];
    expect(await typeOf({})).toBe("Raven.Client.Exceptions.BadRequestException");
    expect(await typeOf({ Query: {} })).toBe("System.InvalidOperationException");
    expect(await typeOf({ Query: "from Users update { }" })).toBe("System.FormatException");
  });

  test("can be tried on one document", async () => {
    const body = { Query: { Query: "from Users as u update { u.T = 9; output(u.Name); }" } };
    const reply = await client.send("PATCH queries/test?id=users%2F1", body);
    expect(reply.json).toMatchObject({
      Status: "Patched",
      ModifiedDocument: { T: 9 },
      Debug: { Output: ["Ann"] },
    });
    expect((await client.send("GET docs?id=users%2F1")).text).not.toContain('"T"');
    expect((await client.send("PATCH queries/test?id=nope", body)).status).toBe(404);
  });
});

describe("indexes", () => {
  test("are listed, described, stopped, disabled and dropped", async () => {
    await post("from Ns where N > 1");
    const name = "Auto/Ns/ByN";
    const names = (await client.json("GET indexes?namesOnly=true")) as { Results: string[] };
    expect(names.Results).toContain(name);
    expect(await client.json(`GET indexes?name=${name}`)).toMatchObject({
      Results: [{ Name: name, Type: "AutoMap", Maps: ["Ns:[<Name:N>]"] }],
    });
    expect(await client.json(`GET indexes/stats?name=${name}`)).toMatchObject({
      Results: [{ EntriesCount: 1, IsStale: false, Collections: { Ns: { DocumentLag: 0 } } }],
    });
    expect(await client.json(`GET indexes/terms?name=${name}&field=N`)).toMatchObject({
      Terms: ["9007199254740993"],
    });
    expect((await client.send(`POST admin/indexes/stop?name=${name}`)).status).toBe(204);
    await client.send("PUT docs?id=n%2F2", { N: 2, "@metadata": { "@collection": "Ns" } });
    expect(await client.json(`GET indexes/staleness?name=${name}`)).toMatchObject({
      IsStale: true,
    });
    expect(idsOf(await post("from Ns where N > 1"))).toEqual(["n/1"]);
    await client.send(`POST admin/indexes/start?name=${name}`);
    const fresh = await post("from Ns where N > 1", { WaitForNonStaleResults: true });
    expect(idsOf(fresh)).toEqual(["n/1", "n/2"]);
    await client.send("POST indexes/set-priority", { IndexNames: [name], Priority: "High" });
    await client.send(`POST admin/indexes/disable?name=${name}`);
    const status = (await client.json("GET indexes/status")) as { Indexes: Json[] };
    expect(status.Indexes).toContainEqual({ Name: name, Status: "Disabled" });
    expect((await client.send(`DELETE indexes?name=${name}`)).status).toBe(204);
    expect((await client.send(`DELETE indexes?name=${name}`)).status).toBe(404);
    expect((await client.json("GET indexes/staleness?name=zz")) as Json).toMatchObject({
      Type: "Raven.Client.Exceptions.Documents.Indexes.IndexDoesNotExistException",
    });
  });
});

describe("scores", () => {
  const items = { A: "ET", B: "Alien", C: "Zed", D: "ET" };

  async function scored(client: EndpointClient, Query: string, QueryParameters?: object) {
    const body = { Query, QueryParameters, WaitForNonStaleResults: true };
    return (await client.json("POST queries", body)) as {
      Results: { "@metadata": Record<string, unknown> }[];
      Explanations?: Record<string, string[]>;
    };
  }

  async function put(client: EndpointClient, path: string) {
    for (const [id, Name] of Object.entries(items)) {
      const body = { Name, "@metadata": { "@collection": "Items" } };
      await client.send(`PUT ${path}docs?id=items/${id}`, body);
    }
  }

  test("are explained on request", async () => {
    const client = await startEndpointClient();
    await put(client, "");
    const text =
      "from Items where search(Name, 'ET') or boost(Name = 'Zed', 3) include explanations()";
    const { Explanations = {} } = await scored(client, text);
    expect(Object.keys(Explanations).sort()).toEqual(["items/A", "items/C", "items/D"]);
    expect(Explanations["items/C"]?.[0]).toMatch(
      /^0\.72\d* = sum \(or\), of:\n {2}0\.72\d* = boosted 3 times/,
    );
    expect(Explanations["items/A"]?.[0]).toContain("'et', in 2 of 4 entries");
    const grouped =
      "from Items group by Name select Name, count() as Count include explanations($o)";
    const byName = await scored(client, grouped, { o: { groupKey: "Name" } });
    expect(Object.keys(byName.Explanations ?? {}).sort()).toEqual(["Alien", "ET", "Zed"]);
    const both = await client.send("POST queries", {
      Query: "from Items where Name = 'ET' include explanations('x')",
    });
    expect(both.json).toMatchObject({ Type: "System.IO.InvalidDataException" });
  });

  test("are returned with the documents of a database configured for Lucene", async () => {
    const client = await startEndpointClient();
    const Settings = { "Indexing.Auto.SearchEngineType": "Lucene" };
    await client.send("PUT /admin/databases?name=lucene", { DatabaseName: "lucene", Settings });
    const path = "/databases/lucene/";
    await put(client, path);
    const Query = "from Items where boost(Name in ('ET', 'Alien'), 0) or Name = 'Zed'";
    const body = { Query, WaitForNonStaleResults: true };
    const { Results } = (await client.json(`POST ${path}queries`, body)) as Awaited<
      ReturnType<typeof scored>
    >;
    const scores = Results.map((row) => [
      row["@metadata"]["@id"],
      row["@metadata"]["@index-score"],
    ]);
    expect(scores).toEqual([
      ["items/C", expect.any(Number)],
      ["items/A", 0],
      ["items/B", 0],
      ["items/D", 0],
    ]);
    const stats = await client.json(`GET ${path}indexes/stats`);
    expect(stats).toMatchObject({ Results: [{ SearchEngineType: "Lucene" }] });
    await put(client, "");
    const plain = await scored(client, "from Items where Name = 'ET'");
    expect(plain.Results[0]?.["@metadata"]).not.toHaveProperty("@index-score");
  });
});

describe("highlights", () => {
  test("are returned beside the rows, by field and document, also for mapped fields", async () => {
    const client = await startEndpointClient();
    const document = {
      Body: "A fox is red, and foxes run.",
      "@metadata": { "@collection": "Posts" },
    };
    await client.send("PUT docs?id=posts/1", document);
    await client.send("PUT docs?id=posts/2", { ...document, Body: "Nothing here." });
    const found = (Query: string) =>
      client.json("POST queries", { Query, WaitForNonStaleResults: true });
    expect(
      await found("from Posts where search(Body, 'fox') include highlight(Body, 18, 1)"),
    ).toMatchObject({
      Highlightings: {
        Body: { "posts/1": ['<b style="background:yellow"> fox</b> is red, and'] },
      },
    });
    for (const nothing of [
      "from Posts where search(Body, 'wolf') include highlight(Body, 18, 1)",
      "from Posts include highlight(Body, 18, 1)",
    ]) {
      expect(await found(nothing)).not.toHaveProperty("Highlightings");
    }
    const Fields = { Text: { Indexing: "Search", Storage: "Yes" } };
    const Maps = ["map('Posts', p => ({ Text: p.Body + ' twice' }))"];
    await client.send("PUT indexes", { Indexes: [{ Name: "ByText", Maps, Fields }] });
    const text =
      "from index 'ByText' where search(Text, 'twice') select Text include highlight(Text, 99, 1)";
    const reply = JSON.stringify(((await found(text)) as Json)["Highlightings"]);
    expect(reply).toContain("twice</b>");
  });
});
