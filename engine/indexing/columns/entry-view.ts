/**
 * A view of an index's entries: their number, and which of them were live. Entries are only appended, and their values
 * never change, so only the live bits need copying; and only if the query yields to the event loop before it has
 * finished with them (`freeze`).
 *
 * Invariants:
 * - Before `freeze`, no other code has run since the view was created.
 */
import { EntrySet } from "./entry-set.ts";
import type { EntryStore } from "./entry-store.ts";

export class EntryView {
  /** Upper bound (exclusive) of the entry numbers. */
  readonly size: number;
  /** By entry; null: the place of each is its number. */
  readonly places: Uint32Array | null;
  readonly #store: EntryStore;
  readonly #deadCount: number;
  #live: Uint32Array;
  #isFrozen = false;
  #all: EntrySet | null = null;

  constructor(store: EntryStore) {
    this.#store = store;
    this.size = store.entryCount;
    this.places = store.places;
    this.#deadCount = store.deadCount;
    this.#live = store.live;
  }

  /** Whether all entries that were live still are. */
  get hasAll(): boolean {
    return this.#store.deadCount === this.#deadCount;
  }

  /** By entry. */
  get documents(): Uint32Array {
    return this.#store.documents;
  }

  /** One bit for each entry. */
  get live(): Uint32Array {
    return this.#live;
  }

  isLive(entry: number): boolean {
    return ((this.#live[entry >>> 5] as number) & (1 << (entry & 31))) !== 0;
  }

  /** Returns the place of an entry, which orders entries that have no other order. */
  placeOf(entry: number): number {
    return this.places === null ? entry : (this.places[entry] as number);
  }

  /** Returns all live entries. */
  all(): EntrySet {
    this.#all ??= EntrySet.ofWords(this.#live.slice(0, this.#wordCount));
    return this.#all;
  }

  /** Called before yielding to other work, which may change the index. */
  freeze(): void {
    if (this.#isFrozen) return;
    this.#isFrozen = true;
    this.#live = this.#live.slice(0, this.#wordCount);
  }

  get #wordCount(): number {
    return (this.size + 31) >>> 5;
  }
}
