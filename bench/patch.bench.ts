/**
 * Patches by query compared with SQLite's json_set on the same documents in the same run, all durable: every
 * document, one in five by a condition, two fields multiplied; a script with a loop compared with parse, modify and
 * stringify in memory. Also the latency of a get during a patch of all documents.
 */
import { join } from "node:path";
import type { OpenDatabase } from "../engine/api/database/open-database.ts";
import { openFolder } from "../engine/api/database/open-folder.ts";

import {
  type SetOperationOptions,
  startPatchByQuery,
} from "../engine/services/querying/operations-by-query.ts";
import { putParsed } from "../engine/writes/documents.ts";
import {
  type BenchSize,
  comparedCosts,
  costOf,
  interleavedCosts,
  noCost,
  percentile,
  printer,
  seeded,
  temporaryFolder,
} from "./harness.ts";
import { batchSize, filledSqlite, patches, type Sqlite, textOf } from "./patched-documents.ts";

/** Number of documents of the first patch, which is measured separately. */
const freshCount = 200_000;
const metadata = ',"@metadata":{"@collection":"Users"}}';
const options: SetOperationOptions = {
  parametersText: null,
  allowsStale: false,
  staleTimeoutMs: 600_000,
  operationsPerSecondMax: undefined,
  hasDetails: false,
  liftsLimits: false,
};

function lineText(n: number): string {
  const line = (k: number) => `{"Product":"products/${n + k}","Quantity":${k + 1},"Price":${k}.5}`;
  return `{"Name":"Order ${n}","Total":0.5,"Lines":[${[0, 1, 2, 3].map(line).join(",")}]}`;
}

export async function run(size: BenchSize): Promise<string[]> {
  const count =
    size === "smoke" ? 2_000 : Number(process.env["JACKDAW_BENCH_DOCUMENTS"] ?? 1_000_000);
  const rounds = size === "smoke" ? 1 : 3;
  const { lines, print } = printer();
  const folder = temporaryFolder();
  const engine = await openFolder({ folder: join(folder.path, "jackdaw") });
  const fresh = filledSqlite(folder.path, Math.min(count, freshCount), "fresh");
  const sqlite = filledSqlite(folder.path, count);
  try {
    const database = await engine.databases.create("bench", {});
    await benchFresh(await engine.databases.create("fresh", {}), fresh, count, print);
    await insertAll(database, count);
    const compare = async (what: string, query: string, sql: string, patched: number) => {
      const costs = await interleavedCosts(rounds, {
        jackdaw: () => costOf(() => patchAll(database, query)),
        peer: async () => (sqlite === null ? noCost : costOf(() => sqlite.exec(sql))),
      });
      print(
        comparedCosts(
          what,
          patched,
          costs["jackdaw"] ?? noCost,
          costs["peer"] ?? noCost,
          sqlite === null ? null : "SQLite",
        ),
      );
    };
    await compare("patch of all, += 1", patches.all.query, patches.all.sql, count);
    await compare("product of two fields", patches.product.query, patches.product.sql, count);
    await patchAll(database, "from Users where City = 'City 1' update { this.Age += 0 }");
    await compare(
      "patch of one in five by a condition",
      patches.some.query,
      patches.some.sql,
      count / 5,
    );
    await benchGets(database, count, print);
    await benchLoop(database, Math.min(count, 100_000), rounds, print);
  } finally {
    fresh?.close();
    sqlite?.close();
    await engine.close();
    folder.remove();
  }
  return lines;
}

/** Measures the first patch of this process, before code is optimized. */
async function benchFresh(
  database: OpenDatabase,
  sqlite: Sqlite | null,
  documents: number,
  print: (line: string) => void,
): Promise<void> {
  const count = Math.min(documents, freshCount);
  await insertAll(database, count);
  const own = await costOf(() => patchAll(database, patches.all.query));
  const other = sqlite === null ? noCost : await costOf(() => sqlite.exec(patches.all.sql));
  const what = `patch of the first ${count} of a fresh process, += 1`;
  print(comparedCosts(what, count, own, other, sqlite === null ? null : "SQLite"));
}

async function insertAll(
  database: OpenDatabase,
  count: number,
  collection = "Users",
  text: (n: number) => string = textOf,
): Promise<void> {
  const { state } = database;
  const member = metadata.replace("Users", collection);
  for (let from = 0; from < count; from += batchSize) {
    await database.write((transaction) => {
      for (let n = from; n < from + batchSize && n < count; n++) {
        const parsed = state.parseText(text(n).slice(0, -1) + member);
        putParsed(transaction, `${collection.toLowerCase()}/${n}`, parsed);
      }
    });
  }
}

async function patchAll(database: OpenDatabase, query: string): Promise<void> {
  const { ended } = await startPatchByQuery(database, query, options);
  const { info } = await ended;
  if (info.state.status !== "completed") throw new Error(JSON.stringify(info.state));
}

/** Gets random documents sequentially during a patch of all documents. */
async function benchGets(
  database: OpenDatabase,
  count: number,
  print: (line: string) => void,
): Promise<void> {
  const random = seeded(7);
  const measure = async (isOver: () => boolean): Promise<number[]> => {
    const times: number[] = [];
    while (!isOver()) {
      const start = performance.now();
      // Like a request, wait for an event-loop tick, then read.
      await new Promise((resolve) => setImmediate(resolve));
      await database.getText(`users/${random() % count}`);
      times.push(performance.now() - start);
    }
    return times;
  };
  const until = performance.now() + 500;
  const idle = await measure(() => performance.now() > until);
  let isPatched = false;
  const patched = patchAll(database, "from Users update { this.Age += 1 }").then(() => {
    isPatched = true;
  });
  const busy = await measure(() => isPatched);
  await patched;
  print(
    `get during a patch of all: p99 ${percentile(busy, 0.99).toFixed(2)} ms, longest ` +
      `${percentile(busy, 1).toFixed(1)} ms (idle p99 ${percentile(idle, 0.99).toFixed(2)} ms)`,
  );
}

async function benchLoop(
  database: OpenDatabase,
  count: number,
  rounds: number,
  print: (line: string) => void,
): Promise<void> {
  await insertAll(database, count, "Orders", lineText);
  const texts = Array.from({ length: count }, (_, n) => lineText(n));
  const costs = await interleavedCosts(rounds, {
    jackdaw: () =>
      costOf(() =>
        patchAll(
          database,
          "from Orders update { let sum = 0; for (const line of this.Lines) { line.Quantity += 1; sum += line.Price * line.Quantity; } this.Total = sum; }",
        ),
      ),
    peer: () =>
      costOf(() => {
        for (let n = 0; n < count; n++) texts[n] = changedLines(texts[n] as string);
      }),
  });
  print(
    comparedCosts(
      "loop over an array",
      count,
      costs["jackdaw"] ?? noCost,
      costs["peer"] ?? noCost,
      "JSON in memory",
    ),
  );
}

function changedLines(text: string): string {
  const order = JSON.parse(text) as {
    Total: number;
    Lines: { Quantity: number; Price: number }[];
  };
  let sum = 0;
  for (const line of order.Lines) {
    line.Quantity += 1;
    sum += line.Price * line.Quantity;
  }
  order.Total = sum;
  return JSON.stringify(order);
}
