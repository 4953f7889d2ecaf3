/**
 * Attachments: names of binary content that belongs to documents. The content itself is in the blob store, once per
 * hash; this keyspace holds the references to it.
 *
 * Names are compared case-insensitively, and a put in another spelling renames.
 */
import { lowerCased } from "../../base/case-folding.ts";
import { recordKinds } from "../../base/record.ts";
import { compositeKey, documentKey, EntryKeyspace } from "./entry-keyspace.ts";
import type { DeadRecordListener } from "./keyspace.ts";

export interface Attachment {
  readonly name: string;
  /** Base64 of the content's BLAKE2b-256, 44 characters. */
  readonly hash: string;
  readonly contentType: string;
  /** Bytes. */
  readonly size: number;
  /** The change vector of the attachment itself. */
  readonly changeVector: string;
}

export function makeAttachments(dead: DeadRecordListener): EntryKeyspace<Attachment> {
  return new EntryKeyspace<Attachment>("attachments", recordKinds.attachment, dead);
}

/** Key of one attachment. */
export const attachmentKey = documentKey;

/**
 * Key under which a revision refers to a content; with "" the prefix of all of a revision's. Its first character occurs
 * in no document's key.
 */
export function revisionAttachmentKey(documentId: string, etag: number, name: string): string {
  const revision = `\u0000${lowerCased(documentId)}\u0000${etag}`;
  return compositeKey(revision, lowerCased(name));
}

/** Returns the id in the tombstone of a document's attachment: like RavenDB 7.2.7, it distinguishes contents too. */
export function attachmentTombstoneId(
  documentId: string,
  { name, hash, contentType }: Pick<Attachment, "name" | "hash" | "contentType">,
): string {
  return [lowerCased(documentId), "d", lowerCased(name), hash, contentType].join("\u001e");
}

/** Returns the text of an element of a document's `@attachments`. */
export function attachmentText({
  name,
  hash,
  contentType,
  size,
}: Pick<Attachment, "name" | "hash" | "contentType" | "size">): string {
  return `{"Name":${JSON.stringify(name)},"Hash":"${hash}","ContentType":${JSON.stringify(contentType)},"Size":${size}}`;
}
