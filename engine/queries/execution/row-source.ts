/**
 * The interface of the database for query execution: documents by number, by id, by collection; the indexes; scripts.
 * The database implements it; tests do so over arrays of JSON texts.
 */

import type { JsonText } from "../../base/json/json-text.ts";
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import type { IndexDefinition } from "../../indexing/definitions/index-definition.ts";
import type { GroupOutputs } from "../../indexing/followed-index.ts";
import type { RowCursor, StoredRow } from "../../indexing/index-host.ts";
import type { IndexReader } from "../../indexing/index-reader.ts";
import type { StoredFields } from "../../indexing/open-index.ts";
import type { Analyzer } from "../../indexing/text/analyzer.ts";
import type { Shape } from "../../state/documents/shapes.ts";
import type { SegmentSource } from "../../state/keyspaces/time-series/time-series.ts";
import type { AnalyzedQuery } from "../analysis/analyzed-query.ts";
import type { ParameterValue } from "../analysis/query-parameters.ts";
import type { SeriesArgument } from "../time-series/series-filter.ts";
import type { SeriesPart } from "../time-series/series-parts.ts";

export type { GroupOutputs, RowCursor, StoredFields, StoredRow };

/** `collection` null means all documents, everywhere here. Names are compared without case. */
export interface RowSource {
  countOf(collection: string | null): number;
  /** Returns a safe integer that changes whenever a document of the collection is written or deleted. */
  resultEtagOf(collection: string | null): number;
  /** Returns the number of the document with this id in any case, or -1. */
  findDocument(id: string): number;
  isIn(docNum: number, collection: string | null): boolean;
  lowerIdOf(docNum: number): string;
  /** Orders by lower-cased ids. */
  compareIds(left: number, right: number): number;
  /** Returns whether the document exists: an index may not have heard of its deletion yet. */
  exists(docNum: number): boolean;
  /**
   * Points `row` at the document's record.
   * @returns false when the document no longer exists, or its record must first be read from the disk; `pending()` is
   * then the promise to await before retrying.
   */
  read(docNum: number, row: StoredRow): boolean;
  /** As `read` for element `at` of a list whose next elements are read soon. */
  readListed(docNums: Uint32Array, at: number, row: StoredRow): boolean;
  pending(): Promise<void> | null;
  /** In etag order. */
  rows(collection: string | null): RowCursor;
  /** Returns the documents of all collections whose id begins with `prefix` in any case, ordered by lower-cased id. */
  rowsByPrefix(prefix: string): RowCursor;
  shapeOf(shapeId: number): Shape;
  /** Returns the document's `@metadata` object as JSON text, with `extra` members in it, each followed by a comma. */
  metadataOf(row: StoredRow, extra: Buffer): Buffer;
  /** Adds the whole document to `text`, with `extra` members in its `@metadata` as by `metadataOf`. */
  addDocument(row: StoredRow, extra: Buffer, text: JsonText): void;
  /** Returns the change vector's text. */
  changeVectorOf(row: StoredRow): string;
  /** Returns the total of a counter; null if the document does not have the counter. */
  counterOf(documentId: string, name: string): bigint | null;
  /** Per-node values of a counter as JSON text, or null. */
  rawCounterOf(documentId: string, name: string): string | null;
  /** Returns a series of a document by its name in any case, as of now; null if the series does not exist. */
  seriesOf(documentId: string, name: string): StoredSeries | null;
  /** Returns the JSON text of a compare-exchange value's `Object`, or null. */
  compareExchangeOf(key: string): string | null;
  /** Returns milliseconds of a monotonic clock. */
  monotonicMs(): number;
  /** Microseconds since 1970. */
  nowMicros(): number;
}

/** A time series at one moment, which later changes do not affect. */
export interface StoredSeries {
  readonly segments: SegmentSource;
  /** The prefix of the keys of its own segments. */
  readonly prefix: string;
  /** Where queries find its entries, at least one part; omitted: in its own segments, which are no rollups. */
  readonly parts?: readonly SeriesPart[];
  /** The names of its values that are configured for its collection. */
  readonly valueNames: readonly string[];
}

/** An index that a query may use. */
export interface QueryIndex {
  readonly name: string;
  readonly isStale: boolean;
  /** Microseconds since 1970; 0 = never. */
  readonly indexedAtMicros: number;
  readonly queriedAtMicros: number;
  /** The last indexed etag: together with the number of entries it forms the reply's etag. */
  readonly lastEtag: number;
  /** Created by this very query. */
  readonly isNew: boolean;
  /** To be called before its entries are read; see `FollowedIndex.refresh`. */
  refresh(fields: ReadonlySet<string> | null, budget: WorkBudget): Work<void> | null;
  /** `budget`: the reader's. */
  reader(budget?: WorkBudget): IndexReader;
  /** Returns whether conditions and order may use this field. A permitted field that the index lacks is empty. */
  isKnownField(name: string): boolean;
  /**
   * Returns the analyzer of a field whose terms are suggested; null if suggestions are disabled; undefined if the field
   * does not exist.
   */
  suggestionAnalyzer(name: string): Analyzer | null | undefined;
  /** Why it no longer answers queries, or null. */
  readonly invalidity: string | null;
  /** Its stored fields for projections, or null. */
  readonly stored: StoredFields | null;
  /** Map-reduce: an entry's reduced object as JSON text; null for a map index. */
  readonly outputs: GroupOutputs | null;
}

export interface IndexProvider {
  /** Returns the automatic index for a query, created if needed; not yet up to date. */
  automatic(definition: IndexDefinition): QueryIndex;
  /** @returns undefined when there is no index of this name, in any case. */
  byName(name: string): QueryIndex | undefined;
  /**
   * As above, for queries that use these fields as a whole, and not only their words; see `IndexSet.withWholeFields`.
   */
  withWholeFields(
    name: string,
    fieldNames: () => ReadonlySet<string> | null,
  ): QueryIndex | undefined;
  /** Resolves to true when the index has processed the documents that exist now, or to false after `timeoutMs`. */
  waitForNonStale(name: string, timeoutMs: number): Promise<boolean>;
}

/** One row as scripts see it: the document or reduced object, and its loaded documents. */
export interface ScriptInput {
  /** Null for a reduced object, whose text is `text`. */
  readonly row: StoredRow | null;
  readonly text: string | null;
  readonly loaded: ReadonlyMap<string, LoadedValue>;
  /** JSON text of an object: the row's stored fields, which take precedence over the document's. */
  readonly stored: string | null;
}

/** A loaded document as whole JSON text with its metadata at the end, null when it is missing, or a list of them. */
export type LoadedValue = string | null | readonly (string | null)[];

/** The JSON text of a projected object. */
export interface ProjectedText {
  readonly text: string;
  /** A whole document as stored, with its `@metadata` at the end; otherwise the row's metadata is still missing. */
  readonly isDocument: boolean;
}

/** Series queries of the query that is being run. */
export interface SeriesCalls {
  /** Returns the JSON text of the result. */
  call(name: string, args: readonly SeriesArgument[], input: ScriptInput): Promise<string>;
}

/** Script execution for queries. Created once for each query. */
export interface QueryScripts {
  /** Rows of a `select { … }` or `select f(…)`. */
  project(input: ScriptInput): readonly ProjectedText[];
  /** Returns the query's whole `filter`. Used only when it calls a function unknown to compile-filter.ts. */
  passes(input: ScriptInput): boolean;
  /** The documents and keys that scripts have included so far. */
  readonly included: ScriptIncludes;
  /**
   * When one of these threw because a document that a script loads must first be read from the disk: the promise to
   * await before rerunning with the same input. Null for every other error.
   */
  missing(error: unknown): Promise<void> | null;
}

/** Ids of documents and compare-exchange keys, as scripts named them. */
export interface ScriptIncludes {
  readonly documents: ReadonlySet<string>;
  readonly compareExchange: ReadonlySet<string>;
}

export interface ScriptProvider {
  /**
   * The work of the scripts is counted in `budget`, so that time slices end after rows that cost much. `series`: null where
   * queries have no series queries.
   */
  forQuery(query: AnalyzedQuery, budget: WorkBudget, series: SeriesCalls | null): QueryScripts;
  /**
   * Returns a test for a .NET pattern, ignoring case, charged to `budget`. @throws regex-invalid; the test: work-limit
   */
  textTest(pattern: string, budget?: WorkBudget): (text: string) => boolean;
}

export type { ParameterValue };
