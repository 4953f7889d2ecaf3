/**
 * What a transaction does with revisions: keeps the state that a document is given, or had before there were rules;
 * tells that one was deleted; drops those that are too many. Flags, order of etags and texts are those of RavenDB
 * 7.2.7.
 *
 * Invariants:
 * - A revision has content of its own for its attachments: it refers to them under keys of its own.
 * - A revision that goes leaves a tombstone, which says so to replay too.
 */

import {
  DocumentFields,
  documentRecordLength,
  encodeDocumentRecord,
} from "../document-encoding.ts";
import type { ServerMember } from "../document-metadata.ts";
import {
  changeVectorOf,
  documentFlags,
  documentFlagsOf,
  idOf,
  metadataLengthOf,
  metadataStartOf,
  metadataTextOf,
  recordLengthOf,
} from "../document-record.ts";
import type { Attachment } from "../keyspaces/attachments.ts";
import { attachmentsText, revisionAttachmentKey } from "../keyspaces/attachments.ts";
import { counterKey } from "../keyspaces/counters.ts";
import type { RevisionRule } from "../keyspaces/revision-rules.ts";
import { changeVectorHash, type RevisionFacts } from "../keyspaces/revision-table.ts";
import { segmentPrefix, seriesKey, seriesTimeText, summaryOf } from "../keyspaces/time-series.ts";
import { recordKinds, sealRecord } from "../log/record.ts";
import { checkDocumentId } from "../names.ts";
import type { RecordSpan, Transaction } from "../transaction.ts";
import { segmentsIn } from "./series-source.ts";

const { HasAttachments, HasCounters, HasRevisions, HasTimeSeries, Revision } = documentFlags;
const { DeleteRevision, ForceCreated, FromOldDocumentRevision } = documentFlags;
/** What a revision has of its document's flags. */
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

const emptyBody = Buffer.from("{}");
const fields = new DocumentFields();

/** The document's newest record in bytes of its own: the scratch buffer may move. @throws RecordNotResident */
export function copyOfRecord(transaction: Transaction, document: number): Buffer {
  const { bytes, start } = transaction.recordOf(document);
  return Buffer.from(bytes.subarray(start, start + recordLengthOf(bytes, start)));
}

/**
 * Makes a revision of the state that a document was just given, after its record was staged, and drops what the rule
 * has too many of.
 */
export function keepNewState(transaction: Transaction, document: number, rule: RevisionRule): void {
  putRevision(transaction, document, copyOfRecord(transaction, document), Revision);
  dropOld(transaction, document, rule);
}

/** Makes a revision of the state that a document had while it got none: its record, before it was written again. */
export function keepOldState(transaction: Transaction, document: number, record: Buffer): void {
  putRevision(transaction, document, record, FromOldDocumentRevision | Revision);
}

/**
 * Before something of a document changes beside its body: makes a revision of the document as it is, if it is to have
 * revisions and has none yet.
 */
export function keepUnkeptState(transaction: Transaction, document: number): void {
  const { revisionRules } = transaction.keyspaces;
  if (revisionRules.of(transaction.collectionOf(document)) === null) return;
  if (transaction.revisionCountOf(document) > 0) return;
  keepOldState(transaction, document, copyOfRecord(transaction, document));
}

/**
 * Makes a revision of a document's state as it is, unless there is one.
 * @param record the document's newest one, with bytes of its own.
 * @returns whether one was made.
 */
export function forceRevision(transaction: Transaction, document: number, record: Buffer): boolean {
  if (findRevision(transaction, document, vectorOf(transaction, record)) !== null) return false;
  putRevision(transaction, document, record, Revision | ForceCreated);
  return true;
}

/**
 * Makes the revision that says that a document was deleted.
 * @param record the document's last one. @param changeVector, lastModified - of the deletion.
 */
export function keepDeletion(
  transaction: Transaction,
  document: number,
  record: Buffer,
  changeVector: string,
  lastModified: number,
): void {
  fields.setAllButBody(record, 0);
  fields.setMetadata(record, metadataStartOf(record, 0), 0);
  fields.bodySource = emptyBody;
  fields.bodyStart = 0;
  fields.bodyLength = emptyBody.length;
  fields.isAscii = true;
  fields.shapeId = 0;
  fields.fieldCount = 0;
  fields.lastModified = lastModified;
  fields.flags = HasRevisions | DeleteRevision;
  fields.setChangeVector(changeVector);
  stage(transaction, document);
}

/** Drops what the rule allows to drop, oldest first. @returns how many went. */
export function dropOld(transaction: Transaction, document: number, rule: RevisionRule): number {
  const { countMin, ageMicrosMin, dropsMax } = rule;
  if (countMin === null && ageMicrosMin === null) return 0;
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

/** Drops all revisions of a document. @returns how many there were. */
export function dropAll(transaction: Transaction, document: number): number {
  const dropped = [...transaction.revisionsOf(document)];
  for (const facts of dropped) dropRevision(transaction, facts);
  return dropped.length;
}

/** Drops one revision that the transaction sees. */
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

/** The revision of a document that keeps the state of this change vector; null: none. @throws RecordNotResident */
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
    if (changeVectorOf(span.bytes, span.start, "") === changeVector) return facts;
  }
  return null;
}

/** The record of a revision, with bytes of its own. @throws RecordNotResident */
export function copyOfRevision(transaction: Transaction, facts: RevisionFacts): Buffer {
  const { bytes, start }: RecordSpan = transaction.revisionRecord(facts);
  return Buffer.from(bytes.subarray(start, start + recordLengthOf(bytes, start)));
}

/** What a dump says of a revision beside its text. */
export interface RevisionOrigin {
  readonly changeVector: string;
  /** Microseconds since 1970. */
  readonly lastModified: number;
  /** Bits of `documentFlags`. */
  readonly flags: number;
  /** Their contents are in the blob store. */
  readonly attachments: readonly Omit<Attachment, "changeVector">[];
}

/**
 * Stores the revision that the database's parser parsed last, as it was somewhere else, and drops what the rule has too
 * many of. @returns false when there is one of this change vector. @throws EngineError invalid-argument, RecordNotResident
 */
export function importRevision(
  transaction: Transaction,
  id: string,
  { changeVector, lastModified, flags, attachments }: RevisionOrigin,
): boolean {
  checkDocumentId(id);
  const { state, keyspaces } = transaction;
  const document = state.documents.intern(id);
  if (findRevision(transaction, document, changeVector) !== null) return false;
  const listText = attachmentsText(
    attachments.map((attachment) => ({ ...attachment, changeVector })),
  );
  const list = { key: "@attachments", valueText: listText === null ? null : Buffer.from(listText) };
  state.metadata.fromParser(state.parser, [list]);
  const { metadata } = state;
  const collectionId = keyspaces.collections.intern(metadata.collection);
  fields.setBody(state.parser);
  fields.setId(id);
  fields.collectionId = collectionId;
  fields.lastModified = lastModified;
  fields.flags =
    (flags & ~HasAttachments) | HasRevisions | (listText === null ? 0 : HasAttachments);
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
  return changeVectorOf(record, 0, state.databaseHash);
}

/** Stages a revision of the state in `record`, with these flags beside the inherited ones and HasRevisions. */
function putRevision(
  transaction: Transaction,
  document: number,
  record: Buffer,
  flags: number,
): void {
  const { state } = transaction;
  fields.setAllButBody(record, 0);
  fields.setBodyOf(record, 0);
  fields.setChangeVector(vectorOf(transaction, record));
  fields.flags = (documentFlagsOf(record, 0) & inheritedFlags) | HasRevisions | flags;
  if ((fields.flags & (HasCounters | HasTimeSeries)) !== 0) {
    const id = idOf(record, 0);
    const members: ServerMember[] = [];
    if ((fields.flags & HasCounters) !== 0) {
      members.push({ key: "@counters", valueText: null });
      members.push({ key: "@counters-snapshot", valueText: countersSnapshot(transaction, id) });
    }
    if ((fields.flags & HasTimeSeries) !== 0) {
      members.push({ key: "@timeseries", valueText: null });
      members.push({ key: "@timeseries-snapshot", valueText: seriesSnapshot(transaction, id) });
    }
    const length = metadataLengthOf(record, 0);
    state.metadata.fromStored(record, metadataStartOf(record, 0), length, members);
    fields.setMetadata(state.metadata.text, 0, state.metadata.length);
  }
  const etag = stage(transaction, document);
  if ((fields.flags & HasAttachments) !== 0) keepAttachments(transaction, record, etag);
}

/** Encodes and stages the revision in `fields` under the next etag. @returns it */
function stage(transaction: Transaction, document: number): number {
  const { scratch } = transaction;
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

/** Lets the revision refer to the contents that its record names. */
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
