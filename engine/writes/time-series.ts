/**
 * Time series operations of a transaction. A series belongs to an existing document; when the document's list of names
 * (`@timeseries`) changes, the document is rewritten at the end of the transaction. Error texts equal those of RavenDB
 * 7.2.7.
 *
 * The last segment of a series is filled to one `tailShare`th of its capacity; then it is merged into the one before
 * it, as long as both fit into one, and a new one begins. So an append rewrites few entries, and a long series still
 * has full segments.
 *
 * Invariants:
 * - Each segment written gets its own etag.
 */

import { assert } from "../base/assert.ts";
import { foldedName } from "../base/case-folding.ts";
import { EngineError } from "../base/errors.ts";
import type { JsonObject } from "../base/json/json-object.ts";
import { seriesSegmentNumbersMax, seriesTagBytesMax, seriesValuesMax } from "../base/limits.ts";
import { checkSeriesName, shown } from "../base/names.ts";
import { databaseRecordKey } from "../state/keyspaces/revision-rules.ts";
import {
  isRollup,
  policiesOf,
  rollupSeparator,
} from "../state/keyspaces/time-series/series-policies.ts";
import { Segment, type SeriesEntry } from "../state/keyspaces/time-series/series-segment.ts";
import {
  isIncremental,
  isSeriesTime,
  lastSegment,
  type SegmentSource,
  segmentAt,
  segmentKey,
  segmentPrefix,
  segmentsBetween,
  seriesKey,
  seriesTimeText,
  timeMax,
  timeMin,
  timeOfKey,
} from "../state/keyspaces/time-series/time-series.ts";
import type { Transaction } from "../state/store/transaction.ts";
import { segmentsIn } from "./series-source.ts";

/** The fraction of a full segment, one sixteenth, above which single appends no longer go to the last segment. */
const tailShare = 16;

/** Combines an entry with an existing one of the same time. */
type Combine = (old: SeriesEntry, added: SeriesEntry) => SeriesEntry;

/** A series that a transaction works on. */
interface OpenSeries {
  readonly transaction: Transaction;
  readonly document: number;
  readonly documentId: string;
  /** As requested. */
  readonly name: string;
  readonly prefix: string;
  readonly source: SegmentSource;
}

/**
 * Stores entries. An entry replaces an existing one of the same time; of two with the same time the later in the list
 * is stored.
 * @returns the etag of the last segment written; 0 when `entries` is empty.
 * @throws EngineError document-missing, invalid-operation for the name, json-invalid without values,
 * series-out-of-range, series-value-invalid
 */
export function appendToSeries(
  transaction: Transaction,
  documentId: string,
  name: string,
  entries: readonly SeriesEntry[],
): number {
  const series = openSeries(transaction, documentId, name);
  if (entries.length === 0) return 0;
  checkAppended(series);
  return store(series, entries, latest);
}

/**
 * Gathers entries of one series, to store them together: entries that are stored one by one write their whole segment
 * each time. Other changes of the document and of its series must wait until they are stored.
 */
export class SeriesAppends {
  readonly #series: OpenSeries;
  readonly #entries: SeriesEntry[] = [];

  /** @throws EngineError as `appendToSeries` */
  constructor(transaction: Transaction, documentId: string, name: string) {
    this.#series = openSeries(transaction, documentId, name);
    checkAppended(this.#series);
    checkSeriesName(name);
  }

  get isEmpty(): boolean {
    return this.#entries.length === 0;
  }

  isOf(documentId: string, name: string): boolean {
    return this.#series.documentId === documentId && this.#series.name === name;
  }

  /** @throws EngineError as `appendToSeries` */
  add(entry: SeriesEntry): void {
    checkEntry(this.#series, entry);
    this.#entries.push(entry);
  }

  store(): void {
    if (this.#entries.length > 0) store(this.#series, this.#entries, latest);
  }
}

function latest(_old: SeriesEntry, added: SeriesEntry): SeriesEntry {
  return added;
}

/** @throws EngineError invalid-operation */
function checkAppended(series: OpenSeries): void {
  checkOwnName(series);
  if (!isIncremental(series.name)) return;
  throw new EngineError(
    "invalid-operation",
    "Cannot perform append operations on Incremental Time Series",
  );
}

/** An increment of the values at one time; missing values start at 0. */
export interface SeriesIncrement {
  readonly time: number;
  readonly values: readonly number[];
}

/** Adds to the values of an incremental series. @returns and @throws as `appendToSeries` */
export function incrementSeries(
  transaction: Transaction,
  documentId: string,
  name: string,
  increments: readonly SeriesIncrement[],
): number {
  const series = openSeries(transaction, documentId, name);
  if (increments.length === 0) return 0;
  checkOwnName(series);
  if (!isIncremental(name)) {
    throw new EngineError(
      "invalid-operation",
      "Cannot perform increment operations on Non Incremental Time Series",
    );
  }
  checkLengths(increments);
  const { hash } = transaction.state.origin;
  const entries = increments.map(({ time, values }) => ({
    time,
    values,
    tag: tagOfIncrement(values, hash),
  }));
  return store(series, entries, addUp);
}

/** Increments of one time in one request need equally many values. @throws EngineError invalid-operation */
function checkLengths(increments: readonly SeriesIncrement[]): void {
  const lengths = new Map<number, number>();
  for (const { time, values } of increments) {
    const known = lengths.get(time) ?? values.length;
    if (known !== values.length) {
      const date = seriesTimeText(time);
      const shown = `${date.slice(5, 7)}/${date.slice(8, 10)}/${date.slice(0, 4)} ${date.slice(11, 19)}`;
      throw new EngineError(
        "invalid-operation",
        `Previous increment to timestamp ${shown} had different number of values ${known} vs. current with ${values.length}`,
      );
    }
    lengths.set(time, known);
  }
}

/**
 * Deletes the entries from `from` to `to`, both inclusive, in milliseconds since 1970.
 * @returns the etag of the deletion; 0 when there was nothing to delete. @throws EngineError document-missing
 */
export function deleteFromSeries(
  transaction: Transaction,
  documentId: string,
  name: string,
  from: number = timeMin,
  to: number = timeMax,
): number {
  const series = openSeries(transaction, documentId, name);
  const { prefix, source, document } = series;
  const { timeSeries, timeSeriesSegments } = transaction.keyspaces;
  let etag = 0;
  for (const [key, segment] of [...segmentsBetween(source, prefix, from, to)]) {
    const kept =
      from <= segment.first && segment.last <= to
        ? []
        : segment.toEntries().filter(({ time }) => time < from || time > to);
    if (kept.length === segment.count) continue;
    transaction.seriesEntries += segment.count - kept.length;
    etag = transaction.nextEtag();
    const rest = kept.length === 0 ? undefined : Segment.of(kept);
    transaction.putEntry(timeSeriesSegments, key, rest, etag);
  }
  if (etag === 0) return 0;
  const stored = transaction.entry(timeSeries, seriesKey(documentId, name));
  assert(stored !== undefined, "a series with segments has a name");
  // Where entries remain, the etag of the name shows incremental backups that some were deleted.
  const isEmpty = lastSegment(source, prefix) === undefined;
  transaction.putEntry(timeSeries, seriesKey(documentId, name), isEmpty ? undefined : stored, etag);
  if (isEmpty) transaction.touch(document);
  transaction.countDeletedRange(transaction.collectionOf(document));
  announce(series, "Delete", from === timeMin ? null : from, to === timeMax ? null : to, etag);
  return etag;
}

/** The source of a copy. Times are inclusive, in milliseconds since 1970. */
interface SeriesRange {
  readonly documentId: string;
  readonly name: string;
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/**
 * Copies entries from one series to another; in an incremental series they are added to the existing ones.
 * @returns and @throws as `appendToSeries`; a missing source copies nothing.
 */
export function copySeries(
  transaction: Transaction,
  { documentId, name, from = timeMin, to = timeMax }: SeriesRange,
  target: { readonly documentId: string; readonly name: string },
): number {
  const series = openSeries(transaction, target.documentId, target.name);
  const prefix = segmentPrefix(documentId, name);
  const entries: SeriesEntry[] = [];
  for (const [, segment] of segmentsBetween(segmentsIn(transaction), prefix, from, to)) {
    for (const entry of segment.toEntries()) {
      if (entry.time >= from && entry.time <= to) entries.push(entry);
    }
  }
  if (entries.length === 0) return 0;
  if (!isIncremental(target.name)) return store(series, entries, (_old, added) => added);
  if (!isIncremental(name)) {
    throw new EngineError(
      "json-invalid",
      `Tag of '${target.name}' time-series for document '${target.documentId}' are illegal (Tag:${entries[0]?.tag ?? ""})`,
    );
  }
  return store(series, entries, addUp);
}

/**
 * Stores entries of a dump, also of an incremental series. Entries replace existing ones of the same time; entries of
 * an incremental series, which has one per node that incremented it, are first added up. Names of rollups are allowed.
 * @returns and @throws as `appendToSeries`
 */
export function importSeries(
  transaction: Transaction,
  documentId: string,
  name: string,
  entries: readonly SeriesEntry[],
): number {
  const series = openSeries(transaction, documentId, name);
  if (entries.length === 0) return 0;
  const added = isIncremental(name) ? sortedEntries(entries, addUp) : entries;
  return store(series, added, latest);
}

/** Removes the entries of all series of a deleted document. */
export function removeSegmentsOf(transaction: Transaction, documentId: string): void {
  const { timeSeriesSegments } = transaction.keyspaces;
  const prefix = seriesKey(documentId, "");
  for (const [key] of transaction.entriesWithPrefix(timeSeriesSegments, prefix)) {
    transaction.putEntry(timeSeriesSegments, key, undefined);
  }
}

/**
 * Writes all segments of a document again, under new etags: the document gets another collection, which the followers of
 * series learn from this.
 */
export function rewriteSegmentsOf(transaction: Transaction, documentId: string): void {
  const { timeSeriesSegments } = transaction.keyspaces;
  const prefix = seriesKey(documentId, "");
  for (const [key, segment] of transaction.entriesWithPrefix(timeSeriesSegments, prefix)) {
    transaction.putEntry(timeSeriesSegments, key, segment, transaction.nextEtag());
  }
}

/** Removes all series of a deleted document, whose entries are removed by `removeSegmentsOf`. */
export function removeSeriesOf(
  transaction: Transaction,
  documentId: string,
  collectionId: number,
): void {
  const { timeSeries } = transaction.keyspaces;
  for (const [key] of transaction.entriesWithPrefix(timeSeries, seriesKey(documentId, ""))) {
    transaction.putEntry(timeSeries, key, undefined);
    transaction.countDeletedRange(collectionId);
  }
}

/** @throws EngineError document-missing */
function openSeries(transaction: Transaction, documentId: string, name: string): OpenSeries {
  const document = transaction.find(documentId);
  if (document < 0) {
    throw new EngineError(
      "document-missing",
      `Document '${documentId}' does not exist. Cannot operate on time series of a missing document`,
    );
  }
  const prefix = segmentPrefix(documentId, name);
  return { transaction, document, documentId, name, prefix, source: segmentsIn(transaction) };
}

/** Refuses the names of rollups, unless the collection has such a policy. @throws EngineError invalid-operation */
function checkOwnName({ transaction, document, name }: OpenSeries): void {
  if (isRollup(name) && !hasPolicyOf(transaction, document, name)) {
    throw new EngineError(
      "invalid-operation",
      `Illegal time series name : '${shown(name)}'. Time series names cannot contain '@' character, since this character is reserved for time series rollups.`,
    );
  }
}

function hasPolicyOf(transaction: Transaction, document: number, name: string): boolean {
  const { values, collections } = transaction.keyspaces;
  const record = (transaction.entry(values, databaseRecordKey) ?? {}) as JsonObject;
  const policies = policiesOf(record, collections.nameOf(transaction.collectionOf(document)));
  const wanted = foldedName(name.slice(name.indexOf(rollupSeparator) + 1));
  return policies?.policies.some((policy) => foldedName(policy.name) === wanted) === true;
}

/** @throws EngineError as `appendToSeries` */
function checkEntry({ documentId, name }: OpenSeries, { time, values, tag }: SeriesEntry): void {
  if (!isSeriesTime(time)) {
    throw new EngineError(
      "out-of-range",
      `A time of time-series '${name}' for document '${documentId}' must be a whole millisecond of the years 1 to 9999, but is ${time} milliseconds from 1970.`,
    );
  }
  if (values.length === 0) {
    throw new EngineError(
      "json-invalid",
      `The entries of '${name}' time-series for document '${documentId}' must contain at least one value`,
    );
  }
  if (values.length > seriesValuesMax) {
    throw new EngineError(
      "series-out-of-range",
      `Specified argument was out of the range of valid values. (Parameter 'TimeSeriesValuesSegment can handle up to ${seriesValuesMax} values, but had: ${values.length}')`,
    );
  }
  if (values.some(Number.isNaN)) {
    throw new EngineError(
      "series-value-invalid",
      `Failed to append TimeSeries entry. TimeSeries entries cannot have 'double.NaN' as one of their values. Failed on Timestamp : '${seriesTimeText(time)}', Values : [${values.join(",")}]. `,
    );
  }
  if (tag !== null && Buffer.byteLength(tag) > seriesTagBytesMax) {
    throw new EngineError(
      "series-out-of-range",
      `Tag '${tag}' is too big (max ${seriesTagBytesMax} bytes) for document '${documentId}' in time series: ${name} (Parameter 'tag')`,
    );
  }
}

/**
 * Returns the tag that RavenDB 7.2.7 shows for an incremental entry: the database that incremented or decremented it;
 * null: both.
 */
function tagOfIncrement(values: readonly number[], databaseHash: string): string | null {
  const hasNegative = values.some((value) => value < 0);
  if (!hasNegative) return `TC:INC-${databaseHash}`;
  return values.some((value) => value > 0) ? null : `TC:DEC-${databaseHash}`;
}

function addUp(old: SeriesEntry, added: SeriesEntry): SeriesEntry {
  const count = Math.max(old.values.length, added.values.length);
  const values = Array.from(
    { length: count },
    (_, i) => (old.values[i] ?? 0) + (added.values[i] ?? 0),
  );
  return { time: old.time, values, tag: old.tag === added.tag ? old.tag : null };
}

/** Checks entries and merges them into their segments. @returns the etag of the last segment. */
function store(series: OpenSeries, entries: readonly SeriesEntry[], combine: Combine): number {
  const { transaction, document, documentId, name, prefix, source } = series;
  checkSeriesName(name);
  for (const entry of entries) checkEntry(series, entry);
  transaction.seriesEntries += entries.length;
  const sorted = sortedEntries(entries, combine);
  let etag = 0;
  for (let at = 0; at < sorted.length; ) {
    const time = (sorted[at] as SeriesEntry).time; // at < length
    const floor = segmentAt(source, prefix, time);
    const next = segmentAfter(source, floor?.[0] ?? prefix, prefix);
    let end = at + 1;
    if (next === undefined) end = sorted.length;
    else
      while (end < sorted.length && (sorted[end] as SeriesEntry).time < timeOfKey(next[0])) end++;
    const group = sorted.slice(at, end);
    at = end;
    if (floor === undefined) etag = putInFront(series, group, next);
    else if (next === undefined && time > floor[1].last) etag = putAfter(series, group, floor);
    else etag = writeEntries(series, joined(floor[1].toEntries(), group, combine), floor[0]);
  }
  const { timeSeries } = transaction.keyspaces;
  const key = seriesKey(documentId, name);
  if (transaction.entry(timeSeries, key) === undefined) {
    transaction.putEntry(timeSeries, key, { name }, etag);
    transaction.touch(document);
  }
  announce(series, "Put", sorted[0]?.time ?? null, sorted.at(-1)?.time ?? null, etag);
  return etag;
}

/** Sorts by time; entries of the same time are combined in list order. */
function sortedEntries(entries: readonly SeriesEntry[], combine: Combine): SeriesEntry[] {
  const sorted: SeriesEntry[] = [];
  for (const entry of entries.toSorted((left, right) => left.time - right.time)) {
    const last = sorted.at(-1);
    if (last?.time === entry.time) sorted[sorted.length - 1] = combine(last, entry);
    else sorted.push(entry);
  }
  return sorted;
}

/** Merges two lists in time order. */
function joined(
  old: readonly SeriesEntry[],
  added: readonly SeriesEntry[],
  combine: Combine,
): SeriesEntry[] {
  const all: SeriesEntry[] = [];
  let i = 0;
  for (const entry of added) {
    for (let before = old[i]; before !== undefined && before.time < entry.time; before = old[i]) {
      all.push(before);
      i++;
    }
    const same = old[i];
    if (same?.time === entry.time) {
      all.push(combine(same, entry));
      i++;
    } else all.push(entry);
  }
  all.push(...old.slice(i));
  return all;
}

/** All existing entries are later: the group is added to the first segment if it fits, else before it. */
function putInFront(
  series: OpenSeries,
  group: readonly SeriesEntry[],
  next: [string, Segment] | undefined,
): number {
  if (next === undefined || next[1].count + group.length > entriesMax(widthOf(group, next[1]))) {
    return writeEntries(series, group);
  }
  remove(series, next[0]);
  return writeEntries(series, [...group, ...next[1].toEntries()]);
}

/** All existing entries are earlier: the group is added to the last segment while that is small, else after it. */
function putAfter(
  series: OpenSeries,
  group: readonly SeriesEntry[],
  [key, last]: [string, Segment],
): number {
  if (last.count * tailShare < entriesMax(widthOf(group, last))) {
    return writeEntries(series, [...last.toEntries(), ...group], key);
  }
  const before = segmentBefore(series, key);
  if (before !== undefined) {
    const [earlierKey, earlier] = before;
    const room = entriesMax(Math.max(earlier.width, last.width));
    if (earlier.count + last.count <= room) {
      remove(series, key);
      writeEntries(series, [...earlier.toEntries(), ...last.toEntries()], earlierKey);
    }
  }
  return writeEntries(series, group);
}

/**
 * Writes entries as segments of even size; the first under `key`, which must be at or before its first entry, the
 * others under their first times. @returns the etag of the last.
 */
function writeEntries(
  { transaction, prefix }: OpenSeries,
  entries: readonly SeriesEntry[],
  key: string | null = null,
): number {
  const { timeSeriesSegments } = transaction.keyspaces;
  const pieces = Math.ceil(entries.length / entriesMax(widthOf(entries)));
  let etag = 0;
  let from = 0;
  for (let piece = 1; piece <= pieces; piece++) {
    const to = Math.round((entries.length * piece) / pieces);
    const part = entries.slice(from, to);
    const first = part[0];
    assert(first !== undefined, "a segment has an entry");
    const ownKey = from === 0 && key !== null ? key : segmentKey(prefix, first.time);
    etag = transaction.nextEtag();
    transaction.putEntry(timeSeriesSegments, ownKey, Segment.of(part), etag);
    from = to;
  }
  return etag;
}

function remove({ transaction }: OpenSeries, key: string): void {
  const { timeSeriesSegments } = transaction.keyspaces;
  transaction.putEntry(timeSeriesSegments, key, undefined, transaction.nextEtag());
}

/** Returns the entries of a full segment whose widest entry has `width` values. */
function entriesMax(width: number): number {
  return Math.floor(seriesSegmentNumbersMax / (1 + width));
}

function widthOf(entries: readonly SeriesEntry[], segment?: Segment): number {
  let width = segment?.width ?? 1;
  for (const { values } of entries) width = Math.max(width, values.length);
  return width;
}

function segmentAfter(
  source: SegmentSource,
  key: string,
  prefix: string,
): [string, Segment] | undefined {
  for (const found of source.up(prefix, key)) if (found[0] !== key) return found;
  return undefined;
}

function segmentBefore({ source, prefix }: OpenSeries, key: string): [string, Segment] | undefined {
  for (const found of source.down(prefix, key)) if (found[0] !== key) return found;
  return undefined;
}

function announce(
  { transaction, document, documentId, name }: OpenSeries,
  type: "Put" | "Delete",
  from: number | null,
  to: number | null,
  etag: number,
): void {
  if (transaction.isUnwatched) return;
  const collectionId = transaction.collectionOf(document);
  transaction.changed({
    kind: "time-series",
    type,
    documentId,
    name,
    from,
    to,
    etag,
    collectionId,
  });
}
