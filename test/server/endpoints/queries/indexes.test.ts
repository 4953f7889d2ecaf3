import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { stopTestServers } from "../../../support/start-test-server.ts";

type Json = Record<string, unknown>;

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
  for (const [id, body] of Object.entries({
    "s/1": { N: 1, T: "one" },
    "s/2": { N: 2, T: null },
    "s/3": { N: 3, T: "three" },
  })) {
    const document = { ...body, "@metadata": { "@collection": "Ss" } };
    await client.send(`PUT docs?id=${encodeURIComponent(id)}`, document);
  }
});
afterAll(stopTestServers);

const map = "map('Ss', s => ({ N: s.N, T: s.T }))";
const put = (definition: Json) => client.send("PUT indexes", { Indexes: [definition] });
const json = async (request: string) => (await client.json(request)) as Json;
const resultsOf = async (request: string) => (await json(request))["Results"] as Json[];

async function settle(name: string): Promise<void> {
  const path = `GET indexes/staleness?name=${encodeURIComponent(name)}`;
  while ((await json(path))["IsStale"] === true) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

describe("a deployed index", () => {
  test("is returned with its definition, unset options as null", async () => {
    const reply = await put({ Name: "I1", Maps: [map], Fields: { T: { Storage: "Yes" } } });
    expect(reply.status).toBe(201);
    expect(reply.json).toEqual({
      Results: [{ Index: "I1", RaftCommandIndex: expect.any(Number) }],
    });
    const [definition] = await resultsOf("GET indexes?name=i1");
    expect(Object.keys(definition ?? {}).join(" ")).toBe(
      "Name SourceType Type LockMode ArchivedDataProcessingBehavior SchemaDefinitions Priority State OutputReduceToCollection DeploymentMode ReduceOutputIndex PatternForOutputReduceToCollectionReferences PatternReferencesCollectionName Configuration AdditionalSources AdditionalAssemblies Reduce Maps Fields",
    );
    expect(definition).toMatchObject({
      Name: "I1",
      Type: "JavaScriptMap",
      LockMode: "Unlock",
      Maps: [map],
      Reduce: null,
      Fields: {
        T: { Analyzer: null, Indexing: null, Storage: "Yes", Suggestions: null, TermVector: null },
      },
    });
    expect((await client.send("GET indexes?name=none")).status).toBe(404);
    expect(await resultsOf("GET indexes?namesOnly=true")).toEqual(["I1"]);
    const { Indexes } = (await json("GET stats")) as { Indexes: Json[] };
    expect(Indexes).toMatchObject([{ Name: "I1", Type: "JavaScriptMap", SourceType: "Documents" }]);
  });

  test("has statistics, terms and a status", async () => {
    await settle("I1");
    const [row] = await resultsOf("GET indexes/stats?name=I1");
    expect(row).toMatchObject({
      MapAttempts: 3,
      MapSuccesses: 3,
      ReduceAttempts: null,
      MapReferenceAttempts: null,
      EntriesCount: 3,
      ErrorsCount: 0,
      IsInvalidIndex: false,
      Collections: { Ss: { LastProcessedDocumentEtag: 3, DocumentLag: 0 } },
    });
    const terms = async (more: string) =>
      (await json(`GET indexes/terms?name=I1&${more}`))["Terms"];
    expect(await terms("field=N")).toEqual(["1", "2", "3"]);
    expect(await terms("field=N&fromValue=1&pageSize=1")).toEqual(["2"]);
    expect(await terms("field=T")).toEqual(["NULL_VALUE", "one", "three"]);
    expect(await terms("field=id()")).toEqual(["s/1", "s/2", "s/3"]);
    expect(await terms("field=none")).toEqual([]);
    expect(await json("GET indexes/status")).toEqual({
      Status: "Running",
      Indexes: [{ Name: "I1", Status: "Running" }],
    });
    expect(await json("GET indexes/debug/metadata?name=I1")).toMatchObject({
      Results: [{ Name: "I1", HasDynamicFields: false }],
    });
  });

  test("reports whether another definition would change it", async () => {
    const changed = async (definition: Json) =>
      (await client.send("POST indexes/has-changed", definition)).json;
    const same = { Name: "I1", Maps: [map], Fields: { T: { Storage: "Yes" } } };
    expect(await changed(same)).toEqual({ Changed: false });
    expect(await changed({ ...same, Maps: [`${map} `] })).toEqual({ Changed: true });
    expect(await changed({ ...same, Name: "I9" })).toEqual({ Changed: true });
  });

  test("is replaced when the new one has caught up, or immediately on request", async () => {
    await client.send("POST admin/indexes/stop");
    await put({ Name: "I1", Maps: ["map('Ss', s => ({ M: s.N }))"] });
    expect(await resultsOf("GET indexes?namesOnly=true")).toEqual(["I1", "ReplacementOf/I1"]);
    const [progress] = await resultsOf("GET indexes/progress");
    expect(progress).toMatchObject({
      Name: "ReplacementOf/I1",
      IndexRunningStatus: "Paused",
      Collections: { Ss: { NumberOfItemsToProcess: 3 } },
    });
    expect((await client.send("POST indexes/replace?name=I1")).status).toBe(204);
    expect(await resultsOf("GET indexes?namesOnly=true")).toEqual(["I1"]);
    await client.send("POST admin/indexes/start");
    await settle("I1");
    const query = { Query: "from index 'I1' where M = 2" };
    const { TotalResults } = (await client.send("POST queries", query)).json as Json;
    expect(TotalResults).toBe(1);
  });

  test("is locked, prioritized, paused and disabled", async () => {
    const change = async (path: string, body: Json) => (await client.send(path, body)).status;
    expect(await change("POST indexes/set-lock", { IndexNames: ["I1"], Mode: "LockedError" })).toBe(
      204,
    );
    expect(
      await change("POST indexes/set-priority", { IndexNames: ["I1"], Priority: "High" }),
    ).toBe(204);
    const [definition] = await resultsOf("GET indexes?name=I1");
    expect(definition).toMatchObject({ LockMode: "LockedError", Priority: "High" });
    expect((await put({ Name: "I1", Maps: [map] })).json).toMatchObject({
      Type: "Raven.Client.Exceptions.Documents.Indexes.IndexCreationException",
    });
    expect((await client.send("DELETE indexes?name=I1")).json).toMatchObject({
      Type: "Raven.Client.Exceptions.Documents.Indexes.IndexDeletionException",
    });
    await change("POST indexes/set-lock", { IndexNames: ["I1"], Mode: "Unlock" });
    const status = async () => (await json("GET indexes/status"))["Indexes"];
    await client.send("POST admin/indexes/stop?name=I1");
    expect(await status()).toEqual([{ Name: "I1", Status: "Paused" }]);
    await change("POST indexes/set-priority", { IndexNames: ["I1"], Priority: "Normal" });
    expect(await status()).toEqual([{ Name: "I1", Status: "Paused" }]);
    await change("POST indexes/set-priority", { IndexNames: ["I1"], Priority: "High" });
    await client.send("POST admin/indexes/start?name=I1");
    await client.send("POST admin/indexes/disable?name=I1");
    expect(await status()).toEqual([{ Name: "I1", Status: "Disabled" }]);
    await client.send("POST admin/indexes/enable?name=I1");
    expect(await status()).toEqual([{ Name: "I1", Status: "Running" }]);
  });

  test("is rebuilt by RESET, and removed by DELETE", async () => {
    expect((await client.send("RESET indexes?name=I1")).status).toBe(204);
    expect((await client.send("DELETE indexes?name=I1")).status).toBe(204);
    expect((await client.send("DELETE indexes?name=I1")).status).toBe(404);
    expect((await client.send("RESET indexes?name=I1")).json).toMatchObject({
      Type: "Raven.Client.Exceptions.Documents.Indexes.IndexDoesNotExistException",
    });
  });
});

describe("an invalid definition", () => {
  const typeOf = (reply: { readonly json: unknown }) => (reply.json as Json)["Type"];

  test("is rejected with the error type that clients expect, and the invalid text", async () => {
    const bad = await put({ Name: "Bad", Maps: ["map('X', p => { bad( })"] });
    expect(bad.json).toMatchObject({
      Type: "Raven.Client.Exceptions.Documents.Compilation.IndexCompilationException",
      IndexDefinitionProperty: "Maps",
      ProblematicText: "map('X', p => { bad( })",
    });
    const sharp = { Name: "C", Maps: ["from s in docs.Ss select new { N = t.N }"] };
    expect((await put(sharp)).json).toMatchObject({ Type: "System.UnauthorizedAccessException" });
    const asAdmin = await client.send("PUT admin/indexes", { Indexes: [sharp] });
    expect(typeOf(asAdmin)).toBe(
      "Raven.Client.Exceptions.Documents.Compilation.IndexCompilationException",
    );
    expect(typeOf(await client.send("PUT indexes", {}))).toBe("System.ArgumentException");
    expect((await client.send("PUT indexes", { Indexes: [] })).status).toBe(201);
  });
});

describe("an index in C#", () => {
  const reduce =
    "from r in results group r by r.Odd into g select new { Odd = g.Key, Count = g.Sum(x => x.Count) }";
  const sharp = {
    Name: "Sharp/ByOdd",
    Maps: ["from s in docs.Ss\r\n\tselect new { Odd = s.N % 2 == 1, Count = 1 }"],
    Reduce: reduce,
    LockMode: "LockedIgnore",
  };

  test("is stored verbatim, only by administrators, and answers queries", async () => {
    expect((await put(sharp)).json).toMatchObject({ Type: "System.UnauthorizedAccessException" });
    const reply = await client.send("PUT admin/indexes", { Indexes: [sharp] });
    expect(reply.status).toBe(201);
    const [kept] = await resultsOf("GET indexes?name=Sharp/ByOdd");
    expect(kept).toMatchObject({ ...sharp, Type: "MapReduce", SourceType: "Documents" });
    const found = await client.send("POST queries", {
      Query: "from index 'Sharp/ByOdd' order by Count as long",
      WaitForNonStaleResults: true,
    });
    const rows = (found.json as { Results: Json[] }).Results;
    expect(rows.map(({ Odd, Count }) => [Odd, Count])).toEqual([
      [false, 1],
      [true, 2],
    ]);
    expect((await json("GET indexes/terms?name=Sharp/ByOdd&field=Count"))["Terms"]).toEqual([
      "1",
      "2",
    ]);
    await client.send("POST indexes/set-lock", { IndexNames: [sharp.Name], Mode: "Unlock" });
    await client.send("DELETE indexes?name=Sharp/ByOdd");
  });

  test("reports line and column of an error", async () => {
    const Maps = ["from s in docs.Ss\nselect new { s.N"];
    const { json: error } = await client.send("PUT admin/indexes", {
      Indexes: [{ Name: "Sharp/Bad", Maps }],
    });
    expect(error).toMatchObject({
      Type: "Raven.Client.Exceptions.Documents.Compilation.IndexCompilationException",
      Message:
        "Failed to compile index 'Sharp/Bad': (2,17): } expected, but found the end of the text",
    });
  });
});

describe("errors of an index", () => {
  test("are listed with their documents, and deleted on request", async () => {
    await put({
      Name: "E",
      Maps: ["map('Ss', s => { if (s.N === 2) throw 'no'; return { N: 1 }; })"],
    });
    await settle("E");
    expect(await resultsOf("GET indexes/errors?name=E")).toEqual([
      {
        Name: "E",
        Errors: [
          {
            Timestamp: expect.stringMatching(/Z$/),
            Document: "s/2",
            Action: "Map",
            Error: expect.stringContaining("no"),
            Line: 1,
            Column: 39,
          },
        ],
      },
    ]);
    expect((await client.send("DELETE indexes/errors?name=E")).status).toBe(204);
    expect(await resultsOf("GET indexes/errors")).toEqual([{ Name: "E", Errors: [] }]);
    expect((await client.send("GET indexes/errors?name=none")).json).toMatchObject({
      Type: "Raven.Client.Exceptions.Documents.Indexes.IndexDoesNotExistException",
    });
  });
});

describe("the history of an index", () => {
  test("contains its deployed definitions, newest first, and is deleted with it", async () => {
    const maps = ["map('Hs', h => ({ N: h.N }))", "map('Hs', h => ({ N: h.N * 2 }))"];
    for (const map of maps) await put({ Name: "History", Maps: [map] });
    const history = (await client.json("GET indexes/history?name=history")) as {
      Index: string;
      History: { Definition: { Maps: string[]; Type: string }; CreatedAt: string }[];
    };
    expect(history.Index).toBe("History");
    expect(history.History.map(({ Definition }) => Definition.Maps[0])).toEqual(maps.reverse());
    expect(history.History[0]).toMatchObject({
      Definition: { Name: "History", Type: "JavaScriptMap" },
      CreatedAt: expect.stringMatching(/Z$/),
      Source: expect.any(String),
      RollingDeployment: {},
    });
    await client.send("DELETE indexes?name=History");
    expect((await client.send("GET indexes/history?name=History")).status).toBe(404);
  });

  test("of a missing index is not found, nor are its source and fields", async () => {
    for (const path of [
      "history?name=none",
      "source?name=none",
      "debug?op=entries-fields&name=none",
    ]) {
      expect((await client.send(`GET indexes/${path}`)).status).toBe(404);
    }
  });
});

test("settings of an index are RavenDB's, with valid values", async () => {
  const put = async (key: string, text: string) => {
    const definition = { Name: "Set", Maps: ["from u in docs.Users select new { u.Name }"] };
    const Indexes = [{ ...definition, Configuration: { [key]: text } }];
    const { status, json } = await client.send("PUT admin/indexes", { Indexes });
    return [status, (json as { Message?: string }).Message];
  };
  for (const key of ["Indexing.Nope", "Nope", "indexing.mapbatchsize"]) {
    const message = `Could not create index 'Set' because the configuration option key '${key}' is not recognized`;
    expect(await put(key, "1")).toEqual([400, message]);
  }
  expect(await put("Indexing.MapBatchSize", "x")).toEqual([
    400,
    "Could not set 'Indexing.MapBatchSize' configuration setting value.",
  ]);
  expect(await put("Indexing.Metrics.Enabled", "true")).toEqual([201, undefined]);
});
