/**
 * A condition -> the entries of an index that match it, as work that pauses (work-budget.ts).
 *
 * The rules, some of them surprising, are RavenDB 7.2.7's: text without case, numbers by their whole part when compared
 * with an integer, dates as instants, `!=` and `not` as complements, arrays by any element.
 */
import { unreachable } from "../base/assert.ts";
import { EngineError } from "../base/errors.ts";
import type { Work, WorkBudget } from "../base/work-budget.ts";
import { parseSearchText, wordsOfPhrase } from "../indexing/analyzer.ts";
import { EntrySet, EntrySetBuilder, intersection } from "../indexing/entry-set.ts";
import type { FieldSearch, ListedValue } from "../indexing/field-search.ts";
import type { IndexReader } from "../indexing/index-reader.ts";
import type { Bound, Condition, FieldReference } from "./analyzed-query.ts";
import { fuzzyTest } from "./compile-fuzzy.ts";
import { searchLucene } from "./compile-lucene.ts";
import type { Scalar } from "./query-parameters.ts";

/** What evaluating conditions needs besides the index. */
export interface WhereContext {
  readonly reader: IndexReader;
  findDocument(id: string): number;
  /** The JSON text of a compare-exchange value, or null. */
  compareExchangeOf(key: string): string | null;
  textTest(pattern: string): (text: string) => boolean;
}

type ConditionOf<Kind extends Condition["kind"]> = Extract<Condition, { readonly kind: Kind }>;

/** Base cost of a condition. */
const conditionUnits = 32;
/** Bits of two sets that are joined per unit. */
const bitsPerUnit = 1024;
/** Regular expressions tested in one walk over the terms of a field, and the limit of their total instructions. */
const testsPerWalk = 64;
const sizePerWalk = 1024;

/** The entries that match a condition. @throws query-invalid, not-supported, invalid-argument, work-limit */
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
    case "intersect":
      return yield* intersectDocuments(condition.operands, context);
    case "or":
      return yield* findAny(condition.operands, context);
    case "not":
      spendOnSets(context);
      return reader.complement(yield* findEntries(condition.operand, context));
    case "boost":
      return yield* findEntries(condition.operand, context);
    default:
      return yield* isId(condition.field)
        ? findIds(condition, context)
        : findField(condition, context);
  }
}

/** Charges the budget for joining two sets, which may be as large as the index. */
function spendOnSets({ reader }: WhereContext): void {
  reader.budget.spend(Math.ceil(reader.view.size / bitsPerUnit));
}

function* findAll(operands: readonly Condition[], context: WhereContext): Work<EntrySet> {
  let result: EntrySet | null = null;
  for (const operand of operands) {
    if (result !== null && result.count === 0) return result;
    const found: EntrySet = yield* findEntries(operand, context);
    spendOnSets(context);
    result = result === null ? found : intersection(result, found);
  }
  return result ?? context.reader.all();
}

/** One set for all operands, however many; walks over the terms of one field are combined. */
function* findAny(operands: readonly Condition[], context: WhereContext): Work<EntrySet> {
  let first: EntrySet | null = null;
  let builder: EntrySetBuilder | null = null;
  for (const operand of joinedWalks(operands)) {
    const found: EntrySet =
      "texts" in operand
        ? yield* findMatching(operand, context)
        : yield* findEntries(operand, context);
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

/** Regular expressions on one field, combined by `or`. */
interface JoinedWalk {
  readonly field: FieldReference;
  readonly texts: string[];
}

/** The conditions of an `or`, with the searches and the regular expressions on a field combined into a few. */
function joinedWalks(operands: readonly Condition[]): (Condition | JoinedWalk)[] {
  const joined: (Condition | JoinedWalk)[] = [];
  const walks = new Map<string, JoinedWalk>();
  const searches = new Map<string, { readonly at: number; readonly texts: string[] }>();
  for (const operand of operands) {
    if (operand.kind === "regex" && !isId(operand.field)) {
      const known = walks.get(operand.field.name);
      if (known !== undefined) known.texts.push(operand.text);
      else {
        const walk = { field: operand.field, texts: [operand.text] };
        walks.set(operand.field.name, walk);
        joined.push(walk);
      }
    } else if (operand.kind === "search" && isAnyWildcard(operand) && !isId(operand.field)) {
      const known = searches.get(operand.field.name);
      if (known !== undefined) known.texts.push(operand.text);
      else {
        searches.set(operand.field.name, { at: joined.length, texts: [operand.text] });
        joined.push(operand);
      }
    } else joined.push(operand);
  }
  for (const { at, texts } of searches.values()) {
    const search = joined[at] as ConditionOf<"search">;
    if (texts.length > 1) joined[at] = { ...search, text: texts.join(" "), isAll: false };
  }
  return joined;
}

/** Whether it is a search for one wildcard, which may be combined with others. */
function isAnyWildcard({ text }: ConditionOf<"search">): boolean {
  return /^\*?[^\s"\\*]+\*?$/u.test(text) && text.includes("*");
}

function* findMatching({ field, texts }: JoinedWalk, context: WhereContext): Work<EntrySet> {
  const { reader } = context;
  const search = fieldOf(field, "lower", context);
  const builder = new EntrySetBuilder(reader.view.size);
  let tests: ((text: string) => boolean)[] = [];
  let size = 0;
  for (const [i, text] of texts.entries()) {
    // The cost of compiling equals the number of instructions.
    const before = reader.budget.units;
    tests.push(context.textTest(text));
    size += reader.budget.units - before;
    if (reader.budget.isDue) yield;
    if (i + 1 < texts.length && tests.length < testsPerWalk && size < sizePerWalk) continue;
    if (search !== undefined) builder.addSet(yield* search.matching(...tests));
    tests = [];
    size = 0;
  }
  return builder.finish();
}

/** Each operand matches some entry of the same document. */
function* intersectDocuments(
  operands: readonly Condition[],
  context: WhereContext,
): Work<EntrySet> {
  const { reader } = context;
  let documents: Set<number> | null = null;
  let heldBytes = 0;
  for (const operand of operands) {
    const found = new Set<number>();
    const entries: EntrySet = yield* findEntries(operand, context);
    const bytes = Math.min(entries.count, documents?.size ?? entries.count) * documentBytes;
    reader.budget.hold(bytes);
    for (const entry of entries.toList()) {
      const document = reader.view.documents[entry] as number;
      if (documents === null || documents.has(document)) found.add(document);
      reader.budget.spend(documentUnits);
      if (reader.budget.isDue) yield;
    }
    documents = found;
    reader.budget.release(heldBytes);
    heldBytes = bytes;
  }
  return yield* reader.ofDocuments(documents ?? []);
}

/** Cost of adding a document to a set, and its bytes there. */
const documentUnits = 8;
const documentBytes = 32;

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

/** No entries, as work. */
// biome-ignore lint/correctness/useYield: it has nothing to wait for
function* nothing(): Work<EntrySet> {
  return EntrySet.empty;
}

function findField(condition: FieldCondition, context: WhereContext): Work<EntrySet> {
  switch (condition.kind) {
    case "comparison":
      return findComparison(condition, context);
    case "between": {
      const field = fieldOf(condition.field, formOf(condition.isExact), context);
      return field === undefined ? nothing() : findRange(field, condition.low, condition.high);
    }
    case "in":
      return findIn(condition, context);
    case "startsWith":
      return (
        fieldOf(condition.field, formOf(condition.isExact), context)?.startsWith(condition.text) ??
        nothing()
      );
    case "endsWith": {
      const field = fieldOf(condition.field, formOf(condition.isExact), context);
      if (field === undefined) return nothing();
      // As with startsWith: only the empty text ends with nothing.
      return condition.text === "" ? field.equalsTerm("") : field.endsWith(condition.text);
    }
    case "exists":
      return fieldOf(condition.field, "lower", context)?.exists() ?? nothing();
    case "search":
      return findWords(condition, context);
    case "proximity":
      return findNear(condition, context);
    case "regex":
      return (
        fieldOf(condition.field, "lower", context)?.matching(context.textTest(condition.text)) ??
        nothing()
      );
    case "fuzzy": {
      const test = fuzzyTest(condition.text, condition.similarity, context.reader.budget);
      return fieldOf(condition.field, "lower", context)?.matching(test) ?? nothing();
    }
    case "lucene": {
      const field = fieldOf(condition.field, "lower", context);
      const words = context.reader.field(condition.field.name, "words");
      return field === undefined
        ? nothing()
        : searchLucene(condition.text, words ?? field, context.reader);
    }
    default:
      return unreachable(condition);
  }
}

function formOf(isExact: boolean): "lower" | "exact" {
  return isExact ? "exact" : "lower";
}

function* findComparison(
  condition: ConditionOf<"comparison">,
  context: WhereContext,
): Work<EntrySet> {
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

/** Conditions on ids, case-insensitive; ids are not indexed as terms. */
function* findIds(condition: FieldCondition, context: WhereContext): Work<EntrySet> {
  const { reader } = context;
  switch (condition.kind) {
    case "comparison":
      return yield* findIdComparison(condition, context);
    case "between": {
      const low = idText(condition.low.value);
      const high = idText(condition.high.value);
      return yield* reader.idsMatching((id) => id >= low && id <= high);
    }
    case "in": {
      const found = new Set<number>();
      for (const value of condition.values) {
        found.add(context.findDocument(idText(value)));
        reader.budget.spend(documentUnits);
        if (reader.budget.isDue) yield;
      }
      if (condition.isAll && found.size > 1) return EntrySet.empty;
      return yield* reader.ofDocuments(found);
    }
    case "startsWith": {
      const prefix = condition.text.toLowerCase();
      return yield* reader.idsMatching((id) => id.startsWith(prefix));
    }
    case "endsWith": {
      const suffix = condition.text.toLowerCase();
      return yield* reader.idsMatching((id) => id.endsWith(suffix));
    }
    case "exists":
      return reader.all();
    case "regex":
      return yield* reader.idsMatching(context.textTest(condition.text));
    case "fuzzy":
      return yield* reader.idsMatching(
        fuzzyTest(condition.text, condition.similarity, reader.budget),
      );
    case "search":
    case "proximity":
    case "lucene":
      return yield* reader.idsMatching(idSearchTest(condition.text, reader.budget));
    default:
      return unreachable(condition);
  }
}

/** search() treats an id as one word: pieces of the text are whole ids or wildcards. */
function idSearchTest(text: string, budget: WorkBudget): (id: string) => boolean {
  const pieces = text
    .toLowerCase()
    .split(/\s+/u)
    .filter((piece) => piece !== "");
  const whole = new Set(pieces.filter((piece) => !/^\*|\*$/.test(piece)));
  const wildcards = pieces.filter((piece) => !whole.has(piece)).map(idWildcard);
  return (id) => {
    budget.spend(wildcards.length);
    return whole.has(id) || wildcards.some((test) => test(id));
  };
}

function idWildcard(piece: string): (id: string) => boolean {
  const bare = piece.replace(/^\*|\*$/g, "");
  if (!piece.startsWith("*")) return (id) => id.startsWith(bare);
  return piece.endsWith("*") ? (id) => id.includes(bare) : (id) => id.endsWith(bare);
}

function* findIdComparison(
  condition: ConditionOf<"comparison">,
  context: WhereContext,
): Work<EntrySet> {
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

function idText(value: Scalar): string {
  return String(value.value ?? "").toLowerCase();
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

/** The type of the bounds determines how values are compared. A range from null begins below everything. */
function findRange(field: FieldSearch, low: Bound | null, high: Bound | null): Work<EntrySet> {
  const types = [low, high].map((bound) => bound?.value.type);
  if (types.includes("null"))
    return low?.value.type === "null" && high?.value.type === "null" ? field.isNull() : nothing();
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

function findIn(condition: ConditionOf<"in">, context: WhereContext): Work<EntrySet> {
  const field = fieldOf(condition.field, formOf(condition.isExact), context);
  return field?.listed(listedValues(condition.values), condition.isAll) ?? nothing();
}

/**
 * A value of a list is compared as a term: 18 also finds the text "18", but not 18.5; a day finds no time of that day.
 */
function* listedValues(values: readonly Scalar[]): Generator<ListedValue> {
  for (const { type, value } of values) {
    yield type === "null" ? null : { text: String(value), isText: type === "string" };
  }
}

function* findWords(condition: ConditionOf<"search">, context: WhereContext): Work<EntrySet> {
  const field = fieldOf(condition.field, "words", context);
  if (field === undefined) return EntrySet.empty;
  const { reader } = context;
  const analyze = reader.analyzerOf(condition.field.name);
  const pieces = yield* parseSearchText(condition.text, analyze, reader.budget);
  return yield* field.search(pieces, condition.isAll);
}

function* findNear(condition: ConditionOf<"proximity">, context: WhereContext): Work<EntrySet> {
  const field = fieldOf(condition.field, "words", context);
  if (field === undefined) return EntrySet.empty;
  const words = wordsOfPhrase(condition.text, context.reader.analyzerOf(condition.field.name));
  return words.length === 0 ? EntrySet.empty : yield* field.phrase(words, condition.distance);
}
