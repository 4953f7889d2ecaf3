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
import { FakeCluster, fakeMember } from "../../support/fake-cluster.ts";

const clusterOf = (tags?: readonly string[]) => new FakeCluster({} as ServerServices, tags);

function nodes(cluster: FakeCluster, name: string) {
  return nodesOf(cluster, cluster.find(name) as ReplicaState).map(
    ({ tag, role, demotion }) => `${tag} ${role}${demotion === null ? "" : ` ${demotion.status}`}`,
  );
}

test("a node leads, follows, looks for a leader or is none of the cluster", () => {
  const cluster = clusterOf();
  expect(ownState(cluster)).toBe("Leader");
  cluster.leaderTag = "B";
  expect(ownState(cluster)).toBe("Follower");
  cluster.leaderTag = null;
  expect(ownState(cluster)).toBe("Candidate");
  cluster.nodes.splice(0, 1);
  expect(ownState(cluster)).toBe("Passive");
});

test("a node is heard for five seconds after its last heartbeat, this one always", () => {
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

test("the leader comes first, then members in their order, then who is silent, behind or without anything", () => {
  const cluster = clusterOf(["A", "B", "C", "D", "E", "F"]);
  cluster.register("orders", ["A", "B", "C", "D", "E", "F"], { role: "follower", leaderTag: "C" });
  expect(nodes(cluster, "Orders")).toEqual(
    ["C", "A", "B", "D", "E", "F"].map((x) => `${x} Member`),
  );
  const { id } = (cluster.find("orders") as ReplicaState).registered;
  cluster.hear("C", { [id]: 2_000 });
  cluster.hear("B", { [id]: 999 }); // 1,001 behind
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

test("who is no longer registered as a node is not told of", () => {
  const cluster = clusterOf();
  cluster.register("orders", ["A", "B", "C"]);
  cluster.nodes.splice(1, 1);
  expect(nodes(cluster, "orders")).toEqual(["A Member", "C Member"]);
});

test("new databases go to nodes that are heard, with the fewest copies, this one first among equals", () => {
  const cluster = clusterOf();
  expect(placesFor(cluster, 1)).toEqual(["A"]);
  cluster.register("one", ["A"]);
  expect(placesFor(cluster, 1)).toEqual(["B"]);
  cluster.register("two", ["B"]);
  expect(placesFor(cluster, 2)).toEqual(["C", "A"]);
  cluster.hear("C", {}, 60_000);
  expect(placesFor(cluster, 2)).toEqual(["A", "B"]);
  expect(placesFor(cluster, 9)).toEqual(["A", "B", "C"]);
  cluster.nodes.push(fakeMember("D"));
  cluster.hear("D");
  expect(placesFor(cluster, 1)).toEqual(["D"]);
});

test("a new database is led by the one of its nodes that leads the fewest, by this one if none leads fewer", () => {
  const cluster = clusterOf();
  expect(placesForNew(cluster, 3)).toEqual(["A", "B", "C"]);
  cluster.register("one", ["A", "B"]);
  expect(placesForNew(cluster, 3)).toEqual(["C", "B", "A"]);
  expect(placesForNew(cluster, 2)).toEqual(["C", "A"]);
  cluster.register("two", ["A"], { leaderTag: "C" });
  cluster.register("three", ["A"], { leaderTag: "C" });
  // C has the fewest copies, and leads more than B.
  expect(placesFor(cluster, 2)).toEqual(["C", "B"]);
  expect(placesForNew(cluster, 2)).toEqual(["B", "C"]);
  cluster.hear("B", {}, 60_000);
  expect(placesForNew(cluster, 3)).toEqual(["A", "C", "B"]);
});

test("databases that are created at one node one after another have their leaders on all", () => {
  const cluster = clusterOf();
  for (let n = 0; n < 9; n++) {
    // Nobody has said yet who leads them.
    cluster.register(`new${n}`, placesForNew(cluster, 3), { leaderTag: null });
  }
  const first = [...cluster.states.values()].map(({ registered }) => registered.members[0]);
  expect(["A", "B", "C"].map((tag) => first.filter((one) => one === tag).length)).toEqual([
    3, 3, 3,
  ]);
});
