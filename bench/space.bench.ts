/**
 * What compaction costs and gives back: documents are overwritten again and again; how much space does the log take at
 * most for its live bytes, and how long do reads take meanwhile?
 */
import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { type Database, openEngine } from "../engine/engine.ts";
import { putText } from "../engine/writes/documents.ts";
import { type BenchSize, documentText, percentile, seeded, temporaryFolder } from "./harness.ts";

const batchSize = 100;
const readsPerTurn = 8;

export async function run(size: BenchSize): Promise<string[]> {
  const documents = size === "smoke" ? 1_000 : 200_000;
  const overwrites = size === "smoke" ? 3 : 20;
  const lines: string[] = [];
  const print = (line: string) => {
    lines.push(line);
    console.log(line);
  };
  const folder = temporaryFolder();
  try {
    const engine = await openEngine({ folder: folder.path });
    const database = await engine.databases.create("bench", {});
    await overwrite(database, documents, 0, () => Promise.resolve());
    const { recordBytes, deadBytes } = database.logMetrics;
    const live = recordBytes - deadBytes;
    const idle = await idleReads(database, documents);
    const reads: number[] = [];
    const random = seeded(11);
    let peak = 0;
    let turns = 0;
    for (let round = 1; round <= overwrites; round++) {
      await overwrite(database, documents, round, async () => {
        await readSome(database, documents, random, reads);
        if (turns++ % 64 === 0) peak = Math.max(peak, bytesUnder(folder.path));
      });
    }
    peak = Math.max(peak, bytesUnder(folder.path));
    const { segmentBytes } = database.logMetrics;
    print(
      `${documents} documents overwritten ${overwrites} times: on disk at most ${(peak / live).toFixed(2)} of the live ` +
        `bytes (${Math.round(live / 1024 ** 2)} MiB), ${(segmentBytes / live).toFixed(2)} at the end`,
    );
    print(
      `get and its turn of the event loop: p99 ${percentile(reads, 0.99).toFixed(2)} ms meanwhile, ` +
        `${percentile(idle, 0.99).toFixed(2)} ms while nothing is written`,
    );
    await engine.close();
  } finally {
    folder.remove();
  }
  return lines;
}

/** Stores every document once more, `batchSize` to a transaction; `between` is awaited after each. */
async function overwrite(
  database: Database,
  documents: number,
  round: number,
  between: () => Promise<void>,
): Promise<void> {
  for (let from = 0; from < documents; from += batchSize) {
    const written = database.write((transaction) => {
      for (let n = from; n < from + batchSize; n++) {
        const text = `${documentText(n + round).slice(0, -1)},"@metadata":{"@collection":"U"}}`;
        putText(transaction, `users/${n}`, text);
      }
    });
    await between();
    await written;
  }
}

async function idleReads(database: Database, documents: number): Promise<number[]> {
  const reads: number[] = [];
  const random = seeded(7);
  for (let turn = 0; turn < 2_000; turn++) await readSome(database, documents, random, reads);
  return reads;
}

/** Some gets, each as a request would come: after the events before it. */
async function readSome(
  database: Database,
  documents: number,
  random: () => number,
  reads: number[],
): Promise<void> {
  for (let i = 0; i < readsPerTurn; i++) {
    const start = performance.now();
    await setImmediate();
    const text = await database.getText(`users/${random() % documents}`);
    if (text === null) throw new Error("every document is there");
    reads.push(performance.now() - start);
  }
}

function bytesUnder(folder: string): number {
  let bytes = 0;
  for (const path of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const stats = lstatSync(join(folder, path), { throwIfNoEntry: false });
    if (stats?.isFile() === true) bytes += stats.size;
  }
  return bytes;
}
