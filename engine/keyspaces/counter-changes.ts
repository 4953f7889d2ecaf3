/**
 * Which documents' counters were given other values, in the order in which that became visible: for indexes that map
 * counters. Knows nothing of counters that came or went: then their documents change too.
 *
 * Nothing is noted before somebody follows it, and nothing is kept over a restart: who was followed before looks at the etags of all
 * counters.
 *
 * Invariants:
 * - The newest etag of each id is listed, and the list ascends. Older etags of an id may be listed too, at most as many as
 *   there are ids, and `listSpare`.
 */
const listSpare = 1_024;

interface Change {
  readonly etag: number;
  readonly id: string;
}

export class CounterChanges {
  /** The etag up to which everything is noted. */
  newest = 0;
  #isFollowed = false;
  #list: Change[] = [];
  readonly #etagOf = new Map<string, number>();

  get isFollowed(): boolean {
    return this.#isFollowed;
  }

  /** From now on changes are noted. `committedEtag`: that of the newest write. */
  follow(committedEtag: number): void {
    this.#isFollowed = true;
    this.newest = Math.max(this.newest, committedEtag);
  }

  /** A counter of the document with this lower-cased id has another value, which was written under `etag`. */
  note(id: string, etag: number): void {
    // A transaction need not make its entries visible in the order of their etags.
    this.newest = Math.max(this.newest, etag);
    this.#etagOf.set(id, this.newest);
    this.#list.push({ etag: this.newest, id });
    if (this.#list.length > 2 * this.#etagOf.size + listSpare) this.#compact();
  }

  /** The document has no counters any more. */
  forget(id: string): void {
    this.#etagOf.delete(id);
  }

  /** Changes with a higher etag. Nothing may be noted meanwhile. */
  *since(etag: number): Generator<Change> {
    let from = 0;
    let to = this.#list.length;
    while (from < to) {
      const middle = (from + to) >>> 1;
      if ((this.#list[middle] as Change).etag > etag) to = middle;
      else from = middle + 1;
    }
    for (; from < this.#list.length; from++) {
      const change = this.#list[from] as Change;
      if (this.#etagOf.get(change.id) === change.etag) yield change;
    }
  }

  #compact(): void {
    this.#list = this.#list.filter(({ id, etag }) => this.#etagOf.get(id) === etag);
  }
}
