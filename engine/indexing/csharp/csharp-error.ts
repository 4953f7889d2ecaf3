/**
 * What is wrong with a C# text of an index, and where.
 *
 * It does not know the name of the index: who deploys it says that.
 */
import { EngineError } from "../../errors.ts";

/** A mistake that is of the whole text. */
export function csharpRefusal(reason: string): EngineError {
  return new EngineError("index-compilation", reason);
}

/** A mistake at `offset` of `text`; `details` have its line and column, from 1. */
export function csharpError(text: string, offset: number, reason: string): EngineError {
  const before = text.slice(0, Math.min(offset, text.length)).split("\n");
  const line = before.length;
  const column = (before.at(-1) ?? "").length + 1;
  return new EngineError("index-compilation", `(${line},${column}): ${reason}`, {
    details: { line, column, reason },
  });
}
