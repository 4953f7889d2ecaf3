/** Counters of documents: 64-bit integers. */
import { type Counters, EngineError } from "../engine/engine.ts";

/**
 * Adds `by` to a counter and returns the new value. @throws EngineError document-missing, counter-overflow,
 * invalid-argument
 */
export async function changeCounter(
  counters: Counters,
  id: string,
  name: string,
  by: number | bigint,
): Promise<bigint> {
  if (typeof by === "number" && !Number.isSafeInteger(by)) {
    throw new EngineError("invalid-argument", `A counter cannot change by ${by}.`);
  }
  return await counters.increment(id, name, BigInt(by));
}

export function countersOf(counters: Counters, id: string): Record<string, bigint> {
  return Object.fromEntries(counters.all(id).map(({ name, value }) => [name, BigInt(value)]));
}
