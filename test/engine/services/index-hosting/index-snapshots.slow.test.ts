import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import {
  type DatabaseOptions,
  OpenDatabase,
} from "../../../../engine/api/database/open-database.ts";
import { nodeEnvironment } from "../../../../engine/base/platform/node-environment.ts";
import { putCompareExchange } from "../../../../engine/writes/compare-exchange.ts";
import { incrementCounter } from "../../../../engine/writes/counters.ts";
import { query } from "../../../support/open-database.ts";
import { newTestFolder } from "../../../support/open-test-database.ts";
import { SeededRandom } from "../../../support/random.ts";

async function open(folder: string, options: DatabaseOptions = {}): Promise<OpenDatabase> {
  const database = await OpenDatabase.open(nodeEnvironment(), "kept", `${folder}/db`, options);
  onTestFinished(() => database.close());
  return database;
}

/** Copies the files to another folder, as a kill of the process would leave them. */
async function crashed(folder: string, options: DatabaseOptions = {}): Promise<OpenDatabase> {
  const copy = await newTestFolder();
  cpSync(`${folder}/db`, `${copy}/db`, {
    recursive: true,
    filter: (path) => !/\bLOCK[^/]*$/.test(path),
  });
  return await open(copy, options);
}

const definitions = [
  {
    Name: "Loaded",
    Maps: [
      'from u in docs.Users let c = LoadDocument(u.City, "Cities") select new { CityName = c.Name, u.Age }',
    ],
    Fields: { CityName: { Storage: "Yes" } },
  },
  {
    Name: "Reduced",
    Maps: ["map('Users', u => ({ Age: u.Age, Count: 1 }))"],
    Reduce:
      "groupBy(x => x.Age).aggregate(g => ({ Age: g.key, Count: g.values.reduce((n, v) => n + v.Count, 0) }))",
    OutputReduceToCollection: "Ages",
  },
  {
    Name: "Fanned",
    Maps: [
      "map('Users', u => (u.Tags || []).map(t => boost({ Tag: t, Owner: id(u), List: u.Tags, _: createField('is_' + t, u.Age, { storage: true }) }, u.Age > 30 ? 2 : 1)))",
    ],
  },
  {
    Name: "Counted",
    Maps: ["counters.map('Users', 'likes', c => ({ Likes: c.Value, Of: c.DocumentId }))"],
  },
  {
    Name: "Exchanged",
    Maps: ["map('Users', u => ({ Rate: (cmpxchg('rates/' + u.City) || {}).Rate, Age: u.Age }))"],
  },
  {
    Name: "Placed",
    Maps: [
      "map('Users', u => ({ At: createSpatialField(u.Lat, u.Lng), Area: createSpatialField(u.Area) }))",
    ],
    Fields: { At: { Spatial: { Units: "Miles" } } },
  },
  { Name: "Failing", Maps: ["map('Users', u => { if (u.Bad) throw 'no'; return { Ok: 1 }; })"] },
];

const questions = [
  "from Users where Age > 20 order by Age as long, id()",
  "from Users where search(Name, 'lake') order by id()",
  "from Users group by City order by City select City, count(), sum(Age), sum(Score)",
  "from index 'Loaded' where CityName != 'x' order by id() select CityName, Age",
  "from index 'Reduced' order by Age as long",
  "from Ages order by Age as long",
  "from index 'Fanned' where Tag in ('a', 'b') order by Owner, id()",
  "from index 'Fanned' where is_c > 10 order by id()",
  "from index 'Counted' order by Of, Likes as long",
  "from index 'Exchanged' where Rate > 0 order by id()",
  "from Users where spatial.within(spatial.point(Lat, Lng), spatial.circle(3000, 10, 10)) order by id()",
  "from index 'Placed' where spatial.within(At, spatial.circle(2000, 10, 10)) order by id()",
  "from index 'Placed' where spatial.intersects(Area, spatial.circle(900, 10, 10)) order by id()",
  "from index 'Placed' where exists(At) order by spatial.distance(At, spatial.point(1, 2)) limit 9",
  "from index 'Failing' where Ok = 1 order by id()",
];

/** Rows without the parts that differ between databases. */
function shown(rows: readonly Record<string, unknown>[]): object[] {
  return rows.map(({ "@metadata": metadata, ...rest }) => ({
    ...rest,
    id: (metadata as { "@id"?: string } | undefined)?.["@id"]?.replace(/\d{5,}$/, ""),
  }));
}

async function answers(database: OpenDatabase): Promise<object[]> {
  const replies: object[] = [];
  for (const question of questions) {
    const { outcome, rows } = await query(database, question, { timeoutMs: 20_000 });
    expect(outcome?.isStale, question).toBe(false);
    replies.push({ question, total: outcome?.totalResults, rows: shown(rows) });
  }
  database.queries.indexes.checkInvariants();
  return replies;
}

/** Returns the results of rebuilt indexes. */
async function rebuiltAnswers(database: OpenDatabase): Promise<object[]> {
  for (const { name } of database.queries.indexes.all()) database.queries.indexes.reset(name);
  return await answers(database);
}

const changesOf = (database: OpenDatabase) =>
  database.queries.indexes.all().map(({ index }) => index.changeCount);

const areaAt = (x: number, y: number) =>
  `POLYGON((${x} ${y}, ${x + 5} ${y}, ${x + 5} ${y + 5}, ${x} ${y}))`;

const userOf = (random: SeededRandom, i: number) => ({
  Name: `user ${i} ${random.below(2) === 0 ? "lake" : "harbour"}`,
  Age: random.below(60),
  Score: random.below(1000) / 8,
  City: `cities/${random.below(8)}`,
  Tags: ["a", "b", "c"].slice(0, random.below(4)),
  Bad: random.below(12) === 0,
  ...(random.chance(0.2)
    ? {}
    : { Lat: random.below(900) / 10 - 45, Lng: random.below(3600) / 10 - 180 }),
  Area: random.chance(0.5) ? null : areaAt(random.below(60) - 30, random.below(60) - 30),
  "@metadata": { "@collection": "Users" },
});

async function change(database: OpenDatabase, random: SeededRandom, count: number): Promise<void> {
  const writes: Promise<unknown>[] = [];
  for (let step = 0; step < count; step++) {
    const i = random.below(200);
    const city = { Name: `city ${random.below(30)}`, "@metadata": { "@collection": "Cities" } };
    const kind = random.below(14);
    if (kind < 8) writes.push(database.put(`users/${i}`, userOf(random, i)));
    else if (kind < 10) writes.push(database.delete(`users/${i}`));
    else if (kind === 10) writes.push(database.put(`cities/${random.below(8)}`, city));
    else if (kind === 11) writes.push(database.delete(`cities/${random.below(8)}`));
    else if (kind === 12) {
      writes.push(
        database.write((transaction) => {
          const id = `users/${i}`;
          if (transaction.find(id) >= 0) incrementCounter(transaction, id, "likes", 3n);
        }),
      );
    } else {
      const key = `rates/cities/${random.below(8)}`;
      const { documents } = database.queries.administration;
      const text = JSON.stringify({ Object: { Rate: random.below(9) } });
      writes.push(
        database.write((transaction) =>
          putCompareExchange(transaction, key, documents.compareExchangeVersionOf(key), text),
        ),
      );
    }
  }
  await Promise.all(writes);
}

async function filled(folder: string, random: SeededRandom, options: DatabaseOptions = {}) {
  const database = await open(folder, options);
  await change(database, random, 600);
  await database.queries.administration.deploy(definitions, true);
  await answers(database);
  return database;
}

test("after a clean stop, indexes have the same entries in the same order, and map nothing again", async () => {
  const folder = await newTestFolder();
  const reports: string[] = [];
  const first = await filled(folder, new SeededRandom(7));
  const expected = await answers(first);
  const statistics = first.queries.indexes.all().map((index) => index.statistics());
  await first.close();
  const again = await open(folder, { report: (message) => reports.push(message) });
  expect(await answers(again)).toEqual(expected);
  expect(changesOf(again).every((count) => count === 0)).toBe(true);
  const failing = again.queries.indexes.byName("Failing");
  expect(failing?.statistics().mapErrors).toBe(
    statistics.find(({ name }) => name === "Failing")?.mapErrors,
  );
  expect(failing?.statistics().mapErrors).toBeGreaterThan(0);
  expect(reports).toEqual([]);
  expect(await rebuiltAnswers(again)).toEqual(expected);
});

test.each([1, 2, 3])(
  "indexes equal rebuilt ones, after stops, crashes and changes (seed %i)",
  async (seed) => {
    const random = new SeededRandom(seed);
    const options = { indexSnapshots: { intervalMs: 1 } };
    let folder = await newTestFolder();
    let database = await filled(folder, random, options);
    for (let round = 0; round < 5; round++) {
      await change(database, random, 1 + random.below(300));
      if (random.below(2) === 0) await answers(database);
      if (random.below(3) === 0) await database.maintenance.cleanTombstones();
      if (random.below(2) === 0) {
        await new Promise((resolve) => setTimeout(resolve, 30 + random.below(100)));
      }
      await change(database, random, random.below(100));
      if (random.below(2) === 0) await database.close();
      const copy = await newTestFolder();
      cpSync(`${folder}/db`, `${copy}/db`, {
        recursive: true,
        filter: (path) => !/\bLOCK[^/]*$/.test(path),
      });
      await database.close();
      folder = copy;
      database = await open(folder, options);
      if (random.below(2) === 0) await change(database, random, random.below(100));
      const got = await answers(database);
      expect(got).toEqual(await rebuiltAnswers(database));
    }
  },
);

test("after a crash, only changes after the snapshots are indexed", async () => {
  const folder = await newTestFolder();
  const random = new SeededRandom(11);
  const first = await filled(folder, random);
  await first.close();
  const second = await open(folder);
  const before = await answers(second);
  await second.put("users/new", userOf(random, 1));
  await second.delete("users/3");
  await second.delete("cities/2");
  const expected = await answers(second);
  expect(expected).not.toEqual(before);
  const third = await crashed(folder);
  expect(await answers(third)).toEqual(expected);
  for (const { index } of third.queries.indexes.all()) {
    expect(index.changeCount).toBeLessThan(20);
  }
});

test("a damaged snapshot is reported, and its index is rebuilt", async () => {
  const folder = await newTestFolder();
  const first = await filled(folder, new SeededRandom(3));
  const expected = await answers(first);
  const indexCount = first.queries.indexes.all().length;
  await first.close();
  const names = readdirSync(`${folder}/db/indexes`);
  expect(names.length).toBe(indexCount);
  for (const [i, name] of names.entries()) {
    const path = `${folder}/db/indexes/${name}`;
    const bytes = readFileSync(path);
    if (i === 0) continue;
    const at = Math.floor((bytes.length * i) / names.length);
    bytes[at] = (bytes[at] as number) ^ 4;
    writeFileSync(path, i === 1 ? bytes.subarray(0, bytes.length - 100) : bytes);
  }
  writeFileSync(`${folder}/db/indexes/0000000099.idx.tmp`, "half");
  writeFileSync(`${folder}/db/indexes/0000000098.idx`, "");
  const reports: string[] = [];
  const again = await open(folder, { report: (message) => reports.push(message) });
  expect(await answers(again)).toEqual(expected);
  expect(reports.length).toBeGreaterThanOrEqual(names.length - 2);
  expect(reports[0]).toMatch(/^Index '.+' of database 'kept' .* rebuilt/);
  await again.close();
  expect(readdirSync(`${folder}/db/indexes`).length).toBe(indexCount);
});

test("a redeployed, reset or deleted index does not return with old entries", async () => {
  const folder = await newTestFolder();
  const first = await filled(folder, new SeededRandom(5));
  await first.close();
  const second = await open(folder);
  const changed = [
    { Name: "Loaded", Maps: ["map('Users', u => ({ CityName: 'other', Age: u.Age }))"] },
  ];
  await second.queries.administration.deploy(changed, true);
  await second.queries.administration.delete("Fanned");
  await second.queries.indexes.waitForNonStale("Loaded", 10_000);
  second.queries.indexes.reset("Reduced");
  const text = "from index 'Loaded' where CityName = 'other'";
  const { outcome } = await query(second, text);
  expect(outcome?.totalResults).toBeGreaterThan(100);
  const third = await crashed(folder);
  expect((await query(third, text)).outcome?.totalResults).toBe(outcome?.totalResults);
  expect(third.queries.indexes.byName("Fanned")).toBeUndefined();
  await third.close();
  const indexCount = second.queries.indexes.all().length;
  await second.close();
  expect(readdirSync(`${folder}/db/indexes`).length).toBe(indexCount);
});

test("a query waits while snapshots are being read", async () => {
  const folder = await newTestFolder();
  const first = await filled(folder, new SeededRandom(9));
  await first.close();
  const again = await open(folder);
  const index = again.queries.indexes.byName("Loaded");
  expect(index?.isRestoring).toBe(true);
  expect(index?.isStale).toBe(true);
  const reply = await query(again, "from index 'Loaded' where Age >= 0", {
    waitForNonStale: false,
  });
  expect(reply.outcome?.isStale).toBe(false);
  expect(reply.outcome?.totalResults).toBeGreaterThan(100);
});

test("mixed values keep their order and their comparisons after a clean stop and a crash", async () => {
  const folder = await newTestFolder();
  const database = await open(folder);
  const values = [
    "2024-01-02",
    "2023-05-06T07:08:09",
    null,
    5,
    18.5,
    "abc",
    ["b", "a"],
    [null, 9],
    { X: 1 },
    1000,
    "",
  ];
  for (const [i, V] of values.entries()) {
    await database.put(`mixed/${i}`, { V, "@metadata": { "@collection": "Mixed" } });
  }
  await database.put("mixed/none", { "@metadata": { "@collection": "Mixed" } });
  const questions = [
    "order by V",
    "order by V as string",
    "order by V as long desc",
    "order by V as alphaNumeric",
  ]
    .concat(["where V > 6", "where V < '2024-01-02'", "where V >= 'a'", "where V = 1000"])
    .map((rest) => `from Mixed ${rest}`);
  const answers = async (of: OpenDatabase) => {
    const found: (readonly string[])[] = [];
    for (const question of questions) found.push((await query(of, question)).ids);
    return found;
  };
  const before = await answers(database);
  expect(before[4]).toEqual(["mixed/0", "mixed/1", "mixed/4", "mixed/7", "mixed/9"]);
  expect(await answers(await crashed(folder))).toEqual(before);
  await database.close();
  const again = await open(folder);
  expect(await answers(again)).toEqual(before);
  await again.put("mixed/late", { V: "zz", "@metadata": { "@collection": "Mixed" } });
  await again.delete("mixed/late");
  expect(await answers(again)).toEqual(before);
});
