/**
 * An ordered map from strings whose changes are staged, in order, until they are durable. For the small kinds of state;
 * documents have their own packed table.
 *
 * Readers see committed entries. The writer sees the newest: the staged entry of a key if there is one. A key may have
 * several staged changes; they are committed oldest first, and discarded newest first.
 *
 * Invariants:
 * - `#newest` holds, for each key with staged changes, the last of them, and no other key.
 */
import { assert } from "../assert.ts";
import { BTree, type KeyRange, type TreeCursor } from "./btree.ts";
import { KeyOrder } from "./compare.ts";

interface StagedChange<V> {
  readonly key: string;
  /** undefined removes the key. */
  readonly value: V | undefined;
  /** The previous staged change of the same key that is not committed yet. */
  previous: StagedChange<V> | undefined;
  next: StagedChange<V> | undefined;
}

/** Called for each change when it is committed; `value` undefined: removed; `previous` undefined: newly added. */
type CommitListener<V> = (key: string, value: V | undefined, previous: V | undefined) => void;

export class StagedMap<V> {
  readonly #order = new KeyOrder();
  readonly #committed: BTree<string, V>;
  #newest: BTree<string, StagedChange<V>>;
  #queue: StagedChange<V>[] = [];
  /** Position of the oldest staged change in `#queue`. */
  #head = 0;

  readonly #fanOut: number | undefined;

  constructor(fanOut?: number) {
    this.#fanOut = fanOut;
    this.#committed = new BTree(this.#order.compare, fanOut);
    this.#newest = new BTree(this.#order.compare, fanOut);
  }

  /** Number of committed keys. */
  get size(): number {
    return this.#committed.size;
  }

  get stagedCount(): number {
    return this.#queue.length - this.#head;
  }

  /** Returns the committed value, or undefined. */
  get(key: string): V | undefined {
    return this.#committed.get(key);
  }

  /** Returns the value after all staged changes are committed. */
  newest(key: string): V | undefined {
    const staged = this.#newest.get(key);
    return staged === undefined ? this.#committed.get(key) : staged.value;
  }

  /** Stages a change: `key` gets `value`, or is removed when that is undefined. */
  stage(key: string, value: V | undefined): void {
    this.#order.add(key);
    const previous = this.#newest.get(key);
    const change: StagedChange<V> = { key, value, previous, next: undefined };
    if (previous !== undefined) previous.next = change;
    this.#newest.set(key, change);
    this.#queue.push(change);
  }

  /** Commits the `count` oldest staged changes in order, calling `listener` after each. */
  commitStaged(count: number, listener?: CommitListener<V>): void {
    assert(count <= this.stagedCount, "only what is staged is committed");
    // When all changes are committed, `#newest` is replaced instead of emptied: half the cost for a large transaction.
    const isAll = count > 1 && count === this.stagedCount;
    for (let left = count; left > 0; left--) {
      const change = this.#queue[this.#head++] as StagedChange<V>; // count <= stagedCount
      if (change.next !== undefined) change.next.previous = undefined;
      else if (!isAll) this.#newest.delete(change.key);
      const previous = this.#apply(change.key, change.value);
      listener?.(change.key, change.value, previous);
    }
    if (isAll) this.#newest = new BTree(this.#order.compare, this.#fanOut);
    if (this.#head * 2 > this.#queue.length) {
      this.#queue = this.#queue.slice(this.#head);
      this.#head = 0;
    }
  }

  /** Drops the `count` newest staged changes, as if they had never been staged. */
  discardStaged(count: number): void {
    assert(count <= this.stagedCount, "only what is staged is discarded");
    for (let left = count; left > 0; left--) {
      const change = this.#queue.pop() as StagedChange<V>; // count <= stagedCount
      if (change.previous === undefined) this.#newest.delete(change.key);
      else {
        change.previous.next = undefined;
        this.#newest.set(change.key, change.previous);
      }
    }
  }

  /** Commits a change directly, bypassing the staged ones: for replay. Returns the previous value. */
  apply(key: string, value: V | undefined): V | undefined {
    this.#order.add(key);
    return this.#apply(key, value);
  }

  #apply(key: string, value: V | undefined): V | undefined {
    return value === undefined ? this.#committed.delete(key) : this.#committed.set(key, value);
  }

  /** Returns an immutable view of the committed entries. Cost: O(1). It needs no release. */
  view(): BTree<string, V> {
    return this.#committed.clone();
  }

  /** Returns a cursor over committed entries; see `BTree.cursor`. Keys are ordered by their UTF-8 bytes. */
  cursor(range?: KeyRange<string>): TreeCursor<string, V> {
    return this.#committed.cursor(range);
  }

  /**
   * Yields the committed entries whose key starts with `prefix`, in order, from the key `from`. Nothing may be
   * committed during the iteration.
   */
  *entries(prefix = "", from = prefix): Generator<[string, V]> {
    const cursor = this.#committed.cursor({ lower: from });
    while (cursor.next() && cursor.key.startsWith(prefix)) yield [cursor.key, cursor.value];
  }

  /** As `entries`, backward: from the key `from`, or the one before it. */
  *entriesDown(prefix: string, from: string): Generator<[string, V]> {
    const cursor = this.#committed.cursor({ upper: from, descending: true });
    while (cursor.next() && cursor.key.startsWith(prefix)) yield [cursor.key, cursor.value];
  }

  /**
   * Returns the newest entries whose key starts with `prefix`, in order, from the key `from`. Nothing may be changed
   * during the iteration.
   */
  newestEntries(prefix = "", from = prefix): Generator<[string, V]> {
    return this.#newestEntries(prefix, { lower: from }, 1);
  }

  /** As `newestEntries`, backward: from the key `from`, or the one before it. */
  newestEntriesDown(prefix: string, from: string): Generator<[string, V]> {
    return this.#newestEntries(prefix, { upper: from, descending: true }, -1);
  }

  *#newestEntries(
    prefix: string,
    range: KeyRange<string>,
    direction: 1 | -1,
  ): Generator<[string, V]> {
    const committed = this.#committed.cursor(range);
    const staged = this.#newest.cursor(range);
    let hasCommitted = committed.next() && committed.key.startsWith(prefix);
    let hasStaged = staged.next() && staged.key.startsWith(prefix);
    while (hasCommitted || hasStaged) {
      let order = hasStaged ? 1 : -1;
      if (hasStaged && hasCommitted)
        order = this.#order.compare(committed.key, staged.key) * direction;
      if (order < 0) yield [committed.key, committed.value];
      else if (staged.value.value !== undefined) yield [staged.key, staged.value.value];
      if (order <= 0) hasCommitted = committed.next() && committed.key.startsWith(prefix);
      if (order >= 0) hasStaged = staged.next() && staged.key.startsWith(prefix);
    }
  }

  /** @throws InvariantError. Cost: O(entries). */
  checkInvariants(): void {
    this.#committed.checkInvariants();
    this.#newest.checkInvariants();
    const last = new Map<string, StagedChange<V>>();
    for (const change of this.#queue.slice(this.#head)) {
      assert(change.previous === last.get(change.key), "a change knows the one staged before it");
      assert(
        change.previous === undefined || change.previous.next === change,
        "changes link both ways",
      );
      last.set(change.key, change);
    }
    assert(last.size === this.#newest.size, "the newest changes are those of the staged keys");
    for (const [key, change] of last) {
      assert(this.#newest.get(key) === change, "the newest change of a key is the last staged");
      assert(change.next === undefined, "nothing follows the newest change");
    }
  }
}
