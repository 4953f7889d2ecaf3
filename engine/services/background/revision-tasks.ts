/**
 * Bulk operations on revisions: enforcing the rules, reverting to a point in time, deleting selected revisions. Each
 * transaction has a bounded number of documents, so that writers wait for at most one of them.
 *
 * Knows nothing of requests: see server/endpoints/documents/revisions.ts.
 */

import { foldedName } from "../../base/case-folding.ts";
import { EngineError } from "../../base/errors.ts";
import { documentsPerTask } from "../../base/limits.ts";
import { formatTimestamp } from "../../base/timestamp.ts";
import { changeVectorOf, documentFlags, idOf } from "../../state/documents/document-record.ts";
import {
  type Attachment,
  attachmentKey,
  revisionAttachmentKey,
} from "../../state/keyspaces/attachments.ts";
import type { RevisionFacts } from "../../state/keyspaces/revision-table.ts";
import type { OperationFigures } from "../../state/store/operations.ts";
import type { Store } from "../../state/store/store.ts";
import type { Transaction } from "../../state/store/transaction.ts";
import { removeAttachment } from "../../writes/attachments.ts";
import { deleteDocument, putStored, rewriteWithFlags } from "../../writes/documents.ts";
import {
  copyOfRecord,
  copyOfRevision,
  dropAll,
  dropOld,
  dropRevision,
  findRevision,
  keepDeletion,
  keepUnkeptState,
} from "../../writes/revisions.ts";

const { DeleteRevision, ForceCreated, HasRevisions, Reverted } = documentFlags;

type Progress = (figures: OperationFigures) => void;

/** The documents to process. */
export interface RevisionScope {
  /** Lower-cased names; null: all. */
  readonly collections: ReadonlySet<string> | null;
}

/** Removes the revisions that the rules do not keep. @returns the figures of RavenDB's result */
export async function enforceRevisionRules(
  database: Store,
  scope: RevisionScope & { readonly includesForced: boolean },
  progress: Progress,
  signal: AbortSignal,
): Promise<OperationFigures> {
  let scannedRevisions = 0;
  let removed = 0;
  const scanned = await eachDocument(database, scope, signal, (transaction, document) => {
    const before = transaction.revisionCountOf(document);
    const dropped = enforceOn(transaction, document, scope.includesForced);
    return () => {
      scannedRevisions += before;
      removed += dropped;
      progress({ ScannedRevisions: scannedRevisions, RemovedRevisions: removed });
    };
  });
  return {
    Message: null,
    ScannedRevisions: scannedRevisions,
    ScannedDocuments: scanned,
    Warnings: {},
    RemovedRevisions: removed,
  };
}

/** @returns how many revisions of the document were removed. */
function enforceOn(transaction: Transaction, document: number, includesForced: boolean): number {
  const { revisionRules } = transaction.keyspaces;
  const [oldest] = transaction.revisionsOf(document);
  if (oldest === undefined) return 0;
  const rule = revisionRules.of(oldest.collectionId);
  let dropped = 0;
  if (rule === null) {
    for (const facts of [...transaction.revisionsOf(document)]) {
      if (!includesForced && (facts.flags & ForceCreated) !== 0) continue;
      dropRevision(transaction, facts);
      dropped++;
    }
  } else if (rule.purgesOnDelete && !transaction.exists(document)) {
    dropped = dropAll(transaction, document);
  } else dropped = dropOld(transaction, document, { ...rule, dropsMax: null });
  forgetRevisions(transaction, document);
  return dropped;
}

/**
 * Marks documents as deleted that no longer exist but whose newest revision is not a deletion: this puts their
 * revisions into the bin again. @returns the figures of RavenDB's result
 */
export async function adoptOrphanedRevisions(
  database: Store,
  scope: RevisionScope,
  progress: Progress,
  signal: AbortSignal,
): Promise<OperationFigures> {
  let scannedRevisions = 0;
  let adopted = 0;
  const scanned = await eachDocument(database, scope, signal, (transaction, document) => {
    const count = transaction.revisionCountOf(document);
    const isAdopted = adopt(transaction, document);
    return () => {
      scannedRevisions += count;
      if (isAdopted) adopted++;
      progress({ ScannedRevisions: scannedRevisions, AdoptedCount: adopted });
    };
  });
  return {
    Message: null,
    ScannedRevisions: scannedRevisions,
    ScannedDocuments: scanned,
    Warnings: {},
    AdoptedCount: adopted,
  };
}

function adopt(transaction: Transaction, document: number): boolean {
  const newest = [...transaction.revisionsOf(document)].at(-1);
  if (newest === undefined || transaction.exists(document)) return false;
  if ((newest.flags & DeleteRevision) !== 0) return false;
  const record = copyOfRevision(transaction, newest);
  const changeVector = transaction.changeVectorAt(transaction.nextEtag());
  keepDeletion(transaction, document, record, changeVector, transaction.state.lastModified);
  return true;
}

/** Clears the flag of a document that has lost its last revision. */
function forgetRevisions(transaction: Transaction, document: number): void {
  if (transaction.revisionCountOf(document) > 0 || !transaction.exists(document)) return;
  const flags = transaction.flagsOf(document);
  if ((flags & HasRevisions) === 0) return;
  const record = copyOfRecord(transaction, document);
  rewriteWithFlags(transaction, document, record, flags & ~HasRevisions);
}

/**
 * Reverts documents with revisions to their states at a point in time; documents created later are deleted. A document
 * whose revisions do not reach back that far, because the oldest were removed, is reverted to the oldest one.
 * @param moment microseconds since 1970. @returns the figures of RavenDB's result
 */
export async function revertToMoment(
  database: Store,
  scope: RevisionScope,
  moment: number,
  progress: Progress,
  signal: AbortSignal,
): Promise<OperationFigures> {
  let scannedRevisions = 0;
  let reverted = 0;
  const warnings: Record<string, string> = {};
  const scanned = await eachDocument(database, scope, signal, (transaction, document) => {
    const before = transaction.revisionCountOf(document);
    const warn = (text: string): void => {
      warnings[database.state.documents.lowerIdOf(document)] = text;
    };
    const isReverted = revertOne(transaction, document, moment, warn);
    return () => {
      scannedRevisions += before;
      if (isReverted) reverted++;
      progress({ ScannedRevisions: scannedRevisions, RevertedDocuments: reverted });
    };
  });
  return {
    Message: null,
    ScannedRevisions: scannedRevisions,
    ScannedDocuments: scanned,
    Warnings: warnings,
    RevertedDocuments: reverted,
  };
}

function revertOne(
  transaction: Transaction,
  document: number,
  moment: number,
  warn: (text: string) => void,
): boolean {
  const all = [...transaction.revisionsOf(document)];
  const newest = all.at(-1);
  const [oldest] = all;
  if (newest === undefined || oldest === undefined || newest.lastModified <= moment) return false;
  let wanted: RevisionFacts | undefined = all.findLast((facts) => facts.lastModified <= moment);
  if (wanted === undefined) {
    const rule = transaction.keyspaces.revisionRules.of(oldest.collectionId);
    const isCutOff = rule?.countMin != null && all.length >= rule.countMin;
    if (isCutOff) {
      wanted = oldest;
      warn(
        `Reverted to oldest revision, since no revision prior to '${formatTimestamp(moment)}' was found and you reached the maximum number of revisions (${rule.countMin}).`,
      );
    }
  }
  return revertTo(transaction, document, wanted);
}

/** @param wanted undefined: the document is deleted. @returns whether anything changed. */
function revertTo(
  transaction: Transaction,
  document: number,
  wanted: RevisionFacts | undefined,
): boolean {
  if (wanted === undefined || (wanted.flags & DeleteRevision) !== 0) {
    if (!transaction.exists(document)) return false;
    return deleteDocument(transaction, transaction.state.documents.lowerIdOf(document));
  }
  const record = copyOfRevision(transaction, wanted);
  if (transaction.exists(document)) {
    const current = copyOfRecord(transaction, document);
    if (vectorOf(transaction, current) === vectorOf(transaction, record)) return false;
  }
  if (transaction.exists(document)) keepUnkeptState(transaction, document);
  restoreAttachments(transaction, record, wanted);
  putStored(transaction, document, record, Reverted);
  return true;
}

/** Sets the attachments of a document to those of one of its revisions. */
export function restoreAttachments(
  transaction: Transaction,
  record: Buffer,
  { etag, collectionId }: RevisionFacts,
): void {
  const { attachments } = transaction.keyspaces;
  const id = idOf(record, 0);
  const wanted = new Map<string, Attachment>();
  const prefix = revisionAttachmentKey(id, etag, "");
  for (const [, attachment] of transaction.entriesWithPrefix(attachments, prefix)) {
    wanted.set(attachmentKey(id, attachment.name), attachment);
  }
  for (const [key, current] of transaction.entriesWithPrefix(attachments, attachmentKey(id, ""))) {
    if (wanted.get(key)?.hash === current.hash) wanted.delete(key);
    else if (!wanted.has(key)) removeAttachment(transaction, id, current, collectionId);
  }
  for (const [key, attachment] of wanted) {
    const own = transaction.nextEtag();
    const changeVector = transaction.changeVectorAt(own);
    transaction.putEntry(attachments, key, { ...attachment, changeVector }, own);
  }
}

function vectorOf({ state }: Transaction, record: Buffer): string {
  return changeVectorOf(record, 0, state.origin);
}

/** Reverts documents to the given revisions, all or none. @throws EngineError invalid-operation */
export async function revertToVectors(
  database: Store,
  vectors: readonly (readonly [id: string, changeVector: string])[],
): Promise<void> {
  await database.write((transaction) => {
    for (const [id, changeVector] of vectors) {
      const document = database.state.documents.lookup(id);
      const facts = document < 0 ? null : findRevision(transaction, document, changeVector);
      if (facts === null) {
        throw new EngineError(
          "invalid-operation",
          `Revision with the cv "${changeVector}" doesn't exist (id: '${id}')`,
        );
      }
      revertTo(transaction, document, facts);
    }
  });
}

/** A selection of revisions to delete. */
export interface RevisionDeletion {
  readonly ids: readonly string[];
  /** Change vectors of the revisions; null: all. */
  readonly changeVectors: readonly string[] | null;
  /** Range of their times, microseconds since 1970, both inclusive. */
  readonly from: number;
  readonly to: number;
  readonly includesForced: boolean;
  readonly countMax: number;
}

/** @returns how many were removed. */
export async function deleteRevisions(
  database: Store,
  { ids, changeVectors, from, to, includesForced, countMax }: RevisionDeletion,
): Promise<number> {
  return await database.write((transaction) => {
    let dropped = 0;
    for (const id of ids) {
      const document = database.state.documents.lookup(id);
      if (document < 0) continue;
      const chosen =
        changeVectors === null
          ? [...transaction.revisionsOf(document)]
          : [...new Set(changeVectors)].flatMap(
              (vector) => findRevision(transaction, document, vector) ?? [],
            );
      for (const facts of chosen) {
        if (dropped === countMax) break;
        if (facts.lastModified < from || facts.lastModified > to) continue;
        if (!includesForced && (facts.flags & ForceCreated) !== 0) continue;
        dropRevision(transaction, facts);
        dropped++;
      }
      forgetRevisions(transaction, document);
    }
    return dropped;
  });
}

/**
 * Runs `change` for each document that has revisions now, a few per transaction; the functions that it returns are
 * called once that is durable. @returns the number of documents.
 */
async function eachDocument(
  database: Store,
  { collections }: RevisionScope,
  signal: AbortSignal,
  change: (transaction: Transaction, document: number) => () => void,
): Promise<number> {
  const { revisions, collections: names } = database.state.keyspaces;
  const hold = database.state.documents.hold();
  const documents = revisions.documentsWithRevisions().filter((document) => {
    if (collections === null) return true;
    const collection = revisions.collectionOf(revisions.newestOf(document));
    return collections.has(foldedName(names.nameOf(collection)));
  });
  try {
    for (let at = 0; at < documents.length; at += documentsPerTask) {
      signal.throwIfAborted();
      const some = documents.slice(at, at + documentsPerTask);
      const done = await database.write((transaction) =>
        some.map((document) => change(transaction, document)),
      );
      for (const note of done) note();
    }
  } finally {
    hold.release();
  }
  return documents.length;
}
