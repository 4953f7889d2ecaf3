/** Methods of `include`: `counters`, `highlight`, `revisions`, `timings`, `explanations`. */
import { EngineError } from "../../base/errors.ts";
import { parseTimestamp } from "../../base/timestamp.ts";
import type { AnalyzedInclude, HighlightOptions } from "../analysis/analyzed-query.ts";
import { fieldReference, invalid, type QueryScope } from "../analysis/query-scope.ts";
import type { Argument, Call } from "../syntax/ast.ts";
import { describeArgument, literalTypeName, pathText } from "../syntax/print.ts";
import { isCallOf, pathOf, texts } from "./arguments.ts";
import { optionsArgument } from "./option-objects.ts";
import { onlyInInclude } from "./places.ts";
import type { Included, IncludeUse, RqlFunction } from "./rql-function.ts";

const highlightEntity = "Raven.Client.Documents.Queries.Highlighting.HighlightingOptions";
const explanationEntity = "Raven.Client.Documents.Queries.Explanation.ExplanationOptions";
const noOptions: HighlightOptions = { groupKey: null, preTags: [], postTags: [] };
const int32Max = 2 ** 31 - 1;

/** Returns the common record of most methods of `include`. Subscriptions support few. */
function included(
  shownName: string,
  add: IncludeUse["add"],
  isForSubscriptions = false,
): RqlFunction {
  return { ...onlyInInclude, shownName, include: { isForSubscriptions, add } };
}

export const counters = included(
  "Counters",
  (scope, call, into) => {
    into.counters.push(includedCounters(scope, call));
  },
  true,
);

export const highlight = included("Highlight", (scope, call, { highlights }) => {
  highlights.push(includedHighlight(scope, call));
});

export const revisions = included("Revisions", (scope, { args }, into) => {
  into.revisions.push(...args.flatMap((argument) => revisionsOf(scope, argument)));
});

export const timings = included("Timings", (scope, { args }, into) => {
  if (args.length > 0) {
    throw invalid(scope, "Method 'timings()' expects zero arguments to be provided");
  }
  into.hasTimings = true;
});

export const explanations = included("Explanation", (scope, call, into) => {
  into.explanations = includedExplanations(scope, call, into);
});

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
    options: options === undefined ? noOptions : highlightOptions(scope, options),
  };
}

function fragmentNumber(name: string, argument: Argument): number {
  if (argument.kind !== "literal" || argument.type !== "long") {
    const got = argument.kind === "literal" ? literalTypeName(argument) : "Parameter";
    throw new EngineError(
      "invalid-operation",
      `${name} can only be passed as long, but was '${got}'.`,
    );
  }
  const number = Number(argument.text);
  if (Math.abs(number) <= int32Max) return number;
  throw new EngineError(
    "invalid-operation",
    `${name} needs to be a number, but was '${argument.text}'.`,
  );
}

/** @throws invalid-operation, argument-null, json-… */
function highlightOptions(scope: QueryScope, argument: Argument): HighlightOptions {
  const isText = argument.kind === "literal" && argument.type === "string";
  if (!isText && argument.kind !== "parameter") {
    const got = argument.kind === "literal" ? literalTypeName(argument) : "Field";
    throw new EngineError(
      "invalid-operation",
      "HighlightingOptions can only be passed as JSON string or as a parameter pointing to JSON object, " +
        `but was '${got}'.`,
    );
  }
  const options = optionsArgument(scope, argument, highlightEntity);
  const preTags = options.texts("PreTags");
  const postTags = options.texts("PostTags");
  if (preTags.length !== postTags.length) {
    throw new EngineError("invalid-operation", "Number of pre-tags and post-tags must match.");
  }
  return { groupKey: options.text("GroupKey"), preTags, postTags };
}

/** Returns the path to a change vector, or a point in time. */
function revisionsOf(scope: QueryScope, argument: Argument): (string | number)[] {
  if (argument.kind === "field") return [pathText(fieldReference(scope, argument).path)];
  return texts(scope, argument).map((text) => {
    const micros = parseTimestamp(text);
    return Number.isNaN(micros) ? text : micros;
  });
}

function includedExplanations(
  scope: QueryScope,
  call: Call,
  { isCollectionScan, calls }: Included,
): NonNullable<AnalyzedInclude["explanations"]> {
  if (isCollectionScan) throw invalid(scope, "Collection queries cannot return explanations.");
  if (calls.filter((one) => isCallOf(one, "explanations")).length > 1)
    throw invalid(scope, "Query cannot include duplicate explanations.");
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
  return { groupKey: optionsArgument(scope, options, explanationEntity).text("GroupKey") };
}
