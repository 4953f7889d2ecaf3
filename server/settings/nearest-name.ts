/** Suggestions for mistyped names. */
import { closest, distance } from "fastest-levenshtein";

/** Returns the most similar name in `known`, or undefined if none is similar. Letter case does not count. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  if (known.length === 0) return undefined;
  const lower = name.toLowerCase();
  const near = closest(
    lower,
    known.map((one) => one.toLowerCase()),
  );
  if (distance(lower, near) > Math.max(2, Math.floor(lower.length / 3))) return undefined;
  return known.find((one) => one.toLowerCase() === near);
}
