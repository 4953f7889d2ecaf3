/**
 * The space that shapes are in: the globe in degrees of longitude (x) and latitude (y), or a plane; its bounds, and the
 * unit of its distances. Distances inside the engine are in degrees of arc on the globe, and in the plane's own unit.
 *
 * The earth's radius and the error texts equal those of RavenDB 7.2.7 (measured).
 */
import { EngineError } from "../../base/errors.ts";

export const spatialTypes = ["Geography", "Cartesian"] as const;
export const spatialStrategies = ["GeohashPrefixTree", "QuadPrefixTree", "BoundingBox"] as const;
export const spatialUnits = ["Kilometers", "Miles"] as const;
export type SpatialUnits = (typeof spatialUnits)[number];

/** The spatial options of a field, with RavenDB's defaults in `globe`. */
export interface Space {
  readonly type: (typeof spatialTypes)[number];
  readonly maxTreeLevel: number;
  readonly maxX: number;
  readonly maxY: number;
  readonly minX: number;
  readonly minY: number;
  readonly strategy: (typeof spatialStrategies)[number];
  readonly units: SpatialUnits;
}

export const globe: Space = {
  type: "Geography",
  maxTreeLevel: 9,
  maxX: 180,
  maxY: 90,
  minX: -180,
  minY: -90,
  strategy: "GeohashPrefixTree",
  units: "Kilometers",
};

const earthRadiusKm = 6371.0087714;
const kilometersOfMile = 1.609344;
const radiansOfDegree = Math.PI / 180;
const degreesOfRadian = 180 / Math.PI;

/** Returns a length in `units` as a distance of the space. */
export function distanceOf(space: Space, length: number, units: SpatialUnits): number {
  if (space.type === "Cartesian") return length;
  const km = units === "Miles" ? length * kilometersOfMile : length;
  return (km / earthRadiusKm) * degreesOfRadian;
}

/** Returns a distance of the space as a length in `units`. */
export function lengthOf(space: Space, distance: number, units: SpatialUnits): number {
  if (space.type === "Cartesian") return distance;
  const km = distance * radiansOfDegree * earthRadiusKm;
  return units === "Miles" ? km / kilometersOfMile : km;
}

/** Length of a degree of arc in reported distances: RavenDB uses another radius for these than for comparisons. */
const nauticalMilesOfDegree = 60;
const milesOfNauticalMile = 1.1515;
const kilometersOfReportedMile = 1 / 0.621371192;

/** As `lengthOf` in the units of the space, for a reported distance. */
export function reportedLengthOf(space: Space, distance: number): number {
  if (space.type === "Cartesian") return distance;
  const miles = distance * nauticalMilesOfDegree * milesOfNauticalMile;
  return space.units === "Miles" ? miles : miles * kilometersOfReportedMile;
}

/**
 * Returns the distance of two points for reports: by the law of cosines, with an error of some centimeters at short
 * distances, so that its digits equal those of RavenDB 7.2.7.
 */
export function reportedDistance(
  space: Space,
  x1: number,
  y1: number,
  x2: number,
  y2: number,
): number {
  if (space.type === "Cartesian") return distanceBetween(space, x1, y1, x2, y2);
  const [low, high] = [y1 * radiansOfDegree, y2 * radiansOfDegree];
  const turn = Math.cos((x1 - x2) * radiansOfDegree);
  const cosine = Math.sin(low) * Math.sin(high) + Math.cos(low) * Math.cos(high) * turn;
  const isSame = x1 === x2 && y1 === y2;
  const arc = isSame ? 0 : (Math.acos(Math.max(-1, Math.min(1, cosine))) * 180) / Math.PI;
  return reportedLengthOf(space, arc);
}

/**
 * Half the versed sine of the arc between two places, in degrees: it grows with their distance and costs less.
 * Hot: bench/spatial.bench.ts.
 */
export function haversine(x1: number, y1: number, x2: number, y2: number): number {
  const a = Math.sin((y2 - y1) * radiansOfDegree * 0.5);
  const b = Math.sin((x2 - x1) * radiansOfDegree * 0.5);
  return a * a + b * b * Math.cos(y1 * radiansOfDegree) * Math.cos(y2 * radiansOfDegree);
}

/** Returns the arc, in degrees, whose `haversine` is `value`. */
export function arcOf(value: number): number {
  return (2 * Math.asin(Math.min(1, Math.sqrt(value)))) / radiansOfDegree;
}

/** Returns the distance of two places. */
export function distanceBetween(
  space: Space,
  x1: number,
  y1: number,
  x2: number,
  y2: number,
): number {
  if (space.type === "Cartesian") return Math.hypot(x2 - x1, y2 - y1);
  return arcOf(haversine(x1, y1, x2, y2));
}

/** @throws EngineError shape-invalid if the point is outside the space, or not a number */
export function checkPlace(space: Space, x: number, y: number): void {
  const { minX, maxX, minY, maxY } = space;
  if (x >= minX && x <= maxX && y >= minY && y <= maxY) return;
  const rect = `Rect(minX=${minX},maxX=${maxX},minY=${minY},maxY=${maxY})`;
  if (!(x >= minX && x <= maxX)) throw badShape(`Bad X value ${x} is not in boundary ${rect}`);
  throw badShape(`Bad Y value ${y} is not in boundary ${rect}`);
}

export function badShape(message: string): EngineError {
  return new EngineError("shape-invalid", message);
}

/**
 * Returns a lower bound of the `haversine` between a point and any point in a box: 0 inside it. `cosY`: the cosine of
 * the point's latitude. The method is that of the package geoflatbush.
 */
export function haversineToBox(
  x: number,
  y: number,
  cosY: number,
  minX: number,
  minY: number,
  maxX: number,
  maxY: number,
): number {
  if (x >= minX && x <= maxX) {
    if (y < minY) return versine((minY - y) * radiansOfDegree);
    return y > maxY ? versine((y - maxY) * radiansOfDegree) : 0;
  }
  const east = versine((x - minX) * radiansOfDegree);
  const west = versine((x - maxX) * radiansOfDegree);
  const turn = Math.min(east, west);
  const cosTurn = 1 - 2 * turn;
  const top =
    cosTurn <= 0
      ? y > 0
        ? 90
        : -90
      : Math.atan(Math.tan(y * radiansOfDegree) / cosTurn) / radiansOfDegree;
  if (top > minY && top < maxY) return onMeridian(turn, cosY, y, top);
  return Math.min(onMeridian(turn, cosY, y, minY), onMeridian(turn, cosY, y, maxY));
}

function versine(radians: number): number {
  const half = Math.sin(radians * 0.5);
  return half * half;
}

function onMeridian(turn: number, cosY: number, y1: number, y2: number): number {
  return cosY * Math.cos(y2 * radiansOfDegree) * turn + versine((y1 - y2) * radiansOfDegree);
}
