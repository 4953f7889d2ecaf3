/**
 * Facets over all documents and over matches of a condition: by terms, by ranges, with sums, in a deployed index; and
 * the nearest of a million places, in an automatic index. Whole queries, as a client sends them.
 *
 * JACKDAW_BENCH_DOCUMENTS: number of documents.
 */
import { createHash } from "node:crypto";
import { type BenchSize, printer, seeded } from "./harness.ts";
import { fill, openBench, runQuery, settledTotal, timesOf, timesText } from "./opened-database.ts";

const definition = {
  Name: "Places/Facets",
  Maps: [
    "map('Places', p => ({ Kind: p.Kind, Owner: p.Owner, Price: p.Price, Stars: p.Stars, Tags: p.Tags }))",
  ],
};

const deployed = "from index 'Places/Facets'";
const cheap =
  "Price < 100, Price >= 100 and Price < 500, Price >= 500 and Price < 900, Price >= 900";

const facets: Readonly<Record<string, string>> = {
  "50 terms": `${deployed} select facet(Kind)`,
  "100,000 terms": `${deployed} select facet(Owner)`,
  "lists of terms": `${deployed} select facet(Tags)`,
  "four ranges": `${deployed} select facet(${cheap})`,
  "50 terms, with a sum and an average": `${deployed} select facet(Kind, sum(Price), avg(Stars))`,
  "four ranges, with a sum and an average": `${deployed} select facet(${cheap}, sum(Price), avg(Stars))`,
  "50 terms where stars are 3 or more": `${deployed} where Stars >= 3 select facet(Kind)`,
  "50 terms, with a sum, where stars are 3 or more": `${deployed} where Stars >= 3 select facet(Kind, sum(Price))`,
  "four ranges where the kind is fixed": `${deployed} where Kind = 'kind 7' select facet(${cheap})`,
  "three facets": `${deployed} select facet(Kind), facet(Stars), facet(${cheap})`,
};

const circle = (km: number, y: number, x: number) =>
  `spatial.within(spatial.point(Y, X), spatial.circle(${km}, ${y}, ${x}))`;
const nearest = (y: number, x: number) =>
  `order by spatial.distance(spatial.point(Y, X), spatial.point(${y}, ${x})) limit 20`;

/** Runs the bench; equal hashes mean equal results. */
export async function run(size: BenchSize): Promise<string[]> {
  const given = Number(process.env["JACKDAW_BENCH_DOCUMENTS"] ?? 1_000_000);
  const count = size === "smoke" ? 2_000 : given;
  const rounds = size === "smoke" ? 1 : 7;
  const { lines, print } = printer();
  const database = await openBench();
  await fill(database, places(count));
  await database.queries.administration.deploy([definition], true);
  await settledTotal(database, `${deployed} where Kind = 'x'`);
  await settledTotal(database, `from Places where ${circle(1, 0, 0)}`);
  const hash = createHash("sha256");
  for (const [name, text] of Object.entries(facets)) {
    print(
      `${count} documents, facets by ${name}: ${timesText(await timesOf(database, [text], rounds))}`,
    );
    hash.update((await runQuery(database, text)).rows.join());
  }
  const random = seeded(5);
  const many = Array.from({ length: size === "smoke" ? 2 : 50 }, () => randomPlace(random));
  const asked: Readonly<Record<string, (y: number, x: number) => string>> = {
    "the 20 nearest": nearest,
    "the 20 nearest within 500 km": (y, x) => `where ${circle(500, y, x)} ${nearest(y, x)}`,
    "the 20 nearest within 5,000 km": (y, x) => `where ${circle(5_000, y, x)} ${nearest(y, x)}`,
    "the 20 nearest of a kind": (y, x) => `where Kind = 'kind 7' ${nearest(y, x)}`,
    "the 20 farthest": (y, x) => nearest(y, x).replace(" limit", " desc limit"),
    "all within 100 km": (y, x) => `where ${circle(100, y, x)}`,
  };
  for (const [name, make] of Object.entries(asked)) {
    const texts = many.map(([y, x]) => `from Places ${make(y, x)}`);
    await settledTotal(database, texts[0] as string); // texts is not empty
    print(`${name}: ${timesText(await timesOf(database, texts, Math.min(rounds, 3)))}`);
    for (const text of texts) {
      const { outcome, rows } = await runQuery(database, text);
      hash.update(`${outcome.totalResults} ${rows.map((row) => /"@id":"([^"]*)"/.exec(row)?.[1])}`);
    }
  }
  await database.close();
  print(`result ${hash.digest("hex").slice(0, 16)}`);
  return lines;
}

/** Returns latitude and longitude, uniform on the globe. */
function randomPlace(random: () => number): [number, number] {
  const y = (Math.asin((random() / 2 ** 32) * 2 - 1) * 180) / Math.PI;
  const x = (random() / 2 ** 32) * 360 - 180;
  return [Math.round(y * 1e5) / 1e5, Math.round(x * 1e5) / 1e5];
}

function* places(count: number): Generator<readonly [string, string]> {
  const random = seeded(1);
  const owners = Math.ceil(count / 10);
  for (let n = 0; n < count; n++) {
    const kind = Math.floor(Math.sqrt(random() % 2500));
    const [y, x] = randomPlace(random);
    const tags = `["tag ${random() % 100}","tag ${random() % 1000}"]`;
    const price = (random() % 100_000) / 100;
    yield [
      `places/${n}`,
      `{"Kind":"kind ${kind}","Owner":"owner ${random() % owners}","Price":${price},"Stars":${random() % 6},"Tags":${tags},"Y":${y},"X":${x},"@metadata":{"@collection":"Places"}}`,
    ];
  }
}
