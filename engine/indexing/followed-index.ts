/**
 * What every kind of index is to whoever keeps it in step with its database and asks it for entries.
 */
import type { Analyzer } from "./analyzer.ts";
import type { FollowedCollection } from "./collection-follower.ts";
import type { EntryStore, SavedDocuments } from "./entry-store.ts";
import type { FieldColumn } from "./field-column.ts";
import type { PartReader, PartWriter } from "./saved-parts.ts";

/** A field's terms: those that conditions compare, in their own case, or as words. */
export type FieldForm = "lower" | "exact" | "words";

/** What happened to the documents of an index. */
export interface IndexCounters {
  mapAttempts: number;
  mapErrors: number;
}

/** The reduced objects of a map-reduce index. */
export interface GroupOutputs {
  /** The JSON text of an entry's object: keys, then aggregates. */
  textOf(entry: number): string;
  /** Names of the key fields, in the order of the query that made the index. */
  readonly keyNames: readonly string[];
}

/** What the scores of entries are multiplied by. */
export interface EntryBoosts {
  boostOf(entry: number, field: string): number;
}

/** Where the documents of a snapshot are now. */
export interface RestoredDocuments {
  /** The number of the document that has this one in the snapshot; one of `gone` when that document is not as it was. */
  readonly documentOf: (saved: number) => number;
  /** Numbers that belong to no document: of those that changed or are gone since. What the index has of them is to be removed. */
  readonly gone: Iterable<number>;
  /** The newest deletion in a collection when looking for the documents began: all before it are known. */
  readonly deletionEtagOf: (collection: string | null) => number;
}

export interface FollowedIndex {
  /** Replaced by another when it is compacted. */
  readonly store: EntryStore;
  readonly counters: IndexCounters;
  /** Every collection whose changes it takes in, and how far. */
  readonly sources: readonly FollowedCollection[];
  /** Those of them that it maps, as far as they are taken in. */
  readonly followed: readonly FollowedCollection[];
  /** Grows with everything that it takes in. */
  readonly changeCount: number;
  /** What was made of everything up to `sources` is stored where it belongs. Left out: it is. */
  readonly isStored?: boolean;
  /** It is in the middle of something that lasts longer than a turn, and cannot be saved. Left out: never. */
  readonly isBusy?: boolean;
  /** Changes of counters up to this etag are taken in; left out: it looks at none. */
  readonly counterEtag?: number | undefined;
  readonly columnNames: readonly string[];
  /** Null for a map index. */
  readonly outputs: GroupOutputs | null;
  /** Left out when no map has boosted anything. */
  readonly boosts?: EntryBoosts | undefined;
  readonly isStale: boolean;
  /** It can do nothing for now, and wakes its set when it can. Left out: never. */
  readonly isResting?: boolean;
  /** The column of a field by its name (map-index.ts), or undefined. */
  column(name: string): FieldColumn | undefined;
  /** The column to search a field in; undefined when the index has the field not in this form. */
  formColumn(name: string, form: FieldForm): FieldColumn | undefined;
  /** Are the terms of that column in their own case? */
  keepsCase(name: string, form: FieldForm): boolean;
  /** What makes terms of the text of a search in this field. */
  analyzerOf(name: string): Analyzer;
  /**
   * Takes in what is new until `isTimeUp` or there is no more.
   * @returns a promise when a record must be read from the disk first, else null.
   */
  catchUp(isTimeUp: () => boolean): Promise<void> | null;
  /**
   * Gives everything that it has, as it is now, and how far it is. Between two calls of `catchUp`. Cost: milliseconds
   * @returns what names documents in it
   */
  save(parts: PartWriter): readonly SavedDocuments[];
  /** Takes what `save` gave, in steps, into an index that has taken in nothing. */
  restore(parts: PartReader, documents: RestoredDocuments): Generator<void>;
}
