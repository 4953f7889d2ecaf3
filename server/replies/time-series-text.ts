/**
 * Formats time series as JSON: ranges of entries in RavenDB 7.2.7's format, and their state for ETags. Independent of requests.
 */

import { EngineError } from "../../engine/base/errors.ts";
import {
  firstMillisecond,
  foreverText,
  lastMillisecond,
  neverText,
} from "../../engine/base/timestamp.ts";
import {
  type Database,
  isIncremental,
  type SeriesBounds,
  type SeriesPage,
  type SeriesSlice,
  seriesTimeText,
} from "../../engine/engine.ts";

/** The format of entries. */
export interface EntryForm {
  /** Key within `NodeValues`, or null to omit the member. */
  readonly node: string | null;
  /** Whether they are rollups. */
  readonly isRollup: boolean;
}

/** `NodeValues` are included for incremental series if full results were requested. */
export function entryFormOf({ partKey }: Database, name: string, isFull: boolean): EntryForm {
  return {
    node: isFull && isIncremental(name) ? partKey : null,
    isRollup: name.includes("@"),
  };
}

/** Returns `"From":…,"To":…,"Entries":[`, to be followed by the texts of the slices, separated by commas. */
export function rangeHead(bounds: SeriesBounds, page: SeriesPage, start: number): string {
  const from = start > 0 ? timeText(page.first) : timeText(bounds.from, bounds.fromText);
  const to = page.isCut ? timeText(page.last) : timeText(bounds.to, bounds.toText);
  return `"From":${from},"To":${to},"Entries":[`;
}

function timeText(time: number | undefined, text?: string): string {
  return time === undefined ? "null" : `"${text ?? seriesTimeText(time)}"`;
}

/**
 * Parses bounds from two parameters of a URL. A missing or empty value is unbounded, as are .NET's minimum and maximum
 * dates.
 * @param names names of the parameters, for the error message @throws EngineError invalid-argument
 */
export function boundsOf(
  [from = "", to = ""]: readonly (string | undefined)[],
  names: readonly [string, string],
): SeriesBounds {
  const first = from === "" || from.startsWith(neverText) ? undefined : firstMillisecond(from);
  if (first === null) throw notADate(names[0], from);
  const last = to === "" || to.startsWith(foreverText) ? undefined : lastMillisecond(to);
  if (last === null) throw notADate(names[1], to);
  return { from: first?.ms, to: last?.ms, fromText: first?.text, toText: last?.text };
}

function notADate(name: string, text: string): EngineError {
  return new EngineError(
    "invalid-argument",
    `Could not parse query string '${name}' as date, val '${text}'`,
  );
}

/** Formats the entries of a slice, separated by commas. */
export function sliceText(
  { segment, from, to }: SeriesSlice,
  { node, isRollup }: EntryForm,
): string {
  const entries = segment.unpack();
  const { times, values, valueStarts } = entries;
  const rows: string[] = [];
  for (let i = from; i < to; i++) {
    const end = valueStarts[i + 1] as number; // i < count
    let texts = "";
    for (let at = valueStarts[i] as number; at < end; at++) {
      texts += `${texts === "" ? "" : ","}${valueText(values[at] as number)}`;
    }
    const time = seriesTimeText(times[i] as number);
    const tag = entries.tag(i);
    const tail = node === null ? "" : `,"NodeValues":{"${node}":[${texts}]}`;
    rows.push(
      `{"Timestamp":"${time}","Tag":${tag === null ? "null" : JSON.stringify(tag)},"Values":[${texts}],"IsRollup":${isRollup}${tail}}`,
    );
  }
  return rows.join(",");
}

/** JSON has no infinite numbers, so they are written as strings. */
function valueText(value: number): string {
  if (Object.is(value, -0)) return "-0";
  return Number.isFinite(value) ? String(value) : `"${value}"`;
}

/** The distinct tags of a page's entries, in order. */
export function tagsOf(page: SeriesPage): Set<string> {
  const tags = new Set<string>();
  for (const { segment, from, to } of page.slices) {
    const entries = segment.unpack();
    for (let i = from; i < to; i++) {
      const tag = entries.tag(i);
      if (tag !== null) tags.add(tag);
    }
  }
  return tags;
}
