/** Methods of queries with groups: `array`, `count`, `sum`, `key`, and the methods that are refused by name. */
import type { FieldReference } from "../analysis/analyzed-query.ts";
import {
  fieldReference,
  invalid,
  type QueryScope,
  selectedReference,
} from "../analysis/query-scope.ts";
import type { Call } from "../syntax/ast.ts";
import { describeArgument } from "../syntax/print.ts";
import { fieldArgument } from "./arguments.ts";
import { needsIndex, nowhere, onlyInSelect } from "./places.ts";
import type { RqlFunction } from "./rql-function.ts";
import { refuseAlone } from "./unsupported-functions.ts";

const countField: FieldReference = {
  name: "Count",
  path: [{ name: "Count", arrays: 0 }],
  isQuoted: false,
  alias: null,
};

export const count: RqlFunction = {
  ...nowhere,
  shownName: "Count",
  where: { analyze: refuseAlone, meaning: null },
  filter: needsIndex,
  compared: () => countField,
  aggregate: () => ({ field: countField, value: { kind: "count" }, orderType: "long" }),
};

export const sum: RqlFunction = {
  ...nowhere,
  shownName: "Sum",
  where: { analyze: refuseAlone, meaning: null },
  filter: needsIndex,
  compared: (scope, call) => fieldArgument(scope, call, 0),
  aggregate: (scope, call) => {
    const field = summedField(scope, call);
    return { field, value: { kind: "sum", field }, orderType: "double" };
  },
};

function summedField(scope: QueryScope, call: Call): FieldReference {
  const [argument] = call.args;
  if (argument === undefined || call.args.length !== 1) {
    const complaint = "sum() method expects exactly one argument but got";
    throw invalid(scope, `${complaint} ${call.args.length}`);
  }
  if (argument.kind === "field") return selectedReference(scope, argument);
  if (argument.kind === "literal") {
    const path = [{ name: argument.text, arrays: 0 }];
    const isQuoted = argument.type === "string";
    return selectedReference(scope, { kind: "field", offset: argument.offset, path, isQuoted });
  }
  throw invalid(scope, `sum() method expects a field but got ${describeArgument(argument)}`);
}

export const avg: RqlFunction = { ...nowhere, shownName: "Average" };
export const min: RqlFunction = { ...nowhere, shownName: "Min" };
export const max: RqlFunction = { ...nowhere, shownName: "Max" };

export const array: RqlFunction = {
  ...nowhere,
  shownName: "Array",
  groupKey: (scope, { args: [path] }) => {
    if (path?.kind === "field") return fieldReference(scope, path);
    throw invalid(scope, "Method array() expects a field name as its argument");
  },
};

export const key: RqlFunction = {
  ...onlyInSelect,
  select: {
    column: null,
    groupColumn: (scope, { groupBy }) => {
      const first = groupBy.length === 1 ? groupBy[0]?.expression : undefined;
      const only = first?.kind === "call" ? first.args[0] : first;
      const name = only?.kind === "field" ? selectedReference(scope, only).name : "Key";
      return { key: name, value: { kind: "group-key" } };
    },
    whole: null,
  },
};
