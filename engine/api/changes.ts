/**
 * Events of a database: writes once they are durable, in their order, events of indexes, and the closing of the
 * database. A listener must be quick and must not write; a listener that throws is removed, and the error is reported.
 */

import { seriesTimeText } from "../state/keyspaces/time-series/time-series.ts";
import type {
  EndListener,
  IndexChange,
  IndexListener,
  CounterChange as StoredCounterChange,
  DocumentChange as StoredDocumentChange,
  TimeSeriesChange as StoredTimeSeriesChange,
} from "../state/store/changes.ts";
import type { OpenDatabase } from "./database/open-database.ts";

export type { IndexChange };

/** A document was stored or deleted. */
export type DocumentChange = Omit<StoredDocumentChange, "collectionId" | "etag"> & InCollection;

/** A counter was made, incremented or deleted; `value` is the new total. */
export type CounterChange = Omit<StoredCounterChange, "collectionId" | "etag"> &
  InCollection & { readonly changeVector: string };

/** Entries of a time series were stored or deleted, in a range of times (ISO, UTC, inclusive); null: open. */
export type TimeSeriesChange = Omit<
  StoredTimeSeriesChange,
  "collectionId" | "etag" | "from" | "to"
> &
  InCollection & {
    readonly changeVector: string;
    readonly from: string | null;
    readonly to: string | null;
  };

interface InCollection {
  /** Of the document. */
  readonly collection: string;
}

export type Change = DocumentChange | CounterChange | TimeSeriesChange;

export class Changes {
  readonly #database: OpenDatabase;

  constructor(database: OpenDatabase) {
    this.#database = database;
  }

  /** Listens to writes. @returns a function that removes the listener */
  listen(listener: (change: Change) => void): () => void {
    return this.#database.feed.listen((change) => listener(this.#plain(change)));
  }

  /** Listens to events of indexes, as they happen. @returns as `listen` */
  listenToIndexes(listener: IndexListener): () => void {
    return this.#database.feed.listenToIndexes(listener);
  }

  /**
   * Calls `listener` with a reason when the database is disabled, closed or deleted; perhaps more than once. While a
   * listener is registered, the database is not closed as idle. @returns as `listen`
   */
  listenToEnd(listener: EndListener): () => void {
    return this.#database.feed.listenToEnd(listener);
  }

  #plain(change: StoredDocumentChange | StoredCounterChange | StoredTimeSeriesChange): Change {
    const { state } = this.#database;
    const collection = state.keyspaces.collections.nameOf(change.collectionId);
    if (change.kind === "document") {
      const { kind, type, id, changeVector } = change;
      return { kind, type, id, changeVector, collection };
    }
    const changeVector = state.changeVectorAt(change.etag);
    const { documentId, name } = change;
    if (change.kind === "counter") {
      const { kind, type, value } = change;
      return { kind, type, documentId, name, value, changeVector, collection };
    }
    const { kind, type } = change;
    const from = timeText(change.from);
    const to = timeText(change.to);
    return { kind, type, documentId, name, from, to, changeVector, collection };
  }
}

function timeText(ms: number | null): string | null {
  return ms === null ? null : seriesTimeText(ms);
}
