/** Metrics of the server or a database: columns of samples at regular intervals. */

export interface MetricColumns {
  readonly StepInMs: number;
  /** Time of the first sample. */
  readonly From: string;
  /** Undefined for servers with another format at this address. */
  readonly Columns?: Readonly<Record<string, readonly (number | null)[]>>;
}

/** Returns columns as the lines of a plot; `columns` has the key and the name of each. */
export function plottedColumns(
  { StepInMs, From, Columns = {} }: MetricColumns,
  columns: readonly (readonly [column: string, name: string])[],
) {
  const fromMs = Date.parse(From);
  const length = Math.max(0, ...Object.values(Columns).map((values) => values.length));
  const times = Array.from({ length }, (_, at) => (fromMs + at * StepInMs) / 1000);
  const none = times.map(() => null);
  return {
    times,
    series: columns.map(([column, name]) => ({ name, values: Columns[column] ?? none })),
  };
}
