/**
 * An in-memory database for benches of whole queries: filled from texts, queried like by a client, with time and
 * memory.
 */
import { setImmediate as nextTick } from "node:timers/promises";
import { OpenDatabase } from "../engine/api/database/open-database.ts";
import { nodeEnvironment } from "../engine/base/platform/node-environment.ts";
import type { QueryOutcome } from "../engine/queries/execution/results.ts";
import { type Cost, costOf, percentile } from "./harness.ts";

/** Documents per write. */
const documentsPerWrite = 1_000;
const indexingMs = 3_600_000;

export async function openBench(): Promise<OpenDatabase> {
  const indexSnapshots = { workMsMin: Number.POSITIVE_INFINITY };
  return await OpenDatabase.open(nodeEnvironment(), "bench", null, { indexSnapshots });
}

/** Stores documents, given as ids with JSON texts. */
export async function fill(
  database: OpenDatabase,
  documents: Iterable<readonly [string, string]>,
): Promise<void> {
  let writes: Promise<unknown>[] = [];
  for (const [id, text] of documents) {
    writes.push(database.put(id, text));
    if (writes.length < documentsPerWrite) continue;
    await Promise.all(writes);
    writes = [];
  }
  await Promise.all(writes);
}

/** Repeats a query until its result is not stale. @returns its total */
export async function settledTotal(database: OpenDatabase, text: string): Promise<number> {
  const options = { waitForNonStale: true, timeoutMs: indexingMs };
  const outcome = await database.query(text, options, { add: () => null });
  if (outcome === null || outcome.isStale) throw new Error(`stale: ${text}`);
  return outcome.totalResults;
}

interface Answer {
  readonly outcome: QueryOutcome;
  readonly rows: readonly string[];
}

export async function runQuery(database: OpenDatabase, text: string): Promise<Answer> {
  const rows: string[] = [];
  const add = (row: Buffer) => {
    rows.push(row.toString());
    return null;
  };
  const outcome = await database.query(text, {}, { add });
  if (outcome === null) throw new Error(`no answer: ${text}`);
  return { outcome, rows };
}

/** Times of queries, in milliseconds. */
interface Times {
  readonly p50: number;
  readonly p95: number;
  readonly max: number;
  /** Median processor time. */
  readonly processor50: number;
  /** Time of the first query. */
  readonly first: number;
}

/** Measures queries; each runs `rounds` times, and the fastest time counts. */
export async function timesOf(
  database: OpenDatabase,
  texts: readonly string[],
  rounds: number,
): Promise<Times> {
  const times: number[] = [];
  const processor: number[] = [];
  let first = 0;
  for (const [i, text] of texts.entries()) {
    let least = Number.POSITIVE_INFINITY;
    let leastProcessor = Number.POSITIVE_INFINITY;
    for (let round = 0; round < rounds; round++) {
      const { wallMs, processorMs } = await costOf(async () => {
        await database.query(text, {}, { add: () => null });
      });
      if (i === 0 && round === 0) first = wallMs;
      least = Math.min(least, wallMs);
      leastProcessor = Math.min(leastProcessor, processorMs);
    }
    times.push(least);
    processor.push(leastProcessor);
  }
  const at = (p: number) => percentile(times, p);
  return {
    p50: at(0.5),
    p95: at(0.95),
    max: at(1),
    processor50: percentile(processor, 0.5),
    first,
  };
}

export function timesText(times: Times): string {
  const { p50, p95, max, processor50, first } = times;
  const shown = `p50 ${p50.toFixed(2)} ms, p95 ${p95.toFixed(2)}, max ${max.toFixed(2)}`;
  return `${shown}; processor p50 ${processor50.toFixed(2)} ms; first ${first.toFixed(1)} ms`;
}

/** Returns the size of buffers after a garbage collection, in bytes. */
async function heldBytes(): Promise<number> {
  for (let i = 0; i < 3; i++) {
    globalThis.gc?.();
    await nextTick();
  }
  const { arrayBuffers, heapUsed } = process.memoryUsage();
  return arrayBuffers + heapUsed;
}

/** Measures the cost of some work, and the memory that it retains. */
export async function grownBy(
  work: () => Promise<unknown>,
): Promise<{ readonly cost: Cost; readonly bytes: number }> {
  const before = await heldBytes();
  const cost = await costOf(async () => {
    await work();
  });
  return { cost, bytes: (await heldBytes()) - before };
}

export function costText({ wallMs, processorMs }: Cost): string {
  return `${(wallMs / 1000).toFixed(2)} s (processor ${(processorMs / 1000).toFixed(2)} s)`;
}
