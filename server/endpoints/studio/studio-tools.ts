/** Requests of single pages of RavenDB's Studio besides their content: classes, defaults, limits, licence, assistant. */
import { resolve } from "node:path";
import { EngineError } from "../../../engine/base/errors.ts";
import { boundedDocumentId } from "../../../engine/base/names.ts";
import type { Database } from "../../../engine/engine.ts";
import { foldersIn, roomIn } from "../../backups/backup-folder.ts";
import { sampleExamples } from "../../databases/sample-data.ts";
import { humaneSize } from "../../http/dates.ts";
import type { Exchange } from "../../http/exchange.ts";
import { type JsonObject, jsonBody } from "../../http/json-body.ts";
import { jsonContentType } from "../../http/response.ts";
import { trafficConfigurationOf } from "../../monitoring/traffic-log.ts";
import {
  classNameOf,
  documentClasses,
  indexClass,
  singular,
} from "../../replies/csharp-classes.ts";
import type { Context, DatabaseContext, Route } from "../../routing/route.ts";
import { replyMetadata } from "../server/server-info.ts";

const prefix = "/databases/:database";
const ofDatabase = { kind: "database", method: "GET", access: "read" } as const;
const ofServer = { kind: "server", method: "GET", access: "valid-user" } as const;
/** C# text, with the content type of RavenDB 7.2.7. */
const classHeaders = { "content-type": jsonContentType };

export const studioToolRoutes: readonly Route[] = [
  { ...ofDatabase, path: `${prefix}/docs/class`, handle: getClass },
  { ...ofDatabase, path: `${prefix}/studio/sample-data/classes`, handle: getSampleClasses },
  { ...ofDatabase, path: `${prefix}/indexes/c-sharp-index-definition`, handle: getIndexClass },
  {
    ...ofDatabase,
    method: "POST",
    path: `${prefix}/studio/index-fields`,
    copies: "any",
    handle: postIndexFields,
  },
  {
    ...ofDatabase,
    method: "POST",
    path: `${prefix}/studio/index-type`,
    copies: "any",
    handle: postIndexType,
  },
  { ...ofDatabase, path: `${prefix}/indexes/suggest-index-merge`, handle: getMerges },
  {
    ...ofDatabase,
    path: `${prefix}/studio-tasks/indexes/configuration/defaults`,
    handle: getIndexDefaults,
  },
  { ...ofDatabase, path: `${prefix}/studio/license/limits-usage`, handle: getLimitsUsage },
  {
    ...ofDatabase,
    method: "POST",
    path: `${prefix}/admin/studio-tasks/folder-path-options`,
    access: "database-admin",
    handle: postFolders,
  },
  {
    ...ofServer,
    method: "POST",
    path: "/admin/studio-tasks/folder-path-options",
    access: "operator",
    handle: postFolders,
  },
  {
    ...ofDatabase,
    path: `${prefix}/admin/backup-data-directory`,
    access: "database-admin",
    handle: getBackupFolder,
  },
  { ...ofServer, path: "/license/configuration", handle: getLicenseConfiguration },
  { ...ofServer, path: "/license-server/connectivity", handle: getLicenseServer },
  { ...ofServer, path: "/assistant/check-consent", handle: refuseAssistant },
  { ...ofServer, path: "/assistant/check-usage", handle: refuseAssistant },
  {
    ...ofServer,
    path: "/admin/traffic-watch/configuration",
    access: "operator",
    handle: getTrafficLog,
  },
  {
    ...ofServer,
    method: "POST",
    path: "/admin/traffic-watch/configuration",
    access: "operator",
    handle: postTrafficLog,
  },
  {
    ...ofServer,
    path: "/admin/event-listener/configuration",
    access: "operator",
    handle: getEventListener,
  },
];

/**
 * GET docs/class?id=…|collection=…: a class of C# with the properties of a document, or of the newest one of a collection; 404
 * if none exists
 */
async function getClass(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const collection = exchange.query.get("collection");
  const named = exchange.query.get("id") || undefined;
  if (named === undefined && !collection) {
    throw new EngineError(
      "invalid-operation",
      "Either 'id' or 'collection' query parameters must be specified.",
    );
  }
  const id =
    named === undefined ? await newestOf(database, collection ?? "") : boundedDocumentId(named);
  const found = database.documents.find(id);
  if (found?.isLarge === true) {
    throw new EngineError("too-large", `Document '${id}' is too large to generate a class.`);
  }
  const stored = found === null ? null : await database.documents.text(id);
  if (stored === null) {
    exchange.reply(404, { "content-type": jsonContentType });
    return;
  }
  const document = JSON.parse(stored.toString()) as JsonObject;
  const { space, name } = classNameOf((document["@metadata"] ?? {}) as JsonObject);
  exchange.reply(200, classHeaders, documentClasses(space, new Map([[name, document]])));
}

/** Returns the id of the newest document of a collection, or "". */
async function newestOf(database: Database, collection: string): Promise<string> {
  const view = database.documents.view();
  let id = "";
  try {
    await view.list({ collection }, (row) => {
      id = row.id;
      return false;
    });
    return id;
  } finally {
    view.release();
  }
}

/** GET studio/sample-data/classes: classes of C# for the documents of the sample data */
async function getSampleClasses(exchange: Exchange): Promise<void> {
  const examples = await sampleExamples();
  const named = [...examples].map(([name, example]) => [singular(name), example] as const);
  exchange.reply(200, { "content-type": "text/plain" }, documentClasses("Orders", new Map(named)));
}

/** GET indexes/c-sharp-index-definition?name=…: a class of C# that deploys the index; 404 if it does not exist */
function getIndexClass(exchange: Exchange, { database }: DatabaseContext): void {
  const name = exchange.query.required("name");
  if (!database.indexes.has(name)) {
    exchange.reply(404, { "content-type": jsonContentType });
    return;
  }
  if (!database.indexes.get(name).isStatic) {
    throw new EngineError(
      "invalid-operation",
      "Can't create C# index definition from auto indexes",
    );
  }
  exchange.reply(200, classHeaders, indexClass(database.indexes.definition(name)));
}

/** POST studio/index-fields, `{"Map":"…"}`: the fields of its entries; an empty list if it does not compile */
async function postIndexFields(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const body = await jsonBody(exchange);
  const { Map: map, AdditionalSources } = body;
  const definition = { Name: "Fields", Maps: [map], AdditionalSources };
  try {
    exchange.replyJson(200, { Results: database.indexes.fieldsOf(definition) });
  } catch (error) {
    // Clients send incomplete maps while the user types.
    if (!(error instanceof EngineError)) throw error;
    exchange.reply(200, { "content-type": jsonContentType }, "[]");
  }
}

/** POST studio/index-type, a definition: the type and source of its index */
async function postIndexType(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const { type, source } = database.indexes.kindOf(await jsonBody(exchange));
  exchange.replyJson(200, { IndexType: type, IndexSourceType: source });
}

/** POST folder-path-options?type=Local&path=…: the folders below a path that may contain backups; none elsewhere */
async function postFolders(exchange: Exchange, { server }: Context): Promise<void> {
  const { query } = exchange;
  const { backupRoot: root } = server.config;
  const isLocal = (query.get("type") ?? "Local").toLowerCase() === "local";
  const path = query.get("path") || (root ?? "/");
  const folders = isLocal ? await foldersIn(path, { root, dataFolder: undefined }) : [];
  exchange.replyJson(200, { List: folders });
}

/**
 * GET admin/backup-data-directory?path&getNodesInfo: the folder for backups, and its free space, as
 * `{"List":[{"NodeTag","FullPath","FreeSpaceInBytes",…,"Error"}]}`, without `getNodesInfo` the one item
 */
async function getBackupFolder(
  exchange: Exchange,
  { database, server }: DatabaseContext,
): Promise<void> {
  const { query } = exchange;
  const path = query.required("path");
  const item = { NodeTag: database.nodeTag, ...(await roomReply(path, server.config)) };
  exchange.replyJson(200, query.bool("getNodesInfo", false) ? { List: [item] } : item);
}

async function roomReply(path: string, config: Context["server"]["config"]): Promise<JsonObject> {
  const { backupRoot: root, runInMemory } = config;
  const dataFolder = runInMemory ? undefined : resolve(config.dataFolder);
  const reply = (fullPath: string, free: number, total: number, problem: string | null) => ({
    FullPath: fullPath,
    FreeSpaceInBytes: free,
    FreeSpaceHumane: humaneSize(free),
    TotalSpaceInBytes: total,
    TotalSpaceHumane: humaneSize(total),
    Error: problem,
  });
  try {
    const room = await roomIn(path, { root, dataFolder });
    return reply(room.path, room.freeBytes, room.totalBytes, null);
  } catch (error) {
    // Clients send incomplete paths while the user types.
    return reply(path, 0, 0, error instanceof Error ? error.message : String(error));
  }
}

/** GET indexes/suggest-index-merge: always empty; RavenDB suggests merges with a licence */
function getMerges(exchange: Exchange): void {
  exchange.replyJson(200, { Unmergables: {}, Suggestions: [], Errors: [] });
}

/** GET studio-tasks/indexes/configuration/defaults: the deployment mode and the engine of indexes */
function getIndexDefaults(exchange: Exchange): void {
  exchange.replyJson(200, {
    AutoIndexDeploymentMode: "Parallel",
    StaticIndexDeploymentMode: "Parallel",
    StaticIndexingEngineType: "Corax",
  });
}

/** GET studio/license/limits-usage: the items of one database counted by RavenDB's licences */
function getLimitsUsage(exchange: Exchange, { database }: DatabaseContext): void {
  const all = database.indexes.names().length;
  const automatic = database.indexes.listAutomatic().length;
  exchange.replyJson(200, {
    NumberOfStaticIndexes: all - automatic,
    NumberOfAutoIndexes: automatic,
    // Both are refused (sorters-analyzers.ts).
    NumberOfCustomSorters: 0,
    NumberOfAnalyzers: 0,
    NumberOfSubscriptions: database.subscriptions.list().length,
  });
}

/** GET /license/configuration: RavenDB's defaults, which have no effect because there is no license. */
function getLicenseConfiguration(exchange: Exchange): void {
  exchange.replyJson(200, { CanRenew: true, CanActivate: true, CanForceUpdate: true });
}

/** GET /license-server/connectivity: this server contacts no license server */
function getLicenseServer(exchange: Exchange, { server }: Context): void {
  exchange.replyJson(200, {
    "@metadata": replyMetadata(server),
    StatusCode: "BadRequest",
    Exception: "No license is needed, and no license server is contacted.",
  });
}

/** GET /assistant/check-consent, check-usage: refused, because this server has no assistant */
function refuseAssistant(): never {
  throw new EngineError("invalid-operation", "This server has no AI assistant.");
}

/** GET /admin/traffic-watch/configuration: the requests that are logged */
function getTrafficLog(exchange: Exchange, { server }: Context): void {
  exchange.replyJson(200, server.requests.trafficLog.configuration);
}

/**
 * POST /admin/traffic-watch/configuration `{"TrafficWatchMode":"ToLogFile","Databases":["world"],"StatusCodes":[500],…}`: takes
 * effect immediately, until the next start; omitted members are empty; 204
 */
async function postTrafficLog(exchange: Exchange, { server }: Context): Promise<void> {
  server.requests.trafficLog.configuration = trafficConfigurationOf(await jsonBody(exchange));
  exchange.reply(204);
}

/** GET /admin/event-listener/configuration: events of .NET's runtime, which do not exist here */
function getEventListener(exchange: Exchange): void {
  exchange.replyJson(200, {
    EventListenerMode: "Off",
    EventTypes: null,
    MinimumDurationInMs: 0,
    AllocationsLoggingIntervalInMs: 5000,
    AllocationsLoggingCount: 5,
  });
}
