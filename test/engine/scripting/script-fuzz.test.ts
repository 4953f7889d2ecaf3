/** Generated programs, run as scripts and by the host, must give the same result. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { stringLengthMax } from "../../../engine/scripting/language/script-operators.ts";
import { liftedLimits } from "../../../engine/scripting/language/script-values.ts";
import { compileScript } from "../../../engine/scripting/script.ts";
import { ScriptDocument } from "../../../engine/scripting/values/script-document.ts";
import { stubHost } from "./stub-host.ts";

/** Generated programs may take longer than those of clients. */
const generous = { ...liftedLimits, workMax: 400_000_000, msMax: 60_000, bytesMax: 2 ** 29 };

/**
 * A program that builds a text of maximum length is stopped by its memory limit, because the
 * program could catch the error of a text that is too long, which the host does not have.
 */
const withinTexts = { ...generous, bytesMax: stringLengthMax / 4 };

/**
 * Runs a body that sets `out` to text as a script. Returns null if it was stopped because its texts
 * doubled in each round.
 */
function asScript(source: string): string | null {
  const document = ScriptDocument.fromText("{}", null, null);
  try {
    compileScript(`${source}\nthis.out = String(out)`, { kind: "patch" }).run({
      host: stubHost(),
      document,
      limits: withinTexts,
    });
  } catch (error) {
    if (/may make and store values/.test(String(error))) return null;
    throw error;
  }
  return (JSON.parse(document.bodyText()) as { out: string }).out;
}

/** Runs it on the host. The programs are generated here and use only variables and operators. */
function byHost(source: string): string {
  return String(new Function(`"use strict"; ${source}\nreturn String(out)`)());
}

const literal = fc.oneof(
  fc.integer({ min: -20, max: 20 }).map((value) => (value < 0 ? `(${value})` : String(value))),
  fc.double({ min: -100, max: 100, noNaN: true }).map((value) => `(${value.toFixed(3)})`),
  fc.constantFrom("'a'", "'12'", "''", "'b c'", "true", "false", "null", "undefined", "NaN"),
);
const name = fc.constantFrom("a", "b", "c");
const binary = fc.constantFrom(
  ..."+ - * / % < <= > >= == != === !== & | ^ << >> >>> && || ??".split(" "),
);

const { expression } = fc.letrec((tie) => ({
  expression: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    literal,
    name,
    fc
      .tuple(tie("expression"), binary, tie("expression"))
      .map(([left, operator, right]) => `((${left}) ${operator} (${right}))`),
    fc
      .tuple(fc.constantFrom("-", "+", "!", "~", "typeof ", "void "), tie("expression"))
      .map(([operator, value]) => `(${operator}(${value}))`),
    fc
      .tuple(tie("expression"), tie("expression"), tie("expression"))
      .map(([test, yes, no]) => `(${test} ? ${yes} : ${no})`),
    fc.array(tie("expression"), { maxLength: 3 }).map((items) => `[${items.join(", ")}]`),
    fc
      .tuple(tie("expression"), tie("expression"))
      .map(([x, y]) => `{p: ${x}, q: ${y}}.q`)
      .map((text) => `(${text})`),
    fc.tuple(name, tie("expression")).map(([target, value]) => `(${target} = ${value})`),
    fc.tuple(name, fc.constantFrom("++", "--")).map(([target, change]) => `(${target}${change})`),
    fc
      .tuple(name, fc.constantFrom("+=", "-=", "*=", "??=", "||=", "&&="), tie("expression"))
      .map(([target, operator, value]) => `(${target} ${operator} ${value})`),
    fc
      .tuple(tie("expression"), tie("expression"))
      .map(([x, y]) => `((x, y = ${y}) => [x, y])(${x})`),
    tie("expression").map((value) => `\`<\${${value}}>\``),
    tie("expression").map((value) => `String(${value}).slice(1).toUpperCase()`),
    tie("expression").map((value) => `[1, 2, 3].map(x => x + (${value})).join('|')`),
  ),
}));

const { block } = fc.letrec((tie) => ({
  statement: fc.oneof(
    { depthSize: "small" },
    fc.tuple(name, expression).map(([target, value]) => `${target} = ${value};`),
    fc
      .tuple(expression, tie("block"), tie("block"))
      .map(([test, yes, no]) => `if (${test}) {${yes}} else {${no}}`),
    fc
      .tuple(fc.integer({ min: 0, max: 4 }), tie("block"))
      .map(([count, body]) => `for (let i = 0; i < ${count}; i++) { c = i; ${body} }`),
    fc
      .tuple(fc.array(literal, { maxLength: 4 }), tie("block"))
      .map(([items, body]) => `for (const x of [${items.join()}]) { b = x; ${body} }`),
    fc
      .tuple(tie("block"), tie("block"), tie("block"))
      .map(([a, b, c]) => `try { ${a} throw a } catch (e) { b = e; ${b} } finally { ${c} }`),
    fc
      .tuple(expression, literal, tie("block"), tie("block"))
      .map(
        ([value, label, x, y]) => `switch (${value}) { case ${label}: ${x} break; default: ${y} }`,
      ),
    fc
      .tuple(fc.integer({ min: 1, max: 3 }), expression, tie("block"))
      .map(
        ([count, test, body]) =>
          `(() => { l: for (let i = 0; i < 3; i++) { for (let j = 0; j < ${count}; j++) { if (${test}) continue l; ${body} if (j > 1) break l } } })();`,
      ),
    fc
      .tuple(expression, expression)
      .map(
        ([x, y]) =>
          `{ let [d, ...r] = [${x}, ${y}, 3]; const {p = d, ...o} = {q: r.length}; a = [p, o.q].join() }`,
      ),
    expression.map(
      (value) =>
        `{ const fs = []; for (let k = 0; k < 3; k++) fs.push(() => k + String(${value})); a = fs.map(f => f()).join() }`,
    ),
  ),
  block: fc
    .array(tie("statement") as fc.Arbitrary<string>, { maxLength: 3 })
    .map((list) => list.join("\n")),
}));

const program = fc
  .tuple(
    literal,
    literal,
    literal,
    block as fc.Arbitrary<string>,
    expression as fc.Arbitrary<string>,
  )
  .map(
    ([a, b, c, body, last]) =>
      `let a = ${a}, b = ${b}, c = ${c};\n${body}\nconst out = [a, b, c, ${last}].join(';');`,
  );

describe("scripts", () => {
  it("compute the same as the host", () => {
    fc.assert(
      fc.property(program, (source) => {
        const found = asScript(source);
        fc.pre(found !== null);
        expect(found).toBe(byHost(source));
      }),
      { numRuns: 400 },
    );
  });
});

describe("documents", () => {
  const json = fc.jsonValue({ maxDepth: 4 });
  it("are returned unchanged if a script only reads them", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), json), (value) => {
        const text = JSON.stringify(value);
        const document = ScriptDocument.fromText(text, null, null);
        const source =
          "const walk = x => { if (typeof x === 'object') for (const k in x) walk(x[k]) }; walk(this)";
        compileScript(source, { kind: "patch" }).run({
          host: stubHost(),
          document,
          limits: generous,
        });
        expect(document.bodyText()).toBe(text);
      }),
      { numRuns: 200 },
    );
  });
  it("have the numbers that their text contains", () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ noNaN: true, noDefaultInfinity: true })),
        fc.nat(9),
        (list, digits) => {
          const texts = list.map((value) =>
            Math.abs(value) < 1e15 ? value.toFixed(digits) : String(value),
          );
          const document = ScriptDocument.fromText(`{"a":[${texts.join()}]}`, null, null);
          const script = compileScript("this.a = this.a.map(x => String(x))", { kind: "patch" });
          script.run({ host: stubHost(), document, limits: generous });
          expect(JSON.parse(document.bodyText())).toEqual({
            a: texts.map((text) => String(Number(text))),
          });
        },
      ),
      { numRuns: 500 },
    );
  });
  it("contain the values stored by a script", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), json), json, (value, created) => {
        const document = ScriptDocument.fromText(JSON.stringify(value), null, null);
        const source = `this['new one'] = ${JSON.stringify(created)}; for (const k in this) { const v = this[k]; delete this[k]; this[k] = v }`;
        compileScript(source, { kind: "patch" }).run({
          host: stubHost(),
          document,
          limits: generous,
        });
        const expected: Record<string, unknown> = { ...value, "new one": created };
        expect(normal(JSON.parse(document.bodyText()))).toEqual(normal(expected));
      }),
      { numRuns: 200 },
    );
  });
});

/** Scripts store -0 as 0. */
function normal(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (_key, item: unknown) => (item === 0 ? 0 : item));
}
