/** Compiled expressions have the same values as in JavaScript. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { javaScriptValue, scriptValue } from "../run-script.ts";

const same = (expression: string, args?: object) => {
  expect(scriptValue(expression, args), expression).toEqual(javaScriptValue(expression, args));
};

const operators = ["+", "-", "*", "/", "%", "**", "<", "<=", ">", ">=", "==", "===", "!=", "!=="];
const moreOperators = ["&", "|", "^", "<<", ">>", ">>>", "&&", "||", "??"];
const operands = ["0", "-1.5", "7", "'7'", "'a'", "''", "true", "null", "undefined"];

describe("operators", () => {
  test.each([...operators, ...moreOperators])("%s of all pairs of types", (operator) => {
    for (const left of operands) {
      for (const right of operands) same(`(${left}) ${operator} (${right})`);
    }
  });

  test.each(["-", "+", "!", "~", "typeof ", "void "])("%s of all types", (operator) => {
    for (const operand of [...operands, "{}", "[]"]) same(`${operator}(${operand})`);
  });

  test("have JavaScript's precedence", () => {
    const atom = fc.constantFrom("1", "2", "3", "args.n", "(4)");
    const infix = fc.constantFrom("+", "-", "*", "%", "<", "==", "&&", "||", "&", "|", "<<");
    const expression = fc.array(fc.tuple(atom, infix), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(expression, (parts) => {
        same(`${parts.map(([value, between]) => `${value} ${between}`).join(" ")} 5`, { n: 6 });
      }),
    );
  });
});

describe("other expressions", () => {
  test.each([
    "args.a ? args.b : args.c",
    "args.list[1] + args.list.length",
    "args.none?.deep.er",
    "args.none?.[0]",
    "[...args.list, 4, ...[5]]",
    "({ a: 1, ['b' + 1]: 2, ...{ c: 3 } })",
    "((x, y = 2) => x + y)(1)",
    "(function sum(n) { return n === 0 ? 0 : n + sum(n - 1) })(10)",
    "((...all) => all.length)(1, 2, 3)",
    "(({ a, ...rest }) => [a, rest])({ a: 1, b: 2 })",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is a script
    "`${args.a} and ${args.list}`",
    "(x => (x += 2, x *= 3, x--, x))(1)",
    "(o => (delete o.a, o))({ a: 1, b: 2 })",
    "'a' in { a: 1 }",
    "args.a()",
    "new Date(0).getTime()",
    "typeof missing",
    "/b+/.test('abbc')",
  ])("%s", (expression) => same(expression, { a: 1, b: "two", c: null, list: [1, 2, 3] }));

  test("an assignment to a constant fails", () => {
    expect(scriptValue("(() => { const x = 1; x = 2; return x })()")).toBe("fails");
  });
});
