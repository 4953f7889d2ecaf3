/**
 * Dates inside documents: which texts are dates, their instants, and their terms.
 *
 * Knows nothing of fields or indexes. A date is a moment in UTC; text without a time zone is interpreted as UTC.
 * Recognized, as in RavenDB 7.2.7: `yyyy-MM-dd` and `yyyy-MM-ddTHH:mm:ss[.f…][Z|±hh:mm]` with up to seven fraction
 * digits (before an offset none or at least three), and `24:00:00` as the end of a day.
 *
 * Invariants:
 * - Two texts denote the same instant exactly when `milliseconds` and `ticks` are equal.
 * - `term` is the text itself for a day; otherwise it has seven fraction digits, and `Z` if the text had a zone.
 */

import { firstElement, nextElement, skipValue } from "../../base/json/field-access.ts";
import { spanLengthMax, spanLengthMin, spanTicks, timeSpanText } from "./time-spans.ts";

/** A point in time. */
export interface Instant {
  /** Whole milliseconds since 1970-01-01, may be negative. */
  readonly milliseconds: number;
  /** 100 ns units beyond the milliseconds, 0 to 9999. */
  readonly ticks: number;
  /** The normalized text. */
  readonly term: string;
}

const pattern =
  /^(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,7}))?(Z|[+-]\d\d:\d\d)?)?$/;
const timePattern = /(?:\d\d-\d\dT\d\d:|\d\d:\d\d:\d\d)/;
const monthDays = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const millisecondsPerDay = 86_400_000;
const millisecondsPerMinute = 60_000;
/** From the year 1 to 1970. */
const millisecondsBeforeEpoch = 62_135_596_800_000n;
export const ticksBeforeEpoch: bigint = millisecondsBeforeEpoch * 10_000n;

/** Returns the instant that `text` denotes, or null when it is no date. */
export function parseInstant(text: string): Instant | null {
  const length = text.length;
  if (length < 10 || length > 33 || text.charCodeAt(4) !== 0x2d) return null;
  const match = pattern.exec(text);
  if (match === null) return null;
  const year = Number(match[1]);
  const month = Number(match[2]);
  const day = Number(match[3]);
  if (year === 0 || month === 0 || day === 0 || day > (monthDays[month - 1] ?? 0)) return null;
  if (month === 2 && day === 29 && !isLeapYear(year)) return null;
  const midnight = daysSinceEpoch(year, month, day) * millisecondsPerDay;
  if (match[4] === undefined) return { milliseconds: midnight, ticks: 0, term: text };
  const hour = Number(match[4]);
  const minute = Number(match[5]);
  const second = Number(match[6]);
  const fraction = match[7] ?? "";
  const zone = match[8];
  if (hour > 24 || minute > 59 || second > 59) return null;
  if (hour === 24 && (minute > 0 || second > 0 || Number(fraction) > 0)) return null;
  if (zone !== undefined && zone !== "Z" && (fraction.length === 1 || fraction.length === 2))
    return null;
  const digits = fraction.padEnd(7, "0");
  const offsetMinutes = zone === undefined || zone === "Z" ? 0 : zoneMinutes(zone);
  const milliseconds =
    midnight +
    (hour * 60 + minute - offsetMinutes) * millisecondsPerMinute +
    second * 1000 +
    Number(digits.slice(0, 3));
  const ticks = Number(digits.slice(3));
  return {
    milliseconds,
    ticks,
    term: instantTerm(milliseconds, ticks) + (zone === undefined ? "" : "Z"),
  };
}

/**
 * Returns the JSON text of a value as projections and groups show it: a string that is a time is extended to seven
 * fraction digits, and keeps its offset; a time span is in the constant format, as in RavenDB 7.2.7; everything else is
 * unchanged.
 */
export function normalDate(text: string): string {
  if (!mayBeTime(text)) return normalSpan(text);
  const instant = parseInstant(text.slice(1, -1));
  if (instant === null) return text;
  const [offset] = /[+-]\d\d:\d\d(?="$)/.exec(text) ?? [];
  if (offset === undefined) return `"${instant.term}"`;
  const local = instant.milliseconds + zoneMinutes(offset) * millisecondsPerMinute;
  return `"${instantTerm(local, instant.ticks)}${offset}"`;
}

/** As `normalDate`, also for the strings of a list. */
export function normalDates(text: string): string {
  return eachString(text, normalDate);
}

/**
 * Returns the JSON text of a stored field: times, including times in a list, have seven fraction digits, and no offset
 * other than `Z`; time spans are in the constant format.
 */
export function storedDates(text: string): string {
  return eachString(text, (one) => {
    if (!mayBeTime(one)) return normalSpan(one);
    const instant = parseInstant(one.slice(1, -1));
    return instant === null ? one : `"${instant.term}"`;
  });
}

function normalSpan(text: string): string {
  const { length } = text;
  // With two quotes.
  if (length < spanLengthMin + 2 || length > spanLengthMax + 2) return text;
  const first = text.charCodeAt(1);
  if ((first < 0x30 || first > 0x39) && first !== 0x2d) return text;
  if (!text.startsWith('"')) return text;
  const ticks = spanTicks(text.slice(1, -1));
  return ticks === null ? text : `"${timeSpanText(ticks)}"`;
}

function mayBeTime(text: string): boolean {
  const { length } = text;
  return length >= 21 && length <= 35 && text.charCodeAt(11) === 0x54 && text.startsWith('"');
}

/** `text` with `change` applied to it, when it is a string, or to the strings of the list, and of lists in it. */
function eachString(text: string, change: (text: string) => string): string {
  if (text.startsWith('"')) return change(text);
  if (!text.startsWith("[") || !timePattern.test(text)) return text;
  const bytes = Buffer.from(text);
  const items: string[] = [];
  for (let i = firstElement(bytes, 0); i >= 0; i = nextElement(bytes, skipValue(bytes, i))) {
    items.push(eachString(bytes.toString("utf8", i, skipValue(bytes, i)), change));
  }
  return `[${items.join(",")}]`;
}

/** Returns all terms under which this instant may be indexed. */
export function termsOfInstant(instant: Instant): string[] {
  const whole = instantTerm(instant.milliseconds, instant.ticks);
  const terms = [whole, `${whole}Z`];
  if (instant.ticks === 0 && instant.milliseconds % millisecondsPerDay === 0) {
    terms.push(whole.slice(0, 10));
  }
  return terms;
}

/** 100 ns units since the year 1, as RavenDB stores dates; exact. */
export function dateTicks(milliseconds: number, ticks: number): bigint {
  return (BigInt(milliseconds) + millisecondsBeforeEpoch) * 10_000n + BigInt(ticks);
}

function instantTerm(milliseconds: number, ticks: number): string {
  const iso = new Date(milliseconds).toISOString().slice(0, -1);
  return iso + ticks.toString().padStart(4, "0");
}

/** Returns the minutes of `±hh:mm`. */
export function zoneMinutes(zone: string): number {
  const minutes = Number(zone.slice(1, 3)) * 60 + Number(zone.slice(4, 6));
  return zone.startsWith("-") ? -minutes : minutes;
}

function isLeapYear(year: number): boolean {
  return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
}

/** Days from 1970-01-01 to a day of the Gregorian calendar; computed in eras of 400 years that begin in March. */
function daysSinceEpoch(year: number, month: number, day: number): number {
  const shifted = month <= 2 ? year - 1 : year;
  const era = Math.floor(shifted / 400);
  const yearOfEra = shifted - era * 400;
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  const dayOfEra =
    yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * 146_097 + dayOfEra - 719_468;
}
