/** Marks of an error reply in the text that it is about. Separate from the editor, which is loaded later. */
import { ServerError } from "../base/client.ts";
import { rangeOf } from "../base/server-message.ts";
import type { Mark } from "./marks.ts";

export function errorMarks(error: Error | null, text: string): readonly Mark[] {
  if (!(error instanceof ServerError)) return [];
  if (error.text !== undefined && error.text !== text) return [];
  const range = rangeOf(error.detail, text);
  return range === null ? [] : [{ ...range, message: error.message }];
}
