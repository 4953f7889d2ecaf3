/**
 * Escapes in JSON strings: converts any spelling to the stored one. Knows nothing of values or documents.
 *
 * Stored text escapes only the necessary characters: `"`, `\` and the control characters U+0000 to U+001F, as `\b \t \n
 * \f \r` or `\u001F` with upper-case digits (RavenDB 7.2.7 prints the same). Everything else is UTF-8. Half a surrogate
 * pair is not a character: it becomes U+FFFD.
 */
import { byteBackslash, byteQuote, byteSlash, writeCodePoint } from "./bytes.ts";

const letterU = 0x75;
const shortEscapes = new Map([
  [0x08, 0x62],
  [0x09, 0x74],
  [0x0a, 0x6e],
  [0x0c, 0x66],
  [0x0d, 0x72],
]);
const upperHexDigits = Buffer.from("0123456789ABCDEF", "latin1");

/** Results of `hexQuad` and `rewriteEscape` for an invalid escape. */
export const escapeUnknown = -1;
export const escapeCut = -2;
const escapeHexInvalid = -3;

/** Value of a hexadecimal digit, or -1. */
function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** Returns the four hexadecimal digits at `at` as a number, or `escapeCut`, or `escapeHexInvalid`. */
function hexQuad(bytes: Uint8Array, at: number, end: number): number {
  let value = 0;
  for (let i = at; i < at + 4; i++) {
    if (i >= end) return escapeCut;
    const digit = hexDigit(bytes[i] as number);
    if (digit < 0) return escapeHexInvalid;
    value = value * 16 + digit;
  }
  return value;
}

/**
 * Writes a character in its form inside a stored string.
 * @returns the bytes written, 1 to 6.
 */
export function writeStringCharacter(target: Uint8Array, at: number, codePoint: number): number {
  if (codePoint === byteQuote || codePoint === byteBackslash) {
    target[at] = byteBackslash;
    target[at + 1] = codePoint;
    return 2;
  }
  if (codePoint >= 0x20) return writeCodePoint(target, at, codePoint);
  target[at] = byteBackslash;
  const short = shortEscapes.get(codePoint);
  if (short !== undefined) {
    target[at + 1] = short;
    return 2;
  }
  target[at + 1] = letterU;
  target[at + 2] = 0x30;
  target[at + 3] = 0x30;
  target[at + 4] = upperHexDigits[codePoint >> 4] as number;
  target[at + 5] = upperHexDigits[codePoint & 15] as number;
  return 6;
}

/**
 * Reads the escape whose backslash is at `at`, before `end`, and writes its stored form to `target`
 * at `targetAt`, which must have room for as many bytes as are read.
 * @returns bytes read * 8 + bytes written, or a negative number: `escapeUnknown` for a letter that
 *   cannot be escaped, `escapeCut`, `escapeHexInvalid`.
 */
export function rewriteEscape(
  bytes: Uint8Array,
  at: number,
  end: number,
  target: Uint8Array,
  targetAt: number,
): number {
  if (at + 1 >= end) return escapeCut;
  const letter = bytes[at + 1] as number;
  if (letter !== letterU) {
    const character = simpleEscape(letter);
    return character < 0 ? escapeUnknown : 16 + writeStringCharacter(target, targetAt, character);
  }
  const unit = hexQuad(bytes, at + 2, end);
  if (unit < 0) return unit;
  if (unit < 0xd800 || unit > 0xdfff) return 48 + writeStringCharacter(target, targetAt, unit);
  if (unit <= 0xdbff && bytes[at + 6] === byteBackslash && bytes[at + 7] === letterU) {
    const low = hexQuad(bytes, at + 8, end);
    if (low >= 0xdc00 && low <= 0xdfff) {
      const codePoint = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
      return 96 + writeCodePoint(target, targetAt, codePoint);
    }
  }
  return 48 + writeCodePoint(target, targetAt, 0xfffd);
}

/** Returns the character that `\` followed by this letter represents, or -1. */
export function simpleEscape(letter: number): number {
  switch (letter) {
    case byteQuote:
    case byteBackslash:
    case byteSlash:
      return letter;
    case 0x62:
      return 0x08;
    case 0x66:
      return 0x0c;
    case 0x6e:
      return 0x0a;
    case 0x72:
      return 0x0d;
    case 0x74:
      return 0x09;
    default:
      return -1;
  }
}

/**
 * Writes `text` as a stored string, quotes included, at `at`; `target` must have room for
 * `6 * text.length + 2` bytes.
 * @returns the bytes written.
 */
export function writeString(target: Buffer, at: number, text: string): number {
  let next = at;
  target[next++] = byteQuote;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0x80) {
      const codePoint = text.codePointAt(i) as number;
      const isHalf = codePoint >= 0xd800 && codePoint <= 0xdfff;
      next += writeCodePoint(target, next, isHalf ? 0xfffd : codePoint);
      if (codePoint > 0xffff) i++;
    } else if (unit >= 0x20 && unit !== byteQuote && unit !== byteBackslash) {
      target[next++] = unit;
    } else next += writeStringCharacter(target, next, unit);
  }
  target[next++] = byteQuote;
  return next - at;
}

/** `text` as a stored string, quotes included. */
export function quoteString(text: string): Buffer {
  const target = Buffer.allocUnsafe(6 * text.length + 2);
  return target.subarray(0, writeString(target, 0, text));
}
