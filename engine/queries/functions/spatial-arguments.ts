/**
 * Parses the arguments of spatial methods: the field with the shapes, and the shape to compare with, with the errors of
 * RavenDB 7.2.7 (measured) for invalid ones.
 */
import { EngineError } from "../../base/errors.ts";
import { centerOf, circleShape, type Shape } from "../../indexing/spatial/shape.ts";
import {
  badShape,
  checkPlace,
  distanceOf,
  type Space,
  type SpatialUnits,
  spatialUnits,
} from "../../indexing/spatial/space.ts";
import { parseWkt } from "../../indexing/spatial/wkt.ts";
import type { FieldReference } from "../analysis/analyzed-query.ts";
import { type Scalar, typeName } from "../analysis/query-parameters.ts";
import {
  fieldReference,
  invalid,
  type QueryScope,
  resolveValue,
  scalarOrNone,
} from "../analysis/query-scope.ts";
import type { Argument, Call, PathPart, Value } from "../syntax/ast.ts";
import { describeArgument, pathText } from "../syntax/print.ts";
import { fieldArgument, pathOf } from "./arguments.ts";

/** A shape in a query. Units null: the units of the field. */
export type QueryShape =
  | {
      readonly kind: "circle";
      readonly radius: number;
      readonly latitude: number;
      readonly longitude: number;
      readonly units: SpatialUnits | null;
    }
  | {
      readonly kind: "wkt";
      readonly text: string;
      readonly units: SpatialUnits | null;
      /** The error for a text that is not a valid shape. */
      readonly refusal: (cause: unknown) => Error;
    };

/** A place to measure distances from. */
export type QueryPoint =
  | QueryShape
  | { readonly kind: "point"; readonly latitude: number; readonly longitude: number };

/** Parsed shapes by their source: a long text is parsed once per query. */
const parsedShapes = new WeakMap<QueryShape, { readonly space: Space; readonly shape: Shape }>();

/** Returns the shape in the space of a field. @throws shape-invalid, and `refusal` */
export function shapeIn(space: Space, sought: QueryShape): Shape {
  const known = parsedShapes.get(sought);
  if (known?.space === space) return known.shape;
  const shape = newShape(space, sought);
  parsedShapes.set(sought, { space, shape });
  return shape;
}

function newShape(space: Space, sought: QueryShape): Shape {
  const units = sought.units ?? space.units;
  if (sought.kind === "circle") {
    checkPlace(space, sought.longitude, sought.latitude);
    const radius = distanceOf(space, sought.radius, units);
    if (!(radius >= 0)) throw badShape(`distance must be >= 0; got ${radius}`);
    return circleShape(sought.longitude, sought.latitude, radius);
  }
  try {
    return parseWkt(sought.text, space, units);
  } catch (error) {
    const isShape = error instanceof EngineError && error.code === "shape-invalid";
    throw isShape ? sought.refusal(error) : error;
  }
}

/** Returns the place in the space of a field. @throws shape-invalid */
export function placeIn(space: Space, sought: QueryPoint): Place {
  if (sought.kind === "point") {
    checkPlace(space, sought.longitude, sought.latitude);
    return { x: sought.longitude, y: sought.latitude };
  }
  return centerOf(shapeIn(space, sought));
}

interface Place {
  readonly x: number;
  readonly y: number;
}

/**
 * Returns the first argument: `spatial.point(Lat, Lng)`, `spatial.wkt(Path)` or a field in a dynamic query, a field of
 * the index in others.
 */
export function spatialField(scope: QueryScope, call: Call): FieldReference {
  const [first] = call.args;
  const method = `Method ${call.name}()`;
  if (!scope.isDynamic) {
    if (first?.kind !== "call") return fieldArgument(scope, call, 0);
    const complaint =
      "expects that first argument will be a field name when static index is queried";
    throw invalid(scope, `${method} ${complaint}`);
  }
  if (first?.kind !== "call") return namedSource(fieldArgument(scope, call, 0));
  const maker = first.name.toLowerCase();
  if (maker === "spatial.point") {
    if (first.args.length === 2) return made(scope, "point", first);
    const complaint = "expects first argument to be a point() method with 2 arguments";
    throw invalid(scope, `${method} ${complaint}`);
  }
  if (maker === "spatial.wkt") {
    if (first.args.length === 1) return made(scope, "wkt", first);
    const complaint = "expects first argument to be a wkt() method with 1 argument";
    throw invalid(scope, `${method} ${complaint}`);
  }
  throw invalid(scope, `${method} expects first argument to be a point() or wkt() method`);
}

/** Returns the official clients name a spatial field in quotes, when they order by it: `'spatial.point(Lat, Lng)'`. */
function namedSource(field: FieldReference): FieldReference {
  const found = /^spatial\.(point|wkt)\(([^()]*)\)$/.exec(pathText(field.path));
  if (found === null) return field;
  const [, method, inside = ""] = found;
  const paths = inside.split(",").map((path) => pathOf(path.trim()));
  if (paths.length !== (method === "point" ? 2 : 1)) return field;
  return sourceField(method as "point" | "wkt", paths);
}

function made(scope: QueryScope, method: "point" | "wkt", call: Call): FieldReference {
  const paths = call.args.map((argument, i) => {
    const isField = argument.kind === "field";
    return (isField ? fieldReference(scope, argument) : fieldArgument(scope, call, i)).path;
  });
  return sourceField(method, paths);
}

function sourceField(
  method: "point" | "wkt",
  paths: readonly (readonly PathPart[])[],
): FieldReference {
  const name = `spatial.${method}(${paths.map(pathText).join(", ")})`;
  return { name, path: [], isQuoted: false, alias: null, spatial: { method, paths } };
}

/** `spatial.circle(radius, lat, lng, units?)` or `spatial.wkt(text, units?)`; null: it is another method. */
export function queryShape(
  scope: QueryScope,
  call: Call,
  field: FieldReference,
): QueryShape | null {
  const { args } = call;
  const maker = call.name.toLowerCase();
  if (maker === "spatial.circle") {
    requireCircle(scope, args);
    const values = args.map((arg, i) => valueAt(scope, "circle", arg, i));
    const [radius, latitude, longitude] = values
      .slice(0, 3)
      .map((value) => numberOf(value, field)) as [number, number, number];
    return { kind: "circle", radius, latitude, longitude, units: unitsOf(values[3], field) };
  }
  if (maker !== "spatial.wkt") return null;
  requireWkt(scope, args);
  const [value, units] = args.map((arg) => valueAt(scope, "wkt", arg, null));
  const text = stringOf(value, field);
  const complaint = `Value '${text}' is not a valid WKT value.`;
  const refusal = (cause: unknown) => {
    const error = invalid(scope, complaint);
    error.cause = cause;
    return error;
  };
  return { kind: "wkt", text, units: unitsOf(units, field), refusal };
}

/**
 * Reads the second argument of `spatial.distance` in `order by`. Of a circle, only the center counts, and its longitude
 * is the length to round to: RavenDB 7.2.7 reads it in place of the third argument. `roundTo` null: the third argument
 * counts.
 */
export function queryPoint(
  scope: QueryScope,
  call: Call,
): { readonly place: QueryPoint; readonly roundTo: number | null } | null {
  const { args } = call;
  switch (call.name.toLowerCase()) {
    case "spatial.point": {
      if (args.length !== 2) {
        throw invalid(scope, "Method 'point()' expects two arguments to be provided");
      }
      return { place: searchedPoint(scope, "point", args), roundTo: null };
    }
    case "spatial.circle": {
      requireCircle(scope, args);
      const place = searchedPoint(scope, "circle", args.slice(1, 3));
      return { place, roundTo: place.longitude };
    }
    case "spatial.wkt":
      return { place: queryCenter(scope, args), roundTo: null };
    default:
      return null;
  }
}

function searchedPoint(scope: QueryScope, method: string, args: readonly Argument[]) {
  const [latitude, longitude] = args.map((argument, i) =>
    lenientNumber(scope, valueNode(scope, method, argument, i)),
  ) as [number, number];
  return { kind: "point", latitude, longitude } as const;
}

/** `spatial.wkt(text, units?)` in `order by`. An invalid text is an error of shapes here, not of the query. */
function queryCenter(scope: QueryScope, args: readonly Argument[]): QueryPoint {
  requireWkt(scope, args);
  const [text, units] = args.map((argument) => {
    const node = valueNode(scope, "wkt", argument, null);
    if (node.kind === "literal") return node.text;
    const value = scope.parameters?.values.get(node.name);
    return value?.type === "string" ? value.value : null;
  });
  if (text == null || text.trim() === "") {
    throw new EngineError("argument-null", "Value cannot be null. (Parameter 'input')");
  }
  const isNamed = units != null && Number.isNaN(Number(units));
  const found = isNamed ? unitsNamed(units) : null;
  if (found === undefined) {
    throw new EngineError("invalid-argument", `Requested value '${units}' was not found.`);
  }
  return { kind: "wkt", text, units: found, refusal: (cause) => cause as Error };
}

type AnyValue = ReturnType<typeof resolveValue>;

function requireCircle(scope: QueryScope, args: readonly Argument[]): void {
  if (args.length === 3 || args.length === 4) return;
  throw invalid(scope, "Method 'circle()' expects three or four arguments to be provided");
}

function requireWkt(scope: QueryScope, args: readonly Argument[]): void {
  if (args.length === 1 || args.length === 2) return;
  throw invalid(scope, "Method 'wkt()' expects one or two argument to be provided");
}

function valueAt(
  scope: QueryScope,
  method: string,
  argument: Argument,
  at: number | null,
): AnyValue {
  const node = valueNode(scope, method, argument, at);
  return scalarOrNone(scope, node) ?? resolveValue(scope, node);
}

function valueNode(
  scope: QueryScope,
  method: string,
  argument: Argument,
  at: number | null,
): Value {
  if (argument.kind === "literal" || argument.kind === "parameter") return argument;
  const place = at === null ? "" : ` at index ${at}`;
  throw invalid(
    scope,
    `Method '${method}()' expects value token as an argument${place}, got ${describeArgument(argument)} type`,
  );
}

export function numberOf(value: AnyValue, field: FieldReference): number {
  if (value.type === "long" || value.type === "double") return Number(value.value);
  throw wrongType(field, "Double", value);
}

/**
 * Returns a number of `order by`: of a literal, its text as a number; 0 for a parameter that is missing or not a number.
 * @throws invalid-format
 */
export function lenientNumber(scope: QueryScope, node: Value): number {
  if (node.kind === "parameter") {
    const value = scope.parameters?.values.get(node.name);
    return value?.type === "long" || value?.type === "double" ? Number(value.value) : 0;
  }
  const { text } = node;
  if (text.trim() !== "" && !Number.isNaN(Number(text))) return Number(text);
  throw new EngineError(
    "invalid-format",
    `The input string '${text}' was not in a correct format.`,
  );
}

function stringOf(value: AnyValue | undefined, field: FieldReference): string {
  if (value?.type === "string") return value.value;
  throw wrongType(field, "String", value ?? ({ type: "null", value: null } satisfies Scalar));
}

function unitsOf(value: AnyValue | undefined, field: FieldReference): SpatialUnits | null {
  if (value === undefined) return null;
  const text = stringOf(value, field);
  const found = unitsNamed(text);
  if (found !== undefined) return found;
  throw new EngineError(
    "invalid-operation",
    `SpatialUnits value must be either 'Kilometers' or 'Miles' but was '${text}'.`,
  );
}

function unitsNamed(text: string): SpatialUnits | undefined {
  return spatialUnits.find((units) => units.toLowerCase() === text.toLowerCase());
}

function wrongType({ name }: FieldReference, wanted: string, value: AnyValue): EngineError {
  return new EngineError(
    "invalid-operation",
    `Field '${name}' should be a '${wanted}' but was '${typeName(value)}'.`,
  );
}
