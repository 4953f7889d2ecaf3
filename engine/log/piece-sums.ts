/**
 * The CRC-32s of pieces of a segment that its writer has computed for the frames anyway, so that the sums of extents
 * (extent-sums.ts) need not read the same bytes again. Knows the pieces from the first extent without a sum on.
 *
 * Invariants:
 * - Pieces ascend and do not overlap. Their bytes have not changed since.
 */
import { crc32 } from "node:zlib";
import { combinedCrc } from "../base/crc-combine.ts";

/** Pieces of fewer bytes are not remembered: reading them again costs less than combining their sums. */
export const pieceBytesMin = 16 * 1024;

export class PieceSums {
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #sums: number[] = [];

  add(start: number, end: number, sum: number): void {
    this.#starts.push(start);
    this.#ends.push(end);
    this.#sums.push(sum);
  }

  /** Forgets the pieces that begin before `at`. */
  dropBelow(at: number): void {
    const found = this.#starts.findIndex((start) => start >= at);
    const count = found < 0 ? this.#starts.length : found;
    for (const list of [this.#starts, this.#ends, this.#sums]) list.splice(0, count);
  }

  /** Forgets the pieces that end after `at`: their bytes are going to be replaced. */
  cut(at: number): void {
    while ((this.#ends.at(-1) ?? 0) > at) {
      for (const list of [this.#starts, this.#ends, this.#sums]) list.pop();
    }
  }

  /** The CRC-32 of `image[from, to)`, reading only what no piece covers. */
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
