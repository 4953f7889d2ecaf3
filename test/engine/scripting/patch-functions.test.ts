/** Functions of patches beyond standard JavaScript: documents, output, tests of texts. */
import { describe, expect, test } from "vitest";
import { EngineError } from "../../../engine/base/errors.ts";
import { runScript } from "./run-script.ts";
import { type StubHost, stubHost } from "./stub-host.ts";

describe("a patch", () => {
  test("stores other documents with the metadata from the script", () => {
    const host = stubHost();
    runScript("this.id = put('users/', { a: 1, '@metadata': { '@collection': 'Users' } })", {
      host,
    });
    expect(host.puts).toHaveLength(1);
    expect(host.puts[0]).toMatchObject({ id: "users/", body: '{"a":1}' });
    expect(JSON.parse(host.puts[0]?.metadata ?? "")).toEqual({ "@collection": "Users" });
  });

  test("loads other documents, and has access to its own", () => {
    const host = stubHost();
    host.documents.set("users/2", '{"Name":"Ann"}');
    const script =
      "this.name = load('users/2').Name; this.isThere = load('users/3') != null; this.id = id(this); this.collection = getMetadata(this)['@collection']";
    expect(runScript(script, { host })).toEqual({
      name: "Ann",
      isThere: false,
      id: "users/1",
      collection: "Users",
    });
  });

  test("prints values as text: strings unchanged, booleans and other values as .NET does", () => {
    const host = stubHost();
    const values = ["'a\"b'", "1.5", "true", "undefined", "null", "[1,{a:'x'}]"];
    runScript(values.map((value) => `output(${value});`).join(" "), { host });
    expect(host.outputs).toEqual(['a"b', "1.5", "True", "undefined", "null", '[1,{"a":"x"}]']);
  });

  test("tests texts ignoring case", () => {
    const script =
      "this.r = [startsWith('Abc', 'aB'), startsWith('a', 'ab'), endsWith('abC', 'Bc'), endsWith('c', 'bc')]";
    expect(runScript(script)).toEqual({ r: [true, false, true, false] });
  });

  test.each([
    "startsWith('a')",
    "startsWith(1, 'a')",
    "load()",
    "put('a')",
    "id('x', 'y', 'z').a.b",
  ])("fails on a call with invalid arguments: %s", (call) =>
    expect(() => runScript(`this.x = ${call}`)).toThrow(EngineError),
  );
});

describe("surplus or invalid arguments are rejected with the error types of RavenDB 7.2.7", () => {
  const refused: readonly (readonly [string, string])[] = [
    ["timeseries(this, 'a').append('2020-01-01', [1], 't', 5)", "invalid-argument"],
    ["timeseries(this, 'a').append('2020-01-01', ['x'])", "invalid-argument"],
    ["timeseries(this, 'a').get('2020', '2021', 'x')", "invalid-argument"],
    ["includes.cmpxchg(5)", "invalid-operation"],
    ["archived.archiveAt(this)", "invalid-operation"],
    ["metadataFor({})", "invalid-operation"],
    ["put('x', Symbol())", "invalid-operation"],
  ];
  const host = { ...stubHost(), timeSeries: () => ({ append: () => undefined }) };
  for (const [script, code] of refused) {
    test(script, () => {
      let thrown: unknown;
      try {
        runScript(script, { host: host as unknown as StubHost });
      } catch (error) {
        thrown = error;
      }
      expect((thrown as EngineError).code).toBe(code);
    });
  }
});
