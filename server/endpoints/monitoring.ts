/** Health, which everybody may ask for, metrics, and the configuration of the log. */
import { EngineError } from "../../engine/base/errors.ts";
import type { Exchange } from "../http/exchange.ts";
import { jsonBody } from "../http/json-body.ts";
import { levelNamed } from "../logging/log.ts";
import { alive } from "../monitoring/health.ts";
import type { Context, Route } from "../routing/route.ts";
import { hasPermission } from "../security/access.ts";
import type { ArchiveSettings } from "../settings/log-settings.ts";

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
    path: logs,
    access: "operator",
    inPackage: true,
    handle: getLogConfiguration,
  },
  { kind: "server", method: "POST", path: logs, access: "operator", handle: postLogConfiguration },
];

const plain = { "content-type": "text/plain; charset=utf-8" };

/** GET /livez: 200 when the process answers */
function getAlive(exchange: Exchange): void {
  exchange.reply(alive.status, plain, alive.body);
}

/** GET /readyz, /healthz: 200 when the server is ready to serve, else 503; the reasons are in its log and metrics */
async function getReady(exchange: Exchange, { server }: Context): Promise<void> {
  const { status, body } = await server.monitoring.ready();
  exchange.reply(status, plain, body);
}

/** GET /metrics: metrics in Prometheus's format. Of databases, the caller gets those that he may read. */
async function getMetrics(exchange: Exchange, { server }: Context): Promise<void> {
  const metrics = await server.monitoring.metrics();
  const text = await metrics.text((database) => hasPermission(exchange.identity, database, 1));
  exchange.reply(200, { "content-type": metrics.contentType }, text);
}

/** GET /admin/logs/configuration: levels and files of the log, in the shape of RavenDB 7.2.7 */
function getLogConfiguration(exchange: Exchange, { server }: Context): void {
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
    AdminLogs: { CurrentMinLevel: minLevel, ...filters },
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

/** POST `{"Logs":{"MinLevel":"Debug"}}`: takes effect at once, until the next start; 204 */
async function postLogConfiguration(exchange: Exchange, { server }: Context): Promise<void> {
  const body = await jsonBody(exchange);
  const { Logs: sent, MicrosoftLogs: microsoft } = body;
  if (microsoft !== undefined && microsoft !== null) {
    throw new EngineError(
      "invalid-operation",
      "There are no Microsoft logs in this server. Set the level of its log with Logs.MinLevel.",
    );
  }
  const wanted = (sent as { MinLevel?: unknown } | null | undefined)?.MinLevel;
  if (wanted !== undefined && wanted !== null) {
    const level = levelNamed(wanted);
    if (level === undefined) {
      throw new EngineError(
        "invalid-format",
        `Could not convert '${String(wanted)}' to a level of the log: it is one of Trace, Debug, Info, Warn, Error, Fatal, Off`,
      );
    }
    server.log.minLevel = level;
  }
  exchange.reply(204);
}
