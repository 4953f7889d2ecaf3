/**
 * Members of texts that .NET reads as dates, days, times of day and time spans: `Ordered.Year`, `Took.TotalHours`. Paths
 * of automatic indexes, groups and projections read them, and so do the functions of C# indexes.
 *
 * The members are those of DateTime (a time without an offset, or with `Z`), DateTimeOffset (with an offset; the parts
 * of the local time), DateOnly (`yyyy-MM-dd`), TimeOnly (`HH:mm:ss[.fffffff]`) and TimeSpan, with values as measured on
 * RavenDB 7.2.7. A text that is both a time of day and a time span has the members of both.
 *
 * Knows nothing of documents or indexes.
 */
import { dateTicks, parseInstant, zoneMinutes } from "./date-terms.ts";
import { spanTicks, timeSpanText } from "./time-spans.ts";

/** `bigint`: a number of ticks, of 100 ns. */
export type DateMember = number | bigint | string;

/** Characters of `yyyy-MM-dd`. */
const dayLength = 10;
const ticksPerDay = 864_000_000_000n;
const daysBeforeEpoch = 719_162n;
const timePattern = /^\d\d:\d\d:\d\d(?:\.\d{7})?$/;
const offsetPattern = /[+-]\d\d:\d\d$/;
export const dayNames = [
  "Sunday",
  "Monday",
  "Tuesday",
  "Wednesday",
  "Thursday",
  "Friday",
  "Saturday",
];

/** Returns whether `text` is a date, a day, a time of day or a time span. */
export function isDateText(text: string): boolean {
  return parseInstant(text) !== null || spanTicks(text) !== null;
}

/** Returns whether the member has a double as its value, also where that is a whole number. */
export function isDoubleMember(name: string): boolean {
  return name.startsWith("Total") && name !== "TotalOffsetMinutes";
}

/** Returns the member `name` of a text, or undefined when the text is no date or its types lack that member. */
export function dateMember(text: string, name: string): DateMember | undefined {
  const member = timeMember(text, name);
  if (member !== undefined) return member;
  if (text.length === dayLength) {
    const day = parseInstant(text);
    if (day === null) return undefined;
    const ticks = dateTicks(day.milliseconds, 0);
    return name === "DayNumber" ? Number(ticks / ticksPerDay) : dayMember(ticks, name);
  }
  const span = timePattern.test(text) ? spanTicks(text) : null;
  return span !== null && span < ticksPerDay ? clockMember(span, name) : undefined;
}

/** As `dateMember`, but days and times of day have no members: columns and C# indexes know dates and time spans only. */
export function timeMember(text: string, name: string): DateMember | undefined {
  const span = spanTicks(text);
  if (span !== null) return spanMember(span, name);
  const instant = text.length === dayLength ? null : parseInstant(text);
  if (instant === null) return undefined;
  const utc = dateTicks(instant.milliseconds, instant.ticks);
  const [offset] = offsetPattern.exec(text) ?? [];
  const minutes = offset === undefined ? 0 : zoneMinutes(offset);
  const local = utc + BigInt(minutes) * 600_000_000n;
  const zone = offset === undefined && text.endsWith("Z") ? "Z" : "";
  switch (name) {
    case "Ticks":
      return local;
    case "Date":
      return timeText(local - (local % ticksPerDay), zone);
    case "TimeOfDay":
      return timeSpanText(local % ticksPerDay);
    case "Kind":
      return offset !== undefined ? undefined : zone === "Z" ? "Utc" : "Unspecified";
    default:
      return (
        dayMember(local, name) ??
        clockMember(local % ticksPerDay, name) ??
        (offset === undefined ? undefined : offsetMember(name, utc, local, minutes))
      );
  }
}

function timeText(ticks: bigint, zone: string): string {
  const milliseconds = Number(ticks / 10_000n - daysBeforeEpoch * 86_400_000n);
  const text = new Date(milliseconds).toISOString().slice(0, -1);
  return text + String(ticks % 10_000n).padStart(4, "0") + zone;
}

/** Returns a member of a day that has this time in it. */
function dayMember(ticks: bigint, name: string): DateMember | undefined {
  const days = ticks / ticksPerDay;
  const date = new Date(Number(days - daysBeforeEpoch) * 86_400_000);
  switch (name) {
    case "Year":
      return date.getUTCFullYear();
    case "Month":
      return date.getUTCMonth() + 1;
    case "Day":
      return date.getUTCDate();
    case "DayOfWeek":
      return dayNames[date.getUTCDay()] as string;
    case "DayOfYear": {
      const newYear = new Date(0);
      newYear.setUTCFullYear(date.getUTCFullYear());
      return (date.getTime() - newYear.getTime()) / 86_400_000 + 1;
    }
    default:
      return undefined;
  }
}

/** Returns a member of a time of day. */
function clockMember(ticks: bigint, name: string): DateMember | undefined {
  switch (name) {
    case "Hour":
      return Number(ticks / 36_000_000_000n);
    case "Minute":
      return Number((ticks / 600_000_000n) % 60n);
    case "Second":
      return Number((ticks / 10_000_000n) % 60n);
    case "Millisecond":
      return Number((ticks / 10_000n) % 1_000n);
    case "Microsecond":
      return Number((ticks / 10n) % 1_000n);
    case "Nanosecond":
      return Number(ticks % 10n) * 100;
    default:
      return undefined;
  }
}

/** Returns a member that only dates with an offset have. The server's own zone is UTC. */
function offsetMember(
  name: string,
  utc: bigint,
  local: bigint,
  minutes: number,
): DateMember | undefined {
  switch (name) {
    case "Offset":
      return timeSpanText(BigInt(minutes) * 600_000_000n);
    case "TotalOffsetMinutes":
      return minutes;
    case "DateTime":
      return timeText(local, "");
    case "UtcDateTime":
      return timeText(utc, "Z");
    case "LocalDateTime":
      return timeText(utc, "");
    case "UtcTicks":
      return utc;
    default:
      return undefined;
  }
}

const spanUnits: ReadonlyMap<string, readonly [ticks: bigint, modulus: bigint]> = new Map([
  ["Days", [ticksPerDay, 2n ** 63n]],
  ["Hours", [36_000_000_000n, 24n]],
  ["Minutes", [600_000_000n, 60n]],
  ["Seconds", [10_000_000n, 60n]],
  ["Milliseconds", [10_000n, 1_000n]],
  ["Microseconds", [10n, 1_000n]],
]);

function spanMember(ticks: bigint, name: string): DateMember | undefined {
  if (name === "Ticks") return ticks;
  const total = name.startsWith("Total") ? spanUnits.get(name.slice(5)) : undefined;
  if (total !== undefined) return Number(ticks) / Number(total[0]);
  const unit = spanUnits.get(name);
  return unit === undefined ? undefined : Number((ticks / unit[0]) % unit[1]);
}
