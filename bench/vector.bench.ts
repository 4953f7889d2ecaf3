/**
 * The ten nearest of many vectors of 384 dimensions, clustered like embeddings: by sketches, and by comparing every
 * vector. Prints the recall of the sketches, alone and with a filter.
 */
import { createHash } from "node:crypto";
import { FreeBudget, finish } from "../engine/base/scheduling/work-budget.ts";
import { EntrySet } from "../engine/indexing/columns/entry-set.ts";
import { EntryStore } from "../engine/indexing/columns/entry-store.ts";
import { EntryView } from "../engine/indexing/columns/entry-view.ts";
import type { FieldColumn } from "../engine/indexing/columns/field-column.ts";
import { firstTerm, vectorKind } from "../engine/indexing/columns/term-dictionary.ts";
import { vectorColumnOf } from "../engine/indexing/vectors/vector-column.ts";
import { type BenchSize, median, percentile } from "./harness.ts";

const budget = new FreeBudget();
const dimensions = 384;
const wanted = 10;

let state = 1;
function random(): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state / 2 ** 32;
}

/** Returns an approximately normal random number. */
function normal(): number {
  return random() + random() + random() + random() - 2;
}

function clustered(centers: readonly Float32Array[]): Float32Array {
  const center = centers[Math.floor(random() * centers.length)] as Float32Array;
  return center.map((number) => number + normal() * 0.8);
}

/** Runs the bench; equal hashes mean equal work. */
export function run(size: BenchSize): string[] {
  state = 1;
  const count = size === "smoke" ? 5_000 : 100_000;
  const rounds = size === "smoke" ? 3 : 50;
  const centers = Array.from({ length: 1000 }, () =>
    Float32Array.from({ length: dimensions }, () => normal() + 0.1),
  );
  const store = new EntryStore(1);
  const [column] = store.columns as [FieldColumn];
  for (let i = 0; i < count; i++) {
    const bytes = Buffer.from(clustered(centers).buffer);
    column.add(column.dictionary.intern(vectorKind, bytes, bytes.length, Number.NaN));
    store.endEntry(i);
  }
  const vectors = vectorColumnOf(column, "Single");
  const start = performance.now();
  let slowestMs = 0;
  let last = start;
  for (const work = vectors.refresh(new EagerBudget()); work.next().done !== true; ) {
    const now = performance.now();
    slowestMs = Math.max(slowestMs, now - last);
    last = now;
  }
  const lines = [
    `${count} vectors, norms and sketches: ${(performance.now() - start).toFixed(0)} ms, slowest step ${slowestMs.toFixed(1)} ms`,
  ];
  const view = new EntryView(store);
  const tenth = EntrySet.ofSorted(Uint32Array.from({ length: count / 10 }, (_, i) => i * 10));
  const hash = createHash("sha256");
  for (const [name, within] of [
    ["all", null],
    ["a tenth", tenth],
  ] as const) {
    const times: number[][] = [[], []];
    let found = 0;
    for (let round = 0; round < rounds; round++) {
      const sought = Buffer.from(clustered(centers).buffer);
      const [near, exact] = [false, true].map((isExact, i) => {
        const begin = performance.now();
        const search = { vectors: [sought], count: wanted, minimum: 0, isExact, within };
        const scores = finish(vectors.find(search, view, budget));
        (times[i] as number[]).push(performance.now() - begin);
        return scores;
      }) as [Map<number, number>, Map<number, number>];
      for (const entry of exact.keys()) if (near.has(entry)) found++;
      hash.update(Uint32Array.from(near.keys()).sort());
    }
    const [near, exact] = times as [number[], number[]];
    lines.push(
      `the ${wanted} nearest of ${name}: ${median(near).toFixed(2)} ms (99 %: ${percentile(near, 0.99).toFixed(2)} ms), all compared ` +
        `${median(exact).toFixed(2)} ms, recall ${(found / rounds / wanted).toFixed(3)}`,
    );
  }
  lines.push(
    `${column.dictionary.count - firstTerm} terms, result ${hash.digest("hex").slice(0, 16)}`,
  );
  for (const line of lines) console.log(line);
  return lines;
}

/** Pauses at every opportunity. */
class EagerBudget extends FreeBudget {
  override get isDue(): boolean {
    return true;
  }
}
