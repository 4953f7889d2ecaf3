/**
 * Errors in a C# text of an index, with their position.
 *
 * The name of the index is added by the caller that deploys it.
 */
import { EngineError } from "../../base/errors.ts";

/** Returns an error in the text as a whole. */
export function csharpRefusal(reason: string): EngineError {
  return new EngineError("index-compilation", reason);
}

/** Returns an error at `offset` of `text`; `details` have its line and column, from 1. */
export function csharpError(text: string, offset: number, reason: string): EngineError {
  const before = text.slice(0, Math.min(offset, text.length)).split("\n");
  const line = before.length;
  const column = (before.at(-1) ?? "").length + 1;
  return new EngineError("index-compilation", `(${line},${column}): ${reason}`, {
    details: { line, column, reason },
  });
}

export const noObject =
  "Indexing function must return an anonymous object or Dictionary<string, object>.";
export const noSelect = `${noObject} Did you forget to add 'new' in last select clause?`;
