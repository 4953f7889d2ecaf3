/**
 * The record of a stored document: its layout, and reading its fields. Encoding is in document-encoding.ts; composing
 * the text of replies is in document-text.ts.
 *
 *   0 the common header (engine/base/record.ts); word@12 = bodyLength; keyLength = bytes of the id
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
 * - change vector: its text; empty = the default one, `A:<etag>-<database id>`.
 * - metadata: the members of `@metadata` that are stored, without braces, sorted by key; empty = only
 *   `@collection`, spelled as the collection is, or nothing in the collection `@empty`.
 * - body: minified JSON, an object without `@metadata`.
 * - field table: for each name of the shape the offset of its value from the body's start; u16 when
 *   the body is shorter than 64 KiB, else u32.
 *
 * A revision has the same layout under its own kind.
 *
 * Hot: bench/document-text.bench.ts.
 *
 * Invariants:
 * - These widths are on disk: never change them.
 * - The field table exists exactly when the shape id is not 0.
 * - Padding is zero: the bytes of a record are a function of its content.
 */

import {
  recordEtagAt,
  recordFlagsAt,
  recordHeaderBytes,
  recordKeyLengthAt,
  recordLengthAt,
  recordWordAt,
} from "../../base/record.ts";
import type { ChangeOrigin } from "./change-origin.ts";
import type { Shape } from "./shapes.ts";

// Aliases: V8 folds a module's own constants into the code, but loads imported and exported ones from
// their cells each time.
const lengthAt = recordLengthAt;
const flagsAt = recordFlagsAt;
const keyLengthAt = recordKeyLengthAt;
const wordAt = recordWordAt;
const etagAt = recordEtagAt;
const twoPow32 = 2 ** 32;
const headerBytes = recordHeaderBytes + 24;

const lastModifiedAt = recordHeaderBytes;
const metadataLengthAt = recordHeaderBytes + 8;
const shapeIdAt = recordHeaderBytes + 12;
const collectionIdAt = recordHeaderBytes + 16;
const changeVectorLengthAt = recordHeaderBytes + 18;
const fieldCountAt = recordHeaderBytes + 20;
const documentFlagsAt = recordHeaderBytes + 22;
/** Offsets of the fixed fields of a document's record, for its writers. */
export const documentRecordAt = {
  lastModified: lastModifiedAt,
  metadataLength: metadataLengthAt,
  shapeId: shapeIdAt,
  collectionId: collectionIdAt,
  changeVectorLength: changeVectorLengthAt,
  fieldCount: fieldCountAt,
} as const;
/** Bytes of a document's record before its id. */
export const documentHeaderBytes = headerBytes;

/** Bits of the flags byte of a document's record. */
export const documentRecordFlags = { ascii: 1, table: 2, wideTable: 4, metadata: 8 } as const;

/**
 * Bits of `documentFlags`, in the order in which `@flags` prints them (measured on RavenDB 7.2.7). On disk: never
 * change them.
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

/** Only in the row, beside `documentFlags`: the record stores its own change vector instead of the default one. */
export const explicitVectorRowFlag = 0x8000;

/** Bodies shorter than this have a table of 2-byte offsets. */
export const narrowBodyBytes = 65_536;
const narrowBytes = narrowBodyBytes;

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

/** Returns the record's length in bytes, header and padding included. */
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
/** Returns the entries of the field table: the shape's field count, or 0. */
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

/** Returns the id as its writer spelled it. */
export function idOf(bytes: Buffer, start: number): string {
  const from = start + headerBytes;
  return bytes.utf8Slice(from, from + idLengthOf(bytes, start));
}

/** Returns the change vector's text. */
export function changeVectorOf(bytes: Buffer, start: number, origin: ChangeOrigin): string {
  return storedChangeVectorOf(bytes, start) || origin.changeVectorAt(etagOf(bytes, start));
}

/** Returns the change vector in the record, which revisions store; "": the default one. */
export function storedChangeVectorOf(bytes: Buffer, start: number): string {
  const from = changeVectorStartOf(bytes, start);
  return bytes.latin1Slice(from, from + changeVectorLengthOf(bytes, start));
}

/** Returns the stored members of `@metadata` without braces; empty: see the header of this file. */
export function metadataTextOf(bytes: Buffer, start: number): string {
  const from = metadataStartOf(bytes, start);
  return bytes.utf8Slice(from, from + metadataLengthOf(bytes, start));
}

/** Returns the body's text. */
export function bodyTextOf(bytes: Buffer, start: number): string {
  const from = bodyStartOf(bytes, start);
  const to = from + bodyLengthOf(bytes, start);
  return isAsciiBody(bytes, start) ? bytes.latin1Slice(from, to) : bytes.utf8Slice(from, to);
}

/** Position of the field table, which the record must have. */
export function tableStartOf(bytes: Uint8Array, start: number, bodyStart: number): number {
  const bodyEnd = bodyStart + bodyLengthOf(bytes, start);
  const mask = bodyLengthOf(bytes, start) < narrowBytes ? 1 : 3;
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

export function readOffset(
  bytes: Uint8Array,
  table: number,
  bodyLength: number,
  index: number,
): number {
  if (bodyLength < narrowBytes) return readU16(bytes, table + 2 * index);
  return readU32(bytes, table + 4 * index);
}

/** Position after the value of field `index`, derived from where the next field begins, without reading the value. */
export function fieldEndOf(bytes: Uint8Array, start: number, index: number, shape: Shape): number {
  const next = index + 1;
  if (next === shape.nameLengths.length) {
    return bodyStartOf(bytes, start) + bodyLengthOf(bytes, start) - 1;
  }
  // Before the next value: a comma, its name with quotes, a colon.
  return fieldStartOf(bytes, start, next) - (shape.nameLengths[next] as number) - 2;
}
