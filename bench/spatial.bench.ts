/**
 * Spatial conditions and orders over points spread evenly over the globe: circles of several radii, and the 20
 * nearest of all. Compared with testing every point, which is the cost without an index.
 */
import { createHash } from "node:crypto";
import { FreeBudget, finish } from "../engine/base/scheduling/work-budget.ts";
import { EntryStore } from "../engine/indexing/columns/entry-store.ts";
import { EntryView } from "../engine/indexing/columns/entry-view.ts";
import type { FieldColumn } from "../engine/indexing/columns/field-column.ts";
import { circleShape } from "../engine/indexing/spatial/shape.ts";
import { distanceOf, globe, haversine } from "../engine/indexing/spatial/space.ts";
import { type SpatialColumn, spatialColumnOf } from "../engine/indexing/spatial/spatial-column.ts";
import { addPoint } from "../engine/indexing/spatial/spatial-terms.ts";
import { type BenchSize, median, percentile } from "./harness.ts";

const budget = new FreeBudget();
const radiiKm = [10, 50, 200, 1000];
const nearestCount = 20;

let state = 1;
function random(): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state / 2 ** 32;
}

function randomPlace(): { readonly x: number; readonly y: number } {
  const y = (Math.asin(random() * 2 - 1) * 180) / Math.PI;
  return { x: Math.round((random() * 360 - 180) * 1e5) / 1e5, y: Math.round(y * 1e5) / 1e5 };
}

interface Timed {
  readonly medianMs: number;
  readonly slowMs: number;
  readonly hits: number;
}

function timed(rounds: number, work: () => number): Timed {
  const times: number[] = [];
  let hits = 0;
  for (let round = 0; round < rounds; round++) {
    const start = performance.now();
    hits += work();
    times.push(performance.now() - start);
  }
  return { medianMs: median(times), slowMs: percentile(times, 0.99), hits: hits / rounds };
}

/** Runs the bench; equal hashes mean equal work. */
export function run(size: BenchSize): string[] {
  state = 1;
  const count = size === "smoke" ? 2_000 : 1_000_000;
  const rounds = size === "smoke" ? 3 : 200;
  const store = new EntryStore(1);
  const [column] = store.columns as [FieldColumn];
  const places = new Float64Array(count * 2);
  for (let i = 0; i < count; i++) {
    const { x, y } = randomPlace();
    places[i * 2] = x;
    places[i * 2 + 1] = y;
    addPoint(column, x, y, globe);
    store.endEntry(i);
  }
  const spatial = spatialColumnOf(column, globe);
  const refresh = timed(1, () => refreshed(spatial));
  const hash = createHash("sha256");
  const view = new EntryView(store);
  const among = { accepts: () => true, rankOf: (entry: number) => entry };
  const all = timed(Math.min(rounds, 10), () => scanned(places, randomPlace()));
  const nearest = timed(rounds, () => {
    const { x, y } = randomPlace();
    const found = finish(spatial.nearest(x, y, nearestCount, 0, among, budget));
    hash.update(found);
    return found.length;
  });
  const lines = [
    `${count} points, trees: ${refresh.medianMs.toFixed(0)} ms`,
    `every point tested: ${all.medianMs.toFixed(2)} ms`,
    `the ${nearestCount} nearest: ${timedText(nearest, all)}`,
  ];
  for (const km of radiiKm) {
    const radius = distanceOf(globe, km, "Kilometers");
    const circle = timed(rounds, () => {
      const { x, y } = randomPlace();
      const found = finish(spatial.find("within", circleShape(x, y, radius), view, budget));
      hash.update(found.toList());
      return found.count;
    });
    lines.push(`circle of ${km} km, ${circle.hits.toFixed(1)} hits: ${timedText(circle, all)}`);
  }
  lines.push(`result ${hash.digest("hex").slice(0, 16)}`);
  for (const line of lines) console.log(line);
  return lines;
}

function refreshed(spatial: SpatialColumn): number {
  finish(spatial.refresh(budget));
  return 0;
}

function scanned(
  places: Float64Array,
  { x, y }: { readonly x: number; readonly y: number },
): number {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < places.length; i += 2) {
    least = Math.min(least, haversine(x, y, places[i] as number, places[i + 1] as number));
  }
  return least < 0 ? 1 : 0;
}

function timedText({ medianMs, slowMs }: Timed, all: Timed): string {
  const ratio = (all.medianMs / medianMs).toFixed(0);
  return `${medianMs.toFixed(3)} ms (99 %: ${slowMs.toFixed(3)} ms), ${ratio} times as fast as testing every point`;
}
