/** Connection strings, and definitions of ETL tasks and queue sinks. Shapes and texts are those of RavenDB 7.2.7. */
import { EngineError } from "../../../engine/base/errors.ts";
import {
  allDefinitions,
  connectionStringsOf,
  connectionTypeOf,
  connectionTypeOfTask,
  connectionTypes,
  etlTypeOf,
  type TaskKind,
  withDefinition,
  withoutDefinition,
} from "../../databases/etl-definitions.ts";
import type { Exchange } from "../../http/exchange.ts";
import { type JsonObject, jsonBody } from "../../http/json-body.ts";
import { RequestError } from "../../http/request-error.ts";
import { type DatabaseContext, databaseRoute, type Route } from "../../routing/route.ts";

export const etlRoutes: readonly Route[] = [
  databaseRoute("GET", "admin/connection-strings", "database-admin", getConnectionStrings),
  databaseRoute("PUT", "admin/connection-strings", "database-admin", putConnectionString),
  databaseRoute("DELETE", "admin/connection-strings", "database-admin", deleteConnectionString),
  databaseRoute("PUT", "admin/etl", "database-admin", putEtl),
  databaseRoute("RESET", "admin/etl", "database-admin", resetEtl),
  databaseRoute("PUT", "admin/queue-sink", "database-admin", putQueueSink),
];

/**
 * GET admin/connection-strings[?connectionStringName&type]: all, or one, by type and name. As in RavenDB 7.2.7, types without
 * any are empty objects when all are listed, and null when one is requested
 */
function getConnectionStrings(exchange: Exchange, { database }: DatabaseContext): void {
  const wanted = exchange.query.get("connectionStringName") || undefined;
  const type = wanted === undefined ? null : connectionTypeOf(exchange.query.get("type") ?? "");
  const maps = connectionTypes.map((each) => {
    const known = Object.entries(connectionStringsOf(database.settings, each))
      .filter(([name]) => type === null || (type === each && name === wanted))
      .map(([name, one]) => [name, { ...(one as JsonObject), UsedBy: [] }]);
    const isNull = type !== null && known.length === 0;
    return [`${each}ConnectionStrings`, isNull ? null : Object.fromEntries(known)];
  });
  exchange.replyJson(200, Object.fromEntries(maps));
}

/** PUT admin/connection-strings `{"Type","Name",…}`: 201 */
async function putConnectionString(
  exchange: Exchange,
  { database, server }: DatabaseContext,
): Promise<void> {
  const { Type, UsedBy: _derived, ...one } = await jsonBody(exchange);
  if (typeof Type !== "string") {
    throw new EngineError(
      "invalid-operation",
      "ConnectionString configuration must have ConnectionStringType field",
    );
  }
  const type = connectionTypeOf(Type);
  if (type === "Raven") checkRaven(one);
  const name = String(one["Name"] ?? "");
  const index = await server.commandIndex.next();
  await database.changeSettings((record) => ({
    ...record,
    [`${type}ConnectionStrings`]: { ...connectionStringsOf(record, type), [name]: one },
    ChangedIndex: index,
  }));
  exchange.replyJson(201, { RaftCommandIndex: index });
}

function checkRaven({ Database, TopologyDiscoveryUrls }: JsonObject): void {
  const errors: string[] = [];
  if (typeof Database !== "string" || Database === "") errors.push("Database cannot be empty");
  if (!Array.isArray(TopologyDiscoveryUrls) || TopologyDiscoveryUrls.length === 0) {
    errors.push("TopologyDiscoveryUrls cannot be empty");
  }
  if (errors.length === 0) return;
  throw new RequestError(
    400,
    "Raven.Client.Exceptions.BadRequestException",
    `Invalid connection string configuration. Errors: ${errors.join("\n")}`,
  );
}

/** DELETE admin/connection-strings?connectionString&type: deletes it. @throws EngineError invalid-operation when a task uses it */
async function deleteConnectionString(
  exchange: Exchange,
  { database, server }: DatabaseContext,
): Promise<void> {
  const name = exchange.query.required("connectionString");
  const type = connectionTypeOf(exchange.query.required("type"));
  const index = await server.commandIndex.next();
  await database.changeSettings((record) => {
    const user = allDefinitions(record).find(
      ([kind, task]) =>
        connectionTypeOfTask(kind) === type && task["ConnectionStringName"] === name,
    );
    if (user !== undefined) {
      throw new EngineError(
        "invalid-operation",
        `Can't delete connection string: ${name}. It is used by task: ${String(user[1]["Name"])}`,
      );
    }
    const { [name]: _gone, ...left } = connectionStringsOf(record, type);
    return { ...record, [`${type}ConnectionStrings`]: left, ChangedIndex: index };
  });
  exchange.replyJson(200, { RaftCommandIndex: index });
}

/** PUT admin/etl[?id] `{"EtlType","Name","ConnectionStringName","Transforms",…}`: adds a task, or replaces one */
async function putEtl(exchange: Exchange, context: DatabaseContext): Promise<void> {
  const { EtlType, ...sent } = await jsonBody(exchange);
  await putDefinition(exchange, context, etlTypeOf(String(EtlType ?? "")), sent);
}

/** PUT admin/queue-sink[?id] `{"Name","ConnectionStringName","BrokerType","Scripts":[{"Name","Queues","Script"}],…}`: as PUT admin/etl */
async function putQueueSink(exchange: Exchange, context: DatabaseContext): Promise<void> {
  const sent = await jsonBody(exchange);
  const { Scripts } = sent;
  if (!Array.isArray(Scripts) || Scripts.length === 0) {
    throw new EngineError("invalid-operation", "'Scripts' list cannot be empty.");
  }
  const names = new Set<string>();
  for (const each of Scripts as unknown[]) {
    const { Name, Script } = (each ?? {}) as JsonObject;
    const name = String(Name ?? "");
    if (typeof Script !== "string" || Script === "") {
      throw invalidSink(sent, `Script '${name}' must not be empty`);
    }
    if (names.has(name)) {
      const complaint = `Script name '${name}' name is already defined. The script names need to be unique`;
      throw invalidSink(sent, complaint);
    }
    names.add(name);
  }
  await putDefinition(exchange, context, "QueueSink", sent);
}

function invalidSink(sent: JsonObject, complaint: string): EngineError {
  return new EngineError(
    "invalid-operation",
    `Invalid Queue Sink configuration.\nErrors:\n- ${complaint}\nConfiguration:\n${JSON.stringify(sent)}\n`,
  );
}

/** Replies 201 `{"RaftCommandIndex","TaskId"}`. */
async function putDefinition(
  exchange: Exchange,
  { database, server }: DatabaseContext,
  kind: TaskKind,
  sent: JsonObject,
): Promise<void> {
  const replaced = exchange.query.long("id", undefined);
  const index = await server.commandIndex.next();
  await database.changeSettings((record) => {
    checkDefinition(record, kind, sent, replaced);
    const base = replaced === undefined ? record : withoutDefinition(record, kind, replaced);
    return { ...withDefinition(base, kind, { ...sent, TaskId: index }), ChangedIndex: index };
  });
  exchange.replyJson(201, { RaftCommandIndex: index, TaskId: index });
}

function checkDefinition(
  record: JsonObject,
  kind: TaskKind,
  { Name, ConnectionStringName }: JsonObject,
  replaced: number | undefined,
): void {
  const known = connectionStringsOf(record, connectionTypeOfTask(kind));
  if (typeof ConnectionStringName !== "string" || !Object.hasOwn(known, ConnectionStringName)) {
    throw new EngineError(
      "invalid-operation",
      `Could not find connection string named '${String(ConnectionStringName)}'. Please supply an existing connection string.`,
    );
  }
  const same = allDefinitions(record).find(
    ([, task]) => task["Name"] === Name && task["TaskId"] !== replaced,
  );
  if (same !== undefined) {
    throw new EngineError(
      "invalid-operation",
      `Can't use task name '${String(Name)}', there is already a task with that name`,
    );
  }
}

/** RESET admin/etl?configurationName&transformationName: 200; a no-op, since no transformation has run */
function resetEtl(exchange: Exchange): void {
  exchange.query.required("configurationName");
  exchange.query.required("transformationName");
  exchange.reply(200);
}
