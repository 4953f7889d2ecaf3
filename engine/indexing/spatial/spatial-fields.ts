/**
 * Shapes from the values of a document's fields: the spatial fields of automatic indexes. A coordinate is a number or
 * the text of one. A document without coordinates, or with coordinates outside the globe, has no shape.
 */
import { byteArrayOpen, byteObjectOpen } from "../../base/json/bytes.ts";
import {
  findMember,
  firstElement,
  nextElement,
  skipValue,
  ValueSpan,
} from "../../base/json/field-access.ts";
import type { FieldColumn } from "../columns/field-column.ts";
import type { SpatialSource } from "../definitions/index-definition.ts";
import { type FieldStep, fieldStep } from "../fields/path-text.ts";
import { globe } from "./space.ts";
import { addPoint, addWkt, coordinateOf } from "./spatial-terms.ts";

/** Adds the shapes of the object that begins at `at` to the column's current entry. */
export type SpatialReader = (column: FieldColumn, bytes: Buffer, at: number) => void;

export function spatialReader({ method, paths }: SpatialSource): SpatialReader {
  const steps = paths.map((path) => path.map(({ name, arrays }) => fieldStep(name, arrays > 0)));
  const [first = [], second = []] = steps;
  if (method === "point") {
    return function addDocumentPoint(column, bytes, at) {
      const latitudes = valuesAt(bytes, at, first);
      if (latitudes.length === 0) return;
      const longitudes = valuesAt(bytes, at, second);
      // Lists, as `Stops[].Lat` and `Stops[].Lng`, go in pairs.
      if (latitudes.length !== longitudes.length) return;
      for (const [i, latitude] of latitudes.entries()) {
        addPoint(column, coordinateOf(longitudes[i]), coordinateOf(latitude), globe);
      }
    };
  }
  return function addDocumentShapes(column, bytes, at) {
    for (const text of valuesAt(bytes, at, first)) {
      if (typeof text === "string") addWkt(column, text, globe);
    }
  };
}

/** Returns the scalar values at a path, including the elements of lists. */
function valuesAt(bytes: Buffer, at: number, steps: readonly FieldStep[], depth = 0): unknown[] {
  if (bytes[at] === byteArrayOpen) {
    const values: unknown[] = [];
    for (let i = firstElement(bytes, at); i >= 0; i = nextElement(bytes, skipValue(bytes, i))) {
      for (const value of valuesAt(bytes, i, steps, depth)) values.push(value);
    }
    return values;
  }
  const isObject = bytes[at] === byteObjectOpen;
  const step = steps[depth];
  if (step === undefined) {
    return isObject ? [] : [JSON.parse(bytes.toString("utf8", at, skipValue(bytes, at)))];
  }
  const span = new ValueSpan();
  if (!isObject || !findMember(bytes, at, step.name, span)) return [];
  return valuesAt(bytes, span.from, steps, depth + 1);
}
