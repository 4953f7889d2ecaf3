/**
 * Reading a request: the query string. Independent of routes.
 *
 * Invariants:
 * - Parameter names are case-insensitive; the first value of a repeated parameter wins.
 * - A query string never fails to parse as a whole: `?&a=1&&b` is `a=1`, `b` = "".
 */
import { invalidArgument } from "../../engine/base/errors.ts";

/** The part of the request target after `?`, parsed on first use. Hot: most requests have none, and several names are read. */
export class QueryString {
  /** As sent, without the `?`. */
  readonly text: string;
  private names: string[] | undefined;
  private values: string[];

  constructor(text: string) {
    this.text = text;
    this.names = undefined;
    this.values = [];
  }

  /** Returns the first value of `name`; undefined if absent, "" if it has no value. */
  get(name: string): string | undefined {
    if (this.text === "") return undefined;
    const position = this.parsed().indexOf(name.toLowerCase());
    return position < 0 ? undefined : this.values[position];
  }

  /** Returns whether no parameter but `name` (in lower case) is present. */
  hasOnly(name: string): boolean {
    for (const other of this.parsed()) if (other !== name) return false;
    return true;
  }

  /** Returns all values of `name`, in the order sent. */
  all(name: string): string[] {
    const names = this.parsed();
    const wanted = name.toLowerCase();
    return this.values.filter((_, position) => names[position] === wanted);
  }

  has(name: string): boolean {
    return this.parsed().includes(name.toLowerCase());
  }

  /** Returns the only value of `name`. @throws EngineError invalid-argument if it is absent, blank or repeated */
  required(name: string): string {
    const values = this.all(name);
    const value = values[0];
    if (value === undefined) {
      throw invalidArgument(`Query string ${name} is mandatory, but wasn't specified.`);
    }
    if (values.length > 1) throw invalidArgument(`Query string ${name} must appear exactly once`);
    if (value.trim() === "")
      throw invalidArgument(`Query string value '${name}' must have a non empty value`);
    return value;
  }

  /** The first value of a name that may be repeated. @throws EngineError invalid-argument as `required` */
  requiredFirst(name: string): string {
    const [value] = this.all(name);
    return value === undefined || value.trim() === "" ? this.required(name) : value;
  }

  /** A 32-bit integer; `fallback` when absent or empty. @throws EngineError invalid-argument */
  int<T>(name: string, fallback: T): number | T {
    const text = this.get(name)?.trim();
    if (!text) return fallback;
    const value = Number(text);
    if (!/^[-+]?\d+$/.test(text) || value > 2_147_483_647 || value < -2_147_483_648) {
      throw invalidArgument(`Could not parse header '${name}' header as int, value was: ${text}`);
    }
    return value;
  }

  /**
   * A 64-bit integer, clamped to ±(2^53 - 1), which no number of the server exceeds (clients start descending lists at the
   * greatest long); `fallback` when absent or empty. @throws EngineError invalid-argument
   */
  long<T>(name: string, fallback: T): number | T {
    const text = this.get(name)?.trim();
    if (!text) return fallback;
    if (!/^[-+]?\d+$/.test(text) || BigInt.asIntN(64, BigInt(text)) !== BigInt(text)) {
      throw invalidArgument(`Could not parse header '${name}' header as long, value was: ${text}`);
    }
    const value = Number(text);
    return Math.max(-Number.MAX_SAFE_INTEGER, Math.min(value, Number.MAX_SAFE_INTEGER));
  }

  /** A finite number; `fallback` when absent or empty. @throws EngineError invalid-argument */
  float<T>(name: string, fallback: T): number | T {
    const text = this.get(name)?.trim();
    if (!text) return fallback;
    if (!/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text)) {
      throw invalidArgument(`Could not parse header '${name}' header as float, value was: ${text}`);
    }
    return Number(text);
  }

  /** `true` or `false` in any case; `fallback` when absent or empty. @throws EngineError invalid-argument */
  bool<T>(name: string, fallback: T): boolean | T {
    const text = this.get(name)?.trim();
    if (!text) return fallback;
    const lower = text.toLowerCase();
    if (lower === "true") return true;
    if (lower === "false") return false;
    throw invalidArgument(`Could not parse query string '${name}' as bool val ${text}`);
  }

  /** As `bool`, but rejects an empty value, as RavenDB 7.2.7 does for some. @throws EngineError invalid-argument */
  strictBool(name: string): boolean {
    if (this.get(name)?.trim() === "") {
      throw invalidArgument(`Could not parse query string '${name}' as bool val `);
    }
    return this.bool(name, false);
  }

  /**
   * Milliseconds of `[-][d.]hh:mm[:ss[.f]]`, or of a bare number of milliseconds.
   * `fallback` when absent or empty. @throws EngineError invalid-argument
   */
  timeSpanMs<T>(name: string, fallback: T): number | T {
    const text = this.get(name)?.trim();
    if (!text) return fallback;
    const value = parseTimeSpanMs(text);
    if (value === undefined) {
      throw invalidArgument(`Could not parse query string '${name}' as timespan val ${text}`);
    }
    return value;
  }

  /**
   * Milliseconds since 1970 of `yyyy-MM-ddTHH:mm:ss[.fffffff][Z]`, always read as UTC.
   * `fallback` when absent or empty. @throws EngineError invalid-argument
   */
  dateMs<T>(name: string, fallback: T): number | T {
    const text = this.get(name)?.trim();
    if (!text) return fallback;
    const value = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,7})?Z?$/.test(text)
      ? Date.parse(text.endsWith("Z") ? text : `${text}Z`)
      : Number.NaN;
    if (Number.isNaN(value)) {
      throw invalidArgument(`Could not parse query string '${name}' as date, val '${text}'`);
    }
    return value;
  }

  private parsed(): string[] {
    if (this.names !== undefined) return this.names;
    const names: string[] = [];
    const text = this.text;
    let start = 0;
    while (start < text.length) {
      let end = text.indexOf("&", start);
      if (end < 0) end = text.length;
      if (end > start) {
        const equals = text.indexOf("=", start);
        const nameEnd = equals < 0 || equals > end ? end : equals;
        names.push(decodePart(text.slice(start, nameEnd)).toLowerCase());
        this.values.push(nameEnd === end ? "" : decodePart(text.slice(nameEnd + 1, end)));
      }
      start = end + 1;
    }
    this.names = names;
    return names;
  }
}

/** Milliseconds of a .NET time span or a bare number of milliseconds; undefined when `text` is neither. */
export function parseTimeSpanMs(text: string): number | undefined {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text);
  const match = /^(-)?(?:(\d+)\.)?(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,7}))?)?$/.exec(text);
  if (match === null) return undefined;
  const [, sign, days, hours, minutes, seconds, fraction] = match;
  if (Number(hours) > 23 || Number(minutes) > 59 || Number(seconds ?? 0) > 59) return undefined;
  const whole = ((Number(days ?? 0) * 24 + Number(hours)) * 60 + Number(minutes)) * 60;
  const ms = (whole + Number(seconds ?? 0)) * 1000 + Number(`0.${fraction ?? 0}`) * 1000;
  return sign === undefined ? ms : -ms;
}

/** Percent-decodes, with `+` as space; malformed text is returned unchanged. */
function decodePart(text: string): string {
  const spaced = text.includes("+") ? text.replaceAll("+", " ") : text;
  if (!spaced.includes("%")) return spaced;
  // Most ids have a slash and no other escape, and a full decoding costs a tenth of a GET.
  const slashed = spaced.replaceAll("%2F", "/");
  if (!slashed.includes("%")) return slashed;
  try {
    return decodeURIComponent(spaced);
  } catch {
    return spaced;
  }
}
