import { describe, expect, it } from "vitest";
import { parseQuery } from "../../../../engine/queries/syntax/parser.ts";
import { printServerSide } from "../../../../engine/queries/syntax/print-server-side.ts";

// Replies of RavenDB 7.2.7 to debug=serverSideQuery.
describe("printServerSide", () => {
  it.each([
    ["from P", "FROM P"],
    ["from P where N = 1", "FROM P WHERE N = 1\n"],
    ["from @all_docs", "FROM '@all_docs'"],
    ["from index 'P/x' where A = 1", "FROM INDEX 'P/x' WHERE A = 1\n"],
    [
      "FROM P WHERE N=1 AND C='x' OR S != \"q\"",
      "FROM P WHERE ((N = 1 AND C = 'x') OR S != 'q')\n",
    ],
    ["from P where A = 1 and B = 2 and C = 3", "FROM P WHERE ((A = 1 AND B = 2) AND C = 3)\n"],
    [
      "from P where A = 1 or B = 2 or C = 3 and D = 4",
      "FROM P WHERE (A = 1 OR (B = 2 OR (C = 3 AND D = 4)))\n",
    ],
    ["from P where true and not N = 1", "FROM P WHERE (true AND NOT (N = 1))\n"],
    ["from P where N all in ($a)", "FROM P WHERE N IN ($a)\n"],
    ["from P where N between 1 and 2", "FROM P WHERE N BETWEEN 1 AND 2\n"],
    ["from P where S = 'it''s' and my_f = 1", "FROM P WHERE (S = 'it\\'s' AND 'my_f' = 1)\n"],
    [
      "from P where Lines[].Q > 1 and T[0] = 'x'",
      "FROM P WHERE (Lines.'[]'.Q > 1 AND T.'0' = 'x')\n",
    ],
    [
      "from P order by N as long desc, S as alphaNumeric nulls first, id()",
      "FROM P\nORDER BY N AS long DESC, S AS alphanumeric NULLS FIRST, id()",
    ],
    ["from P select distinct N limit 1, 2", "FROM P\nSELECT DISTINCT N\nLIMIT 2\nOFFSET 1"],
    [
      "from P select N as 'my name', 'lit' as L, 5 as F, null as Z, $p as Q",
      "FROM P\nSELECT N AS 'my name', lit AS L, 5 AS F, null AS Z, $p AS Q\n",
    ],
    ["from P select *", "FROM P"],
    [
      "from P select timeseries(from S last 0 days) as Q",
      "DECLARE (from S last 0 days)\n\nFROM P\nSELECT __timeSeriesQueryFunction0() AS Q\n",
    ],
    [
      "declare timeseries f(p) { from p.S } from P as p select f(p)",
      "DECLARE { from p.S }\n\nFROM P AS p\nSELECT f(p)\n",
    ],
    [
      "from P as p where p.A=1 load p.B as b filter b.X = 1 select p.C",
      "FROM P AS p WHERE p.A = 1\nFILTER b.X = 1\nLOAD p.B AS b\nSELECT p.C\n",
    ],
    ["from P order by A filter B = 1", "FROM P FILTER B = 1\nORDER BY A"],
    [
      "from P group by array(T), C where C = 'x' order by count() desc select key(), count()",
      "FROM P\nGROUP BY array(T), C WHERE C = 'x'\nORDER BY count() DESC\nSELECT key(), count()\n",
    ],
    [
      "from P where A=1 select B include X limit 3",
      "FROM P WHERE A = 1\nSELECT B\nINCLUDE X\nLIMIT 3",
    ],
    [
      "from P as p load p.C as c, p.S as s[] select { A: p.N, B: c }",
      "DECLARE function __selectOutput(p, c, s, rvnQueryArgs) { \n    return { A: p.N, B: c };\n}\n\n\n" +
        "FROM P AS p\nLOAD p.C AS c, p.S AS 's[]'\nSELECT { \n A: p.N, B: c \n}\n",
    ],
    [
      "declare function f(a, b) {\n  return a;\n}\nfrom P as p select f(p, 1) as X",
      "DECLARE function f(a, b) {\n  return a;\n}\n\nFROM P AS p\nSELECT f(p, 1) AS X\n",
    ],
  ])("%s", (text, shown) => {
    expect(printServerSide(parseQuery(text))).toBe(shown);
  });
});
