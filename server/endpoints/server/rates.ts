/** Rates of requests, writes and indexes, in the shape of RavenDB 7.2.7. */
import type { Exchange } from "../../http/exchange.ts";
import { metricsRow, recentWritesRow } from "../../replies/meter-rows.ts";
import { jsonOfNumbers } from "../../replies/number-texts.ts";
import type { Context, DatabaseContext, Route } from "../../routing/route.ts";

const ofDatabase = { kind: "database", method: "GET", access: "read", copies: "here" } as const;
const prefix = "/databases/:database/metrics";

export const rateRoutes: readonly Route[] = [
  { ...ofDatabase, path: prefix, handle: getDatabaseRates },
  { ...ofDatabase, path: `${prefix}/puts`, handle: getPuts },
  { ...ofDatabase, path: `${prefix}/bytes`, handle: getPutBytes },
  {
    kind: "server",
    method: "GET",
    path: "/admin/metrics",
    access: "operator",
    handle: getServerRates,
  },
];

/** GET metrics: rates of the database since it was opened: requests, puts of each kind and their bytes, maps and reduces */
function getDatabaseRates(exchange: Exchange, { database, server }: DatabaseContext): void {
  const requests = server.monitoring.figures.meters(database);
  // RavenDB 7.2.7 counts requests in progress for the server only.
  exchange.replyJson(200, jsonOfNumbers(metricsRow([database], requests, 0)));
}

/** GET /admin/metrics: rates of the server, as GET metrics, over all open databases */
function getServerRates(exchange: Exchange, { server }: Context): void {
  const { databases, monitoring, requests } = server;
  const row = metricsRow(
    databases.opened(),
    monitoring.figures.meters(undefined),
    requests.running,
  );
  exchange.replyJson(200, jsonOfNumbers(row));
}

/** GET metrics/puts[?empty=true]: rates of puts, also for each tenth of a second of the last 15 minutes that had any; a document whose attachments, counters or time series get other names counts, too */
function getPuts(exchange: Exchange, { database }: DatabaseContext): void {
  replyWrites(exchange, database, "PutsPerSec");
}

/** GET metrics/bytes[?empty=true]: as GET metrics/puts, for the bytes of stored records and of the contents of attachments */
function getPutBytes(exchange: Exchange, { database }: DatabaseContext): void {
  replyWrites(exchange, database, "BytesPutsPerSec");
}

/** @throws EngineError invalid-argument */
function replyWrites(
  exchange: Exchange,
  database: DatabaseContext["database"],
  measure: "PutsPerSec" | "BytesPutsPerSec",
): void {
  exchange.query.bool("empty", true); // without effect in RavenDB 7.2.7
  exchange.replyJson(200, jsonOfNumbers(recentWritesRow(database, measure)));
}
