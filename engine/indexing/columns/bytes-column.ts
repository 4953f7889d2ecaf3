/**
 * Optional bytes for each entry of a store, in chunks: stored texts stay out of the garbage-collected heap.
 *
 *   place of an entry: 0 for none, else chunk * 2^32 + offset + 1
 *   in the chunk:      | length u32 | bytes |
 *
 * Hot: bench/scan.bench.ts.
 */
import { assert } from "../../base/assert.ts";
import type { PartReader, PartWriter } from "../saved/saved-parts.ts";
import { grownFloat64 } from "./packed.ts";
import type { StoreColumn } from "./store-column.ts";

const chunkBytesMin = 4096;
const chunkBytesMax = 1024 * 1024;
const chunkFactor = 2 ** 32;
const lengthBytes = 4;

const noBytes = Buffer.alloc(0);

export class BytesColumn implements StoreColumn {
  entryCount = 0;
  #places: Float64Array = new Float64Array(16);
  readonly #chunks: Buffer[] = [];
  /** By chunk: bytes in use. */
  readonly #used: number[] = [];
  #pending = 0;
  /** The bytes last reserved or found: `chunk[at, at + length)`. */
  chunk: Buffer = noBytes;
  at = 0;
  length = 0;
  /** Number of entries with bytes. */
  #filled = 0;

  /** Whether no entry, live or dead, has bytes. */
  get isEmpty(): boolean {
    return this.#filled === 0;
  }

  /** Reserves the bytes of the entry that `endEntry` will end: in `chunk` from `at` on, to be filled immediately. */
  reserve(length: number): void {
    const needed = lengthBytes + length;
    let number = this.#chunks.length - 1;
    if (number < 0 || (this.#used[number] as number) + needed > this.#chunk(number).length) {
      const size = Math.min(chunkBytesMax, 2 * (this.#chunks.at(-1)?.length ?? chunkBytesMin / 2));
      this.#chunks.push(Buffer.allocUnsafeSlow(Math.max(size, needed)));
      this.#used.push(0);
      number++;
    }
    const used = this.#used[number] as number;
    this.chunk = this.#chunk(number);
    this.at = used + lengthBytes;
    this.length = length;
    writeLength(this.chunk, used, length);
    this.#used[number] = used + needed;
    this.#pending = number * chunkFactor + used + 1;
  }

  setText(text: string): void {
    this.reserve(Buffer.byteLength(text));
    this.chunk.write(text, this.at);
  }

  repeats(entry: number): boolean {
    if (this.#pending === 0) return this.#places[entry] === 0;
    const { chunk, at, length } = this;
    if (!this.find(entry)) return false;
    return chunk.compare(this.chunk, this.at, this.at + this.length, at, at + length) === 0;
  }

  dropPending(): void {
    if (this.#pending === 0) return;
    const number = Math.floor(this.#pending / chunkFactor);
    this.#used[number] = this.#pending - 1 - number * chunkFactor;
    this.#pending = 0;
  }

  endEntry(): void {
    const entry = this.entryCount++;
    this.#places = grownFloat64(this.#places, entry + 1);
    this.#places[entry] = this.#pending;
    if (this.#pending !== 0) this.#filled++;
    this.#pending = 0;
  }

  /** Sets `chunk`, `at` and `length` to the bytes of an entry. @returns false if the entry has no bytes */
  find(entry: number): boolean {
    const place = (this.#places[entry] ?? 0) - 1;
    if (place < 0) return false;
    const number = Math.floor(place / chunkFactor);
    this.chunk = this.#chunk(number);
    this.at = place - number * chunkFactor + lengthBytes;
    this.length = readLength(this.chunk, this.at - lengthBytes);
    return true;
  }

  textOf(entry: number): string | null {
    return this.find(entry) ? this.chunk.utf8Slice(this.at, this.at + this.length) : null;
  }

  empty(): BytesColumn {
    return new BytesColumn();
  }

  copierTo(target: BytesColumn): (entry: number) => void {
    return (entry) => {
      if (!this.find(entry)) return;
      target.reserve(this.length);
      this.chunk.copy(target.chunk, target.at, this.at, this.at + this.length);
    };
  }

  save(parts: PartWriter): void {
    // Most indexes store nothing.
    const isEmpty = this.#filled === 0;
    parts.add("places", this.#places.subarray(0, isEmpty ? 0 : this.entryCount));
    parts.add("bytes", ...this.#chunks.map((chunk, at) => chunk.subarray(0, this.#used[at])));
    parts.set("column", { entryCount: this.entryCount, used: [...this.#used] });
  }

  // biome-ignore lint/correctness/useYield: there is nothing to do for each entry
  *restore(parts: PartReader): Generator<void> {
    const { entryCount, used } = parts.get<{ entryCount: number; used: number[] }>("column");
    this.entryCount = entryCount;
    const places = parts.float64("places");
    this.#places = places.length === entryCount ? places : new Float64Array(entryCount);
    this.#filled = places.length;
    const bytes = parts.bytes("bytes");
    let at = 0;
    for (const length of used) {
      this.#chunks.push(bytes.subarray(at, at + length));
      this.#used.push(length);
      at += length;
    }
  }

  checkInvariants(): void {
    for (let entry = 0; entry < this.entryCount; entry++) {
      if (!this.find(entry)) continue;
      const used = this.#used[this.#chunks.indexOf(this.chunk)] as number;
      assert(this.at + this.length <= used, "bytes of an entry are in their chunk");
    }
  }

  #chunk(number: number): Buffer {
    return this.#chunks[number] as Buffer; // places refer to existing chunks
  }
}

function writeLength(target: Buffer, at: number, length: number): void {
  target[at] = length & 0xff;
  target[at + 1] = (length >>> 8) & 0xff;
  target[at + 2] = (length >>> 16) & 0xff;
  target[at + 3] = length >>> 24;
}

function readLength(source: Buffer, at: number): number {
  const low = (source[at] as number) | ((source[at + 1] as number) << 8);
  return low + (source[at + 2] as number) * 0x1_0000 + (source[at + 3] as number) * 0x100_0000;
}
