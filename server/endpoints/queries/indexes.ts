/** Indexes of a database: definitions, statistics, terms, errors. Replies are those of RavenDB 7.2.7. */

import { foldedName } from "../../../engine/base/case-folding.ts";
import { EngineError } from "../../../engine/base/errors.ts";
import { formatTimestamp } from "../../../engine/base/timestamp.ts";
import type { Database, IndexError, IndexInfo } from "../../../engine/engine.ts";
import { timeSpanText } from "../../http/dates.ts";
import type { Exchange } from "../../http/exchange.ts";
import { jsonBody } from "../../http/json-body.ts";
import { jsonContentType } from "../../http/response.ts";
import { indexPerformance } from "../../replies/index-performance.ts";
import {
  progressRow,
  stalenessReasons,
  statisticsRow,
  statusOf,
} from "../../replies/index-rows.ts";
import { jsonOfNumbers } from "../../replies/number-texts.ts";
import { timeText } from "../../replies/query-reply.ts";
import { type DatabaseContext, databaseRoute, type Route } from "../../routing/route.ts";
import { wantedIndexes } from "../server/live-figures.ts";

export const indexRoutes: readonly Route[] = [
  databaseRoute("GET", "indexes", "read", getIndexes),
  databaseRoute("GET", "indexes/stats", "read", getStatistics, "here"),
  databaseRoute("GET", "indexes/status", "read", getStatus, "here"),
  databaseRoute("GET", "indexes/staleness", "read", getStaleness),
  databaseRoute("GET", "indexes/terms", "read", getTerms),
  databaseRoute("GET", "indexes/errors", "read", getErrors, "here"),
  databaseRoute("DELETE", "indexes/errors", "write", deleteErrors, "here"),
  databaseRoute("GET", "indexes/progress", "read", getProgress, "here"),
  databaseRoute("POST", "indexes/has-changed", "read", postHasChanged, "any"),
  databaseRoute("GET", "indexes/performance", "read", getPerformance, "here"),
  databaseRoute("GET", "indexes/total-time", "read", getTotalTime, "here"),
  databaseRoute("GET", "indexes/debug", "read", getDebug, "here"),
  databaseRoute("GET", "indexes/debug/metadata", "read", getMetadata, "here"),
  databaseRoute("GET", "indexes/source", "read", getSource),
  databaseRoute("GET", "indexes/history", "read", getHistory),
];

/** GET indexes[?name=…][&start][&pageSize][&namesOnly]: definitions of indexes, or their names */
function getIndexes(exchange: Exchange, { database }: DatabaseContext): void {
  const { query } = exchange;
  const { indexes } = database;
  const name = query.get("name");
  const isNamesOnly = query.bool("namesOnly", false);
  if (name !== undefined) {
    if (!indexes.has(name)) exchange.reply(404, { "content-type": jsonContentType });
    else if (isNamesOnly) replyResults(exchange, database, [indexes.definition(name)["Name"]]);
    else exchange.replyJson(200, { Results: [indexes.definition(name)] });
    return;
  }
  const start = Math.max(0, query.int("start", 0));
  const pageSize = Math.max(0, query.int("pageSize", 2_147_483_647));
  const page = indexes.names().slice(start, start + pageSize);
  if (isNamesOnly) replyResults(exchange, database, page);
  else exchange.replyJson(200, { Results: page.map((one) => indexes.definition(one)) });
}

/** GET indexes/stats[?name=…][&sinceStart=true]: entries, errors, states and priorities of indexes; whether each was queried since the start */
function getStatistics(exchange: Exchange, { database }: DatabaseContext): void {
  const { indexes } = database;
  const name = exchange.query.get("name");
  if (name && !indexes.has(name)) {
    exchange.reply(404, { "content-type": jsonContentType });
    return;
  }
  const wanted = name ? [indexes.details(name)] : indexes.listDetails();
  const withUse = exchange.query.get("sinceStart") === "true";
  const rows = wanted.map((row) =>
    withUse ? { ...statisticsRow(row), QueriedSinceStart: row.wasQueried } : statisticsRow(row),
  );
  replyResults(exchange, database, rows);
}

/** GET indexes/status: which indexes run, and which are paused or disabled */
function getStatus(exchange: Exchange, { database }: DatabaseContext): void {
  const { indexes } = database;
  exchange.replyJson(200, {
    Status: indexes.isPaused ? "Paused" : "Running",
    Indexes: indexes.list().map((index) => ({ Name: index.name, Status: statusOf(index) })),
  });
}

/** GET indexes/staleness?name=…: whether an index lags behind the documents, and why */
function getStaleness(exchange: Exchange, { database }: DatabaseContext): void {
  const index = database.indexes.details(exchange.query.required("name"));
  const reasons = stalenessReasons(index);
  exchange.replyJson(200, { IsStale: index.isStale, StalenessReasons: reasons });
}

/** GET indexes/terms?name=…&field=…[&fromValue][&pageSize]: terms in order, after `fromValue` */
async function getTerms(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const { query } = exchange;
  const field = query.required("field");
  const { name } = namedIndex(exchange, database);
  const countMax = query.int("pageSize", 2_147_483_647);
  const after = query.get("fromValue") ?? "";
  const { signal } = exchange;
  const found = await database.indexes.terms(name, { field, after, countMax, signal });
  const { name: shown, terms, resultEtag } = found;
  const reply = { IndexName: shown, ResultEtag: resultEtag, Terms: terms };
  exchange.replyJson(200, reply, { etag: String(resultEtag) });
}

/** GET indexes/errors[?name=…]: automatic indexes have no errors, because they skip values that they cannot index */
function getErrors(exchange: Exchange, { database }: DatabaseContext): void {
  const rows = indexesNamed(exchange, database).map((index) => ({
    Name: index.name,
    Errors: index.errors.map(errorRow),
  }));
  replyResults(exchange, database, rows);
}

/** `Line` and `Column` are included only if the position is known: RavenDB has them only in the message. */
function errorRow({ atMicros, document, action, message }: IndexError): object {
  const row = { Timestamp: timeText(atMicros), Document: document, Action: action, Error: message };
  const place = /\bAt (\d+):(\d+) /.exec(message);
  return place === null ? row : { ...row, Line: Number(place[1]), Column: Number(place[2]) };
}

/** DELETE indexes/errors[?name=…]: 204 */
function deleteErrors(exchange: Exchange, { database }: DatabaseContext): void {
  for (const { name } of indexesNamed(exchange, database)) database.indexes.clearErrors(name);
  exchange.reply(204);
}

/** GET indexes/progress: the stale indexes */
function getProgress(exchange: Exchange, { database }: DatabaseContext): void {
  const { indexes } = database;
  const stale = indexes.list().filter((index) => index.isStale);
  const rows = stale.map(({ name }) => progressRow(indexes.details(name)));
  exchange.replyJson(200, { Results: rows });
}

/** POST indexes/has-changed, body a definition: `{"Changed":…}`, true if no index has its name */
async function postHasChanged(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const body = await jsonBody(exchange);
  const { Name, Maps } = body;
  if (typeof Name !== "string" || Name === "" || !Array.isArray(Maps) || Maps.length === 0) {
    throw new EngineError(
      "bad-request",
      "Index definition must contain name and at least one map.",
    );
  }
  exchange.replyJson(200, { Changed: database.indexes.hasChanged(body) });
}

/** GET indexes/performance[?name=…]: the last batches of each index, with numbers of documents and durations */
function getPerformance(exchange: Exchange, { database }: DatabaseContext): void {
  exchange.replyJson(200, { Results: indexPerformance(database, wantedIndexes(exchange)) });
}

/** GET indexes/total-time[?name=…]: the total duration of indexing */
function getTotalTime(exchange: Exchange, { database }: DatabaseContext): void {
  const rows = indexesNamed(exchange, database).map((index) => ({
    Name: index.name,
    TotalIndexingTime: timeSpanText(index.indexingMs),
    LagTime: timeSpanText(lagMs(index, database)),
  }));
  exchange.replyJson(200, { Results: rows });
}

/** Time since a stale index last made progress. */
function lagMs(index: IndexInfo, database: Database): number {
  if (!index.isStale) return 0;
  const since = Math.max(index.indexedAtMicros, index.openedAtMicros);
  return (database.nowMicros() - since) / 1000;
}

/** GET indexes/debug?name=…&op=entries-fields: the field names */
function getDebug(exchange: Exchange, { database }: DatabaseContext): void {
  const name = knownName(exchange, database);
  if (name === undefined) return;
  const operation = exchange.query.required("op");
  if (operation === "map-reduce-tree" && !database.indexes.details(name).type.endsWith("Reduce")) {
    exchange.replyJson(400, { Error: `${name} is not map-reduce index` });
    return;
  }
  if (operation !== "entries-fields") {
    throw new EngineError("not-supported", `${operation} is not supported`);
  }
  const rows = database.indexes
    .fieldNames(name)
    .map((field) => ({ Name: field, FieldType: "Static", ValueType: "Term" }));
  exchange.replyJson(200, rows);
}

/** GET indexes/debug/metadata[?name=…]: the properties of indexes that RavenDB's Studio displays */
function getMetadata(exchange: Exchange, { database }: DatabaseContext): void {
  const rows = indexesNamed(exchange, database).map((index) => {
    const details = database.indexes.details(index.name);
    const { name, type, source, state, lockMode, priority } = details;
    return {
      Name: name,
      Version: 72004,
      Type: type,
      State: state,
      LockMode: lockMode,
      SourceType: source,
      Priority: priority,
      SearchEngineType: details.searchEngine,
      HasDynamicFields: details.hasDynamicFields,
      HasCompareExchange: false,
      HasTimeFields: false,
      TimeFields: [],
    };
  });
  replyResults(exchange, database, rows);
}

/** GET indexes/source?name=…: the texts of an index in C#; RavenDB returns the class that it generates from them */
function getSource(exchange: Exchange, { database }: DatabaseContext): void {
  const name = knownName(exchange, database);
  if (name === undefined) return;
  const { Name, Type, Maps, Reduce } = database.indexes.definition(name);
  if (Type !== "Map" && Type !== "MapReduce") {
    throw new EngineError(
      "invalid-operation",
      String(Type).startsWith("Auto")
        ? "Source can be only retrieved for static indexes."
        : "Could not retrieve source for given index.",
    );
  }
  const texts = [...(Maps as readonly string[]), ...(typeof Reduce === "string" ? [Reduce] : [])];
  exchange.replyJson(200, { Index: Name, Source: texts.join("\n\n") });
}

/** GET indexes/history?name=…: its deployed definitions, newest first; 404 for an automatic index */
function getHistory(exchange: Exchange, { database }: DatabaseContext): void {
  const name = foldedName(exchange.query.required("name"));
  const known = database.indexes.histories();
  const found = [...known].find(([one]) => foldedName(one) === name);
  if (found === undefined) {
    exchange.reply(404, { "content-type": jsonContentType });
    return;
  }
  const [Index, definitions] = found;
  exchange.replyJson(200, {
    Index,
    // Two members exist only in the database's record.
    History: definitions.map(({ definition, createdAtMicros, source }) => ({
      Definition: { ...definition, ClusterState: undefined, CompoundFields: undefined },
      CreatedAt: formatTimestamp(createdAtMicros),
      Source: source,
      RollingDeployment: {},
    })),
  });
}

/** Returns the index name in the parameter `name`, or undefined after a 404 reply. */
function knownName(exchange: Exchange, database: Database): string | undefined {
  const name = exchange.query.required("name");
  if (database.indexes.has(name)) return database.indexes.get(name).name;
  exchange.reply(404, { "content-type": jsonContentType });
  return undefined;
}

/** The index named by the parameter `name`. @throws EngineError invalid-argument, index-missing */
function namedIndex(exchange: Exchange, database: Database): IndexInfo {
  return database.indexes.get(exchange.query.required("name"));
}

/** The indexes named by the parameters `name`, or all. @throws EngineError index-missing */
function indexesNamed(exchange: Exchange, database: Database): IndexInfo[] {
  const names = exchange.query.all("name").filter((name) => name !== "");
  if (names.length === 0) return database.indexes.list();
  return names.map((name) => database.indexes.get(name));
}

function replyResults(exchange: Exchange, database: Database, rows: readonly unknown[]): void {
  const DateTime = formatTimestamp(database.nowMicros());
  const metadata = { DateTime, WebUrl: exchange.baseUrl, NodeTag: database.nodeTag };
  exchange.replyJson(200, jsonOfNumbers({ "@metadata": metadata, Results: rows }));
}
