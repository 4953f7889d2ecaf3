/**
 * More data than memory: a database with all its records in memory, against the same database reopened with a small
 * budget, its files in the kernel's cache. Streams, filters without an index, index builds and patches of all
 * documents, by wall time (processor time is printed too); gets of random documents over HTTP, by processor time; gets
 * of a hot set that fits; and the memory of the process. The database was written with the small budget, which
 * determines its segment size.
 *
 * JACKDAW_BENCH_MEGABYTES: size of the data (1,000). JACKDAW_BENCH_BUDGET_MEGABYTES: memory budget (64).
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { ColdResult, ColdStep } from "./cold/worker.ts";
import { type BenchSize, median, printer, temporaryFolder } from "./harness.ts";
import { readPair, runLoad, script, startJackdaw, startLoad, stop } from "./http/processes.ts";

const megabyte = 1024 * 1024;
const bodyBytes = 900;
/** Record size of a document, in bytes. */
const recordBytes = 1_000;
const ticksPerSecond = 100;
/** Memory allowed beyond the budget, in bytes. */
const allowedBytes = 100 * megabyte;
const allowedBytesPerDocument = 100;

type Print = (line: string) => void;

interface Plan {
  readonly folder: string;
  readonly documents: number;
  readonly budgetBytes: number;
  readonly rounds: number;
  readonly gets: number;
}

/**
 * Each round has its own text, because an existing index is not rebuilt. Index builds match no documents, so that only
 * the build is measured.
 */
const steps: Readonly<Record<string, (round: number) => ColdStep>> = {
  stream: () => ({ kind: "query", text: "from Users" }),
  "filter without index": (round) => ({
    kind: "query",
    text: `from Users filter Age = ${20 + round}`,
  }),
  "index build": (round) => ({ kind: "index", text: `from Users where Age = ${1_000 + round}` }),
  "patch of all": () => ({ kind: "patch", text: "from Users update { this.Age += 1 }" }),
};

export async function run(size: BenchSize): Promise<string[]> {
  const megabytes = size === "smoke" ? 2 : Number(process.env["JACKDAW_BENCH_MEGABYTES"] ?? 1_000);
  const budget = Number(process.env["JACKDAW_BENCH_BUDGET_MEGABYTES"] ?? 64);
  const { lines, print } = printer();
  const folder = temporaryFolder();
  const plan: Plan = {
    folder: folder.path,
    documents: Math.floor((megabytes * 1e6) / recordBytes),
    budgetBytes: budget * megabyte,
    rounds: size === "smoke" ? 1 : 3,
    gets: size === "smoke" ? 200 : 20_000,
  };
  try {
    await insert(plan, print);
    const warm = await measure({ ...plan, budgetBytes: 4096 * megabyte });
    const cold = await measure(plan);
    compare(warm, cold, plan, print);
    await compareGets(plan, print);
  } finally {
    folder.remove();
  }
  return lines;
}

/** Cost of a step, in milliseconds. */
interface Cost {
  readonly wall: number;
  readonly processor: number;
}

interface Measured {
  /** Per step. */
  readonly costs: Readonly<Record<string, Cost>>;
  readonly hotGetMicros: number;
  readonly residentBytes: number;
}

async function open({ folder, budgetBytes }: Plan): Promise<ChildProcess> {
  const worker = fork(script("../cold/worker.js"));
  await sendStep(worker, { kind: "open", folder: `${folder}/data`, memoryBytes: budgetBytes });
  return worker;
}

async function insert(plan: Plan, print: Print): Promise<void> {
  const worker = await open(plan);
  const { documents } = plan;
  try {
    const { wallMs } = await sendStep(worker, { kind: "insert", documents, bodyBytes });
    await sendStep(worker, { kind: "close" });
    print(
      `${documents} documents of ${bodyBytes} bytes inserted in ${(wallMs / 1000).toFixed(1)} s`,
    );
  } finally {
    await stop(worker);
  }
}

/** Runs all steps in one process. */
async function measure(plan: Plan): Promise<Measured> {
  const worker = await open(plan);
  const { documents } = plan;
  try {
    const hot = Math.max(10, Math.floor(Math.min(documents, 0.25 * (64 * megabyte)) / recordBytes));
    const costs: Record<string, Cost> = {};
    let hotGetMicros = 0;
    for (const [name, step] of Object.entries(steps)) {
      if (name === "patch of all") hotGetMicros = await hotGets(worker, documents, hot, plan.gets);
      const times: ColdResult[] = [];
      // The first run warms up the compiled code and, where it fits, memory.
      await sendStep(worker, step(plan.rounds));
      for (let round = 0; round < plan.rounds; round++) {
        times.push(await sendStep(worker, step(round)));
        await sendStep(worker, { kind: "settle" });
      }
      costs[name] = {
        wall: median(times.map(({ wallMs }) => wallMs)),
        processor: median(times.map(({ processorMs }) => processorMs)),
      };
    }
    const last = await sendStep(worker, { kind: "settle" });
    await sendStep(worker, { kind: "close" });
    return { costs, hotGetMicros, residentBytes: last.mostResidentBytes };
  } finally {
    await stop(worker);
  }
}

/** Returns the processor time per get in a hot set after several warm-up rounds, in microseconds. */
async function hotGets(
  worker: ChildProcess,
  documents: number,
  hot: number,
  count: number,
): Promise<number> {
  const step: ColdStep = { kind: "gets", documents, hot, count };
  for (let round = 0; round < 3; round++) await sendStep(worker, { ...step, count: 4 * hot });
  const times: number[] = [];
  for (let round = 0; round < 3; round++) times.push((await sendStep(worker, step)).processorMs);
  return (median(times) * 1000) / count;
}

async function sendStep(worker: ChildProcess, step: ColdStep): Promise<ColdResult> {
  const over = new AbortController();
  const { signal } = over;
  const answered = Promise.race([
    once(worker, "message", { signal }),
    once(worker, "exit", { signal }),
  ]);
  worker.send(step);
  const [result] = (await answered) as [ColdResult | number | null];
  over.abort();
  if (typeof result !== "object" || result === null) throw new Error(`step ${step.kind} failed`);
  return result;
}

function compare(warm: Measured, cold: Measured, plan: Plan, print: Print): void {
  for (const [name, cost] of Object.entries(cold.costs)) {
    const base = warm.costs[name] as Cost; // the same steps
    const speed = base.wall / cost.wall;
    const rate = (ms: number) => `${Math.round(plan.documents / ms)} k/s`;
    print(
      `${name}: ${speed.toFixed(2)}x of warm (${rate(cost.wall)}, warm ${rate(base.wall)}; ` +
        `${(base.processor / cost.processor).toFixed(2)}x by processor time): ` +
        verdict(speed >= 0.5, "at least 0.5x"),
    );
  }
  const hot = cold.hotGetMicros / warm.hotGetMicros;
  print(
    `get of a hot set that fits: ${hot.toFixed(2)}x of warm (${cold.hotGetMicros.toFixed(2)} us of processor time): ` +
      verdict(hot <= 1.3, "about 1x"),
  );
  const most = plan.budgetBytes + allowedBytes + allowedBytesPerDocument * plan.documents;
  const shown = (bytes: number) => `${Math.round(bytes / megabyte)} MB`;
  print(
    `resident memory: ${shown(cold.residentBytes)} at most: ` +
      verdict(cold.residentBytes <= most, `at most ${shown(most)}`),
  );
}

/** Compares gets of random documents over HTTP/2, by the server's processor time, with a large and a small budget. */
async function compareGets(plan: Plan, print: Print): Promise<void> {
  const megabytes = (bytes: number) => `--Memory.LimitInMb=${Math.floor(bytes / megabyte)}`;
  const warm = await serverGets(plan, megabytes(4096 * megabyte), true);
  const cold = await serverGets(plan, megabytes(plan.budgetBytes), false);
  const ratio = cold / warm;
  print(
    `get of random documents over HTTP: ${ratio.toFixed(2)}x the processor time of warm ` +
      `(${cold.toFixed(0)} us, warm ${warm.toFixed(0)} us): ${verdict(ratio <= 2, "at most 2x")}`,
  );
}

/** Returns the server's processor time per request, in microseconds. */
async function serverGets(plan: Plan, flag: string, isWarm: boolean): Promise<number> {
  // The server stores its databases in the same folder layout as the engine.
  const server = await startJackdaw(`${plan.folder}/data`, [flag]);
  const load = startLoad();
  try {
    const options = {
      ...readPair(`${plan.folder}/data`, "client"),
      url: server.url,
      connections: 4,
      inFlightPerConnection: 8,
      documents: plan.documents,
      body: "",
      getShare: 1,
    };
    // Warms up the compiled code and, with a large budget, loads all documents read later.
    for (let round = 0; round < 10; round++) {
      await runLoad(load, { ...options, requests: plan.gets, seed: isWarm ? 3 : 10 + round });
    }
    const times: number[] = [];
    for (let round = 0; round < plan.rounds; round++) {
      const start = processorMs(server.process);
      await runLoad(load, { ...options, requests: plan.gets, seed: isWarm ? 3 : 20 + round });
      times.push(((processorMs(server.process) - start) * 1000) / plan.gets);
    }
    return median(times);
  } finally {
    await stop(load);
    await stop(server.process);
  }
}

function processorMs({ pid }: ChildProcess): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / ticksPerSecond;
}

function verdict(isMet: boolean, wanted: string): string {
  return `${isMet ? "met" : "MISSED"} (${wanted})`;
}
