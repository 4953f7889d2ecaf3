import { expect, test } from "vitest";
import type { ReplicaState } from "../../../server/cluster/cluster-view.ts";
import {
  isHeard,
  nodesOf,
  ownState,
  placesFor,
  placesForNew,
} from "../../../server/cluster/topology.ts";
import type { ServerServices } from "../../../server/routing/services.ts";
import { FakeCluster } from "../../support/fake-cluster.ts";
import { fakeMember } from "../../support/seen-cluster.ts";

const clusterOf = (tags?: readonly string[]) => new FakeCluster({} as ServerServices, tags);

function nodes(cluster: FakeCluster, name: string) {
  return nodesOf(cluster, cluster.find(name) as ReplicaState).map(
    ({ tag, role, demotion }) => `${tag} ${role}${demotion === null ? "" : ` ${demotion.status}`}`,
  );
}

test("a node leads, follows, looks for a leader, or is not in the cluster", () => {
  const cluster = clusterOf();
  expect(ownState(cluster)).toBe("Leader");
  cluster.leaderTag = "B";
  expect(ownState(cluster)).toBe("Follower");
  cluster.leaderTag = null;
  expect(ownState(cluster)).toBe("Candidate");
  cluster.nodes.splice(0, 1);
  expect(ownState(cluster)).toBe("Passive");
});

test("a node counts as reachable for five seconds after its last heartbeat, this one always", () => {
  const cluster = clusterOf();
  cluster.hear("B", {}, 5_000);
  cluster.hear("C", {}, 5_001);
  expect(["A", "B", "C", "D"].map((tag) => isHeard(cluster, tag))).toEqual([
    true,
    true,
    false,
    false,
  ]);
});

test("orders the leader first, then members, then silent, lagging or empty nodes", () => {
  const cluster = clusterOf(["A", "B", "C", "D", "E", "F"]);
  cluster.register("orders", ["A", "B", "C", "D", "E", "F"], { role: "follower", leaderTag: "C" });
  expect(nodes(cluster, "Orders")).toEqual(
    ["C", "A", "B", "D", "E", "F"].map((x) => `${x} Member`),
  );
  const { id } = (cluster.find("orders") as ReplicaState).registered;
  cluster.hear("C", { [id]: 2_000 });
  cluster.hear("B", { [id]: 999 }); // A lag of 1,001 messages.
  cluster.hear("D", {}, 6_000);
  cluster.hear("E", {});
  cluster.hear("F", { [id]: 1_000 });
  cluster.states.set("orders", { ...(cluster.find("orders") as ReplicaState), applied: 2_000 });
  expect(nodes(cluster, "orders")).toEqual([
    "C Member",
    "A Member",
    "F Member",
    "B Rehab ChangeVectorNotMerged",
    "D Rehab NotResponding",
    "E Promotable WaitingForFirstPromotion",
  ]);
});

test("omits unregistered nodes", () => {
  const cluster = clusterOf();
  cluster.register("orders", ["A", "B", "C"]);
  cluster.nodes.splice(1, 1);
  expect(nodes(cluster, "orders")).toEqual(["A Member", "C Member"]);
});

test("places new databases on reachable nodes with the fewest copies, and varies the order among equals", () => {
  const cluster = clusterOf();
  expect(placesFor(cluster, "x", 3).sort()).toEqual(["A", "B", "C"]);
  cluster.register("one", ["A"]);
  expect(placesFor(cluster, "x", 2).sort()).toEqual(["B", "C"]);
  cluster.register("two", ["B"]);
  expect(placesFor(cluster, "x", 1)).toEqual(["C"]);
  const seen = new Set(
    Array.from({ length: 20 }, (_, at) => placesFor(cluster, `new${at}`, 3).join("")),
  );
  expect([...seen].sort()).toEqual(["CAB", "CBA"]);
  expect(placesFor(cluster, "NEW1", 3)).toEqual(placesFor(cluster, "new1", 3));
  cluster.hear("C", {}, 60_000);
  expect(placesFor(cluster, "x", 2).sort()).toEqual(["A", "B"]);
  expect(placesFor(cluster, "x", 9)[2]).toBe("C");
  cluster.nodes.push(fakeMember("D"));
  cluster.hear("D");
  expect(placesFor(cluster, "x", 1)).toEqual(["D"]);
});

test("a new database is led by the member that leads the fewest, preferring this node", () => {
  const cluster = clusterOf();
  expect(placesForNew(cluster, "x", 3)[0]).toBe("A");
  cluster.register("one", ["A", "B"]);
  expect(placesForNew(cluster, "x", 3)[0]).toMatch(/[BC]/);
  expect(placesForNew(cluster, "x", 3)[2]).toBe("A");
  expect(placesForNew(cluster, "x", 1)).toEqual(["C"]);
  cluster.register("two", ["A"], { leaderTag: "C" });
  cluster.register("three", ["A"], { leaderTag: "C" });
  // C has the fewest copies, but leads more than B.
  expect(placesFor(cluster, "x", 2)).toEqual(["C", "B"]);
  expect(placesForNew(cluster, "x", 2)).toEqual(["B", "C"]);
  cluster.hear("B", {}, 60_000);
  expect(placesForNew(cluster, "x", 3)).toEqual(["A", "C", "B"]);
});

test("databases created at one node share each other node evenly", () => {
  const tags = Array.from({ length: 9 }, (_, at) => String.fromCharCode(65 + at));
  const cluster = clusterOf(tags);
  for (let n = 0; n < 90; n++) cluster.register(`new${n}`, placesForNew(cluster, `new${n}`, 3));
  const databases = [...cluster.states.values()].map(({ registered }) => registered.members);
  for (const tag of tags) {
    const own = databases.filter((members) => members.includes(tag));
    expect(own).toHaveLength(30);
    expect(new Set(own.flat()).size).toBe(9);
    // Of a node's 60 shared positions, none of the eight other nodes has a third.
    for (const other of tags.filter((one) => one !== tag)) {
      expect(own.filter((members) => members.includes(other)).length).toBeLessThan(20);
    }
  }
});

test("databases created one after another at one node are led by all nodes", () => {
  const cluster = clusterOf();
  for (let n = 0; n < 9; n++) {
    // No heartbeat has named their leaders yet.
    cluster.register(`new${n}`, placesForNew(cluster, `new${n}`, 3), { leaderTag: null });
  }
  const first = [...cluster.states.values()].map(({ registered }) => registered.members[0]);
  expect(["A", "B", "C"].map((tag) => first.filter((one) => one === tag).length)).toEqual([
    3, 3, 3,
  ]);
});
