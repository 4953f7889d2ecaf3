/**
 * One execution of a query, as all its stages see it (execute.ts). State of a single stage belongs to that stage.
 *
 * Invariant: `close` returns the memory that the stages hold by `budget`.
 */
import { type Abortable, WorkBudget } from "../../base/scheduling/work-budget.ts";
import type { IndexReader } from "../../indexing/index-reader.ts";
import type { AnalyzedQuery } from "../analysis/analyzed-query.ts";
import type { WhereContext } from "../functions/rql-function.ts";
import type { QueryTrace } from "./query-trace.ts";
import type { ProjectionBehavior, SeriesForm } from "./results.ts";
import type { IndexProvider, QueryIndex, RowSource, ScriptProvider } from "./row-source.ts";

/** The database as a query sees it. */
export interface QueryHost {
  readonly source: RowSource;
  readonly indexes: IndexProvider;
  readonly scripts: ScriptProvider;
  /** The etag of the reply; omitted: the etag of the index, or of the collection. */
  readonly resultEtag?: () => number;
}

/** The options of a query besides its text. */
export interface QueryRequest {
  readonly waitForNonStale: boolean;
  readonly waitTimeoutMs: number;
  /** Rows are `@metadata` only. */
  readonly isMetadataOnly: boolean;
  readonly projectionBehavior?: ProjectionBehavior | undefined;
  /** Omitted: "object". */
  readonly seriesForm?: SeriesForm | undefined;
  /** The rows are streamed: a total may be the size of the page. */
  readonly isStream?: boolean | undefined;
  /** Skip the removal of duplicates that fan-out entries produce. */
  readonly keepsDuplicates: boolean;
  /** Whether rows found through this index carry their scores; omitted: none do. */
  readonly reportsScores?: (index: QueryIndex) => boolean;
  /** Aborted when the caller no longer wants the rows. */
  readonly signal?: Abortable | undefined;
  /** Filled in while the query runs; omitted if the query is not traced. */
  readonly trace?: QueryTrace | undefined;
}

const noStopWords: ReadonlyMap<string, ReadonlySet<string>> = new Map();
const noWords: ReadonlySet<string> = new Set();

export class QueryRun {
  readonly query: AnalyzedQuery;
  readonly host: QueryHost;
  readonly source: RowSource;
  readonly request: QueryRequest;
  readonly budget: WorkBudget;
  /** Null: all documents. */
  readonly collection: string | null;
  /** The words of the stop words documents that the condition names, by id: set when the index is ready. */
  stopWords = noStopWords;

  constructor(query: AnalyzedQuery, host: QueryHost, request: QueryRequest) {
    this.query = query;
    this.host = host;
    this.source = host.source;
    this.request = request;
    this.budget = new WorkBudget(request.signal);
    this.collection = query.source.isAllDocuments ? null : query.source.name;
  }

  close(): void {
    this.budget.close();
  }

  /** Returns the context of the query's condition. */
  whereContext(reader: IndexReader): WhereContext {
    const { source, host } = this;
    return {
      reader,
      findDocument: (id) => source.findDocument(id),
      compareExchangeOf: (key) => source.compareExchangeOf(key),
      textTest: (pattern) => host.scripts.textTest(pattern, this.budget),
      stopWordsOf: (id) => this.stopWords.get(id) ?? noWords,
    };
  }

  /** Returns the etag of the reply. `index`: null if the collection is read. */
  resultEtag(index: QueryIndex | null): number {
    const { resultEtag } = this.host;
    if (resultEtag !== undefined) return resultEtag();
    return index?.lastEtag ?? this.source.resultEtagOf(this.collection);
  }
}
