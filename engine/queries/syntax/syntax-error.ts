/**
 * Errors in a query's text: their position and message.
 *
 * Messages have the form of RavenDB 7.2.7, because clients show them and tests of applications compare them.
 *
 * Invariants:
 * - Line and column count from 1. A line feed counts as the first column of the line it begins, so on every line but
 *   the first columns are one higher than an editor's.
 * - A comment or a script counts as one column; line feeds in strings and scripts begin no line.
 */
import { EngineError } from "../../base/errors.ts";

/** Text that is not counted character by character: from `start` to before `end`. */
export interface OpaqueSpan {
  readonly start: number;
  readonly end: number;
  readonly kind: "comment" | "script" | "string";
}

export interface Place {
  readonly line: number;
  readonly column: number;
}

/** Line and column of `offset`. `spans` are in order and do not overlap. Cost: O(offset). */
export function placeOf(text: string, offset: number, spans: readonly OpaqueSpan[]): Place {
  let line = 1;
  let column = 1;
  let nextSpan = 0;
  let position = 0;
  while (position < offset) {
    while ((spans[nextSpan]?.start ?? offset) < position) nextSpan += 1;
    const span = spans[nextSpan];
    if (span !== undefined && span.start === position && span.end <= offset) {
      if (span.kind === "comment") line += countLineFeeds(text, span.start, span.end);
      column += span.kind === "string" ? span.end - span.start : 1;
      position = span.end;
    } else {
      const isLineFeed = text.charCodeAt(position) === 10;
      if (isLineFeed) line += 1;
      column = isLineFeed ? 2 : column + 1;
      position += 1;
    }
  }
  return { line, column };
}

function countLineFeeds(text: string, start: number, end: number): number {
  let count = 0;
  for (let position = start; position < end; position += 1) {
    if (text.charCodeAt(position) === 10) count += 1;
  }
  return count;
}

/** Returns the run of characters up to the next white space, as messages quote it; "" at the end of the text. */
export function wordAt(text: string, offset: number): string {
  return /^\S*/.exec(text.slice(offset))?.[0] ?? "";
}

/** Returns a syntax error: `1:27 complaint but got: word`, then the query. */
export function syntaxError(
  complaint: string,
  place: Place,
  text: string,
  word: string,
): EngineError {
  const found = word === "" ? "but got to the end of the query" : `but got: ${word}`;
  return new EngineError(
    "query-syntax",
    `${place.line}:${place.column} ${complaint} ${found}\nQuery: \n${text}`,
  );
}

/**
 * Returns a semantic error.
 *
 * @param parameters the JSON text of the query's parameters, or null if the query had none.
 */
export function invalidQuery(
  complaint: string,
  text: string,
  parameters: string | null = null,
): EngineError {
  const suffix = parameters === null ? "" : `\nParameters: ${parameters}`;
  return new EngineError("query-invalid", `${complaint}\nQuery: ${text}${suffix}`);
}
