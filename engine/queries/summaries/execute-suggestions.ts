/**
 * Suggestions: terms of the index whose spelling is close to the requested terms, as RavenDB's engine Corax finds them
 * (close-terms.ts), or Lucene if the index requests Lucene (spelled-terms.ts).
 */
import { EngineError } from "../../base/errors.ts";
import type { Work } from "../../base/scheduling/work-budget.ts";
import type { IndexReader } from "../../indexing/index-reader.ts";
import { wordsOfPhrase } from "../../indexing/text/analyzer.ts";
import { closeTerms } from "../../indexing/text/close-terms.ts";
import { spelledTerms } from "../../indexing/text/spelled-terms.ts";
import type { QueryIndex } from "../execution/row-source.ts";
import type { SuggestionItem } from "./facet-query.ts";

/** Returns the rows, each a JSON text. @throws invalid-operation, not-supported, work-limit */
export function* suggestionRows(
  suggestions: readonly SuggestionItem[],
  index: QueryIndex,
  reader: IndexReader,
): Work<Buffer[]> {
  const rows: Buffer[] = [];
  for (const suggestion of suggestions) {
    const found = yield* suggested(suggestion, index, reader);
    const name = JSON.stringify(suggestion.name);
    const row = Buffer.from(`{"Name":${name},"Suggestions":${JSON.stringify(found)}}`);
    reader.budget.hold(row.length);
    rows.push(row);
  }
  return rows;
}

function* suggested(
  { field, terms, options }: SuggestionItem,
  index: QueryIndex,
  reader: IndexReader,
): Work<string[]> {
  const analyze = index.suggestionAnalyzer(field);
  if (analyze === undefined) {
    throw new EngineError(
      "invalid-operation",
      `Index '${index.name}' does not have a field '${field}'.`,
    );
  }
  if (analyze === null) {
    throw new EngineError(
      "invalid-operation",
      `Index '${index.name}' does not have suggestions configured for field '${field}'.`,
    );
  }
  const { pageSize: countMax, distance, accuracy, isSortedByTerm } = options;
  const column = reader.column(field, "lower");
  const found = new Set<string>();
  for (const term of terms) {
    const words = wordsOfPhrase(term, analyze);
    if (words.length > 1) {
      throw new EngineError(
        "not-supported",
        `suggest() on the field '${field}' finds words, and '${term}' has ${words.length} of them.`,
      );
    }
    const [word = ""] = words;
    if (column === undefined || found.size >= countMax) continue;
    const closeness = { distance, accuracy, countMax };
    const close = reader.isLucene
      ? yield* spelledTerms(reader, column, word, closeness, !isSortedByTerm)
      : yield* closeTerms(reader, column, word, closeness);
    if (isSortedByTerm && !reader.isLucene) close.sort();
    for (const one of close) if (found.size < countMax) found.add(one);
  }
  return [...found];
}
