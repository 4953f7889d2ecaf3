/**
 * Runs an analyzed query: finds candidates, filters, projects, removes duplicates, pages, and collects includes, all in
 * slices of a few milliseconds (work-budget.ts).
 *
 * The entries of an index are found and sorted as of one moment and become a list of documents, which are then read one
 * by one. A document that is deleted before it is read is left out. When the index is compacted before all entries are
 * found, the search is restarted.
 *
 * The rules of totals and paging, some of them surprising, are RavenDB 7.2.7's: with `filter` the offset counts
 * candidates and not matches; without it, duplicates that `distinct` removes are not counted by the offset.
 */
import { assert } from "../base/assert.ts";
import { EngineError } from "../base/errors.ts";
import { largeRecordBytes, newIndexWaitMs } from "../base/limits.ts";
import { runSteps, type Steps } from "../base/steps.ts";
import { type Abortable, type Work, WorkBudget } from "../base/work-budget.ts";
import { isLargeDocument } from "../documents/document-chunks.ts";
import { bodyLengthOf, bodyTextOf, idOf } from "../documents/document-record.ts";
import { DocumentBits } from "../indexing/document-bits.ts";
import type { IndexReader } from "../indexing/index-reader.ts";
import { slicedSort } from "../indexing/sliced-sort.ts";
import { acquireText, type JsonText, releaseText } from "../json/json-text.ts";
import { readFieldsOf, wholeFieldsOf } from "./analyze-index.ts";
import type { AnalyzedQuery, Projection } from "./analyzed-query.ts";
import {
  bodyOf,
  compileFilter,
  conditionCount,
  isSimpleFilter,
  type RowTest,
} from "./compile-filter.ts";
import { explainEntries, hasScores, scoreEntries } from "./compile-score.ts";
import { findEntries } from "./compile-where.ts";
import { bestEntries, isByScore, selectBest } from "./execute-best.ts";
import { hasIncludes, IncludeCollector } from "./execute-include.ts";
import { RowLoader } from "./execute-load.ts";
import { distanceTexts } from "./execute-nearest.ts";
import { firstEntries, orderEntries, pageEndOf } from "./execute-order.ts";
import { type SummaryProjection, summaryOf, summaryRows } from "./execute-summary.ts";
import type { WhereContext } from "./functions/rql-function.ts";
import { type Highlighter, makeHighlighters, noRowKey, rowKeyText } from "./highlight.ts";
import { refuseUnfit } from "./known-fields.ts";
import { hasNearest } from "./meaning-of.ts";
import { namesStopWords, stopWordsIn } from "./named-documents.ts";
import { conditionsText } from "./plan-text.ts";
import { newOutcome } from "./query-outcome.ts";
import type { OrderWay, QueryTrace, TracedCondition } from "./query-trace.ts";
import type { ProjectionBehavior, QueryOutcome, RowSink, SeriesForm } from "./results.ts";
import {
  addWholeDocument,
  FieldProjector,
  indexedMetadata,
  largeDocument,
  projectionMetadata,
  type ReportedScore,
  type RowParts,
  severalValues,
  wholeDocument,
  wholeGroup,
  withMetadata,
  withScore,
} from "./results-projection.ts";
import { type PlacedCursor, RowScores } from "./row-scores.ts";
import type {
  GroupOutputs,
  IndexProvider,
  LoadedValue,
  ProjectedText,
  QueryIndex,
  QueryScripts,
  RowCursor,
  RowSource,
  ScriptInput,
  ScriptProvider,
  StoredRow,
} from "./row-source.ts";
import { spatialSummary } from "./spatial-summary.ts";
import { SeriesRunner, seriesRowOf } from "./time-series/execute-series.ts";
import { bytesOf, type ChunkList, rowOfColumns, rowOfSeries } from "./time-series/series-row.ts";
import { seriesObject } from "./time-series/series-text.ts";

/** The database as a query sees it. */
export interface QueryHost {
  readonly source: RowSource;
  readonly indexes: IndexProvider;
  readonly scripts: ScriptProvider;
  /** The etag of the reply; omitted: the etag of the index, or of the collection. */
  readonly resultEtag?: () => number;
}

/** The options of a query besides its text. */
export interface QueryRequest {
  readonly waitForNonStale: boolean;
  readonly waitTimeoutMs: number;
  /** Rows are `@metadata` only. */
  readonly isMetadataOnly: boolean;
  readonly projectionBehavior?: ProjectionBehavior | undefined;
  /** Omitted: "object". */
  readonly seriesForm?: SeriesForm | undefined;
  /** The rows are streamed: a total may be the size of the page. */
  readonly isStream?: boolean | undefined;
  /** Skip the removal of duplicates that fan-out entries produce. */
  readonly keepsDuplicates: boolean;
  /** Whether rows found through this index carry their scores; omitted: none do. */
  readonly reportsScores?: (index: QueryIndex) => boolean;
  /** Aborted when the caller no longer wants the rows. */
  readonly signal?: Abortable | undefined;
  /** Filled in while the query runs; omitted if the query is not traced. */
  readonly trace?: QueryTrace | undefined;
}

/** Cost of visiting a row; every 16 bytes of it cost one unit more. */
const rowUnits = 16;
/** Cost of finding a field in a row. */
const fieldUnits = 16;
/** Units of rows between two checks of the budget. */
const lookTicks = 1024;
/**
 * Number of conditions of a filter, and of declared functions, from which their compilation uses a time slice of its
 * own.
 */
const longFilterUnits = 256;
const manyDeclarations = 16;
/** Maximum number of operands counted in a query trace. */
const tracedConditionsMax = 24;
/** Entries processed between two checks of the budget. */
const entryStride = 16_384;
/** Bytes per entry of a list of entries and of their documents. */
const candidateBytes = 12;
/** Memory overhead of a distinct row besides its text, in bytes. */
const distinctBytes = 64;
const noExtra = Buffer.alloc(0);
const noNumbers = new Uint32Array(0);
/** Result of `select c` for a missing document; it gets the metadata of a projection. */
const missingDocument: ProjectedText = { text: "{}", isDocument: false };
const noLoaded: ReadonlyMap<string, LoadedValue> = new Map();
/** The rows seen by queries that are not `distinct`. */
const noRows = new Set<string>();
const noFields: ReadonlySet<string> = new Set();

/** Runs a query; rows go to `sink`. @throws index-missing, query-invalid, not-supported, script-failed */
export function* executeQuery(
  query: AnalyzedQuery,
  host: QueryHost,
  request: QueryRequest,
  sink: RowSink,
): Steps<QueryOutcome> {
  const execution = new Execution(query, host, request, sink);
  try {
    return yield* execution.run();
  } finally {
    execution.close();
  }
}

/** Entries in the order of a query, and how many match. */
interface FoundEntries {
  readonly entries: Uint32Array;
  readonly total: number;
}

/** Rows to visit, in order, and their number. */
interface Candidates {
  readonly cursor: RowCursor;
  /** -1: not counted. */
  readonly total: number;
}

class Execution {
  readonly #query: AnalyzedQuery;
  readonly #host: QueryHost;
  readonly #request: QueryRequest;
  readonly #sink: RowSink;
  /** Null: nothing is included, as far as known. */
  #includes: IncludeCollector | null = null;
  #loader: RowLoader | null = null;
  readonly #collection: string | null;
  readonly #budget: WorkBudget;
  #scripts: QueryScripts | null = null;
  #projector: FieldProjector | null = null;
  /** Null: no column is a series query. */
  #series: SeriesRunner | null = null;
  #index: QueryIndex | null = null;
  #outputs: GroupOutputs | null = null;
  /** The stored fields of the current row's entry. */
  #storedOfRow: (() => string | null) | null = null;
  #scores: RowScores | null = null;
  #stopWords: ReadonlyMap<string, ReadonlySet<string>> = new Map();
  /** Distance of the current row, written after its score. */
  #distanceOfRow: (() => string) | null = null;
  /** Whether the rows come from an index that was made for Lucene. */
  #isLucene = false;
  readonly #highlighters: readonly Highlighter[];
  /** By field, then by document id, or by the identifier of a reduced row. */
  readonly #highlightings: Map<string, Map<string, string[]>> | null;
  #scannedCount = 0;
  /** Cost of evaluating `filter` on a row. */
  #filterUnits = 1;
  #skippedCount = 0;
  /** Rows that passed `filter`, of all candidates visited. */
  #matchCount = 0;
  #extraRowCount = 0;
  #returnedCount = 0;
  /** Documents whose results are on the page. */
  #spreadCount = 0;
  #passedCount = 0;
  /** The rows of a `distinct` query so far. */
  readonly #seen: Set<string>;
  /** The text of the current row. */
  #rowText: JsonText | null = null;

  constructor(query: AnalyzedQuery, host: QueryHost, request: QueryRequest, sink: RowSink) {
    this.#query = query;
    this.#host = host;
    this.#request = request;
    this.#sink = sink;
    this.#collection = query.source.isAllDocuments ? null : query.source.name;
    this.#budget = new WorkBudget(request.signal);
    this.#seen = query.isDistinct ? new Set() : noRows;
    if (hasIncludes(query.include)) this.#includes = this.#newIncludes();
    const isIncluding = query.include.highlights.length > 0;
    this.#highlighters = isIncluding
      ? makeHighlighters(query.include.highlights, query.where, this.#budget)
      : [];
    const isHighlighting = isIncluding && query.access.kind !== "collection";
    this.#highlightings = isHighlighting
      ? new Map(this.#highlighters.map(({ field }) => [field, new Map()]))
      : null;
  }

  *run(): Steps<QueryOutcome> {
    const query = this.#query;
    const { source } = this.#host;
    const { projection } = query;
    if (projection.kind === "facets" || projection.kind === "suggestions") {
      return yield* this.#summarize(projection);
    }
    const startMs = source.monotonicMs();
    if (query.access.kind !== "collection") {
      this.#index = yield* this.#readyIndex();
    }
    const isStale = this.#index?.isStale ?? false;
    const stalenessMs = source.monotonicMs() - startMs;
    this.#outputs = this.#index?.outputs ?? null;
    const candidates =
      this.#index === null
        ? yield* this.#budget.steps(this.#collectionRows())
        : yield* this.#indexRows(this.#index);
    const queryMs = source.monotonicMs() - startMs - stalenessMs;
    this.#prepareRows();
    const walkedAtMs = this.#traceFinding(candidates, startMs, stalenessMs);
    yield* this.#walk(candidates);
    this.#traceReading(walkedAtMs);
    if (this.#scripts !== null) this.#included().addScripted(this.#scripts.included);
    const collected = this.#includes;
    const includes = collected === null ? [] : yield* collected.finish();
    const durationMs = source.monotonicMs() - startMs;
    const totalResults = this.#total(candidates);
    this.#traceEnd(walkedAtMs, includes.length);
    const outcome = newOutcome(
      query,
      source,
      this.#index,
      isStale,
      this.#resultEtag(),
      totalResults,
      durationMs,
    );
    outcome.scannedResults = this.#scannedCount;
    outcome.skippedResults = this.#skippedCount;
    outcome.includes = includes;
    if (collected !== null) {
      outcome.includedPaths = collected.pathTexts;
      outcome.counterIncludes = collected.counters;
      outcome.compareExchangeKeys = collected.compareExchangeKeys;
      outcome.revisionIncludes = collected.revisions;
      outcome.seriesIncludes = collected.series;
    }
    if (this.#request.seriesForm === "named") outcome.seriesFields = seriesFields(query);
    // RavenDB 7.2.7 omits the members when there are no rows.
    if (this.#returnedCount > 0) {
      outcome.highlightings = this.#highlightings;
      if (query.include.explanations !== null) {
        outcome.explanations = this.#scores?.explanations ?? null;
      }
    }
    if (query.access.kind === "automatic-index") outcome.spatial = spatialSummary(query);
    if (query.include.hasTimings) {
      outcome.timings = {
        totalMs: durationMs,
        stalenessMs: this.#index === null ? null : stalenessMs,
        queryMs,
        retrieverMs: durationMs - stalenessMs - queryMs,
      };
    }
    return outcome;
  }

  /** Prepares the projection of rows, by scripts or by fields. */
  #prepareRows(): void {
    const query = this.#query;
    const { source } = this.#host;
    const needsScript = query.projection.kind === "script" || query.projection.kind === "call";
    if (needsScript) this.#scripts = this.#scriptsOfQuery();
    else if (query.projection.kind === "fields") {
      const stored = this.#index?.stored ?? null;
      this.#projector = new FieldProjector(
        query,
        source,
        this.#outputs,
        stored,
        this.#request.projectionBehavior,
        this.#index?.name ?? null,
      );
      const isSeries = query.projection.fields.some(({ value }) => value.kind === "series");
      if (isSeries) this.#series = this.#seriesRunner();
    }
  }

  #resultEtag(): number {
    const { resultEtag, source } = this.#host;
    if (resultEtag !== undefined) return resultEtag();
    return this.#index?.lastEtag ?? source.resultEtagOf(this.#collection);
  }

  /** Facets or suggestions instead of rows: order and paging have no effect. */
  *#summarize(summary: SummaryProjection): Steps<QueryOutcome> {
    const { source } = this.#host;
    const startMs = source.monotonicMs();
    const index = yield* this.#summarizedIndex();
    const { isStale } = index;
    const made = yield* summaryOf(summary, this.#query, source, this.#budget);
    const include = (id: string) => this.#included().addId(id);
    const rows = yield* this.#onIndex(index, null, (reader) =>
      summaryRows(made, this.#query, index, this.#whereContext(reader), include),
    );
    for (const row of rows) {
      const waiting = this.#sink.add(row);
      if (waiting !== null) yield waiting;
    }
    const includes = this.#includes === null ? [] : yield* this.#includes.finish();
    const durationMs = source.monotonicMs() - startMs;
    const resultEtag = this.#host.resultEtag?.() ?? index.lastEtag;
    const outcome = newOutcome(
      this.#query,
      source,
      index,
      isStale,
      resultEtag,
      rows.length,
      durationMs,
    );
    outcome.isSummary = true;
    outcome.cappedMaxResults = null;
    outcome.includes = includes;
    return outcome;
  }

  *#summarizedIndex(): Steps<QueryIndex> {
    try {
      return yield* this.#readyIndex();
    } catch (error) {
      if (!(error instanceof EngineError) || error.code !== "index-missing") throw error;
      throw new EngineError("summary-index-missing", error.message, { cause: error });
    }
  }

  #newIncludes(): IncludeCollector {
    return new IncludeCollector(this.#query, this.#host.source, this.#budget);
  }

  /** Returns the collector of documents that rows and scripts include. */
  #included(): IncludeCollector {
    this.#includes ??= this.#newIncludes();
    return this.#includes;
  }

  /** Releases the memory that its budget holds. */
  close(): void {
    if (this.#rowText !== null) releaseText(this.#rowText);
    this.#budget.close();
  }

  *entries(): Steps<EntriesOutcome> {
    if (this.#query.access.kind === "collection") {
      throw new EngineError("index-missing", "A query of a collection has no index entries.");
    }
    const found = yield* this.#readyIndex();
    // All that RavenDB's entries have is shown.
    const whole = this.#host.indexes.withWholeFields(found.name, () => null) ?? found;
    const index = whole.isStale ? yield* this.#awaitIndex(whole) : whole;
    return yield* this.#onIndex(index, null, (reader) => this.#entryTexts(reader, index));
  }

  *#entryTexts(reader: IndexReader, index: QueryIndex): Work<EntriesOutcome> {
    const { skip, take } = this.#query.paging;
    const { entries, total } = yield* this.#foundEntries(reader, index);
    const texts: string[] = [];
    for (const entry of entries.subarray(skip, Math.min(entries.length, skip + take))) {
      const text = reader.entryText(entry);
      texts.push(text);
      this.#budget.hold(text.length);
      this.#budget.tick(rowUnits + text.length);
      if (this.#budget.isDue) yield;
    }
    return {
      totalResults: total,
      indexName: index.name,
      isStale: index.isStale,
      entries: texts,
    };
  }

  /**
   * Runs work on an index; restarts it if the index is compacted in the meantime. `fields`: the fields that the work
   * reads; null if it may read any field.
   */
  *#onIndex<Result>(
    index: QueryIndex,
    fields: ReadonlySet<string> | null,
    begin: (reader: IndexReader) => Work<Result>,
  ): Steps<Result> {
    const budget = this.#budget;
    for (;;) {
      const refreshing = index.refresh(fields, budget);
      if (refreshing !== null) yield* budget.steps(refreshing);
      const heldBefore = budget.heldBytes;
      const reader = index.reader(budget);
      const work = begin(reader);
      do {
        const step = work.next();
        if (step.done === true) return step.value;
        reader.freeze();
        yield budget.pause();
      } while (reader.isCurrent);
      budget.release(budget.heldBytes - heldBefore);
    }
  }

  *#readyIndex(): Steps<QueryIndex> {
    const { access } = this.#query;
    const { indexes } = this.#host;
    assert(access.kind !== "collection", "only index queries use an index");
    const index =
      access.kind === "automatic-index"
        ? indexes.automatic(access.definition)
        : indexes.withWholeFields(access.name, () => wholeFieldsOf(this.#query));
    if (index === undefined) {
      throw new EngineError("index-missing", `There is no index with '${access.name}' name.`);
    }
    const isReady = !index.isStale && !namesStopWords(this.#query.where);
    return isReady ? index : yield* this.#awaitIndex(index);
  }

  *#awaitIndex(index: QueryIndex): Steps<QueryIndex> {
    const { indexes, source } = this.#host;
    this.#stopWords = yield* stopWordsIn(this.#query.where, source);
    if (!index.isStale) return index;
    const { waitForNonStale, waitTimeoutMs } = this.#request;
    if (waitForNonStale) yield indexes.waitForNonStale(index.name, waitTimeoutMs);
    else if (index.isNew) yield indexes.waitForNonStale(index.name, newIndexWaitMs);
    return indexes.byName(index.name) ?? index;
  }

  *#collectionRows(): Work<Candidates> {
    const { source } = this.#host;
    const { access } = this.#query;
    assert(access.kind === "collection", "collection queries have collection access");
    const { ids } = access;
    if (ids === null) {
      const total = source.countOf(this.#collection);
      return { cursor: source.rows(this.#collection), total };
    }
    if (ids.kind === "prefix") {
      const cursor = source.rowsByPrefix(ids.prefix);
      return { cursor, total: -1 };
    }
    const [onlyId] = ids.ids;
    if (ids.ids.length === 1 && onlyId !== undefined) {
      const docNum = source.findDocument(onlyId);
      const isFound = docNum >= 0 && source.isIn(docNum, this.#collection);
      const docNums = isFound ? Uint32Array.of(docNum) : noNumbers;
      return { cursor: new ListCursor(docNums, 0, source), total: docNums.length };
    }
    const found = new Set<number>();
    this.#budget.hold(ids.ids.length * candidateBytes);
    for (const id of ids.ids) {
      const docNum = source.findDocument(id);
      if (docNum >= 0 && source.isIn(docNum, this.#collection)) found.add(docNum);
      this.#budget.spend(rowUnits);
      if (this.#budget.isDue) yield;
    }
    const compare = (a: number, b: number) => source.compareIds(a, b);
    const docNums = yield* slicedSort(Uint32Array.from(found), compare, this.#budget);
    return { cursor: new ListCursor(docNums, 0, source), total: docNums.length };
  }

  /** Returns the number of matches of each operand of the condition, evaluated separately. */
  *#tracedConditions(reader: IndexReader): Work<TracedCondition[]> {
    const { where } = this.#query;
    const traced: TracedCondition[] = [];
    if (where === null || (where.kind !== "and" && where.kind !== "or")) return traced;
    for (const operand of where.operands.slice(0, tracedConditionsMax)) {
      const found = hasNearest(operand)
        ? null
        : (yield* findEntries(operand, this.#whereContext(reader))).count;
      traced.push({ text: conditionsText(operand), found });
    }
    return traced;
  }

  *#indexRows(index: QueryIndex): Steps<Candidates> {
    const fields = index.outputs === null ? noFields : readFieldsOf(this.#query);
    return yield* this.#onIndex(index, fields, (reader) => this.#entryRows(reader, index));
  }

  *#entryRows(reader: IndexReader, index: QueryIndex): Work<Candidates> {
    const { trace } = this.#request;
    const startMs = trace === undefined ? 0 : this.#host.source.monotonicMs();
    const { entries, total } = yield* this.#foundEntries(reader, index);
    if (trace !== undefined) {
      trace.findMs = this.#host.source.monotonicMs() - startMs;
      trace.entryCount = reader.store.liveCount;
      trace.conditions = yield* this.#tracedConditions(reader);
    }
    this.#skippedCount = 0;
    this.#budget.hold(entries.length * candidateBytes);
    if (index.outputs !== null) {
      const cursor = new GroupCursor(entries, index.outputs, reader);
      yield* this.#score(entries, reader, index, cursor);
      this.#readStored(index, entries, cursor, reader);
      return { cursor, total };
    }
    const docNums = yield* this.#documentsOf(entries, reader);
    const cursor = new ListCursor(docNums, 0, this.#host.source);
    const shown =
      docNums.length < entries.length ? yield* this.#firstEntries(entries, reader) : entries;
    yield* this.#score(shown, reader, index, cursor);
    this.#readStored(index, entries, cursor, reader);
    return { cursor, total };
  }

  #readStored(
    { stored }: QueryIndex,
    entries: Uint32Array,
    cursor: { readonly position: number },
    reader: IndexReader,
  ): void {
    this.#isLucene = reader.isLucene;
    const isDocument = this.#query.projection.kind === "document";
    if (stored === null || (isDocument && this.#highlighters.length === 0)) return;
    this.#storedOfRow = () => {
      const entry = reader.currentOf(entries[cursor.position] as number);
      return entry < 0 ? null : stored.textOf(entry);
    };
  }

  /** Returns the stored fields of the current row's entry, or null. */
  #storedText(): string | null {
    return this.#storedOfRow === null ? null : this.#storedOfRow();
  }

  /** Scores the rows that `cursor` walks when the reply reports scores. */
  *#score(
    entries: Uint32Array,
    reader: IndexReader,
    index: QueryIndex,
    cursor: PlacedCursor,
  ): Work<void> {
    const { include, where } = this.#query;
    const isExplained = include.explanations !== null;
    if (!isExplained && !this.#reportsScores(index)) return;
    const context = this.#whereContext(reader);
    const scores = yield* explainEntries(where, entries, context, isExplained);
    this.#scores = new RowScores(scores, cursor);
    const distances = yield* distanceTexts(this.#query, reader);
    if (distances === null) return;
    this.#distanceOfRow = () => distances(entries[cursor.position] as number);
  }

  #reportsScores(index: QueryIndex | null): boolean {
    return (
      index !== null && index.outputs === null && this.#request.reportsScores?.(index) === true
    );
  }

  #whereContext(reader: IndexReader): WhereContext {
    const { source, scripts } = this.#host;
    return {
      reader,
      findDocument: (id) => source.findDocument(id),
      compareExchangeOf: (key) => source.compareExchangeOf(key),
      textTest: (pattern) => scripts.textTest(pattern, this.#budget),
      stopWordsOf: (id) => this.#stopWords.get(id) ?? new Set(),
    };
  }

  /**
   * Returns the entries that match the condition, in the order of the query: all, or at least those up to the end of
   * the page.
   */
  *#foundEntries(reader: IndexReader, index: QueryIndex): Work<FoundEntries> {
    const query = this.#query;
    refuseUnfit(query, index);
    const context = this.#whereContext(reader);
    const isScored = hasScores(query, reader);
    const pageEnd = pageEndOf(query);
    const isByBest = isScored && pageEnd !== null && !reader.store.hasSeveral && isByScore(query);
    const best = isByBest ? yield* bestEntries(query, pageEnd, context) : null;
    if (best !== null && this.#areThere(best.entries, reader, index)) {
      this.#traceOrder("best", best.entries.length);
      return best;
    }
    const set = query.where === null ? reader.all() : yield* findEntries(query.where, context);
    const total = set.count;
    if (pageEnd !== null && !isScored) {
      const first = yield* firstEntries(set, query.orderBy, pageEnd, reader);
      const page = first && (yield* this.#ordered(first, null, pageEnd, reader));
      if (page !== null && this.#areThere(page, reader, index)) {
        this.#traceOrder(query.orderBy.length === 0 ? "none" : "walk", page.length);
        return { entries: page, total };
      }
    }
    const entries = set.toList();
    this.#traceOrder(query.orderBy.length === 0 && !isScored ? "none" : "sort", entries.length);
    const scores = isScored ? yield* scoreEntries(query.where, entries, context) : null;
    if (isByBest && scores !== null) {
      const page = yield* selectBest(entries, scores, pageEnd, context);
      if (page !== null && this.#areThere(page, reader, index)) return { entries: page, total };
    }
    const page = yield* this.#ordered(entries, scores, pageEnd, reader);
    if (page.length === entries.length || this.#areThere(page, reader, index)) {
      return { entries: page, total };
    }
    return { entries: yield* this.#ordered(entries, scores, null, reader), total };
  }

  /** @returns the time at which reading of the candidates begins; 0 if the query is not traced */
  #traceFinding(candidates: Candidates, startMs: number, waitMs: number): number {
    const { trace } = this.#request;
    if (trace === undefined) return 0;
    const nowMs = this.#host.source.monotonicMs();
    trace.waitMs = waitMs;
    trace.found = candidates.total;
    if (trace.entryCount === null) trace.findMs = nowMs - startMs;
    return nowMs;
  }

  #traceReading(walkedAtMs: number): void {
    const { trace } = this.#request;
    if (trace === undefined) return;
    trace.readMs = this.#host.source.monotonicMs() - walkedAtMs;
    trace.testedCount = this.#scannedCount;
    trace.passedCount = this.#matchCount;
    trace.rowCount = this.#returnedCount;
  }

  #traceEnd(walkedAtMs: number, includedCount: number): void {
    const { trace } = this.#request;
    if (trace === undefined) return;
    trace.includedCount = includedCount;
    trace.includeMs = this.#host.source.monotonicMs() - walkedAtMs - trace.readMs;
  }

  #traceOrder(way: OrderWay, count: number): void {
    const { trace } = this.#request;
    if (trace === undefined) return;
    trace.way = way;
    trace.orderedCount = count;
  }

  /** Returns whether all documents of a page exist. If not, the page is filled with later candidates. */
  #areThere(page: Uint32Array, { view }: IndexReader, { outputs }: QueryIndex): boolean {
    const { source } = this.#host;
    return (
      outputs !== null || page.every((entry) => source.exists(view.documents[entry] as number))
    );
  }

  *#ordered(
    entries: Uint32Array,
    scores: Float64Array | null,
    count: number | null,
    reader: IndexReader,
  ): Work<Uint32Array> {
    const query = this.#query;
    const { source } = this.#host;
    const byScore = { kind: "score", isDescending: false, nulls: null } as const;
    const orderBy = query.orderBy.length === 0 && scores !== null ? [byScore] : query.orderBy;
    const newSeed = () => String(source.monotonicMs());
    const isAll = query.where === null;
    const enough = reader.store.hasSeveral ? undefined : (count ?? undefined);
    return yield* orderEntries(
      entries,
      orderBy,
      { reader, source, scores, newSeed },
      isAll,
      enough,
    );
  }

  /**
   * Returns the documents of entries. Whole documents appear once each: further entries of one are duplicates of the
   * first.
   */
  *#documentsOf(entries: Uint32Array, reader: IndexReader): Work<Uint32Array> {
    const { documents } = reader.view;
    const docNums = new Uint32Array(entries.length);
    for (let from = 0; from < entries.length; from += entryStride) {
      copyDocuments(entries, documents, docNums, from);
      if (from > 0) yield* this.#strideOfEntries();
    }
    const isWhole = this.#query.projection.kind === "document";
    if (!isWhole || this.#request.keepsDuplicates || !reader.store.hasSeveral) return docNums;
    const first = yield* this.#firstEntries(entries, reader);
    this.#skippedCount += docNums.length - first.length;
    return first.map((entry) => documents[entry] as number);
  }

  /** Returns the first entry of each document, in order. */
  *#firstEntries(entries: Uint32Array, reader: IndexReader): Work<Uint32Array> {
    const { documents } = reader.view;
    const seen = new DocumentBits();
    const first = new Uint32Array(entries.length);
    let count = 0;
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i] as number;
      const document = documents[entry] as number;
      if ((i & (entryStride - 1)) === entryStride - 1) yield* this.#strideOfEntries();
      if (seen.has(document)) continue;
      seen.add(document);
      first[count++] = entry;
    }
    return first.slice(0, count);
  }

  *#strideOfEntries(): Work<void> {
    this.#budget.spend(entryStride);
    if (this.#budget.isDue) yield;
  }

  /** Visits candidates until the page is full. */
  *#walk(candidates: Candidates): Steps<void> {
    const { filter, paging, isDistinct } = this.#query;
    const { cursor } = candidates;
    const test = filter === null ? null : this.#filterTest();
    const isPrefix = this.#idsKind() === "prefix";
    const isFilteredList = filter !== null && this.#idsKind() === "ids";
    // With a filter the offset is on candidates; a list of ids is filtered before it is paged.
    const isRawSkip = !isFilteredList && (!isDistinct || filter !== null);
    const rowSkip = isRawSkip ? 0 : paging.skip;
    const visitsAll = isFilteredList || this.#isCounting();
    const filterTake = paging.filterTake ?? Number.MAX_SAFE_INTEGER;
    // The offset is past the last row: no row is visited, and no duplicate counted.
    if (isDistinct && filter === null && paging.skip > 0 && paging.skip >= candidates.total) return;
    let rawSkip = isRawSkip ? paging.skip : 0;
    const budget = this.#budget;
    // Compiling a long filter or many functions uses a time slice of its own; the first rows after it are slow.
    const isLong = this.#filterUnits >= longFilterUnits;
    if (isLong || this.#query.functions.length >= manyDeclarations) yield budget.pause();
    const hasSteps = this.#query.load.length > 0 || this.#series !== null || this.#isOfScript();
    const unitsOfRow = rowUnits + fieldUnits * projectedCount(this.#query);
    let ticks = 0;
    let filtered = 0;
    const skippedAtStart = rawSkip;
    for (;;) {
      if (this.#isPageFull() && !visitsAll) break;
      if (this.#scannedCount >= filterTake) break;
      if (ticks >= lookTicks) {
        budget.tick(ticks);
        budget.spend(filtered * this.#filterUnits);
        ticks = 0;
        filtered = 0;
      }
      if (budget.isDue) yield budget.pause();
      ticks += unitsOfRow;
      if (!cursor.next()) {
        if (cursor.pending === null) break;
        yield cursor.pending;
        continue;
      }
      const { row } = cursor;
      if (isPrefix && !this.#host.source.isIn(row.docNum, this.#collection)) {
        this.#skippedCount++;
        continue;
      }
      if (rawSkip > 0) {
        rawSkip--;
        continue;
      }
      this.#passedCount++;
      ticks += rowLengthOf(row) >>> 4;
      if (test !== null) {
        this.#scannedCount++;
        filtered++;
        ticks += this.#filterUnits;
        const isPassed =
          test === "script" ? yield* this.#passesScript(row) : test(row, bodyOf(row));
        if (!isPassed) {
          this.#skippedCount++;
          continue;
        }
      }
      this.#matchCount++;
      const waiting = hasSteps ? null : this.#emit(row, rowSkip);
      if (hasSteps) yield* this.#emitInSteps(row, rowSkip);
      if (waiting !== null) yield waiting;
      if (hasSteps || waiting !== null) budget.refuseCancelled();
    }
    const { trace } = this.#request;
    if (trace !== undefined) trace.readCount = this.#passedCount + skippedAtStart - rawSkip;
  }

  #isPageFull(): boolean {
    const count = this.#pagesDocuments() ? this.#spreadCount : this.#returnedCount;
    return count >= this.#query.paging.take;
  }

  /** Returns whether a page has documents of an index, whose scripts may make several rows each. */
  #pagesDocuments(): boolean {
    return (
      this.#index !== null && this.#isOfScript() && !this.#query.isDistinct && this.#series === null
    );
  }

  #isOfScript(): boolean {
    return this.#query.projection.kind !== "document" && this.#projector === null;
  }

  #idsKind(): "ids" | "prefix" | null {
    const { access } = this.#query;
    return access.kind === "collection" ? (access.ids?.kind ?? null) : null;
  }

  /** Returns whether this is a page of no rows whose total is known only after all rows were visited. */
  #isCounting(): boolean {
    const { filter, paging, isDistinct } = this.#query;
    return paging.take === 0 && (isDistinct || (filter !== null && this.#index === null));
  }

  #filterTest(): RowTest | "script" {
    const { filter, load, source, parameters } = this.#query;
    assert(filter !== null, "there is a filter");
    const aliases = new Set(load.map((step) => step.alias));
    if (!isSimpleFilter(filter, aliases)) {
      this.#scripts ??= this.#scriptsOfQuery();
      return "script";
    }
    this.#filterUnits = conditionCount(filter);
    return compileFilter(filter, {
      source: this.#host.source,
      alias: source.alias,
      parameters,
      textTest: (pattern) => this.#host.scripts.textTest(pattern, this.#budget),
    });
  }

  *#passesScript(row: StoredRow): Steps<boolean> {
    assert(this.#scripts !== null, "a filter by script has a script");
    const loaded = yield* this.#loaded(row);
    const input = this.#scriptInput(row, loaded, null);
    for (;;) {
      try {
        return this.#scripts.passes(input);
      } catch (error) {
        yield this.#awaitMissing(error);
      }
    }
  }

  /** @returns the promise to await before the script that threw is rerun. @throws every other error */
  #awaitMissing(error: unknown): Promise<void> {
    const missing = this.#scripts?.missing(error) ?? null;
    if (missing === null) throw error;
    return missing;
  }

  /**
   * Projects a row and passes it to the sink, unless it is a duplicate or precedes the page.
   * @returns back-pressure of the sink
   */
  #emit(row: StoredRow, rowSkip: number): Promise<void> | null {
    if (this.#isPastPage(rowSkip)) return null;
    const parts = this.#partsOf(row, noLoaded);
    const { projection } = this.#query;
    return projection.kind === "document" && projection.key === null
      ? this.#emitDocument(parts)
      : this.#emitTexts(parts, this.#projected(parts), rowSkip);
  }

  /** As `#emit`, for rows with loaded documents, by scripts or with results of series queries. */
  *#emitInSteps(row: StoredRow, rowSkip: number): Steps<void> {
    if (this.#isPastPage(rowSkip)) return;
    const parts = this.#partsOf(row, yield* this.#loaded(row));
    const { projection } = this.#query;
    if (this.#series !== null) {
      yield* this.#emitSeries(parts, rowSkip, this.#series);
      return;
    }
    const waiting =
      projection.kind === "document" && projection.key === null
        ? this.#emitDocument(parts)
        : this.#emitTexts(parts, yield* this.#projectedInSteps(parts), rowSkip);
    if (waiting !== null) yield waiting;
  }

  /** Returns whether no further whole document is on the page. */
  #isPastPage(rowSkip: number): boolean {
    const { projection, paging } = this.#query;
    const isWhole = projection.kind === "document" && projection.key === null;
    return isWhole && rowSkip === 0 && this.#returnedCount >= paging.take;
  }

  #partsOf(row: StoredRow, loaded: ReadonlyMap<string, LoadedValue>): RowParts {
    return { row, loaded, score: this.#reportedScore(), stored: this.#storedText() };
  }

  #reportedScore(): ReportedScore | null {
    if (this.#scores === null || !this.#reportsScores(this.#index)) return null;
    const { current } = this.#scores;
    return this.#distanceOfRow === null ? current : `${current}${this.#distanceOfRow()}`;
  }

  #emitDocument(parts: RowParts): Promise<void> | null {
    if (this.#returnedCount >= this.#query.paging.take) return null;
    this.#includes?.addRow(parts.row, null);
    this.#explain(parts.row, null);
    this.#highlight(parts, null);
    const { row } = parts;
    if (this.#sink.addLarge === undefined || row.start < 0 || this.#request.isMetadataOnly) {
      return this.#deliver(this.#documentRow(parts));
    }
    if (!isLargeDocument(row.bytes, row.start)) return this.#deliver(this.#documentRow(parts));
    this.#returnedCount++;
    return this.#sink.addLarge(largeDocument(row, parts.score, this.#host.source));
  }

  #emitTexts(
    parts: RowParts,
    projected: readonly ProjectedText[],
    rowSkip: number,
  ): Promise<void> | null {
    const { projection, isDistinct, paging } = this.#query;
    let waiting: Promise<void> | null = null;
    this.#extraRowCount += Math.max(0, projected.length - 1);
    const isOfIndex = this.#index !== null;
    if (projected.length === 0 && (projection.kind === "document" || !isOfIndex)) {
      this.#skippedCount++;
    }
    const pagesDocuments = this.#pagesDocuments();
    if (pagesDocuments) {
      if (this.#isPageFull()) return null;
      this.#spreadCount++;
    }
    let hasSkipped = false;
    for (const one of projected) {
      const { text } = one;
      // For a collection, duplicates after the page are not detected; for an index, a document's duplicates are counted
      // once.
      if (isDistinct && !isOfIndex && paging.take > 0 && this.#isPageFull()) break;
      if (isDistinct) {
        if (this.#seen.has(text)) {
          if (!hasSkipped) this.#skippedCount++;
          hasSkipped = isOfIndex;
          continue;
        }
        this.#seen.add(text);
        this.#budget.hold(2 * text.length + distinctBytes);
        if (this.#seen.size <= rowSkip) continue;
      }
      if (!pagesDocuments && this.#returnedCount >= paging.take) continue;
      this.#includes?.addRow(parts.row, text);
      this.#explain(parts.row, text);
      this.#highlight(parts, text);
      const next = this.#deliver(this.#projectedRow(one, parts));
      if (next !== null)
        waiting = waiting === null ? next : Promise.all([waiting, next]).then(() => {});
    }
    return waiting;
  }

  #seriesRunner(): SeriesRunner {
    const { source } = this.#host;
    return new SeriesRunner(this.#query, source, this.#budget);
  }

  #scriptsOfQuery(): QueryScripts {
    const query = this.#query;
    const runner = this.#seriesRunner();
    return this.#host.scripts.forQuery(query, this.#budget, {
      call: async (name, args, { row, loaded }) => {
        const result = await runSteps(runner.call(name, args, seriesRowOf(query, row, loaded)));
        const text = seriesObject(result, false);
        this.#budget.release(result.bytes);
        return text;
      },
    });
  }

  /** As `#emitTexts`, for a row with results of series queries in it. */
  *#emitSeries(parts: RowParts, rowSkip: number, series: SeriesRunner): Steps<void> {
    const { projection, isDistinct, paging } = this.#query;
    if (this.#returnedCount >= paging.take && !isDistinct) return;
    assert(projection.kind === "fields", "series queries are columns");
    assert(this.#projector !== null, "columns have a projector");
    const form = this.#request.seriesForm ?? "object";
    const columns = this.#projector.project({ ...parts, hasSeries: true });
    const others = this.#projector.project(parts);
    const metadata = projectionMetadata(
      { ...parts, score: this.#index === null ? 0 : parts.score },
      this.#host.source,
    );
    const results = yield* series.columns(parts);
    const [only] = results;
    const row =
      projection.isSeries === true && form !== "list" && only !== undefined
        ? rowOfSeries(only, metadata, form)
        : rowOfColumns(columns, results, metadata, form);
    if (!isDistinct || this.#isNew(rowOfColumns(columns, results, "}", "object"), rowSkip)) {
      this.#includes?.addRow(parts.row, others);
      this.#explain(parts.row, others);
      this.#highlight(parts, others);
      const waiting = this.#deliverChunks(row);
      if (waiting !== null) yield waiting;
    }
    this.#budget.release(bytesOf(results));
  }

  /** Returns whether a distinct row is new and on the page. */
  #isNew(row: ChunkList, rowSkip: number): boolean {
    this.#budget.hold(2 * row.length + distinctBytes);
    const text = row.copy(0, row.length).toString();
    if (this.#seen.has(text)) {
      this.#skippedCount++;
      return false;
    }
    this.#seen.add(text);
    return this.#seen.size > rowSkip && this.#returnedCount < this.#query.paging.take;
  }

  #deliverChunks(row: ChunkList): Promise<void> | null {
    if (row.length <= largeRecordBytes || this.#sink.addLarge === undefined) {
      return this.#deliver(row.copy(0, row.length));
    }
    this.#returnedCount++;
    return this.#sink.addLarge(row);
  }

  /** `projected`: the row's text; null: the reduced object itself, or a document, whose text is not needed. */
  #explain(row: StoredRow, projected: string | null): void {
    const { explanations } = this.#query.include;
    if (explanations === null || this.#scores === null) return;
    const text = projected ?? (row.start < 0 ? row.bytes.toString() : "");
    this.#scores.explain(row, text, explanations.groupKey);
  }

  /** `projected`: as for `#explain`. A stored field takes precedence over the document's. */
  #highlight({ row, stored }: RowParts, projected: string | null): void {
    for (const { field, path, groupKey, fragments } of this.#highlighters) {
      const text = row.start < 0 ? row.bytes.toString() : bodyTextOf(row.bytes, row.start);
      const source = JSON.parse(text) as unknown;
      const kept = stored === null ? undefined : valueAt(JSON.parse(stored), [field]);
      const found = fragments(textsOf(kept ?? valueAt(source, path)));
      if (found.length === 0) continue;
      const key = groupKey === null ? null : this.#rowKey(groupKey, text, stored, projected);
      if (key === null && groupKey !== null && row.start < 0) throw noRowKey(groupKey);
      const rowName = key ?? (row.start < 0 ? text : idOf(row.bytes, row.start));
      this.#highlightings?.get(field)?.set(rowName, found);
    }
  }

  /** The text of a row's group key: an index made for Lucene has it beside a projection, one for Corax in the row. */
  #rowKey(
    name: string,
    text: string,
    stored: string | null,
    projected: string | null,
  ): string | null {
    const shown = valueAt(JSON.parse(projected ?? text), [name]);
    if (!this.#isLucene || shown !== undefined) return rowKeyText(shown, name, this.#isLucene);
    const kept = stored === null ? undefined : valueAt(JSON.parse(stored), [name]);
    return rowKeyText(kept ?? valueAt(JSON.parse(text), [name]), name, true);
  }

  #deliver(row: Buffer): Promise<void> | null {
    this.#returnedCount++;
    this.#budget.tick(row.length >>> 4);
    return this.#sink.add(row);
  }

  #documentRow(parts: RowParts): Buffer {
    const { row } = parts;
    if (row.start < 0) return Buffer.from(wholeGroup(row.bytes.toString()));
    if (!this.#request.isMetadataOnly) {
      this.#rowText ??= acquireText();
      this.#rowText.clear();
      addWholeDocument(row, parts.score, this.#host.source, this.#rowText);
      return this.#rowText.bytes;
    }
    const metadata = this.#host.source.metadataOf(row, noExtra);
    return Buffer.concat([Buffer.from('{"@metadata":'), metadata, Buffer.from("}")]);
  }

  #projected(parts: RowParts): readonly ProjectedText[] {
    const { projection } = this.#query;
    if (this.#projector !== null) {
      return [{ text: this.#projector.project(parts), isDocument: false }];
    }
    if (projection.kind === "document") return this.#loadedDocuments(projection, parts);
    assert(this.#scripts !== null, "a projection by script has a script");
    return this.#scripts.project(this.#scriptInput(parts.row, parts.loaded, parts.stored));
  }

  /** As `#projected`; waits for the documents that scripts load. */
  *#projectedInSteps(parts: RowParts): Steps<readonly ProjectedText[]> {
    for (;;) {
      try {
        return this.#projected(parts);
      } catch (error) {
        yield this.#awaitMissing(error);
      }
    }
  }

  /** Returns the rows of `select c` for a loaded `c`, or of `select o as X`. */
  #loadedDocuments(
    { alias, key }: Extract<Projection, { kind: "document" }>,
    parts: RowParts,
  ): readonly ProjectedText[] {
    const { load, source } = this.#query;
    if (alias === null || alias === source.alias) {
      const text = wholeDocument(parts.row, null, this.#host.source).toString();
      return [{ text, isDocument: true }];
    }
    const step = load.find((one) => one.alias === alias);
    const isNested =
      step?.source.kind === "path" &&
      step.source.root !== null &&
      step.source.root !== source.alias;
    const loaded = isNested ? null : (parts.loaded.get(alias) ?? null);
    if (loaded === null) return step?.isArray ? [] : [missingDocument];
    if (typeof loaded === "string") return [{ text: loaded, isDocument: true }];
    if (!step?.isArray) throw severalValues(key ?? alias);
    return loaded.flatMap((text) => (text === null ? [] : [{ text, isDocument: true }]));
  }

  #projectedRow({ text, isDocument }: ProjectedText, parts: RowParts): Buffer {
    // Collection queries report a score of 0, for no reason known to clients.
    const score = this.#index === null ? 0 : parts.score;
    if (isDocument) return Buffer.from(score === null ? text : withScore(text, score));
    const metadata =
      this.#projector?.isFromIndex === true && this.#outputs === null
        ? indexedMetadata(this.#host.source.lowerIdOf(parts.row.docNum))
        : projectionMetadata({ ...parts, score }, this.#host.source);
    return Buffer.from(withMetadata(text, metadata));
  }

  #scriptInput(
    row: StoredRow,
    loaded: ReadonlyMap<string, LoadedValue>,
    stored: string | null,
  ): ScriptInput {
    return row.start < 0
      ? // Its text has the same values, with their types.
        { row: null, text: row.bytes.toString(), loaded, stored: null }
      : { row, text: null, loaded, stored };
  }

  *#loaded(row: StoredRow): Steps<ReadonlyMap<string, LoadedValue>> {
    if (this.#query.load.length === 0) return noLoaded;
    this.#loader ??= new RowLoader(this.#query, this.#host.source, this.#budget);
    return yield* this.#loader.load(row);
  }

  #total(candidates: Candidates): number {
    const { filter, isDistinct, paging, access } = this.#query;
    if (access.kind === "collection" && access.ids?.kind === "prefix") {
      return this.#passedCount === 0 ? 0 : -1;
    }
    const isCounted = isDistinct && paging.take === 0;
    if (isCounted) return this.#seen.size;
    const isScript = this.#isOfScript();
    if (this.#index !== null && this.#request.isStream === true) {
      return this.#streamedTotal(candidates.total);
    }
    if (this.#index !== null && isScript) return Math.max(candidates.total, this.#returnedCount);
    if (filter !== null && this.#index === null) return this.#matchCount + this.#extraRowCount;
    return candidates.total + this.#extraRowCount;
  }

  /** Of sorted matches, RavenDB 7.2.7 collects only those up to the end of the page if it streams. */
  #streamedTotal(total: number): number {
    const { orderBy, where, isDistinct, paging, access } = this.#query;
    const [key] = orderBy;
    if (key === undefined || isDistinct || access.kind === "collection") return total;
    if (this.#index?.outputs !== null) return total;
    // The entries are found in their order: all of them, or a range of the field that they are sorted by.
    const isRange = where?.kind === "comparison" || where?.kind === "between";
    const isOfKey = isRange && key.kind === "field" && where.field.name === key.field.name;
    if (orderBy.length === 1 && (where === null || isOfKey)) return total;
    return Math.min(total, paging.skip + paging.take);
  }
}

/** Returns the columns that are series queries; null: none is, or a script makes the rows. */
function seriesFields({ projection }: AnalyzedQuery): readonly string[] | null {
  if (projection.kind !== "fields") return null;
  if (projection.isSeries === true) return [];
  const keys = projection.fields.flatMap(({ key, value }) =>
    value.kind === "series" ? [key] : [],
  );
  return keys.length === 0 ? null : keys;
}

/** Documents by number, in the order of a list. */
class ListCursor implements RowCursor {
  readonly row: StoredRow = { docNum: 0, etag: 0, bytes: noExtra, start: 0, block: null };
  pending: Promise<void> | null = null;
  readonly #docNums: Uint32Array;
  readonly #source: RowSource;
  #at: number;

  constructor(docNums: Uint32Array, at: number, source: RowSource) {
    this.#docNums = docNums;
    this.#at = at;
    this.#source = source;
  }

  /** Position of the current row in the list. */
  get position(): number {
    return this.#at - 1;
  }

  next(): boolean {
    this.pending = null;
    while (this.#at < this.#docNums.length) {
      if (this.#source.readListed(this.#docNums, this.#at, this.row)) {
        this.#at++;
        return true;
      }
      this.pending = this.#source.pending();
      if (this.pending !== null) return false;
      this.#at++;
    }
    return false;
  }
}

/** Returns the value at the end of a path; for lists, the values of all their elements. */
function valueAt(value: unknown, path: readonly string[]): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return value;
  if (Array.isArray(value)) return value.map((item) => valueAt(item, path));
  if (typeof value !== "object" || value === null) return undefined;
  return valueAt((value as Readonly<Record<string, unknown>>)[name], rest);
}

/** Returns the texts of a field's value; for an array, the texts of its elements. */
function textsOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(textsOf);
  return typeof value === "string" ? [value] : [];
}

/** Returns the number of lookups for each row. */
function projectedCount({ projection, include, load }: AnalyzedQuery): number {
  const { paths, counters, revisions, series } = include;
  const fields = projection.kind === "fields" ? projection.fields.length : 0;
  return fields + paths.length + counters.length + revisions.length + series.length + load.length;
}

/** Copies the document numbers of one stride of entries. */
function copyDocuments(
  entries: Uint32Array,
  documents: Uint32Array,
  target: Uint32Array,
  from: number,
): void {
  const to = Math.min(entries.length, from + entryStride);
  for (let i = from; i < to; i++) target[i] = documents[entries[i] as number] as number;
}

/** Returns the bytes of the record of a row, or of the text of a reduced object. */
function rowLengthOf({ bytes, start }: StoredRow): number {
  return start < 0 ? bytes.length : bodyLengthOf(bytes, start);
}

/** Reduced objects as rows of bare text. Objects that were removed in the meantime are left out. */
class GroupCursor implements RowCursor {
  readonly row: StoredRow = { docNum: -1, etag: 0, bytes: noExtra, start: -1, block: null };
  readonly pending = null;
  readonly #entries: Uint32Array;
  readonly #outputs: GroupOutputs;
  readonly #reader: IndexReader;
  #at = 0;

  constructor(entries: Uint32Array, outputs: GroupOutputs, reader: IndexReader) {
    this.#entries = entries;
    this.#outputs = outputs;
    this.#reader = reader;
  }

  /** Position of the current row in the list. */
  get position(): number {
    return this.#at - 1;
  }

  next(): boolean {
    while (this.#at < this.#entries.length) {
      const entry = this.#reader.currentOf(this.#entries[this.#at++] as number);
      if (entry < 0) continue;
      this.row.bytes = Buffer.from(this.#outputs.textOf(entry));
      return true;
    }
    return false;
  }
}

/** The index entries that a query finds, on the page it requests. */
export interface EntriesOutcome {
  readonly totalResults: number;
  readonly indexName: string;
  readonly isStale: boolean;
  /** JSON texts: fields and their terms. */
  readonly entries: readonly string[];
}

/** `debug=entries`: the index entries of the documents that a query finds. @throws index-missing, as `executeQuery` */
export async function executeEntries(
  query: AnalyzedQuery,
  host: QueryHost,
  request: QueryRequest,
): Promise<EntriesOutcome> {
  const execution = new Execution(query, host, request, { add: () => null });
  try {
    return await runSteps(execution.entries());
  } finally {
    execution.close();
  }
}

/** For callers that need only ids: deletes and patches by query. In the order of the query, each document once. */
export async function findDocuments(
  query: AnalyzedQuery,
  host: QueryHost,
  request: QueryRequest,
): Promise<string[]> {
  const ids: string[] = [];
  const plain: AnalyzedQuery = {
    ...query,
    projection: { kind: "fields", fields: [{ key: "id", value: { kind: "id" } }] },
    isDistinct: false,
  };
  const steps = executeQuery(plain, host, request, {
    add(row) {
      ids.push((JSON.parse(row.toString()) as { id: string }).id);
      return null;
    },
  });
  await runSteps(steps);
  return ids;
}
