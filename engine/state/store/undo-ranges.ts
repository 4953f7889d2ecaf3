/**
 * The writes of operations that can be undone: ranges of etags.
 *
 *   values["undo/<operation>/<first etag>"]   the last etag of the range
 *
 * Invariants:
 * - A range is written in the transactions whose etags are in it, so that it is durable exactly when they are.
 */
import { numberKey, numberOfKey } from "../keyspaces/entry-keyspace.ts";
import type { DatabaseState } from "./database-state.ts";
import type { Transaction } from "./transaction.ts";

const prefix = "undo/";

function prefixOf(operation: number): string {
  return `${prefix}${operation}/`;
}

/** The ranges of an operation while it runs. */
export class UndoRanges {
  readonly #prefix: string;
  #first = 0;
  #last = 0;

  constructor(operation: number) {
    this.#prefix = prefixOf(operation);
  }

  /** Adds the etags after `etag` to the transaction's. */
  add(transaction: Transaction, etag: number): void {
    const { lastEtag } = transaction.state;
    if (lastEtag === etag) return;
    if (etag !== this.#last) this.#first = etag + 1;
    this.#last = lastEtag;
    const { values } = transaction.keyspaces;
    transaction.putEntry(values, this.#prefix + numberKey(this.#first), lastEtag);
  }
}

/** The etags that an operation has written: pairs of first and last, ascending. */
export class WrittenEtags {
  readonly #firsts: number[] = [];
  readonly #lasts: number[] = [];

  constructor(state: DatabaseState, operation: number) {
    for (const [key, last] of state.keyspaces.values.withPrefix(prefixOf(operation))) {
      this.#firsts.push(numberOfKey(key));
      this.#lasts.push(last as number);
    }
  }

  /** The smallest of them; infinite if the list is empty. */
  get first(): number {
    return this.#firsts[0] ?? Number.POSITIVE_INFINITY;
  }

  *ranges(): Generator<readonly [first: number, last: number]> {
    for (let at = 0; at < this.#firsts.length; at++)
      yield [this.#firsts[at] as number, this.#lasts[at] as number]; // both are as long
  }

  has(etag: number): boolean {
    let low = 0;
    let high = this.#firsts.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#firsts[middle] as number) <= etag) low = middle + 1;
      else high = middle;
    }
    return low > 0 && etag <= (this.#lasts[low - 1] as number);
  }
}

/** Operations whose etags are known, oldest first. */
export function operationsWithRanges({ keyspaces }: DatabaseState): number[] {
  const found = new Set<number>();
  for (const [key] of keyspaces.values.withPrefix(prefix)) found.add(Number(key.split("/")[1]));
  return [...found].sort((one, other) => one - other);
}

/** Forgets the ranges of an operation. */
export function dropRanges(transaction: Transaction, operation: number): void {
  const { values } = transaction.keyspaces;
  for (const [key] of transaction.entriesWithPrefix(values, prefixOf(operation))) {
    transaction.putEntry(values, key, undefined);
  }
}
