/**
 * `include highlight(field, length, count)`: fragments of a field's text around the words that the query searched for
 * in it, with these words in tags. A fragment has about `length` characters and begins and ends between words.
 */

import type { WorkBudget } from "../base/work-budget.ts";
import { standardAnalyzer } from "../indexing/analyzer.ts";
import type { AnalyzedInclude, Condition } from "./analyzed-query.ts";
import { meaningOf, operandsOf } from "./meaning-of.ts";
import type { ParameterValue } from "./query-parameters.ts";

type Highlight = AnalyzedInclude["highlights"][number];

const usualPreTag = '<b style="background:yellow">';
const usualPostTag = "</b>";
/** UTF-16 units of a text that are scanned. */
const textLengthMax = 1024 * 1024;
/** UTF-16 units of the search text that are highlighted. */
const soughtLengthMax = 64 * 1024;
/** Cost of matching a word against a wildcard. */
const wildcardUnits = 8;
/** Words whose test results are cached. */
const knownWordsMax = 10_000;
const wordPattern = /[\p{L}\p{N}]+(?:['’._][\p{L}\p{N}]+)*/gu;

/** The number of the term that a lower-cased word matches, or -1. */
type WordTest = (word: string) => number;

export interface Highlighter {
  readonly field: string;
  /** The names on the path to the value. */
  readonly path: readonly string[];
  /** The field whose value identifies a reduced row. */
  readonly groupKey: string | null;
  /** The fragments of a text, best first; empty when nothing matches. */
  fragments(text: string): string[];
}

/** One for each `highlight(…)` of a query. */
export function makeHighlighters(
  highlights: readonly Highlight[],
  where: Condition | null,
  budget: WorkBudget,
): Highlighter[] {
  return highlights.map((highlight) => {
    const { field, fragmentLength, fragmentCount, options } = highlight;
    const test = wordTest(where, field.name, budget);
    const preTags = textsOf(option(options, "pretags"));
    const postTags = textsOf(option(options, "posttags"));
    const tagged = (word: string, term: number) => {
      const pre = preTags[term % Math.max(1, preTags.length)] ?? usualPreTag;
      const post = postTags[term % Math.max(1, postTags.length)] ?? usualPostTag;
      return `${pre}${word}${post}`;
    };
    const groupKey = option(options, "groupkey");
    return {
      field: field.name,
      path: field.path.map(({ name }) => name),
      groupKey: groupKey?.type === "string" ? groupKey.value : null,
      fragments: (text) => {
        const looked = text.slice(0, textLengthMax);
        budget.tick(looked.length);
        return fragmentsOf(looked, test, fragmentLength, fragmentCount, tagged);
      },
    };
  });
}

function option(options: ParameterValue | null, name: string): ParameterValue | undefined {
  if (options?.type !== "object") return undefined;
  return [...options.fields].find(([key]) => key.toLowerCase() === name)?.[1];
}

function textsOf(value: ParameterValue | undefined): string[] {
  const items = value?.type === "array" ? value.items : [];
  return items.flatMap((item) => (item.type === "string" ? [item.value] : []));
}

/** The words that a condition searches for in a field, each with its position among them. */
interface SoughtWords {
  readonly whole: Map<string, number>;
  readonly wildcards: { readonly pattern: RegExp; readonly term: number }[];
  count: number;
}

/** A test for the words that a condition searches for in a field. Results for repeated words are cached. */
function wordTest(where: Condition | null, field: string, budget: WorkBudget): WordTest {
  const sought: SoughtWords = { whole: new Map(), wildcards: [], count: 0 };
  if (where !== null) addSought(where, field, sought);
  const { whole, wildcards } = sought;
  if (wildcards.length === 0) return (word) => whole.get(word) ?? -1;
  const known = new Map<string, number>();
  return (word) => {
    const answer = known.get(word);
    if (answer !== undefined) return answer;
    budget.spend(wildcards.length * wildcardUnits);
    const first = whole.get(word) ?? Number.POSITIVE_INFINITY;
    const fit = wildcards.find(({ pattern, term }) => term > first || pattern.test(word));
    const term = Math.min(first, fit?.term ?? Number.POSITIVE_INFINITY);
    if (known.size < knownWordsMax) known.set(word, Number.isFinite(term) ? term : -1);
    return Number.isFinite(term) ? term : -1;
  };
}

/** What is under a `not` is not searched for. */
function addSought(condition: Condition, field: string, sought: SoughtWords): void {
  if (condition.kind === "not" || condition.kind === "none") return;
  for (const operand of operandsOf(condition)) addSought(operand, field, sought);
  if (!("field" in condition) || condition.field.name !== field) return;
  for (const text of meaningOf(condition).soughtTexts(condition)) addWords(text, sought);
}

/**
 * `*` at the ends of a piece matches anything, and the rest is then taken literally; other pieces are analyzed as
 * words.
 */
function addWords(text: string, sought: SoughtWords): void {
  for (const piece of text.slice(0, soughtLengthMax).replaceAll('"', " ").split(/\s+/)) {
    const bare = piece.replace(/^\*|\*$/g, "");
    if (bare === piece) {
      standardAnalyzer(piece, (word) => {
        if (!sought.whole.has(word)) sought.whole.set(word, sought.count);
        sought.count++;
      });
    } else if (bare !== "") {
      const isOpen = [piece.startsWith("*"), piece.endsWith("*")];
      const pattern = wordLike(bare.toLowerCase(), isOpen[0] ? "" : "^", isOpen[1] ? "" : "$");
      sought.wildcards.push({ pattern, term: sought.count++ });
    }
  }
}

function wordLike(word: string, before: string, after: string): RegExp {
  return new RegExp(before + word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") + after);
}

function fragmentsOf(
  text: string,
  test: WordTest,
  length: number,
  countMax: number,
  tagged: (word: string, term: number) => string,
): string[] {
  const fragments: string[] = [];
  const found = [...text.matchAll(wordPattern)].flatMap((match) => {
    const term = test(match[0].toLowerCase());
    return term < 0 ? [] : [{ from: match.index, to: match.index + match[0].length, term }];
  });
  let last = 0;
  for (let i = 0; i < found.length && fragments.length < countMax; ) {
    const first = found[i] as (typeof found)[number];
    const margin = Math.max(0, Math.floor((length - (first.to - first.from)) / 2));
    const start = wordStart(text, Math.max(last, first.from - margin), first.from);
    const end = wordEnd(text, Math.min(text.length, Math.max(first.to, start + length)), first.to);
    let fragment = "";
    let at = start;
    for (; i < found.length && (found[i] as typeof first).to <= end; i++) {
      const { from, to, term } = found[i] as typeof first;
      fragment += text.slice(at, from) + tagged(text.slice(from, to), term);
      at = to;
    }
    fragments.push(fragment + text.slice(at, end));
    last = end;
  }
  return fragments;
}

/** The first position between words from `start` on, at most `latest`. */
function wordStart(text: string, start: number, latest: number): number {
  let at = start;
  while (at > 0 && at < latest && !isBetween(text, at)) at++;
  while (at < latest && /\s/.test(text.charAt(at))) at++;
  return at;
}

/** The last position between words up to `end`, at least `earliest`. */
function wordEnd(text: string, end: number, earliest: number): number {
  let at = end;
  while (at < text.length && at > earliest && !isBetween(text, at)) at--;
  while (at > earliest && /\s/.test(text.charAt(at - 1))) at--;
  return at;
}

function isBetween(text: string, at: number): boolean {
  return !/[\p{L}\p{N}]{2}/u.test(text.slice(at - 1, at + 1));
}
