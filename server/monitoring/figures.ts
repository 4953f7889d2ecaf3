/**
 * Activity of the server and of each used database in the last 24 hours, sampled each second from existing counters and
 * stored in memory (figure-ring.ts).
 *
 * Invariants:
 * - A database uses memory from its first request or change until a day after the last one. At most `figureDatabasesMax`
 *   databases, those used last, have any: up to 470 kB each, with the maximum number of index columns and requests in each
 *   tenth of a second.
 * - An unused database costs a comparison per second. No database is opened.
 */

import { getHeapStatistics } from "node:v8";
import { foldedName } from "../../engine/base/case-folding.ts";
import { residentBytes } from "../../engine/base/memory/resident-bytes.ts";
import { LatencyCounts, syncLatency } from "../../engine/base/scheduling/latency-counts.ts";
import { Meter } from "../../engine/base/scheduling/meter.ts";
import type { Database, Operations } from "../../engine/engine.ts";
import type { RequestMeters } from "../replies/meter-rows.ts";
import { CountedLatency } from "./counted-latency.ts";
import { FigureRing, figureSteps, namedColumnsMax } from "./figure-ring.ts";

const figureDatabasesMax = 100;
const eventsMax = 200;
/** Maximum number of spellings of database names that are kept; others are folded for each request. */
const spellingsMax = 1_000;
/** Maximum number of slow queries that are kept. */
const slowQueriesMax = 100;
const dayMs = 86_400_000;
const tickMs = 1_000;
/** Maximum time between the start of an operation and the first change that it made, in milliseconds. */
const startedMsMax = 10_000;

interface FiguresHost {
  opened(): readonly Database[];
  operations(): Operations;
}

/** An event that may explain a change of the metrics. */
interface FigureEvent {
  readonly atMs: number;
  readonly kind: string;
  readonly text: string;
  /** Null for the server. */
  readonly database: string | null;
  readonly operationId: number | null;
}

/** A logged slow query; literals in its text are masked. */
interface SlowQuery {
  readonly atMs: number;
  readonly database: string;
  readonly query: string;
  readonly index: string | null;
  readonly ms: number;
}

/** Counts of one subject since the start of the process. */
interface Counts {
  readonly latency: LatencyCounts;
  failed: number;
  changes: number;
  bytes: number;
}

interface SubjectCounts {
  readonly requests: number;
  readonly requestMs: number;
}

/** The counts at the last sample of a ring. */
type SeenCounts = Pick<Counts, "failed" | "changes" | "bytes">;

/** The rings of one subject, with the counts at their last samples. */
class Subject {
  readonly meters: RequestMeters;
  readonly counts: Counts = { latency: new LatencyCounts(), failed: 0, changes: 0, bytes: 0 };
  readonly rings = figureSteps.map((step) => new FigureRing(step));
  readonly #seen = figureSteps.map((): SeenCounts => ({ failed: 0, changes: 0, bytes: 0 }));
  readonly #latency = figureSteps.map(() => new CountedLatency(this.counts.latency));

  constructor(nowMs: number) {
    this.meters = { requests: new Meter(nowMs * 1000), ms: new Meter(nowMs * 1000) };
  }

  /** Counts a finished request. Hot. */
  ended(status: number, ms: number, nowMs: number): void {
    this.counts.latency.add(ms);
    if (status >= 500) this.counts.failed++;
    this.meters.requests.add(1, nowMs * 1000);
    this.meters.ms.add(ms, nowMs * 1000);
  }

  /** Adds a sample to the ring `at`; `more` contains values that are not counted. */
  sample(at: number, nowMs: number, seconds: number, more: Readonly<Record<string, number>>): void {
    const seen = this.#seen[at] as SeenCounts; // one for each ring
    const { counts } = this;
    const { count, ms } = (this.#latency[at] as CountedLatency).look([0.5, 0.95, 0.99]);
    const [p50 = Number.NaN, p95 = Number.NaN, p99 = Number.NaN] = ms;
    (this.rings[at] as FigureRing).add(nowMs, {
      Requests: count / seconds,
      Failed: (counts.failed - seen.failed) / seconds,
      LatencyP50: p50,
      LatencyP95: p95,
      LatencyP99: p99,
      Changes: (counts.changes - seen.changes) / seconds,
      WrittenBytes: (counts.bytes - seen.bytes) / seconds,
      ...more,
    });
    seen.failed = counts.failed;
    seen.changes = counts.changes;
    seen.bytes = counts.bytes;
  }
}

/** A database in use. */
interface Used {
  readonly database: Database;
  readonly subject: Subject;
  etag: number;
  bytes: number;
  usedMs: number;
  isBehind: boolean;
  /** As for the server. */
  notedMicros: number;
  behind: Readonly<Record<string, number>>;
  storage: Readonly<Record<string, number>>;
}

export class Figures {
  readonly #host: FiguresHost;
  readonly #server: Subject;
  readonly #fsync = figureSteps.map(() => new CountedLatency(syncLatency));
  readonly #used = new Map<string, Used>();
  /** Requested databases that are not in use yet; they may not exist. */
  readonly #requested = new Map<string, Subject>();
  /** Subjects by name as spelled by clients; removed with the database. */
  readonly #bySpelling = new Map<string, Subject>();
  /** Last observed change of each open database. */
  readonly #etags = new WeakMap<Database, number>();
  readonly #events: FigureEvent[] = [];
  readonly #slowQueries: SlowQuery[] = [];
  /** Start time up to which operations of the server were recorded as events, in microseconds since the Unix epoch. */
  #notedMicros: number;
  readonly #lastTicks: number[];
  #timer: NodeJS.Timeout | undefined;
  #expectedMs = 0;
  readonly #processor = figureSteps.map(processorUse);
  /** Maximum lag of the event loop since the last sample, in milliseconds. */
  readonly #lags = figureSteps.map(() => 0);

  constructor(host: FiguresHost, nowMs = Date.now()) {
    this.#host = host;
    this.#server = new Subject(nowMs);
    this.#notedMicros = nowMs * 1000;
    this.#lastTicks = figureSteps.map(({ ms }) => Math.floor(nowMs / ms));
    this.event({ atMs: nowMs, kind: "start", text: "The server was started", database: null });
  }

  start(): void {
    this.#expectedMs = performance.now() + tickMs;
    this.#timer = setInterval(() => this.tick(Date.now()), tickMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Counts a finished request. Hot. */
  ended(database: string | undefined, status: number, ms: number): void {
    const nowMs = Date.now();
    this.#server.ended(status, ms, nowMs);
    if (database === undefined) return;
    const subject = this.#bySpelling.get(database) ?? this.#firstRequested(database, nowMs);
    subject?.ended(status, ms, nowMs);
  }

  #firstRequested(name: string, nowMs: number): Subject | undefined {
    const key = foldedName(name);
    let subject = this.#subjectOf(key);
    if (subject === undefined) {
      if (this.#requested.size >= figureDatabasesMax) return undefined;
      subject = new Subject(nowMs);
      this.#requested.set(key, subject);
    }
    if (this.#bySpelling.size < spellingsMax) this.#bySpelling.set(name, subject);
    return subject;
  }

  #subjectOf(key: string): Subject | undefined {
    return this.#used.get(key)?.subject ?? this.#requested.get(key);
  }

  event(event: Omit<FigureEvent, "operationId"> & { operationId?: number }): void {
    this.#events.push({ operationId: null, ...event });
    if (this.#events.length > eventsMax) this.#events.shift();
  }

  slowQuery(query: SlowQuery): void {
    this.#slowQueries.push(query);
    if (this.#slowQueries.length > slowQueriesMax) this.#slowQueries.shift();
  }

  /** Slow queries since the start, newest first; `database` undefined for all. */
  slowQueries(database: Database | undefined): SlowQuery[] {
    const name = database?.name;
    return this.#slowQueries.filter((one) => name === undefined || one.database === name).reverse();
  }

  /** Takes a sample. `nowMs` is the time since the Unix epoch. */
  tick(nowMs: number): void {
    const lagMs = Math.max(0, performance.now() - this.#expectedMs);
    this.#expectedMs = performance.now() + tickMs;
    for (const [at, before] of this.#lags.entries()) this.#lags[at] = Math.max(before, lagMs);
    this.#findUsed(nowMs);
    for (const used of this.#used.values()) this.#look(used, nowMs);
    this.#notedMicros = this.#noteOperations(this.#host.operations(), null, this.#notedMicros);
    for (const [at, { ms }] of figureSteps.entries()) {
      const number = Math.floor(nowMs / ms);
      const last = this.#lastTicks[at] as number; // one for each step
      if (number === last) continue;
      this.#lastTicks[at] = number;
      // The sample covers the time that has passed, however long.
      const seconds = Math.max(1, number - last) * (ms / 1000);
      for (const used of this.#used.values()) {
        // Compaction changes sizes without a change of the database.
        if (at > 0 && !used.database.hasEnded) used.storage = storageOf(used.database.figures());
        used.subject.sample(at, nowMs, seconds, { ...used.behind, ...used.storage });
      }
      this.#server.sample(at, nowMs, seconds, this.#ofProcess(at));
    }
  }

  /** Returns the samples of `step` since `fromMs`; `database` undefined for the server. */
  read(database: Database | undefined, step: number, fromMs: number, nowMs: number) {
    const subject =
      database === undefined ? this.#server : this.#used.get(keyOf(database))?.subject;
    const at = figureSteps.findIndex(({ ms }) => ms === step);
    // The current sample is incomplete.
    return subject?.rings[at]?.read(fromMs, nowMs - step) ?? null;
  }

  /** Counts since the start of the process, or null if the database was not in use. Undefined for the server. */
  counts(database: Database | undefined): SubjectCounts | null {
    const subject =
      database === undefined ? this.#server : this.#used.get(keyOf(database))?.subject;
    if (subject === undefined) return null;
    const { latency } = subject.counts;
    return { requests: latency.count, requestMs: latency.totalMs };
  }

  /** Requests per subject, or null if the database was not in use. Undefined for the server. */
  meters(database: Database | undefined): RequestMeters | null {
    if (database === undefined) return this.#server.meters;
    return this.#subjectOf(keyOf(database))?.meters ?? null;
  }

  /** Events, oldest first; `database` undefined for all. */
  events(database: Database | undefined, fromMs: number): FigureEvent[] {
    const name = database?.name;
    return this.#events.filter(
      (one) =>
        one.atMs >= fromMs &&
        (name === undefined || one.database === null || one.database === name),
    );
  }

  #findUsed(nowMs: number): void {
    for (const database of this.#host.opened()) {
      const key = keyOf(database);
      const known = this.#used.get(key);
      const before = this.#etags.get(database);
      this.#etags.set(database, database.lastEtag);
      if (known?.database === database) continue;
      // The database was reopened, or recreated under the same name, so its counters start from zero.
      const isChanged = before !== undefined && before !== database.lastEtag;
      if (known === undefined && !isChanged && !this.#requested.has(key)) continue;
      this.#used.set(key, {
        database,
        subject: known?.subject ?? this.#requested.get(key) ?? new Subject(nowMs),
        etag: before ?? database.lastEtag,
        bytes: database.figures().log.appendedBytes,
        usedMs: nowMs,
        isBehind: true,
        notedMicros: (nowMs - startedMsMax) * 1000,
        behind: {},
        storage: storageOf(database.figures()),
      });
    }
    for (const [key, subject] of this.#requested) {
      if (!this.#used.has(key)) this.#forgetSpellings(subject);
    }
    this.#requested.clear();
    this.#forget(nowMs);
  }

  /** Removes databases not used for a day, and the least recently used ones above the limit. */
  #forget(nowMs: number): void {
    const oldest = [...this.#used].sort(([, a], [, b]) => a.usedMs - b.usedMs);
    for (const [key, { usedMs, subject }] of oldest) {
      if (this.#used.size <= figureDatabasesMax && nowMs - usedMs < dayMs) break;
      this.#used.delete(key);
      this.#forgetSpellings(subject);
    }
  }

  #forgetSpellings(subject: Subject): void {
    for (const [name, known] of this.#bySpelling)
      if (known === subject) this.#bySpelling.delete(name);
  }

  #look(used: Used, nowMs: number): void {
    const { database, subject } = used;
    const { counts } = subject;
    const etag = database.hasEnded ? used.etag : database.lastEtag;
    const changes = Math.max(0, etag - used.etag);
    if (changes > 0 || counts.latency.count > 0) used.usedMs = nowMs;
    if (database.hasEnded || (changes === 0 && !used.isBehind)) return;
    const figures = database.figures();
    const { log, indexes } = figures;
    used.storage = storageOf(figures);
    const bytes = Math.max(0, log.appendedBytes - used.bytes);
    counts.changes += changes;
    counts.bytes += bytes;
    this.#server.counts.changes += changes;
    this.#server.counts.bytes += bytes;
    used.etag = etag;
    used.bytes = log.appendedBytes;
    const lags = indexes.filter(({ etagLag }) => etagLag > 0);
    used.isBehind = lags.length > 0;
    used.behind = behindOf(subject, lags);
    const { operations, name } = database;
    used.notedMicros = this.#noteOperations(operations, name, used.notedMicros);
  }

  /** Records operations started after `afterMicros` as events. @returns the start of the last one */
  #noteOperations(operations: Operations, database: string | null, afterMicros: number): number {
    let newest = afterMicros;
    for (const { id, kind, description: text, startedAt } of operations.list()) {
      if (startedAt <= afterMicros) continue;
      newest = Math.max(newest, startedAt);
      this.event({ atMs: startedAt / 1000, kind, text, database, operationId: id });
    }
    return newest;
  }

  #ofProcess(at: number): Record<string, number> {
    const { ms } = (this.#fsync[at] as CountedLatency).look([0.5, 0.99]);
    const [FsyncP50 = Number.NaN, FsyncP99 = Number.NaN] = ms;
    const lags = [...this.#used.values()].map(({ behind }) => behind["Behind"] ?? 0);
    const LoopLag = this.#lags[at] as number; // one per step
    this.#lags[at] = 0;
    return {
      FsyncP50,
      FsyncP99,
      Behind: Math.max(0, ...lags),
      Memory: residentBytes(Number.NaN),
      Heap: getHeapStatistics().used_heap_size,
      LoopLag,
      Processor: this.#processorShare(at),
    };
  }

  /** Returns the share of one processor used since the last sample. */
  #processorShare(at: number): number {
    const before = this.#processor[at] as ProcessorUse; // one for each step
    const now = processorUse();
    this.#processor[at] = now;
    return (now.usedMs - before.usedMs) / Math.max(1, now.atMs - before.atMs);
  }
}

interface ProcessorUse {
  readonly usedMs: number;
  readonly atMs: number;
}

function processorUse(): ProcessorUse {
  const { user, system } = process.cpuUsage();
  return { usedMs: (user + system) / 1000, atMs: performance.now() };
}

/** Returns the unprocessed changes of the most lagging index, and of those indexes that have or get columns. */
function behindOf(
  { rings }: Subject,
  lags: readonly { readonly name: string; readonly etagLag: number }[],
): Record<string, number> {
  const known = rings
    .flatMap((ring) => [...ring.names()])
    .filter((name) => name.startsWith(ofIndex));
  const result: Record<string, number> = Object.fromEntries(known.map((name) => [name, 0]));
  let free = namedColumnsMax - Object.keys(result).length;
  let most = 0;
  for (const { name, etagLag } of lags) {
    most = Math.max(most, etagLag);
    const column = ofIndex + name;
    if (result[column] === undefined && free-- <= 0) continue;
    result[column] = etagLag;
  }
  return { ...result, Behind: most };
}

/** Returns the bytes of the log's live and dead records, and of the newest snapshots. */
function storageOf({ log, lastSnapshotBytes, indexes }: ReturnType<Database["figures"]>) {
  return {
    LiveBytes: Math.max(0, log.recordBytes - log.deadBytes),
    DeadBytes: log.deadBytes,
    SnapshotBytes: indexes.reduce((sum, one) => sum + one.snapshotBytes, lastSnapshotBytes),
  };
}

/** Prefix of the column of an index. */
const ofIndex = "Behind/";

function keyOf({ name }: Database): string {
  return foldedName(name);
}
