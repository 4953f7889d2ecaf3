/**
 * Time series operations of requests (batches, bulk inserts and their own endpoint): parsing and execution. Error texts
 * equal those of RavenDB 7.2.7.
 *
 * Stricter than RavenDB: boolean values and null times are refused, where it stores 0, 1 or the year 1. A null value is
 * 0, as there: clients send null for values that a typed entry lacks.
 */
import { parseDueTime } from "../base/due-time.ts";
import { EngineError } from "../base/errors.ts";
import type { Work } from "../base/scheduling/work-budget.ts";
import { formatTimestamp, lastMillisecond, parseTimestamp } from "../base/timestamp.ts";
import type { SeriesEntry } from "../state/keyspaces/time-series/series-segment.ts";
import { seriesTimeText, timeMax, timeMin } from "../state/keyspaces/time-series/time-series.ts";
import type { Transaction } from "../state/store/transaction.ts";
import {
  appendToSeries,
  deleteFromSeries,
  incrementSeries,
  type SeriesIncrement,
} from "./time-series.ts";

/** The operations on one series, in this order. */
interface SeriesOperations {
  readonly name: string;
  /** Times in milliseconds since 1970, inclusive; undefined is open. */
  readonly deletes: readonly {
    readonly from: number | undefined;
    readonly to: number | undefined;
  }[];
  readonly increments: readonly SeriesIncrement[];
  readonly appends: readonly SeriesEntry[];
}

/**
 * @param value `{"Name","Appends"?:[{"Timestamp","Values","Tag"?}],"Deletes"?:[{"From"?,"To"?}],
 * "Increments"?:[{"Timestamp","Values"}]}`
 * @throws EngineError json-invalid, invalid-format
 */
export function* parseSeriesOperations(value: unknown): Work<SeriesOperations> {
  const { Name, Appends, Deletes, Increments } = objectOf(value, "TimeSeries");
  if (typeof Name !== "string" || Name === "") {
    throw missing("Missing 'Name' property on TimeSeriesOperation 'TimeSeriesOperation'");
  }
  if (Name.includes("\u0000")) {
    throw new EngineError("invalid-format", "The name of a time series cannot contain NUL.");
  }
  const appends = yield* mapped(listOf(Appends, "Appends"), parseAppend);
  yield* checkApart(Name, appends);
  return {
    name: Name,
    deletes: yield* mapped(listOf(Deletes, "Deletes"), (item) => {
      const { From, To } = objectOf(item, "Deletes");
      return { from: optionalTime(From), to: optionalTime(To) };
    }),
    increments: yield* mapped(listOf(Increments, "Increments"), parseIncrement),
    appends: appends.map(({ entry }) => entry),
  };
}

/**
 * @param value `{"Name","TimeFormat"?,"Appends":[[time,count,…values,tag?],…]}`, as in bulk inserts. Times are
 * milliseconds since 1970.
 * @throws EngineError json-invalid, invalid-format
 */
export function* parseBulkAppends(value: unknown): Work<SeriesOperations> {
  const { Name, TimeFormat, Appends } = objectOf(value, "TimeSeries");
  const { name } = yield* parseSeriesOperations({ Name });
  if (TimeFormat !== undefined && TimeFormat !== null && TimeFormat !== "UnixTimeInMs") {
    throw new EngineError("invalid-format", `'${String(TimeFormat)}' is not a known TimeFormat`);
  }
  const appends = yield* mapped(listOf(Appends, "Appends"), (item): SeriesEntry => {
    if (!Array.isArray(item)) throw unfit(item, "Sparrow.Json.BlittableJsonReaderArray");
    const [time, count, ...rest] = item as unknown[];
    const isShaped =
      Number.isSafeInteger(time) && Number.isSafeInteger(count) && rest.length >= (count as number);
    if (!isShaped) {
      throw missing("An append of a bulk insert is [time, number of values, ...values, tag?]");
    }
    const tag = rest[count as number];
    return {
      time: checkedTime(time as number, time),
      values: rest.slice(0, count as number).map(numberOf),
      tag: tagOf(tag),
    };
  });
  return { name, deletes: [], increments: [], appends };
}

/**
 * Executes the operations: deletions, then increments, then appends.
 * @returns the etag of the last change; 0 if nothing changed.
 * @throws EngineError document-missing, and the errors of `appendToSeries` and `incrementSeries`
 */
export function* applySeriesOperations(
  transaction: Transaction,
  documentId: string,
  { name, deletes, increments, appends }: SeriesOperations,
): Work<number> {
  let etag = 0;
  for (const { from, to } of deletes) {
    etag = deleteFromSeries(transaction, documentId, name, from, to) || etag;
    yield;
  }
  for (const part of parts(increments)) {
    etag = incrementSeries(transaction, documentId, name, part) || etag;
    yield;
  }
  for (const part of parts(appends)) {
    etag = appendToSeries(transaction, documentId, name, part) || etag;
    yield;
  }
  return etag;
}

/** Entries stored without a pause. */
const entriesPerPart = 1024;

/** Splits the items into parts of `entriesPerPart`; an empty list yields one empty part. */
function* parts<Item>(items: readonly Item[]): Generator<readonly Item[]> {
  for (let at = 0; at === 0 || at < items.length; at += entriesPerPart) {
    yield items.slice(at, at + entriesPerPart);
  }
}

/**
 * Parses a time to milliseconds; undefined when it is null or absent.
 * @param millisecondOf how finer times are rounded. @throws EngineError invalid-format
 */
export function optionalTime(value: unknown, millisecondOf = lastMillisecond): number | undefined {
  if (value === undefined || value === null) return undefined;
  const bound = typeof value === "string" ? millisecondOf(utcText(value)) : null;
  if (bound === null) throw unfit(value, "System.DateTime");
  return bound.ms;
}

interface ParsedAppend {
  readonly entry: SeriesEntry;
  /** The time as sent, in microseconds. */
  readonly micros: number;
}

function parseAppend(item: unknown): ParsedAppend {
  const { Timestamp, Values, Tag } = objectOf(item, "Appends");
  const { time, micros } = requiredTime(Timestamp);
  return { entry: { time, values: valuesOf(Values), tag: tagOf(Tag) }, micros };
}

function parseIncrement(item: unknown): SeriesIncrement {
  const { Timestamp, Values } = objectOf(item, "Increments");
  return { time: requiredTime(Timestamp).time, values: valuesOf(Values) };
}

/** Of two entries that differ by less than a millisecond one would be lost. @throws EngineError json-invalid */
function* checkApart(name: string, appends: readonly ParsedAppend[]): Work<void> {
  const sent = new Map<number, number>();
  for (const { entry, micros } of appends) {
    yield;
    const before = sent.get(entry.time);
    if (before !== undefined && before !== micros) {
      throw missing(
        `The entries of '${name}' time-series must be sorted by their timestamps, and cannot contain duplicate timestamps. Got: current '${seriesTimeText(entry.time)}', next '${seriesTimeText(entry.time)}', make sure your measures have at least 1ms interval.`,
      );
    }
    sent.set(entry.time, micros);
  }
}

/** As `Array.map`, in slices. */
function* mapped<Item, Result>(
  items: readonly Item[],
  make: (item: Item) => Result,
): Work<Result[]> {
  const results: Result[] = [];
  for (const item of items) {
    results.push(make(item));
    yield;
  }
  return results;
}

function requiredTime(value: unknown): { time: number; micros: number } {
  if (value === undefined || value === null) throw missing("Missing 'Timestamp' property");
  return parsedTime(value);
}

function parsedTime(value: unknown): { time: number; micros: number } {
  if (typeof value !== "string") throw unfit(value, "System.DateTime");
  const text = utcText(value);
  const bound = lastMillisecond(text);
  if (bound === null) throw unfit(value, "System.DateTime");
  return { time: bound.ms, micros: parseTimestamp(text) };
}

/** Returns a time with an offset from UTC as a time in UTC; other text unchanged. */
function utcText(text: string): string {
  const micros = /[+-]\d\d:?\d\d$/.test(text.slice(19)) ? parseDueTime(text) : Number.NaN;
  return Number.isNaN(micros) ? text : formatTimestamp(micros);
}

function checkedTime(time: number, sent: unknown): number {
  if (time < timeMin || time > timeMax) throw unfit(sent, "System.DateTime");
  return time;
}

function valuesOf(value: unknown): number[] {
  if (value === undefined || value === null) throw missing("Missing 'Values' property");
  if (!Array.isArray(value)) throw unfit(value, "Sparrow.Json.BlittableJsonReaderArray");
  return value.map(numberOf);
}

function numberOf(value: unknown): number {
  if (typeof value === "number") return value;
  if (typeof value === "boolean") return Number(value);
  if (value === null) return 0;
  if (value === "NaN") return Number.NaN;
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : Number.NaN;
  if (Number.isNaN(number)) throw unfit(value, "System.Double");
  return number;
}

function tagOf(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== "string") throw unfit(value, "Sparrow.Json.LazyStringValue");
  return value;
}

function listOf(value: unknown, name: string): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw unfit(value, "Sparrow.Json.BlittableJsonReaderArray");
  if (value.some((item) => item === null)) throw unfit(null, `an element of ${name}`);
  return value;
}

function objectOf(value: unknown, name: string): Record<string, unknown> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw unfit(value, `the object ${name}`);
}

function missing(message: string): EngineError {
  return new EngineError("json-invalid", message);
}

const kinds: Readonly<Record<string, string>> = {
  string: "Sparrow.Json.LazyStringValue",
  number: "System.Int64",
  boolean: "System.Boolean",
};

function unfit(value: unknown, type: string): EngineError {
  const kind = kinds[typeof value] ?? "Sparrow.Json.BlittableJsonReaderObject";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return new EngineError("invalid-format", `Could not convert ${kind} ('${text}') to ${type}`);
}
