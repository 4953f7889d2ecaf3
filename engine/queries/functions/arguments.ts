/** Parses the arguments of methods, with the errors of RavenDB 7.2.7 for invalid ones. */
import { EngineError } from "../../base/errors.ts";
import type { Condition, FieldReference } from "../analysis/analyzed-query.ts";
import { number, plainText, typeName } from "../analysis/query-parameters.ts";
import {
  fieldReference,
  idField,
  invalid,
  type QueryScope,
  resolveValue,
  scalarOrNone,
} from "../analysis/query-scope.ts";
import type { Argument, Call, PathPart } from "../syntax/ast.ts";
import { describeArgument, pathText } from "../syntax/print.ts";
import type { WhereClause } from "./rql-function.ts";

/** Returns whether the argument is a call of this method. `name` in lower case. */
export function isCallOf(
  argument: { readonly kind: string; readonly name?: unknown },
  name: string,
): argument is Call {
  return argument.kind === "call" && String(argument.name).toLowerCase() === name;
}

/** Returns an argument that must be a condition. */
export function conditionArgument(
  scope: QueryScope,
  call: Call,
  position: number,
  clause: WhereClause,
  isExact: boolean,
): Condition {
  const argument = call.args[position];
  if (argument === undefined || argument.kind === "field") {
    throw invalid(scope, "Unable to understand query");
  }
  if (argument.kind === "literal" || argument.kind === "parameter") {
    throw invalid(scope, `Expected binary expression, but got ${describeArgument(argument)}`);
  }
  return clause.condition(argument, isExact);
}

/**
 * Returns the first argument as a field and the second as text. `isStrict`: it must be a string, or a boolean in the
 * query's text, not of a parameter.
 */
export function fieldAndText(
  scope: QueryScope,
  call: Call,
  isStrict: boolean,
): { field: FieldReference; text: string } {
  const field = fieldArgument(scope, call, 0);
  const second = call.args[1];
  const method = `Method ${call.name}()`;
  if (second === undefined)
    throw invalid(scope, `${method} expects second argument to be provided`);
  if (second.kind !== "literal" && second.kind !== "parameter") {
    throw invalid(
      scope,
      `${method} expects value token as second argument, got ${describeArgument(second)} type`,
    );
  }
  const value = scalarOrNone(scope, second) ?? { type: "null", value: null };
  const isWord = value.type === "boolean" && second.kind === "literal";
  const isAccepted = value.type === "string" || isWord || !isStrict;
  if (isAccepted) return { field, text: plainText(value) };
  throw invalid(
    scope,
    `${method} expects to get an argument of type String while it got ${typeName(value)}`,
  );
}

/** Returns an argument that names a field: a path, a name in quotes, or `id()`. */
export function fieldArgument(scope: QueryScope, call: Call, position: number): FieldReference {
  const argument = call.args[position];
  const method = `Method ${call.name}()`;
  if (argument === undefined) {
    const complaint = "expects a field name as its first argument but no arguments were passed";
    throw invalid(scope, `${method} ${complaint}`);
  }
  if (argument.kind === "field") return fieldReference(scope, argument);
  if (isCallOf(argument, "id")) return idField;
  if (argument.kind === "literal") {
    const path = [{ name: argument.text, arrays: 0 }];
    const isQuoted = argument.type === "string";
    return fieldReference(scope, { kind: "field", offset: argument.offset, path, isQuoted });
  }
  if (argument.kind === "parameter") {
    const path = [{ name: plainText(resolveValue(scope, argument)), arrays: 0 }];
    return fieldReference(scope, { kind: "field", offset: argument.offset, path, isQuoted: false });
  }
  throw invalid(scope, `${method} expects a field name as its argument`);
}

export function numberLiteral(argument: Argument): number | null {
  if (argument.kind !== "literal") return null;
  if (argument.type !== "long" && argument.type !== "double") return null;
  return Number(number(argument.text).value);
}

export function numberArgument(scope: QueryScope, argument: Argument): number | null {
  if (argument.kind !== "parameter") return numberLiteral(argument);
  const value = resolveValue(scope, argument);
  return value.type === "long" || value.type === "double" ? Number(value.value) : null;
}

/** Parses a path given as text: `Lines[].Product`. */
export function pathOf(text: string): PathPart[] {
  return text.split(".").map((part) => {
    const brackets = /(\[\])*$/.exec(part)?.[0] ?? "";
    return { name: part.slice(0, part.length - brackets.length), arrays: brackets.length / 2 };
  });
}

/** Returns the strings that an argument evaluates to. */
export function texts(scope: QueryScope, argument: Argument): string[] {
  if (argument.kind === "field") return [pathText(argument.path)];
  if (argument.kind !== "literal" && argument.kind !== "parameter") {
    throw invalid(scope, `Unable to understand include argument ${describeArgument(argument)}`);
  }
  const value = resolveValue(scope, argument);
  return value.type === "array" ? value.items.map(plainText) : [plainText(value)];
}

/** Returns the error for a method that is no field to compare. */
export function notLeft(shownName: string): EngineError {
  return new EngineError(
    "invalid-argument",
    `The method ${shownName} on the left side inside the WHERE clause is not supported.`,
  );
}
