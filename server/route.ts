/**
 * What a route is. Routes are data: method, path, access level and handler, one line each, at the top of an
 * endpoints file; `route-table.ts` joins them.
 */
import type { WebSocket } from "ws";
import type { Database } from "../engine/database.ts";
import type { Access } from "./access.ts";
import type { Exchange } from "./exchange.ts";
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

/** What a handler gets beside the exchange. */
export interface Context {
  readonly server: ServerServices;
  readonly route: Route;
}

/** For routes under `/databases/:database/`: the database exists and is not disabled. */
export interface DatabaseContext extends Context {
  readonly database: Database;
}

interface RouteBase {
  /**
   * The literal path, case-sensitive. It may begin with `/databases/:database/` and then has a database context; it may
   * end with `/*`, which matches any rest.
   */
  readonly path: string;
  readonly access: Access;
  /** Its reply to a bare GET belongs in the info packages, as `<path with dots>.json`. */
  readonly inPackage?: true;
  /** Its replies have `Request-Time`, errors too: RavenDB 7.2.7 has it on those of queries. */
  readonly isTimed?: true;
}

/** Answers through the exchange, once; a rejected promise or a throw becomes the error reply. */
export interface ServerRoute extends RouteBase {
  readonly kind: "server";
  readonly method: Method;
  readonly handle: (exchange: Exchange, context: Context) => Promise<void> | void;
}

export interface DatabaseRoute extends RouteBase {
  readonly kind: "database";
  readonly method: Method;
  readonly handle: (exchange: Exchange, context: DatabaseContext) => Promise<void> | void;
  /** Served though the database is disabled. */
  readonly whenDisabled?: true;
  /** A request may last for hours, and keeps no numbers of documents from one turn of the event loop to the next. */
  readonly keepsNoNumbers?: true;
}

/**
 * A web socket. `connect` gets it open; when the promise resolves nothing more happens, the socket lives until one
 * side closes it. It is closed by the server when the certificate loses the right to the route.
 */
export interface WebSocketRoute extends RouteBase {
  readonly kind: "websocket";
  readonly method: "GET";
  readonly connect: (
    socket: WebSocket,
    exchange: Exchange,
    context: Context & { readonly database: Database | undefined },
  ) => Promise<void> | void;
}

export type Route = ServerRoute | DatabaseRoute | WebSocketRoute;

/** Path prefix of every database route. */
export const databasePrefix = "/databases/:database/";
