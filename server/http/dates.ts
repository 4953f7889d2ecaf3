/** Dates, time spans and sizes as text, in the formats of .NET and RavenDB. */

/** `[d.]hh:mm:ss.fffffff` of milliseconds >= 0. */
export function timeSpanText(ms: number): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const seconds = Math.floor(ms / 1000);
  const days = Math.floor(seconds / 86_400);
  const fraction = String(Math.floor((ms % 1000) * 10_000)).padStart(7, "0");
  const clock = `${two(Math.floor(seconds / 3600) % 24)}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
  return `${days === 0 ? "" : `${days}.`}${clock}.${fraction}`;
}

/** `yyyy-MM-ddTHH:mm:ss.fffffff`, without a `Z`: the format of certificates' dates. */
export function unzonedDateText(date: Date): string {
  return date.toISOString().replace("Z", "0000");
}

/** `yyyy-MM-ddTHH:mm:ss.fffffffZ`. */
export function dateText(date: Date): string {
  return date.toISOString().replace("Z", "0000Z");
}

/** 13.48 MBytes */
export function humaneSize(bytes: number): string {
  const units = ["Bytes", "KBytes", "MBytes", "GBytes", "TBytes"];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${Math.round(value * 100) / 100} ${units[unit]}`;
}
