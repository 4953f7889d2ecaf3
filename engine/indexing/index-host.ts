/**
 * The interface of the database for indexes: its documents and deletions in etag order. The database implements it;
 * tests do so over arrays.
 *
 * A document has a dense number (`docNum`) that belongs to its id for as long as any index may still refer to it: a
 * host reuses the number of a deleted document for another id only when `deletionsSince` reports the deletion first.
 */

import type { Shape } from "../state/documents/shapes.ts";
import type { IndexEvent } from "../state/store/changes.ts";
import type { MapSource } from "./index-program.ts";
import type { OpenIndex } from "./open-index.ts";
import type { OutputSink, ReduceOutput } from "./reduce/reduce-output.ts";

/** One document's record (document-record.ts), under a cursor: the fields are overwritten by the next step. */
export interface StoredRow {
  docNum: number;
  etag: number;
  bytes: Buffer;
  /** Offset of the record in `bytes`. */
  start: number;
  /** Pins the bytes for this row. */
  block?: RowBlock | null;
}

/** Memory that is not reused for other records while it is pinned. */
interface RowBlock {
  hold(): void;
  release(): void;
}

/**
 * A walk over documents in ascending etag order. Synchronous, so that a step costs nothing; when a record must first be
 * read from the disk, `next` returns false and `pending` resolves when `next` is worth retrying.
 */
export interface RowCursor {
  readonly row: StoredRow;
  readonly pending: Promise<void> | null;
  next(): boolean;
}

/** A walk over document numbers in ascending etag order. */
export interface NumberCursor {
  docNum: number;
  etag: number;
  next(): boolean;
}

/**
 * A walk over deletions in ascending etag order. `docNum`: the document's former number, -1 when it is no longer known.
 */
export interface DeletionCursor extends NumberCursor {
  /** The lower-cased id. */
  lowerId: string;
}

/** A collection's newest etags; 0 for none. */
export interface CollectionEtags {
  readonly document: number;
  readonly deletion: number;
}

/**
 * Reads the records of one follower, one walk after another: records read from disk for a step that could not complete
 * stay available when another cursor retries the step in a later tick of the event loop.
 */
export interface RowReader {
  /** Returns the documents whose etag is above `etag`. Each document once, at its current etag. */
  rowsSince(collection: string | null, etag: number): RowCursor;
  /** Returns the existing ones of these documents, in the order of the list. */
  rowsOf(docNums: readonly number[]): RowCursor;
}

/** The segments of time series, named by their keys. */
export interface SegmentHost {
  /** Starts the tracking of changes. @returns `changeCount` */
  follow(): number;
  /** The number of changes since the tracking began. */
  readonly changeCount: number;
  /** Returns the keys of all changes except the first `seen`; null if some of these are no longer recorded. */
  changedSince(seen: number): Iterable<string> | null;
  /** Every change that is visible has an etag up to this one, and later ones have higher etags. */
  readonly committedEtag: number;
  /** Returns the segments after this key, in key order, as of this moment. */
  after(key: string): Iterable<{ readonly key: string; readonly etag: number }>;
  /** 0 if the segment does not exist. */
  etagOf(key: string): number;
  /** As errors name it. */
  nameOf(key: string): string;
}

/** `collection` null means all documents. Names are compared without case. */
export interface IndexHost {
  etagsOf(collection: string | null): CollectionEtags;
  newReader(): RowReader;
  deletionsSince(collection: string | null, etag: number): DeletionCursor;
  /** Deletions up to this etag are no longer reported. */
  readonly deletionsPurgedThrough: number;
  /** How many documents of the collection have an etag above `etag`. */
  countSince(collection: string | null, etag: number): number;
  /** Returns the document's `@metadata` object as composed JSON text. */
  metadataOf(row: StoredRow): Buffer;
  /** Returns the shape that a record refers to. */
  shapeOf(shapeId: number): Shape;
  /** Returns the documents whose etag is above `etag`, without their records. */
  numbersSince(collection: string | null, etag: number): NumberCursor;
  /** Returns the id in its stored case. */
  idOf(docNum: number): string;
  lowerIdOf(docNum: number): string;
  /** Returns a setting of the database (`Indexing.…`); undefined when it is not set. */
  setting(name: string): unknown;
  /** Changes with every change of a compare-exchange value. */
  readonly compareExchangeChanges: number;
  /** Grows with every change of the value of this lower-cased key; 0 when the key does not exist. */
  compareExchangeVersionOf(key: string): number;
  /** Starts the tracking of counter changes. @returns `counterEtag` */
  followCounters(): number;
  /** The newest etag of a counter's value change. Does not grow while nothing tracks changes. */
  readonly counterEtag: number;
  /**
   * Returns the documents with a counter whose value changed after this etag. Creation and deletion of counters appear
   * in a reader's `rowsSince`.
   */
  counterChangesSince(etag: number): NumberCursor;
  /** Numbers of documents with a counter whose value was set after this etag. Cost: one check of every counter. */
  counterOwnersSince(etag: number): Iterable<number>;
  /** Increases with every change of the items that such an index maps besides documents; 0 for documents. */
  itemChangesOf(source: MapSource): number;
  /** The segments of time series; omitted: not supported. */
  readonly segments?: SegmentHost;
  /** Returns milliseconds of a monotonic clock. */
  monotonicMs(): number;
  /** Microseconds since 1970. */
  nowMicros(): number;
  /** Whether another node decides which indexes exist. */
  readonly isFollowing: boolean;
  /** Yields to the event loop. */
  yieldSlice(): Promise<void>;
  /** Calls `run` once after `ms` milliseconds. The timer keeps the process alive only if `isAwaited`. */
  setTimer(ms: number, run: () => void, isAwaited?: boolean): { cancel(): void };
  /** Stores the reduced objects of an index, `isScript` of one in JavaScript; omitted: not supported. */
  outputSink?(output: ReduceOutput, isScript: boolean): OutputSink;
  /** An index was created: persists it. */
  indexChanged(index: OpenIndex): void;
  indexDropped(name: string): void;
  /** Called after the index formerly named `name` has replaced another and taken over its name. */
  indexReplaced(name: string, index: OpenIndex): void;
  /** Reports background errors to the operator; omitted: no report. */
  report?(message: string, cause: unknown): void;
  /** Reports an index event to its watchers. */
  indexEvent(type: IndexEvent, name: string): void;
}
