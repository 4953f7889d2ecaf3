/**
 * Runs an analyzed query: connects its stages, all of which work in slices of a few milliseconds (work-budget.ts).
 *
 *   find (execute-find.ts), order (execute-order.ts)
 *     |  candidates: a cursor in the order of the query, their number, the index entry of the current one
 *   page (execute-page.ts): one candidate after the other passes
 *     |  filter (execute-filter.ts), project (execute-project.ts), include (execute-include.ts)
 *   RowSink: the rows on the page
 *
 * QueryRun (query-run.ts) is what all stages read. Steps wait (steps.ts); Work only pauses, and becomes Steps by
 * WorkBudget.steps.
 */
import { runSteps, type Steps } from "../../base/scheduling/steps.ts";
import type { AnalyzedQuery } from "../analysis/analyzed-query.ts";
import { executeSummary } from "../summaries/execute-summary.ts";
import { spatialSummary } from "../summaries/spatial-summary.ts";
import { isFilterByScript, rowFilter } from "./execute-filter.ts";
import { findCandidates, readyIndex } from "./execute-find.ts";
import { rowIncludes } from "./execute-include.ts";
import { Page } from "./execute-page.ts";
import { isProjectionByScript, RowProjector } from "./execute-project.ts";
import { newOutcome } from "./query-outcome.ts";
import { type QueryHost, type QueryRequest, QueryRun } from "./query-run.ts";
import type { QueryTrace } from "./query-trace.ts";
import type { QueryOutcome, RowSink } from "./results.ts";
import { RowScripts } from "./row-scripts.ts";

/** Runs a query; rows go to `sink`. @throws index-missing, query-invalid, not-supported, script-failed */
export function* executeQuery(
  query: AnalyzedQuery,
  host: QueryHost,
  request: QueryRequest,
  sink: RowSink,
): Steps<QueryOutcome> {
  const run = new QueryRun(query, host, request);
  const { projection } = query;
  try {
    return projection.kind === "facets" || projection.kind === "suggestions"
      ? yield* executeSummary(run, projection, sink)
      : yield* executeRows(run, sink);
  } finally {
    run.close();
  }
}

function* executeRows(run: QueryRun, sink: RowSink): Steps<QueryOutcome> {
  const { query, source, request } = run;
  const { trace } = request;
  const startMs = source.monotonicMs();
  const index = query.access.kind === "collection" ? null : yield* readyIndex(run);
  const isStale = index?.isStale ?? false;
  const readyMs = source.monotonicMs();
  const candidates = yield* findCandidates(run, index);
  const foundMs = source.monotonicMs();
  const isByScript = isFilterByScript(query);
  const hasScripts = isByScript || isProjectionByScript(query);
  const scripts = hasScripts || query.load.length > 0 ? new RowScripts(run, hasScripts) : null;
  const projector = new RowProjector(run, index, candidates.entry, scripts);
  const includes = rowIncludes(run, candidates.entry, hasScripts);
  const filter = query.filter === null ? null : rowFilter(run, isByScript);
  const page = new Page(run, index, candidates, { filter, scripts, projector, includes, sink });
  try {
    yield* page.fill();
  } finally {
    projector.close();
  }
  const readMs = source.monotonicMs();
  const included = includes === null ? [] : yield* includes.finish(scripts?.included ?? null);
  const endMs = source.monotonicMs();
  if (trace !== undefined) {
    trace.waitMs = readyMs - startMs;
    // An index has recorded its own time.
    if (index === null) trace.findMs = foundMs - startMs;
    trace.found = candidates.total;
    trace.includedCount = included.length;
    trace.includeMs = endMs - readMs;
    tracePage(trace, page, readMs - foundMs);
  }
  const durationMs = endMs - startMs;
  const resultEtag = run.resultEtag(index);
  const outcome = newOutcome(query, source, index, isStale, resultEtag, page.total, durationMs);
  outcome.scannedResults = page.scannedCount;
  outcome.skippedResults = page.skippedCount;
  outcome.includes = included;
  includes?.addTo(outcome, page.returnedCount > 0);
  if (request.seriesForm === "named") outcome.seriesFields = seriesFields(query);
  if (query.access.kind === "automatic-index") outcome.spatial = spatialSummary(query);
  if (query.include.hasTimings) {
    outcome.timings = {
      totalMs: durationMs,
      stalenessMs: index === null ? null : readyMs - startMs,
      queryMs: foundMs - readyMs,
      retrieverMs: endMs - foundMs,
    };
  }
  return outcome;
}

function tracePage(trace: QueryTrace, page: Page, readMs: number): void {
  trace.readMs = readMs;
  trace.readCount = page.readCount;
  trace.testedCount = page.scannedCount;
  trace.passedCount = page.matchCount;
  trace.rowCount = page.returnedCount;
}

/** Returns the columns that are series queries; null: none is, or a script makes the rows. */
function seriesFields({ projection }: AnalyzedQuery): readonly string[] | null {
  if (projection.kind !== "fields") return null;
  if (projection.isSeries === true) return [];
  const keys = projection.fields.flatMap(({ key, value }) =>
    value.kind === "series" ? [key] : [],
  );
  return keys.length === 0 ? null : keys;
}

/** For callers that need only ids: deletes and patches by query. In the order of the query, each document once. */
export async function findDocuments(
  query: AnalyzedQuery,
  host: QueryHost,
  request: QueryRequest,
): Promise<string[]> {
  const ids: string[] = [];
  const plain: AnalyzedQuery = {
    ...query,
    projection: { kind: "fields", fields: [{ key: "id", value: { kind: "id" } }] },
    isDistinct: false,
  };
  const steps = executeQuery(plain, host, request, {
    add(row) {
      ids.push((JSON.parse(row.toString()) as { id: string }).id);
      return null;
    },
  });
  await runSteps(steps);
  return ids;
}
