/**
 * Routes that close and reopen their database before every read if it was written to since it was
 * opened, unless it is in use: by another request, an operation, a changes connection or a
 * subscription worker. A database with stopped indexes stays open, because a restart resets their
 * state, also in RavenDB.
 */
import { openedDatabase } from "../../engine/api/database.ts";
import type { Databases } from "../../engine/engine.ts";
import type { Exchange } from "../../server/http/exchange.ts";
import type { DatabaseContext, DatabaseRoute, Route } from "../../server/routing/route.ts";

type Database = DatabaseContext["database"];

/** POST routes that only read. */
const readingPaths = /\/(queries|docs|multi_get)$/;

/** The commit stamp of a database when it was reopened here. */
const openedAt = new WeakMap<Database, number>();
/** Requests in flight by database name. */
const underWay = new WeakMap<object, Map<string, number>>();

export function restarting(routes: readonly Route[]): Route[] {
  return routes.map((route) => (route.kind === "database" ? restartingRoute(route) : route));
}

function restartingRoute(route: DatabaseRoute): DatabaseRoute {
  return {
    ...route,
    handle: async (exchange, context) => {
      const { databases } = context.server;
      const { name } = context.database;
      const counts = underWay.get(databases) ?? new Map<string, number>();
      underWay.set(databases, counts);
      const count = counts.get(name) ?? 0;
      counts.set(name, count + 1);
      try {
        const isDue = count === 0 && isRead(exchange) && isUnused(context.database);
        const database = isDue ? await restarted(context) : context.database;
        await route.handle(exchange, { ...context, database });
      } finally {
        counts.set(name, (counts.get(name) ?? 1) - 1);
      }
    },
  };
}

function isRead({ method, path }: Exchange): boolean {
  return method === "GET" || method === "HEAD" || (method === "POST" && readingPaths.test(path));
}

function isUnused(databaseApi: Database): boolean {
  const database = openedDatabase(databaseApi);
  return (
    !database.hasEnded &&
    openedAt.get(databaseApi) !== database.state.commitStamp &&
    database.queries.indexes.all().every(({ isPaused }) => !isPaused) &&
    !database.queries.administration.isPaused &&
    !database.feed.isFollowed &&
    !database.operations.isRunning &&
    !database.subscriptions.hasWorkers
  );
}

async function restarted({ server, database }: DatabaseContext): Promise<Database> {
  // A test's own database directory is not changed.
  const { unload } = server.databases as Partial<Databases>;
  if (unload === undefined) return database;
  await unload.call(server.databases, database.name);
  const opened = (await server.databases.find(database.name)) ?? database;
  openedAt.set(opened, openedDatabase(opened).state.commitStamp);
  return opened;
}
