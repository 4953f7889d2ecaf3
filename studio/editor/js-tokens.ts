/** A small tokenizer for highlighting JavaScript, instead of a grammar. */
import type { StreamParser } from "@codemirror/language";

const keywords = new Set(
  "const let var function return if else for while do break continue switch case default new typeof instanceof in of throw try catch finally delete void".split(
    " ",
  ),
);
const atoms = new Set(["true", "false", "null", "undefined", "this"]);
const name = /^[\p{L}_$][\p{L}\p{N}_$]*/u;

interface State {
  /** Construct that continues on the next line. */
  open: "comment" | "template" | null;
}

export const jsTokens: StreamParser<State> = {
  name: "javascript",
  startState: () => ({ open: null }),
  languageData: { commentTokens: { line: "//", block: { open: "/*", close: "*/" } } },
  token(stream, state) {
    if (state.open !== null) {
      const end = state.open === "comment" ? "*/" : "`";
      if (stream.skipTo(end)) {
        stream.match(end);
        const kind = state.open;
        state.open = null;
        return kind === "comment" ? "comment" : "string";
      }
      stream.skipToEnd();
      return state.open === "comment" ? "comment" : "string";
    }
    if (stream.eatSpace()) return null;
    if (stream.match("//")) {
      stream.skipToEnd();
      return "comment";
    }
    if (stream.match("/*")) {
      state.open = "comment";
      return "comment";
    }
    if (stream.match("`")) {
      state.open = "template";
      return "string";
    }
    if (stream.match(/^'(?:[^'\\]|\\.)*'?/) || stream.match(/^"(?:[^"\\]|\\.)*"?/)) return "string";
    if (stream.match(/^\d[\w.]*/)) return "number";
    if (stream.match(name)) {
      const word = stream.current();
      if (keywords.has(word)) return "keyword";
      if (atoms.has(word)) return "bool";
      return stream.peek() === "(" ? "function(variableName)" : "variableName";
    }
    stream.next();
    return null;
  },
};
