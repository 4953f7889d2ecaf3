/**
 * A page of a time series: the slices of segments that it consists of. Planning is synchronous and unpacks at most
 * three segments; the page is unaffected by later changes of the series, so a long page can be sent in chunks.
 */
import type { Segment } from "./series-segment.ts";
import { type SegmentSource, segmentsBetween, summaryOf, timeMax, timeMin } from "./time-series.ts";

/** Entries `from` to `to` (exclusive) of a segment. */
interface SeriesSlice {
  readonly segment: Segment;
  readonly from: number;
  readonly to: number;
}

export interface SeriesPage {
  readonly slices: readonly SeriesSlice[];
  /** Entries in the slices. */
  readonly count: number;
  /** Entries of the range before the page, at most as many as were requested to be skipped. */
  readonly skipped: number;
  /** Whether entries of the range follow the page. */
  readonly isCut: boolean;
  /** Times of the page's first and last entry; if it is empty, `first` is the time of the last skipped entry. */
  readonly first: number | undefined;
  readonly last: number | undefined;
}

/** Times are inclusive, in milliseconds since 1970; undefined is open. */
export interface SeriesBounds {
  readonly from: number | undefined;
  readonly to: number | undefined;
  /** The requested bounds, with seven fractional digits: they can be finer than a millisecond. */
  readonly fromText?: string | undefined;
  readonly toText?: string | undefined;
}

/** Skips `start` entries of the range and returns the next `pageSize`. Cost: O(segments of the range). */
export function pageOf(
  source: SegmentSource,
  prefix: string,
  { from = timeMin, to = timeMax }: SeriesBounds,
  start = 0,
  pageSize = Number.MAX_SAFE_INTEGER,
): SeriesPage {
  const slices: SeriesSlice[] = [];
  let count = 0;
  let skipped = 0;
  let lastSkipped: SeriesSlice | undefined;
  let isCut = false;
  for (const [, segment] of segmentsBetween(source, prefix, from, to)) {
    const inRange = sliceOf(segment, from, to);
    const skip = Math.min(Math.max(0, start - skipped), inRange.to - inRange.from);
    skipped += skip;
    if (skip > 0) lastSkipped = { segment, from: 0, to: inRange.from + skip };
    const available = inRange.to - inRange.from - skip;
    if (available === 0) continue;
    const take = Math.min(available, pageSize - count);
    isCut = take < available;
    if (take > 0) {
      const begin = inRange.from + skip;
      slices.push({ segment, from: begin, to: begin + take });
      count += take;
    }
    if (isCut) break;
  }
  const [firstSlice] = slices;
  const first = firstSlice === undefined ? lastTimeOf(lastSkipped) : firstTimeOf(firstSlice);
  return { slices, count, skipped, isCut, first, last: lastTimeOf(slices.at(-1)) };
}

/** Returns the last `count` entries of a series, as bounds; undefined if the series does not exist. */
export function lastEntries(
  source: SegmentSource,
  prefix: string,
  count: number,
): SeriesBounds | undefined {
  const summary = summaryOf(source, prefix);
  if (summary === undefined) return undefined;
  if (count <= 0) return { from: summary.last, to: undefined };
  const { first } = pageOf(source, prefix, openBounds, Math.max(0, summary.count - count), 1);
  return { from: first, to: undefined };
}

const openBounds: SeriesBounds = { from: undefined, to: undefined };

function sliceOf(segment: Segment, from: number, to: number): SeriesSlice {
  if (from <= segment.first && segment.last <= to) return { segment, from: 0, to: segment.count };
  const entries = segment.unpack();
  return { segment, from: entries.countBefore(from), to: entries.countBefore(to + 1) };
}

function firstTimeOf({ segment, from }: SeriesSlice): number {
  return from === 0 ? segment.first : (segment.unpack().times[from] as number); // a slice has entries
}

function lastTimeOf(slice: SeriesSlice | undefined): number | undefined {
  if (slice === undefined) return undefined;
  const { segment, to } = slice;
  return to === segment.count ? segment.last : segment.unpack().times[to - 1];
}
