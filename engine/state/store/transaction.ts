/**
 * One transaction: changes of any kind that become durable and visible together, or not at all.
 *
 * It runs synchronously, or in time slices while no other transaction runs. It sees the newest state (committed, staged
 * by earlier transactions, and its own), encodes each change as a record in a scratch buffer, and has no effect until
 * the database appends that buffer to the log. It throws `RecordNotResident` when it needs a record that is not in
 * memory; the database then reads the record and runs the whole transaction again.
 *
 * The semantics of counters, attachments and so on are in writes/.
 *
 * Invariants:
 * - Etags increase from record to record; etags of a failed transaction are not reused.
 * - A document whose counters or attachments changed is rewritten after everything else.
 */

import { crc32 } from "node:zlib";
import { assert } from "../../base/assert.ts";
import { lowerCased } from "../../base/case-folding.ts";
import { EngineError } from "../../base/errors.ts";
import { entryKeyBytesMax, transactionBytesMax } from "../../base/limits.ts";
import { type BorrowedBytes, borrowed } from "../../base/memory/borrowed-bytes.ts";
import { countDropped } from "../../base/memory/gc-hints.ts";
import { largeBuffer } from "../../base/memory/large-buffer.ts";
import { sealRecord } from "../../base/record.ts";
import type { Work } from "../../base/scheduling/work-budget.ts";
import { BTree, type TreeCursor } from "../../base/tree/btree.ts";
import { compareStrings } from "../../base/tree/compare.ts";
import type { Position, SummedBytes } from "../../storage/log/log.ts";
import { newPlace, type RecordPlace } from "../../storage/segments/blocks.ts";
import { DocumentFields } from "../documents/document-encoding.ts";
import type { ShapeTable } from "../documents/shapes.ts";
import { type Entry, EntryKeyspace } from "../keyspaces/entry-keyspace.ts";
import { type RevisionFacts, revisionFactsOf } from "../keyspaces/revision-table.ts";
import { tombstoneKey } from "../keyspaces/tombstones.ts";
import type { Change, FieldChange } from "./changes.ts";
import type { DatabaseState } from "./database-state.ts";
import type { FetchedRecords } from "./fetched-records.ts";
import { TransactionDocuments } from "./transaction-documents.ts";

/** A record that the transaction must read is only on disk. Caught by the store, never by callers. */
export class RecordNotResident extends Error {
  override readonly name = "RecordNotResident";
  readonly document: number;
  readonly position: Position;
  readonly length: number;

  constructor(document: number, position: Position, length: number) {
    super("a record must be read first");
    this.document = document;
    this.position = position;
    this.length = length;
  }
}

interface StagedEntry {
  readonly keyspace: EntryKeyspace<unknown>;
  readonly key: string;
  /** Null removes the entry; its position is set once the log has assigned one. */
  readonly entry: Entry<unknown> | null;
  /** Offset and length of its record in the scratch buffer. */
  readonly at: number;
  readonly length: number;
}

/** A revision that the transaction adds or removes. */
interface StagedRevision {
  readonly facts: RevisionFacts;
  /** Offset and length of its record in the scratch buffer; length 0 removes it. */
  readonly at: number;
  readonly length: number;
}

/** Position of the bytes of a document's record; valid until the next write or tick of the event loop. */
export interface RecordSpan {
  readonly bytes: BorrowedBytes;
  readonly start: number;
}

const none: readonly never[] = [];
/** A transaction's change of one key; an undefined value: removed. */
interface OwnEntry {
  readonly value: unknown;
}

type OwnEntries = BTree<string, OwnEntry>;

/** A scratch buffer larger than this is released at the end of its transaction. */
const scratchBytesKept = 16 * 1024 * 1024;
/** Buffers from this size on are adopted and written in place. */
const adoptedBytesMin = 1024 * 1024;

/** A buffer of at least this many bytes is grown in slices where possible; also the bytes copied in one slice. */
const slicedGrowthBytes = 2 * 1024 * 1024;
/** A payload of at least this many bytes is checksummed in slices before it is appended. */
const summedBytesMin = 1024 * 1024;
/**
 * Number of entries that are not kept sorted: many transactions write a few entries and read none of them back; these
 * are sorted on the first read.
 */
const unsortedEntriesMax = 16;
/** A large buffer is tight when more than this part of it is used. */
const tightShare = 3 / 4;

/** The buffer of a transaction's records: one for each database, reused by every transaction. */
export class Scratch {
  bytes: Buffer = Buffer.allocUnsafeSlow(64 * 1024);
  length = 0;
  readonly documents = new TransactionDocuments();
  /** The record that is being written at the end of the buffer. */
  readonly fields = new DocumentFields();
  #isAdopted = false;
  /** The buffer that an adopted one stands for, if it is worth keeping. */
  #own: Buffer | null = null;
  #summed: SummedBytes | null = null;

  /** Grows the buffer so that `count` more bytes fit. @returns their offset. @throws EngineError too-large */
  reserve(count: number): number {
    const needed = this.length + count;
    if (needed > transactionBytesMax) {
      throw new EngineError(
        "too-large",
        `A transaction has at most ${transactionBytesMax} bytes; this one would have ${needed}.`,
      );
    }
    if (needed > this.bytes.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.bytes.length * 2));
      this.bytes.copy(larger, 0, 0, this.length);
      this.bytes = larger;
    }
    return this.length;
  }

  /** Whether so little space is left in a large buffer that it should be grown before the next change. */
  get isTight(): boolean {
    return this.bytes.length >= slicedGrowthBytes && this.length > this.bytes.length * tightShare;
  }

  /** Doubles the buffer, up to `transactionBytesMax`, copying in slices. */
  *grow(): Work<void> {
    const larger = largeBuffer(Math.min(2 * this.bytes.length, transactionBytesMax));
    if (larger.length <= this.bytes.length) return;
    for (let at = 0; at < this.length; at += slicedGrowthBytes) {
      this.bytes.copy(larger, at, at, Math.min(at + slicedGrowthBytes, this.length));
      yield;
    }
    countDropped(this.bytes.length);
    this.bytes = larger;
  }

  /** Length and checksum of the part that `sum` covered; null when it was not called or the payload is small. */
  get summed(): SummedBytes | null {
    return this.#summed;
  }

  /** Computes the checksum of a large payload, in slices: the log can then copy it in slices too. */
  *sum(): Work<void> {
    if (this.length < summedBytesMin) return;
    if (this.isTight) yield* this.grow(); // space for records that are appended after it
    let crc = 0;
    for (let at = 0; at < this.length; at += slicedGrowthBytes) {
      crc = crc32(this.bytes.subarray(at, Math.min(at + slicedGrowthBytes, this.length)), crc);
      yield;
    }
    this.#summed = { length: this.length, crc };
  }

  /**
   * Adopts a large `bytes` as the scratch buffer, if nothing is written yet and the present one is smaller. It is
   * released at the end of this transaction.
   */
  adopt(bytes: Buffer): void {
    if (this.length > 0 || bytes.length < Math.max(adoptedBytesMin, this.bytes.length)) return;
    this.#replace(bytes);
  }

  /** Makes `bytes`, which are whole records and must not be modified later, the content of the empty buffer. */
  give(bytes: Buffer): void {
    this.#replace(bytes);
    this.length = bytes.length;
  }

  #replace(bytes: Buffer): void {
    if (!this.isLarge) this.#own = this.bytes;
    this.bytes = bytes;
    this.#isAdopted = true;
  }

  reset(): void {
    this.length = 0;
    this.#summed = null;
    this.documents.reset();
    this.trim();
  }

  /** Whether its memory will be released at the end of the transaction. */
  get isLarge(): boolean {
    return this.#isAdopted || this.#summed !== null || this.bytes.length > scratchBytesKept;
  }

  /** Releases the memory of a large transaction. */
  trim(): void {
    if (!this.isLarge) return;
    this.bytes = this.#own ?? Buffer.allocUnsafeSlow(64 * 1024);
    this.#own = null;
    this.#isAdopted = false;
    this.#summed = null;
  }
}

/** Adds the records of shapes that are not in the log yet to the transaction. */
export function logShapes(shapes: ShapeTable, scratch: Scratch): void {
  for (let id = shapes.loggedCount + 1; id <= shapes.count; id++) {
    const at = scratch.reserve(shapes.recordLength(id));
    scratch.length += shapes.encodeRecord(scratch.bytes, at, id);
    sealRecord(scratch.bytes, at);
  }
}

export class Transaction {
  readonly state: DatabaseState;
  readonly scratch: Scratch;
  readonly documents: TransactionDocuments;
  /** Number of entries of time series that it has appended, incremented or deleted. */
  seriesEntries = 0;
  /** Units of work that its scripts have used in the current tick of the event loop. */
  scriptWork = 0;
  /** Units of work that its scripts have used in earlier ticks. */
  scriptWorkBefore = 0;
  /**
   * Whether a revision is stored of each document before it is changed or deleted, whatever the rules, and none is
   * dropped.
   */
  keepsBefore = false;
  /** All that it has done to documents, if that is known: see `FieldChange`. `count`: how many were changed. */
  fieldChange: (Omit<FieldChange, "to"> & { readonly count: number }) | null = null;
  /** Whether it is a copy of another node's transaction: no consequences are computed that are not in it. */
  isAdopted = false;
  // Created with the first element: most transactions write one document and nothing else.
  #entries: StagedEntry[] | null = null;
  #changes: Change[] | null = null;
  #deletedRanges: number[] | null = null;
  #byKey: Map<EntryKeyspace<unknown>, OwnEntries> | null = null;
  /** How many of `#entries` are in `#byKey`. */
  #sortedCount = 0;
  #touched: Set<number> | null = null;
  /** Documents that are rewritten with changed lists get no revision: it imports a dump, which has its own. */
  importsLists = false;
  #revisions: StagedRevision[] | null = null;
  #revisionsOf: Map<number, StagedRevision[]> | null = null;
  /** Etags of the revisions that it removes. */
  #removedRevisions: Set<number> | null = null;
  #isDiscarded = false;
  readonly #fetched: FetchedRecords;

  /** `fetched`: records that an earlier run of this transaction found missing. */
  constructor(state: DatabaseState, scratch: Scratch, fetched: FetchedRecords) {
    this.state = state;
    this.scratch = scratch;
    this.documents = scratch.documents;
    this.#fetched = fetched;
    scratch.reset();
    state.beginTransaction();
  }

  get entries(): readonly StagedEntry[] {
    return this.#entries ?? none;
  }

  get revisions(): readonly StagedRevision[] {
    return this.#revisions ?? none;
  }

  get changes(): readonly Change[] {
    return this.#changes ?? none;
  }

  /** The collections of time series in which it deletes a range, once for each range. */
  get deletedRanges(): readonly number[] {
    return this.#deletedRanges ?? none;
  }

  /** Counts a deleted range of a time series, once it is durable. */
  countDeletedRange(collectionId: number): void {
    this.#deletedRanges ??= [];
    this.#deletedRanges.push(collectionId);
  }

  get keyspaces(): DatabaseState["keyspaces"] {
    return this.state.keyspaces;
  }

  /** Whether nothing is to be written. */
  get isEmpty(): boolean {
    return this.#isDiscarded || (this.scratch.length === 0 && this.#entries === null);
  }

  /** Drops everything: the transaction was only a trial. */
  discard(): void {
    this.#isDiscarded = true;
  }

  /** Must be called when a slice begins in a new tick of the event loop. */
  beginSlice(): void {
    this.scriptWorkBefore += this.scriptWork;
    this.scriptWork = 0;
  }

  nextEtag(): number {
    return this.state.nextEtag();
  }

  /** Returns the change vector of a write by this database at `etag`. */
  changeVectorAt(etag: number): string {
    return this.state.changeVectorAt(etag);
  }

  /** Whether no listener is registered. Then a hot caller need not make the `Change` either. */
  get isUnwatched(): boolean {
    return this.state.feed.isIdle;
  }

  /** Adds a change for listeners, which are notified once it is durable; does nothing without listeners. */
  changed(change: Change): void {
    if (this.state.feed.isIdle) return;
    this.#changes ??= [];
    this.#changes.push(change);
  }

  // Documents

  /** Returns the number of the document that has this id in this transaction, or -1. */
  find(id: string): number {
    const document = this.state.documents.lookup(id);
    return document >= 0 && this.exists(document) ? document : -1;
  }

  /**
   * Returns the documents whose id begins with `prefix`, as this transaction sees them, in id order. `most`: where
   * there are more, not all are gathered, but more than that.
   */
  withIdPrefix(prefix: string, most = Number.POSITIVE_INFINITY): number[] {
    const { documents } = this.state;
    const lowerPrefix = lowerCased(prefix);
    const found = documents.newestWithPrefix(prefix, most, (document) => this.exists(document));
    for (let row = 0; row < this.documents.count; row++) {
      const document = this.documents.documentOf(row);
      if (documents.lowerIdOf(document).startsWith(lowerPrefix) && this.exists(document)) {
        found.add(document);
      }
    }
    return [...found].sort((left, right) => documents.compareIds(left, right));
  }

  /** Returns whether this document has a tombstone, written by this transaction or before. */
  wasDeleted(id: string): boolean {
    const document = this.state.documents.lookup(id);
    if (document < 0 || this.exists(document)) return false;
    return (
      this.documents.newestOf(document) >= 0 ||
      this.keyspaces.tombstones.hasDocument(lowerCased(id))
    );
  }

  exists(document: number): boolean {
    const row = this.documents.newestOf(document);
    if (row >= 0) return this.documents.recordLengthOf(row) > 0;
    return this.state.documents.newestEtag(document) > 0;
  }

  etagOf(document: number): number {
    const row = this.documents.newestOf(document);
    return row < 0 ? this.state.documents.newestEtag(document) : this.documents.etagOf(row);
  }

  collectionOf(document: number): number {
    const row = this.documents.newestOf(document);
    if (row < 0) return this.state.documents.newestCollection(document);
    return this.documents.collectionOf(row);
  }

  flagsOf(document: number): number {
    const row = this.documents.newestOf(document);
    return row < 0 ? this.state.documents.newestFlags(document) : this.documents.flagsOf(row);
  }

  /** Returns the newest record of a document that exists. @throws RecordNotResident */
  recordOf(document: number): RecordSpan {
    const row = this.documents.newestOf(document);
    if (row >= 0)
      return { bytes: borrowed(this.scratch.bytes), start: this.documents.offsetOf(row) };
    const position = this.state.documents.newestPosition(document);
    const length = this.state.documents.newestLength(document);
    const place = newPlace();
    if (!this.#lend(position, length, place)) {
      throw new RecordNotResident(document, position, length);
    }
    return place;
  }

  /** As `CommitLog.place`, including the records that were fetched for this transaction. */
  place(position: Position, length: number, target: RecordPlace): boolean {
    return (
      this.#fetched.locate(position, length, target) ||
      this.state.log.place(position, length, target)
    );
  }

  /** As `place`, but valid only until the next tick of the event loop. */
  #lend(position: Position, length: number, target: RecordPlace): boolean {
    return (
      this.#fetched.locate(position, length, target) ||
      this.state.log.lend(position, length, target)
    );
  }

  #recordAt(document: number, position: Position, length: number): BorrowedBytes {
    const place = newPlace();
    if (!this.#lend(position, length, place)) {
      throw new RecordNotResident(document, position, length);
    }
    return place.bytes.subarray(place.start, place.start + length);
  }

  /**
   * Stages the document record of `recordLength` bytes that the caller encoded at the end of the scratch buffer; 0 is a
   * deletion.
   */
  stageDocument(
    document: number,
    etag: number,
    recordLength: number,
    collectionId: number,
    flags: number,
  ): void {
    const at = this.scratch.length;
    this.scratch.length = at + recordLength;
    this.documents.push(document, etag, at, recordLength, collectionId, flags);
    if (!this.keyspaces.collections.isRecorded(collectionId)) this.#needCollection(collectionId);
  }

  /** The document's name lists (counters, attachments, ...) changed: it is rewritten at the end. */
  touch(document: number): void {
    this.#touched ??= new Set();
    this.#touched.add(document);
  }

  /** Returns whether the document is to be rewritten. */
  isTouched(document: number): boolean {
    return this.#touched?.has(document) === true;
  }

  /** The document was deleted, or has just been rewritten: it is not rewritten at the end. */
  untouch(document: number): void {
    this.#touched?.delete(document);
  }

  /** Removes and returns the documents to rewrite. */
  takeTouched(): readonly number[] {
    if (this.#touched === null) return none;
    const touched = [...this.#touched];
    this.#touched = null;
    return touched;
  }

  // Revisions

  /** Stages the revision record of `length` bytes that the caller encoded at the end of the scratch buffer. */
  stageRevision(document: number, length: number): void {
    const at = this.scratch.length;
    this.scratch.length = at + length;
    const facts = revisionFactsOf(this.scratch.bytes, at, document);
    this.#addRevision({ facts, at, length });
    const { collectionId } = facts;
    if (!this.keyspaces.collections.isRecorded(collectionId)) this.#needCollection(collectionId);
  }

  /** A revision whose record another node has made; it is in the scratch buffer. */
  adoptRevision(staged: StagedRevision): void {
    this.#addRevision(staged);
  }

  /** A revision that another node has removed. */
  adoptRevisionRemoval(document: number, etag: number): void {
    const { revisions } = this.keyspaces;
    this.removeRevision(revisions.factsOf(revisions.find(document, etag)));
  }

  #addRevision(staged: StagedRevision): void {
    const { document } = staged.facts;
    this.#revisions ??= [];
    this.#revisions.push(staged);
    this.#revisionsOf ??= new Map();
    const own = this.#revisionsOf.get(document);
    if (own === undefined) this.#revisionsOf.set(document, [staged]);
    else own.push(staged);
  }

  #ownRevisionsOf(document: number): readonly StagedRevision[] {
    return this.#revisionsOf?.get(document) ?? none;
  }

  /** Removes the revision; the caller writes its tombstone. */
  removeRevision(facts: RevisionFacts): void {
    this.#removedRevisions ??= new Set();
    assert(!this.#removedRevisions.has(facts.etag), "a transaction removes a revision once");
    this.#removedRevisions.add(facts.etag);
    this.#addRevision({ facts, at: 0, length: 0 });
  }

  /** Returns the number of revisions of a document that this transaction sees. */
  revisionCountOf(document: number): number {
    let count = this.keyspaces.revisions.newestCountOf(document);
    if (this.#revisionsOf === null) return count;
    for (const { length } of this.#ownRevisionsOf(document)) count += length > 0 ? 1 : -1;
    return count;
  }

  /** Yields the revisions of a document that this transaction sees, oldest first. */
  *revisionsOf(document: number): Generator<RevisionFacts> {
    const { revisions } = this.keyspaces;
    const own = this.#ownRevisionsOf(document);
    const removed = new Set(
      own.filter(({ length }) => length === 0).map(({ facts }) => facts.etag),
    );
    let row = revisions.oldestToWrite(document);
    for (; row >= 0; row = revisions.newerToWrite(row)) {
      if (!removed.has(revisions.etagOf(row))) yield revisions.factsOf(row);
    }
    for (const { facts, length } of own) if (length > 0 && !removed.has(facts.etag)) yield facts;
  }

  /** Returns the record of a revision that this transaction sees. @throws RecordNotResident */
  revisionRecord({ document, etag }: RevisionFacts): RecordSpan {
    const own = this.#ownRevisionsOf(document).find(
      ({ facts, length }) => facts.etag === etag && length > 0,
    );
    if (own !== undefined) return { bytes: borrowed(this.scratch.bytes), start: own.at };
    const { revisions } = this.keyspaces;
    const row = revisions.find(document, etag);
    return {
      bytes: this.#recordAt(document, revisions.positionOfRow(row), revisions.lengthOf(row)),
      start: 0,
    };
  }

  // Entries of the small keyspaces

  /** Returns the value that this transaction sees. */
  entry<Value>(keyspace: EntryKeyspace<Value>, key: string): Value | undefined {
    const own = this.#ownEntries(keyspace)?.get(key);
    if (own !== undefined) return own.value as Value | undefined;
    return keyspace.newest(key);
  }

  /** Returns the entries that this transaction sees whose keys begin with `prefix`, in key order. */
  entriesWithPrefix<Value>(keyspace: EntryKeyspace<Value>, prefix: string): [string, Value][] {
    return [...this.entriesFrom(keyspace, prefix, prefix)];
  }

  /** As `entriesWithPrefix`, one by one from the key `from` on. Nothing may be changed during the iteration. */
  entriesFrom<Value>(
    keyspace: EntryKeyspace<Value>,
    prefix: string,
    from: string,
  ): Generator<[string, Value]> {
    const own = this.#ownEntries(keyspace);
    return merged(keyspace.newestRange(prefix, from), own?.cursor({ lower: from }), prefix, 1);
  }

  /** As `entriesFrom`, backward: from the key `from`, or the one before it. */
  entriesDownFrom<Value>(
    keyspace: EntryKeyspace<Value>,
    prefix: string,
    from: string,
  ): Generator<[string, Value]> {
    const own = this.#ownEntries(keyspace);
    const cursor = own?.cursor({ upper: from, descending: true });
    return merged(keyspace.newestRangeDown(prefix, from), cursor, prefix, -1);
  }

  /**
   * Sets or, with `undefined`, removes an entry. `etag` defaults to the newest one, for entries without one of their
   * own.
   * @throws EngineError invalid-argument for a key too long for a record, too-large
   */
  putEntry<Value>(
    keyspace: EntryKeyspace<Value>,
    key: string,
    value: Value | undefined,
    etag: number = this.state.lastEtag,
  ): void {
    const keyLength = Buffer.byteLength(key);
    if (keyLength > entryKeyBytesMax) {
      throw new EngineError(
        "invalid-argument",
        `A name is too long: it would be stored under a key of ${keyLength} bytes, and ${entryKeyBytesMax} is the most.`,
      );
    }
    const text = value === undefined ? undefined : keyspace.codec.encode(value);
    const length = EntryKeyspace.encodedLength(key, text);
    const at = this.scratch.reserve(length);
    EntryKeyspace.encode(this.scratch.bytes, at, length, keyspace.kind, key, text, etag);
    sealRecord(this.scratch.bytes, at);
    this.scratch.length += length;
    const entry = value === undefined ? null : { value, etag, position: 0, length };
    this.#stageEntry({ keyspace: keyspace as EntryKeyspace<unknown>, key, entry, at, length });
  }

  /** Writes a tombstone. `revision`: the etag of the deleted revision. */
  putTombstone(
    type: "document" | "attachment" | "revision",
    id: string,
    collectionId: number,
    etag: number,
    revision?: number,
  ): void {
    const { tombstones, collections } = this.keyspaces;
    this.putEntry(
      tombstones.records,
      tombstoneKey(etag),
      {
        type,
        id,
        collection: collections.nameOf(collectionId),
        etag,
        changeVector: this.changeVectorAt(etag),
        lastModified: this.state.nextModified(),
        ...(revision === undefined ? {} : { revision }),
      },
      etag,
    );
  }

  /** An entry whose record another node has made; it is in the scratch buffer. */
  adoptEntry(staged: StagedEntry): void {
    this.#stageEntry(staged);
  }

  #stageEntry(staged: StagedEntry): void {
    this.#entries ??= [];
    this.#entries.push(staged);
    if (this.#entries.length - this.#sortedCount >= unsortedEntriesMax) this.#sortEntries();
  }

  /** Returns the entries of a keyspace that it has staged. */
  #ownEntries<Value>(keyspace: EntryKeyspace<Value>): OwnEntries | undefined {
    this.#sortEntries();
    return this.#byKey?.get(keyspace as EntryKeyspace<unknown>);
  }

  #sortEntries(): void {
    if (this.#entries === null) return;
    this.#byKey ??= new Map();
    for (; this.#sortedCount < this.#entries.length; this.#sortedCount++) {
      const { keyspace, key, entry } = this.#entries[this.#sortedCount] as StagedEntry; // below its length
      let own = this.#byKey.get(keyspace);
      if (own === undefined) {
        own = new BTree(compareStrings);
        this.#byKey.set(keyspace, own);
      }
      own.set(key, { value: entry?.value });
    }
  }

  #needCollection(collectionId: number): void {
    const { collections } = this.keyspaces;
    const name = collections.nameOf(collectionId);
    const key = lowerCased(name);
    if (this.entry(collections.records, key) !== undefined) return;
    this.putEntry(collections.records, key, { id: collectionId, name });
  }
}

/**
 * Merges the newest entries of a keyspace with a transaction's own, which take precedence, in the direction of both.
 * `own` begins where `newest` does.
 */
function* merged<Value>(
  newest: Generator<[string, Readonly<Entry<Value>>]>,
  own: TreeCursor<string, OwnEntry> | undefined,
  prefix: string,
  direction: 1 | -1,
): Generator<[string, Value]> {
  let below = newest.next();
  let hasOwn = own?.next() === true && own.key.startsWith(prefix);
  while (!below.done || (hasOwn && own !== undefined)) {
    let order = hasOwn ? 1 : -1;
    if (!below.done && hasOwn && own !== undefined) {
      order = compareStrings(below.value[0], own.key) * direction;
    }
    if (order < 0 && !below.done) yield [below.value[0], below.value[1].value];
    else if (own?.value.value !== undefined) yield [own.key, own.value.value as Value];
    if (order <= 0) below = newest.next();
    if (order >= 0) hasOwn = own?.next() === true && own.key.startsWith(prefix);
  }
}
