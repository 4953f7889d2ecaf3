/** The expected fragments were measured on RavenDB 7.2.7. `[` and `]` are the tags. */
import { describe, expect, it } from "vitest";
import { EngineError } from "../../../../engine/base/errors.ts";
import { FreeBudget } from "../../../../engine/base/scheduling/work-budget.ts";
import { standardAnalyzer } from "../../../../engine/indexing/text/analyzer.ts";
import { analyzeQuery } from "../../../../engine/queries/analysis/analyze.ts";
import { parseQueryParameters } from "../../../../engine/queries/analysis/query-parameters.ts";
import { makeHighlighters } from "../../../../engine/queries/execution/highlight.ts";
import { parseQuery } from "../../../../engine/queries/syntax/parser.ts";

const brackets = { PreTags: ["["], PostTags: ["]"] };

/** Returns the fragments of texts in the field B; undefined without fragments. */
function fragments(
  where: string,
  [length, count]: readonly [number, number],
  texts: string | readonly string[],
  options: object | null = brackets,
): string[] | undefined {
  const last = options === null ? "" : ", $o";
  const text = `from index 'I' where ${where} include highlight(B, ${length}, ${count}${last})`;
  const parameters = parseQueryParameters(JSON.stringify({ o: options }));
  const query = analyzeQuery(text, parseQuery(text), { kind: "read", parameters });
  const [made] = makeHighlighters(query.include.highlights, query.where, new FreeBudget());
  return made?.fragments(typeof texts === "string" ? [texts] : texts);
}

describe("a fragment", () => {
  const long = "aaa raven bbbbbbbbbb ccc ddd eee fff";
  it.each([
    [8, "[ raven]"],
    [10, "[ raven] bbbbbbbbbb ccc ddd eee fff"],
    [20, "[ raven] bbbbbbbbbb ccc ddd eee fff"],
    [21, "[ raven] bbbbbbbbbb"],
    [24, "[ raven] bbbbbbbbbb"],
    [25, "[ raven] bbbbbbbbbb ccc"],
    [30, "[ raven] bbbbbbbbbb ccc ddd"],
    [40, "[ raven] bbbbbbbbbb ccc ddd eee"],
    [-1, "[ raven]"],
    [0, "[ raven]"],
  ])(
    "of length %i begins with the word and ends before a space, counted from the start of the text",
    (length, expected) => {
      expect(fragments("search(B, 'raven')", [length, 9], long)).toEqual([expected]);
    },
  );

  it("surrounds each matched word, in any letter case, up to the count", () => {
    const text = "one craven raven RAVEN, ravenous (raven) end";
    expect(fragments("search(B, 'Raven')", [24, 9], text)).toEqual([
      "[ craven] raven RAVEN,",
      "[ raven] RAVEN,",
      "[ RAVEN,] ravenous (raven) end",
      "[ ravenous]",
      "[ (raven)]",
    ]);
    expect(fragments("search(B, 'raven')", [24, 2], text)).toHaveLength(2);
    expect(fragments("search(B, 'raven')", [24, 0], text)).toEqual([]);
    expect(fragments("search(B, 'raven')", [100, 9], "ravenraven raven-raven")).toEqual([
      "[ravenraven] raven-raven",
      "[ raven-raven]",
    ]);
  });

  it("has words separated only by spaces, and no escapes", () => {
    expect(fragments("search(B, 'raven')", [20, 9], "x  raven\tnext\nline raven")).toEqual([
      "[ raven\tnext\nline] raven",
      "[ raven]",
    ]);
    const html = "<b>raven</b> & co: 42 raven-like birds";
    expect(fragments("search(B, 'raven')", [35, 1], html)).toEqual([
      "[<b>raven</b>] & co: 42 raven-like",
    ]);
  });

  it("belongs to one element of an array", () => {
    const texts = ["first raven here now", "second raven there too"];
    expect(fragments("search(B, 'raven')", [18, 9], texts)).toEqual([
      "[ raven] here",
      "[ raven] there too",
    ]);
  });

  it("matches the search text literally, not as a pattern", () => {
    expect(fragments("search(B, 'r.ven')", [20, 9], "raven")).toEqual([]);
    expect(fragments("search(B, '(a|b)-[z\\\\')", [20, 9], "x (a|b)-[z\\ y")).toEqual([
      "[ (a|b)-[z\\] y",
    ]);
    expect(fragments("search(B, '***')", [20, 9], "raven")).toEqual([]);
  });
});

describe("a query", () => {
  it("is rejected when its overlapping fragments are too long in total", () => {
    const text = "a ".repeat(500_000);
    expect(() => fragments("search(B, 'a')", [1_000_000, 1_000_000], text)).toThrow(
      /highlights of the query have more than \d+ characters/,
    );
    expect(fragments("search(B, 'a')", [0, 20], text)).toHaveLength(20);
  });

  it("scans a prefix of each text, which is shorter for more search texts", () => {
    const texts = [`${"x ".repeat(1000)}raven`, "fox"];
    const list = (count: number) => Array.from({ length: count }, (_, n) => `'w${n}'`).join();
    expect(fragments(`B in ('raven', 'fox', ${list(10)})`, [0, 9], texts)).toHaveLength(2);
    // 4 Mi code units for 1,024 values.
    const long = [`${"x ".repeat(3000)}raven`];
    expect(fragments(`B in ('raven', ${list(1100)})`, [0, 9], long)).toEqual([]);
  });
});

describe("the search text", () => {
  const text = "the quick raven fox jumps";
  it.each([
    ["search(B, 'rav*')", ["[ raven] fox jumps"]],
    ["search(B, '*ven')", ["[ raven] fox jumps"]],
    ["search(B, '*uic*')", ["[ quick] raven"]],
    ["startsWith(B, 'qui')", ["[ quick] raven"]],
    ["endsWith(B, 'ven')", ["[ raven] fox jumps"]],
    ["B = 'raven'", ["[ raven] fox jumps"]],
    ["B > 'q'", ["[ quick] raven"]],
    ["boost(search(B, 'raven'), 2)", ["[ raven] fox jumps"]],
    ["exact(B = 'raven')", ["[ raven] fox jumps"]],
    // A text of two words is searched unchanged.
    ["search(B, 'raven fox')", ["[ raven] fox jumps"]],
    ["search(B, 'fox raven')", []],
    ["search(B, '\"raven\"')", []],
    // The first condition counts, except for a list.
    ["search(B, 'quick') and search(B, 'fox')", ["[ quick] raven"]],
    ["search(B, 'none') or search(B, 'fox')", []],
    ["search(B, 'quick') and B in ('fox', 'raven')", ["[ fox]", "[ raven] fox jumps"]],
    ["B != 'none' and B = 'raven'", ["[ raven] fox jumps"]],
    ["search(B, 'raven') and not search(B, 'fox')", ["[ raven] fox jumps"]],
    ["B = 5", []],
    // Without a fragment, the field has no member in the reply.
    ["regex(B, '^rav')", undefined],
    ["exists(B)", undefined],
    ["search(C, 'raven')", undefined],
  ])("%s", (where, expected) => {
    expect(fragments(where, [16, 9], text)).toEqual(expected);
  });
});

describe("tags", () => {
  it("have a different color for each value of a list, and repeat after twenty", () => {
    const words = Array.from({ length: 22 }, (_, n) => `w${String.fromCharCode(97 + n)}`);
    const list = words.map((word) => `'${word}'`).join();
    const found = fragments(`B in (${list})`, [0, 100], words.join(" "), null) ?? [];
    expect(found[0]).toBe('<b style="background:yellow">wa</b>');
    expect(found[1]).toBe('<b style="background:lawngreen"> wb</b>');
    expect(found[19]).toBe('<b style="background:powderblue"> wt</b>');
    expect(found[20]).toBe('<b style="background:yellow"> wu</b>');
  });

  it("from the options are used cyclically", () => {
    const tags = (PreTags: string[], PostTags: string[]) =>
      fragments("B in ('fox', 'raven')", [0, 9], "raven fox", {
        preTags: PreTags,
        posttags: PostTags,
      });
    expect(tags(["1", "2"], ["/1", "/2"])).toEqual(["1 fox/1", "2raven/2"]);
    expect(tags(["1"], ["/1"])).toEqual(["1 fox/1", "1raven/1"]);
    expect(tags([], [])?.[1]).toBe('<b style="background:lawngreen">raven</b>');
  });
});

describe("options", () => {
  const refused = (options: object | null) => {
    try {
      fragments("search(B, 'raven')", [20, 1], "a raven", options);
    } catch (error) {
      return error instanceof EngineError ? `${error.code}: ${error.message}` : String(error);
    }
    return "accepted";
  };

  // The errors are those of RavenDB 7.2.7.
  it.each([
    { PreTags: ["[", "("], PostTags: ["]"] },
    { PreTags: ["["], PostTags: [] },
    { PreTags: ["["] },
    { PostTags: ["]"] },
  ])("require as many opening as closing tags: %o", (options) => {
    expect(refused(options)).toBe(
      "invalid-operation: Number of pre-tags and post-tags must match.",
    );
  });

  it.each([
    { PreTags: "[", PostTags: "]" },
    { PreTags: { a: 1 }, PostTags: ["]"] },
    { PreTags: ["["], PostTags: 5 },
    { GroupKey: ["a"] },
  ])("require tags as lists and the group key as text: %o", (options) => {
    expect(refused(options)).toMatch(
      /^invalid-operation: Could not convert document options to entity of type .*HighlightingOptions$/,
    );
  });

  it("may have other scalars, null or unknown members, and JSON text", () => {
    const found = (options: object) => fragments("search(B, 'raven')", [20, 1], "raven", options);
    expect(found({ PreTags: [1], PostTags: [2], Nope: { a: 1 } })).toEqual(["1raven2"]);
    expect(found({ PreTags: [null], PostTags: ["x"] })).toEqual(["ravenx"]);
    expect(found({ preTags: null, GroupKey: null })).toEqual([
      '<b style="background:yellow">raven</b>',
    ]);
    expect(includeText('\'{"PreTags":["["],"PostTags":["]"]}\'')).toEqual(["[raven]"]);
  });

  const includeText = (options: string, count = "1", parameters: object = {}) => {
    const text = `from index 'I' where B = 'raven' include highlight(B, 20, ${count}, ${options})`;
    const read = parseQueryParameters(JSON.stringify(parameters));
    const query = analyzeQuery(text, parseQuery(text), { kind: "read", parameters: read });
    const [made] = makeHighlighters(query.include.highlights, query.where, new FreeBudget());
    return made?.fragments(["raven"]);
  };

  it.each([
    ["$o", "1", { o: null }, "Parameter 'o' should contain JSON object."],
    ["$o", "1", { o: "{}" }, "Parameter 'o' should contain JSON object."],
    ["$o", "1", { o: [1] }, "Parameter 'o' should contain JSON object."],
    ["$o", "1", {}, "Parameter 'o' containing 'HighlightingOptions' was not present"],
    ["5", "1", {}, "HighlightingOptions can only be passed as JSON string or as a parameter"],
    ["'x'", "1", {}, "Expected the JSON text of an object"],
    ["''", "1", {}, "Buffer ended without reaching end of json content"],
    ["'{}'", "2147483648", {}, "FragmentCount needs to be a number, but was '2147483648'."],
  ])("%s with the count %s are rejected", (options, count, parameters, message) => {
    expect(() => includeText(options, count, parameters)).toThrow(message);
  });
});

describe("an index for Lucene", () => {
  const text = "Great camera, poor battery life. Battery drains overnight.";
  const session =
    "Itamar Syn-Hershko: Afraid of Map/Reduce? In this session, core RavenDB developer Itamar Syn-Hershko will walk";
  function found(where: string, length: number, count: number, of: string): string[] | undefined {
    const rql = `from index 'I' where ${where} include highlight(B, ${length}, ${count}, $o)`;
    const parameters = parseQueryParameters(
      JSON.stringify({ o: { PreTags: ["[", "{"], PostTags: ["]", "}"] } }),
    );
    const query = analyzeQuery(rql, parseQuery(rql), { kind: "read", parameters });
    const { include, where: condition } = query;
    const [made] = makeHighlighters(
      include.highlights,
      condition,
      new FreeBudget(),
      () => standardAnalyzer,
    );
    return made?.fragments([of]);
  }

  it.each([
    ["search(B, 'camera')", 20, 9, text, ["Great [camera], poor"]],
    ["search(B, 'poor batt*')", 99, 9, "poor battery. Battery", ["[poor] {battery}. {Battery}"]],
    [`search(B, '"battery life"')`, 99, 9, "a battery life", ["a [battery life]"]],
    ["search(B, 'poor') and not search(B, 'camera')", 99, 9, "camera poor", ["camera [poor]"]],
    ["search(C, 'x') or B = 'overnight'", 99, 9, "drains overnight.", ["drains {overnight}."]],
    ["search(B, 'usa a@b.org')", 99, 9, "Co's a@b.org U.S.A. x", ["Co's {a@b.org} [U.S.A.] x"]],
    ["search(B, 'co')", 99, 9, "the Co's end", ["the [Co's] end"]],
    ["B > 'a' and exists(B)", 99, 9, text, undefined],
  ] as const)("marks only the words of %s", (where, length, count, of, expected) => {
    expect(found(where, length, count, of)).toEqual(expected);
  });

  it("marks a word without the space before it and the comma after it", () => {
    expect(found("search(B, 'session')", 128, 2, session)?.[0]).toContain("[session],");
  });
});
