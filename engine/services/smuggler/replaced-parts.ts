/**
 * Parts that a document of an incremental backup replaces: the dump lists the parts of the document, and parts that are
 * not listed were removed since the previous backup.
 */
import { foldedName, lowerCased } from "../../base/case-folding.ts";
import { attachmentKey } from "../../state/keyspaces/attachments.ts";
import { counterKey } from "../../state/keyspaces/counters.ts";
import { seriesKey } from "../../state/keyspaces/time-series/time-series.ts";
import type { Transaction } from "../../state/store/transaction.ts";
import { removeAttachment } from "../../writes/attachments.ts";
import { deleteCounter } from "../../writes/counters.ts";
import { deleteDocument } from "../../writes/documents.ts";
import { deleteFromSeries } from "../../writes/time-series.ts";

/** The names of the parts of a document. */
export interface DocumentParts {
  readonly attachments: readonly { readonly name: string }[];
  readonly counters: readonly string[];
  readonly timeSeries: readonly string[];
}

/**
 * Removes parts of an existing document that its newer version does not have; all parts if the newer version is in
 * another collection.
 */
export function removeOtherParts(
  transaction: Transaction,
  id: string,
  collection: string,
  kept: DocumentParts,
): void {
  const document = transaction.find(id);
  if (document < 0) return;
  const { attachments, collections, counters, timeSeries } = transaction.keyspaces;
  const collectionId = transaction.collectionOf(document);
  if (foldedName(collections.nameOf(collectionId)) !== foldedName(collection)) {
    deleteDocument(transaction, id, undefined, undefined, false);
    return;
  }
  const lowered = (names: readonly string[]) => new Set(names.map((name) => lowerCased(name)));
  const keptAttachments = lowered(kept.attachments.map(({ name }) => name));
  for (const [, one] of transaction.entriesWithPrefix(attachments, attachmentKey(id, ""))) {
    if (keptAttachments.has(lowerCased(one.name))) continue;
    removeAttachment(transaction, id, one, collectionId);
  }
  const keptCounters = lowered(kept.counters);
  for (const [, { name }] of transaction.entriesWithPrefix(counters, counterKey(id, ""))) {
    if (!keptCounters.has(lowerCased(name))) deleteCounter(transaction, id, name);
  }
  const keptSeries = lowered(kept.timeSeries);
  for (const [, { name }] of transaction.entriesWithPrefix(timeSeries, seriesKey(id, ""))) {
    if (!keptSeries.has(lowerCased(name))) deleteFromSeries(transaction, id, name);
  }
}
