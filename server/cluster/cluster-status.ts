/**
 * The state of the cluster at one moment, as this node sees it, as plain data: nodes, leaders, and the progress of each
 * copy. The route, the metrics, the log, and the readiness check use it.
 *
 * Invariants:
 * - Reports of other nodes are up to half a second old, and so are the lags computed from them.
 */
import { foldedName } from "../../engine/base/case-folding.ts";
import { interfaceVersion } from "../http/response.ts";
import type { ClusterView, ReplicaReport, ReplicaRoleName, ReplicaState } from "./cluster-view.ts";

/** Time without a heartbeat (six intervals) after which a node counts as silent, in milliseconds. */
const silentMs = 3_000;

export interface NodeState {
  readonly tag: string;
  readonly url: string;
  readonly isHere: boolean;
  /** Whether the node is registered. An unregistered node sends heartbeats and can be added. */
  readonly isRegistered: boolean;
  /** Milliseconds since its last heartbeat, 0 for this node, or null without any since the start. */
  readonly heardMs: number | null;
  /** Version of the server, or null if not known. */
  readonly version: string | null;
}

interface CopyState {
  /** Tag of the node that has the copy. */
  readonly tag: string;
  /** Role of the replica, or null if its node is silent. */
  readonly role: ReplicaRoleName | null;
  readonly epoch: number;
  /** Last known message of the stream in its log. */
  readonly applied: number;
  /** Messages that the most advanced copy has and this one lacks, or null if not known. */
  readonly behind: number | null;
}

export interface DatabaseState {
  readonly name: string;
  readonly id: string;
  /** Tag of the leading node, or null if not known. */
  readonly leaderTag: string | null;
  readonly epoch: number;
  readonly copies: readonly CopyState[];
  /** Reason why this node's copy has stopped, or null if it runs or does not exist. */
  readonly trouble: string | null;
}

export interface ClusterStatus {
  /** Tag of this node. */
  readonly tag: string;
  readonly topologyId: string | null;
  /** Tag of the node that orders the changes of the cluster's values, or null if not known. */
  readonly leaderTag: string | null;
  readonly epoch: number;
  readonly index: number;
  /** Ordered by tag. */
  readonly nodes: readonly NodeState[];
  /** Ordered by name. */
  readonly databases: readonly DatabaseState[];
}

export function clusterStatus(view: ClusterView): ClusterStatus {
  const { tag, topologyId, leaderTag, epoch, index } = view;
  const nodeOf = (isRegistered: boolean) => (member: { tag: string; url: string }) => {
    const isHere = member.tag === tag;
    const seen = isHere ? undefined : view.lastHeartbeat(member.tag);
    return {
      tag: member.tag,
      url: member.url,
      isHere,
      isRegistered,
      heardMs: isHere ? 0 : (seen?.ageMs ?? null),
      version: isHere ? interfaceVersion : (seen?.version ?? null),
    };
  };
  const nodes = [...view.members().map(nodeOf(true)), ...view.strangers().map(nodeOf(false))].sort(
    (one, other) => compare(one.tag, other.tag),
  );
  const databases = view
    .databases()
    .map((state) => databaseState(view, state))
    .sort((one, other) => compare(foldedName(one.name), foldedName(other.name)));
  return { tag, topologyId, leaderTag, epoch, index, nodes, databases };
}

export function isHeard({ heardMs }: NodeState): boolean {
  return heardMs !== null && heardMs < silentMs;
}

function databaseState(view: ClusterView, state: ReplicaState): DatabaseState {
  const { name, id, members } = state.registered;
  const seen = members.map((tag) => ({ tag, ...reportOf(view, state, tag) }));
  const furthest = Math.max(state.applied, ...seen.map(({ report }) => report?.applied ?? 0));
  const copies = seen.map(({ tag, report, isFresh }) => ({
    tag,
    role: isFresh ? (report?.role ?? null) : null,
    epoch: report?.epoch ?? 0,
    applied: report?.applied ?? 0,
    behind: report === undefined ? null : furthest - report.applied,
  }));
  const { leaderTag, epoch, trouble } = state;
  return {
    name,
    id,
    leaderTag,
    epoch: Math.max(epoch, ...copies.map((copy) => copy.epoch)),
    copies,
    trouble,
  };
}

interface CopyReport {
  readonly report: ReplicaReport | undefined;
  readonly isFresh: boolean;
}

function reportOf(view: ClusterView, state: ReplicaState, tag: string): CopyReport {
  if (tag === view.tag) {
    const { role, epoch, applied } = state;
    const report = role === null ? undefined : { role, epoch, applied };
    return { report, isFresh: true };
  }
  const node = view.lastHeartbeat(tag);
  const report = node?.databases.get(state.registered.id);
  return { report, isFresh: node !== undefined && node.ageMs < silentMs };
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
