/**
 * What indexes need from the database that has them: its documents and deletions in the order of etags. The
 * database implements it; a test does so over arrays.
 *
 * A document has a dense number (`docNum`) that belongs to its id for as long as any index may still name it: a host
 * gives the number of a deleted document to another id only when `deletionsSince` tells of the deletion first.
 */

import type { IndexDefinition } from "./index-definition.ts";

/** One document's record (document.ts), under a cursor: the fields are overwritten by the next step. */
export interface StoredRow {
  docNum: number;
  etag: number;
  bytes: Buffer;
  /** Where the record begins in `bytes`. */
  start: number;
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

export interface DeletionCursor {
  docNum: number;
  etag: number;
  next(): boolean;
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

/** `collection` null means all documents. Names are compared without case. */
export interface IndexHost {
  etagsOf(collection: string | null): CollectionEtags;
  /** Documents whose etag is above `etag`. Each document once, at its present etag. */
  rowsSince(collection: string | null, etag: number): RowCursor;
  deletionsSince(collection: string | null, etag: number): DeletionCursor;
  /** How many documents of the collection have an etag above `etag`. */
  countSince(collection: string | null, etag: number): number;
  /** The document's `@metadata` object as JSON text, composed. */
  metadataOf(row: StoredRow): Buffer;
  /** The id as it was stored. */
  idOf(docNum: number): string;
  /** Milliseconds of a clock that never goes backward. */
  monotonicMs(): number;
  /** Microseconds since 1970. */
  nowMicros(): number;
  /** Gives the event loop a turn. */
  yieldTurn(): Promise<void>;
  /** Calls `run` once after `ms` milliseconds. */
  setTimer(ms: number, run: () => void): { cancel(): void };
  /** An automatic index was made, or dropped (`definition` null): what a restart must know. */
  indexChanged(name: string, definition: IndexDefinition | null): void;
  /** Something happened that who watches indexes is told. */
  indexEvent(type: IndexEvent, name: string): void;
}
