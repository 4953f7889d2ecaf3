/** Spatial methods: `spatial.within` and the other relations as conditions, `spatial.distance` as a sort key, and shapes. */
import { EngineError } from "../../base/errors.ts";
import type { Work } from "../../base/scheduling/work-budget.ts";
import { numberSortKeys } from "../../indexing/columns/entry-order.ts";
import { EntrySet } from "../../indexing/columns/entry-set.ts";
import { arcOf, globe, reportedLengthOf, type Space } from "../../indexing/spatial/space.ts";
import type { SpatialRelation } from "../../indexing/spatial/spatial-column.ts";
import type { FieldReference, OrderKeyBase } from "../analysis/analyzed-query.ts";
import { invalid, type QueryScope, resolveValue } from "../analysis/query-scope.ts";
import type { Call } from "../syntax/ast.ts";
import { describeArgument, printArgument } from "../syntax/print.ts";
import { nothing, weighedWhole } from "./finding.ts";
import { notInFilter, nowhere, onlyInSelect, onlyInWhere } from "./places.ts";
import type { FilterUse, OrderContext, RqlFunction, WhereContext } from "./rql-function.ts";
import {
  lenientNumber,
  numberOf,
  placeIn,
  type QueryPoint,
  type QueryShape,
  queryPoint,
  queryShape,
  shapeIn,
  spatialField,
} from "./spatial-arguments.ts";
import { refuseAlone } from "./unsupported-functions.ts";

/** The shapes of a field lie so to a shape. */
interface SpatialCondition {
  readonly kind: `spatial.${SpatialRelation}`;
  readonly field: FieldReference;
  readonly shape: QueryShape;
}

/** Names, in messages about indexes made for Lucene, of the relations that these do not support. */
const luceneNames: Partial<Record<SpatialRelation, string>> = {
  contains: "Contains",
  disjoint: "IsDisjointTo",
};

/** Analysis and compilation refuse it in different words. */
const spatialFilter: FilterUse = {
  refusal: notInFilter.refusal,
  compiled: { test: null, read: null },
};

function relation(name: SpatialRelation, shownName: string): RqlFunction<SpatialCondition> {
  const kind = `spatial.${name}` as const;
  return {
    ...onlyInWhere,
    shownName,
    where: {
      analyze: (scope, call) => ({ kind, ...analyzeRelation(scope, call) }),
      meaning: {
        kind,
        of: "field",
        indexUse: "plain",
        find: (condition, context) => findShapes(name, condition, context),
        findIds: nothing,
        idsOf: () => undefined,
        searchedTexts: () => [],
        score: weighedWhole,
        joined: null,
      },
    },
    filter: spatialFilter,
  };
}

function analyzeRelation(
  scope: QueryScope,
  call: Call,
): { readonly field: FieldReference; readonly shape: QueryShape } {
  const { args, name } = call;
  const method = `Method ${name}()`;
  if (scope.isDynamic && args[0]?.kind !== "call") {
    throw invalid(scope, `${method} expects first argument to be a method expression`);
  }
  if (args.length < 2 || args.length > 3) {
    throw invalid(scope, `${method} expects 2-3 arguments to be provided`);
  }
  const field = spatialField(scope, call);
  const [, second, error] = args;
  const shape = shapeArgument(scope, call, second, (argument) =>
    queryShape(scope, argument, field),
  );
  if (error !== undefined) {
    if (error.kind !== "literal" && error.kind !== "parameter") {
      const got = describeArgument(error);
      throw invalid(scope, `${method} expects value token as third argument, got ${got} type`);
    }
    // The greatest error that RavenDB may make. Nothing is approximate here.
    const value = numberOf(resolveValue(scope, error), field);
    if (!(value >= 0 && value <= 0.5)) {
      throw new EngineError("json-invalid", "Error must be in [0; 0.5] range.");
    }
  }
  // The options of a deployed index are known only when it is searched.
  if (scope.isDynamic) shapeIn(globe, shape);
  return { field, shape };
}

function shapeArgument<Shape>(
  scope: QueryScope,
  call: Call,
  argument: Call["args"][number] | undefined,
  read: (argument: Call) => Shape | null,
): Shape {
  if (argument?.kind !== "call") {
    const got = argument === undefined ? "" : describeArgument(argument);
    const complaint = `expects expression as second argument, got ${got} type`;
    throw invalid(scope, `Method ${call.name}() ${complaint}`);
  }
  const found = read(argument);
  if (found !== null) return found;
  throw invalid(scope, `Method '${shownNameOf(argument.name)}' is not supported.`);
}

/** Returns a method's name as RavenDB shows it: `spatial.point` is `Spatial_Point`. */
function shownNameOf(name: string): string {
  const parts = name.split(".").map((part) => part.charAt(0).toUpperCase() + part.slice(1));
  return parts.join("_");
}

function* findShapes(
  relation: SpatialRelation,
  { field, shape }: SpatialCondition,
  { reader }: WhereContext,
): Work<EntrySet> {
  const found = reader.spatial(field.name);
  if (found === undefined) return EntrySet.empty;
  const { column, isLucene } = found;
  const refused = luceneNames[relation];
  if (isLucene && refused !== undefined && column.space.strategy !== "BoundingBox") {
    throw new EngineError("spatial-unsupported", refused);
  }
  const sought = shapeIn(column.space, shape);
  yield* column.refresh(reader.budget);
  return yield* column.find(relation, sought, reader.view, reader.budget);
}

export const spatialWithin = relation("within", "Spatial_Within");
export const spatialContains = relation("contains", "Spatial_Contains");
export const spatialDisjoint = relation("disjoint", "Spatial_Disjoint");
export const spatialIntersects = relation("intersects", "Spatial_Intersects");

function shapeMethod(shownName: string): RqlFunction {
  return { ...nowhere, shownName, where: { analyze: refuseAlone, meaning: null } };
}

export const spatialCircle = shapeMethod("Spatial_Circle");
export const spatialWkt = shapeMethod("Spatial_Wkt");
export const spatialPoint = shapeMethod("Spatial_Point");

/** The distance of a field's nearest shape from a place. */
export interface DistanceKey {
  readonly kind: "spatial.distance";
  readonly field: FieldReference;
  readonly place: QueryPoint;
  /**
   * Entries are ordered by the distance rounded to multiples of this length, in the units of the field; 0: by the exact
   * distance. A negative length rounds only in indexes made for Lucene.
   */
  readonly roundTo: number;
}

/** Returns whether an index rounds distances before it orders by them. */
export function isRounded({ roundTo }: DistanceKey, isLucene: boolean): boolean {
  return roundTo > 0 || (isLucene && roundTo < 0);
}

/**
 * Returns whether entries without a shape are first. By default they are first in ascending order with Corax, as in
 * RavenDB 7.2.7; RavenDB's Lucene puts them anywhere, and here they are last with Lucene.
 */
export function isWithoutFirst(
  { isDescending, nulls }: DistanceKey & OrderKeyBase,
  isLucene: boolean,
): boolean {
  return nulls === null ? !isDescending && !isLucene : nulls === "first";
}

export const spatialDistance: RqlFunction<never, DistanceKey> = {
  ...onlyInSelect,
  orderBy: {
    kind: "spatial.distance",
    analyze: analyzeDistance,
    fieldOf: ({ field }) => field,
    check: () => {},
    sortKeys: distanceSortKeys,
    needsScores: false,
    isRandom: false,
  },
  select: {
    column: (scope, call, clause) => {
      const method = call.args.find(({ kind }) => kind === "call");
      if (method !== undefined) {
        const text = `Text: ${printArgument(method)}.`;
        throw invalid(
          scope,
          `Invalid argument of type MethodExpression specified as an argument of ${call.name}(). ${text}`,
        );
      }
      // The function of scripts: `spatial.distance(lat1, lng1, lat2, lng2, units?)`.
      const args = call.args.map((argument) => clause.argument(argument));
      return { key: call.name, value: { kind: "call", name: "spatial.distance", args } };
    },
    groupColumn: null,
    whole: null,
  },
};

function analyzeDistance(scope: QueryScope, call: Call): DistanceKey {
  const { args, name } = call;
  if (args.length < 2 || args.length > 3) {
    throw invalid(scope, `Method ${name}() expects 2-3 arguments to be provided`);
  }
  const field = spatialField(scope, call);
  const [, second, round] = args;
  const sought = shapeArgument(scope, call, second, (argument) => queryPoint(scope, argument));
  const { place } = sought;
  let roundTo = sought.roundTo ?? 0;
  if (round !== undefined) {
    if (round.kind !== "literal" && round.kind !== "parameter") {
      const got = describeArgument(round);
      throw invalid(
        scope,
        `Method ${name}() expects value token as third argument, got ${got} type`,
      );
    }
    roundTo = sought.roundTo ?? lenientNumber(scope, round);
  }
  if (scope.isDynamic) placeIn(globe, place);
  return { kind: "spatial.distance", field, place, roundTo };
}

function* distanceSortKeys(
  entries: Uint32Array,
  key: DistanceKey & OrderKeyBase,
  { reader }: OrderContext,
): Work<Uint32Array> {
  const { field, place, isDescending } = key;
  const found = reader.spatial(field.name);
  if (found === undefined) return new Uint32Array(entries.length);
  const { column, isLucene } = found;
  const { x, y } = placeIn(column.space, place);
  yield* column.refresh(reader.budget);
  const keys = yield* column.keysOf(entries, x, y, reader.budget);
  if (isRounded(key, isLucene)) roundKeys(keys, key.roundTo, column.space);
  // Without a shape, the key is below all others.
  if (isWithoutFirst(key, isLucene) === isDescending) {
    for (let i = 0; i < keys.length; i++) if (Number.isNaN(keys[i])) keys[i] = Infinity;
  }
  return yield* numberSortKeys(keys, isDescending, reader.budget);
}

/** Converts a key of `keysOf` to a length in the units of the field. */
function lengthOfKey(key: number, space: Space): number {
  const distance = space.type === "Cartesian" ? Math.sqrt(key) : arcOf(key);
  return reportedLengthOf(space, distance);
}

function roundKeys(keys: Float64Array, roundTo: number, space: Space): void {
  for (let i = 0; i < keys.length; i++) {
    const length = lengthOfKey(keys[i] as number, space);
    keys[i] = length - (length % roundTo);
  }
}
