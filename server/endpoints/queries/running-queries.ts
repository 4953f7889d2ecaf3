/** Running queries of a database, their termination, and the cached query plans, in the shapes of RavenDB 7.2.7. */

import { formatTimestamp } from "../../../engine/base/timestamp.ts";
import type { Database, RunningQueryInfo } from "../../../engine/engine.ts";
import { startFeed } from "../../changes/live-feed.ts";
import { timeSpanText } from "../../http/dates.ts";
import type { Exchange } from "../../http/exchange.ts";
import type { MessageSocket } from "../../http/message-socket.ts";
import type { Context, DatabaseContext, Route } from "../../routing/route.ts";
import { hasPermission } from "../../security/access.ts";
import { requiredId } from "../databases/operations.ts";
import { reportTo } from "../server/live-figures.ts";

const path = "/databases/:database/debug/queries";
const shown = { kind: "database", method: "GET", access: "read", inPackage: true } as const;
/** The value that RavenDB treats as no limit. */
const pageSizeMax = 2_147_483_647;

export const runningQueryRoutes: readonly Route[] = [
  { ...shown, path: `${path}/running`, copies: "here", handle: getRunning },
  { ...shown, path: `${path}/cache/list`, copies: "here", handle: getKnown },
  {
    kind: "websocket",
    method: "GET",
    path: "/debug/queries/running/live",
    access: "valid-user",
    connect: watchRunning,
  },
  {
    kind: "database",
    method: "POST",
    path: `${path}/kill`,
    access: "write",
    copies: "here",
    handle: postKill,
  },
];

/** GET debug/queries/running: `{"@metadata",…,"Auto/Users/ByName":[…]}`, by index */
function getRunning(exchange: Exchange, { database }: DatabaseContext): void {
  reply(exchange, database, Object.fromEntries(runningRows(database)));
}

/** /debug/queries/running/live: each second, the running queries in the open databases that the caller may read */
function watchRunning(socket: MessageSocket, exchange: Exchange, { server }: Context): void {
  const next = () => {
    const rows = server.databases
      .opened()
      .filter(({ name, hasEnded }) => !hasEnded && hasPermission(exchange.identity, name, 1))
      .flatMap((database) =>
        [...runningRows(database)].map(([IndexName, RunningQueries]) => ({
          DatabaseName: database.name,
          IndexName,
          RunningQueries,
        })),
      );
    return [JSON.stringify(rows)];
  };
  startFeed(socket, { everyMs: 1000, next, report: reportTo(server) });
}

/** Returns the running queries, by index. */
function runningRows(database: Database): Map<string, object[]> {
  const byIndex = new Map<string, object[]>();
  for (const one of database.queries.running()) {
    const rows = byIndex.get(one.indexName) ?? [];
    rows.push(rowOf(one, database));
    byIndex.set(one.indexName, rows);
  }
  return byIndex;
}

function rowOf(one: RunningQueryInfo, database: Database): object {
  const started = database.nowMicros() - Math.round(one.durationMs * 1000);
  return {
    DurationInMs: Math.floor(one.durationMs),
    Duration: timeSpanText(one.durationMs),
    IndexName: one.indexName,
    QueryId: one.id,
    StartTime: formatTimestamp(started),
    QueryInfo: {
      PageSize: Math.min(one.take ?? pageSizeMax, pageSizeMax),
      Query: one.text,
      SkipDuplicateChecking: one.skipsDuplicateChecking,
      SkipStatistics: false,
      Start: one.skip,
      WaitForNonStaleResults: one.waitsForNonStale,
      WaitForNonStaleResultsTimeout:
        one.timeoutMs === null ? null : timeSpanText(one.timeoutMs).replace(/\.0+$/, ""),
    },
    IsStreaming: one.isStream,
  };
}

/** POST debug/queries/kill?indexName=…&id=…: 204, and the query stops soon; 404 if it does not run */
function postKill(exchange: Exchange, { database }: DatabaseContext): void {
  const name = exchange.query.required("indexName");
  const id = requiredId(exchange);
  exchange.reply(database.queries.kill(name, id) ? 204 : 404);
}

/** GET debug/queries/cache/list: the queries with cached plans, and the time of their last use */
function getKnown(exchange: Exchange, { database }: DatabaseContext): void {
  const rows = Array.from(database.queries.known(), (known) => ({
    CreatedAt: formatTimestamp(known.createdMicros),
    LastQueriedAt: formatTimestamp(known.queriedMicros),
    ...(known.isGroupBy ? { IsGroupBy: true } : {}),
    ...(known.isOfIndex
      ? { IndexName: known.sourceName }
      : {
          IsDynamic: true,
          CollectionName: known.sourceName,
          AutoIndexName: known.indexName,
        }),
    QueryText: known.text,
  }));
  reply(exchange, database, { TotalCachedQueries: rows.length, Results: rows });
}

function reply(exchange: Exchange, database: Database, members: object): void {
  const DateTime = formatTimestamp(database.nowMicros());
  const metadata = { DateTime, WebUrl: exchange.baseUrl, NodeTag: database.nodeTag };
  exchange.replyJson(200, { "@metadata": metadata, ...members });
}
