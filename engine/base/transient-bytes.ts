/**
 * How long bytes may be used, as their type says it.
 *
 * What the log lends without a copy (`CommitLog.peek`, the place of a record) is in memory that is recycled: it is valid
 * until the next turn of the event loop, unless its block is held. Whoever keeps bytes for longer declares them as
 * `KeptBytes`: what is lent is refused there by the compiler, until it is copied.
 */

/** Only in types: the mark is on no object. */
declare const transient: unique symbol;

/** Valid until the next turn of the event loop, longer only while its block is held. A part of it is no better. */
export interface TransientBytes extends Buffer {
  readonly [transient]: true;
  subarray(start?: number, end?: number): TransientBytes;
}

/** Bytes that stay as they are for as long as they are referenced: any buffer that was not lent. */
export type KeptBytes = Buffer & { readonly [transient]?: never };

/** Marks bytes in recycled memory as lent. */
export function lent(bytes: Buffer): TransientBytes {
  return bytes as TransientBytes;
}

/** A copy, to be kept for longer. */
export function kept(bytes: Buffer): KeptBytes {
  return Buffer.from(bytes);
}
