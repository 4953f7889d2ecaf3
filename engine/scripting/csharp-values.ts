/**
 * C# semantics of values and operators over script values: integral doubles, missing values, dates and time spans.
 *
 * - A double with an integral value is boxed, because 7 / 2 is 3 and 7.0 / 2 is 3.5; other numbers need no mark.
 * - A date is its text, as in documents: `2020-01-02T03:04:05.0000000Z`; a span is `1.02:03:04.0000000`.
 * - undefined is a missing value, null a null: in an index, the first produces no term, the second produces one.
 *
 * Missing values in indexes, measured on RavenDB 7.2.7: a member or a method of one is missing too, `x + null` is x,
 * `null + x` is null unless x is a string, `null < x` is false, `!null` is null, `-null` and `x * null` are 0.
 */
import { EngineError } from "../base/errors.ts";
import { isDoubleMember, spanTicks, timeMember, timeSpanText } from "../indexing/date-members.ts";
import { normalDates, parseInstant } from "../indexing/date-terms.ts";
import { formatDate as dateIn, formatNumber as numberFormatted } from "./format-text.ts";
import { valueText } from "./script-document.ts";
import {
  ABSENT,
  isArray,
  isObject,
  newObject,
  ownKeys,
  positionOf,
  type Run,
  type ScriptObject,
  slotAt,
  traitsOf,
  type Value,
} from "./script-values.ts";
import { spanSlots } from "./shape-hint.ts";
import { isDoubleSpelling, TextSource } from "./text-source.ts";
import { doubleText, numberText, roundTripText } from "./value-text.ts";

/** The type of a boxed number: a double prints as one (`3.0`), a decimal, such as a sum, does not. */
export type BoxKind = "Double" | "Decimal";

/** A runtime error of a C# index. */
export function failed(message: string): EngineError {
  return new EngineError("script-failed", message);
}

export function isMissing(value: Value): value is null | undefined {
  return value === null || value === undefined;
}

/** A double or decimal of C#. */
export function makeDouble(run: Run, value: number, kind: BoxKind = "Double"): Value {
  if (!Number.isInteger(value)) return value;
  run.grow(96);
  return boxed(value, kind);
}

/** As `makeDouble`, for the input of a function, which no run is charged for. */
export function inputDouble(value: number): Value {
  return Number.isInteger(value) ? boxed(value, "Double") : value;
}

function boxed(value: number, kind: BoxKind): Value {
  const made = newObject();
  const traits = traitsOf(made);
  traits.className = kind;
  traits.boxed = value;
  return made;
}

function isBoxed(value: Value): value is ScriptObject {
  if (!isObject(value) || value.traits === null) return false;
  const { className } = value.traits;
  return className === "Double" || className === "Decimal";
}

/** The number that a value is, or null. */
export function numberIn(value: Value): number | null {
  if (typeof value === "number") return value;
  return isBoxed(value) ? (value.boxed as number) : null;
}

/** Whether it is a decimal that is a whole number; others are told apart by nothing. */
export function isDecimalValue(value: Value): boolean {
  return isBoxed(value) && value.className === "Decimal";
}

export function isDouble(value: Value): boolean {
  return typeof value === "number" ? !Number.isInteger(value) : isBoxed(value);
}

/** A property of an object; undefined when missing. Doubles of a document are recognized by their spelling. */
export function propertyOf(run: Run, object: ScriptObject, name: string): Value {
  const position = positionOf(object, name);
  if (position < 0) return undefined;
  const value = slotAt(object, position);
  if (value === ABSENT) return undefined;
  if (typeof value !== "number" || !Number.isInteger(value)) return value;
  const { source } = object;
  if (!(source instanceof TextSource) || position >= object.readCount) return value;
  const { shape } = object;
  if (shape === null) return value;
  const at = source.spansOf(object) + position * spanSlots;
  const { spans } = shape.hint.memory;
  const [start, end] = [spans[at + 1] as number, spans[at + 2] as number];
  return isDoubleSpelling(source.bytes, start, end) ? makeDouble(run, value) : value;
}

// Arithmetic.

type Numeric = (left: number, right: number) => number;

function compute(run: Run, left: Value, right: Value, operator: string, numeric: Numeric): Value {
  const [first, second] = [numberIn(left), numberIn(right)];
  if (first !== null && second !== null) {
    const result = numeric(first, second);
    if (!isDouble(left) && !isDouble(right)) return result;
    return makeDouble(run, result, isDecimal(left, right) ? "Decimal" : "Double");
  }
  throw failed(
    `Operator '${operator}' cannot be applied to operands of type '${typeName(left)}' and '${typeName(right)}'`,
  );
}

/** Whether the operation is decimal: neither operand is a double. */
function isDecimal(left: Value, right: Value): boolean {
  const [first, second] = [kindOf(left), kindOf(right)];
  return first !== "Double" && second !== "Double";
}

function kindOf(value: Value): string {
  return isBoxed(value) ? value.className : isDouble(value) ? "Double" : "";
}

/** Fraction digits of a number; -1 when it is too large or too small for this to matter. */
function scaleOf(value: number): number {
  if (Number.isInteger(value)) return 0;
  const text = String(value);
  const point = text.indexOf(".");
  return point < 0 || text.includes("e") ? -1 : text.length - point - 1;
}

/** A result rounded to the digits that decimals would have: 0.1 + 0.2 is 0.3. */
function rounded(result: number, scale: number): number {
  const isRounded = scale > 0 && scale <= 15 && Math.abs(result) < 1e15;
  return isRounded ? Number(result.toFixed(scale)) : result;
}

function sumOf(left: number, right: number): number {
  const [first, second] = [scaleOf(left), scaleOf(right)];
  return rounded(left + right, first < 0 || second < 0 ? -1 : Math.max(first, second));
}

export function typeName(value: Value): string {
  if (isMissing(value)) return "DynamicNullObject";
  if (typeof value === "string") return "string";
  if (typeof value === "boolean") return "bool";
  if (numberIn(value) !== null) return isDouble(value) ? "double" : "long";
  return isArray(value) ? "DynamicArray" : "DynamicBlittableJson";
}

export function add(run: Run, left: Value, right: Value): Value {
  if (typeof left === "string" || typeof right === "string") {
    const [time, span] = [dateOf(left), spanOf(right)];
    if (time !== null && span !== null) return dateText(moved(time, span));
    const [first, second] = [spanOf(left), spanOf(right)];
    if (first !== null && second !== null) return spanText(first + second);
    const text = textOf(left) + textOf(right);
    run.grow(32 + text.length);
    return text;
  }
  if (isMissing(left)) return left;
  if (isMissing(right)) return left;
  return compute(run, left, right, "+", sumOf);
}

export function subtract(run: Run, left: Value, right: Value): Value {
  if (isMissing(left) || isMissing(right)) return left;
  const time = dateOf(left);
  if (time !== null) {
    const [other, span] = [dateOf(right), spanOf(right)];
    if (other !== null) return spanText(ticksBetween(other, time));
    if (span !== null) return dateText(moved(time, -span));
  }
  const [first, second] = [spanOf(left), spanOf(right)];
  if (first !== null && second !== null) return spanText(first - second);
  return compute(run, left, right, "-", (a, b) => sumOf(a, -b));
}

export function multiply(run: Run, left: Value, right: Value): Value {
  if (isMissing(left)) return left;
  if (isMissing(right)) return 0;
  return compute(run, left, right, "*", (a, b) => {
    const [first, second] = [scaleOf(a), scaleOf(b)];
    return rounded(a * b, first < 0 || second < 0 ? -1 : first + second);
  });
}

export function divide(run: Run, left: Value, right: Value, operator: "/" | "%"): Value {
  if (isMissing(left)) return left;
  if (isMissing(right) || numberIn(right) === 0) {
    throw failed("System.DivideByZeroException: Attempted to divide by zero.");
  }
  if (operator === "%") return compute(run, left, right, "%", (a, b) => a % b);
  if (isDouble(left) || isDouble(right)) return compute(run, left, right, "/", (a, b) => a / b);
  return compute(run, left, right, "/", (a, b) => Math.trunc(a / b) + 0);
}

export function negate(run: Run, value: Value): Value {
  if (isMissing(value)) return 0;
  return compute(run, 0, value, "-", (a, b) => a - b);
}

// Comparisons.

export function equals(run: Run, left: Value, right: Value): boolean {
  if (isMissing(left) || isMissing(right)) return isMissing(left) && isMissing(right);
  if (left === right) return true;
  if (typeof left === "string" && typeof right === "string") {
    run.burn(1 + (Math.min(left.length, right.length) >> 5));
    const [first, second] = [dateOf(left), dateOf(right)];
    return first !== null && second !== null && ticksBetween(first, second) === 0;
  }
  const first = numberIn(left);
  if (first !== null) return first === numberIn(right);
  if (isObject(left) || isArray(left)) return resultText(run, left) === resultText(run, right);
  return false;
}

/** Negative, 0 or positive; null when the two are not comparable. */
export function compare(run: Run, left: Value, right: Value): number | null {
  if (isMissing(left) || isMissing(right)) return null;
  if (typeof left === "string" && typeof right === "string") {
    run.burn(1 + (Math.min(left.length, right.length) >> 5));
    const [first, second] = [dateOf(left), dateOf(right)];
    if (first !== null && second !== null) return ticksBetween(second, first);
    const [shorter, longer] = [spanOf(left), spanOf(right)];
    if (shorter !== null && longer !== null) return shorter - longer;
    return left < right ? -1 : left > right ? 1 : 0;
  }
  if (typeof left === "boolean" && typeof right === "boolean") return Number(left) - Number(right);
  const [first, second] = [numberIn(left), numberIn(right)];
  if (first === null || second === null) {
    throw failed(
      `Operator '<' cannot be applied to operands of type '${typeName(left)}' and '${typeName(right)}'`,
    );
  }
  return first - second;
}

/** As `compare`, for sorting: missing values come first. */
export function order(run: Run, left: Value, right: Value): number {
  if (isMissing(left) || isMissing(right))
    return Number(isMissing(right)) - Number(isMissing(left));
  return compare(run, left, right) ?? 0;
}

// Texts.

/** The result of `ToString()`. */
export function textOf(value: Value): string {
  if (isMissing(value)) return "";
  if (typeof value === "string") {
    const time = dateOf(value);
    return time === null ? value : formatDate(time, "MM/dd/yyyy HH:mm:ss");
  }
  if (typeof value === "boolean") return value ? "True" : "False";
  const number = numberIn(value);
  if (number !== null) return isDouble(value) ? roundTripText(number) : numberText(number);
  return resultText(null, value);
}

/** JSON text of an index's output: a missing member is null. */
export function resultText(run: Run | null, value: Value): string {
  return nestedText(run, value, 0);
}

/** Maximum nesting of the values that a function returns. */
const nestingMax = 100;

function nestedText(run: Run | null, value: Value, depth: number): string {
  if (depth > nestingMax) throw failed("The values are nested too deeply");
  if (isMissing(value)) return "null";
  if (isBoxed(value)) {
    const number = value.boxed as number;
    return value.className === "Double" ? doubleText(number) : numberText(number);
  }
  if (isArray(value) && value.source === null) {
    run?.burn(value.items.length);
    return `[${value.items.map((item) => nestedText(run, item === ABSENT ? null : (item as Value), depth + 1)).join(",")}]`;
  }
  if (isObject(value) && value.source === null) {
    const keys = ownKeys(value);
    run?.burn(keys.length);
    const members = keys.map(
      (key) => `${JSON.stringify(key)}:${nestedText(run, slotOf(value, key), depth + 1)}`,
    );
    return `{${members.join(",")}}`;
  }
  return normalDates(valueText(run, value));
}

/**
 * As `resultText`, for one field: missing items of a list are omitted, and integral numbers are written as integers.
 */
export function listedText(run: Run | null, value: Value, depth = 0): string {
  if (depth > nestingMax) throw failed("The values are nested too deeply");
  if (isBoxed(value)) return numberText(value.boxed as number);
  if (!isArray(value) || value.source !== null) return resultText(run, value);
  const items = value.items.filter((item) => item !== undefined && item !== ABSENT);
  return `[${items.map((item) => listedText(run, item as Value, depth + 1)).join(",")}]`;
}

function slotOf(object: ScriptObject, key: string): Value {
  const value = slotAt(object, positionOf(object, key));
  return value === ABSENT ? undefined : value;
}

/** A formatted number: `D5` and `X` of its whole part, and all formats of patches. */
export function formatNumber(value: Value, format: string): string {
  const number = numberIn(value) as number; // checked by the caller
  const [, kind = "", least = ""] = /^([dDxX])(\d{0,2})$/.exec(format) ?? [];
  if (kind === "") return numberFormatted(number, format);
  const whole = Math.trunc(number);
  if (kind === "X") return whole.toString(16).toUpperCase().padStart(Number(least), "0");
  if (kind === "x") return whole.toString(16).padStart(Number(least), "0");
  const digits = numberText(Math.abs(whole)).padStart(Number(least), "0");
  return (whole < 0 ? "-" : "") + digits;
}

// Dates. Ticks are 100 ns.

/** A moment in UTC, or a local time. */
export interface Moment {
  /** Milliseconds since 1970. */
  readonly time: number;
  /** Ticks beyond the milliseconds, 0 to 9999. */
  readonly ticks: number;
  readonly isUtc: boolean;
}

const ticksPerMillisecond = 10_000;
const timeMin = -62_135_596_800_000;
const timeMax = 253_402_300_799_999;

/** The date in a text with a time of day, or null. */
export function dateOf(value: Value): Moment | null {
  if (typeof value !== "string" || value.length < 19 || value.charCodeAt(10) !== 0x54) return null;
  const instant = parseInstant(value);
  if (instant === null) return null;
  const { milliseconds: time, ticks, term } = instant;
  return { time, ticks, isUtc: term.endsWith("Z") };
}

export function dateText({ time, ticks, isUtc }: Moment): string {
  if (!(time >= timeMin && time <= timeMax)) {
    throw failed("System.ArgumentOutOfRangeException: The resulting date is out of range.");
  }
  const text = new Date(time).toISOString().slice(0, -1);
  return `${text}${String(ticks).padStart(4, "0")}${isUtc ? "Z" : ""}`;
}

/** A date, `ticks` later. */
export function moved({ time, ticks, isUtc }: Moment, by: number): Moment {
  const all = ticks + by;
  const whole = Math.floor(all / ticksPerMillisecond);
  return { time: time + whole, ticks: Math.round(all - whole * ticksPerMillisecond), isUtc };
}

function ticksBetween(from: Moment, to: Moment): number {
  return (to.time - from.time) * ticksPerMillisecond + (to.ticks - from.ticks);
}

/** The ticks of a text that is a time span, or null. */
export function spanOf(value: Value): number | null {
  const ticks = typeof value === "string" ? spanTicks(value) : null;
  return ticks === null ? null : Number(ticks);
}

export function spanText(ticks: number): string {
  return timeSpanText(BigInt(Math.round(ticks)));
}

/** A date in a .NET format, in the invariant culture. */
export function formatDate(moment: Moment, format: string): string {
  if (format === "o" || format === "O") return dateText(moment);
  return dateIn(moment.time, format, moment.ticks, moment.isUtc ? "Z" : "");
}

/**
 * A member of a text that is a date or a time span; undefined when there is none. `DateTime` and
 * `UtcDateTime` are also those of a text without an offset, which a function may have cast to DateTimeOffset.
 */
export function textMember(run: Run, text: string, name: string): Value {
  const member = timeMember(text, name);
  if (typeof member === "bigint") return Number(member);
  if (typeof member === "number") return isDoubleMember(name) ? makeDouble(run, member) : member;
  if (member !== undefined || (name !== "DateTime" && name !== "UtcDateTime")) return member;
  const moment = dateOf(text);
  return moment === null ? undefined : dateText(moment);
}
