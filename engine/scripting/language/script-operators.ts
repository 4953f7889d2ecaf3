/**
 * Operators and conversions on script values: the rules of ECMAScript over the value classes of script-values.ts.
 *
 * It knows neither syntax nor the methods of values. It calls a script's own `valueOf` and `toString`.
 *
 * Invariant: work and memory in proportion to the operands are charged to the run.
 */

import { scriptTextLengthMax } from "../../base/limits.ts";
import {
  ABSENT,
  callFunction,
  getOwn,
  isFunction,
  isReference,
  kinds,
  type Reference,
  type Run,
  recursionExceeded,
  type ScriptArray,
  type ScriptFunction,
  type ScriptObject,
  type ScriptSymbol,
  symbolOf,
  throwError,
  type Value,
  wellKnown,
} from "./script-values.ts";

/** Comparing or joining longer strings is charged. */
const shortString = 256;

export function truthy(value: Value): boolean {
  // Every kind of reference is a host object, so the host's rule applies.
  return Boolean(value);
}

export function typeOf(value: Value): string {
  if (typeof value !== "object") return typeof value;
  if (value === null) return "object";
  if (value.kind === kinds.symbol) return "symbol";
  return value.kind === kinds.function ? "function" : "object";
}

/** Returns a function property of an object or of its class, own ones only: a script's `valueOf`, for example. */
function ownFunction(value: Reference, name: string): ScriptFunction | null {
  if (value.kind !== kinds.object) return null;
  const own = getOwn(value, name);
  if (isFunction(own)) return own;
  const inherited = value.maker?.methods;
  const method = inherited ? getOwn(inherited, name) : undefined;
  return isFunction(method) ? method : null;
}

/** Returns a reference as a primitive. @throws ScriptThrow when its own methods return none */
export function toPrimitive(
  run: Run,
  value: Value,
  hint: "number" | "string",
): Exclude<Value, Reference> {
  if (!isReference(value)) return value;
  if (value.kind === kinds.symbol) {
    throwError("TypeError", `Cannot convert a Symbol value to a ${hint}`);
  }
  if (value.kind === kinds.object) {
    const converter = symbolOf(value, wellKnown.toPrimitive);
    if (isFunction(converter)) return converted(run, value, converter, hint);
    if (value.boxed !== undefined) return toPrimitive(run, value.boxed, hint);
  }
  const names = hint === "string" ? ["toString", "valueOf"] : ["valueOf", "toString"];
  let own = false;
  for (const name of names) {
    const method = ownFunction(value, name);
    if (method === null) {
      if (name === "toString") return defaultText(run, value);
      continue;
    }
    own = true;
    const result = callFunction(run, method, value, []);
    if (!isReference(result)) return result;
  }
  if (own) throwError("TypeError", "Cannot convert object to primitive value");
  return defaultText(run, value);
}

/** Returns the result of an object's `Symbol.toPrimitive`. @throws ScriptThrow when it is no primitive */
function converted(
  run: Run,
  value: Reference,
  converter: ScriptFunction,
  hint: "number" | "string",
): Exclude<Value, Reference> {
  const result = callFunction(run, converter, value, [hint]);
  if (isReference(result)) throwError("TypeError", "Cannot convert object to primitive value");
  return result;
}

/** `Symbol(description)`: a symbol's own text. */
export function symbolText({ description }: ScriptSymbol): string {
  return `Symbol(${description ?? ""})`;
}

/** Returns the text of a reference without conversion methods of its own. */
function defaultText(run: Run, value: Reference): string {
  switch (value.kind) {
    case kinds.object:
      return value.className.endsWith("Error") ? errorText(run, value) : "[object Object]";
    case kinds.array:
      return joinItems(run, value, ",");
    case kinds.function:
      return `function ${value.name}() { [code] }`;
    case kinds.date:
      run.burn(120);
      return dateString(value.time);
    case kinds.map:
      return "[object Map]";
    case kinds.set:
      return "[object Set]";
    case kinds.symbol:
      return symbolText(value);
    case kinds.pattern:
      return `/${value.matcher.source}/${value.matcher.flags}`;
  }
}

/** `Thu Jan 01 1970 00:00:00 GMT+0000 (Coordinated Universal Time)`: scripts run in UTC. */
export function dateString(time: number): string {
  if (Number.isNaN(time)) return "Invalid Date";
  const parts = new Date(time).toUTCString().split(/[ ,]+/);
  const [weekday, day, month, year, clock] = parts;
  return `${weekday} ${month} ${day} ${year} ${clock} GMT+0000 (Coordinated Universal Time)`;
}

function errorText(run: Run, error: ScriptObject): string {
  const own = getOwn(error, "name");
  const name = own === undefined ? error.className : toText(run, own);
  const message = getOwn(error, "message");
  const text = message === undefined ? "" : toText(run, message);
  return text === "" ? name : `${name}: ${text}`;
}

/** Items as text with a separator between them; undefined and null are empty. */
export function joinItems(run: Run, array: ScriptArray, separator: string): string {
  if (run.levelsLeft < 8) throw recursionExceeded();
  run.levelsLeft -= 8;
  run.burn(20);
  let text = "";
  for (const [i, item] of array.items.entries()) {
    run.burn(4);
    const part =
      item === ABSENT || item === undefined || item === null ? "" : toText(run, item as Value);
    if (i > 0) text += separator;
    text += part;
    run.grow(part.length + separator.length);
  }
  run.levelsLeft += 8;
  return text;
}

export function toText(run: Run, value: Value): string {
  switch (typeof value) {
    case "string":
      return value;
    case "number":
    case "boolean":
    case "undefined":
      return String(value);
    default: {
      if (value === null) return "null";
      return String(toPrimitive(run, value, "string"));
    }
  }
}

/** Returns a value as a property name. */
export function toKey(run: Run, value: Value): string {
  return typeof value === "string" ? value : toText(run, value);
}

export function toNumber(run: Run, value: Value): number {
  switch (typeof value) {
    case "number":
      return value;
    case "string":
      run.burn(value.length >> 3);
      return Number(value);
    case "boolean":
      return value ? 1 : 0;
    case "undefined":
      return Number.NaN;
    default:
      if (value === null) return 0;
      if (value.kind === kinds.date) return value.time;
      return toNumber(run, toPrimitive(run, value, "number"));
  }
}

/** Returns a number as a position or count for built-ins: truncated, NaN as 0. */
export function toInteger(run: Run, value: Value): number {
  const number = Math.trunc(toNumber(run, value));
  return Number.isNaN(number) ? 0 : number;
}

export function add(run: Run, left: Value, right: Value): Value {
  if (typeof left === "number" && typeof right === "number") return left + right;
  if (typeof left === "string" && typeof right === "string") return concat(run, left, right);
  const a = defaultPrimitive(run, left);
  const b = defaultPrimitive(run, right);
  if (typeof a === "string" || typeof b === "string") return concat(run, String(a), String(b));
  return toNumber(run, a) + toNumber(run, b);
}

/** As `toPrimitive` without a hint: dates become text. */
function defaultPrimitive(run: Run, value: Value): Exclude<Value, Reference> {
  if (!isReference(value)) return value;
  return toPrimitive(run, value, value.kind === kinds.date ? "string" : "number");
}

/**
 * Joins two strings. The host shares their characters until the result is first read, so a long result is charged at a
 * quarter: the actual copying stays in proportion.
 */
export function concat(run: Run, left: string, right: string): string {
  const length = left.length + right.length;
  run.grow(length > shortString ? 32 + length / 4 : 32);
  if (length > stringLengthMax) throw tooLong();
  return left + right;
}

/** Maximum UTF-16 units of a string that a script creates. */
export const stringLengthMax = scriptTextLengthMax;

export function tooLong(): never {
  return throwError(
    "RangeError",
    `Invalid string length: a script's texts have at most ${stringLengthMax} characters`,
  );
}

export function strictEquals(run: Run, left: Value, right: Value): boolean {
  if (typeof left === "string" && left.length > shortString) payForComparison(run, left, right);
  return left === right;
}

function payForComparison(run: Run, left: string, right: Value): void {
  if (typeof right === "string" && right.length === left.length) run.burn(left.length >> 5);
}

export function looseEquals(run: Run, left: Value, right: Value): boolean {
  if (left === null || left === undefined) return right === null || right === undefined;
  if (right === null || right === undefined) return false;
  if (typeof left === typeof right) {
    return strictEquals(run, left, right);
  }
  // A symbol equals itself only.
  if (isSymbol(left) || isSymbol(right)) return left === right;
  const a = defaultPrimitive(run, left);
  const b = defaultPrimitive(run, right);
  if (typeof a === typeof b) return strictEquals(run, a, b);
  return toNumber(run, a) === toNumber(run, b);
}

function isSymbol(value: Value): boolean {
  return isReference(value) && value.kind === kinds.symbol;
}

export type Comparison = "<" | "<=" | ">" | ">=";

export function compare(run: Run, operator: Comparison, left: Value, right: Value): boolean {
  const a = isReference(left) ? comparable(run, left) : left;
  const b = isReference(right) ? comparable(run, right) : right;
  if (typeof a === "string" && typeof b === "string") {
    run.burn(Math.min(a.length, b.length) >> 5);
    return orders[operator](a, b);
  }
  return orders[operator](toNumber(run, a), toNumber(run, b));
}

function comparable(run: Run, value: Reference): Value {
  return value.kind === kinds.date ? value.time : toPrimitive(run, value, "number");
}

const orders: Record<Comparison, (a: number | string, b: number | string) => boolean> = {
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b,
};

/** The numeric operators. */
export const arithmetic: Readonly<Record<string, (a: number, b: number) => number>> = {
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => a / b,
  "%": (a, b) => a % b,
  "**": (a, b) => a ** b,
  "&": (a, b) => a & b,
  "|": (a, b) => a | b,
  "^": (a, b) => a ^ b,
  "<<": (a, b) => a << b,
  ">>": (a, b) => a >> b,
  ">>>": (a, b) => a >>> b,
};
