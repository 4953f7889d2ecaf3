/** Queries, with a buffered or a streamed reply. Replies are those of RavenDB 7.2.7. */

import { EngineError } from "../../../engine/base/errors.ts";
import { andThen, runSteps, type Steps } from "../../../engine/base/scheduling/steps.ts";
import type { Database, QueryOptions, QueryOutcome } from "../../../engine/engine.ts";
import type { Exchange } from "../../http/exchange.ts";
import { jsonContentType } from "../../http/response.ts";
import { QueryReply, timeText } from "../../replies/query-reply.ts";
import {
  parseQueryBody,
  type QueryRequest,
  queryBody,
  queryOfAddress,
  queryOfBody,
} from "../../replies/query-request.ts";
import { streamQuery } from "../../replies/query-stream.ts";
import { bodyAt, cachedReply, cacheReply, requestKey } from "../../replies/reply-cache.ts";
import type { DatabaseContext, Route } from "../../routing/route.ts";

const path = "/databases/:database/queries";
const streamPath = "/databases/:database/streams/queries";

const timed = { kind: "database", isTimed: true } as const;

export const queryRoutes: readonly Route[] = [
  { ...timed, method: "GET", path, access: "read", handle: getQuery },
  { ...timed, method: "POST", path, access: "read", copies: "any", handle: postQuery },
  { ...timed, method: "GET", path: streamPath, access: "read", handle: getStream },
  { ...timed, method: "POST", path: streamPath, access: "read", copies: "any", handle: postStream },
];

/** GET queries?query=…: the results of a query in RQL */
function getQuery(exchange: Exchange, context: DatabaseContext): Promise<void> | void {
  const key = keyOf(exchange, context, noBody);
  if (answerKnown(exchange, context, key)) return;
  return runSteps(answer(exchange, context, queryOfAddress(exchange), key));
}

/** POST queries, body `{"Query","QueryParameters",…}`: the results of a query in RQL */
function postQuery(exchange: Exchange, context: DatabaseContext): Promise<void> | void {
  return andThen(queryBody(exchange), (body) => answerBody(exchange, context, body));
}

function answerBody(
  exchange: Exchange,
  context: DatabaseContext,
  body: Buffer,
): Promise<void> | void {
  // An empty one is a mistake; with the same address it stands for GET.
  const key = body.length === 0 ? null : keyOf(exchange, context, body);
  if (answerKnown(exchange, context, key)) return;
  return andThen(parseQueryBody(body), (request) =>
    runSteps(answer(exchange, context, request, key)),
  );
}

/** What a request is known by when it is repeated. A caller who has an answer himself asks whether it is still valid. */
function keyOf(exchange: Exchange, { database }: DatabaseContext, body: Buffer): string | null {
  const asks = exchange.header("if-none-match") !== undefined;
  return asks ? null : requestKey(database, exchange.query.text, body);
}

/** Replies with the answer of before, if that is still valid. @returns whether it is */
function answerKnown(
  exchange: Exchange,
  { database }: DatabaseContext,
  key: string | null,
): boolean {
  const known = key === null ? undefined : cachedReply(database, key);
  if (known === undefined) return false;
  exchange.queryText = known.query.query.text;
  exchange.replyJson(200, bodyAt(known, Date.now() * 1000), { etag: String(known.etag) });
  return true;
}

const noBody = Buffer.alloc(0);

/** GET streams/queries?query=…&format=…: results of any number, as JSON, JSON lines or CSV */
async function getStream(exchange: Exchange, context: DatabaseContext): Promise<void> {
  await stream(exchange, context, queryOfAddress(exchange));
}

/** POST streams/queries?format=…, body as for a query: results of any number, as JSON, JSON lines or CSV */
async function postStream(exchange: Exchange, context: DatabaseContext): Promise<void> {
  await stream(exchange, context, await queryOfBody(exchange));
}

async function stream(
  exchange: Exchange,
  { database, server }: DatabaseContext,
  request: QueryRequest,
): Promise<void> {
  exchange.queryText = request.text;
  const outcome = await streamQuery(exchange, database, request);
  if (outcome !== null) server.requests.queried(exchange, database, request, outcome);
}

/** Runs a query and replies with its results, or with the requested `debug` information. */
function* answer(
  exchange: Exchange,
  { database, server }: DatabaseContext,
  request: QueryRequest,
  key: string | null,
): Steps<void> {
  const { text, options } = request;
  const { query } = exchange;
  exchange.queryText = text;
  const debug = query.get("debug")?.toLowerCase() ?? "";
  const metadataOnly = query.bool("metadataOnly", false);
  if (debug !== "") {
    yield answerDebug(exchange, database, { text, options }, debug);
    return;
  }
  const tail = query.bool("includeServerSideQuery", false) ? serverSideMember(database, text) : "";
  const diagnostics = query.bool("diagnostics", false) ? ',"Diagnostics":[]' : "";
  const reply = new QueryReply(exchange, database);
  try {
    const seriesForm = query.bool("addTimeSeriesNames", false) ? "named" : "object";
    // Without a spread, which makes an object of a class of its own each time.
    const { parametersText, start, pageSize, waitForNonStale, timeoutMs } = options;
    const queryOptions: QueryOptions = {
      parametersText,
      start,
      pageSize,
      waitForNonStale,
      timeoutMs,
      metadataOnly,
      projectionBehavior: options.projectionBehavior,
      skipDuplicateChecking: options.skipDuplicateChecking,
      seriesForm,
      unlessEtag: sentEtag(exchange),
      signal: exchange,
      taker: reply,
    };
    const running = database.queries.run(text, queryOptions, reply);
    const outcome = running instanceof Promise ? ((yield running) as QueryOutcome | null) : running;
    if (outcome === null) exchange.reply(304, jsonHeaders);
    else {
      const ending = reply.end(outcome, tail + diagnostics);
      const body = ending instanceof Promise ? ((yield ending) as null) : ending;
      server.requests.queried(exchange, database, request, outcome);
      if (key !== null && body !== null) cacheReply(database, key, request, outcome, body);
    }
    reply.release();
  } catch (error) {
    reply.fail();
    if (exchange.isReplied || !isIndexMissing(error)) throw error;
    exchange.reply(404, jsonHeaders);
  }
}

const jsonHeaders = { "content-type": jsonContentType };

function isIndexMissing(error: unknown): boolean {
  return error instanceof EngineError && error.code === "index-missing";
}

/** The number in If-None-Match, bare or quoted. */
function sentEtag(exchange: Exchange): number | undefined {
  const header = exchange.header("if-none-match")?.trim();
  const match = header === undefined ? null : /^"?(-?\d{1,16})"?$/.exec(header);
  return match === null ? undefined : Number(match[1]);
}

function serverSideMember(database: Database, text: string): string {
  return `,"ServerSideQuery":${JSON.stringify(database.queries.canonicalText(text))}`;
}

/** debug=serverSideQuery | explain | entries | plan. @throws EngineError not-supported for others */
async function answerDebug(
  exchange: Exchange,
  database: Database,
  { text, options }: QueryRequest,
  debug: string,
): Promise<void> {
  switch (debug) {
    case "serversidequery": {
      const ServerSideQuery = database.queries.canonicalText(text);
      exchange.replyJson(200, { ServerSideQuery });
      return;
    }
    case "explain": {
      const { indexName, reasons } = await database.queries.explain(text, options);
      const Results = reasons.map(({ name, reason }) => ({ Index: name, Reason: reason }));
      exchange.replyJson(200, { IndexName: indexName, Results });
      return;
    }
    case "entries":
      await answerEntries(exchange, database, { text, options });
      return;
    case "plan":
      await answerPlan(exchange, database, { text, options });
      return;
    default:
      throw new EngineError("not-supported", `Not supported query debug operation: '${debug}'`);
  }
}

/** Replies with the index entries of the documents that a query matches. */
async function answerEntries(
  exchange: Exchange,
  database: Database,
  { text, options }: QueryRequest,
): Promise<void> {
  const found = await database.queries.entries(text, { ...options, signal: exchange });
  exchange.replyJson(
    200,
    `{"TotalResults":${found.totalResults},"SkippedResults":0,"DurationInMs":${found.durationMs},` +
      `"IndexName":${JSON.stringify(found.indexName)},"Results":[${found.entries.join(",")}],"Includes":{},` +
      `"IndexTimestamp":"${timeText(found.indexTimestamp)}",` +
      `"LastQueryTime":"${timeText(found.lastQueryTime)}",` +
      `"IsStale":${found.isStale},"ResultEtag":${found.resultEtag},"NodeTag":"${database.nodeTag}"}`,
    { etag: String(found.resultEtag) },
  );
}

/** Replies with how a query ran, and with the index that would be better. Not part of RavenDB's interface. */
async function answerPlan(
  exchange: Exchange,
  database: Database,
  { text, options }: QueryRequest,
): Promise<void> {
  const plan = await database.queries.explainRun(text, { ...options, signal: exchange });
  const { line, steps, betterIndex: better, outcome } = plan;
  exchange.replyJson(200, {
    IndexName: outcome.indexName,
    IsStale: outcome.isStale,
    TotalResults: outcome.totalResults,
    DurationInMs: outcome.durationMs,
    Plan: line,
    Steps: steps.map(({ kind, text: sentence, read, kept, ms, conditions }) => ({
      Step: kind,
      Text: sentence,
      Read: read,
      Kept: kept,
      DurationInMs: ms === null ? null : Math.round(ms * 1000) / 1000,
      Conditions: conditions.map((one) => ({ Condition: one.text, Found: one.found })),
    })),
    BetterIndex: better && {
      Text: better.text,
      Reads: better.reads,
      InsteadOf: better.insteadOf,
      Definition: { Name: better.name, Maps: [better.map], Type: "JavaScriptMap" },
      IsDeployed: better.isThere,
      Query: better.query,
    },
  });
}
