/**
 * Who is told, after a write is durable. Listeners are called in the order of commits, in the turn of the event
 * loop that made them visible; they must not write, and must be quick. What happens to indexes, and that the database
 * serves no longer, is told as it happens.
 *
 * Invariants:
 * - What a listener throws reaches nobody who tells: it is reported, and the listener hears nothing more. Only those that are
 *   told of commits stay, as they have nothing to miss: they look for themselves.
 */
import type { Report } from "./environment.ts";
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
  readonly #report: Report;

  constructor(report: Report = () => undefined) {
    this.#report = report;
  }

  /** True when writers need not make `Change` objects. */
  get isIdle(): boolean {
    return this.#listeners.size === 0;
  }

  /** Does anybody follow the database itself until its end? */
  get isFollowed(): boolean {
    return this.#endListeners.size > 0;
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
    for (const change of changes) tellAll(this.#listeners, change, this.#dropped);
  }

  tellCommit(): void {
    tellAll(this.#commitListeners, undefined, this.#failed);
  }

  tellIndex(type: IndexEvent, name: string): void {
    if (this.#indexListeners.size === 0) return;
    const change: IndexChange = { kind: "index", type, name };
    tellAll(this.#indexListeners, change, this.#dropped);
  }

  tellEnd(reason: string): void {
    tellAll(new Set(this.#endListeners), reason, this.#failed);
  }

  readonly #failed = (_listener: unknown, error: unknown): void =>
    this.#report("A listener to changes failed", error);

  readonly #dropped = (listener: unknown, error: unknown): void => {
    this.#listeners.delete(listener as ChangeListener);
    this.#indexListeners.delete(listener as IndexListener);
    this.#report("A listener to changes failed, and is told nothing more", error);
  };
}

/** Tells each listener; `failed` hears of what one throws. The others hear all the same. */
export function tellAll<Event>(
  listeners: ReadonlySet<(event: Event) => void>,
  event: Event,
  failed: (listener: (event: Event) => void, error: unknown) => void,
): void {
  for (const listener of listeners) {
    try {
      listener(event);
    } catch (error) {
      failed(listener, error);
    }
  }
}
