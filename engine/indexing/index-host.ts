/**
 * What indexes need from the database that has them: its documents and deletions in the order of etags. The
 * database implements it; a test does so over arrays.
 *
 * A document has a dense number (`docNum`) that belongs to its id for as long as any index may still name it: a host
 * gives the number of a deleted document to another id only when `deletionsSince` tells of the deletion first.
 */

import type { Shape } from "../keyspaces/shapes.ts";
import type { OpenIndex } from "./open-index.ts";
import type { OutputSink, ReduceOutput } from "./reduce-output.ts";

/** One document's record (document-record.ts), under a cursor: the fields are overwritten by the next step. */
export interface StoredRow {
  docNum: number;
  etag: number;
  bytes: Buffer;
  /** Where the record begins in `bytes`. */
  start: number;
  /** What keeps the bytes as they are, and is held for this row. */
  block?: RowBlock | null;
}

/** Memory that is not used for other records while somebody holds it. */
export interface RowBlock {
  hold(): void;
  release(): void;
}

/**
 * A walk over documents in ascending order of etags. Synchronous, so that a step costs nothing; when a record has to be
 * read from the disk first, `next` is false and `pending` resolves when it is worth asking again.
 */
export interface RowCursor {
  readonly row: StoredRow;
  readonly pending: Promise<void> | null;
  next(): boolean;
}

/** A walk over the numbers of documents in ascending order of etags. */
export interface NumberCursor {
  docNum: number;
  etag: number;
  next(): boolean;
}

/** A walk over deletions in ascending order of etags. `docNum`: the number that the document had, -1 when nobody knows it any more. */
export interface DeletionCursor extends NumberCursor {
  /** The lower-cased id. */
  lowerId: string;
}

/** A collection's newest etags; 0 when it has none. */
export interface CollectionEtags {
  readonly document: number;
  readonly deletion: number;
}

/** What happens to an index, in the words of the interface. */
export type IndexEvent =
  | "IndexAdded"
  | "IndexRemoved"
  | "BatchCompleted"
  | "SideBySideReplace"
  | "IndexPaused"
  | "IndexDemotedToDisabled"
  | "IndexMarkedAsErrored"
  | "LockModeChanged"
  | "PriorityChanged";

/**
 * What one follower reads records with, one walk after the other, for as long as it follows: what was fetched from the disk
 * for a step that could not be made is there when the step is tried again, in another turn and by another cursor.
 */
export interface RowReader {
  /** Documents whose etag is above `etag`. Each document once, at its present etag. */
  rowsSince(collection: string | null, etag: number): RowCursor;
  /** Those of these documents that are there, in the order of the list. */
  rowsOf(docNums: readonly number[]): RowCursor;
}

/** `collection` null means all documents. Names are compared without case. */
export interface IndexHost {
  etagsOf(collection: string | null): CollectionEtags;
  newReader(): RowReader;
  deletionsSince(collection: string | null, etag: number): DeletionCursor;
  /** Deletions up to this etag are not told of any more. */
  readonly deletionsPurgedThrough: number;
  /** How many documents of the collection have an etag above `etag`. */
  countSince(collection: string | null, etag: number): number;
  /** The document's `@metadata` object as JSON text, composed. */
  metadataOf(row: StoredRow): Buffer;
  /** The shape that a record names. */
  shapeOf(shapeId: number): Shape;
  /** Documents whose etag is above `etag`, without their records. */
  numbersSince(collection: string | null, etag: number): NumberCursor;
  /** The id as it was stored. */
  idOf(docNum: number): string;
  lowerIdOf(docNum: number): string;
  /** A setting of the database (`Indexing.…`); undefined when it has none of the name. */
  setting(name: string): unknown;
  /** A number that is another one after every change of a compare-exchange value. */
  readonly compareExchangeChanges: number;
  /** Grows with every change of the value of this lower-cased key; 0 when there is none. */
  compareExchangeVersionOf(key: string): number;
  /** From now on changes of counters are told of. @returns `counterEtag` */
  followCounters(): number;
  /** No change of a counter's value has a higher etag. Does not grow while nobody follows. */
  readonly counterEtag: number;
  /** Documents with a counter whose value changed after this etag. When counters come or go, a reader's `rowsSince` has theirs. */
  counterChangesSince(etag: number): NumberCursor;
  /** Numbers of documents with a counter that was given a value after this etag. Cost: a look at every counter. */
  counterOwnersSince(etag: number): Iterable<number>;
  /** Milliseconds of a clock that never goes backward. */
  monotonicMs(): number;
  /** Microseconds since 1970. */
  nowMicros(): number;
  /** Gives the event loop a turn. */
  yieldTurn(): Promise<void>;
  /** Calls `run` once after `ms` milliseconds. */
  setTimer(ms: number, run: () => void): { cancel(): void };
  /** Who stores the reduced objects of an index; left out: nobody can. */
  outputSink?(output: ReduceOutput): OutputSink;
  /** An index was made: what a restart must know. */
  indexChanged(index: OpenIndex): void;
  indexDropped(name: string): void;
  /** The index that was called `name` has taken the place of another, and its name. */
  indexReplaced(name: string, index: OpenIndex): void;
  /** Tells the operator of what goes wrong beside requests; left out: nobody is told. */
  report?(message: string, cause: unknown): void;
  /** Something happened that who watches indexes is told. */
  indexEvent(type: IndexEvent, name: string): void;
}
