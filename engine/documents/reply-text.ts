/**
 * Composes the text of a reply: documents from their records, and the text between them. One growing buffer; nothing is
 * parsed or stringified.
 */

import { DocumentPieces } from "./document-pieces.ts";
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
 * The document of `record` in pieces, with the same text as by `addDocument`.
 * @param head the record whose metadata it gets.
 */
export function piecesOf(context: RecordContext, record: Buffer, head = record): DocumentPieces {
  const member = context.collectionMember(collectionIdOf(head, 0));
  const hash = context.databaseHashBytes;
  const metadata = Buffer.allocUnsafe(composedMetadataLength(head, 0, member, hash, noExtra));
  const length = composeMetadata(metadata, 0, head, 0, member, hash, noExtra);
  return new DocumentPieces(record, 0, metadata.subarray(0, length));
}

/** Bytes that `metadataOnly` adds around the metadata: `{` and `}`. */
const bracesBytes = 2;

export class ReplyText {
  #bytes: Buffer;
  #length = 0;

  /** `expectedBytes`: estimated length of the text. */
  constructor(expectedBytes = 1024) {
    this.#bytes = Buffer.allocUnsafe(expectedBytes);
  }

  /** Bytes so far. */
  get length(): number {
    return this.#length;
  }

  /** The text; valid until more is added. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Returns the text and starts a new one. */
  take(): Buffer {
    const taken = this.bytes;
    this.#bytes = Buffer.allocUnsafe(1024);
    this.#length = 0;
    return taken;
  }

  addText(text: string): this {
    const at = this.#reserve(text.length * 3);
    this.#length = at + this.#bytes.write(text, at);
    return this;
  }

  addBytes(bytes: Uint8Array, start = 0, end = bytes.length): this {
    const at = this.#reserve(end - start);
    this.#bytes.set(start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end), at);
    this.#length = at + end - start;
    return this;
  }

  /** A string as JSON, with its quotes. */
  addString(text: string): this {
    return this.addText(JSON.stringify(text));
  }

  /**
   * The document of the record at `start`, or only its metadata.
   * @param extra members of the metadata between `@id` and `@last-modified`, each followed by a comma.
   */
  addDocument(
    context: RecordContext,
    record: Buffer,
    start: number,
    metadataOnly = false,
    extra: Buffer = noExtra,
  ): this {
    const member = context.collectionMember(collectionIdOf(record, start));
    const hash = context.databaseHashBytes;
    if (metadataOnly) {
      const at = this.#reserve(
        composedMetadataLength(record, start, member, hash, extra) + bracesBytes,
      );
      const bytes = this.#bytes;
      this.#length = at + composeMetadataOnly(bytes, at, record, start, member, hash, extra);
    } else {
      const at = this.#reserve(composedLength(record, start, member, hash, extra));
      this.#length = at + composeDocument(this.#bytes, at, record, start, member, hash, extra);
    }
    return this;
  }

  #reserve(count: number): number {
    const needed = this.#length + count;
    if (needed > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2));
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    return this.#length;
  }
}
