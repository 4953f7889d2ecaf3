/**
 * Notification of listeners after a write is durable. Listeners are called in commit order, in the tick of the event
 * loop that made the changes visible; they must not write, and must be quick. Index events and the end of the database
 * are reported as they happen.
 *
 * Invariants:
 * - An exception from a listener never reaches the notifier: it is reported, and a listener of changes or index events
 *   is removed. Commit listeners stay, because they miss nothing: they read the state themselves. So do end listeners.
 */
import type { Report } from "../../base/environment.ts";

/** Documents that one transaction has written again, with other values in some of their top-level fields and no other change. */
export interface FieldChange {
  /** The names of these fields, in the index's spelling. */
  readonly fields: readonly string[];
  /** These are all documents that have etags from `from` to `to`. */
  readonly from: number;
  readonly to: number;
  /** Greatest etag among the previous versions of the changed documents. */
  readonly previousMax: number;
}

/** Index events, as named by the HTTP interface. */
export type IndexEvent =
  | "IndexAdded"
  | "IndexRemoved"
  | "BatchCompleted"
  | "SideBySideReplace"
  | "IndexPaused"
  | "IndexDemotedToDisabled"
  | "IndexMarkedAsErrored"
  | "LockModeChanged"
  | "PriorityChanged";

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

/** An event of an index. */
export interface IndexChange {
  readonly kind: "index";
  readonly type: IndexEvent;
  readonly name: string;
}

type ChangeListener = (change: Change) => void;
export type IndexListener = (change: IndexChange) => void;
/** `reason`: why the database no longer serves, in words for people. */
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

  /** Whether any listener for the closing of the database is registered. */
  get isFollowed(): boolean {
    return this.#endListeners.size > 0;
  }

  /** @returns a function that removes the listener. */
  listen(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** As `listen`, but only notified that something became visible, once per group of commits. */
  listenToCommits(listener: () => void): () => void {
    this.#commitListeners.add(listener);
    return () => this.#commitListeners.delete(listener);
  }

  /** Listens to index events; not part of `isIdle`, so that it costs writers nothing. */
  listenToIndexes(listener: IndexListener): () => void {
    this.#indexListeners.add(listener);
    return () => this.#indexListeners.delete(listener);
  }

  /** Called when the database is disabled, closed or deleted; perhaps more than once. */
  listenToEnd(listener: EndListener): () => void {
    this.#endListeners.add(listener);
    return () => this.#endListeners.delete(listener);
  }

  notify(changes: readonly Change[]): void {
    for (const change of changes) notifyAll(this.#listeners, change, this.#dropped);
  }

  notifyCommit(): void {
    notifyAll(this.#commitListeners, undefined, this.#failed);
  }

  notifyIndex(type: IndexEvent, name: string): void {
    if (this.#indexListeners.size === 0) return;
    const change: IndexChange = { kind: "index", type, name };
    notifyAll(this.#indexListeners, change, this.#dropped);
  }

  notifyClosed(reason: string): void {
    notifyAll(new Set(this.#endListeners), reason, this.#failed);
  }

  readonly #failed = (_listener: unknown, error: unknown): void =>
    this.#report("A listener to changes failed", error);

  readonly #dropped = (listener: unknown, error: unknown): void => {
    this.#listeners.delete(listener as ChangeListener);
    this.#indexListeners.delete(listener as IndexListener);
    this.#report("A listener to changes failed and was removed", error);
  };
}

/** Notifies each listener. An exception is passed to `failed`, and the other listeners are still notified. */
export function notifyAll<Event>(
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
