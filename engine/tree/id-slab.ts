/**
 * The bytes of all ids, one after another in chunks, and where each document's begin. A document is
 * known by its number, given in the order in which ids come.
 *
 *   chunk: ... | length u16 | lower-cased UTF-8 bytes | 0 or 1 byte of padding | length u16 | ...
 *
 * Invariants:
 * - Append-only: what was written stays, and an id never spans two chunks.
 * - Ids begin at even offsets; a place is (chunk * chunkBytes + offset) / 2 and fits 32 bits.
 */
import { assert } from "../assert.ts";
import { EngineError } from "../errors.ts";
import { nameBytesMax } from "../limits.ts";
import { compareBytes } from "./compare.ts";
import { type ByteReader, bytesOf } from "./sections.ts";

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

  /** Appends `bytes[0, length)` and returns its document's number. */
  add(bytes: Buffer, length: number): number {
    const need = (2 + length + 1) & ~1;
    if (this.#used + need > this.#chunkBytes) {
      if ((this.#chunks.length + 1) * (this.#chunkBytes / 2) > 2 ** 32) {
        throw new EngineError("too-large", "The database holds no more document ids");
      }
      this.#chunks.push(Buffer.alloc(this.#chunkBytes));
      this.#used = 0;
    }
    const chunk = this.#chunks[this.#chunks.length - 1] as Buffer; // pushed above at the latest
    const at = this.#used;
    chunk[at] = length & 0xff;
    chunk[at + 1] = length >>> 8;
    for (let from = 0; from < length; from++) chunk[at + 2 + from] = bytes[from] as number; // within
    this.#used = at + need;
    const docNum = this.#count++;
    let places = this.#places[docNum >>> this.#placeShift];
    if (places === undefined) {
      places = new Uint32Array(this.#placeMask + 1);
      this.#places.push(places);
    }
    places[docNum & this.#placeMask] = (this.#chunks.length - 1) * (this.#chunkBytes / 2) + at / 2;
    return docNum;
  }

  /** Is the id of `docNum` equal to `bytes[0, length)`? Hot. */
  equals(docNum: number, bytes: Buffer, length: number): boolean {
    const place = this.#placeOf(docNum);
    const chunk = this.#chunkOf(place);
    const at = this.#offsetOf(place);
    if (((chunk[at] as number) | ((chunk[at + 1] as number) << 8)) !== length) return false;
    for (let byte = 0; byte < length; byte++) {
      if (chunk[at + 2 + byte] !== bytes[byte]) return false;
    }
    return true;
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
      leftAt + 2,
      (leftChunk[leftAt] as number) | ((leftChunk[leftAt + 1] as number) << 8),
      rightChunk,
      rightAt + 2,
      (rightChunk[rightAt] as number) | ((rightChunk[rightAt + 1] as number) << 8),
    );
  }

  /** Orders the id of `docNum` against `bytes`. */
  compareTo(docNum: number, bytes: Buffer): number {
    const place = this.#placeOf(docNum);
    const chunk = this.#chunkOf(place);
    const at = this.#offsetOf(place);
    const length = (chunk[at] as number) | ((chunk[at + 1] as number) << 8);
    return compareBytes(chunk, at + 2, length, bytes, 0, bytes.length);
  }

  /** The lower-cased id of `docNum`. */
  textOf(docNum: number): string {
    const place = this.#placeOf(docNum);
    const chunk = this.#chunkOf(place);
    const at = this.#offsetOf(place);
    return chunk.toString("utf8", at + 2, at + 2 + chunk.readUInt16LE(at));
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
      const chunk = Buffer.alloc(this.#chunkBytes);
      reader.copy(chunk, at === chunkCount - 1 ? used : this.#chunkBytes);
      this.#chunks.push(chunk);
    }
    for (let left = count; left > 0; left -= this.#placeMask + 1) {
      const places = new Uint32Array(this.#placeMask + 1);
      reader.copy(places, Math.min(left, places.length) * 4);
      this.#places.push(places);
    }
    this.#used = chunkCount === 0 ? this.#chunkBytes : used;
    this.#count = count;
    this.#checkPlaces(reader);
  }

  /** Ids stand one behind another in the order of their numbers, so each place follows from the last. */
  #checkPlaces(reader: ByteReader): void {
    let chunkAt = 0;
    let at = 0;
    for (let docNum = 0; docNum < this.#count; docNum++) {
      const place = this.#placeOf(docNum);
      if (place >>> this.#chunkShift !== chunkAt) {
        chunkAt++;
        at = 0;
      }
      const chunk = this.#chunks[chunkAt];
      const end = chunkAt === this.#chunks.length - 1 ? this.#used : this.#chunkBytes;
      const expected = chunkAt * (this.#chunkBytes / 2) + at / 2;
      if (chunk === undefined || place !== expected || at + 2 > end)
        reader.expect(false, "id places");
      else at += 2 + ((((chunk[at] as number) | ((chunk[at + 1] as number) << 8)) + 1) & ~1);
      if (at > end) reader.expect(false, "id lengths");
    }
  }

  checkInvariants(): void {
    let previous = -1;
    for (let docNum = 0; docNum < this.#count; docNum++) {
      const place = this.#placeOf(docNum);
      assert(place > previous, "ids stand in the order of their documents' numbers");
      const length = this.#chunkOf(place).readUInt16LE(this.#offsetOf(place));
      assert(length <= nameBytesMax, "an id is within its limit");
      assert(this.#offsetOf(place) + 2 + length <= this.#chunkBytes, "an id is within its chunk");
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
