/** The state of a cluster over HTTP, and transfers of leadership, with a fake cluster. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { interfaceVersion } from "../../../../server/http/response.ts";
import {
  type FakeCluster,
  fakeCluster,
  fakeDatabase,
  fakeHeartbeat,
  fakeMember,
} from "../../../support/seen-cluster.ts";
import {
  startTestServer,
  stopTestServers,
  type TestServer,
} from "../../../support/start-test-server.ts";

let server: TestServer;
let cluster: FakeCluster;
beforeAll(async () => {
  server = await startTestServer({ databases: [{ name: "shop" }, { name: "world" }] });
});
afterAll(stopTestServers);
beforeEach(() => {
  cluster = fakeCluster({
    states: [
      fakeDatabase("shop", ["A", "B"], { role: "leader", epoch: 2, applied: 20 }),
      fakeDatabase("world", ["B", "C"], { role: null, leaderTag: null, trouble: null }),
    ],
  });
  cluster.heartbeats.set(
    "B",
    fakeHeartbeat({ shop: { role: "follower", epoch: 2, applied: 17 } }, 240.4),
  );
  cluster.heartbeats.delete("C");
  become(cluster);
});

function become(value: FakeCluster | undefined): void {
  Object.defineProperty(server.running.services, "cluster", { value, configurable: true });
}

async function statusFor(pair?: Parameters<TestServer["request"]>[2]) {
  const { status, json } = await server.request("/cluster/status", {}, pair);
  expect(status).toBe(200);
  return json as Record<string, unknown>;
}

test("nodes, databases and NATS, as seen by this node", async () => {
  const id = cluster.states[0]?.registered.id ?? "";
  const problem = { stream: `JD_${id}_1`, server: "n2", kind: "hole", problem: "3 are missing" };
  cluster.foreign = [fakeMember("D")];
  cluster.health = {
    nats: {
      isConnected: true,
      server: "jackdaw-A",
      version: "2.15.1",
      replicas: 3,
      restarts: 1,
      scrub: {
        atMs: Date.parse("2026-11-24T10:00:00Z"),
        problems: [problem as never],
        failure: null,
      },
    },
    gaps: (of) => (of === id ? 2 : 0),
  };
  const node = {
    IsHere: false,
    IsRegistered: true,
    IsHeard: true,
    LastHeardInMs: null,
    Version: null,
  };
  expect(await statusFor()).toEqual({
    IsClustered: true,
    NodeTag: "A",
    OwnDatabases: [],
    TopologyId: cluster.topologyId,
    Leader: "A",
    Epoch: 1,
    Index: 7,
    Nodes: [
      { ...node, ...urlOf("A"), IsHere: true, LastHeardInMs: 0, Version: interfaceVersion },
      { ...node, ...urlOf("B"), LastHeardInMs: 240, Version: "7.2.7" },
      { ...node, ...urlOf("C"), IsHeard: false },
      { ...node, ...urlOf("D"), IsHeard: false, IsRegistered: false },
    ],
    Databases: [
      {
        Name: "shop",
        Id: id,
        Leader: "A",
        Epoch: 2,
        Members: [
          { Tag: "A", Role: "leader", Epoch: 2, Applied: 20, Behind: 0 },
          { Tag: "B", Role: "follower", Epoch: 2, Applied: 17, Behind: 3 },
        ],
        Trouble: null,
        Gaps: 2,
      },
      expect.objectContaining({ Name: "world", Leader: null }),
    ],
    Nats: {
      IsConnected: true,
      Server: "jackdaw-A",
      Version: "2.15.1",
      Replicas: 3,
      Restarts: 1,
      Scrub: {
        At: "2026-11-24T10:00:00.0000000Z",
        Problems: [
          {
            Stream: `JD_${id}_1`,
            Database: "shop",
            Server: "n2",
            Kind: "hole",
            Problem: "3 are missing",
          },
        ],
        Failure: null,
      },
    },
  });
});

function urlOf(tag: string) {
  return { Tag: tag, Url: fakeMember(tag).url };
}

test("a user gets the databases that he may read, and no NATS details", async () => {
  const reader = await server.client({ clearance: "ValidUser", permissions: { shop: "Read" } });
  const { Databases, Nodes, ...rest } = await statusFor(reader);
  expect((Databases as { Name: string }[]).map(({ Name }) => Name)).toEqual(["shop"]);
  expect(Nodes).toHaveLength(3);
  expect(rest).not.toHaveProperty("Nats");
});

test("a single server reports that it has no cluster", async () => {
  become(undefined);
  expect(await statusFor()).toEqual({ IsClustered: false, NodeTag: "A" });
  const { status, json } = await transfer("?name=shop&node=B");
  expect(status).toBe(400);
  expect(json).toMatchObject({ Message: expect.stringMatching(/is a single node/) });
});

const transfer = (query: string) =>
  server.request(`/admin/cluster/transfer${query}`, { method: "POST" });

test("hands over leadership to a node with a copy", async () => {
  expect((await transfer("?name=SHOP&node=B")).status).toBe(204);
  expect(cluster.received).toEqual(["transfer shop B"]);
  expect((await transfer("?name=shop&node=A")).status).toBe(204); // It leads already.
  expect(cluster.received).toHaveLength(1);
});

test("rejects an impossible transfer with the reason", async () => {
  for (const [query, told] of [
    ["?name=shop&node=C", "Node 'C' has no copy of 'shop'. Nodes with copies: A, B."],
    ["?name=none&node=B", "Database 'none' does not exist."],
    ["?name=shop", "The parameter 'node' is missing."],
    ["?node=B", "The parameter 'name' is missing."],
  ] as const) {
    const { status, json } = await transfer(query);
    expect([status, (json as { Message: string }).Message]).toEqual([400, told]);
  }
  expect(cluster.received).toEqual([]);
});

test("lists a database that only this node has, and lets that node adopt it", async () => {
  const failure = "The cluster has another database 'b' already.";
  cluster.ownDatabases = () => [
    { name: "a", failure: null },
    { name: "b", failure },
  ];
  expect((await statusFor())["OwnDatabases"]).toEqual([
    { Name: "a", Failure: null },
    { Name: "b", Failure: failure },
  ]);
  const reader = await server.client({ permissions: { b: "Read" } });
  expect((await statusFor(reader))["OwnDatabases"]).toEqual([{ Name: "b", Failure: failure }]);
  const adopt = (query: string) =>
    server.request(`/admin/cluster/adopt?${query}`, { method: "POST" });
  for (const query of ["name=a", "name=a&node=a"]) {
    const reply = await adopt(query);
    expect(reply.status).toBe(200);
    expect(reply.json).toEqual({ Name: "a", Node: "A" });
  }
  expect(cluster.received).toEqual(["adopt a A", "adopt a A"]);
  expect((await adopt("node=A")).text).toContain("The parameter 'name' is missing");
  expect((await adopt("name=a&node=Q")).text).toContain("The node Q does not exist in the cluster");
  become(undefined);
  expect((await adopt("name=a")).text).toContain("This server is a single node");
});
