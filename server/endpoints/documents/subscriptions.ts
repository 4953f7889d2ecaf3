/**
 * Subscription tasks over HTTP: create, update, list, drop. Their documents are sent over TCP, see tcp-server.ts.
 * Shapes and texts are those of RavenDB 7.2.7.
 */

import { EngineError, invalidArgument } from "../../../engine/base/errors.ts";
import { formatTimestamp } from "../../../engine/base/timestamp.ts";
import {
  archivedBehaviors,
  type Database,
  type SubscriptionChoice,
  type SubscriptionSettings,
  type SubscriptionTask,
  subscriptionClosed,
} from "../../../engine/engine.ts";
import type { Exchange } from "../../http/exchange.ts";
import { type JsonObject, jsonBody } from "../../http/json-body.ts";
import { RequestError } from "../../http/request-error.ts";
import { StreamedReply } from "../../http/streamed-reply.ts";
import type { DatabaseContext, Route } from "../../routing/route.ts";
import { includesMember } from "../../subscriptions/subscription-messages.ts";
import { replyMetadata } from "../server/server-info.ts";

const path = "/databases/:database/subscriptions";
const int32Max = 2_147_483_647;
/** Seconds that a trial run searches for documents by default. */
const trialSeconds = 15;

export const subscriptionRoutes: readonly Route[] = [
  {
    kind: "database",
    method: "GET",
    path,
    access: "read",
    inPackage: true,
    copies: "leader",
    handle: getSubscriptions,
  },
  { kind: "database", method: "PUT", path, access: "write", handle: putSubscription },
  { kind: "database", method: "DELETE", path, access: "write", handle: deleteTask },
  {
    kind: "database",
    method: "GET",
    path: `${path}/state`,
    access: "read",
    copies: "leader",
    handle: getState,
  },
  {
    kind: "database",
    method: "GET",
    path: `${path}/connection-details`,
    access: "read",
    copies: "leader",
    handle: getConnections,
  },
  { kind: "database", method: "POST", path: `${path}/update`, access: "write", handle: postUpdate },
  { kind: "database", method: "POST", path: `${path}/drop`, access: "write", handle: postDrop },
  { kind: "database", method: "POST", path: `${path}/try`, access: "write", handle: postTry },
];

/** GET subscriptions?name=…|id=…&running=…&start=…&pageSize=…: `{"Results":[…]}` ordered by name */
function getSubscriptions(exchange: Exchange, { database, server }: DatabaseContext): void {
  const { query } = exchange;
  const name = query.get("name");
  const id = query.long("id", undefined);
  const { subscriptions } = database;
  const isChosen = Boolean(name) || id !== undefined;
  const start = query.int("start", 0);
  const pageSize = query.int("pageSize", int32Max);
  const isRunning = query.bool("running", false);
  const chosen = isChosen ? [subscriptions.get({ id, name })] : subscriptions.list();
  const wanted = chosen.filter(
    (task) => !isRunning || subscriptions.workersOf(task.name).length > 0,
  );
  const page = start < 0 || pageSize < 0 ? [] : wanted.slice(start, start + pageSize);
  exchange.replyJson(200, {
    "@metadata": replyMetadata(server),
    Results: page.map((task) => detailsOf(database, task)),
  });
}

/** PUT subscriptions?id=…: 201, `{"Name":…,"RaftCommandIndex":n}` */
async function putSubscription(
  exchange: Exchange,
  { database, server }: DatabaseContext,
): Promise<void> {
  const id = exchange.query.long("id", undefined);
  const settings = settingsOf(await jsonBody(exchange));
  const index = await server.commandIndex.next();
  const task = await database.subscriptions.put(settings, index, id);
  exchange.replyJson(201, { Name: task.name, RaftCommandIndex: index });
}

/** DELETE subscriptions?taskName=…: 204, even when it does not exist */
async function deleteTask(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const [name = "", ...more] = exchange.query.all("taskName");
  if (more.length > 0)
    throw invalidArgument("Query string value 'taskName' must appear exactly once");
  if (name === "")
    throw invalidArgument("Query string value 'taskName' must have a non empty value");
  await database.subscriptions.delete({ name });
  exchange.reply(204);
}

/** GET subscriptions/state?name=…: the stored task; 400 without a name (RavenDB 7.2.7 gives no reason) */
function getState(exchange: Exchange, { database }: DatabaseContext): void {
  const name = exchange.query.requiredFirst("name");
  exchange.replyJson(200, stateOf(database, database.subscriptions.get({ name })));
}

/** GET subscriptions/connection-details?name=…: the connected workers */
function getConnections(exchange: Exchange, { database }: DatabaseContext): void {
  const workers = database.subscriptions.workersOf(exchange.query.required("name"));
  const isShared = workers.some(({ strategy }) => strategy === "Concurrent");
  const mode = isShared ? "Concurrent" : "Single";
  exchange.replyJson(200, {
    Results: workers.map(({ client, workerId, strategy }) => ({
      ClientUri: client,
      WorkerId: workerId,
      Strategy: strategy,
    })),
    SubscriptionMode: workers.length === 0 ? "None" : mode,
  });
}

/** POST subscriptions/update: 201 as PUT, 304 when nothing changes; `CreateNew` creates it when missing */
async function postUpdate(
  exchange: Exchange,
  { database, server }: DatabaseContext,
): Promise<void> {
  const body = await jsonBody(exchange);
  const settings = settingsOf(body);
  const id = typeof body["Id"] === "number" ? body["Id"] : undefined;
  const choice = { id, name: settings.name };
  const { subscriptions } = database;
  const index = await server.commandIndex.next();
  const known = body["CreateNew"] === true ? find(database, choice) : subscriptions.get(choice);
  if (known === undefined) {
    const task = await subscriptions.put(settings, index, id);
    exchange.replyJson(201, { Name: task.name, RaftCommandIndex: index });
    return;
  }
  const { task, isChanged } = await subscriptions.update(choice, settings, index);
  if (isChanged) exchange.replyJson(201, { Name: task.name, RaftCommandIndex: index });
  else exchange.reply(304);
}

/** POST subscriptions/drop?name=…|id=…&workerId=…: 204; closes the connections of its workers */
function postDrop(exchange: Exchange, { database }: DatabaseContext): void {
  const { query, connection } = exchange;
  const id = query.long("id", undefined);
  const name = query.get("name") || undefined;
  if (id === undefined && name === undefined) {
    throw new RequestError(
      400,
      "System.ArgumentNullException",
      "Must receive either subscription id or subscription name in order to provide subscription data",
    );
  }
  const task = database.subscriptions.get(name === undefined ? { id } : { name });
  const { remoteAddress, identity } = connection;
  const reason = `Dropped by API request (request ip:${remoteAddress}, cert:${identity.label})`;
  const workerId = query.get("workerId") || undefined;
  database.subscriptions.drop(task.name, workerId, subscriptionClosed(reason, false));
  exchange.reply(204);
}

/** POST subscriptions/try?pageSize=…&timeLimit=…: `{"Results":[…],"Includes"?:{…}}` that the query would send */
async function postTry(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const { query = "", changeVector = null } = settingsOf(await jsonBody(exchange));
  database.subscriptions.checkQuery(query);
  exchange.query.required("pageSize");
  const count = exchange.query.int("pageSize", 1);
  const seconds = exchange.query.int("timeLimit", trialSeconds);
  const { items, includes } = await database.subscriptions.try(
    query,
    changeVector,
    count,
    Math.max(1, seconds) * 1000,
  );
  const reply = new StreamedReply(exchange, 200);
  reply.text.addText('{"Results":[');
  for (const [position, item] of items.entries()) {
    if (position > 0) reply.text.addText(",");
    reply.text.addBytes(item);
    await reply.flush();
  }
  reply.text.addText("]");
  const included = includesMember(includes);
  if (included !== null) reply.text.addText(`,${included}`);
  reply.text.addText("}");
  await reply.end();
}

function find(database: Database, choice: SubscriptionChoice): SubscriptionTask | undefined {
  try {
    return database.subscriptions.get(choice);
  } catch (error) {
    if (error instanceof EngineError && error.code === "subscription-missing") return undefined;
    throw error;
  }
}

/** The settings of a task in a body. Members of a wrong type are ignored. @throws EngineError invalid-format */
function settingsOf(body: JsonObject): SubscriptionSettings {
  const text = (name: string) => {
    const value = body[name];
    return typeof value === "string" ? value : undefined;
  };
  const flag = (name: string) => {
    const value = body[name];
    return typeof value === "boolean" ? value : undefined;
  };
  const archived = text("ArchivedDataProcessingBehavior");
  const archivedBehavior = archivedBehaviors.find((one) => one === archived);
  if (archived !== undefined && archivedBehavior === undefined) {
    throw new EngineError(
      "invalid-format",
      `Could not convert '${archived}' to ArchivedDataProcessingBehavior: it is one of ${archivedBehaviors.join(", ")}`,
    );
  }
  return {
    name: text("Name"),
    query: text("Query"),
    changeVector: text("ChangeVector"),
    isDisabled: flag("Disabled"),
    mentorNode: text("MentorNode"),
    isPinnedToMentor: flag("PinToMentorNode"),
    archivedBehavior,
  };
}

function stateOf(database: Database, task: SubscriptionTask): JsonObject {
  return {
    Query: task.query,
    ChangeVectorForNextBatchStartingPoint: task.changeVector,
    SubscriptionId: task.id,
    SubscriptionName: task.name,
    MentorNode: task.mentorNode,
    PinToMentorNode: task.isPinnedToMentor,
    NodeTag: task.connectedAt === null ? null : database.nodeTag,
    LastBatchAckTime: timeOf(task.acknowledgedAt),
    LastClientConnectionTime: timeOf(task.connectedAt),
    Disabled: task.isDisabled,
    ArchivedDataProcessingBehavior: task.archivedBehavior,
    RaftCommandIndex: task.index,
  };
}

function detailsOf(database: Database, task: SubscriptionTask): JsonObject {
  const { subscriptions } = database;
  return {
    SubscriptionId: task.id,
    SubscriptionName: task.name,
    ChangeVectorForNextBatchStartingPoint: task.changeVector,
    ShardingState: null,
    Query: task.query,
    Disabled: task.isDisabled,
    LastClientConnectionTime: timeOf(task.connectedAt),
    LastBatchAckTime: timeOf(task.acknowledgedAt),
    MentorNode: task.mentorNode,
    PinToMentorNode: task.isPinnedToMentor,
    ArchivedDataProcessingBehavior: task.archivedBehavior,
    Connections: subscriptions
      .workersOf(task.name)
      .map(({ client, strategy }) => connectionOf(client, strategy)),
    RecentConnections: [],
    RecentRejectedConnections: [],
    CurrentPendingConnections: subscriptions
      .pendingOf(task.name)
      .map(({ client, strategy }) => connectionOf(client, strategy)),
  };
}

function connectionOf(client: string, strategy: string): JsonObject {
  return { ClientUri: client, Strategy: strategy, ConnectionException: null };
}

/** Formats a timestamp of a task. */
export function timeOf(micros: number | null): string | null {
  return micros === null ? null : formatTimestamp(micros);
}
