/** Percentiles of the durations that a histogram has counted since the last call. */
import { LatencyCounts, latencyBounds } from "../../engine/base/scheduling/latency-counts.ts";

export class CountedLatency {
  readonly #counts: LatencyCounts;
  readonly #before = new LatencyCounts();

  constructor(counts: LatencyCounts) {
    this.#counts = counts;
    this.#keep();
  }

  /** Returns the number of durations, and the percentile in milliseconds for each of `shares`; NaN without durations. */
  look(shares: readonly number[]): { readonly count: number; readonly ms: readonly number[] } {
    const count = this.#counts.count - this.#before.count;
    const ms = shares.map((share) => this.#within(share * count, count));
    if (count > 0) this.#keep();
    return { count, ms };
  }

  /** Durations within a bucket are assumed to be evenly distributed. */
  #within(wanted: number, count: number): number {
    if (count <= 0) return Number.NaN;
    let sum = 0;
    for (let at = 0; at <= latencyBounds.length; at++) {
      const own = (this.#counts.buckets[at] as number) - (this.#before.buckets[at] as number); // same length
      if (own > 0 && sum + own >= wanted) {
        const from = at === 0 ? 0 : (latencyBounds[at - 1] as number);
        const to = latencyBounds[at] ?? from;
        return from + ((to - from) * Math.max(0, wanted - sum)) / own;
      }
      sum += own;
    }
    return latencyBounds.at(-1) as number;
  }

  #keep(): void {
    this.#before.buckets.set(this.#counts.buckets);
    this.#before.count = this.#counts.count;
  }
}
