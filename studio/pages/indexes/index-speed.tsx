/** The performance of an index: rate and lag in the last minutes, and totals. */
import { useMemo, useRef } from "preact/hooks";
import { ago, count, secondsOf, shortCount } from "../../base/format.ts";
import { type MetricColumns, plottedColumns } from "../../base/metrics.ts";
import { useResource } from "../../base/resource.ts";
import { Facts } from "../../components/facts.tsx";
import { Failure, Skeleton } from "../../components/messages.tsx";
import { PlotPanel } from "../../components/plot-panel.tsx";
import type { IndexStats } from "./index-info.ts";

interface TotalTime {
  readonly Results: readonly { readonly TotalIndexingTime: string; readonly LagTime: string }[];
}

interface Batch {
  readonly Id: number;
  readonly Started: string;
  readonly DurationInMs: number;
  readonly InputCount: number;
}

interface Batches {
  readonly Results: readonly { readonly Performance: readonly Batch[] }[];
}

/** `replacement` is the new version that is being built. */
export function SpeedTab({
  database,
  index,
  replacement,
}: {
  database: string;
  index: IndexStats;
  replacement: IndexStats | undefined;
}) {
  const base = `/databases/${encodeURIComponent(database)}`;
  const { body, error } = useResource<TotalTime>(
    `${base}/indexes/total-time?name=${encodeURIComponent(index.Name)}`,
    2000,
  );
  if (error !== undefined) return <Failure error={error} />;
  if (body === undefined) return <Skeleton rows={3} />;
  const [time] = body.Results;
  const seconds = secondsOf(time?.TotalIndexingTime ?? "");
  const nowMs = Date.now();
  const facts: [string, string][] = [
    ["Documents mapped", count(index.MapAttempts)],
    ["Mapping time", `${seconds.toFixed(1)} s`],
    ["Documents per second", seconds > 0 ? count(index.MapAttempts / seconds) : "–"],
    ["Lag", `${secondsOf(time?.LagTime ?? "").toFixed(1)} s`],
    ["Last batch", index.LastIndexingTime === null ? "never" : ago(index.LastIndexingTime, nowMs)],
    ["Last query", index.LastQueryingTime === null ? "never" : ago(index.LastQueryingTime, nowMs)],
    ["Created", ago(index.CreatedTimestamp, nowMs)],
  ];
  const shown = replacement?.Name ?? index.Name;
  return (
    <div class="scroll grow inset stack">
      {replacement !== undefined && <h2>New version</h2>}
      <Progress key={shown} base={base} name={shown} />
      {replacement !== undefined && <h2>Deployed version</h2>}
      <Facts of={facts} />
    </div>
  );
}

const pollMs = 1000;

/** Plots the last five minutes: the rate of the batches, and the lag that the server has recorded. */
function Progress({ base, name }: { base: string; name: string }) {
  const metrics = useResource<MetricColumns>(`${base}/metrics/history?range=5m`, pollMs);
  const batches = useResource<Batches>(
    `${base}/indexes/performance?name=${encodeURIComponent(name)}`,
    pollMs,
  );
  // The server has only the last batches.
  const known = useRef(new Map<number, Batch>());
  const { times, series, rates } = useMemo(() => {
    for (const batch of batches.body?.Results[0]?.Performance ?? [])
      known.current.set(batch.Id, batch);
    const figures = metrics.body ?? { StepInMs: pollMs, From: new Date(0).toISOString() };
    const { Columns = {} } = figures;
    const own = `Behind/${name}`;
    // An index that was never behind has no column.
    const lag = Columns[own] ?? Columns["Behind"]?.map((most) => (most === 0 ? 0 : null)) ?? [];
    const plotted = plottedColumns({ ...figures, Columns: { ...Columns, [own]: lag } }, [
      [own, "changes"],
    ]);
    const rates = ratesOf([...known.current.values()], plotted.times);
    return { ...plotted, rates: [{ name: "documents", values: rates }] };
  }, [metrics.body, batches.body, name]);
  return (
    <div class="plots two">
      <PlotPanel
        title="Indexing rate"
        unit="documents per second"
        group="indexing"
        times={times}
        series={rates}
        format={rateText}
      />
      <PlotPanel
        title="Index lag"
        unit="changes"
        group="indexing"
        times={times}
        series={series}
        format={rateText}
      />
    </div>
  );
}

const rateText = (value: number) =>
  value < 10 ? String(Math.round(value * 10) / 10) : shortCount(Math.round(value));

/** Returns the documents per second in each second that begins at `times`. */
function ratesOf(batches: readonly Batch[], times: readonly number[]): number[] {
  const rates = times.map(() => 0);
  const first = times[0] ?? 0;
  for (const { Started, DurationInMs, InputCount } of batches) {
    const from = Date.parse(Started) / 1000 - first;
    const length = Math.max(0.001, DurationInMs / 1000);
    for (let at = Math.max(0, Math.floor(from)); at < from + length && at < rates.length; at++) {
      const share = (Math.min(at + 1, from + length) - Math.max(at, from)) / length;
      rates[at] = (rates[at] as number) + InputCount * share;
    }
  }
  return rates;
}
