/** String methods behave like those of JavaScript. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { javaScriptValue, scriptValue } from "../run-script.ts";

const same = (expression: string, args: object) => {
  expect(scriptValue(expression, args), expression).toEqual(javaScriptValue(expression, args));
};

const text = fc.oneof(fc.string({ maxLength: 12 }), fc.stringMatching(/^[aAbB ,é😀]{0,12}$/u));
const whole = fc.integer({ min: -5, max: 15 });

describe("a string method returns the same as JavaScript's:", () => {
  test.each(["toLowerCase()", "toUpperCase()", "trim()", "trimStart()", "trimEnd()", "length"])(
    "%s",
    (call) => fc.assert(fc.property(text, (s) => same(`args.s.${call}`, { s }))),
  );

  test.each(["charAt", "charCodeAt", "codePointAt", "substring", "slice", "substr", "at"])(
    "%s(n)",
    (name) =>
      fc.assert(fc.property(text, whole, (s, n) => same(`args.s.${name}(args.n)`, { s, n }))),
  );

  test.each(["substring", "slice", "substr"])("%s(n, m)", (name) =>
    fc.assert(
      fc.property(text, whole, whole, (s, n, m) =>
        same(`args.s.${name}(args.n, args.m)`, { s, n, m }),
      ),
    ),
  );

  test.each(["indexOf", "lastIndexOf", "includes", "startsWith", "endsWith", "split", "concat"])(
    "%s(text)",
    (name) =>
      fc.assert(fc.property(text, text, (s, t) => same(`args.s.${name}(args.t)`, { s, t }))),
  );

  test.each(["padStart", "padEnd"])("%s(n, text)", (name) =>
    fc.assert(
      fc.property(text, whole, text, (s, n, t) =>
        same(`args.s.${name}(args.n, args.t)`, { s, n, t }),
      ),
    ),
  );

  test("repeat(n), replace(text, text), and those with regular expressions", () => {
    fc.assert(
      fc.property(text, text, fc.nat(4), (s, t, n) => {
        same("args.s.repeat(args.n)", { s, n });
        same("args.s.replace(args.t, 'x')", { s, t });
        same("args.s.replace(/[ab]/gi, c => c + c)", { s });
        same("args.s.split(/[ ,]/)", { s });
        same("args.s.match(/a+/g)", { s });
        same("args.s.search(/b/)", { s });
      }),
    );
  });
});

test("a string beyond the length limit fails before it is built", () => {
  expect(scriptValue("'x'.repeat(1e9)")).toBe("fails");
  expect(scriptValue("'x'.padEnd(1e9, 'y')")).toBe("fails");
});
