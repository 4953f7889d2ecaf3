/**
 * Tracks how long indexes have been lagging. An index knows the etag of the last change that it has processed, but not the
 * time of it, so each call records the newest etag, and later calls check whether the index has reached it.
 *
 * Invariants:
 * - The reported age never exceeds that of the oldest unprocessed change, and is lower by at most the time between two calls.
 */

/** The state of an index. */
interface SeenIndex {
  readonly name: string;
  readonly isStale: boolean;
  /** Etags between the newest change and the last processed one. */
  readonly etagLag: number;
}

interface Goal {
  readonly etag: number;
  readonly ms: number;
}

export class IndexLag {
  /** Etags that lagging indexes have to reach, by database, then by index. */
  readonly #goals = new WeakMap<object, Map<string, Goal>>();

  /** Returns the lag of each index in seconds, in the given order, 0 if current. `newestEtag` is that of the database. */
  look(
    database: object,
    indexes: readonly SeenIndex[],
    newestEtag: number,
    nowMs: number,
  ): number[] {
    const before = this.#goals.get(database);
    const goals = new Map<string, Goal>();
    this.#goals.set(database, goals);
    return indexes.map(({ name, isStale, etagLag }) => {
      if (!isStale) return 0;
      const known = before?.get(name);
      const isBehindIt = known !== undefined && newestEtag - etagLag < known.etag;
      const goal = isBehindIt ? known : { etag: newestEtag, ms: nowMs };
      goals.set(name, goal);
      return (nowMs - goal.ms) / 1000;
    });
  }
}
