import { describe, expect, it } from "vitest";
import {
  projectionFault,
  scriptAggregates,
  scriptFault,
} from "../../../../engine/queries/syntax/script-syntax.ts";

describe("scriptFault", () => {
  it("counts columns from the prefix that it prepends", () => {
    expect(projectionFault("{ a: ; }", [])).toEqual({ place: { line: 1, column: 12 } });
    expect(scriptFault("update", "{ this.a = ; }")).toEqual({ place: { line: 1, column: 27 } });
    expect(scriptFault("update", "{\n this.a = ;\n}")).toEqual({ place: { line: 2, column: 10 } });
  });

  it("accepts well-formed scripts, including `return` in an update", () => {
    expect(scriptFault("update", "{ return }")).toBeNull();
    expect(scriptFault("function", " function f(a) { return a }")).toBeNull();
  });
});

describe("projectionFault", () => {
  it("caches a valid text only for the same names", () => {
    expect(projectionFault("{ a: known.A }", ["known"])).toBeNull();
    expect(projectionFault("{ a: known.A }", ["other"])).toEqual({ place: null });
    expect(scriptFault("function", "return { a: known.A }")).toBeNull();
    expect(projectionFault("{ a: known.A }", [])).toEqual({ place: null });
    expect(projectionFault("{ a: known.A }", ["known"])).toBeNull();
  });

  it.each([
    "{ a: o.A.B, b: l[0].C, c: $p.D }",
    "{ a: [1].map(x => x.y), b: (function (z) { return z.q })(1), c: Math.max(...o) }",
    "{ a: Object.keys(o), b: Number.MAX_VALUE, c: 'x'.length, d: f(o).a, e: unknown }",
    "{ a: (() => { let n = 1; return n })(), b: ({ A }) => A }",
    // RavenDB keeps the parameters of nested functions in scope.
    "{ a: [1].map(x => x.y), b: x.z }",
  ])("accepts %s", (text) => {
    expect(projectionFault(text, ["o", "l", "$p"])).toBeNull();
  });
  it.each([
    "{ ...o }",
    "{ a: { ...o } }",
    "{ a: [...o.A] }",
    "{ a: unknown.A }",
    "{ a: $q.A }",
    "{ a: JSON.stringify(o) }",
    "{ a: (() => { let n = o; return n.A })() }",
    "{ a: (() => { const { A } = o; return A })() }",
    "{ a: (function* () { yield 1 })() }",
    "{ a: import('x') }",
  ])("rejects %s", (text) => {
    expect(projectionFault(text, ["o", "l", "$p"])).toEqual({ place: null });
  });
});

describe("scriptAggregates", () => {
  it("finds counts and sums at any depth", () => {
    const found = scriptAggregates(
      "{ a: { b: [count()] }, c: 1 + sum(x => x.D.E), f: sum(x => 1) }",
    );
    expect(found).toContainEqual({ kind: "count" });
    expect(found).toContainEqual({ kind: "sum", path: ["D", "E"] });
    expect(found).toHaveLength(2);
  });
});
