/**
 * When extents were last compared with their sums (extent-sums.ts). Bytes that were right when they were read some minutes
 * ago came out of the system's memory, or are in it since, and do so again: they are not compared again. A walk over more
 * data than there is memory for reads the same extents again and again, and would spend a third of its time on that.
 *
 * Scrub compares always. Damage anywhere in a segment ends the trust in all of it.
 */

/**
 * Milliseconds after which what was right is compared again: short beside the time that a device takes to lose what it
 * holds, and what the system reads from it anew is seen by a comparison soon.
 */
export const trustMs = 10 * 60 * 1000;

/** Of one segment. */
export class ComparedExtents {
  /** By number of the extent: when bytes were read that were right, by the clock that never goes backward. */
  readonly #readAtMs: number[] = [];

  /** Need the bytes of extent `index`, read at `nowMs`, not be compared? */
  isTrusted(index: number, nowMs: number): boolean {
    const readAtMs = this.#readAtMs[index];
    return readAtMs !== undefined && nowMs - readAtMs < trustMs;
  }

  /** The bytes of extent `index`, read at `readAtMs`, are right. */
  add(index: number, readAtMs: number): void {
    while (this.#readAtMs.length < index) this.#readAtMs.push(Number.NEGATIVE_INFINITY);
    this.#readAtMs[index] = readAtMs;
  }

  /** Something in the segment is damaged, or could not be read. */
  forget(): void {
    this.#readAtMs.length = 0;
  }
}
