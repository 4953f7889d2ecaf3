/** The C# parser: operator precedence and the positions of syntax errors. */
import { describe, expect, test } from "vitest";
import { EngineError } from "../../../../engine/base/errors.ts";
import { parseCSharp } from "../../../../engine/indexing/csharp/csharp-parser.ts";
import type { Expression } from "../../../../engine/indexing/csharp/csharp-tree.ts";

/** The tree without offsets, which only messages need. */
function treeOf(text: string): unknown {
  return JSON.parse(
    JSON.stringify(parseCSharp(text), (key, value) => (key === "at" ? undefined : value)),
  );
}

const sameTree = (text: string, inParentheses: string) =>
  expect(treeOf(text), text).toEqual(treeOf(inParentheses));

describe("operators of C#", () => {
  test.each([
    ["a + b * c", "a + (b * c)"],
    ["a - b - c", "(a - b) - c"],
    ["a || b && c", "a || (b && c)"],
    ["a == b && c < d", "(a == b) && (c < d)"],
    ["a ?? b ?? c", "a ?? (b ?? c)"],
    ["a ? b : c ? d : e", "a ? b : (c ? d : e)"],
    ["!a.b && c", "(!(a.b)) && c"],
    ["-a * b", "(-a) * b"],
    ["x => x + 1", "x => (x + 1)"],
    ["a % b / c", "(a % b) / c"],
  ])("%s is %s", sameTree);
});

test("literals have the values of C#", () => {
  const literal = (text: string) => (parseCSharp(text) as Expression & { value?: unknown }).value;
  expect(literal("12")).toBe(12);
  expect(literal("1.5")).toBe(1.5);
  expect(literal('"a\\n\\"b"')).toBe('a\n"b');
  expect(literal('@"a\\b"')).toBe("a\\b");
  expect(literal("true")).toBe(true);
  expect(literal("null")).toBe(null);
});

test("a query has its clauses in the order of the text", () => {
  const tree = parseCSharp(
    "from a in docs.As let b = a.B where b > 1 select new { a.C, D = b }",
  ) as Extract<Expression, { kind: "query" }>;
  expect(tree.kind).toBe("query");
  expect(tree.clauses.map(({ kind }) => kind)).toEqual(["from", "let", "where", "select"]);
  const places = tree.clauses.map(({ at }) => at);
  expect(places).toEqual([...places].sort((left, right) => left - right));
});

describe("a syntax error", () => {
  test.each([
    ["a +", /\(1,\d+\)/],
    ["a\n  + )", /\(2,5\)/],
    ["from a in", /\(1,\d+\)/],
    ['"a', /\(1,1\)/],
    ["new { a b }", /\(1,\d+\)/],
    ["a.b(", /\(1,\d+\)/],
  ])("is reported with its position: %s", (text, place) => {
    expect(() => parseCSharp(text)).toThrow(EngineError);
    expect(() => parseCSharp(text)).toThrow(place);
  });
});
