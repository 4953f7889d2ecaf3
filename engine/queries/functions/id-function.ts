/** `id()`: the id of the document, in every place where a field or a value may stand. */
import { EngineError } from "../../base/errors.ts";
import type { Work } from "../../base/scheduling/work-budget.ts";
import { compareAlphaNumeric, mirrored, positionsOf } from "../../indexing/columns/entry-order.ts";
import { slicedSort } from "../../indexing/columns/sliced-sort.ts";
import { idOf } from "../../state/documents/document-record.ts";
import type { OrderKeyBase } from "../analysis/analyzed-query.ts";
import { idField, invalid, type QueryScope } from "../analysis/query-scope.ts";
import type { Call, OrderItem } from "../syntax/ast.ts";
import { nowhere } from "./places.ts";
import type { OrderContext, RqlFunction } from "./rql-function.ts";
import { refuseAlone } from "./unsupported-functions.ts";

export interface IdKey {
  readonly kind: "id";
  readonly type: "string" | "alphaNumeric";
}

/** Cost of comparing two ids. */
const comparedUnits = 32;

export const id: RqlFunction<never, IdKey> = {
  ...nowhere,
  shownName: "Id",
  where: { analyze: refuseAlone, meaning: null },
  filter: {
    refusal: null,
    compiled: { test: null, read: () => (row) => idOf(row.bytes, row.start) },
  },
  compared: () => idField,
  orderBy: {
    kind: "id",
    analyze: (scope, _call, item) => ({ kind: "id", type: orderType(scope, item) }),
    fieldOf: () => idField,
    check: () => {},
    sortKeys,
    needsScores: false,
    isRandom: false,
  },
  select: {
    column: (scope, call, { isColumn }) => {
      if (isColumn && call.args.length > 0) throw idOfSomething(scope, call);
      return { key: "id()", value: { kind: "id" } };
    },
    groupColumn: (scope) => {
      throw invalid(scope, "Cannot use id() method in a group by query");
    },
    whole: null,
  },
};

function orderType(scope: QueryScope, { type }: OrderItem): IdKey["type"] {
  if (type === null || type === "string" || type === "alphaNumeric") return type ?? "string";
  const got = type === "long" ? "Long" : "Double";
  throw invalid(
    scope,
    "Invalid ORDER BY 'id()' call, this field can only be sorted as a string or alphanumeric value, " +
      `but got ${got}`,
  );
}

function* sortKeys(
  entries: Uint32Array,
  key: IdKey & OrderKeyBase,
  { reader, source }: OrderContext,
): Work<Uint32Array> {
  const { documents } = reader.view;
  const { budget } = reader;
  const documentOf = (position: number) => documents[entries[position] as number] as number;
  const isAlphaNumeric = key.type === "alphaNumeric";
  const compare = (left: number, right: number) => {
    budget.spend(comparedUnits);
    return isAlphaNumeric
      ? compareAlphaNumeric(source.lowerIdOf(documentOf(left)), source.lowerIdOf(documentOf(right)))
      : source.compareIds(documentOf(left), documentOf(right));
  };
  const positions = yield* slicedSort(positionsOf(entries.length), compare, budget);
  const keys = new Uint32Array(entries.length);
  for (let rank = 0; rank < positions.length; rank++) keys[positions[rank] as number] = rank;
  return key.isDescending ? mirrored(keys) : keys;
}

/** Returns the error for `id(x)` as a column, where it takes no argument. */
function idOfSomething(scope: QueryScope, { args: [argument] }: Call): EngineError {
  const root = argument?.kind === "field" ? (argument.path[0]?.name ?? "") : "";
  if (scope.aliases.includes(root)) {
    return new EngineError("invalid-operation", "id(doc) must be called with an object argument");
  }
  const known = `there are aliases specified in the query (${scope.aliases.join(", ")})`;
  return invalid(scope, `Unknown alias ${root}, but ${known}`);
}
