import { expect, test } from "vitest";
import { ClusterHistory } from "../../../server/cluster/cluster-history.ts";
import type { ServerServices } from "../../../server/routing/services.ts";
import { FakeCluster } from "../../support/fake-cluster.ts";

function seen() {
  const cluster = new FakeCluster({} as ServerServices);
  const clock = { nowMs: 1_000 };
  return { cluster, clock, history: new ClusterHistory(cluster, () => clock.nowMs) };
}

test("reports the node's role and the time since it became leader", () => {
  const { cluster, clock, history } = seen();
  clock.nowMs = 1_500;
  cluster.changed();
  expect(history.leadingMs).toBe(500);
  expect(history.current).toMatchObject({ state: "Leader", previous: "Passive", atMs: 1_000 });
  cluster.leaderTag = "B";
  cluster.epoch = 4;
  cluster.changed();
  expect(history.leadingMs).toBe(null);
  expect(history.current).toEqual({
    state: "Follower",
    previous: "Leader",
    term: 4,
    atMs: 1_500,
    reason: "Node B orders the changes of the cluster",
  });
  cluster.leaderTag = "C";
  cluster.changed();
  expect(history.states.map(({ state }) => state)).toEqual(["Leader", "Follower", "Follower"]);
});

test("lists the keys of changed values, but not their content", async () => {
  const { cluster, history } = seen();
  await cluster.change([{ key: "secret/x", value: '"hidden"' }]);
  await cluster.change([{ key: "secret/x", value: null }]);
  expect(history.commands).toEqual([
    { index: 11, term: 3, atMs: 1_000, command: "Put secret/x", bytes: 8 },
    { index: 12, term: 3, atMs: 1_000, command: "Delete secret/x", bytes: 0 },
  ]);
  expect(JSON.stringify(history.commands)).not.toContain("hidden");
});

test("lists leader changes and deletions of databases", async () => {
  const { cluster, history } = seen();
  cluster.register("orders", ["A", "B"]);
  await cluster.transfer("orders", "B");
  cluster.changed();
  cluster.states.delete("orders");
  cluster.changed();
  const a = "Node A leads it in epoch 2; copies are on A, B.";
  const b = "Node B leads it in epoch 2; copies are on A, B.";
  expect(history.decisions.map(({ database, message }) => [database, message])).toEqual([
    ["orders", a],
    ["orders", `${b} (before: ${a})`],
    ["orders", "It was deleted."],
  ]);
});

test("retains the newest 256 events, and none after closing", async () => {
  const { cluster, history } = seen();
  for (let number = 0; number < 300; number++) {
    await cluster.change([{ key: `k/${number}`, value: "1" }]);
  }
  expect(history.commands).toHaveLength(256);
  expect(history.commands.at(-1)?.command).toBe("Put k/299");
  history.close();
  await cluster.change([{ key: "k/300", value: "1" }]);
  expect(history.commands.at(-1)?.command).toBe("Put k/299");
});
