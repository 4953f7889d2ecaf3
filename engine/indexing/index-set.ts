/**
 * The automatic indexes of one database: made when a query needs one, merged when a later query needs more, kept in step with
 * writes in slices of a few milliseconds, dropped when unused.
 *
 * An index that a query needs more of is replaced: a new one with the fields of both is built beside it, and the old one goes
 * some time after the new one has caught up.
 *
 * Invariants:
 * - No two indexes have the same name.
 * - A superseded index is never extended.
 */
import { assert } from "../assert.ts";
import { sliceMs } from "../limits.ts";
import { GroupIndex } from "./group-index.ts";
import {
  covers,
  type IndexDefinition,
  indexType,
  isMergeable,
  merged,
} from "./index-definition.ts";
import type { IndexHost } from "./index-host.ts";
import { IndexReader } from "./index-reader.ts";
import { FieldMapper, MapIndex } from "./map-index.ts";

/** An index that nobody queried for this long is idle, an idle one is dropped after the second time. */
const idleAfterMicros = 30 * 60 * 1_000_000;
const dropIdleAfterMicros = 72 * 3_600 * 1_000_000;
/** A superseded index goes this long after its successor caught up. */
const supersededMs = 15_000;

export type IndexState = "Normal" | "Idle" | "Disabled" | "Error";
export type IndexPriority = "Low" | "Normal" | "High";
export type IndexLockMode = "Unlock" | "LockedIgnore" | "LockedError";

/** What the wire tells of an index. Times are microseconds since 1970, 0 = never. */
export interface IndexStatistics {
  readonly name: string;
  readonly type: "AutoMap" | "AutoMapReduce";
  readonly collection: string;
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
  readonly lastDocumentEtag: number;
  readonly lastDeletionEtag: number;
  readonly documentLag: number;
}

/** One automatic index and what happens to it. */
export class AutomaticIndex {
  readonly name: string;
  readonly definition: IndexDefinition;
  readonly index: MapIndex | GroupIndex;
  readonly createdAtMicros: number;
  indexedAtMicros = 0;
  queriedAtMicros: number;
  priority: IndexPriority = "Normal";
  lockMode: IndexLockMode = "Unlock";
  isDisabled = false;
  isPaused = false;
  /** Replaced by another index, which has or will have its fields. */
  successor: AutomaticIndex | null = null;
  /** Never was up to date yet: a query waits for it. */
  isNew = true;
  /** What stopped it for good: a bug of ours. */
  failure: Error | null = null;
  readonly #host: IndexHost;

  constructor(name: string, definition: IndexDefinition, host: IndexHost) {
    this.name = name;
    this.definition = definition;
    this.#host = host;
    this.createdAtMicros = host.nowMicros();
    this.queriedAtMicros = this.createdAtMicros;
    this.index = newIndex(definition, host);
  }

  get isStale(): boolean {
    return this.index.isStale;
  }

  get isRunning(): boolean {
    return !this.isDisabled && !this.isPaused && this.failure === null;
  }

  readonly isStatic = false;

  get lastEtag(): number {
    return Math.max(this.index.documentEtag, this.index.deletionEtag);
  }

  /** The reduced objects, or null. */
  get outputs(): GroupIndex | null {
    return this.index instanceof GroupIndex ? this.index : null;
  }

  reader(): IndexReader {
    this.queriedAtMicros = this.#host.nowMicros();
    const { index } = this;
    return new IndexReader(
      index.store,
      (name) => index.column(name),
      index.columnNames,
      index instanceof GroupIndex ? null : (docNum) => this.#host.idOf(docNum).toLowerCase(),
    );
  }

  stateAt(nowMicros: number): IndexState {
    if (this.isDisabled) return "Disabled";
    if (this.failure !== null) return "Error";
    return nowMicros - this.queriedAtMicros > idleAfterMicros ? "Idle" : "Normal";
  }

  statistics(): IndexStatistics {
    const { index } = this;
    return {
      name: this.name,
      type: indexType(this.definition),
      collection: this.definition.collection,
      state: this.stateAt(this.#host.nowMicros()),
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
      lastDocumentEtag: index.documentEtag,
      lastDeletionEtag: index.deletionEtag,
      documentLag: this.#host.countSince(index.collection, index.documentEtag),
    };
  }
}

function newIndex(definition: IndexDefinition, host: IndexHost): MapIndex | GroupIndex {
  if (definition.groupBy !== null) return new GroupIndex(definition, host);
  return new MapIndex(definition.collection, new FieldMapper(definition, host), host);
}

interface Waiter {
  readonly index: AutomaticIndex;
  readonly documentEtag: number;
  readonly deletionEtag: number;
  readonly resolve: () => void;
}

export class IndexSet {
  readonly #host: IndexHost;
  readonly #nameOf: (definition: IndexDefinition) => string;
  /** By lower-cased name. */
  readonly #indexes = new Map<string, AutomaticIndex>();
  readonly #waiters = new Set<Waiter>();
  #isPumping = false;
  #isClosed = false;

  /** `nameOf`: the name that follows from a definition. */
  constructor(host: IndexHost, nameOf: (definition: IndexDefinition) => string) {
    this.#host = host;
    this.#nameOf = nameOf;
  }

  /** All indexes in the order of their names. */
  all(): AutomaticIndex[] {
    return [...this.#indexes.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** In any case; undefined when there is none. */
  byName(name: string): AutomaticIndex | undefined {
    return this.#indexes.get(name.toLowerCase());
  }

  /** The index that answers queries of this definition, made or extended if need be. */
  automatic(needed: IndexDefinition): AutomaticIndex {
    let best: AutomaticIndex | null = null;
    for (const index of this.#indexes.values()) {
      if (!covers(index.definition, needed) || index.isDisabled) continue;
      if (best === null || isBetter(index, best, needed.collection)) best = index;
    }
    return best ?? this.#create(needed);
  }

  /** Makes an index known from before a restart; it is built anew. */
  restore(definition: IndexDefinition): AutomaticIndex {
    return this.#add(definition);
  }

  /** @returns false when there is none of this name. */
  drop(name: string): boolean {
    const index = this.byName(name);
    if (index === undefined) return false;
    this.#indexes.delete(name.toLowerCase());
    this.#host.indexChanged(index.name, null);
    this.#host.indexEvent("IndexRemoved", index.name);
    this.#release(index);
    return true;
  }

  /** Throws its entries away and builds it again. @returns false when there is none of this name. */
  reset(name: string): boolean {
    const index = this.byName(name);
    if (index === undefined) return false;
    this.#indexes.delete(name.toLowerCase());
    this.#host.indexEvent("IndexRemoved", index.name);
    this.#release(index);
    this.#add(index.definition);
    return true;
  }

  /** Documents changed, or an index was resumed: catches up in the background. */
  wake(): void {
    if (this.#isPumping || this.#isClosed) return;
    this.#isPumping = true;
    void this.#pump();
  }

  /** Resolves when the index has passed what is stored now, or after `timeoutMs`. */
  waitForNonStale(name: string, timeoutMs: number): Promise<void> {
    const index = this.byName(name);
    if (index === undefined || !index.isStale) return Promise.resolve();
    const { document, deletion } = this.#host.etagsOf(index.index.collection);
    this.wake();
    return new Promise((resolve) => {
      const timer = this.#host.setTimer(timeoutMs, () => done());
      const waiter: Waiter = {
        index,
        documentEtag: document,
        deletionEtag: deletion,
        resolve: () => done(),
      };
      const done = () => {
        timer.cancel();
        this.#waiters.delete(waiter);
        resolve();
      };
      this.#waiters.add(waiter);
    });
  }

  /** Drops what nobody queried for days; called now and then. */
  tidy(): void {
    const now = this.#host.nowMicros();
    for (const index of this.#indexes.values()) {
      const unused = now - index.queriedAtMicros;
      if (unused > idleAfterMicros + dropIdleAfterMicros) this.drop(index.name);
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const waiter of [...this.#waiters]) waiter.resolve();
  }

  checkInvariants(): void {
    for (const [key, index] of this.#indexes) {
      assert(key === index.name.toLowerCase(), "indexes are found by their names");
      index.index.store.checkInvariants();
    }
  }

  #create(needed: IndexDefinition): AutomaticIndex {
    let old: AutomaticIndex | null = null;
    for (const index of this.#indexes.values()) {
      if (index.successor !== null || !isMergeable(index.definition, needed)) continue;
      if (old === null || isBetter(index, old, needed.collection)) old = index;
    }
    const created = this.#add(old === null ? needed : merged(old.definition, needed));
    for (const index of this.#indexes.values()) {
      const isReplaced = index !== created && index.successor === null;
      if (isReplaced && covers(created.definition, index.definition)) index.successor = created;
    }
    return created;
  }

  #add(definition: IndexDefinition): AutomaticIndex {
    const index = new AutomaticIndex(this.#nameOf(definition), definition, this.#host);
    const known = this.byName(index.name);
    if (known !== undefined) return known;
    this.#indexes.set(index.name.toLowerCase(), index);
    this.#host.indexChanged(index.name, definition);
    this.#host.indexEvent("IndexAdded", index.name);
    if (!index.isStale) index.isNew = false;
    this.wake();
    return index;
  }

  #stale(): AutomaticIndex[] {
    return [...this.#indexes.values()].filter((index) => index.isRunning && index.isStale);
  }

  async #pump(): Promise<void> {
    // Whoever woke it is in the middle of a write or a query.
    await this.#host.yieldTurn();
    for (;;) {
      const stale = this.#stale();
      if (stale.length === 0 || this.#isClosed) break;
      for (const index of stale) {
        try {
          await this.#advance(index);
        } catch (error) {
          index.failure = error instanceof Error ? error : new Error(String(error));
          this.#host.indexEvent("IndexMarkedAsErrored", index.name);
          this.#release(index);
        }
        await this.#host.yieldTurn();
      }
    }
    this.#isPumping = false;
    this.#tellWaiters();
  }

  async #advance(index: AutomaticIndex): Promise<void> {
    const end = this.#host.monotonicMs() + sliceMs;
    const pending = index.index.catchUp(() => this.#host.monotonicMs() >= end);
    index.indexedAtMicros = this.#host.nowMicros();
    this.#host.indexEvent("BatchCompleted", index.name);
    if (!index.isStale) this.#caughtUp(index);
    this.#tellWaiters();
    if (pending !== null) await pending;
  }

  #caughtUp(index: AutomaticIndex): void {
    if (!index.isNew) return;
    index.isNew = false;
    for (const old of this.#indexes.values()) {
      if (old.successor !== index) continue;
      this.#host.setTimer(supersededMs, () => {
        if (!this.#isClosed && this.byName(old.name) === old) this.drop(old.name);
      });
    }
  }

  #tellWaiters(): void {
    for (const waiter of [...this.#waiters]) {
      const { index } = waiter.index;
      if (index.documentEtag < waiter.documentEtag || index.deletionEtag < waiter.deletionEtag)
        continue;
      waiter.resolve();
    }
  }

  #release(index: AutomaticIndex): void {
    for (const waiter of [...this.#waiters]) if (waiter.index === index) waiter.resolve();
  }
}

/** One whose collection is spelt alike, then one that is up to date, then the one with more fields, then the newer. */
function isBetter(index: AutomaticIndex, other: AutomaticIndex, collection: string): boolean {
  const isAlike = index.definition.collection === collection;
  if (isAlike !== (other.definition.collection === collection)) return isAlike;
  if (index.isNew !== other.isNew) return other.isNew;
  return fieldCount(index) >= fieldCount(other);
}

function fieldCount(index: AutomaticIndex): number {
  const { fields, groupBy } = index.definition;
  return fields.length + (groupBy?.aggregates.length ?? 0);
}
