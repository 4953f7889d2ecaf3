/**
 * Entries of a series in time order -> groups, and the groups that interpolation puts between them. Only the groups of
 * one time step are in memory: they are written when a later entry arrives.
 *
 * Groups of a second key (a tag) that begin at the same time are in the order of their first entries; missing groups
 * are filled for each key separately. Measured on RavenDB 7.2.7.
 */
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import type { Interpolation, SeriesAggregate, SeriesFunction } from "./analyze-series.ts";
import { SeriesGroup } from "./series-aggregates.ts";
import type { TestedEntry } from "./series-filter.ts";
import { addPeriod, type Period, startOfGroup } from "./time-period.ts";

export interface GroupResult {
  /** Milliseconds since 1970; null: an open end of a series that is one group. */
  readonly from: number | null;
  readonly to: number | null;
  /** JSON text of the second key, or null. */
  readonly keyText: string | null;
  /** For each aggregate its numbers. */
  readonly results: readonly (readonly number[])[];
}

/** Bytes of a group besides its values, and units of writing one. */
const groupBytes = 512;
const groupUnits = 64;

export class SeriesGroups {
  /** Number of entries; the count of a filled group is interpolated like any other aggregate, and rounded. */
  count = 0;
  readonly #aggregates: readonly SeriesAggregate[];
  readonly #period: Period | null;
  readonly #interpolation: Interpolation | null;
  readonly #scale: number;
  readonly #budget: WorkBudget;
  readonly #write: (group: GroupResult) => void;
  readonly #keepsValues: boolean;
  readonly #countAt: number;
  /** By key. */
  readonly #groups = new Map<string | null, SeriesGroup>();
  readonly #lastOfKey = new Map<string | null, GroupResult>();
  #from: number | null;
  #to: number | null;
  /** The end of the present groups. */
  #end = Number.NEGATIVE_INFINITY;

  /** `from` and `to`: the range of the series, for a query without `group by`. */
  constructor(
    { aggregates, period, interpolation, scale }: SeriesFunction,
    [from, to]: readonly [number | null, number | null],
    budget: WorkBudget,
    write: (group: GroupResult) => void,
  ) {
    this.#aggregates = aggregates;
    this.#period = period;
    this.#interpolation = period === null ? null : interpolation;
    this.#scale = scale;
    this.#budget = budget;
    this.#write = write;
    this.#keepsValues = aggregates.some(({ kind }) => kind === "percentile");
    this.#countAt = aggregates.findIndex(({ kind }) => kind === "count");
    this.#from = from;
    this.#to = to;
    if (period === null) this.#end = Number.POSITIVE_INFINITY;
  }

  /** Returns whether `begin` must be called before an entry of this time is added. */
  isBehind(time: number): boolean {
    return time >= this.#end;
  }

  /** Writes the current groups, and begins the groups at `time`. @throws out-of-range, work-limit, memory-full */
  *begin(time: number): Work<void> {
    const period = this.#period as Period; // without a period, no time is after the only group
    yield* this.finish();
    this.#from = startOfGroup(time, period);
    this.#to = addPeriod(this.#from, period);
    this.#end = this.#to;
  }

  add(keyText: string | null, { values, start, end, isRollup }: TestedEntry): void {
    let group = this.#groups.get(keyText);
    if (group === undefined) {
      this.#budget.hold(groupBytes);
      group = new SeriesGroup(this.#keepsValues, this.#budget);
      this.#groups.set(keyText, group);
    }
    if (isRollup) group.addRollup(values, start, end);
    else group.add(values, start, end);
    this.count++;
  }

  /** Writes the present groups. */
  *finish(): Work<void> {
    const [from, to] = [this.#from, this.#to];
    const length = from === null || to === null ? 0 : to - from;
    for (const [keyText, group] of this.#groups) {
      const results = yield* group.results(this.#aggregates, length, this.#scale);
      const result: GroupResult = { from, to, keyText, results };
      if (this.#interpolation !== null) {
        const last = this.#lastOfKey.get(keyText);
        if (last !== undefined) yield* this.#fill(last, result, this.#interpolation);
        this.#budget.hold(bytesOf(result) - (last === undefined ? 0 : bytesOf(last)));
        this.#lastOfKey.set(keyText, result);
      }
      yield* this.#put(result);
    }
    this.#budget.release(this.#groups.size * groupBytes);
    this.#groups.clear();
  }

  /** Writes the groups missing between two. */
  *#fill(last: GroupResult, next: GroupResult, interpolation: Interpolation): Work<void> {
    const period = this.#period as Period; // there is an interpolation
    const [start, until] = [last.to as number, next.from as number];
    if (start >= until || addPeriod(start, period) > until) return;
    // A group's end is the next group's start, except where groups of months restart with the year.
    for (let from = startOfGroup(start, period); from < until; ) {
      const to = addPeriod(from, period);
      const results = interpolated(last, next, from, interpolation);
      this.count += roundHalfEven(results[this.#countAt]?.[0] ?? 0);
      yield* this.#put({ from, to, keyText: next.keyText, results });
      from = startOfGroup(to, period);
    }
  }

  *#put(group: GroupResult): Work<void> {
    this.#budget.spend(groupUnits);
    this.#write(group);
    if (this.#budget.isDue) yield;
  }
}

/** Returns the bytes of a group that is kept until the next one of its key. */
function bytesOf({ keyText, results }: GroupResult): number {
  const numbers = results.reduce((count, { length }) => count + length, 0);
  return groupBytes + 2 * (keyText?.length ?? 0) + 8 * numbers;
}

/** Returns the results of a missing group that begins at `time`. */
function interpolated(
  last: GroupResult,
  next: GroupResult,
  time: number,
  interpolation: Interpolation,
): readonly (readonly number[])[] {
  const [from, to] = [last.from as number, next.from as number];
  switch (interpolation) {
    case "last":
      return last.results;
    case "next":
      return next.results;
    case "nearest":
      return time - from <= to - time ? last.results : next.results;
    default: {
      const part = (time - from) / (to - from);
      return last.results.map((numbers, i) => linear(numbers, next.results[i] ?? [], part));
    }
  }
}

/**
 * As many numbers as both groups have. As in RavenDB 7.2.7, the last number of the group with fewer is paired with the last
 * one of the group with more before it.
 */
function linear(last: readonly number[], next: readonly number[], part: number): number[] {
  const numbers: number[] = [];
  for (let i = 0; i < last.length && next.length > 0; i++) {
    const at = Math.min(i, next.length - 1);
    const from = last[i] as number; // i < length
    numbers[at] = from + ((next[at] as number) - from) * part;
  }
  return numbers;
}

function roundHalfEven(value: number): number {
  const rounded = Math.round(value);
  return Math.abs(value % 1) === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
}
