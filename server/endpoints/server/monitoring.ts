/** Health, available to every caller, metrics, and the configuration of the log. */
import { statfs } from "node:fs/promises";
import { EngineError } from "../../../engine/base/errors.ts";
import type { Database } from "../../../engine/engine.ts";
import { dateText } from "../../http/dates.ts";
import type { Exchange } from "../../http/exchange.ts";
import { jsonBody } from "../../http/json-body.ts";
import type { MessageSocket } from "../../http/message-socket.ts";
import { levelNamed } from "../../logging/log.ts";
import { logWatchersMax } from "../../logging/log-watch.ts";
import type { Figures } from "../../monitoring/figures.ts";
import { alive } from "../../monitoring/health.ts";
import { watchersMax } from "../../monitoring/traffic-watch.ts";
import type { Context, DatabaseContext, Route } from "../../routing/route.ts";
import { hasPermission } from "../../security/access.ts";
import type { Config } from "../../settings/config.ts";
import type { ArchiveSettings, LogLevel } from "../../settings/log-settings.ts";

const logs = "/admin/logs/configuration";
const open = { kind: "server", method: "GET", access: "open" } as const;
const prometheus = "/admin/monitoring/v1/prometheus";

export const monitoringRoutes: readonly Route[] = [
  { ...open, path: "/livez", handle: getAlive },
  { ...open, path: "/readyz", handle: getReady },
  { ...open, path: "/healthz", handle: getReady },
  { kind: "server", method: "GET", path: "/metrics", access: "valid-user", handle: getMetrics },
  { kind: "server", method: "GET", path: prometheus, access: "operator", handle: getMetrics },
  {
    kind: "server",
    method: "GET",
    path: "/admin/metrics/history",
    access: "operator",
    handle: getServerFigures,
  },
  {
    kind: "database",
    method: "GET",
    path: "/databases/:database/metrics/history",
    access: "read",
    copies: "here",
    handle: getDatabaseFigures,
  },
  {
    kind: "server",
    method: "GET",
    path: logs,
    access: "operator",
    inPackage: true,
    handle: getLogConfiguration,
  },
  { kind: "server", method: "POST", path: logs, access: "operator", handle: postLogConfiguration },
  {
    kind: "websocket",
    method: "GET",
    path: "/admin/traffic-watch",
    access: "operator",
    connect: watchTraffic,
  },
  {
    kind: "websocket",
    method: "GET",
    path: "/admin/logs/watch",
    access: "operator",
    connect: watchLog,
  },
];

/** Minimum rank of identities: operators. */
const operatorRank = 2;
const plain = { "content-type": "text/plain; charset=utf-8" };

/** GET /livez: 200 if the process responds */
function getAlive(exchange: Exchange): void {
  exchange.reply(alive.status, plain, alive.body);
}

/** GET /readyz, /healthz: 200 if the server is ready to serve, else 503; its log and metrics contain the reasons */
async function getReady(exchange: Exchange, { server }: Context): Promise<void> {
  const { status, body } = await server.monitoring.ready();
  exchange.reply(status, plain, body);
}

/** GET /admin/traffic-watch[?resourceName=database]: a message for each finished request, until either side closes */
function watchTraffic(socket: MessageSocket, exchange: Exchange, { server }: Context): void {
  const name = exchange.query.get("resourceName");
  const isAdded = server.requests.traffic.add(socket, name === "" ? null : (name ?? null));
  if (!isAdded)
    socket.close(1013, `At most ${watchersMax} connections may watch at the same time.`);
}

/** /admin/logs/watch: the lines of the log when they are written, and one for each request */
function watchLog(socket: MessageSocket, _exchange: Exchange, { server }: Context): void {
  const isAdded = server.log.watch.add(socket, server.config.nodeTag);
  if (!isAdded)
    socket.close(1013, `At most ${logWatchersMax} connections may watch at the same time.`);
}

/** GET /metrics: metrics in Prometheus's format, with the databases that the caller may read */
async function getMetrics(exchange: Exchange, { server }: Context): Promise<void> {
  const metrics = await server.monitoring.metrics();
  const { identity } = exchange;
  const text = await metrics.text({
    mayRead: (database) => hasPermission(identity, database, 1),
    isOperator: identity.rank >= operatorRank,
  });
  exchange.reply(200, { "content-type": metrics.contentType }, text);
}

/** The supported time ranges, and the sample interval of each in milliseconds. */
const ranges = {
  "5m": { ms: 300_000, step: 1_000 },
  "1h": { ms: 3_600_000, step: 10_000 },
  "24h": { ms: 86_400_000, step: 60_000 },
} as const;

/** GET /admin/metrics/history?range=5m|1h|24h&since=…: activity of the server, in samples of 1 s, 10 s or 1 min, the disk, and the HTTP threads; not part of RavenDB's interface */
async function getServerFigures(exchange: Exchange, { server }: Context): Promise<void> {
  replyFigures(exchange, server.monitoring.figures, undefined, {
    Disk: await diskOf(server.config),
    HttpThreads: server.monitoring.httpThreads.map(({ busyShare, connections, queuedBytes }) => {
      return { BusyShare: busyShare, Connections: connections, QueuedBytes: queuedBytes };
    }),
  });
}

/** Returns the free space of the disk with the data, or null if the data is in memory or the system does not report it. */
async function diskOf({ runInMemory, dataFolder }: Config): Promise<object | null> {
  if (runInMemory) return null;
  try {
    const { bavail, blocks, bsize } = await statfs(dataFolder);
    return { FreeBytes: bavail * bsize, TotalBytes: blocks * bsize };
  } catch {
    return null;
  }
}

/** GET metrics/history?range=5m|1h|24h&since=…: activity of the database, in samples of 1 s, 10 s or 1 min; not part of RavenDB's interface */
function getDatabaseFigures(exchange: Exchange, { database, server }: DatabaseContext): void {
  replyFigures(exchange, server.monitoring.figures, database);
}

/**
 * Replies `{"Range","StepInMs","From","Columns":{"Requests":[…],…},"Events":[…],"SlowQueries":[…]}`; `since` limits samples and
 * events to later ones. @throws EngineError invalid-argument
 */
function replyFigures(
  exchange: Exchange,
  figures: Figures,
  database: Database | undefined,
  more: object = {},
): void {
  const { query } = exchange;
  const name = query.get("range") ?? "5m";
  if (!Object.hasOwn(ranges, name)) {
    const known = Object.keys(ranges).join(", ");
    throw new EngineError("invalid-argument", `'range' must be one of ${known}, but is '${name}'.`);
  }
  const range = ranges[name as keyof typeof ranges];
  const nowMs = Date.now();
  const since = query.get("since");
  const sinceMs = since === undefined ? 0 : Date.parse(since);
  if (Number.isNaN(sinceMs)) {
    const example = dateText(new Date(nowMs));
    throw new EngineError(
      "invalid-argument",
      `'since' must be a time, for example ${example}, but is '${since}'.`,
    );
  }
  const fromMs = Math.max(nowMs - range.ms, sinceMs);
  const read = figures.read(database, range.step, fromMs, nowMs);
  exchange.replyJson(200, {
    ...more,
    Range: name,
    StepInMs: range.step,
    From: dateText(new Date(read?.startMs ?? nowMs)),
    Columns: read?.columns ?? {},
    Events: figures.events(database, fromMs).map((one) => ({
      At: dateText(new Date(one.atMs)),
      Kind: one.kind,
      Text: one.text,
      Database: one.database,
      OperationId: one.operationId,
    })),
    SlowQueries: figures.slowQueries(database).map((one) => ({
      At: dateText(new Date(one.atMs)),
      Database: one.database,
      Query: one.query,
      IndexName: one.index,
      DurationInMs: Math.round(one.ms),
    })),
  });
}

/** Clients before 6.2 have another format (`Mode`), which would be ignored. @throws EngineError invalid-operation */
function requireLogClient(exchange: Exchange): void {
  if (/^([1-5]|6\.[01])\./.test(exchange.header("raven-client-version") ?? "")) {
    throw new EngineError("invalid-operation", "This endpoints requires 6.2 Client API or newer.");
  }
}

/** GET /admin/logs/configuration: levels and files of the log, in the shape of RavenDB 7.2.7 */
function getLogConfiguration(exchange: Exchange, { server }: Context): void {
  requireLogClient(exchange);
  const { logs: settings, auditLog } = server.config;
  const { minLevel, configuredLevel } = server.log;
  const filters = { CurrentFilters: [], CurrentLogFilterDefaultAction: "Neutral" };
  exchange.replyJson(200, {
    Logs: {
      Path: settings.folder ?? null,
      CurrentMinLevel: minLevel,
      MinLevel: configuredLevel,
      ...archivesOf(settings.archives),
      ...filters,
    },
    AuditLogs: {
      Path: auditLog.folder ?? null,
      Level: "Info",
      ...archivesOf(auditLog.archives),
    },
    MicrosoftLogs: { CurrentMinLevel: "Off", MinLevel: "Off" },
    AdminLogs: { CurrentMinLevel: server.log.watch.minLevel, ...filters },
  });
}

function archivesOf({ aboveBytes, keepMs, countMax, isCompressed }: ArchiveSettings): object {
  return {
    ArchiveAboveSizeInMb: aboveBytes / 1024 / 1024,
    MaxArchiveDays: Math.floor(keepMs / 86_400_000),
    MaxArchiveFiles: countMax ?? null,
    EnableArchiveFileCompression: isCompressed,
  };
}

/** POST `{"Logs":{"MinLevel":"Debug"},"AdminLogs":{"MinLevel":"Info"}}`: takes effect immediately, until the next start; 204 */
async function postLogConfiguration(exchange: Exchange, { server }: Context): Promise<void> {
  requireLogClient(exchange);
  const body = await jsonBody(exchange);
  const { MicrosoftLogs: microsoft } = body;
  if (microsoft !== undefined && microsoft !== null) {
    throw new EngineError(
      "invalid-operation",
      "This server has no Microsoft logs. Set the level of its log with Logs.MinLevel.",
    );
  }
  const written = sentLevel(body["Logs"]);
  const watched = sentLevel(body["AdminLogs"]);
  if (written !== undefined) server.log.minLevel = written;
  if (watched !== undefined) server.log.watch.minLevel = watched;
  exchange.reply(204);
}

/** @throws EngineError invalid-format */
function sentLevel(sent: unknown): LogLevel | undefined {
  const wanted = (sent as { MinLevel?: unknown } | null | undefined)?.MinLevel;
  if (wanted === undefined || wanted === null) return undefined;
  const level = levelNamed(wanted);
  if (level !== undefined) return level;
  throw new EngineError(
    "invalid-format",
    `Could not convert '${String(wanted)}' to a level of the log. Valid levels: Trace, Debug, Info, Warn, Error, Fatal, Off`,
  );
}
