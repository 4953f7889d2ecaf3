/**
 * Removes the update clause of a patch: `from Users where Age > 3` of `from Users where Age > 3 update { … }`. Pure.
 */
import { Failure } from "./failure.ts";

/** Matches a string, a comment, a word, or any other character. */
const token =
  /'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`|\/\/[^\n]*|\/\*[\s\S]*?\*\/|[\w$]+|[\s\S]/g;

/** Returns the query without `update`. @throws Failure usage when it has no `update` */
export function withoutUpdate(text: string): string {
  let depth = 0;
  for (const { 0: word, index } of text.matchAll(token)) {
    if (word === "{" || word === "(") depth++;
    else if (word === "}" || word === ")") depth--;
    else if (
      depth === 0 &&
      /^update$/i.test(word) &&
      /^\s*\{/.test(text.slice(index + word.length))
    ) {
      return text.slice(0, index).trim();
    }
  }
  throw new Failure(
    "usage",
    "The query has no 'update { … }': jackdaw patch 'from Users update { this.Age += 1 }'",
  );
}
