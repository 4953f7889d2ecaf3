/**
 * Runs series queries for rows: reads the segments of a range one by one, as of one moment, tests their entries and
 * passes them to the groups or to the output text. No other state of a series is retained.
 *
 * Invariants:
 * - All reads of a row's record happen before the first pause.
 * - The bytes of a result are held by the query's budget until its caller releases them.
 */
import { EngineError, invalidArgument } from "../../base/errors.ts";
import { byteArrayOpen, byteObjectOpen } from "../../base/json/bytes.ts";
import { quoteString } from "../../base/json/escape.ts";
import { findMember, readValue, ValueSpan } from "../../base/json/field-access.ts";
import type { Steps } from "../../base/scheduling/steps.ts";
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import { idOf } from "../../state/documents/document-record.ts";
import type { SegmentEntries } from "../../state/keyspaces/time-series/series-segment.ts";
import {
  lastSegment,
  segmentsBetween,
  timeMax,
  timeMin,
} from "../../state/keyspaces/time-series/time-series.ts";
import type { AnalyzedQuery, ProjectedField, ProjectedValue } from "../analysis/analyzed-query.ts";
import { bodyOf } from "../conditions/compile-filter.ts";
import { readRecord } from "../execution/execute-load.ts";
import { compileColumn, type RowParts } from "../execution/results-projection.ts";
import type { LoadedValue, RowSource, StoredRow, StoredSeries } from "../execution/row-source.ts";
import {
  argumentText,
  boundTime,
  type SeriesBound,
  type SeriesFunction,
} from "./analyze-series.ts";
import {
  type ArgumentReader,
  composite,
  type EntryValue,
  type LoadedTag,
  type SeriesArgument,
  type SeriesDocument,
  SeriesFilter,
  type TestedEntry,
} from "./series-filter.ts";
import { SeriesGroups } from "./series-groups.ts";
import type { SeriesPart } from "./series-parts.ts";
import { emptySeries, type SeriesResult, SeriesText } from "./series-text.ts";
import { addPeriod, notATime } from "./time-period.ts";

/** The row that a series query runs for. */
interface SeriesRow {
  readonly document: SeriesDocument;
  /** Returns the document under an alias of `load`, or null. */
  loaded(alias: string): SeriesDocument | null;
}

/** Units of work: an entry, each value or condition of it, an entry that is written. */
const entryUnits = 4;
const writtenUnits = 64;
/** Entries between two checks of the budget. */
const stride = 16;
/** Documents named by tags whose values are kept, and bytes of one besides its texts. */
const tagsMax = 8192;
const tagBytesMin = 256;

export class SeriesRunner {
  readonly #query: AnalyzedQuery;
  readonly #source: RowSource;
  readonly #budget: WorkBudget;
  readonly #prepared = new Map<string, PreparedSeries>();
  readonly #columns: readonly Column[];

  constructor(query: AnalyzedQuery, source: RowSource, budget: WorkBudget) {
    this.#query = query;
    this.#source = source;
    this.#budget = budget;
    const { projection } = query;
    const fields = projection.kind === "fields" ? projection.fields : [];
    this.#columns = fields.flatMap((field) => columnOf(field, query, source));
  }

  /** Returns the results of the columns that are series queries, in their order. */
  *columns(parts: RowParts): Steps<SeriesResult[]> {
    const row = seriesRowOf(this.#query, parts.row, parts.loaded);
    const calls = this.#columns.map(({ name, readers }) =>
      this.#begin(
        name,
        readers.map((reader) => reader(parts, row)),
        row,
      ),
    );
    const results: SeriesResult[] = [];
    for (const call of calls) results.push(yield* this.#finish(call));
    return results;
  }

  /** Returns the result of one series query of the query. @throws query-invalid, out-of-range, work-limit, … */
  *call(name: string, args: readonly SeriesArgument[], row: SeriesRow): Steps<SeriesResult> {
    return yield* this.#finish(this.#begin(name, args, row));
  }

  #begin(name: string, args: readonly SeriesArgument[], row: SeriesRow): SeriesCall | null {
    const series = this.#query.series.get(name) as SeriesFunction; // analysis checked the name
    checkArguments(series, args);
    const found = this.#sourceOf(series, args, row);
    const stored = found === null ? null : this.#source.seriesOf(found.id, found.name);
    if (stored === null) return null;
    let prepared = this.#prepared.get(name);
    if (prepared === undefined) {
      prepared = new PreparedSeries(series, this.#query);
      this.#prepared.set(name, prepared);
    }
    const reader = new Arguments(args);
    const bounds = boundsOf(series, stored, reader);
    if (bounds === null) return null;
    prepared.filter.begin(stored.valueNames, reader);
    return {
      prepared,
      stored,
      ...bounds,
      begin: () => prepared.filter.begin(stored.valueNames, reader),
    };
  }

  *#finish(call: SeriesCall | null): Steps<SeriesResult> {
    if (call === null) return emptySeries;
    const { prepared, stored, from, to } = call;
    const { series } = prepared;
    call.begin();
    const text = new SeriesText(series, this.#budget);
    const isRaw = series.aggregates.length === 0;
    const range = shownRange(call, series.offsetMs ?? 0);
    const groups = isRaw
      ? null
      : new SeriesGroups(series, range, this.#budget, (group) => text.group(group));
    const reading = new Reading(prepared, groups, text, this.#budget);
    for (const part of partsOf(stored)) {
      const [first, last] = [Math.max(from, part.from), Math.min(to, part.to)];
      if (part.isRollup) checkRolledAggregates(series);
      reading.isRollup = part.isRollup;
      for (const [, segment] of segmentsBetween(stored.segments, part.prefix, first, last)) {
        const entries = segment.unpack();
        const low = segment.first < first ? entries.countBefore(first) : 0;
        const high = segment.last > last ? entries.countBefore(last + 1) : entries.count;
        if (prepared.readsTags) yield* this.#loadTags(prepared, entries, low, high);
        yield* this.#budget.steps(reading.entries(entries, low, high));
      }
    }
    if (groups !== null && groups.count > 0) yield* this.#budget.steps(groups.finish());
    text.finish();
    const count = groups === null ? reading.count : groups.count;
    return { count, pieces: text.pieces, bytes: text.bytes, valueNames: stored.valueNames };
  }

  /** Returns the document and the name of a series; null: the document is not there. @throws query-invalid */
  #sourceOf(
    series: SeriesFunction,
    args: readonly SeriesArgument[],
    row: SeriesRow,
  ): { readonly id: string; readonly name: string } | null {
    const [root = "", ...rest] = series.source.path.map(({ name }) => name);
    const position = series.parameters?.indexOf(root) ?? -1;
    const argument = args[position];
    if (rest.length === 0) {
      if (position < 0) return { id: row.document.id, name: root };
      const name = argument?.kind === "value" ? argument.value : null;
      if (typeof name === "string") return { id: row.document.id, name };
      throw new EngineError(
        "query-invalid",
        `Unable to parse TimeSeries name from expression '${argumentText(series.source)}'. Expected argument '${root}' to be a string`,
      );
    }
    const name = rest.join(".");
    const document =
      series.parameters === null
        ? this.#aliased(series, root, row)
        : this.#given(series, position, argument, row);
    return document === null ? null : { id: document.id, name };
  }

  #aliased(series: SeriesFunction, root: string, row: SeriesRow): SeriesDocument | null {
    const { source, load } = this.#query;
    if (load.some(({ alias }) => alias === root)) return row.loaded(root);
    if (source.alias === null || root === source.alias) return row.document;
    throw new EngineError(
      "query-invalid",
      `Unable to parse TimeSeries name from expression '${argumentText(series.source)}'. '${root}' is no alias of the query.`,
    );
  }

  /** An argument that is no document stands for the row's, as in RavenDB 7.2.7. */
  #given(
    series: SeriesFunction,
    position: number,
    argument: SeriesArgument | undefined,
    row: SeriesRow,
  ): SeriesDocument {
    if (position >= 0) return argument?.kind === "document" ? argument.document : row.document;
    const root = series.source.path[0]?.name ?? "";
    throw new EngineError(
      "query-invalid",
      `Unable to parse TimeSeries name from expression '${argumentText(series.source)}'. '${root}' is unknown, and no matching argument was provided to time series function '${series.name}'.`,
    );
  }

  /** Reads the documents named by the tags of entries, unless their values are known. */
  *#loadTags(
    prepared: PreparedSeries,
    entries: SegmentEntries,
    low: number,
    high: number,
  ): Steps<void> {
    const { tags } = prepared;
    if (tags.size > tagsMax) {
      this.#budget.release(prepared.tagBytes);
      prepared.tagBytes = 0;
      tags.clear();
    }
    for (let i = low; i < high; i++) {
      const tag = entries.tag(i);
      if (tag === null || tags.has(tag)) continue;
      const loaded = yield* this.#loadedTag(prepared, tag);
      const bytes = tagBytesMin + (loaded === null ? 0 : lengthOf(loaded) * 2);
      this.#budget.hold(bytes);
      prepared.tagBytes += bytes;
      tags.set(tag, loaded);
      this.#budget.spend(writtenUnits);
      if (this.#budget.isDue) yield this.#budget.pause();
    }
  }

  *#loadedTag({ series, filter }: PreparedSeries, tag: string): Steps<LoadedTag | null> {
    const docNum = this.#source.findDocument(tag);
    if (docNum < 0) return null;
    const row: StoredRow = { docNum: 0, etag: 0, bytes: noBytes, start: 0, block: null };
    if (!(yield* readRecord(docNum, this.#source, row))) return null;
    const id = idOf(row.bytes, row.start);
    const at = bodyOf(row);
    const values = filter.loadedPaths.map((path) => valueAt(row.bytes, at, path));
    const { key } = series;
    if (key?.kind !== "loaded") return { id, values, keyText: null };
    const span = spanAt(row.bytes, at, key.path);
    const found = span === null ? null : row.bytes.toString("utf8", span.from, span.to);
    return { id, values, keyText: key.path.length === 0 ? JSON.stringify(id) : found };
  }
}

const noBytes = Buffer.alloc(0);

/** A series query with its cached state for one run. */
class PreparedSeries {
  readonly series: SeriesFunction;
  readonly filter: SeriesFilter;
  readonly tags = new Map<string, LoadedTag | null>();
  /** Bytes held for them. */
  tagBytes = 0;
  readonly readsTags: boolean;
  readonly unitsOfEntry: number;

  constructor(series: SeriesFunction, { parameters }: AnalyzedQuery) {
    this.series = series;
    this.filter = new SeriesFilter(series, parameters);
    this.readsTags = series.loadAlias !== null;
    const written = series.aggregates.length === 0 ? writtenUnits : series.aggregates.length;
    this.unitsOfEntry = entryUnits + written + (series.where === null ? 0 : entryUnits);
  }
}

/** A call whose arguments were read. Times are inclusive milliseconds since 1970. */
interface SeriesCall {
  readonly prepared: PreparedSeries;
  readonly stored: StoredSeries;
  readonly from: number;
  readonly to: number;
  readonly isFromShown: boolean;
  readonly isToShown: boolean;
  /** Sets the arguments of its filter, which calls of the same query share. */
  begin(): void;
}

function partsOf({ parts, prefix }: StoredSeries): readonly SeriesPart[] {
  return parts ?? [{ prefix, isRollup: false, from: timeMin, to: timeMax }];
}

/** Rollups lack the values themselves. @throws invalid-operation */
function checkRolledAggregates({ aggregates }: SeriesFunction): void {
  const wrong = aggregates.find(({ kind }) => /^(?:percentile|slope|stddev)$/.test(kind));
  if (wrong === undefined) return;
  throw new EngineError(
    "invalid-operation",
    `Cannot use aggregation method '${wrong.key}' on rolled-up time series`,
  );
}

/** Entries of one series on their way. */
class Reading {
  count = 0;
  /** Whether the next entries are rollups. */
  isRollup = false;
  readonly #prepared: PreparedSeries;
  readonly #groups: SeriesGroups | null;
  readonly #text: SeriesText;
  readonly #budget: WorkBudget;
  readonly #entry: TestedEntry = {
    time: 0,
    tag: null,
    values: new Float64Array(),
    start: 0,
    end: 0,
    loaded: null,
    isRollup: false,
  };

  constructor(
    prepared: PreparedSeries,
    groups: SeriesGroups | null,
    text: SeriesText,
    budget: WorkBudget,
  ) {
    this.#prepared = prepared;
    this.#groups = groups;
    this.#text = text;
    this.#budget = budget;
  }

  /** Returns the entries from `low` to before `high`, in time order. */
  *entries(entries: SegmentEntries, low: number, high: number): Work<void> {
    const { filter, tags, series, readsTags, unitsOfEntry } = this.#prepared;
    const { times, values, valueStarts } = entries;
    const offset = series.offsetMs ?? 0;
    const entry = this.#entry;
    entry.values = values;
    entry.isRollup = this.isRollup;
    // Unpacking costs about this.
    this.#budget.spend(values.length);
    for (let i = low; i < high; i++) {
      if (i % stride === 0) {
        this.#budget.spend(stride * unitsOfEntry);
        if (this.#budget.isDue) yield;
      }
      entry.time = (times[i] as number) + offset; // i < count
      entry.tag = entries.tag(i);
      entry.start = valueStarts[i] as number;
      entry.end = valueStarts[i + 1] as number;
      entry.loaded = readsTags && entry.tag !== null ? (tags.get(entry.tag) ?? null) : null;
      if (offset !== 0 && !(entry.time >= timeMin && entry.time <= timeMax)) throw notATime();
      if (!filter.passes(entry)) continue;
      if (this.#groups === null) {
        this.#text.entry(entry);
        this.count++;
        continue;
      }
      if (this.#groups.isBehind(entry.time)) yield* this.#groups.begin(entry.time);
      this.#groups.add(keyTextOf(series, entry), entry);
    }
  }
}

function keyTextOf({ key }: SeriesFunction, { tag, loaded }: TestedEntry): string | null {
  if (key === null) return null;
  if (key.kind === "loaded") return loaded?.keyText ?? null;
  return tag === null ? null : JSON.stringify(tag);
}

/** RavenDB 7.2.7 treats missing arguments as null, unless all of several are missing. */
function checkArguments({ name, parameters }: SeriesFunction, args: readonly unknown[]): void {
  const expected = parameters?.length ?? 0;
  if (expected < 2 || args.length > 0) return;
  throw new EngineError(
    "query-invalid",
    `Incorrect number of arguments passed to time series function '${name}'.Expected '${expected}' arguments, but got '1'`,
  );
}

type Bounds = Pick<SeriesCall, "from" | "to" | "isFromShown" | "isToShown">;

/** Null if the series has no entry. @throws invalid-argument, query-invalid, out-of-range */
function boundsOf(
  { range, name, parameters }: SeriesFunction,
  stored: StoredSeries,
  reader: Arguments,
): Bounds | null {
  const { segments } = stored;
  const parts = partsOf(stored);
  const whole = { from: timeMin, to: timeMax, isFromShown: false, isToShown: false };
  if (range === null) return whole;
  if (range.kind === "between") {
    const boundAt = (bound: SeriesBound, isFirst: boolean) => {
      if (bound.kind === "time") return bound.ms;
      const [root = "", ...path] = bound.field.path.map((part) => part.name);
      const position = parameters?.indexOf(root) ?? -1;
      if (position >= 0) {
        const value = reader.read(position, path, argumentText(bound.field));
        return boundTime(value === null ? null : String(value), isFirst);
      }
      const what = parameters === null ? "no arguments were" : "no matching argument was";
      throw new EngineError(
        "query-invalid",
        `Unable to get the value of '${argumentText(bound.field)}'. '${root}' is unknown, and ${what} provided to time series function '${name}'.`,
      );
    };
    const from = boundAt(range.from, true);
    return { from, to: boundAt(range.to, false), isFromShown: true, isToShown: true };
  }
  if (range.kind === "last") {
    const last = lastSegment(segments, parts.at(-1)?.prefix ?? stored.prefix)?.[1].last;
    return last === undefined
      ? null
      : { ...whole, from: addPeriod(last, range.period, -1), isFromShown: true };
  }
  const prefix = parts[0]?.prefix ?? stored.prefix;
  for (const [, { first }] of segments.up(prefix, prefix)) {
    return { ...whole, to: addPeriod(first, range.period), isToShown: true };
  }
  return null;
}

function shownRange(
  { from, to, isFromShown, isToShown }: Bounds,
  offset: number,
): [number | null, number | null] {
  const shifted = (time: number) => {
    const sum = time + offset;
    if (!(sum >= timeMin && sum <= timeMax)) throw notATime();
    return sum;
  };
  return [isFromShown ? shifted(from) : null, isToShown ? shifted(to) : null];
}

/** The arguments of a call. Values of documents are read once, when the call begins. */
class Arguments implements ArgumentReader {
  readonly #args: readonly SeriesArgument[];
  /** By position and path: the record's bytes are not valid later. */
  readonly #known = new Map<string, EntryValue>();

  constructor(args: readonly SeriesArgument[]) {
    this.#args = args;
  }

  read(position: number, path: readonly string[], shown: string): EntryValue {
    const key = JSON.stringify([position, ...path]);
    let value = this.#known.get(key);
    if (value === undefined) {
      value = this.#read(position, path, shown);
      this.#known.set(key, value);
    }
    return value;
  }

  #read(position: number, path: readonly string[], shown: string): EntryValue {
    const argument = this.#args[position];
    if (argument === undefined) return null;
    if (argument.kind === "value") {
      if (path.length === 0) return argument.value;
      throw new EngineError("query-invalid", `Failed to evaluate expression '${shown}'`);
    }
    if (path.length === 0) return composite;
    const { bytes, at } = argument.document;
    return valueAt(bytes, at, path) ?? null;
  }
}

/** Returns the number of characters cached of a document. */
function lengthOf({ values, keyText }: LoadedTag): number {
  return values.reduce<number>(
    (length, value) => length + (typeof value === "string" ? value.length : 0),
    keyText?.length ?? 0,
  );
}

/** Returns the value at a path of an object; undefined if the path does not exist. */
function valueAt(bytes: Buffer, at: number, path: readonly string[]): EntryValue | undefined {
  const span = spanAt(bytes, at, path);
  if (span === null) return undefined;
  const first = bytes[span.from];
  if (first === byteObjectOpen || first === byteArrayOpen) return composite;
  return readValue(bytes, span.from, span.to) as EntryValue;
}

function spanAt(bytes: Buffer, at: number, path: readonly string[]): ValueSpan | null {
  const span = new ValueSpan();
  let from = at;
  for (const name of path) {
    if (!findMember(bytes, from, quoteString(name), span)) return null;
    from = span.from;
  }
  return path.length === 0 ? null : span;
}

/** A column that is a series query, with its arguments. */
interface Column {
  readonly name: string;
  readonly readers: readonly ((parts: RowParts, row: SeriesRow) => SeriesArgument)[];
}

function columnOf({ value }: ProjectedField, query: AnalyzedQuery, source: RowSource): Column[] {
  if (value.kind !== "series") return [];
  return [{ name: value.name, readers: value.args.map((one) => readerOf(one, query, source)) }];
}

function readerOf(
  value: ProjectedValue,
  query: AnalyzedQuery,
  source: RowSource,
): Column["readers"][number] {
  if (value.kind === "whole") {
    const isRow = value.alias === query.source.alias;
    return (_parts, row) => {
      const document = isRow ? row.document : row.loaded(value.alias);
      return document === null ? { kind: "value", value: null } : { kind: "document", document };
    };
  }
  const textOf = compileColumn({ key: "", value }, query, source, null);
  return (parts) => ({ kind: "value", value: valueOfText(textOf(parts)) });
}

/** Returns an argument's JSON text as a value. */
function valueOfText(text: string | null): EntryValue {
  if (text === null) return null;
  return text.startsWith("{") || text.startsWith("[")
    ? composite
    : (JSON.parse(text) as EntryValue);
}

/** @throws invalid-argument for a reduced object, which has no series */
export function seriesRowOf(
  query: AnalyzedQuery,
  row: StoredRow | null,
  loaded: ReadonlyMap<string, LoadedValue>,
): SeriesRow {
  if (row === null || row.start < 0)
    throw invalidArgument("Value cannot be null. (Parameter 'key')");
  const document = { id: idOf(row.bytes, row.start), bytes: row.bytes, at: bodyOf(row) };
  return {
    document,
    loaded(alias) {
      if (alias === query.source.alias) return document;
      const found = loaded.get(alias) ?? null;
      const text = typeof found === "string" ? found : (found?.[0] ?? null);
      return text === null ? null : loadedDocument(text);
    },
  };
}

/** Returns a whole document, with its metadata. */
function loadedDocument(text: string): SeriesDocument | null {
  const bytes = Buffer.from(text);
  const id = valueAt(bytes, 0, ["@metadata", "@id"]);
  return typeof id === "string" ? { id, bytes, at: 0 } : null;
}
