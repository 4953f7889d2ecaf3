/**
 * Changes to the indexes of a database: deploy, delete, reset, replace, lock, prioritize, pause, disable. Replies are
 * those of RavenDB 7.2.7.
 */
import { hostname } from "node:os";
import { EngineError } from "../../../engine/base/errors.ts";
import {
  type IndexLockMode,
  type IndexPriority,
  type IndexTrial,
  indexLockModes,
  indexPriorities,
} from "../../../engine/engine.ts";
import type { Connection } from "../../http/connection.ts";
import type { Exchange } from "../../http/exchange.ts";
import { jsonBody } from "../../http/json-body.ts";
import { noContentType } from "../../http/response.ts";
import { type DatabaseContext, databaseRoute, type Route } from "../../routing/route.ts";

export const indexChangeRoutes: readonly Route[] = [
  databaseRoute("PUT", "indexes", "write", putIndexes),
  databaseRoute("PUT", "admin/indexes", "database-admin", putAnyIndexes),
  databaseRoute("DELETE", "indexes", "write", deleteIndex),
  databaseRoute("RESET", "indexes", "write", resetIndex, "here"),
  databaseRoute("POST", "indexes/test", "write", postTest),
  databaseRoute("POST", "indexes/try", "write", postTry),
  databaseRoute("POST", "indexes/replace", "write", replaceIndex),
  databaseRoute("POST", "indexes/set-lock", "write", setLock),
  databaseRoute("POST", "indexes/set-priority", "write", setPriority),
  databaseRoute("POST", "admin/indexes/start", "database-admin", startIndexing, "here"),
  databaseRoute("POST", "admin/indexes/stop", "database-admin", stopIndexing, "here"),
  databaseRoute("POST", "admin/indexes/enable", "database-admin", enableIndex),
  databaseRoute("POST", "admin/indexes/disable", "database-admin", disableIndex),
];

/** PUT indexes, body `{"Indexes":[definition…]}`: JavaScript only */
async function putIndexes(exchange: Exchange, context: DatabaseContext): Promise<void> {
  await deploy(exchange, context, false);
}

/** PUT admin/indexes: as PUT indexes, but also C# */
async function putAnyIndexes(exchange: Exchange, context: DatabaseContext): Promise<void> {
  await deploy(exchange, context, true);
}

async function deploy(
  exchange: Exchange,
  { database, server }: DatabaseContext,
  mayBeCSharp: boolean,
): Promise<void> {
  const body = await jsonBody(exchange);
  const definitions = body["Indexes"];
  if (definitions !== undefined && definitions !== null && !Array.isArray(definitions)) {
    throw new EngineError(
      "invalid-format",
      "Could not convert 'Indexes' to BlittableJsonReaderArray",
    );
  }
  if (!Array.isArray(definitions)) {
    throw new EngineError(
      "invalid-argument",
      "Request should have a property name 'Indexes' which is mandatory.",
    );
  }
  const index = await server.commandIndex.next();
  const deployer = { source: sourceOf(exchange.connection), commandIndex: index };
  const sent = definitions.map(asObject);
  const names = await database.indexes.deploy(sent, mayBeCSharp, deployer);
  exchange.replyJson(201, {
    Results: names.map((name) => ({ Index: name, RaftCommandIndex: index })),
  });
}

/** Clients on this machine are identified by its host name, others by their address. */
function sourceOf({ remoteAddress }: Connection): string {
  return /^(?:::ffff:)?127\.|^::1$|^$/.test(remoteAddress) ? hostname() : remoteAddress;
}

/** POST indexes/test, body `{"IndexDefinition","MaxDocumentsToProcess","Ids"}`: the entries of a definition for a few documents */
async function postTest(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const body = await jsonBody(exchange);
  const definition = body["IndexDefinition"];
  if (definition === undefined || definition === null) {
    throw new EngineError("bad-request", "Index must have an IndexDefinition field");
  }
  const { MaxDocumentsToProcess: count } = body;
  const trial = await database.indexes.tryOut(
    { Name: "Test", ...asObject(definition) },
    {
      ids: idsOf(body),
      count: typeof count === "number" && count > 0 ? count : undefined,
      signal: exchange,
    },
  );
  exchange.replyJson(200, trialText(trial));
}

function idsOf({ Ids: ids = [] }: Readonly<Record<string, unknown>>): readonly string[] {
  if (!Array.isArray(ids)) throw new EngineError("invalid-format", "'Ids' is not a list of ids.");
  return ids.map(String);
}

/**
 * POST indexes/try, body `{"Definition","Ids"}`: the entries of a JavaScript definition for a few documents, as texts. RavenDB
 * 7.2.7 omits a comma between the lists
 */
async function postTry(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const body = await jsonBody(exchange);
  const { Definition: sent } = body;
  if (sent === undefined) {
    throw new EngineError(
      "invalid-argument",
      "Request should have a property name 'Definition' which is mandatory.",
    );
  }
  if (sent === null) throw new EngineError("null-reference", "'Definition' is null.");
  if (typeof sent !== "object") {
    throw new EngineError("invalid-format", "'Definition' is not an object.");
  }
  const definition = { Name: "Test", ...asObject(sent) };
  const trial = await database.indexes.tryOut(definition, {
    ids: idsOf(body),
    skipsMissing: true,
    signal: exchange,
  });
  if (trial.isCSharp) {
    const message = "Testing indexes is only allowed for JavaScript indexes.";
    throw new EngineError("access-refused", `${message} indexes/test accepts C#, too.`);
  }
  const { documents, reduced, reduceFailures, isReduce } = trial;
  const [failure] = [...documents, ...reduceFailures].flatMap((one) => one.failure ?? []);
  if (failure !== undefined) throw failure;
  const MapResults = documents.flatMap(({ entries }) => entries);
  exchange.replyJson(200, isReduce ? { MapResults, ReduceResults: reduced } : { MapResults });
}

function trialText({
  documents,
  reduced,
  reducedKeys,
  reduceFailures,
  ...trial
}: IndexTrial): string {
  const made = documents.flatMap(({ entries }) => entries).join(",");
  const entries = trial.isReduce ? reduced.join(",") : made;
  const failures = [
    ...documents.flatMap(({ id, failure }) =>
      failure === null ? [] : [trialError(id, "Map", failure)],
    ),
    ...reduceFailures.map(({ key, failure }) => trialError(key, "Reduce", failure)),
  ];
  const rows = documents.map(
    ({ id, entries: own, keys }) =>
      `{"Id":${JSON.stringify(id)},"Entries":[${own.join(",")}],"Keys":[${keys.join(",")}]}`,
  );
  const type = `${trial.isCSharp ? "" : "JavaScript"}${trial.isReduce ? "MapReduce" : "Map"}`;
  return (
    `{"IndexEntries":[${entries}],"QueryResults":[],"MapResults":[${made}],"ReduceResults":[${reduced.join(",")}],` +
    `"ReduceKeys":[${reducedKeys.join(",")}],` +
    `"HasDynamicFields":${trial.hasDynamicFields},"IsStale":false,"IndexType":"${type}",` +
    `"Documents":[${rows.join(",")}],"Errors":${JSON.stringify(failures)}}`
  );
}

function trialError(document: string, action: string, { message, details }: EngineError): object {
  const { line, column } = details ?? {};
  return { Document: document, Action: action, Error: message, Line: line, Column: column };
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as Readonly<Record<string, unknown>>;
  }
  throw new EngineError("invalid-cast", "A definition of an index must be an object.");
}

/** DELETE indexes?name=…: 204, 404 if it does not exist */
async function deleteIndex(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const name = exchange.query.required("name");
  if (await database.indexes.delete(name)) exchange.reply(204);
  else exchange.reply(404, { "content-type": noContentType });
}

/** RESET indexes?name=…: rebuilds the index */
function resetIndex(exchange: Exchange, { database }: DatabaseContext): void {
  const name = exchange.query.required("name");
  const mode = exchange.query.get("mode") ?? "InPlace";
  if (!/^(?:InPlace|SideBySide)$/i.test(mode)) {
    throw new EngineError("invalid-argument", `Requested value '${mode}' was not found.`);
  }
  database.indexes.reset(name);
  exchange.reply(204);
}

/** POST indexes/replace?name=…: swaps in its side-by-side replacement, even if still stale */
async function replaceIndex(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  await database.indexes.replace(exchange.query.required("name"));
  exchange.reply(204);
}

/** POST indexes/set-lock, body `{"IndexNames":[…],"Mode"}`: for static indexes only */
async function setLock(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const body = await jsonBody(exchange);
  const names = namesOf(body);
  const mode = oneOf(body["Mode"], indexLockModes, "IndexLockMode") as IndexLockMode;
  for (const name of names) await database.indexes.setLockMode(name, mode);
  exchange.reply(204);
}

/** POST indexes/set-priority, body `{"IndexNames":[…],"Priority"}`: 204, without names too */
async function setPriority(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const body = await jsonBody(exchange);
  const names = namesOf(body, true);
  const priority = oneOf(body["Priority"], indexPriorities, "IndexPriority") as IndexPriority;
  for (const name of names) await database.indexes.setPriority(name, priority);
  exchange.reply(204);
}

/** POST admin/indexes/start[?name=…|?type=map|map-reduce]: 204 */
function startIndexing(exchange: Exchange, context: DatabaseContext): void {
  setPaused(exchange, context, false);
}

/** POST admin/indexes/stop[?name=…|?type=map|map-reduce]: 204; lasts until `start`, or a restart */
function stopIndexing(exchange: Exchange, context: DatabaseContext): void {
  setPaused(exchange, context, true);
}

/** POST admin/indexes/enable?name=…: 204 */
async function enableIndex(exchange: Exchange, context: DatabaseContext): Promise<void> {
  await setDisabled(exchange, context, false);
}

/** POST admin/indexes/disable?name=…: 204; survives a restart */
async function disableIndex(exchange: Exchange, context: DatabaseContext): Promise<void> {
  await setDisabled(exchange, context, true);
}

function setPaused(exchange: Exchange, { database }: DatabaseContext, isPaused: boolean): void {
  const type = exchange.query.get("type")?.toLowerCase();
  const name = exchange.query.get("name") ? exchange.query.required("name") : undefined;
  const isTyped = type === "map" || type === "map-reduce";
  const isReduce = isTyped ? type === "map-reduce" : undefined;
  database.indexes.setPaused(isPaused, { name, isReduce });
  exchange.reply(204);
}

async function setDisabled(
  exchange: Exchange,
  { database }: DatabaseContext,
  isDisabled: boolean,
): Promise<void> {
  await database.indexes.setDisabled(exchange.query.required("name"), isDisabled);
  exchange.reply(204);
}

/** @throws EngineError invalid-argument */
function namesOf(body: Readonly<Record<string, unknown>>, mayBeEmpty = false): string[] {
  const names = body["IndexNames"] ?? [];
  const isWhole = Array.isArray(names) && !names.includes(null);
  if (isWhole && (mayBeEmpty || names.length > 0)) return names.map(String);
  if (Array.isArray(names)) {
    throw new EngineError("argument-null", "Value cannot be null. (Parameter 'IndexNames')");
  }
  throw new EngineError(
    "invalid-format",
    "Could not convert 'IndexNames' to Sparrow.Json.BlittableJsonReaderArray",
  );
}

/** Parses a word, or its number; missing or null means the first. @throws EngineError invalid-format */
function oneOf(value: unknown, allowed: readonly string[], type: string): string {
  if (value === undefined || value === null) return allowed[0] as string;
  const found = allowed.find((word, i) => word === value || value === i);
  if (found !== undefined) return found;
  throw new EngineError(
    "invalid-format",
    `Could not convert Sparrow.Json.LazyStringValue ('${String(value)}') to Raven.Client.Documents.Indexes.${type}`,
  );
}
