/**
 * The rows of a batch's result, as the bytes that are sent: JSON texts, joined by commas.
 *
 * Hot: bench/wire.bench.ts. Nothing is allocated for the row of a document that was stored. As strings, the rows of a
 * batch used a fifth of its time, besides the garbage collection of their parts.
 *
 * Invariants:
 * - The bytes belong to the batch alone: its reply may be sent after the next batch has begun.
 */

import { byteBackslash, byteComma, byteQuote } from "../base/json/bytes.ts";
import { grownBuffer } from "../base/memory/large-buffer.ts";
import type { Work } from "../base/scheduling/work-budget.ts";
import { formatTimestamp, timestampBytes, writeTimestamp } from "../base/timestamp.ts";
import { flagsText, writeDecimal } from "../state/documents/document-text.ts";
import type { Transaction } from "../state/store/transaction.ts";
import type { StoredDocument } from "../writes/documents.ts";

/**
 * The JSON text of a command's row; or a function that returns it, called when all commands have run and all change
 * vectors are known.
 */
export type BatchRow = string | (() => string);

// Aliases: V8 folds a module's own constants into the code, but loads imported ones from their cells each time.
const comma = byteComma;
const quote = byteQuote;
const backslash = byteBackslash;
const timeBytes = timestampBytes;

/** Bytes of a stored document's row, more than most have. */
const rowBytes = 224;
/**
 * Maximum number of bytes allocated when the first row is known: the rest of a large batch may have shorter rows, or
 * fail.
 */
const firstBytesMax = 1024 * 1024;
/** Number of bytes of such a row besides its id and the parts that it has in common with others. */
const rowBytesExtra = 128;
/** UTF-16 units of a row that are not counted as bytes, and the most bytes of a unit in UTF-8. */
const shortRowLength = 4096;
const bytesPerUnitMax = 3;
/** The rows of a batch are copied rarely as they grow. */
const growthMax = 8;

const noBytes = Buffer.alloc(0);
const rowOpen = Buffer.from('{"Type":"PUT","@id":"', "latin1");

/** A row that is known when all commands have run, and where it belongs. */
interface LateRow {
  readonly at: number;
  readonly text: () => string;
}

export class BatchRows {
  readonly #count: number;
  #bytes: Buffer = noBytes;
  #length = 0;
  #isEmpty = true;
  #late: LateRow[] | null = null;
  /**
   * Text between the id of a document in the collection of the last one and its etag; -1: no document was stored yet.
   */
  #middle: Buffer = noBytes;
  #middleOf = -1;
  /** Text between the etag and the time. */
  #end: Buffer = noBytes;

  /** @param count how many rows to expect */
  constructor(count: number) {
    this.#count = count;
  }

  add(row: BatchRow): void {
    if (typeof row === "string") {
      const isShort = row.length <= shortRowLength;
      this.#begin(isShort ? row.length * bytesPerUnitMax : Buffer.byteLength(row));
      this.#length += this.#bytes.utf8Write(row, this.#length);
      return;
    }
    this.#begin(0);
    this.#late ??= [];
    this.#late.push({ at: this.#length, text: row });
  }

  /** The row of a document that a PUT has stored. */
  addStored(transaction: Transaction, stored: StoredDocument): void {
    const collectionId = transaction.collectionOf(stored.document);
    if (collectionId !== this.#middleOf) this.#prepare(transaction, collectionId);
    const { id } = stored;
    const isUsual = stored.flags === 0 && stored.hasDefaultVector;
    if (!isUsual || !this.#addUsual(id, stored.etag, stored.lastModified)) {
      this.add(storedText(stored, transaction.keyspaces.collections.nameOf(collectionId)));
    }
  }

  /** @returns false, and adds nothing, when the id has other characters than plain ASCII */
  #addUsual(id: string, etag: number, lastModified: number): boolean {
    const middle = this.#middle;
    const end = this.#end;
    for (let i = 0; i < id.length; i++) {
      const unit = id.charCodeAt(i);
      if (unit < 0x20 || unit >= 0x80 || unit === quote || unit === backslash) return false;
    }
    this.#begin(id.length + middle.length + end.length + rowBytesExtra);
    const bytes = this.#bytes;
    let at = append(bytes, this.#length, rowOpen);
    for (let i = 0; i < id.length; i++) bytes[at++] = id.charCodeAt(i);
    at = append(bytes, at, middle);
    at = writeDecimal(bytes, at, etag);
    at = append(bytes, at, end);
    writeTimestamp(bytes, at, lastModified);
    at += timeBytes;
    bytes[at++] = quote;
    bytes[at++] = 0x7d;
    this.#length = at;
    return true;
  }

  /** Prepares the common parts of the rows of a collection's documents. */
  #prepare({ state, keyspaces }: Transaction, collectionId: number): void {
    const { nodeTag, hash } = state.origin;
    const collection = JSON.stringify(keyspaces.collections.nameOf(collectionId));
    this.#middle = Buffer.from(`","@collection":${collection},"@change-vector":"${nodeTag}:`);
    this.#end = Buffer.from(`-${hash}","@last-modified":"`);
    this.#middleOf = collectionId;
  }

  /** Makes room for a row of at most `bytes` bytes, and separates it from the one before. */
  #begin(bytes: number): void {
    const needed = this.#length + bytes + 1;
    if (needed > this.#bytes.length) {
      const first = Math.max(Math.min(this.#count * rowBytes, firstBytesMax), needed);
      const larger = this.#isEmpty
        ? Buffer.allocUnsafe(first)
        : grownBuffer(needed, growthMax * needed);
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    if (!this.#isEmpty) this.#bytes[this.#length++] = comma;
    this.#isEmpty = false;
  }

  /** Returns all rows, when all commands have run. */
  *whole(): Work<Buffer> {
    if (this.#late === null) return this.#bytes.subarray(0, this.#length);
    const pieces: Buffer[] = [];
    let from = 0;
    for (const { at, text } of this.#late) {
      pieces.push(this.#bytes.subarray(from, at), Buffer.from(text()));
      from = at;
      yield;
    }
    pieces.push(this.#bytes.subarray(from, this.#length));
    return Buffer.concat(pieces);
  }
}

function storedText(stored: StoredDocument, collection: string): string {
  const flags = stored.flags === 0 ? "" : `,"@flags":"${flagsText(stored.flags)}"`;
  return (
    `{"Type":"PUT","@id":${JSON.stringify(stored.id)},"@collection":${JSON.stringify(collection)}` +
    `,"@change-vector":"${stored.changeVector}","@last-modified":"${formatTimestamp(stored.lastModified)}"${flags}}`
  );
}

function append(target: Buffer, at: number, part: Buffer): number {
  target.set(part, at);
  return at + part.length;
}
