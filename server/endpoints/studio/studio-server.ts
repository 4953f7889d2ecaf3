/** Requests of RavenDB's Studio to the server at its start: notifications, versions, limits, secrets. */
import { randomBytes } from "node:crypto";
import { watchDatabase, watchServer } from "../../changes/notifications.ts";
import type { Exchange } from "../../http/exchange.ts";
import type { MessageSocket } from "../../http/message-socket.ts";
import { jsonContentType } from "../../http/response.ts";
import type { Context, DatabaseContext, Route, WebSocketRoute } from "../../routing/route.ts";
import { hasPermission } from "../../security/access.ts";
import { clusterTopologyOf, replyMetadata } from "../server/server-info.ts";

const prefix = "/databases/:database";

export const studioServerRoutes: readonly Route[] = [
  {
    kind: "websocket",
    method: "GET",
    path: "/server/notification-center/watch",
    access: "valid-user",
    connect: followServer,
  },
  {
    kind: "websocket",
    method: "GET",
    path: `${prefix}/notification-center/watch`,
    access: "read",
    copies: "here",
    connect: followDatabase,
  },
  {
    kind: "database",
    method: "GET",
    path: `${prefix}/notifications`,
    access: "read",
    copies: "here",
    handle: getNotifications,
  },
  {
    kind: "database",
    method: "GET",
    path: `${prefix}/etl/stats`,
    access: "read",
    copies: "leader",
    handle: getEtlStats,
  },
  {
    kind: "database",
    method: "GET",
    path: `${prefix}/tasks/errors`,
    access: "read",
    copies: "leader",
    handle: getTaskErrors,
  },
  {
    kind: "database",
    method: "GET",
    path: `${prefix}/schema-validation/config`,
    access: "read",
    handle: getUnset,
  },
  {
    kind: "database",
    method: "GET",
    path: `${prefix}/tasks/pull-replication/hub`,
    access: "read",
    handle: getUnset,
  },
  {
    kind: "database",
    method: "POST",
    path: `${prefix}/notification-center/dismiss`,
    access: "read",
    copies: "here",
    handle: postDismissed,
  },
  {
    kind: "database",
    method: "POST",
    path: `${prefix}/notification-center/postpone`,
    access: "read",
    copies: "here",
    handle: postPostponed,
  },
  {
    kind: "server",
    method: "GET",
    path: "/configuration/studio",
    access: "valid-user",
    handle: getUnset,
  },
  {
    kind: "server",
    method: "GET",
    path: "/studio-tasks/bootstrap",
    access: "valid-user",
    handle: getBootstrap,
  },
  {
    kind: "server",
    method: "GET",
    path: "/license/limits-usage",
    access: "valid-user",
    handle: getLimitsUsage,
  },
  {
    kind: "server",
    method: "POST",
    path: "/build/version/updates",
    access: "valid-user",
    handle: postUpdates,
  },
  {
    kind: "server",
    method: "GET",
    path: "/secrets/generate",
    access: "operator",
    handle: getSecret,
  },
  {
    kind: "server",
    method: "GET",
    path: "/assistant/settings",
    access: "valid-user",
    handle: getAssistant,
  },
];

/** /server/notification-center/watch: operations of the server, and created and deleted databases */
function followServer(socket: MessageSocket, exchange: Exchange, { server }: Context): void {
  const { databases, operations } = server;
  watchServer(socket, {
    operations,
    topology: clusterTopologyOf(server, exchange.baseUrl),
    names: () => databases.names().filter((name) => hasPermission(exchange.identity, name, 1)),
  });
}

/** notification-center/watch: operations and statistics of a database */
function followDatabase(
  socket: MessageSocket,
  _exchange: Exchange,
  { database }: Parameters<WebSocketRoute["connect"]>[2],
): void {
  // The database may have been closed during the handshake.
  if (database === undefined || database.hasEnded || database.isDisabled) {
    socket.close(1001, "The database serves no longer.");
  } else watchDatabase(socket, database);
}

/** GET notifications: always empty; notifications are sent only to connected watchers */
function getNotifications(exchange: Exchange): void {
  exchange.replyJson(200, { Results: [], TotalResults: 0 });
}

/** POST notification-center/dismiss?id=…&forever=…: 204, without effect, because no notification is stored */
function postDismissed(exchange: Exchange): void {
  exchange.query.required("id");
  exchange.query.bool("forever", false);
  exchange.reply(204);
}

/** POST notification-center/postpone?id=…&timeInSec=…: 204, without effect, because no notification is stored */
function postPostponed(exchange: Exchange): void {
  exchange.query.required("id");
  exchange.query.required("timeInSec");
  exchange.query.long("timeInSec", 0);
  exchange.reply(204);
}

/** GET etl/stats: always empty */
function getEtlStats(exchange: Exchange, { server }: DatabaseContext): void {
  exchange.replyJson(200, { "@metadata": replyMetadata(server), Results: [] });
}

/** GET tasks/errors: always empty */
function getTaskErrors(exchange: Exchange, { server }: DatabaseContext): void {
  exchange.replyJson(200, { NodeTag: server.config.nodeTag, ShardNumber: null, Results: [] });
}

/** 404, as for an unset configuration: this server does not have this type */
function getUnset(exchange: Exchange): void {
  exchange.reply(404, { "content-type": jsonContentType });
}

/** GET /studio-tasks/bootstrap: the time before expiry at which a certificate is marked */
function getBootstrap(exchange: Exchange): void {
  exchange.replyJson(200, { CertificateExpiringThresholdInDays: 14 });
}

/** GET /license/limits-usage: the items counted by RavenDB's licences, over all open databases */
function getLimitsUsage(exchange: Exchange, { server }: Context): void {
  const databases = server.databases.opened();
  const indexes = databases.flatMap((one) => one.indexes.listDetails());
  const automatic = indexes.filter(({ name }) => name.startsWith("Auto/")).length;
  exchange.replyJson(200, {
    NumberOfStaticIndexesInCluster: indexes.length - automatic,
    NumberOfAutoIndexesInCluster: automatic,
    // Both are refused (sorters-analyzers.ts).
    NumberOfCustomSortersInCluster: 0,
    NumberOfAnalyzersInCluster: 0,
    NumberOfSubscriptionsInCluster: databases.reduce(
      (sum, one) => sum + one.subscriptions.list().length,
      0,
    ),
  });
}

/** POST /build/version/updates: this server does not check for newer versions */
function postUpdates(exchange: Exchange): void {
  exchange.replyJson(200, { Version: null, PublishedAt: null, BuildNumber: null });
}

/** GET /secrets/generate: 256 random bits, as base64 */
function getSecret(exchange: Exchange): void {
  const secret = randomBytes(32).toString("base64");
  exchange.reply(200, { "content-type": "application/base64" }, secret);
}

/** GET /assistant/settings: this server has no assistant */
function getAssistant(exchange: Exchange): void {
  exchange.replyJson(200, { DisableAiAssistant: true, DisableDataSubmission: true });
}
