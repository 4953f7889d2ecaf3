/**
 * A document, or a revision, that was read: its properties and its text, for callers that are independent of records.
 *
 * Invariants:
 * - It is valid until the next tick of the event loop, unless its creator specifies otherwise.
 */
import type { JsonText } from "../../base/json/json-text.ts";
import { addDocument } from "./document-composing.ts";
import {
  bodyLengthOf,
  bodyStartOf,
  bodyTextOf,
  changeVectorOf,
  etagOf,
  idOf,
} from "./document-record.ts";
import type { RecordContext } from "./record-context.ts";

export class DocumentRow {
  readonly #context: RecordContext;
  readonly #record: Buffer;

  constructor(context: RecordContext, record: Buffer) {
    this.#context = context;
    this.#record = record;
  }

  get id(): string {
    return idOf(this.#record, 0);
  }

  get changeVector(): string {
    return changeVectorOf(this.#record, 0, this.#context.origin);
  }

  get etag(): number {
    return etagOf(this.#record, 0);
  }

  /** Bytes of the stored record. */
  get storedBytes(): number {
    return this.#record.length;
  }

  /** Returns the same document, valid for good. */
  copy(): DocumentRow {
    return new DocumentRow(this.#context, Buffer.from(this.#record));
  }

  /** Returns the document without its metadata, parsed. */
  body(): unknown {
    return JSON.parse(bodyTextOf(this.#record, 0));
  }

  /** The stored text of the document without its metadata; valid as long as this row. */
  get bodyBytes(): Buffer {
    const start = bodyStartOf(this.#record, 0);
    return this.#record.subarray(start, start + bodyLengthOf(this.#record, 0));
  }

  /** Appends the document with its `@metadata`, or only that. */
  addTo(text: JsonText, metadataOnly = false): void {
    addDocument(text, this.#context, this.#record, 0, metadataOnly);
  }
}
