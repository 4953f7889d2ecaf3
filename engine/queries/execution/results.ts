/** The result of a query besides its rows: types only. The server writes it in the wire format. */
import type { TextChunks } from "../../state/documents/document-chunks.ts";
import type { SeriesInclude } from "../analysis/analyzed-query.ts";
import type { SpatialSummary } from "../summaries/spatial-summary.ts";

/** The source of projected columns: stored fields of an index, then documents; or only one of the two. */
export const projectionBehaviors = [
  "Default",
  "FromIndex",
  "FromIndexOrThrow",
  "FromDocument",
  "FromDocumentOrThrow",
] as const;
export type ProjectionBehavior = (typeof projectionBehaviors)[number];

/**
 * Receives the rows, each the JSON text of one object. A returned promise is back-pressure: wait before the next row.
 */
export interface RowSink {
  /** The row's bytes are valid until this returns, or until the promise resolves. */
  add(row: Buffer): Promise<void> | null;
  /**
   * Receives a document that is too large to be composed as one string. Its record is valid during this tick of the
   * event loop, or, if a view is held, until the promise resolves. When omitted, the document is composed. Also
   * receives rows with long results of series queries, which stay valid until then.
   */
  addLarge?(row: TextChunks): Promise<void>;
}

/**
 * The results of series queries in rows: objects; objects with the names of their values; or, in streams, lists, in rows
 * that begin with their metadata.
 */
export type SeriesForm = "object" | "named" | "list";

export interface QueryOutcome {
  /** The rows are facets or suggestions: the reply has fewer members. */
  readonly isSummary: boolean;
  /** Matches before paging; -1 when not counted (ids by prefix). */
  readonly totalResults: number;
  /** Set only when the text of the query pages. */
  readonly cappedMaxResults: number | null;
  /** Documents that `filter` examined. */
  readonly scannedResults: number;
  /** Duplicates, and documents rejected by `filter`, before the end of this page. */
  readonly skippedResults: number;
  readonly durationMs: number;
  readonly includedPaths: readonly string[] | null;
  readonly indexName: string;
  readonly includes: readonly IncludedDocument[];
  readonly counterIncludes: readonly IncludedCounters[] | null;
  /** Requested compare-exchange keys. */
  readonly compareExchangeKeys: readonly string[] | null;
  /** The columns that are series queries, if the names of values were requested. */
  readonly seriesFields: readonly string[] | null;
  readonly revisionIncludes: IncludedRevisions | null;
  /** The requested ranges of the time series of documents, in the order of the rows. */
  readonly seriesIncludes: ReadonlyMap<string, readonly SeriesInclude[]> | null;
  /** Field -> document id -> fragments. */
  readonly highlightings: ReadonlyMap<string, ReadonlyMap<string, readonly string[]>> | null;
  /** Document id, or identifier of a reduced row -> explanation of its score; null: not requested. */
  readonly explanations: ReadonlyMap<string, readonly string[]> | null;
  /** Microseconds since 1970; 0 = never. */
  readonly indexTimestamp: number;
  readonly lastQueryTime: number;
  readonly isStale: boolean;
  /** A safe integer that changes whenever the answer may have changed. */
  readonly resultEtag: number;
  readonly timings: QueryTimings | null;
  /** Summary of the shapes of a dynamic query; null if none was requested or the query has no spatial field. */
  readonly spatial: SpatialSummary | null;
}

export interface IncludedDocument {
  readonly id: string;
  /** The whole document's text. */
  readonly text: Buffer;
}

export interface IncludedCounters {
  readonly documentId: string;
  /** The names as requested; null = all. */
  readonly names: readonly string[] | null;
}

/** Revisions requested by change vector, and by time. */
export interface IncludedRevisions {
  readonly changeVectors: ReadonlySet<string>;
  /** Each requests the document's newest revision that is not later (microseconds since 1970). */
  readonly before: readonly { readonly documentId: string; readonly micros: number }[];
}

/** Milliseconds by step. */
interface QueryTimings {
  readonly totalMs: number;
  /** Null for a scan of a collection, which is never stale. */
  readonly stalenessMs: number | null;
  readonly queryMs: number;
  readonly retrieverMs: number;
}
