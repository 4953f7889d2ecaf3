/** A page in an order: the rows that the whole order has there, however they are found. */
import { afterEach, describe, expect, it } from "vitest";
import { closeDatabases, openDatabase, putAll, query } from "../../support/open-database.ts";
import { SeededRandom } from "../../support/random.ts";
import { seedOfRun } from "../../support/seed.ts";

afterEach(closeDatabases);

/** Orders of fields that are whole, sparse, mixed, dates, and lists. */
const orders = [
  "Whole",
  "Score as double",
  "Score as long",
  "Sparse",
  "Sparse as double",
  "Text",
  "Day",
  "Mixed as double",
  "List",
  "Whole, Score as double desc",
  "Sparse, Text desc",
  "None",
];
const wheres = [
  "",
  "where Whole > 3 ",
  "where Half = true ",
  "where Whole = 2 ",
  "where Rare = 1 ",
];

function documentOf(n: number, random: SeededRandom): object {
  const day = new Date(Date.UTC(2020, 0, 1) + random.below(900) * 86_400_000);
  return {
    Whole: random.below(12),
    Score: random.below(2000) / 8 - 100,
    ...(random.chance(0.8) ? { Sparse: random.chance(0.1) ? null : random.below(50) } : {}),
    Text: `t${random.below(300)}`,
    Day: day.toISOString().slice(0, 10),
    Mixed: random.chance(0.1) ? "text" : random.below(100),
    List: Array.from({ length: random.below(3) }, () => random.below(20)),
    Half: random.chance(0.5),
    Rare: n % 400 === 0 ? 1 : 0,
  };
}

function textOf(city: string, score: string): string {
  return `{"City":"${city}","Score":${score},"@metadata":{"@collection":"P"}}`;
}

describe("a page in the order of a field", () => {
  const seed = seedOfRun();

  it("has the rows that the whole order has there, after changes too", async () => {
    const random = new SeededRandom(seed);
    const database = await openDatabase();
    const all = Object.fromEntries(
      Array.from({ length: 2500 }, (_, n) => [`p/${n}`, documentOf(n, random)]),
    );
    await putAll(database, "P", all);
    const ids = async (text: string) => {
      const { rows, outcome } = await query(database, text, { waitForNonStale: true });
      const found = rows.map((row) => (row["@metadata"] as { "@id": string })["@id"]);
      return { ids: found, total: outcome?.totalResults };
    };
    const compareAll = async () => {
      for (const where of wheres) {
        for (const order of ["", ...orders]) {
          for (const end of order === ""
            ? [""]
            : ["", " desc", " nulls last", " desc nulls first"]) {
            const isPlain = !order.includes(",") || end === "";
            if (!isPlain) continue;
            const text = `from P ${where}${order === "" ? "" : `order by ${order}${end}`}`;
            const whole = await ids(text);
            const page = await ids(`${text} limit 7, 9`);
            expect(page.total, text).toBe(whole.ids.length);
            expect(page.ids, text).toEqual(whole.ids.slice(7, 16));
          }
        }
      }
    };
    await compareAll();
    const changed = Object.fromEntries(
      Array.from({ length: 400 }, () => [`p/${random.below(2600)}`, documentOf(1, random)]),
    );
    await putAll(database, "P", changed);
    await compareAll();
  }, 60_000);

  it("is right for few of many documents, whatever their numbers", async () => {
    const random = new SeededRandom(seed);
    const database = await openDatabase();
    /** Numbers with their places in the order: those of one place tie. */
    const places: readonly (readonly [string, number])[] = [
      ["-3", 0],
      ["-0", 1],
      ["0", 1],
      ["0.1", 2],
      ["1.5", 3],
      ["1.50", 3],
      ["2.5", 4],
      ["1000", 5],
      ["1e3", 5],
      ["9007199254740992", 6],
      ["9007199254740993", 7],
    ];
    for (let n = 0; n < 1500; n++) await database.put(`others/${n}`, textOf("other", String(n)));
    const listed: { readonly id: string; readonly city: number; readonly place: number }[] = [];
    for (let n = 0; n < 200; n++) {
      const city = random.below(8);
      // Half of the groups have no two numbers with the same double.
      const [text, place] = places[
        random.below(city < 4 ? places.length : 5)
      ] as (typeof places)[0];
      await database.put(`p/${n}`, textOf(`city ${city}`, text));
      listed.push({ id: `p/${n}`, city, place });
    }
    for (let city = 0; city < 8; city++) {
      for (const [end, sign] of [
        ["", 1],
        [" desc", -1],
      ] as const) {
        const text = `from P where City = 'city ${city}' order by Score as double${end}`;
        const { rows } = await query(database, text, { waitForNonStale: true });
        const ids = rows.map((row) => (row["@metadata"] as { "@id": string })["@id"]);
        const wanted = listed
          .filter((one) => one.city === city)
          .sort((one, other) => sign * (one.place - other.place));
        expect(ids, text).toEqual(wanted.map(({ id }) => id));
      }
    }
  }, 60_000);

  it("is full where documents are gone that the index has not heard of", async () => {
    const database = await openDatabase();
    const all = Array.from({ length: 600 }, (_, n) => [`p/${n}`, { Whole: n % 12, Score: n }]);
    await putAll(database, "P", Object.fromEntries(all));
    const texts = ["Whole", "Score as double", "Score as double desc", ""].map(
      (order) => `from P where Whole >= 0 ${order === "" ? "" : `order by ${order} `}limit 3, 5`,
    );
    const idsOf = async (text: string, waitForNonStale: boolean) => {
      const { rows } = await query(database, text, { waitForNonStale });
      return rows.map((row) => (row["@metadata"] as { "@id": string })["@id"]);
    };
    for (const text of texts) await idsOf(text, true);
    database.queries.administration.setPaused(true);
    for (const gone of ["p/0", "p/1", "p/12", "p/599", "p/597"]) await database.delete(gone);
    const stale = [];
    for (const text of texts) stale.push(await idsOf(text, false));
    database.queries.administration.setPaused(false);
    for (const [i, text] of texts.entries())
      expect(stale[i], text).toEqual(await idsOf(text, true));
  });
});
