/**
 * Costs and yield of compaction: documents are overwritten repeatedly. Measures the log's peak size relative to its
 * live bytes, and read latency meanwhile, in process, and over HTTP/2 with the clients in a separate process.
 *
 * Reads during the first insertion, when no space can be reclaimed, show the effect of writes: only the difference is
 * due to compaction.
 */
import type { ChildProcess } from "node:child_process";
import { lstatSync, readdirSync } from "node:fs";
import * as http2 from "node:http2";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import type { OpenDatabase } from "../engine/api/database/open-database.ts";
import { openFolder } from "../engine/api/database/open-folder.ts";

import { putText } from "../engine/writes/documents.ts";
import {
  type BenchSize,
  documentText,
  percentile,
  printer,
  seeded,
  temporaryFolder,
} from "./harness.ts";
import type { LoadResult } from "./http/load.ts";
import {
  type Pair,
  readPair,
  runLoad,
  sendRequest,
  startJackdaw,
  startLoad,
  stop,
} from "./http/processes.ts";

const batchSize = 100;
const readsPerTick = 8;

/** Read latencies, in milliseconds. */
interface Reads {
  /** Duration of the call alone. */
  readonly calls: number[];
  /** Duration including the wait for an event-loop tick, as for a request. */
  readonly ticks: number[];
}

export async function run(size: BenchSize): Promise<string[]> {
  const { lines, print } = printer();
  await inProcess(size, print);
  await overWire(size, print);
  return lines;
}

async function inProcess(size: BenchSize, print: (line: string) => void): Promise<void> {
  const documents = size === "smoke" ? 1_000 : 200_000;
  const overwrites = size === "smoke" ? 3 : 20;
  const folder = temporaryFolder();
  try {
    const engine = await openFolder({ folder: folder.path });
    const database = await engine.databases.create("bench", {});
    const random = seeded(11);
    const [idle, first, meanwhile] = [newReads(), newReads(), newReads()];
    await overwrite(database, documents, 0, (stored) => readSome(database, stored, random, first));
    const { recordBytes, deadBytes } = database.logMetrics;
    const live = recordBytes - deadBytes;
    for (let turn = 0; turn < 2_000; turn++) await readSome(database, documents, random, idle);
    let peak = 0;
    let batches = 0;
    for (let round = 1; round <= overwrites; round++) {
      await overwrite(database, documents, round, async () => {
        await readSome(database, documents, random, meanwhile);
        if (batches++ % 64 === 0) peak = Math.max(peak, bytesUnder(folder.path));
      });
    }
    peak = Math.max(peak, bytesUnder(folder.path));
    const { segmentBytes } = database.logMetrics;
    print(
      `${documents} documents overwritten ${overwrites} times: on disk at most ${(peak / live).toFixed(2)} of the live ` +
        `bytes (${Math.round(live / 1024 ** 2)} MiB), ${(segmentBytes / live).toFixed(2)} at the end`,
    );
    for (const [what, field] of [
      ["get", "calls"],
      ["get and its event-loop tick", "ticks"],
    ] as const) {
      const [a, b, c] = [meanwhile, first, idle].map((reads) => quantiles(reads[field]));
      print(`${what}, p50 and p99: ${a} ms meanwhile, ${b} while first stored, ${c} idle`);
    }
    await engine.close();
  } finally {
    folder.remove();
  }
}

/** Overwrites every document once, `batchSize` per transaction; `between` is awaited after each transaction. */
async function overwrite(
  database: OpenDatabase,
  documents: number,
  round: number,
  between: (stored: number) => Promise<void>,
): Promise<void> {
  for (let from = 0; from < documents; from += batchSize) {
    const written = database.write((transaction) => {
      for (let n = from; n < from + batchSize; n++) {
        const text = `${documentText(n + round).slice(0, -1)},"@metadata":{"@collection":"U"}}`;
        putText(transaction, `users/${n}`, text);
      }
    });
    await between(from);
    await written;
  }
}

function newReads(): Reads {
  return { calls: [], ticks: [] };
}

/** Gets several random documents with numbers below `documents`, each in a separate event-loop tick, like requests. */
async function readSome(
  database: OpenDatabase,
  documents: number,
  random: () => number,
  reads: Reads,
): Promise<void> {
  if (documents === 0) return;
  for (let i = 0; i < readsPerTick; i++) {
    const asked = performance.now();
    await setImmediate();
    const begun = performance.now();
    const text = await database.getText(`users/${random() % documents}`);
    if (text === null) throw new Error("every document must exist");
    const ended = performance.now();
    reads.calls.push(ended - begun);
    reads.ticks.push(ended - asked);
  }
}

function quantiles(times: readonly number[]): string {
  return `${percentile(times, 0.5).toFixed(3)} ${percentile(times, 0.99).toFixed(3)}`;
}

function bytesUnder(folder: string): number {
  let bytes = 0;
  for (const path of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const stats = lstatSync(join(folder, path), { throwIfNoEntry: false });
    if (stats?.isFile() === true) bytes += stats.size;
  }
  return bytes;
}

async function overWire(size: BenchSize, print: (line: string) => void): Promise<void> {
  const documents = size === "smoke" ? 200 : 50_000;
  const requests = size === "smoke" ? 50 : 4_000;
  const folder = temporaryFolder();
  const children: ChildProcess[] = [];
  try {
    const server = await startJackdaw(folder.path);
    children.push(server.process);
    const pair = readPair(folder.path, "client");
    const load = startLoad();
    children.push(load);
    const writer = new Writer(server.url, pair);
    await writer.createDatabase();
    const random = seeded(3);
    for (let from = 0; from < documents; from += batchSize) {
      await writer.store("users", (n) => from + n);
    }
    const gets = (seed: number): Promise<LoadResult> =>
      runLoad(load, {
        ...pair,
        url: server.url,
        connections: 1,
        inFlightPerConnection: 1,
        requests,
        getShare: 1,
        documents,
        body: "",
        seed,
      });
    await gets(0); // warm-up
    const idle = await gets(1);
    let next = 0;
    const first = await writer.beside(gets(2), () => writer.store("others", () => next++));
    for (let from = 0; from < documents; from += batchSize) {
      await writer.store("users", () => random() % documents);
    }
    const meanwhile = await writer.beside(gets(3), () =>
      writer.store("users", () => random() % documents),
    );
    const text = ({ p50, p99 }: LoadResult) => `${p50.toFixed(2)} ${p99.toFixed(2)}`;
    print(
      `GET over HTTP/2, p50 and p99: ${text(meanwhile)} ms while others overwrite ${batchSize} documents per request, ` +
        `${text(first)} while they store new ones, ${text(idle)} idle`,
    );
    writer.close();
  } finally {
    for (const child of children) await stop(child);
    folder.remove();
  }
}

/** Stores documents in the database `bench` over one connection, one request at a time. */
class Writer {
  readonly #session: http2.ClientHttp2Session;
  #round = 0;

  constructor(url: string, pair: Pair) {
    this.#session = http2.connect(url, pair);
  }

  async createDatabase(): Promise<void> {
    const path = "/admin/databases?name=bench&replicationFactor=1";
    await sendRequest(this.#session, "PUT", path, { DatabaseName: "bench" });
  }

  /** Stores `batchSize` documents in one request; `numberOf` returns the number of each. */
  async store(prefix: string, numberOf: (n: number) => number): Promise<void> {
    this.#round++;
    const Commands = Array.from({ length: batchSize }, (_, n) => ({
      Id: `${prefix}/${numberOf(n)}`,
      Type: "PUT",
      Document: JSON.parse(documentText(n + this.#round)),
    }));
    await sendRequest(this.#session, "POST", "/databases/bench/bulk_docs", { Commands });
  }

  /** Repeats `work` until `measured` resolves. */
  async beside(measured: Promise<LoadResult>, work: () => Promise<void>): Promise<LoadResult> {
    let isOver = false;
    const watched = measured.finally(() => {
      isOver = true;
    });
    while (!isOver) await work();
    return await watched;
  }

  close(): void {
    this.#session.close();
  }
}
