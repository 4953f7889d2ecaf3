/** A page in the order of scores or distances equals the same page of the complete order. */
import { afterEach, describe, expect, it } from "vitest";
import { closeDatabases, openDatabase, putAll, query } from "../../../support/open-database.ts";
import { SeededRandom } from "../../../support/random.ts";
import { seedOfRun } from "../../../support/seed.ts";

afterEach(closeDatabases);

const wheres = [
  "search(Text, '$')",
  "search(Text, '$ $')",
  "search(Text, '$ $', and)",
  "search(Text, '$ $ $ absent')",
  "search(Text, '$ absent', and)",
  "search(Text, 'absent')",
  "search(Text, '$ $ $ $')",
  "search(Text, '$ w1*')",
  `search(Text, '"$ $" $')`,
  "boost(search(Text, '$ $'), 3)",
  "boost(search(Text, '$ $'), -2)",
  "boost(search(Text, '$'), 0)",
  "search(Text, '$') or search(Text, '$')",
  "search(Text, '$') and Number > 20",
  "search(Text, '$') and not search(Text, '$')",
  "Number = 3 or boost(Number = 4, 2)",
];
const definition = {
  Name: "Texts",
  Maps: ["map('P', p => ({ Text: p.Text, Number: p.Number }))"],
  Fields: { Text: { Indexing: "Search" } },
};

function documentOf(random: SeededRandom): object {
  const words = Array.from(
    { length: random.below(25) },
    () => `w${Math.floor(1 / (random.next() + 0.01))}`,
  );
  return {
    Text: words.join(" "),
    Number: random.below(40),
    ...(random.chance(0.9) ? { Y: random.below(40) / 2, X: random.below(40) / 2 } : {}),
  };
}

describe("a page in the order of scores", () => {
  const seed = seedOfRun();

  it("equals that page of the complete order, also after changes", async () => {
    const random = new SeededRandom(seed);
    const database = await openDatabase();
    const created = (from: number, to: number) =>
      Object.fromEntries(
        Array.from({ length: to - from }, (_, n) => [`p/${from + n}`, documentOf(random)]),
      );
    await putAll(database, "P", created(0, 5_000));
    await database.queries.administration.deploy([definition], true);
    const ids = async (text: string) => {
      const { rows, outcome } = await query(database, text, { waitForNonStale: true });
      const found = rows.map((row) => (row["@metadata"] as { "@id": string })["@id"]);
      return { ids: found, total: outcome?.totalResults };
    };
    const compare = async (text: string) => {
      const skip = random.below(3) * random.below(30);
      const take = 1 + random.below(20);
      const whole = await ids(text);
      const page = await ids(`${text} limit ${skip}, ${take}`);
      expect(page.total, text).toBe(whole.total);
      expect(page.ids, text).toEqual(whole.ids.slice(skip, skip + take));
    };
    for (let round = 0; round < 3; round++) {
      for (const where of wheres) {
        const word = () => `w${Math.floor(1 / (random.next() + 0.01))}`;
        const condition = where.replaceAll("$", word);
        const order = random.chance(0.2) ? "order by score() desc" : "order by score()";
        await compare(`from P where ${condition} ${order}`);
        await compare(`from index 'Texts' where ${condition} ${order}`);
        await compare(`from P where ${condition}`);
      }
      const place = `spatial.point(${random.below(20)}, ${random.below(20)})`;
      const desc = random.chance(0.5) ? " desc" : "";
      const distance = `order by spatial.distance(spatial.point(Y, X), ${place})${desc}`;
      const circle = `spatial.within(spatial.point(Y, X), spatial.circle(${100 * random.below(9)}, 9, 9))`;
      for (const where of ["", `where ${circle}`, "where Number = 3", "where Number > 5"]) {
        await compare(`from P ${where} ${distance}`);
      }
      await putAll(database, "P", created(random.below(1_000), 1_800));
      for (let n = 0; n < 200; n++) await database.delete(`p/${random.below(5_000)}`);
    }
  });
});

describe("a page in the order of distances", () => {
  it("is cut where the complete order is, among equally distant points", async () => {
    const database = await openDatabase();
    const places = Array.from({ length: 1600 }, (_, n) => [
      `p/${n}`,
      { X: (n % 40) / 2, Y: Math.floor(n / 40) / 2 },
    ]);
    await putAll(database, "P", Object.fromEntries(places));
    const ids = async (text: string) => {
      const { rows } = await query(database, text, { waitForNonStale: true });
      return rows.map((row) => (row["@metadata"] as { "@id": string })["@id"]);
    };
    for (const place of ["0, 0", "7, 7", "19, 0", "10, 3"]) {
      for (const desc of ["", " desc"]) {
        const text = `from P order by spatial.distance(spatial.point(Y, X), spatial.point(${place}))${desc}`;
        const whole = await ids(text);
        for (let count = 1; count <= 40; count++) {
          expect(await ids(`${text} limit ${count}`), text).toEqual(whole.slice(0, count));
        }
      }
    }
  });
});
