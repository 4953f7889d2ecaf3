/**
 * lucene(field, text): the part of Lucene's query syntax that applies to a single field.
 *
 *   query  := clause+                    clauses are joined by OR unless AND, && or a sign overrides it
 *   clause := [ '+' | '-' | 'NOT' | '!' ] ( '(' query ')' | term ) [ '^' number ]
 *   term   := '"' words '"' [ '~' number ] | word with * ? | word [ '~' [number] ]
 *           | '[' low 'TO' high ']' | '{' low 'TO' high '}'
 *
 * A name before a colon is refused: the function names the field.
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
import { fuzzyTest } from "./compile-fuzzy.ts";

type Occurrence = "must" | "should" | "must-not";

interface Clause {
  occurrence: Occurrence;
  readonly entries: EntrySet;
}

/** Lucene's default similarity of `word~`. */
const similarityDefault = 0.5;
const nestingMax = 64;
/** Cost of reading a token. */
const tokenUnits = 16;
const token =
  /\s+|&&|\|\||[-+!()]|"(?:[^"\\]|\\.)*"(?:~\d+)?|[[{][^\]}]*[\]}]|(?:[^\s()"^\\]|\\.)+|\^[\d.]+|./gsu;

/** Returns the entries that match a query text in a field. @throws query-invalid */
export function* searchLucene(
  text: string,
  field: FieldSearch,
  reader: IndexReader,
): Work<EntrySet> {
  const tokens: string[] = [];
  for (const [one] of text.matchAll(token)) {
    if (one.trim() !== "" && !one.startsWith("^")) tokens.push(one);
    reader.budget.spend(tokenUnits);
    if (reader.budget.isDue) yield;
  }
  return yield* new LuceneQuery(tokens, field, reader).parse(0);
}

class LuceneQuery {
  readonly #tokens: readonly string[];
  readonly #field: FieldSearch;
  readonly #reader: IndexReader;
  #at = 0;

  constructor(tokens: readonly string[], field: FieldSearch, reader: IndexReader) {
    this.#tokens = tokens;
    this.#field = field;
    this.#reader = reader;
  }

  *parse(depth: number): Work<EntrySet> {
    if (depth > nestingMax)
      throw new EngineError("query-invalid", "A lucene() query is nested too deep.");
    const clauses: Clause[] = [];
    let isAnd = false;
    for (; this.#at < this.#tokens.length; this.#at++) {
      const one = this.#tokens[this.#at] as string;
      if (one === ")") break;
      if (one === "OR" || one === "||") continue;
      if (one === "AND" || one === "&&") {
        const last = clauses.at(-1);
        if (last !== undefined && last.occurrence === "should") last.occurrence = "must";
        isAnd = true;
        continue;
      }
      clauses.push(yield* this.#clause(one, isAnd, depth));
      this.#reader.budget.spend(tokenUnits);
      if (this.#reader.budget.isDue) yield;
      isAnd = false;
    }
    return yield* this.#combined(clauses);
  }

  *#clause(first: string, isAnd: boolean, depth: number): Work<Clause> {
    let occurrence: Occurrence = isAnd ? "must" : "should";
    let one = first;
    if (one === "+") occurrence = "must";
    else if (one === "-" || one === "!" || one === "NOT") occurrence = "must-not";
    if (one === "+" || one === "-" || one === "!" || one === "NOT") {
      one = this.#tokens[++this.#at] ?? "";
    }
    if (one !== "(") return { occurrence, entries: yield* this.#term(one) };
    this.#at++;
    return { occurrence, entries: yield* this.parse(depth + 1) };
  }

  *#combined(clauses: readonly Clause[]): Work<EntrySet> {
    const has = (occurrence: Occurrence) =>
      clauses.some((clause) => clause.occurrence === occurrence);
    let result = EntrySet.empty;
    if (has("must")) result = yield* this.#folded(clauses, "must", intersection);
    else if (has("should")) result = yield* this.#united(clauses);
    else if (clauses.length > 0) result = this.#reader.all();
    return has("must-not") ? yield* this.#folded(clauses, "must-not", difference, result) : result;
  }

  *#folded(
    clauses: readonly Clause[],
    wanted: Occurrence,
    join: (left: EntrySet, right: EntrySet) => EntrySet,
    start: EntrySet | null = null,
  ): Work<EntrySet> {
    let result = start;
    for (const { occurrence, entries } of clauses) {
      if (occurrence !== wanted) continue;
      result = result === null ? entries : join(result, entries);
      yield* this.#pay();
    }
    return result ?? EntrySet.empty;
  }

  *#united(clauses: readonly Clause[]): Work<EntrySet> {
    const builder = new EntrySetBuilder(this.#reader.view.size);
    for (const { occurrence, entries } of clauses) {
      if (occurrence === "should") builder.addSet(entries);
      yield* this.#pay();
    }
    return builder.finish();
  }

  /** Charges the budget for joining two sets. */
  *#pay(): Work<void> {
    const { budget, view } = this.#reader;
    budget.spend(1 + (view.size >>> 10));
    if (budget.isDue) yield;
  }

  #term(source: string): Work<EntrySet> {
    if (source.startsWith('"')) return this.#phrase(source);
    if (source.startsWith("[") || source.startsWith("{")) return this.#range(source);
    const [, word = "", similarity] = /^(.*?)(?:~([\d.]*))?$/su.exec(source) ?? [];
    const plain = lowerInvariant(word.replace(/\\(.)/gsu, "$1"));
    const { budget } = this.#reader;
    if (similarity !== undefined) {
      const least = similarity === "" ? similarityDefault : Number(similarity);
      return this.#field.similar(fuzzyTest(plain, least, budget));
    }
    if (word === "*") return this.#field.exists();
    if (/[*?]/.test(word)) {
      return this.#field.matching(wildcardTest(lowerInvariant(word), budget));
    }
    return this.#field.equalsTerm(plain);
  }

  *#phrase(source: string): Work<EntrySet> {
    const end = source.lastIndexOf('"');
    const slop = source.slice(end + 1).startsWith("~") ? Number(source.slice(end + 2)) : 0;
    const text = source.slice(1, end).replace(/\\(.)/gsu, "$1");
    const whole = yield* this.#field.equalsTerm(lowerInvariant(text));
    const words = wordsOfPhrase(text, standardAnalyzer);
    return words.length === 0 ? whole : union(whole, yield* this.#field.phrase(words, slop));
  }

  #range(source: string): Work<EntrySet> {
    const [low = "*", high = "*"] = source.slice(1, -1).split(/\s+TO\s+/u);
    const isInclusive = source.startsWith("[");
    const bound = (text: string) =>
      text.trim() === "*" ? null : { text: text.trim().replace(/^"|"$/g, ""), isInclusive };
    return this.#field.rangeText(bound(low), bound(high));
  }
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
