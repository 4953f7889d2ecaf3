/**
 * How well entries fit a condition: a sum over its full-text and equality conditions, each weighed by how rare its terms are
 * (BM25), times its boost. Only asked for by `order by score()` and `boost()`.
 */
import { standardAnalyzer } from "../indexing/analyzer.ts";
import type { FieldColumn } from "../indexing/field-column.ts";
import { numberKind, textKind } from "../indexing/term-dictionary.ts";
import type { AnalyzedQuery, Condition } from "./analyzed-query.ts";
import { findEntries, type WhereContext } from "./compile-where.ts";

/** BM25's usual constants: how fast more occurrences stop to matter, and how much the length does. */
const saturation = 1.2;
const lengthShare = 0.75;

/** Whether the order of results depends on scores. */
export function hasScores(query: AnalyzedQuery): boolean {
  if (query.orderBy.some((key) => key.kind === "score")) return true;
  return query.orderBy.length === 0 && query.where !== null && hasBoost(query.where);
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

/** The score of each of `entries`, by position. */
export function scoreEntries(
  where: Condition | null,
  entries: Uint32Array,
  context: WhereContext,
): Float64Array {
  const scores = new Float64Array(entries.length);
  if (where !== null) addScores(where, 1, entries, scores, context);
  return scores;
}

function addScores(
  condition: Condition,
  factor: number,
  entries: Uint32Array,
  scores: Float64Array,
  context: WhereContext,
): void {
  switch (condition.kind) {
    case "and":
    case "or":
    case "intersect":
      for (const operand of condition.operands)
        addScores(operand, factor, entries, scores, context);
      return;
    case "boost":
      addScores(condition.operand, factor * condition.factor, entries, scores, context);
      return;
    case "search":
      addWordScores(condition.field.name, condition.text, factor, entries, scores, context);
      return;
    case "true":
    case "none":
    case "not":
      return;
    default:
      addConstantScores(condition, factor, entries, scores, context);
  }
}

/** A condition that is no full text weighs by its rarity alone. */
function addConstantScores(
  condition: Condition,
  factor: number,
  entries: Uint32Array,
  scores: Float64Array,
  context: WhereContext,
): void {
  const found = findEntries(condition, context);
  const weight = factor * rarity(context.reader.store.liveCount, found.count);
  for (let i = 0; i < entries.length; i++) {
    if (found.has(entries[i] as number)) scores[i] = (scores[i] as number) + weight;
  }
}

function addWordScores(
  field: string,
  text: string,
  factor: number,
  entries: Uint32Array,
  scores: Float64Array,
  context: WhereContext,
): void {
  const column = context.reader.column(field, "words");
  const search = context.reader.field(field, "words");
  if (column === undefined || search === undefined) return;
  const total = context.reader.store.liveCount;
  const averageLength = column.valueCount / Math.max(1, column.entryCount);
  standardAnalyzer(text, (word) => {
    const term = findWord(column, word);
    if (term < 0) return;
    const weight = factor * rarity(total, search.equalsTerm(word).count);
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i] as number;
      const count = occurrences(column, entry, term);
      if (count === 0) continue;
      const length = (column.starts[entry + 1] as number) - (column.starts[entry] as number);
      const norm = saturation * (1 - lengthShare + (lengthShare * length) / averageLength);
      scores[i] = (scores[i] as number) + (weight * count * (saturation + 1)) / (count + norm);
    }
  });
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
