/** Methods that read values besides the document's: `cmpxchg`, `counter`, `counterRaw`. */
import type { EngineError } from "../../base/errors.ts";
import type { ProjectedValue } from "../analysis/analyzed-query.ts";
import { plainText, typeName } from "../analysis/query-parameters.ts";
import {
  fieldReference,
  invalid,
  type QueryScope,
  resolveValue,
  selectedReference,
  wholeAlias,
} from "../analysis/query-scope.ts";
import type { Argument, Call } from "../syntax/ast.ts";
import { fieldText } from "../syntax/print.ts";
import { pathOf, texts } from "./arguments.ts";
import { inScripts, nowhere, onlyInSelect } from "./places.ts";
import type { RqlFunction } from "./rql-function.ts";
import { refuseAlone } from "./unsupported-functions.ts";

export const cmpxchg: RqlFunction = {
  ...nowhere,
  shownName: "CompareExchange",
  where: { analyze: refuseAlone, meaning: null },
  filter: inScripts,
  value: (scope, call) => {
    const [argument, ...more] = call.args;
    const isValue = argument?.kind === "literal" || argument?.kind === "parameter";
    if (!isValue || more.length > 0) {
      throw invalid(scope, "Method cmpxchg() expects only one argument to be provided");
    }
    const key = resolveValue(scope, argument);
    if (key.type !== "string") {
      throw invalid(scope, `Expected value of type string, but got: ${typeName(key)}`);
    }
    return { type: "compare-exchange", key: key.value };
  },
  select: {
    column: (scope, call, clause) => {
      const [name] = call.args;
      if (name === undefined || call.args.length !== 1)
        throw noOverload(scope, call, "cmpxchg(name)");
      const value: ProjectedValue = { kind: "compare-exchange", key: clause.argument(name) };
      return { key: call.name, value };
    },
    groupColumn: null,
    whole: null,
  },
  include: {
    isForSubscriptions: false,
    add: (scope, call, { compareExchange }) => {
      const [argument] = call.args;
      if (argument === undefined || call.args.length !== 1) {
        throw invalid(scope, "Method 'cmpxchg()' expects one argument to be provided");
      }
      compareExchange.push(
        argument.kind === "field"
          ? fieldReference(scope, argument).path
          : pathOf(texts(scope, argument)[0] ?? ""),
      );
    },
  },
};

export const counter = counterColumn(false);
export const counterRaw = counterColumn(true);

function counterColumn(isRaw: boolean): RqlFunction {
  return {
    ...onlyInSelect,
    select: {
      column: (scope, call) => {
        const { args, name: method } = call;
        const name = args.at(-1);
        if (name === undefined || args.length > 2) {
          throw noOverload(scope, call, `${method}(name), ${method}(doc, name)`);
        }
        const of = args.length === 2 ? args[0] : undefined;
        const isWhole = of?.kind !== "field" || wholeAlias(scope, of) !== null;
        const document = isWhole ? null : selectedReference(scope, of);
        const shown = nameText(scope, name);
        return { key: shown, value: { kind: "counter", of: document, name: shown, isRaw } };
      },
      groupColumn: null,
      whole: null,
    },
  };
}

function nameText(scope: QueryScope, argument: Argument): string {
  if (argument.kind === "field") return fieldText(argument);
  if (argument.kind === "literal") return argument.text;
  if (argument.kind === "parameter") return plainText(resolveValue(scope, argument));
  throw invalid(scope, "Unhandled expression of type Binary in SELECT clause");
}

function noOverload(scope: QueryScope, { name, args }: Call, supported: string): EngineError {
  return invalid(
    scope,
    `There is no overload of method '${name}' that takes ${args.length} arguments. ` +
      `Supported overloads are : ${supported}.`,
  );
}
