import { describe, expect, it } from "vitest";
import { FreeBudget, finish } from "../../../../engine/base/scheduling/work-budget.ts";
import {
  findAnalyzer,
  lowerInvariant,
  parseSearchText,
  standardAnalyzer,
} from "../../../../engine/indexing/text/analyzer.ts";

function wordsOf(text: string): string[] {
  const words: string[] = [];
  standardAnalyzer(text, (word) => words.push(word));
  return words;
}

describe("the standard analyzer", () => {
  // RavenDB 7.2.7 shows these index entries.
  it.each([
    ["it's what's O'Neil's dogs' rock'n'roll", ["it", "what", "o'neil", "dogs", "rock'n'roll"]],
    ["a.b.c U.S.A. I.B.M AT&T me@x", ["a.b.c", "usa", "i.b.m", "at&t", "me@x"]],
    ["foo@bar.com foo.bar@x-y.com", ["foo@bar.com", "foo.bar@x-y.com"]],
    [
      "http://ravendb.net/docs/5.4?x=1&y=2",
      ["http", "ravendb.net", "docs/5.4", "x", "1", "y", "2"],
    ],
    ["foo_bar foo-bar x_1 y-2 a/b 3/4", ["foo", "bar", "foo", "bar", "x_1", "y-2", "b", "3/4"]],
    ["2024-01-31 10:15 1,000.50 1.2.3", ["2024-01-31", "10", "15", "1,000.50", "1.2.3"]],
    ["C# C++ F# .NET node.js 1.a", ["c", "c", "f", "net", "node.js", "1.a"]],
    ["日本語 한국어 สวัสดี", ["日", "本", "語", "한국어", "สวัสดี"]],
    ["ΟΔΟΣ Straße ǅ", ["οδοσ", "straße", "ǆ"]],
    ["hello...world end. x.y. $5 50% -5 +7", ["hello", "world", "end", "xy", "5", "50", "5", "7"]],
    ["the not and THE a an IT s t can will", ["s", "t", "can"]],
    ["x²y ½ ①", ["x", "y"]],
    [`${"b".repeat(300)} zz`, ["zz"]],
  ])("splits %s", (text, words) => {
    expect(wordsOf(text)).toEqual(words);
  });

  it("limits the lookahead in a chain of words", () => {
    const text = Array.from({ length: 50_000 }, () => "ab").join("-");
    expect(wordsOf(text)).toHaveLength(50_000);
  });
});

describe("lowerInvariant", () => {
  it("folds each character separately, never into two", () => {
    expect(lowerInvariant("İSTANBUL ΟΔΟΣ ÅØ")).toBe("İstanbul οδοσ åø");
  });
});

describe("findAnalyzer", () => {
  it("finds analyzers by name, with or without a namespace", () => {
    expect(findAnalyzer("StandardAnalyzer")).toBe(standardAnalyzer);
    expect(findAnalyzer("Lucene.Net.Analysis.Standard.StandardAnalyzer")).toBe(standardAnalyzer);
    expect(findAnalyzer("nope")).toBeUndefined();
  });
});

function piecesOf(text: string) {
  return finish(parseSearchText(text, standardAnalyzer, new FreeBudget()));
}

describe("parseSearchText", () => {
  it("splits words, phrases and wildcards", () => {
    expect(piecesOf('Quick "brown Fox" qui* *ICK *row* the')).toEqual([
      { kind: "words", words: ["quick"] },
      { kind: "words", words: ["brown", "fox"] },
      { kind: "wildcard", text: "qui", startsOpen: false, endsOpen: true },
      { kind: "wildcard", text: "ick", startsOpen: true, endsOpen: false },
      { kind: "wildcard", text: "row", startsOpen: true, endsOpen: true },
    ]);
  });

  it("leaves stop words out of a phrase", () => {
    expect(piecesOf('"fox and hound"')).toEqual([{ kind: "words", words: ["fox", "hound"] }]);
  });
});
