/**
 * Timestamps as microseconds since 1970 (integers, negative before), and their text with seven fractional digits:
 * `2026-11-21T13:45:42.4713670Z`.
 *
 * Hot: one is written for every document that is read (bench/document-text.bench.ts).
 *
 * Invariants:
 * - Years are 1 to 9999, the range of the interface's dates; formatting asserts it.
 * - Every microsecond from 1685 to 2255 is exact. Before and after, doubles are 2 to 32 microseconds apart.
 */
import { assert } from "./assert.ts";

/** Bytes of a timestamp's text. */
export const timestampBytes = 28;

const microsPerSecond = 1_000_000;
const secondsPerDay = 86_400;
const daysPerEra = 146_097; // 400 years
const yearOneMicros = -62_135_596_800 * microsPerSecond;
const yearEndMicros = 253_402_300_800 * microsPerSecond; // exclusive

/** The last timestamp of the year 9999 that is a double: they are 32 apart there. */
export const lastTimestampMicros = yearEndMicros - 32;

/** Bytes of a timestamp's text up to the dot. */
const secondBytes = 20;
/**
 * Formatted texts of some seconds, up to the dot, in slots selected by the second: documents often share their seconds.
 */
const writtenMask = 15;
const writtenText = Buffer.alloc((writtenMask + 1) * secondBytes);
const writtenSeconds = new Float64Array(writtenMask + 1).fill(Number.NaN);

function writeDigits(target: Uint8Array, at: number, value: number, count: number): void {
  let rest = value;
  for (let i = at + count - 1; i >= at; i--) {
    const next = Math.trunc(rest / 10);
    target[i] = 0x30 + (rest - next * 10);
    rest = next;
  }
}

/** Writes `yyyy-MM-ddTHH:mm:ss.` to `writtenText` at `at` (days to date: years begin in March). */
function writeSecond(second: number, at: number): void {
  const day = Math.floor(second / secondsPerDay);
  const secondOfDay = second - day * secondsPerDay;
  const shifted = day + 719_468; // days since 0000-03-01
  const era = Math.floor(shifted / daysPerEra);
  const dayOfEra = shifted - era * daysPerEra;
  const leapDays = Math.trunc(dayOfEra / 1460) - Math.trunc(dayOfEra / 36_524);
  const yearOfEra = Math.trunc((dayOfEra - leapDays - Math.trunc(dayOfEra / 146_096)) / 365);
  const yearStart = 365 * yearOfEra + Math.trunc(yearOfEra / 4) - Math.trunc(yearOfEra / 100);
  const dayOfYear = dayOfEra - yearStart;
  const monthFromMarch = Math.trunc((5 * dayOfYear + 2) / 153);
  const dayOfMonth = dayOfYear - Math.trunc((153 * monthFromMarch + 2) / 5) + 1;
  const month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  writeDigits(writtenText, at, year, 4);
  writeDigits(writtenText, at + 5, month, 2);
  writeDigits(writtenText, at + 8, dayOfMonth, 2);
  writeDigits(writtenText, at + 11, Math.trunc(secondOfDay / 3600), 2);
  writeDigits(writtenText, at + 14, Math.trunc(secondOfDay / 60) % 60, 2);
  writeDigits(writtenText, at + 17, secondOfDay % 60, 2);
  writtenText[at + 4] = writtenText[at + 7] = 0x2d;
  writtenText[at + 10] = 0x54;
  writtenText[at + 13] = writtenText[at + 16] = 0x3a;
  writtenText[at + 19] = 0x2e;
}

/** Writes the text of a timestamp, `timestampBytes` long, at `at`. */
export function writeTimestamp(target: Uint8Array, at: number, micros: number): void {
  const second = Math.floor(micros / microsPerSecond);
  const place = second & writtenMask;
  const from = place * secondBytes;
  if (second !== writtenSeconds[place]) {
    assert(micros >= yearOneMicros, "a moment is not before year 1");
    assert(micros < yearEndMicros, "a moment is not after year 9999");
    writeSecond(second, from);
    writtenSeconds[place] = second;
  }
  for (let i = 0; i < secondBytes; i++) target[at + i] = writtenText[from + i] as number;
  writeDigits(target, at + 20, micros - second * microsPerSecond, 6);
  target[at + 26] = 0x30;
  target[at + 27] = 0x5a;
}

const formatted = Buffer.alloc(timestampBytes);

/** Returns the text of a timestamp: `formatTimestamp(0)` is `1970-01-01T00:00:00.0000000Z`. */
export function formatTimestamp(micros: number): string {
  writeTimestamp(formatted, 0, micros);
  return formatted.latin1Slice(0, timestampBytes);
}

const timestampPattern = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,7}))?Z?$/;

/**
 * Parses `yyyy-MM-ddTHH:mm:ss[.fraction][Z]`, which is in UTC with or without the `Z`; NaN for another form or an
 * invalid calendar date. The seventh digit is cut off.
 */
export function parseTimestamp(text: string): number {
  const parts = timestampPattern.exec(text);
  if (parts === null) return Number.NaN;
  const [year, month, day, hour, minute, second] = parts.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  if (hour > 23 || minute > 59 || second > 59 || year < 1) return Number.NaN;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return Number.NaN;
  date.setUTCHours(hour, minute, second);
  const fraction = Number((parts[7] ?? "").padEnd(7, "0").slice(0, 6));
  return Math.min(date.getTime() * 1000 + fraction, lastTimestampMicros);
}

/** A bound of a range of whole milliseconds, from a possibly finer time. */
export interface MillisecondBound {
  readonly ms: number;
  /** The given time, with seven fractional digits. */
  readonly text: string;
}

/** Returns the first millisecond that is not before the time; null when `text` is not a time. */
export function firstMillisecond(text: string): MillisecondBound | null {
  const last = lastMillisecond(text);
  if (last === null || /0000Z$/.test(last.text)) return last;
  return { ms: last.ms + 1, text: last.text };
}

/** Returns the last millisecond that is not after the time; null when `text` is not a time. */
export function lastMillisecond(text: string): MillisecondBound | null {
  if (Number.isNaN(parseTimestamp(text))) return null;
  // Not from the microseconds: far from 1970 they are not exact.
  const second = text.slice(0, 19);
  const fraction = (/\.(\d+)/.exec(text)?.[1] ?? "").padEnd(7, "0");
  const ms = Date.parse(`${second}Z`) + Number(fraction.slice(0, 3));
  return { ms, text: `${second}.${fraction}Z` };
}

/** .NET's least and greatest DateTime, which RavenDB writes for "never" and "no end". */
export const neverText = "0001-01-01T00:00:00.0000000";
export const foreverText = "9999-12-31T23:59:59.9999999";
