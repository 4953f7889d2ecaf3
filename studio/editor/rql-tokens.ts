/** Keywords of RQL, for highlighting and completion. */
import type { StreamParser } from "@codemirror/language";

export const keywords: readonly string[] =
  "from index where and or not in all between as select distinct order by group load include update declare function timeseries filter limit offset true false null asc desc long double string alphaNumeric match with".split(
    " ",
  );
export const methods: readonly string[] =
  "id search exact startsWith endsWith exists lucene regex boost fuzzy proximity intersect moreLikeThis spatial.within spatial.circle spatial.wkt spatial.point spatial.distance vector.search count sum key array facet suggest score random highlight explanations timings cmpxchg counters counter timeseries revisions".split(
    " ",
  );
const known = new Set(keywords.map((word) => word.toLowerCase()));

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
