import { hostname } from "node:os";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { stopTestServers } from "../../../support/start-test-server.ts";

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
  await client.send("PUT docs?id=users/1", {
    Name: "Ann",
    "@metadata": { "@collection": "Users" },
  });
});
afterAll(stopTestServers);

type Json = Record<string, unknown>;

const recordOf = async () => (await client.json("GET /admin/databases?name=db")) as Json;

describe("the nodes of a database", () => {
  test("are a single node, whose order can be set, and which needs no promotion", async () => {
    const reorder = "POST /admin/databases/reorder?name=db";
    expect((await client.send(reorder, { MembersOrder: ["A"] })).status).toBe(204);
    expect((await client.send(reorder, { MembersOrder: ["B", "A"] })).status).toBe(400);
    const promoted = await client.json("POST /admin/databases/promote?name=db&node=A");
    expect(promoted).toMatchObject({ Name: "db" });
    const added = await client.send("PUT /admin/databases/node?name=db");
    expect(added.text).toContain("Database db already exists on all the nodes of the cluster");
    const member = await client.send("PUT /admin/databases/node?name=db&node=A");
    expect(member.text).toContain("Can't add node A to db topology because it is already part");
    const stranger = await client.send("PUT /admin/databases/node?name=db&node=B");
    expect(stranger.text).toContain("node B (which is in the new topology) is not part of the");
    expect((await client.send("PUT /admin/databases/node?name=nope")).status).toBe(400);
  });
});

describe("the record of a database", () => {
  test("stores conflict rules, unused ids and compression for clients", async () => {
    const solver = { ResolveToLatest: true, ResolveByCollection: {} };
    expect((await client.send("GET replication/conflicts/solver")).status).toBe(404);
    const put = await client.send("POST /admin/replication/conflicts/solver?name=db", solver);
    expect(await client.json("GET replication/conflicts/solver")).toEqual(solver);
    expect(put.json).toMatchObject({ Key: "db", ConflictSolverConfig: solver });
    await client.send("POST /admin/databases/unused-ids?name=db", { DatabaseIds: ["x"] });
    const compression = { Collections: ["Users"], CompressRevisions: true };
    await client.send("POST admin/documents-compression/config", compression);
    expect(await recordOf()).toMatchObject({
      ConflictSolverConfig: solver,
      UnusedDatabaseIds: ["x"],
      DocumentsCompression: { ...compression, CompressAllCollections: false },
    });
  });

  test("stores that archiving is off, and no other archiving options", async () => {
    const post = (body: object) => client.send("POST admin/data-archival/config", body);
    expect((await client.send("GET data-archival/config")).status).toBe(404);
    expect((await post({ Disabled: true, ArchiveFrequencyInSec: 5 })).status).toBe(200);
    const kept = { Disabled: true, ArchiveFrequencyInSec: 5, MaxItemsToProcess: null };
    expect((await post({ Disabled: true, ArchiveFrequencyInSec: 0 })).text).toContain(
      "Archive frequency for database 'db' must be greater than 0.",
    );
    expect((await post({ ArchiveFrequencyInSec: 5 })).text).toContain("not supported");
    expect(await client.json("GET data-archival/config")).toEqual(kept);
    expect(await recordOf()).toMatchObject({ DataArchival: kept });
  });

  test("lists automatic indexes with their fields", async () => {
    for (const query of [
      "from Users where search(Name, 'x')",
      "from Users group by Name select count()",
    ]) {
      await client.send("POST queries", { Query: query });
    }
    expect((await recordOf())["AutoIndexes"]).toMatchObject({
      "Auto/Users/BySearch(Name)": {
        Type: "AutoMap",
        Collection: "Users",
        MapFields: { Name: { Indexing: "Search", Aggregation: "None" } },
        GroupByFields: {},
      },
      "Auto/Users/ByCountReducedByName": {
        Type: "AutoMapReduce",
        MapFields: { Count: { Aggregation: "Count" } },
        GroupByFields: { Name: { GroupByArrayBehavior: "ByIndividualValues" } },
      },
    });
  });

  test("contains each deployed index, with options as sent", async () => {
    const put = (field: string, more = {}) =>
      client.send("PUT admin/indexes", {
        Indexes: [{ Name: "I", Maps: [`map('Users', u => ({ x: u.${field} }))`], ...more }],
      });
    await put("A", { LockMode: "Unlock" });
    const reply = JSON.parse((await put("B", { Fields: { x: { Storage: "Yes" } } })).text) as {
      Results: { RaftCommandIndex: number }[];
    };
    const { IndexesHistory: histories } = (await recordOf()) as {
      IndexesHistory: Record<string, Record<string, unknown>[]>;
    };
    const [newer, older, ...more] = histories["I"] ?? [];
    expect(more).toEqual([]);
    expect(newer).toEqual({
      Definition: {
        ...(newer?.["Definition"] as object),
        ClusterState: {
          LastIndex: reply.Results[0]?.RaftCommandIndex,
          LastStateIndex: 0,
          LastRollingDeploymentIndex: 0,
        },
        LockMode: null,
        Maps: ["map('Users', u => ({ x: u.B }))"],
        Fields: { x: expect.objectContaining({ Storage: "Yes" }) as object },
        Type: "JavaScriptMap",
        Name: "I",
        State: null,
      },
      Source: hostname(),
      CreatedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{7}Z$/) as string,
      RollingDeployment: null,
    });
    expect(older).toMatchObject({ Definition: { LockMode: "Unlock" }, RollingDeployment: {} });
    await client.send("DELETE indexes?name=I");
    expect((await recordOf())["IndexesHistory"]).toEqual({});
  });

  test("stores the value names of time series", async () => {
    const put = (TimeSeries: string, ValueNames: string[], more = {}) =>
      client.send("POST timeseries/names/config", {
        Collection: "Users",
        TimeSeries,
        ValueNames,
        ...more,
      });
    expect((await client.send("GET timeseries/config")).status).toBe(404);
    expect((await put("Heart", ["BPM"])).status).toBe(200);
    expect((await put("heart", ["Beats"])).text).toContain("they already exists");
    expect((await put("heart", ["Beats"], { Update: true })).status).toBe(200);
    expect((await put("Blood", [])).status).toBe(400);
    expect(await client.json("GET timeseries/config")).toEqual({
      Collections: {},
      PolicyCheckFrequency: null,
      NamedValues: { Users: { Heart: ["Beats"] } },
    });
    const replaced = { NamedValues: { Users: { Steps: ["n"] } } };
    await client.send("POST admin/timeseries/config", replaced);
    expect((await recordOf())["TimeSeries"]).toMatchObject(replaced);
  });
});

describe("POST /admin/compact", () => {
  test("is refused without a name, and without anything to compact", async () => {
    const refused = async (body: object) => (await client.send("POST /admin/compact", body)).text;
    expect(await refused({})).toContain("DatabaseName is a required field");
    expect(await refused({ DatabaseName: "", Documents: true })).toContain(
      "System.InvalidOperation",
    );
    for (const Indexes of [undefined, []]) {
      const body = { DatabaseName: "db", Documents: false, Indexes };
      expect(await refused(body)).toContain("Nothing to compact.");
    }
  });

  async function compacted(of: EndpointClient): Promise<Json> {
    const body = { DatabaseName: "db", Documents: true };
    const { OperationId } = (await of.json("POST /admin/compact", body)) as { OperationId: number };
    let state: Json = { Status: "InProgress" };
    while (state["Status"] === "InProgress") {
      state = (await of.json(`GET /operations/state?id=${OperationId}`)) as Json;
    }
    return state;
  }

  test("starts a server operation, which fails in memory", async () => {
    const onDisk = await startEndpointClient(["--RunInMemory=false"]);
    expect(await compacted(onDisk)).toMatchObject({ Status: "Completed" });
    const inMemory = await startEndpointClient(["--RunInMemory=true"]);
    expect(await compacted(inMemory)).toMatchObject({
      Status: "Faulted",
      Result: {
        Type: "System.InvalidOperationException",
        Message: expect.stringContaining("Failed to execute compaction for db"),
      },
    });
    expect((await client.send("POST /admin/compact", { DatabaseName: "no" })).text).toContain(
      "Cannot compact database no, it doesn't exist.",
    );
  });
});

describe("the configuration of clients", () => {
  const put = (path: string, body: object) => client.send(`PUT ${path}`, body);
  const refreshes = async (etag: number | string) =>
    (
      await client.send("GET docs?id=users/1", undefined, {
        "client-configuration-etag": `${etag}`,
      })
    ).headers["refresh-client-configuration"];

  test("is requested again by clients with an old etag", async () => {
    expect(await refreshes(0)).toBeUndefined();
    await put("admin/configuration/client", { MaxNumberOfRequestsPerSession: 5 });
    const { Etag } = (await client.json("GET configuration/client")) as { Etag: number };
    expect(await refreshes(0)).toBe("true");
    expect(await refreshes('"0"')).toBe("true");
    expect(await refreshes(Etag)).toBeUndefined();
    expect(await refreshes(`"${Etag}"`)).toBeUndefined();
    expect(await refreshes("old")).toBeUndefined();
  });

  test("is the server's if the database has no enabled configuration", async () => {
    await put("/admin/configuration/client", { ReadBalanceBehavior: "RoundRobin" });
    const own = (await client.json("GET configuration/client")) as { Etag: number };
    expect(own).toMatchObject({ Configuration: { MaxNumberOfRequestsPerSession: 5 } });
    await put("admin/configuration/client", { Disabled: true });
    const common = (await client.json("GET configuration/client")) as { Etag: number };
    expect(common).toMatchObject({ Configuration: { ReadBalanceBehavior: "RoundRobin" } });
    expect(common.Etag).toBeGreaterThan(own.Etag);
  });

  test("defines the separator for ids generated by the server", async () => {
    await put("admin/configuration/client", { IdentityPartsSeparator: ":" });
    const idOf = async (id: string) =>
      ((await client.json(`PUT docs?id=${encodeURIComponent(id)}`, {})) as { Id: string }).Id;
    expect(await idOf("cars:")).toMatch(/^cars:\d{19}-A$/);
    expect(await idOf("cars|")).toBe("cars:1");
    expect(await idOf("cars/")).toBe("cars/");
    const refused = await client.send("POST bulk_docs", {
      Commands: [{ Type: "PUT", Id: "cars:", Document: {} }],
      TransactionMode: "ClusterWide",
    });
    expect(refused.text).toContain("cannot end with '|' or ':' as part of cluster transaction");
    expect((await put("admin/configuration/client", { IdentityPartsSeparator: "|" })).status).toBe(
      400,
    );
    await put("admin/configuration/client", { IdentityPartsSeparator: null });
    expect(await idOf("cars|")).toBe("cars/2");
  });

  test("and the topology are requested again by clients with an older one", async () => {
    await client.send("PUT /admin/databases?name=made", { DatabaseName: "made" });
    const refreshed = async (etag: string) => {
      const headers = { "topology-etag": etag };
      const reply = await client.send("GET /databases/made/docs", undefined, headers);
      return reply.headers["refresh-topology"];
    };
    const { Etag } = (await client.json("GET /topology?name=made")) as { Etag: number };
    expect(await refreshed(`"${Etag - 1}"`)).toBe("true");
    expect(await refreshed(`"${Etag}"`)).toBeUndefined();
  });
});

describe("GET /admin/test/delay", () => {
  test("replies after the delay", async () => {
    const before = performance.now();
    expect((await client.send("GET /admin/test/delay?value=20")).status).toBe(200);
    expect(performance.now() - before).toBeGreaterThan(15);
    expect((await client.send("GET /admin/test/delay")).status).toBe(400);
  });
});

describe("a cluster-wide batch", () => {
  test("checks the change vector loaded by the session", async () => {
    const put = (vector: string | null) =>
      client.send(
        "POST bulk_docs",
        {
          Commands: [
            {
              Type: "PUT",
              Id: "guarded/1",
              ChangeVector: null,
              OriginalChangeVector: vector,
              Document: {},
            },
          ],
          TransactionMode: "ClusterWide",
        },
        { "raven-client-version": "7.2.3" },
      );
    const vectorNow = async () =>
      JSON.parse((await client.send("GET docs?id=guarded/1")).headers.etag ?? "") as string;
    expect((await put(null)).status).toBe(201);
    const first = await vectorNow();
    expect((await put(first)).status).toBe(201);
    expect((await put(first)).status).toBe(409);
    expect((await put(await vectorNow())).status).toBe(201);
  });
});
