/** Values are read from JSON text as by JSON.parse. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  isDoubleSpelling,
  numberOf,
  treeDepthMax,
  valueOfText,
  viewOf,
} from "../../../../engine/scripting/values/text-source.ts";
import { runScript } from "../run-script.ts";

describe("a number of a text", () => {
  const read = (text: string) => {
    const bytes = Buffer.from(`[${text}]`);
    return numberOf(bytes, 1, bytes.length - 1);
  };

  test("is the same double as in JavaScript", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        const text = JSON.stringify(value);
        expect(read(text)).toBe(JSON.parse(text));
      }),
    );
    const spelled = fc.stringMatching(/^-?(0|[1-9]\d{0,18})(\.\d{1,18})?([eE][-+]?\d{1,2})?$/);
    fc.assert(
      fc.property(spelled, (text) => {
        expect(read(text)).toBe(Number(text));
      }),
    );
  });

  test("is formatted as a double if it has a point or an exponent", () => {
    for (const [text, isDouble] of [
      ["1", false],
      ["-10", false],
      ["1.0", true],
      ["1e5", true],
      ["1E5", true],
    ] as const) {
      expect(isDoubleSpelling(Buffer.from(text), 0, text.length)).toBe(isDouble);
    }
  });
});

test("a value that a script reads and stores again is unchanged", () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 4 }), (text) => {
      const body = `{"value":${text}}`;
      const script = "this.again = JSON.parse(JSON.stringify(this.value))";
      expect(runScript(script, { body })["again"]).toEqual(JSON.parse(text));
    }),
  );
});

test("only a text that is nested too deeply is rejected", () => {
  const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;
  expect(() => valueOfText(nested(treeDepthMax + 2))).toThrow(/nest|deep/i);
  expect(valueOfText(nested(10))).toBeDefined();
  for (const [text, value] of [
    ["12", 12],
    ['"a\\u0062"', "ab"],
    ["true", true],
    ["null", null],
  ] as const) {
    expect(valueOfText(text)).toBe(value);
  }
});

test("the view of a buffer begins where the buffer does", () => {
  const whole = Buffer.from([1, 2, 3, 4]);
  const part = whole.subarray(2);
  expect(viewOf(part).getUint8(0)).toBe(3);
  expect(viewOf(part)).toBe(viewOf(part));
  expect(viewOf(whole).byteLength).toBe(4);
});
