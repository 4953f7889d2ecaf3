/** Stored documents as scripts see them: values are parsed lazily from the bytes of the record. */
import {
  bodyLengthOf,
  bodyStartOf,
  collectionIdOf,
  fieldEndOf,
  idOf,
  isAsciiBody,
  shapeIdOf,
} from "../../state/documents/document-record.ts";
import { composedMetadataLength, composeMetadata } from "../../state/documents/document-text.ts";
import type { RecordContext } from "../../state/documents/record-context.ts";
import { ScriptDocument, type StoredDocument } from "./script-document.ts";
import type { ShapeHint } from "./shape-hint.ts";

const noExtra = Buffer.alloc(0);
const metadataOpen = '"@metadata":'.length;

/**
 * Returns the script document of a record, with its composed metadata, which is created on first use: the record must
 * stay valid until the transaction ends.
 */
export function scriptDocumentOf(
  context: RecordContext,
  bytes: Buffer,
  start: number,
  hint?: ShapeHint,
): ScriptDocument {
  return ScriptDocument.fromStored(new RecordDocument(context, bytes, start), hint);
}

/** The document of a record. */
class RecordDocument implements StoredDocument {
  readonly bytes: Buffer;
  readonly from: number;
  readonly to: number;
  readonly isAscii: boolean;
  readonly #context: RecordContext;
  readonly #start: number;

  constructor(context: RecordContext, bytes: Buffer, start: number) {
    this.#context = context;
    this.#start = start;
    this.bytes = bytes;
    this.from = bodyStartOf(bytes, start);
    this.to = this.from + bodyLengthOf(bytes, start);
    this.isAscii = isAsciiBody(bytes, start);
  }

  fieldEnd(index: number): number {
    const shapeId = shapeIdOf(this.bytes, this.#start);
    if (shapeId === 0) return -1;
    return fieldEndOf(this.bytes, this.#start, index, this.#context.shapes.get(shapeId));
  }

  get id(): string {
    return idOf(this.bytes, this.#start);
  }

  get metadataText(): string {
    const { bytes } = this;
    const start = this.#start;
    const member = this.#context.collectionMember(collectionIdOf(bytes, start));
    const { origin } = this.#context;
    const length = composedMetadataLength(bytes, start, member, origin, noExtra);
    const metadata = Buffer.allocUnsafe(length);
    composeMetadata(metadata, 0, bytes, start, member, origin, noExtra);
    return metadata.toString("utf8", metadataOpen, length);
  }
}
