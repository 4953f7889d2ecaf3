/**
 * Values in a query: what literals and parameters mean.
 *
 * JSON has one kind of number and RQL two, so parameters are read from their JSON text: an integer of
 * 64 bits is a long and exact, every other number is a double.
 *
 * Invariants:
 * - A long is within 64 bits.
 */
import { EngineError } from "../errors.ts";
import type { Literal } from "./ast.ts";

/** One value that a field can be compared with. */
export type Scalar =
  | { readonly type: "string"; readonly value: string }
  | { readonly type: "long"; readonly value: bigint }
  | { readonly type: "double"; readonly value: number }
  | { readonly type: "boolean"; readonly value: boolean }
  | { readonly type: "null"; readonly value: null };

export type ParameterValue =
  | Scalar
  | { readonly type: "array"; readonly items: readonly ParameterValue[] }
  | { readonly type: "object"; readonly fields: ReadonlyMap<string, ParameterValue> };

/** The parameters that came with a query. */
export interface QueryParameters {
  /** Their JSON text, minified, for messages. */
  readonly text: string;
  readonly values: ReadonlyMap<string, ParameterValue>;
}

const longMax = 2n ** 63n - 1n;
const longMin = -(2n ** 63n);

/** Strings and numbers of JSON text; a number's text must survive JSON.parse, so it becomes a string. */
const stringOrNumberPattern = /"(?:[^"\\]|\\[\s\S])*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Reads the JSON text of an object. @throws json-invalid, json-not-object */
export function parseQueryParameters(json: string): QueryParameters {
  // "text" -> "s" + text, 1.0 -> "n1.0": the first letter tells them apart again.
  const marked = json.replace(stringOrNumberPattern, (token) =>
    token.startsWith('"') ? `"s${token.slice(1)}` : `"n${token}"`,
  );
  let parsed: unknown;
  try {
    parsed = JSON.parse(marked);
  } catch (cause) {
    throw new EngineError("json-invalid", "The parameters of the query are not JSON.", { cause });
  }
  const root = unmark(parsed);
  if (root.type !== "object") {
    throw new EngineError("json-not-object", "The parameters of the query are not an object.");
  }
  return { text: jsonText(root), values: root.fields };
}

function unmark(marked: unknown): ParameterValue {
  if (marked === null) return { type: "null", value: null };
  if (typeof marked === "boolean") return { type: "boolean", value: marked };
  if (Array.isArray(marked)) return { type: "array", items: marked.map(unmark) };
  if (typeof marked === "object") {
    const entries = Object.entries(marked).map(([name, value]): [string, ParameterValue] => [
      name.slice(1),
      unmark(value),
    ]);
    return { type: "object", fields: new Map(entries) };
  }
  const text = String(marked);
  return text.startsWith("n") ? number(text.slice(1)) : { type: "string", value: text.slice(1) };
}

/** What the digits of a number mean. */
export function number(text: string): Scalar {
  if (/^-?\d+$/.test(text)) {
    const value = BigInt(text);
    if (value >= longMin && value <= longMax) return { type: "long", value };
  }
  return { type: "double", value: Number(text) };
}

export function scalarOf(literal: Literal): Scalar {
  switch (literal.type) {
    case "string":
      return { type: "string", value: literal.text };
    case "boolean":
      return { type: "boolean", value: literal.text === "true" };
    case "null":
      return { type: "null", value: null };
    default:
      return number(literal.text);
  }
}

/** The name that messages give the type of a value. */
export function typeName(value: ParameterValue): string {
  if (value.type === "boolean") return value.value ? "True" : "False";
  return value.type.charAt(0).toUpperCase() + value.type.slice(1);
}

/** A value as minified JSON. */
export function jsonText(value: ParameterValue): string {
  switch (value.type) {
    case "array":
      return `[${value.items.map(jsonText).join(",")}]`;
    case "object": {
      const fields = [...value.fields].map(
        ([name, field]) => `${JSON.stringify(name)}:${jsonText(field)}`,
      );
      return `{${fields.join(",")}}`;
    }
    case "long":
      return value.value.toString();
    case "double":
      return doubleText(value.value);
    default:
      return JSON.stringify(value.value);
  }
}

/** A double keeps its point, so that it stays one when it is read again. */
export function doubleText(value: number): string {
  const text = String(value);
  return /^-?\d+$/.test(text) ? `${text}.0` : text;
}

/** A value as messages show it: text without quotes, everything else as JSON. */
export function plainText(value: ParameterValue): string {
  return value.type === "string" ? value.value : jsonText(value);
}
