/** Helpers for methods that form the whole of `select`. */

import { invalid, type QueryScope } from "../analysis/query-scope.ts";
import type { SelectItem } from "../syntax/ast.ts";
import { describeArgument, fieldText } from "../syntax/print.ts";
import { isCallOf } from "./arguments.ts";
import type { WholeClause } from "./rql-function.ts";

/** Refuses other columns, and `distinct`. @throws query-invalid in the words of RavenDB 7.2.7 */
export function refuseOthers(
  scope: QueryScope,
  items: readonly SelectItem[],
  { isDistinct }: WholeClause,
  method: string,
  noun: string,
): void {
  const other = items.find(({ expression }) => !isCallOf(expression, method))?.expression;
  if (other !== undefined && other.kind !== "time-series") {
    const kind = other.kind === "field" ? "FieldExpression" : "MethodExpression";
    const shown = other.kind === "field" ? fieldText(other) : describeArgument(other);
    throw invalid(
      scope,
      `Unsupported expression of type ${kind} specified as an argument of ${method}(). Text: ${shown}.`,
    );
  }
  if (other !== undefined) {
    throw invalid(scope, `timeseries() cannot be a column beside ${method}()`);
  }
  if (isDistinct) throw invalid(scope, `Cannot use SELECT DISTINCT in a ${noun} query`);
}
