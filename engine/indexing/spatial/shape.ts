/**
 * A shape: points, lines, areas and circles together, in the coordinates of a space. Plain data, and the boxes that
 * enclose it.
 *
 * Invariants:
 * - Coordinates are x, y, x, y, …. A ring of an area is closed: its last point is its first.
 * - On the globe a line or ring that crosses the date line continues beyond 180 degrees, and is stored a second time,
 *   shifted by 360 degrees: so planar tests hold on both sides.
 */
import { arcOf, distanceBetween, haversine, type Space } from "./space.ts";

export interface Circle {
  readonly x: number;
  readonly y: number;
  /** A distance of the space. */
  readonly radius: number;
}

/** The outer ring first, then holes; a place is inside when it is in an odd number of them. */
export type Area = readonly Float64Array[];

export interface Shape {
  readonly points: Float64Array;
  readonly lines: readonly Float64Array[];
  readonly areas: readonly Area[];
  readonly circles: readonly Circle[];
}

export function circleShape(x: number, y: number, radius: number): Shape {
  return { points: new Float64Array(0), lines: [], areas: [], circles: [{ x, y, radius }] };
}

/** A box in the coordinates of a space. */
export interface Box {
  readonly minX: number;
  readonly minY: number;
  readonly maxX: number;
  readonly maxY: number;
}

/** Returns the box that encloses coordinates. */
export function boxOf(coordinates: Float64Array): Box {
  let [minX, minY, maxX, maxY] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let i = 0; i < coordinates.length; i += 2) {
    const x = coordinates[i] as number;
    const y = coordinates[i + 1] as number;
    if (x < minX) minX = x;
    if (x > maxX) maxX = x;
    if (y < minY) minY = y;
    if (y > maxY) maxY = y;
  }
  return { minX, minY, maxX, maxY };
}

/** Boxes that together enclose a shape, within the bounds of the space; none for an empty one. */
export function boxesOf(shape: Shape, space: Space): Box[] {
  const boxes: Box[] = [];
  if (shape.points.length > 0) boxes.push(boxOf(shape.points));
  for (const line of shape.lines) boxes.push(boxOf(line));
  for (const [outer] of shape.areas) if (outer !== undefined) boxes.push(boxOf(outer));
  for (const circle of shape.circles) boxes.push(...circleBoxes(circle, space));
  return boxes.flatMap((box) => {
    const clipped = {
      minX: Math.max(box.minX, space.minX),
      minY: Math.max(box.minY, space.minY),
      maxX: Math.min(box.maxX, space.maxX),
      maxY: Math.min(box.maxY, space.maxY),
    };
    return clipped.minX <= clipped.maxX && clipped.minY <= clipped.maxY ? [clipped] : [];
  });
}

/** Degrees by which boxes of circles are wider than computed: more than the rounding of sines. */
const boxMargin = 1e-7;

/** Returns the boxes of a circle: two when it crosses the date line, the whole cap when it has a pole in it. */
function circleBoxes({ x, y, radius }: Circle, space: Space): Box[] {
  const reach = radius + boxMargin;
  const [minY, maxY] = [y - reach, y + reach];
  if (space.type === "Cartesian") return [{ minX: x - reach, minY, maxX: x + reach, maxY }];
  if (maxY >= 90 || minY <= -90) return [{ minX: -180, minY, maxX: 180, maxY }];
  const radians = Math.PI / 180;
  const turn = Math.asin(Math.sin(reach * radians) / Math.cos(y * radians)) / radians;
  const [minX, maxX] = [x - turn - boxMargin, x + turn + boxMargin];
  const boxes = [{ minX, minY, maxX, maxY }];
  if (minX < -180) boxes.push({ minX: minX + 360, minY, maxX: 180, maxY });
  if (maxX > 180) boxes.push({ minX: -180, minY, maxX: maxX - 360, maxY });
  return boxes;
}

/** Returns the place that stands for a shape in distances: a point itself, else the center of its first box. */
export function centerOf(shape: Shape): { readonly x: number; readonly y: number } {
  const [circle] = shape.circles;
  const first = shape.points.length > 0 ? shape.points : (shape.lines[0] ?? shape.areas[0]?.[0]);
  if (first === undefined) return circle ?? { x: Number.NaN, y: Number.NaN };
  const { minX, minY, maxX, maxY } = boxOf(first);
  const x = (minX + maxX) / 2;
  return { x: x > 180 ? x - 360 : x, y: (minY + maxY) / 2 };
}

/** Places that the shape has: the measure of its costs. */
export function placeCountOf(shape: Shape): number {
  let count = shape.points.length / 2 + shape.circles.length;
  for (const line of shape.lines) count += line.length / 2;
  for (const area of shape.areas) for (const ring of area) count += ring.length / 2;
  return count;
}

/** Returns whether it is a single point. */
export function isPoint({ points, lines, areas, circles }: Shape): boolean {
  return points.length === 2 && lines.length + areas.length + circles.length === 0;
}

/** Degrees, or units of the plane, within which places are the same to a circle: the rounding of sines. */
const sameDistance = 1e-9;

/** Returns whether a place is in a circle or on its edge. */
export function isInCircle(
  { x, y, radius }: Circle,
  px: number,
  py: number,
  space: Space,
): boolean {
  if (space.type === "Cartesian") {
    return distanceBetween(space, x, y, px, py) <= radius + sameDistance;
  }
  return arcOf(haversine(x, y, px, py)) <= radius + sameDistance;
}
