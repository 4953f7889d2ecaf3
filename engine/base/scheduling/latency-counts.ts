/** A histogram of durations, from a tenth of a millisecond to a minute. */

/** Upper bounds of the buckets in milliseconds, inclusive; the last bucket is unbounded. */
export const latencyBounds: readonly number[] = [
  0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 10_000, 60_000,
];

export class LatencyCounts {
  /** Number of durations by bucket; one more bucket than bounds. */
  readonly buckets = new Float64Array(latencyBounds.length + 1);
  count = 0;
  totalMs = 0;

  /** Hot. */
  add(ms: number): void {
    let at = 0;
    while (at < latencyBounds.length && ms > (latencyBounds[at] as number)) at++; // at < length
    this.buckets[at] = (this.buckets[at] as number) + 1; // at <= length
    this.count++;
    this.totalMs += ms;
  }
}

/** How long the device took to make writes durable, for all databases of the process. */
export const syncLatency = new LatencyCounts();
