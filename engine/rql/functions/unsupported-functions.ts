/** Methods of RavenDB that are parsed and refused by name. */
import type { Call } from "../ast.ts";
import { invalid, type QueryScope } from "../query-scope.ts";

/** Refuses a call as the whole of a condition. */
export function refuseAlone(scope: QueryScope, call: Call): never {
  throw invalid(scope, `A 'where' clause cannot contain just a '${call.name}' method`);
}
