/**
 * `include highlight(field, length, count)`: pieces of a field's text around the words that the query sought in it, with
 * tags about these words. A piece is of about `length` characters and begins and ends between words.
 */
import { standardAnalyzer } from "../indexing/analyzer.ts";
import type { AnalyzedInclude, Condition } from "./analyzed-query.ts";
import type { ParameterValue } from "./query-parameters.ts";

type Highlight = AnalyzedInclude["highlights"][number];

const usualPreTag = '<b style="background:yellow">';
const usualPostTag = "</b>";
const wordPattern = /[\p{L}\p{N}]+(?:['’._][\p{L}\p{N}]+)*/gu;

/** Does a lower-cased word fit what was sought? The number of the term that it fits, or -1. */
type WordTest = (word: string) => number;

export interface Highlighter {
  readonly field: string;
  /** The names on the way to the value. */
  readonly path: readonly string[];
  /** The field by whose value reduced rows are told apart. */
  readonly groupKey: string | null;
  /** The pieces of a text, best first come; empty when nothing is found in it. */
  fragments(text: string): string[];
}

/** One for each `highlight(…)` of a query. */
export function makeHighlighters(
  highlights: readonly Highlight[],
  where: Condition | null,
): Highlighter[] {
  return highlights.map((highlight) => {
    const { field, fragmentLength, fragmentCount, options } = highlight;
    const test = wordTest(where, field.name);
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
      fragments: (text) => fragmentsOf(text, test, fragmentLength, fragmentCount, tagged),
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

/** A test of the words that a condition seeks in a field. */
function wordTest(where: Condition | null, field: string): WordTest {
  const patterns: RegExp[] = [];
  if (where !== null) addPatterns(where, field, patterns);
  return (word) => patterns.findIndex((pattern) => pattern.test(word));
}

function addPatterns(condition: Condition, field: string, patterns: RegExp[]): void {
  switch (condition.kind) {
    case "and":
    case "or":
    case "intersect":
      for (const operand of condition.operands) addPatterns(operand, field, patterns);
      return;
    case "boost":
      addPatterns(condition.operand, field, patterns);
      return;
    case "search":
    case "proximity":
    case "fuzzy":
    case "lucene":
      if (condition.field.name === field) addWords(condition.text, patterns);
      return;
    case "startsWith":
      if (condition.field.name === field) addWords(`${condition.text}*`, patterns);
      return;
    case "comparison": {
      const { value } = condition;
      const isSought = condition.operator === "=" && condition.field.name === field;
      if (isSought && value.type === "string") addWords(value.value, patterns);
      return;
    }
    case "in":
      if (condition.field.name !== field) return;
      for (const { value } of condition.values) {
        if (typeof value === "string") addWords(value, patterns);
      }
      return;
    default:
  }
}

/** `*` at the ends of a piece stands for anything, and then the rest is taken as it is; other pieces are words. */
function addWords(text: string, patterns: RegExp[]): void {
  for (const piece of text.replaceAll('"', " ").split(/\s+/)) {
    const bare = piece.replace(/^\*|\*$/g, "");
    if (bare === piece) standardAnalyzer(piece, (word) => patterns.push(wordLike(word, "^", "$")));
    else if (bare !== "") {
      const isOpen = [piece.startsWith("*"), piece.endsWith("*")];
      patterns.push(wordLike(bare.toLowerCase(), isOpen[0] ? "" : "^", isOpen[1] ? "" : "$"));
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

/** The first place from `start` on, and not behind `latest`, where no word goes on. */
function wordStart(text: string, start: number, latest: number): number {
  let at = start;
  while (at > 0 && at < latest && !isBetween(text, at)) at++;
  while (at < latest && /\s/.test(text.charAt(at))) at++;
  return at;
}

/** The last place up to `end`, and not before `earliest`, where no word goes on. */
function wordEnd(text: string, end: number, earliest: number): number {
  let at = end;
  while (at < text.length && at > earliest && !isBetween(text, at)) at--;
  while (at > earliest && /\s/.test(text.charAt(at - 1))) at--;
  return at;
}

function isBetween(text: string, at: number): boolean {
  return !/[\p{L}\p{N}]{2}/u.test(text.slice(at - 1, at + 1));
}
