/**
 * Finds values inside JSON text without parsing it, and converts them to JavaScript values one at a time. The text must
 * be output of the parser: valid and minified, with the values inside an object or array. Knows nothing of records.
 *
 * Hot: bench/document-text.bench.ts.
 *
 * A span is the start and the end (exclusive) of one value in a buffer. `ValueSpan` is a mutable cursor, created once
 * and reused, so that a lookup allocates nothing.
 */
import { InvariantError } from "../assert.ts";

// Declared here, not imported: V8 folds a module's own constants into the code, but loads an imported
// (or exported) one from its cell each time, which made this file 2.5 times slower.
const byteArrayClose = 0x5d;
const byteArrayOpen = 0x5b;
const byteBackslash = 0x5c;
const byteComma = 0x2c;
const byteMinus = 0x2d;
const byteNine = 0x39;
const byteObjectClose = 0x7d;
const byteObjectOpen = 0x7b;
const byteQuote = 0x22;
const byteZero = 0x30;

/** Any JSON value. */
export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

/** The type of a value, by its first byte. */
export type ValueKind = "null" | "boolean" | "number" | "string" | "array" | "object";

/** The span of a value in some text; `from` is -1 if there is no value. */
export class ValueSpan {
  from = -1;
  to = -1;
}

/** Returns the position after the string whose opening quote is at `at`. */
export function skipString(bytes: Uint8Array, at: number): number {
  const length = bytes.length;
  let i = at + 1;
  while (i < length) {
    const byte = bytes[i] as number;
    if (byte === byteQuote) return i + 1;
    i += byte === byteBackslash ? 2 : 1;
  }
  return unreachableEnd();
}

/** Called when text that was checked when stored is damaged, or a span is wrong. */
function unreachableEnd(): never {
  throw new InvariantError("a stored value ends inside its buffer");
}

/** Returns the position after the value that begins at `at`. */
export function skipValue(bytes: Uint8Array, at: number): number {
  const first = bytes[at] as number;
  if (first === byteQuote) return skipString(bytes, at);
  let i = at + 1;
  if (first === byteObjectOpen || first === byteArrayOpen) {
    const length = bytes.length;
    let depth = 1;
    while (depth > 0) {
      if (i >= length) return unreachableEnd();
      const byte = bytes[i] as number;
      if (byte === byteQuote) {
        i = skipString(bytes, i);
        continue;
      }
      if (byte === byteObjectOpen || byte === byteArrayOpen) depth++;
      else if (byte === byteObjectClose || byte === byteArrayClose) depth--;
      i++;
    }
    return i;
  }
  const length = bytes.length;
  while (i < length) {
    const byte = bytes[i] as number;
    if (byte === byteComma || byte === byteObjectClose || byte === byteArrayClose) break;
    i++;
  }
  return i;
}

/** Returns the type of the value that begins at `at`. */
export function valueKind(bytes: Uint8Array, at: number): ValueKind {
  switch (bytes[at]) {
    case byteQuote:
      return "string";
    case byteObjectOpen:
      return "object";
    case byteArrayOpen:
      return "array";
    case 0x74:
    case 0x66:
      return "boolean";
    case 0x6e:
      return "null";
    default:
      return "number";
  }
}

/**
 * Finds a member of the object that begins at `at`.
 * @param name the key as in the text, with its quotes (`quoteString`).
 * @returns whether `found` was set to the member's value. Also false when there is no object at `at`.
 */
export function findMember(
  bytes: Uint8Array,
  at: number,
  name: Uint8Array,
  found: ValueSpan,
): boolean {
  found.from = -1;
  if (bytes[at] !== byteObjectOpen) return false;
  const length = name.length;
  let i = at + 1;
  while (bytes[i] === byteQuote) {
    let k = 1;
    while (k < length && bytes[i + k] === name[k]) k++;
    const isFound = k === length;
    // Equal up to the closing quote of `name`: only the same key has it in this place.
    i = (isFound ? i + length : skipString(bytes, i)) + 1;
    const end = skipValue(bytes, i);
    if (isFound) {
      found.from = i;
      found.to = end;
      return true;
    }
    i = end + 1;
  }
  return false;
}

/** Returns the start of the first element in the array that begins at `at`, or -1 when it is empty. */
export function firstElement(bytes: Uint8Array, at: number): number {
  return bytes[at + 1] === byteArrayClose ? -1 : at + 1;
}

/** Returns the start of the element after the one that ends at `to`; -1 after the last element. */
export function nextElement(bytes: Uint8Array, to: number): number {
  return bytes[to] === byteComma ? to + 1 : -1;
}

/** Returns the text of the string value `[from, to)`, whose span includes the quotes. */
export function decodeString(bytes: Buffer, from: number, to: number): string {
  let isAscii = true;
  for (let i = from + 1; i < to - 1; i++) {
    const byte = bytes[i] as number;
    if (byte === byteBackslash) return JSON.parse(bytes.utf8Slice(from, to)) as string;
    if (byte >= 0x80) isAscii = false;
  }
  return isAscii ? bytes.latin1Slice(from + 1, to - 1) : bytes.utf8Slice(from + 1, to - 1);
}

/** Number of decimal digits that a double always represents exactly. */
const exactDigitsMax = 15;

/** Returns the value of the number `[from, to)` as the nearest double. */
export function decodeNumber(bytes: Buffer, from: number, to: number): number {
  const isNegative = bytes[from] === byteMinus;
  let i = isNegative ? from + 1 : from;
  if (to - i > exactDigitsMax) return Number(bytes.latin1Slice(from, to));
  let value = 0;
  for (; i < to; i++) {
    const byte = bytes[i] as number;
    if (byte < byteZero || byte > byteNine) return decodeFraction(bytes, from, i, to, value);
    value = value * 10 + byte - byteZero;
  }
  return isNegative ? -value : value;
}

const powersOfTen = Array.from({ length: exactDigitsMax + 1 }, (_, power) => 10 ** power);

/**
 * Returns the number whose integer digits `[from, dot)` are `whole`: a quotient of two exact doubles, so correctly
 * rounded.
 */
function decodeFraction(
  bytes: Buffer,
  from: number,
  dot: number,
  to: number,
  whole: number,
): number {
  let value = whole;
  let i = dot;
  if (bytes[i] === 0x2e) i++;
  for (; i < to; i++) {
    const byte = bytes[i] as number;
    if (byte < byteZero || byte > byteNine) return Number(bytes.latin1Slice(from, to));
    value = value * 10 + byte - byteZero;
  }
  const quotient = value / (powersOfTen[to - dot - 1] as number);
  return bytes[from] === byteMinus ? -quotient : quotient;
}

/** Returns the value `[from, to)` as a JavaScript value. Numbers are the nearest doubles. Cost: `JSON.parse`. */
export function readValue(bytes: Buffer, from: number, to: number): JsonValue {
  switch (bytes[from]) {
    case byteQuote:
      return decodeString(bytes, from, to);
    case 0x74:
      return true;
    case 0x66:
      return false;
    case 0x6e:
      return null;
    case byteObjectOpen:
    case byteArrayOpen:
      return JSON.parse(bytes.utf8Slice(from, to)) as JsonValue;
    default:
      return decodeNumber(bytes, from, to);
  }
}
