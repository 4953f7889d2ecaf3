/**
 * The times in `@expires`, `@refresh` and `@archive-at`. Unlike the timestamps that the server writes, they may have an
 * offset from UTC, or be HTTP dates. The accepted formats are those of RavenDB 7.2.7.
 */
import { lastTimestampMicros, parseTimestamp } from "./timestamp.ts";

const microsPerMinute = 60_000_000;
/** .NET's greatest offset from UTC, in minutes. */
const offsetMinutesMax = 14 * 60;
/** `yyyy-MM-ddTHH:mm:ss[.[fraction]]`, and `Z`, an offset, or neither, which means UTC. */
const offsetPattern = /^(.{19})(\.\d{0,7})?(?:Z|([+-])(?:(\d\d?):(\d\d)|(\d\d)(\d\d)))?$/;
/** RFC 1123; `GMT` is case-sensitive. */
const httpDatePattern = /^[a-z]{3}, (\d\d) ([a-z]{3}) (\d{4}) (\d\d:\d\d:\d\d) $/i;
const httpMonths = "janfebmaraprmayjunjulaugsepoctnovdec";
const httpDays = "sunmontuewedthufrisat";

/**
 * Microseconds since 1970; NaN for text in another form, an invalid calendar date, an offset of more than 14 hours, or a
 * time after the year 9999. A time before the year 1 is the first moment of that year.
 */
export function parseDueTime(text: string): number {
  if (text.endsWith("GMT")) return parseHttpDate(text);
  const parts = offsetPattern.exec(text);
  if (parts === null) return Number.NaN;
  const [, second, fraction = "", sign, hours, minutes, compactHours, compactMinutes] = parts;
  const micros = parseTimestamp(fraction.length > 1 ? `${second}${fraction}` : `${second}`);
  if (sign === undefined) return micros;
  const minute = Number(minutes ?? compactMinutes);
  const offset = Number(hours ?? compactHours) * 60 + minute;
  if (minute > 59 || offset > offsetMinutesMax) return Number.NaN;
  const due = micros + (sign === "+" ? -1 : 1) * offset * microsPerMinute;
  return due > lastTimestampMicros ? Number.NaN : Math.max(due, firstMicros);
}

const firstMicros = parseTimestamp("0001-01-01T00:00:00");

function parseHttpDate(text: string): number {
  const parts = httpDatePattern.exec(text.slice(0, -3));
  if (parts === null) return Number.NaN;
  const [, day, monthName = "", year, time] = parts;
  const at = httpMonths.indexOf(monthName.toLowerCase());
  if (at < 0 || at % 3 > 0) return Number.NaN;
  const month = String(at / 3 + 1).padStart(2, "0");
  const micros = parseTimestamp(`${year}-${month}-${day}T${time}`);
  if (Number.isNaN(micros)) return Number.NaN;
  const weekday = new Date(micros / 1000).getUTCDay() * 3;
  const isItsDay = httpDays.slice(weekday, weekday + 3) === text.slice(0, 3).toLowerCase();
  return isItsDay ? micros : Number.NaN;
}

/**
 * Returns whether the JSON value is usable as a due time in a document. Text must be a time, null is refused, and other
 * types are accepted and have no effect: RavenDB 7.2.7 does the same.
 */
export function isDueTimeAccepted(value: unknown): boolean {
  if (value === null) return false;
  return typeof value !== "string" || !Number.isNaN(parseDueTime(value));
}

/** Returns the time in a due-time member of metadata; NaN if it is not a valid time. */
export function dueTimeOf(value: unknown): number {
  return typeof value === "string" ? parseDueTime(value) : Number.NaN;
}
