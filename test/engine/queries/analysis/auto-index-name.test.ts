import { describe, expect, it } from "vitest";
import type { DefinitionField } from "../../../../engine/indexing/definitions/index-definition.ts";
import {
  automaticIndexName,
  xxHash64,
} from "../../../../engine/queries/analysis/auto-index-name.ts";

const plain = {
  isQuoted: false,
  hasSearch: false,
  hasExact: false,
  hasHighlight: false,
  hasSuggest: false,
};
const field = (name: string, options: Partial<DefinitionField> = {}): DefinitionField => ({
  name,
  path: [{ name, arrays: 0 }],
  ...plain,
  ...options,
});
const nameOf = (...fields: DefinitionField[]) =>
  automaticIndexName({ collection: "Users", fields, groupBy: null });

describe("automaticIndexName", () => {
  it("sorts names with their options, ordinally", () => {
    expect(nameOf(field("b"), field("Z"), field("A", { hasSearch: true }), field("@c"))).toBe(
      "Auto/Users/By@cAndSearch(A)AndZAndb",
    );
  });

  it("includes a field once for each option", () => {
    const all = { hasSearch: true, hasHighlight: true, hasExact: true, hasSuggest: true };
    expect(nameOf(field("T", all))).toBe(
      "Auto/Users/BySearch(T)AndHighlight(T)AndExact(T)AndSuggest(T)",
    );
  });

  it("has names for no fields, quoted fields and all collections", () => {
    expect(nameOf()).toBe("Auto/Users/ById()");
    expect(nameOf(field("a b", { isQuoted: true, hasExact: true }))).toBe(
      "Auto/Users/ByExact('a b')",
    );
    expect(automaticIndexName({ collection: "@All_Docs", fields: [], groupBy: null })).toBe(
      "Auto/AllDocs/ById()",
    );
  });

  it("includes aggregates and keys of groups", () => {
    const keys = [
      { ...field("N"), isWholeArray: false },
      { ...field("L[].P"), isWholeArray: true },
    ];
    const sum = { kind: "sum", name: "A", path: [], isQuoted: false } as const;
    const count = { kind: "count", name: "Count" } as const;
    const groupBy = { keys, aggregates: [count, sum] };
    expect(automaticIndexName({ collection: "U", fields: [], groupBy })).toBe(
      "Auto/U/ByAAndCountReducedByArray(L[].P)AndN",
    );
    expect(
      automaticIndexName({ collection: "U", fields: [], groupBy: { keys, aggregates: [] } }),
    ).toBe("Auto/UReducedByArray(L[].P)AndN");
  });

  it("cuts a name longer than 256 characters and appends its hash, as RavenDB 7.2.7 does", () => {
    const long = automaticIndexName({
      collection: "Ua",
      fields: [field("A".repeat(150)), field("B".repeat(150))],
      groupBy: null,
    });
    expect(long).toBe(
      `Auto/Ua/By${"A".repeat(150)}And${"B".repeat(256 - 163)}...4350228749038456049`,
    );
    const wide = automaticIndexName({
      collection: "Ub",
      fields: [field("é".repeat(150)), field("B".repeat(150))],
      groupBy: null,
    });
    expect(wide.endsWith("...16260281574314025309")).toBe(true);
  });
});

describe("xxHash64", () => {
  it("matches the published values", () => {
    expect(xxHash64(Buffer.from("")).toString(16)).toBe("ef46db3751d8e999");
    expect(xxHash64(Buffer.from("abc")).toString(16)).toBe("44bc2cf5ad770999");
  });
});
