/**
 * `where` -> a condition for execution: methods and operands checked, parameters resolved.
 *
 * Independent of indexes: whether a field can be searched is decided by the planner.
 *
 * Invariants:
 * - `exact(…)` is removed: it becomes a flag on the conditions inside it.
 * - When the first two conditions of an `and` chain bound one field from both sides, they become one `between`. This
 *   matters for fields with several values: a single value must be within both bounds.
 */
import { unreachable } from "../base/assert.ts";
import { EngineError } from "../base/errors.ts";
import type { Bound, ComparisonValue, Condition, FieldReference } from "./analyzed-query.ts";
import type {
  Argument,
  Between,
  Call,
  Comparison,
  ComparisonOperator,
  Expression,
  Field,
  In,
  Value,
} from "./ast.ts";
import { type MethodKey, methodKey, methodNames } from "./functions/method-table.ts";
import { describeArgument, literalTypeName } from "./print.ts";
import { momentName, momentOf } from "./query-moment.ts";
import {
  jsonText,
  number,
  type ParameterValue,
  plainText,
  type Scalar,
  typeName,
} from "./query-parameters.ts";
import {
  fieldReference,
  idField,
  invalid,
  notSupported,
  type QueryScope,
  resolveValue,
  scalarOrNone,
} from "./query-scope.ts";

/**
 * Analyzes a condition. Cost: O(nodes + values).
 *
 * @throws query-invalid, not-supported, invalid-argument
 */
export function analyzeCondition(
  scope: QueryScope,
  expression: Expression,
  isExact = false,
): Condition {
  switch (expression.kind) {
    case "and":
    case "or":
      return analyzeLogical(scope, expression, isExact);
    case "not":
      return { kind: "not", operand: analyzeCondition(scope, expression.operand, isExact) };
    case "true":
      return { kind: "true" };
    case "comparison":
      return analyzeComparison(scope, expression, isExact);
    case "between":
      return analyzeBetween(scope, expression, isExact);
    case "in":
      return analyzeIn(scope, expression, isExact);
    case "call":
      return analyzeMethod(scope, expression, isExact);
    default:
      return unreachable(expression);
  }
}

function analyzeLogical(
  scope: QueryScope,
  { kind, operands }: Extract<Expression, { kind: "and" | "or" }>,
  isExact: boolean,
): Condition {
  const conditions = operands.map((operand) => analyzeCondition(scope, operand, isExact));
  const [first, second, ...rest] = conditions;
  const isRange = operands[0]?.kind === "comparison" && operands[1]?.kind === "comparison";
  if (kind !== "and" || !isRange || first === undefined || second === undefined) {
    return { kind, operands: conditions };
  }
  const merged = mergeBounds(first, second);
  if (merged === null) return { kind, operands: conditions };
  return rest.length === 0 ? merged : { kind, operands: [merged, ...rest] };
}

/** `f >= a` and `f <= b`, in either order, as one condition; null for anything else. */
function mergeBounds(first: Condition, second: Condition): Condition | null {
  if (first.kind !== "comparison" || second.kind !== "comparison") return null;
  if (first.field.name !== second.field.name) return null;
  const isLower = first.operator.startsWith(">");
  const [lower, upper] = isLower ? [first, second] : [second, first];
  if (!lower.operator.startsWith(">") || !upper.operator.startsWith("<")) return null;
  const low = boundOf(lower.operator, lower.value);
  const high = boundOf(upper.operator, upper.value);
  if (low === null || high === null || isText(low) !== isText(high)) return null;
  return { kind: "between", field: first.field, low, high, isExact: first.isExact };
}

function boundOf(operator: ComparisonOperator, value: ComparisonValue): Bound | null {
  if (value.type === "compare-exchange") return null;
  return { value, isInclusive: operator.endsWith("=") };
}

function isText({ value }: Bound): boolean {
  return value.type === "string" || value.type === "boolean";
}

const operatorNames: Readonly<Record<ComparisonOperator, string>> = {
  "=": "Equal",
  "!=": "NotEqual",
  "<": "LessThan",
  "<=": "LessThanOrEqual",
  ">": "GreaterThan",
  ">=": "GreaterThanOrEqual",
};

function analyzeComparison(
  scope: QueryScope,
  { left, operator, right }: Comparison,
  isExact: boolean,
): Condition {
  const field = comparedField(scope, left);
  const text = objectTextOf(scope, right);
  if (text !== null) return { kind: "comparison", field, operator, value: text, isExact: true };
  const value = comparedValue(scope, right);
  if (value === null) {
    const none: Condition = { kind: "none", field };
    return operator === "!=" ? { kind: "not", operand: none } : none;
  }
  const isOrdering = operator !== "=" && operator !== "!=";
  if (isOrdering && (value.type === "null" || value.type === "compare-exchange")) {
    throw notSupported(`Unhandled operation: ${operatorNames[operator]}`);
  }
  return { kind: "comparison", field, operator, value, isExact };
}

/** Deployed indexes find objects by their JSON text; null: not an object, or not such an index. */
function objectTextOf(scope: QueryScope, right: Comparison["right"]): Scalar | null {
  if (scope.isDynamic || right.kind !== "parameter") return null;
  const given = resolveValue(scope, right);
  return given.type === "object" ? { type: "string", value: jsonText(given) } : null;
}

/** The left side of an operator: a path, `id()`, or an aggregate of a group. */
function comparedField(scope: QueryScope, left: Field | Call): FieldReference {
  if (left.kind === "field") return fieldReference(scope, left);
  const moment = momentName(left);
  if (moment !== undefined) throw notLeft(moment);
  const key = requireMethod(left.name);
  if (key === "id") return idField;
  if (key === "count") return { ...idField, name: "Count", path: [{ name: "Count", arrays: 0 }] };
  if (key === "sum") return fieldArgument(scope, left, 0);
  throw notLeft(methodNames[key]);
}

function notLeft(name: string): EngineError {
  return new EngineError(
    "invalid-argument",
    `The method ${name} on the left side inside the WHERE clause is not supported.`,
  );
}

function comparedValue(scope: QueryScope, right: Comparison["right"]): ComparisonValue | null {
  if (right.kind === "field") {
    throw invalid(scope, `Expected value, but got: ${describeArgument(right)}`);
  }
  if (right.kind !== "call") return scalarOrNone(scope, right);
  if (momentName(right) !== undefined) return momentOf(scope, right);
  const key = requireMethod(right.name);
  if (key !== "cmpxchg") {
    throw new EngineError("invalid-argument", `Unknown method ${right.name}`);
  }
  const [argument, ...more] = right.args;
  const isValue = argument?.kind === "literal" || argument?.kind === "parameter";
  if (!isValue || more.length > 0) {
    throw invalid(scope, "Method cmpxchg() expects only one argument to be provided");
  }
  return { type: "compare-exchange", key: plainText(resolveValue(scope, argument)) };
}

function analyzeBetween(scope: QueryScope, expression: Between, isExact: boolean): Condition {
  const field = comparedField(scope, expression.left);
  const values = [expression.low, expression.high];
  checkLiteralTypes(scope, expression.left, values);
  const [low, high] = values.map((value) => scalarOrNone(scope, value));
  if (low === null || low === undefined || high === null || high === undefined) {
    return { kind: "none", field };
  }
  // RavenDB also refuses a long with a double, but only when a query text is new to it.
  const isAccepted =
    low.type === "null" ||
    high.type === "null" ||
    typeName(low) === typeName(high) ||
    (isNumber(low) && isNumber(high));
  if (!isAccepted) {
    throw incompatible(scope, "parameters", expression.left, values.length);
  }
  return {
    kind: "between",
    field,
    low: { value: low, isInclusive: true },
    high: { value: high, isInclusive: true },
    isExact,
  };
}

function isNumber({ type }: Scalar): boolean {
  return type === "long" || type === "double";
}

function analyzeIn(scope: QueryScope, expression: In, isExact: boolean): Condition {
  const { left, isAll } = expression;
  const field = comparedField(scope, left);
  const written = expression.values.filter((value) => !isNullLiteral(value));
  if (written.length === expression.values.length) checkLiteralTypes(scope, left, written);
  const values: Scalar[] = [];
  let known: Scalar | null = null;
  let isMixed = false;
  for (const value of expression.values) {
    for (const scalar of spread(scope, value)) {
      values.push(scalar);
      if (scalar.type === "null") continue;
      known ??= scalar;
      isMixed ||= isOtherType(scalar, known);
    }
  }
  if (isMixed) throw incompatible(scope, "parameters", left, expression.values.length);
  const isText = expression.values.some((value) => hasObject(resolveValue(scope, value)));
  return { kind: "in", field, values, isAll, isExact: isExact || (isText && !scope.isDynamic) };
}

function isNullLiteral(value: Value): boolean {
  return value.kind === "literal" && value.type === "null";
}

/** The values of one item of a list: arrays are flattened, nested ones too; objects become their texts, or nothing. */
function spread(scope: QueryScope, value: Value): Scalar[] {
  const given = resolveValue(scope, value);
  if (given.type !== "array" && given.type !== "object") return [given];
  const scalars: Scalar[] = [];
  addScalars(scope, given, scalars);
  const first = scalars.find((item) => item.type !== "null");
  for (const scalar of scalars) {
    if (first === undefined || scalar.type === "null" || !isOtherType(scalar, first)) continue;
    throw invalid(
      scope,
      `Expected query parameter to be ${typeName(first)} but was ${typeName(scalar)}: ${plainText(scalar)}`,
    );
  }
  return scalars;
}

/** Whether messages name the types of the two differently. */
function isOtherType(left: Scalar, right: Scalar): boolean {
  if (left.type !== right.type) return true;
  return left.type === "boolean" && left.value !== right.value;
}

function addScalars(scope: QueryScope, value: ParameterValue, scalars: Scalar[]): void {
  if (value.type === "array") for (const item of value.items) addScalars(scope, item, scalars);
  else if (value.type !== "object") scalars.push(value);
  else if (!scope.isDynamic) scalars.push({ type: "string", value: jsonText(value) });
}

function hasObject(value: ParameterValue): boolean {
  return value.type === "object" || (value.type === "array" && value.items.some(hasObject));
}

/** All literals of a list have one type; literals and parameters do not mix. */
function checkLiteralTypes(scope: QueryScope, left: Field | Call, values: readonly Value[]): void {
  const kinds = values.map((value) =>
    value.kind === "literal" ? literalTypeName(value) : "Parameter",
  );
  if (kinds.every((kind) => kind === kinds[0])) return;
  throw incompatible(scope, "variables", left, values.length);
}

function incompatible(
  scope: QueryScope,
  what: "variables" | "parameters",
  left: Field | Call,
  count: number,
): EngineError {
  const kinds = Array.from({ length: count }, () => "Value").join(",");
  const got =
    what === "variables"
      ? "values of the following types: "
      : "parameters of the following types:   ";
  return invalid(
    scope,
    `Incompatible types of ${what} in WHERE clause on '${describeArgument(left)}' field. It got ${got}${kinds}`,
  );
}

/** A method call that is itself a condition. */
function analyzeMethod(scope: QueryScope, call: Call, isExact: boolean): Condition {
  const key = requireMethod(call.name);
  switch (key) {
    case "search":
      return analyzeSearch(scope, call);
    case "startswith":
    case "endswith": {
      const kind = key === "startswith" ? "startsWith" : "endsWith";
      return { kind, ...fieldAndText(scope, call, true), isExact };
    }
    case "regex":
      return { kind: "regex", ...fieldAndText(scope, call, true) };
    case "lucene":
      return { kind: "lucene", ...fieldAndText(scope, call, false) };
    case "exists":
      return analyzeExists(scope, call);
    case "exact":
      if (call.args.length !== 1) {
        throw invalid(scope, `Method exact() expects one argument, got ${call.args.length}`);
      }
      return conditionArgument(scope, call, 0, true);
    case "boost":
      return analyzeBoost(scope, call, isExact);
    case "fuzzy":
      return analyzeFuzzy(scope, call);
    case "proximity":
      return analyzeProximity(scope, call);
    case "intersect": {
      const operands = call.args.map((_, i) => conditionArgument(scope, call, i, isExact));
      return { kind: "intersect", operands };
    }
    default:
      return refuseMethod(scope, call, key);
  }
}

/** Refuses methods that are no conditions, or are not implemented. */
function refuseMethod(scope: QueryScope, call: Call, key: MethodKey): never {
  switch (key) {
    case "id":
    case "cmpxchg":
    case "count":
    case "sum":
    case "spatial.circle":
    case "spatial.wkt":
    case "spatial.point":
      throw invalid(scope, `A 'where' clause cannot contain just a '${call.name}' method`);
    case "spatial.within":
    case "spatial.contains":
    case "spatial.disjoint":
    case "spatial.intersects":
      if (call.args[0]?.kind !== "call" || call.args.length < 2) {
        const complaint = "expects first argument to be a method expression";
        throw invalid(scope, `Method ${call.name}() ${complaint}`);
      }
      throw notSupported(`Clause '${call.name}' is not supported by this server.`);
    case "morelikethis":
    case "vector.search":
      if (key === "morelikethis" && scope.isDynamic) {
        throw invalid(scope, "Method moreLikeThis() cannot be used in dynamic queries");
      }
      throw notSupported(`Clause '${call.name}' is not supported by this server.`);
    default:
      throw invalid(scope, `Method '${methodNames[key]}' is not supported.`);
  }
}

function requireMethod(name: string): MethodKey {
  const key = methodKey(name);
  if (key === null) throw notSupported(`Method '${name}' is not supported.`);
  return key;
}

function analyzeSearch(scope: QueryScope, call: Call): Condition {
  const { field, text } = fieldAndText(scope, call, true);
  const operator = call.args[2];
  if (operator === undefined) return { kind: "search", field, text, isAll: false };
  const written =
    operator.kind === "field" && operator.path.length === 1 ? operator.path[0]?.name : undefined;
  const word = written?.toLowerCase();
  if (word === "and" || word === "or")
    return { kind: "search", field, text, isAll: word === "and" };
  const shown = written ?? describeArgument(operator);
  throw invalid(
    scope,
    `Supported operators in search() method are 'OR' or 'AND' but was '${shown}'`,
  );
}

function analyzeExists(scope: QueryScope, call: Call): Condition {
  const field = fieldArgument(scope, call, 0);
  return { kind: "exists", field };
}

function analyzeBoost(scope: QueryScope, call: Call, isExact: boolean): Condition {
  const [, factor] = call.args;
  if (call.args.length !== 2 || factor === undefined) {
    throw invalid(
      scope,
      `Boost(expression, boostVal) requires two arguments, but was called with ${call.args.length}`,
    );
  }
  const operand = conditionArgument(scope, call, 0, isExact);
  if (factor.kind === "parameter") {
    const value = resolveValue(scope, factor);
    if (value.type === "long" || value.type === "double") {
      return { kind: "boost", operand, factor: Number(value.value) };
    }
    const shown = plainText(value);
    throw invalid(scope, `The boost value must be a valid float, but was called with ${shown}`);
  }
  const value = numberLiteral(factor);
  if (value !== null) return { kind: "boost", operand, factor: value };
  throw invalid(scope, `Unable to find boost value: ${describeArgument(factor)}`);
}

function analyzeFuzzy(scope: QueryScope, call: Call): Condition {
  const [compared, similarity] = call.args;
  if (call.args.length !== 2 || compared === undefined || similarity === undefined) {
    throw invalid(scope, "Method fuzzy() expects to have two arguments");
  }
  const complaint = "Method fuzzy() expects that first argument will be a binary expression";
  if (compared.kind !== "comparison") throw invalid(scope, complaint);
  if (compared.operator !== "=") throw invalid(scope, `${complaint} with equals operator`);
  const value = numberArgument(scope, similarity);
  if (value === null) {
    throw invalid(scope, "Method fuzzy() expects that second argument will be a number");
  }
  const field = comparedField(scope, compared.left);
  const operand = comparedValue(scope, compared.right);
  if (operand === null || operand.type === "compare-exchange") return { kind: "none", field };
  return { kind: "fuzzy", field, text: plainText(operand), similarity: value };
}

function analyzeProximity(scope: QueryScope, call: Call): Condition {
  const [searched, distance] = call.args;
  if (call.args.length !== 2 || searched === undefined || distance === undefined) {
    throw invalid(scope, "Method proximity() expects to have two arguments");
  }
  if (searched.kind !== "call" || methodKey(searched.name) !== "search") {
    const complaint = "expects that first argument will be a method expression";
    throw invalid(scope, `Method proximity() ${complaint}`);
  }
  const value = numberArgument(scope, distance);
  if (value === null || !Number.isInteger(value) || value < 0) {
    throw invalid(scope, "Method proximity() expects that second argument will be a number");
  }
  const { field, text } = fieldAndText(scope, searched, true);
  if (text.includes("*")) {
    throw invalid(scope, "Proximity search works only on simple string terms, not wildcard");
  }
  if (!/\S\s+\S/.test(text)) {
    throw invalid(scope, "Proximity search works only on multiple search terms");
  }
  return { kind: "proximity", field, text, distance: value };
}

/** An argument that must be a condition. */
function conditionArgument(
  scope: QueryScope,
  call: Call,
  position: number,
  isExact: boolean,
): Condition {
  const argument = call.args[position];
  if (argument === undefined || argument.kind === "field") {
    throw invalid(scope, "Unable to understand query");
  }
  if (argument.kind === "literal" || argument.kind === "parameter") {
    throw invalid(scope, `Expected binary expression, but got ${describeArgument(argument)}`);
  }
  return analyzeCondition(scope, argument, isExact);
}

/** The first argument as a field and the second as text. `isStrict`: it must be a string or boolean. */
function fieldAndText(
  scope: QueryScope,
  call: Call,
  isStrict: boolean,
): { field: FieldReference; text: string } {
  const field = fieldArgument(scope, call, 0);
  const second = call.args[1];
  const method = `Method ${call.name}()`;
  if (second === undefined)
    throw invalid(scope, `${method} expects second argument to be provided`);
  if (second.kind !== "literal" && second.kind !== "parameter") {
    throw invalid(
      scope,
      `${method} expects value token as second argument, got ${describeArgument(second)} type`,
    );
  }
  const value = scalarOrNone(scope, second) ?? { type: "null", value: null };
  const isAccepted = value.type === "string" || value.type === "boolean" || !isStrict;
  if (isAccepted) return { field, text: plainText(value) };
  throw invalid(
    scope,
    `${method} expects to get an argument of type String while it got ${typeName(value)}`,
  );
}

/** An argument that names a field: a path, a name in quotes, or `id()`. */
function fieldArgument(scope: QueryScope, call: Call, position: number): FieldReference {
  const argument = call.args[position];
  const method = `Method ${call.name}()`;
  if (argument === undefined) {
    const complaint = "expects a field name as its first argument but no arguments were passed";
    throw invalid(scope, `${method} ${complaint}`);
  }
  if (argument.kind === "field") return fieldReference(scope, argument);
  if (argument.kind === "call" && methodKey(argument.name) === "id") return idField;
  if (argument.kind === "literal") {
    const path = [{ name: argument.text, arrays: 0 }];
    const isQuoted = argument.type === "string";
    return fieldReference(scope, { kind: "field", offset: argument.offset, path, isQuoted });
  }
  if (argument.kind === "parameter") {
    const path = [{ name: plainText(resolveValue(scope, argument)), arrays: 0 }];
    return fieldReference(scope, { kind: "field", offset: argument.offset, path, isQuoted: false });
  }
  throw invalid(scope, `${method} expects a field name as its argument`);
}

function numberLiteral(argument: Argument): number | null {
  if (argument.kind !== "literal") return null;
  if (argument.type !== "long" && argument.type !== "double") return null;
  return Number(number(argument.text).value);
}

function numberArgument(scope: QueryScope, argument: Argument): number | null {
  if (argument.kind !== "parameter") return numberLiteral(argument);
  const value = resolveValue(scope, argument);
  return value.type === "long" || value.type === "double" ? Number(value.value) : null;
}
