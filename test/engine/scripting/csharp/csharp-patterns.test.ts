/** Regular expressions, `is` and `switch` in C# indexes, with the terms of RavenDB 7.2.7. */
import { afterEach, describe, expect, it } from "vitest";
import { StaticIndex } from "../../../../engine/indexing/static-index.ts";
import { closeDatabases, openDatabase, putAll, query } from "../../../support/open-database.ts";

afterEach(closeDatabases);

const documents = {
  "es/1": {
    ...{ Name: "Nancy", Last: "Davo-lio", N: 7, D: 2.5, B: true, L: ["sql", "C#"] },
    ...{ H: { City: "Seattle" }, X: null },
  },
};

/** Returns the values of expressions over `e`, and the errors of the map. */
async function valuesOf(expressions: readonly string[]) {
  const database = await openDatabase();
  await putAll(database, "Es", documents);
  const members = expressions.map((text, i) => `V${i} = ${text}`);
  const definition = {
    Name: "I",
    Maps: [`from e in docs.Es select new { One = 1, ${members.join(", ")} }`],
    Fields: { __all_fields: { Storage: "Yes" } },
  };
  await database.queries.administration.deploy([definition], true);
  // The index rejects the query if all of its maps failed.
  await query(database, "from index 'I'", { waitForNonStale: true }).catch(() => null);
  const index = database.queries.indexes.byName("I");
  if (!(index instanceof StaticIndex)) throw new Error("no index");
  const errors = index.errors.list.map((error) => JSON.stringify(error));
  if (errors.length > 0) return { values: [], errors };
  const found = JSON.parse(index.index.entries.textOf(0) ?? "{}") as Record<string, unknown>;
  return { values: expressions.map((_, i) => found[`V${i}`]), errors };
}

async function expectValues(rows: readonly (readonly [string, unknown])[]) {
  const { values, errors } = await valuesOf(rows.map(([text]) => text));
  expect(errors).toEqual([]);
  expect(rows.map(([text], i) => [text, values[i]])).toEqual(rows);
}

describe("a regular expression in a C# index", () => {
  it("matches, replaces and splits as in .NET", async () => {
    await expectValues([
      ['Regex.IsMatch(e.Last, "^[A-J]")', true],
      ['System.Text.RegularExpressions.Regex.IsMatch(e.Last, "^[a-j]")', false],
      ['Regex.IsMatch(e.Last, "^[a-j]", RegexOptions.IgnoreCase | RegexOptions.Multiline)', true],
      ['Regex.IsMatch(e.Last, @"(?i)^d\\w+")'.replace("\\\\", "\\"), true],
      ['new Regex("[a-j]").IsMatch(e.Last)', true],
      ['new Regex("D", RegexOptions.IgnoreCase).Replace(e.Last, "_")', "_avo-lio"],
      ['Regex.Replace(e.Last, "[aeiou]", "_")', "D_v_-l__"],
      ['Regex.Replace(e.Last, "(a)(?<two>v)", "$' + '{two}$1$$")', "Dva$o-lio"],
      ['Regex.Replace(e.Last, "[ao]", m => m.Value.ToUpper() + "!")', "DA!vO!-liO!"],
      ['Regex.Replace(e.Last, "x*", "-")', "-D-a-v-o---l-i-o-"],
      ['Regex.Match(e.Last, "[a-z]+").Value', "avo"],
      ['Regex.Match(e.Last, "x+").Success', false],
      ['Regex.Match(e.Last, "(x)").Groups[1].Value', ""],
      ['Regex.Match(e.Last, "(?<x>[a-z])o").Groups["x"].Value', "v"],
      ['Regex.Match(e.Last, "v").Index', 2],
      ['Regex.Matches(e.Last, "[aeiou]").Count', 4],
      ['Regex.Matches(e.Last, "[aeiou]").Select(m => m.Value)', ["a", "o", "i", "o"]],
      ['Regex.Split(e.Last, "-")', ["Davo", "lio"]],
      ['Regex.Escape("a.b c")', "a\\.b\\ c"],
    ]);
  });

  it("fails the map for a missing text and for an invalid pattern", async () => {
    const missing = await valuesOf(['Regex.IsMatch(e.X, "7")']);
    expect(missing.errors.join()).toContain(
      "System.ArgumentNullException: Value cannot be null. (Parameter 'input')",
    );
    const bad = await valuesOf(['Regex.IsMatch(e.Last, "(")']);
    expect(bad.errors.join()).toContain("RegexParseException: Invalid pattern '('");
    const slow = await valuesOf(['Regex.IsMatch(e.Last, "(a)\\\\1")']);
    expect(slow.errors.join()).toContain("RegexParseException");
  });
});

describe("a pattern in a C# index", () => {
  it("tests the stored types of documents, and the C# types of computed values", async () => {
    await expectValues([
      ["e.Name is string", false],
      ["(string)e.Name is string", true],
      ["e.Name.ToUpper() is string", true],
      ["e.N is int", false],
      ["e.N is long", true],
      ["(int)e.N is int", true],
      ["e.L.Count() is int", true],
      ["e.D is double", false],
      ["(double)e.D is double", true],
      ["e.B is bool", true],
      ["e.X is null", false],
      ["e.X is not null", true],
      ["(e.N as string) is null", true],
      ["e.X is object", true],
      ["e.L is IEnumerable<dynamic>", true],
      ["e.H is DynamicBlittableJson", true],
    ]);
  });

  it("compares with constants of the same type", async () => {
    await expectValues([
      ["e.N is 7", false],
      ["e.N is 7L", true],
      ["e.N is > 3", false],
      ["e.N is > 3L", true],
      ["(int)e.N is > 3 and < 10", true],
      ["(int)e.N is 1 or 7", true],
      ["(int)e.N is not (1 or 7)", false],
      ['e.Name is "Nancy"', false],
      ['(string)e.Name is "Nancy"', true],
    ]);
  });

  it("declares variables", async () => {
    await expectValues([
      ["e.N is long n ? n + 1 : 0", 8],
      ["e.L.Select(x => (string)x is string s ? s.Length : 0)", [3, 2]],
      ['int.TryParse("12", out var a) ? a : -1', 12],
      ["int.TryParse((string)e.Last, out int b) ? b : b - 1", -1],
    ]);
  });

  it("chooses the arm of a switch, or fails if no arm matches", async () => {
    await expectValues([
      ['(int)e.N switch { 0 => "zero", > 5 => "big", _ => "x" }', "big"],
      ['e.N switch { > 3 and < 10 => "mid", _ => "x" }', "x"],
      [
        '(string)e.Name switch { "smith" => 1, var s when s.Length > 9 => 2, var s => s.Length }',
        5,
      ],
    ]);
    const { errors } = await valuesOf(['(int)e.N switch { 0 => "zero" }']);
    expect(errors.join()).toContain(
      "Non-exhaustive switch expression failed to match its input. Unmatched value was 7.",
    );
  });
});

describe("a text function in a C# index", () => {
  it("fails the map for a missing argument, as in .NET", async () => {
    const isNull = "System.ArgumentNullException: Value cannot be null.";
    const cases = [
      ['string.Join(",", e.X)', "The call is ambiguous between the following methods"],
      ["string.Concat(e.X)", "The call is ambiguous between the following methods"],
      ["string.Format(e.X, 1)", isNull],
      ["e.Last.Contains(e.X)", isNull],
      ["e.Last.StartsWith(e.X)", isNull],
      ["e.Last.EndsWith(e.X)", isNull],
      ["e.Last.IndexOf(e.X)", isNull],
    ] as const;
    for (const [text, reason] of cases) {
      expect((await valuesOf([text])).errors.join(), text).toContain(reason);
    }
    await expectValues([
      ['string.Join(",", e.X, e.N)', ",7"],
      ["e.X.Contains(e.X)", undefined],
      ["e.L.Contains(e.X)", false],
    ]);
  });
});
