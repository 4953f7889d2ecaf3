/** A known text with other parameters is analyzed like a new text. */
import { describe, expect, test } from "vitest";
import type { AnalyzedQuery } from "../../../../engine/queries/analysis/analyzed-query.ts";
import { QueryCompiler } from "../../../../engine/queries/analysis/query.ts";
import { parseQueryParameters } from "../../../../engine/queries/analysis/query-parameters.ts";
import { isRebindable } from "../../../../engine/queries/analysis/rebind.ts";
import { parseQuery } from "../../../../engine/queries/syntax/parser.ts";

const values = [
  "1",
  "2.5",
  '"text"',
  '"2024-01-01T00:00:00.0000000Z"',
  "null",
  "true",
  "[1,2]",
  "[]",
  '["a",null]',
  '{"x":1}',
  "9223372036854775807",
];
const rebound = [
  "from Users where Name = $a",
  "from Users where id() = $a",
  "from Users where id() in ($a)",
  "from Users where startsWith(id(), 'x') and Name = $a",
  "from Users where Name != $a and not (Age > $b)",
  "from Users where Age between $a and $b order by Age as long desc limit 5",
  "from Users where Age >= $a and Age <= $b",
  "from Users where Age > $a and Name = 'x' or City in ($b, $a)",
  "from Users where Tags all in ($a)",
  "from index 'I' where Name = $a and Age < $b",
  "from Users where Name = $a select Name, Age limit $b",
  "from Users as u where u.Name = $a select { N: u.Name + $b } limit 10",
  "from Users where Name = 'x' limit $a, $b",
  "from @all_docs where Name = $a",
  "from Users where Name = 'x' and Age = $a and (City = $b or Age between $a and $b)",
  "from Users where City = $a and Age >= $a and Age <= $b",
  "from Users where Age < $b and Age > $a and City = 'x'",
  "from index 'I' where Age between $a and $b and Name = $a or City = $b",
  "from Users",
];
const analyzed = [
  "from Users where search(Name, $a)",
  "from Users where Name = $a order by random($b)",
  "from Users filter Age > $a",
  "from Users group by City where City = $a select City, count()",
  "from Users as u where u.Name = $a load u.Company as c select c.Name",
  "from Users where exact(Name = $a)",
  "from Users where Name = $a include Company",
  "from Users select facet(Age < $a)",
  "declare function f(u) { return u } from Users as u where u.Name = $a select f(u)",
];

/** Returns the query, or its error. */
function outcome(compiler: QueryCompiler, text: string, parameters: string | null): unknown {
  const read = parameters === null ? null : parseQueryParameters(parameters);
  try {
    const query: AnalyzedQuery = compiler.compile(text, "read", read, { pageSize: 100 }, false);
    const { parameters: kept, ...others } = query;
    return { ...others, values: kept?.values };
  } catch (error) {
    return String(error);
  }
}

function newCompiler(): QueryCompiler {
  return new QueryCompiler(() => 1_700_000_000_000_000);
}

describe("a known text with other parameters", () => {
  test("is rebound only if its parameters are values of conditions or of the page", () => {
    const some = (texts: readonly string[]) => texts.map((text) => isRebindable(parseQuery(text)));
    const isMethod = (text: string) => text.includes("startsWith");
    expect(some(rebound.filter((text) => !isMethod(text)))).not.toContain(false);
    expect(some(analyzed)).not.toContain(true);
  });

  test.each([...rebound, ...analyzed])("has the same meaning as a new text: %s", (text) => {
    const compiler = newCompiler();
    for (const a of values) {
      for (const b of values) {
        for (const parameters of [`{"a":${a},"b":${b}}`, `{"a":${a}}`]) {
          expect(outcome(compiler, text, parameters)).toEqual(
            outcome(newCompiler(), text, parameters),
          );
        }
      }
    }
    expect(outcome(compiler, text, null)).toEqual(outcome(newCompiler(), text, null));
  });
});
