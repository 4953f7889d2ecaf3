import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { finish, WorkBudget } from "../../../../engine/base/scheduling/work-budget.ts";
import {
  jsonText,
  number,
  parseQueryParameters,
  readQueryParameters,
} from "../../../../engine/queries/analysis/query-parameters.ts";

describe("parseQueryParameters", () => {
  it("keeps 64-bit integers exact and distinguishes them from doubles", () => {
    const json = '{"a": 9223372036854775807, "b": 1.0, "c": 9223372036854775808, "d": -1e3}';
    const { values, text } = parseQueryParameters(json);
    expect(values.get("a")).toEqual({ type: "long", value: 2n ** 63n - 1n });
    expect(values.get("b")).toEqual({ type: "double", value: 1 });
    expect(values.get("c")).toEqual({ type: "double", value: 2 ** 63 });
    expect(values.get("d")).toEqual({ type: "double", value: -1000, text: "-1e3" });
    expect(text).toContain('"a":9223372036854775807,"b":1.0,');
  });

  it("is not confused by numbers, quotes and names inside strings", () => {
    const json = '{"1": "n2", "\\"3\\"": "\\\\", "__proto__": ["s", null, true, {"x": -0.5}]}';
    const { values, text } = parseQueryParameters(json);
    expect(values.get("1")).toEqual({ type: "string", value: "n2" });
    expect(JSON.parse(text)).toEqual(JSON.parse(json));
  });

  it("reads any JSON object as JSON.parse does", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (object) => {
        const json = JSON.stringify(object);
        expect(JSON.parse(parseQueryParameters(json).text)).toEqual(JSON.parse(json));
      }),
    );
  });

  it("rejects deeply nested lists, and shows only the beginning of long ones", () => {
    const deep = `{"a":${"[".repeat(600)}${"]".repeat(600)}}`;
    expect(() => parseQueryParameters(deep)).toThrow(/nested more than 512 deep.*limit/);
    const long = parseQueryParameters(JSON.stringify({ a: "x".repeat(100_000) }));
    expect(long.shown.length).toBeLessThan(20_000);
    expect(long.text.length).toBeGreaterThan(100_000);
  });

  it("charges for values, and reserves memory for many of them", () => {
    const budget = new WorkBudget(undefined, 100_000);
    const json = JSON.stringify({ a: Array.from({ length: 20_000 }, (_, i) => i) });
    expect(() => finish(readQueryParameters(json, budget))).toThrow("Query.MaxWorkInMillions");
    expect(budget.heldBytes).toBeGreaterThan(500_000);
    budget.close();
  });

  it.each([
    "",
    "{",
    '{"a":01}',
    '{"a":1.}',
    "{a:1}",
    '{"a":[1,]}',
    '{"a":1,}',
    '{"a" 1}',
    '{"a":"\n"}',
    '{"a":"\\x"}',
    '{"a":tru}',
    '{"a":1}}',
    '{"a":[1}',
  ])("rejects %s", (json) => {
    expect(() => parseQueryParameters(json)).toThrow("The parameters of the query are not JSON.");
  });

  it("rejects parameters that are not an object", () => {
    expect(() => parseQueryParameters("[1]")).toThrow("are not an object");
  });
});

describe("number", () => {
  it("round-trips every long", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (value) => {
        expect(jsonText(number(value.toString()))).toBe(value.toString());
      }),
    );
  });
});
