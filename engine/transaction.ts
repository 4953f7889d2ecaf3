/**
 * One transaction: changes of any kind that become durable and visible together, or not at all.
 *
 * It runs synchronously over the newest state (committed, staged by earlier transactions, and its own), encodes each
 * change as a record in a scratch buffer, and has no effect until the database appends that buffer to the log. A
 * record that it needs and that is not in memory makes it throw `RecordNotResident`; the database then reads the
 * record and runs the whole transaction again.
 *
 * Knows nothing of what counters or attachments mean: see writes/.
 *
 * Invariants:
 * - Etags grow from record to record; those of a transaction that fails are used up.
 * - A document whose counters or attachments changed is written once more, after everything else.
 */
import type { Change } from "./changes.ts";
import type { DatabaseState } from "./database-state.ts";
import { EngineError } from "./errors.ts";
import { type Entry, EntryKeyspace } from "./keyspaces/entry-keyspace.ts";
import type { ShapeTable } from "./keyspaces/shapes.ts";
import { tombstoneKey } from "./keyspaces/tombstones.ts";
import { transactionBytesMax } from "./limits.ts";
import type { Position } from "./log/log.ts";
import { sealRecord } from "./log/record.ts";

/** A record that the transaction must read is on the disk only. Caught by the database, never by callers. */
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

/** A document as one transaction left it. `recordLength` 0 is a deletion. */
export interface StagedDocument {
  readonly document: number;
  readonly etag: number;
  /** Offset of the record in the scratch buffer. */
  readonly at: number;
  readonly recordLength: number;
  readonly collectionId: number;
  readonly flags: number;
}

interface StagedEntry {
  readonly keyspace: EntryKeyspace<unknown>;
  readonly key: string;
  /** Null removes the entry; its position is set when the log has given one. */
  readonly entry: Entry<unknown> | null;
  /** Offset and length of its record in the scratch buffer. */
  readonly at: number;
  readonly length: number;
}

/** Where the bytes of a document's record are; valid until the next write or turn of the event loop. */
export interface RecordSpan {
  readonly bytes: Buffer;
  readonly start: number;
}

const noEntries: ReadonlyMap<string, unknown> = new Map();

/** The scratch buffer, one for each database and used again by every transaction. */
export class Scratch {
  bytes: Buffer = Buffer.allocUnsafeSlow(64 * 1024);
  length = 0;

  /** Makes room for `count` more bytes. @returns where they begin. */
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

  reset(): void {
    this.length = 0;
    if (this.bytes.length > 16 * 1024 * 1024) this.bytes = Buffer.allocUnsafeSlow(64 * 1024);
  }
}

/** Adds the records of shapes that the log does not have yet to the transaction. */
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
  readonly documents: StagedDocument[] = [];
  readonly entries: StagedEntry[] = [];
  readonly changes: Change[] = [];
  readonly #byDocument = new Map<number, StagedDocument>();
  readonly #byKey = new Map<EntryKeyspace<unknown>, Map<string, unknown>>();
  readonly #touched = new Set<number>();
  #isDiscarded = false;
  readonly #fetched: ReadonlyMap<Position, Buffer>;

  /** `fetched`: records that an earlier run of this transaction found missing. */
  constructor(state: DatabaseState, scratch: Scratch, fetched: ReadonlyMap<Position, Buffer>) {
    this.state = state;
    this.scratch = scratch;
    this.#fetched = fetched;
    scratch.reset();
  }

  get keyspaces(): DatabaseState["keyspaces"] {
    return this.state.keyspaces;
  }

  /** Nothing of it is to be written. */
  get isEmpty(): boolean {
    return this.#isDiscarded || (this.scratch.length === 0 && this.entries.length === 0);
  }

  /** What was done was only a trial: nothing of it happens. */
  discard(): void {
    this.#isDiscarded = true;
  }

  nextEtag(): number {
    return this.state.nextEtag();
  }

  /** The change vector of something that this database writes at `etag`. */
  changeVectorAt(etag: number): string {
    return this.state.changeVectorAt(etag);
  }

  /** Adds to what listeners are told once this is durable; nobody listening, nothing is kept. */
  changed(change: Change): void {
    if (!this.state.feed.isIdle) this.changes.push(change);
  }

  // Documents

  /** The number of the document that has this id here and now, or -1. */
  find(id: string): number {
    const document = this.state.documents.lookup(id);
    return document >= 0 && this.exists(document) ? document : -1;
  }

  /** The documents whose id begins with `prefix`, as this transaction sees them, in the order of ids. */
  withIdPrefix(prefix: string): number[] {
    const { documents } = this.state;
    const lowerPrefix = prefix.toLowerCase();
    const found = new Set(documents.newestWithPrefix(prefix));
    for (const { document } of this.documents) {
      if (documents.lowerIdOf(document).startsWith(lowerPrefix)) found.add(document);
    }
    return [...found]
      .filter((document) => this.exists(document))
      .sort((left, right) => documents.compareIds(left, right));
  }

  exists(document: number): boolean {
    const own = this.#byDocument.get(document);
    if (own !== undefined) return own.recordLength > 0;
    return this.state.documents.newestEtag(document) > 0;
  }

  etagOf(document: number): number {
    return this.#byDocument.get(document)?.etag ?? this.state.documents.newestEtag(document);
  }

  collectionOf(document: number): number {
    return (
      this.#byDocument.get(document)?.collectionId ??
      this.state.documents.newestCollection(document)
    );
  }

  flagsOf(document: number): number {
    return this.#byDocument.get(document)?.flags ?? this.state.documents.newestFlags(document);
  }

  /** The newest record of a document that exists. @throws RecordNotResident */
  recordOf(document: number): RecordSpan {
    const own = this.#byDocument.get(document);
    if (own !== undefined) return { bytes: this.scratch.bytes, start: own.at };
    const position = this.state.documents.newestPosition(document);
    const length = this.state.documents.newestLength(document);
    const bytes = this.state.log.peek(position, length) ?? this.#fetched.get(position);
    if (bytes === undefined) throw new RecordNotResident(document, position, length);
    return { bytes, start: 0 };
  }

  /** Takes in a document record that the caller encoded at the end of the scratch buffer. */
  stageDocument(staged: StagedDocument): void {
    this.scratch.length = Math.max(this.scratch.length, staged.at + staged.recordLength);
    this.documents.push(staged);
    this.#byDocument.set(staged.document, staged);
    this.#needCollection(staged.collectionId);
  }

  /** The document's lists of names changed: it is written again at the end. */
  touch(document: number): void {
    this.#touched.add(document);
  }

  /** The document is gone: it is not written again. */
  untouch(document: number): void {
    this.#touched.delete(document);
  }

  /** Did this transaction change its attachments or counters, so that its flags may not tell of them yet? */
  isTouched(document: number): boolean {
    return this.#touched.has(document);
  }

  /** Documents to write again; each call empties the list. */
  takeTouched(): number[] {
    const touched = [...this.#touched];
    this.#touched.clear();
    return touched;
  }

  // Entries of the small keyspaces

  /** The value that this transaction sees. */
  entry<Value>(keyspace: EntryKeyspace<Value>, key: string): Value | undefined {
    const own = this.#byKey.get(keyspace as EntryKeyspace<unknown>);
    if (own?.has(key)) return own.get(key) as Value | undefined;
    return keyspace.newest(key);
  }

  /** What this transaction sees of the keys that begin with `prefix`, in key order. */
  entriesWithPrefix<Value>(keyspace: EntryKeyspace<Value>, prefix: string): [string, Value][] {
    const own = this.#byKey.get(keyspace as EntryKeyspace<unknown>) ?? noEntries;
    const rows = new Map<string, Value>();
    for (const [key, entry] of keyspace.newestWithPrefix(prefix)) rows.set(key, entry.value);
    let isOrdered = true;
    for (const [key, value] of own) {
      if (!key.startsWith(prefix)) continue;
      if (value === undefined) rows.delete(key);
      else {
        isOrdered &&= rows.has(key);
        rows.set(key, value as Value);
      }
    }
    const found = [...rows];
    return isOrdered ? found : found.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  }

  /** Sets or, with `undefined`, removes an entry. `etag` is the newest one when it has none of its own. */
  putEntry<Value>(
    keyspace: EntryKeyspace<Value>,
    key: string,
    value: Value | undefined,
    etag: number = this.state.lastEtag,
  ): void {
    const keyBytes = Buffer.from(key);
    const text = value === undefined ? undefined : Buffer.from(JSON.stringify(value));
    const length = EntryKeyspace.encodedLength(keyBytes.length, text?.length ?? 0);
    const at = this.scratch.reserve(length);
    EntryKeyspace.encode(this.scratch.bytes, at, keyspace.kind, keyBytes, text, etag);
    sealRecord(this.scratch.bytes, at);
    this.scratch.length += length;
    const entry = value === undefined ? null : { value, etag, position: 0, length };
    this.#stageEntry({ keyspace: keyspace as EntryKeyspace<unknown>, key, entry, at, length });
  }

  /** A deletion's marker. */
  putTombstone(
    type: "document" | "attachment" | "revision",
    id: string,
    collectionId: number,
    etag: number,
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
      },
      etag,
    );
  }

  #stageEntry(staged: StagedEntry): void {
    const { keyspace, key, entry } = staged;
    this.entries.push(staged);
    let own = this.#byKey.get(keyspace);
    if (own === undefined) {
      own = new Map();
      this.#byKey.set(keyspace, own);
    }
    own.set(key, entry?.value);
  }

  #needCollection(collectionId: number): void {
    const { collections } = this.keyspaces;
    if (collections.isRecorded(collectionId)) return;
    const name = collections.nameOf(collectionId);
    const key = name.toLowerCase();
    if (this.entry(collections.records, key) !== undefined) return;
    this.putEntry(collections.records, key, { id: collectionId, name });
  }
}
