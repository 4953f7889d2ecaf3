/**
 * Revisions: earlier states of documents, packed. A record has the layout of a document's (document-record.ts) under
 * its own type; its etag is the revision's own; its change vector is that of the preserved state and always stored.
 *
 * Rows are found by document, in etag order, and by change vector. Staged rows are in the same columns as committed
 * ones, marked, so that a writer sees them and a reader does not.
 *
 *   rows by number:   document | etag | position | length | collection << 16 | flags | last modified | vector's hash
 *                     | older, newer row of the document | next row of the hash's bucket | state
 *   rows by document: newest | oldest | count for writers | count for readers
 *
 * Knows nothing of why revisions are created or removed: see writes/revisions.ts.
 *
 * Invariants:
 * - Rows of a document are linked in etag order; an etag has at most one row.
 * - A row is freed when its removal is committed, or its addition discarded; its number is then reused.
 */
import { assert } from "../../base/assert.ts";
import { EngineError } from "../../base/errors.ts";
import { recordKinds } from "../../base/record.ts";
import type { Position, SnapshotSection } from "../../storage/log/log.ts";
import {
  changeVectorLengthOf,
  changeVectorStartOf,
  collectionIdOf,
  documentFlagsOf,
  etagOf,
  idLengthOf,
  idStartOf,
  lastModifiedOf,
} from "../documents/document-record.ts";
import type { DocumentTable } from "./document-table.ts";
import type { DeadRecordListener, Keyspace } from "./keyspace.ts";

/** Bits of a row's state. */
const visible = 1;
const removing = 2;

const rowsMin = 64;
/** Numbers per row in a snapshot: all columns but the links. */
const snapshotSlots = 8;

/** Returns the hash of a change vector's text in ASCII: FNV-1a, 32 bits. */
export function changeVectorHash(bytes: Uint8Array, from: number, to: number): number {
  let hash = 0x811c9dc5;
  for (let i = from; i < to; i++) hash = Math.imul(hash ^ (bytes[i] as number), 0x01000193);
  return hash | 0;
}

/** The facts of a revision that are kept outside its record. */
export interface RevisionFacts {
  readonly document: number;
  /** The revision's own etag. */
  readonly etag: number;
  readonly collectionId: number;
  /** Bits of `documentFlags`. */
  readonly flags: number;
  /** Microseconds since 1970. */
  readonly lastModified: number;
  readonly vectorHash: number;
}

/** Returns the facts of the revision record at `start`. */
export function revisionFactsOf(bytes: Buffer, start: number, document: number): RevisionFacts {
  const vectorStart = changeVectorStartOf(bytes, start);
  return {
    document,
    etag: etagOf(bytes, start),
    collectionId: collectionIdOf(bytes, start),
    flags: documentFlagsOf(bytes, start),
    lastModified: lastModifiedOf(bytes, start),
    vectorHash: changeVectorHash(
      bytes,
      vectorStart,
      vectorStart + changeVectorLengthOf(bytes, start),
    ),
  };
}

export class RevisionTable implements Keyspace {
  readonly name = "revisions";
  readonly kind = recordKinds.revision;
  readonly #documents: DocumentTable;
  readonly #dead: DeadRecordListener;

  #capacity = 0;
  /** Number of rows ever used; higher rows have no number yet. */
  #used = 0;
  #document = new Int32Array(0);
  #etag = new Float64Array(0);
  #position = new Float64Array(0);
  #length = new Uint32Array(0);
  #word = new Uint32Array(0);
  #lastModified = new Float64Array(0);
  #vectorHash = new Int32Array(0);
  #older = new Int32Array(0);
  #newer = new Int32Array(0);
  #nextInBucket = new Int32Array(0);
  #state = new Uint8Array(0);
  /** The first free row, linked through `#older`; -1: none. */
  #free = -1;
  #buckets = new Int32Array(0);

  #newest = new Int32Array(0);
  #oldest = new Int32Array(0);
  #writerCount = new Uint32Array(0);
  #readerCount = new Uint32Array(0);

  #count = 0;
  #newestEtag = 0;
  readonly #countOfCollection: number[] = [];
  /** Rows whose addition or removal is staged, oldest first, from `#stagedFrom` on. */
  #staged: number[] = [];
  #stagedFrom = 0;

  constructor(documents: DocumentTable, dead: DeadRecordListener) {
    this.#documents = documents;
    this.#dead = dead;
  }

  // Committed revisions

  get count(): number {
    return this.#count;
  }

  /** The highest etag that any revision has or had; 0 if no revision ever existed. */
  get newestEtag(): number {
    return this.#newestEtag;
  }

  /** Whether no revision exists, not even a staged one. */
  get isEmpty(): boolean {
    return this.#count === 0 && this.#staged.length === this.#stagedFrom;
  }

  countOfCollection(collectionId: number): number {
    return this.#countOfCollection[collectionId] ?? 0;
  }

  countOf(document: number): number {
    return this.#readerCount[document] ?? 0;
  }

  /** Returns whether the document has any revision, visible or not. */
  hasAny(document: number): boolean {
    return (this.#newest[document] ?? -1) >= 0;
  }

  /** Returns the row of a document's newest revision, or -1. */
  newestOf(document: number): number {
    return this.#skipUnseen(this.#newest[document] ?? -1);
  }

  /** Returns the row before `row` in etag order, of the same document; -1: none. */
  olderThan(row: number): number {
    return this.#skipUnseen(this.#older[row] as number);
  }

  /** Rows whose change vector has this hash: candidates, to be verified in their records. */
  withVectorHash(hash: number): number[] {
    return this.#candidates(hash).filter((row) => (this.#stateOf(row) & visible) !== 0);
  }

  /** Rows of the newest revisions of deleted documents, where these mark the deletion, newest first. */
  deletedDocuments(deleteFlag: number): number[] {
    const rows: number[] = [];
    for (let document = 0; document < this.#newest.length; document++) {
      const row = this.newestOf(document);
      if (row < 0 || (this.flagsOf(row) & deleteFlag) === 0) continue;
      if (this.#documents.etagOf(document) === 0) rows.push(row);
    }
    return rows.sort((left, right) => this.etagOf(right) - this.etagOf(left));
  }

  /** Rows of the revisions with this etag or a newer one, in etag order. Cost: O(revisions). */
  rowsFrom(etag: number): number[] {
    const rows: number[] = [];
    for (let row = 0; row < this.#used; row++) {
      if ((this.#stateOf(row) & visible) !== 0 && this.etagOf(row) >= etag) rows.push(row);
    }
    return rows.sort((left, right) => this.etagOf(left) - this.etagOf(right));
  }

  /**
   * Row numbers below it have been used. For iterations over all rows in several ticks of the event loop: a revision
   * that exists throughout keeps its row.
   */
  get rowsEnd(): number {
    return this.#used;
  }

  /** Returns whether this is the row of a revision visible to readers. */
  isSeen(row: number): boolean {
    return (this.#stateOf(row) & visible) !== 0;
  }

  /** Returns the bytes of the revisions' records by collection number. Cost: O(revisions). */
  bytesByCollection(): ReadonlyMap<number, number> {
    const bytes = new Map<number, number>();
    for (let row = 0; row < this.#used; row++) {
      if ((this.#stateOf(row) & visible) === 0) continue;
      const collection = this.collectionOf(row);
      bytes.set(collection, (bytes.get(collection) ?? 0) + this.lengthOf(row));
    }
    return bytes;
  }

  /** No document with this number, or a greater one, has revisions. */
  get documentsEnd(): number {
    return this.#readerCount.length;
  }

  /** Numbers of the documents that have revisions. */
  documentsWithRevisions(): number[] {
    const found: number[] = [];
    for (let document = 0; document < this.#readerCount.length; document++) {
      if ((this.#readerCount[document] as number) > 0) found.push(document);
    }
    return found;
  }

  documentOf(row: number): number {
    return this.#document[row] as number;
  }

  etagOf(row: number): number {
    return this.#etag[row] as number;
  }

  positionOfRow(row: number): Position {
    return this.#position[row] as number;
  }

  lengthOf(row: number): number {
    return this.#length[row] as number;
  }

  flagsOf(row: number): number {
    return (this.#word[row] as number) & 0xffff;
  }

  collectionOf(row: number): number {
    return (this.#word[row] as number) >>> 16;
  }

  /** Microseconds since 1970. */
  lastModifiedOf(row: number): number {
    return this.#lastModified[row] as number;
  }

  factsOf(row: number): RevisionFacts {
    return {
      document: this.documentOf(row),
      etag: this.etagOf(row),
      collectionId: this.collectionOf(row),
      flags: this.flagsOf(row),
      lastModified: this.lastModifiedOf(row),
      vectorHash: this.#vectorHash[row] as number,
    };
  }

  // The writer's view

  /** As `countOf`, including staged changes. */
  newestCountOf(document: number): number {
    return this.#writerCount[document] ?? 0;
  }

  /** Returns the row of a document's oldest revision that is not to be removed, or -1. */
  oldestToWrite(document: number): number {
    return this.#skipRemoved(this.#oldest[document] ?? -1);
  }

  /** Returns the row after `row` in etag order, for a writer; -1: none. */
  newerToWrite(row: number): number {
    return this.#skipRemoved(this.#newer[row] as number);
  }

  stageAdd(facts: RevisionFacts, position: Position, length: number): void {
    const row = this.#insert(facts, position, length, 0);
    this.#writerCount[facts.document] = this.newestCountOf(facts.document) + 1;
    this.#staged.push(row);
  }

  stageRemove(document: number, etag: number): void {
    const row = this.find(document, etag);
    assert(row >= 0, "only a revision that is there is removed");
    assert((this.#stateOf(row) & removing) === 0, "a revision is removed once");
    this.#state[row] = this.#stateOf(row) | removing;
    this.#writerCount[document] = this.newestCountOf(document) - 1;
    this.#staged.push(row);
  }

  commitStaged(count: number): void {
    assert(this.#stagedFrom + count <= this.#staged.length, "only what is staged is committed");
    for (let left = count; left > 0; left--) {
      const row = this.#staged[this.#stagedFrom++] as number; // within the staged ones
      if ((this.#stateOf(row) & visible) === 0) this.#show(row);
      else this.#remove(row);
    }
    if (this.#stagedFrom * 2 > this.#staged.length) {
      this.#staged = this.#staged.slice(this.#stagedFrom);
      this.#stagedFrom = 0;
    }
  }

  discardStaged(count: number): void {
    assert(this.#stagedFrom + count <= this.#staged.length, "only what is staged is discarded");
    for (let left = count; left > 0; left--) {
      const row = this.#staged.pop() as number; // within the staged ones
      const document = this.documentOf(row);
      if ((this.#stateOf(row) & removing) !== 0) {
        this.#state[row] = this.#stateOf(row) & ~removing;
        this.#writerCount[document] = this.newestCountOf(document) + 1;
      } else {
        this.#writerCount[document] = this.newestCountOf(document) - 1;
        this.#unlink(row);
      }
    }
  }

  // Records

  replay(bytes: Buffer, start: number, length: number, position: Position): void {
    const idStart = idStartOf(bytes, start);
    const idEnd = idStart + idLengthOf(bytes, start);
    const document = this.#documents.internBytes(bytes, idStart, idEnd);
    const facts = revisionFactsOf(bytes, start, document);
    const known = this.find(document, facts.etag);
    if (known >= 0) {
      this.#dead(this.positionOfRow(known), this.lengthOf(known));
      this.#position[known] = position;
      this.#length[known] = length;
      return;
    }
    this.#addCommitted(facts, position, length);
  }

  /** Replays a tombstone of a revision. */
  replayRemoval(id: string, etag: number): void {
    const row = this.find(this.#documents.lookup(id), etag);
    if (row >= 0) this.#removeNow(row);
  }

  has(id: string, etag: number): boolean {
    return this.find(this.#documents.lookup(id), etag) >= 0;
  }

  isLive(bytes: Buffer, start: number, _length: number, position: Position): boolean {
    const row = this.#rowOfRecord(bytes, start);
    return row >= 0 && this.positionOfRow(row) === position;
  }

  hasKeyOf(bytes: Buffer, start: number): boolean {
    return this.#rowOfRecord(bytes, start) >= 0;
  }

  positionOf(bytes: Buffer, start: number): Position {
    const row = this.#rowOfRecord(bytes, start);
    return row < 0 ? -1 : this.positionOfRow(row);
  }

  relocate(bytes: Buffer, start: number, target: Position): void {
    const row = this.#rowOfRecord(bytes, start);
    assert(row >= 0, "only a revision that is there is relocated");
    this.#position[row] = target;
  }

  get snapshotBytes(): number {
    return this.#count * snapshotSlots * 8;
  }

  sections(): SnapshotSection[] {
    const numbers = new Float64Array(this.#count * snapshotSlots);
    let at = 0;
    for (let row = 0; row < this.#used; row++) {
      if ((this.#stateOf(row) & visible) === 0) continue;
      numbers[at] = this.documentOf(row);
      numbers[at + 1] = this.etagOf(row);
      numbers[at + 2] = this.positionOfRow(row);
      numbers[at + 3] = this.lengthOf(row);
      numbers[at + 4] = this.#word[row] as number;
      numbers[at + 5] = this.lastModifiedOf(row);
      numbers[at + 6] = this.#vectorHash[row] as number;
      at += snapshotSlots;
    }
    assert(at === numbers.length, "the revisions that readers see are counted");
    return [{ name: "revisions", parts: [Buffer.from(numbers.buffer)] }];
  }

  restore(sections: ReadonlyMap<string, Buffer>): void {
    const bytes = sections.get("revisions");
    if (bytes === undefined) return; // a snapshot of a version without revisions
    if (bytes.length % (8 * snapshotSlots) !== 0) {
      throw new EngineError("database-damaged", "the index snapshot's revisions are cut off");
    }
    const slot = (at: number) => bytes.readDoubleLE(8 * at);
    for (let at = 0; at < bytes.length / 8; at += snapshotSlots) {
      const word = slot(at + 4);
      const facts: RevisionFacts = {
        document: slot(at),
        etag: slot(at + 1),
        collectionId: word >>> 16,
        flags: word & 0xffff,
        lastModified: slot(at + 5),
        vectorHash: slot(at + 6),
      };
      this.#addCommitted(facts, slot(at + 2), slot(at + 3));
    }
  }

  checkInvariants(): void {
    let rows = 0;
    let seen = 0;
    for (let document = 0; document < this.#newest.length; document++) {
      let writers = 0;
      let readers = 0;
      let newer = -1;
      for (let row = this.#newest[document] as number; row >= 0; row = this.#older[row] as number) {
        assert(this.documentOf(row) === document, "a chain is of one document");
        assert(this.#newer[row] === newer, "chains are linked both ways");
        assert(newer < 0 || this.etagOf(row) < this.etagOf(newer), "chains are ordered by etag");
        assert(this.find(document, this.etagOf(row)) === row, "an etag has one row");
        assert(this.#candidates(this.#vectorHash[row] as number).includes(row), "a row is hashed");
        if ((this.#stateOf(row) & removing) === 0) writers++;
        if ((this.#stateOf(row) & visible) !== 0) readers++;
        newer = row;
        rows++;
      }
      assert(this.#oldest[document] === newer, "a chain ends at its oldest row");
      assert(this.#writerCount[document] === writers, "writers' rows are counted");
      assert(this.#readerCount[document] === readers, "readers' rows are counted");
      seen += readers;
    }
    assert(seen === this.#count, "all rows that readers see are counted");
    let free = 0;
    for (let row = this.#free; row >= 0; row = this.#older[row] as number) free++;
    assert(rows + free === this.#used, "a row is in a chain, or free");
  }

  // Rows

  #stateOf(row: number): number {
    return this.#state[row] as number;
  }

  #skipUnseen(from: number): number {
    let row = from;
    while (row >= 0 && (this.#stateOf(row) & visible) === 0) row = this.#older[row] as number;
    return row;
  }

  #skipRemoved(from: number): number {
    let row = from;
    while (row >= 0 && (this.#stateOf(row) & removing) !== 0) row = this.#newer[row] as number;
    return row;
  }

  #candidates(hash: number): number[] {
    const rows: number[] = [];
    let row = this.#buckets[this.#bucketOf(hash)] ?? -1;
    for (; row >= 0; row = this.#nextInBucket[row] as number) {
      if (this.#vectorHash[row] === hash) rows.push(row);
    }
    return rows;
  }

  /** Returns the row of a document's revision, visible or not; -1: none. Cost: O(rows between it and the newest). */
  find(document: number, etag: number): number {
    if (document < 0) return -1;
    const oldest = this.#oldest[document] ?? -1;
    // The oldest rows are removed first, so that end is checked first.
    if (oldest >= 0 && this.etagOf(oldest) === etag) return oldest;
    let row = this.#newest[document] ?? -1;
    while (row >= 0 && this.etagOf(row) > etag) row = this.#older[row] as number;
    return row >= 0 && this.etagOf(row) === etag ? row : -1;
  }

  /**
   * Returns the row with the record's etag, found by its change vector: the cost does not depend on the length of the
   * document's chain.
   */
  #rowOfRecord(bytes: Buffer, start: number): number {
    const from = changeVectorStartOf(bytes, start);
    const hash = changeVectorHash(bytes, from, from + changeVectorLengthOf(bytes, start));
    const etag = etagOf(bytes, start);
    return this.#candidates(hash).find((row) => this.etagOf(row) === etag) ?? -1;
  }

  #addCommitted(facts: RevisionFacts, position: Position, length: number): void {
    const row = this.#insert(facts, position, length, 0);
    this.#writerCount[facts.document] = this.newestCountOf(facts.document) + 1;
    this.#show(row);
  }

  #show(row: number): void {
    const document = this.documentOf(row);
    const collection = this.collectionOf(row);
    this.#state[row] = this.#stateOf(row) | visible;
    this.#readerCount[document] = this.countOf(document) + 1;
    this.#countOfCollection[collection] = this.countOfCollection(collection) + 1;
    this.#count++;
    this.#newestEtag = Math.max(this.#newestEtag, this.etagOf(row));
  }

  #removeNow(row: number): void {
    const document = this.documentOf(row);
    this.#writerCount[document] = this.newestCountOf(document) - 1;
    this.#remove(row);
  }

  #remove(row: number): void {
    const document = this.documentOf(row);
    const collection = this.collectionOf(row);
    this.#readerCount[document] = this.countOf(document) - 1;
    this.#countOfCollection[collection] = this.countOfCollection(collection) - 1;
    this.#count--;
    this.#dead(this.positionOfRow(row), this.lengthOf(row));
    this.#unlink(row);
  }

  #insert(facts: RevisionFacts, position: Position, length: number, state: number): number {
    const { document, etag } = facts;
    this.#reserveDocument(document);
    const row = this.#takeRow();
    this.#document[row] = document;
    this.#etag[row] = etag;
    this.#position[row] = position;
    this.#length[row] = length;
    this.#word[row] = ((facts.collectionId << 16) | facts.flags) >>> 0;
    this.#lastModified[row] = facts.lastModified;
    this.#vectorHash[row] = facts.vectorHash;
    this.#state[row] = state;
    let newer = -1;
    let older = this.#newest[document] as number; // reserved
    while (older >= 0 && this.etagOf(older) > etag) {
      newer = older;
      older = this.#older[older] as number;
    }
    this.#link(document, newer, row, older);
    const bucket = this.#bucketOf(facts.vectorHash);
    this.#nextInBucket[row] = this.#buckets[bucket] as number;
    this.#buckets[bucket] = row;
    return row;
  }

  #link(document: number, newer: number, row: number, older: number): void {
    this.#newer[row] = newer;
    this.#older[row] = older;
    if (newer < 0) this.#newest[document] = row;
    else this.#older[newer] = row;
    if (older < 0) this.#oldest[document] = row;
    else this.#newer[older] = row;
  }

  #unlink(row: number): void {
    const document = this.documentOf(row);
    const newer = this.#newer[row] as number;
    const older = this.#older[row] as number;
    if (newer < 0) this.#newest[document] = older;
    else this.#older[newer] = older;
    if (older < 0) this.#oldest[document] = newer;
    else this.#newer[older] = newer;
    const bucket = this.#bucketOf(this.#vectorHash[row] as number);
    const next = this.#nextInBucket[row] as number;
    if (this.#buckets[bucket] === row) this.#buckets[bucket] = next;
    else {
      let before = this.#buckets[bucket] as number;
      while (this.#nextInBucket[before] !== row) before = this.#nextInBucket[before] as number;
      this.#nextInBucket[before] = next;
    }
    this.#state[row] = 0;
    this.#older[row] = this.#free;
    this.#free = row;
    if (!this.hasAny(document)) this.#documents.markUnused(document);
  }

  #bucketOf(hash: number): number {
    // The lower bits of FNV are well distributed for texts that differ only in digits.
    return hash & (this.#buckets.length - 1);
  }

  #takeRow(): number {
    if (this.#free >= 0) {
      const row = this.#free;
      this.#free = this.#older[row] as number;
      return row;
    }
    if (this.#used === this.#capacity) this.#grow();
    return this.#used++;
  }

  #grow(): void {
    const capacity = Math.max(rowsMin, this.#capacity * 2);
    this.#document = widened(new Int32Array(capacity), this.#document);
    this.#etag = widened(new Float64Array(capacity), this.#etag);
    this.#position = widened(new Float64Array(capacity), this.#position);
    this.#length = widened(new Uint32Array(capacity), this.#length);
    this.#word = widened(new Uint32Array(capacity), this.#word);
    this.#lastModified = widened(new Float64Array(capacity), this.#lastModified);
    this.#vectorHash = widened(new Int32Array(capacity), this.#vectorHash);
    this.#older = widened(new Int32Array(capacity), this.#older);
    this.#newer = widened(new Int32Array(capacity), this.#newer);
    this.#state = widened(new Uint8Array(capacity), this.#state);
    this.#nextInBucket = new Int32Array(capacity);
    this.#buckets = new Int32Array(capacity).fill(-1);
    this.#capacity = capacity;
    for (let row = 0; row < this.#used; row++) {
      const bucket = this.#bucketOf(this.#vectorHash[row] as number);
      this.#nextInBucket[row] = this.#buckets[bucket] as number;
      this.#buckets[bucket] = row;
    }
  }

  #reserveDocument(document: number): void {
    const { length } = this.#newest;
    if (document < length) return;
    const capacity = Math.max(rowsMin, length * 2, document + 1);
    this.#newest = widened(new Int32Array(capacity).fill(-1), this.#newest);
    this.#oldest = widened(new Int32Array(capacity).fill(-1), this.#oldest);
    this.#writerCount = widened(new Uint32Array(capacity), this.#writerCount);
    this.#readerCount = widened(new Uint32Array(capacity), this.#readerCount);
  }
}

interface Settable<Self> {
  set(source: Self): void;
}

function widened<Column extends Settable<Column>>(target: Column, source: Column): Column {
  target.set(source);
  return target;
}
