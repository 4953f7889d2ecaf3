/**
 * How well entries fit a condition: a sum over its full-text and equality conditions, each weighed by how rare its terms are
 * (BM25), times its boost. Only asked for by `order by score()`, `boost()`, `include explanations()`, and for databases
 * whose replies tell scores.
 */
import { standardAnalyzer } from "../indexing/analyzer.ts";
import type { FieldColumn } from "../indexing/field-column.ts";
import type { IndexReader } from "../indexing/index-reader.ts";
import { numberKind, textKind } from "../indexing/term-dictionary.ts";
import type { AnalyzedQuery, Condition } from "./analyzed-query.ts";
import { findEntries, type WhereContext } from "./compile-where.ts";

/** BM25's usual constants: how fast more occurrences stop to matter, and how much the length does. */
const saturation = 1.2;
const lengthShare = 0.75;

/** Whether the order of results depends on scores: it does when the query or the index boosts something. */
export function hasScores({ orderBy, where }: AnalyzedQuery, { boosts }: IndexReader): boolean {
  if (orderBy.some((key) => key.kind === "score")) return true;
  return orderBy.length === 0 && where !== null && (boosts !== undefined || hasBoost(where));
}

function hasBoost(condition: Condition): boolean {
  switch (condition.kind) {
    case "boost":
      return true;
    case "and":
    case "or":
    case "intersect":
      return condition.operands.some(hasBoost);
    default:
      return false;
  }
}

/** A part of a condition with the score that it gives each entry. */
interface ScorePart {
  /** What it is, in the words of the query; for a sum of its parts, `sum of`. */
  readonly label: string;
  /** By position in the list of entries. */
  readonly scores: Float64Array;
  readonly parts: readonly ScorePart[];
}

/** The score of each of `entries`, by position. */
export function scoreEntries(
  where: Condition | null,
  entries: Uint32Array,
  context: WhereContext,
): Float64Array {
  return where === null ? ones(entries) : scored(where, 1, entries, context).scores;
}

/** Why each of `entries` has its score: a function of the position, which gives lines of text. */
export function explainEntries(
  where: Condition | null,
  entries: Uint32Array,
  context: WhereContext,
): { readonly scores: Float64Array; textOf(position: number): string } {
  const root: ScorePart =
    where === null
      ? { label: "every entry is found", scores: ones(entries), parts: [] }
      : scored(where, 1, entries, context);
  return {
    scores: root.scores,
    textOf: (position) => explanation(root, position, ""),
  };
}

function ones({ length }: Uint32Array): Float64Array {
  return new Float64Array(length).fill(1);
}

/** Parts that add nothing to the entry's score are left out, unless nothing else is there. */
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

function scored(
  condition: Condition,
  factor: number,
  entries: Uint32Array,
  context: WhereContext,
): ScorePart {
  const scores = new Float64Array(entries.length);
  switch (condition.kind) {
    case "and":
    case "or":
    case "intersect": {
      const parts = condition.operands.map((one) => scored(one, factor, entries, context));
      for (const part of parts) addAll(scores, part.scores);
      return { label: `sum (${condition.kind})`, scores, parts };
    }
    case "boost": {
      const inner = scored(condition.operand, factor * condition.factor, entries, context);
      return { label: `boosted ${condition.factor} times`, scores: inner.scores, parts: [inner] };
    }
    case "search": {
      const { name } = condition.field;
      const words = addWordScores(name, condition.text, factor, entries, scores, context);
      return { label: `search(${name}, ${JSON.stringify(condition.text)})`, scores, parts: words };
    }
    case "true":
    case "none":
    case "not":
      return { label: `${condition.kind}: weighs nothing`, scores, parts: [] };
    default: {
      const found = findEntries(condition, context);
      const total = context.reader.store.liveCount;
      const weight = factor * rarity(total, found.count);
      for (let i = 0; i < entries.length; i++) {
        if (found.has(entries[i] as number)) scores[i] = weight;
      }
      boost(scores, condition.field.name, entries, context);
      const label = `${condition.kind} on ${condition.field.name}: found in ${found.count} of ${total} entries`;
      return { label, scores, parts: [] };
    }
  }
}

/** Multiplies by what maps gave to `boost`. */
function boost(
  scores: Float64Array,
  field: string,
  entries: Uint32Array,
  { reader: { boosts } }: WhereContext,
): void {
  if (boosts === undefined) return;
  for (let i = 0; i < scores.length; i++) {
    scores[i] = (scores[i] as number) * boosts.boostOf(entries[i] as number, field);
  }
}

function addAll(sums: Float64Array, scores: Float64Array): void {
  for (let i = 0; i < sums.length; i++) sums[i] = (sums[i] as number) + (scores[i] as number);
}

function addWordScores(
  field: string,
  text: string,
  factor: number,
  entries: Uint32Array,
  sums: Float64Array,
  context: WhereContext,
): ScorePart[] {
  const column = context.reader.column(field, "words");
  const search = context.reader.field(field, "words");
  if (column === undefined || search === undefined) return [];
  const parts: ScorePart[] = [];
  const total = context.reader.store.liveCount;
  const averageLength = column.valueCount / Math.max(1, column.entryCount);
  standardAnalyzer(text, (word) => {
    const term = findWord(column, word);
    if (term < 0) return;
    const found = search.equalsTerm(word).count;
    const weight = factor * rarity(total, found);
    const scores = new Float64Array(entries.length);
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i] as number;
      const count = occurrences(column, entry, term);
      if (count === 0) continue;
      const length = (column.starts[entry + 1] as number) - (column.starts[entry] as number);
      const norm = saturation * (1 - lengthShare + (lengthShare * length) / averageLength);
      scores[i] = (weight * count * (saturation + 1)) / (count + norm);
    }
    boost(scores, field, entries, context);
    addAll(sums, scores);
    parts.push({ label: `'${word}', in ${found} of ${total} entries`, scores, parts: [] });
  });
  return parts;
}

function findWord(column: FieldColumn, word: string): number {
  const term = column.dictionary.findText(textKind, word);
  return term >= 0 ? term : column.dictionary.findText(numberKind, word);
}

function occurrences(column: FieldColumn, entry: number, term: number): number {
  let count = 0;
  const end = column.starts[entry + 1] as number;
  for (let at = column.starts[entry] as number; at < end; at++)
    if (column.terms[at] === term) count++;
  return count;
}

function rarity(total: number, count: number): number {
  return Math.log(1 + (total - count + 0.5) / (count + 0.5));
}
