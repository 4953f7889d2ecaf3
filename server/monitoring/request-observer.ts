/**
 * What is known of a request when it has ended: counted, and logged where the settings ask for it.
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

/** A route, as lines show it. */
export interface ObservedRoute {
  readonly kind: string;
  readonly method: string;
  readonly path: string;
  readonly access: string;
  readonly isLong?: true;
}

/** What a line tells of an answered query. */
export type QueriedOutcome = Pick<
  QueryOutcome,
  "indexName" | "totalResults" | "scannedResults" | "skippedResults" | "isStale"
>;

/** What is told of a request that has ended before what it began. */
export interface SeenRequest {
  readonly startedMs: number;
  readonly fields: LogFields;
}

const burstMax = 20;
const pauseMs = 1_000;

export class RequestObserver {
  readonly stats: RequestStats;
  /** Requests refused because their caller is not known. */
  refusedCount = 0;
  readonly traffic = new TrafficWatch();
  readonly trafficLog: TrafficLog;
  readonly limits: LimitCounts;
  /** What keeps figures of the last day; set before the first request. */
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

  /** A request from the wire has ended. Hot. */
  ended(exchange: Exchange): void {
    const ms = performance.now() - exchange.startedMs;
    exchange.connection.usedMs = exchange.startedMs;
    this.stats.add(exchange.routeNumber, exchange.status, ms, exchange.replyBytes);
    // How long somebody listens says nothing of how fast the server is.
    if (this.#routes[exchange.routeNumber]?.kind !== "websocket")
      this.figures?.ended(exchange.databaseName, exchange.status, ms);
    if (this.#deploys.has(exchange.routeNumber) && exchange.status < 300)
      this.#tellDeploy(exchange);
    if (ms >= this.#slowMs) this.#tellSlowWrite(exchange, ms);
    if (this.#isWatched) this.#tell(exchange, ms);
    if (this.#log.watch.isOn("Debug")) this.#tellWatchers(exchange, ms);
    if (this.traffic.isOn || this.trafficLog.isOn) this.#tellTraffic(exchange, ms);
  }

  #tellTraffic(exchange: Exchange, ms: number): void {
    const pattern = this.#routes[exchange.routeNumber]?.path ?? "";
    this.traffic.ended(exchange, pattern, ms);
    if (this.trafficLog.isOn) this.trafficLog.ended(exchange, pattern, ms);
  }

  /** Lines of requests are for those who watch the log, whatever is written to it. */
  #tellWatchers(exchange: Exchange, ms: number): void {
    const { method, path } = this.#routes[exchange.routeNumber] ?? exchange;
    this.#log.watch.tell({
      level: "Debug",
      timeMs: Date.now(),
      message: `${method} ${path} - ${exchange.status} - ${Math.round(ms)} ms`,
      fields: { database: exchange.databaseName },
    });
  }

  /** A request has failed with this error. */
  failed(exchange: Exchange, error: unknown): void {
    const route = this.#routes[exchange.routeNumber]?.path ?? null;
    this.limits.failed(error, route, exchange.databaseName ?? null);
  }

  /** The caller presented no certificate, or one that is not known or not valid. */
  refused(exchange: Exchange): void {
    this.refusedCount++;
    const { standing } = exchange.identity;
    const leftOut = this.#refusalLimit.take();
    if (leftOut === null) return;
    const actor = actorOf(exchange);
    const advice =
      standing === "none"
        ? "The caller sent no certificate; if it should have access, give it a registered one"
        : "If the caller should have access, register its certificate with /admin/certificates or renew it";
    const fields = { event: "refused", standing, address: actor.address, leftOut };
    const certificate = { thumbprint: actor.thumbprint || null, subject: actor.subject ?? null };
    this.#log.warn(`A request was refused. ${advice}.`, { ...fields, ...certificate });
    this.#audit.record("refused a request", actor, { standing, leftOut });
  }

  /** A query has been answered. Hot. */
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
    const fields = {
      event: "slow-query",
      ...fieldsOf(exchange, this.#routes[exchange.routeNumber], ms),
      status: 200,
      query: maskedQuery(request.text),
      index: outcome.indexName,
      results: outcome.totalResults,
      scanned: outcome.scannedResults,
      skipped: outcome.skippedResults,
      isStale: outcome.isStale,
      waitedForIndex: request.options.waitForNonStale === true,
      leftOut,
    };
    void this.#tellWithPlan("A query was slow", fields, database, request, "read");
  }

  /** What is kept of a request for `changed`. */
  seen(exchange: Exchange): SeenRequest {
    const { startedMs } = exchange;
    return {
      startedMs,
      fields: fieldsOf(exchange, this.#routes[exchange.routeNumber], 0),
    };
  }

  /** A patch or a deletion by query has ended. */
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
    const isPatch = kind === "UpdateByQuery";
    const told = {
      event: "slow-query",
      ...fields,
      ms: Math.round(ms * 1000) / 1000,
      query: maskedQuery(request.text),
      operation: id,
      ended: state.status,
      results: state.status === "completed" ? Number(state.result["Total"] ?? 0) : null,
      leftOut,
    };
    const message = `A ${isPatch ? "patch" : "deletion"} by query was slow`;
    void this.#tellWithPlan(message, told, database, request, isPatch ? "patch" : "delete");
  }

  /** The plan is made only for the line: a query that is fast pays nothing for it. */
  async #tellWithPlan(
    message: string,
    fields: LogFields,
    database: Database,
    { text, options }: QueryRequest,
    kind: "read" | "patch" | "delete",
  ): Promise<void> {
    // What the query needed may be gone by now; the line is told without it then.
    const plan = await database.queries.plan(text, kind, options).catch(() => null);
    this.#log.warn(message, { ...fields, plan });
  }

  #tellDeploy({ databaseName }: Exchange): void {
    const text = "An index was deployed";
    const event = { atMs: Date.now(), kind: "IndexDeploy", text, database: databaseName ?? null };
    this.figures?.event(event);
  }

  #tellSlowWrite(exchange: Exchange, ms: number): void {
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

  #tell(exchange: Exchange, ms: number): void {
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
        // Names of what was changed; never what it was changed to.
        name: exchange.query.get("name") ?? null,
        certificate: exchange.query.get("thumbprint") ?? null,
        changed: exchange.changedNames,
        status: exchange.status,
        ...nodesOf(exchange),
      });
    }
  }
}

/** What the audit log has of the routes: changes of certificates, databases, indexes and settings. */
export function isAudited({ method, access, path }: ObservedRoute): boolean {
  if (method === "GET" || method === "HEAD") return false;
  if (access === "database-admin" || access === "operator" || access === "cluster-admin")
    return true;
  return access === "write" && /\/(indexes|subscriptions|smuggler)(\/|$)/.test(path);
}

/** Operations over many documents take long by nature. */
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

/** Which nodes have to do with a request beside this one; nothing on a single node. */
function nodesOf({ origin, passedTo }: Exchange): Record<string, string> {
  return {
    ...(origin === undefined ? {} : { passedBy: origin.nodeTag }),
    ...(passedTo === undefined ? {} : { passedTo }),
  };
}
