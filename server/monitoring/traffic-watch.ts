/**
 * Those who watch requests as they end, over web sockets, in the messages of RavenDB 7.2.7.
 *
 * Invariants:
 * - Nothing is composed while nobody watches.
 * - Nothing of a document and no value of a query is told: texts of queries are masked, ids and names are not.
 * - A watcher that does not keep up misses messages: at most `waitingBytesMax` bytes wait for it.
 */

import { foldedName } from "../../engine/base/case-folding.ts";
import { dateText } from "../http/dates.ts";
import type { Exchange } from "../http/exchange.ts";
import type { MessageSocket } from "../http/message-socket.ts";
import { maskedQuery } from "./masked-query.ts";

/** What is used of a web socket. */
export type WatchSocket = Pick<MessageSocket, "send" | "bufferedAmount" | "on">;

/** Bytes that wait for one watcher. */
const waitingBytesMax = 1024 * 1024;
/** UTF-16 units of an address and of what is told of a request. */
const textLengthMax = 4_096;
export const watchersMax = 32;

/** RavenDB's kinds of requests, by the end of the path of their route. The first that fits counts. */
const kinds: readonly (readonly [method: string, path: RegExp, kind: string])[] = [
  ["GET|HEAD|PUT|POST", /^\/databases\/:database\/docs$/, "Documents"],
  [".*", /\/:database\/queries$/, "Queries"],
  [".*", /\/:database\/streams\//, "Streams"],
  ["POST", /\/:database\/bulk_docs$/, "BulkDocs"],
  ["POST", /\/:database\/multi_get$/, "MultiGet"],
  [".*", /\/operations\/state$/, "Operations"],
  [".*", /\/:database\/counters$/, "Counters"],
  [".*", /\/:database\/timeseries(\/|$)/, "TimeSeries"],
  [".*", /\/:database\/hilo\//, "Hilo"],
  [".*", /\/:database\/subscriptions(\/|$)/, "Subscriptions"],
  ["PUT", /\/indexes$/, "Index"],
];

export class TrafficWatch {
  /** To the database that each watches; null: all. */
  readonly #watchers = new Map<WatchSocket, string | null>();
  #lastId = 0;
  /** Messages that watchers missed. */
  missedCount = 0;

  get isOn(): boolean {
    return this.#watchers.size > 0;
  }

  /** `database`: the only one to be watched; null: all, and requests of none. @returns false when there are too many */
  add(socket: WatchSocket, database: string | null): boolean {
    if (this.#watchers.size >= watchersMax) return false;
    this.#watchers.set(socket, database === null ? null : foldedName(database));
    socket.on("close", () => this.#watchers.delete(socket));
    return true;
  }

  /** A request has ended. `pattern`: the path of its route, "" if it has none. */
  ended(exchange: Exchange, pattern: string, ms: number): void {
    this.#lastId++;
    const { databaseName } = exchange;
    const database = databaseName === undefined ? undefined : foldedName(databaseName);
    let message: string | null = null;
    for (const [socket, wanted] of this.#watchers) {
      if (wanted !== null && wanted !== database) continue;
      message ??= messageOf(exchange, pattern, ms, this.#lastId);
      if (socket.bufferedAmount + message.length > waitingBytesMax) this.missedCount++;
      else socket.send(message);
    }
  }
}

function messageOf(exchange: Exchange, pattern: string, ms: number, id: number): string {
  const { identity, method, baseUrl } = exchange;
  const { thumbprint } = identity;
  return JSON.stringify({
    TrafficWatchType: "Http",
    TimeStamp: dateText(new Date()),
    DatabaseName: exchange.databaseName ?? "N/A",
    CustomInfo: toldOf(exchange, pattern),
    ClientIP: exchange.connection.remoteAddress,
    ProxyIP: null,
    CertificateThumbprint: thumbprint === "" ? null : thumbprint,
    CertificateName: thumbprint === "" ? null : identity.label,
    SsoUserIdentity: null,
    RequestId: id,
    HttpMethod: method,
    ElapsedMilliseconds: Math.round(ms),
    ResponseStatusCode: exchange.status,
    RequestUri: cut(baseUrl + maskedTarget(exchange.target)),
    AbsoluteUri: baseUrl,
    RequestSizeInBytes: Number(exchange.header("content-length") ?? 0) || 0,
    ResponseSizeInBytes: exchange.replyBytes,
    Type: trafficKind(method, pattern),
  });
}

/** RavenDB's name of what a request is about. */
export function trafficKind(method: string, pattern: string): string {
  const found = kinds.find(([methods, path]) => {
    return path.test(pattern) && new RegExp(`^(${methods})$`).test(method);
  });
  return found?.[2] ?? "None";
}

/** The masked text of a query, or the id of a document. */
export function toldOf(exchange: Exchange, pattern: string): string {
  if (exchange.queryText !== undefined) return maskedQuery(exchange.queryText);
  const id = pattern.endsWith("/docs") ? exchange.query.get("id") : undefined;
  return id === undefined ? "N/A" : cut(id);
}

/** An address without the texts and parameters of queries, whose values may be those of documents. */
export function maskedTarget(target: string): string {
  return target.replace(/([?&](?:query|parameters|QueryParameters)=)[^&]*/gi, "$1?");
}

function cut(text: string): string {
  return text.length > textLengthMax ? `${text.slice(0, textLengthMax)}…` : text;
}
