/** A titled plot of metrics with the values at the crosshair, or the same data as a table. */
import { useMemo, useState } from "preact/hooks";
import { when } from "../base/format.ts";
import { lazy } from "../base/lazy.tsx";
import type { PlotEvent, PlotRange, PlotSeries } from "./plot.tsx";
import { numeric, Table } from "./table.tsx";

const Plot = lazy(async () => (await import("./plot.tsx")).Plot);

interface Properties {
  readonly title: string;
  readonly unit: string;
  /** Seconds since 1970, ascending. */
  readonly times: readonly number[];
  /** At most three. The newest value of the first one is shown beside the title. */
  readonly series: readonly PlotSeries[];
  /** Plots of a group share the crosshair. */
  readonly group: string;
  readonly events?: readonly PlotEvent[];
  readonly range?: PlotRange | undefined;
  readonly isBytes?: boolean;
  readonly isTable?: boolean;
  format(value: number): string;
  /** Returns a text about the time at the crosshair; null: the newest time. */
  beside?(at: number | null): string;
  zoom?(range: PlotRange | null): void;
}

export function PlotPanel({ isTable = false, beside, unit, ...plot }: Properties) {
  const { title, times, series, format } = plot;
  const { last, sentence } = useMemo(() => described({ ...plot, unit }), [title, series]);
  const [at, setAt] = useState<number | null>(null);
  const time = at === null || isTable ? undefined : times[at];
  const more = beside?.(time === undefined ? null : at);
  const readout = (values: readonly (number | null)[] = []) => {
    const value = at === null ? null : values[at];
    return value == null ? "–" : format(value);
  };
  return (
    <section class="panel plot" aria-label={title}>
      <header>
        <h2 class="cut">{title}</h2>
        <small>{time === undefined ? unit : when(time * 1000, true)}</small>
        <b>
          {time !== undefined
            ? readout(series[0]?.values)
            : last === undefined
              ? "–"
              : format(last)}
        </b>
      </header>
      {isTable ? (
        <FigureTable title={title} times={times} series={series} format={format} />
      ) : (
        <Plot
          {...plot}
          label={more === undefined ? sentence : `${sentence}; ${beside?.(null)}`}
          readAt={setAt}
        />
      )}
      <div class="key">
        {series.map(({ name, values }, n) => (
          <span key={name} class={"abc"[n]}>
            <i />
            {name} {time !== undefined && <b>{readout(values)}</b>}
          </span>
        ))}
        {more !== undefined && <span>{more}</span>}
      </div>
    </section>
  );
}

/** Returns the newest value of the first series, and a description of the plot. */
function described({
  title,
  unit,
  series: [first],
  format,
}: Pick<Properties, "title" | "unit" | "series" | "format">) {
  const values = (first?.values ?? []).filter((one) => one !== null);
  const last = values.at(-1);
  const sentence =
    last === undefined
      ? `${title}: no data`
      : `${title}, ${first?.name}: ${format(last)}, between ${format(Math.min(...values))} and ${format(Math.max(...values))} (${unit})`;
  return { last, sentence };
}

const tableRows = 30;

/** The newest metrics as a table, for screen readers. */
function FigureTable({
  title,
  times,
  series,
  format,
}: Pick<Properties, "title" | "times" | "series" | "format">) {
  const rows = times
    .map((time, at) => ({ time, at }))
    .filter(({ at }) => {
      return series.some(({ values }) => values[at] != null);
    });
  return (
    <div class="scroll figures">
      <Table
        kind="data"
        label={title}
        columns={["Time", ...series.map(({ name }) => numeric(name))]}
      >
        {rows
          .slice(-tableRows)
          .reverse()
          .map(({ time, at }) => (
            <tr key={time}>
              <td>{new Date(time * 1000).toLocaleTimeString()}</td>
              {series.map(({ name, values }) => (
                <td key={name} class="num">
                  {values[at] == null ? "" : format(values[at])}
                </td>
              ))}
            </tr>
          ))}
      </Table>
    </div>
  );
}
