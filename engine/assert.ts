/**
 * Assertions against our own bugs. A caller's mistake is an `EngineError`, never an assertion.
 *
 * Always on: a database that is in a state it must not be in stops, before it writes more.
 */

/** Thrown when an invariant of the engine does not hold. The database that meets one stops serving. */
export class InvariantError extends Error {
  override readonly name = "InvariantError";
}

/** @throws InvariantError when `condition` is false; `invariant` says in words what must hold. */
export function assert(condition: boolean, invariant: string): asserts condition {
  if (!condition) throw new InvariantError(invariant);
}

/** Ends a switch over a union: a member that was not handled does not compile. */
export function unreachable(value: never): never {
  throw new InvariantError(`unreachable: ${JSON.stringify(value)}`);
}
