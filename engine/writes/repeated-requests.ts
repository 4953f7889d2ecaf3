/**
 * Requests that clients send again. Official clients give what must not be done twice (compare-exchange, identities,
 * cluster-wide transactions) an id of its own, and send it with the same id to another node when they did not get the reply.
 * What has been done is told again then, as RavenDB 7.2.7 does: the outcome is kept with the write.
 *
 *   values: request/<set>  [[id, outcome], …]   newest first
 *
 * Invariants:
 * - The outcome is durable with what was done, and replicated with it: the next leader has both or neither.
 * - What was refused is not kept. It has changed nothing, and may succeed when it is sent again.
 */
import type { Transaction } from "../store/transaction.ts";

/** An id is found in the set of its hash. */
const setCount = 512;
/** Outcomes in a set: all sets together have those of some seconds, which is when clients try again. */
const setSizeMax = 4;
/** Characters of JSON text; larger ones are not kept. */
const outcomeLengthMax = 16 * 1024;
const idLengthMax = 100;

type Kept = readonly [id: string, outcome: unknown];

/** What was done by a request, of which `kind` tells requests with the same id apart; undefined: it is a new one. */
export function earlierOutcome(
  transaction: Transaction,
  kind: string,
  id: string | undefined,
): unknown {
  if (!isKept(id)) return undefined;
  const full = `${kind} ${id}`;
  return keptIn(transaction, keyOf(full)).find(([one]) => one === full)?.[1];
}

/** Keeps the outcome of what this transaction does. */
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
