/** The metrics of a cluster, and their use in the documentation and the alerting rules. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { ClusterFigures } from "../../../server/monitoring/cluster-figures.ts";
import { clusterMetrics } from "../../../server/monitoring/cluster-metrics.ts";
import { projectRoot } from "../../support/project-root.ts";

const copy = {
  database: "shop",
  role: "stopped",
  epoch: 2,
  applied: 7,
  behind: 3,
  behindSeconds: 1.5,
  gaps: 1,
};
const figures: ClusterFigures = {
  leaderTag: null,
  epoch: 4,
  nodes: [
    { tag: "A", isHere: true, isRegistered: true, heardMs: 0 },
    { tag: "B", isHere: false, isRegistered: true, heardMs: null },
    { tag: "D", isHere: false, isRegistered: false, heardMs: 100 },
  ],
  copies: [copy],
  leaderlessCount: 1,
  nats: {
    isConnected: false,
    restarts: 0,
    scrub: { atMs: 5_000, problems: [], failure: "no answer" },
  },
};

function seriesOf(name: string, given: Partial<ClusterFigures> = {}): (string | number)[][] {
  const metrics = clusterMetrics({ ...figures, ...given }, [copy], 9_000);
  const { samples = [] } = metrics.find((one) => one.name === name) ?? {};
  return samples.map(({ labels, value }) => [...Object.values(labels), value]);
}

test("unknown values have no series, and a role has one series per value", () => {
  expect(seriesOf("jackdaw_cluster_has_leader")).toEqual([[0]]);
  expect(seriesOf("jackdaw_cluster_nodes")).toEqual([[2]]);
  expect(seriesOf("jackdaw_cluster_node_silent_seconds")).toEqual([]);
  expect(seriesOf("jackdaw_replica_role")).toEqual([
    ["shop", "leader", 0],
    ["shop", "follower", 0],
    ["shop", "candidate", 0],
    ["shop", "stopped", 1],
  ]);
  expect(seriesOf("jackdaw_replica_behind_seconds")).toEqual([["shop", 1.5]]);
});

test("a failed scrub, and a missing one", () => {
  expect(seriesOf("jackdaw_nats_scrub_failed")).toEqual([[1]]);
  expect(seriesOf("jackdaw_nats_scrub_age_seconds")).toEqual([[4]]);
  const nats = { isConnected: true, restarts: 0, scrub: null };
  expect(seriesOf("jackdaw_nats_scrub_failed", { nats })).toEqual([]);
  expect(seriesOf("jackdaw_nats_connected", { nats })).toEqual([[1]]);
  expect(seriesOf("jackdaw_nats_connected", { nats: null })).toEqual([]);
});

test("docs/cluster.md lists all metrics, and alerting rules use only existing ones", () => {
  const read = (path: string) => readFileSync(`${projectRoot}${path}`, "utf8");
  const own = clusterMetrics(figures, [copy], 9_000).map(({ name }) => name);
  const page = read("docs/cluster.md");
  expect(own.filter((name) => !page.includes(`\`${name}`))).toEqual([]);
  const known = new Set([...own, ...(read("docs/operations.md").match(/jackdaw_\w+/g) ?? [])]);
  const used = read("docs/prometheus-alerts.yaml").match(/jackdaw_\w+/g) ?? [];
  expect(used.length).toBeGreaterThan(10);
  expect(used.filter((name) => !known.has(name))).toEqual([]);
});
