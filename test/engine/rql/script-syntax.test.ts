import { describe, expect, it } from "vitest";
import { scriptAggregates, scriptFault } from "../../../engine/rql/script-syntax.ts";

describe("scriptFault", () => {
  it("counts columns from the text that it puts in front", () => {
    expect(scriptFault("select", "{ a: ; }")).toEqual({ place: { line: 1, column: 12 } });
    expect(scriptFault("update", "{ this.a = ; }")).toEqual({ place: { line: 1, column: 27 } });
    expect(scriptFault("update", "{\n this.a = ;\n}")).toEqual({ place: { line: 2, column: 10 } });
  });

  it("lets well-formed scripts through, `return` in an update included", () => {
    expect(scriptFault("select", "{ a: x => ({ ...x }) }")).toBeNull();
    expect(scriptFault("update", "{ return }")).toBeNull();
    expect(scriptFault("function", " function f(a) { return a }")).toBeNull();
  });

  it("refuses a projection that spreads at its top", () => {
    expect(scriptFault("select", "{ ...a }")).toEqual({ place: null });
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
