/** The Prometheus metrics of a cluster, as this node sees it. Pure. */
import type { ClusterFigures, CopyFigures } from "./cluster-figures.ts";

interface ClusterMetric {
  readonly name: string;
  readonly kind: "counter" | "gauge";
  readonly help: string;
  readonly samples: readonly {
    readonly labels: Readonly<Record<string, string>>;
    readonly value: number;
  }[];
}

const roles = ["leader", "follower", "candidate", "stopped"] as const;
const problemKinds = ["hole", "differs", "missing", "unsafe", "behind"] as const;

/** `copies` contains the copies with their own series. */
export function clusterMetrics(
  { leaderTag, epoch, nodes, nats, leaderlessCount }: ClusterFigures,
  copies: readonly CopyFigures[],
  nowMs: number,
): ClusterMetric[] {
  const gauge = (name: string, help: string, value: number): ClusterMetric => {
    return { name, kind: "gauge", help, samples: [{ labels: {}, value }] };
  };
  const others = nodes.filter(
    ({ isHere, isRegistered, heardMs }) => !isHere && isRegistered && heardMs !== null,
  );
  return [
    gauge(
      "jackdaw_cluster_has_leader",
      "1 if this node knows the leader of the cluster",
      leaderTag === null ? 0 : 1,
    ),
    gauge("jackdaw_cluster_epoch", "The epoch of the cluster's leader", epoch),
    gauge(
      "jackdaw_cluster_nodes",
      "Nodes of the cluster",
      nodes.filter(({ isRegistered }) => isRegistered).length,
    ),
    {
      name: "jackdaw_cluster_node_silent_seconds",
      kind: "gauge",
      help: "Seconds since the last heartbeat of another node",
      samples: others.map(({ tag, heardMs }) => ({
        labels: { node: tag },
        value: (heardMs ?? 0) / 1000,
      })),
    },
    gauge(
      "jackdaw_cluster_databases_leaderless",
      "Databases without a known leader",
      leaderlessCount,
    ),
    ...copyMetrics(copies),
    ...(nats === null ? [] : natsMetrics(nats, nowMs)),
  ];
}

function copyMetrics(copies: readonly CopyFigures[]): ClusterMetric[] {
  const column = (
    name: string,
    kind: "counter" | "gauge",
    help: string,
    of: (copy: CopyFigures) => number,
  ): ClusterMetric => ({
    name,
    kind,
    help,
    samples: copies.map((copy) => ({ labels: { database: copy.database }, value: of(copy) })),
  });
  return [
    {
      name: "jackdaw_replica_role",
      kind: "gauge",
      help: "1 for the role of this node's copy of a database",
      samples: copies.flatMap(({ database, role: own }) =>
        roles.map((role) => ({ labels: { database, role }, value: role === own ? 1 : 0 })),
      ),
    },
    column("jackdaw_replica_epoch", "gauge", "The epoch of a copy", ({ epoch }) => epoch),
    column(
      "jackdaw_replica_applied",
      "gauge",
      "Last message of the stream in a copy",
      ({ applied }) => applied,
    ),
    column(
      "jackdaw_replica_behind_messages",
      "gauge",
      "Messages that a copy lacks and another copy has",
      ({ behind }) => behind,
    ),
    column(
      "jackdaw_replica_behind_seconds",
      "gauge",
      "Seconds for which a copy has lacked messages that another copy has",
      ({ behindSeconds }) => behindSeconds,
    ),
    column(
      "jackdaw_replica_gaps_total",
      "counter",
      "Gaps in its stream that a copy has filled from another node",
      ({ gaps }) => gaps,
    ),
  ];
}

function natsMetrics(
  { isConnected, restarts, scrub }: NonNullable<ClusterFigures["nats"]>,
  nowMs: number,
): ClusterMetric[] {
  const metric = (
    name: string,
    kind: "counter" | "gauge",
    help: string,
    samples: ClusterMetric["samples"],
  ): ClusterMetric => ({ name, kind, help, samples });
  const one = (value: number) => [{ labels: {}, value }];
  const always = [
    metric(
      "jackdaw_nats_connected",
      "gauge",
      "1 while NATS is connected",
      one(isConnected ? 1 : 0),
    ),
    metric(
      "jackdaw_nats_restarts_total",
      "counter",
      "Unexpected exits of this node's nats-server",
      one(restarts),
    ),
  ];
  if (scrub === null) return always;
  const ofKind = (kind: string) => scrub.problems.filter((problem) => problem.kind === kind).length;
  return [
    ...always,
    metric(
      "jackdaw_nats_scrub_problems",
      "gauge",
      "Damaged, missing, unsafe, and lagging replicas found by the last scrub of NATS",
      problemKinds.map((kind) => ({ labels: { kind }, value: ofKind(kind) })),
    ),
    metric(
      "jackdaw_nats_scrub_failed",
      "gauge",
      "1 if the last scrub could not check the replicas",
      one(scrub.failure === null ? 0 : 1),
    ),
    metric(
      "jackdaw_nats_scrub_age_seconds",
      "gauge",
      "Seconds since the last scrub",
      one(Math.max(0, nowMs - scrub.atMs) / 1000),
    ),
  ];
}
