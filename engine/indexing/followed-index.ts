/** The interface of every kind of index toward the code that updates and queries it. */
import type { Work, WorkBudget } from "../base/scheduling/work-budget.ts";
import type { FieldChange } from "../state/store/changes.ts";
import type { FollowedCollection } from "./collection-follower.ts";
import type { EntryStore, SavedDocuments } from "./columns/entry-store.ts";
import type { FieldColumn } from "./columns/field-column.ts";
import type { PartReader, PartWriter } from "./saved/saved-parts.ts";
import type { Space } from "./spatial/space.ts";
import type { Analyzer } from "./text/analyzer.ts";
import type { VectorForm } from "./vectors/vector-form.ts";

/** The form of a field's terms: for comparisons, case-sensitive, or as words. */
export type FieldForm = "lower" | "exact" | "words";

/** Map statistics of an index. */
export interface IndexCounters {
  mapAttempts: number;
  mapErrors: number;
}

/** The reduced objects of a map-reduce index. */
export interface GroupOutputs {
  /** Returns the JSON text of an entry's object: keys, then aggregates. */
  textOf(entry: number): string;
  /** Names of the key fields, in the order of the query that made the index. */
  readonly keyNames: readonly string[];
}

/** The factors that the scores of entries are multiplied by. */
export interface EntryBoosts {
  /** Boost of a field of an entry; 1: no boost. */
  fieldBoostOf(entry: number, field: string): number;
  /** Boost of the entry as a whole; 1: no boost. */
  entryBoostOf(entry: number): number;
}

/** The progress of an index in changes of counters or of time series. */
export interface ItemProgress {
  /** Changes up to this etag are processed. */
  readonly etag: number;
  /** As counted by `IndexHost.itemChangesOf`. */
  readonly seen: number;
}

/** Maps the documents of a snapshot to the current ones. */
export interface RestoredDocuments {
  /** The current number of a document in the snapshot; one of `gone` when the document has changed or was deleted. */
  readonly documentOf: (saved: number) => number;
  /**
   * Placeholder numbers of documents that have changed or were deleted since the snapshot; their entries must be
   * removed.
   */
  readonly gone: Iterable<number>;
  /** The newest deletion of a collection when the lookup of documents began: all earlier ones are accounted for. */
  readonly deletionEtagOf: (collection: string | null) => number;
}

export interface FollowedIndex {
  /** Replaced by another when it is compacted. */
  readonly store: EntryStore;
  readonly counters: IndexCounters;
  /** Every collection whose changes it follows, with its progress. */
  readonly sources: readonly FollowedCollection[];
  /** The changed collections that the index maps, with its progress. */
  readonly followed: readonly FollowedCollection[];
  /** Grows with everything that it processes. */
  readonly changeCount: number;
  /** Whether the output for everything up to `sources` has been stored. Omitted: true. */
  readonly isStored?: boolean;
  /**
   * Whether an operation is in progress that spans several time slices, during which the index cannot be saved.
   * Omitted: never.
   */
  readonly isBusy?: boolean;
  /** Omitted: the index maps documents. */
  readonly items?: ItemProgress | undefined;
  readonly columnNames: readonly string[];
  /** Null for a map index. */
  readonly outputs: GroupOutputs | null;
  /** Returns the space of a field's shapes; omitted: all are on the globe. */
  spaceOf?(name: string): Space;
  /** Returns the form of a field's vectors; omitted: they are used unchanged. */
  vectorFormOf?(name: string): VectorForm;
  /** Made for RavenDB's Lucene engine: it refuses some spatial relations. Omitted: false. */
  readonly isLucene?: boolean;
  /** Omitted when no map has used a boost. */
  readonly boosts?: EntryBoosts | undefined;
  readonly isStale: boolean;
  /** It cannot make progress now, and wakes its set when it can. Omitted: never. */
  readonly isResting?: boolean;
  /** Returns the column of a field by its name (map-index.ts), or undefined. */
  column(name: string): FieldColumn | undefined;
  /** Returns the column for searching a field; undefined when the index lacks the field in this form. */
  formColumn(name: string, form: FieldForm): FieldColumn | undefined;
  /** Returns whether the terms of that column are case-sensitive. */
  keepsCase(name: string, form: FieldForm): boolean;
  /** Returns the analyzer for search texts on this field. */
  analyzerOf(name: string): Analyzer;
  /**
   * Processes changes until `isTimeUp` or none are left.
   * @returns a promise when a record must first be read from the disk, else null.
   */
  catchUp(isTimeUp: () => boolean): Promise<void> | null;
  /**
   * Updates the data that a query of these fields (null: of any) reads and that the index maintains lazily, up to the
   * changes before the call. Must be called before entries are read. Omitted: the index maintains nothing lazily.
   * @returns null if nothing is to be updated
   */
  refresh?(fields: ReadonlySet<string> | null, budget: WorkBudget): Work<void> | null;
  /**
   * Called when such a change was committed: the index may skip these documents. Omitted: they are processed as any
   * others.
   */
  fieldsChanged?(change: FieldChange): void;
  /**
   * Saves its current contents and progress. Called between two calls of `catchUp`. Cost: milliseconds
   * @returns its references to documents
   */
  save(parts: PartWriter): readonly SavedDocuments[];
  /** Restores the output of `save`, in steps, into an empty index. */
  restore(parts: PartReader, documents: RestoredDocuments): Generator<void>;
}
