/**
 * `now()`, `now('-1d12h')` and `today()` as values of conditions: a moment is a string that compares like a date.
 *
 *   offset := sign? (n year)? (n month)? (n day)? (n hour)? (n minute)? (n second)?
 *
 * As in RavenDB 7.2.7: the sign applies to the whole offset; units are in this order, in several spellings, in any
 * case, with or without spaces. The moment is truncated to the smallest unit named: `now('0d')` is midnight.
 */
import { EngineError } from "../../base/errors.ts";
import { formatTimestamp } from "../../base/timestamp.ts";
import { jsonText } from "../analysis/query-parameters.ts";
import { invalid, type QueryScope, resolveValue } from "../analysis/query-scope.ts";
import type { Call } from "../syntax/ast.ts";
import { notLeft } from "./arguments.ts";
import { nowhere } from "./places.ts";
import type { RqlFunction } from "./rql-function.ts";

export const now = momentFunction("Now", nowMicros);
export const today = momentFunction("Today", todayMicros);

function momentFunction(
  name: string,
  microsOf: (scope: QueryScope, call: Call) => number,
): RqlFunction {
  return {
    ...nowhere,
    shownName: null,
    compared: () => {
      throw notLeft(name);
    },
    value: (scope, call) => {
      const micros = microsOf(scope, call);
      scope.moments.push(micros);
      return { type: "string", value: formatTimestamp(micros) };
    },
    filter: {
      refusal: (written) =>
        `'${written}()' function is not supported in filter or subscription expressions`,
      compiled: "script",
    },
  };
}

function todayMicros(scope: QueryScope, { args }: Call): number {
  if (args.length > 0) {
    throw invalid(
      scope,
      "Method today() does not accept arguments. Use now() with an offset instead (e.g., now('+1d')).",
    );
  }
  return movedBy(scope.nowMicros, 1, [0, 0, 0, undefined, undefined, undefined]);
}

function nowMicros(scope: QueryScope, { args }: Call): number {
  if (args.length > 1) throw invalid(scope, "Method now() expects zero or one argument.");
  const [argument] = args;
  if (argument === undefined) return scope.nowMicros;
  const isValue = argument.kind === "literal" || argument.kind === "parameter";
  const value = isValue ? resolveValue(scope, argument) : null;
  if (value === null || value.type === "null" || (value.type === "string" && value.value === "")) {
    throw invalid(scope, "Method now() offset argument must be a non-empty string.");
  }
  const text = value.type === "string" ? value.value : jsonText(value);
  const parts = offsetPattern.exec(text);
  const amounts = parts?.slice(2).map((part) => (part === undefined ? undefined : Number(part)));
  if (parts === null || amounts === undefined || amounts.every((amount) => amount === undefined)) {
    throw invalid(scope, unreadable(text));
  }
  return movedBy(scope.nowMicros, parts[1] === "-" ? -1 : 1, amounts);
}

const offsetPattern = new RegExp(
  `^\\s*([+-])?\\s*${[
    "years|year|y",
    "months|month|mo",
    "days|day|d",
    "hours|hour|h",
    "minutes|minute|min|m",
    "seconds|second|sec|s",
  ]
    .map((spellings) => `(?:(\\d{1,12})\\s*(?:${spellings})\\s*)?`)
    .join("")}$`,
  "i",
);

function unreadable(text: string): string {
  return (
    `Invalid offset format '${text}' for now(). Expected format: [+|-]N(y|year|years)[N(mo|month|months)][N(d|day|days)]` +
    "[N(h|hour|hours)][N(m|min|minute|minutes)][N(s|sec|second|seconds)]. Units must appear in descending order. " +
    "Spaces between components are allowed. Examples: '+1y6mo', '-2hours30minutes', '1 year 6 months', '15d'."
  );
}

const unitMs: readonly number[] = [86_400_000, 3_600_000, 60_000, 1_000];

/** @param amounts of years, months, days, hours, minutes and seconds; undefined: not named. @throws invalid-argument */
function movedBy(micros: number, sign: 1 | -1, amounts: readonly (number | undefined)[]): number {
  const [years = 0, months = 0, ...fixed] = amounts;
  const date = new Date(Math.floor(micros / 1000));
  const day = date.getUTCDate();
  date.setUTCDate(1);
  date.setUTCMonth(date.getUTCMonth() + sign * (years * 12 + months));
  const monthEnd = new Date(date);
  monthEnd.setUTCMonth(date.getUTCMonth() + 1, 0);
  date.setUTCDate(Math.min(day, monthEnd.getUTCDate()));
  let ms = date.getTime();
  for (const [unit, amount = 0] of fixed.entries()) ms += sign * amount * (unitMs[unit] as number);
  const cut = cutOff(ms, amounts);
  const year = new Date(cut).getUTCFullYear();
  if (year >= 1 && year <= 9999) return cut * 1000;
  throw new EngineError(
    "invalid-argument",
    "The offset of now() leads out of the years 1 to 9999.",
  );
}

/** Truncates to the smallest unit named. */
function cutOff(ms: number, amounts: readonly (number | undefined)[]): number {
  const smallest = amounts.findLastIndex((amount) => amount !== undefined);
  const date = new Date(ms);
  switch (smallest) {
    case 0:
      date.setUTCMonth(0, 1);
      return date.setUTCHours(0, 0, 0, 0);
    case 1:
      date.setUTCDate(1);
      return date.setUTCHours(0, 0, 0, 0);
    default: {
      const unit = unitMs[smallest - 2] as number; // at least one unit is present
      return Math.floor(ms / unit) * unit;
    }
  }
}
