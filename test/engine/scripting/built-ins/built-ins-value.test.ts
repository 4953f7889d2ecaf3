/** The global objects of scripts, and methods of numbers and objects, behave as in JavaScript. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { javaScriptValue, scriptValue } from "../run-script.ts";

const same = (expression: string, args: object = {}) => {
  expect(scriptValue(expression, args), expression).toEqual(javaScriptValue(expression, args));
};

const number = fc.oneof(
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }).filter((value) => !Object.is(value, -0)),
);

describe("numbers", () => {
  test.each(["abs", "ceil", "floor", "round", "sign", "sqrt", "trunc"])("Math.%s", (name) =>
    fc.assert(fc.property(number, (n) => same(`Math.${name}(args.n) + 0`, { n }))),
  );

  test.each(["max", "min", "pow"])("Math.%s of two", (name) =>
    fc.assert(
      fc.property(number, number, (n, m) => same(`Math.${name}(args.n, args.m)`, { n, m })),
    ),
  );

  test("are formatted and classified as in JavaScript", () => {
    fc.assert(
      fc.property(fc.integer({ min: -1e9, max: 1e9 }), fc.nat(8), (n, digits) => {
        same("args.n.toString()", { n });
        same("args.n.toFixed(args.digits)", { n: n / 7, digits });
        same("Number.isInteger(args.n / 2)", { n });
        same("String(args.n)", { n });
      }),
    );
  });

  test.each(["'12'", "'1e3'", "' 7 '", "''", "'x'", "null", "true", "undefined", "'0x1f'"])(
    "are converted from %s",
    (value) => {
      for (const make of ["Number", "parseInt", "parseFloat", "isNaN", "Boolean", "String"]) {
        same(`${make}(${value})`);
      }
    },
  );
});

describe("objects", () => {
  test.each([
    "Object.keys(args)",
    "Object.values(args)",
    "Object.entries(args)",
    "Object.assign({}, args, { z: 1 })",
    "Array.isArray(args.list)",
    "Array.isArray(args)",
    "JSON.stringify(args)",
    "JSON.parse('{\"x\":[1,null]}')",
    "JSON.parse('{')",
  ])("%s", (expression) => same(expression, { b: 1, a: "x", list: [1, { c: null }] }));
});
