/** Operations of a database and of the server: new ids, states, the list, cancellation. */

import { EngineError } from "../../engine/base/errors.ts";
import type { Operations } from "../../engine/engine.ts";
import {
  operationReply,
  operationStateReply,
  operationText,
} from "../databases/operation-reply.ts";
import type { Exchange } from "../http/exchange.ts";
import { jsonContentType } from "../http/response.ts";
import type { Context, DatabaseContext, Route } from "../routing/route.ts";

const path = "/databases/:database/operations";

export const operationRoutes: readonly Route[] = [
  { kind: "database", method: "GET", path, access: "read", inPackage: true, handle: getOperations },
  {
    kind: "database",
    method: "GET",
    path: `${path}/next-operation-id`,
    access: "read",
    handle: getNextId,
  },
  { kind: "database", method: "GET", path: `${path}/state`, access: "read", handle: getState },
  { kind: "database", method: "POST", path: `${path}/kill`, access: "write", handle: postKill },
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

/** GET operations/state?id=…: the progress or the result of an operation; 404 when it is not known */
function getState(exchange: Exchange, { database }: DatabaseContext): void {
  replyState(exchange, database.operations);
}

/** POST operations/kill?id=…: 204; the operation ends soon after */
function postKill(exchange: Exchange, { database }: DatabaseContext): void {
  database.operations.kill(requiredId(exchange));
  exchange.reply(204);
}

/** GET /operations/state?id=…: as of a database, of an operation of the server */
function getServerState(exchange: Exchange, { server }: Context): void {
  replyState(exchange, server.operations);
}

/** GET /admin/operations/next-operation-id: `{"Id":n}` */
async function getServerNextId(exchange: Exchange, { server }: Context): Promise<void> {
  exchange.replyJson(200, { Id: await server.operations.nextId() });
}

/** POST /admin/operations/kill?id=…: 204; the operation of the server ends soon after */
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
