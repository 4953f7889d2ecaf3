/**
 * The dashboard of RavenDB's Studio, over a web socket: a client subscribes to widgets, and receives the data of each at
 * its interval, in the shapes of RavenDB 7.2.7.
 *
 * Invariants:
 * - Only databases that the caller may read are included; none is opened.
 * - Expensive data, such as counts of changes, is collected only for subscribed widgets.
 */
import { platform, release } from "node:os";
import type { Database } from "../../../engine/engine.ts";
import { type LiveFeed, startFeed } from "../../changes/live-feed.ts";
import { recordOf } from "../../databases/database-record.ts";
import { allDefinitions } from "../../databases/etl-definitions.ts";
import { dateText } from "../../http/dates.ts";
import type { Exchange } from "../../http/exchange.ts";
import type { JsonObject } from "../../http/json-body.ts";
import type { MessageSocket } from "../../http/message-socket.ts";
import {
  DiskWatch,
  machineMemory,
  mountPointOf,
  ProcessorWatch,
  RoomWatch,
} from "../../monitoring/machine.ts";
import { Rates } from "../../monitoring/rates.ts";
import type { Context, Route } from "../../routing/route.ts";
import type { ServerServices } from "../../routing/services.ts";
import { hasPermission } from "../../security/access.ts";
import { folderOf, reportTo } from "../server/live-figures.ts";
import { build } from "../server/server-info.ts";

export const clusterDashboardRoutes: readonly Route[] = [
  {
    kind: "websocket",
    method: "GET",
    path: "/cluster-dashboard/watch",
    access: "valid-user",
    connect: watchDashboard,
  },
];

/** Interval of checks for due widgets, in milliseconds. */
const tickMs = 250;
/** Maximum number of widgets per socket: the Studio subscribes to each type once. */
const widgetsMax = 64;

/** The data available to widgets. */
interface Seen {
  readonly server: ServerServices;
  readonly baseUrl: string;
  /** Databases that the caller may see, and those of them that are open. */
  names(): readonly string[];
  opened(): readonly Database[];
}

interface Widget {
  readonly everyMs: number;
  /** Returns the members of its message besides type and time, or null if they are not known yet and must be polled soon. */
  look(): JsonObject | null;
}

interface Shown {
  readonly id: number;
  readonly type: string;
  readonly widget: Widget;
  dueMs: number;
}

/** /cluster-dashboard/watch?node=A: accepts `{"Command":"watch","Id":1,"Type":"CpuUsage"}` and `unwatch`, sends metrics */
function watchDashboard(socket: MessageSocket, exchange: Exchange, { server }: Context): void {
  if (!exchange.query.has("node")) {
    socket.close(1008, "Query string node is mandatory, but wasn't specified.");
    return;
  }
  const shown = new Map<number, Shown>();
  const seen = seenBy(exchange, server);
  const feed: LiveFeed = {
    everyMs: tickMs,
    next: () => dueMessages(shown),
    end: () => shown.clear(),
    report: reportTo(server),
  };
  socket.send(message(-1, "ServerTime", {}));
  socket.on("message", (data) => {
    const problem = command(String(data), shown, seen);
    if (problem !== null) socket.close(1008, problem);
  });
  startFeed(socket, feed);
}

function seenBy({ identity, baseUrl }: Exchange, server: ServerServices): Seen {
  const { databases } = server;
  const isSeen = (name: string) => hasPermission(identity, name, 1);
  return {
    server,
    baseUrl,
    names: () => databases.names().filter(isSeen),
    opened: () => databases.opened().filter(({ name, hasEnded }) => !hasEnded && isSeen(name)),
  };
}

function dueMessages(shown: ReadonlyMap<number, Shown>): string[] {
  const nowMs = performance.now();
  const due = [...shown.values()].filter(({ dueMs }) => dueMs <= nowMs);
  return due.flatMap((one) => {
    const members = one.widget.look();
    if (members === null) return [];
    one.dueMs = nowMs + one.widget.everyMs;
    return [message(one.id, one.type, members)];
  });
}

function message(id: number, type: string, members: JsonObject): string {
  return JSON.stringify({
    Id: id,
    Data: { Type: type, Date: dateText(new Date()), ...members },
  });
}

/** Executes a command. @returns an error message, or null */
function command(text: string, shown: Map<number, Shown>, seen: Seen): string | null {
  const sent = parsed(text);
  const id = sent["Id"];
  if (typeof id !== "number") return "A command needs a numeric 'Id'.";
  shown.delete(id);
  if (sent["Command"] === "unwatch") return null;
  if (sent["Command"] !== "watch") return "'Command' must be 'watch' or 'unwatch'.";
  if (shown.size >= widgetsMax) return `A connection may watch at most ${widgetsMax} widgets.`;
  const type = String(sent["Type"]);
  const make = Object.hasOwn(widgets, type) ? widgets[type] : undefined;
  if (make === undefined) return `The widget '${type.slice(0, 60)}' does not exist.`;
  shown.set(id, { id, type, widget: make(seen), dueMs: 0 });
  return null;
}

function parsed(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as JsonObject) : {};
  } catch {
    return {};
  }
}

/** RavenDB's intervals. */
const fastMs = 1_000;
const usualMs = 3_000;
const slowMs = 10_000;

const widgets: Readonly<Record<string, (seen: Seen) => Widget>> = {
  CpuUsage: processors,
  MemoryUsage: memory,
  IoStats: disk,
  StorageUsage: storage,
  DatabaseStorageUsage: databaseStorage,
  Traffic: traffic,
  DatabaseTraffic: databaseTraffic,
  Indexing: indexing,
  DatabaseIndexing: databaseIndexing,
  DatabaseOverview: overview,
  OngoingTasks: tasks,
  ClusterOverview: node,
  DatabasesNotifications: notifications,
  GcInfo: collections,
};

function processors(): Widget {
  const watch = new ProcessorWatch();
  const look = () => {
    const { process, machine, cores } = watch.look();
    return {
      ProcessCpuUsage: process,
      MachineCpuUsage: machine,
      UtilizedCores: cores,
      NumberOfCores: cores,
    };
  };
  return { everyMs: fastMs, look };
}

function memory(): Widget {
  const look = () => {
    const now = machineMemory();
    return {
      Time: dateText(new Date()),
      LowMemorySeverity: "None",
      PhysicalMemory: now.totalBytes,
      WorkingSet: now.residentBytes,
      ManagedAllocations: now.heapBytes,
      UnmanagedAllocations: now.externalBytes,
      SystemCommitLimit: now.commitLimitBytes,
      EncryptionBuffersInUse: 0,
      EncryptionBuffersPool: 0,
      // Files are read, not mapped, and writes are synced immediately.
      MemoryMapped: 0,
      DirtyMemory: 0,
      AvailableMemory: now.freeBytes,
      AvailableMemoryForProcessing: now.freeBytes,
      TotalSwapUsage: now.swapUsedBytes,
      LuceneManagedTermCacheAllocations: 0,
      LuceneUnmanagedTermCacheAllocations: 0,
      LuceneUnmanagedAllocations: 0,
    };
  };
  return { everyMs: usualMs, look };
}

/** The device with the data. As in RavenDB, data in memory has no items. */
function disk({ server }: Seen): Widget {
  const watch = server.config.runInMemory ? null : new DiskWatch(folderOf(server));
  const look = () => {
    const rates = watch?.look() ?? null;
    if (rates === null) return { Items: [] };
    return {
      Items: [
        {
          Database: "<System>",
          Environment: "Data",
          IoReadOperations: rates.readsPerSecond,
          IoWriteOperations: rates.writesPerSecond,
          ReadThroughputInKb: rates.readBytesPerSecond / 1024,
          WriteThroughputInKb: rates.writtenBytesPerSecond / 1024,
          QueueLength: rates.queueLength,
        },
      ],
    };
  };
  return { everyMs: fastMs, look };
}

function storage({ server }: Seen): Widget {
  if (server.config.runInMemory) return { everyMs: slowMs, look: () => ({ Items: [] }) };
  const folder = folderOf(server);
  const watch = new RoomWatch(folder);
  const look = () => {
    const room = watch.look();
    if (room === undefined) return null;
    if (room === null) return { Items: [] };
    const { totalBytes, freeBytes } = room;
    const used = server.databases.opened().reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    return {
      Items: [
        {
          MountPoint: mountPointOf(folder),
          VolumeLabel: null,
          TotalCapacity: totalBytes,
          FreeSpace: freeBytes,
          IsLowSpace: freeBytes < totalBytes * lowShare,
          RavenSize: used,
          RavenTempBuffersSize: 0,
        },
      ],
    };
  };
  return { everyMs: slowMs, look };
}

/** Share of free space below which RavenDB calls a disk low on space. */
const lowShare = 0.15;

function databaseStorage({ server, opened }: Seen): Widget {
  const look = () => ({
    Items: server.config.runInMemory
      ? []
      : opened().map(({ name, sizeBytes }) => ({
          Database: name,
          Size: sizeBytes,
          TempBuffersSize: 0,
        })),
  });
  return { everyMs: slowMs, look };
}

function traffic({ server, opened }: Seen): Widget {
  const rates = new TrafficRates(server);
  return { everyMs: usualMs, look: () => rates.ofServer(opened()) };
}

function databaseTraffic({ server, opened }: Seen): Widget {
  const rates = new TrafficRates(server);
  const look = () => ({
    Items: opened().map((one) => ({ Database: one.name, ...rates.ofDatabase(one) })),
  });
  return { everyMs: usualMs, look };
}

class TrafficRates {
  readonly #server: ServerServices;
  readonly #requests = new Rates<"requests" | "requestMs">();
  readonly #writes = new Rates<WriteRate>();

  constructor(server: ServerServices) {
    this.#server = server;
  }

  ofServer(databases: readonly Database[]): JsonObject {
    const rates = databases.map((one) => this.#writes.look(one.name, writeCounts(one)));
    const sum = (name: WriteRate) => rates.reduce((all, one) => all + one[name], 0);
    const writes = Object.fromEntries(writeRates.map((name) => [name, sum(name)]));
    return { ...this.#ofRequests("", undefined), ...writes };
  }

  ofDatabase(database: Database): JsonObject {
    const writes = this.#writes.look(database.name, writeCounts(database));
    return { ...this.#ofRequests(database.name, database), ...writes };
  }

  #ofRequests(subject: string, database: Database | undefined): JsonObject {
    const counts = this.#server.monitoring.figures.counts(database) ?? noRequests;
    const { requests, requestMs } = this.#requests.look(subject, counts);
    return {
      RequestsPerSecond: requests,
      AverageRequestDuration: requests === 0 ? 0 : requestMs / requests,
    };
  }
}

const noRequests = { requests: 0, requestMs: 0 };

const writeRates = [
  "DocumentWritesPerSecond",
  "AttachmentWritesPerSecond",
  "CounterWritesPerSecond",
  "TimeSeriesWritesPerSecond",
  "DocumentsWriteBytesPerSecond",
  "AttachmentsWriteBytesPerSecond",
  "CountersWriteBytesPerSecond",
  "TimeSeriesWriteBytesPerSecond",
] as const;
type WriteRate = (typeof writeRates)[number];

function writeCounts(database: Database): Readonly<Record<WriteRate, number>> {
  const { documents, attachments, counters, timeSeries } = database.meters().writes;
  return {
    DocumentWritesPerSecond: documents.puts.count,
    AttachmentWritesPerSecond: attachments.puts.count,
    CounterWritesPerSecond: counters.puts.count,
    TimeSeriesWritesPerSecond: timeSeries.puts.count,
    DocumentsWriteBytesPerSecond: documents.bytes.count,
    AttachmentsWriteBytesPerSecond: attachments.bytes.count,
    CountersWriteBytesPerSecond: counters.bytes.count,
    TimeSeriesWriteBytesPerSecond: timeSeries.bytes.count,
  };
}

type IndexingCounts = "indexed" | "mapped" | "reduced";

function indexing({ opened }: Seen): Widget {
  const rates = new Rates<IndexingCounts>();
  const look = () => {
    const all = opened().map((one) => rates.look(one.name, indexingCounts(one)));
    const sum = (name: IndexingCounts) => all.reduce((total, one) => total + one[name], 0);
    return indexingRow({ indexed: sum("indexed"), mapped: sum("mapped"), reduced: sum("reduced") });
  };
  return { everyMs: usualMs, look };
}

function databaseIndexing({ opened }: Seen): Widget {
  const rates = new Rates<IndexingCounts>();
  const look = () => ({
    Items: opened().map((one) => ({
      Database: one.name,
      ...indexingRow(rates.look(one.name, indexingCounts(one))),
    })),
  });
  return { everyMs: usualMs, look };
}

function indexingCounts(database: Database): Record<IndexingCounts, number> {
  const counts = { indexed: 0, mapped: 0, reduced: 0 };
  for (const { isReduce, mapAttempts, reduceAttempts } of database.figures().indexes) {
    counts[isReduce ? "mapped" : "indexed"] += mapAttempts;
    counts.reduced += reduceAttempts;
  }
  return counts;
}

function indexingRow({ indexed, mapped, reduced }: Record<IndexingCounts, number>): JsonObject {
  return { IndexedPerSecond: indexed, MappedPerSecond: mapped, ReducedPerSecond: reduced };
}

/** A closed database is not opened for this: RavenDB calls it offline. */
function overview({ server, names, opened }: Seen): Widget {
  const look = () => {
    const open = new Map(opened().map((database) => [database.name, database]));
    return { Items: names().map((name) => overviewRow(server, name, open.get(name))) };
  };
  return { everyMs: usualMs, look };
}

function overviewRow(
  server: ServerServices,
  name: string,
  database: Database | undefined,
): JsonObject {
  const { documents = 0, indexes = [] } = database?.figures() ?? {};
  const tasks = database === undefined ? {} : taskCounts(server, database);
  return {
    Database: name,
    DocumentsCount: documents,
    IndexesCount: indexes.length,
    ErroredIndexesCount: indexes.filter(({ hasFailed }) => hasFailed).length,
    IndexingErrorsCount: indexes.reduce((sum, { errorCount }) => sum + errorCount, 0),
    AlertsCount: 0,
    PerformanceHintsCount: 0,
    ReplicationFactor: 1,
    BackupInfo: null,
    Online: database !== undefined && !database.isDisabled,
    Disabled: database?.isDisabled ?? false,
    Irrelevant: false,
    OngoingTasksCount: Object.values(tasks).reduce((sum, count) => sum + count, 0),
  };
}

function tasks({ server, opened }: Seen): Widget {
  const look = () => ({
    Items: opened().map((one) => ({ Database: one.name, ...noTasks, ...taskCounts(server, one) })),
  });
  return { everyMs: usualMs, look };
}

function taskCounts(server: ServerServices, database: Database): Record<string, number> {
  const counts: Record<string, number> = {
    PeriodicBackupCount: server.backups.periodic.list(database).length,
    SubscriptionCount: database.subscriptions.list().length,
  };
  for (const [kind, definition] of allDefinitions(recordOf(database))) {
    const name = taskCountName(kind, definition);
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

/** Tasks over queues are counted by the broker: `KafkaEtlCount`, `RabbitMqSinkCount`. */
function taskCountName(kind: string, definition: JsonObject): string {
  if (kind === "Queue") return `${String(definition["BrokerType"])}EtlCount`;
  if (kind === "QueueSink") return `${String(definition["BrokerType"])}SinkCount`;
  return `${kind}EtlCount`;
}

const noTasks = Object.fromEntries(
  [
    "ExternalReplication ReplicationHub ReplicationSink RavenEtl SqlEtl ElasticSearchEtl OlapEtl",
    "KafkaEtl RabbitMqEtl AzureQueueStorageEtl AmazonSqsEtl PeriodicBackup Subscription KafkaSink",
    "RabbitMqSink AzureServiceBusSink SnowflakeEtl EmbeddingsGeneration GenAi CdcSink",
  ]
    .flatMap((names) => names.split(" "))
    .map((name) => [`${name}Count`, 0]),
);

function node({ server, baseUrl }: Seen): Widget {
  const names: Readonly<Record<string, string>> = { darwin: "macOS", win32: "Windows" };
  const look = () => ({
    NodeTag: server.config.nodeTag,
    NodeUrl: baseUrl,
    NodeType: "Member",
    NodeState: "Leader",
    StartTime: dateText(server.startedAt),
    ServerVersion: build.FullVersion,
    OsName: `${platform()} ${release()}`,
    OsType: names[platform()] ?? "Linux",
  });
  return { everyMs: slowMs, look };
}

/** Alerts and hints are not stored. */
function notifications({ names }: Seen): Widget {
  const look = () => ({
    NotificationsSummary: names().map((name) => ({
      DatabaseName: name,
      PerformanceHints: [],
      Alerts: [],
      AlertsCount: 0,
      PerformanceHintsCount: 0,
    })),
    AlertsCount: 0,
    PerformanceHintsCount: 0,
  });
  return { everyMs: slowMs, look };
}

/** V8 has no such generations: the values are those of RavenDB before the first collection of each. */
function collections(): Widget {
  const look = () => ({ Ephemeral: null, Background: null, FullBlocking: null });
  return { everyMs: usualMs, look };
}
