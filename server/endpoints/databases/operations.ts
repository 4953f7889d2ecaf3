/** Operations of a database and of the server: new ids, states, the list, cancellation. */

import { EngineError } from "../../../engine/base/errors.ts";
import type { Operations } from "../../../engine/engine.ts";
import {
  operationReply,
  operationStateReply,
  operationText,
} from "../../databases/operation-reply.ts";
import type { Exchange } from "../../http/exchange.ts";
import { jsonContentType } from "../../http/response.ts";
import type { Context, DatabaseContext, Route } from "../../routing/route.ts";
import { callerName } from "../../security/caller-name.ts";

const path = "/databases/:database/operations";

export const operationRoutes: readonly Route[] = [
  {
    kind: "database",
    method: "GET",
    path,
    access: "read",
    inPackage: true,
    copies: "leader",
    handle: getOperations,
  },
  {
    kind: "database",
    method: "GET",
    path: `${path}/next-operation-id`,
    access: "read",
    copies: "leader",
    handle: getNextId,
  },
  {
    kind: "database",
    method: "GET",
    path: `${path}/state`,
    access: "read",
    copies: "leader",
    handle: getState,
  },
  { kind: "database", method: "POST", path: `${path}/kill`, access: "write", handle: postKill },
  { kind: "database", method: "POST", path: `${path}/pause`, access: "write", handle: postPause },
  { kind: "database", method: "POST", path: `${path}/resume`, access: "write", handle: postResume },
  { kind: "database", method: "POST", path: `${path}/limit`, access: "write", handle: postLimit },
  { kind: "database", method: "POST", path: `${path}/undo`, access: "write", handle: postUndo },
  {
    kind: "server",
    method: "GET",
    path: "/operations/state",
    access: "valid-user",
    handle: getServerState,
  },
  {
    kind: "server",
    method: "GET",
    path: "/admin/operations",
    access: "operator",
    handle: getServerOperations,
  },
  {
    kind: "server",
    method: "GET",
    path: "/admin/operations/next-operation-id",
    access: "operator",
    handle: getServerNextId,
  },
  {
    kind: "server",
    method: "POST",
    path: "/admin/operations/kill",
    access: "operator",
    handle: postServerKill,
  },
];

/** GET operations?id=…: one, or all known ones, as `{"Results":[…]}` */
function getOperations(exchange: Exchange, { database }: DatabaseContext): void {
  const id = exchange.query.long("id", undefined);
  const known = database.operations.list();
  const wanted = id === undefined ? known : known.filter((info) => info.id === id);
  if (id !== undefined && wanted.length === 0) replyMissing(exchange);
  else exchange.replyJson(200, operationText({ Results: wanted.map(operationReply) }));
}

/** GET operations/next-operation-id: `{"Id":n,"NodeTag":"A"}` */
async function getNextId(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  exchange.replyJson(200, { Id: await database.operations.nextId(), NodeTag: database.nodeTag });
}

/** GET operations/state?id=…: the progress or the result of an operation; 404 if it is not known */
function getState(exchange: Exchange, { database }: DatabaseContext): void {
  replyState(exchange, database.operations);
}

/** POST operations/kill?id=…: 204; the operation stops soon after */
function postKill(exchange: Exchange, { database }: DatabaseContext): void {
  database.operations.kill(requiredId(exchange));
  exchange.reply(204);
}

/** POST operations/pause?id=…: 204; pauses a patch or deletion by query until it is resumed */
function postPause(exchange: Exchange, { database }: DatabaseContext): void {
  database.operations.pause(requiredId(exchange));
  exchange.reply(204);
}

/** POST operations/resume?id=…: 204; resumes an operation that was paused, or interrupted by a stop of the server */
async function postResume(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  await database.setOperations.resume(requiredId(exchange));
  exchange.reply(204);
}

/** POST operations/limit?id=…&maxOpsPerSec=…: 204; limits the operation to this number of changed documents per second; 0 or nothing removes the limit */
function postLimit(exchange: Exchange, { database }: DatabaseContext): void {
  const id = requiredId(exchange);
  const rate = exchange.query.int("maxOpsPerSec", 0);
  if (rate < 0) {
    throw new EngineError(
      "invalid-argument",
      "'maxOpsPerSec' must not be negative; 0 means no limit.",
    );
  }
  database.operations.limit(id, rate === 0 ? null : rate);
  exchange.reply(204);
}

/** POST operations/undo?id=…: `{"OperationId":n,"OperationNodeTag":"A"}`: starts to restore the documents that a patch or deletion by query with `undo=true` has changed */
async function postUndo(exchange: Exchange, { database, server }: DatabaseContext): Promise<void> {
  const id = requiredId(exchange);
  const started = await database.setOperations.undo(id, callerName(server, exchange));
  exchange.replyJson(200, { OperationId: started.id, OperationNodeTag: database.nodeTag });
}

/** GET /operations/state?id=…: the state of an operation of the server, as of a database's */
function getServerState(exchange: Exchange, { server }: Context): void {
  replyState(exchange, server.operations);
}

/** GET /admin/operations: the operations of the server itself, as `{"Results":[…]}`; not part of RavenDB's interface */
function getServerOperations(exchange: Exchange, { server }: Context): void {
  const known = server.operations.list();
  exchange.replyJson(200, operationText({ Results: known.map(operationReply) }));
}

/** GET /admin/operations/next-operation-id: `{"Id":n}` */
async function getServerNextId(exchange: Exchange, { server }: Context): Promise<void> {
  exchange.replyJson(200, { Id: await server.operations.nextId() });
}

/** POST /admin/operations/kill?id=…: 204; the operation of the server stops soon after */
function postServerKill(exchange: Exchange, { server }: Context): void {
  server.operations.kill(requiredId(exchange));
  exchange.reply(204);
}

function replyState(exchange: Exchange, operations: Operations): void {
  const info = operations.get(requiredId(exchange));
  if (info === undefined) replyMissing(exchange);
  else exchange.replyJson(200, operationText(operationStateReply(info)));
}

function replyMissing(exchange: Exchange): void {
  exchange.reply(404, { "content-type": jsonContentType });
}

/** @throws EngineError invalid-argument */
export function requiredId({ query }: Exchange): number {
  const id = query.long("id", undefined);
  if (id === undefined) {
    throw new EngineError(
      "invalid-argument",
      "Query string id is mandatory, but wasn't specified.",
    );
  }
  return id;
}
