/** RavenDB's debug routes of a database besides its statistics, in the shapes of RavenDB 7.2.7. */
import { formatTimestamp } from "../../../engine/base/timestamp.ts";
import { dateText, timeSpanText } from "../../http/dates.ts";
import type { Exchange } from "../../http/exchange.ts";
import { StreamedReply } from "../../http/streamed-reply.ts";
import { int32Max, replyListed } from "../../replies/document-listing.ts";
import { commitTimes } from "../../replies/io-metrics.ts";
import {
  type Context,
  type DatabaseContext,
  databasePrefix,
  type Route,
} from "../../routing/route.ts";
import type { ServerServices } from "../../routing/services.ts";
import { hasPermission } from "../../security/access.ts";
import { folderOf } from "../server/live-figures.ts";
import { replyMetadata } from "../server/server-info.ts";

/**
 * Replies, by path, for features that this server does not have: no database is replicated by RavenDB's protocol, and no ETL
 * task, queue sink, or AI task runs, so their lists are empty. `@metadata` precedes the other members.
 */
const nothing: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  "admin/tasks/pull-replication/hub/access": { Results: [] },
  "cdc-sink/performance": { Results: [] },
  "etl/debug/stats": { Results: [] },
  "etl/performance": { Results: [] },
  "etl/progress": { "@metadata": null, Results: [] },
  "replication/active-connections": { IncomingConnections: [], OutgoingConnections: [] },
  "replication/debug/incoming-last-activity-time": { "@metadata": null, Stats: [] },
  "replication/debug/incoming-rejection-info": { "@metadata": null, Stats: [] },
  "replication/debug/outgoing-failures": { "@metadata": null, Stats: [] },
  "replication/debug/outgoing-reconnect-queue": { "@metadata": null, "Queue-Info": [] },
  "replication/internal/outgoing/progress": { "@metadata": null, Results: [] },
  "replication/performance": { Incoming: [], Outgoing: [] },
  "replication/progress": { "@metadata": null, Results: [] },
  "studio-tasks/suggest-conflict-resolution": { Document: {}, Metadata: {} },
  // Connections of replication and subscriptions by RavenDB's first protocol: none.
  tcp: { "@metadata": null, Results: [] },
};

/** RavenDB's categories of tasks that have errors, by the prefix of their path. */
const taskKinds: readonly (readonly [path: string, category: string])[] = [
  ["ai", "Ai"],
  ["cdc-sink", "CdcSink"],
  ["etl", "Etl"],
];

const shown = { kind: "database", method: "GET", access: "read" } as const;
/** Options of routes about this node. */
const here = { ...shown, copies: "here" } as const;

export const databaseDebugRoutes: readonly Route[] = [
  ...Object.entries(nothing).map(([path, reply]): Route => {
    const access = path.startsWith("admin/") ? "database-admin" : "read";
    return { ...shown, access, path: databasePrefix + path, handle: tellsNothing(reply) };
  }),
  ...taskKinds.map(([path, category]): Route => {
    const handle = tellsNoErrors(category);
    return { ...shown, path: `${databasePrefix}${path}/errors`, handle };
  }),
  {
    ...here,
    path: `${databasePrefix}debug/documents/huge`,
    inPackage: true,
    handle: getHugeDocuments,
  },
  {
    ...here,
    path: `${databasePrefix}debug/script-runners`,
    inPackage: true,
    handle: getScriptRunners,
  },
  {
    ...here,
    path: `${databasePrefix}debug/perf-metrics`,
    inPackage: true,
    handle: getCommitTimes,
  },
  {
    ...here,
    access: "database-admin",
    path: `${databasePrefix}admin/debug/txinfo`,
    inPackage: true,
    handle: getTransactions,
  },
  {
    ...shown,
    access: "database-admin",
    path: `${databasePrefix}admin/debug/cluster/txinfo`,
    inPackage: true,
    handle: getClusterTransactions,
  },
  { ...here, path: `${databasePrefix}notification-center/stats`, handle: getOverview },
  { ...shown, path: `${databasePrefix}revisions/collections/stats`, handle: getRevisionCounts },
  { ...shown, path: `${databasePrefix}collections/docs/ids`, handle: getIds },
  { ...shown, path: `${databasePrefix}collections/last-change-vector`, handle: getLastVector },
  {
    kind: "server",
    method: "GET",
    path: "/admin/debug/txinfo",
    access: "operator",
    inPackage: true,
    handle: getServerTransactions,
  },
  {
    kind: "server",
    method: "GET",
    path: "/admin/debug/databases/idle",
    access: "operator",
    inPackage: true,
    handle: getIdle,
  },
  {
    kind: "server",
    method: "GET",
    path: "/debug/is-loaded",
    access: "valid-user",
    handle: getIsLoaded,
  },
];

/** GET /admin/debug/databases/idle: the last use of each database, and why it is not closed */
function getIdle(exchange: Exchange, { server }: Context): void {
  const { databaseIdleMs, databaseIdleCheckMs } = server.config;
  const MaxIdleTime = shortTimeSpan(databaseIdleMs);
  const nowMs = Date.now();
  exchange.replyJson(200, {
    MaxIdleTime,
    FrequencyToCheckForIdle: shortTimeSpan(databaseIdleCheckMs),
    Results: server.databases.uses().map(({ name, isOpen, unusedMs, isInMemory, mayBeClosed }) => {
      const isUsed = unusedMs !== null && unusedMs < databaseIdleMs;
      const reasons: readonly (readonly [boolean, string])[] = [
        [!isOpen, "it is not loaded yet"],
        [isOpen && isUsed, "it was used recently"],
        [isOpen && isInMemory, "it is running in memory"],
        [isOpen && !isInMemory && !mayBeClosed, "it is in use or has timed tasks"],
      ];
      const left = reasons.filter(([applies]) => applies).map(([, text]) => text);
      return {
        Name: name,
        MaxIdleTime: isOpen ? MaxIdleTime : null,
        LastRecentlyUsed: unusedMs === null ? null : dateText(new Date(nowMs - unusedMs)),
        IsLoaded: isOpen,
        RunInMemory: isInMemory,
        CanUnload: left.length === 0,
        Explanations: left.map((text) => `Cannot unload database because ${text}.`),
      };
    }),
  });
}

/** `hh:mm:ss` */
function shortTimeSpan(ms: number): string {
  return timeSpanText(ms).slice(0, -".0000000".length);
}

function tellsNothing(reply: Readonly<Record<string, unknown>>) {
  /** GET etl/progress and similar: an empty list, because such tasks do not run here */
  function getNothing(exchange: Exchange, { server }: DatabaseContext): void {
    const hasMetadata = Object.hasOwn(reply, "@metadata");
    exchange.replyJson(200, {
      ...reply,
      ...(hasMetadata ? { "@metadata": replyMetadata(server) } : {}),
    });
  }
  return getNothing;
}

function tellsNoErrors(category: string) {
  /** GET etl/errors[?name], which may be repeated, and the like: a row for each name, without errors */
  function getTaskErrors(exchange: Exchange, { server }: DatabaseContext): void {
    const none = { EtlType: null, EtlSubType: null, ProcessErrors: [], ItemErrors: [] };
    exchange.replyJson(200, {
      NodeTag: server.config.nodeTag,
      ShardNumber: null,
      Results: exchange.query
        .all("name")
        .map((name) => ({ TaskName: name, Category: category, ...none })),
    });
  }
  return getTaskErrors;
}

/** GET debug/documents/huge: the last 100 loads of documents of more than 5 MB, newest first */
function getHugeDocuments(exchange: Exchange, { database, server }: DatabaseContext): void {
  const Results = database.documents.hugeLoads.map(({ id, bytes, atMicros }) => {
    return { Id: id, Size: bytes, LastAccess: formatTimestamp(atMicros) };
  });
  exchange.replyJson(200, { "@metadata": replyMetadata(server), Results });
}

/** GET debug/script-runners: the scripts that recently patched single documents, with the numbers of their runs */
function getScriptRunners(exchange: Exchange, { database, server }: DatabaseContext): void {
  const ScriptRunners = database.patches.known().map(({ createdMicros, ranMicros, runs }) => ({
    Type: "PatchRequest",
    CreationTime: formatTimestamp(createdMicros),
    LastRun: formatTimestamp(ranMicros),
    Runs: runs,
    CachedScriptsCount: 1,
  }));
  exchange.replyJson(200, { "@metadata": replyMetadata(server), ScriptRunners });
}

/** GET debug/perf-metrics: the durations of the last commits */
function getCommitTimes(exchange: Exchange, { database, server }: DatabaseContext): void {
  const PerfMetrics = commitTimes(database.diskWrites(0));
  exchange.replyJson(200, { "@metadata": replyMetadata(server), PerfMetrics });
}

/** GET admin/debug/txinfo: the files of the database, of its settings, and each index; no transaction is pending */
function getTransactions(exchange: Exchange, { database, server }: DatabaseContext): void {
  const indexes = database.indexes.listDetails().map(() => ":memory:");
  const paths = [folderOf(server, "Databases", database.name), folderOf(server, "System")];
  replyTransactions(exchange, server, [...paths, ...indexes]);
}

/** GET /admin/debug/txinfo: the files with the server's own values; no transaction is pending */
function getServerTransactions(exchange: Exchange, { server }: Context): void {
  replyTransactions(exchange, server, [folderOf(server, "System")]);
}

function replyTransactions(exchange: Exchange, server: ServerServices, paths: string[]): void {
  const rows = paths.map((BasePath) => ({ BasePath, Information: [] }));
  exchange.replyJson(200, { "@metadata": replyMetadata(server), "tx-info": rows });
}

/** GET admin/debug/cluster/txinfo[?from&take]: pending cluster-wide transactions; always empty, because they are committed immediately */
function getClusterTransactions(exchange: Exchange, { server }: DatabaseContext): void {
  exchange.query.long("from", 0);
  exchange.query.int("take", 0);
  exchange.replyJson(200, { "@metadata": replyMetadata(server), Results: [] });
}

/** GET notification-center/stats: numbers of documents, indexes and errors, and the collections */
async function getOverview(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const counts = database.statistics.counts();
  const indexes = database.indexes.listDetails();
  const stale = indexes.filter(({ isStale }) => isStale).map(({ name }) => name);
  const errors = database.indexes.list().flatMap((index) => index.errors);
  const lastError = Math.max(0, ...errors.map(({ atMicros }) => atMicros));
  const collections: Record<string, object> = {};
  for (const { name, documents } of database.statistics.collections()) {
    const vector = await lastVectorOf(database, name);
    collections[name] = { Name: name, Count: documents, LastDocumentChangeVector: vector };
  }
  exchange.replyJson(200, {
    CountOfDocuments: counts.CountOfDocuments,
    CountOfConflicts: counts.CountOfConflicts,
    LastEtag: database.statistics.figures().lastEtag,
    CountOfIndexes: indexes.length,
    CountOfStaleIndexes: stale.length,
    StaleIndexes: stale,
    CountOfIndexingErrors: errors.length,
    CountOfEtlTasksErrors: 0,
    CountOfAiTasksErrors: 0,
    CountOfCdcSinkTasksErrors: 0,
    GlobalChangeVector: database.changeVector,
    LastIndexingErrorTime: lastError === 0 ? null : formatTimestamp(lastError),
    Collections: collections,
    CountOfRevisions: counts.CountOfRevisionDocuments,
  });
}

/** Returns the change vector of the newest document of a collection, or null. */
async function lastVectorOf(
  database: DatabaseContext["database"],
  collection: string,
): Promise<string | null> {
  const view = database.documents.view();
  let vector: string | null = null;
  try {
    await view.list({ collection }, (row) => {
      vector = row.changeVector;
      return false;
    });
    return vector;
  } finally {
    view.release();
  }
}

/** GET revisions/collections/stats: `{"CountOfRevisions":3,"Collections":{"Users":3}}` */
function getRevisionCounts(exchange: Exchange, { database }: DatabaseContext): void {
  const rows = database.statistics.collections().map(({ name, revisions }) => [name, revisions]);
  const { CountOfRevisionDocuments } = database.statistics.counts();
  exchange.replyJson(200, {
    CountOfRevisions: CountOfRevisionDocuments,
    Collections: Object.fromEntries(rows) as Record<string, number>,
  });
}

/** GET collections/docs/ids?name=…&start=…&pageSize=…: the ids of a collection, newest first */
async function getIds(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const { query } = exchange;
  const name = query.required("name");
  const listing = {
    start: query.int("start", 0),
    pageSize: query.int("pageSize", int32Max),
    metadataOnly: true,
    startsWith: undefined,
    startAfter: undefined,
    fromEtag: undefined,
    isWanted: undefined,
  };
  const view = database.documents.view();
  const reply = new StreamedReply(exchange, 200);
  await replyListed(reply, view, listing, name, (row) => {
    if (row !== null) reply.text.addString(row.id);
    return reply.isClosed ? false : reply.flush();
  });
}

/** GET collections/last-change-vector?name=…: that of the database, in RavenDB 7.2.7's format, which lacks a comma */
function getLastVector(exchange: Exchange, { database }: DatabaseContext): void {
  const Collection = exchange.query.required("name");
  exchange.replyJson(200, { Collection, LastChangeVector: database.changeVector });
}

/** GET /debug/is-loaded?name=…: whether a database that the caller may read is open now */
function getIsLoaded(exchange: Exchange, { server }: Context): void {
  const name = exchange.query.required("name");
  const opened = server.databases.opened().map((one) => one.name.toLowerCase());
  const isShown = hasPermission(exchange.identity, name, 1);
  const IsLoaded = isShown && opened.includes(name.toLowerCase());
  exchange.replyJson(200, { DatabaseName: name, IsLoaded });
}
