import { describe, expect, it } from "vitest";
import { analyzeQuery } from "../../../../engine/queries/analysis/analyze.ts";
import { parseQueryParameters } from "../../../../engine/queries/analysis/query-parameters.ts";
import { parseQuery } from "../../../../engine/queries/syntax/parser.ts";
import { conditionText } from "../execution/summarize.ts";

function whereOf(condition: string, parameters = "{}"): string {
  const text = `from A where ${condition}`;
  const { where } = analyzeQuery(text, parseQuery(text), {
    kind: "read",
    parameters: parseQueryParameters(parameters),
  });
  return where === null ? "" : conditionText(where);
}

describe("analyzeCondition", () => {
  it.each([
    ["t >= 3 and t <= 7", "(between t 3 7)"],
    ["t < 7 and t > 3", "(between t 3 excluded 7 excluded)"],
    ["(t >= 3) and (t <= 7.5)", "(between t 3 7.5)"],
    ["t >= 3 and t <= 7 and b = 2", "(and (between t 3 7) (= b 2))"],
    ["exact(t >= 'c' and t <= 'p')", '(exact between t "c" "p")'],
    // Bounds of one field form a range only when both stand first and side by side:
    ["b = 2 and t >= 3 and t <= 7", "(and (= b 2) (>= t 3) (<= t 7))"],
    ["t >= 3 and b = 2 and t <= 7", "(and (>= t 3) (= b 2) (<= t 7))"],
    ["t >= 3 and (t <= 7 and b = 2)", "(and (>= t 3) (and (<= t 7) (= b 2)))"],
    ["t >= 3 and t >= 4", "(and (>= t 3) (>= t 4))"],
    ["t >= 3 or t <= 7", "(or (>= t 3) (<= t 7))"],
    ["t > 1 and t < 'x'", '(and (> t 1) (< t "x"))'],
    ["exact(t >= 'c') and exact(t <= 'p')", '(and (exact >= t "c") (exact <= t "p"))'],
  ])("reads %s", (condition, expected) => {
    expect(whereOf(condition)).toBe(expected);
  });

  it("spreads arrays in lists and keeps longs exact", () => {
    const parameters = '{"a": [9007199254740993, null], "b": 5}';
    expect(whereOf("t in ($a, $b)", parameters)).toBe("(in t [9007199254740993 null 5])");
  });

  it("no document equals an object, and every document differs from it", () => {
    expect(whereOf("t = $o", '{"o": {}}')).toBe("(none t)");
    expect(whereOf("t != $o", '{"o": {}}')).toBe("(not (none t))");
  });

  it("reads true as a condition that matches everything", () => {
    expect(whereOf("true")).toBe("");
  });
});
