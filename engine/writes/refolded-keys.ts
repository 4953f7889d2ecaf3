/**
 * Upgrades keys on disk that an older version has folded by JavaScript's `toLowerCase`, which maps a final capital sigma,
 * `İ` and some rare letters differently (case-folding.ts). Ids of documents are not affected: they are folded when the log
 * is replayed. The keys of entries are stored, and are replaced here by ordinary changes of a transaction.
 *
 * Invariants:
 * - An entry whose new key exists already retains its old key: nothing is lost.
 */
import { foldedName, lowerCased } from "../base/case-folding.ts";
import { compareExchangeKey } from "../state/keyspaces/compare-exchange.ts";
import type { EntryKeyspace } from "../state/keyspaces/entry-keyspace.ts";
import { identityKey } from "../state/keyspaces/identities.ts";
import { indexHistoryKey, indexHistoryNumber } from "../state/keyspaces/index-histories.ts";
import type { KeyspaceTable } from "../state/keyspaces/keyspace-table.ts";
import { subscriptionKey } from "../state/keyspaces/subscriptions.ts";
import type { Transaction } from "../state/store/transaction.ts";
import { storedIdOf } from "./documents.ts";

const separator = "\u0000";
const nonAscii = /[^\0-\x7f]/;
/** Results of `toLowerCase` for text that is folded differently now. */
const ambiguous =
  /\u03c2|i\u0307|[\u1c8a\u0264\ua7cd\ua7cf\ua7d3\ua7d5\ua7db\u019b]|[\u{10000}-\u{1ffff}]/gu;
/** Maximum number of ambiguous positions of a key for which all combinations are tried. */
const combinedMax = 6;

/** Key among the values of a database whose keys were upgraded. */
const doneKey = "keys-refolded";

/** Returns whether some key may be an old one. Cost: O(entries). */
export function hasOldKeys(keyspaces: KeyspaceTable): boolean {
  if (keyspaces.values.get(doneKey) === true) return false;
  return affectedKeyspaces.some((name) => {
    for (const [key] of keyspaces[name].withPrefix("")) {
      if (nonAscii.test(key) && key.search(ambiguous) >= 0) return true;
    }
    return false;
  });
}

const affectedKeyspaces = [
  "counters",
  "attachments",
  "timeSeries",
  "compareExchange",
  "subscriptions",
  "indexDefinitions",
  "indexHistories",
  "identities",
] as const;

/** Replaces all old keys. @returns how many entries were moved */
export function refoldKeys(transaction: Transaction): number {
  const { keyspaces } = transaction;
  transaction.putEntry(keyspaces.values, doneKey, true);
  const documents = new Map<string, string>();
  const documentPart = (old: string) => {
    const known = documents.get(old);
    if (known !== undefined) return known;
    const found = newDocumentKey(transaction, old);
    documents.set(old, found);
    return found;
  };
  const ofDocument = (key: string, name: string) => {
    const rest = key.lastIndexOf(separator);
    const owner = key.slice(0, rest);
    // A revision's attachment: NUL, the id of the document, NUL, an etag.
    const id = owner.startsWith(separator) ? owner.slice(1, owner.lastIndexOf(separator)) : owner;
    return owner.replace(id, () => documentPart(id)) + separator + lowerCased(name);
  };
  const series = new Map<string, string>();
  let count = move(transaction, keyspaces.counters, (key, { name }) => ofDocument(key, name));
  count += move(transaction, keyspaces.attachments, (key, { name }) => ofDocument(key, name));
  count += move(transaction, keyspaces.timeSeries, (key, { name }) => {
    const to = ofDocument(key, name);
    series.set(key, to);
    return to;
  });
  count += move(transaction, keyspaces.timeSeriesSegments, (key) => {
    const end = key.lastIndexOf(separator);
    return (series.get(key.slice(0, end)) ?? key.slice(0, end)) + key.slice(end);
  });
  const { compareExchange, subscriptions, indexDefinitions, indexHistories } = keyspaces;
  count += move(transaction, compareExchange, (_key, { key }) => compareExchangeKey(key));
  count += move(transaction, subscriptions, (_key, { name }) => subscriptionKey(name));
  count += move(transaction, indexDefinitions, (key) => foldedName(key));
  count += move(transaction, indexHistories, (key) =>
    indexHistoryKey(key.slice(0, key.indexOf(separator)), indexHistoryNumber(key)),
  );
  return count + copyIdentities(transaction);
}

/** Moves the entries of a keyspace whose key is another one now. */
function move<Value>(
  transaction: Transaction,
  keyspace: EntryKeyspace<Value>,
  newKey: (key: string, value: Value) => string,
): number {
  const moves: [string, string, Value][] = [];
  for (const [key, value] of keyspace.withPrefix("")) {
    if (!nonAscii.test(key)) continue;
    const to = newKey(key, value);
    if (to !== key) moves.push([key, to, value]);
  }
  let count = 0;
  for (const [from, to, value] of moves) {
    if (transaction.entry(keyspace, to) !== undefined) continue;
    transaction.putEntry(keyspace, from, undefined);
    transaction.putEntry(keyspace, to, value);
    count++;
  }
  return count;
}

/** The spelling of an identity is not stored. Each form that its name can have continues from the same number. */
function copyIdentities(transaction: Transaction): number {
  const { identities } = transaction.keyspaces;
  let count = 0;
  for (const [key, value] of [...identities.withPrefix("")]) {
    for (const form of formsOf(key)) {
      const to = identityKey(form);
      if (transaction.entry(identities, to) !== undefined) continue;
      transaction.putEntry(identities, to, value);
      count++;
    }
  }
  return count;
}

/** Returns the current form of the id of a document whose old form is `old`; no other document had that form. */
function newDocumentKey(transaction: Transaction, old: string): string {
  if (transaction.find(old) >= 0) return old;
  for (const form of formsOf(old)) {
    const document = transaction.find(form);
    if (document >= 0 && storedIdOf(transaction, document).toLowerCase() === old) return form;
  }
  return old;
}

/** Returns the current forms of the texts that `toLowerCase` maps to `old`: `old` itself last. */
function formsOf(old: string): string[] {
  const places = [...old.matchAll(ambiguous)].map(({ 0: text, index }) => ({ text, index }));
  const all = 2 ** Math.min(places.length, combinedMax) - 1;
  const forms: string[] = [];
  for (let chosen = all; chosen > 0; chosen--) {
    let form = "";
    let at = 0;
    for (const [i, { text, index }] of places.entries()) {
      const isChanged = i >= combinedMax || (chosen & (2 ** i)) !== 0;
      form += old.slice(at, index) + (isChanged ? formerCapital(text) : text);
      at = index + text.length;
    }
    forms.push(form + old.slice(at));
  }
  return [...forms, old];
}

function formerCapital(text: string): string {
  if (text === "\u03c2") return "\u03c3";
  return text.length === 2 && text.startsWith("i") ? "\u0130" : text.toUpperCase();
}
