/**
 * The CRC-32 of two texts behind each other, from the CRC-32 of each: so a long text can be summed up piece by piece, in
 * any order, and once. The arithmetic is that of zlib's `crc32_combine`: CRCs are polynomials over GF(2), reflected, and
 * bytes that follow multiply what came before by x^(8 * their count).
 *
 * Knows nothing of records and frames.
 */
import { crc32 } from "node:zlib";

const polynomial = 0xedb88320;
/** The polynomial 1: reflected, its bit is the highest. */
const one = 0x80000000;

/** The product of two polynomials. */
function times(left: number, right: number): number {
  let product = 0;
  let factor = right;
  for (let bit = one; bit !== 0; bit >>>= 1) {
    if ((left & bit) !== 0) product ^= factor;
    factor = (factor & 1) === 0 ? factor >>> 1 : (factor >>> 1) ^ polynomial;
  }
  return product >>> 0;
}

/** x^(2^n) for n from 0 to 31; from there on they repeat. */
const squares = new Uint32Array(32);
squares[0] = 0x40000000;
for (let n = 1; n < squares.length; n++) {
  const half = squares[n - 1] as number; // n > 0
  squares[n] = times(half, half);
}

/**
 * The CRC-32 of a text that begins with one whose CRC-32 is `first`, and goes on with `length` bytes whose own is `second`.
 * Cost: about a microsecond.
 */
export function combinedCrc(first: number, second: number, length: number): number {
  let shift = one;
  // x^(8 * length): the bits of the length say which squares it is made of.
  for (let rest = length, n = 3; rest > 0; rest = Math.floor(rest / 2), n++) {
    if (rest % 2 === 1) shift = times(squares[n & 31] as number, shift);
  }
  return (times(shift, first >>> 0) ^ second) >>> 0;
}

/** The CRC-32 of `bytes[from, to)`, of which the part `[knownFrom, knownTo)` has the CRC-32 `known` and is not read. */
export function crcAround(
  bytes: Buffer,
  from: number,
  to: number,
  knownFrom: number,
  knownTo: number,
  known: number,
): number {
  const before = crc32(bytes.subarray(from, knownFrom));
  const upTo = combinedCrc(before, known, knownTo - knownFrom);
  return crc32(bytes.subarray(knownTo, to), upTo);
}
