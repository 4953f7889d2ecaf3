/**
 * The state of the cluster as one node sees it, at one moment, as plain data: its nodes, who leads each database, and how
 * far each copy is. The route, the metrics, the log and the check of readiness are all made from it.
 *
 * Invariants:
 * - What was heard of other nodes is up to half a second old, and so is what they are behind.
 */
import { foldedName } from "../../engine/base/case-folding.ts";
import { interfaceVersion } from "../http/response.ts";
import type { ClusterView, ReplicaReport, ReplicaRoleName, ReplicaState } from "./cluster-view.ts";

/** Without a heartbeat for this long, six of them, a node counts as silent. */
export const silentMs = 3_000;

export interface NodeState {
  readonly tag: string;
  readonly url: string;
  readonly isHere: boolean;
  /** false: it is heard, and could be added. */
  readonly isRegistered: boolean;
  /** Milliseconds since its last heartbeat, 0 for this node; null: nothing was heard since the start. */
  readonly heardMs: number | null;
  /** null: not known. */
  readonly version: string | null;
}

export interface CopyState {
  /** Of the node that has it. */
  readonly tag: string;
  /** null: its node is not heard. */
  readonly role: ReplicaRoleName | null;
  readonly epoch: number;
  /** The last message of the stream in its log, as far as that is known. */
  readonly applied: number;
  /** Messages that the copy furthest ahead has and this one has not; null: nothing is known of it. */
  readonly behind: number | null;
}

export interface DatabaseState {
  readonly name: string;
  readonly id: string;
  /** null: nobody is known to lead it. */
  readonly leaderTag: string | null;
  readonly epoch: number;
  readonly copies: readonly CopyState[];
  /** Why this node's copy does not go on; null: it does, or there is none. */
  readonly trouble: string | null;
}

export interface ClusterStatus {
  /** Of this node. */
  readonly tag: string;
  readonly topologyId: string | null;
  /** Who orders the changes of the cluster's own values; null: not known. */
  readonly leaderTag: string | null;
  readonly epoch: number;
  readonly index: number;
  /** In the order of their tags. */
  readonly nodes: readonly NodeState[];
  /** In the order of their names. */
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
