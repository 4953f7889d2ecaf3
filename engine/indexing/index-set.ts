/**
 * The indexes of one database, updated after writes in slices of a few milliseconds.
 *
 * Automatic indexes are created when a query needs one, merged when a later query needs more, and dropped when unused;
 * when there are too many, the least recently queried is dropped. An index that lacks a field a query needs is
 * superseded: a new index with the fields of both is built beside it, and the old one is dropped some time after the
 * new one has caught up. The replacement of a redeployed index is built beside the old one as well, under a name of its
 * own, and is swapped in as soon as it has caught up.
 *
 * Invariants:
 * - No two indexes have the same name.
 * - A superseded index is never extended.
 */

import { assert } from "../base/assert.ts";
import { foldedName } from "../base/case-folding.ts";
import { EngineError } from "../base/errors.ts";
import { automaticIndexesMax, automaticIndexFieldsMax, sliceMs } from "../base/limits.ts";
import type { FieldChange } from "../state/store/changes.ts";
import { AutomaticIndex } from "./automatic-index.ts";
import {
  covers,
  type DefinitionField,
  type IndexDefinition,
  isMergeable,
  merged,
  withWholeValues,
} from "./definitions/index-definition.ts";
import type { IndexHost } from "./index-host.ts";
import { deletedAfterMicros, idleAfterMicros, type OpenIndex } from "./open-index.ts";
import { StaticIndex } from "./static-index.ts";

/** Milliseconds from a successor's catching up until the superseded index is dropped. */
const supersededMs = 15_000;
/** Milliseconds before an index whose documents could not be read is retried. */
const readRetryMs = 1_000;
/** Name prefix of an index that replaces another when it has caught up. */
export const replacementPrefix = "ReplacementOf/";

interface Waiter {
  readonly index: OpenIndex;
  /** The newest etags of each of its sources when the wait began: alternately of documents and of deletions. */
  readonly goal: readonly number[];
  /** The number of changes of counters or series when the wait began. */
  readonly itemGoal: number;
  readonly resolve: () => void;
}

/** A map that counts its changes. */
class CountedMap<Value> extends Map<string, Value> {
  changes = 0;

  override set(key: string, value: Value): this {
    this.changes++;
    return super.set(key, value);
  }

  override delete(key: string): boolean {
    this.changes++;
    return super.delete(key);
  }
}

export class IndexSet {
  readonly #host: IndexHost;
  readonly #nameOf: (definition: IndexDefinition) => string;
  /** By lower-cased name. */
  readonly #indexes = new CountedMap<OpenIndex>();
  readonly #coveringKnown = new WeakMap<
    IndexDefinition,
    { readonly changes: number; readonly indexes: readonly AutomaticIndex[] }
  >();
  readonly #waiters = new Set<Waiter>();
  /** Indexes whose documents could not be read, until their retry. */
  readonly #resting = new Set<OpenIndex>();
  /** For dropping superseded indexes and for retries. */
  readonly #timers = new Set<{ cancel(): void }>();
  /** When another node was last seen to decide which indexes there are. */
  #followedAtMicros = 0;
  #isPumping = false;
  #pumping: Promise<void> = Promise.resolve();
  #isClosed = false;

  /** `nameOf`: derives the name from a definition. */
  constructor(host: IndexHost, nameOf: (definition: IndexDefinition) => string) {
    this.#host = host;
    this.#nameOf = nameOf;
  }

  /** Returns all indexes, ordered by name. */
  all(): OpenIndex[] {
    return [...this.#indexes.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one);
  }

  #automatics(): AutomaticIndex[] {
    return [...this.#indexes.values()].filter((index) => index instanceof AutomaticIndex);
  }

  /** Tells all of a change that was just committed. */
  fieldsChanged(change: FieldChange): void {
    for (const { index } of this.#indexes.values()) index.fieldsChanged?.(change);
  }

  /**
   * Returns the index of a name, for queries that use these fields as a whole (null: for any of its fields). An
   * automatic index that indexes only the words of such a field is replaced: the result is then its replacement, which
   * may have to catch up. Undefined if the index does not exist.
   */
  withWholeFields(
    name: string,
    fieldNames: () => ReadonlySet<string> | null,
  ): OpenIndex | undefined {
    const index = this.byName(name);
    if (!(index instanceof AutomaticIndex) || index.wordsOnly.size === 0) return index;
    const names = fieldNames();
    const isAsked = ({ name }: DefinitionField) => names?.has(name) !== false;
    const { definition, wordsOnly } = index;
    if (!definition.fields.some((field) => wordsOnly.has(field.name) && isAsked(field)))
      return index;
    const fields = definition.fields.map((field) =>
      isAsked(field) ? withWholeValues(field) : field,
    );
    return this.automatic({ ...definition, fields });
  }

  /** Finds an index by name in any case; undefined if it does not exist. */
  byName(name: string): OpenIndex | undefined {
    return this.#indexes.get(foldedName(name));
  }

  /** Returns the index that answers queries of this definition, created or extended if needed. */
  automatic(needed: IndexDefinition): AutomaticIndex {
    let best: AutomaticIndex | null = null;
    for (const index of this.#covering(needed)) {
      if (index.isDisabled) continue;
      if (best === null || isBetter(index, best, needed.collection)) best = index;
    }
    return best ?? this.#create(needed);
  }

  /**
   * Returns the automatic indexes that cover a definition. Cached per definition until the set of indexes changes:
   * queries share definitions.
   */
  #covering(needed: IndexDefinition): readonly AutomaticIndex[] {
    const known = this.#coveringKnown.get(needed);
    if (known !== undefined && known.changes === this.#indexes.changes) return known.indexes;
    const indexes = this.#automatics().filter(({ definition }) => covers(definition, needed));
    this.#coveringKnown.set(needed, { changes: this.#indexes.changes, indexes });
    return indexes;
  }

  /** Adds an automatic index known from before a restart, without entries. */
  restore(definition: IndexDefinition, name: string): AutomaticIndex {
    return this.#add(definition, name);
  }

  /** @returns false when there is no index of this name. */
  drop(name: string): boolean {
    const index = this.byName(name);
    if (index === undefined) return false;
    this.#indexes.delete(foldedName(name));
    this.#host.indexDropped(index.name);
    this.#host.indexEvent("IndexRemoved", index.name);
    this.#release(index);
    return true;
  }

  /** Discards the entries and rebuilds the index. @returns false when there is no index of this name. */
  reset(name: string): boolean {
    const index = this.byName(name);
    if (index === undefined) return false;
    this.#indexes.delete(foldedName(name));
    this.#host.indexEvent("IndexRemoved", index.name);
    this.#release(index);
    if (index instanceof StaticIndex) this.addStatic(index.renewed());
    else if (index instanceof AutomaticIndex) this.#add(index.definition, index.name);
    return true;
  }

  /** Adds a deployed index. An existing one of the same name is dropped. */
  addStatic(index: StaticIndex): void {
    const known = this.byName(index.name);
    if (known !== undefined) this.#release(known);
    this.#indexes.set(foldedName(index.name), index);
    this.#host.indexChanged(index);
    this.#host.indexEvent("IndexAdded", index.name);
    this.wake();
  }

  /** Swaps in the replacement of an index. Waiters for either are released. */
  replace(replacement: OpenIndex): void {
    const name = replacement.name.slice(replacementPrefix.length);
    const replaced = this.byName(name);
    const oldName = replacement.name;
    this.#indexes.delete(foldedName(oldName));
    replacement.name = replaced?.name ?? name;
    this.#indexes.set(foldedName(name), replacement);
    this.#host.indexReplaced(oldName, replacement);
    this.#host.indexEvent("SideBySideReplace", replacement.name);
    if (replaced !== undefined) this.#release(replaced);
    this.#release(replacement);
  }

  /** Called when documents changed or an index was resumed: catches up in the background. */
  wake(): void {
    if (this.#isPumping || this.#isClosed) return;
    this.#isPumping = true;
    this.#pumping = this.#pump();
  }

  /**
   * Resolves when the index has processed all current data, has failed or was dropped, or after `timeoutMs`.
   * @returns false on timeout.
   */
  waitForNonStale(name: string, timeoutMs: number): Promise<boolean> {
    const index = this.byName(name);
    if (index === undefined || !index.isStale) return Promise.resolve(true);
    if (index.failure !== null || index.invalidity !== null) return Promise.resolve(true);
    const goal = index.index.sources.flatMap(({ collection }) => {
      const { document, deletion } = this.#host.etagsOf(collection);
      return [document, deletion];
    });
    const itemGoal = this.#host.itemChangesOf(index.source);
    this.wake();
    return new Promise((resolve) => {
      // A program may have nothing to do but to wait for this, while the index waits for a timer itself.
      const timer = this.#host.setTimer(timeoutMs, () => done(false), true);
      const waiter: Waiter = { index, goal, itemGoal, resolve: () => done(true) };
      const done = (isPassed: boolean) => {
        timer.cancel();
        this.#waiters.delete(waiter);
        resolve(isPassed);
      };
      this.#waiters.add(waiter);
    });
  }

  /**
   * Drops indexes that were not queried for days; called periodically. A follower retains the indexes of the leader,
   * because it knows only its own queries; a new leader does not know the queries of other nodes.
   */
  tidy(): void {
    const now = this.#host.nowMicros();
    if (this.#host.isFollowing) {
      this.#followedAtMicros = now;
      return;
    }
    const most = idleAfterMicros(this.#host) + deletedAfterMicros(this.#host);
    for (const index of this.#automatics()) {
      if (now - Math.max(index.queriedAtMicros, this.#followedAtMicros) > most) {
        this.drop(index.name);
      }
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const timer of this.#timers) timer.cancel();
    for (const waiter of [...this.#waiters]) waiter.resolve();
  }

  /** Resolves when no background work is left, after `close`. */
  rested(): Promise<void> {
    return this.#pumping;
  }

  checkInvariants(): void {
    for (const [key, index] of this.#indexes) {
      assert(key === foldedName(index.name), "indexes are found by their names");
      index.index.store.checkInvariants();
    }
  }

  #create(needed: IndexDefinition): AutomaticIndex {
    let old: AutomaticIndex | null = null;
    for (const index of this.#automatics()) {
      if (index.successor !== null || !isMergeable(index.definition, needed)) continue;
      // Queries of many different fields must not grow one index without bound.
      if (index.definition.fields.length + needed.fields.length > automaticIndexFieldsMax) continue;
      if (old === null || isBetter(index, old, needed.collection)) old = index;
    }
    const created = this.#addNamed(old === null ? needed : merged(old.definition, needed));
    for (const index of this.#automatics()) {
      const isReplaced = index !== created && index.successor === null;
      if (isReplaced && covers(created.definition, index.definition)) index.successor = created;
    }
    this.#makeRoom(created);
    return created;
  }

  /** Drops automatic indexes while there are too many: superseded ones first, then the least recently queried. */
  #makeRoom(created: AutomaticIndex): void {
    const others = this.#automatics().filter((index) => index !== created);
    others.sort(
      (left, right) =>
        Number(right.successor !== null) - Number(left.successor !== null) ||
        left.queriedAtMicros - right.queriedAtMicros,
    );
    const excess = others.length + 1 - automaticIndexesMax;
    for (const index of others.slice(0, Math.max(0, excess))) this.drop(index.name);
  }

  /** Whole values have no part in the name: an index that lacks them is replaced by one under a name of its own. */
  #addNamed(definition: IndexDefinition): AutomaticIndex {
    const name = this.#nameOf(definition);
    const known = this.byName(name);
    if (!(known instanceof AutomaticIndex) || covers(known.definition, definition)) {
      return this.#add(definition, name);
    }
    const replacement = this.byName(replacementPrefix + name);
    if (replacement instanceof AutomaticIndex && !covers(replacement.definition, definition)) {
      this.drop(replacement.name);
    }
    return this.#add(definition, replacementPrefix + name, known);
  }

  /** `like`: the index whose options it has. */
  #add(definition: IndexDefinition, name: string, like?: AutomaticIndex): AutomaticIndex {
    const index = new AutomaticIndex(name, definition, this.#host);
    const known = this.byName(index.name);
    if (known instanceof AutomaticIndex) return known;
    if (like !== undefined) {
      const { priority, lockMode, createdAtMicros } = like;
      Object.assign(index, { priority, lockMode, createdAtMicros });
    }
    this.#indexes.set(foldedName(index.name), index);
    this.#host.indexChanged(index);
    this.#host.indexEvent("IndexAdded", index.name);
    if (!index.isStale) this.#caughtUp(index);
    this.wake();
    return index;
  }

  /** Stale indexes that can make progress. */
  #stale(): OpenIndex[] {
    const found: OpenIndex[] = [];
    for (const one of this.#indexes.values()) {
      try {
        if (!one.isRunning || this.#resting.has(one)) continue;
        if (one.isStale && one.index.isResting !== true) found.push(one);
      } catch (error) {
        this.#failed(one, error);
      }
    }
    return found;
  }

  /** Never rejects: an error in one index stops that index only. */
  async #pump(): Promise<void> {
    try {
      // The caller of `wake` is in the middle of a write or a query.
      await this.#host.yieldSlice();
      for (;;) {
        for (const index of this.all()) this.#noteCaughtUp(index);
        const stale = this.#stale();
        if (stale.length === 0 || this.#isClosed) break;
        for (const index of stale) {
          try {
            await this.#advance(index);
          } catch (error) {
            this.#failed(index, error);
          }
          await this.#host.yieldSlice();
        }
      }
      this.#isPumping = false;
      this.#notifyWaiters();
    } catch (error) {
      this.#host.report?.("Indexes could not go on, and do so with the next write", error);
    } finally {
      this.#isPumping = false;
    }
  }

  #noteCaughtUp(index: OpenIndex): void {
    try {
      if (index.isRunning && !index.isStale) this.#caughtUp(index);
    } catch (error) {
      this.#failed(index, error);
    }
  }

  /** Stops an index that met an error; schedules a retry when its documents could not be read. */
  #failed(index: OpenIndex, error: unknown): void {
    if (error instanceof EngineError && error.code === "read-failed") {
      this.#resting.add(index);
      const timer = this.#host.setTimer(readRetryMs, () => {
        this.#timers.delete(timer);
        this.#resting.delete(index);
        this.wake();
      });
      this.#timers.add(timer);
      return;
    }
    index.failure = error instanceof Error ? error : new Error(String(error));
    this.#host.indexEvent("IndexMarkedAsErrored", index.name);
    this.#release(index);
  }

  async #advance(index: OpenIndex): Promise<void> {
    const start = this.#host.monotonicMs();
    const startedAtMicros = this.#host.nowMicros();
    const before = index.counts();
    const pending = index.index.catchUp(() => this.#host.monotonicMs() - start >= sliceMs);
    const workMs = this.#host.monotonicMs() - start;
    const endedAtMicros = this.#host.nowMicros();
    index.indexingMs += workMs;
    index.indexedAtMicros = endedAtMicros;
    const { isStale } = index;
    const after = index.counts();
    index.batches.add({ startedAtMicros, endedAtMicros, workMs, before, after, isStale });
    this.#host.indexEvent("BatchCompleted", index.name);
    index.judge();
    if (index.invalidity !== null) {
      this.#host.indexEvent("IndexMarkedAsErrored", index.name);
      this.#release(index);
    } else if (!index.isStale) this.#caughtUp(index);
    this.#notifyWaiters();
    if (pending !== null) await pending;
  }

  #caughtUp(index: OpenIndex): void {
    if (index.hasCaughtUp) return;
    index.hasCaughtUp = true;
    if (index.name.startsWith(replacementPrefix)) {
      this.replace(index);
      return;
    }
    for (const old of this.#automatics()) {
      if (old.successor !== index) continue;
      const timer = this.#host.setTimer(supersededMs, () => {
        this.#timers.delete(timer);
        if (this.byName(old.name) === old) this.drop(old.name);
      });
      this.#timers.add(timer);
    }
  }

  #notifyWaiters(): void {
    for (const waiter of [...this.#waiters]) {
      const { index } = waiter.index;
      const seen = index.items?.seen ?? waiter.itemGoal;
      const isReached =
        index.isStored !== false &&
        seen >= waiter.itemGoal &&
        index.sources.every(
          ({ documentEtag, deletionEtag }, i) =>
            documentEtag >= (waiter.goal[2 * i] as number) &&
            deletionEtag >= (waiter.goal[2 * i + 1] as number),
        );
      if (isReached) waiter.resolve();
    }
  }

  #release(index: OpenIndex): void {
    for (const waiter of [...this.#waiters]) if (waiter.index === index) waiter.resolve();
  }
}

/** Prefers the index whose collection is spelled alike, then an up-to-date one, then more fields, then the newer. */
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
