/** Methods of RavenDB that are parsed and refused by name. */
import type { Call } from "../ast.ts";
import { invalid, notSupported, type QueryScope } from "../query-scope.ts";
import { needsIndex, notInFilter, nowhere, onlyInSelect, onlyInWhere } from "./places.ts";
import type { FilterUse, RqlFunction } from "./rql-function.ts";

function unsupported(name: string): Error {
  return notSupported(`Clause '${name}' is not supported by this server.`);
}

/** Refuses a call as the whole of a condition. */
export function refuseAlone(scope: QueryScope, call: Call): never {
  throw invalid(scope, `A 'where' clause cannot contain just a '${call.name}' method`);
}

/** Analysis and compilation refuse it in different words. */
const spatialFilter: FilterUse = {
  refusal: notInFilter.refusal,
  compiled: { test: null, read: null },
};

function spatialCondition(shownName: string): RqlFunction {
  const analyze = (scope: QueryScope, call: Call): never => {
    if (call.args[0]?.kind !== "call" || call.args.length < 2) {
      const complaint = "expects first argument to be a method expression";
      throw invalid(scope, `Method ${call.name}() ${complaint}`);
    }
    throw unsupported(call.name);
  };
  return { ...onlyInWhere, shownName, where: { analyze, meaning: null }, filter: spatialFilter };
}

function spatialShape(shownName: string): RqlFunction {
  return { ...nowhere, shownName, where: { analyze: refuseAlone, meaning: null } };
}

export const spatialWithin = spatialCondition("Spatial_Within");
export const spatialContains = spatialCondition("Spatial_Contains");
export const spatialDisjoint = spatialCondition("Spatial_Disjoint");
export const spatialIntersects = spatialCondition("Spatial_Intersects");
export const spatialCircle = spatialShape("Spatial_Circle");
export const spatialWkt = spatialShape("Spatial_Wkt");
export const spatialPoint = spatialShape("Spatial_Point");

/** No key of this kind is ever made. */
export interface DistanceKey {
  readonly kind: "spatial.distance";
}

export const spatialDistance: RqlFunction<never, DistanceKey> = {
  ...onlyInSelect,
  orderBy: {
    kind: "spatial.distance",
    analyze: (scope, call) => {
      if (call.args.length < 2 || call.args.length > 3) {
        throw invalid(scope, "Method spatial.distance() expects 2-3 arguments to be provided");
      }
      throw unsupported("order by spatial.distance");
    },
    fieldOf: () => null,
    check: () => {},
    sortKeys: () => {
      throw unsupported("order by spatial.distance");
    },
    needsScores: false,
    isRandom: false,
  },
  select: {
    column: () => {
      throw unsupported("spatial.distance");
    },
    groupColumn: null,
    whole: null,
  },
};

export const vectorSearch: RqlFunction = {
  ...onlyInWhere,
  shownName: "VectorSearch",
  where: {
    analyze: (_scope, call) => {
      throw unsupported(call.name);
    },
    meaning: null,
  },
  filter: needsIndex,
};
