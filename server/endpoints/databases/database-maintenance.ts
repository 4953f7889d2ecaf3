/**
 * Administration of whole databases besides creation and deletion: nodes and their order, conflict rules, compaction. Shapes
 * and texts are those of RavenDB 7.2.7.
 */

import { EngineError } from "../../../engine/base/errors.ts";
import type { Database } from "../../../engine/engine.ts";
import { memberOf } from "../../cluster/topology.ts";
import { databaseTopology } from "../../databases/database-record.ts";
import { humaneSize } from "../../http/dates.ts";
import type { Exchange } from "../../http/exchange.ts";
import { jsonBody } from "../../http/json-body.ts";
import { databaseMissing } from "../../http/request-error.ts";
import type { Context, Route } from "../../routing/route.ts";
import type { ServerServices } from "../../routing/services.ts";
import {
  addCopyTo,
  checkTopology,
  modifyCopies,
  recordElsewhere,
  reorderCopies,
  tagsIn,
  tagsOfTopology,
} from "../cluster/cluster-databases.ts";
import { forwardToPeer } from "../cluster/peer-calls.ts";
import { recordNodes } from "./database-nodes.ts";

const admin = "/admin/databases";

function route(method: "PUT" | "POST", path: string, handle: Handle): Route {
  return { kind: "server", method, path, access: "operator", handle };
}

/** Routes that change the record of the database named in the query. */
/** Served by a node with a copy, because the reply contains data of the record. */
const ofCopy = { copies: "any", about: "name" } as const;
const ofLeader = { copies: "leader", about: "name" } as const;

type Handle = (exchange: Exchange, context: Context) => Promise<void>;

export const databaseMaintenanceRoutes: readonly Route[] = [
  route("POST", `${admin}/reorder`, reorder),
  route("POST", `${admin}/promote`, promote),
  { ...route("PUT", `${admin}/node`, addNode), ...ofCopy },
  route("POST", `${admin}/topology/modify`, modifyTopology),
  route("POST", `${admin}/dynamic-node-distribution`, distribute),
  { ...route("POST", `${admin}/unused-ids`, setUnusedIds), ...ofLeader },
  { ...route("POST", "/admin/replication/conflicts/solver", setConflictSolver), ...ofLeader },
  route("POST", "/admin/compact", compact),
];

/** POST /admin/databases/reorder?name `{"MembersOrder":["A"]}`: the first one leads; 204 */
async function reorder(exchange: Exchange, { server }: Context): Promise<void> {
  const { cluster } = server;
  const state = cluster?.find(exchange.query.required("name"));
  if (cluster !== undefined && state !== undefined) {
    const { MembersOrder } = await jsonBody(exchange);
    await reorderCopies(cluster, state, tagsIn(MembersOrder));
    exchange.reply(204);
    return;
  }
  const { nodeTag } = await named(exchange, server);
  const { MembersOrder } = await jsonBody(exchange);
  if (!Array.isArray(MembersOrder) || MembersOrder.length !== 1 || MembersOrder[0] !== nodeTag) {
    throw new EngineError(
      "invalid-argument",
      "The reordered list doesn't correspond to the existing nodes of the database group.",
    );
  }
  exchange.reply(204);
}

/** POST /admin/databases/promote?name&node: no effect, because a copy is a member as soon as it is up to date */
async function promote(exchange: Exchange, { server }: Context): Promise<void> {
  const name = exchange.query.required("name");
  const state = server.cluster?.find(name);
  const known = state === undefined ? (await named(exchange, server)).name : state.registered.name;
  exchange.query.required("node");
  const index = await server.commandIndex.next();
  exchange.replyJson(200, { Name: known, RaftCommandIndex: index });
}

/** PUT /admin/databases/node?name[&node]: adds a copy on the given node, or on any node without one; refused on a single node */
async function addNode(exchange: Exchange, { server }: Context): Promise<void> {
  const { cluster } = server;
  const node = exchange.query.get("node") || undefined;
  const name = exchange.query.required("name");
  const state = cluster?.find(name);
  if (cluster === undefined || state === undefined) {
    const database = await named(exchange, server);
    throw new EngineError("invalid-operation", refusalOf(database, node ?? null));
  }
  const before = new Set(state.registered.members);
  await addCopyTo(cluster, state, node);
  const database = await named(exchange, server);
  const added = cluster.find(name)?.registered.members.filter((tag) => !before.has(tag)) ?? [];
  exchange.replyJson(200, {
    RaftCommandIndex: await server.commandIndex.next(),
    Name: database.name,
    Topology: databaseTopology(database, false, recordNodes(server, database)),
    NodesAddedTo: added.map((tag) => memberOf(cluster, tag)?.url ?? null),
  });
}

function refusalOf({ name, nodeTag }: Database, node: string | null): string {
  if (node === null) return `Database ${name} already exists on all the nodes of the cluster`;
  if (node === nodeTag) {
    return `Can't add node ${node} to ${name} topology because it is already part of it`;
  }
  return `Can't add node ${node} to database '${name}' topology, because node ${node} (which is in the new topology) is not part of the cluster`;
}

/** POST /admin/databases/topology/modify?name `{"Members":["A","B"]}`: adds and removes copies until these nodes have them */
async function modifyTopology(exchange: Exchange, { server }: Context): Promise<void> {
  const { cluster } = server;
  const name = exchange.query.required("name");
  const wanted = tagsOfTopology(await jsonBody(exchange));
  const state = cluster?.find(name);
  if (cluster !== undefined && state !== undefined) await modifyCopies(cluster, state, wanted);
  else {
    const database = await named(exchange, server);
    checkTopology([{ tag: database.nodeTag }], database.name, wanted);
  }
  exchange.replyJson(200, { RaftCommandIndex: await server.commandIndex.next() });
}

/** POST /admin/databases/dynamic-node-distribution?name&enabled=false: 204; true is refused, because copies are moved only on request */
async function distribute(exchange: Exchange, { server }: Context): Promise<void> {
  const { query } = exchange;
  // RavenDB 7.2.7 reads `enable`, its clients send `enabled`.
  const parameter = query.has("enabled") ? "enabled" : "enable";
  query.required(parameter);
  const name = query.required("name");
  if (server.cluster?.find(name) === undefined) await named(exchange, server);
  if (query.bool(parameter, false)) {
    throw new EngineError(
      "not-supported",
      "Copies of databases are moved only on request: PUT /admin/databases/node adds one, DELETE /admin/databases with FromNodes removes one.",
    );
  }
  exchange.reply(204);
}

/** POST /admin/databases/unused-ids?name `{"DatabaseIds":[…]}`: 204 */
async function setUnusedIds(exchange: Exchange, { server }: Context): Promise<void> {
  const database = await named(exchange, server);
  const { DatabaseIds } = await jsonBody(exchange);
  const ids = Array.isArray(DatabaseIds) ? DatabaseIds.map(String) : [];
  const index = await server.commandIndex.next();
  await database.changeSettings((record) => ({
    ...record,
    UnusedDatabaseIds: ids,
    ChangedIndex: index,
  }));
  exchange.reply(204);
}

/** POST /admin/replication/conflicts/solver?name `{"ResolveToLatest","ResolveByCollection"}`: 201, stored */
async function setConflictSolver(exchange: Exchange, { server }: Context): Promise<void> {
  const database = await named(exchange, server);
  const sent = await jsonBody(exchange);
  const solver = {
    ResolveToLatest: sent["ResolveToLatest"] === true,
    ResolveByCollection: sent["ResolveByCollection"] ?? {},
  };
  const index = await server.commandIndex.next();
  await database.changeSettings((record) => ({
    ...record,
    ConflictSolverConfig: solver,
    ChangedIndex: index,
  }));
  exchange.replyJson(201, {
    RaftCommandIndex: index,
    Key: database.name,
    ConflictSolverConfig: solver,
  });
}

/** POST /admin/compact `{"DatabaseName","Documents","Indexes"}`: compacts this node's copy; starts an operation of the server */
async function compact(exchange: Exchange, { server }: Context): Promise<void> {
  const body = await jsonBody(exchange);
  const { DatabaseName, Documents, Indexes } = body;
  if (typeof DatabaseName !== "string" || DatabaseName === "") {
    throw new EngineError(
      "invalid-operation",
      "DatabaseName is a required field when compacting a database.",
    );
  }
  const elsewhere = recordElsewhere(exchange, server, DatabaseName);
  if (elsewhere !== null) {
    await forwardToPeer(exchange, server, elsewhere, body);
    return;
  }
  const database = await server.databases.find(DatabaseName);
  if (database === undefined) {
    throw new EngineError(
      "invalid-operation",
      `Cannot compact database ${DatabaseName}, it doesn't exist.`,
    );
  }
  if (Documents === false && (!Array.isArray(Indexes) || Indexes.length === 0)) {
    throw new EngineError(
      "invalid-operation",
      "Documents is false in compact settings and no indexes were supplied. Nothing to compact.",
    );
  }
  const what = `Compacting database: ${database.name}`;
  const started = await server.operations.start("DatabaseCompact", what, async () => {
    const before = database.sizeBytes;
    // Indexes are in memory only.
    if (Documents !== false) {
      // As in RavenDB 7.2.7: there are no files to compact.
      if (server.config.runInMemory) throw inMemory(database);
      await database.compact();
    }
    return {
      Message: `Database '${database.name}' was compacted`,
      SizeBeforeCompactionInMb: megabytes(before),
      SizeAfterCompactionInMb: megabytes(database.sizeBytes),
      HumaneSize: humaneSize(database.sizeBytes),
    };
  });
  exchange.replyJson(200, { OperationId: started.id, OperationNodeTag: database.nodeTag });
}

function inMemory({ name }: Database): EngineError {
  return new EngineError(
    "invalid-operation",
    `Failed to execute compaction for ${name}: the server runs in memory, and has no files to compact.`,
  );
}

function megabytes(bytes: number): number {
  return Math.round(bytes / 1024 / 1024);
}

/** Returns the database named by the parameter `name`. @throws RequestError if it does not exist */
async function named({ query }: Exchange, server: ServerServices): Promise<Database> {
  const name = query.required("name");
  const database = await server.databases.find(name);
  if (database === undefined) throw databaseMissing(name);
  return database;
}
