/**
 * Encoding document records: a whole one, or a copy with some top-level values replaced. The layout is in
 * document-record.ts. Hot: bench/document-text.bench.ts, bench/patch.bench.ts.
 */
import { assert } from "../../base/assert.ts";
import { appendBytes, byteObjectClose, copyBytes } from "../../base/json/bytes.ts";
import { changeVectorBytesMax, nameBytesMax } from "../../base/limits.ts";
import {
  recordCheckAt,
  recordEtagAt,
  recordFlagsAt,
  recordKindAt,
  recordKinds,
  recordLengthAt,
  recordWordAt,
  wordsOf,
} from "../../base/record.ts";
import {
  bodyLengthOf,
  bodyStartOf,
  changeVectorLengthOf,
  changeVectorStartOf,
  collectionIdOf,
  documentFlagsOf,
  documentHeaderBytes,
  documentRecordAt,
  documentRecordFlags,
  etagOf,
  fieldCountOf,
  fieldEndOf,
  fieldStartOf,
  idLengthOf,
  idStartOf,
  isAsciiBody,
  lastModifiedOf,
  metadataLengthOf,
  metadataStartOf,
  narrowBodyBytes,
  readOffset,
  shapeIdOf,
  tableStartOf,
} from "./document-record.ts";
import type { ParsedDocument } from "./parsed-document.ts";
import type { Shape } from "./shapes.ts";

// Aliases: V8 folds a module's own constants into the code, but loads imported ones from their cells each time.
const lengthAt = recordLengthAt;
const checkAt = recordCheckAt;
const kindAt = recordKindAt;
const flagsAt = recordFlagsAt;
const wordAt = recordWordAt;
const etagAt = recordEtagAt;
const lastModifiedAt = documentRecordAt.lastModified;
const metadataLengthAt = documentRecordAt.metadataLength;
const shapeIdAt = documentRecordAt.shapeId;
const collectionIdAt = documentRecordAt.collectionId;
const changeVectorLengthAt = documentRecordAt.changeVectorLength;
const fieldCountAt = documentRecordAt.fieldCount;
const headerBytes = documentHeaderBytes;
const narrowBytes = narrowBodyBytes;
const objectClose = byteObjectClose;
const append = appendBytes;
const twoPow32 = 2 ** 32;

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

const noBytes = Buffer.alloc(0);
const shortTextMax = 64;

const emptyBody = Buffer.from("{}");

/** Longer sources are not referenced after they have been encoded. */
const retainedBytesMax = 64 * 1024;

/** Parts of a record, which must be set for each record. */
const idPart = 1;
const changeVectorPart = 2;
const metadataPart = 4;
const bodyPart = 8;
const allParts = idPart | changeVectorPart | metadataPart | bodyPart;

/**
 * The content of one document's record: filled, and encoded once. Reused for the next: the parts are views, so the
 * sources must not change before the record is encoded.
 *
 * Invariants:
 * - A record is encoded only if each part was set since the last record: data of another record, including data set by
 *   callees in between, is never encoded.
 * - Encoded data is released, if it is large.
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
  /** 0 = the default one, derived from the etag. */
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
  fieldOffsets: Uint32Array = new Uint32Array(0);
  #parts = 0;

  readonly #idScratch = Buffer.alloc(nameBytesMax);
  #changeVectorScratch = Buffer.alloc(256);
  #offsetsScratch = new Uint32Array(64);

  /** @param id at most `nameBytesMax` bytes of UTF-8, checked by the caller. */
  setId(id: string): void {
    this.#parts |= idPart;
    this.idSource = this.#idScratch;
    this.idStart = 0;
    this.idLength = writeShortText(this.#idScratch, id);
    assert(this.idLength > 0, "a document has an id");
  }

  /** @param text the change vector; empty = the default one. */
  setChangeVector(text: string): void {
    assert(text.length <= changeVectorBytesMax, "a change vector fits into its length field");
    this.#parts |= changeVectorPart;
    this.changeVectorLength = 0;
    if (text === "") return;
    if (this.#changeVectorScratch.length < text.length) {
      this.#changeVectorScratch = Buffer.alloc(2 * text.length);
    }
    this.changeVectorSource = this.#changeVectorScratch;
    this.changeVectorStart = 0;
    this.changeVectorLength = this.#changeVectorScratch.latin1Write(text, 0);
  }

  /** @param length of the stored members' text in `source` at `start`; 0 = only the collection's member. */
  setMetadata(source: Buffer, start: number, length: number): void {
    this.#parts |= metadataPart;
    this.metadataSource = source;
    this.metadataStart = start;
    this.metadataLength = length;
  }

  /** Uses body, shape and offsets of a parsed document. */
  setBody({ found, placed }: ParsedDocument): void {
    this.#parts |= bodyPart;
    this.bodySource = placed === null ? found.source : placed.bytes;
    this.bodyStart = placed === null ? found.sourceStart : placed.bodyStart;
    this.bodyLength = found.bodyLength;
    this.isAscii = found.isAscii;
    this.shapeId = found.shapeId;
    this.fieldCount = found.fieldCount;
    this.fieldOffsets = found.fieldOffsets;
  }

  /**
   * Uses a body in stored form: `length` bytes at the start of `source`.
   * @param fieldOffsets of its top-level values, `fieldCount` of them
   */
  setBodyText(
    source: Buffer,
    length: number,
    isAscii: boolean,
    shapeId: number,
    fieldCount: number,
    fieldOffsets: Uint32Array,
  ): void {
    this.#parts |= bodyPart;
    this.bodySource = source;
    this.bodyStart = 0;
    this.bodyLength = length;
    this.isAscii = isAscii;
    this.shapeId = shapeId;
    this.fieldCount = fieldCount;
    this.fieldOffsets = fieldOffsets;
  }

  /** Uses body, shape and offsets of a record: for writing the same body with other metadata. */
  setBodyOf(bytes: Buffer, start: number): void {
    this.#parts |= bodyPart;
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

  /** Uses an empty body, with which a record only carries metadata. */
  setEmptyBody(): void {
    this.setBodyText(emptyBody, emptyBody.length, true, 0, 0, this.#offsetsScratch);
  }

  /** Uses everything except the body of a record: for writing the same document with another body. */
  setAllButBody(bytes: Buffer, start: number): void {
    this.#parts |= idPart | changeVectorPart;
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

  /** The record has been encoded. @throws InvariantError when a part was not set for it */
  end(): void {
    assert(this.#parts === allParts, "each part of a record is set for it alone");
    this.#parts = 0;
    this.kind = recordKinds.document;
    // The id is in memory of its own, or in the record that was rewritten; the body may be in the text of a batch.
    const { bodySource, idSource } = this;
    if (bodySource.length <= retainedBytesMax && idSource.length <= retainedBytesMax) return;
    this.idSource = noBytes;
    this.changeVectorSource = noBytes;
    this.metadataSource = noBytes;
    this.bodySource = noBytes;
  }
}

/** Writes UTF-8 at 0: byte by byte while that is faster than the native call, which has a fixed cost. */
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
  const isNarrow = bodyLength < narrowBytes;
  const table = isNarrow ? (end + 1) & ~1 : (end + 3) & ~3;
  return (table + fieldCount * (isNarrow ? 2 : 4) + 7) & ~7;
}

/** Returns the bytes of the record that `encodeDocumentRecord` writes. */
export function documentRecordLength(fields: DocumentFields): number {
  const parts = fields.idLength + fields.changeVectorLength + fields.metadataLength;
  return lengthOfParts(parts, fields.bodyLength, fields.fieldCount);
}

/**
 * Encodes a document's record at `at`, a multiple of 4 in memory, except for its checksum, and releases the fields;
 * `target` must have room for `documentRecordLength(fields)` bytes. Of the parts only the body may be in `target`, beyond
 * `at`.
 * @returns the length in bytes.
 */
export function encodeDocumentRecord(target: Buffer, at: number, fields: DocumentFields): number {
  const length = documentRecordLength(fields);
  const parts = fields.idLength + fields.changeVectorLength + fields.metadataLength;
  const bodyStart = at + headerBytes + parts;
  if (fields.bodySource === target) {
    assert(fields.bodyStart >= at, "a body in the target follows the bytes written before it");
    // It may be where other parts go: it is moved first.
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
  fields.end();
  return length;
}

/** Writes the fixed part, a word at a time. */
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

function recordFlagsOf(
  isAscii: boolean,
  shapeId: number,
  bodyLength: number,
  metadataLength: number,
): number {
  let flags = isAscii ? documentRecordFlags.ascii : 0;
  if (shapeId !== 0) flags |= documentRecordFlags.table;
  if (shapeId !== 0 && bodyLength >= narrowBytes) flags |= documentRecordFlags.wideTable;
  if (metadataLength > 0) flags |= documentRecordFlags.metadata;
  return flags;
}

/** Pads up to the beginning of the field table. @returns that position. */
function startTable(target: Buffer, recordStart: number, at: number, bodyLength: number): number {
  const mask = bodyLength < narrowBytes ? 1 : 3;
  const table = recordStart + ((at - recordStart + mask) & ~mask);
  zero(target, at, table);
  return table;
}

function writeOffset(target: Buffer, at: number, bodyLength: number, offset: number): number {
  if (bodyLength < narrowBytes) {
    writeU16(target, at, offset);
    return at + 2;
  }
  writeU32(target, at, offset);
  return at + 4;
}

function zero(target: Buffer, from: number, to: number): void {
  for (let i = from; i < to; i++) target[i] = 0;
}

/** New values for fields of one record. Created once and reused. */
export class FieldPatches {
  count = 0;
  /** Fields of the shape, ascending, each at most once. */
  readonly indexes: number[] = [];
  /** The stored text of each new value: `source[from, to)`. */
  source: Buffer = noBytes;
  readonly froms: number[] = [];
  readonly tos: number[] = [];
  /** Whether all new values are ASCII. */
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

/** Returns the bytes of the record that `patchFields` writes. */
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
 * Writes at `at` a copy of the record at `start` with some of its top-level values replaced, except for its checksum.
 * Nothing is parsed: the text between the new values is copied, and the offsets after them are shifted.
 * @param shape the record's shape, which it must have.
 * @param changeVector text of the new change vector in ASCII; empty = the default one.
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
