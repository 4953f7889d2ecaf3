/**
 * `include timeseries(…)` -> the ranges of documents' series that are returned: `timeseries([path,] name, from, to)`,
 * `timeseries([path,] [name,] last(count | time, unit))`. Error texts equal those of RavenDB 7.2.7.
 */
import { EngineError } from "../../base/errors.ts";
import { firstMillisecond, lastMillisecond, type MillisecondBound } from "../../base/timestamp.ts";
import type { AnalyzedInclude, SeriesInclude } from "../analysis/analyzed-query.ts";
import { plainText } from "../analysis/query-parameters.ts";
import { fieldReference, invalid, type QueryScope, resolveValue } from "../analysis/query-scope.ts";
import type { Argument, Call } from "../syntax/ast.ts";
import { describeArgument, literalTypeName, pathText } from "../syntax/print.ts";
import { isCallOf } from "./arguments.ts";
import { nowhere, onlyInInclude } from "./places.ts";
import type { RqlFunction } from "./rql-function.ts";

/** Denotes all series of a document. */
const allSeries = "@all_timeseries";

/** Units in seconds, or in months, whose length varies. */
const units: Readonly<Record<string, { readonly seconds?: number; readonly months?: number }>> = {
  s: { seconds: 1 },
  second: { seconds: 1 },
  m: { seconds: 60 },
  min: { seconds: 60 },
  minute: { seconds: 60 },
  h: { seconds: 3_600 },
  hour: { seconds: 3_600 },
  d: { seconds: 86_400 },
  day: { seconds: 86_400 },
  month: { months: 1 },
  mon: { months: 1 },
  q: { months: 3 },
  quarter: { months: 3 },
  y: { months: 12 },
  year: { months: 12 },
};

export const timeSeries: RqlFunction = {
  ...onlyInInclude,
  shownName: "TimeSeries",
  include: {
    isForSubscriptions: true,
    add: (scope, call, { series }) => {
      series.push(includedSeries(scope, call));
    },
  },
};

/** Only an argument of `timeseries()`. */
export const last: RqlFunction = { ...nowhere, shownName: "Last" };

/** @throws query-invalid, invalid-argument */
function includedSeries(scope: QueryScope, call: Call): AnalyzedInclude["series"][number] {
  const [first] = call.args;
  const isField = first?.kind === "field";
  const isWhole =
    isField && first.path.length === 1 && scope.aliases.includes(pathText(first.path));
  const of = isField && !isWhole ? fieldReference(scope, first) : null;
  const args = isField ? call.args.slice(1) : call.args;
  const end = args.at(-1);
  if (end !== undefined && isCallOf(end, "last") && args.length <= 2) {
    const name = args.length === 1 ? allSeries : nameOf(scope, call, args[0]);
    return { of, wanted: lastOf(scope, name, end) };
  }
  if (args.length !== 3) throw unexpected(scope, call);
  const name = nameOf(scope, call, args[0]);
  const from = boundOf(scope, name, args[1], firstMillisecond);
  const to = boundOf(scope, name, args[2], lastMillisecond);
  const bounds = { from: from?.ms, to: to?.ms, fromText: from?.text, toText: to?.text };
  return { of, wanted: { name, kind: "range", bounds } };
}

function unexpected(scope: QueryScope, call: Call): Error {
  if (call.args.some((argument) => isCallOf(argument, "first"))) {
    return new EngineError("not-supported", "Method 'first' is not supported.");
  }
  const text = `${call.name}(${call.args.map(describeArgument).join(", ")})`;
  const isField = call.args[0]?.kind === "field";
  // Two spellings, as RavenDB has them.
  return call.args.length === (isField ? 2 : 1)
    ? invalid(scope, `Expected to get include 'TimeSeries' clause expression, but got: '${text}'.`)
    : invalid(scope, `Expected to get include TimeSeries clause expression, but got: ${text}.`);
}

function nameOf(scope: QueryScope, call: Call, argument: Argument | undefined): string {
  const isText = argument?.kind === "literal" && argument.type === "string";
  if (!isText && argument?.kind !== "parameter") throw unexpected(scope, call);
  return plainText(resolveValue(scope, argument));
}

/** Undefined: open. */
function boundOf(
  scope: QueryScope,
  name: string,
  argument: Argument | undefined,
  millisecondOf: (text: string) => MillisecondBound | null,
): MillisecondBound | undefined {
  if (argument?.kind === "literal" || argument?.kind === "parameter") {
    const value = resolveValue(scope, argument);
    if (value.type === "null") return undefined;
    if (value.type === "string") {
      const bound = millisecondOf(value.value);
      if (bound !== null) return bound;
      throw new EngineError(
        "invalid-argument",
        `Could not parse query string '${name}' as date, val '${value.value}'`,
      );
    }
  }
  const type = argument?.kind === "literal" ? ` of type \`${literalTypeName(argument)}\`` : "";
  const text =
    argument?.kind === "literal" ? argument.text : describeArgument(argument as Argument);
  throw invalid(
    scope,
    "From/To parameters of method of `timeseries` must be of type `string` or `null`, " +
      `but got \`${text}\`${type}`,
  );
}

/** `last(n)`: the last n entries. `last(n, 'unit')`: the entries not older than that, relative to the last one. */
function lastOf(scope: QueryScope, name: string, call: Call): SeriesInclude {
  const [amount, unit] = call.args;
  if (amount === undefined || call.args.length > 2) {
    throw invalid(scope, `Got invalid arguments count '${call.args.length}' in 'last' method.`);
  }
  const count = wholeOf(scope, amount);
  if (unit === undefined) return { name, kind: "lastCount", count };
  const text =
    unit.kind === "literal" || unit.kind === "parameter"
      ? plainText(resolveValue(scope, unit)).toLowerCase()
      : "";
  const found = units[text] ?? units[text.replace(/s$/, "")];
  if (found === undefined) throw invalid(scope, "Could not parse last() method.");
  return found.months === undefined
    ? { name, kind: "lastTime", value: count * (found.seconds ?? 1), unit: "Second" }
    : { name, kind: "lastTime", value: count * found.months, unit: "Month" };
}

function wholeOf(scope: QueryScope, argument: Argument): number {
  if (argument.kind === "literal" || argument.kind === "parameter") {
    const value = Number(plainText(resolveValue(scope, argument)));
    if (Number.isSafeInteger(value)) return value;
  }
  throw invalid(scope, "Could not parse last() method.");
}
