import { describe, expect, it } from "vitest";
import { FreeBudget } from "../../../engine/base/work-budget.ts";
import type { AnalyzedInclude, Condition } from "../../../engine/rql/analyzed-query.ts";
import { makeHighlighters } from "../../../engine/rql/highlight.ts";
import { parseQueryParameters } from "../../../engine/rql/query-parameters.ts";

const body = { name: "Body", path: [{ name: "Body", arrays: 0 }], isQuoted: false, alias: null };
const text =
  "The quick brown fox jumps over the lazy dog. A fox is red, and foxes run in the night while the moon is up.";

function search(words: string): Condition {
  return { kind: "search", field: body, text: words, isAll: false };
}

function fragments(
  where: Condition,
  length: number,
  count: number,
  sent: object | null = null,
): string[] {
  const given = sent === null ? null : parseQueryParameters(JSON.stringify({ sent }));
  const highlight: AnalyzedInclude["highlights"][number] = {
    field: body,
    fragmentLength: length,
    fragmentCount: count,
    options: given?.values.get("sent") ?? null,
  };
  const [made] = makeHighlighters([highlight], where, new FreeBudget());
  return made?.fragments(text) ?? [];
}

describe("highlights", () => {
  it("show words that were found, between whole words of their surroundings", () => {
    expect(fragments(search("fox"), 35, 1)).toEqual([
      'The quick brown <b style="background:yellow">fox</b> jumps over the',
    ]);
    for (const fragment of fragments(search("fox moon"), 35, 5, tags("[", "]"))) {
      expect(text).toContain(fragment.replace(/[[\]]/g, ""));
      expect(fragment.replace(/[[\]]/g, "").length).toBeLessThanOrEqual(35);
    }
  });

  it("are as many as asked for, and one for words that are near each other", () => {
    expect(fragments(search("fox"), 35, 5)).toHaveLength(2);
    expect(fragments(search("fox"), 200, 5)).toHaveLength(1);
    expect(fragments(search("fox"), 35, 0)).toEqual([]);
    expect(fragments(search("cat"), 35, 5)).toEqual([]);
  });

  it("know wildcards, equality, boosts and other parts of a condition", () => {
    const mark = tags("[", "]");
    expect(fragments(search("fo*"), 200, 1, mark)[0]).toContain("[foxes]");
    expect(fragments(search("*oon"), 20, 1, mark)[0]).toContain("[moon]");
    const value = { type: "string", value: "RED" } as const;
    const equal: Condition = {
      kind: "comparison",
      field: body,
      operator: "=",
      value,
      isExact: false,
    };
    const both: Condition = {
      kind: "or",
      operands: [{ kind: "boost", operand: search("dog"), factor: 2 }, equal],
    };
    const [found] = fragments(both, 200, 1, mark);
    expect(found).toContain("[dog]");
    expect(found).toContain("[red]");
  });

  it("use tags in turn for the words of a query", () => {
    const options = { PreTags: ["<1>", "<2>"], PostTags: ["</1>", "</2>"] };
    const [found] = fragments(search("fox dog"), 60, 1, options);
    expect(found).toContain("<1>fox</1>");
    expect(found).toContain("<2>dog</2>");
  });

  it("take words as they are, not as patterns", () => {
    expect(fragments(search("f.x"), 35, 1)).toEqual([]);
    expect(fragments(search("(f|d)o* [z-a"), 35, 1)).toEqual([]);
  });
});

function tags(pre: string, post: string): object {
  return { preTags: [pre], postTags: [post] };
}
