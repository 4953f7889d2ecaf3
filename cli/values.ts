/** Values of options and arguments. Pure. */
import { Failure } from "./failure.ts";

/** Parses an integer; `what` is the option or argument, for the message. @throws Failure usage */
export function wholeNumber(text: string, what: string): number {
  const count = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(count)) return count;
  throw new Failure("usage", `${what} '${text}' must be a whole number`);
}

/** Parses an optional integer. @throws Failure usage */
export function numberOr(text: string | undefined, fallback: number, what: string): number {
  return text === undefined ? fallback : wholeNumber(text, what);
}
