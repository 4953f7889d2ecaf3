/**
 * Databases of a cluster: where they are created, and what of the routes in `databases.ts` another node has to do.
 *
 * Invariants:
 * - A database is created by a node that will have a copy, and its record is changed by the node that leads it.
 * - Lists have every database of the cluster that the caller may see, whether this node has a copy or not.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Database, EngineError } from "../../engine/engine.ts";
import type { ClusterDatabase, ClusterView, ReplicaState } from "../cluster/cluster-view.ts";
import { databaseKey } from "../cluster/registry.ts";
import {
  copiesDefault,
  isHeard,
  lossBy,
  memberOf,
  placesFor,
  placesForNew,
} from "../cluster/topology.ts";
import type { Exchange } from "../http/exchange.ts";
import type { JsonObject } from "../http/json-body.ts";
import { databaseMissing, RequestError } from "../http/request-error.ts";
import type { ServerServices } from "../routing/services.ts";
import { callPeer, forwardToPeer, isForwarded } from "./peer-calls.ts";

/** Names for a list: of all databases, or, when another node asks, of those that this one has copies of. */
export function namesFor(exchange: Exchange, { cluster, databases }: ServerServices): string[] {
  const names = [...databases.names()];
  if (!isForwarded(exchange)) return names;
  return names.filter((name) => cluster?.find(name)?.role !== null);
}

/** Milliseconds that a request waits until this node knows the members of its cluster, and between two looks. */
const membersWaitMs = 5_000;
const membersLookMs = 50;

/** Of a new database. */
export interface NewNodes {
  readonly members: readonly string[];
  /** The first of these that answers is to create it, and then leads it. */
  readonly creators: readonly string[];
}

/**
 * The nodes that a new database will be on: those that its record names, or so many as are asked for.
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

/** A node that has just started learns the members a little later. @throws EngineError node-unreachable */
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

/** Tags in a list of a topology. @throws EngineError invalid-format */
export function tagsIn(list: unknown): string[] {
  if (list === undefined || list === null) return [];
  if (Array.isArray(list) && list.every((tag) => typeof tag === "string")) return list;
  throw new EngineError(
    "invalid-format",
    `The nodes of a topology are a list of tags, as ["A","B"], and this is ${JSON.stringify(list)}.`,
  );
}

function objectOf(value: unknown): JsonObject {
  return typeof value === "object" && value !== null ? (value as JsonObject) : {};
}

/**
 * Lets the first of `creators` that answers create the database. @returns false: that is this node
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
 * Deletes a database, or copies of it. @returns the nodes that have not confirmed it; null: there was nothing to delete
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

/** @throws EngineError invalid-operation when what was written could be lost */
function checkKept(cluster: ClusterView, state: ReplicaState, taken: readonly string[]): void {
  const loss = lossBy(cluster, state, taken);
  if (loss === null) return;
  throw new EngineError(
    "invalid-operation",
    `${loss} Add a copy elsewhere, wait until GET /topology?name=${encodeURIComponent(state.registered.name)} tells that it is a Member, and try again; or delete the database.`,
  );
}

/**
 * Is every node of a database named, and none heard, so that nobody can say whether its record forbids the deletion? Who
 * names them all knows that they are lost.
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

/** Gives a database a copy on the node of that tag; undefined: on one that has none. @throws EngineError invalid-operation */
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

/** Lets the first node of `order` lead, and clients try the others in this order. @throws EngineError invalid-argument, … */
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
      `The nodes of database '${name}' were changed at the same time: they are ${registered.members.join(", ")} now.`,
    );
  }
  const index = Math.max(registered.index, cluster.index) + 1;
  const value = JSON.stringify({ ...registered, members: order, index });
  await cluster.change([{ key, expected: text, value }]);
}

/** Makes the nodes of a database those of a topology. @throws EngineError invalid-argument, invalid-operation */
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

/** The nodes of a topology that is sent, each once. @throws EngineError invalid-format */
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

/** The node that is to look at the record of a database: null is this one. */
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
    `Node ${cluster.tag} has no copy of the database '${registered.name}', and none of the nodes that have (${registered.members.join(", ")}) is heard at the moment. If they are lost, and the database with them, it is deleted by DELETE /admin/databases with all of them in FromNodes.`,
  );
}

/** A list of databases, as a route makes it. */
export interface DatabaseList {
  /** Those that are asked for and may be seen. */
  readonly names: readonly string[];
  /** The route, without parameters. */
  readonly path: string;
  readonly describe: (database: Database) => JsonObject;
  /** What can be said of a database that none of its nodes tells of. */
  readonly outline: (cluster: ClusterView, state: ReplicaState) => JsonObject;
  /** What can be said of one that cannot be opened. */
  readonly broken: (name: string, reason: string) => JsonObject;
}

/**
 * The rows of a list, in the order of its names. A database without a copy here is described by a node that has one; where
 * none answers, by what is registered.
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

/** A database that cannot be opened: it is listed as that, and the others as ever. */
export interface Broken {
  readonly name: string;
  readonly reason: string;
}

/** Undefined: there is none, or it has nothing of the database yet. */
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

/** Rows by the names of databases, of nodes that have a copy; those of nodes that do not answer are missing. */
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

/** The list of another node, of its own copies only; empty when it does not answer. */
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
