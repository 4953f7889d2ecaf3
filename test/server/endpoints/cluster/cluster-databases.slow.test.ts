import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { EngineError } from "../../../../engine/engine.ts";
import type { ReplicaState } from "../../../../server/cluster/cluster-view.ts";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { FakeCluster } from "../../../support/fake-cluster.ts";
import { stopTestServers } from "../../../support/start-test-server.ts";

type Json = Record<string, unknown>;

let client: EndpointClient;
let cluster: FakeCluster;
beforeEach(async () => {
  await stopTestServers();
  client = await startEndpointClient();
  cluster = new FakeCluster(client.server.running.services);
  cluster.register("db", ["A", "B", "C"]);
});
afterAll(stopTestServers);

const put = (name: string, query = "", more: object = {}, headers = {}) =>
  client.send(
    `PUT /admin/databases?name=${name}${query}`,
    { DatabaseName: name, ...more },
    headers,
  );

describe("the topology of a database", () => {
  test("lists the registered addresses of all nodes, the leader first, and its etag", async () => {
    await cluster.transfer("db", "B");
    const topology = (await client.json("GET /topology?name=DB")) as {
      Nodes: Json[];
      Etag: number;
    };
    expect(
      topology.Nodes.map((node) => [node["Url"], node["ClusterTag"], node["ServerRole"]]),
    ).toEqual([
      ["http://b.example:8080", "B", "Member"],
      ["http://a.example:8080", "A", "Member"],
      ["http://c.example:8080", "C", "Member"],
    ]);
    expect(topology.Nodes[0]?.["Database"]).toBe("db");
    expect(topology.Etag).toBe(cluster.find("db")?.topologyEtag);
  });

  test("is returned by a node without a copy, and is 503 for an unknown database", async () => {
    cluster.register("far", ["B", "C"]);
    const topology = (await client.json("GET /topology?name=far")) as { Nodes: Json[] };
    expect(topology.Nodes.map((node) => node["ClusterTag"])).toEqual(["B", "C"]);
    expect((await client.send("GET /topology?name=nope")).status).toBe(503);
  });
});

describe("the topology of the cluster", () => {
  test("lists all nodes with their registered addresses, the leader, and their states", async () => {
    cluster.hear("C", {}, 60_000);
    cluster.leaderTag = "B";
    cluster.changed();
    const topology = (await client.json("GET /cluster/topology")) as Json;
    expect(topology).toMatchObject({
      Topology: {
        TopologyId: cluster.topologyId,
        AllNodes: { A: "http://a.example:8080", B: "http://b.example:8080" },
        LastNodeId: "C",
        Etag: cluster.index,
      },
      Leader: "B",
      NodeTag: "A",
      CurrentState: "Follower",
      CurrentTerm: 3,
      LeaderShipDuration: null,
      ServerRole: "Member",
      Status: {
        B: { Connected: true, ErrorDetails: null },
        C: { Connected: false, ErrorDetails: "Node C has sent no heartbeats for 60 s." },
      },
    });
    expect(topology["LastStateChangeReason"]).toMatch(
      /^Follower, Node B orders the changes of the cluster \(at \d\d\/\d\d\/\d{4} [\d:]{8}\)$/,
    );
    expect(Object.keys((topology["Topology"] as Json)["Members"] as Json)).toEqual(["A", "B", "C"]);
  });

  test("describes a single node: its state, its role, the id of the cluster", async () => {
    expect(await client.json("GET /cluster/node-info")).toMatchObject({
      NodeTag: "A",
      TopologyId: cluster.topologyId,
      CurrentState: "Leader",
      ServerRole: "Member",
    });
    cluster.nodes.splice(0, 1);
    cluster.changed();
    expect(await client.json("GET /cluster/node-info")).toMatchObject({
      CurrentState: "Passive",
      ServerRole: "None",
    });
  });
});

/** Registers enough databases on other nodes for this node to create the next ones. */
function leadElsewhere(...tags: readonly string[]): void {
  for (const tag of tags) {
    for (let n = 0; n < 6; n++) cluster.register(`${tag}${n}`, [tag], { leaderTag: tag });
  }
}

describe("a new database", () => {
  test("is created by the node that leads the fewest", async () => {
    cluster.answer = () => ({ status: 201, json: { Name: "new", RaftCommandIndex: 7 } });
    expect((await put("new")).json).toEqual({ Name: "new", RaftCommandIndex: 7 });
    expect(cluster.sent.map(({ tag, what }) => `${tag} ${what}`)).toEqual([
      "C PUT /admin/databases?name=new",
    ]);
    expect(cluster.calls).toEqual([]);
    // That node cannot be reached, nor can B.
    cluster.answer = () => {
      throw new EngineError("node-unreachable", "away", { details: { wasSent: false } });
    };
    expect((await put("here")).json).toMatchObject({ Topology: { Members: ["C", "B", "A"] } });
    expect(cluster.find("here")?.leaderTag).toBe("A");
  });

  test("has the requested number of copies, at most one on each node", async () => {
    leadElsewhere("B", "C");
    const { status, json } = await put("two", "&replicationFactor=2");
    expect(status).toBe(201);
    expect(json).toMatchObject({
      Name: "two",
      Topology: { Members: ["A", "C"], ReplicationFactor: 2, Promotables: [], Rehabs: [] },
      NodesAddedTo: ["http://a.example:8080", "http://c.example:8080"],
      ShardsDefined: false,
    });
    expect((await put("nine", "&replicationFactor=9")).json).toMatchObject({
      Topology: { ReplicationFactor: 3 },
    });
    expect((await put("none", "&replicationFactor=0")).json).toMatchObject({
      Type: "System.ArgumentException",
      Message: "Replication factor must be greater than 0.",
    });
  });

  test("has three copies by default, or as specified in its record", async () => {
    cluster.nodes.push({ tag: "D", url: "http://d.example:8080", tcpUrl: null, fingerprint: null });
    cluster.hear("D");
    cluster.register("db", ["B", "C", "D"]);
    leadElsewhere("B", "C", "D");
    cluster.register("one", ["D"], { leaderTag: "D" });
    expect((await put("three")).json).toMatchObject({ Topology: { Members: ["A", "C", "B"] } });
    const named = await put("named", "&replicationFactor=1", { Topology: { Members: ["C", "A"] } });
    expect(named.json).toMatchObject({ Topology: { Members: ["C", "A"], ReplicationFactor: 2 } });
    const factor = await put("factor", "", { Topology: { ReplicationFactor: 2 } });
    expect(factor.json).toMatchObject({ Topology: { ReplicationFactor: 2 } });
  });

  test("is rejected on unknown nodes, twice on one node, and with a name in use", async () => {
    const unknown = await put("x", "", { Topology: { Members: ["A", "Q"] } });
    expect(unknown.text).toContain(
      "Failed to add node Q, because we don't have it in the cluster.",
    );
    const twice = await put("x", "", { Topology: { Members: ["A", "A"] } });
    expect(twice.text).toContain("cannot have multiple replicas reside on the same node A");
    expect((await put("x", "", { Topology: { Members: "A" } })).json).toMatchObject({
      Type: "System.FormatException",
    });
    expect((await put("DB")).status).toBe(409);
    expect(cluster.find("x")).toBeUndefined();
  });

  test("without a local copy is created by a member, or by the next one if that is unreachable", async () => {
    cluster.answer = ({ tag }) => {
      if (tag !== "B") return { status: 201, json: { Name: "far", RaftCommandIndex: 7 } };
      throw new EngineError("node-unreachable", "away", { details: { wasSent: false } });
    };
    const { status, json } = await put("far", "", { Topology: { Members: ["B", "C"] } });
    expect([status, json]).toEqual([201, { Name: "far", RaftCommandIndex: 7 }]);
    expect(cluster.sent.map(({ tag, what }) => `${tag} ${what}`)).toEqual([
      "B PUT /admin/databases?name=far",
      "C PUT /admin/databases?name=far",
    ]);
    expect(JSON.parse(cluster.sent[0]?.body ?? "")).toEqual({
      DatabaseName: "far",
      Topology: { Members: ["B", "C"] },
    });
    expect(cluster.headers[0]).toMatchObject({ "x-jackdaw-forwarded": "A" });
    expect(cluster.calls).toEqual([]);
  });

  test("waits on a node that has just started and does not know the members yet", async () => {
    leadElsewhere("B", "C");
    const nodes = cluster.nodes.splice(0);
    const created = put("early");
    setTimeout(() => cluster.nodes.push(...nodes), 200);
    expect((await created).status).toBe(201);
    cluster.nodes.splice(0);
    expect((await put("late")).status).toBe(503);
  });

  test("is not requested again if a node may have created it", async () => {
    cluster.answer = () => {
      throw new EngineError("node-unreachable", "cut off", { details: { wasSent: true } });
    };
    const { status } = await put("far", "", { Topology: { Members: ["B", "C"] } });
    expect([status, cluster.sent.length]).toEqual([503, 1]);
  });
});

describe("the record of a database", () => {
  test("lists its nodes, and the reasons why some are not members", async () => {
    cluster.hear("C", {}, 60_000);
    const record = (await client.json("GET /admin/databases?name=db")) as Json;
    expect(record["Topology"]).toMatchObject({
      Members: ["A", "B"],
      Rehabs: ["C"],
      DemotionReasons: { C: "Node C has sent no heartbeats recently." },
      PromotablesStatus: { C: "NotResponding" },
      Stamp: { Index: 11, Term: 2, LeadersTicks: -2 },
      ReplicationFactor: 3,
    });
  });

  test("is requested from a node that has it; a request is forwarded only once", async () => {
    cluster.register("far", ["B"]);
    cluster.answer = () => ({ status: 200, json: { DatabaseName: "far" } });
    expect(await client.json("GET /admin/databases?name=far")).toEqual({ DatabaseName: "far" });
    const forwarded = { "x-jackdaw-forwarded": "C" };
    const refused = await client.send("GET /admin/databases?name=far", undefined, forwarded);
    expect(refused.status).toBe(503);
    expect(cluster.sent).toHaveLength(1);
  });

  test("is replaced by the leader", async () => {
    await cluster.transfer("db", "C");
    cluster.answer = () => ({ status: 409, json: { Type: "X" } });
    const reply = await put("db", "", {}, { etag: '"5"' });
    expect([reply.status, reply.json]).toEqual([409, { Type: "X" }]);
    expect(cluster.sent[0]).toMatchObject({ tag: "C", what: "PUT /admin/databases?name=db" });
    expect(cluster.headers[0]).toMatchObject({ etag: '"5"' });
  });

  test("is disabled, enabled and locked by the leader", async () => {
    await cluster.transfer("db", "B");
    cluster.answer = ({ target }) =>
      target.endsWith("set-lock")
        ? { status: 204 }
        : { status: 200, json: { Status: [{ Name: "db", Success: true, Disabled: true }] } };
    const names = { DatabaseNames: ["db", "nope"] };
    expect(await client.json("POST /admin/databases/disable", names)).toEqual({
      Status: [
        { Name: "db", Success: true, Disabled: true },
        { Name: "nope", Success: false, Reason: "database not found" },
      ],
    });
    const lock = { DatabaseNames: ["db"], Mode: "PreventDeletesError" };
    expect((await client.send("POST /admin/databases/set-lock", lock)).status).toBe(204);
    expect(cluster.sent.map(({ what, body }) => `${what} ${body}`)).toEqual([
      'POST /admin/databases/disable?name=db {"DatabaseNames":["db"]}',
      'POST /admin/databases/set-lock?name=db {"DatabaseNames":["db"],"Mode":"PreventDeletesError"}',
    ]);
  });
});

describe("lists of databases", () => {
  test("include databases without a local copy, from a node that has one", async () => {
    cluster.register("far", ["B"]);
    cluster.register("gone", ["C"]);
    cluster.hear("C", {}, 60_000);
    cluster.answer = () => ({
      status: 200,
      json: { Databases: [{ Name: "far", DocumentsCount: 7 }, { Name: "other" }] },
    });
    expect(await client.json("GET /databases?namesOnly=true")).toEqual({
      Databases: ["db", "far", "gone"],
    });
    const { Databases: rows } = (await client.json("GET /databases")) as { Databases: Json[] };
    expect(
      rows.map((row) => [row["Name"], row["DocumentsCount"], row["ReplicationFactor"]]),
    ).toEqual([
      ["db", 0, 3],
      ["far", 7, undefined],
      ["gone", null, 1],
    ]);
    expect(rows[0]).toMatchObject({
      NodesTopology: {
        Members: [{ NodeTag: "A" }, { NodeTag: "B", NodeUrl: "http://b.example:8080" }],
        Rehabs: [{ NodeTag: "C", ResponsibleNode: "A" }],
      },
    });
    expect(rows[2]).toMatchObject({
      NodesTopology: { Rehabs: [{ NodeTag: "C" }], Status: { C: { LastStatus: "NotResponding" } } },
    });
    expect(cluster.sent.map(({ tag, what }) => `${tag} ${what}`)).toEqual(["B GET /databases"]);
  });

  test("contain only local copies if another node requests them", async () => {
    cluster.register("far", ["B"]);
    const headers = { "x-jackdaw-forwarded": "B" };
    for (const path of ["/databases", "/studio-tasks/databases"]) {
      const { json } = await client.send(`GET ${path}`, undefined, headers);
      expect((json as { Databases: Json[] }).Databases.map((row) => row["Name"])).toEqual(["db"]);
    }
    expect(cluster.sent).toEqual([]);
  });

  test("of the Studio include them too", async () => {
    cluster.register("far", ["B"]);
    const { Databases: rows } = (await client.json("GET /studio-tasks/databases")) as {
      Databases: Json[];
    };
    expect(rows.map((row) => row["Name"])).toEqual(["db", "far"]);
    expect(cluster.sent.map(({ what }) => what)).toEqual(["GET /studio-tasks/databases"]);
  });
});

describe("deletion", () => {
  const remove = (body: object) => client.send("DELETE /admin/databases", body);

  test("removes a database from all nodes, and lists nodes that have not confirmed it", async () => {
    cluster.hear("C", {}, 60_000);
    const { json } = await remove({ DatabaseNames: ["db", "nope"] });
    expect(json).toEqual({ RaftCommandIndex: expect.any(Number), PendingDeletes: ["C"] });
    expect(cluster.calls).toEqual(["deleteDatabase db"]);
    expect((await remove({ DatabaseNames: ["db"] })).json).toEqual({
      RaftCommandIndex: -1,
      PendingDeletes: [],
    });
  });

  test("removes single copies, and the database with the last of them", async () => {
    const wrong = await remove({ DatabaseNames: ["db"], FromNodes: ["Q"] });
    expect(wrong.text).toContain("Database 'db' doesn't reside on node 'Q'");
    expect((await remove({ DatabaseNames: ["db"], FromNodes: ["B"] })).status).toBe(200);
    expect((await remove({ DatabaseNames: ["db"], FromNodes: ["A", "C"] })).status).toBe(200);
    expect(cluster.calls).toEqual(["removeCopy db B", "deleteDatabase db"]);
  });

  test("of a database requires the names of its nodes if all are lost", async () => {
    cluster.register("lost", ["B", "C"]);
    for (const tag of ["B", "C"]) cluster.hear(tag, {}, 60_000);
    cluster.states.set("lost", { ...(cluster.find("lost") as ReplicaState), leaderTag: null });
    const refused = await remove({ DatabaseNames: ["lost"], FromNodes: ["B"] });
    expect([refused.status, refused.text]).toEqual([503, expect.stringContaining("FromNodes")]);
    const { json } = await remove({ DatabaseNames: ["lost"], FromNodes: ["B", "C"] });
    expect(json).toEqual({ RaftCommandIndex: expect.any(Number), PendingDeletes: ["B", "C"] });
    expect(cluster.calls).toEqual(["deleteDatabase lost"]);
  });

  test("obeys the lock of the record, which may be on another node", async () => {
    const lock = { DatabaseNames: ["db"], Mode: "PreventDeletesError" };
    await client.send("POST /admin/databases/set-lock", lock);
    expect((await remove({ DatabaseNames: ["db"] })).text).toContain("PreventDeletesError");
    cluster.register("far", ["B"]);
    cluster.answer = () => ({ status: 200, json: { RaftCommandIndex: 99, PendingDeletes: ["B"] } });
    expect((await remove({ DatabaseNames: ["far"], HardDelete: true })).json).toEqual({
      RaftCommandIndex: 99,
      PendingDeletes: ["B"],
    });
    expect(cluster.sent[0]?.body).toBe('{"DatabaseNames":["far"],"HardDelete":true}');
    cluster.answer = () => ({ status: 400, json: { Type: "Locked" } });
    expect((await remove({ DatabaseNames: ["far"] })).json).toEqual({ Type: "Locked" });
    expect(cluster.calls).toEqual([]);
  });
});

describe("the copies of a database", () => {
  const addTo = (query: string) => client.send(`PUT /admin/databases/node?${query}`);

  test("are added on the given node, or on the node with the fewest copies", async () => {
    cluster.register("small", ["A"]);
    cluster.register("other", ["B"]);
    expect((await addTo("name=small")).status).toBe(400); // This server has no files of it.
    cluster.calls.length = 0;
    await client.send("PUT /admin/databases?name=mine&replicationFactor=1", {
      DatabaseName: "mine",
      Topology: { Members: ["A"] },
    });
    const added = await addTo("name=mine&node=B");
    expect(added.json).toMatchObject({
      Name: "mine",
      Topology: { ReplicationFactor: 2, Members: ["A", "B"] },
      NodesAddedTo: ["http://b.example:8080"],
    });
    expect((await addTo("name=mine")).json).toMatchObject({
      NodesAddedTo: ["http://c.example:8080"],
    });
    expect((await addTo("name=mine")).text).toContain("already exists on all the nodes");
    expect((await addTo("name=mine&node=B")).text).toContain("already part of it");
    expect((await addTo("name=mine&node=Q")).text).toContain("is not part of the cluster");
  });

  test("are not removed if writes could be lost", async () => {
    cluster.hear("B", {});
    cluster.hear("C", {}, 60_000);
    const refused = await client.send("DELETE /admin/databases", {
      DatabaseNames: ["db"],
      FromNodes: ["A"],
    });
    expect([refused.status, refused.text]).toEqual([
      400,
      expect.stringContaining("Without A, the database 'db' would have no up-to-date copy"),
    ]);
    expect(cluster.calls).toEqual([]);
  });

  test("are reordered: the first becomes leader, and clients try the others in order", async () => {
    const reorder = (order: unknown) =>
      client.send("POST /admin/databases/reorder?name=db", { MembersOrder: order });
    expect((await reorder(["C", "A", "B"])).status).toBe(204);
    expect(cluster.calls).toEqual(["transfer db C", "change cluster/databases/db"]);
    const topology = (await client.json("GET /topology?name=db")) as { Nodes: Json[] };
    expect(topology.Nodes.map((node) => node["ClusterTag"])).toEqual(["C", "A", "B"]);
    for (const wrong of [["A", "B"], ["A", "B", "B"], ["A", "B", "Q"], [], undefined]) {
      expect((await reorder(wrong)).text).toContain("The reordered list doesn't correspond");
    }
  });

  test("follow the submitted topology; of two concurrent changes, one gets 409", async () => {
    const modify = (body: object) =>
      client.send("POST /admin/databases/topology/modify?name=db", body);
    const done = await modify({ Members: ["A", "B"], ReplicationFactor: 2 });
    expect([done.status, done.json]).toEqual([200, { RaftCommandIndex: expect.any(Number) }]);
    await modify({ Members: ["A"], Promotables: ["B"], Rehabs: ["C"] });
    expect(cluster.calls).toEqual(["removeCopy db C", "addCopy db C"]);
    expect((await modify({ Members: [] })).text).toContain("has no nodes");
    expect((await modify({ Members: ["Q"] })).text).toContain("we don't have node Q");
    expect((await modify({ Members: "A" })).text).toContain("a list of tags");
    cluster.change = () => {
      throw new EngineError("concurrency", "The value is not the expected one.");
    };
    const reorder = { MembersOrder: ["A", "C", "B"] };
    expect((await client.send("POST /admin/databases/reorder?name=db", reorder)).status).toBe(409);
  });

  test("cannot be moved automatically", async () => {
    const distribute = (query: string) =>
      client.send(`POST /admin/databases/dynamic-node-distribution?name=db${query}`);
    expect((await distribute("&enabled=false")).status).toBe(204);
    expect((await distribute("&enable=false")).status).toBe(204);
    expect((await distribute("&enabled=true")).text).toContain("are moved only on request");
    expect((await distribute("")).text).toContain("Query string enable is mandatory");
  });
});

describe("waiting for replication", () => {
  const write = (query: string) =>
    client.send(`POST bulk_docs?waitForReplicasTimeout=00:00:01${query}`, {
      Commands: [{ Type: "PUT", Id: "a/1", Document: {} }],
    });

  test("waits for the requested number of other nodes, or for a majority", async () => {
    cluster.copies = 2;
    expect((await write("&numberOfReplicasToWaitFor=2")).status).toBe(201);
    expect((await write("&numberOfReplicasToWaitFor=majority")).status).toBe(201);
    expect((await write("")).status).toBe(201);
    expect(cluster.calls).toEqual([
      "waitForCopies db 2 1000",
      "waitForCopies db 1 1000",
      "waitForCopies db 1 1000",
    ]);
  });

  test("fails if too few have it in time, or if there are too few nodes, unless this is allowed", async () => {
    cluster.copies = 1;
    const late = await write("&numberOfReplicasToWaitFor=2");
    expect([late.status, late.text]).toEqual([
      408,
      expect.stringContaining(
        "was replicated to 2 servers in 00:00:01.0000000. So far, it only replicated to 1",
      ),
    ]);
    cluster.copies = 2;
    expect((await write("&numberOfReplicasToWaitFor=3")).status).toBe(408);
    const quiet = "&numberOfReplicasToWaitFor=3&throwOnTimeoutInWaitForReplicas=false";
    expect((await write(quiet)).status).toBe(201);
  });
});
