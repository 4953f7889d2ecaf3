/**
 * The CRC-32s of chunks of a segment that its writer has computed for the frames anyway, so that the sums of extents
 * (extent-sums.ts) need not read the same bytes again. Contains the chunks after the last extent with a sum.
 *
 * Invariants:
 * - Chunks are ascending and do not overlap. Their bytes have not changed since.
 */
import { crc32 } from "node:zlib";
import { combinedCrc } from "../../base/crc-combine.ts";

/** Minimum size of a recorded chunk: reading smaller chunks again costs less than combining their sums. */
export const pieceBytesMin = 16 * 1024;

export class ChunkSums {
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #sums: number[] = [];

  add(start: number, end: number, sum: number): void {
    this.#starts.push(start);
    this.#ends.push(end);
    this.#sums.push(sum);
  }

  /** Forgets the chunks that begin before `at`. */
  dropBelow(at: number): void {
    const found = this.#starts.findIndex((start) => start >= at);
    const count = found < 0 ? this.#starts.length : found;
    for (const list of [this.#starts, this.#ends, this.#sums]) list.splice(0, count);
  }

  /** Forgets the chunks that end after `at`: their bytes are going to be replaced. */
  cut(at: number): void {
    while ((this.#ends.at(-1) ?? 0) > at) {
      for (const list of [this.#starts, this.#ends, this.#sums]) list.pop();
    }
  }

  /** Returns the CRC-32 of `image[from, to)`; reads only bytes that no chunk covers. */
  sumOf(image: Buffer, from: number, to: number): number {
    let at = from;
    let sum = 0;
    for (const [piece, start] of this.#starts.entries()) {
      const end = this.#ends[piece] as number; // as many ends and sums as starts
      if (start < at) continue;
      if (end > to) break;
      if (start > at) sum = crc32(image.subarray(at, start), sum);
      sum = combinedCrc(sum, this.#sums[piece] as number, end - start);
      at = end;
    }
    return crc32(image.subarray(at, to), sum);
  }
}
