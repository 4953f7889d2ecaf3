/**
 * lucene(field, text): the part of Lucene's query syntax that applies to a single field.
 *
 *   query  := clause { [ 'AND' | '&&' | 'OR' | '||' ] clause }      OR unless AND or a sign overrides it
 *   clause := [ '+' | '-' | 'NOT' | '!' ] ( '(' query ')' | term ) [ '^' number ]
 *   term   := '"' words '"' [ '~' number ] | word with * ? | word [ '~' [number] ]
 *           | '[' low [ 'TO' ] high ']' | '{' low [ 'TO' ] high '}'
 */
import { EngineError } from "../../base/errors.ts";
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import {
  difference,
  EntrySet,
  EntrySetBuilder,
  intersection,
  union,
} from "../../indexing/columns/entry-set.ts";
import type { FieldSearch } from "../../indexing/columns/field-search.ts";
import type { IndexReader } from "../../indexing/index-reader.ts";
import { lowerInvariant, standardAnalyzer, wordsOfPhrase } from "../../indexing/text/analyzer.ts";
import type { ScoredText } from "../functions/rql-function.ts";
import { fuzzyTerms, fuzzyTest } from "./compile-fuzzy.ts";

type Occurrence = "must" | "should" | "must-not";

interface Clause {
  occurrence: Occurrence;
  readonly query: Query;
  readonly boost: number;
}

/** The text of a term, or clauses. */
type Query = string | readonly Clause[];

/** Lucene's default similarity of `word~`. */
const similarityDefault = 0.5;
const nestingMax = 64;
/** Cost of reading a token. */
const tokenUnits = 16;
const token =
  /\s+|&&|\|\||[-+!()]|"(?:[^"\\]|\\.)*"(?:~\d+)?|\[[^\]}]*\]|\{[^\]}]*\}|(?:[^\s()[\]{}"^\\]|\\.)(?:[^\s()"^\\]|\\.)*|\^[\d.]+|./gsu;
/** Tokens at which no clause begins. */
const notAClause: ReadonlySet<string> = new Set([...'"[]{}^\\)', "AND", "&&", "OR", "||"]);
const signs: ReadonlyMap<string, Occurrence> = new Map([
  ["+", "must"],
  ["-", "must-not"],
  ["!", "must-not"],
  ["NOT", "must-not"],
]);

/** Returns the entries that match a query text in a field. @throws lucene-syntax, query-invalid */
export function* searchLucene(
  text: string,
  field: FieldSearch,
  reader: IndexReader,
): Work<EntrySet> {
  return yield* new LuceneSearch(field, reader).find(yield* parse(text, reader));
}

/** Returns the texts that a query looks for, to weigh them. @throws as `searchLucene` */
export function* scoredLucene(
  text: string,
  boost: number,
  field: FieldSearch,
  reader: IndexReader,
): Work<ScoredText> {
  return yield* new LuceneSearch(field, reader).scored(yield* parse(text, reader), boost);
}

function* parse(text: string, { budget }: IndexReader): Work<Query> {
  const tokens: string[] = [];
  for (const [one] of text.matchAll(token)) {
    if (one.trim() !== "") tokens.push(one);
    budget.spend(tokenUnits);
    if (budget.isDue) yield;
  }
  const parser = new LuceneParser(text, tokens, budget);
  const query = yield* parser.query(0);
  parser.expectEnd();
  return query;
}

class LuceneParser {
  readonly #text: string;
  readonly #tokens: readonly string[];
  readonly #budget: WorkBudget;
  #at = 0;

  constructor(text: string, tokens: readonly string[], budget: WorkBudget) {
    this.#text = text;
    this.#tokens = tokens;
    this.#budget = budget;
  }

  *query(depth: number): Work<readonly Clause[]> {
    if (depth > nestingMax)
      throw new EngineError("query-invalid", "A lucene() query is nested too deep.");
    const clauses: Clause[] = [];
    for (;;) {
      const one = this.#tokens[this.#at];
      if (clauses.length > 0 && (one === undefined || one === ")")) return clauses;
      const isAnd = one === "AND" || one === "&&";
      const last = clauses.at(-1);
      if (last !== undefined && (isAnd || one === "OR" || one === "||")) this.#at++;
      if (last?.occurrence === "should" && isAnd) last.occurrence = "must";
      clauses.push(yield* this.#clause(isAnd, depth));
      this.#budget.spend(tokenUnits);
      if (this.#budget.isDue) yield;
    }
  }

  *#clause(isAnd: boolean, depth: number): Work<Clause> {
    const sign = signs.get(this.#tokens[this.#at] ?? "");
    if (sign !== undefined) this.#at++;
    const occurrence = sign ?? (isAnd ? "must" : "should");
    const one = this.#tokens[this.#at];
    if (one === undefined || notAClause.has(one) || /^[~^]/.test(one) || signs.has(one)) {
      throw this.#unexpected();
    }
    this.#at++;
    let query: Query = one;
    if (one === "(") {
      query = yield* this.query(depth + 1);
      if (this.#tokens[this.#at++] !== ")") throw this.#unexpected();
    }
    const boost = /^\^([\d.]+)$/.exec(this.#tokens[this.#at] ?? "")?.[1];
    if (boost !== undefined) this.#at++;
    return { occurrence, query, boost: boost === undefined ? 1 : Number(boost) };
  }

  expectEnd(): void {
    if (this.#at < this.#tokens.length) throw this.#unexpected();
  }

  #unexpected(): EngineError {
    const one = this.#tokens[this.#at] ?? "<EOF>";
    return new EngineError(
      "lucene-syntax",
      `Cannot parse '${this.#text}': encountered "${one}", where a term or the end of the text was expected.`,
    );
  }
}

class LuceneSearch {
  readonly #field: FieldSearch;
  readonly #reader: IndexReader;

  constructor(field: FieldSearch, reader: IndexReader) {
    this.#field = field;
    this.#reader = reader;
  }

  *find(query: Query): Work<EntrySet> {
    if (typeof query === "string") return yield* this.#term(query);
    const clauses: { readonly occurrence: Occurrence; readonly entries: EntrySet }[] = [];
    for (const { occurrence, query: inner } of query) {
      clauses.push({ occurrence, entries: yield* this.find(inner) });
    }
    const has = (occurrence: Occurrence) => clauses.some((one) => one.occurrence === occurrence);
    let result = EntrySet.empty;
    if (has("must")) {
      let all: EntrySet | null = null;
      for (const { occurrence, entries } of clauses) {
        if (occurrence !== "must") continue;
        all = all === null ? entries : intersection(all, entries);
        yield* this.#pay();
      }
      result = all ?? result;
    } else {
      const builder = new EntrySetBuilder(this.#reader.view.size);
      for (const { occurrence, entries } of clauses) {
        if (occurrence === "should") builder.addSet(entries);
        yield* this.#pay();
      }
      result = builder.finish();
    }
    for (const { occurrence, entries } of clauses) {
      if (occurrence !== "must-not") continue;
      result = difference(result, entries);
      yield* this.#pay();
    }
    return result;
  }

  *scored(query: Query, boost: number): Work<ScoredText> {
    if (typeof query !== "string") {
      const parts: ScoredText[] = [];
      for (const one of query) {
        if (one.occurrence === "must-not") continue;
        parts.push(yield* this.scored(one.query, boost * one.boost));
      }
      const [part] = parts;
      return parts.length === 1 && part !== undefined
        ? part
        : { kind: "sum", parts, isCounted: true };
    }
    const { word, similarity, words, slop } = termOf(query);
    if (words.length > 1) return { kind: "phrase", words, slop, boost };
    if (similarity !== null) {
      return yield* fuzzyTerms(this.#field, word, similarity, boost, this.#reader);
    }
    if (/^[[{]/.test(query) || (!query.startsWith('"') && /[*?]/.test(query))) {
      return { kind: "whole", found: yield* this.#term(query), boost };
    }
    return { kind: "term", text: word, boost };
  }

  /** Charges the budget for joining two sets. */
  *#pay(): Work<void> {
    const { budget, view } = this.#reader;
    budget.spend(1 + (view.size >>> 10));
    if (budget.isDue) yield;
  }

  *#term(source: string): Work<EntrySet> {
    if (/^[[{]/.test(source)) return yield* this.#range(source);
    const { budget } = this.#reader;
    const { word, similarity, words, slop } = termOf(source);
    if (source.startsWith('"')) {
      const whole = yield* this.#field.equalsTerm(word);
      return words.length === 0 ? whole : union(whole, yield* this.#field.phrase(words, slop));
    }
    if (similarity !== null) {
      return yield* this.#field.similar(fuzzyTest(word, similarity, budget));
    }
    if (source === "*") return yield* this.#field.exists();
    if (/[*?]/.test(source)) {
      return yield* this.#field.matching(wildcardTest(lowerInvariant(source), budget));
    }
    return yield* this.#field.equalsTerm(word);
  }

  #range(source: string): Work<EntrySet> {
    const [low = "*", high = "*"] = source
      .slice(1, -1)
      .trim()
      .split(/\s+TO\s+|\s+/u);
    const isInclusive = source.startsWith("[");
    const bound = (text: string) =>
      text.trim() === "*" ? null : { text: text.trim().replace(/^"|"$/g, ""), isInclusive };
    return this.#field.rangeText(bound(low), bound(high));
  }
}

/** A term of a query, which is not a range. */
interface Term {
  /** The whole text, in lower case. */
  readonly word: string;
  /** Of `word~0.5`; null: the word is sought itself. */
  readonly similarity: number | null;
  /** Words in quotes; empty without quotes. */
  readonly words: readonly string[];
  readonly slop: number;
}

function termOf(source: string): Term {
  const bare = (text: string) => text.replace(/\\(.)/gsu, "$1");
  if (source.startsWith('"')) {
    const end = source.lastIndexOf('"');
    const slop = source.slice(end + 1).startsWith("~") ? Number(source.slice(end + 2)) : 0;
    const text = bare(source.slice(1, end));
    const words = wordsOfPhrase(text, standardAnalyzer);
    return { word: lowerInvariant(text), similarity: null, words, slop };
  }
  const [, text = "", found] = /^(.*?)(?:~([\d.]*))?$/su.exec(source) ?? [];
  const similarity = found === "" ? similarityDefault : found === undefined ? null : Number(found);
  return { word: lowerInvariant(bare(text)), similarity, words: [], slop: 0 };
}

/** `*` any text, `?` any one character, `\` escapes the next; matched greedily with a single backtracking point. */
function wildcardTest(pattern: string, budget: WorkBudget): (text: string) => boolean {
  const parts: (string | "many" | "one")[] = [];
  for (let i = 0; i < pattern.length; i++) {
    const character = pattern.charAt(i);
    if (character === "*") parts.push("many");
    else if (character === "?") parts.push("one");
    else parts.push(character === "\\" ? pattern.charAt(++i) : character);
  }
  return (text) => matchesWildcard(parts, text, budget);
}

function matchesWildcard(parts: readonly string[], text: string, budget: WorkBudget): boolean {
  let part = 0;
  let at = 0;
  let restartPart = -1;
  let restartAt = 0;
  while (at < text.length) {
    const wanted = parts[part];
    budget.spend(1);
    if (wanted === "many") {
      restartPart = ++part;
      restartAt = at;
    } else if (wanted !== undefined && (wanted === "one" || wanted === text.charAt(at))) {
      part++;
      at++;
    } else if (restartPart >= 0) {
      part = restartPart;
      at = ++restartAt;
    } else return false;
  }
  while (parts[part] === "many") part++;
  return part === parts.length;
}
