import { describe, expect, it } from "vitest";
import { parsePatchQuery, parseQuery } from "../../../../engine/queries/syntax/parser.ts";

const nested = (depth: number) => `from A where ${"(".repeat(depth)}b=1${")".repeat(depth)}`;

function conditions(count: number): string {
  return Array.from({ length: count }, (_, i) => `b = ${i}`).join(" or ");
}

describe("parseQuery", () => {
  it("sets the offset of every node", () => {
    const text = "from A as a where a.b = 1 and c in (2) select a.d as e";
    const { source, where, select } = parseQuery(text);
    expect([source.offset, where?.offset, select?.offset]).toEqual([
      text.indexOf("from"),
      text.indexOf("a.b"),
      text.indexOf("select"),
    ]);
  });

  it("builds one node from a chain of thousands", () => {
    const { where } = parseQuery(`from A where ${conditions(4_000)}`);
    expect(where?.kind === "or" && where.operands.length).toBe(4_000);
  });

  it("rejects more conditions, values, items and characters than the limits, and names the setting", () => {
    const list = (count: number) => Array.from({ length: count }, (_, i) => i).join(",");
    expect(() => parseQuery(`from A where ${conditions(4_100)}`)).toThrow("Query.MaxClauseCount");
    expect(() => parseQuery(`from A where b in (${list(20_000)})`)).toThrow("Query.MaxClauseCount");
    for (const clause of ["order by", "group by", "select", "include"]) {
      const items = Array.from({ length: 2_049 }, (_, i) => `f${i}`).join(",");
      expect(() => parseQuery(`from A ${clause} ${items}`)).toThrow(/more than 2048 items in/);
    }
    const long = `from A where b = '${"x".repeat(300_000)}'`;
    expect(() => parseQuery(long)).toThrow("Query.MaxTextLengthInKb");
  });

  it("accepts 128 parentheses and rejects 129, with the column first", () => {
    expect(parseQuery(nested(128)).where?.kind).toBe("comparison");
    expect(() => parseQuery(nested(129))).toThrow(
      "142:1 Query is too complex, over 128 nested clauses are not allowed",
    );
  });

  it("rejects nested calls beyond the same depth", () => {
    const calls = `from A where ${"exact(".repeat(5000)}b=1${")".repeat(5000)}`;
    expect(() => parseQuery(calls)).toThrow("Query is too complex");
  });

  it("keeps scripts verbatim, with their offset", () => {
    const text = "from A as a select { b: a.c /* } */ } limit 1";
    const body = parseQuery(text).select?.body;
    expect(body).toEqual({ kind: "script", offset: 19, text: "{ b: a.c /* } */ }" });
  });
});

describe("parsePatchQuery", () => {
  it("reads the script and the paging after it", () => {
    const { update, paging } = parsePatchQuery("from A update { this.b = 1 } limit 3");
    expect(update?.text).toBe("{ this.b = 1 }");
    expect(paging.take).toMatchObject({ type: "long", text: "3" });
  });

  it("requires an update", () => {
    expect(() => parsePatchQuery("from A")).toThrow(
      "Update operations must end with UPDATE clause",
    );
  });
});
