import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { EngineError } from "../../../../engine/engine.ts";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { FakeCluster } from "../../../support/fake-cluster.ts";
import { fakeMember } from "../../../support/seen-cluster.ts";
import { stopTestServers } from "../../../support/start-test-server.ts";

type Json = Record<string, unknown>;

let client: EndpointClient;
beforeEach(async () => {
  await stopTestServers();
  client = await startEndpointClient();
});
afterAll(stopTestServers);

const startCluster = () => new FakeCluster(client.server.running.services);
const message = async (what: string, body?: object) =>
  ((await client.send(what, body)).json as Json)["Message"];

describe("of a single node", () => {
  test("rejects additions, removals and elections with instructions", async () => {
    const added = await client.send("PUT /admin/cluster/node?url=http://b.example");
    expect([added.status, added.text]).toEqual([400, expect.stringContaining("Cluster.Nats.Url")]);
    expect((await client.send("DELETE /admin/cluster/node?nodeTag=B")).status).toBe(400);
    expect(await message("POST /admin/cluster/reelect")).toBe(
      "Cannot step down when I'm the only voter in the cluster",
    );
    expect((await client.send("POST /admin/cluster/bootstrap")).status).toBe(204);
    expect(await message("POST /admin/cluster/demote?nodeTag=B")).toBe(
      "Failed to demote node B because B is not a voter in the cluster topology",
    );
  });

  test("returns the log, the decisions and the statistics in the format of a cluster of one", async () => {
    expect(await client.json("GET /admin/cluster/log")).toMatchObject({
      Role: "Leader",
      Term: 1,
      Log: { Logs: [], CommitIndex: 0 },
      ConnectionToPeers: [],
    });
    expect(await client.json("GET /admin/cluster/observer/decisions")).toMatchObject({
      LeaderNode: "A",
      Term: 1,
      Suspended: false,
      ObserverLog: [],
    });
    expect(await client.json("GET /admin/cluster/maintenance-stats")).toMatchObject({
      A: { Report: { db: { Name: "db", Status: "Loaded" } }, Status: "Ok", Error: null },
    });
    expect(await client.json("GET /admin/debug/node/ping")).toMatchObject({
      Result: [{ NodeTag: "A", SetupAlive: { Error: null } }],
    });
    expect(await client.json("GET /admin/debug/node/state-change-history")).toMatchObject({
      States: [expect.stringMatching(/^[\d-]{10} [\d:]{8}Z .* Passive->Leader at term 1$/)],
    });
    expect(await client.json("GET /admin/debug/cluster/history-logs")).toMatchObject({
      RachisLogHistory: [],
    });
    expect(await client.json("GET /admin/debug/node/engine-logs")).toMatchObject({
      TimingTracking: {},
      StateChangeTracking: [expect.stringContaining("Passive->Leader")],
    });
    expect(await client.json("GET /admin/debug/node/remote-connections")).toMatchObject({
      "Remote-Connections": [],
    });
  });
});

describe("adding a node", () => {
  const add = (query: string) => client.send(`PUT /admin/cluster/node?${query}`);

  test("registers a reachable node, by its address and its own tag", async () => {
    const cluster = startCluster();
    cluster.unknown.push(fakeMember("D"));
    expect((await add("url=http://d.example:8080/&tag=D")).status).toBe(204);
    expect(cluster.calls).toEqual(["addMember D"]);
  });

  test("returns instructions for a node that is unreachable, has another tag, or is a member", async () => {
    const cluster = startCluster();
    cluster.unknown.push(fakeMember("D"));
    expect((await add("url=http://e.example&tag=E")).text).toContain(
      "No node E at http://e.example sends heartbeats. Start it with a unique Cluster.NodeTag",
    );
    expect((await add("url=http://d.example:8080&tag=E")).text).toContain(
      "has the tag D, by its setting Cluster.NodeTag, so it cannot be added as E",
    );
    expect((await add("url=http://b.example:8080")).text).toContain(
      "node B, at http://b.example:8080, is already in this cluster",
    );
    expect((await add("url=nonsense")).text).toContain(
      "Given node URL 'nonsense' is not in a correct format.",
    );
    expect((await add("url=http://d.example:8080&tag=d")).text).toContain("upper case letters");
    expect((await add("tag=D")).text).toContain("Query string url is mandatory");
    expect(cluster.calls).toEqual([]);
  });
});

describe("removing a node", () => {
  test("removes it from the cluster if its databases have copies elsewhere", async () => {
    const cluster = startCluster();
    cluster.register("db", ["A", "B", "C"]);
    expect((await client.send("DELETE /admin/cluster/node?nodeTag=C")).status).toBe(204);
    expect(cluster.calls).toEqual(["removeMember C"]);
    expect(await message("DELETE /admin/cluster/node?nodeTag=C")).toBe(
      "Was requested to remove node=C from the topology but it is not contained by the topology.",
    );
    expect(await message("DELETE /admin/cluster/node?nodeTag=c")).toContain("upper case letters");
  });

  test("is rejected if it has the only current copy", async () => {
    const cluster = startCluster();
    cluster.register("db", ["B", "C"]);
    cluster.hear("C", {});
    const refused = await client.send("DELETE /admin/cluster/node?nodeTag=B");
    expect([refused.status, refused.text]).toEqual([
      400,
      expect.stringContaining(
        "Without B, the database 'db' would have no up-to-date copy. Node C is receiving its copy",
      ),
    ]);
    expect(cluster.calls).toEqual([]);
  });
});

describe("unsupported features of RavenDB's cluster", () => {
  test("are rejected with the reason", async () => {
    startCluster();
    expect((await client.send("POST /admin/cluster/bootstrap")).status).toBe(204);
    expect(await message("POST /admin/cluster/demote?nodeTag=B")).toContain(
      "all nodes of this cluster are members",
    );
    expect(await message("POST /admin/cluster/promote?nodeTag=B")).toBe(
      "Failed to promote node B because B is not a watcher in the cluster topology",
    );
    expect(await message("POST /admin/cluster/reelect")).toContain("/admin/databases/reorder");
    const suspend = "POST /admin/cluster/observer/suspend";
    expect(await message(`${suspend}?value=true`)).toContain("no observer to suspend");
    expect((await client.send(`${suspend}?value=false`)).status).toBe(204);
    expect(await message(suspend)).toBe("Query string value is mandatory, but wasn't specified.");
  });
});

describe("inspecting the cluster", () => {
  test("shows the last changes by key, the leaders, and the states of nodes", async () => {
    const cluster = startCluster();
    await cluster.change([{ key: "certificates/x", value: '"secret"' }]);
    cluster.register("db", ["A", "B"]);
    cluster.hear("C", {}, 60_000);
    const log = await client.send("GET /admin/cluster/log");
    expect(log.text).not.toContain("secret");
    expect(log.json).toMatchObject({
      Role: "Leader",
      Term: 3,
      Log: {
        CommitIndex: cluster.index,
        Logs: [
          { CommandType: "Put cluster/databases/db", Index: 12 },
          { CommandType: "Put certificates/x", Index: 11, SizeInBytes: 8 },
        ],
      },
      ElectionReason: "This node orders the changes of the cluster",
      ConnectionToPeers: [
        { Destination: "B", Connected: true, Version: "1.0.0" },
        { Destination: "C", Connected: false, LastHeardInMs: 60_000 },
      ],
    });
    expect(await client.json("GET /admin/debug/cluster/history-logs")).toMatchObject({
      RachisLogHistory: [{ Type: "Put certificates/x" }, { Type: "Put cluster/databases/db" }],
    });
    expect(await client.json("GET /admin/cluster/observer/decisions")).toMatchObject({
      LeaderNode: "A",
      Term: 3,
      ObserverLog: [{ Database: "db", Message: "Node A leads it in epoch 2; copies are on A, B." }],
    });
    expect(await client.json("GET /admin/cluster/maintenance-stats")).toMatchObject({
      A: { Status: "Ok" },
      B: { Report: { db: { Role: "follower", Applied: 5 } }, Status: "Ok" },
      C: { Status: "Timeout", Error: "Node C has sent no heartbeats recently." },
    });
  });

  test("pings each node", async () => {
    const cluster = startCluster();
    cluster.answer = ({ tag }) => {
      if (tag === "B") return { status: 204 };
      throw new EngineError("node-unreachable", "It is away.");
    };
    expect(await client.json("GET /admin/debug/node/ping")).toMatchObject({
      Result: [
        { NodeTag: "A", SetupAlive: { Error: null } },
        { NodeTag: "B", SetupAlive: { Error: null } },
        { NodeTag: "C", SetupAlive: { Error: "It is away." } },
      ],
    });
  });
});
