/**
 * The topology that clients receive for a cluster and for each database: members, leaders, and the copies to query.
 * Computed from a `ClusterView` alone.
 *
 * Invariants:
 * - The leader comes first, then the other members, then lagging or silent nodes: clients try them in this order.
 * - Only registered nodes are listed, with their registered addresses.
 */

import { createHash } from "node:crypto";
import { foldedName } from "../../engine/base/case-folding.ts";
import type { ClusterMember, ClusterView, ReplicaState } from "./cluster-view.ts";

/** Time without a heartbeat (ten intervals) after which a node counts as unavailable, in milliseconds. */
const silentMsMax = 5_000;
/** Maximum lag of a member's copy, in messages. Beyond it, clients should read from other nodes. */
const lagMessagesMax = 1_000;
/** Default number of copies of a new database. */
export const copiesDefault = 3;

/**
 * - Member: up to date, or nearly.
 * - Promotable: it has no data of the database yet.
 * - Rehab: silent, stopped, or lagging.
 */
type NodeRole = "Member" | "Promotable" | "Rehab";

export interface DatabaseNode {
  readonly tag: string;
  readonly url: string;
  readonly role: NodeRole;
  /** RavenDB's name of the reason why it is not a member, and a sentence for people; null for members. */
  readonly demotion: { readonly status: string; readonly reason: string } | null;
}

export type NodeState = "Leader" | "Follower" | "Candidate" | "Passive";

/** Returns the role of this node in the ordering of the shared values. */
export function ownState(cluster: ClusterView): NodeState {
  if (!cluster.members().some(({ tag }) => tag === cluster.tag)) return "Passive";
  if (cluster.leaderTag === null) return "Candidate";
  return cluster.leaderTag === cluster.tag ? "Leader" : "Follower";
}

/** Returns whether the node has sent a heartbeat recently. Always true for this node. */
export function isHeard(cluster: ClusterView, tag: string): boolean {
  if (tag === cluster.tag) return true;
  const heartbeat = cluster.lastHeartbeat(tag);
  return heartbeat !== undefined && heartbeat.ageMs <= silentMsMax;
}

export function memberOf(cluster: ClusterView, tag: string): ClusterMember | undefined {
  return cluster.members().find((one) => one.tag === tag);
}

/** Returns the nodes of a database in the order in which clients try them. */
export function nodesOf(cluster: ClusterView, state: ReplicaState): DatabaseNode[] {
  const nodes = state.registered.members.flatMap((tag) => {
    const member = memberOf(cluster, tag);
    return member === undefined ? [] : [nodeOf(cluster, state, member)];
  });
  const place = ({ tag, role }: DatabaseNode) => {
    if (role !== "Member") return 2;
    return tag === state.leaderTag ? 0 : 1;
  };
  return nodes.sort((one, other) => place(one) - place(other));
}

function nodeOf(
  cluster: ClusterView,
  state: ReplicaState,
  { tag, url }: ClusterMember,
): DatabaseNode {
  const demoted = (role: NodeRole, status: string, reason: string): DatabaseNode => ({
    tag,
    url,
    role,
    demotion: { status, reason },
  });
  if (!isHeard(cluster, tag)) {
    return demoted("Rehab", "NotResponding", `Node ${tag} has sent no heartbeats recently.`);
  }
  if (tag === state.leaderTag) return { tag, url, role: "Member", demotion: null };
  const copy = copyOn(cluster, state, tag);
  if (copy === null) {
    const reason = `Node ${tag} is receiving its copy of the database.`;
    return demoted("Promotable", "WaitingForFirstPromotion", reason);
  }
  if (copy.role === "stopped") {
    return demoted("Rehab", "NotResponding", `The copy on node ${tag} has stopped.`);
  }
  const behind = newestApplied(cluster, state) - copy.applied;
  if (behind > lagMessagesMax) {
    const reason = `The copy on node ${tag} lags by ${behind} messages.`;
    return demoted("Rehab", "ChangeVectorNotMerged", reason);
  }
  return { tag, url, role: "Member", demotion: null };
}

/** Returns the last applied message of a node's copy, or null if it has no data of the database. */
function copyOn(
  cluster: ClusterView,
  { registered, role, applied }: ReplicaState,
  tag: string,
): { readonly role: string; readonly applied: number } | null {
  if (tag === cluster.tag) return role === null || applied === 0 ? null : { role, applied };
  const copy = cluster.lastHeartbeat(tag)?.databases.get(registered.id);
  return copy === undefined || copy.applied === 0 ? null : copy;
}

function newestApplied(cluster: ClusterView, state: ReplicaState): number {
  const applied = state.registered.members.map((tag) => copyOn(cluster, state, tag)?.applied ?? 0);
  return Math.max(0, ...applied);
}

/**
 * Selects nodes for copies of the database `name`: available nodes first, then nodes with the fewest copies. Ties are broken
 * by an order specific to the database, so that databases spread over many groups of nodes, and all remaining nodes share
 * the load of a lost one.
 *
 * @param count at least 1; values above the number of nodes select all of them
 */
export function placesFor(cluster: ClusterView, name: string, count: number): string[] {
  const copies = new Map<string, number>();
  for (const { registered } of cluster.databases()) {
    for (const tag of registered.members) copies.set(tag, (copies.get(tag) ?? 0) + 1);
  }
  const rank = (tag: string) => [
    isHeard(cluster, tag) ? 0 : 1,
    copies.get(tag) ?? 0,
    drawnPlace(name, tag),
  ];
  return sortedBy(
    cluster.members().map(({ tag }) => tag),
    rank,
  ).slice(0, count);
}

/**
 * Selects nodes for a new database, as `placesFor`. The first one creates the database and then leads it: the available
 * node that leads the fewest databases, preferably this one. Leaders are therefore spread even if one node creates all.
 */
export function placesForNew(cluster: ClusterView, name: string, count: number): string[] {
  const led = new Map<string, number>();
  for (const { leaderTag, registered } of cluster.databases()) {
    // A database without a known leader is counted for its first member, which creates it: many may be created together.
    const tag = leaderTag ?? registered.members[0];
    if (tag !== undefined) led.set(tag, (led.get(tag) ?? 0) + 1);
  }
  return sortedBy(placesFor(cluster, name, count), (tag) => [
    isHeard(cluster, tag) ? 0 : 1,
    led.get(tag) ?? 0,
    tag === cluster.tag ? 0 : 1,
  ]);
}

/** Returns a pseudo-random rank of a node for a database, the same on all nodes. */
function drawnPlace(name: string, tag: string): number {
  return createHash("sha256")
    .update(`${foldedName(name)}/${tag}`)
    .digest()
    .readUInt32BE();
}

function sortedBy(tags: readonly string[], rank: (tag: string) => readonly number[]): string[] {
  const ranked = tags.map((tag) => ({ tag, rank: rank(tag) }));
  return ranked.sort((one, other) => compared(one.rank, other.rank)).map(({ tag }) => tag);
}

function compared(one: readonly number[], other: readonly number[]): number {
  for (const [position, value] of one.entries()) {
    const difference = value - (other[position] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/**
 * Returns the reason why copies of a database cannot be removed, namely that no other copy is up to date and writes could
 * be lost, or null if they can.
 */
export function lossBy(
  cluster: ClusterView,
  state: ReplicaState,
  tags: readonly string[],
): string | null {
  const left = nodesOf(cluster, state).filter(({ tag }) => !tags.includes(tag));
  if (left.some(({ role }) => role === "Member")) return null;
  const { name } = state.registered;
  const reasons = left.flatMap(({ demotion }) => (demotion === null ? [] : [demotion.reason]));
  return `Without ${tags.join(", ")}, the database '${name}' would have no up-to-date copy. ${reasons.join(" ")}`.trim();
}
