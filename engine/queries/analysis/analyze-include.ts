/** `include` -> the documents, counters, series and explanations that are returned along with the results. */
import type { EngineError } from "../../base/errors.ts";
import { parseIncludePath } from "../../state/documents/include-path.ts";
import { pathOf, texts } from "../functions/arguments.ts";
import { requireMethod } from "../functions/function-table.ts";
import type { Included } from "../functions/rql-function.ts";
import type { Call, Operand, PathPart } from "../syntax/ast.ts";
import { pathText } from "../syntax/print.ts";
import type { AnalyzedInclude } from "./analyzed-query.ts";
import { fieldReference, invalid, type QueryScope } from "./query-scope.ts";

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
  const included: Included = {
    paths: [],
    counters: [],
    highlights: [],
    compareExchange: [],
    revisions: [],
    series: [],
    hasTimings: false,
    explanations: null,
    isCollectionScan,
    calls: items.filter((item) => item.kind === "call"),
  };
  for (const item of items) {
    if (item.kind === "call") {
      const { include } = requireMethod(item.name);
      if (include === null) throw refused(scope, item);
      include.add(scope, item, included);
      continue;
    }
    for (const path of includedPaths(scope, item)) {
      const text = pathText(path);
      included.paths.push({ text, path, wanted: parseIncludePath(text) });
    }
  }
  const { isCollectionScan: _isCollectionScan, calls: _calls, ...include } = included;
  return include;
}

function refused(scope: QueryScope, { name }: Call): EngineError {
  const complaint = "Unable to figure out how to deal with include method";
  return invalid(scope, `${complaint} '${requireMethod(name).shownName}'`);
}

/** Returns the paths that one item names. Of a parameter, its name is the path, as in RavenDB 7.2.7, not its value. */
function includedPaths(scope: QueryScope, item: Exclude<Operand, Call>): (readonly PathPart[])[] {
  if (item.kind === "field") return [fieldReference(scope, item).path];
  const named = item.kind === "parameter" ? [item.name] : texts(scope, item);
  return named.map((text) => {
    const path = pathOf(text);
    const field = { kind: "field", offset: item.offset, path, isQuoted: true } as const;
    return fieldReference(scope, field).path;
  });
}
