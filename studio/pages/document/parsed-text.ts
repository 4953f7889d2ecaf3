/** The parsed content of an edited text, or its error with the position. */
import { counted } from "../../base/format.ts";
import type { Mark } from "../../editor/marks.ts";
import { JsonError, type JsonMembers, parseSource } from "../../json/json-source.ts";

interface ParsedText {
  readonly content: JsonMembers | null;
  readonly mark: Mark | null;
}

export function parsedText(text: string): ParsedText {
  try {
    const node = parseSource(text);
    if (!(node instanceof Map)) throw new JsonError("A document must be an object: { … }", 0);
    return { content: node, mark: null };
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    const line = text.slice(0, error.at).split("\n").length;
    return {
      content: null,
      mark: { from: error.at, to: error.at + 1, message: `Line ${line}: ${error.message}` },
    };
  }
}

export function fieldsChanged(fields: number): string {
  return counted(fields, "field changed", "fields changed");
}
