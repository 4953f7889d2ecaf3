/** Loads the entries of a time series: groups for a plot of any length, and pages for a table. */
import { get, send } from "../../base/client.ts";
import { counted } from "../../base/format.ts";
import {
  intervalFor,
  pointsOf,
  type SeriesEntry,
  type SeriesPoints,
  type SeriesResult,
} from "../../base/series-points.ts";
import type { PlotRange } from "../../components/plot.tsx";

/** A time series of a document. */
export interface SeriesPlace {
  readonly base: string;
  readonly id: string;
  readonly name: string;
}

export interface LoadedSeries {
  readonly points: SeriesPoints;
  /** Number of entries in the range. */
  readonly entries: number;
  readonly note: string;
}

/** Number of groups, and the largest number of entries that are points themselves. */
const groupsMax = 800;
const entriesMax = 1000;

export function timeOf(seconds: number): string {
  return new Date(Math.round(seconds * 1000)).toISOString();
}

/** Returns the points of a range: its entries if they are few, otherwise groups of them, which the server computes. */
export async function loadSeries(
  { base, id, name }: SeriesPlace,
  range: PlotRange,
  signal: AbortSignal,
): Promise<LoadedSeries> {
  const interval = intervalFor((range[1] - range[0]) * 1000, groupsMax);
  const json = {
    Query: `declare timeseries points(name) {
  from name between $from and $to group by $interval select min(), max(), avg()
}
from @all_docs where id() = $id select points($name) as Points`,
    QueryParameters: { from: timeOf(range[0]), to: timeOf(range[1]), interval, id, name },
  };
  const { body } = await send<{ Results: readonly { readonly Points: SeriesResult }[] }>(
    "POST",
    `${base}/queries?addTimeSeriesNames=true`,
    { json, signal },
  );
  const found = body.Results[0]?.Points;
  const entries = found?.Count ?? 0;
  const names = found?.["@metadata"]?.["@timeseries-named-values"] ?? [];
  const note = counted(entries, "entry", "entries");
  if (entries > entriesMax)
    return {
      points: pointsOf(found?.Results ?? [], names),
      entries,
      note: `${note}; minimum, maximum and average of ${interval}`,
    };
  const rows = await loadEntries({ base, id, name }, range, 0, entriesMax, signal);
  return { points: pointsOf(rows, names), entries, note };
}

/** Returns entries in the order of their times. */
export async function loadEntries(
  { base, id, name }: SeriesPlace,
  [from, to]: PlotRange,
  start: number,
  pageSize: number,
  signal: AbortSignal,
): Promise<readonly SeriesEntry[]> {
  const query = new URLSearchParams({
    docId: id,
    name,
    from: timeOf(from),
    to: timeOf(to),
    start: String(start),
    pageSize: String(pageSize),
  });
  const { body } = await get<{ Entries: readonly SeriesEntry[] }>(
    `${base}/timeseries?${query}`,
    signal,
  );
  return body.Entries;
}
