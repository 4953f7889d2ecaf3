/**
 * Reduces of many documents into ten groups, and into half as many groups as documents, by an automatic and by a
 * deployed index: the build time, and the cost of maintenance compared with a map index when documents change and
 * every hundred changes are followed by a query, by the key of a group or by a number.
 *
 * JACKDAW_BENCH_DOCUMENTS: number of documents.
 */
import { createHash } from "node:crypto";
import type { OpenDatabase } from "../engine/api/database/open-database.ts";
import type { JsonObject } from "../engine/base/json/json-object.ts";
import { type BenchSize, costOf, interleaved, printer, seeded } from "./harness.ts";
import { costText, fill, grownBy, openBench, runQuery, settledTotal } from "./opened-database.ts";

const upkeepRatioMax = 1.5;
/** Upper bound of all totals. */
const beyond = 1_000_000_000_000;
const map = (key: string) =>
  `map('Orders', o => ({ Key: o.${key}, Count: 1, Total: o.Total, Units: o.Units }))`;
const reduce =
  "groupBy(x => x.Key).aggregate(g => ({ Key: g.key, Count: g.values.reduce((n, v) => n + v.Count, 0), Total: g.values.reduce((n, v) => n + v.Total, 0), Units: g.values.reduce((n, v) => n + v.Units, 0) }))";

interface Variant {
  /** Definition of a deployed index; null if the first query creates the index. */
  readonly definition: JsonObject | null;
  readonly query: string;
  /** Queries without results, by the fields of their conditions. */
  readonly waiting: Readonly<Record<string, string>>;
}

const grouped = (key: string): Variant => ({
  definition: null,
  query: `from Orders group by ${key} where count() > 0 select ${key}, count(), sum(Total), sum(Units) limit 3`,
  waiting: {
    "by key": `from Orders group by ${key} where ${key} = 'x' select ${key}, count(), sum(Total), sum(Units)`,
    "by sum": `from Orders group by ${key} where sum(Total) > ${beyond} select ${key}, count(), sum(Total), sum(Units)`,
  },
});
const deployed = (key: string): Variant => ({
  definition: { Name: `By${key}`, Maps: [map(key)], Reduce: reduce },
  query: `from index 'By${key}' where Count > 0 limit 3`,
  waiting: {
    "by key": `from index 'By${key}' where Key = 'x'`,
    "by sum": `from index 'By${key}' where Total > ${beyond}`,
  },
});

const variants: Readonly<Record<string, Variant>> = {
  "automatic map": {
    definition: null,
    query: "from Orders where Customer = 'x' and Total > 1 and Units > 1 limit 3",
    waiting: {
      "by key": "from Orders where Customer = 'x'",
      "by sum": `from Orders where Total > ${beyond}`,
    },
  },
  "deployed map": {
    definition: { Name: "Plain", Maps: [map("Customer")] },
    query: "from index 'Plain' where Count > 0 limit 3",
    waiting: {
      "by key": "from index 'Plain' where Key = 'x'",
      "by sum": `from index 'Plain' where Total > ${beyond}`,
    },
  },
  "automatic, ten groups": grouped("Region"),
  "automatic, many groups": grouped("Customer"),
  "deployed, ten groups": deployed("Region"),
  "deployed, many groups": deployed("Customer"),
};

/** Runs the bench; equal hashes mean equal results. */
export async function run(size: BenchSize): Promise<string[]> {
  const given = Number(process.env["JACKDAW_BENCH_DOCUMENTS"] ?? 1_000_000);
  const count = size === "smoke" ? 1_000 : given;
  const changed = size === "smoke" ? 100 : 20_000;
  const { lines, print } = printer();
  const hash = createHash("sha256");
  const database = await openBench();
  await fill(database, orders(count));
  for (const [name, variant] of Object.entries(variants)) {
    const { cost, bytes } = await grownBy(() => settled(database, variant));
    print(`${name}, ${count} documents: ${costText(cost)}, ${(bytes / 1e6).toFixed(0)} MB`);
    const { outcome, rows } = await runQuery(database, variant.query);
    hash.update(`${outcome.totalResults} ${rows.map((row) => row.replace(/,"@metadata".*/, ""))}`);
    drop(database);
  }
  const writing = await upkeep(database, null, count, changed);
  for (const kind of ["automatic", "deployed"] as const) {
    const wanted = Object.entries(variants).filter(([name]) => name.startsWith(kind));
    /** Times of the map index, by query type. */
    const plain = new Map<string, number>();
    for (const [name, variant] of wanted) {
      await settled(database, variant);
      for (const [how, query] of Object.entries(variant.waiting)) {
        const micros = (await upkeep(database, query, count, changed)) - writing;
        if (!plain.has(how)) plain.set(how, micros);
        const times = micros / (plain.get(how) as number);
        const verdict = times <= upkeepRatioMax ? "reached" : "missed";
        print(
          `maintenance of ${name}, queried ${how}: ${micros.toFixed(1)} µs per changed document, ${times.toFixed(2)}x of a map index (at most ${upkeepRatioMax}: ${verdict})`,
        );
      }
      drop(database);
    }
  }
  await database.close();
  print(`result ${hash.digest("hex").slice(0, 16)}`);
  return lines;
}

async function settled(database: OpenDatabase, { definition, query }: Variant): Promise<void> {
  if (definition !== null) await database.queries.administration.deploy([definition], true);
  await settledTotal(database, query);
}

function drop({ queries: { indexes } }: OpenDatabase): void {
  for (const { name } of indexes.all()) indexes.drop(name);
}

/**
 * Returns the processor time of changing documents, with the query `waiting` after every hundred changes, in
 * microseconds per document. `waiting` null measures writes alone.
 */
async function upkeep(
  database: OpenDatabase,
  waiting: string | null,
  count: number,
  changed: number,
): Promise<number> {
  let seed = 9;
  const { changes } = await interleaved(5, {
    changes: async () => {
      const random = seeded(seed++);
      const { processorMs } = await costOf(async () => {
        for (let done = 0; done < changed; done += 100) {
          await fill(database, changesOf(random, count, Math.min(100, changed - done)));
          if (waiting !== null) await settledTotal(database, waiting);
        }
      });
      return (processorMs * 1000) / changed;
    },
  });
  return changes as number; // named above
}

function* orders(count: number): Generator<readonly [string, string]> {
  const random = seeded(1);
  for (let n = 0; n < count; n++) yield order(random, n, count);
}

function* changesOf(
  random: () => number,
  count: number,
  changed: number,
): Generator<readonly [string, string]> {
  for (let i = 0; i < changed; i++) yield order(random, random() % count, count);
}

function order(random: () => number, n: number, count: number): readonly [string, string] {
  const customer = random() % Math.ceil(count / 2);
  const total = (random() % 1_000_000) / 100;
  return [
    `orders/${n}`,
    `{"Region":"region ${random() % 10}","Customer":"customers/${customer}","Total":${total},"Units":${random() % 50},"Note":"as ordered","@metadata":{"@collection":"Orders"}}`,
  ];
}
