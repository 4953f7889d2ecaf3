import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EngineError } from "../../../../engine/base/errors.ts";
import { csharpMap, csharpReduce } from "../../../../engine/indexing/csharp/csharp-script.ts";
import { isCSharp } from "../../../../engine/indexing/definitions/static-definition.ts";
import { compileScript } from "../../../../engine/scripting/script.ts";

const failureOf = (text: string, compile = csharpMap): string => {
  try {
    compile(text);
  } catch (error) {
    if (error instanceof EngineError) return `${error.code}: ${error.message}`;
    throw error;
  }
  return "";
};

describe("a map in C#", () => {
  it("lists its fields, named or not", () => {
    const text = "from u in docs.Users select new { u.Name, Full = u.A + u.B, u.Address.City }";
    expect(csharpMap(text).names).toEqual(["Name", "Full", "City"]);
    expect(
      csharpMap("docs.Users.Select(u => new { N = u.Name }).Where(x => x.N != null)").names,
    ).toEqual(["N"]);
    expect(
      csharpMap('docs.A.Select(u => new Dictionary<string, object> { { "a b", u.X } })').names,
    ).toEqual(["a b"]);
  });

  it("may begin with a comment", () => {
    expect(isCSharp("// one\n /* two */ docs.Users.Select(u => new { u.A })")).toBe(true);
    expect(isCSharp("// from x\n map('Users', u => ({ A: u.A }))")).toBe(false);
    expect(isCSharp("counters.map('Users', u => ({ A: u.A }))")).toBe(false);
  });

  it("lists its loaded collections, and whether its fields have computed names", () => {
    const text =
      'from u in docs.Users let c = LoadDocument<City>(u.City, "Cities") select new { c.Name, _ = CreateField(u.K, u.V) }';
    const { loads, isDynamic } = csharpMap(text);
    expect(loads).toEqual(["Cities"]);
    expect(isDynamic).toBe(true);
  });

  it("is rejected with line and column if it is not valid C#", () => {
    const at = (text: string) => failureOf(text).replace(/^index-compilation: /, "");
    expect(at("from u in docs.Users select new { u.A } where")).toBe("(1,41): Unexpected 'where'");
    expect(at("from u in docs.Users\nselect new {\n  X = y.A }")).toBe(
      "(3,7): The name 'y' does not exist in the current context",
    );
    expect(at("from u in docs.Users select new { A = u.A, A = u.B }")).toMatch(
      /^\(1,44\): An anonymous type/,
    );
    expect(at("from u in docs.Users select new { X = u.A.Foo() }")).toBe(
      "(1,43): The method 'Foo' is not supported in indexes",
    );
    expect(at("from u in docs.Users select new { X = Foo.Bar(u) }")).toMatch(
      /^\(1,43\): The method 'Foo.Bar'/,
    );
    expect(at("from u in docs.Users select new { u.A + 1 }")).toBe(
      "(1,35): Cannot extract field name from: u.A + 1",
    );
    expect(at('from u in docs.Users select new { X = "a\n" }')).toMatch(
      /^\(1,39\): Newline in constant/,
    );
    expect(at("from u in docs.Users select new { X = null }")).toMatch(
      /^\(1,39\): Cannot assign <null>/,
    );
    expect(at("from u in docs.Users join v in docs.Vs on 1 equals 1 select new { u.A }")).toMatch(
      /^\(1,22\): join is supported in queries inside a map only/,
    );
  });

  it("is rejected with RavenDB's message if it has no fields or is sorted", () => {
    expect(failureOf("docs.Users")).toMatch(/Could not extract any fields from 'docs.Users'\.$/);
    expect(failureOf("from u in docs.Users select u")).toMatch(
      /Did you forget to add 'new' in last select clause\?$/,
    );
    expect(failureOf("docs.Users.Select(u => u.A)")).toMatch(
      /must return an anonymous object or Dictionary<string, object>\.$/,
    );
    expect(failureOf("docs.Users.OrderBy(u => u.A).Select(u => new { u.A })")).toMatch(
      /OrderBy calls are not valid during map or reduce phase, but the following was found:\r\n'docs.Users.OrderBy\(u => u.A\)'\r\n/,
    );
    expect(failureOf("from u in docs.Users orderby u.A select new { u.A }")).toMatch(
      /'orderby u.A'/,
    );
    expect(failureOf("timeSeries.Users.HeartRate.More.Select(t => new { t.Count })")).toMatch(
      /'timeSeries' has no such member/,
    );
  });

  it("is rejected if a statement leaves its function or assigns to a non-variable", () => {
    const of = (body: string) =>
      failureOf(`from u in docs.Users select new { X = u.L.Select(x => { ${body} }) }`);
    expect(of("break; return 1;")).toMatch(/No enclosing loop/);
    expect(of("while (true) { u.L.Select(y => { continue; return 1; }); } return 1;")).toMatch(
      /No enclosing loop/,
    );
    expect(of("u = 1; return u;")).toMatch(/Only variables and items can be assigned/);
    expect(of("var x = 1; return x;")).toMatch(/already defined/);
    expect(of("try { return 1; } catch { return 2; }")).toMatch(/'try' is not supported/);
    expect(failureOf("docs.Users.Select(u => { return new { u.A }; })")).toMatch(/BlockSyntax/);
  });

  it("renames identifiers that collide with names of the generated script", () => {
    const { script } = csharpMap(
      "docs.Users.Select(csAdd => new { X = csAdd.map, __proto__ = csAdd.groupBy })",
    );
    expect(script).toContain("v_csAdd");
    expect(failureOf("docs.Users.Select(u => new { X = csAdd(u.A, 1) })")).toMatch(
      /'csAdd' is not supported/,
    );
    expect(failureOf("docs.Users.Select(u => new { X = groupBy })")).toMatch(
      /'groupBy' does not exist/,
    );
  });

  it("is rejected or compiles, for any text", {
    timeout: 20_000,
  }, () => {
    const piece = fc.constantFrom(
      ...'from u in docs.Users select new { u.A , } ( ) [ ] => x ? : ?? ?. . + - * / == && ! "a" \'c\' 1 2.5m $"{u.A}" @"q" (int) let where group by into g Select Where u docs results new[] < > ; null is as switch { return var x = if else for foreach while ++ += or _ out join on equals orderby'.split(
        " ",
      ),
    );
    const texts = fc.oneof(
      fc.string({ unit: "grapheme", maxLength: 60 }),
      fc.array(piece, { maxLength: 25 }).map((parts) => parts.join(" ")),
      fc
        .array(piece, { maxLength: 12 })
        .map((parts) => `from u in docs.Users select new { X = ${parts.join(" ")} }`),
      fc
        .integer({ min: 1, max: 4_000 })
        .map(
          (depth) =>
            `from u in docs.Users select new { X = ${"(".repeat(depth)}u.A${")".repeat(depth)} }`,
        ),
      fc
        .integer({ min: 1, max: 4_000 })
        .map((count) => `from u in docs.Users ${"let x = u.A ".repeat(count)} select new { x }`),
      fc
        .integer({ min: 1, max: 4_000 })
        .map((depth) => `from u in docs.Users select new { X = u${"<u".repeat(depth)} }`),
    );
    fc.assert(
      fc.property(texts, (text) => {
        for (const compile of [csharpMap, csharpReduce]) {
          try {
            compileScript(compile(text).script, { kind: "csharp-index" });
          } catch (error) {
            if (!(error instanceof EngineError)) throw error;
            if (error.code === "script-syntax")
              expect(error.message).toContain("nested too deeply");
          }
        }
      }),
      { numRuns: 1_000, seed: 7 },
    );
  });
});

describe("a reduce in C#", () => {
  it("cannot count in query syntax if results may be reduced again", () => {
    const text = "from r in results group r by r.A into g select new { A = g.Key, N = g.Count() }";
    expect(failureOf(text, csharpReduce)).toMatch(
      /Reduce cannot contain Count\(\) methods in grouping\.$/,
    );
  });

  it("must group the results", () => {
    expect(failureOf("from r in results select new { r.A }", csharpReduce)).toMatch(
      /must group its results/,
    );
    expect(
      failureOf(
        "from r in results where r.A group r by r.A into g select new { g.Key }",
        csharpReduce,
      ),
    ).toMatch(/must group its results/);
    expect(csharpReduce("results.GroupBy(r => r.A).Select(g => new { A = g.Key })").names).toEqual([
      "A",
    ]);
  });
});
