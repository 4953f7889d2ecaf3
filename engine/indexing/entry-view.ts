/**
 * The entries of an index as they were at one moment: which there were, and which of them were alive. Entries are only
 * appended, and their values never change, so it needs no copy but that of which are alive; and that only when the
 * event loop is given back before the query is done with them (`freeze`).
 *
 * Invariants:
 * - Until `freeze` nothing else has run since it was made.
 */
import { EntrySet } from "./entry-set.ts";
import type { EntryStore } from "./entry-store.ts";

export class EntryView {
  /** Entry numbers are below it. */
  readonly size: number;
  readonly #store: EntryStore;
  #live: Uint32Array;
  #isFrozen = false;
  #all: EntrySet | null = null;

  constructor(store: EntryStore) {
    this.#store = store;
    this.size = store.entryCount;
    this.#live = store.live;
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

  /** All living entries. */
  all(): EntrySet {
    this.#all ??= EntrySet.ofWords(this.#live.slice(0, this.#wordCount));
    return this.#all;
  }

  /** Other work is about to run, which may change the index. */
  freeze(): void {
    if (this.#isFrozen) return;
    this.#isFrozen = true;
    this.#live = this.#live.slice(0, this.#wordCount);
  }

  get #wordCount(): number {
    return (this.size + 31) >>> 5;
  }
}
