/**
 * The text of a document as sent to clients, composed from its record: the stored body and `@metadata`. Hot:
 * bench/document-text.bench.ts.
 */

import {
  appendBytes,
  byteBackslash,
  byteComma,
  byteObjectClose,
  byteQuote,
} from "../../base/json/bytes.ts";
import { quoteString, writeStringCharacter } from "../../base/json/escape.ts";
import { timestampBytes, writeTimestamp } from "../../base/timestamp.ts";
import type { ChangeOrigin } from "./change-origin.ts";
import {
  bodyLengthOf,
  bodyStartOf,
  changeVectorLengthOf,
  changeVectorStartOf,
  documentFlags,
  documentFlagsOf,
  documentHeaderBytes,
  etagOf,
  idLengthOf,
  lastModifiedOf,
  metadataLengthOf,
} from "./document-record.ts";

// Aliases: V8 folds a module's own constants into the code, but loads imported ones from their cells each time.
const backslash = byteBackslash;
const comma = byteComma;
const objectClose = byteObjectClose;
const quote = byteQuote;
const headerBytes = documentHeaderBytes;
const append = appendBytes;

const noBytes = Buffer.alloc(0);

/** `"@collection":"Users"`: the metadata of a document when none is stored. Empty for `@empty`. */
export function collectionMemberOf(collection: string): Buffer {
  if (collection === "@empty") return noBytes;
  return Buffer.concat([Buffer.from('"@collection":'), quoteString(collection)]);
}

const metadataOpen = Buffer.from('"@metadata":{', "latin1");
const changeVectorOpen = Buffer.from('"@change-vector":"', "latin1");
const idOpen = Buffer.from('","@id":"', "latin1");
const idOpenAfterFlags = Buffer.from('"@id":"', "latin1");
const lastModifiedOpen = Buffer.from('"@last-modified":"', "latin1");

/** `","@flags":"HasRevisions",` for each value of `documentFlags` seen so far. */
const flagsMembers = new Map<number, Buffer>();

/** Returns the text of `@flags`: the names in the order of their bits. Empty for 0. */
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

/** Decimal digits of an integer from 0 to 2^53. */
function digitCount(value: number): number {
  let count = 1;
  for (let bound = 10; value >= bound; bound *= 10) count++;
  return count;
}

/** Returns the bytes of an id's text inside a JSON string. */
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
 * Returns the bytes that `composeMetadata` writes for this record.
 * @param collectionMember `collectionMemberOf` the record's collection.
 * @param origin the record's database.
 * @param extra members that follow `@id`, each followed by a comma: `"@index-score":1.5,`.
 */
export function composedMetadataLength(
  bytes: Buffer,
  start: number,
  collectionMember: Buffer,
  origin: ChangeOrigin,
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
      : origin.metadataOpen.length +
        digitCount(etagOf(bytes, start)) +
        1 +
        origin.hashBytes.length) +
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
  origin: ChangeOrigin,
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
    const { hashBytes, metadataOpen: open } = origin;
    next = append(target, next, open, 0, open.length);
    next = writeDecimal(target, next, etagOf(bytes, start));
    target[next++] = 0x2d;
    next = append(target, next, hashBytes, 0, hashBytes.length);
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

/** Writes an integer from 0 to 2^53. @returns the position after it */
export function writeDecimal(target: Buffer, at: number, value: number): number {
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

/** Returns the bytes that `composeDocument` writes for this record. Parameters as for `composedMetadataLength`. */
export function composedLength(
  bytes: Buffer,
  start: number,
  collectionMember: Buffer,
  origin: ChangeOrigin,
  extra: Buffer,
): number {
  const body = bodyLengthOf(bytes, start);
  const comma = body > 2 ? 1 : 0;
  return body + comma + composedMetadataLength(bytes, start, collectionMember, origin, extra);
}

/**
 * Writes the document as sent to clients: its own members, then `@metadata`. Byte for byte the same as RavenDB 7.2.7.
 * Parameters as for `composedMetadataLength`.
 * @returns the bytes written.
 */
export function composeDocument(
  target: Buffer,
  at: number,
  bytes: Buffer,
  start: number,
  collectionMember: Buffer,
  origin: ChangeOrigin,
  extra: Buffer,
): number {
  const bodyLength = bodyLengthOf(bytes, start);
  let next = append(target, at, bytes, bodyStartOf(bytes, start), bodyLength - 1);
  if (bodyLength > 2) target[next++] = comma;
  next += composeMetadata(target, next, bytes, start, collectionMember, origin, extra);
  target[next++] = objectClose;
  return next - at;
}

/** Writes only `{"@metadata":{…}}`, 2 bytes more than `composedMetadataLength`. */
export function composeMetadataOnly(
  target: Buffer,
  at: number,
  bytes: Buffer,
  start: number,
  collectionMember: Buffer,
  origin: ChangeOrigin,
  extra: Buffer,
): number {
  target[at] = 0x7b;
  const length = composeMetadata(target, at + 1, bytes, start, collectionMember, origin, extra);
  target[at + 1 + length] = objectClose;
  return length + 2;
}
