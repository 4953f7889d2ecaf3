/**
 * Revision operations of a transaction: preserve a document's new state, or its old state from before there were rules;
 * record a deletion; remove surplus revisions. Flags, order of etags and texts equal those of RavenDB 7.2.7.
 *
 * Invariants:
 * - A revision references the contents of its attachments under its own keys.
 * - A removed revision leaves a tombstone, from which replay removes it too.
 */

import { checkDocumentId } from "../base/names.ts";
import { recordKinds, sealRecord } from "../base/record.ts";
import {
  documentRecordLength,
  encodeDocumentRecord,
} from "../state/documents/document-encoding.ts";
import { listText, type ServerMember } from "../state/documents/document-metadata.ts";
import {
  changeVectorOf,
  documentFlags,
  documentFlagsOf,
  idOf,
  metadataLengthOf,
  metadataStartOf,
  metadataTextOf,
  recordLengthOf,
  storedChangeVectorOf,
} from "../state/documents/document-record.ts";
import type { ParsedDocument } from "../state/documents/parsed-document.ts";
import type { Attachment } from "../state/keyspaces/attachments.ts";
import { attachmentText, revisionAttachmentKey } from "../state/keyspaces/attachments.ts";
import { counterKey } from "../state/keyspaces/counters.ts";
import type { RevisionRule } from "../state/keyspaces/revision-rules.ts";
import { changeVectorHash, type RevisionFacts } from "../state/keyspaces/revision-table.ts";
import {
  segmentPrefix,
  seriesKey,
  seriesTimeText,
  summaryOf,
} from "../state/keyspaces/time-series/time-series.ts";
import type { RecordSpan, Transaction } from "../state/store/transaction.ts";
import { segmentsIn } from "./series-source.ts";

const { HasAttachments, HasCounters, HasRevisions, HasTimeSeries, Revision } = documentFlags;
const { DeleteRevision, ForceCreated, FromOldDocumentRevision } = documentFlags;
/** The flags that a revision inherits from its document. */
const inheritedFlags =
  HasRevisions |
  HasAttachments |
  HasCounters |
  HasTimeSeries |
  documentFlags.Reverted |
  documentFlags.FromClusterTransaction |
  documentFlags.Artificial |
  documentFlags.FromReplication |
  documentFlags.Resolved |
  documentFlags.Conflicted;

/** Returns a copy of the document's newest record: the scratch buffer may move. @throws RecordNotResident */
export function copyOfRecord(transaction: Transaction, document: number): Buffer {
  const { bytes, start } = transaction.recordOf(document);
  return Buffer.from(bytes.subarray(start, start + recordLengthOf(bytes, start)));
}

/**
 * Creates a revision of a document's new state, after its record was staged, and removes revisions that exceed the
 * rule.
 */
export function keepNewState(transaction: Transaction, document: number, rule: RevisionRule): void {
  putRevision(transaction, document, copyOfRecord(transaction, document), Revision);
  dropOld(transaction, document, rule);
}

/** Creates a revision of a document's last state without one: its record, before the document is rewritten. */
export function keepOldState(transaction: Transaction, document: number, record: Buffer): void {
  putRevision(transaction, document, record, FromOldDocumentRevision | Revision);
}

/**
 * Must be called before attachments, counters or time series of a document change: creates a revision of its current
 * state, if its collection has a rule and the state has no revision yet.
 */
export function keepUnkeptState(transaction: Transaction, document: number): void {
  const { revisionRules } = transaction.keyspaces;
  if (revisionRules.of(transaction.collectionOf(document)) === null) return;
  if (transaction.revisionCountOf(document) > 0) return;
  keepOldState(transaction, document, copyOfRecord(transaction, document));
}

/**
 * Creates a revision of a document's present state, unless there is one.
 * @param record a copy of the document's newest record.
 * @returns whether one was created.
 */
export function forceRevision(transaction: Transaction, document: number, record: Buffer): boolean {
  if (findRevision(transaction, document, vectorOf(transaction, record)) !== null) return false;
  putRevision(transaction, document, record, Revision | ForceCreated);
  return true;
}

/**
 * Creates the revision that marks a document as deleted.
 * @param record the document's last record. @param changeVector, lastModified - of the deletion.
 */
export function keepDeletion(
  transaction: Transaction,
  document: number,
  record: Buffer,
  changeVector: string,
  lastModified: number,
): void {
  const { fields } = transaction.scratch;
  fields.setAllButBody(record, 0);
  fields.setMetadata(record, metadataStartOf(record, 0), 0);
  fields.setEmptyBody();
  fields.lastModified = lastModified;
  fields.flags = HasRevisions | DeleteRevision;
  fields.setChangeVector(changeVector);
  stage(transaction, document);
}

/** Removes the revisions that the rule allows to remove, oldest first. @returns how many. */
export function dropOld(transaction: Transaction, document: number, rule: RevisionRule): number {
  const { countMin, ageMicrosMin, dropsMax } = rule;
  if (transaction.keepsBefore || (countMin === null && ageMicrosMin === null)) return 0;
  const count = transaction.revisionCountOf(document);
  const due = Math.min(count - Math.max(0, countMin ?? 0), dropsMax ?? count);
  const newestToDrop = transaction.state.lastModified - (ageMicrosMin ?? 0);
  const dropped: RevisionFacts[] = [];
  if (due > 0) {
    for (const facts of transaction.revisionsOf(document)) {
      if (ageMicrosMin !== null && facts.lastModified > newestToDrop) break;
      dropped.push(facts);
      if (dropped.length === due) break;
    }
  }
  for (const facts of dropped) dropRevision(transaction, facts);
  return dropped.length;
}

/** Removes all revisions of a document. @returns how many there were. */
export function dropAll(transaction: Transaction, document: number): number {
  const dropped = [...transaction.revisionsOf(document)];
  for (const facts of dropped) dropRevision(transaction, facts);
  return dropped.length;
}

/** Removes one revision that the transaction sees. */
export function dropRevision(transaction: Transaction, facts: RevisionFacts): void {
  const { state, keyspaces } = transaction;
  const id = state.documents.lowerIdOf(facts.document);
  if ((facts.flags & HasAttachments) !== 0) {
    const prefix = revisionAttachmentKey(id, facts.etag, "");
    for (const [key] of transaction.entriesWithPrefix(keyspaces.attachments, prefix)) {
      transaction.putEntry(keyspaces.attachments, key, undefined);
    }
  }
  const etag = transaction.nextEtag();
  transaction.putTombstone("revision", id, facts.collectionId, etag, facts.etag);
  transaction.removeRevision(facts);
}

/** Returns the revision of a document with this change vector; null: none. @throws RecordNotResident */
export function findRevision(
  transaction: Transaction,
  document: number,
  changeVector: string,
): RevisionFacts | null {
  if (transaction.revisionCountOf(document) === 0) return null;
  const bytes = Buffer.from(changeVector, "latin1");
  const hash = changeVectorHash(bytes, 0, bytes.length);
  for (const facts of transaction.revisionsOf(document)) {
    if (facts.vectorHash !== hash) continue;
    const span = transaction.revisionRecord(facts);
    if (storedChangeVectorOf(span.bytes, span.start) === changeVector) return facts;
  }
  return null;
}

/** Returns a copy of a revision's record. @throws RecordNotResident */
export function copyOfRevision(transaction: Transaction, facts: RevisionFacts): Buffer {
  const { bytes, start }: RecordSpan = transaction.revisionRecord(facts);
  return Buffer.from(bytes.subarray(start, start + recordLengthOf(bytes, start)));
}

/** The facts of a revision in a dump, besides its text. */
interface RevisionOrigin {
  readonly changeVector: string;
  /** Microseconds since 1970. */
  readonly lastModified: number;
  /** Bits of `documentFlags`. */
  readonly flags: number;
  /** Their contents are in the blob store. */
  readonly attachments: readonly Omit<Attachment, "changeVector">[];
}

/**
 * Stores a parsed revision with its original facts, and removes revisions that exceed the rule. @returns false if a
 * revision with this change vector exists. @throws EngineError invalid-argument, RecordNotResident
 */
export function importRevision(
  transaction: Transaction,
  id: string,
  parsed: ParsedDocument,
  { changeVector, lastModified, flags, attachments }: RevisionOrigin,
): boolean {
  checkDocumentId(id);
  const { state, keyspaces } = transaction;
  const document = state.documents.intern(id);
  if (findRevision(transaction, document, changeVector) !== null) return false;
  const list = { key: "@attachments", valueText: listText(attachments.map(attachmentText)) };
  const metadata = state.metadata.fromParsed(parsed, [list]);
  const collectionId = keyspaces.collections.intern(metadata.collection);
  const { fields } = transaction.scratch;
  fields.setBody(parsed);
  fields.setId(id);
  fields.collectionId = collectionId;
  fields.lastModified = lastModified;
  fields.flags =
    (flags & ~HasAttachments) | HasRevisions | (list.valueText === null ? 0 : HasAttachments);
  fields.setChangeVector(changeVector);
  const isUsual = metadata.isOnly(state.collectionMember(collectionId));
  fields.setMetadata(metadata.text, 0, isUsual ? 0 : metadata.length);
  const etag = stage(transaction, document);
  for (const attachment of attachments) {
    const key = revisionAttachmentKey(id, etag, attachment.name);
    transaction.putEntry(keyspaces.attachments, key, { ...attachment, changeVector }, etag);
  }
  const rule = keyspaces.revisionRules.of(collectionId);
  if (rule !== null) dropOld(transaction, document, rule);
  return true;
}

function vectorOf({ state }: Transaction, record: Buffer): string {
  return changeVectorOf(record, 0, state.origin);
}

/** Stages a revision of the state in `record`, with these flags besides the inherited ones and HasRevisions. */
function putRevision(
  transaction: Transaction,
  document: number,
  record: Buffer,
  flags: number,
): void {
  const { state } = transaction;
  const { fields } = transaction.scratch;
  const kept = (documentFlagsOf(record, 0) & inheritedFlags) | HasRevisions | flags;
  fields.setAllButBody(record, 0);
  fields.setBodyOf(record, 0);
  fields.setChangeVector(vectorOf(transaction, record));
  fields.flags = kept;
  if ((kept & (HasCounters | HasTimeSeries)) !== 0) {
    const id = idOf(record, 0);
    const members: ServerMember[] = [];
    if ((kept & HasCounters) !== 0) {
      members.push({ key: "@counters", valueText: null });
      members.push({ key: "@counters-snapshot", valueText: countersSnapshot(transaction, id) });
    }
    if ((kept & HasTimeSeries) !== 0) {
      members.push({ key: "@timeseries", valueText: null });
      members.push({ key: "@timeseries-snapshot", valueText: seriesSnapshot(transaction, id) });
    }
    const length = metadataLengthOf(record, 0);
    const metadata = state.metadata.fromStored(record, metadataStartOf(record, 0), length, members);
    fields.setMetadata(metadata.text, 0, metadata.length);
  }
  const etag = stage(transaction, document);
  if ((kept & HasAttachments) !== 0) keepAttachments(transaction, record, etag);
}

/** Encodes and stages the revision in the fields of the scratch buffer under the next etag. @returns that etag */
function stage(transaction: Transaction, document: number): number {
  const { scratch } = transaction;
  const { fields } = scratch;
  const etag = transaction.nextEtag();
  fields.kind = recordKinds.revision;
  fields.etag = etag;
  const length = documentRecordLength(fields);
  const at = scratch.reserve(length);
  encodeDocumentRecord(scratch.bytes, at, fields);
  sealRecord(scratch.bytes, at);
  transaction.stageRevision(document, length);
  return etag;
}

/** `{"likes":5}`: the values of a document's counters as the transaction sees them. */
function countersSnapshot(transaction: Transaction, id: string): Buffer {
  const { counters } = transaction.keyspaces;
  const rows = transaction
    .entriesWithPrefix(counters, counterKey(id, ""))
    .map(([, { name, value }]) => `${JSON.stringify(name)}:${value}`);
  return Buffer.from(`{${rows.join(",")}}`);
}

/** `{"HeartRate":{"Count":4,"Start":date,"End":date}}`: a document's series as the transaction sees them. */
function seriesSnapshot(transaction: Transaction, id: string): Buffer {
  const { timeSeries } = transaction.keyspaces;
  const source = segmentsIn(transaction);
  const rows: string[] = [];
  for (const [, { name }] of transaction.entriesWithPrefix(timeSeries, seriesKey(id, ""))) {
    const summary = summaryOf(source, segmentPrefix(id, name));
    if (summary === undefined) continue;
    const { count, first, last } = summary;
    rows.push(
      `${JSON.stringify(name)}:{"Count":${count},"Start":"${seriesTimeText(first)}","End":"${seriesTimeText(last)}"}`,
    );
  }
  return Buffer.from(`{${rows.join(",")}}`);
}

/** References the attachment contents listed in the revision's record. */
function keepAttachments(transaction: Transaction, record: Buffer, etag: number): void {
  const { attachments } = transaction.keyspaces;
  const metadata = JSON.parse(`{${metadataTextOf(record, 0)}}`) as {
    readonly "@attachments"?: readonly Record<string, unknown>[];
  };
  const changeVector = vectorOf(transaction, record);
  for (const { Name, Hash, ContentType, Size } of metadata["@attachments"] ?? []) {
    const attachment: Attachment = {
      name: Name as string,
      hash: Hash as string,
      contentType: ContentType as string,
      size: Size as number,
      changeVector,
    };
    const key = revisionAttachmentKey(idOf(record, 0), etag, attachment.name);
    // An etag of its own, as every attachment has.
    transaction.putEntry(attachments, key, attachment, transaction.nextEtag());
  }
}
