/**
 * The documents that the snapshot of an index refers to: the indexed version of each, and their current numbers.
 *
 * A document's number is valid for one opening of a database; the etag of its version is permanent. A snapshot records,
 * for each number in it, the etag of the document's newest version when it was written. If the index had processed that
 * version, and it is still the newest, the snapshot's entries of the document are valid. All others are dropped: the
 * document was rewritten or deleted, and if it exists, it has an etag that the index has yet to process.
 *
 *   for each number, ascending:  | number - the one before, varint | etag - the one before, zigzag varint |
 *
 * Invariants:
 * - No two documents have the same etag, and no etag is assigned twice.
 */
import type { SavedDocuments } from "../columns/entry-store.ts";
import { restoreStride } from "../columns/store-column.ts";
import type { RestoredDocuments } from "../followed-index.ts";

const pieceBytes = 64 * 1024;
/** For a number and an etag: two varints of at most 53 bits. */
const pairBytesMax = 16;
const smallMax = 2 ** 31;
const nothing = new Uint8Array(0);

/**
 * Yields the section of a snapshot, chunk by chunk; yields an empty chunk after work that produced no output.
 * @param etagOf the current etag of a document's newest version, 0 when it is deleted
 */
export function* documentEtags(
  named: readonly SavedDocuments[],
  etagOf: (docNum: number) => number,
): Generator<Uint8Array> {
  let bits: Uint32Array = new Uint32Array(1024);
  for (const { documents, live } of named) {
    for (let entry = 0; entry < documents.length; entry++) {
      if (entry % restoreStride === 0) yield nothing;
      if (((live[entry >>> 5] as number) & (1 << (entry & 31))) === 0) continue;
      const docNum = documents[entry] as number;
      const at = docNum >>> 5;
      if (at >= bits.length) {
        const larger = new Uint32Array(Math.max(at + 1, bits.length * 2));
        larger.set(bits);
        bits = larger;
      }
      bits[at] = (bits[at] as number) | (1 << (docNum & 31));
    }
  }
  let piece = Buffer.allocUnsafe(pieceBytes);
  let used = 0;
  let lastNumber = -1;
  let lastEtag = 0;
  for (let at = 0; at < bits.length; at++) {
    for (let word = bits[at] as number; word !== 0; word &= word - 1) {
      const docNum = at * 32 + 31 - Math.clz32(word & -word);
      const etag = etagOf(docNum);
      used = writeVarint(piece, used, docNum - lastNumber);
      used = writeVarint(piece, used, zigzag(etag - lastEtag));
      lastNumber = docNum;
      lastEtag = etag;
      if (used + pairBytesMax <= pieceBytes) continue;
      yield piece.subarray(0, used);
      piece = Buffer.allocUnsafe(pieceBytes);
      used = 0;
    }
  }
  yield piece.subarray(0, used);
}

/** The current documents of the database. */
export interface PresentDocuments {
  /** 0 when there is no document of this number. */
  etagOf(docNum: number): number;
  /** Returns the number of the document whose newest version has this etag, or -1. */
  numberOf(etag: number): number;
  /** Etag up to which the index had processed all its sources. */
  readonly processedThrough: number;
  /** Returns whether the index had processed this etag of this document. */
  isProcessed(docNum: number, etag: number): boolean;
}

/** Looks up the documents of a snapshot. */
export class FoundDocuments {
  /** By number in the snapshot: the current number. */
  #numbers: Uint32Array = new Uint32Array(1024);
  readonly #gone: number[] = [];
  /** Numbers in the snapshot of documents that were changed or deleted. */
  readonly #missing: number[] = [];
  /** Current numbers of the documents found. */
  readonly #taken = new Set<number>();
  #largest = -1;
  readonly #deletionEtags: ReadonlyMap<string | null, number>;

  /** `deletionEtags`: the newest deletion before `find` began, of each collection followed. */
  constructor(deletionEtags: ReadonlyMap<string | null, number>) {
    this.#deletionEtags = deletionEtags;
  }

  get restored(): RestoredDocuments {
    return {
      documentOf: (saved) => this.#numbers[saved] as number, // every number is listed
      gone: this.#gone,
      deletionEtagOf: (collection) => this.#deletionEtags.get(collection) ?? 0,
    };
  }

  /** Reads a section, in steps. Documents may change in between. */
  *find(section: Buffer, present: PresentDocuments): Generator<void> {
    const cursor: PairCursor = { at: 0, number: -1, etag: 0 };
    while (cursor.at < section.length) {
      yield;
      this.#findSome(section, cursor, present);
    }
    // Each needs a number that no other document of the snapshot has: its own, unless another document now has that.
    this.#largest = Math.max(this.#largest, cursor.number);
    for (const saved of this.#missing) {
      const unused = this.#taken.has(saved) ? ++this.#largest : saved;
      this.#numbers[saved] = unused;
      this.#gone.push(unused);
    }
  }

  /** Hot: runs once for each document. */
  #findSome(section: Buffer, cursor: PairCursor, present: PresentDocuments): void {
    const { processedThrough } = present;
    for (let count = 0; count < restoreStride && cursor.at < section.length; count++) {
      cursor.number += readVarint(section, cursor);
      cursor.etag += unzigzag(readVarint(section, cursor));
      const { number, etag } = cursor;
      if (number >= this.#numbers.length) this.#grow(number);
      const isThere = etag !== 0 && present.etagOf(number) === etag;
      if (isThere && etag <= processedThrough) {
        this.#numbers[number] = number;
        continue;
      }
      const now = isThere ? number : etag === 0 ? -1 : present.numberOf(etag);
      if (now < 0 || !present.isProcessed(now, etag)) {
        this.#missing.push(number);
        continue;
      }
      this.#numbers[number] = now;
      if (now !== number) this.#taken.add(now);
      this.#largest = Math.max(this.#largest, now);
    }
  }

  #grow(number: number): void {
    const larger = new Uint32Array(Math.max(number + 1, this.#numbers.length * 2));
    larger.set(this.#numbers);
    this.#numbers = larger;
  }
}

/** Hot: runs twice for each document. Nearly all values are small, and written without arithmetic on doubles. */
function writeVarint(target: Buffer, at: number, value: number): number {
  if (value < smallMax) {
    let small = value | 0;
    while (small >= 0x80) {
      target[at++] = (small & 0x7f) | 0x80;
      small >>>= 7;
    }
    target[at++] = small;
    return at;
  }
  let rest = value;
  while (rest >= 0x80) {
    target[at++] = (rest % 0x80) | 0x80;
    rest = Math.floor(rest / 0x80);
  }
  target[at++] = rest;
  return at;
}

/** Position of a reader after a pair. */
interface PairCursor {
  at: number;
  number: number;
  etag: number;
}

function readVarint(source: Buffer, cursor: PairCursor): number {
  const first = source[cursor.at++] as number; // sections are checksummed
  if (first < 0x80) return first;
  let value = first & 0x7f;
  for (let factor = 0x80; ; factor *= 0x80) {
    const byte = source[cursor.at++] as number; // sections are checksummed
    value += (byte & 0x7f) * factor;
    if (byte < 0x80) return value;
  }
}

/** Maps numbers of either sign and small magnitude to small numbers. Up to 2^52. */
function zigzag(value: number): number {
  return value < 0 ? -2 * value - 1 : 2 * value;
}

function unzigzag(value: number): number {
  return value % 2 === 1 ? -(value + 1) / 2 : value / 2;
}
