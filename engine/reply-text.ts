/**
 * Text that is put together for a reply: documents composed of their records, and what stands between them. One
 * growing buffer; nothing is parsed or stringified on the way.
 */
import type { DatabaseState } from "./database-state.ts";
import {
  bodyLengthOf,
  bodyStartOf,
  collectionIdOf,
  composeDocument,
  composedLength,
  composedMetadataLength,
  composeMetadata,
  composeMetadataOnly,
} from "./document.ts";

const noExtra = Buffer.alloc(0);

/**
 * The text of one document as a reader gets it, not put together: the stored bytes, and what comes behind them. Holds the
 * record; whoever made it keeps the record's bytes as they are.
 */
export class DocumentPieces {
  /** Bytes of the text. */
  readonly length: number;
  readonly #record: Buffer;
  readonly #bodyStart: number;
  /** Bytes of the body without its last brace. */
  readonly #bodyLength: number;
  /** `,"@metadata":{…}}` */
  readonly #tail: Buffer;

  constructor(state: DatabaseState, record: Buffer) {
    const member = state.collectionMember(collectionIdOf(record, 0));
    const hash = state.databaseHashBytes;
    const bodyLength = bodyLengthOf(record, 0);
    const comma = bodyLength > 2 ? 1 : 0;
    const length = composedMetadataLength(record, 0, member, hash, noExtra);
    this.#tail = Buffer.allocUnsafe(comma + length + 1);
    if (comma > 0) this.#tail[0] = 0x2c;
    const end = composeMetadata(this.#tail, comma, record, 0, member, hash, noExtra);
    this.#tail[comma + end] = 0x7d;
    this.#tail = this.#tail.subarray(0, comma + end + 1);
    this.#record = record;
    this.#bodyStart = bodyStartOf(record, 0);
    this.#bodyLength = bodyLength - 1;
    this.length = this.#bodyLength + this.#tail.length;
  }

  /** A copy of the bytes from `start` to `end` (exclusive) of the text. */
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

/** Bytes that `metadataOnly` adds around the metadata: `{` and `}`. */
const bracesBytes = 2;

export class ReplyText {
  #bytes: Buffer;
  #length = 0;

  /** `expectedBytes`: how much is likely to come. */
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

  /** Takes the text and begins a new one. */
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
   * @param extra members of the metadata between `@id` and `@last-modified`, each with a comma behind it.
   */
  addDocument(
    state: DatabaseState,
    record: Buffer,
    start: number,
    metadataOnly = false,
    extra: Buffer = noExtra,
  ): this {
    const member = state.collectionMember(collectionIdOf(record, start));
    const hash = state.databaseHashBytes;
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
