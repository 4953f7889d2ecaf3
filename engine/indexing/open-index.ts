/**
 * An index of any type as administered and queried: its name, state, times and progress. Its contents and their updates
 * are up to its `FollowedIndex`.
 */
import { lowerCased } from "../base/case-folding.ts";
import { automaticIndexDeletionHours, automaticIndexIdleMinutes } from "../base/limits.ts";
import type { Work, WorkBudget } from "../base/scheduling/work-budget.ts";
import type { FollowedIndex, GroupOutputs } from "./followed-index.ts";
import { IndexBatches, type IndexCounts } from "./index-batches.ts";
import type { IndexHost } from "./index-host.ts";
import type { MapSource } from "./index-program.ts";
import { IndexReader } from "./index-reader.ts";
import type { Analyzer } from "./text/analyzer.ts";

/** Microseconds without a query after which an automatic index is idle. */
export function idleAfterMicros(host: IndexHost): number {
  const name = "Indexing.TimeToWaitBeforeMarkingAutoIndexAsIdleInMin";
  return timeSetting(host, name, automaticIndexIdleMinutes) * 60_000_000;
}

/** Microseconds after which an idle index is deleted. */
export function deletedAfterMicros(host: IndexHost): number {
  const name = "Indexing.TimeToWaitBeforeDeletingAutoIndexMarkedAsIdleInHrs";
  return timeSetting(host, name, automaticIndexDeletionHours) * 3_600_000_000;
}

function timeSetting(host: IndexHost, name: string, fallback: number): number {
  const value = Number(host.setting(name) ?? fallback);
  return value >= 0 ? value : fallback;
}

type IndexState = "Normal" | "Idle" | "Disabled" | "Error";
export type IndexPriority = "Low" | "Normal" | "High";
export type IndexLockMode = "Unlock" | "LockedIgnore" | "LockedError";
export type StaticIndexType = "Map" | "MapReduce" | "JavaScriptMap" | "JavaScriptMapReduce";
export type IndexType = "AutoMap" | "AutoMapReduce" | StaticIndexType;

/** The progress of an index in one collection that it maps. `name`: `@all_docs` for all documents. */
export interface CollectionProgress {
  readonly name: string;
  readonly lastDocumentEtag: number;
  readonly lastDeletionEtag: number;
  /** Documents still to be processed. */
  readonly documentLag: number;
}

/** The statistics of an index on the wire. Times are microseconds since 1970, 0 = never. */
export interface IndexStatistics {
  readonly name: string;
  readonly type: IndexType;
  readonly source: MapSource;
  readonly collections: readonly CollectionProgress[];
  readonly state: IndexState;
  readonly priority: IndexPriority;
  readonly lockMode: IndexLockMode;
  readonly isStale: boolean;
  readonly isPaused: boolean;
  readonly entriesCount: number;
  readonly mapAttempts: number;
  readonly mapErrors: number;
  readonly createdAtMicros: number;
  readonly indexedAtMicros: number;
  /** Time of the last query, or when the index was opened if there was none since. */
  readonly queriedAtMicros: number;
  readonly wasQueried: boolean;
}

/** Stored field values for projections, by entry. */
export interface StoredFields {
  /** Returns whether the field is stored. */
  has(name: string): boolean;
  /** Returns the JSON text of an object, or null if the entry has no stored fields. */
  textOf(entry: number): string | null;
}

export abstract class OpenIndex {
  name: string;
  /** When the index was created, persistent over restarts; `openedAtMicros`: when this object was created. */
  createdAtMicros: number;
  readonly openedAtMicros: number;
  indexedAtMicros = 0;
  /** Total milliseconds of indexing. */
  indexingMs = 0;
  queriedAtMicros: number;
  priority: IndexPriority = "Normal";
  lockMode: IndexLockMode = "Unlock";
  isDisabled = false;
  isPaused = false;
  /** Whether it has ever been up to date. */
  hasCaughtUp = false;
  /** The bug that stopped it permanently. */
  failure: Error | null = null;
  /** Its snapshot is being read: until then it has no entries and is stale. */
  isRestoring = false;
  abstract index: FollowedIndex;
  /** A text that differs for indexes whose entries would differ. Does not include the name. */
  abstract readonly fingerprint: string;
  /** Whether it was deployed: it is then never dropped automatically, and queries may use only its own fields. */
  abstract readonly isStatic: boolean;
  abstract readonly type: IndexType;
  /** The input of its maps. */
  get source(): MapSource {
    return "Documents";
  }
  /** Whether it was created for a query that is waiting for it. */
  abstract readonly isNew: boolean;
  abstract readonly stored: StoredFields | null;
  /** Fields of which only the words are indexed, and not the values as a whole. */
  readonly wordsOnly: ReadonlySet<string> = new Set();
  readonly batches: IndexBatches;
  protected readonly host: IndexHost;

  constructor(name: string, host: IndexHost) {
    this.name = name;
    this.host = host;
    this.openedAtMicros = host.nowMicros();
    this.batches = new IndexBatches(this.openedAtMicros);
    this.createdAtMicros = this.openedAtMicros;
    this.queriedAtMicros = this.openedAtMicros;
  }

  /** Returns a new, empty value for `index`. */
  abstract blank(): FollowedIndex;

  /** Returns whether a query may use this field. */
  abstract isKnownField(name: string): boolean;

  /**
   * Returns the analyzer of a field whose terms are suggested; null if suggestions are disabled; undefined if the field
   * does not exist.
   */
  abstract suggestionAnalyzer(name: string): Analyzer | null | undefined;

  /** Returns whether some entry has a list as the field's value. Not used for automatic indexes. */
  hasArrays(_name: string): boolean {
    return false;
  }

  /** Why it no longer answers queries, or null. */
  abstract readonly invalidity: string | null;

  /** Checks the failure rate. Called after each slice of work. */
  judge(): void {}

  get isStale(): boolean {
    return this.isRestoring || this.index.isStale;
  }

  get isRunning(): boolean {
    if (this.isRestoring) return false;
    return !this.isDisabled && !this.isPaused && this.failure === null && this.invalidity === null;
  }

  /** The newest etag processed. */
  get lastEtag(): number {
    let last = this.index.items?.etag ?? 0;
    for (const { documentEtag, deletionEtag } of this.index.sources) {
      last = Math.max(last, documentEtag, deletionEtag);
    }
    return last;
  }

  /** As of now. */
  counts(): IndexCounts {
    const { counters, store } = this.index;
    const { mapAttempts, mapErrors } = counters;
    const { entryCount: entries, liveCount: livingEntries } = store;
    return {
      mapAttempts,
      mapErrors,
      reduceAttempts: 0,
      reduceMs: 0,
      entries,
      livingEntries,
      store,
    };
  }

  /** The reduced objects, or null. */
  get outputs(): GroupOutputs | null {
    return this.index.outputs;
  }

  /** It is in use: a query was answered with it, or its caller's answer is still that. */
  wasQueried(): void {
    this.queriedAtMicros = this.host.nowMicros();
  }

  /** See `FollowedIndex.refresh`. */
  refresh(fields: ReadonlySet<string> | null, budget: WorkBudget): Work<void> | null {
    return this.index.refresh?.(fields, budget) ?? null;
  }

  /** `budget`: the reader's. */
  reader(budget?: WorkBudget): IndexReader {
    this.wasQueried();
    const { index } = this;
    const idOf = (docNum: number) => lowerCased(this.host.idOf(docNum));
    return new IndexReader(index, index.outputs === null ? idOf : null, budget);
  }

  stateAt(nowMicros: number): IndexState {
    if (this.isDisabled) return "Disabled";
    if (this.failure !== null || this.invalidity !== null) return "Error";
    const isIdle = !this.isStatic && nowMicros - this.queriedAtMicros > idleAfterMicros(this.host);
    return isIdle ? "Idle" : "Normal";
  }

  statistics(): IndexStatistics {
    const { index, host } = this;
    return {
      name: this.name,
      type: this.type,
      source: this.source,
      collections: this.progress(),
      state: this.stateAt(host.nowMicros()),
      priority: this.priority,
      lockMode: this.lockMode,
      isStale: this.isStale,
      isPaused: this.isPaused,
      entriesCount: index.store.liveCount,
      mapAttempts: index.counters.mapAttempts,
      mapErrors: index.counters.mapErrors,
      createdAtMicros: this.createdAtMicros,
      indexedAtMicros: this.indexedAtMicros,
      queriedAtMicros: this.queriedAtMicros,
      wasQueried: this.queriedAtMicros !== this.openedAtMicros,
    };
  }

  protected abstract progress(): readonly CollectionProgress[];
}
