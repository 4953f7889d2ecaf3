/**
 * What a query answers beside its rows: types only. The server writes it in the form of the wire.
 */
import type { DocumentPieces } from "../document-pieces.ts";
import type { SeriesInclude } from "./analyzed-query.ts";

/** Where the columns of a projection come from: what an index keeps, then documents; or one of the two alone. */
export const projectionBehaviors = [
  "Default",
  "FromIndex",
  "FromIndexOrThrow",
  "FromDocument",
  "FromDocumentOrThrow",
] as const;
export type ProjectionBehavior = (typeof projectionBehaviors)[number];

/** Takes rows as they come, each the JSON text of one object. A promise asks to wait before the next. */
export interface RowSink {
  add(row: Buffer): Promise<void> | null;
  /**
   * Takes a document that is too large to be composed at once. Its record stays as it is in this turn, and until the
   * promise has resolved when a view is held. Without this, it is composed.
   */
  addLarge?(document: DocumentPieces): Promise<void>;
}

export interface QueryOutcome {
  /** Matches before paging; -1 when nobody counted them (ids by prefix). */
  readonly totalResults: number;
  /** Only when the text of the query pages. */
  readonly cappedMaxResults: number | null;
  /** Documents that `filter` looked at. */
  readonly scannedResults: number;
  /** Duplicates, and what `filter` rejected, on the way to this page. */
  readonly skippedResults: number;
  readonly durationMs: number;
  readonly includedPaths: readonly string[] | null;
  readonly indexName: string;
  readonly includes: readonly IncludedDocument[];
  readonly counterIncludes: readonly IncludedCounters[] | null;
  /** Compare-exchange keys that were asked for. */
  readonly compareExchangeKeys: readonly string[] | null;
  readonly revisionIncludes: IncludedRevisions | null;
  /** What is wanted of the time series of documents, in the order of the rows. */
  readonly seriesIncludes: ReadonlyMap<string, readonly SeriesInclude[]> | null;
  /** Field -> document id -> fragments. */
  readonly highlightings: ReadonlyMap<string, ReadonlyMap<string, readonly string[]>> | null;
  /** Document id, or what tells a reduced row apart -> why it has its score; null: not asked for. */
  readonly explanations: ReadonlyMap<string, readonly string[]> | null;
  /** Microseconds since 1970; 0 = never. */
  readonly indexTimestamp: number;
  readonly lastQueryTime: number;
  readonly isStale: boolean;
  /** A safe integer that changes when the answer may. */
  readonly resultEtag: number;
  readonly timings: QueryTimings | null;
}

export interface IncludedDocument {
  readonly id: string;
  /** The whole document's text. */
  readonly text: Buffer;
}

export interface IncludedCounters {
  readonly documentId: string;
  /** The names as they were asked for; null = all. */
  readonly names: readonly string[] | null;
}

/** Revisions that were asked for by change vector, and by time. */
export interface IncludedRevisions {
  readonly changeVectors: ReadonlySet<string>;
  /** Each wants the document's newest revision that is not later (microseconds since 1970). */
  readonly before: readonly { readonly documentId: string; readonly micros: number }[];
}

/** Milliseconds by step. */
export interface QueryTimings {
  readonly totalMs: number;
  /** Null for a scan of a collection, which is never stale. */
  readonly stalenessMs: number | null;
  readonly queryMs: number;
  readonly retrieverMs: number;
}
