/**
 * The rollup of one group of entries of a time series: for each value the first, last, minimum, maximum, sum and count.
 * Rollups can be rolled up further.
 */
import { rollupParts } from "../../state/keyspaces/time-series/series-policies.ts";

const [firstAt, lastAt, minAt, maxAt, sumAt, countAt] = [0, 1, 2, 3, 4, 5];
const partCount = rollupParts.length;

export class RollupGroup {
  /** Its first millisecond. */
  readonly start: number;
  /** End of the group, exclusive, in milliseconds. */
  readonly end: number;
  readonly #values: number[] = [];

  constructor(start: number, end: number) {
    this.start = start;
    this.end = end;
  }

  /** Adds an entry of a raw series: `values` from `begin` to `end`, exclusive. Entries must be in time order. */
  add(values: Float64Array, begin: number, end: number): void {
    for (let at = begin; at < end; at++) {
      const value = values[at] as number; // at < end
      this.#addTo(at - begin, value, value, value, value, value, 1);
    }
  }

  /** Adds an entry of a rollup. */
  addRollup(values: Float64Array, begin: number, end: number): void {
    for (let at = begin; at + partCount <= end; at += partCount) {
      const count = values[at + countAt] as number; // at + partCount <= end
      if (count === 0) continue;
      this.#addTo(
        (at - begin) / partCount,
        values[at + firstAt] as number,
        values[at + lastAt] as number,
        values[at + minAt] as number,
        values[at + maxAt] as number,
        values[at + sumAt] as number,
        count,
      );
    }
  }

  /** Returns the numbers of its rollup. All are 0 for a value that no entry has. */
  values(): number[] {
    return [...this.#values];
  }

  #addTo(
    column: number,
    first: number,
    last: number,
    least: number,
    greatest: number,
    sum: number,
    count: number,
  ): void {
    const at = column * partCount;
    const own = this.#values;
    while (own.length < at + partCount) own.push(0);
    const isEmpty = own[at + countAt] === 0;
    if (isEmpty) own[at + firstAt] = first;
    own[at + lastAt] = last;
    own[at + minAt] = isEmpty ? least : Math.min(own[at + minAt] as number, least);
    own[at + maxAt] = isEmpty ? greatest : Math.max(own[at + maxAt] as number, greatest);
    own[at + sumAt] = (own[at + sumAt] as number) + sum;
    own[at + countAt] = (own[at + countAt] as number) + count;
  }
}
