/**
 * Memory for large things that live for a request: given back to the system when it is collected.
 *
 * The C library keeps what is freed in blocks of up to 32 MiB for later, and cannot give it back while something behind it is
 * in use. What is larger than that has pages of its own, and pages that nobody writes to take no memory.
 */

/** Bytes from which on the C library always takes pages from the system. */
const ownPagesBytes = 33 * 1024 * 1024;
/** Bytes from which on it is worth it: each such buffer counts as `ownPagesBytes` for the collector. */
const largeBytes = 4 * 1024 * 1024;

/** Bytes of a growing buffer from which on the next one is eight times as large. */
const rarelyGrownBytes = 4 * 1024 * 1024;
const grownBytesMin = 64 * 1024;

/**
 * A larger buffer for what must have room for `length` bytes now, and in the end for at most about `lengthMax`. What there is
 * is copied to it in one turn, so large ones grow rarely: what is not written takes no memory.
 */
export function grownBuffer(length: number, lengthMax: number): Buffer {
  if (length < rarelyGrownBytes) return largeBuffer(Math.max(grownBytesMin, 2 * length));
  return largeBuffer(Math.max(length, Math.min(8 * length, lengthMax + rarelyGrownBytes)));
}

/** A buffer of `length` bytes whose content is not defined. */
export function largeBuffer(length: number): Buffer {
  if (length < largeBytes) return Buffer.allocUnsafeSlow(length);
  return Buffer.allocUnsafeSlow(Math.max(length, ownPagesBytes)).subarray(0, length);
}
