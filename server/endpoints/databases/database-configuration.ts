/**
 * Configurations of a database's features (revisions, expiration, refresh) and of its clients, and its settings. Each
 * is a member of the database record. Shapes and texts are those of RavenDB 7.2.7.
 */
import { foldedName } from "../../../engine/base/case-folding.ts";
import { EngineError } from "../../../engine/base/errors.ts";
import { revisionBinIntervalSeconds, revisionBinMinutes } from "../../../engine/base/limits.ts";
import { timeSpanMicros } from "../../../engine/engine.ts";
import {
  clientConfigurationOf,
  keptClientConfiguration,
} from "../../databases/client-configuration.ts";
import type { Exchange } from "../../http/exchange.ts";
import { type JsonObject, jsonBody } from "../../http/json-body.ts";
import { jsonContentType, noContentType } from "../../http/response.ts";
import type { DatabaseContext, Route } from "../../routing/route.ts";
import { clearanceRank } from "../../security/access.ts";
import { listSettings } from "../../settings/setting-list.ts";
import { replyMetadata } from "../server/server-info.ts";

const prefix = "/databases/:database";

export const databaseConfigurationRoutes: readonly Route[] = [
  ...routesOf("revisions", "Revisions", revisionsOf),
  ...routesOf("revisions/conflicts", "RevisionsForConflicts", ruleOf, {
    Disabled: false,
    MinimumRevisionsToKeep: 1024,
    MinimumRevisionAgeToKeep: null,
    PurgeOnDelete: false,
    MaximumRevisionsToDeleteUponDocumentUpdate: 10_240,
  }),
  ...routesOf("revisions/bin-cleaner", "RevisionsBin", binOf),
  ...routesOf("expiration", "Expiration", (body, name) =>
    frequencyOf(body, "DeleteFrequencyInSec", `Expiration delete frequency for database '${name}'`),
  ),
  ...routesOf("refresh", "Refresh", (body, name) =>
    frequencyOf(body, "RefreshFrequencyInSec", `Refresh frequency for database '${name}'`),
  ),
  ...routesOf("documents-compression", "DocumentsCompression", compressionOf),
  ...routesOf("data-archival", "DataArchival", archivalOf),
  {
    kind: "database",
    method: "GET",
    path: `${prefix}/replication/conflicts/solver`,
    access: "read",
    handle: getConflictSolver,
  },
  // An unsupported feature: clients get the reply for "not configured".
  {
    kind: "database",
    method: "GET",
    path: `${prefix}/configuration/studio`,
    access: "read",
    handle: getStudioConfiguration,
  },
  {
    kind: "database",
    method: "GET",
    path: `${prefix}/configuration/client`,
    access: "read",
    handle: getClientConfiguration,
  },
  {
    kind: "database",
    method: "PUT",
    path: `${prefix}/admin/configuration/client`,
    access: "database-admin",
    handle: putClientConfiguration,
  },
  {
    kind: "database",
    method: "GET",
    path: `${prefix}/admin/configuration/settings`,
    access: "database-admin",
    handle: getSettings,
  },
  {
    kind: "database",
    method: "PUT",
    path: `${prefix}/admin/configuration/settings`,
    access: "database-admin",
    handle: putSettings,
  },
];

/** GET replication/conflicts/solver: 404 until set by POST /admin/replication/conflicts/solver */
function getConflictSolver(exchange: Exchange, { database }: DatabaseContext): void {
  const kept = database.settings["ConflictSolverConfig"] ?? null;
  if (kept === null) exchange.reply(404, { "content-type": jsonContentType });
  else exchange.replyJson(200, kept);
}

/** GET configuration/studio: 404, because the studio has no settings per database */
function getStudioConfiguration(exchange: Exchange): void {
  exchange.reply(404, { "content-type": jsonContentType });
}

/** GET configuration/client: `{"Etag":n,"Configuration":{…}}`, -2 and null without a configuration */
function getClientConfiguration(exchange: Exchange, { database, server }: DatabaseContext): void {
  const { etag, configuration } = clientConfigurationOf(database, server.values);
  // Clients search for the first "Etag" in the text.
  exchange.replyJson(200, { Etag: etag, Configuration: configuration });
}

/** PUT admin/configuration/client: 201 */
async function putClientConfiguration(
  exchange: Exchange,
  { database, server }: DatabaseContext,
): Promise<void> {
  const body = await jsonBody(exchange);
  const index = await server.commandIndex.next();
  const Client = keptClientConfiguration(body, index);
  await database.changeSettings((record) => ({ ...record, Client, ChangedIndex: index }));
  exchange.reply(201, { "content-type": noContentType });
}

/** GET admin/configuration/settings: all settings, with the values of the server, for operators, and of the database */
function getSettings(exchange: Exchange, { database, server }: DatabaseContext): void {
  const ofDatabase = (database.settings["Settings"] ?? {}) as JsonObject;
  const maySee = exchange.identity.rank >= clearanceRank.Operator;
  exchange.replyJson(200, {
    "@metadata": replyMetadata(server),
    Settings: listSettings(server.config.given, ofDatabase, maySee),
  });
}

/** PUT admin/configuration/settings `{key:value}`: 201 */
async function putSettings(
  exchange: Exchange,
  { database, server }: DatabaseContext,
): Promise<void> {
  const body = await jsonBody(exchange);
  const index = await server.commandIndex.next();
  await database.changeSettings((record) => ({ ...record, Settings: body, ChangedIndex: index }));
  exchange.reply(201, { "content-type": noContentType });
}

/** Validates a configuration. @returns the one to store @throws EngineError invalid-operation, invalid-format */
type Check = (body: JsonObject, databaseName: string) => JsonObject;

/** Creates the routes of one feature. `unset` is the reply until its configuration is set; null for 404. */
function routesOf(
  path: string,
  key: string,
  check: Check,
  unset: JsonObject | null = null,
): Route[] {
  return [
    {
      kind: "database",
      method: "GET",
      path: `${prefix}/${path}/config`,
      access: "read",
      handle: getConfiguration,
    },
    {
      kind: "database",
      method: "POST",
      path: `${prefix}/admin/${path}/config`,
      access: "database-admin",
      handle: postConfiguration,
    },
  ];

  /** GET …/config: the configuration of a feature; 404 until it is set */
  function getConfiguration(exchange: Exchange, { database }: DatabaseContext): void {
    const kept = (database.settings[key] as JsonObject | null | undefined) ?? unset;
    if (kept === null) exchange.reply(404, { "content-type": jsonContentType });
    else exchange.replyJson(200, kept);
  }

  /** POST admin/…/config: replaces the configuration of a feature; `{"RaftCommandIndex":n}` */
  async function postConfiguration(
    exchange: Exchange,
    { database, server }: DatabaseContext,
  ): Promise<void> {
    const kept = check(await jsonBody(exchange), database.name);
    const index = await server.commandIndex.next();
    await database.changeSettings((record) => ({ ...record, [key]: kept, ChangedIndex: index }));
    exchange.replyJson(200, { RaftCommandIndex: index });
  }
}

function revisionsOf(body: JsonObject): JsonObject {
  const seen = new Set<string>();
  const collections: JsonObject = {};
  const sent = body["Collections"] ?? {};
  if (typeof sent !== "object" || Array.isArray(sent)) throw unreadable();
  for (const [name, rule] of Object.entries(sent)) {
    if (seen.has(foldedName(name))) {
      throw new EngineError(
        "invalid-operation",
        `Cannot have two different revision configurations on the same collection. Collection name : '${name}'`,
      );
    }
    seen.add(foldedName(name));
    collections[name] = ruleOf(rule);
  }
  const rule = body["Default"] ?? null;
  return { Default: rule === null ? null : ruleOf(rule), Collections: collections };
}

/** @throws EngineError invalid-operation for a value of a wrong type */
function ruleOf(sent: unknown): JsonObject {
  try {
    return readRule(sent);
  } catch (cause) {
    throw new EngineError("invalid-operation", unreadable().message, { cause });
  }
}

function readRule(sent: unknown): JsonObject {
  if (typeof sent !== "object" || sent === null || Array.isArray(sent)) throw unreadable();
  const rule = sent as JsonObject;
  const age = rule["MinimumRevisionAgeToKeep"] ?? null;
  if (age !== null && (typeof age !== "string" || timeSpanMicros(age) === null)) throw unreadable();
  return {
    Disabled: booleanOf(rule["Disabled"]),
    MinimumRevisionsToKeep: wholeOf(rule["MinimumRevisionsToKeep"]),
    MinimumRevisionAgeToKeep: age,
    PurgeOnDelete: booleanOf(rule["PurgeOnDelete"]),
    MaximumRevisionsToDeleteUponDocumentUpdate: wholeOf(
      rule["MaximumRevisionsToDeleteUponDocumentUpdate"],
    ),
  };
}

/** Requires meaningful values. RavenDB 7.2.7 accepts any numbers, and a missing one as 0. */
function binOf(body: JsonObject): JsonObject {
  const minutes = wholeOf(body["MinimumEntriesAgeToKeepInMin"]) ?? revisionBinMinutes;
  const seconds = wholeOf(body["CleanerFrequencyInSec"]) ?? revisionBinIntervalSeconds;
  if (minutes < 0 || seconds <= 0) {
    throw new EngineError(
      "invalid-operation",
      "'MinimumEntriesAgeToKeepInMin' must not be negative, and 'CleanerFrequencyInSec' must be greater than 0.",
    );
  }
  return {
    Disabled: booleanOf(body["Disabled"]),
    MinimumEntriesAgeToKeepInMin: minutes,
    CleanerFrequencyInSec: seconds,
  };
}

/** Stored only for clients to read: it does not change the storage of documents. */
function compressionOf(body: JsonObject): JsonObject {
  const { Collections } = body;
  if (Collections !== undefined && Collections !== null && !Array.isArray(Collections)) {
    throw unreadable();
  }
  return {
    Collections: Array.isArray(Collections) ? Collections.map(String) : [],
    CompressAllCollections: booleanOf(body["CompressAllCollections"]),
    CompressRevisions: booleanOf(body["CompressRevisions"]),
  };
}

function frequencyOf(body: JsonObject, key: string, what: string): JsonObject {
  const seconds = wholeOf(body[key]);
  if (seconds !== null && seconds <= 0) {
    throw new EngineError("invalid-operation", `${what} must be greater than 0.`);
  }
  return {
    Disabled: booleanOf(body["Disabled"]),
    [key]: seconds,
    MaxItemsToProcess: wholeOf(body["MaxItemsToProcess"]),
  };
}

/**
 * Documents are not archived here, so archival can only be disabled. (Without a license RavenDB 7.2.7 stores no other
 * configuration either.) @throws EngineError not-supported
 */
function archivalOf(body: JsonObject, name: string): JsonObject {
  const kept = frequencyOf(
    body,
    "ArchiveFrequencyInSec",
    `Archive frequency for database '${name}'`,
  );
  if (kept["Disabled"] === true) return kept;
  throw new EngineError("not-supported", "Archiving of documents is not supported by this server.");
}

/** Like RavenDB 7.2.7, accepts numbers and the words in text. */
function booleanOf(value: unknown): boolean {
  if (value === undefined || value === null) return false;
  if (typeof value === "boolean") return value;
  if (typeof value === "number") return value !== 0;
  const word = String(value).toLowerCase();
  if (word !== "true" && word !== "false") throw unreadable();
  return word === "true";
}

/** Like RavenDB 7.2.7, accepts booleans and integers in text. */
function wholeOf(value: unknown): number | null {
  if (value === undefined || value === null || value === "") return null;
  if (typeof value === "boolean") return Number(value);
  const isText = typeof value === "string" && /^\s*[-+]?\d+\s*$/.test(value);
  const number = isText ? Number(value) : value;
  if (typeof number !== "number" || !Number.isSafeInteger(number)) throw unreadable();
  return number;
}

function unreadable(): EngineError {
  return new EngineError("invalid-format", "The configuration has a value of a wrong type.");
}
