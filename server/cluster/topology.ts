/**
 * What clients are told of the nodes of a cluster and of each database: who is one of them, who leads, and which copies
 * are to be asked. Made of a `ClusterView` and nothing else.
 *
 * Invariants:
 * - Members come before those that are behind or silent, and the leader before all: clients send to the first that answers.
 * - Only registered nodes are told of, each with the address that it is registered with.
 */

import { createHash } from "node:crypto";
import { foldedName } from "../../engine/base/case-folding.ts";
import type { ClusterMember, ClusterView, ReplicaState } from "./cluster-view.ts";

/** A node that has been silent for longer counts as gone: ten heartbeats. */
const silentMsMax = 5_000;
/** Messages of the stream that a copy may be behind the leader's; more, and clients had better read elsewhere. */
const lagMessagesMax = 1_000;
/** Copies of a database whose creator does not say how many. */
export const copiesDefault = 3;

/**
 * - Member: up to date, or nearly.
 * - Promotable: it has nothing of the database yet.
 * - Rehab: silent, stopped, or far behind.
 */
export type NodeRole = "Member" | "Promotable" | "Rehab";

export interface DatabaseNode {
  readonly tag: string;
  readonly url: string;
  readonly role: NodeRole;
  /** Why it is not a member, as RavenDB names it, and in words; null: it is one. */
  readonly demotion: { readonly status: string; readonly reason: string } | null;
}

export type NodeState = "Leader" | "Follower" | "Candidate" | "Passive";

/** What this node is in the ordering of the cluster's own values. */
export function ownState(cluster: ClusterView): NodeState {
  if (!cluster.members().some(({ tag }) => tag === cluster.tag)) return "Passive";
  if (cluster.leaderTag === null) return "Candidate";
  return cluster.leaderTag === cluster.tag ? "Leader" : "Follower";
}

/** Has the node said something lately? This one always has. */
export function isHeard(cluster: ClusterView, tag: string): boolean {
  if (tag === cluster.tag) return true;
  const heartbeat = cluster.lastHeartbeat(tag);
  return heartbeat !== undefined && heartbeat.ageMs <= silentMsMax;
}

export function memberOf(cluster: ClusterView, tag: string): ClusterMember | undefined {
  return cluster.members().find((one) => one.tag === tag);
}

/** The nodes of a database, in the order in which clients try them. */
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
    return demoted("Rehab", "NotResponding", `Node ${tag} has not been heard for a while.`);
  }
  if (tag === state.leaderTag) return { tag, url, role: "Member", demotion: null };
  const copy = copyOn(cluster, state, tag);
  if (copy === null) {
    const reason = `Node ${tag} is getting its copy of the database.`;
    return demoted("Promotable", "WaitingForFirstPromotion", reason);
  }
  if (copy.role === "stopped") {
    return demoted("Rehab", "NotResponding", `The copy on node ${tag} has stopped.`);
  }
  const behind = newestApplied(cluster, state) - copy.applied;
  if (behind > lagMessagesMax) {
    const reason = `The copy on node ${tag} is ${behind} messages behind.`;
    return demoted("Rehab", "ChangeVectorNotMerged", reason);
  }
  return { tag, url, role: "Member", demotion: null };
}

/** How far the copy of a node is; null: it has nothing of the database. */
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
 * Nodes for copies of the database `name`: those that are heard first, then those with the fewest copies. Among equals the
 * database's own order counts, so that databases have their copies on many different groups of nodes: when a node is lost, all
 * others share what it did.
 *
 * @param count at least 1; more than there are nodes means all of them
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
 * Nodes for a new database, as by `placesFor`. The first of them is to create it, and leads it then: of those that are
 * heard the one that leads the fewest, if possible this one. So who creates all databases at one node has leaders on all.
 */
export function placesForNew(cluster: ClusterView, name: string, count: number): string[] {
  const led = new Map<string, number>();
  for (const { leaderTag, registered } of cluster.databases()) {
    // A leader that was not heard yet is the first member, which creates it: many may be created at once.
    const tag = leaderTag ?? registered.members[0];
    if (tag !== undefined) led.set(tag, (led.get(tag) ?? 0) + 1);
  }
  return sortedBy(placesFor(cluster, name, count), (tag) => [
    isHeard(cluster, tag) ? 0 : 1,
    led.get(tag) ?? 0,
    tag === cluster.tag ? 0 : 1,
  ]);
}

/** The place of a node in the order of a database: the same on all nodes, and as if it were drawn for each database. */
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
 * Why copies of a database cannot be taken away: no other one is up to date, so that what was written could be lost. Null:
 * they can.
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
  return `Without ${tags.join(", ")}, the database '${name}' would have no copy that is up to date. ${reasons.join(" ")}`.trim();
}
