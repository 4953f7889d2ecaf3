/**
 * Summary of the shapes of a dynamic query, for maps (`addSpatialProperties=true`): the properties that its points are
 * made from, and the circles, polygons and boxes that it searches. In the format of RavenDB 7.2.7.
 */
import { globe, lengthOf } from "../../indexing/spatial/space.ts";
import { analyzedFieldsOf } from "../analysis/analyze-index.ts";
import type { AnalyzedQuery, Condition } from "../analysis/analyzed-query.ts";
import { operandsOf } from "../analysis/meaning-of.ts";
import { type QueryShape, shapeIn } from "../functions/spatial-arguments.ts";

interface Vertex {
  readonly Latitude: number;
  readonly Longitude: number;
}

export interface SpatialSummary {
  readonly properties: readonly {
    readonly LatitudeProperty: string;
    readonly LongitudeProperty: string;
  }[];
  readonly shapes: readonly object[];
}

/** Null if the query has no spatial field. */
export function spatialSummary(query: AnalyzedQuery): SpatialSummary | null {
  const fields = analyzedFieldsOf(query).filter(({ spatial }) => spatial !== undefined);
  if (fields.length === 0) return null;
  const points = new Map(
    fields
      .filter(({ spatial }) => spatial?.method === "point")
      .map(({ name, spatial }) => [name, spatial?.paths.map(nameOf) ?? []]),
  );
  const properties = [...points.values()].map(([latitude = "", longitude = ""]) => ({
    LatitudeProperty: latitude,
    LongitudeProperty: longitude,
  }));
  const shapes: object[] = [];
  if (query.where !== null) addShapes(query.where, shapes);
  return { properties, shapes };
}

function nameOf(path: readonly { readonly name: string; readonly arrays: number }[]): string {
  return path.map(({ name, arrays }) => name + "[]".repeat(arrays)).join(".");
}

function addShapes(condition: Condition, shapes: object[]): void {
  for (const operand of operandsOf(condition)) addShapes(operand, shapes);
  if (!("shape" in condition)) return;
  const shown = shownShape(condition.shape);
  if (shown !== null) shapes.push(shown);
}

/** Null: a shape of another kind. */
function shownShape(sought: QueryShape): object | null {
  const { areas, circles, points, lines } = shapeIn(globe, sought);
  if (areas.length + circles.length !== 1 || points.length + lines.length > 0) return null;
  const [circle] = circles;
  if (circle !== undefined) {
    const units = sought.units ?? globe.units;
    const center: Vertex = { Latitude: circle.y, Longitude: circle.x };
    const radius = lengthOf(globe, circle.radius, units);
    return { Type: "Circle", Center: center, Radius: radius, Units: units };
  }
  const [rings = []] = areas;
  const isBox = sought.kind === "wkt" && /^\s*envelope\b/i.test(sought.text);
  const isPolygon = sought.kind === "wkt" && /^\s*polygon\b/i.test(sought.text);
  if (rings.length === 0 || !(isBox || isPolygon)) return null;
  const vertices = rings.flatMap((ring) => verticesOf(ring));
  return { Type: "Polygon", Vertices: boxOf(vertices) ?? vertices };
}

function verticesOf(ring: ArrayLike<number>): Vertex[] {
  const vertices: Vertex[] = [];
  for (let i = 0; i < ring.length; i += 2) {
    vertices.push({ Latitude: ring[i + 1] as number, Longitude: ring[i] as number });
  }
  return vertices;
}

/**
 * Returns the corners of a closed rectangle as a box that begins in the north-east, is clockwise and is not closed;
 * null if the polygon is not a rectangle.
 */
function boxOf(vertices: readonly Vertex[]): Vertex[] | null {
  const latitudes = [...new Set(vertices.map(({ Latitude }) => Latitude))];
  const longitudes = [...new Set(vertices.map(({ Longitude }) => Longitude))];
  const corners = new Set(vertices.map(({ Latitude, Longitude }) => `${Latitude} ${Longitude}`));
  const isBox = vertices.length <= 5 && corners.size === 4;
  if (!isBox || latitudes.length !== 2 || longitudes.length !== 2) return null;
  const [south, north] = latitudes.toSorted((a, b) => a - b) as [number, number];
  const [west, east] = longitudes.toSorted((a, b) => a - b) as [number, number];
  return [
    { Latitude: north, Longitude: east },
    { Latitude: south, Longitude: east },
    { Latitude: south, Longitude: west },
    { Latitude: north, Longitude: west },
  ];
}
