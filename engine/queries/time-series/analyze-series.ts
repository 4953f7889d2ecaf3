/**
 * Series queries of a query, resolved: `timeseries( … )` in `select`, and `declare timeseries`. Parts that depend on
 * documents (arguments of a declared function, names of values) are resolved when the query runs.
 *
 * Error texts equal those of RavenDB 7.2.7, which reports most of them only when it reads an entry.
 */
import { EngineError, invalidArgument } from "../../base/errors.ts";
import type { ParameterValue } from "../analysis/query-parameters.ts";
import { plainText } from "../analysis/query-parameters.ts";
import { invalid, notSupported, type QueryScope, resolveValue } from "../analysis/query-scope.ts";
import type {
  Argument,
  Call,
  Declaration,
  Expression,
  Field,
  Query,
  Script,
  Value,
} from "../syntax/ast.ts";
import { fieldText } from "../syntax/print.ts";
import {
  type PeriodSyntax,
  parseSeries,
  type SeriesSelectItem,
  type SeriesSyntax,
} from "./series-syntax.ts";
import {
  badSeriesTime,
  type Period,
  parsePeriod,
  parseRange,
  parseSeriesTime,
  parseTimeSpan,
} from "./time-period.ts";

/** A bound of a range: milliseconds since 1970, or an argument's field that has its text. */
export type SeriesBound =
  | { readonly kind: "time"; readonly ms: number }
  | { readonly kind: "field"; readonly field: Field };

type SeriesRange =
  | { readonly kind: "between"; readonly from: SeriesBound; readonly to: SeriesBound }
  | { readonly kind: "first" | "last"; readonly period: Period };

/** Aggregate -> its key in results. */
const aggregateKeys = {
  first: "First",
  last: "Last",
  min: "Min",
  max: "Max",
  sum: "Sum",
  count: "Count",
  average: "Average",
  percentile: "Percentile",
  slope: "Slope",
  stddev: "StandardDeviation",
} as const;

type AggregateKind = keyof typeof aggregateKeys;

export interface SeriesAggregate {
  readonly kind: AggregateKind;
  readonly key: string;
  /** 0 < percent <= 100 for a percentile, else 0. */
  readonly percent: number;
}

const interpolations = ["linear", "nearest", "last", "next"] as const;
export type Interpolation = (typeof interpolations)[number];

/** One series query. */
export interface SeriesFunction {
  readonly name: string;
  /** Names of the parameters of a declared function; null: it is in `select`, and names the query's aliases. */
  readonly parameters: readonly string[] | null;
  readonly source: Field;
  readonly range: SeriesRange | null;
  /** `load Tag as alias` */
  readonly loadAlias: string | null;
  readonly where: Expression | null;
  readonly period: Period | null;
  /** The second key of groups: the tag, or a path in the document that it names. */
  readonly key:
    | { readonly kind: "tag" }
    | { readonly kind: "loaded"; readonly path: readonly string[] }
    | null;
  readonly interpolation: Interpolation | null;
  /** In the order of the reply, without duplicates; empty: raw entries. */
  readonly aggregates: readonly SeriesAggregate[];
  readonly scale: number;
  /** Milliseconds added to all times; null: none, and times are UTC. */
  readonly offsetMs: number | null;
}

const noSeries: ReadonlyMap<string, SeriesFunction> = new Map();

/** Returns the name that a series query in `select` gets, by its position among them. */
export function inlineSeriesName(position: number): string {
  return `__timeSeriesQueryFunction${position}`;
}

/** `declare timeseries` */
export function seriesDeclarations({ declarations }: Query): readonly Declaration[] {
  return declarations.filter(({ form }) => form === "timeseries");
}

/** Only read queries have series queries. @throws not-supported */
export function refuseSeries(query: Query): void {
  if (seriesDeclarations(query).length === 0 && inlineSeries(query).length === 0) return;
  throw notSupported("Time series functions are supported only in queries that read.");
}

/** Returns all series queries of a query, by name. @throws query-syntax, query-invalid, invalid-argument, … */
export function analyzeSeries(
  scope: QueryScope,
  query: Query,
): ReadonlyMap<string, SeriesFunction> {
  const declared = seriesDeclarations(query);
  const inline = inlineSeries(query);
  if (declared.length === 0 && inline.length === 0) return noSeries;
  const functions = new Map<string, SeriesFunction>();
  for (const declaration of declared) {
    const syntax = syntaxOf(declaration.body, declaration.name);
    const parameters = parametersOf(scope, declaration);
    functions.set(declaration.name, resolve(scope, declaration.name, parameters, syntax));
  }
  for (const [position, body] of inline.entries()) {
    const name = inlineSeriesName(position);
    functions.set(name, resolve(scope, name, null, syntaxOf(body, null)));
  }
  return functions;
}

function inlineSeries({ select }: Query): Script[] {
  if (select === null || select.body === null || "kind" in select.body) return [];
  return select.body.flatMap(({ expression }) =>
    expression.kind === "time-series" ? [expression.body] : [],
  );
}

/** By the body's node, which lives as long as the cached tree of its query. */
const parsed = new WeakMap<Script, SeriesSyntax>();

function syntaxOf(body: Script, name: string | null): SeriesSyntax {
  const known = parsed.get(body);
  if (known !== undefined) return known;
  const syntax = parseSeries(body, name);
  parsed.set(body, syntax);
  return syntax;
}

function parametersOf(scope: QueryScope, { name, parameters }: Declaration): string[] {
  if (parameters === "") return [];
  const names = parameters.split(",").map((one) => one.trim());
  const wrong = names.find((one) => !/^[\p{L}_][\p{L}\p{N}_]*$/u.test(one));
  if (wrong === undefined) return names;
  throw invalid(scope, `Parameter '${wrong}' of time series function '${name}' is not a name.`);
}

function resolve(
  scope: QueryScope,
  name: string,
  parameters: readonly string[] | null,
  syntax: SeriesSyntax,
): SeriesFunction {
  const { source, loadAlias, where, groupBy, select } = syntax;
  if (where !== null) checkWhere(where, name);
  const period = groupBy === null ? null : periodOf(scope, groupBy.period, parsePeriod);
  const aggregates = aggregatesOf(scope, select, groupBy !== null);
  if (period === null && aggregates.some(({ kind }) => kind === "slope")) {
    throw new EngineError(
      "invalid-operation",
      "Cannot use aggregation method 'Slope' without having a 'GroupBy' clause ",
    );
  }
  return {
    name,
    parameters,
    source,
    range: rangeOf(scope, syntax),
    loadAlias,
    where,
    period,
    key: keyOf(groupBy?.key ?? null, loadAlias),
    interpolation: interpolationOf(groupBy?.interpolation ?? null),
    aggregates,
    scale: scaleOf(scope, syntax.scale, name),
    offsetMs: offsetOf(scope, syntax.offset, name),
  };
}

/** Returns the value; null for a missing parameter. */
function givenValue(scope: QueryScope, value: Value): ParameterValue {
  const isMissing =
    value.kind === "parameter" &&
    scope.parameters !== null &&
    !scope.parameters.values.has(value.name);
  return isMissing ? { type: "null", value: null } : resolveValue(scope, value);
}

function periodOf(
  scope: QueryScope,
  period: PeriodSyntax,
  parse: (text: string) => Period,
): Period | null {
  if (period.kind === "text") return parse(period.text);
  const value = givenValue(scope, period);
  return value.type === "null" ? null : parse(plainText(value));
}

function rangeOf(scope: QueryScope, { range }: SeriesSyntax): SeriesRange | null {
  if (range === null) return null;
  if (range.kind === "between") {
    const from = boundOf(scope, range.from, true);
    return { kind: "between", from, to: boundOf(scope, range.to, false) };
  }
  const period = periodOf(scope, range.period, parseRange);
  return period === null ? null : { kind: range.kind, period };
}

function boundOf(scope: QueryScope, bound: Value | Field, isFirst: boolean): SeriesBound {
  if (bound.kind === "field") return { kind: "field", field: bound };
  const value = givenValue(scope, bound);
  return { kind: "time", ms: boundTime(value.type === "null" ? null : plainText(value), isFirst) };
}

/** Returns the first or last millisecond in a range that begins or ends at a time. @throws invalid-argument */
export function boundTime(text: string | null, isFirst: boolean): number {
  const time = text === null ? null : parseSeriesTime(text);
  if (time === null) throw badSeriesTime(text);
  return isFirst && time.isBetween ? time.ms + 1 : time.ms;
}

function keyOf(key: Field | null, loadAlias: string | null): SeriesFunction["key"] {
  if (key === null) return null;
  const [root, ...rest] = key.path.map(({ name }) => name);
  const isTag = rest.length === 0 && root !== loadAlias;
  return isTag ? { kind: "tag" } : { kind: "loaded", path: rest };
}

function interpolationOf(call: Call | null): Interpolation | null {
  if (call === null) return null;
  if (call.name.toLowerCase() !== "interpolation") {
    throw invalidArgument(`Unknown method in WITH clause of time series query: ${call.name}`);
  }
  const [argument] = call.args;
  const shown = argumentText(call);
  if (call.args.length !== 1 || argument?.kind !== "field") {
    throw invalidArgument(
      `Invalid arguments in method call 'interpolation' in WITH clause of time series query: ${shown}`,
    );
  }
  const word = fieldText(argument);
  const found = interpolations.find((known) => known === word.toLowerCase());
  if (found !== undefined) return found;
  throw invalidArgument(
    `Unknown interpolation method '${word}' in WITH clause of time series query: ${shown}`,
  );
}

const aggregateNames: ReadonlyMap<string, AggregateKind> = new Map([
  ...(Object.keys(aggregateKeys) as AggregateKind[]).map((kind): [string, AggregateKind] => [
    kind,
    kind,
  ]),
  ["avg", "average"],
]);

/** Of groups without `select`. */
const groupAggregates = ["first", "last", "min", "max", "sum", "count", "average"] as const;

/** The count is always there, and first unless it stands in the list of all. */
function aggregatesOf(
  scope: QueryScope,
  items: readonly SeriesSelectItem[],
  isGrouped: boolean,
): SeriesAggregate[] {
  if (items.length === 0) {
    const kinds = isGrouped ? groupAggregates : [];
    return kinds.map((kind) => ({ kind, key: aggregateKeys[kind], percent: 0 }));
  }
  const found = new Map<AggregateKind, SeriesAggregate>();
  found.set("count", { kind: "count", key: aggregateKeys.count, percent: 0 });
  for (const { expression, alias } of items) {
    const kind =
      expression.kind === "call" ? aggregateNames.get(expression.name.toLowerCase()) : undefined;
    if (expression.kind !== "call" || kind === undefined) {
      throw invalidArgument(`Unknown method in timeseries query: ${argumentText(expression)}`);
    }
    const percent = kind === "percentile" ? percentOf(scope, expression) : 0;
    found.set(kind, { kind, key: alias ?? aggregateKeys[kind], percent });
  }
  return [...found.values()];
}

function percentOf(scope: QueryScope, { args }: Call): number {
  const [argument] = args;
  if (args.length !== 1 || argument === undefined) {
    throw invalidArgument("Wrong number of arguments passed to method Percentile");
  }
  const isValue = argument.kind === "literal" || argument.kind === "parameter";
  const value = isValue ? givenValue(scope, argument) : null;
  if (value?.type !== "long" && value?.type !== "double") {
    throw invalidArgument(
      `Invalid argument passed to method 'Percentile' : '${argumentText(argument)}'. Expected argument of type 'long', ` +
        "'double', or 'LazyNumberValue'",
    );
  }
  const percent = Number(value.value);
  if (percent > 0 && percent <= 100) return percent;
  throw new EngineError(
    "out-of-range",
    "Specified argument was out of the range of valid values. (Parameter 'Invalid argument passed to 'Percentile' " +
      `aggregation method: '${percent}'. Argument must be a number greater than 0 and less than or equal to 100')`,
  );
}

function scaleOf(scope: QueryScope, scale: Value | null, name: string): number {
  if (scale === null) return 1;
  const value = givenValue(scope, scale);
  if (value.type === "long" || value.type === "double") return Number(value.value);
  throw new EngineError(
    "invalid-operation",
    `Failed to execute time series query function '${name}'. Invalid type on 'scale' argument : expected 'scale' to be ` +
      `of type 'System.Double', 'System.Int64' or 'LazyNumberValue', but got : '${value.type}'.`,
  );
}

function offsetOf(scope: QueryScope, offset: Value | null, name: string): number | null {
  if (offset === null) return null;
  const value = givenValue(scope, offset);
  const ms = value.type === "string" ? parseTimeSpan(value.value) : null;
  if (ms !== null) return ms;
  throw new EngineError(
    "invalid-operation",
    `Failed to parse object '${plainText(value)}' as TimeSpan, in OFFSET clause of time series function '${name}'`,
  );
}

/** Refuses operands that cannot be compared with entries. */
function checkWhere(node: Expression, name: string): void {
  const clause = "inside WHERE clause of";
  switch (node.kind) {
    case "and":
    case "or":
      for (const operand of node.operands) checkWhere(operand, name);
      return;
    case "not":
      checkWhere(node.operand, name);
      return;
    case "true":
    case "call":
      throw new EngineError(
        "query-invalid",
        `Unsupported expression '${argumentText(node)}' ${clause} TimeSeries function '${name}'. Supported expressions are : ` +
          "Binary Expressions (=, !=, <, >, <=, >=, AND, OR, NOT), IN expressions, BETWEEN expressions",
      );
    case "in":
      if (!node.isAll) return;
      throw new EngineError(
        "query-invalid",
        `Invalid InExpression '${argumentText(node)}' ${clause} time series function '${name}'.Operator 'ALL IN' is not ` +
          "supported for time series functions",
      );
  }
}

const operatorNames = {
  "=": "Equal",
  "!=": "NotEqual",
  "<": "LessThan",
  "<=": "LessThanEqual",
  ">": "GreaterThan",
  ">=": "GreaterThanEqual",
} as const;

const literalTypes = { string: "String", long: "Long", double: "Double", null: "Null" } as const;

/** Returns a node as RavenDB's messages about series queries show it. */
export function argumentText(node: Argument): string {
  switch (node.kind) {
    case "field":
      return `<Field>: ${fieldText(node)}`;
    case "literal": {
      const isBoolean = node.type === "boolean";
      const type = isBoolean ? (node.text === "true" ? "True" : "False") : literalTypes[node.type];
      return `${node.text} (${type})`;
    }
    case "parameter":
      return `${node.name} (Parameter)`;
    case "call":
      return `${node.name}(${node.args.map(argumentText).join(", ")})`;
    case "true":
      return "true";
    case "comparison":
      return `${argumentText(node.left)} ${operatorNames[node.operator]} ${argumentText(node.right)}`;
    case "between":
      return `${argumentText(node.left)} between ${argumentText(node.low)} and ${argumentText(node.high)}`;
    case "in":
      return `${argumentText(node.left)} in ( ${node.values.map(argumentText).join(", ")})`;
    case "not":
      return `not ${argumentText(node.operand)}`;
    default:
      return node.operands.map(argumentText).join(` ${node.kind} `);
  }
}
