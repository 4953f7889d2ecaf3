/**
 * Types for the lifetime of bytes.
 *
 * Buffers borrowed from the log (`CommitLog.peek`, the place of a record) are in memory that is recycled: they are
 * valid until the next tick of the event loop, unless their block is held. Code that retains bytes longer declares them
 * as `KeptBytes`: the compiler refuses a borrowed buffer there, until it is copied.
 */

/** Only in types: the mark is on no object. */
declare const transient: unique symbol;

/**
 * Valid until the next tick of the event loop, longer only while its block is held. The same applies to its subarrays.
 */
export interface TransientBytes extends Buffer {
  readonly [transient]: true;
  subarray(start?: number, end?: number): TransientBytes;
}

/** Bytes that are not modified while they are referenced: any buffer that was not borrowed. */
export type KeptBytes = Buffer & { readonly [transient]?: never };

/** Marks bytes in recycled memory as lent. */
export function lent(bytes: Buffer): TransientBytes {
  return bytes as TransientBytes;
}

/** A copy, to be kept for longer. */
export function kept(bytes: Buffer): KeptBytes {
  return Buffer.from(bytes);
}
