/** `indexes/test`: a definition is tried on documents, without an index. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type EndpointClient, startEndpointClient } from "../../support/endpoint-client.ts";
import { stopTestServers } from "../../support/start-test-server.ts";

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
  for (const [id, body] of Object.entries({
    "users/1": { Name: "Ann", City: "Oslo", Boss: "users/2" },
    "users/2": { Name: "Bob", City: "Oslo" },
    "users/3": { Name: null, City: "Rome" },
  })) {
    const metadata = { "@metadata": { "@collection": "Users" } };
    await client.send(
      `PUT docs?id=${encodeURIComponent(id)}`,
      JSON.stringify({ ...body, ...metadata }),
    );
  }
});
afterAll(stopTestServers);

const noName =
  "map('Users', u => {\n  if (u.Name === null) throw new Error('no name');\n  return { L: u.Name };\n})";

const attempt = async (IndexDefinition: object, more: object = {}) =>
  await client.send("POST indexes/test", { IndexDefinition, QueryParameters: {}, ...more });

test("returns the entries of each document and the results of the reduce, without an index", async () => {
  const reply = await attempt({
    Maps: ["map('Users', u => ({ City: u.City, N: 1, Boss: load(u.Boss, 'Users').Name }))"],
    Reduce:
      "groupBy(x => x.City).aggregate(g => ({ City: g.key, N: g.values.reduce((n, v) => n + v.N, 0) }))",
  });
  expect(reply.status).toBe(200);
  expect(reply.json).toMatchObject({
    MapResults: [{ City: "Oslo", N: 1, Boss: "Bob" }, { City: "Oslo" }, { City: "Rome" }],
    ReduceResults: [
      { City: "Oslo", N: 2 },
      { City: "Rome", N: 1 },
    ],
    ReduceKeys: ["Oslo", "Rome"],
    Documents: [{ Keys: ["Oslo"] }, { Keys: ["Oslo"] }, { Keys: ["Rome"] }],
    IndexType: "JavaScriptMapReduce",
    Errors: [],
  });
  expect(await client.json("GET indexes?namesOnly=true")).toMatchObject({ Results: [] });
});

test("tries only the named documents, and reports where a map failed", async () => {
  const Maps = [noName];
  const reply = await attempt({ Name: "Any", Maps }, { Ids: ["users/3", "users/1"] });
  expect(reply.json).toMatchObject({
    IndexEntries: [{ L: "Ann" }],
    Documents: [
      { Id: "users/3", Entries: [] },
      { Id: "users/1", Entries: [{ L: "Ann" }] },
    ],
    Errors: [{ Document: "users/3", Action: "Map", Line: 2 }],
  });
  const first = await attempt(
    { Maps: ["map('Users', u => ({ N: u.Name }))"] },
    { MaxDocumentsToProcess: 1 },
  );
  expect((first.json as { Documents: object[] }).Documents).toHaveLength(1);
});

test("supports C#, and reports endless loops, unknown documents and errors", async () => {
  const csharp = await attempt({ Maps: ["from u in docs.Users select new { u.City }"] });
  expect(csharp.json).toMatchObject({ IndexType: "Map", MapResults: [{ City: "Oslo" }, {}, {}] });
  const endless = await attempt({ Maps: ["map('Users', u => { for (;;) {} })"] });
  expect(endless.json).toMatchObject({ Errors: [{ Document: "users/1" }, {}, {}] });
  const wrong = await attempt({ Maps: ["map('Users', u => ({ C: u.x "] });
  expect([wrong.status, wrong.text]).toEqual([400, expect.stringContaining("<anonymous>:1:29")]);
  expect((await attempt({ Maps: ["map('Users', u => u)"] }, { Ids: ["x/1"] })).text).toContain(
    "There is no document 'x/1' to try the index on.",
  );
  const none = await client.send("POST indexes/test", {});
  expect(none.text).toContain("Index must have an IndexDefinition field");
});

test("errors of a deployed index have the line in addition to the message", async () => {
  const Maps = [noName];
  await client.send("PUT indexes", { Indexes: [{ Name: "Trimmed", Maps }] });
  for (;;) {
    const { Results } = (await client.json("GET indexes/errors?name=Trimmed")) as {
      Results: { Errors: object[] }[];
    };
    const [error] = Results[0]?.Errors ?? [];
    if (error === undefined) await new Promise((resolve) => setTimeout(resolve, 10));
    else {
      expect(error).toMatchObject({ Document: "users/3", Action: "Map", Line: 2 });
      return;
    }
  }
});
