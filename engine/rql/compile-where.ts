/**
 * A condition -> the entries of an index that fulfil it.
 *
 * The rules, some of them surprising, are RavenDB 7.2.7's: text without case, numbers by their whole part when
 * compared with an integer, dates as instants, `!=` and `not` as complements, arrays by any element.
 */
import { unreachable } from "../assert.ts";
import { EngineError } from "../errors.ts";
import { parseSearchText } from "../indexing/analyzer.ts";
import { EntrySet, intersection, union } from "../indexing/entry-set.ts";
import type { FieldSearch } from "../indexing/field-search.ts";
import type { IndexReader } from "../indexing/index-reader.ts";
import type { Bound, Condition, FieldReference } from "./analyzed-query.ts";
import { fuzzyTest } from "./compile-fuzzy.ts";
import { searchLucene } from "./compile-lucene.ts";
import type { Scalar } from "./query-parameters.ts";

/** What the evaluation of conditions needs beside the index. */
export interface WhereContext {
  readonly reader: IndexReader;
  findDocument(id: string): number;
  /** The JSON text of a compare-exchange value, or null. */
  compareExchangeOf(key: string): string | null;
  textTest(pattern: string): (text: string) => boolean;
}

type ConditionOf<Kind extends Condition["kind"]> = Extract<Condition, { readonly kind: Kind }>;

/** The entries that fulfil a condition. @throws query-invalid, not-supported, invalid-argument */
export function findEntries(condition: Condition, context: WhereContext): EntrySet {
  const { reader } = context;
  switch (condition.kind) {
    case "true":
      return reader.all();
    case "none":
      return EntrySet.empty;
    case "and":
      return findAll(condition.operands, context);
    case "intersect":
      return intersectDocuments(condition.operands, context);
    case "or":
      return condition.operands
        .map((operand) => findEntries(operand, context))
        .reduce((left, right) => union(left, right), EntrySet.empty);
    case "not":
      return reader.complement(findEntries(condition.operand, context));
    case "boost":
      return findEntries(condition.operand, context);
    default:
      return isId(condition.field) ? findIds(condition, context) : findField(condition, context);
  }
}

function findAll(operands: readonly Condition[], context: WhereContext): EntrySet {
  let result: EntrySet | null = null;
  for (const operand of operands) {
    if (result !== null && result.count === 0) return result;
    const found = findEntries(operand, context);
    result = result === null ? found : intersection(result, found);
  }
  return result ?? context.reader.all();
}

/** Each operand on some entry of the same document. */
function intersectDocuments(operands: readonly Condition[], context: WhereContext): EntrySet {
  const { store } = context.reader;
  let documents: Set<number> | null = null;
  for (const operand of operands) {
    const found = new Set<number>();
    for (const entry of findEntries(operand, context).toList()) {
      found.add(store.documents[entry] as number);
    }
    if (documents === null) documents = found;
    else for (const document of documents) if (!found.has(document)) documents.delete(document);
  }
  return context.reader.ofDocuments([...(documents ?? [])]);
}

type FieldCondition = Exclude<
  Condition,
  { readonly kind: "true" | "none" | "and" | "or" | "intersect" | "not" | "boost" }
>;

function isId(field: FieldReference): boolean {
  return field.name === "id()";
}

function fieldOf(
  field: FieldReference,
  form: "lower" | "exact" | "words",
  context: WhereContext,
): FieldSearch | undefined {
  const found = context.reader.field(field.name, form);
  if (found === undefined && form !== "lower") return fieldOf(field, "lower", context);
  return found;
}

function findField(condition: FieldCondition, context: WhereContext): EntrySet {
  switch (condition.kind) {
    case "comparison":
      return findComparison(condition, context);
    case "between": {
      const field = fieldOf(condition.field, formOf(condition.isExact), context);
      return field === undefined ? EntrySet.empty : findRange(field, condition.low, condition.high);
    }
    case "in":
      return findIn(condition, context);
    case "startsWith":
      return (
        fieldOf(condition.field, formOf(condition.isExact), context)?.startsWith(condition.text) ??
        EntrySet.empty
      );
    case "endsWith": {
      const field = fieldOf(condition.field, formOf(condition.isExact), context);
      if (field === undefined) return EntrySet.empty;
      // As with startsWith: what ends with nothing is the empty text alone.
      return condition.text === "" ? field.equalsTerm("") : field.endsWith(condition.text);
    }
    case "exists":
      return fieldOf(condition.field, "lower", context)?.exists() ?? EntrySet.empty;
    case "search":
      return findWords(condition, context);
    case "proximity":
      return findNear(condition, context);
    case "regex":
      return (
        fieldOf(condition.field, "lower", context)?.matching(context.textTest(condition.text)) ??
        EntrySet.empty
      );
    case "fuzzy": {
      const test = fuzzyTest(condition.text, condition.similarity);
      return fieldOf(condition.field, "lower", context)?.matching(test) ?? EntrySet.empty;
    }
    case "lucene": {
      const field = fieldOf(condition.field, "lower", context);
      const words = context.reader.field(condition.field.name, "words");
      return field === undefined
        ? EntrySet.empty
        : searchLucene(condition.text, words ?? field, context.reader);
    }
    default:
      return unreachable(condition);
  }
}

function formOf(isExact: boolean): "lower" | "exact" {
  return isExact ? "exact" : "lower";
}

function findComparison(condition: ConditionOf<"comparison">, context: WhereContext): EntrySet {
  const value = comparedValue(condition.value, context);
  const field = fieldOf(condition.field, formOf(condition.isExact), context);
  switch (condition.operator) {
    case "=":
      return field === undefined ? EntrySet.empty : findEqual(field, value);
    case "!=":
      return field === undefined
        ? context.reader.all()
        : context.reader.complement(findEqual(field, value));
    case "<":
    case "<=":
      return findBelow(field, { value, isInclusive: condition.operator === "<=" });
    case ">":
    case ">=":
      return findAbove(field, { value, isInclusive: condition.operator === ">=" });
    default:
      return unreachable(condition.operator);
  }
}

function comparedValue(value: ConditionOf<"comparison">["value"], context: WhereContext): Scalar {
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

/** Conditions on ids, without case; ids are not terms. */
function findIds(condition: FieldCondition, context: WhereContext): EntrySet {
  const { reader } = context;
  switch (condition.kind) {
    case "comparison":
      return findIdComparison(condition, context);
    case "between": {
      const low = idText(condition.low.value);
      const high = idText(condition.high.value);
      return reader.idsMatching((id) => id >= low && id <= high);
    }
    case "in": {
      const found = condition.values.map((value) => context.findDocument(idText(value)));
      if (condition.isAll && new Set(found).size > 1) return EntrySet.empty;
      return reader.ofDocuments(found);
    }
    case "startsWith": {
      const prefix = condition.text.toLowerCase();
      return reader.idsMatching((id) => id.startsWith(prefix));
    }
    case "endsWith": {
      const suffix = condition.text.toLowerCase();
      return reader.idsMatching((id) => id.endsWith(suffix));
    }
    case "exists":
      return reader.all();
    case "regex":
      return reader.idsMatching(context.textTest(condition.text));
    case "fuzzy":
      return reader.idsMatching(fuzzyTest(condition.text, condition.similarity));
    case "search":
    case "proximity":
    case "lucene":
      return reader.idsMatching(idSearchTest(condition.text));
    default:
      return unreachable(condition);
  }
}

/** An id is one word to search(): pieces of the text are whole ids or wildcards. */
function idSearchTest(text: string): (id: string) => boolean {
  const pieces = text
    .toLowerCase()
    .split(/\s+/u)
    .filter((piece) => piece !== "");
  return (id) =>
    pieces.some((piece) => {
      const bare = piece.replace(/^\*|\*$/g, "");
      if (piece.startsWith("*")) return piece.endsWith("*") ? id.includes(bare) : id.endsWith(bare);
      return piece.endsWith("*") ? id.startsWith(bare) : id === bare;
    });
}

function findIdComparison(condition: ConditionOf<"comparison">, context: WhereContext): EntrySet {
  const { reader } = context;
  const value = idText(comparedValue(condition.value, context));
  switch (condition.operator) {
    case "=":
      return reader.ofDocuments([context.findDocument(value)]);
    case "!=":
      return reader.complement(reader.ofDocuments([context.findDocument(value)]));
    case "<":
      return reader.idsMatching((id) => id < value);
    case "<=":
      return reader.idsMatching((id) => id <= value);
    case ">":
      return reader.idsMatching((id) => id > value);
    case ">=":
      return reader.idsMatching((id) => id >= value);
    default:
      return unreachable(condition.operator);
  }
}

function idText(value: Scalar): string {
  return String(value.value ?? "").toLowerCase();
}

function findEqual(field: FieldSearch, value: Scalar): EntrySet {
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

function findBelow(field: FieldSearch | undefined, bound: Bound): EntrySet {
  refuseNull(bound.value);
  return field === undefined ? EntrySet.empty : findRange(field, null, bound);
}

function findAbove(field: FieldSearch | undefined, bound: Bound): EntrySet {
  refuseNull(bound.value);
  return field === undefined ? EntrySet.empty : findRange(field, bound, null);
}

function refuseNull(value: Scalar): void {
  if (value.type === "null") {
    throw new EngineError(
      "not-supported",
      "A range of null is not supported; use = or != with null.",
    );
  }
}

/** The type of the bounds decides how values are compared. A range from null begins below everything. */
function findRange(field: FieldSearch, low: Bound | null, high: Bound | null): EntrySet {
  const types = [low, high].map((bound) => bound?.value.type);
  if (types.includes("null"))
    return low?.value.type === "null" && high?.value.type === "null"
      ? field.isNull()
      : EntrySet.empty;
  if (types.includes("string") || types.includes("boolean")) {
    return field.rangeText(textBound(low), textBound(high));
  }
  if (types.includes("double")) return field.rangeDouble(textBound(low), textBound(high));
  return field.rangeLong(textBound(low), textBound(high));
}

function textBound(bound: Bound | null): { text: string; isInclusive: boolean } | null {
  if (bound === null) return null;
  return { text: String(bound.value.value), isInclusive: bound.isInclusive };
}

function findIn(condition: ConditionOf<"in">, context: WhereContext): EntrySet {
  const field = fieldOf(condition.field, formOf(condition.isExact), context);
  if (field === undefined) return EntrySet.empty;
  let result: EntrySet | null = null;
  for (const value of condition.values) {
    const found = findListed(field, value);
    if (result === null) result = found;
    else result = condition.isAll ? intersection(result, found) : union(result, found);
  }
  return result ?? EntrySet.empty;
}

/** A value of a list is compared as a term: 18 finds the text "18" too, and not 18.5; a day no time of that day. */
function findListed(field: FieldSearch, value: Scalar): EntrySet {
  if (value.type === "null") return field.isNull();
  if (value.type === "string") return field.equalsListedText(value.value);
  return field.equalsTerm(String(value.value));
}

function findWords(condition: ConditionOf<"search">, context: WhereContext): EntrySet {
  const field = fieldOf(condition.field, "words", context);
  if (field === undefined) return EntrySet.empty;
  const analyze = context.reader.analyzerOf(condition.field.name);
  return field.search(parseSearchText(condition.text, analyze), condition.isAll);
}

function findNear(condition: ConditionOf<"proximity">, context: WhereContext): EntrySet {
  const field = fieldOf(condition.field, "words", context);
  if (field === undefined) return EntrySet.empty;
  const words: string[] = [];
  context.reader.analyzerOf(condition.field.name)(condition.text, (word) => words.push(word));
  return words.length === 0 ? EntrySet.empty : field.phrase(words, condition.distance);
}
