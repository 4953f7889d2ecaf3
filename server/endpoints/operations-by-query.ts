/** Patching and deleting by query, and dry runs of a patch. Replies are those of RavenDB 7.2.7. */

import type { Database, SetOperationOptions, StartedOperation } from "../../engine/engine.ts";
import type { Exchange } from "../http/exchange.ts";
import { jsonContentType } from "../http/response.ts";
import { type QueryRequest, queryOfBody, wrappedQueryOfBody } from "../replies/query-request.ts";
import type { DatabaseContext, Route } from "../routing/route.ts";
import { refuseLifting } from "../routing/script-rights.ts";

const path = "/databases/:database/queries";

const liftsParameter = "ignoreMaxStepsForScript";

const timed = { kind: "database", isTimed: true } as const;

export const setOperationRoutes: readonly Route[] = [
  { ...timed, method: "PATCH", path, access: "write", handle: patchByQuery },
  { ...timed, method: "DELETE", path, access: "write", handle: deleteByQuery },
  { kind: "database", method: "PATCH", path: `${path}/test`, access: "write", handle: tryPatch },
];

/** PATCH queries, body `{"Query":{"Query","QueryParameters"}}`: starts an operation */
async function patchByQuery(exchange: Exchange, context: DatabaseContext): Promise<void> {
  const { database } = context;
  if (exchange.query.bool(liftsParameter, false)) refuseLifting(exchange, liftsParameter);
  const options = await optionsOf(exchange, database);
  const request = await wrappedQueryOfBody(exchange);
  exchange.queryText = request.text;
  const { parametersText = null } = request.options;
  const started = await database.setOperations.patch(request.text, { ...options, parametersText });
  reply(exchange, context, request, started);
}

/** DELETE queries, body as for a query: starts an operation */
async function deleteByQuery(exchange: Exchange, context: DatabaseContext): Promise<void> {
  const { database } = context;
  const options = await optionsOf(exchange, database);
  const request = await queryOfBody(exchange);
  exchange.queryText = request.text;
  const { parametersText = null } = request.options;
  const started = await database.setOperations.delete(request.text, { ...options, parametersText });
  reply(exchange, context, request, started);
}

/** PATCH queries/test?id=…: a dry run of the patch on one document */
async function tryPatch(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const id = exchange.query.required("id");
  const { text, options } = await wrappedQueryOfBody(exchange);
  const { parametersText = null } = options;
  const watched = await database.setOperations.tryPatch(text, parametersText, id);
  if (watched === null) {
    exchange.reply(404, { "content-type": jsonContentType });
    return;
  }
  const { isPatched, modified, original, actions } = watched;
  const status = isPatched ? "Patched" : "NotModified";
  exchange.replyJson(
    200,
    `{"Status":"${status}","ModifiedDocument":${modified},"OriginalDocument":${original},` +
      `"Debug":{"Output":${JSON.stringify(actions.output)},"Actions":${actions.text}}}`,
  );
}

/** A start that fails uses up an operation id, as in RavenDB 7.2.7. @throws EngineError invalid-argument */
async function optionsOf(
  { query }: Exchange,
  database: Database,
): Promise<Omit<SetOperationOptions, "parametersText">> {
  return {
    operationId: await database.operations.nextId(),
    allowsStale: query.bool("allowStale", false),
    staleTimeoutMs: query.timeSpanMs("staleTimeout", undefined),
    operationsPerSecondMax: query.int("maxOpsPerSec", undefined),
    hasDetails: query.bool("details", false),
    liftsLimits: query.bool(liftsParameter, false),
  };
}

/** Replies with the operation's number; its end is logged when it took long. */
function reply(
  exchange: Exchange,
  { database, server }: DatabaseContext,
  request: QueryRequest,
  { id, ended }: StartedOperation,
): void {
  exchange.replyJson(200, { OperationId: id, OperationNodeTag: database.nodeTag });
  const seen = server.requests.seen(exchange);
  void ended.then(({ info }) => server.requests.changed(seen, database, request, info));
}
