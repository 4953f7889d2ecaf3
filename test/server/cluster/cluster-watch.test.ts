/**
 * Log messages about a cluster, and the readiness of a node, with a fake cluster and a simulated
 * clock.
 */
import { expect, test } from "vitest";
import { ClusterWatch } from "../../../server/cluster/cluster-watch.ts";
import { Log } from "../../../server/logging/log.ts";
import type { LogEvent } from "../../../server/logging/log-line.ts";
import {
  type FakeCluster,
  fakeCluster,
  fakeDatabase,
  fakeHeartbeat,
  fakeMember,
} from "../../support/seen-cluster.ts";

function watched(cluster: FakeCluster) {
  const events: LogEvent[] = [];
  const sink = {
    droppedCount: 0,
    write: (event: LogEvent) => void events.push(event),
    close: () => Promise.resolve(),
  };
  let nowMs = 50_000;
  const watch = new ClusterWatch(cluster, new Log("Info", [sink]), () => nowMs);
  return {
    watch,
    /** Returns the messages logged by a check after `seconds`. */
    look(seconds = 1): string[] {
      nowMs += seconds * 1000;
      events.length = 0;
      watch.look();
      return events.map(({ message }) => message);
    },
    notReady(seconds = 0) {
      nowMs += seconds * 1000;
      return watch.notReady();
    },
  };
}

const leads = (applied: number) => ({ role: "leader", epoch: 1, applied }) as const;

test("logs each reachable and unreachable node once", () => {
  const states = [fakeDatabase("shop", ["B", "A"]), fakeDatabase("world", ["B"])];
  const cluster = fakeCluster({ states });
  const { look } = watched(cluster);
  expect(look()).toEqual([
    "Node B sends heartbeats",
    "Node C sends heartbeats",
    "A leads the cluster, epoch 1",
    "B leads shop, world",
  ]);
  expect(look()).toEqual([]);
  cluster.heartbeats.set("B", fakeHeartbeat({}, 3_200));
  expect(look()).toEqual([
    "Node B at http://b.example:8080 has stopped sending heartbeats; it led shop, world",
  ]);
  expect(look()).toEqual([]);
  cluster.heartbeats.set("B", fakeHeartbeat());
  expect(look()).toEqual(["Node B sends heartbeats"]);
});

test("logs candidates, added nodes and removed nodes", () => {
  const cluster = fakeCluster();
  const { look } = watched(cluster);
  look();
  cluster.foreign = [fakeMember("D")];
  cluster.heartbeats.set("D", fakeHeartbeat());
  expect(look()).toEqual([]); // it may join by itself
  expect(look(9)).toEqual([]);
  expect(look()).toEqual([
    "Node D at http://d.example:8080 sends heartbeats but is not registered. To add it: jackdaw cluster add D",
  ]);
  expect(look()).toEqual([]);
  cluster.nodes.push(fakeMember("D"));
  cluster.foreign = [];
  expect(look()).toEqual(["Node D at http://d.example:8080 was added"]);
  cluster.nodes.pop();
  expect(look()).toEqual(["Node D was removed from the cluster"]);
});

test("logs one line per leader, however many databases change theirs", () => {
  const names = Array.from({ length: 300 }, (_, at) => `db${String(at).padStart(3, "0")}`);
  const cluster = fakeCluster({ states: names.map((name) => fakeDatabase(name, ["A", "B"])) });
  const { look } = watched(cluster);
  look();
  for (const [at, state] of cluster.states.entries()) state.leaderTag = at % 2 === 0 ? "B" : "C";
  expect(look()).toEqual([
    "B leads db000, db002, db004, db006, db008 and 145 more",
    "C leads db001, db003, db005, db007, db009 and 145 more",
  ]);
  cluster.states.splice(1);
  Object.assign(cluster.states[0] ?? {}, { leaderTag: "C", epoch: 9 });
  expect(look()).toEqual(["C leads db000, epoch 9"]);
});

test("a node becomes ready when its copies are current, and stays ready while they keep up", () => {
  const shop = fakeDatabase("shop", ["B", "A"], { applied: 10 });
  const cluster = fakeCluster({ states: [shop] });
  const { look, notReady } = watched(cluster);
  const furthest = (applied: number) =>
    cluster.heartbeats.set("B", fakeHeartbeat({ shop: leads(applied) }));
  furthest(100);
  look();
  expect(notReady()).toBe("local copies are lagging: shop");
  shop.applied = 100;
  furthest(120);
  look();
  expect(notReady()).toBeNull();
  for (let second = 0; second < 30; second++) {
    shop.applied += 20;
    furthest(shop.applied + 20);
    look();
    expect(notReady()).toBeNull();
  }
  furthest(5_000);
  shop.applied += 20;
  look(); // The missing messages have arrived.
  expect([look(5), notReady()]).toEqual([[], null]);
  expect(look(6)).toEqual([`Local copies are catching up: ${5_000 - shop.applied} messages, shop`]);
  expect(notReady()).toBe("local copies are lagging: shop");
  shop.applied = 5_000;
  expect(look()).toEqual(["The local copy of shop has caught up"]);
  expect(notReady()).toBeNull();
});

test("a stopped copy makes the node unready immediately, with the reason", () => {
  const shop = fakeDatabase("shop", ["A", "B"]);
  const cluster = fakeCluster({ states: [shop, fakeDatabase("world", ["A"])] });
  const { look, notReady } = watched(cluster);
  look();
  expect(notReady()).toBeNull();
  shop.trouble = "the stream ends below its own log";
  expect(look()).toEqual(["The local copy of shop has stopped: the stream ends below its own log"]);
  expect(notReady()).toBe("local copies have stopped: shop");
  expect(look()).toEqual([]);
  shop.trouble = null;
  expect(look()).toEqual(["The local copy of shop has resumed"]);
});

test("brief lags, as on each leader change, do not make the node unready", () => {
  const cluster = fakeCluster({ leaderTag: null, topologyId: null });
  const { look, notReady } = watched(cluster);
  expect(notReady()).toBe("the cluster was never complete");
  Object.assign(cluster, { leaderTag: "B", topologyId: "1" });
  expect(notReady(30)).toBeNull();
  cluster.leaderTag = null;
  expect([look(9), notReady()]).toEqual([[], null]);
  expect(look(1)).toEqual([expect.stringMatching(/^The cluster has no leader: databases, /)]);
  expect(notReady()).toBe("the cluster has no leader");
  cluster.leaderTag = "C";
  expect(look()).toEqual(["C leads the cluster, epoch 1"]);
  expect(notReady()).toBeNull();
});

test("a removed node is not ready", () => {
  const cluster = fakeCluster();
  const { look, notReady } = watched(cluster);
  look();
  expect(notReady()).toBeNull();
  cluster.nodes = cluster.nodes.filter(({ tag }) => tag !== "A");
  expect(notReady()).toBe("this node is not registered in the cluster");
});

test("logs an unreachable NATS server and the results of its scrub", () => {
  const nats = {
    isConnected: true,
    server: "n1",
    version: "2.15.1",
    replicas: 3,
    restarts: 0,
    scrub: null as null | { atMs: number; problems: object[]; failure: string | null },
  };
  const health = { nats, gaps: () => 0 } as unknown as FakeCluster["health"];
  const shop = fakeDatabase("shop", ["A"]);
  const { look, notReady } = watched(fakeCluster({ health, states: [shop] }));
  look();
  nats.isConnected = false;
  expect(notReady(9)).toBeNull();
  expect(notReady(1)).toBe("NATS is unreachable");
  nats.isConnected = true;
  expect(notReady()).toBeNull();
  const stream = `JD_${shop.registered.id}_1`;
  const hole = { stream, server: "n2", kind: "hole", problem: "3 messages are missing" };
  const behind = { stream, server: "n3", kind: "behind", problem: "it is at 4" };
  nats.scrub = { atMs: 1, problems: [hole, behind], failure: null };
  expect(look()).toEqual(["The scrub of NATS replicas reports: n2, shop: 3 messages are missing"]);
  expect(look()).toEqual([]);
  nats.scrub = { atMs: 2, problems: [behind], failure: null };
  expect(look()).toEqual(["All replicas in NATS are intact again"]);
  // A server that is started again is away for one look, and that is not told.
  const missing = { stream: "", server: "", kind: "missing", problem: "only 2 of 3 answer" };
  nats.scrub = { atMs: 3, problems: [missing], failure: null };
  expect(look()).toEqual([]);
  expect(look()).toEqual([]);
  nats.scrub = { atMs: 4, problems: [missing], failure: null };
  expect(look()).toEqual(["The scrub of NATS replicas reports: only 2 of 3 answer"]);
});
