/** Queries of one database: run, explained, and as the entries of their index. */

import type { AnalyzedQuery, QueryKind } from "../queries/analysis/analyzed-query.ts";
import type { CachedQueryInfo } from "../queries/analysis/query.ts";
import type { EntriesOutcome } from "../queries/execution/execute-entries.ts";
import { planText } from "../queries/execution/plan-text.ts";
import type { QueryPlan } from "../queries/execution/query-plan.ts";
import type { QueryOutcome, RowSink } from "../queries/execution/results.ts";
import { collectionIdNamed, fingerprintOf } from "../queries/rows/query-rows.ts";
import type {
  AnsweringIndex,
  CacheableQuery,
  IndexExplanation,
  QueryOptions,
} from "../services/querying/query-host.ts";
import type { RunningQueryInfo } from "../services/querying/running-queries.ts";
import type { TextChunks } from "../state/documents/document-chunks.ts";
import type { OpenDatabase } from "./database/open-database.ts";

/** The entries of an index that a query matches. */
interface QueryEntries extends EntriesOutcome {
  /** As in `QueryOutcome`. */
  readonly resultEtag: number;
  readonly durationMs: number;
  readonly indexTimestamp: number;
  readonly lastQueryTime: number;
}

/** Data that a query can include besides its rows. */
export type QueryInclude = "documents" | "counters" | "compare-exchange" | "highlights";

/** A query that was parsed and analyzed. */
export class PreparedQuery {
  readonly #database: OpenDatabase;
  readonly #query: AnalyzedQuery;

  constructor(database: OpenDatabase, query: AnalyzedQuery) {
    this.#database = database;
    this.#query = query;
  }

  get includes(): readonly QueryInclude[] {
    const { paths, counters, compareExchange, highlights } = this.#query.include;
    const kinds: QueryInclude[] = [];
    if (paths.length > 0) kinds.push("documents");
    if (counters.length > 0) kinds.push("counters");
    if (compareExchange.length > 0) kinds.push("compare-exchange");
    if (highlights.length > 0) kinds.push("highlights");
    return kinds;
  }

  /** The index that its text names; null: it names none. */
  get namedIndex(): string | null {
    const { access } = this.#query;
    return access.kind === "index" ? access.name : null;
  }

  /** The number of documents in the collection that it walks without an index; null: it uses an index. */
  get collectionCount(): number | null {
    const { access, source } = this.#query;
    if (access.kind !== "collection") return null;
    const { state } = this.#database;
    return source.isAllDocuments
      ? state.documents.documentCount
      : state.documents.countOfCollection(collectionIdNamed(state, source.name));
  }

  /** As `Queries.run`. */
  run(options: QueryOptions, sink: RowSink): Promise<QueryOutcome | null> {
    const { queries } = this.#database;
    return queries.execute(this.#query, options, new PinningSink(this.#database, sink));
  }
}

export class Queries {
  readonly #database: OpenDatabase;

  constructor(database: OpenDatabase) {
    this.#database = database;
  }

  /**
   * Runs a query; its rows go to `sink`, each the JSON text of an object. The result itself is returned where nothing waits.
   * @returns null when `options.unlessEtag` is still valid: no rows were sent
   * @throws EngineError query-syntax, query-invalid, index-missing, not-supported, script-failed, record-damaged
   */
  run(
    text: string,
    options: QueryOptions,
    sink: RowSink,
  ): QueryOutcome | null | Promise<QueryOutcome | null> {
    return this.#database.startQuery(text, options, new PinningSink(this.#database, sink));
  }

  /** @throws EngineError query-syntax, query-invalid, not-supported, invalid-argument, json-invalid */
  async prepare(text: string, options: QueryOptions): Promise<PreparedQuery> {
    const query = await this.#database.queries.prepare(text, "read", options);
    return new PreparedQuery(this.#database, query);
  }

  /**
   * Returns a query that was answered, for `isUnchanged`; null: its answer is never the same again. @throws as
   * `prepare`
   */
  cacheable(text: string, options: QueryOptions): CacheableQuery | null {
    return this.#database.queries.cacheable(text, options);
  }

  /**
   * Returns whether a query would be answered with this etag now, and from the same index as before, if it uses one.
   * False if this is known only by running it. True counts as a query.
   */
  isUnchanged(
    query: CacheableQuery,
    etag: number,
    isSame: (index: AnsweringIndex) => boolean,
  ): boolean {
    this.#database.assertServing();
    if (!this.#database.queries.isUnchanged(query, etag, isSame)) return false;
    this.#database.servedCount++;
    return true;
  }

  /** Returns the queries that run now, the newest first. */
  running(): RunningQueryInfo[] {
    const { clock, queries } = this.#database;
    return queries.running.list(clock.monotonicMs());
  }

  /** Ends a query: soon, with the error `query-killed`. @returns false when none that uses this index has this number */
  kill(indexName: string, id: number): boolean {
    return this.#database.queries.running.kill(indexName, id);
  }

  /** How a query is answered, in one line without its values. @throws as `prepare` */
  async plan(text: string, kind: QueryKind, options: QueryOptions): Promise<string> {
    return planText(await this.#database.queries.prepare(text, kind, options));
  }

  /**
   * Runs a query, discards its rows, and returns how it was executed: step by step with counts, times and sentences,
   * and which index would let it read clearly fewer entries. @throws as `run`
   */
  explainRun(text: string, options: QueryOptions): Promise<QueryPlan> {
    return this.#database.queries.plan(text, options);
  }

  /** Returns the texts of queries that are kept in their parsed form. */
  known(): Iterable<CachedQueryInfo> {
    return this.#database.queries.known();
  }

  /** Returns the query in canonical form. @throws EngineError query-syntax, query-invalid */
  canonicalText(text: string): string {
    return this.#database.queries.canonicalText(text);
  }

  /**
   * Which index a query would use, and why others do not fit. Creates none.
   * @throws EngineError query-syntax, query-invalid, not-supported, invalid-argument, invalid-operation
   */
  explain(text: string, options: QueryOptions): Promise<IndexExplanation> {
    return this.#database.queries.explain(text, options);
  }

  /**
   * Returns the index entries of the documents that a query finds. @throws EngineError index-missing: none is created
   * for it
   */
  async entries(text: string, options: QueryOptions): Promise<QueryEntries> {
    const { clock, state, queries } = this.#database;
    const startMs = clock.monotonicMs();
    const resultEtag = fingerprintOf(state, null);
    const found = await queries.entries(text, options);
    const index = queries.indexes.byName(found.indexName)?.statistics();
    return {
      ...found,
      resultEtag,
      durationMs: Math.round(clock.monotonicMs() - startMs),
      indexTimestamp: index?.indexedAtMicros ?? 0,
      lastQueryTime: index?.queriedAtMicros ?? 0,
    };
  }
}

/** Forwards rows, and holds the record of a large row in memory until it was read. */
class PinningSink implements RowSink {
  readonly #database: OpenDatabase;
  readonly #sink: RowSink;
  readonly addLarge?: (document: TextChunks) => Promise<void>;

  constructor(database: OpenDatabase, sink: RowSink) {
    this.#database = database;
    this.#sink = sink;
    if (sink.addLarge !== undefined) this.addLarge = (document) => this.#addLarge(document);
  }

  add(row: Buffer): Promise<void> | null {
    return this.#sink.add(row);
  }

  async #addLarge(document: TextChunks): Promise<void> {
    // The view pins the segment of the row's record, which nothing else may be holding.
    const view = this.#database.view();
    try {
      await this.#sink.addLarge?.(document);
    } finally {
      view.release();
    }
  }
}
