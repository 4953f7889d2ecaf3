/**
 * Who is told, after a write is durable. Listeners are called in the order of commits, in the turn of the event
 * loop that made them visible; they must not write, and must be quick.
 */

/** A document was stored or deleted. */
export interface DocumentChange {
  readonly kind: "document";
  readonly type: "Put" | "Delete";
  readonly id: string;
  readonly collectionId: number;
  readonly etag: number;
  readonly changeVector: string;
}

/** A counter was made, incremented or deleted; `value` is the new total. */
export interface CounterChange {
  readonly kind: "counter";
  readonly type: "Put" | "Increment" | "Delete";
  readonly documentId: string;
  readonly name: string;
  readonly value: bigint;
  readonly etag: number;
  readonly collectionId: number;
}

/** Entries of a time series were stored or deleted. Times are milliseconds since 1970, inclusive; null: open. */
export interface TimeSeriesChange {
  readonly kind: "time-series";
  readonly type: "Put" | "Delete";
  readonly documentId: string;
  readonly name: string;
  readonly from: number | null;
  readonly to: number | null;
  readonly etag: number;
  readonly collectionId: number;
}

export type Change = DocumentChange | CounterChange | TimeSeriesChange;

export type ChangeListener = (change: Change) => void;

/** The listeners of one database. */
export class ChangeFeed {
  readonly #listeners = new Set<ChangeListener>();
  readonly #commitListeners = new Set<() => void>();

  /** True when writers need not make `Change` objects. */
  get isIdle(): boolean {
    return this.#listeners.size === 0;
  }

  /** @returns a function that ends it. */
  listen(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** As `listen`, but only told that something became visible, once for each group of commits. */
  listenToCommits(listener: () => void): () => void {
    this.#commitListeners.add(listener);
    return () => this.#commitListeners.delete(listener);
  }

  tell(changes: readonly Change[]): void {
    for (const change of changes) for (const listener of this.#listeners) listener(change);
  }

  tellCommit(): void {
    for (const listener of this.#commitListeners) listener();
  }
}
