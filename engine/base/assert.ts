/**
 * Assertions against our own bugs. A caller's mistake is an `EngineError`, never an assertion.
 *
 * Always on: a transaction that fails one is not written, and a database that fails one while it stages or commits
 * stops.
 */

/** Thrown when an invariant of the engine does not hold. The consequences depend on when that is: see store.ts. */
export class InvariantError extends Error {
  override readonly name = "InvariantError";
}

/** @throws InvariantError if `condition` is false; `invariant` states the condition in words. */
export function assert(condition: boolean, invariant: string): asserts condition {
  if (!condition) throw new InvariantError(invariant);
}

/** Ends a switch over a union: an unhandled member does not compile. */
export function unreachable(value: never): never {
  throw new InvariantError(`unreachable: ${JSON.stringify(value)}`);
}
