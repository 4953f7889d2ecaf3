/**
 * Shapes as terms of a field: well-known text with a term type of its own, so that no comparison of texts finds them. A
 * point is `POINT (x y)`, with both numbers in their shortest form; any other shape is stored as the given text.
 */
import { EngineError } from "../../base/errors.ts";
import type { FieldColumn } from "../columns/field-column.ts";
import { shapeKind } from "../columns/term-dictionary.ts";
import { type Box, boxesOf, isPoint, type Shape } from "./shape.ts";
import type { Space } from "./space.ts";
import { parseWkt } from "./wkt.ts";

const pointStart = "POINT (";
const numberPattern = /^\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*$/;

export function pointText(x: number, y: number): string {
  return `${pointStart}${x} ${y})`;
}

/** Returns the place of a point's term; null for other shapes. */
export function placeOfPoint(text: string): { readonly x: number; readonly y: number } | null {
  if (!text.startsWith(pointStart)) return null;
  const gap = text.indexOf(" ", pointStart.length);
  const x = Number(text.slice(pointStart.length, gap));
  const y = Number(text.slice(gap + 1, -1));
  return Number.isNaN(x) || Number.isNaN(y) ? null : { x, y };
}

/** Adds a point to the current entry of the column; nothing when it is outside the space. */
export function addPoint(column: FieldColumn, x: number, y: number, space: Space): void {
  const { minX, maxX, minY, maxY } = space;
  // Also false for NaN.
  if (x >= minX && x <= maxX && y >= minY && y <= maxY) addTerm(column, pointText(x, y));
}

/** Adds a shape given as text; nothing if it is not a shape of the space. */
export function addWkt(column: FieldColumn, text: string, space: Space): void {
  const shape = shapeOf(text, space);
  if (shape === null) return;
  const { points, lines, areas, circles } = shape;
  if (isPoint(shape)) addPoint(column, points[0] as number, points[1] as number, space);
  else if (points.length + lines.length + areas.length + circles.length === 0) return;
  else if (space.strategy !== "BoundingBox") addTerm(column, text);
  else for (const box of boxesAround(shape, space)) addTerm(column, box);
}

/** Returns the shapes indexed for a shape with the strategy BoundingBox: the box around it, or two at the date line. */
function boxesAround(shape: Shape, space: Space): string[] {
  const boxes = boxesOf(shape, space);
  const isSplit = boxes.some(({ minX }) => minX === space.minX);
  const [first, ...others] = boxes;
  const around = isSplit ? boxes : first === undefined ? [] : [others.reduce(unionOf, first)];
  return around.map(({ minX, maxX, maxY, minY }) => `ENVELOPE(${minX}, ${maxX}, ${maxY}, ${minY})`);
}

function unionOf(one: Box, other: Box): Box {
  return {
    minX: Math.min(one.minX, other.minX),
    minY: Math.min(one.minY, other.minY),
    maxX: Math.max(one.maxX, other.maxX),
    maxY: Math.max(one.maxY, other.maxY),
  };
}

/** Returns the shape of a text; null if the text is not a shape. */
export function shapeOf(text: string, space: Space): Shape | null {
  try {
    return parseWkt(text, space, space.units);
  } catch (error) {
    const isText = error instanceof EngineError;
    if (isText && (error.code === "shape-invalid" || error.code === "too-large")) return null;
    throw error;
  }
}

/** Returns a coordinate in a document: a number, or the text of one; NaN for everything else. */
export function coordinateOf(value: unknown): number {
  if (typeof value === "number") return value;
  return typeof value === "string" && numberPattern.test(value) ? Number(value) : Number.NaN;
}

function addTerm(column: FieldColumn, text: string): void {
  const bytes = Buffer.from(text);
  column.add(column.dictionary.intern(shapeKind, bytes, bytes.length, Number.NaN));
}
