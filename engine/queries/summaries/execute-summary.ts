/**
 * Queries that are answered by a summary of their index: facets (execute-facets.ts) and suggestions
 * (execute-suggestions.ts).
 */
import { EngineError } from "../../base/errors.ts";
import type { Steps } from "../../base/scheduling/steps.ts";
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import type { AnalyzedQuery, Projection } from "../analysis/analyzed-query.ts";
import { refuseUnfit } from "../analysis/known-fields.ts";
import { documentText } from "../analysis/named-documents.ts";
import { readQueryParameters } from "../analysis/query-parameters.ts";
import type { QueryScope } from "../analysis/query-scope.ts";
import { findEntries } from "../conditions/compile-where.ts";
import { onIndex, readyIndex } from "../execution/execute-find.ts";
import { IncludeCollector } from "../execution/execute-include.ts";
import { newOutcome } from "../execution/query-outcome.ts";
import type { QueryRun } from "../execution/query-run.ts";
import type { QueryOutcome, RowSink } from "../execution/results.ts";
import type { QueryIndex, RowSource } from "../execution/row-source.ts";
import type { WhereContext } from "../functions/rql-function.ts";
import { type FacetContext, facetRows } from "./execute-facets.ts";
import { suggestionRows } from "./execute-suggestions.ts";
import type { Facet, SuggestionItem } from "./facet-query.ts";
import { facetsOfSetup } from "./facet-setup.ts";

type SummaryProjection = Extract<
  Projection,
  { readonly kind: "facets" } | { readonly kind: "suggestions" }
>;

/** A summary, with the documents that describe it read. */
type Summary =
  | { readonly kind: "facets"; readonly facets: readonly Facet[] }
  | { readonly kind: "suggestions"; readonly suggestions: readonly SuggestionItem[] };

/** Sends a summary instead of rows: order and paging have no effect. @throws summary-index-missing, as `summaryRows` */
export function* executeSummary(
  run: QueryRun,
  projection: SummaryProjection,
  sink: RowSink,
): Steps<QueryOutcome> {
  const { query, source, budget } = run;
  const startMs = source.monotonicMs();
  const index = yield* summarizedIndex(run);
  const { isStale } = index;
  const summary = yield* summaryOf(projection, query, source, budget);
  const includes = new IncludeCollector(query, source, budget);
  const rows = yield* onIndex(budget, index, null, (reader) =>
    summaryRows(summary, query, index, run.whereContext(reader), (id) => includes.addId(id)),
  );
  for (const row of rows) {
    const waiting = sink.add(row);
    if (waiting !== null) yield waiting;
  }
  const included = yield* includes.finish();
  const durationMs = source.monotonicMs() - startMs;
  const etag = run.resultEtag(index);
  const outcome = newOutcome(query, source, index, isStale, etag, rows.length, durationMs);
  outcome.isSummary = true;
  outcome.cappedMaxResults = null;
  outcome.includes = included;
  return outcome;
}

function* summarizedIndex(run: QueryRun): Steps<QueryIndex> {
  try {
    return yield* readyIndex(run);
  } catch (error) {
    if (!(error instanceof EngineError) || error.code !== "index-missing") throw error;
    throw new EngineError("summary-index-missing", error.message, { cause: error });
  }
}

/** Reads the facet setups of a query. @throws null-reference when one is missing */
function* summaryOf(
  summary: SummaryProjection,
  query: AnalyzedQuery,
  source: RowSource,
  budget: WorkBudget,
): Steps<Summary> {
  if (summary.kind === "suggestions") return summary;
  const scope = scopeOf(query);
  const facets: Facet[] = [];
  for (const item of summary.facets) {
    if (item.kind === "setup") {
      const text = yield* setupText(item.id, source);
      const { values } = yield* budget.steps(readQueryParameters(text, budget));
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
function* summaryRows(
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

function* setupText(id: string, source: RowSource): Steps<string> {
  const text = yield* documentText(id, source);
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
