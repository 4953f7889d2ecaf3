/**
 * The types of routes. Routes are data: method, path, access level, and handler, at the top of an endpoints
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
 * Selects the copy of a database that serves a request, if several nodes have copies.
 * - any: any copy, which may lag by some milliseconds
 * - leader: the copy of the leader
 * - confirmed: the copy of the leader, after confirmation that no other node has taken over: linearizable
 * - here: the copy of the receiving node, for requests about this node
 */
export type Copies = "any" | "leader" | "confirmed" | "here";

interface RouteBase {
  /**
   * The literal path, case-sensitive. A path that begins with `/databases/:database/` has a database context; one that
   * ends with `/*` matches any suffix.
   */
  readonly path: string;
  readonly access: Access;
  /** Whether the info packages contain its reply to a GET without parameters, as `<path with dots>.json`. */
  readonly inPackage?: true;
  /** Default: `any` for GET, HEAD, and web sockets, else `leader`; for server routes `here`, unless `about` is set. */
  readonly copies?: Copies | ((exchange: Exchange) => Copies);
  /** For server routes: the query parameter that names the database concerned. */
  readonly about?: string;
  /** Whether its replies, including errors, carry `Request-Time`, as RavenDB 7.2.7's replies to queries do. */
  readonly isTimed?: true;
}

/** The handler replies through the exchange, once; a throw or a rejected promise becomes the error reply. */
interface ServerRoute extends RouteBase {
  readonly kind: "server";
  readonly method: Method;
  readonly handle: (exchange: Exchange, context: Context) => Promise<void> | void;
}

export interface DatabaseRoute extends RouteBase {
  readonly kind: "database";
  readonly method: Method;
  readonly handle: (exchange: Exchange, context: DatabaseContext) => Promise<void> | void;
  /** Whether it is served while the database is disabled. */
  readonly whenDisabled?: true;
  /** Whether a request may last for hours, and holds no objects of the database between event-loop ticks. */
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

/** Creates a route of databases without options except `copies`. @param path below `/databases/:database/` */
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
