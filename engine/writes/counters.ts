/**
 * Counter operations of a transaction. A counter belongs to an existing document; when the document's list of names
 * (`@counters`) changes, the document is rewritten at the end of the transaction.
 */
import { EngineError } from "../base/errors.ts";
import { checkCounterName } from "../base/names.ts";
import { addToCounter, type Counter, counterKey } from "../state/keyspaces/counters.ts";
import type { Transaction } from "../state/store/transaction.ts";

/** Adds `delta`; a missing counter starts at 0. @returns the new value @throws document-missing, counter-overflow */
export function incrementCounter(
  transaction: Transaction,
  documentId: string,
  name: string,
  delta: bigint,
): bigint {
  checkCounterName(name);
  const document = requireDocument(transaction, documentId);
  const key = counterKey(documentId, name);
  const { counters } = transaction.keyspaces;
  const current = transaction.entry(counters, key);
  const value = addToCounter(documentId, name, BigInt(current?.value ?? "0"), delta);
  const etag = transaction.nextEtag();
  transaction.putEntry(
    counters,
    key,
    { name: current?.name ?? name, value: value.toString() },
    etag,
  );
  if (current === undefined) transaction.touch(document);
  transaction.changed({
    kind: "counter",
    type: current === undefined ? "Put" : "Increment",
    documentId,
    name,
    value,
    etag,
    collectionId: transaction.collectionOf(document),
  });
  return value;
}

/**
 * Sets a counter to a value, regardless of its previous value: for imports. @throws document-missing, invalid-argument
 */
export function setCounter(
  transaction: Transaction,
  documentId: string,
  name: string,
  value: bigint,
): void {
  const current = counterIn(transaction, documentId, name);
  incrementCounter(transaction, documentId, name, value - BigInt(current?.value ?? "0"));
}

/** @returns false when the counter does not exist. @throws document-missing */
export function deleteCounter(transaction: Transaction, documentId: string, name: string): boolean {
  const document = requireDocument(transaction, documentId);
  const key = counterKey(documentId, name);
  const { counters } = transaction.keyspaces;
  const current = transaction.entry(counters, key);
  if (current === undefined) return false;
  const etag = transaction.nextEtag();
  transaction.putEntry(counters, key, undefined, etag);
  transaction.touch(document);
  transaction.changed({
    kind: "counter",
    type: "Delete",
    documentId,
    name: current.name,
    value: 0n,
    etag,
    collectionId: transaction.collectionOf(document),
  });
  return true;
}

/** Returns the counter as this transaction sees it. */
export function counterIn(
  transaction: Transaction,
  documentId: string,
  name: string,
): Counter | undefined {
  return transaction.entry(transaction.keyspaces.counters, counterKey(documentId, name));
}

/** @throws document-missing, the same error for all counter operations */
export function requireDocument(transaction: Transaction, documentId: string): number {
  const document = transaction.find(documentId);
  if (document < 0) {
    throw new EngineError(
      "document-missing",
      `Document '${documentId}' does not exist. Cannot operate on counters of a missing document.`,
    );
  }
  return document;
}
