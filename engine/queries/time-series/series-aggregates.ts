/**
 * The aggregates of one group of entries, for each position among the values of an entry. Entries with fewer values than
 * others count for their own positions only.
 *
 * Hot: an addition runs once for each value of each entry.
 */
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import { rollupParts } from "../../state/keyspaces/time-series/series-policies.ts";
import type { SeriesAggregate } from "./analyze-series.ts";

/** One position of one group. */
class Column {
  count = 0;
  sum = 0;
  min = Number.POSITIVE_INFINITY;
  max = Number.NEGATIVE_INFINITY;
  first = 0;
  last = 0;
  /** Mean and sum of squared distances from it, by Welford's method. */
  mean = 0;
  squares = 0;
  /** All values, for percentiles; its length is at least `count`. */
  values: Float64Array | null = null;
}

/** Bytes of a column, without its values. */
const columnBytes = 128;
/** Values of a column that are kept at first. */
const valuesMin = 16;

export class SeriesGroup {
  readonly #columns: Column[] = [];
  readonly #keepsValues: boolean;
  readonly #budget: WorkBudget;

  constructor(keepsValues: boolean, budget: WorkBudget) {
    this.#keepsValues = keepsValues;
    this.#budget = budget;
  }

  /** Adds an entry with the values from `start` (inclusive) to `end` (exclusive). @throws work-limit, memory-full */
  add(values: Float64Array, start: number, end: number): void {
    const columns = this.#columns;
    while (columns.length < end - start) {
      this.#budget.hold(columnBytes);
      columns.push(new Column());
    }
    for (let at = start; at < end; at++) {
      const value = values[at] as number; // at < end
      const column = columns[at - start] as Column;
      const count = ++column.count;
      if (count === 1) column.first = value;
      column.last = value;
      column.sum += value;
      if (value < column.min) column.min = value;
      if (value > column.max) column.max = value;
      const distance = value - column.mean;
      column.mean += distance / count;
      column.squares += distance * (value - column.mean);
      if (this.#keepsValues) this.#keep(column, value);
    }
  }

  /**
   * Adds a rollup (state/keyspaces/time-series/series-policies.ts): first, last, least, greatest, sum and number of each value. Not for
   * percentiles, slopes and deviations, which need the values themselves. @throws memory-full
   */
  addRollup(values: Float64Array, start: number, end: number): void {
    const columns = this.#columns;
    for (let at = start, i = 0; at + rollupParts.length <= end; at += rollupParts.length, i++) {
      if (i === columns.length) {
        this.#budget.hold(columnBytes);
        columns.push(new Column());
      }
      const column = columns[i] as Column;
      const [first, last, min, max, sum, count] = values.subarray(at, at + rollupParts.length);
      if (count === undefined || count === 0) continue;
      if (column.count === 0) column.first = first as number; // six are there
      column.last = last as number;
      column.min = Math.min(column.min, min as number);
      column.max = Math.max(column.max, max as number);
      column.sum += sum as number;
      column.count += count;
    }
  }

  #keep(column: Column, value: number): void {
    let { values } = column;
    if (values === null || values.length < column.count) {
      const larger = values === null ? valuesMin : values.length * 2;
      this.#budget.hold((larger - (values?.length ?? 0)) * 8);
      const kept = values;
      values = new Float64Array(larger);
      if (kept !== null) values.set(kept);
      column.values = values;
    }
    values[column.count - 1] = value;
  }

  /**
   * For each aggregate its numbers by position. `lengthMs`: of the group's time. Must be called only once, because it
   * releases the held memory. `scale` multiplies all but counts and averages, as in RavenDB 7.2.7.
   */
  *results(
    aggregates: readonly SeriesAggregate[],
    lengthMs: number,
    scale: number,
  ): Work<number[][]> {
    const results: number[][] = [];
    for (const { kind, percent } of aggregates) {
      const numbers: number[] = [];
      for (const column of this.#columns) {
        if (kind === "percentile") {
          numbers.push((yield* percentile(column, percent, this.#budget)) * scale);
        } else {
          const number = fastPathResult(column, kind, lengthMs);
          numbers.push(kind === "count" || kind === "average" ? number : number * scale);
        }
      }
      results.push(numbers);
    }
    for (const column of this.#columns) {
      this.#budget.release(columnBytes + (column.values?.length ?? 0) * 8);
      column.values = null;
    }
    return results;
  }
}

function fastPathResult(
  column: Column,
  kind: Exclude<SeriesAggregate["kind"], "percentile">,
  lengthMs: number,
): number {
  switch (kind) {
    case "average":
      return column.sum / column.count;
    case "slope":
      return (column.last - column.first) / lengthMs;
    case "stddev":
      return Math.sqrt(column.squares / (column.count - 1));
    default:
      return column[kind];
  }
}

/** Between the neighbors of rank percent / 100 * (count + 1), which is at least 1 and at most the count. */
function* percentile(column: Column, percent: number, budget: WorkBudget): Work<number> {
  const { count } = column;
  const values = column.values as Float64Array; // the group keeps values
  const rank = Math.max(1, Math.min(count, (percent / 100) * (count + 1)));
  const below = Math.floor(rank) - 1;
  yield* partition(values, count, below, budget);
  const low = values[below] as number; // below < count
  if (rank === below + 1) return low;
  let high = Number.POSITIVE_INFINITY;
  for (let at = below + 1; at < count; at++) high = Math.min(high, values[at] as number);
  return low + (rank - below - 1) * (high - low);
}

/** Elements between two checks of the budget. */
const stride = 8192;

/** Reorders values[0, count) so that the value at `wanted` is in its sorted position, and no later value is less. */
function* partition(
  values: Float64Array,
  count: number,
  wanted: number,
  budget: WorkBudget,
): Work<void> {
  let from = 0;
  let to = count - 1;
  let seed = count;
  let work = 0;
  while (from < to) {
    // Any pivot is correct; an unpredictable one keeps the expected cost linear for adversarial input.
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    const pivot = values[from + (seed % (to - from + 1))] as number;
    let low = from;
    let high = to;
    while (low <= high) {
      while ((values[low] as number) < pivot) low++;
      while ((values[high] as number) > pivot) high--;
      if (low <= high) {
        const swapped = values[low] as number;
        values[low++] = values[high] as number;
        values[high--] = swapped;
      }
      if (++work < stride) continue;
      work = 0;
      budget.spend(stride);
      if (budget.isDue) yield;
    }
    if (wanted <= high) to = high;
    else if (wanted >= low) from = low;
    else return;
  }
}
