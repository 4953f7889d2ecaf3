/**
 * Scripts that try to escape: to host objects, past their fuel, into unbounded memory. Each must
 * end with a result of script values only, or with an `EngineError`, and leave the host unchanged.
 */

import { afterAll, describe, expect, it } from "vitest";
import { EngineError } from "../../../engine/base/errors.ts";
import {
  ABSENT,
  defaultLimits,
  LAZY,
  liftedLimits,
  ScriptArray,
  ScriptDate,
  ScriptFunction,
  type ScriptLimits,
  ScriptMap,
  ScriptObject,
  ScriptPattern,
  ScriptSet,
  ScriptSymbol,
} from "../../../engine/scripting/language/script-values.ts";
import { compileScript, type Outcome } from "../../../engine/scripting/script.ts";
import { ScriptDocument } from "../../../engine/scripting/values/script-document.ts";
import { stubHost } from "./stub-host.ts";

const body = '{"Name":"Ann","Age":30,"Tags":["a","b"],"Addr":{"City":"Oslo"}}';

/** Everything that a script could modify: own property names of all objects shared by host code. */
function hostState(): string {
  const shared = [
    globalThis,
    Object.prototype,
    Array.prototype,
    Function.prototype,
    String.prototype,
    Number.prototype,
    Map.prototype,
    Set.prototype,
    Date.prototype,
    RegExp.prototype,
    Error.prototype,
    Promise.prototype,
    ScriptObject.prototype,
    ScriptFunction.prototype,
    Object,
    Array,
    JSON,
    Math,
    Reflect,
  ];
  return shared
    .map((value) =>
      Reflect.ownKeys(value)
        .filter((key) => !String(key).startsWith("__vitest"))
        .map(String)
        .join(),
    )
    .join("\n");
}

/** Returns the members of a script value; null if it is not a script value. */
function partsOf(value: unknown): unknown[] | null {
  if (value === null || ["undefined", "boolean", "number", "string"].includes(typeof value))
    return [];
  if (value === ABSENT || value === LAZY) return [];
  if (value instanceof ScriptObject) {
    const symbols = [...(value.traits?.symbols ?? [])].flat();
    return [...value.values, value.boxed, value.maker, ...symbols];
  }
  if (value instanceof ScriptArray) return [...value.items, value.extra];
  if (value instanceof ScriptFunction) return [value.properties, value.methods];
  if (value instanceof ScriptMap) return [...value.entries].flat();
  if (value instanceof ScriptSet) return [...value.items];
  const isPlain =
    value instanceof ScriptDate || value instanceof ScriptPattern || value instanceof ScriptSymbol;
  return isPlain ? [] : null;
}

/** Fails unless a value and everything reachable from it are script values. */
function expectScriptValue(root: unknown): void {
  const seen = new Set<unknown>([root]);
  for (const value of seen) {
    const parts = partsOf(value);
    expect(parts, "a host value got into a script").not.toBeNull();
    for (const part of parts ?? []) seen.add(part);
  }
}

interface Ending {
  readonly code: string | null;
  readonly message: string;
  readonly text: string;
  readonly outcome: Outcome | null;
}

function attempt(source: string, limits: ScriptLimits = defaultLimits): Ending {
  const document = ScriptDocument.fromText(body, '{"@collection":"Users"}', "users/1");
  try {
    const compiled = compileScript(source, { kind: "patch" });
    const outcome = compiled.run({ host: stubHost(), document, limits });
    expectScriptValue(outcome.value);
    expectScriptValue(document.root);
    const text = document.bodyText();
    JSON.parse(text);
    return { code: null, message: "", text, outcome };
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    expect(error.cause, "the guard of the host's stack was too generous").toBeUndefined();
    return { code: error.code, message: error.message, text: "", outcome: null };
  }
}

const before = hostState();
afterAll(() => {
  expect(hostState()).toBe(before);
});

/**
 * None of these obtains anything: `this.out` stays undefined, null or a plain text without host
 * content.
 */
const reaches = [
  "this.out = (() => 1).constructor('return process')()",
  "this.out = ''.constructor.constructor('return this')()",
  "this.out = [].constructor.constructor('return this')()",
  "this.out = this.constructor.constructor('return this')()",
  "this.out = ({}).constructor.constructor('return process')()",
  "this.out = (5).constructor.constructor('x')",
  "this.out = /a/.constructor('x')",
  "this.out = true.constructor",
  "this.out = new Map().constructor",
  "this.out = new Date(0).constructor.constructor",
  "this.out = Object.constructor.constructor('return 1')",
  "this.out = Math.constructor.constructor('return 1')",
  "this.out = JSON.stringify.constructor('return 1')",
  "this.out = load.constructor('return 1')",
  "this.out = console.log.constructor",
  "this.out = (function () { return this })()",
  "this.out = (function () { return this }).call(null)",
  "this.out = (function () { return this }).apply(undefined)",
  "this.out = (() => arguments.callee)()",
  "this.out = (function () { return arguments.callee })()",
  "this.out = (function f() { return f.caller })()",
  "this.out = globalThis",
  "this.out = global",
  "this.out = window",
  "this.out = self",
  "this.out = process",
  "this.out = process.env",
  "this.out = require('fs')",
  "this.out = module",
  "this.out = exports",
  "this.out = __dirname",
  "this.out = Buffer",
  "this.out = setTimeout",
  "this.out = fetch",
  "this.out = Reflect",
  "this.out = Reflect.ownKeys(this)",
  "this.out = Proxy",
  "this.out = new Proxy({}, {})",
  "this.out = Symbol",
  "this.out = Symbol.iterator",
  "this.out = [][Symbol.iterator]",
  "this.out = WebAssembly",
  "this.out = Atomics",
  "this.out = SharedArrayBuffer",
  "this.out = Promise",
  "this.out = Promise.resolve().then",
  "this.out = WeakRef",
  "this.out = new FinalizationRegistry(x => x)",
  "this.out = Intl",
  "this.out = new Intl.DateTimeFormat()",
  "this.out = queueMicrotask",
  "this.out = structuredClone",
  "this.out = ({}).__proto__",
  "this.out = ({}).__proto__.__proto__",
  "this.out = [].__proto__",
  "this.out = ''.__proto__",
  "this.out = (() => 1).__proto__",
  "this.out = this.__proto__",
  "this.out = Object.prototype",
  "this.out = Array.prototype",
  "this.out = Function.prototype",
  "this.out = (() => 1).prototype",
  "this.out = Object.getPrototypeOf({})",
  "this.out = Object.getPrototypeOf([])",
  "this.out = Object.setPrototypeOf({}, null)",
  "this.out = Object.getOwnPropertyDescriptor(Object, 'keys')",
  "this.out = Object.getOwnPropertyDescriptors([])",
  "this.out = Object.defineProperty({}, 'x', {get() { return 1 }})",
  "this.out = ({}).__defineGetter__('x', () => 1)",
  "this.out = ({}).__lookupGetter__('__proto__')",
  "this.out = Object.getOwnPropertySymbols([])[0]",
  "this.out = ({}).valueOf.call(null)",
  "this.out = ({}).hasOwnProperty.constructor",
  "this.out = ({}).propertyIsEnumerable",
  "this.out = [].concat.constructor",
  "this.out = Error.captureStackTrace",
  "this.out = Error.prepareStackTrace",
  "this.out = new Error('x').stack.constructor",
  "try { null.f.x = 1 } catch (e) { this.out = e.constructor }",
  "try { null.f.x = 1 } catch (e) { this.out = e.stack }",
  "try { JSON.parse('{') } catch (e) { this.out = e.constructor.constructor }",
  "try { new RegExp('(') } catch (e) { this.out = e.stack }",
  "try { decodeURIComponent('%') } catch (e) { this.out = e.constructor }",
  "try { 'a'.repeat(-1) } catch (e) { this.out = e.__proto__ }",
  'this.out = JSON.parse(\'{"__proto__":{"x":1}}\').x',
  'this.out = JSON.parse(\'{"constructor":{"prototype":1}}\').prototype',
  'this.out = Object.assign({}, JSON.parse(\'{"__proto__":{"admin":true}}\')).admin',
  "this.out = ({__proto__: {admin: true}}).admin",
  "this['__proto__'] = {admin: true}; this.out = this.admin; delete this['__proto__']",
  "const o = {}; o['__proto__'] = {admin: true}; this.out = o.admin",
  "const o = {}; o.constructor = 1; o.prototype = 2; this.out = ({}).constructor",
  "this.out = [1,2].map.call.call.constructor",
  "this.out = 'x'.replace('x', Function)",
  "this.out = [1].map(Function)",
  "this.out = [1].map(eval)",
  "this.out = new Function('return this')()",
  "this.out = Function('return this')()",
  "this.out = eval('this')",
  "this.out = (0, eval)('globalThis')",
  "const e = eval; this.out = e('1')",
  "this.out = Function.prototype.constructor('return 1')()",
  "this.out = [].keys().next",
  "this.out = ''.matchAll(/a/g).next",
  "this.out = [].values().return",
  "this.out = Array.from({length: 1, 0: 'x'}).constructor",
  "this.out = Array.from.call(Object, [1]).constructor",
  "this.out = Date.prototype",
  "this.out = RegExp.prototype",
  "this.out = RegExp.$1",
  "this.out = /a/.exec.constructor",
  "this.out = /a/.exec('a').constructor",
  "this.out = 'abc'.match(/b/).input.constructor",
  "this.out = new Set([1]).entries().constructor",
  "this.out = load.call(null, 'x').constructor",
  "this.out = load.bind(null).constructor",
  "this.out = Math.max.apply.constructor",
  "this.out = getMetadata(this).constructor",
  "this.out = timeseries",
  "this.out = spatial.constructor",
  "this.out = args.constructor",
  "this.out = args.__proto__",
  "this.out = $constructor",
  "this.out = $__proto__",
  "this.out = $toString",
  "class A { m() { return this.constructor } } this.out = new A().m()",
  "class A {} this.out = A.constructor",
  "class A {} this.out = A.prototype.constructor",
  "class A {} this.out = new A().__proto__.__proto__",
  "function F() {} F.prototype = {x: 1}; this.out = new F().__proto__",
  "const o = {toString() { return 'constructor' }}; this.out = ({})[o]",
  "const k = ['__pro', 'to__'].join(''); this.out = ({})[k]",
  "this.out = ({})[['constructor']]",
  "this.out = [][{toString: () => 'constructor'}]",
  "for (const k in []) this.out = k",
  "for (const k in 'constructor'.constructor) this.out = k",
  "const {constructor} = {}; this.out = constructor",
  "const {constructor: {constructor: c}} = []; this.out = c",
  "const {__proto__: p} = this; this.out = p",
  "const [a] = [[].constructor]; this.out = a",
  "this.out = ((...a) => a.constructor)(1)",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a script's text
  "this.out = `${{toString: () => [].constructor}}`",
  "this.out = typeof document",
  "Object.prototype.polluted = 1; this.out = ({}).polluted",
  "Array.prototype.push = 1",
  "Math.max = () => 5; this.out = Math.max(1)",
  "JSON.parse = 1",
  "load.x = 1; this.out = load.x",
  "Object.keys = 1",
  "Object.freeze(Math); Math.x = 1",
  "String.prototype.trim = () => 'owned'; this.out = ' a '.trim()",
  "this.out = globalThis.process",
  "this.out = globalThis.global",
  "this.out = globalThis.globalThis.require",
  "this.out = globalThis['pro' + 'cess']",
  "this.out = globalThis.constructor.constructor('return this')()",
  "this.out = globalThis.Function('return process')()",
  "this.out = new globalThis.Function('return this')()",
  "this.out = globalThis.eval('process')",
  "this.out = globalThis.__proto__",
  "this.out = globalThis.maker",
  "this.out = globalThis.traits",
  "this.out = globalThis.native",
  "this.out = globalThis.Object.prototype",
  "this.out = Object.getPrototypeOf(globalThis)",
  "this.out = (function () { return this }).call(globalThis).process",
  "this.out = Object.keys(globalThis)[0]",
  "this.out = Symbol.constructor('return this')()",
  "this.out = Symbol('x').constructor",
  "this.out = Symbol.prototype",
  "this.out = Symbol.iterator.constructor",
  "this.out = Symbol.iterator.__proto__",
  "this.out = Symbol.iterator.kind",
  "this.out = Symbol.for('x').constructor",
  "this.out = ({})[Symbol.for('nodejs.util.inspect.custom')]",
  "this.out = ({})[Symbol.for('nodejs.util.promisify.custom')]",
  "this.out = Array[Symbol.species]",
  "this.out = [][Symbol.unscopables]",
  "this.out = [][Symbol.iterator].constructor",
  "this.out = [][Symbol.iterator]().constructor",
  "this.out = [][Symbol.iterator]().__proto__",
  "this.out = [][Symbol.iterator]().next.constructor",
  "this.out = ''[Symbol.iterator]().next.call(null).value",
  "this.out = new Map()[Symbol.iterator]().return",
  "this.out = [].concat({[Symbol.isConcatSpreadable]: true, length: 1})[0].constructor",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a script's text
  "this.out = `${{[Symbol.toPrimitive]: () => [].constructor}}`",
  "this.out = +{[Symbol.toPrimitive]: () => ({})}",
  "this.out = [...{[Symbol.iterator]: () => [].constructor}]",
  "this.out = [...{[Symbol.iterator]: load}]",
  "this.out = [...{[Symbol.iterator]: () => ({next: Function})}]",
  "this.out = ({})[{[Symbol.toPrimitive]: () => 'constructor'}]",
  "this.out = Object.assign({}, {[Symbol.iterator]: 1}).constructor",
  "const {constructor} = globalThis; this.out = constructor",
  "const {[Symbol.iterator]: i} = []; this.out = i.constructor",
  "for (const k in globalThis) this.out = k",
  "globalThis.Math.max = () => 5; this.out = Math.max(1)",
  "globalThis.JSON = 1; this.out = JSON.parse('1')",
  "globalThis.polluted = 1; this.out = ({}).polluted",
  "globalThis.globalThis.Object.polluted = 1; this.out = Object.polluted",
  "globalThis.Symbol.iterator = 1",
  "Symbol.iterator.description = 1",
  "Symbol.iterator.x = 1; this.out = Symbol.iterator.x",
  "Array[Symbol.iterator] = 1",
  "Math[Symbol.toStringTag] = 1; this.out = Math[Symbol.toStringTag]",
  "delete Math[Symbol.toStringTag]",
  "Object.assign(Math, {[Symbol.iterator]: 1})",
  "Object.freeze(this); this[Symbol.iterator] = 1",
  "({})[Symbol.iterator] = 1; this.out = ({})[Symbol.iterator]",
  "[][Symbol.iterator] = 1; this.out = [][Symbol.iterator].constructor",
];

describe("reaches no host object", () => {
  for (const source of reaches) {
    it(source, () => {
      const ending = attempt(source);
      if (ending.code !== null) {
        expect([
          "script-failed",
          "script-syntax",
          "invalid-operation",
          "invalid-argument",
        ]).toContain(ending.code);
        expect(ending.message).not.toMatch(/node:internal|\/engine\/|native code/);
        return;
      }
      const { out } = JSON.parse(ending.text) as { out?: unknown };
      expect(JSON.stringify(out ?? null)).not.toMatch(
        /native code|\[object global\]|node:|\/engine\//,
      );
      expect([undefined, null, "undefined", "", 1]).toContain(out ?? undefined);
    });
  }
});

/** Each of these stops because of fuel, depth or memory, whatever limits the caller lifted. */
const bombs = [
  "while (true) {}",
  "[...{[Symbol.iterator]: () => ({next: () => ({value: 1})})}]",
  "for (const x of {[Symbol.iterator]: () => ({next: () => ({})})});",
  "const o = {[Symbol.toPrimitive]() { return +this }}; +o",
  "const o = {[Symbol.iterator]() { return [...this] }}; [...o]",
  "const o = {}; for (;;) o[Symbol()] = 1",
  "const a = []; for (;;) a.push(Symbol('x'))",
  "for (let i = 0; ; i++) Symbol.for('k' + i)",
  "for (let i = 0; ; i++) globalThis['k' + i] = 1",
  "for (;;);",
  "do {} while (true)",
  "a: for (;;) { for (;;) continue a }",
  "a: while (true) { while (true) { break a } } while (true);",
  "for (const x of [1]) { while (true) { try { continue } finally { } } }",
  "while (true) { try { throw 1 } catch { } }",
  "try { while (true) {} } catch { } finally { while (true) {} }",
  "try { while (true) {} } finally { return 1 }",
  "(() => { while (true) { try { return 1 } finally { continue } } })()",
  "const f = () => { try { f() } catch { f() } finally { f() } }; f()",
  "const f = () => f(); f()",
  "function f() { return g() } function g() { return f() } f()",
  "const o = {toString() { return '' + this }}; '' + o",
  "const o = {valueOf() { return +this }}; +o",
  "const a = []; a[0] = a; a.flat(Infinity).length; const f = x => x.map(f); f(a)",
  "[1].map(function f(x) { return [x].map(f) })",
  "[2, 1].sort(function f(a, b) { return [a, b].sort(f) })",
  "'a'.replace(/a/, function f(x) { return x.replace(/a/, f) })",
  "JSON.parse('[1]', function f(k, v) { return JSON.parse('[1]', f) })",
  "JSON.stringify([1], function f(k, v) { return JSON.stringify([1], f) })",
  "let s = 'x'; for (;;) s += s",
  "let s = 'x'; while (true) s = s + s",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a script's text
  "let s = 'ab'; for (;;) s = `${s}${s}`",
  "let s = 'ab'; for (;;) s = s.concat(s)",
  "let s = 'ab'; for (;;) s = [s, s].join('')",
  "let s = 'ab'; for (;;) s = s.replace(/^/, s)",
  "let s = 'ab'; for (;;) s = s.replaceAll('a', s)",
  "'x'.repeat(1e9)",
  "'x'.padStart(1e9)",
  "'x'.padEnd(2 ** 31, 'abc')",
  "new Array(1e9)",
  "new Array(4e9).fill(1)",
  "Array(1e8).join('x')",
  "[].length = 4294967295; const a = []; a.length = 4294967295",
  "const a = []; a[4294967290] = 1",
  "Array.from({length: 1e9})",
  "Array.from({length: 1e9}, x => x)",
  "let a = [1]; for (;;) a = a.concat(a)",
  "let a = [1]; for (;;) a = [...a, ...a]",
  "let a = [1]; for (;;) a.push(...a)",
  "let a = [1]; for (;;) a.splice(0, 0, ...a)",
  "let a = [1]; for (;;) a.unshift(...a)",
  "let a = [1]; for (;;) a = a.flatMap(x => [x, x])",
  "const a = [1]; a.forEach(function f() { a.push(1); a.forEach(f) })",
  "let o = {}; for (;;) o = {o, p: o}",
  "const o = {}; for (let i = 0; ; i++) o['k' + i] = i",
  "const m = new Map(); for (let i = 0; ; i++) m.set(i, 'x')",
  "const m = new Map([[1, 1]]); m.forEach(function f(v, k) { m.set(k + 1, 1) }); m.size",
  "const s = new Set([1]); s.forEach(x => s.add(x + 1))",
  "let a = [1]; for (let i = 0; i < 60; i++) a = [a, a]; String(a)",
  "let a = [1]; for (let i = 0; i < 60; i++) a = [a, a]; JSON.stringify(a)",
  "let a = [1]; for (let i = 0; i < 60; i++) a = [a, a]; a.flat(Infinity)",
  "let a = [1]; for (let i = 0; i < 60; i++) a = [a, a]; this.a = a",
  "let a = [1]; for (let i = 0; i < 60; i++) a = {x: a, y: a}; this.a = a",
  "let a = [1]; for (let i = 0; i < 60; i++) a = [a, a]; throw a",
  "let a = [1]; for (let i = 0; i < 60; i++) a = [a, a]; put('x', {a})",
  "let a = [1]; for (let i = 0; i < 60; i++) a = [a, a]; output(a)",
  "let a = []; for (let i = 0; i < 5000; i++) a = [a]; this.a = a",
  "let a = []; for (let i = 0; i < 5000; i++) a = [a]; JSON.stringify(a)",
  "let a = []; for (let i = 0; i < 5000; i++) a = [a]; '' + a",
  "JSON.parse('['.repeat(9000) + ']'.repeat(9000))",
  "JSON.stringify('x'.repeat(1e6).split(''), null, '          '.repeat(10)); for (;;);",
  "/(a+)+$/.test('a'.repeat(30000) + 'b'); /((a*)*)*$/.test('a'.repeat(30000) + 'b'); for (;;);",
  "/(x+x+)+y/.test('x'.repeat(1e6))",
  "/^(([a-z])+.)+[A-Z]([a-z])+$/.test('a'.repeat(1e6))",
  "'a'.repeat(1e6).replace(/a*?$/g, 'x'); for (;;);",
  "new RegExp('(a?){2000}a{2000}').test('a'.repeat(20000)); for (;;);",
  "for (;;) regex('a'.repeat(1e6), '(a+)+b')",
  "for (;;) [3, 2, 1].sort()",
  "const a = Array.from({length: 1e5}, (x, i) => -i); for (;;) a.sort((x, y) => x - y)",
  "const s = 'x'.repeat(1e6); for (;;) s.split('')",
  "const s = 'x'.repeat(1e6); for (;;) s.toUpperCase()",
  "const s = 'x'.repeat(1e6); for (;;) s === s + ''",
  "const s = 'x'.repeat(1e6); const o = {}; for (;;) o[s] === 1",
  "const s = 'é'.repeat(1e5); for (;;) s.normalize('NFD')",
  "const s = 'x'.repeat(1e6); for (;;) encodeURIComponent(s)",
  "const s = '€'.repeat(1e6); for (;;) escape(s)",
  "const s = '%u20AC'.repeat(1e5); for (;;) unescape(s)",
  "const a = Array.from({length: 1e5}); for (;;) a.indexOf(1)",
  "const a = Array.from({length: 1e5}); for (;;) a.shift()",
  "const a = Array.from({length: 1e5}); for (;;) a.slice().reverse()",
  "const a = Array.from({length: 1e5}); for (;;) [...a]",
  "for (;;) Object.keys(this)",
  "for (;;) load('users/1')",
  "for (;;) new Date().toLocaleString()",
  "for (;;) new RegExp('a')",
  "const s = 'x'.repeat(1e6); for (;;) s.includes('xxxxxy')",
  "const s = 'x'.repeat(1e5); for (;;) s.lastIndexOf('xxxxxxxxy')",
  "const s = 'x'.repeat(1e6); s.lastIndexOf('y' + 'x'.repeat(5e5))",
  "const s = 'x'.repeat(1e6), t = 'x'.repeat(1e6); for (;;) s == t",
  "const s = 'x'.repeat(1e6); for (;;) s.startsWith(s)",
  "const s = '1'.repeat(1e5); for (;;) +s",
  "const s = 'x'.repeat(1e6); for (;;) [...s]",
  "'a,'.repeat(8e6).split(',')",
  "'a,'.repeat(4e6).replaceAll(',', 'b')",
  "'a,'.repeat(4e6).replace(/,/g, 'b')",
  "JSON.parse('[' + '1,'.repeat(8e6) + '1]')",
  "const a = []; for (let i = 0; i < 3000; i++) a.push({a: i}); const t = JSON.stringify(a); for (;;) JSON.parse(t)",
  "class A { constructor() { new A() } } new A()",
  "function F() { return new F() } new F()",
  "const f = function () { f.apply(this, arguments) }; f()",
  `const f = () => ${"!".repeat(280)}f(); f()`,
  `const f = x => ${"[".repeat(140)}[1].map(f)${"]".repeat(140)}; f()`,
  `const f = x => ${"1 + (".repeat(130)}'a'.replace('a', f)${")".repeat(130)}; f()`,
  `const o = {toString() { return ${"(".repeat(200)}'' + o${")".repeat(200)} }}; '' + o`,
  "let f = x => x; for (let i = 0; i < 9000; i++) f = f.bind(null); f()",
  "let f = x => x; for (let i = 0; i < 200; i++) { const g = f; f = x => g(x) } f()",
];

describe("terminates", () => {
  for (const source of bombs) {
    it(source, () => {
      const start = performance.now();
      const ending = attempt(source);
      const codes = ["script-failed", "script-recursion", "too-large"];
      expect(codes).toContain(ending.code);
      // Generous, because the machine may be busy. The account itself is asserted below.
      expect(performance.now() - start).toBeLessThan(2_000);
    });
  }
  it("spends no more than its account when it succeeds", () => {
    const { outcome } = attempt("let n = 0; for (let i = 0; i < 3000; i++) n += i; this.n = n");
    const run = outcome?.run;
    expect(run?.workLeft).toBeGreaterThan(0);
    expect(run?.stepsLeft).toBeGreaterThan(0);
    expect(run?.bytesLeft).toBeLessThanOrEqual(defaultLimits.bytesMax);
    expect(run?.depthLeft).toBe(defaultLimits.depthMax);
  });
  it("is charged for a host operation before it runs", () => {
    // The host would take seconds for each of these, and no time if the run stops before.
    const limits = { ...liftedLimits, workMax: 1_000_000 };
    for (const source of [
      "'x'.repeat(1e6).lastIndexOf('y' + 'x'.repeat(5e5))",
      "'x'.repeat(3e6).includes('xxxxxy')",
      "JSON.parse('[' + '1,'.repeat(1e6) + '1]')",
    ]) {
      expect([source, attempt(source, limits).code]).toEqual([source, "script-failed"]);
    }
  });
  it("restores the depth when an error was caught", () => {
    const { outcome } = attempt(
      "const f = n => { if (n === 0) throw 1; f(n - 1) }; for (let i = 0; i < 50; i++) try { f(20) } catch {} ",
    );
    expect(outcome?.run.depthLeft).toBe(defaultLimits.depthMax);
  });
  it("limits lifted runs too", () => {
    const limits = { ...liftedLimits, workMax: 2_000_000, bytesMax: 8_000_000 };
    expect(attempt("let s = 'x'; for (;;) s += s", limits).code).toBe("script-failed");
    expect(attempt("const a = []; for (;;) a.push('x')", limits).code).toBe("script-failed");
    expect(attempt("for (;;);", limits).code).toBe("script-failed");
  });
});

describe("the parser", () => {
  const deep = (open: string, inner: string, close: string, count: number): string =>
    open.repeat(count) + inner + close.repeat(count);
  for (const [name, source] of [
    ["parentheses", deep("(", "1", ")", 50_000)],
    ["arrays", deep("[", "1", "]", 20_000)],
    ["blocks", deep("{", "", "}", 20_000)],
    ["sums", `this.a = 1${" + 1".repeat(20_000)}`],
    ["members", `this${".a".repeat(20_000)}`],
    ["functions", deep("(() => ", "1", ")()", 500)],
    ["ifs", `${"if (1) ".repeat(20_000)};`],
    ["templates", deep("`$" + "{", "1", "}`", 5_000)],
    ["unary", `${"!".repeat(20_000)}1`],
    ["length", " ".repeat(2_000_000)],
  ] as const) {
    it(`rejects too many ${name}`, () => {
      expect(attempt(source).code).toBe("script-syntax");
    });
  }
  it("rejects missing and duplicate labels", () => {
    expect(attempt("break nope").code).toBe("script-syntax");
    expect(attempt("a: a: for (;;);").code).toBe("script-syntax");
  });
});
