/**
 * Records finished requests: counts them, and logs them according to the settings.
 *
 * Invariants:
 * - Nothing of a body, a query string or a parameter is logged; a path is the pattern of its route.
 * - A caller without rights causes a bounded number of lines.
 */
import type { Database, OperationInfo, QueryOutcome } from "../../engine/engine.ts";
import type { Exchange } from "../http/exchange.ts";
import type { Actor, AuditLog } from "../logging/audit-log.ts";
import { LineLimit } from "../logging/line-limit.ts";
import type { Log } from "../logging/log.ts";
import type { LogFields } from "../logging/log-line.ts";
import type { QueryRequest } from "../replies/query-request.ts";
import type { LogSettings } from "../settings/log-settings.ts";
import type { Figures } from "./figures.ts";
import { LimitCounts } from "./limit-counts.ts";
import { maskedQuery } from "./masked-query.ts";
import { RequestStats } from "./request-stats.ts";
import { TrafficLog } from "./traffic-log.ts";
import { TrafficWatch } from "./traffic-watch.ts";

/** A route, as logged. */
export interface ObservedRoute {
  readonly kind: string;
  readonly method: string;
  readonly path: string;
  readonly access: string;
  readonly isLong?: true;
}

/** The part of a query's outcome that is logged. */
type QueriedOutcome = Pick<
  QueryOutcome,
  "indexName" | "totalResults" | "scannedResults" | "skippedResults" | "isStale"
>;

/** Facts of a request that ends before the operation that it has started. */
interface SeenRequest {
  readonly startedMs: number;
  readonly fields: LogFields;
}

const burstMax = 20;
const pauseMs = 1_000;

export class RequestObserver {
  readonly stats: RequestStats;
  /** Number of requests in progress; web sockets and internal requests are not counted. */
  running = 0;
  /** Number of requests refused because their caller is unknown. */
  refusedCount = 0;
  readonly traffic = new TrafficWatch();
  readonly trafficLog: TrafficLog;
  readonly limits: LimitCounts;
  /** Metrics of the last day; set before the first request. */
  figures: Figures | undefined = undefined;
  readonly #routes: readonly ObservedRoute[];
  readonly #log: Log;
  readonly #audit: AuditLog;
  readonly #settings: LogSettings;
  readonly #slowMs: number;
  readonly #slowLimit = new LineLimit(burstMax, pauseMs);
  readonly #queryLimit = new LineLimit(burstMax, pauseMs);
  readonly #refusalLimit = new LineLimit(burstMax, pauseMs);
  readonly #isWatched: boolean;
  /** Numbers of the routes that deploy indexes. */
  readonly #deploys: ReadonlySet<number>;

  constructor(routes: readonly ObservedRoute[], log: Log, audit: AuditLog, settings: LogSettings) {
    this.#routes = routes;
    this.#log = log;
    this.limits = new LimitCounts(log);
    this.trafficLog = new TrafficLog(log);
    this.#audit = audit;
    this.#settings = settings;
    this.stats = new RequestStats(routes.length);
    const numbers = routes.map(({ method, path }, at) =>
      method === "PUT" && path.endsWith("/indexes") ? at : -1,
    );
    this.#deploys = new Set(numbers.filter((at) => at >= 0));
    this.#slowMs = settings.slowWriteMs > 0 ? settings.slowWriteMs : Number.POSITIVE_INFINITY;
    this.#isWatched = settings.hasRequests || audit.isOn;
  }

  /** Records a finished request. Hot. */
  ended(exchange: Exchange): void {
    this.running--;
    const ms = performance.now() - exchange.startedMs;
    exchange.connection.usedMs = exchange.startedMs;
    this.stats.add(exchange.routeNumber, exchange.status, ms, exchange.replyBytes);
    // The duration of a web socket does not measure the speed of the server.
    if (this.#routes[exchange.routeNumber]?.kind !== "websocket")
      this.figures?.ended(exchange.databaseName, exchange.status, ms);
    if (this.#deploys.has(exchange.routeNumber) && exchange.status < 300) this.#logDeploy(exchange);
    if (ms >= this.#slowMs) this.#logSlowWrite(exchange, ms);
    if (this.#isWatched) this.#logRequest(exchange, ms);
    if (this.#log.watch.isOn("Debug")) this.#logWatchers(exchange, ms);
    if (this.traffic.isOn || this.trafficLog.isOn) this.#logTraffic(exchange, ms);
  }

  #logTraffic(exchange: Exchange, ms: number): void {
    const pattern = this.#routes[exchange.routeNumber]?.path ?? "";
    this.traffic.ended(exchange, pattern, ms);
    if (this.trafficLog.isOn) this.trafficLog.ended(exchange, pattern, ms);
  }

  /** Sends lines of requests to watchers of the log, independently of the log's level. */
  #logWatchers(exchange: Exchange, ms: number): void {
    const { method, path } = this.#routes[exchange.routeNumber] ?? exchange;
    this.#log.watch.tell({
      level: "Debug",
      timeMs: Date.now(),
      message: `${method} ${path} - ${exchange.status} - ${Math.round(ms)} ms`,
      fields: { database: exchange.databaseName },
    });
  }

  /** Records the error of a failed request. */
  failed(exchange: Exchange, error: unknown): void {
    const route = this.#routes[exchange.routeNumber]?.path ?? null;
    this.limits.failed(error, route, exchange.databaseName ?? null);
  }

  /** Records a caller without a certificate, or with an unknown or invalid one. */
  refused(exchange: Exchange): void {
    this.refusedCount++;
    const { standing } = exchange.identity;
    const leftOut = this.#refusalLimit.take();
    if (leftOut === null) return;
    const actor = actorOf(exchange);
    const advice =
      standing === "none"
        ? "The caller sent no certificate. If it should have access, it needs a registered one"
        : "If the caller should have access, register its certificate with /admin/certificates or renew it";
    const fields = { event: "refused", standing, address: actor.address, leftOut };
    const certificate = { thumbprint: actor.thumbprint || null, subject: actor.subject ?? null };
    this.#log.warn(`A request was refused. ${advice}.`, { ...fields, ...certificate });
    this.#audit.record("refused a request", actor, { standing, leftOut });
  }

  /** Records an answered query. Hot. */
  queried(
    exchange: Exchange,
    database: Database,
    request: QueryRequest,
    outcome: QueriedOutcome,
  ): void {
    const { slowQueryMs } = this.#settings;
    const ms = performance.now() - exchange.startedMs;
    if (slowQueryMs === 0 || ms < slowQueryMs) return;
    const leftOut = this.#queryLimit.take();
    if (leftOut === null) return;
    const query = maskedQuery(request.text);
    const { indexName: index } = outcome;
    this.figures?.slowQuery({ atMs: Date.now(), database: database.name, query, index, ms });
    const fields = {
      event: "slow-query",
      ...fieldsOf(exchange, this.#routes[exchange.routeNumber], ms),
      status: 200,
      query,
      index: outcome.indexName,
      results: outcome.totalResults,
      scanned: outcome.scannedResults,
      skipped: outcome.skippedResults,
      isStale: outcome.isStale,
      waitedForIndex: request.options.waitForNonStale === true,
      leftOut,
    };
    void this.#logWithPlan("A query was slow", fields, database, request, "read");
  }

  /** Returns the facts of a request for `changed`. */
  seen(exchange: Exchange): SeenRequest {
    const { startedMs } = exchange;
    return {
      startedMs,
      fields: fieldsOf(exchange, this.#routes[exchange.routeNumber], 0),
    };
  }

  /** Records a finished patch or deletion by query. */
  changed(
    { startedMs, fields }: SeenRequest,
    database: Database,
    request: QueryRequest,
    { id, kind, state }: OperationInfo,
  ): void {
    const { slowQueryMs } = this.#settings;
    const ms = performance.now() - startedMs;
    if (slowQueryMs === 0 || ms < slowQueryMs) return;
    const leftOut = this.#queryLimit.take();
    if (leftOut === null) return;
    const isDelete = kind === "DeleteByQuery";
    const name = isDelete ? "deletion" : kind === "DryRunByQuery" ? "dry run of a patch" : "patch";
    const queryFields = {
      event: "slow-query",
      ...fields,
      ms: Math.round(ms * 1000) / 1000,
      query: maskedQuery(request.text),
      operation: id,
      ended: state.status,
      results: state.status === "completed" ? Number(state.result["Total"] ?? 0) : null,
      leftOut,
    };
    const message = `A ${name} by query was slow`;
    void this.#logWithPlan(message, queryFields, database, request, isDelete ? "delete" : "patch");
  }

  /** Logs with a query plan, which is computed only for the line, so fast queries do not pay for it. */
  async #logWithPlan(
    message: string,
    fields: LogFields,
    database: Database,
    { text, options }: QueryRequest,
    kind: "read" | "patch" | "delete",
  ): Promise<void> {
    // Objects that the query used may no longer exist; the line is then logged without a plan.
    const plan = await database.queries.plan(text, kind, options).catch(() => null);
    this.#log.warn(message, { ...fields, plan });
  }

  #logDeploy({ databaseName }: Exchange): void {
    const text = "An index was deployed";
    const event = { atMs: Date.now(), kind: "IndexDeploy", text, database: databaseName ?? null };
    this.figures?.event(event);
  }

  #logSlowWrite(exchange: Exchange, ms: number): void {
    const route = this.#routes[exchange.routeNumber];
    if (route === undefined || route.access !== "write" || route.isLong === true) return;
    if (isByQuery(route)) return;
    const leftOut = this.#slowLimit.take();
    if (leftOut === null) return;
    this.#log.warn("A write was slow", {
      event: "slow-write",
      ...fieldsOf(exchange, route, ms),
      bytes: bytesSent(exchange),
      leftOut,
    });
  }

  #logRequest(exchange: Exchange, ms: number): void {
    const route = this.#routes[exchange.routeNumber];
    if (this.#settings.hasRequests) {
      this.#log.info("request", {
        event: "request",
        ...fieldsOf(exchange, route, ms),
        replyBytes: exchange.replyBytes,
        thumbprint: exchange.identity.thumbprint || null,
        ...nodesOf(exchange),
      });
    }
    if (route !== undefined && this.#audit.isOn && isAudited(route)) {
      this.#audit.record(`${route.method} ${route.path}`, actorOf(exchange), {
        database: exchange.databaseName ?? null,
        // Names of changed items, never their new values.
        name: exchange.query.get("name") ?? null,
        certificate: exchange.query.get("thumbprint") ?? null,
        changed: exchange.changedNames,
        status: exchange.status,
        ...nodesOf(exchange),
      });
    }
  }
}

/** Returns whether the audit log records the route: changes of certificates, databases, indexes, and settings. */
export function isAudited({ method, access, path }: ObservedRoute): boolean {
  if (method === "GET" || method === "HEAD") return false;
  if (access === "database-admin" || access === "operator" || access === "cluster-admin")
    return true;
  return access === "write" && /\/(indexes|subscriptions|smuggler)(\/|$)/.test(path);
}

/** Returns whether the route starts an operation over many documents, which takes long by nature. */
function isByQuery({ path, method }: ObservedRoute): boolean {
  return path.endsWith("/queries") && method !== "POST";
}

function fieldsOf(
  exchange: Exchange,
  route: ObservedRoute | undefined,
  ms: number,
): Record<string, string | number | null> {
  return {
    method: route?.method ?? null,
    route: route?.path ?? null,
    database: exchange.databaseName ?? null,
    status: exchange.status,
    ms: Math.round(ms * 1000) / 1000,
  };
}

function bytesSent(exchange: Exchange): number | null {
  const length = exchange.header("content-length");
  return length === undefined ? null : Number(length);
}

function actorOf({ identity, remoteCertificate, remoteAddress }: Exchange): Actor {
  const { thumbprint } = identity;
  return { thumbprint, subject: remoteCertificate?.subject, address: remoteAddress };
}

/** Returns the other nodes that took part in a request; none on a single node. */
function nodesOf({ origin, passedTo }: Exchange): Record<string, string> {
  return {
    ...(origin === undefined ? {} : { passedBy: origin.nodeTag }),
    ...(passedTo === undefined ? {} : { passedTo }),
  };
}
