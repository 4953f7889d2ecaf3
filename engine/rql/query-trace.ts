/**
 * What the execution of one query notes of itself for who asks how it ran. A query that nobody asks about has none, and
 * pays a comparison for each phase.
 */

/** How entries came into the order of the query. */
export type OrderWay = "none" | "walk" | "sort" | "best";

/** A part of the condition, and how many entries of the index match it by itself. */
export interface TracedCondition {
  /** Without values. */
  readonly text: string;
  /** Null: it depends on what the other conditions find. */
  readonly found: number | null;
}

/** Times are milliseconds, and include what other work took while the query paused. */
export class QueryTrace {
  /** Waiting for the index to be up to date. */
  waitMs = 0;
  /** Entries of the index; null: none is used. */
  entryCount: number | null = null;
  conditions: readonly TracedCondition[] = [];
  /** Entries that match; of a collection, its documents, or the ids that exist; -1: not counted. */
  found = 0;
  way: OrderWay = "none";
  /** Entries that were brought into order. */
  orderedCount = 0;
  /** Until the entries were found and ordered. */
  findMs = 0;
  /** Documents, or reduced objects, that were read. */
  readCount = 0;
  /** Of those, the ones that `filter` was tested on, and that passed. */
  testedCount = 0;
  passedCount = 0;
  /** Reading, testing, and making the rows. */
  readMs = 0;
  rowCount = 0;
  includedCount = 0;
  includeMs = 0;
}
