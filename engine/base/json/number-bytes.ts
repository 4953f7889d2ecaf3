/**
 * Numbers as decimal text, written as bytes without an intermediate string. The output equals JavaScript's own
 * conversion, with `.0` after a whole double.
 *
 * Hot: bench/patch.bench.ts.
 */

const digitsMax = 24;
const digits = new Uint8Array(digitsMax);
const wholeMax = 1e15;
const smallMax = 2 ** 31;
const fractionDigitsMax = 4;
const byteZero = 0x30;

/** Maximum bytes written by `writeWhole` and `writeDouble`. */
export const numberBytesMax = digitsMax;

/** Writes a safe integer; -0 as `0`. @returns the position after it. */
export function writeWhole(target: Uint8Array, at: number, value: number): number {
  let next = at;
  let rest = value;
  if (value < 0) {
    target[next++] = 0x2d;
    rest = -value;
  }
  let count = 0;
  while (rest >= smallMax) {
    const quotient = Math.floor(rest / 10);
    digits[count++] = byteZero + (rest - quotient * 10);
    rest = quotient;
  }
  let small = rest | 0;
  do {
    const quotient = (small / 10) | 0;
    digits[count++] = byteZero + (small - quotient * 10);
    small = quotient;
  } while (small > 0);
  while (count > 0) target[next++] = digits[--count] as number;
  return next;
}

/**
 * Writes a double: a whole one with `.0`, others if they have at most 4 decimals. Different decimal numbers of at most
 * 15 digits are different doubles, so the one found is the shortest.
 * @returns the position after it; -1 when it is neither, and nothing was written.
 */
export function writeDouble(target: Uint8Array, at: number, value: number): number {
  if (!(value > -wholeMax && value < wholeMax)) return -1;
  if (value === 0) {
    let next = at;
    if (Object.is(value, -0)) target[next++] = 0x2d;
    target[next] = byteZero;
    target[next + 1] = 0x2e;
    target[next + 2] = byteZero;
    return next + 3;
  }
  let power = 1;
  for (let decimals = 0; decimals <= fractionDigitsMax; decimals++, power *= 10) {
    const scaled = Math.round(value * power);
    if (scaled / power !== value) continue;
    return scaled < wholeMax && scaled > -wholeMax ? writeScaled(target, at, scaled, decimals) : -1;
  }
  return -1;
}

/** Writes `scaled / 10^decimals`; without decimals, with `.0`. */
function writeScaled(target: Uint8Array, at: number, scaled: number, decimals: number): number {
  let next = at;
  if (scaled < 0) target[next++] = 0x2d;
  const size = Math.abs(scaled);
  if (decimals === 0) {
    next = writeWhole(target, next, size);
    target[next] = 0x2e;
    target[next + 1] = byteZero;
    return next + 2;
  }
  let power = 1;
  for (let k = 0; k < decimals; k++) power *= 10;
  const whole = Math.floor(size / power);
  next = writeWhole(target, next, whole);
  target[next++] = 0x2e;
  let fraction = size - whole * power;
  for (let k = decimals - 1; k >= 0; k--) {
    const quotient = Math.floor(fraction / 10);
    target[next + k] = byteZero + (fraction - quotient * 10);
    fraction = quotient;
  }
  return next + decimals;
}
