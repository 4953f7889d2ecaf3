/**
 * What a route is. Routes are data: method, path, access level and handler, one line each, at the top of an endpoints
 * file; `route-table.ts` joins them.
 */

import type { Database } from "../../engine/engine.ts";
import type { Exchange } from "../http/exchange.ts";
import type { MessageSocket } from "../http/message-socket.ts";
import type { Access } from "../security/access.ts";
import type { ServerServices } from "./services.ts";

export type Method =
  | "GET"
  | "HEAD"
  | "PUT"
  | "POST"
  | "PATCH"
  | "DELETE"
  | "OPTIONS"
  | "RESET"
  | "TRY";

/** Passed to a handler along with the exchange. */
export interface Context {
  readonly server: ServerServices;
  readonly route: Route;
}

/** For routes under `/databases/:database/`: the database exists and is not disabled. */
export interface DatabaseContext extends Context {
  readonly database: Database;
}

/**
 * Which copy of a database serves a request, where several nodes have copies.
 * - any: each of them, so it may be some milliseconds behind
 * - leader: the one that is written
 * - confirmed: the one that is written, and nobody else can have been meanwhile: linearizable
 * - here: it tells of this node itself, or changes it
 */
export type Copies = "any" | "leader" | "confirmed" | "here";

interface RouteBase {
  /**
   * The literal path, case-sensitive. A path that begins with `/databases/:database/` has a database context; one that
   * ends with `/*` matches any suffix.
   */
  readonly path: string;
  readonly access: Access;
  /** Its reply to a GET without parameters is included in the info packages, as `<path with dots>.json`. */
  readonly inPackage?: true;
  /** Left out: `any` for GET, HEAD and web sockets, else `leader`; of a route of the server: `here`, unless it has `about`. */
  readonly copies?: Copies | ((exchange: Exchange) => Copies);
  /** Of a route of the server: the parameter of the query that names the database which it is about. */
  readonly about?: string;
  /** Its replies, errors included, carry `Request-Time`, as RavenDB 7.2.7's replies to queries do. */
  readonly isTimed?: true;
}

/** The handler replies through the exchange, once; a throw or a rejected promise becomes the error reply. */
export interface ServerRoute extends RouteBase {
  readonly kind: "server";
  readonly method: Method;
  readonly handle: (exchange: Exchange, context: Context) => Promise<void> | void;
}

export interface DatabaseRoute extends RouteBase {
  readonly kind: "database";
  readonly method: Method;
  readonly handle: (exchange: Exchange, context: DatabaseContext) => Promise<void> | void;
  /** Served even when the database is disabled. */
  readonly whenDisabled?: true;
  /** A request may last for hours, and keeps nothing that it has found from one turn of the event loop to the next. */
  readonly isLong?: true;
}

/**
 * A web socket. `connect` receives it open; after the promise resolves, the socket stays open until either side closes
 * it. The server closes it when the certificate loses the right to the route.
 */
export interface WebSocketRoute extends RouteBase {
  readonly kind: "websocket";
  readonly method: "GET";
  readonly connect: (
    socket: MessageSocket,
    exchange: Exchange,
    context: Context & { readonly database: Database | undefined },
  ) => Promise<void> | void;
}

export type Route = ServerRoute | DatabaseRoute | WebSocketRoute;

/** Path prefix of every database route. */
export const databasePrefix = "/databases/:database/";

/** A route of databases without options but `copies`. @param path below `/databases/:database/` */
export function databaseRoute(
  method: Method,
  path: string,
  access: Access,
  handle: DatabaseRoute["handle"],
  copies?: Copies,
): DatabaseRoute {
  const own = copies === undefined ? {} : { copies };
  return { kind: "database", method, path: `${databasePrefix}${path}`, access, handle, ...own };
}
