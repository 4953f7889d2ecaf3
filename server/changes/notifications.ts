/**
 * Notifications for people, in the shapes of RavenDB 7.2.7: its Studio receives them over web sockets, for a database or
 * the server. Progress is omitted for a slow socket; the end of every operation is sent.
 */

import { formatTimestamp } from "../../engine/base/timestamp.ts";
import type { Database, OperationInfo } from "../../engine/engine.ts";
import { operationReply, operationText } from "../databases/operation-reply.ts";
import type { MessageSocket } from "../http/message-socket.ts";

const everyMs = 1000;
/** Number of unsent bytes in a socket beyond which progress is omitted. */
const waitingBytesMax = 1024 * 1024;

interface Notification {
  readonly id: string;
  readonly type: string;
  readonly database: string | null;
  readonly severity?: "None" | "Info" | "Success" | "Error";
  readonly title?: string | null;
  readonly message?: string | null;
}

/** Returns the first members of every notification. */
function headOf({
  id,
  type,
  database,
  severity = "None",
  title = null,
  message = null,
}: Notification) {
  return {
    Id: id,
    CreatedAt: formatTimestamp(Date.now() * 1000),
    Type: type,
    Title: title,
    Message: message,
    Severity: severity,
    IsPersistent: false,
    Database: database,
  };
}

/** Sends the running operations, then each change of an operation, and the statistics of the database when they change. */
export function watchDatabase(socket: MessageSocket, database: Database): void {
  const tell = (info: OperationInfo) => sendOperation(socket, info, database.name);
  for (const info of database.operations.list()) if (info.state.status === "running") tell(info);
  const changed = new Map<string, string>();
  const ends = [
    database.operations.listen(tell),
    database.changes.listen((change) => changed.set(change.collection, change.changeVector ?? "")),
    database.changes.listenToEnd(() => socket.close(1001, "The database serves no longer.")),
  ];
  const timer = setInterval(() => {
    if (changed.size === 0 || socket.bufferedAmount > waitingBytesMax) return;
    socket.send(JSON.stringify(figuresOf(database, changed)));
    changed.clear();
  }, everyMs);
  timer.unref();
  socket.once("close", () => {
    clearInterval(timer);
    for (const end of ends) end();
  });
}

interface WatchedServer {
  /** The names of databases that the caller may see. */
  names(): readonly string[];
  /** This server's members of `ClusterTopologyChanged`. */
  readonly topology: object;
  readonly operations: Database["operations"];
}

/** Sends the topology, the server's operations, and created or deleted databases. */
export function watchServer(socket: MessageSocket, server: WatchedServer): void {
  const type = "ClusterTopologyChanged";
  const title = "Cluster topology was changed";
  const head = headOf({ id: type, type, database: null, severity: "Info", title });
  socket.send(JSON.stringify({ ...head, ...server.topology }));
  const stop = server.operations.listen((info) => sendOperation(socket, info, null));
  let known = new Set(server.names());
  const timer = setInterval(() => {
    const names = new Set(server.names());
    for (const name of names) if (!known.has(name)) sendDatabase(socket, name, "Put");
    for (const name of known) if (!names.has(name)) sendDatabase(socket, name, "Delete");
    known = names;
  }, everyMs);
  timer.unref();
  socket.once("close", () => {
    clearInterval(timer);
    stop();
  });
}

function sendDatabase(socket: MessageSocket, name: string, change: "Put" | "Delete"): void {
  const type = "DatabaseChanged";
  const head = headOf({ id: `${type}/${change}/${name}`, type, database: name });
  socket.send(JSON.stringify({ ...head, DatabaseName: name, ChangeType: change }));
}

const severities = {
  running: "None",
  completed: "Success",
  failed: "Error",
  cancelled: "None",
} as const;

function sendOperation(socket: MessageSocket, info: OperationInfo, database: string | null): void {
  const isRunning = info.state.status === "running";
  // RavenDB's Studio reads the progress of these without a check for null.
  const isEarly = info.state.status === "running" && info.state.progress === null;
  if (isEarly && progressing.has(info.kind)) return;
  if (isRunning && socket.bufferedAmount > waitingBytesMax) return;
  const { Description, State } = operationReply(info) as {
    Description: Record<string, unknown>;
    State: unknown;
  };
  const type = "OperationChanged";
  const notification = {
    ...headOf({
      id: `${type}/${info.id}`,
      type,
      database,
      severity: severities[info.state.status],
      title: titles[info.kind] ?? info.kind,
      message: info.description,
    }),
    OperationId: info.id,
    State,
    Killable: isRunning,
    TaskType: Description["TaskType"],
    StartTime: Description["StartTime"],
    EndTime: Description["EndTime"],
    DetailedDescription: Description["DetailedDescription"],
  };
  socket.send(operationText(notification));
}

const progressing: ReadonlySet<string> = new Set([
  "DatabaseExport",
  "DatabaseImport",
  "DatabaseBackup",
  "DatabaseRestore",
]);

const titles: Readonly<Record<string, string>> = {
  UpdateByQuery: "Update by Query",
  DeleteByQuery: "Delete by Query",
  DatabaseExport: "Database Export",
  DatabaseImport: "Database Import",
  DatabaseBackup: "Database Backup",
  DatabaseRestore: "Database Restore",
  DatabaseCompact: "Database Compaction",
  BulkInsert: "Bulk Insert",
  CertificateGeneration: "Certificate generation",
};

/** `changed` contains collections with the newest change vectors of their documents. */
function figuresOf(database: Database, changed: ReadonlyMap<string, string>): object {
  const indexes = database.indexes.listDetails();
  const counts = new Map(
    database.statistics.collections().map(({ name, documents }) => [name, documents]),
  );
  const errors = indexes.flatMap((index) => index.errors);
  const lastErrorAt = Math.max(0, ...errors.map(({ atMicros }) => atMicros));
  return {
    ...headOf({
      id: "",
      type: "DatabaseStatsChanged",
      database: database.name,
      severity: "Info",
    }),
    CountOfConflicts: 0,
    CountOfDocuments: database.documents.count,
    CountOfIndexes: indexes.length,
    CountOfStaleIndexes: indexes.filter(({ isStale }) => isStale).length,
    LastEtag: database.lastEtag,
    GlobalChangeVector: database.changeVector,
    CountOfIndexingErrors: errors.length,
    CountOfEtlTasksErrors: 0,
    CountOfAiTasksErrors: 0,
    CountOfCdcSinkTasksErrors: 0,
    LastIndexingErrorTime: lastErrorAt === 0 ? null : formatTimestamp(lastErrorAt),
    ModifiedCollections: [...changed].map(([name, changeVector]) => ({
      Name: name,
      Count: counts.get(name) ?? 0,
      LastDocumentChangeVector: changeVector,
    })),
    CountOfRevisions: database.statistics.counts().CountOfRevisionDocuments,
  };
}
