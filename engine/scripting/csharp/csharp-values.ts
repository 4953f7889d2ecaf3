/**
 * C# semantics of values and operators over script values: missing values, dates and time spans, and numbers as
 * csharp-numbers.ts represents them.
 *
 * - A date is its text, as in documents: `2020-01-02T03:04:05.0000000Z`; a span is `1.02:03:04.0000000`.
 * - undefined is a missing value, null a null: in an index, the first produces no term, the second produces one.
 *
 * Missing values in indexes, measured on RavenDB 7.2.7: a member or a method of one is missing too, `x + null` is x,
 * `null + x` is null unless x is a string, `null < x` is false, `!null` is null, `-null` and `x * null` are 0.
 */
import { isDoubleMember, timeMember } from "../../indexing/dates/date-members.ts";
import { normalDates, parseInstant } from "../../indexing/dates/date-terms.ts";
import { spanTicks, timeSpanText } from "../../indexing/dates/time-spans.ts";
import { formatDate as dateIn, formatNumber as numberFormatted } from "../built-ins/format-text.ts";
import {
  ABSENT,
  isArray,
  isObject,
  ownKeys,
  positionOf,
  type Run,
  type ScriptObject,
  slotAt,
  type Value,
} from "../language/script-values.ts";
import { valueText } from "../values/script-document.ts";
import { spanSlots } from "../values/shape-hint.ts";
import { isDoubleSpelling, TextSource } from "../values/text-source.ts";
import {
  comparedNumbers,
  computed,
  failed,
  fieldNumberText,
  isDouble,
  isLong,
  isTrueDouble,
  jsonNumberText,
  makeDouble,
  makeLong,
  numberIn,
  type Operator,
  plainNumberText,
  spelledNumber,
  wholeOf,
} from "./csharp-numbers.ts";

export function isMissing(value: Value): value is null | undefined {
  return value === null || value === undefined;
}

/** Returns a property of an object; undefined when missing. Doubles of a document are recognized by their spelling. */
export function propertyOf(run: Run, object: ScriptObject, name: string): Value {
  const position = positionOf(object, name);
  if (position < 0) return undefined;
  const value = slotAt(object, position);
  if (value === ABSENT) return undefined;
  if (typeof value !== "number") return value;
  const { source } = object;
  if (!(source instanceof TextSource) || position >= object.readCount) return value;
  const { shape } = object;
  if (shape === null) return value;
  const at = source.spansOf(object) + position * spanSlots;
  const { spans } = shape.hint.memory;
  const [start, end] = [spans[at + 1] as number, spans[at + 2] as number];
  if (isPlainSpelling(source.bytes, start, end, value)) return value;
  return spelledNumber(run, value, source.slice(start, end));
}

/** Returns whether a plain number has the text of a document: a safe integer without a point, or a short fraction. */
function isPlainSpelling(bytes: Uint8Array, start: number, end: number, value: number): boolean {
  if (Number.isInteger(value)) {
    return Number.isSafeInteger(value) && !isDoubleSpelling(bytes, start, end);
  }
  if (end - start > 15 || bytes[end - 1] === 0x30 || Math.abs(value) < 1e-3) return false;
  for (let at = start; at < end; at += 1) if (((bytes[at] as number) | 0x20) === 0x65) return false;
  return true;
}

// Arithmetic.

/** @throws EngineError script-failed when an operand is no number */
function compute(run: Run, left: Value, right: Value, operator: Operator): Value {
  const result = computed(run, left, right, operator);
  if (result !== null) return result;
  throw failed(
    `Operator '${operator}' cannot be applied to operands of type '${typeName(left)}' and '${typeName(right)}'`,
  );
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
  return compute(run, left, right, "+");
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
  return compute(run, left, right, "-");
}

export function multiply(run: Run, left: Value, right: Value): Value {
  if (isMissing(left)) return left;
  if (isMissing(right)) return 0;
  return compute(run, left, right, "*");
}

export function divide(run: Run, left: Value, right: Value, operator: "/" | "%"): Value {
  if (isMissing(left)) return left;
  const isOfDoubles = isTrueDouble(left) || isTrueDouble(right);
  if (isMissing(right) || (numberIn(right) === 0 && !isOfDoubles)) {
    throw failed("System.DivideByZeroException: Attempted to divide by zero.");
  }
  return compute(run, left, right, operator);
}

export function negate(run: Run, value: Value): Value {
  if (isMissing(value)) return 0;
  return compute(run, 0, value, "-");
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
  if (numberIn(left) !== null)
    return numberIn(right) !== null && comparedNumbers(left, right) === 0;
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
  if (numberIn(left) === null || numberIn(right) === null) {
    throw failed(
      `Operator '<' cannot be applied to operands of type '${typeName(left)}' and '${typeName(right)}'`,
    );
  }
  return comparedNumbers(left, right);
}

/** As `compare`, for sorting: missing values are first. */
export function order(run: Run, left: Value, right: Value): number {
  if (isMissing(left) || isMissing(right))
    return Number(isMissing(right)) - Number(isMissing(left));
  return compare(run, left, right) ?? 0;
}

// Texts.

/** Returns the result of `ToString()`. */
export function textOf(value: Value): string {
  if (isMissing(value)) return "";
  if (typeof value === "string") {
    const time = dateOf(value);
    return time === null ? value : formatDate(time, "MM/dd/yyyy HH:mm:ss");
  }
  if (typeof value === "boolean") return value ? "True" : "False";
  return numberIn(value) === null ? resultText(null, value) : plainNumberText(value);
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
  if (isObject(value) && numberIn(value) !== null) return jsonNumberText(value);
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
  if (isObject(value) && numberIn(value) !== null) return fieldNumberText(value);
  if (!isArray(value) || value.source !== null) return resultText(run, value);
  const items = value.items.filter((item) => item !== undefined && item !== ABSENT);
  return `[${items.map((item) => listedText(run, item as Value, depth + 1)).join(",")}]`;
}

function slotOf(object: ScriptObject, key: string): Value {
  const value = slotAt(object, positionOf(object, key));
  return value === ABSENT ? undefined : value;
}

/** Returns a formatted number: `D5` and `X` of its whole part, and all formats of patches. */
export function formatNumber(value: Value, format: string): string {
  const [, kind = "", least = ""] = /^([dDxX])(\d{0,2})$/.exec(format) ?? [];
  if (kind === "") {
    return numberFormatted(isLong(value) ? wholeOf(value) : (numberIn(value) as number), format);
  }
  const whole = wholeOf(value);
  if (kind === "X") return whole.toString(16).toUpperCase().padStart(Number(least), "0");
  if (kind === "x") return whole.toString(16).padStart(Number(least), "0");
  const digits = String(whole < 0n ? -whole : whole).padStart(Number(least), "0");
  return (whole < 0n ? "-" : "") + digits;
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

/** Returns the date in a text with a time of day, or null. */
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

/** Returns a date, `ticks` later. */
export function moved({ time, ticks, isUtc }: Moment, by: number): Moment {
  const all = ticks + by;
  const whole = Math.floor(all / ticksPerMillisecond);
  return { time: time + whole, ticks: Math.round(all - whole * ticksPerMillisecond), isUtc };
}

/** Returns the date that is so many ticks after the year 1. */
export function momentOfTicks(all: bigint, isUtc: boolean): Moment {
  const size = BigInt(ticksPerMillisecond);
  return { time: timeMin + Number(all / size), ticks: Number(all % size), isUtc };
}

function ticksBetween(from: Moment, to: Moment): number {
  return (to.time - from.time) * ticksPerMillisecond + (to.ticks - from.ticks);
}

/** Returns the ticks of a text that is a time span, or null. */
function spanOf(value: Value): number | null {
  const ticks = typeof value === "string" ? spanTicks(value) : null;
  return ticks === null ? null : Number(ticks);
}

export function spanText(ticks: number): string {
  return timeSpanText(BigInt(Math.round(ticks)));
}

/** Returns a date in a .NET format, in the invariant culture. */
export function formatDate(moment: Moment, format: string): string {
  if (format === "o" || format === "O") return dateText(moment);
  return dateIn(moment.time, format, moment.ticks, moment.isUtc ? "Z" : "");
}

/**
 * Returns a member of a text that is a date or a time span; undefined if it does not have the member. `DateTime` and
 * `UtcDateTime` also exist for a text without an offset, which a function may have cast to DateTimeOffset.
 */
export function textMember(run: Run, text: string, name: string): Value {
  const member = timeMember(text, name);
  if (typeof member === "bigint") return makeLong(run, member);
  if (typeof member === "number") return isDoubleMember(name) ? makeDouble(run, member) : member;
  if (member !== undefined || (name !== "DateTime" && name !== "UtcDateTime")) return member;
  const moment = dateOf(text);
  return moment === null ? undefined : dateText(moment);
}
