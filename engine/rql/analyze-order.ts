/** `order by` -> sort keys. */

import { summedField } from "./analyze-select.ts";
import type { OrderKey } from "./analyzed-query.ts";
import type { Call, OrderItem } from "./ast.ts";
import { plainText } from "./query-parameters.ts";
import {
  fieldReference,
  invalid,
  notSupported,
  type QueryScope,
  resolveValue,
} from "./query-scope.ts";

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
    return { ...common, kind: "field", field, type: item.type ?? "string" };
  }
  const method = expression.name.toLowerCase();
  if (hasGroups && method === "count") {
    const field = {
      name: "Count",
      path: [{ name: "Count", arrays: 0 }],
      isQuoted: false,
      alias: null,
    };
    return { ...common, kind: "field", field, type: item.type ?? "long" };
  }
  if (hasGroups && method === "sum") {
    const field = summedField(scope, expression);
    return { ...common, kind: "field", field, type: item.type ?? "double" };
  }
  switch (method) {
    case "id":
      return { ...common, kind: "id", type: idOrderType(scope, item) };
    case "random":
      return { ...common, kind: "random", seed: randomSeed(scope, expression) };
    case "score":
      if (expression.args.length > 0) {
        throw invalid(
          scope,
          `Invalid ORDER BY 'score()' call, expected zero arguments, got ${expression.args.length}`,
        );
      }
      return { ...common, kind: "score" };
    case "custom":
      return { ...customSorter(scope, expression), ...common };
    case "spatial.distance":
      if (expression.args.length < 2 || expression.args.length > 3) {
        throw invalid(scope, "Method spatial.distance() expects 2-3 arguments to be provided");
      }
      throw notSupported("Clause 'order by spatial.distance' is not supported by this server.");
    default:
      throw invalid(scope, `Invalid ORDER BY method call ${expression.name}`);
  }
}

function idOrderType(scope: QueryScope, { type }: OrderItem): "string" | "alphaNumeric" {
  if (type === null || type === "string" || type === "alphaNumeric") return type ?? "string";
  const got = type === "long" ? "Long" : "Double";
  throw invalid(
    scope,
    "Invalid ORDER BY 'id()' call, this field can only be sorted as a string or alphanumeric value, " +
      `but got ${got}`,
  );
}

function randomSeed(scope: QueryScope, { args }: Call): string | null {
  const [seed] = args;
  if (args.length > 1) {
    throw invalid(
      scope,
      `Invalid ORDER BY 'random()' call, expected zero to one arguments, got ${args.length}`,
    );
  }
  if (seed === undefined) return null;
  if (seed.kind === "literal" || seed.kind === "parameter") {
    return plainText(resolveValue(scope, seed));
  }
  throw invalid(scope, "Invalid ORDER BY 'random()' call, expected value argument");
}

function customSorter(scope: QueryScope, { args }: Call): Extract<OrderKey, { kind: "custom" }> {
  const [field, sorter] = args;
  if (args.length !== 2 || field === undefined || sorter === undefined) {
    throw invalid(
      scope,
      `Invalid ORDER BY 'custom()' call, expected two arguments, got ${args.length}`,
    );
  }
  if (field.kind !== "field" || (sorter.kind !== "literal" && sorter.kind !== "parameter")) {
    throw invalid(scope, "Invalid ORDER BY 'custom()' call, expected a field and a sorter's name");
  }
  return {
    kind: "custom",
    field: fieldReference(scope, field),
    sorter: plainText(resolveValue(scope, sorter)),
    isDescending: false,
    nulls: null,
  };
}
