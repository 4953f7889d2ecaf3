/**
 * The values of literals and parameters in a query.
 *
 * JSON has one number type and RQL two, so parameters are parsed from their JSON text: an integer of 64 bits is a long
 * and exact, every other number is a double.
 *
 * Invariants:
 * - A long is within 64 bits.
 */
import { EngineError } from "../../base/errors.ts";
import { queryParametersDepthMax } from "../../base/limits.ts";
import {
  FreeBudget,
  finish,
  type Work,
  type WorkBudget,
} from "../../base/scheduling/work-budget.ts";
import type { Literal } from "../syntax/ast.ts";

/** A value that a field can be compared with. */
export type Scalar =
  | { readonly type: "string"; readonly value: string }
  | { readonly type: "long"; readonly value: bigint }
  /** `text`: the number as written, if it differs from the output of `doubleText`. */
  | { readonly type: "double"; readonly value: number; readonly text?: string }
  | { readonly type: "boolean"; readonly value: boolean }
  | { readonly type: "null"; readonly value: null };

export type ParameterValue =
  | Scalar
  | { readonly type: "array"; readonly items: readonly ParameterValue[] }
  | { readonly type: "object"; readonly fields: ReadonlyMap<string, ParameterValue> };

type ObjectValue = Extract<ParameterValue, { type: "object" }>;

/** The parameters of a query. */
export interface QueryParameters {
  /** Their JSON text, minified. */
  readonly text: string;
  /** The text for messages: truncated when long. */
  readonly shown: string;
  readonly values: ReadonlyMap<string, ParameterValue>;
}

const longMax = 2n ** 63n - 1n;
const longMin = -(2n ** 63n);
/** Characters of parameters quoted in messages. */
const shownLengthMax = 16_384;
/** Cost of parsing a value, and its memory use in bytes. */
const valueUnits = 8;
const valueBytes = 96;
/** Values between two checks of the budget. */
const stride = 64;
/** Maximum length of parameters that are parsed by the fast path for objects of scalars, in characters. */
const flatLengthMax = 512;

const numberPattern = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const spacePattern = /[ \t\r\n]*/y;

/** As `readQueryParameters`, but synchronous: for small texts. */
export function parseQueryParameters(json: string): QueryParameters {
  return finish(readQueryParameters(json, new FreeBudget()));
}

/** As `readQueryParameters` of a few scalars; null: they are more than that. @throws json-invalid. Hot. */
export function flatParameters(json: string): QueryParameters | null {
  const flat = json.length <= flatLengthMax ? new ParameterReader(json, unlimited).flat() : null;
  return flat === null ? null : new ReadParameters(flat);
}

const unlimited = new FreeBudget();

/** Parses the JSON text of an object. @throws json-invalid, json-not-object, too-large, work-limit, memory-full */
export function* readQueryParameters(json: string, budget: WorkBudget): Work<QueryParameters> {
  const flat = json.length <= flatLengthMax ? new ParameterReader(json, budget).flat() : null;
  if (flat !== null) return new ReadParameters(flat);
  const root = yield* new ParameterReader(json, budget).whole();
  if (root.type !== "object") {
    throw new EngineError("json-not-object", "The parameters of the query are not an object.");
  }
  return new ReadParameters(root);
}

class ReadParameters implements QueryParameters {
  readonly values: ReadonlyMap<string, ParameterValue>;
  readonly #root: ParameterValue;
  #text: string | null = null;

  constructor(root: ObjectValue) {
    this.#root = root;
    this.values = root.fields;
  }

  get text(): string {
    this.#text ??= jsonText(this.#root);
    return this.#text;
  }

  get shown(): string {
    const { text } = this;
    return text.length <= shownLengthMax ? text : `${text.slice(0, shownLengthMax)}…`;
  }
}

/** Parses JSON text value by value, as work that pauses. */
class ParameterReader {
  readonly #json: string;
  readonly #budget: WorkBudget;
  #at = 0;

  constructor(json: string, budget: WorkBudget) {
    this.#json = json;
    this.#budget = budget;
  }

  /** Parses an object of scalars, the parameters of most queries; null for other values. Hot. */
  flat(): ObjectValue | null {
    const fields = new Map<string, ParameterValue>();
    if (!this.#take("{") || this.#take("}")) return null;
    do {
      this.#skipSpace();
      if (this.#json.charAt(this.#at) !== '"') return null;
      const name = this.#string();
      if (!this.#take(":")) return null;
      this.#skipSpace();
      const first = this.#json.charAt(this.#at);
      if (first === "[" || first === "{") return null;
      fields.set(name, this.#scalar(first));
    } while (this.#take(","));
    if (!this.#take("}")) return null;
    this.#skipSpace();
    return this.#at < this.#json.length ? null : { type: "object", fields };
  }

  /** value end */
  *whole(): Work<ParameterValue> {
    const value = yield* this.#value(0);
    this.#skipSpace();
    if (this.#at < this.#json.length) throw notJson();
    return value;
  }

  /** array | object | scalar */
  *#value(depth: number): Work<ParameterValue> {
    this.#skipSpace();
    const first = this.#json.charAt(this.#at);
    if (first !== "[" && first !== "{") return this.#scalar(first);
    if (depth === queryParametersDepthMax) throw tooDeep();
    this.#at++;
    return first === "[" ? yield* this.#array(depth + 1) : yield* this.#object(depth + 1);
  }

  /** ( value ( ',' value )* )? ']' */
  *#array(depth: number): Work<ParameterValue> {
    const items: ParameterValue[] = [];
    if (this.#take("]")) return { type: "array", items };
    do {
      this.#skipSpace();
      const first = this.#json.charAt(this.#at);
      if (first === "[" || first === "{") items.push(yield* this.#value(depth));
      else items.push(this.#scalar(first));
      if (items.length % stride === 0) yield* this.#pay();
    } while (this.#take(","));
    if (!this.#take("]")) throw notJson();
    return { type: "array", items };
  }

  /** ( string ':' value ( ',' string ':' value )* )? '}' */
  *#object(depth: number): Work<ParameterValue> {
    const fields = new Map<string, ParameterValue>();
    if (this.#take("}")) return { type: "object", fields };
    do {
      this.#skipSpace();
      if (this.#json.charAt(this.#at) !== '"') throw notJson();
      const name = this.#string();
      if (!this.#take(":")) throw notJson();
      fields.set(name, yield* this.#value(depth));
      if (fields.size % stride === 0) yield* this.#pay();
    } while (this.#take(","));
    if (!this.#take("}")) throw notJson();
    return { type: "object", fields };
  }

  *#pay(): Work<void> {
    this.#budget.spend(stride * valueUnits);
    this.#budget.hold(stride * valueBytes);
    if (this.#budget.isDue) yield;
  }

  #scalar(first: string): ParameterValue {
    if (first === '"') return { type: "string", value: this.#string() };
    for (const word of ["true", "false", "null"] as const) {
      if (!this.#json.startsWith(word, this.#at)) continue;
      this.#at += word.length;
      return word === "null"
        ? { type: "null", value: null }
        : { type: "boolean", value: word === "true" };
    }
    numberPattern.lastIndex = this.#at;
    const [digits] = numberPattern.exec(this.#json) ?? [];
    if (digits === undefined) throw notJson();
    this.#at += digits.length;
    const value = number(digits);
    const isSpelled = value.type === "double" && /[.e]/i.test(digits);
    return isSpelled && digits !== doubleText(value.value) ? { ...value, text: digits } : value;
  }

  /** Returns the string whose opening quote is next. */
  #string(): string {
    const json = this.#json;
    const start = this.#at;
    let isPlain = true;
    for (let at = start + 1; at < json.length; at++) {
      const code = json.charCodeAt(at);
      if (code === quoteCode) {
        this.#at = at + 1;
        return isPlain ? json.slice(start + 1, at) : unescaped(json.slice(start, at + 1));
      }
      if (code === backslashCode) at++;
      if (code === backslashCode || code < firstPlainCode) isPlain = false;
    }
    throw notJson();
  }

  #take(sign: string): boolean {
    this.#skipSpace();
    if (this.#json.charAt(this.#at) !== sign) return false;
    this.#at++;
    return true;
  }

  #skipSpace(): void {
    if (this.#json.charCodeAt(this.#at) > 0x20) return;
    spacePattern.lastIndex = this.#at;
    spacePattern.exec(this.#json);
    this.#at = spacePattern.lastIndex;
  }
}

const quoteCode = 0x22;
const backslashCode = 0x5c;
const firstPlainCode = 0x20;

function unescaped(quoted: string): string {
  try {
    return JSON.parse(quoted) as string;
  } catch (cause) {
    throw notJson(cause);
  }
}

function notJson(cause?: unknown): EngineError {
  return new EngineError("json-invalid", "The parameters of the query are not JSON.", { cause });
}

function tooDeep(): EngineError {
  return new EngineError(
    "work-limit",
    `The parameters of the query are nested more than ${queryParametersDepthMax} deep, which is the limit.`,
  );
}

function isInteger(text: string): boolean {
  return /^-?\d+$/.test(text);
}

/** Returns the value of a number's digits. */
export function number(text: string): Scalar {
  if (isInteger(text)) {
    // Numbers of up to 15 digits are exact.
    if (text.length <= 15) return { type: "long", value: BigInt(Number(text)) };
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

/** Returns the name of a value's type in messages. */
export function typeName(value: ParameterValue): string {
  if (value.type === "boolean") return value.value ? "True" : "False";
  return value.type.charAt(0).toUpperCase() + value.type.slice(1);
}

/** Returns a value as minified JSON. */
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
      return value.text ?? doubleText(value.value);
    default:
      return JSON.stringify(value.value);
  }
}

/** A double keeps its point, so that it is parsed as a double again. */
function doubleText(value: number): string {
  const text = String(value);
  return /^-?\d+$/.test(text) ? `${text}.0` : text;
}

/** Returns a value as messages show it: text without quotes, everything else as JSON. */
export function plainText(value: ParameterValue): string {
  return value.type === "string" ? value.value : jsonText(value);
}
