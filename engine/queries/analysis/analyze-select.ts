/**
 * `select` -> the projection of each result.
 *
 * Invariants:
 * - The keys of one projection are distinct.
 */
import type { EngineError } from "../../base/errors.ts";
import { isCallOf } from "../functions/arguments.ts";
import { functionNamed, requireMethod, wholeSelects } from "../functions/function-table.ts";
import type { Column } from "../functions/rql-function.ts";
import type { Argument, Call, Field, Query, Script, SelectItem } from "../syntax/ast.ts";
import { fieldText, pathText } from "../syntax/print.ts";
import { projectionFault, scriptFault } from "../syntax/script-syntax.ts";
import { inlineSeriesName } from "../time-series/analyze-series.ts";
import type {
  ProjectedCall,
  ProjectedField,
  ProjectedSeries,
  ProjectedValue,
  Projection,
} from "./analyzed-query.ts";
import { type ParameterValue, scalarOf } from "./query-parameters.ts";
import {
  invalid,
  type QueryScope,
  resolveValue,
  selectedReference,
  wholeAlias,
} from "./query-scope.ts";

const noValue: ParameterValue = { type: "null", value: null };

/** Analyzes the projection of a query. @throws query-invalid, not-supported */
export function analyzeSelect(scope: QueryScope, query: Query): Projection {
  const { select } = query;
  if (select === null || select.body === null) return { kind: "document", alias: null, key: null };
  if ("kind" in select.body) return scriptProjection(scope, select.body);
  const items = select.body;
  const summary = wholeProjection(scope, query, items, select.isDistinct);
  if (summary !== null) return summary;
  const hasGroups = query.groupBy.length > 0;
  const single = items.length === 1 ? items[0] : undefined;
  if (single !== undefined) {
    const { expression, alias } = single;
    if (expression.kind === "call" && alias === null && scope.functions.has(expression.name)) {
      const call = declaredCall(scope, expression);
      if (call.kind === "call") return { kind: "call", call };
    }
    const whole = expression.kind === "field" ? wholeAlias(scope, expression) : null;
    if (whole !== null) {
      return whole === query.source.alias
        ? { kind: "document", alias: null, key: alias }
        : { kind: "document", alias: whole, key: alias ?? whole };
    }
  }
  const fields = numbered(items.map((item) => projectedField(scope, item, hasGroups, query)));
  refuseEqualKeys(scope, fields);
  const isSeries =
    single !== undefined && single.alias === null && fields[0]?.value.kind === "series";
  return { kind: "fields", fields, ...(isSeries ? { isSeries } : {}) };
}

function scriptProjection(scope: QueryScope, script: Script): Projection {
  if (scope.aliases.length === 0) {
    const complaint = "Use of select function body requires that aliases will be defined";
    throw invalid(scope, `${complaint}, but none had`);
  }
  const parameters = [...(scope.parameters?.values.keys() ?? [])];
  const roots = [...scope.aliases, ...parameters.map((name) => `$${name}`)];
  const fault = projectionFault(script.text, roots);
  if (fault !== null) throw invalidScript(scope, "Select clause contains invalid script", fault);
  return { kind: "script", script };
}

/** Returns the error for a malformed script. */
function invalidScript(
  scope: QueryScope,
  complaint: string,
  { place }: { readonly place: { readonly line: number; readonly column: number } | null },
): EngineError {
  const where = place === null ? "" : `\nAt Line : ${place.line}, Column : ${place.column}`;
  return invalid(scope, complaint + where);
}

/** Returns the projection of a method that forms the whole clause; null if the clause has no such method. */
function wholeProjection(
  scope: QueryScope,
  query: Query,
  items: readonly SelectItem[],
  isDistinct: boolean,
): Projection | null {
  for (const { name, use } of wholeSelects) {
    if (!items.some(({ expression }) => isCallOf(expression, name))) continue;
    const hasGroups = query.groupBy.length > 0;
    const clause = { isDistinct, hasGroups, hasFilter: query.filter !== null, requireMethod };
    const { keys, projection } = use.analyze(scope, items, clause);
    const named = keys.filter((key) => key !== null);
    refuseEqualKeys(
      scope,
      named.map((key) => ({ key, value: { kind: "id" } })),
    );
    return projection;
  }
  return null;
}

function refuseEqualKeys(scope: QueryScope, fields: readonly ProjectedField[]): void {
  const keys = new Set<string>();
  for (const { key, value } of fields) {
    if (!keys.has(key)) {
      keys.add(key);
    } else if (value.kind === "call" && value.name === key) {
      throw invalid(
        scope,
        `Duplicate function call '${key}' in 'select' clause is detected. Function calls in 'select' ` +
          "without aliases implicitly consider function name as alias. In order to fix it, use " +
          "explicit aliases - 'select id(employee) as EmployeeId, id(manager) as ManagerId'",
      );
    } else {
      throw invalid(
        scope,
        `Duplicate alias '${key}' detected. Note: if an alias is not specified, the implicit alias is ` +
          "equal to field name. So a select clause 'select employee.Name, manager.Name' is invalid " +
          "because it has two fields with the same implicit alias - 'Name'. In order to fix it, use " +
          "explicit aliases - 'select employee.Name as EmployeeName, manager.Name as ManagerName'",
      );
    }
  }
}

function projectedField(
  scope: QueryScope,
  { expression, alias }: SelectItem,
  hasGroups: boolean,
  query: Query,
): ProjectedField {
  switch (expression.kind) {
    case "time-series": {
      const items = (query.select?.body ?? []) as readonly SelectItem[];
      const inline = items.filter((item) => item.expression.kind === "time-series");
      const at = inline.findIndex((item) => item.expression === expression);
      const name = inlineSeriesName(at);
      return { key: alias ?? name, value: { kind: "series", name, args: [], position: -1 } };
    }
    case "field": {
      const value = fieldValue(scope, expression);
      const implicit = value.kind === "path" ? pathText(value.path) : fieldText(expression);
      return { key: alias ?? implicit, value };
    }
    case "literal": {
      // RavenDB projects true and false as null.
      const isBoolean = expression.type === "boolean";
      const value: ParameterValue = isBoolean ? noValue : scalarOf(expression);
      return { key: alias ?? expression.text, value: { kind: "constant", value } };
    }
    case "parameter": {
      // A missing parameter among several is null.
      const { values } = scope.parameters ?? {};
      const isGiven = values === undefined || values.has(expression.name);
      const value = isGiven ? resolveValue(scope, expression) : noValue;
      return { key: alias ?? expression.name, value: { kind: "constant", value } };
    }
    default:
      return hasGroups
        ? groupCall(scope, expression, alias, query)
        : documentCall(scope, expression, alias);
  }
}

function fieldValue(scope: QueryScope, field: Field): ProjectedValue {
  const whole = wholeAlias(scope, field);
  if (whole !== null) return { kind: "whole", alias: whole };
  const { alias, path, name } = selectedReference(scope, field);
  return { kind: "path", root: alias, path, name };
}

function documentCall(scope: QueryScope, call: Call, alias: string | null): ProjectedField {
  const found = functionNamed(call.name);
  if (found !== undefined && found.aggregate !== null) {
    throw invalid(scope, `${call.name} may only be used in group by queries`);
  }
  const column = sharedCall(scope, call, true);
  if (column !== null) return { key: alias ?? column.key, value: column.value };
  throw invalid(scope, `Unknown method call in SELECT clause: '${call.name}' method`);
}

function groupCall(
  scope: QueryScope,
  call: Call,
  alias: string | null,
  query: Query,
): ProjectedField {
  const { aggregate = null, select = null } = functionNamed(call.name) ?? {};
  if (aggregate !== null) {
    const { field, value } = aggregate(scope, call);
    return { key: alias ?? field.name, value };
  }
  const column = select?.groupColumn?.(scope, query) ?? sharedCall(scope, call, false);
  if (column !== null) return { key: alias ?? column.key, value: column.value };
  throw invalid(
    scope,
    `Unknown aggregation method in SELECT clause of the group by query: '${call.name}'`,
  );
}

/** Calls supported for both documents and groups; null for any other. */
function sharedCall(scope: QueryScope, call: Call, isColumn: boolean): Column | null {
  if (scope.functions.has(call.name)) return { key: call.name, value: declaredCall(scope, call) };
  const column = functionNamed(call.name)?.select?.column ?? null;
  const clause = { isColumn, argument: (one: Argument) => argumentValue(scope, one) };
  return column === null ? null : column(scope, call, clause);
}

function declaredCall(scope: QueryScope, call: Call): ProjectedCall | ProjectedSeries {
  const { name } = call;
  const args = call.args.map((argument) => argumentValue(scope, argument));
  return scope.series.has(name)
    ? { kind: "series", name, args, position: -1 }
    : { kind: "call", name, args };
}

/** Numbers the columns that are series queries. */
function numbered(fields: readonly ProjectedField[]): ProjectedField[] {
  let position = 0;
  return fields.map((field) => {
    const { value } = field;
    return value.kind === "series"
      ? { ...field, value: { ...value, position: position++ } }
      : field;
  });
}

function argumentValue(scope: QueryScope, argument: Argument): ProjectedValue {
  switch (argument.kind) {
    case "field":
      return fieldValue(scope, argument);
    case "literal":
    case "parameter":
      return { kind: "constant", value: resolveValue(scope, argument) };
    case "call": {
      const column = sharedCall(scope, argument, false);
      if (column !== null) return column.value;
      throw invalid(scope, `Unknown method call in SELECT clause: '${argument.name}' method`);
    }
    default:
      throw invalid(scope, "Unhandled expression of type Binary in SELECT clause");
  }
}

/** Refuses declarations with invalid syntax. `text` is the whole query. */
export function checkDeclarations(scope: QueryScope, query: Query): void {
  for (const { form, name, offset, body } of query.declarations) {
    if (form === "timeseries") continue;
    const written = scope.text.slice(offset + "declare".length, body.offset + body.text.length);
    const fault = scriptFault("function", written.replace(/^(\s*)function/i, "$1function"));
    if (fault !== null) throw invalidScript(scope, `Invalid script inside function ${name}`, fault);
  }
}

/** Refuses an `update` with invalid syntax. */
export function checkUpdate(scope: QueryScope, update: Script): void {
  const fault = scriptFault("update", update.text);
  if (fault !== null) throw invalidScript(scope, "Update clause contains invalid script", fault);
}
