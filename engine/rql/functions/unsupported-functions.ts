/** Methods of RavenDB that are parsed and refused by name. */
import type { Call } from "../ast.ts";
import { invalid, notSupported, type QueryScope } from "../query-scope.ts";
import { needsIndex, onlyInWhere } from "./places.ts";
import type { RqlFunction } from "./rql-function.ts";

function unsupported(name: string): Error {
  return notSupported(`Clause '${name}' is not supported by this server.`);
}

/** Refuses a call as the whole of a condition. */
export function refuseAlone(scope: QueryScope, call: Call): never {
  throw invalid(scope, `A 'where' clause cannot contain just a '${call.name}' method`);
}

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
