/** `include` -> what is returned along with the results. */
import { EngineError } from "../base/errors.ts";
import { parseTimestamp } from "../base/timestamp.ts";
import { parseIncludePath } from "../documents/include-path.ts";
import { includedSeries } from "./analyze-series-include.ts";
import type { AnalyzedInclude } from "./analyzed-query.ts";
import type { Argument, Call, Operand, PathPart } from "./ast.ts";
import { methodKey, methodNames } from "./functions/method-table.ts";
import { describeArgument, literalTypeName, pathText } from "./print.ts";
import { type ParameterValue, plainText } from "./query-parameters.ts";
import {
  fieldReference,
  invalid,
  notSupported,
  type QueryScope,
  resolveValue,
} from "./query-scope.ts";

type Mutable<Type> = { -readonly [Key in keyof Type]: Type[Key] };
type Included<Key extends keyof AnalyzedInclude> =
  AnalyzedInclude[Key] extends readonly (infer Item)[] ? Item[] : never;

/**
 * Analyzes the items of `include`.
 *
 * @param isCollectionScan the query needs no index, and so has no explanations.
 * @throws query-invalid, not-supported, invalid-operation
 */
export function analyzeInclude(
  scope: QueryScope,
  items: readonly Operand[],
  isCollectionScan: boolean,
): AnalyzedInclude {
  const paths: Included<"paths"> = [];
  const counters: Included<"counters"> = [];
  const highlights: Included<"highlights"> = [];
  const compareExchange: Included<"compareExchange"> = [];
  const revisions: Included<"revisions"> = [];
  const series: Included<"series"> = [];
  const include: Mutable<AnalyzedInclude> = {
    paths,
    counters,
    highlights,
    compareExchange,
    revisions,
    series,
    hasTimings: false,
    explanations: null,
  };
  const explanationCount = items.filter(
    (item) => item.kind === "call" && methodKey(item.name) === "explanations",
  ).length;
  for (const item of items) {
    if (item.kind !== "call") {
      for (const path of includedPaths(scope, item)) {
        const text = pathText(path);
        paths.push({ text, path, wanted: parseIncludePath(text) });
      }
      continue;
    }
    const key = methodKey(item.name);
    if (key === "counters") counters.push(includedCounters(scope, item));
    else if (key === "highlight") highlights.push(includedHighlight(scope, item));
    else if (key === "cmpxchg") compareExchange.push(includedCompareExchange(scope, item));
    else if (key === "revisions")
      revisions.push(...item.args.flatMap((a) => revisionsOf(scope, a)));
    else if (key === "timeseries") series.push(includedSeries(scope, item));
    else if (key === "timings") include.hasTimings = checkTimings(scope, item);
    else if (key === "explanations") {
      include.explanations = includedExplanations(scope, item, isCollectionScan, explanationCount);
    } else refuseInclude(scope, item);
  }
  return include;
}

function refuseInclude(scope: QueryScope, call: Call): never {
  const key = methodKey(call.name);
  if (key === null) throw notSupported(`Method '${call.name}' is not supported.`);
  const complaint = "Unable to figure out how to deal with include method";
  throw invalid(scope, `${complaint} '${methodNames[key]}'`);
}

/** The paths that one item names: several for a parameter that is an array. */
function includedPaths(scope: QueryScope, item: Exclude<Operand, Call>): (readonly PathPart[])[] {
  if (item.kind === "field") return [fieldReference(scope, item).path];
  return texts(scope, item).map((text) => {
    const path = pathOf(text);
    const field = { kind: "field", offset: item.offset, path, isQuoted: true } as const;
    return fieldReference(scope, field).path;
  });
}

/** Parses a path given as text: `Lines[].Product`. */
function pathOf(text: string): PathPart[] {
  return text.split(".").map((part) => {
    const brackets = /(\[\])*$/.exec(part)?.[0] ?? "";
    return { name: part.slice(0, part.length - brackets.length), arrays: brackets.length / 2 };
  });
}

/** The strings that an argument evaluates to. */
function texts(scope: QueryScope, argument: Argument): string[] {
  if (argument.kind === "field") return [pathText(argument.path)];
  if (argument.kind !== "literal" && argument.kind !== "parameter") {
    throw invalid(scope, `Unable to understand include argument ${describeArgument(argument)}`);
  }
  const value = resolveValue(scope, argument);
  return value.type === "array" ? value.items.map(plainText) : [plainText(value)];
}

function includedCounters(scope: QueryScope, call: Call): AnalyzedInclude["counters"][number] {
  const [first, ...rest] = call.args;
  const isField = first?.kind === "field";
  const isWhole =
    isField && first.path.length === 1 && scope.aliases.includes(pathText(first.path));
  const of = isField && !isWhole ? fieldReference(scope, first) : null;
  const names = isField ? rest : call.args;
  for (const name of names) {
    if (name.kind !== "literal" || name.type === "string") continue;
    throw invalid(
      scope,
      "Parameters of method `counters` must be of type `string` or `string[]`, " +
        `but got \`${name.text}\` of type \`${literalTypeName(name)}\``,
    );
  }
  return { of, names: names.flatMap((name) => texts(scope, name)) };
}

/** The path to a change vector, or a point in time. */
function revisionsOf(scope: QueryScope, argument: Argument): (string | number)[] {
  if (argument.kind === "field") return [pathText(fieldReference(scope, argument).path)];
  return texts(scope, argument).map((text) => {
    const micros = parseTimestamp(text);
    return Number.isNaN(micros) ? text : micros;
  });
}

function includedHighlight(scope: QueryScope, call: Call): AnalyzedInclude["highlights"][number] {
  const [field, length, count, options] = call.args;
  if (field === undefined || length === undefined || count === undefined || call.args.length > 4) {
    throw invalid(scope, "Method 'highlight()' expects three or four arguments to be provided");
  }
  const [path] = field.kind === "field" ? [field.path] : texts(scope, field).map(pathOf);
  return {
    field: fieldReference(scope, {
      kind: "field",
      offset: field.offset,
      path: path ?? [],
      isQuoted: false,
    }),
    fragmentLength: fragmentNumber("FragmentLength", length),
    fragmentCount: fragmentNumber("FragmentCount", count),
    options: options === undefined ? null : highlightOptions(scope, options),
  };
}

function fragmentNumber(name: string, argument: Argument): number {
  if (argument.kind === "literal" && argument.type === "long") return Number(argument.text);
  const got = argument.kind === "literal" ? literalTypeName(argument) : "Parameter";
  throw new EngineError(
    "invalid-operation",
    `${name} can only be passed as long, but was '${got}'.`,
  );
}

function highlightOptions(scope: QueryScope, argument: Argument): ParameterValue {
  const isText = argument.kind === "literal" && argument.type === "string";
  if (isText || argument.kind === "parameter") return resolveValue(scope, argument);
  const got = argument.kind === "literal" ? literalTypeName(argument) : "Field";
  throw new EngineError(
    "invalid-operation",
    "HighlightingOptions can only be passed as JSON string or as a parameter pointing to JSON object, " +
      `but was '${got}'.`,
  );
}

function includedCompareExchange(scope: QueryScope, call: Call): readonly PathPart[] {
  const [argument] = call.args;
  if (argument === undefined || call.args.length !== 1) {
    throw invalid(scope, "Method 'cmpxchg()' expects one argument to be provided");
  }
  if (argument.kind === "field") return fieldReference(scope, argument).path;
  return pathOf(texts(scope, argument)[0] ?? "");
}

function checkTimings(scope: QueryScope, call: Call): true {
  if (call.args.length === 0) return true;
  throw invalid(scope, "Method 'timings()' expects zero arguments to be provided");
}

function includedExplanations(
  scope: QueryScope,
  call: Call,
  isCollectionScan: boolean,
  count: number,
): NonNullable<AnalyzedInclude["explanations"]> {
  if (isCollectionScan) throw invalid(scope, "Collection queries cannot return explanations.");
  if (count > 1) throw invalid(scope, "Query cannot include duplicate explanations.");
  const [options] = call.args;
  const method = "Method 'explanations()' expects";
  if (call.args.length > 1) {
    throw invalid(scope, `${method} zero or one argument(s) to be provided`);
  }
  if (options === undefined) return { groupKey: null };
  if (options.kind !== "literal" && options.kind !== "parameter") {
    const got = describeArgument(options);
    throw invalid(scope, `${method} value token as an argument at index 0, got ${got} type`);
  }
  const given = resolveValue(scope, options);
  if (given.type === "null") return { groupKey: null };
  const fields = given.type === "object" ? [...given.fields] : null;
  if (fields === null) {
    throw invalid(scope, `${method} options as an object, but got ${plainText(given)}`);
  }
  const groupKey = fields.find(([name]) => name.toLowerCase() === "groupkey")?.[1];
  return { groupKey: groupKey?.type === "string" ? groupKey.value : null };
}
