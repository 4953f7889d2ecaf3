/**
 * Durations of series queries, and the grid of groups that they form. Times are milliseconds since 1970, as UTC.
 *
 * Invariants:
 * - A period is either a number of milliseconds or a number of calendar months, at least 1.
 * - Groups of milliseconds are counted from the year 1, so that hours begin at midnight; groups of months restart with
 *   each year, or with every n-th year, as in RavenDB 7.2.7.
 */
import { EngineError, invalidArgument } from "../../base/errors.ts";
import { timeMax, timeMin } from "../../state/keyspaces/time-series/time-series.ts";

export type Period =
  | { readonly kind: "milliseconds"; readonly length: number }
  | { readonly kind: "months"; readonly count: number };

const second = 1000;
const day = 86_400_000;
/** Months of the years 1 to 9999. */
const monthsMax = 120_000;

/** Unit -> milliseconds, or months as a negative number. */
const units: ReadonlyMap<string, number> = new Map([
  ...unit(1, "ms", "milliseconds"),
  ...unit(second, "s", "second", "seconds"),
  ...unit(60 * second, "m", "min", "minute", "minutes"),
  ...unit(3600 * second, "h", "hour", "hours"),
  ...unit(day, "d", "day", "days"),
  ...unit(-1, "mo", "month", "months"),
  ...unit(-3, "q", "quarter", "quarters"),
  ...unit(-12, "y", "year", "years"),
]);

function unit(length: number, ...names: readonly string[]): [string, number][] {
  return names.map((name) => [name, length]);
}

/** `1 day`, `15min`. @throws invalid-argument, out-of-range */
export function parsePeriod(text: string): Period {
  const trimmed = text.trim();
  const [, digits, rest = ""] = /^(\d+)\s*([\s\S]*)$/.exec(trimmed) ?? [];
  if (digits === undefined) throw invalidArgument(`Unable to parse: '${text}' as a number`);
  const length = units.get(rest.toLowerCase());
  if (length === undefined) {
    const isLonger = [...units.keys()].some((name) => rest.toLowerCase().startsWith(`${name} `));
    throw invalidArgument(
      isLonger
        ? `After range specification, found additional unknown data: ${text}`
        : `Unable to understand time range: '${text}'`,
    );
  }
  const count = Number(digits);
  if (count === 0) throw invalidArgument("Either Ticks or Months should be set");
  if (length > 0) {
    if (count * length > timeMax - timeMin) throw notATime();
    return { kind: "milliseconds", length: count * length };
  }
  const months = count * -length;
  if (months > monthsMax) {
    throw invalidArgument(
      `The specified range results in invalid range, cannot have: ${months} months`,
    );
  }
  return { kind: "months", count: months };
}

/** `last 0 days` selects only the last entry. */
export function parseRange(text: string): Period {
  const isNone = /^\s*0+\s*\D/.test(text);
  if (!isNone) return parsePeriod(text);
  parsePeriod(text.replace(/0+/, "1"));
  return { kind: "milliseconds", length: 0 };
}

/** `time` plus `times` periods; a day that the month lacks is its last. @throws out-of-range */
export function addPeriod(time: number, period: Period, times: 1 | -1 = 1): number {
  const sum =
    period.kind === "milliseconds"
      ? time + times * period.length
      : addMonths(time, times * period.count);
  if (!(sum >= timeMin && sum <= timeMax)) throw notATime();
  return sum;
}

function addMonths(time: number, months: number): number {
  const from = new Date(time);
  const target = new Date(time);
  target.setUTCDate(1);
  target.setUTCMonth(from.getUTCMonth() + months);
  const last = new Date(target);
  last.setUTCMonth(target.getUTCMonth() + 1, 0);
  target.setUTCDate(Math.min(from.getUTCDate(), last.getUTCDate()));
  return target.getTime();
}

/** Returns the start of the group that `time` is in. @throws out-of-range */
export function startOfGroup(time: number, period: Period): number {
  if (period.kind === "milliseconds") {
    return timeMin + Math.floor((time - timeMin) / period.length) * period.length;
  }
  const date = new Date(time);
  const years = Math.floor(period.count / 12);
  const months = period.count % 12;
  const year = date.getUTCFullYear();
  const start = new Date(0);
  start.setUTCFullYear(
    years > 0 ? Math.max(1, year - (year % years)) : year,
    months > 0 ? date.getUTCMonth() - (date.getUTCMonth() % months) : 0,
    1,
  );
  return start.getTime();
}

export function notATime(): EngineError {
  return new EngineError(
    "out-of-range",
    "The added or subtracted value results in an un-representable DateTime. (Parameter 'value')",
  );
}

const spanPattern = /^(-)?(?:(\d{1,8})\.)?(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,7}))?)?$/;

/** Returns milliseconds of a .NET TimeSpan text, `[-][d.]hh:mm[:ss[.fffffff]]` or days; null for any other. */
export function parseTimeSpan(text: string): number | null {
  const days = /^\s*(-?\d{1,8})\s*$/.exec(text);
  if (days !== null) return Number(days[1]) * day;
  const match = spanPattern.exec(text.trim());
  if (match === null) return null;
  const [, sign, wholeDays = "0", hours = "", minutes = "", seconds = "0", fraction = ""] = match;
  if (Number(hours) > 23 || Number(minutes) > 59 || Number(seconds) > 59) return null;
  const whole = ((Number(wholeDays) * 24 + Number(hours)) * 60 + Number(minutes)) * 60;
  const ms = (whole + Number(seconds)) * second + Number(fraction.padEnd(3, "0").slice(0, 3));
  return sign === undefined ? ms : -ms;
}

const timePattern =
  /^(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{3})(\d{4})?Z?)?)?)?)?)?$/;

/**
 * Returns the time in one of the forms that series queries accept, as the last millisecond not after it; `isBetween`:
 * it lies between two milliseconds. Null for any other text.
 */
export function parseSeriesTime(
  text: string,
): { readonly ms: number; readonly isBetween: boolean } | null {
  const match = timePattern.exec(text);
  if (match === null) return null;
  const [, year, month = "01", date = "01", hour = "00", minute = "00", seconds = "00"] = match;
  const fraction = match[7] ?? "000";
  const ms = Date.parse(`${year}-${month}-${date}T${hour}:${minute}:${seconds}.${fraction}Z`);
  const isValid = !Number.isNaN(ms) && new Date(ms).toISOString().slice(8, 10) === date;
  return isValid && ms >= timeMin ? { ms, isBetween: /[1-9]/.test(match[8] ?? "") } : null;
}

/** Returns the text of a bound that is no time. */
export function badSeriesTime(text: string | null): EngineError {
  const complaint = "Unable to parse timeseries from/to values. Got";
  if (text === null) return invalidArgument(`${complaint} a null instead of a value`);
  return invalidArgument(
    `${complaint}: ${text}\nThe supported time formats are:\n` +
      "yyyy\nyyyy-MM\nyyyy-MM-dd\nyyyy-MM-ddTHH:mm\nyyyy-MM-ddTHH:mm:ss\nyyyy-MM-ddTHH:mm:ss.fff\n" +
      "yyyy-MM-ddTHH:mm:ss.fffZ\nyyyy-MM-ddTHH:mm:ss.fffffff\nyyyy-MM-ddTHH:mm:ss.fffffffZ",
  );
}
