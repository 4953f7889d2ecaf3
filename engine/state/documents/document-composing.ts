/** Composes the text of documents from their records. Nothing is parsed or stringified. */

import { JsonText } from "../../base/json/json-text.ts";
import { DocumentChunks } from "./document-chunks.ts";
import { collectionIdOf } from "./document-record.ts";
import {
  composeDocument,
  composedLength,
  composedMetadataLength,
  composeMetadata,
  composeMetadataOnly,
} from "./document-text.ts";
import type { RecordContext } from "./record-context.ts";

const noExtra = Buffer.alloc(0);

/**
 * Returns the document of `record` in chunks, with the same text as `addDocument`.
 * @param head the record whose metadata it gets.
 */
export function piecesOf(context: RecordContext, record: Buffer, head = record): DocumentChunks {
  const member = context.collectionMember(collectionIdOf(head, 0));
  const { origin } = context;
  const metadata = Buffer.allocUnsafe(composedMetadataLength(head, 0, member, origin, noExtra));
  const length = composeMetadata(metadata, 0, head, 0, member, origin, noExtra);
  return new DocumentChunks(record, 0, metadata.subarray(0, length));
}

/** Bytes that `metadataOnly` adds around the metadata: `{` and `}`. */
const bracesBytes = 2;

/**
 * Appends the document of the record at `start`, or only its metadata.
 * @param extra members of the metadata between `@id` and `@last-modified`, each followed by a comma.
 */
export function addDocument(
  text: JsonText,
  context: RecordContext,
  record: Buffer,
  start: number,
  metadataOnly = false,
  extra: Buffer = noExtra,
): void {
  const member = context.collectionMember(collectionIdOf(record, start));
  const { origin } = context;
  const at = text.length;
  if (metadataOnly) {
    const count = composedMetadataLength(record, start, member, origin, extra) + bracesBytes;
    const bytes = text.reserve(count);
    text.advance(composeMetadataOnly(bytes, at, record, start, member, origin, extra));
  } else {
    const bytes = text.reserve(composedLength(record, start, member, origin, extra));
    text.advance(composeDocument(bytes, at, record, start, member, origin, extra));
  }
}

/** Returns the text of the document of the record at `start`. */
export function documentText(context: RecordContext, record: Buffer, start: number): Buffer {
  const text = new JsonText(record.length - start + 256);
  addDocument(text, context, record, start);
  return text.bytes;
}
