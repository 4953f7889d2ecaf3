/**
 * The header that every record of the log begins with, whatever its kind. What follows the header is
 * the business of the record's keyspace.
 *
 *   0        4         8       9        10          12        16      24
 *   +--------+---------+-------+--------+-----------+---------+-------+--- ... ---+
 *   | length | check   | kind  | flags  | keyLength | word    | etag  | kind's own|
 *   | u32    | u32     | u8    | u8     | u16       | u32     | u64   | bytes     |
 *   +--------+---------+-------+--------+-----------+---------+-------+--- ... ---+
 *
 * All integers are little-endian. These widths are on disk: never change them.
 *
 * - `length` counts the whole record with header and padding; it is a multiple of 8, at least 24.
 * - `check` covers bytes 8 to `length` (see `checkOf`); it is verified when a record is read from disk.
 * - `keyLength`, `word` and `flags` are free for the kind to use; `etag` is the database's counter,
 *   below 2^53, and 0 for a kind that has none.
 *
 * Invariants:
 * - A record begins at a multiple of 8 in its segment and never spans two frames.
 */

export const recordHeaderBytes = 24;

/** Byte offsets inside a record. */
export const recordLengthAt = 0;
export const recordCheckAt = 4;
export const recordKindAt = 8;
export const recordFlagsAt = 9;
export const recordKeyLengthAt = 10;
export const recordWordAt = 12;
export const recordEtagAt = 16;

/** The byte at `recordKindAt`; on disk, never reused for another kind. */
export const recordKinds = {
  document: 1,
  tombstone: 2,
  shape: 3,
  collection: 4,
  attachment: 5,
  counter: 6,
  identity: 7,
  compareExchange: 8,
  indexDefinition: 9,
  databaseRecord: 10,
  value: 11,
  revision: 12,
  operation: 13,
  subscription: 14,
  sequence: 15,
} as const;

export type RecordKind = (typeof recordKinds)[keyof typeof recordKinds];
