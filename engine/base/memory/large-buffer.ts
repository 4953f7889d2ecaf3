/**
 * Buffers for large data with the lifetime of a request, whose memory is returned to the system when they are
 * collected.
 *
 * The C library keeps freed blocks of up to 32 MiB for reuse, and cannot return them while memory above them is in use.
 * Larger blocks have their own pages, and pages that are never written to use no memory.
 */

/** Size from which on the C library always maps pages from the system. */
const ownPagesBytes = 33 * 1024 * 1024;
/** Size from which this is worthwhile: the collector counts each such buffer as `ownPagesBytes`. */
const largeBytes = 4 * 1024 * 1024;

/** Size of a growing buffer from which on it grows eightfold. */
const rarelyGrownBytes = 4 * 1024 * 1024;
const grownBytesMin = 64 * 1024;

/**
 * Returns a larger buffer for data that needs `length` bytes now, and at most about `lengthMax` in the end. The data is
 * copied in one call, so large buffers grow rarely: unwritten pages use no memory.
 */
export function grownBuffer(length: number, lengthMax: number): Buffer {
  if (length < rarelyGrownBytes) return largeBuffer(Math.max(grownBytesMin, 2 * length));
  return largeBuffer(Math.max(length, Math.min(8 * length, lengthMax + rarelyGrownBytes)));
}

/** Returns a buffer of `length` bytes with undefined content. */
export function largeBuffer(length: number): Buffer {
  if (length < largeBytes) return Buffer.allocUnsafeSlow(length);
  return Buffer.allocUnsafeSlow(Math.max(length, ownPagesBytes)).subarray(0, length);
}
