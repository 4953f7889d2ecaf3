/**
 * Name resolution within one query: its aliases and parameters, and errors that quote the query.
 *
 * Independent of clauses: which names are allowed where is decided by each clause's analysis.
 */
import { EngineError } from "../../base/errors.ts";
import type { Field, PathPart, Value } from "../syntax/ast.ts";
import { invalidQuery } from "../syntax/syntax-error.ts";
import type { FieldReference } from "./analyzed-query.ts";
import {
  jsonText,
  type ParameterValue,
  type QueryParameters,
  type Scalar,
  scalarOf,
} from "./query-parameters.ts";

export interface QueryScope {
  readonly text: string;
  readonly parameters: QueryParameters | null;
  /** The alias of `from` first, then the aliases of `load`, in order. */
  readonly aliases: readonly string[];
  /** Names of declared functions, case-sensitive. */
  readonly functions: ReadonlySet<string>;
  /** The declared functions that are series queries. */
  readonly series: ReadonlySet<string>;
  /** The source is a collection, not an index. */
  readonly isDynamic: boolean;
  /** Aliases that `select` assigns to aggregates of groups; conditions and order may use them. */
  readonly computed: ReadonlyMap<string, FieldReference>;
  /** The time of the query, microseconds since 1970. */
  readonly nowMicros: number;
  /** Collects the moments computed from it: the results depend on them. */
  readonly moments: number[];
}

/** The id of the document, as a field. */
export const idField: FieldReference = { name: "id()", path: [], isQuoted: false, alias: null };

/** Returns a semantic error, with the query and its parameters. */
export function invalid(scope: QueryScope, complaint: string): EngineError {
  return invalidQuery(complaint, scope.text, scope.parameters?.shown ?? null);
}

export function notSupported(complaint: string): EngineError {
  return new EngineError("not-supported", complaint);
}

/**
 * Returns the field that a path refers to, with a leading alias stripped.
 *
 * @throws query-invalid when the query has aliases and a longer path begins with none of them.
 */
export function fieldReference(scope: QueryScope, field: Field): FieldReference {
  return resolve(scope, field, field.path[0]?.arrays ?? 0);
}

/** As `fieldReference`; an unknown alias is quoted without its `[]`, as `select` does. */
export function selectedReference(scope: QueryScope, field: Field): FieldReference {
  return resolve(scope, field, 0);
}

function resolve(scope: QueryScope, field: Field, shownArrays: number): FieldReference {
  const [root, ...rest] = field.path;
  const isLong = root !== undefined && rest.length > 0;
  if (isLong && scope.aliases.includes(root.name)) {
    return { name: fieldName(rest, false), path: rest, isQuoted: false, alias: root.name };
  }
  if (isLong && scope.aliases.length > 0) {
    const name = root.name + "[]".repeat(shownArrays);
    throw invalid(
      scope,
      `Unknown alias ${name}, but there are aliases specified in the query (${scope.aliases.join(", ")})`,
    );
  }
  const name = fieldName(field.path, field.isQuoted);
  if (name === "id()") return idField;
  const computed = scope.computed.get(name);
  if (computed !== undefined) return computed;
  return { name, path: field.path, isQuoted: field.isQuoted, alias: null };
}

/** Returns a path's text. Parts that contain a point are quoted, unless the whole path is. */
function fieldName(path: readonly PathPart[], isQuoted: boolean): string {
  return path
    .map(({ name, arrays }, i) => {
      const isAmbiguous = name.includes(".") && !(isQuoted && i === 0);
      return (isAmbiguous ? `'${name}'` : name) + "[]".repeat(arrays);
    })
    .join(".");
}

/** Returns the value of a literal or parameter. @throws query-invalid if the request lacks the parameter */
export function resolveValue(scope: QueryScope, value: Value): ParameterValue {
  if (value.kind === "literal") return scalarOf(value);
  if (scope.parameters === null) {
    throw invalid(
      scope,
      "The query is parametrized but the actual values of parameters were not provided",
    );
  }
  const given = scope.parameters.values.get(value.name);
  if (given !== undefined) return given;
  throw invalid(scope, `Value of parameter '${value.name}' was not provided`);
}

/** As `resolveValue`, where no list is allowed; null for an object, which equals nothing. */
export function scalarOrNone(scope: QueryScope, value: Value): Scalar | null {
  const given = resolveValue(scope, value);
  if (given.type === "object") return null;
  if (given.type !== "array") return given;
  throw invalid(
    scope,
    `Parameter value '${jsonText(given)}' of type Sparrow.Json.BlittableJsonReaderArray is not supported`,
  );
}

/** Returns the alias that a path consists of, or null: it is then the whole document. */
export function wholeAlias(scope: QueryScope, field: Field): string | null {
  const [root] = field.path;
  const isAlone = root !== undefined && field.path.length === 1 && root.arrays === 0;
  return isAlone && scope.aliases.includes(root.name) ? root.name : null;
}
