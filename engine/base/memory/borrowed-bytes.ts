/**
 * Types for the lifetime of bytes.
 *
 * Buffers borrowed from the log (`CommitLog.peek`, the place of a record) are in memory that is recycled: they are
 * valid until the next tick of the event loop, unless their block is held. Code that retains bytes longer declares them
 * as `OwnedBytes`: the compiler refuses a borrowed buffer there, until it is copied.
 */

/** Only in types: the mark is on no object. */
declare const borrowedMark: unique symbol;

/**
 * Valid until the next tick of the event loop, longer only while its block is held. The same applies to its subarrays.
 */
export interface BorrowedBytes extends Buffer {
  readonly [borrowedMark]: true;
  subarray(start?: number, end?: number): BorrowedBytes;
}

/** Bytes that are not modified while they are referenced: any buffer that was not borrowed. */
export type OwnedBytes = Buffer & { readonly [borrowedMark]?: never };

/** Marks bytes in recycled memory as borrowed. */
export function borrowed(bytes: Buffer): BorrowedBytes {
  return bytes as BorrowedBytes;
}

/** Returns a copy, whose lifetime is unlimited. */
export function ownedCopy(bytes: Buffer): OwnedBytes {
  return Buffer.from(bytes);
}
