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
import { unreachable } from "../../base/assert.ts";
import { EngineError } from "../../base/errors.ts";
import { notLeft } from "../functions/arguments.ts";
import { functionNamed, requireMethod } from "../functions/function-table.ts";
import type {
  Between,
  Call,
  Comparison,
  ComparisonOperator,
  Expression,
  Field,
  In,
  Value,
} from "../syntax/ast.ts";
import { describeArgument, literalTypeName } from "../syntax/print.ts";
import type { Bound, ComparisonValue, Condition, FieldReference } from "./analyzed-query.ts";
import {
  jsonText,
  type ParameterValue,
  plainText,
  type Scalar,
  typeName,
} from "./query-parameters.ts";
import {
  fieldReference,
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
  const mayBeRange =
    kind === "and" && operands[0]?.kind === "comparison" && operands[1]?.kind === "comparison";
  const conditions = operands.map((operand, i) =>
    mayBeRange && i < 2 && operand.kind === "comparison"
      ? analyzeBound(scope, operand, isExact)
      : analyzeCondition(scope, operand, isExact),
  );
  const [first, second, ...rest] = conditions;
  if (!mayBeRange || first === undefined || second === undefined) {
    return { kind, operands: conditions };
  }
  const merged = mergeBounds(first, second);
  if (merged !== null) {
    return rest.length === 0 ? merged : { kind, operands: [merged, ...rest] };
  }
  refuseOpenRange(first);
  refuseOpenRange(second);
  return { kind, operands: conditions };
}

/** Merges `f >= a` and `f <= b`, in either order, into one condition; null for any other pair. */
function mergeBounds(first: Condition, second: Condition): Condition | null {
  if (first.kind !== "comparison" || second.kind !== "comparison") return null;
  if (first.field.name !== second.field.name) return null;
  const isLower = first.operator.startsWith(">");
  const [lower, upper] = isLower ? [first, second] : [second, first];
  if (!lower.operator.startsWith(">") || !upper.operator.startsWith("<")) return null;
  const low = boundOf(lower.operator, lower.value);
  const high = boundOf(upper.operator, upper.value);
  if (low === null || high === null || areMixed(low, high)) return null;
  return { kind: "between", field: first.field, low, high, isExact: first.isExact };
}

function boundOf(operator: ComparisonOperator, value: ComparisonValue): Bound | null {
  if (value.type === "compare-exchange") return null;
  return { value, isInclusive: operator.endsWith("=") };
}

/**
 * Returns whether two bounds are compared by different orders (as numbers and as texts); a null bound is compatible
 * with both.
 */
function areMixed(low: Bound, high: Bound): boolean {
  const types = [low.value.type, high.value.type];
  if (types.includes("null")) return false;
  const [isText, isOtherText] = types.map((type) => type === "string" || type === "boolean");
  return isText !== isOtherText;
}

const operatorNames: Readonly<Record<ComparisonOperator, string>> = {
  "=": "Equal",
  "!=": "NotEqual",
  "<": "LessThan",
  "<=": "LessThanOrEqual",
  ">": "GreaterThan",
  ">=": "GreaterThanOrEqual",
};

function analyzeComparison(scope: QueryScope, comparison: Comparison, isExact: boolean): Condition {
  const condition = analyzeBound(scope, comparison, isExact);
  refuseOpenRange(condition);
  return condition;
}

/** A range from or to null is one only beside the other bound of its field. */
function refuseOpenRange(condition: Condition): void {
  if (condition.kind !== "comparison" || condition.value.type !== "null") return;
  const { operator } = condition;
  if (operator !== "=" && operator !== "!=") throw notSupported(unhandled(operator));
}

function unhandled(operator: ComparisonOperator): string {
  return `Unhandled operation: ${operatorNames[operator]}`;
}

/** A comparison, which may be one bound of a range: its value may then be null. */
function analyzeBound(
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
  if (isOrdering && value.type === "compare-exchange") throw notSupported(unhandled(operator));
  return { kind: "comparison", field, operator, value, isExact };
}

/**
 * Deployed indexes find objects by their JSON text; null if the value is not an object or the index is not a deployed
 * one.
 */
function objectTextOf(scope: QueryScope, right: Comparison["right"]): Scalar | null {
  if (scope.isDynamic || right.kind !== "parameter") return null;
  const given = resolveValue(scope, right);
  return given.type === "object" ? { type: "string", value: jsonText(given) } : null;
}

/** Returns the left side of an operator: a path, `id()`, or an aggregate of a group. */
function comparedField(scope: QueryScope, left: Field | Call): FieldReference {
  if (left.kind === "field") return fieldReference(scope, left);
  const compared = functionNamed(left.name)?.compared ?? null;
  if (compared !== null) return compared(scope, left);
  throw notLeft(requireMethod(left.name).shownName);
}

function comparedValue(scope: QueryScope, right: Comparison["right"]): ComparisonValue | null {
  if (right.kind === "field") {
    throw invalid(scope, `Expected value, but got: ${describeArgument(right)}`);
  }
  if (right.kind !== "call") return scalarOrNone(scope, right);
  const value = functionNamed(right.name)?.value ?? null;
  if (value !== null) return value(scope, right);
  requireMethod(right.name);
  throw new EngineError("invalid-argument", `Unknown method ${right.name}`);
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

/**
 * Returns the values of one item of a list: arrays are flattened, nested ones too; objects become their texts, or
 * nothing.
 */
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

/** Returns whether messages name the types of the two differently. */
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

/** Returns a method call that is itself a condition. */
function analyzeMethod(scope: QueryScope, call: Call, isExact: boolean): Condition {
  const { where, shownName } = requireMethod(call.name);
  if (where === null) throw invalid(scope, `Method '${shownName}' is not supported.`);
  return where.analyze(scope, call, {
    isExact,
    condition: (expression, isInside) => analyzeCondition(scope, expression, isInside),
    comparedField: (left) => comparedField(scope, left),
    comparedValue: (right) => comparedValue(scope, right),
  });
}
