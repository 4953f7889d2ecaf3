/** Fields of rows, and the values of a field. A path is a list of names; lists are not entered. */

export type Row = Readonly<Record<string, unknown>>;

/** A field with scalar values. */
export interface Field {
  /** The names, joined by dots. */
  readonly name: string;
  readonly path: readonly string[];
  readonly type: "number" | "date" | "text";
}

const sampleRows = 200;
const depthMax = 4;
const fieldsMax = 100;
const dateLike = /^\d{4}-\d\d-\d\dT\d\d:\d\d/;

export function isDate(value: unknown): value is string {
  return typeof value === "string" && dateLike.test(value) && !Number.isNaN(Date.parse(value));
}

export function valueAt(row: unknown, path: readonly string[]): unknown {
  let value = row;
  for (const name of path) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Row)[name];
  }
  return value;
}

/** Returns the scalar fields of the first rows; a field with values of several types has type "text". */
export function fieldsOf(rows: readonly Row[]): Field[] {
  const found = new Map<string, { path: readonly string[]; types: Set<Field["type"]> }>();
  const walk = (value: unknown, path: readonly string[]) => {
    if (value === null || value === undefined || Array.isArray(value)) return;
    if (typeof value === "object") {
      if (path.length === depthMax) return;
      for (const [name, inner] of Object.entries(value))
        if (name !== "@metadata") walk(inner, [...path, name]);
      return;
    }
    const key = JSON.stringify(path);
    const field = found.get(key) ?? { path, types: new Set() };
    if (!found.has(key) && found.size === fieldsMax) return;
    found.set(key, field);
    field.types.add(typeof value === "number" ? "number" : isDate(value) ? "date" : "text");
  };
  for (const row of rows.slice(0, sampleRows)) walk(row, []);
  return [...found.values()].map(({ path, types }) => {
    const [type = "text"] = types;
    return { name: path.join("."), path, type: types.size === 1 ? type : "text" };
  });
}

/** A result with its position in degrees. */
export interface Place {
  /** Index of the row. */
  readonly row: number;
  readonly latitude: number;
  readonly longitude: number;
}

type Pair = readonly [latitude: readonly string[], longitude: readonly string[]];

const latitudeName = /^lat(itude)?$/i;
const longitudeName = /^(lon|lng|long|longitude)$/i;

/**
 * Returns the positions of rows: the values of the first of `pairs` that exist, otherwise of the first object with a
 * latitude and a longitude by their names.
 */
export function placesOf(rows: readonly Row[], pairs: readonly Pair[]): Place[] {
  return rows.flatMap((row, at) => {
    const given = pairs.map((pair) => placeAt(row, pair, at)).find((one) => one !== null);
    const found = given ?? namedPlace(row, at, 0);
    return found === null ? [] : [found];
  });
}

function placeAt(value: unknown, [latitude, longitude]: Pair, row: number): Place | null {
  const place = {
    row,
    latitude: degrees(valueAt(value, latitude)),
    longitude: degrees(valueAt(value, longitude)),
  };
  const isValid = Math.abs(place.latitude) <= 90 && Math.abs(place.longitude) <= 180;
  return isValid ? place : null;
}

/** Coordinates may be strings; NaN for other values. */
function degrees(value: unknown): number {
  if (typeof value === "number") return value;
  return typeof value === "string" && value.trim() !== "" ? Number(value) : Number.NaN;
}

function namedPlace(value: unknown, row: number, depth: number): Place | null {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  const names = Object.keys(value);
  const latitude = names.find((name) => latitudeName.test(name));
  const longitude = names.find((name) => longitudeName.test(name));
  if (latitude !== undefined && longitude !== undefined) {
    const place = placeAt(value, [[latitude], [longitude]], row);
    if (place !== null) return place;
  }
  if (depth === depthMax) return null;
  for (const [name, inner] of Object.entries(value)) {
    const place = name === "@metadata" ? null : namedPlace(inner, row, depth + 1);
    if (place !== null) return place;
  }
  return null;
}
