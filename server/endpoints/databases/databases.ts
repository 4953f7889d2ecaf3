/**
 * Databases: create, delete, list, their records, states and topology. Shapes and texts are those of RavenDB 7.2.7.
 */

import { foldedName } from "../../../engine/base/case-folding.ts";
import { checkDatabaseName } from "../../../engine/base/database-name.ts";
import { type Database, EngineError } from "../../../engine/engine.ts";
import type { ClusterView, ReplicaState } from "../../cluster/cluster-view.ts";
import {
  databaseTopology,
  fullRecord,
  type KeptRecord,
  keptRecord,
  recordOf,
  restoringState,
} from "../../databases/database-record.ts";
import { dateText, humaneSize } from "../../http/dates.ts";
import type { Exchange } from "../../http/exchange.ts";
import { type CapturedReply, InternalExchange } from "../../http/internal-exchange.ts";
import { type JsonObject, jsonBody } from "../../http/json-body.ts";
import { databaseMissing, forbidden, RequestError } from "../../http/request-error.ts";
import { interfaceVersion, noContentType } from "../../http/response.ts";
import type { Context, DatabaseContext, Route } from "../../routing/route.ts";
import type { ServerServices } from "../../routing/services.ts";
import { hasPermission, refusalMessage } from "../../security/access.ts";
import {
  createElsewhere,
  deleteCopies,
  isLost,
  listRows,
  membersOfNew,
  namesFor,
  recordElsewhere,
  tagsIn,
} from "../cluster/cluster-databases.ts";
import { callPeer, replyWith } from "../cluster/peer-calls.ts";
import {
  addressesOf,
  clientTopology,
  clusterNodesTopology,
  copyCount,
  createdNodes,
  nodesTopology,
  recordNodes,
} from "./database-nodes.ts";

const admin = "/admin/databases";

export const databaseRoutes: readonly Route[] = [
  { kind: "server", method: "GET", path: "/databases", access: "valid-user", handle: getDatabases },
  { kind: "server", method: "GET", path: "/topology", access: "valid-user", handle: getTopology },
  {
    kind: "server",
    method: "GET",
    path: admin,
    access: "operator",
    copies: "any",
    about: "name",
    handle: getRecord,
  },
  {
    kind: "server",
    method: "PUT",
    path: admin,
    access: "operator",
    copies: (exchange) => (recordIndexOf(exchange) === undefined ? "here" : "leader"),
    about: "name",
    handle: putDatabase,
  },
  { kind: "server", method: "DELETE", path: admin, access: "operator", handle: deleteDatabases },
  {
    kind: "server",
    method: "POST",
    path: `${admin}/enable`,
    access: "operator",
    copies: "leader",
    about: "name",
    handle: enable,
  },
  {
    kind: "server",
    method: "POST",
    path: `${admin}/disable`,
    access: "operator",
    copies: "leader",
    about: "name",
    handle: disable,
  },
  {
    kind: "server",
    method: "POST",
    path: `${admin}/set-lock`,
    access: "operator",
    copies: "leader",
    about: "name",
    handle: setLock,
  },
  {
    kind: "database",
    method: "GET",
    path: "/databases/:database/admin/record",
    access: "database-admin",
    whenDisabled: true,
    inPackage: true,
    handle: getAdminRecord,
  },
];

/** GET /databases?namesOnly&name&start&pageSize: the databases that the caller may see */
async function getDatabases(exchange: Exchange, { server }: Context): Promise<void> {
  const { query, identity } = exchange;
  const wanted = query.get("name");
  let names = namesFor(exchange, server).filter((name) => hasPermission(identity, name, 1));
  if (wanted !== undefined) {
    names = names.filter((name) => foldedName(name) === foldedName(wanted));
    if (names.length === 0) {
      exchange.reply(404, {
        "database-missing": encodeURIComponent(wanted),
        "content-type": noContentType,
      });
      return;
    }
  }
  const start = Math.max(0, query.int("start", 0));
  names = names.slice(start, start + Math.max(0, query.int("pageSize", names.length)));
  if (query.bool("namesOnly", false)) {
    exchange.replyJson(200, { Databases: names });
    return;
  }
  const describe = (database: Database) => rowOf(server, database);
  const broken = (name: string, reason: string) => brokenRow(server, name, reason);
  const list = { names, path: "/databases", describe, outline: outlineOf, broken };
  const rows = await listRows(exchange, server, list);
  exchange.replyJson(200, { Databases: rows });
}

function rowOf(server: ServerServices, database: Database): JsonObject {
  const record = recordOf(database);
  const bytes = database.sizeBytes;
  return {
    Name: database.name,
    TotalSize: { HumaneSize: humaneSize(bytes), SizeInBytes: bytes },
    TempBuffersSize: { HumaneSize: "0 Bytes", SizeInBytes: 0 },
    Alerts: 0,
    PerformanceHints: 0,
    IndexingErrors: 0,
    TasksErrors: null,
    DocumentsCount: database.statistics.counts().CountOfDocuments,
    IndexingStatus: "Running",
    Disabled: database.isDisabled,
    LockMode: record["LockMode"] ?? "Unlock",
    IsAdmin: true,
    IsEncrypted: false,
    RejectClients: false,
    HasRevisionsConfiguration: record["Revisions"] !== undefined,
    HasExpirationConfiguration: record["Expiration"] !== undefined,
    HasRefreshConfiguration: record["Refresh"] !== undefined,
    HasDataArchivalConfiguration: false,
    IndexesCount: database.indexes.definitionCount,
    NodesTopology: nodesTopology(server, database, server.address.url),
    ReplicationFactor: copyCount(server, database.name),
    DynamicNodesDistribution: false,
    DeletionInProgress: {},
    Environment: "None",
  };
}

/** Statistics of a database of which only the name is known here. */
const noFigures: JsonObject = {
  TotalSize: null,
  TempBuffersSize: null,
  Alerts: null,
  PerformanceHints: null,
  IndexingErrors: null,
  TasksErrors: null,
  DocumentsCount: null,
  IndexingStatus: null,
};

/** As `rowOf`, for a database that cannot be opened. */
function brokenRow(server: ServerServices, name: string, LoadError: string): JsonObject {
  const { nodeTag } = server.config;
  return {
    Name: name,
    ...noFigures,
    Disabled: false,
    LoadError,
    LockMode: "Unlock",
    IsAdmin: true,
    IsEncrypted: false,
    IndexesCount: null,
    NodesTopology: nodesTopology(server, { name, nodeTag }, server.address.url),
    ReplicationFactor: copyCount(server, name),
    DynamicNodesDistribution: false,
    DeletionInProgress: {},
    Environment: "None",
  };
}

/** As `rowOf`, for a database that no responding node describes. */
function outlineOf(cluster: ClusterView, state: ReplicaState): JsonObject {
  const { name, initialRecord, members } = state.registered;
  return {
    Name: name,
    ...noFigures,
    Disabled: initialRecord["Disabled"] === true,
    LockMode: initialRecord["LockMode"] ?? "Unlock",
    IsAdmin: true,
    IsEncrypted: false,
    NodesTopology: clusterNodesTopology(cluster, state),
    ReplicationFactor: members.length,
    DynamicNodesDistribution: false,
    DeletionInProgress: {},
    Environment: "None",
  };
}

/** GET /topology?name: the nodes of the database; 503 with Database-Missing if it does not exist */
async function getTopology(exchange: Exchange, { server }: Context): Promise<void> {
  const name = exchange.query.required("name");
  if (!hasPermission(exchange.identity, name, 1)) {
    throw forbidden(refusalMessage(exchange.identity, undefined, name));
  }
  const { cluster } = server;
  const state = cluster?.find(name);
  if (cluster !== undefined && state !== undefined) {
    exchange.replyJson(200, clientTopology(cluster, state));
    return;
  }
  const database = await server.databases.find(name);
  if (database === undefined) {
    replyMissing(exchange, 503, name);
    return;
  }
  exchange.replyJson(200, {
    Promotables: [],
    Nodes: [
      {
        Url: exchange.baseUrl,
        ClusterTag: database.nodeTag,
        ServerRole: "Member",
        Database: database.name,
        ServerVersion: interfaceVersion,
      },
    ],
    Etag: recordOf(database).CreatedIndex,
  });
}

function replyMissing(exchange: Exchange, status: number, name: string): void {
  exchange.replyJson(
    status,
    { Type: "Error", Message: `Database ${name} wasn't found` },
    { "database-missing": encodeURIComponent(name) },
  );
}

/** GET /admin/databases?name: the record */
async function getRecord(exchange: Exchange, { server }: Context): Promise<void> {
  const name = exchange.query.required("name");
  const database = await server.databases.find(name);
  if (database === undefined) replyMissing(exchange, 404, name);
  else exchange.replyJson(200, fullRecord(database, recordNodes(server, database)));
}

/** GET admin/record: the record of the database */
function getAdminRecord(exchange: Exchange, { database, server }: DatabaseContext): void {
  exchange.replyJson(200, fullRecord(database, recordNodes(server, database)));
}

/** Returns the index that a record to be replaced must have, as text, or undefined for a new database. */
function recordIndexOf(exchange: Exchange): string | undefined {
  return /^"?(\d+)"?$/.exec(exchange.header("etag") ?? "")?.[1];
}

/** PUT /admin/databases?name&replicationFactor, ETag: creates a database, or replaces its record (numeric ETag) */
async function putDatabase(exchange: Exchange, { server }: Context): Promise<void> {
  exchange.query.int("replicationFactor", 1);
  const sent = await jsonBody(exchange);
  const name = sent["DatabaseName"];
  if (typeof name !== "string") {
    throw new RequestError(
      400,
      "System.NullReferenceException",
      "The record has no 'DatabaseName'.",
    );
  }
  checkDatabaseName(name);
  const expected = recordIndexOf(exchange);
  const made =
    expected === undefined
      ? await createDatabase(exchange, server, name, sent)
      : await replaceDatabase(server, name, sent, Number(expected));
  if (made === null) return; // another node has replied
  const { database, index } = made;
  await server.backups.periodic.recordChanged(database);
  exchange.replyJson(201, {
    RaftCommandIndex: index,
    Name: database.name,
    Topology: databaseTopology(database, false, createdNodes(server, database)),
    NodesAddedTo: addressesOf(server, database) ?? [exchange.baseUrl],
    ShardsDefined: false,
  });
}

interface Made {
  readonly database: Database;
  readonly index: number;
}

async function createDatabase(
  exchange: Exchange,
  server: ServerServices,
  name: string,
  sent: JsonObject,
): Promise<Made | null> {
  const { cluster } = server;
  const nodes = cluster === undefined ? null : await membersOfNew(cluster, exchange, sent);
  // An existing name is refused here.
  const isNew = cluster?.find(name) === undefined;
  if (nodes !== null && isNew && (await createElsewhere(exchange, server, sent, nodes)))
    return null;
  const index = await server.commandIndex.next();
  const kept = keptRecord(name, sent, undefined, index, dateText(new Date()));
  const database =
    cluster === undefined || nodes === null
      ? await server.databases.create(name, kept)
      : await cluster.createDatabase(name, kept, nodes.members);
  return { database, index };
}

async function replaceDatabase(
  server: ServerServices,
  name: string,
  sent: JsonObject,
  expected: number,
): Promise<Made> {
  const index = await server.commandIndex.next();
  const database = await server.databases.find(name);
  if (database === undefined) throw databaseMissing(name);
  await replaceRecord(database, sent, expected, index);
  return { database, index };
}

async function replaceRecord(
  database: Database,
  sent: JsonObject,
  expected: number,
  index: number,
): Promise<void> {
  await database.changeSettings((record) => {
    const previous = record as KeptRecord;
    if (previous.ChangedIndex !== expected) {
      throw new RequestError(
        409,
        "Raven.Server.Rachis.RachisConcurrencyException",
        `Concurrency violation, the database ${database.name} has etag ${previous.ChangedIndex} but was expecting ${expected}`,
      );
    }
    return keptRecord(database.name, sent, previous, index, "");
  });
}

/** DELETE /admin/databases `{"DatabaseNames":[…],"FromNodes":["A"]}`: deletes databases and their files, or copies of them */
async function deleteDatabases(exchange: Exchange, { server }: Context): Promise<void> {
  const body = await jsonBody(exchange);
  const names = namesOf(body);
  exchange.changedNames = names;
  if (server.cluster !== undefined) {
    await deleteFromNodes(exchange, server, names, body);
    return;
  }
  let deleted = false;
  const found = await Promise.all(names.map((name) => server.databases.find(name)));
  for (const database of found) if (database !== undefined) checkDeletable(database);
  for (const database of found) {
    if (database === undefined) continue;
    if (recordOf(database)["LockMode"] === "PreventDeletesIgnore") continue;
    deleted = (await server.databases.delete(database.name)) || deleted;
  }
  const index = deleted ? await server.commandIndex.next() : -1;
  exchange.replyJson(200, { RaftCommandIndex: index, PendingDeletes: [] });
}

/** @throws EngineError invalid-operation */
function checkDeletable(database: Database): void {
  const { LockMode: lock, DatabaseState: state } = recordOf(database);
  if (state === restoringState) {
    throw new EngineError(
      "invalid-operation",
      `Can't delete database '${database.name}' while the restore process is in progress. In order to delete the database, you need cancel the restore task first`,
    );
  }
  if (lock === "PreventDeletesError") {
    throw new EngineError(
      "invalid-operation",
      `Database '${database.name}' cannot be deleted because of the set lock mode ('PreventDeletesError'). Please consider changing the lock mode before deleting the database.`,
    );
  }
}

/** Deletes each database through a node with a copy, because the record determines whether it may be deleted. */
async function deleteFromNodes(
  exchange: Exchange,
  server: ServerServices,
  names: readonly string[],
  body: JsonObject,
): Promise<void> {
  let index = -1;
  const pending = new Set<string>();
  for (const name of names) {
    const from = tagsIn(body["FromNodes"]);
    const lost = isLost(server.cluster, name, from);
    const elsewhere = lost ? null : recordElsewhere(exchange, server, name);
    if (elsewhere !== null) {
      const { method, target } = exchange;
      const request = { ...body, DatabaseNames: [name] };
      const answer = await callPeer(exchange, server, elsewhere, { method, target, body: request });
      if (answer.status !== 200) {
        replyWith(exchange, answer);
        return;
      }
      const deletion = JSON.parse(answer.body.toString()) as DeletionReply;
      index = Math.max(index, deletion.RaftCommandIndex);
      for (const tag of deletion.PendingDeletes) pending.add(tag);
      continue;
    }
    const database = await server.databases.find(name);
    if (database !== undefined) {
      checkDeletable(database);
      if (recordOf(database)["LockMode"] === "PreventDeletesIgnore") continue;
    }
    const unconfirmed = await deleteCopies(server, name, from);
    if (unconfirmed === null) continue;
    index = await server.commandIndex.next();
    for (const tag of unconfirmed) pending.add(tag);
  }
  exchange.replyJson(200, { RaftCommandIndex: index, PendingDeletes: [...pending] });
}

interface DeletionReply {
  readonly RaftCommandIndex: number;
  readonly PendingDeletes: readonly string[];
}

/** POST /admin/databases/enable `{"DatabaseNames":[…]}`: enables disabled databases */
function enable(exchange: Exchange, context: Context): Promise<void> {
  return setDisabled(exchange, context, false);
}

/** POST /admin/databases/disable `{"DatabaseNames":[…]}`: closes databases, which reply 503 until they are enabled */
function disable(exchange: Exchange, context: Context): Promise<void> {
  return setDisabled(exchange, context, true);
}

async function setDisabled(
  exchange: Exchange,
  { server }: Context,
  disabled: boolean,
): Promise<void> {
  const body = await jsonBody(exchange);
  const names = namesOf(body);
  exchange.changedNames = names;
  const others = await callLeaders(exchange, server, body, names);
  if (others !== undefined) {
    const rows = others.flatMap((reply) => JSON.parse(reply.body.toString()).Status as unknown[]);
    exchange.replyJson(200, { Status: rows });
    return;
  }
  const rows: JsonObject[] = [];
  for (const name of names) {
    const database = await server.databases.find(name);
    if (database === undefined) {
      rows.push({ Name: name, Success: false, Reason: "database not found" });
      continue;
    }
    await changeRecord(database, await server.commandIndex.next(), { Disabled: disabled });
    rows.push({
      Name: database.name,
      Success: true,
      Disabled: disabled,
      Reason: `Database state=${disabled ? "True" : "False"} was propagated on the cluster`,
    });
  }
  exchange.replyJson(200, { Status: rows });
}

const lockModes: ReadonlySet<string> = new Set([
  "Unlock",
  "PreventDeletesIgnore",
  "PreventDeletesError",
]);

/** POST /admin/databases/set-lock `{"DatabaseNames":[…],"Mode":"…"}`: fails before any change if one is missing */
async function setLock(exchange: Exchange, { server }: Context): Promise<void> {
  const body = await jsonBody(exchange);
  const mode = body["Mode"];
  if (typeof mode !== "string" || !lockModes.has(mode)) {
    throw new EngineError(
      "invalid-format",
      `Could not convert '${String(mode)}' to DatabaseLockMode. Valid values: ${[...lockModes].join(", ")}.`,
    );
  }
  const names = namesOf(body);
  exchange.changedNames = names;
  if (names.length === 0) {
    throw new EngineError("invalid-argument", "Value cannot be null. (Parameter 'DatabaseNames')");
  }
  if ((await callLeaders(exchange, server, body, names)) !== undefined) {
    exchange.reply(204);
    return;
  }
  const databases: Database[] = [];
  for (const name of names) {
    const database = await server.databases.find(name);
    if (database === undefined) throw databaseMissing(name);
    databases.push(database);
  }
  for (const database of databases) {
    await changeRecord(database, await server.commandIndex.next(), { LockMode: mode });
  }
  exchange.reply(204);
}

/**
 * Sends one request per name to the leader of each database, with the parameter `name`, because a database's record is
 * changed by its leader.
 *
 * @returns undefined on a single node, or if this is such a request @throws RequestError of the first failure
 */
async function callLeaders(
  exchange: Exchange,
  server: ServerServices,
  body: JsonObject,
  names: readonly string[],
): Promise<CapturedReply[] | undefined> {
  if (server.cluster === undefined || exchange.query.has("name")) return undefined;
  const replies: CapturedReply[] = [];
  for (const name of names) {
    const inner = new InternalExchange(exchange, {
      method: exchange.method,
      target: `${exchange.path}?name=${encodeURIComponent(name)}`,
      body: Buffer.from(JSON.stringify({ ...body, DatabaseNames: [name] })),
    });
    await server.dispatch(inner);
    const reply = await inner.captureReply();
    if (reply === undefined || reply.status >= 300) throw failureOf(name, reply);
    replies.push(reply);
  }
  return replies;
}

function failureOf(name: string, reply: CapturedReply | undefined): RequestError {
  const { Type, Message } = JSON.parse(reply?.body.toString() ?? "{}") as JsonObject;
  return new RequestError(
    reply?.status ?? 503,
    typeof Type === "string" ? Type : "System.InvalidOperationException",
    typeof Message === "string" ? Message : `The state of database '${name}' is not known.`,
  );
}

async function changeRecord(database: Database, index: number, changes: JsonObject): Promise<void> {
  await database.changeSettings((record) => ({ ...record, ...changes, ChangedIndex: index }));
}

/** Items that are not strings become names that match no database. @throws EngineError invalid-format */
function namesOf(body: JsonObject): string[] {
  const names = body["DatabaseNames"] ?? [];
  if (!Array.isArray(names)) {
    const text = typeof names === "string" ? names : JSON.stringify(names);
    throw new EngineError(
      "invalid-format",
      `Could not convert 'DatabaseNames' ('${text}') to an array of names`,
    );
  }
  return names.map((name) => (typeof name === "string" ? name : JSON.stringify(name)));
}
