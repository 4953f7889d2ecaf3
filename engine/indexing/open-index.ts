/**
 * One index of a database as it is administered and queried, of any kind: its name, its state, its times and how far it
 * is. What is in it and how it is kept in step is for its `FollowedIndex`.
 */
import { automaticIndexDeletionHours, automaticIndexIdleMinutes } from "../limits.ts";
import type { WorkBudget } from "../work-budget.ts";
import type { FollowedIndex, GroupOutputs } from "./followed-index.ts";
import type { IndexHost } from "./index-host.ts";
import type { MapSource } from "./index-program.ts";
import { IndexReader } from "./index-reader.ts";

/** An automatic index that nobody queried for this long is idle. */
export function idleAfterMicros(host: IndexHost): number {
  const name = "Indexing.TimeToWaitBeforeMarkingAutoIndexAsIdleInMin";
  return timeSetting(host, name, automaticIndexIdleMinutes) * 60_000_000;
}

/** One that is idle goes after this long. */
export function deletedAfterMicros(host: IndexHost): number {
  const name = "Indexing.TimeToWaitBeforeDeletingAutoIndexMarkedAsIdleInHrs";
  return timeSetting(host, name, automaticIndexDeletionHours) * 3_600_000_000;
}

function timeSetting(host: IndexHost, name: string, fallback: number): number {
  const value = Number(host.setting(name) ?? fallback);
  return value >= 0 ? value : fallback;
}

export type IndexState = "Normal" | "Idle" | "Disabled" | "Error";
export type IndexPriority = "Low" | "Normal" | "High";
export type IndexLockMode = "Unlock" | "LockedIgnore" | "LockedError";
export type StaticIndexType = "Map" | "MapReduce" | "JavaScriptMap" | "JavaScriptMapReduce";
export type IndexType = "AutoMap" | "AutoMapReduce" | StaticIndexType;

/** One collection that an index maps, and how far. `name`: `@all_docs` for all. */
export interface CollectionProgress {
  readonly name: string;
  readonly lastDocumentEtag: number;
  readonly lastDeletionEtag: number;
  /** Documents that are still to be taken in. */
  readonly documentLag: number;
}

/** What the wire tells of an index. Times are microseconds since 1970, 0 = never. */
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
  readonly queriedAtMicros: number;
}

/** Values that an index keeps to be projected, by entry. */
export interface StoredFields {
  /** Is the field kept? */
  has(name: string): boolean;
  /** An object's JSON text, or null when none of the entry's fields is kept. */
  textOf(entry: number): string | null;
}

export abstract class OpenIndex {
  name: string;
  /** Of the index that was made, over restarts; `openedAtMicros`: of this object. */
  createdAtMicros: number;
  readonly openedAtMicros: number;
  indexedAtMicros = 0;
  /** Milliseconds of work so far. */
  indexingMs = 0;
  queriedAtMicros: number;
  priority: IndexPriority = "Normal";
  lockMode: IndexLockMode = "Unlock";
  isDisabled = false;
  isPaused = false;
  /** Was up to date at some time. */
  hasCaughtUp = false;
  /** What stopped it for good: a bug of ours. */
  failure: Error | null = null;
  /** What it had before a restart is being read: until then it is without entries, and stale. */
  isRestoring = false;
  abstract index: FollowedIndex;
  /** A text that is another one for an index whose entries would be others. Its name is not in it. */
  abstract readonly fingerprint: string;
  /** Somebody deployed it: it is not dropped, and a field that it has not cannot be queried. */
  abstract readonly isStatic: boolean;
  abstract readonly type: IndexType;
  /** What its maps are given. */
  get source(): MapSource {
    return "Documents";
  }
  /** Made for a query that waits for it. */
  abstract readonly isNew: boolean;
  abstract readonly stored: StoredFields | null;
  protected readonly host: IndexHost;

  constructor(name: string, host: IndexHost) {
    this.name = name;
    this.host = host;
    this.openedAtMicros = host.nowMicros();
    this.createdAtMicros = this.openedAtMicros;
    this.queriedAtMicros = this.openedAtMicros;
  }

  /** A new index for `index`, without entries. */
  abstract blank(): FollowedIndex;

  /** May a query name this field? */
  abstract isKnownField(name: string): boolean;

  /** Has an entry a list as the field's value? Nobody asks it of automatic indexes. */
  hasArrays(_name: string): boolean {
    return false;
  }

  /** Why it answers no queries any more, or null. */
  abstract readonly invalidity: string | null;

  /** Looks whether too much of it has failed. Called after each slice of work. */
  judge(): void {}

  get isStale(): boolean {
    return this.isRestoring || this.index.isStale;
  }

  get isRunning(): boolean {
    if (this.isRestoring) return false;
    return !this.isDisabled && !this.isPaused && this.failure === null && this.invalidity === null;
  }

  /** The newest etag that is taken in. */
  get lastEtag(): number {
    let last = this.index.counterEtag ?? 0;
    for (const { documentEtag, deletionEtag } of this.index.sources) {
      last = Math.max(last, documentEtag, deletionEtag);
    }
    return last;
  }

  /** The reduced objects, or null. */
  get outputs(): GroupOutputs | null {
    return this.index.outputs;
  }

  /** `budget`: of whoever reads. */
  reader(budget?: WorkBudget): IndexReader {
    this.queriedAtMicros = this.host.nowMicros();
    const { index } = this;
    const idOf = (docNum: number) => this.host.idOf(docNum).toLowerCase();
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
    };
  }

  protected abstract progress(): readonly CollectionProgress[];
}
