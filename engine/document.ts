/**
 * A stored document: its record's bytes, how one is written, read, patched, and how the text that a
 * reader gets is composed of it. Knows nothing of keyspaces, nor of where records lie.
 *
 *   0 the common header (engine/log/record.ts); word@12 = bodyLength; keyLength = bytes of the id
 *   24             32               36        40             42
 *   +--------------+----------------+---------+--------------+--------------------+
 *   | lastModified | metadataLength | shapeId | collectionId | changeVectorLength |
 *   | u64, µs      | u32            | u32     | u16          | u16                |
 *   +--------------+----------------+---------+--------------+--------------------+
 *   44           46
 *   +------------+---------------+
 *   | fieldCount | documentFlags |
 *   | u16        | u16           |
 *   +------------+---------------+
 *   48 …  id · change vector · metadata · body · pad to 2 or 4 · field table · pad to 8
 *
 * - id: UTF-8, spelled as the writer did.
 * - change vector: its text; empty = the usual one, `A:<etag>-<database id>`.
 * - metadata: the members of `@metadata` that are stored, without braces, sorted by key; empty = only
 *   `@collection`, spelled as the collection is, or nothing in the collection `@empty`.
 * - body: minified JSON, an object without `@metadata`.
 * - field table: for each name of the shape the offset of its value from the body's begin; u16 when
 *   the body is shorter than 64 KiB, else u32.
 *
 * A revision has the same layout under its own kind.
 *
 * Hot: bench/document-text.bench.ts.
 *
 * Invariants:
 * - These widths are on disk: never change them.
 * - The field table is there exactly when the shape id is not 0.
 * - Padding is zero: the bytes of a record are a function of what it says.
 */
import { assert } from "./assert.ts";
import { byteBackslash, byteComma, byteObjectClose, byteQuote, copyBytes } from "./json/bytes.ts";
import { quoteString, writeStringCharacter } from "./json/escape.ts";
import type { DocumentParser } from "./json/json-parser.ts";
import type { Shape } from "./keyspaces/shapes.ts";
import { changeVectorBytesMax, nameBytesMax } from "./limits.ts";
import {
  recordCheckAt,
  recordEtagAt,
  recordFlagsAt,
  recordHeaderBytes,
  recordKeyLengthAt,
  recordKindAt,
  recordKinds,
  recordLengthAt,
  recordWordAt,
  wordsOf,
} from "./log/record.ts";
import { timestampBytes, writeTimestamp } from "./timestamp.ts";

// Aliases: V8 folds a module's own constants into the code, but loads imported and exported ones from
// their cells each time.
const lengthAt = recordLengthAt;
const checkAt = recordCheckAt;
const kindAt = recordKindAt;
const flagsAt = recordFlagsAt;
const keyLengthAt = recordKeyLengthAt;
const wordAt = recordWordAt;
const etagAt = recordEtagAt;
const backslash = byteBackslash;
const comma = byteComma;
const objectClose = byteObjectClose;
const quote = byteQuote;
const headerBytes = recordHeaderBytes + 24;

const lastModifiedAt = recordHeaderBytes;
const metadataLengthAt = recordHeaderBytes + 8;
const shapeIdAt = recordHeaderBytes + 12;
const collectionIdAt = recordHeaderBytes + 16;
const changeVectorLengthAt = recordHeaderBytes + 18;
const fieldCountAt = recordHeaderBytes + 20;
const documentFlagsAt = recordHeaderBytes + 22;
/** Bytes of a document's record before its id. */
export const documentHeaderBytes = headerBytes;

/** Bits of the flags byte of a document's record. */
export const documentRecordFlags = { ascii: 1, table: 2, wideTable: 4, metadata: 8 } as const;

/**
 * Bits of `documentFlags`, in the order in which `@flags` prints them (measured on RavenDB 7.2.7).
 * On disk: never change them.
 */
export const documentFlags = {
  Artificial: 1,
  HasRevisions: 2,
  DeleteRevision: 4,
  FromIndex: 8,
  FromOldDocumentRevision: 0x4000,
  Revision: 16,
  FromReplication: 32,
  HasAttachments: 64,
  Resolved: 128,
  Conflicted: 256,
  HasCounters: 512,
  FromClusterTransaction: 1024,
  Reverted: 2048,
  HasTimeSeries: 4096,
  ForceCreated: 8192,
} as const;

/** In the row only, beside `documentFlags`: the record has a change vector of its own, not the usual one. */
export const explicitVectorRowFlag = 0x8000;

/** Bodies shorter than this have a table of 2-byte offsets. */
const narrowBodyBytes = 65_536;
const twoPow32 = 2 ** 32;

function readU16(bytes: Uint8Array, at: number): number {
  return (bytes[at] as number) | ((bytes[at + 1] as number) << 8);
}

function readU32(bytes: Uint8Array, at: number): number {
  const high = (bytes[at + 3] as number) * 0x1000000;
  return (
    high +
    ((bytes[at] as number) | ((bytes[at + 1] as number) << 8) | ((bytes[at + 2] as number) << 16))
  );
}

function writeU16(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value;
  bytes[at + 1] = value >> 8;
}

function writeU32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value;
  bytes[at + 1] = value >> 8;
  bytes[at + 2] = value >> 16;
  bytes[at + 3] = value >> 24;
}

/** Writes a whole number from 0 to 2^53 in 8 bytes. */
function writeU64(bytes: Uint8Array, at: number, value: number): void {
  writeU32(bytes, at, value | 0); // the lower 32 bits: `%` of doubles is slow
  writeU32(bytes, at + 4, Math.floor(value / twoPow32));
}

/** The record's length in bytes, header and padding included. */
export function recordLengthOf(bytes: Uint8Array, start: number): number {
  return readU32(bytes, start + lengthAt);
}
export function etagOf(bytes: Uint8Array, start: number): number {
  return readU32(bytes, start + etagAt) + readU32(bytes, start + etagAt + 4) * twoPow32;
}
/** Microseconds since 1970. */
export function lastModifiedOf(bytes: Uint8Array, start: number): number {
  const at = start + lastModifiedAt;
  return readU32(bytes, at) + readU32(bytes, at + 4) * twoPow32;
}
export function shapeIdOf(bytes: Uint8Array, start: number): number {
  return readU32(bytes, start + shapeIdAt);
}
export function collectionIdOf(bytes: Uint8Array, start: number): number {
  return readU16(bytes, start + collectionIdAt);
}
/** Bits of `documentFlags`. */
export function documentFlagsOf(bytes: Uint8Array, start: number): number {
  return readU16(bytes, start + documentFlagsAt);
}
/** Entries of the field table: the shape's field count, or 0. */
export function fieldCountOf(bytes: Uint8Array, start: number): number {
  return readU16(bytes, start + fieldCountAt);
}
export function isAsciiBody(bytes: Uint8Array, start: number): boolean {
  return ((bytes[start + flagsAt] as number) & documentRecordFlags.ascii) !== 0;
}
export function idLengthOf(bytes: Uint8Array, start: number): number {
  return readU16(bytes, start + keyLengthAt);
}
export function changeVectorLengthOf(bytes: Uint8Array, start: number): number {
  return readU16(bytes, start + changeVectorLengthAt);
}
export function metadataLengthOf(bytes: Uint8Array, start: number): number {
  return readU32(bytes, start + metadataLengthAt);
}
export function bodyLengthOf(bytes: Uint8Array, start: number): number {
  return readU32(bytes, start + wordAt);
}

/** Position of the id; the other parts follow it without gaps. */
export function idStartOf(_bytes: Uint8Array, start: number): number {
  return start + headerBytes;
}
export function changeVectorStartOf(bytes: Uint8Array, start: number): number {
  return start + headerBytes + idLengthOf(bytes, start);
}
export function metadataStartOf(bytes: Uint8Array, start: number): number {
  return changeVectorStartOf(bytes, start) + changeVectorLengthOf(bytes, start);
}
export function bodyStartOf(bytes: Uint8Array, start: number): number {
  return metadataStartOf(bytes, start) + metadataLengthOf(bytes, start);
}

/** The id as its writer spelled it. */
export function idOf(bytes: Buffer, start: number): string {
  const from = start + headerBytes;
  return bytes.utf8Slice(from, from + idLengthOf(bytes, start));
}

/** The change vector's text. */
export function changeVectorOf(bytes: Buffer, start: number, databaseId: string): string {
  const length = changeVectorLengthOf(bytes, start);
  if (length === 0) return `A:${etagOf(bytes, start)}-${databaseId}`;
  const from = changeVectorStartOf(bytes, start);
  return bytes.latin1Slice(from, from + length);
}

/** The stored members of `@metadata` without braces; empty: see the header of this file. */
export function metadataTextOf(bytes: Buffer, start: number): string {
  const from = metadataStartOf(bytes, start);
  return bytes.utf8Slice(from, from + metadataLengthOf(bytes, start));
}

/** The body's text. */
export function bodyTextOf(bytes: Buffer, start: number): string {
  const from = bodyStartOf(bytes, start);
  const to = from + bodyLengthOf(bytes, start);
  return isAsciiBody(bytes, start) ? bytes.latin1Slice(from, to) : bytes.utf8Slice(from, to);
}

/** Position of the field table, which the record must have. */
function tableStartOf(bytes: Uint8Array, start: number, bodyStart: number): number {
  const bodyEnd = bodyStart + bodyLengthOf(bytes, start);
  const mask = bodyLengthOf(bytes, start) < narrowBodyBytes ? 1 : 3;
  // Records begin at multiples of 8 in their segment, but a copy may begin anywhere.
  return start + ((bodyEnd - start + mask) & ~mask);
}

/**
 * Position of the value of field `index` of the record's shape.
 * @param index from 0, below `fieldCountOf`.
 */
export function fieldStartOf(bytes: Uint8Array, start: number, index: number): number {
  const bodyStart = bodyStartOf(bytes, start);
  const table = tableStartOf(bytes, start, bodyStart);
  return bodyStart + readOffset(bytes, table, bodyLengthOf(bytes, start), index);
}

function readOffset(bytes: Uint8Array, table: number, bodyLength: number, index: number): number {
  if (bodyLength < narrowBodyBytes) return readU16(bytes, table + 2 * index);
  return readU32(bytes, table + 4 * index);
}

/** The position behind the value of field `index`: the next key tells it, so the value is not read. */
export function fieldEndOf(bytes: Uint8Array, start: number, index: number, shape: Shape): number {
  const next = index + 1;
  if (next === shape.nameLengths.length) {
    return bodyStartOf(bytes, start) + bodyLengthOf(bytes, start) - 1;
  }
  // Before the next value: a comma, its name with quotes, a colon.
  return fieldStartOf(bytes, start, next) - (shape.nameLengths[next] as number) - 2;
}

const noBytes = Buffer.alloc(0);
const shortTextMax = 64;

/**
 * What goes into a document's record. Made once and reused: the parts are views, so the sources must
 * not change before the record is encoded.
 */
export class DocumentFields {
  kind: number = recordKinds.document;
  etag = 0;
  /** Microseconds since 1970. */
  lastModified = 0;
  collectionId = 0;
  /** Bits of `documentFlags`. */
  flags = 0;
  idSource: Buffer = noBytes;
  idStart = 0;
  idLength = 0;
  changeVectorSource: Buffer = noBytes;
  changeVectorStart = 0;
  /** 0 = the usual one, made of the etag. */
  changeVectorLength = 0;
  metadataSource: Buffer = noBytes;
  metadataStart = 0;
  metadataLength = 0;
  bodySource: Buffer = noBytes;
  bodyStart = 0;
  bodyLength = 0;
  isAscii = true;
  shapeId = 0;
  fieldCount = 0;
  fieldOffsets = new Uint32Array(0);

  readonly #idScratch = Buffer.alloc(nameBytesMax);
  #changeVectorScratch = Buffer.alloc(256);
  #offsetsScratch = new Uint32Array(64);

  /** @param id at most `nameBytesMax` bytes of UTF-8, which the caller has checked. */
  setId(id: string): void {
    this.idSource = this.#idScratch;
    this.idStart = 0;
    this.idLength = writeShortText(this.#idScratch, id);
    assert(this.idLength > 0, "a document has an id");
  }

  /** @param text the change vector; empty = the usual one. */
  setChangeVector(text: string): void {
    assert(text.length <= changeVectorBytesMax, "a change vector fits into its length field");
    this.changeVectorLength = 0;
    if (text === "") return;
    if (this.#changeVectorScratch.length < text.length) {
      this.#changeVectorScratch = Buffer.alloc(2 * text.length);
    }
    this.changeVectorSource = this.#changeVectorScratch;
    this.changeVectorStart = 0;
    this.changeVectorLength = this.#changeVectorScratch.latin1Write(text, 0);
  }

  /** @param length of the stored members' text in `source` at `start`; 0 = the collection's own. */
  setMetadata(source: Buffer, start: number, length: number): void {
    this.metadataSource = source;
    this.metadataStart = start;
    this.metadataLength = length;
  }

  /** Takes body, shape and offsets from the last document that was parsed. */
  setBody(parser: DocumentParser): void {
    this.bodySource = parser.source;
    this.bodyStart = parser.sourceStart;
    this.bodyLength = parser.bodyLength;
    this.isAscii = parser.isAscii;
    this.shapeId = parser.shapeId;
    this.fieldCount = parser.fieldCount;
    this.fieldOffsets = parser.fieldOffsets;
  }

  /** Takes body, shape and offsets of a record: for writing the same body with other metadata. */
  setBodyOf(bytes: Buffer, start: number): void {
    this.bodySource = bytes;
    this.bodyStart = bodyStartOf(bytes, start);
    this.bodyLength = bodyLengthOf(bytes, start);
    this.isAscii = isAsciiBody(bytes, start);
    this.shapeId = shapeIdOf(bytes, start);
    this.fieldCount = fieldCountOf(bytes, start);
    if (this.#offsetsScratch.length < this.fieldCount) {
      this.#offsetsScratch = new Uint32Array(2 * this.fieldCount);
    }
    this.fieldOffsets = this.#offsetsScratch;
    for (let i = 0; i < this.fieldCount; i++) {
      this.fieldOffsets[i] = fieldStartOf(bytes, start, i) - this.bodyStart;
    }
  }

  /** Takes everything of a record but its body: for writing the same document with another body. */
  setAllButBody(bytes: Buffer, start: number): void {
    this.kind = bytes[start + kindAt] as number;
    this.etag = etagOf(bytes, start);
    this.lastModified = lastModifiedOf(bytes, start);
    this.collectionId = collectionIdOf(bytes, start);
    this.flags = documentFlagsOf(bytes, start);
    this.idSource = bytes;
    this.idStart = idStartOf(bytes, start);
    this.idLength = idLengthOf(bytes, start);
    this.changeVectorSource = bytes;
    this.changeVectorStart = changeVectorStartOf(bytes, start);
    this.changeVectorLength = changeVectorLengthOf(bytes, start);
    this.setMetadata(bytes, metadataStartOf(bytes, start), metadataLengthOf(bytes, start));
  }
}

/** Writes UTF-8 at 0: byte by byte while that is quicker than the native call, which has a fixed cost. */
function writeShortText(target: Buffer, text: string): number {
  const length = text.length;
  if (length > shortTextMax) return target.utf8Write(text, 0);
  for (let i = 0; i < length; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0x80) return target.utf8Write(text, 0);
    target[i] = unit;
  }
  return length;
}

function lengthOfParts(partsLength: number, bodyLength: number, fieldCount: number): number {
  const end = headerBytes + partsLength + bodyLength;
  if (fieldCount === 0) return (end + 7) & ~7;
  const isNarrow = bodyLength < narrowBodyBytes;
  const table = isNarrow ? (end + 1) & ~1 : (end + 3) & ~3;
  return (table + fieldCount * (isNarrow ? 2 : 4) + 7) & ~7;
}

/** Bytes of the record that `encodeDocumentRecord` would write. */
export function documentRecordLength(fields: DocumentFields): number {
  const parts = fields.idLength + fields.changeVectorLength + fields.metadataLength;
  return lengthOfParts(parts, fields.bodyLength, fields.fieldCount);
}

/**
 * Writes a document's record at `at`, a multiple of 4 in memory, all but its check; `target` must have room for
 * `documentRecordLength(fields)` bytes. Of the parts only the body may be in `target` beyond `at`.
 * @returns the length in bytes.
 */
export function encodeDocumentRecord(target: Buffer, at: number, fields: DocumentFields): number {
  const length = documentRecordLength(fields);
  const parts = fields.idLength + fields.changeVectorLength + fields.metadataLength;
  const bodyStart = at + headerBytes + parts;
  if (fields.bodySource === target) {
    // It may be where the others go: it moves first.
    if (fields.bodyStart !== bodyStart) {
      target.copyWithin(bodyStart, fields.bodyStart, fields.bodyStart + fields.bodyLength - 1);
    }
  } else append(target, bodyStart, fields.bodySource, fields.bodyStart, fields.bodyLength - 1);
  writeHeader(target, at, length, fields);
  let next = at + headerBytes;
  next = append(target, next, fields.idSource, fields.idStart, fields.idLength);
  next = append(
    target,
    next,
    fields.changeVectorSource,
    fields.changeVectorStart,
    fields.changeVectorLength,
  );
  next = append(target, next, fields.metadataSource, fields.metadataStart, fields.metadataLength);
  next = bodyStart + fields.bodyLength;
  target[next - 1] = objectClose;
  if (fields.fieldCount > 0) {
    next = startTable(target, at, next, fields.bodyLength);
    const offsets = fields.fieldOffsets;
    for (let i = 0; i < fields.fieldCount; i++) {
      next = writeOffset(target, next, fields.bodyLength, offsets[i] as number);
    }
  }
  zero(target, next, at + length);
  return length;
}

/** The fixed part, a word at a time. */
function writeHeader(target: Buffer, at: number, length: number, fields: DocumentFields): void {
  const flags = recordFlagsOf(
    fields.isAscii,
    fields.shapeId,
    fields.bodyLength,
    fields.metadataLength,
  );
  assert(((target.byteOffset + at) & 3) === 0, "a record is made of whole words");
  const words = wordsOf(target);
  const word = (target.byteOffset + at) >>> 2;
  words[word + (lengthAt >> 2)] = length;
  words[word + (checkAt >> 2)] = 0;
  words[word + (kindAt >> 2)] = fields.kind | (flags << 8) | (fields.idLength << 16);
  words[word + (wordAt >> 2)] = fields.bodyLength;
  words[word + (etagAt >> 2)] = fields.etag | 0;
  words[word + (etagAt >> 2) + 1] = Math.floor(fields.etag / twoPow32);
  words[word + (lastModifiedAt >> 2)] = fields.lastModified | 0;
  words[word + (lastModifiedAt >> 2) + 1] = Math.floor(fields.lastModified / twoPow32);
  words[word + (metadataLengthAt >> 2)] = fields.metadataLength;
  words[word + (shapeIdAt >> 2)] = fields.shapeId;
  words[word + (collectionIdAt >> 2)] = fields.collectionId | (fields.changeVectorLength << 16);
  words[word + (fieldCountAt >> 2)] = fields.fieldCount | (fields.flags << 16);
}

function append(target: Buffer, at: number, source: Buffer, start: number, length: number): number {
  copyBytes(target, at, source, start, start + length);
  return at + length;
}

function recordFlagsOf(
  isAscii: boolean,
  shapeId: number,
  bodyLength: number,
  metadataLength: number,
): number {
  let flags = isAscii ? documentRecordFlags.ascii : 0;
  if (shapeId !== 0) flags |= documentRecordFlags.table;
  if (shapeId !== 0 && bodyLength >= narrowBodyBytes) flags |= documentRecordFlags.wideTable;
  if (metadataLength > 0) flags |= documentRecordFlags.metadata;
  return flags;
}

/** Pads up to where the table begins. @returns that position. */
function startTable(target: Buffer, recordStart: number, at: number, bodyLength: number): number {
  const mask = bodyLength < narrowBodyBytes ? 1 : 3;
  const table = recordStart + ((at - recordStart + mask) & ~mask);
  zero(target, at, table);
  return table;
}

function writeOffset(target: Buffer, at: number, bodyLength: number, offset: number): number {
  if (bodyLength < narrowBodyBytes) {
    writeU16(target, at, offset);
    return at + 2;
  }
  writeU32(target, at, offset);
  return at + 4;
}

function zero(target: Buffer, from: number, to: number): void {
  for (let i = from; i < to; i++) target[i] = 0;
}

/** New values for fields of one record. Made once and reused. */
export class FieldPatches {
  count = 0;
  /** Which fields of the shape, ascending, each at most once. */
  readonly indexes: number[] = [];
  /** The stored text of each new value: `source[from, to)`. */
  source: Buffer = noBytes;
  readonly froms: number[] = [];
  readonly tos: number[] = [];
  /** Whether all the new values are ASCII. */
  isAscii = true;
}

function patchedBodyLength(
  bytes: Buffer,
  start: number,
  patches: FieldPatches,
  shape: Shape,
): number {
  let length = bodyLengthOf(bytes, start);
  for (let k = 0; k < patches.count; k++) {
    const index = patches.indexes[k] as number;
    length += (patches.tos[k] as number) - (patches.froms[k] as number);
    length -= fieldEndOf(bytes, start, index, shape) - fieldStartOf(bytes, start, index);
  }
  return length;
}

/** Bytes of the record that `patchFields` would write. */
export function patchedRecordLength(
  bytes: Buffer,
  start: number,
  patches: FieldPatches,
  shape: Shape,
  changeVectorLength: number,
): number {
  const parts = idLengthOf(bytes, start) + changeVectorLength + metadataLengthOf(bytes, start);
  const bodyLength = patchedBodyLength(bytes, start, patches, shape);
  return lengthOfParts(parts, bodyLength, fieldCountOf(bytes, start));
}

/**
 * Writes at `at` the record at `start` with some of its top-level values replaced, all but the check.
 * Nothing is parsed: what stands between the new values is copied, and offsets behind them shift.
 * @param shape the record's shape, which it must have.
 * @param changeVector text of the new change vector in ASCII; empty = the usual one.
 * @returns the length in bytes.
 */
export function patchFields(
  target: Buffer,
  at: number,
  bytes: Buffer,
  start: number,
  patches: FieldPatches,
  shape: Shape,
  etag: number,
  lastModified: number,
  changeVector: Buffer,
): number {
  const oldBody = bodyStartOf(bytes, start);
  const bodyLength = patchedBodyLength(bytes, start, patches, shape);
  const parts = idLengthOf(bytes, start) + changeVector.length + metadataLengthOf(bytes, start);
  const length = lengthOfParts(parts, bodyLength, fieldCountOf(bytes, start));
  copyBytes(target, at, bytes, start, start + headerBytes + idLengthOf(bytes, start));
  writeU32(target, at + lengthAt, length);
  writeU32(target, at + checkAt, 0);
  target[at + flagsAt] = recordFlagsOf(
    isAsciiBody(bytes, start) && patches.isAscii,
    shape.id,
    bodyLength,
    metadataLengthOf(bytes, start),
  );
  writeU32(target, at + wordAt, bodyLength);
  writeU64(target, at + etagAt, etag);
  writeU64(target, at + lastModifiedAt, lastModified);
  writeU16(target, at + changeVectorLengthAt, changeVector.length);
  let next = at + headerBytes + idLengthOf(bytes, start);
  next = append(target, next, changeVector, 0, changeVector.length);
  next = append(target, next, bytes, metadataStartOf(bytes, start), metadataLengthOf(bytes, start));
  const bodyStart = next;
  let copied = oldBody;
  for (let k = 0; k < patches.count; k++) {
    const index = patches.indexes[k] as number;
    const from = fieldStartOf(bytes, start, index);
    const value = patches.froms[k] as number;
    next = append(target, next, bytes, copied, from - copied);
    next = append(target, next, patches.source, value, (patches.tos[k] as number) - value);
    copied = fieldEndOf(bytes, start, index, shape);
  }
  next = append(target, next, bytes, copied, oldBody + bodyLengthOf(bytes, start) - copied);
  assert(next - bodyStart === bodyLength, "a patched body is as long as was computed");
  next = startTable(target, at, next, bodyLength);
  let shift = 0;
  let patch = 0;
  const fieldCount = fieldCountOf(bytes, start);
  const oldLength = bodyLengthOf(bytes, start);
  const oldTable = tableStartOf(bytes, start, oldBody);
  for (let i = 0; i < fieldCount; i++) {
    const offset = readOffset(bytes, oldTable, oldLength, i);
    next = writeOffset(target, next, bodyLength, offset + shift);
    if (patch < patches.count && patches.indexes[patch] === i) {
      shift += (patches.tos[patch] as number) - (patches.froms[patch] as number);
      shift -= fieldEndOf(bytes, start, i, shape) - oldBody - offset;
      patch++;
    }
  }
  assert(patch === patches.count, "patches are in the order of the fields");
  zero(target, next, at + length);
  return length;
}

/** `"@collection":"Users"`: what a document's metadata has when none is stored. Empty for `@empty`. */
export function collectionMemberOf(collection: string): Buffer {
  if (collection === "@empty") return noBytes;
  return Buffer.concat([Buffer.from('"@collection":'), quoteString(collection)]);
}

const metadataOpen = Buffer.from('"@metadata":{', "latin1");
const changeVectorOpen = Buffer.from('"@change-vector":"', "latin1");
const usualChangeVectorOpen = Buffer.from('"@change-vector":"A:', "latin1");
const idOpen = Buffer.from('","@id":"', "latin1");
const idOpenAfterFlags = Buffer.from('"@id":"', "latin1");
const lastModifiedOpen = Buffer.from('"@last-modified":"', "latin1");

/** `","@flags":"HasRevisions",` for each value of `documentFlags` that was met. */
const flagsMembers = new Map<number, Buffer>();

/** The text of `@flags`: the names in the order of their bits. Empty for 0. */
export function flagsText(flags: number): string {
  return Object.entries(documentFlags)
    .filter(([, bit]) => (flags & bit) !== 0)
    .map(([name]) => name)
    .join(", ");
}

function flagsMember(flags: number): Buffer {
  let member = flagsMembers.get(flags);
  if (member === undefined) {
    member = Buffer.from(`","@flags":"${flagsText(flags)}",`, "latin1");
    flagsMembers.set(flags, member);
  }
  return member;
}

/** Decimal digits of a whole number from 0 to 2^53. */
function digitCount(value: number): number {
  let count = 1;
  for (let bound = 10; value >= bound; bound *= 10) count++;
  return count;
}

/** Bytes that the text of an id takes inside a JSON string. */
function quotedLength(bytes: Uint8Array, from: number, to: number): number {
  let length = to - from;
  for (let i = from; i < to; i++) {
    const byte = bytes[i] as number;
    if (byte === quote || byte === backslash) length++;
    else if (byte < 0x20) length += writeStringCharacter(escapeScratch, 0, byte) - 1;
  }
  return length;
}

const escapeScratch = Buffer.alloc(8);

/**
 * Bytes that `composeMetadata` writes for this record.
 * @param collectionMember `collectionMemberOf` the record's collection.
 * @param databaseId the 22 characters, in ASCII.
 * @param extra members that follow `@id`, each with a comma behind it: `"@index-score":1.5,`.
 */
export function composedMetadataLength(
  bytes: Buffer,
  start: number,
  collectionMember: Buffer,
  databaseId: Buffer,
  extra: Buffer,
): number {
  const stored = metadataLengthOf(bytes, start);
  const members = stored > 0 ? stored : collectionMember.length;
  const vector = changeVectorLengthOf(bytes, start);
  const flags = documentFlagsOf(bytes, start);
  const id = start + headerBytes;
  return (
    metadataOpen.length +
    (members > 0 ? members + 1 : 0) +
    (vector > 0
      ? changeVectorOpen.length + vector
      : usualChangeVectorOpen.length + digitCount(etagOf(bytes, start)) + 1 + databaseId.length) +
    (flags === 0 ? idOpen.length : flagsMember(flags).length + idOpenAfterFlags.length) +
    quotedLength(bytes, id, id + idLengthOf(bytes, start)) +
    2 +
    extra.length +
    lastModifiedOpen.length +
    timestampBytes +
    2
  );
}

/**
 * Writes `"@metadata":{…}` of a record: the stored members, then `@change-vector`, `@flags` if any,
 * `@id`, `extra`, `@last-modified`. Parameters as for `composedMetadataLength`.
 * @returns the bytes written.
 */
export function composeMetadata(
  target: Buffer,
  at: number,
  bytes: Buffer,
  start: number,
  collectionMember: Buffer,
  databaseId: Buffer,
  extra: Buffer,
): number {
  let next = append(target, at, metadataOpen, 0, metadataOpen.length);
  const stored = metadataLengthOf(bytes, start);
  const vectorStart = changeVectorStartOf(bytes, start);
  const vectorLength = changeVectorLengthOf(bytes, start);
  if (stored > 0) {
    next = append(target, next, bytes, vectorStart + vectorLength, stored);
    target[next++] = comma;
  } else if (collectionMember.length > 0) {
    next = append(target, next, collectionMember, 0, collectionMember.length);
    target[next++] = comma;
  }
  if (vectorLength > 0) {
    next = append(target, next, changeVectorOpen, 0, changeVectorOpen.length);
    next = append(target, next, bytes, vectorStart, vectorLength);
  } else {
    next = append(target, next, usualChangeVectorOpen, 0, usualChangeVectorOpen.length);
    next = writeDecimal(target, next, etagOf(bytes, start));
    target[next++] = 0x2d;
    next = append(target, next, databaseId, 0, databaseId.length);
  }
  const flags = documentFlagsOf(bytes, start);
  if (flags !== 0) {
    const member = flagsMember(flags);
    next = append(target, next, member, 0, member.length);
    next = append(target, next, idOpenAfterFlags, 0, idOpenAfterFlags.length);
  } else next = append(target, next, idOpen, 0, idOpen.length);
  next = writeQuoted(target, next, bytes, start + headerBytes, idLengthOf(bytes, start));
  target[next++] = quote;
  target[next++] = comma;
  next = append(target, next, extra, 0, extra.length);
  next = append(target, next, lastModifiedOpen, 0, lastModifiedOpen.length);
  writeTimestamp(target, next, lastModifiedOf(bytes, start));
  next += timestampBytes;
  target[next++] = quote;
  target[next++] = objectClose;
  return next - at;
}

function writeDecimal(target: Buffer, at: number, value: number): number {
  const end = at + digitCount(value);
  let rest = value;
  for (let i = end - 1; i >= at; i--) {
    const next = Math.floor(rest / 10);
    // In this order: near 2^53 a sum with 0x30 would be rounded.
    target[i] = 0x30 + (rest - next * 10);
    rest = next;
  }
  return end;
}

function writeQuoted(
  target: Buffer,
  at: number,
  bytes: Buffer,
  from: number,
  length: number,
): number {
  let next = at;
  for (let i = from; i < from + length; i++) {
    const byte = bytes[i] as number;
    if (byte === quote || byte === backslash || byte < 0x20) {
      next += writeStringCharacter(target, next, byte);
    } else target[next++] = byte;
  }
  return next;
}

/** Bytes that `composeDocument` writes for this record. Parameters as for `composedMetadataLength`. */
export function composedLength(
  bytes: Buffer,
  start: number,
  collectionMember: Buffer,
  databaseId: Buffer,
  extra: Buffer,
): number {
  const body = bodyLengthOf(bytes, start);
  const comma = body > 2 ? 1 : 0;
  return body + comma + composedMetadataLength(bytes, start, collectionMember, databaseId, extra);
}

/**
 * Writes the document as a reader gets it: its own members, then `@metadata`. Byte for byte what
 * RavenDB 7.2.7 answers. Parameters as for `composedMetadataLength`.
 * @returns the bytes written.
 */
export function composeDocument(
  target: Buffer,
  at: number,
  bytes: Buffer,
  start: number,
  collectionMember: Buffer,
  databaseId: Buffer,
  extra: Buffer,
): number {
  const bodyLength = bodyLengthOf(bytes, start);
  let next = append(target, at, bytes, bodyStartOf(bytes, start), bodyLength - 1);
  if (bodyLength > 2) target[next++] = comma;
  next += composeMetadata(target, next, bytes, start, collectionMember, databaseId, extra);
  target[next++] = objectClose;
  return next - at;
}

/** Writes `{"@metadata":{…}}` alone, 2 bytes more than `composedMetadataLength`. */
export function composeMetadataOnly(
  target: Buffer,
  at: number,
  bytes: Buffer,
  start: number,
  collectionMember: Buffer,
  databaseId: Buffer,
  extra: Buffer,
): number {
  target[at] = 0x7b;
  const length = composeMetadata(target, at + 1, bytes, start, collectionMember, databaseId, extra);
  target[at + 1 + length] = objectClose;
  return length + 2;
}
