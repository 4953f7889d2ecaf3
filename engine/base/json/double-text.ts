/** Doubles as RavenDB 7.2.7 writes them: .NET's shortest round-trip text, with a point or an exponent. */

/** From here on an integral double is written with an exponent. */
const plainDoubleMax = 1e17;

/** Text of a number where there was a double: `3` is `3.0`. */
export function doubleText(value: number): string {
  if (!Number.isInteger(value)) return roundTripText(value);
  if (Math.abs(value) >= plainDoubleMax) return roundTripText(value);
  return Object.is(value, -0) ? "-0.0" : `${value}.0`;
}

/** As `doubleText`, but `3` stays `3`, as in the results of facets. */
export function shortDoubleText(value: number): string {
  const isShort = Number.isInteger(value) && Math.abs(value) < plainDoubleMax;
  return isShort ? String(value) : roundTripText(value);
}

/** Shortest text that parses to the same double, in .NET's `R` form. */
export function roundTripText(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e-4 && size < 1e15) return String(value);
  if (!Number.isFinite(value)) return `"${value}"`;
  const scientific = value.toExponential();
  const split = scientific.indexOf("e");
  const exponent = Number(scientific.slice(split + 1));
  if (exponent < 15 && exponent >= -4) return String(value);
  const digits = Math.abs(exponent).toString().padStart(2, "0");
  return `${scientific.slice(0, split)}E${exponent < 0 ? "-" : "+"}${digits}`;
}
