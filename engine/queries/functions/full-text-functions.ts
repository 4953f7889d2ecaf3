/** Methods that search the words of a field: `search`, `proximity`, `lucene`, `fuzzy`. */
import { EngineError } from "../../base/errors.ts";
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import { EntrySet } from "../../indexing/columns/entry-set.ts";
import { parseSearchText, standardWords, wordsOfPhrase } from "../../indexing/text/analyzer.ts";
import { type BestFound, BestWords, type WeighedWord } from "../../indexing/text/best-words.ts";
import { TextColumn } from "../../indexing/text/text-column.ts";
import { CoraxWeigher } from "../../indexing/text/word-weights.ts";
import type { FieldReference } from "../analysis/analyzed-query.ts";
import { plainText } from "../analysis/query-parameters.ts";
import { invalid } from "../analysis/query-scope.ts";
import { fuzzyTerms, fuzzyTest } from "../conditions/compile-fuzzy.ts";
import { scoredLucene, searchLucene } from "../conditions/compile-lucene.ts";
import { describeArgument } from "../syntax/print.ts";
import { fieldAndText, isCallOf, numberArgument } from "./arguments.ts";
import { fieldOf, isId, nothing, weighedWhole } from "./finding.ts";
import { needsIndex, onlyInWhere } from "./places.ts";
import type { RqlFunction, ScoredText, ScorePart, Scoring, WhereContext } from "./rql-function.ts";

/** Texts of more words are scored entry by entry. */
const weighedWordsMax = 16;

/** `isAll`: all terms are required, otherwise any. */
interface SearchCondition {
  readonly kind: "search";
  readonly field: FieldReference;
  readonly text: string;
  readonly isAll: boolean;
}

export const search: RqlFunction<SearchCondition> = {
  ...onlyInWhere,
  shownName: "Search",
  where: {
    analyze: (scope, call) => {
      const { field, text } = fieldAndText(scope, call, true);
      const operator = call.args[2];
      if (operator === undefined) return { kind: "search", field, text, isAll: false };
      if (operator.kind === "literal") {
        throw new EngineError(
          "invalid-cast",
          `The operator of search() must be a word, OR or AND, but was ${describeArgument(operator)}`,
        );
      }
      const isWord = operator.kind === "field" && operator.path.length === 1;
      const written = isWord ? operator.path[0]?.name : undefined;
      const word = written?.toLowerCase();
      if (word === "and" || word === "or")
        return { kind: "search", field, text, isAll: word === "and" };
      const shown = written ?? describeArgument(operator);
      throw invalid(
        scope,
        `Supported operators in search() method are 'OR' or 'AND' but was '${shown}'`,
      );
    },
    meaning: {
      kind: "search",
      of: "field",
      indexUse: "search",
      find: findWords,
      findIds: findSearchedIds,
      idsOf: () => undefined,
      searchedTexts: ({ text }) => [text],
      joined: {
        // A search for one wildcard; searches for words are found directly by their terms.
        isJoined: ({ text }) => /^\*?[^\s"\\*]+\*?$/u.test(text) && text.includes("*"),
        find: (conditions, context, findEntries) => {
          const [first] = conditions as readonly [SearchCondition];
          if (conditions.length === 1) return findEntries(first, context);
          const text = conditions.map((one) => one.text).join(" ");
          return findEntries({ ...first, text, isAll: false }, context);
        },
      },
      score: (condition, factor, scoring) => {
        const { name } = condition.field;
        const label = `search(${name}, ${JSON.stringify(condition.text)})`;
        if (scoring.context.reader.isLucene) return scoreSearch(label, condition, factor, scoring);
        return scoring.byWords(label, name, condition.text, factor);
      },
      best: bestOfWords,
    },
  },
  filter: needsIndex,
};

function* findWords({ field, text, isAll }: SearchCondition, context: WhereContext) {
  const words = fieldOf(field, "words", context);
  if (words === undefined) return EntrySet.empty;
  const { reader } = context;
  const pieces = yield* parseSearchText(text, reader.analyzerOf(field.name), reader.budget);
  return yield* words.search(pieces, isAll);
}

/** As Lucene does: by words, phrases, and wildcards, which weigh the same in each entry. */
function* scoreSearch(
  label: string,
  { field: { name }, text }: SearchCondition,
  boost: number,
  scoring: Scoring,
): Work<ScorePart> {
  const { reader } = scoring.context;
  const words = reader.field(name, "words");
  const parts: ScoredText[] = [];
  const analyze = reader.analyzerOf(name);
  // A word that is sought twice weighs twice.
  for (const piece of yield* parseSearchText(text, analyze, reader.budget, false)) {
    if (piece.kind === "words") parts.push(scoredWords(piece.words, 0, boost));
    else if (words !== undefined) {
      parts.push({ kind: "whole", found: yield* words.search([piece], false), boost });
    }
  }
  return yield* scoring.byTexts(label, name, "words", { kind: "sum", isCounted: true, parts });
}

function scoredWords(words: readonly string[], slop: number, boost: number): ScoredText {
  const [text = ""] = words;
  return words.length > 1 ? { kind: "phrase", words, slop, boost } : { kind: "term", text, boost };
}

/** Null: not only words are sought, or not the same as are weighed. */
function* bestOfWords(
  { field, text, isAll }: SearchCondition,
  factor: number,
  count: number,
  { reader }: WhereContext,
): Work<BestFound | null> {
  const column = reader.column(field.name, "words");
  if (isId(field) || !(column instanceof TextColumn) || !(factor > 0) || reader.isLucene)
    return null;
  const { budget, store } = reader;
  const weigher = new CoraxWeigher();
  const sought = new Set<number>();
  for (const piece of yield* parseSearchText(text, reader.analyzerOf(field.name), budget)) {
    const [word] = piece.kind === "words" ? piece.words : [];
    if (piece.kind !== "words" || piece.words.length > 1 || word === undefined) return null;
    const terms = column.termsOfText(word);
    if (terms.length > 1) return null;
    const [term] = terms;
    if (term !== undefined) sought.add(term);
    else if (isAll) return { entries: new Uint32Array(0), total: 0 };
  }
  const words: WeighedWord[] = [];
  for (const word of yield* standardWords(text, budget)) {
    const [term, ...others] = column.termsOfText(word);
    if (term === undefined) continue;
    const found = column.postings.lives[term] as number;
    const weighed = { total: store.liveCount, found, boost: factor };
    if (!sought.delete(term) && !words.some((one) => one.term === term)) return null;
    if (others.length > 0 || words.length === weighedWordsMax) return null;
    words.push({ term, weightOf: weigher.termWeight(weighed, column, term) });
  }
  if (sought.size > 0) return null;
  if (words.length === 0) return { entries: new Uint32Array(0), total: 0 };
  const best = new BestWords(column, reader.view, words, count, budget);
  return yield* isAll ? best.ofAll() : best.ofAny();
}

interface ProximityCondition {
  readonly kind: "proximity";
  readonly field: FieldReference;
  readonly text: string;
  readonly distance: number;
}

export const proximity: RqlFunction<ProximityCondition> = {
  ...onlyInWhere,
  shownName: "Proximity",
  where: {
    analyze: (scope, call) => {
      const [searched, distance] = call.args;
      if (call.args.length !== 2 || searched === undefined || distance === undefined) {
        throw invalid(scope, "Method proximity() expects to have two arguments");
      }
      if (!isCallOf(searched, "search")) {
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
    },
    meaning: {
      kind: "proximity",
      of: "field",
      indexUse: "search",
      find: findNear,
      findIds: findSearchedIds,
      idsOf: () => undefined,
      searchedTexts: ({ text }) => [text],
      joined: null,
      score: (condition, factor, scoring) => {
        const { reader } = scoring.context;
        if (!reader.isLucene) return weighedWhole(condition, factor, scoring);
        const { field, text, distance } = condition;
        const words = wordsOfPhrase(text, reader.analyzerOf(field.name));
        const part = scoredWords(words, distance, factor);
        return scoring.byTexts(`proximity on ${field.name}`, field.name, "words", part);
      },
    },
  },
  filter: needsIndex,
};

function* findNear({ field, text, distance }: ProximityCondition, context: WhereContext) {
  const found = fieldOf(field, "words", context);
  if (found === undefined) return EntrySet.empty;
  const words = wordsOfPhrase(text, context.reader.analyzerOf(field.name));
  return words.length === 0 ? EntrySet.empty : yield* found.phrase(words, distance);
}

interface LuceneCondition {
  readonly kind: "lucene";
  readonly field: FieldReference;
  readonly text: string;
}

export const lucene: RqlFunction<LuceneCondition> = {
  ...onlyInWhere,
  shownName: "Lucene",
  where: {
    analyze: (scope, call) => ({ kind: "lucene", ...fieldAndText(scope, call, false) }),
    meaning: {
      kind: "lucene",
      of: "field",
      indexUse: "plain",
      find: ({ field, text }, context) => {
        const { reader } = context;
        const found = fieldOf(field, "lower", context);
        const words = reader.field(field.name, "words");
        return found === undefined ? nothing() : searchLucene(text, words ?? found, reader);
      },
      findIds: findSearchedIds,
      idsOf: () => undefined,
      searchedTexts: ({ text }) => [text],
      joined: null,
      score: scoreLucene,
    },
  },
  filter: needsIndex,
};

interface FuzzyCondition {
  readonly kind: "fuzzy";
  readonly field: FieldReference;
  readonly text: string;
  readonly similarity: number;
}

export const fuzzy: RqlFunction<FuzzyCondition> = {
  ...onlyInWhere,
  shownName: "Fuzzy",
  where: {
    analyze: (scope, call, clause) => {
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
      const field = clause.comparedField(compared.left);
      const operand = clause.comparedValue(compared.right);
      if (operand === null || operand.type === "compare-exchange") return { kind: "none", field };
      return { kind: "fuzzy", field, text: plainText(operand), similarity: value };
    },
    meaning: {
      kind: "fuzzy",
      of: "field",
      indexUse: "plain",
      find: ({ field, text, similarity }, context) => {
        const test = fuzzyTest(text, similarity, context.reader.budget);
        return fieldOf(field, "lower", context)?.similar(test) ?? nothing();
      },
      findIds: ({ text, similarity }, { reader }) =>
        reader.idsMatching(fuzzyTest(text, similarity, reader.budget).ofText),
      idsOf: () => undefined,
      searchedTexts: ({ text }) => [text],
      joined: null,
      score: scoreFuzzy,
    },
  },
  filter: needsIndex,
};

function* scoreLucene(
  condition: LuceneCondition,
  factor: number,
  scoring: Scoring,
): Work<ScorePart> {
  const { reader } = scoring.context;
  const { name } = condition.field;
  const form = reader.column(name, "words") === undefined ? "lower" : "words";
  const field = reader.field(name, form);
  if (field === undefined || !reader.isLucene)
    return yield* weighedWhole(condition, factor, scoring);
  const part = yield* scoredLucene(condition.text, factor, field, reader);
  return yield* scoring.byTexts(`lucene on ${name}`, name, form, part);
}

function* scoreFuzzy(condition: FuzzyCondition, factor: number, scoring: Scoring): Work<ScorePart> {
  const { reader } = scoring.context;
  if (!reader.isLucene) return yield* weighedWhole(condition, factor, scoring);
  const { field, text, similarity } = condition;
  const part = yield* fuzzyTerms(
    reader.field(field.name, "lower"),
    text,
    similarity,
    factor,
    reader,
  );
  return yield* scoring.byTexts(`fuzzy on ${field.name}`, field.name, "lower", part);
}

function findSearchedIds(
  { text }: { readonly text: string },
  { reader }: WhereContext,
): Work<EntrySet> {
  return reader.idsMatching(idSearchTest(text, reader.budget));
}

/** An id is one word of a search: the words of the text are whole ids or wildcards. */
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
  const bare = piece.replace(/^\*+|\*+$/g, "");
  if (!piece.startsWith("*")) return (id) => id.startsWith(bare);
  return piece.endsWith("*") ? (id) => id.includes(bare) : (id) => id.endsWith(bare);
}
