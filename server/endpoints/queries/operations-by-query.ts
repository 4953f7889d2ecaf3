/**
 * Patching and deleting by query, and dry runs of a patch. Replies are those of RavenDB 7.2.7, which has no dry run over
 * many documents and no `undo`.
 */

import {
  EngineError,
  type SetOperationOptions,
  type StartedOperation,
} from "../../../engine/engine.ts";
import type { Exchange } from "../../http/exchange.ts";
import { jsonBody } from "../../http/json-body.ts";
import { jsonContentType } from "../../http/response.ts";
import { type QueryRequest, queryOfBody, wrappedQueryOfBody } from "../../replies/query-request.ts";
import type { DatabaseContext, Route } from "../../routing/route.ts";
import { refuseLifting } from "../../routing/script-rights.ts";
import { callerName } from "../../security/caller-name.ts";

const path = "/databases/:database/queries";

const liftsParameter = "ignoreMaxStepsForScript";
/** Documents that a dry run shows before and after. */
const samplesDefault = 5;
const samplesMax = 100;

const timed = { kind: "database", isTimed: true } as const;

export const setOperationRoutes: readonly Route[] = [
  { ...timed, method: "PATCH", path, access: "write", handle: patchByQuery },
  { ...timed, method: "DELETE", path, access: "write", handle: deleteByQuery },
  {
    ...timed,
    method: "DELETE",
    path: "/databases/:database/studio/collections/docs",
    access: "write",
    handle: deleteCollection,
  },
  { kind: "database", method: "PATCH", path: `${path}/test`, access: "write", handle: tryPatch },
  { ...timed, method: "PATCH", path: `${path}/dry-run`, access: "write", handle: dryRun },
];

/** PATCH queries, body `{"Query":{"Query","QueryParameters"}}`: starts an operation */
async function patchByQuery(exchange: Exchange, context: DatabaseContext): Promise<void> {
  const { database } = context;
  if (exchange.query.bool(liftsParameter, false)) refuseLifting(exchange, liftsParameter);
  const options = await optionsOf(exchange, context);
  const request = await wrappedQueryOfBody(exchange);
  exchange.queryText = request.text;
  const { parametersText = null } = request.options;
  const started = await database.setOperations.patch(request.text, { ...options, parametersText });
  reply(exchange, context, request, started);
}

/** DELETE queries, body as for a query: starts an operation */
async function deleteByQuery(exchange: Exchange, context: DatabaseContext): Promise<void> {
  const options = await optionsOf(exchange, context);
  await deleteFound(exchange, context, options, await queryOfBody(exchange));
}

async function deleteFound(
  exchange: Exchange,
  context: DatabaseContext,
  options: Omit<SetOperationOptions, "parametersText">,
  request: QueryRequest,
): Promise<void> {
  exchange.queryText = request.text;
  const { parametersText = null } = request.options;
  const all = { ...options, parametersText };
  const started = await context.database.setOperations.delete(request.text, all);
  reply(exchange, context, request, started);
}

/** Names that RavenDB's Studio has for the documents of all collections. */
const allCollections = new Set(["@all_docs", "*"]);

/**
 * DELETE studio/collections/docs?name=…, body `{"ExcludeIds":[]}`: starts an operation that deletes all documents of a
 * collection but those, as RavenDB's Studio does for "select all"
 */
async function deleteCollection(exchange: Exchange, context: DatabaseContext): Promise<void> {
  const name = exchange.query.required("name");
  const options = await optionsOf(exchange, context);
  const { ExcludeIds: kept = [] } = await jsonBody(exchange);
  if (!Array.isArray(kept) || !kept.every((id) => typeof id === "string"))
    throw new EngineError("invalid-argument", "'ExcludeIds' must be a list of ids.");
  const escaped = name.replaceAll("\\", "\\\\").replaceAll("'", "\\'");
  const from = allCollections.has(name) ? "from @all_docs" : `from '${escaped}'`;
  const text = kept.length === 0 ? from : `${from} where true and not id() in ($kept)`;
  const parametersText = JSON.stringify({ kept });
  await deleteFound(exchange, context, options, { text, options: { parametersText } });
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

/**
 * PATCH queries/dry-run?sample=5&max=…, body as of PATCH queries: starts an operation that runs the patch over all that
 * is found, or the first `max`, and stores nothing; its result counts what would change
 */
async function dryRun(exchange: Exchange, context: DatabaseContext): Promise<void> {
  const { database } = context;
  const { query } = exchange;
  if (query.bool(liftsParameter, false)) refuseLifting(exchange, liftsParameter);
  const samples = query.int("sample", samplesDefault);
  if (samples < 0 || samples > samplesMax) {
    throw new EngineError("invalid-argument", `'sample' must be from 0 to ${samplesMax}.`);
  }
  const most = query.long("max", undefined);
  if (most !== undefined && most < 1) {
    throw new EngineError("invalid-argument", "'max' must be at least 1; leave it out for all.");
  }
  const { hasDetails, keepsUndo, ...options } = await optionsOf(exchange, context);
  const request = await wrappedQueryOfBody(exchange);
  exchange.queryText = request.text;
  const { parametersText = null } = request.options;
  const dryOptions = { ...options, parametersText, samples, most };
  const started = await database.setOperations.dryRun(request.text, dryOptions);
  reply(exchange, context, request, started);
}

/** A start that fails uses up an operation id, as in RavenDB 7.2.7. @throws EngineError invalid-argument */
async function optionsOf(
  exchange: Exchange,
  { database, server }: DatabaseContext,
): Promise<Omit<SetOperationOptions, "parametersText">> {
  const { query } = exchange;
  return {
    operationId: await database.operations.nextId(),
    startedBy: callerName(server, exchange),
    keepsUndo: query.bool("undo", false),
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
