/**
 * When each extent was last verified against its checksum (extent-sums.ts). The bytes of an extent that was verified
 * minutes ago came from the page cache or have been in it since, and are read from there again: they are not verified
 * again. A scan over more data than fits in memory would spend a third of its time verifying the same extents.
 *
 * A scrub always verifies. Damage anywhere in a segment ends the trust in all of its extents.
 */

/**
 * Milliseconds after which an extent is verified again: short compared with the time in which a device loses data, so
 * damage that enters the page cache with a later read of the device is soon detected.
 */
export const trustMs = 10 * 60 * 1000;

/** The times for one segment. */
export class ComparedExtents {
  /** By extent number: start of the last read whose bytes were verified, in milliseconds of the monotonic clock. */
  readonly #readAtMs: number[] = [];

  /** Returns whether the bytes of extent `index`, read at `nowMs`, may be used without verification. */
  isTrusted(index: number, nowMs: number): boolean {
    const readAtMs = this.#readAtMs[index];
    return readAtMs !== undefined && nowMs - readAtMs < trustMs;
  }

  /** Records that the bytes of extent `index`, read at `readAtMs`, matched their checksum. */
  add(index: number, readAtMs: number): void {
    while (this.#readAtMs.length < index) this.#readAtMs.push(Number.NEGATIVE_INFINITY);
    this.#readAtMs[index] = readAtMs;
  }

  /** To be called when something in the segment is damaged or could not be read. */
  forget(): void {
    this.#readAtMs.length = 0;
  }
}
