/** The Changes API: changes of a database over web sockets, and the list of subscribed connections. */

import type { Database } from "../../../engine/engine.ts";
import { ChangeHub } from "../../changes/change-hub.ts";
import type { ChangeWatches } from "../../changes/change-watches.ts";
import { ChangesConnection, waitingBytesMax } from "../../changes/changes-connection.ts";
import { timeSpanText } from "../../http/dates.ts";
import type { Exchange } from "../../http/exchange.ts";
import type { MessageSocket } from "../../http/message-socket.ts";
import type { DatabaseContext, Route, WebSocketRoute } from "../../routing/route.ts";
import { requiredId } from "../databases/operations.ts";

const path = "/databases/:database/changes";

export const changeRoutes: readonly Route[] = [
  { kind: "websocket", method: "GET", path, access: "read", connect: followChanges },
  {
    kind: "database",
    method: "DELETE",
    path,
    access: "write",
    copies: "here",
    handle: deleteConnection,
  },
  {
    kind: "database",
    method: "GET",
    path: `${path}/debug`,
    access: "read",
    copies: "here",
    handle: getConnections,
  },
];

const hubs = new WeakMap<Database, ChangeHub>();
let lastConnectionId = 0;

/** changes[?throttleConnection=true]: receives commands and sends frames of messages, until either side closes */
function followChanges(
  socket: MessageSocket,
  exchange: Exchange,
  { database }: Parameters<WebSocketRoute["connect"]>[2],
): void {
  // The database may have been closed during the handshake.
  if (database === undefined || database.hasEnded || database.isDisabled) {
    socket.close(1001, "The database serves no longer.");
    return;
  }
  const hub = hubOf(database);
  const isThrottled = exchange.query.bool("throttleConnection", false);
  lastConnectionId++;
  const connection = new ChangesConnection(lastConnectionId, socket, {
    waitingBytesMax,
    isThrottled,
  });
  connection.onWatches = () => hub.watchesChanged(connection);
  connection.onEnd = () => hub.remove(connection);
  connection.onMistake = (error) =>
    database.report(`Connection ${connection.id} of the Changes API was closed`, error);
  hub.add(connection);
}

/** DELETE changes?id=…: closes the connection with that id; 204, even if it does not exist */
function deleteConnection(exchange: Exchange, { database }: DatabaseContext): void {
  const id = requiredId(exchange);
  const connection = hubOf(database).connections.find((one) => one.id === id);
  connection?.close(1001, "The connection was ended by request.");
  exchange.reply(204);
}

/** GET changes/debug: the subscribed connections and their watches */
function getConnections(exchange: Exchange, { database }: DatabaseContext): void {
  const rows = hubOf(database).connections.map(connectionRow);
  exchange.replyJson(200, { NumberOfConnections: rows.length, Connections: rows });
}

function connectionRow({ id, watches, waitingCount, openedMs }: ChangesConnection): object {
  const names = (kind: Parameters<ChangeWatches["listed"]>[0]) =>
    watches.listed(kind).map(([name]) => name);
  const pairs = (kind: "document-counter" | "document-timeseries") =>
    watches.listed(kind).map(([DocumentId, Name]) => ({ DocumentId, Name }));
  return {
    Id: id,
    PendingMessagesCount: waitingCount,
    State: "Open",
    CloseStatus: null,
    CloseStatusDescription: null,
    SubProtocol: null,
    Age: timeSpanText(performance.now() - openedMs),
    WatchAllOperations: watches.isAll("operations"),
    WatchAllDocuments: watches.isAll("docs"),
    WatchAllIndexes: watches.isAll("indexes"),
    WatchAllCounters: watches.isAll("counters"),
    WatchAllTimeSeries: watches.isAll("all-timeseries"),
    WatchDocumentPrefixes: names("prefix"),
    WatchDocumentsInCollection: names("collection"),
    WatchIndexes: names("index"),
    WatchDocuments: names("doc"),
    WatchCounters: names("counter"),
    WatchCounterOfDocument: pairs("document-counter"),
    WatchCountersOfDocument: names("document-counters"),
    WatchTimeSeries: names("timeseries"),
    WatchTimeSeriesOfDocument: pairs("document-timeseries"),
    WatchAllTimeSeriesOfDocument: names("all-document-timeseries"),
  };
}

function hubOf(database: Database): ChangeHub {
  let hub = hubs.get(database);
  if (hub === undefined) {
    hub = new ChangeHub(database);
    hubs.set(database, hub);
  }
  return hub;
}
