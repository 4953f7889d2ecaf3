/**
 * Attachment operations of a transaction. The content is in the blob store before the transaction begins; here names
 * are bound to it. The document is rewritten with its new `@attachments` at the end of the transaction.
 */

import { EngineError } from "../base/errors.ts";
import { checkAttachmentName } from "../base/names.ts";
import {
  type Attachment,
  attachmentKey,
  attachmentTombstoneId,
} from "../state/keyspaces/attachments.ts";
import type { DatabaseState } from "../state/store/database-state.ts";
import type { Transaction } from "../state/store/transaction.ts";
import { keepUnkeptState } from "./revisions.ts";

/**
 * Binds `name` of a document to stored content. `expectedChangeVector` is the attachment's own: undefined for no
 * check, "" when it must not exist. @throws document-missing, concurrency, invalid-argument
 */
export function putAttachment(
  transaction: Transaction,
  documentId: string,
  attachment: { name: string; contentType: string; hash: string; size: number },
  expectedChangeVector?: string,
): Attachment {
  checkAttachmentName(attachment.name);
  const document = transaction.find(documentId);
  if (document < 0) throw documentMissing(documentId, attachment.name);
  const key = attachmentKey(documentId, attachment.name);
  const { attachments } = transaction.keyspaces;
  const current = transaction.entry(attachments, key);
  if (
    expectedChangeVector !== undefined &&
    (current?.changeVector ?? "") !== expectedChangeVector
  ) {
    throw conflict("put", documentId, attachment.name, current, expectedChangeVector);
  }
  const stored = bindAttachment(
    transaction,
    documentId,
    attachment,
    transaction.collectionOf(document),
  );
  transaction.touch(document);
  return stored;
}

/**
 * As `putAttachment`, without checking or rewriting the document. Replaced content leaves a tombstone; a tombstone of
 * this very attachment is removed.
 */
export function bindAttachment(
  transaction: Transaction,
  documentId: string,
  attachment: Omit<Attachment, "changeVector">,
  collectionId: number,
): Attachment {
  const { attachments, tombstones } = transaction.keyspaces;
  const key = attachmentKey(documentId, attachment.name);
  const current = transaction.entry(attachments, key);
  if (current !== undefined && current.hash !== attachment.hash) {
    const id = attachmentTombstoneId(documentId, current);
    transaction.putTombstone("attachment", id, collectionId, transaction.nextEtag());
  }
  const buried = tombstones.keyOfAttachment(attachmentTombstoneId(documentId, attachment));
  if (buried !== undefined) transaction.putEntry(tombstones.records, buried, undefined);
  const etag = transaction.nextEtag();
  const stored: Attachment = { ...attachment, changeVector: transaction.changeVectorAt(etag) };
  transaction.putEntry(attachments, key, stored, etag);
  return stored;
}

/** @returns false when the attachment or its document does not exist. @throws concurrency */
export function deleteAttachment(
  transaction: Transaction,
  documentId: string,
  name: string,
  expectedChangeVector?: string,
): boolean {
  const document = transaction.find(documentId);
  const key = attachmentKey(documentId, name);
  const { attachments } = transaction.keyspaces;
  const current = document < 0 ? undefined : transaction.entry(attachments, key);
  if (current === undefined) {
    if (expectedChangeVector) {
      throw conflict("delete", documentId, name, current, expectedChangeVector);
    }
    if (document >= 0) buryMissing(transaction, documentId, name, document);
    return false;
  }
  if (expectedChangeVector !== undefined && current.changeVector !== expectedChangeVector) {
    throw conflict("delete", documentId, name, current, expectedChangeVector);
  }
  keepUnkeptState(transaction, document);
  removeAttachment(transaction, documentId, current, transaction.collectionOf(document));
  transaction.touch(document);
  return true;
}

/** As RavenDB 7.2.7, records the deletion of an attachment that a document does not have, once. */
function buryMissing(
  transaction: Transaction,
  documentId: string,
  name: string,
  document: number,
): void {
  const id = attachmentTombstoneId(documentId, { name, hash: "", contentType: "" });
  if (transaction.keyspaces.tombstones.keyOfAttachment(id) !== undefined) return;
  const collectionId = transaction.collectionOf(document);
  transaction.putTombstone("attachment", id, collectionId, transaction.nextEtag());
}

/** Removes an attachment from a document without rewriting it: also for deletions of the document. */
export function removeAttachment(
  transaction: Transaction,
  documentId: string,
  attachment: Attachment,
  collectionId: number,
): void {
  const etag = transaction.nextEtag();
  const key = attachmentKey(documentId, attachment.name);
  transaction.putEntry(transaction.keyspaces.attachments, key, undefined, etag);
  const id = attachmentTombstoneId(documentId, attachment);
  transaction.putTombstone("attachment", id, collectionId, etag);
}

/** @throws attachment-missing, concurrency if the target name exists, document-missing */
export function copyAttachment(
  transaction: Transaction,
  source: { documentId: string; name: string },
  target: { documentId: string; name: string },
  expectedChangeVector?: string,
): Attachment {
  const current = sourceAttachment(transaction, source, expectedChangeVector);
  if (transaction.find(target.documentId) < 0) {
    throw documentMissing(target.documentId, target.name);
  }
  const taken = transaction.entry(
    transaction.keyspaces.attachments,
    attachmentKey(target.documentId, target.name),
  );
  if (taken !== undefined) throw conflict("put", target.documentId, target.name, taken, "");
  return putAttachment(transaction, target.documentId, {
    name: target.name,
    contentType: current.contentType,
    hash: current.hash,
    size: current.size,
  });
}

/** Copies the attachment, then deletes the source. @throws as `copyAttachment` */
export function moveAttachment(
  transaction: Transaction,
  source: { documentId: string; name: string },
  target: { documentId: string; name: string },
  expectedChangeVector?: string,
): Attachment {
  const moved = copyAttachment(transaction, source, target, expectedChangeVector);
  deleteAttachment(transaction, source.documentId, source.name);
  return moved;
}

function sourceAttachment(
  transaction: Transaction,
  source: { documentId: string; name: string },
  expectedChangeVector: string | undefined,
): Attachment {
  const { attachments } = transaction.keyspaces;
  const current = transaction.entry(attachments, attachmentKey(source.documentId, source.name));
  if (current === undefined) {
    throw new EngineError(
      "attachment-missing",
      `There is no attachment with '${source.name}' name for document '${source.documentId}'.`,
    );
  }
  if (expectedChangeVector && current.changeVector !== expectedChangeVector) {
    throw conflict("copy", source.documentId, source.name, current, expectedChangeVector);
  }
  return current;
}

/**
 * Detects, before a content is uploaded, that storing it would fail. It may still fail later.
 * @throws document-missing, invalid-argument
 */
export function checkAttachmentTarget(
  { documents }: DatabaseState,
  documentId: string,
  name: string,
): void {
  checkAttachmentName(name);
  const document = documents.lookup(documentId);
  if (document < 0 || documents.newestEtag(document) === 0) throw documentMissing(documentId, name);
}

function documentMissing(documentId: string, name: string): EngineError {
  return new EngineError(
    "document-missing",
    `Cannot put attachment ${name} on a non existent document '${documentId}'.`,
  );
}

function conflict(
  verb: "put" | "delete" | "copy",
  documentId: string,
  name: string,
  current: Attachment | undefined,
  expected: string,
): EngineError {
  const state =
    current === undefined ? "does not exist" : `has change vector '${current.changeVector}'`;
  return new EngineError(
    "concurrency",
    `Attachment ${name} of '${documentId}' ${state}, but ${verb} was called with ${expected === "" ? "expecting new document" : `change vector '${expected}'`}. Optimistic concurrency violation, transaction will be aborted.`,
    {
      details: {
        Id: verb === "delete" ? null : documentId,
        ExpectedChangeVector: expected,
        ActualChangeVector: current?.changeVector ?? null,
      },
    },
  );
}
