/**
 * The request pipeline: matches the route, authorizes the caller, finds the database, runs the handler, and converts
 * errors to replies.
 *
 * Invariants:
 * - An unknown caller gets the same refusal for every path that is not public, whether the path exists or not; the rest of
 *   the request is not examined.
 * - A caller without permission on a database cannot find out whether it exists, or which routes it has.
 * - Every exchange is in its connection's `open` from here until it is complete.
 */
import { randomUUID } from "node:crypto";
import { isIP } from "node:net";
import { bareHost } from "../../certs/hosts.ts";
import type { Database } from "../../engine/engine.ts";
import type { PeerSocket } from "../cluster/peer-link.ts";
import { positionOfReply } from "../cluster/replica-positions.ts";
import { clientConfigurationOf } from "../databases/client-configuration.ts";
import { recordOf, restoringState } from "../databases/database-record.ts";
import type { Exchange } from "../http/exchange.ts";
import {
  databaseDisabled,
  databaseMissing,
  databaseRestoring,
  forbidden,
  methodNotAllowed,
  overloaded,
  RequestError,
  routeNotFound,
} from "../http/request-error.ts";
import { errorReply } from "../http/response.ts";
import { hasPermission, isAllowed, refusalMessage } from "../security/access.ts";
import { confirmLeading } from "./barriers.ts";
import { hintOf, type KnownNames } from "./error-hints.ts";
import { ForwardedRequests } from "./forwarded-requests.ts";
import { isBrowser, replyRefusal } from "./refusal-page.ts";
import { positionHeader, RequestForwarder } from "./request-forwarding.ts";
import { RequestScheduler } from "./request-scheduler.ts";
import { RequestShares } from "./request-shares.ts";
import type { DatabaseRoute, Route } from "./route.ts";
import type { Endpoint, Match } from "./router.ts";
import type { ServerServices } from "./services.ts";

/** A request that passed the checks. */
export interface Admitted {
  readonly route: Route;
  readonly database: Database | undefined;
  /** Connection to the node that serves the web socket, or undefined if this node does. */
  readonly elsewhere?: PeerSocket;
}

export class Dispatcher {
  private readonly services: ServerServices;
  private readonly logError: (reference: string, error: unknown) => void;
  /** Requests in progress; web sockets and internal requests are not counted. */
  private readonly shares: RequestShares;
  /** Schedules when requests begin. */
  readonly scheduler: RequestScheduler;
  /** Requests that other nodes have forwarded to this one. */
  readonly forwardedRequests: ForwardedRequests;
  private readonly forwarder: RequestForwarder;
  /** The last authority accepted by `checkHost`: nearly all requests have the same. */
  private checkedAuthority: string | undefined = undefined;

  constructor(services: ServerServices, logError: (reference: string, error: unknown) => void) {
    this.services = services;
    this.logError = logError;
    this.shares = new RequestShares(services.config.limits.requestsInFlightMax);
    this.scheduler = new RequestScheduler((exchange) => this.begin(exchange));
    this.forwardedRequests = new ForwardedRequests(services.certificates);
    this.forwarder = new RequestForwarder(() => services.peers);
  }

  /** Queues a request, which begins now or later. Never throws. Hot. */
  accept(exchange: Exchange): void {
    this.scheduler.add(exchange);
  }

  /** The exchange is complete when the result, if any, resolves. Hot. */
  private begin(exchange: Exchange): void {
    const { connection } = exchange;
    connection.open.add(exchange);
    this.services.requests.running++;
    const isOver = this.shares.acquire(connection);
    let running: Promise<void> | void;
    try {
      if (isOver) throw overloaded(this.shares.requestsMax);
      running = this.run(exchange);
    } catch (error) {
      this.fail(exchange, error);
      this.complete(exchange);
      return;
    }
    if (running === undefined) {
      this.complete(exchange);
      return;
    }
    running.then(
      () => this.complete(exchange),
      (error: unknown) => {
        this.fail(exchange, error);
        this.complete(exchange);
      },
    );
  }

  /** Runs a request made by the server itself; resolves when it is complete. */
  async dispatch(exchange: Exchange): Promise<void> {
    try {
      await this.run(exchange);
      if (!exchange.isReplied) throw new Error("a handler ended without a reply");
    } catch (error) {
      this.fail(exchange, error);
    }
  }

  /** Runs only the checks, for web sockets. @returns undefined if a reply was sent @throws RequestError, EngineError */
  async admit(exchange: Exchange, method: string): Promise<Admitted | undefined> {
    const match = this.services.routes.match(method, exchange.path);
    const endpoint = this.authorize(exchange, match);
    const { cluster } = this.services;
    if (cluster !== undefined && endpoint.route.kind === "websocket") {
      const { route } = endpoint;
      const elsewhere = await this.forwarder.connect(cluster, exchange, route, match.database);
      if (elsewhere === "refused") return undefined;
      if (elsewhere !== undefined) return { route, database: undefined, elsewhere };
    }
    if (endpoint.route.kind === "server" || match.database === undefined) {
      return { route: endpoint.route, database: undefined };
    }
    const database = await this.services.databases.find(match.database);
    return { route: endpoint.route, database: usable(database, match.database, endpoint.route) };
  }

  /** Replies with the error, or aborts the exchange when a reply has begun. */
  fail(exchange: Exchange, error: unknown): void {
    if (exchange.isClosed) return; // the client disconnected, which caused the error
    this.services.requests.failed(exchange, error);
    const hint = hintOf(error, this.namesFor(exchange));
    const reply = errorReply(error, exchange.target, this.logError, hint);
    if (exchange.isReplied) exchange.abort();
    else if (reply.status === 403 && isBrowser(exchange)) {
      replyRefusal(exchange, 403);
    } else exchange.replyJson(reply.status, reply.body, reply.headers);
  }

  /** Returns the names that hints may contain. */
  private namesFor({ identity, databaseName }: Exchange): KnownNames {
    const { databases } = this.services;
    const opened = () => {
      const found = databaseName === undefined ? undefined : databases.find(databaseName);
      if (!(found instanceof Promise)) return found?.isDisabled === true ? undefined : found;
      found.catch(() => undefined); // reported to requests for the database
      return undefined;
    };
    return {
      databases: () => databases.names().filter((name) => hasPermission(identity, name, 1)),
      indexes: () => opened()?.indexes.names() ?? [],
      fields: (index) => {
        const found = opened()?.indexes;
        return found?.has(index) === true ? found.fieldNames(index) : [];
      },
    };
  }

  /** Logs an error that belongs to no request. */
  report(error: unknown): void {
    this.logError(randomUUID(), error);
  }

  private complete(exchange: Exchange): void {
    if (!exchange.isReplied) this.fail(exchange, new Error("a handler ended without a reply"));
    exchange.connection.open.delete(exchange);
    this.shares.release(exchange.connection);
    this.services.requests.ended(exchange);
  }

  private run(exchange: Exchange): Promise<void> | void {
    const match = this.services.routes.match(exchange.method, exchange.path);
    const { route } = this.authorize(exchange, match);
    const { cluster } = this.services;
    if (cluster === undefined) return this.runHere(exchange, route, match.database, false);
    return this.forwarder.run(cluster, exchange, route, match.database, (isConfirmed) =>
      this.runHere(exchange, route, match.database, isConfirmed),
    );
  }

  /** `isConfirmed`: wait until it is certain that no other node leads the database. */
  private runHere(
    exchange: Exchange,
    route: Route,
    databaseName: string | undefined,
    isConfirmed: boolean,
  ): Promise<void> | void {
    switch (route.kind) {
      case "server":
        return route.handle(exchange, { server: this.services, route });
      case "websocket":
        throw new RequestError(
          400,
          "System.InvalidOperationException",
          `Not a WebSocket request: ${exchange.path} is for WebSocket clients.`,
        );
      case "database": {
        const name = databaseName as string; // the router sets it for every database path
        const found = this.services.databases.find(name);
        const runOn = (opened: Database | undefined) => {
          const database = usable(opened, name, route);
          const confirming = isConfirmed ? confirmLeading(database) : undefined;
          if (confirming === undefined) return this.runOn(database, exchange, route);
          return confirming.then(() => this.runOn(database, exchange, route));
        };
        return found instanceof Promise ? found.then(runOn) : runOn(found);
      }
    }
  }

  /** Runs the handler while the database is marked as in use, which keeps its objects valid. */
  private runOn(
    database: Database,
    exchange: Exchange,
    route: DatabaseRoute,
  ): Promise<void> | void {
    this.addNotices(exchange, database);
    if (exchange.origin !== undefined) this.addPosition(exchange, database.name);
    const running = route.handle(exchange, { server: this.services, route, database });
    if (running === undefined) return;
    const guest = database.enter(route.isLong === true);
    return running.finally(() => guest.release());
  }

  /** Adds headers that make an official client refresh a stale configuration or topology. */
  private addNotices(exchange: Exchange, database: Database): void {
    const configuration = knownEtag(exchange, "client-configuration-etag");
    if (configuration !== undefined) {
      const { etag } = clientConfigurationOf(database, this.services.values);
      if (configuration < etag) exchange.notices = { "refresh-client-configuration": "true" };
    }
    const topology = knownEtag(exchange, "topology-etag");
    if (topology !== undefined && topology < this.topologyEtag(database)) {
      exchange.notices = { ...exchange.notices, "refresh-topology": "true" };
    }
  }

  /** Reports the position of this copy to the node that forwarded the request. */
  private addPosition(exchange: Exchange, name: string): void {
    const { cluster } = this.services;
    exchange.lateNotices = () => {
      const state = cluster?.find(name);
      if (state === undefined) return {};
      return { [positionHeader]: positionOfReply(state.registered, state.visible) };
    };
  }

  private topologyEtag(database: Database): number {
    const state = this.services.cluster?.find(database.name);
    return state?.topologyEtag ?? recordOf(database).CreatedIndex;
  }

  /**
   * Checks the host name. Without certificates, a web page could point its own host name at this machine and pass for
   * same-origin (DNS rebinding), so a server for local use answers only to addresses, localhost, and its configured name.
   */
  private checkHost(exchange: Exchange): void {
    const { config } = this.services;
    if (exchange.connection.isSecure || config.unsecuredAccessAllowed !== "Local") return;
    if (exchange.authority === this.checkedAuthority) return;
    const host = bareHost(exchange.authority.replace(/:\d*$/, "")).toLowerCase();
    const isHere =
      isIP(host) !== 0 || host === "localhost" || host.endsWith(".localhost") || host === "";
    if (isHere || host === config.serverUrl.hostname || host === config.publicServerUrl?.hostname) {
      this.checkedAuthority = exchange.authority;
      return;
    }
    throw forbidden(
      `This unsecured server is for local use and is not called '${host}': use its address or localhost, ` +
        "or set PublicServerUrl or Security.UnsecuredAccessAllowed.",
    );
  }

  /** Authorizes the caller and resolves the endpoint, in an order that leaks no information. @throws RequestError */
  private authorize(exchange: Exchange, match: Match): Endpoint {
    if (this.services.cluster !== undefined) this.forwardedRequests.take(exchange);
    const { identity } = exchange;
    const { endpoint, database } = match;
    if (identity.rank === 0 && endpoint?.route.access !== "open") {
      this.services.requests.refused(exchange);
      throw forbidden(refusalMessage(identity, undefined, undefined));
    }
    if (exchange.target.length > this.services.config.limits.targetLengthMax) throw targetTooLong();
    if (endpoint === undefined) {
      if (database !== undefined && !hasPermission(identity, database, 1)) {
        throw forbidden(refusalMessage(identity, undefined, database));
      }
      throw match.allowed === undefined
        ? routeNotFound(exchange.method, exchange.target)
        : methodNotAllowed(exchange.method, exchange.target, match.allowed);
    }
    if (!isAllowed(identity, endpoint.requirement, database)) {
      const maySee = database === undefined || hasPermission(identity, database, 1);
      const access = maySee ? endpoint.route.access : undefined;
      throw forbidden(refusalMessage(identity, access, database));
    }
    checkOrigin(exchange);
    if (this.services.ravenStudio === undefined) checkPreflighted(exchange);
    this.checkHost(exchange);
    exchange.requirement = endpoint.requirement;
    exchange.routeNumber = endpoint.number;
    exchange.isTimed = endpoint.route.isTimed === true;
    exchange.databaseName = database;
    return endpoint;
  }
}

function usable(database: Database | undefined, name: string, route: Route): Database {
  if (database === undefined) throw databaseMissing(name);
  const mayBeDisabled = route.kind === "database" && route.whenDisabled === true;
  if (!database.isDisabled || mayBeDisabled) return database;
  if (database.settings["DatabaseState"] === restoringState) throw databaseRestoring(database.name);
  throw databaseDisabled(database.name);
}

/** Parses an etag sent by the client, bare or quoted: official clients send both. Returns undefined if absent or not a number. */
function knownEtag(exchange: Exchange, header: string): number | undefined {
  const value = exchange.header(header);
  if (value === undefined) return undefined;
  const digits = /^"?(-?\d+)"?$/.exec(value.trim())?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** Refuses requests of pages of other sites, which must not use the browser's certificate. */
function checkOrigin(exchange: Exchange): void {
  const origin = exchange.header("origin");
  if (origin === undefined) {
    // Images, scripts and other subresources of another page; following a link to us is allowed.
    if (exchange.header("sec-fetch-site") !== "cross-site") return;
    if (exchange.header("sec-fetch-mode") === "navigate") return;
  }
  if (origin === exchange.baseUrl) return;
  throw forbidden(
    `A page of ${origin ?? "another site"} may not use this server: browsers may only send requests from its own pages.`,
  );
}

const formTypes = /^(?:application\/x-www-form-urlencoded|multipart\/form-data|text\/plain)\b/i;

/**
 * Requires that a browser's changing request is one that needs a preflight when another site sends it, because of its
 * method, its type, or the header of our studio. Preflights are never granted, so a browser that sends a wrong `Origin`
 * still changes nothing. RavenDB's Studio sends forms without the header; where it is served, only the origin is checked.
 */
function checkPreflighted(exchange: Exchange): void {
  if (exchange.method !== "POST" || exchange.header("origin") === undefined) return;
  if (exchange.header("x-jackdaw-studio") !== undefined) return;
  const type = exchange.header("content-type");
  if (type !== undefined && !formTypes.test(type)) return;
  throw forbidden(
    "Forms, and requests without a content type, need the header X-Jackdaw-Studio: 1 when a page sends them.",
  );
}

function targetTooLong(): RequestError {
  return new RequestError(
    414,
    "Raven.Client.Exceptions.BadRequestException",
    "The address of the request is too long (setting Http.MaxRequestLineSizeInKb). Send long queries with POST.",
  );
}
