/**
 * The metrics and the readiness of a cluster node, with a fake cluster; these metrics do not exist on a single node.
 */
import { afterAll, expect, test } from "vitest";
import { parsePrometheus } from "../../support/prometheus-text.ts";
import {
  type FakeCluster,
  fakeCluster,
  fakeDatabase,
  fakeHeartbeat,
} from "../../support/seen-cluster.ts";
import {
  noCertificate,
  startTestServer,
  stopTestServers,
  type TestServer,
} from "../../support/start-test-server.ts";

afterAll(stopTestServers);

async function startWith(cluster: FakeCluster): Promise<TestServer> {
  const server = await startTestServer({ flags: ["--Monitoring.MaxDatabases=2"] });
  Object.defineProperty(server.running.services, "cluster", { value: cluster });
  return server;
}

async function series(server: TestServer, pair?: Parameters<TestServer["request"]>[2]) {
  const { text } = await server.request("/metrics", {}, pair);
  const found = [...parsePrometheus(text)].flatMap(([, { samples }]) => samples);
  const lines = found.map(({ name, labels, value }) => {
    const shown = Object.entries(labels).map(([key, one]) => `${key}=${one}`);
    return `${name}{${shown.join(",")}} ${value}`;
  });
  return lines.filter((line) => /^jackdaw_(cluster|replica|nats)|check=cluster/.test(line));
}

test("a single node has no cluster series", async () => {
  expect(await series(await startTestServer())).toEqual([]);
});

test("nodes, copies, NATS and its scrub have series, for a limited number of databases", async () => {
  const shop = fakeDatabase("shop", ["A", "B"], { role: "leader", epoch: 3, applied: 20 });
  const cluster = fakeCluster({
    epoch: 5,
    states: [
      shop,
      fakeDatabase("far", ["B", "C"], { role: null }),
      fakeDatabase("world", ["B", "A"], { role: "follower", epoch: 3, applied: 7 }),
      fakeDatabase("zoo", ["A"], { leaderTag: null }),
    ],
    health: {
      nats: {
        isConnected: true,
        server: "n1",
        version: "2.15.1",
        replicas: 3,
        restarts: 2,
        scrub: { atMs: Date.now() - 5_000, problems: [{ kind: "hole" } as never], failure: null },
      },
      gaps: (id) => (id === shop.registered.id ? 4 : 0),
    },
  });
  const world = { role: "leader", epoch: 3, applied: 9 } as const;
  cluster.heartbeats.set("B", fakeHeartbeat({ world }, 250));
  cluster.heartbeats.delete("C");
  const server = await startWith(cluster);
  const lines = await series(server);
  for (const line of [
    "jackdaw_ready{check=cluster} 0",
    "jackdaw_cluster_has_leader{} 1",
    "jackdaw_cluster_epoch{} 5",
    "jackdaw_cluster_nodes{} 3",
    "jackdaw_cluster_node_silent_seconds{node=B} 0.25",
    "jackdaw_cluster_databases_leaderless{} 1",
    "jackdaw_replica_role{database=shop,role=leader} 1",
    "jackdaw_replica_role{database=shop,role=follower} 0",
    "jackdaw_replica_role{database=world,role=follower} 1",
    "jackdaw_replica_epoch{database=shop} 3",
    "jackdaw_replica_applied{database=shop} 20",
    "jackdaw_replica_behind_messages{database=world} 2",
    "jackdaw_replica_gaps_total{database=shop} 4",
    "jackdaw_nats_connected{} 1",
    "jackdaw_nats_restarts_total{} 2",
    "jackdaw_nats_scrub_problems{kind=hole} 1",
    "jackdaw_nats_scrub_problems{kind=behind} 0",
    "jackdaw_nats_scrub_failed{} 0",
  ]) {
    expect(lines).toContain(line);
  }
  expect(lines.filter((line) => /node=[AC]|far|zoo/.test(line))).toEqual([]);
  const [age = ""] = lines.filter((line) => line.startsWith("jackdaw_nats_scrub_age_seconds"));
  expect(Number(age.split(" ")[1])).toBeGreaterThanOrEqual(5);
  const permissions = { world: "Read" } as const;
  const reader = await server.client({ clearance: "ValidUser", permissions });
  const read = await series(server, reader);
  expect(read.some((line) => line.includes("database=world"))).toBe(true);
  expect(read.filter((line) => line.includes("database=shop"))).toEqual([]);
});

test("a node with a lagging copy is not ready until it has caught up", async () => {
  const world = fakeDatabase("world", ["B", "A"], { role: "follower", applied: 7 });
  const cluster = fakeCluster({ states: [world] });
  cluster.heartbeats.set("B", fakeHeartbeat({ world: { role: "leader", epoch: 1, applied: 9 } }));
  const server = await startWith(cluster);
  const ready = async () => (await server.request("/readyz", {}, noCertificate)).status;
  await expect.poll(ready, { timeout: 5_000 }).toBe(503);
  world.applied = 9;
  await expect.poll(ready, { timeout: 5_000 }).toBe(200);
  expect(await series(server)).toContain("jackdaw_ready{check=cluster} 1");
});
