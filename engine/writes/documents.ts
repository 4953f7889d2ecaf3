/**
 * Document operations of a transaction: store, delete, and rewrite when the lists of attachments, counters or time
 * series have changed. Error texts equal those of RavenDB 7.2.7.
 */

import { idFormOf, serverMadeId } from "../base/document-id.ts";
import { isDueTimeAccepted } from "../base/due-time.ts";
import { EngineError } from "../base/errors.ts";
import { bytesEqual } from "../base/json/bytes.ts";
import { documentBytesMax } from "../base/limits.ts";
import { checkDocumentId, checkIdentityName } from "../base/names.ts";
import { crcLengthMin, sealRecord, sealRecordAround } from "../base/record.ts";
import { finish, type Work } from "../base/scheduling/work-budget.ts";
import { formatTimestamp } from "../base/timestamp.ts";
import type { ValuePrinter } from "../scripting/values/value-printer.ts";
import {
  type DocumentFields,
  documentRecordLength,
  encodeDocumentRecord,
} from "../state/documents/document-encoding.ts";
import {
  type ComposedMetadata,
  listText,
  type ServerMember,
} from "../state/documents/document-metadata.ts";
import { metadataSpanSlots } from "../state/documents/document-parser.ts";
import {
  bodyLengthOf,
  bodyStartOf,
  changeVectorOf,
  collectionIdOf,
  documentFlags,
  documentHeaderBytes,
  explicitVectorRowFlag,
  idOf,
  lastModifiedOf,
  metadataLengthOf,
  metadataStartOf,
  recordLengthOf,
  shapeIdOf,
} from "../state/documents/document-record.ts";
import {
  ParsedDocument,
  type ParseResults,
  type PlacedBody,
} from "../state/documents/parsed-document.ts";
import { attachmentKey, attachmentText } from "../state/keyspaces/attachments.ts";
import { counterKey } from "../state/keyspaces/counters.ts";
import { documentKey, type EntryKeyspace } from "../state/keyspaces/entry-keyspace.ts";
import { identityKey } from "../state/keyspaces/identities.ts";
import type { DocumentPartName } from "../state/keyspaces/state-kinds.ts";
import type { DatabaseState } from "../state/store/database-state.ts";
import { hasSigma, sigmaFoldedKey } from "../state/store/sigma-ids.ts";
import type { Transaction } from "../state/store/transaction.ts";
import { removeAttachment } from "./attachments.ts";
import {
  copyOfRecord,
  dropAll,
  dropOld,
  forceRevision,
  keepDeletion,
  keepNewState,
  keepOldState,
  keepUnkeptState,
} from "./revisions.ts";
import { removeSegmentsOf, removeSeriesOf, rewriteSegmentsOf } from "./time-series.ts";

/** The facts of a stored document. */
export class StoredDocument {
  readonly id: string;
  readonly document: number;
  readonly etag: number;
  /** The collection as the document spells it, `@empty` when it names none. */
  readonly collection: string;
  /** Microseconds since 1970. */
  readonly lastModified: number;
  /** Bits of `documentFlags`. */
  readonly flags: number;
  readonly #state: DatabaseState;
  /** "": the default one. */
  readonly #vector: string;

  constructor(
    state: DatabaseState,
    id: string,
    document: number,
    etag: number,
    collection: string,
    lastModified: number,
    flags: number,
    vector: string,
  ) {
    this.#state = state;
    this.#vector = vector;
    this.id = id;
    this.document = document;
    this.etag = etag;
    this.collection = collection;
    this.lastModified = lastModified;
    this.flags = flags;
  }

  /** Whether its change vector follows from its etag. */
  get hasDefaultVector(): boolean {
    return this.#vector === "";
  }

  /** Composed on demand: a bulk insert never needs it. */
  get changeVector(): string {
    return this.#vector === "" ? this.#state.changeVectorAt(this.etag) : this.#vector;
  }
}

const noMembers: readonly ServerMember[] = [];
const noBytes = Buffer.alloc(0);
/**
 * Text of up to this many UTF-16 units is parsed in place, where its record will be; three bytes are reserved per unit.
 */
const textInPlaceLengthMax = 16 * 1024;
const bytesPerUnitMax = 3;
const listFlags =
  documentFlags.HasAttachments | documentFlags.HasCounters | documentFlags.HasTimeSeries;
/** Flags of a document that stay when it is written again. */
export const keptFlags = listFlags | documentFlags.HasRevisions;

/** Source of the body of a document to write: a parsed document, or a record that begins at byte 0. */
type Body = ParsedDocument | Buffer;

/** Numbers of an identity in use that one put may skip: it bounds the time of its transaction. */
const passedNumbersMax = 10_000;

/**
 * Returns the id to store under: `a/` becomes a server-made id with the etag of this write, `a|` the next identity.
 * @param passesOver whether to skip identity numbers that documents already use (RavenDB 7.2.7 overwrites those
 * documents)
 * @returns the id, and the etag that it contains, else 0. @throws EngineError concurrency if too many must be skipped
 */
function resolveId(
  transaction: Transaction,
  id: string,
  passesOver: boolean,
): { id: string; etag: number } {
  const { idSeparator } = transaction.keyspaces;
  switch (idFormOf(id, idSeparator)) {
    case "plain":
      return { id, etag: 0 };
    case "server": {
      const etag = transaction.nextEtag();
      return { id: serverMadeId(id, etag, transaction.state.origin.nodeTag), etag };
    }
    case "identity": {
      const prefix = id.slice(0, -1) + idSeparator;
      const isFree = (number: number) => transaction.find(prefix + number) < 0;
      const number = nextIdentity(transaction, id, passesOver ? isFree : undefined);
      return { id: prefix + number, etag: 0 };
    }
  }
}

/**
 * Returns the next number of an identity (`users|`); a new one starts at 1.
 * @param isFree returns whether a number may be assigned. Other numbers are skipped; undefined: all may be assigned.
 * @throws EngineError invalid-operation after 2^53-1; concurrency if too many must be skipped
 */
export function nextIdentity(
  transaction: Transaction,
  name: string,
  isFree: (number: number) => boolean = () => true,
): number {
  const key = identityKey(name);
  const { identities } = transaction.keyspaces;
  const last = transaction.entry(identities, key);
  if (last === undefined) checkIdentityName(key);
  const first = (last ?? 0) + 1;
  // Found before it is staged: each staged number is a record in the log.
  for (let number = first; number < first + passedNumbersMax; number++) {
    if (!Number.isSafeInteger(number)) {
      throw new EngineError(
        "invalid-operation",
        `The numbers of the identity '${key}' are used up: the last that it can give is ${Number.MAX_SAFE_INTEGER}.`,
      );
    }
    if (!isFree(number)) continue;
    transaction.putEntry(identities, key, number);
    return number;
  }
  throw new EngineError(
    "concurrency",
    `The next ${passedNumbersMax} numbers of the identity '${name}' belong to documents already. Raise it with identity/seed.`,
  );
}

/**
 * Sets the last number of an identity; an existing one is only raised, unless `isForced`. @returns its present value
 * @throws out-of-range
 */
export function seedIdentity(
  transaction: Transaction,
  name: string,
  value: number,
  isForced: boolean,
): number {
  if (!Number.isSafeInteger(value)) {
    throw new EngineError("out-of-range", `The identity '${name}' cannot be set to ${value}.`);
  }
  const key = identityKey(name);
  const { identities } = transaction.keyspaces;
  const current = transaction.entry(identities, key);
  if (current === undefined) checkIdentityName(key);
  if (current !== undefined && current >= value && !isForced) return current;
  transaction.putEntry(identities, key, value);
  return value;
}

/** Options for storing a document from a dump. */
export interface PutOptions {
  /** Microseconds since 1970; undefined: now. */
  readonly lastModified?: number | undefined;
  /** Bits of `documentFlags` to set in addition to the kept ones; the list flags follow from the keyspaces. */
  readonly addedFlags: number;
  /** The document gets no revision. */
  readonly skipsRevision: boolean;
}

const usualPut: PutOptions = { addedFlags: 0, skipsRevision: false };

/**
 * Stores a document's text. Short text is written and parsed in place, where its record will be.
 * @param expected as for `putParsed`. @throws EngineError json-…, and as `putParsed`
 */
export function putText(
  transaction: Transaction,
  id: string,
  text: string,
  expected?: string,
): StoredDocument {
  const { state, scratch } = transaction;
  if (
    text.length > textInPlaceLengthMax ||
    idFormOf(id, transaction.keyspaces.idSeparator) !== "plain"
  ) {
    return putParsed(transaction, id, state.parseText(text), expected);
  }
  const bodyAt = documentHeaderBytes + id.length;
  const from = scratch.reserve(bodyAt + text.length * bytesPerUnitMax) + bodyAt;
  const to = from + scratch.bytes.utf8Write(text, from);
  return putParsed(transaction, id, state.parser.parse(scratch.bytes, from, to), expected);
}

/**
 * Stores a document that was parsed.
 * @param expected undefined: no check; "": must not exist; else the current change vector.
 * @param clusterVector its change vector, when a cluster-wide transaction assigns one.
 * @throws EngineError concurrency, collection-mismatch, invalid-argument, not-supported
 */
export function putParsed(
  transaction: Transaction,
  id: string,
  parsed: ParsedDocument,
  expected?: string,
  clusterVector?: string,
  options: PutOptions = usualPut,
): StoredDocument {
  let own = id;
  let etag = 0;
  if (idFormOf(id, transaction.keyspaces.idSeparator) !== "plain") {
    ({ id: own, etag } = resolveId(transaction, id, expected === undefined));
  }
  return putResolved(transaction, own, etag, parsed, expected, clusterVector, options);
}

/** `putParsed` under a final id. `etag` 0: assign the next. */
function putResolved(
  transaction: Transaction,
  id: string,
  etag: number,
  parsed: ParsedDocument,
  expected: string | undefined,
  clusterVector: string | undefined,
  options: PutOptions,
): StoredDocument {
  checkDocumentId(id);
  const { state } = transaction;
  const document = state.documents.intern(id);
  if (hasSigma(id)) markSigmaFolded(transaction);
  const exists = transaction.exists(document);
  if (expected !== undefined) {
    checkExpected(transaction, document, exists, id, expected, "Put");
  }
  let flags = keptFlagsOf(transaction, document, exists) | options.addedFlags;
  if (clusterVector !== undefined) flags |= documentFlags.FromClusterTransaction;
  checkDueTimes(parsed.found, id, state.nowMicros());
  const metadata = state.metadata.fromParsed(parsed, listsNow(transaction, id, flags));
  const { collection } = metadata;
  const collectionId = state.keyspaces.collections.intern(collection);
  if (exists) checkCollection(transaction, document, collectionId, id, collection);
  const rule = options.skipsRevision ? null : state.keyspaces.revisionRules.of(collectionId);
  const keepsBefore = transaction.keepsBefore && exists;
  const old = (rule !== null || keepsBefore) && exists ? copyOfRecord(transaction, document) : null;
  // Storing an identical document creates no revision.
  const isSame = old !== null && holdsSame(state, old, 0, collectionId, parsed, metadata);
  const newRule = isSame ? null : rule;
  const isKept = keepsBefore && !isSame;
  const newFlags = newRule === null && !isKept ? flags : flags | documentFlags.HasRevisions;
  const isUsual = !exists && state.keyspaces.clusterCount === 0;
  const vector = clusterVector ?? (isUsual ? "" : undefined);
  const { lastModified } = options;
  const stored = write(
    transaction,
    document,
    id,
    etag,
    collectionId,
    newFlags,
    parsed,
    metadata,
    vector,
    lastModified,
  );
  if (isKept && old !== null) forceRevision(transaction, document, old);
  if (newRule === null) return stored;
  if (old !== null && !isKept && (flags & documentFlags.HasRevisions) === 0) {
    keepOldState(transaction, document, old);
  }
  keepNewState(transaction, document, newRule);
  return stored;
}

/** Returns the flags of the lists that are not empty: see `listsOf`. */
function listFlagsOf([attachments, counters, series]: readonly ServerMember[]): number {
  return (
    (attachments?.valueText == null ? 0 : documentFlags.HasAttachments) |
    (counters?.valueText == null ? 0 : documentFlags.HasCounters) |
    (series?.valueText == null ? 0 : documentFlags.HasTimeSeries)
  );
}

/**
 * Flags that are kept when a document is rewritten. HasRevisions is set whenever it has revisions, however they were
 * made.
 */
function keptFlagsOf(transaction: Transaction, document: number, exists = true): number {
  const hasRevisions = transaction.revisionCountOf(document) > 0 ? documentFlags.HasRevisions : 0;
  return (exists ? transaction.flagsOf(document) & keptFlags : 0) | hasRevisions;
}

/** Returns whether the record has this body and this metadata. */
function holdsSame(
  state: DatabaseState,
  bytes: Buffer,
  start: number,
  collectionId: number,
  { found }: ParsedDocument,
  metadata: ComposedMetadata,
): boolean {
  const { source, sourceStart, bodyLength } = found;
  if (bodyLengthOf(bytes, start) !== bodyLength) return false;
  // The last byte of both is a brace, which need not be in the source.
  const bodyStart = bodyStartOf(bytes, start);
  if (!bytesEqual(bytes, bodyStart, source, sourceStart, bodyLength - 1)) return false;
  const length = metadataLengthOf(bytes, start);
  if (length === 0) return metadata.isOnly(state.collectionMember(collectionId));
  return (
    length === metadata.length &&
    bytesEqual(bytes, metadataStartOf(bytes, start), metadata.text, 0, length)
  );
}

/** Returns whether storing `parsed` under `id` would change nothing. */
export function isUnchanged(transaction: Transaction, id: string, parsed: ParsedDocument): boolean {
  const document = transaction.find(id);
  if (document < 0) return false;
  const { state } = transaction;
  const { bytes, start } = transaction.recordOf(document);
  if (idOf(bytes, start) !== id) return false;
  const lists = listsNow(transaction, id, transaction.flagsOf(document));
  const metadata = state.metadata.fromParsed(parsed, lists);
  const collectionId = transaction.collectionOf(document);
  return holdsSame(state, bytes, start, collectionId, parsed, metadata);
}

/**
 * Deletes a document with its attachments, counters and time series.
 * @param clusterVector as for `putParsed`.
 * @param keepsRevision false: no revision of it is created, regardless of the configuration
 * @returns false if it did not exist. @throws EngineError concurrency
 */
export function deleteDocument(
  transaction: Transaction,
  id: string,
  expected?: string,
  clusterVector?: string,
  keepsRevision = true,
): boolean {
  const { state } = transaction;
  const document = transaction.find(id);
  if (expected !== undefined) {
    checkExpected(transaction, document, document >= 0, id, expected, "Delete");
  }
  if (document < 0) return false;
  const collectionId = transaction.collectionOf(document);
  // Lists added by this transaction are not in the flags before its end.
  const added = transaction.isTouched(document) ? listFlags : 0;
  const flags = transaction.flagsOf(document) | added;
  const storedId = storedIdOf(transaction, document);
  const { keepsBefore } = transaction;
  const rule = keepsRevision ? transaction.keyspaces.revisionRules.of(collectionId) : null;
  const isVersioned =
    keepsBefore || (keepsRevision && (rule !== null || (flags & documentFlags.HasRevisions) !== 0));
  const old = isVersioned ? copyOfRecord(transaction, document) : null;
  if (keepsBefore && (flags & documentFlags.HasTimeSeries) !== 0) throw seriesNotKept(storedId);
  if (keepsBefore && old !== null) forceRevision(transaction, document, old);
  else if (rule?.purgesOnDelete === false) keepUnkeptState(transaction, document);
  removeParts(transaction, storedId, flags, collectionId);
  const etag = transaction.nextEtag();
  const ownVector = clusterVector ?? writtenVector(transaction, document, etag);
  const changeVector = ownVector === "" ? state.changeVectorAt(etag) : ownVector;
  transaction.putTombstone("document", storedId, collectionId, etag);
  if (rule?.purgesOnDelete === true && !keepsBefore) dropAll(transaction, document);
  else if (old !== null) {
    keepDeletion(transaction, document, old, changeVector, state.lastModified);
    if (rule !== null) dropOld(transaction, document, rule);
  }
  transaction.stageDocument(document, etag, 0, collectionId, 0);
  transaction.untouch(document);
  transaction.changed({
    kind: "document",
    type: "Delete",
    id: storedId,
    collectionId,
    etag,
    changeVector,
  });
  return true;
}

function seriesNotKept(id: string): EngineError {
  return new EngineError(
    "invalid-operation",
    `Document '${id}' has time series, which revisions do not keep: its deletion could not be undone. Leave such documents out, or delete without undo.`,
  );
}

/** How the parts of a deleted document are removed; `flag`: of documents that have some. */
interface PartRemoval {
  readonly flag: number;
  remove(transaction: Transaction, storedId: string, collectionId: number): void;
}

const partRemovals: Readonly<Record<DocumentPartName, PartRemoval>> = {
  attachments: {
    flag: documentFlags.HasAttachments,
    remove(transaction, storedId, collectionId) {
      const { attachments } = transaction.keyspaces;
      const prefix = attachmentKey(storedId, "");
      for (const [, attachment] of transaction.entriesWithPrefix(attachments, prefix)) {
        removeAttachment(transaction, storedId, attachment, collectionId);
      }
    },
  },
  counters: {
    flag: documentFlags.HasCounters,
    remove(transaction, storedId) {
      const { counters } = transaction.keyspaces;
      for (const [key] of transaction.entriesWithPrefix(counters, counterKey(storedId, ""))) {
        transaction.putEntry(counters, key, undefined);
      }
    },
  },
  timeSeriesSegments: { flag: documentFlags.HasTimeSeries, remove: removeSegmentsOf },
  timeSeries: { flag: documentFlags.HasTimeSeries, remove: removeSeriesOf },
};
const partRemovalList = Object.values(partRemovals);

function removeParts(
  transaction: Transaction,
  storedId: string,
  flags: number,
  collectionId: number,
): void {
  for (const { flag, remove } of partRemovalList) {
    if ((flags & flag) !== 0) remove(transaction, storedId, collectionId);
  }
}

/** Rewrites each touched document with its present lists. Called at the end of a transaction. */
export function* rewriteTouched(transaction: Transaction): Work<void> {
  for (const document of transaction.takeTouched()) {
    if (transaction.exists(document)) yield* rewriteLists(transaction, document);
    yield;
  }
}

/** Returns the current change vector of a document that exists. @throws RecordNotResident */
export function currentChangeVector(transaction: Transaction, document: number): string {
  const { state } = transaction;
  if ((transaction.flagsOf(document) & explicitVectorRowFlag) === 0) {
    return state.changeVectorAt(transaction.etagOf(document));
  }
  const { bytes, start } = transaction.recordOf(document);
  return changeVectorOf(bytes, start, state.origin);
}

/** From now on the spelling of an id with a sigma may change (sigma-ids.ts). */
function markSigmaFolded(transaction: Transaction): void {
  const { values } = transaction.keyspaces;
  if (transaction.entry(values, sigmaFoldedKey) === true) return;
  transaction.putEntry(values, sigmaFoldedKey, true);
}

/** Returns the id as the document spells it. @throws RecordNotResident */
export function storedIdOf(transaction: Transaction, document: number): string {
  const { bytes, start } = transaction.recordOf(document);
  return idOf(bytes, start);
}

/**
 * Replaces a document's body with the result of a script, which has no `@metadata`; the rest of its record is retained.
 * Not for documents whose collection has a rule for revisions.
 * @throws RecordNotResident, EngineError json-…, too-large
 */
export function putPrinted(transaction: Transaction, document: number, body: ValuePrinter): void {
  const { state, scratch } = transaction;
  const { fields } = scratch;
  const { bytes, start } = transaction.recordOf(document);
  const isStored = body.isStored && body.length <= documentBytesMax;
  const parsed = isStored ? null : state.parser.parse(body.bytes, 0, body.length);
  const etag = transaction.nextEtag();
  const old = transaction.keepsBefore ? copyOfRecord(transaction, document) : null;
  const kept = transaction.flagsOf(document) & keptFlags;
  const flags = old === null ? kept : kept | documentFlags.HasRevisions;
  const collectionId = transaction.collectionOf(document);
  const vector = writtenVector(transaction, document, etag);
  fields.setAllButBody(bytes, start);
  if (parsed === null) setPrinted(fields, state, body, shapeIdOf(bytes, start));
  else fields.setBody(parsed);
  fields.setChangeVector(vector);
  fields.etag = etag;
  fields.lastModified = state.nextModified();
  fields.flags = flags;
  const recordLength = documentRecordLength(fields);
  const at = scratch.reserve(recordLength);
  encodeDocumentRecord(scratch.bytes, at, fields);
  sealRecord(scratch.bytes, at);
  const rowFlags = vector === "" ? flags : flags | explicitVectorRowFlag;
  transaction.stageDocument(document, etag, recordLength, collectionId, rowFlags);
  if (!transaction.isUnwatched) {
    const changeVector = vector === "" ? state.changeVectorAt(etag) : vector;
    const id = idOf(bytes, start);
    transaction.changed({ kind: "document", type: "Put", id, collectionId, etag, changeVector });
  }
  if (old !== null) forceRevision(transaction, document, old);
}

/** Uses body, shape and field offsets of the printer, whose output is already in stored form. */
function setPrinted(
  fields: DocumentFields,
  { shapes }: DatabaseState,
  body: ValuePrinter,
  oldShapeId: number,
): void {
  const { bytes, length, isAscii, valueStarts } = body;
  const shapeId = body.hasSameFields
    ? oldShapeId
    : shapes.define(bytes, body.keySpans, 0, 2, body.fieldCount);
  const fieldCount = shapeId === 0 ? 0 : body.fieldCount;
  fields.setBodyText(bytes, length, isAscii, shapeId, fieldCount, valueStarts);
}

/** Rewrites a touched document now, for callers that need its change vector. */
export function rewriteNow(transaction: Transaction, document: number): StoredDocument {
  transaction.untouch(document);
  return finish(rewriteLists(transaction, document));
}

/** Rewrites a document without its `@refresh`. */
export function refreshDocument(transaction: Transaction, document: number): void {
  finish(rewriteLists(transaction, document, [{ key: "@refresh", valueText: null }]));
}

function* rewriteLists(
  transaction: Transaction,
  document: number,
  others: readonly ServerMember[] = noMembers,
): Work<StoredDocument> {
  const { state } = transaction;
  const lists = yield* listsOf(transaction, storedIdOf(transaction, document), listFlags);
  const record = transaction.recordOf(document);
  // A copy: the record may be in the scratch buffer, which can move as more is written.
  const length = recordLengthOf(record.bytes, record.start);
  const bytes = Buffer.from(record.bytes.subarray(record.start, record.start + length));
  const id = idOf(bytes, 0);
  const collectionId = transaction.collectionOf(document);
  const rule = transaction.importsLists ? null : state.keyspaces.revisionRules.of(collectionId);
  const flags =
    (keptFlagsOf(transaction, document) & ~listFlags) |
    (rule === null ? 0 : documentFlags.HasRevisions) |
    listFlagsOf(lists);
  if (rule !== null && transaction.revisionCountOf(document) === 0) {
    keepOldState(transaction, document, bytes);
  }
  const metadata = storedMetadata(state, bytes, collectionId, [...lists, ...others]);
  const stored = write(transaction, document, id, 0, collectionId, flags, bytes, metadata);
  if (rule !== null) keepNewState(transaction, document, rule);
  return stored;
}

/**
 * Creates a revision of a document's current state, regardless of the rules. A document without revisions is first
 * rewritten with HasRevisions. @returns null if the state already had a revision. @throws EngineError invalid-operation
 */
export function forceRevisionOf(transaction: Transaction, id: string): StoredDocument | null {
  const document = transaction.find(id);
  if (document < 0) {
    throw new EngineError(
      "invalid-operation",
      `Failed to create revision for document ${id} because document doesn't exits.`,
    );
  }
  const flags = transaction.flagsOf(document);
  if ((flags & documentFlags.HasRevisions) === 0) {
    const record = copyOfRecord(transaction, document);
    const stored = rewriteWithFlags(
      transaction,
      document,
      record,
      flags | documentFlags.HasRevisions,
    );
    forceRevision(transaction, document, copyOfRecord(transaction, document));
    return stored;
  }
  const record = copyOfRecord(transaction, document);
  if (!forceRevision(transaction, document, record)) return null;
  return new StoredDocument(
    transaction.state,
    idOf(record, 0),
    document,
    transaction.etagOf(document),
    "",
    lastModifiedOf(record, 0),
    flags & ~explicitVectorRowFlag,
    currentChangeVector(transaction, document),
  );
}

/** Creates a revision of a document's state before it is written. @throws EngineError invalid-operation */
export function forceRevisionBefore(transaction: Transaction, id: string): void {
  const document = transaction.find(id);
  if (document < 0) {
    throw new EngineError(
      "invalid-operation",
      `Can't force revision creation - the document was not saved on the server yet. document: ${id}.`,
    );
  }
  forceRevision(transaction, document, copyOfRecord(transaction, document));
}

/** Rewrites a document with the content of `record` and other flags. */
export function rewriteWithFlags(
  transaction: Transaction,
  document: number,
  record: Buffer,
  flags: number,
): StoredDocument {
  const { state } = transaction;
  const collectionId = transaction.collectionOf(document);
  const metadata = storedMetadata(state, record, collectionId, noMembers);
  const id = idOf(record, 0);
  const kept = flags & keptFlags;
  return write(transaction, document, id, 0, collectionId, kept, record, metadata);
}

/**
 * Stores the state in a record of the document or of a revision, with the present names of attachments and counters and
 * an additional flag; it gets a revision like any write.
 */
export function putStored(
  transaction: Transaction,
  document: number,
  record: Buffer,
  flag: number,
): StoredDocument {
  const { state } = transaction;
  const id = idOf(record, 0);
  const collectionId = collectionIdOf(record, 0);
  const rule = state.keyspaces.revisionRules.of(collectionId);
  const exists = transaction.exists(document);
  if (exists && rule !== null) keepUnkeptState(transaction, document);
  if (exists && transaction.collectionOf(document) !== collectionId) {
    // The document leaves a collection: its followers (and replay) learn that from a tombstone.
    const etag = transaction.nextEtag();
    transaction.putTombstone("document", id, transaction.collectionOf(document), etag);
    rewriteSegmentsOf(transaction, id);
  }
  const lists = listsNow(transaction, id, listFlags);
  const flags =
    (keptFlagsOf(transaction, document, exists) & ~listFlags) |
    (rule === null && transaction.revisionCountOf(document) === 0
      ? 0
      : documentFlags.HasRevisions) |
    listFlagsOf(lists) |
    flag;
  const metadata = storedMetadata(state, record, collectionId, [
    ...lists,
    { key: "@counters-snapshot", valueText: null },
    { key: "@timeseries-snapshot", valueText: null },
  ]);
  const stored = write(transaction, document, id, 0, collectionId, flags, record, metadata);
  if (rule !== null) keepNewState(transaction, document, rule);
  return stored;
}

/** Returns the stored members of a record's metadata, some of them replaced. */
function storedMetadata(
  state: DatabaseState,
  record: Buffer,
  collectionId: number,
  members: readonly ServerMember[],
): ComposedMetadata {
  const length = metadataLengthOf(record, 0);
  if (length > 0) {
    return state.metadata.fromStored(record, metadataStartOf(record, 0), length, members);
  }
  const member = state.collectionMember(collectionId);
  return state.metadata.fromStored(member, 0, member.length, members);
}

/**
 * Encodes and stages a document. Etag 0: assign the next.
 * @param ownVector its change vector, if known; "": the default one.
 */
function write(
  transaction: Transaction,
  document: number,
  id: string,
  reservedEtag: number,
  collectionId: number,
  flags: number,
  body: Body,
  metadata: ComposedMetadata,
  ownVector?: string,
  givenModified?: number,
): StoredDocument {
  const { state, scratch } = transaction;
  const { fields } = scratch;
  const etag = reservedEtag === 0 ? transaction.nextEtag() : reservedEtag;
  const lastModified = givenModified ?? state.nextModified();
  const vector = ownVector ?? writtenVector(transaction, document, etag);
  fields.etag = etag;
  fields.lastModified = lastModified;
  fields.collectionId = collectionId;
  fields.flags = flags;
  fields.setId(id);
  fields.setChangeVector(vector);
  const isUsual = metadata.isOnly(state.collectionMember(collectionId));
  if (isUsual) fields.setMetadata(noBytes, 0, 0);
  else fields.setMetadata(metadata.text, 0, metadata.length);
  const placed = setBody(fields, body);
  if (placed !== null) usePlaced(transaction, placed);
  const recordLength = documentRecordLength(fields);
  const at = scratch.reserve(recordLength);
  encodeDocumentRecord(scratch.bytes, at, fields);
  seal(scratch.bytes, at, placed);
  const rowFlags = vector === "" ? flags : flags | explicitVectorRowFlag;
  transaction.stageDocument(document, etag, recordLength, collectionId, rowFlags);
  if (!transaction.isUnwatched) {
    const changeVector = vector === "" ? state.changeVectorAt(etag) : vector;
    transaction.changed({ kind: "document", type: "Put", id, collectionId, etag, changeVector });
  }
  const { collection } = metadata;
  return new StoredDocument(state, id, document, etag, collection, lastModified, flags, vector);
}

/** @returns the position of a prepared document's body; null if the body is not of a prepared document */
function setBody(fields: DocumentFields, body: Body): PlacedBody | null {
  if (body instanceof ParsedDocument) {
    fields.setBody(body);
    return body.placed;
  }
  fields.setBodyOf(body, 0);
  return null;
}

/**
 * If the body of a prepared document is already where its record needs it, its buffer becomes the scratch buffer. It is
 * never moved: the transaction may run again.
 */
function usePlaced({ scratch }: Transaction, placed: PlacedBody): void {
  const { idLength, changeVectorLength, metadataLength } = scratch.fields;
  const lead = documentHeaderBytes + idLength + changeVectorLength + metadataLength;
  if (lead === placed.bodyStart) scratch.adopt(placed.bytes);
}

/** Writes the checksum of the record at `at`. The body of a prepared document is not read again for it. */
function seal(bytes: Buffer, at: number, placed: PlacedBody | null): void {
  // Minified, a long text can be short.
  if (placed === null || recordLengthOf(bytes, at) < crcLengthMin) {
    sealRecord(bytes, at);
    return;
  }
  const bodyStart = bodyStartOf(bytes, at);
  sealRecordAround(bytes, at, bodyStart, bodyStart + bodyLengthOf(bytes, at), placed.bodyCrc);
}

/** Returns the change vector of a document written at `etag`; "" for the default one. @throws RecordNotResident */
function writtenVector(transaction: Transaction, document: number, etag: number): string {
  const hasOwn = (transaction.flagsOf(document) & explicitVectorRowFlag) !== 0;
  if (!hasOwn && transaction.keyspaces.clusterCount === 0) return "";
  const current = hasOwn ? currentChangeVector(transaction, document) : "";
  return transaction.state.mergedChangeVector(current, etag);
}

/** As `listsOf`, without a pause. Hot: most documents have no lists, and need no generator. */
function listsNow(transaction: Transaction, id: string, flags: number): readonly ServerMember[] {
  return (flags & listFlags) === 0 ? noMembers : finish(listsOf(transaction, id, flags));
}

/** Names written without a pause. */
const listedPerSlice = 512;

/**
 * Returns the server's own `@attachments`, `@counters` and `@timeseries`, in this order; empty when the flags show
 * none.
 */
function* listsOf(
  transaction: Transaction,
  id: string,
  flags: number,
): Work<readonly ServerMember[]> {
  if ((flags & listFlags) === 0) return noMembers;
  const { attachments, counters, timeSeries } = transaction.keyspaces;
  const listOf = function* <Value>(
    key: string,
    keyspace: EntryKeyspace<Value>,
    textOf: (value: Value) => string,
  ): Work<ServerMember> {
    const prefix = documentKey(id, "");
    const texts: string[] = [];
    let from = prefix;
    for (let isMore = true; isMore; ) {
      isMore = false;
      // A commit during the `yield` invalidates the iterator: a new one starts at the next key.
      for (const [name, value] of transaction.entriesFrom(keyspace, prefix, from)) {
        texts.push(textOf(value));
        from = `${name}\u0000`;
        isMore = texts.length % listedPerSlice === 0;
        if (isMore) break;
      }
      if (isMore) yield;
    }
    return { key, valueText: listText(texts) };
  };
  const nameOf = ({ name }: { readonly name: string }) => JSON.stringify(name);
  return [
    yield* listOf("@attachments", attachments, attachmentText),
    yield* listOf("@counters", counters, nameOf),
    yield* listOf("@timeseries", timeSeries, nameOf),
  ];
}

const dueTimeKeys = ['"@expires"', '"@refresh"', '"@archive-at"'];
/** Bytes of the shortest and of the longest of them. */
const dueTimeKeyBytes = { min: 10, max: 13 };

/** @throws EngineError invalid-operation when a member of `@metadata` that names a time is null, or text in another form */
function checkDueTimes(
  { metadata, metadataSpans: spans, metadataCount }: ParseResults,
  id: string,
  nowMicros: number,
): void {
  for (let i = 0; i < metadataCount; i++) {
    const at = i * metadataSpanSlots;
    const keyFrom = spans[at] as number;
    const keyTo = spans[at + 1] as number;
    const keyBytes = keyTo - keyFrom;
    if (keyBytes < dueTimeKeyBytes.min || keyBytes > dueTimeKeyBytes.max) continue;
    if (!dueTimeKeys.includes(metadata.latin1Slice(keyFrom, keyTo))) continue;
    const value = JSON.parse(metadata.toString("utf8", spans[at + 2], spans[at + 3])) as unknown;
    if (isDueTimeAccepted(value)) continue;
    throw new EngineError(
      "invalid-operation",
      `The due date format for document '${id}' is not valid: '${value ?? ""}'. Use the following format: ${formatTimestamp(nowMicros)}`,
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
      // RavenDB 7.2.7 returns no details if the document to delete is missing.
      details:
        actual === null && verb === "Delete"
          ? {}
          : { Id: id, ExpectedChangeVector: expected, ActualChangeVector: actual },
    },
  );
}
