/** Highlighting of RQL. */
import type { StreamParser } from "@codemirror/language";
import { rqlKeywords } from "../../engine/queries/syntax/words.ts";

const known = new Set(rqlKeywords.map((word) => word.toLowerCase()));

interface State {
  isInComment: boolean;
}

export const rqlTokens: StreamParser<State> = {
  name: "rql",
  startState: () => ({ isInComment: false }),
  token(stream, state) {
    if (state.isInComment) {
      if (stream.skipTo("*/")) {
        stream.match("*/");
        state.isInComment = false;
      } else stream.skipToEnd();
      return "comment";
    }
    if (stream.eatSpace()) return null;
    if (stream.match("//")) {
      stream.skipToEnd();
      return "comment";
    }
    if (stream.match("/*")) {
      state.isInComment = true;
      return "comment";
    }
    if (stream.match(/^'(?:[^'\\]|\\.)*'?/) || stream.match(/^"(?:[^"\\]|\\.)*"?/)) return "string";
    if (stream.match(/^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/)) return "number";
    if (stream.match(/^\$\w+/)) return "variableName.special";
    if (stream.match(/^[A-Za-z_@][\w@]*(?=\s*\()/)) {
      return known.has(stream.current().toLowerCase()) ? "keyword" : "function(variableName)";
    }
    if (stream.match(/^[A-Za-z_@][\w@]*/))
      return known.has(stream.current().toLowerCase()) ? "keyword" : "variableName";
    stream.next();
    return null;
  },
};
