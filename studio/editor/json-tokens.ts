/** Highlighting and folding of JSON. */
import type { StreamParser } from "@codemirror/language";
import type { Text } from "@codemirror/state";

/** Maximum distance of the matching closing bracket, in characters; longer ranges cannot be folded. */
const foldedMax = 100_000;

interface State {
  /** Number of open brackets. */
  depth: number;
}

export const jsonTokens: StreamParser<State> = {
  name: "json",
  startState: () => ({ depth: 0 }),
  languageData: { closeBrackets: { brackets: ["[", "{", '"'] }, indentOnInput: /^\s*[\]}]$/ },
  token(stream, state) {
    if (stream.eatSpace()) return null;
    if (stream.match(/^"(?:[^"\\]|\\.)*"?/))
      return stream.match(/^\s*:/, false) ? "propertyName" : "string";
    if (stream.match(/^-?\d[\d.eE+-]*/)) return "number";
    if (stream.match(/^(?:true|false)\b/)) return "bool";
    if (stream.match(/^null\b/)) return "null";
    const character = stream.next();
    if (character === "{" || character === "[") state.depth++;
    else if (character === "}" || character === "]") state.depth--;
    return null;
  },
  indent: ({ depth }, after, { unit }) =>
    Math.max(0, depth - (/^\s*[\]}]/.test(after) ? 1 : 0)) * unit,
};

/** Returns the range to fold after an opening bracket at the end of a line. */
export function foldOf(
  { doc }: { readonly doc: Text },
  start: number,
  end: number,
): { from: number; to: number } | null {
  const line = doc.sliceString(start, end).trimEnd();
  if (!/[[{]$/.test(line)) return null;
  const from = start + line.length;
  let depth = 1;
  let isInText = false;
  let isEscaped = false;
  let at = from;
  for (const piece of doc.iterRange(from, Math.min(doc.length, from + foldedMax))) {
    for (const character of piece) {
      if (isEscaped) isEscaped = false;
      else if (isInText) {
        if (character === "\\") isEscaped = true;
        else if (character === '"') isInText = false;
      } else if (character === '"') isInText = true;
      else if (character === "{" || character === "[") depth++;
      else if ((character === "}" || character === "]") && --depth === 0) return { from, to: at };
      at += character.length;
    }
  }
  return null;
}
