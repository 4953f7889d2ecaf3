/** The time series of a document: the last entries of a series as a plot and as a table. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { watch } from "../../base/changes.ts";
import { get } from "../../base/client.ts";
import { count, counted, when } from "../../base/format.ts";
import { useResource } from "../../base/resource.ts";
import { address, setQuery } from "../../base/router.ts";
import { Empty, Failure, Skeleton } from "../../components/messages.tsx";
import { Table } from "../../components/table.tsx";

interface Properties {
  readonly database: string;
  readonly base: string;
  readonly id: string;
}

interface SeriesStats {
  readonly TimeSeries: readonly { readonly Name: string; readonly NumberOfEntries: number }[];
}

interface Entries {
  readonly Entries: readonly Entry[];
}

interface Entry {
  readonly Timestamp: string;
  readonly Tag: string | null;
  readonly Values: readonly number[];
}

const shownMax = 1000;
const tableMax = 200;

export function Series({ database, base, id }: Properties) {
  const stats = useResource<SeriesStats>(
    `${base}/timeseries/stats?docId=${encodeURIComponent(id)}`,
  );
  useEffect(
    () => watch(database, "watch-all-document-timeseries", id, stats.reload),
    [database, id],
  );
  const series = stats.body?.TimeSeries ?? [];
  const chosen = series.find(({ Name }) => Name === address.value.query.get("series")) ?? series[0];
  if (stats.error !== undefined) return <Failure error={stats.error} retry={stats.reload} />;
  if (stats.body === undefined) return <Skeleton rows={4} />;
  if (chosen === undefined) {
    return (
      <Empty icon="perf" title="No time series">
        <p>A time series stores timestamped numbers with a document, for example of a sensor.</p>
      </Empty>
    );
  }
  return (
    <div class="scroll grow side-body">
      <fieldset class="seg">
        <legend class="hidden-label">Time series</legend>
        {series.map(({ Name, NumberOfEntries }) => (
          <button
            key={Name}
            type="button"
            aria-pressed={Name === chosen.Name}
            onClick={() => setQuery({ series: Name })}
          >
            {Name} {count(NumberOfEntries)}
          </button>
        ))}
      </fieldset>
      <One
        key={chosen.Name}
        path={`${base}/timeseries?${new URLSearchParams({ docId: id, name: chosen.Name })}`}
        name={chosen.Name}
        total={chosen.NumberOfEntries}
      />
    </div>
  );
}

function One({ path, name, total }: { path: string; name: string; total: number }) {
  const [entries, setEntries] = useState<readonly Entry[] | null>(null);
  const [error, setError] = useState<Error | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    const start = Math.max(0, total - shownMax);
    get<Entries>(`${path}&start=${start}&pageSize=${shownMax}`, abort.signal).then(
      ({ body }) => setEntries(body.Entries),
      (failed: Error) => {
        if (!abort.signal.aborted) setError(failed);
      },
    );
    return () => abort.abort();
  }, [path, total]);
  if (error !== null) return <Failure error={error} />;
  if (entries === null) return <Skeleton rows={4} />;
  const rows = entries.slice(-tableMax).reverse();
  return (
    <>
      {total > shownMax && <p class="muted">The last {counted(shownMax, "entry", "entries")}.</p>}
      <Line name={name} entries={entries} />
      <Table kind="data" label={`Entries of ${name}`} columns={["Time", "Values", "Tag"]}>
        {rows.map(({ Timestamp, Values, Tag }) => (
          <tr key={Timestamp}>
            <td title={Timestamp}>{when(Timestamp)}</td>
            <td class="mono">{Values.join(", ")}</td>
            <td class="muted">{Tag}</td>
          </tr>
        ))}
      </Table>
      {entries.length > rows.length && (
        <p class="muted">The table shows the last {count(tableMax)} entries.</p>
      )}
    </>
  );
}

const width = 600;
const height = 120;
const linesMax = 3;

function Line({ name, entries }: { name: string; entries: readonly Entry[] }) {
  const drawn = useMemo(() => linesOf(entries), [entries]);
  if (drawn === null) return null;
  const { low, high, lines } = drawn;
  const [first, last] = [entries[0], entries.at(-1)];
  return (
    <figure class="line-plot">
      <svg
        viewBox={`0 0 ${width} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${name}: ${counted(entries.length, "entry", "entries")}, between ${low} and ${high}`}
      >
        {lines.map((points, n) => (
          <polyline key={n} class={`series-${n + 1}`} points={points} />
        ))}
      </svg>
      <figcaption class="row muted">
        <span>{first === undefined ? "" : when(first.Timestamp)}</span>
        <span class="grow" />
        <span>
          {shortNumber(low)} to {shortNumber(high)}
        </span>
        <span class="grow" />
        <span>{last === undefined ? "" : when(last.Timestamp)}</span>
      </figcaption>
    </figure>
  );
}

function shortNumber(value: number): string {
  return String(Number(value.toPrecision(4)));
}

/** Returns the points of the first values of all entries. */
function linesOf(entries: readonly Entry[]) {
  const times = entries.map(({ Timestamp }) => Date.parse(Timestamp));
  const values = entries.flatMap(({ Values }) => Values.slice(0, linesMax)).filter(Number.isFinite);
  const [from = 0, to = 0] = [times[0], times.at(-1)];
  if (values.length === 0) return null;
  const low = values.reduce((a, b) => Math.min(a, b));
  const high = values.reduce((a, b) => Math.max(a, b));
  const x = (time: number) => (to === from ? width / 2 : ((time - from) / (to - from)) * width);
  const y = (value: number) =>
    high === low ? height / 2 : height - 4 - ((value - low) / (high - low)) * (height - 8);
  const most = Math.min(linesMax, Math.max(...entries.map(({ Values }) => Values.length)));
  const lines = Array.from({ length: most }, (_, n) =>
    entries
      .flatMap(({ Values }, at) => {
        const value = Values[n];
        return value === undefined || !Number.isFinite(value)
          ? []
          : [`${x(times[at] as number).toFixed(1)},${y(value).toFixed(1)}`];
      })
      .join(" "),
  );
  return { low, high, lines };
}
