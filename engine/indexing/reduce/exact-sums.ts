/**
 * Sums of doubles that support subtraction: each sum is a pair of doubles that represents the exact total, so that
 * neither the order of additions nor subtracted numbers affect it. A pair holds some 106 bits, which is enough for
 * numbers of similar size; if bits are lost, the caller is notified, and must add all numbers again.
 *
 * Invariants:
 * - `valueOf` is the double that is nearest to the exact sum, as long as `add` has returned true.
 *
 * Hot: bench/reduce.bench.ts.
 */
import { grownFloat64 } from "../columns/packed.ts";

export class ExactSums {
  /** Both halves of each pair stand together: they are read together. */
  #pairs: Float64Array = new Float64Array(16);

  /** Makes a sum 0. Called before it is first used. */
  clear(sum: number): void {
    this.#pairs = grownFloat64(this.#pairs, 2 * (sum + 1));
    this.#set(sum, 0, 0);
  }

  valueOf(sum: number): number {
    return this.#pairs[2 * sum] as number;
  }

  /** Returns both halves of a sum of integers, added up exactly. */
  integerOf(sum: number): bigint {
    return BigInt(this.#pairs[2 * sum] as number) + BigInt(this.#pairs[2 * sum + 1] as number);
  }

  /** @returns false when the sum is no longer exact */
  add(sum: number, value: number): boolean {
    const high = this.#pairs[2 * sum] as number;
    const low = this.#pairs[2 * sum + 1] as number;
    const total = high + value;
    if (!Number.isFinite(total)) {
      this.#set(sum, total, 0);
      return false;
    }
    const error = errorOf(high, value, total);
    const rest = low + error;
    const isExact = errorOf(low, error, rest) === 0;
    const rounded = total + rest;
    this.#set(sum, rounded, errorOf(total, rest, rounded));
    return isExact;
  }

  #set(sum: number, high: number, low: number): void {
    this.#pairs[2 * sum] = high;
    this.#pairs[2 * sum + 1] = low;
  }
}

/** Returns the rounding error of a sum (Knuth's TwoSum). */
function errorOf(left: number, right: number, sum: number): number {
  const added = sum - left;
  return left - (sum - added) + (right - added);
}
