/**
 * Builds the outcome of a query, for all paths of execution: rows, summaries (execute-summary.ts) and the fast path.
 *
 * Hot: bench/query.bench.ts. All outcomes have one class of V8 objects: no path adds a member or spreads an outcome.
 */
import type { AnalyzedPaging, AnalyzedQuery } from "../analysis/analyzed-query.ts";
import type { IncludedDocument, QueryOutcome } from "./results.ts";
import type { QueryIndex, RowSource } from "./row-source.ts";

/** An outcome whose members the path of execution may still replace. */
export type OutcomeDraft = { -readonly [Member in keyof QueryOutcome]: QueryOutcome[Member] };

const noIncludes: readonly IncludedDocument[] = [];

/**
 * Returns the outcome of a query without `filter` and `include`.
 * @param index null: the collection was read
 * @param isStale the state of the index before it was read
 */
export function newOutcome(
  query: AnalyzedQuery,
  source: RowSource,
  index: QueryIndex | null,
  isStale: boolean,
  resultEtag: number,
  totalResults: number,
  durationMs: number,
): OutcomeDraft {
  return {
    isSummary: false,
    totalResults,
    cappedMaxResults: cappedResults(query.paging, totalResults, index !== null),
    scannedResults: 0,
    skippedResults: 0,
    // Rounded up: no query reports 0 ms.
    durationMs: Math.ceil(durationMs),
    includedPaths: null,
    indexName: index?.name ?? `collection/${query.source.name}`,
    includes: noIncludes,
    counterIncludes: null,
    compareExchangeKeys: null,
    seriesFields: null,
    revisionIncludes: null,
    seriesIncludes: null,
    highlightings: null,
    explanations: null,
    indexTimestamp: index?.indexedAtMicros ?? 0,
    lastQueryTime: index === null ? 0 : source.nowMicros(),
    isStale,
    resultEtag,
    spatial: null,
    timings: null,
  };
}

/** Returns the total as the paging of the text caps it; null: the text does not page. */
function cappedResults(
  { inText }: AnalyzedPaging,
  total: number,
  isOfIndex: boolean,
): number | null {
  if (inText === null) return null;
  const take = inText.take ?? Number.MAX_SAFE_INTEGER;
  if (total < 0) return Math.min(take, Number.MAX_SAFE_INTEGER);
  const rest = Math.min(take, total - inText.skip);
  return isOfIndex ? Math.max(0, rest) : rest;
}
