/** A page in an order equals the same page of the complete order. */
import { afterEach, describe, expect, it } from "vitest";
import type { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { openFolder } from "../../../../engine/api/database/open-folder.ts";
import {
  closeDatabases,
  openDatabase,
  putAll,
  query,
  temporaryFolder,
} from "../../../support/open-database.ts";
import { SeededRandom } from "../../../support/random.ts";
import { seedOfRun } from "../../../support/seed.ts";

afterEach(closeDatabases);

/** Orders of dense, sparse and mixed fields, dates, and lists. */
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

  it("equals that page of the complete order, also after changes", async () => {
    const random = new SeededRandom(seed);
    const database = await openDatabase();
    const all = Object.fromEntries(
      Array.from({ length: 1800 }, (_, n) => [`p/${n}`, documentOf(n, random)]),
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
      Array.from({ length: 400 }, () => [`p/${random.below(1900)}`, documentOf(1, random)]),
    );
    await putAll(database, "P", changed);
    await compareAll();
  }, 60_000);

  it("is right for few of many documents, for any numbers", async () => {
    const random = new SeededRandom(seed);
    const database = await openDatabase();
    /** Numbers with their ranks; equal ranks are ties. */
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
      // In half of the groups, no two numbers round to the same double.
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

  it("is full even if deleted documents are still in the index", async () => {
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

  it("puts changed documents last in a Lucene index", async () => {
    const database = await openDatabase();
    const engine = { "Indexing.Static.SearchEngineType": "Lucene" };
    const definition = { Name: "L", Maps: ["from p in docs.P select new { p.N }"] };
    await database.queries.administration.deploy([{ ...definition, Configuration: engine }], true);
    for (const N of [1, 2, 3, 4]) await putAll(database, "P", { [`p/${N}`]: { N } });
    expect((await query(database, "from index 'L'")).ids).toEqual(["p/1", "p/2", "p/3", "p/4"]);
    await putAll(database, "P", { "p/2": { N: 5 } });
    expect((await query(database, "from index 'L'")).ids).toEqual(["p/1", "p/3", "p/4", "p/2"]);
  });

  // RavenDB 7.2.7 has the same order.
  it("keeps the rank of changed documents, and their order among ties", async () => {
    const folder = temporaryFolder();
    let engine = await openFolder({ folder });
    let database = await engine.databases.create("db", {});
    const entriesOf = "from p in docs.P from t in p.Tags select new { p.City, T = t }";
    await database.queries.administration.deploy([{ Name: "Tags", Maps: [entriesOf] }], true);
    const documentOf = (n: number, changed: object = {}) => ({
      [`p/${n}`]: {
        City: `c${n}`,
        Age: n % 2,
        Text: `word number ${n}`,
        Tags: [`a${n}`, `b${n}`],
        Place: { Lat: 10, Lng: 20 },
        ...changed,
      },
    });
    const placed = "spatial.point(Place.Lat, Place.Lng), spatial.point(10, 20)";
    const texts = [
      "from P where Age >= 0",
      "from P where Age >= 0 limit 2, 3",
      "from P order by Age as long",
      "from P order by Age as long desc",
      "from P where Age >= 0 order by Missing",
      "from P where search(Text, 'word')",
      "from P where boost(Age = 1, 2) or Age = 0",
      `from P order by spatial.distance(${placed})`,
      "from index 'Tags'",
    ];
    const found = async () => {
      const lists: string[] = [];
      for (const text of texts) {
        const { rows } = await query(database, text, { waitForNonStale: true });
        const ids = rows.map((row) => (row["@metadata"] as { "@id": string })["@id"]);
        lists.push(ids.map((id) => id.slice(2)).join(""));
      }
      return lists;
    };
    const groups = async () => {
      const text = "from P group by City select City, count()";
      const { rows } = await query(database, text, { waitForNonStale: true });
      return rows.map(({ City }) => (City as string).slice(1)).join("");
    };
    for (let n = 1; n <= 6; n++) await putAll(database, "P", documentOf(n));
    const all = "123456";
    const first = [all, "345", "246135", "135246", all, all, "135246", all, all];
    expect(await found()).toEqual(first);
    expect(await groups()).toBe(all);

    await putAll(database, "P", documentOf(2, { Text: "word number two", Tags: ["x", "y", "z"] }));
    expect(await found()).toEqual([...first.slice(0, -1), "134562"]);

    await putAll(database, "P", documentOf(3, { Age: 3, Tags: ["x"] }));
    const changed = [all, "345", "246153", "315246", all, all, "15246", all, "145623"];
    expect(await found()).toEqual(changed);

    await putAll(database, "P", documentOf(3, { Tags: [] }));
    await putAll(database, "P", documentOf(3, { Tags: ["q"] }));
    await putAll(database, "P", documentOf(1, { Tags: ["a1", "n"] }));
    expect(await found()).toEqual([...first.slice(0, -1), "456231"]);

    await putAll(database, "P", documentOf(4, { City: "c1", Age: 7 }));
    const last = [all, "345", "261354", "413526", all, all, "13526", all, "562314"];
    expect(await found()).toEqual(last);
    expect(await groups()).toBe("12356");
    await putAll(database, "P", documentOf(4, { Age: 7 }));
    expect(await groups()).toBe("123564");

    await engine.close();
    engine = await openFolder({ folder });
    database = (await engine.databases.find("db")) as OpenDatabase;
    expect(await found()).toEqual(last);
    await database.delete("p/2");
    // An index that reads both changes in one batch sees no deletion.
    await found();
    await putAll(database, "P", documentOf(2));
    expect(await found()).toEqual([
      "134562",
      "456",
      "621354",
      "413562",
      "134562",
      "134562",
      "13562",
      "134562",
      "563142",
    ]);
    await engine.close();
  });
});
