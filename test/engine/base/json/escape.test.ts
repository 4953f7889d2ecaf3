import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { quoteString, rewriteEscape } from "../../../../engine/base/json/escape.ts";

describe("quoteString", () => {
  it("is read back by JSON.parse, lone surrogates as U+FFFD", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const whole = text.replace(/\p{Surrogate}/gu, "\ufffd");
        expect(JSON.parse(quoteString(text).toString("utf8"))).toBe(whole);
      }),
    );
  });

  it("escapes quotes, backslashes and control characters, and nothing else", () => {
    expect(quoteString('"\\/\u0000\b\t\n\f\r\u001f\u007f\u2028é😀').toString("utf8")).toBe(
      '"\\"\\\\/\\u0000\\b\\t\\n\\f\\r\\u001F\u007f\u2028é😀"',
    );
  });
});

describe("rewriteEscape", () => {
  it("never writes more bytes than it reads", () => {
    const target = Buffer.alloc(16);
    for (let unit = 0; unit < 0x10000; unit++) {
      const text = Buffer.from(`\\u${unit.toString(16).padStart(4, "0")}`);
      const both = rewriteEscape(text, 0, text.length, target, 0);
      if (both >> 3 !== 6 || (both & 7) > 6) expect.fail(`${unit}`);
      const read = JSON.parse(`"${target.toString("utf8", 0, both & 7)}"`);
      const isHalf = unit >= 0xd800 && unit <= 0xdfff;
      if (read !== (isHalf ? "\ufffd" : String.fromCharCode(unit))) expect.fail(`${unit}`);
    }
  });

  it("does not look for the second half of a pair past the end", () => {
    const text = Buffer.from("\\ud83d\\ude00");
    const target = Buffer.alloc(16);
    for (let end = 6; end < 12; end++) {
      const both = rewriteEscape(text, 0, end, target, 0);
      expect(both >> 3).toBe(6);
      expect(target.toString("utf8", 0, both & 7)).toBe("\ufffd");
    }
    expect(rewriteEscape(text, 0, 12, target, 0) >> 3).toBe(12);
  });
});
