/**
 * Trace of the execution of one query, recorded on request. A query without a trace pays a comparison for each phase.
 */

/** How entries were brought into the order of the query. */
export type OrderWay = "none" | "walk" | "sort" | "best";

/** An operand of the condition, and the number of entries of the index that match it. */
export interface TracedCondition {
  /** Without values. */
  readonly text: string;
  /** Null if it depends on the entries that the other conditions find. */
  readonly found: number | null;
}

/** Times are milliseconds, and include the time of other work while the query paused. */
export class QueryTrace {
  /** Waiting for the index to be up to date. */
  waitMs = 0;
  /** Entries of the index; null: none is used. */
  entryCount: number | null = null;
  conditions: readonly TracedCondition[] = [];
  /** Entries that match; of a collection, its documents, or the ids that exist; -1: not counted. */
  found = 0;
  way: OrderWay = "none";
  /** Number of entries that were ordered. */
  orderedCount = 0;
  /** Until the entries were found and ordered. */
  findMs = 0;
  /** Documents, or reduced objects, that were read. */
  readCount = 0;
  /** Number of candidates that `filter` was tested on, and number that passed. */
  testedCount = 0;
  passedCount = 0;
  /** Reading, testing, and making the rows. */
  readMs = 0;
  rowCount = 0;
  includedCount = 0;
  includeMs = 0;
}
