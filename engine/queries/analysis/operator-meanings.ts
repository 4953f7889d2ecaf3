/**
 * The meaning of conditions with operators: a field compared with a value, between two, or in a list.
 *
 * The rules, some of them surprising, are RavenDB 7.2.7's: text without case, numbers by their whole part when compared
 * with an integer, dates as instants, `!=` as a complement, arrays by any element.
 */
import { unreachable } from "../../base/assert.ts";
import { lowerCased } from "../../base/case-folding.ts";
import { EngineError } from "../../base/errors.ts";
import type { Work } from "../../base/scheduling/work-budget.ts";
import { EntrySet, union } from "../../indexing/columns/entry-set.ts";
import type { FieldSearch, ListedValue, RangeType } from "../../indexing/columns/field-search.ts";
import { fieldOf, formOf, nothing, spendOnSets, weighedWhole } from "../functions/finding.ts";
import type { FieldMeaning, WhereContext } from "../functions/rql-function.ts";
import type {
  BetweenCondition,
  Bound,
  ComparisonCondition,
  ComparisonValue,
  FieldCondition,
  InCondition,
} from "./analyzed-query.ts";
import { plainText, type Scalar } from "./query-parameters.ts";

/** Cost of looking up a document. */
const documentUnits = 8;

/** Returns the text of a value as `highlight()` looks for it; none for values without one. */
function soughtOf(value: ComparisonValue | Bound["value"]): readonly string[] {
  const hasText = value.type === "string" || value.type === "long" || value.type === "double";
  return hasText ? [plainText(value)] : [];
}

const comparison: FieldMeaning<ComparisonCondition> = {
  kind: "comparison",
  of: "field",
  indexUse: "plain",
  find: findComparison,
  findIds: findIdComparison,
  idsOf: ({ operator, value }) => {
    if (operator !== "=" || value.type === "compare-exchange") return undefined;
    return { kind: "ids", ids: value.type === "null" ? [] : [plainText(value)] };
  },
  searchedTexts: ({ operator, value }) => (operator === "!=" ? [] : soughtOf(value)),
  joined: null,
  score: weighedWhole,
};

const between: FieldMeaning<BetweenCondition> = {
  kind: "between",
  of: "field",
  indexUse: "plain",
  findsSeveralTerms: true,
  find: (condition, context) => {
    const { field, isExact } = condition;
    const search = fieldOf(field, formOf(isExact), context);
    return search === undefined
      ? nothing()
      : findBetween(search, condition, context.reader.isLucene);
  },
  findIds: (condition, { reader }) => {
    const low = idText(condition.low.value);
    const high = idText(condition.high.value);
    return reader.idsMatching((id) => id >= low && id <= high);
  },
  idsOf: () => undefined,
  searchedTexts: ({ low, high }) => [...soughtOf(low.value), ...soughtOf(high.value)],
  joined: null,
  score: weighedWhole,
};

const listed: FieldMeaning<InCondition> = {
  kind: "in",
  of: "field",
  indexUse: "plain",
  findsSeveralTerms: true,
  find: ({ field, values, isAll, isExact }, context) =>
    fieldOf(field, formOf(isExact), context)?.listed(listedValues(values), isAll) ?? nothing(),
  findIds: findListedIds,
  idsOf: ({ values, isAll }) => {
    const ids = values.filter(({ type }) => type !== "null").map(plainText);
    const isOneOfAll = isAll && new Set(ids.map(lowerCased)).size > 1;
    return { kind: "ids", ids: isOneOfAll ? [] : ids };
  },
  searchedTexts: ({ values }) =>
    values.flatMap(({ value }) => (typeof value === "string" ? [value] : [])),
  joined: null,
  score: weighedWhole,
};

export const operatorMeanings: {
  readonly [Kind in FieldCondition["kind"]]: FieldMeaning<
    Extract<FieldCondition, { readonly kind: Kind }>
  >;
} = { comparison, between, in: listed };

function* findComparison(condition: ComparisonCondition, context: WhereContext): Work<EntrySet> {
  const { reader } = context;
  const value = comparedValue(condition.value, context);
  const field = fieldOf(condition.field, formOf(condition.isExact), context);
  switch (condition.operator) {
    case "=":
      return field === undefined ? EntrySet.empty : yield* findEqual(field, value);
    case "!=":
      spendOnSets(context);
      return field === undefined ? reader.all() : reader.complement(yield* findEqual(field, value));
    case "<":
    case "<=":
      return yield* findBelow(field, { value, isInclusive: condition.operator === "<=" });
    case ">":
    case ">=":
      return yield* findAbove(field, { value, isInclusive: condition.operator === ">=" });
    default:
      return unreachable(condition.operator);
  }
}

/**
 * Returns the entries of `field = value` where they are few; null: they may be many, or are found by more than their
 * terms.
 */
export function findEqualNow(
  { field, operator, value, isExact }: ComparisonCondition,
  context: WhereContext,
): EntrySet | null {
  if (operator !== "=" || value.type === "null" || value.type === "double") return null;
  if (value.type === "compare-exchange") return null;
  const found = fieldOf(field, formOf(isExact), context);
  if (found === undefined) return EntrySet.empty;
  if (value.type === "long") return found.equalsLongNow(value.value);
  return value.type === "string"
    ? found.equalsTextNow(value.value)
    : found.equalsTermNow(String(value.value));
}

function comparedValue(value: ComparisonCondition["value"], context: WhereContext): Scalar {
  if (value.type !== "compare-exchange") return value;
  const text = context.compareExchangeOf(value.key);
  if (text === null) return { type: "null", value: null };
  if (/^-?\d+$/.test(text)) return { type: "long", value: BigInt(text) };
  const parsed: unknown = JSON.parse(text);
  if (typeof parsed === "string") return { type: "string", value: parsed };
  if (typeof parsed === "number") return { type: "double", value: parsed };
  if (typeof parsed === "boolean") return { type: "boolean", value: parsed };
  return { type: "null", value: null };
}

function* findIdComparison(condition: ComparisonCondition, context: WhereContext): Work<EntrySet> {
  const { reader } = context;
  const value = idText(comparedValue(condition.value, context));
  switch (condition.operator) {
    case "=":
      return yield* reader.ofDocuments([context.findDocument(value)]);
    case "!=":
      return reader.complement(yield* reader.ofDocuments([context.findDocument(value)]));
    case "<":
      return yield* reader.idsMatching((id) => id < value);
    case "<=":
      return yield* reader.idsMatching((id) => id <= value);
    case ">":
      return yield* reader.idsMatching((id) => id > value);
    case ">=":
      return yield* reader.idsMatching((id) => id >= value);
    default:
      return unreachable(condition.operator);
  }
}

function* findListedIds({ values, isAll }: InCondition, context: WhereContext): Work<EntrySet> {
  const { reader } = context;
  const found = new Set<number>();
  for (const value of values) {
    found.add(context.findDocument(idText(value)));
    reader.budget.spend(documentUnits);
    if (reader.budget.isDue) yield;
  }
  if (isAll && found.size > 1) return EntrySet.empty;
  return yield* reader.ofDocuments(found);
}

function idText(value: Scalar): string {
  return lowerCased(String(value.value ?? ""));
}

function findEqual(field: FieldSearch, value: Scalar): Work<EntrySet> {
  switch (value.type) {
    case "null":
      return field.isNull();
    case "boolean":
      return field.equalsTerm(String(value.value));
    case "long":
      return field.equalsLong(value.value.toString());
    case "double":
      return field.equalsDouble(value.value);
    case "string":
      return field.equalsText(value.value);
    default:
      return unreachable(value);
  }
}

function findBelow(field: FieldSearch | undefined, bound: Bound): Work<EntrySet> {
  refuseNull(bound.value);
  return field === undefined ? nothing() : findRange(field, null, bound);
}

function findAbove(field: FieldSearch | undefined, bound: Bound): Work<EntrySet> {
  refuseNull(bound.value);
  return field === undefined ? nothing() : findRange(field, bound, null);
}

function refuseNull(value: Scalar): void {
  if (value.type === "null") {
    throw new EngineError(
      "not-supported",
      "A range of null is not supported; use = or != with null.",
    );
  }
}

/** The type of the bounds determines how values are compared. Null: no bound on that side. */
function findRange(field: FieldSearch, low: Bound | null, high: Bound | null): Work<EntrySet> {
  const [lowText, highText] = [textBound(low), textBound(high)];
  switch (rangeTypeOf(low, high)) {
    case "text":
      return field.rangeText(lowText, highText);
    case "double":
      return field.rangeDouble(lowText, highText);
    default:
      return field.rangeLong(lowText, highText);
  }
}

function rangeTypeOf(low: Bound | null, high: Bound | null): RangeType {
  const types = [low, high].map((bound) => bound?.value.type);
  if (types.includes("string") || types.includes("boolean")) return "text";
  return types.includes("double") ? "double" : "long";
}

/**
 * Returns a test for the terms of a field in a range whose bounds are not null. On an index made for Lucene, a range of
 * texts has the term of null and of the empty text, and one of numbers no dates.
 */
export function rangeTestOf(
  field: FieldSearch,
  low: Bound | null,
  high: Bound | null,
  isLucene: boolean,
): (term: number, text: string | null) => boolean {
  const type = rangeTypeOf(low, high);
  const test = field.rangeTest(type, textBound(low), textBound(high), !isLucene);
  if (!isLucene || type !== "text") return test;
  const isWithin = (text: string) =>
    (low === null || isOrdered(String(low.value.value), text, low.isInclusive)) &&
    (high === null || isOrdered(text, String(high.value.value), high.isInclusive));
  return (term, text) => (text === null ? test(term) : isWithin(text));
}

function isOrdered(left: string, right: string, isInclusive: boolean): boolean {
  return left < right || (isInclusive && left === right);
}

/**
 * Finds values between two bounds. Null as a lower bound (or `*`, which clients send) and null as an upper bound (or
 * `NULL`, which clients send) are no bounds. Without an upper bound, null is in the range, as it is sorted last
 * (measured on RavenDB 7.2.7). In indexes made for Lucene, `*` is no bound on either side, and the text of null is
 * `NULL_VALUE`.
 */
function* findBetween(
  field: FieldSearch,
  { low, high }: BetweenCondition,
  isLucene: boolean,
): Work<EntrySet> {
  const from = isOpen(low, "*") ? null : low;
  const to = isOpen(high, isLucene ? "*" : "NULL") ? null : high;
  if (from === null && to === null) return yield* field.exists();
  const found = yield* findRange(field, from, to);
  const hasNull = isLucene ? from === null && isTextAbove("NULL_VALUE", to) : to === null;
  return hasNull ? union(found, yield* field.isNull()) : found;
}

function isTextAbove(text: string, bound: Bound | null): boolean {
  return bound?.value.type === "string" && bound.value.value.toLowerCase() > text;
}

function isOpen({ value }: Bound, word: string): boolean {
  return value.type === "null" || (value.type === "string" && value.value === word);
}

function textBound(bound: Bound | null): { text: string; isInclusive: boolean } | null {
  if (bound === null) return null;
  return { text: String(bound.value.value), isInclusive: bound.isInclusive };
}

/**
 * A value of a list is compared as a term: 18 also finds the text "18", but not 18.5; a day finds no time of that day.
 */
function* listedValues(values: readonly Scalar[]): Generator<ListedValue> {
  for (const { type, value } of values) {
    const text = Object.is(value, -0) ? "-0" : String(value);
    yield type === "null" ? null : { text, isText: type === "string" };
  }
}
