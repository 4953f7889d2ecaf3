import { describe, expect, it } from "vitest";
import { analyzeQuery } from "../../../../engine/queries/analysis/analyze.ts";
import type { RequestPaging } from "../../../../engine/queries/analysis/analyze-paging.ts";
import { parseQuery } from "../../../../engine/queries/syntax/parser.ts";

function pageOf(text: string, paging: RequestPaging) {
  return analyzeQuery(text, parseQuery(text), { kind: "read", parameters: null, paging }).paging;
}

describe("analyzePaging", () => {
  it("uses the larger start and the smaller size of text and request", () => {
    expect(pageOf("from A limit 5 offset 1", { start: 2, pageSize: 9 })).toEqual({
      skip: 2,
      take: 5,
      filterTake: null,
      inText: { skip: 1, take: 5 },
    });
    expect(pageOf("from A limit 1, 5", { start: 0, pageSize: 1 })).toMatchObject({
      skip: 1,
      take: 1,
    });
  });

  it("reports whether the text has paging", () => {
    expect(pageOf("from A", { pageSize: 3 })).toMatchObject({ take: 3, inText: null });
    expect(pageOf("from A limit null", {})).toMatchObject({ inText: { skip: 0, take: null } });
  });

  it("rejects negative numbers in the request", () => {
    expect(() => pageOf("from A", { start: -1 })).toThrow("Start cannot be negative, but was -1.");
    expect(() => pageOf("from A", { pageSize: -1 })).toThrow("PageSize cannot be negative");
  });
});
