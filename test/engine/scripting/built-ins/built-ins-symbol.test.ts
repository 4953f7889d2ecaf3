/**
 * `Symbol` and `globalThis`, and their isolation. The expected values are those of RavenDB 7.2.7,
 * with exceptions noted in the tests.
 */
import { describe, expect, it, test } from "vitest";
import { EngineError } from "../../../../engine/base/errors.ts";
import {
  getProperty,
  setProperty,
} from "../../../../engine/scripting/language/script-properties.ts";
import {
  defaultLimits,
  newObject,
  Run,
  ScriptSymbol,
} from "../../../../engine/scripting/language/script-values.ts";
import { compileScript, ScriptParameters } from "../../../../engine/scripting/script.ts";
import { ScriptDocument } from "../../../../engine/scripting/values/script-document.ts";
import { runScript } from "../run-script.ts";
import { stubHost } from "../stub-host.ts";

const values: readonly (readonly [string, unknown])[] = [
  ["typeof Symbol", "function"],
  ["typeof Symbol()", "symbol"],
  ["typeof Symbol.iterator", "symbol"],
  ["Symbol('a').toString()", "Symbol(a)"],
  ["Symbol('a').description", "a"],
  ["String(Symbol('a'))", "Symbol(a)"],
  ["Symbol.iterator.toString()", "Symbol(Symbol.iterator)"],
  ["Symbol('a') === Symbol('a')", false],
  ["Symbol.for('a') === Symbol.for('a')", true],
  ["Symbol.keyFor(Symbol.for('zz'))", "zz"],
  ["Symbol('a') == 'a'", false],
  ["!!Symbol()", true],
  ["Object.keys({[Symbol('a')]: 1, b: 2})", ["b"]],
  ["JSON.stringify({[Symbol('a')]: 1, b: 2})", '{"b":2}'],
  ["JSON.stringify({a: Symbol('a')})", "{}"],
  ["JSON.stringify([Symbol('a')])", "[null]"],
  ["Object.getOwnPropertySymbols({[Symbol('a')]: 1}).length", 1],
  [
    "[...{[Symbol.iterator]() { let i = 0; return {next: () => ({value: i, done: i++ > 2})} }}]",
    [0, 1, 2],
  ],
  [
    "Array.from({[Symbol.iterator]() { let i = 0; return {next: () => ({value: i, done: i++ > 2})} }})",
    [0, 1, 2],
  ],
  ["+{[Symbol.toPrimitive]() { return 7 }}", 7],
  ["({[Symbol.toPrimitive]() { return 7 }}) + 1", 8],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a script's text
  ["`${{[Symbol.toPrimitive](h) { return h }}}`", "string"],
  ["[1, 2][Symbol.iterator]().next()", { value: 1, done: false }],
  ["'ab'[Symbol.iterator]().next().value", "a"],
  ["[...[1, 2][Symbol.iterator]()]", [1, 2]],
  ["typeof globalThis", "object"],
  ["escape('ä b+c/é€')", "%E4%20b+c/%E9%u20AC"],
  ["unescape('%u20AC%E4')", "€ä"],
  ["escape()", "undefined"],
  ["globalThis.Math === Math", true],
  ["globalThis.globalThis === globalThis", true],
  ["(globalThis.zz = 5, zz)", 5],
  ["typeof globalThis.load", "function"],
  ["'Math' in globalThis", true],
  ["String(globalThis)", "[object Object]"],
  ["load(['users/9'])[0] === undefined", true],
];

describe("expressions", () => {
  for (const [expression, expected] of values) {
    test(expression, () => {
      expect(runScript(`this.value = ${expression}`)["value"]).toEqual(expected);
    });
  }
});

const failures: readonly (readonly [string, string, RegExp])[] = [
  ["this.x = Symbol('x')", "invalid-operation", /^Unknown type: Symbol$/],
  ["this.x = [Symbol('x')]", "invalid-operation", /^Unknown type: Symbol$/],
  ["this.x = {[Symbol('a')]: 1, b: 2}", "invalid-argument", /^Expected string but got Symbol$/],
  ["this[Symbol('a')] = 1", "invalid-argument", /^Expected string but got Symbol$/],
  ["this.x = globalThis", "invalid-argument", /^Expected string but got Symbol$/],
  ["this.x = '' + Symbol('x')", "script-failed", /Cannot convert a Symbol value to a/],
  ["this.x = Symbol('x') + 1", "script-failed", /Cannot convert a Symbol value to a number/],
  ["new Symbol()", "script-failed", /not a constructor/],
  ["[...{}]", "script-failed", /not iterable/],
];

describe("failures", () => {
  for (const [script, code, message] of failures) {
    test(script, () => {
      let failure: unknown;
      try {
        runScript(script);
      } catch (error) {
        failure = error;
      }
      expect(failure).toBeInstanceOf(EngineError);
      expect((failure as EngineError).code).toBe(code);
      expect((failure as EngineError).message).toMatch(message);
    });
  }
});

describe("runs share no state", () => {
  const parameters = new ScriptParameters('{"a":{}}');
  const run = (source: string): Record<string, unknown> => {
    const document = ScriptDocument.fromText("{}", "{}", "users/1");
    compileScript(source, { kind: "patch" }).run({ host: stubHost(), document, parameters });
    return JSON.parse(document.bodyText()) as Record<string, unknown>;
  };

  it("through globalThis", () => {
    run("globalThis.kept = 1");
    expect(run("this.x = [typeof globalThis.kept, kept]")).toEqual({ x: ["undefined", null] });
  });

  it("through symbols in parameters", () => {
    run("args[Symbol.iterator] = 1; args.a[Symbol.toStringTag] = 2");
    const script = "this.x = [typeof args[Symbol.iterator], typeof args.a[Symbol.toStringTag]]";
    expect(run(script)).toEqual({ x: ["undefined", "undefined"] });
  });
});

it("a property with a symbol key belongs to one object, and is not copied by parsing or printing", () => {
  const run = new Run(defaultLimits, null, newObject());
  const symbol = new ScriptSymbol("a");
  const object = newObject();
  setProperty(run, object, symbol, 1);
  expect(getProperty(run, object, symbol)).toBe(1);
  expect(getProperty(run, object, "a")).toBeUndefined();
  expect(getProperty(run, newObject(), symbol)).toBeUndefined();
  expect(getProperty(run, object, new ScriptSymbol("a"))).toBeUndefined();
  expect(object.keys).toEqual([]);
});

it("writes and reads a value nested 256 deep as JSON, inside a function", () => {
  const text = `${"[".repeat(256)}1${"]".repeat(256)}`;
  const script =
    "const f = t => JSON.stringify(JSON.parse(t)); this.x = f(args.text) === args.text";
  expect(runScript(script, { args: { text } })["x"]).toBe(true);
});
