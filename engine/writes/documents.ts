/**
 * What a transaction may do with documents: store, delete, and write again when their lists of attachments or
 * counters changed. Error texts are those of RavenDB 7.2.7.
 */

import { nodeTag } from "../database-state.ts";
import {
  changeVectorOf,
  DocumentFields,
  documentFlags,
  documentRecordLength,
  encodeDocumentRecord,
  explicitVectorRowFlag,
  idOf,
  metadataLengthOf,
  metadataStartOf,
  recordLengthOf,
} from "../document.ts";
import { checkDocumentId, idFormOf, serverMadeId } from "../document-id.ts";
import type { ServerMember } from "../document-metadata.ts";
import { EngineError } from "../errors.ts";
import { type DocumentParser, metadataSpanSlots } from "../json/json-parser.ts";
import { attachmentKey, attachmentsText } from "../keyspaces/attachments.ts";
import { counterKey } from "../keyspaces/counters.ts";
import { identityKey } from "../keyspaces/identities.ts";
import { sealRecord } from "../log/record.ts";
import { parseTimestamp } from "../timestamp.ts";
import type { Transaction } from "../transaction.ts";
import { removeAttachment } from "./attachments.ts";

/** What is known of a document that was stored. */
export interface StoredDocument {
  readonly id: string;
  readonly document: number;
  readonly changeVector: string;
  /** The collection as the document spells it, `@empty` when it names none. */
  readonly collection: string;
  /** Microseconds since 1970. */
  readonly lastModified: number;
  /** Bits of `documentFlags`. */
  readonly flags: number;
}

const listFlags = documentFlags.HasAttachments | documentFlags.HasCounters;
const keptFlags = listFlags | documentFlags.HasRevisions | documentFlags.HasTimeSeries;

/** One for all transactions: they are synchronous, and the fields are used within one call. */
const fields = new DocumentFields();

/**
 * The id to store under: `a/` becomes a server-made id with the etag of this write, `a|` the next identity.
 * @returns the id, and the etag if it was taken for it.
 */
export function resolveId(transaction: Transaction, id: string): { id: string; etag: number } {
  switch (idFormOf(id)) {
    case "plain":
      return { id, etag: 0 };
    case "server": {
      const etag = transaction.nextEtag();
      return { id: serverMadeId(id, etag, nodeTag), etag };
    }
    case "identity":
      return { id: `${id.slice(0, -1)}/${nextIdentity(transaction, id)}`, etag: 0 };
  }
}

/** The next number of an identity (`users|`); a new one begins at 1. */
export function nextIdentity(transaction: Transaction, name: string): number {
  const key = identityKey(name);
  const { identities } = transaction.keyspaces;
  const value = (transaction.entry(identities, key) ?? 0) + 1;
  transaction.putEntry(identities, key, value);
  return value;
}

/** Sets the last number of an identity; one that is there is only raised, unless `isForced`. @returns it as it is now. */
export function seedIdentity(
  transaction: Transaction,
  name: string,
  value: number,
  isForced: boolean,
): number {
  const key = identityKey(name);
  const { identities } = transaction.keyspaces;
  const current = transaction.entry(identities, key);
  if (current !== undefined && current >= value && !isForced) return current;
  transaction.putEntry(identities, key, value);
  return value;
}

/**
 * Stores the document that the database's parser parsed last.
 * @param expected undefined: no check; "": must not exist; else the current change vector.
 * @throws EngineError concurrency, collection-mismatch, invalid-argument, not-supported
 */
export function putParsed(transaction: Transaction, id: string, expected?: string): StoredDocument {
  const resolved = resolveId(transaction, id);
  checkDocumentId(resolved.id);
  const { state } = transaction;
  const { parser } = state;
  const document = state.documents.intern(resolved.id);
  const exists = transaction.exists(document);
  if (expected !== undefined) {
    checkExpected(transaction, document, exists, resolved.id, expected, "Put");
  }
  const flags = exists ? transaction.flagsOf(document) & keptFlags : 0;
  checkDates(parser);
  state.metadata.fromParser(parser, listsOf(transaction, resolved.id, flags));
  const { collection } = state.metadata;
  const collectionId = state.keyspaces.collections.intern(collection);
  if (exists) checkCollection(transaction, document, collectionId, resolved.id, collection);
  fields.setBody(parser);
  return write(transaction, document, resolved.id, resolved.etag, collectionId, flags);
}

/**
 * Deletes a document with its attachments and counters.
 * @returns false when there was none. @throws EngineError concurrency
 */
export function deleteDocument(transaction: Transaction, id: string, expected?: string): boolean {
  const { state } = transaction;
  const document = transaction.find(id);
  if (expected !== undefined) {
    checkExpected(transaction, document, document >= 0, id, expected, "Delete");
  }
  if (document < 0) return false;
  const collectionId = transaction.collectionOf(document);
  // What this transaction added is not in the flags before its end.
  const flags = transaction.isTouched(document) ? listFlags : transaction.flagsOf(document);
  const storedId = storedIdOf(transaction, document);
  const { attachments, counters } = transaction.keyspaces;
  if ((flags & documentFlags.HasAttachments) !== 0) {
    for (const [, attachment] of transaction.entriesWithPrefix(
      attachments,
      attachmentKey(id, ""),
    )) {
      removeAttachment(transaction, storedId, attachment, collectionId);
    }
  }
  if ((flags & documentFlags.HasCounters) !== 0) {
    for (const [key] of transaction.entriesWithPrefix(counters, counterKey(id, ""))) {
      transaction.putEntry(counters, key, undefined);
    }
  }
  const etag = transaction.nextEtag();
  transaction.putTombstone("document", storedId, collectionId, etag);
  const at = transaction.scratch.length;
  transaction.stageDocument({ document, etag, at, recordLength: 0, collectionId, flags: 0 });
  transaction.untouch(document);
  transaction.changed({
    kind: "document",
    type: "Delete",
    id: storedId,
    collectionId,
    etag,
    changeVector: state.changeVectorAt(etag),
  });
  return true;
}

/** Writes each touched document once more, with its lists as they are now. Called at the end. */
export function rewriteTouched(transaction: Transaction): void {
  for (const document of transaction.takeTouched()) {
    if (transaction.exists(document)) rewriteLists(transaction, document);
  }
}

/** The current change vector of a document that exists. @throws RecordNotResident */
export function currentChangeVector(transaction: Transaction, document: number): string {
  const { state } = transaction;
  if ((transaction.flagsOf(document) & explicitVectorRowFlag) === 0) {
    return state.changeVectorAt(transaction.etagOf(document));
  }
  const { bytes, start } = transaction.recordOf(document);
  return changeVectorOf(bytes, start, state.databaseHash);
}

/** The id as the document spells it. @throws RecordNotResident */
export function storedIdOf(transaction: Transaction, document: number): string {
  const { bytes, start } = transaction.recordOf(document);
  return idOf(bytes, start);
}

function rewriteLists(transaction: Transaction, document: number): void {
  const { state } = transaction;
  const record = transaction.recordOf(document);
  // A copy: the scratch buffer, where the record may be, can move when there is more to write.
  const length = recordLengthOf(record.bytes, record.start);
  const bytes = Buffer.from(record.bytes.subarray(record.start, record.start + length));
  const id = idOf(bytes, 0);
  const collectionId = transaction.collectionOf(document);
  const lists = listsOf(transaction, id, listFlags);
  const stored = metadataLengthOf(bytes, 0);
  if (stored > 0) state.metadata.fromStored(bytes, metadataStartOf(bytes, 0), stored, lists);
  else {
    const member = state.collectionMember(collectionId);
    state.metadata.fromStored(member, 0, member.length, lists);
  }
  const flags =
    (transaction.flagsOf(document) & keptFlags & ~listFlags) |
    (lists[0]?.valueText == null ? 0 : documentFlags.HasAttachments) |
    (lists[1]?.valueText == null ? 0 : documentFlags.HasCounters);
  fields.setBodyOf(bytes, 0);
  write(transaction, document, id, 0, collectionId, flags);
}

/** Encodes and stages a document whose body is in `fields` and whose metadata is in the writer. Etag 0: the next. */
function write(
  transaction: Transaction,
  document: number,
  id: string,
  reservedEtag: number,
  collectionId: number,
  flags: number,
): StoredDocument {
  const { state, scratch } = transaction;
  const { metadata } = state;
  const etag = reservedEtag === 0 ? transaction.nextEtag() : reservedEtag;
  const lastModified = state.nextModified();
  fields.etag = etag;
  fields.lastModified = lastModified;
  fields.collectionId = collectionId;
  fields.flags = flags;
  fields.setId(id);
  fields.setChangeVector("");
  const isUsual = metadata.isOnly(state.collectionMember(collectionId));
  fields.setMetadata(metadata.text, 0, isUsual ? 0 : metadata.length);
  const recordLength = documentRecordLength(fields);
  const at = scratch.reserve(recordLength);
  encodeDocumentRecord(scratch.bytes, at, fields);
  sealRecord(scratch.bytes, at);
  transaction.stageDocument({ document, etag, at, recordLength, collectionId, flags });
  const changeVector = state.changeVectorAt(etag);
  transaction.changed({ kind: "document", type: "Put", id, collectionId, etag, changeVector });
  return { id, document, changeVector, collection: metadata.collection, lastModified, flags };
}

/** The genuine `@attachments` and `@counters`, in this order; empty when the flags say that there are none. */
function listsOf(transaction: Transaction, id: string, flags: number): readonly ServerMember[] {
  if ((flags & listFlags) === 0) return [];
  const { attachments, counters } = transaction.keyspaces;
  const files = transaction.entriesWithPrefix(attachments, attachmentKey(id, ""));
  const names = transaction.entriesWithPrefix(counters, counterKey(id, ""));
  const filesText = attachmentsText(files.map(([, attachment]) => attachment));
  return [
    { key: "@attachments", valueText: filesText === null ? null : Buffer.from(filesText) },
    {
      key: "@counters",
      valueText:
        names.length === 0 ? null : Buffer.from(JSON.stringify(names.map(([, { name }]) => name))),
    },
  ];
}

/** @throws EngineError invalid-operation when `@expires` or `@refresh` is text and not a date of 7 digits */
function checkDates(parser: DocumentParser): void {
  for (let i = 0; i < parser.metadataCount; i++) {
    const at = i * metadataSpanSlots;
    const spans = parser.metadataSpans;
    const key = parser.metadata.latin1Slice(spans[at], spans[at + 1]);
    if (key !== '"@expires"' && key !== '"@refresh"') continue;
    const value = parser.metadata.toString("utf8", spans[at + 2], spans[at + 3]);
    if (!value.startsWith('"') || !Number.isNaN(parseTimestamp(JSON.parse(value) as string))) {
      continue;
    }
    throw new EngineError(
      "invalid-operation",
      `The ${key === '"@expires"' ? "expiration" : "refresh"} date format for document is not valid: ${value}. Use the following format: yyyy-MM-ddTHH:mm:ss.fffffffZ`,
    );
  }
}

function checkCollection(
  transaction: Transaction,
  document: number,
  collectionId: number,
  id: string,
  collection: string,
): void {
  const current = transaction.collectionOf(document);
  if (current === collectionId) return;
  const name = transaction.keyspaces.collections.nameOf(current);
  throw new EngineError(
    "collection-mismatch",
    `Changing '${id}' from '${name}' to '${collection}' via update is not supported. Delete it and recreate the document '${id}'.`,
  );
}

function checkExpected(
  transaction: Transaction,
  document: number,
  exists: boolean,
  id: string,
  expected: string,
  verb: "Put" | "Delete",
): void {
  const actual = exists ? currentChangeVector(transaction, document) : null;
  const isMet = actual === null ? expected === "" && verb === "Put" : expected === actual;
  if (isMet) return;
  const quote = verb === "Delete" ? "'" : "";
  const vector = `change vector ${quote}${expected}${quote}`;
  let complaint: string;
  if (actual === null) {
    complaint =
      verb === "Put"
        ? `Document ${id} does not exist, but Put was called with change vector: ${expected}`
        : `Document ${id} does not exist, but delete was called with ${vector}`;
  } else {
    const wanted = expected === "" && verb === "Put" ? "expecting new document" : vector;
    complaint = `Document ${id} has change vector ${actual}, but ${verb} was called with ${wanted}`;
  }
  throw new EngineError(
    "concurrency",
    `${complaint}. Optimistic concurrency violation, transaction will be aborted.`,
    {
      // RavenDB 7.2.7 names neither for a missing document that was to be deleted.
      details:
        actual === null && verb === "Delete"
          ? {}
          : { Id: id, ExpectedChangeVector: expected, ActualChangeVector: actual },
    },
  );
}
