/**
 * A large database: memory per document, the longest pause while inserting, and the time to reopen it from the
 * snapshot of a clean close, and by replaying the whole log.
 */
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { PerformanceObserver } from "node:perf_hooks";
import { setImmediate } from "node:timers/promises";
import type { OpenDatabase } from "../engine/api/database/open-database.ts";
import { type OpenFolder, openFolder } from "../engine/api/database/open-folder.ts";

import { SegmentCache } from "../engine/storage/segments/segment-cache.ts";
import { putText } from "../engine/writes/documents.ts";
import { type BenchSize, documentText, temporaryFolder, timeMs } from "./harness.ts";

const batchSize = 1000;
const batchesInFlight = 8;
const textCount = 1000;

export async function run(size: BenchSize): Promise<string[]> {
  const documents = size === "smoke" ? 5_000 : 5_000_000;
  const lines: string[] = [];
  const print = (line: string) => {
    lines.push(`${documents} documents, ${line}`);
    console.log(lines.at(-1));
  };
  const folder = temporaryFolder();
  try {
    await insert(folder.path, documents, print);
    await reopen(folder.path, documents, "open after a clean close", print);
    for (const path of readdirSync(folder.path, { recursive: true, encoding: "utf8" })) {
      if (path.endsWith(".idx")) rmSync(join(folder.path, path));
    }
    await reopen(folder.path, documents, "open by replay of the log", print);
  } finally {
    folder.remove();
  }
  return lines;
}

/** Opens with an empty cache, so that segment images, which have a separate limit, are not counted. */
function openBench(folder: string): Promise<OpenFolder> {
  return openFolder({ folder, database: { log: { cache: new SegmentCache(1) } } });
}

async function insert(
  folder: string,
  documents: number,
  print: (line: string) => void,
): Promise<void> {
  const engine = await openBench(folder);
  const database = await engine.databases.create("bench", {});
  const idle = settledMemory();
  const pauses: number[] = [];
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) pauses.push(entry.duration);
  });
  observer.observe({ entryTypes: ["gc"] });
  const insertMs = await timeMs(() => insertAll(database, documents));
  await setImmediate();
  observer.disconnect();
  print(`insert: ${Math.round(documents / insertMs)} k/s`);
  const longest = Math.max(0, ...pauses);
  print(`pauses of the garbage collector: ${pauses.length}, longest ${longest.toFixed(1)} ms`);
  const full = settledMemory();
  let idBytes = 0;
  for (let n = 0; n < documents; n++) idBytes += `users/${n}`.length;
  const outside = full.arrayBuffers - idle.arrayBuffers - database.logMetrics.imageBytes;
  const external = full.external - full.arrayBuffers - (idle.external - idle.arrayBuffers);
  const perDocument = (bytes: number) => (bytes / documents).toFixed(1);
  print(
    `memory besides the ids: ${perDocument(outside + external - idBytes)} bytes outside the heap, ` +
      `${perDocument(full.heapUsed - idle.heapUsed)} in it`,
  );
  print(`close with a snapshot: ${(await timeMs(() => engine.close())).toFixed(0)} ms`);
}

function settledMemory(): NodeJS.MemoryUsage {
  globalThis.gc?.();
  globalThis.gc?.();
  return process.memoryUsage();
}

async function insertAll(database: OpenDatabase, documents: number): Promise<void> {
  const texts = Array.from(
    { length: textCount },
    (_, n) => `${documentText(n).slice(0, -1)},"@metadata":{"@collection":"Users"}}`,
  );
  const pending: Promise<void>[] = [];
  for (let from = 0; from < documents; from += batchSize) {
    pending.push(
      database.write((transaction) => {
        for (let n = from; n < from + batchSize; n++) {
          putText(transaction, `users/${n}`, texts[n % textCount] as string); // n % textCount < textCount
        }
      }),
    );
    if (pending.length > batchesInFlight) await pending.shift();
  }
  await Promise.all(pending);
}

async function reopen(
  folder: string,
  documents: number,
  what: string,
  print: (line: string) => void,
): Promise<void> {
  const engine = await openBench(folder);
  let found = -1;
  const ms = await timeMs(async () => {
    const database = await engine.databases.find("bench");
    found = database?.find(`users/${documents - 1}`) ?? -1;
  });
  if (found < 0) throw new Error("the last document must exist");
  print(`${what}: ${ms.toFixed(0)} ms, ${Math.round(documents / ms)} k documents/s`);
  await engine.close();
}
