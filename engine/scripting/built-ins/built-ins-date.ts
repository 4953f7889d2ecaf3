/**
 * `Date` for scripts. Scripts run in UTC: local time is UTC, as in the reference.
 *
 * A date is a number of milliseconds; host dates are created within single methods and never exposed.
 */

import { dateString, toNumber, toText } from "../language/script-operators.ts";
import { methodTables } from "../language/script-properties.ts";
import {
  isReference,
  kinds,
  type Native,
  type Run,
  ScriptDate,
  type ScriptFunction,
  throwError,
  type Value,
} from "../language/script-values.ts";
import { builtIn, defineAll, namespaceOf } from "./built-in.ts";

const zonelessTime = /^[+-]?\d{4,6}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d+)?)?$/;
const zoned = /(Z|UTC|GMT|[+-]\d\d:?\d\d)\b/i;

/** Parses a date to milliseconds; a text without a zone is UTC. NaN for an invalid date. */
function parseDate(given: string): number {
  const text = given.trim().slice(0, 100);
  if (/^[+-]?\d{4}/.test(text)) return Date.parse(zonelessTime.test(text) ? `${text}Z` : text);
  const time = zoned.test(text) ? Number.NaN : Date.parse(`${text} UTC`);
  return Number.isNaN(time) ? Date.parse(text) : time;
}

function dateSelf(self: Value): ScriptDate {
  if (isReference(self) && self.kind === kinds.date) return self;
  return throwError("TypeError", "this is not a Date object.");
}

function hostDate(self: Value): Date {
  return new Date(dateSelf(self).time);
}

/** Getters, shared by `getX` and `getUTCX`. */
const getters: Readonly<Record<string, (date: Date) => number>> = {
  FullYear: (date) => date.getUTCFullYear(),
  Month: (date) => date.getUTCMonth(),
  Date: (date) => date.getUTCDate(),
  Day: (date) => date.getUTCDay(),
  Hours: (date) => date.getUTCHours(),
  Minutes: (date) => date.getUTCMinutes(),
  Seconds: (date) => date.getUTCSeconds(),
  Milliseconds: (date) => date.getUTCMilliseconds(),
};

type Parts = [number, number?, number?, number?];

/** Setters, which modify a host date. */
const setters: Readonly<Record<string, (date: Date, parts: Parts) => number>> = {
  FullYear: (date, [year, ...rest]) => date.setUTCFullYear(year, ...(rest as [number?, number?])),
  Month: (date, [month, ...rest]) => date.setUTCMonth(month, ...(rest as [number?])),
  Date: (date, [day]) => date.setUTCDate(day),
  Hours: (date, [hours, ...rest]) =>
    date.setUTCHours(hours, ...(rest as [number?, number?, number?])),
  Minutes: (date, [minutes, ...rest]) =>
    date.setUTCMinutes(minutes, ...(rest as [number?, number?])),
  Seconds: (date, [seconds, ...rest]) => date.setUTCSeconds(seconds, ...(rest as [number?])),
  Milliseconds: (date, [milliseconds]) => date.setUTCMilliseconds(milliseconds),
};

function accessors(): Record<string, Native> {
  const functions: Record<string, Native> = {};
  for (const [name, read] of Object.entries(getters)) {
    functions[`get${name}`] = (_run, self) => read(hostDate(self));
    functions[`getUTC${name}`] = functions[`get${name}`] as Native;
  }
  for (const [name, write] of Object.entries(setters)) {
    functions[`set${name}`] = (run, self, args) => {
      const date = hostDate(self);
      const parts = args.slice(0, 4).map((arg) => toNumber(run, arg));
      dateSelf(self).time = write(date, parts as Parts);
      return dateSelf(self).time;
    };
    functions[`setUTC${name}`] = functions[`set${name}`] as Native;
  }
  return functions;
}

/** Texts in the `en-US` locale. */
function localeText(run: Run, self: Value, options: Intl.DateTimeFormatOptions): string {
  // The host creates a formatter for each call, which makes it the most expensive date method.
  run.burn(20_000);
  const date = hostDate(self);
  if (Number.isNaN(date.getTime())) return "Invalid Date";
  return date.toLocaleString("en-US", { ...options, timeZone: "UTC" });
}

const numericDate = { year: "numeric", month: "numeric", day: "numeric" } as const;
const numericTime = { hour: "numeric", minute: "numeric", second: "numeric" } as const;

/** Maximum cost of formatting or parsing a date. */
const textUnits = 60;

function paidDate(run: Run, text: string): number {
  run.burn(textUnits + (text.length >> 4));
  return parseDate(text);
}

const methods: Record<string, Native> = {
  getTime: (_run, self) => dateSelf(self).time,
  valueOf: (_run: Run, self: Value) => dateSelf(self).time,
  setTime(run, self, [time]) {
    dateSelf(self).time = new Date(toNumber(run, time)).getTime();
    return dateSelf(self).time;
  },
  getTimezoneOffset: () => 0,
  toISOString: (run, self) => isoText(run, self),
  toJSON: (run, self) => (Number.isNaN(dateSelf(self).time) ? null : isoText(run, self)),
  toString: (run: Run, self: Value) => longText(run, self),
  toUTCString(run, self) {
    run.burn(textUnits);
    return hostDate(self).toUTCString();
  },
  toDateString: (run, self) => longText(run, self).slice(0, 15),
  toTimeString: (run, self) => longText(run, self).slice(16),
  toLocaleDateString: (run, self) => localeText(run, self, numericDate),
  toLocaleTimeString: (run, self) => localeText(run, self, numericTime),
  toLocaleString: (run: Run, self: Value) =>
    localeText(run, self, { ...numericDate, ...numericTime }),
};

function longText(run: Run, self: Value): string {
  run.burn(textUnits * 2);
  return dateString(dateSelf(self).time);
}

function isoText(run: Run, self: Value): string {
  run.burn(textUnits);
  const date = hostDate(self);
  if (Number.isNaN(date.getTime())) throwError("RangeError", "Invalid time value");
  return date.toISOString();
}

function utc(run: Run, args: Value[]): number {
  const parts = args.slice(0, 7).map((arg) => toNumber(run, arg));
  const [year = Number.NaN, month = 0, ...rest] = parts;
  return Date.UTC(year, month, ...rest);
}

/** Returns the time that `new Date(…)` denotes. */
function timeOf(run: Run, args: Value[], now: () => number): number {
  const [value] = args;
  if (args.length === 0) return now();
  if (args.length > 1) return utc(run, args);
  if (isReference(value) && value.kind === kinds.date) return value.time;
  if (typeof value === "string") return paidDate(run, value);
  return new Date(
    isReference(value) ? paidDate(run, toText(run, value)) : toNumber(run, value),
  ).getTime();
}

/** Fills the method table of dates. `nowOf` returns the time of a run. @returns the constructor `Date` */
export function defineDates(nowOf: (run: Run) => number): ScriptFunction {
  defineAll(methodTables.date, 1, { ...accessors(), ...methods });
  const maker = builtIn("Date", 7, (run) => dateString(nowOf(run)));
  maker.construct = (run, _self, args) => {
    run.grow(48);
    return new ScriptDate(timeOf(run, args, () => nowOf(run)));
  };
  maker.properties = namespaceOf({
    now: (run) => nowOf(run),
    parse: (run, _self, [value]) => paidDate(run, toText(run, value)),
    UTC: (run, _self, args) => utc(run, args),
  });
  return maker;
}
