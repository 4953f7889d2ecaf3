/** Counters of documents, which have 64 bits. */
import type { Database as OpenDatabase } from "../engine/engine.ts";
import { EngineError } from "../engine/engine.ts";
import { counterKey } from "../engine/keyspaces/counters.ts";
import * as writes from "../engine/writes/counters.ts";

/** @returns the new value @throws EngineError document-missing, counter-overflow, invalid-argument */
export async function changeCounter(
  database: OpenDatabase,
  id: string,
  name: string,
  by: number | bigint,
): Promise<bigint> {
  if (typeof by === "number" && !Number.isSafeInteger(by)) {
    throw new EngineError("invalid-argument", `A counter cannot change by ${by}.`);
  }
  return await database.write((transaction) =>
    writes.incrementCounter(transaction, id, name, BigInt(by)),
  );
}

export function countersOf({ state }: OpenDatabase, id: string): Record<string, bigint> {
  const entries = [...state.keyspaces.counters.withPrefix(counterKey(id, ""))];
  return Object.fromEntries(entries.map(([, { name, value }]) => [name, BigInt(value)]));
}

export async function deleteCounter(
  database: OpenDatabase,
  id: string,
  name: string,
): Promise<boolean> {
  return await database.write((transaction) => writes.deleteCounter(transaction, id, name), {
    isDeletion: true,
  });
}
