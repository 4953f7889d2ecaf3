/**
 * Who is told, after a write is durable. Listeners are called in the order of commits, in the turn of the event
 * loop that made them visible; they must not write, and must be quick. What happens to indexes, and that the database
 * serves no longer, is told as it happens.
 */
import type { IndexEvent } from "./indexing/index-host.ts";

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

/** Something happened to an index. */
export interface IndexChange {
  readonly kind: "index";
  readonly type: IndexEvent;
  readonly name: string;
}

export type ChangeListener = (change: Change) => void;
export type IndexListener = (change: IndexChange) => void;
/** `reason`: why the database serves no longer, for people. */
export type EndListener = (reason: string) => void;

/** The listeners of one database. */
export class ChangeFeed {
  readonly #listeners = new Set<ChangeListener>();
  readonly #commitListeners = new Set<() => void>();
  readonly #indexListeners = new Set<IndexListener>();
  readonly #endListeners = new Set<EndListener>();

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

  /** Hears what happens to indexes; not part of `isIdle`, so that it costs writers nothing. */
  listenToIndexes(listener: IndexListener): () => void {
    this.#indexListeners.add(listener);
    return () => this.#indexListeners.delete(listener);
  }

  /** Is told when the database is disabled, closed or deleted; perhaps more than once. */
  listenToEnd(listener: EndListener): () => void {
    this.#endListeners.add(listener);
    return () => this.#endListeners.delete(listener);
  }

  tell(changes: readonly Change[]): void {
    for (const change of changes) for (const listener of this.#listeners) listener(change);
  }

  tellCommit(): void {
    for (const listener of this.#commitListeners) listener();
  }
  tellIndex(type: IndexEvent, name: string): void {
    if (this.#indexListeners.size === 0) return;
    const change: IndexChange = { kind: "index", type, name };
    for (const listener of this.#indexListeners) listener(change);
  }

  tellEnd(reason: string): void {
    for (const listener of [...this.#endListeners]) listener(reason);
  }
}
