/**
 * Numbers of replies that JavaScript prints differently than RavenDB: `0.0`, and integers beyond 2^53.
 *
 * Invariant: only replies written by `jsonOfNumbers` contain such numbers.
 */

/** Prefix of the text that represents a number until the reply is written; no name contains it. */
const mark = "\u0001#";
const marked = /"\\u0001#(-?\d+(?:\.\d+)?)"/g;

/** Represents a number to be printed with these digits. */
export function numberOfText(digits: string): string {
  return mark + digits;
}

/** Represents a double: a whole number is printed with `.0`. */
export function doubleNumber(value: number): string | number {
  return Number.isInteger(value) ? numberOfText(value.toFixed(1)) : value;
}

/** Returns the JSON text of a reply with numbers of `numberOfText`. */
export function jsonOfNumbers(value: unknown): string {
  return JSON.stringify(value).replace(marked, "$1");
}
