/**
 * What every kind of index is to whoever keeps it in step with its database and asks it for entries.
 */
import type { Analyzer } from "./analyzer.ts";
import type { FollowedCollection } from "./collection-follower.ts";
import type { EntryStore } from "./entry-store.ts";
import type { FieldColumn } from "./field-column.ts";

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

export interface FollowedIndex {
  /** Replaced by another when it is compacted. */
  readonly store: EntryStore;
  readonly counters: IndexCounters;
  /** Every collection whose changes it takes in, and how far. */
  readonly sources: readonly FollowedCollection[];
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
}
