/**
 * Indexes: definitions, statistics, terms, and what may be done with them. There are automatic ones only; deploying one of
 * one's own is refused by name. Replies are those of RavenDB 7.2.7.
 */
import { nodeTag } from "../../engine/database-state.ts";
import { EngineError } from "../../engine/errors.ts";
import type { DefinitionField, IndexDefinition } from "../../engine/indexing/index-definition.ts";
import type { AutomaticIndex, IndexPriority } from "../../engine/indexing/index-set.ts";
import { safeHash } from "../../engine/query-rows.ts";
import { formatTimestamp } from "../../engine/timestamp.ts";
import type { Exchange } from "../exchange.ts";
import { jsonBody } from "../json-body.ts";
import { timeText } from "../query-reply.ts";
import { jsonContentType } from "../response.ts";
import type { Access, DatabaseContext, Method, Route } from "../route.ts";
import type { Database } from "../services.ts";

type Handle = (exchange: Exchange, context: DatabaseContext) => Promise<void> | void;

function route(method: Method, path: string, access: Access, handle: Handle): Route {
  return { kind: "database", method, path: `/databases/:database/${path}`, access, handle };
}

export const indexRoutes: readonly Route[] = [
  route("GET", "indexes", "read", getIndexes),
  route("PUT", "indexes", "write", putIndexes),
  route("PUT", "admin/indexes", "database-admin", putIndexes),
  route("DELETE", "indexes", "write", deleteIndex),
  route("RESET", "indexes", "write", resetIndex),
  route("GET", "indexes/stats", "read", getStatistics),
  route("GET", "indexes/status", "read", getStatus),
  route("GET", "indexes/staleness", "read", getStaleness),
  route("GET", "indexes/terms", "read", getTerms),
  route("GET", "indexes/errors", "read", getErrors),
  route("DELETE", "indexes/errors", "write", deleteErrors),
  route("GET", "indexes/progress", "read", getProgress),
  route("POST", "indexes/set-lock", "write", setLock),
  route("POST", "indexes/set-priority", "write", setPriority),
  route("POST", "admin/indexes/start", "database-admin", startIndexing),
  route("POST", "admin/indexes/stop", "database-admin", stopIndexing),
  route("POST", "admin/indexes/enable", "database-admin", enableIndex),
  route("POST", "admin/indexes/disable", "database-admin", disableIndex),
];

const priorities: readonly string[] = ["Low", "Normal", "High"];
const lockModes: readonly string[] = ["Unlock", "LockedIgnore", "LockedError"];

/** GET indexes[?name=…][&start][&pageSize][&namesOnly] */
function getIndexes(exchange: Exchange, { database }: DatabaseContext): void {
  const { query } = exchange;
  const name = query.get("name");
  if (name !== undefined && name !== "") {
    const index = database.queries.indexes.byName(name);
    if (index === undefined) exchange.reply(404, { "content-type": jsonContentType });
    else exchange.replyJson(200, { Results: [definitionRow(index)] });
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
  } else exchange.replyJson(200, { Results: page.map(definitionRow) });
}

/** PUT indexes, PUT admin/indexes */
async function putIndexes(exchange: Exchange): Promise<void> {
  const body = await jsonBody(exchange);
  const definitions = body["Indexes"];
  if (!Array.isArray(definitions)) {
    throw new EngineError(
      "invalid-argument",
      "Request should have a property name 'Indexes' which is mandatory.",
    );
  }
  if (definitions.length > 0) {
    throw new EngineError(
      "not-supported",
      "Static indexes are not supported by this server yet; queries make automatic indexes for themselves.",
    );
  }
  exchange.replyJson(201, { Results: [] });
}

/** DELETE indexes?name=…: 204, 404 when there is none */
function deleteIndex(exchange: Exchange, { database }: DatabaseContext): void {
  const isDropped = database.queries.indexes.drop(exchange.query.required("name"));
  exchange.reply(isDropped ? 204 : 404);
}

/** RESET indexes?name=…: it is built anew */
function resetIndex(exchange: Exchange, { database }: DatabaseContext): void {
  database.queries.indexes.reset(namedIndex(exchange, database).name);
  exchange.reply(204);
}

/** GET indexes/stats[?name=…] */
function getStatistics(exchange: Exchange, { database }: DatabaseContext): void {
  const name = exchange.query.get("name");
  const wanted = database.queries.indexes
    .all()
    .filter((index) => !name || index.name.toLowerCase() === name.toLowerCase());
  if (name && wanted.length === 0) exchange.reply(404, { "content-type": jsonContentType });
  else replyResults(exchange, database, wanted.map(statisticsRow));
}

/** GET indexes/status */
function getStatus(exchange: Exchange, { database }: DatabaseContext): void {
  const { queries } = database;
  exchange.replyJson(200, {
    Status: queries.isIndexingPaused ? "Paused" : "Running",
    Indexes: queries.indexes.all().map((index) => ({ Name: index.name, Status: statusOf(index) })),
  });
}

/** GET indexes/staleness?name=… */
function getStaleness(exchange: Exchange, { database }: DatabaseContext): void {
  const { isStale, collection, documentLag } = namedIndex(exchange, database).statistics();
  const reason = `There are still ${documentLag} documents or deletions to process from collection '${collection}'.`;
  exchange.replyJson(200, { IsStale: isStale, StalenessReasons: isStale ? [reason] : [] });
}

/** GET indexes/terms?name=…&field=…[&fromValue][&pageSize]: terms in order, behind `fromValue` */
function getTerms(exchange: Exchange, { database }: DatabaseContext): void {
  const { query } = exchange;
  const index = namedIndex(exchange, database);
  const field = query.required("field");
  const countMax = query.int("pageSize", 2_147_483_647);
  const terms = index.reader().termsOf(field, query.get("fromValue") ?? "", countMax) ?? [];
  const etag = safeHash(index.lastEtag, index.index.store.liveCount);
  const reply = { IndexName: index.name, ResultEtag: etag, Terms: terms };
  exchange.replyJson(200, reply, { etag: String(etag) });
}

/** GET indexes/errors[?name=…]: automatic indexes have none, they pass over what they cannot read */
function getErrors(exchange: Exchange, { database }: DatabaseContext): void {
  const wanted = indexesNamed(exchange, database);
  replyResults(
    exchange,
    database,
    wanted.map((index) => ({ Name: index.name, Errors: [] })),
  );
}

/** DELETE indexes/errors[?name=…]: 204 */
function deleteErrors(exchange: Exchange, { database }: DatabaseContext): void {
  indexesNamed(exchange, database);
  exchange.reply(204);
}

/** GET indexes/progress: those that are behind */
function getProgress(exchange: Exchange, { database }: DatabaseContext): void {
  const stale = database.queries.indexes.all().filter((index) => index.isStale);
  const rows = stale.map((index) => {
    const { collection, documentLag, lastDocumentEtag, entriesCount } = index.statistics();
    const progress = {
      LastProcessedItemEtag: lastDocumentEtag,
      NumberOfItemsToProcess: documentLag,
      TotalNumberOfItems: entriesCount + documentLag,
    };
    return { Name: index.name, IsStale: true, Collections: { [collection]: progress } };
  });
  exchange.replyJson(200, { Results: rows });
}

/** POST indexes/set-lock, body `{"IndexNames":[…],"Mode"}`: only for indexes that somebody defined */
async function setLock(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const body = await jsonBody(exchange);
  const mode = oneOf(body["Mode"], lockModes, "IndexLockMode");
  for (const name of namesOf(body)) requireIndex(database, name);
  if (mode !== "" && namesOf(body).length > 0) {
    throw new EngineError(
      "invalid-operation",
      "'Indexes list contains Auto-Indexes. Lock Mode' is not set for Auto-Indexes.",
    );
  }
  exchange.reply(204);
}

/** POST indexes/set-priority, body `{"IndexNames":[…],"Priority"}`: 204 */
async function setPriority(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const body = await jsonBody(exchange);
  const priority = oneOf(body["Priority"], priorities, "IndexPriority") as IndexPriority;
  const indexes = namesOf(body).map((name) => requireIndex(database, name));
  for (const index of indexes) {
    index.priority = priority;
    await database.queries.saveIndex(index);
    database.feed.tellIndex("PriorityChanged", index.name);
  }
  exchange.reply(204);
}

/** POST admin/indexes/start[?name=…]: 204 */
function startIndexing(exchange: Exchange, { database }: DatabaseContext): void {
  setPaused(exchange, database, false);
}

/** POST admin/indexes/stop[?name=…]: 204; until `start`, or a restart */
function stopIndexing(exchange: Exchange, { database }: DatabaseContext): void {
  setPaused(exchange, database, true);
}

/** POST admin/indexes/enable?name=…: 204 */
async function enableIndex(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  await setDisabled(exchange, database, false);
}

/** POST admin/indexes/disable?name=…: 204; also over a restart */
async function disableIndex(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  await setDisabled(exchange, database, true);
}

function setPaused(exchange: Exchange, database: Database, isPaused: boolean): void {
  const { queries } = database;
  const isOfOne = Boolean(exchange.query.get("name"));
  const changed = isOfOne ? [namedIndex(exchange, database)] : queries.indexes.all();
  if (isOfOne) {
    for (const index of changed) index.isPaused = isPaused;
    queries.indexes.wake();
  } else queries.setIndexingPaused(isPaused);
  const event = isPaused ? "IndexPaused" : "BatchCompleted";
  for (const { name } of changed) database.feed.tellIndex(event, name);
  exchange.reply(204);
}

async function setDisabled(
  exchange: Exchange,
  database: Database,
  isDisabled: boolean,
): Promise<void> {
  const index = namedIndex(exchange, database);
  index.isDisabled = isDisabled;
  await database.queries.saveIndex(index);
  database.feed.tellIndex(isDisabled ? "IndexDemotedToDisabled" : "BatchCompleted", index.name);
  database.queries.indexes.wake();
  exchange.reply(204);
}

/** The index of the parameter `name`. @throws EngineError invalid-argument, index-missing */
function namedIndex(exchange: Exchange, database: Database): AutomaticIndex {
  return requireIndex(database, exchange.query.required("name"));
}

function requireIndex(database: Database, name: string): AutomaticIndex {
  const index = database.queries.indexes.byName(name);
  if (index !== undefined) return index;
  throw new EngineError("index-missing", `There is no index with '${name}' name.`);
}

/** Those of the parameters `name`, or all. @throws EngineError index-missing */
function indexesNamed(exchange: Exchange, database: Database): AutomaticIndex[] {
  const names = exchange.query.all("name").filter((name) => name !== "");
  if (names.length === 0) return database.queries.indexes.all();
  return names.map((name) => requireIndex(database, name));
}

function namesOf(body: Readonly<Record<string, unknown>>): string[] {
  const names = body["IndexNames"];
  return Array.isArray(names) ? names.map(String) : [];
}

/** @throws EngineError invalid-format */
function oneOf(value: unknown, allowed: readonly string[], type: string): string {
  if (typeof value === "string" && allowed.includes(value)) return value;
  throw new EngineError(
    "invalid-format",
    `Could not convert '${String(value)}' to Raven.Client.Documents.Indexes.${type}`,
  );
}

function replyResults(exchange: Exchange, database: Database, rows: readonly unknown[]): void {
  const DateTime = formatTimestamp(database.state.nowMicros());
  const metadata = { DateTime, WebUrl: exchange.baseUrl, NodeTag: nodeTag };
  exchange.replyJson(200, { "@metadata": metadata, Results: rows });
}

function statusOf(index: AutomaticIndex): string {
  return index.isDisabled ? "Disabled" : index.isPaused ? "Paused" : "Running";
}

function definitionRow(index: AutomaticIndex): object {
  const { definition } = index;
  const fields = [...definition.fields, ...(definition.groupBy?.keys ?? [])];
  const { type, lockMode, priority, state } = index.statistics();
  return {
    Name: index.name,
    SourceType: "Documents",
    Type: type,
    LockMode: lockMode,
    ArchivedDataProcessingBehavior: null,
    SchemaDefinitions: null,
    Priority: priority,
    State: state,
    OutputReduceToCollection: null,
    DeploymentMode: null,
    ReduceOutputIndex: null,
    PatternForOutputReduceToCollectionReferences: null,
    PatternReferencesCollectionName: null,
    Configuration: {},
    AdditionalSources: {},
    AdditionalAssemblies: [],
    Reduce: definition.groupBy === null ? null : reduceText(definition.groupBy),
    Maps: [mapText(definition)],
    Fields: Object.fromEntries(fields.map((field) => [field.name, fieldRow(field)])),
  };
}

function mapText({ collection, fields, groupBy }: IndexDefinition): string {
  const names = groupBy === null ? fields : groupBy.aggregates;
  return `${collection}:[${names.map(({ name }) => `<Name:${name}>`).join(",")}]`;
}

function reduceText({ keys, aggregates }: NonNullable<IndexDefinition["groupBy"]>): string {
  const text = (rows: readonly { readonly name: string }[]) =>
    rows.map(({ name }) => `<Name:${name}>`).join(",");
  return `[${text(keys)}] => [${text(aggregates)}]`;
}

function fieldRow(field: DefinitionField): object {
  return {
    Analyzer: null,
    Indexing: field.hasSearch ? "Search" : field.hasExact ? "Exact" : "Default",
    Storage: "No",
    Suggestions: field.hasSuggest,
    TermVector: field.hasHighlight ? "WithPositionsAndOffsets" : "No",
    Spatial: null,
    Vector: null,
  };
}

function statisticsRow(index: AutomaticIndex): object {
  const row = index.statistics();
  const isReduce = row.type === "AutoMapReduce";
  return {
    Name: row.name,
    MapAttempts: row.mapAttempts,
    MapSuccesses: row.mapAttempts - row.mapErrors,
    MapErrors: row.mapErrors,
    MapReferenceAttempts: null,
    MapReferenceSuccesses: null,
    MapReferenceErrors: null,
    ReduceAttempts: isReduce ? row.mapAttempts : null,
    ReduceSuccesses: isReduce ? row.mapAttempts - row.mapErrors : null,
    ReduceErrors: isReduce ? 0 : null,
    ReduceOutputCollection: null,
    ReduceOutputReferencePattern: null,
    PatternReferencesCollectionName: null,
    MappedPerSecondRate: 0,
    ReducedPerSecondRate: 0,
    MaxNumberOfOutputsPerDocument: 1,
    Collections: {
      [row.collection]: {
        LastProcessedDocumentEtag: row.lastDocumentEtag,
        LastProcessedTombstoneEtag: row.lastDeletionEtag,
        LastProcessedTimeSeriesDeletedRangeEtag: 0,
        DocumentLag: row.documentLag,
        TombstoneLag: 0,
      },
    },
    LastQueryingTime: timeText(row.queriedAtMicros),
    State: row.state,
    Priority: row.priority,
    CreatedTimestamp: timeText(row.createdAtMicros),
    LastIndexingTime: row.indexedAtMicros === 0 ? null : timeText(row.indexedAtMicros),
    IsStale: row.isStale,
    LockMode: row.lockMode,
    Type: row.type,
    SearchEngineType: "Corax",
    ArchivedDataProcessingBehavior: null,
    Status: statusOf(index),
    EntriesCount: row.entriesCount,
    ErrorsCount: row.mapErrors,
    SourceType: "Documents",
    ReferencedCollections: [],
    IsInvalidIndex: false,
    Memory: null,
    LastBatchStats: null,
  };
}
