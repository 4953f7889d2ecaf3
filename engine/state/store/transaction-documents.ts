/**
 * The documents that one transaction has written: their rows, packed, with an index to the newest row of each document.
 * Reused by one transaction after another. Knows nothing of the log.
 *
 *   words (u32): document | at | recordLength | collection << 16 | flags | ...
 *   etags (f64): etag | ...
 *
 * Hot: bench/storage.bench.ts.
 *
 * Invariants:
 * - Row numbers are in the order of writing; `newestOf` finds the last one of a document.
 * - The hash table contains the rows below `#hashed`. The others are added on a lookup, if there are more than
 *   `scanRowsMax` rows: a bulk patch writes thousands and never looks one up.
 */
import { type PackedRows, packedRow } from "../../base/tree/staged-rows.ts";

const scanRowsMax = 8;
const wordsPerRow = packedRow.words;
const documentAt = packedRow.docNum;
const offsetAt = packedRow.offset;
const recordLengthAt = packedRow.length;
const wordAt = packedRow.word;
const rowsMin = 64;
/** Capacity in rows that is kept from transaction to transaction. */
const rowsKept = 4 * 1024;

export class TransactionDocuments implements PackedRows {
  count = 0;
  /** Number of rows that are not deletions, and the bytes of their records. */
  puts = 0;
  putBytes = 0;
  #words = new Uint32Array(rowsMin * wordsPerRow);
  #etags = new Float64Array(rowsMin);
  /** Row + 1 by document, linear probing; 0 = free. A power of two, at least twice the capacity in rows. */
  #slots = new Uint32Array(rowsMin * 2);
  #hashed = 0;
  /** The last lookup and its result: one document is looked up many times in a row. */
  #askedDocument = -1;
  #askedRow = -1;

  get words(): Uint32Array {
    return this.#words;
  }

  get etags(): Float64Array {
    return this.#etags;
  }

  /** Removes all rows. Cost: O(1) after a small transaction. */
  reset(): void {
    if (this.count > rowsKept) {
      this.#words = new Uint32Array(rowsMin * wordsPerRow);
      this.#etags = new Float64Array(rowsMin);
      this.#slots = new Uint32Array(rowsMin * 2);
    } else if (this.#hashed > 0) this.#slots.fill(0);
    this.#hashed = 0;
    this.#askedDocument = -1;
    this.count = 0;
    this.puts = 0;
    this.putBytes = 0;
  }

  /**
   * Adds a row.
   * @param at offset of the record in the transaction's buffer. @param recordLength 0 is a deletion.
   * @param collectionId, flags - 16 bits each.
   */
  push(
    document: number,
    etag: number,
    at: number,
    recordLength: number,
    collectionId: number,
    flags: number,
  ): void {
    if (this.count === this.#etags.length) this.#grow();
    const row = this.count++;
    if (recordLength > 0) this.puts++;
    this.putBytes += recordLength;
    this.#askedDocument = document;
    this.#askedRow = row;
    const words = this.#words;
    const base = row * wordsPerRow;
    words[base + documentAt] = document;
    words[base + offsetAt] = at;
    words[base + recordLengthAt] = recordLength;
    words[base + wordAt] = (collectionId << 16) | flags;
    this.#etags[row] = etag;
  }

  /** Returns the newest row of this document, or -1. */
  newestOf(document: number): number {
    if (document !== this.#askedDocument) {
      this.#askedRow = this.#find(document);
      this.#askedDocument = document;
    }
    return this.#askedRow;
  }

  #find(document: number): number {
    const words = this.#words;
    if (this.count <= scanRowsMax) {
      for (let row = this.count - 1; row >= 0; row--) {
        if (words[row * wordsPerRow + documentAt] === document) return row;
      }
      return -1;
    }
    while (this.#hashed < this.count) this.#setNewest(this.#hashed++);
    const slots = this.#slots;
    const mask = slots.length - 1;
    for (let slot = slotOf(document) & mask; ; slot = (slot + 1) & mask) {
      const row = (slots[slot] as number) - 1; // slot <= mask
      if (row < 0 || words[row * wordsPerRow + documentAt] === document) return row;
    }
  }

  documentOf(row: number): number {
    return this.#words[row * wordsPerRow + documentAt] as number;
  }

  etagOf(row: number): number {
    return this.#etags[row] as number;
  }

  offsetOf(row: number): number {
    return this.#words[row * wordsPerRow + offsetAt] as number;
  }

  /** 0 is a deletion. */
  recordLengthOf(row: number): number {
    return this.#words[row * wordsPerRow + recordLengthAt] as number;
  }

  collectionOf(row: number): number {
    return (this.#words[row * wordsPerRow + wordAt] as number) >>> 16;
  }

  flagsOf(row: number): number {
    return (this.#words[row * wordsPerRow + wordAt] as number) & 0xffff;
  }

  #setNewest(row: number): void {
    const words = this.#words;
    const slots = this.#slots;
    const mask = slots.length - 1;
    const document = words[row * wordsPerRow + documentAt] as number;
    let slot = slotOf(document) & mask;
    for (;;) {
      const other = (slots[slot] as number) - 1;
      if (other < 0 || words[other * wordsPerRow + documentAt] === document) break;
      slot = (slot + 1) & mask;
    }
    slots[slot] = row + 1;
  }

  #grow(): void {
    const words = new Uint32Array(this.#words.length * 2);
    words.set(this.#words);
    this.#words = words;
    const etags = new Float64Array(this.#etags.length * 2);
    etags.set(this.#etags);
    this.#etags = etags;
    this.#slots = new Uint32Array(this.#slots.length * 2);
    this.#hashed = 0;
  }
}

/** Mixes adjacent numbers. */
function slotOf(document: number): number {
  const mixed = Math.imul(document, 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}
