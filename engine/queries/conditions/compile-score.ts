/**
 * Relevance scores of entries: a sum over the full-text and other conditions, each weighed by the rarity of its terms and
 * its boost (indexing/text/word-weights.ts). Only computed for `order by score()`, `boost()`, `include explanations()`, and for
 * databases whose replies report scores.
 */

import type { Work } from "../../base/scheduling/work-budget.ts";
import { positionsOf } from "../../indexing/columns/entry-order.ts";
import type { EntrySet } from "../../indexing/columns/entry-set.ts";
import type { FieldColumn } from "../../indexing/columns/field-column.ts";
import type { FieldSearch } from "../../indexing/columns/field-search.ts";
import { slicedSortByKey } from "../../indexing/columns/sliced-sort.ts";
import { numberKind, textKind } from "../../indexing/columns/term-dictionary.ts";
import type { IndexReader } from "../../indexing/index-reader.ts";
import { standardWords } from "../../indexing/text/analyzer.ts";
import { TextColumn } from "../../indexing/text/text-column.ts";
import {
  CoraxWeigher,
  LuceneWeigher,
  type Weighed,
  type Weigher,
  type WeightOf,
} from "../../indexing/text/word-weights.ts";
import type { AnalyzedQuery, Condition, FieldReference } from "../analysis/analyzed-query.ts";
import { compositeMeaningOf, meaningOf, operandsOf } from "../analysis/meaning-of.ts";
import { plainText } from "../analysis/query-parameters.ts";
import { orderUseOf } from "../functions/function-table.ts";
import type {
  FindEntries,
  ScoredText,
  ScorePart,
  Scoring,
  WhereContext,
} from "../functions/rql-function.ts";
import { findEntries } from "./compile-where.ts";

/** Returns whether the order of results depends on scores: true when the query or the index boosts something. */
export function hasScores({ orderBy, where }: AnalyzedQuery, reader: IndexReader): boolean {
  for (const key of orderBy) {
    if (key.kind !== "field" && orderUseOf(key).needsScores) return true;
  }
  if (orderBy.length > 0) return false;
  if (where === null) return reader.boosts !== undefined && !reader.isLucene;
  return reader.boosts !== undefined || hasBoost(where, reader.isLucene);
}

function hasBoost(condition: Condition, isLucene: boolean): boolean {
  switch (condition.kind) {
    case "true":
    case "not":
      return false;
    case "and":
    case "or":
      return condition.operands.some((operand) => hasBoost(operand, isLucene));
    default:
      if ("field" in condition) {
        return condition.kind !== "none" && meaningOf(condition).ordersByScore === true;
      }
      return (
        compositeMeaningOf(condition).boosts(condition, isLucene) ||
        operandsOf(condition).some((operand) => hasBoost(operand, isLucene))
      );
  }
}

/** Inputs of `Scoring` besides the condition. */
interface ScoredEntries {
  readonly entries: Uint32Array;
  readonly context: WhereContext;
  /** Whether parts are kept, to explain the sum. */
  readonly isExplained: boolean;
  readonly weigher: Weigher;
  /** What conditions found, for the second weigher of Lucene. */
  readonly found: Map<Condition, EntrySet>;
}

/** Returns the score of each of `entries`, by position. */
export function* scoreEntries(
  where: Condition | null,
  entries: Uint32Array,
  context: WhereContext,
): Work<Float64Array> {
  if (where === null) return yield* allScores(entries, context);
  return (yield* scoredWhole(where, entries, context, false)).scores;
}

/** The scores of entries and their explanations. */
export interface ExplainedScores {
  readonly scores: Float64Array;
  /** Lines of text; empty when explanations were not requested. */
  textOf(position: number): string;
}

/** @param isExplained explanations will be requested: their parts are kept */
export function* explainEntries(
  where: Condition | null,
  entries: Uint32Array,
  context: WhereContext,
  isExplained: boolean,
): Work<ExplainedScores> {
  const root: ScorePart =
    where === null
      ? { label: "every entry is found", scores: yield* allScores(entries, context), parts: [] }
      : yield* scoredWhole(where, entries, context, isExplained);
  return {
    scores: root.scores,
    textOf: (position) => (isExplained ? explanation(root, position, "") : ""),
  };
}

function* scoredWhole(
  where: Condition,
  entries: Uint32Array,
  context: WhereContext,
  isExplained: boolean,
): Work<ScorePart> {
  const found = new Map<Condition, EntrySet>();
  let weigher: Weigher = new CoraxWeigher();
  if (context.reader.isLucene) {
    const first = new LuceneWeigher();
    const unscored = { entries: new Uint32Array(0), context, isExplained: false, found };
    yield* new EntryScoring({ ...unscored, weigher: first }).scored(where, 1);
    weigher = new LuceneWeigher(first.norm);
  }
  return yield* new EntryScoring({ entries, context, isExplained, weigher, found }).scored(
    where,
    1,
  );
}

/** Returns the scores of entries that no condition has found. */
function* allScores(entries: Uint32Array, context: WhereContext): Work<Float64Array> {
  const { reader } = context;
  const scores = new Float64Array(entries.length).fill(1);
  const { boosts } = reader;
  if (boosts === undefined) return scores;
  const weigher = reader.isLucene ? new LuceneWeigher() : new CoraxWeigher();
  for (let i = 0; i < scores.length; i++) {
    scores[i] = weigher.entryFactor(boosts.entryBoostOf(entries[i] as number));
    if ((i & (stride - 1)) === 0) yield* pause(context);
  }
  return scores;
}

/** Parts that add nothing to the entry's score are omitted, unless there are no others. */
function explanation(
  { label, scores, parts }: ScorePart,
  position: number,
  indent: string,
): string {
  const score = Number((scores[position] as number).toPrecision(7));
  const head = `${indent}${score} = ${label}`;
  const shown = parts.filter((part) => part.scores[position] !== 0);
  const inner = (shown.length > 0 ? shown : parts).map((part) =>
    explanation(part, position, `${indent}  `),
  );
  return `${head}${inner.length === 0 ? "" : ", of:"}\n${inner.join("")}`;
}

class EntryScoring implements Scoring {
  readonly #scored: ScoredEntries;

  constructor(scored: ScoredEntries) {
    this.#scored = scored;
  }

  get context(): WhereContext {
    return this.#scored.context;
  }

  *scored(condition: Condition, factor: number): Work<ScorePart> {
    switch (condition.kind) {
      case "and":
      case "or":
        return yield* this.sumOf(condition.kind, condition.operands, factor);
      case "true":
      case "none":
      case "not": {
        const scores = newScores(this.#scored);
        return { label: `${condition.kind}: weighs nothing`, scores, parts: [] };
      }
      default:
        return yield* "field" in condition
          ? meaningOf(condition).score(condition, factor, this)
          : compositeMeaningOf(condition).score(condition, factor, this);
    }
  }

  *sumOf(kind: string, operands: readonly Condition[], factor: number): Work<ScorePart> {
    const sum = new ScoreSum(this.#scored, kind === "or");
    for (const operand of operands) yield* sum.add(yield* this.scored(operand, factor));
    return { label: `sum (${kind})`, ...sum.total() };
  }

  *byRarity(
    condition: Condition & { readonly field: FieldReference },
    factor: number,
  ): Work<ScorePart> {
    const { context, weigher } = this.#scored;
    const { reader } = context;
    const found = yield* this.#found(condition);
    const total = reader.store.liveCount;
    const weighed = { total, found: found.count, boost: factor };
    const sought = queryTerms(condition, reader);
    const scores = newScores(this.#scored);
    if (sought === null) {
      const fixed = reader.isLucene ? null : fixedWeight(condition);
      const weight = fixed === null ? weigher.wholeWeight(weighed) : factor * fixed;
      yield* this.#fill(scores, found, () => weight);
    } else if (sought.term === null) {
      yield* this.#fillByTerms(scores, found, sought.column, weighed);
    } else {
      const { column, term } = sought;
      const weightOf = weigher.termWeight(weighed, column, term);
      const isText = reader.isLucene && column instanceof TextColumn;
      const counts = isText || (column.hasSeveral && !column.isPacked);
      const occurrences = counts ? occurrencesOf(column, term, context) : () => 1;
      // Values that are matched by other means than a term, such as a number by its whole part, count as one
      // occurrence.
      yield* this.#fill(scores, found, (entry) => weightOf(Math.max(1, occurrences(entry))));
    }
    const { kind, field } = condition;
    yield* boost(scores, field.name, this.#scored);
    const label = `${kind} on ${field.name}: found in ${found.count} of ${total} entries`;
    return { label, scores, parts: [] };
  }

  *#found(condition: Condition): Work<EntrySet> {
    const { context, found } = this.#scored;
    const known = found.get(condition) ?? (yield* findEntries(condition, context));
    if (context.reader.isLucene) found.set(condition, known);
    return known;
  }

  /** Sets the scores of the entries that are in a set. */
  *#fill(scores: Float64Array, found: EntrySet, weightOf: (entry: number) => number): Work<void> {
    const { entries, context } = this.#scored;
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i] as number; // i < length
      if (found.has(entry)) scores[i] = weightOf(entry);
      if ((i & (stride - 1)) === 0) yield* pause(context);
    }
  }

  /** As `#fill`, where each entry in the set has one of the terms that are found. */
  *#fillByTerms(
    scores: Float64Array,
    found: EntrySet,
    column: FieldColumn,
    weighed: Weighed,
  ): Work<void> {
    const { entries, context, weigher } = this.#scored;
    const weights = new Map<number, number>();
    for (let i = 0; i < entries.length; i++) {
      if ((i & (stride - 1)) === 0) yield* pause(context);
      const entry = entries[i] as number; // i < length
      if (!found.has(entry)) continue;
      const term = column.terms[column.starts[entry] as number] as number;
      let weight = weights.get(term);
      if (weight === undefined) {
        const own = { ...weighed, found: yield* liveCountOf(column, term, context.reader) };
        weight = weigher.termWeight(own, column, term)(1);
        weights.set(term, weight);
      }
      scores[i] = weight;
    }
  }

  *byEntry(
    label: string,
    field: string,
    factor: number,
    scoreOf: (context: WhereContext) => (entry: number) => number,
  ): Work<ScorePart> {
    const { entries, context, weigher } = this.#scored;
    const weigh = scoreOf(context);
    const scores = newScores(this.#scored);
    for (let i = 0; i < entries.length; i++) {
      scores[i] = weigher.round(factor * weigher.scale * weigh(entries[i] as number));
      if ((i & (stride - 1)) === 0) yield* pause(context);
    }
    yield* boost(scores, field, this.#scored);
    return { label, scores, parts: [] };
  }

  *byWork(
    label: string,
    weigh: (entries: Uint32Array, context: WhereContext, find: FindEntries) => Work<Float64Array>,
  ): Work<ScorePart> {
    const { entries, context, weigher } = this.#scored;
    if (entries.length === 0) return { label, scores: newScores(this.#scored), parts: [] };
    const weights = yield* weigh(entries, context, findEntries);
    const scores = weights.map((weight) => weigher.round(weight * weigher.scale));
    return { label, scores, parts: [] };
  }

  *byWords(label: string, field: string, text: string, factor: number): Work<ScorePart> {
    const words = yield* standardWords(text, this.#scored.context.reader.budget);
    return yield* this.byTexts(label, field, "words", {
      kind: "sum",
      isCounted: true,
      parts: words.map((word) => ({ kind: "term", text: word, boost: factor })),
    });
  }

  *byTexts(
    label: string,
    field: string,
    form: "words" | "lower",
    part: ScoredText,
  ): Work<ScorePart> {
    const { reader } = this.#scored.context;
    const column = reader.column(field, form);
    const search = reader.field(field, form);
    if (column === undefined || search === undefined) {
      return { label, scores: newScores(this.#scored), parts: [] };
    }
    const texts = new TextScoring(field, column, search, this.#scored);
    const scored = yield* texts.scored(part);
    return { ...scored, label };
  }
}

/** Entries between two checks of the budget. */
const stride = 1024;

/** Charges the budget for a stride of entries. */
function* pause({ reader: { budget } }: WhereContext): Work<void> {
  budget.spend(stride);
  if (budget.isDue) yield;
}

function newScores({ entries, context }: ScoredEntries): Float64Array {
  context.reader.budget.hold(entries.length * Float64Array.BYTES_PER_ELEMENT);
  return new Float64Array(entries.length);
}

/** A sum of parts. */
class ScoreSum {
  readonly #scored: ScoredEntries;
  readonly #scores: Float64Array;
  readonly #parts: ScorePart[] = [];
  #count = 0;
  /** How many of the parts each entry has; null: that does not matter. */
  readonly #haves: Uint32Array | null;

  /** `isOptional`: an entry need not have all parts. */
  constructor(scored: ScoredEntries, isOptional: boolean) {
    this.#scored = scored;
    this.#scores = newScores(scored);
    const isCounted = isOptional && scored.weigher.countsParts;
    this.#haves = isCounted ? new Uint32Array(scored.entries.length) : null;
  }

  /** Adds a part, and keeps it when the sum is explained. */
  *add(part: ScorePart): Work<void> {
    const { context, isExplained } = this.#scored;
    const { budget } = context.reader;
    this.#count++;
    addAll(this.#scores, part.scores, this.#haves, this.#scored.weigher);
    if (isExplained) this.#parts.push(part);
    else budget.release(part.scores.byteLength);
    budget.spend(1 + (this.#scores.length >>> 2));
    if (budget.isDue) yield;
  }

  /** Adds a part that no entry has. */
  addNone(): void {
    this.#count++;
  }

  total(): Pick<ScorePart, "scores" | "parts"> {
    const scores = this.#scores;
    const haves = this.#haves;
    const { round } = this.#scored.weigher;
    if (haves !== null) {
      for (let i = 0; i < scores.length; i++) {
        const share = round((haves[i] as number) / Math.max(1, this.#count));
        scores[i] = round((scores[i] as number) * share);
      }
    }
    return { scores, parts: this.#parts };
  }
}

function addAll(
  sums: Float64Array,
  scores: Float64Array,
  haves: Uint32Array | null,
  { round }: Weigher,
): void {
  for (let i = 0; i < sums.length; i++) {
    const score = scores[i] as number;
    sums[i] = round((sums[i] as number) + score);
    if (haves !== null && score !== 0) haves[i] = (haves[i] as number) + 1;
  }
}

/** Multiplies by the factors that maps passed to `boost`. */
function* boost(
  scores: Float64Array,
  field: string,
  { entries, context, weigher }: ScoredEntries,
): Work<void> {
  const { boosts } = context.reader;
  if (boosts === undefined) return;
  for (let i = 0; i < scores.length; i++) {
    const entry = entries[i] as number; // as many
    const whole = weigher.entryFactor(boosts.entryBoostOf(entry));
    scores[i] = weigher.round((scores[i] as number) * boosts.fieldBoostOf(entry, field) * whole);
    if ((i & (stride - 1)) === 0) yield* pause(context);
  }
}

/** Scores texts in a field. */
class TextScoring {
  readonly #field: string;
  readonly #column: FieldColumn;
  readonly #search: FieldSearch;
  readonly #scored: ScoredEntries;
  /** Positions of the entries in ascending order; null: they are in that order. */
  #order: Uint32Array | null | undefined;

  constructor(field: string, column: FieldColumn, search: FieldSearch, scored: ScoredEntries) {
    this.#field = field;
    this.#column = column;
    this.#search = search;
    this.#scored = scored;
  }

  /** @returns scores of zero for a text that no entry has */
  *scored(part: ScoredText): Work<ScorePart> {
    const { context, weigher } = this.#scored;
    yield* pause(context);
    switch (part.kind) {
      case "term":
        return (yield* this.#term(part)) ?? { label: part.text, scores: this.#zeros(), parts: [] };
      case "phrase":
        return yield* this.#phrase(part);
      case "whole": {
        const weight = weigher.wholeWeight({
          ...this.#counts(part.found.count),
          boost: part.boost,
        });
        return yield* this.#filled(`${part.found.count} entries`, (entry) =>
          part.found.has(entry) ? weight : 0,
        );
      }
      case "sum":
        return yield* this.#sum(part);
    }
  }

  *#sum({ parts, isCounted }: ScoredText & { kind: "sum" }): Work<ScorePart> {
    const sum = new ScoreSum(this.#scored, isCounted);
    for (const part of parts) {
      const scored = part.kind === "term" ? yield* this.#term(part) : yield* this.scored(part);
      if (scored === null) sum.addNone();
      else yield* sum.add(scored);
    }
    return { label: "sum", ...sum.total() };
  }

  /** Null: no entry has the term. */
  *#term({ text, boost: factor }: ScoredText & { kind: "term" }): Work<ScorePart | null> {
    const { context, weigher } = this.#scored;
    const column = this.#column;
    const term = findWord(column, text);
    const found = term < 0 ? 0 : yield* entryCountOf(column, this.#search, text);
    const weightOf = weigher.termWeight({ ...this.#counts(found), boost: factor }, column, term);
    if (term < 0) return null;
    const occurrences = occurrencesOf(column, term, context);
    const label = `'${text}', in ${found} of ${context.reader.store.liveCount} entries`;
    return yield* this.#filled(label, (entry) => {
      const count = occurrences(entry);
      return count > 0 ? weightOf(count) : 0;
    });
  }

  *#phrase({ words, slop, boost: factor }: ScoredText & { kind: "phrase" }): Work<ScorePart> {
    const { context, weigher, entries } = this.#scored;
    const counts: number[] = [];
    for (const word of words) {
      counts.push(yield* entryCountOf(this.#column, this.#search, word));
    }
    const total = context.reader.store.liveCount;
    const weightOf: WeightOf =
      weigher instanceof LuceneWeigher ? weigher.phraseWeight(total, counts, factor) : () => 0;
    const scores = this.#zeros();
    for (let i = 0; i < entries.length; i++) {
      scores[i] = weightOf(yield* this.#search.phraseFrequency(entries[i] as number, words, slop));
      if (context.reader.budget.isDue) yield;
    }
    yield* boost(scores, this.#field, this.#scored);
    return { label: `"${words.join(" ")}"`, scores, parts: [] };
  }

  /** `weightOf` is called for ascending entries. */
  *#filled(label: string, weightOf: (entry: number) => number): Work<ScorePart> {
    const { entries, context } = this.#scored;
    this.#order ??= yield* ascendingOrder(entries, context);
    const scores = this.#zeros();
    for (let i = 0; i < entries.length; i++) {
      const at = this.#order === null ? i : (this.#order[i] as number);
      scores[at] = weightOf(entries[at] as number);
      context.reader.budget.spend(1);
      if (context.reader.budget.isDue) yield;
    }
    yield* boost(scores, this.#field, this.#scored);
    return { label, scores, parts: [] };
  }

  #zeros(): Float64Array {
    return newScores(this.#scored);
  }

  #counts(found: number): Omit<Weighed, "boost"> {
    return { total: this.#scored.context.reader.store.liveCount, found };
  }
}

/** The terms that a condition looks for. */
interface QueryTerms {
  readonly column: FieldColumn;
  /** Term number; -1 if no entry has the term. Null if the condition has several terms, of which an entry has one. */
  readonly term: number | null;
}

/** Null: the condition is weighed as a whole, as all that Lucene finds by more than a term. */
function queryTerms(condition: Condition, reader: IndexReader): QueryTerms | null {
  if (!("field" in condition) || condition.kind === "none") return null;
  const isExact = "isExact" in condition && condition.isExact === true;
  const name = condition.field.name;
  const column = reader.column(name, isExact ? "exact" : "lower") ?? reader.column(name, "lower");
  if (column === undefined) return null;
  const isComparison = condition.kind === "comparison";
  if (isComparison && condition.operator === "=") {
    const { value } = condition;
    const isText = value.type === "string" || value.type === "boolean";
    const isNumber = value.type === "long" || value.type === "double";
    // Lucene finds numbers as ranges.
    if (!isText && (!isNumber || reader.isLucene)) return null;
    const text = plainText(value);
    const [term = -1] = column.termsOfText(isExact ? text : text.toLowerCase());
    return { column, term };
  }
  const isSeveral = isComparison
    ? condition.operator !== "!="
    : meaningOf(condition).findsSeveralTerms === true;
  if (!isSeveral) return null;
  return reader.isLucene || column.hasSeveral || column.isPacked ? null : { column, term: null };
}

/**
 * Returns the weight of a condition in Corax that does not depend on the number of matching entries; null if it does.
 */
function fixedWeight(condition: Condition): number | null {
  if (condition.kind === "exists") return 1;
  return condition.kind === "comparison" && condition.operator === "!=" ? 0 : null;
}

/**
 * Returns the number of entries that have a term. Cost: if some entries are dead, a visit of each entry that had the
 * term.
 */
function* liveCountOf(
  column: FieldColumn,
  term: number,
  { view, store, budget }: IndexReader,
): Work<number> {
  if (store.deadCount === 0) return column.counts[term] as number;
  let count = 0;
  for (const entry of column.entriesOf(term)) {
    if (entry < view.size && view.isLive(entry)) count++;
    budget.spend(1);
    if (budget.isDue) yield;
  }
  return count;
}

/** Returns the positions of entries in ascending order; null: that is the order they are in. */
function* ascendingOrder(
  entries: Uint32Array,
  { reader: { budget } }: WhereContext,
): Work<Uint32Array | null> {
  let isAscending = true;
  for (let i = 1; i < entries.length; i++) {
    if ((entries[i - 1] as number) > (entries[i] as number)) isAscending = false;
  }
  if (isAscending) return null;
  return yield* slicedSortByKey(positionsOf(entries.length), entries, budget);
}

function findWord({ dictionary }: FieldColumn, word: string): number {
  const term = dictionary.findText(textKind, word);
  return term >= 0 ? term : dictionary.findText(numberKind, word);
}

/** Returns the number of entries that have a word, as a text or as a value of another kind. */
function* entryCountOf(column: FieldColumn, search: FieldSearch, word: string): Work<number> {
  const [term, ...others] = column.termsOfText(word);
  if (term === undefined) return 0;
  if (column instanceof TextColumn && others.length === 0)
    return column.postings.lives[term] as number;
  return (yield* search.equalsTerm(word)).count;
}

/** How often an entry has a term; of several calls, each is for a larger entry than the one before. */
function occurrencesOf(
  column: FieldColumn,
  term: number,
  { reader: { budget } }: WhereContext,
): (entry: number) => number {
  if (column instanceof TextColumn) {
    const reader = column.reader().begin(term);
    return (entry) => {
      budget.spend(2);
      return reader.seek(entry);
    };
  }
  return (entry) => {
    const terms = column.termsOf(entry);
    budget.spend(1 + terms.length);
    let count = 0;
    for (let at = 0; at < terms.length; at++) if (terms[at] === term) count++;
    return count;
  };
}
