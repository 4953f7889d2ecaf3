/**
 * `moreLikeThis(base, options)`: the entries that share terms with a base, which is an entry of the index, or an object
 * in JSON. One common term is enough; the options select the terms that count. The base itself is excluded.
 *
 * Rules and errors equal those of RavenDB 7.2.7, except for JSON: a text in it may have several words.
 */
import { EngineError } from "../../base/errors.ts";
import { likenessTermsMax } from "../../base/limits.ts";
import type { Work } from "../../base/scheduling/work-budget.ts";
import { difference, EntrySet } from "../../indexing/columns/entry-set.ts";
import {
  entriesOfTerms,
  type LikenessLimits,
  type LikeTerm,
  likenessScores,
  likeTerms,
  luceneLikenessScores,
  TermFrequencies,
} from "../../indexing/text/like-terms.ts";
import type { Condition } from "../analysis/analyzed-query.ts";
import { type ParameterValue, plainText } from "../analysis/query-parameters.ts";
import { invalid, type QueryScope, resolveValue, scalarOrNone } from "../analysis/query-scope.ts";
import type { Argument, Call, Value } from "../syntax/ast.ts";
import { describeArgument } from "../syntax/print.ts";
import { spendOnSets } from "./finding.ts";
import { OptionObject, objectOfText } from "./option-objects.ts";
import { needsIndex, onlyInWhere } from "./places.ts";
import type { FindEntries, RqlFunction, WhereClause, WhereContext } from "./rql-function.ts";

/** `operands`: the condition whose first entry is the base; none: the base is `values`. */
interface MoreLikeThisCondition {
  readonly kind: "more-like-this";
  readonly operands: readonly Condition[];
  /** The values of the object that is the base. */
  readonly values: readonly string[];
  /** The fields whose terms count; null: all. */
  readonly fields: ReadonlySet<string> | null;
  readonly limits: LikenessLimits;
  /** The id of a document with words that do not count; null: none. */
  readonly stopWordsId: string | null;
  /** The most similar entries are first, which is always the case for an index made for Lucene. */
  readonly isBoosted: boolean;
}

const defaultTermCount = 25;
const entity = "Raven.Client.Documents.Queries.MoreLikeThis.MoreLikeThisOptions";

export const moreLikeThis: RqlFunction<MoreLikeThisCondition> = {
  ...onlyInWhere,
  shownName: "MoreLikeThis",
  where: {
    analyze,
    meaning: {
      kind: "more-like-this",
      of: "operands",
      boosts: ({ isBoosted }, isLucene) => isBoosted || isLucene,
      find: findLike,
      score: (condition, factor, scoring) =>
        scoring.byWork("more like this", (entries, context, findEntries) =>
          scoreLike(condition, factor, entries, context, findEntries),
        ),
    },
  },
  filter: needsIndex,
};

function analyze(scope: QueryScope, call: Call, clause: WhereClause): MoreLikeThisCondition {
  if (scope.isDynamic) {
    throw invalid(scope, "Method moreLikeThis() cannot be used in dynamic queries");
  }
  const [base, options] = call.args;
  if (base === undefined || call.args.length > 2) {
    throw invalid(scope, "Method moreLikeThis() expects to have one or two arguments");
  }
  const read = new LikenessOptions(optionsOf(scope, options), entity);
  const shared = {
    kind: "more-like-this",
    fields: read.fields(),
    limits: read.limits(),
    stopWordsId: read.stopWordsId(),
    isBoosted: read.isBoosted(),
  } as const;
  switch (base.kind) {
    case "literal":
    case "parameter":
      return { ...shared, operands: [], values: valuesOf(objectArgument(scope, base)) };
    case "field":
      throw invalid(scope, `Expected value, but got: ${describeArgument(base)}`);
    case "comparison":
    case "and":
    case "or":
      return { ...shared, operands: [clause.condition(base, clause.isExact)], values: [] };
    default:
      throw invalid(
        scope,
        "Method moreLikeThis() expects that first argument will be a binary expression or value",
      );
  }
}

/** Returns the options' members, from a parameter or JSON text. Other values count as no options. */
function optionsOf(
  scope: QueryScope,
  options: Argument | undefined,
): ReadonlyMap<string, ParameterValue> {
  if (options === undefined) return new Map();
  if (options.kind !== "literal" && options.kind !== "parameter") {
    throw invalid(scope, `Expected value, but got: ${describeArgument(options)}`);
  }
  const value = resolveValue(scope, options);
  if (value.type === "object") return value.fields;
  const scalar = scalarOrNone(scope, options);
  return scalar?.type === "string" ? objectOfText(scalar.value) : new Map();
}

/** Returns the members of the object that a base is. @throws json-…, null-reference */
function objectArgument(scope: QueryScope, base: Value): ReadonlyMap<string, ParameterValue> {
  const value = resolveValue(scope, base);
  if (value.type === "object") return value.fields;
  if (value.type === "null") {
    throw new EngineError("null-reference", "The base of moreLikeThis() is null.");
  }
  const text = plainText(value).trim();
  if (text === "" || value.type !== "string" || /^-?\d+$/.test(text)) {
    throw new EngineError("json-truncated", "Buffer ended without reaching end of json content");
  }
  return objectOfText(text);
}

/** Returns all values of an object and of nested objects, as texts. */
function valuesOf(fields: ReadonlyMap<string, ParameterValue>): string[] {
  const open: ParameterValue[] = [...fields.values()];
  const texts: string[] = [];
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (value.type === "array") open.push(...value.items);
    else if (value.type === "object") open.push(...value.fields.values());
    else if (value.type !== "null") texts.push(plainText(value));
  }
  return texts;
}

class LikenessOptions extends OptionObject {
  /** Null, or an empty list: all fields. */
  fields(): ReadonlySet<string> | null {
    const value = this.value("Fields");
    if (value?.type !== "array" || value.items.length === 0) return null;
    return new Set(value.items.map(plainText));
  }

  isBoosted(): boolean {
    const value = this.value("Boost");
    return value?.type === "boolean" && value.value;
  }

  stopWordsId(): string | null {
    const value = this.value("StopWordsDocumentId");
    return value === undefined || value.type === "null" ? null : plainText(value);
  }

  limits(): LikenessLimits {
    const countMax = this.#count("MaximumQueryTerms", defaultTermCount);
    return {
      frequencyMin: this.#count("MinimumTermFrequency", 0),
      entriesMin: this.#count("MinimumDocumentFrequency", 0),
      entriesMax: this.#count("MaximumDocumentFrequency", Number.MAX_SAFE_INTEGER),
      percentMax: this.#count("MaximumDocumentFrequencyPercentage", 100),
      lengthMin: this.#count("MinimumWordLength", 0),
      lengthMax: this.#count("MaximumWordLength", 0) || Number.MAX_SAFE_INTEGER,
      countMax: Math.min(countMax > 0 ? countMax : defaultTermCount, likenessTermsMax),
    };
  }

  /** Null is as good as none. @throws invalid-format */
  #count(key: string, fallback: number): number {
    const value = this.value(key);
    if (value === undefined || value.type === "null") return fallback;
    if (value.type === "long" || value.type === "double") return Math.trunc(Number(value.value));
    const text = plainText(value);
    if (/^-?\d{1,9}$/.test(text)) return Number(text);
    throw new EngineError(
      "invalid-format",
      `Could not convert Sparrow.Json.LazyStringValue ('${text}') to System.Int32`,
    );
  }
}

function* findLike(
  condition: MoreLikeThisCondition,
  context: WhereContext,
  findEntries: FindEntries,
): Work<EntrySet> {
  const { view, budget } = context.reader;
  const { terms, own } = yield* likenessOf(condition, context, findEntries);
  const found = yield* entriesOfTerms(view, terms, budget);
  spendOnSets(context);
  return difference(found, own);
}

function* scoreLike(
  condition: MoreLikeThisCondition,
  factor: number,
  entries: Uint32Array,
  context: WhereContext,
  findEntries: FindEntries,
): Work<Float64Array> {
  const { store, budget, isLucene } = context.reader;
  const { isBoosted } = condition;
  if (!isBoosted && !isLucene) return new Float64Array(entries.length);
  const { terms } = yield* likenessOf(condition, context, findEntries);
  const scores = isLucene
    ? yield* luceneLikenessScores(entries, terms, store.liveCount, isBoosted, budget)
    : yield* likenessScores(entries, terms, store.liveCount, budget);
  return scores.map((score) => factor * score);
}

/** Returns the terms that count, and the entries of the base itself. @throws invalid-operation when there is no base */
function* likenessOf(
  condition: MoreLikeThisCondition,
  context: WhereContext,
  findEntries: FindEntries,
): Work<{ readonly terms: readonly LikeTerm[]; readonly own: EntrySet }> {
  const { reader } = context;
  const { fields, limits, stopWordsId, values, operands } = condition;
  const stopWords = stopWordsId === null ? null : context.stopWordsOf(stopWordsId);
  const columns = reader.columnsOf(fields);
  const frequencies = new TermFrequencies(columns, reader.budget);
  let own = EntrySet.empty;
  const [base] = operands;
  if (base === undefined) {
    for (const text of values) yield* frequencies.addText(text);
  } else {
    const bases: EntrySet = yield* findEntries(base, context);
    const [entry] = bases.toList();
    if (entry === undefined) {
      throw new EngineError(
        "invalid-operation",
        "Given filtering expression did not yield any documents that could be used as a base of comparison",
      );
    }
    yield* frequencies.addEntry(entry);
    own = reader.sameDocument(entry);
  }
  const terms = yield* likeTerms(reader.view, frequencies, limits, stopWords, reader.budget);
  return { terms, own };
}
