/** Values of options and arguments. Pure. */
import { Failure } from "./failure.ts";

/** Parses an integer; `what` is the option or argument, for the message. @throws Failure usage */
export function wholeNumber(text: string, what: string): number {
  const count = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(count)) return count;
  throw new Failure("usage", `${what} '${text}' must be a whole number`);
}

/** Parses an optional port. @throws Failure usage */
export function portOr(text: string | undefined, fallback: number): number {
  const port = text === undefined ? fallback : Number(text);
  if (/^\d*$/.test(text ?? "") && text !== "" && port <= 65_535) return port;
  throw new Failure("usage", `--port '${text}' must be a port from 0 to 65535`);
}

/** Parses an optional integer. @throws Failure usage */
export function numberOr(text: string | undefined, fallback: number, what: string): number {
  return text === undefined ? fallback : wholeNumber(text, what);
}
