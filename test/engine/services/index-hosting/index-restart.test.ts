import { expect, onTestFinished, test } from "vitest";
import { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { nodeEnvironment } from "../../../../engine/base/platform/node-environment.ts";
import { ImagePool } from "../../../../engine/storage/segments/image-pool.ts";
import { SegmentCache } from "../../../../engine/storage/segments/segment-cache.ts";
import { putParsed } from "../../../../engine/writes/documents.ts";
import { type QueryReply, query } from "../../../support/open-database.ts";
import { newTestFolder } from "../../../support/open-test-database.ts";

const documentCount = 2_000;

/** Segments of which at most one is in memory, in addition to the one being written. */
const coldLog = () => ({
  log: {
    segmentBytesMin: 16_384,
    segmentBytesMax: 65_536,
    cache: new SegmentCache(1, new ImagePool(true)),
  },
});

async function open(folder: string): Promise<OpenDatabase> {
  const database = await OpenDatabase.open(nodeEnvironment(), "cold", `${folder}/db`, coldLog());
  onTestFinished(() => database.close());
  return database;
}

function parseAndPut(
  database: OpenDatabase,
  documents: readonly (readonly [string, object])[],
): Promise<void> {
  return database.write((transaction) => {
    for (const [id, body] of documents) {
      putParsed(transaction, id, transaction.state.parseText(JSON.stringify(body)));
    }
  });
}

const cities = 20;

async function fill(database: OpenDatabase): Promise<void> {
  await parseAndPut(
    database,
    Array.from({ length: cities }, (_, i) => [
      `cities/${i}`,
      { Name: `City ${i}`, "@metadata": { "@collection": "Cities" } },
    ]),
  );
  for (let from = 0; from < documentCount; from += 500) {
    await parseAndPut(
      database,
      Array.from({ length: 500 }, (_, k) => {
        const i = from + k;
        const body = {
          Name: `user ${i} ${i % 7 === 0 ? "harbour" : "lake"}`,
          Age: i % 60,
          City: `cities/${i % cities}`,
          "@metadata": { "@collection": "Users" },
        };
        return [`users/${i}`, body];
      }),
    );
  }
}

const definitions = [
  {
    Name: "Users/ByAge",
    Maps: ["map('Users', u => ({ Age: u.Age, Count: 1 }))"],
    Reduce:
      "groupBy(x => x.Age).aggregate(g => ({ Age: g.key, Count: g.values.reduce((n, v) => n + v.Count, 0) }))",
  },
  {
    Name: "Users/ByCityName",
    Maps: [
      'from u in docs.Users let c = LoadDocument(u.City, "Cities") select new { CityName = c.Name }',
    ],
  },
];

const questions = [
  "from Users where Age > 57 order by Age as long desc, id() limit 10",
  "from Users where search(Name, 'harbour') order by id() limit 3",
  "from Users group by City where count() > 1 order by City select City, count(), sum(Age)",
  "from index 'Users/ByAge' where Count > 10 order by Age as long limit 5",
  "from index 'Users/ByCityName' where CityName = 'city 7' order by id() limit 4",
];

async function answers(database: OpenDatabase): Promise<object[]> {
  const replies: object[] = [];
  for (const question of questions) {
    const reply: QueryReply = await query(database, question, { timeoutMs: 20_000 });
    expect(reply.outcome?.isStale, question).toBe(false);
    replies.push({ question, total: reply.outcome?.totalResults, rows: reply.rows });
  }
  return replies;
}

test("indexes are built over records that are all on disk", async () => {
  const folder = await newTestFolder();
  const first = await open(folder);
  await fill(first);
  await first.close();

  const second = await open(folder);
  expect(second.state.log.isInMemory()).toBe(false);
  await second.queries.administration.deploy(definitions, true);
  const expected = await answers(second);
  expect(expected).toMatchObject([
    { total: 66 },
    { total: 286 },
    { total: cities },
    { total: 60 },
    { total: documentCount / cities },
  ]);
  await second.close();

  const third = await open(folder);
  expect(await answers(third)).toEqual(expected);
  // Writes after the restart are indexed, too.
  await third.put("users/extra", {
    Age: 59,
    City: "cities/7",
    Name: "harbour",
    "@metadata": { "@collection": "Users" },
  });
  await third.put("cities/8", { Name: "City 7", "@metadata": { "@collection": "Cities" } });
  const changed = await answers(third);
  expect(changed).toMatchObject([
    { total: 67 },
    { total: 287 },
    { total: cities },
    { total: 60 },
    { total: 2 * (documentCount / cities) + 1 },
  ]);
  await third.close();

  const fourth = await open(folder);
  expect(await answers(fourth)).toEqual(changed);
});

test("facets and suggestions are the same after a restart, with the setup on disk", async () => {
  const folder = await newTestFolder();
  const first = await open(folder);
  await fill(first);
  await parseAndPut(first, [
    [
      "facets/1",
      {
        Facets: [{ FieldName: "City", Options: { PageSize: 2 } }],
        RangeFacets: [{ Ranges: ["Age < 10"] }],
      },
    ],
  ]);
  await parseAndPut(first, [["later", { Text: "x".repeat(60_000) }]]);
  const definition = {
    Name: "Users/Search",
    Maps: ["map('Users', u => ({ Name: u.Name, City: u.City, Age: u.Age }))"],
    Fields: { Name: { Indexing: "Search", Suggestions: true } },
  };
  await first.queries.administration.deploy([definition], true);
  const requested = [
    "from index 'Users/Search' select facet(City), facet(Age < 30, Age >= 30, sum(Age)), facet(sum(Age))",
    "from index 'Users/Search' where Name = 'harbour' select facet(id('facets/1'))",
    "from index 'Users/Search' select suggest(Name, 'harbor')",
    "from Users select suggest(City, 'cities/11')",
    "from index 'Users/Search' where moreLikeThis(id() = 'users/7') limit 3",
  ];
  const rowsOf = async (database: OpenDatabase) => {
    const found: object[] = [];
    for (const question of requested) found.push((await query(database, question)).rows);
    return found;
  };
  const expected = await rowsOf(first);
  expect(expected).toMatchObject([
    [{ Name: "City" }, { Values: [{ Count: 1010 }, { Count: 990 }] }, { Name: "@AllResults" }],
    [{ Values: [{ Range: "cities/0" }, { Range: "cities/1" }] }, { Name: "Age" }],
    [{ Name: "Name", Suggestions: ["harbour"] }],
    [{ Name: "City" }],
    [{}, {}, {}],
  ]);
  await first.close();

  const second = await open(folder);
  expect(await rowsOf(second)).toEqual(expected);
});

test("vectors are the same after a restart, and follow later changes", async () => {
  const folder = await newTestFolder();
  const first = await open(folder);
  const put = (database: OpenDatabase, from: number, to: number, shift: number) =>
    parseAndPut(
      database,
      Array.from({ length: to - from }, (_, k) => {
        const i = from + k;
        const body = {
          Even: i % 2 === 0,
          V: [Math.cos(i + shift), Math.sin(i + shift), 0.5],
          "@metadata": { "@collection": "Arrows" },
        };
        return [`arrows/${i}`, body];
      }),
    );
  await put(first, 0, 500, 0);
  await first.queries.administration.deploy(
    [
      {
        Name: "Arrows/Small",
        Maps: ["map('Arrows', a => ({ Even: a.Even, V: createVector(a.V) }))"],
        Fields: { V: { Vector: { DestinationEmbeddingType: "Int8" } } },
      },
    ],
    true,
  );
  const parametersText = '{"v":[0.6,0.8,0.5]}';
  const found = async (database: OpenDatabase) => {
    const replies: QueryReply[] = [];
    for (const text of [
      "from Arrows where vector.search(V, $v, 0.5, 12)",
      "from Arrows where vector.search(V, $v, 0.5, 12) and Even = true",
      "from index 'Arrows/Small' where vector.search(V, $v, 0.9) and Even = false",
    ]) {
      replies.push(await query(database, text, { parametersText, timeoutMs: 20_000 }));
    }
    return replies.map(({ ids }) => ids);
  };
  const expected = await found(first);
  expect(expected.map((ids) => ids.length)).toEqual([12, 12, 16]);
  await first.close();

  const second = await open(folder);
  expect(await found(second)).toEqual(expected);
  await put(second, 0, 300, 1);
  for (const id of expected[1] as string[]) await second.delete(id);
  const changed = await found(second);
  expect(changed).not.toEqual(expected);
  expect(changed[1]?.some((id) => expected[1]?.includes(id))).toBe(false);
  await second.close();

  const third = await open(folder);
  expect(await found(third)).toEqual(changed);
});
