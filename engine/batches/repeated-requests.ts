/**
 * Requests that clients repeat. Official clients assign an id to requests that must not be executed twice
 * (compare-exchange, identities, cluster-wide transactions), and send the same request with the same id to another node
 * if they did not get the reply. The stored outcome is then returned again, as in RavenDB 7.2.7: it is written with the
 * change.
 *
 *   values: request/<set>  [[id, outcome], …]   newest first
 *
 * Invariants:
 * - The outcome is durable with its change, and replicated with it: the next leader has both or neither.
 * - Refusals are not stored. A refused request has changed nothing, and may succeed when it is repeated.
 */
import type { Transaction } from "../state/store/transaction.ts";

/** An id is found in the set of its hash. */
const setCount = 512;
/** Outcomes in a set: all sets together hold those of some seconds, the period in which clients retry. */
const setSizeMax = 4;
/** Characters of JSON text; larger ones are not kept. */
const outcomeLengthMax = 16 * 1024;
const idLengthMax = 100;

type Kept = readonly [id: string, outcome: unknown];

/**
 * Returns the outcome of a repeated request, where `kind` distinguishes requests with the same id; undefined if the
 * request is new.
 */
export function earlierOutcome(
  transaction: Transaction,
  kind: string,
  id: string | undefined,
): unknown {
  if (!isKept(id)) return undefined;
  const full = `${kind} ${id}`;
  return keptIn(transaction, keyOf(full)).find(([one]) => one === full)?.[1];
}

/** Stores the outcome of this transaction's request. */
export function keepOutcome(
  transaction: Transaction,
  kind: string,
  id: string | undefined,
  outcome: object | number,
): void {
  if (!isKept(id) || JSON.stringify(outcome).length > outcomeLengthMax) return;
  const full = `${kind} ${id}`;
  const key = keyOf(full);
  const kept = [[full, outcome], ...keptIn(transaction, key)].slice(0, setSizeMax);
  transaction.putEntry(transaction.keyspaces.values, key, kept);
}

function isKept(id: string | undefined): id is string {
  return id !== undefined && id !== "" && id.length <= idLengthMax;
}

function keptIn(transaction: Transaction, key: string): readonly Kept[] {
  return (transaction.entry(transaction.keyspaces.values, key) ?? []) as readonly Kept[];
}

function keyOf(full: string): string {
  let hash = 0;
  for (let at = 0; at < full.length; at++) hash = (Math.imul(hash, 31) + full.charCodeAt(at)) >>> 0;
  return `request/${hash % setCount}`;
}
