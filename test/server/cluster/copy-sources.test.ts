import { expect, test } from "vitest";
import type { ClusterView, ReceivedHeartbeat } from "../../../server/cluster/cluster-view.ts";
import { copySources } from "../../../server/cluster/copy-sources.ts";

const id = "0".repeat(32);

function heartbeat(
  applied: number,
  role: "follower" | "leader" | "stopped" = "follower",
  ageMs = 100,
): ReceivedHeartbeat {
  return { ageMs, version: "1", databases: new Map([[id, { role, epoch: 1, applied }]]) };
}

test("prefers the leader, then the most advanced copies, without silent, stopped or foreign nodes", () => {
  const heard = new Map([
    ["A", heartbeat(50, "leader")],
    ["B", heartbeat(70)],
    ["C", heartbeat(90)],
    ["D", heartbeat(100, "stopped")],
    ["E", heartbeat(100, "follower", 6000)],
    ["F", heartbeat(100)],
    ["Z", heartbeat(100)],
    ["H", { ageMs: 0, version: "1", databases: new Map() }],
  ]);
  const cluster = {
    tag: "Z",
    lastHeartbeat: (tag: string) => heard.get(tag),
  } as unknown as ClusterView;
  const members = ["A", "B", "C", "D", "E", "G", "H", "Z"];
  expect(copySources(cluster, { id, members }, "A")).toEqual(["A", "C", "B"]);
  expect(copySources(cluster, { id, members }, null)).toEqual(["C", "B", "A"]);
});
