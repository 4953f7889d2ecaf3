/**
 * The documents whose counters changed their values, in the order in which that became visible: for indexes that map
 * counters. Created and deleted counters are not listed: they change the document itself.
 *
 * Nothing is recorded before the first follower, and nothing survives a restart: earlier followers then compare the
 * etags of all counters.
 *
 * Invariants:
 * - The newest etag of each id is listed, and the list ascends. Older etags of an id may be listed too, at most as many
 *   as there are ids, plus `listSpare`.
 */
import { partitionPoint } from "../../base/partition-point.ts";

const listSpare = 1_024;

interface Change {
  readonly etag: number;
  readonly id: string;
}

export class CounterChanges {
  /** The etag up to which every change is recorded. */
  newest = 0;
  #isFollowed = false;
  #list: Change[] = [];
  readonly #etagOf = new Map<string, number>();

  get isFollowed(): boolean {
    return this.#isFollowed;
  }

  /** Changes are recorded from now on. `committedEtag`: etag of the newest write. */
  follow(committedEtag: number): void {
    this.#isFollowed = true;
    this.newest = Math.max(this.newest, committedEtag);
  }

  /** A counter of the document with this lower-cased id changed its value under `etag`. */
  note(id: string, etag: number): void {
    // A transaction may make its entries visible out of etag order.
    this.newest = Math.max(this.newest, etag);
    this.#etagOf.set(id, this.newest);
    this.#list.push({ etag: this.newest, id });
    if (this.#list.length > 2 * this.#etagOf.size + listSpare) this.#compact();
  }

  /** Called when the document no longer has counters. */
  forget(id: string): void {
    this.#etagOf.delete(id);
  }

  /** Changes with a higher etag. `note` must not be called during the iteration. */
  *since(etag: number): Generator<Change> {
    const list = this.#list;
    let from = partitionPoint(0, list.length, (at) => (list[at] as Change).etag <= etag);
    for (; from < this.#list.length; from++) {
      const change = this.#list[from] as Change;
      if (this.#etagOf.get(change.id) === change.etag) yield change;
    }
  }

  #compact(): void {
    this.#list = this.#list.filter(({ id, etag }) => this.#etagOf.get(id) === etag);
  }
}
