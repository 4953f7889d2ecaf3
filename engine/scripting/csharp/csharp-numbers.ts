/**
 * The numbers of C# over script values: `long`, `double`, `decimal`, and numbers of a document with their spelling.
 *
 * - A safe integer is a plain number, and so is a fraction of at most 15 digits: neither needs a mark.
 * - Every other number is boxed: a whole double (7.0 / 2 is 3.5), a long beyond 2^53, a decimal that a plain number
 *   would change (`2.50`), and a number of a document whose text a plain number would change (`1.0`, `1e3`).
 *
 * Measured on RavenDB 7.2.7: arithmetic on longs wraps at 64 bits; a decimal has up to 29 digits and keeps its scale
 * (1.50 + 1 is 2.50); a number of a document that is written with a fraction is a decimal combined with other such
 * numbers, a double combined with doubles.
 */
import { EngineError } from "../../base/errors.ts";
import {
  isObject,
  newObject,
  type Run,
  type ScriptObject,
  traitsOf,
  type Value,
} from "../language/script-values.ts";
import { doubleText, numberText, roundTripText } from "../values/value-text.ts";

/** A decimal number: `units` / 10^`scale`. Units are a bigint when they are not a safe integer. */
interface ExactNumber {
  readonly units: number | bigint;
  readonly scale: number;
}

/** Type of a boxed number; a `Spelled` number was read from a document. */
type NumberKind = "Double" | "Decimal" | "Long" | "Spelled";

/** Returns a runtime error of a C# index. */
export function failed(message: string): EngineError {
  return new EngineError("script-failed", message);
}

const longMax = 2n ** 63n - 1n;
const decimalUnitsMax = 2n ** 96n - 1n;
const decimalScaleMax = 28;
/** Digits of a fraction that a plain number certainly keeps. */
const plainDigitsMax = 15;
/** Smaller fractions have an exponent in the text of a double. */
const smallestPlain = 1e-3;
const boxBytes = 96;

// Boxes.

function boxed(value: number, kind: NumberKind, exact: ExactNumber | null): ScriptObject {
  const made = newObject();
  const traits = traitsOf(made);
  traits.className = kind;
  traits.boxed = value;
  traits.exact = exact;
  return made;
}

function isBoxed(value: Value): value is ScriptObject {
  return isObject(value) && value.traits !== null && typeof value.traits.boxed === "number";
}

function kindOf(value: Value): NumberKind | "Integer" | "Fraction" | null {
  if (typeof value === "number") return Number.isInteger(value) ? "Integer" : "Fraction";
  return isBoxed(value) ? (value.className as NumberKind) : null;
}

/** Returns the number that a value is, rounded to a double, or null. */
export function numberIn(value: Value): number | null {
  if (typeof value === "number") return value;
  return isBoxed(value) ? (value.boxed as number) : null;
}

/** Returns whether a value is a long; false if it is not a number. */
export function isLong(value: Value): boolean {
  const kind = kindOf(value);
  return kind === "Integer" || kind === "Long";
}

/** Returns whether a value is a number other than a long. */
export function isDouble(value: Value): boolean {
  return kindOf(value) !== null && !isLong(value);
}

/** Returns whether a value is known to be a decimal; a short fraction may be one too. */
export function isDecimalValue(value: Value): boolean {
  return kindOf(value) === "Decimal";
}

/** Returns whether a value is known to be a double of C#. */
export function isTrueDouble(value: Value): boolean {
  return kindOf(value) === "Double";
}

/** Returns a double of C#. */
export function makeDouble(run: Run, value: number): Value {
  if (!Number.isInteger(value)) return value;
  run.grow(boxBytes);
  return boxed(value, "Double", null);
}

/** Returns a double in the text of an index: a fraction is marked, too, since it differs from a decimal. */
export function doubleLiteral(run: Run, value: number): Value {
  run.grow(boxBytes);
  return boxed(value, "Double", null);
}

/** As `makeDouble`, for the input of a function, which no run is charged for. */
export function inputDouble(value: number): Value {
  return Number.isInteger(value) ? boxed(value, "Double", null) : value;
}

/** Returns an integer of C#, of any size. */
export function makeLong(run: Run, value: number | bigint): Value {
  const number = Number(value);
  if (Number.isSafeInteger(number)) return number + 0;
  run.grow(boxBytes);
  return boxed(number, "Long", { units: BigInt(value), scale: 0 });
}

/** As `makeLong`, for the input of a function. */
export function inputLong(digits: string): Value {
  const number = Number(digits);
  if (Number.isSafeInteger(number)) return number;
  return boxed(number, "Long", { units: BigInt(digits), scale: 0 });
}

/** Returns a decimal of C#. @throws EngineError script-failed when it is out of range */
export function makeDecimal(run: Run, value: ExactNumber): Value {
  const { units, scale } = limited(value);
  const number = approximate(units, scale);
  const isShort = scale > 0 && typeof units === "number" && Math.abs(units) < 1e15;
  if (isShort && units % 10 !== 0 && Math.abs(number) >= smallestPlain) return number;
  run.grow(boxBytes);
  return boxed(number, "Decimal", { units, scale });
}

/** Returns a number as a decimal; a double has 15 digits. */
export function toDecimal(run: Run, value: Value): Value {
  if (typeof value === "number" && !Number.isInteger(value)) return value;
  const exact =
    exactOf(value) ?? exactOfText(String(Number((numberIn(value) ?? 0).toPrecision(15))));
  if (exact === null) throw outOfRange("a Decimal");
  return makeDecimal(run, exact);
}

/** Returns a decimal or a number of a document, negated. */
export function negated(run: Run, value: Value): Value {
  const { units, scale } = exactOf(value) ?? { units: 0, scale: 0 };
  return makeDecimal(run, { units: -units, scale });
}

/** Returns a number of a document: `value` with its original text. */
export function spelledNumber(run: Run, value: number, text: string): Value {
  const exact = exactOfText(text);
  if (exact !== null && exact.scale === 0 && isDigits(text)) {
    const whole = BigInt(exact.units);
    if (whole <= longMax && whole >= -longMax) return makeLong(run, whole);
  }
  if (!Number.isInteger(value) && roundTripText(value) === text) return value;
  run.grow(boxBytes + text.length);
  const made = boxed(value, "Spelled", exact);
  traitsOf(made).spelling = text;
  return made;
}

function isDigits(text: string): boolean {
  return /^-?\d+$/.test(text);
}

/** Returns the number in the digits of a literal. @throws EngineError script-failed */
export function literalNumber(run: Run, text: string, isDecimal: boolean): Value {
  const exact = exactOfText(text);
  if (exact === null) throw outOfRange("Decimal");
  return isDecimal ? makeDecimal(run, exact) : makeLong(run, exact.units);
}

/** Returns the number in decimal digits, with a point or an exponent; null when it is out of the range of decimals. */
export function exactOfText(text: string): ExactNumber | null {
  const match = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/.exec(text);
  if (match === null) return null;
  const [, sign = "", whole = "", fraction = "", power = "0"] = match;
  const exponent = Number(power);
  if (Math.abs(exponent) > 60 || whole.length + fraction.length > 400) return null;
  const digits = `${whole}${fraction}${"0".repeat(Math.max(0, exponent - fraction.length))}`;
  const units = digits.length <= plainDigitsMax ? Number(digits) : BigInt(digits);
  const scale = Math.max(0, fraction.length - exponent);
  return { units: sign === "-" ? -units : units, scale };
}

/** Returns the exact value of a number; null for doubles. */
function exactOf(value: Value): ExactNumber | null {
  if (typeof value !== "number") return isBoxed(value) ? (value.traits?.exact ?? null) : null;
  if (Number.isInteger(value)) return { units: value, scale: 0 };
  return exactOfText(String(value));
}

/** Returns the integer that a long is; of other numbers, the whole part of the double. */
export function wholeOf(value: Value): bigint {
  const exact = isLong(value) ? exactOf(value) : null;
  if (exact !== null) return BigInt(exact.units);
  const number = numberIn(value) ?? 0;
  if (Number.isNaN(number)) return 0n;
  if (Math.abs(number) >= 2 ** 63) return number > 0 ? longMax : -longMax - 1n;
  return BigInt(Math.trunc(number));
}

// Decimals.

function outOfRange(type: string): EngineError {
  return failed(`System.OverflowException: Value was either too large or too small for ${type}.`);
}

function powerOf(exponent: number): bigint {
  return 10n ** BigInt(exponent);
}

function approximate(units: number | bigint, scale: number): number {
  if (scale === 0) return Number(units);
  if (typeof units === "number" && scale <= 22) return units / 10 ** scale;
  return Number(`${units}e-${scale}`);
}

/** Divides, and rounds half to even. */
function roundedQuotient(units: bigint, divisor: bigint): bigint {
  const quotient = units / divisor;
  const twice = 2n * (units % divisor);
  const size = twice < 0n ? -twice : twice;
  const by = divisor < 0n ? -divisor : divisor;
  const isUp = size > by || (size === by && quotient % 2n !== 0n);
  if (!isUp) return quotient;
  return units < 0n === divisor < 0n ? quotient + 1n : quotient - 1n;
}

/** Returns a decimal of at most 96 bits and 28 fraction digits. */
function limited(value: ExactNumber): ExactNumber {
  if (typeof value.units === "number" && value.scale <= decimalScaleMax) return value;
  const all = BigInt(value.units);
  let scale = Math.min(value.scale, decimalScaleMax);
  for (; ; scale--) {
    if (scale < 0) throw outOfRange("a Decimal");
    const dropped = value.scale - scale;
    const units = dropped === 0 ? all : roundedQuotient(all, powerOf(dropped));
    if (units <= decimalUnitsMax && units >= -decimalUnitsMax)
      return { units: plain(units), scale };
  }
}

function plain(units: bigint): number | bigint {
  const number = Number(units);
  return Number.isSafeInteger(number) ? number : units;
}

/** Returns both units at the larger scale. */
function aligned(left: ExactNumber, right: ExactNumber): [number | bigint, number | bigint] {
  const scale = Math.max(left.scale, right.scale);
  const first = scaledUp(left.units, scale - left.scale);
  const second = scaledUp(right.units, scale - right.scale);
  if (typeof first === typeof second) return [first, second];
  return [BigInt(first), BigInt(second)];
}

function scaledUp(units: number | bigint, by: number): number | bigint {
  if (by === 0) return units;
  const number = typeof units === "number" && by < 16 ? units * 10 ** by : Number.NaN;
  return Number.isSafeInteger(number) ? number : BigInt(units) * powerOf(by);
}

function decimalSum(left: ExactNumber, right: ExactNumber, sign: 1 | -1): ExactNumber {
  const scale = Math.max(left.scale, right.scale);
  const [first, second] = aligned(left, right);
  const sum = Number(first) + sign * Number(second);
  if (typeof first === "number" && Number.isSafeInteger(sum)) return { units: sum + 0, scale };
  return { units: plain(BigInt(first) + BigInt(sign) * BigInt(second)), scale };
}

function decimalProduct(left: ExactNumber, right: ExactNumber): ExactNumber {
  const scale = left.scale + right.scale;
  const product = Number(left.units) * Number(right.units);
  if (Number.isSafeInteger(product)) return { units: product + 0, scale };
  return { units: BigInt(left.units) * BigInt(right.units), scale };
}

/** As .NET divides: as few digits as are exact, but no fewer than the scales demand. */
function decimalQuotient(left: ExactNumber, right: ExactNumber): ExactNumber {
  const divisor = BigInt(right.units);
  const scale = Math.max(0, left.scale - right.scale);
  const quotientAt = (at: number): ExactNumber => {
    const shift = at - left.scale + right.scale;
    const units = BigInt(left.units) * powerOf(Math.max(0, shift));
    return {
      units: roundedQuotient(units, divisor * powerOf(Math.max(0, -shift))),
      scale: at,
    };
  };
  let found = limited(quotientAt(decimalScaleMax + 1));
  // Only the digits that fit are rounded, and once.
  found = quotientAt(found.scale);
  let units = BigInt(found.units);
  let at = found.scale;
  for (; at > scale && units % 10n === 0n; at--) units /= 10n;
  return { units: plain(units), scale: at };
}

function decimalRemainder(left: ExactNumber, right: ExactNumber): ExactNumber {
  const [first, second] = aligned(left, right);
  return {
    units: plain(BigInt(first) % BigInt(second)),
    scale: Math.max(left.scale, right.scale),
  };
}

/** `-1.50` */
export function decimalText({ units, scale }: ExactNumber): string {
  if (scale === 0) return String(units);
  const isNegative = units < 0;
  const digits = String(isNegative ? -units : units).padStart(scale + 1, "0");
  const at = digits.length - scale;
  return `${isNegative ? "-" : ""}${digits.slice(0, at)}.${digits.slice(at)}`;
}

/** Rounds to fewer fraction digits. */
function withScale(value: ExactNumber, scale: number, round: Rounding): ExactNumber {
  if (value.scale <= scale) return value;
  const divisor = powerOf(value.scale - scale);
  return { units: plain(round(BigInt(value.units), divisor)), scale };
}

type Rounding = (units: bigint, divisor: bigint) => bigint;

function floored(units: bigint, divisor: bigint): bigint {
  return (units - (((units % divisor) + divisor) % divisor)) / divisor;
}

/** How a decimal becomes one with fewer digits. */
export const roundings = {
  toEven: roundedQuotient,
  truncate: (units, divisor) => units / divisor,
  floor: floored,
  ceiling: (units, divisor) => -floored(-units, divisor),
  awayFromZero: (units, divisor) => {
    const half = units < 0n ? -divisor / 2n : divisor / 2n;
    return (units + half) / divisor;
  },
} satisfies Record<string, Rounding>;

/** Returns a decimal or long rounded to `digits` fraction digits; null for a double or a short fraction. */
export function roundedDecimal(
  run: Run,
  value: Value,
  digits: number,
  rounding: keyof typeof roundings,
): Value | null {
  if (isLong(value)) return value;
  const exact = typeof value === "number" ? null : exactOf(value);
  if (exact === null) return null;
  return makeDecimal(run, withScale(exact, digits, roundings[rounding]));
}

// Arithmetic.

export type Operator = "+" | "-" | "*" | "/" | "%";

/** Returns the result of an operator; null when an operand is no number. The right operand of a division is not 0. */
export function computed(run: Run, left: Value, right: Value, operator: Operator): Value | null {
  if (typeof left === "number" && typeof right === "number") {
    if (Number.isInteger(left) && Number.isInteger(right)) {
      const result = numeric(left, right, operator);
      if (operator === "/") return Math.trunc(result) + 0;
      if (Number.isSafeInteger(result)) return result + 0;
      return wrapped(run, BigInt(left), BigInt(right), operator);
    }
    return makeDouble(run, shortened(left, right, operator));
  }
  const [first, second] = [kindOf(left), kindOf(right)];
  if (first === null || second === null) return null;
  if (isLong(right) && isLongBeside(left, operator)) {
    return wrapped(run, wholeOf(left), wholeOf(right), operator);
  }
  const [exact, other] = [exactOf(left), exactOf(right)];
  if (exact === null || other === null) {
    return makeDouble(run, numeric(numberIn(left) as number, numberIn(right) as number, operator));
  }
  return makeDecimal(run, decimal(exact, other, operator));
}

/** As `computed`, as a decimal: longs do not wrap. */
export function computedDecimal(
  run: Run,
  left: Value,
  right: Value,
  operator: Operator,
): Value | null {
  if (!isLong(left) || !isLong(right)) return computed(run, left, right, operator);
  const [exact, other] = [exactOf(left) as ExactNumber, exactOf(right) as ExactNumber];
  return makeDecimal(run, decimal(exact, other, operator));
}

/** Returns a long, or a whole number of a document, which is one beside a long. (A quotient keeps its fraction.) */
function isLongBeside(value: Value, operator: Operator): boolean {
  if (isLong(value)) return true;
  return operator !== "/" && kindOf(value) === "Spelled" && Number.isInteger(numberIn(value));
}

function numeric(left: number, right: number, operator: Operator): number {
  switch (operator) {
    case "+":
      return left + right;
    case "-":
      return left - right;
    case "*":
      return left * right;
    case "/":
      return left / right;
    case "%":
      return left % right;
  }
}

function wrapped(run: Run, left: bigint, right: bigint, operator: Operator): Value {
  return makeLong(run, BigInt.asIntN(64, whole(left, right, operator)));
}

function whole(left: bigint, right: bigint, operator: Operator): bigint {
  switch (operator) {
    case "+":
      return left + right;
    case "-":
      return left - right;
    case "*":
      return left * right;
    case "/":
      return left / right;
    case "%":
      return left % right;
  }
}

function decimal(left: ExactNumber, right: ExactNumber, operator: Operator): ExactNumber {
  switch (operator) {
    case "+":
      return decimalSum(left, right, 1);
    case "-":
      return decimalSum(left, right, -1);
    case "*":
      return decimalProduct(left, right);
    case "/":
      return decimalQuotient(left, right);
    case "%":
      return decimalRemainder(left, right);
  }
}

/** Fraction digits of a number; -1 when it is too large or too small for this to matter. */
function scaleOf(value: number): number {
  if (Number.isInteger(value)) return 0;
  const text = String(value);
  const point = text.indexOf(".");
  return point < 0 || text.includes("e") ? -1 : text.length - point - 1;
}

/** Returns the result of plain numbers, rounded to the digits that decimals would have: 0.1 + 0.2 is 0.3. */
function shortened(left: number, right: number, operator: Operator): number {
  const result = numeric(left, right, operator);
  if (operator === "/" || operator === "%") return result;
  const [first, second] = [scaleOf(left), scaleOf(right)];
  if (first < 0 || second < 0) return result;
  const scale = operator === "*" ? first + second : Math.max(first, second);
  const isRounded = scale > 0 && scale <= plainDigitsMax && Math.abs(result) < 1e15;
  return isRounded ? Number(result.toFixed(scale)) : result;
}

// Comparisons and texts.

/**
 * Compares two numbers: returns a negative number, 0 or a positive number; NaN if one of them is NaN. Both must be
 * numbers. If one is a double, both are compared as doubles.
 */
export function comparedNumbers(left: Value, right: Value): number {
  const isOfDoubles = isTrueDouble(left) || isTrueDouble(right);
  if (isOfDoubles || (typeof left === "number" && typeof right === "number")) {
    const [first, second] = [numberIn(left) as number, numberIn(right) as number];
    return first === second ? 0 : first - second;
  }
  // A number of a document is a double beside a long.
  if (isLong(left)) return comparedLong(left, right);
  if (isLong(right)) return -comparedLong(right, left);
  const [exact, other] = [exactOf(left), exactOf(right)];
  if (exact === null || other === null)
    return (numberIn(left) as number) - (numberIn(right) as number);
  const [first, second] = aligned(exact, other);
  return first < second ? -1 : first > second ? 1 : 0;
}

function comparedLong(left: Value, right: Value): number {
  const whole = wholeOf(left);
  const other = isLong(right) ? wholeOf(right) : (numberIn(right) as number);
  return whole < other ? -1 : whole > other ? 1 : 0;
}

/** Returns a text that is equal for equal numbers. */
export function numberKey(value: Value): string {
  const exact = typeof value === "number" ? null : exactOf(value);
  if (exact === null) return String(numberIn(value));
  const text = decimalText(exact);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** Returns the result of `ToString()` of a number. */
export function plainNumberText(value: Value): string {
  if (typeof value === "number") {
    return Number.isInteger(value) ? numberText(value) : roundTripText(value);
  }
  const { traits } = value as ScriptObject; // a boxed number
  if (traits?.spelling) return traits.spelling;
  const exact = exactOf(value);
  return exact === null ? roundTripText(numberIn(value) as number) : decimalText(exact);
}

/** Returns a number in the JSON text of an output. */
export function jsonNumberText(value: Value): string {
  const kind = kindOf(value);
  if (kind === "Double") return doubleText(numberIn(value) as number);
  const text = plainNumberText(value);
  return kind === "Decimal" && !text.includes(".") ? wholeDecimalText(BigInt(text)) : text;
}

/** Returns a decimal without a fraction in the JSON text of an output: beyond 64 bits it is written as a double. */
export function wholeDecimalText(units: number | bigint): string {
  return units > longMax || units < -longMax - 1n ? `${units}.0` : `${units}`;
}

/** Returns a number as the value of a field: a whole double is written as an integer. */
export function fieldNumberText(value: Value): string {
  const kind = kindOf(value);
  if (kind === "Double") {
    const number = numberIn(value) as number;
    const text = Math.abs(number) < 1e17 ? numberText(number) : roundTripText(number);
    return text.replace("E", "e");
  }
  const text = plainNumberText(value);
  const isCut = kind === "Spelled" && text.includes(".") && !/[eE]/.test(text);
  return isCut ? text.replace(/\.?0+$/, "") : text;
}
