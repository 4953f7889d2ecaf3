/**
 * The read interface of the document table: of its current state, or of a view at one point in time.
 *
 * Invariants:
 * - A view returns the same results from its creation to its release, regardless of writes in between.
 */
import { assert } from "../../base/assert.ts";
import type { EtagCursor } from "../../base/tree/etag-list.ts";
import type { IdHash } from "../../base/tree/id-hash.ts";
import type { IdCursor } from "../../base/tree/id-order.ts";
import { type HeldRows, RowColumns, type RowStore } from "../../base/tree/row-columns.ts";
import type { DocumentTable } from "./document-table.ts";

/** Means "of every collection" in place of a collection number. */
export const allCollections = -1;

/** The reads that a table and a view have in common. */
export interface DocumentReader {
  readonly documentCount: number;
  /** The greatest etag that any document has had. */
  readonly lastEtag: number;
  countOfCollection(collection: number): number;
  /** Returns the number of the document with this id, or -1 when there is no document. */
  find(id: string): number;
  /** 0 when there is no document, as in the following methods. Hot. */
  etagOf(docNum: number): number;
  positionOf(docNum: number): number;
  lengthOf(docNum: number): number;
  collectionOf(docNum: number): number;
  flagsOf(docNum: number): number;
  /** Returns the lower-cased id. */
  lowerIdOf(docNum: number): string;
  /** Orders two documents by their lower-cased ids' UTF-8 bytes. */
  compareIds(left: number, right: number): number;
  /**
   * Returns the documents of a collection (or `allCollections`) in etag order, from etag `from`, inclusive: ascending
   * those with etag >= from, descending those with etag <= from.
   */
  byEtag(collection: number, from: number, descending?: boolean): EtagCursor;
  /**
   * Returns the documents whose id begins with `prefix`, ascending by id; with `after`, only those after that id (which
   * no document needs to have). Sorts new ids first, see `settleOrder`.
   */
  byId(prefix: string, after?: string): IdCursor;
}

/** The committed rows at one point in time. It must not be used after `release`. */
export class DocumentView implements DocumentReader {
  readonly #table: DocumentTable;
  readonly #store: RowStore;
  readonly #hash: IdHash;
  readonly #held: HeldRows;
  #columns: RowColumns;
  #isFrozen = false;
  #isReleased = false;

  /** Created by `DocumentTable.view`. */
  constructor(table: DocumentTable, store: RowStore, hash: IdHash) {
    this.#table = table;
    this.#store = store;
    this.#hash = hash;
    this.#held = store.hold();
    this.#columns = this.#held.columns;
  }

  get documentCount(): number {
    return this.#columns.documentCount;
  }

  get lastEtag(): number {
    return this.#columns.lastEtag;
  }

  countOfCollection(collection: number): number {
    return this.#columns.countOfCollection(collection);
  }

  find(id: string): number {
    const docNum = this.#table.lookup(id);
    return docNum >= 0 && this.#columns.etagOf(docNum) !== 0 ? docNum : -1;
  }

  etagOf(docNum: number): number {
    return this.#columns.etagOf(docNum);
  }

  positionOf(docNum: number): number {
    return this.#columns.positionOf(docNum);
  }

  lengthOf(docNum: number): number {
    return this.#columns.lengthOf(docNum);
  }

  collectionOf(docNum: number): number {
    return this.#columns.collectionOf(docNum);
  }

  flagsOf(docNum: number): number {
    return this.#columns.flagsOf(docNum);
  }

  lowerIdOf(docNum: number): string {
    return this.#table.lowerIdOf(docNum);
  }

  compareIds(left: number, right: number): number {
    return this.#table.compareIds(left, right);
  }

  byEtag(collection: number, from: number, descending = false): EtagCursor {
    return this.#table.etagCursor(() => this.#readable(), collection, from, descending);
  }

  byId(prefix: string, after?: string): IdCursor {
    return this.#table.idCursor(() => this.#readable(), prefix, after);
  }

  /** Freezes the id hash until the release; returns the columns. For `DocumentTable.sections`. */
  freeze(table: DocumentTable): RowColumns {
    assert(table === this.#table, "a view belongs to its table");
    if (!this.#isFrozen) this.#hash.freeze();
    this.#isFrozen = true;
    return this.#readable();
  }

  /** Releases the memory that only this view needs. A second call does nothing. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    if (this.#isFrozen) this.#hash.thaw();
    this.#columns = noColumns; // its chunks may be reused
    this.#store.release(this.#held);
  }

  /** After the release the view's rows may be overwritten, so its cursors must not go on. */
  #readable(): RowColumns {
    assert(!this.#isReleased, "a view is not read after its release");
    return this.#columns;
  }
}

/** The columns of a released view: no documents. */
const noColumns = new RowColumns(0, [], [], new Uint32Array(0));
