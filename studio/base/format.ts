/** Formats numbers, sizes and times for people. */
const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 2 });
const bytesUnits = ["bytes", "kB", "MB", "GB", "TB"];

export function count(value: number): string {
  return whole.format(value);
}

/** Formats a number, abbreviated (`1.2M`) from 100,000 on. */
export function shortCount(value: number): string {
  return value < 100_000 ? count(value) : short.format(value);
}

/** Formats a count with a noun: `1 document`, `2 documents`. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

export function bytes(value: number): string {
  let unit = 0;
  let size = value;
  while (size >= 1000 && unit < bytesUnits.length - 1) {
    size /= 1024;
    unit++;
  }
  return `${size < 10 && unit > 0 ? size.toFixed(1) : Math.round(size)} ${bytesUnits[unit]}`;
}

export function milliseconds(value: number): string {
  return value < 10 ? `${value.toFixed(1)} ms` : `${count(value)} ms`;
}

const steps: readonly [number, string, number][] = [
  [60, "s", 1],
  [3600, "min", 60],
  [86_400, "h", 3600],
  [30 * 86_400, "day", 86_400],
];

/** Formats a past time: `2 min ago`; the date if it is older than a month. */
export function ago(time: string | number | Date, nowMs: number): string {
  const date = new Date(time);
  const seconds = Math.max(0, Math.round((nowMs - date.getTime()) / 1000));
  if (seconds < 5) return "just now";
  for (const [below, unit, size] of steps) {
    if (seconds >= below) continue;
    const value = Math.floor(seconds / size);
    return `${value} ${unit === "day" && value > 1 ? "days" : unit} ago`;
  }
  return date.toLocaleDateString(undefined, { year: "numeric", month: "short", day: "numeric" });
}

const timeOfDay = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const exactTimeOfDay = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

/** Formats a local time: `Today 10:44`, `Yesterday 17:20`, `4 Nov 2026, 09:02`; with seconds if `isExact`. */
export function when(time: string | number, isExact = false): string {
  const date = new Date(time);
  const days = Math.round((startOfDay(new Date()) - startOfDay(date)) / 86_400_000);
  const clock = (isExact ? exactTimeOfDay : timeOfDay).format(date);
  if (days === 0) return `Today ${clock}`;
  if (days === 1) return `Yesterday ${clock}`;
  const day = date.toLocaleDateString(undefined, {
    day: "numeric",
    month: "short",
    year: "numeric",
  });
  return `${day}, ${clock}`;
}

function startOfDay(date: Date): number {
  return new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime();
}

/** Formats a future time: `in 14 h`, `in 9 days`; `now` if it is past. */
export function until(time: string | number | Date, nowMs: number): string {
  const seconds = Math.round((new Date(time).getTime() - nowMs) / 1000);
  if (seconds <= 0) return "now";
  if (seconds < 60) return `in ${seconds} s`;
  if (seconds < 7200) return `in ${Math.round(seconds / 60)} min`;
  if (seconds < 2 * 86_400) return `in ${Math.round(seconds / 3600)} h`;
  const days = Math.round(seconds / 86_400);
  if (days < 60) return `in ${days} days`;
  return days < 730 ? `in ${Math.round(days / 30.4)} months` : `in ${Math.round(days / 365)} years`;
}

/** Formats a local date and time. */
export function moment(time: string | number | Date): string {
  return new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

/** Formats a duration: `0.4 s`, `41 s`, `2 min`. */
export function took(ms: number): string {
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  return ms < 120_000 ? `${Math.round(ms / 1000)} s` : `${Math.round(ms / 60_000)} min`;
}

/** Parses a time span of the server, such as `1.02:03:04.5`. */
export function secondsOf(span: string): number {
  const found = /^(?:(\d+)\.)?(\d+):(\d+):([\d.]+)$/.exec(span);
  if (found === null) return 0;
  const [, days = "0", hours = "0", minutes = "0", seconds = "0"] = found;
  return Number(days) * 86_400 + Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
}
