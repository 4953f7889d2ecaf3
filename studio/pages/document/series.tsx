/**
 * The time series of a document: plots with a common range of times, and a table of entries. The address contains the
 * selected series and the range.
 */
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { watch } from "../../base/changes.ts";
import { count, when } from "../../base/format.ts";
import { useResource } from "../../base/resource.ts";
import { address, setQuery } from "../../base/router.ts";
import { rollupParts, type SeriesEntry } from "../../base/series-points.ts";
import { Empty, Failure, Skeleton } from "../../components/messages.tsx";
import type { PlotRange } from "../../components/plot.tsx";
import { SeriesFigure } from "../../components/series-figure.tsx";
import { type Column, VirtualTable } from "../../components/virtual-table.tsx";
import {
  type LoadedSeries,
  loadEntries,
  loadSeries,
  type SeriesPlace,
  timeOf,
} from "./series-load.ts";

interface Properties {
  readonly database: string;
  readonly base: string;
  readonly id: string;
}

interface Listed {
  readonly Name: string;
  readonly NumberOfEntries: number;
  readonly StartDate: string;
  readonly EndDate: string;
}

export function Series({ database, base, id }: Properties) {
  const stats = useResource<{ readonly TimeSeries: readonly Listed[] }>(
    `${base}/timeseries/stats?docId=${encodeURIComponent(id)}`,
  );
  useEffect(
    () => watch(database, "watch-all-document-timeseries", id, stats.reload),
    [database, id],
  );
  const all = stats.body?.TimeSeries ?? [];
  const asked = address.value.query.get("series")?.split("\n") ?? [];
  const found = all.filter(({ Name }) => asked.includes(Name));
  const chosen = found.length > 0 ? found : all.slice(0, 1);
  if (stats.error !== undefined) return <Failure error={stats.error} retry={stats.reload} />;
  if (stats.body === undefined) return <Skeleton rows={4} />;
  if (chosen.length === 0) {
    return (
      <Empty icon="perf" title="No time series">
        <p>A time series stores timestamped numbers with a document, for example of a sensor.</p>
      </Empty>
    );
  }
  const toggle = (name: string) => {
    const names = chosen.map(({ Name }) => Name);
    const next = names.includes(name) ? names.filter((one) => one !== name) : [...names, name];
    if (next.length > 0) setQuery({ series: next.join("\n") });
  };
  return (
    <div class="scroll grow side-body">
      <fieldset class="seg wraps">
        <legend class="hidden-label">Time series</legend>
        {all.map(({ Name, NumberOfEntries }) => (
          <button
            key={Name}
            type="button"
            aria-pressed={chosen.some((one) => one.Name === Name)}
            title={Name.includes("@") ? "A rollup: each entry is a group of entries" : undefined}
            onClick={() => toggle(Name)}
          >
            {Name} {count(NumberOfEntries)}
          </button>
        ))}
      </fieldset>
      <Chosen base={base} id={id} chosen={chosen} />
    </div>
  );
}

function Chosen({ base, id, chosen }: { base: string; id: string; chosen: readonly Listed[] }) {
  const whole = wholeRange(chosen);
  const range = askedRange() ?? whole;
  const zoom = (to: PlotRange | null) =>
    setQuery({
      from: to === null ? undefined : timeOf(to[0]),
      to: to === null ? undefined : timeOf(to[1]),
    });
  const [named, setNamed] = useState("");
  const inTable = chosen.find(({ Name }) => Name === named) ?? (chosen[0] as Listed); // one is chosen
  const [loaded, setLoaded] = useState<Readonly<Record<string, LoadedSeries>>>({});
  const keep = useCallback(
    (name: string, one: LoadedSeries) => setLoaded((before) => ({ ...before, [name]: one })),
    [],
  );
  const shown = loaded[inTable.Name];
  return (
    <>
      <RangeButtons range={range} whole={whole} zoom={zoom} />
      {chosen.map(({ Name, NumberOfEntries }) => (
        <OneSeries
          key={Name}
          place={{ base, id, name: Name }}
          version={NumberOfEntries}
          range={range}
          zoom={zoom}
          keep={keep}
        />
      ))}
      {chosen.length > 1 && (
        <label class="row">
          Entries of
          <select
            class="btn"
            value={inTable.Name}
            onChange={(event) => setNamed(event.currentTarget.value)}
          >
            {chosen.map(({ Name }) => (
              <option key={Name}>{Name}</option>
            ))}
          </select>
        </label>
      )}
      {shown !== undefined && (
        <Entries
          key={`${inTable.Name}\n${range}\n${shown.entries}`}
          place={{ base, id, name: inTable.Name }}
          range={range}
          loaded={shown}
        />
      )}
    </>
  );
}

/** Returns the range in the address, or null. */
function askedRange(): PlotRange | null {
  const { query } = address.value;
  const [from, to] = ["from", "to"].map((name) => Date.parse(query.get(name) ?? "") / 1000);
  return from !== undefined && to !== undefined && from < to ? [from, to] : null;
}

/** Returns the range of all entries; at least two seconds. */
function wholeRange(series: readonly Listed[]): PlotRange {
  const from = Math.min(...series.map(({ StartDate }) => Date.parse(StartDate) / 1000));
  const to = Math.max(...series.map(({ EndDate }) => Date.parse(EndDate) / 1000));
  return from === to ? [from - 1, to + 1] : [from, to];
}

/** Moves the range and changes its length. */
function RangeButtons({
  range: [from, to],
  whole,
  zoom,
}: {
  range: PlotRange;
  whole: PlotRange;
  zoom: (range: PlotRange | null) => void;
}) {
  const length = to - from;
  const isShort = length < 3600;
  const isWhole = from <= whole[0] && to >= whole[1];
  const buttons: [label: string, text: string, range: PlotRange, isUseless: boolean][] = [
    ["Earlier", "←", [from - length / 2, to - length / 2], from <= whole[0]],
    ["Later", "→", [from + length / 2, to + length / 2], to >= whole[1]],
    ["Zoom in", "+", [from + length / 4, to - length / 4], length < 0.004],
    ["Zoom out", "−", [from - length / 2, to + length / 2], isWhole],
  ];
  return (
    <div class="row wraps">
      <span class="muted">
        {when(from * 1000, isShort)} to {when(to * 1000, isShort)}
      </span>
      <span class="grow" />
      <span class="row">
        {buttons.map(([label, text, next, isUseless]) => (
          <button
            key={label}
            type="button"
            class="btn icon"
            aria-label={label}
            title={label}
            disabled={isUseless}
            onClick={() => zoom(next)}
          >
            {text}
          </button>
        ))}
        <button type="button" class="btn" disabled={isWhole} onClick={() => zoom(null)}>
          Whole range
        </button>
      </span>
    </div>
  );
}

function OneSeries({
  place,
  version,
  range,
  zoom,
  keep,
}: {
  place: SeriesPlace;
  version: number;
  range: PlotRange;
  zoom: (range: PlotRange | null) => void;
  keep: (name: string, loaded: LoadedSeries) => void;
}) {
  const { base, id, name } = place;
  const [from, to] = range;
  const [loaded, setLoaded] = useState<LoadedSeries | null>(null);
  const [error, setError] = useState<Error | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    loadSeries({ base, id, name }, [from, to], abort.signal).then(
      (found) => {
        setError(null);
        setLoaded(found);
        keep(name, found);
      },
      (failed: Error) => {
        if (!abort.signal.aborted) setError(failed);
      },
    );
    return () => abort.abort();
  }, [base, id, name, version, from, to]);
  if (error !== null) return <Failure error={error} />;
  if (loaded === null) return <Skeleton rows={4} />;
  const { points, note } = loaded;
  return <SeriesFigure name={name} note={note} points={points} range={range} zoom={zoom} />;
}

const pageSize = 100;

/** The entries of a range, newest first, loaded page by page. */
function Entries({
  place,
  range,
  loaded: { entries, points },
}: {
  place: SeriesPlace;
  range: PlotRange;
  loaded: LoadedSeries;
}) {
  const pages = useRef(new Map<number, readonly SeriesEntry[]>());
  const [, render] = useState(0);
  const [error, setError] = useState<Error | null>(null);
  const abort = useMemo(() => new AbortController(), []);
  useEffect(() => () => abort.abort(), []);
  const need = useCallback((first: number, last: number) => {
    for (let page = Math.floor(first / pageSize); page * pageSize < last; page++) {
      if (pages.current.has(page)) continue;
      pages.current.set(page, []);
      const end = entries - page * pageSize;
      const start = Math.max(0, end - pageSize);
      loadEntries(place, range, start, end - start, abort.signal).then(
        (found) => {
          pages.current.set(page, [...found].reverse());
          render((before) => before + 1);
        },
        (failed: Error) => {
          if (!abort.signal.aborted) setError(failed);
        },
      );
    }
  }, []);
  const columns = useMemo(() => columnsOf(place.name, points.columns), [points]);
  const row = (index: number) =>
    pages.current.get(Math.floor(index / pageSize))?.[index % pageSize];
  if (error !== null) return <Failure error={error} />;
  return (
    <div class="pane series-table">
      <VirtualTable
        label={`Entries of ${place.name}`}
        columns={columns}
        total={entries}
        row={row}
        need={need}
        open={() => undefined}
      />
    </div>
  );
}

function timeCell({ Timestamp }: SeriesEntry) {
  return <span title={Timestamp}>{when(Timestamp, true)}</span>;
}

function columnsOf(
  name: string,
  values: readonly { readonly name: string }[],
): Column<SeriesEntry>[] {
  const titles = name.includes("@")
    ? values.flatMap((value) =>
        rollupParts.map((part) => (values.length > 1 ? `${value.name}, ${part}` : part)),
      )
    : values.map((value) => value.name);
  return [
    { key: "@time", title: "Time", width: 210, cell: timeCell },
    ...titles.map(
      (title, at): Column<SeriesEntry> => ({
        key: String(at),
        title,
        width: 110,
        isNumber: true,
        cell: ({ Values }) => (Values[at] === undefined ? null : String(Values[at])),
      }),
    ),
    { key: "@tag", title: "Tag", width: 160, cell: ({ Tag }) => Tag },
  ];
}
