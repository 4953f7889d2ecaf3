/** `order by` -> sort keys. */

import { functionNamed } from "../functions/function-table.ts";
import type { OrderItem } from "../syntax/ast.ts";
import type { OrderKey } from "./analyzed-query.ts";
import { fieldReference, invalid, type QueryScope } from "./query-scope.ts";

/** @throws query-invalid, not-supported */
export function analyzeOrderBy(
  scope: QueryScope,
  items: readonly OrderItem[],
  hasGroups: boolean,
): OrderKey[] {
  return items.map((item) => orderKey(scope, item, hasGroups));
}

function orderKey(scope: QueryScope, item: OrderItem, hasGroups: boolean): OrderKey {
  const { expression, isDescending, nulls } = item;
  const common = { isDescending, nulls };
  if (expression.kind === "field") {
    const field = fieldReference(scope, expression);
    return { ...common, kind: "field", field, type: item.type };
  }
  const { aggregate = null, orderBy = null } = functionNamed(expression.name) ?? {};
  if (hasGroups && aggregate !== null) {
    const { field, orderType } = aggregate(scope, expression);
    return { ...common, kind: "field", field, type: item.type ?? orderType };
  }
  if (orderBy === null) throw invalid(scope, `Invalid ORDER BY method call ${expression.name}`);
  return { ...common, ...orderBy.analyze(scope, expression, item) };
}
