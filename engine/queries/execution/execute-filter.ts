/**
 * Filter stage. In: a candidate. Out: whether it passes the clause `filter`, by a compiled test of its stored bytes, or
 * by a script if the clause calls a function that compile-filter.ts does not know.
 */
import { assert } from "../../base/assert.ts";
import type { AnalyzedQuery } from "../analysis/analyzed-query.ts";
import {
  compileFilter,
  conditionCount,
  isSimpleFilter,
  type RowTest,
} from "../conditions/compile-filter.ts";
import type { QueryRun } from "./query-run.ts";

export interface RowFilter {
  /** Null: a script tests the row. */
  readonly test: RowTest | null;
  /** Cost of testing a row. */
  readonly units: number;
}

/** Returns whether a script evaluates the filter of a query. */
export function isFilterByScript({ filter, load }: AnalyzedQuery): boolean {
  return filter !== null && !isSimpleFilter(filter, new Set(load.map(({ alias }) => alias)));
}

export function rowFilter({ query, host, budget }: QueryRun, isByScript: boolean): RowFilter {
  const { filter, source, parameters } = query;
  assert(filter !== null, "there is a filter");
  if (isByScript) return { test: null, units: 1 };
  const test = compileFilter(filter, {
    source: host.source,
    alias: source.alias,
    parameters,
    textTest: (pattern) => host.scripts.textTest(pattern, budget),
  });
  return { test, units: conditionCount(filter) };
}
