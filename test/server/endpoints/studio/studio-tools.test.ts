/**
 * Requests of single pages of RavenDB's Studio: classes, fields, defaults, limits, licence,
 * assistant.
 */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { stopTestServers } from "../../../support/start-test-server.ts";

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
});
afterAll(stopTestServers);

test("generates classes from documents, sample data and indexes", async () => {
  const metadata = { "@collection": "Orders" };
  await client.send("PUT docs?id=orders/1", { Company: "a", "@metadata": metadata });
  expect((await client.send("GET docs/class?id=orders/1")).text).toContain(
    "public class Order\n    {\n        public string Company { get; set; }",
  );
  expect((await client.send("GET docs/class?id=none")).status).toBe(404);
  const ofCollection = await client.send("GET docs/class?collection=orders");
  expect(ofCollection.text).toContain("public class Order\n");
  expect(ofCollection.headers["content-type"]).toBe("application/json; charset=utf-8");
  expect((await client.send("GET docs/class?collection=None")).status).toBe(404);
  expect((await client.send("GET docs/class")).json).toMatchObject({
    Type: "System.InvalidOperationException",
    Message: "Either 'id' or 'collection' query parameters must be specified.",
  });
  const { text } = await client.send("GET studio/sample-data/classes");
  for (const name of ["Order", "Company", "Employee", "Category", "Shipper", "Lines"]) {
    expect(text).toContain(`public class ${name}\n`);
  }
  const map = "map('Orders', (o) => ({ Company: o.Company }))";
  await client.send("PUT admin/indexes", { Indexes: [{ Name: "A/B", Maps: [map] }] });
  const shown = await client.send("GET indexes/c-sharp-index-definition?name=A/B");
  expect(shown.text).toContain("public class Index_A_B : AbstractIndexCreationTask");
  expect(shown.text).toContain(`@"${map}"`);
  expect((await client.send("GET indexes/c-sharp-index-definition?name=none")).status).toBe(404);
  await client.send("POST queries", { Query: "from Orders where Company = 'a'" });
  const automatic = await client.send(
    "GET indexes/c-sharp-index-definition?name=Auto/Orders/ByCompany",
  );
  expect(automatic.status).toBe(400);
  expect(automatic.text).toContain("from auto indexes");
  expect(await client.json("GET studio/license/limits-usage")).toMatchObject({
    NumberOfStaticIndexes: 1,
    NumberOfAutoIndexes: 1,
    NumberOfSubscriptions: 0,
  });
});

test("returns the fields of a map during editing", async () => {
  const fields = (map: string) => client.json("POST studio/index-fields", { Map: map });
  expect(await fields("from o in docs.Orders select new { o.Company, Tot = 1 }")).toEqual({
    Results: ["Company", "Tot"],
  });
  expect(await fields("from o in docs.Ord")).toEqual([]);
});

test("returns the type of an index before it is deployed", async () => {
  const type = (Maps: string[], Reduce?: string) =>
    client.json("POST studio/index-type", { Name: "a", Maps, Reduce });
  expect(await type(["from o in docs.Orders select new { o.Company }"])).toEqual({
    IndexType: "Map",
    IndexSourceType: "Documents",
  });
  const reduce = "groupBy(x => x.a).aggregate(g => ({ a: g.key }))";
  expect(await type([`map("Orders", o => ({ a: o.A }))`], reduce)).toEqual({
    IndexType: "JavaScriptMapReduce",
    IndexSourceType: "Documents",
  });
  expect(await type([`timeSeries.map("C", "S", s => ({ a: 1 }))`])).toEqual({
    IndexType: "JavaScriptMap",
    IndexSourceType: "TimeSeries",
  });
  expect(await type(["nonsense"])).toEqual({
    IndexType: "JavaScriptMap",
    IndexSourceType: "Documents",
  });
  expect((await client.send("POST studio/index-type", { Maps: [] })).status).toBe(400);
});

test("reports unsupported features as absent", async () => {
  expect(await client.json("GET indexes/suggest-index-merge")).toEqual({
    Unmergables: {},
    Suggestions: [],
    Errors: [],
  });
  expect(await client.json("GET studio-tasks/indexes/configuration/defaults")).toMatchObject({
    StaticIndexingEngineType: "Corax",
  });
  expect(await client.json("GET /license/configuration")).toMatchObject({ CanRenew: true });
  expect(await client.json("GET /license-server/connectivity")).toMatchObject({
    Exception: expect.stringContaining("No license is needed"),
  });
  for (const path of ["check-consent", "check-usage"]) {
    const { status, text } = await client.send(`GET /assistant/${path}`);
    expect([status, text.includes("no AI assistant")]).toEqual([400, true]);
  }
  expect(await client.json("GET /admin/cluster/observer/decisions")).toMatchObject({
    LeaderNode: "A",
    ObserverLog: [],
  });
  expect(await client.json("GET /admin/event-listener/configuration")).toMatchObject({
    EventListenerMode: "Off",
  });
  expect(await client.json("GET /analyzers")).toEqual({ Analyzers: [] });
  expect(await client.json("GET /sorters")).toEqual({ Sorters: [] });
});

test("lists folders only where backups are permitted", async () => {
  const root = mkdtempSync(join(tmpdir(), "jackdaw-folders-"));
  mkdirSync(join(root, "b", "c"), { recursive: true });
  mkdirSync(join(root, "a"));
  writeFileSync(join(root, "file"), "");
  const bound = await startEndpointClient([`--Backup.LocalRootPath=${root}`]);
  const list = async (of: EndpointClient, path: string, type = "Local") => {
    const query = `type=${type}&path=${encodeURIComponent(path)}&backupFolder=true`;
    const { List } = (await of.json(
      `POST admin/studio-tasks/folder-path-options?${query}`,
      {},
    )) as {
      List: string[];
    };
    return List.map((one) => relative(realpathSync(root), one));
  };
  expect(await list(bound, "")).toEqual(["a", "b"]);
  expect(await list(bound, join(root, "b"))).toEqual([join("b", "c")]);
  expect(await list(bound, tmpdir())).toEqual([]);
  expect(await list(bound, root, "S3")).toEqual([]);
  expect(await list(client, root)).toEqual(["a", "b"]);
  const room = (of: EndpointClient, path: string, more = "") =>
    of.json(`GET admin/backup-data-directory?path=${encodeURIComponent(path)}${more}`);
  const within = join(root, "not", "yet");
  expect(await room(bound, within)).toMatchObject({
    NodeTag: "A",
    FullPath: join(realpathSync(root), "not", "yet"),
    FreeSpaceInBytes: expect.any(Number),
    FreeSpaceHumane: expect.stringMatching(/Bytes$/),
    TotalSpaceInBytes: expect.any(Number),
    Error: null,
  });
  expect(await room(bound, "/", "&getNodesInfo=true")).toMatchObject({
    List: [{ FullPath: "/", FreeSpaceInBytes: 0, Error: expect.stringContaining("within") }],
  });
  expect(await room(client, "relative")).toMatchObject({
    Error: expect.stringContaining("absolute path"),
  });
  expect((await client.send("GET admin/backup-data-directory")).status).toBe(400);
  expect(await list(client, "Databases/{name}")).toEqual([]);
  rmSync(root, { recursive: true });
});
