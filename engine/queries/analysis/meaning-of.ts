/** From a condition to its meaning, and to its parts. */

import { type MadeCondition, madeMeaning } from "../functions/function-table.ts";
import type { FieldMeaning, OperandsMeaning } from "../functions/rql-function.ts";
import type { Condition, FieldCondition, FieldReference } from "./analyzed-query.ts";
import { operatorMeanings } from "./operator-meanings.ts";

/** A condition on a field, other than `none`. */
export type MeantFieldCondition = Extract<
  FieldCondition | MadeCondition,
  { readonly field: FieldReference }
>;

/** A condition of a method without a field. */
type MadeOfOthers = Exclude<MadeCondition, { readonly field: FieldReference }>;

/** Returns the meaning of a condition. The tables guarantee that a meaning receives only conditions of its own type. */
export function meaningOf(condition: MeantFieldCondition): FieldMeaning<MeantFieldCondition> {
  const meaning = isOperator(condition)
    ? operatorMeanings[condition.kind]
    : madeMeaning(condition.kind);
  return meaning as FieldMeaning<MeantFieldCondition>;
}

/** As `meaningOf`, for a condition of others. */
export function compositeMeaningOf({ kind }: MadeOfOthers): OperandsMeaning<MadeOfOthers> {
  return madeMeaning(kind) as OperandsMeaning<MadeOfOthers>;
}

function isOperator(condition: MeantFieldCondition): condition is FieldCondition {
  return Object.hasOwn(operatorMeanings, condition.kind);
}

/** Returns the conditions that a condition consists of. */
export function operandsOf(condition: Condition): readonly Condition[] {
  if ("operands" in condition) return condition.operands;
  return "operand" in condition ? [condition.operand] : [];
}

/** Returns whether a condition selects the best of the entries that other conditions find. */
export function isNearest(condition: Condition): condition is MeantFieldCondition {
  if (!("field" in condition) || condition.kind === "none") return false;
  return meaningOf(condition).findWithin !== undefined;
}

/** Returns whether a condition is a nearest-neighbor condition or contains one. */
export function hasNearest(condition: Condition): boolean {
  return isNearest(condition) || operandsOf(condition).some(hasNearest);
}
