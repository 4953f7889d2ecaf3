import { describe, expect, it } from "vitest";
import { parsePatchQuery, parseQuery } from "../../../engine/rql/parser.ts";

const nested = (depth: number) => `from A where ${"(".repeat(depth)}b=1${")".repeat(depth)}`;

describe("parseQuery", () => {
  it("gives every node its offset", () => {
    const text = "from A as a where a.b = 1 and c in (2) select a.d as e";
    const { source, where, select } = parseQuery(text);
    expect([source.offset, where?.offset, select?.offset]).toEqual([
      text.indexOf("from"),
      text.indexOf("a.b"),
      text.indexOf("select"),
    ]);
  });

  it("makes one node of a chain of thousands", () => {
    const text = `from A where ${Array.from({ length: 20_000 }, (_, i) => `b = ${i}`).join(" or ")}`;
    const { where } = parseQuery(text);
    expect(where?.kind === "or" && where.operands.length).toBe(20_000);
  });

  it("takes 128 parentheses and refuses 129, with the column first", () => {
    expect(parseQuery(nested(128)).where?.kind).toBe("comparison");
    expect(() => parseQuery(nested(129))).toThrow(
      "142:1 Query is too complex, over 128 nested clauses are not allowed",
    );
  });

  it("refuses calls inside calls beyond the same depth", () => {
    const calls = `from A where ${"exact(".repeat(5000)}b=1${")".repeat(5000)}`;
    expect(() => parseQuery(calls)).toThrow("Query is too complex");
  });

  it("keeps scripts as written, with their place", () => {
    const text = "from A as a select { b: a.c /* } */ } limit 1";
    const body = parseQuery(text).select?.body;
    expect(body).toEqual({ kind: "script", offset: 19, text: "{ b: a.c /* } */ }" });
  });
});

describe("parsePatchQuery", () => {
  it("reads the script and pages after it", () => {
    const { update, paging } = parsePatchQuery("from A update { this.b = 1 } limit 3");
    expect(update?.text).toBe("{ this.b = 1 }");
    expect(paging.take).toMatchObject({ type: "long", text: "3" });
  });

  it("needs an update", () => {
    expect(() => parsePatchQuery("from A")).toThrow(
      "Update operations must end with UPDATE clause",
    );
  });
});
