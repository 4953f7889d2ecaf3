/**
 * Entries of a time series, or groups of them, as the points of a plot.
 *
 * Invariants:
 * - A gap is a distance between two points that is more than three times as long as three quarters of all distances. A
 *   point without values marks it, so that no line crosses it.
 */

/** An entry; of a rollup, `Values` has six numbers for each value. */
export interface SeriesEntry {
  readonly Timestamp: string;
  readonly Tag: string | null;
  /** Numbers; `"NaN"` and infinite numbers are texts. */
  readonly Values: readonly unknown[];
  readonly IsRollup?: boolean;
}

/** A group of entries, with a list of numbers for each aggregate. `From` is null if it contains the whole series. */
export interface SeriesGroup {
  readonly From: string | null;
  readonly To: string | null;
  /** The second grouping key. */
  readonly Key?: unknown;
  readonly [aggregate: string]: unknown;
}

export interface SeriesResult {
  readonly Count: number;
  readonly Results: readonly (SeriesEntry | SeriesGroup)[];
  readonly "@metadata"?: { readonly "@timeseries-named-values"?: readonly string[] };
}

export interface SeriesColumn {
  readonly name: string;
  readonly values: readonly (number | null)[];
  /** Undefined if each value is that of one entry. */
  readonly bounds?: {
    readonly low: readonly (number | null)[];
    readonly high: readonly (number | null)[];
  };
}

export interface SeriesPoints {
  /** Seconds since 1970, ascending. */
  readonly times: readonly number[];
  readonly columns: readonly SeriesColumn[];
}

/** Names of the numbers of a value in a rollup. */
export const rollupParts = ["First", "Last", "Min", "Max", "Sum", "Count"] as const;

/** A value with the smallest and the largest one of its group. */
interface Cell {
  readonly column: string;
  readonly value: number;
  readonly low: number;
  readonly high: number;
}

/** Returns whether a value in a result of a query is that of `timeseries( … )`. */
export function isSeriesResult(value: object): value is SeriesResult {
  const { Count, Results } = value as Partial<SeriesResult>;
  const [first] = Array.isArray(Results) ? (Results as SeriesResult["Results"]) : [];
  return typeof Count === "number" && first != null && ("Timestamp" in first || "From" in first);
}

/** @param names of the values, if they are configured */
export function pointsOf(
  rows: readonly (SeriesEntry | SeriesGroup)[],
  names: readonly string[] = [],
): SeriesPoints {
  const byTime = new Map<number, Cell[]>();
  for (const row of rows) {
    const time = "Timestamp" in row ? (row as SeriesEntry).Timestamp : row["From"];
    if (typeof time !== "string") continue;
    const ms = Date.parse(time);
    const cells =
      "Timestamp" in row
        ? cellsOfEntry(row as SeriesEntry, names)
        : cellsOfGroup(row as SeriesGroup, names);
    const known = byTime.get(ms);
    if (known === undefined) byTime.set(ms, cells);
    else known.push(...cells);
  }
  const times = withGaps([...byTime.keys()].sort((a, b) => a - b));
  const columns = new Map<string, Cell[]>();
  for (const [at, ms] of times.entries()) {
    for (const cell of byTime.get(ms) ?? []) {
      const cells = columns.get(cell.column) ?? [];
      cells[at] = cell;
      columns.set(cell.column, cells);
    }
  }
  return {
    times: times.map((ms) => ms / 1000),
    columns: [...columns].map(([name, cells]) => columnOf(name, cells, times.length)),
  };
}

function columnOf(name: string, cells: readonly Cell[], length: number): SeriesColumn {
  const of = (part: "value" | "low" | "high") =>
    Array.from({ length }, (_, at) => cells[at]?.[part] ?? null);
  const values = of("value");
  const isArea = cells.some(({ low, high }) => low !== high);
  return isArea ? { name, values, bounds: { low: of("low"), high: of("high") } } : { name, values };
}

function valueName(names: readonly string[], at: number, count: number): string {
  return names[at] ?? (count === 1 ? "value" : `value ${at + 1}`);
}

function cellsOfEntry({ Values, IsRollup }: SeriesEntry, names: readonly string[]): Cell[] {
  if (IsRollup !== true) {
    return Values.flatMap((value, at) => {
      const column = valueName(names, at, Values.length);
      return cellOf(column, value, value, value);
    });
  }
  const count = Math.floor(Values.length / rollupParts.length);
  return Array.from({ length: count }, (_, at) => {
    const [, , low, high, sum, entries] = Values.slice(at * rollupParts.length);
    return cellOf(valueName(names, at, count), Number(sum) / Number(entries), low, high);
  }).flat();
}

/** With `min()`, `max()` and `avg()`, the average within its bounds; otherwise each aggregate but the count. */
function cellsOfGroup(group: SeriesGroup, names: readonly string[]): Cell[] {
  const lists = Object.entries(group).filter((entry): entry is [string, unknown[]] =>
    Array.isArray(entry[1]),
  );
  const { Min, Max, Average } = Object.fromEntries(lists);
  const isArea = Min !== undefined && Max !== undefined && Average !== undefined;
  const hidden = isArea ? ["Count", "Min", "Max"] : ["Count"];
  const some = lists.filter(([aggregate]) => !hidden.includes(aggregate));
  const shown = some.length > 0 ? some : lists;
  const key = group.Key == null ? "" : `${group.Key} `;
  return shown.flatMap(([aggregate, list]) =>
    list.flatMap((value, at) => {
      const name = valueName(names, at, list.length);
      if (isArea && aggregate === "Average")
        return cellOf(`${key}${name}`, value, Min[at], Max[at]);
      const column = list.length === 1 && names.length === 0 ? aggregate : `${aggregate} ${name}`;
      return cellOf(`${key}${column}`, value, value, value);
    }),
  );
}

/** Values that are not finite numbers cannot be drawn. */
function cellOf(column: string, value: unknown, low: unknown, high: unknown): Cell[] {
  if (![value, low, high].every((one) => typeof one === "number" && Number.isFinite(one)))
    return [];
  return [{ column, value: value as number, low: low as number, high: high as number }];
}

const gapFactor = 3;

/** Adds a time within each gap. */
function withGaps(times: readonly number[]): number[] {
  const distances = times.slice(1).map((time, at) => time - (times[at] as number));
  const sorted = distances.toSorted((a, b) => a - b);
  const usual = sorted[Math.floor(sorted.length * 0.75)] ?? 0;
  return times.flatMap((time, at) => {
    const distance = distances[at] ?? 0;
    return distance > gapFactor * usual ? [time, time + distance / 2] : [time];
  });
}

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;
const units: readonly (readonly [name: string, ms: number, counts: readonly number[]])[] = [
  ["millisecond", 1, [1, 2, 5, 10, 20, 50, 100, 200, 500]],
  ["second", second, [1, 2, 5, 10, 15, 30]],
  ["minute", minute, [1, 2, 5, 10, 15, 30]],
  ["hour", hour, [1, 2, 3, 6, 12]],
  ["day", day, [1, 2, 7]],
  ["month", 30.4 * day, [1, 3, 6]],
  ["year", 365.25 * day, [1, 2, 5, 10, 20, 50, 100]],
];

/** Returns the shortest usual interval, as in `group by`, that divides `ms` into at most `countMax` parts. */
export function intervalFor(ms: number, countMax: number): string {
  for (const [name, length, counts] of units) {
    const count = counts.find((one) => ms / (one * length) <= countMax);
    if (count !== undefined) return `${count} ${name}${count === 1 ? "" : "s"}`;
  }
  return "100 years";
}
