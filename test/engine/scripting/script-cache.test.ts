import { Parser } from "acorn";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { QueryCompiler } from "../../../engine/queries/analysis/query.ts";
import { parseQueryParameters } from "../../../engine/queries/analysis/query-parameters.ts";
import { scriptAggregates, scriptFault } from "../../../engine/queries/syntax/script-syntax.ts";
import { ScriptCache } from "../../../engine/scripting/script-cache.ts";

let parse = vi.spyOn(Parser, "parse");
beforeEach(() => {
  parse = vi.spyOn(Parser, "parse");
});
afterEach(() => {
  parse.mockRestore();
});

describe("a script cache", () => {
  it("parses a text once for each use", () => {
    const cache = new ScriptCache();
    const script = cache.get("this.A = 1", { kind: "patch" });
    expect(cache.get("this.A = 1", { kind: "patch" })).toBe(script);
    expect(parse).toHaveBeenCalledTimes(1);
    expect(cache.get("this.A = 1", { kind: "patch", parameters: ["a"] })).not.toBe(script);
  });

  it("does not cache errors, and reports them each time", () => {
    const cache = new ScriptCache();
    for (let i = 0; i < 3; i++) expect(() => cache.get("this. = 1", { kind: "patch" })).toThrow();
    expect(parse).toHaveBeenCalledTimes(3);
  });

  it("evicts scripts when large ones are added, but not recently used ones", () => {
    const cache = new ScriptCache(1024 * 1024);
    const [first, used] = ["this.A = 1", "this.A = 2"];
    for (const text of [first, used]) cache.get(text, { kind: "patch" });
    // A compiled script takes more than fifty times the size of its text.
    const text = "a;".repeat(1_000);
    for (let i = 0; i * 50 * text.length < 1024 * 1024; i++) {
      cache.get(`${text}${i}`, { kind: "patch" });
      cache.get(used, { kind: "patch" });
    }
    parse.mockClear();
    cache.get(used, { kind: "patch" });
    expect(parse).toHaveBeenCalledTimes(0);
    cache.get(first, { kind: "patch" });
    expect(parse).toHaveBeenCalledTimes(1);
  });
});

describe("the syntax of a query's scripts", () => {
  it("is checked once, however often the query is sent, with any parameters", () => {
    const queries = new QueryCompiler(() => 0);
    const patch = "declare function f(a) { return a } from A as a update { a.CheckedOnce = f($p) }";
    const select = "from A as a select { CheckedOnce: a.Name }";
    for (let i = 0; i < 3; i++) {
      queries.compile(patch, "patch", parseQueryParameters(`{"p": ${i}}`));
      queries.compile(select, "read", null);
    }
    expect(parse).toHaveBeenCalledTimes(3);
  });

  it("is checked once for a valid text, and again for another text", () => {
    for (let i = 0; i < 3; i++) expect(scriptFault("update", "{ this.Once = 1 }")).toBeNull();
    expect(parse).toHaveBeenCalledTimes(1);
    for (let i = 0; i < 3; i++) expect(scriptFault("update", "{ this.Once = }")).not.toBeNull();
    expect(parse).toHaveBeenCalledTimes(4);
    for (let i = 0; i < 3; i++) expect(scriptAggregates("{ N: count(), Once: 1 }")).toHaveLength(1);
    expect(parse).toHaveBeenCalledTimes(5);
  });
});
