/**
 * The engine on one folder, in a separate process with a memory budget, for bench/cold.bench.ts. Started with fork();
 * replies to each `ColdStep` of its parent with a `ColdResult`.
 */
import { readFileSync } from "node:fs";
import type { OpenDatabase } from "../../engine/api/database/open-database.ts";
import { type OpenFolder, openFolder } from "../../engine/api/database/open-folder.ts";
import { processMemory } from "../../engine/base/memory/memory-budget.ts";

import { startPatchByQuery } from "../../engine/services/querying/operations-by-query.ts";
import { putText } from "../../engine/writes/documents.ts";
import { seeded } from "../harness.ts";

export type ColdStep =
  | { readonly kind: "open"; readonly folder: string; readonly memoryBytes: number }
  | { readonly kind: "insert"; readonly documents: number; readonly bodyBytes: number }
  | { readonly kind: "query"; readonly text: string }
  | { readonly kind: "index"; readonly text: string }
  | { readonly kind: "patch"; readonly text: string }
  | {
      readonly kind: "gets";
      readonly documents: number;
      readonly hot: number;
      readonly count: number;
    }
  | { readonly kind: "settle" }
  | { readonly kind: "close" };

export interface ColdResult {
  readonly wallMs: number;
  readonly processorMs: number;
  /** Number of rows returned by a query. */
  readonly rows: number;
  /** Resident memory after the step, and its peak since the start of the process, in bytes. */
  readonly residentBytes: number;
  readonly mostResidentBytes: number;
}

const batchSize = 500;
const batchesInFlight = 4;
let engine: OpenFolder | null = null;
let database: OpenDatabase | null = null;

process.on("message", (step: ColdStep) => {
  measured(step).then(
    (result) => process.send?.(result),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
process.once("disconnect", () => process.exit(0));

async function measured(step: ColdStep): Promise<ColdResult> {
  const start = performance.now();
  const before = process.cpuUsage();
  const rows = await run(step);
  const used = process.cpuUsage(before);
  return {
    wallMs: performance.now() - start,
    processorMs: (used.user + used.system) / 1000,
    rows,
    residentBytes: process.memoryUsage.rss(),
    mostResidentBytes: mostResident(),
  };
}

function mostResident(): number {
  const line = /VmHWM:\s+(\d+) kB/.exec(readFileSync("/proc/self/status", "utf8"));
  return Number(line?.[1] ?? 0) * 1024;
}

async function run(step: ColdStep): Promise<number> {
  if (step.kind === "open") {
    processMemory.bytesMax = step.memoryBytes;
    engine = await openFolder({ folder: step.folder });
    database =
      (await engine.databases.find("bench")) ?? (await engine.databases.create("bench", {}));
    return 0;
  }
  if (engine === null || database === null) throw new Error("the database must be opened first");
  switch (step.kind) {
    case "insert":
      return await insert(database, step.documents, step.bodyBytes);
    case "query":
      return await query(database, step.text);
    case "index":
      return await index(database, step.text);
    case "patch":
      return await patch(database, step.text);
    case "gets":
      return await gets(database, step);
    case "settle":
      await new Promise((resolve) => setTimeout(resolve, 1000));
      await database.compactionEnded();
      return 0;
    case "close":
      await engine.close();
      return 0;
  }
}

async function insert(into: OpenDatabase, documents: number, bodyBytes: number): Promise<number> {
  const pending: Promise<void>[] = [];
  for (let from = 0; from < documents; from += batchSize) {
    pending.push(
      into.write((transaction) => {
        for (let n = from; n < from + batchSize && n < documents; n++) {
          putText(transaction, `users/${n}`, textOf(n, bodyBytes));
        }
      }),
    );
    if (pending.length > batchesInFlight) await pending.shift();
  }
  await Promise.all(pending);
  return documents;
}

function textOf(n: number, bodyBytes: number): string {
  const start =
    `{"Name":"User number ${n}","Age":${18 + (n % 60)},"City":"City ${n % 100}","Price":${(n % 90) + 0.5},` +
    `"Quantity":${1 + (n % 12)},"Notes":"`;
  const end = '","@metadata":{"@collection":"Users"}}';
  return start + "some text ".repeat(Math.max(1, (bodyBytes - start.length) / 10)) + end;
}

async function query(from: OpenDatabase, text: string): Promise<number> {
  let rows = 0;
  const sink = {
    add: () => {
      rows++;
      return null;
    },
  };
  await from.query(text, { waitForNonStale: true, timeoutMs: 3_600_000 }, sink);
  return rows;
}

/** Builds the index for a query, and drops it. */
async function index(from: OpenDatabase, text: string): Promise<number> {
  const rows = await query(from, text);
  const { administration } = from.queries;
  for (const one of from.queries.indexes.all()) await administration.delete(one.name);
  return rows;
}

async function patch(into: OpenDatabase, text: string): Promise<number> {
  const { ended } = await startPatchByQuery(into, text, {
    parametersText: null,
    allowsStale: false,
    staleTimeoutMs: 600_000,
    operationsPerSecondMax: undefined,
    hasDetails: false,
    liftsLimits: false,
  });
  const { info } = await ended;
  if (info.state.status !== "completed") throw new Error(JSON.stringify(info.state));
  return 0;
}

/** Gets random documents out of a set of `hot` ids spread over the database. */
async function gets(
  from: OpenDatabase,
  { documents, hot, count }: Extract<ColdStep, { kind: "gets" }>,
): Promise<number> {
  const pick = seeded(5);
  const ids = Array.from({ length: hot }, () => `users/${pick() % documents}`);
  const random = seeded(7);
  let bytes = 0;
  for (let n = 0; n < count; n++) {
    const text = await from.getText(ids[random() % hot] as string);
    bytes += text?.length ?? 0;
  }
  return bytes > 0 ? count : 0;
}
