/**
 * Since when indexes are behind. An index knows the etag of the last change that it has seen, but not when that was; so each look
 * remembers what was there, and whether the index has it is told by the next ones.
 *
 * Invariants:
 * - The age is never more than that of the oldest change that the index has not seen, and less by at most the time between two looks.
 */

/** What is known of an index. */
export interface SeenIndex {
  readonly name: string;
  readonly isStale: boolean;
  /** Etags between the newest change and the last one that it has seen. */
  readonly etagLag: number;
}

interface Goal {
  readonly etag: number;
  readonly ms: number;
}

export class IndexLag {
  /** By database, then by index: what it had not seen at an earlier look. */
  readonly #goals = new WeakMap<object, Map<string, Goal>>();

  /** Seconds that each index is behind, in the order given; 0: it is up to date. `newestEtag`: that of the database. */
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
