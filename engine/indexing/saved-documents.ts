/**
 * The documents that the snapshot of an index names: which version of each the index has, and where they are now.
 *
 * A document's number is good for one opening of a database; what stays is the etag of its version. A snapshot has, for each number
 * in it, the etag of the document's newest version when it was written. When that version is one that the index had
 * taken in, and is still the newest, then what the snapshot has of it is right. Everything else is dropped: it was stored again or
 * deleted, and if it is there, it has an etag that the index comes to.
 *
 *   for each number, ascending:  | number - the one before, varint | etag - the one before, zigzag varint |
 *
 * Invariants:
 * - No two documents have the same etag, and no etag is given out twice.
 */
import type { SavedDocuments } from "./entry-store.ts";
import type { RestoredDocuments } from "./followed-index.ts";
import { restoreStride } from "./store-column.ts";

const pieceBytes = 64 * 1024;
/** Of a number and an etag: two varints of at most 53 bits. */
const pairBytesMax = 16;
const nothing = new Uint8Array(0);

/**
 * The section of a snapshot, made piece by piece; an empty piece when there is none after some work.
 * @param etagOf the etag of a document's newest version now, 0 when it is gone
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

/** Documents as the database has them now. */
export interface PresentDocuments {
  /** 0 when there is no document of this number. */
  etagOf(docNum: number): number;
  /** The number of the document whose newest version has this etag, or -1. */
  numberOf(etag: number): number;
  /** An index had taken in everything up to this etag, of whatever it follows. */
  readonly takenInThrough: number;
  /** Is this etag of this document one that the index had taken in? */
  isTakenIn(docNum: number, etag: number): boolean;
}

/** Finds the documents of a snapshot. */
export class FoundDocuments {
  /** By number in the snapshot: the number now. */
  #numbers: Uint32Array = new Uint32Array(1024);
  readonly #gone: number[] = [];
  /** Numbers in the snapshot of documents that are not as they were. */
  readonly #missing: number[] = [];
  /** Numbers that documents have now and had not. */
  readonly #taken = new Set<number>();
  #largest = -1;
  readonly #deletionEtags: ReadonlyMap<string | null, number>;

  /** `deletionEtags`: of each collection that is followed, its newest deletion before `find` began. */
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

  /** Reads a section, in steps. Documents may change between them. */
  *find(section: Buffer, present: PresentDocuments): Generator<void> {
    const cursor: PairCursor = { at: 0, number: -1, etag: 0 };
    while (cursor.at < section.length) {
      yield;
      this.#findSome(section, cursor, present);
    }
    // Each needs a number that no other document of the snapshot has: its own, when nobody moved there.
    this.#largest = Math.max(this.#largest, cursor.number);
    for (const saved of this.#missing) {
      const unused = this.#taken.has(saved) ? ++this.#largest : saved;
      this.#numbers[saved] = unused;
      this.#gone.push(unused);
    }
  }

  /** Hot: as many as there are documents. */
  #findSome(section: Buffer, cursor: PairCursor, present: PresentDocuments): void {
    const { takenInThrough } = present;
    for (let count = 0; count < restoreStride && cursor.at < section.length; count++) {
      cursor.number += readVarint(section, cursor);
      cursor.etag += unzigzag(readVarint(section, cursor));
      const { number, etag } = cursor;
      if (number >= this.#numbers.length) this.#grow(number);
      const isThere = etag !== 0 && present.etagOf(number) === etag;
      if (isThere && etag <= takenInThrough) {
        this.#numbers[number] = number;
        continue;
      }
      const now = isThere ? number : etag === 0 ? -1 : present.numberOf(etag);
      if (now < 0 || !present.isTakenIn(now, etag)) {
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

function writeVarint(target: Buffer, at: number, value: number): number {
  let rest = value;
  while (rest >= 0x80) {
    target[at++] = (rest % 0x80) | 0x80;
    rest = Math.floor(rest / 0x80);
  }
  target[at++] = rest;
  return at;
}

/** Where a reader stands: behind this pair. */
interface PairCursor {
  at: number;
  number: number;
  etag: number;
}

function readVarint(source: Buffer, cursor: PairCursor): number {
  const first = source[cursor.at++] as number; // sections are checked
  if (first < 0x80) return first;
  let value = first & 0x7f;
  for (let factor = 0x80; ; factor *= 0x80) {
    const byte = source[cursor.at++] as number; // sections are checked
    value += (byte & 0x7f) * factor;
    if (byte < 0x80) return value;
  }
}

/** Small numbers of either sign are small. Up to 2^52. */
function zigzag(value: number): number {
  return value < 0 ? -2 * value - 1 : 2 * value;
}

function unzigzag(value: number): number {
  return value % 2 === 1 ? -(value + 1) / 2 : value / 2;
}
