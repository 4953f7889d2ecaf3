/** A plot of a time series: lines of its values, with their smallest and largest ones if a point is a group of entries. */
import { useMemo, useState } from "preact/hooks";
import { counted, when } from "../base/format.ts";
import { lazy } from "../base/lazy.tsx";
import {
  pointsOf,
  type SeriesColumn,
  type SeriesPoints,
  type SeriesResult,
} from "../base/series-points.ts";
import type { PlotRange } from "./plot.tsx";

const Plot = lazy(async () => (await import("./plot.tsx")).Plot);

/** Number of lines, because there are three colours. */
const linesMax = 3;
const height = 180;

interface Properties {
  readonly name: string;
  /** The number of entries and what a point is. */
  readonly note: string;
  readonly points: SeriesPoints;
  readonly range?: PlotRange | undefined;
  zoom(range: PlotRange | null): void;
}

export function SeriesFigure({ name, note, points: { times, columns }, range, zoom }: Properties) {
  const [hidden, setHidden] = useState<readonly string[]>(() =>
    columns.slice(linesMax).map((column) => column.name),
  );
  const [at, setAt] = useState<number | null>(null);
  const lines = useMemo(
    () => columns.filter((column) => !hidden.includes(column.name)).slice(0, linesMax),
    [columns, hidden],
  );
  const label = useMemo(() => `${name}: ${note}${summaryOf(lines)}`, [name, note, lines]);
  const time = at === null ? undefined : times[at];
  const toggle = (column: string) =>
    setHidden(
      hidden.includes(column) ? hidden.filter((one) => one !== column) : [...hidden, column],
    );
  return (
    <section class="panel plot" aria-label={name}>
      <header>
        <h2 class="cut">{name}</h2>
        <small class="cut">{time === undefined ? note : when(time * 1000, true)}</small>
      </header>
      <Plot
        label={label}
        times={times}
        series={lines}
        range={range}
        group="series"
        height={height}
        isFree
        format={shortNumber}
        readAt={setAt}
        zoom={zoom}
      />
      <div class="key">
        {columns.map((column) => {
          const line = lines.indexOf(column);
          const text = at === null ? "" : readout(column, at, lines.length === 1);
          return columns.length === 1 ? (
            <span key={column.name} class="a">
              <i />
              {column.name} <b>{text}</b>
            </span>
          ) : (
            <button
              key={column.name}
              type="button"
              class={"abc"[line]}
              aria-pressed={line >= 0}
              disabled={line < 0 && lines.length === linesMax}
              onClick={() => toggle(column.name)}
            >
              <i />
              {column.name} <b>{line < 0 ? "" : text}</b>
            </button>
          );
        })}
      </div>
    </section>
  );
}

/** A time series in the result of a query. */
export function ResultSeries({ name, result }: { name: string; result: SeriesResult }) {
  const [range, zoom] = useState<PlotRange | null>(null);
  const points = useMemo(
    () => pointsOf(result.Results, result["@metadata"]?.["@timeseries-named-values"]),
    [result],
  );
  const note = counted(result.Count, "entry", "entries");
  if (points.times.length === 0) return null;
  return (
    <SeriesFigure name={name} note={note} points={points} range={range ?? undefined} zoom={zoom} />
  );
}

function shortNumber(value: number): string {
  return Math.abs(value) >= 1e6 || (value !== 0 && Math.abs(value) < 1e-3)
    ? value.toExponential(2)
    : String(Number(value.toPrecision(5)));
}

function readout({ values, bounds }: SeriesColumn, at: number, withBounds: boolean): string {
  const value = values[at];
  if (value == null) return "–";
  if (bounds === undefined || !withBounds) return shortNumber(value);
  const [low, high] = [bounds.low[at] ?? value, bounds.high[at] ?? value];
  return `${shortNumber(value)} (${shortNumber(low)} to ${shortNumber(high)})`;
}

/** Describes the range of each line, for screen readers. */
function summaryOf(lines: readonly SeriesColumn[]): string {
  return lines
    .map(({ name, values, bounds }) => {
      const least = (bounds?.low ?? values).reduce(smaller, null);
      const most = (bounds?.high ?? values).reduce(larger, null);
      return least === null || most === null
        ? ""
        : `; ${name} between ${shortNumber(least)} and ${shortNumber(most)}`;
    })
    .join("");
}

function smaller(one: number | null, other: number | null): number | null {
  return one === null ? other : other === null ? one : Math.min(one, other);
}

function larger(one: number | null, other: number | null): number | null {
  return one === null ? other : other === null ? one : Math.max(one, other);
}
