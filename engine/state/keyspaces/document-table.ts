/**
 * The rows of all documents of one database, packed in typed arrays: no object or string per document, nothing for the
 * garbage collector to trace.
 *
 * A document is identified by its number, `docNum`: dense from 0, assigned when its id is first seen, and recycled for
 * another id when it is no longer referenced (document-numbers.ts). The parts are in engine/base/tree/: ids (id-slab,
 * id-hash, id-order), rows (row-columns, staged-rows) and the lists in etag order (etag-list). The table knows nothing
 * of the content of records.
 *
 * Ids are compared case-insensitively, and only the lower-cased text is kept.
 *
 * Invariants:
 * - Readers see committed rows; staged ones wait, in order, until they are committed or discarded.
 * - A view returns the rows of the moment when it was created.
 * - The others are in `checkInvariants`.
 */

import { assert } from "../../base/assert.ts";
import { lowerCased } from "../../base/case-folding.ts";
import { EngineError } from "../../base/errors.ts";
import { collectionCountMax, nameBytesMax } from "../../base/limits.ts";
import { EtagCursor, EtagList } from "../../base/tree/etag-list.ts";
import { IdHash } from "../../base/tree/id-hash.ts";
import { IdKey } from "../../base/tree/id-key.ts";
import { IdCursor, IdOrder } from "../../base/tree/id-order.ts";
import { hasAmbiguousIds, IdSlab } from "../../base/tree/id-slab.ts";
import {
  type RowColumns,
  type RowListener,
  RowStore,
  rowParts,
} from "../../base/tree/row-columns.ts";
import { ByteReader, bytesOf } from "../../base/tree/sections.ts";
import {
  type PackedRows,
  packedRow,
  StagedRows,
  stagedWordAt,
  stagedWords,
} from "../../base/tree/staged-rows.ts";
import type { WholeSection } from "../../storage/log/log.ts";
import { DocumentNumbers, type NumberHold, type NumberState } from "./document-numbers.ts";
import { allCollections, type DocumentReader, DocumentView } from "./document-view.ts";

export type { NumberHold } from "./document-numbers.ts";
export { allCollections, type DocumentReader, DocumentView } from "./document-view.ts";

const sectionVersion = 4;
/** In version 3 ids were lower-cased by `toLowerCase`. */
const lowerCaseSectionVersion = 3;
/** Version 2 had no free numbers either: every number in the slab had an id. */
const oldSectionVersion = 2;
/** Numbers examined per step of sorting ids. */
const numbersPerOrderStep = 64;

/** The etags that a run of rows has replaced, for all tables: they are used within one call. */
let previousEtags = new Float64Array(0);

/** Sizes of chunks, all powers of two; tests make them tiny. */
export interface DocumentTableOptions {
  readonly rowsPerChunk?: number;
  /** For the columns that no view shares. */
  readonly numbersPerChunk?: number;
  readonly slabChunkBytes?: number;
  readonly hashPageSlots?: number;
  readonly listChunkEntries?: number;
  readonly orderLeafEntries?: number;
  readonly stagedPerChunk?: number;
  /** 32 random bits, so that clients cannot predict which ids collide. */
  readonly hashSeed?: number;
  /** A monotonic clock, in milliseconds. */
  readonly monotonicMs?: () => number;
}

export class DocumentTable implements DocumentReader {
  readonly #options: Required<DocumentTableOptions>;
  #key: IdKey;
  readonly #slab: IdSlab;
  readonly #hash: IdHash;
  readonly #order: IdOrder;
  readonly #rows: RowStore;
  readonly #staged: StagedRows;
  readonly #all: EtagList;
  /** The list of each collection, created with its first document. */
  readonly #lists: (EtagList | undefined)[] = [];
  readonly #numbers: DocumentNumbers;
  /** Numbers assigned since `beginInterning`; null: not recorded. */
  #interned: number[] | null = null;
  /**
   * Returns whether the number is referenced outside this table. The owner of such references calls `markUnused` when
   * they end.
   */
  isNeeded: (docNum: number) => boolean = () => false;

  constructor(options: DocumentTableOptions = {}) {
    this.#options = {
      rowsPerChunk: 4096,
      numbersPerChunk: 32 * 1024,
      slabChunkBytes: 256 * 1024,
      hashPageSlots: 8192,
      listChunkEntries: 4096,
      orderLeafEntries: 1024,
      stagedPerChunk: 4096,
      hashSeed: 0x811c9dc5,
      monotonicMs: () => performance.now(),
      ...options,
    };
    const { rowsPerChunk, numbersPerChunk, slabChunkBytes, orderLeafEntries } = this.#options;
    this.#key = new IdKey(this.#options.hashSeed);
    this.#slab = new IdSlab(slabChunkBytes, numbersPerChunk);
    this.#hash = new IdHash(this.#slab, this.#options.hashPageSlots);
    this.#order = new IdOrder(this.#slab, orderLeafEntries, numbersPerChunk);
    this.#rows = new RowStore(rowsPerChunk);
    this.#staged = new StagedRows(this.#options.stagedPerChunk, numbersPerChunk);
    this.#all = new EtagList(this.#options.listChunkEntries);
    const numbersOf = {
      stateOf: (docNum: number) => this.#stateOf(docNum),
      forget: (docNum: number) => this.#forget(docNum),
    };
    const hash = this.#hash;
    this.#numbers = new DocumentNumbers(
      {
        ...numbersOf,
        get mayForget() {
          return !hash.isFrozen;
        },
      },
      numbersPerChunk,
    );
  }

  // Ids

  /** All document numbers are below it, including those whose ids are forgotten. */
  get docCount(): number {
    return this.#slab.count;
  }

  /** Number of known ids, including ids of deleted documents that are not forgotten yet. */
  get idCount(): number {
    return this.#slab.idCount;
  }

  /**
   * Returns the number of the document with this id; a new one, with an empty row, when the id is new.
   * @throws EngineError invalid-argument when it is not a valid id: too long, or with half a surrogate pair.
   */
  intern(id: string): number {
    return this.#internKey(this.#key.set(id));
  }

  /** `intern` for UTF-8 bytes `bytes[start, end)`. */
  internBytes(bytes: Buffer, start: number, end: number): number {
    return this.#internKey(this.#key.setBytes(bytes, start, end));
  }

  /** Returns the number of an id, or -1 when it was never interned, or is forgotten. */
  lookup(id: string): number {
    return this.#key.set(id) ? this.#lookupKey() : -1;
  }

  /** `lookup` for UTF-8 bytes `bytes[start, end)`. */
  lookupBytes(bytes: Buffer, start: number, end: number): number {
    return this.#key.setBytes(bytes, start, end) ? this.#lookupKey() : -1;
  }

  #lookupKey(): number {
    const docNum = this.#hash.find(this.#key);
    if (docNum >= 0) this.#numbers.wanted(docNum);
    return docNum;
  }

  find(id: string): number {
    return this.#key.set(id) ? this.#findKey() : -1;
  }

  /** Hot: the row is read before the ids are compared, so that the two cache misses overlap. */
  #findKey(): number {
    const candidate = this.#hash.candidate(this.#key);
    if (candidate < 0) return -1;
    const etag = this.etagOf(candidate);
    if (this.#hash.isCandidate(this.#key)) return etag === 0 ? -1 : candidate;
    const docNum = this.#hash.find(this.#key);
    return docNum >= 0 && this.etagOf(docNum) !== 0 ? docNum : -1;
  }

  lowerIdOf(docNum: number): string {
    return this.#slab.textOf(docNum);
  }

  compareIds(left: number, right: number): number {
    return this.#slab.compare(left, right);
  }

  #internKey(isId: boolean): number {
    if (!isId) {
      throw new EngineError(
        "invalid-argument",
        `A document id is well-formed text of at most ${nameBytesMax} bytes`,
      );
    }
    const found = this.#lookupKey();
    if (found >= 0) return found;
    const { free } = this.#numbers;
    const docNum = free.count === 0 ? this.#slab.count : free.takeLowest();
    const place = this.#slab.add(this.#key.bytes, this.#key.length, docNum);
    this.#hash.insert(this.#key.hash, place, docNum);
    this.#interned?.push(docNum);
    return docNum;
  }

  // Recycling of numbers

  /** From now on new ids are recorded until `endInterning`. */
  beginInterning(): void {
    if (this.#interned === null) this.#interned = [];
    else this.#interned.length = 0;
  }

  /** `isKept` false: the transaction that interned them failed. */
  endInterning(isKept: boolean): void {
    const interned = this.#interned;
    this.#interned = null;
    if (isKept || interned === null || interned.length === 0) return;
    for (const docNum of interned) this.#numbers.note(docNum);
    this.reclaim(2 * interned.length + numbersPerOrderStep);
  }

  /** One use of the number has ended. It may be -1, and there may be other uses. */
  markUnused(docNum: number): void {
    if (docNum >= 0 && this.etagOf(docNum) === 0) this.#numbers.note(docNum);
  }

  /**
   * For readers that hold numbers over several ticks of the event loop: until the release, the number of a deleted
   * document is not assigned to another id. Not needed for the documents in a view.
   */
  hold(): NumberHold {
    return this.#numbers.hold();
  }

  /** Numbers of deleted documents that are not free yet, as far as is known. */
  get pendingNumberCount(): number {
    return this.#numbers.pendingCount;
  }

  /** Examines some of the numbers that may have become free. Cost: O(steps), and some moves of ids. */
  reclaim(steps: number): void {
    if (this.#numbers.pendingCount === 0) return;
    let left = Math.ceil(steps / numbersPerOrderStep);
    this.#order.settle(this.#rows, () => --left > 0);
    this.#numbers.reclaim(steps);
    if (!this.#hash.isFrozen && this.#slab.isSparse) this.#slab.condense(this.#moved);
  }

  /** An id was moved in the slab. */
  readonly #moved = (chunk: Buffer, start: number, end: number, from: number, to: number) => {
    this.#key.setBytes(chunk, start, end);
    return this.#hash.move(this.#key.hash, from, to);
  };

  #stateOf(docNum: number): NumberState {
    if (!this.#slab.hasNumber(docNum) || this.etagOf(docNum) !== 0) return "needed";
    if (this.#staged.newestOf(docNum) >= 0 || this.#order.has(docNum)) return "seen";
    if (this.isNeeded(docNum)) return "needed";
    return this.#rows.isDocumentSeen(docNum) ? "seen" : "unused";
  }

  #forget(docNum: number): void {
    this.#key.set(this.#slab.textOf(docNum));
    this.#hash.remove(this.#key.hash, this.#slab.placeOf(docNum));
    this.#slab.remove(docNum);
    this.#numbers.free.add(docNum);
    this.#trim(docNum);
  }

  /** Releases the memory of a chunk of numbers if all of them are free; at the end of the table, the numbers too. */
  #trim(docNum: number): void {
    const { free } = this.#numbers;
    const { numbersPerChunk } = this.#options;
    const from = docNum - (docNum % numbersPerChunk);
    const to = Math.min(from + numbersPerChunk, this.#slab.count);
    if (free.countAround(docNum) < to - from) return;
    this.#staged.dropNumbers(docNum);
    this.#slab.dropPlaces(docNum);
    if (to < this.#slab.count) {
      this.#rows.dropRows(from, to);
      return;
    }
    for (let number = from; number < to; number++) free.delete(number);
    this.#slab.truncate(from);
    this.#rows.truncate(from);
    if (from > 0) this.#trim(from - 1);
  }

  // Committed rows

  get documentCount(): number {
    return this.#rows.columns.documentCount;
  }

  get lastEtag(): number {
    return this.#rows.columns.lastEtag;
  }

  countOfCollection(collection: number): number {
    return this.#rows.columns.countOfCollection(collection);
  }

  /**
   * Returns the document whose committed row has, or recently had, this etag; -1 if no such document is known. With it
   * `hasPosition` and `relocate` need not look up an id, which is ten times slower for neighboring records.
   */
  numberAtEtag(etag: number): number {
    return this.#all.documentOf(etag);
  }

  /**
   * Returns an upper bound for the etags of the collection's documents (or all, for `allCollections`), which some
   * document of it has or had; 0 when it never had one. Cost: O(1).
   */
  newestEtagOf(collection: number): number {
    const list = collection === allCollections ? this.#all : this.#lists[collection];
    return list === undefined ? 0 : list.newestEtag;
  }

  etagOf(docNum: number): number {
    return this.#rows.columns.etagOf(docNum);
  }

  positionOf(docNum: number): number {
    return this.#rows.columns.positionOf(docNum);
  }

  lengthOf(docNum: number): number {
    return this.#rows.columns.lengthOf(docNum);
  }

  collectionOf(docNum: number): number {
    return this.#rows.columns.collectionOf(docNum);
  }

  flagsOf(docNum: number): number {
    return this.#rows.columns.flagsOf(docNum);
  }

  // Staged rows

  get stagedCount(): number {
    return this.#staged.count;
  }

  /**
   * Stages a row for the document. `length` 0 deletes it.
   * @param collection, flags - 16 bits each.
   */
  stage(
    docNum: number,
    etag: number,
    position: number,
    length: number,
    collection: number,
    flags: number,
  ): void {
    assert(docNum < this.#slab.count, "a staged document has an id");
    assert(etag > 0 && collection <= collectionCountMax, "a staged row has an etag and collection");
    this.#staged.push(docNum, etag, position, length, ((collection << 16) | flags) >>> 0);
  }

  /** As `stage` for the rows of a transaction whose records begin at position `base`. Hot. */
  stageAll(rows: PackedRows, base: number): void {
    const { count, words, etags } = rows;
    for (let row = 0; row < count; row++) {
      const docNum = words[row * packedRow.words + packedRow.docNum] as number; // row < count
      assert(docNum < this.#slab.count, "a staged document has an id");
      assert((etags[row] as number) > 0, "a staged row has an etag");
    }
    this.#staged.pushAll(rows, base);
  }

  /** Returns the etag after all staged rows are committed; 0: no document, as in the following methods. */
  newestEtag(docNum: number): number {
    const slot = this.#staged.newestOf(docNum);
    if (slot < 0) return this.etagOf(docNum);
    return this.#staged.lengthOf(slot) === 0 ? 0 : this.#staged.etagOf(slot);
  }

  newestPosition(docNum: number): number {
    const slot = this.#staged.newestOf(docNum);
    if (slot < 0) return this.positionOf(docNum);
    return this.#staged.lengthOf(slot) === 0 ? 0 : this.#staged.positionOf(slot);
  }

  newestLength(docNum: number): number {
    const slot = this.#staged.newestOf(docNum);
    return slot < 0 ? this.lengthOf(docNum) : this.#staged.lengthOf(slot);
  }

  newestCollection(docNum: number): number {
    const slot = this.#staged.newestOf(docNum);
    if (slot < 0) return this.collectionOf(docNum);
    return this.#staged.lengthOf(slot) === 0 ? 0 : this.#staged.wordOf(slot) >>> 16;
  }

  newestFlags(docNum: number): number {
    const slot = this.#staged.newestOf(docNum);
    if (slot < 0) return this.flagsOf(docNum);
    return this.#staged.lengthOf(slot) === 0 ? 0 : this.#staged.wordOf(slot) & 0xffff;
  }

  /**
   * Returns the documents whose id begins with `prefix` and that `isThere`, committed or staged, in no order. Cost:
   * O(documents under the prefix + staged rows).
   * @param most once there are more, it gathers no more.
   */
  newestWithPrefix(
    prefix: string,
    most: number,
    isThere: (document: number) => boolean,
  ): Set<number> {
    const lowerPrefix = lowerCased(prefix);
    const found = new Set<number>();
    const cursor = this.byId(prefix);
    const batch = new Uint32Array(256);
    for (let count = batch.length; count === batch.length; ) {
      count = cursor.fill(batch, batch.length);
      for (const docNum of batch.subarray(0, count)) if (isThere(docNum)) found.add(docNum);
      if (found.size > most) return found;
    }
    for (const docNum of this.#staged.docNums()) {
      if (this.lowerIdOf(docNum).startsWith(lowerPrefix) && isThere(docNum)) found.add(docNum);
    }
    return found;
  }

  /** Commits the `count` oldest staged rows in order. Hot. */
  commitStaged(count: number, listener?: RowListener): void {
    const staged = this.#staged;
    assert(count <= staged.count, "only what is staged is committed");
    for (let left = count; left > 0; ) {
      const replaced = this.#replaceRun(left, listener);
      left -= replaced;
      if (replaced > 0) continue;
      const slot = staged.oldest();
      const docNum = staged.docNumOf(slot);
      if (listener !== undefined) this.#notify(docNum, listener);
      const etag = staged.etagOf(slot);
      const position = staged.positionOf(slot);
      const length = staged.lengthOf(slot);
      const word = staged.wordOf(slot);
      staged.shift(1);
      this.#commit(docNum, etag, position, length, word);
      left--;
    }
  }

  /**
   * Commits the oldest staged rows, at most `most`, for as long as they replace rows within one collection.
   * @returns how many. Hot.
   */
  #replaceRun(most: number, listener: RowListener | undefined): number {
    const staged = this.#staged;
    const rows = this.#rows;
    const run = staged.head(most);
    if (previousEtags.length < run.to - run.from) {
      previousEtags = new Float64Array(this.#options.stagedPerChunk);
    }
    const count = rows.replaceRun(run, previousEtags, listener);
    if (count === 0) return 0;
    const collection = (run.words[run.from * stagedWords + stagedWordAt] as number) >>> 16;
    run.to = run.from + count;
    this.#listOf(collection).replaceRun(run, previousEtags, rows);
    this.#all.replaceRun(run, previousEtags, rows);
    staged.shift(count);
    return count;
  }

  /** Drops the `count` newest staged rows, as if they had never been staged. */
  discardStaged(count: number): void {
    assert(count <= this.#staged.count, "only what is staged is discarded");
    for (let left = count; left > 0; left--) this.markUnused(this.#staged.pop());
  }

  /**
   * Commits a row directly, for replay; `length` 0 deletes the document.
   * @returns false if the document already has a newer row: nothing is changed then.
   */
  applyCommitted(
    docNum: number,
    etag: number,
    position: number,
    length: number,
    collection: number,
    flags: number,
    listener?: RowListener,
  ): boolean {
    assert(docNum < this.#slab.count, "a replayed document has an id");
    assert(
      etag > 0 && collection <= collectionCountMax,
      "a replayed row has an etag and collection",
    );
    if (etag < this.etagOf(docNum)) return false;
    if (listener !== undefined) this.#notify(docNum, listener);
    this.#commit(docNum, etag, position, length, ((collection << 16) | flags) >>> 0);
    return true;
  }

  /**
   * The record of this document and etag has moved to `position`.
   * @returns false when neither the committed row nor a staged one has this etag.
   */
  relocate(docNum: number, etag: number, position: number): boolean {
    if (this.etagOf(docNum) === etag) {
      this.#rows.setPosition(docNum, position);
      return true;
    }
    let slot = this.#staged.newestOf(docNum);
    while (slot >= 0 && this.#staged.etagOf(slot) !== etag) slot = this.#staged.previousOf(slot);
    if (slot < 0) return false;
    this.#staged.setPosition(slot, position);
    return true;
  }

  /** Returns whether the record of the committed row or of a staged row of this document is at `position`. */
  hasPosition(docNum: number, position: number): boolean {
    if (this.etagOf(docNum) !== 0 && this.positionOf(docNum) === position) return true;
    let slot = this.#staged.newestOf(docNum);
    while (slot >= 0 && this.#staged.positionOf(slot) !== position) {
      slot = this.#staged.previousOf(slot);
    }
    return slot >= 0;
  }

  #notify(docNum: number, listener: RowListener): void {
    const columns = this.#rows.columns;
    listener(
      docNum,
      columns.etagOf(docNum),
      columns.positionOf(docNum),
      columns.lengthOf(docNum),
      columns.collectionOf(docNum),
    );
  }

  /** Replaces a row and keeps counts, lists and order in step. Hot. */
  #commit(docNum: number, etag: number, position: number, length: number, word: number): void {
    const rows = this.#rows;
    const previousEtag = rows.columns.etagOf(docNum);
    const previous = rows.columns.collectionOf(docNum);
    if (length === 0) {
      if (previousEtag === 0) return;
      rows.set(docNum, 0, 0, 0, 0);
    } else rows.set(docNum, etag, position, length, word);
    if (previousEtag === etag && length !== 0 && previous === word >>> 16) return; // only the record moved
    if (previousEtag !== 0) {
      rows.count(previous, -1);
      const list = this.#listOf(previous);
      list.remove(previousEtag);
      this.#all.remove(previousEtag);
      if (length === 0) {
        list.sweep(rows);
        this.#all.sweep(rows);
        return;
      }
    }
    const collection = word >>> 16;
    rows.count(collection, 1);
    rows.noteEtag(etag);
    const list = this.#listOf(collection);
    list.add(docNum, etag);
    list.sweep(rows);
    this.#all.add(docNum, etag);
    this.#all.sweep(rows);
    if (previousEtag === 0) this.#order.add(docNum);
  }

  #listOf(collection: number): EtagList {
    let list = this.#lists[collection];
    if (list === undefined) {
      list = new EtagList(this.#options.listChunkEntries);
      while (this.#lists.length < collection) this.#lists.push(undefined);
      this.#lists[collection] = list;
    }
    return list;
  }

  // Orders

  byEtag(collection: number, from: number, descending = false): EtagCursor {
    return this.etagCursor(() => this.#rows.columns, collection, from, descending);
  }

  byId(prefix: string, after?: string): IdCursor {
    return this.idCursor(() => this.#rows.columns, prefix, after);
  }

  /** For views: a cursor over the rows in `rows`. */
  etagCursor(
    rows: () => RowColumns,
    collection: number,
    from: number,
    descending: boolean,
  ): EtagCursor {
    const list = collection === allCollections ? this.#all : this.#lists[collection];
    return new EtagCursor(list, rows, from, descending);
  }

  /** For views: a cursor over the rows in `rows`. */
  idCursor(rows: () => RowColumns, prefix: string, after: string | undefined): IdCursor {
    this.#order.settlePending(this.#rows);
    const afterBytes = after === undefined ? undefined : Buffer.from(lowerCased(after));
    return new IdCursor(this.#order, rows, Buffer.from(lowerCased(prefix)), afterBytes);
  }

  /**
   * Sorts new documents into the order by id, for about `budgetMs`. Before a read by id of a large database, call it
   * until it returns true, yielding to the event loop between the calls; the read sorts the rest in one call.
   * @returns whether all documents are sorted.
   */
  settleOrder(budgetMs: number): boolean {
    const end = this.#options.monotonicMs() + budgetMs;
    return this.#order.settle(this.#rows, () => this.#options.monotonicMs() < end);
  }

  // Views and snapshots

  /** Returns an immutable view of the committed rows. Cost: microseconds. Release it. */
  view(): DocumentView {
    return new DocumentView(this, this.#rows, this.#hash);
  }

  /** Returns the bytes of a view for a snapshot on disk; valid until the view is released. Cost: O(chunks). */
  sections(view: DocumentView): WholeSection[] {
    assert(isLittleEndian, "snapshots are little-endian");
    const columns = view.freeze(this);
    const lists: Uint8Array[] = this.#all.parts(columns.lastEtag);
    for (const list of this.#lists) {
      lists.push(bytesOf(Uint32Array.of(list === undefined ? 0 : 1)));
      if (list !== undefined) lists.push(...list.parts(columns.lastEtag));
    }
    const head = Int32Array.of(sectionVersion, this.#key.seed, this.#lists.length);
    return [
      { name: "documents.head", parts: [bytesOf(head)] },
      { name: "documents.ids", parts: this.#slab.parts() },
      { name: "documents.hash", parts: this.#hash.parts() },
      { name: "documents.rows", parts: rowParts(columns) },
      { name: "documents.lists", parts: lists },
      { name: "documents.order", parts: this.#order.parts() },
    ];
  }

  /**
   * Fills this table, in which nothing was interned yet, from the sections of a snapshot.
   * @throws EngineError database-damaged when they are inconsistent; the table is then unusable.
   */
  restore(sections: readonly WholeSection[]): void {
    assert(this.#slab.count === 0, "only an empty table is restored");
    const head = readerOf(sections, "documents.head");
    const version = head.uint32();
    head.expect(version <= sectionVersion && version >= oldSectionVersion, "version");
    this.#key = new IdKey(head.uint32());
    const listCount = head.uint32();
    head.expect(listCount <= collectionCountMax + 1, "number of lists");
    const ids = readerOf(sections, "documents.ids");
    this.#slab.restore(ids, version === oldSectionVersion);
    const hash = readerOf(sections, "documents.hash");
    this.#hash.restore(hash);
    hash.expect(this.#hash.count === this.#slab.idCount, "number of ids");
    const rows = readerOf(sections, "documents.rows");
    this.#rows.restore(rows);
    const lists = readerOf(sections, "documents.lists");
    this.#all.restore(lists, this.documentCount);
    for (let collection = 0; collection < listCount; collection++) {
      if (lists.uint32() === 0) this.#lists.push(undefined);
      else this.#listOf(collection).restore(lists, this.countOfCollection(collection));
    }
    const order = readerOf(sections, "documents.order");
    this.#order.restore(order);
    for (const reader of [head, ids, hash, rows, lists, order]) reader.end();
    for (let docNum = 0; docNum < this.#slab.count; docNum++) {
      if (!this.#slab.hasNumber(docNum)) {
        rows.expect(this.etagOf(docNum) === 0, "rows without an id");
        this.#numbers.free.add(docNum);
      } else if (this.etagOf(docNum) === 0) this.#numbers.note(docNum);
    }
  }

  // Checks

  /** Returns the bytes of all arrays, including those held only by views. */
  memoryBytes(): number {
    let bytes = this.#slab.memoryBytes() + this.#hash.memoryBytes() + this.#rows.memoryBytes();
    bytes += this.#staged.memoryBytes() + this.#order.memoryBytes() + this.#all.memoryBytes();
    for (const list of this.#lists) bytes += list?.memoryBytes() ?? 0;
    return bytes + this.#numbers.memoryBytes();
  }

  /** @throws InvariantError when the parts do not agree. Cost: O(documents), for tests and checks. */
  checkInvariants(): void {
    const count = this.#slab.count;
    this.#slab.checkInvariants();
    this.#hash.checkInvariants();
    this.#numbers.checkInvariants();
    assert(this.#hash.count === this.#slab.idCount, "every id is in the table");
    for (let docNum = 0; docNum < count; docNum++) {
      const { free } = this.#numbers;
      assert(this.#slab.hasNumber(docNum) !== free.has(docNum), "a number is an id's or free");
      if (free.has(docNum)) {
        const isSeen = this.#rows.isDocumentSeen(docNum) || this.#order.has(docNum);
        assert(!isSeen && this.#staged.newestOf(docNum) < 0, "nobody knows a free number");
        continue;
      }
      this.#key.set(this.lowerIdOf(docNum));
      assert(this.#hash.find(this.#key) === docNum, "every id is found");
    }
    const { free } = this.#numbers;
    assert(free.count === count - this.#slab.idCount, "free numbers are below the count");
    this.#rows.checkInvariants(count);
    this.#staged.checkInvariants(count);
    this.#order.checkInvariants(this.#rows);
    this.#all.checkInvariants(this.#rows);
    assert(this.#all.live === this.documentCount, "all documents are in the list of all");
    for (const [collection, list] of this.#lists.entries()) {
      list?.checkInvariants(this.#rows);
      const live = list?.live ?? 0;
      assert(
        live === this.countOfCollection(collection),
        "a collection's documents are in its list",
      );
    }
  }
}

/**
 * Returns whether the ids in a snapshot are folded by the current rules. "possibly": the snapshot is of an older
 * version, but contains no id whose form is ambiguous.
 */
export function keysInSnapshot(
  sections: ReadonlyMap<string, Buffer>,
): "current" | "possibly" | "outdated" {
  const version = sections.get("documents.head")?.readUInt32LE(0);
  if (version !== lowerCaseSectionVersion && version !== oldSectionVersion) return "current";
  const ids = sections.get("documents.ids") ?? Buffer.alloc(0);
  return hasAmbiguousIds(ids) ? "outdated" : "possibly";
}

const isLittleEndian = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

/** @throws EngineError database-damaged when the section is missing. */
function readerOf(sections: readonly WholeSection[], name: string): ByteReader {
  const section = sections.find((each) => each.name === name);
  if (section === undefined) {
    throw new EngineError("database-damaged", `Snapshot section ${name} is missing`);
  }
  return new ByteReader(name, section.parts);
}
