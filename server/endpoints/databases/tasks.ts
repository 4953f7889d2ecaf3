/**
 * Ongoing tasks of a database: list, get, enable and disable, delete. Subscriptions and backups run here; ETL and queue sinks are
 * definitions only. Shapes and texts are those of RavenDB 7.2.7.
 */

import { EngineError } from "../../../engine/base/errors.ts";
import type { Database, SubscriptionTask } from "../../../engine/engine.ts";
import {
  allDefinitions,
  definitionInfo,
  definitionsOf,
  findDefinition,
  taskKindOf,
  withDefinition,
  withoutDefinition,
} from "../../databases/etl-definitions.ts";
import type { Exchange } from "../../http/exchange.ts";
import type { JsonObject } from "../../http/json-body.ts";
import { jsonContentType } from "../../http/response.ts";
import type { DatabaseContext, Route } from "../../routing/route.ts";
import { timeOf } from "../documents/subscriptions.ts";
import { replyMetadata } from "../server/server-info.ts";
import { backupInfo } from "./backups.ts";

const prefix = "/databases/:database";

export const taskRoutes: readonly Route[] = [
  {
    kind: "database",
    method: "GET",
    path: `${prefix}/tasks`,
    access: "read",
    inPackage: true,
    copies: "leader",
    handle: getTasks,
  },
  {
    kind: "database",
    method: "GET",
    path: `${prefix}/task`,
    access: "read",
    copies: "leader",
    handle: getTask,
  },
  {
    kind: "database",
    method: "POST",
    path: `${prefix}/admin/tasks/state`,
    access: "database-admin",
    handle: postState,
  },
  {
    kind: "database",
    method: "DELETE",
    path: `${prefix}/admin/tasks`,
    access: "database-admin",
    handle: deleteTask,
  },
];

/** RavenDB's types of tasks that this server does not have, in lower case. */
const otherTypes = [
  "replication",
  "pullreplicationashub",
  "pullreplicationassink",
  "embeddingsgeneration",
  "genai",
  "cdcsink",
];

/** GET tasks: the ongoing tasks of the database (subscriptions, backups, ETL) with their states */
function getTasks(exchange: Exchange, { database, server }: DatabaseContext): void {
  const tasks = database.subscriptions.list();
  exchange.replyJson(200, {
    "@metadata": replyMetadata(server),
    OngoingTasks: [
      ...tasks.map((task) => infoOf(exchange, database, task)),
      ...server.backups.periodic
        .list(database)
        .map((task) => backupInfo(exchange, server, database, task)),
      ...allDefinitions(database.settings).map(([kind, definition]) =>
        definitionInfo(database, exchange.baseUrl, kind, definition),
      ),
    ],
    SubscriptionsCount: tasks.length,
    PullReplications: [],
  });
}

/** GET task?key=…|taskName=…&type=…: one task; 404 for an unsupported type */
function getTask(exchange: Exchange, { database, server }: DatabaseContext): void {
  const { query } = exchange;
  const id = idOf(exchange, "key");
  const name = id === undefined ? query.required("taskName") : query.get("taskName");
  const type = query.get("type") ?? "";
  if (type === "") throw missingValue("type");
  if (isBackup(type)) {
    const task = server.backups.periodic.find(database, id, name);
    if (task === undefined) exchange.reply(404, { "content-type": jsonContentType });
    else {
      const info = backupInfo(exchange, server, database, task);
      exchange.replyJson(200, { "@metadata": replyMetadata(server), ...info });
    }
    return;
  }
  const kind = taskKindOf(type);
  const definition = kind === undefined ? undefined : findDefinition(database, kind, id, name);
  if (kind !== undefined && definition !== undefined) {
    const info = definitionInfo(database, exchange.baseUrl, kind, definition);
    exchange.replyJson(200, { "@metadata": replyMetadata(server), ...info });
    return;
  }
  if (!isSubscription(type)) {
    if (kind === undefined && !otherTypes.includes(type.toLowerCase())) {
      throw new EngineError("invalid-argument", `Unknown task type '${type}'.`);
    }
    exchange.reply(404, { "content-type": jsonContentType });
    return;
  }
  const task = database.subscriptions.get(name ? { name } : { id });
  exchange.replyJson(200, {
    "@metadata": replyMetadata(server),
    ...infoOf(exchange, database, task),
  });
}

/** POST admin/tasks/state?key=…|taskName=…&type=…&disable=…: `{"RaftCommandIndex":n,"TaskId":key}` */
async function postState(exchange: Exchange, { database, server }: DatabaseContext): Promise<void> {
  const { query } = exchange;
  if (!query.has("key")) query.required("key");
  const id = idOf(exchange, "key");
  const type = query.get("type") ?? "";
  if (type === "") throw missingValue("type");
  if (!query.has("disable")) query.required("disable");
  const isDisabled = query.bool("disable", false);
  if (isBackup(type)) {
    const index = await server.backups.periodic.setDisabled(database, id ?? 0, isDisabled);
    exchange.replyJson(200, { RaftCommandIndex: index, TaskId: id ?? 0 });
    return;
  }
  const kind = taskKindOf(type);
  if (kind !== undefined) {
    await changeDefinition(exchange, { database, server }, (record) => {
      const kept = definitionsOf(record, kind).find(({ TaskId }) => TaskId === id);
      return kept === undefined
        ? record
        : withDefinition(record, kind, { ...kept, Disabled: isDisabled });
    });
    return;
  }
  requireKind(type);
  const name = query.get("taskName");
  if (!name && !hasId(database, id)) throw nameless();
  if (name && !database.subscriptions.has(name)) {
    throw new EngineError(
      "subscription-missing",
      `Cannot find subscription ${name} @ ${database.name}`,
    );
  }
  await database.subscriptions.setDisabled(name ? { name } : { id }, isDisabled);
  const index = await server.commandIndex.next();
  exchange.replyJson(200, { RaftCommandIndex: index, TaskId: id ?? 0 });
}

/** DELETE admin/tasks?id=…&type=…&taskName=…: replies as `postState` */
async function deleteTask(
  exchange: Exchange,
  { database, server }: DatabaseContext,
): Promise<void> {
  const { query } = exchange;
  if (!query.has("id")) query.required("id");
  const id = idOf(exchange, "id");
  const type = query.get("type") ?? "";
  if (type === "") throw missingValue("type");
  if (isBackup(type)) {
    const index = await server.backups.periodic.delete(database, id ?? 0);
    exchange.replyJson(200, { RaftCommandIndex: index, TaskId: id ?? 0 });
    return;
  }
  const kind = taskKindOf(type);
  if (kind !== undefined) {
    await changeDefinition(exchange, { database, server }, (record) =>
      withoutDefinition(record, kind, id ?? 0),
    );
    return;
  }
  requireKind(type);
  const name = query.get("taskName");
  if (!name && id === undefined) throw nameless();
  await database.subscriptions.delete({ id, name });
  const index = await server.commandIndex.next();
  exchange.replyJson(200, { RaftCommandIndex: index, TaskId: id ?? 0 });
}

async function changeDefinition(
  exchange: Exchange,
  { database, server }: Pick<DatabaseContext, "database" | "server">,
  change: (record: JsonObject) => JsonObject,
): Promise<void> {
  const index = await server.commandIndex.next();
  await database.changeSettings((record) => ({ ...change(record), ChangedIndex: index }));
  const id = idOf(exchange, exchange.query.has("key") ? "key" : "id") ?? 0;
  exchange.replyJson(200, { RaftCommandIndex: index, TaskId: id });
}

function infoOf(exchange: Exchange, database: Database, task: SubscriptionTask): JsonObject {
  const isActive = database.subscriptions.workersOf(task.name).length > 0;
  return {
    TaskId: task.id,
    TaskType: "Subscription",
    ResponsibleNode: {
      NodeTag: database.nodeTag,
      NodeUrl: exchange.baseUrl,
      ResponsibleNode: null,
    },
    TaskState: task.isDisabled ? "Disabled" : "Enabled",
    TaskConnectionStatus: isActive ? "Active" : "NotActive",
    TaskName: task.name,
    MentorNode: task.mentorNode,
    PinToMentorNode: task.isPinnedToMentor,
    Error: null,
    Query: task.query,
    SubscriptionName: task.name,
    SubscriptionId: task.id,
    ArchivedDataProcessingBehavior: task.archivedBehavior,
    ChangeVectorForNextBatchStartingPoint: task.changeVector,
    ChangeVectorForNextBatchStartingPointPerShard: null,
    LastBatchAckTime: timeOf(task.acknowledgedAt),
    Disabled: task.isDisabled,
    LastClientConnectionTime: timeOf(task.connectedAt),
  };
}

/** 0 means no id, as when it is absent. */
function idOf({ query }: Exchange, name: string): number | undefined {
  return query.long(name, 0) || undefined;
}

function hasId(database: Database, id: number | undefined): boolean {
  return database.subscriptions.list().some((task) => task.id === id);
}

function isSubscription(type: string): boolean {
  return type.toLowerCase() === "subscription";
}

function isBackup(type: string): boolean {
  return type.toLowerCase() === "backup";
}

function requireKind(type: string): void {
  if (isSubscription(type)) return;
  throw new EngineError(
    "invalid-argument",
    `Unknown task type: ${type} (this server has subscriptions, backups, and definitions of ETL and queue sinks)`,
  );
}

function missingValue(name: string): EngineError {
  return new EngineError(
    "invalid-argument",
    `Query string value '${name}' must have a non empty value`,
  );
}

function nameless(): EngineError {
  return new EngineError("raft-apply", "Value cannot be null or empty. Param: subscriptionName");
}
