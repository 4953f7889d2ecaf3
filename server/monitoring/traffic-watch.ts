/**
 * Clients that watch finished requests over web sockets, in the messages of RavenDB 7.2.7.
 *
 * Invariants:
 * - Nothing is computed without watchers.
 * - Messages contain no part of a document and no value of a query: query texts are masked, ids and names are not.
 * - A slow watcher misses messages: at most `waitingBytesMax` bytes are buffered for it.
 */

import { foldedName } from "../../engine/base/case-folding.ts";
import { dateText } from "../http/dates.ts";
import type { Exchange } from "../http/exchange.ts";
import type { MessageSocket } from "../http/message-socket.ts";
import { maskedQuery } from "./masked-query.ts";

/** The used part of a web socket. */
export type WatchSocket = Pick<MessageSocket, "send" | "bufferedAmount" | "on">;

/** Maximum number of buffered bytes per watcher. */
const waitingBytesMax = 1024 * 1024;
/** Maximum length of an address and of the details of a request, in UTF-16 units. */
const textLengthMax = 4_096;
export const watchersMax = 32;

/** RavenDB's types of requests, by the end of the route's path. The first match counts. */
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
  /** Database that each watcher watches, or null for all. */
  readonly #watchers = new Map<WatchSocket, string | null>();
  #lastId = 0;
  /** Number of messages that watchers missed. */
  missedCount = 0;

  get isOn(): boolean {
    return this.#watchers.size > 0;
  }

  /** `database` limits the messages to one database; null for all requests. @returns false if too many clients watch */
  add(socket: WatchSocket, database: string | null): boolean {
    if (this.#watchers.size >= watchersMax) return false;
    this.#watchers.set(socket, database === null ? null : foldedName(database));
    socket.on("close", () => this.#watchers.delete(socket));
    return true;
  }

  /** Records a finished request. `pattern` is the path of its route, or "". */
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
    CustomInfo: detailsOf(exchange, pattern),
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

/** Returns RavenDB's name of the type of a request. */
export function trafficKind(method: string, pattern: string): string {
  const found = kinds.find(([methods, path]) => {
    return path.test(pattern) && new RegExp(`^(${methods})$`).test(method);
  });
  return found?.[2] ?? "None";
}

/** Returns the masked text of a query, or the id of a document. */
export function detailsOf(exchange: Exchange, pattern: string): string {
  if (exchange.queryText !== undefined) return maskedQuery(exchange.queryText);
  const id = pattern.endsWith("/docs") ? exchange.query.get("id") : undefined;
  return id === undefined ? "N/A" : cut(id);
}

/** Returns an address without the texts and parameters of queries, whose values may be those of documents. */
export function maskedTarget(target: string): string {
  return target.replace(/([?&](?:query|parameters|QueryParameters)=)[^&]*/gi, "$1?");
}

function cut(text: string): string {
  return text.length > textLengthMax ? `${text.slice(0, textLengthMax)}…` : text;
}
