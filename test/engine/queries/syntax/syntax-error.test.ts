import { describe, expect, it } from "vitest";
import { placeOf, syntaxError, wordAt } from "../../../../engine/queries/syntax/syntax-error.ts";

describe("placeOf", () => {
  it("counts from one, and a line feed as the first column of its line", () => {
    expect(placeOf("ab\ncd", 1, [])).toEqual({ line: 1, column: 2 });
    expect(placeOf("ab\ncd", 3, [])).toEqual({ line: 2, column: 2 });
  });

  it("counts a comment as one column and the line feeds in it", () => {
    const spans = [{ start: 1, end: 9, kind: "comment" }] as const;
    expect(placeOf("a/* \n */ b", 9, spans)).toEqual({ line: 2, column: 3 });
  });

  it("counts a script as one column and no line", () => {
    expect(placeOf("{\n} b", 4, [{ start: 0, end: 3, kind: "script" }])).toEqual({
      line: 1,
      column: 3,
    });
  });

  it("counts a string character by character and starts no line in it", () => {
    expect(placeOf("'\n' b", 4, [{ start: 0, end: 3, kind: "string" }])).toEqual({
      line: 1,
      column: 5,
    });
  });
});

describe("syntaxError", () => {
  it("quotes the word up to white space, or reports the end of the query", () => {
    expect(wordAt("ab(c) d", 0)).toBe("ab(c)");
    const place = { line: 1, column: 2 };
    expect(syntaxError("No.", place, "q x", "x").message).toBe("1:2 No. but got: x\nQuery: \nq x");
    expect(syntaxError("No.", place, "q", "").message).toBe(
      "1:2 No. but got to the end of the query\nQuery: \nq",
    );
  });
});
