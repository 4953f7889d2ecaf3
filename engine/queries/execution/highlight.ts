/**
 * `include highlight(field, length, count)`: fragments of a field's text that begin with a word that the query searched
 * for, with the word in tags. Measured on RavenDB 7.2.7 with its default engine:
 *
 * - A searched text is found at any position, in any letter case, and the whole word around it is tagged, with the
 *   space before it. Words are separated by spaces.
 * - Each match begins a fragment. `length` is counted from the beginning of the text: the fragment ends at the last
 *   space before that offset; or at the end of the text, if no space follows the word; or with the word, if that ends
 *   later.
 * - Of several conditions on a field the first one counts, except for `in`, whose values all count.
 *
 * An index for Lucene has the fragments of `term-highlight.ts`, of stored fields only.
 */

import { EngineError } from "../../base/errors.ts";
import { highlightedLengthMax, highlightScanMax } from "../../base/limits.ts";
import type { WorkBudget } from "../../base/scheduling/work-budget.ts";
import { type Analyzer, lowerInvariant, wordsOfPhrase } from "../../indexing/text/analyzer.ts";
import { bodyTextOf, idOf } from "../../state/documents/document-record.ts";
import type {
  AnalyzedInclude,
  AnalyzedQuery,
  Condition,
  HighlightOptions,
} from "../analysis/analyzed-query.ts";
import { meaningOf, operandsOf } from "../analysis/meaning-of.ts";
import type { RowParts } from "./results-projection.ts";
import { type SoughtTerm, termFragments } from "./term-highlight.ts";

type Highlight = AnalyzedInclude["highlights"][number];

/** Background colors of the searched texts, used cyclically. */
const colors = [
  "yellow",
  "lawngreen",
  "aquamarine",
  "magenta",
  "palegreen",
  "coral",
  "wheat",
  "khaki",
  "lime",
  "deepskyblue",
  "deeppink",
  "salmon",
  "peachpuff",
  "violet",
  "mediumpurple",
  "palegoldenrod",
  "darkkhaki",
  "springgreen",
  "turquoise",
  "powderblue",
];
/** The conditions whose words an index for Lucene marks. */
const termKinds: ReadonlySet<string> = new Set([
  "search",
  "startsWith",
  "proximity",
  "lucene",
  "comparison",
]);
/** Maximum length of a searched text in UTF-16 units, and maximum number of searched texts. */
const searchedLengthMax = 64 * 1024;
const searchedTextsMax = 1024;

interface Highlighter {
  readonly field: string;
  /** The names on the path to the value. */
  readonly path: readonly string[];
  /** The field whose value identifies a row; null: its id, or the whole reduced row. */
  readonly groupKey: string | null;
  /**
   * Returns the fragments of a field's texts, in the order of the searched texts; empty if nothing matches. Of long
   * texts only the beginnings are scanned, because a row is processed synchronously.
   * @throws work-limit
   */
  fragments(texts: readonly string[]): string[];
}

/** Returns the analyzer of a field of an index for Lucene. */
type AnalyzerOf = (field: string) => Analyzer;

/** UTF-16 units of the fragments of a query so far: they overlap, so a text may have many times its length of them. */
interface Total {
  length: number;
}

/** One for each `highlight(…)` of a query on an index for Lucene whose field is searched for a word. */
function makeTermHighlighters(
  highlights: readonly Highlight[],
  where: Condition,
  budget: WorkBudget,
  analyzerOf: AnalyzerOf,
): Highlighter[] {
  const total: Total = { length: 0 };
  const found = soughtTerms(where, analyzerOf);
  return highlights.flatMap((highlight) => {
    const { field, fragmentLength: length, fragmentCount: countMax, options } = highlight;
    const sought = found.get(field.name) ?? [];
    if (sought.length === 0) return [];
    const form = { length, countMax, tags: tagsOf(options) };
    const scanMax = Math.floor(highlightScanMax / highlights.length / sought.length);
    return {
      field: field.name,
      path: field.path.map(({ name }) => name),
      groupKey: options.groupKey,
      fragments: (texts) => {
        const text = beginnings(texts, scanMax).join(" ");
        budget.spend(1 + text.length * sought.length);
        return termFragments(text, sought, analyzerOf(field.name), form, (added) => {
          total.length += added;
          if (total.length > highlightedLengthMax) throw tooLong();
        });
      },
    };
  });
}

/** Returns the terms that conditions search for, by field, except under a `not`. */
function soughtTerms(where: Condition, analyzerOf: AnalyzerOf): Map<string, SoughtTerm[]> {
  const found = new Map<string, SoughtTerm[]>();
  let position = 0;
  const visit = (condition: Condition): void => {
    if (condition.kind === "not" || condition.kind === "none") return;
    for (const operand of operandsOf(condition)) visit(operand);
    if (!("field" in condition) || !termKinds.has(condition.kind)) return;
    if (condition.kind === "comparison" && condition.operator !== "=") return;
    const { name } = condition.field;
    const terms = found.get(name) ?? [];
    found.set(name, terms);
    const texts = meaningOf(condition).searchedTexts(condition);
    const whole = condition.kind === "proximity" ? texts.map((text) => `"${text}"`) : texts;
    for (const [piece, phrase] of whole.join(" ").matchAll(/"([^"]*)"|\S+/gu)) {
      if (position >= searchedTextsMax) return;
      const isPrefix = phrase === undefined && /^[^*]+\*$/.test(piece);
      const words = isPrefix
        ? [lowerInvariant(piece.slice(0, -1))]
        : wordsOfPhrase(phrase ?? piece, analyzerOf(name));
      if (words.length > 0) terms.push({ words, isPrefix, position: position++ });
    }
  };
  visit(where);
  return found;
}

/** One for each `highlight(…)` of a query whose field is searched for a text. `analyzerOf`: null for Corax */
export function makeHighlighters(
  highlights: readonly Highlight[],
  where: Condition | null,
  budget: WorkBudget,
  analyzerOf: AnalyzerOf | null = null,
): Highlighter[] {
  if (analyzerOf !== null && where !== null) {
    return makeTermHighlighters(highlights, where, budget, analyzerOf);
  }
  const total: Total = { length: 0 };
  return highlights.flatMap((highlight) => {
    const { field, fragmentLength, fragmentCount, options } = highlight;
    const sought = where === null ? [] : searchedTexts(where, field.name);
    if (sought.length === 0) return [];
    const tags = tagsOf(options);
    const patterns = sought.slice(0, searchedTextsMax).map(patternOf);
    const scanMax = Math.floor(highlightScanMax / highlights.length);
    return {
      field: field.name,
      path: field.path.map(({ name }) => name),
      groupKey: options.groupKey,
      fragments: (texts) => {
        const found: string[] = [];
        const looked = beginnings(texts, Math.floor(scanMax / patterns.length));
        for (const [term, pattern] of patterns.entries()) {
          const fragment = { length: fragmentLength, countMax: fragmentCount, ...tags(term) };
          for (const text of looked) {
            budget.spend(1 + (text.length >>> 4));
            addFragments(found, text, pattern, fragment, total);
          }
        }
        return found;
      },
    };
  });
}

/**
 * Returns the text of a group key, or null if the row has no such key. As in RavenDB 7.2.7, where an index made for Lucene has the
 * term; one made for Corax refuses null, lists and objects (and, without a projection, numbers and booleans, which have
 * their texts here).
 * @throws EngineError not-supported
 */
function rowKeyText(value: unknown, name: string, isLucene: boolean): string | null {
  if (value === undefined) return null;
  if (isLucene) {
    if (value === null) return "NULL_VALUE";
    if (value === "") return "EMPTY_STRING";
    if (Array.isArray(value)) return rowKeyText(value[0], name, true);
    return typeof value === "object" ? JSON.stringify(value) : String(value);
  }
  if (typeof value === "object") {
    const found = value === null ? "null" : Array.isArray(value) ? "a list" : "an object";
    const message = `The group key '${name}' of highlights must be a text, but is ${found} in a row.`;
    throw new EngineError("not-supported", message);
  }
  return String(value);
}

/** The error about a reduced row without the group key that highlights are to be named by. */
function noRowKey(name: string): EngineError {
  return new EngineError("argument-null", `A row has no '${name}', the group key of highlights.`);
}

/** The highlights of the rows of a query. */
export class RowHighlights {
  /** By field, then by document id, or by the identifier of a reduced row. */
  readonly found: ReadonlyMap<string, Map<string, string[]>>;
  readonly #highlighters: readonly Highlighter[];
  readonly #isLucene: boolean;

  /** @param analyzerOf set if the rows come from an index that was made for Lucene */
  constructor(
    { include, where }: AnalyzedQuery,
    budget: WorkBudget,
    analyzerOf: AnalyzerOf | null,
  ) {
    this.#highlighters = makeHighlighters(include.highlights, where, budget, analyzerOf);
    this.#isLucene = analyzerOf !== null;
    this.found = new Map(this.#highlighters.map(({ field }) => [field, new Map()]));
  }

  /**
   * Adds a row. A stored field takes precedence over the document's. `projected`: the row's text; null: it is the
   * reduced object itself, or the document. @throws work-limit, argument-null, not-supported
   */
  add({ row, stored }: RowParts, projected: string | null): void {
    for (const { field, path, groupKey, fragments } of this.#highlighters) {
      const text = row.start < 0 ? row.bytes.toString() : bodyTextOf(row.bytes, row.start);
      const source = JSON.parse(text) as unknown;
      const kept = stored === null ? undefined : valueAt(JSON.parse(stored), [field]);
      const found = fragments(textsOf(this.#isLucene ? kept : (kept ?? valueAt(source, path))));
      if (found.length === 0) continue;
      const key = groupKey === null ? null : this.#rowKey(groupKey, text, stored, projected);
      if (key === null && groupKey !== null && row.start < 0) throw noRowKey(groupKey);
      const rowName = key ?? (row.start < 0 ? text : idOf(row.bytes, row.start));
      this.found.get(field)?.set(rowName, found);
    }
  }

  /** The text of a row's group key: an index made for Lucene has it beside a projection, one for Corax in the row. */
  #rowKey(
    name: string,
    text: string,
    stored: string | null,
    projected: string | null,
  ): string | null {
    const shown = valueAt(JSON.parse(projected ?? text), [name]);
    if (!this.#isLucene || shown !== undefined) return rowKeyText(shown, name, this.#isLucene);
    const kept = stored === null ? undefined : valueAt(JSON.parse(stored), [name]);
    return rowKeyText(kept ?? valueAt(JSON.parse(text), [name]), name, true);
  }
}

/** Returns the value at the end of a path; for lists, the values of all their elements. */
function valueAt(value: unknown, path: readonly string[]): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return value;
  if (Array.isArray(value)) return value.map((item) => valueAt(item, path));
  if (typeof value !== "object" || value === null) return undefined;
  return valueAt((value as Readonly<Record<string, unknown>>)[name], rest);
}

/** Returns the texts of a field's value; for an array, the texts of its elements. */
function textsOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(textsOf);
  return typeof value === "string" ? [value] : [];
}

interface Tags {
  readonly pre: string;
  readonly post: string;
}

/** Common parameters of fragments. */
interface FragmentForm extends Tags {
  readonly length: number;
  readonly countMax: number;
}

/** Returns the first `lengthMax` UTF-16 units of texts, all together. */
function beginnings(texts: readonly string[], lengthMax: number): string[] {
  const found: string[] = [];
  let rest = lengthMax;
  for (const text of texts) {
    if (rest <= 0) break;
    found.push(text.slice(0, rest));
    rest -= text.length;
  }
  return found;
}

/** Returns the tags of each term, by its position. */
function tagsOf({ preTags, postTags }: HighlightOptions): (term: number) => Tags {
  if (preTags.length === 0) {
    const color = (term: number) => colors[term % colors.length];
    return (term) => ({ pre: `<b style="background:${color(term)}">`, post: "</b>" });
  }
  return (term) => ({
    pre: preTags[term % preTags.length] as string,
    post: postTags[term % postTags.length] as string,
  });
}

/** Returns the texts that a condition searches for in a field, except texts under a `not`. */
function searchedTexts(where: Condition, field: string): readonly string[] {
  let first: readonly string[] = [];
  let listed: readonly string[] = [];
  const visit = (condition: Condition): void => {
    if (condition.kind === "not" || condition.kind === "none") return;
    for (const operand of operandsOf(condition)) visit(operand);
    if (!("field" in condition) || condition.field.name !== field) return;
    const texts = meaningOf(condition).searchedTexts(condition);
    if (condition.kind === "in") {
      if (listed.length === 0) listed = texts;
    } else if (first.length === 0) first = texts;
  };
  visit(where);
  return listed.length > 0 ? listed : first;
}

/** `*` at the ends of a text matches anything; all other characters are literal. */
function patternOf(text: string): RegExp {
  const bare = text.slice(0, searchedLengthMax).replace(/^\*|\*$/g, "");
  return new RegExp(bare.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "giu");
}

/**
 * Appends the fragments of one text that begin with a match of `pattern`, up to `countMax` in all. @throws work-limit
 */
function addFragments(
  fragments: string[],
  text: string,
  pattern: RegExp,
  { length, countMax, pre, post }: FragmentForm,
  total: Total,
): void {
  pattern.lastIndex = 0;
  while (fragments.length < countMax) {
    const found = pattern.exec(text);
    if (found === null || found[0] === "") return;
    const start = Math.max(0, text.lastIndexOf(" ", found.index));
    const space = text.indexOf(" ", found.index);
    const wordEnd = space < 0 ? text.length : space;
    const end = endOf(text, wordEnd, length);
    total.length += pre.length + post.length + end - start;
    if (total.length > highlightedLengthMax) throw tooLong();
    fragments.push(pre + text.slice(start, wordEnd) + post + text.slice(wordEnd, end));
    pattern.lastIndex = wordEnd;
  }
}

function tooLong(): EngineError {
  return new EngineError(
    "work-limit",
    `The highlights of the query have more than ${highlightedLengthMax} characters, the limit of one query. Ask for ` +
      "shorter or fewer fragments, or fewer results per request.",
  );
}

/** Returns the end of a fragment whose word ends at `wordEnd`. */
function endOf(text: string, wordEnd: number, length: number): number {
  if (length < wordEnd) return wordEnd;
  const last = text.lastIndexOf(" ", Math.min(length, text.length) - 1);
  return last > wordEnd ? last : text.length;
}
