/**
 * The bytes of all ids, one after another in chunks. An id's place says where; a document is known by
 * its number, given in the order in which ids come.
 *
 *   chunk: ... | length u16 | lower-cased UTF-8 bytes | 0 or 1 byte of padding | length ...
 *
 * Invariants:
 * - Append-only: what was written stays, and an id never spans two chunks.
 * - Ids begin at even offsets; a place is (chunk * chunkBytes + offset) / 2, fits 32 bits and is not 0.
 */
import { assert } from "../assert.ts";
import { EngineError } from "../errors.ts";
import { nameBytesMax } from "../limits.ts";
import { compareBytes } from "./compare.ts";
import { type ByteReader, bytesOf } from "./sections.ts";

/** Bytes before an id's own. */
const headBytes = 2;
/** Where the first id of the slab begins, so that no place is 0. */
const startBytes = 2;

export class IdSlab {
  readonly #chunkBytes: number;
  readonly #chunkShift: number;
  readonly #placeShift: number;
  readonly #placeMask: number;
  #chunks: Buffer[] = [];
  /** Place of each document's id, by document number. */
  #places: Uint32Array[] = [];
  /** Bytes used of the last chunk. */
  #used: number;
  #count = 0;

  /** @param chunkBytes, placesPerChunk - powers of two; a chunk holds at least one longest id. */
  constructor(chunkBytes: number, placesPerChunk: number) {
    assert(chunkBytes >= nameBytesMax + 4, "a chunk of the slab holds the longest id");
    this.#chunkBytes = chunkBytes;
    this.#chunkShift = Math.log2(chunkBytes) - 1;
    this.#placeShift = Math.log2(placesPerChunk);
    this.#placeMask = placesPerChunk - 1;
    this.#used = chunkBytes;
  }

  /** Number of ids; documents are numbered below it. */
  get count(): number {
    return this.#count;
  }

  /** Appends `bytes[0, length)`, the id of document `count`, and returns its place. */
  add(bytes: Buffer, length: number): number {
    const need = (headBytes + length + 1) & ~1;
    if (this.#used + need > this.#chunkBytes) {
      if ((this.#chunks.length + 1) * (this.#chunkBytes / 2) > 2 ** 32) {
        throw new EngineError("too-large", "The database holds no more document ids");
      }
      this.#chunks.push(Buffer.alloc(this.#chunkBytes));
      this.#used = this.#chunks.length === 1 ? startBytes : 0;
    }
    const chunk = this.#chunks[this.#chunks.length - 1] as Buffer; // pushed above at the latest
    const at = this.#used;
    const docNum = this.#count++;
    chunk.writeUInt16LE(length, at);
    for (let from = 0; from < length; from++) {
      chunk[at + headBytes + from] = bytes[from] as number; // from < length <= bytes.length
    }
    this.#used = at + need;
    let places = this.#places[docNum >>> this.#placeShift];
    if (places === undefined) {
      places = new Uint32Array(this.#placeMask + 1);
      this.#places.push(places);
    }
    const place = (this.#chunks.length - 1) * (this.#chunkBytes / 2) + at / 2;
    places[docNum & this.#placeMask] = place;
    return place;
  }

  /** Is the id at `place` `bytes[0, length)`? Hot. */
  has(place: number, bytes: Buffer, length: number): boolean {
    const chunk = this.#chunkOf(place);
    const at = this.#offsetOf(place);
    if (lengthAt(chunk, at) !== length) return false;
    const start = at + headBytes;
    for (let byte = 0; byte < length; byte++) {
      if (chunk[start + byte] !== bytes[byte]) return false;
    }
    return true;
  }

  /** Is there an id at `place`, as far as can be told from the place alone? */
  covers(place: number): boolean {
    const chunk = place >>> this.#chunkShift;
    if (chunk >= this.#chunks.length) return false;
    const end = chunk === this.#chunks.length - 1 ? this.#used : this.#chunkBytes;
    return this.#offsetOf(place) + headBytes <= end;
  }

  /** Orders two documents by the bytes of their ids. */
  compare(left: number, right: number): number {
    const leftPlace = this.#placeOf(left);
    const rightPlace = this.#placeOf(right);
    const leftChunk = this.#chunkOf(leftPlace);
    const rightChunk = this.#chunkOf(rightPlace);
    const leftAt = this.#offsetOf(leftPlace);
    const rightAt = this.#offsetOf(rightPlace);
    return compareBytes(
      leftChunk,
      leftAt + headBytes,
      lengthAt(leftChunk, leftAt),
      rightChunk,
      rightAt + headBytes,
      lengthAt(rightChunk, rightAt),
    );
  }

  /** Orders the id of `docNum` against `bytes`. */
  compareTo(docNum: number, bytes: Buffer): number {
    const place = this.#placeOf(docNum);
    const chunk = this.#chunkOf(place);
    const at = this.#offsetOf(place);
    return compareBytes(chunk, at + headBytes, lengthAt(chunk, at), bytes, 0, bytes.length);
  }

  /** The lower-cased id of `docNum`. */
  textOf(docNum: number): string {
    const place = this.#placeOf(docNum);
    const chunk = this.#chunkOf(place);
    const at = this.#offsetOf(place);
    const start = at + headBytes;
    return chunk.toString("utf8", start, start + lengthAt(chunk, at));
  }

  memoryBytes(): number {
    return this.#chunks.length * this.#chunkBytes + this.#places.length * (this.#placeMask + 1) * 4;
  }

  /** The slab's bytes; they stay as they are while ids are added. */
  parts(): Uint8Array[] {
    const head = [this.#count, this.#chunks.length, this.#used, this.#chunkBytes];
    const parts: Uint8Array[] = [bytesOf(Uint32Array.from(head))];
    for (const [at, chunk] of this.#chunks.entries()) {
      parts.push(at === this.#chunks.length - 1 ? chunk.subarray(0, this.#used) : chunk);
    }
    let left = this.#count;
    for (const places of this.#places) {
      parts.push(bytesOf(places.subarray(0, left)));
      left -= places.length;
    }
    return parts;
  }

  /** Fills an empty slab from what `parts` gave. @throws EngineError database-damaged */
  restore(reader: ByteReader): void {
    assert(this.#count === 0, "only an empty slab is restored");
    const count = reader.uint32();
    const chunkCount = reader.uint32();
    const used = reader.uint32();
    reader.expect(
      reader.uint32() === this.#chunkBytes && used <= this.#chunkBytes,
      "slab chunk size",
    );
    reader.expect(chunkCount > 0 || count === 0, "slab chunk count");
    for (let at = 0; at < chunkCount; at++) {
      const length = at === chunkCount - 1 ? used : this.#chunkBytes;
      reader.reserve(length);
      const chunk = Buffer.alloc(this.#chunkBytes);
      reader.copy(chunk, length);
      this.#chunks.push(chunk);
    }
    for (let left = count; left > 0; left -= this.#placeMask + 1) {
      const length = Math.min(left, this.#placeMask + 1) * 4;
      reader.reserve(length);
      const places = new Uint32Array(this.#placeMask + 1);
      reader.copy(places, length);
      this.#places.push(places);
    }
    this.#used = chunkCount === 0 ? this.#chunkBytes : used;
    this.#count = count;
    this.#checkPlaces(reader);
  }

  /** Ids stand one behind another in the order of their numbers, so each place follows from the last. */
  #checkPlaces(reader: ByteReader): void {
    const shift = this.#chunkShift;
    let chunkAt = 0;
    let at = startBytes;
    for (let docNum = 0; docNum < this.#count; docNum++) {
      const place = this.#placeOf(docNum);
      if (place >>> shift !== chunkAt) {
        chunkAt++;
        at = 0;
      }
      const chunk = this.#chunks[chunkAt];
      const end = chunkAt === this.#chunks.length - 1 ? this.#used : this.#chunkBytes;
      const isHere = place >>> shift === chunkAt && this.#offsetOf(place) === at;
      if (chunk === undefined || !isHere || at + headBytes > end) {
        reader.expect(false, "id places");
        return;
      }
      at += (headBytes + lengthAt(chunk, at) + 1) & ~1;
      if (at > end) reader.expect(false, "id lengths");
    }
  }

  checkInvariants(): void {
    let previous = 0;
    for (let docNum = 0; docNum < this.#count; docNum++) {
      const place = this.#placeOf(docNum);
      assert(place > previous, "ids stand in the order of their documents' numbers");
      const chunk = this.#chunkOf(place);
      const at = this.#offsetOf(place);
      assert(lengthAt(chunk, at) <= nameBytesMax, "an id is within its limit");
      assert(at + headBytes + lengthAt(chunk, at) <= this.#chunkBytes, "an id is within its chunk");
      previous = place;
    }
  }

  #placeOf(docNum: number): number {
    const places = this.#places[docNum >>> this.#placeShift] as Uint32Array; // docNum < count
    return places[docNum & this.#placeMask] as number;
  }

  #chunkOf(place: number): Buffer {
    return this.#chunks[place >>> this.#chunkShift] as Buffer; // places are made by add() alone
  }

  #offsetOf(place: number): number {
    return (place & (this.#chunkBytes / 2 - 1)) * 2;
  }
}

function lengthAt(chunk: Buffer, at: number): number {
  return (chunk[at] as number) | ((chunk[at + 1] as number) << 8); // an id begins at `at`
}
