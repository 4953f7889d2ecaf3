/**
 * Administration of whole databases besides creation and deletion: the order of their nodes (there is one), conflict
 * rules, compaction. Shapes and texts are those of RavenDB 7.2.7.
 */

import { EngineError } from "../../engine/base/errors.ts";
import type { Database } from "../../engine/engine.ts";
import { humaneSize } from "../http/dates.ts";
import type { Exchange } from "../http/exchange.ts";
import { jsonBody } from "../http/json-body.ts";
import { databaseMissing } from "../http/request-error.ts";
import type { Context, Route } from "../routing/route.ts";
import type { ServerServices } from "../routing/services.ts";

const admin = "/admin/databases";

function route(method: "PUT" | "POST", path: string, handle: Handle): Route {
  return { kind: "server", method, path, access: "operator", handle };
}

/** Those that change the record of the database with the name in the query. */
const ofLeader = { copies: "leader", about: "name" } as const;

type Handle = (exchange: Exchange, context: Context) => Promise<void>;

export const databaseMaintenanceRoutes: readonly Route[] = [
  route("POST", `${admin}/reorder`, reorder),
  route("POST", `${admin}/promote`, promote),
  route("PUT", `${admin}/node`, addNode),
  { ...route("POST", `${admin}/unused-ids`, setUnusedIds), ...ofLeader },
  { ...route("POST", "/admin/replication/conflicts/solver", setConflictSolver), ...ofLeader },
  route("POST", "/admin/compact", compact),
];

/** POST /admin/databases/reorder?name `{"MembersOrder":["A"]}`: 204 */
async function reorder(exchange: Exchange, { server }: Context): Promise<void> {
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

/** POST /admin/databases/promote?name&node: a no-op, since no node awaits promotion */
async function promote(exchange: Exchange, { server }: Context): Promise<void> {
  const database = await named(exchange, server);
  exchange.query.required("node");
  const index = await server.commandIndex.next();
  exchange.replyJson(200, { Name: database.name, RaftCommandIndex: index });
}

/** PUT /admin/databases/node?name[&node]: fails, since there is no other node. @throws EngineError invalid-operation */
async function addNode(exchange: Exchange, { server }: Context): Promise<void> {
  const database = await named(exchange, server);
  const node = exchange.query.get("node") || null;
  throw new EngineError("invalid-operation", refusalOf(database, node));
}

function refusalOf({ name, nodeTag }: Database, node: string | null): string {
  if (node === null) return `Database ${name} already exists on all the nodes of the cluster`;
  if (node === nodeTag) {
    return `Can't add node ${node} to ${name} topology because it is already part of it`;
  }
  return `Can't add node ${node} to database '${name}' topology, because node ${node} (which is in the new topology) is not part of the cluster`;
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

/** POST /admin/compact `{"DatabaseName","Documents","Indexes"}`: starts an operation of the server */
async function compact(exchange: Exchange, { server }: Context): Promise<void> {
  const { DatabaseName, Documents } = await jsonBody(exchange);
  if (typeof DatabaseName !== "string") {
    throw new EngineError("invalid-argument", "'DatabaseName' is mandatory, but wasn't specified.");
  }
  const database = await server.databases.find(DatabaseName);
  if (database === undefined) {
    throw new EngineError(
      "invalid-operation",
      `Cannot compact database ${DatabaseName}, it doesn't exist.`,
    );
  }
  const what = `Compacting database: ${database.name}`;
  const started = await server.operations.start("DatabaseCompact", what, async () => {
    const before = database.sizeBytes;
    // Indexes are in memory only.
    if (Documents !== false) await database.compact();
    return {
      Message: `Database '${database.name}' was compacted`,
      SizeBeforeCompactionInMb: megabytes(before),
      SizeAfterCompactionInMb: megabytes(database.sizeBytes),
      HumaneSize: humaneSize(database.sizeBytes),
    };
  });
  exchange.replyJson(200, { OperationId: started.id, OperationNodeTag: database.nodeTag });
}

function megabytes(bytes: number): number {
  return Math.round(bytes / 1024 / 1024);
}

/** The database named by the parameter `name`. @throws RequestError when it does not exist */
async function named({ query }: Exchange, server: ServerServices): Promise<Database> {
  const name = query.required("name");
  const database = await server.databases.find(name);
  if (database === undefined) throw databaseMissing(name);
  return database;
}
