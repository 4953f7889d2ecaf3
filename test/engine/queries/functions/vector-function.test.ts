/** `vector.search`: behaviour measured on RavenDB 7.2.7. */
import { afterEach, describe, expect, it } from "vitest";
import type { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { EngineError } from "../../../../engine/base/errors.ts";
import { closeDatabases, openDatabase, putAll, query } from "../../../support/open-database.ts";

afterEach(closeDatabases);

const pictures = {
  "p/1": { Name: "red", V: [1, 0, 0], B: "AACAPwAAAAAAAAAA", I8: [127, 0, 0, 0, 0, 128, 63] },
  "p/2": { Name: "orange", V: [0.9, 0.4, 0], Many: [[0, 0, 1]], Inner: { V: [0, 1] } },
  "p/3": { Name: "green", V: [0, 1, 0], B: "AAAAAAAAgD8AAAAA", Bits: [255] },
  "p/4": {
    Name: "blue",
    V: [0, 0, 1],
    Many: [
      [1, 0, 0],
      [0, 1, 0],
    ],
    Bits: [1],
  },
  "p/5": { Name: "none" },
  "p/6": { Name: "null", V: null },
  "p/7": { Name: "minus red", V: [-1, 0, 0] },
  "p/8": { Name: "zero", V: [0, 0, 0] },
  "p/9": { Name: "short", V: [1, 0], List: [{ V: [0, 1] }, { V: [1, 0] }] },
};

async function opened(): Promise<OpenDatabase> {
  const database = await openDatabase();
  await putAll(database, "P", pictures);
  return database;
}

async function found(database: OpenDatabase, where: string, v: unknown, from = "P") {
  const parametersText = JSON.stringify({ v, m: 0.9, d: "p/1" });
  return (await query(database, `from ${from} where ${where}`, { parametersText })).ids;
}

async function complaint(database: OpenDatabase, where: string, v: unknown, from = "P") {
  try {
    await found(database, where, v, from);
  } catch (error) {
    if (error instanceof EngineError) return `${error.code}: ${error.message.split("\n")[0]}`;
    throw error;
  }
  return "none";
}

describe("automatic indexes", () => {
  it("find the nearest, best first", async () => {
    const database = await opened();
    const all = ["p/1", "p/2", "p/3", "p/4", "p/7"];
    expect(await found(database, "vector.search(V, $v)", [1, 0.1, 0.05])).toEqual(all);
    expect(await found(database, "exact(vector.search(V, $v))", [1, 0.1, 0.05])).toEqual(all);
    expect(await found(database, "vector.search(V, $v, 0.9)", [1, 0.1, 0])).toEqual(["p/1", "p/2"]);
    expect(await found(database, "vector.search(V, $v, $m)", [1, 0.1, 0])).toEqual(["p/1", "p/2"]);
    expect(await found(database, "vector.search(V, $v, null, 2)", [0, 1, 0])).toEqual([
      "p/3",
      "p/2",
    ]);
    expect(await found(database, "vector.search(V, $v, 0, -3)", [0, 1, 0])).toEqual(["p/3"]);
    expect(await found(database, "vector.search(V, $v, 2)", [1, 0, 0])).toEqual([]);
    const ordered = "vector.search(V, $v, 0.6) order by Name desc";
    expect(await found(database, ordered, [1, 0.2, 0])).toEqual(["p/1", "p/2"]);
    expect(await found(database, "vector.search(V, $v, 0.9)", "AAAAAAAAgD8AAAAA")).toEqual(["p/3"]);
    expect(await found(database, "vector.search(B, $v, 0.9)", [0, 1, 0])).toEqual(["p/3"]);
    expect(await found(database, "vector.search(Many, $v, 0.95)", [0, 1, 0])).toEqual(["p/4"]);
    expect(await found(database, "vector.search(Inner.V, $v)", [0, 1])).toEqual(["p/2"]);
    expect(await found(database, "vector.search(List[].V, $v, 0.9)", [0, 1])).toEqual(["p/9"]);
    const either = await found(database, "vector.search(V, $v, 0.99)", [
      [1, 0, 0],
      [0, 0, 1],
    ]);
    expect([...either].sort()).toEqual(["p/1", "p/4"]);
    const like = "vector.search(V, embedding.forDoc($d), 0.9)";
    expect(await found(database, like, null)).toEqual(["p/1", "p/2"]);
    expect(await found(database, "vector.search(V, embedding.forDoc('p/77'))", null)).toEqual([]);
  });

  it("return the nearest among the matches of other conditions", async () => {
    const database = await opened();
    const search = "vector.search(V, $v, 0, 1)";
    expect(await found(database, `${search} and Name != 'red'`, [1, 0.2, 0])).toEqual(["p/2"]);
    expect(await found(database, `Name in ('blue', 'green') and ${search}`, [1, 0.2, 0])).toEqual([
      "p/3",
    ]);
    const nested = `(Name in ('blue', 'green') and ${search}) and Name != 'green'`;
    expect(await found(database, nested, [1, 0.2, 0])).toEqual(["p/4"]);
    const both = await found(database, `Name = 'blue' or ${search}`, [0, 1, 0]);
    expect([...both].sort()).toEqual(["p/3", "p/4"]);
    const others = await found(database, `true and not ${search}`, [0, 1, 0]);
    expect(others).toHaveLength(8);
    expect(others).not.toContain("p/3");
  });

  it("store bytes and bits, and include them in their names", async () => {
    const database = await opened();
    const name = async (where: string, v: unknown) => {
      const parametersText = JSON.stringify({ v });
      const { outcome, ids } = await query(database, `from P where ${where}`, { parametersText });
      return [outcome?.indexName, ...ids];
    };
    expect(await name("vector.search(embedding.f32_i8(V), $v, 0.9)", [1, 0.1, 0])).toEqual([
      "Auto/P/ByVector.search(embedding.f32_i8(V))",
      "p/1",
      "p/2",
    ]);
    const [, ...signs] = await name("vector.search(embedding.f32_i1(V), $v, 0.9)", [1, 1, 0]);
    expect(signs.sort()).toEqual(["p/1", "p/2", "p/3", "p/4", "p/8"]);
    const [, ...bytes] = await name("vector.search(embedding.i8(I8), $v)", "fwAAAACAPw==");
    expect(bytes).toEqual(["p/1"]);
    const [, ...bits] = await name("vector.search(embedding.i1(Bits), $v, 0.1)", [255]);
    expect(bits).toEqual(["p/3", "p/4"]);
  });

  it("follow changes and deletions", async () => {
    const database = await opened();
    await found(database, "vector.search(V, $v)", [0, 1, 0]);
    await database.delete("p/3");
    await putAll(database, "P", { "p/4": { V: [0, 2, 0.1] }, "p/1": { V: [0, 3, 1] } });
    expect(await found(database, "vector.search(V, $v, 0, 2)", [0, 1, 0])).toEqual(["p/4", "p/1"]);
  });

  it("reject queries with RavenDB's messages", async () => {
    const database = await opened();
    const search = "vector.search(V, $v)";
    expect(await complaint(database, search, [1, 0])).toBe(
      "json-invalid: Vector field `vector.search(V)` has 3 dimensions, but the vector passed to vector.search() has 2 dimensions.",
    );
    expect(await complaint(database, search, [])).toMatch(/^json-invalid: We expected to get/);
    expect(await complaint(database, search, ["a"])).toMatch(/^json-invalid: Expected array enc/);
    expect(await complaint(database, search, null)).toMatch(/^null-reference/);
    expect(await complaint(database, "vector.search(V)", null)).toMatch(/^out-of-range/);
    expect(await complaint(database, "vector.search(V, $v, 'x')", [1, 0, 0])).toBe(
      "not-supported: vector.search() minimumMatch must be a float, but was: String",
    );
    expect(await complaint(database, "vector.search(embedding.nope(V), $v)", [1])).toBe(
      "not-supported: Method 'embedding.nope' is not supported.",
    );
    expect(await complaint(database, `boost(${search}, 2)`, [1, 0, 0])).toBe(
      "not-supported: Boosting the VectorSearchMatch is not supported yet.",
    );
    expect(await complaint(database, `${search} filter Name = 'red'`, [1, 0, 0])).toBe(
      "query-invalid: Cannot use 'filter' when 'vector.search' is used in where statement.",
    );
    const task = "vector.search(embedding.text(Name, ai.task('mine')), $v)";
    expect(await complaint(database, task, "red")).toBe(
      "query-invalid: Couldn't find Embeddings Generation task with 'mine' identifier",
    );
    const text = await complaint(database, "vector.search(embedding.text(Name), $v)", "red");
    expect(text).toMatch(/^not-supported: Method 'embedding.text' .* no model/);
    expect(await found(database, search, [1], "Nope")).toEqual([]);
  });
});

describe("deployed indexes", () => {
  const definition = (name: string, map: string, vector: object | null) => ({
    Name: name,
    Maps: [map],
    ...(vector === null ? {} : { Fields: { V: { Vector: vector } } }),
  });
  const script = "map('P', p => ({ Name: p.Name, V: createVector(p.V) }))";

  it("find the nearest, in every format", async () => {
    const database = await opened();
    const csharp = "from p in docs.P select new { p.Name, V = CreateVector(p.V) }";
    const definitions = [
      definition("Plain", script, null),
      definition("Sharp", csharp, {}),
      definition("Bytes", script, { DestinationEmbeddingType: "Int8", NumberOfEdges: 20 }),
    ];
    await database.queries.administration.deploy(definitions, true);
    for (const { Name } of definitions) {
      const from = `index '${Name}'`;
      const search = "vector.search(V, $v, 0.7)";
      expect(await found(database, search, [1, 0.2, 0], from)).toEqual(["p/1", "p/2"]);
      const filtered = `Name = 'orange' and ${search}`;
      expect(await found(database, filtered, [1, 0.2, 0], from)).toEqual(["p/2"]);
      expect(await found(database, "vector.search(Name, $v)", [1], from)).toEqual([]);
      const wrapped = "vector.search(embedding.f32_i8(V), $v)";
      expect(await complaint(database, wrapped, [1], from)).toMatch(
        /first argument will be a field name when static index is queried/,
      );
    }
  });

  it("report vectors with a wrong dimension, and reject texts", async () => {
    const database = await opened();
    const three = definition("Three", script, { Dimensions: 3 });
    await database.queries.administration.deploy([three], true);
    const ids = await found(database, "vector.search(V, $v, 0.9)", [1, 0, 0], "index 'Three'");
    expect(ids).toEqual(["p/1", "p/2"]);
    const text = definition("Text", script, { SourceEmbeddingType: "Text" });
    await expect(database.queries.administration.deploy([text], true)).rejects.toThrow(/no model/);
    const wrong = definition("Wrong", script, { SourceEmbeddingType: "Nope" });
    await expect(database.queries.administration.deploy([wrong], true)).rejects.toThrow(
      /VectorEmbeddingType/,
    );
  });
});
