/** Methods of RavenDB that are parsed and refused by name. */

import { invalid, type QueryScope } from "../analysis/query-scope.ts";
import type { Call } from "../syntax/ast.ts";

/** Rejects a call that is an entire condition. */
export function refuseAlone(scope: QueryScope, call: Call): never {
  throw invalid(scope, `A 'where' clause cannot contain just a '${call.name}' method`);
}
