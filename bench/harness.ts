/**
 * Shared by all benches: sizes, seeded data, medians, peers, and formatting of results. A bench is a module
 * `<subject>.bench.ts` that exports `run(size)`; `run.ts` finds it by name, and the tests run it in smoke size.
 *
 * Results are ratios to a peer, or to a bare limit, measured in the same run. Absolute figures do not transfer to
 * other machines.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { cpus, tmpdir, totalmem } from "node:os";
import { join } from "node:path";

export type BenchSize = "smoke" | "full";

export interface Bench {
  /** Runs the bench. @returns the printed lines */
  run(size: BenchSize): Promise<string[]> | string[];
}

/** Returns a line that describes the machine. */
export function machineLine(): string {
  const [cpu] = cpus();
  return `${cpu?.model.trim() ?? "unknown processor"} x ${cpus().length}, ${Math.round(totalmem() / 1024 ** 3)} GiB, Node ${process.version}`;
}

/** Returns a function that prints a line, and the printed lines. */
export function printer(): { readonly lines: string[]; readonly print: (line: string) => void } {
  const lines: string[] = [];
  const print = (line: string) => {
    lines.push(line);
    console.log(line);
  };
  return { lines, print };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >>> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? upper)) / 2;
}

/** Returns the `p`-quantile (0 to 1) of `values`. */
export function percentile(values: readonly number[], p: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))] ?? Number.NaN;
}

/** Returns the wall time of `work`, in milliseconds. */
export async function timeMs(work: () => Promise<void> | void): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** Cost of some work. */
export interface Cost {
  readonly wallMs: number;
  /** User and system time of all threads of this process, in milliseconds. */
  readonly processorMs: number;
}

export const noCost: Cost = { wallMs: Number.NaN, processorMs: Number.NaN };

/** Measures wall and processor time; the latter varies less when the machine is shared. */
export async function costOf(work: () => Promise<void> | void): Promise<Cost> {
  const before = process.cpuUsage();
  const wallMs = await timeMs(work);
  const used = process.cpuUsage(before);
  return { wallMs, processorMs: (used.user + used.system) / 1000 };
}

/** Like `interleaved`; wall and processor time have separate medians. */
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

/** Runs the variants alternately, so that slow phases of the machine affect all of them. @returns medians by name */
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

/**
 * Creates a temporary folder under JACKDAW_BENCH_DIR, or the system's folder for temporary files; `remove` deletes
 * it.
 */
export function temporaryFolder(): { path: string; remove(): void } {
  const parent = process.env["JACKDAW_BENCH_DIR"] ?? tmpdir();
  mkdirSync(parent, { recursive: true });
  const path = mkdtempSync(join(parent, "jackdaw-bench-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Loads a package of bench/peers; null if it is not installed. */
export function peer<Module>(name: string): Module | null {
  const folder = join(process.cwd(), "bench", "peers", "package.json");
  try {
    return createRequire(folder)(name) as Module;
  } catch {
    return null;
  }
}

/** Returns a generator of pseudo-random integers in [0, 2^32), determined by the seed. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
}

/** Returns the text of document `n`: about 155 bytes, seven fields. */
export function documentText(n: number): string {
  const city = ["Haifa", "Oslo", "Lyon", "Porto", "Turin"][n % 5];
  return `{"Name":"User number ${n}","Age":${18 + (n % 60)},"City":"${city}","Total":${(n % 1000) + 0.5},"Email":"user${n}@example.com","Active":${n % 3 === 0},"Notes":"some more text"}`;
}

/** Returns the ratio of two values as text: `2.31x`. */
export function ratio(value: number, other: number): string {
  return Number.isFinite(value / other) ? `${(value / other).toFixed(2)}x` : "no peer";
}

/**
 * Compares the rate and processor time of some work with those of a peer. `peerName` is null if the peer is not
 * installed.
 * @param count number of processed items
 */
export function comparedCosts(
  what: string,
  count: number,
  own: Cost,
  other: Cost,
  peerName: string | null,
): string {
  const rate = ({ wallMs }: Cost) => `${Math.round(count / wallMs)} k/s`;
  const micros = ({ processorMs }: Cost) => `${((processorMs * 1000) / count).toFixed(2)} µs`;
  const alone = `${what}: ${rate(own)}, processor ${micros(own)}`;
  if (peerName === null) return `${alone}; no peer is installed (npm install in bench/peers)`;
  return (
    `${alone}; ${ratio(other.wallMs, own.wallMs)} ${peerName} (${rate(other)}, processor ` +
    `${micros(other)}: ${ratio(other.processorMs, own.processorMs)})`
  );
}
