/** `limit`, `offset` and `filter_limit`, together with the paging of the request -> one page. */
import { EngineError } from "../../base/errors.ts";
import type { Paging, Value } from "../syntax/ast.ts";
import type { AnalyzedPaging } from "./analyzed-query.ts";
import { typeName } from "./query-parameters.ts";
import { invalid, type QueryScope, resolveValue } from "./query-scope.ts";

/** `Start` and `PageSize` of a request; undefined if omitted. */
export interface RequestPaging {
  readonly start?: number | undefined;
  readonly pageSize?: number | undefined;
  /** The starts of text and request are added, as RavenDB 7.2.7 does for streams. */
  readonly isStream?: boolean | undefined;
}

/**
 * Combines both: the larger start and the smaller size apply.
 *
 * @throws query-invalid for a negative number, invalid-operation for a value that is not an integer
 */
export function analyzePaging(
  scope: QueryScope,
  paging: Paging,
  request: RequestPaging,
): AnalyzedPaging {
  const skip = longOf(scope, paging.skip);
  const take = longOf(scope, paging.take);
  const filterTake = longOf(scope, paging.filterTake);
  const { start = 0, pageSize = Number.MAX_SAFE_INTEGER, isStream = false } = request;
  refuseNegative(scope, "Limit (PageSize)", take);
  refuseNegative(scope, "Offset (Start)", skip);
  refuseNegative(scope, "Start", start);
  refuseNegative(scope, "PageSize", pageSize);
  if (filterTake !== null && filterTake <= 0) {
    throw invalid(scope, `FilterLimit cannot be negative or zero, but was ${filterTake}.`);
  }
  return {
    skip: isStream
      ? Math.min((skip ?? 0) + start, Number.MAX_SAFE_INTEGER)
      : Math.max(skip ?? 0, start),
    take: Math.min(take ?? Number.MAX_SAFE_INTEGER, pageSize),
    filterTake,
    // `limit null` sets no limit, but still counts as paging.
    inText: paging.skip === null && paging.take === null ? null : { skip: skip ?? 0, take },
  };
}

function refuseNegative(scope: QueryScope, name: string, value: number | null): void {
  if (value === null || value >= 0) return;
  throw invalid(scope, `${name} cannot be negative, but was ${value}.`);
}

/** null when absent or null. Numbers beyond the exact ones count as no limit. */
function longOf(scope: QueryScope, value: Value | null): number | null {
  if (value === null) return null;
  const given = resolveValue(scope, value);
  if (given.type === "null") return null;
  if (given.type === "long") {
    return Math.min(Number(given.value), Number.MAX_SAFE_INTEGER);
  }
  const isWrittenBoolean = value.kind === "literal" && given.type === "boolean";
  const got = isWrittenBoolean ? "String" : typeName(given);
  throw new EngineError("invalid-operation", `Value should be a 'Long' but was '${got}'.`);
}
