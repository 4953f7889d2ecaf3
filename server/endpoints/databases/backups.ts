/**
 * Backups: one-time and periodic backups, restore points, and restores. Shapes and texts are those of RavenDB 7.2.7,
 * except that enabled definitions need no licence.
 */
import { EngineError } from "../../../engine/base/errors.ts";
import type { Database } from "../../../engine/engine.ts";
import type { PeriodicBackup } from "../../backups/backup-configuration.ts";
import { historyOf } from "../../backups/backup-status.ts";
import { dateText, timeSpanText } from "../../http/dates.ts";
import type { Exchange } from "../../http/exchange.ts";
import { type JsonObject, jsonBody } from "../../http/json-body.ts";
import { databaseMissing, forbidden } from "../../http/request-error.ts";
import type { Context, DatabaseContext, Route } from "../../routing/route.ts";
import type { ServerServices } from "../../routing/services.ts";
import { hasPermission, refusalMessage } from "../../security/access.ts";
import { callerName } from "../../security/caller-name.ts";

const admin = "/databases/:database/admin";

export const backupRoutes: readonly Route[] = [
  {
    kind: "database",
    method: "POST",
    path: `${admin}/backup`,
    access: "database-admin",
    handle: postBackup,
  },
  {
    kind: "database",
    method: "POST",
    path: `${admin}/backup/database`,
    access: "database-admin",
    handle: postRun,
  },
  {
    kind: "database",
    method: "POST",
    path: `${admin}/periodic-backup`,
    access: "database-admin",
    handle: postPeriodic,
  },
  {
    kind: "database",
    method: "GET",
    path: `${admin}/periodic-backup/config`,
    access: "database-admin",
    copies: "leader",
    handle: getBackupLimits,
  },
  {
    kind: "server",
    method: "GET",
    path: "/admin/configuration/server-wide",
    access: "operator",
    handle: getBackupLimits,
  },
  {
    kind: "server",
    method: "GET",
    path: "/periodic-backup",
    access: "valid-user",
    copies: "leader",
    about: "name",
    handle: getPeriodic,
  },
  {
    kind: "server",
    method: "GET",
    path: "/periodic-backup/status",
    access: "valid-user",
    copies: "leader",
    about: "name",
    handle: getStatus,
  },
  {
    kind: "server",
    method: "GET",
    path: "/periodic-backup/history",
    access: "valid-user",
    copies: "leader",
    about: "name",
    handle: getHistory,
  },
  {
    kind: "server",
    method: "POST",
    path: "/admin/backup-task/delay",
    access: "operator",
    copies: "leader",
    about: "database",
    handle: postDelay,
  },
  {
    kind: "server",
    method: "POST",
    path: "/admin/restore/points",
    access: "operator",
    handle: postRestorePoints,
  },
  {
    kind: "server",
    method: "POST",
    path: "/admin/restore/database",
    access: "operator",
    handle: postRestore,
  },
  {
    kind: "server",
    method: "POST",
    path: "/admin/backups/verify",
    access: "operator",
    handle: postVerify,
  },
];

/** POST admin/backup `{"BackupType","LocalSettings":{"FolderPath"}}`: `{"OperationId","OperationNodeTag"}` */
async function postBackup(
  exchange: Exchange,
  { database, server }: DatabaseContext,
): Promise<void> {
  const { id } = await server.backups.makeOne(
    database,
    await jsonBody(exchange),
    callerName(server, exchange),
  );
  exchange.replyJson(200, { OperationId: id, OperationNodeTag: database.nodeTag });
}

/** POST admin/backup/database?taskId&isFullBackup&operationId: `{"ResponsibleNode","OperationId"}` */
async function postRun(exchange: Exchange, { database, server }: DatabaseContext): Promise<void> {
  const { query } = exchange;
  const isFull = query.bool("isFullBackup", true);
  const operationId = query.long("operationId", undefined);
  const taskId = requiredTaskId(exchange);
  const { id } = await server.backups.periodic.runNow(
    database,
    taskId,
    isFull,
    operationId,
    callerName(server, exchange),
  );
  exchange.replyJson(200, { ResponsibleNode: database.nodeTag, OperationId: id });
}

/** POST /admin/backup-task/delay?database&taskId&duration: stops a running task, which is due again after the duration; 204 */
async function postDelay(exchange: Exchange, { server }: Context): Promise<void> {
  const { query } = exchange;
  const taskId = requiredTaskId(exchange);
  query.required("duration");
  const ms = query.timeSpanMs("duration", 0);
  if (ms < 0) {
    throw new EngineError(
      "out-of-range",
      "Specified argument was out of the range of valid values. (Parameter 'delay')",
    );
  }
  const database = await databaseNamed(query.required("database"), server);
  server.backups.periodic.delay(database, taskId, ms);
  exchange.reply(204);
}

/** POST admin/periodic-backup: adds a definition, or replaces the one with its `TaskId` */
async function postPeriodic(
  exchange: Exchange,
  { database, server }: DatabaseContext,
): Promise<void> {
  const { index, taskId } = await server.backups.periodic.put(database, await jsonBody(exchange));
  exchange.replyJson(200, { RaftCommandIndex: index, TaskId: taskId });
}

/** GET admin/periodic-backup/config, /admin/configuration/server-wide: restrictions on backups of this server */
function getBackupLimits(exchange: Exchange, { server }: Context): void {
  exchange.replyJson(200, {
    LocalRootPath: server.config.backupRoot ?? null,
    AllowedAwsRegions: null,
    AllowedDestinations: ["Local", "AmazonS3"],
  });
}

/** GET /periodic-backup?name&taskId: the definition */
async function getPeriodic(exchange: Exchange, { server }: Context): Promise<void> {
  const database = await namedDatabase(exchange, server);
  const taskId = requiredTaskId(exchange);
  const task = server.backups.periodic.find(database, taskId);
  if (task === undefined) {
    throw new EngineError("invalid-operation", `Periodic backup task ID: ${taskId} doesn't exist`);
  }
  exchange.replyJson(200, task);
}

/** GET /periodic-backup/status?name&taskId: the last runs; `Status` null before the first */
async function getStatus(exchange: Exchange, { server }: Context): Promise<void> {
  const database = await namedDatabase(exchange, server);
  const status = server.backups.periodic.status(database, requiredTaskId(exchange));
  exchange.replyJson(200, { IsSharded: false, Status: status });
}

/** GET /periodic-backup/history?name&taskId: `{"TaskId","Runs":[…]}`, newest first */
async function getHistory(exchange: Exchange, { server }: Context): Promise<void> {
  const database = await namedDatabase(exchange, server);
  const TaskId = requiredTaskId(exchange);
  exchange.replyJson(200, { TaskId, Runs: server.backups.periodic.runs(database, TaskId) });
}

const restoreTypes = /^(?:local|s3|azure|googlecloud)$/i;

/** POST /admin/restore/points?type=Local `{"FolderPath"}`, or ?type=S3 with S3Settings: `{"List":[…]}` */
async function postRestorePoints(exchange: Exchange, { server }: Context): Promise<void> {
  const type = exchange.query.get("type") ?? "Local";
  if (!restoreTypes.test(type)) {
    throw new EngineError(
      "invalid-argument",
      `Query string '${type}' was not recognized as a valid type`,
    );
  }
  const kind = type.toLowerCase();
  if (kind !== "local" && kind !== "s3") {
    throw new EngineError(
      "not-supported",
      `Restoring from ${type} is not supported. Restore from a folder or from S3.`,
    );
  }
  const sent = await jsonBody(exchange);
  const { FolderPath: path } = sent;
  if (kind === "local" && (typeof path !== "string" || path === "")) {
    throw new EngineError("argument-null", "Value cannot be null. (Parameter 'path')");
  }
  exchange.replyJson(200, { List: await server.backups.restorePoints(kind, sent) });
}

/** POST /admin/restore/database `{"Type","DatabaseName","BackupLocation",…}`: starts an operation of the server */
async function postRestore(exchange: Exchange, { server }: Context): Promise<void> {
  const { id } = await server.backups.restores.start(
    await jsonBody(exchange),
    callerName(server, exchange),
  );
  exchange.replyJson(200, { OperationId: id, OperationNodeTag: server.config.nodeTag });
}

/** POST /admin/backups/verify: as a restore, with `CompareWith`; the result of the operation has `Verification` */
async function postVerify(exchange: Exchange, { server }: Context): Promise<void> {
  const { id } = await server.backups.restores.verify(
    await jsonBody(exchange),
    callerName(server, exchange),
  );
  exchange.replyJson(200, { OperationId: id, OperationNodeTag: server.config.nodeTag });
}

/** Returns the item of a task in the list of tasks. */
export function backupInfo(
  exchange: Exchange,
  server: ServerServices,
  database: Database,
  task: PeriodicBackup,
): JsonObject {
  const { periodic } = server.backups;
  const status = periodic.status(database, task.TaskId);
  const history = historyOf(status);
  const timeText = (ms: number | null) => (ms === null ? null : dateText(new Date(ms)));
  const running = periodic.running(database, task.TaskId);
  const isEnabled = !task.Disabled;
  return {
    TaskId: task.TaskId,
    TaskType: "Backup",
    ResponsibleNode: {
      NodeTag: isEnabled ? database.nodeTag : null,
      NodeUrl: isEnabled ? exchange.baseUrl : null,
      ResponsibleNode: null,
    },
    TaskState: isEnabled ? "Enabled" : "Disabled",
    TaskConnectionStatus: isEnabled ? "Active" : "NotActive",
    TaskName: task.Name,
    MentorNode: task["MentorNode"],
    PinToMentorNode: task["PinToMentorNode"],
    Error: history.error,
    BackupType: task["BackupType"],
    BackupDestinations: destinationNames(task),
    LastFullBackup: timeText(history.lastFullMs),
    LastIncrementalBackup: timeText(history.lastIncrementalMs),
    OnGoingBackup:
      running === undefined
        ? null
        : {
            StartTime: timeText(running.startedMs),
            IsFull: running.isFull,
            RunningBackupTaskId: running.operationId,
          },
    NextBackup: nextInfo(server, database, task),
    RetentionPolicy: task.RetentionPolicy,
    IsEncrypted: task.BackupEncryptionSettings !== null,
    LastExecutingNodeTag: status?.["NodeTag"] ?? null,
    FullBackupFrequency: task.FullBackupFrequency,
    IncrementalBackupFrequency: task.IncrementalBackupFrequency,
    BackupUploadMode: task["BackupUploadMode"],
    HasCloudBackup: task.S3Settings !== null,
  };
}

function destinationNames({ LocalSettings, S3Settings }: PeriodicBackup): string[] {
  return [
    ...(LocalSettings === null ? [] : ["Local"]),
    ...(S3Settings === null ? [] : ["AmazonS3"]),
  ];
}

function nextInfo(
  { backups }: ServerServices,
  database: Database,
  task: PeriodicBackup,
): JsonObject | null {
  const next = backups.periodic.next(database, task);
  if (next === null) return null;
  return {
    TimeSpan: timeSpanText(Math.max(0, next.atMs - Date.now())),
    DateTime: dateText(new Date(next.atMs)),
    IsFull: next.isFull,
    OriginalBackupTime: null,
  };
}

/** @throws RequestError if the database does not exist or the caller may not see it */
async function namedDatabase(
  { query, identity }: Exchange,
  server: ServerServices,
): Promise<Database> {
  const name = query.required("name");
  if (!hasPermission(identity, name, 1)) {
    throw forbidden(refusalMessage(identity, undefined, name));
  }
  return await databaseNamed(name, server);
}

/** @throws RequestError if it does not exist */
async function databaseNamed(name: string, { databases }: ServerServices): Promise<Database> {
  const database = await databases.find(name);
  if (database === undefined) throw databaseMissing(name);
  return database;
}

/** @throws EngineError invalid-argument */
function requiredTaskId({ query }: Exchange): number {
  const id = query.long("taskId", undefined);
  if (id !== undefined) return id;
  throw new EngineError(
    "invalid-argument",
    "Query string taskId is mandatory, but wasn't specified.",
  );
}
