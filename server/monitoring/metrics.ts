/**
 * The metrics of the server in Prometheus's text format, composed on request. The library provides the format and the
 * metrics of the process; our own counters are plain arrays.
 *
 * Invariants:
 * - Labels are bounded: routes are those of the table, and at most `databasesMax` databases have their own series.
 * - No database is opened.
 */
import { collectDefaultMetrics, Registry } from "prom-client";
import { processMemory, type WorkUse } from "../../engine/base/memory/memory-budget.ts";
import { recordLookups } from "../../engine/base/record-lookups.ts";
import {
  type LatencyCounts,
  latencyBounds,
  syncLatency,
} from "../../engine/base/scheduling/latency-counts.ts";
import type { Database, Operations } from "../../engine/engine.ts";
import { productVersion } from "../settings/product-version.ts";
import type { ClusterSource } from "./cluster-figures.ts";
import { clusterMetrics } from "./cluster-metrics.ts";
import { type Health, healthChecks } from "./health.ts";
import { IndexLag } from "./index-lag.ts";
import type { ObservedRoute, RequestObserver } from "./request-observer.ts";
import { statusClasses } from "./request-stats.ts";

type Labels = Readonly<Record<string, string | number>>;

interface Sample {
  readonly labels: Labels;
  readonly value: number;
  /** Name with a suffix, or undefined for the metric's own name. */
  readonly metricName?: string;
}

type Kind = "counter" | "gauge" | "histogram";

export interface MetricsHost {
  readonly routes: readonly ObservedRoute[];
  readonly requests: RequestObserver;
  readonly health: Health;
  readonly databasesMax: number;
  databaseCount(): number;
  opened(): readonly Database[];
  connections(): Readonly<Record<ConnectionKind, number>>;
  http(): HttpFigures;
  /** End of validity of the server's certificate, in milliseconds since the Unix epoch, or undefined without one. */
  certificateEndMs(): number | undefined;
  /** Thumbprints and ends of validity of registered certificates, in milliseconds since the Unix epoch. */
  clientCertificates(): readonly (readonly [thumbprint: string, untilMs: number])[];
  /** Backups of an open database. */
  backups(database: Database): readonly BackupState[];
  droppedLogLines(): number;
  operationsRunning(): number;
  /** Operations of the server. */
  operations(): Operations;
  readonly cluster: ClusterSource;
}

/** The protocol of a connection. */
export type ConnectionKind = "http1" | "http2" | "websocket" | "tcp";

interface HttpFigures {
  /** Empty if HTTP runs on the engine thread. */
  readonly threadFigures: readonly HttpThreadFigures[];
  /** HTTP threads that died and were replaced. */
  readonly restartCount: number;
}

export interface HttpThreadFigures {
  /** The share of time in which the thread was not idle, between 0 and 1. */
  readonly busyShare: number;
  readonly connections: number;
  /** Bytes of replies that the operating system has not accepted. */
  readonly queuedBytes: number;
}

/** The state of one backup task. */
export interface BackupState {
  readonly taskId: number;
  /** Milliseconds since the Unix epoch, or null. */
  readonly lastMs: number | null;
  readonly hasFailed: boolean;
  /** Lag of a continuous backup, or null if it is not continuous or the lag is not known yet. */
  readonly behindSeconds: number | null;
  readonly waitingBytes: number | null;
}

/** The rights of the caller. */
export interface MetricsReader {
  mayRead(database: string): boolean;
  /** Whether it may see all certificates. */
  readonly isOperator: boolean;
}

/** Maximum numbers of certificates and indexes with their own series: those that expire first, and those that lag most. */
const certificatesMax = 50;
const indexesMax = 50;
const dayMs = 86_400_000;

const workUses: readonly WorkUse[] = ["replies", "bodies", "snapshots", "scripts", "queries"];

export class Metrics {
  readonly #host: MetricsHost;
  /** Metrics of the process. */
  readonly #process = new Registry();
  readonly #lag = new IndexLag();

  constructor(host: MetricsHost) {
    this.#host = host;
    collectDefaultMetrics({ register: this.#process });
  }

  get contentType(): string {
    return this.#process.contentType;
  }

  async text(reader: MetricsReader): Promise<string> {
    const registry = new Registry();
    const add = (name: string, kind: Kind, help: string, samples: readonly Sample[]): void => {
      const values = samples.map((sample) => ({
        ...sample,
        metricName: sample.metricName ?? name,
      }));
      const metric = {
        name,
        help,
        type: kind,
        aggregator: "sum",
        get: () => ({ name, help, type: kind, values, aggregator: "sum" }),
      };
      // The library accepts any object with a name and `get`; its types allow only its own classes.
      registry.registerMetric(metric as unknown as Parameters<Registry["registerMetric"]>[0]);
    };
    await this.#addServer(add);
    this.#addUse(add);
    this.#addRequests(add);
    this.#addCertificates(add, reader);
    this.#addDatabases(add, reader);
    this.#addCluster(add, reader);
    // The library prints a missing value in a way that the format does not allow.
    const process = (await this.#process.metrics()).replace(/ Nan$/gm, " NaN");
    return (await registry.metrics()) + process;
  }

  async #addServer(add: Add): Promise<void> {
    const host = this.#host;
    const one = (value: number): Sample[] => [{ labels: {}, value }];
    const found = await host.health.findings();
    const isClustered = host.cluster.figures() !== undefined;
    add(
      "jackdaw_ready",
      "gauge",
      "1 if the check of /readyz passes",
      healthChecks
        .filter((check) => check !== "cluster" || isClustered)
        .map((check) => ({ labels: { check }, value: found.has(check) ? 0 : 1 })),
    );
    add("jackdaw_build_info", "gauge", "Version of the server", [
      { labels: { version: productVersion }, value: 1 },
    ]);
    add("jackdaw_databases", "gauge", "Databases of the server", one(host.databaseCount()));
    add("jackdaw_databases_open", "gauge", "Databases that are open", one(host.opened().length));
    add(
      "jackdaw_refused_requests_total",
      "counter",
      "Requests of callers without a valid certificate",
      one(host.requests.refusedCount),
    );
    add(
      "jackdaw_log_lines_dropped_total",
      "counter",
      "Lines of the logs that could not be written",
      one(host.droppedLogLines()),
    );
    add(
      "jackdaw_server_operations_running",
      "gauge",
      "Running operations of the server",
      one(host.operationsRunning()),
    );
    const endMs = host.certificateEndMs();
    if (endMs !== undefined) {
      add(
        "jackdaw_certificate_days_left",
        "gauge",
        "Days until the server's certificate expires",
        one((endMs - Date.now()) / dayMs),
      );
    }
    add("jackdaw_memory_budget_bytes", "gauge", "The memory budget", one(processMemory.bytesMax));
    add(
      "jackdaw_memory_held_bytes",
      "gauge",
      "Bytes of the memory budget that work holds, by use",
      workUses.map((use) => ({ labels: { use }, value: processMemory.workBytesOf(use) })),
    );
    add(
      "jackdaw_fsync_duration_seconds",
      "histogram",
      "Duration of group commits",
      histogram("jackdaw_fsync_duration_seconds", {}, syncLatency),
    );
  }

  /** Connections, limits and the record cache. */
  #addUse(add: Add): void {
    const host = this.#host;
    add(
      "jackdaw_connections",
      "gauge",
      "Open connections by protocol",
      Object.entries(host.connections()).map(([kind, value]) => ({ labels: { kind }, value })),
    );
    this.#addThreads(add);
    add(
      "jackdaw_limits_hit_total",
      "counter",
      "Requests refused by a limit",
      Object.entries(host.requests.limits.counts).map(([limit, value]) => ({
        labels: { limit },
        value,
      })),
    );
    add(
      "jackdaw_record_lookups_total",
      "counter",
      "Lookups of records in memory: hit, or miss if the record was read from disk",
      [
        { labels: { result: "hit" }, value: recordLookups.found },
        { labels: { result: "miss" }, value: recordLookups.missed },
      ],
    );
  }

  #addThreads(add: Add): void {
    const { threadFigures: threads, restartCount } = this.#host.http();
    if (threads.length === 0) return;
    const of = (value: (thread: HttpThreadFigures) => number) =>
      threads.map((thread, at) => ({ labels: { thread: String(at) }, value: value(thread) }));
    add(
      "jackdaw_http_thread_busy_share",
      "gauge",
      "Share of time in which an HTTP thread was not idle",
      of((thread) => thread.busyShare),
    );
    add(
      "jackdaw_http_thread_connections",
      "gauge",
      "Open connections of an HTTP thread",
      of((thread) => thread.connections),
    );
    add(
      "jackdaw_http_thread_queued_bytes",
      "gauge",
      "Bytes of replies that the operating system has not accepted from an HTTP thread",
      of((thread) => thread.queuedBytes),
    );
    add(
      "jackdaw_http_thread_restarts_total",
      "counter",
      "HTTP threads that died and were replaced",
      [{ labels: {}, value: restartCount }],
    );
  }

  #addRequests(add: Add): void {
    const counts: Sample[] = [];
    const times: Sample[] = [];
    const bytes: Sample[] = [];
    for (const {
      route: number,
      byStatus,
      latency,
      replyBytes,
    } of this.#host.requests.stats.figures()) {
      const route = this.#host.routes[number];
      const labels = { method: route?.method ?? "", route: route?.path ?? "none" };
      for (const [at, value] of byStatus.entries()) {
        if (value > 0)
          counts.push({ labels: { ...labels, status: statusClasses[at] as string }, value }); // as many
      }
      times.push(...histogram("jackdaw_http_request_duration_seconds", labels, latency));
      bytes.push({ labels, value: replyBytes });
    }
    add("jackdaw_http_requests_total", "counter", "Requests by route and status class", counts);
    add(
      "jackdaw_http_request_duration_seconds",
      "histogram",
      "Duration from the request to its reply",
      times,
    );
    add(
      "jackdaw_http_reply_bytes_total",
      "counter",
      "Bytes of the bodies of replies, before compression",
      bytes,
    );
  }

  #addCluster(add: Add, { mayRead }: MetricsReader): void {
    const figures = this.#host.cluster.figures();
    if (figures === undefined) return;
    const shown = figures.copies
      .filter(({ database }) => mayRead(database))
      .slice(0, this.#host.databasesMax);
    for (const { name, kind, help, samples } of clusterMetrics(figures, shown, Date.now())) {
      add(name, kind, help, samples);
    }
  }

  #addCertificates(add: Add, { isOperator }: MetricsReader): void {
    const nowMs = Date.now();
    const left = this.#host
      .clientCertificates()
      .map(([thumbprint, untilMs]) => ({
        labels: { thumbprint },
        value: (untilMs - nowMs) / dayMs,
      }))
      .sort((one, other) => one.value - other.value);
    const [soonest] = left;
    if (soonest === undefined) return;
    add(
      "jackdaw_registered_certificates_days_left",
      "gauge",
      "Days until the first of the registered certificates expires",
      [{ labels: {}, value: soonest.value }],
    );
    if (!isOperator) return;
    add(
      "jackdaw_registered_certificate_days_left",
      "gauge",
      "Days until expiry of the registered certificates that expire first",
      left.slice(0, certificatesMax),
    );
  }

  #addDatabases(add: Add, { mayRead }: MetricsReader): void {
    const shown = this.#host.opened().filter(({ name }) => mayRead(name));
    const known = shown.slice(0, this.#host.databasesMax).map((database) => {
      return { database, labels: { database: database.name }, figures: database.figures() };
    });
    this.#addIndexes(add, known);
    this.#addBackups(add, known);
    for (const { name, kind, help, of } of databaseMetrics) {
      add(
        name,
        kind,
        help,
        known.map(({ labels, figures }) => ({ labels, value: of(figures) })),
      );
    }
  }

  /** Adds the indexes of each database that lag most or have errors. */
  #addIndexes(add: Add, known: readonly KnownDatabase[]): void {
    const nowMs = performance.now();
    const shown = known.flatMap(({ database, labels, figures: { indexes, newestEtag } }) => {
      const lags = this.#lag.look(database, indexes, newestEtag, nowMs);
      return indexes
        .map((index, at) => ({
          labels: { ...labels, index: index.name },
          etags: index.etagLag,
          seconds: lags[at] ?? 0,
          errors: index.errorCount,
        }))
        .sort((one, other) => other.etags - one.etags || other.errors - one.errors)
        .slice(0, indexesMax);
    });
    const column = (
      name: string,
      kind: Kind,
      help: string,
      of: (row: (typeof shown)[0]) => number,
    ) =>
      add(
        name,
        kind,
        help,
        shown.map((row) => ({ labels: row.labels, value: of(row) })),
      );
    column(
      "jackdaw_index_behind_etags",
      "gauge",
      "Changes not processed by an index",
      ({ etags }) => etags,
    );
    column(
      "jackdaw_index_behind_seconds",
      "gauge",
      "Seconds for which an index has had unprocessed changes",
      ({ seconds }) => seconds,
    );
    column(
      "jackdaw_index_errors_total",
      "counter",
      "Documents and groups for which an index has failed",
      ({ errors }) => errors,
    );
  }

  #addBackups(add: Add, known: readonly KnownDatabase[]): void {
    const nowMs = Date.now();
    const states = known.flatMap(({ database, labels }) =>
      this.#host.backups(database).map((state) => ({
        labels: { ...labels, task: String(state.taskId) },
        state,
      })),
    );
    for (const { name, help, of } of backupMetrics) {
      const samples = states.flatMap(({ labels, state }) => {
        const value = of(state, nowMs);
        return value === null ? [] : [{ labels, value }];
      });
      add(name, "gauge", help, samples);
    }
  }
}

/** An open database with its own series. */
interface KnownDatabase {
  readonly database: Database;
  readonly labels: { readonly database: string };
  readonly figures: Figures;
}

type Figures = ReturnType<Database["figures"]>;

interface DatabaseMetric {
  readonly name: string;
  readonly kind: Kind;
  readonly help: string;
  readonly of: (figures: Figures) => number;
}

function gauge(name: string, help: string, of: (figures: Figures) => number): DatabaseMetric {
  return { name, kind: "gauge", help, of };
}

/** Metrics of each open database. */
const databaseMetrics: readonly DatabaseMetric[] = [
  gauge("jackdaw_documents", "Documents", ({ documents }) => documents),
  {
    name: "jackdaw_transactions_total",
    kind: "counter",
    help: "Transactions made durable since the database was opened",
    of: ({ transactions }) => transactions,
  },
  gauge(
    "jackdaw_unsynced_bytes",
    "Bytes written that are not durable yet",
    ({ log }) => log.unsyncedBytes,
  ),
  gauge("jackdaw_log_file_bytes", "Bytes of the log's files", ({ log }) => log.segmentBytes),
  gauge(
    "jackdaw_log_live_bytes",
    "Bytes of live records",
    ({ log }) => log.recordBytes - log.deadBytes,
  ),
  gauge("jackdaw_log_dead_bytes", "Bytes of dead records", ({ log }) => log.deadBytes),
  gauge(
    "jackdaw_snapshot_bytes",
    "Bytes of the newest snapshot",
    ({ lastSnapshotBytes }) => lastSnapshotBytes,
  ),
  gauge("jackdaw_damaged_items", "Damaged stored items found", ({ damagedItems }) => damagedItems),
  gauge(
    "jackdaw_operations_running",
    "Running operations",
    ({ operationsRunning }) => operationsRunning,
  ),
  gauge("jackdaw_subscriptions", "Subscriptions", ({ subscriptions }) => subscriptions),
  gauge(
    "jackdaw_subscription_workers",
    "Connected subscription workers",
    (one) => one.subscriptionWorkers,
  ),
  gauge("jackdaw_indexes", "Indexes", ({ indexes }) => indexes.length),
  gauge(
    "jackdaw_indexes_stale",
    "Indexes that are not up to date",
    ({ indexes }) => indexes.filter(({ isStale }) => isStale).length,
  ),
  gauge(
    "jackdaw_indexes_failed",
    "Indexes that have failed",
    ({ indexes }) => indexes.filter(({ hasFailed }) => hasFailed).length,
  ),
  gauge(
    "jackdaw_index_lag_etags",
    "Changes not processed by the most lagging index",
    ({ indexes }) => Math.max(0, ...indexes.map(({ etagLag }) => etagLag)),
  ),
];

const backupMetrics: readonly {
  readonly name: string;
  readonly help: string;
  /** Returns null if there is no value. */
  readonly of: (state: BackupState, nowMs: number) => number | null;
}[] = [
  {
    name: "jackdaw_backup_age_seconds",
    help: "Seconds since the last successful backup of a task",
    of: ({ lastMs }, nowMs) => (lastMs === null ? null : Math.max(0, nowMs - lastMs) / 1000),
  },
  {
    name: "jackdaw_backup_failed",
    help: "1 if the last run of a backup task failed",
    of: ({ hasFailed }) => (hasFailed ? 1 : 0),
  },
  {
    name: "jackdaw_continuous_backup_lag_seconds",
    help: "Seconds for which commits have been pending in a continuous backup",
    of: ({ behindSeconds }) => behindSeconds,
  },
  {
    name: "jackdaw_continuous_backup_waiting_bytes",
    help: "Bytes pending in a continuous backup",
    of: ({ waitingBytes }) => waitingBytes,
  },
];

type Add = (name: string, kind: Kind, help: string, samples: readonly Sample[]) => void;

/** Returns the samples of one histogram: cumulative buckets, sum, and count. */
function histogram(
  name: string,
  labels: Labels,
  { buckets, count, totalMs }: LatencyCounts,
): Sample[] {
  let sum = 0;
  const samples = [...buckets].map((value, at) => {
    sum += value;
    const bound = latencyBounds[at];
    const le = bound === undefined ? "+Inf" : bound / 1000;
    return { labels: { ...labels, le }, value: sum, metricName: `${name}_bucket` };
  });
  return [
    ...samples,
    { labels, value: totalMs / 1000, metricName: `${name}_sum` },
    { labels, value: count, metricName: `${name}_count` },
  ];
}
