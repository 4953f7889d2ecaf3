/** Methods of RavenDB that are parsed and refused by name. */
import type { Call, SelectItem } from "../ast.ts";
import { describeArgument, fieldText } from "../print.ts";
import { invalid, notSupported, type QueryScope } from "../query-scope.ts";
import { isCallOf } from "./arguments.ts";
import { needsIndex, onlyInSelect, onlyInWhere } from "./places.ts";
import type { RqlFunction } from "./rql-function.ts";

function unsupported(name: string): Error {
  return notSupported(`Clause '${name}' is not supported by this server.`);
}

/** Refuses a call as the whole of a condition. */
export function refuseAlone(scope: QueryScope, call: Call): never {
  throw invalid(scope, `A 'where' clause cannot contain just a '${call.name}' method`);
}

export const moreLikeThis: RqlFunction = {
  ...onlyInWhere,
  shownName: "MoreLikeThis",
  where: {
    analyze: (scope, call) => {
      if (scope.isDynamic) {
        throw invalid(scope, "Method moreLikeThis() cannot be used in dynamic queries");
      }
      throw unsupported(call.name);
    },
    meaning: null,
  },
  filter: needsIndex,
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

export const facet: RqlFunction = {
  ...onlyInSelect,
  select: {
    column: null,
    groupColumn: null,
    whole: {
      refuse: (scope, items, isDistinct) => {
        refuseOthers(scope, items, isDistinct, "facet", "facet");
        if (scope.isDynamic) {
          throw invalid(scope, "Facet query must be executed against static index.");
        }
        throw unsupported("facet");
      },
    },
  },
};

export const suggest: RqlFunction = {
  ...onlyInSelect,
  select: {
    column: null,
    groupColumn: null,
    whole: {
      refuse: (scope, items, isDistinct) => {
        refuseOthers(scope, items, isDistinct, "suggest", "suggestion");
        for (const { expression } of items) {
          const count = expression.kind === "call" ? expression.args.length : 0;
          if (count === 2 || count === 3) continue;
          const complaint = "Method suggest() must contain two or three arguments but";
          throw invalid(scope, `${complaint} '${count}' were specified`);
        }
        throw unsupported("suggest");
      },
    },
  },
};

/** Refuses other columns beside a method that takes the whole clause, and `distinct`. */
function refuseOthers(
  scope: QueryScope,
  items: readonly SelectItem[],
  isDistinct: boolean,
  method: string,
  noun: string,
): void {
  const other = items.find(({ expression }) => !isCallOf(expression, method))?.expression;
  if (other !== undefined && other.kind !== "time-series") {
    const kind = other.kind === "field" ? "FieldExpression" : "MethodExpression";
    const shown = other.kind === "field" ? fieldText(other) : describeArgument(other);
    throw invalid(
      scope,
      `Unsupported expression of type ${kind} specified as an argument of ${method}(). Text: ${shown}.`,
    );
  }
  if (isDistinct) throw invalid(scope, `Cannot use SELECT DISTINCT in a ${noun} query`);
}
