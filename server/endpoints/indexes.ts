/** Indexes of a database: definitions, statistics, terms, errors. Replies are those of RavenDB 7.2.7. */

import { EngineError } from "../../engine/base/errors.ts";
import { formatTimestamp } from "../../engine/base/timestamp.ts";
import { WorkBudget } from "../../engine/base/work-budget.ts";
import type { Database } from "../../engine/engine.ts";
import { nodeTag } from "../../engine/engine.ts";
import { definitionJson } from "../../engine/indexing/definition-json.ts";
import type { IndexError } from "../../engine/indexing/index-errors.ts";
import type { OpenIndex } from "../../engine/indexing/open-index.ts";
import { StaticIndex } from "../../engine/indexing/static-index.ts";
import { searchEngineOf } from "../../engine/querying/search-engine-setting.ts";
import { safeHash } from "../../engine/reading/query-rows.ts";
import { timeSpanText } from "../http/dates.ts";
import type { Exchange } from "../http/exchange.ts";
import { jsonBody } from "../http/json-body.ts";
import { jsonContentType } from "../http/response.ts";
import { progressRow, stalenessReasons, statisticsRow, statusOf } from "../replies/index-rows.ts";
import { timeText } from "../replies/query-reply.ts";
import type { DatabaseContext, Method, Route } from "../routing/route.ts";
import type { Access } from "../security/access.ts";

type Handle = (exchange: Exchange, context: DatabaseContext) => Promise<void> | void;

function route(method: Method, path: string, access: Access, handle: Handle): Route {
  return { kind: "database", method, path: `/databases/:database/${path}`, access, handle };
}

export const indexRoutes: readonly Route[] = [
  route("GET", "indexes", "read", getIndexes),
  route("GET", "indexes/stats", "read", getStatistics),
  route("GET", "indexes/status", "read", getStatus),
  route("GET", "indexes/staleness", "read", getStaleness),
  route("GET", "indexes/terms", "read", getTerms),
  route("GET", "indexes/errors", "read", getErrors),
  route("DELETE", "indexes/errors", "write", deleteErrors),
  route("GET", "indexes/progress", "read", getProgress),
  route("POST", "indexes/has-changed", "read", postHasChanged),
  route("GET", "indexes/performance", "read", getPerformance),
  route("GET", "indexes/total-time", "read", getTotalTime),
  route("GET", "indexes/debug", "read", getDebug),
  route("GET", "indexes/debug/metadata", "read", getMetadata),
  route("GET", "indexes/source", "read", getSource),
];

/** GET indexes[?name=…][&start][&pageSize][&namesOnly] */
function getIndexes(exchange: Exchange, { database }: DatabaseContext): void {
  const { query } = exchange;
  const name = query.get("name");
  if (name !== undefined && name !== "") {
    const index = database.queries.indexes.byName(name);
    if (index === undefined) exchange.reply(404, { "content-type": jsonContentType });
    else exchange.replyJson(200, { Results: [definitionJson(index)] });
    return;
  }
  const start = query.int("start", 0);
  const page = database.queries.indexes
    .all()
    .slice(start, start + query.int("pageSize", 2_147_483_647));
  if (query.bool("namesOnly", false)) {
    replyResults(
      exchange,
      database,
      page.map((index) => index.name),
    );
  } else exchange.replyJson(200, { Results: page.map(definitionJson) });
}

/** GET indexes/stats[?name=…] */
function getStatistics(exchange: Exchange, { database }: DatabaseContext): void {
  const name = exchange.query.get("name");
  const wanted = database.queries.indexes
    .all()
    .filter((index) => !name || index.name.toLowerCase() === name.toLowerCase());
  if (name && wanted.length === 0) exchange.reply(404, { "content-type": jsonContentType });
  else
    replyResults(
      exchange,
      database,
      wanted.map((index) => statisticsRow(index, database.settings)),
    );
}

/** GET indexes/status */
function getStatus(exchange: Exchange, { database }: DatabaseContext): void {
  const { queries } = database;
  exchange.replyJson(200, {
    Status: queries.administration.isPaused ? "Paused" : "Running",
    Indexes: queries.indexes.all().map((index) => ({ Name: index.name, Status: statusOf(index) })),
  });
}

/** GET indexes/staleness?name=… */
function getStaleness(exchange: Exchange, { database }: DatabaseContext): void {
  const index = namedIndex(exchange, database);
  const reasons = stalenessReasons(index);
  exchange.replyJson(200, { IsStale: index.isStale, StalenessReasons: reasons });
}

/** GET indexes/terms?name=…&field=…[&fromValue][&pageSize]: terms in order, after `fromValue` */
async function getTerms(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const { query } = exchange;
  const field = query.required("field");
  const index = namedIndex(exchange, database);
  const countMax = query.int("pageSize", 2_147_483_647);
  if (index.invalidity !== null) {
    const message = `Index '${index.name}' is marked as errored. ${index.invalidity}`;
    throw new EngineError("invalid-operation", message);
  }
  const after = query.get("fromValue") ?? "";
  const budget = new WorkBudget(exchange.signal);
  const reader = index.reader(budget);
  const found = await budget
    .run(reader.termsOf(field, after, countMax), () => reader.freeze())
    .finally(() => budget.close());
  const terms = found ?? listTerms(index, field, after);
  const etag = safeHash(index.lastEtag, index.index.store.liveCount);
  const reply = { IndexName: index.name, ResultEtag: etag, Terms: terms };
  exchange.replyJson(200, reply, { etag: String(etag) });
}

/** `<field>_IsArray` has one term while an entry holds an array in the field: clients detect arrays this way. */
function listTerms(index: OpenIndex, field: string, after: string): string[] {
  const suffix = "_IsArray";
  const isList = field.endsWith(suffix) && index.hasArrays(field.slice(0, -suffix.length));
  return isList && after < "true" ? ["true"] : [];
}

/** GET indexes/errors[?name=…]: automatic indexes have none, since they skip what they cannot index */
function getErrors(exchange: Exchange, { database }: DatabaseContext): void {
  const rows = indexesNamed(exchange, database).map((index) => ({
    Name: index.name,
    Errors: index instanceof StaticIndex ? index.errors.list.map(errorRow) : [],
  }));
  replyResults(exchange, database, rows);
}

function errorRow({ atMicros, document, action, message }: IndexError): object {
  return { Timestamp: timeText(atMicros), Document: document, Action: action, Error: message };
}

/** DELETE indexes/errors[?name=…]: 204 */
function deleteErrors(exchange: Exchange, { database }: DatabaseContext): void {
  for (const index of indexesNamed(exchange, database)) {
    if (index instanceof StaticIndex) index.errors.clear();
  }
  exchange.reply(204);
}

/** GET indexes/progress: the stale indexes */
function getProgress(exchange: Exchange, { database }: DatabaseContext): void {
  const stale = database.queries.indexes.all().filter((index) => index.isStale);
  exchange.replyJson(200, { Results: stale.map(progressRow) });
}

/** POST indexes/has-changed, body a definition: `{"Changed":…}`, true when no index has its name */
async function postHasChanged(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const body = await jsonBody(exchange);
  exchange.replyJson(200, { Changed: database.queries.administration.hasChanged(body) });
}

/** GET indexes/performance[?name=…]: empty, since no batch statistics are kept */
function getPerformance(exchange: Exchange, { database }: DatabaseContext): void {
  const names = exchange.query.all("name").map((name) => name.toLowerCase());
  const wanted = database.queries.indexes
    .all()
    .filter(({ name }) => names.length === 0 || names.includes(name.toLowerCase()));
  exchange.replyJson(200, {
    Results: wanted.map(({ name }) => ({ Name: name, Performance: [] })),
  });
}

/** GET indexes/total-time[?name=…] */
function getTotalTime(exchange: Exchange, { database }: DatabaseContext): void {
  const rows = indexesNamed(exchange, database).map((index) => ({
    Name: index.name,
    TotalIndexingTime: timeSpanText(index.indexingMs),
    LagTime: timeSpanText(lagMs(index, database)),
  }));
  exchange.replyJson(200, { Results: rows });
}

/** Time since a stale index last made progress. */
function lagMs(index: OpenIndex, { state }: Database): number {
  if (!index.isStale) return 0;
  const since = Math.max(index.indexedAtMicros, index.openedAtMicros);
  return (state.nowMicros() - since) / 1000;
}

/** GET indexes/debug?name=…&op=entries-fields: the field names */
function getDebug(exchange: Exchange, { database }: DatabaseContext): void {
  const index = namedIndex(exchange, database);
  const operation = exchange.query.required("op");
  if (operation !== "entries-fields") {
    throw new EngineError("not-supported", `${operation} is not supported`);
  }
  const names = [...index.index.columnNames, ...(index.outputs === null ? ["id()"] : [])];
  const rows = names.map((name) => ({ Name: name, FieldType: "Static", ValueType: "Term" }));
  exchange.replyJson(200, rows);
}

/** GET indexes/debug/metadata[?name=…] */
function getMetadata(exchange: Exchange, { database }: DatabaseContext): void {
  const rows = indexesNamed(exchange, database).map((index) => {
    const { name, type, source, state, lockMode, priority } = index.statistics();
    return {
      Name: name,
      Version: 72004,
      Type: type,
      State: state,
      LockMode: lockMode,
      SourceType: source,
      Priority: priority,
      SearchEngineType: searchEngineOf(database.settings, index),
      HasDynamicFields: index instanceof StaticIndex && index.hasDynamicFields,
      HasCompareExchange: false,
      HasTimeFields: false,
      TimeFields: [],
    };
  });
  replyResults(exchange, database, rows);
}

/** GET indexes/source?name=…: fails, since the class that RavenDB generates for a C# index does not exist here */
function getSource(exchange: Exchange, { database }: DatabaseContext): void {
  namedIndex(exchange, database);
  throw new EngineError("invalid-operation", "Could not retrieve source for given index.");
}

/** The index named by the parameter `name`. @throws EngineError invalid-argument, index-missing */
export function namedIndex(exchange: Exchange, database: Database): OpenIndex {
  return requireIndex(database, exchange.query.required("name"));
}

/** @throws EngineError index-missing */
export function requireIndex(database: Database, name: string): OpenIndex {
  const index = database.queries.indexes.byName(name);
  if (index !== undefined) return index;
  throw new EngineError("index-missing", `There is no index with '${name}' name.`);
}

/** The indexes named by the parameters `name`, or all. @throws EngineError index-missing */
function indexesNamed(exchange: Exchange, database: Database): OpenIndex[] {
  const names = exchange.query.all("name").filter((name) => name !== "");
  if (names.length === 0) return database.queries.indexes.all();
  return names.map((name) => requireIndex(database, name));
}

function replyResults(exchange: Exchange, database: Database, rows: readonly unknown[]): void {
  const DateTime = formatTimestamp(database.state.nowMicros());
  const metadata = { DateTime, WebUrl: exchange.baseUrl, NodeTag: nodeTag };
  exchange.replyJson(200, { "@metadata": metadata, Results: rows });
}
