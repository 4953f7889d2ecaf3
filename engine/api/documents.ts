/** The documents of one database: found by id, listed from one moment's view, stored and deleted. */
import { pauseIfDue } from "../base/scheduling/time-slices.ts";
import { collectionIdNamed, DocumentCursor } from "../queries/rows/query-rows.ts";
import { RecordReader } from "../queries/rows/record-reader.ts";
import { DocumentRow } from "../state/documents/document-row.ts";
import { allCollections } from "../state/keyspaces/document-table.ts";
import type { DatabaseView } from "../state/store/store.ts";
import type { StoredDocument } from "../writes/documents.ts";
import type { OpenDatabase } from "./database/open-database.ts";
import {
  type HugeLoad,
  isLarge,
  type LargeDocument,
  LargeDocuments,
  type MemoryReserver,
  type RecordAddress,
} from "./large-documents.ts";

/** Common state of the documents found by one database or view. */
interface Source {
  readonly database: OpenDatabase;
  readonly large: LargeDocuments;
}

/**
 * A document that was found. A document of a view can be read until the view is released; a document of
 * `Documents.find` in the same tick of the event loop, and for as long as the request is entered (`Database.enter`).
 */
export class FoundDocument {
  readonly #source: Source;
  readonly #address: RecordAddress;

  constructor(source: Source, address: RecordAddress) {
    this.#source = source;
    this.#address = address;
  }

  /** Equal for documents that are the same. */
  get key(): number {
    return this.#address.document;
  }

  /** Bytes of the stored record. */
  get storedBytes(): number {
    return this.#address.length;
  }

  /** Whether it is too large to be composed as one string. Then `open` it. */
  get isLarge(): boolean {
    return isLarge(this.#address.length);
  }

  /**
   * Reads it: synchronously if it is in memory. The row is valid until the next tick of the event loop; `copy` it to
   * keep it.
   * @throws EngineError record-damaged, read-failed
   */
  read(): DocumentRow | Promise<DocumentRow> {
    const { database } = this.#source;
    const { document, position, length } = this.#address;
    const record = database.recordAt(document, position, length);
    if (!(record instanceof Promise)) return new DocumentRow(database.state, record);
    return record.then((bytes) => new DocumentRow(database.state, bytes));
  }

  /**
   * Opens a large document, which is read in chunks. @throws EngineError record-damaged, and the errors of `reserve`
   */
  open(reserve: MemoryReserver): Promise<LargeDocument> {
    return this.#source.large.open(this.#address, reserve);
  }
}

/** Selection and order of a list of documents: the first member that is set applies. */
export interface ListedDocuments {
  /** Prefix of the ids, in id order. */
  readonly startsWith?: string | undefined;
  /** With `startsWith`: only ids after this one. */
  readonly startAfter?: string | undefined;
  /** Collection of the documents, newest first. */
  readonly collection?: string | undefined;
  /** Smallest etag of the documents, oldest first. */
  readonly fromEtag?: number | undefined;
  /** So many of them are passed over first, without reading them. */
  readonly skip?: number | undefined;
}

/**
 * Receives each document of a list; `row` is valid until it returns. @returns a promise to await; false ends the list
 */
type ListReceiver = (
  row: DocumentRow,
  found: FoundDocument,
) => Promise<unknown> | undefined | false;

const passedBatchRows = 4096;

/** Documents in the order of a cursor, a batch of numbers at a time. */
interface Cursor {
  fill(batch: Uint32Array, limit: number): number;
}

/** All documents at one moment. Release it soon: it keeps old records from compaction. */
export class DocumentsView {
  readonly #source: Source;
  readonly #view: DatabaseView;

  constructor(source: Source) {
    this.#source = source;
    this.#view = source.database.view();
  }

  /** Null if the document does not exist. */
  find(id: string): FoundDocument | null {
    const document = id === "" ? -1 : this.#view.documents.find(id);
    return document < 0 ? null : this.#found(document);
  }

  #found(document: number): FoundDocument {
    const { documents } = this.#view;
    const position = documents.positionOf(document);
    return new FoundDocument(this.#source, {
      document,
      position,
      length: documents.lengthOf(document),
    });
  }

  /** Passes the documents of a list to `receive`, in order. @throws EngineError record-damaged, read-failed */
  async list(wanted: ListedDocuments, receive: ListReceiver): Promise<void> {
    const cursor = this.#cursor(wanted);
    if (cursor === null) return;
    await this.#skip(cursor, wanted.skip ?? 0);
    const reader = new RecordReader(this.#source.database);
    const rows = new DocumentCursor(this.#view.documents, cursor, reader);
    try {
      await this.#eachOf(rows, receive);
    } finally {
      rows.end();
    }
  }

  #cursor({ startsWith, startAfter, collection, fromEtag }: ListedDocuments): Cursor | null {
    const { documents } = this.#view;
    if (startsWith !== undefined) return documents.byId(startsWith, startAfter);
    if (collection !== undefined) {
      const id = this.#source.database.state.keyspaces.collections.find(collection);
      return id < 0 ? null : documents.byEtag(id, Number.MAX_SAFE_INTEGER, true);
    }
    if (fromEtag !== undefined) return documents.byEtag(allCollections, Math.max(0, fromEtag));
    return documents.byEtag(allCollections, Number.MAX_SAFE_INTEGER, true);
  }

  async #skip(cursor: Cursor, count: number): Promise<void> {
    const { documents } = this.#view;
    const batch = new Uint32Array(Math.min(count, passedBatchRows));
    for (let left = count; left > 0; ) {
      const found = cursor.fill(batch, Math.min(left, batch.length));
      if (found === 0) return;
      for (let at = 0; at < found; at++) if (documents.etagOf(batch[at] as number) !== 0) left--;
      await pauseIfDue();
    }
  }

  async #eachOf(rows: DocumentCursor, receive: ListReceiver): Promise<void> {
    const { state } = this.#source.database;
    for (;;) {
      await pauseIfDue();
      if (!rows.next()) {
        if (rows.pending === null) return;
        await rows.pending;
        continue;
      }
      const { bytes, start, docNum } = rows.row;
      const found = this.#found(docNum);
      const record = bytes.subarray(start, start + found.storedBytes);
      const wait = receive(new DocumentRow(state, record), found);
      if (wait === false || (wait !== undefined && (await wait) === false)) return;
    }
  }

  release(): void {
    this.#view.release();
  }
}

export class Documents {
  readonly #source: Source;

  constructor(database: OpenDatabase) {
    this.#source = { database, large: new LargeDocuments(database) };
  }

  /** The last loads of huge documents, newest first. */
  get hugeLoads(): readonly HugeLoad[] {
    return this.#source.large.hugeLoads;
  }

  /** Number of documents in all collections. */
  get count(): number {
    return this.#source.database.state.documents.documentCount;
  }

  /** Returns the number of documents in a collection, whatever its letter case; 0 if it does not exist. */
  countOf(collection: string): number {
    const { state } = this.#source.database;
    return state.documents.countOfCollection(collectionIdNamed(state, collection));
  }

  /** Null if the document does not exist. */
  find(id: string): FoundDocument | null {
    const { database } = this.#source;
    const document = id === "" ? -1 : database.find(id);
    if (document < 0) return null;
    const { documents } = database.state;
    return new FoundDocument(this.#source, {
      document,
      position: documents.positionOf(document),
      length: documents.lengthOf(document),
    });
  }

  /**
   * Returns the text of a document with its `@metadata`; null if it does not exist. @throws EngineError record-damaged
   */
  text(id: string): Promise<Buffer | null> {
    return this.#source.database.getText(id);
  }

  /** Returns a view of the current documents. */
  view(): DocumentsView {
    return new DocumentsView(this.#source);
  }

  /**
   * Stores a document of JSON text, which must not change until the promise resolves. `expected`: its current change
   * vector; "" when it must not exist; undefined for no check.
   * @throws EngineError concurrency, collection-mismatch, json-…, invalid-argument
   */
  put(id: string, text: Buffer, expected?: string): Promise<StoredDocument> {
    return this.#source.database.putBytes(id, text, expected);
  }

  /** @returns false when it did not exist. @throws EngineError concurrency */
  delete(id: string, expected?: string): Promise<boolean> {
    return this.#source.database.delete(id, expected);
  }
}
