/**
 * Functions called by translated C#: every name that the translator emits exists, and behaves as in
 * C#.
 */
import { describe, expect, test } from "vitest";
import { csharpGlobals } from "../../../../engine/scripting/csharp/csharp-functions.ts";
import { sequenceFunctions } from "../../../../engine/scripting/csharp/csharp-sequences.ts";
import { isFunction } from "../../../../engine/scripting/language/script-values.ts";
import { openTestDatabase } from "../../../support/open-test-database.ts";

test("all are functions with a common name prefix, next to those of every index", () => {
  const own = [...csharpGlobals].filter(([name]) => /^cs[A-Z]/.test(name));
  expect(own.length).toBeGreaterThan(50);
  for (const [name, value] of own) expect(isFunction(value), name).toBe(true);
  for (const name of Object.keys(sequenceFunctions)) {
    expect(csharpGlobals.has(`cs${name}`), name).toBe(true);
  }
});

/**
 * Expressions over a document `d` with `S`, `N`, `D`, `L`, and their values in C#, as the text of
 * an index term.
 */
const cases: readonly (readonly [string, string])[] = [
  ["d.S.ToUpper()", "Ab Cd".toUpperCase()],
  ["d.S.Length", "5"],
  ["d.S.Substring(1, 2)", "b "],
  ['d.S.StartsWith("Ab")', "true"],
  ['d.S.Replace("Cd", "x")', "Ab x"],
  ["d.N + 1", "8"],
  ["d.N / 2", "3"],
  ["d.N / 2.0", "3.5"],
  ["d.N % 4", "3"],
  ["Math.Max(d.N, 10)", "10"],
  ["Math.Round(2.5)", "2"],
  ['d.N > 5 ? "many" : "few"', "many"],
  ["d.L.Count()", "3"],
  ["d.L.Sum(x => x)", "6"],
  ["d.L.Where(x => x > 1).First()", "2"],
  ['string.Join("-", d.L)', "1-2-3"],
  ["d.None ?? d.S", "Ab Cd"],
  ["d.D.Year", "2024"],
];

describe("an expression of C#", () => {
  test("has the value of C#, and calls only existing functions", async () => {
    const database = await openTestDatabase({ isInMemory: true });
    await database.put("docs/1", {
      ...{ S: "Ab Cd", N: 7, L: [1, 2, 3], D: "2024-02-29T12:00:00.0000000" },
      "@metadata": { "@collection": "Docs" },
    });
    for (const [at, [expression, wanted]] of cases.entries()) {
      const map = `from d in docs.Docs select new { V = ${expression} }`;
      const name = `I${at}`;
      const rows: unknown[] = [];
      const text = `from index '${name}' select V`;
      const options = { waitForNonStale: true, projectionBehavior: "FromIndex" as const };
      const stored = { Name: name, Maps: [map], Fields: { V: { Storage: "Yes" } } };
      await database.queries.administration.deploy([stored], true);
      await database.query(text, options, {
        add: (row) => {
          rows.push(JSON.parse(row.toString()).V);
          return null;
        },
      });
      expect(String(rows[0]), expression).toBe(wanted);
    }
  });
});
