/** Lossless JSON: parsing and printing preserves the text, and errors have positions. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { JsonError, memberOf, parseSource, printSource } from "../../../studio/json/json-source.ts";

const compact = (source: string) => printSource(parseSource(source), 0);

describe("parsed and printed JSON", () => {
  test("keeps the digits of numbers and the order of members", () => {
    const source = '{"b":12345678901234567890.10,"a":1e400,"1":-0.0,"0":[1.50,{}]}';
    expect(compact(source)).toBe(source);
  });

  test("has the same value as before", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        expect(JSON.parse(compact(text))).toEqual(JSON.parse(text));
        expect(compact(printSource(parseSource(text), 4))).toBe(compact(text));
      }),
    );
  });

  test("is indented in the studio's format", () => {
    expect(printSource(parseSource('{"a":[1,{"b":null}],"c":{},"d":[]}'))).toBe(
      '{\n    "a": [\n        1,\n        {\n            "b": null\n        }\n    ],\n    "c": {},\n    "d": []\n}',
    );
  });

  test("has members that can be found", () => {
    const node = parseSource('{"Results":[{"a":"x"}]}');
    expect(memberOf(node, "Results")).toHaveLength(1);
    expect(memberOf(node, "Other")).toBeUndefined();
    expect(memberOf([], "Results")).toBeUndefined();
  });
});

describe("an error", () => {
  test.each([
    ['{"a":1,}', 7, "Expected a quoted name, but found }"],
    ['{"a" 1}', 5, "Expected a colon, but found 1"],
    ['{"a":1 "b":2}', 7, "Expected a comma or }, but found a quote"],
    ["[1,2", 4, "Expected a comma or ], but the text ends"],
    ["", 0, "Expected a value, but the text ends"],
    ["nul", 0, "Expected a value, but found n"],
    ["{} x", 3, "Expected the end, but found x"],
    ['["abc', 1, "The string is not terminated, or contains a character that must be escaped"],
    ['["\t"]', 1, "The string is not terminated, or contains a character that must be escaped"],
    ["01", 1, "Expected the end, but found 1"],
  ])("in %j is told with its place", (source, at, message) => {
    expect(() => parseSource(source)).toThrow(new JsonError(message, at));
    try {
      parseSource(source);
    } catch (error) {
      expect((error as JsonError).at).toBe(at);
    }
  });

  test("is found wherever the host finds one", () => {
    const nearly = fc
      .tuple(fc.jsonValue(), fc.nat(), fc.constantFrom(...'{}[],:"0x '))
      .map(([value, place, character]) => {
        const text = JSON.stringify(value);
        const at = place % (text.length + 1);
        return text.slice(0, at) + character + text.slice(at);
      });
    const isValid = (read: () => unknown) => {
      try {
        read();
        return true;
      } catch {
        return false;
      }
    };
    fc.assert(
      fc.property(nearly, (text) => {
        expect(isValid(() => parseSource(text))).toBe(isValid(() => JSON.parse(text)));
      }),
    );
  });
});
