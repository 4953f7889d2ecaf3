/** Time series of documents: entries by range, their statistics, and writes. */
import { runInSlices } from "../base/scheduling/time-slices.ts";
import type { SeriesInclude } from "../queries/analysis/analyzed-query.ts";
import {
  lastEntries,
  pageOf,
  type SeriesBounds,
  type SeriesPage as StoredPage,
} from "../state/keyspaces/time-series/series-page.ts";
import type { SegmentEntries } from "../state/keyspaces/time-series/series-segment.ts";
import {
  committedSegments,
  lastSegment,
  type SegmentSource,
  type SeriesSummary,
  segmentPrefix,
  seriesKey,
  summaryOf,
  timeMax,
  timeMin,
} from "../state/keyspaces/time-series/time-series.ts";
import { applySeriesOperations, parseSeriesOperations } from "../writes/time-series-operations.ts";
import type { OpenDatabase } from "./database/open-database.ts";

/** Entries `[from, to)` of a packed segment. */
export interface SeriesSlice {
  readonly segment: { unpack(): SegmentEntries };
  readonly from: number;
  readonly to: number;
}

/** A page of a range. Times are milliseconds since 1970. */
export interface SeriesPage extends Omit<StoredPage, "slices"> {
  readonly slices: readonly SeriesSlice[];
}

/** A stored part of a series. */
interface SegmentSummary {
  /** Time of the first entry. */
  readonly first: number;
  /** Number of entries. */
  readonly count: number;
  /** That of its last change. */
  readonly etag: number;
}

export class TimeSeries {
  readonly #database: OpenDatabase;
  readonly #segments: SegmentSource;

  constructor(database: OpenDatabase) {
    this.#database = database;
    this.#segments = committedSegments(database.state.keyspaces.timeSeriesSegments);
  }

  /** Returns the names of a document's series, in order. */
  names(documentId: string): string[] {
    const { timeSeries } = this.#database.state.keyspaces;
    return [...timeSeries.withPrefix(seriesKey(documentId, ""))].map(([, { name }]) => name);
  }

  /**
   * Returns the number of entries and first and last time of a series; undefined when it does not exist. Cost: O(its
   * entries / 500).
   */
  summary(documentId: string, name: string): SeriesSummary | undefined {
    return summaryOf(this.#segments, segmentPrefix(documentId, name));
  }

  /** Returns the segments of a series that may have entries within `bounds`, in time order. */
  segments(
    documentId: string,
    name: string,
    { from = timeMin, to = timeMax }: SeriesBounds,
  ): SegmentSummary[] {
    const prefix = segmentPrefix(documentId, name);
    const found: SegmentSummary[] = [];
    for (const [, entry] of this.#database.state.keyspaces.timeSeriesSegments.range(
      prefix,
      prefix,
    )) {
      const { first, last, count } = entry.value;
      if (last >= from && first <= to) found.push({ first, count, etag: entry.etag });
    }
    return found;
  }

  /** Returns a page of the entries within `bounds`. */
  page(
    documentId: string,
    name: string,
    bounds: SeriesBounds,
    start?: number,
    pageSize?: number,
  ): SeriesPage {
    return pageOf(this.#segments, segmentPrefix(documentId, name), bounds, start, pageSize);
  }

  /** Returns the range that `include` requests; null if the series does not exist, and so has no last entry. */
  includedBounds(documentId: string, include: SeriesInclude): SeriesBounds | null {
    const prefix = segmentPrefix(documentId, include.name);
    switch (include.kind) {
      case "range":
        return include.bounds;
      case "lastCount":
        return lastEntries(this.#segments, prefix, include.count) ?? null;
      case "lastTime": {
        const last = lastSegment(this.#segments, prefix)?.[1].last;
        if (last === undefined) return null;
        const from =
          include.unit === "Month"
            ? monthsBefore(last, include.value)
            : last - include.value * 1000;
        return { from: Math.min(timeMax, Math.max(timeMin, from)), to: undefined };
      }
    }
  }

  /**
   * Text that changes whenever the series does; null when it does not exist. Every write of a segment assigns a new etag,
   * and between two writes entries can only be removed. Cost: O(segments).
   */
  version(documentId: string, name: string): string | null {
    const prefix = segmentPrefix(documentId, name);
    let etag = 0;
    let count = 0;
    const { timeSeriesSegments } = this.#database.state.keyspaces;
    for (const [, entry] of timeSeriesSegments.range(prefix, prefix)) {
      etag = Math.max(etag, entry.etag);
      count += entry.value.count;
    }
    return count === 0 ? null : `${etag} ${count}`;
  }

  /**
   * Applies `{"Name","Appends"?,"Deletes"?,"Increments"?}` to a document's series, as one transaction.
   * @throws EngineError invalid-argument, invalid-format, invalid-operation, document-missing
   */
  async apply(documentId: string, operations: unknown): Promise<void> {
    const parsed = await runInSlices(parseSeriesOperations(operations));
    await this.#database.writeInSlices((transaction) =>
      applySeriesOperations(transaction, documentId, parsed),
    );
  }
}

/** Returns the same day and time that many months earlier; the last day of the month when that day does not exist. */
function monthsBefore(time: number, months: number): number {
  const date = new Date(time);
  const day = date.getUTCDate();
  date.setUTCDate(1);
  date.setUTCMonth(date.getUTCMonth() - months);
  const monthEnd = new Date(date);
  monthEnd.setUTCMonth(date.getUTCMonth() + 1, 0);
  date.setUTCDate(Math.min(day, monthEnd.getUTCDate()));
  return Number.isNaN(date.getTime()) ? timeMin : date.getTime();
}
