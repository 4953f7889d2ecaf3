/**
 * A keyspace of named entries: a text key and a value, which is JSON text unless the keyspace has its own codec, all
 * kept in memory. Counters, attachments, identities, compare-exchange values, segments of time series and so on are
 * keyspaces of this type; documents are not (they are packed).
 *
 *   +----------------+---------------------+-------------------------+-----------+
 *   | record header  | key                 | value                   | pad to 8  |
 *   | 24 bytes       | keyLength bytes     | `word` bytes            |           |
 *   +----------------+---------------------+-------------------------+-----------+
 *
 * Bit 1 of `flags` marks a deletion, which has no value. `etag` is the database's etag counter at the time of the
 * write, which orders deletions against compacted segments.
 *
 * Invariants:
 * - A key has at most one entry: the entry of its newest record in log order.
 */

import { assert } from "../../base/assert.ts";
import { lowerCased } from "../../base/case-folding.ts";
import { entryKeyBytesMax } from "../../base/limits.ts";
import {
  type RecordKind,
  recordEtagAt,
  recordFlagsAt,
  recordHeaderBytes,
  recordKeyLengthAt,
  recordKindAt,
  recordLengthAt,
  recordWordAt,
} from "../../base/record.ts";
import type { BTree } from "../../base/tree/btree.ts";
import { StagedMap } from "../../base/tree/staged-map.ts";
import type { Position, SnapshotSection } from "../../storage/log/log.ts";
import type { DeadRecordListener, Keyspace } from "./keyspace.ts";

export const deletionFlag = 1;

/** One entry: its value, and the position of its record. */
export interface Entry<Value> {
  readonly value: Value;
  readonly etag: number;
  position: Position;
  length: number;
}

/** Encodes and decodes the values of a keyspace. */
export interface ValueCodec<Value> {
  /** Its text, or its bytes. */
  encode(value: Value): string | Buffer;
  /** Returns the value in `bytes[from, to)`. Must copy the bytes that it retains. */
  decode(bytes: Buffer, from: number, to: number): Value;
}

const jsonCodec: ValueCodec<unknown> = {
  encode: (value) => JSON.stringify(value),
  decode: (bytes, from, to) => JSON.parse(bytes.toString("utf8", from, to)),
};

/** Called for each change that becomes visible; `undefined`: no entry. */
type EntryListener<Value> = (
  key: string,
  value: Value | undefined,
  previous: Value | undefined,
) => void;

/** Bytes encoded in some 100 microseconds. */
const snapshotPartBytes = 8 * 1024;
/** In a snapshot, before each record: its position in the log. */
const positionBytes = 8;

/** Returns a key of two parts (a document and a counter name): ordered by the first part, then the second. */
export function compositeKey(first: string, second: string): string {
  return `${first}\u0000${second}`;
}

/**
 * Returns the key of a named part of a document: a counter, an attachment, a series. `documentKey(id, "")` is the
 * prefix of all keys of a document.
 */
export function documentKey(documentId: string, name: string): string {
  return compositeKey(lowerCased(documentId), lowerCased(name));
}

/** Returns a number as part of a key: keys sort as the numbers do. */
export function numberKey(number: number): string {
  return number.toString().padStart(numberDigits, "0");
}

/** Returns the number at the end of a key. */
export function numberOfKey(key: string): number {
  return Number(key.slice(-numberDigits));
}

/** Digits of the largest safe integer. */
const numberDigits = 16;

export class EntryKeyspace<Value> implements Keyspace {
  readonly name: string;
  readonly kind: RecordKind;
  readonly codec: ValueCodec<Value>;
  readonly #entries = new StagedMap<Entry<Value>>();
  readonly #dead: DeadRecordListener;
  #listener: EntryListener<Value> | undefined;
  /** Bytes of the records of all committed entries. */
  #recordBytes = 0;

  constructor(
    name: string,
    kind: RecordKind,
    dead: DeadRecordListener,
    codec: ValueCodec<Value> = jsonCodec as ValueCodec<Value>,
  ) {
    this.name = name;
    this.kind = kind;
    this.codec = codec;
    this.#dead = dead;
  }

  /** Calls `listener` for every change when it becomes visible, also during replay; after earlier listeners. */
  listen(listener: EntryListener<Value>): void {
    const earlier = this.#listener;
    if (earlier === undefined) {
      this.#listener = listener;
      return;
    }
    this.#listener = (key, value, previous) => {
      earlier(key, value, previous);
      listener(key, value, previous);
    };
  }

  /** Returns the committed value. */
  get(key: string): Value | undefined {
    return this.#entries.get(key)?.value;
  }

  /** Returns the committed entry with its etag. */
  entry(key: string): Readonly<Entry<Value>> | undefined {
    return this.#entries.get(key);
  }

  /** Returns the staged value if there is one, else the committed one: the base for a writer. */
  newest(key: string): Value | undefined {
    return this.#entries.newest(key)?.value;
  }

  newestEntry(key: string): Readonly<Entry<Value>> | undefined {
    return this.#entries.newest(key);
  }

  get count(): number {
    return this.#entries.size;
  }

  /** Returns an immutable view of the committed entries. Cost: O(1); it needs no release. */
  view(): BTree<string, Readonly<Entry<Value>>> {
    return this.#entries.view();
  }

  /** Committed entries whose key begins with `prefix`, in key order. */
  *withPrefix(prefix: string): Generator<[string, Value]> {
    for (const [key, entry] of this.#entries.entries(prefix)) yield [key, entry.value];
  }

  /** Committed entries from `key`, inclusive, in key order. Nothing may be committed during the iteration. */
  *from(key: string): Generator<[string, Value]> {
    const cursor = this.#entries.cursor({ lower: key });
    while (cursor.next()) yield [cursor.key, cursor.value.value];
  }

  /** Committed entries whose key begins with `prefix`, in key order, from the key `from`. */
  range(prefix: string, from: string): Generator<[string, Readonly<Entry<Value>>]> {
    return this.#entries.entries(prefix, from);
  }

  /** As `range`, backward: from the key `from`, or the one before it. */
  rangeDown(prefix: string, from: string): Generator<[string, Readonly<Entry<Value>>]> {
    return this.#entries.entriesDown(prefix, from);
  }

  /** As `withPrefix`, including staged changes. */
  newestWithPrefix(prefix: string): Generator<[string, Readonly<Entry<Value>>]> {
    return this.#entries.newestEntries(prefix);
  }

  /** As `range`, including staged changes. */
  newestRange(prefix: string, from: string): Generator<[string, Readonly<Entry<Value>>]> {
    return this.#entries.newestEntries(prefix, from);
  }

  /** As `rangeDown`, including staged changes. */
  newestRangeDown(prefix: string, from: string): Generator<[string, Readonly<Entry<Value>>]> {
    return this.#entries.newestEntriesDown(prefix, from);
  }

  /**
   * Writes the record for `key` and `value` at `at` in `target`, which must have room; `length`: its `encodedLength`.
   * Hot: each transaction of an operation has one. Nothing is allocated.
   */
  static encode(
    target: Buffer,
    at: number,
    length: number,
    kind: RecordKind,
    key: string,
    value: string | Buffer | undefined,
    etag: number,
  ): void {
    assert(at + length <= target.length, "the record fits into its target");
    target.writeUInt32LE(length, at + recordLengthAt);
    target[at + recordKindAt] = kind;
    target[at + recordFlagsAt] = value === undefined ? deletionFlag : 0;
    const keyLength = target.utf8Write(key, at + recordHeaderBytes);
    assert(keyLength <= entryKeyBytesMax, "a key's length has 16 bits");
    target.writeUInt16LE(keyLength, at + recordKeyLengthAt);
    const valueAt = at + recordHeaderBytes + keyLength;
    const valueLength = value === undefined ? 0 : writeValue(target, valueAt, value);
    target.writeUInt32LE(valueLength, at + recordWordAt);
    target.writeUInt32LE(etag % 2 ** 32, at + recordEtagAt);
    target.writeUInt32LE(Math.floor(etag / 2 ** 32), at + recordEtagAt + 4);
    assert(paddedLength(keyLength, valueLength) === length, "a record has the computed length");
    for (let pad = valueAt + valueLength; pad < at + length; pad++) target[pad] = 0;
  }

  static encodedLength(key: string, value: string | Buffer | undefined): number {
    return paddedLength(Buffer.byteLength(key), value === undefined ? 0 : Buffer.byteLength(value));
  }

  stage(key: string, entry: Entry<Value> | undefined): void {
    this.#entries.stage(key, entry);
  }

  commitStaged(count: number): void {
    this.#entries.commitStaged(count, (key, entry, previous) =>
      this.#changed(key, entry, previous),
    );
  }

  discardStaged(count: number): void {
    this.#entries.discardStaged(count);
  }

  /** Removes a committed entry without a record: only where the replay of other records removes it too. */
  drop(key: string): void {
    this.#changed(key, undefined, this.#entries.apply(key, undefined));
  }

  /** Returns the entry that a record of this kind has; `undefined`: the record is a deletion. */
  entryOf(
    bytes: Buffer,
    start: number,
    length: number,
    position: Position,
  ): { readonly key: string; readonly entry: Entry<Value> | undefined } {
    const isDeletion = ((bytes[start + recordFlagsAt] ?? 0) & deletionFlag) !== 0;
    const entry = isDeletion ? undefined : this.#decode(bytes, start, length, position);
    return { key: keyOf(bytes, start), entry };
  }

  replay(bytes: Buffer, start: number, length: number, position: Position): void {
    const { key, entry } = this.entryOf(bytes, start, length, position);
    this.#changed(key, entry, this.#entries.apply(key, entry));
  }

  isLive(bytes: Buffer, start: number, _length: number, position: Position): boolean {
    return this.#entries.get(keyOf(bytes, start))?.position === position;
  }

  hasKeyOf(bytes: Buffer, start: number): boolean {
    return this.#entries.get(keyOf(bytes, start)) !== undefined;
  }

  positionOf(bytes: Buffer, start: number): Position {
    const entry = this.#entries.get(keyOf(bytes, start));
    return entry === undefined || entry.etag !== etagOf(bytes, start) ? -1 : entry.position;
  }

  relocate(bytes: Buffer, start: number, target: Position): void {
    const entry = this.#entries.get(keyOf(bytes, start));
    assert(entry !== undefined, "only an entry that is there is relocated");
    entry.position = target;
  }

  get snapshotBytes(): number {
    return this.#recordBytes + positionBytes * this.#entries.size;
  }

  /** Encodes the entries while they are written, from an immutable view: there may be millions. */
  sections(): SnapshotSection[] {
    return [{ name: `entries.${this.name}`, parts: this.#parts(this.#entries.view()) }];
  }

  *#parts(entries: BTree<string, Entry<Value>>): Generator<Uint8Array> {
    const cursor = entries.cursor();
    let part = Buffer.allocUnsafe(snapshotPartBytes);
    let used = 0;
    while (cursor.next()) {
      const { value: entry } = cursor;
      const { key } = cursor;
      const value = this.codec.encode(entry.value);
      const length = EntryKeyspace.encodedLength(key, value);
      const needed = positionBytes + length;
      if (used + needed > part.length) {
        yield part.subarray(0, used);
        part = Buffer.allocUnsafe(Math.max(snapshotPartBytes, needed));
        used = 0;
      }
      part.writeDoubleLE(entry.position, used);
      part.writeUInt32LE(0, used + 8 + 4);
      EntryKeyspace.encode(part, used + 8, length, this.kind, key, value, entry.etag);
      used += needed;
    }
    yield part.subarray(0, used);
  }

  restore(sections: ReadonlyMap<string, Buffer>): void {
    const bytes = sections.get(`entries.${this.name}`);
    // The snapshot is of an older version without this keyspace: then it was empty.
    if (bytes === undefined) return;
    for (let at = 0; at < bytes.length; ) {
      const length = bytes.readUInt32LE(at + 8 + recordLengthAt);
      this.replay(bytes, at + 8, length, bytes.readDoubleLE(at));
      at += 8 + length;
    }
  }

  checkInvariants(): void {
    this.#entries.checkInvariants();
  }

  #decode(bytes: Buffer, start: number, length: number, position: Position): Entry<Value> {
    const valueStart = start + recordHeaderBytes + bytes.readUInt16LE(start + recordKeyLengthAt);
    const valueLength = bytes.readUInt32LE(start + recordWordAt);
    const value = this.codec.decode(bytes, valueStart, valueStart + valueLength);
    return { value, etag: etagOf(bytes, start), position, length };
  }

  #changed(key: string, entry: Entry<Value> | undefined, previous: Entry<Value> | undefined): void {
    this.#recordBytes += (entry?.length ?? 0) - (previous?.length ?? 0);
    if (previous !== undefined) this.#dead(previous.position, previous.length);
    this.#listener?.(key, entry?.value, previous?.value);
  }
}

/** @returns its length in bytes */
function writeValue(target: Buffer, at: number, value: string | Buffer): number {
  if (typeof value === "string") return target.utf8Write(value, at);
  target.set(value, at);
  return value.length;
}

function paddedLength(keyLength: number, valueLength: number): number {
  return (recordHeaderBytes + keyLength + valueLength + 7) & ~7;
}

function keyOf(bytes: Buffer, start: number): string {
  const keyStart = start + recordHeaderBytes;
  return bytes.toString("utf8", keyStart, keyStart + bytes.readUInt16LE(start + recordKeyLengthAt));
}

function etagOf(bytes: Buffer, start: number): number {
  return Number(bytes.readBigUInt64LE(start + recordEtagAt));
}
