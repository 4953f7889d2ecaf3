/**
 * `vector.search(FIELD, VECTOR, minimum similarity?, number of candidates?)`: the entries whose vectors are nearest to
 * a vector (indexing/vectors/vector-column.ts), with the errors of RavenDB 7.2.7 (measured).
 *
 * Combined with other conditions by `and`, it selects the nearest entries among the matches of the other conditions.
 * Results are ordered by similarity, unless the query has an explicit order.
 */
import { EngineError } from "../../base/errors.ts";
import { vectorBytesMax } from "../../base/limits.ts";
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import { EntrySet, EntrySetBuilder } from "../../indexing/columns/entry-set.ts";
import type { IndexReader } from "../../indexing/index-reader.ts";
import { vectorColumnOf } from "../../indexing/vectors/vector-column.ts";
import {
  dimensionsOf,
  plainForm,
  type VectorForm,
  vectorsOf,
} from "../../indexing/vectors/vector-form.ts";
import type { FieldReference } from "../analysis/analyzed-query.ts";
import { type ParameterValue, plainText } from "../analysis/query-parameters.ts";
import {
  fieldReference,
  invalid,
  notSupported,
  type QueryScope,
  resolveValue,
} from "../analysis/query-scope.ts";
import type { Argument, Call } from "../syntax/ast.ts";
import { pathText } from "../syntax/print.ts";
import { fieldArgument, isCallOf } from "./arguments.ts";
import { nothing } from "./finding.ts";
import { needsIndex, onlyInWhere } from "./places.ts";
import type { RqlFunction, ScorePart, Scoring, WhereContext } from "./rql-function.ts";

/** Some entries whose vectors are nearest to the given ones. */
interface VectorCondition {
  readonly kind: "vector.search";
  readonly field: FieldReference;
  readonly sought:
    | { readonly kind: "value"; readonly value: ParameterValue }
    /** The vectors of a document. */
    | { readonly kind: "document"; readonly id: string };
  /** From 0 to 1. */
  readonly minimum: number;
  readonly count: number;
  /** Every vector is compared. */
  readonly comparesAll: boolean;
}

/** Entries that are found without a number of candidates. */
const defaultCount = 16;

/** The methods around a field, by name, and the forms that they stand for. */
const forms: ReadonlyMap<string, VectorForm> = new Map([
  ["embedding.f32_i8", { source: "Single", stored: "Int8" }],
  ["embedding.f32_i1", { source: "Single", stored: "Binary" }],
  ["embedding.i8", { source: "Int8", stored: "Int8" }],
  ["embedding.i1", { source: "Binary", stored: "Binary" }],
]);
const textForms = ["embedding.text", "embedding.text_i8", "embedding.text_i1"];

/** By query and condition: the entries found, and how near they are. */
const foundBy = new WeakMap<IndexReader, Map<VectorCondition, ReadonlyMap<number, number>>>();

export const vectorSearch: RqlFunction<VectorCondition> = {
  ...onlyInWhere,
  shownName: "VectorSearch",
  where: {
    analyze: (scope, call, { isExact }) => analyzeSearch(scope, call, isExact),
    meaning: {
      kind: "vector.search",
      of: "field",
      indexUse: "plain",
      find: (condition, context) => findNearest(condition, null, context),
      findWithin: findNearest,
      ordersByScore: true,
      findIds: nothing,
      idsOf: () => undefined,
      searchedTexts: () => [],
      score: scoreNearest,
      joined: null,
    },
  },
  filter: needsIndex,
};

function analyzeSearch(scope: QueryScope, call: Call, isExact: boolean): VectorCondition {
  const field = vectorField(scope, call);
  const [, second, minimum, count] = call.args;
  const sought = soughtOf(scope, second);
  return {
    kind: "vector.search",
    field,
    sought,
    minimum: numberOr(scope, minimum, 0),
    count: Math.max(1, Math.trunc(numberOr(scope, count, defaultCount))),
    comparesAll: isExact,
  };
}

function numberOr(scope: QueryScope, argument: Argument | undefined, fallback: number): number {
  if (argument === undefined) return fallback;
  const isValue = argument.kind === "literal" || argument.kind === "parameter";
  const value = isValue ? resolveValue(scope, argument) : null;
  if (value?.type === "null") return fallback;
  if (value?.type === "long" || value?.type === "double") return Number(value.value);
  throw notSupported("vector.search() minimumMatch must be a float, but was: String");
}

/** Returns a field, or `embedding.…(FIELD)` in a dynamic query. */
function vectorField(scope: QueryScope, call: Call): FieldReference {
  const [first] = call.args;
  if (first?.kind !== "call") {
    const field = fieldArgument(scope, call, 0);
    return scope.isDynamic ? made(field, null, plainForm) : field;
  }
  const name = first.name.toLowerCase();
  if (!scope.isDynamic) {
    throw invalid(
      scope,
      `Method ${call.name}() expects that first argument will be a field name when static index is queried`,
    );
  }
  if (textForms.includes(name)) throw noModel(scope, first);
  const form = forms.get(name);
  if (form === undefined) throw notSupported(`Method '${first.name}' is not supported.`);
  return made(fieldArgument(scope, first, 0), name, form);
}

function made(field: FieldReference, method: string | null, form: VectorForm): FieldReference {
  const path = pathText(field.path);
  const name = `vector.search(${method === null ? path : `${method}(${path})`})`;
  return { name, path: [], isQuoted: false, alias: null, vector: { path: field.path, form } };
}

/** Text needs a model that an embeddings generation task names; such tasks are not supported. */
function noModel(scope: QueryScope, { name, args }: Call): EngineError {
  const task = args.find((argument) => isCallOf(argument, "ai.task"));
  const [named] = task === undefined ? [] : (task as Call).args;
  if (named?.kind === "literal" || named?.kind === "parameter") {
    const text = plainText(resolveValue(scope, named));
    return new EngineError(
      "query-invalid",
      `Couldn't find Embeddings Generation task with '${text}' identifier`,
    );
  }
  return notSupported(
    `Method '${name}' is not supported: this server has no model that makes embeddings of text. ` +
      "Store the embeddings in documents, and pass that of the text.",
  );
}

function soughtOf(scope: QueryScope, argument: Argument | undefined): VectorCondition["sought"] {
  if (argument === undefined) {
    throw new EngineError(
      "out-of-range",
      "Index was out of range. Must be non-negative and less than the size of the collection. (Parameter 'index')",
    );
  }
  if (argument.kind === "literal" || argument.kind === "parameter") {
    const value = resolveValue(scope, argument);
    if (value.type !== "null") return { kind: "value", value };
    throw new EngineError(
      "null-reference",
      "Object reference not set to an instance of an object.",
    );
  }
  if (argument.kind === "call") {
    const [id] = argument.args;
    const name = argument.name.toLowerCase();
    if (name === "embedding.fordoc" && (id?.kind === "literal" || id?.kind === "parameter")) {
      return { kind: "document", id: plainText(resolveValue(scope, id)) };
    }
    if (textForms.includes(name)) throw noModel(scope, argument);
    throw notSupported(`Method '${argument.name}' is not supported.`);
  }
  const shown = argument.kind === "field" ? fieldReference(scope, argument).name : argument.kind;
  throw invalid(
    scope,
    `Method vector.search() expects value token as second argument, got ${shown}`,
  );
}

function* findNearest(
  condition: VectorCondition,
  within: EntrySet | null,
  context: WhereContext,
): Work<EntrySet> {
  const { field, sought, minimum, count, comparesAll } = condition;
  const { reader } = context;
  const form = field.vector?.form ?? reader.vectorForm(field.name);
  const column = reader.column(field.name, "lower");
  if (column === undefined) return EntrySet.empty;
  const nearest = vectorColumnOf(column, form.stored);
  if (nearest.length === 0) return EntrySet.empty;
  const vectors =
    sought.kind === "value"
      ? yield* queryVectors(sought.value, form, reader.budget)
      : documentVectors(sought.id, context, (entry) => nearest.vectorsOf(entry));
  if (vectors.length === 0) return EntrySet.empty;
  for (const { length } of vectors) {
    if (length === nearest.length) continue;
    const has = dimensionsOf(nearest.length, form.stored);
    const passed = dimensionsOf(length, form.stored);
    throw new EngineError(
      "json-invalid",
      `Vector field \`${field.name}\` has ${has} dimensions, but the vector passed to vector.search() has ${passed} dimensions.`,
    );
  }
  yield* nearest.refresh(reader.budget);
  const search = { vectors, count, minimum, isExact: comparesAll, within };
  const scores = yield* nearest.find(search, reader.view, reader.budget);
  const known = foundBy.get(reader) ?? new Map<VectorCondition, ReadonlyMap<number, number>>();
  foundBy.set(reader, known.set(condition, scores));
  const builder = new EntrySetBuilder(reader.view.size);
  for (const entry of scores.keys()) {
    builder.add(entry);
    reader.budget.spend(1);
    if (reader.budget.isDue) yield;
  }
  return builder.finish();
}

/** Returns the vectors of a value of a query, which may be many. */
function* queryVectors(
  value: ParameterValue,
  form: VectorForm,
  budget: WorkBudget,
): Work<Buffer[]> {
  const isList = value.type === "array" && isOneOfMany(value.items[0]);
  if (!isList) return vectorsOf(jsonOf(value), form);
  const vectors: Buffer[] = [];
  for (const item of value.items) {
    for (const vector of vectorsOf([jsonOf(item)], form)) {
      vectors.push(vector);
      budget.hold(vector.length);
      budget.spend(vector.length);
    }
    if (budget.isDue) yield;
  }
  return vectors;
}

function isOneOfMany(first: ParameterValue | undefined): boolean {
  return first?.type === "array" || first?.type === "string" || first?.type === "object";
}

function documentVectors(
  id: string,
  { reader, findDocument }: WhereContext,
  vectorsOf: (entry: number) => Buffer[],
): Buffer[] {
  const docNum = findDocument(id);
  const vectors: Buffer[] = [];
  if (docNum < 0) return vectors;
  const first = reader.store.firstOf(docNum);
  for (let at = first; at >= 0 && reader.isOf(at, docNum); at++) vectors.push(...vectorsOf(at));
  return vectors;
}

/** Returns the cosine, or the share of equal bits, of the entries that were found. */
function* scoreNearest(
  condition: VectorCondition,
  factor: number,
  scoring: Scoring,
): Work<ScorePart> {
  const label = `${condition.kind} on ${condition.field.name}: the similarity`;
  return yield* scoring.byEntry(label, condition.field.name, factor, ({ reader }) => {
    const scores = foundBy.get(reader)?.get(condition);
    return (entry) => scores?.get(entry) ?? 0;
  });
}

function jsonOf(value: ParameterValue): unknown {
  switch (value.type) {
    case "array":
      if (value.items.length > vectorBytesMax) {
        const most = `at most ${vectorBytesMax} are allowed.`;
        throw new EngineError(
          "json-invalid",
          `A vector has ${value.items.length} numbers; ${most}`,
        );
      }
      return value.items.map(jsonOf);
    case "object":
      return Object.fromEntries([...value.fields].map(([key, item]) => [key, jsonOf(item)]));
    case "long":
      return Number(value.value);
    default:
      return value.value;
  }
}
