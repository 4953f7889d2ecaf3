/**
 * Checks that a query may use a deployed index: the index must not be marked as errored, and the query may only name
 * fields that the index can have.
 */
import { EngineError } from "../../base/errors.ts";
import type { QueryIndex } from "../execution/row-source.ts";
import { orderFieldOf, visitFields } from "./analyze-index.ts";
import type { AnalyzedQuery } from "./analyzed-query.ts";

/** @throws invalid-operation, invalid-argument */
export function refuseUnfit(query: AnalyzedQuery, index: QueryIndex): void {
  if (index.invalidity !== null) {
    throw new EngineError(
      "invalid-operation",
      `Index '${index.name}' is marked as errored. ${index.invalidity}`,
    );
  }
  const check = (name: string): void => {
    if (index.isKnownField(name)) return;
    throw new EngineError(
      "invalid-argument",
      `The field '${name}' is not indexed in '${index.name}', cannot query/sort on fields that are not indexed in query: ${query.text}`,
    );
  };
  if (query.where !== null) visitFields(query.where, ({ name }) => check(name));
  for (const key of query.orderBy) {
    const field = orderFieldOf(key);
    if (field !== null) check(field.name);
  }
}
