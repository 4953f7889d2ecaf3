/**
 * Queries that are answered by a summary of their index: facets (execute-facets.ts) and suggestions
 * (execute-suggestions.ts).
 */
import { EngineError } from "../base/errors.ts";
import type { Work, WorkBudget } from "../base/work-budget.ts";
import type { AnalyzedQuery, Projection } from "./analyzed-query.ts";
import { findEntries } from "./compile-where.ts";
import { type FacetContext, facetRows } from "./execute-facets.ts";
import { suggestionRows } from "./execute-suggestions.ts";
import type { Facet, SuggestionItem } from "./facet-query.ts";
import { facetsOfSetup } from "./facet-setup.ts";
import type { WhereContext } from "./functions/rql-function.ts";
import { refuseUnfit } from "./known-fields.ts";
import { type DocumentReader, documentText } from "./named-documents.ts";
import { readQueryParameters } from "./query-parameters.ts";
import type { QueryScope } from "./query-scope.ts";
import type { QueryOutcome } from "./results.ts";
import type { QueryIndex } from "./row-source.ts";

export type SummaryProjection = Extract<
  Projection,
  { readonly kind: "facets" } | { readonly kind: "suggestions" }
>;

/** A summary, with the documents that describe it read. */
type Summary =
  | { readonly kind: "facets"; readonly facets: readonly Facet[] }
  | { readonly kind: "suggestions"; readonly suggestions: readonly SuggestionItem[] };

/** Where facet setups are read from. */
interface SetupSource extends DocumentReader {
  readonly budget: WorkBudget;
}

/** The outcome of a summary but for its rows and index. */
export const emptyOutcome: Omit<
  QueryOutcome,
  | "totalResults"
  | "durationMs"
  | "indexName"
  | "indexTimestamp"
  | "lastQueryTime"
  | "isStale"
  | "resultEtag"
> = {
  isSummary: true,
  cappedMaxResults: null,
  scannedResults: 0,
  skippedResults: 0,
  includedPaths: null,
  includes: [],
  counterIncludes: null,
  compareExchangeKeys: null,
  seriesFields: null,
  spatial: null,
  revisionIncludes: null,
  seriesIncludes: null,
  highlightings: null,
  explanations: null,
  timings: null,
};

/** Reads the facet setups of a query. @throws null-reference when one is missing */
export async function summaryOf(
  summary: SummaryProjection,
  query: AnalyzedQuery,
  setups: SetupSource,
): Promise<Summary> {
  if (summary.kind === "suggestions") return summary;
  const scope = scopeOf(query);
  const facets: Facet[] = [];
  for (const item of summary.facets) {
    if (item.kind === "setup") {
      const text = await setupText(item.id, setups);
      const { values } = await setups.budget.run(readQueryParameters(text, setups.budget));
      facets.push(...facetsOfSetup(scope, { type: "object", fields: values }, item.id));
    } else if (item.kind === "setup-value") {
      facets.push(...facetsOfSetup(scope, item.value, ""));
    } else facets.push(item);
  }
  return { kind: "facets", facets };
}

/**
 * Returns the rows, each a JSON text. `include` receives the ids that are the values of included facets.
 * @throws query-invalid, invalid-operation, invalid-argument, work-limit
 */
export function* summaryRows(
  summary: Summary,
  query: AnalyzedQuery,
  index: QueryIndex,
  context: WhereContext,
  include: (id: string) => void,
): Work<Buffer[]> {
  if (summary.kind === "suggestions") {
    refuseUnfit({ ...query, where: null, orderBy: [] }, index);
    return yield* suggestionRows(summary.suggestions, index, context.reader);
  }
  refuseUnfit({ ...query, orderBy: [] }, index);
  const { where } = query;
  const matches = where === null ? context.reader.all() : yield* findEntries(where, context);
  const facetContext: FacetContext = {
    ...context,
    indexName: index.name,
    hasWhere: where !== null,
    isKnownField: (name) => index.isKnownField(name),
    includedFacets: new Set(query.include.paths.map(({ text }) => text)),
    include,
  };
  return yield* facetRows(summary.facets, matches, facetContext);
}

async function setupText(id: string, reader: DocumentReader): Promise<string> {
  const text = await documentText(id, reader);
  if (text !== null) return text;
  throw new EngineError("null-reference", `There is no facet setup document '${id}'.`);
}

/** Returns the scope of conditions that are not in the text of the query. */
function scopeOf({ text, parameters, source }: AnalyzedQuery): QueryScope {
  return {
    text,
    parameters,
    aliases: source.alias === null ? [] : [source.alias],
    functions: new Set(),
    series: new Set(),
    isDynamic: false,
    computed: new Map(),
    nowMicros: 0,
    moments: [],
  };
}
