/**
 * Spatial relations of two shapes: whether they intersect, and whether one covers the other, as the simple-features
 * predicates define them (a boundary belongs to its shape). Lines and areas are straight between their points in x and
 * y, also on the globe, as in RavenDB; circles on the globe are true circles.
 *
 * Signs of areas are computed by robust-predicates, so that rounding decides no test of orientation. Work is charged
 * for each pair of segments, and pauses.
 */
import { orient2d } from "robust-predicates";
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import { AreaLocator } from "./area-locator.ts";
import { type Area, boxOf, type Circle, isInCircle, type Shape } from "./shape.ts";
import { distanceBetween, type Space } from "./space.ts";

/** Segments between two checks of the budget. */
const stride = 64;

/** Segments as x1, y1, x2, y2, …. */
function segmentsOf(paths: readonly Float64Array[]): Float64Array {
  let count = 0;
  for (const path of paths) count += Math.max(0, path.length / 2 - 1);
  const segments = new Float64Array(count * 4);
  let at = 0;
  for (const path of paths) {
    for (let i = 0; i + 3 < path.length; i += 2) {
      for (let k = 0; k < 4; k++) segments[at++] = path[i + k] as number;
    }
  }
  return segments;
}

/** A shape that is compared with many others: data that each comparison needs is computed once. */
export class PreparedShape {
  readonly shape: Shape;
  readonly space: Space;
  readonly locators: readonly AreaLocator[];
  readonly lineSegments: Float64Array;
  readonly ringSegments: Float64Array;
  /** Cost of locating a place, in units. */
  readonly placeUnits: number;

  constructor(shape: Shape, space: Space) {
    this.shape = shape;
    this.space = space;
    this.locators = shape.areas.map((area) => new AreaLocator(area));
    this.lineSegments = segmentsOf(shape.lines);
    this.ringSegments = segmentsOf(shape.areas.flat());
    this.placeUnits =
      4 +
      shape.circles.length * 8 +
      shape.points.length / 2 +
      this.lineSegments.length / 4 +
      this.locators.reduce((sum, locator) => sum + locator.units, 0);
  }

  /** Returns whether a place is in the shape or on its boundary. Cost: `placeUnits` */
  covers(x: number, y: number): boolean {
    const { points, circles } = this.shape;
    for (const circle of circles) if (isInCircle(circle, x, y, this.space)) return true;
    for (const locator of this.locators) if (locator.locate(x, y) >= 0) return true;
    for (let i = 0; i < points.length; i += 2) {
      if (points[i] === x && points[i + 1] === y) return true;
    }
    return isOnSegments(this.lineSegments, x, y);
  }
}

function isOnSegments(segments: Float64Array, x: number, y: number): boolean {
  for (let i = 0; i < segments.length; i += 4) if (isOnSegment(segments, i, x, y)) return true;
  return false;
}

function isOnSegment(segments: Float64Array, i: number, x: number, y: number): boolean {
  const x1 = segments[i] as number;
  const y1 = segments[i + 1] as number;
  const x2 = segments[i + 2] as number;
  const y2 = segments[i + 3] as number;
  if (x < Math.min(x1, x2) || x > Math.max(x1, x2)) return false;
  if (y < Math.min(y1, y2) || y > Math.max(y1, y2)) return false;
  return orient2d(x1, y1, x2, y2, x, y) === 0;
}

/** Returns whether some place is in both shapes. */
export function* intersects(
  left: PreparedShape,
  right: PreparedShape,
  budget: WorkBudget,
): Work<boolean> {
  for (const [one, other] of [
    [left, right],
    [right, left],
  ] as const) {
    if (yield* somePlaceIn(one, other, budget)) return true;
    for (const circle of one.shape.circles) {
      if (yield* circleMeets(circle, other, budget)) return true;
    }
  }
  const [a, b] = [allSegments(left), allSegments(right)];
  for (let i = 0; i < a.length; i += 4) {
    if (yield* segmentMeets(a, i, b, budget)) return true;
  }
  return false;
}

function allSegments({ lineSegments, ringSegments }: PreparedShape): Float64Array {
  if (lineSegments.length === 0) return ringSegments;
  if (ringSegments.length === 0) return lineSegments;
  const all = new Float64Array(lineSegments.length + ringSegments.length);
  all.set(lineSegments);
  all.set(ringSegments, lineSegments.length);
  return all;
}

/** Returns whether a point of `one`, or the first place of a line or ring of it, is in `other`. */
function* somePlaceIn(one: PreparedShape, other: PreparedShape, budget: WorkBudget): Work<boolean> {
  const { points, lines, areas } = one.shape;
  for (let i = 0; i < points.length; i += 2) {
    yield* pay(budget, other.placeUnits);
    if (other.covers(points[i] as number, points[i + 1] as number)) return true;
  }
  for (const path of [...lines, ...areas.map(([outer]) => outer as Float64Array)]) {
    yield* pay(budget, other.placeUnits);
    if (other.covers(path[0] as number, path[1] as number)) return true;
  }
  return false;
}

function* circleMeets(circle: Circle, other: PreparedShape, budget: WorkBudget): Work<boolean> {
  const { space, shape } = other;
  for (const { x, y, radius } of shape.circles) {
    if (isInCircle({ ...circle, radius: circle.radius + radius }, x, y, space)) return true;
  }
  yield* pay(budget, other.placeUnits);
  if (other.covers(circle.x, circle.y)) return true;
  const segments = allSegments(other);
  for (let i = 0; i < segments.length; i += 4) {
    yield* pay(budget, distanceUnits);
    if (distanceToSegment(segments, i, circle, space) <= circle.radius) return true;
  }
  return false;
}

/** Returns whether the segment at `i` of `a` has a place with one of `b`. */
function* segmentMeets(
  a: Float64Array,
  i: number,
  b: Float64Array,
  budget: WorkBudget,
): Work<boolean> {
  for (let k = 0; k < b.length; k += 4) {
    if ((k & (stride * 4 - 1)) === 0) yield* pay(budget, stride);
    if (doSegmentsMeet(a, i, b, k)) return true;
  }
  return false;
}

function* pay(budget: WorkBudget, units: number): Work<void> {
  budget.spend(units);
  if (budget.isDue) yield;
}

/** Hot: runs for each pair of segments; most pairs are told apart by their boxes. */
function doSegmentsMeet(a: Float64Array, i: number, b: Float64Array, k: number): boolean {
  const ax = a[i] as number;
  const ay = a[i + 1] as number;
  const bx = a[i + 2] as number;
  const by = a[i + 3] as number;
  const cx = b[k] as number;
  const cy = b[k + 1] as number;
  const dx = b[k + 2] as number;
  const dy = b[k + 3] as number;
  if (ax < cx && ax < dx && bx < cx && bx < dx) return false;
  if (ax > cx && ax > dx && bx > cx && bx > dx) return false;
  if (ay < cy && ay < dy && by < cy && by < dy) return false;
  if (ay > cy && ay > dy && by > cy && by > dy) return false;
  const c = orient2d(ax, ay, bx, by, cx, cy);
  const d = orient2d(ax, ay, bx, by, dx, dy);
  if ((c > 0 && d > 0) || (c < 0 && d < 0)) return false;
  const e = orient2d(cx, cy, dx, dy, ax, ay);
  const f = orient2d(cx, cy, dx, dy, bx, by);
  return !((e > 0 && f > 0) || (e < 0 && f < 0));
}

/** Returns whether every place of `inner` is in `outer`. An empty shape is covered by none. */
export function* isCovered(
  inner: PreparedShape,
  outer: PreparedShape,
  budget: WorkBudget,
): Work<boolean> {
  const { points, lines, areas, circles } = inner.shape;
  if (points.length + lines.length + areas.length + circles.length === 0) return false;
  for (let i = 0; i < points.length; i += 2) {
    yield* pay(budget, outer.placeUnits);
    if (!outer.covers(points[i] as number, points[i + 1] as number)) return false;
  }
  for (const circle of circles) if (!(yield* isCircleCovered(circle, outer, budget))) return false;
  for (const line of lines) if (!(yield* isLineCovered(line, outer, budget))) return false;
  for (const area of areas) if (!(yield* isAreaCovered(area, outer, budget))) return false;
  return true;
}

function* isCircleCovered(circle: Circle, outer: PreparedShape, budget: WorkBudget): Work<boolean> {
  const { space, shape, locators } = outer;
  if (circle.radius === 0) return outer.covers(circle.x, circle.y);
  for (const other of shape.circles) {
    const distance = distanceBetween(space, other.x, other.y, circle.x, circle.y);
    if (distance + circle.radius <= other.radius) return true;
  }
  if (!locators.some((locator) => locator.locate(circle.x, circle.y) > 0)) return false;
  const { ringSegments } = outer;
  for (let i = 0; i < ringSegments.length; i += 4) {
    yield* pay(budget, distanceUnits);
    if (distanceToSegment(ringSegments, i, circle, space) < circle.radius) return false;
  }
  return true;
}

function* isLineCovered(
  line: Float64Array,
  outer: PreparedShape,
  budget: WorkBudget,
): Work<boolean> {
  const segments = segmentsOf([line]);
  const cutters = allSegments(outer);
  const test = (x: number, y: number) => outer.locators.some((one) => one.locate(x, y) >= 0);
  for (const circle of outer.shape.circles) {
    if (yield* areInCircle(segments, circle, outer.space, budget)) return true;
  }
  for (let i = 0; i < segments.length; i += 4) {
    if (!(yield* everySection(segments, i, cutters, test, outer.placeUnits, budget))) return false;
  }
  return true;
}

/**
 * An area is covered if its rings are, a point inside it is, and no boundary of the outer areas crosses it (such a
 * boundary is that of a hole, or of a bay).
 */
function* isAreaCovered(area: Area, outer: PreparedShape, budget: WorkBudget): Work<boolean> {
  const rings = segmentsOf(area);
  for (const circle of outer.shape.circles) {
    if (yield* areInCircle(rings, circle, outer.space, budget)) return true;
  }
  const { locators, ringSegments } = outer;
  if (locators.length === 0) return false;
  const isIn = (x: number, y: number) => locators.some((one) => one.locate(x, y) >= 0);
  for (let i = 0; i < rings.length; i += 4) {
    if (!(yield* everySection(rings, i, ringSegments, isIn, outer.placeUnits, budget)))
      return false;
  }
  const inside = placeInside(area);
  if (inside !== null && !isIn(inside.x, inside.y)) return false;
  const own = new AreaLocator(area);
  const isOutside = (x: number, y: number) =>
    own.locate(x, y) <= 0 || locators.some((one) => one.locate(x, y) > 0);
  const box = boxOf(area[0] as Float64Array);
  for (let i = 0; i < ringSegments.length; i += 4) {
    const [x1, y1, x2, y2] = ringSegments.subarray(i, i + 4) as unknown as number[] as [
      number,
      number,
      number,
      number,
    ];
    const isAside =
      Math.max(x1, x2) < box.minX ||
      Math.min(x1, x2) > box.maxX ||
      Math.max(y1, y2) < box.minY ||
      Math.min(y1, y2) > box.maxY;
    if (isAside) continue;
    if (
      !(yield* everySection(
        ringSegments,
        i,
        rings,
        isOutside,
        outer.placeUnits + own.units,
        budget,
      ))
    )
      return false;
  }
  return true;
}

/**
 * Returns whether every section of the segment at `i`, cut where `cutters` meet it, passes `test` at its midpoint. A
 * section that runs along a cutter passes. `pieceUnits`: the cost of a test.
 */
function* everySection(
  segments: Float64Array,
  i: number,
  cutters: Float64Array,
  test: (x: number, y: number) => boolean,
  pieceUnits: number,
  budget: WorkBudget,
): Work<boolean> {
  const ax = segments[i] as number;
  const ay = segments[i + 1] as number;
  const ux = (segments[i + 2] as number) - ax;
  const uy = (segments[i + 3] as number) - ay;
  const cuts = [0, 1];
  const along: [number, number][] = [];
  for (let k = 0; k < cutters.length; k += 4) {
    if ((k & (stride * 4 - 1)) === 0) yield* pay(budget, stride);
    if (doSegmentsMeet(segments, i, cutters, k)) addCuts(ax, ay, ux, uy, cutters, k, cuts, along);
  }
  cuts.sort((a, b) => a - b);
  yield* pay(budget, cuts.length * 16);
  for (let c = 1; c < cuts.length; c++) {
    const from = cuts[c - 1] as number;
    const to = cuts[c] as number;
    if (to - from < pieceMin) continue;
    const middle = (from + to) / 2;
    yield* pay(budget, pieceUnits + along.length);
    if (along.some(([start, end]) => middle >= start && middle <= end)) continue;
    if (!test(ax + ux * middle, ay + uy * middle)) return false;
  }
  return true;
}

/** Sections below this share of a segment are rounding errors. */
const pieceMin = 1e-9;

/** Adds where the cutter at `k` meets the segment a + t·u, as values of t. */
function addCuts(
  ax: number,
  ay: number,
  ux: number,
  uy: number,
  cutters: Float64Array,
  k: number,
  cuts: number[],
  along: [number, number][],
): void {
  const cx = cutters[k] as number;
  const cy = cutters[k + 1] as number;
  const dx = cutters[k + 2] as number;
  const dy = cutters[k + 3] as number;
  const length = ux * ux + uy * uy;
  const placeOf = (x: number, y: number) => ((x - ax) * ux + (y - ay) * uy) / length;
  if (length === 0) return;
  const c = orient2d(ax, ay, ax + ux, ay + uy, cx, cy);
  const d = orient2d(ax, ay, ax + ux, ay + uy, dx, dy);
  if (c === 0) cuts.push(within01(placeOf(cx, cy)));
  if (d === 0) cuts.push(within01(placeOf(dx, dy)));
  if (c === 0 && d === 0) {
    const [from, to] = [within01(placeOf(cx, cy)), within01(placeOf(dx, dy))];
    along.push([Math.min(from, to), Math.max(from, to)]);
    return;
  }
  const cross = ux * (dy - cy) - uy * (dx - cx);
  if (cross !== 0) cuts.push(within01(((cx - ax) * (dy - cy) - (cy - ay) * (dx - cx)) / cross));
}

function within01(value: number): number {
  return Math.max(0, Math.min(1, value));
}

/**
 * Returns a point inside an area: the midpoint of its widest run along a line through its middle. Null if it has no
 * inside.
 */
function placeInside([outer, ...holes]: Area): { readonly x: number; readonly y: number } | null {
  const { minY, maxY } = boxOf(outer as Float64Array);
  const y = lineBetween([outer as Float64Array, ...holes], minY, maxY);
  const crossings: number[] = [];
  for (const ring of [outer as Float64Array, ...holes]) {
    for (let i = 0; i + 3 < ring.length; i += 2) {
      const [x1, y1, x2, y2] = [...ring.subarray(i, i + 4)] as [number, number, number, number];
      if (y1 > y !== y2 > y) crossings.push(x1 + ((y - y1) * (x2 - x1)) / (y2 - y1));
    }
  }
  crossings.sort((a, b) => a - b);
  let best: { readonly x: number; readonly y: number } | null = null;
  let width = 0;
  for (let i = 0; i + 1 < crossings.length; i += 2) {
    const [from, to] = [crossings[i] as number, crossings[i + 1] as number];
    if (to - from <= width) continue;
    width = to - from;
    best = { x: (from + to) / 2, y };
  }
  return best;
}

/** Returns a height between the two places nearest to the middle, so that the line meets no place. */
function lineBetween(rings: readonly Float64Array[], minY: number, maxY: number): number {
  const middle = (minY + maxY) / 2;
  let [below, above] = [minY, maxY];
  for (const ring of rings) {
    for (let i = 1; i < ring.length; i += 2) {
      const y = ring[i] as number;
      if (y <= middle) below = Math.max(below, y);
      else above = Math.min(above, y);
    }
  }
  return (below + above) / 2;
}

/** Cost of a distance to a segment, and the places along it that are measured first. */
const distanceUnits = 96;
const samples = 8;

function* areInCircle(
  segments: Float64Array,
  circle: Circle,
  space: Space,
  budget: WorkBudget,
): Work<boolean> {
  for (let i = 0; i < segments.length; i += 4) {
    yield* pay(budget, distanceUnits);
    for (let s = 0; s <= samples; s++) {
      const { x, y } = alongSegment(segments, i, s / samples);
      if (!isInCircle(circle, x, y, space)) return false;
    }
  }
  return true;
}

function alongSegment(segments: Float64Array, i: number, t: number): { x: number; y: number } {
  const x1 = segments[i] as number;
  const y1 = segments[i + 1] as number;
  return {
    x: x1 + ((segments[i + 2] as number) - x1) * t,
    y: y1 + ((segments[i + 3] as number) - y1) * t,
  };
}

/**
 * Returns the distance from the center of a circle to a segment. In a plane it is exact; on the globe the nearest of
 * some places along the segment, and then by halves around it.
 */
function distanceToSegment(
  segments: Float64Array,
  i: number,
  circle: Circle,
  space: Space,
): number {
  const at = (t: number) => {
    const { x, y } = alongSegment(segments, i, t);
    return distanceBetween(space, circle.x, circle.y, x, y);
  };
  let best = 0;
  let least = at(0);
  for (let s = 1; s <= samples; s++) {
    const distance = at(s / samples);
    if (distance >= least) continue;
    least = distance;
    best = s / samples;
  }
  for (let step = 0.5 / samples; step > 1e-7; step /= 2) {
    for (const t of [best - step, best + step]) {
      if (t < 0 || t > 1) continue;
      const distance = at(t);
      if (distance >= least) continue;
      least = distance;
      best = t;
    }
  }
  return least;
}
