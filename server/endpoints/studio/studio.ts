/** Requests of pages that show databases: previews of collections, statistics of the footer, checks of names. */
import { foldedName } from "../../../engine/base/case-folding.ts";
import { checkDatabaseName } from "../../../engine/base/database-name.ts";
import { formatTimestamp } from "../../../engine/base/timestamp.ts";
import {
  checkStaticIndexName,
  type Database,
  EngineError,
  type RevisionKind,
} from "../../../engine/engine.ts";
import { CronSchedule } from "../../backups/cron-schedule.ts";
import type { ClusterView, ReplicaState } from "../../cluster/cluster-view.ts";
import { recordOf } from "../../databases/database-record.ts";
import { dateText, humaneSize, timeSpanText } from "../../http/dates.ts";
import type { Exchange } from "../../http/exchange.ts";
import type { JsonObject } from "../../http/json-body.ts";
import { RequestError } from "../../http/request-error.ts";
import { noContentType } from "../../http/response.ts";
import { replyFields, replyPreview } from "../../replies/collection-preview.ts";
import type { Context, DatabaseContext, Route } from "../../routing/route.ts";
import type { ServerServices } from "../../routing/services.ts";
import { hasPermission } from "../../security/access.ts";
import { type Broken, listRows, namesFor, ownCopy } from "../cluster/cluster-databases.ts";
import { clusterNodesTopology, nodesTopology } from "../databases/database-nodes.ts";

const prefix = "/databases/:database/studio";
const int32Max = 2_147_483_647;

export const studioRoutes: readonly Route[] = [
  {
    kind: "database",
    method: "GET",
    path: `${prefix}/footer/stats`,
    access: "read",
    handle: getFooter,
  },
  {
    kind: "database",
    method: "GET",
    path: `${prefix}/collections/preview`,
    access: "read",
    handle: getPreview,
  },
  {
    kind: "database",
    method: "GET",
    path: `${prefix}/collections/fields`,
    access: "read",
    handle: getFields,
  },
  {
    kind: "database",
    method: "GET",
    path: `${prefix}/revisions/preview`,
    access: "read",
    handle: getRevisionsPreview,
  },
  {
    kind: "database",
    method: "GET",
    path: `${prefix}/revisions/ids`,
    access: "read",
    handle: getRevisionIds,
  },
  {
    kind: "database",
    method: "GET",
    path: `${prefix}/indexes/errors-count`,
    access: "read",
    copies: "here",
    handle: getErrorCounts,
  },
  {
    kind: "server",
    method: "GET",
    path: "/studio-tasks/databases",
    access: "valid-user",
    handle: getDatabases,
  },
  {
    kind: "server",
    method: "GET",
    path: "/studio-tasks/databases/state",
    access: "valid-user",
    handle: getStates,
  },
  {
    kind: "server",
    method: "GET",
    path: "/studio-tasks/is-valid-name",
    access: "valid-user",
    handle: getNameCheck,
  },
  {
    kind: "server",
    method: "GET",
    path: "/studio-tasks/next-cron-expression-occurrence",
    access: "valid-user",
    handle: getNextOccurrence,
  },
];

/** GET studio/footer/stats: the statistics of a database that the studio shows below every page */
function getFooter(exchange: Exchange, { database }: DatabaseContext): void {
  const indexes = database.indexes.listDetails();
  const stale = indexes.filter(({ isStale }) => isStale).map(({ name }) => name);
  exchange.replyJson(200, {
    CountOfDocuments: database.documents.count,
    CountOfIndexes: indexes.length,
    StaleIndexes: stale,
    CountOfStaleIndexes: stale.length,
    CountOfIndexingErrors: indexingErrors(database),
    CountOfEtlTasksErrors: 0,
    CountOfAiTasksErrors: 0,
    CountOfCdcSinkTasksErrors: 0,
  });
}

function indexingErrors(database: Database): number {
  return database.indexes.listDetails().reduce((sum, { errors }) => sum + errors.length, 0);
}

/**
 * GET studio/collections/preview?collection&start&pageSize&binding&fullBinding: without a collection only the bound
 * fields are included
 */
function getPreview(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const { query } = exchange;
  const collection = query.get("collection") || undefined;
  const columns = query.all("binding");
  const showsAll = collection !== undefined && columns.length === 0;
  return replyPreview(exchange, database, {
    collection,
    start: query.int("start", 0),
    pageSize: query.int("pageSize", int32Max),
    columns: showsAll ? null : new Set(columns),
    wholeColumns: new Set(query.all("fullBinding")),
  });
}

/** GET studio/collections/fields?collection&prefix: `{"Name":"String",…}`; `prefix` selects the object at that path */
function getFields(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const { query } = exchange;
  const path = (query.get("prefix") ?? "").split(".").filter((name) => name !== "");
  const collection = query.get("collection") || undefined;
  return replyFields(exchange, database, collection, path);
}

/**
 * GET studio/revisions/preview?collection&type=All|Regular|Deleted&start&pageSize: revisions of all documents, newest
 * first, at most 1,024 of them. With both a collection and a type, RavenDB does not count them.
 */
async function getRevisionsPreview(
  exchange: Exchange,
  { database }: DatabaseContext,
): Promise<void> {
  const { query } = exchange;
  const type = query.get("type") || "All";
  const kind = revisionKinds[type.toLowerCase()];
  if (kind === undefined) {
    throw new EngineError(
      "invalid-argument",
      `Invalid value '${type}' provided for 'type'. Please use one of the following options: All, Regular, Deleted.`,
    );
  }
  const collection = query.get("collection") || undefined;
  const start = Math.max(0, query.int("start", 0));
  const pageSize = Math.max(0, query.int("pageSize", int32Max));
  const { rows, total } = await database.revisions.list({ collection, kind, start, pageSize });
  const isCounted = collection === undefined || kind === "all";
  exchange.replyJson(200, {
    ...(isCounted ? { TotalResults: total } : {}),
    Results: rows.map((row) => ({
      Id: row.id,
      Etag: row.etag,
      LastModified: formatTimestamp(row.modifiedAt),
      ChangeVector: row.changeVector,
      Flags: row.flags,
      Collection: row.collection,
    })),
  });
}

const revisionKinds: Readonly<Record<string, RevisionKind>> = {
  all: "all",
  regular: "regular",
  deleted: "deleted",
};

/**
 * GET studio/revisions/ids?prefix&pageSize: `{"Results":[{"Id"}]}`, ids with revisions, including deleted documents, in id
 * order, at most 1,024
 */
async function getRevisionIds(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const { query } = exchange;
  const prefix = query.get("prefix") ?? "";
  if (prefix.trim() === "") {
    const problem = "Query string prefix is mandatory, but wasn't specified.";
    throw new EngineError("invalid-argument", problem);
  }
  const pageSize = query.int("pageSize", int32Max);
  const ids = await database.revisions.idsWithPrefix(prefix, pageSize);
  exchange.replyJson(200, { Results: ids.map((Id) => ({ Id })) });
}

/** GET studio/indexes/errors-count?name, which may be repeated: `{"Results":[{"Name","Errors":[{"Action","NumberOfErrors"}]}]}` */
function getErrorCounts(exchange: Exchange, { database }: DatabaseContext): void {
  const wanted = exchange.query.all("name");
  const indexes = database.indexes
    .listDetails()
    .filter(({ name }) => wanted.length === 0 || wanted.includes(name));
  const results = indexes.map(({ name, errors }) => {
    const actions = [...new Set(errors.map(({ action }) => action))];
    const counted = actions.map((action) => ({
      Action: action,
      NumberOfErrors: errors.filter((one) => one.action === action).length,
    }));
    return { Name: name, Errors: counted };
  });
  exchange.replyJson(200, { Results: results });
}

/** GET /studio-tasks/databases?name&start&pageSize: the first data of a list of databases */
async function getDatabases(exchange: Exchange, context: Context): Promise<void> {
  const { server } = context;
  const names = wantedNames(exchange, namesFor(exchange, server));
  if (names === null) return;
  const rows = await listRows(exchange, server, {
    names,
    path: "/studio-tasks/databases",
    describe: (database) => listRow(server, database),
    outline: listOutline,
    broken: (name) => brokenRow(server, name),
  });
  exchange.replyJson(200, { Databases: rows });
}

/** GET /studio-tasks/databases/state?name&start&pageSize: the data of a list of databases that is loaded later */
async function getStates(exchange: Exchange, context: Context): Promise<void> {
  const { databases, startedAt } = context.server;
  // Of this node: a client that displays a cluster calls each node.
  const names = wantedNames(exchange, databases.names());
  if (names === null) return;
  const found = await Promise.all(names.map((name) => ownCopy(databases, name)));
  exchange.replyJson(200, {
    Orchestrators: [],
    Databases: found.flatMap((database) => {
      if (database === undefined) return [];
      return ["reason" in database ? brokenState(database) : stateRow(database, startedAt)];
    }),
  });
}

/** Returns the requested page of the names that the caller may see, or null after a 404 reply. */
function wantedNames(exchange: Exchange, all: readonly string[]): string[] | null {
  const { query, identity } = exchange;
  const wanted = query.get("name");
  const start = Math.max(0, query.int("start", 0));
  const pageSize = Math.max(0, query.int("pageSize", int32Max));
  const names = all
    .filter((name) => hasPermission(identity, name, 1))
    .filter((name) => wanted === undefined || foldedName(name) === foldedName(wanted));
  if (wanted !== undefined && names.length === 0) {
    exchange.reply(404, { "content-type": noContentType });
    return null;
  }
  return names.slice(start, start + pageSize);
}

function listRow(server: ServerServices, database: Database): JsonObject {
  const record = recordOf(database);
  return {
    Name: database.name,
    IsSharded: false,
    IsDisabled: database.isDisabled,
    IsEncrypted: false,
    IndexesCount: database.indexes.definitionCount,
    StudioEnvironment: "None",
    HasRevisionsConfiguration: record["Revisions"] !== undefined,
    HasExpirationConfiguration: record["Expiration"] !== undefined,
    HasRefreshConfiguration: record["Refresh"] !== undefined,
    HasDataArchivalConfiguration: record["DataArchival"] !== undefined,
    DeletionInProgress: {},
    LockMode: record["LockMode"] ?? "Unlock",
    NodesTopology: nodesTopology(server, database, server.address.url),
    Sharding: null,
  };
}

/** As `listRow`, for a database that cannot be opened; its state contains the reason. */
function brokenRow(server: ServerServices, name: string): JsonObject {
  const { nodeTag } = server.config;
  return {
    Name: name,
    IsSharded: false,
    IsDisabled: false,
    IsEncrypted: false,
    IndexesCount: 0,
    StudioEnvironment: "None",
    DeletionInProgress: {},
    LockMode: "Unlock",
    NodesTopology: nodesTopology(server, { name, nodeTag }, server.address.url),
    Sharding: null,
  };
}

/** As `listRow`, for a database that no responding node describes. */
function listOutline(cluster: ClusterView, state: ReplicaState): JsonObject {
  const { name, initialRecord } = state.registered;
  return {
    Name: name,
    IsSharded: false,
    IsDisabled: initialRecord["Disabled"] === true,
    IsEncrypted: false,
    StudioEnvironment: "None",
    DeletionInProgress: {},
    LockMode: initialRecord["LockMode"] ?? "Unlock",
    NodesTopology: clusterNodesTopology(cluster, state),
    Sharding: null,
  };
}

function stateRow(database: Database, startedAt: Date): JsonObject {
  const bytes = database.sizeBytes;
  return {
    Name: database.name,
    TotalSize: { HumaneSize: humaneSize(bytes), SizeInBytes: bytes },
    TempBuffersSize: { HumaneSize: humaneSize(0), SizeInBytes: 0 },
    UpTime: timeSpanText(Date.now() - startedAt.getTime()),
    BackupInfo: null,
    Alerts: 0,
    PerformanceHints: 0,
    IndexingErrors: indexingErrors(database),
    TasksErrors: 0,
    DocumentsCount: database.documents.count,
    IndexingStatus: "Running",
    DatabaseStatus: database.isDisabled ? "Disabled" : "Online",
  };
}

/** As `stateRow`, for a database that cannot be opened. */
function brokenState({ name, reason }: Broken): JsonObject {
  return {
    Name: name,
    TotalSize: null,
    TempBuffersSize: null,
    UpTime: null,
    BackupInfo: null,
    Alerts: 0,
    PerformanceHints: 0,
    IndexingErrors: 0,
    TasksErrors: 0,
    DocumentsCount: null,
    IndexingStatus: null,
    DatabaseStatus: "Error",
    LoadError: reason,
  };
}

/** GET /studio-tasks/is-valid-name?type=Database|Index|Script&name: `{"IsValid":false,"ErrorMessage":"…"}` */
function getNameCheck(exchange: Exchange): void {
  const type = notEmpty(exchange, "type");
  const name = notEmpty(exchange, "name");
  const check = checks.get(type);
  if (check === undefined) {
    throw new EngineError("invalid-argument", `Type ${type} is not supported`);
  }
  exchange.replyJson(
    200,
    nameCheck(() => check(name)),
  );
}

const checks: ReadonlyMap<string, (name: string) => void> = new Map([
  ["Database", checkDatabaseName],
  ["Index", checkStaticIndexName],
  ["Script", () => undefined],
]);

function nameCheck(check: () => void): JsonObject {
  try {
    check();
    return { IsValid: true, ErrorMessage: null };
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return { IsValid: false, ErrorMessage: error.message };
  }
}

/** GET /studio-tasks/next-cron-expression-occurrence?expression: `{"IsValid":true,"Utc":time,"ServerTime":local time}` */
function getNextOccurrence(exchange: Exchange): void {
  try {
    const schedule = new CronSchedule(notEmpty(exchange, "expression"));
    const next = new Date(schedule.nextMs(Date.now()) ?? 0);
    const local = new Date(next.getTime() - next.getTimezoneOffset() * 60_000);
    const ServerTime = dateText(local).replace("Z", "");
    exchange.replyJson(200, { IsValid: true, Utc: dateText(next), ServerTime });
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    exchange.replyJson(200, { IsValid: false, ErrorMessage: error.message });
  }
}

function notEmpty({ query }: Exchange, parameter: string): string {
  const value = query.get(parameter);
  if (value) return value;
  throw new EngineError(
    "invalid-argument",
    `Query string value '${parameter}' must have a non empty value`,
  );
}
