/**
 * The text of one document as sent to clients, in two chunks: the stored bytes, and the composed tail. For documents
 * too large to be copied as a whole for each reader.
 *
 * Invariants:
 * - It references the record; its creator must keep the record's bytes unchanged while it is in use.
 */

import { largeRecordBytes } from "../../base/limits.ts";
import { bodyLengthOf, bodyStartOf } from "./document-record.ts";

/** Returns whether the document in the record at `start` is too large to be composed as one string. */
export function isLargeDocument(bytes: Buffer, start: number): boolean {
  return bodyLengthOf(bytes, start) > largeRecordBytes;
}

/** A text that is copied chunk by chunk. */
export interface TextChunks {
  /** Bytes of the text. */
  readonly length: number;
  /** Whether its creator accounts for its memory while it is in use. */
  readonly isHeld: boolean;
  /** Returns a copy of bytes [start, end) of the text. */
  copy(start: number, end: number): Buffer;
}

export class DocumentChunks implements TextChunks {
  /** Bytes of the text. */
  readonly length: number;
  readonly isHeld = false;
  readonly #record: Buffer;
  readonly #bodyStart: number;
  /** Bytes of the body without its closing brace. */
  readonly #bodyLength: number;
  /** `,"@metadata":{…}}` */
  readonly #tail: Buffer;

  /** @param metadata `"@metadata":{…}`, as in the text */
  constructor(bytes: Buffer, start: number, metadata: Buffer) {
    const bodyLength = bodyLengthOf(bytes, start);
    const comma = bodyLength > 2 ? "," : "";
    this.#tail = Buffer.concat([Buffer.from(comma), metadata, Buffer.from("}")]);
    this.#record = bytes;
    this.#bodyStart = bodyStartOf(bytes, start);
    this.#bodyLength = bodyLength - 1;
    this.length = this.#bodyLength + this.#tail.length;
  }

  /** Returns a copy of bytes [start, end) of the text. */
  copy(start: number, end: number): Buffer {
    const target = Buffer.allocUnsafe(end - start);
    const ofBody = Math.max(0, Math.min(end, this.#bodyLength) - start);
    const from = this.#bodyStart + start;
    if (ofBody > 0) target.set(this.#record.subarray(from, from + ofBody), 0);
    if (ofBody < target.length) {
      const tailFrom = start + ofBody - this.#bodyLength;
      target.set(this.#tail.subarray(tailFrom, tailFrom + target.length - ofBody), ofBody);
    }
    return target;
  }
}
