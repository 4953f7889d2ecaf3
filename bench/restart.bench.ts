/**
 * Indexes across a restart: five indexes over a million documents, in a server in a separate process. Measures the
 * time from `Server available on:` until no index is stale, after a clean stop and after a kill immediately after a
 * write; the cost of snapshots during indexing; and the disk space.
 *
 * JACKDAW_BENCH_DOCUMENTS: number of documents.
 */
import { once } from "node:events";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { type DatabaseOptions, OpenDatabase } from "../engine/api/database/open-database.ts";
import { nodeEnvironment } from "../engine/base/platform/node-environment.ts";
import {
  type BenchSize,
  type Cost,
  costOf,
  interleavedCosts,
  printer,
  seeded,
  temporaryFolder,
  timeMs,
} from "./harness.ts";
import { PlainClient, type QueryReply, startPlain } from "./http/plain-client.ts";
import { stop } from "./http/processes.ts";

const answerMsMax = 2_000;
const costRatioMax = 1.3;
const diskRatioMax = 2.5;
const pollMs = 10;
const timeout = "00:10:00";

const definitions = [
  {
    Name: "Users/Ages",
    Maps: ["map('Users', u => ({ Age: u.Age, Count: 1 }))"],
    Reduce:
      "groupBy(x => x.Age).aggregate(g => ({ Age: g.key, Count: g.values.reduce((n, v) => n + v.Count, 0) }))",
  },
  {
    Name: "Users/CityNames",
    Maps: [
      'from u in docs.Users let c = LoadDocument(u.City, "Cities") select new { CityName = c.Name }',
    ],
  },
];

const queries: Readonly<Record<string, string>> = {
  range: "from Users where Age >= 70 and City = 'cities/7' order by Score as double limit 5",
  "full text": "from Users where search(Name, 'harbour') limit 5",
  "group by":
    "from Users group by City where count() > 1 order by count() as long desc select City, count(), sum(Age) limit 5",
  "map-reduce, JavaScript": "from index 'Users/Ages' where Count > 1 limit 5",
  "LoadDocument, C#": "from index 'Users/CityNames' where CityName = 'city 7' limit 5",
};

const words = "ice harbour lake market north bridge copper lantern velvet meadow stone river cloud";

export async function run(size: BenchSize): Promise<string[]> {
  const given = Number(process.env["JACKDAW_BENCH_DOCUMENTS"] ?? 1_000_000);
  const count = size === "smoke" ? 2_000 : given;
  const { lines, print } = printer();
  const folder = temporaryFolder();
  try {
    const data = join(folder.path, "data");
    await benchRestarts(data, count, print);
    await benchDisk(data, print);
    await benchCost(folder.path, Math.ceil(count / 5), size === "smoke" ? 1 : 3, print);
  } finally {
    folder.remove();
  }
  return lines;
}

async function benchRestarts(
  data: string,
  count: number,
  print: (line: string) => void,
): Promise<void> {
  let server = await startPlain(data);
  try {
    const first = new PlainClient(server.url, "bench");
    await first.fill(commandsOf(count));
    await first.ask("PUT", "/databases/bench/indexes", [
      JSON.stringify({ Indexes: definitions.slice(0, 1) }),
    ]);
    await first.ask("PUT", "/databases/bench/admin/indexes", [
      JSON.stringify({ Indexes: definitions.slice(1) }),
    ]);
    const built = await timeMs(async () => {
      for (const [name, query] of Object.entries(queries)) {
        const reply = await settled(first, query);
        if (reply.TotalResults === 0 || reply.IsStale) throw new Error(`nothing for ${name}`);
      }
    });
    print(`${count} documents, five indexes built in ${(built / 1000).toFixed(1)} s`);
    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      const client = new PlainClient(server.url, "bench");
      const update = { Age: 71, City: "cities/7", Name: "late harbour", Score: 1 };
      const metadata = { "@metadata": { "@collection": "Users" } };
      for (let n = 0; n < 100; n++) {
        const body = JSON.stringify({ ...update, ...metadata });
        await client.ask("PUT", `/databases/bench/docs?id=users%2F${n * 7}`, [body]);
      }
      const expected = await totals(client);
      const exit = once(server.process, "exit");
      const stopMs = await timeMs(async () => {
        server.process.kill(signal);
        await exit;
      });
      server = await startPlain(data);
      print(await benchAnswers(server.url, signal, stopMs, expected));
    }
  } finally {
    await stop(server.process);
  }
}

function settled(client: PlainClient, query: string): Promise<QueryReply> {
  const wait = { WaitForNonStaleResults: true, WaitForNonStaleResultsTimeout: timeout };
  return client.query({ Query: query, ...wait });
}

async function totals(client: PlainClient): Promise<Record<string, number>> {
  const found: Record<string, number> = {};
  for (const [name, query] of Object.entries(queries)) {
    found[name] = (await settled(client, query)).TotalResults;
  }
  return found;
}

/** Runs all queries concurrently, each until its reply is not stale. */
async function benchAnswers(
  url: string,
  signal: string,
  stopMs: number,
  expected: Readonly<Record<string, number>>,
): Promise<string> {
  const start = performance.now();
  const answers = Object.entries(queries).map(async ([name, query]) => {
    const client = new PlainClient(url, "bench");
    for (;;) {
      const { IsStale, TotalResults } = await client.query({ Query: query });
      if (!IsStale) {
        if (TotalResults !== expected[name]) {
          throw new Error(`${name}: ${TotalResults} instead of ${expected[name]}`);
        }
        return { name, ms: performance.now() - start };
      }
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  });
  const times = await Promise.all(answers);
  const worst = Math.max(...times.map(({ ms }) => ms));
  const shown = times.map(({ name, ms }) => `${name} ${ms.toFixed(0)} ms`).join(", ");
  return `after ${signal} (gone in ${stopMs.toFixed(0)} ms), not stale: ${shown} (at most ${answerMsMax}: ${verdict(worst <= answerMsMax)})`;
}

/** Compares the database folder with the live bytes of its log and its indexes. */
async function benchDisk(data: string, print: (line: string) => void): Promise<void> {
  const folder = join(data, "Databases", "bench");
  const onDisk = bytesBelow(folder);
  const entries = bytesBelow(join(folder, "indexes"));
  const database = await OpenDatabase.open(nodeEnvironment(), "bench", folder);
  const { recordBytes, deadBytes } = database.logMetrics;
  await database.close();
  const live = recordBytes - deadBytes + entries;
  const times = onDisk / live;
  print(
    `disk ${megabytes(onDisk)}, live ${megabytes(live)} (indexes ${megabytes(entries)}): ` +
      `${times.toFixed(2)}x (at most ${diskRatioMax}: ${verdict(times <= diskRatioMax)})`,
  );
}

/** Measures indexing in this process, with and without snapshots. */
async function benchCost(
  folder: string,
  count: number,
  rounds: number,
  print: (line: string) => void,
): Promise<void> {
  let number = 0;
  const indexing = async (options: DatabaseOptions): Promise<Cost> => {
    const path = join(folder, `cost-${number++}`);
    const database = await OpenDatabase.open(nodeEnvironment(), "cost", path, options);
    await fillHere(database, count);
    const cost = await costOf(async () => {
      await database.queries.administration.deploy(definitions, true);
      const wait = { waitForNonStale: true, timeoutMs: 600_000 };
      for (const query of Object.values(queries)) {
        await database.query(query, wait, { add: () => null });
      }
    });
    await database.abandon();
    return cost;
  };
  const off = { indexSnapshots: { workMsMin: Number.POSITIVE_INFINITY } };
  const costs = await interleavedCosts(rounds, {
    kept: () => indexing({}),
    off: () => indexing(off),
  });
  const times = (costs["kept"]?.processorMs ?? 0) / (costs["off"]?.processorMs ?? 1);
  print(
    `processor time of indexing ${count} documents with snapshots: ${times.toFixed(2)}x of without ` +
      `(at most ${costRatioMax}: ${verdict(times <= costRatioMax)})`,
  );
}

async function fillHere(database: OpenDatabase, count: number): Promise<void> {
  const documents = [...bodiesOf(count)];
  for (let from = 0; from < documents.length; from += 1_000) {
    await Promise.all(
      documents.slice(from, from + 1_000).map(([id, text]) => database.put(id, text)),
    );
  }
}

const verdict = (isReached: boolean) => (isReached ? "reached" : "missed");
const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;

function bytesBelow(folder: string): number {
  let bytes = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    bytes += entry.isDirectory() ? bytesBelow(path) : statSync(path).size;
  }
  return bytes;
}

/** Ids with texts: cities, then users. */
function* bodiesOf(count: number): Generator<[string, string]> {
  const random = seeded(1);
  const names = words.split(" ");
  const cityCount = Math.max(10, Math.min(1_000, Math.floor(count / 100)));
  for (let n = 0; n < cityCount; n++) {
    yield [`cities/${n}`, `{"Name":"city ${n}","@metadata":{"@collection":"Cities"}}`];
  }
  for (let n = 0; n < count; n++) {
    const name = `User ${n} ${names[random() % names.length]} ${names[random() % names.length]}`;
    yield [
      `users/${n}`,
      `{"Name":"${name}","Age":${18 + (random() % 60)},"City":"cities/${random() % cityCount}","Score":${(random() % 10_000) / 10},"Email":"u${n}@example.org","@metadata":{"@collection":"Users"}}`,
    ];
  }
}

function* commandsOf(count: number): Generator<string> {
  let opening = "[";
  for (const [id, text] of bodiesOf(count)) {
    yield `${opening}{"Id":"${id}","Type":"PUT","Document":${text}}`;
    opening = ",";
  }
  yield "]";
}
