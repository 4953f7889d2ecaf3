import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ArrayDatabase } from "../../queries/execution/execute-array-host.ts";

interface Sale {
  readonly Product: string | null;
  readonly Lines: readonly { readonly P: string; readonly Q: number }[] | null;
  readonly Price: number;
}

const sale: fc.Arbitrary<Sale> = fc.record({
  Product: fc.constantFrom("tea", "Tea", "coffee", null),
  Lines: fc.option(
    fc.array(fc.record({ P: fc.constantFrom("a", "b"), Q: fc.integer({ min: -5, max: 5 }) }), {
      maxLength: 3,
    }),
  ),
  Price: fc.constantFrom(1, 2, 2.5, 0.1, 0.2),
});

function put(database: ArrayDatabase, id: string, one: Sale): void {
  database.put(id, JSON.stringify({ ...one, "@metadata": { "@collection": "Sales" } }));
}

function fastPathRows(rows: readonly string[]): Record<string, unknown>[] {
  return rows
    .map((row) => {
      const { "@metadata": _metadata, ...rest } = JSON.parse(row) as Record<string, unknown>;
      return rest;
    })
    .sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

function grouped(
  sales: Iterable<Sale>,
  contributions: (one: Sale) => { key: unknown; sum: number }[],
): Record<string, unknown>[] {
  const groups = new Map<string, { K: unknown; C: number; S: number }>();
  for (const one of sales) {
    for (const { key, sum } of contributions(one)) {
      const text = JSON.stringify(key);
      const group = groups.get(text) ?? { K: key, C: 0, S: 0 };
      group.C++;
      group.S += sum;
      groups.set(text, group);
    }
  }
  return [...groups.values()].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

describe("GroupIndex", () => {
  it("counts and sums match a full recomputation while documents are added, changed and removed", async () => {
    const step = fc.record({
      id: fc.integer({ min: 0, max: 9 }),
      sale: fc.option(sale, { freq: 4 }),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(step, { maxLength: 10 }), { maxLength: 5 }),
        async (rounds) => {
          const database = new ArrayDatabase();
          const sales = new Map<number, Sale>();
          for (const steps of rounds) {
            for (const { id, sale: next } of steps) {
              sales.delete(id);
              if (next === null) database.remove(`sales/${id}`);
              else {
                sales.set(id, next);
                put(database, `sales/${id}`, next);
              }
            }
            const products = await database.query(
              "from Sales group by Product select Product as K, count() as C, sum(Price) as S",
            );
            const byProduct = grouped(sales.values(), (one) => [
              { key: one.Product, sum: one.Price },
            ]);
            expect(fastPathRows(products.rows)).toEqual(byProduct);
            // The aggregates of entries are brought up to date when they are asked for, which is not each time.
            if (rounds.indexOf(steps) % 2 === 1) {
              const large = await database.query(
                "from Sales group by Product where sum(Price) > 2.1 and count() < 4 order by sum(Price) as double desc select Product as K, count() as C, sum(Price) as S",
              );
              expect(fastPathRows(large.rows)).toEqual(
                byProduct.filter(({ C, S }) => Number(S) > 2.1 && Number(C) < 4),
              );
            }
            const lines = await database.query(
              "from Sales group by Lines[].P select Lines[].P as K, count() as C, sum(Lines[].Q) as S",
            );
            const byLine = grouped(sales.values(), (one) =>
              one.Lines === null
                ? [{ key: null, sum: 0 }]
                : one.Lines.map((line) => ({ key: line.P, sum: line.Q })),
            );
            expect(fastPathRows(lines.rows)).toEqual(byLine);
          }
          database.indexes.checkInvariants();
          database.indexes.close();
        },
      ),
      { numRuns: 100 },
    );
  });

  it("leaves out a group while its sum contains a value that is not a number", async () => {
    const database = new ArrayDatabase();
    const text = (price: string) =>
      `{"P":"tea","Price":${price},"@metadata":{"@collection":"Sales"}}`;
    database.put("sales/1", text("4"));
    database.put("sales/2", text('"x"'));
    const query = "from Sales group by P select P, sum(Price) as S";
    expect((await database.query(query)).rows).toEqual([]);
    database.put("sales/2", text("4.5"));
    expect(fastPathRows((await database.query(query)).rows)).toEqual([{ P: "tea", S: 8.5 }]);
    database.indexes.close();
  });

  it("adds integers and doubles together after any changes", async () => {
    const database = new ArrayDatabase();
    const query = "from Sales group by P select P, sum(V) as S";
    const put = (id: number, value: string) =>
      database.put(`sales/${id}`, `{"P":1,"V":${value},"@metadata":{"@collection":"Sales"}}`);
    const sum = async () => fastPathRows((await database.query(query)).rows)[0]?.["S"];
    put(1, "null");
    put(2, "1");
    put(3, "2.5");
    expect(await sum()).toBe(3.5);
    put(2, "3.5");
    put(4, "7");
    expect(await sum()).toBe(13);
    database.remove("sales/3");
    expect(await sum()).toBe(10.5);
    database.remove("sales/2");
    expect(await sum()).toBe(7);
    put(1, "[1,2.5,3]");
    expect(await sum()).toBe(13.5);
    database.indexes.close();
  });

  it("accepts lists as keys if a path leads through an array, but no nested arrays", async () => {
    const database = new ArrayDatabase();
    const put = (id: number, text: string) =>
      database.put(`sales/${id}`, `{${text},"@metadata":{"@collection":"Sales"}}`);
    put(1, '"C":[{"N":"Bo"},{"N":"Cy"}],"T":["x",["y"]]');
    put(2, '"C":[{"M":"Bo"}],"T":["x"]');
    put(3, '"C":{"N":"Bo"},"T":"x"');
    const rows = async (query: string) => fastPathRows((await database.query(query)).rows);
    expect(await rows("from Sales group by C.N select key() as K")).toEqual([
      { K: "Bo" },
      { K: ["Bo", "Cy"] },
      { K: [] },
    ]);
    expect(await rows("from Sales group by T[] select key() as K, count() as C")).toEqual([
      { K: "x", C: 1 },
      { K: null, C: 1 },
    ]);
    expect(await rows("from Sales group by array(T) select key() as K")).toEqual([
      { K: "x" },
      { K: ["x", ["y"]] },
      { K: ["x"] },
    ]);
    database.indexes.close();
  });

  it("compacts after many changes", async () => {
    const database = new ArrayDatabase();
    const query = "from Sales group by Product select Product as K, count() as C, sum(Price) as S";
    for (let round = 0; round < 8; round++) {
      for (let i = 0; i < 400; i++) {
        put(database, `sales/${i}`, {
          Product: `p${(i + round) % 7}`,
          Lines: null,
          Price: round + 0.5,
        });
      }
      await database.query(query);
    }
    const { rows } = await database.query(query);
    const counts = fastPathRows(rows).map((row) => row["C"] as number);
    expect(counts.reduce((a, b) => a + b)).toBe(400);
    expect(fastPathRows(rows).map((row) => (row["S"] as number) / (row["C"] as number))).toEqual(
      Array.from({ length: 7 }, () => 7.5),
    );
    database.indexes.checkInvariants();
    database.indexes.close();
  });
});
