/**
 * `select` -> the projection of each result.
 *
 * Invariants:
 * - The keys of one projection are distinct.
 */
import { EngineError } from "../base/errors.ts";
import type {
  FieldReference,
  ProjectedCall,
  ProjectedField,
  ProjectedValue,
  Projection,
} from "./analyzed-query.ts";
import type { Argument, Call, Field, Query, Script, SelectItem } from "./ast.ts";
import { methodKey } from "./functions/method-table.ts";
import { describeArgument, fieldText, pathText } from "./print.ts";
import { type ParameterValue, plainText, scalarOf } from "./query-parameters.ts";
import {
  invalid,
  notSupported,
  type QueryScope,
  resolveValue,
  selectedReference,
} from "./query-scope.ts";
import { projectionFault, scriptFault } from "./script-syntax.ts";

/** Analyzes the projection of a query. @throws query-invalid, not-supported */
export function analyzeSelect(scope: QueryScope, query: Query): Projection {
  const { select } = query;
  if (select === null || select.body === null) return { kind: "document", alias: null, key: null };
  if ("kind" in select.body) return scriptProjection(scope, select.body);
  const items = select.body;
  refuseFacetsAndSuggestions(scope, items, select.isDistinct);
  const hasGroups = query.groupBy.length > 0;
  const single = items.length === 1 ? items[0] : undefined;
  if (single !== undefined) {
    const { expression, alias } = single;
    if (expression.kind === "call" && alias === null && scope.functions.has(expression.name)) {
      return { kind: "call", call: declaredCall(scope, expression) };
    }
    const whole = expression.kind === "field" ? wholeAlias(scope, expression) : null;
    if (whole !== null) {
      return whole === query.source.alias
        ? { kind: "document", alias: null, key: alias }
        : { kind: "document", alias: whole, key: alias ?? whole };
    }
  }
  const fields = items.map((item) => projectedField(scope, item, hasGroups, query));
  refuseEqualKeys(scope, fields);
  return { kind: "fields", fields };
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

/** The error for a malformed script. */
export function invalidScript(
  scope: QueryScope,
  complaint: string,
  { place }: { readonly place: { readonly line: number; readonly column: number } | null },
): EngineError {
  const where = place === null ? "" : `\nAt Line : ${place.line}, Column : ${place.column}`;
  return invalid(scope, complaint + where);
}

function refuseFacetsAndSuggestions(
  scope: QueryScope,
  items: readonly SelectItem[],
  isDistinct: boolean,
): void {
  for (const method of ["facet", "suggest"]) {
    const calls = items.filter(({ expression }) => isCallOf(expression, method));
    if (calls.length === 0) continue;
    const other = items.find(({ expression }) => !isCallOf(expression, method))?.expression;
    if (other !== undefined && other.kind !== "time-series") {
      const kind = other.kind === "field" ? "FieldExpression" : "MethodExpression";
      const shown = other.kind === "field" ? fieldText(other) : describeArgument(other);
      throw invalid(
        scope,
        `Unsupported expression of type ${kind} specified as an argument of ${method}(). Text: ${shown}.`,
      );
    }
    if (isDistinct) {
      const what = method === "facet" ? "facet" : "suggestion";
      throw invalid(scope, `Cannot use SELECT DISTINCT in a ${what} query`);
    }
    if (method === "suggest")
      calls.forEach((item) => {
        checkSuggestArity(scope, item);
      });
    if (method === "facet" && scope.isDynamic) {
      throw invalid(scope, "Facet query must be executed against static index.");
    }
    throw notSupported(`Clause '${method}' is not supported by this server.`);
  }
}

function isCallOf(expression: SelectItem["expression"], method: string): boolean {
  return expression.kind === "call" && expression.name.toLowerCase() === method;
}

function checkSuggestArity(scope: QueryScope, { expression }: SelectItem): void {
  const count = expression.kind === "call" ? expression.args.length : 0;
  if (count === 2 || count === 3) return;
  const complaint = "Method suggest() must contain two or three arguments but";
  throw invalid(scope, `${complaint} '${count}' were specified`);
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
    case "time-series":
      throw notSupported("Clause 'timeseries' is not supported by this server.");
    case "field": {
      const value = fieldValue(scope, expression);
      const implicit = value.kind === "path" ? pathText(value.path) : fieldText(expression);
      return { key: alias ?? implicit, value };
    }
    case "literal": {
      // RavenDB projects true and false as null.
      const isBoolean = expression.type === "boolean";
      const value: ParameterValue = isBoolean
        ? { type: "null", value: null }
        : scalarOf(expression);
      return { key: alias ?? expression.text, value: { kind: "constant", value } };
    }
    case "parameter": {
      const value = resolveValue(scope, expression);
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

function wholeAlias(scope: QueryScope, field: Field): string | null {
  const [root] = field.path;
  const isAlone = root !== undefined && field.path.length === 1 && root.arrays === 0;
  return isAlone && scope.aliases.includes(root.name) ? root.name : null;
}

function documentCall(scope: QueryScope, call: Call, alias: string | null): ProjectedField {
  const name = call.name.toLowerCase();
  if (name === "id" && call.args.length > 0 && !scope.functions.has(call.name)) {
    throw idOfSomething(scope, call);
  }
  if (name === "count" || name === "sum") {
    throw invalid(scope, `${call.name} may only be used in group by queries`);
  }
  const value = sharedCall(scope, call);
  if (value !== null) return { key: alias ?? implicitKey(call, value), value };
  throw invalid(scope, `Unknown method call in SELECT clause: '${call.name}' method`);
}

/** The error of `id(x)` as a column, where it takes no argument. */
function idOfSomething(scope: QueryScope, { args: [argument] }: Call): EngineError {
  const root = argument?.kind === "field" ? (argument.path[0]?.name ?? "") : "";
  if (scope.aliases.includes(root)) {
    return new EngineError("invalid-operation", "id(doc) must be called with an object argument");
  }
  const known = `there are aliases specified in the query (${scope.aliases.join(", ")})`;
  return invalid(scope, `Unknown alias ${root}, but ${known}`);
}

function groupCall(
  scope: QueryScope,
  call: Call,
  alias: string | null,
  { groupBy }: Query,
): ProjectedField {
  switch (call.name.toLowerCase()) {
    case "id":
      throw invalid(scope, "Cannot use id() method in a group by query");
    case "count":
      return { key: alias ?? "Count", value: { kind: "count" } };
    case "sum": {
      const field = summedField(scope, call);
      return { key: alias ?? field.name, value: { kind: "sum", field } };
    }
    case "key": {
      const only = groupBy.length === 1 ? groupBy[0]?.expression : undefined;
      const implicit = only?.kind === "field" ? selectedReference(scope, only).name : "Key";
      return { key: alias ?? implicit, value: { kind: "group-key" } };
    }
    default: {
      const value = sharedCall(scope, call);
      if (value !== null) return { key: alias ?? implicitKey(call, value), value };
      throw invalid(
        scope,
        `Unknown aggregation method in SELECT clause of the group by query: '${call.name}'`,
      );
    }
  }
}

/** The field that `sum(field)` sums. */
export function summedField(scope: QueryScope, call: Call): FieldReference {
  const [argument] = call.args;
  if (argument === undefined || call.args.length !== 1) {
    const complaint = "sum() method expects exactly one argument but got";
    throw invalid(scope, `${complaint} ${call.args.length}`);
  }
  if (argument.kind === "field") return selectedReference(scope, argument);
  if (argument.kind === "literal") {
    const path = [{ name: argument.text, arrays: 0 }];
    const isQuoted = argument.type === "string";
    return selectedReference(scope, { kind: "field", offset: argument.offset, path, isQuoted });
  }
  throw invalid(scope, `sum() method expects a field but got ${describeArgument(argument)}`);
}

/** Calls supported for both documents and groups; null for any other. */
function sharedCall(scope: QueryScope, call: Call): ProjectedValue | null {
  if (scope.functions.has(call.name)) return declaredCall(scope, call);
  switch (call.name.toLowerCase()) {
    case "id":
      return { kind: "id" };
    case "counter":
    case "counterraw":
      return counterValue(scope, call);
    case "cmpxchg": {
      const [key] = call.args;
      if (key === undefined || call.args.length !== 1)
        throw noOverload(scope, call, "cmpxchg(name)");
      return { kind: "compare-exchange", key: argumentValue(scope, key) };
    }
    case "spatial.distance":
      throw notSupported("Clause 'spatial.distance' is not supported by this server.");
    default:
      return null;
  }
}

function implicitKey(call: Call, value: ProjectedValue): string {
  if (value.kind === "id") return "id()";
  return value.kind === "counter" ? value.name : call.name;
}

function counterValue(scope: QueryScope, call: Call): ProjectedValue {
  const { args, name: method } = call;
  const name = args.at(-1);
  if (name === undefined || args.length > 2) {
    throw noOverload(scope, call, `${method}(name), ${method}(doc, name)`);
  }
  const of = args.length === 2 ? args[0] : undefined;
  const isWhole = of?.kind !== "field" || wholeAlias(scope, of) !== null;
  return {
    kind: "counter",
    of: isWhole ? null : selectedReference(scope, of),
    name: nameText(scope, name),
    isRaw: method.toLowerCase() === "counterraw",
  };
}

function nameText(scope: QueryScope, argument: Argument): string {
  if (argument.kind === "field") return fieldText(argument);
  if (argument.kind === "literal") return argument.text;
  if (argument.kind === "parameter") return plainText(resolveValue(scope, argument));
  throw invalid(scope, "Unhandled expression of type Binary in SELECT clause");
}

function noOverload(scope: QueryScope, { name, args }: Call, supported: string): EngineError {
  return invalid(
    scope,
    `There is no overload of method '${name}' that takes ${args.length} arguments. ` +
      `Supported overloads are : ${supported}.`,
  );
}

function declaredCall(scope: QueryScope, call: Call): ProjectedCall {
  const args = call.args.map((argument) => argumentValue(scope, argument));
  return { kind: "call", name: call.name, args };
}

function argumentValue(scope: QueryScope, argument: Argument): ProjectedValue {
  switch (argument.kind) {
    case "field":
      return fieldValue(scope, argument);
    case "literal":
    case "parameter":
      return { kind: "constant", value: resolveValue(scope, argument) };
    case "call": {
      const value = sharedCall(scope, argument);
      if (value !== null) return value;
      throw invalid(scope, `Unknown method call in SELECT clause: '${argument.name}' method`);
    }
    default:
      throw invalid(scope, "Unhandled expression of type Binary in SELECT clause");
  }
}

/** Whether an undeclared method may be used in `filter`, which scripts evaluate. */
export function isFilterMethod(name: string): boolean {
  const key = methodKey(name);
  return (
    key === "id" ||
    key === "startswith" ||
    key === "endswith" ||
    key === "regex" ||
    key === "exists" ||
    key === "cmpxchg"
  );
}

/** Refuses declarations with invalid syntax. `text` is the whole query. */
export function checkDeclarations(scope: QueryScope, query: Query): void {
  for (const { form, name, offset, body } of query.declarations) {
    if (form === "timeseries") {
      throw notSupported("Clause 'declare timeseries' is not supported by this server.");
    }
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
