/** The state of a cluster as seen by one node: reachable nodes and the progress of each copy. */
import { expect, test } from "vitest";
import { clusterStatus, isHeard } from "../../../server/cluster/cluster-status.ts";
import {
  fakeCluster,
  fakeDatabase,
  fakeHeartbeat,
  fakeMember,
} from "../../support/seen-cluster.ts";

const leads = (applied: number) => ({ role: "leader", epoch: 4, applied }) as const;
const follows = (applied: number) => ({ role: "follower", epoch: 4, applied }) as const;

test("lists nodes by tag, including this one and candidates", () => {
  const cluster = fakeCluster({ tag: "B", foreign: [fakeMember("AB")] });
  cluster.heartbeats = new Map([
    ["A", fakeHeartbeat({}, 200)],
    ["AB", fakeHeartbeat({}, 100)],
  ]);
  const { nodes, leaderTag } = clusterStatus(cluster);
  expect(leaderTag).toBe("A");
  expect(
    nodes.map(({ tag, isHere, isRegistered, heardMs }) => [tag, isHere, isRegistered, heardMs]),
  ).toEqual([
    ["A", false, true, 200],
    ["AB", false, false, 100],
    ["B", true, true, 0],
    ["C", false, true, null],
  ]);
  expect(nodes.map(isHeard)).toEqual([true, true, true, false]);
});

test("computes the lag of a copy from the most advanced copy on any node", () => {
  const cluster = fakeCluster({
    states: [fakeDatabase("shop", ["B", "A", "C"], { role: "follower", epoch: 4, applied: 90 })],
  });
  cluster.heartbeats.set("B", fakeHeartbeat({ shop: leads(100) }));
  cluster.heartbeats.set("C", fakeHeartbeat({ shop: follows(40) }));
  const [shop] = clusterStatus(cluster).databases;
  expect(shop).toMatchObject({ name: "shop", leaderTag: "B", epoch: 4, trouble: null });
  expect(
    shop?.copies.map(({ tag, role, applied, behind }) => [tag, role, applied, behind]),
  ).toEqual([
    ["B", "leader", 100, 0],
    ["A", "follower", 90, 10],
    ["C", "follower", 40, 60],
  ]);
});

test("reports the last position of a silent node, without a role", () => {
  const cluster = fakeCluster({
    states: [fakeDatabase("shop", ["A", "B", "C"], { role: "leader", epoch: 2, applied: 12 })],
  });
  cluster.heartbeats.set("B", fakeHeartbeat({ shop: follows(10) }, 60_000));
  cluster.heartbeats.delete("C");
  const copies = clusterStatus(cluster).databases[0]?.copies ?? [];
  expect(copies.map(({ role, behind }) => [role, behind])).toEqual([
    ["leader", 0],
    [null, 2],
    [null, null],
  ]);
});

test("describes a database without a local copy by its members' heartbeats", () => {
  const cluster = fakeCluster({
    states: [fakeDatabase("far", ["B"], { role: null, epoch: 0, leaderTag: "B" })],
  });
  cluster.heartbeats.set("B", fakeHeartbeat({ far: leads(5) }));
  const [far] = clusterStatus(cluster).databases;
  expect(far?.epoch).toBe(4);
  expect(far?.copies).toEqual([{ tag: "B", role: "leader", epoch: 4, applied: 5, behind: 0 }]);
});

test("lists databases by name, ignoring case", () => {
  const states = ["b", "A", "c"].map((name) => fakeDatabase(name, ["A"]));
  expect(clusterStatus(fakeCluster({ states })).databases.map(({ name }) => name)).toEqual([
    "A",
    "b",
    "c",
  ]);
});
