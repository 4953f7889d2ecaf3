/**
 * Shapes in the output of deployed indexes' maps: `{"$spatial": text}`, created by createSpatialField, or a list of
 * them. The text is well-known text, or null for a shape that is missing.
 */

import type { FieldColumn } from "../columns/field-column.ts";
import type { Space } from "./space.ts";
import { addWkt } from "./spatial-terms.ts";
import { parseWkt } from "./wkt.ts";

const opening = '{"$spatial":';

/** Returns whether the JSON text of a field's value is of shapes. */
export function isSpatialText(text: string): boolean {
  return text.startsWith(opening) || text.startsWith(`[${opening}`);
}

/** @throws EngineError shape-invalid */
export function checkSpatialText(text: string, space: Space): void {
  for (const shape of shapesIn(text)) parseWkt(shape, space, space.units);
}

/** Adds the shapes to the column's current entry. */
export function addSpatialText(column: FieldColumn, text: string, space: Space): void {
  for (const shape of shapesIn(text)) addWkt(column, shape, space);
}

function shapesIn(text: string): string[] {
  const value = JSON.parse(text) as unknown;
  return (Array.isArray(value) ? value : [value])
    .map((item) => (item as { readonly $spatial?: unknown } | null)?.$spatial)
    .filter((shape) => typeof shape === "string");
}
