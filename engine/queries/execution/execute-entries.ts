/** `debug=entries`: the index entries that a query finds, by the find stage alone. */
import { EngineError } from "../../base/errors.ts";
import { runSteps, type Steps } from "../../base/scheduling/steps.ts";
import type { Work } from "../../base/scheduling/work-budget.ts";
import type { IndexReader } from "../../indexing/index-reader.ts";
import type { AnalyzedQuery } from "../analysis/analyzed-query.ts";
import { awaitIndex, onIndex, readyIndex } from "./execute-find.ts";
import { orderedMatches } from "./execute-order.ts";
import { type QueryHost, type QueryRequest, QueryRun } from "./query-run.ts";
import type { QueryIndex } from "./row-source.ts";

/** The index entries that a query finds, on the page it requests. */
export interface EntriesOutcome {
  readonly totalResults: number;
  readonly indexName: string;
  readonly isStale: boolean;
  /** JSON texts: fields and their terms. */
  readonly entries: readonly string[];
}

/** Cost of an entry; every unit of its text costs one more. */
const entryUnits = 16;

/** Returns the entries on the page of a query. @throws index-missing, as `executeQuery` */
export async function executeEntries(
  query: AnalyzedQuery,
  host: QueryHost,
  request: QueryRequest,
): Promise<EntriesOutcome> {
  const run = new QueryRun(query, host, request);
  try {
    return await runSteps(findEntryTexts(run));
  } finally {
    run.close();
  }
}

function* findEntryTexts(run: QueryRun): Steps<EntriesOutcome> {
  if (run.query.access.kind === "collection") {
    throw new EngineError("index-missing", "A query of a collection has no index entries.");
  }
  const found = yield* readyIndex(run);
  // All that RavenDB's entries have is shown.
  const whole = run.host.indexes.withWholeFields(found.name, () => null) ?? found;
  const index = whole.isStale ? yield* awaitIndex(run, whole) : whole;
  return yield* onIndex(run.budget, index, null, (reader) => entryTexts(run, reader, index));
}

function* entryTexts(run: QueryRun, reader: IndexReader, index: QueryIndex): Work<EntriesOutcome> {
  const { budget } = run;
  const { skip, take } = run.query.paging;
  const { entries, total } = yield* orderedMatches(run, reader, index);
  const texts: string[] = [];
  for (const entry of entries.subarray(skip, Math.min(entries.length, skip + take))) {
    const text = reader.entryText(entry, index.stored?.textOf(entry) ?? null);
    texts.push(text);
    budget.hold(text.length);
    budget.tick(entryUnits + text.length);
    if (budget.isDue) yield;
  }
  return {
    totalResults: total,
    indexName: index.name,
    isStale: index.isStale,
    entries: texts,
  };
}
