import { describe, expect, it } from "vitest";
import { EngineError } from "../../../engine/base/errors.ts";
import type { IndexScriptHost } from "../../../engine/scripting/index-functions.ts";
import {
  indexMapsOf,
  indexReduceOf,
  readIndexText,
} from "../../../engine/scripting/index-script.ts";
import type { Node } from "../../../engine/scripting/language/script-parser.ts";
import {
  type CompiledScript,
  compileScript,
  resultTexts,
} from "../../../engine/scripting/script.ts";
import { ScriptDocument } from "../../../engine/scripting/values/script-document.ts";
import { stubHost } from "./stub-host.ts";

function indexHost(): IndexScriptHost {
  return Object.assign(stubHost(true), { isTracking: true });
}

function compiled(text: string, ...functions: string[]): CompiledScript {
  return compileScript(text, { kind: "index", functions });
}

function mapsOf(text: string) {
  return indexMapsOf("I", 0, compiled(text), indexHost());
}

function read(text: string, method: "map" | "aggregate" = "map") {
  const { fields, loads } = readIndexText("I", compiled(text).tree as Node, method);
  return { fields: fields === null ? null : [...fields], loads: [...loads] };
}

function codeOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof EngineError) return error.code;
    throw error;
  }
  return "none";
}

describe("texts of indexes", () => {
  it("declare maps that are called for each document", () => {
    const script = compiled(
      "map('Users', u => ({ Name: twice(u.Name) }));",
      "function twice(x) { return x + x }",
    );
    const [declared, ...more] = indexMapsOf("I", 0, script, indexHost());
    expect([declared?.collection, more]).toEqual(["Users", []]);
    const { root } = ScriptDocument.fromText('{"Name":"a"}', null, "users/1");
    const map = declared?.map as NonNullable<typeof declared>["map"];
    expect(resultTexts(script.call(map, { host: indexHost(), args: [root] }))).toEqual([
      '{"Name":"aa"}',
    ]);
  });

  it("may declare several maps, also of all documents, and contain other statements", () => {
    const maps = mapsOf("const k = 1; map('A', a => ({ k })); map('@all_docs', a => ({ k }))");
    expect(maps.map(({ collection }) => collection)).toEqual(["A", null]);
  });

  it("may declare maps of counters: by name, of a collection, or of all", () => {
    const maps = mapsOf(
      "counters.map('A', 'likes', c => ({})); counters.map('A', c => ({})); counters.map(c => ({}))",
    );
    expect(maps.map(({ source, collection, item }) => [source, collection, item])).toEqual([
      ["Counters", "A", "likes"],
      ["Counters", "A", null],
      ["Counters", null, null],
    ]);
  });

  it("declare a reduce", () => {
    const script = compiled(
      "groupBy(x => x.K).aggregate(g => ({ K: g.key, N: g.values.reduce((s, v) => s + v.N, 0) }))",
    );
    const { aggregate } = indexReduceOf("I", script, indexHost());
    const text = '{"key":"a","values":[{"N":1},{"N":2}]}';
    const group = ScriptDocument.fromText(text, null, null).root;
    expect(resultTexts(script.call(aggregate, { host: indexHost(), args: [group] }))).toEqual([
      '{"K":"a","N":3}',
    ]);
  });

  it("are rejected if they declare no map or anything else", () => {
    for (const text of ["5", "map('A')", "map(a => ({}))", "map('A', 5)"]) {
      expect(codeOf(() => mapsOf(text))).toBe("index-creation");
    }
    for (const [text, code] of [
      ["5", "index-creation"],
      ["groupBy(x => x.A)", "index-creation"],
      ["groupBy(1).aggregate(2)", "argument-null"],
    ] as const) {
      expect(codeOf(() => indexReduceOf("I", compiled(text), indexHost()))).toBe(code);
    }
    expect(codeOf(() => mapsOf("timeSeries.map('A', 5, c => ({}))"))).toBe("index-creation");
  });
});

describe("static analysis of an index text", () => {
  it("finds the fields of the returned objects", () => {
    expect(read("map('A', a => ({ X: 1, 'Y': 2 }))").fields).toEqual(["X", "Y"]);
    expect(read("map('A', function (a) { return { X: 1 }; })").fields).toEqual(["X"]);
    expect(read("map('A', a => a.L.map(l => ({ P: l })))").fields).toEqual(["P"]);
    expect(read("map('A', a => a.N > 1 ? { X: 1 } : { X: 2 })").fields).toEqual(["X"]);
    expect(read("map('A', a => ({ X: 1 })); map('B', b => ({ Y: 1 }))").fields).toEqual(["Y", "X"]);
    expect(read("groupBy(x => x.K).aggregate(g => ({ K: g.key }))", "aggregate").fields).toEqual([
      "K",
    ]);
  });

  it("finds none if only running the script determines them", () => {
    for (const map of [
      "a => make(a)",
      "a => ({ ...a })",
      "a => ({ [a.Name]: 1 })",
      "a => { const o = {}; o.X = 1; return o; }",
      "a => { if (a.N) return null; return { X: 1 }; }",
      "a => ({ _: createField(a.Name, 1) })",
      "a => ({ _: { $name: a.Name, $value: 1 } })",
    ]) {
      expect(read(`map('A', ${map})`).fields).toBeNull();
    }
  });

  it("finds the collections of loaded documents", () => {
    const text = "map('A', a => ({ X: load(a.R, 'Bs').N, Y: noTracking.load(a.S, 'Cs').N }))";
    expect(read(text).loads).toEqual(["Bs"]);
    expect(read("map('A', a => ({ X: load(a.R, a.C) }))").loads).toEqual([null]);
    expect(codeOf(() => read("map('A', a => ({ X: load(a.R) }))"))).toBe("index-compilation");
  });

  it("rejects a map that returns different fields on two paths", () => {
    const text = "map('A', a => { if (a.N) { return { X: 1 }; } return { Y: 1 }; })";
    expect(codeOf(() => read(text))).toBe("invalid-operation");
  });

  it("finds the fields of boosted objects", () => {
    expect([...(read("map('A', a => boost({ X: a.X, Y: 1 }, 2))").fields ?? [])]).toEqual([
      "X",
      "Y",
    ]);
  });
});
