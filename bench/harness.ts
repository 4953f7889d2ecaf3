/**
 * What every bench shares: sizes, seeded data, medians, peers, and how results are printed. A bench is a module
 * `<subject>.bench.ts` that exports `run(size)`; `run.ts` finds it by its name, and the tests run it in smoke size.
 *
 * Figures are ratios: to a peer, or to the bare limit, measured in the same run. Absolute ones say little about
 * another machine.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { cpus, tmpdir, totalmem } from "node:os";
import { join } from "node:path";

export type BenchSize = "smoke" | "full";

export interface Bench {
  /** Prints its lines and returns them. */
  run(size: BenchSize): Promise<string[]> | string[];
}

/** One line that says where the figures come from. */
export function machineLine(): string {
  const [cpu] = cpus();
  return `${cpu?.model.trim() ?? "unknown processor"} x ${cpus().length}, ${Math.round(totalmem() / 1024 ** 3)} GiB, Node ${process.version}`;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >>> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? upper)) / 2;
}

/** The value below which the share `p` (0 to 1) of `values` lies. */
export function percentile(values: readonly number[], p: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))] ?? Number.NaN;
}

/** Milliseconds that `work` takes. */
export async function timeMs(work: () => Promise<void> | void): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** What some work took. */
export interface Cost {
  readonly wallMs: number;
  /** Of all threads of this process, in the program and in the system for it. */
  readonly processorMs: number;
}

export const noCost: Cost = { wallMs: Number.NaN, processorMs: Number.NaN };

/** Processor time is steadier than time on the wall when others use the machine too. */
export async function costOf(work: () => Promise<void> | void): Promise<Cost> {
  const before = process.cpuUsage();
  const wallMs = await timeMs(work);
  const used = process.cpuUsage(before);
  return { wallMs, processorMs: (used.user + used.system) / 1000 };
}

/** As `interleaved`; each median by itself. */
export async function interleavedCosts(
  rounds: number,
  variants: Readonly<Record<string, () => Promise<Cost>>>,
): Promise<Record<string, Cost>> {
  const processor: Record<string, number[]> = {};
  const wall = await interleaved(
    rounds,
    Object.fromEntries(
      Object.entries(variants).map(([name, variant]) => [
        name,
        async () => {
          const cost = await variant();
          processor[name] = [...(processor[name] ?? []), cost.processorMs];
          return cost.wallMs;
        },
      ]),
    ),
  );
  return Object.fromEntries(
    Object.entries(wall).map(([name, wallMs]) => [
      name,
      { wallMs, processorMs: median(processor[name] ?? []) },
    ]),
  );
}

/** Repeats variants in turn, so that a slow moment of the machine meets all of them; medians by name. */
export async function interleaved(
  rounds: number,
  variants: Readonly<Record<string, () => Promise<number>>>,
): Promise<Record<string, number>> {
  const results: Record<string, number[]> = {};
  for (let round = 0; round < rounds; round++) {
    for (const [name, variant] of Object.entries(variants)) {
      const list = results[name] ?? [];
      list.push(await variant());
      results[name] = list;
    }
  }
  return Object.fromEntries(Object.entries(results).map(([name, list]) => [name, median(list)]));
}

/** A folder that is removed by the result. Under JACKDAW_BENCH_DIR, or the system's place for temporary files. */
export function temporaryFolder(): { path: string; remove(): void } {
  const parent = process.env["JACKDAW_BENCH_DIR"] ?? tmpdir();
  mkdirSync(parent, { recursive: true });
  const path = mkdtempSync(join(parent, "jackdaw-bench-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** A package of bench/peers, or null when it is not installed there. */
export function peer<Module>(name: string): Module | null {
  const folder = join(process.cwd(), "bench", "peers", "package.json");
  try {
    return createRequire(folder)(name) as Module;
  } catch {
    return null;
  }
}

/** A number from 0 up to 2^32, the same in every run. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
}

/** The text of document `n`: about 155 bytes, six fields. */
export function documentText(n: number): string {
  const city = ["Haifa", "Oslo", "Lyon", "Porto", "Turin"][n % 5];
  return `{"Name":"User number ${n}","Age":${18 + (n % 60)},"City":"${city}","Total":${(n % 1000) + 0.5},"Email":"user${n}@example.com","Active":${n % 3 === 0},"Notes":"some more text"}`;
}

/** How often one is of the other, for printing: `2.31x`. */
export function ratio(value: number, other: number): string {
  return Number.isFinite(value / other) ? `${(value / other).toFixed(2)}x` : "no peer";
}
