/**
 * Additive reduces return the same as their functions, after any insertions, changes and deletions.
 */
import { expect, onTestFinished, test } from "vitest";
import { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { Indexes } from "../../../../engine/api/indexes.ts";
import { nodeEnvironment } from "../../../../engine/base/platform/node-environment.ts";
import { StaticIndex } from "../../../../engine/indexing/static-index.ts";
import { query } from "../../../support/open-database.ts";
import { newTestFolder } from "../../../support/open-test-database.ts";
import { SeededRandom } from "../../../support/random.ts";

async function open(folder: string): Promise<OpenDatabase> {
  const indexSnapshots = { workMsMin: 0 };
  const database = await OpenDatabase.open(nodeEnvironment(), "sums", folder, { indexSnapshots });
  onTestFinished(() => database.close());
  return database;
}

/**
 * Pairs of reduces: the first of each is recognized as additive; the second is equivalent but not
 * recognized.
 */
const pairs = [
  {
    map: "map('Items', i => ({ K: i.K, N: i.N, M: i.M }))",
    reduces: [
      "groupBy(x => x.K).aggregate(g => ({ N: g.values.reduce((n, v) => n + v.N, 0), K: g.key, M: g.values.reduce((n, v) => v.M + n, 0) }))",
      "groupBy(x => x.K).aggregate(g => ({ N: g.values.reduce((n, v) => { const m = n + v.N; return m; }, 0), K: g.key, M: g.values.reduce((n, v) => v.M + n, 0) }))",
    ],
  },
  {
    map: "map('Items', i => ({ K: i.K, L: i.L, N: i.N }))",
    reduces: [
      "groupBy(x => ({ K: x.K, L: x.L })).aggregate(g => { return { K: g.key.K, L: g.key.L, N: g.values.reduce((n, v) => n + v.N, 0) }; })",
      "groupBy(x => ({ K: x.K, L: x.L })).aggregate(g => { const { key } = g; return { K: key.K, L: key.L, N: g.values.reduce((n, v) => n + v.N, 0) }; })",
    ],
  },
  {
    map: "from i in docs.Items select new { i.K, i.N, i.M }",
    reduces: [
      "from r in results group r by r.K into g select new { K = g.Key, N = g.Sum(x => x.N), M = g.Sum(x => x.M) }",
      "from r in results group r by r.K into g select new { K = g.Key, N = g.Where(x => true).Sum(x => x.N), M = g.Sum(x => x.M) }",
    ],
  },
  {
    map: "docs.Items.Select(i => new { K = i.K, L = i.L, N = i.N })",
    reduces: [
      "results.GroupBy(r => new { r.K, r.L }).Select(g => new { g.Key.K, g.Key.L, N = g.Sum(x => x.N) })",
      "results.GroupBy(r => new { r.K, r.L }).Select(g => new { g.Key.K, g.Key.L, N = g.Where(x => true).Sum(x => x.N) })",
    ],
  },
].map(({ map, reduces }, pair) => ({
  names: [`Sums${pair}`, `Function${pair}`],
  definitions: reduces.map((Reduce, at) => ({
    Name: at === 0 ? `Sums${pair}` : `Function${pair}`,
    Maps: [map],
    Reduce,
  })),
}));

const conditions = [
  "",
  "where K = 'b'",
  "where N > 3",
  "order by N as double desc, K",
  "order by K",
];

/**
 * Rows without the order of equal rows and without the last bits of sums, which depend on the order
 * of addition.
 */
async function rowsOf(database: OpenDatabase, index: string, condition: string): Promise<string[]> {
  const { rows } = await query(database, `from index '${index}' ${condition}`, {
    waitForNonStale: true,
  });
  const plain = rows.map((row) =>
    JSON.stringify(row, (name, value: unknown) => {
      if (name === "@metadata") return undefined;
      return typeof value === "number" ? Number(value.toPrecision(12)) : value;
    }),
  );
  return plain.sort();
}

async function compare(database: OpenDatabase, random: SeededRandom): Promise<void> {
  for (const { names } of pairs) {
    const [sums, byFunction] = names as [string, string];
    // Not queried in each round, so unread groups stay pending.
    const requested = conditions.filter(() => random.chance(0.4));
    for (const condition of requested) {
      const expected = await rowsOf(database, byFunction, condition);
      expect([sums, condition, await rowsOf(database, sums, condition)]).toEqual([
        sums,
        condition,
        expected,
      ]);
    }
    if (!random.chance(0.3)) continue;
    const terms = async (name: string) => {
      await database.queries.indexes.waitForNonStale(name, 10_000);
      const request = { field: "N", after: "", countMax: 1_000 };
      const found = await new Indexes(database).terms(name, request);
      return [...new Set(found.terms.map((term) => Number(term).toPrecision(12)))].sort();
    };
    expect(await terms(sums)).toEqual(await terms(byFunction));
  }
}

for (const [name, documents, seed] of [
  ["few values", 12, 1],
  ["many values", 100, 2],
] as const) {
  test(`${name}: documents are added, changed and removed, and the database is reopened`, async () => {
    const random = new SeededRandom(seed);
    const folder = await newTestFolder();
    let database = await open(folder);
    const all = pairs.flatMap(({ definitions }) => definitions);
    await database.queries.administration.deploy(all, true);
    for (const { names } of pairs) {
      const areSums = names.map((one) => {
        const index = database.queries.indexes.byName(one);
        return index instanceof StaticIndex && index.program.sums !== null;
      });
      expect(areSums).toEqual([true, false]);
    }
    const keys = ['"a"', '"b"', '"b"', '"é\\n"', "7", "-3", "null", "true", "1.5", "[1]"];
    const numbers = [
      "1",
      "2",
      "-5",
      "0",
      "0.25",
      "3.5",
      "1e3",
      "2.0",
      "-0",
      "123456789012345678",
      "null",
    ];
    const pick = (values: readonly string[]) => values[random.below(values.length)] as string;
    for (let round = 0; round < 16; round++) {
      for (let step = 0; step < documents / 2; step++) {
        const id = `items/${random.below(documents)}`;
        if (random.chance(0.25)) await database.delete(id);
        else {
          const key = random.chance(0.1) ? "" : `"K":${pick(keys)},`;
          await database.put(
            id,
            `{${key}"L":${pick(keys)},"N":${pick(numbers)},"M":${pick(numbers)},"@metadata":{"@collection":"Items"}}`,
          );
        }
      }
      await compare(database, random);
      if (round % 8 !== 7) continue;
      await database.close();
      database = await open(folder);
      await compare(database, random);
    }
    for (const index of database.queries.indexes.all()) index.index.store.checkInvariants();
  });
}

test("adds a few doubles in the order of their writes, as the function does", async () => {
  const database = await open(await newTestFolder());
  const [{ definitions }] = pairs as [(typeof pairs)[0]];
  await database.queries.administration.deploy([definitions[0] as object as never], true);
  const put = (id: number, value: string) =>
    database.put(`items/${id}`, `{"K":1,"N":${value},"M":0,"@metadata":{"@collection":"Items"}}`);
  const sum = async () => {
    const { rows } = await query(database, "from index 'Sums0'", { waitForNonStale: true });
    return (rows[0] as { N: unknown }).N;
  };
  await put(1, "0.1");
  await put(2, "0.2");
  await put(3, "0.3");
  expect(await sum()).toBe(0.1 + 0.2 + 0.3);
  await put(1, "9");
  expect(await sum()).toBe(9.5);
  await put(1, "0.1");
  expect(await sum()).toBe(0.2 + 0.3 + 0.1);
  await put(2, '"x"');
  expect(await sum()).toBe(`${0.3 + 0.1}x`);
  await put(2, "2");
  expect(await sum()).toBe(2.4);
});
