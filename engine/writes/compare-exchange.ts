/**
 * Compare-exchange operations of a transaction: replace or remove a value, only if it is still the version that the
 * caller expects.
 *
 * Invariants:
 * - Indexes increase strictly over all values of a database, across deletions and restarts.
 */
import { dueTimeOf } from "../base/due-time.ts";
import { EngineError } from "../base/errors.ts";
import { checkCompareExchangeKey } from "../base/names.ts";
import {
  type CompareExchangeValue,
  compareExchangeKey,
} from "../state/keyspaces/compare-exchange.ts";
import type { Transaction } from "../state/store/transaction.ts";

/** Key of the last index among the values of the database. */
const indexKey = "compare-exchange-index";

/** The outcome of an attempt. If unsuccessful: the current value; index 0 and null if it does not exist. */
export interface CompareExchangeResult {
  readonly isSuccessful: boolean;
  readonly index: number;
  /** JSON text of `{"Object":…}`, or null. */
  readonly text: string | null;
}

/**
 * Stores a value if the current value has the `expected` index; 0: if no value exists.
 * @param text minified JSON of an object.
 * @throws EngineError compare-exchange-key-too-big, json-invalid for a negative index, raft-apply for an invalid `@expires`
 */
export function putCompareExchange(
  transaction: Transaction,
  key: string,
  expected: number,
  text: string,
): CompareExchangeResult {
  const current = currentValue(transaction, key, expected);
  checkExpiry(transaction, key, text);
  if ((current?.index ?? 0) !== expected) return refused(current);
  const index = nextIndex(transaction);
  const value: CompareExchangeValue = { key: current?.key ?? key, index, text };
  const { compareExchange } = transaction.keyspaces;
  transaction.putEntry(compareExchange, compareExchangeKey(key), value);
  return { isSuccessful: true, index, text };
}

/**
 * Unlike the `@expires` of a document, that of a value must be a time in text.
 * @throws EngineError raft-apply
 */
export function checkExpiry(transaction: Transaction, key: string, text: string): void {
  if (!text.includes('"@expires"')) return;
  const value = JSON.parse(text) as { readonly "@metadata"?: Readonly<Record<string, unknown>> };
  const expires = value["@metadata"]?.["@expires"];
  if (expires === undefined || !Number.isNaN(dueTimeOf(expires))) return;
  throw new EngineError(
    "raft-apply",
    `Could not apply command AddOrUpdateCompareExchangeCommand - failed to get \`Expires\` for compare exchange key:${key} database:${transaction.state.name}.`,
  );
}

/** Removes a value if it has the `expected` index. The result has the removed value. @throws as `put…` */
export function deleteCompareExchange(
  transaction: Transaction,
  key: string,
  expected: number,
): CompareExchangeResult {
  const current = currentValue(transaction, key, expected);
  if (current === undefined || current.index !== expected) return refused(current);
  const index = nextIndex(transaction);
  const { compareExchange } = transaction.keyspaces;
  transaction.putEntry(compareExchange, compareExchangeKey(key), undefined);
  return { isSuccessful: true, index, text: current.text };
}

/** Returns the next index; durable with the transaction. */
export function nextIndex(transaction: Transaction): number {
  const { values } = transaction.keyspaces;
  const last = transaction.entry(values, indexKey);
  const next = (typeof last === "number" ? last : 0) + 1;
  transaction.putEntry(values, indexKey, next);
  return next;
}

function currentValue(
  transaction: Transaction,
  key: string,
  expected: number,
): CompareExchangeValue | undefined {
  checkCompareExchangeKey(key);
  if (expected < 0) throw new EngineError("json-invalid", "Index must be a non-negative number");
  return transaction.entry(transaction.keyspaces.compareExchange, compareExchangeKey(key));
}

function refused(current: CompareExchangeValue | undefined): CompareExchangeResult {
  return { isSuccessful: false, index: current?.index ?? 0, text: current?.text ?? null };
}
