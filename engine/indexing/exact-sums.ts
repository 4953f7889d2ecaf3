/**
 * Sums of doubles that numbers can be taken out of again: each is a pair of doubles whose exact total it is, so that neither
 * the order of additions nor what was subtracted matters. A pair holds some 106 bits, which is enough for numbers of
 * similar size; when bits are lost, the caller is told, and adds everything anew.
 *
 * Invariants:
 * - `valueOf` is the double that is nearest to the exact sum, as long as `add` has returned true.
 *
 * Hot: bench/reduce.bench.ts.
 */
import { grownFloat64 } from "./packed.ts";

export class ExactSums {
  #highs: Float64Array = new Float64Array(16);
  #lows: Float64Array = new Float64Array(16);

  /** Makes a sum 0. Called before it is first used. */
  clear(sum: number): void {
    this.#highs = grownFloat64(this.#highs, sum + 1);
    this.#lows = grownFloat64(this.#lows, sum + 1);
    this.#highs[sum] = 0;
    this.#lows[sum] = 0;
  }

  valueOf(sum: number): number {
    return this.#highs[sum] as number;
  }

  /** @returns false when the sum is no longer exact */
  add(sum: number, value: number): boolean {
    const high = this.#highs[sum] as number;
    const low = this.#lows[sum] as number;
    const total = high + value;
    if (!Number.isFinite(total)) {
      this.#highs[sum] = total;
      this.#lows[sum] = 0;
      return false;
    }
    const error = errorOf(high, value, total);
    const rest = low + error;
    const isExact = errorOf(low, error, rest) === 0;
    const rounded = total + rest;
    this.#highs[sum] = rounded;
    this.#lows[sum] = errorOf(total, rest, rounded);
    return isExact;
  }
}

/** What is missing in the rounded sum of two numbers (Knuth's TwoSum). */
function errorOf(left: number, right: number, sum: number): number {
  const added = sum - left;
  return left - (sum - added) + (right - added);
}
