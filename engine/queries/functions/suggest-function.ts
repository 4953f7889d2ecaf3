/**
 * `suggest(field, terms, options)`: terms of a field whose spelling is close to the given terms. It is the whole of
 * `select`. Rules and errors equal those of RavenDB 7.2.7.
 */
import { EngineError } from "../../base/errors.ts";
import { suggestedTermsMax } from "../../base/limits.ts";
import { invalid, type QueryScope } from "../analysis/query-scope.ts";
import type { SuggestionItem, SuggestionOptions } from "../summaries/facet-query.ts";
import type { Call, SelectItem, Value } from "../syntax/ast.ts";
import { describeArgument, fieldText } from "../syntax/print.ts";
import { givenParameter, type OptionObject, optionsArgument } from "./option-objects.ts";
import { onlyInSelect } from "./places.ts";
import type { RqlFunction } from "./rql-function.ts";
import { refuseOthers } from "./whole-select.ts";

const entity = "Raven.Client.Documents.Queries.Suggestions.SuggestionOptions";
/** In the order of the numbers that the options may have instead of words. */
const distances = ["None", "Default", "Levenshtein", "JaroWinkler", "NGram"] as const;
const sortModes = ["None", "Popularity"] as const;

const defaultOptions: SuggestionOptions = {
  pageSize: 15,
  distance: "levenshtein",
  accuracy: 0.5,
  isSortedByTerm: false,
};

export const suggest: RqlFunction = {
  ...onlyInSelect,
  select: {
    column: null,
    groupColumn: null,
    whole: {
      analyze: (scope, items, clause) => {
        refuseOthers(scope, items, clause, "suggest", "suggestion");
        if (clause.hasGroups) throw invalid(scope, "Cannot use GROUP BY in a suggestion query");
        const suggestions = items.map((item) => suggestionOf(scope, item));
        const keys = suggestions.map(({ name }) => name);
        return { keys, projection: { kind: "suggestions", suggestions } };
      },
    },
  },
};

function suggestionOf(scope: QueryScope, { expression, alias }: SelectItem): SuggestionItem {
  const { args } = expression as Call; // the clause has only calls
  const [named, sought, options] = args;
  if (named === undefined || sought === undefined || args.length > 3) {
    const complaint = "Method suggest() must contain two or three arguments but";
    throw invalid(scope, `${complaint} '${args.length}' were specified`);
  }
  const field =
    named.kind === "field"
      ? fieldText(named)
      : named.kind === "literal"
        ? named.text
        : named.kind === "parameter"
          ? named.name
          : null;
  if (field === null) {
    throw invalid(scope, `suggest() expects a field but got ${describeArgument(named)}`);
  }
  for (const [i, argument] of args.entries()) {
    if (i === 0 || argument.kind === "literal" || argument.kind === "parameter") continue;
    const name = argument.kind === "field" ? "FieldExpression" : "MethodExpression";
    throw invalid(
      scope,
      `Argument at index '${i + 1}' in suggest() must be a value but was 'Raven.Server.Documents.Queries.AST.${name}'`,
    );
  }
  return {
    name: alias ?? field,
    field,
    terms: termsOf(scope, sought as Value),
    options:
      options === undefined
        ? defaultOptions
        : optionsOf(optionsArgument(scope, options as Value, entity)),
  };
}

/**
 * Returns the texts to find terms for. RavenDB 7.2.7 ignores values that are not strings. @throws out-of-range if no
 * text remains
 */
function termsOf(scope: QueryScope, sought: Value): readonly string[] {
  const terms: string[] = [];
  if (sought.kind === "literal") {
    if (sought.type === "string") terms.push(sought.text);
  } else {
    const given = givenParameter(scope, sought.name, "terms");
    const items = given.type === "array" ? given.items : [given];
    for (const item of items) if (item.type === "string") terms.push(item.value);
  }
  if (terms.length > suggestedTermsMax) {
    throw new EngineError(
      "work-limit",
      `suggest() has ${terms.length} terms, more than the limit of ${suggestedTermsMax}.`,
    );
  }
  if (terms.length > 0) return terms;
  throw new EngineError(
    "out-of-range",
    "Index was out of range. Must be non-negative and less than the size of the collection. (Parameter 'index')",
  );
}

function optionsOf(options: OptionObject): SuggestionOptions {
  const pageSize = options.int("PageSize", defaultOptions.pageSize);
  if (pageSize < 0) {
    throw new EngineError(
      "out-of-range",
      `minimumLength ('${pageSize}') must be a non-negative value. (Parameter 'minimumLength')`,
    );
  }
  const isGiven = options.value("Distance")?.type !== "null";
  const distance = isGiven ? options.word("Distance", distances, "Default") : "Default";
  return {
    pageSize,
    distance:
      distance === "JaroWinkler" ? "jaro-winkler" : distance === "NGram" ? "n-gram" : "levenshtein",
    accuracy: options.double("Accuracy", defaultOptions.accuracy),
    isSortedByTerm: options.word("SortMode", sortModes, "Popularity") === "None",
  };
}
