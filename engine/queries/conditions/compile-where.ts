/**
 * A condition -> the entries of an index that match it, as work that pauses (work-budget.ts). The meaning of a
 * condition (meaning-of.ts) defines how its entries are found, for conditions on fields and conditions of methods.
 */
import type { Work } from "../../base/scheduling/work-budget.ts";
import { EntrySet, EntrySetBuilder, intersection } from "../../indexing/columns/entry-set.ts";
import type { Condition } from "../analysis/analyzed-query.ts";
import {
  compositeMeaningOf,
  isNearest,
  type MeantFieldCondition,
  meaningOf,
} from "../analysis/meaning-of.ts";
import { findEqualNow } from "../analysis/operator-meanings.ts";
import { isId, spendOnSets } from "../functions/finding.ts";
import type { JoinedMeaning, WhereContext } from "../functions/rql-function.ts";

/** Base cost of a condition. */
const conditionUnits = 32;

/** Returns the entries that match a condition. @throws query-invalid, not-supported, invalid-argument, work-limit */
export function* findEntries(condition: Condition, context: WhereContext): Work<EntrySet> {
  const { reader } = context;
  const { budget } = reader;
  budget.spend(conditionUnits);
  if (budget.isDue) yield;
  switch (condition.kind) {
    case "true":
      return reader.all();
    case "none":
      return EntrySet.empty;
    case "and":
      return yield* findAll(condition.operands, context);
    case "or":
      return yield* findAny(condition.operands, context);
    case "not":
      spendOnSets(context);
      return reader.complement(yield* findEntries(condition.operand, context));
    default:
  }
  if (!("field" in condition)) {
    // Its result may depend on entries outside `within`, for example on the base of moreLikeThis().
    const { within: _, ...whole } = context;
    return yield* compositeMeaningOf(condition).find(condition, whole, findEntries);
  }
  const meaning = meaningOf(condition);
  return yield* isId(condition.field)
    ? meaning.findIds(condition, context)
    : meaning.find(condition, context, findEntries);
}

/**
 * As `findEntries`, for conditions with few candidates that are found synchronously: equality, with further conditions
 * on the entries that it finds. Null for other conditions. Hot.
 */
export function findNow(condition: Condition, context: WhereContext): EntrySet | null {
  const { budget } = context.reader;
  budget.spend(conditionUnits);
  if (condition.kind === "comparison") {
    return isId(condition.field) ? null : findEqualNow(condition, context);
  }
  if (condition.kind !== "and" || !condition.operands.every(isOfTerms)) return null;
  let result: EntrySet | null = null;
  for (const operand of bySelectivity(condition.operands)) {
    if (result === null) {
      result = findNow(operand, context);
      if (result === null) return null;
    } else if (result.count > 0) {
      const step: IteratorResult<undefined, EntrySet> = findEntries(
        operand,
        withinOf(context, result),
      ).next();
      if (step.done !== true) return null;
      result = intersection(result, step.value);
    }
    spendOnSets(context);
  }
  return result;
}

/** Returns whether the matches of a condition are determined by the terms of a field and by constants. */
function isOfTerms(condition: Condition): boolean {
  switch (condition.kind) {
    case "comparison":
      return !isId(condition.field) && condition.value.type !== "compare-exchange";
    case "between":
    case "in":
      return !isId(condition.field);
    default:
      return false;
  }
}

function* findAll(operands: readonly Condition[], context: WhereContext): Work<EntrySet> {
  let result: EntrySet | null = null;
  const [plain, nearest] = parted(operands);
  for (const operand of plain.length > 1 ? bySelectivity(plain) : plain) {
    if (result !== null && result.count === 0) return result;
    const joined: WhereContext = result === null ? context : withinOf(context, result);
    const found: EntrySet = yield* findEntries(operand, joined);
    spendOnSets(context);
    result = result === null ? found : intersection(result, found);
  }
  for (const operand of nearest) {
    if (result !== null && result.count === 0) return result;
    const { findWithin } = meaningOf(operand);
    result = yield* (findWithin as NonNullable<typeof findWithin>)(operand, result, context);
  }
  return result ?? context.reader.all();
}

/** Without a spread, which makes an object of a class of its own each time. */
function withinOf(context: WhereContext, within: EntrySet): WhereContext {
  const { reader, findDocument, compareExchangeOf, textTest, stopWordsOf } = context;
  return { reader, findDocument, compareExchangeOf, textTest, stopWordsOf, within };
}

/**
 * Orders conditions by estimated selectivity: later conditions check only the entries that earlier conditions found.
 */
function bySelectivity(operands: readonly Condition[]): readonly Condition[] {
  return operands.toSorted((one, other) => rankOf(one) - rankOf(other));
}

function rankOf(operand: Condition): number {
  if (operand.kind === "comparison") return operand.operator === "=" ? 0 : 3;
  if (operand.kind === "in") return 1;
  return operand.kind === "between" ? 3 : 2;
}

/**
 * Splits the operands of an `and`, including operands of nested ones, into ordinary conditions and nearest-neighbor
 * conditions, which select the best matches of the former.
 */
function parted(operands: readonly Condition[]): [readonly Condition[], MeantFieldCondition[]] {
  if (!operands.some((operand) => operand.kind === "and" || isNearest(operand))) {
    return [operands, []];
  }
  const all = operands.flatMap((operand) =>
    operand.kind === "and" ? operand.operands : [operand],
  );
  const nearest = all.filter(isNearest);
  return nearest.length === 0
    ? [operands, nearest]
    : [all.filter((operand) => !isNearest(operand)), nearest];
}

/** Collects the entries of all operands in one set; some operands on the same field are evaluated together. */
function* findAny(operands: readonly Condition[], context: WhereContext): Work<EntrySet> {
  let first: EntrySet | null = null;
  let builder: EntrySetBuilder | null = null;
  for (const { joined, conditions } of groupsOf(operands)) {
    const found: EntrySet =
      joined === null
        ? yield* findEntries(conditions[0] as Condition, context) // a group has one at least
        : yield* joined.find(conditions as MeantFieldCondition[], context, findEntries);
    if (found.count === 0) continue;
    if (first === null) {
      first = found;
      continue;
    }
    if (builder === null) {
      builder = new EntrySetBuilder(context.reader.view.size);
      builder.addSet(first);
    }
    builder.addSet(found);
    if (found.list === null) spendOnSets(context);
  }
  return builder?.finish() ?? first ?? EntrySet.empty;
}

/** Conditions that are found together; without `joined`, one. */
interface ConditionGroup {
  readonly joined: JoinedMeaning<MeantFieldCondition> | null;
  readonly conditions: Condition[];
}

/** Groups the conditions of an `or`: conditions of one type on one field form a group if their meaning supports it. */
function groupsOf(operands: readonly Condition[]): Iterable<ConditionGroup> {
  const groups: ConditionGroup[] = [];
  const known = new Map<string, ConditionGroup>();
  for (const operand of operands) {
    const joined = joinedMeaning(operand);
    const key =
      joined === null ? null : `${operand.kind} ${(operand as MeantFieldCondition).field.name}`;
    const group = key === null ? undefined : known.get(key);
    if (group !== undefined) {
      group.conditions.push(operand);
      continue;
    }
    const added = { joined, conditions: [operand] };
    groups.push(added);
    if (key !== null) known.set(key, added);
  }
  return groups;
}

function joinedMeaning(condition: Condition): JoinedMeaning<MeantFieldCondition> | null {
  if (!("field" in condition) || condition.kind === "none" || isId(condition.field)) return null;
  const { joined } = meaningOf(condition);
  return joined?.isJoined(condition) ? joined : null;
}
