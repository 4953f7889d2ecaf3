/**
 * Bytes of JSON text: their names, their classes, and small operations on them. Knows nothing of documents.
 *
 * Hot: bench/document-text.bench.ts.
 */

declare global {
  interface Buffer<TArrayBuffer extends ArrayBufferLike = ArrayBufferLike> {
    /** One character per byte of `[start, end)`: `toString("latin1")` without its checks. */
    latin1Slice(start?: number, end?: number): string;
    /** As `latin1Slice`, for UTF-8. */
    utf8Slice(start?: number, end?: number): string;
    /** Writes one byte per character: `write(text, at, "latin1")` without its checks. */
    latin1Write(text: string, at?: number): number;
    /** Writes UTF-8: `write(text, at)` without its checks. */
    utf8Write(text: string, at?: number): number;
  }
}

export const byteArrayOpen = 0x5b;
export const byteMinus = 0x2d;
export const byteObjectOpen = 0x7b;
export const byteZero = 0x30;
export const byteArrayClose = 0x5d;
export const byteColon = 0x3a;
export const byteQuote = 0x22;
export const byteComma = 0x2c;
export const byteSlash = 0x2f;
export const byteBackslash = 0x5c;
export const byteObjectClose = 0x7d;

/** Classes of bytes inside a string, the values of `stringByteClasses`; 0 is any other byte. */
const stringQuote = 1;
const stringEscape = 2;
const stringHigh = 3;
const stringControl = 4;

/** Class of each byte inside a string; bytes from 0x80 on are `stringHigh`: text still to be validated. */
export const stringByteClasses = new Uint8Array(256);
stringByteClasses.fill(stringControl, 0, 0x20);
stringByteClasses.fill(stringHigh, 0x80);
stringByteClasses[byteQuote] = stringQuote;
stringByteClasses[byteBackslash] = stringEscape;

/** Below this many bytes a loop is faster than the native copy, which has a fixed cost. */
const copyLoopBytesMax = 40;

/** Copies `source[from, to)` to `target` at `at`; the ranges must not overlap. Cost: O(bytes). */
export function copyBytes(
  target: Buffer,
  at: number,
  source: Uint8Array,
  from: number,
  to: number,
): void {
  if (to - from > copyLoopBytesMax) {
    target.set(source.subarray(from, to), at);
    return;
  }
  let next = at;
  for (let i = from; i < to; i++) target[next++] = source[i] as number;
}

/** As `copyBytes`, for `length` bytes. @returns the position after them in `target` */
export function appendBytes(
  target: Buffer,
  at: number,
  source: Buffer,
  start: number,
  length: number,
): number {
  copyBytes(target, at, source, start, start + length);
  return at + length;
}

/** Returns whether the bytes of `a[aFrom, aFrom + length)` and `b[bFrom, …)` are equal. */
export function bytesEqual(
  a: Uint8Array,
  aFrom: number,
  b: Uint8Array,
  bFrom: number,
  length: number,
): boolean {
  for (let i = 0; i < length; i++) {
    if (a[aFrom + i] !== b[bFrom + i]) return false;
  }
  return true;
}

/** Returns the first position from `at` that is not JSON white space, at most `end`. */
export function skipSpace(bytes: Uint8Array, at: number, end: number): number {
  let i = at;
  while (i < end) {
    const byte = bytes[i] as number;
    // Literals: an exported constant is loaded from its cell each time, see document-parser.ts.
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break;
    i++;
  }
  return i;
}

/** Writes `codePoint` as UTF-8 at `at`; returns the number of bytes. */
export function writeCodePoint(target: Uint8Array, at: number, codePoint: number): number {
  if (codePoint < 0x80) {
    target[at] = codePoint;
    return 1;
  }
  if (codePoint < 0x800) {
    target[at] = 0xc0 | (codePoint >> 6);
    target[at + 1] = 0x80 | (codePoint & 0x3f);
    return 2;
  }
  if (codePoint < 0x10000) {
    target[at] = 0xe0 | (codePoint >> 12);
    target[at + 1] = 0x80 | ((codePoint >> 6) & 0x3f);
    target[at + 2] = 0x80 | (codePoint & 0x3f);
    return 3;
  }
  target[at] = 0xf0 | (codePoint >> 18);
  target[at + 1] = 0x80 | ((codePoint >> 12) & 0x3f);
  target[at + 2] = 0x80 | ((codePoint >> 6) & 0x3f);
  target[at + 3] = 0x80 | (codePoint & 0x3f);
  return 4;
}

/**
 * Length of the well-formed UTF-8 sequence that starts at `at`, a byte from 0x80 on: 2 to 4, or 0 when it is malformed
 * (overlong, a surrogate, above U+10FFFF, a stray byte), or -1 when `end` truncates it.
 */
export function utf8SequenceLength(bytes: Uint8Array, at: number, end: number): number {
  const first = bytes[at] as number;
  let length = 0;
  let secondMin = 0x80;
  let secondMax = 0xbf;
  if (first >= 0xc2 && first <= 0xdf) length = 2;
  else if (first >= 0xe0 && first <= 0xef) {
    length = 3;
    if (first === 0xe0) secondMin = 0xa0;
    if (first === 0xed) secondMax = 0x9f;
  } else if (first >= 0xf0 && first <= 0xf4) {
    length = 4;
    if (first === 0xf0) secondMin = 0x90;
    if (first === 0xf4) secondMax = 0x8f;
  } else return 0;
  for (let k = 1; k < length; k++) {
    if (at + k >= end) return -1;
    const byte = bytes[at + k] as number;
    if (byte < (k === 1 ? secondMin : 0x80) || byte > (k === 1 ? secondMax : 0xbf)) return 0;
  }
  return length;
}
