/**
 * Queries of one database: wires queries/, indexing/ and scripting/ to its documents.
 *
 * Invariants:
 * - A reply's etag is computed before the first document is read: it may be older than the rows, never newer.
 */

import { assert } from "../../base/assert.ts";
import { foldedName } from "../../base/case-folding.ts";
import type { Clock } from "../../base/environment.ts";
import { EngineError } from "../../base/errors.ts";
import { sliceMs } from "../../base/limits.ts";
import { runSteps, type Steps } from "../../base/scheduling/steps.ts";
import { nextSlice } from "../../base/scheduling/time-slices.ts";
import { type Abortable, WorkBudget } from "../../base/scheduling/work-budget.ts";
import { AutomaticIndex } from "../../indexing/automatic-index.ts";
import {
  covers,
  type IndexDefinition,
  isMergeable,
} from "../../indexing/definitions/index-definition.ts";
import type { IndexSet } from "../../indexing/index-set.ts";
import type { OpenIndex } from "../../indexing/open-index.ts";
import { StaticIndex } from "../../indexing/static-index.ts";
import { wholeFieldsOf } from "../../queries/analysis/analyze-index.ts";
import type { AnalyzedQuery, Condition, QueryKind } from "../../queries/analysis/analyzed-query.ts";
import { betterIndex } from "../../queries/analysis/better-index.ts";
import { operandsOf } from "../../queries/analysis/meaning-of.ts";
import { type CachedQueryInfo, QueryCompiler } from "../../queries/analysis/query.ts";
import {
  parseQueryParameters,
  type QueryParameters,
} from "../../queries/analysis/query-parameters.ts";
import { executeQuery } from "../../queries/execution/execute.ts";
import { type EntriesOutcome, executeEntries } from "../../queries/execution/execute-entries.ts";
import { executeFastPath } from "../../queries/execution/execute-fast-path.ts";
import { isRandomOrder } from "../../queries/execution/execute-order.ts";
import { planText } from "../../queries/execution/plan-text.ts";
import { planSteps, type QueryPlan } from "../../queries/execution/query-plan.ts";
import type { QueryRequest } from "../../queries/execution/query-run.ts";
import { QueryTrace } from "../../queries/execution/query-trace.ts";
import type {
  ProjectionBehavior,
  QueryOutcome,
  RowSink,
  SeriesForm,
} from "../../queries/execution/results.ts";
import type { IndexProvider, QueryIndex } from "../../queries/execution/row-source.ts";
import {
  collectionIdNamed,
  fingerprintOf,
  QueryRows,
  safeHash,
} from "../../queries/rows/query-rows.ts";
import { DatabaseScripts, withCallsAsScript } from "../../queries/rows/query-scripts.ts";
import { parseQuery } from "../../queries/syntax/parser.ts";
import { printServerSide } from "../../queries/syntax/print-server-side.ts";
import { allCollections } from "../../state/keyspaces/document-table.ts";
import type { Store } from "../../state/store/store.ts";
import { IndexAdministration } from "../index-hosting/index-administration.ts";
import {
  type QueryTaker,
  queryKilled,
  RunningQueries,
  type RunningQuery,
} from "./running-queries.ts";
import { searchEngineOf } from "./search-engine-setting.ts";

/** The index that answers a query, as described in the reply. */
export type AnsweringIndex = Pick<OpenIndex, "name" | "indexedAtMicros">;

/** A query with its parameter values, whose reply a caller caches. */
export interface CacheableQuery {
  readonly query: AnalyzedQuery;
}

/** The options of a query besides its text. */
export interface QueryOptions {
  /** JSON text of the parameters' object; null: none. Longs in it are exact. */
  readonly parametersText?: string | null | undefined;
  readonly start?: number | undefined;
  readonly pageSize?: number | undefined;
  readonly waitForNonStale?: boolean | undefined;
  /** Milliseconds; 15,000 when omitted. */
  readonly timeoutMs?: number | undefined;
  readonly metadataOnly?: boolean | undefined;
  readonly projectionBehavior?: ProjectionBehavior | undefined;
  readonly skipDuplicateChecking?: boolean | undefined;
  /** Omitted: "object". */
  readonly seriesForm?: SeriesForm | undefined;
  /** The rows are streamed: `start` is added to the offset in the text, and a total may be the size of the page. */
  readonly isStream?: boolean;
  /** The etag of the caller's cached answer: while it is valid, the query does not run. */
  readonly unlessEtag?: number | undefined;
  /** Aborted when the caller no longer wants the answer; the query then ends. */
  readonly signal?: Abortable | undefined;
  readonly taker?: QueryTaker | undefined;
  /** Filled in while the query runs; omitted if the query is not traced. */
  readonly trace?: QueryTrace | undefined;
}

/** The index that fits a query best, and why others do not. */
export interface IndexExplanation {
  readonly indexName: string;
  readonly reasons: readonly { readonly name: string; readonly reason: string }[];
}

/**
 * Thrown to stop a query whose reply the caller has cached. A single instance: it is not a failure, and its stack is
 * meaningless.
 */
const notModified = new Error("not modified");

const defaultTimeoutMs = 15_000;

export class DatabaseQueries {
  readonly administration: IndexAdministration;
  readonly running = new RunningQueries();
  readonly #database: Store;
  readonly #clock: Clock;
  readonly #compiler: QueryCompiler;
  /** Rows of queries on the fast path, each of which completes before another begins. */
  readonly #fastPathRows: QueryRows;
  /** Makes the etags of stale answers unique. */
  #staleCount = 0;

  /** `place` and `options`: see `IndexAdministration`. */
  constructor(
    database: Store,
    clock: Clock,
    place: ConstructorParameters<typeof IndexAdministration>[2],
    options: ConstructorParameters<typeof IndexAdministration>[3],
  ) {
    this.#database = database;
    this.#clock = clock;
    this.#compiler = new QueryCompiler(() => clock.nowMicros());
    this.#fastPathRows = new QueryRows(database, clock);
    this.administration = new IndexAdministration(database, clock, place, options);
  }

  get indexes(): IndexSet {
    return this.administration.indexes;
  }

  /** Parses and analyzes. @throws query-syntax, query-invalid, not-supported, invalid-argument, json-invalid */
  compile(
    text: string,
    kind: QueryKind,
    parameters: QueryParameters | null,
    paging: Pick<QueryOptions, "start" | "pageSize"> = {},
  ): AnalyzedQuery {
    const { start, pageSize } = paging;
    return this.#compiler.compile(text, kind, parameters, { start, pageSize });
  }

  /** Returns the texts of queries whose trees are kept. */
  known(): Iterable<CachedQueryInfo> {
    return this.#compiler.known();
  }

  /** As `compile` with the parameters from `options`, in slices. */
  async prepare(text: string, kind: QueryKind, options: QueryOptions): Promise<AnalyzedQuery> {
    return await runSteps(this.#prepared(text, kind, options));
  }

  *#prepared(text: string, kind: QueryKind, options: QueryOptions): Steps<AnalyzedQuery> {
    const { parametersText = null, start, pageSize, isStream, signal } = options;
    const budget = new WorkBudget(signal);
    const paging = { start, pageSize, isStream };
    const work = this.#compiler.compileInSlices(text, kind, parametersText, budget, paging);
    try {
      return yield* budget.steps(work);
    } finally {
      budget.close();
    }
  }

  /** As `prepare` and `execute`; the result itself where nothing waits. */
  query(
    text: string,
    options: QueryOptions,
    sink: RowSink,
  ): QueryOutcome | null | Promise<QueryOutcome | null> {
    const outcome = this.#viaFastPath(text, options, sink);
    return outcome === null ? runSteps(this.#query(text, options, sink)) : outcome;
  }

  /**
   * Runs a query synchronously if the fast path supports it (execute-fast-path.ts). The query is not listed as running,
   * because no caller could observe it. @returns null if the fast path does not support the query; nothing was done
   * then
   */
  #viaFastPath(
    text: string,
    options: QueryOptions,
    sink: RowSink,
  ): QueryOutcome | Promise<QueryOutcome> | null {
    const { parametersText = null, start, pageSize } = options;
    if (!isPageRequest(options)) return null;
    const startMs = this.#clock.monotonicMs();
    const budget = new WorkBudget(options.signal);
    const rows = this.#fastPathRows;
    try {
      const query = this.#compiler.compileSimple(text, parametersText, budget, { start, pageSize });
      if (query === null) return null;
      const isRestoring =
        query.access.kind !== "collection" && this.administration.restored !== null;
      const index = isRestoring ? undefined : this.answeringIndex(query);
      if (index === undefined) return null;
      if (index !== null && (index.outputs !== null || this.#reportsScores(index))) return null;
      const resultEtag = this.fingerprintOf(query, index);
      return executeFastPath(query, { source: rows, index, resultEtag, startMs }, budget, sink);
    } finally {
      rows.close();
      budget.close();
    }
  }

  #reportsScores(index: OpenIndex): boolean {
    return searchEngineOf(this.#database.settings, index) === "Lucene";
  }

  *#query(text: string, options: QueryOptions, sink: RowSink): Steps<QueryOutcome | null> {
    const query = yield* this.#prepared(text, "read", options);
    return yield* this.#execute(query, options, sink);
  }

  /**
   * Runs a query; rows go to `sink`, each the JSON text of an object.
   * @returns null when `options.unlessEtag` is still valid: no rows were sent.
   * @throws index-missing, query-invalid, not-supported, script-failed, record-damaged, query-killed
   */
  async execute(
    analyzed: AnalyzedQuery,
    options: QueryOptions,
    sink: RowSink,
  ): Promise<QueryOutcome | null> {
    return await runSteps(this.#execute(analyzed, options, sink));
  }

  *#execute(
    analyzed: AnalyzedQuery,
    options: QueryOptions,
    sink: RowSink,
  ): Steps<QueryOutcome | null> {
    const hold = this.#database.state.documents.hold();
    const running = this.running.add(analyzed, options, this.#clock.monotonicMs());
    try {
      return yield* this.#run(running, options, sink);
    } catch (error) {
      throw running.isKilled ? queryKilled() : error;
    } finally {
      this.running.remove(running);
      hold.release();
    }
  }

  *#run(running: RunningQuery, options: QueryOptions, sink: RowSink): Steps<QueryOutcome | null> {
    const query = withCallsAsScript(running.query);
    if (this.#mustSettle(query)) yield running.orKilled(this.#settle(query));
    const request = this.#requestOf(options, running);
    const rows = new QueryRows(this.#database, this.#clock);
    const marker = new EtagMarker(this, query, options, running, () => ++this.#staleCount);
    try {
      if (marker.isAnswered()) return null;
      if (query.access.kind === "collection") marker.mark(null);
      const resultEtag = () => marker.etag;
      const scripts = this.#scriptsOver(rows);
      return yield* executeQuery(
        query,
        { source: rows, indexes: marker, scripts, resultEtag },
        request,
        sink,
      );
    } catch (error) {
      if (error === notModified) return null;
      throw error;
    } finally {
      rows.close();
    }
  }

  #scriptsOver(rows: QueryRows): DatabaseScripts {
    const { state } = this.#database;
    return new DatabaseScripts(state, rows, (missing) => this.#database.fetchRecord(missing));
  }

  /**
   * Numbers of the documents on the query's page, each once, in its order. An index query does not wait, however stale
   * the index is. The caller holds the numbers.
   * @param signal aborted when they are no longer wanted
   * @throws index-missing, query-invalid, not-supported, operation-cancelled
   */
  async findNumbers(query: AnalyzedQuery, signal: Abortable): Promise<Uint32Array> {
    await this.#settle(query);
    const { access, paging } = query;
    const numbers =
      access.kind === "collection"
        ? collectionNumbers(this.#database, query)
        : await this.#indexNumbers(query, signal);
    return Uint32Array.from(numbers.slice(paging.skip, paging.skip + paging.take));
  }

  #requestOf(options: QueryOptions, signal: Abortable): QueryRequest {
    return {
      waitForNonStale: options.waitForNonStale === true,
      waitTimeoutMs: options.timeoutMs ?? defaultTimeoutMs,
      isMetadataOnly: options.metadataOnly === true,
      projectionBehavior: options.projectionBehavior,
      keepsDuplicates: options.skipDuplicateChecking === true,
      seriesForm: options.seriesForm,
      isStream: options.isStream,
      signal,
      trace: options.trace,
      reportsScores: ({ name }) => {
        const index = this.indexes.byName(name);
        return index !== undefined && this.#reportsScores(index);
      },
    };
  }

  async #indexNumbers(query: AnalyzedQuery, signal: Abortable): Promise<number[]> {
    const rows = new NumberRows(this.#database, this.#clock);
    const plain: AnalyzedQuery = {
      ...query,
      load: [],
      isDistinct: false,
      projection: { kind: "document", alias: null, key: null },
      paging: { skip: 0, take: Number.MAX_SAFE_INTEGER, filterTake: null, inText: null },
    };
    try {
      const scripts = this.#scriptsOver(rows);
      const host = { source: rows, indexes: this.indexes, scripts };
      const sink = { add: () => null };
      await runSteps(executeQuery(plain, host, this.#requestOf({}, signal), sink));
      return rows.numbers;
    } finally {
      rows.close();
    }
  }

  /**
   * Returns a query for `isUnchanged`; null if its reply may differ the next time although nothing changed.
   * @param options must be short: parameters are parsed synchronously. @throws as `prepare`
   */
  cacheable(text: string, options: QueryOptions): CacheableQuery | null {
    const { parametersText } = options;
    const parameters = parametersText == null ? null : parseQueryParameters(parametersText);
    const query = withCallsAsScript(this.compile(text, "read", parameters, options));
    return query.moments.length > 0 || isRandomOrder(query.orderBy) ? null : { query };
  }

  /**
   * Returns whether a query would be answered with this etag now, and by the same index as before if it uses an index,
   * as far as this is known without running the query. Counts as a use of the query. Hot.
   */
  isUnchanged(
    { query }: CacheableQuery,
    etag: number,
    isSame: (index: AnsweringIndex) => boolean,
  ): boolean {
    const isRestoring = query.access.kind !== "collection" && this.administration.restored !== null;
    const index = isRestoring ? undefined : this.answeringIndex(query);
    if (index === undefined || this.fingerprintOf(query, index) !== etag) return false;
    if (index !== null && !isSame(index)) return false;
    index?.wasQueried();
    this.#compiler.noteUse(query.text);
    return true;
  }

  /** Returns the index that answers a query now; null if it needs no index; undefined if no index is up to date. */
  answeringIndex(query: AnalyzedQuery): OpenIndex | null | undefined {
    const { access } = query;
    if (access.kind === "collection") return null;
    const index =
      access.kind === "automatic-index"
        ? this.indexes.automatic(access.definition)
        : this.indexes.withWholeFields(access.name, () => wholeFieldsOf(query));
    return index?.isStale === true ? undefined : index;
  }

  /** Returns a hash of the state that the query reads; changes when that state does. */
  fingerprintOf(query: AnalyzedQuery, index: OpenIndex | null): number {
    const read = query.moments.reduce(safeHash, this.#readBy(query));
    // The index may have been replaced, and its maps may have read compare-exchange values, whose changes are counted
    // since the database was opened.
    if (index?.isStatic !== true) return read;
    const { compareExchangeChanges } = this.administration.documents;
    const mapped = safeHash(safeHash(read, index.openedAtMicros), compareExchangeChanges);
    // Counters and series change without their documents.
    return index.source === "Documents"
      ? mapped
      : safeHash(mapped, this.#database.state.commitStamp);
  }

  #readBy(query: AnalyzedQuery): number {
    const { include, load, source, projection, where } = query;
    const hasMore =
      projection.kind === "script" ||
      projection.kind === "call" ||
      (projection.kind === "fields" &&
        projection.fields.some(
          ({ value }) =>
            value.kind === "counter" ||
            value.kind === "compare-exchange" ||
            value.kind === "series",
        )) ||
      (where !== null && readsCompareExchange(where)) ||
      include.counters.length > 0 ||
      include.compareExchange.length > 0 ||
      include.revisions.length > 0 ||
      include.series.length > 0;
    const { state } = this.#database;
    // Counters, series and compare-exchange values change without their documents.
    if (hasMore) return safeHash(state.commitStamp, 0);
    const hasOthers = load.length > 0 || include.paths.length > 0;
    const isWide = hasOthers || source.isAllDocuments || source.form === "index";
    return fingerprintOf(state, isWide ? null : source.name);
  }

  /**
   * `debug=entries`: the index entries of the documents that a query finds.
   * @throws index-missing when no index fits: none is created for it
   */
  async entries(text: string, options: QueryOptions): Promise<EntriesOutcome> {
    const query = await this.prepare(text, "read", options);
    const { access } = query;
    if (access.kind === "collection") {
      throw new EngineError(
        "not-supported",
        "Collection query is handled directly by documents storage so index entries aren't created underneath",
      );
    }
    if (access.kind === "automatic-index" && this.#fitting(access.definition) === undefined) {
      throw new EngineError("index-missing", "No Auto Index matching the given query was found.");
    }
    const running = this.running.add(query, options, this.#clock.monotonicMs());
    const rows = new QueryRows(this.#database, this.#clock);
    const hold = this.#database.state.documents.hold();
    try {
      await running.orKilled(this.#settle(query));
      const scripts = this.#scriptsOver(rows);
      const host = { source: rows, indexes: this.indexes, scripts };
      return await executeEntries(query, host, this.#requestOf(options, running));
    } catch (error) {
      throw running.isKilled ? queryKilled() : error;
    } finally {
      this.running.remove(running);
      hold.release();
      rows.close();
    }
  }

  /**
   * Runs a query, discards its rows, and returns how it was executed and which index would let it read clearly fewer
   * entries.
   * @throws as `prepare` and `execute`
   */
  async plan(text: string, options: QueryOptions): Promise<QueryPlan> {
    const query = await this.prepare(text, "read", options);
    const trace = new QueryTrace();
    const outcome = await this.execute(query, { ...options, trace }, { add: () => null });
    assert(outcome !== null, "the caller of a plan has no answer already");
    return {
      line: planText(query),
      steps: planSteps(query, trace, outcome),
      betterIndex: betterIndex(query, parseQuery(text), trace, (name) => this.#mapOf(name)),
      outcome,
    };
  }

  /** As `KnownMap`. */
  #mapOf(name: string): string | null | undefined {
    const index = this.indexes.byName(name);
    if (index === undefined) return undefined;
    const maps = index instanceof StaticIndex ? index.definition.maps : [];
    return maps.length === 1 ? (maps[0] ?? null) : null;
  }

  #automatics(): AutomaticIndex[] {
    return this.indexes.all().filter((index) => index instanceof AutomaticIndex);
  }

  #fitting(definition: IndexDefinition): AutomaticIndex | undefined {
    return this.#automatics().find((index) => covers(index.definition, definition));
  }

  /** Returns the query in canonical form. @throws query-syntax, query-invalid */
  canonicalText(text: string): string {
    return printServerSide(parseQuery(text));
  }

  /**
   * Which index a query would use, and why others do not fit. Creates none. A query that names its index is refused.
   * @throws query-syntax, query-invalid, not-supported, invalid-argument, invalid-operation
   */
  async explain(text: string, options: QueryOptions): Promise<IndexExplanation> {
    const { access, source } = await this.prepare(text, "read", options);
    if (access.kind === "index") {
      throw new EngineError("invalid-operation", "Explain can only work on dynamic indexes");
    }
    if (access.kind === "collection") return this.#explainCollection(source.name);
    const { definition } = access;
    const candidates = this.#automatics().filter((index) =>
      isMergeable(index.definition, definition),
    );
    const fitting = this.#fitting(definition);
    if (fitting !== undefined) return { indexName: fitting.name, reasons: [] };
    const reasons = candidates.map(({ name, definition: existing }) => {
      const has = new Set(existing.fields.map((field) => field.name));
      const missing = definition.fields.find((field) => !has.has(field.name));
      const reason =
        missing === undefined
          ? "A field is indexed in another way than the query needs"
          : `The following field is missing: ${missing.name}`;
      return { name, reason };
    });
    return { indexName: candidates[0]?.name ?? "Failure/None", reasons };
  }

  /** As RavenDB 7.2.7 answers: the widest index of the collection, although no index is needed. */
  #explainCollection(collection: string): IndexExplanation {
    const lower = foldedName(collection);
    const [widest, ...others] = this.#automatics()
      .filter(({ definition }) => definition.groupBy === null)
      .filter(({ definition }) => foldedName(definition.collection) === lower)
      .sort((left, right) => right.definition.fields.length - left.definition.fields.length);
    const reason = "Wasn't the widest index matching this query";
    return {
      indexName: widest?.name ?? "Failure/None",
      reasons: others.map(({ name }) => ({ name, reason })),
    };
  }

  /** Stops the indexes; `withSnapshots`: their contents are saved. */
  async close(withSnapshots: boolean): Promise<void> {
    await this.administration.close(withSnapshots);
  }

  /** Returns whether a query may have to wait for its prerequisites. */
  #mustSettle({ access }: AnalyzedQuery): boolean {
    return access.kind === "collection"
      ? access.ids?.kind === "prefix"
      : this.administration.restored !== null;
  }

  /** Waits for the query's prerequisites: indexes being restored, and new documents sorted by id. */
  async #settle({ access }: AnalyzedQuery): Promise<void> {
    if (access.kind !== "collection") await this.administration.restored;
    if (access.kind !== "collection" || access.ids?.kind !== "prefix") return;
    while (!this.#database.state.documents.settleOrder(sliceMs)) await nextSlice();
  }
}

/** Returns whether the options of a query request only a page of its rows. */
function isPageRequest(options: QueryOptions): boolean {
  return (
    options.unlessEtag === undefined &&
    options.metadataOnly !== true &&
    options.projectionBehavior === undefined &&
    options.isStream !== true &&
    options.trace === undefined
  );
}

/**
 * Provides indexes, and computes the reply's etag each time: the last time is right before the entry lookup, in the
 * same tick of the event loop.
 */
class EtagMarker implements IndexProvider {
  etag = 0;
  readonly #queries: DatabaseQueries;
  readonly #query: AnalyzedQuery;
  readonly #options: QueryOptions;
  readonly #running: RunningQuery;
  readonly #nextStale: () => number;

  constructor(
    queries: DatabaseQueries,
    query: AnalyzedQuery,
    options: QueryOptions,
    running: RunningQuery,
    nextStale: () => number,
  ) {
    this.#queries = queries;
    this.#query = query;
    this.#options = options;
    this.#running = running;
    this.#nextStale = nextStale;
  }

  automatic(definition: IndexDefinition): QueryIndex {
    const index = this.#queries.indexes.automatic(definition);
    this.#running.indexName = index.name;
    this.mark(index);
    return index;
  }

  byName(name: string): QueryIndex | undefined {
    const index = this.#queries.indexes.byName(name);
    if (index !== undefined) this.mark(index);
    return index;
  }

  withWholeFields(
    name: string,
    fieldNames: () => ReadonlySet<string> | null,
  ): QueryIndex | undefined {
    const index = this.#queries.indexes.withWholeFields(name, fieldNames);
    if (index !== undefined) this.mark(index);
    return index;
  }

  waitForNonStale(name: string, timeoutMs: number): Promise<boolean> {
    return this.#running.orKilled(this.#queries.indexes.waitForNonStale(name, timeoutMs));
  }

  /**
   * Returns whether the caller has the reply, as far as is known before the query begins. Detects nearly all such
   * replies: throwing and catching the error that stops a query costs ten microseconds.
   */
  isAnswered(): boolean {
    if (this.#options.unlessEtag === undefined || isRandomOrder(this.#query.orderBy)) return false;
    const index = this.#queries.answeringIndex(this.#query);
    if (index === undefined) return false;
    if (index !== null) this.#running.indexName = index.name;
    return this.#has(this.#queries.fingerprintOf(this.#query, index), index);
  }

  /** @throws notModified */
  mark(index: OpenIndex | null): void {
    const fingerprint = this.#queries.fingerprintOf(this.#query, index);
    if (isRandomOrder(this.#query.orderBy) || index?.isStale === true) {
      this.etag = safeHash(fingerprint, -this.#nextStale());
      return;
    }
    this.etag = fingerprint;
    if (this.#has(fingerprint, index)) throw notModified;
  }

  /** Returns whether the caller has the reply for this state of the data that the query reads. */
  #has(fingerprint: number, index: OpenIndex | null): boolean {
    const isHad = this.#options.unlessEtag === fingerprint;
    if (isHad) index?.wasQueried();
    return isHad;
  }
}

/** Records the numbers of the documents that an index query visits, and returns none of the documents. */
class NumberRows extends QueryRows {
  readonly numbers: number[] = [];

  override readListed(docNums: Uint32Array, at: number): boolean {
    this.numbers.push(docNums[at] as number); // at < length
    return false;
  }

  override pending(): null {
    return null;
  }
}

/** Returns whether a field is compared with the value of a compare-exchange key. */
function readsCompareExchange(condition: Condition): boolean {
  if (condition.kind === "comparison") return condition.value.type === "compare-exchange";
  return operandsOf(condition).some(readsCompareExchange);
}

/** Returns the documents of a collection, all or by an id condition, in the order of the query's rows. */
function collectionNumbers(database: Store, { access, source }: AnalyzedQuery): number[] {
  assert(access.kind === "collection", "it is a query of a collection");
  const { documents } = database.state;
  const id = source.isAllDocuments ? null : collectionIdNamed(database.state, source.name);
  const isWanted = (docNum: number) =>
    docNum >= 0 && (id === null || documents.collectionOf(docNum) === id);
  if (access.ids?.kind === "ids") {
    const found = new Set(access.ids.ids.map((one) => documents.find(one)).filter(isWanted));
    return [...found].sort((left, right) => documents.compareIds(left, right));
  }
  const cursor =
    access.ids === null
      ? documents.byEtag(id ?? allCollections, 0)
      : documents.byId(access.ids.prefix);
  const numbers: number[] = [];
  const batch = new Uint32Array(1024);
  for (let count = batch.length; count === batch.length; ) {
    count = cursor.fill(batch, batch.length);
    for (let i = 0; i < count; i++) {
      const docNum = batch[i] as number; // i < count
      if (isWanted(docNum)) numbers.push(docNum);
    }
  }
  return numbers;
}
