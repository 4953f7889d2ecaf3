/**
 * Databases of a cluster: selection of nodes for new databases, and requests of `databases.ts` that other nodes must run.
 *
 * Invariants:
 * - A database is created by a node that will have a copy, and its record is changed by the leading node.
 * - Lists contain every database of the cluster that the caller may see, whether this node has a copy or not.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Database, EngineError } from "../../../engine/engine.ts";
import type { ClusterDatabase, ClusterView, ReplicaState } from "../../cluster/cluster-view.ts";
import { databaseKey } from "../../cluster/registry.ts";
import {
  copiesDefault,
  isHeard,
  lossBy,
  memberOf,
  placesFor,
  placesForNew,
} from "../../cluster/topology.ts";
import type { Exchange } from "../../http/exchange.ts";
import type { JsonObject } from "../../http/json-body.ts";
import { databaseMissing, RequestError } from "../../http/request-error.ts";
import type { ServerServices } from "../../routing/services.ts";
import { callPeer, forwardToPeer, isForwarded } from "./peer-calls.ts";

/** Returns the names for a list: all databases, or, in a request of another node, those with a copy here. */
export function namesFor(exchange: Exchange, { cluster, databases }: ServerServices): string[] {
  const names = [...databases.names()];
  if (!isForwarded(exchange)) return names;
  return names.filter((name) => cluster?.find(name)?.role !== null);
}

/** Maximum time that a request waits until this node knows the members of its cluster, and the poll interval, in milliseconds. */
const membersWaitMs = 5_000;
const membersLookMs = 50;

/** The nodes of a new database. */
interface NewNodes {
  readonly members: readonly string[];
  /** Candidates for creating the database, in order. The creator then leads it. */
  readonly creators: readonly string[];
}

/**
 * Selects the nodes of a new database: those in its record, or the requested number.
 *
 * @throws EngineError invalid-argument, RequestError
 */
export async function membersOfNew(
  cluster: ClusterView,
  exchange: Exchange,
  sent: JsonObject,
): Promise<NewNodes> {
  await knowsMembers(cluster);
  const topology = objectOf(sent["Topology"]);
  const named = tagsIn(topology["Members"]);
  if (named.length > 0) {
    checkMembers(cluster, String(sent["DatabaseName"]), named);
    return { members: named, creators: named.includes(cluster.tag) ? [cluster.tag] : named };
  }
  const inRecord = topology["ReplicationFactor"];
  const factor = exchange.query.int(
    "replicationFactor",
    typeof inRecord === "number" && inRecord > 0 ? inRecord : copiesDefault,
  );
  if (factor < 1) {
    throw new EngineError("invalid-argument", "Replication factor must be greater than 0.");
  }
  const members = placesForNew(cluster, String(sent["DatabaseName"]), factor);
  return { members, creators: members };
}

/** Waits until a recently started node knows the members. @throws EngineError node-unreachable */
async function knowsMembers(cluster: ClusterView): Promise<void> {
  const deadlineMs = performance.now() + membersWaitMs;
  while (cluster.members().length === 0) {
    if (performance.now() >= deadlineMs) {
      throw new EngineError(
        "node-unreachable",
        "This node does not know the members of its cluster yet. Try again.",
      );
    }
    await sleep(membersLookMs);
  }
}

function checkMembers(cluster: ClusterView, name: string, named: readonly string[]): void {
  for (const [position, tag] of named.entries()) {
    if (named.indexOf(tag) !== position) {
      throw new RequestError(
        400,
        "Raven.Client.Exceptions.BadRequestException",
        `Database ${name} cannot have multiple replicas reside on the same node ${tag}.`,
      );
    }
    if (memberOf(cluster, tag) !== undefined) continue;
    throw new EngineError(
      "invalid-argument",
      `Failed to add node ${tag}, because we don't have it in the cluster.`,
    );
  }
}

/** Parses the tags in a list of a topology. @throws EngineError invalid-format */
export function tagsIn(list: unknown): string[] {
  if (list === undefined || list === null) return [];
  if (Array.isArray(list) && list.every((tag) => typeof tag === "string")) return list;
  throw new EngineError(
    "invalid-format",
    `The nodes of a topology must be a list of tags, for example ["A","B"], but are: ${JSON.stringify(list)}.`,
  );
}

function objectOf(value: unknown): JsonObject {
  return typeof value === "object" && value !== null ? (value as JsonObject) : {};
}

/**
 * Lets the first responding node of `creators` create the database. @returns false if that is this node
 *
 * @throws EngineError node-unreachable
 */
export async function createElsewhere(
  exchange: Exchange,
  server: ServerServices,
  sent: JsonObject,
  { members, creators }: NewNodes,
): Promise<boolean> {
  const topology = { ...objectOf(sent["Topology"]), Members: members };
  let failure: unknown;
  for (const tag of creators) {
    if (tag === server.cluster?.tag) return false;
    try {
      await forwardToPeer(exchange, server, tag, { ...sent, Topology: topology });
      return true;
    } catch (error) {
      if (!wasNotSent(error)) throw error;
      failure = error;
    }
  }
  throw failure;
}

function wasNotSent(error: unknown): boolean {
  return (
    error instanceof EngineError &&
    error.code === "node-unreachable" &&
    error.details?.["wasSent"] === false
  );
}

/**
 * Deletes a database, or copies of it. @returns the nodes that have not confirmed, or null if it does not exist
 *
 * @throws EngineError invalid-operation
 */
export async function deleteCopies(
  { cluster, databases }: ServerServices,
  wanted: string,
  from: readonly string[],
): Promise<readonly string[] | null> {
  const state = cluster?.find(wanted);
  if (cluster === undefined || state === undefined) {
    return (await databases.delete(wanted)) ? [] : null;
  }
  const { name, members } = state.registered;
  const missing = from.find((tag) => !members.includes(tag));
  if (missing !== undefined) {
    throw new EngineError(
      "invalid-operation",
      `Database '${name}' doesn't reside on node '${missing}' so it can't be deleted from it`,
    );
  }
  if (from.length === 0 || members.every((tag) => from.includes(tag))) {
    if (!(await cluster.deleteDatabase(name))) return null;
    return members.filter((tag) => !isHeard(cluster, tag));
  }
  checkKept(cluster, state, from);
  for (const tag of new Set(from)) await cluster.removeCopy(name, tag);
  return from.filter((tag) => !isHeard(cluster, tag));
}

/** @throws EngineError invalid-operation if writes could be lost */
function checkKept(cluster: ClusterView, state: ReplicaState, taken: readonly string[]): void {
  const loss = lossBy(cluster, state, taken);
  if (loss === null) return;
  throw new EngineError(
    "invalid-operation",
    `${loss} Add a copy elsewhere, wait until GET /topology?name=${encodeURIComponent(state.registered.name)} lists it as a Member, and try again; or delete the database.`,
  );
}

/**
 * Returns whether every node of a database is listed and none is available, so that its record cannot be checked for a
 * deletion lock. A caller that lists all of them knows that they are lost.
 */
export function isLost(
  cluster: ClusterView | undefined,
  name: string,
  from: readonly string[],
): boolean {
  const members = cluster?.find(name)?.registered.members ?? [];
  if (cluster === undefined || members.length === 0) return false;
  return members.every((tag) => from.includes(tag) && !isHeard(cluster, tag));
}

/** Adds a copy on the node of that tag, or on any node without one if undefined. @throws EngineError invalid-operation */
export async function addCopyTo(
  cluster: ClusterView,
  { registered: { name, members } }: ReplicaState,
  wanted: string | undefined,
): Promise<void> {
  const others = placesFor(cluster, name, cluster.members().length);
  const tag = wanted ?? others.find((one) => !members.includes(one));
  if (tag === undefined) {
    throw new EngineError(
      "invalid-operation",
      `Database ${name} already exists on all the nodes of the cluster`,
    );
  }
  if (members.includes(tag)) {
    throw new EngineError(
      "invalid-operation",
      `Can't add node ${tag} to ${name} topology because it is already part of it`,
    );
  }
  if (memberOf(cluster, tag) === undefined) {
    throw new EngineError(
      "invalid-operation",
      `Can't add node ${tag} to database '${name}' topology, because node ${tag} (which is in the new topology) is not part of the cluster`,
    );
  }
  await cluster.addCopy(name, tag);
}

/** Makes the first node of `order` the leader, and clients try the others in this order. @throws EngineError invalid-argument, … */
export async function reorderCopies(
  cluster: ClusterView,
  { registered: { name, members }, leaderTag }: ReplicaState,
  order: readonly string[],
): Promise<void> {
  const [first] = order;
  const isSame = new Set(order).size === order.length && order.length === members.length;
  if (first === undefined || !isSame || !order.every((tag) => members.includes(tag))) {
    throw new EngineError(
      "invalid-argument",
      "The reordered list doesn't correspond to the existing nodes of the database group.",
    );
  }
  if (leaderTag !== first) await cluster.transfer(name, first);
  const key = databaseKey(name);
  const text = cluster.value(key);
  if (text === undefined) throw databaseMissing(name);
  const registered = JSON.parse(text) as ClusterDatabase;
  if (registered.members.length !== order.length) {
    throw new EngineError(
      "concurrency",
      `The nodes of database '${name}' were changed concurrently, to ${registered.members.join(", ")}.`,
    );
  }
  const index = Math.max(registered.index, cluster.index) + 1;
  const value = JSON.stringify({ ...registered, members: order, index });
  await cluster.change([{ key, expected: text, value }]);
}

/** Changes the nodes of a database to those of a topology. @throws EngineError invalid-argument, invalid-operation */
export async function modifyCopies(
  cluster: ClusterView,
  state: ReplicaState,
  wanted: readonly string[],
): Promise<void> {
  const { name, members } = state.registered;
  const taken = members.filter((tag) => !wanted.includes(tag));
  const added = wanted.filter((tag) => !members.includes(tag));
  checkTopology(cluster.members(), name, wanted);
  if (taken.length > 0) checkKept(cluster, state, taken);
  for (const tag of added) await cluster.addCopy(name, tag);
  for (const tag of taken) await cluster.removeCopy(name, tag);
  const now = cluster.find(name);
  if (now === undefined) throw databaseMissing(name);
  const isInOrder = now.registered.members.every((tag, position) => wanted[position] === tag);
  if (!isInOrder && added.length + taken.length === 0) await reorderCopies(cluster, now, wanted);
}

/** Returns the nodes of a sent topology, without duplicates. @throws EngineError invalid-format */
export function tagsOfTopology(sent: JsonObject): string[] {
  const lists = [sent["Members"], sent["Promotables"], sent["Rehabs"]];
  return [...new Set(lists.flatMap(tagsIn))];
}

/** @throws EngineError invalid-argument */
export function checkTopology(
  nodes: readonly { readonly tag: string }[],
  name: string,
  wanted: readonly string[],
): void {
  if (wanted.length === 0) {
    throw new EngineError(
      "invalid-argument",
      `The new topology of database ${name} has no nodes. To delete the database, use DELETE /admin/databases.`,
    );
  }
  const unknown = wanted.find((tag) => !nodes.some((one) => one.tag === tag));
  if (unknown === undefined) return;
  throw new EngineError(
    "invalid-argument",
    `Failed to modify database ${name} topology, because we don't have node ${unknown} (which is in the new topology) in the cluster.`,
  );
}

/** Returns the node that has to read the record of a database, or null for this one. */
export function recordElsewhere(
  exchange: Exchange,
  { cluster }: ServerServices,
  name: string,
): string | null {
  const state = cluster?.find(name);
  if (cluster === undefined || state === undefined || state.role !== null) return null;
  const { registered, leaderTag } = state;
  const tag = leaderTag ?? registered.members.find((one) => isHeard(cluster, one));
  if (tag !== undefined && tag !== cluster.tag && !isForwarded(exchange)) return tag;
  throw new EngineError(
    "not-leader",
    `Node ${cluster.tag} has no copy of the database '${registered.name}', and none of the nodes with a copy (${registered.members.join(", ")}) is available at the moment. If they are lost, delete the database with DELETE /admin/databases and all of them in FromNodes.`,
  );
}

/** The list of databases of a route. */
interface DatabaseList {
  /** Requested databases that the caller may see. */
  readonly names: readonly string[];
  /** Path of the route, without parameters. */
  readonly path: string;
  readonly describe: (database: Database) => JsonObject;
  /** Returns the row of a database that no responding node describes. */
  readonly outline: (cluster: ClusterView, state: ReplicaState) => JsonObject;
  /** Returns the row of a database that cannot be opened. */
  readonly broken: (name: string, reason: string) => JsonObject;
}

/**
 * Returns the rows of a list, in the order of its names. A database without a copy here is described by a node that has
 * one, or, if none responds, by its registration.
 */
export async function listRows(
  exchange: Exchange,
  server: ServerServices,
  { names, path, describe: describeOpen, outline, broken }: DatabaseList,
): Promise<JsonObject[]> {
  const { cluster, databases } = server;
  const found = await Promise.all(names.map((name) => ownCopy(databases, name)));
  const describe = (one: Database | Broken) =>
    "reason" in one ? broken(one.name, one.reason) : describeOpen(one);
  const missing = names.flatMap((name, position) => {
    const state = found[position] === undefined ? cluster?.find(name) : undefined;
    return state === undefined ? [] : [state];
  });
  if (cluster === undefined || missing.length === 0) {
    return found.flatMap((database) => (database === undefined ? [] : [describe(database)]));
  }
  const elsewhere = await rowsElsewhere(exchange, server, path, missing);
  return names.flatMap((name, position) => {
    const database = found[position];
    if (database !== undefined) return [describe(database)];
    const row = elsewhere.get(name);
    if (row !== undefined) return [row];
    const state = cluster.find(name);
    return state === undefined ? [] : [outline(cluster, state)];
  });
}

/** A database that cannot be opened. It is listed as such. */
export interface Broken {
  readonly name: string;
  readonly reason: string;
}

/** Returns undefined if this node has no copy, or the copy is still empty. */
export async function ownCopy(
  databases: ServerServices["databases"],
  name: string,
): Promise<Database | Broken | undefined> {
  try {
    return await databases.find(name);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return error.code === "not-leader" ? undefined : { name, reason: error.message };
  }
}

/** Returns the rows of databases on other nodes, by name, without those of nodes that do not respond. */
async function rowsElsewhere(
  exchange: Exchange,
  server: ServerServices,
  path: string,
  states: readonly ReplicaState[],
): Promise<Map<string, JsonObject>> {
  const byNode = new Map<string, Set<string>>();
  for (const { leaderTag, registered } of states) {
    const isOther = (tag: string | null) =>
      tag !== null && tag !== server.cluster?.tag && isHeardBy(server, tag);
    const tag = [leaderTag, ...registered.members].find(isOther) ?? null;
    if (tag === null) continue;
    byNode.set(tag, (byNode.get(tag) ?? new Set()).add(registered.name));
  }
  const rows = new Map<string, JsonObject>();
  const ask = async ([tag, wanted]: [string, Set<string>]) => {
    for (const row of await listOf(exchange, server, tag, path)) {
      const name = row["Name"];
      if (typeof name === "string" && wanted.has(name)) rows.set(name, row);
    }
  };
  await Promise.all([...byNode].map(ask));
  return rows;
}

function isHeardBy({ cluster }: ServerServices, tag: string): boolean {
  return cluster !== undefined && isHeard(cluster, tag);
}

/** Returns the list of another node, of its own copies only, or nothing if it does not respond. */
async function listOf(
  exchange: Exchange,
  server: ServerServices,
  tag: string,
  path: string,
): Promise<JsonObject[]> {
  try {
    const { status, body } = await callPeer(exchange, server, tag, { method: "GET", target: path });
    if (status !== 200) return [];
    const { Databases } = JSON.parse(body.toString()) as { readonly Databases?: JsonObject[] };
    return Databases ?? [];
  } catch (error) {
    if (error instanceof EngineError && error.code === "node-unreachable") return [];
    throw error;
  }
}
