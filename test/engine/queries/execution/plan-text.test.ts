import { expect, it } from "vitest";
import { analyzeQuery } from "../../../../engine/queries/analysis/analyze.ts";
import { planText } from "../../../../engine/queries/execution/plan-text.ts";
import { parseQuery } from "../../../../engine/queries/syntax/parser.ts";

const plan = (text: string, paging = {}) =>
  planText(
    analyzeQuery(text, parseQuery(text), { kind: "read", parameters: null, nowMicros: 0, paging }),
  );

it.each([
  ["from Users", "collection Users: all of it"],
  ["from Users where id() = 'users/1'", "collection Users: 1 ids"],
  ["from Users where startsWith(id(), 'u')", "collection Users: ids by prefix"],
  [
    "from Users where Age > 3 and (Name = 'x' or Name in ('a','b')) and not Age between 1 and 2",
    "index Auto/Users/ByAgeAndName: (Age > ? and (Name = ? or Name in 2 values) and not(Age between ? and ?))",
  ],
  [
    "from Users where search(Name, 'secret') order by Name desc, Age",
    "index Auto/Users/ByAgeAndSearch(Name): search(Name); order: sort by Name desc, Age",
  ],
  [
    "from Users order by Age limit 10",
    "index Auto/Users/ByAge: all of it; order: walk of Age until the page is full, or sort where few are found",
  ],
  [
    "from index 'X' as x where x.A = 'secret' order by score() load x.B as b filter x.C = 'secret' select distinct x.A, b.D",
    "index X: A = ?; filter on each document; order: sort by score(); distinct; 1 loaded for each; rows of fields",
  ],
  [
    "from Users group by City select count(), City",
    "index Auto/Users/ByCountReducedByCity (groups): all of it; rows of fields",
  ],
])("%s", (text, expected) => {
  expect(plan(text)).toBe(expected);
  expect(plan(text)).not.toMatch(/secret/);
});

it("is bounded, and shows only some of many conditions", () => {
  const many = Array.from({ length: 500 }, (_, n) => `Field${n % 200} = ${n}`).join(" or ");
  const text = plan(`from Users where ${many}`);
  expect(text.length).toBeLessThan(1_100);
  const nested = plan(`from Users where ${"(Age = 1 and ".repeat(40)}Age = 2${")".repeat(40)}`);
  expect(nested.length).toBeLessThan(1_100);
  expect(plan("from Users where A = 1 or A = 2")).toContain("(A = ? or A = ?)");
});
