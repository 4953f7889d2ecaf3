/**
 * The bytes of all ids, one after another in chunks. An id's place is its address; a document is identified by its
 * number.
 *
 *   chunk: ... | length u16 | lower-cased UTF-8 bytes | 0 or 1 byte of padding | length ...
 *
 * The upper bit of a length marks a removed id. A chunk of removed ids only is freed; the ids left in a sparse chunk
 * can be moved to the end.
 *
 * Invariants:
 * - An id never spans two chunks, and is never changed in place.
 * - Ids begin at even offsets; a place is (chunk * chunkBytes + offset) / 2, fits 32 bits and is not 0.
 */
import { assert } from "../assert.ts";
import { EngineError } from "../errors.ts";
import { nameBytesMax } from "../limits.ts";
import { compareBytes } from "./compare.ts";
import { type ByteReader, bytesOf } from "./sections.ts";

/** Bytes of an id's header, its length. */
const headBytes = 2;
/** Offset of the first id in chunk 0, so that no place is 0. */
const startBytes = 2;
const removedBit = 0x80;

/** Called for an id, `chunk[start, end)`, that was moved to another place. @returns its document's number */
type MoveListener = (chunk: Buffer, start: number, end: number, from: number, to: number) => number;

/**
 * UTF-8 of the results of `toLowerCase` for a final capital sigma, `\u0130`, letters after U+FFFF and letters of
 * Unicode 16 and 17.
 */
const ambiguousBytes =
  /\xcf\x82|i\xcc\x87|[\xf0-\xf4][\x80-\xbf]{3}|\xe1\xb2\x8a|\xea\x9f[\x8d\x8f\x93\x95\x9b]|\xc9\xa4|\xc6\x9b/;
/** Number of bytes of a section that are searched in one call. */
const searchBytes = 256 * 1024;

/**
 * Returns whether the slab of a snapshot may contain an id that an older version lower-cased to another text. False
 * positives are possible. Cost: O(bytes).
 */
export function hasAmbiguousIds(section: Buffer): boolean {
  for (let at = 0; at < section.length; at += searchBytes) {
    const end = Math.min(at + searchBytes + 3, section.length);
    if (ambiguousBytes.test(section.latin1Slice(at, end))) return true;
  }
  return false;
}

export class IdSlab {
  readonly #chunkBytes: number;
  readonly #chunkShift: number;
  readonly #placeShift: number;
  readonly #placeMask: number;
  /** Undefined where all ids were removed. */
  #chunks: (Buffer | undefined)[] = [];
  /** Bytes used in each chunk, and the part of them that belongs to ids that are not removed. */
  #used: number[] = [];
  #live: number[] = [];
  /** Chunks that are undefined, for reuse. */
  #freeChunks: number[] = [];
  /** The chunk that ids are added to; -1: none. */
  #tail = -1;
  #usedBytes = 0;
  #liveBytes = 0;
  /** Place of each document's id, by document number; 0: no id. Undefined: no number in the chunk has an id. */
  #places: (Uint32Array | undefined)[] = [];
  #count = 0;
  #idCount = 0;
  /** Chunks of places that are referenced by the result of `parts`: copied on write. */
  readonly #shared = new WeakSet<Uint32Array>();

  /** @param chunkBytes, placesPerChunk - powers of two; a chunk holds at least one longest id. */
  constructor(chunkBytes: number, placesPerChunk: number) {
    assert(chunkBytes >= nameBytesMax + 4, "a chunk of the slab holds the longest id");
    this.#chunkBytes = chunkBytes;
    this.#chunkShift = Math.log2(chunkBytes) - 1;
    this.#placeShift = Math.log2(placesPerChunk);
    this.#placeMask = placesPerChunk - 1;
  }

  /** All document numbers are below it; some may have no id. */
  get count(): number {
    return this.#count;
  }

  /**
   * Adds `bytes[0, length)` as the id of `docNum`, which must have no id and be at most `count`. @returns its place.
   */
  add(bytes: Buffer, length: number, docNum = this.#count): number {
    assert(docNum <= this.#count && !this.hasNumber(docNum), "a document has one id");
    const place = this.#append(bytes, 0, length);
    this.#setPlace(docNum, place);
    if (docNum === this.#count) this.#count++;
    this.#idCount++;
    return place;
  }

  /** Returns whether this number has an id. */
  hasNumber(docNum: number): boolean {
    return this.placeOf(docNum) !== 0;
  }

  /** Number of ids. */
  get idCount(): number {
    return this.#idCount;
  }

  #append(bytes: Buffer, from: number, length: number): number {
    const need = (headBytes + length + 1) & ~1;
    let tail = this.#tail;
    if (tail < 0 || (this.#used[tail] as number) + need > this.#chunkBytes) tail = this.#addChunk();
    const chunk = this.#chunks[tail] as Buffer; // created above at the latest
    const at = this.#used[tail] as number;
    chunk.writeUInt16LE(length, at);
    for (let byte = 0; byte < length; byte++) {
      chunk[at + headBytes + byte] = bytes[from + byte] as number; // the caller's range is within
    }
    this.#used[tail] = at + need;
    this.#live[tail] = (this.#live[tail] as number) + need;
    this.#usedBytes += need;
    this.#liveBytes += need;
    return tail * (this.#chunkBytes / 2) + at / 2;
  }

  #addChunk(): number {
    const at = this.#freeChunks.pop() ?? this.#chunks.length;
    if ((at + 1) * (this.#chunkBytes / 2) > 2 ** 32) {
      throw new EngineError("too-large", "The database holds no more document ids");
    }
    const before = this.#tail;
    this.#chunks[at] = Buffer.alloc(this.#chunkBytes);
    this.#used[at] = at === 0 ? startBytes : 0;
    this.#live[at] = 0;
    this.#tail = at;
    if (before >= 0 && this.#live[before] === 0) this.#dropChunk(before);
    return at;
  }

  #dropChunk(at: number): void {
    this.#usedBytes -= (this.#used[at] as number) - (at === 0 ? startBytes : 0);
    this.#chunks[at] = undefined;
    this.#used[at] = 0;
    this.#freeChunks.push(at);
  }

  /** Numbers from `count` on have no ids: they are removed, and can be added again. */
  truncate(count: number): void {
    this.#count = count;
    this.#places.length = Math.min(this.#places.length, Math.ceil(count / (this.#placeMask + 1)));
  }

  /** 0 if the number has no id. */
  placeOf(docNum: number): number {
    return docNum < this.#count ? this.#placeOf(docNum) : 0;
  }

  /** Removes the id of `docNum`; its place may be reused. */
  remove(docNum: number): void {
    const place = this.#placeOf(docNum);
    assert(place !== 0, "an id that is there is removed");
    this.#setPlace(docNum, 0);
    this.#removeAt(place);
    this.#idCount--;
  }

  #removeAt(place: number): void {
    const at = place >>> this.#chunkShift;
    const chunk = this.#chunkOf(place);
    const offset = this.#offsetOf(place);
    const need = (headBytes + lengthAt(chunk, offset) + 1) & ~1;
    chunk[offset + 1] = (chunk[offset + 1] as number) | removedBit;
    this.#liveBytes -= need;
    this.#live[at] = (this.#live[at] as number) - need;
    if (this.#live[at] === 0 && at !== this.#tail) this.#dropChunk(at);
  }

  /** No number in the chunk of `docNum` has an id: frees the memory of their places. */
  dropPlaces(docNum: number): void {
    this.#places[docNum >>> this.#placeShift] = undefined;
  }

  /** Whether removed ids use so much space that moving the ids of a chunk is worthwhile. */
  get isSparse(): boolean {
    return this.#usedBytes - this.#liveBytes > this.#liveBytes / 4 + this.#chunkBytes;
  }

  /** Moves the ids of the chunk with the fewest live bytes; `moved` is called for each. Cost: O(ids of a chunk). */
  condense(moved: MoveListener): void {
    let sparsest = -1;
    for (const [at, live] of this.#live.entries()) {
      if (at === this.#tail || this.#chunks[at] === undefined) continue;
      if (sparsest < 0 || live < (this.#live[sparsest] as number)) sparsest = at;
    }
    const chunk = this.#chunks[sparsest];
    if (chunk === undefined) return;
    const end = this.#used[sparsest] as number; // as many as chunks
    let at = sparsest === 0 ? startBytes : 0;
    while (at < end) {
      const length = lengthAt(chunk, at);
      const next = at + ((headBytes + length + 1) & ~1);
      if (!isRemoved(chunk, at)) {
        const from = (sparsest * this.#chunkBytes + at) / 2;
        const place = this.#append(chunk, at + headBytes, length);
        const docNum = moved(chunk, at + headBytes, at + headBytes + length, from, place);
        this.#setPlace(docNum, place);
        this.#removeAt(from);
      }
      at = next;
    }
  }

  /** Returns whether the id at `place` equals `bytes[0, length)`. Hot. */
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

  /** Returns whether an id can be at `place`, judging by the place alone. */
  covers(place: number): boolean {
    const chunk = place >>> this.#chunkShift;
    if (this.#chunks[chunk] === undefined) return false;
    return this.#offsetOf(place) + headBytes <= (this.#used[chunk] as number);
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

  /** Returns the lower-cased id of `docNum`; "" if it has no id. */
  textOf(docNum: number): string {
    const place = this.#placeOf(docNum);
    if (place === 0) return "";
    const chunk = this.#chunkOf(place);
    const at = this.#offsetOf(place);
    const start = at + headBytes;
    return chunk.toString("utf8", start, start + lengthAt(chunk, at));
  }

  memoryBytes(): number {
    const chunks = this.#chunks.length - this.#freeChunks.length;
    let bytes = chunks * this.#chunkBytes + this.#chunks.length * 24;
    for (const places of this.#places) bytes += places?.byteLength ?? 8;
    return bytes;
  }

  /** Returns the slab's bytes; unaffected by additions, but not by removals or moves. */
  parts(): Uint8Array[] {
    const { length } = this.#chunks;
    const parts: Uint8Array[] = [
      bytesOf(Uint32Array.of(this.#count, length, this.#tail + 1, this.#chunkBytes)),
      bytesOf(Uint32Array.from(this.#used)),
    ];
    for (const [at, chunk] of this.#chunks.entries()) {
      if (chunk !== undefined) parts.push(chunk.subarray(0, this.#used[at]));
    }
    const none = new Uint32Array(this.#placeMask + 1);
    for (let from = 0, at = 0; from < this.#count; from += this.#placeMask + 1, at++) {
      const places = this.#places[at] ?? none;
      this.#shared.add(places);
      parts.push(bytesOf(places.subarray(0, this.#count - from)));
    }
    return parts;
  }

  /**
   * Fills an empty slab from the bytes of `parts`. @throws EngineError database-damaged
   * @param isOld - of a version without removed ids.
   */
  restore(reader: ByteReader, isOld = false): void {
    assert(this.#count === 0, "only an empty slab is restored");
    const count = reader.uint32();
    const chunkCount = reader.uint32();
    const tail = reader.uint32();
    reader.expect(reader.uint32() === this.#chunkBytes, "slab chunk size");
    reader.expect(chunkCount > 0 || count === 0, "slab chunk count");
    this.#restoreChunks(reader, chunkCount, isOld ? tail : -1);
    this.#tail = (isOld ? chunkCount : tail) - 1;
    reader.expect(this.#tail < chunkCount, "slab tail");
    reader.expect(this.#tail < 0 || this.#chunks[this.#tail] !== undefined, "slab tail");
    for (let left = count; left > 0; left -= this.#placeMask + 1) {
      const length = Math.min(left, this.#placeMask + 1) * 4;
      reader.reserve(length);
      const places = new Uint32Array(this.#placeMask + 1);
      reader.copy(places, length);
      this.#places.push(places);
    }
    this.#count = count;
    if (isOld) this.#measureChunks(reader);
    this.#checkChunks(reader);
    this.#checkPlaces(reader);
  }

  /**
   * @param lastUsed - bytes of the last chunk, if all others are full; -1: a list of the lengths precedes the chunks.
   */
  #restoreChunks(reader: ByteReader, count: number, lastUsed: number): void {
    reader.reserve(count);
    const lengths =
      lastUsed < 0 ? reader.uint32s(count) : new Uint32Array(count).fill(this.#chunkBytes);
    if (lastUsed >= 0 && count > 0) lengths[count - 1] = lastUsed;
    for (const [at, length] of lengths.entries()) {
      reader.expect(length <= this.#chunkBytes && length % 2 === 0, "slab chunk length");
      reader.reserve(length);
      this.#live.push(0);
      this.#used.push(length);
      if (length === 0) {
        this.#freeChunks.push(at);
        this.#chunks.push(undefined);
        continue;
      }
      const chunk = Buffer.alloc(this.#chunkBytes);
      reader.copy(chunk, length);
      this.#chunks.push(chunk);
    }
  }

  /** Old snapshots do not record where the ids of a chunk end: that follows from the places. */
  #measureChunks(reader: ByteReader): void {
    this.#used = this.#used.map((_, at) => (at === 0 ? startBytes : 0));
    for (let docNum = 0; docNum < this.#count; docNum++) {
      const place = this.#placeOf(docNum);
      const at = place >>> this.#chunkShift;
      const chunk = this.#chunks[at];
      const offset = this.#offsetOf(place);
      if (chunk === undefined || offset + headBytes > this.#chunkBytes) {
        reader.expect(false, "id places");
        return;
      }
      const end = offset + ((headBytes + lengthAt(chunk, offset) + 1) & ~1);
      if (end > (this.#used[at] as number)) this.#used[at] = end; // as many as chunks
    }
  }

  /** Checks that the ids of each chunk are contiguous, and counts the bytes of ids that are not removed. */
  #checkChunks(reader: ByteReader): void {
    for (const [index, chunk] of this.#chunks.entries()) {
      if (chunk === undefined) continue;
      const end = this.#used[index] as number; // as many as chunks
      const start = index === 0 ? startBytes : 0;
      reader.expect(end <= this.#chunkBytes, "id lengths");
      let live = 0;
      for (let at = start; at < end; ) {
        const next = at + ((headBytes + lengthAt(chunk, at) + 1) & ~1);
        if (next > end) reader.expect(false, "id lengths");
        if (!isRemoved(chunk, at)) live += next - at;
        at = next;
      }
      this.#live[index] = live;
      this.#liveBytes += live;
      this.#usedBytes += end - start;
    }
  }

  /** Checks that each place is that of an id, and that each id has a place. */
  #checkPlaces(reader: ByteReader): void {
    let bytes = 0;
    for (let docNum = 0; docNum < this.#count; docNum++) {
      const place = this.#placeOf(docNum);
      if (place === 0) continue;
      const chunk = this.#chunks[place >>> this.#chunkShift];
      const at = this.#offsetOf(place);
      if (chunk === undefined || !this.covers(place) || isRemoved(chunk, at)) {
        reader.expect(false, "id places");
        return;
      }
      bytes += (headBytes + lengthAt(chunk, at) + 1) & ~1;
      this.#idCount++;
    }
    reader.expect(bytes === this.#liveBytes, "id places");
  }

  checkInvariants(): void {
    let liveBytes = 0;
    let usedBytes = 0;
    for (const [index, chunk] of this.#chunks.entries()) {
      if (chunk === undefined) {
        assert(this.#freeChunks.includes(index), "a removed chunk may be allocated again");
        continue;
      }
      usedBytes += (this.#used[index] as number) - (index === 0 ? startBytes : 0);
      let live = 0;
      for (let at = index === 0 ? startBytes : 0; at < (this.#used[index] as number); ) {
        const need = (headBytes + lengthAt(chunk, at) + 1) & ~1;
        if (!isRemoved(chunk, at)) live += need;
        at += need;
      }
      assert(live === this.#live[index], "a chunk's ids are counted");
      assert(live > 0 || index === this.#tail, "a chunk without ids is released");
      liveBytes += live;
    }
    assert(liveBytes === this.#liveBytes && usedBytes === this.#usedBytes, "bytes are counted");
    const seen = new Set<number>();
    for (let docNum = 0; docNum < this.#count; docNum++) {
      const place = this.#placeOf(docNum);
      if (place === 0) continue;
      assert(this.covers(place) && !seen.has(place), "an id is of one document");
      seen.add(place);
      const chunk = this.#chunkOf(place);
      const at = this.#offsetOf(place);
      assert(!isRemoved(chunk, at), "an id that a document has is there");
      assert(lengthAt(chunk, at) <= nameBytesMax, "an id is within its limit");
      liveBytes -= (headBytes + lengthAt(chunk, at) + 1) & ~1;
    }
    assert(liveBytes === 0, "an id that is there is a document's");
    assert(seen.size === this.#idCount, "ids are counted");
  }

  /** 0 if the number has no id. */
  #placeOf(docNum: number): number {
    const places = this.#places[docNum >>> this.#placeShift];
    return places === undefined ? 0 : (places[docNum & this.#placeMask] as number);
  }

  #setPlace(docNum: number, place: number): void {
    const at = docNum >>> this.#placeShift;
    let places = this.#places[at];
    if (places === undefined) {
      places = new Uint32Array(this.#placeMask + 1);
      this.#places[at] = places;
    } else if (this.#shared.has(places)) {
      places = places.slice();
      this.#places[at] = places;
    }
    places[docNum & this.#placeMask] = place;
  }

  #chunkOf(place: number): Buffer {
    return this.#chunks[place >>> this.#chunkShift] as Buffer; // there is an id at the place
  }

  #offsetOf(place: number): number {
    return (place & (this.#chunkBytes / 2 - 1)) * 2;
  }
}

/** Of an id that may be removed. */
function lengthAt(chunk: Buffer, at: number): number {
  return (chunk[at] as number) | (((chunk[at + 1] as number) & ~removedBit) << 8); // an id begins at `at`
}

function isRemoved(chunk: Buffer, at: number): boolean {
  return ((chunk[at + 1] as number) & removedBit) !== 0; // an id begins at `at`
}
