/**
 * Time series: for a document and a name, entries in time order. A series is stored as a name and segments of bounded
 * size, so that an append to a long series writes one segment and not the series.
 *
 * Knows nothing of transactions; they check that the document exists and write its list of names. Names are compared
 * case-insensitively; the spelling of the first write is kept.
 *
 * Invariants:
 * - Every series name has a segment, and every segment a series name.
 * - The key of a segment has a time at or before its first entry; its last entry is before the time in the next key.
 */

import { assert } from "../../../base/assert.ts";
import { lowerCased } from "../../../base/case-folding.ts";
import { recordKinds } from "../../../base/record.ts";
import type { TreeCursor } from "../../../base/tree/btree.ts";
import { documentKey, EntryKeyspace } from "../entry-keyspace.ts";
import type { DeadRecordListener } from "../keyspace.ts";
import { type Segment, segmentCodec } from "./series-segment.ts";

/** The entry that records the existence of a series. */
export interface TimeSeries {
  readonly name: string;
}

/** Names of incremental series, whose values are sums of increments, begin with this, in any case. */
const incrementalPrefix = "inc:";

/** Milliseconds from the year 1 to 1970: the offset of times in keys. */
const keyTimeOffset = 62_135_596_800_000;
/** Base-36 digits of a key's time, enough for the year 9999. */
const keyTimeDigits = 10;

export const timeMin = -keyTimeOffset;
export const timeMax = 253_402_300_799_999;

export function makeTimeSeries(dead: DeadRecordListener): EntryKeyspace<TimeSeries> {
  return new EntryKeyspace<TimeSeries>("timeSeries", recordKinds.timeSeries, dead);
}

export function makeTimeSeriesSegments(dead: DeadRecordListener): EntryKeyspace<Segment> {
  const { timeSeriesSegment } = recordKinds;
  return new EntryKeyspace<Segment>("timeSeriesSegments", timeSeriesSegment, dead, segmentCodec);
}

/** Key of one series. */
export const seriesKey = documentKey;

/** Returns the prefix of the keys of a series' segments. */
export function segmentPrefix(documentId: string, name: string): string {
  return `${seriesKey(documentId, name)}\u0000`;
}

/** Returns the key of a segment whose first entry is at `time`, or later. Keys sort as their times do. */
export function segmentKey(prefix: string, time: number): string {
  assert(time >= timeMin && time <= timeMax, "a time of a series is in the years 1 to 9999");
  return prefix + (time + keyTimeOffset).toString(36).padStart(keyTimeDigits, "0");
}

/** Returns whether this is a valid time of an entry, in milliseconds since 1970. */
export function isSeriesTime(time: number): boolean {
  return Number.isInteger(time) && time >= timeMin && time <= timeMax;
}

/** Returns the time in the key of a segment. */
export function timeOfKey(key: string): number {
  return Number.parseInt(key.slice(-keyTimeDigits), 36) - keyTimeOffset;
}

/** The document, in lower case, and the series that a segment belongs to. */
export interface SegmentOwner {
  readonly documentId: string;
  /** In lower case. */
  readonly name: string;
}

export function ownerOfSegment(key: string): SegmentOwner {
  const end = key.indexOf("\u0000");
  return { documentId: key.slice(0, end), name: key.slice(end + 1, -keyTimeDigits - 1) };
}

/**
 * Returns a segment in messages: `users/1|heartrates|638185248000000000`, with its first time in ticks from the year 1.
 */
export function segmentName(key: string, first = timeOfKey(key)): string {
  const { documentId, name } = ownerOfSegment(key);
  return `${documentId}|${name}|${BigInt(first + keyTimeOffset) * ticksPerMs}`;
}

const ticksPerMs = 10_000n;

export function isIncremental(name: string): boolean {
  return name.slice(0, incrementalPrefix.length).toLowerCase() === incrementalPrefix;
}

/** Source of segments: the committed state, or a transaction. */
export interface SegmentSource {
  /** Segments of a series from a key. */
  up(prefix: string, from: string): Iterable<[string, Segment]>;
  /** As `up`, backward. */
  down(prefix: string, from: string): Iterable<[string, Segment]>;
}

/** Returns the committed state as a source. */
export function committedSegments(segments: EntryKeyspace<Segment>): SegmentSource {
  return {
    up: (prefix, from) => values(segments.range(prefix, from)),
    down: (prefix, from) => values(segments.rangeDown(prefix, from)),
  };
}

/** Returns the committed state of this moment as a source, whatever is committed during an iteration. */
export function viewedSegments(segments: EntryKeyspace<Segment>): SegmentSource {
  const view = segments.view();
  return {
    up: (prefix, from) => walked(view.cursor({ lower: from }), prefix),
    down: (prefix, from) => walked(view.cursor({ upper: from, descending: true }), prefix),
  };
}

function* walked(
  cursor: TreeCursor<string, { readonly value: Segment }>,
  prefix: string,
): Generator<[string, Segment]> {
  while (cursor.next() && cursor.key.startsWith(prefix)) yield [cursor.key, cursor.value.value];
}

function* values(
  entries: Generator<[string, { readonly value: Segment }]>,
): Generator<[string, Segment]> {
  for (const [key, { value }] of entries) yield [key, value];
}

/** Returns the segment that an entry at `time`, a number, belongs in; undefined when all are later. */
export function segmentAt(
  source: SegmentSource,
  prefix: string,
  time: number,
): [string, Segment] | undefined {
  // A requested range may be wider than all possible times.
  const within = Math.max(timeMin, Math.min(time, timeMax));
  for (const found of source.down(prefix, segmentKey(prefix, within))) return found;
  return undefined;
}

/** Returns the last segment of a series; undefined if the series is empty. */
export function lastSegment(source: SegmentSource, prefix: string): [string, Segment] | undefined {
  return segmentAt(source, prefix, timeMax);
}

/** Yields the segments that may have entries from `from` to `to`, both inclusive, in time order. */
export function* segmentsBetween(
  source: SegmentSource,
  prefix: string,
  from: number,
  to: number,
): Generator<[string, Segment]> {
  if (from > to) return;
  const start = segmentAt(source, prefix, from)?.[0] ?? prefix;
  for (const found of source.up(prefix, start)) {
    if (timeOfKey(found[0]) > to) return;
    if (found[1].last >= from) yield found;
  }
}

/** Facts of a series that need no unpacking. */
export interface SeriesSummary {
  readonly count: number;
  /** Times of the first and last entry. */
  readonly first: number;
  readonly last: number;
}

/** Undefined if the series does not exist. Cost: O(segments). */
export function summaryOf(source: SegmentSource, prefix: string): SeriesSummary | undefined {
  let count = 0;
  let first = 0;
  let last = 0;
  for (const [, segment] of source.up(prefix, prefix)) {
    if (count === 0) first = segment.first;
    last = segment.last;
    count += segment.count;
  }
  return count === 0 ? undefined : { count, first, last };
}

/** `yyyy-MM-ddTHH:mm:ss.fff0000Z` */
export function seriesTimeText(time: number): string {
  return `${new Date(time).toISOString().slice(0, -1)}0000Z`;
}

/** @throws InvariantError. Cost: O(entries). */
export function checkSeries(
  series: EntryKeyspace<TimeSeries>,
  segments: EntryKeyspace<Segment>,
): void {
  let count = 0;
  for (const [key, { name }] of series.withPrefix("")) {
    assert(key.endsWith(lowerCased(name)), "a series is under its name");
    const prefix = `${key}\u0000`;
    let last = timeMin - 1;
    for (const [segmentKeyText, segment] of segments.withPrefix(prefix)) {
      const times = segment.unpack().times;
      assert(last < timeOfKey(segmentKeyText), "a segment begins after the previous segment");
      assert(
        timeOfKey(segmentKeyText) <= segment.first,
        "a segment's key is not after its entries",
      );
      assert(segment.first === times[0], "a segment knows its first time");
      last = segment.last;
      count++;
    }
    assert(last >= timeMin, "a series has a segment");
  }
  assert(count === segments.count, "a segment belongs to a series");
}
