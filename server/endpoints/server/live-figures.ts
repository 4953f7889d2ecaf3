/** Live metrics of a database or the server, over web sockets, in the shapes of RavenDB 7.2.7. */

import { uptime } from "node:os";
import { resolve } from "node:path";
import { setTimeout } from "node:timers/promises";
import { foldedName } from "../../../engine/base/case-folding.ts";
import type { Database } from "../../../engine/engine.ts";
import { startFeed } from "../../changes/live-feed.ts";
import { dateText, timeSpanText } from "../../http/dates.ts";
import type { Exchange } from "../../http/exchange.ts";
import type { MessageSocket } from "../../http/message-socket.ts";
import { ProcessorWatch } from "../../monitoring/machine.ts";
import { Rates } from "../../monitoring/rates.ts";
import { type ThreadFigures, threadsOfProcess } from "../../monitoring/threads.ts";
import { indexPerformance, newestVersion } from "../../replies/index-performance.ts";
import { ioMetrics } from "../../replies/io-metrics.ts";
import type { Context, DatabaseContext, Route, WebSocketRoute } from "../../routing/route.ts";
import type { ServerServices } from "../../routing/services.ts";
import { replyMetadata } from "./server-info.ts";

type Watched = Parameters<WebSocketRoute["connect"]>[2];
type Next = (database: Database) => readonly string[];

const prefix = "/databases/:database";
/** Interval of metrics that are displayed as rows or charts, in milliseconds. */
const everyMs = 1_000;
/** Time over which a request measures the processor use of threads, in milliseconds. */
const runawayMs = 500;

export const liveFigureRoutes: readonly Route[] = [
  live("indexes/performance/live", watchIndexes),
  live("debug/io-metrics/live", watchDisk),
  live("subscriptions/performance/live", watchNothing),
  live("replication/performance/live", watchNothing),
  live("replication/pulses/live", watchNothing),
  live("etl/performance/live", watchNoTasks),
  live("queue-sink/performance/live", watchNoTasks),
  live("cdc-sink/performance/live", watchNoTasks),
  {
    kind: "database",
    method: "GET",
    path: `${prefix}/debug/io-metrics`,
    access: "read",
    inPackage: true,
    copies: "here",
    handle: getDisk,
  },
  {
    kind: "server",
    method: "GET",
    path: "/admin/debug/io-metrics",
    access: "operator",
    inPackage: true,
    handle: getServerDisk,
  },
  {
    kind: "server",
    method: "GET",
    path: "/admin/debug/threads/runaway",
    access: "operator",
    handle: getThreads,
  },
  {
    kind: "websocket",
    method: "GET",
    path: "/threads-info/watch",
    access: "valid-user",
    connect: watchThreads,
  },
  {
    kind: "websocket",
    method: "GET",
    path: "/admin/debug/io-metrics/live",
    access: "operator",
    connect: watchServerDisk,
  },
];

function live(path: string, connect: WebSocketRoute["connect"]): Route {
  const own = { path: `${prefix}/${path}`, access: "read", copies: "here", connect } as const;
  return { kind: "websocket", method: "GET", ...own };
}

/** indexes/performance/live[?name=…]: the last batches of the indexes, then new and changed ones */
function watchIndexes(socket: MessageSocket, exchange: Exchange, context: Watched): void {
  const isWanted = wantedIndexes(exchange);
  let version = -1;
  watch(socket, context, (database) => {
    const newest = newestVersion(database);
    if (newest === version) return [];
    const rows = indexPerformance(database, isWanted, Math.max(0, version));
    version = newest;
    const changed = rows.filter(({ Performance }) => Performance.length > 0);
    return changed.length === 0 ? [] : [JSON.stringify({ Results: changed })];
  });
}

/** Returns a filter for the parameters `name`; without any, all indexes match. */
export function wantedIndexes({ query }: Exchange): (name: string) => boolean {
  const names = new Set(query.all("name").map((name) => foldedName(name)));
  return (name) => names.size === 0 || names.has(foldedName(name));
}

/** debug/io-metrics/live: the last writes to the files of the database, then new ones */
function watchDisk(socket: MessageSocket, _exchange: Exchange, context: Watched): void {
  let after = 0;
  let isFirst = true;
  watch(socket, context, (database) => {
    const writes = database.diskWrites(after);
    after = writes.at(-1)?.number ?? after;
    if (writes.length === 0 && !isFirst) return [];
    isFirst = false;
    const path = folderOf(context.server, "Databases", database.name);
    return [JSON.stringify(ioMetrics(path, "Documents", writes))];
  });
}

/** GET debug/io-metrics: the last writes to the files of the database, with sizes and times */
function getDisk(exchange: Exchange, { database, server }: DatabaseContext): void {
  exchange.replyJson(200, {
    "@metadata": replyMetadata(server),
    ...ioMetrics(folderOf(server, "Databases", database.name), "Documents", database.diskWrites(0)),
  });
}

/** GET /admin/debug/io-metrics: the last writes to the files with the server's own values */
function getServerDisk(exchange: Exchange, { server }: Context): void {
  exchange.replyJson(200, {
    "@metadata": replyMetadata(server),
    ...ioMetrics(folderOf(server, "System"), "System", server.values.diskWrites(0)),
  });
}

/** /admin/debug/io-metrics/live: the last writes to the files with the server's own values, then new ones */
function watchServerDisk(socket: MessageSocket, _exchange: Exchange, { server }: Context): void {
  let after = 0;
  let isFirst = true;
  const next = () => {
    const writes = server.values.diskWrites(after);
    after = writes.at(-1)?.number ?? after;
    if (writes.length === 0 && !isFirst) return [];
    isFirst = false;
    return [JSON.stringify(ioMetrics(folderOf(server, "System"), "System", writes))];
  };
  startFeed(socket, { everyMs, next, report: reportTo(server) });
}

/** Performance of replication: always empty; the socket stays open */
function watchNothing(socket: MessageSocket, _exchange: Exchange, context: Watched): void {
  watch(socket, context, () => []);
}

/** Performance of ETL and of queue sinks, which exist as definitions only: an empty list; the socket stays open */
function watchNoTasks(socket: MessageSocket, _exchange: Exchange, context: Watched): void {
  let isTold = false;
  watch(socket, context, () => {
    if (isTold) return [];
    isTold = true;
    return [JSON.stringify({ Results: [] })];
  });
}

function watch(socket: MessageSocket, { server, database }: Watched, next: Next): void {
  // The database may have been closed during the handshake.
  if (database === undefined || database.hasEnded || database.isDisabled) {
    socket.close(1001, "The database serves no longer.");
    return;
  }
  startFeed(socket, { everyMs, next: () => next(database), database, report: reportTo(server) });
}

/** /threads-info/watch: the threads of the process each second, ordered by processor use */
function watchThreads(socket: MessageSocket, _exchange: Exchange, { server }: Context): void {
  const look = threadWatch();
  const next = () => [JSON.stringify(look())];
  startFeed(socket, { everyMs, next, report: reportTo(server) });
}

/** GET /admin/debug/threads/runaway: the threads of the process, ordered by processor use in the next half second */
async function getThreads(exchange: Exchange, { server }: Context): Promise<void> {
  const look = threadWatch();
  look();
  await setTimeout(runawayMs);
  exchange.replyJson(200, { "@metadata": replyMetadata(server), "Runaway Threads": look() });
}

/** Returns a function that returns the threads, with their processor use since its last call. */
function threadWatch() {
  const processors = new ProcessorWatch();
  const rates = new Rates<"ms">();
  return () => {
    const { process, machine, cores } = processors.look();
    const list = threadsOfProcess()
      .map((thread) => {
        const { ms } = rates.look(String(thread.id), { ms: thread.userMs + thread.systemMs });
        return threadRow(thread, ms / 10 / cores);
      })
      .sort((a, b) => b.CpuUsage - a.CpuUsage);
    return {
      Date: dateText(new Date()),
      CpuUsage: machine,
      ProcessCpuUsage: process,
      ActiveCores: cores,
      ThreadsCount: list.length,
      DedicatedThreadsCount: 0,
      List: list,
    };
  };
}

/** `percent` is the share of all processors. */
function threadRow(
  { id, name, state, userMs, systemMs, startedMs }: ThreadFigures,
  percent: number,
) {
  const started = new Date(Date.now() - uptime() * 1000 + startedMs);
  const isRunning = state === "R";
  return {
    Id: id,
    CpuUsage: percent,
    Name: name,
    ManagedThreadId: null,
    UnmanagedAllocationsInBytes: null,
    StartingTime: dateText(started),
    Duration: userMs + systemMs,
    TotalProcessorTime: timeSpanText(userMs + systemMs),
    PrivilegedProcessorTime: timeSpanText(systemMs),
    UserProcessorTime: timeSpanText(userMs),
    State: isRunning ? "Running" : "Wait",
    Priority: "Normal",
    WaitReason: isRunning ? null : "Unknown",
    IoStats: null,
  };
}

/** Returns a handler for errors of a feed. */
export function reportTo({ log }: ServerServices): (error: unknown) => void {
  return (error) =>
    log.report("A web socket was closed, because its metrics could not be read", error);
}

/** Returns the folder of a database, `Databases/<name>`, or of the server's own values, `System`. */
export function folderOf({ config }: ServerServices, ...names: readonly string[]): string {
  return config.runInMemory ? ":memory:" : resolve(config.dataFolder, ...names);
}
