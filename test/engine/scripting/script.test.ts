import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { EngineError } from "../../../engine/base/errors.ts";
import { defaultLimits, liftedLimits } from "../../../engine/scripting/language/script-values.ts";
import { compileScript, resultTexts, ScriptParameters } from "../../../engine/scripting/script.ts";
import { fieldsRead, simpleUpdates } from "../../../engine/scripting/script-reading.ts";
import { ScriptDocument } from "../../../engine/scripting/values/script-document.ts";
import { projectRoot } from "../../support/project-root.ts";
import { storedDocument } from "./stored-document.ts";
import { stubHost } from "./stub-host.ts";

const metadata =
  '{"@collection":"Users","@change-vector":"A:1","@id":"users/1","@last-modified":"2026-01-01T00:00:00.0000000Z"}';

/** Other load on the machine must not affect the result. */
const unhurried = { ...defaultLimits, msMax: 60_000 };

/** Runs a patch and prints its result in the format of the case files. */
function patched(body: string, script: string, args = "{}"): string {
  try {
    const document = ScriptDocument.fromText(body, metadata, "users/1");
    const compiled = compileScript(script, { kind: "patch" });
    compiled.run({
      host: stubHost(),
      document,
      limits: unhurried,
      parameters: new ScriptParameters(args),
    });
    return document.bodyText() === body ? "= same" : `= ${document.bodyText()}`;
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    const place = /^At \d+:\d+ Script failed for document ID 'users\/1'\. /;
    const message = error.code === "script-syntax" ? "" : error.message.replace(place, "");
    return `! ${error.code}${message === "" ? "" : ` ${message.replaceAll("\n", "⏎")}`}`;
  }
}

const folder = `${projectRoot}test/cases/scripts/`;

describe("returns the same as RavenDB 7.2.7", () => {
  for (const file of readdirSync(folder).filter((name) => name.endsWith(".txt"))) {
    describe(file, () => {
      let document = "{}";
      let args = "{}";
      let script = "";
      for (const line of readFileSync(folder + file, "utf8").split("\n")) {
        if (line.startsWith("document ")) document = line.slice(9);
        else if (line.startsWith("args ")) args = line.slice(5);
        else if (line.startsWith("script ")) script = line.slice(7).replaceAll("⏎", "\n");
        else if (line.startsWith("= ") || line.startsWith("! ")) {
          const [body, values, source] = [document, args, script];
          it(source, () => expect(patched(body, source, values)).toBe(line));
        }
      }
    });
  }
});

function failure(work: () => unknown): EngineError {
  try {
    work();
  } catch (error) {
    if (error instanceof EngineError) return error;
    throw error;
  }
  throw new Error("no exception was thrown");
}

describe("positions in messages", () => {
  it("reports line and column of a syntax error", () => {
    const error = failure(() => compileScript("let a = 1;\nthis.b = ;", { kind: "patch" }));
    expect(error.code).toBe("script-syntax");
    expect(error.details).toMatchObject({ line: 2, column: 10 });
  });
  it("reports where a script threw", () => {
    expect(
      failure(() => {
        const document = ScriptDocument.fromText("{}", metadata, "users/1");
        compileScript("let a;\n  throw 'x'", { kind: "patch" }).run({ host: stubHost(), document });
      }).message,
    ).toBe("At 2:9 Script failed for document ID 'users/1'. x");
  });
  it("names unsupported syntax", () => {
    for (const [source, reason] of [
      ["async function f() {}", "Async functions are not supported"],
      ["function* g() {}", "Generators are not supported"],
      ["tag`x`", "TaggedTemplateExpression is not supported"],
      ["import('x')", "Module loading has been disabled"],
      ["this.a = 5n", "BigInt is not supported"],
      ["class A extends B {}", "Classes that extend others are not supported"],
      ["/(a)\\1/.test('aa')", "Back references are not supported"],
    ] as const) {
      expect(failure(() => compileScript(source, { kind: "patch" })).message).toContain(reason);
    }
  });
});

describe("a document", () => {
  const run = (body: string, script: string): ScriptDocument => {
    const document = ScriptDocument.fromText(body, metadata, "users/1");
    compileScript(script, { kind: "patch" }).run({ host: stubHost(), document });
    return document;
  };
  it("preserves the bytes of unchanged members", () => {
    const document = run(
      '{"a":1.50,"b":"\\u00e9\\/","c":[1e3,-0],"d":9007199254740993}',
      "this.x = this.a",
    );
    expect(document.bodyText()).toBe(
      '{"a":1.50,"b":"\\u00e9\\/","c":[1e3,-0],"d":9007199254740993,"x":1.5}',
    );
  });
  it("is not changed by reads, nor by writes of equal values", () => {
    const body = '{"a":[1.0,{"b":2.50}],"s":"\\u00e9","n":null,"t":true}';
    const document = run(
      body,
      "for (const k in this) this[k] = this[k]; this.a[1].b; this.a.length",
    );
    expect(document.changed()).toBe(false);
    expect(document.bodyText()).toBe(body);
  });
  it("preserves whole numbers beyond double precision in an array that changes", () => {
    expect(run('{"a":[9007199254740993,1.0]}', "this.a.push(1)").bodyText()).toBe(
      '{"a":[9007199254740993,1,1]}',
    );
  });
  it("allows changes of metadata, and omits derived keys from its text", () => {
    const document = run("{}", "getMetadata(this).Owner = 'x'; this['@metadata']['@id'] = 'other'");
    expect(document.metadataChanged()).toBe(true);
    expect(document.metadataText()).toBe('{"@collection":"Users","Owner":"x"}');
    expect(document.bodyText()).toBe("{}");
  });
  it("has no metadata text if a script removed it", () => {
    expect(run("{}", "delete this['@metadata']").metadataText()).toBeNull();
    expect(run("{}", "this['@metadata'] = null").metadataText()).toBeNull();
  });
  it("can be assigned to its own member once", () => {
    const metadata = '"@metadata":{"@collection":"Users"}';
    expect(run('{"a":1}', "this.me = this").bodyText()).toBe(
      `{"a":1,"me":{"a":1,${metadata},"me":null}}`,
    );
    expect(run('{"a":1}', "this.b = {me: this}").bodyText()).toBe(
      `{"a":1,"b":{"me":{"a":1,${metadata},"b":null}}}`,
    );
    expect(run('{"a":{}}', "this.a.me = this.a").bodyText()).toBe('{"a":{"me":null}}');
  });
  it("refuses to print one object too often", () => {
    const bomb = "let a = [1]; for (let i = 0; i < 40; i++) a = [a, a]; this.bomb = a";
    const document = run("{}", bomb);
    expect(failure(() => document.bodyText()).code).toBe("script-failed");
  });
  it("finds properties of large objects, before and after changes", () => {
    const names = Array.from({ length: 40 }, (_, i) => `"p${i}":${i}`).join();
    const script =
      "delete this.p3; this.q = this.p39 + this.p0; this.p3 = 'back'; this.p39 = this.q; this.r = this.q";
    const expected = names.replace('"p3":3', '"p3":"back"').replace('"p39":39', '"p39":39');
    for (let i = 0; i < 2; i += 1) {
      expect(run(`{${names}}`, script).bodyText()).toBe(`{${expected},"q":39,"r":39}`);
    }
  });
  it("copies and extends objects without affecting others with the same keys", () => {
    const script = `
      const c = this.l.map(x => ({ ...x }));
      c[0].b = 1; c[1].b = 2; c[1].c = 3;
      const d = { ...c[0] };
      delete d.a; d.e = 5;
      this.l[0].b = 7;
      this.c = c; this.d = d;
      this.k = [c[0], c[1], d, this.l[0], this.l[1]].map(x => Object.keys(x).join())`;
    expect(run('{"l":[{"a":1},{"a":2}]}', script).bodyText()).toBe(
      '{"l":[{"a":1,"b":7},{"a":2}],"c":[{"a":1,"b":1},{"a":2,"b":2,"c":3}],"d":{"b":1,"e":5},' +
        '"k":["a,b","a,b,c","b,e","a,b","a"]}',
    );
  });
  it("reads bytes", () => {
    const document = storedDocument('{"a":"é"}', metadata, "x");
    compileScript("this.b = this.a", { kind: "patch" }).run({ host: stubHost(), document });
    expect(document.bodyText()).toBe('{"a":"é","b":"é"}');
  });
  it("may be nested deeper than scripts can read, if they do not read it", () => {
    const compiled = compileScript("if (this.b) this.a = 2; else this.a", { kind: "patch" });
    const deep = `${"[".repeat(2_000)}${"]".repeat(2_000)}`;
    const results = ['{"a":1}', `{"a":${deep}}`, `{"c":${deep},"b":1}`, `{"a":${deep},"b":1}`].map(
      (body) => {
        try {
          const document = ScriptDocument.fromText(body, metadata, "x", compiled.hint);
          compiled.run({ host: stubHost(), document });
          return document.bodyText().replace(deep, "deep");
        } catch (error) {
          return (error as EngineError).code;
        }
      },
    );
    expect(results).toEqual(['{"a":1}', "too-large", '{"c":deep,"b":1,"a":2}', '{"a":2,"b":1}']);
  });
  it("shares hints between documents of other shapes", () => {
    const compiled = compileScript("this.n = this.l.map(x => x.a || x.b).join()", {
      kind: "patch",
    });
    for (const [body, expected] of [
      [
        '{"l":[{"a":1},{"b":2},{"a":3,"b":4}]}',
        '{"l":[{"a":1},{"b":2},{"a":3,"b":4}],"n":"1,2,3"}',
      ],
      ['{"x":1,"l":[{"b":2,"a":1}]}', '{"x":1,"l":[{"b":2,"a":1}],"n":"1"}'],
      ['{"l":[]}', '{"l":[],"n":""}'],
      ['{"l":[{"a":1},{}]}', '{"l":[{"a":1},{}],"n":"1,"}'],
    ] as const) {
      const document = ScriptDocument.fromText(body, metadata, "x", compiled.hint);
      compiled.run({ host: stubHost(), document });
      expect(document.bodyText()).toBe(expected);
    }
  });
});

describe("the patch functions", () => {
  it("put documents with their metadata, without derived keys", () => {
    const host = stubHost();
    const document = ScriptDocument.fromText('{"a":1.50}', metadata, "users/1");
    compileScript(
      "this.r = put('copies/1', this); put('l/1', {x: 1.0, '@metadata': {'@collection': 'Ls'}})",
      {
        kind: "patch",
      },
    ).run({ host, document });
    expect(host.puts).toEqual([
      { id: "copies/1", body: '{"a":1.50}', metadata: '{"@collection":"Users"}' },
      { id: "l/1", body: '{"x":1}', metadata: '{"@collection":"Ls"}' },
    ]);
  });
  it("are rejected in queries", () => {
    const script = compileScript("{ a: put('x', {}) }", { kind: "projection" });
    expect(failure(() => script.run({ host: stubHost(true) })).message).toBe(
      "Cannot make modifications in readonly context",
    );
  });
  it("load documents and follow paths", () => {
    const host = stubHost();
    host.documents.set("c/1", '{"Name":"Vins"}');
    const document = ScriptDocument.fromText(
      '{"C":"c/1","L":[{"C":"c/1"},{"C":"no"}]}',
      metadata,
      "o/1",
    );
    compileScript(
      "this.a = load(this.C).Name; this.b = loadPath(this, 'L[].C').map(c => c?.Name); this.c = id(load('c/1'))",
      { kind: "patch" },
    ).run({ host, document });
    expect(document.bodyText()).toBe(
      '{"C":"c/1","L":[{"C":"c/1"},{"C":"no"}],"a":"Vins","b":["Vins",null],"c":"c/1"}',
    );
  });
  it("write debug output", () => {
    const host = stubHost();
    compileScript("output('a', 5); output({a:1.0}); output(true); console.log([1,'x'])", {
      kind: "patch",
    }).run({ host, document: ScriptDocument.fromText("{}", null, null) });
    expect(host.outputs).toEqual(["a", '{"a":1}', "True", '[1,"x"]']);
  });
});

describe("projections and functions", () => {
  const order = ScriptDocument.fromText(
    '{"Total":19.0,"Lines":[{"Q":2}],"S":null}',
    metadata,
    "o/1",
  ).root;
  it("bind aliases and parameters", () => {
    const script = compileScript(
      "{ Id: id(o), T: o.Total * $factor, U: undefined, N: 0/0, M: c.Name, f: () => 1 }",
      {
        kind: "projection",
        parameters: ["o", "c"],
      },
    );
    const outcome = script.run({
      host: stubHost(true),
      args: [order, undefined],
      parameters: new ScriptParameters('{"factor":2}'),
    });
    expect(resultTexts(outcome)).toEqual([
      '{"Id":"o/1","T":38,"U":null,"N":"NaN","M":null,"f":null}',
    ]);
  });
  it("call declared functions, which can call each other", () => {
    const script = compileScript("{ v: twice(o.Total) }", {
      kind: "projection",
      parameters: ["o"],
      functions: ["function one(x) { return x + 1 }", "function twice(x) { return one(x) * 2 }"],
    });
    expect(resultTexts(script.run({ host: stubHost(true), args: [order] }))).toEqual(['{"v":40}']);
  });
  it("return several results for an array, none for null, an error for a number", () => {
    const call = (body: string): string[] =>
      resultTexts(
        compileScript("", {
          kind: "function",
          name: "f",
          functions: [`function f(o) { ${body} }`],
        }).run({ host: stubHost(true), args: [order] }),
      );
    expect(call("return [{a:1},{a:2}]")).toEqual(['{"a":1}', '{"a":2}']);
    expect(call("return null")).toEqual([]);
    expect(call("return o.Lines[0]")).toEqual(['{"Q":2}']);
    expect(failure(() => call("return 5")).message).toContain("but got: 5");
  });
  it.each([
    ["typeof this.Nope", '"undefined"'],
    ["typeof (function () { return this })()", '"object"'],
    ["(function () { return this === globalThis })()", "true"],
    ["typeof [1].map(function () { return this })[0]", '"object"'],
    ["({ N: 5, f() { return this.N } }).f()", "5"],
  ])("have globalThis as this, as in RavenDB 7.2.7: %s", (text, expected) => {
    const script = compileScript(`{ a: ${text} }`, { kind: "projection" });
    expect(resultTexts(script.run({ host: stubHost(true) }))).toEqual([`{"a":${expected}}`]);
  });
  it("return documents inside their results with collection and id", () => {
    const script = compileScript("{ o: o, l: o.Lines, t: [o.Total] }", {
      kind: "projection",
      parameters: ["o"],
    });
    const root = ScriptDocument.fromText(
      '{"Total":19.0,"Lines":[1.0,2.50]}',
      metadata,
      "users/1",
    ).root;
    expect(resultTexts(script.run({ host: stubHost(true), args: [root] }))).toEqual([
      '{"o":{"Total":19.0,"Lines":[1.0,2.50],"@metadata":{"@collection":"Users","@id":"users/1"}},"l":[1,2.5],"t":[19]}',
    ]);
  });
  it("reject text after the expression", () => {
    const error = failure(() => compileScript("{ a: 1 } this.b = 2", { kind: "projection" }));
    expect(error.code).toBe("script-syntax");
  });
  it("report where a declared function threw", () => {
    const script = compileScript("{ a: f() }", {
      kind: "projection",
      functions: ["function f() {\n  throw 'q' }"],
    });
    expect(failure(() => script.run({ host: stubHost(true) })).message).toBe(
      "At 2:9 Script failed for document ID ''. q",
    );
  });
});

describe("limits", () => {
  const run = (source: string, limits = defaultLimits): void => {
    const document = ScriptDocument.fromText("{}", metadata, "x");
    compileScript(source, { kind: "patch" }).run({ host: stubHost(), document, limits });
  };
  it("can be lifted", () => {
    const loop = "for (let i = 0; i < 50000; i++) {}";
    expect(failure(() => run(loop)).code).toBe("script-failed");
    run(loop, liftedLimits);
  });
  it("stop a run even if lifted", () => {
    const limits = { ...liftedLimits, workMax: 100_000 };
    expect(failure(() => run("while (true) {}", limits)).code).toBe("script-failed");
  });
  it("discards a script's writes to its parameters", () => {
    const parameters = new ScriptParameters('{"a":{"b":1}}');
    const compiled = compileScript("args.a.b++; this.r = args.a.b", { kind: "patch" });
    for (let i = 0; i < 2; i += 1) {
      const document = ScriptDocument.fromText("{}", metadata, "x");
      compiled.run({ host: stubHost(), document, parameters });
      expect(document.bodyText()).toBe('{"r":2}');
    }
  });
});

describe("the analysis of a script's text", () => {
  const compiled = (source: string): ReturnType<typeof compileScript> =>
    compileScript(source, { kind: "patch" });
  it("lists the fields that it reads", () => {
    const read = fieldsRead(compiled("this.A = this.B.C + this['D']; if (this.E?.F) this.G++"));
    expect(read.whole).toBe(false);
    expect([...(read.paths.get("this") ?? [])].map((path) => path.join(".")).sort()).toEqual([
      "A",
      "B.C",
      "D",
      "E.F",
      "G",
    ]);
  });
  it("detects that it may read all fields", () => {
    for (const source of ["f(this)", "this[x]", "let t = this", "({...this})"]) {
      expect(fieldsRead(compiled(source)).whole, source).toBe(true);
    }
  });
  it("returns simple updates as data", () => {
    expect(
      simpleUpdates(
        compiled("this.A += 5; this.B.C = $p; this.D = this.A * 2 + args.q; this.E++;"),
      ),
    ).toEqual([
      {
        path: ["A"],
        value: {
          kind: "operation",
          operator: "+",
          left: { kind: "path", path: ["A"] },
          right: { kind: "literal", value: 5 },
        },
      },
      { path: ["B", "C"], value: { kind: "parameter", path: ["p"] } },
      {
        path: ["D"],
        value: {
          kind: "operation",
          operator: "+",
          left: {
            kind: "operation",
            operator: "*",
            left: { kind: "path", path: ["A"] },
            right: { kind: "literal", value: 2 },
          },
          right: { kind: "parameter", path: ["q"] },
        },
      },
      {
        path: ["E"],
        value: {
          kind: "operation",
          operator: "-",
          left: { kind: "path", path: ["E"] },
          right: { kind: "literal", value: -1 },
        },
      },
    ]);
  });
  it("does not treat other statements as simple", () => {
    for (const source of [
      "this.A = f()",
      "if (this.A) this.B = 1",
      "this['@metadata'].X = 1",
      "this.A = this.B.length",
      "let x = 1",
      "this[x] = 1",
      "this.A = [1]",
      "delete this.A",
      "x.A = 1",
      "this.A **= 2",
    ]) {
      expect(simpleUpdates(compiled(source)), source).toBeNull();
    }
  });
});
