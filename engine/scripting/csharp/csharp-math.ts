/**
 * The functions of numbers that C# indexes call: casts, parsing, `Math`, and the operators of bits.
 *
 * Measured on RavenDB 7.2.7: a cast to an integer keeps the low bits of a long and limits a double to the range; `Math`
 * is exact for longs and decimals.
 */
import { EngineError } from "../../base/errors.ts";
import type { Native, Run, Value } from "../language/script-values.ts";
import {
  doubleLiteral,
  exactOfText,
  failed,
  isDouble,
  isLong,
  isTrueDouble,
  literalNumber,
  makeDecimal,
  makeDouble,
  makeLong,
  negated,
  numberIn,
  roundedDecimal,
  type roundings,
  toDecimal,
  wholeOf,
} from "./csharp-numbers.ts";
import { compare, isMissing, textOf, typeName } from "./csharp-values.ts";

// Casts and conversions.

function badCast(value: Value, type: string): EngineError {
  return failed(`Cannot convert type '${typeName(value)}' to '${type}'`);
}

/** Returns the low bits of an integer: `bits` negative for an unsigned type. */
function integer(run: Run, _self: Value, [value, isNullable, bits]: Value[]): Value {
  if (isMissing(value)) return isNullable === true ? null : 0;
  const number = numberIn(value);
  if (number === null) throw badCast(value, "int");
  const width = (bits ?? 64) as number;
  if (Number.isInteger(number) && number >= 0 && number < 128) return number;
  const whole = wholeOf(value);
  return makeLong(run, width < 0 ? BigInt.asUintN(-width, whole) : BigInt.asIntN(width, whole));
}

function castDouble(run: Run, _self: Value, [value, isNullable]: Value[]): Value {
  if (isMissing(value)) return isNullable === true ? null : Number.NaN;
  const number = value === "NaN" ? Number.NaN : numberIn(value);
  if (number === null) throw badCast(value, "double");
  return makeDouble(run, number);
}

function castDecimal(run: Run, _self: Value, [value, isNullable]: Value[]): Value {
  if (isMissing(value)) return isNullable === true ? null : toDecimal(run, 0);
  if (numberIn(value) === null) throw badCast(value, "decimal");
  return toDecimal(run, value);
}

/** Returns the digits of a number in a text, without groups; null if the text is not a number. */
function digitsIn(value: string): string | null {
  const text = value.trim().replaceAll(",", "");
  return /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(text) ? text : null;
}

function badNumber(value: Value): never {
  throw failed(
    `System.FormatException: The input string '${textOf(value).slice(0, 100)}' was not in a correct format.`,
  );
}

function parseInteger(run: Run, _self: Value, [value]: Value[]): Value {
  const digits = typeof value === "string" ? digitsIn(value) : null;
  const exact = digits === null ? null : exactOfText(digits);
  if (exact !== null && exact.scale === 0) return makeLong(run, exact.units);
  if (isLong(value)) return value;
  const number = digits === null ? numberIn(value) : Number(digits);
  return number === null || !Number.isInteger(number) ? badNumber(value) : makeLong(run, number);
}

function parseDouble(run: Run, _self: Value, [value]: Value[]): Value {
  if (isMissing(value)) return 0;
  const digits = typeof value === "string" ? digitsIn(value) : null;
  const number = digits === null ? numberIn(value) : Number(digits);
  return number === null ? badNumber(value) : makeDouble(run, number);
}

function parseDecimal(run: Run, _self: Value, [value]: Value[]): Value {
  if (isMissing(value)) return 0;
  if (typeof value !== "string") {
    return numberIn(value) === null ? badNumber(value) : toDecimal(run, value);
  }
  const digits = digitsIn(value);
  const exact = digits === null ? null : exactOfText(digits);
  return exact === null ? badNumber(value) : makeDecimal(run, exact);
}

/** `Convert.ToInt32`: rounds half to even. */
function roundInteger(run: Run, self: Value, [value]: Value[]): Value {
  if (isMissing(value)) return 0;
  if (typeof value === "boolean") return Number(value);
  if (isLong(value)) return value;
  const number = numberIn(value);
  if (number !== null) return makeLong(run, roundEven(number));
  const found = numberIn(parseDouble(run, self, [value])) as number; // it throws for texts without a number
  return Number.isSafeInteger(found) || !Number.isInteger(found)
    ? makeLong(run, roundEven(found))
    : parseInteger(run, self, [value]);
}

function roundEven(value: number): number {
  const floor = Math.floor(value);
  if (value - floor !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}

/** Returns the number in a text, else null: `int.TryParse`. */
export function tried(parse: Native): Native {
  return (run, self, args) => {
    try {
      return isMissing(args[0]) ? null : parse(run, self, args);
    } catch (error) {
      if (error instanceof EngineError && error.code === "script-failed") return null;
      throw error;
    }
  };
}

// Math.

function notNumber(value: Value): EngineError {
  return failed(`'${typeName(value)}' is no number`);
}

/** Returns a function that rounds numbers to integers; `rounding`: its mode for decimals. */
function wholeFunction(work: (value: number) => number, rounding: keyof typeof roundings): Native {
  return (run, _self, [value]) => {
    if (isMissing(value)) return undefined;
    const number = numberIn(value);
    if (number === null) throw notNumber(value);
    return roundedDecimal(run, value, 0, rounding) ?? makeDouble(run, work(number) + 0);
  };
}

function absolute(run: Run, _self: Value, [value]: Value[]): Value {
  if (isMissing(value)) return undefined;
  const number = numberIn(value);
  if (number === null) throw notNumber(value);
  if (number >= 0) return value;
  if (typeof value === "number") return -value;
  if (!isLong(value)) return isTrueDouble(value) ? makeDouble(run, -number) : negated(run, value);
  if (wholeOf(value) === -(2n ** 63n)) {
    throw failed(
      "System.OverflowException: Negating the minimum value of a twos complement number is invalid.",
    );
  }
  return makeLong(run, -wholeOf(value));
}

function round(run: Run, _self: Value, [value, ...options]: Value[]): Value {
  if (isMissing(value)) return undefined;
  const number = numberIn(value);
  if (number === null) throw notNumber(value);
  const digits = options.map(numberIn).find((one) => one !== null) ?? 0;
  const isAway = options.includes("AwayFromZero");
  const exact = roundedDecimal(run, value, digits, isAway ? "awayFromZero" : "toEven");
  if (exact !== null) return exact;
  const factor = 10 ** digits;
  if (Math.abs(number * factor) >= 2 ** 52) return makeDouble(run, number);
  const scaled = Number((number * factor).toPrecision(15));
  const rounded = isAway ? Math.sign(scaled) * Math.round(Math.abs(scaled)) : roundEven(scaled);
  return makeDouble(run, rounded / factor);
}

/** `Math.Max` for `sign` 1, `Math.Min` for -1. */
function extremeOfTwo(sign: number): Native {
  return (run, _self, [left, right]) => {
    if (isMissing(left)) return right;
    if (isMissing(right)) return left;
    if (numberIn(left) === null || numberIn(right) === null) throw failed("Math needs two numbers");
    const found = (compare(run, left, right) ?? 0) * sign < 0 ? right : left;
    const isOfDoubles = isDouble(left) || isDouble(right);
    return isOfDoubles && isLong(found) ? makeDouble(run, numberIn(found) as number) : found;
  };
}

function clamp(run: Run, _self: Value, [value, least, most]: Value[]): Value {
  if (isMissing(value)) return undefined;
  if ([value, least, most].some((one) => numberIn(one) === null)) {
    throw failed("Math.Clamp needs three numbers");
  }
  const isAbove = (left: Value, right: Value) => (compare(run, left, right) ?? 0) > 0;
  if (isAbove(least, most)) {
    throw failed(
      `System.ArgumentException: '${textOf(least)}' cannot be greater than ${textOf(most)}.`,
    );
  }
  return isAbove(least, value) ? least : isAbove(value, most) ? most : value;
}

function doubleFunction(work: (value: number) => number): Native {
  return (run, _self, [value]) =>
    isMissing(value) ? undefined : makeDouble(run, work(numberIn(value) ?? Number.NaN));
}

// Bits.

/** Returns an operator of integers, truth values and names of options. */
function bitwise(work: (left: bigint, right: bigint) => bigint): Native {
  return (run, _self, [left, right]) => {
    if (isMissing(left) || isMissing(right)) return undefined;
    if (typeof left === "string" && typeof right === "string") return `${left}, ${right}`;
    if (typeof left === "boolean" && typeof right === "boolean") {
      return work(BigInt(left), BigInt(right)) !== 0n;
    }
    if (!Number.isInteger(numberIn(left)) || !Number.isInteger(numberIn(right))) {
      throw failed(
        `The operator cannot be applied to operands of type '${typeName(left)}' and '${typeName(right)}'`,
      );
    }
    return makeLong(run, BigInt.asIntN(64, work(wholeOf(left), wholeOf(right))));
  };
}

function complement(run: Run, _self: Value, [value]: Value[]): Value {
  if (isMissing(value)) return -1;
  if (!Number.isInteger(numberIn(value))) throw failed("The operator '~' needs an integer");
  return makeLong(run, ~wholeOf(value));
}

/** By name without `cs`. */
export const mathFunctions: Readonly<Record<string, Native>> = {
  Double: (run, _self, [value]) => doubleLiteral(run, value as number),
  Literal: (run, _self, [digits, isDecimal]) =>
    literalNumber(run, digits as string, isDecimal === true),
  Integer: integer,
  ToDouble: castDouble,
  ToDecimal: castDecimal,
  ParseInteger: parseInteger,
  ParseDouble: parseDouble,
  ParseDecimal: parseDecimal,
  RoundInteger: roundInteger,
  TryInteger: tried(parseInteger),
  TryDouble: tried(parseDouble),
  TryDecimal: tried(parseDecimal),
  BitAnd: bitwise((a, b) => a & b),
  BitOr: bitwise((a, b) => a | b),
  BitXor: bitwise((a, b) => a ^ b),
  ShiftLeft: bitwise((a, b) => a << (b & 63n)),
  Complement: complement,
  MathAbs: absolute,
  ...Object.fromEntries(
    (["Acos", "Asin", "Atan", "Cos", "Exp", "Log10", "Sin", "Tan"] as const).map((name) => [
      `Math${name}`,
      doubleFunction(Math[name.toLowerCase() as "cos"]),
    ]),
  ),
  MathAtan2: (run, _self, [y, x]) =>
    makeDouble(run, Math.atan2(numberIn(y) ?? Number.NaN, numberIn(x) ?? Number.NaN)),
  MathLog: (run, _self, [value, base]) => {
    const found = Math.log(numberIn(value) ?? Number.NaN);
    const by = base === undefined ? 1 : Math.log(numberIn(base) ?? Number.NaN);
    return makeDouble(run, found / by);
  },
  MathClamp: clamp,
  MathCeiling: wholeFunction(Math.ceil, "ceiling"),
  MathFloor: wholeFunction(Math.floor, "floor"),
  MathTruncate: wholeFunction(Math.trunc, "truncate"),
  MathSign: (_run, _self, [value]) => Math.sign(numberIn(value) ?? 0) + 0,
  MathSqrt: (run, _self, [value]) => makeDouble(run, Math.sqrt(numberIn(value) ?? Number.NaN)),
  MathPow: (run, _self, [base, power]) =>
    makeDouble(run, (numberIn(base) ?? Number.NaN) ** (numberIn(power) ?? Number.NaN)),
  MathMax: extremeOfTwo(1),
  MathMin: extremeOfTwo(-1),
  MathRound: round,
};
