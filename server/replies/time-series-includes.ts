/**
 * Time series included with documents: parses the parameters of a load, and formats `TimeSeriesIncludes` of the reply.
 */

import { lowerCased } from "../../engine/base/case-folding.ts";
import { EngineError } from "../../engine/base/errors.ts";
import {
  type Database,
  type SeriesBounds,
  type SeriesInclude,
  timeMax,
  timeMin,
} from "../../engine/engine.ts";
import type { QueryString } from "../http/request.ts";
import { boundsOf, entryFormOf, rangeHead, sliceText } from "./time-series-text.ts";

/** The name that selects all series of a document. */
const allSeries = "@all_timeseries";

/**
 * Parses `timeseries,from,to`, `timeseriestime,timeType,timeValue,timeUnit` and `timeseriescount,countType,countValue`,
 * each any number of times, matched by position. RavenDB 7.2.7 returns only the first of several ranges of a series; this
 * server returns all that are not contained in an earlier one.
 * @throws EngineError invalid-operation, invalid-argument, not-supported
 */
export function seriesIncludesOf(query: QueryString): readonly SeriesInclude[] {
  const includes: SeriesInclude[] = [];
  const ranges = table({
    timeseriesNames: query.all("timeseries"),
    fromList: query.all("from"),
    toList: query.all("to"),
  });
  for (const [name = "", from, to] of ranges) {
    includes.push({
      name,
      kind: "range",
      bounds: boundsOf([from, to], ["from", "to"]),
    });
  }
  const times = table({
    timeseriesTime: query.all("timeseriestime"),
    timeType: query.all("timeType"),
    timeValue: query.all("timeValue"),
    timeUnit: query.all("timeUnit"),
  });
  for (const [name = "", type = "", value = "", unit = ""] of times) {
    requireLast(type);
    if (unit !== "Second" && unit !== "Month") throw unknownValue(unit);
    includes.push({ name, kind: "lastTime", value: integerOf(value, "time"), unit });
  }
  const counts = table({
    timeseriesCount: query.all("timeseriescount"),
    countType: query.all("countType"),
    countValue: query.all("countValue"),
  });
  for (const [name = "", type = "", count = ""] of counts) {
    requireLast(type);
    includes.push({ name, kind: "lastCount", count: integerOf(count, "count") });
  }
  return includes;
}

/** Returns `{"Name":[range,…],…}` of one document. */
export function seriesIncludesText(
  database: Database,
  id: string,
  includes: readonly SeriesInclude[],
): string {
  const { timeSeries } = database;
  const series = new Map<string, { name: string; bounds: SeriesBounds[]; texts: string[] }>();
  for (const include of expanded(database, id, includes)) {
    const { name } = include;
    const key = lowerCased(name);
    const bounds = timeSeries.includedBounds(id, include);
    if (bounds === null) continue;
    const row = series.get(key) ?? { name, bounds: [], texts: [] };
    series.set(key, row);
    if (row.bounds.some((known) => contains(known, bounds))) continue;
    row.bounds.push(bounds);
    const isEmpty = include.kind === "lastCount" && include.count <= 0;
    const page = timeSeries.page(id, name, bounds, 0, isEmpty ? 0 : undefined);
    const form = entryFormOf(database, name, false);
    const entries = page.slices.map((slice) => sliceText(slice, form)).join(",");
    row.texts.push(
      `{${rangeHead(bounds, isEmpty ? { ...page, isCut: false } : page, 0)}${entries}]}`,
    );
  }
  const members = [...series.values()].map(
    ({ name, texts }) => `${JSON.stringify(name)}:[${texts.join(",")}]`,
  );
  return `{${members.join(",")}}`;
}

/** The state of the included series, for an ETag. */
export function seriesIncludesState(
  database: Database,
  id: string,
  includes: readonly SeriesInclude[],
): (string | null)[] {
  return expanded(database, id, includes).map(({ name }) => database.timeSeries.version(id, name));
}

/** Replaces every `@all_timeseries` by the names of the document's series. */
function expanded(
  { timeSeries }: Database,
  id: string,
  includes: readonly SeriesInclude[],
): SeriesInclude[] {
  return includes.flatMap((include) =>
    include.name === allSeries
      ? timeSeries.names(id).map((name): SeriesInclude => ({ ...include, name }))
      : [include],
  );
}

function contains(known: SeriesBounds, bounds: SeriesBounds): boolean {
  return (
    (known.from ?? timeMin) <= (bounds.from ?? timeMin) &&
    (known.to ?? timeMax) >= (bounds.to ?? timeMax)
  );
}

/**
 * Combines repeated parameters into rows.
 * @param sent the label in the error message -> all values of the parameter @throws EngineError invalid-operation
 */
function table(sent: Readonly<Record<string, readonly string[]>>): string[][] {
  const columns = Object.values(sent);
  const count = columns[0]?.length ?? 0;
  if (count === 0) return [];
  if (columns.some((column) => column.length !== count)) {
    const labels = Object.keys(sent).map((label) => `'${label}'`);
    const counts = Object.keys(sent).map((label, i) => `${label}.Count = ${columns[i]?.length}`);
    throw new EngineError(
      "invalid-operation",
      `Parameters ${labels.slice(0, -1).join(", ")} and ${labels.at(-1)} must be of equal length. Got : ${counts.join(", ")}.`,
    );
  }
  return Array.from({ length: count }, (_, row) => columns.map((column) => column[row] ?? ""));
}

function requireLast(type: string): void {
  if (type.toLowerCase() === "last") return;
  if (type.toLowerCase() !== "none") throw unknownValue(type);
  throw new EngineError("not-supported", `Not supported time series range type '${type}'.`);
}

function unknownValue(text: string): EngineError {
  return new EngineError("invalid-argument", `Requested value '${text}' was not found.`);
}

function integerOf(text: string, what: "time" | "count"): number {
  const value = Number(text);
  if (/^-?\d{1,10}$/.test(text)) return value;
  throw new EngineError("invalid-operation", `Could not parse timeseries ${what} value.`);
}
